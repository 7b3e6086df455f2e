//! A server that is asked for its chain.

use std::fmt;
use std::net::Ipv6Addr;

/// A server by name or address, and the TCP port at which it speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// A DNS name, an IPv4 address, or an IPv6 address without its brackets.
    pub name: String,
    /// Not zero.
    pub port: u16,
}

impl Host {
    /// `example.com:443`, `localhost:8443`, `192.0.2.1:443` or `[2001:db8::1]:443`. `None` for
    /// anything else: a name has a dot, as `rsa-2048:443` might be a chain and its size.
    pub fn parse(text: &str) -> Option<Host> {
        let (name, port) = text.rsplit_once(':')?;
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| digits && *port > 0)?;
        let inside = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let name = match inside {
            Some(address) => address.parse::<Ipv6Addr>().ok()?.to_string(),
            None if is_name(name) => name.to_owned(),
            None => return None,
        };
        Some(Host { name, port })
    }
}

fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (name == "localhost" || name.contains('.'))
        && !name.starts_with(['.', '-'])
        && name.bytes().all(is_of_name)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}
