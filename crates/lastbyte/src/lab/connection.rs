//! Both ends of one measured connection: what each does when its socket is ready.
//!
//! Bytes move through memory: all that a stack has to send at one moment leaves in
//! one `write`, so no stack's own buffering decides the segments.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::mem;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use lastbyte_link::{Side, Time};
use lastbyte_tls::observer::Observer;
use lastbyte_tls::{Connection, KeyLog, Progress, Resumption, TlsError};
use nix::sys::epoll::EpollFlags;

use super::boundary::RecordBoundary;
use super::dns::{Delivery, Question, ResolverAnswer, Step};
use super::shortcuts::{LOW_WATER, Wakes};
use super::{shared, sys};
use crate::results::{CpuCosts, Dns, Outcome, TcpStats, Times};
use crate::study::exchange::{Cut, REQUEST, early_upload};
use crate::study::{Arm, Cell, Flush, Writes};

/// Ciphertext that waits in memory at most. A response up to this size is one `write`.
const MAX_PENDING: usize = 1 << 20;
/// Larger than a receive buffer's worth of one wake-up at the rates of interest.
pub(crate) const SCRATCH: usize = 256 << 10;

/// What the connections of a block exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// Requests on the connection. There is none without data in either direction.
    requests: u32,
    /// The body of each request, in bytes.
    upload: u64,
    /// Payload of each response, in bytes.
    data: u64,
    /// From the end of a response to the next request.
    think: Duration,
    records: Cut,
    early_request: EarlyRequest,
    /// Of a response.
    responses: Writes,
    writes: Flushes,
    wakes: Wakes,
    /// What computing takes in a clock in which it takes no time of its own.
    pub(crate) cpu: CpuCosts,
}

impl Exchange {
    /// What the connections of `arm` exchange in `cell`.
    pub(crate) fn new(arm: &Arm, cell: &Cell, wakes: Wakes, cpu: CpuCosts) -> Self {
        let work = cell.work();
        Self {
            requests: work.requests,
            upload: work.upload.0,
            data: work.data.0,
            think: cell.think,
            records: Cut::new(arm.record_size, cell),
            responses: cell.hosts.writes,
            early_request: match arm.resumption {
                Resumption::EarlyData if work.requests > 0 => EarlyRequest::Tried,
                _ => EarlyRequest::None,
            },
            writes: Flushes {
                flush: arm.flush,
                client_hello_split: arm.client_hello_split,
            },
            wakes,
            cpu,
        }
    }

    /// That of one connection of the sample, by its index.
    pub(crate) fn of_connection(self, index: u32) -> Self {
        Self {
            cpu: self.cpu.of_connection(index),
            ..self
        }
    }
}

/// Whether the first request goes with the ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyRequest {
    None,
    /// If the session allows it.
    Tried,
    /// It went.
    Sent,
}

/// Which bytes of a handshake leave in one `write`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushes {
    flush: Flush,
    /// The first part of the ClientHello that leaves in a `write` of its own, in bytes.
    client_hello_split: Option<u16>,
}

/// Keeps packets from a socket for as long as a system call on it takes.
pub(crate) type Hold<'a> = &'a dyn Fn() -> shared::Hold<'a>;

/// Both ends of one connection.
pub(crate) struct Pair<'a> {
    pub(crate) started: Time,
    exchange: Exchange,
    pub(crate) client: Client,
    pub(crate) server: Option<Server>,
    pub(crate) times: Times,
    /// When this connection's latest step ended.
    pub(crate) worked: Time,
    waits: Waits,
    pub(crate) observer: Observer,
    /// What DNS delivers, if it was asked.
    delivery: Option<Delivery<'a>>,
}

/// How long the steps that decide a time waited for other connections' work.
#[derive(Clone, Copy, Default)]
struct Waits {
    /// Sum over the steps up to the response: each delays all that follows.
    handshake: Duration,
    /// The latest step after that: while data streams, only the last one shows.
    last: Duration,
}

impl Waits {
    /// What the last step of a turn waited delays all turns that follow.
    fn end_turn(&mut self) {
        self.handshake += mem::take(&mut self.last);
    }
}

pub(crate) struct Client {
    end: End,
    state: ClientState,
    early_request: EarlyRequest,
    /// How much of its body went with it.
    early_upload: u64,
    /// Requests that were answered.
    answered: u32,
    /// How much of what is pending is the handshake, until that is written.
    handshake: Option<usize>,
}

pub(crate) struct Server {
    end: End,
    state: ServerState,
    progress: Progress,
    answered: u32,
    /// On the wire, record framing included.
    ticket_bytes: usize,
    /// When it had verified the client's Finished.
    established: Option<Time>,
    /// When it had the last request.
    received: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
enum ClientState {
    Connecting,
    /// Connected, but not sure yet what DNS delivers.
    AwaitingRecord {
        until: Time,
    },
    Handshaking,
    /// How much of the body was encrypted.
    Requesting {
        sent: u64,
    },
    Receiving {
        remaining: u64,
    },
    Thinking {
        until: Time,
    },
    Done,
}

#[derive(Clone, Debug)]
enum ServerState {
    AwaitingRequest { missing: u64 },
    Responding { sent: u64, writes: usize },
    Done,
    Failed(String),
}

/// A socket, its TLS and what waits to be written.
struct End {
    socket: TcpStream,
    tls: Box<dyn Connection>,
    pending: Vec<u8>,
    written: usize,
    flush: Flush,
    /// The lengths of the first parts of what is pending, if each is a `write`.
    parts: VecDeque<usize>,
    input: Input,
    boundary: RecordBoundary,
    low_water: u64,
}

/// Whether the peer may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Open,
    Closed,
}

impl Input {
    /// As an event says.
    pub(crate) fn of(event: EpollFlags) -> Self {
        const CLOSED: EpollFlags = EpollFlags::EPOLLRDHUP
            .union(EpollFlags::EPOLLHUP)
            .union(EpollFlags::EPOLLERR);
        match event.intersects(CLOSED) {
            true => Input::Closed,
            false => Input::Open,
        }
    }
}

/// A connection that has come to its end.
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    pub(crate) times: Times,
    pub(crate) waited: Duration,
    pub(crate) observer: Observer,
    pub(crate) keys: KeyLog,
    pub(crate) ticket_bytes: usize,
    pub(crate) client_tcp: Option<TcpStats>,
    pub(crate) server_tcp: Option<TcpStats>,
    pub(crate) dns: Dns,
}

impl Finished {
    /// One that never came to `connect()`.
    pub(crate) fn unconnected(outcome: Outcome, delivery: Delivery<'_>) -> Self {
        Self {
            outcome,
            times: Times::default(),
            waited: Duration::ZERO,
            observer: Observer::default(),
            keys: KeyLog::default(),
            ticket_bytes: 0,
            client_tcp: None,
            server_tcp: None,
            dns: delivery.finish(None),
        }
    }
}

impl<'a> Pair<'a> {
    /// A connection whose `connect()` was called at `started`. `tls` is a client that has nothing
    /// from DNS.
    pub(crate) fn new(
        started: Time,
        exchange: Exchange,
        socket: TcpStream,
        tls: Box<dyn Connection>,
        delivery: Option<Delivery<'a>>,
    ) -> Self {
        Self {
            started,
            exchange,
            client: Client {
                end: End::new(socket, tls, exchange.writes.flush),
                state: ClientState::Connecting,
                early_request: exchange.early_request,
                early_upload: 0,
                answered: 0,
                handshake: None,
            },
            server: None,
            times: Times::default(),
            worked: started,
            waits: Waits::default(),
            observer: Observer::default(),
            delivery,
        }
    }

    /// DNS has answered. Gives what to ask it next; the client may go on.
    pub(crate) fn answered(&mut self, answer: ResolverAnswer) -> Vec<Question> {
        match &mut self.delivery {
            Some(delivery) => delivery.take(answer, sys::now()),
            None => Vec::new(),
        }
    }

    /// The server has accepted it.
    pub(crate) fn accepted(&mut self, socket: TcpStream, tls: Box<dyn Connection>) {
        self.server = Some(Server {
            end: End::new(socket, tls, self.exchange.writes.flush),
            state: ServerState::after(0, &self.exchange),
            progress: Progress::Handshaking,
            answered: 0,
            ticket_bytes: 0,
            established: None,
            received: None,
        });
    }

    /// The socket of one end is ready. An outcome ends the connection.
    pub(crate) fn ready(
        &mut self,
        end: Side,
        input: Input,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Option<Outcome> {
        match end {
            Side::Client => self.client_ready(input, scratch, hold),
            Side::Server => self.server_ready(input, scratch, hold),
        }
    }

    fn client_ready(
        &mut self,
        input: Input,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Option<Outcome> {
        match self.drive_client(input, scratch, hold) {
            Ok(()) => self.outcome(),
            Err(reason) => Some(Outcome::Failed(match self.server_failure() {
                Some(cause) => format!("server: {cause}; client: {reason}"),
                None => format!("client: {reason}"),
            })),
        }
    }

    fn server_ready(
        &mut self,
        input: Input,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Option<Outcome> {
        if let Some(server) = &mut self.server {
            let awaited = server.is_awaiting();
            let driven = server.drive(&mut self.observer, input, &self.exchange, scratch, hold);
            if awaited && !server.is_awaiting() {
                self.waits.end_turn();
            }
            if let Err(reason) = driven {
                server.fail(reason, hold);
            }
        }
        if let Some(server) = &self.server {
            let time = |at: Option<Time>| at.map(|at| at.since(self.started));
            self.times.server_handshake = time(server.established);
            if server.received.is_some() {
                self.times.ttlb = time(server.received);
            }
        }
        self.outcome()
    }

    /// Notes that the step about to be taken has waited for other connections' work.
    pub(crate) fn waited(&mut self, end: Side, wait: Duration) {
        let state = self.server.as_ref().map(|server| &server.state);
        match end {
            _ if self.times.ttlb.is_some() => {}
            Side::Client if self.times.handshake.is_some() => self.waits.last = wait,
            Side::Server => match state {
                Some(ServerState::Responding { .. } | ServerState::Done) => {}
                // In the midst of a body.
                Some(ServerState::AwaitingRequest { missing })
                    if *missing < self.exchange.upload =>
                {
                    self.waits.last = wait;
                }
                _ => self.waits.handshake += wait,
            },
            Side::Client => self.waits.handshake += wait,
        }
    }

    /// Until when the client has nothing to do, if it is thinking or waits for a record.
    pub(crate) fn thinks_until(&self) -> Option<Time> {
        match self.client.state {
            ClientState::Thinking { until } | ClientState::AwaitingRecord { until } => Some(until),
            _ => None,
        }
    }

    /// What it comes to when there is no more time.
    pub(crate) fn expire(&self) -> Outcome {
        // It may have waited for nothing but DNS.
        self.delivered().unwrap_or(Outcome::TimedOut)
    }

    /// Ends it: reads TCP_INFO and closes both sockets at once.
    pub(crate) fn finish(self, outcome: Outcome) -> Finished {
        let client = self.client.end.tls.as_ref();
        let established = self.times.handshake.map(|_| client);
        let dns = self.delivery.map(|delivery| delivery.finish(established));
        let client_tcp = self.client.end.close();
        let mut keys = self.client.end.tls.key_log();
        let mut server_tcp = None;
        let mut ticket_bytes = 0;
        if let Some(server) = &self.server {
            server_tcp = server.end.close();
            ticket_bytes = server.ticket_bytes;
            if keys.as_str().is_empty() {
                keys = server.end.tls.key_log();
            }
        }
        Finished {
            outcome,
            times: self.times,
            waited: self.waits.handshake + self.waits.last,
            observer: self.observer,
            keys,
            ticket_bytes,
            client_tcp,
            server_tcp,
            dns: dns.unwrap_or_default(),
        }
    }

    /// Complete when everything is delivered and DNS has nothing more to say.
    fn outcome(&self) -> Option<Outcome> {
        let is_answered = self.delivery.as_ref().is_none_or(Delivery::is_answered);
        self.delivered().filter(|_| is_answered)
    }

    /// Whether the client has its last byte and the server the client's, Finished included.
    fn delivered(&self) -> Option<Outcome> {
        let server = self.server.as_ref()?;
        match (&self.client.state, &server.state, server.progress) {
            (ClientState::Done, ServerState::Failed(reason), _) => {
                Some(Outcome::Failed(format!("server: {reason}")))
            }
            (ClientState::Done, ServerState::Done, Progress::Established) => {
                Some(Outcome::Completed)
            }
            _ => None,
        }
    }

    fn server_failure(&self) -> Option<&str> {
        match &self.server.as_ref()?.state {
            ServerState::Failed(reason) => Some(reason),
            _ => None,
        }
    }

    fn drive_client(
        &mut self,
        input: Input,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Result<(), String> {
        let client = &mut self.client;
        let exchange = &self.exchange;
        let since_start = || Some(sys::now().since(self.started));
        let mut is_hello = false;
        let mut cost_of_early_data = Duration::ZERO;
        if matches!(client.state, ClientState::Connecting) {
            if let Some(error) = client.end.socket.take_error().map_err(text)? {
                return Err(format!("connect: {error}"));
            }
            if client.end.socket.peer_addr().is_err() {
                return Ok(());
            }
            self.times.connect = since_start();
            let now = sys::now();
            if let Some(delivery) = &mut self.delivery {
                delivery.connected(now);
            }
            client.state = ClientState::AwaitingRecord { until: now };
        }
        if matches!(client.state, ClientState::AwaitingRecord { .. }) {
            let step = match &mut self.delivery {
                Some(delivery) => delivery.decide(sys::now()).map_err(text)?,
                None => Step::Plain,
            };
            match step {
                Step::Wait(until) => {
                    client.state = ClientState::AwaitingRecord { until };
                    return Ok(());
                }
                Step::Offer(tls) => client.end.tls = tls,
                Step::Plain => {}
            }
            client.state = ClientState::Handshaking;
            cost_of_early_data = client.try_early_request(exchange, scratch)?;
            is_hello = true;
        }
        client.end.fill(input, scratch, hold)?;
        if matches!(client.state, ClientState::Handshaking) {
            let progress = client.end.tls.advance();
            let mut cost = exchange.cpu.client_hello + cost_of_early_data;
            if let Ok(Progress::Established) = progress {
                cost = exchange.cpu.client_finish + client.begin_request(exchange)?;
            }
            let bytes = client.end.take_output();
            if !bytes.is_empty() {
                spend(cost);
            }
            self.observer.sent(Side::Client, bytes);
            if let (true, Some(length)) = (is_hello, exchange.writes.client_hello_split) {
                client.end.split(length.into());
            }
            if let Ok(Progress::Established) = progress {
                client.handshake = Some(client.end.pending.len());
                client.encrypt(exchange, scratch)?;
            }
            client.end.flush(hold)?;
            progress.map_err(text)?;
        }
        client.end.flush(hold)?;
        if let Some(length) = client.handshake
            && (client.end.is_flushed() || client.end.written >= length)
        {
            client.handshake = None;
            self.times.handshake = since_start();
            if exchange.requests == 0 {
                self.times.ttlb = self.times.handshake;
            }
        }
        loop {
            client.send(exchange, scratch, hold)?;
            while let ClientState::Receiving { remaining } = client.state {
                let count = client.end.tls.read(scratch).map_err(text)?;
                if count == 0 {
                    break;
                }
                let is_first = self.times.ttfb.is_none();
                let remaining = remaining
                    .checked_sub(count as u64)
                    .ok_or("more data than asked for")?;
                client.state = ClientState::Receiving { remaining };
                // What comes between is decrypted while the rest is under way.
                if is_first || remaining == 0 {
                    spend(exchange.cpu.decrypt.of(count));
                }
                if is_first {
                    self.times.ttfb = since_start();
                }
                if remaining == 0 {
                    client.answered += 1;
                    client.state = match client.answered == exchange.requests {
                        true => {
                            self.times.ttlb = since_start();
                            ClientState::Done
                        }
                        false => {
                            self.waits.end_turn();
                            ClientState::Thinking {
                                until: sys::now() + exchange.think,
                            }
                        }
                    };
                }
            }
            match client.state {
                ClientState::Thinking { until } if until <= sys::now() => {
                    spend(client.begin_request(exchange)?);
                    client.end.take_output();
                }
                _ => break,
            }
        }
        if exchange.wakes == Wakes::Progress {
            client.end.wake_at(match client.state {
                // At least so much comes before the last byte.
                ClientState::Receiving { remaining } if self.times.ttfb.is_some() => {
                    let underway = client.end.boundary.seen() as u64;
                    remaining.saturating_sub(underway)
                }
                ClientState::Handshaking | ClientState::Receiving { .. } => {
                    client.end.boundary.missing() as u64
                }
                _ => 1,
            });
        }
        match (client.end.input, client.state) {
            (Input::Closed, ClientState::Handshaking) => {
                Err("the peer closed the connection during the handshake".to_owned())
            }
            (Input::Closed, ClientState::Requesting { .. } | ClientState::Thinking { .. }) => {
                Err("the peer closed the connection before the last request".to_owned())
            }
            (Input::Closed, ClientState::Receiving { remaining }) => Err(format!(
                "the peer closed the connection {remaining} bytes before the end"
            )),
            _ => Ok(()),
        }
    }
}

impl Client {
    /// Has the first request go with the ClientHello, as much of it as a server takes, if it should and
    /// the session allows it. Gives what that costs.
    fn try_early_request(
        &mut self,
        exchange: &Exchange,
        scratch: &[u8],
    ) -> Result<Duration, String> {
        if self.early_request != EarlyRequest::Tried {
            return Ok(Duration::ZERO);
        }
        self.early_request = match self.end.tls.write_early_data(REQUEST) {
            Ok(()) => EarlyRequest::Sent,
            Err(TlsError::NoEarlyData) => EarlyRequest::None,
            Err(error) => return Err(error.to_string()),
        };
        if self.early_request == EarlyRequest::None {
            return Ok(Duration::ZERO);
        }
        let most = early_upload(exchange.upload);
        while self.early_upload < most {
            let payload = exchange.records.payload(self.early_upload, most);
            let record = scratch.get(..payload).ok_or("record too large")?;
            self.end.tls.write_early_data(record).map_err(text)?;
            self.early_upload += payload as u64;
        }
        Ok(exchange.cpu.encrypt.of(REQUEST.len() + most as usize))
    }

    /// Encrypts the head of the next request, if there is one. Gives what that costs.
    fn begin_request(&mut self, exchange: &Exchange) -> Result<Duration, String> {
        if exchange.requests == 0 {
            self.state = ClientState::Done;
            return Ok(Duration::ZERO);
        }
        let has_gone = self.answered == 0
            && self.early_request == EarlyRequest::Sent
            && self.end.tls.is_early_data_accepted();
        let sent = if has_gone { self.early_upload } else { 0 };
        self.state = ClientState::Requesting { sent };
        let mut cost = (exchange.cpu).response(exchange.upload - sent, exchange.records);
        if !has_gone {
            self.end.tls.write_record(REQUEST).map_err(text)?;
            cost += exchange.cpu.encrypt.of(REQUEST.len());
        }
        Ok(cost)
    }

    /// Encrypts as much of the request's body as may wait.
    fn encrypt(&mut self, exchange: &Exchange, scratch: &mut [u8]) -> Result<(), String> {
        if let ClientState::Requesting { sent } = &mut self.state {
            self.end
                .encrypt(sent, exchange.upload, exchange.records, scratch)?;
            if *sent == exchange.upload {
                self.state = match exchange.data {
                    0 => ClientState::Done,
                    remaining => ClientState::Receiving { remaining },
                };
            }
        }
        Ok(())
    }

    /// Writes as much of the request as the socket takes.
    fn send(
        &mut self,
        exchange: &Exchange,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Result<(), String> {
        loop {
            self.encrypt(exchange, scratch)?;
            self.end.flush(hold)?;
            if !matches!(self.state, ClientState::Requesting { .. }) || !self.end.is_flushed() {
                return Ok(());
            }
        }
    }
}

impl Server {
    fn is_awaiting(&self) -> bool {
        matches!(self.state, ServerState::AwaitingRequest { .. })
    }

    fn drive(
        &mut self,
        observer: &mut Observer,
        input: Input,
        exchange: &Exchange,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Result<(), String> {
        if matches!(self.state, ServerState::Failed(_)) {
            return self.end.flush(hold);
        }
        self.end.fill(input, scratch, hold)?;
        if self.progress == Progress::Handshaking {
            let progress = self.end.tls.advance();
            let bytes = self.end.take_output();
            observer.sent(Side::Server, bytes);
            match progress {
                Ok(Progress::Established) => {
                    self.ticket_bytes = bytes.len();
                    spend(exchange.cpu.server_finish);
                    self.established = Some(sys::now());
                }
                _ if bytes.is_empty() => {}
                _ => spend(exchange.cpu.server_flight),
            }
            if progress.is_err() {
                self.end.flush(hold)?;
            }
            self.progress = progress.map_err(text)?;
        }
        self.receive(exchange, scratch)?;
        self.respond(exchange, scratch, hold)?;
        match (self.end.input, self.progress, &self.state) {
            (Input::Closed, Progress::Handshaking, _) => {
                Err("the peer closed the connection during the handshake".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Reads what has come of a request.
    fn receive(&mut self, exchange: &Exchange, scratch: &mut [u8]) -> Result<(), String> {
        while let ServerState::AwaitingRequest { missing } = &mut self.state {
            let count = self.end.tls.read(scratch).map_err(text)?;
            if count == 0 {
                return Ok(());
            }
            *missing = missing.saturating_sub(count as u64);
            if *missing > 0 {
                continue;
            }
            spend(exchange.cpu.decrypt.of(count));
            self.state = match exchange.data {
                0 => {
                    self.received = Some(sys::now());
                    self.answered += 1;
                    ServerState::after(self.answered, exchange)
                }
                data => {
                    spend(exchange.cpu.response(data, exchange.records));
                    ServerState::Responding { sent: 0, writes: 0 }
                }
            };
        }
        Ok(())
    }

    /// Encrypts and writes as much of the response as the socket takes.
    fn respond(
        &mut self,
        exchange: &Exchange,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Result<(), String> {
        loop {
            self.encrypt(exchange, scratch)?;
            self.end.flush(hold)?;
            if !matches!(self.state, ServerState::Responding { .. }) || !self.end.is_flushed() {
                return Ok(());
            }
        }
    }

    /// Encrypts as much of the response as may wait.
    fn encrypt(&mut self, exchange: &Exchange, scratch: &mut [u8]) -> Result<(), String> {
        if let ServerState::Responding { sent, writes } = &mut self.state {
            while *sent < exchange.data
                && self.end.has_room()
                && let Some(size) = exchange.responses.size(*writes)
            {
                let end = exchange.data.min(*sent + u64::from(size));
                (self.end).encrypt_apart(sent, end, exchange.records, scratch)?;
                *writes += 1;
            }
            if exchange.responses == Writes::WHOLE {
                self.end
                    .encrypt(sent, exchange.data, exchange.records, scratch)?;
            }
            if *sent == exchange.data {
                self.answered += 1;
                self.state = ServerState::after(self.answered, exchange);
            }
        }
        Ok(())
    }

    /// Sends the alert, if the stack has one, and closes for writing.
    fn fail(&mut self, reason: String, hold: Hold<'_>) {
        self.end.take_output();
        // The peer may be gone already; the reason that we have is the better one.
        let _ = self.end.flush(hold);
        let _ = self.end.socket.shutdown(Shutdown::Write);
        self.state = ServerState::Failed(reason);
    }
}

impl ServerState {
    /// When so many requests are answered.
    fn after(answered: u32, exchange: &Exchange) -> Self {
        match answered < exchange.requests {
            true => ServerState::AwaitingRequest {
                missing: REQUEST.len() as u64 + exchange.upload,
            },
            false => ServerState::Done,
        }
    }
}

impl End {
    fn new(socket: TcpStream, tls: Box<dyn Connection>, flush: Flush) -> Self {
        Self {
            socket,
            tls,
            pending: Vec::new(),
            written: 0,
            flush,
            parts: VecDeque::new(),
            input: Input::Open,
            boundary: RecordBoundary::default(),
            low_water: 1,
        }
    }

    /// Asks not to be woken for less than this.
    fn wake_at(&mut self, bytes: u64) {
        let bytes = bytes.clamp(1, LOW_WATER.0);
        if bytes != self.low_water {
            self.low_water = bytes;
            // A socket that refuses wakes the client more often.
            let _ = sys::set_low_water(self.socket.as_fd(), bytes as u32);
        }
    }

    /// Gives the stack all that the socket has, up to the end where `event` says that there is one.
    fn fill(&mut self, event: Input, scratch: &mut [u8], hold: Hold<'_>) -> Result<(), String> {
        while self.input == Input::Open {
            let read = {
                let _inside = hold();
                self.socket.read(scratch)
            };
            match read {
                Ok(0) => self.input = Input::Closed,
                Ok(count) => {
                    self.boundary.pass(&scratch[..count]);
                    self.tls.receive(&scratch[..count]);
                    // What comes later is another event.
                    if event == Input::Open && count < scratch.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Takes what the stack has to send, and shows it.
    fn take_output(&mut self) -> &[u8] {
        let start = self.pending.len();
        match self.flush {
            Flush::Whole => self.tls.transmit(&mut self.pending),
            Flush::Native => {
                let mut end = start;
                while self.tls.transmit_write(&mut self.pending) {
                    self.parts.push_back(self.pending.len() - end);
                    end = self.pending.len();
                }
            }
        }
        &self.pending[start..]
    }

    /// Makes the first `length` bytes of what is pending a `write` of their own, unless the first
    /// one is as short already.
    fn split(&mut self, length: usize) {
        let first = self.parts.pop_front().unwrap_or(self.pending.len());
        match first.checked_sub(length) {
            Some(rest @ 1..) if length > 0 => {
                self.parts.push_front(rest);
                self.parts.push_front(length);
            }
            _ => self.parts.push_front(first),
        }
    }

    /// Encrypts a payload of `length` bytes from `sent` on, as much of it as may wait.
    fn encrypt(
        &mut self,
        sent: &mut u64,
        length: u64,
        records: Cut,
        scratch: &[u8],
    ) -> Result<(), String> {
        while *sent < length && self.has_room() {
            let payload = records.payload(*sent, length);
            let record = scratch.get(..payload).ok_or("record too large")?;
            self.tls.write_record(record).map_err(text)?;
            self.take_output();
            *sent += payload as u64;
        }
        Ok(())
    }

    /// Encrypts a payload from `sent` to `end` that leaves in a `write` of its own, in one record if those
    /// may be as large.
    fn encrypt_apart(
        &mut self,
        sent: &mut u64,
        end: u64,
        records: Cut,
        scratch: &[u8],
    ) -> Result<(), String> {
        let before = self.pending.len();
        while *sent < end {
            let payload =
                usize::try_from(end - *sent).map_or(records.later, |left| left.min(records.later));
            let record = scratch.get(..payload).ok_or("record too large")?;
            self.tls.write_record(record).map_err(text)?;
            self.take_output();
            *sent += payload as u64;
        }
        // A stack's own writes are those already.
        if self.flush == Flush::Whole {
            if self.parts.is_empty() && before > self.written {
                self.parts.push_back(before - self.written);
            }
            self.parts.push_back(self.pending.len() - before);
        }
        Ok(())
    }

    /// Whether more may wait.
    fn has_room(&self) -> bool {
        self.pending.len() < MAX_PENDING
    }

    /// Writes what is pending, in one `write` if the socket takes it, unless it has parts.
    fn flush(&mut self, hold: Hold<'_>) -> Result<(), String> {
        while !self.is_flushed() {
            let rest = &self.pending[self.written..];
            let part = self.parts.front().copied().unwrap_or(rest.len());
            let written = {
                let _inside = hold();
                self.socket.write(rest.get(..part).unwrap_or(rest))
            };
            match written {
                Ok(count) => {
                    self.written += count;
                    match self.parts.front_mut() {
                        Some(part) if *part > count => *part -= count,
                        _ => drop(self.parts.pop_front()),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        self.pending.clear();
        self.parts.clear();
        self.written = 0;
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        self.written == self.pending.len()
    }

    /// The socket's TCP_INFO. The socket then closes with a reset when it is dropped,
    /// so that no later packet of this connection meets another one.
    fn close(&self) -> Option<TcpStats> {
        let stats = sys::tcp_stats(self.socket.as_fd()).ok();
        let reset = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let _ =
            nix::sys::socket::setsockopt(&self.socket, nix::sys::socket::sockopt::Linger, &reset);
        stats
    }
}

/// Lets the clock go on by what computing takes.
pub(crate) fn spend(cost: Duration) {
    if !cost.is_zero() {
        thread::sleep(cost);
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
