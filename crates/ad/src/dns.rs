//! A DNS client, and dynamic updates.
//!
//! What others send is read in [`message`], [`resolv_conf`] and [`tsig`], which are pure and total.

mod client;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod message;
pub mod resolv_conf;
mod stream;
mod tls;
pub mod tsig;
mod update;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub use self::client::{Client, First, Reply, Server, Transport};
pub use self::message::{Answer, MessageError, Question, Records};
pub use self::stream::{framed, take_message};
pub use self::tls::{TlsServer, system_roots};
pub use self::update::{Change, UpdateError, update, zone_of};
pub use domain::base::Rtype;

/// A domain name without compression.
pub type Name = domain::base::Name<Vec<u8>>;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// The server did not answer, however often it was asked.
    #[error("{server} does not answer: asked {attempts} times for {each:?}")]
    Timeout {
        /// The last server that was asked.
        server: SocketAddr,
        /// How often servers were asked.
        attempts: u32,
        /// How long each was given.
        each: Duration,
    },
    /// The server can't be reached, or closed the connection.
    #[error("{server}: {error}")]
    Io {
        /// The server.
        server: SocketAddr,
        /// The system's words.
        error: io::Error,
    },
    /// DNS over TLS failed (RFC 7858).
    #[error("{server}: DNS over TLS failed: {reason}")]
    Tls {
        /// The server.
        server: SocketAddr,
        /// OpenSSL's words.
        reason: String,
    },
    /// The server's message is no answer.
    #[error("{server}: {error}")]
    Message {
        /// The server.
        server: SocketAddr,
        /// What is wrong with it.
        error: MessageError,
    },
    /// The system's own resolver has no answer.
    #[error("{0}")]
    System(io::Error),
    /// There is no server to ask.
    #[error("no DNS server is known: name one with --resolver")]
    NoServer,
    /// The system has no random numbers for us.
    #[error("no random numbers: {}", lastbyte_providers::reason(.0))]
    Random(openssl::error::ErrorStack),
}

/// A number that others can't guess (RFC 5452, section 4.3).
fn random_id() -> Result<u16, DnsError> {
    let mut id = [0; 2];
    openssl::rand::rand_bytes(&mut id).map_err(DnsError::Random)?;
    Ok(u16::from_be_bytes(id))
}
