//! A CA in a folder: its certificate and key, those of its mirrors, and its log.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_mtc::issue::cosign;
use lastbyte_mtc::log::{Log, LogReader};
use lastbyte_mtc::mirror::{Mirror, Seen};
use lastbyte_mtc::note::NoteSigner;
use lastbyte_mtc::openssl::{PublicKey, SigningKey};
use lastbyte_mtc::pem::{self, CERTIFICATE, PUBLIC_KEY};
use lastbyte_mtc::{
    CaCertificate, Cosignature, Group, HashValue, LogId, LogNumber, RelyingParty,
    SignatureAlgorithm, Subtree, TrustAnchorId, TrustedAuthority, UnixTime, Validity,
};

use super::files::{
    create_folder, read_certificate, read_file, read_key, read_public_key, refuse_taken,
    write_file, write_private,
};
use super::{DAY, now};
use crate::{Failure, print};

/// What c2sp.org/mtc-tlog asks of all cosigners.
const COSIGNER_ALGORITHM: SignatureAlgorithm = SignatureAlgorithm::MlDsa44;
const CA_FILE: &str = "ca.pem";
const KEY_FILE: &str = "ca-key.pem";
/// What is served: each log under its number.
const SERVED: &str = "served";
/// The most landmarks that a client holds: hourly ones of 47 days, and some.
const MAX_LANDMARKS: usize = 2000;
const VALID_FOR: Duration = Duration::from_secs(3650 * DAY.as_secs());

/// A CA with its private keys and its log, to add to.
pub(super) struct Ca {
    key: SigningKey,
    mirrors: Vec<FiledMirror>,
    pub(super) log: Log,
}

/// What everybody may know of a CA: its certificate, the public keys of its mirrors, and its log, to read.
pub(super) struct PublicParts {
    certificate: CaCertificate,
    /// As a SubjectPublicKeyInfo in DER.
    mirrors: Vec<(TrustAnchorId, Vec<u8>)>,
    pub(super) log: LogReader,
}

/// A mirror whose key and memory are files.
struct FiledMirror {
    mirror: Mirror<SigningKey>,
    seen: PathBuf,
}

fn mirror_key(folder: &Path, id: &TrustAnchorId) -> PathBuf {
    folder.join(format!("mirror-{id}-key.pem"))
}

fn mirror_public_key(folder: &Path, id: &TrustAnchorId) -> PathBuf {
    folder.join(format!("mirror-{id}.pem"))
}

pub(super) fn make_ca(
    folder: &Path,
    id: TrustAnchorId,
    mirrors: Vec<TrustAnchorId>,
) -> Result<(), Failure> {
    LogId::new(id.clone(), LogNumber::FIRST).map_err(Failure::usage)?;
    if mirrors.contains(&id) {
        let message = "a mirror needs another identifier than the CA";
        return Err(Failure::usage(message));
    }
    if folder.join(CA_FILE).exists() {
        let message = format!("there is a CA in \"{}\" already", folder.display());
        return Err(Failure::Usage(message));
    }
    for (at, mirror) in mirrors.iter().enumerate() {
        if mirrors[..at].contains(mirror) {
            let message = format!("--mirror {mirror} is given twice: leave one out");
            return Err(Failure::Usage(message));
        }
    }
    create_folder(folder)?;
    // Of one that was not finished: none of its mirrors is this one's.
    refuse_taken(&folder.join(KEY_FILE))?;
    for id in mirror_ids(folder)? {
        for path in [mirror_key(folder, &id), mirror_public_key(folder, &id)] {
            refuse_taken(&path)?;
        }
    }
    let generate = |id: TrustAnchorId, path: PathBuf| {
        let key = SigningKey::generate(id, COSIGNER_ALGORITHM).map_err(Failure::run)?;
        let pem = lastbyte_pki::private_key_pem(key.private()).map_err(Failure::run)?;
        write_private(&path, &pem)?;
        Ok::<_, Failure>(key)
    };
    let mut written = vec![
        format!("{CA_FILE} (the certificate of CA {id})"),
        format!("{KEY_FILE} (its private key)"),
    ];
    for mirror in mirrors {
        let path = mirror_public_key(folder, &mirror);
        written.push(format!(
            "mirror-{mirror}.pem and mirror-{mirror}-key.pem (the keys of mirror {mirror})"
        ));
        let key = generate(mirror.clone(), mirror_key(folder, &mirror))?;
        let public = key.public().map_err(Failure::run)?;
        write_file(&path, pem::encode(PUBLIC_KEY, &public).as_bytes())?;
    }
    let key = generate(id, folder.join(KEY_FILE))?;
    let validity = Validity::of(now(), VALID_FOR);
    let certificate = key.ca_certificate(validity).map_err(Failure::run)?.to_der();
    // Last, since with it there is a CA.
    let certificate = pem::encode(CERTIFICATE, &certificate);
    write_file(&folder.join(CA_FILE), certificate.as_bytes())?;
    print(&format!(
        "{}: {}; its log begins with lastbyte mtc issue\n",
        folder.display(),
        written.join(", ")
    ))
}

/// A CA's certificate, and which log it adds to.
fn read_ca(folder: &Path) -> Result<(CaCertificate, LogId), Failure> {
    let path = folder.join(CA_FILE);
    let of_none = |error: &dyn Display| {
        Failure::Usage(format!(
            "the certificate in \"{}\" is of no CA with a log: {error}",
            path.display()
        ))
    };
    let certificate = read_certificate(&path)?;
    let certificate = CaCertificate::parse(&certificate).map_err(|error| of_none(&error))?;
    match PublicKey::from_der(&certificate.key) {
        Ok(key) if key.algorithm() == COSIGNER_ALGORITHM => {}
        Ok(_) | Err(_) => return Err(of_none(&format!("its key is none of {COSIGNER_ALGORITHM}"))),
    }
    let log = LogId::new(certificate.id.clone(), LogNumber::FIRST);
    let log = log.map_err(|error| of_none(&error))?;
    Ok((certificate, log))
}

/// The folder that is served.
pub(super) fn served(folder: &Path) -> PathBuf {
    folder.join(SERVED)
}

fn log_folder(folder: &Path, log: &LogId) -> PathBuf {
    served(folder).join(log.number().to_string())
}

impl Ca {
    pub(super) fn open(folder: &Path) -> Result<Ca, Failure> {
        let (certificate, id) = read_ca(folder)?;
        let key = read_key(&folder.join(KEY_FILE), certificate.id)?;
        let path = log_folder(folder, &id);
        let log = Log::open(id, &path)?;
        let mirrors = mirror_ids(folder)?.into_iter();
        let mirrors = mirrors.map(|id| FiledMirror::open(folder, id, log.id()));
        let mirrors = mirrors.collect::<Result<_, _>>()?;
        Ok(Ca { key, mirrors, log })
    }

    /// How many vouch for what it issues.
    pub(super) fn cosigners(&self) -> usize {
        1 + self.mirrors.len()
    }

    /// Shows the log to the mirrors, and publishes it with their signatures.
    pub(super) fn publish(&mut self) -> Result<(), Failure> {
        for mirror in &mut self.mirrors {
            mirror.observe(&self.log)?;
        }
        let signers: Vec<&SigningKey> = std::iter::once(&self.key)
            .chain(self.mirrors.iter().map(|one| one.mirror.cosigner()))
            .collect();
        let raw = |key: &SigningKey| key.checker()?.raw();
        let keys: Result<Vec<Vec<u8>>, _> = signers.iter().map(|key| raw(key)).collect();
        let keys = keys.map_err(Failure::run)?;
        let signers: Vec<NoteSigner> = (signers.iter().zip(&keys))
            .map(|(key, raw)| NoteSigner {
                cosigner: *key,
                key: raw,
            })
            .collect();
        self.log.publish(now(), &signers).map_err(Failure::run)?;
        Ok(())
    }

    /// The signatures of all cosigners over a subtree.
    pub(super) fn cosign(
        &self,
        subtree: Subtree,
        hash: HashValue,
    ) -> Result<Vec<Cosignature>, Failure> {
        let id = self.log.id();
        let mut all = cosign(id, subtree, hash, &[&self.key]).map_err(Failure::run)?;
        let proof = subtree.consistency_proof(self.log.size(), &self.log);
        let proof = proof.map_err(Failure::run)?;
        for one in &self.mirrors {
            let cosigned = one.mirror.cosign(id, subtree, hash, &proof);
            all.push(cosigned.map_err(Failure::run)?);
        }
        all.sort_by_key(|one| (one.cosigner.len(), one.cosigner.clone()));
        Ok(all)
    }
}

/// The mirrors that a CA's folder has a key of, be it but one of the two.
fn mirror_ids(folder: &Path) -> Result<BTreeSet<TrustAnchorId>, Failure> {
    let unreadable =
        |error| Failure::Usage(format!("can't read \"{}\": {error}", folder.display()));
    let mut ids = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let id = name.to_str().and_then(|name| {
            let id = name.strip_prefix("mirror-")?.strip_suffix(".pem")?;
            id.strip_suffix("-key").unwrap_or(id).parse().ok()
        });
        ids.extend(id);
    }
    Ok(ids)
}

impl FiledMirror {
    fn open(folder: &Path, id: TrustAnchorId, log: &LogId) -> Result<FiledMirror, Failure> {
        let seen = folder.join(format!("mirror-{id}-seen"));
        let key = read_key(&mirror_key(folder, &id), id)?;
        let before = if seen.exists() {
            Some((log.clone(), parse_seen(&seen)?))
        } else {
            None
        };
        let mirror = Mirror::resume(key, before);
        Ok(FiledMirror { mirror, seen })
    }

    fn observe(&mut self, log: &Log) -> Result<(), Failure> {
        let before = self.mirror.seen(log.id()).map_or(0, |seen| seen.size);
        let now = Seen {
            size: log.size(),
            root: log.root().map_err(Failure::run)?,
        };
        let proof = Subtree::whole(before).consistency_proof(now.size, log);
        let proof = proof.map_err(Failure::run)?;
        (self.mirror.observe(log.id(), now, &proof)).map_err(Failure::run)?;
        let text = format!("{} {}\n", now.size, now.root);
        write_file(&self.seen, text.as_bytes())
    }
}

fn parse_seen(path: &Path) -> Result<Seen, Failure> {
    let text = String::from_utf8_lossy(&read_file(path)?).into_owned();
    let parse = || {
        let (size, root) = text.trim_end().split_once(' ')?;
        let mut hash = HashValue::empty();
        if root.len() != 2 * HashValue::BYTES || !root.is_ascii() {
            return None;
        }
        for (place, byte) in hash.0.iter_mut().enumerate() {
            *byte = u8::from_str_radix(root.get(2 * place..2 * place + 2)?, 16).ok()?;
        }
        Some(Seen {
            size: size.parse().ok()?,
            root: hash,
        })
    };
    parse().ok_or_else(|| {
        Failure::Usage(format!(
            "\"{}\" is not what a mirror has seen",
            path.display()
        ))
    })
}

impl PublicParts {
    /// Nothing is written for it, no private key read, and the log not kept from whoever adds to it.
    pub(super) fn open(folder: &Path) -> Result<PublicParts, Failure> {
        let (certificate, id) = read_ca(folder)?;
        let mirrors = mirror_ids(folder)?.into_iter();
        let mirrors = mirrors.map(|id| {
            let key = read_public_key(&mirror_public_key(folder, &id))?;
            Ok::<_, Failure>((id, key))
        });
        let mirrors = mirrors.collect::<Result<_, _>>()?;
        let path = log_folder(folder, &id);
        Ok(PublicParts {
            certificate,
            mirrors,
            log: LogReader::open(id, &path)?,
        })
    }

    /// A client that trusts the CA and all its mirrors, with the landmarks of a checkpoint that they signed. A stale one
    /// has none.
    pub(super) fn client(&self, at: UnixTime, stale: bool) -> Result<RelyingParty, Failure> {
        let authority = TrustedAuthority::of_certificate(&self.certificate);
        let mut authority = authority.map_err(Failure::usage)?;
        for (id, key) in &self.mirrors {
            let key = PublicKey::from_der(key).map_err(Failure::usage)?;
            authority.cosigner(id.clone(), Box::new(key));
            authority.require(Group::all([id.clone()]));
        }
        if !stale {
            self.trust_landmarks(&mut authority, at)?;
        }
        let mut client = RelyingParty::new();
        client.trust(authority);
        Ok(client)
    }

    fn trust_landmarks(
        &self,
        authority: &mut TrustedAuthority,
        at: UnixTime,
    ) -> Result<(), Failure> {
        let Some(checkpoint) = self.log.checkpoint() else {
            return Ok(());
        };
        let of_ca = [(&self.certificate.id, &self.certificate.key)];
        for (id, key) in (of_ca.into_iter()).chain(self.mirrors.iter().map(|(id, key)| (id, key))) {
            let key = PublicKey::from_der(key).map_err(Failure::usage)?;
            let raw = key.raw().map_err(Failure::run)?;
            let checked = checkpoint.check(self.log.id(), id, &raw, &key);
            checked.map_err(Failure::run)?;
        }
        let whole = (checkpoint.size, checkpoint.root);
        let landmarks = self.log.landmarks();
        let active = landmarks.active(at, MAX_LANDMARKS).unwrap_or_default();
        for landmark in active {
            let subtrees = landmarks.subtrees(landmark.number);
            for subtree in subtrees.into_iter().flatten() {
                let hash = subtree.hash(&self.log).map_err(Failure::run)?;
                let proof = subtree.consistency_proof(checkpoint.size, &self.log);
                let proof = proof.map_err(Failure::run)?;
                let log = self.log.id().number();
                let trusted = authority.trust_part(log, (subtree, hash), whole, &proof);
                trusted.map_err(Failure::run)?;
            }
        }
        Ok(())
    }
}
