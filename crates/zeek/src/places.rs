//! Where a byte is in a line. Fields have a few bytes each: to search for the end of each anew takes longer than to look
//! at all bytes, many at a time, and then at those that were found.

/// Bytes that are looked at together, one for each bit of what is found.
const BLOCK: usize = u64::BITS as usize;

/// All but the highest bit of each byte.
const LOW: u64 = u64::from_le_bytes([0x7f; 8]);

/// The places of one byte, in order.
pub(crate) struct Places<'a> {
    byte: u8,
    blocks: std::slice::Iter<'a, [u8; BLOCK]>,
    rest: Option<&'a [u8]>,
    /// A bit for each place in a block, the lowest for its first byte, and where the next block
    /// begins.
    found: u64,
    after: usize,
}

impl<'a> Places<'a> {
    pub(crate) fn of(byte: u8, text: &'a [u8]) -> Self {
        let (blocks, rest) = text.as_chunks();
        Places {
            byte,
            blocks: blocks.iter(),
            rest: Some(rest),
            found: 0,
            after: 0,
        }
    }
}

impl Iterator for Places<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            self.found = match self.blocks.next() {
                Some(block) => find(self.byte, block),
                None => {
                    let rest = self.rest.take()?;
                    // What is not there is none.
                    let mut block = [!self.byte; BLOCK];
                    if let Some(begin) = block.get_mut(..rest.len()) {
                        begin.copy_from_slice(rest);
                    }
                    find(self.byte, &block)
                }
            };
            self.after += BLOCK;
        }
        let at = self.after - BLOCK + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(at)
    }
}

/// A bit for each byte that is this one.
fn find(byte: u8, block: &[u8; BLOCK]) -> u64 {
    let wanted = u64::from_le_bytes([byte; 8]);
    let (eights, _) = block.as_chunks::<8>();
    eights.iter().rev().fold(0, |found, eight| {
        let others = u64::from_le_bytes(*eight) ^ wanted;
        // The highest bit of each byte of zero: nothing carries from one byte into the next.
        let zeros = !(((others & LOW).wrapping_add(LOW)) | others | LOW);
        // The eight bits side by side, in the highest byte: each comes there once.
        let bits = (zeros >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        found << 8 | bits
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_a_search_of_each_byte_has_them(byte in any::<u8>(), text in prop::collection::vec(any::<u8>(), 0..300), often in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
            let mut text = text;
            if !text.is_empty() {
                for place in often {
                    let at = place.index(text.len());
                    // Its neighbours by value are what a borrow or a carry would take for it.
                    text[at] = byte ^ match at % 4 {
                        0 => 1,
                        1 => 0x80,
                        _ => 0,
                    };
                }
            }
            let found: Vec<usize> = Places::of(byte, &text).collect();
            let expected: Vec<usize> = (0..text.len()).filter(|at| text[*at] == byte).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
