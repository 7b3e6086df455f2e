//! PQTLS-AD: a server publishes certificates of its chain in DNS, a client that has them says so in
//! its ClientHello, and the server sends only the rest.
//!
//! Nothing here owns a socket or reads a clock: answers, names and times come in as arguments. The
//! crate's README documents the wire formats.
//!
//! - [`record`]: the DNS record, from certificates and back.
//! - [`Digest`] and [`extension`]: what the two hellos say.
//! - [`server`]: which chains a server holds, and what it leaves out for whom.
//! - [`flight`]: which certificates are worth publishing.
//! - [`client`]: whether the record came in time, and what became of it.
//! - [`validate`]: what a client demands of a record before it uses it.
//! - [`openssl`]: both sides on an unmodified OpenSSL.

mod certificates;
pub mod client;
mod digest;
pub mod extension;
mod fallback;
mod ffi;
#[cfg(test)]
mod fixtures;
pub mod flight;
pub mod openssl;
pub mod record;
pub mod server;
#[cfg(test)]
mod test_vectors;
pub mod validate;

pub use certificates::{CertificateList, ListError};
pub use digest::Digest;
pub use lastbyte_sizes::{Part, UnknownPart};
