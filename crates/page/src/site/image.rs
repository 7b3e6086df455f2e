//! Pictures of exactly so many bytes.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A PNG (ISO/IEC 15948) of `size` bytes in plain colours, which appears from its top as its bytes
/// come. Of fewer bytes than a PNG needs, something else: a browser asks for it all the same.
///
/// `nth` chooses the colour, so that pictures can be distinguished.
pub(super) fn png(nth: usize, size: usize) -> Vec<u8> {
    /// Signature, header, an empty chunk of data, end.
    const FRAME: usize = 8 + 25 + 12 + 12;
    /// What a chunk has besides its content.
    const CHUNK: usize = 12;
    let mut pixels = Vec::new();
    let mut shape = (0, 0);
    // Pixels are stored and not compressed, so that the file's bytes are the picture's: as many
    // rows as there is room for.
    let mut room = size.saturating_sub(FRAME + CHUNK);
    while pixels.is_empty() && room > 16 {
        // Three wide for two high, of three bytes a pixel, and one byte for each row.
        let width = (room as f64 / 2.0).sqrt().max(1.0) as usize;
        let height = room / (3 * width + 1);
        shape = (width, height);
        let stored = stored(&rows(nth, width, height));
        if stored.len() + FRAME + CHUNK <= size && height > 0 {
            pixels = stored;
        } else {
            room -= (stored.len() + FRAME + CHUNK)
                .saturating_sub(size)
                .max(1)
                .min(room);
        }
    }
    if pixels.is_empty() {
        return vec![b'-'; size];
    }
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::new();
    header.extend((shape.0 as u32).to_be_bytes());
    header.extend((shape.1 as u32).to_be_bytes());
    // Eight bits for each of red, green and blue.
    header.extend([8, 2, 0, 0, 0]);
    chunk(&mut out, b"IHDR", &header);
    chunk(&mut out, b"IDAT", &pixels);
    // A private chunk, which others pass over, is as long as the rest.
    let rest = size - out.len() - CHUNK - CHUNK;
    chunk(&mut out, b"laSt", &vec![0; rest]);
    chunk(&mut out, b"IEND", &[]);
    out
}

/// Each row after its filter (none): the colour, lighter to the right.
fn rows(nth: usize, width: usize, height: usize) -> Vec<u8> {
    const HUES: [[u8; 3]; 6] = [
        [31, 106, 168],
        [194, 80, 10],
        [0, 112, 92],
        [91, 26, 120],
        [157, 135, 178],
        [90, 23, 11],
    ];
    let hue = HUES.get(nth % HUES.len()).copied().unwrap_or_default();
    let mut row = vec![0];
    for x in 0..width {
        let lighter = (x * 80 / width) as u8;
        row.extend(hue.map(|part| part.saturating_add(lighter)));
    }
    row.repeat(height)
}

/// zlib's form (RFC 1950) of blocks that are not compressed.
fn stored(rows: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::none());
    // Memory takes everything.
    let written = encoder.write_all(rows).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

fn chunk(out: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    out.extend((content.len() as u32).to_be_bytes());
    let mut sum = flate2::Crc::new();
    for part in [&name[..], content] {
        sum.update(part);
        out.extend(part);
    }
    out.extend(sum.sum().to_be_bytes());
}
