//! SHA-256, in hexadecimal.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use openssl::sha::Sha256;

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(openssl::sha::sha256(bytes))
}

/// The SHA-256 of a file, in hexadecimal.
///
/// # Errors
///
/// When it can't be read.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex::encode(digest.finish())),
            Ok(read) => digest.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
