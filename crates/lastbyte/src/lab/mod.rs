//! The laboratory: engines that carry connections over an emulated link.

mod connection;
mod emulator;
mod endpoint;
mod expected;
mod live;
mod machine;
mod netlink;
mod prepare;
mod privilege;
mod shared;
mod surroundings;
mod sys;

use std::io;

use lastbyte_tls::TlsError;

pub use expected::expected;
pub use live::{Ending, LiveEngine, Progress, Run};
pub use machine::{Finding, State, environment, examine};
pub use prepare::PreparedArm;
pub use privilege::{Privilege, acquire};

/// Why the laboratory can't run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No network namespace can be made.
    #[error("can't make a network namespace: {0}; run as root, or see `lastbyte doctor`")]
    Namespace(#[source] io::Error),
    /// No TUN device can be made.
    #[error("can't make a TUN device: /dev/net/tun: {0}; run as root, or see `lastbyte doctor`")]
    Tun(#[source] io::Error),
    /// A namespace can't be configured.
    #[error("can't configure a network namespace: {0}; see `lastbyte doctor`")]
    Configure(#[source] io::Error),
    /// A socket failed in a way that is no connection's own failure.
    #[error("a socket failed: {0}")]
    Socket(#[source] io::Error),
    /// A thread of the engine ended too early.
    #[error("{0} ended unexpectedly: this is a bug in Lastbyte, please report it")]
    Crashed(&'static str),
    /// The emulator failed.
    #[error("the link emulator failed: {0}")]
    Emulator(#[source] io::Error),
    /// A TLS stack refuses an arm's configuration.
    #[error(transparent)]
    Stack(#[from] TlsError),
    /// An arm's chain can't be had.
    #[error(transparent)]
    Chain(#[from] lastbyte_pki::PkiError),
}
