//! What an end has sent, and what it may send.

use std::collections::VecDeque;
use std::time::Duration;

use lastbyte_link::Time;

use super::hystart::HyStart;
use super::timeout::Estimate;
use super::{SHARED_INFO, SKB, SlowStart, TCP_HEADERS, memory};
use crate::{Growth, Path};

/// `TCP_INIT_CWND`
const INIT_CWND: u32 = 10;

/// `bbr_cwnd_min_target`
const BBR_LEAST: u32 = 4;

/// Bytes count from the first of the connection.
pub(super) struct Sending {
    /// In segments.
    pub(super) cwnd: u32,
    /// How far the current window was used (`is_cwnd_limited`).
    usage: Usage,
    /// The most segments in flight in the current window.
    max_packets_out: u32,
    /// Where the current window ends (`cwnd_usage_seq`).
    usage_end: usize,
    written: usize,
    pub(super) sent: usize,
    acknowledged: usize,
    /// Where the window ends that the receiver has advertised.
    window_end: usize,
    in_flight: VecDeque<InFlight>,
    /// Segments that were acknowledged (`delivered`).
    delivered: u32,
    /// The most of them within a round trip.
    most_delivered: u32,
    growth: Growth,
    /// Where the flight begins, while it lasts.
    pub(super) flight: Option<usize>,
    initcwnd: u32,
    mss: usize,
    /// When data was last sent (`lsndtime`).
    last: Option<Time>,
    estimate: Estimate,
    /// When something is sent again if nothing is acknowledged until then.
    probe: Option<Time>,
    /// None where slow start has ended, or has no such end.
    hystart: Option<HyStart>,
    slow_start: SlowStart,
    /// Where slow start ends (`snd_ssthresh`).
    threshold: u32,
    buffer: Buffer,
}

/// A segment that was sent, and not acknowledged yet.
struct InFlight {
    /// Where it ends.
    end: usize,
    sent: Time,
    /// How many segments had been acknowledged when it left.
    delivered: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Usage {
    Full,
    Partial,
}

/// The send buffer.
struct Buffer {
    /// `sk_sndbuf`, in bytes of memory.
    size: usize,
    /// `tcp_wmem[2]`
    most: usize,
    /// What a segment may take (`per_mss` of `tcp_sndbuf_expand`).
    per_segment: usize,
    /// What the application has, and could not write.
    waiting: usize,
    /// Whether it waits for room (`SOCK_NOSPACE`).
    is_waiting: bool,
}

impl Sending {
    /// That of an end that begins with so many segments, to a peer with so large a window.
    pub(super) fn new(path: &Path, initcwnd: u32, window: usize, slow_start: SlowStart) -> Sending {
        let initcwnd = initcwnd.max(1);
        // `mss_clamp` has no room for timestamps.
        let mss_clamp = path.mss + path.headers - 40;
        let mut sending = Sending {
            cwnd: initcwnd,
            usage: Usage::Partial,
            max_packets_out: 0,
            usage_end: 0,
            written: 0,
            sent: 0,
            acknowledged: 0,
            window_end: window,
            in_flight: VecDeque::new(),
            delivered: 0,
            most_delivered: 0,
            growth: path.growth,
            flight: None,
            initcwnd,
            mss: path.mss.max(1),
            last: None,
            estimate: Estimate::default(),
            probe: None,
            hystart: None,
            slow_start,
            threshold: u32::MAX,
            buffer: Buffer {
                size: path.buffers.send,
                most: path.buffers.send_most.max(path.buffers.send),
                per_segment: (mss_clamp + TCP_HEADERS + SHARED_INFO).next_power_of_two() + SKB,
                waiting: 0,
                is_waiting: false,
            },
        };
        sending.expand();
        sending
    }

    /// `tcp_sndbuf_expand`
    fn expand(&mut self) {
        let segments = self.cwnd.max(INIT_CWND) as usize;
        let size = 2 * segments * self.buffer.per_segment;
        self.buffer.size = self.buffer.size.max(size.min(self.buffer.most));
    }

    /// The application has more to write.
    pub(super) fn write(&mut self, bytes: usize) {
        self.buffer.waiting += bytes;
    }

    /// `tcp_sendmsg`: takes of what waits as much as fits a segment. Returns whether there was
    /// room.
    pub(super) fn take(&mut self) -> bool {
        if self.buffer.waiting == 0 {
            return false;
        }
        let tail = (self.written - self.sent) % self.mss;
        // `sk_stream_memory_free`
        if tail == 0 && self.queued() >= self.buffer.size {
            self.buffer.is_waiting = true;
            return false;
        }
        let bytes = (self.mss - tail).min(self.buffer.waiting);
        self.written += bytes;
        self.buffer.waiting -= bytes;
        true
    }

    /// `sk_wmem_queued`: memory of what is not acknowledged.
    fn queued(&self) -> usize {
        let unsent = self.written - self.sent;
        let in_flight = self.sent - self.acknowledged.min(self.sent);
        let segments = self.in_flight.len() + unsent.div_ceil(self.mss);
        in_flight + unsent + segments * memory(0)
    }

    /// `tcp_check_space`: whether the application can go on writing.
    pub(super) fn check_space(&mut self) -> bool {
        if !self.buffer.is_waiting {
            return false;
        }
        if self.packets_out() < self.cwnd {
            self.expand();
        }
        // `sk_stream_is_writeable`
        let queued = self.queued();
        let is_writable = self.buffer.size.saturating_sub(queued) >= queued / 2;
        self.buffer.is_waiting = !is_writable;
        is_writable
    }

    /// `tcp_slow_start_after_idle_check` and `tcp_cwnd_restart`: half of the window for each
    /// retransmission timeout without data, but not less than the initial one
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        // Whoever has a say of its own over the window is left alone (`cong_control`).
        if self.growth != Growth::Used {
            return;
        }
        let Some(last) = self.last.filter(|_| self.in_flight.is_empty()) else {
            return;
        };
        let rto = self.timeout();
        let mut idle = now.since(last).saturating_sub(rto);
        let least = self.initcwnd.min(self.cwnd);
        while !idle.is_zero() && self.cwnd > least {
            self.cwnd /= 2;
            idle = idle.saturating_sub(rto);
        }
        self.cwnd = self.cwnd.max(least);
    }

    pub(super) fn is_all_sent(&self) -> bool {
        self.sent == self.written
    }

    /// `tcp_cwnd_test` and `tcp_snd_wnd_test`, while there is something to send
    pub(super) fn has_room(&self) -> bool {
        let end = self.written.min(self.sent + self.mss);
        !self.is_all_sent() && self.packets_out() < self.cwnd && end <= self.window_end
    }

    /// Cuts off the next segment; returns its payload.
    pub(super) fn next_segment(&mut self, now: Time) -> usize {
        self.last = Some(now);
        let payload = self.mss.min(self.written - self.sent);
        self.sent += payload;
        self.in_flight.push_back(InFlight {
            end: self.sent,
            sent: now,
            delivered: self.delivered,
        });
        payload
    }

    /// The three-way handshake took so long.
    pub(super) fn establish(&mut self, round_trip: Duration, now: Time) {
        self.estimate.sample(round_trip, 0, 0);
        self.hystart = (self.growth == Growth::Used).then(|| HyStart::new(now));
    }

    /// Whether CUBIC has just ended slow start.
    pub(super) fn ends_slow_start(&mut self) -> bool {
        let ends = self.hystart.as_ref().is_some_and(HyStart::is_over);
        if ends {
            self.hystart = None;
        }
        ends
    }

    /// `tcp_schedule_loss_probe`, when something was sent
    pub(super) fn schedule_probe(&mut self, now: Time) {
        self.probe = self.in_flight.front().map(|first| {
            let timeout = first.sent + self.timeout();
            (now + self.estimate.probe(self.in_flight.len())).min(timeout.max(now))
        });
    }

    /// `tcp_set_xmit_timer`, when something was acknowledged
    fn reschedule_probe(&mut self, now: Time) {
        let in_flight = self.in_flight.len();
        let after = self.estimate.probe(in_flight).min(self.timeout());
        self.probe = (in_flight > 0).then(|| now + after);
    }

    /// When something is sent again for want of an acknowledgement.
    pub(super) fn probe_at(&self) -> Option<Time> {
        self.probe
    }

    /// The retransmission timeout.
    pub(super) fn timeout(&self) -> Duration {
        self.estimate.timeout()
    }

    /// `tcp_ack`
    pub(super) fn acknowledged_to(&mut self, end: usize, window: usize, now: Time) {
        self.window_end = self.window_end.max(end + window);
        self.acknowledged = self.acknowledged.max(end);
        let before = self.delivered;
        let mut round_trip = None;
        let mut of_last = Duration::ZERO;
        while let Some(segment) = self.in_flight.pop_front_if(|segment| segment.end <= end) {
            self.delivered = self.delivered.saturating_add(1);
            let within = self.delivered.saturating_sub(segment.delivered);
            self.most_delivered = self.most_delivered.max(within);
            // That of the first one (`seq_rtt_us`).
            of_last = now.since(segment.sent);
            round_trip.get_or_insert(of_last);
        }
        if let Some(round_trip) = round_trip {
            self.estimate
                .sample(round_trip, self.acknowledged, self.sent);
            self.reschedule_probe(now);
            let place = [self.acknowledged, self.sent];
            if let Some(hystart) = &mut self.hystart
                && hystart.ends(of_last, self.cwnd, place, now)
                && self.slow_start == SlowStart::Ends
            {
                self.threshold = self.cwnd;
            }
        }
        let acknowledged = self.delivered - before;
        if self.grows() {
            let grown = self.cwnd.saturating_add(acknowledged);
            self.cwnd = grown.min(self.threshold).max(self.cwnd);
        }
        if self.growth != Growth::Used && acknowledged > 0 {
            self.cwnd = self.cwnd.max(BBR_LEAST);
        }
        if self.flight.is_some_and(|begin| begin < end) {
            self.flight = None;
        }
    }

    fn grows(&self) -> bool {
        match self.growth {
            Growth::Used => self.is_cwnd_limited(),
            Growth::Always => true,
            Growth::ToGain(gain) => {
                let most = u64::from(self.most_delivered) * u64::from(gain) / 1000;
                self.delivered < INIT_CWND || u64::from(self.cwnd) < most
            }
        }
    }

    /// `tcp_is_cwnd_limited`, in slow start
    fn is_cwnd_limited(&self) -> bool {
        self.usage == Usage::Full || self.cwnd < self.max_packets_out.saturating_mul(2)
    }

    /// Whether the congestion window is full.
    pub(super) fn is_full(&self) -> bool {
        self.packets_out() >= self.cwnd
    }

    /// `tcp_cwnd_validate`, after something was sent or could not be
    pub(super) fn validate_cwnd(&mut self) {
        let packets_out = self.packets_out();
        let usage = if self.is_full() {
            Usage::Full
        } else {
            Usage::Partial
        };
        if usage == Usage::Full
            || self.acknowledged >= self.usage_end
            || self.usage == Usage::Partial && packets_out > self.max_packets_out
        {
            self.usage = usage;
            self.max_packets_out = packets_out;
            self.usage_end = self.sent;
        }
    }

    fn packets_out(&self) -> u32 {
        u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX)
    }
}
