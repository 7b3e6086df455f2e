//! What a load balancer in front says whose a connection is: HAProxy's PROXY protocol, versions 1
//! and 2.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Addresses of load balancers: `ADDRESS[/BITS]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether an address is of it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |own: u128, other: u128, width: u8| {
            let differ = width.saturating_sub(self.bits);
            (own ^ other).checked_shr(differ.into()).unwrap_or(0) == 0
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same(own.to_bits().into(), other.to_bits().into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Network, &'static str> {
        const HINT: &str = "write an address such as 192.0.2.1, or a network such as 192.0.2.0/24";
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| HINT)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| HINT)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        match bits.unwrap_or(most) {
            bits if bits <= most => Ok(match (address.to_canonical(), bits.checked_sub(96)) {
                // What an IPv6 socket calls an address of IPv4.
                (IpAddr::V4(mapped), Some(bits)) if address.is_ipv6() => Network {
                    address: mapped.into(),
                    bits,
                },
                _ => Network { address, bits },
            }),
            _ => Err("an address of IPv4 has 32 bits, and one of IPv6 has 128"),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Whose a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// Of this client, which has connected to that address.
    Client(SocketAddr, SocketAddr),
    /// The load balancer's own, or of nobody whom it can tell.
    Own,
}

/// What it sent is no such header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no header of the PROXY protocol that can be read")]
pub struct Malformed;

/// "The PROXY protocol", section 2.2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The longest line of version 1, with its end (section 2.1).
const LONGEST: usize = 107;

/// As many bytes as version 2 may tell: what is longer is nobody's.
const MOST: usize = 4096;

/// Reads a header, and not a byte more.
///
/// # Errors
///
/// What reading ends in, and [`Malformed`].
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Announced> {
    let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    // Both versions have as many.
    let mut header = vec![0; SIGNATURE.len()];
    from.read_exact(&mut header).await?;
    if header == SIGNATURE {
        let mut rest = [0; 4];
        from.read_exact(&mut rest).await?;
        header.extend(rest);
        let [.., high, low] = rest;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > MOST {
            return Err(malformed(Malformed));
        }
        let mut announced = vec![0; length];
        from.read_exact(&mut announced).await?;
        header.extend(announced);
    } else {
        while !header.ends_with(b"\r\n") && header.len() < LONGEST {
            header.push(from.read_u8().await?);
        }
    }
    parse(&header).map_err(malformed)
}

/// Reads a whole header of either version.
///
/// # Errors
///
/// [`Malformed`] if it is none.
pub fn parse(header: &[u8]) -> Result<Announced, Malformed> {
    match header.strip_prefix(&SIGNATURE) {
        Some(rest) => binary(rest),
        None => line(header),
    }
    .ok_or(Malformed)
}

fn line(header: &[u8]) -> Option<Announced> {
    let line = std::str::from_utf8(header.strip_suffix(b"\r\n")?).ok()?;
    let mut words = line.strip_prefix("PROXY ")?.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(Announced::Own);
    }
    let mut address = || -> Option<IpAddr> {
        let word = words.next()?;
        match family {
            "TCP4" => word.parse::<Ipv4Addr>().ok().map(IpAddr::from),
            "TCP6" => word.parse::<Ipv6Addr>().ok().map(IpAddr::from),
            _ => None,
        }
    };
    let (client, server) = (address()?, address()?);
    let mut port = || {
        let word = words.next()?;
        let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
        word.parse::<u16>().ok().filter(|_| is_plain)
    };
    let (from, to) = (port()?, port()?);
    let ends = Announced::Client((client, from).into(), (server, to).into());
    words.next().is_none().then_some(ends)
}

fn binary(rest: &[u8]) -> Option<Announced> {
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    const TCP_V4: u8 = 0x11;
    const TCP_V6: u8 = 0x21;
    let (&[command, family, high, low], announced) = rest.split_first_chunk()?;
    if announced.len() != usize::from(u16::from_be_bytes([high, low])) {
        return None;
    }
    let port = |bytes: [u8; 2]| u16::from_be_bytes(bytes);
    match (command, family) {
        (LOCAL, _) => Some(Announced::Own),
        (PROXY, TCP_V4) => {
            let (client, announced) = announced.split_first_chunk::<4>()?;
            let (server, announced) = announced.split_first_chunk::<4>()?;
            let (&[a, b, c, d], _) = announced.split_first_chunk()?;
            Some(Announced::Client(
                (*client, port([a, b])).into(),
                (*server, port([c, d])).into(),
            ))
        }
        (PROXY, TCP_V6) => {
            let (client, announced) = announced.split_first_chunk::<16>()?;
            let (server, announced) = announced.split_first_chunk::<16>()?;
            let (&[a, b, c, d], _) = announced.split_first_chunk()?;
            Some(Announced::Client(
                (*client, port([a, b])).into(),
                (*server, port([c, d])).into(),
            ))
        }
        // Sockets of a machine's own, and UDP.
        (PROXY, _) => Some(Announced::Own),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::super::access::Session;
    use super::super::announce::{ClientAddress, Ends};
    use super::{Announced, Network, parse, read};

    fn address() -> impl Strategy<Value = std::net::SocketAddr> {
        prop_oneof![
            any::<([u8; 4], u16)>().prop_map(Into::into),
            any::<([u8; 16], u16)>().prop_map(Into::into),
        ]
    }

    proptest! {
            #[test]
            fn what_is_announced_is_read(client in address(), server in address(), rest: Vec<u8>) {
                let ends = Ends { client, server: Some(server) };
                let session = Session::default();
                let canonical = |address: std::net::SocketAddr| {
                    std::net::SocketAddr::new(address.ip().to_canonical(), address.port())
                };
                let (client, server) = (canonical(client), canonical(server));
                let mapped = |address: std::net::SocketAddr| match address.ip() {
                    IpAddr::V4(ip) => (ip.to_ipv6_mapped(), address.port()).into(),
                    IpAddr::V6(_) => address,
                };
                let expected = if client.is_ipv4() == server.is_ipv4() {
    Announced::Client(client, server)
    } else {
    Announced::Client(mapped(client), mapped(server))
    };
                for version in [ClientAddress::ProxyV1, ClientAddress::ProxyV2] {
                    let header = version.header(ends, &session);
                    prop_assert_eq!(parse(&header), Ok(expected));
                    // What follows is left.
                    let all = [&header[..], &rest].concat();
                    let mut stream = all.as_slice();
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    prop_assert_eq!(runtime.block_on(read(&mut stream)).unwrap(), expected);
                    prop_assert_eq!(stream, &rest[..]);
                }
            }

            #[test]
            fn anything_is_read_or_refused(bytes: Vec<u8>, cut in 0_usize..200) {
                let _ = parse(&bytes);
                let ends = Ends {
                    client: "192.0.2.7:1".parse().unwrap(),
                    server: "192.0.2.1:443".parse().ok(),
                };
                let mut header = ClientAddress::ProxyV2.header(ends, &Session::default());
                header.extend(bytes);
                header.truncate(cut);
                let _ = parse(&header);
            }
        }

    #[test]
    fn lines_that_are_none_are_refused() {
        for line in [
            "PROXY TCP4 192.0.2.7 192.0.2.1 1 443",
            "PROXY TCP4 192.0.2.7 192.0.2.1 1 443 \r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.1 +1 443\r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.1 1 65536\r\n",
            "PROXY TCP4 2001:db8::1 2001:db8::2 1 443\r\n",
            "PROXY TCP5 192.0.2.7 192.0.2.1 1 443\r\n",
            "PROXY  TCP4 192.0.2.7 192.0.2.1 1 443\r\n",
            "GET / HTTP/1.1\r\n",
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn networks_hold_their_addresses() {
        let holds = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
            network.contains(address.parse().unwrap())
        };
        assert!(holds("192.0.2.1", "192.0.2.1") && !holds("192.0.2.1", "192.0.2.2"));
        assert!(holds("192.0.2.0/24", "192.0.2.9") && !holds("192.0.2.0/24", "192.0.3.9"));
        assert!(holds("192.0.2.0/24", "::ffff:192.0.2.9"));
        assert!(holds("::ffff:192.0.2.1", "192.0.2.1") && !holds("::ffff:192.0.2.1", "192.0.2.2"));
        assert!(holds("::ffff:192.0.2.0/120", "192.0.2.9"));
        assert!(!holds("::ffff:192.0.2.0/120", "192.0.3.9"));
        assert!(holds("0.0.0.0/0", "203.0.113.1") && !holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::1") && !holds("2001:db8::/32", "2001:db9::1"));
        for wrong in ["192.0.2.0/33", "a.example", "192.0.2.1/", ""] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong:?}");
        }
    }
}
