//! What a backend learns of a connection before all else: HAProxy's PROXY protocol.

use std::net::{IpAddr, SocketAddr};

use super::access::Session;

/// What the backend learns of clients besides what they send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAddress {
    /// It sees this server's own address.
    #[default]
    Kept,
    /// A line before all else, as version 1 of the PROXY protocol has it.
    ProxyV1,
    /// Version 2 of the PROXY protocol: the name that was asked for, the protocol inside and the
    /// TLS version, too.
    ProxyV2,
    /// Header fields of each request, `X-Forwarded-For` and `X-Forwarded-Proto`. It is for
    /// HTTP/1.1.
    Forwarded,
}

/// A connection's ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) client: SocketAddr,
    /// None if it has gone already.
    pub(super) server: Option<SocketAddr>,
}

impl ClientAddress {
    /// What is sent to the backend first.
    pub(super) fn header(self, ends: Ends, session: &Session) -> Vec<u8> {
        match self {
            ClientAddress::Kept | ClientAddress::Forwarded => Vec::new(),
            ClientAddress::ProxyV1 => line(ends).into_bytes(),
            ClientAddress::ProxyV2 => binary(ends, session),
        }
    }
}

enum Addresses {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

impl Ends {
    /// Both addresses and ports in one family: a load balancer may tell an IPv4 address as one of
    /// IPv6 beside one that is.
    fn addresses(self) -> Option<(Addresses, u16, u16)> {
        let server = self.server?;
        let ips = (self.client.ip().to_canonical(), server.ip().to_canonical());
        let addresses = match ips {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                Addresses::V4(client.octets(), server.octets())
            }
            (IpAddr::V6(client), IpAddr::V6(server)) => {
                Addresses::V6(client.octets(), server.octets())
            }
            (client, server) => {
                let [client, server] = [client, server].map(|ip| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                });
                Addresses::V6(client, server)
            }
        };
        Some((addresses, self.client.port(), server.port()))
    }
}

/// Version 1.
fn line(ends: Ends) -> String {
    match ends.addresses() {
        Some((Addresses::V4(client, server), from, to)) => {
            let [client, server] = [client, server].map(IpAddr::from);
            format!("PROXY TCP4 {client} {server} {from} {to}\r\n")
        }
        Some((Addresses::V6(client, server), from, to)) => {
            let [client, server] = [client, server].map(IpAddr::from);
            format!("PROXY TCP6 {client} {server} {from} {to}\r\n")
        }
        // For addresses that the protocol has no words for.
        None => "PROXY UNKNOWN\r\n".to_owned(),
    }
}

/// Version 2 ("The PROXY protocol", section 2.2).
fn binary(ends: Ends, session: &Session) -> Vec<u8> {
    const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
    /// Version 2, of a connection that is not this program's own.
    const PROXY: u8 = 0x21;
    const UNSPECIFIED: u8 = 0x00;
    const TCP_V4: u8 = 0x11;
    const TCP_V6: u8 = 0x21;
    const ALPN: u8 = 0x01;
    const AUTHORITY: u8 = 0x02;
    const SSL: u8 = 0x20;
    const SSL_VERSION: u8 = 0x21;
    /// The client connected with TLS; it has shown no certificate.
    const CLIENT_SSL: u8 = 0x01;
    const NOT_VERIFIED: u32 = 1;

    let (family, mut rest) = match ends.addresses() {
        Some((Addresses::V4(client, server), from, to)) => {
            let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
            (TCP_V4, [&client[..], &server, &ports].concat())
        }
        Some((Addresses::V6(client, server), from, to)) => {
            let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
            (TCP_V6, [&client[..], &server, &ports].concat())
        }
        None => (UNSPECIFIED, Vec::new()),
    };
    if let Some(protocol) = &session.protocol {
        rest.extend(tlv(ALPN, protocol.as_bytes()));
    }
    if let Some(name) = &session.name {
        rest.extend(tlv(AUTHORITY, name.as_bytes()));
    }
    let mut ssl = vec![CLIENT_SSL];
    ssl.extend(NOT_VERIFIED.to_be_bytes());
    ssl.extend(tlv(SSL_VERSION, b"TLSv1.3"));
    rest.extend(tlv(SSL, &ssl));
    // Names have at most 255 bytes, as protocols have.
    let length = u16::try_from(rest.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&SIGNATURE[..], &[PROXY, family], &length, &rest].concat()
}

fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    let value = value.get(..length.into()).unwrap_or_default();
    [&[kind], &length.to_be_bytes()[..], value].concat()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::access::Session;
    use super::{ClientAddress, Ends};

    fn header(how: ClientAddress, client: &str, server: &str) -> Vec<u8> {
        let ends = Ends {
            client: client.parse().unwrap(),
            server: server.parse().ok(),
        };
        let session = Session {
            name: Some("a.example".to_owned()),
            protocol: Some("h2".to_owned()),
            ..Session::default()
        };
        how.header(ends, &session)
    }

    #[test]
    fn clients_are_announced_as_the_proxy_protocol_has_it() {
        for (client, server, expected) in [
            (
                "192.0.2.7:1234",
                "192.0.2.1:443",
                "PROXY TCP4 192.0.2.7 192.0.2.1 1234 443\r\n",
            ),
            (
                "[2001:db8::7]:1234",
                "[2001:db8::1]:443",
                "PROXY TCP6 2001:db8::7 2001:db8::1 1234 443\r\n",
            ),
            // As a socket of both families tells it.
            (
                "[::ffff:192.0.2.7]:1234",
                "[::ffff:192.0.2.1]:443",
                "PROXY TCP4 192.0.2.7 192.0.2.1 1234 443\r\n",
            ),
            // As a load balancer may tell it of its own end.
            (
                "[::ffff:192.0.2.7]:1234",
                "[::1]:443",
                "PROXY TCP6 ::ffff:192.0.2.7 ::1 1234 443\r\n",
            ),
            ("192.0.2.7:1234", "gone", "PROXY UNKNOWN\r\n"),
        ] {
            let line = header(ClientAddress::ProxyV1, client, server);
            assert_eq!(String::from_utf8(line).unwrap(), expected);
        }
    }

    #[test]
    fn version_2_tells_what_is_spoken_and_with_whom() {
        let tells = b"\x01\0\x02h2\x02\0\x09a.example\x20\0\x0f\x01\0\0\0\x01\x21\0\x07TLSv1.3";
        let start = b"\r\n\r\n\0\r\nQUIT\n\x21";
        let v4 = header(ClientAddress::ProxyV2, "192.0.2.7:1234", "192.0.2.1:443");
        let addresses = b"\x11\0\x2f\xc0\0\x02\x07\xc0\0\x02\x01\x04\xd2\x01\xbb";
        assert_eq!(v4, [&start[..], addresses, tells].concat());
        let unknown = header(ClientAddress::ProxyV2, "192.0.2.7:1234", "gone");
        assert_eq!(unknown, [&start[..], b"\x00\0\x23", tells].concat());
    }
}
