//! Keys of the algorithms that chains can be made with.

use lastbyte_providers as providers;
use lastbyte_sizes::KeyAlgorithm::{self, *};
use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{HasPublic, Id, KeyType, PKey, PKeyRef, Private};
use openssl::rand::rand_bytes;
use openssl::rsa::Rsa;
use openssl::sign::Signer;

use crate::error::PkiError;

/// The algorithm of a key, or `None` for one that chains are not made with.
pub fn key_algorithm<T: HasPublic>(key: &PKeyRef<T>) -> Option<KeyAlgorithm> {
    if key.is_a(KeyType::ML_DSA_44) {
        return Some(MlDsa44);
    } else if key.is_a(KeyType::ML_DSA_65) {
        return Some(MlDsa65);
    } else if key.is_a(KeyType::ML_DSA_87) {
        return Some(MlDsa87);
    }
    let provided = KeyAlgorithm::ALL.into_iter().find(|algorithm| {
        let signature = algorithm.provided();
        signature.is_some_and(|signature| providers::is_a(key, signature.algorithm))
    });
    if provided.is_some() {
        return provided;
    }
    match (key.id(), key.bits()) {
        (Id::RSA, 2048) => Some(Rsa2048),
        (Id::RSA, 3072) => Some(Rsa3072),
        (Id::RSA, 4096) => Some(Rsa4096),
        (Id::EC, _) => match key.ec_key().ok()?.group().curve_name()? {
            Nid::X9_62_PRIME256V1 => Some(EcdsaP256),
            Nid::SECP384R1 => Some(EcdsaP384),
            _ => None,
        },
        _ => None,
    }
}

/// The curves that TLS 1.3 has signatures of and chains are not made with (RFC 8446, RFC 8734).
const OTHER_CURVES: [Nid; 4] = [
    Nid::SECP521R1,
    Nid::BRAINPOOL_P256R1,
    Nid::BRAINPOOL_P384R1,
    Nid::BRAINPOOL_P512R1,
];

/// Why servers and browsers have no TLS 1.3 with a key that has signatures there; none of one that
/// they take.
pub(crate) fn refused<T: HasPublic>(key: &PKeyRef<T>) -> Option<&'static str> {
    /// Of OpenSSL's usual security level, and of browsers.
    const LEAST_RSA: u32 = 2048;
    /// What RSASSA-PSS with SHA-512 needs: digest, salt and two bytes.
    const LEAST_SHA_512: u32 = 8 * (64 + 64 + 2);
    match key.id() {
        Id::RSA | Id::RSA_PSS if key.bits() < LEAST_SHA_512 => Some(
            "they take RSA of 2048 bits or more, and RSASSA-PSS with SHA-512 does not fit it: take one of those",
        ),
        Id::RSA | Id::RSA_PSS if key.bits() < LEAST_RSA => {
            Some("they take RSA of 2048 bits or more: take one of those")
        }
        Id::EC => {
            let key = key.ec_key().ok()?;
            let curve = key.group().curve_name()?;
            let is_brainpool = OTHER_CURVES.contains(&curve) && curve != Nid::SECP521R1;
            is_brainpool.then_some(
                "RFC 8446 has no signature of its curve, and next to nobody has those of RFC 8734, with which this is \
                 calculated: take P-256, P-384 or P-521",
            )
        }
        _ => None,
    }
}

/// How long a key's signatures are in TLS 1.3, in bytes: at least, but for one in a hundred, most
/// often, and at most. `None` if it has no signature scheme.
pub(crate) fn tls_signature_bytes<T: HasPublic>(key: &PKeyRef<T>) -> Option<[usize; 3]> {
    /// What RSASSA-PSS with SHA-256 needs: digest, salt and two bytes.
    const LEAST_RSA: u32 = 8 * (32 + 32 + 2);
    if let Some(algorithm) = key_algorithm(key) {
        return Some([
            algorithm.shortest_signature_bytes(),
            algorithm.signature_bytes(),
            algorithm.longest_signature_bytes(),
        ]);
    }
    match key.id() {
        Id::RSA | Id::RSA_PSS if key.bits() >= LEAST_RSA => Some([key.size(); 3]),
        Id::ED25519 | Id::ED448 => Some([key.size(); 3]),
        Id::EC => {
            let key = key.ec_key().ok()?;
            let curve = key.group().curve_name()?;
            let mut order = BigNum::new().ok()?;
            let mut context = BigNumContext::new().ok()?;
            key.group().order(&mut order, &mut context).ok()?;
            let is_listed = OTHER_CURVES.contains(&curve);
            is_listed.then(|| ecdsa_signature_bytes(&order.to_vec()))
        }
        _ => None,
    }
}

/// How long signatures of ECDSA are in DER, where their two integers are below `order`: at least,
/// but for one in a hundred, most often, and at most.
pub(crate) fn ecdsa_signature_bytes(order: &[u8]) -> [usize; 3] {
    let top = order.iter().chain([&0; 8]).take(8);
    let top = top.fold(0.0_f64, |top, byte| top * 256.0 + f64::from(*byte)) / 256_f64.powi(7);
    // In its longest form, an integer has a byte of zeros before a first bit that is set.
    let (longest, border): (usize, f64) = match top {
        128.0.. => (order.len() + 1, 128.0),
        // Numbers below the border have a byte less: their first one is no more than half full.
        _ => (order.len(), 0.5),
    };
    let is_longest = 1.0 - border / top;
    let of_longest = [
        (1.0 - is_longest).powi(2),
        2.0 * is_longest * (1.0 - is_longest),
        is_longest.powi(2),
    ];
    let likeliest = (0..3).max_by(|one, other| {
        let share = |count: &usize| of_longest.get(*count).copied().unwrap_or_default();
        share(one).total_cmp(&share(other))
    });
    let signature = |of_longest: usize| {
        let integers = 2 * (longest - 1) + of_longest;
        let contents = integers + 2 * 2;
        contents + if contents < 128 { 2 } else { 3 }
    };
    let likeliest = likeliest.unwrap_or_default();
    [signature(0), signature(likeliest), signature(2)]
}

/// What an algorithm does with keys.
pub(crate) trait Keys: Sized {
    /// Makes a new key.
    fn generate(self) -> Result<PKey<Private>, ErrorStack>;

    /// Signs with `key`, which must be of this algorithm. The signature has
    /// exactly [`signature_bytes`](KeyAlgorithm::signature_bytes).
    fn sign(self, key: &PKeyRef<Private>, message: &[u8]) -> Result<Vec<u8>, PkiError>;

    /// The digest of a certificate's signature; the post-quantum ones sign the message itself.
    fn digest(self) -> Option<MessageDigest>;
}

impl Keys for KeyAlgorithm {
    fn generate(self) -> Result<PKey<Private>, ErrorStack> {
        let ec = |curve| PKey::from_ec_key(EcKey::generate(&*EcGroup::from_curve_name(curve)?)?);
        let rsa = |bits| PKey::from_rsa(Rsa::generate(bits)?);
        let ml_dsa = |key_type| {
            let mut seed = [0; 32];
            rand_bytes(&mut seed)?;
            PKey::private_key_from_seed(None, key_type, None, &seed)
        };
        match self {
            EcdsaP256 => ec(Nid::X9_62_PRIME256V1),
            EcdsaP384 => ec(Nid::SECP384R1),
            Rsa2048 => rsa(2048),
            Rsa3072 => rsa(3072),
            Rsa4096 => rsa(4096),
            MlDsa44 => ml_dsa(KeyType::ML_DSA_44),
            MlDsa65 => ml_dsa(KeyType::ML_DSA_65),
            MlDsa87 => ml_dsa(KeyType::ML_DSA_87),
            SlhDsa(_) | FnDsa512 | FnDsa1024 => match self.provided() {
                Some(signature) => providers::generate(signature.algorithm),
                None => Err(ErrorStack::get()),
            },
        }
    }

    fn sign(self, key: &PKeyRef<Private>, message: &[u8]) -> Result<Vec<u8>, PkiError> {
        // About half of all ECDSA signatures have the usual length.
        const ATTEMPTS: u32 = 128;
        for _ in 0..ATTEMPTS {
            let mut signer = match self.digest() {
                Some(digest) => Signer::new(digest, key)?,
                None => Signer::new_without_digest(key)?,
            };
            let signature = signer.sign_oneshot_to_vec(message)?;
            if signature.len() == self.signature_bytes() {
                return Ok(signature);
            }
        }
        Err(PkiError::SignatureLength {
            algorithm: self,
            attempts: ATTEMPTS,
        })
    }

    fn digest(self) -> Option<MessageDigest> {
        match self {
            EcdsaP256 | Rsa2048 | Rsa3072 | Rsa4096 => Some(MessageDigest::sha256()),
            EcdsaP384 => Some(MessageDigest::sha384()),
            MlDsa44 | MlDsa65 | MlDsa87 | SlhDsa(_) | FnDsa512 | FnDsa1024 => None,
        }
    }
}
