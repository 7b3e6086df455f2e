//! What an end has received: how it acknowledges, and the window that it advertises.

use std::time::Duration;

use lastbyte_link::Time;

use super::{Segment, memory};
use crate::Path;

/// `TCP_MAX_QUICKACKS`
const QUICK_ACKS: u32 = 16;
/// `TCP_DELACK_MIN` and `TCP_ATO_MIN`
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// `TCP_INIT_CWND`
const INIT_CWND: usize = 10;
/// `TCP_MSS_DEFAULT`
const MSS_DEFAULT: usize = 536;
/// `TCP_MIN_MSS`
const LEAST_MSS: usize = 88;
/// `SOCK_MIN_RCVBUF`
const LEAST_SIZE: usize = 2048 + 256;
/// A TCP header with timestamps.
const TCP_HEADER: usize = 32;
/// `U16_MAX`: the window of a SYN has no scale.
const UNSCALED: usize = 65_535;

/// Bytes count from the first of the connection.
pub(super) struct Receiving {
    received: usize,
    acknowledged: usize,
    /// How many more acknowledgements leave at once (`icsk_ack.quick`).
    quick: u32,
    mode: AckMode,
    /// When the delayed acknowledgement is due.
    deadline: Option<Time>,
    /// When data came last (`icsk_ack.lrcvtime`).
    last: Option<Time>,
    /// The MSS that an end believes its peer to have (`icsk_ack.rcv_mss`).
    peer_mss: usize,
    advertised_mss: usize,
    /// The last segment, if it was a short one (`icsk_ack.last_seg_size`).
    short: Option<usize>,
    /// Segments that ended a write and were not acknowledged yet (`ICSK_ACK_PUSHED` and
    /// `ICSK_ACK_PUSHED2`).
    pushed: u32,
    /// The TSval that is echoed (`rx_opt.ts_recent`).
    echoed: Option<u64>,
    timestamps: bool,
    buffer: Buffer,
    round_trip: RoundTrip,
}

#[derive(PartialEq)]
enum AckMode {
    Quick,
    /// What is received is expected to be answered with data.
    PingPong,
}

/// The receive buffer, and the window that is made of it.
struct Buffer {
    /// `sk_rcvbuf`, in bytes of memory.
    size: usize,
    /// `tcp_rmem[2]`
    most: usize,
    /// Of 256 bytes of memory, how many are payload (`scaling_ratio`).
    ratio: usize,
    /// The largest window (`window_clamp`).
    clamp: usize,
    /// The largest window for now (`rcv_ssthresh`).
    threshold: usize,
    /// What was advertised last (`rcv_wnd`).
    window: usize,
    /// `1 << rcv_wscale`
    unit: usize,
    /// Memory of what was not read yet (`sk_rmem_alloc`): the last segment at most.
    unread: usize,
    /// What an application reads in a round trip (`rcvq_space.space`).
    space: usize,
    /// Where, and when, the round trip began (`rcvq_space.seq` and `time`).
    since: (usize, Time),
}

/// The receiver's estimate of the round trip (`rcv_rtt_est`).
#[derive(Default)]
struct RoundTrip {
    /// In eighths of microseconds; 0 before the first sample.
    estimate: u64,
    /// The TSecr of the last sample.
    echo: Option<u64>,
    /// When a window began, and where it ends.
    window: Option<(Time, usize)>,
}

impl Receiving {
    /// That of an end that has sent a SYN or SYN-ACK; `syn_mss` is what it believes an MSS to be
    /// then.
    pub(super) fn new(path: &Path, syn_mss: usize) -> Receiving {
        let buffer = Buffer::new(path, syn_mss);
        Receiving {
            received: 0,
            acknowledged: 0,
            quick: 0,
            mode: AckMode::Quick,
            deadline: None,
            last: None,
            // `tcp_initialize_rcv_mss`
            peer_mss: (path.mss.min(buffer.window / 2)).clamp(LEAST_MSS, MSS_DEFAULT),
            advertised_mss: path.mss.max(1),
            short: None,
            pushed: 0,
            echoed: None,
            timestamps: path.has_timestamps(),
            buffer,
            round_trip: RoundTrip::default(),
        }
    }

    /// The window in a SYN.
    pub(super) fn syn_window(&self) -> usize {
        self.buffer.window.min(UNSCALED)
    }

    /// `tcp_init_buffer_space`, when TCP is established
    pub(super) fn establish(&mut self, now: Time) {
        self.buffer.establish(self.advertised_mss, now);
    }

    /// `sock_set_rcvbuf`: the application sets the buffer, which then no longer grows.
    pub(super) fn set_buffer(&mut self, bytes: usize) {
        self.buffer.set(bytes);
    }

    /// Notes the timestamp of the peer's SYN, which was sent then.
    pub(super) fn synchronise(&mut self, sent: Time) {
        self.echoed = self.timestamps.then(|| timestamp(sent));
    }

    /// `tcp_replace_ts_recent`, with any packet
    pub(super) fn note_timestamp(&mut self, packet: &Segment) {
        if self.timestamps && packet.sequence <= self.acknowledged {
            self.echoed = Some(packet.timestamp);
        }
    }

    /// `tcp_rcv_rtt_measure_ts`, with any packet that the fast path does not take, and with all
    /// data
    pub(super) fn measure_round_trip(&mut self, packet: &Segment, now: Time) {
        if !self.timestamps || packet.echo == self.round_trip.echo {
            return;
        }
        self.round_trip.echo = packet.echo;
        let ticks = packet.echo.map(|echo| timestamp(now).saturating_sub(echo));
        if let Some(ticks) = ticks.filter(|ticks| *ticks > 0)
            && packet.payload >= self.peer_mss
        {
            self.round_trip.sample(1000 * ticks);
        }
    }

    /// `tcp_queue_rcv` and `tcp_event_data_recv`
    pub(super) fn receive(&mut self, packet: &Segment, now: Time, rto: Duration) {
        let payload = packet.payload;
        self.received += payload;
        self.buffer.unread = memory(payload);
        self.note_mss(packet);
        let end = self.received + self.buffer.window;
        self.round_trip.measure(self.received, end, now);
        if self.last.is_none_or(|last| now.since(last) > rto) {
            // `tcp_incr_quickack`
            let quick = (self.buffer.window / (2 * self.peer_mss)).max(2);
            let quick = u32::try_from(quick).unwrap_or(QUICK_ACKS).min(QUICK_ACKS);
            self.quick = self.quick.max(quick);
        }
        self.last = Some(now);
        if payload >= 128 && self.buffer.grow(payload, self.advertised_mss) {
            self.quick |= 1;
        }
    }

    /// `tcp_measure_rcv_mss`
    fn note_mss(&mut self, packet: &Segment) {
        let payload = packet.payload;
        let before = self.short.take();
        if payload >= self.peer_mss {
            if payload > self.peer_mss {
                self.buffer.measure(payload);
            }
            self.peer_mss = payload.min(self.advertised_mss);
            self.pushed = self.pushed.max(u32::from(packet.ends_write));
            return;
        }
        if payload + TCP_HEADER >= MSS_DEFAULT + 20 {
            self.short = Some(payload);
            if self.short == before {
                self.peer_mss = payload;
                return;
            }
        }
        self.pushed += 1;
    }

    /// `tcp_recvmsg`: the application reads all that is there.
    pub(super) fn read(&mut self, now: Time) {
        self.buffer.unread = 0;
        self.adjust_buffer(now);
    }

    /// `tcp_rcv_space_adjust`
    fn adjust_buffer(&mut self, now: Time) {
        let (begin, since) = self.buffer.since;
        let microseconds = now.since(since).as_micros();
        let estimate = self.round_trip.estimate / 8;
        if estimate == 0 || microseconds < u128::from(estimate) {
            return;
        }
        self.buffer
            .adjust(self.received - begin, self.advertised_mss);
        self.buffer.since = (self.received, now);
    }

    /// `tcp_event_data_sent`
    pub(super) fn data_sent(&mut self, now: Time) {
        if self.last.is_some_and(|last| now.since(last) < DELAYED_ACK) {
            self.mode = AckMode::PingPong;
        }
    }

    /// `__tcp_ack_snd_check`, when something has arrived
    pub(super) fn is_ack_due(&self) -> bool {
        let unacknowledged = self.unacknowledged();
        let is_quick = self.mode == AckMode::Quick && self.quick > 0;
        unacknowledged > self.peer_mss && self.buffer.next(self.peer_mss) >= self.buffer.window
            || unacknowledged > 0 && is_quick
    }

    /// `__tcp_cleanup_rbuf`, when it was read
    pub(super) fn is_ack_due_after_read(&self) -> bool {
        let unacknowledged = self.unacknowledged();
        let is_prompt = match self.mode {
            AckMode::Quick => self.pushed > 0,
            AckMode::PingPong => self.pushed > 1,
        };
        unacknowledged > self.peer_mss
            || unacknowledged > 0 && is_prompt
            || self.buffer.has_doubled(unacknowledged, self.peer_mss)
    }

    /// All bytes so far.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    fn unacknowledged(&self) -> usize {
        self.received - self.acknowledged
    }

    /// `tcp_send_delayed_ack`: the deadline of what isn't acknowledged yet, if it is a new one
    pub(super) fn delay_ack(&mut self, now: Time) -> Option<Time> {
        if self.received == self.acknowledged || self.deadline.is_some() {
            return None;
        }
        self.deadline = Some(now + DELAYED_ACK);
        self.deadline
    }

    /// `tcp_delack_timer_handler`: whether a delayed acknowledgement is due
    pub(super) fn end_delay(&mut self, now: Time) -> bool {
        let is_due = self.deadline == Some(now);
        if is_due {
            self.mode = AckMode::Quick;
        }
        is_due
    }

    /// `tcp_event_ack_sent`: any packet that is sent acknowledges all that was received, and tells
    /// the window. Fills them in.
    pub(super) fn acknowledge(&mut self, mut packet: Segment, now: Time) -> Segment {
        packet.window = self.buffer.select(self.unacknowledged(), self.peer_mss);
        // `__tcp_select_window`
        if self.buffer.is_half_full() {
            self.quick = 0;
        }
        if self.received > self.acknowledged {
            self.quick = self.quick.saturating_sub(1);
        }
        self.acknowledged = self.received;
        self.pushed = 0;
        self.deadline = None;
        packet.acknowledgement = self.received;
        packet.timestamp = timestamp(now);
        packet.echo = self.echoed;
        packet
    }
}

impl Buffer {
    /// `tcp_select_initial_window`
    fn new(path: &Path, syn_mss: usize) -> Buffer {
        let most = path.buffers.receive_most.max(path.buffers.receive);
        let mut buffer = Buffer {
            size: path.buffers.receive,
            most,
            // `TCP_DEFAULT_SCALING_RATIO`
            ratio: 128,
            clamp: usize::MAX,
            threshold: 0,
            window: 0,
            unit: 1 << most.max(1).ilog2().saturating_sub(15).min(14),
            unread: 0,
            space: 0,
            since: (0, Time(0)),
        };
        let space = buffer.payload(buffer.size);
        buffer.window = if space > syn_mss {
            space - space % syn_mss.max(1)
        } else {
            space
        };
        buffer.threshold = buffer.window;
        buffer
    }

    /// `tcp_win_from_space`
    fn payload(&self, memory: usize) -> usize {
        (memory * self.ratio) >> 8
    }

    /// `tcp_init_buffer_space`
    fn establish(&mut self, mss: usize, now: Time) {
        let most = self.payload(self.size);
        self.clamp = (2 * mss).max(most.saturating_sub(mss));
        self.threshold = self.threshold.min(self.clamp);
        self.space = self.threshold.min(self.window).min(INIT_CWND * mss);
        self.since = (0, now);
    }

    /// `__sock_set_rcvbuf`: twice as much, for what the kernel needs besides. Clamp and threshold
    /// stay, until a segment tells how much of its memory is payload.
    fn set(&mut self, bytes: usize) {
        self.size = (2 * bytes).max(LEAST_SIZE);
        // `SOCK_RCVBUF_LOCK`
        self.most = self.size;
    }

    /// `tcp_space`
    fn free(&self) -> usize {
        self.payload(self.size.saturating_sub(self.unread))
    }

    /// The most that the window can be, without regard to what it is for now.
    fn full(&self) -> usize {
        self.clamp.min(self.payload(self.size))
    }

    fn is_half_full(&self) -> bool {
        self.free() < self.full() / 2
    }

    /// Whether twice the window that is left, or more, could be advertised.
    fn has_doubled(&self, received: usize, mss: usize) -> bool {
        let left = self.window.saturating_sub(received);
        2 * left <= self.clamp && self.next(mss) >= (2 * left).max(1)
    }

    /// `__tcp_select_window`
    fn next(&self, mss: usize) -> usize {
        let mut free = self.free();
        if self.is_half_full() {
            free -= free % self.unit;
            if free < self.payload(self.size) / 16 || free < mss.min(self.full()) {
                return 0;
            }
        }
        free.min(self.threshold).next_multiple_of(self.unit)
    }

    /// `tcp_select_window`, with so much received since the last time. Returns it as it is
    /// advertised.
    fn select(&mut self, received: usize, mss: usize) -> usize {
        let current = self.window.saturating_sub(received);
        let next = self.next(mss);
        self.window = if next < current {
            current.next_multiple_of(self.unit)
        } else {
            next
        };
        self.window.min(UNSCALED * self.unit)
    }

    /// The part of `tcp_measure_rcv_mss` that concerns memory
    fn measure(&mut self, payload: usize) {
        let ratio = ((payload << 8) / memory(payload)).max(1);
        if ratio != self.ratio {
            self.ratio = ratio;
            // `tcp_set_window_clamp`
            self.clamp = self.payload(self.size).max(LEAST_SIZE / 2);
            self.threshold = self.threshold.min(self.clamp);
            self.space = self.space.min(self.clamp);
        }
    }

    /// `tcp_grow_window`: whether it did
    fn grow(&mut self, payload: usize, mss: usize) -> bool {
        let room = self.clamp.min(self.free()).saturating_sub(self.threshold);
        self.threshold += room.min(2 * mss.max(payload));
        room > 0
    }

    /// The part of `tcp_rcv_space_adjust` that concerns memory, when so much was read in a round
    /// trip
    fn adjust(&mut self, copied: usize, mss: usize) {
        if copied <= self.space {
            return;
        }
        // More than 32 bits, there as here.
        let base = (2 * copied + 16 * mss) as u64;
        let growth = base.saturating_mul((copied - self.space) as u64) / self.space.max(1) as u64;
        let window = base.saturating_add(growth.saturating_mul(2));
        // `tcp_space_from_win`
        let size = (window.saturating_mul(1 << 8) / self.ratio as u64).min(self.most as u64);
        let size = size as usize;
        if size > self.size {
            self.size = size;
            self.clamp = self.payload(size);
        }
        self.space = copied;
    }
}

impl RoundTrip {
    /// `tcp_rcv_rtt_update`, of timestamps
    fn sample(&mut self, microseconds: u64) {
        let sample = 8 * microseconds;
        self.estimate = match self.estimate {
            0 => sample,
            old if sample < old => sample,
            old => old - old / 8 + microseconds,
        };
    }

    /// `tcp_rcv_rtt_measure`: from here to where the window ends is a round trip at most
    fn measure(&mut self, received: usize, end: usize, now: Time) {
        if let Some((since, until)) = self.window {
            if received < until {
                return;
            }
            let microseconds = now.since(since).as_micros().max(1);
            let sample = 8 * u64::try_from(microseconds).unwrap_or(u64::MAX / 8);
            if self.estimate == 0 || sample < self.estimate {
                self.estimate = sample;
            }
        }
        self.window = Some((now, end));
    }
}

/// TCP's clock of timestamps: milliseconds.
fn timestamp(now: Time) -> u64 {
    now.0 / 1_000_000
}
