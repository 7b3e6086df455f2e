//! The endpoints' loop: one thread drives the clients and the server of a block.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastbyte_link::{Side, Time, mix};
use lastbyte_tls::{Connection, Retry, Stack};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt,
    socket, sockopt,
};

use super::LabError;
use super::channel::{Input, SCRATCH, TcpChannel};
use super::connection::{
    EndedConnection, KernelClock, Next, Pair, could_not_connect, could_not_resolve,
};
use super::delivery::{Lookup, PreparedDelivery};
use super::dns::{FIRST, Resolver, ResolverAnswer};
use super::exchange::{Exchange, Turn};
use super::shared::Shared;
use super::shortcuts::Shortcuts;
use super::starts::Starts;
use super::surroundings::{SERVER, Surroundings, client_address, client_slot};
use super::sys;
use crate::results::Outcome;
use crate::study::Congestion;

const SERVER_PORT: u16 = 443;
const CLIENT_PORT: u16 = 20_000;
const SECOND_CLIENT_PORT: u16 = CLIENT_PORT + 1;
const BACKLOG: i32 = 4096;
/// How long the loop sleeps at most, so that it notices an interrupt.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// What the endpoints do in one block.
pub(crate) struct Load<'a> {
    pub(crate) stack: &'a dyn Stack,
    /// What DNS delivers.
    pub(crate) delivery: Option<&'a PreparedDelivery>,
    /// Index of the first connection.
    pub(crate) first_index: u32,
    pub(crate) exchange: Exchange,
    pub(crate) congestion: Congestion,
    /// Connections in all.
    pub(crate) connections: u32,
    /// Connections at once.
    pub(crate) concurrency: u32,
    /// About how long one connection takes: starts are spread over it.
    pub(crate) duration: Duration,
    pub(crate) timeout: Duration,
    pub(crate) starts: Starts,
    pub(crate) shortcuts: Shortcuts,
    /// For the gaps between connections only.
    pub(crate) seed: u64,
}

/// How the endpoints fared in a block.
pub(crate) struct EndpointReport {
    /// By slot; those that an interrupt cut off are absent.
    pub(crate) finished: Vec<Option<EndedConnection>>,
    /// CPU time of the endpoints, the kernel's work in their system calls included.
    pub(crate) cpu: Duration,
}

/// Runs all connections of a block. A server that is not ours runs already. `ended` hears of each one that has. `resolver`
/// is there if DNS delivers something.
pub(crate) fn run(
    surroundings: &Surroundings,
    load: &Load<'_>,
    resolver: Option<Resolver>,
    shared: &Shared,
    interrupt: &AtomicBool,
    ended: &dyn Fn(),
) -> Result<EndpointReport, LabError> {
    let listener = match load.exchange.server.is_foreign() {
        true => None,
        false => {
            surroundings.server.enter()?;
            Some(listen_on(load.congestion).map_err(LabError::Socket)?)
        }
    };
    surroundings.client.enter()?;
    let mut endpoints =
        Endpoints::new(load, resolver, shared, listener).map_err(LabError::Socket)?;
    let before = sys::thread_cpu_time();
    endpoints.run(interrupt, ended)?;
    Ok(EndpointReport {
        finished: endpoints.finished,
        cpu: sys::thread_cpu_time() - before,
    })
}

struct Endpoints<'a> {
    load: &'a Load<'a>,
    shared: &'a Shared,
    /// Our own server's.
    listener: Option<TcpListener>,
    epoll: Epoll,
    resolver: Option<Resolver>,
    /// Connections whose server's address is not known yet.
    lookups: Vec<Option<Lookup<'a>>>,
    pairs: Vec<Option<Pair<'a>>>,
    /// Where their servers are.
    servers: Vec<Ipv4Addr>,
    finished: Vec<Option<EndedConnection>>,
    /// When the next connections start.
    starts: BinaryHeap<Reverse<Time>>,
    /// Deadlines of started connections, which are in order: all have one timeout.
    deadlines: VecDeque<(Time, u32)>,
    /// When clients have thought long enough.
    thoughts: BinaryHeap<Reverse<(Time, u32)>>,
    next_slot: u32,
    ended: u32,
    /// Since when the loop has not been idle.
    busy_since: Time,
    gaps: Gaps,
    scratch: Vec<u8>,
}

/// A client that called `connect()`.
struct Call {
    started: Time,
    channel: Box<TcpChannel>,
    /// Whether that goes on.
    connecting: Result<(), Errno>,
}

enum Event {
    Accept,
    Resolver,
    Ready { slot: u32, end: Side },
}

impl<'a> Endpoints<'a> {
    fn new(
        load: &'a Load<'a>,
        resolver: Option<Resolver>,
        shared: &'a Shared,
        listener: Option<TcpListener>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        if let Some(listener) = &listener {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, Event::Accept.encode());
            epoll.add(listener, event)?;
        }
        if let Some(resolver) = &resolver {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, Event::Resolver.encode());
            epoll.add(resolver, event)?;
        }
        let slots = load.connections as usize;
        Ok(Self {
            load,
            shared,
            listener,
            epoll,
            resolver,
            lookups: (0..slots).map(|_| None).collect(),
            pairs: (0..slots).map(|_| None).collect(),
            servers: vec![SERVER; slots],
            finished: (0..slots).map(|_| None).collect(),
            starts: BinaryHeap::new(),
            deadlines: VecDeque::new(),
            thoughts: BinaryHeap::new(),
            next_slot: 0,
            ended: 0,
            busy_since: sys::now(),
            gaps: Gaps(load.seed),
            scratch: vec![0; SCRATCH],
        })
    }

    fn run(&mut self, interrupt: &AtomicBool, ended: &dyn Fn()) -> Result<(), LabError> {
        let begin = sys::now();
        for _ in 0..self.load.concurrency.min(self.load.connections) {
            let gap = match self.load.concurrency {
                1 => Duration::ZERO,
                _ => self.gaps.uniform(self.load.duration),
            };
            self.starts.push(Reverse(begin + gap));
        }
        let mut events = [EpollEvent::empty(); 256];
        while self.ended < self.load.connections {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.shared.is_stopped() {
                return Err(LabError::Crashed("the emulator"));
            }
            let before = self.ended;
            self.start_due()?;
            self.wake_due()?;
            self.expire();
            let count = self.wait(&mut events).map_err(LabError::Socket)?;
            for event in &events[..count] {
                match Event::decode(event.data()) {
                    Event::Accept => self.accept()?,
                    Event::Resolver => self.take_answers()?,
                    Event::Ready { slot, end } => {
                        let input = Input::of(event.events());
                        self.ready(slot, end, self.load.shortcuts.input(input))?;
                    }
                }
            }
            for _ in before..self.ended {
                ended();
            }
        }
        Ok(())
    }

    /// Waits for events, or until something else is due.
    fn wait(&mut self, events: &mut [EpollEvent]) -> io::Result<usize> {
        let count = self.epoll_wait(events, EpollTimeout::ZERO)?;
        if count > 0 {
            return Ok(count);
        }
        let now = sys::now();
        let until_start = self.starts.peek().map(|Reverse(at)| at.since(now));
        let until_deadline = self.deadlines.front().map(|(at, _)| at.since(now));
        let until_thought = self.thoughts.peek().map(|Reverse((at, _))| at.since(now));
        let timeout = [until_start, until_deadline, until_thought]
            .into_iter()
            .flatten()
            .fold(MAX_SLEEP, Duration::min);
        // Rounded up: a loop that wakes a little too early would spin.
        let timeout = u16::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        let count = self.epoll_wait(events, EpollTimeout::from(timeout))?;
        self.busy_since = sys::now();
        Ok(count)
    }

    fn epoll_wait(&self, events: &mut [EpollEvent], timeout: EpollTimeout) -> io::Result<usize> {
        match self.epoll.wait(events, timeout) {
            Ok(count) => Ok(count),
            Err(Errno::EINTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn start_due(&mut self) -> Result<(), LabError> {
        while let Some(&Reverse(at)) = self.starts.peek() {
            if at > sys::now() {
                break;
            }
            self.starts.pop();
            if self.next_slot < self.load.connections {
                let slot = self.next_slot;
                self.next_slot += 1;
                self.start(slot)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, slot: u32) -> Result<(), LabError> {
        let index = self.load.first_index + slot;
        self.load.starts.wait(index).map_err(LabError::Socket)?;
        let now = sys::now();
        self.deadlines.push_back((now + self.load.timeout, slot));
        let (Some(prepared), Some(resolver)) = (self.load.delivery, &mut self.resolver) else {
            return self.connect(slot, SERVER, None);
        };
        let lookup = Lookup::new(prepared, self.load.stack, now);
        let name = lookup.name_of(index);
        self.lookups[slot as usize] = Some(lookup);
        resolver.ask(slot, &name, &FIRST)?;
        Ok(())
    }

    fn take_answers(&mut self) -> Result<(), LabError> {
        let Some(resolver) = &mut self.resolver else {
            return Ok(());
        };
        for answer in resolver.read()? {
            self.take_answer(answer)?;
        }
        Ok(())
    }

    fn take_answer(&mut self, answer: ResolverAnswer) -> Result<(), LabError> {
        let (slot, name) = (answer.slot, answer.name.clone());
        let place = slot as usize;
        let questions = match (&mut self.lookups[place], &mut self.pairs[place]) {
            (Some(lookup), _) => lookup.take(answer, sys::now()),
            (None, Some(pair)) => pair.answered(answer),
            // It has ended.
            (None, None) => return Ok(()),
        };
        if let Some(resolver) = &mut self.resolver {
            resolver.ask(slot, &name, &questions)?;
        }
        match self.lookups[place].as_ref().and_then(Lookup::address) {
            Some(Ok(server)) => {
                let lookup = self.lookups[place].take();
                self.connect(slot, server, lookup)?;
            }
            Some(Err(reason)) => self.end(slot, could_not_resolve(&reason)),
            None => {}
        }
        // It may have waited for this answer alone.
        self.ready(slot, Side::Client, Input::Open)
    }

    fn connect(
        &mut self,
        slot: u32,
        server: Ipv4Addr,
        lookup: Option<Lookup<'a>>,
    ) -> Result<(), LabError> {
        let tls = self.load.stack.client().map_err(LabError::Stack)?;
        let call = self.call(slot, server, tls, Attempt::First)?;
        let exchange = self.exchange(slot);
        self.pairs[slot as usize] = Some(Pair::new(call.started, exchange, call.channel, lookup));
        self.servers[slot as usize] = server;
        if let Err(error) = call.connecting {
            self.end(slot, could_not_connect(error));
        }
        Ok(())
    }

    /// Has a client that failed try once more.
    fn again(&mut self, slot: u32, retry: &Retry) -> Result<(), LabError> {
        let tls = (self.load.stack.retrying_client(retry)).map_err(LabError::Stack)?;
        let server = self.servers[slot as usize];
        let call = self.call(slot, server, tls, Attempt::Second)?;
        if let Some(pair) = &mut self.pairs[slot as usize] {
            pair.again(call.channel);
        }
        if let Err(error) = call.connecting {
            self.end(slot, could_not_connect(error));
        }
        Ok(())
    }

    /// Calls `connect()`.
    fn call(
        &self,
        slot: u32,
        server: Ipv4Addr,
        tls: Box<dyn Connection>,
        attempt: Attempt,
    ) -> Result<Call, LabError> {
        let socket = open_socket(self.load.congestion).map_err(LabError::Socket)?;
        let address = client_socket_address(client_address(slot), attempt);
        bind(socket.as_raw_fd(), &address).map_err(|error| LabError::Socket(error.into()))?;
        self.watch(&socket, slot, Side::Client)
            .map_err(LabError::Socket)?;
        let server = server_socket_address(server);
        let started = sys::now();
        let connecting = match connect(socket.as_raw_fd(), &server) {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
            Err(error) => Err(error),
        };
        let flush = self.exchange(slot).flush;
        let channel = Box::new(TcpChannel::new(socket, tls, flush));
        Ok(Call {
            started,
            channel,
            connecting,
        })
    }

    fn exchange(&self, slot: u32) -> Exchange {
        self.load
            .exchange
            .of_connection(self.load.first_index + slot)
    }

    fn accept(&mut self) -> Result<(), LabError> {
        while let Some(listener) = &self.listener {
            let (socket, peer) = match listener.accept() {
                Ok((socket, SocketAddr::V4(peer))) => (socket, peer),
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has given up already; its own end says why.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(LabError::Socket(error)),
            };
            let Some(slot) = client_slot(*peer.ip()) else {
                continue;
            };
            socket.set_nonblocking(true).map_err(LabError::Socket)?;
            socket.set_nodelay(true).map_err(LabError::Socket)?;
            self.watch(&socket, slot, Side::Server)
                .map_err(LabError::Socket)?;
            let tls = self.load.stack.server().map_err(LabError::Stack)?;
            if let Some(Some(pair)) = self.pairs.get_mut(slot as usize) {
                let flush = self.load.exchange.flush;
                pair.accepted(Box::new(TcpChannel::new(socket, tls, flush)));
                pair.worked = sys::now();
            }
        }
        Ok(())
    }

    fn ready(&mut self, slot: u32, end: Side, input: Input) -> Result<(), LabError> {
        let Some(Some(pair)) = self.pairs.get_mut(slot as usize) else {
            return Ok(());
        };
        // What woke an idle loop has waited for nothing; what came while it worked, has.
        // A connection never waits for itself.
        let could_start = (self.shared.delivered(slot, end))
            .max(self.busy_since)
            .max(pair.worked);
        pair.waited(end, sys::now().since(could_start));
        let turn = Turn {
            input,
            scratch: &mut self.scratch,
            hold: &|| self.shared.hold(slot, end),
            clock: &KernelClock,
        };
        let next = pair.ready(end, turn);
        pair.worked = sys::now();
        if let Some(until) = pair.thinks_until() {
            self.thoughts.push(Reverse((until, slot)));
        }
        match next {
            None => {}
            Some(Next::Ended(outcome)) => self.end(slot, outcome),
            Some(Next::Again(retry)) => self.again(slot, &retry)?,
        }
        Ok(())
    }

    /// Has the clients go on that have thought long enough.
    fn wake_due(&mut self) -> Result<(), LabError> {
        while let Some(&Reverse((at, slot))) = self.thoughts.peek()
            && at <= sys::now()
        {
            self.thoughts.pop();
            if let Some(Some(pair)) = self.pairs.get_mut(slot as usize) {
                // Thinking is not waiting.
                pair.worked = pair.worked.max(at);
            }
            self.ready(slot, Side::Client, Input::Open)?;
        }
        Ok(())
    }

    fn expire(&mut self) {
        let now = sys::now();
        while let Some(&(at, slot)) = self.deadlines.front() {
            if at > now {
                break;
            }
            self.deadlines.pop_front();
            let pair = self.pairs.get(slot as usize).and_then(Option::as_ref);
            let outcome = pair.map_or(Outcome::TimedOut, Pair::expire);
            self.end(slot, outcome);
        }
    }

    fn end(&mut self, slot: u32, outcome: Outcome) {
        let place = slot as usize;
        let finished = match (self.pairs[place].take(), self.lookups[place].take()) {
            (Some(pair), _) => pair.finish(outcome),
            (None, Some(lookup)) => EndedConnection::unconnected(outcome, lookup),
            (None, None) => return,
        };
        self.finished[place] = Some(finished);
        self.ended += 1;
        let gap = match self.load.concurrency {
            1 => Duration::ZERO,
            _ => self.gaps.exponential(self.load.duration / 8),
        };
        self.starts.push(Reverse(sys::now() + gap));
    }

    fn watch(&self, socket: &TcpStream, slot: u32, end: Side) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN
            | EpollFlags::EPOLLOUT
            | EpollFlags::EPOLLRDHUP
            | EpollFlags::EPOLLET;
        let data = Event::Ready { slot, end }.encode();
        Ok(self.epoll.add(socket, EpollEvent::new(flags, data))?)
    }
}

impl Event {
    const ACCEPT: u64 = u64::MAX;
    const RESOLVER: u64 = u64::MAX - 1;

    fn encode(&self) -> u64 {
        match *self {
            Event::Accept => Self::ACCEPT,
            Event::Resolver => Self::RESOLVER,
            Event::Ready { slot, end } => {
                u64::from(slot) << 1 | u64::from(matches!(end, Side::Server))
            }
        }
    }

    fn decode(data: u64) -> Self {
        match data {
            Self::ACCEPT => Event::Accept,
            Self::RESOLVER => Event::Resolver,
            _ => Event::Ready {
                slot: (data >> 1) as u32,
                end: if data & 1 == 1 {
                    Side::Server
                } else {
                    Side::Client
                },
            },
        }
    }
}

/// Which of a client's connections it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    /// After the first one has failed.
    Second,
}

impl Attempt {
    /// The one that a client calls from this port with.
    pub(crate) fn of_port(port: u16) -> Attempt {
        match port {
            SECOND_CLIENT_PORT => Attempt::Second,
            _ => Attempt::First,
        }
    }
}

/// Where a client with this address calls from. Each connection has a port of its own, so that nothing that the
/// first one left meets the second.
pub(crate) fn client_socket_address(address: Ipv4Addr, attempt: Attempt) -> SockaddrIn {
    let port = match attempt {
        Attempt::First => CLIENT_PORT,
        Attempt::Second => SECOND_CLIENT_PORT,
    };
    SockaddrIn::from(SocketAddrV4::new(address, port))
}

/// Where clients call.
pub(crate) fn server_socket_address(address: Ipv4Addr) -> SockaddrIn {
    SockaddrIn::from(SocketAddrV4::new(address, SERVER_PORT))
}

pub(crate) fn listen_on(congestion: Congestion) -> io::Result<TcpListener> {
    let socket = open_socket(congestion)?;
    let address = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT));
    bind(socket.as_raw_fd(), &address)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(TcpListener::from(std::os::fd::OwnedFd::from(socket)))
}

/// A non-blocking socket with TCP_NODELAY and the congestion control asked for, which
/// accepted sockets inherit.
pub(crate) fn open_socket(congestion: Congestion) -> io::Result<TcpStream> {
    let socket = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let socket = TcpStream::from(socket);
    socket.set_nodelay(true)?;
    setsockopt(
        &socket,
        sockopt::TcpCongestion,
        &OsString::from(congestion.to_string()),
    )?;
    Ok(socket)
}

/// Random gaps between connections, so that closed loops don't fall into step.
struct Gaps(u64);

impl Gaps {
    fn uniform(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.fraction())
    }

    fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-(1.0 - self.fraction()).ln())
    }

    /// The next number in [0, 1), by SplitMix64.
    fn fraction(&mut self) -> f64 {
        /// From one state to the next (its "golden gamma").
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        (drawn >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests;
