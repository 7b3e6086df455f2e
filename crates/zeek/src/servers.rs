//! Servers by name, as many as memory is for.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use lastbyte_link::visible;

use crate::cdn::CdnList;
use crate::handshake::{Carrier, Handshake};
use crate::row::digest;
use crate::tsv::unescape;

/// Servers that are distinguished. Those that come later are counted together.
pub(crate) const MOST: usize = 100_000;
/// DNS has no longer ones.
const LONGEST: usize = 255;

/// Whether names are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Servers are counted, and nobody can tell which they are.
    LeftOut,
    /// Names are kept, to be shown.
    Kept,
}

/// One server in [`Servers`]; `NONE` without a name, or beyond those that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server(u32);

impl Server {
    pub(crate) const NONE: Server = Server(u32::MAX);
}

pub(crate) struct Servers {
    names: Names,
    places: HashMap<u64, u32, BuildHasherDefault<Itself>>,
    servers: Vec<Entry>,
    /// Rows with a name that came when there was no room.
    pub(crate) beyond: u64,
    lower: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) name: Option<Box<str>>,
    pub(crate) by_name: bool,
    pub(crate) handshakes: u64,
    pub(crate) resumed: u64,
    pub(crate) over_quic: u64,
}

impl Servers {
    pub(crate) fn new(names: Names) -> Self {
        Servers {
            names,
            places: HashMap::default(),
            servers: Vec::new(),
            beyond: 0,
            lower: Vec::new(),
        }
    }

    /// The server of this name, and whether `list` has it.
    pub(crate) fn find(&mut self, name: &[u8], list: &CdnList) -> (Server, bool) {
        let name = name.strip_suffix(b".").unwrap_or(name);
        if name.is_empty() {
            return (Server::NONE, false);
        }
        self.lower.clear();
        self.lower.extend(name.iter().map(u8::to_ascii_lowercase));
        let key = digest(&self.lower);
        if let Some(place) = self.places.get(&key) {
            let entry = self.servers.get(*place as usize);
            return (Server(*place), entry.is_some_and(|entry| entry.by_name));
        }
        let by_name = list.has_name(&self.lower);
        if self.servers.len() >= MOST {
            self.beyond += 1;
            return (Server::NONE, by_name);
        }
        let place = self.servers.len() as u32;
        self.places.insert(key, place);
        self.servers.push(Entry {
            name: match self.names {
                Names::LeftOut => None,
                Names::Kept => Some(readable(&self.lower)),
            },
            by_name,
            ..Entry::default()
        });
        (Server(place), by_name)
    }

    pub(crate) fn get(&self, server: Server) -> Option<&Entry> {
        self.servers.get(server.0 as usize)
    }

    pub(crate) fn count(&mut self, server: Server, carrier: Carrier, handshake: Handshake) {
        if let Some(entry) = self.servers.get_mut(server.0 as usize) {
            entry.handshakes += 1;
            entry.resumed += u64::from(handshake == Handshake::Resumed);
            entry.over_quic += u64::from(carrier == Carrier::Quic);
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.servers
    }
}

/// As a terminal shows it.
fn readable(name: &[u8]) -> Box<str> {
    let name = unescape(name.get(..LONGEST).unwrap_or(name));
    visible(&String::from_utf8_lossy(&name)).into()
}

/// Keys are digests already.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = digest(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
