//! Keys and certificate chains: made as a public CA issues them and padded to
//! an exact size, or read from PEM files.
//!
//! A [`ChainSpec`] says what a chain is to be, a [`Store`] makes it once and
//! keeps it, and a [`Chain`] is what a TLS server and its client need of it.
//! Every certificate of one specification has the same size on every machine:
//! serial numbers have a fixed length, and an ECDSA signature that came out
//! shorter or longer than usual is made again. So sizes are arithmetic, and
//! are known before any key is.
//!
//! ```
//! use lastbyte_pki::{ChainSpec, KeyAlgorithm};
//!
//! let padded = ChainSpec {
//!     certificate_bytes: Some(16_000),
//!     ..ChainSpec::new(KeyAlgorithm::Rsa2048)
//! };
//! assert_eq!(padded.to_string(), "rsa-2048:16000B");
//! assert!(padded.validate().is_ok());
//! ```

mod anatomy;
mod authority;
mod blocks;
mod cache;
mod chain;
mod container;
mod error;
mod explain;
mod keys;
mod path;
mod pem;
mod sct;
mod stand_in;
mod store;
#[cfg(any(test, feature = "test-chains"))]
pub mod test_chains;
mod validity;
mod verify;

pub use anatomy::{Anatomy, DerError, DerProblem, Extension, anatomy};
pub use chain::{Chain, Missing, Note, Unusable};
pub use container::Container;
pub use error::{PemProblem, PkiError};
pub use explain::{Explanation, explain, is_merkle_tree};
pub use keys::key_algorithm;
pub use lastbyte_providers::reason as openssl_reason;
pub use lastbyte_providers::{private_key_pem, private_key_pkcs8};
pub use lastbyte_sizes::{
    AlgorithmSizes, ChainError, ChainRole, ChainSpec, Host, KeyAlgorithm, PaddedCertificate,
    PemFiles, RootDelivery, SlhDsa, UnknownAlgorithm, sizes,
};
pub use pem::PublicChain;
pub use sct::{Sct, SctStatus, verify_scts};
pub use store::Store;

#[cfg(test)]
mod tests;
