//! How often connections are drawn in each resample, many resamples side by side.
//!
//! One after the other, a processor adds up one number at a time, and waits for most of them. Side by side it adds up as
//! many as its registers hold, and all series that have as many connections share what was drawn.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_link::Seed;

use super::{RESAMPLES, draw_each};

/// Resamples that are side by side.
pub(super) const LANES: usize = 80;
const _: () = assert!(RESAMPLES.is_multiple_of(LANES as u64));

/// A number of each of those resamples.
pub(super) type Lanes<T> = [T; LANES];

/// Connections of a series, at least, that are added up before anybody looks which of them a rank is.
const BLOCK: usize = 16;
/// And as many as a u16 holds the sum of.
const ADDED_UP: usize = 256;
const _: () = assert!(ADDED_UP * u8::MAX as usize <= u16::MAX as usize);

/// Connections whose resamples are kept for the next series of as many: 8 MB.
const MOST_KEPT: usize = 4096;

/// All resamples of so many connections.
struct Kept {
    seed: Seed,
    connections: usize,
    all: Arc<[Drawn]>,
}

/// How often each connection was drawn, by its place.
pub(super) struct Drawn(Vec<Lanes<u8>>);

/// Gives `see` all resamples of so many connections, [`LANES`] at a time.
pub(super) fn each(seed: Seed, connections: usize, mut see: impl FnMut(&Drawn)) {
    let firsts = (0..RESAMPLES).step_by(LANES);
    let drawn = firsts.map(|first| Drawn::of(seed, first, connections));
    if connections > MOST_KEPT {
        drawn.for_each(|drawn| see(&drawn));
        return;
    }
    static LAST: Mutex<Option<Kept>> = Mutex::new(None);
    let all = {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(kept) if (kept.seed, kept.connections) == (seed, connections) => {
                Arc::clone(&kept.all)
            }
            _ => {
                let all: Arc<[Drawn]> = drawn.collect();
                *last = Some(Kept {
                    seed,
                    connections,
                    all: Arc::clone(&all),
                });
                all
            }
        }
    };
    all.iter().for_each(see);
}

impl Drawn {
    /// The resamples from `first` on.
    fn of(seed: Seed, first: u64, connections: usize) -> Drawn {
        let mut counts = vec![[0; LANES]; connections];
        for (lane, resample) in (0..LANES).zip(first..) {
            draw_each(seed, resample, connections, |place| {
                // One of 256 would not be met in all the time that there is.
                let count: &mut u8 = &mut counts[place][lane];
                *count = count.saturating_add(1);
            });
        }
        Drawn(counts)
    }

    /// How often the connection at a place was drawn.
    pub(super) fn counts(&self, place: usize) -> &Lanes<u8> {
        &self.0[place]
    }

    /// Adds up how often the connections of a series were drawn, and leaves in `sums` where that is after each of its `blocks`.
    pub(super) fn add_up(
        &self,
        order: &[(f64, usize)],
        blocks: &[Range<usize>],
        sums: &mut Vec<Lanes<u32>>,
    ) {
        sums.clear();
        let mut all = [0_u32; LANES];
        for block in blocks {
            let block = order.get(block.clone()).unwrap_or_default();
            for some in block.chunks(ADDED_UP) {
                let mut of_some = [0_u16; LANES];
                for (_, place) in some {
                    // No sum is larger than its type, and a look at each would be one lane at a time.
                    for (sum, count) in of_some.iter_mut().zip(self.counts(*place)) {
                        *sum = sum.wrapping_add(u16::from(*count));
                    }
                }
                for (sum, of_some) in all.iter_mut().zip(&of_some) {
                    *sum = sum.wrapping_add(u32::from(*of_some));
                }
            }
            sums.push(all);
        }
    }
}

/// The blocks of a series in its order: of those that have one time, if they are many, else of some that follow each other.
pub(super) fn blocks(order: &[(f64, usize)]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for alike in order.chunk_by(|(one, _), (next, _)| one == next) {
        let end = start + alike.len();
        match blocks.last_mut() {
            Some(last) if last.len() < BLOCK && alike.len() < BLOCK => last.end = end,
            _ => blocks.push(start..end),
        }
        start = end;
    }
    blocks
}

/// In which block the connection is that has a rank, from a `guess` on; behind all of them if there are fewer.
pub(super) fn find(rank: u64, lane: usize, sums: &[Lanes<u32>], guess: usize) -> usize {
    let passed = |block: usize| sums.get(block).map(|sums| u64::from(sums[lane]));
    let mut block = guess.min(sums.len());
    while passed(block).is_some_and(|passed| passed <= rank) {
        block += 1;
    }
    while let Some(before) = block.checked_sub(1)
        && passed(before).is_some_and(|passed| passed > rank)
    {
        block = before;
    }
    block
}
