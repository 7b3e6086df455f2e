//! TLS 1.3 stacks behind one sans-IO trait, and an observer that reads
//! handshakes off the wire.
//!
//! Nothing here reads a clock or owns a socket: a [`Connection`] takes the bytes
//! that its peer sent and gives the bytes that are to be sent, and whoever moves
//! them decides when, and in which segments. A [`Stack`] makes both sides of
//! connections for one configuration, each with an implementation of its own.
//!
//! What was negotiated, and how large each message was, comes from the
//! [`observer`] and never from a stack, so that it means the same for all of them.
//!
//! ```no_run
//! use lastbyte_pki::{ChainSpec, KeyAlgorithm, Store};
//! use lastbyte_tls::observer::Message;
//! use lastbyte_tls::{Group, TlsConfig, handshake_in_memory, stack};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chain = Store::open("chains").chain(&ChainSpec::new(KeyAlgorithm::MlDsa65))?;
//! let stack = stack(&TlsConfig::new(Group::X25519MlKem768, &chain))?;
//! let handshake = handshake_in_memory(stack.as_ref())?;
//! let observation = handshake.observer.observe(&handshake.client.key_log());
//! assert_eq!(observation.bytes(Message::ClientHello), Some(1411));
//! assert_eq!(observation.bytes(Message::Certificate), Some(chain.certificate_message_bytes()));
//! # Ok(())
//! # }
//! ```

pub mod abridged;
pub mod anchors;
mod ask;
mod capabilities;
mod config;
mod error;
#[cfg(test)]
mod fixtures;
pub mod key_log;
mod memory;
pub mod merkle_tree;
pub mod observer;
mod openssl;
mod pairing;
mod protection;
mod quic;
#[cfg(feature = "rustls")]
mod rustls;
#[cfg(feature = "s2n-tls")]
mod s2n;
mod stack;
mod stacks;

pub use crate::capabilities::{Capabilities, Feature, capabilities, delivers};
pub use crate::config::{Delivery, TlsConfig};
pub use crate::error::{Alert, TlsError};
pub use crate::memory::{
    FailedHandshake, Handshake, StepTimes, first_attempt, handshake_between, handshake_in_memory,
    time_handshake,
};
pub use crate::openssl::{
    RandomSequence, Randomness, SingleClient, openssl_version, received_alert,
};
pub use crate::pairing::stack;
pub use crate::protection::{
    HeaderProtection, PacketProtection, PacketSecret, QUIC_V1, TAG_BYTES, retry_tag,
};
pub use crate::quic::{ALPN, Level, QuicOutput, QuicTls};
pub use crate::stack::{Connection, KeyLog, Progress, Retry, Session, Stack, Tickets};
pub use crate::stacks::version;
pub use lastbyte_sizes::framing::{MAX_EARLY_DATA, MAX_PLAINTEXT};
pub use lastbyte_sizes::{CertificateCompression, Compressions, Elision, UnknownCompression};
pub use lastbyte_sizes::{Group, Resumption, StackName, UnknownGroup, UnknownStack, names};
