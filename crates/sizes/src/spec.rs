//! What a chain is to be.

use std::fmt;
use std::path::PathBuf;

use lastbyte_link::named;
use thiserror::Error;

use crate::algorithm::KeyAlgorithm;
use crate::framing;
use crate::host::Host;
use crate::role::ChainRole;

/// Whether the server sends the root as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RootDelivery {
    /// The client has it already.
    #[default]
    Omitted,
    /// After the intermediates, as the last certificate.
    Sent,
}

/// Which certificate grows when a chain is padded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PaddedCertificate {
    /// The end-entity.
    #[default]
    EndEntity,
    /// The last one that is sent: the root if it is, else the topmost intermediate.
    Last,
}

/// Something that a usual end-entity's certificate says and another can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeafExtension {
    /// The policies that it was issued under (RFC 5280, section 4.2.1.4).
    Policies,
    /// Where its issuer's certificate and OCSP are (section 4.2.2.1).
    Access,
    /// Where the list of revoked certificates is (section 4.2.1.13).
    Crl,
}

named!(LeafExtension, "extension", { Policies => "policies", Access => "aia", Crl => "crl" });

/// Whose keys are of which algorithm in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keys {
    /// The end-entity's.
    pub leaf: KeyAlgorithm,
    /// The intermediates'.
    pub ca: KeyAlgorithm,
    /// The root's.
    pub root: KeyAlgorithm,
}

impl From<KeyAlgorithm> for Keys {
    fn from(algorithm: KeyAlgorithm) -> Keys {
        Keys {
            leaf: algorithm,
            ca: algorithm,
            root: algorithm,
        }
    }
}

impl From<&ChainSpec> for Keys {
    fn from(spec: &ChainSpec) -> Keys {
        Keys {
            leaf: spec.leaf,
            ca: spec.ca,
            root: spec.root_key,
        }
    }
}

/// `LEAF`, `LEAF+CA` or `LEAF+CA+ROOT`, as chains of arms begin.
impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Keys { leaf, ca, root } = self;
        write!(f, "{leaf}")?;
        if ca != leaf || root != ca {
            write!(f, "+{ca}")?;
        }
        if root != ca {
            write!(f, "+{root}")?;
        }
        Ok(())
    }
}

/// What a chain is to be: the name by which a store keeps it.
///
/// Its `Display` is the chain part of an arm, with the keys that are not at
/// their default: `rsa-2048`, `ecdsa-p256+ml-dsa-65:16000B`,
/// `ml-dsa-44/intermediates=2/root=sent`. `/role=client` alone is no key of an arm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChainSpec {
    /// Whom it is for.
    pub role: ChainRole,
    /// The end-entity's key.
    pub leaf: KeyAlgorithm,
    /// The keys of the intermediates.
    pub ca: KeyAlgorithm,
    /// The root's key, that of `ca` where there are no intermediates.
    pub root_key: KeyAlgorithm,
    /// Certificates between the root and the end-entity, at most
    /// [`ChainSpec::MAX_INTERMEDIATES`].
    pub intermediates: u8,
    /// Whether the root is sent.
    pub root: RootDelivery,
    /// Bytes that the TLS 1.3 Certificate message is to have, its 4-byte header
    /// included; `None` leaves it as it is.
    pub certificate_bytes: Option<usize>,
    /// The certificate that grows until it has them.
    pub padding: PaddedCertificate,
    /// Signed Certificate Timestamps in the end-entity, at most [`ChainSpec::MAX_SCTS`].
    pub scts: u8,
    /// The keys of the logs that sign them.
    pub sct_algorithm: KeyAlgorithm,
    /// Names in a server's end-entity certificate, 1 to [`ChainSpec::MAX_NAMES`].
    pub names: u8,
    /// What its certificate does without, each once and in their order.
    pub leaf_without: Vec<LeafExtension>,
    /// Which of a page's origins the server is, at most [`ChainSpec::MAX_ORIGIN`]: certificates of all are equally long.
    pub origin: u8,
}

impl ChainSpec {
    /// The most intermediates a chain can have.
    pub const MAX_INTERMEDIATES: u8 = 3;

    /// The most bytes that a Certificate message can have: the length in its
    /// header has 24 bits (RFC 8446 section 4).
    pub const MAX_CERTIFICATE_BYTES: usize = framing::MAX_MESSAGE;

    /// The most Signed Certificate Timestamps a chain can have.
    pub const MAX_SCTS: u8 = 3;

    /// The most names a certificate can have.
    pub const MAX_NAMES: u8 = 100;

    /// The names of a usual one: its own, and that with `www.` before it.
    pub const USUAL_NAMES: u8 = 2;

    /// The last of a page's origins.
    pub const MAX_ORIGIN: u8 = 99;

    /// A server's chain of one algorithm with one intermediate, unpadded, its root not sent.
    pub fn new(algorithm: KeyAlgorithm) -> ChainSpec {
        ChainSpec {
            role: ChainRole::Server,
            leaf: algorithm,
            ca: algorithm,
            root_key: algorithm,
            intermediates: 1,
            root: RootDelivery::Omitted,
            certificate_bytes: None,
            padding: PaddedCertificate::EndEntity,
            scts: 0,
            sct_algorithm: KeyAlgorithm::EcdsaP256,
            names: ChainSpec::USUAL_NAMES,
            leaf_without: Vec::new(),
            origin: 0,
        }
    }

    /// What the end-entity is called: all origins' names have one length.
    pub fn name(&self) -> String {
        match self.origin {
            0 => self.role.name().to_owned(),
            nth @ 1..=9 => format!("asset{nth}.example"),
            nth => format!("asse{nth}.example"),
        }
    }

    /// The algorithm of the key that signs the certificate with so many above it.
    pub fn issuer_key(&self, level: usize) -> KeyAlgorithm {
        match level {
            0 | 1 => self.root_key,
            _ => self.ca,
        }
    }

    /// Certificates that are sent.
    pub fn certificates(&self) -> usize {
        let root = match self.root {
            RootDelivery::Omitted => 0,
            RootDelivery::Sent => 1,
        };
        self.end_entity_level() + root
    }

    /// Certificates above the end-entity.
    pub fn end_entity_level(&self) -> usize {
        1 + usize::from(self.intermediates)
    }

    /// Certificates above the one that is padded.
    pub fn padded_level(&self) -> usize {
        match (self.padding, self.root) {
            (PaddedCertificate::EndEntity, _) => self.end_entity_level(),
            (PaddedCertificate::Last, RootDelivery::Sent) => 0,
            (PaddedCertificate::Last, RootDelivery::Omitted) => 1,
        }
    }
}

impl fmt::Display for ChainSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Keys::from(self))?;
        if let Some(bytes) = self.certificate_bytes {
            write!(f, ":{bytes}B")?;
        }
        if self.intermediates != 1 {
            write!(f, "/intermediates={}", self.intermediates)?;
        }
        if self.root == RootDelivery::Sent {
            write!(f, "/root=sent")?;
        }
        if self.padding == PaddedCertificate::Last {
            write!(f, "/padding=last")?;
        }
        if self.scts != 0 {
            write!(f, "/scts={}", self.scts)?;
        }
        if self.sct_algorithm != KeyAlgorithm::EcdsaP256 {
            write!(f, "/sct_algorithm={}", self.sct_algorithm)?;
        }
        if self.names != ChainSpec::USUAL_NAMES {
            write!(f, "/names={}", self.names)?;
        }
        if !self.leaf_without.is_empty() {
            let names: Vec<_> = self.leaf_without.iter().map(|left| left.name()).collect();
            write!(f, "/leaf_without={}", names.join("+"))?;
        }
        if self.role == ChainRole::Client {
            write!(f, "/role=client")?;
        }
        if self.origin != 0 {
            write!(f, "/origin={}", self.origin)?;
        }
        Ok(())
    }
}

/// Where a user's own chain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemFiles {
    /// The certificates, as a web server wants them: the end-entity first, then
    /// each one's issuer. Or, as [`host`](PemFiles::host) reads it, the server that shows them.
    pub chain: PathBuf,
    /// The private key, not encrypted. Without it the key is taken from
    /// `chain`, or from `privkey.pem` or `key.pem` beside it.
    pub key: Option<PathBuf>,
    /// One or more trust anchors. Without it, that is the root at the end of `chain`, or `root.pem`
    /// beside it.
    pub ca: Option<PathBuf>,
    /// Whether a root at the end of the file is sent. One that a host shows always is.
    pub root: RootDelivery,
}

impl PemFiles {
    /// All that goes with a chain is where it usually is.
    pub fn new(chain: impl Into<PathBuf>) -> PemFiles {
        PemFiles {
            chain: chain.into(),
            key: None,
            ca: None,
            root: RootDelivery::Omitted,
        }
    }

    /// The server whose chain it is, where that is no file.
    pub fn host(&self) -> Option<Host> {
        Host::parse(self.chain.to_str()?)
    }
}

/// Why there can be no such chain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// More than [`ChainSpec::MAX_INTERMEDIATES`].
    #[error(
        "chain \"{0}\": ask for at most {max} intermediates",
        max = ChainSpec::MAX_INTERMEDIATES
    )]
    TooManyIntermediates(ChainSpec),
    /// A root of a third algorithm, and nothing between it and the end-entity.
    #[error(
        "chain \"{0}\": without intermediates the root issues; leave its intermediates' algorithm out"
    )]
    NoIntermediate(ChainSpec),
    /// More than [`ChainSpec::MAX_SCTS`].
    #[error("chain \"{0}\": ask for at most {max} SCTs", max = ChainSpec::MAX_SCTS)]
    TooManyScts(ChainSpec),
    /// More bytes of SCTs than their list can have.
    #[error(
        "chain \"{0}\": the length of a list of SCTs has 16 bits; ask for fewer or for a \
         smaller sct_algorithm"
    )]
    SctsTooLarge(ChainSpec),
    /// The Certificate message is larger than asked for even without padding.
    #[error(
        "chain \"{chain}\": its Certificate message has {unpadded} bytes without padding; \
         ask for {unpadded}B or more"
    )]
    TooSmall {
        /// The chain asked for.
        chain: ChainSpec,
        /// Bytes of its Certificate message without padding.
        unpadded: usize,
    },
    /// More than [`ChainSpec::MAX_CERTIFICATE_BYTES`].
    #[error(
        "chain \"{0}\": the length of a TLS handshake message has 24 bits; ask for {max}B or less",
        max = ChainSpec::MAX_CERTIFICATE_BYTES
    )]
    TooLarge(ChainSpec),
    /// No certificate has the size that the end-entity would need. DER skips a
    /// size where a length outgrows two bytes, and without intermediates there
    /// is nothing else to pad: a few sizes near 64 KiB.
    #[error("chain \"{0}\": no certificate has exactly this size; ask for a byte more")]
    Unreachable(ChainSpec),
}
