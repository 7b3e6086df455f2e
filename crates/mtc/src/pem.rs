//! PEM (RFC 7468): certificates, and the properties that come with them.

use crate::note::{base64, unbase64};

/// The label of a certificate.
pub const CERTIFICATE: &str = "CERTIFICATE";

/// The label of a public key, which is a SubjectPublicKeyInfo.
pub const PUBLIC_KEY: &str = "PUBLIC KEY";

/// Bytes as PEM.
pub fn encode(label: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in bytes.chunks(48) {
        text.push_str(&base64(line));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

/// The bytes of the first block with this label, if there is one that is whole.
pub fn decode(label: &str, text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let digits: String = body.split_ascii_whitespace().collect();
    unbase64(&digits)
}
