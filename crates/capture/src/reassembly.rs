//! One direction of a connection, put together of its segments.

use std::collections::BTreeMap;

/// A stream of bytes whose segments come in any order, and more than once. What comes early waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reassembly {
    length: u64,
    early: BTreeMap<u64, Vec<u8>>,
}

impl Reassembly {
    /// Takes the bytes that are at `offset` of the stream. Gives those that are next in it now, and
    /// were not before.
    pub fn take(&mut self, offset: u64, bytes: &[u8]) -> Vec<u8> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let early = self.early.entry(offset).or_default();
        // What is sent again may be cut otherwise.
        if early.len() < bytes.len() {
            *early = bytes.to_vec();
        }
        let mut fresh = Vec::new();
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() > self.length {
                break;
            }
            let (offset, bytes) = entry.remove_entry();
            let received = usize::try_from(self.length - offset).unwrap_or(usize::MAX);
            let new = bytes.get(received..).unwrap_or_default();
            self.length += new.len() as u64;
            fresh.extend_from_slice(new);
        }
        fresh
    }

    /// How many bytes are there from the first one on.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_early_segments_at_one_place_the_longer_one_is_kept() {
        for lengths in [[50, 100], [100, 50]] {
            let mut stream = Reassembly::default();
            let bytes: Vec<u8> = (0..=255).chain(0..=43).collect();
            for length in lengths {
                assert_eq!(stream.take(200, &bytes[200..200 + length]), []);
            }
            assert_eq!(stream.take(0, &bytes[..200]), bytes);
            assert_eq!(stream.length(), 300);
        }
    }

    proptest! {
        #[test]
        fn segments_in_any_order_are_the_stream(
            bytes in prop::collection::vec(any::<u8>(), 1..2000),
            cuts in prop::collection::vec((0_usize..2000, 1_usize..400), 0..40),
        ) {
            let mut stream = Reassembly::default();
            let mut read = Vec::new();
            let mut there = vec![false; bytes.len()];
            for (at, length) in cuts {
                let end = (at + length).min(bytes.len());
                let Some(part) = bytes.get(at..end) else { continue };
                read.extend(stream.take(at as u64, part));
                there[at..end].fill(true);
                // All that is there without a gap has been given.
                let whole = there.iter().position(|there| !there).unwrap_or(bytes.len());
                prop_assert_eq!(&read, &bytes[..whole]);
            }
            prop_assert_eq!(stream.length(), read.len() as u64);
        }
    }
}
