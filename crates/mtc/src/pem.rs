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
    decode_all(label, text).into_iter().next().flatten()
}

/// The bytes of all blocks with this label. One that is not whole is `None`.
pub fn decode_all(label: &str, text: &str) -> Vec<Option<Vec<u8>>> {
    let (begin, end) = (
        format!("-----BEGIN {label}-----"),
        format!("-----END {label}-----"),
    );
    let blocks = text.split(&begin).skip(1).map(|block| {
        let (body, _) = block.split_once(&end)?;
        let digits: String = body.split_ascii_whitespace().collect();
        unbase64(&digits)
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn each_block_is_found_and_a_cut_one_is_none() {
        let (one, two) = (encode(CERTIFICATE, b"one"), encode(CERTIFICATE, &[2; 100]));
        let key = encode(PUBLIC_KEY, b"key");
        let text = format!("before\n{one}{key}between\n{two}after\n");
        let found = decode_all(CERTIFICATE, &text);
        assert_eq!(found, [Some(b"one".to_vec()), Some(vec![2; 100])]);
        assert_eq!(decode(PUBLIC_KEY, &text).unwrap(), b"key");
        let cut = format!("{}{two}", &one[..one.len() - 2]);
        assert_eq!(decode_all(CERTIFICATE, &cut), [None, Some(vec![2; 100])]);
        assert_eq!(decode_all(CERTIFICATE, "").len(), 0);
    }
}
