//! Why the laboratory can't run.

use std::io;

use lastbyte_tls::TlsError;

use super::dns::DnsError;
use super::netem::NetemError;
use super::programs::PageError;

/// Why the laboratory can't run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No network namespace can be made.
    #[error(
        "can't make a network namespace: {0}; run as root, or measure without it in virtual time, which takes {get}; \
         `lastbyte doctor` tells more",
        get = crate::kernel::GET
    )]
    Namespace(#[source] io::Error),
    /// No TUN device can be made.
    #[error(
        "can't make a TUN device: /dev/net/tun: {0}; run as root, or measure without it in virtual time, which takes {get}; \
         `lastbyte doctor` tells more",
        get = crate::kernel::GET
    )]
    Tun(#[source] io::Error),
    /// A namespace can't be configured.
    #[error("can't configure a network namespace: {0}; see `lastbyte doctor`")]
    Configure(#[source] io::Error),
    /// A socket failed in a way that is no connection's own failure.
    #[error("a socket failed: {0}")]
    Socket(#[source] io::Error),
    /// Sockets dropped what no link would have.
    #[error(
        "sockets of this host had no room for {0} datagrams, which no link lost: measure fewer connections at once \
         (--concurrency), or have it grant larger buffers (net.core.rmem_max, net.core.wmem_max)"
    )]
    Dropped(u64),
    /// A thread of the engine ended too early.
    #[error("{0} ended unexpectedly: this is a bug in Lastbyte, please report it")]
    Crashed(&'static str),
    /// The emulator failed.
    #[error("the link emulator failed: {0}")]
    Emulator(#[source] io::Error),
    /// netem can't do what a link says.
    #[error(transparent)]
    Netem(#[from] NetemError),
    /// A TLS stack refuses an arm's configuration.
    #[error(transparent)]
    Stack(#[from] TlsError),
    /// An arm can't be had as it is written.
    #[error("arm {arm:?}: {problem}")]
    Arm {
        /// The arm.
        arm: String,
        /// What is wrong with it.
        problem: String,
    },
    /// DNS servers can't deliver what an arm has them deliver.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// Pages can't be loaded.
    #[error(transparent)]
    Page(#[from] PageError),
    /// An arm's chain can't be had.
    #[error(transparent)]
    Chain(#[from] lastbyte_pki::PkiError),
}
