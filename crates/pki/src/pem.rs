//! A user's own chain: read from PEM files, or as a server has shown it.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_sizes::der::SEQUENCE;
use lastbyte_sizes::{ChainRole, KeyAlgorithm, PemFiles, RootDelivery, TlsSignature, framing};
use openssl::asn1::Asn1Time;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::{X509, X509Ref, X509VerifyResult};

use crate::anatomy::pieces;
use crate::chain::{Chain, Note};
use crate::error::{PemProblem, PkiError};
use crate::explain::{is_merkle_tree, name};
use crate::keys::key_algorithm;
use crate::path::{issued, path_from, top};
use crate::stand_in::post_quantum;
use crate::verify::{Purpose, is_issued_by, is_self_signed, verify};

/// What is known of a user's own chain without its key.
#[derive(Debug)]
pub struct PublicChain {
    /// Bytes of the Certificate message, its 4-byte header included.
    pub certificate_message_bytes: usize,
    /// What a server sends, the end-entity first.
    pub certificates: Vec<X509>,
    /// The root that is not sent, if it is known.
    pub root: Option<X509>,
    /// The name that the end-entity certificate is for, as [`Chain::server_name`], if it has one.
    pub server_name: Option<String>,
    /// What there is to say of it.
    pub notes: Vec<Note>,
    /// Whether each certificate is signed by the next one.
    pub order: Result<(), PkiError>,
    /// Whether a client would trust it, if it is known what clients trust.
    pub trust: Option<Result<(), PkiError>>,
}

impl PublicChain {
    /// How long signatures of the end-entity's key most often are, and at most, in bytes.
    ///
    /// # Errors
    ///
    /// When OpenSSL can't read the key.
    pub fn signature_bytes(&self) -> Result<[usize; 2], PkiError> {
        let Some(end_entity) = self.certificates.first() else {
            return Ok([0, 0]);
        };
        let key = end_entity.public_key()?;
        Ok(match key_algorithm(&key) {
            Some(algorithm) => [
                algorithm.signature_bytes(),
                algorithm.longest_signature_bytes(),
            ],
            None => [key.size(), key.size()],
        })
    }

    /// The signature algorithms that whoever sends or verifies the chain needs and OpenSSL has no TLS for, as
    /// [`Chain::provided_signatures`].
    ///
    /// # Errors
    ///
    /// When a certificate can't be taken apart.
    pub fn provided_signatures(&self) -> Result<Vec<&'static TlsSignature>, PkiError> {
        let all = self.certificates.iter().chain(&self.root);
        let keys = all.filter_map(|certificate| key_algorithm(&*certificate.public_key().ok()?));
        // Of a root that nobody has seen, there are signatures.
        let last = match self.certificates.last() {
            Some(last) => post_quantum(pieces(&last.to_der()?)?.signature_algorithm),
            None => None,
        };
        let mut signatures: Vec<_> = keys
            .chain(last)
            .filter_map(KeyAlgorithm::provided)
            .collect();
        signatures.sort_by_key(|signature| signature.code_point);
        signatures.dedup();
        Ok(signatures)
    }
}

/// The files of a chain, and where they are read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) files: &'a PemFiles,
    /// What `files` calls the chain, or what a server has shown.
    pub(crate) place: &'a Path,
}

/// The certificates of a user's own chain.
pub(crate) struct Certificates {
    /// As a server sends them.
    pub(crate) sent: Vec<X509>,
    /// Where what clients trust is, and that.
    anchors: Option<(PathBuf, Vec<X509>)>,
    pub(crate) notes: Vec<Note>,
}

impl Source<'_> {
    pub(crate) fn certificates(&self) -> Result<Certificates, PkiError> {
        let mut sent = self.read_certificates(self.place, &self.files.chain)?;
        let mut notes = Vec::new();
        let last = match self.files.host() {
            // Servers send what they like, and clients take what leads up from the first certificate.
            Some(_) => {
                let path = path_from(&sent, 0);
                let others = (0..sent.len()).filter(|index| !path.contains(index));
                let numbers: Vec<usize> = others.map(|index| index + 1).collect();
                if !numbers.is_empty() {
                    notes.push(Note::Others { numbers });
                }
                top(&sent)
            }
            None => sent.last(),
        };
        let last = last.filter(|last| is_self_signed(last)).cloned();
        let is_file = self.files.host().is_none();
        if is_file && self.files.root == RootDelivery::Sent && last.is_none() {
            return Err(self.at_chain(PemProblem::NoRootToSend));
        }
        let shown = self.files.host().is_some() || self.files.root == RootDelivery::Sent;
        if last.is_some() && sent.len() > 1 && !shown {
            let with_root = message_bytes(&sent)?;
            notes.push(Note::RootInFile { with_root });
            sent.pop();
        }
        let anchors = match (&self.files.ca, last) {
            (Some(ca), _) => Some((ca.clone(), self.read_certificates(ca, ca)?)),
            (None, Some(root)) => Some((self.files.chain.clone(), vec![root])),
            (None, None) => self.root_beside(&sent).inspect(|(path, _)| {
                notes.push(Note::RootBeside(path.clone()));
            }),
        };
        Ok(Certificates {
            sent,
            anchors,
            notes,
        })
    }

    /// The root that lies beside a chain, if it is that chain's.
    fn root_beside(&self, sent: &[X509]) -> Option<(PathBuf, Vec<X509>)> {
        if self.files.host().is_some() {
            return None;
        }
        let path = self.files.chain.with_file_name("root.pem");
        let roots = self.read_certificates(&path, &path).ok()?;
        let issued = |root: &X509| sent.iter().any(|sent| is_issued_by(sent, root));
        roots.iter().any(issued).then_some((path, roots))
    }

    /// The certificates of a file, of which there is at least one.
    fn read_certificates(&self, place: &Path, path: &Path) -> Result<Vec<X509>, PkiError> {
        let pem =
            read(place).map_err(|error| PkiError::pem(path, PemProblem::Unreadable(error)))?;
        let labels = labels(&pem);
        let certificates = X509::stack_from_pem(&pem)
            .map_err(|error| PkiError::pem(path, PemProblem::BadCertificate(error)))?;
        let problem = match labels.first() {
            _ if !certificates.is_empty() => return Ok(certificates),
            _ if pem.is_empty() => PemProblem::Empty,
            Some(label) => PemProblem::NoCertificate {
                label: label.clone(),
            },
            None if pem.first() == Some(&SEQUENCE) => PemProblem::Der,
            None => PemProblem::NotPem,
        };
        Err(PkiError::pem(path, problem))
    }

    /// The end-entity's private key, if it is there.
    pub(crate) fn key(&self, end_entity: &X509Ref) -> Result<Option<PKey<Private>>, PkiError> {
        let Some((file, key)) = find_key(self.files)? else {
            return Ok(None);
        };
        // A key type that OpenSSL doesn't know is left to whoever uses it.
        let public = end_entity.public_key();
        match public.is_ok_and(|public| !public.public_eq(&key)) {
            true => {
                let certificates = self.files.chain.clone();
                let problem = PemProblem::KeyMismatch { certificates };
                Err(PkiError::pem(&file, problem))
            }
            false => Ok(Some(key)),
        }
    }

    /// A chain with its own key, of which a client that trusts the anchors would think well.
    pub(crate) fn chain(
        &self,
        certificates: Certificates,
        key: PKey<Private>,
        role: ChainRole,
    ) -> Result<Chain, PkiError> {
        let server_name = self.name_for(&certificates.sent, role)?;
        let root = self.verified(&certificates, role, &server_name)?;
        let chain = Chain::new(certificates.sent, root, key, server_name)?;
        Ok(chain.with_notes(certificates.notes))
    }

    /// Whom the end-entity is for; a client need not have a name.
    pub(crate) fn name_for(&self, sent: &[X509], role: ChainRole) -> Result<String, PkiError> {
        let name = sent.first().and_then(|end_entity| server_name(end_entity));
        match (role, name) {
            (ChainRole::Server, None) => Err(self.at_chain(PemProblem::NoName)),
            (_, name) => Ok(name.unwrap_or_default()),
        }
    }

    pub(crate) fn at_chain(&self, problem: PemProblem) -> PkiError {
        PkiError::pem(&self.files.chain, problem)
    }

    /// The anchor that the chain leads to now.
    fn verified(
        &self,
        certificates: &Certificates,
        role: ChainRole,
        server_name: &str,
    ) -> Result<X509, PkiError> {
        let Certificates { sent, anchors, .. } = certificates;
        if sent.iter().any(|sent| is_merkle_tree(sent)) {
            return Err(self.at_chain(PemProblem::MerkleTree));
        }
        for (index, certificate) in sent.iter().enumerate() {
            check_validity(index, certificate).map_err(|problem| self.at_chain(problem))?;
        }
        self.check_order(sent)?;
        let none = (self.files.chain.clone(), Vec::new());
        let (anchors_file, anchors) = anchors.as_ref().unwrap_or(&none);
        let (Some((end_entity, issuers)), Some(last)) = (sent.split_first(), top(sent)) else {
            return Err(self.at_chain(PemProblem::Empty));
        };
        let issued_last =
            |anchor: &X509| anchor == last || anchor.issued(last) == X509VerifyResult::OK;
        if !anchors.iter().any(issued_last) {
            return Err(self.not_trusted(sent, last, anchors_file)?);
        }
        let purpose = Purpose::of(role, server_name);
        match verify(end_entity, issuers, anchors, purpose)? {
            Ok(root) => Ok(root),
            Err(unverified) => Err(self.at_chain(PemProblem::Unverified {
                number: unverified.depth + 1,
                reason: unverified.reason.error_string(),
                anchors: anchors_file.clone(),
            })),
        }
    }

    /// Whether each certificate is issued by the next one, where who asks can have it so: not at a server.
    pub(crate) fn check_order(&self, sent: &[X509]) -> Result<(), PkiError> {
        let mut links = sent.iter().zip(sent.iter().skip(1));
        let broken = links.position(|(subject, issuer)| !issued(issuer, subject));
        match broken.filter(|_| self.files.host().is_none()) {
            Some(index) => Err(self.at_chain(disorder(sent, index)?)),
            None => Ok(()),
        }
    }

    /// Why clients don't trust the uppermost certificate of these.
    fn not_trusted(&self, sent: &[X509], top: &X509, anchors: &Path) -> Result<PkiError, PkiError> {
        let place = sent.iter().position(|sent| sent == top);
        let anchors = anchors.to_owned();
        Ok(self.at_chain(match is_self_signed(top) {
            true => PemProblem::UnknownRoot {
                root: name(top.subject_name())?,
                anchors,
            },
            false => PemProblem::NoIssuer {
                number: place.unwrap_or_default() + 1,
                issuer: name(top.issuer_name())?,
                anchors,
            },
        }))
    }

    /// The anchor that signed the last of these, or is that, where what clients trust is known.
    pub(crate) fn root<'c>(
        &self,
        certificates: &'c Certificates,
    ) -> Result<Option<&'c X509>, PkiError> {
        let (Some((file, anchors)), Some(last)) = (&certificates.anchors, top(&certificates.sent))
        else {
            return Ok(None);
        };
        let found = anchors
            .iter()
            .find(|anchor| *anchor == last || is_issued_by(last, anchor));
        match found {
            Some(root) => Ok(Some(root)),
            None => Err(self.not_trusted(&certificates.sent, last, file)?),
        }
    }

    /// The chain as anybody sees it.
    pub(crate) fn public(&self) -> Result<PublicChain, PkiError> {
        let certificates = self.certificates()?;
        let name = self.name_for(&certificates.sent, ChainRole::Server);
        let trust = certificates.anchors.as_ref().map(|_| match &name {
            Ok(name) => (self.verified(&certificates, ChainRole::Server, name)).map(|_| ()),
            Err(_) => Err(self.at_chain(PemProblem::NoName)),
        });
        let root = self.root(&certificates).ok().flatten();
        Ok(PublicChain {
            certificate_message_bytes: message_bytes(&certificates.sent)?,
            root: root
                .filter(|root| !certificates.sent.contains(root))
                .cloned(),
            server_name: name.ok(),
            order: self.check_order(&certificates.sent),
            trust,
            certificates: certificates.sent,
            notes: certificates.notes,
        })
    }
}

impl Certificates {
    /// Whether it is known what clients trust.
    pub(crate) fn have_anchors(&self) -> bool {
        self.anchors.is_some()
    }
}

fn message_bytes(certificates: &[X509]) -> Result<usize, PkiError> {
    let lengths = certificates
        .iter()
        .map(|certificate| certificate.to_der().map(|der| der.len()));
    Ok(framing::certificate_message(
        lengths.collect::<Result<Vec<_>, _>>()?,
    ))
}

/// What is wrong with certificates of which the one at `index` is not issued by the next one.
fn disorder(sent: &[X509], index: usize) -> Result<PemProblem, PkiError> {
    // Of several that are as long, the first.
    let mut longest: Vec<usize> = Vec::new();
    for leaf in 0..sent.len() {
        let path = path_from(sent, leaf);
        if path.len() > longest.len() {
            longest = path;
        }
    }
    let stranger = (0..sent.len()).find(|other| !longest.contains(other));
    let subject = |index: usize| match sent.get(index) {
        Some(certificate) => name(certificate.subject_name()),
        None => Ok(String::new()),
    };
    match (longest.as_slice(), stranger) {
        ([leaf, _, ..], None) => Ok(PemProblem::Disorder {
            leaf: leaf + 1,
            subject: subject(*leaf)?,
            order: longest.iter().map(|index| index + 1).collect(),
        }),
        ([_, _, ..], Some(stranger)) => Ok(PemProblem::Stranger {
            number: stranger + 1,
            subject: subject(stranger)?,
        }),
        _ => Ok(PemProblem::Broken {
            number: index + 1,
            subject: subject(index)?,
            issuer: match sent.get(index) {
                Some(certificate) => name(certificate.issuer_name())?,
                None => String::new(),
            },
        }),
    }
}

/// The private key, and the file it was in. What a server has shown is without one.
fn find_key(files: &PemFiles) -> Result<Option<(PathBuf, PKey<Private>)>, PkiError> {
    if let Some(path) = &files.key {
        return match read_key(path)? {
            Some(key) => Ok(Some((path.clone(), key))),
            None => Err(PkiError::pem(path, PemProblem::NoKey)),
        };
    }
    if files.host().is_some() {
        return Ok(None);
    }
    let beside = ["privkey.pem", "key.pem"].map(|name| files.chain.with_file_name(name));
    let there = beside.into_iter().filter(|path| path.exists());
    for path in [files.chain.clone()].into_iter().chain(there) {
        if let Some(key) = read_key(&path)? {
            return Ok(Some((path, key)));
        }
    }
    Ok(None)
}

/// What a file holds, which has room for all roots that anybody trusts.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 32 << 20;
    lastbyte_files::read(path, MOST)
}

/// The private key in a file, or `None` if there is none.
fn read_key(path: &Path) -> Result<Option<PKey<Private>>, PkiError> {
    let pem = read(path).map_err(|error| PkiError::pem(path, PemProblem::Unreadable(error)))?;
    if !labels(&pem)
        .iter()
        .any(|label| label.ends_with("PRIVATE KEY"))
    {
        return Ok(None);
    }
    let mut encrypted = false;
    let key = PKey::private_key_from_pem_callback(&pem, |_| {
        encrypted = true;
        Ok(0)
    });
    match key {
        Ok(key) => Ok(Some(key)),
        Err(_) if encrypted => Err(PkiError::pem(path, PemProblem::EncryptedKey)),
        Err(error) => Err(PkiError::pem(path, PemProblem::BadKey(error))),
    }
}

/// What a file's PEM blocks say they are.
fn labels(pem: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(pem)
        .lines()
        .filter_map(|line| {
            line.trim_end()
                .strip_prefix("-----BEGIN ")?
                .strip_suffix("-----")
        })
        .map(str::to_owned)
        .collect()
}

fn check_validity(index: usize, certificate: &X509Ref) -> Result<(), PemProblem> {
    let number = index + 1;
    let Ok(now) = Asn1Time::days_from_now(0) else {
        return Ok(());
    };
    if certificate.not_after() < now {
        let on = certificate.not_after().to_string();
        return Err(PemProblem::Expired { number, on });
    }
    if certificate.not_before() > now {
        let until = certificate.not_before().to_string();
        return Err(PemProblem::NotYetValid { number, until });
    }
    Ok(())
}

fn server_name(end_entity: &X509Ref) -> Option<String> {
    let alternatives = end_entity.subject_alt_names();
    let dns_name = alternatives
        .iter()
        .flatten()
        .find_map(|name| name.dnsname());
    let common_name = || {
        let mut entries = end_entity.subject_name().entries_by_nid(Nid::COMMONNAME);
        entries.next()?.data().to_string().ok()
    };
    let name = dns_name.map(str::to_owned).or_else(common_name)?;
    Some(match name.strip_prefix("*.") {
        Some(domain) => format!("www.{domain}"),
        None => name,
    })
}
