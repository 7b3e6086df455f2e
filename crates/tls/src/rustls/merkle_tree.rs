//! Merkle Tree Certificates on rustls, by a verifier.

use std::sync::Arc;

use ::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use ::rustls::crypto::{CryptoProvider, verify_tls13_signature};
use ::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use ::rustls::{CertificateError, DigitallySignedStruct, Error, PeerIncompatible, SignatureScheme};

use crate::merkle_tree::MerkleTree;

/// Accepts what its tree has clients accept, and nothing else.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) tree: MerkleTree,
    pub(super) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let host = server_name.to_str();
        if intermediates.is_empty() && self.tree.accepts(end_entity, &host) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // It is configured for TLS 1.3 alone.
        Err(PeerIncompatible::NoSignatureSchemesInCommon.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
