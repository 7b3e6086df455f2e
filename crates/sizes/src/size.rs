//! How large certificates are, known before there is a key, and the padding
//! that makes them larger.

use crate::algorithm::KeyAlgorithm;
use crate::profile::{self, Contents, Kind, Padding, SERIAL_BYTES, Validity};
use crate::spec::{ChainError, ChainSpec, RootDelivery};
use crate::{framing, sct};

impl ChainSpec {
    /// Bytes of the Certificate message without padding, the least that
    /// [`certificate_bytes`](Self::certificate_bytes) can ask for.
    pub fn unpadded_bytes(&self) -> usize {
        message_bytes(self, &Padding::default())
    }

    /// Bytes of the DER of each certificate as it is sent, with the padding that was asked for: the end-entity's
    /// first.
    ///
    /// # Errors
    ///
    /// Those of [`padding`].
    pub fn certificate_lengths(&self) -> Result<Vec<usize>, ChainError> {
        Ok(certificate_lengths(self, &padding(self)?))
    }

    /// Checks that such a chain can be made, without making it.
    ///
    /// # Errors
    ///
    /// [`ChainError::TooManyIntermediates`], [`ChainError::NoIntermediate`],
    /// [`ChainError::TooManyScts`], [`ChainError::SctsTooLarge`], [`ChainError::TooSmall`],
    /// [`ChainError::TooLarge`] and [`ChainError::Unreachable`].
    pub fn validate(&self) -> Result<(), ChainError> {
        if self.intermediates > ChainSpec::MAX_INTERMEDIATES {
            return Err(ChainError::TooManyIntermediates(self.clone()));
        }
        if self.intermediates == 0 && self.root_key != self.ca {
            return Err(ChainError::NoIntermediate(self.clone()));
        }
        if self.scts > ChainSpec::MAX_SCTS {
            return Err(ChainError::TooManyScts(self.clone()));
        }
        if sct::list_bytes(self.scts, self.sct_algorithm) > usize::from(u16::MAX) {
            return Err(ChainError::SctsTooLarge(self.clone()));
        }
        padding(self).map(drop)
    }
}

/// What one algorithm costs, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlgorithmSizes {
    /// The algorithm of every key of the chain.
    pub algorithm: KeyAlgorithm,
    /// [`KeyAlgorithm::public_key_bytes`].
    pub public_key: usize,
    /// [`KeyAlgorithm::signature_bytes`].
    pub signature: usize,
    /// The DER of an end-entity certificate.
    pub end_entity: usize,
    /// The DER of an intermediate certificate.
    pub intermediate: usize,
    /// The DER of a root certificate.
    pub root: usize,
    /// The TLS 1.3 Certificate message with 0, 1, 2 and 3 intermediates and no root.
    pub certificate_message: [usize; 1 + ChainSpec::MAX_INTERMEDIATES as usize],
    /// The TLS 1.3 CertificateVerify message (RFC 8446 section 4.4.3).
    pub certificate_verify: usize,
}

/// What each algorithm costs. Nothing is made for it.
pub fn sizes() -> Vec<AlgorithmSizes> {
    KeyAlgorithm::ALL
        .into_iter()
        .map(|algorithm| {
            let spec = ChainSpec::new(algorithm);
            let padding = Padding::default();
            let with = |intermediates| ChainSpec {
                intermediates,
                ..spec.clone()
            };
            AlgorithmSizes {
                algorithm,
                public_key: algorithm.public_key_bytes(),
                signature: algorithm.signature_bytes(),
                end_entity: end_entity_bytes(&spec, &padding),
                intermediate: ca_bytes(&spec, &padding, 1),
                root: ca_bytes(&spec, &padding, 0),
                certificate_message: [0, 1, 2, 3].map(|n| with(n).unpadded_bytes()),
                certificate_verify: framing::certificate_verify(algorithm.signature_bytes()),
            }
        })
        .collect()
}

/// Bytes of the Certificate message that carries a chain with this padding.
pub fn message_bytes(spec: &ChainSpec, padding: &Padding) -> usize {
    framing::certificate_message(certificate_lengths(spec, padding))
}

fn certificate_lengths(spec: &ChainSpec, padding: &Padding) -> Vec<usize> {
    let intermediates = (1..=usize::from(spec.intermediates)).rev();
    let root = match spec.root {
        RootDelivery::Omitted => None,
        RootDelivery::Sent => Some(0),
    };
    let authorities = intermediates
        .chain(root)
        .map(|level| ca_bytes(spec, padding, level));
    [end_entity_bytes(spec, padding)]
        .into_iter()
        .chain(authorities)
        .collect()
}

/// The padding that gives the Certificate message the size asked for. What the extension holds is zeros.
///
/// # Errors
///
/// [`ChainError::TooSmall`], [`ChainError::TooLarge`] and [`ChainError::Unreachable`].
pub fn padding(spec: &ChainSpec) -> Result<Padding, ChainError> {
    let Some(target) = spec.certificate_bytes else {
        return Ok(Padding::default());
    };
    let unpadded = spec.unpadded_bytes();
    if target < unpadded {
        let chain = spec.clone();
        return Err(ChainError::TooSmall { chain, unpadded });
    }
    if target > ChainSpec::MAX_CERTIFICATE_BYTES {
        return Err(ChainError::TooLarge(spec.clone()));
    }
    // The extension alone leaves gaps: it costs bytes of its own, and where a
    // length needs one more byte, a size is skipped. A longer URL of the CRL fills
    // these gaps. Where a length around all extensions skips a size, nothing in the
    // certificate helps, and the intermediates grow instead.
    const LONGEST_CRL: usize = 16;
    // Where another certificate than the end-entity is padded, the end-entity's URL does all that.
    for intermediate_crl in 0..=usize::from(spec.intermediates.min(1)) {
        for crl in 0..=LONGEST_CRL {
            let padding = |extension: Option<usize>| Padding {
                intermediate_crl,
                crl,
                extension: extension.map(|bytes| vec![0; bytes]),
            };
            let bytes = |extension| message_bytes(spec, &padding(extension));
            if bytes(None) == target {
                return Ok(padding(None));
            }
            if let Some(extension) = solve(target, |extension| bytes(Some(extension))) {
                return Ok(padding(Some(extension)));
            }
        }
    }
    Err(ChainError::Unreachable(spec.clone()))
}

/// The argument for which `bytes`, which grows by one for each and now and then by
/// more, is `target`.
fn solve(target: usize, bytes: impl Fn(usize) -> usize) -> Option<usize> {
    let most = target.checked_sub(bytes(0))?;
    let least = most.saturating_sub(bytes(most) - target);
    (least..=most).find(|argument| bytes(*argument) == target)
}

fn ca_bytes(spec: &ChainSpec, padding: &Padding, level: usize) -> usize {
    let (key, kind) = match level {
        0 => (spec.root_key, Kind::Root),
        _ => {
            let kind = Kind::Intermediate {
                path_length: 0,
                crl_padding: padding.intermediate_crl,
            };
            (spec.ca, kind)
        }
    };
    certificate_bytes(spec, padding, key, level, kind)
}

fn end_entity_bytes(spec: &ChainSpec, padding: &Padding) -> usize {
    let kind = Kind::EndEntity {
        algorithm: spec.leaf,
        name: &spec.name(),
        crl_padding: padding.crl,
        scts: &sct::extension_of_zeros(spec.scts, spec.sct_algorithm),
        names: spec.names,
        without: &spec.leaf_without,
    };
    certificate_bytes(spec, padding, spec.leaf, spec.end_entity_level(), kind)
}

/// The size of a certificate of zeros: a real one has the same.
fn certificate_bytes(
    spec: &ChainSpec,
    padding: &Padding,
    key: KeyAlgorithm,
    level: usize,
    kind: Kind,
) -> usize {
    let padded = spec.padded_level() == level;
    let issuer = spec.issuer_key(level);
    let contents = Contents {
        level,
        serial: [1; SERIAL_BYTES],
        validity: Validity::default(),
        key: &vec![0; key.key_info_bytes()],
        key_identifier: [0; _],
        issuer_identifier: [0; _],
        signature: issuer,
        role: spec.role,
        kind,
        padding: padding.extension.as_deref().filter(|_| padded),
    };
    let signature = vec![0; issuer.signature_bytes()];
    profile::certificate(&contents.to_be_signed(), issuer, &signature).len()
}
