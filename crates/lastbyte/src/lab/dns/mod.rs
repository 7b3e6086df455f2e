//! Certificates through DNS: BIND beside the server, Unbound near the client, and what a client
//! asks before it connects.
//!
//! Clients ask for the address and for the record at the same time, over one TCP connection to the
//! resolver that is kept open. The resolver asks the name server across the same kind of link as
//! connections have, from an address of its own.

mod resolver;
mod servers;
mod zone;

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use pqtlsad::record::Fragment;

pub(super) use resolver::{
    Answer as ResolverAnswer, FIRST, Question, Resolver, address as resolved_address,
};
pub use servers::find_programs;
pub(super) use servers::{Servers, start};

use crate::study::DnsCache;

#[cfg(test)]
mod tests;

/// Where the name server listens.
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 53);
const PORT: u16 = 53;

/// What DNS has for the clients of an arm.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// The server's, which is that of the zone as well.
    pub(crate) name: String,
    /// The records; none of a name that has none.
    pub(crate) fragments: Vec<Fragment>,
    /// Whether they are what they should be, and whether the resolver has them.
    pub(crate) cache: DnsCache,
    /// Between client and resolver.
    pub(crate) resolver_rtt: Duration,
}

impl Published {
    /// The name that connection `index` of a sample asks for.
    pub(crate) fn name_of(&self, index: u32) -> String {
        match self.cache {
            DnsCache::Cached | DnsCache::Absent | DnsCache::Broken | DnsCache::Foreign => {
                self.name.clone()
            }
            DnsCache::Cold => format!("c{index}.{}", self.name),
        }
    }
}

/// Why there is no DNS.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// A server is not installed.
    #[error("delivery=pqtls-ad needs {0}: install it with `apt-get install bind9 unbound`")]
    NotInstalled(&'static str),
    /// Its files can't be written.
    #[error("can't write the configuration of DNS servers: {0}")]
    Write(#[source] io::Error),
    /// It could not be started, or ended.
    #[error("{program} did not start: {reason}")]
    Start {
        /// Which server.
        program: &'static str,
        /// The last line that it printed.
        reason: String,
    },
    /// The kernel has no netem.
    #[error(
        "resolver_rtt= needs sch_netem in the kernel ({0}): use the virtual engine, or resolver_rtt=0ms"
    )]
    NoNetem(#[source] io::Error),
    /// What the resolver sent is no DNS, or it went away.
    #[error("the resolver: {0}")]
    Resolver(String),
}
