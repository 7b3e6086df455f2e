//! Sizes at which a handshake needs a flight more.

/// What lies next to a size of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Flights that the size needs.
    pub flights: usize,
    /// The largest size that needs fewer, if any does.
    pub below: Option<usize>,
    /// The largest size that needs no more, if any larger one does.
    pub above: Option<usize>,
}

/// Looks from `size` down to `least` and up to `most` for the next sizes at which the number of
/// flights changes. What `needed` says must not fall as sizes grow. `step` is how far the next edge
/// may be at first.
pub fn around(
    size: usize,
    [least, most]: [usize; 2],
    step: usize,
    needed: impl Fn(usize) -> usize,
) -> Around {
    let flights = needed(size);
    let below = (least < size && needed(least) < flights)
        .then(|| largest(least, size, |bytes| needed(bytes) < flights));
    let mut beyond = size;
    let mut step = step.max(1);
    while beyond < most && needed(beyond) <= flights {
        beyond = beyond.saturating_add(step).min(most);
        step = step.saturating_mul(2);
    }
    let above =
        (needed(beyond) > flights).then(|| largest(size, beyond, |bytes| needed(bytes) <= flights));
    Around {
        flights,
        below,
        above,
    }
}

/// The largest that `fits`, between one that does and one that does not.
pub fn largest(mut fitting: usize, mut other: usize, fits: impl Fn(usize) -> bool) -> usize {
    while fitting + 1 < other {
        let middle = fitting.midpoint(other);
        if fits(middle) {
            fitting = middle;
        } else {
            other = middle;
        }
    }
    fitting
}
