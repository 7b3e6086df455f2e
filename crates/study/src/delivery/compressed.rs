//! Certificate compression (RFC 8879): the server compresses its Certificate message, and a client that has
//! one its own, with an algorithm that both have.

use lastbyte_exchange::{Compression, Exchange};
use lastbyte_sizes::{
    ABRIDGED, CertificateCompression, ChainSpec, Compressions, KeyAlgorithm, Resumption, framing,
};

use super::mismatch::Mismatch;
use super::{
    Certificates, Delivery, DeliveryKey, DeliveryProblem, Kind, Lengths, OnWire, OtherStack, Spec,
    Way, check_stacks, key,
};
use crate::Arm;
use crate::row::Dns;
use crate::value::ValueError;

/// What each side can compress with, and decompress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// The server's, the preferred first.
    pub server: Vec<CertificateCompression>,
    /// The client's, if they are not the server's.
    pub client: Option<Vec<CertificateCompression>>,
}

const NAME: &str = "compressed";
const COMPRESSION: &str = "compression";
const CLIENT_COMPRESSION: &str = "client_compression";
const ALGORITHMS: &str = "`brotli`, `zlib` or `zstd`, or several as `brotli+zlib`";

pub(super) static SPEC: Spec = Spec {
    names: || vec![NAME],
    keys: &[
        key!(
            Compressed,
            COMPRESSION,
            ALGORITHMS,
            "brotli",
            "what the server can compress with, the preferred first",
            |compressed| Some(plus(&compressed.server)),
            |compressed, text| {
                compressed.server = parse(text)?;
                Ok(())
            },
        ),
        key!(
            Compressed,
            CLIENT_COMPRESSION,
            ALGORITHMS,
            "",
            "the client's, where it has others",
            |compressed| Some(plus(compressed.client.as_ref()?)),
            |compressed, text| {
                compressed.client = Some(parse(text)?);
                Ok(())
            },
        ),
    ],
    subject: "certificates that are compressed",
    named: |name| (name == NAME).then(|| Delivery::Compressed(Compressed::default())),
    ways: &[Way {
        said: None,
        by: "by compress_certificate",
    }],
    trace: |wire, _| {
        let both = [
            wire.negotiated.compression,
            wire.negotiated.client_compression,
        ];
        let mut compressed = both.into_iter().flatten();
        let found = compressed.any(|compression| compression.algorithm != ABRIDGED);
        found.then_some("got certificates compressed")
    },
};

impl Default for Compressed {
    /// Brotli on both sides.
    fn default() -> Self {
        Self {
            server: vec![CertificateCompression::Brotli],
            client: None,
        }
    }
}

impl Compressed {
    /// What both sides have.
    pub fn of_both(&self) -> Compressions {
        Compressions {
            server: self.server.clone(),
            client: self.client().to_vec(),
        }
    }

    fn client(&self) -> &[CertificateCompression] {
        self.client.as_ref().unwrap_or(&self.server)
    }

    /// Whether both sides have what a certificate was compressed with.
    fn check(&self, whose: &'static str, compression: Option<Compression>) -> Result<(), Mismatch> {
        let Some(compression) = compression else {
            return Err(Mismatch::Uncompressed { whose });
        };
        let algorithm = CertificateCompression::of_code_point(compression.algorithm);
        let both_have = algorithm.is_some_and(|algorithm| {
            self.server.contains(&algorithm) && self.client().contains(&algorithm)
        });
        if both_have {
            Ok(())
        } else {
            Err(Mismatch::Compression {
                whose,
                algorithm: algorithm
                    .map_or(compression.algorithm.to_string(), |known| known.to_string()),
            })
        }
    }
}

/// What brotli leaves of a chain's certificates but for keys and signatures, with so many intermediates: of names, extensions,
/// and identifiers of keys, of which the last don't compress either. Chains of one description differ in what brotli finds in
/// random keys: of 400 chains of ECDSA, RSA-2048 and ML-DSA-44 each with 0 to 3 intermediates, the medians were within 27 bytes,
/// and the worst chain was 89 bytes longer (`LASTBYTE_CHAINS=400` of the test `whatever_is_compressed`).
const LEFT: [usize; 4] = [421, 524, 578, 631];
/// How far off that is, in bytes, of any chain but a rare one.
pub const LEFT_WITHIN: usize = 100;

/// What brotli finds in a signed certificate timestamp, in bytes: its frame; the identity of the log is as random as a key is, and
/// so is its signature, but for the hints at the end of one of ML-DSA. Medians of 20 descriptions of 12 chains each.
fn found_in_timestamp(signed_by: KeyAlgorithm) -> usize {
    match signed_by {
        KeyAlgorithm::MlDsa44 | KeyAlgorithm::MlDsa65 | KeyAlgorithm::MlDsa87 => 17,
        _ => 7,
    }
}

/// The chain of these algorithms with all else as usual, for which it is known what is left.
pub(super) fn usual(spec: &ChainSpec) -> ChainSpec {
    ChainSpec {
        leaf: spec.leaf,
        ca: spec.ca,
        root_key: spec.root_key,
        intermediates: spec.intermediates,
        ..ChainSpec::new(spec.leaf)
    }
}

/// Keys and signatures of what a server sends: nothing makes them smaller.
pub(super) fn incompressible(spec: &ChainSpec) -> usize {
    let levels = 0..=usize::from(spec.intermediates);
    let key = |level| if level == 0 { spec.leaf } else { spec.ca };
    let of_level = |level| key(level).public_key_bytes() + spec.issuer_key(level).signature_bytes();
    levels.map(of_level).sum()
}

impl Compressed {
    /// `left` is what brotli leaves of the message.
    fn on_wire(&self, left: usize, certificates: usize) -> Result<Vec<OnWire>, &'static str> {
        let is_common = |algorithm: &&CertificateCompression| self.client().contains(algorithm);
        match self.server.iter().find(is_common) {
            Some(CertificateCompression::Brotli) => Ok(vec![OnWire {
                client_hello: offer(self.client().len()),
                certificate: COMPRESSED + left,
                certificates,
                ..OnWire::default()
            }]),
            _ => Err("what another compression than brotli leaves"),
        }
    }
}

/// What a CompressedCertificate has before what is compressed (RFC 8879, section 4): the header of a message, an algorithm,
/// and two lengths.
pub(super) const COMPRESSED: usize = framing::MESSAGE_HEADER + 2 + 3 + 3;

/// compress_certificate with so many algorithms (RFC 8879, section 3).
pub(super) fn offer(algorithms: usize) -> usize {
    framing::EXTENSION_HEADER + 1 + 2 * algorithms
}

impl Kind for Compressed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), DeliveryProblem> {
        let is_common = |algorithm| self.client().contains(algorithm);
        if !self.server.iter().any(is_common) {
            return Err(DeliveryProblem::NothingInCommon {
                server: list(&self.server),
                client: list(self.client()),
            });
        }
        match arm.resumption {
            Resumption::Full => Ok(()),
            Resumption::Ticket | Resumption::EarlyData => Err(DeliveryProblem::Resumed {
                what: " to compress",
            }),
        }
    }

    /// What a stack costs is more than what compression saves.
    fn check_baseline(&self, arm: &Arm, baseline: &Arm) -> Result<(), OtherStack> {
        check_stacks(arm, baseline, "is compressed")
    }

    fn words(&self) -> String {
        format!(
            "compressed with {}, taken with {}",
            list(&self.server),
            list(self.client())
        )
    }

    fn arithmetic(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, &'static str> {
        let without_timestamps = ChainSpec {
            scts: 0,
            sct_algorithm: ChainSpec::new(spec.leaf).sct_algorithm,
            ..spec.clone()
        };
        let left = LEFT.get(usize::from(spec.intermediates));
        match left.filter(|_| without_timestamps == usual(spec)) {
            Some(left) => {
                let timestamps = spec.unpadded_bytes() - without_timestamps.unpadded_bytes();
                let found = usize::from(spec.scts) * found_in_timestamp(spec.sct_algorithm);
                self.on_wire(
                    incompressible(spec) + left + timestamps - found.min(timestamps),
                    spec.certificates(),
                )
            }
            None => Err("what compression leaves of other certificates than usual"),
        }
    }

    fn arithmetic_of(&self, chain: Lengths<'_>) -> Result<Vec<OnWire>, &'static str> {
        match chain.brotli {
            Some(left) => self.on_wire(left, chain.certificates.len()),
            None => Err("what compression leaves of certificates that nobody has tried"),
        }
    }

    fn check_handshake(&self, _: &Arm, wire: &Exchange, _: &Dns) -> Result<Certificates, Mismatch> {
        self.check("its", wire.negotiated.compression)?;
        if wire.client_certificate_bytes() > 0 {
            self.check("its client's", wire.negotiated.client_compression)?;
        }
        Ok(Certificates::Whole)
    }
}

/// Algorithms such as `brotli+zlib`.
fn parse(text: &str) -> Result<Vec<CertificateCompression>, ValueError> {
    let mut algorithms = Vec::new();
    if text.contains(',') {
        return Err(ValueError::Commas {
            text: text.to_owned(),
        });
    }
    for word in text.split('+') {
        let algorithm: CertificateCompression = word.parse().map_err(ValueError::Compression)?;
        if algorithms.contains(&algorithm) {
            return Err(ValueError::Twice(algorithm.name()));
        }
        algorithms.push(algorithm);
    }
    Ok(algorithms)
}

/// As an arm says them.
fn plus(algorithms: &[CertificateCompression]) -> String {
    let names = algorithms.iter().map(|algorithm| algorithm.name());
    names.collect::<Vec<_>>().join("+")
}

fn list(algorithms: &[CertificateCompression]) -> String {
    let names = algorithms.iter().map(|algorithm| algorithm.name());
    names.collect::<Vec<_>>().join(" or ")
}
