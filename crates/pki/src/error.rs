//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_sizes::{ChainError, KeyAlgorithm};
use openssl::error::ErrorStack;
use thiserror::Error;

use crate::anatomy::DerError;

/// Why there is no chain.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PkiError {
    /// No such chain can be made.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// Chance withheld a signature of the usual length. Not known to happen.
    #[error("{attempts} {algorithm} signatures in a row had an unusual length; try again")]
    SignatureLength {
        /// The algorithm of the signing key.
        algorithm: KeyAlgorithm,
        /// Signatures made.
        attempts: u32,
    },
    /// The folder where chains are kept can't be written.
    #[error(
        "can't write \"{}\": {source}; set LASTBYTE_CACHE to a folder that can be written",
        path.display()
    )]
    Store {
        /// The file or folder in the way.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no home folder to keep chains in.
    #[error("no home folder to keep chains in; set LASTBYTE_CACHE to a folder that can be written")]
    NoHome,
    /// A user's own chain can't be used.
    #[error("\"{}\" {problem}", path.display())]
    Pem {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong with it.
        problem: PemProblem,
    },
    /// A certificate has an extension for SCTs and something else in it.
    #[error("the certificate's list of SCTs is damaged: issue it anew")]
    SctList,
    /// A certificate can't be taken apart.
    #[error(transparent)]
    Der(#[from] DerError),
    /// OpenSSL failed at what should not fail.
    #[error("OpenSSL: {0}")]
    OpenSsl(#[from] ErrorStack),
}

impl PkiError {
    pub(crate) fn pem(path: &Path, problem: PemProblem) -> PkiError {
        let path = path.to_owned();
        PkiError::Pem { path, problem }
    }
}

/// What is wrong with a PEM file. Certificates are numbered from 1, the first
/// of the file; the text follows the file's name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PemProblem {
    /// It isn't there, or may not be read.
    #[error("can't be read: {0}")]
    Unreadable(io::Error),
    /// It has no PEM block.
    #[error("is not PEM: no line of it is \"-----BEGIN CERTIFICATE-----\"")]
    NotPem,
    /// It is in the binary form.
    #[error("is DER, not PEM: convert it with \"openssl x509 -inform der -in FILE -out FILE.pem\"")]
    Der,
    /// It has PEM blocks of other kinds only.
    #[error("holds no certificate, but a {label}")]
    NoCertificate {
        /// What the first block says it is.
        label: String,
    },
    /// A block that should be a certificate isn't one.
    #[error("holds a certificate that is damaged: {}", reason(.0))]
    BadCertificate(ErrorStack),
    /// The file named as the key's holds none.
    #[error("holds no private key")]
    NoKey,
    /// No file was named as the key's, and none was found.
    #[error(
        "holds no private key, and neither does \"privkey.pem\" or \"key.pem\" beside it: \
         name its file with key="
    )]
    NoKeyAnywhere,
    /// Its end-entity's key is of a kind that no chain is made with.
    #[error(
        "has a key of a kind that Lastbyte makes no chains with: name its private key with key="
    )]
    UnknownKey,
    /// The private key needs a passphrase.
    #[error("holds an encrypted key: decrypt it with \"openssl pkey -in FILE -out key.pem\"")]
    EncryptedKey,
    /// The private key can't be decoded.
    #[error("holds a private key that is damaged or of an unknown kind: {}", reason(.0))]
    BadKey(ErrorStack),
    /// The key belongs to another certificate.
    #[error(
        "holds another key than that of the first certificate in \"{}\": name the right file \
         with key=",
        certificates.display()
    )]
    KeyMismatch {
        /// Where the certificate is.
        certificates: PathBuf,
    },
    /// A certificate's time is over.
    #[error("is out of date: its certificate {number} expired on {on}")]
    Expired {
        /// Which certificate.
        number: usize,
        /// When, as OpenSSL writes it.
        on: String,
    },
    /// A certificate's time has not come.
    #[error("can't be used yet: its certificate {number} is not valid until {until}")]
    NotYetValid {
        /// Which certificate.
        number: usize,
        /// When, as OpenSSL writes it.
        until: String,
    },
    /// A certificate is not issued by the one after it.
    #[error(
        "is a broken chain: its certificate {number} ({subject}) is not issued by the next one; \
         put the certificate of {issuer} there"
    )]
    Broken {
        /// Which certificate.
        number: usize,
        /// Whom it is for.
        subject: String,
        /// Who issued it.
        issuer: String,
    },
    /// Nothing says what a client trusts.
    #[error(
        "does not end in a self-signed certificate: name the file of its root with ca=, as in {example}"
    )]
    NoAnchor {
        /// The chain with its root, as in an arm.
        example: String,
    },
    /// The chain stops before it reaches what the client trusts.
    #[error(
        "lacks the issuer of its certificate {number}, {issuer}, which is not in \"{}\" either: \
         add it, or name the file that holds it with ca=",
        anchors.display()
    )]
    NoIssuer {
        /// Which certificate.
        number: usize,
        /// Who issued it.
        issuer: String,
        /// Where the trust anchors are.
        anchors: PathBuf,
    },
    /// The chain is not fit for TLS.
    #[error(
        "does not verify against \"{}\": certificate {number}: {reason}",
        anchors.display()
    )]
    Unverified {
        /// Which certificate.
        number: u32,
        /// What OpenSSL says.
        reason: &'static str,
        /// Where the trust anchors are.
        anchors: PathBuf,
    },
    /// The end-entity certificate names no server.
    #[error("names no server: its first certificate has no DNS name and no common name")]
    NoName,
}

/// What went wrong first, without OpenSSL's codes and source lines.
fn reason(stack: &ErrorStack) -> &str {
    let first = stack.errors().first();
    first
        .and_then(|error| error.reason())
        .unwrap_or("unknown reason")
}
