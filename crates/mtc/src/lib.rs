//! Merkle Tree Certificates, after draft-ietf-plants-merkle-tree-certs-07: server certificates whose
//! signature is a proof that a log has them.
//!
//! A certification authority appends what it certifies to a [`log`] of its own, and signs the log's growth
//! once for thousands of certificates. A [*standalone*](issue) certificate carries the hashes up to a subtree
//! and the signatures of [cosigners](cosign) over that. A *landmark-relative* one carries the hashes alone,
//! up to a subtree at a [landmark] that clients know beforehand. [`verify`] is what a client does.
//!
//! No module opens a socket or reads a clock: times are arguments. [`log`] keeps a log in a folder; the
//! others hold no file either. Signatures are made and checked by whoever implements [`cosign::Cosigner`] and
//! [`cosign::CheckCosignature`]; with the feature `openssl`, OpenSSL does.
//!
//! ```
//! use lastbyte_mtc::{LogId, LogNumber, Request, RelyingParty, Sample, TrustedAuthority, UnixTime, Validity};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let key = lastbyte_mtc::issue::made_up_key(1, 1);
//! # let now = UnixTime(1_800_000_000);
//! # let days = std::time::Duration::from_secs(7 * 86_400);
//! let log = LogId::new("32473.1".parse()?, LogNumber::FIRST)?;
//! let request = Request {
//!     names: &["example.com"],
//!     key: &key,
//!     validity: Validity::of(now, days),
//! };
//! // One among 4.4 million.
//! let mut sample = Sample::new(log.clone(), &request, 1_234_567, 4_400_000, 1)?;
//! let landmark = sample.make_landmark(4_400_000, now.after(days))?;
//! let certificate = sample.landmark_relative()?;
//!
//! let mut authority = TrustedAuthority::new(log.ca().clone());
//! for (subtree, hash) in sample.landmark_subtrees(landmark.number)? {
//!     authority.trust(log.number(), subtree, hash);
//! }
//! let mut client = RelyingParty::new();
//! client.trust(authority);
//! let verified = client.verify(&certificate, now)?;
//! assert_eq!(verified.certificate.hosts(), ["example.com"]);
//! # Ok(())
//! # }
//! ```

pub mod certificate;
pub mod cosign;
mod der;
pub mod entry;
mod hash;
pub mod id;
pub mod issue;
pub mod landmark;
pub mod log;
pub mod mirror;
pub mod note;
mod oid;
#[cfg(feature = "openssl")]
pub mod openssl;
pub mod pem;
pub mod proof;
pub mod serve;
pub mod subtree;
mod time;
pub mod tree;
pub mod trust_anchors;
pub mod verify;
mod wire;

pub use certificate::{CaCertificate, Certificate, CertificateError};
pub use cosign::{CheckCosignature, Cosignature, CosignedSubtree, Cosigner, Signature};
pub use der::DerError;
pub use entry::{Entry, EntryError, Request};
pub use hash::HashValue;
pub use id::{LogId, LogNumber, Pattern, Properties, TrustAnchorId};
pub use issue::{MemoryLog, Sample};
pub use landmark::{Landmark, Landmarks};
pub use oid::{Draft, SignatureAlgorithm};
pub use proof::Proof;
pub use subtree::{Nodes, Subtree};
pub use time::{UnixTime, Validity};
pub use tree::{SparseTree, Tree};
pub use verify::{Group, Refusal, RelyingParty, Trusted, TrustedAuthority, Verified};
pub use wire::WireError;
