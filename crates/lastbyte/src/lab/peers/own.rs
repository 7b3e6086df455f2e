//! Our own end beside a program: on a socket of its own, with just enough of HTTP/3 for one request.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastbyte_link::{EcnCodepoint, Time};
use lastbyte_quic::{End, EndError, Kept, Request};
use lastbyte_tls::{KeyLog, RandomSequence};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::connect;
use nix::sys::time::TimeSpec;

use crate::lab::quic::QuicSettings;
use crate::lab::socket::{
    Attempt, client_socket_address, open_datagram_socket, server_socket_address,
};
use crate::lab::surroundings::{SERVER, client_address, client_slot};
use crate::lab::sys;

/// How long it sleeps at most, so that it notices a stop.
const MAX_SLEEP: Duration = Duration::from_millis(20);
const LONGEST: usize = 1 << 16;

/// HEADERS of a response: `:status: 200`, of QPACK's static table (RFC 9114, 7.2.2; RFC 9204, A).
const RESPONSE: &[u8] = &[1, 3, 0, 0, 0xd9];

/// HEADERS of `GET https://NAME/`, likewise.
fn request(name: &str) -> Vec<u8> {
    // Names of certificates are no longer than a byte tells.
    let name = name.as_bytes().get(..100).unwrap_or(name.as_bytes());
    let mut fields = vec![0, 0, 0xd1, 0xd7, 0x50, name.len() as u8];
    fields.extend(name);
    fields.push(0xc1);
    let mut frame = vec![1];
    // A length of two bytes (RFC 9000, 16).
    frame.extend((0x4000 | fields.len() as u16).to_be_bytes());
    frame.extend(fields);
    frame
}

/// An end, and where its request is.
struct Own {
    end: End,
    random: RandomSequence,
    begin: Time,
    state: State,
    /// What it has to write of its message.
    message: Vec<u8>,
}

enum State {
    /// A client before its handshake is complete, or a server before its request.
    Waiting,
    Writing(Request, usize),
    Reading(Request),
    Done,
}

/// Which end it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

impl Own {
    fn now(&self) -> Time {
        Time(0) + sys::now().since(self.begin)
    }

    fn deadline(&mut self) -> Option<Time> {
        let begin = self.begin;
        (self.end.deadline()).map(|deadline| begin + deadline.since(Time(0)))
    }

    /// Takes a datagram, or does what is due, and gives what it sends.
    fn step(&mut self, role: Role, datagram: Option<&[u8]>) -> Vec<Vec<u8>> {
        let now = self.now();
        let Own {
            end,
            random,
            state,
            message,
            ..
        } = self;
        random.within(|| {
            let mut sent = Vec::new();
            match datagram {
                // A program's socket shows nothing of congestion, and neither does this one.
                Some(datagram) => sent.extend(end.receive(now, EcnCodepoint::NotEct, datagram)),
                None => {
                    end.on_time(now);
                }
            }
            go_on(end, role, state, message);
            let mut next = Vec::new();
            while end.transmit(now, &mut next).is_some() {
                sent.push(next.clone());
            }
            sent
        })
    }
}

/// Has the application do what it can.
fn go_on(end: &mut End, role: Role, state: &mut State, message: &[u8]) {
    loop {
        *state = match (&*state, role) {
            (State::Waiting, Role::Client) if end.is_established() => match end.open() {
                Some(request) => State::Writing(request, 0),
                None => return,
            },
            (State::Waiting, Role::Server) => match end.accept() {
                Some(request) => State::Reading(request),
                None => return,
            },
            (State::Writing(request, written), _) => {
                let (request, written) = (*request, *written);
                let more = end.write(request, message.get(written..).unwrap_or_default());
                match (written + more == message.len(), role) {
                    (true, Role::Client) => {
                        end.finish(request);
                        State::Reading(request)
                    }
                    (true, Role::Server) => {
                        end.finish(request);
                        State::Waiting
                    }
                    (false, _) if more == 0 => return,
                    (false, _) => State::Writing(request, written + more),
                }
            }
            (State::Reading(request), _) => {
                let request = *request;
                match (end.read(request), role) {
                    ((_, false), _) => return,
                    ((_, true), Role::Client) => State::Done,
                    ((_, true), Role::Server) => State::Writing(request, 0),
                }
            }
            (State::Waiting | State::Done, _) => return,
        };
    }
}

/// How our client ended, and its secrets.
pub(super) struct Ended {
    pub(super) keys: KeyLog,
    /// Why it has no response.
    pub(super) reason: Option<String>,
}

/// Has our client ask once, from the address of a slot, in the calling thread's namespace.
pub(super) fn ask(
    settings: &QuicSettings<'_>,
    index: u32,
    slot: u32,
    name: &str,
    timeout: Duration,
    interrupt: &AtomicBool,
) -> io::Result<Ended> {
    let socket =
        open_datagram_socket(&client_socket_address(client_address(slot), Attempt::First))?;
    connect(socket.as_raw_fd(), &server_socket_address(SERVER))?;
    let mut random = settings.random(index);
    let end = match random.within(|| settings.client(index, Kept::default())) {
        Ok(end) => end,
        Err(error) => return Ok(never_began(&error)),
    };
    let begin = sys::now();
    let mut own = Own {
        end,
        random,
        begin,
        state: State::Waiting,
        message: request(name),
    };
    let until = begin + timeout;
    let mut buffer = vec![0; LONGEST];
    let mut arrived = None;
    loop {
        for datagram in own.step(Role::Client, arrived.map(|length| &buffer[..length])) {
            send(socket.send(&datagram))?;
        }
        let reason = match (&own.state, own.end.ended()) {
            (State::Done, _) => None,
            (_, Some(ended)) => Some(ended.to_string()),
            _ if sys::now() >= until || interrupt.load(Ordering::Relaxed) => {
                Some("it had no more time".to_owned())
            }
            _ => {
                let wake = own.deadline().into_iter().chain([until]).min();
                arrived = receive(&socket, wake, &mut buffer)?.map(|(length, _)| length);
                continue;
            }
        };
        return Ok(Ended {
            keys: own.end.key_log(),
            reason,
        });
    }
}

fn never_began(error: &EndError) -> Ended {
    Ended {
        keys: KeyLog::default(),
        reason: Some(error.to_string()),
    }
}

/// Answers clients until it is stopped, in the calling thread's namespace. The connection in slot 0 is number `first` of its
/// sample. Gives the secrets by slot.
pub(super) fn answer(
    socket: &UdpSocket,
    settings: &QuicSettings<'_>,
    first: u32,
    is_stopped: impl Fn() -> bool,
) -> io::Result<BTreeMap<u32, KeyLog>> {
    let mut ends: BTreeMap<u32, (SocketAddr, Own)> = BTreeMap::new();
    let mut buffer = vec![0; LONGEST];
    while !is_stopped() {
        let wake = (ends.values_mut())
            .filter_map(|(_, own)| own.deadline())
            .min();
        let arrived = receive(socket, wake, &mut buffer)?;
        let now = sys::now();
        if let Some((length, from)) = arrived
            && let SocketAddr::V4(client) = from
            && let Some(slot) = client_slot(*client.ip())
        {
            let index = first.wrapping_add(slot);
            let (peer, own) = ends.entry(slot).or_insert_with(|| {
                let mut random = settings.random(!index);
                let end = random.within(|| settings.server(index));
                let own = Own {
                    end,
                    random,
                    begin: now,
                    state: State::Waiting,
                    message: RESPONSE.to_vec(),
                };
                (from, own)
            });
            *peer = from;
            for datagram in own.step(Role::Server, Some(&buffer[..length])) {
                send(socket.send_to(&datagram, from))?;
            }
        }
        for (peer, own) in ends.values_mut() {
            if own.deadline().is_some_and(|due| due <= now) {
                for datagram in own.step(Role::Server, None) {
                    send(socket.send_to(&datagram, *peer))?;
                }
            }
        }
    }
    Ok((ends.into_iter())
        .map(|(slot, (_, own))| (slot, own.end.key_log()))
        .collect())
}

/// The server's socket, in the calling thread's namespace.
pub(super) fn listen() -> io::Result<UdpSocket> {
    open_datagram_socket(&server_socket_address(SERVER))
}

/// Waits for a datagram, or until then.
fn receive(
    socket: &UdpSocket,
    until: Option<Time>,
    buffer: &mut [u8],
) -> io::Result<Option<(usize, SocketAddr)>> {
    let left = until.map_or(MAX_SLEEP, |until| until.since(sys::now()).min(MAX_SLEEP));
    let mut waits = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut waits, Some(TimeSpec::from_duration(left)), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    match socket.recv_from(buffer) {
        Ok(arrived) => Ok(Some(arrived)),
        Err(error) if is_of_moment(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn send(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if !is_of_moment(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a socket goes on after it: what some host reported of an earlier datagram is a loss, for all that QUIC knows.
fn is_of_moment(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, WouldBlock,
    };
    let kinds = [
        ConnectionRefused,
        HostUnreachable,
        Interrupted,
        NetworkUnreachable,
        WouldBlock,
    ];
    kinds.contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::request;

    #[test]
    fn a_request_is_one_frame_of_headers() {
        let frame = request("server.example");
        // The frame's type, and its length in two bytes.
        assert_eq!(frame[..3], [1, 0x40, 21]);
        assert_eq!(frame.len(), 3 + 21);
        // QPACK's static table: `:method: GET`, `:scheme: https`, the name of `:authority`, and `:path: /`.
        assert_eq!(frame[3..9], [0, 0, 0xd1, 0xd7, 0x50, 14]);
        assert_eq!(&frame[9..23], b"server.example");
        assert_eq!(frame[23], 0xc1);
    }
}
