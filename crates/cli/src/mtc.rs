//! `lastbyte mtc`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use lastbyte_mtc::issue::{Certified, cosign, made_up_key};
use lastbyte_mtc::log::Log;
use lastbyte_mtc::mirror::{Mirror, Seen};
use lastbyte_mtc::note::NoteSigner;
use lastbyte_mtc::openssl::{PublicKey, SigningKey};
use lastbyte_mtc::pem::{self, CERTIFICATE};
use lastbyte_mtc::serve::{MAX_REQUEST_BYTES, Request as HttpRequest};
use lastbyte_mtc::{
    CaCertificate, Certificate, Cosignature, Entry, Group, HashValue, LogId, LogNumber, Properties,
    RelyingParty, Request, SignatureAlgorithm, Subtree, TrustAnchorId, Trusted, TrustedAuthority,
    UnixTime, Validity,
};

use super::{Failure, print};

const DAY: Duration = Duration::from_secs(86_400);
/// What c2sp.org/mtc-tlog asks of all cosigners.
const COSIGNER_ALGORITHM: SignatureAlgorithm = SignatureAlgorithm::MlDsa44;
const CA_FILE: &str = "ca.pem";
const KEY_FILE: &str = "ca-key.pem";
/// What is served: each log under its number.
const SERVED: &str = "served";
/// The most landmarks that `verify` holds: hourly ones of 47 days, and some.
const MAX_LANDMARKS: usize = 2000;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a CA with an issuance log, and mirrors that cosign it
    Ca {
        /// The folder of the CA; it is made if need be
        folder: PathBuf,
        /// Its trust anchor identifier, below 1.3.6.1.4.1
        #[arg(long, value_name = "ID", default_value = "32473.1")]
        id: TrustAnchorId,
        /// The identifier of a mirror; may be given again
        #[arg(long, value_name = "ID")]
        mirror: Vec<TrustAnchorId>,
    },
    /// Certify a host: append it to the log, have that cosigned, write the standalone certificate
    Issue(Issue),
    /// Make the published size of the log a landmark
    Landmark {
        /// The folder of the CA
        folder: PathBuf,
    },
    /// Write the landmark-relative certificate of a standalone one
    Prove {
        /// The folder of the CA
        folder: PathBuf,
        /// The standalone certificate, in PEM
        certificate: PathBuf,
        /// The file to write; else to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Verify a certificate as a client that trusts the CA and all its mirrors
    Verify {
        /// The folder of the CA
        folder: PathBuf,
        /// The certificate, in PEM
        certificate: PathBuf,
        /// The client's clock, in seconds since 1970; else this machine's
        #[arg(long, value_name = "SECONDS", value_parser = unix_time)]
        at: Option<UnixTime>,
        /// The client has no landmarks
        #[arg(long)]
        stale: bool,
    },
    /// Serve checkpoint, tiles, entries and landmarks over HTTP, as any web server could
    Serve {
        /// The folder of the CA
        folder: PathBuf,
        /// Where to listen
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
        listen: SocketAddr,
    },
}

#[derive(Debug, Args)]
pub(super) struct Issue {
    /// The folder of the CA
    folder: PathBuf,
    /// The hosts
    #[arg(required = true, value_name = "HOST")]
    names: Vec<String>,
    /// The folder to write certificate.pem and key.pem to; it is made if need be
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The algorithm of the host's key
    #[arg(long, value_name = "ALGORITHM", default_value = "ml-dsa-44", value_parser = algorithm)]
    key: SignatureAlgorithm,
    /// For how many days it holds
    #[arg(long, default_value = "7", value_parser = clap::value_parser!(u32).range(1..=47))]
    days: u32,
    /// Others that are certified with it, of hosts that nobody has
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    others: u64,
}

impl Command {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Ca { folder, id, mirror } => make_ca(&folder, id, mirror),
            Command::Issue(issue) => issue.run(),
            Command::Landmark { folder } => make_landmark(&folder),
            Command::Prove {
                folder,
                certificate,
                output,
            } => prove(&folder, &certificate, output.as_deref()),
            Command::Verify {
                folder,
                certificate,
                at,
                stale,
            } => verify(&folder, &certificate, at.unwrap_or_else(now), stale),
            Command::Serve { folder, listen } => {
                // Others may have the log again once it is known to be whole.
                Ca::open(&folder)?.log.check().map_err(Failure::run)?;
                serve(&folder.join(SERVED), listen)
            }
        }
    }
}

fn algorithm(text: &str) -> Result<SignatureAlgorithm, String> {
    let mut all = SignatureAlgorithm::ALL.into_iter();
    all.find(|algorithm| algorithm.name() == text)
        .ok_or_else(|| {
            let names = SignatureAlgorithm::ALL.map(SignatureAlgorithm::name);
            format!("it is none of {}", names.join(", "))
        })
}

fn unix_time(text: &str) -> Result<UnixTime, std::num::ParseIntError> {
    text.parse().map(UnixTime)
}

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime(since.unwrap_or_default().as_secs())
}

/// A CA's folder: its certificate and key, those of its mirrors, and its log.
struct Ca {
    key: SigningKey,
    mirrors: Vec<FiledMirror>,
    log: Log,
}

/// A mirror whose key and memory are files.
struct FiledMirror {
    mirror: Mirror<SigningKey>,
    seen: PathBuf,
}

fn mirror_key(folder: &Path, id: &TrustAnchorId) -> PathBuf {
    folder.join(format!("mirror-{id}-key.pem"))
}

fn make_ca(folder: &Path, id: TrustAnchorId, mirrors: Vec<TrustAnchorId>) -> Result<(), Failure> {
    LogId::new(id.clone(), LogNumber::FIRST).map_err(Failure::usage)?;
    if mirrors.contains(&id) {
        let message = "a mirror needs another identifier than the CA";
        return Err(Failure::usage(message));
    }
    if folder.join(CA_FILE).exists() {
        let message = format!("there is a CA in \"{}\" already", folder.display());
        return Err(Failure::Usage(message));
    }
    create_folder(folder)?;
    let generate = |id: TrustAnchorId, path: PathBuf| {
        let key = SigningKey::generate(id, COSIGNER_ALGORITHM).map_err(Failure::run)?;
        write_private(&path, &key.to_pem().map_err(Failure::run)?)?;
        Ok::<_, Failure>(key)
    };
    for mirror in mirrors {
        let path = mirror_key(folder, &mirror);
        generate(mirror, path)?;
    }
    let key = generate(id, folder.join(KEY_FILE))?;
    let validity = Validity::of(now(), 3650 * DAY);
    let certificate = key.ca_certificate(validity).map_err(Failure::run)?.to_der();
    // Last, since with it there is a CA.
    let certificate = pem::encode(CERTIFICATE, &certificate);
    write_file(&folder.join(CA_FILE), certificate.as_bytes())
}

impl Ca {
    fn open(folder: &Path) -> Result<Ca, Failure> {
        let certificate = read_certificate(&folder.join(CA_FILE))?;
        let certificate = CaCertificate::parse(&certificate).map_err(Failure::usage)?;
        let id = LogId::new(certificate.id.clone(), LogNumber::FIRST).map_err(Failure::usage)?;
        let key = read_file(&folder.join(KEY_FILE))?;
        let key = SigningKey::from_pem(certificate.id, &key).map_err(Failure::usage)?;
        let served = folder.join(SERVED).join(id.number().to_string());
        let log = Log::open(id, &served).map_err(Failure::run)?;
        let mirrors = mirror_ids(folder)?.into_iter();
        let mirrors = mirrors.map(|id| FiledMirror::open(folder, id, log.id()));
        let mirrors = mirrors.collect::<Result<_, _>>()?;
        Ok(Ca { key, mirrors, log })
    }

    /// Shows the log to the mirrors, and publishes it with their signatures.
    fn publish(&mut self) -> Result<(), Failure> {
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
    fn cosign(&self, subtree: Subtree, hash: HashValue) -> Result<Vec<Cosignature>, Failure> {
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

/// The mirrors that a CA's folder has keys of.
fn mirror_ids(folder: &Path) -> Result<Vec<TrustAnchorId>, Failure> {
    let unreadable =
        |error| Failure::Usage(format!("can't read \"{}\": {error}", folder.display()));
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let id = name.to_str().and_then(|name| {
            let id = name.strip_prefix("mirror-")?.strip_suffix("-key.pem")?;
            id.parse().ok()
        });
        ids.extend(id);
    }
    ids.sort();
    Ok(ids)
}

impl FiledMirror {
    fn open(folder: &Path, id: TrustAnchorId, log: &LogId) -> Result<FiledMirror, Failure> {
        let key = read_file(&mirror_key(folder, &id))?;
        let seen = folder.join(format!("mirror-{id}-seen"));
        let key = SigningKey::from_pem(id, &key).map_err(Failure::usage)?;
        let before = match seen.exists() {
            true => Some((log.clone(), parse_seen(&seen)?)),
            false => None,
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

impl Issue {
    fn run(self) -> Result<(), Failure> {
        let mut ca = Ca::open(&self.folder)?;
        let host = SigningKey::generate(ca.log.id().ca().clone(), self.key);
        let host = host.map_err(Failure::run)?;
        let key = host.public().map_err(Failure::run)?;
        let validity = Validity::of(now(), self.days * DAY);
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let request = Request {
            names: &names,
            key: &key,
            validity,
        };
        let mut entries = vec![request.entry(ca.log.id().ca()).map_err(Failure::usage)?];
        for number in 1..=self.others {
            let host = format!("host-{number}.example");
            let others = Request {
                names: &[&host],
                key: &made_up_key(validity.from.0, number),
                validity,
            };
            entries.push(others.entry(ca.log.id().ca()).map_err(Failure::run)?);
        }
        // Somewhere among the others, as it would be.
        let place = entries.len() / 2;
        entries.swap(0, place);
        let batch = ca.log.append(&entries).map_err(Failure::run)?;
        ca.publish()?;
        let index = batch.start + place as u64;
        let [left, right] = Subtree::cover(batch);
        let subtree = if left.contains(index) { left } else { right };
        let hash = subtree.hash(&ca.log).map_err(Failure::run)?;
        let path = (subtree.inclusion_proof(index, &ca.log)).map_err(Failure::run)?;
        let certified = Certified {
            log: ca.log.id(),
            index,
            entry: &entries[place],
            key: &key,
        };
        let certificate = certified.with_proof(subtree, path, ca.cosign(subtree, hash)?);
        let certificate = certificate.map_err(Failure::run)?;
        let properties = ca.log.id().standalone_properties();
        create_folder(&self.output)?;
        let private = host.to_pem().map_err(Failure::run)?;
        write_private(&self.output.join("key.pem"), &private)?;
        let path = self.output.join("certificate.pem");
        write_file(
            &path,
            with_properties(&properties, &certificate)?.as_bytes(),
        )?;
        let (bytes, cosigners) = (certificate.len(), 1 + ca.mirrors.len());
        print(&format!(
            "entry {index} of log {}: {bytes} bytes, in {subtree}, which {cosigners} vouch for\n",
            ca.log.id().id()
        ))
    }
}

fn with_properties(properties: &Properties, certificate: &[u8]) -> Result<String, Failure> {
    let properties = properties.to_bytes().map_err(Failure::run)?;
    let properties = pem::encode(Properties::PEM_LABEL, &properties);
    Ok(properties + &pem::encode(CERTIFICATE, certificate))
}

fn make_landmark(folder: &Path) -> Result<(), Failure> {
    let mut ca = Ca::open(folder)?;
    let before = ca.log.landmarks().latest();
    let published = ca.log.checkpoint().map_err(Failure::run)?;
    let published = published.map_or(0, |checkpoint| checkpoint.size);
    // Of use as long as any of its certificates holds.
    let mut expiry = before.expiry;
    for entry in ca.log.entries(before.size..published) {
        let entry = entry.map_err(Failure::run)?;
        if let Some(entry) = Entry::parse(&entry).map_err(Failure::run)? {
            expiry = expiry.max(entry.validity().to);
        }
    }
    let landmark = ca
        .log
        .make_landmark(expiry, now())
        .map_err(Failure::usage)?;
    print(&format!(
        "landmark {} of log {}: {} entries, of use up to {}\n",
        landmark.number,
        ca.log.id().id(),
        landmark.size,
        landmark.expiry
    ))
}

fn prove(folder: &Path, certificate: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let ca = Ca::open(folder)?;
    let standalone = read_certificate(certificate)?;
    let standalone = Certificate::parse(&standalone).map_err(Failure::usage)?;
    let index = standalone.index;
    let found = ca.log.landmarks().subtree_of(index);
    let Some((landmark, subtree)) = found else {
        let message = format!("no landmark has entry {index} yet: run lastbyte mtc landmark");
        return Err(Failure::Usage(message));
    };
    let entry = ca.log.entry(index).map_err(Failure::usage)?;
    let certified = Certified {
        log: ca.log.id(),
        index,
        entry: &entry,
        key: standalone.key(),
    };
    let certificate = certified.certificate(subtree, &ca.log, &[]);
    let certificate = certificate.map_err(Failure::usage)?;
    let properties = ca.log.id().landmark_properties(landmark.number);
    let text = with_properties(&properties.map_err(Failure::run)?, &certificate)?;
    // A damaged tile makes a proof like any other.
    let at = standalone.validity().from;
    drop(ca);
    let checked = client(folder, at, false)?;
    (checked.verify(&certificate, at)).map_err(|refusal| {
        Failure::Run(format!(
            "the log makes no proof that holds, so its files are damaged: {refusal}"
        ))
    })?;
    match output {
        Some(path) => write_file(path, text.as_bytes()),
        None => print(&text),
    }
}

fn verify(folder: &Path, certificate: &Path, at: UnixTime, stale: bool) -> Result<(), Failure> {
    let bytes = read_certificate(certificate)?;
    let client = client(folder, at, stale)?;
    let verified = client.verify(&bytes, at);
    let verified = verified.map_err(|refusal| Failure::Run(format!("refused: {refusal}")))?;
    let hosts = verified.certificate.hosts().join(", ");
    let why = match verified.trusted {
        Trusted::Subtree(subtree) => format!("{subtree} is a landmark's"),
        Trusted::Cosigned(cosigners) => {
            let cosigners: Vec<String> = cosigners.iter().map(ToString::to_string).collect();
            format!("{} vouch for it", cosigners.join(" and "))
        }
    };
    let bytes = bytes.len();
    print(&format!("accepted for {hosts}: {why} ({bytes} bytes)\n"))
}

/// A client that trusts the CA and all its mirrors, with the landmarks of a checkpoint that they signed.
fn client(folder: &Path, at: UnixTime, stale: bool) -> Result<RelyingParty, Failure> {
    let ca = Ca::open(folder)?;
    let certificate = read_certificate(&folder.join(CA_FILE))?;
    let certificate = CaCertificate::parse(&certificate).map_err(Failure::usage)?;
    let mut authority = TrustedAuthority::of_certificate(&certificate).map_err(Failure::usage)?;
    let of_ca = PublicKey::from_der(&certificate.key).map_err(Failure::usage)?;
    let mut keys = vec![(certificate.id.clone(), of_ca)];
    for id in mirror_ids(folder)? {
        let key = SigningKey::from_pem(id.clone(), &read_file(&mirror_key(folder, &id))?);
        let key = key.map_err(Failure::usage)?;
        let checker = || key.checker().map_err(Failure::usage);
        authority.cosigner(id.clone(), Box::new(checker()?));
        authority.require(Group::all([id.clone()]));
        keys.push((id, checker()?));
    }
    if let Some(checkpoint) = ca
        .log
        .checkpoint()
        .map_err(Failure::run)?
        .filter(|_| !stale)
    {
        for (id, key) in &keys {
            let raw = key.raw().map_err(Failure::run)?;
            let checked = checkpoint.check(ca.log.id(), id, &raw, key);
            checked.map_err(Failure::run)?;
        }
        let whole = (checkpoint.size, checkpoint.root);
        let active = ca.log.landmarks().active(at, MAX_LANDMARKS);
        for landmark in active.unwrap_or_default() {
            let subtrees = ca.log.landmarks().subtrees(landmark.number);
            for subtree in subtrees.into_iter().flatten() {
                let hash = subtree.hash(&ca.log).map_err(Failure::run)?;
                let proof = subtree.consistency_proof(checkpoint.size, &ca.log);
                let proof = proof.map_err(Failure::run)?;
                let log = ca.log.id().number();
                let trusted = authority.trust_part(log, (subtree, hash), whole, &proof);
                trusted.map_err(Failure::run)?;
            }
        }
    }
    let mut client = RelyingParty::new();
    client.trust(authority);
    Ok(client)
}

/// Connections at a time; more are closed.
const MAX_CONNECTIONS: usize = 64;
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

fn serve(folder: &Path, listen: SocketAddr) -> Result<(), Failure> {
    let failed = |error| Failure::Run(format!("can't listen on {listen}: {error}"));
    let listener = TcpListener::bind(listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    print(&format!("serves the logs at http://{address}/\n"))?;
    let busy = AtomicUsize::new(0);
    thread::scope(|scope| {
        for connection in listener.incoming() {
            let Ok(connection) = connection else {
                continue;
            };
            if busy.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                busy.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            scope.spawn(|| {
                // Whoever goes away early is no concern of ours.
                let _ = answer(folder, connection);
                busy.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

fn answer(folder: &Path, mut connection: TcpStream) -> std::io::Result<()> {
    connection.set_read_timeout(Some(CONNECTION_TIMEOUT))?;
    connection.set_write_timeout(Some(CONNECTION_TIMEOUT))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while request.len() <= MAX_REQUEST_BYTES {
        let length = connection.read(&mut part)?;
        request.extend_from_slice(&part[..length]);
        if let Some(response) = HttpRequest::parse(&request).response(folder) {
            return connection.write_all(&response);
        }
        if length == 0 {
            break;
        }
    }
    Ok(())
}

/// Larger than any certificate or key.
const MAX_FILE: u64 = 1 << 20;

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let refuse = |problem: &dyn std::fmt::Display| {
        Failure::Usage(format!("can't read \"{}\": {problem}", path.display()))
    };
    let file = fs::File::open(path).map_err(|error| refuse(&error))?;
    let mut content = Vec::new();
    let read = file.take(MAX_FILE + 1).read_to_end(&mut content);
    match read.map_err(|error| refuse(&error))? as u64 {
        ..=MAX_FILE => Ok(content),
        _ => Err(refuse(
            &"it is larger than 1 MiB, and so no certificate and no key",
        )),
    }
}

fn read_certificate(path: &Path) -> Result<Vec<u8>, Failure> {
    let text = String::from_utf8_lossy(&read_file(path)?).into_owned();
    pem::decode(CERTIFICATE, &text)
        .ok_or_else(|| Failure::Usage(format!("there is no certificate in \"{}\"", path.display())))
}

fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .map_err(|error| Failure::Usage(format!("can't make \"{}\": {error}", path.display())))
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), Failure> {
    lastbyte_files::write(path, content)
        .map_err(|error| Failure::Usage(format!("can't write \"{}\": {error}", path.display())))
}

/// Writes a file that only its owner may read.
fn write_private(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600);
    let written = file.open(path).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.map_err(|error| Failure::Usage(format!("can't write \"{}\": {error}", path.display())))
}
