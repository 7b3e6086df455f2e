//! A user's own chains: asked of the server that shows them, and what there is to say of them.

pub(super) mod server;

use std::env;
use std::path::PathBuf;
use std::sync::Once;

use lastbyte::explain::{Explanation, OwnChain, Supposition, explain, explain_own, supposed_own};
use lastbyte::kernel::foreign;
use lastbyte::lab::{self, PreparedArm};
use lastbyte::study::{Arm, ArmChain, Cell};
use lastbyte_link::counted;
use lastbyte_pki::{
    Chain, ChainSpec, KeyAlgorithm, Note, PemFiles, PkiError, PublicChain, Store,
    explain as explain_certificate, verify_scts,
};
use lastbyte_probe::{Certificate, Document};
use openssl::pkey::Id;
use openssl::x509::X509;

use super::Failure;

/// Where chains are kept.
pub(super) fn store() -> Result<Store, Failure> {
    /// Once is enough.
    static WARNED: Once = Once::new();
    let folder = Store::default_dir().map_err(Failure::usage)?;
    if let Some(problem) = foreign(&folder) {
        WARNED.call_once(|| {
            super::tell(format!(
                "chains are taken from a cache that others can change: {problem}"
            ));
        });
    }
    Ok(Store::open(folder))
}

/// Asks each server that an arm names for its chain, once, and keeps that for whatever follows.
pub(super) fn fetch<'a>(arms: impl IntoIterator<Item = &'a Arm>) -> Result<(), Failure> {
    let mut asked = Vec::new();
    for arm in arms {
        let ArmChain::Pem(files) = &arm.chain else {
            continue;
        };
        if !asked.contains(&&files.chain) {
            fetch_chain(files)?;
            asked.push(&files.chain);
        }
    }
    Ok(())
}

/// The same for one chain, if a server has it.
pub(super) fn fetch_chain(files: &PemFiles) -> Result<(), Failure> {
    let Some(host) = files.host() else {
        return Ok(());
    };
    let certificates = server::chain(&host).map_err(Failure::Run)?;
    store()?.keep(&host, &certificates).map_err(Failure::usage)
}

/// The file of roots that programs on this machine trust, where systems have it.
pub(super) fn roots_of_machine() -> Option<PathBuf> {
    const USUAL: [&str; 4] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    let named = env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let all = named.into_iter().chain(USUAL.map(PathBuf::from));
    all.into_iter().find(|path| path.is_file())
}

/// A study is measured again as it was, which what a server shows need not be.
pub(super) fn check_study<'a>(arms: impl IntoIterator<Item = &'a Arm>) -> Result<(), Failure> {
    for arm in arms {
        if let ArmChain::Pem(files) = &arm.chain
            && let Some(host) = files.host()
        {
            return Err(Failure::Usage(format!(
                "arm \"{}\": what {host} sends can change, and a study is to be measured again as it was: name a file, \
                 such as openssl s_client -showcerts writes",
                arm.name
            )));
        }
    }
    Ok(())
}

/// What there is to say of the chains of arms, each once.
pub(super) fn notes(arms: &[PreparedArm]) -> Vec<String> {
    let mut all = Vec::new();
    for prepared in arms {
        let server = (Some(&prepared.arm.chain), Some(&prepared.chain));
        let client = (
            prepared.arm.client_chain.as_ref(),
            prepared.client_chain.as_ref(),
        );
        for (asked, chain) in [server, client] {
            if let (Some(ArmChain::Pem(files)), Some(chain)) = (asked, chain) {
                all.extend(lines(files, chain.notes()));
            }
        }
    }
    once(all)
}

/// Tells of chains of our own that were kept, and could not be used: what is measured has other keys than before.
pub(super) fn tell_replaced(arm: &Arm, prepared: &PreparedArm) {
    let server = (Some(&arm.chain), Some(&prepared.chain));
    let client = (arm.client_chain.as_ref(), prepared.client_chain.as_ref());
    for (asked, chain) in [server, client] {
        if let (Some(ArmChain::Made(spec)), Some(chain)) = (asked, chain) {
            tell_made(spec, chain);
        }
    }
}

/// The same of one.
pub(super) fn tell_made(spec: &ChainSpec, chain: &Chain) {
    for note in chain.notes() {
        super::tell(format!("{spec}{note}"));
    }
}

/// What there is to say of the server's chain of an arm that is not prepared yet.
pub(super) fn notes_of(arm: &Arm) -> Result<Vec<String>, Failure> {
    let ArmChain::Pem(files) = &arm.chain else {
        return Ok(Vec::new());
    };
    let chain = store()?.own(files, lastbyte_pki::ChainRole::Server);
    Ok(lines(files, chain.map_err(Failure::usage)?.notes()).collect())
}

/// One line for each note, which begins with the chain.
pub(super) fn lines(files: &PemFiles, notes: &[Note]) -> impl Iterator<Item = String> {
    notes
        .iter()
        .map(|note| format!("{}{note}", files.chain.display()))
}

/// Tells them beside the answer.
pub(super) fn tell(notes: &[String]) {
    for note in notes {
        super::tell(note);
    }
}

fn once(lines: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in lines {
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// What arithmetic says of an arm, also where its chain is the user's own; and what there is to say of that chain.
pub(super) fn explained(arm: &Arm, cells: &[Cell]) -> Result<(Explanation, Vec<String>), Failure> {
    let ArmChain::Pem(files) = &arm.chain else {
        return Ok((explain(arm, cells).map_err(Failure::usage)?, Vec::new()));
    };
    let chain = public(files)?;
    let explained = explain_own(arm, &shown(&chain)?, cells).map_err(Failure::usage)?;
    let explained = Explanation {
        supposed: with_other_keys(arm, &chain, cells),
        ..explained
    };
    Ok((explained, lines(files, &chain.notes).collect()))
}

/// A user's own chain, for which no key is needed.
fn public(files: &PemFiles) -> Result<PublicChain, Failure> {
    let chain = store()?.public(files).map_err(Failure::usage)?;
    chain.order.as_ref().map_err(Failure::usage)?;
    Ok(chain)
}

/// What a chain of a file has, as an arm says it.
struct Shape {
    intermediates: usize,
    timestamps: usize,
}

impl Shape {
    fn of(chain: &PublicChain) -> Shape {
        let timestamps = match &*chain.certificates {
            [end_entity, issuer, ..] => {
                verify_scts(end_entity, issuer, &[]).map_or(0, |timestamps| timestamps.len())
            }
            _ => 0,
        };
        Shape {
            intermediates: chain.certificates.len().saturating_sub(1),
            timestamps,
        }
    }

    /// As an arm says it.
    fn keys(&self) -> [(&'static str, String); 2] {
        [
            ("intermediates", self.intermediates.to_string()),
            ("scts", self.timestamps.to_string()),
        ]
    }

    /// `intermediates=1/scts=2`
    fn label(&self) -> String {
        self.keys()
            .map(|(key, count)| format!("{key}={count}"))
            .join("/")
    }

    /// `1 intermediate and no timestamp`
    fn words(&self) -> String {
        format!(
            "{} and {}",
            counted(self.intermediates, "intermediate"),
            counted(self.timestamps, "timestamp")
        )
    }
}

/// A made arm with as many certificates, timestamps and names around its keys as a user's own chain has, so that keys alone are exchanged;
/// as it is where it says itself how many, or where there is no such chain.
pub(super) fn in_shape_of(own: &Arm, made: Arm) -> Result<Arm, Failure> {
    let (ArmChain::Pem(files), ArmChain::Made(spec)) = (&own.chain, &made.chain) else {
        return Ok(made);
    };
    let says = ["intermediates", "scts", "sct_algorithm"].map(|key| made.says(key));
    if says.contains(&true) || spec.certificate_bytes.is_some() || made.delivery.is_alone() {
        return Ok(made);
    }
    let chain = store()?.public(files).map_err(Failure::usage)?;
    let end_entity = chain.certificates.first();
    let names = end_entity.and_then(|certificate| certificate.subject_alt_names());
    // As many as one that is made can have.
    let names = (names.map_or(1, |names| names.len())).clamp(1, ChainSpec::MAX_NAMES.into());
    let is_usual = names == usize::from(ChainSpec::USUAL_NAMES);
    let names = (!is_usual && !made.says("names")).then(|| ("names", names.to_string()));
    let said = Shape::of(&chain).keys().into_iter().chain(names);
    let said: Vec<(&str, String)> = said.collect();
    let said: Vec<(&str, &str)> = said.iter().map(|(key, value)| (*key, &**value)).collect();
    // A chain that is longer than any that is made stays as it is, and is told of.
    Ok(made.with_all(&said).unwrap_or(made))
}

/// What to say where a user's own chain is compared with made ones that have other certificates around their keys: a line for each,
/// with the arm that differs in keys alone.
pub(super) fn of_other_shape(arms: &[Arm]) -> Result<Vec<String>, Failure> {
    let own = arms.iter().find_map(|arm| match &arm.chain {
        ArmChain::Pem(files) => Some(files),
        ArmChain::Made(_) => None,
    });
    let Some(files) = own else {
        return Ok(Vec::new());
    };
    let shape = Shape::of(&store()?.public(files).map_err(Failure::usage)?);
    let others = arms.iter().filter_map(|arm| match &arm.chain {
        ArmChain::Made(spec) if spec.certificate_bytes.is_none() && !arm.delivery.is_alone() => {
            Some((arm, spec))
        }
        ArmChain::Made(_) | ArmChain::Pem(_) => None,
    });
    let lines = others.filter_map(|(arm, spec)| {
        let has = Shape {
            intermediates: usize::from(spec.intermediates),
            timestamps: usize::from(spec.scts),
        };
        (has.keys() != shape.keys()).then(|| {
            format!(
                "{} has {}, and {} {}: write /{} behind the former to compare keys alone",
                arm.name,
                has.words(),
                files.chain.display(),
                shape.words(),
                shape.label()
            )
        })
    });
    Ok(lines.collect())
}

/// What keys of ML-DSA in a chain of this shape come to; nothing of one that has post-quantum keys already.
fn with_other_keys(arm: &Arm, chain: &PublicChain, cells: &[Cell]) -> Vec<Supposition> {
    if !chain.certificates.iter().all(is_classical) {
        return Vec::new();
    }
    let name = chain.server_name.as_deref().unwrap_or_default();
    let document = Document {
        host: format!("{name}:443"),
        chain: in_parts(&chain.certificates),
        ..Document::default()
    };
    let supposed = [KeyAlgorithm::MlDsa44, KeyAlgorithm::MlDsa65];
    let supposed = supposed.into_iter().filter_map(|key| {
        let own = OwnChain::supposed(&document, key)?;
        supposed_own(format!("its keys are {key}"), arm, &own, cells)
    });
    supposed.collect()
}

/// Whether a certificate's key is of an algorithm from before post-quantum ones, be it one that chains are made with or not.
fn is_classical(certificate: &X509) -> bool {
    const CLASSICAL: [Id; 6] = [
        Id::RSA,
        Id::RSA_PSS,
        Id::EC,
        Id::ED25519,
        Id::ED448,
        Id::DSA,
    ];
    let key = certificate.public_key();
    key.is_ok_and(|key| CLASSICAL.contains(&key.id()))
}

/// Each certificate in its parts, as a document of a probe has them.
pub(super) fn in_parts(certificates: &[X509]) -> Vec<Certificate> {
    let parts = certificates.iter().enumerate().map(|(index, certificate)| {
        let der = certificate.to_der().unwrap_or_default();
        let bytes = der.len();
        let names = certificate
            .subject_alt_names()
            .map_or(0, |names| names.len());
        let issuer = certificates.get(index + 1).unwrap_or(certificate);
        let scts = verify_scts(certificate, issuer, &[]).map_or(0, |scts| scts.len());
        let Ok(explained) = explain_certificate(certificate) else {
            return Certificate {
                algorithm: "unknown".to_owned(),
                bytes,
                names,
                ..Certificate::default()
            };
        };
        let anatomy = &explained.anatomy;
        Certificate {
            algorithm: explained.key,
            bytes,
            signature: explained.signature,
            subject: explained.subject,
            issuer: explained.issuer,
            names,
            scts,
            key_bytes: anatomy.public_key,
            signature_bytes: anatomy.signature,
            name_bytes: anatomy.names,
            extension_bytes: anatomy.extension_bytes(),
            rest_bytes: anatomy.rest,
        }
    });
    parts.collect()
}

/// The sizes of a user's own chain, and what there is to say of it.
pub(super) fn sizes(files: &PemFiles) -> Result<(OwnChain, Vec<String>), Failure> {
    let chain = public(files)?;
    Ok((shown(&chain)?, lines(files, &chain.notes).collect()))
}

/// The sizes of a chain that has been read.
pub(super) fn shown(chain: &PublicChain) -> Result<OwnChain, Failure> {
    lab::sizes_of_own(chain).map_err(|error| match error {
        PkiError::Pem { .. } => Failure::usage(error),
        error => Failure::run(error),
    })
}
