//! A server to find things out about: TCP with slow start, selective acknowledgements and loss,
//! over the pipes of `lastbyte-link`. It shares no code with the arithmetic that is inverted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use lastbyte_link::{Fate, Link, PacketKey, Pipe, Seed, Side, Time, mix};

use crate::{Arrival, Ask, Connection, Counters, Event};

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) window: u32,
    /// Bytes of a HelloRetryRequest; none is sent if there are none.
    pub(crate) retry: usize,
    /// Bytes, as they are written.
    pub(crate) flight: usize,
    /// Bytes, as they are written.
    pub(crate) tickets: usize,
    /// Bytes, as they are written.
    pub(crate) response: Vec<usize>,
    pub(crate) think: Duration,
    pub(crate) control: Control,
    pub(crate) paced: bool,
    /// Whether it begins anew after idling.
    pub(crate) restarts: bool,
    pub(crate) link: Link,
    pub(crate) seed: u64,
}

/// What has a say over the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Slow start, as Reno and CUBIC have it.
    Reno,
    /// As `tcp_bbr.c` of Linux begins, without what loss does.
    Bbr,
}

/// 2/ln(2)
const HIGH_GAIN: f64 = 2.885;

const MSS: usize = 1448;
const HEADERS: usize = 52;
const SYN: usize = 60;

struct Segment {
    length: usize,
    order: u64,
    state: State,
    attempts: u32,
    /// How many had been delivered when it left, and when the last of them was.
    delivered: (u32, Time),
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Flying,
    Arrived,
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// Of the client: how much of what the client wrote is there.
    ClientData(usize),
    /// At the client, with the timestamp that it echoes.
    Data(usize, usize, u64),
    /// At the server: all below, and these besides; with the client's timestamp.
    Ack(usize, Vec<usize>, u64),
    Write(Vec<usize>),
    Request,
    DelayedAck,
    Timeout(u64),
    Pace,
}

struct Run<'a> {
    server: &'a Server,
    mss: usize,
    up: Pipe,
    down: Pipe,
    packets: u64,
    agenda: BinaryHeap<Reverse<(Time, u64, Happens)>>,
    planned: u64,
    // The server.
    written: usize,
    /// Where writes end.
    sent: usize,
    segments: BTreeMap<usize, Segment>,
    window: f64,
    threshold: f64,
    most_out: u32,
    is_limited: bool,
    usage: usize,
    recovery: Option<usize>,
    order: u64,
    delivered: (u32, Time),
    /// Segments in a round trip, at most.
    within: f64,
    /// Segments that left, again or not.
    data_out: u32,
    timer: u64,
    backoff: u32,
    next_pace: Time,
    pace_planned: bool,
    out: u32,
    last_sent: Time,
    /// The client's latest timestamp.
    recent: u64,
    pause: Duration,
    lost: std::collections::BTreeSet<usize>,
    most: usize,
    // The client.
    received: BTreeMap<usize, usize>,
    read: usize,
    unacknowledged: u32,
    quick: u32,
    /// The last timestamp that was echoed, and eight times the round trip that those say, in
    /// microseconds.
    echoed: u64,
    receiver_rtt: u64,
    counters: Counters,
    log: Connection,
    rtt: Duration,
}

impl Server {
    pub(crate) fn total(&self) -> usize {
        self.handshake() + self.tickets + self.response.iter().sum::<usize>()
    }

    /// All that the client has to have before its Finished.
    fn handshake(&self) -> usize {
        self.retry + self.flight
    }

    /// One connection.
    pub(crate) fn connect(&self, ask: Ask, index: u32) -> Connection {
        let seed = Seed(self.seed);
        let mss = ask.segment.map_or(MSS, |segment| usize::from(segment) - 12);
        let mut run = Run {
            server: self,
            mss,
            up: Pipe::new(&self.link.forward, seed.luck(index, Side::Server)),
            down: Pipe::new(&self.link.backward, seed.luck(index, Side::Client)),
            packets: 0,
            agenda: BinaryHeap::new(),
            planned: 0,
            written: 0,
            sent: 0,
            segments: BTreeMap::new(),
            window: f64::from(self.window),
            threshold: f64::INFINITY,
            most_out: 0,
            is_limited: false,
            usage: 0,
            recovery: None,
            order: 0,
            delivered: (0, Time(0)),
            within: 0.0,
            data_out: 0,
            timer: 0,
            backoff: 0,
            next_pace: Time(0),
            pace_planned: false,
            out: 0,
            last_sent: Time(0),
            recent: 0,
            pause: ask.pause,
            lost: Default::default(),
            most: self.handshake() + self.tickets + ask.most,
            received: BTreeMap::new(),
            read: 0,
            unacknowledged: 0,
            quick: 16,
            echoed: 0,
            receiver_rtt: 0,
            counters: Counters::default(),
            log: Connection {
                segment: mss,
                headers: HEADERS,
                events: Vec::new(),
            },
            rtt: Duration::ZERO,
        };
        run.run();
        run.log
    }
}

impl Run<'_> {
    fn run(&mut self) {
        let mut now = Time(0);
        // Each try of a SYN waits twice as long.
        let mut wait = Duration::from_secs(1);
        let connected = loop {
            let there = self.transit(Side::Server, now, SYN);
            let back = there.and_then(|there| self.transit(Side::Client, there, SYN));
            if let Some(back) = back {
                break back;
            }
            if there.is_some() {
                // Its SYN-ACK leaves again by its own timer, and with the client's next SYN.
                self.window = 1.0;
            }
            self.counters.retransmitted += 1;
            now = now + wait;
            wait *= 2;
        };
        self.rtt = connected.since(now);
        self.counters.min_rtt = Some(self.rtt);
        self.log(connected, Event::Connected);
        self.log(connected, Event::Hello(1500));
        self.client_sends(connected, 1500);
        let end = Time(20_000_000_000);
        while let Some(Reverse((now, _, happens))) = self.agenda.pop() {
            if now > end || self.read >= self.server.total().min(self.most) {
                break;
            }
            self.step(now, happens);
        }
    }

    fn step(&mut self, now: Time, happens: Happens) {
        match happens {
            Happens::ClientData(1500) => {
                let writes = match self.server.retry {
                    0 => self.server.flight,
                    retry => retry,
                };
                self.plan(now, Happens::Write(vec![writes]));
            }
            // The second ClientHello.
            Happens::ClientData(1600) => {
                self.plan(now, Happens::Write(vec![self.server.flight]));
            }
            Happens::ClientData(200) => {
                let tickets = self.server.tickets;
                if tickets > 0 {
                    self.plan(now, Happens::Write(vec![tickets]));
                }
                if self.pause == Duration::ZERO {
                    self.step(now, Happens::ClientData(300));
                }
            }
            Happens::Request => {
                if self.pause > Duration::ZERO {
                    self.log(now, Event::Request(300));
                    self.client_sends(now, 300);
                }
            }
            Happens::ClientData(_) => {
                let response = self.server.response.clone();
                self.plan(now + self.server.think, Happens::Write(response));
            }
            Happens::Write(sizes) => {
                let timeout = self.rtt + Duration::from_millis(200);
                let mut idle = now.since(self.last_sent);
                let restarts = self.server.restarts && self.server.control == Control::Reno;
                if self.segments.is_empty() && restarts {
                    while idle > timeout && self.window > f64::from(self.server.window) {
                        self.window /= 2.0;
                        idle -= timeout;
                    }
                    self.window = self.window.floor().max(f64::from(self.server.window));
                }
                for size in sizes {
                    self.written += size;
                    self.push(now);
                }
            }
            Happens::Pace => {
                self.pace_planned = false;
                self.push(now);
            }
            Happens::Data(sequence, length, echo) => {
                self.estimate(now, length, echo);
                self.receive(now, sequence, length);
            }
            Happens::DelayedAck => {
                if self.unacknowledged > 0 {
                    self.acknowledge(now);
                }
            }
            Happens::Ack(below, beyond, timestamp) => {
                self.recent = self.recent.max(timestamp);
                self.acknowledged(now, below, &beyond);
            }
            Happens::Timeout(timer) if timer == self.timer => {
                for (at, segment) in &mut self.segments {
                    if segment.state == State::Flying {
                        segment.state = State::Lost;
                        self.lost.insert(*at);
                    }
                }
                self.out = 0;
                self.threshold = (self.window / 2.0).max(2.0);
                self.window = 1.0;
                self.backoff += 1;
                self.recovery = Some(self.sent);
                self.push(now);
            }
            Happens::Timeout(_) => {}
        }
    }

    fn push(&mut self, now: Time) {
        let mut has_sent = false;
        loop {
            let lost = self.lost.first().copied();
            let lost = lost.and_then(|at| Some((at, self.segments.get(&at)?.length)));
            let room = f64::from(self.out) < self.window.floor();
            let has_more = lost.is_some() || self.sent < self.written;
            if !room || !has_more {
                break;
            }
            // Linux does not pace the first ten (`tcp_update_skb_after_send`).
            let is_bbr = self.server.control == Control::Bbr;
            let is_paced = self.server.paced || is_bbr && self.data_out >= 10;
            if is_paced && now < self.next_pace {
                if !self.pace_planned {
                    self.plan(self.next_pace, Happens::Pace);
                    self.pace_planned = true;
                }
                break;
            }
            let (sequence, length) = lost.unwrap_or_else(|| {
                let length = self.mss.min(self.written - self.sent);
                let at = self.sent;
                self.sent += length;
                (at, length)
            });
            self.order += 1;
            self.data_out += 1;
            if self.out == 0 {
                self.delivered.1 = now;
            }
            let segment = self.segments.entry(sequence).or_insert(Segment {
                length,
                order: 0,
                state: State::Flying,
                attempts: 0,
                delivered: (0, now),
            });
            segment.delivered = self.delivered;
            self.lost.remove(&sequence);
            self.out += 1;
            segment.order = self.order;
            segment.state = State::Flying;
            segment.attempts += 1;
            has_sent = true;
            self.last_sent = now;
            if is_paced {
                // Twice what the window would be in a round trip; BBR's gain has more, of what it
                // has seen.
                let most = if is_bbr {
                    HIGH_GAIN * self.within.max(f64::from(self.server.window))
                } else {
                    2.0 * self.window
                };
                let gap = self.rtt.as_nanos() as f64 / most;
                self.next_pace = Time(now.0.max(self.next_pace.0) + gap as u64);
            }
            if let Some(at) = self.transit(Side::Client, now, length + HEADERS) {
                self.plan(at, Happens::Data(sequence, length, self.recent));
            }
        }
        // As `tcp_cwnd_validate` has it.
        let is_limited = f64::from(self.out) >= self.window.floor();
        let below = self.segments.keys().next().copied().unwrap_or(self.sent);
        let is_larger = !self.is_limited && self.out > self.most_out;
        if (has_sent || is_limited) && (below >= self.usage || is_limited || is_larger) {
            (self.is_limited, self.most_out, self.usage) = (is_limited, self.out, self.sent);
        }
        if has_sent {
            self.timer += 1;
            let timeout = (self.rtt + Duration::from_millis(200)) * 2u32.pow(self.backoff.min(6));
            // A probe for what is lost at the end comes sooner.
            let timeout = match self.recovery {
                None => (self.rtt * 2 + Duration::from_millis(2)).min(timeout),
                Some(_) => timeout,
            };
            self.plan(now + timeout, Happens::Timeout(self.timer));
        }
    }

    fn acknowledged(&mut self, now: Time, below: usize, beyond: &[usize]) {
        let done: Vec<usize> = self
            .segments
            .range(..below)
            .filter(|(at, segment)| *at + segment.length <= below)
            .map(|(at, _)| *at)
            .collect();
        let mut fresh = 0;
        let mut newest = 0;
        for at in done {
            if let Some(segment) = self.segments.remove(&at) {
                fresh += u32::from(segment.state != State::Arrived);
                self.out -= u32::from(segment.state == State::Flying);
                self.lost.remove(&at);
                newest = newest.max(segment.order);
                self.backoff = 0;
                self.delivered = (self.delivered.0 + 1, now);
                let (before, since) = segment.delivered;
                let trips = now.since(since).as_secs_f64() / self.rtt.as_secs_f64();
                let within = f64::from(self.delivered.0 - before) / trips.max(1.0);
                self.within = self.within.max(within);
            }
        }
        for at in beyond {
            if let Some(segment) = self.segments.get_mut(at)
                && segment.state != State::Arrived
            {
                self.out -= u32::from(segment.state == State::Flying);
                self.lost.remove(at);
                segment.state = State::Arrived;
                newest = newest.max(segment.order);
                fresh += 1;
            }
        }
        let mut has_lost = false;
        let until = if newest > 3 { usize::MAX } else { 0 };
        for (at, segment) in self.segments.range_mut(..until).take(64) {
            if segment.state == State::Flying && segment.order + 3 <= newest {
                segment.state = State::Lost;
                self.lost.insert(*at);
                self.out -= 1;
                has_lost = true;
            }
        }
        if has_lost && self.recovery.is_none() {
            self.threshold = (self.window * 0.7).max(2.0);
            self.window = self.threshold;
            self.recovery = Some(self.sent);
        }
        if self.recovery.is_some_and(|until| below >= until) {
            self.recovery = None;
        }
        // As `tcp_is_cwnd_limited` has it.
        let is_used = match self.server.control {
            Control::Reno => self.is_limited || self.window < 2.0 * f64::from(self.most_out),
            // `bbr_set_cwnd`
            Control::Bbr => self.delivered.0 < 10 || self.window < HIGH_GAIN * self.within + 6.0,
        };
        if is_used && (self.recovery.is_none() || self.window < self.threshold) {
            if self.window < self.threshold {
                self.window += f64::from(fresh);
            } else {
                self.window += f64::from(fresh) / self.window;
            }
        }
        if self.server.control == Control::Bbr && fresh > 0 {
            self.window = self.window.max(4.0);
        }
        if fresh > 0 {
            self.timer += 1;
            if !self.segments.is_empty() {
                let timeout = self.rtt + Duration::from_millis(200);
                self.plan(now + timeout, Happens::Timeout(self.timer));
            }
        }
        self.push(now);
    }

    /// Of whole milliseconds, of which the first is any part.
    fn timestamp(&self, now: Time) -> u64 {
        1000 + (now.0 + mix(self.server.seed) % 1_000_000) / 1_000_000
    }

    /// As `tcp_rcv_rtt_measure_ts` has it: full segments tell, and one for each timestamp.
    fn estimate(&mut self, now: Time, length: usize, echo: u64) {
        // What a full segment is has to be learnt.
        let full = match self.counters.segments {
            0 | 1 => self.mss.clamp(88, 536),
            _ => self.mss,
        };
        if echo != std::mem::replace(&mut self.echoed, echo) && length >= full {
            let sample = (self.timestamp(now) - echo).max(1) * 1000;
            self.receiver_rtt = match self.receiver_rtt {
                0 => 8 * sample,
                before => before - before / 8 + sample,
            };
            let estimate = Duration::from_micros(self.receiver_rtt / 8);
            self.counters.receiver_rtt = Some(estimate);
        }
    }

    fn receive(&mut self, now: Time, sequence: usize, length: usize) {
        self.counters.segments += 1;
        if sequence > self.read {
            self.counters.out_of_order += 1;
        }
        self.received.insert(sequence, length);
        let before = self.read;
        while let Some(length) = self.received.get(&self.read) {
            self.read += length;
        }
        let is_odd = sequence != before;
        self.unacknowledged += 1;
        let is_quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        let new = self.read - before;
        if new > 0 {
            let arrival = Arrival {
                bytes: new,
                counters: Some(self.counters),
            };
            self.log(now, Event::Arrived(arrival));
        }
        let retry = self.server.retry;
        if before < retry && self.read >= retry {
            self.log(now, Event::Hello(1600));
            self.client_sends(now, 1600);
        }
        let flight = self.server.handshake();
        if before < flight && self.read >= flight {
            self.log(now, Event::Finished(200));
            self.client_sends(now, 200);
            match self.pause {
                Duration::ZERO => self.plan(now, Happens::Request),
                pause => self.plan(now + pause, Happens::Request),
            }
        }
        let begins = flight + self.server.tickets;
        if before <= begins && self.read > begins {
            self.log(now, Event::FirstByte);
        }
        if self.read >= self.server.total() {
            self.log(now, Event::LastByte);
        }
        if is_quick || is_odd || self.unacknowledged >= 2 {
            self.acknowledge(now);
        } else {
            self.plan(now + Duration::from_millis(40), Happens::DelayedAck);
        }
    }

    fn acknowledge(&mut self, now: Time) {
        self.unacknowledged = 0;
        let read = self.read;
        self.received.retain(|at, length| at + *length > read);
        let beyond = self.received.keys().copied().collect();
        if let Some(at) = self.transit(Side::Server, now, HEADERS) {
            self.plan(at, Happens::Ack(read, beyond, self.timestamp(now)));
        }
    }

    /// What a client writes is small, and sent again until it is there.
    fn client_sends(&mut self, now: Time, bytes: usize) {
        let mut at = now;
        let mut wait = self.rtt + Duration::from_millis(200);
        loop {
            let read = self.read;
            if let Some(there) = self.transit(Side::Server, at, bytes + HEADERS) {
                self.plan(there, Happens::Ack(read, Vec::new(), self.timestamp(at)));
                self.plan(there, Happens::ClientData(bytes));
                break;
            }
            self.counters.retransmitted += 1;
            at = at + wait;
            wait *= 2;
        }
    }

    fn transit(&mut self, toward: Side, now: Time, length: usize) -> Option<Time> {
        self.packets += 1;
        let key = PacketKey::datagram(u32::try_from(self.packets).unwrap_or_default());
        let pipe = match toward {
            Side::Server => &mut self.up,
            Side::Client => &mut self.down,
        };
        match pipe.send(now, length, key) {
            Fate::Arrives(at) => Some(at),
            Fate::Lost | Fate::Overflows | Fate::Waits => None,
        }
    }

    fn plan(&mut self, at: Time, happens: Happens) {
        self.planned += 1;
        self.agenda.push(Reverse((at, self.planned, happens)));
    }

    fn log(&mut self, now: Time, event: Event) {
        self.log.events.push((now.since(Time(0)), event));
    }
}
