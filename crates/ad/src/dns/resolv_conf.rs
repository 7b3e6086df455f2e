//! The system's resolvers (resolv.conf(5)).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The port of DNS.
const PORT: u16 = 53;

/// How many servers the system's own resolver uses (MAXNS).
const MAX_SERVERS: usize = 3;

/// The servers that a resolv.conf names, in order; this machine if it names none.
///
/// Addresses of a zone (`fe80::1%eth0`) are left out.
pub fn servers(text: &str) -> Vec<SocketAddr> {
    let servers: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let "nameserver" = words.next()? else {
                return None;
            };
            let address: IpAddr = words.next()?.parse().ok()?;
            Some(SocketAddr::new(address, PORT))
        })
        .take(MAX_SERVERS)
        .collect();
    if servers.is_empty() {
        vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)]
    } else {
        servers
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::servers;

    #[test]
    fn servers_are_read_as_the_system_does() {
        let text = "# nameserver 9.9.9.9\nsearch example\nnameserver\t192.0.2.1\n\
                    nameserver 2001:db8::1 # second\nnameserver fe80::1%eth0\nnameserver nonsense\n";
        let expected: Vec<_> = ["192.0.2.1:53", "[2001:db8::1]:53"]
            .map(|server| server.parse().unwrap())
            .into();
        assert_eq!(servers(text), expected);
        assert_eq!(
            servers("options edns0\n"),
            ["127.0.0.1:53".parse().unwrap()]
        );
        assert_eq!(servers(&"nameserver 192.0.2.1\n".repeat(9)).len(), 3);
    }
}
