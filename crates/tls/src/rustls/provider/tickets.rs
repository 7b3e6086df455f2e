//! Tickets (RFC 5077, 4): AES-256-CBC and HMAC-SHA-256, as rustls makes them with AWS-LC, so that they are as long.

use std::fmt;
use std::sync::Arc;

use ::rustls::Error;
use ::rustls::crypto::GetRandomFailed;
use ::rustls::server::ProducesTickets;
use ::rustls::ticketer::TicketRotator;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::memcmp;
use openssl::pkey::{PKey, Private};
use openssl::rand::{rand_bytes, rand_priv_bytes};
use openssl::sign::Signer;
use openssl::symm::{self, Cipher};

/// New keys every six hours; those before are taken for six more.
pub(super) fn ticketer() -> Result<Arc<dyn ProducesTickets>, Error> {
    const SECONDS: u32 = 6 * 60 * 60;
    let keys = || match Keys::new() {
        Ok(keys) => Ok(Box::new(keys) as Box<dyn ProducesTickets>),
        Err(_) => Err(GetRandomFailed),
    };
    Ok(Arc::new(TicketRotator::new(SECONDS, keys)?))
}

/// Before the encrypted state.
const NAME: usize = 16;
const IV: usize = 16;
/// Behind it.
const MAC: usize = 32;

struct Keys {
    name: [u8; NAME],
    encryption: [u8; 32],
    authentication: PKey<Private>,
}

impl Keys {
    fn new() -> Result<Keys, ErrorStack> {
        let (mut name, mut encryption, mut authentication) = ([0; NAME], [0; 32], [0; MAC]);
        rand_bytes(&mut name)?;
        rand_priv_bytes(&mut encryption)?;
        rand_priv_bytes(&mut authentication)?;
        Ok(Keys {
            name,
            encryption,
            authentication: PKey::hmac(&authentication)?,
        })
    }

    /// Of the key's name, the IV, and the state behind its length.
    fn mac(&self, head: &[u8], state: &[u8]) -> Option<Vec<u8>> {
        let length = u16::try_from(state.len()).ok()?.to_be_bytes();
        let mut signer = Signer::new(MessageDigest::sha256(), &self.authentication).ok()?;
        for part in [head, &length, state] {
            signer.update(part).ok()?;
        }
        signer.sign_to_vec().ok()
    }
}

impl ProducesTickets for Keys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // Those of twice six hours can still be decrypted.
        12 * 60 * 60
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut iv = [0; IV];
        rand_bytes(&mut iv).ok()?;
        let state =
            symm::encrypt(Cipher::aes_256_cbc(), &self.encryption, Some(&iv), plain).ok()?;
        let head = [self.name, iv].concat();
        let mac = self.mac(&head, &state)?;
        Some([head, state, mac].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (head, rest) = ticket.split_at_checked(NAME + IV)?;
        let (state, mac) = rest.split_at_checked(rest.len().checked_sub(MAC)?)?;
        let expected = self.mac(head, state)?;
        (expected.len() == mac.len() && memcmp::eq(&expected, mac)).then_some(())?;
        let iv = head.get(NAME..)?;
        symm::decrypt(Cipher::aes_256_cbc(), &self.encryption, Some(iv), state).ok()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
