//! What a PEM file holds, block by block (RFC 7468), as OpenSSL reads it: it passes over what it
//! does not know, and says nothing.

use crate::error::PemProblem;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// The label of certificates that all of OpenSSL's functions read.
const CERTIFICATE: &str = "CERTIFICATE";
/// Those that servers read as well. What follows the DER of a trusted one says what it is trusted
/// for, and is not sent.
const OTHER_CERTIFICATES: [&str; 2] = ["X509 CERTIFICATE", "TRUSTED CERTIFICATE"];
/// The labels of private keys that OpenSSL has decoders for.
const KEYS: [&str; 5] = [
    "PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "DSA PRIVATE KEY",
];

/// What a PEM file holds.
pub(crate) struct Blocks {
    /// The file with each certificate under the label that OpenSSL reads wherever it reads any.
    pub(crate) pem: String,
    /// What its blocks say they are.
    pub(crate) labels: Vec<String>,
    /// What is in it and is neither read nor expected there.
    pub(crate) left_out: Vec<String>,
    /// The first block that has not come to its end: what it says it is, and the line in which it begins.
    pub(crate) cut: Option<(String, usize)>,
}

impl Blocks {
    /// # Errors
    ///
    /// What makes it a file that no server reads, although it has blocks.
    pub(crate) fn read(file: &[u8]) -> Result<Blocks, PemProblem> {
        if is_utf_16(file) {
            return Err(PemProblem::Utf16);
        }
        let text = String::from_utf8_lossy(file);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut blocks = Blocks {
            pem: String::with_capacity(text.len()),
            labels: Vec::new(),
            left_out: Vec::new(),
            cut: None,
        };
        let mut open = None;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let trimmed = line.trim_end();
            if trimmed.contains('\r') && trimmed.contains(BEGIN) {
                return Err(PemProblem::CarriageReturns);
            }
            match (label(trimmed, BEGIN), label(trimmed, END)) {
                (Some(found), _) => {
                    blocks.cut = blocks.cut.or(open.replace((found.to_owned(), index + 1)));
                    blocks.labels.push(found.to_owned());
                    let what = format!("{found:?}");
                    if !is_expected(found) && !blocks.left_out.contains(&what) {
                        blocks.left_out.push(what);
                    }
                }
                (None, Some(found)) => {
                    open.take_if(|(begun, _)| begun == found);
                }
                (None, None) if is_meant_to_begin(trimmed) => {
                    let what = format!("what begins in line {}", index + 1);
                    blocks.left_out.push(what);
                }
                _ => {}
            }
            blocks.pem.push_str(&relabelled(line, trimmed));
        }
        blocks.cut = blocks.cut.or(open);
        Ok(blocks)
    }

    /// The first label that says that a private key is there.
    pub(crate) fn key(&self) -> Option<Key<'_>> {
        let mut keys = self.labels.iter().filter(|label| is_key(label));
        let first = keys.next()?;
        let mut labels = [first].into_iter().chain(keys);
        Some(if labels.any(|label| KEYS.contains(&label.as_str())) {
            Key::Known
        } else {
            Key::Unknown(first)
        })
    }
}

/// Whether OpenSSL has a decoder for a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    Known,
    /// By its label.
    Unknown(&'a str),
}

fn label<'a>(line: &'a str, begins: &str) -> Option<&'a str> {
    line.strip_prefix(begins)?.strip_suffix(DASHES)
}

fn relabelled(line: &str, trimmed: &str) -> String {
    for begins in [BEGIN, END] {
        if label(trimmed, begins).is_some_and(|label| OTHER_CERTIFICATES.contains(&label)) {
            return format!("{begins}{CERTIFICATE}{DASHES}\n");
        }
    }
    line.to_owned()
}

fn is_key(label: &str) -> bool {
    label.ends_with("PRIVATE KEY")
}

/// Whether a block belongs in a file of certificates and keys: parameters lie before the key that
/// they are of.
fn is_expected(label: &str) -> bool {
    label == CERTIFICATE
        || OTHER_CERTIFICATES.contains(&label)
        || is_key(label)
        || label.ends_with(" PARAMETERS")
}

/// Whether a line would begin a block, but for blanks before it, its dashes or its case.
fn is_meant_to_begin(line: &str) -> bool {
    let dash = |letter: char| matches!(letter, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    let line = line.trim();
    let word = line.trim_matches(dash).trim_start();
    let begins = word
        .get(..6)
        .is_some_and(|word| word.eq_ignore_ascii_case("BEGIN "));
    begins && line.starts_with(dash)
}

/// Whether the word that every block begins with is there in 16 bits a letter.
fn is_utf_16(file: &[u8]) -> bool {
    const LITTLE: &[u8] = b"B\0E\0G\0I\0N\0";
    const BIG: &[u8] = b"\0B\0E\0G\0I\0N";
    let mut windows = file.windows(LITTLE.len());
    windows.any(|window| window == LITTLE || window == BIG)
}
