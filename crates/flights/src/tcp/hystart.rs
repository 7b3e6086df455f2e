//! When CUBIC ends slow start although nothing is lost.

use std::time::Duration;

use lastbyte_link::Time;

/// `hystart_low_window`
const LEAST_WINDOW: u32 = 16;
/// `hystart_ack_delta_us`
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// `hystart_ack_delay`, at its most: what GRO may hold back. It is less where a round trip takes a fraction of that.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// `HYSTART_MIN_SAMPLES`
const SAMPLES: u32 = 8;

/// What CUBIC notes of a round trip (`hystart_update`).
pub(super) struct HyStart {
    /// The shortest round trip (`delay_min`).
    least: Option<Duration>,
    /// When this round trip began, and where it ends (`end_seq`).
    start: Time,
    end: usize,
    /// When an acknowledgement came last that followed the one before closely.
    last: Time,
    /// The shortest sample of this round trip, of so many.
    current: Option<Duration>,
    samples: u32,
    is_over: bool,
}

impl HyStart {
    pub(super) fn new(now: Time) -> HyStart {
        HyStart {
            least: None,
            start: now,
            end: 0,
            last: now,
            current: None,
            samples: 0,
            is_over: false,
        }
    }

    /// Notes that all before `acknowledged` is acknowledged, and that the last segment of that took so long. Returns whether slow
    /// start ends with such a window, when all before `sent` was sent.
    pub(super) fn ends(
        &mut self,
        round_trip: Duration,
        window: u32,
        [acknowledged, sent]: [usize; 2],
        now: Time,
    ) -> bool {
        let round_trip = round_trip.max(Duration::from_micros(1));
        let least = self.least.map_or(round_trip, |least| least.min(round_trip));
        self.least = Some(least);
        if acknowledged > self.end {
            *self = HyStart {
                least: self.least,
                end: sent,
                ..HyStart::new(now)
            };
        }
        if window < LEAST_WINDOW {
            return false;
        }
        // Either is looked at, whatever the other says.
        let ends = [
            self.is_long_train(least, now),
            self.is_delayed(least, round_trip),
        ];
        self.is_over = ends.contains(&true);
        self.is_over
    }

    /// Whether slow start has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether acknowledgements follow each other closely for half of a round trip.
    fn is_long_train(&mut self, least: Duration, now: Time) -> bool {
        if now.since(self.last) > TRAIN_GAP {
            return false;
        }
        self.last = now;
        now.since(self.start) > (least + ACK_DELAY) / 2
    }

    /// Whether the round trip has become longer by an eighth, or 4 to 16 ms.
    fn is_delayed(&mut self, least: Duration, round_trip: Duration) -> bool {
        let current = self
            .current
            .map_or(round_trip, |sample| sample.min(round_trip));
        self.current = Some(current);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let more = (least / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        current > least + more
    }
}
