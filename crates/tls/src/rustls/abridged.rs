//! Abridged certificates (draft-ietf-tls-cert-abridge-02) as rustls takes algorithms of certificate compression: known
//! certificates become ids, and the rest is compressed with what they have in common.

use std::sync::{Mutex, OnceLock, PoisonError};

use ::rustls::CertificateCompressionAlgorithm;
use ::rustls::compress::{
    CertCompressor, CertDecompressor, CompressionFailed, CompressionLevel, DecompressionFailed,
};

use lastbyte_sizes::ABRIDGED;

use crate::abridged::Listing;

/// Both passes, with one listing.
#[derive(Debug)]
pub(super) struct Abridger(Listing);

/// All that there are. rustls wants them to live for ever, so each listing has one.
static ABRIDGERS: OnceLock<Mutex<Vec<&'static Abridger>>> = OnceLock::new();

impl Abridger {
    /// The one for `listing`.
    pub(super) fn of(listing: &Listing) -> &'static Abridger {
        let all = ABRIDGERS.get_or_init(Mutex::default);
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter().find(|abridger| abridger.0 == *listing) {
            Some(abridger) => abridger,
            None => {
                let abridger: &'static Abridger = Box::leak(Box::new(Abridger(listing.clone())));
                all.push(abridger);
                abridger
            }
        }
    }

    /// The Certificate message without its header, of exactly `declared` bytes. Nothing larger is ever held: pass 1
    /// makes nothing longer, so what pass 2 gives is not, either.
    fn restore(&self, compressed: &[u8], declared: usize) -> Option<Vec<u8>> {
        let mut abridged = vec![0; declared];
        let mut zstd = zstd::bulk::Decompressor::with_dictionary(self.0.dictionary()).ok()?;
        let length = zstd.decompress_to_buffer(compressed, &mut abridged).ok()?;
        let message = self.0.restore(abridged.get(..length)?, declared)?;
        (message.len() == declared).then_some(message)
    }
}

impl CertCompressor for Abridger {
    fn compress(
        &self,
        input: Vec<u8>,
        level: CompressionLevel,
    ) -> Result<Vec<u8>, CompressionFailed> {
        /// The highest one; the draft's further settings of match finders gain nothing on inputs as small as these.
        const SLOWEST: i32 = 22;
        let level = match level {
            CompressionLevel::Interactive => zstd::DEFAULT_COMPRESSION_LEVEL,
            CompressionLevel::Amortized => SLOWEST,
        };
        let abridged = self.0.abridge(&input).ok_or(CompressionFailed)?;
        let mut zstd = zstd::bulk::Compressor::with_dictionary(level, self.0.dictionary())
            .map_err(|_| CompressionFailed)?;
        zstd.compress(&abridged).map_err(|_| CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Unknown(ABRIDGED)
    }
}

impl CertDecompressor for Abridger {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        let message = self.restore(input, output.len());
        let message = message.ok_or(DecompressionFailed)?;
        output.copy_from_slice(&message);
        Ok(())
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Unknown(ABRIDGED)
    }
}

/// The Certificate message without its header that one of the listings in use gives.
pub(super) fn decompress(compressed: &[u8], declared: usize) -> Option<Vec<u8>> {
    let all = ABRIDGERS.get()?;
    let all = all.lock().unwrap_or_else(PoisonError::into_inner).clone();
    all.iter()
        .rev()
        .find_map(|abridger| abridger.restore(compressed, declared))
}
