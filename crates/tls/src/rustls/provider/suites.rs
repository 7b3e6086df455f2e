//! The cipher suites of `rustls-openssl`, whose record that can't be decrypted is one to rustls, too: that one skips early data
//! that it has refused (RFC 8446, 4.2.10) and answers all else with bad_record_mac, but takes the error of OpenSSL that it is
//! given for one of the library.

use std::sync::LazyLock;

use ::rustls::crypto::CipherSuiteCommon;
use ::rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use ::rustls::{ConnectionTrafficSecrets, Error, SupportedCipherSuite, Tls13CipherSuite};
use ::rustls_openssl::ALL_CIPHER_SUITES;

/// In the client's order.
pub(super) static ALL: LazyLock<Vec<SupportedCipherSuite>> = LazyLock::new(|| {
    let all = ALL_CIPHER_SUITES.iter().filter_map(|suite| suite.tls13());
    all.map(|suite| SupportedCipherSuite::Tls13(Box::leak(Box::new(with_errors(suite)))))
        .collect()
});

fn with_errors(suite: &'static Tls13CipherSuite) -> Tls13CipherSuite {
    Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: Box::leak(Box::new(Aead(suite.aead_alg))),
        quic: suite.quic,
    }
}

struct Aead(&'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for Aead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        self.0.encrypter(key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Decrypter(self.0.decrypter(key, iv)))
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

struct Decrypter(Box<dyn MessageDecrypter>);

impl MessageDecrypter for Decrypter {
    fn decrypt<'a>(
        &mut self,
        record: InboundOpaqueMessage<'a>,
        sequence_number: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let decrypted = self.0.decrypt(record, sequence_number);
        decrypted.map_err(|error| match error {
            Error::General(_) => Error::DecryptError,
            other => other,
        })
    }
}
