//! Records of one direction, and how they are opened.

use lastbyte_sizes::framing::{MAX_PLAINTEXT, RECORD_HEADER};

use super::cursor::Cursor;
use crate::protection::{Aead, Purpose, Suite, TAG_BYTES};

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

/// Opens the records that one side protects with one traffic secret (RFC 8446, 5.2).
pub(super) struct Opener {
    aead: Aead,
    sequence: u64,
}

impl Opener {
    /// `None` when the cipher suite is unknown or the secret does not fit it.
    pub(super) fn new(cipher_suite: u16, secret: &[u8]) -> Option<Opener> {
        Opener::with(cipher_suite, secret, Purpose::Open)
    }

    fn with(cipher_suite: u16, secret: &[u8], purpose: Purpose) -> Option<Opener> {
        let suite = Suite::of(cipher_suite).filter(|suite| suite.fits(secret))?;
        Some(Opener {
            // RFC 8446, 7.3.
            aead: Aead::of_secret(suite, secret, ["key", "iv"], purpose)?,
            sequence: 0,
        })
    }

    /// The content type and the content of a record, without its padding; `None`,
    /// and no step of the sequence, when it was not protected with this secret.
    pub(super) fn open(&mut self, record: &Record<'_>) -> Option<(u8, Vec<u8>)> {
        let (sealed, tag) = record
            .body
            .split_at_checked(record.body.len().checked_sub(TAG_BYTES)?)?;
        let mut content = sealed.to_vec();
        (self.aead).open(self.sequence, record.header, &mut content, tag)?;
        self.sequence += 1;
        let end = content.iter().rposition(|byte| *byte != 0)?;
        let content_type = *content.get(end)?;
        content.truncate(end);
        Some((content_type, content))
    }
}

#[cfg(test)]
impl Opener {
    /// What makes the records that [`new`](Opener::new) opens.
    pub(super) fn sealer(cipher_suite: u16, secret: &[u8]) -> Option<Opener> {
        Opener::with(cipher_suite, secret, Purpose::Seal)
    }

    /// The record that [`open`](Opener::open) opens next.
    pub(super) fn seal(&mut self, content_type: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let mut inner = [content, &[content_type], &vec![0; padding]].concat();
        let length = u16::try_from(inner.len() + TAG_BYTES)
            .unwrap_or(u16::MAX)
            .to_be_bytes();
        let header = [APPLICATION_DATA, 3, 3, length[0], length[1]];
        let tag = self.aead.seal(self.sequence, &header, &mut inner);
        self.sequence += 1;
        [&header[..], &inner, &tag.unwrap_or_default()].concat()
    }
}
