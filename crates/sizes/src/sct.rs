//! Signed Certificate Timestamps as certificates hold them (RFC 6962).

use crate::algorithm::KeyAlgorithm;
use crate::der::{self, Oid, element};
use crate::profile;

/// The extension that a certificate has them in (section 3.3).
pub const EXTENSION: Oid = Oid(&[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2]);

/// The version that there is.
pub const V1: u8 = 0;

/// Bytes of an SCT around its signature: version, log, time, extensions, algorithm, length.
const FRAME: usize = 1 + 32 + 8 + 2 + 2 + 2;

impl KeyAlgorithm {
    /// How an SCT names its signature: by a SignatureAndHashAlgorithm of TLS 1.2 for ECDSA and RSA, else by the
    /// SignatureScheme of TLS 1.3, since RFC 6962 has no others.
    pub fn sct_algorithm(self) -> u16 {
        use KeyAlgorithm::{Rsa2048, Rsa3072, Rsa4096};
        match self {
            Rsa2048 | Rsa3072 | Rsa4096 => 0x0401,
            // Those of ECDSA are the same in both.
            _ => self.signature_schemes().first().copied().unwrap_or(0),
        }
    }
}

/// Bytes of so many SCTs with the lengths before each.
pub fn list_bytes(count: u8, algorithm: KeyAlgorithm) -> usize {
    usize::from(count) * (2 + FRAME + algorithm.signature_bytes())
}

/// The DER of the extension with these SCTs, whose [`list_bytes`] two bytes can say.
pub fn extension(scts: &[Vec<u8>]) -> Vec<u8> {
    let list: Vec<u8> = scts.iter().flat_map(|sct| with_length(sct)).collect();
    profile::extension(EXTENSION, &element(der::OCTET_STRING, &with_length(&list)))
}

/// The same of zeros, which has the same size; nothing for no SCT.
pub fn extension_of_zeros(count: u8, algorithm: KeyAlgorithm) -> Vec<u8> {
    let signature = vec![0; algorithm.signature_bytes()];
    let zeros = sct(&[0; 32], 0, algorithm, &signature);
    match count {
        0 => Vec::new(),
        count => extension(&vec![zeros; usize::from(count)]),
    }
}

/// An SCT (section 3.2) of the log of this number, at a time in milliseconds since 1970.
pub fn sct(log: &[u8; 32], timestamp: u64, algorithm: KeyAlgorithm, signature: &[u8]) -> Vec<u8> {
    [
        &[V1][..],
        log,
        &timestamp.to_be_bytes(),
        &with_length(&[]),
        &algorithm.sct_algorithm().to_be_bytes(),
        &with_length(signature),
    ]
    .concat()
}

/// `bytes`, fewer than 64 KiB, after two bytes of their length.
pub fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}
