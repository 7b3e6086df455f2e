//! How long an end waits for an acknowledgement.

use std::time::Duration;

use super::{RTO_MIN, microseconds};

/// `TCP_TIMEOUT_MIN_US`
const TIMEOUT_MIN: i64 = 2000;

/// The estimate of the round trip, and the retransmission timeout that is made of it
/// (`tcp_rtt_estimator`). In microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    /// In eighths (`srtt_us`); 0 before the first sample.
    smoothed: i64,
    /// In fourths (`mdev_us`).
    deviation: i64,
    /// The largest deviation of a round trip (`mdev_max_us`).
    most: i64,
    /// What the timeout is above the round trip (`rttvar_us`).
    variance: i64,
    /// Where the round trip ends that is measured (`rtt_seq`).
    end: usize,
}

impl Estimate {
    /// Adds a sample, when all before `acknowledged` is, and all before `sent` was sent.
    pub(super) fn sample(&mut self, round_trip: Duration, acknowledged: usize, sent: usize) {
        let sample = microseconds(round_trip);
        if self.smoothed == 0 {
            self.smoothed = (8 * sample).max(1);
            self.deviation = 2 * sample;
            self.variance = self.deviation.max(RTO_MIN);
            self.most = self.variance;
            self.end = sent;
            return;
        }
        let error = sample - (self.smoothed >> 3);
        self.smoothed = (self.smoothed + error).max(1);
        let more = error.abs() - (self.deviation >> 2);
        // A shorter round trip is no reason to wait longer.
        self.deviation += if error < 0 && more > 0 {
            more >> 3
        } else {
            more
        };
        if self.deviation > self.most {
            self.most = self.deviation;
            self.variance = self.variance.max(self.most);
        }
        if acknowledged > self.end {
            if self.most < self.variance {
                self.variance -= (self.variance - self.most) >> 2;
            }
            self.end = sent;
            self.most = RTO_MIN;
        }
    }

    /// The retransmission timeout (`tcp_set_rto`): a number of jiffies.
    pub(super) fn timeout(&self) -> Duration {
        jiffies((self.smoothed >> 3) + self.variance)
    }

    /// After how long without an acknowledgement a probe is sent, of so many segments in flight, if
    /// the retransmission timeout is not over sooner (`tcp_schedule_loss_probe`).
    pub(super) fn probe(&self, in_flight: usize) -> Duration {
        let more = match in_flight {
            // Its acknowledgement may be delayed.
            1 => RTO_MIN,
            _ => TIMEOUT_MIN,
        };
        jiffies((self.smoothed >> 2) + more)
    }
}

/// `usecs_to_jiffies` of a kernel with 1000 in a second
fn jiffies(microseconds: i64) -> Duration {
    let microseconds = u64::try_from(microseconds).unwrap_or_default();
    Duration::from_millis(microseconds.div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn timeouts(samples: &[u64]) -> Vec<u128> {
        let mut estimate = Estimate::default();
        let timeouts = (0..).zip(samples).map(|(at, sample)| {
            // A segment in each round trip.
            estimate.sample(ms(*sample), at, at);
            estimate.timeout().as_millis()
        });
        timeouts.collect()
    }

    /// Three round trips at first, or 200 ms more than one.
    #[test]
    fn a_timeout_begins_long_and_decays_by_a_quarter_in_each_round_trip() {
        assert_eq!(timeouts(&[35]), [235]);
        assert_eq!(timeouts(&[100]), [300]);
        // The first round trip's deviation lasts for another one.
        assert_eq!(timeouts(&[200; 6]), [600, 600, 557, 518, 488, 466]);
        assert_eq!(timeouts(&[35; 4]), [235; 4]);
    }

    #[test]
    fn a_longer_round_trip_counts_at_once_and_a_shorter_one_hardly() {
        assert_eq!(timeouts(&[100, 100, 500]), [300, 300, 663]);
        assert_eq!(timeouts(&[200, 200, 100]), [600, 600, 564]);
    }
}
