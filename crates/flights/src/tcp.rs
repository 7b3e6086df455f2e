//! A walk through one TCP connection, segment by segment.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use lastbyte_link::{Direction, Fate, PacketKey, Pipe, Seed, Time, Toward};

use crate::Path;

/// An end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// The one that connects.
    Client,
    /// The one that listens.
    Server,
}

/// What a sender sends before it must wait for an acknowledgement.
///
/// A flight begins with a write, or after the first acknowledgement of the flight before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Who sends it.
    pub sender: Sender,
    /// When its first segment leaves, counted from just before `connect()`.
    pub start: Duration,
    /// How many segments it has.
    pub segments: u32,
    /// How many bytes of payload it has.
    pub bytes: usize,
    /// The congestion window when its last segment leaves, in segments.
    pub cwnd: u32,
}

/// What one end writes as soon as it has received enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) sender: Sender,
    /// An empty message is left out.
    pub(crate) bytes: usize,
    /// From receiving what it follows to writing this one.
    pub(crate) compute: Duration,
    pub(crate) follows: Follows,
}

/// What an end must have received before it writes a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Follows {
    /// All messages before.
    All,
    /// The first bytes of this message, counted from 0, which is one before.
    Part { message: usize, bytes: usize },
}

/// What became of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    written: Duration,
    /// How many of its bytes were there, and when.
    arrivals: Vec<(usize, Duration)>,
}

impl Delivery {
    fn receive(&mut self, payload: usize, now: Duration) {
        self.arrivals.push((self.received() + payload, now));
    }

    /// How many bytes of it are there.
    fn received(&self) -> usize {
        self.arrivals.last().map_or(0, |(received, _)| *received)
    }

    /// When the first `bytes` of it were there, or all of it if it has less.
    fn arrived(&self, bytes: usize) -> Duration {
        let all = self.received();
        let index = self
            .arrivals
            .partition_point(|(received, _)| *received < bytes.min(all));
        self.arrivals.get(index).map_or(self.written, |(_, at)| *at)
    }
}

pub(crate) struct Walk {
    /// When TCP is established at the client.
    pub(crate) connect: Duration,
    /// One for each message.
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) flights: Vec<Flight>,
}

impl Walk {
    /// When a message, counted from 0, was written.
    pub(crate) fn written(&self, message: usize) -> Duration {
        self.deliveries
            .get(message)
            .map_or(self.connect, |delivery| delivery.written)
    }

    /// When the first `bytes` of a message were there, or all of it if it has less.
    pub(crate) fn arrived(&self, message: usize, bytes: usize) -> Duration {
        self.deliveries
            .get(message)
            .map_or(self.connect, |delivery| delivery.arrived(bytes))
    }
}

/// Lets the two ends exchange `messages`.
pub(crate) fn walk(messages: Vec<Message>, path: &Path) -> Walk {
    let mut connection = Connection::new(messages, path);
    let connect = connection.connect();
    connection.begin_messages(connect);
    while !connection.is_done()
        && let Some(Reverse((now, _, event))) = connection.agenda.pop()
    {
        match event {
            Event::Write(sender, bytes) => connection.write(sender, bytes, now),
            Event::Arrival(receiver, packet) => connection.receive(receiver, packet, now),
            Event::DelayedAck(receiver) => connection.delayed_ack(receiver, now),
        }
    }
    Walk {
        connect: elapsed(connect),
        deliveries: connection.deliveries,
        flights: connection.flights,
    }
}

/// An IPv4 header and a TCP header with timestamps.
const HEADERS: usize = 20 + 32;
/// An IPv4 header and the TCP header of a SYN: MSS, SACK, timestamps and window scale.
const SYN: usize = 20 + 40;
/// `TCP_MAX_QUICKACKS`
const QUICK_ACKS: u32 = 16;
/// `TCP_DELACK_MIN` and `TCP_ATO_MIN`
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// `TCP_RTO_MIN`: what the retransmission timeout is above the RTT where that does not vary.
const MIN_RTO_VARIANCE: Duration = Duration::from_millis(200);

/// The walk begins at time 0.
fn elapsed(now: Time) -> Duration {
    now.since(Time(0))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Write(Sender, usize),
    Arrival(Sender, Packet),
    DelayedAck(Sender),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    payload: usize,
    /// How many bytes its sender has received.
    acknowledgement: usize,
}

struct Connection {
    messages: Vec<Message>,
    deliveries: Vec<Delivery>,
    /// How many messages are written or planned to be.
    begun: usize,
    /// How many are received as a whole, with all before them.
    finished: usize,
    client: End,
    server: End,
    mss: usize,
    /// How long the three-way handshake took: the estimate of the RTT.
    connect: Duration,
    /// What happens next. Of the events of one time, the one that was planned first comes first.
    agenda: BinaryHeap<Reverse<(Time, usize, Event)>>,
    planned: usize,
    flights: Vec<Flight>,
}

impl Connection {
    fn new(messages: Vec<Message>, path: &Path) -> Connection {
        Connection {
            deliveries: vec![Delivery::default(); messages.len()],
            messages,
            begun: 0,
            finished: 0,
            client: End::new(&path.link.forward, path.client_initcwnd),
            server: End::new(&path.link.backward, path.server_initcwnd),
            mss: path.mss.max(1),
            connect: Duration::ZERO,
            agenda: BinaryHeap::new(),
            planned: 0,
            flights: Vec::new(),
        }
    }

    /// The three-way handshake. Returns when it is done at the client.
    fn connect(&mut self) -> Time {
        let syn = self.client.transit(Time(0), SYN);
        let syn_ack = self.server.transit(syn, SYN);
        self.client.transit(syn_ack, HEADERS);
        self.connect = elapsed(syn_ack);
        syn_ack
    }

    /// Plans the writes of the messages whose turn it is. What an end has to write at once is one write.
    fn begin_messages(&mut self, mut now: Time) {
        let mut together: Option<(Sender, usize)> = None;
        while let Some(message) = self.messages.get(self.begun).copied()
            && self.is_due(self.begun, message.follows)
        {
            let before = now;
            now = now + message.compute;
            if let Some(delivery) = self.deliveries.get_mut(self.begun) {
                delivery.written = elapsed(now);
            }
            self.begun += 1;
            self.finish_messages();
            together = match together {
                _ if message.bytes == 0 => together,
                Some((sender, bytes)) if sender == message.sender => {
                    Some((sender, bytes + message.bytes))
                }
                Some((sender, bytes)) => {
                    self.plan(before, Event::Write(sender, bytes));
                    Some((message.sender, message.bytes))
                }
                None => Some((message.sender, message.bytes)),
            };
        }
        if let Some((sender, bytes)) = together {
            self.plan(now, Event::Write(sender, bytes));
        }
    }

    fn is_due(&self, index: usize, follows: Follows) -> bool {
        match follows {
            Follows::All => self.finished == index,
            Follows::Part { message, bytes } => {
                let delivery = self.deliveries.get(message);
                delivery.is_some_and(|delivery| delivery.received() >= bytes)
            }
        }
    }

    /// Counts those that have come to their end.
    fn finish_messages(&mut self) {
        while self.finished < self.begun && self.missing(self.finished) == 0 {
            self.finished += 1;
        }
    }

    /// How much of a message is still to be received.
    fn missing(&self, index: usize) -> usize {
        let message = self.messages.get(index);
        let received = self.deliveries.get(index).map_or(0, Delivery::received);
        message.map_or(0, |message| message.bytes.saturating_sub(received))
    }

    fn is_done(&self) -> bool {
        self.finished >= self.messages.len()
    }

    fn write(&mut self, sender: Sender, bytes: usize, now: Time) {
        let rto = self.connect + MIN_RTO_VARIANCE;
        let sending = &mut self.end(sender).sending;
        sending.restart_after_idle(now, rto);
        sending.written += bytes;
        self.transmit(sender, now);
    }

    /// `tcp_rcv_established`
    fn receive(&mut self, receiver: Sender, packet: Packet, now: Time) {
        let mss = self.mss;
        let end = self.end(receiver);
        end.sending.acknowledged_to(packet.acknowledgement);
        if packet.payload > 0 {
            end.receiving.receive(packet.payload, now);
        }
        self.transmit(receiver, now);

        let receiving = &mut self.end(receiver).receiving;
        if receiving.is_ack_due(packet.payload, mss) {
            self.acknowledge(receiver, now);
        } else if let Some(deadline) = receiving.delay_ack(now) {
            self.plan(deadline, Event::DelayedAck(receiver));
        }
        if packet.payload > 0 {
            self.deliver(receiver, packet.payload, now);
        }
    }

    /// The application reads. What one end sends comes in the order in which it was written.
    fn deliver(&mut self, receiver: Sender, mut payload: usize, now: Time) {
        for index in self.finished..self.begun {
            let is_sent = (self.messages.get(index)).is_some_and(|sent| sent.sender != receiver);
            let part = self.missing(index).min(payload);
            if let Some(delivery) = self.deliveries.get_mut(index)
                && is_sent
                && part > 0
            {
                delivery.receive(part, elapsed(now));
                payload -= part;
            }
        }
        self.finish_messages();
        self.begin_messages(now);
    }

    /// `tcp_delack_timer_handler`
    fn delayed_ack(&mut self, receiver: Sender, now: Time) {
        let receiving = &mut self.end(receiver).receiving;
        if receiving.deadline == Some(now) {
            receiving.mode = AckMode::Quick;
            self.acknowledge(receiver, now);
        }
    }

    fn acknowledge(&mut self, receiver: Sender, now: Time) {
        let acknowledgement = self.end(receiver).receiving.acknowledge();
        self.send(
            receiver,
            Packet {
                payload: 0,
                acknowledgement,
            },
            now,
        );
    }

    /// `tcp_write_xmit`
    fn transmit(&mut self, sender: Sender, now: Time) {
        let mss = self.mss;
        if self.end(sender).sending.is_all_sent() {
            return;
        }
        while self.end(sender).sending.has_room() {
            let end = self.end(sender);
            if end.sending.flight.is_none() {
                end.sending.flight = Some(end.sending.sent);
                self.begin_flight(sender, now);
            }
            let end = self.end(sender);
            let payload = end.sending.next_segment(mss, now);
            let cwnd = end.sending.cwnd;
            end.receiving.data_sent(now);
            let acknowledgement = end.receiving.acknowledge();
            self.count(sender, payload, cwnd);
            self.send(
                sender,
                Packet {
                    payload,
                    acknowledgement,
                },
                now,
            );
        }
        self.end(sender).sending.validate_cwnd();
    }

    fn begin_flight(&mut self, sender: Sender, now: Time) {
        let start = elapsed(now);
        self.flights.push(Flight {
            sender,
            start,
            segments: 0,
            bytes: 0,
            cwnd: 0,
        });
    }

    /// Counts a segment to the flight under way.
    fn count(&mut self, sender: Sender, payload: usize, cwnd: u32) {
        if let Some(flight) = self
            .flights
            .iter_mut()
            .rfind(|flight| flight.sender == sender)
        {
            flight.segments += 1;
            flight.bytes += payload;
            flight.cwnd = cwnd;
        }
    }

    fn send(&mut self, sender: Sender, packet: Packet, now: Time) {
        let arrival = self.end(sender).transit(now, HEADERS + packet.payload);
        let receiver = match sender {
            Sender::Client => Sender::Server,
            Sender::Server => Sender::Client,
        };
        self.plan(arrival, Event::Arrival(receiver, packet));
    }

    fn plan(&mut self, at: Time, event: Event) {
        self.agenda.push(Reverse((at, self.planned, event)));
        self.planned += 1;
    }

    fn end(&mut self, sender: Sender) -> &mut End {
        match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        }
    }
}

struct End {
    pipe: Pipe,
    sending: Sending,
    receiving: Receiving,
}

impl End {
    fn new(direction: &Direction, initcwnd: u32) -> End {
        let lossless = Direction {
            delay: direction.delay,
            rate: direction.rate,
            queue: u32::MAX,
            ..Direction::default()
        };
        End {
            // Without loss and jitter, luck has no say.
            pipe: Pipe::new(&lossless, Seed(0).luck(0, Toward::Server)),
            sending: Sending::new(initcwnd),
            receiving: Receiving::default(),
        }
    }

    /// Puts an IP packet of `length` bytes on the link; returns when it arrives.
    fn transit(&mut self, now: Time, length: usize) -> Time {
        match self.pipe.send(now, length, PacketKey(0)) {
            Fate::Arrives(at) => at,
            // Neither can be: nothing is lost, and the queue holds more than there is memory for.
            Fate::Lost | Fate::Overflows => now,
        }
    }
}

/// What an end has sent. Bytes count from the first of the connection.
struct Sending {
    /// In segments.
    cwnd: u32,
    /// How far the current window was used (`is_cwnd_limited`).
    usage: Usage,
    /// The most segments in flight in the current window.
    max_packets_out: u32,
    /// Where the current window ends (`cwnd_usage_seq`).
    usage_end: usize,
    written: usize,
    sent: usize,
    acknowledged: usize,
    /// Where each segment in flight ends.
    in_flight: VecDeque<usize>,
    /// Where the flight begins, while it lasts.
    flight: Option<usize>,
    initcwnd: u32,
    /// When data was last sent (`lsndtime`).
    last: Option<Time>,
}

#[derive(Clone, Copy, PartialEq)]
enum Usage {
    Full,
    Partial,
}

impl Sending {
    fn new(initcwnd: u32) -> Sending {
        Sending {
            cwnd: initcwnd.max(1),
            usage: Usage::Partial,
            max_packets_out: 0,
            usage_end: 0,
            written: 0,
            sent: 0,
            acknowledged: 0,
            in_flight: VecDeque::new(),
            flight: None,
            initcwnd: initcwnd.max(1),
            last: None,
        }
    }

    /// `tcp_slow_start_after_idle_check` and `tcp_cwnd_restart`: half of the window for each
    /// retransmission timeout without data, but not less than the initial one
    fn restart_after_idle(&mut self, now: Time, rto: Duration) {
        let Some(last) = self.last.filter(|_| self.in_flight.is_empty()) else {
            return;
        };
        let mut idle = now.since(last).saturating_sub(rto);
        let least = self.initcwnd.min(self.cwnd);
        while !idle.is_zero() && self.cwnd > least {
            self.cwnd /= 2;
            idle = idle.saturating_sub(rto);
        }
        self.cwnd = self.cwnd.max(least);
    }

    fn is_all_sent(&self) -> bool {
        self.sent == self.written
    }

    /// `tcp_cwnd_test`, while there is something to send
    fn has_room(&self) -> bool {
        !self.is_all_sent() && self.packets_out() < self.cwnd
    }

    /// Cuts off the next segment; returns its payload.
    fn next_segment(&mut self, mss: usize, now: Time) -> usize {
        self.last = Some(now);
        let payload = mss.min(self.written - self.sent);
        self.sent += payload;
        self.in_flight.push_back(self.sent);
        payload
    }

    /// `tcp_ack`
    fn acknowledged_to(&mut self, end: usize) {
        let before = self.packets_out();
        while self
            .in_flight
            .front()
            .is_some_and(|segment| *segment <= end)
        {
            self.in_flight.pop_front();
        }
        let acknowledged = before - self.packets_out();
        if self.is_cwnd_limited() {
            self.cwnd = self.cwnd.saturating_add(acknowledged);
        }
        self.acknowledged = self.acknowledged.max(end);
        if self.flight.is_some_and(|begin| begin < end) {
            self.flight = None;
        }
    }

    /// `tcp_is_cwnd_limited`, in slow start
    fn is_cwnd_limited(&self) -> bool {
        self.usage == Usage::Full || self.cwnd < self.max_packets_out.saturating_mul(2)
    }

    /// `tcp_cwnd_validate`, after something was sent or could not be
    ///
    /// The kernel also notes when more is sent in a window that was not full. Here all that a
    /// window allows is sent at once.
    fn validate_cwnd(&mut self) {
        let packets_out = self.packets_out();
        let usage = if packets_out >= self.cwnd {
            Usage::Full
        } else {
            Usage::Partial
        };
        if usage == Usage::Full || self.acknowledged >= self.usage_end {
            self.usage = usage;
            self.max_packets_out = packets_out;
            self.usage_end = self.sent;
        }
    }

    fn packets_out(&self) -> u32 {
        u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX)
    }
}

/// What an end has received, and how it acknowledges.
#[derive(Default)]
struct Receiving {
    received: usize,
    acknowledged: usize,
    /// How many more acknowledgements leave at once (`icsk_ack.quick`).
    quick: u32,
    mode: AckMode,
    /// When the delayed acknowledgement is due.
    deadline: Option<Time>,
    /// When data came last (`icsk_ack.lrcvtime`).
    last: Option<Time>,
}

#[derive(Default, PartialEq)]
enum AckMode {
    #[default]
    Quick,
    /// What is received is expected to be answered with data.
    PingPong,
}

impl Receiving {
    /// `tcp_event_data_recv`
    fn receive(&mut self, payload: usize, now: Time) {
        if self.last.is_none() {
            self.quick = QUICK_ACKS;
        }
        self.last = Some(now);
        self.received += payload;
    }

    /// `tcp_event_data_sent`
    fn data_sent(&mut self, now: Time) {
        if self.last.is_some_and(|last| now.since(last) < DELAYED_ACK) {
            self.mode = AckMode::PingPong;
        }
    }

    /// `__tcp_ack_snd_check`, and `__tcp_cleanup_rbuf` for a short segment
    fn is_ack_due(&self, payload: usize, mss: usize) -> bool {
        let unacknowledged = self.received - self.acknowledged;
        let is_prompt = self.mode == AckMode::Quick && (self.quick > 0 || payload < mss);
        unacknowledged > mss || unacknowledged > 0 && is_prompt
    }

    /// `tcp_send_delayed_ack`: the deadline of what isn't acknowledged yet, if it is a new one
    fn delay_ack(&mut self, now: Time) -> Option<Time> {
        if self.received == self.acknowledged || self.deadline.is_some() {
            return None;
        }
        self.deadline = Some(now + DELAYED_ACK);
        self.deadline
    }

    /// `tcp_event_ack_sent`: any packet that is sent acknowledges all that was received
    fn acknowledge(&mut self) -> usize {
        if self.received > self.acknowledged {
            self.quick = self.quick.saturating_sub(1);
        }
        self.acknowledged = self.received;
        self.deadline = None;
        self.received
    }
}
