//! The guest's endpoints: one connection after the other, each over a link that is idle.
//!
//! Time stands still while the guest computes, so what it does costs nothing but wall time, and
//! system calls are what costs most of that.

use std::borrow::Cow;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use lastbyte_link::{Seed, Side, Time};
use lastbyte_tls::{Retry, Stack};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{SockaddrIn, bind, connect};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::network::Network;
use super::tap::Tap;
use crate::lab::channel::{Input, SCRATCH, TcpChannel};
use crate::lab::connection::{
    EndedConnection, KernelClock, Next, Pair, could_not_connect, could_not_resolve, spend,
};
use crate::lab::delivery::{Lookup, PreparedDelivery};
use crate::lab::dns::{self, FIRST, Question, Resolver, ResolverAnswer, Sides};
use crate::lab::endpoint::{
    Attempt, client_socket_address, listen_on, open_socket, server_socket_address,
};
use crate::lab::exchange::{Exchange, Turn};
use crate::lab::pages::ForeignServer;
use crate::lab::shared::Shared;
use crate::lab::shortcuts::Shortcuts;
use crate::lab::starts::{self, Starts};
use crate::lab::surroundings::{SERVER as SERVER_ADDRESS, client_address};
use crate::lab::{LabError, sys};
use crate::results::Outcome;
use crate::study::{Cell, Preset};

/// What the endpoints do in one block.
pub(super) struct Load<'a> {
    /// What DNS delivers, and where its servers keep their files.
    pub(super) dns: Option<(&'a PreparedDelivery, &'a Path)>,
    /// What answers, if our own server does not.
    pub(super) server: Option<ForeignServer<'a>>,
    /// What all connections have in common.
    pub(super) cell: &'a Cell,
    /// What one connection has, by its index.
    pub(super) plan: &'a dyn Fn(u32) -> Plan<'a>,
    /// Indices of the connections in their sample.
    pub(super) connections: Range<u32>,
    pub(super) timeout: Duration,
    pub(super) shortcuts: Shortcuts,
    /// What sees the packets of the first ones.
    pub(super) tap: Option<&'a Tap>,
}

/// What one connection does, and where.
pub(super) struct Plan<'a> {
    pub(super) stack: &'a dyn Stack,
    pub(super) exchange: Exchange,
    pub(super) cell: Cow<'a, Cell>,
    /// Where its link's luck comes from.
    pub(super) seed: Seed,
    /// How long the link may still hold packets of a connection that has ended.
    pub(super) drain: Duration,
}

/// Connections before those that count, with the preset that has them.
const WARM_UPS: u32 = 3;

const LISTENER: u64 = 0;
const CLIENT: u64 = 1;
const SERVER: u64 = 2;
const DEADLINE: u64 = 3;
const RESOLVER: u64 = 4;

/// Runs all connections of a block. `progress` hears of each one that ends.
pub(super) fn run(
    network: &mut Network,
    load: &Load<'_>,
    progress: &mut dyn FnMut(),
) -> Result<Vec<EndedConnection>, LabError> {
    let (listener, _server) = match &load.server {
        Some(server) => (None, Some(server.start(load.cell, network)?)),
        None => {
            network.enter_server()?;
            let listener = listen_on(load.cell.congestion).map_err(LabError::Socket)?;
            network.enter_client()?;
            (Some(listener), None)
        }
    };
    let servers = match load.dns {
        Some((delivery, folder)) => {
            // Of its own, as connections have theirs.
            let address = client_address(load.connections.len() as u32);
            Some(dns::start(&delivery.published, address, folder, network)?)
        }
        None => None,
    };
    let (_servers, resolver) = servers.unzip();
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(socket)?;
    if let Some(listener) = &listener {
        epoll
            .add(listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))
            .map_err(socket)?;
    }
    let deadline =
        TimerFd::new(timerfd::ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).map_err(socket)?;
    epoll
        .add(&deadline, EpollEvent::new(EpollFlags::EPOLLIN, DEADLINE))
        .map_err(socket)?;
    if let Some(resolver) = &resolver {
        epoll
            .add(resolver, EpollEvent::new(EpollFlags::EPOLLIN, RESOLVER))
            .map_err(socket)?;
    }
    let mut endpoints = Endpoints {
        load,
        resolver,
        epoll,
        listener,
        deadline,
        scratch: vec![0; SCRATCH],
        alone: Shared::new(0),
    };
    // Its authors' harness has three connections before the first that counts.
    let warm_ups = match load.cell.preset {
        Preset::Network => 0,
        Preset::Published2024 => WARM_UPS,
    };
    let mut drain = Duration::ZERO;
    if warm_ups > 0 {
        let plan = (load.plan)(load.connections.start);
        network.set(0, &plan.cell, plan.seed)?;
        drain = plan.drain;
        for _ in 0..warm_ups {
            starts::sleep(drain).map_err(LabError::Socket)?;
            endpoints.connection(0, &plan)?;
        }
    }
    let mut finished = Vec::with_capacity(load.connections.len());
    for (slot, index) in (0..).zip(load.connections.clone()) {
        let plan = (load.plan)(index);
        // What the last connection has left must not meet the luck of this one.
        starts::sleep(drain.max(plan.drain)).map_err(LabError::Socket)?;
        drain = plan.drain;
        if let Some(tap) = load.tap {
            tap.begins(slot).map_err(LabError::Socket)?;
        }
        network.set(index, &plan.cell, plan.seed)?;
        if let Some(server) = &load.server {
            server.computing.begins(index).map_err(LabError::Socket)?;
        }
        let starts = Starts::ByLuck(plan.seed);
        starts.wait(index).map_err(LabError::Socket)?;
        finished.push(endpoints.connection(slot, &plan)?);
        progress();
    }
    Ok(finished)
}

struct Endpoints<'l, 'a> {
    load: &'l Load<'a>,
    resolver: Option<Resolver>,
    epoll: Epoll,
    /// Our own server's.
    listener: Option<TcpListener>,
    /// Of the connection under way.
    deadline: TimerFd,
    scratch: Vec<u8>,
    /// Nobody else is at the sockets.
    alone: Shared,
}

impl Endpoints<'_, '_> {
    fn connection(&mut self, slot: u32, plan: &Plan<'_>) -> Result<EndedConnection, LabError> {
        let index = self.load.connections.start + slot;
        let deadline = sys::now() + self.load.timeout;
        let (server, lookup) = match self.load.dns {
            None => (SERVER_ADDRESS, None),
            Some((prepared, _)) => {
                let mut lookup = Lookup::new(prepared, plan.stack, sys::now());
                match self.look_up(slot, index, &mut lookup, deadline)? {
                    Ok(server) => (server, Some(lookup)),
                    Err(outcome) => return Ok(EndedConnection::unconnected(outcome, lookup)),
                }
            }
        };
        let exchange = plan.exchange.of_connection(index);
        let tls = plan.stack.client().map_err(LabError::Stack)?;
        let client = self.socket(slot, Attempt::First)?;
        let started = sys::now();
        let connecting = connect(client.as_raw_fd(), &server_socket_address(server));
        let channel = Box::new(TcpChannel::new(client, tls, exchange.flush));
        let mut pair = Pair::new(started, exchange, channel, lookup);
        let outcome = match connecting {
            Ok(()) | Err(Errno::EINPROGRESS) => {
                self.drive(slot, plan, server, &mut pair, deadline)?
            }
            Err(error) => could_not_connect(error),
        };
        Ok(pair.finish(outcome))
    }

    /// The client's end of a connection that is to be.
    fn socket(&self, slot: u32, attempt: Attempt) -> Result<TcpStream, LabError> {
        let client = open_socket(self.load.cell.congestion).map_err(LabError::Socket)?;
        let address = match self.load.cell.preset {
            // Of its own: nothing is known of an address that never called.
            Preset::Network => client_socket_address(client_address(slot), attempt),
            // One for all, which the kernel keeps metrics of, and any port.
            Preset::Published2024 => SockaddrIn::from(SocketAddrV4::new(client_address(0), 0)),
        };
        bind(client.as_raw_fd(), &address).map_err(socket)?;
        if self.load.cell.preset == Preset::Published2024 {
            sys::acknowledge_at_once(client.as_fd()).map_err(LabError::Socket)?;
        }
        self.watch(&client, CLIENT)?;
        Ok(client)
    }

    /// Has a client that failed try once more. Gives its outcome if there is one already.
    fn again(
        &self,
        slot: u32,
        plan: &Plan<'_>,
        server: Ipv4Addr,
        pair: &mut Pair<'_>,
        retry: &Retry,
    ) -> Result<Option<Outcome>, LabError> {
        let tls = plan.stack.retrying_client(retry).map_err(LabError::Stack)?;
        let client = self.socket(slot, Attempt::Second)?;
        let connecting = connect(client.as_raw_fd(), &server_socket_address(server));
        pair.again(Box::new(TcpChannel::new(client, tls, plan.exchange.flush)));
        Ok(match connecting {
            Ok(()) | Err(Errno::EINPROGRESS) => None,
            Err(error) => Some(could_not_connect(error)),
        })
    }

    /// Asks DNS, until the server's address is known or the connection has its outcome already.
    fn look_up(
        &mut self,
        slot: u32,
        index: u32,
        lookup: &mut Lookup<'_>,
        deadline: Time,
    ) -> Result<Result<Ipv4Addr, Outcome>, LabError> {
        let name = lookup.name_of(index);
        if let Some(resolver) = &mut self.resolver {
            resolver.ask(slot, &name, &FIRST)?;
        }
        self.wake_at(deadline)?;
        let mut events = [EpollEvent::empty(); 1];
        loop {
            self.take_answers(slot, &mut |answer| lookup.take(answer, sys::now()))?;
            match lookup.address() {
                Some(Ok(address)) => return Ok(Ok(address)),
                Some(Err(reason)) => return Ok(Err(could_not_resolve(&reason))),
                None if sys::now() >= deadline => return Ok(Err(Outcome::TimedOut)),
                None => {}
            }
            match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(socket(error)),
            }
        }
    }

    /// Gives the answers for one connection to it, and asks what it wants to know besides.
    fn take_answers(
        &mut self,
        slot: u32,
        take: &mut dyn FnMut(ResolverAnswer) -> Vec<Question>,
    ) -> Result<(), LabError> {
        let Some(resolver) = &mut self.resolver else {
            return Ok(());
        };
        for answer in resolver.read()? {
            if answer.slot == slot {
                let name = answer.name.clone();
                let questions = take(answer);
                resolver.ask(slot, &name, &questions)?;
            }
        }
        Ok(())
    }

    /// Serves both ends until the connection has an outcome.
    fn drive(
        &mut self,
        slot: u32,
        plan: &Plan<'_>,
        server: Ipv4Addr,
        pair: &mut Pair<'_>,
        deadline: Time,
    ) -> Result<Outcome, LabError> {
        let mut events = [EpollEvent::empty(); 5];
        let mut alarm = None;
        loop {
            // The end of a thought, or of all patience.
            let next = pair.thinks_until().unwrap_or(deadline).min(deadline);
            if self.load.shortcuts.known(alarm) != Some(next) {
                self.wake_at(next)?;
                alarm = Some(next);
            }
            let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(count) => count,
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(socket(error)),
            };
            for event in &events[..count] {
                let end = match event.data() {
                    LISTENER => {
                        self.accept(plan, pair)?;
                        continue;
                    }
                    DEADLINE if sys::now() >= deadline => return Ok(pair.expire()),
                    RESOLVER => {
                        self.take_answers(slot, &mut |answer| pair.answered(answer))?;
                        Side::Client
                    }
                    // The client has thought.
                    DEADLINE | CLIENT => Side::Client,
                    _ => Side::Server,
                };
                let input = match event.data() {
                    DEADLINE | RESOLVER => Input::Open,
                    _ => self.load.shortcuts.input(Input::of(event.events())),
                };
                let turn = Turn {
                    input,
                    scratch: &mut self.scratch,
                    hold: &|| self.alone.hold(0, end),
                    clock: &KernelClock,
                };
                match pair.ready(end, turn) {
                    None => {}
                    Some(Next::Ended(outcome)) => return Ok(outcome),
                    Some(Next::Again(retry)) => {
                        if let Some(outcome) = self.again(slot, plan, server, pair, &retry)? {
                            return Ok(outcome);
                        }
                    }
                }
            }
        }
    }

    fn wake_at(&self, time: Time) -> Result<(), LabError> {
        let at = TimeSpec::from_duration(Duration::from_nanos(time.0));
        let timer = &self.deadline;
        timer
            .set(
                Expiration::OneShot(at),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )
            .map_err(socket)
    }

    fn accept(&self, plan: &Plan<'_>, pair: &mut Pair<'_>) -> Result<(), LabError> {
        use io::ErrorKind::{ConnectionAborted, WouldBlock};
        let Some(listener) = &self.listener else {
            return Ok(());
        };
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // The client has given up already; its own end says why.
            Err(error) if matches!(error.kind(), WouldBlock | ConnectionAborted) => return Ok(()),
            Err(error) => return Err(LabError::Socket(error)),
        };
        stream.set_nonblocking(true).map_err(LabError::Socket)?;
        self.watch(&stream, SERVER)?;
        spend(plan.exchange.cpu.server_setup);
        let tls = plan.stack.server().map_err(LabError::Stack)?;
        pair.accepted(Box::new(TcpChannel::new(stream, tls, plan.exchange.flush)));
        Ok(())
    }

    fn watch(&self, stream: &TcpStream, end: u64) -> Result<(), LabError> {
        let flags = EpollFlags::EPOLLIN
            | EpollFlags::EPOLLOUT
            | EpollFlags::EPOLLRDHUP
            | EpollFlags::EPOLLET;
        self.epoll
            .add(stream, EpollEvent::new(flags, end))
            .map_err(socket)
    }
}

fn socket(error: Errno) -> LabError {
    LabError::Socket(error.into())
}
