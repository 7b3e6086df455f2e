//! Whom limits and turns count as one.

use std::net::{IpAddr, Ipv6Addr};

/// Where a client is: its address, or the network of its IPv6 address, of which one host has as many as it likes
/// (RFC 6177, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Source(IpAddr);

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Source {
        /// The first 64 bits.
        const NETWORK: u128 = !0 << 64;
        Source(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            address => address,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Source;

    #[test]
    fn a_host_is_one_source() {
        let source = |text: &str| Source::from(text.parse::<std::net::IpAddr>().unwrap());
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
        assert_eq!(source("192.0.2.1"), source("::ffff:192.0.2.1"));
    }
}
