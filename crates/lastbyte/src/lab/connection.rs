//! Both ends of one measured connection: what each does when its socket is ready.
//!
//! Bytes move through memory: all that a stack has to send at one moment leaves in
//! one `write`, so no stack's own buffering decides the segments.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use lastbyte_link::{Time, Toward};
use lastbyte_tls::observer::{Observer, Side};
use lastbyte_tls::{Connection, KeyLog, MAX_PLAINTEXT, Progress};
use nix::sys::epoll::EpollFlags;

use super::boundary::RecordBoundary;
use super::{shared, sys};
use crate::results::{CpuCosts, Outcome, TcpStats, Times};
use crate::study::RecordSize;

/// The request: what a client asks for is known, so its content does not matter.
pub(crate) const REQUEST: &[u8] =
    b"GET /object HTTP/1.1\r\nHost: server.example\r\nAccept: */*\r\n\r\n";
/// Payload of a first record that fills one segment: an MSS of 1448 bytes less header,
/// content type and tag.
pub(crate) const FIRST_RECORD: usize = 1448 - 22;
/// Ciphertext that waits in memory at most. A response up to this size is one `write`.
const MAX_PENDING: usize = 1 << 20;
/// Larger than a receive buffer's worth of one wake-up at the rates of interest.
pub(crate) const SCRATCH: usize = 256 << 10;

/// What the connections of a block exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// Response payload in bytes.
    pub(crate) data: u64,
    pub(crate) records: RecordSize,
    pub(crate) wakes: Wakes,
    /// What computing takes in a clock in which it takes no time of its own.
    pub(crate) cpu: CpuCosts,
}

impl Exchange {
    /// That of one connection of the sample, by its index.
    pub(crate) fn of_connection(self, index: u32) -> Self {
        Self {
            cpu: self.cpu.of_connection(index),
            ..self
        }
    }
}

/// When a client hears that data has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// Whenever some has, as usual.
    Arrival,
    /// When there is enough of it to go on. Where computing takes no time, nothing but system
    /// calls is different.
    Progress,
}

/// Keeps packets from a socket for as long as a system call on it takes.
pub(crate) type Hold<'a> = &'a dyn Fn() -> shared::Hold<'a>;

/// Both ends of one connection.
pub(crate) struct Pair {
    pub(crate) started: Time,
    exchange: Exchange,
    pub(crate) client: Client,
    pub(crate) server: Option<Server>,
    pub(crate) times: Times,
    /// When this connection's latest step ended.
    pub(crate) worked: Time,
    waits: Waits,
    pub(crate) observer: Observer,
}

/// How long the steps that decide a time waited for other connections' work.
#[derive(Clone, Copy, Default)]
struct Waits {
    /// Sum over the steps up to the response: each delays all that follows.
    handshake: Duration,
    /// The latest step after that: while data streams, only the last one shows.
    last: Duration,
}

pub(crate) struct Client {
    end: End,
    state: ClientState,
}

pub(crate) struct Server {
    end: End,
    state: ServerState,
}

#[derive(Clone, Copy, Debug)]
enum ClientState {
    Connecting,
    Handshaking,
    /// Finished is about to be written.
    Finishing,
    Receiving {
        remaining: u64,
    },
    Done,
}

#[derive(Clone, Debug)]
enum ServerState {
    Handshaking,
    AwaitingRequest { missing: usize },
    Responding { sent: u64 },
    Done,
    Failed(String),
}

/// A socket, its TLS and what waits to be written.
struct End {
    socket: TcpStream,
    tls: Box<dyn Connection>,
    pending: Vec<u8>,
    written: usize,
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
    pub(crate) client_tcp: Option<TcpStats>,
    pub(crate) server_tcp: Option<TcpStats>,
}

impl Pair {
    /// A connection whose `connect()` was called at `started`.
    pub(crate) fn new(
        started: Time,
        exchange: Exchange,
        socket: TcpStream,
        tls: Box<dyn Connection>,
    ) -> Self {
        Self {
            started,
            exchange,
            client: Client {
                end: End::new(socket, tls),
                state: ClientState::Connecting,
            },
            server: None,
            times: Times::default(),
            worked: started,
            waits: Waits::default(),
            observer: Observer::default(),
        }
    }

    /// The server has accepted it.
    pub(crate) fn accepted(&mut self, socket: TcpStream, tls: Box<dyn Connection>) {
        self.server = Some(Server {
            end: End::new(socket, tls),
            state: ServerState::Handshaking,
        });
    }

    /// The socket of one end is ready. An outcome ends the connection.
    pub(crate) fn ready(
        &mut self,
        end: Toward,
        input: Input,
        scratch: &mut [u8],
        hold: Hold<'_>,
    ) -> Option<Outcome> {
        match end {
            Toward::Client => self.client_ready(input, scratch, hold),
            Toward::Server => self.server_ready(input, scratch, hold),
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
        if let Some(server) = &mut self.server
            && let Err(reason) =
                server.drive(&mut self.observer, input, &self.exchange, scratch, hold)
        {
            server.fail(reason, hold);
        }
        self.outcome()
    }

    /// Notes that the step about to be taken has waited for other connections' work.
    pub(crate) fn waited(&mut self, end: Toward, wait: Duration) {
        let responding = self.server.as_ref().is_some_and(|server| {
            matches!(
                server.state,
                ServerState::Responding { .. } | ServerState::Done
            )
        });
        match end {
            _ if self.times.ttlb.is_some() => {}
            Toward::Client if self.times.handshake.is_some() => self.waits.last = wait,
            Toward::Server if responding => {}
            Toward::Client | Toward::Server => self.waits.handshake += wait,
        }
    }

    /// Ends it: reads TCP_INFO and closes both sockets at once.
    pub(crate) fn finish(self, outcome: Outcome) -> Finished {
        let client_tcp = self.client.end.close();
        let mut keys = self.client.end.tls.key_log();
        let mut server_tcp = None;
        if let Some(server) = &self.server {
            server_tcp = server.end.close();
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
            client_tcp,
            server_tcp,
        }
    }

    /// Complete when the client has its last byte and the server the client's Finished.
    fn outcome(&self) -> Option<Outcome> {
        match (&self.client.state, self.server.as_ref().map(|s| &s.state)) {
            (ClientState::Done, Some(ServerState::Failed(reason))) => {
                Some(Outcome::Failed(format!("server: {reason}")))
            }
            (ClientState::Done, None | Some(ServerState::Handshaking)) => None,
            (ClientState::Done, _) => Some(Outcome::Completed),
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
        if matches!(client.state, ClientState::Connecting) {
            if let Some(error) = client.end.socket.take_error().map_err(text)? {
                return Err(format!("connect: {error}"));
            }
            if client.end.socket.peer_addr().is_err() {
                return Ok(());
            }
            self.times.connect = since_start();
            client.state = ClientState::Handshaking;
        }
        client.end.fill(input, scratch, hold)?;
        if matches!(client.state, ClientState::Handshaking) {
            let progress = client.end.tls.advance();
            let mut cost = exchange.cpu.client_hello;
            if let Ok(Progress::Established) = progress {
                cost = exchange.cpu.client_finish;
                if exchange.data > 0 {
                    client.end.tls.write_record(REQUEST).map_err(text)?;
                    cost += exchange.cpu.encrypt.of(REQUEST.len());
                }
                client.state = ClientState::Finishing;
            }
            let bytes = client.end.take_output();
            if !bytes.is_empty() {
                spend(cost);
            }
            self.observer.sent(Side::Client, bytes);
            client.end.flush(hold)?;
            progress.map_err(text)?;
        }
        client.end.flush(hold)?;
        if matches!(client.state, ClientState::Finishing) && client.end.is_flushed() {
            self.times.handshake = since_start();
            client.state = if exchange.data > 0 {
                ClientState::Receiving {
                    remaining: exchange.data,
                }
            } else {
                self.times.ttlb = self.times.handshake;
                ClientState::Done
            };
        }
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
                self.times.ttlb = since_start();
                client.state = ClientState::Done;
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
            (Input::Closed, ClientState::Receiving { remaining }) => Err(format!(
                "the peer closed the connection {remaining} bytes before the end"
            )),
            _ => Ok(()),
        }
    }
}

impl Server {
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
        if matches!(self.state, ServerState::Handshaking) {
            let progress = self.end.tls.advance();
            let bytes = self.end.take_output();
            if !bytes.is_empty() {
                spend(exchange.cpu.server_flight);
            }
            observer.sent(Side::Server, bytes);
            self.end.flush(hold)?;
            if let Progress::Established = progress.map_err(text)? {
                spend(exchange.cpu.server_finish);
                self.state = ServerState::AwaitingRequest {
                    missing: REQUEST.len(),
                };
            }
        }
        if let ServerState::AwaitingRequest { missing } = &mut self.state
            && exchange.data > 0
        {
            loop {
                let count = self.end.tls.read(scratch).map_err(text)?;
                *missing = missing.saturating_sub(count);
                if *missing == 0 {
                    spend(exchange.cpu.decrypt.of(REQUEST.len()));
                    spend(exchange.cpu.response(exchange.data, exchange.records));
                    self.state = ServerState::Responding { sent: 0 };
                    break;
                }
                if count == 0 {
                    break;
                }
            }
        }
        self.respond(exchange, scratch, hold)?;
        if self.end.input == Input::Closed && matches!(self.state, ServerState::Handshaking) {
            return Err("the peer closed the connection during the handshake".to_owned());
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
        self.end.flush(hold)?;
        while let ServerState::Responding { sent } = &mut self.state {
            if !self.end.is_flushed() {
                return Ok(());
            }
            while *sent < exchange.data && self.end.pending.len() < MAX_PENDING {
                let length = exchange.records.payload(*sent, exchange.data);
                let record = scratch.get(..length).ok_or("record too large")?;
                self.end.tls.write_record(record).map_err(text)?;
                self.end.tls.transmit(&mut self.end.pending);
                *sent += length as u64;
            }
            if *sent == exchange.data {
                self.state = ServerState::Done;
            }
            self.end.flush(hold)?;
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

impl RecordSize {
    /// Payload of the record that starts at offset `sent` of a response of `data` bytes.
    pub(crate) fn payload(self, sent: u64, data: u64) -> usize {
        let limit = match self {
            RecordSize::FirstSegment if sent == 0 => FIRST_RECORD,
            RecordSize::FirstSegment => MAX_PLAINTEXT,
            RecordSize::Fixed(limit) => usize::from(limit),
        };
        usize::try_from(data - sent).map_or(limit, |left| left.min(limit))
    }
}

impl End {
    fn new(socket: TcpStream, tls: Box<dyn Connection>) -> Self {
        Self {
            socket,
            tls,
            pending: Vec::new(),
            written: 0,
            input: Input::Open,
            boundary: RecordBoundary::default(),
            low_water: 1,
        }
    }

    /// Asks not to be woken for less than this.
    fn wake_at(&mut self, bytes: u64) {
        // The receive buffer holds far more: see `surroundings::SYSCTLS`.
        let bytes = bytes.clamp(1, SCRATCH as u64);
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
        self.tls.transmit(&mut self.pending);
        &self.pending[start..]
    }

    /// Writes what is pending, in one `write` if the socket takes it.
    fn flush(&mut self, hold: Hold<'_>) -> Result<(), String> {
        while !self.is_flushed() {
            let written = {
                let _inside = hold();
                self.socket.write(&self.pending[self.written..])
            };
            match written {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        self.pending.clear();
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

#[cfg(test)]
mod tests;
