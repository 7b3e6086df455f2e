//! The link between the two namespaces: reads each packet from one TUN device, asks the
//! connection's own link when it arrives, and writes it to the other device then.
//!
//! Four measures keep it from disturbing what it carries. (a) A packet counts as sent
//! earlier by as much as the delivery that it answers was late. (b) The thread
//! runs under `SCHED_FIFO` and sleeps rather than spins, since the kernel throttles
//! a real-time spinner. (c) Connections start after random gaps (see `endpoint`).
//! (d) Addresses, ports and namespaces are fresh. Besides, a device is read right after each
//! write to it: the write ran the receiving TCP, so its answer is already there. And no
//! packet is delivered to a socket while its process is inside it (see `shared`).

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use lastbyte_capture::{Fate as Noted, Point};
use lastbyte_link::{
    EcnCodepoint, Fate, KeyMaker, Left, Link, Packet, Pipe, Seed, Side, TcpPacket, Time, UdpPacket,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::crowd::cross_flow_of_port;
use super::inspection::{ObservedBlock, Tap};
use super::losing::Losing;
use super::shared::{Shared, end};
use super::socket::{Attempt, SERVER_PORT};
use super::surroundings::client_slot;
use super::sys;
use crate::study::Mtu;

/// Packets read from one device before the other gets its turn.
const READ_BATCH: usize = 64;
/// How long the thread sleeps at most, so that it notices a stop.
const MAX_SLEEP: Duration = Duration::from_millis(20);

/// How the emulator fared in a block.
#[derive(Debug, Default)]
pub(crate) struct EmulatorReport {
    /// Lateness of every delivery, in ns, in no order.
    pub(crate) lateness: Vec<u32>,
    /// Per slot, the latest delivery.
    pub(crate) latest: Vec<Duration>,
    /// Packets that the link lost.
    pub(crate) lost: u64,
    /// Datagrams of UDP that a device had no room for.
    pub(crate) dropped: u64,
    /// Packets that found the link's queue full.
    pub(crate) overflowed: u64,
    /// CPU time of the emulator, the kernel's work in its system calls included.
    pub(crate) cpu: Duration,
    /// The packets that were to be noted.
    pub(crate) observed: Option<ObservedBlock>,
}

/// One block's emulator.
pub(crate) struct Emulator<'a> {
    devices: [&'a OwnedFd; 2],
    link: &'a Link,
    seed: Seed,
    first_index: u32,
    /// Connections on each link, whose slots follow each other.
    at_once: u32,
    shared: &'a Shared,
    /// By link.
    flows: Vec<Option<Flow>>,
    packets: Packets,
    queue: BinaryHeap<Reverse<Due>>,
    order: u64,
    left: Vec<Left>,
    tap: Option<Tap>,
    losing: Losing,
    report: EmulatorReport,
}

/// The private link of one connection, or of those that begin together.
struct Flow {
    pipes: [Pipe; 2],
    /// When each is served next, where packets wait by a queue discipline.
    served: [Option<Time>; 2],
    /// Of each connection over it, by its [number](connection_number).
    keys: BTreeMap<u16, KeyMaker>,
    /// How late the last delivery to the client and to the server was.
    late: [Duration; 2],
    latest: Duration,
    /// Segments of TCP, or datagrams of QUIC, that the client and the server have sent.
    sent: [u32; 2],
    /// The one that is lost whatever its luck, by its number among its sender's, from 0.
    lost: Option<(Side, u32)>,
}

/// What happens on a link.
struct Due {
    at: Time,
    order: u64,
    slot: u32,
    toward: Side,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// A packet arrives.
    Arrives { packet: u32, length: u16 },
    /// A queue discipline goes on.
    Served,
}

/// Packets due at the same time leave in the order in which they came.
impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

/// Whether a packet of IPv4 is one of UDP (RFC 791, 3.1).
fn is_datagram(packet: &[u8]) -> bool {
    packet.get(9) == Some(&(libc::IPPROTO_UDP as u8))
}

/// The bits of IPv4's traffic class that ECN has, all of which say that there is congestion (RFC 3168, 5).
const CONGESTED: u8 = 0b11;

/// Has a packet of IPv4 say that it has met congestion.
fn mark_congestion(packet: &mut [u8]) {
    const WORDS: std::ops::Range<usize> = 0..2;
    const CHECKSUM: std::ops::Range<usize> = 10..12;
    let word = |packet: &[u8], range: std::ops::Range<usize>| match packet.get(range) {
        Some([high, low]) => u16::from_be_bytes([*high, *low]),
        _ => 0,
    };
    let before = word(packet, WORDS);
    let Some(class) = packet.get_mut(1) else {
        return;
    };
    *class |= CONGESTED;
    let after = word(packet, WORDS);
    // By what has changed (RFC 1624, 3).
    let mut sum = u32::from(!word(packet, CHECKSUM)) + u32::from(!before) + u32::from(after);
    while sum > u32::from(u16::MAX) {
        sum = (sum >> 16) + (sum & u32::from(u16::MAX));
    }
    if let Some(checksum) = packet.get_mut(CHECKSUM) {
        checksum.copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

/// What a queue knows a packet by: its connection's slot, which [`MAX_CONNECTIONS`] keeps below 2^16, its place and its length.
fn ticket(slot: u32, packet: u32, length: u16) -> u64 {
    u64::from(slot) << 48 | u64::from(length) << 32 | u64::from(packet)
}

fn of_ticket(ticket: u64) -> (u32, u32, u16) {
    ((ticket >> 48) as u32, ticket as u32, (ticket >> 32) as u16)
}

/// Which of the connections over a link this is, each of which has luck of its own: the one in the link's slot `place` that a
/// client calls from `port` for.
fn connection_number(place: u32, port: u16) -> u16 {
    match (cross_flow_of_port(port), Attempt::of_port(port)) {
        (Some(flow), _) => u16::MAX - flow,
        (None, Attempt::First) => (2 * place) as u16,
        (None, Attempt::Second) => (2 * place + 1) as u16,
    }
}

enum Read {
    Packets,
    Nothing,
}

impl<'a> Emulator<'a> {
    /// `client` and `server` are the two devices; the connection in slot 0 has the luck of
    /// index `first_index`.
    pub(crate) fn new(
        client: &'a OwnedFd,
        server: &'a OwnedFd,
        link: &'a Link,
        seed: Seed,
        first_index: u32,
        shared: &'a Shared,
        tap: Option<Tap>,
    ) -> Self {
        let slots = shared.slots();
        Self {
            devices: [client, server],
            link,
            seed,
            first_index,
            at_once: 1,
            shared,
            flows: (0..slots).map(|_| None).collect(),
            packets: Packets::within(Mtu::MOST),
            queue: BinaryHeap::with_capacity(4096),
            order: 0,
            left: Vec::new(),
            tap,
            losing: Losing::default(),
            report: EmulatorReport::default(),
        }
    }

    /// The same, where no packet is longer: what waits on links takes no more memory than it has to.
    pub(crate) fn within(self, mtu: Mtu) -> Self {
        Self {
            packets: Packets::within(mtu),
            ..self
        }
    }

    /// The same, where so many connections share each link.
    pub(crate) fn together(self, at_once: u32) -> Self {
        Self { at_once, ..self }
    }

    /// The same, with these lost besides.
    pub(crate) fn losing(self, losing: Losing) -> Self {
        Self { losing, ..self }
    }

    /// The link of a connection in this slot.
    fn link_of(&self, slot: u32) -> usize {
        (slot / self.at_once) as usize
    }

    /// Carries packets until it is stopped.
    pub(crate) fn run(mut self) -> io::Result<EmulatorReport> {
        // The endpoints must not wait for packets that nobody carries any more.
        let _stop = self.shared.stop_on_drop();
        self.carry()?;
        self.report.cpu = sys::thread_cpu_time();
        self.report.observed = self.tap.take().map(Tap::close);
        let latest = (0..self.shared.slots()).map(|slot| {
            let flow = self.flows.get(self.link_of(slot as u32));
            flow.and_then(Option::as_ref)
                .map_or(Duration::ZERO, |flow| flow.latest)
        });
        self.report.latest = latest.collect();
        Ok(self.report)
    }

    fn carry(&mut self) -> io::Result<()> {
        while !self.shared.is_stopped() {
            while let Some(due) = self.pop_due() {
                match due.what {
                    What::Arrives { packet, length } => {
                        self.deliver(&due, packet, length)?;
                        self.read(due.toward.other())?;
                    }
                    What::Served => self.serve(&due),
                }
            }
            let from_client = self.read(Side::Server)?;
            let from_server = self.read(Side::Client)?;
            if matches!((from_client, from_server), (Read::Nothing, Read::Nothing)) {
                self.sleep()?;
            }
        }
        Ok(())
    }

    fn pop_due(&mut self) -> Option<Due> {
        let Reverse(first) = self.queue.peek()?;
        if first.at > sys::now() {
            return None;
        }
        self.queue.pop().map(|Reverse(due)| due)
    }

    /// Has a queue discipline decide about all that is due.
    fn serve(&mut self, due: &Due) {
        let mut left = std::mem::take(&mut self.left);
        let link = self.link_of(due.slot);
        if let Some(Some(flow)) = self.flows.get_mut(link) {
            flow.served[end(due.toward)] = None;
            flow.pipes[end(due.toward)].serve(due.at, &mut left);
        }
        for one in left.drain(..) {
            let (slot, packet, length) = of_ticket(one.ticket);
            match one.fate {
                Fate::Arrives(at) => {
                    if one.marked {
                        mark_congestion(self.packets.get_mut(packet, length));
                    }
                    let what = What::Arrives { packet, length };
                    self.plan(at, slot, due.toward, what);
                    continue;
                }
                Fate::Lost => self.report.lost += 1,
                Fate::Overflows | Fate::Waits => self.report.overflowed += 1,
            }
            self.packets.free(packet);
        }
        self.left = left;
        self.plan_service(due.slot, due.toward);
    }

    fn plan(&mut self, at: Time, slot: u32, toward: Side, what: What) {
        self.order += 1;
        self.queue.push(Reverse(Due {
            at,
            order: self.order,
            slot,
            toward,
            what,
        }));
    }

    /// Comes back when a queue discipline has something to decide.
    fn plan_service(&mut self, slot: u32, toward: Side) {
        let link = self.link_of(slot);
        let Some(Some(flow)) = self.flows.get_mut(link) else {
            return;
        };
        let Some(next) = flow.pipes[end(toward)].next() else {
            return;
        };
        let planned = &mut flow.served[end(toward)];
        if planned.is_none_or(|planned| next < planned) {
            *planned = Some(next);
            self.plan(next, slot, toward, What::Served);
        }
    }

    fn deliver(&mut self, due: &Due, packet: u32, length: u16) -> io::Result<()> {
        let now = sys::now();
        let late = now.since(due.at);
        let link = self.link_of(due.slot);
        if let Some(Some(flow)) = self.flows.get_mut(link) {
            flow.late[end(due.toward)] = late;
            flow.latest = flow.latest.max(late);
        }
        self.report
            .lateness
            .push(u32::try_from(late.as_nanos()).unwrap_or(u32::MAX));
        let bytes = self.packets.get(packet, length);
        if let Some(tap) = &mut self.tap {
            let point = Point::delivered(due.toward);
            tap.note(due.slot, now, point, Noted::Carried, bytes);
        }
        let socket = self.shared.hold(due.slot, due.toward);
        // Before the write: the receiving endpoint may be awake before it returns.
        self.shared.set_delivered(due.slot, due.toward, now);
        let written = nix::unistd::write(self.device(due.toward), bytes);
        drop(socket);
        let is_datagram = is_datagram(bytes);
        self.packets.free(packet);
        match written {
            Ok(_) => Ok(()),
            // A full receive backlog drops a packet as a host would; TCP recovers, and the
            // retransmission shows in TCP_INFO. Of a datagram nobody else would know that no link lost it.
            Err(Errno::ENOBUFS | Errno::EAGAIN) => {
                self.report.dropped += u64::from(is_datagram);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what one end has sent.
    fn read(&mut self, toward: Side) -> io::Result<Read> {
        for count in 0..READ_BATCH {
            let packet = self.packets.allocate();
            let device = self.devices[end(toward.other())];
            match nix::unistd::read(device, self.packets.buffer(packet)) {
                Ok(length) => {
                    if !self.accept(toward, packet, length) {
                        self.packets.free(packet);
                    }
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {
                    self.packets.free(packet);
                    return Ok(if count > 0 {
                        Read::Packets
                    } else {
                        Read::Nothing
                    });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Read::Packets)
    }

    /// Gives a packet to its connection's link; false if it goes no further.
    fn accept(&mut self, toward: Side, packet: u32, length: usize) -> bool {
        let now = sys::now();
        let bytes = self.packets.get(packet, length as u16);
        let tcp = TcpPacket::parse(bytes);
        let udp = UdpPacket::parse(bytes);
        let addresses = match (&tcp, &udp) {
            (Some(tcp), _) => Some((tcp.source, tcp.destination)),
            // QUIC's, or the resolver's.
            (None, Some(udp)) => Some((udp.source, udp.destination)),
            (None, None) => None,
        };
        let is_numbered = match (&tcp, &udp) {
            (Some(tcp), _) => [tcp.source_port, tcp.destination_port].contains(&SERVER_PORT),
            (None, Some(udp)) => [udp.source_port, udp.destination_port].contains(&SERVER_PORT),
            (None, None) => false,
        };
        let client = match (addresses, toward) {
            (Some((source, _)), Side::Server) => source,
            (Some((_, destination)), Side::Client) => destination,
            (None, _) => return false,
        };
        let Some(slot) = client_slot(client) else {
            return false;
        };
        let link = self.link_of(slot);
        let Some(flow) = self.flows.get_mut(link) else {
            return false;
        };
        let place = slot % self.at_once;
        let flow = flow.get_or_insert_with(|| {
            let index = self.first_index.wrapping_add(slot - place);
            let lost = self.losing.of_slot(slot);
            Flow::new(self.link, self.seed, index, now, lost)
        });
        let port = match (&tcp, toward) {
            (Some(tcp), Side::Server) => tcp.source_port,
            (Some(tcp), Side::Client) => tcp.destination_port,
            (None, _) => 0,
        };
        let number = connection_number(place, port);
        let keys =
            (flow.keys.entry(number)).or_insert_with(|| KeyMaker::of_later_connection(number));
        let key = match &tcp {
            Some(tcp) => keys.key_of(toward, tcp),
            None => keys.key_of_datagram(toward),
        };
        let sent = Time(now.0 - flow.late[end(toward.other())].as_nanos() as u64);
        // As by luck, a lost one takes none of the link's rate.
        let fate = if is_numbered && flow.loses_next(toward.other()) {
            Fate::Lost
        } else {
            let ports = match (&tcp, &udp) {
                (Some(tcp), _) => [tcp.source_port, tcp.destination_port],
                (None, Some(udp)) => [udp.source_port, udp.destination_port],
                (None, None) => [0; 2],
            };
            let waits = Packet {
                ticket: ticket(slot, packet, length as u16),
                length,
                key,
                flow: u32::from(ports[0]) << 16 | u32::from(ports[1]),
                ecn: EcnCodepoint::of_class(bytes.get(1).copied().unwrap_or_default()),
            };
            flow.pipes[end(toward)].accept(sent, waits)
        };
        if let Some(tap) = &mut self.tap {
            let noted = match fate {
                Fate::Arrives(_) | Fate::Waits => Noted::Carried,
                Fate::Lost => Noted::Lost,
                Fate::Overflows => Noted::QueueFull,
            };
            tap.note(slot, now, Point::sent(toward), noted, bytes);
        }
        match fate {
            Fate::Arrives(at) => {
                let length = length as u16;
                self.plan(at, slot, toward, What::Arrives { packet, length });
                true
            }
            Fate::Waits => {
                self.plan_service(slot, toward);
                true
            }
            Fate::Lost => {
                self.report.lost += 1;
                false
            }
            Fate::Overflows => {
                self.report.overflowed += 1;
                false
            }
        }
    }

    fn sleep(&self) -> io::Result<()> {
        let timeout = match self.queue.peek() {
            Some(Reverse(due)) => due.at.since(sys::now()).min(MAX_SLEEP),
            None => MAX_SLEEP,
        };
        if timeout.is_zero() {
            return Ok(());
        }
        let mut devices = [
            PollFd::new(self.device(Side::Client), PollFlags::POLLIN),
            PollFd::new(self.device(Side::Server), PollFlags::POLLIN),
        ];
        match ppoll(&mut devices, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn device(&self, toward: Side) -> BorrowedFd<'a> {
        self.devices[end(toward)].as_fd()
    }
}

impl Flow {
    /// Of connection `index`, whose first packet comes now.
    fn new(link: &Link, seed: Seed, index: u32, now: Time, lost: Option<(Side, u32)>) -> Self {
        let [forward, backward] = link.pipes(seed, index, now);
        Self {
            pipes: [backward, forward],
            served: [None; 2],
            keys: BTreeMap::new(),
            late: [Duration::ZERO; 2],
            latest: Duration::ZERO,
            sent: [0; 2],
            lost,
        }
    }

    /// Counts a packet of this end's, and says whether it is the one to be lost.
    fn loses_next(&mut self, sender: Side) -> bool {
        let sent = &mut self.sent[end(sender)];
        let number = *sent;
        *sent = number.saturating_add(1);
        self.lost == Some((sender, number))
    }
}

/// Buffers of packets under way, reused.
struct Packets {
    /// Of each.
    capacity: usize,
    bytes: Vec<u8>,
    free: Vec<u32>,
}

impl Packets {
    /// None yet.
    fn within(mtu: Mtu) -> Packets {
        Packets {
            capacity: mtu.bytes().into(),
            bytes: Vec::new(),
            free: Vec::new(),
        }
    }

    fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let packet = self.bytes.len() / self.capacity;
            self.bytes.resize(self.bytes.len() + self.capacity, 0);
            packet as u32
        })
    }

    fn free(&mut self, packet: u32) {
        self.free.push(packet);
    }

    fn buffer(&mut self, packet: u32) -> &mut [u8] {
        let start = self.start(packet);
        &mut self.bytes[start..start + self.capacity]
    }

    fn get_mut(&mut self, packet: u32, length: u16) -> &mut [u8] {
        let start = self.start(packet);
        &mut self.bytes[start..start + usize::from(length)]
    }

    fn get(&self, packet: u32, length: u16) -> &[u8] {
        let start = self.start(packet);
        &self.bytes[start..start + usize::from(length)]
    }

    fn start(&self, packet: u32) -> usize {
        packet as usize * self.capacity
    }
}

#[cfg(test)]
mod tests;
