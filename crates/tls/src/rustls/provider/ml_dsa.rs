//! ML-DSA (FIPS 204) for rustls: certificates' signatures as RFC 9881 has them, the handshake's as draft-ietf-tls-mldsa (0x0904
//! to 0x0906). Both are pure, with an empty context, as OpenSSL signs by itself.

use std::sync::Arc;

use ::rustls::pki_types::{
    AlgorithmIdentifier, InvalidSignature, PrivateKeyDer, SignatureVerificationAlgorithm,
    SubjectPublicKeyInfoDer, alg_id,
};
use ::rustls::sign::{Signer, SigningKey};
use ::rustls::{Error, SignatureAlgorithm, SignatureScheme};
use openssl::pkey::{KeyType, PKey, Private};

/// What verifies certificates.
pub(super) static VERIFICATION: [&dyn SignatureVerificationAlgorithm; 3] =
    [&ML_DSA_44, &ML_DSA_65, &ML_DSA_87];

/// What a client says that it verifies.
pub(super) static SCHEMES: [(SignatureScheme, &[&dyn SignatureVerificationAlgorithm]); 3] = [
    (ML_DSA_44.scheme, &[&ML_DSA_44]),
    (ML_DSA_65.scheme, &[&ML_DSA_65]),
    (ML_DSA_87.scheme, &[&ML_DSA_87]),
];

/// A private key, if it is one of ML-DSA.
pub(super) fn signing_key(der: &PrivateKeyDer<'_>) -> Option<Arc<dyn SigningKey>> {
    let PrivateKeyDer::Pkcs8(pkcs8) = der else {
        return None;
    };
    let key = PKey::private_key_from_pkcs8(pkcs8.secret_pkcs8_der()).ok()?;
    let mut all = [&ML_DSA_44, &ML_DSA_65, &ML_DSA_87].into_iter();
    let parameters = all.find(|parameters| key.is_a(parameters.key_type))?;
    Some(Arc::new(Key {
        parameters,
        key: Arc::new(key),
    }))
}

static ML_DSA_44: Parameters = Parameters {
    key_type: KeyType::ML_DSA_44,
    identifier: alg_id::ML_DSA_44,
    scheme: SignatureScheme::ML_DSA_44,
};
static ML_DSA_65: Parameters = Parameters {
    key_type: KeyType::ML_DSA_65,
    identifier: alg_id::ML_DSA_65,
    scheme: SignatureScheme::ML_DSA_65,
};
static ML_DSA_87: Parameters = Parameters {
    key_type: KeyType::ML_DSA_87,
    identifier: alg_id::ML_DSA_87,
    scheme: SignatureScheme::ML_DSA_87,
};

/// One set of parameters, as everybody calls it.
#[derive(Debug)]
struct Parameters {
    key_type: KeyType,
    /// Of keys and of signatures alike.
    identifier: AlgorithmIdentifier,
    scheme: SignatureScheme,
}

impl SignatureVerificationAlgorithm for Parameters {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let verified = PKey::public_key_from_raw_bytes_ex(None, self.key_type, None, public_key)
            .and_then(|key| {
                openssl::sign::Verifier::new_without_digest(&key)?
                    .verify_oneshot(signature, message)
            });
        match verified {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(InvalidSignature),
        }
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.identifier
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.identifier
    }
}

/// A private key. OpenSSL's `Debug` tells no secret of it.
#[derive(Debug, Clone)]
struct Key {
    parameters: &'static Parameters,
    key: Arc<PKey<Private>>,
}

impl SigningKey for Key {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let offered = offered.contains(&self.parameters.scheme);
        offered.then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(self.key.public_key_to_der().ok()?.into())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        // Those that have a name are of TLS 1.2.
        SignatureAlgorithm::Unknown(0)
    }
}

impl Signer for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        openssl::sign::Signer::new_without_digest(&self.key)
            .and_then(|mut signer| signer.sign_oneshot_to_vec(message))
            .map_err(|error| Error::General(error.to_string()))
    }

    fn scheme(&self) -> SignatureScheme {
        self.parameters.scheme
    }
}
