#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

//! Both ends on a channel in memory, which says what was written in which order. Its TLS is four words: a
//! hello, a flight, the client's end of the handshake and a ticket.

use std::cell::{Cell as Mutable, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use lastbyte_link::{Bytes, Side};
use lastbyte_tls::{Connection, KeyLog, Progress, TlsError};

use super::*;
use crate::lab::channel::Awaited;
use crate::lab::failure::During;
use crate::lab::shared::Shared;
use crate::results::RecordCost;
use crate::study::RecordSize;

const MS: Duration = Duration::from_millis(1);
/// What the head of a request has.
const HEAD: usize = crate::study::exchange::REQUEST.len();

/// What crosses the wire: its length is that of a `write`, or of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Hello,
    Flight,
    Finished,
    Ticket,
    Early(usize),
    Data(usize),
}
use Said::*;

impl Said {
    fn bytes(self) -> usize {
        match self {
            Hello => 100,
            Flight => 1000,
            Finished => 50,
            Ticket => 200,
            Early(length) | Data(length) => length,
        }
    }
}

/// One direction.
#[derive(Default)]
struct Way {
    under_way: VecDeque<Said>,
    is_closed: bool,
}

/// Both directions, and all that was said on them.
#[derive(Clone, Default)]
struct Wire {
    ways: [Rc<RefCell<Way>>; 2],
    said: Rc<RefCell<Vec<(Side, Said)>>>,
    clock: Rc<TestClock>,
    /// Bytes that the transport takes before it is full.
    room: Rc<Mutable<u64>>,
    early: Rc<Mutable<Early>>,
}

/// What becomes of early data.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Early {
    #[default]
    NotAllowed,
    Accepted,
    Refused,
}

/// One end of a [`Wire`].
struct InMemory {
    side: Side,
    wire: Wire,
    is_connected: bool,
    progress: Progress,
    tls: NoTls,
    received: VecDeque<Said>,
    input: Input,
    /// Written, but not to be sent yet.
    held: Vec<Said>,
    waiting: VecDeque<Said>,
    scratch: Vec<u8>,
    queued: u64,
    sent: u64,
    awaited: Rc<Mutable<Awaited>>,
}

impl InMemory {
    fn new(side: Side, wire: &Wire) -> Self {
        Self {
            side,
            wire: wire.clone(),
            is_connected: true,
            progress: Progress::Handshaking,
            tls: NoTls(wire.early.get() == Early::Accepted),
            received: VecDeque::new(),
            input: Input::Open,
            held: Vec::new(),
            waiting: VecDeque::new(),
            scratch: Vec::new(),
            queued: 0,
            sent: 0,
            awaited: Rc::new(Mutable::new(Awaited::Anything)),
        }
    }

    fn way(&self, from: Side) -> &Rc<RefCell<Way>> {
        &self.wire.ways[from as usize]
    }

    fn hold(&mut self, said: Said) {
        self.held.push(said);
    }
}

impl Channel for InMemory {
    fn is_connected(&mut self) -> Result<bool, Failure> {
        Ok(self.is_connected)
    }

    fn use_tls(&mut self, _: Box<dyn Connection>) {
        self.tls = NoTls(false);
        self.wire.said.borrow_mut().push((self.side, Early(0)));
    }

    fn tls(&self) -> &dyn Connection {
        &self.tls
    }

    fn receive(
        &mut self,
        _: Input,
        _: &mut [u8],
        _: Hold<'_>,
        _: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let way = Rc::clone(self.way(self.side.other()));
        let mut way = way.borrow_mut();
        self.received.append(&mut way.under_way);
        if way.is_closed {
            self.input = Input::Closed;
        }
        Ok(())
    }

    fn input(&self) -> Input {
        self.input
    }

    fn advance(&mut self) -> Result<Progress, Failure> {
        if self.side == Side::Client
            && self.queued == 0
            && self
                .wire
                .said
                .borrow()
                .iter()
                .all(|(_, said)| *said != Hello)
        {
            self.held.insert(0, Hello);
            return Ok(Progress::Handshaking);
        }
        match (self.side, self.received.front()) {
            (Side::Client, Some(Flight)) => {
                self.received.pop_front();
                self.hold(Finished);
                self.progress = Progress::Established;
            }
            (Side::Server, Some(Hello)) => {
                self.received.pop_front();
                self.hold(Flight);
            }
            (Side::Server, Some(Finished)) => {
                self.received.pop_front();
                self.hold(Ticket);
                self.progress = Progress::Established;
            }
            _ => {}
        }
        Ok(self.progress)
    }

    fn write_early(&mut self, data: &[u8]) -> Result<bool, Failure> {
        let is_allowed = self.wire.early.get() != Early::NotAllowed;
        if is_allowed {
            self.hold(Early(data.len()));
        }
        Ok(is_allowed)
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.hold(Data(data.len()));
        Ok(())
    }

    fn read(&mut self, _: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.received.front() {
                Some(Ticket) => drop(self.received.pop_front()),
                Some(Early(_)) if self.wire.early.get() == Early::Refused => {
                    self.received.pop_front();
                }
                Some(Early(length) | Data(length)) => {
                    let length = *length;
                    self.received.pop_front();
                    return Ok(length);
                }
                _ => return Ok(0),
            }
        }
    }

    fn take_output(&mut self) -> &[u8] {
        let taken: usize = self.held.iter().map(|said| said.bytes()).sum();
        self.waiting.extend(self.held.drain(..));
        self.queued += taken as u64;
        self.scratch.resize(taken, 0);
        &self.scratch
    }

    fn set_receive_buffer(&mut self, _: Bytes) -> Result<(), Failure> {
        Ok(())
    }

    fn set_apart(&mut self, since: u64) {
        let length = (self.queued - since) as usize;
        self.wire.said.borrow_mut().push((self.side, Early(length)));
    }

    fn has_room(&self) -> bool {
        self.queued - self.sent < 1 << 20
    }

    fn flush(&mut self, _: Hold<'_>) -> Result<(), Failure> {
        while let Some(said) = self.waiting.front().copied() {
            let bytes = said.bytes() as u64;
            let Some(left) = self.wire.room.get().checked_sub(bytes) else {
                break;
            };
            self.wire.room.set(left);
            self.waiting.pop_front();
            self.sent += bytes;
            self.wire.said.borrow_mut().push((self.side, said));
            self.way(self.side).borrow_mut().under_way.push_back(said);
        }
        Ok(())
    }

    fn queued(&self) -> u64 {
        self.queued
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn wake_for(&mut self, awaited: Awaited) {
        self.awaited.set(awaited);
    }

    fn close_writing(&mut self) {
        self.way(self.side).borrow_mut().is_closed = true;
    }

    fn close(&self) -> Option<crate::results::EndStats> {
        None
    }
}

/// Says only whether early data was accepted.
struct NoTls(bool);

impl Connection for NoTls {
    fn receive(&mut self, _: &[u8]) {}

    fn advance(&mut self) -> Result<Progress, TlsError> {
        Err(TlsError::Closed)
    }

    fn transmit(&mut self, _: &mut Vec<u8>) {}

    fn write_record(&mut self, _: &[u8]) -> Result<(), TlsError> {
        Err(TlsError::Closed)
    }

    fn read(&mut self, _: &mut [u8]) -> Result<usize, TlsError> {
        Err(TlsError::Closed)
    }

    fn is_early_data_accepted(&self) -> bool {
        self.0
    }

    fn key_log(&self) -> KeyLog {
        KeyLog::default()
    }
}

/// A clock that only spending moves.
#[derive(Default)]
struct TestClock(Mutable<u64>);

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time(self.0.get())
    }

    fn spend(&self, cost: Duration) {
        self.0.set(self.0.get() + cost.as_nanos() as u64);
    }
}

/// A source that has nothing until a time.
struct Late {
    until: Time,
    is_connected: bool,
}

impl Source for Late {
    fn connected(&mut self, _: Time) {
        self.is_connected = true;
    }

    fn decide(&mut self, now: Time) -> Result<Step, TlsError> {
        assert!(self.is_connected);
        Ok(if now < self.until {
            Step::Wait(self.until)
        } else {
            Step::Offer(Box::new(NoTls(false)))
        })
    }
}

/// Two ends and what they are on.
struct Ends {
    wire: Wire,
    exchange: Exchange,
    client: Client,
    server: Server,
    notes: Notes,
    awaited: Rc<Mutable<Awaited>>,
}

fn exchange(cell: &Cell, arm: &str) -> Exchange {
    Exchange::new(
        &arm.parse().unwrap(),
        cell,
        WakePolicy::Arrival,
        CpuCosts::default(),
    )
}

fn cell(data: u64) -> Cell {
    Cell {
        data: Bytes(data),
        ..Cell::default()
    }
}

const ARM: &str = "x25519/ecdsa-p256/record_size=1000";

impl Ends {
    fn new(exchange: Exchange) -> Self {
        Self::on(Wire::default(), exchange)
    }

    fn on(wire: Wire, exchange: Exchange) -> Self {
        wire.room.set(u64::MAX);
        let channel = InMemory::new(Side::Client, &wire);
        let awaited = Rc::clone(&channel.awaited);
        Self {
            client: Client::new(Box::new(channel), &exchange),
            server: Server::new(Box::new(InMemory::new(Side::Server, &wire)), &exchange),
            exchange,
            wire,
            notes: Notes::default(),
            awaited,
        }
    }

    fn turn<T>(&mut self, drive: impl FnOnce(&mut Self, &mut Turn<'_>) -> T) -> T {
        let (shared, clock) = (Shared::new(0), Rc::clone(&self.wire.clock));
        let mut scratch = vec![0; 1 << 15];
        let mut turn = Turn {
            input: Input::Open,
            scratch: &mut scratch,
            hold: &|| shared.hold(0, Side::Client),
            clock: clock.as_ref(),
        };
        drive(self, &mut turn)
    }

    fn client(&mut self, source: Option<&mut dyn Source>) -> Result<(), Failure> {
        self.turn(|ends, turn| {
            ends.client
                .drive(turn, &ends.exchange, source, &mut ends.notes)
        })
    }

    fn server(&mut self) {
        self.turn(|ends, turn| ends.server.drive(turn, &ends.exchange, &mut ends.notes));
    }

    /// Has both take turns until neither says more.
    fn run(&mut self) {
        for _ in 0..100 {
            let before = self.said().len();
            self.client(None).unwrap();
            self.server();
            if self.said().len() == before && self.wire.ways[1].borrow().under_way.is_empty() {
                return;
            }
        }
        panic!("they talk without end");
    }

    fn said(&self) -> Vec<(Side, Said)> {
        self.wire.said.borrow().clone()
    }

    fn said_by(&self, side: Side) -> Vec<Said> {
        let said = self.said().into_iter();
        said.filter_map(|(by, said)| (by == side).then_some(said))
            .collect()
    }
}

#[test]
fn a_request_follows_the_handshake_and_a_response_the_request() {
    let mut ends = Ends::new(exchange(&cell(2500), ARM));
    ends.run();
    use Side::{Client, Server};
    let expected = [
        (Client, Hello),
        (Server, Flight),
        (Client, Finished),
        (Client, Data(HEAD)),
        (Server, Ticket),
        (Server, Data(1000)),
        (Server, Data(1000)),
        (Server, Data(500)),
    ];
    assert_eq!(ends.said(), expected);
    assert!(ends.client.is_done() && ends.server.is_done());
    assert_eq!(ends.server.ticket_bytes(), 200);
}

#[test]
fn without_data_the_handshake_is_all() {
    let mut ends = Ends::new(exchange(&cell(0), ARM));
    ends.run();
    assert_eq!(ends.said_by(Side::Client), [Hello, Finished]);
    assert_eq!(ends.notes.times.ttlb, ends.notes.times.handshake);
    assert_eq!(ends.notes.times.ttfb, None);
    assert!(ends.server.is_done());
}

#[test]
fn an_upload_ends_when_the_server_has_it() {
    let cell = Cell {
        upload: Bytes(1500),
        ..cell(0)
    };
    let mut ends = Ends::new(exchange(&cell, ARM));
    ends.run();
    let client = [Hello, Finished, Data(HEAD), Data(1000), Data(500)];
    assert_eq!(ends.said_by(Side::Client), client);
    assert!(ends.notes.times.ttlb.is_some() && ends.notes.times.ttfb.is_none());
}

#[test]
fn each_step_takes_its_time_once() {
    let cost = |ms: u32| RecordCost {
        record: MS * ms,
        ..RecordCost::default()
    };
    let costs = CpuCosts {
        client_hello: MS,
        server_flight: 10 * MS,
        client_finish: 100 * MS,
        server_finish: 1000 * MS,
        encrypt: cost(10_000),
        decrypt: cost(100_000),
        ..CpuCosts::default()
    };
    // A request is encrypted with the client's end of the handshake, and leaves with it. The server decrypts it and encrypts
    // three records, the client decrypts the first and the last.
    for (client_cpu, handshake, first, last) in [
        ("this", 1 + 10 + 100 + 10_000, 100_000, 200_000),
        ("2x", 2 + 10 + 200 + 20_000, 200_000, 400_000),
    ] {
        let cell = Cell {
            client_cpu: client_cpu.parse().unwrap(),
            ..cell(2500)
        };
        let arm: Arm = ARM.parse().unwrap();
        let exchange = Exchange::new(&arm, &cell, WakePolicy::Arrival, costs);
        let mut ends = Ends::new(exchange);
        ends.run();
        let times = ends.notes.times;
        assert_eq!(times.connect, Some(Duration::ZERO));
        assert_eq!(times.handshake, Some(handshake * MS));
        assert_eq!(times.server_handshake, Some((handshake + 1000) * MS));
        let server = handshake + 1000 + 100_000 + 30_000;
        assert_eq!(times.ttfb, Some((server + first) * MS));
        assert_eq!(times.ttlb, Some((server + last) * MS));
    }
}

/// With the head of the request, which is in the same `write`.
#[test]
fn the_handshake_time_is_when_all_of_it_is_sent() {
    let cell = Cell {
        upload: Bytes(1000),
        ..cell(100)
    };
    let mut ends = Ends::new(exchange(&cell, ARM));
    ends.client(None).unwrap();
    ends.server();
    let handshake = (Finished.bytes() + HEAD) as u64;
    ends.wire.room.set(handshake - 1);
    ends.client(None).unwrap();
    assert_eq!(ends.notes.times.handshake, None);
    // It fits, the body does not.
    ends.wire.room.set(handshake);
    ends.wire.clock.spend(3 * MS);
    ends.client(None).unwrap();
    assert_eq!(ends.notes.times.handshake, Some(3 * MS));
    let said = [Hello, Finished, Data(HEAD)];
    assert_eq!(ends.said_by(Side::Client), said);
    ends.wire.room.set(u64::MAX);
    ends.client(None).unwrap();
    assert_eq!(ends.said_by(Side::Client).last(), Some(&Data(1000)));
}

#[test]
fn a_client_thinks_between_a_response_and_the_next_request() {
    let cell = Cell {
        requests: 2,
        think: 40 * MS,
        ..cell(100)
    };
    let mut ends = Ends::new(exchange(&cell, ARM));
    ends.run();
    assert_eq!(ends.client.thinks_until(), Some(Time(40_000_000)));
    assert_eq!(ends.notes.times.ttlb, None);
    ends.wire.clock.spend(39 * MS);
    ends.run();
    assert_eq!(ends.said_by(Side::Client).len(), 3);
    ends.wire.clock.spend(MS);
    ends.run();
    assert_eq!(ends.said_by(Side::Client).last(), Some(&Data(HEAD)));
    assert_eq!(ends.notes.times.ttfb, Some(Duration::ZERO));
    assert_eq!(ends.notes.times.ttlb, Some(40 * MS));
    assert!(ends.client.is_done() && ends.server.is_done());
}

/// What both say of a request of two records as early data.
fn with_early_data(early: Early) -> Ends {
    let cell = Cell {
        upload: Bytes(1500),
        ..cell(100)
    };
    let wire = Wire::default();
    wire.early.set(early);
    let mut ends = Ends::on(wire, exchange(&cell, &format!("{ARM}/resume=0rtt")));
    ends.run();
    ends
}

#[test]
fn early_data_is_said_once_where_the_server_takes_it() {
    let ends = with_early_data(Early::Accepted);
    let client = [Hello, Early(HEAD), Early(1000), Early(500), Finished];
    assert_eq!(ends.said_by(Side::Client), client);
    assert!(ends.client.is_done());
}

#[test]
fn early_data_is_said_again_where_the_server_refuses_it() {
    let ends = with_early_data(Early::Refused);
    let again = [Finished, Data(HEAD), Data(1000), Data(500)];
    assert!(ends.said_by(Side::Client).ends_with(&again));
    assert!(ends.client.is_done());
}

#[test]
fn a_session_without_early_data_sends_none() {
    let ends = with_early_data(Early::NotAllowed);
    let client = [Hello, Finished, Data(HEAD), Data(1000), Data(500)];
    assert_eq!(ends.said_by(Side::Client), client);
}

#[test]
fn a_client_says_nothing_before_its_source_has_decided() {
    let mut source = Late {
        until: Time(5_000_000),
        is_connected: false,
    };
    let mut ends = Ends::new(exchange(&cell(100), ARM));
    ends.client(Some(&mut source)).unwrap();
    assert_eq!(ends.client.thinks_until(), Some(source.until));
    assert_eq!(ends.notes.times.connect, Some(Duration::ZERO));
    assert!(ends.said().is_empty());
    ends.wire.clock.spend(5 * MS);
    ends.client(Some(&mut source)).unwrap();
    // Another TLS than the one that it had, and then the hello.
    assert_eq!(ends.said_by(Side::Client), [Early(0), Hello]);
}

#[test]
fn a_client_that_is_not_connected_asks_nobody() {
    let wire = Wire::default();
    wire.room.set(u64::MAX);
    let exchange = exchange(&cell(100), ARM);
    let mut ends = Ends::on(wire.clone(), exchange);
    let mut channel = InMemory::new(Side::Client, &wire);
    channel.is_connected = false;
    ends.client = Client::new(Box::new(channel), &exchange);
    let mut source = Late {
        until: Time(0),
        is_connected: false,
    };
    ends.client(Some(&mut source)).unwrap();
    assert!(!source.is_connected && ends.said().is_empty());
    assert_eq!(ends.notes.times.connect, None);
}

#[test]
fn a_response_leaves_in_the_writes_that_its_host_makes() {
    let mut cell = cell(2500);
    cell.hosts.writes = "1000B+800B".parse().unwrap();
    let mut ends = Ends::new(exchange(&cell, "x25519/ecdsa-p256/record_size=400"));
    ends.run();
    let server = ends.said_by(Side::Server);
    let apart: Vec<_> = server
        .iter()
        .filter(|said| matches!(said, Early(_)))
        .collect();
    assert!(!apart.is_empty(), "{server:?}");
    let payload: usize = (server.iter())
        .map(|said| if let Data(length) = said { *length } else { 0 })
        .sum();
    assert_eq!(payload, 2500);
    assert!(ends.client.is_done());
}

/// How a client fails whose server closes after it has said so much.
fn closed_after(turns: usize, data: u64) -> Failure {
    let mut ends = Ends::new(exchange(&cell(data), ARM));
    for _ in 0..turns {
        ends.client(None).unwrap();
        ends.server();
    }
    ends.wire.ways[1].borrow_mut().is_closed = true;
    loop {
        match ends.client(None) {
            Err(failure) => return failure,
            Ok(()) => ends.wire.ways[1].borrow_mut().under_way.clear(),
        }
    }
}

#[test]
fn a_peer_that_closes_too_early_is_the_reason() {
    let during = |failure| match failure {
        Failure::PeerClosed(during) => during,
        failure => panic!("{failure}"),
    };
    assert_eq!(during(closed_after(0, 100)), During::Handshake);
    let missing = During::Response { missing: 100 };
    assert_eq!(during(closed_after(1, 100)), missing);
    assert_eq!(missing.to_string(), "100 bytes before the end");

    // A server whose client does.
    let mut ends = Ends::new(exchange(&cell(100), ARM));
    ends.client(None).unwrap();
    ends.server();
    ends.wire.ways[0].borrow_mut().is_closed = true;
    ends.server();
    let failure = ends.server.failure().unwrap().to_string();
    assert_eq!(
        failure,
        "the peer closed the connection during the handshake"
    );
    // It says so to its client.
    assert!(ends.wire.ways[1].borrow().is_closed);
}

#[test]
fn more_than_was_asked_for_is_a_failure() {
    let mut ends = Ends::new(exchange(&cell(100), ARM));
    ends.client(None).unwrap();
    ends.server();
    ends.client(None).unwrap();
    let way = Rc::clone(&ends.wire.ways[1]);
    way.borrow_mut().under_way.push_back(Data(101));
    let failure = ends.client(None).unwrap_err();
    assert!(matches!(failure, Failure::TooMuchData), "{failure}");
}

#[test]
fn a_client_is_woken_when_there_is_enough_to_go_on_with() {
    let mut exchange = exchange(&cell(2500), ARM);
    exchange.wakes = WakePolicy::Progress;
    let mut ends = Ends::new(exchange);
    ends.client(None).unwrap();
    // A message of the handshake,
    assert_eq!(ends.awaited.get(), Awaited::Decryptable);
    ends.server();
    ends.client(None).unwrap();
    // the first bytes of the response,
    assert_eq!(ends.awaited.get(), Awaited::Decryptable);
    let way = Rc::clone(&ends.wire.ways[1]);
    way.borrow_mut().under_way.push_back(Data(1000));
    ends.client(None).unwrap();
    // and then all that is missing.
    assert_eq!(ends.awaited.get(), Awaited::Payload(1500));
}

#[test]
fn what_the_last_step_of_a_turn_waited_counts_for_all_that_follows() {
    let mut waits = QueueingDelay {
        handshake: MS,
        last: 2 * MS,
    };
    waits.end_turn();
    assert_eq!((waits.handshake, waits.last), (3 * MS, Duration::ZERO));
    waits.last = 4 * MS;
    assert_eq!(waits.total(), 7 * MS);
}

#[test]
fn an_arm_and_a_cell_make_an_exchange() {
    let exchange = exchange(&cell(0), "x25519/ecdsa-p256/resume=0rtt");
    // There is nothing to send early.
    assert_eq!(exchange.early_request, EarlyRequest::None);
    assert_eq!(exchange.requests, 0);
    let arm: Arm = ARM.parse().unwrap();
    assert_eq!(arm.record_size, RecordSize::Fixed(1000));
}
