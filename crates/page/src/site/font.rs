//! Fonts of exactly so many bytes.

/// A TrueType font (ISO/IEC 14496-22) of `size` bytes in which every character of ASCII is a box. Of fewer bytes than a font needs, something
/// else: a browser asks for it all the same, and falls back to a font of its own.
pub(super) fn truetype(size: usize) -> Vec<u8> {
    let mut tables: Vec<([u8; 4], Vec<u8>)> = vec![
        (*b"OS/2", os2()),
        (*b"cmap", cmap()),
        (*b"glyf", glyf()),
        (*b"head", head(0)),
        (*b"hhea", hhea()),
        (*b"hmtx", words(&[1000, 0, 1000, 0])),
        (*b"loca", words(&[0, 0, (glyf().len() / 2) as u16])),
        (*b"maxp", maxp()),
        (*b"name", name()),
        (*b"post", post()),
    ];
    // A table that nobody knows is as long as the rest; tables stand in the order of their names.
    tables.push((*b"zzzz", Vec::new()));
    let least = assembled(&tables).len();
    let Some(rest) = size.checked_sub(least) else {
        return vec![b'-'; size];
    };
    if let Some((_, last)) = tables.last_mut() {
        last.resize(rest, 0);
    }
    // The sum of the whole file, of which `head` has what is left to a constant.
    let sum = 0xb1b0_afba_u32.wrapping_sub(checksum(&assembled(&tables)));
    for (name, content) in &mut tables {
        if name == b"head" {
            *content = head(sum);
        }
    }
    assembled(&tables)
}

fn assembled(tables: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    let count = tables.len() as u16;
    let power = count.ilog2();
    let range = 16 << power;
    let mut out = vec![0, 1, 0, 0];
    out.extend(words(&[count, range, power as u16, count * 16 - range]));
    let mut at = out.len() + 16 * tables.len();
    let mut contents = Vec::new();
    for (nth, (name, content)) in tables.iter().enumerate() {
        out.extend(name);
        let sum = match name {
            // Its own sum is without the sum of the whole.
            b"head" => checksum(&head(0)),
            _ => checksum(content),
        };
        for number in [sum, at as u32, content.len() as u32] {
            out.extend(number.to_be_bytes());
        }
        contents.extend(content);
        // Each begins at a multiple of four.
        if nth + 1 < tables.len() {
            contents.resize(contents.len().next_multiple_of(4), 0);
        }
        at += content.len().next_multiple_of(4);
    }
    out.extend(contents);
    out
}

/// The sum of a table's words of four bytes.
fn checksum(content: &[u8]) -> u32 {
    content.chunks(4).fold(0, |sum: u32, chunk| {
        let mut word = [0; 4];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        sum.wrapping_add(u32::from_be_bytes(word))
    })
}

fn words(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|one| one.to_be_bytes()).collect()
}

fn head(sum: u32) -> Vec<u8> {
    let mut out = words(&[1, 0, 1, 0]);
    out.extend(sum.to_be_bytes());
    out.extend(0x5f0f_3cf5_u32.to_be_bytes());
    // Flags, units in an em, two dates, the box of all glyphs, style, least size, direction, short offsets, form of glyphs.
    out.extend(words(&[0, 1000]));
    out.extend([0; 16]);
    out.extend(words(&[0, 0, 800, 700, 0, 8, 2, 0, 0]));
    out
}

fn hhea() -> Vec<u8> {
    let negative = (-200_i16) as u16;
    // Version, ascender, descender, gap, widest, bearings, extent, slope, five that are none, and how many widths.
    words(&[
        1, 0, 800, negative, 0, 1000, 0, 0, 800, 1, 0, 0, 0, 0, 0, 0, 0, 2,
    ])
}

fn maxp() -> Vec<u8> {
    words(&[1, 0, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Glyph 0 is empty, glyph 1 is a box of four points.
fn glyf() -> Vec<u8> {
    // One outline, its box, where it ends, no instructions.
    let mut out = words(&[1, 0, 0, 800, 700, 3, 0]);
    // Each point on the outline, then all steps to the right, then all upwards.
    out.extend([1; 4]);
    let back = (-800_i16) as u16;
    let down = (-700_i16) as u16;
    out.extend(words(&[0, 800, 0, back, 0, 0, 700, 0]));
    let _ = down;
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Characters 0x20 to 0x7e are glyph 1 (form 4).
fn cmap() -> Vec<u8> {
    const FIRST: u16 = 0x20;
    const LAST: u16 = 0x7e;
    let count = LAST - FIRST + 1;
    let segments = [
        // Two segments, twice; search range, selector, shift; ends; none; starts; deltas.
        4, 4, 1, 0, LAST, 0xffff, 0, FIRST, 0xffff, 0, 1,
        // Where the first segment's glyphs are, from here: after this number and the next.
        4, 0,
    ];
    let length = 6 + 2 * segments.len() as u16 + 2 * count;
    // Version, one table: Windows, Unicode, which begins after 12 bytes.
    let mut out = words(&[0, 1, 3, 1, 0, 12, 4, length, 0]);
    out.extend(words(&segments));
    out.extend(words(&vec![1; usize::from(count)]));
    out
}

fn os2() -> Vec<u8> {
    let negative = (-200_i16) as u16;
    // Version 4, widths and weights, and where small letters and lines would stand.
    let mut out = words(&[
        4, 1000, 400, 5, 0, 650, 600, 0, 75, 650, 600, 0, 350, 50, 250, 0,
    ]);
    // Shapes, ranges of Unicode, vendor.
    out.extend([0; 10]);
    out.extend([0; 16]);
    out.extend(b"none");
    // Regular, first and last character, heights, code pages, more heights, blank and break character, context.
    out.extend(words(&[
        0x40, 0x20, 0x7e, 800, negative, 0, 800, 200, 0, 1, 0, 0, 500, 700, 0, 0x20, 1,
    ]));
    out
}

fn post() -> Vec<u8> {
    let mut out = words(&[3, 0, 0, 0, 0, 50]);
    out.extend([0; 20]);
    out
}

/// Family, style, full name and name for PostScript.
fn name() -> Vec<u8> {
    let names = [(1, "Boxes"), (2, "Regular"), (4, "Boxes"), (6, "Boxes")];
    let mut records = Vec::new();
    let mut texts: Vec<u8> = Vec::new();
    for (id, text) in names {
        let text: Vec<u16> = text.encode_utf16().collect();
        // Windows, Unicode, English.
        let (length, at) = (2 * text.len() as u16, texts.len() as u16);
        records.extend(words(&[3, 1, 0x409, id, length, at]));
        texts.extend(words(&text));
    }
    let count = names.len() as u16;
    let mut out = words(&[0, count, 6 + 12 * count]);
    out.extend(records);
    out.extend(texts);
    out
}
