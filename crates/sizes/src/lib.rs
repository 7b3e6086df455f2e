//! What TLS 1.3 and its certificates cost in bytes, and the words for it.
//!
//! All of it is arithmetic and tables: no key is made, no handshake done, nothing is read or sent. So this
//! crate needs no C and no operating system, and compiles for WebAssembly as it is.
//!
//! - [`KeyAlgorithm`], [`Group`]: sizes, names and code points of signatures and key exchanges. [`names`] has
//!   those that only a peer may choose.
//! - [`ChainSpec`]: what a chain of certificates is to be; [`sizes`] says how large each is. [`profile`] writes
//!   certificates, and so decides on their sizes; whoever has keys fills them in.
//! - [`framing`]: what records, messages and their parts take around what they carry (RFC 8446).
//! - [`quic`]: what QUIC makes of those messages (RFC 9001).
//! - [`Message`]: the handshake's messages whose sizes are reported.
//! - [`StackName`], [`Resumption`], [`Part`], [`Outcome`]: what else a configuration or a result may say.
//!
//! ```
//! use lastbyte_sizes::{ChainSpec, Group, KeyAlgorithm, framing};
//!
//! let chain = ChainSpec::new(KeyAlgorithm::MlDsa65);
//! let flight = framing::server_hello(Group::X25519MlKem768.server_share_bytes())
//!     + chain.unpadded_bytes()
//!     + framing::certificate_verify(chain.leaf.signature_bytes());
//! assert_eq!(flight, 1210 + 11_620 + 3317);
//! ```

mod algorithm;
mod compression;
mod config;
mod delivery;
pub mod der;
mod elision;
pub mod framing;
mod group;
mod host;
mod message;
pub mod names;
pub mod profile;
pub mod quic;
mod role;
pub mod sct;
mod signature;
mod size;
mod spec;
#[cfg(test)]
mod tests;

pub use algorithm::{KeyAlgorithm, SlhDsa, UnknownAlgorithm};
pub use compression::{ABRIDGED, CertificateCompression, Compressions, UnknownCompression};
pub use config::{Resumption, StackName, UnknownStack};
pub use delivery::{Outcome, Part, UnknownPart};
pub use elision::{
    ANCHOR_BYTES, ElidedHandshake, Elision, Fallback, Held, SentPath, Signal, tls_flags,
};
pub use group::{Group, UnknownGroup};
pub use host::Host;
pub use lastbyte_link::visible;
pub use message::{Message, MessageSizes, MessageType};
pub use role::ChainRole;
pub use signature::{FN_DSA, SLH_DSA, TlsSignature, signatures};
pub use size::{AlgorithmSizes, message_bytes, padding, sizes};
pub use spec::{
    ChainError, ChainSpec, Keys, LeafExtension, PaddedCertificate, PemFiles, RootDelivery,
};
