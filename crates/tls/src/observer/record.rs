//! Records of one direction, and how they are opened.

use lastbyte_sizes::framing::{MAX_PLAINTEXT, RECORD_HEADER};
use openssl::kdf::{HkdfMode, hkdf};
use openssl::md::Md;
use openssl::symm::{Cipher, decrypt_aead};

use super::cursor::Cursor;

pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;

/// One record as it was on the wire (RFC 8446, 5.1).
pub(super) struct Record<'a> {
    pub(super) content_type: u8,
    header: &'a [u8],
    pub(super) body: &'a [u8],
}

impl Record<'_> {
    pub(super) fn wire_bytes(&self) -> usize {
        self.header.len() + self.body.len()
    }
}

/// The records in `stream`, up to the first that is incomplete or is none of TLS.
pub(super) fn records(stream: &[u8]) -> impl Iterator<Item = Record<'_>> {
    /// TLS 1.2 allowed 2048 bytes of expansion, TLS 1.3 does 256.
    const MAX_BODY: usize = MAX_PLAINTEXT + 2048;

    let mut rest = Cursor(stream);
    std::iter::from_fn(move || {
        let header = rest.bytes(RECORD_HEADER)?;
        let mut fields = Cursor(header);
        let content_type = fields.u8()?;
        let major_version = fields.u8()?;
        let _minor_version = fields.u8()?;
        let length = fields.number(2)?;
        (major_version == 3 && length <= MAX_BODY).then_some(())?;
        Some(Record {
            content_type,
            header,
            body: rest.bytes(length)?,
        })
    })
}

/// What each of the cipher suites below appends to a record.
const TAG_BYTES: usize = 16;

/// Opens the records that one side protects with one traffic secret (RFC 8446, 5.2).
pub(super) struct Opener {
    cipher: Cipher,
    key: Vec<u8>,
    iv: [u8; 12],
    sequence: u64,
}

impl Opener {
    /// `None` when the cipher suite is unknown or the secret does not fit it.
    pub(super) fn new(cipher_suite: u16, secret: &[u8]) -> Option<Opener> {
        let (cipher, digest) = match cipher_suite {
            0x1301 => (Cipher::aes_128_gcm(), Md::sha256()),
            0x1302 => (Cipher::aes_256_gcm(), Md::sha384()),
            0x1303 => (Cipher::chacha20_poly1305(), Md::sha256()),
            _ => return None,
        };
        (secret.len() == digest.size()).then_some(())?;
        // HKDF-Expand-Label with an empty context (RFC 8446, 7.1 and 7.3).
        let expand = |label: &[u8], out: &mut [u8]| {
            let length = u16::try_from(out.len()).ok()?.to_be_bytes();
            let label_length = u8::try_from(label.len()).ok()?;
            let info = [&length, &[label_length][..], label, &[0]].concat();
            hkdf(
                digest,
                secret,
                None,
                Some(&info),
                HkdfMode::ExpandOnly,
                None,
                out,
            )
            .ok()
        };
        let mut key = vec![0; cipher.key_len()];
        let mut iv = [0; 12];
        expand(b"tls13 key", &mut key)?;
        expand(b"tls13 iv", &mut iv)?;
        Some(Opener {
            cipher,
            key,
            iv,
            sequence: 0,
        })
    }

    /// The content type and the content of a record, without its padding; `None`,
    /// and no step of the sequence, when it was not protected with this secret.
    pub(super) fn open(&mut self, record: &Record<'_>) -> Option<(u8, Vec<u8>)> {
        let (sealed, tag) = record
            .body
            .split_at_checked(record.body.len().checked_sub(TAG_BYTES)?)?;
        let nonce = self.next_nonce();
        let mut content = decrypt_aead(
            self.cipher,
            &self.key,
            Some(&nonce),
            record.header,
            sealed,
            tag,
        )
        .ok()?;
        self.sequence += 1;
        let end = content.iter().rposition(|byte| *byte != 0)?;
        let content_type = *content.get(end)?;
        content.truncate(end);
        Some((content_type, content))
    }

    /// RFC 8446, 5.3.
    fn next_nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, sequence) in nonce.iter_mut().rev().zip(self.sequence.to_le_bytes()) {
            *byte ^= sequence;
        }
        nonce
    }
}

#[cfg(test)]
impl Opener {
    /// The record that [`open`](Opener::open) opens next.
    pub(super) fn seal(&mut self, content_type: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let inner = [content, &[content_type], &vec![0; padding]].concat();
        let length = u16::try_from(inner.len() + TAG_BYTES)
            .unwrap_or(u16::MAX)
            .to_be_bytes();
        let header = [APPLICATION_DATA, 3, 3, length[0], length[1]];
        let mut tag = [0; TAG_BYTES];
        let nonce = self.next_nonce();
        let sealed = openssl::symm::encrypt_aead(
            self.cipher,
            &self.key,
            Some(&nonce),
            &header,
            &inner,
            &mut tag,
        );
        self.sequence += 1;
        [&header[..], &sealed.unwrap_or_default(), &tag].concat()
    }
}
