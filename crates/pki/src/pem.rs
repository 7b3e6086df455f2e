//! A user's own chain, read from PEM files.

use std::fs;
use std::path::{Path, PathBuf};

use lastbyte_sizes::der::SEQUENCE;
use lastbyte_sizes::{ChainRole, ChainSpec, PemFiles, framing};
use openssl::asn1::Asn1Time;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::{X509, X509Ref, X509VerifyResult};

use crate::chain::Chain;
use crate::error::{PemProblem, PkiError};
use crate::explain::name;
use crate::keys::key_algorithm;
use crate::verify::{Purpose, is_self_signed, verify};

/// Reads a user's own chain for a server and checks that a client would take it.
///
/// Its server name is the first DNS name of the end-entity certificate, else
/// its common name; `*.example.com` becomes `www.example.com`.
///
/// # Errors
///
/// [`PkiError::Pem`] names the file, what is wrong with it and the hint.
pub fn load_pem(files: &PemFiles) -> Result<Chain, PkiError> {
    load(files, ChainRole::Server)
}

/// Reads a user's own chain for a client in mutual TLS and checks that a server would take it. It
/// needs no name; [`Chain::server_name`] is that of a server if there is one, else empty.
///
/// # Errors
///
/// As [`load_pem`].
pub fn load_client_pem(files: &PemFiles) -> Result<Chain, PkiError> {
    load(files, ChainRole::Client)
}

/// A chain that can be made, in place of one of files whose private key is nowhere: its end-entity's key is of the
/// same kind, it has as many certificates (4 at most), and its Certificate message is as long, or as short as can be made. `None` if there is a key, so
/// that the chain itself can be had.
///
/// # Errors
///
/// [`PkiError::Pem`] when the files are no chain, or no chain is made with such a key.
pub fn stand_in(files: &PemFiles) -> Result<Option<ChainSpec>, PkiError> {
    lastbyte_providers::install()?;
    let (end_entity, mut issuers) = read_certificates(&files.chain)?;
    match find_key(files) {
        Ok(_) => return Ok(None),
        Err(PkiError::Pem {
            problem: PemProblem::NoKeyAnywhere,
            ..
        }) => {}
        Err(error) => return Err(error),
    }
    // A root is not sent.
    if issuers.last().is_some_and(|last| is_self_signed(last)) {
        issuers.pop();
    }
    let kind = |certificate: &X509| {
        let key = certificate.public_key().ok()?;
        key_algorithm(&key)
    };
    let leaf =
        kind(&end_entity).ok_or_else(|| PkiError::pem(&files.chain, PemProblem::UnknownKey))?;
    let certificates = [&end_entity].into_iter().chain(&issuers);
    let lengths = certificates
        .map(|certificate| certificate.to_der().map(|der| der.len()))
        .collect::<Result<Vec<_>, _>>()?;
    let ca = issuers.first().and_then(kind).unwrap_or(leaf);
    let intermediates = u8::try_from(issuers.len()).unwrap_or(u8::MAX);
    let spec = ChainSpec {
        ca,
        root_key: ca,
        intermediates: intermediates.min(ChainSpec::MAX_INTERMEDIATES),
        ..ChainSpec::new(leaf)
    };
    let bytes = framing::certificate_message(lengths);
    Ok(Some(ChainSpec {
        // Certificates can be leaner than those that are made.
        certificate_bytes: (bytes >= spec.unpadded_bytes()).then_some(bytes),
        ..spec
    }))
}

fn load(files: &PemFiles, role: ChainRole) -> Result<Chain, PkiError> {
    lastbyte_providers::install()?;
    let at_chain = |problem| PkiError::pem(&files.chain, problem);
    let (end_entity, mut issuers) = read_certificates(&files.chain)?;

    let (key_file, key) = find_key(files)?;
    // A key type that OpenSSL doesn't know is left to whoever uses it.
    if end_entity
        .public_key()
        .is_ok_and(|public| !public.public_eq(&key))
    {
        let certificates = files.chain.clone();
        return Err(PkiError::pem(
            &key_file,
            PemProblem::KeyMismatch { certificates },
        ));
    }

    let root = match issuers.last() {
        Some(last) if is_self_signed(last) => issuers.pop(),
        None if is_self_signed(&end_entity) => Some(end_entity.clone()),
        _ => None,
    };
    let (anchors_file, anchors) = match (&files.ca, root) {
        (Some(ca), _) => {
            let (first, mut anchors) = read_certificates(ca)?;
            anchors.insert(0, first);
            (ca, anchors)
        }
        (None, Some(root)) => (&files.chain, vec![root]),
        (None, None) => {
            let root = files.chain.with_file_name("root.pem");
            let (chain, root) = (files.chain.display(), root.display());
            let example = match role {
                ChainRole::Server => format!("{chain}/ca={root}"),
                ChainRole::Client => format!("mutual={chain}/client_ca={root}"),
            };
            return Err(at_chain(PemProblem::NoAnchor { example }));
        }
    };

    let server_name = match (role, server_name(&end_entity)) {
        (ChainRole::Server, None) => return Err(at_chain(PemProblem::NoName)),
        (_, name) => name.unwrap_or_default(),
    };
    let purpose = Purpose::of(role, &server_name);
    let certificates: Vec<X509> = [vec![end_entity.clone()], issuers.clone()].concat();
    for (index, certificate) in certificates.iter().enumerate() {
        check_validity(index, certificate).map_err(at_chain)?;
    }
    for (index, (subject, issuer)) in certificates.iter().zip(&issuers).enumerate() {
        if issuer.issued(subject) != X509VerifyResult::OK {
            return Err(at_chain(PemProblem::Broken {
                number: index + 1,
                subject: name(subject.subject_name())?,
                issuer: name(subject.issuer_name())?,
            }));
        }
    }
    let last = issuers.last().unwrap_or(&end_entity);
    let issued_last = |anchor: &X509| anchor == last || anchor.issued(last) == X509VerifyResult::OK;
    if !anchors.iter().any(issued_last) {
        return Err(at_chain(PemProblem::NoIssuer {
            number: certificates.len(),
            issuer: name(last.issuer_name())?,
            anchors: anchors_file.clone(),
        }));
    }
    match verify(&end_entity, &issuers, &anchors, purpose)? {
        Ok(root) => Ok(Chain::new(certificates, root, key, server_name)?),
        Err(unverified) => Err(at_chain(PemProblem::Unverified {
            number: unverified.depth + 1,
            reason: unverified.reason.error_string(),
            anchors: anchors_file.clone(),
        })),
    }
}

/// The first certificate of a file, and the others.
fn read_certificates(path: &Path) -> Result<(X509, Vec<X509>), PkiError> {
    let pem = read(path)?;
    let labels = labels(&pem);
    let mut certificates = X509::stack_from_pem(&pem)
        .map_err(|error| PkiError::pem(path, PemProblem::BadCertificate(error)))?
        .into_iter();
    match (certificates.next(), labels.first()) {
        (Some(first), _) => Ok((first, certificates.collect())),
        (None, Some(label)) => {
            let label = label.clone();
            Err(PkiError::pem(path, PemProblem::NoCertificate { label }))
        }
        (None, None) if pem.first() == Some(&SEQUENCE) => Err(PkiError::pem(path, PemProblem::Der)),
        (None, None) => Err(PkiError::pem(path, PemProblem::NotPem)),
    }
}

/// The private key, and the file it was in.
fn find_key(files: &PemFiles) -> Result<(PathBuf, PKey<Private>), PkiError> {
    if let Some(path) = &files.key {
        return match read_key(path)? {
            Some(key) => Ok((path.clone(), key)),
            None => Err(PkiError::pem(path, PemProblem::NoKey)),
        };
    }
    let beside = ["privkey.pem", "key.pem"].map(|name| files.chain.with_file_name(name));
    let there = beside.into_iter().filter(|path| path.exists());
    for path in [files.chain.clone()].into_iter().chain(there) {
        if let Some(key) = read_key(&path)? {
            return Ok((path, key));
        }
    }
    Err(PkiError::pem(&files.chain, PemProblem::NoKeyAnywhere))
}

/// The private key in a file, or `None` if there is none.
fn read_key(path: &Path) -> Result<Option<PKey<Private>>, PkiError> {
    let pem = read(path)?;
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

fn read(path: &Path) -> Result<Vec<u8>, PkiError> {
    fs::read(path).map_err(|error| PkiError::pem(path, PemProblem::Unreadable(error)))
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
