//! Chains in files: which can be served, and when a change of files is one.
//!
//! A renewal writes two files, each in its own time, and may be seen half-way. So a change counts only when two looks
//! [`INTERVAL`] apart find the same, and what is loaded is what they found.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lastbyte_files::Links;
use lastbyte_pki::is_merkle_tree;
use openssl::error::ErrorStack;
use openssl::sha::sha256;
use openssl::x509::{X509, X509VerifyResult};
use pqtlsad::server::{Chain, ChainError, PublicChain};
use thiserror::Error;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::ServeError;
use super::pem::{self, PemError};

/// How often the files of chains are looked at.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// Larger than any chain that TLS carries, and any key.
const MOST: u64 = 1 << 20;

/// A file that was written within this time before it was read may be written to again without that
/// its times show it.
const SETTLED: Duration = Duration::from_secs(2);

/// A chain that is good for less than this, or for less than a third of its certificate's time, is
/// to be renewed.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// A chain and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFiles {
    /// The end-entity first.
    pub chain: PathBuf,
    /// The end-entity's key.
    pub key: PathBuf,
}

/// Why a chain is not fit to be served.
#[derive(Debug, Error)]
pub enum Unfit {
    /// The file is not whole.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// It is none, or the key is another's.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A certificate does not issue the one before it.
    #[error(
        "certificate {issuer} does not issue certificate {}, the one before it ({reason}): put each after what it signs",
        issuer - 1
    )]
    Unlinked {
        /// Counted from 1, the end-entity.
        issuer: usize,
        /// What does not fit.
        reason: &'static str,
    },
    /// It has a proof of inclusion in a log in place of a signature.
    #[error(
        "certificate {0} is a Merkle Tree Certificate (draft-ietf-plants-merkle-tree-certs), which clients of X.509 chains can't \
         verify: give the X.509 chain that the CA issues besides"
    )]
    MerkleTree(usize),
    /// OpenSSL can't tell.
    #[error("{}", lastbyte_providers::reason(.0))]
    OpenSsl(#[from] ErrorStack),
}

/// Reads a chain as a server takes it.
///
/// # Errors
///
/// If the PEM is not whole, the certificates don't issue one another, or the key is another's.
pub(super) fn parse(chain: &[u8], key: &[u8]) -> Result<Chain, Unfit> {
    let certificates = certificates(chain)?;
    let read = Chain::new(certificates, pem::key(key)?)?;
    linked(read.certificates())?;
    Ok(read)
}

/// Reads a chain as a server takes it, without its key.
///
/// # Errors
///
/// If the PEM is not whole, or no chain.
pub(crate) fn public_chain(chain: &[u8]) -> Result<PublicChain, Unfit> {
    Ok(PublicChain::new(certificates(chain)?)?)
}

/// All that a file holds, each whole.
fn certificates(chain: &[u8]) -> Result<Vec<X509>, Unfit> {
    let chain = &*pem::readable(chain);
    let blocks = pem::certificates(chain)?;
    // OpenSSL's words for these are no help.
    if blocks == 0 {
        return Err(PemError::NoCertificate.into());
    }
    let certificates = X509::stack_from_pem(chain)?;
    let read = certificates.len();
    if read != blocks {
        return Err(PemError::Unread { blocks, read }.into());
    }
    match certificates.iter().position(|one| is_merkle_tree(one)) {
        Some(at) => Err(Unfit::MerkleTree(at + 1)),
        None => Ok(certificates),
    }
}

/// Each has issued the one before it.
fn linked(certificates: &[X509]) -> Result<(), Unfit> {
    for (at, pair) in certificates.windows(2).enumerate() {
        if let [subject, issuer] = pair
            && let Some(reason) = unlinked(subject, issuer)?
        {
            let issuer = at + 2;
            return Err(Unfit::Unlinked { issuer, reason });
        }
    }
    Ok(())
}

/// Why `issuer` has not issued `subject`, if it has not.
fn unlinked(subject: &X509, issuer: &X509) -> Result<Option<&'static str>, ErrorStack> {
    if issuer.issued(subject) != X509VerifyResult::OK {
        return Ok(Some("its name, key identifier or key usage"));
    }
    // What can't be verified at all is reported as what does not verify: the reason is in OpenSSL's
    // queue.
    let key = issuer.public_key()?;
    let is_signed = subject.verify(&key).unwrap_or_default();
    Ok((!is_signed).then_some("its signature"))
}

/// A warning of a chain's age, if there is one.
pub(super) fn ageing(chain: &PublicChain, now: SystemTime) -> Option<String> {
    const DAY: u64 = 24 * 3600;
    let until = chain.valid_until();
    let of = chain.names().first().map_or("no name", String::as_str);
    let Ok(left) = until.duration_since(now) else {
        return Some(format!(
            "the chain for {of} has expired: clients refuse it until it is renewed"
        ));
    };
    let lifetime = lifetime(chain).unwrap_or(Duration::MAX);
    let left_days = left.as_secs() / DAY;
    (left < SOON.min(lifetime / 3)).then(|| match left_days {
        0 => format!("the chain for {of} expires in less than a day"),
        1 => format!("the chain for {of} expires in a day"),
        _ => format!("the chain for {of} expires in {left_days} days"),
    })
}

/// How clients are served that can't verify what a post-quantum key signs.
pub(super) const CLASSICAL_HINT: &str =
    "give it an ECDSA chain, too, with another --chain and --key";

/// Warnings of names that have chains of post-quantum keys alone, a line each.
pub(super) fn unverifiable(chains: &[&PublicChain]) -> Vec<String> {
    let mut reported: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for chain in chains {
        // One of its names is enough: they are of one server.
        let alone = chain.names().iter().find_map(|name| {
            let of_name = chains.iter().copied().filter(|chain| chain.is_for(name));
            Some((name.as_str(), post_quantum_alone(of_name)?))
        });
        let Some((name, algorithms)) = alone.filter(|(name, _)| !reported.contains(name)) else {
            continue;
        };
        reported.push(name);
        lines.push(format!(
            "{name} has no chain but of {algorithms}, which many clients can't verify, browsers among them: they get an \
             alert; {CLASSICAL_HINT}"
        ));
    }
    lines
}

/// The algorithms of these chains' keys, if there are chains and none has a key that every client
/// of TLS 1.3 can verify.
pub(super) fn post_quantum_alone<'a>(
    chains: impl Iterator<Item = &'a PublicChain>,
) -> Option<String> {
    let mut names = Vec::new();
    for chain in chains {
        if chain.is_classical() {
            return None;
        }
        if !names.contains(&chain.key_algorithm()) {
            names.push(chain.key_algorithm());
        }
    }
    (!names.is_empty()).then(|| names.join(" and "))
}

/// What the end-entity's certificate is good for, from its first second to its last.
fn lifetime(chain: &PublicChain) -> Option<Duration> {
    let end_entity = chain.end_entity();
    let until = end_entity.not_before().diff(end_entity.not_after()).ok()?;
    let days = u64::try_from(until.days).ok()?;
    let seconds = u64::try_from(until.secs).ok()?;
    Some(Duration::from_secs(days * 24 * 3600 + seconds))
}

/// Of a chain's file and of its key's: SHA-256 of what it holds, or else of the words for why it
/// can't be read.
type Look = [Result<[u8; 32], [u8; 32]>; 2];

/// A chain, and what its files held when it was loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) chain: Chain,
    look: Look,
}

/// What keeps files from being served.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) first: ServeError,
    /// Of the file that can be read where the other one can't, or of that one.
    pub(super) second: Option<ServeError>,
}

/// Reads what can be served.
pub(super) fn load(files: &ChainFiles) -> Result<Loaded, ServeError> {
    inspect(files).map_err(|wrong| wrong.first)
}

/// Reads what can be served, or tells what is wrong: with either file, where the other one can't be
/// read.
pub(super) fn inspect(files: &ChainFiles) -> Result<Loaded, Box<Wrong>> {
    let wrong = |first, second| Box::new(Wrong { first, second });
    let unfit = |error| ServeError::Chain {
        files: files.clone(),
        error,
    };
    let [chain, key] = [&files.chain, &files.key].map(|file| {
        read(file).map_err(|error| ServeError::Read {
            file: file.clone(),
            error,
        })
    });
    match (chain, key) {
        (Ok(chain), Ok(key)) => Ok(Loaded {
            chain: parse(&chain, &key).map_err(|error| wrong(unfit(error), None))?,
            look: [&chain, &key].map(|content| Ok(sha256(content))),
        }),
        (Ok(chain), Err(error)) => {
            let alone = certificates(&chain).and_then(|read| linked(&read));
            Err(wrong(error, alone.err().map(unfit)))
        }
        (Err(error), Ok(key)) => {
            let alone = pem::key(&key).err();
            Err(wrong(error, alone.map(|error| unfit(error.into()))))
        }
        (Err(first), Err(second)) => Err(wrong(first, Some(second))),
    }
}

/// Reads a file that may hold a key.
fn read(file: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    lastbyte_files::read_regular(file, MOST, Links::Followed).map(Zeroizing::new)
}

/// A chain whose files are followed.
#[derive(Debug)]
pub(super) struct Followed {
    files: ChainFiles,
    watched: [Watched; 2],
    loaded: Look,
    /// What was found that is not loaded, and when it was found first.
    changed: Option<(Look, Instant)>,
    /// What can't be served, and was reported.
    refused: Option<Look>,
}

/// What a look at a chain's files comes to.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing is to be done.
    Same,
    /// Whether this lasts shows with the next look.
    Waiting,
    /// Another chain is to be served.
    Changed(Chain),
    /// What is there can't be served.
    Refused(ServeError),
}

/// Whether files are loaded that have not changed, and whether what is wrong with them is reported
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Always,
    IfChanged,
}

impl Followed {
    pub(super) fn new(files: &ChainFiles, loaded: &Loaded) -> Followed {
        Followed {
            watched: [&files.chain, &files.key].map(|file| Watched::new(file)),
            files: files.clone(),
            loaded: loaded.look,
            changed: None,
            refused: None,
        }
    }

    pub(super) fn look(&mut self, reading: Reading, now: Instant, time: SystemTime) -> Step {
        let words = |error: io::Error| sha256(error.to_string().as_bytes());
        let look = (self.watched.each_mut()).map(|file| file.look(time).map_err(words));
        if reading == Reading::IfChanged {
            if look == self.loaded {
                (self.changed, self.refused) = (None, None);
                return Step::Same;
            }
            if Some(look) == self.refused {
                return Step::Same;
            }
        }
        match self.changed {
            Some((found, since)) if found == look => {
                if now.saturating_duration_since(since) < INTERVAL {
                    return Step::Waiting;
                }
            }
            _ => {
                self.changed = Some((look, now));
                return Step::Waiting;
            }
        }
        match load(&self.files) {
            Ok(loaded) if loaded.look == look => {
                self.loaded = look;
                (self.changed, self.refused) = (None, None);
                Step::Changed(loaded.chain)
            }
            Ok(loaded) => {
                self.changed = Some((loaded.look, now));
                Step::Waiting
            }
            Err(error) => {
                self.changed = None;
                self.refused = Some(look);
                Step::Refused(error)
            }
        }
    }

    /// What still can't be served, if anything is wrong.
    pub(super) fn still_refused(&self) -> Option<ServeError> {
        let is_refused = self.refused.is_some();
        is_refused.then(|| load(&self.files).err()).flatten()
    }
}

/// A file, and what it held when it was read last.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    last: Option<(Stat, [u8; 32])>,
}

/// What tells that a file was written to or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Watched {
    fn new(path: &Path) -> Watched {
        Watched {
            path: path.to_owned(),
            last: None,
        }
    }

    /// The digest of what it holds. It is read only where something says that it may be another
    /// than before.
    fn look(&mut self, now: SystemTime) -> io::Result<[u8; 32]> {
        let stat = Stat::of(&self.path)?;
        match self.last {
            Some((last, digest)) if last == stat => return Ok(digest),
            _ => self.last = None,
        }
        let digest = sha256(&read(&self.path)?);
        if stat.is_settled(now) {
            self.last = Some((stat, digest));
        }
        Ok(digest)
    }
}

impl Stat {
    fn of(path: &Path) -> io::Result<Stat> {
        let metadata = path.metadata()?;
        Ok(Stat {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Whether its times are those of its last byte: the next one would have other times.
    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().saturating_sub(SETTLED).as_secs();
        let latest = self.modified.0.max(self.changed.0);
        u64::try_from(latest).unwrap_or_default() < now
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
