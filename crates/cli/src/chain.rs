//! `lastbyte chain`.

use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use lastbyte_link::visible;
use lastbyte_pki::{
    Chain, ChainRole, Explanation, Note, PemFiles, PkiError, PublicChain, Sct, SctStatus, explain,
    is_merkle_tree, private_key_pem, sizes, verify_scts,
};
use lastbyte_sizes::Group;
use openssl::x509::X509;

use super::{Failure, own, print, published};
use lastbyte::study::{Arm, ArmChain};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a chain and write chain.pem, key.pem and root.pem
    ///
    /// Chains of one description are the same on this machine, keys included: they are made once and kept in
    /// LASTBYTE_CACHE. Another LASTBYTE_CACHE has others.
    New {
        /// As in an arm: CHAIN[:BYTESB][/KEY=VALUE...], such as ml-dsa-65/intermediates=2
        #[arg(value_parser = chain)]
        chain: ArmChain,
        /// The folder to write to, which has no chain yet; it is made if need be
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
    /// Explain a chain: sizes, algorithms and where the bytes go
    Show {
        /// As in an arm: ml-dsa-65, rsa-2048:16000B, a PEM file, whose key and root need not be there, or a server
        /// that is asked for its chain: example.com:443
        #[arg(value_parser = chain)]
        chain: ArmChain,
    },
    /// Tabulate what each algorithm costs, beside what papers say
    Sizes,
}

impl Command {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Command::New { chain, output } => {
                let loaded = load(&chain)?;
                if let ArmChain::Pem(files) = &chain {
                    own::tell(&written(files, loaded.notes()));
                }
                write_chain(&loaded, &output)
            }
            Command::Show { chain } => print(&match &chain {
                ArmChain::Made(_) => tree(&OwnChain::made(&load(&chain)?))?,
                ArmChain::Pem(files) => show(files)?,
            }),
            Command::Sizes => print(&format!("{}\n{}", table(), published::tables())),
        }
    }
}

/// The chain of an arm, as it stands there after the group.
fn chain(text: &str) -> Result<ArmChain, String> {
    match Arm::of_chain(Group::X25519, text) {
        Ok(arm) => Ok(arm.chain),
        Err(error) => Err(error.problem.to_string()),
    }
}

fn load(chain: &ArmChain) -> Result<Chain, Failure> {
    let store = own::store()?;
    let loaded = match chain {
        ArmChain::Made(spec) => store
            .chain(spec)
            .inspect(|chain| own::tell_made(spec, chain)),
        ArmChain::Pem(files) => {
            own::fetch_chain(files)?;
            store.own(files, ChainRole::Server)
        }
    };
    loaded.map_err(Failure::usage)
}

fn write_chain(chain: &Chain, folder: &Path) -> Result<(), Failure> {
    let mut sent = Vec::new();
    for certificate in chain.certificates() {
        sent.extend(certificate.to_pem()?);
    }
    let root = chain.root().to_pem()?;
    let key = private_key_pem(chain.key())?;
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Usage(format!("can't write \"{}\": {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let names = ["chain.pem", "root.pem", "key.pem"];
    // A link that leads nowhere is one, too.
    let is_taken = |name: &&&str| folder.join(name).symlink_metadata().is_ok();
    if let Some(taken) = names.iter().find(is_taken) {
        return Err(Failure::Usage(format!(
            "can't write {:?}: there is one already, and it may be the only copy of a key: name another folder with -o",
            folder.join(taken)
        )));
    }
    let mut made: Vec<PathBuf> = Vec::new();
    for (name, content, mode) in [
        ("chain.pem", sent, 0o644),
        ("root.pem", root, 0o644),
        ("key.pem", key, 0o600),
    ] {
        let path = folder.join(name);
        // An existing file is not overwritten: it may be the only copy of a key.
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)
            .and_then(|mut file| {
                made.push(path.clone());
                file.write_all(&content)
            });
        if let Err(error) = written {
            // A part of a chain is of no use.
            for path in &made {
                let _ = fs::remove_file(path);
            }
            return Err(failed(&path, error));
        }
    }
    let sent = if chain.certificates().last() == Some(chain.root()) {
        "as the server sends it, with the root: chain.pem/root=sent in an arm"
    } else {
        "as the server sends it"
    };
    print(&format!(
        "{}: chain.pem ({sent}), key.pem, root.pem (what the client trusts)\n",
        folder.display()
    ))
}

/// What there is to say of a chain that is written and not measured.
fn written(files: &PemFiles, notes: &[Note]) -> Vec<String> {
    let line = |note: &Note| match note {
        Note::StandIn(missing) => format!(
            "{} (no {missing} here): what is written is a stand-in of the same names, sizes, algorithms and extensions, \
             and key.pem is the stand-in's",
            files.chain.display()
        ),
        note => format!("{}{note}", files.chain.display()),
    };
    notes.iter().map(line).collect()
}

/// What is shown of a chain.
struct OwnChain<'a> {
    certificate_message_bytes: usize,
    sent: &'a [X509],
    /// What clients trust, if that is known.
    root: Option<&'a X509>,
    server_name: Option<&'a str>,
    /// The chain, if it was made here.
    made: Option<&'a Chain>,
}

impl OwnChain<'_> {
    fn made(chain: &Chain) -> OwnChain<'_> {
        OwnChain {
            certificate_message_bytes: chain.certificate_message_bytes(),
            sent: chain.certificates(),
            root: Some(chain.root()),
            server_name: Some(chain.server_name()),
            made: Some(chain),
        }
    }

    fn public(chain: &PublicChain) -> OwnChain<'_> {
        OwnChain {
            certificate_message_bytes: chain.certificate_message_bytes,
            sent: &chain.certificates,
            root: chain.root.as_ref(),
            server_name: chain.server_name.as_deref(),
            made: None,
        }
    }

    fn scts(&self) -> Result<Vec<Sct>, PkiError> {
        let issuer = self.sent.get(1).or(self.root);
        match (self.made, self.sent.first(), issuer) {
            (Some(chain), ..) => chain.scts(),
            (None, Some(end_entity), Some(issuer)) => verify_scts(end_entity, issuer, &[]),
            // Nobody knows who issued it, and so what logs have signed.
            _ => Ok(Vec::new()),
        }
    }
}

/// What anybody sees of a user's own chain, with what there is to say of it, a line each.
fn show(files: &PemFiles) -> Result<String, Failure> {
    own::fetch_chain(files)?;
    let mut files = files.clone();
    if files.host().is_some() && files.ca.is_none() {
        files.ca = own::roots_of_machine();
    }
    let chain = own::store()?.public(&files).map_err(Failure::usage)?;
    let name = super::shown(&files.chain);
    let mut lines: Vec<String> = own::lines(&files, &chain.notes).collect();
    let trust = match (&chain.order, &chain.trust) {
        _ if chain.certificates.iter().any(|one| is_merkle_tree(one)) => Some(format!(
            "{name}: a Merkle Tree Certificate, whose proof stands in place of a signature: check it with lastbyte mtc verify"
        )),
        (Err(problem), _) | (Ok(()), Some(Err(problem))) => Some(problem.to_string()),
        (Ok(()), None) => Some(format!(
            "{name}: no root here, so whether a client would trust it was not checked"
        )),
        (Ok(()), Some(Ok(()))) => (files.ca.as_ref()).map(|roots| {
            format!(
                "{name}: trusted by whoever trusts the roots in {}",
                roots.display()
            )
        }),
    };
    lines.extend(trust);
    let wrong_key = own::store()?.wrong_key(&files).map_err(Failure::usage)?;
    lines.extend(wrong_key.map(|problem| problem.to_string()));
    let lines = lines.iter().map(|line| format!("{line}\n"));
    Ok(tree(&OwnChain::public(&chain))? + &lines.collect::<String>())
}

/// What a chain is and where its bytes go.
fn tree(chain: &OwnChain) -> Result<String, Failure> {
    let mut text = format!(
        "Certificate message  {} B for {}\n",
        chain.certificate_message_bytes,
        visible(chain.server_name.unwrap_or("no server"))
    );
    let count = chain.sent.len();
    for (index, certificate) in chain.sent.iter().enumerate() {
        let explanation = explain(certificate).map_err(Failure::run)?;
        describe(&mut text, &explanation, "sent", index + 1 == count);
    }
    for sct in chain.scts().map_err(Failure::run)? {
        let status = match sct.status {
            SctStatus::Valid => "valid",
            SctStatus::Invalid => "not valid",
            SctStatus::UnknownLog => "of an unknown log",
        };
        let [first, second, third, ..] = sct.log;
        let _ = writeln!(
            text,
            "SCT of log {first:02x}{second:02x}{third:02x}…  {} B of signature, {status}",
            sct.signature_bytes
        );
    }
    if let Some(root) = chain.root.filter(|root| chain.sent.last() != Some(*root)) {
        text.push_str("root, not sent\n");
        let explanation = explain(root).map_err(Failure::run)?;
        describe(&mut text, &explanation, "trusted", true);
    }
    Ok(text)
}

fn describe(text: &mut String, explanation: &Explanation, role: &str, last: bool) {
    let (branch, stem) = if last {
        ("└─", "  ")
    } else {
        ("├─", "│ ")
    };
    let anatomy = &explanation.anatomy;
    // Writing to a String can't fail.
    let _ = writeln!(
        text,
        "{branch} {}  {} B {role}, key {}, signed with {}",
        match explanation.subject.as_str() {
            "" => "no subject",
            subject => subject,
        },
        anatomy.bytes(),
        explanation.key,
        explanation.signature
    );
    let parts = [
        ("public key", anatomy.public_key),
        ("signature", anatomy.signature),
        ("names", anatomy.names),
        ("extensions", anatomy.extension_bytes()),
        ("rest", anatomy.rest),
    ];
    for (name, bytes) in parts {
        let _ = writeln!(text, "{stem}   {bytes:>7} B  {name}");
        if name == "extensions" {
            for extension in &anatomy.extensions {
                let _ = writeln!(
                    text,
                    "{stem}     {:>7} B  {}",
                    extension.bytes,
                    extension.name()
                );
            }
        }
    }
}

/// One line for each algorithm.
fn table() -> String {
    let mut text = String::from(
        "Bytes. Certificate: the TLS message with 0 to 3 intermediates and no root.\n\n",
    );
    let _ = writeln!(
        text,
        "{:<18} {:>6} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "algorithm",
        "key",
        "sig",
        "leaf",
        "interm.",
        "root",
        "cert 0",
        "cert 1",
        "cert 2",
        "cert 3",
        "verify"
    );
    for row in sizes() {
        let [none, one, two, three] = row.certificate_message;
        let _ = writeln!(
            text,
            "{:<18} {:>6} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7}",
            row.algorithm.to_string(),
            row.public_key,
            row.signature,
            row.end_entity,
            row.intermediate,
            row.root,
            none,
            one,
            two,
            three,
            row.certificate_verify
        );
    }
    text.push_str("\nkey and sig: one public key and one signature. verify: CertificateVerify.\n");
    text
}
