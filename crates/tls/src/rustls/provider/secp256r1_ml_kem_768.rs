//! SecP256r1MLKEM768 (RFC 10024), made of P-256 and ML-KEM-768: its shares and its secret are theirs, P-256's
//! first.

use ::rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use ::rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use ::rustls_openssl::kx_group::{MLKEM768, SECP256R1};

/// Bytes of a point that is not compressed, which is all of P-256's share (RFC 8446, 4.2.8.2).
const POINT: usize = 65;

#[derive(Debug)]
pub(super) struct Group;

impl SupportedKxGroup for Group {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let (p256, ml_kem) = (SECP256R1.start()?, MLKEM768.start()?);
        Ok(Box::new(Started {
            share: [p256.pub_key(), ml_kem.pub_key()].concat(),
            p256,
            ml_kem,
        }))
    }

    fn start_and_complete(&self, client_share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (point, encapsulation_key) = halves(client_share)?;
        let p256 = SECP256R1.start_and_complete(point)?;
        let ml_kem = MLKEM768
            .start_and_complete(encapsulation_key)
            .map_err(|_| INVALID)?;
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [p256.pub_key, ml_kem.pub_key].concat(),
            secret: joined(&p256.secret, &ml_kem.secret),
        })
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp256r1MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// A client's.
struct Started {
    p256: Box<dyn ActiveKeyExchange>,
    ml_kem: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, server_share: &[u8]) -> Result<SharedSecret, Error> {
        let (point, ciphertext) = halves(server_share)?;
        let p256 = self.p256.complete(point)?;
        let ml_kem = self.ml_kem.complete(ciphertext).map_err(|_| INVALID)?;
        Ok(joined(&p256, &ml_kem))
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.p256.group(), self.p256.pub_key()))
    }

    fn complete_hybrid_component(
        self: Box<Self>,
        server_share: &[u8],
    ) -> Result<SharedSecret, Error> {
        self.p256.complete(server_share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp256r1MLKEM768
    }
}

const INVALID: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// P-256's and ML-KEM's, of whose length OpenSSL makes sure.
fn halves(share: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    share.split_at_checked(POINT).ok_or(INVALID)
}

fn joined(p256: &SharedSecret, ml_kem: &SharedSecret) -> SharedSecret {
    SharedSecret::from([p256.secret_bytes(), ml_kem.secret_bytes()].concat())
}
