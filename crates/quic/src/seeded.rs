//! What quinn would draw at random, of a seed.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use lastbyte_link::{Seed, mix};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;
use openssl::symm::{Cipher, decrypt_aead, encrypt_aead};
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, TimeSource};

/// Bytes of each connection ID: as many as quinn, nginx and Chromium's servers have.
pub(crate) const CONNECTION_ID_BYTES: usize = 8;

/// Connection IDs, one after the other.
pub(crate) struct ConnectionIds(Mutex<u64>);

impl ConnectionIds {
    pub(crate) fn of_seed(seed: u64) -> ConnectionIds {
        ConnectionIds(Mutex::new(mix(seed)))
    }

    pub(crate) fn next(&self) -> ConnectionId {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = mix(*state);
        ConnectionId::new(&state.to_be_bytes())
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next()
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// 32 bytes of a seed, which are none of its connection IDs.
pub(crate) fn bytes(seed: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut state = Seed(seed).part("quinn").0;
    for part in bytes.chunks_mut(8) {
        state = mix(state);
        part.copy_from_slice(&state.to_be_bytes());
    }
    bytes
}

/// What tokens of stateless resets and of addresses are made with. Nobody can guess a connection that nobody else is on.
pub(crate) struct Key;

const KEY: [u8; 32] = *b"lastbyte: no secret, no attacker";

impl HmacKey for Key {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let signed = || {
            let key = PKey::hmac(&KEY)?;
            let mut signer = Signer::new(MessageDigest::sha256(), &key)?;
            signer.sign_oneshot_to_vec(data)
        };
        if let Ok(signed) = signed() {
            for (byte, signed) in signature.iter_mut().zip(signed) {
                *byte = signed;
            }
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = [0; 32];
        self.sign(data, &mut own);
        if own == signature {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

impl HandshakeTokenKey for Key {
    fn aead_from_hkdf(&self, random: &[u8]) -> Box<dyn AeadKey> {
        let mut key = [0; 32];
        self.sign(random, &mut key);
        Box::new(TokenKey(key))
    }
}

/// Seals one token (RFC 9000, 8.1.4).
struct TokenKey([u8; 32]);

impl TokenKey {
    const TAG: usize = 16;
    const NONCE: [u8; 12] = [0; 12];
}

impl AeadKey for TokenKey {
    fn seal(&self, data: &mut Vec<u8>, additional: &[u8]) -> Result<(), CryptoError> {
        let mut tag = [0; Self::TAG];
        let cipher = Cipher::aes_256_gcm();
        let nonce = Some(&Self::NONCE[..]);
        let sealed = encrypt_aead(cipher, &self.0, nonce, additional, data, &mut tag);
        *data = sealed.map_err(|_| CryptoError)?;
        data.extend(tag);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], additional: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(Self::TAG).ok_or(CryptoError)?;
        let (sealed, tag) = data.split_at_mut(length);
        let cipher = Cipher::aes_256_gcm();
        let nonce = Some(&Self::NONCE[..]);
        let opened = decrypt_aead(cipher, &self.0, nonce, additional, sealed, tag);
        let opened = opened.map_err(|_| CryptoError)?;
        sealed.copy_from_slice(&opened);
        Ok(sealed)
    }
}

/// A time of day that stands still: tokens are as old as nobody asks.
pub(crate) struct NoTime;

impl TimeSource for NoTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }
}
