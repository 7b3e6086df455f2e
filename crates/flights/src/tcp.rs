//! A walk through one TCP connection, segment by segment.

mod hystart;
mod receiving;
mod sending;
mod timeout;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use lastbyte_link::{Direction, Fate, PacketKey, Pipe, Seed, Side, Time};

use self::receiving::Receiving;
use self::sending::Sending;
use crate::{Limit, Path, Reason};

/// What a sender sends before it must wait for an acknowledgement.
///
/// A flight begins with a write, or after the first acknowledgement of the flight before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Who sends it.
    pub sender: Side,
    /// When its first segment leaves, counted from just before `connect()`.
    pub start: Duration,
    /// How many segments it has.
    pub segments: u32,
    /// How many bytes of payload it has.
    pub bytes: usize,
    /// The congestion window when its last segment leaves, in segments.
    pub cwnd: u32,
}

/// A packet, as one who listens at both ends of the link would see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who sends it.
    pub sender: Side,
    /// What it is for.
    pub kind: PacketKind,
    /// When it leaves, counted from just before `connect()`.
    pub sent: Duration,
    /// When it is there: behind whatever its link still had to send.
    pub arrives: Duration,
    /// How many bytes of payload its sender has sent before.
    pub offset: usize,
    /// How many bytes of payload it has.
    pub payload: usize,
    /// How many bytes of payload its sender has received, which it acknowledges.
    pub acknowledged: usize,
    /// Its sender's congestion window, in segments.
    pub cwnd: u32,
}

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// It opens the connection: a SYN or a SYN-ACK.
    Open,
    /// It carries payload.
    Data,
    /// It acknowledges alone.
    Acknowledgement,
}

/// Whether a walk remembers its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Of flights alone, as those need who walk a thousand times.
    Flights,
    /// Of each packet.
    Packets,
}

/// What one end writes as soon as it has received enough.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) sender: Side,
    /// An empty message is left out.
    pub(crate) bytes: usize,
    /// From receiving what it follows to writing this one, and all that its sender writes with it.
    pub(crate) compute: Duration,
    pub(crate) follows: Follows,
    /// The writes that it leaves in, if it is not one.
    pub(crate) writes: Vec<usize>,
    /// How the first of those does.
    pub(crate) begins: Begins,
}

/// How a message begins that leaves in writes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// With a write of its own.
    Apart,
    /// In the same write as what its sender has to send at that moment.
    WithWhatWaits,
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
    /// When its sender writes it, once that is known.
    written: Option<Duration>,
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
        let arrival = self.arrivals.get(index).map(|(_, at)| *at);
        arrival.or(self.written).unwrap_or_default()
    }
}

pub(crate) struct Walk {
    /// When TCP is established at the client.
    pub(crate) connect: Duration,
    /// One for each message.
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) flights: Vec<Flight>,
    /// In the order in which they leave; none unless they were to be remembered.
    pub(crate) packets: Vec<Packet>,
    /// Up to when the client does what it would.
    pub(crate) client_limit: Option<Limit>,
    /// The same of the server.
    pub(crate) server_limit: Option<Limit>,
    /// From when on the window may be larger here than CUBIC has it: first at the client, then at the server.
    pub(crate) endless: [Option<Limit>; 2],
}

/// What becomes of slow start without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowStart {
    /// It never ends.
    Endless,
    /// It ends where CUBIC would end it, and from then on windows don't grow at all: CUBIC's do, if slower.
    Ends,
}

impl Walk {
    /// When a message, counted from 0, was written.
    pub(crate) fn written(&self, message: usize) -> Duration {
        self.deliveries
            .get(message)
            .and_then(|delivery| delivery.written)
            .unwrap_or(self.connect)
    }

    /// When the first `bytes` of a message were there, or all of it if it has less.
    pub(crate) fn arrived(&self, message: usize, bytes: usize) -> Duration {
        self.deliveries
            .get(message)
            .map_or(self.connect, |delivery| delivery.arrived(bytes))
    }
}

/// Lets the two ends exchange `messages`.
pub(crate) fn walk(
    messages: Vec<Message>,
    path: &Path,
    memory: Memory,
    slow_start: SlowStart,
) -> Walk {
    let mut connection = Connection::new(messages, path, memory, slow_start);
    let connect = connection.connect();
    connection.begin_messages(connect);
    while !connection.is_done()
        && let Some(Reverse((now, _, event))) = connection.agenda.pop()
    {
        connection.look_at_timers(now);
        match event {
            Event::Write(sender, bytes) => connection.write(sender, bytes, now),
            Event::Arrival(receiver, packet) => connection.receive(receiver, packet, now),
            Event::DelayedAck(receiver) => connection.delayed_ack(receiver, now),
            Event::Writable(sender) => connection.fill(sender, now),
        }
    }
    Walk {
        connect: elapsed(connect),
        deliveries: connection.deliveries,
        flights: connection.flights,
        packets: connection.packets,
        client_limit: connection.client.limit,
        server_limit: connection.server.limit,
        endless: [connection.client.endless, connection.server.endless],
    }
}

/// What the TCP header of a SYN has besides: MSS and window scale, and the rest of SACK's and timestamps' words.
const SYN_OPTIONS: usize = 8;
/// An IPv4 header and a TCP header without options.
const LEAST_HEADERS: usize = 20 + 20;
/// What an IPv4 header and a TCP header with SACK in a SYN come to, without timestamps.
const LEAST_SYN: usize = 20 + 20 + 12;
/// `MAX_TCP_HEADER`: what the kernel reserves for headers, as distributions configure it.
const TCP_HEADERS: usize = 320;
/// `SKB_SMALL_HEAD_HEADROOM`: the least that it takes for them.
const SMALL_HEAD: usize = 384;
/// An `sk_buff` without its data, and what stands at the end of that.
const SKB: usize = 256;
const SHARED_INFO: usize = 320;

/// What a segment takes of memory (`skb->truesize`). At the receiver that is its driver's choice; this is what
/// the sender's is where it was passed on as it was.
fn memory(payload: usize) -> usize {
    SKB + SHARED_INFO + SMALL_HEAD + payload
}

/// `TCP_RTO_MIN`, in microseconds: what a retransmission timeout is above the round trip, at least.
const RTO_MIN: i64 = 200_000;

/// `TCP_TIMEOUT_INIT`
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// As the kernel takes times: whole ones.
fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 16)
}

/// The walk begins at time 0.
fn elapsed(now: Time) -> Duration {
    now.since(Time(0))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Write(Side, usize),
    Arrival(Side, Segment),
    DelayedAck(Side),
    /// The process that sends has heard that there is room.
    Writable(Side),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    /// How many bytes its sender has sent before.
    sequence: usize,
    payload: usize,
    /// Whether nothing was left to be sent after it (PSH).
    ends_write: bool,
    /// How many bytes its sender has received.
    acknowledgement: usize,
    /// How many more it would take.
    window: usize,
    /// TSval, in milliseconds.
    timestamp: u64,
    /// TSecr
    echo: Option<u64>,
}

struct Connection {
    messages: Vec<Message>,
    deliveries: Vec<Delivery>,
    /// How many are received as a whole, with all before them.
    finished: usize,
    client: End,
    server: End,
    /// Of an IP packet.
    headers: usize,
    /// What the client sets its receive buffer to once it is connected.
    client_receive_buffer: Option<usize>,
    /// What happens next. Of the events of one time, the one that was planned first comes first.
    agenda: BinaryHeap<Reverse<(Time, usize, Event)>>,
    planned: usize,
    flights: Vec<Flight>,
    memory: Memory,
    packets: Vec<Packet>,
}

impl Connection {
    fn new(
        messages: Vec<Message>,
        path: &Path,
        memory: Memory,
        slow_start: SlowStart,
    ) -> Connection {
        Connection {
            deliveries: vec![Delivery::default(); messages.len()],
            messages,
            finished: 0,
            client: End::new(&path.link.forward, path, Side::Client, slow_start),
            server: End::new(&path.link.backward, path, Side::Server, slow_start),
            headers: path.headers,
            client_receive_buffer: path.client_receive_buffer,
            agenda: BinaryHeap::new(),
            planned: 0,
            flights: Vec::new(),
            memory,
            packets: Vec::new(),
        }
    }

    /// The three-way handshake. Returns when it is done at the client.
    fn connect(&mut self) -> Time {
        let syn_bytes = LEAST_SYN.max(self.headers + SYN_OPTIONS);
        let syn = self.client.transit(Time(0), syn_bytes);
        let syn_ack = self.server.transit(syn, syn_bytes);
        self.client
            .sending
            .establish(syn_ack.since(Time(0)), syn_ack);
        self.client.receiving.establish(syn_ack);
        self.client.receiving.synchronise(syn);
        let ack = (self.client.receiving).acknowledge(Segment::default(), syn_ack);
        if let Some(bytes) = self.client_receive_buffer {
            self.client.receiving.set_buffer(bytes);
        }
        let established = self.client.transit(syn_ack, self.headers);
        let nothing = Segment::default();
        self.remember(Side::Client, PacketKind::Open, &nothing, [Time(0), syn]);
        self.remember(Side::Server, PacketKind::Open, &nothing, [syn, syn_ack]);
        let way = [syn_ack, established];
        self.remember(Side::Client, PacketKind::Acknowledgement, &ack, way);
        self.server
            .sending
            .establish(established.since(syn), established);
        self.server.receiving.establish(established);
        self.server.receiving.note_timestamp(&ack);
        self.server
            .sending
            .acknowledged_to(0, ack.window, established);
        let longest = syn_ack.since(Time(0)).max(established.since(syn));
        if longest >= FIRST_TIMEOUT {
            self.client.depart(elapsed(syn_ack), Reason::SynAgain);
            self.server.depart(elapsed(established), Reason::SynAgain);
        }
        syn_ack
    }

    /// Whether a timer has expired before `now` that an acknowledgement would have stopped.
    fn look_at_timers(&mut self, now: Time) {
        for sender in [Side::Client, Side::Server] {
            let end = self.end(sender);
            let expired = end.sending.probe_at().filter(|at| *at < now);
            if let Some(at) = expired.filter(|_| end.limit.is_none()) {
                self.depart(sender, at, Reason::LossProbe);
            }
        }
    }

    /// From here on, `sender` does what is not modelled. Its peer will see it behind all that it has sent before.
    fn depart(&mut self, sender: Side, now: Time, reason: Reason) {
        let headers = self.headers;
        let end = self.end(sender);
        end.depart(elapsed(now), reason);
        let seen = match end.pipe.clone().send(now, headers, PacketKey(0)) {
            Fate::Arrives(at) => at,
            Fate::Lost | Fate::Overflows | Fate::Waits => now,
        };
        // What would come at that moment, comes otherwise or not at all.
        let before = elapsed(seen).saturating_sub(Duration::from_nanos(1));
        self.end(sender.other()).depart(before, reason);
    }

    /// Plans the writes of the messages whose turn it is. What an end has to write at once is one write, unless
    /// a message has writes of its own.
    fn begin_messages(&mut self, mut now: Time) {
        let mut together: Vec<(Side, usize)> = Vec::new();
        while let Some(index) = self.next_due()
            && let Some(message) = self.messages.get(index).cloned()
        {
            if together
                .last()
                .is_some_and(|(sender, _)| *sender != message.sender)
            {
                self.plan_writes(&mut together, now);
            }
            now = now + message.compute;
            if let Some(delivery) = self.deliveries.get_mut(index) {
                delivery.written = Some(elapsed(now));
            }
            self.finish_messages();
            match together.last_mut() {
                _ if message.bytes == 0 => {}
                Some((_, bytes)) if message.writes.is_empty() => *bytes += message.bytes,
                None if message.writes.is_empty() => {
                    together.push((message.sender, message.bytes));
                }
                waiting => {
                    let mut writes = message.writes.iter();
                    if let (Some((_, bytes)), Begins::WithWhatWaits) = (waiting, message.begins) {
                        *bytes += writes.next().unwrap_or(&0);
                    }
                    together.extend(writes.map(|bytes| (message.sender, *bytes)));
                }
            }
        }
        self.plan_writes(&mut together, now);
    }

    fn plan_writes(&mut self, writes: &mut Vec<(Side, usize)>, now: Time) {
        for (sender, bytes) in writes.drain(..) {
            self.plan(now, Event::Write(sender, bytes));
        }
    }

    /// The first message that is due and not begun: each end begins its own in their order.
    fn next_due(&self) -> Option<usize> {
        let mut senders = vec![Side::Client, Side::Server];
        for index in self.finished..self.messages.len() {
            let message = self.messages.get(index)?;
            if self.has_begun(index) || !senders.contains(&message.sender) {
                continue;
            }
            if self.is_due(index, message.follows) {
                return Some(index);
            }
            senders.retain(|sender| *sender != message.sender);
            if senders.is_empty() {
                break;
            }
        }
        None
    }

    fn has_begun(&self, index: usize) -> bool {
        let delivery = self.deliveries.get(index);
        delivery.is_some_and(|delivery| delivery.written.is_some())
    }

    fn is_due(&self, index: usize, follows: Follows) -> bool {
        match follows {
            Follows::All => self.finished == index,
            Follows::Part { message, bytes } => {
                let received = self.deliveries.get(message).map(Delivery::received);
                self.has_begun(message) && received.is_some_and(|received| received >= bytes)
            }
        }
    }

    /// Counts those that have come to their end.
    fn finish_messages(&mut self) {
        while self.has_begun(self.finished) && self.missing(self.finished) == 0 {
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

    fn write(&mut self, sender: Side, bytes: usize, now: Time) {
        let sending = &mut self.end(sender).sending;
        sending.restart_after_idle(now);
        sending.write(bytes);
        self.fill(sender, now);
    }

    /// `tcp_sendmsg`: what the application has, it writes while there is room. A full segment leaves at once
    /// (`tcp_push_one`).
    fn fill(&mut self, sender: Side, now: Time) {
        while self.end(sender).sending.take() {
            self.transmit(sender, now);
        }
        self.transmit(sender, now);
    }

    /// `tcp_rcv_established`
    fn receive(&mut self, receiver: Side, packet: Segment, now: Time) {
        let end = self.end(receiver);
        end.receiving.note_timestamp(&packet);
        end.receiving.measure_round_trip(&packet, now);
        end.sending
            .acknowledged_to(packet.acknowledgement, packet.window, now);
        let has_ended = end.sending.ends_slow_start();
        if packet.payload > 0 {
            let timeout = end.sending.timeout();
            end.receiving.receive(&packet, now, timeout);
        }
        let received = end.receiving.received();
        if has_ended {
            self.depart(receiver, now, Reason::SlowStartEnd);
        }
        let is_beyond = |bytes: usize| received > WALKED_BUFFERS * bytes;
        if receiver == Side::Client && self.client_receive_buffer.is_some_and(is_beyond) {
            self.depart(receiver, now, Reason::SmallBuffer);
        }
        self.transmit(receiver, now);
        self.check_space(receiver, now);

        let receiving = &mut self.end(receiver).receiving;
        if receiving.is_ack_due() {
            self.acknowledge(receiver, now);
        } else if let Some(deadline) = receiving.delay_ack(now) {
            self.plan(deadline, Event::DelayedAck(receiver));
        }
        if packet.payload > 0 {
            self.read(receiver, now);
            self.deliver(receiver, packet.payload, now);
        }
    }

    /// `tcp_recvmsg`
    fn read(&mut self, receiver: Side, now: Time) {
        let receiving = &mut self.end(receiver).receiving;
        receiving.read(now);
        if receiving.is_ack_due_after_read() {
            self.acknowledge(receiver, now);
        }
    }

    /// `tcp_check_space`
    fn check_space(&mut self, sender: Side, now: Time) {
        if self.end(sender).sending.check_space() {
            self.plan(now, Event::Writable(sender));
        }
    }

    /// The application reads. What one end sends comes in the order in which it was written.
    fn deliver(&mut self, receiver: Side, mut payload: usize, now: Time) {
        for index in self.finished..self.messages.len() {
            if self
                .messages
                .get(index)
                .is_none_or(|sent| sent.sender == receiver)
            {
                continue;
            }
            if payload == 0 || !self.has_begun(index) {
                break;
            }
            let part = self.missing(index).min(payload);
            if let Some(delivery) = self.deliveries.get_mut(index)
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
    fn delayed_ack(&mut self, receiver: Side, now: Time) {
        if self.end(receiver).receiving.end_delay(now) {
            self.acknowledge(receiver, now);
        }
    }

    fn acknowledge(&mut self, receiver: Side, now: Time) {
        let sequence = self.end(receiver).sending.sent;
        let packet = Segment {
            sequence,
            ..Segment::default()
        };
        self.send(receiver, packet, now);
    }

    /// `tcp_write_xmit`
    fn transmit(&mut self, sender: Side, now: Time) {
        if self.end(sender).sending.is_all_sent() {
            return;
        }
        let mut has_sent = false;
        while self.end(sender).sending.has_room() {
            has_sent = true;
            let sending = &mut self.end(sender).sending;
            let sequence = sending.sent;
            if sending.flight.is_none() {
                sending.flight = Some(sequence);
                self.begin_flight(sender, now);
            }
            let end = self.end(sender);
            let payload = end.sending.next_segment(now);
            let cwnd = end.sending.cwnd;
            let ends_write = end.sending.is_all_sent();
            end.receiving.data_sent(now);
            self.count(sender, payload, cwnd, now);
            let packet = Segment {
                sequence,
                payload,
                ends_write,
                ..Segment::default()
            };
            self.send(sender, packet, now);
            self.check_space(sender, now);
        }
        let sending = &mut self.end(sender).sending;
        if has_sent || sending.is_full() {
            sending.validate_cwnd();
        }
        if has_sent {
            sending.schedule_probe(now);
        }
    }

    fn begin_flight(&mut self, sender: Side, now: Time) {
        let start = elapsed(now);
        self.flights.push(Flight {
            sender,
            start,
            segments: 0,
            bytes: 0,
            cwnd: 0,
        });
    }

    /// Counts a segment to the flight under way, which may be more than its way holds.
    fn count(&mut self, sender: Side, payload: usize, cwnd: u32, now: Time) {
        let End {
            queue,
            unread,
            limit,
            ..
        } = *self.end(sender);
        if let Some(flight) = self
            .flights
            .iter_mut()
            .rfind(|flight| flight.sender == sender)
        {
            flight.segments += 1;
            flight.bytes += payload;
            flight.cwnd = cwnd;
            if flight.segments > queue && limit.is_none() {
                self.depart(sender, now, Reason::QueueOverflow);
            } else if flight.segments > unread && limit.is_none() {
                self.depart(sender, now, Reason::ReadTogether);
            }
        }
    }

    fn send(&mut self, sender: Side, packet: Segment, now: Time) {
        let packet = self.end(sender).receiving.acknowledge(packet, now);
        let length = self.headers + packet.payload;
        let arrival = self.end(sender).transit(now, length);
        let kind = match packet.payload {
            0 => PacketKind::Acknowledgement,
            _ => PacketKind::Data,
        };
        self.remember(sender, kind, &packet, [now, arrival]);
        self.plan(arrival, Event::Arrival(sender.other(), packet));
    }

    /// Notes what leaves and arrives then, if anybody wants to know.
    fn remember(&mut self, sender: Side, kind: PacketKind, segment: &Segment, way: [Time; 2]) {
        if self.memory == Memory::Flights {
            return;
        }
        let [sent, arrives] = way.map(elapsed);
        let cwnd = self.end(sender).sending.cwnd;
        self.packets.push(Packet {
            sender,
            kind,
            sent,
            arrives,
            offset: segment.sequence,
            payload: segment.payload,
            acknowledged: segment.acknowledgement,
            cwnd,
        });
    }

    fn plan(&mut self, at: Time, event: Event) {
        self.agenda.push(Reverse((at, self.planned, event)));
        self.planned += 1;
    }

    fn end(&mut self, sender: Side) -> &mut End {
        match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// How often what a client sets its receive buffer to may come before its window moves otherwise, by a round trip or a part of one.
const WALKED_BUFFERS: usize = 5;

/// The fastest that segments may come, each of which is read before the next: in the virtual engine's kernel, receiving and reading one
/// takes about half of that, whatever the program computes. Programs in real time take longer.
const READ: Duration = Duration::from_micros(1);

/// Of so many full segments on the way at once, each is read before the next, or all of them together take half of the receive buffer,
/// and as many have room behind them.
fn unread(direction: &Direction, path: &Path, sender: Side) -> u32 {
    let apart = direction
        .rate
        .map(|rate| rate.serialisation(path.headers + path.mss));
    if apart.is_some_and(|apart| apart >= READ) {
        return u32::MAX;
    }
    let receive = match (sender, path.client_receive_buffer) {
        (Side::Server, Some(bytes)) => path.buffers.receive.min(2 * bytes),
        _ => path.buffers.receive,
    };
    u32::try_from(receive / 2 / memory(path.mss)).unwrap_or(u32::MAX)
}

struct End {
    pipe: Pipe,
    /// How many packets that holds.
    queue: u32,
    /// How many of its segments its peer's buffer holds, where they come too fast for each to be read before the next.
    unread: u32,
    sending: Sending,
    receiving: Receiving,
    /// Up to when it does what it would.
    limit: Option<Limit>,
    /// The same of what CUBIC would.
    endless: Option<Limit>,
}

impl End {
    fn new(direction: &Direction, path: &Path, sender: Side, slow_start: SlowStart) -> End {
        let lossless = Direction {
            delay: direction.delay,
            rate: direction.mean_rate(),
            queue: u32::MAX,
            ..Direction::default()
        };
        // Only the server knows when it sends its own SYN whether there will be timestamps.
        let with_timestamps = path.mss;
        let without = path.mss + path.headers - LEAST_HEADERS;
        let (initcwnd, syn_mss, peer_mss) = match sender {
            Side::Client => (path.client_initcwnd, without, with_timestamps),
            Side::Server => (path.server_initcwnd, with_timestamps, without),
        };
        let peer = Receiving::new(path, peer_mss);
        End {
            // Without loss and jitter, luck has no say.
            pipe: Pipe::new(&lossless, Seed(0).luck(0, Side::Server)),
            queue: direction.queue,
            unread: unread(direction, path, sender),
            sending: Sending::new(path, initcwnd, peer.syn_window(), slow_start),
            receiving: Receiving::new(path, syn_mss),
            limit: None,
            endless: None,
        }
    }

    fn depart(&mut self, until: Duration, reason: Reason) {
        let known = match reason {
            Reason::SlowStartEnd => &mut self.endless,
            _ => &mut self.limit,
        };
        if known.is_none_or(|limit| until < limit.until) {
            *known = Some(Limit { until, reason });
        }
    }

    /// Puts an IP packet of `length` bytes on the link; returns when it arrives.
    fn transit(&mut self, now: Time, length: usize) -> Time {
        match self.pipe.send(now, length, PacketKey(0)) {
            Fate::Arrives(at) => at,
            // None can be: nothing is lost, nobody waits by a discipline, and the queue holds more than there is memory for.
            Fate::Lost | Fate::Overflows | Fate::Waits => now,
        }
    }
}
