//! FN-DSA keys: made, encoded, and used to sign.

use std::sync::{Mutex, PoisonError};

use fn_dsa::{
    CryptoRng, DOMAIN_NONE, HASH_ID_RAW, KeyPairGenerator, KeyPairGeneratorStandard, RngCore,
    RngError, SigningKey, SigningKeyStandard, VerifyingKey, VerifyingKeyStandard,
};
use openssl::error::ErrorStack;
use openssl::rand::rand_bytes;

use crate::{FN_DSA, TlsSignature};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// The degree of the polynomials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Degree {
    N512,
    N1024,
}

impl Degree {
    pub(crate) const ALL: [Degree; 2] = [Degree::N512, Degree::N1024];

    fn log_n(self) -> u32 {
        match self {
            Degree::N512 => fn_dsa::FN_DSA_LOGN_512,
            Degree::N1024 => fn_dsa::FN_DSA_LOGN_1024,
        }
    }

    pub(crate) fn algorithm(self) -> &'static TlsSignature {
        match self {
            Degree::N512 => &FN_DSA[0],
            Degree::N1024 => &FN_DSA[1],
        }
    }

    /// Bytes of a public key.
    pub(crate) fn public_key_bytes(self) -> usize {
        fn_dsa::vrfy_key_size(self.log_n())
    }

    fn private_key_bytes(self) -> usize {
        fn_dsa::sign_key_size(self.log_n())
    }

    /// Bytes of any signature.
    pub(crate) fn signature_bytes(self) -> usize {
        fn_dsa::signature_size(self.log_n())
    }

    /// The DER of the `AlgorithmIdentifier` of keys and of signatures.
    pub(crate) fn identifier(self) -> Vec<u8> {
        // 1.3.6.1.4.1.32473 and an arc of one byte; see `FN_DSA`.
        let last_arc = match self {
            Degree::N512 => 2,
            Degree::N1024 => 3,
        };
        let oid = [0x2b, 6, 1, 4, 1, 0x81, 0xfd, 0x59, last_arc];
        element(SEQUENCE, &element(OBJECT_IDENTIFIER, &oid))
    }
}

/// A public key, and perhaps its private key.
pub(crate) struct Key {
    degree: Degree,
    public: Vec<u8>,
    verifier: VerifyingKeyStandard,
    private: Option<PrivateKey>,
}

struct PrivateKey {
    encoded: Vec<u8>,
    /// Decoding takes a fifth of the time of a signature, so it is done once. It has room to
    /// compute in, so only one signature is made at a time.
    signer: Mutex<Box<SigningKeyStandard>>,
}

impl Key {
    pub(crate) fn generate(degree: Degree) -> Option<Key> {
        let mut private = vec![0; degree.private_key_bytes()];
        let mut public = vec![0; degree.public_key_bytes()];
        let mut random = Random::default();
        KeyPairGeneratorStandard::default().keygen(
            degree.log_n(),
            &mut random,
            &mut private,
            &mut public,
        );
        random.0.ok()?;
        Key::from_private(degree, &private)
    }

    fn from_private(degree: Degree, encoded: &[u8]) -> Option<Key> {
        let signer = SigningKeyStandard::decode(encoded)?;
        if signer.get_logn() != degree.log_n() {
            return None;
        }
        let mut public = vec![0; degree.public_key_bytes()];
        signer.to_verifying_key(&mut public);
        let private = PrivateKey {
            encoded: encoded.to_vec(),
            signer: Mutex::new(Box::new(signer)),
        };
        Some(Key {
            private: Some(private),
            ..Key::from_public(degree, public)?
        })
    }

    fn from_public(degree: Degree, public: Vec<u8>) -> Option<Key> {
        if public.len() != degree.public_key_bytes() {
            return None;
        }
        Some(Key {
            degree,
            verifier: VerifyingKeyStandard::decode(&public)?,
            public,
            private: None,
        })
    }

    pub(crate) fn degree(&self) -> Degree {
        self.degree
    }

    pub(crate) fn has_private(&self) -> bool {
        self.private.is_some()
    }

    /// Whether the public keys are the same.
    pub(crate) fn matches(&self, other: &Key) -> bool {
        self.degree == other.degree && self.public == other.public
    }

    /// Signs the message itself, with no context. `signature` must have the right length.
    pub(crate) fn sign(&self, message: &[u8], signature: &mut [u8]) -> Option<()> {
        if signature.len() != self.degree.signature_bytes() {
            return None;
        }
        let private = self.private.as_ref()?;
        let mut signer = private
            .signer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut random = Random::default();
        signer.sign(&mut random, &DOMAIN_NONE, &HASH_ID_RAW, message, signature)?;
        random.0.ok()
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        self.verifier
            .verify(signature, &DOMAIN_NONE, &HASH_ID_RAW, message)
    }
}

/// A way to write a key.
pub(crate) trait Structure {
    /// Its name in PEM (RFC 7468).
    const LABEL: &'static str;
    /// Bytes that none of these keys exceeds.
    const MOST_BYTES: usize = 4096;

    fn to_der(key: &Key) -> Option<Vec<u8>>;
    fn from_der(degree: Degree, der: &[u8]) -> Option<Key>;
}

/// RFC 5280, section 4.1. The key is the bare bytes, as draft-ietf-lamps-fn-dsa-certificates has it.
pub(crate) struct SubjectPublicKeyInfo;

/// RFC 5958, section 2. The key is the bare bytes of the implementation: a form for exchange is
/// yet to come with FIPS 206.
pub(crate) struct PrivateKeyInfo;

impl Structure for SubjectPublicKeyInfo {
    const LABEL: &'static str = "PUBLIC KEY";

    fn to_der(key: &Key) -> Option<Vec<u8>> {
        let bits = element(BIT_STRING, &[&[0], &key.public[..]].concat());
        let parts = [key.degree.identifier(), bits];
        Some(element(SEQUENCE, &parts.concat()))
    }

    fn from_der(degree: Degree, der: &[u8]) -> Option<Key> {
        let [identifier, bits] = parts(der, [SEQUENCE, BIT_STRING])?;
        let [0, public @ ..] = bits else { return None };
        is_identifier(degree, identifier).then_some(())?;
        Key::from_public(degree, public.to_vec())
    }
}

impl Structure for PrivateKeyInfo {
    const LABEL: &'static str = "PRIVATE KEY";

    fn to_der(key: &Key) -> Option<Vec<u8>> {
        let parts = [
            element(INTEGER, &[0]),
            key.degree.identifier(),
            element(OCTET_STRING, &key.private.as_ref()?.encoded),
        ];
        Some(element(SEQUENCE, &parts.concat()))
    }

    fn from_der(degree: Degree, der: &[u8]) -> Option<Key> {
        let [_, identifier, private] = parts(der, [INTEGER, SEQUENCE, OCTET_STRING])?;
        is_identifier(degree, identifier).then_some(())?;
        Key::from_private(degree, private)
    }
}

fn is_identifier(degree: Degree, contents: &[u8]) -> bool {
    degree.identifier() == element(SEQUENCE, contents)
}

/// A DER element.
fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len();
    let header = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        // No key is longer than this allows.
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [header, contents.to_vec()].concat()
}

/// The contents of the elements of a SEQUENCE that has just these.
fn parts<const N: usize>(der: &[u8], tags: [u8; N]) -> Option<[&[u8]; N]> {
    let (mut contents, rest) = split_element(der, SEQUENCE)?;
    let mut parts = [&[][..]; N];
    for (part, tag) in parts.iter_mut().zip(tags) {
        (*part, contents) = split_element(contents, tag)?;
    }
    (rest.is_empty() && contents.is_empty()).then_some(parts)
}

/// The contents of the first element, and what follows it.
fn split_element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (length, rest) = match rest {
        [0x81, length, rest @ ..] if *length >= 0x80 => (usize::from(*length), rest),
        [0x82, high, low, rest @ ..] if *high != 0 => {
            (usize::from(u16::from_be_bytes([*high, *low])), rest)
        }
        [length, rest @ ..] if *length < 0x80 => (usize::from(*length), rest),
        _ => return None,
    };
    if *found != tag {
        return None;
    }
    rest.split_at_checked(length)
}

/// OpenSSL's random numbers, so that there is one source of them, and whether all were to be had.
struct Random(Result<(), ErrorStack>);

impl Default for Random {
    fn default() -> Random {
        Random(Ok(()))
    }
}

impl CryptoRng for Random {}

impl RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_ne_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// Can't fail, so a failure is kept, and whoever asked looks at it.
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        if let Err(error) = rand_bytes(bytes) {
            self.0 = Err(error);
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), RngError> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
