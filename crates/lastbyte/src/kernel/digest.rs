//! SHA-256, in hexadecimal.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use openssl::sha::Sha256;

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(openssl::sha::sha256(bytes))
}

pub(super) fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(digest.finish())),
            Ok(read) => digest.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
