//! A TCP connection on which everything is noted, with its time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lastbyte_probe::{Arrival, Ask, Connection, Counters, Event};
use lastbyte_tls::observer::{Observer, Side};
use socket2::{Domain, Protocol, Socket, Type};

use super::tcp_info::{TcpInfo, tcp_info};

/// Room for what comes at once, so that our own window does not hide the server's. Without root, Linux gives less.
const RECEIVE_BUFFER: usize = 1 << 20;
/// Bytes that one connection may take.
const MOST: usize = 4 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// What is written is of the handshake.
    Hello,
    /// What is written begins with the client's Finished.
    Finished,
    /// What is written is a request.
    Request,
}

/// What the other end has begun to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Began {
    Nothing,
    Tls,
    Other,
}

#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    start: Instant,
    until: Instant,
    /// When silence counts as the end.
    quiet: Option<Duration>,
    pub(super) stage: Stage,
    pub(super) began: Began,
    pub(super) events: Vec<(Duration, Event)>,
    pub(super) observer: Observer,
    /// What OpenSSL wrote and nobody needs to wait for yet.
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    taken: usize,
    pub(super) received: usize,
    /// The server has closed.
    pub(super) is_closed: bool,
    pub(super) was_reset: bool,
}

impl Stream {
    /// Connects, with the segment that was asked for.
    pub(super) fn connect(address: SocketAddr, ask: Ask, until: Instant) -> io::Result<Stream> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        if let Some(segment) = ask.segment {
            socket.set_tcp_mss(u32::from(segment))?;
        }
        // It only makes what is seen clearer.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.set_tcp_nodelay(true)?;
        let start = Instant::now();
        let left = left(until, start)?;
        socket.connect_timeout(&address.into(), left)?;
        let connected = start.elapsed();
        Ok(Stream {
            socket: socket.into(),
            start,
            until,
            quiet: None,
            stage: Stage::Hello,
            began: Began::Nothing,
            events: vec![(connected, Event::Connected)],
            observer: Observer::default(),
            outbox: Vec::new(),
            inbox: Vec::new(),
            taken: 0,
            received: 0,
            is_closed: false,
            was_reset: false,
        })
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether there is time for more.
    pub(super) fn has_time(&self) -> bool {
        Instant::now() < self.until
    }

    /// From now on, silence of so long is the end.
    pub(super) fn end_after(&mut self, quiet: Duration) {
        self.quiet = Some(quiet);
    }

    /// Writes what is left, and takes what comes for so long.
    pub(super) fn pause(&mut self, pause: Duration) -> io::Result<()> {
        self.flush_all()?;
        let end = Instant::now() + pause;
        while let Ok(left) = left(end.min(self.until), Instant::now()) {
            match self.fill(left) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn flush_all(&mut self) -> io::Result<()> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.outbox);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            // Of all the time that there is, however little the other end takes at a time.
            let left = left(self.until, Instant::now())?;
            self.socket.set_write_timeout(Some(left))?;
            match self.socket.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.observer.sent(Side::Client, &bytes);
        let event = match self.stage {
            Stage::Hello => Event::Hello(bytes.len()),
            Stage::Finished => Event::Finished(bytes.len()),
            Stage::Request => Event::Request(bytes.len()),
        };
        self.events.push((self.now(), event));
        if self.stage == Stage::Finished {
            self.stage = Stage::Request;
        }
        Ok(())
    }

    /// Waits for bytes; none are the end.
    fn fill(&mut self, patience: Duration) -> io::Result<usize> {
        /// Records of TLS (RFC 8446, section 5.1), and the first byte of all their versions.
        const CHANGE_CIPHER_SPEC: u8 = 20;
        const APPLICATION_DATA: u8 = 23;
        const VERSION: u8 = 3;
        if self.received > MOST {
            return Err(ErrorKind::InvalidData.into());
        }
        let before = self.inbox.len();
        self.inbox.resize(before + CHUNK, 0);
        let room = self.inbox.get_mut(before..).unwrap_or_default();
        let read = read_for(&mut self.socket, room, patience);
        let at = self.now();
        let bytes = *read.as_ref().unwrap_or(&0);
        self.inbox.truncate(before + bytes);
        let bytes = match read {
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => {
                self.was_reset = error.kind() == ErrorKind::ConnectionReset;
                return Err(error);
            }
            Ok(0) => {
                self.is_closed = true;
                return Ok(0);
            }
            Ok(bytes) => bytes,
        };
        let arrival = Arrival {
            bytes,
            counters: self.info().and_then(|info| {
                Some(Counters {
                    segments: info.segments?,
                    out_of_order: info.out_of_order.unwrap_or_default(),
                    retransmitted: info.retransmitted,
                    min_rtt: info.min_rtt,
                    receiver_rtt: info.receiver_rtt,
                })
            }),
        };
        self.events.push((at, Event::Arrived(arrival)));
        let new = self.inbox.get(before..).unwrap_or_default();
        self.began = match (self.began, new) {
            (
                Began::Nothing,
                [CHANGE_CIPHER_SPEC..=APPLICATION_DATA]
                | [CHANGE_CIPHER_SPEC..=APPLICATION_DATA, VERSION, ..],
            ) => Began::Tls,
            (Began::Nothing, [_, ..]) => Began::Other,
            (began, _) => began,
        };
        self.observer.sent(Side::Server, new);
        self.received += bytes;
        Ok(bytes)
    }

    /// What of all that came was taken.
    pub(super) fn consumed(&self) -> usize {
        self.received - self.inbox.len().saturating_sub(self.taken)
    }

    pub(super) fn info(&self) -> Option<TcpInfo> {
        tcp_info(self.socket.as_fd()).ok()
    }

    /// What was noted, with the first byte of the response where that is among all that the server sent.
    pub(super) fn connection(&self, first_byte: Option<usize>) -> Connection {
        let info = self.info().unwrap_or_default();
        let timestamps = if info.timestamps { 12 } else { 0 };
        let is_v6 = self
            .socket
            .peer_addr()
            .is_ok_and(|address| address.is_ipv6());
        // Linux has taken the timestamps off already (tcp_rcv_synsent_state_process).
        let advertised = info.advertised_segment as usize;
        let peer = info.peer_segment as usize;
        let segment = if self.received > 3 * peer && peer > 0 {
            peer.min(advertised)
        } else {
            advertised
        };
        let mut events = Vec::new();
        let mut received = 0;
        for (at, event) in &self.events {
            if let Event::Arrived(arrival) = event {
                let before = received;
                received += arrival.bytes;
                if first_byte.is_some_and(|first| before <= first && received > first) {
                    events.push((*at, Event::FirstByte));
                }
            }
            events.push((*at, *event));
        }
        Connection {
            segment,
            headers: 40 + timestamps + if is_v6 { 20 } else { 0 },
            events,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.inbox.len() {
            (self.taken, self.inbox) = (0, Vec::new());
            if self.is_closed {
                return Ok(0);
            }
            self.flush_all()?;
            let left = left(self.until, Instant::now())?;
            self.fill(self.quiet.map_or(left, |quiet| quiet.min(left)))?;
        }
        let rest = self.inbox.get(self.taken..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(rest) {
            *place = *byte;
        }
        self.taken += count;
        Ok(count)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outbox.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// What is written leaves when somebody waits for the answer: the client's Finished with its request.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn left(until: Instant, now: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(now);
    if left > Duration::ZERO {
        Ok(left)
    } else {
        Err(ErrorKind::TimedOut.into())
    }
}

/// Reads what comes within so much time. Who is stopped and continued (SIGCONT) waits on: signal(7) ends a read that has a timeout then.
fn read_for(socket: &mut TcpStream, room: &mut [u8], patience: Duration) -> io::Result<usize> {
    let end = Instant::now() + patience;
    let mut left = patience;
    loop {
        socket.set_read_timeout(Some(left))?;
        match socket.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            read => return read,
        }
    }
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}
