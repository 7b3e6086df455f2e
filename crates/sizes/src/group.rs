//! Key-exchange groups: names, code points, sizes.

use std::fmt;
use std::str::FromStr;

/// A key-exchange group of TLS 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// ECDHE over NIST P-256 (RFC 8446).
    Secp256r1,
    /// ECDHE over Curve25519 (RFC 8446).
    X25519,
    /// ECDHE over NIST P-384 (RFC 8446).
    Secp384r1,
    /// P-256 and ML-KEM-768 (RFC 10024).
    Secp256r1MlKem768,
    /// Curve25519 and ML-KEM-768 (RFC 10024).
    X25519MlKem768,
    /// P-384 and ML-KEM-1024 (RFC 10024).
    Secp384r1MlKem1024,
    /// ML-KEM-768 alone (draft-ietf-tls-mlkem).
    MlKem768,
    /// ML-KEM-1024 alone (draft-ietf-tls-mlkem).
    MlKem1024,
}

impl Group {
    /// All groups, the classical ones first.
    pub const ALL: [Group; 8] = [
        Group::Secp256r1,
        Group::X25519,
        Group::Secp384r1,
        Group::Secp256r1MlKem768,
        Group::X25519MlKem768,
        Group::Secp384r1MlKem1024,
        Group::MlKem768,
        Group::MlKem1024,
    ];

    /// The name in IANA's registry "TLS Supported Groups".
    pub fn name(self) -> &'static str {
        match self {
            Group::Secp256r1 => "secp256r1",
            Group::X25519 => "x25519",
            Group::Secp384r1 => "secp384r1",
            Group::Secp256r1MlKem768 => "SecP256r1MLKEM768",
            Group::X25519MlKem768 => "X25519MLKEM768",
            Group::Secp384r1MlKem1024 => "SecP384r1MLKEM1024",
            Group::MlKem768 => "MLKEM768",
            Group::MlKem1024 => "MLKEM1024",
        }
    }

    /// The value in IANA's registry "TLS Supported Groups".
    pub fn code_point(self) -> u16 {
        match self {
            Group::Secp256r1 => 0x0017,
            Group::X25519 => 0x001D,
            Group::Secp384r1 => 0x0018,
            Group::Secp256r1MlKem768 => 0x11EB,
            Group::X25519MlKem768 => 0x11EC,
            Group::Secp384r1MlKem1024 => 0x11ED,
            Group::MlKem768 => 0x0201,
            Group::MlKem1024 => 0x0202,
        }
    }

    /// Bytes of the client's key share: a point, an encapsulation key, or both.
    pub fn client_share_bytes(self) -> usize {
        const ML_KEM_768: usize = 1184;
        const ML_KEM_1024: usize = 1568;
        self.share_bytes(ML_KEM_768, ML_KEM_1024)
    }

    /// Bytes of the server's key share: a point, a ciphertext, or both.
    pub fn server_share_bytes(self) -> usize {
        const ML_KEM_768: usize = 1088;
        const ML_KEM_1024: usize = 1568;
        self.share_bytes(ML_KEM_768, ML_KEM_1024)
    }

    /// With what a side sends of ML-KEM.
    fn share_bytes(self, ml_kem_768: usize, ml_kem_1024: usize) -> usize {
        const P256: usize = 65;
        const X25519: usize = 32;
        const P384: usize = 97;
        match self {
            Group::Secp256r1 => P256,
            Group::X25519 => X25519,
            Group::Secp384r1 => P384,
            Group::Secp256r1MlKem768 => P256 + ml_kem_768,
            Group::X25519MlKem768 => X25519 + ml_kem_768,
            Group::Secp384r1MlKem1024 => P384 + ml_kem_1024,
            Group::MlKem768 => ml_kem_768,
            Group::MlKem1024 => ml_kem_1024,
        }
    }

    /// What else the group is called, in lower case and without punctuation.
    fn other_names(self) -> &'static [&'static str] {
        match self {
            Group::Secp256r1 => &["p256", "prime256v1", "nistp256"],
            Group::X25519 => &["curve25519"],
            Group::Secp384r1 => &["p384", "nistp384"],
            Group::Secp256r1MlKem768 => &["p256mlkem768"],
            Group::X25519MlKem768 => &["x25519kyber768", "x25519kyber768draft00"],
            Group::Secp384r1MlKem1024 => &["p384mlkem1024"],
            Group::MlKem768 => &["kyber768"],
            Group::MlKem1024 => &["kyber1024"],
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Group {
    type Err = UnknownGroup;

    /// Reads an IANA name, letter case included.
    fn from_str(text: &str) -> Result<Group, UnknownGroup> {
        Group::ALL
            .into_iter()
            .find(|group| group.name() == text)
            .ok_or_else(|| UnknownGroup::new(text))
    }
}

/// The text is not the IANA name of a [`Group`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown group {text:?}: {hint}")]
pub struct UnknownGroup {
    text: String,
    hint: String,
}

impl UnknownGroup {
    fn new(text: &str) -> UnknownGroup {
        const ALIKE: f64 = 0.6;
        let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        let likeness = |group: Group| {
            std::iter::once(group.name().to_ascii_lowercase().as_str())
                .chain(group.other_names().iter().copied())
                .map(|name| strsim::normalized_damerau_levenshtein(&plain, name))
                .fold(0.0, f64::max)
        };
        let hint = Group::ALL
            .into_iter()
            .map(|group| (likeness(group), group))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, nearest)| format!("did you mean \"{nearest}\"?"))
            .unwrap_or_else(|| format!("use one of {}", Group::ALL.map(Group::name).join(", ")));
        UnknownGroup {
            text: text.to_owned(),
            hint,
        }
    }
}

#[cfg(test)]
mod tests;
