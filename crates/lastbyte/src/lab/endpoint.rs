//! The endpoints' loop: one thread drives clients and servers, pair by pair.
//!
//! There is one loop for all engines. Who starts connections, and when, is given from outside, and so is how the loop
//! [sleeps](Waking). Connections over QUIC have their sockets in a file of their own.

mod datagrams;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use lastbyte_link::{Seed, Side, Time};
use lastbyte_tls::{Connection, Retry, Stack};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{SockaddrIn, bind, connect};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use self::datagrams::{QuicConnection, QuicServer};
use super::channel::{Input, SCRATCH, TcpChannel, TcpWriting};
use super::connection::{
    EndedConnection, KernelClock, Next, Pair, could_not_connect, could_not_resolve, spend,
};
use super::delivery::{Lookup, PreparedDelivery};
use super::dns::{FIRST, Resolver, ResolverAnswer};
use super::exchange::{Exchange, Turn};
use super::quic::QuicSettings;
use super::shared::Shared;
use super::shortcuts::Shortcuts;
use super::socket::{
    Attempt, client_socket_address, listen_on, open_socket, server_socket_address,
};
use super::surroundings::{SERVER, client_address, client_slot};
use super::sys;
use super::{LabError, PreparedArm};
use crate::results::Outcome;
use crate::study::{Cell, Congestion, Preset, TransportName};
use lastbyte_quic::{EndError, Kept};

/// How long a loop that may be interrupted sleeps at most, so that it notices.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// What all connections of a loop have in common.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// What DNS delivers.
    pub(crate) delivery: Option<&'a PreparedDelivery>,
    pub(crate) congestion: Congestion,
    pub(crate) preset: Preset,
    pub(crate) timeout: Duration,
    pub(crate) shortcuts: Shortcuts,
    /// Who else is at the sockets.
    pub(crate) shared: &'a Shared,
}

/// What one connection does.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) stack: &'a dyn Stack,
    pub(crate) exchange: Exchange,
    pub(crate) transport: Transport<'a>,
}

/// What carries a connection.
#[derive(Clone, Copy)]
pub(crate) enum Transport<'a> {
    Tcp,
    Quic(QuicSettings<'a>),
}

impl<'a> Transport<'a> {
    /// That of an arm's connections in a cell, with the seed of their experiment.
    pub(crate) fn of(arm: &'a PreparedArm, cell: &Cell, seed: Seed) -> Transport<'a> {
        match arm.arm.transport {
            TransportName::Tcp => Transport::Tcp,
            TransportName::Quic => Transport::Quic(QuicSettings::new(arm, cell, seed)),
        }
    }

    pub(crate) fn name(&self) -> TransportName {
        match self {
            Transport::Tcp => TransportName::Tcp,
            Transport::Quic(_) => TransportName::Quic,
        }
    }
}

/// Our own server's socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Quic(QuicServer),
}

impl Listener {
    /// Listens in the calling thread's namespace.
    pub(crate) fn open(transport: TransportName, congestion: Congestion) -> io::Result<Listener> {
        match transport {
            TransportName::Tcp => listen_on(congestion).map(Listener::Tcp),
            TransportName::Quic => QuicServer::open().map(Listener::Quic),
        }
    }
}

/// Both ends of all connections.
pub(crate) struct Endpoints<'a> {
    settings: Settings<'a>,
    waking: Waking,
    epoll: Epoll,
    /// Our own server's.
    listener: Option<Listener>,
    resolver: Option<Resolver>,
    /// By slot.
    running: BTreeMap<u32, Box<Running<'a>>>,
    /// What clients bring from a connection before, by slot.
    brought: BTreeMap<u32, Result<Kept, EndError>>,
    /// By slot, until it is [taken](Endpoints::take).
    finished: BTreeMap<u32, EndedConnection>,
    /// The slot that started last.
    latest: u32,
    /// Deadlines of started connections, which are in order: all have one timeout.
    deadlines: VecDeque<(Time, u32)>,
    /// When clients have thought long enough: each look at one takes a nanosecond of virtual time.
    thoughts: BinaryHeap<Reverse<(Time, u32)>>,
    ended: u32,
    /// Datagrams that clients' sockets had no room for.
    dropped: u64,
    scratch: Vec<u8>,
}

/// A connection that has started.
struct Running<'a> {
    plan: Plan<'a>,
    /// As long as its server's address is not known.
    lookup: Option<Lookup<'a>>,
    /// From `connect()` on.
    carried: Option<Carried<'a>>,
    /// Where its server is.
    server: Ipv4Addr,
}

/// Both ends of a connection, by its transport.
#[allow(
    clippy::large_enum_variant,
    reason = "who has it is in a box, and all of a block are of one transport"
)]
enum Carried<'a> {
    Tcp(Pair<'a>),
    Quic(Box<QuicConnection>),
}

impl Carried<'_> {
    /// When it has something to do though nothing has come.
    fn due(&self) -> Option<Time> {
        match self {
            Carried::Tcp(pair) => pair.thinks_until(),
            Carried::Quic(connection) => connection.due(),
        }
    }

    /// What it comes to when there is no more time.
    fn expire(&self) -> Outcome {
        match self {
            Carried::Tcp(pair) => pair.expire(),
            Carried::Quic(_) => Outcome::TimedOut,
        }
    }
}

/// A client that called `connect()`.
struct Call {
    started: Time,
    channel: Box<TcpChannel>,
    /// Whether that goes on.
    connecting: Result<(), Errno>,
}

/// How a loop sleeps until something is due.
pub(crate) enum Waking {
    /// Where connections share it, and the clock is the machine's: for whole milliseconds, and
    /// never for long. What comes while it works, waits.
    Timeout {
        /// Since when it has not been idle.
        busy_since: Time,
        /// What wakes it to the nanosecond besides, where a transport has timers of its own.
        timer: Option<TimerFd>,
    },
    /// Where the clock is virtual, and connections follow each other: to the nanosecond.
    Timer {
        timer: TimerFd,
        /// What that is set to.
        alarm: Option<Time>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Accept,
    /// At the server's socket, of QUIC.
    Datagrams,
    Resolver,
    /// A thought or a deadline.
    Due,
    Ready {
        slot: u32,
        end: Side,
    },
}

impl Waking {
    /// By epoll's own timeout, and for QUIC, whose pacers and probes are its ends' own, by a timer of the kernel besides.
    pub(crate) fn timeout(transport: TransportName) -> io::Result<Self> {
        let timer = match transport {
            TransportName::Tcp => None,
            TransportName::Quic => Some(new_timer()?),
        };
        Ok(Self::Timeout {
            busy_since: sys::now(),
            timer,
        })
    }

    /// By a timer of the kernel.
    pub(crate) fn timer() -> io::Result<Self> {
        let timer = new_timer()?;
        Ok(Self::Timer { timer, alarm: None })
    }

    /// Waits for events, or until something else is due. Gives how many there are.
    fn wait(
        &mut self,
        epoll: &Epoll,
        until: Option<Time>,
        shortcuts: Shortcuts,
        events: &mut [EpollEvent],
    ) -> io::Result<usize> {
        match self {
            Self::Timeout { busy_since, timer } => {
                let count = wait(epoll, events, EpollTimeout::ZERO)?;
                if count > 0 {
                    return Ok(count);
                }
                let now = sys::now();
                let timeout = until.map_or(MAX_SLEEP, |until| until.since(now).min(MAX_SLEEP));
                if let (Some(timer), Some(until)) = (timer, until) {
                    if timeout.is_zero() {
                        return Ok(0);
                    }
                    set_timer(timer, until)?;
                }
                // Rounded up: a loop that wakes a little too early would spin.
                let timeout = u16::try_from(timeout.as_micros().div_ceil(1000));
                let timeout = EpollTimeout::from(timeout.unwrap_or(u16::MAX));
                let count = wait(epoll, events, timeout)?;
                *busy_since = sys::now();
                Ok(count)
            }
            Self::Timer { timer, alarm } => {
                if let Some(until) = until
                    && shortcuts.remembered(*alarm) != Some(until)
                {
                    set_timer(timer, until)?;
                    *alarm = Some(until);
                }
                wait(epoll, events, EpollTimeout::NONE)
            }
        }
    }

    /// Since when a step could have been taken, if this loop has others wait.
    fn idle_since(&self) -> Option<Time> {
        match self {
            Self::Timeout { busy_since, .. } => Some(*busy_since),
            Self::Timer { .. } => None,
        }
    }
}

fn new_timer() -> io::Result<TimerFd> {
    let clock = timerfd::ClockId::CLOCK_MONOTONIC;
    Ok(TimerFd::new(clock, TimerFlags::TFD_CLOEXEC)?)
}

/// Has a timer end at this time of the kernel's clock.
fn set_timer(timer: &TimerFd, until: Time) -> io::Result<()> {
    let at = TimeSpec::from_duration(Duration::from_nanos(until.0));
    let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
    Ok(timer.set(Expiration::OneShot(at), flags)?)
}

/// Whether the peer may still send, as an event says.
fn input_of(event: EpollFlags) -> Input {
    const CLOSED: EpollFlags = EpollFlags::EPOLLRDHUP
        .union(EpollFlags::EPOLLHUP)
        .union(EpollFlags::EPOLLERR);
    if event.intersects(CLOSED) {
        Input::Closed
    } else {
        Input::Open
    }
}

fn wait(epoll: &Epoll, events: &mut [EpollEvent], timeout: EpollTimeout) -> io::Result<usize> {
    match epoll.wait(events, timeout) {
        Ok(count) => Ok(count),
        Err(Errno::EINTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

impl<'a> Endpoints<'a> {
    /// Of connections of which none has started. A server that is not ours needs no listener;
    /// `resolver` is there if DNS delivers something.
    pub(crate) fn new(
        settings: Settings<'a>,
        waking: Waking,
        listener: Option<Listener>,
        resolver: Option<Resolver>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let watch = |event: Event| EpollEvent::new(EpollFlags::EPOLLIN, event.encode());
        match &listener {
            Some(Listener::Tcp(listener)) => epoll.add(listener, watch(Event::Accept))?,
            Some(Listener::Quic(server)) => epoll.add(server, watch(Event::Datagrams))?,
            None => {}
        }
        match &waking {
            Waking::Timer { timer, .. } => epoll.add(timer, watch(Event::Due))?,
            Waking::Timeout {
                timer: Some(timer), ..
            } => {
                // Once for each time that it is set: nobody reads it.
                let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
                epoll.add(timer, EpollEvent::new(flags, Event::Due.encode()))?;
            }
            Waking::Timeout { timer: None, .. } => {}
        }
        if let Some(resolver) = &resolver {
            epoll.add(resolver, watch(Event::Resolver))?;
        }
        Ok(Self {
            settings,
            waking,
            epoll,
            listener,
            resolver,
            running: BTreeMap::new(),
            brought: BTreeMap::new(),
            finished: BTreeMap::new(),
            latest: 0,
            deadlines: VecDeque::new(),
            thoughts: BinaryHeap::new(),
            ended: 0,
            dropped: 0,
            scratch: vec![0; SCRATCH],
        })
    }

    /// How many connections have ended.
    pub(crate) fn ended(&self) -> u32 {
        self.ended
    }

    /// What has become of the connection of a slot, if it has ended.
    pub(crate) fn take(&mut self, slot: u32) -> Option<EndedConnection> {
        self.finished.remove(&slot)
    }

    /// Has the client of connection `index` have what it brings from a connection before, so that its start takes no time for
    /// that.
    pub(crate) fn bring(&mut self, slot: u32, index: u32, transport: &Transport<'_>) {
        if let Transport::Quic(settings) = transport {
            self.brought.insert(slot, settings.kept(index));
        }
    }

    /// Starts the connection of a free slot, which is number `index` of its sample.
    pub(crate) fn start(&mut self, slot: u32, index: u32, plan: Plan<'a>) -> Result<(), LabError> {
        let now = sys::now();
        self.latest = slot;
        // Of the one that had the slot before.
        self.deadlines.retain(|(_, of)| *of != slot);
        (self.deadlines).push_back((now + self.settings.timeout, slot));
        let mut running = Box::new(Running {
            plan,
            lookup: None,
            carried: None,
            server: SERVER,
        });
        if let Transport::Quic(settings) = &plan.transport {
            self.running.insert(slot, running);
            return self.begin_quic(slot, index, settings);
        }
        let (Some(prepared), Some(resolver)) = (self.settings.delivery, &mut self.resolver) else {
            self.running.insert(slot, running);
            return self.connect(slot, SERVER, None);
        };
        let begins = match self.waking {
            Waking::Timeout { .. } => now,
            // A nanosecond later, which rows of guests have always had.
            Waking::Timer { .. } => sys::now(),
        };
        let lookup = Lookup::new(prepared, plan.stack, begins);
        let name = lookup.name_of(index);
        running.lookup = Some(lookup);
        self.running.insert(slot, running);
        resolver.ask(slot, &name, &FIRST)?;
        Ok(())
    }

    /// Sleeps until something happens, `until` then at the latest if that is given, and does what
    /// follows from it.
    pub(crate) fn step(&mut self, until: Option<Time>) -> Result<(), LabError> {
        let mut events = [EpollEvent::empty(); 256];
        let before = self.ended;
        if let Waking::Timeout { .. } = self.waking {
            // Nothing else tells.
            self.do_due()?;
        }
        let until = if self.ended == before {
            self.next_due().into_iter().chain(until).min()
        } else {
            // Another connection may start at once.
            Some(Time(0))
        };
        let count = (self.waking)
            .wait(&self.epoll, until, self.settings.shortcuts, &mut events)
            .map_err(LabError::Socket)?;
        for event in events.iter().take(count) {
            match Event::decode(event.data()) {
                Event::Accept => self.accept()?,
                Event::Datagrams => self.take_from_server_socket()?,
                Event::Resolver => self.take_answers()?,
                Event::Due => self.do_due()?,
                Event::Ready { slot, end } => {
                    self.ready(slot, end, input_of(event.events()))?;
                }
            }
        }
        Ok(())
    }

    /// When the next thought or the next connection's time is over.
    fn next_due(&mut self) -> Option<Time> {
        self.forget();
        let deadline = self.deadlines.front().map(|(at, _)| *at);
        let thought = self.thoughts.peek().map(|Reverse((at, _))| *at);
        deadline.into_iter().chain(thought).min()
    }

    /// Has the clients go on that have thought long enough, and ends the connections whose time is
    /// over.
    fn do_due(&mut self) -> Result<(), LabError> {
        match self.waking {
            Waking::Timeout { .. } => {
                self.wake(&sys::now)?;
                self.expire(sys::now());
                Ok(())
            }
            // Each look at a virtual clock takes a nanosecond.
            Waking::Timer { .. } => {
                let now = sys::now();
                self.expire(now);
                self.wake(&|| now)
            }
        }
    }

    /// Has no timer set for what nobody waits for any more.
    fn forget(&mut self) {
        if let Waking::Timeout { timer: None, .. } = self.waking {
            return;
        }
        while let Some((_, slot)) = self.deadlines.front()
            && self.running(*slot).is_none()
        {
            self.deadlines.pop_front();
        }
        while let Some(Reverse((at, slot))) = self.thoughts.peek()
            && self.due_of(*slot) != Some(*at)
        {
            self.thoughts.pop();
        }
    }

    fn wake(&mut self, now: &dyn Fn() -> Time) -> Result<(), LabError> {
        while let Some(&Reverse((at, slot))) = self.thoughts.peek()
            && at <= now()
        {
            self.thoughts.pop();
            if let Some(pair) = self.pair(slot) {
                // Thinking is not waiting.
                pair.worked = pair.worked.max(at);
                self.ready(slot, Side::Client, Input::Open)?;
            } else {
                self.go_on_quic(slot)?;
            }
            self.forget();
        }
        Ok(())
    }

    fn expire(&mut self, now: Time) {
        while let Some(&(at, slot)) = self.deadlines.front()
            && at <= now
        {
            self.deadlines.pop_front();
            let carried = (self.running(slot)).and_then(|running| running.carried.as_ref());
            let outcome = carried.map_or(Outcome::TimedOut, Carried::expire);
            self.end(slot, outcome);
        }
    }

    fn take_answers(&mut self) -> Result<(), LabError> {
        let Some(resolver) = &mut self.resolver else {
            return Ok(());
        };
        let mut answered = BTreeSet::new();
        for answer in resolver.read()? {
            let slot = answer.slot;
            self.take_answer(answer)?;
            match self.waking {
                Waking::Timeout { .. } => self.go_on(slot)?,
                Waking::Timer { .. } => {
                    answered.insert(slot);
                }
            }
        }
        answered.into_iter().try_for_each(|slot| self.go_on(slot))
    }

    /// Gives an answer to who waits for it, and asks what that wants to know besides.
    fn take_answer(&mut self, answer: ResolverAnswer) -> Result<(), LabError> {
        let (slot, name) = (answer.slot, answer.name.clone());
        let Some(running) = self.running.get_mut(&slot) else {
            // It has ended.
            return Ok(());
        };
        let questions = match (&mut running.lookup, &mut running.carried) {
            (Some(lookup), _) => lookup.take(answer, sys::now()),
            (None, Some(Carried::Tcp(pair))) => pair.answered(answer),
            (None, Some(Carried::Quic(_)) | None) => return Ok(()),
        };
        match &mut self.resolver {
            Some(resolver) => Ok(resolver.ask(slot, &name, &questions)?),
            None => Ok(()),
        }
    }

    /// Has a connection go on that may have waited for an answer alone.
    fn go_on(&mut self, slot: u32) -> Result<(), LabError> {
        let Some(running) = self.running.get_mut(&slot) else {
            return Ok(());
        };
        match running.lookup.as_ref().and_then(Lookup::address) {
            Some(Ok(server)) => {
                let lookup = running.lookup.take();
                self.connect(slot, server, lookup)?;
            }
            Some(Err(reason)) => self.end(slot, could_not_resolve(&reason)),
            None => {}
        }
        self.ready(slot, Side::Client, Input::Open)
    }

    fn connect(
        &mut self,
        slot: u32,
        server: Ipv4Addr,
        lookup: Option<Lookup<'a>>,
    ) -> Result<(), LabError> {
        let Some(plan) = self.running(slot).map(|running| running.plan) else {
            return Ok(());
        };
        let tls = plan.stack.client().map_err(LabError::Stack)?;
        let call = self.call(slot, server, tls, &plan.exchange, Attempt::First)?;
        if let Some(running) = self.running.get_mut(&slot) {
            let pair = Pair::new(call.started, plan.exchange, call.channel, lookup);
            running.carried = Some(Carried::Tcp(pair));
            running.server = server;
        }
        if let Err(error) = call.connecting {
            self.end(slot, could_not_connect(error));
        }
        Ok(())
    }

    /// Has a client that failed try once more.
    fn again(&mut self, slot: u32, retry: &Retry) -> Result<(), LabError> {
        let Some(running) = self.running(slot) else {
            return Ok(());
        };
        let (plan, server) = (running.plan, running.server);
        let tls = plan.stack.retrying_client(retry).map_err(LabError::Stack)?;
        let call = self.call(slot, server, tls, &plan.exchange, Attempt::Second)?;
        if let Some(pair) = self.pair(slot) {
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
        exchange: &Exchange,
        attempt: Attempt,
    ) -> Result<Call, LabError> {
        let socket = open_socket(self.settings.congestion).map_err(LabError::Socket)?;
        let address = match self.settings.preset {
            // Of its own: nothing is known of an address that never called.
            Preset::Network => client_socket_address(client_address(slot), attempt),
            // One for all, which the kernel keeps metrics of, and any port.
            Preset::Published2024 => SockaddrIn::from(SocketAddrV4::new(client_address(0), 0)),
        };
        bind(socket.as_raw_fd(), &address).map_err(|error| LabError::Socket(error.into()))?;
        if self.settings.preset == Preset::Published2024 {
            sys::acknowledge_at_once(socket.as_fd()).map_err(LabError::Socket)?;
        }
        self.watch(&socket, slot, Side::Client)
            .map_err(LabError::Socket)?;
        let server = server_socket_address(server);
        let started = sys::now();
        let connecting = match connect(socket.as_raw_fd(), &server) {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
            Err(error) => Err(error),
        };
        let writing = TcpWriting {
            flush: exchange.flush,
            first: exchange.client_hello_split,
        };
        let channel = Box::new(TcpChannel::new(socket, tls, writing));
        Ok(Call {
            started,
            channel,
            connecting,
        })
    }

    /// Accepts who waits. One after the other, no second one does, and asking for it takes virtual
    /// time.
    fn accept(&mut self) -> Result<(), LabError> {
        while let Some(Listener::Tcp(listener)) = &self.listener {
            match listener.accept() {
                Ok((socket, SocketAddr::V4(peer))) => self.serve(socket, peer)?,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has given up already; its own end says why.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(LabError::Socket(error)),
            }
            if let Waking::Timer { .. } = self.waking {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Has a server for a client that calls from `peer`.
    fn serve(&mut self, socket: TcpStream, peer: SocketAddrV4) -> Result<(), LabError> {
        let slot = match self.settings.preset {
            Preset::Network => client_slot(*peer.ip()),
            Preset::Published2024 => Some(self.latest),
        };
        let Some((slot, running)) = slot.and_then(|slot| Some((slot, self.running(slot)?))) else {
            return Ok(());
        };
        let Plan {
            stack, exchange, ..
        } = running.plan;
        socket.set_nonblocking(true).map_err(LabError::Socket)?;
        self.watch(&socket, slot, Side::Server)
            .map_err(LabError::Socket)?;
        spend(exchange.server_cpu.server_setup);
        let tls = stack.server().map_err(LabError::Stack)?;
        let has_others_wait = self.waking.idle_since().is_some();
        if let Some(pair) = self.pair(slot) {
            let writing = TcpWriting {
                flush: exchange.flush,
                first: None,
            };
            pair.accepted(Box::new(TcpChannel::new(socket, tls, writing)));
            if has_others_wait {
                pair.worked = sys::now();
            }
        }
        Ok(())
    }

    fn ready(&mut self, slot: u32, end: Side, input: Input) -> Result<(), LabError> {
        let Settings {
            shared, shortcuts, ..
        } = self.settings;
        let Some(running) = self.running.get_mut(&slot) else {
            return Ok(());
        };
        let input = shortcuts.input(input, running.plan.exchange.reads);
        let pair = match running.carried.as_mut() {
            Some(Carried::Tcp(pair)) => pair,
            Some(Carried::Quic(_)) => return self.take_from_client_socket(slot),
            None => return Ok(()),
        };
        // What woke an idle loop has waited for nothing; what came while it worked, has.
        // A connection never waits for itself.
        let idle_since = self.waking.idle_since();
        if let Some(idle_since) = idle_since {
            let could_start = shared.delivered(slot, end).max(idle_since).max(pair.worked);
            pair.waited(end, sys::now().since(could_start));
        }
        let turn = Turn {
            input,
            scratch: &mut self.scratch,
            hold: &|| shared.hold(slot, end),
            clock: &KernelClock,
        };
        let next = pair.ready(end, turn);
        if idle_since.is_some() {
            pair.worked = sys::now();
        }
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

    fn end(&mut self, slot: u32, outcome: Outcome) {
        let Some(running) = self.running.remove(&slot) else {
            return;
        };
        let finished = match (running.carried, running.lookup) {
            (Some(Carried::Tcp(pair)), _) => pair.finish(outcome),
            (Some(Carried::Quic(connection)), _) => {
                self.dropped += connection.dropped();
                connection.finish(outcome)
            }
            (None, Some(lookup)) => EndedConnection::unconnected(outcome, lookup),
            (None, None) => return,
        };
        self.finished.insert(slot, finished);
        self.ended += 1;
    }

    fn running(&self, slot: u32) -> Option<&Running<'a>> {
        self.running.get(&slot).map(AsRef::as_ref)
    }

    fn pair(&mut self, slot: u32) -> Option<&mut Pair<'a>> {
        match self.running.get_mut(&slot)?.carried.as_mut()? {
            Carried::Tcp(pair) => Some(pair),
            Carried::Quic(_) => None,
        }
    }

    fn due_of(&self, slot: u32) -> Option<Time> {
        self.running(slot)?.carried.as_ref()?.due()
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
    const DUE: u64 = u64::MAX - 2;
    const DATAGRAMS: u64 = u64::MAX - 3;

    fn encode(self) -> u64 {
        match self {
            Event::Accept => Self::ACCEPT,
            Event::Datagrams => Self::DATAGRAMS,
            Event::Resolver => Self::RESOLVER,
            Event::Due => Self::DUE,
            Event::Ready { slot, end } => {
                u64::from(slot) << 1 | u64::from(matches!(end, Side::Server))
            }
        }
    }

    fn decode(data: u64) -> Self {
        match data {
            Self::ACCEPT => Event::Accept,
            Self::DATAGRAMS => Event::Datagrams,
            Self::RESOLVER => Event::Resolver,
            Self::DUE => Event::Due,
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

#[cfg(test)]
mod tests;
