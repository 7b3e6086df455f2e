//! What outlives a server: the chains that it sends and sent, in a folder.
//!
//! Resolvers hold records of those for their TTL, and clients who have them are signed for with
//! their keys. So the keys are kept with them, each chain in a file that only its owner reads, and
//! no longer than it is good for.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_files::{Draft, Links};
use nix::unistd::geteuid;
use openssl::error::ErrorStack;
use pqtlsad::server::{Chain, Chains};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{ServeError, chains};

/// Larger than any chain with its key.
const MOST: u64 = 2 << 20;

/// The first line of a chain's file: it was sent when the file was written.
const CURRENT: &str = "current";

/// The first line of a chain's file, with seconds since 1970: it had been replaced.
const UNTIL: &str = "until ";

/// A folder for chains.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
}

/// What a folder held.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// Each with the end of its time, where it had been replaced.
    pub(super) chains: Vec<(Chain, Option<SystemTime>)>,
    /// Files that are no use, and why.
    pub(super) useless: Vec<String>,
}

impl State {
    /// This folder, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// If it can't be written to, or others can write to it.
    pub fn open(folder: &Path) -> Result<State, ServeError> {
        let wrong = |error| ServeError::State {
            folder: folder.to_owned(),
            error,
        };
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.map_err(wrong)?;
        let is_safe = folder
            .metadata()
            .and_then(|metadata| is_safe(&metadata, geteuid().as_raw()));
        is_safe.map_err(wrong)?;
        let state = State {
            folder: folder.to_owned(),
        };
        // What can't be written later is found now.
        Draft::new(&folder.join("draft")).map_err(wrong)?;
        Ok(state)
    }

    /// Whether the folder could be opened, without that it is made. For root, who may become
    /// somebody else first, its owner is not looked at.
    ///
    /// # Errors
    ///
    /// As [`State::open`].
    pub(super) fn check(folder: &Path) -> Result<(), ServeError> {
        let wrong = |error| ServeError::State {
            folder: folder.to_owned(),
            error,
        };
        let found = folder.ancestors().find_map(|above| {
            let above = if above == Path::new("") {
                Path::new(".")
            } else {
                above
            };
            match above.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                found => Some((above, found)),
            }
        });
        let Some((above, found)) = found else {
            return Ok(());
        };
        let found = found.map_err(wrong)?;
        if !found.is_dir() {
            return Err(wrong(io::ErrorKind::NotADirectory.into()));
        }
        if above == folder {
            let owner = if geteuid().is_root() {
                found.uid()
            } else {
                geteuid().as_raw()
            };
            is_safe(&found, owner).map_err(wrong)?;
        }
        // Where nothing can be made, as in /proc, permissions may say otherwise.
        Draft::new(&above.join("draft")).map(drop).map_err(wrong)
    }

    /// Reads what is there and still good. What is not is removed.
    pub(super) fn load(&self, now: SystemTime) -> Result<Stored, ServeError> {
        self.read(now).map_err(|error| ServeError::State {
            folder: self.folder.clone(),
            error,
        })
    }

    fn read(&self, now: SystemTime) -> io::Result<Stored> {
        let mut stored = Stored::default();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if !is_own(&path) {
                continue;
            }
            match read(&path) {
                Ok((_, Some(until))) if until <= now => {
                    if let Err(error) = fs::remove_file(&path) {
                        stored
                            .useless
                            .push(format!("can't remove \"{}\": {error}", path.display()));
                    }
                }
                Ok(chain) => stored.chains.push(chain),
                Err(reason) => {
                    stored
                        .useless
                        .push(format!("\"{}\" is not used: {reason}", path.display()));
                }
            }
        }
        Ok(stored)
    }

    /// Has the folder hold these chains and no others. One file that can't be written or removed
    /// keeps none of the others from that.
    pub(super) fn save(&self, chains: &Chains) -> io::Result<()> {
        let current = chains.current().iter().map(|chain| (&**chain, None));
        let previous = chains.previous().map(|(chain, until)| (chain, Some(until)));
        let mut wanted = Vec::new();
        let mut failed = Vec::new();
        let mut tell = |path: &Path, done: io::Result<()>| {
            if let Err(error) = done {
                failed.push(format!("\"{}\": {error}", path.display()));
            }
        };
        for (chain, until) in current.chain(previous) {
            let path = self.folder.join(format!("{}.pem", chain.digest()));
            let first = first_line(until);
            if !holds(&path, &first) {
                tell(&path, write(&path, &first, chain));
            }
            wanted.push(path);
        }
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if is_own(&path) && !wanted.contains(&path) {
                tell(&path, fs::remove_file(&path));
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(io::Error::other(failed.join("; ")))
        }
    }
}

/// Whether nobody else can put chains into a folder, or take them out.
fn is_safe(folder: &Metadata, owner: u32) -> io::Result<()> {
    const OTHERS_WRITE: u32 = 0o022;
    let refused = |problem| Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    if folder.uid() != owner {
        return refused("it is another user's: name one of this server's user (chown)");
    }
    match folder.mode() & OTHERS_WRITE {
        0 => Ok(()),
        _ => refused("others can write to it: it is for its owner alone (chmod 700)"),
    }
}

/// Whether a chain's file is our own and begins with this line. Nothing else of it can change: its
/// name is its digest.
fn holds(path: &Path, first: &str) -> bool {
    const OTHERS: u32 = 0o077;
    let is_ours = path.symlink_metadata().is_ok_and(|found| {
        found.is_file() && found.uid() == geteuid().as_raw() && found.mode() & OTHERS == 0
    });
    let content = || lastbyte_files::read_regular(path, MOST, Links::Refused).map(Zeroizing::new);
    is_ours && content().is_ok_and(|content| content.starts_with(first.as_bytes()))
}

/// A digest in hexadecimal, and `.pem`.
fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let digest = name.and_then(|name| name.strip_suffix(".pem"));
    digest.is_some_and(|digest| {
        digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn first_line(until: Option<SystemTime>) -> String {
    match until {
        None => format!("{CURRENT}\n"),
        Some(until) => {
            let until = until.duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{UNTIL}{}\n", until.as_secs())
        }
    }
}

fn write(path: &Path, first: &str, chain: &Chain) -> io::Result<()> {
    let key = lastbyte_providers::private_key_pem(chain.key()).map_err(of_openssl)?;
    let key = Zeroizing::new(key);
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        fs::remove_file(path)?;
    }
    let mut draft = Draft::new(path)?;
    let file = draft.file();
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(first.as_bytes())?;
    for certificate in chain.certificates() {
        file.write_all(&certificate.to_pem().map_err(of_openssl)?)?;
    }
    file.write_all(&key)?;
    draft.keep()
}

fn of_openssl(error: ErrorStack) -> io::Error {
    io::Error::other(lastbyte_providers::reason(&error))
}

/// Why a file of a chain is not used.
#[derive(Debug, Error)]
enum Useless {
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error("it holds another chain than its name says")]
    Name,
    #[error("its first line says neither \"current\" nor until when")]
    FirstLine,
    #[error("{0}")]
    Chain(#[source] chains::Unfit),
}

fn read(path: &Path) -> Result<(Chain, Option<SystemTime>), Useless> {
    let content = lastbyte_files::read_regular(path, MOST, Links::Refused).map(Zeroizing::new);
    let (chain, until) = parse(&content?)?;
    let name = format!("{}.pem", chain.digest());
    if path.ends_with(&name) {
        Ok((chain, until))
    } else {
        Err(Useless::Name)
    }
}

fn parse(content: &[u8]) -> Result<(Chain, Option<SystemTime>), Useless> {
    let end = content.iter().position(|byte| *byte == b'\n');
    let first = content.get(..end.unwrap_or(0)).unwrap_or_default();
    let first = std::str::from_utf8(first).unwrap_or_default();
    let time = |seconds: &str| {
        let seconds = Duration::from_secs(seconds.parse().ok()?);
        UNIX_EPOCH.checked_add(seconds)
    };
    let until = match first.strip_prefix(UNTIL).map(time) {
        Some(Some(until)) => Some(until),
        None if first == CURRENT => None,
        _ => return Err(Useless::FirstLine),
    };
    let chain = chains::parse(content, content).map_err(Useless::Chain)?;
    Ok((chain, until))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
