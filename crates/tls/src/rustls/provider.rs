//! What rustls computes with: OpenSSL, as `rustls-openssl` hands it over, and what that has no interface for yet. So the
//! stack that is measured is rustls' own, and no second library of cryptography has to be compiled.

use std::sync::{Arc, LazyLock};

use ::rustls::crypto::{CryptoProvider, KeyProvider, SupportedKxGroup, WebPkiSupportedAlgorithms};
use ::rustls::pki_types::PrivateKeyDer;
use ::rustls::sign::SigningKey;
use ::rustls::{Error, server::ProducesTickets};
use ::rustls_openssl::kx_group::ALL_KX_GROUPS;
use ::rustls_openssl::{SUPPORTED_SIG_ALGS, custom_provider};

use crate::Group;

mod ml_dsa;
mod secp256r1_ml_kem_768;
mod suites;
mod tickets;

/// With these groups, the preferred one first.
pub(super) fn provider(groups: Vec<&'static dyn SupportedKxGroup>) -> CryptoProvider {
    CryptoProvider {
        signature_verification_algorithms: *VERIFICATION,
        key_provider: &Keys,
        ..custom_provider(suites::ALL.clone(), groups)
    }
}

pub(super) fn find_group(group: Group) -> Option<&'static dyn SupportedKxGroup> {
    let own: &dyn SupportedKxGroup = &secp256r1_ml_kem_768::Group;
    let mut all = ALL_KX_GROUPS.iter().copied().chain([own]);
    all.find(|candidate| u16::from(candidate.name()) == group.code_point())
}

/// What a server encrypts its tickets with.
pub(super) fn ticketer() -> Result<Arc<dyn ProducesTickets>, Error> {
    tickets::ticketer()
}

/// `rustls-openssl`'s, and ML-DSA as the last in the client's order.
static VERIFICATION: LazyLock<WebPkiSupportedAlgorithms> =
    LazyLock::new(|| WebPkiSupportedAlgorithms {
        all: [SUPPORTED_SIG_ALGS.all, &ml_dsa::VERIFICATION]
            .concat()
            .leak(),
        mapping: [SUPPORTED_SIG_ALGS.mapping, &ml_dsa::SCHEMES]
            .concat()
            .leak(),
    });

/// Reads private keys: `rustls-openssl` signs with all but those of ML-DSA.
#[derive(Debug)]
struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        match ml_dsa::signing_key(&key) {
            Some(key) => Ok(key),
            None => ::rustls_openssl::KeyProvider.load_private_key(key),
        }
    }
}

#[cfg(test)]
mod tests;
