//! `lastbyte mtc`.

mod authority;
mod files;
mod serve;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use lastbyte_mtc::entry::leaf;
use lastbyte_mtc::issue::{Certified, made_up_key};
use lastbyte_mtc::landmark::LandmarkError;
use lastbyte_mtc::log::{LogError, LogReader};
use lastbyte_mtc::openssl::SigningKey;
use lastbyte_mtc::pem::{self, CERTIFICATE};
use lastbyte_mtc::{
    Certificate, Entry, Properties, Refusal, Request, SignatureAlgorithm, Subtree, TrustAnchorId,
    Trusted, UnixTime, Validity,
};

use super::draft::Draft;
use super::{Failure, print, print_document};
use authority::{Ca, PublicParts, make_ca, served};
use files::{create_folder, read_certificate, refuse_taken, write_file, write_private};

const DAY: Duration = Duration::from_secs(86_400);

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
        /// The client's clock, such as 2026-01-31T12:00:00Z, or in seconds since 1970; else this machine's
        #[arg(long, value_name = "TIME")]
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
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = super::options::socket_address)]
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
    /// For how many days it holds, from 1 to 47
    #[arg(long, value_name = "DAYS", default_value = "7", value_parser = clap::value_parser!(u32).range(1..=47))]
    days: u32,
    /// Others that are certified with it, of hosts that nobody has
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    others: u64,
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Landmark(LandmarkError::Size { .. }) => Failure::Usage(format!(
                "{error}; let it grow first, with lastbyte mtc issue"
            )),
            // A place that can't be written is the same mistake everywhere.
            LogError::InUse(_)
            | LogError::NoEntry { .. }
            | LogError::Long(_)
            | LogError::Full
            | LogError::Write { .. }
            | LogError::Landmark(_) => Failure::usage(error),
            LogError::Read { .. } | LogError::Damaged { .. } | LogError::Sign(_) => {
                Failure::run(error)
            }
        }
    }
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
                PublicParts::open(&folder)?.log.check()?;
                serve::serve(&served(&folder), listen)
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

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime(since.unwrap_or_default().as_secs())
}

impl Issue {
    fn run(self) -> Result<(), Failure> {
        let [key_file, certificate_file] =
            ["key.pem", "certificate.pem"].map(|name| self.output.join(name));
        for path in [&key_file, &certificate_file] {
            refuse_taken(path)?;
        }
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
        let batch = ca.log.append(&entries)?;
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
        let private = lastbyte_pki::private_key_pem(host.private()).map_err(Failure::run)?;
        write_private(&key_file, &private)?;
        write_file(
            &certificate_file,
            with_properties(&properties, &certificate)?.as_bytes(),
        )?;
        let bytes = certificate.len();
        let vouch = match ca.cosigners() {
            1 => "1 vouches".to_owned(),
            cosigners => format!("{cosigners} vouch"),
        };
        print(&format!(
            "entry {index} of log {}: {bytes} bytes, in {subtree}, which {vouch} for\n",
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
    let published = ca.log.checkpoint();
    let published = published.map_or(0, |checkpoint| checkpoint.size);
    // Of use as long as any of its certificates holds.
    let mut expiry = before.expiry;
    for entry in ca.log.entries(before.size..published) {
        let entry = entry.map_err(Failure::run)?;
        if let Some(entry) = Entry::parse(&entry).map_err(Failure::run)? {
            expiry = expiry.max(entry.validity().to);
        }
    }
    let landmark = ca.log.make_landmark(expiry, now())?;
    let entries = match landmark.size {
        1 => "1 entry".to_owned(),
        size => format!("{size} entries"),
    };
    print(&format!(
        "landmark {} of log {}: {entries}, of use up to {}\n",
        landmark.number,
        ca.log.id().id(),
        landmark.expiry
    ))
}

fn prove(folder: &Path, certificate: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let ca = PublicParts::open(folder)?;
    let standalone = read_certificate(certificate)?;
    let standalone = parse(certificate, &standalone)?;
    let (issuer, expected) = (standalone.issuer(), ca.log.id().ca());
    if issuer != expected {
        return Err(Failure::Usage(format!(
            "the certificate in \"{}\" is of {issuer}, and the CA in \"{}\" is {expected}",
            certificate.display(),
            folder.display()
        )));
    }
    let index = standalone.index;
    if !is_of(&standalone, &ca.log)? {
        return Err(Failure::Usage(of_another(certificate, folder, index)));
    }
    let found = ca.log.landmarks().subtree_of(index);
    let Some((landmark, subtree)) = found else {
        let message = format!("no landmark has entry {index} yet: run lastbyte mtc landmark");
        return Err(Failure::Usage(message));
    };
    let entry = ca.log.entry(index)?;
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
    let checked = ca.client(at, false)?;
    (checked.verify(&certificate, at)).map_err(|refusal| {
        Failure::Run(format!(
            "the log makes no proof that holds, so its files are damaged: {refusal}"
        ))
    })?;
    match output {
        Some(path) => Draft::new(path)?.write(|out| out.write_all(text.as_bytes())),
        None => print_document(&text),
    }
}

/// Whether a log has the entry of a certificate.
fn is_of(certificate: &Certificate<'_>, log: &LogReader) -> Result<bool, Failure> {
    match log.entry(certificate.index) {
        Ok(entry) => Ok(leaf(&entry) == certificate.leaf()),
        Err(LogError::NoEntry { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn of_another(certificate: &Path, folder: &Path, index: u64) -> String {
    format!(
        "the certificate in \"{}\" is of another log than that in \"{}\", whose entry {index} is another one or \
         not there: name the folder of the CA that issued it",
        certificate.display(),
        folder.display()
    )
}

/// A file's certificate, read.
fn parse<'a>(path: &Path, certificate: &'a [u8]) -> Result<Certificate<'a>, Failure> {
    Certificate::parse(certificate).map_err(|error| {
        Failure::Usage(format!(
            "there is no Merkle Tree Certificate in \"{}\": {error}",
            path.display()
        ))
    })
}

fn verify(folder: &Path, certificate: &Path, at: UnixTime, stale: bool) -> Result<(), Failure> {
    let bytes = read_certificate(certificate)?;
    let parsed = parse(certificate, &bytes)?;
    let ca = PublicParts::open(folder)?;
    let client = ca.client(at, stale)?;
    let verified = client.verify(&bytes, at).map_err(|refusal| {
        // What a client can't know: who has the CA's folder can.
        let is_another = matches!(
            refusal,
            Refusal::Cosignature(_) | Refusal::OtherSubtree { .. } | Refusal::UnknownSubtree { .. }
        ) && is_of(&parsed, &ca.log).is_ok_and(|is_of| !is_of);
        let hint = if is_another {
            format!(": {}", of_another(certificate, folder, parsed.index))
        } else {
            String::new()
        };
        Failure::Run(format!("refused: {refusal}{hint}"))
    })?;
    let hosts = verified.certificate.hosts().join(", ");
    let why = match verified.trusted {
        Trusted::Subtree(subtree) => format!("{subtree} is a landmark's"),
        Trusted::Cosigned(cosigners) => {
            let cosigners: Vec<String> = cosigners.iter().map(ToString::to_string).collect();
            let verb = match cosigners.len() {
                1 => "vouches",
                _ => "vouch",
            };
            format!("{} {verb} for it", cosigners.join(" and "))
        }
    };
    let bytes = bytes.len();
    print(&format!("accepted for {hosts}: {why} ({bytes} bytes)\n"))
}
