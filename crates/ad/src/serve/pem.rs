//! Whether a file of PEM is whole. OpenSSL takes what it can read and says nothing of the rest.

use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use thiserror::Error;
use zeroize::Zeroizing;

const DASHES: &[u8] = b"-----";
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
/// The label of certificates that all of OpenSSL's functions read.
const CERTIFICATE: &[u8] = b"CERTIFICATE";
/// What some editors write before a file's first letter.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a file is not whole. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PemError {
    /// A block that begins in this line does not end.
    #[error("what begins in line {0} does not end: the file is cut, or still being written")]
    Cut(usize),
    /// A line that looks like a block's first or last is neither.
    #[error("line {0} is no whole line of PEM: the file is cut, or still being written")]
    Line(usize),
    /// Something that is no block comes after the last one.
    #[error("line {0} has something left over after the last certificate")]
    LeftOver(usize),
    /// No block is a certificate.
    #[error("there is no certificate")]
    NoCertificate,
    /// No block is a private key.
    #[error("there is no private key: name the file that has it")]
    NoKey,
    /// The private key has a passphrase, for which nobody can be asked.
    #[error("the key is encrypted: give one without a passphrase")]
    Encrypted,
    /// The block of a private key holds none that OpenSSL can read.
    #[error(
        "the private key can't be read: its file is damaged, or OpenSSL does not know its algorithm"
    )]
    Key,
    /// No client of TLS 1.3 takes what such a key signs (RFC 8446, section 4.2.3), or OpenSSL does
    /// not sign with it.
    #[error(
        "the private key is of {0}, with which no server can sign in TLS 1.3: use ECDSA with P-256, P-384 or P-521, RSA of 2048 bits or more, EdDSA or ML-DSA"
    )]
    CannotSign(String),
    /// OpenSSL reads fewer certificates than the file says it has.
    #[error("only {read} of its {blocks} certificates can be read")]
    Unread {
        /// Blocks with that label.
        blocks: usize,
        /// Certificates.
        read: usize,
    },
}

/// A file as OpenSSL reads all of it: without a byte order mark, and each certificate under the
/// label that is read everywhere. What follows the DER of a trusted one says what it is trusted
/// for, and is not sent.
pub(super) fn readable(pem: &[u8]) -> Zeroizing<Vec<u8>> {
    let pem = pem.strip_prefix(BYTE_ORDER_MARK).unwrap_or(pem);
    let mut readable = Zeroizing::new(Vec::with_capacity(pem.len()));
    for line in pem.split_inclusive(|byte| *byte == b'\n') {
        let trimmed = line.trim_ascii_end();
        let other = [BEGIN, END].into_iter().find(|begins| {
            let label = label_of(trimmed, begins);
            label.is_some_and(|label| label != CERTIFICATE && is_certificate(label))
        });
        match other {
            Some(begins) => {
                for part in [begins, CERTIFICATE, DASHES, b"\n"] {
                    readable.extend_from_slice(part);
                }
            }
            None => readable.extend_from_slice(line),
        }
    }
    readable
}

/// Counts the certificates of a file that consists of whole blocks (RFC 7468), with text between
/// them or without.
///
/// # Errors
///
/// If a block is cut, the next one's first line included, or if something follows the last block.
pub(super) fn certificates(pem: &[u8]) -> Result<usize, PemError> {
    let mut count = 0;
    let mut open: Option<(usize, &[u8])> = None;
    // Blank or not, after the last block.
    let mut after: Option<usize> = None;
    let mut blocks = 0;
    let mut lines = pem.split(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let number = at + 1;
        let line = line.trim_ascii_end();
        // Between blocks, people underline what they write. Only the last line of a file may be the
        // beginning of another one.
        let is_cut = lines.peek().is_none() && line.starts_with(DASHES) && BEGIN.starts_with(line);
        let is_boundary = match open {
            Some(_) => line.starts_with(DASHES),
            None => is_cut || [BEGIN, END].iter().any(|begins| line.starts_with(begins)),
        };
        match open {
            Some((_, label)) if is_boundary => {
                if label_of(line, END) != Some(label) {
                    return Err(PemError::Line(number));
                }
                open = None;
            }
            Some(_) => {}
            None if is_boundary => {
                let label = label_of(line, BEGIN).ok_or(PemError::Line(number))?;
                open = Some((number, label));
                blocks += 1;
                after = None;
                if is_certificate(label) {
                    count += 1;
                }
            }
            None if line.is_empty() => {}
            None => after = after.or(Some(number)),
        }
    }
    match (open, after) {
        (Some((number, _)), _) => Err(PemError::Cut(number)),
        (None, Some(number)) if blocks > 0 => Err(PemError::LeftOver(number)),
        _ => Ok(count),
    }
}

/// The first private key, of whatever form.
///
/// # Errors
///
/// If no block says that it is one, or that can't be read without being asked for a passphrase.
pub(super) fn key(pem: &[u8]) -> Result<PKey<Private>, PemError> {
    let pem = &*readable(pem);
    let lines = pem.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut lines = lines.skip_while(|line| {
        !label_of(line, BEGIN).is_some_and(|label| label.ends_with(b"PRIVATE KEY"))
    });
    let begin = lines.next().ok_or(PemError::NoKey)?;
    // OpenSSL's older form of encryption has it in a header (RFC 1421, section 4.6.1.1).
    let is_header = |line: &[u8]| line.starts_with(b"Proc-Type:") && line.ends_with(b"ENCRYPTED");
    if label_of(begin, BEGIN) == Some(b"ENCRYPTED PRIVATE KEY")
        || lines.next().is_some_and(is_header)
    {
        return Err(PemError::Encrypted);
    }
    // With a passphrase, so that OpenSSL never asks for one. Its words for what it can't read are
    // no help.
    let key = PKey::private_key_from_pem_passphrase(pem, b"").map_err(|_| PemError::Key)?;
    match cannot_sign(&key) {
        Some(kind) => Err(PemError::CannotSign(kind)),
        None => Ok(key),
    }
}

/// What a key is that can't sign in TLS 1.3; none of one that can.
fn cannot_sign(key: &PKey<Private>) -> Option<String> {
    /// OpenSSL's second security level, which is the usual one, takes none that is shorter.
    const LEAST_RSA: u32 = 2048;
    const CURVES: [Nid; 3] = [Nid::X9_62_PRIME256V1, Nid::SECP384R1, Nid::SECP521R1];
    if let Ok(key) = key.ec_key() {
        let curve = key.group().curve_name();
        let is_supported = curve.is_some_and(|curve| CURVES.contains(&curve));
        let name = curve.and_then(|curve| curve.short_name().ok());
        return (!is_supported)
            .then(|| format!("the curve {}", name.unwrap_or("that it names itself")));
    }
    let bits = key.bits();
    let is_short = key.rsa().is_ok() && bits < LEAST_RSA;
    is_short.then(|| format!("RSA with {bits} bits"))
}

fn label_of<'a>(line: &'a [u8], begins: &[u8]) -> Option<&'a [u8]> {
    let label = line.strip_prefix(begins)?.strip_suffix(DASHES)?;
    (!label.is_empty() && !label.contains(&b'-')).then_some(label)
}

/// The labels that OpenSSL reads certificates from.
fn is_certificate(label: &[u8]) -> bool {
    matches!(
        label,
        b"CERTIFICATE" | b"X509 CERTIFICATE" | b"TRUSTED CERTIFICATE"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use openssl::ec::{EcGroup, EcKey};
    use openssl::nid::Nid;
    use openssl::pkey::{KeyType, PKey};
    use openssl::rsa::Rsa;
    use openssl::symm::Cipher;

    use super::{PemError, certificates, key, readable};

    #[test]
    fn what_is_wrong_with_a_key_is_told_without_openssls_words() {
        let rsa = Rsa::generate(2048).unwrap();
        let made = PKey::from_rsa(rsa.clone()).unwrap();
        let good = made.private_key_to_pem_pkcs8().unwrap();
        assert!(key(&good).unwrap().public_eq(&made));
        let cipher = Cipher::aes_128_cbc();
        let new = made
            .private_key_to_pem_pkcs8_passphrase(cipher, b"x")
            .unwrap();
        let old = rsa.private_key_to_pem_passphrase(cipher, b"x").unwrap();
        let damaged = String::from_utf8(good)
            .unwrap()
            .replacen("\nMII", "\nMIX", 1);
        for (pem, wrong) in [
            (new, PemError::Encrypted),
            (old, PemError::Encrypted),
            (damaged.into_bytes(), PemError::Key),
            (TWO.into(), PemError::NoKey),
        ] {
            assert_eq!(key(&pem).unwrap_err(), wrong);
        }
    }

    #[test]
    fn a_key_that_can_not_sign_is_refused_before_anybody_connects() {
        let ec = |curve| {
            let group = EcGroup::from_curve_name(curve).unwrap();
            PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
        };
        let rsa = |bits| PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap();
        for (made, kind) in [
            (ec(Nid::X9_62_PRIME256V1), None),
            (ec(Nid::SECP521R1), None),
            (rsa(2048), None),
            (PKey::generate_ed25519().unwrap(), None),
            (ec(Nid::SECP256K1), Some("the curve secp256k1")),
            (ec(Nid::BRAINPOOL_P256R1), Some("the curve brainpoolP256r1")),
            (rsa(1024), Some("RSA with 1024 bits")),
        ] {
            let pem = made.private_key_to_pem_pkcs8().unwrap();
            let found = key(&pem).map(|found| found.public_eq(&made));
            let expected = match kind {
                None => Ok(true),
                Some(kind) => Err(PemError::CannotSign(kind.to_owned())),
            };
            assert_eq!(found, expected);
        }
    }

    /// RFC 9881, section 6: the seed, what is made of it, or both.
    #[test]
    fn each_form_of_an_ml_dsa_key_is_read() {
        for (size, kind) in [
            (2560, KeyType::ML_DSA_44),
            (4032, KeyType::ML_DSA_65),
            (4896, KeyType::ML_DSA_87),
        ] {
            let made = PKey::private_key_from_seed(None, kind, None, &[7; 32]).unwrap();
            let seed = lastbyte_providers::private_key_pkcs8(&made).unwrap();
            let both = made.private_key_to_pkcs8().unwrap();
            let expanded = of_expanded(&both, size);
            for der in [seed, both, expanded] {
                let pem = format!(
                    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
                    openssl::base64::encode_block(&der)
                );
                assert!(key(pem.as_bytes()).unwrap().public_eq(&made), "{size}");
            }
        }
    }

    /// Of a key with both, one with what was made of the seed alone, which is so large.
    fn of_expanded(both: &[u8], size: usize) -> Vec<u8> {
        let element = |tag, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82, length[0], length[1]], content].concat()
        };
        // Version and algorithm stand behind the header of the whole.
        let head = &both[4..20];
        let expanded = element(0x04, &both[both.len() - size..]);
        element(0x30, &[head, &element(0x04, &expanded)].concat())
    }

    const TWO: &str = "subject=one\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\
                       subject=two\n-----BEGIN CERTIFICATE-----\r\nBBBB\r\n-----END CERTIFICATE-----\r\n";

    #[test]
    fn whole_files_have_all_their_blocks() {
        for (text, count) in [
            ("", 0),
            ("no PEM at all", 0),
            (TWO, 2),
            (TWO.trim_end(), 2),
            (&format!("{TWO}\n \n"), 2),
            (
                "-----BEGIN PRIVATE KEY-----\nA\n-----END PRIVATE KEY-----\n",
                0,
            ),
        ] {
            assert_eq!(certificates(text.as_bytes()), Ok(count), "{text}");
        }
    }

    /// As Windows' editors, people and `openssl x509 -trustout` write files.
    #[test]
    fn marks_lines_of_dashes_and_other_labels_are_no_cut() {
        let underlined = format!("Server\n------\n-----\n----- one -----\n{TWO}");
        assert_eq!(certificates(underlined.as_bytes()), Ok(2));
        let made = PKey::generate_ed25519().unwrap();
        let pem = made.private_key_to_pem_pkcs8().unwrap();
        let marked = [b"\xef\xbb\xbf", &pem[..]].concat();
        assert!(key(&marked).unwrap().public_eq(&made));
        let others = TWO.replace("CERTIFICATE", "TRUSTED CERTIFICATE");
        let marked = format!("\u{feff}{others}");
        let expected = TWO.replace("-----\r\n", "-----\n");
        assert_eq!(readable(marked.as_bytes()).as_slice(), expected.as_bytes());
    }

    #[test]
    fn a_file_that_is_cut_anywhere_but_between_blocks_is_refused() {
        let ends = |cut: &str| cut.is_empty() || cut.trim_end().ends_with("END CERTIFICATE-----");
        // Nothing of the first block is there yet.
        let first = TWO.find('-').unwrap_or_default();
        for at in first + 5..TWO.len() {
            let cut = &TWO[..at];
            let found = certificates(cut.as_bytes());
            assert_eq!(found.is_ok(), ends(cut), "{cut:?}: {found:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, error) in [
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", PemError::Cut(1)),
            (
                "-----BEGIN CERTIFICATE-----\nA\n-----BEGIN CERTIFICATE-----\n",
                PemError::Line(3),
            ),
            (
                "-----BEGIN A-----\nA\n-----END A-----\n\n-----BEG",
                PemError::Line(5),
            ),
            (
                "-----BEGIN A-----\nA\n-----END A-----\n--",
                PemError::LeftOver(4),
            ),
            ("-----BEGIN A-----\nA\n-----END B-----\n", PemError::Line(3)),
        ] {
            assert_eq!(certificates(text.as_bytes()), Err(error), "{text}");
        }
    }
}
