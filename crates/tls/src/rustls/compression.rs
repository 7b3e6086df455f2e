//! The algorithms of certificate compression as rustls takes them: zlib and brotli are its own.

use ::rustls::CertificateCompressionAlgorithm;
use ::rustls::compress::{
    BROTLI_COMPRESSOR, BROTLI_DECOMPRESSOR, CertCompressor, CertDecompressor, CompressionFailed,
    CompressionLevel, DecompressionFailed, ZLIB_COMPRESSOR, ZLIB_DECOMPRESSOR,
};

use lastbyte_link::Side;
use lastbyte_sizes::ABRIDGED;

use super::abridged::{self, Abridger};
use crate::ask::Ask;
use crate::{CertificateCompression, Delivery};

pub(super) type Compressors = Vec<&'static dyn CertCompressor>;
pub(super) type Decompressors = Vec<&'static dyn CertDecompressor>;

/// What compresses and decompresses as one side is asked to, the preferred algorithm first.
pub(super) fn both_ways(ask: &Ask) -> (Compressors, Decompressors) {
    if let Delivery::Abridged { server, client } = &ask.delivery {
        let abridger = Abridger::of(match ask.side {
            Side::Client => client,
            Side::Server => server,
        });
        return (vec![abridger], vec![abridger]);
    }
    let algorithms = ask.compressions().iter().copied();
    algorithms
        .map(|algorithm| (compressor(algorithm), decompressor(algorithm)))
        .unzip()
}

pub(super) fn compressor(algorithm: CertificateCompression) -> &'static dyn CertCompressor {
    match algorithm {
        CertificateCompression::Zlib => ZLIB_COMPRESSOR,
        CertificateCompression::Brotli => BROTLI_COMPRESSOR,
        CertificateCompression::Zstd => &Zstd,
    }
}

fn decompressor(algorithm: CertificateCompression) -> &'static dyn CertDecompressor {
    match algorithm {
        CertificateCompression::Zlib => ZLIB_DECOMPRESSOR,
        CertificateCompression::Brotli => BROTLI_DECOMPRESSOR,
        CertificateCompression::Zstd => &Zstd,
    }
}

/// Decompresses as rustls does. `None` unless that gives exactly as many bytes as were `declared`,
/// more than which are never written.
pub(crate) fn decompress(algorithm: u16, compressed: &[u8], declared: usize) -> Option<Vec<u8>> {
    if algorithm == ABRIDGED {
        return abridged::decompress(compressed, declared);
    }
    let algorithm = CertificateCompression::of_code_point(algorithm)?;
    let mut output = vec![0; declared];
    let done = decompressor(algorithm).decompress(compressed, &mut output);
    done.ok().map(|()| output)
}

/// Zstandard (RFC 8878), which rustls does not bring along.
#[derive(Debug)]
struct Zstd;

impl CertCompressor for Zstd {
    fn compress(
        &self,
        input: Vec<u8>,
        level: CompressionLevel,
    ) -> Result<Vec<u8>, CompressionFailed> {
        /// The highest of those that the library does not call "ultra" for their memory.
        const SLOW: i32 = 19;
        let level = match level {
            CompressionLevel::Interactive => zstd::DEFAULT_COMPRESSION_LEVEL,
            CompressionLevel::Amortized => SLOW,
        };
        zstd::bulk::compress(&input, level).map_err(|_| CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zstd
    }
}

impl CertDecompressor for Zstd {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        // In one go into `output`: so it needs no window, however large a one the input asks for.
        match zstd::bulk::decompress_to_buffer(input, output) {
            Ok(length) if length == output.len() => Ok(()),
            _ => Err(DecompressionFailed),
        }
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zstd
    }
}
