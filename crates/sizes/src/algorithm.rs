//! The key and signature algorithms that chains can be made with: names, sizes, code points.

use std::fmt;
use std::slice;
use std::str::FromStr;

use thiserror::Error;

use crate::der;
use crate::signature::{FN_DSA, SLH_DSA, TlsSignature};

/// A key's algorithm and size, which also settles how it signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyAlgorithm {
    /// ECDSA on P-256 with SHA-256.
    EcdsaP256,
    /// ECDSA on P-384 with SHA-384.
    EcdsaP384,
    /// RSA of 2048 bits; certificates are signed with PKCS #1 v1.5 and SHA-256.
    Rsa2048,
    /// RSA of 3072 bits; as [`KeyAlgorithm::Rsa2048`].
    Rsa3072,
    /// RSA of 4096 bits; as [`KeyAlgorithm::Rsa2048`].
    Rsa4096,
    /// ML-DSA-44 (FIPS 204).
    MlDsa44,
    /// ML-DSA-65 (FIPS 204).
    MlDsa65,
    /// ML-DSA-87 (FIPS 204).
    MlDsa87,
    /// SLH-DSA (FIPS 205) with one of its parameter sets.
    SlhDsa(SlhDsa),
    /// FN-DSA-512; see [`FN_DSA`].
    FnDsa512,
    /// FN-DSA-1024; see [`FN_DSA`].
    FnDsa1024,
}

use KeyAlgorithm::*;

/// A parameter set of SLH-DSA (FIPS 205, table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum SlhDsa {
    Sha2_128s,
    Sha2_128f,
    Sha2_192s,
    Sha2_192f,
    Sha2_256s,
    Sha2_256f,
    Shake128s,
    Shake128f,
    Shake192s,
    Shake192f,
    Shake256s,
    Shake256f,
}

impl SlhDsa {
    fn name(self) -> &'static str {
        use self::SlhDsa::*;
        match self {
            Sha2_128s => "slh-dsa-sha2-128s",
            Sha2_128f => "slh-dsa-sha2-128f",
            Sha2_192s => "slh-dsa-sha2-192s",
            Sha2_192f => "slh-dsa-sha2-192f",
            Sha2_256s => "slh-dsa-sha2-256s",
            Sha2_256f => "slh-dsa-sha2-256f",
            Shake128s => "slh-dsa-shake-128s",
            Shake128f => "slh-dsa-shake-128f",
            Shake192s => "slh-dsa-shake-192s",
            Shake192f => "slh-dsa-shake-192f",
            Shake256s => "slh-dsa-shake-256s",
            Shake256f => "slh-dsa-shake-256f",
        }
    }

    fn public_key_bytes(self) -> usize {
        use self::SlhDsa::*;
        match self {
            Sha2_128s | Sha2_128f | Shake128s | Shake128f => 32,
            Sha2_192s | Sha2_192f | Shake192s | Shake192f => 48,
            Sha2_256s | Sha2_256f | Shake256s | Shake256f => 64,
        }
    }

    fn signature_bytes(self) -> usize {
        use self::SlhDsa::*;
        match self {
            Sha2_128s | Shake128s => 7856,
            Sha2_128f | Shake128f => 17088,
            Sha2_192s | Shake192s => 16224,
            Sha2_192f | Shake192f => 35664,
            Sha2_256s | Shake256s => 29792,
            Sha2_256f | Shake256f => 49856,
        }
    }
}

impl KeyAlgorithm {
    /// Whether no quantum computer is known to forge its signatures.
    pub fn is_post_quantum(self) -> bool {
        !matches!(self, EcdsaP256 | EcdsaP384 | Rsa2048 | Rsa3072 | Rsa4096)
    }

    /// Every algorithm, classical ones first, smaller ones first.
    pub const ALL: [KeyAlgorithm; 22] = [
        EcdsaP256,
        EcdsaP384,
        Rsa2048,
        Rsa3072,
        Rsa4096,
        MlDsa44,
        MlDsa65,
        MlDsa87,
        SlhDsa(SlhDsa::Sha2_128s),
        SlhDsa(SlhDsa::Sha2_128f),
        SlhDsa(SlhDsa::Sha2_192s),
        SlhDsa(SlhDsa::Sha2_192f),
        SlhDsa(SlhDsa::Sha2_256s),
        SlhDsa(SlhDsa::Sha2_256f),
        SlhDsa(SlhDsa::Shake128s),
        SlhDsa(SlhDsa::Shake128f),
        SlhDsa(SlhDsa::Shake192s),
        SlhDsa(SlhDsa::Shake192f),
        SlhDsa(SlhDsa::Shake256s),
        SlhDsa(SlhDsa::Shake256f),
        FnDsa512,
        FnDsa1024,
    ];

    /// The name on the command line and in files, such as `ml-dsa-65`.
    pub fn name(self) -> &'static str {
        match self {
            EcdsaP256 => "ecdsa-p256",
            EcdsaP384 => "ecdsa-p384",
            Rsa2048 => "rsa-2048",
            Rsa3072 => "rsa-3072",
            Rsa4096 => "rsa-4096",
            MlDsa44 => "ml-dsa-44",
            MlDsa65 => "ml-dsa-65",
            MlDsa87 => "ml-dsa-87",
            SlhDsa(set) => set.name(),
            FnDsa512 => "fn-dsa-512",
            FnDsa1024 => "fn-dsa-1024",
        }
    }

    /// What TLS and OpenSSL know of an algorithm that OpenSSL itself has no TLS for.
    pub fn provided(self) -> Option<&'static TlsSignature> {
        let [fn_dsa_512, fn_dsa_1024] = &FN_DSA;
        match self {
            // The table has the order of the variants.
            SlhDsa(set) => SLH_DSA.get(set as usize),
            FnDsa512 => Some(fn_dsa_512),
            FnDsa1024 => Some(fn_dsa_1024),
            _ => None,
        }
    }

    /// Bytes of the public key as a certificate's `subjectPublicKey` holds it:
    /// an uncompressed point (SEC 1), an `RSAPublicKey` (RFC 8017), or the raw
    /// key of FIPS 204, table 2, of FIPS 205, table 2, or of FN-DSA.
    pub fn public_key_bytes(self) -> usize {
        match self {
            EcdsaP256 => 65,
            EcdsaP384 => 97,
            Rsa2048 => 270,
            Rsa3072 => 398,
            Rsa4096 => 526,
            MlDsa44 => 1312,
            MlDsa65 => 1952,
            MlDsa87 => 2592,
            SlhDsa(set) => set.public_key_bytes(),
            FnDsa512 => 897,
            FnDsa1024 => 1793,
        }
    }

    /// Bytes of a signature. One of ECDSA varies by a byte or two with the
    /// leading zeros of its two integers; this is the likeliest length, and the
    /// one that certificates made here have.
    pub fn signature_bytes(self) -> usize {
        match self {
            EcdsaP256 => 71,
            EcdsaP384 => 103,
            Rsa2048 => 256,
            Rsa3072 => 384,
            Rsa4096 => 512,
            MlDsa44 => 2420,
            MlDsa65 => 3309,
            MlDsa87 => 4627,
            SlhDsa(set) => set.signature_bytes(),
            FnDsa512 => 666,
            FnDsa1024 => 1280,
        }
    }

    /// Bytes of the longest signature: that of ECDSA whose two integers both begin with a zero byte, every
    /// fourth one.
    pub fn longest_signature_bytes(self) -> usize {
        match self {
            EcdsaP256 | EcdsaP384 => self.signature_bytes() + 1,
            _ => self.signature_bytes(),
        }
    }

    /// Bytes of the shortest signature but for one in a hundred: that of ECDSA whose two integers both begin without a zero
    /// byte, every fourth one.
    pub fn shortest_signature_bytes(self) -> usize {
        match self {
            EcdsaP256 | EcdsaP384 => self.signature_bytes() - 1,
            _ => self.signature_bytes(),
        }
    }

    /// The signature schemes (IANA code points) with which a key can sign in TLS 1.3.
    pub fn signature_schemes(self) -> &'static [u16] {
        match self {
            EcdsaP256 => &[0x0403],
            EcdsaP384 => &[0x0503],
            Rsa2048 | Rsa3072 | Rsa4096 => &[0x0804, 0x0805, 0x0806],
            MlDsa44 => &[0x0904],
            MlDsa65 => &[0x0905],
            MlDsa87 => &[0x0906],
            SlhDsa(_) | FnDsa512 | FnDsa1024 => self
                .provided()
                .map_or(&[], |signature| slice::from_ref(&signature.code_point)),
        }
    }

    /// The DER of the `AlgorithmIdentifier` that names a signature: RFC 4055
    /// section 5, RFC 5758 section 3.2, RFC 9881 section 2, RFC 9909 section 3.
    pub fn signature_identifier(self) -> Vec<u8> {
        use der::object_identifier as oid;
        let oid = match self {
            EcdsaP256 => oid(&[1, 2, 840, 10045, 4, 3, 2]),
            EcdsaP384 => oid(&[1, 2, 840, 10045, 4, 3, 3]),
            Rsa2048 | Rsa3072 | Rsa4096 => oid(&[1, 2, 840, 113549, 1, 1, 11]),
            MlDsa44 => oid(&[2, 16, 840, 1, 101, 3, 4, 3, 17]),
            MlDsa65 => oid(&[2, 16, 840, 1, 101, 3, 4, 3, 18]),
            MlDsa87 => oid(&[2, 16, 840, 1, 101, 3, 4, 3, 19]),
            SlhDsa(_) | FnDsa512 | FnDsa1024 => {
                oid(&self.provided().map(TlsSignature::arcs).unwrap_or_default())
            }
        };
        let null: &[u8] = match self {
            Rsa2048 | Rsa3072 | Rsa4096 => &[0x05, 0x00],
            _ => &[],
        };
        der::sequence(&[&oid, null])
    }

    /// Bytes of the DER of a `SubjectPublicKeyInfo` (RFC 5280 section 4.1).
    pub fn key_info_bytes(self) -> usize {
        // Around the key: two SEQUENCEs, a BIT STRING and the identifier.
        self.public_key_bytes()
            + match self {
                EcdsaP256 => 26,
                EcdsaP384 => 23,
                Rsa2048 | Rsa3072 | Rsa4096 => 24,
                MlDsa44 | MlDsa65 | MlDsa87 | FnDsa512 | FnDsa1024 => 22,
                SlhDsa(_) => 18,
            }
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KeyAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<KeyAlgorithm, UnknownAlgorithm> {
        KeyAlgorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| UnknownAlgorithm::new(name))
    }
}

/// The error of [`KeyAlgorithm::from_str`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown key algorithm {name:?}: {hint}")]
pub struct UnknownAlgorithm {
    name: String,
    hint: String,
}

impl UnknownAlgorithm {
    fn new(name: &str) -> UnknownAlgorithm {
        const ALIKE: f64 = 0.6;
        let lower = name.to_ascii_lowercase();
        let hint = KeyAlgorithm::ALL
            .into_iter()
            .map(|algorithm| {
                let likeness = strsim::normalized_damerau_levenshtein(&lower, algorithm.name());
                (likeness, algorithm)
            })
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .map(|(_, nearest)| format!("did you mean \"{nearest}\"?"))
            .unwrap_or_else(|| {
                let all: Vec<_> = KeyAlgorithm::ALL.map(KeyAlgorithm::name).into();
                format!("use one of {}", all.join(", "))
            });
        UnknownAlgorithm {
            name: name.to_owned(),
            hint,
        }
    }
}
