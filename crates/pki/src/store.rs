//! Chains, made once and kept on disk.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{self, Path, PathBuf};
use std::slice;
use std::time::{Duration, SystemTime};

use lastbyte_providers::private_key_pem;
use lastbyte_sizes::profile::{self, Padding};
use lastbyte_sizes::{
    ChainRole, ChainSpec, Host, KeyAlgorithm, PaddedCertificate, PemFiles, RootDelivery,
};
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, Private};
use openssl::sha::Sha256;
use openssl::x509::{X509, X509Ref};

use crate::authority::{self, Authority, END_ENTITY_LIFE};
use crate::cache;
use crate::chain::{Chain, Missing, Note, Unusable};
use crate::error::{PemProblem, PkiError};
use crate::explain::is_merkle_tree;
use crate::keys::{Keys, key_algorithm};
use crate::pem::{Certificates, PublicChain, Source};
use crate::sct::{Log, SctStatus};
use crate::stand_in::{is_extended, stand_in};
use crate::verify::{Purpose, Unverified, is_issued_by, is_valid, verify};

/// A chain or a CA that is about to expire is made anew.
const SPARE: Duration = Duration::from_secs(86_400);

/// A folder of chains. Each is made when it is first asked for and is then the
/// same for everybody who shares the folder, until a day before it expires.
///
/// Chains that differ in their padding, their SCTs or in whether the root is sent share their keys
/// and, unless it is the padded one, their CA. SCTs are of logs that the folder keeps too: one key
/// for each algorithm and place. The folder holds, for each chain, what other programs can use as
/// well: `chain.pem` (without the root), `root.pem` and `key.pem`.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    making: Making,
}

/// Whether what is missing is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Making {
    Allowed,
    Refused,
}

impl Store {
    /// A store in `folder`, which is made when the first chain is.
    pub fn open(folder: impl Into<PathBuf>) -> Store {
        Store {
            folder: folder.into(),
            making: Making::Allowed,
        }
    }

    /// A store in which nothing is made and nothing is written: what is missing, or about to
    /// expire, is an error. So all who share the folder have the same chains, or none.
    pub fn sealed(folder: impl Into<PathBuf>) -> Store {
        Store {
            folder: folder.into(),
            making: Making::Refused,
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The same with a path that leads there from any folder.
    ///
    /// # Errors
    ///
    /// When the path is empty, or there is no current folder.
    pub fn absolute(&self) -> io::Result<Store> {
        Ok(Store {
            folder: path::absolute(&self.folder)?,
            ..self.clone()
        })
    }

    /// Where a user's chains are kept: `$LASTBYTE_CACHE`, else
    /// `$XDG_CACHE_HOME/lastbyte`, else `~/.cache/lastbyte`.
    ///
    /// # Errors
    ///
    /// [`PkiError::NoHome`] if none of them is known.
    pub fn default_dir() -> Result<PathBuf, PkiError> {
        cache::folder().ok_or(PkiError::NoHome)
    }

    /// The chain that `spec` asks for: the kept one if there is one that is
    /// whole and valid for another day, else a new one.
    ///
    /// # Errors
    ///
    /// Those of [`ChainSpec::validate`], and [`PkiError::Store`] if a chain has
    /// to be made and the folder can't be written, or [`PkiError::Sealed`] if it may not be.
    pub fn chain(&self, spec: &ChainSpec) -> Result<Chain, PkiError> {
        spec.validate()?;
        lastbyte_providers::install()?;
        let now = SystemTime::now();
        match self.stored_chain(spec, now) {
            Some(chain) => Ok(chain),
            None => self.lock(spec)?.chain(spec, now),
        }
    }

    /// A user's own chain for a server or for a client, which a peer that trusts its root would
    /// take. Where its key or its root is not there, a chain stands in for it that says the same in
    /// as many bytes, under keys of our own: made when it is first asked for, and kept. Its
    /// [notes](Chain::notes) tell.
    ///
    /// The server name is the first DNS name of the end-entity certificate, else its common name;
    /// `*.example.com` becomes `www.example.com`. A client need not have one.
    ///
    /// # Errors
    ///
    /// [`PkiError::Pem`] names the file, what is wrong with it and the hint.
    pub fn own(&self, files: &PemFiles, role: ChainRole) -> Result<Chain, PkiError> {
        let chain = self.own_chain(files, role);
        chain.map_err(|error| error.of_file(&files.chain))
    }

    fn own_chain(&self, files: &PemFiles, role: ChainRole) -> Result<Chain, PkiError> {
        lastbyte_providers::install()?;
        let place = self.place(files)?;
        let source = Source {
            files,
            place: &place,
        };
        let certificates = source.certificates()?;
        let Some(end_entity) = certificates.sent.first() else {
            return Err(source.at_chain(PemProblem::Empty));
        };
        if certificates.sent.iter().any(|sent| is_merkle_tree(sent)) {
            return Err(source.at_chain(PemProblem::MerkleTree));
        }
        match (source.key(end_entity)?, certificates.have_anchors()) {
            (Some(key), true) => source.chain(certificates, key, role),
            (None, _) => self.stand_in(source, &certificates, role, Missing::Key),
            (Some(_), false) => self.stand_in(source, &certificates, role, Missing::Root),
        }
    }

    /// What anybody sees of a user's own chain. Nothing is made for it.
    ///
    /// # Errors
    ///
    /// [`PkiError::Pem`] when it holds no certificates.
    pub fn public(&self, files: &PemFiles) -> Result<PublicChain, PkiError> {
        lastbyte_providers::install()?;
        let place = self.place(files)?;
        let source = Source {
            files,
            place: &place,
        };
        source.public().map_err(|error| error.of_file(&files.chain))
    }

    /// What is wrong with the key that lies with a user's own chain, if there is one and it does
    /// not fit.
    ///
    /// # Errors
    ///
    /// As [`Store::public`].
    pub fn wrong_key(&self, files: &PemFiles) -> Result<Option<PkiError>, PkiError> {
        let place = self.place(files)?;
        let source = Source {
            files,
            place: &place,
        };
        let certificates = source.certificates()?;
        let end_entity = certificates.sent.first();
        Ok(end_entity.and_then(|end_entity| source.key(end_entity).err()))
    }

    /// Keeps what a server has shown, for [`own`](Store::own) and [`public`](Store::public).
    ///
    /// # Errors
    ///
    /// [`PkiError::Store`] if the folder can't be written, [`PkiError::Sealed`] if it may not be.
    pub fn keep(&self, host: &Host, certificates: &[X509]) -> Result<(), PkiError> {
        self.may_make(host)?;
        let place = self.host_file(host);
        let pem = certificates
            .iter()
            .map(|certificate| certificate.to_pem())
            .collect::<Result<Vec<_>, _>>()?
            .concat();
        let write = || {
            lastbyte_files::make_folders(&place.with_file_name(""))?;
            lastbyte_files::write(&place, &pem)
        };
        write().map_err(|source| PkiError::store(place, source))
    }

    /// Where a user's own chain is.
    fn place(&self, files: &PemFiles) -> Result<PathBuf, PkiError> {
        let Some(host) = files.host() else {
            return Ok(files.chain.clone());
        };
        let place = self.host_file(&host);
        if place.exists() {
            Ok(place)
        } else {
            Err(PkiError::pem(&files.chain, PemProblem::NotFetched))
        }
    }

    fn host_file(&self, host: &Host) -> PathBuf {
        self.folder.join("hosts").join(format!("{host}.pem"))
    }

    fn stand_in(
        &self,
        source: Source<'_>,
        original: &Certificates,
        role: ChainRole,
        missing: Missing,
    ) -> Result<Chain, PkiError> {
        source.check_order(&original.sent)?;
        let server_name = source.name_for(&original.sent, role)?;
        let now = SystemTime::now();
        let files = self.stand_in_files(source, original, now)?;
        if let Err(unverified) = files.verify(Purpose::of(role, &server_name))? {
            return Err(source.at_chain(PemProblem::Unfit {
                number: unverified.depth + 1,
                reason: unverified.reason.error_string(),
            }));
        }
        let extended = original.sent.iter().enumerate();
        let extended = extended.filter(|(_, certificate)| is_extended(certificate, now));
        let numbers: Vec<usize> = extended.map(|(index, _)| index + 1).collect();
        let extended = (!numbers.is_empty()).then_some(Note::Extended { numbers });
        let notes = original.notes.iter().cloned();
        let notes = notes.chain([Note::StandIn(missing)]).chain(extended);
        let chain = Chain::new(files.certificates, files.root, files.key, server_name)?;
        Ok(chain.with_notes(notes))
    }

    /// What stands in for a chain: what is kept under the digest of its certificates, else made
    /// now.
    fn stand_in_files(
        &self,
        source: Source<'_>,
        original: &Certificates,
        now: SystemTime,
    ) -> Result<Files, PkiError> {
        let root = source.root(original)?;
        let mut hash = Sha256::new();
        for certificate in original.sent.iter().chain(root) {
            hash.update(&certificate.to_der()?);
        }
        let folder = self.folder.join("stand-ins");
        let folder = folder.join(hex::encode(hash.finish()));
        let stored = || {
            let files = Files::read(&folder).ok()?;
            let intact = files.are_valid(now, now + SPARE) && files.speak_for(&original.sent);
            intact.then_some(files)
        };
        if let Some(files) = stored() {
            return Ok(files);
        }
        let _lock = self.lock(source.files.chain.display())?;
        // Another process may have made it in the meantime.
        if let Some(files) = stored() {
            return Ok(files);
        }
        let made = stand_in(&original.sent, root, now)?;
        let made = made.map_err(|problem| source.at_chain(problem))?;
        let files = Files {
            certificates: made.certificates,
            root: made.root,
            key: made.key,
        };
        files.install(&folder)?;
        Ok(files)
    }

    fn stored_chain(&self, spec: &ChainSpec, now: SystemTime) -> Option<Chain> {
        let files = Files::read(&self.chain_folder(spec)).ok()?;
        let (end_entity, intermediates) = files.certificates.split_first()?;
        let intact = intermediates.len() == usize::from(spec.intermediates)
            && files.certifies_key(end_entity, spec.leaf)
            && files.are_valid(now, now + SPARE)
            && verify(
                end_entity,
                intermediates,
                slice::from_ref(&files.root),
                Purpose::of(spec.role, &spec.name()),
            )
            .is_ok_and(|verified| verified.is_ok());
        let logs = self.stored_logs(spec)?;
        let chain = files.into_chain(spec, &logs).ok()?;
        let scts = chain.scts().ok()?;
        let intact = intact
            && scts.len() == logs.len()
            && scts.iter().all(|sct| sct.status == SctStatus::Valid);
        let bytes = spec.certificate_bytes.unwrap_or(spec.unpadded_bytes());
        (intact && chain.certificate_message_bytes() == bytes).then_some(chain)
    }

    fn stored_authority(
        &self,
        spec: &ChainSpec,
        padding: &Padding,
        now: SystemTime,
    ) -> Option<Authority> {
        let files = Files::read(&self.authority_folder(spec, padding)).ok()?;
        let issuing = files.certificates.first().unwrap_or(&files.root);
        let algorithm = spec.issuer_key(spec.end_entity_level());
        let intact = files.certificates.len() == usize::from(spec.intermediates)
            && files.certifies_key(issuing, algorithm)
            && files.are_valid(now, now + END_ENTITY_LIFE + SPARE)
            && files.are_linked();
        intact.then_some(Authority {
            algorithm,
            role: spec.role,
            intermediates: files.certificates,
            root: files.root,
            key: files.key,
        })
    }

    /// The logs whose SCTs a chain has, or `None` unless all are there.
    fn stored_logs(&self, spec: &ChainSpec) -> Option<Vec<Log>> {
        (0..spec.scts)
            .map(|index| self.stored_log(spec.sct_algorithm, index))
            .collect()
    }

    fn stored_log(&self, algorithm: KeyAlgorithm, index: u8) -> Option<Log> {
        let pem = fs::read(self.log_file(algorithm, index)).ok()?;
        let key = PKey::private_key_from_pem_passphrase(&pem, b"").ok()?;
        (key_algorithm(&key) == Some(algorithm)).then_some(Log { algorithm, key })
    }

    fn log_file(&self, algorithm: KeyAlgorithm, index: u8) -> PathBuf {
        self.log_folder(algorithm, index).join("key.pem")
    }

    fn log_folder(&self, algorithm: KeyAlgorithm, index: u8) -> PathBuf {
        self.folder
            .join("logs")
            .join(format!("{algorithm}-{index}"))
    }

    fn chain_folder(&self, spec: &ChainSpec) -> PathBuf {
        let name = spec.to_string().replace([':', '/'], "_");
        let version = profile::VERSION;
        self.folder
            .join("chains")
            .join(format!("{name}-v{version}"))
    }

    fn authority_folder(&self, spec: &ChainSpec, padding: &Padding) -> PathBuf {
        let ChainSpec {
            ca,
            root_key,
            intermediates,
            ..
        } = spec;
        let root = match root_key {
            root if root == ca => String::new(),
            root => format!("+{root}"),
        };
        let role = match spec.role {
            ChainRole::Server => "",
            ChainRole::Client => "_role=client",
        };
        // What is padded is another certificate, and of a CA of its own.
        let padded = match &padding.extension {
            Some(bytes) if spec.padded_level() != spec.end_entity_level() => {
                format!("_level={}:{}B", spec.padded_level(), bytes.len())
            }
            _ => String::new(),
        };
        let longer = "+".repeat(padding.intermediate_crl);
        let version = profile::VERSION;
        let name =
            format!("{ca}{root}_intermediates={intermediates}{role}{padded}{longer}-v{version}");
        self.folder.join("ca").join(name.replace(':', "_"))
    }

    /// Whether `what`, which is missing, may be made.
    fn may_make(&self, what: impl Display) -> Result<(), PkiError> {
        match self.making {
            Making::Allowed => Ok(()),
            Making::Refused => Err(PkiError::Sealed {
                what: what.to_string(),
                folder: self.folder.clone(),
            }),
        }
    }

    /// Waits for its turn to make a chain.
    fn lock(&self, what: impl Display) -> Result<Locked<'_>, PkiError> {
        self.may_make(what)?;
        let path = self.folder.join("lock");
        let open = || {
            lastbyte_files::make_folders(&self.folder)?;
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        match open() {
            Ok(lock) => Ok(Locked {
                store: self,
                _lock: lock,
            }),
            Err(source) => Err(PkiError::store(path, source)),
        }
    }
}

/// A store in which nobody else makes chains.
struct Locked<'a> {
    store: &'a Store,
    _lock: File,
}

impl Locked<'_> {
    fn chain(&self, spec: &ChainSpec, now: SystemTime) -> Result<Chain, PkiError> {
        // Another process may have made it in the meantime.
        if let Some(chain) = self.store.stored_chain(spec, now) {
            return Ok(chain);
        }
        let plain = ChainSpec {
            root: RootDelivery::Omitted,
            certificate_bytes: None,
            padding: PaddedCertificate::EndEntity,
            scts: 0,
            sct_algorithm: ChainSpec::new(spec.leaf).sct_algorithm,
            names: ChainSpec::USUAL_NAMES,
            leaf_without: Vec::new(),
            ..spec.clone()
        };
        let key = if *spec == plain {
            spec.leaf.generate()?
        } else {
            self.chain(&plain, now)?.key().clone()
        };
        let padding = authority::padding(spec)?;
        let logs = self.logs(spec)?;
        let authority = self.authority(spec, &padding, now)?;
        let end_entity = authority.issue_end_entity(spec, &key, &padding, &logs, now)?;
        let mut certificates = vec![end_entity];
        certificates.extend(authority.intermediates);
        let files = Files {
            certificates,
            root: authority.root,
            key,
        };
        let folder = self.store.chain_folder(spec);
        let replaced = Files::unusable(&folder, now).map(|why| Note::Replaced {
            why,
            aside: aside(&folder),
        });
        files.install(&folder)?;
        Ok(files.into_chain(spec, &logs)?.with_notes(replaced))
    }

    fn authority(
        &self,
        spec: &ChainSpec,
        padding: &Padding,
        now: SystemTime,
    ) -> Result<Authority, PkiError> {
        if let Some(authority) = self.store.stored_authority(spec, padding, now) {
            return Ok(authority);
        }
        let authority = Authority::new(spec, padding, now)?;
        let files = Files {
            certificates: authority.intermediates.clone(),
            root: authority.root.clone(),
            key: authority.key.clone(),
        };
        files.install(&self.store.authority_folder(spec, padding))?;
        Ok(authority)
    }

    /// The logs of a chain. One that is missing is made anew, and its SCTs with it.
    fn logs(&self, spec: &ChainSpec) -> Result<Vec<Log>, PkiError> {
        if let Some(logs) = self.store.stored_logs(spec) {
            return Ok(logs);
        }
        let algorithm = spec.sct_algorithm;
        for index in 0..spec.scts {
            // Others have signed with those that are there.
            if self.store.stored_log(algorithm, index).is_some() {
                continue;
            }
            let key = private_key_pem(&*algorithm.generate()?)?;
            install_folder(
                &self.store.log_folder(algorithm, index),
                &[("key.pem", key)],
            )?;
        }
        self.store.stored_logs(spec).ok_or_else(|| {
            let unreadable = io::Error::other("a log's key can't be read back");
            PkiError::store(self.store.log_folder(algorithm, 0), unreadable)
        })
    }
}

/// What a folder holds.
struct Files {
    /// All but the root.
    certificates: Vec<X509>,
    root: X509,
    /// The first certificate's, or the root's if there is none.
    key: PKey<Private>,
}

impl Files {
    fn read(folder: &Path) -> io::Result<Files> {
        let read = |name| fs::read(folder.join(name));
        Ok(Files {
            certificates: X509::stack_from_pem(&read("chain.pem")?)?,
            root: X509::from_pem(&read("root.pem")?)?,
            // With a passphrase, so that OpenSSL never asks for one.
            key: PKey::private_key_from_pem_passphrase(&read("key.pem")?, b"")?,
        })
    }

    /// Why what a folder holds, if it is there, can't be used.
    fn unusable(folder: &Path, now: SystemTime) -> Option<Unusable> {
        if !folder.exists() {
            return None;
        }
        Some(match Files::read(folder) {
            Ok(files) if !files.are_valid(now, now + SPARE) => Unusable::OutOfTime,
            _ => Unusable::Damaged,
        })
    }

    fn certifies_key(&self, certificate: &X509Ref, algorithm: KeyAlgorithm) -> bool {
        let public = certificate.public_key();
        key_algorithm(&self.key) == Some(algorithm)
            && public.is_ok_and(|public| public.public_eq(&self.key))
    }

    /// Whether a peer that trusts the root would take them.
    fn verify(&self, purpose: Purpose<'_>) -> Result<Result<X509, Unverified>, PkiError> {
        match self.certificates.split_first() {
            Some((first, issuers)) => {
                let anchors = slice::from_ref(&self.root);
                Ok(verify(first, issuers, anchors, purpose)?)
            }
            // The root speaks for itself.
            None => Ok(Ok(self.root.clone())),
        }
    }

    /// Whether these say as much as the certificates they stand for, with a key that is there.
    fn speak_for(&self, original: &[X509]) -> bool {
        let bytes = |certificates: &[X509]| {
            let lengths = certificates
                .iter()
                .map(|certificate| certificate.to_der().map(|der| der.len()));
            lengths.collect::<Result<Vec<_>, _>>().ok()
        };
        let public = self.certificates.first().map(|first| first.public_key());
        bytes(&self.certificates) == bytes(original)
            && matches!(public, Some(Ok(public)) if public.public_eq(&self.key))
    }

    fn are_valid(&self, from: SystemTime, until: SystemTime) -> bool {
        let mut all = self.certificates.iter().chain([&self.root]);
        all.all(|certificate| is_valid(certificate, from, until))
    }

    /// Whether each is issued by the next one and the last by the root.
    fn are_linked(&self) -> bool {
        let issuers = self.certificates.iter().skip(1).chain([&self.root]);
        let mut links = self.certificates.iter().zip(issuers);
        links.all(|(certificate, issuer)| is_issued_by(certificate, issuer))
    }

    fn into_chain(mut self, spec: &ChainSpec, logs: &[Log]) -> Result<Chain, ErrorStack> {
        if spec.root == RootDelivery::Sent {
            self.certificates.push(self.root.clone());
        }
        let chain = Chain::new(self.certificates, self.root, self.key, spec.name())?;
        let public = |log: &Log| PKey::public_key_from_der(&log.key.public_key_to_der()?);
        Ok(chain.with_logs(logs.iter().map(public).collect::<Result<_, _>>()?))
    }

    fn install(&self, folder: &Path) -> Result<(), PkiError> {
        let mut chain = Vec::new();
        for certificate in &self.certificates {
            chain.extend(certificate.to_pem()?);
        }
        let files = [
            ("chain.pem", chain),
            ("root.pem", self.root.to_pem()?),
            ("key.pem", private_key_pem(&self.key)?),
        ];
        install_folder(folder, &files)
    }
}

/// Where a folder goes that is replaced: nobody reads it there, but who wants to know what became
/// of it.
fn aside(folder: &Path) -> PathBuf {
    folder.with_added_extension("old")
}

/// Puts a folder of these files in place whole, so that nobody reads half of it. One that is there
/// is moved aside.
fn install_folder(folder: &Path, files: &[(&str, Vec<u8>)]) -> Result<(), PkiError> {
    let new = folder.with_added_extension("new");
    let replace = || {
        remove_if_there(&new)?;
        lastbyte_files::make_folders(&new)?;
        for (name, contents) in files {
            OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(new.join(name))?
                .write_all(contents)?;
        }
        if folder.exists() {
            let aside = aside(folder);
            remove_if_there(&aside)?;
            fs::rename(folder, aside)?;
        }
        lastbyte_files::keep_folder(&new, folder)
    };
    replace().map_err(|source| PkiError::store(folder, source))
}

fn remove_if_there(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
