//! What belongs to a CDN: by the server's name, else by its address.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Whose server it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// On the list.
    Cdn,
    /// Not on the list.
    Other,
}

impl Class {
    /// Both.
    pub const ALL: [Class; 2] = [Class::Cdn, Class::Other];

    /// Its label in the document and the profile.
    pub fn name(self) -> &'static str {
        match self {
            Class::Cdn => "cdn",
            Class::Other => "other",
        }
    }
}

/// A list of names and prefixes, one a line: `.example.net` for the names below a name, `example.net` for a
/// name and those below it, `192.0.2.0/24` and `2001:db8::/32` for addresses. What follows `#` is a remark.
#[derive(Clone, Debug, Default)]
pub struct CdnList {
    /// Without the first dot.
    below: HashSet<Box<[u8]>>,
    itself: HashSet<Box<[u8]>>,
    /// First and last address, in order, none within another.
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

/// The list that is used where no other is named.
pub const DEFAULT: &str = include_str!("cdn.txt");

/// Why a list can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {entry:?} is no name, no suffix and no prefix: write example.net, .example.net or 192.0.2.0/24"
)]
pub struct CdnError {
    line: usize,
    entry: String,
}

impl FromStr for CdnList {
    type Err = CdnError;

    fn from_str(text: &str) -> Result<Self, CdnError> {
        let mut list = CdnList::default();
        for (line, entry) in (1..).zip(text.lines()) {
            let entry = entry.split('#').next().unwrap_or_default().trim();
            if !entry.is_empty() {
                list.add(entry).ok_or_else(|| CdnError {
                    line,
                    entry: entry.to_owned(),
                })?;
            }
        }
        merge(&mut list.v4);
        merge(&mut list.v6);
        Ok(list)
    }
}

impl CdnList {
    fn add(&mut self, entry: &str) -> Option<()> {
        if let Some((address, bits)) = entry.split_once('/') {
            let bits: u32 = bits.parse().ok()?;
            match address.parse().ok()? {
                IpAddr::V4(address) => {
                    let rest = u32::MAX.checked_shr(bits).filter(|_| bits <= 32);
                    let rest = rest.or((bits == 32).then_some(0))?;
                    let first = address.to_bits() & !rest;
                    self.v4.push((first, first | rest));
                }
                IpAddr::V6(address) => {
                    let rest = u128::MAX.checked_shr(bits).filter(|_| bits <= 128);
                    let rest = rest.or((bits == 128).then_some(0))?;
                    let first = address.to_bits() & !rest;
                    self.v6.push((first, first | rest));
                }
            }
            return Some(());
        }
        let name = entry.to_ascii_lowercase();
        let is_label = |label: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !label.is_empty() && label.bytes().all(fits)
        };
        let bare = name.strip_prefix('.').unwrap_or(&name);
        if !bare.split('.').all(is_label) {
            return None;
        }
        self.below.insert(bare.as_bytes().into());
        if bare == name {
            self.itself.insert(bare.as_bytes().into());
        }
        Some(())
    }

    /// Whether a name in lower case is on the list.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        if name.is_empty() {
            return false;
        }
        let dots = memchr::memchr_iter(b'.', name);
        self.itself.contains(name)
            || dots
                .into_iter()
                .any(|dot| (name.get(dot + 1..)).is_some_and(|above| self.below.contains(above)))
    }

    /// Whether an address is in a prefix of the list.
    pub(crate) fn has_address(&self, text: &[u8]) -> bool {
        if self.v4.is_empty() && self.v6.is_empty() {
            return false;
        }
        let text = std::str::from_utf8(text).unwrap_or_default();
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return within(&self.v4, address.to_bits());
        }
        match text.parse::<Ipv6Addr>() {
            Ok(address) => match address.to_ipv4_mapped() {
                Some(address) => within(&self.v4, address.to_bits()),
                None => within(&self.v6, address.to_bits()),
            },
            Err(_) => false,
        }
    }
}

fn merge<T: Copy + Ord>(ranges: &mut Vec<(T, T)>) {
    ranges.sort_unstable();
    // Prefixes overlap only as wholes.
    ranges.dedup_by(|next, before| next.1 <= before.1);
}

fn within<T: Copy + Ord>(ranges: &[(T, T)], address: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= address);
    let range = after.checked_sub(1).and_then(|at| ranges.get(at));
    range.is_some_and(|(_, last)| address <= *last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_and_addresses() {
        let list: CdnList = DEFAULT.parse().unwrap();
        for name in [
            "d111111abcdef8.cloudfront.net",
            "cdnjs.cloudflare.com",
            "a.b.akamaized.net",
        ] {
            assert!(list.has_name(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "cloudfront.net.example",
            "notcloudfront.net",
            "www.example.com",
            ".",
        ] {
            assert!(!list.has_name(name.as_bytes()), "{name}");
        }
        for address in [
            "104.16.0.1",
            "104.27.255.255",
            "2606:4700::1",
            "::ffff:151.101.1.1",
        ] {
            assert!(list.has_address(address.as_bytes()), "{address}");
        }
        for address in [
            "104.15.255.255",
            "104.28.0.0",
            "2001:db8::1",
            "",
            "-",
            "name",
        ] {
            assert!(!list.has_address(address.as_bytes()), "{address}");
        }
    }

    #[test]
    fn lists_of_ones_own() {
        let list: CdnList =
            ".a.example # below\nb.example\n\n192.0.2.0/31\n0.0.0.0/32\n2001:db8::/128\n"
                .parse()
                .unwrap();
        assert!(list.has_name(b"x.a.example") && !list.has_name(b"a.example"));
        assert!(list.has_name(b"x.b.example") && list.has_name(b"b.example"));
        assert!(list.has_address(b"192.0.2.1") && !list.has_address(b"192.0.2.2"));
        assert!(list.has_address(b"0.0.0.0") && !list.has_address(b"0.0.0.1"));
        assert!(list.has_address(b"2001:db8::") && !list.has_address(b"2001:db8::1"));
        let all: CdnList = "0.0.0.0/0\n10.0.0.0/8".parse().unwrap();
        assert!(all.has_address(b"255.255.255.255"));
        for wrong in [
            "a b",
            "192.0.2.0/33",
            "..a",
            "*.a.example",
            "2001:db8::/129",
            "1.2.3/8",
        ] {
            let error = wrong.parse::<CdnList>().unwrap_err().to_string();
            assert!(
                error.starts_with("line 1: ") && !error.contains('\n'),
                "{error}"
            );
        }
    }
}
