//! A user's own chain: read from PEM files, or as a server has shown it.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_sizes::{ChainRole, KeyAlgorithm, PemFiles, RootDelivery, TlsSignature, framing};
use openssl::asn1::Asn1Time;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::{X509, X509Ref};

use crate::anatomy::pieces;
use crate::blocks::{Blocks, Key};
use crate::chain::{Chain, Note};
use crate::container::Container;
use crate::error::{PemProblem, PkiError};
use crate::explain::{explain, is_merkle_tree, name};
use crate::keys::{key_algorithm, refused, tls_signature_bytes};
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
    /// What it is called in errors.
    pub(crate) file: PathBuf,
}

impl PublicChain {
    /// How long signatures of the end-entity's key are, in bytes: at least, but for one in a
    /// hundred, most often, and at most.
    ///
    /// # Errors
    ///
    /// [`PemProblem::CannotSign`] where TLS 1.3 has no signatures of such a key.
    pub fn signature_bytes(&self) -> Result<[usize; 3], PkiError> {
        let Some(end_entity) = self.certificates.first() else {
            return Ok([0; 3]);
        };
        match tls_signature(end_entity) {
            Some(bytes) => Ok(bytes),
            None => Err(PkiError::pem(&self.file, cannot_sign(end_entity)?)),
        }
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
        let (mut sent, left_out) = self.read_certificates(self.place, &self.files.chain)?;
        let mut notes = Vec::new();
        if !left_out.is_empty() {
            notes.push(Note::LeftOut { what: left_out });
        }
        if let Some(end_entity) = sent.first() {
            notes.extend(note_of_key(end_entity)?);
        }
        if sent.iter().any(|certificate| is_merkle_tree(certificate)) {
            notes.push(Note::MerkleTree);
        }
        let last = match self.files.host() {
            // Servers send what they like, and clients take what leads up from the first
            // certificate.
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
        let others = sent.split_last().map_or(&[][..], |(_, others)| others);
        // Else something is missing between them, which is reported of the order.
        let is_root_of_others = |last: &X509| others.iter().any(|other| issued(last, other));
        if last.as_ref().is_some_and(is_root_of_others) && !shown {
            let with_root = message_bytes(&sent)?;
            notes.push(Note::RootInFile { with_root });
            sent.pop();
        }
        let anchors = match (&self.files.ca, last) {
            (Some(ca), _) => Some((ca.clone(), self.read_certificates(ca, ca)?.0)),
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
        let (roots, _) = self.read_certificates(&path, &path).ok()?;
        let issued = |root: &X509| sent.iter().any(|sent| is_issued_by(sent, root));
        roots.iter().any(issued).then_some((path, roots))
    }

    /// The certificates of a file, of which there is at least one, and what else is in it.
    fn read_certificates(
        &self,
        place: &Path,
        path: &Path,
    ) -> Result<(Vec<X509>, Vec<String>), PkiError> {
        let pem =
            read(place).map_err(|error| PkiError::pem(path, PemProblem::Unreadable(error)))?;
        let blocks = Blocks::read(&pem).map_err(|problem| PkiError::pem(path, problem))?;
        let certificates = X509::stack_from_pem(blocks.pem.as_bytes()).map_err(|error| {
            let problem = match &blocks.cut {
                Some((label, line)) => PemProblem::Cut {
                    label: label.clone(),
                    line: *line,
                },
                None => PemProblem::BadCertificate(error),
            };
            PkiError::pem(path, problem)
        })?;
        let problem = match blocks.labels.first() {
            _ if !certificates.is_empty() => return Ok((certificates, blocks.left_out)),
            _ if pem.is_empty() => PemProblem::Empty,
            Some(label) => PemProblem::NoCertificate {
                label: label.clone(),
            },
            None => Container::of(&pem).map_or(PemProblem::NotPem, PemProblem::Binary),
        };
        Err(PkiError::pem(path, problem))
    }

    /// The end-entity's private key, if it is there.
    pub(crate) fn key(&self, end_entity: &X509Ref) -> Result<Option<PKey<Private>>, PkiError> {
        if tls_signature(end_entity).is_none() {
            return Err(self.at_chain(cannot_sign(end_entity)?));
        }
        let Some((file, key)) = find_key(self.files)? else {
            return Ok(None);
        };
        let public = end_entity.public_key();
        if public.is_ok_and(|public| !public.public_eq(&key)) {
            let certificates = self.files.chain.clone();
            let problem = PemProblem::KeyMismatch { certificates };
            Err(PkiError::pem(&file, problem))
        } else {
            Ok(Some(key))
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
        if anchor_of(sent, anchors).is_none() {
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

    /// Whether each certificate has issued one before it, where who asks can have it so: not at a
    /// server. Of one CA there may be several, from one root each (RFC 8446, section 4.4.2).
    pub(crate) fn check_order(&self, sent: &[X509]) -> Result<(), PkiError> {
        let mut issuers = sent.iter().enumerate().skip(1);
        let broken = issuers.find(|(index, issuer)| {
            let mut before = sent.iter().take(*index);
            sent.iter().take(*index).any(|other| other == *issuer)
                || !before.any(|subject| issued(issuer, subject))
        });
        match broken.filter(|_| self.files.host().is_none()) {
            Some((index, _)) => Err(self.at_chain(disorder(sent, index)?)),
            None => Ok(()),
        }
    }

    /// Why clients don't trust the uppermost certificate of these.
    fn not_trusted(&self, sent: &[X509], top: &X509, anchors: &Path) -> Result<PkiError, PkiError> {
        let place = sent.iter().position(|sent| sent == top);
        let anchors = anchors.to_owned();
        Ok(self.at_chain(if is_self_signed(top) {
            PemProblem::UnknownRoot {
                root: name(top.subject_name())?,
                anchors,
            }
        } else {
            PemProblem::NoIssuer {
                number: place.unwrap_or_default() + 1,
                issuer: name(top.issuer_name())?,
                anchors,
            }
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
        match anchor_of(&certificates.sent, anchors) {
            Some(root) => Ok(Some(root)),
            None => Err(self.not_trusted(&certificates.sent, last, file)?),
        }
    }

    /// The chain as anybody sees it.
    pub(crate) fn public(&self) -> Result<PublicChain, PkiError> {
        let certificates = self.certificates()?;
        if let (Some(_), Some(first)) = (&self.files.key, certificates.sent.first())
            && tls_signature(first).is_some()
        {
            // One that is named is meant to be that chain's.
            self.key(first)?;
        }
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
            file: self.files.chain.clone(),
        })
    }
}

impl Certificates {
    /// Whether it is known what clients trust.
    pub(crate) fn have_anchors(&self) -> bool {
        self.anchors.is_some()
    }
}

/// The anchor that has issued what is at the top, or is that; else one that has issued another
/// certificate, which may be of the same CA.
fn anchor_of<'a>(sent: &[X509], anchors: &'a [X509]) -> Option<&'a X509> {
    let mut all = top(sent).into_iter().chain(sent);
    all.find_map(|sent| {
        let mut anchors = anchors.iter();
        anchors.find(|anchor| *anchor == sent || is_issued_by(sent, anchor))
    })
}

fn message_bytes(certificates: &[X509]) -> Result<usize, PkiError> {
    let lengths = certificates
        .iter()
        .map(|certificate| certificate.to_der().map(|der| der.len()));
    Ok(framing::certificate_message(
        lengths.collect::<Result<Vec<_>, _>>()?,
    ))
}

/// What is wrong with certificates of which the one at `index` has issued none before it, or is one
/// of those.
fn disorder(sent: &[X509], index: usize) -> Result<PemProblem, PkiError> {
    // Of several that are as long, the first.
    let mut longest: Vec<usize> = Vec::new();
    for leaf in 0..sent.len() {
        let path = path_from(sent, leaf);
        if path.len() > longest.len() {
            longest = path;
        }
    }
    let others = (0..sent.len()).filter(|other| !longest.contains(other));
    let is_issuer = |place: &usize| {
        let mut subjects = sent.iter().enumerate().filter(|(other, _)| other != place);
        let issuer = sent.get(*place);
        issuer.is_some_and(|issuer| subjects.any(|(_, subject)| issued(issuer, subject)))
    };
    let stranger = others.clone().find(|other| !is_issuer(other));
    let subject = |index: usize| match sent.get(index) {
        Some(certificate) => name(certificate.subject_name()),
        None => Ok(String::new()),
    };
    let is_doubled = sent
        .iter()
        .take(index)
        .any(|other| sent.get(index) == Some(other));
    // All but a root at the end are in order, and it issued none of them.
    let below_gap = sent.split_last().and_then(|(root, others)| {
        let is_gap =
            is_self_signed(root) && !is_doubled && path_from(sent, 0).len() == others.len();
        let is_ordered = longest.iter().copied().eq(0..others.len());
        others.last().filter(|_| is_gap && is_ordered)
    });
    match (longest.as_slice(), stranger) {
        _ if let Some(below) = below_gap => Ok(PemProblem::Gap {
            number: sent.len() - 1,
            issuer: name(below.issuer_name())?,
        }),
        _ if is_doubled => Ok(PemProblem::Doubled {
            number: index + 1,
            subject: subject(index)?,
        }),
        ([leaf, _, ..], None) => Ok(PemProblem::Disorder {
            leaf: leaf + 1,
            subject: subject(*leaf)?,
            order: longest
                .iter()
                .copied()
                .chain(others)
                .map(|index| index + 1)
                .collect(),
        }),
        ([_, _, ..], Some(stranger)) => Ok(PemProblem::Stranger {
            number: stranger + 1,
            subject: subject(stranger)?,
        }),
        _ => {
            // The first certificate is nobody's issuer.
            let before = index.saturating_sub(1);
            Ok(PemProblem::Broken {
                number: before + 1,
                subject: subject(before)?,
                issuer: match sent.get(before) {
                    Some(certificate) => name(certificate.issuer_name())?,
                    None => String::new(),
                },
            })
        }
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
    let blocks = Blocks::read(&pem).map_err(|problem| PkiError::pem(path, problem))?;
    match blocks.key() {
        None => return Ok(None),
        Some(Key::Known) => {}
        Some(Key::Unknown(label)) => {
            let label = label.to_owned();
            return Err(PkiError::pem(path, PemProblem::UnknownKeyFormat { label }));
        }
    }
    let mut encrypted = false;
    let key = PKey::private_key_from_pem_callback(blocks.pem.as_bytes(), |_| {
        encrypted = true;
        Ok(0)
    });
    match key {
        Ok(key) => Ok(Some(key)),
        Err(_) if encrypted => Err(PkiError::pem(path, PemProblem::EncryptedKey)),
        Err(error) => Err(PkiError::pem(path, PemProblem::BadKey(error))),
    }
}

/// How long signatures of a certificate's key are in TLS 1.3, as [`PublicChain::signature_bytes`],
/// if there are any.
pub(crate) fn tls_signature(certificate: &X509Ref) -> Option<[usize; 3]> {
    tls_signature_bytes(&*certificate.public_key().ok()?)
}

/// What there is to say of a key that servers and browsers have no TLS 1.3 with.
fn note_of_key(end_entity: &X509Ref) -> Result<Option<Note>, PkiError> {
    let public = end_entity.public_key();
    match public.ok().as_deref().and_then(refused) {
        Some(why) => {
            let key = explain(end_entity)?.key;
            Ok(Some(Note::KeyRefused { key, why }))
        }
        None => Ok(None),
    }
}

pub(crate) fn cannot_sign(end_entity: &X509Ref) -> Result<PemProblem, PkiError> {
    let key = explain(end_entity)?.key;
    Ok(PemProblem::CannotSign { key })
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
