//! What commands read and write: certificates and keys in PEM.

use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lastbyte_mtc::TrustAnchorId;
use lastbyte_mtc::openssl::{KeyError, PublicKey, SigningKey};
use lastbyte_mtc::pem::{self, CERTIFICATE, PUBLIC_KEY};

use crate::Failure;

/// Larger than any certificate or key.
const MAX_FILE: u64 = 1 << 20;

pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let refuse = |problem: &dyn Display| {
        Failure::Usage(format!("can't read \"{}\": {problem}", path.display()))
    };
    lastbyte_files::read(path, MAX_FILE).map_err(|error| refuse(&error))
}

/// The one certificate in a file.
pub(super) fn read_certificate(path: &Path) -> Result<Vec<u8>, Failure> {
    let text = String::from_utf8_lossy(&read_file(path)?).into_owned();
    let mut found = pem::decode_all(CERTIFICATE, &text);
    let problem = match (found.pop(), found.len()) {
        (Some(Some(certificate)), 0) => return Ok(certificate),
        (Some(None), 0) => "it is cut, or no Base64".to_owned(),
        (None, _) => "it has no PEM block of one".to_owned(),
        (_, others) => format!(
            "it has {}, and a Merkle Tree Certificate stands alone: leave the others out",
            others + 1
        ),
    };
    Err(Failure::Usage(format!(
        "there is not one certificate in \"{}\": {problem}",
        path.display()
    )))
}

/// A cosigner's private key.
pub(super) fn read_key(path: &Path, id: TrustAnchorId) -> Result<SigningKey, Failure> {
    let key = SigningKey::from_pem(id, &read_file(path)?);
    key.map_err(|error| no_key(path, "private", error))
}

/// A cosigner's public key, as a SubjectPublicKeyInfo in DER.
pub(super) fn read_public_key(path: &Path) -> Result<Vec<u8>, Failure> {
    let text = String::from_utf8_lossy(&read_file(path)?).into_owned();
    let key = pem::decode(PUBLIC_KEY, &text).unwrap_or_default();
    match PublicKey::from_der(&key) {
        Ok(_) => Ok(key),
        Err(error) => Err(no_key(path, "public", error)),
    }
}

/// OpenSSL's own words name functions of its sources, and no file.
fn no_key(path: &Path, kind: &str, error: KeyError) -> Failure {
    let problem = match error {
        KeyError::OpenSsl(_) => "it can't be read as one".to_owned(),
        other => other.to_string(),
    };
    Failure::Usage(format!(
        "there is no {kind} key in \"{}\": {problem}: put back the file that lastbyte mtc ca wrote",
        path.display()
    ))
}

pub(super) fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .map_err(|error| Failure::Usage(format!("can't make \"{}\": {error}", path.display())))
}

pub(super) fn write_file(path: &Path, content: &[u8]) -> Result<(), Failure> {
    lastbyte_files::write(path, content).map_err(|error| crate::draft::cannot_write(path, error))
}

/// Refuses to write in the place of a key, or of what goes with one.
pub(super) fn refuse_taken(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(_) => Err(Failure::Usage(format!(
            "there is \"{}\" already: name another folder, or move it away",
            path.display()
        ))),
        Err(_) => Ok(()),
    }
}

/// Writes a new file that only its owner may read.
pub(super) fn write_private(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600);
    let written = file.open(path).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.map_err(|error| crate::draft::cannot_write(path, error))
}
