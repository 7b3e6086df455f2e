//! What protects records and QUIC's packets: keys of a secret, and the AEAD that they are for.

use std::sync::{Mutex, PoisonError};

use hkdf::Hkdf;
use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;
use sha2::{Sha256, Sha384};

/// What each AEAD of TLS 1.3 appends, in bytes.
pub const TAG_BYTES: usize = 16;

/// What a cipher suite of TLS 1.3 consists of (RFC 8446, B.4).
#[derive(Clone, Copy)]
pub(crate) struct Suite {
    aead: &'static CipherRef,
    /// What protects the headers of QUIC's packets (RFC 9001, 5.4).
    header: &'static CipherRef,
    hash: Hash,
}

/// The hash that secrets are derived with. Not OpenSSL's HKDF, which looks its algorithms up by name each time: that
/// took 7 % of what a connection over QUIC computes.
#[derive(Clone, Copy)]
enum Hash {
    Sha256,
    Sha384,
}

impl Hash {
    /// Bytes of a digest.
    fn size(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
        }
    }

    /// HKDF-Expand (RFC 5869, 2.3). `None` for a secret shorter than a digest, or too long an output.
    fn expand(self, secret: &[u8], info: &[&[u8]], out: &mut [u8]) -> Option<()> {
        match self {
            Hash::Sha256 => {
                let hkdf = Hkdf::<Sha256>::from_prk(secret).ok()?;
                hkdf.expand_multi_info(info, out).ok()
            }
            Hash::Sha384 => {
                let hkdf = Hkdf::<Sha384>::from_prk(secret).ok()?;
                hkdf.expand_multi_info(info, out).ok()
            }
        }
    }
}

impl Suite {
    /// That of QUIC's Initial packets (RFC 9001, 5.2): TLS_AES_128_GCM_SHA256.
    pub(crate) const INITIAL: u16 = 0x1301;

    /// By its code point; none of those that the laboratory's stacks do not have.
    pub(crate) fn of(cipher_suite: u16) -> Option<Suite> {
        let (aead, header, hash) = match cipher_suite {
            0x1301 => (Cipher::aes_128_gcm(), Cipher::aes_128_ecb(), Hash::Sha256),
            0x1302 => (Cipher::aes_256_gcm(), Cipher::aes_256_ecb(), Hash::Sha384),
            0x1303 => (
                Cipher::chacha20_poly1305(),
                Cipher::chacha20(),
                Hash::Sha256,
            ),
            _ => return None,
        };
        Some(Suite { aead, header, hash })
    }

    /// Whether a secret is as long as this suite's are.
    pub(crate) fn fits(self, secret: &[u8]) -> bool {
        secret.len() == self.hash.size()
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446, 7.1).
    pub(crate) fn expand_label(self, secret: &[u8], label: &str, length: usize) -> Option<Vec<u8>> {
        const PREFIX: &[u8] = b"tls13 ";
        let label_length = u8::try_from(PREFIX.len() + label.len()).ok()?;
        let info = [
            &u16::try_from(length).ok()?.to_be_bytes(),
            &[label_length][..],
            PREFIX,
            label.as_bytes(),
            &[0],
        ];
        let mut out = vec![0; length];
        self.hash.expand(secret, &info, &mut out)?;
        Some(out)
    }
}

/// What an [`Aead`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Seal,
    Open,
}

/// An AEAD with its key, one of both ways.
pub(crate) struct Aead {
    context: Mutex<CipherCtx>,
    iv: [u8; 12],
}

impl Aead {
    /// Of a traffic secret, by the labels of its key and its IV.
    pub(crate) fn of_secret(
        suite: Suite,
        secret: &[u8],
        [key, iv]: [&str; 2],
        purpose: Purpose,
    ) -> Option<Aead> {
        let key = suite.expand_label(secret, key, suite.aead.key_length())?;
        let iv = suite.expand_label(secret, iv, 12)?;
        Aead::new(suite.aead, &key, iv.try_into().ok()?, purpose)
    }

    fn new(cipher: &CipherRef, key: &[u8], iv: [u8; 12], purpose: Purpose) -> Option<Aead> {
        let mut context = CipherCtx::new().ok()?;
        match purpose {
            Purpose::Seal => context.encrypt_init(Some(cipher), Some(key), None),
            Purpose::Open => context.decrypt_init(Some(cipher), Some(key), None),
        }
        .ok()?;
        Some(Aead {
            context: Mutex::new(context),
            iv,
        })
    }

    /// Encrypts in place what has this number (RFC 8446, 5.3; RFC 9001, 5.3), and gives its tag.
    pub(crate) fn seal(
        &self,
        number: u64,
        associated: &[u8],
        content: &mut [u8],
    ) -> Option<[u8; TAG_BYTES]> {
        let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        let nonce = self.nonce(number);
        context.encrypt_init(None, None, Some(&nonce)).ok()?;
        context.cipher_update(associated, None).ok()?;
        let length = content.len();
        context.cipher_update_inplace(content, length).ok()?;
        context.cipher_final(&mut []).ok()?;
        let mut tag = [0; TAG_BYTES];
        context.tag(&mut tag).ok()?;
        Some(tag)
    }

    /// Decrypts in place what has this number; `None` where that is not what was sealed.
    pub(crate) fn open(
        &self,
        number: u64,
        associated: &[u8],
        content: &mut [u8],
        tag: &[u8],
    ) -> Option<()> {
        let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        let nonce = self.nonce(number);
        context.decrypt_init(None, None, Some(&nonce)).ok()?;
        context.set_tag(tag).ok()?;
        context.cipher_update(associated, None).ok()?;
        let length = content.len();
        context.cipher_update_inplace(content, length).ok()?;
        context.cipher_final(&mut []).ok()?;
        Some(())
    }

    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().rev().zip(number.to_le_bytes()) {
            *byte ^= number;
        }
        nonce
    }
}

/// The version of QUIC that is spoken: 1 (RFC 9000).
pub const QUIC_V1: u32 = 1;

/// A secret that protects one direction of QUIC's packets at one level (RFC 9001, 5.1).
#[derive(Clone, PartialEq, Eq)]
pub struct PacketSecret {
    /// The code point of the cipher suite.
    pub cipher_suite: u16,
    /// As TLS gave it.
    pub secret: Vec<u8>,
}

impl PacketSecret {
    /// Those of the Initial packets of both sides, the client's first, by the Destination Connection ID of the
    /// client's first packet (RFC 9001, 5.2).
    pub fn initial(connection_id: &[u8]) -> Option<[PacketSecret; 2]> {
        const SALT: [u8; 20] = [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
            0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
        ];
        let suite = Suite::of(Suite::INITIAL)?;
        let (initial, _) = Hkdf::<Sha256>::extract(Some(&SALT), connection_id);
        let of = |label| {
            Some(PacketSecret {
                cipher_suite: Suite::INITIAL,
                secret: suite.expand_label(&initial, label, initial.len())?,
            })
        };
        Some([of("client in")?, of("server in")?])
    }

    /// The next one, when keys are updated (RFC 9001, 6.1).
    #[must_use]
    pub fn updated(&self) -> Option<PacketSecret> {
        let suite = Suite::of(self.cipher_suite)?;
        Some(PacketSecret {
            cipher_suite: self.cipher_suite,
            secret: suite.expand_label(&self.secret, "quic ku", self.secret.len())?,
        })
    }

    /// What encrypts packets.
    pub fn sealing(&self) -> Option<PacketProtection> {
        self.protection(Purpose::Seal)
    }

    /// What decrypts them.
    pub fn opening(&self) -> Option<PacketProtection> {
        self.protection(Purpose::Open)
    }

    fn protection(&self, purpose: Purpose) -> Option<PacketProtection> {
        let suite = Suite::of(self.cipher_suite).filter(|suite| suite.fits(&self.secret))?;
        let labels = ["quic key", "quic iv"];
        Aead::of_secret(suite, &self.secret, labels, purpose).map(PacketProtection)
    }

    /// What hides the headers of packets.
    pub fn header(&self) -> Option<HeaderProtection> {
        let suite = Suite::of(self.cipher_suite).filter(|suite| suite.fits(&self.secret))?;
        let key = suite.expand_label(&self.secret, "quic hp", suite.header.key_length())?;
        let mut context = CipherCtx::new().ok()?;
        (context.encrypt_init(Some(suite.header), Some(&key), None)).ok()?;
        Some(HeaderProtection {
            context: Mutex::new(context),
            is_stream: suite.header.iv_length() > 0,
        })
    }
}

/// Encrypts or decrypts the payload of packets (RFC 9001, 5.3).
pub struct PacketProtection(Aead);

impl PacketProtection {
    /// Encrypts `payload` in place, and gives the tag that follows it. `None` where the library fails.
    pub fn seal(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Option<[u8; TAG_BYTES]> {
        self.0.seal(number, header, payload)
    }

    /// Decrypts `payload`, its tag behind it, in place, and gives how much of it is content. `None`
    /// where it was not protected like this.
    pub fn open(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Option<usize> {
        let length = payload.len().checked_sub(TAG_BYTES)?;
        let (content, tag) = payload.split_at_mut(length);
        self.0.open(number, header, content, tag)?;
        Some(length)
    }
}

/// Hides or shows the headers of packets (RFC 9001, 5.4).
pub struct HeaderProtection {
    context: Mutex<CipherCtx>,
    /// ChaCha20, whose counter and nonce the sample is.
    is_stream: bool,
}

impl HeaderProtection {
    /// Bytes of ciphertext that a mask is made of.
    pub const SAMPLE_BYTES: usize = 16;

    /// What the first byte and the packet number are combined with. `None` where the library fails.
    pub fn mask(&self, sample: [u8; Self::SAMPLE_BYTES]) -> Option<[u8; 5]> {
        let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = [0; 2 * Self::SAMPLE_BYTES];
        let (iv, input) = if self.is_stream {
            (Some(&sample[..]), &[0; 5][..])
        } else {
            (None, &sample[..])
        };
        context.encrypt_init(None, None, iv).ok()?;
        context.cipher_update(input, Some(&mut out)).ok()?;
        let [a, b, c, d, e, ..] = out;
        Some([a, b, c, d, e])
    }
}

/// The tag of a Retry packet (RFC 9001, 5.8): `packet` is all of it before the tag.
pub fn retry_tag(original_connection_id: &[u8], packet: &[u8]) -> Option<[u8; TAG_BYTES]> {
    const KEY: [u8; 16] = [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8,
        0x4e,
    ];
    const NONCE: [u8; 12] = [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ];
    let length = u8::try_from(original_connection_id.len()).ok()?;
    let pseudo = [&[length], original_connection_id, packet].concat();
    let aead = Aead::new(Cipher::aes_128_gcm(), &KEY, NONCE, Purpose::Seal)?;
    aead.seal(0, &pseudo, &mut [])
}

#[cfg(test)]
mod tests;
