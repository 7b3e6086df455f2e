//! What the fuzz targets share.

/// Cuts `data` into pieces: a tag, a length of two bytes, and as many bytes or as are left.
pub fn pieces(mut data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[tag, high, low], rest) = data.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (piece, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        Some((tag, piece))
    })
}
