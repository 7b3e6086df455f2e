//! The zone of a server's name.

use std::fmt::Write;

use pqtlsad::record::{RecordType, owner};

use super::{NAME_SERVER, Published};
use crate::lab::surroundings::SERVER;
use crate::study::DnsCache;

/// Longer than any block takes.
pub(super) const TTL: u32 = 7 * 86_400;

/// The zone file. Names that no resolver has seen are those of a wildcard.
pub(super) fn zone(published: &Published) -> String {
    let name = &published.name;
    let mut text = format!(
        "$TTL {TTL}\n\
         {name}. SOA ns.{name}. hostmaster.{name}. 1 3600 600 {TTL} {TTL}\n\
         {name}. NS ns.{name}.\n\
         ns.{name}. A {NAME_SERVER}\n"
    );
    let mut add = |of: &str| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{of}. A {SERVER}");
        for fragment in &published.fragments {
            let owner = owner(of, fragment.index);
            let kind = RecordType::DEFAULT;
            let _ = writeln!(text, "{owner}. {kind} {}", fragment.to_text(kind));
        }
    };
    add(name);
    if published.cache == DnsCache::Cold {
        add(&format!("*.{name}"));
    }
    text
}
