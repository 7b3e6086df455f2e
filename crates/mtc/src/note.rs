//! Checkpoints: the size and hash of a log, signed (c2sp.org/tlog-checkpoint, signed-note and
//! tlog-cosignature, with ML-DSA-44).

use std::fmt::Write;

use crate::cosign::{CheckCosignature, CosignedSubtree, Cosigner, SignError, Signature};
use crate::hash::HashValue;
use crate::id::{LogId, TrustAnchorId, decimal};
use crate::time::UnixTime;

/// Someone who signs checkpoints.
#[derive(Clone, Copy)]
pub struct NoteSigner<'a> {
    /// Signs.
    pub cosigner: &'a dyn Cosigner,
    /// The bytes of the ML-DSA-44 public key, without its algorithm.
    pub key: &'a [u8],
}

/// A checkpoint, read. Nothing of it is checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's name.
    pub origin: String,
    /// Its entries.
    pub size: u64,
    /// Their hash.
    pub root: HashValue,
    signatures: Vec<NoteSignature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NoteSignature {
    name: String,
    key: [u8; 4],
    /// Time and signature, where it is one of the kind that is known.
    signature: Vec<u8>,
}

/// Why something is no checkpoint, or none to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// A line is not as it should be.
    #[error("line {0} of the checkpoint is not as it should be")]
    Line(usize),
    /// It is of another log.
    #[error("the checkpoint is of {found}, not of {expected}")]
    Origin {
        /// Of which it is.
        found: String,
        /// Of which it should be.
        expected: String,
    },
    /// It has no signature of this cosigner.
    #[error("the checkpoint is not signed by {0}")]
    Unsigned(TrustAnchorId),
    /// The signature is wrong.
    #[error("the signature of {0} below the checkpoint is wrong")]
    Wrong(TrustAnchorId),
}

const ML_DSA_44_COSIGNATURE: u8 = 6;
const TIME_BYTES: usize = 8;

/// The identifier of a key in notes.
fn key_id(name: &str, key: &[u8]) -> [u8; 4] {
    let hash = HashValue::of(&[name.as_bytes(), b"\n", &[ML_DSA_44_COSIGNATURE], key].concat());
    let [a, b, c, d, ..] = hash.0;
    [a, b, c, d]
}

/// Makes a checkpoint, signed by all of these at a time, the CA first.
///
/// # Errors
///
/// If one does not sign.
pub fn sign(
    log: &LogId,
    size: u64,
    root: HashValue,
    time: UnixTime,
    signers: &[NoteSigner<'_>],
) -> Result<String, SignError> {
    let statement = CosignedSubtree::of_checkpoint(log, size, root, time);
    let mut note = format!("{}\n{size}\n{}\n\n", log.id().origin(), base64(&root.0));
    for NoteSigner { cosigner, key } in signers {
        let name = cosigner.id().origin();
        let mut bytes = key_id(&name, key).to_vec();
        bytes.extend(time.0.to_be_bytes());
        bytes.extend(cosigner.sign(&statement.message(cosigner.id()))?);
        // Writing to a string does not fail.
        let _ = writeln!(note, "\u{2014} {name} {}", base64(&bytes));
    }
    Ok(note)
}

impl Checkpoint {
    /// Reads a checkpoint.
    ///
    /// # Errors
    ///
    /// If a line is not as it should be.
    pub fn parse(note: &str) -> Result<Checkpoint, CheckpointError> {
        let mut lines = note.split('\n');
        let mut number = 0;
        let mut line = || {
            number += 1;
            (number, lines.next())
        };
        let mut next = || match line() {
            (_, Some(text)) => Ok(text),
            (number, None) => Err(CheckpointError::Line(number)),
        };
        let origin = next()?;
        let size = decimal(next()?).ok_or(CheckpointError::Line(2))?;
        let root = unbase64(next()?).ok_or(CheckpointError::Line(3))?;
        let root = HashValue(root.try_into().map_err(|_| CheckpointError::Line(3))?);
        if origin.is_empty() {
            return Err(CheckpointError::Line(1));
        }
        // Extension lines say nothing that is known here.
        let mut at = 4;
        while !next()?.is_empty() {
            at += 1;
        }
        let mut signatures = Vec::new();
        loop {
            at += 1;
            let text = next()?;
            if text.is_empty() {
                break;
            }
            signatures.push(NoteSignature::parse(text).ok_or(CheckpointError::Line(at))?);
        }
        match (next(), signatures.is_empty()) {
            (Err(_), false) => Ok(Checkpoint {
                origin: origin.to_owned(),
                size,
                root,
                signatures,
            }),
            _ => Err(CheckpointError::Line(at)),
        }
    }

    /// Checks that it is of this log and signed by this cosigner, whose key's bytes are given besides, and
    /// tells when.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn check(
        &self,
        log: &LogId,
        cosigner: &TrustAnchorId,
        key: &[u8],
        checker: &dyn CheckCosignature,
    ) -> Result<UnixTime, CheckpointError> {
        let expected = log.id().origin();
        if self.origin != expected {
            let found = self.origin.clone();
            return Err(CheckpointError::Origin { found, expected });
        }
        let name = cosigner.origin();
        let id = key_id(&name, key);
        let mut signatures = self.signatures.iter();
        let signature = signatures.find(|one| one.name == name && one.key == id);
        let signature = signature.ok_or_else(|| CheckpointError::Unsigned(cosigner.clone()))?;
        let wrong = || CheckpointError::Wrong(cosigner.clone());
        let (time, signature) =
            (signature.signature.split_first_chunk::<TIME_BYTES>()).ok_or_else(wrong)?;
        let time = UnixTime(u64::from_be_bytes(*time));
        let statement = CosignedSubtree::of_checkpoint(log, self.size, self.root, time);
        match checker.check(&statement.message(cosigner), signature) {
            Signature::Good => Ok(time),
            Signature::Bad => Err(wrong()),
        }
    }
}

impl NoteSignature {
    fn parse(line: &str) -> Option<NoteSignature> {
        let (name, bytes) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
        let bytes = unbase64(bytes)?;
        let (key, signature) = bytes.split_first_chunk()?;
        (!name.is_empty()).then(|| NoteSignature {
            name: name.to_owned(),
            key: *key,
            signature: signature.to_owned(),
        })
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 (RFC 4648, section 4).
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() {
                digit.into()
            } else {
                '='
            });
        }
    }
    text
}

/// What Base64 stands for, if it is written in the one way there is.
pub fn unbase64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.as_bytes().chunks(4) {
        let mut group = 0;
        for place in 0..4 {
            let digit = match chunk.get(place) {
                Some(byte) => DIGITS.iter().position(|digit| digit == byte)?,
                None => 0,
            };
            group = group << 6 | digit as u32;
        }
        let [_, three @ ..] = group.to_be_bytes();
        bytes.extend(&three[..chunk.len().checked_sub(1)?]);
    }
    (base64(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests;
