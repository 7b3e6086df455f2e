//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_sizes::{ChainError, KeyAlgorithm};
use openssl::error::ErrorStack;
use thiserror::Error;

use crate::anatomy::DerError;
use crate::cache;
use crate::container::Container;

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
        "can't write \"{}\": {source}; {hint}",
        path.display()
    )]
    Store {
        /// The file or folder in the way.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
        /// What mends it.
        hint: &'static str,
    },
    /// A chain is missing, or is about to expire, in a folder in which none is made.
    #[error(
        "\"{}\" has no chain {what} that this user can read and that is valid for another day: let it be read, or make its chains \
         with `lastbyte run STUDY.toml --prepare`, before any shard",
        folder.display()
    )]
    Sealed {
        /// Which chain.
        what: String,
        /// The folder.
        folder: PathBuf,
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
    #[error("OpenSSL: {}", lastbyte_providers::reason(.0))]
    OpenSsl(#[from] ErrorStack),
}

impl PkiError {
    /// The same of a user's own file, which it names.
    pub(crate) fn of_file(self, path: &Path) -> PkiError {
        match self {
            PkiError::OpenSsl(stack) => PkiError::pem(path, PemProblem::Unusable(stack)),
            other => other,
        }
    }

    pub(crate) fn pem(path: &Path, problem: PemProblem) -> PkiError {
        let path = path.to_owned();
        PkiError::Pem { path, problem }
    }

    /// That a folder in which chains are kept can't be written.
    pub(crate) fn store(path: impl Into<PathBuf>, source: io::Error) -> PkiError {
        let path = path.into();
        let is_in_cache = cache::folder().is_some_and(|cache| path.starts_with(cache));
        PkiError::Store {
            hint: if is_in_cache {
                "set LASTBYTE_CACHE to a folder that can be written"
            } else {
                "name a folder that can be written"
            },
            path,
            source,
        }
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
    /// There is nothing in it.
    #[error("is empty: write certificates in PEM into it, the end-entity's first")]
    Empty,
    /// It is to be sent with its root.
    #[error(
        "does not end in its root, which root=sent has sent: write the root at its end, or leave root=sent out"
    )]
    NoRootToSend,
    /// It has no PEM block.
    #[error("is not PEM: no line of it is \"-----BEGIN CERTIFICATE-----\"")]
    NotPem,
    /// It has 16 bits a letter.
    #[error(
        "is UTF-16, which no server reads: convert it with \"iconv -f UTF-16 -t UTF-8 FILE > FILE.pem\""
    )]
    Utf16,
    /// Its lines have no line feed.
    #[error(
        "has lines that end in a carriage return alone, which no server reads: convert it with \"tr '\\r' '\\n' < FILE > FILE.pem\""
    )]
    CarriageReturns,
    /// It is in the binary form.
    #[error("{}", .0.remedy())]
    Binary(Container),
    /// It has PEM blocks of other kinds only.
    #[error("holds no certificate, only {label:?}{}", of_label(label))]
    NoCertificate {
        /// What the first block says it is.
        label: String,
    },
    /// A block has no last line.
    #[error(
        "is cut: the block {label:?} that begins in line {line} has no line \"-----END {label}-----\""
    )]
    Cut {
        /// What the block says it is.
        label: String,
        /// Where it begins, from 1 on.
        line: usize,
    },
    /// A block that should be a certificate isn't one.
    #[error("holds a certificate that is damaged: {}", reason(.0))]
    BadCertificate(ErrorStack),
    /// The file named as the key's holds none.
    #[error("holds no private key")]
    NoKey,
    /// The file named as the key's, or the one beside the chain, holds a key in a form that TLS has
    /// no use for.
    #[error(
        "holds only a key under {label:?}, which OpenSSL does not read: write it as \"PRIVATE KEY\" (PKCS #8)"
    )]
    UnknownKeyFormat {
        /// What its block says it is.
        label: String,
    },
    /// No signature scheme of TLS 1.3 is for the end-entity's key.
    #[error(
        "has a key {key} in its first certificate, with which no server here can sign in TLS 1.3, so the size of its \
         CertificateVerify is not known: \"lastbyte chain show FILE\" has the sizes of its certificates"
    )]
    CannotSign {
        /// The algorithm of its key.
        key: String,
    },
    /// OpenSSL does not know a certificate's key.
    #[error(
        "has a key {key} in its certificate {number}, which OpenSSL does not know, so that no client here can verify \
         the chain: \"lastbyte explain\" calculates with its sizes"
    )]
    UnreadableKey {
        /// Which certificate.
        number: usize,
        /// The algorithm of its key.
        key: String,
    },
    /// A certificate's key is of a kind that is not made, so nothing can stand in for it.
    #[error(
        "has a key {key} in its certificate {number}, and Lastbyte makes none to stand in for it: name its private key \
         with key= and its root with ca="
    )]
    UnknownKey {
        /// Which certificate.
        number: usize,
        /// The algorithm of its key.
        key: String,
    },
    /// A certificate's signature is of a kind that is not made, so nothing can stand in for it.
    #[error(
        "has a signature {signature} on its certificate {number}, and Lastbyte makes none to stand in for it: name its \
         private key with key= and its root with ca="
    )]
    UnknownSignature {
        /// Which certificate.
        number: usize,
        /// The algorithm of its signature.
        signature: String,
    },
    /// It has a proof of inclusion in a log instead of a signature.
    #[error(
        "holds a Merkle Tree Certificate, which has a proof in place of an issuer's signature, and is in no chain: measure \
         such ones with delivery=mtc-landmark or delivery=mtc-standalone, and verify this one with \"lastbyte mtc verify\""
    )]
    MerkleTree,
    /// OpenSSL does not do with it what it does with others.
    #[error("can't be used ({}): look for what it has and others have not with \"openssl x509 -noout -text -in FILE\"", lastbyte_providers::reason(.0))]
    Unusable(ErrorStack),
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
    /// The certificates are those of a chain, in another order.
    #[error(
        "is out of order: its leaf is certificate {leaf} ({subject}); put its certificates in the order {}",
        list(order)
    )]
    Disorder {
        /// Which certificate is the end-entity's.
        leaf: usize,
        /// Whom that is for.
        subject: String,
        /// All of them in the order that they should have.
        order: Vec<usize>,
    },
    /// A certificate has no part in the chain.
    #[error(
        "has a certificate that signed none of the others: leave out certificate {number} ({subject})"
    )]
    Stranger {
        /// Which certificate.
        number: usize,
        /// Whom it is for.
        subject: String,
    },
    /// A certificate is there twice.
    #[error("has the same certificate twice: leave out certificate {number} ({subject})")]
    Doubled {
        /// Which certificate.
        number: usize,
        /// Whom it is for.
        subject: String,
    },
    /// A server's chain has not been fetched.
    #[error(
        "is a server that has not been asked for its chain: name it on the command line, or a PEM file"
    )]
    NotFetched,
    /// The chain ends in a root that the client does not trust.
    #[error("ends in a root, {root}, that is not in \"{}\": clients that trust those do not trust it", anchors.display())]
    UnknownRoot {
        /// Whose root.
        root: String,
        /// What the client trusts.
        anchors: PathBuf,
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
    /// A certificate is missing between the others and the root at the end.
    #[error(
        "lacks the issuer of its certificate {number}, {issuer}: put its certificate before the root's, which did not \
         issue that"
    )]
    Gap {
        /// Which certificate.
        number: usize,
        /// Who issued it.
        issuer: String,
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
    /// What stands in for the chain is not fit for TLS, so neither is the chain.
    #[error("is no chain that a client would take: certificate {number}: {reason}")]
    Unfit {
        /// Which certificate.
        number: u32,
        /// What OpenSSL says.
        reason: &'static str,
    },
    /// The end-entity certificate names no server.
    #[error("names no server: its first certificate has no DNS name and no common name")]
    NoName,
}

pub(crate) fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

/// What went wrong first, without OpenSSL's codes and source lines.
fn reason(stack: &ErrorStack) -> &str {
    let first = stack.errors().first();
    first
        .and_then(|error| error.reason())
        .unwrap_or("unknown reason")
}

/// What to do about a PEM block that holds no certificate as it is.
fn of_label(label: &str) -> &'static str {
    match label {
        "PKCS7" | "CMS" | "PKCS #7 SIGNED DATA" => {
            ": convert it with \"openssl pkcs7 -print_certs -in FILE -out FILE.pem\""
        }
        "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST" => {
            ": name the file that the CA has sent for it"
        }
        _ => "",
    }
}
