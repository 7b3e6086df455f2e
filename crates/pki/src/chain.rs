//! A chain, ready for a TLS server and its client.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_sizes::{TlsSignature, framing};
use openssl::asn1::Asn1Time;
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, Private, Public};
use openssl::sha::Sha256;
use openssl::x509::X509;

use crate::error::{PkiError, list};
use crate::keys::key_algorithm;
use crate::sct::{Sct, verify_scts};

/// The certificates that a server sends, the key they speak for, and what a
/// client needs to verify them.
#[derive(Clone, Debug)]
pub struct Chain {
    certificates: Vec<X509>,
    root: X509,
    key: PKey<Private>,
    server_name: String,
    logs: Vec<PKey<Public>>,
    certificate_message_bytes: usize,
    digest: String,
    notes: Vec<Note>,
}

/// What there is to say of a user's own chain. The text follows its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Its file ends in its root.
    RootInFile {
        /// Bytes of the Certificate message if that were sent.
        with_root: usize,
    },
    /// What clients trust was found.
    RootBeside(PathBuf),
    /// A server sends certificates that are no part of its chain.
    Others {
        /// Which, counted from 1.
        numbers: Vec<usize>,
    },
    /// Its file holds more than is read.
    LeftOut {
        /// What its blocks say they are, or in which lines they begin.
        what: Vec<String>,
    },
    /// Servers and browsers have no TLS 1.3 with its key.
    KeyRefused {
        /// The algorithm of its key.
        key: String,
        /// Why, and what they take.
        why: &'static str,
    },
    /// It has a proof of inclusion in a log instead of a signature.
    MerkleTree,
    /// The kept one could not be used, and a new one was made, with new keys.
    Replaced {
        /// Why.
        why: Unusable,
        /// Where the kept one is now.
        aside: PathBuf,
    },
    /// Something like it is measured.
    StandIn(Missing),
    /// What is measured in its place is valid for longer.
    Extended {
        /// The certificates that are not valid, counted from 1.
        numbers: Vec<usize>,
    },
}

/// Why a chain that was kept can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Its files are not what was written.
    Damaged,
    /// It is not valid now and for another day.
    OutOfTime,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unusable::Damaged => "damaged",
            Unusable::OutOfTime => "not valid for another day by this machine's clock",
        })
    }
}

/// What a chain lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The end-entity's private key.
    Key,
    /// What clients trust.
    Root,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::Key => "private key",
            Missing::Root => "root",
        })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::RootInFile { with_root } => write!(
                f,
                ": the root is in the file, and is not sent (root=sent has it sent: {with_root} B)"
            ),
            Note::RootBeside(path) => write!(
                f,
                ", which does not end in its root: clients trust the one beside it, {}",
                path.display()
            ),
            Note::Others { numbers } => write!(
                f,
                " sends certificate {} besides its chain, which is measured so",
                list(numbers)
            ),
            Note::LeftOut { what } => write!(
                f,
                ": not read, and left out as OpenSSL leaves it out: {}",
                what.join(", ")
            ),
            Note::KeyRefused { key, why } => write!(
                f,
                " has a key {key}, with which servers and browsers have no TLS 1.3: {why}"
            ),
            Note::MerkleTree => f.write_str(
                " is a Merkle Tree Certificate, which has a proof in place of an issuer's signature: only clients that take \
                 such ones can verify it, and it is calculated as a plain certificate of its size; delivery=mtc-landmark and \
                 delivery=mtc-standalone have such deliveries",
            ),
            Note::Replaced { why, aside } => write!(
                f,
                ": the chain that was kept is {why}, and a new one was made, with new keys; the old one is in {aside:?}"
            ),
            Note::StandIn(missing) => {
                write!(
                    f,
                    " (no {missing} here): measured with a stand-in of the same names, sizes, algorithms and extensions"
                )
            }
            Note::Extended { numbers } => {
                let numbers = list(numbers);
                write!(
                    f,
                    ": certificate {numbers} is not valid today; its stand-in is"
                )
            }
        }
    }
}

impl Chain {
    pub(crate) fn new(
        certificates: Vec<X509>,
        root: X509,
        key: PKey<Private>,
        server_name: String,
    ) -> Result<Chain, ErrorStack> {
        let mut lengths = Vec::new();
        let mut hash = Sha256::new();
        for certificate in &certificates {
            let der = certificate.to_der()?;
            lengths.push(der.len());
            hash.update(&der);
        }
        Ok(Chain {
            certificates,
            root,
            key,
            server_name,
            logs: Vec::new(),
            certificate_message_bytes: framing::certificate_message(lengths),
            digest: hex::encode(hash.finish()),
            notes: Vec::new(),
        })
    }

    /// The same chain, with more to say of it.
    pub(crate) fn with_notes(mut self, notes: impl IntoIterator<Item = Note>) -> Chain {
        self.notes.extend(notes);
        self
    }

    /// What there is to say of it, if it is a user's own.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The certificates as sent, the end-entity first; the root is among them
    /// only if it is sent.
    pub fn certificates(&self) -> &[X509] {
        &self.certificates
    }

    /// From when on all of its certificates are valid, the root included, since 1970. Zero for
    /// those of before.
    pub fn valid_from(&self) -> Duration {
        let epoch = Asn1Time::from_unix(0);
        let since_epoch = |certificate: &X509| {
            let after = epoch.as_ref().ok()?.diff(certificate.not_before()).ok()?;
            let seconds = i64::from(after.days) * 86_400 + i64::from(after.secs);
            u64::try_from(seconds).ok()
        };
        let all = self.certificates.iter().chain([&self.root]);
        Duration::from_secs(all.filter_map(since_epoch).max().unwrap_or(0))
    }

    /// The signature algorithms that whoever sends or verifies the chain needs and OpenSSL has no
    /// TLS for.
    pub fn provided_signatures(&self) -> Vec<&'static TlsSignature> {
        let all = self.certificates.iter().chain([&self.root]);
        let keys = all.filter_map(|certificate| certificate.public_key().ok());
        let mut signatures: Vec<_> = keys
            .filter_map(|key| key_algorithm(&key)?.provided())
            .collect();
        signatures.sort_by_key(|signature| signature.code_point);
        signatures.dedup();
        signatures
    }

    /// The trust anchor.
    pub fn root(&self) -> &X509 {
        &self.root
    }

    /// The end-entity's private key.
    pub fn key(&self) -> &PKey<Private> {
        &self.key
    }

    /// The same chain, for a client that knows these logs.
    pub(crate) fn with_logs(self, logs: Vec<PKey<Public>>) -> Chain {
        Chain { logs, ..self }
    }

    /// The public keys of the logs that the end-entity has SCTs of.
    pub fn logs(&self) -> &[PKey<Public>] {
        &self.logs
    }

    /// Verifies the end-entity's SCTs with the logs that its chain was made with. A chain from a
    /// file has none, so its logs are all unknown.
    ///
    /// # Errors
    ///
    /// Those of [`verify_scts`].
    pub fn scts(&self) -> Result<Vec<Sct>, PkiError> {
        let issuer = self.certificates.get(1).unwrap_or(&self.root);
        match self.certificates.first() {
            Some(end_entity) => verify_scts(end_entity, issuer, &self.logs),
            None => Ok(Vec::new()),
        }
    }

    /// The name that the end-entity certificate is for.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Bytes of the TLS 1.3 Certificate message that carries the certificates,
    /// its 4-byte header included; see [`framing::certificate_message`].
    pub fn certificate_message_bytes(&self) -> usize {
        self.certificate_message_bytes
    }

    /// SHA-256 over the DER of the certificates as sent, in hexadecimal.
    pub fn digest(&self) -> String {
        self.digest.clone()
    }
}
