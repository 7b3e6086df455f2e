//! Decompression beside reading: a thread that is a little ahead.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Pieces that go around between the two, twice what [`Lines`](crate::lines::Lines) takes at once, so that neither waits for the
/// other; and how large they are.
const PIECES: usize = 8;
const SIZE: usize = 64 << 10;

/// What a thread reads.
pub(crate) struct Ahead {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    piece: Vec<u8>,
    used: usize,
}

/// Reads `input` in a thread, which ends with it, or when nobody reads it any more.
pub(crate) fn ahead(input: Box<dyn Read + Send>) -> Ahead {
    let (empty, to_fill) = channel();
    let (filled, full) = channel();
    for _ in 0..PIECES {
        // The other end is here.
        let _ = empty.send(vec![0; SIZE]);
    }
    thread::spawn(move || fill(input, &to_fill, &filled));
    Ahead {
        full,
        empty,
        piece: Vec::new(),
        used: 0,
    }
}

fn fill(
    mut input: Box<dyn Read + Send>,
    to_fill: &Receiver<Vec<u8>>,
    filled: &Sender<io::Result<Vec<u8>>>,
) {
    for mut piece in to_fill {
        piece.resize(SIZE, 0);
        let mut count = 0;
        // Whole pieces, so that the two seldom wait for each other.
        let error = loop {
            if count == SIZE {
                break None;
            }
            match input.read(piece.get_mut(count..).unwrap_or_default()) {
                Ok(0) => break None,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        piece.truncate(count);
        // A full piece is never the last one.
        let ends = count < SIZE;
        if filled.send(Ok(piece)).is_err() {
            return;
        }
        if let Some(error) = error {
            // Nobody may be left to tell.
            let _ = filled.send(Err(error));
        }
        if ends {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.used == self.piece.len() {
            match self.full.recv() {
                Ok(Ok(piece)) => {
                    let used = std::mem::replace(&mut self.piece, piece);
                    self.used = 0;
                    if used.capacity() >= SIZE {
                        // The thread may have ended.
                        let _ = self.empty.send(used);
                    }
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => return Ok(0),
            }
        }
        let rest = self.piece.get(self.used..).unwrap_or_default();
        let count = rest.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.used += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Gives so many bytes, some at a time, and fails then if it is to.
    struct Counting(usize, usize, bool);

    impl Read for Counting {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let count = self.0.min(self.1).min(room.len());
            if count == 0 && self.2 && !room.is_empty() {
                return Err(io::Error::other("broken"));
            }
            for (at, byte) in room[..count].iter_mut().enumerate() {
                *byte = (self.0 - at) as u8;
            }
            self.0 -= count;
            Ok(count)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn everything_in_order(total in prop_oneof![0usize..300_000, Just(SIZE), Just(2 * SIZE)], at_once in 1usize..100_000, breaks in any::<bool>()) {
            let mut expected = Vec::new();
            let whole = Counting(total, at_once, breaks).read_to_end(&mut expected).is_ok();
            let mut found = Vec::new();
            let same = ahead(Box::new(Counting(total, at_once, breaks))).read_to_end(&mut found).is_ok();
            prop_assert_eq!(same, whole);
            prop_assert!(found == expected);
        }
    }
}
