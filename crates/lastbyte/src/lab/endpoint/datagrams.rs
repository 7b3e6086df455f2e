//! Connections over QUIC: a socket of its own for each client, and one for the server, as servers have it.

use std::cmp::Reverse;
use std::io;
use std::mem;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use lastbyte_link::{EcnCodepoint, Side, Time};
use nix::sys::epoll::{EpollEvent, EpollFlags};
use nix::sys::socket::connect;

use super::{Carried, Endpoints, Event, Listener};
use crate::lab::LabError;
use crate::lab::connection::EndedConnection;
use crate::lab::failure::Failure;
use crate::lab::quic::{QuicPair, QuicSettings, Transmit, UnderWay, never_began};
use crate::lab::socket::{Attempt, DatagramSocket, client_socket_address, server_socket_address};
use crate::lab::surroundings::{SERVER, client_address, client_slot};
use crate::lab::sys;
use crate::results::{Cause, Outcome};

/// The server's socket. Each client has an address of its own, by which its datagrams are told from others'.
pub(crate) struct QuicServer {
    socket: DatagramSocket,
    /// Datagrams that it had no room to send.
    unsent: u64,
}

impl QuicServer {
    /// One in the calling thread's namespace.
    pub(super) fn open() -> io::Result<QuicServer> {
        let socket = DatagramSocket::open(&server_socket_address(SERVER))?;
        Ok(QuicServer { socket, unsent: 0 })
    }
}

impl AsFd for QuicServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Both ends of a connection, and its client's socket.
pub(super) struct QuicConnection {
    pair: QuicPair,
    /// What the ends' times are counted from.
    started: Time,
    socket: DatagramSocket,
    /// The address of that.
    client: SocketAddrV4,
    /// Datagrams that it had no room to send.
    unsent: u64,
    /// What a socket could not do.
    failed: Option<(Side, io::Error)>,
    /// When the latest step ended.
    worked: Time,
    due: Option<Time>,
}

impl QuicConnection {
    /// When it has something to do though nothing has come.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Datagrams that its client's socket had no room for.
    pub(super) fn dropped(&self) -> u64 {
        self.unsent + dropped(&self.socket)
    }

    /// What is left of it.
    pub(super) fn finish(self, outcome: Outcome) -> EndedConnection {
        self.pair.finish(outcome)
    }

    /// Has its ends take a step at this time of the kernel's clock, and send what comes of it. Gives what the connection
    /// has come to, once it has.
    fn step(
        &mut self,
        now: Time,
        server: &mut QuicServer,
        step: impl FnOnce(&mut QuicPair, Time, Transmit<'_>),
    ) -> Option<Outcome> {
        let Self {
            pair,
            started,
            socket,
            client,
            unsent,
            failed,
            ..
        } = self;
        let now = Time(0) + now.since(*started);
        step(pair, now, &mut |sender, ecn, datagram| {
            let (sent, unsent) = match sender {
                Side::Client => (socket.send(ecn, datagram, None), &mut *unsent),
                Side::Server => (
                    server.socket.send(ecn, datagram, Some(*client)),
                    &mut server.unsent,
                ),
            };
            match sent {
                Ok(()) => {}
                Err(error) if has_no_room(&error) => *unsent += 1,
                Err(error) if is_of_peer(&error) || is_too_long(&error) => {}
                Err(error) if failed.is_none() => *failed = Some((sender, error)),
                Err(_) => {}
            }
        });
        let due = pair.due();
        self.due = due.map(|due| self.started + due.since(Time(0)));
        match self.failed.take() {
            Some((side, error)) => Some(broken(side, error)),
            // What is under way is the link's to know.
            None => self.pair.outcome(UnderWay::Something),
        }
    }
}

/// Of a connection one of whose sockets failed.
fn broken(side: Side, error: io::Error) -> Outcome {
    let failure = Failure::Socket(error);
    let (cause, end) = match side {
        Side::Client => (Cause::Client(failure.kind()), "client"),
        Side::Server => (Cause::Server(failure.kind()), "server"),
    };
    Outcome::Failed {
        cause,
        reason: format!("{end}: {failure}"),
    }
}

/// Datagrams that a socket had no room to keep until they were read.
fn dropped(socket: &DatagramSocket) -> u64 {
    // A kernel that does not count has none to show.
    sys::dropped_packets(socket.as_fd()).unwrap_or(0).into()
}

fn has_no_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Whether it is what some host reported of an earlier datagram: that one was lost, for all that QUIC knows.
fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(
        error.kind(),
        ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}

/// Whether no packet holds it, so that it is lost (`quic_mtu_discovery = "on"`).
fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

impl Endpoints<'_> {
    /// Begins the connection of a free slot.
    pub(super) fn begin_quic(
        &mut self,
        slot: u32,
        index: u32,
        settings: &QuicSettings<'_>,
    ) -> Result<(), LabError> {
        let client = client_address(slot);
        let address = client_socket_address(client, Attempt::First);
        let socket = DatagramSocket::open(&address).map_err(LabError::Socket)?;
        // Nobody else's datagrams reach it then.
        connect(socket.as_fd().as_raw_fd(), &server_socket_address(SERVER))
            .map_err(|error| LabError::Socket(error.into()))?;
        let event = Event::Ready {
            slot,
            end: Side::Client,
        };
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        let watched = (self.epoll).add(&socket, EpollEvent::new(flags, event.encode()));
        watched.map_err(|error| LabError::Socket(error.into()))?;
        let brought = self.brought.remove(&slot);
        let kept = brought.unwrap_or_else(|| settings.kept(index));
        let started = sys::now();
        let pair = match kept.and_then(|kept| QuicPair::new(settings, index, kept)) {
            Ok(pair) => pair,
            Err(error) => {
                self.running.remove(&slot);
                self.finished.insert(slot, never_began(&error));
                self.ended += 1;
                return Ok(());
            }
        };
        if let Some(running) = self.running.get_mut(&slot) {
            running.carried = Some(Carried::Quic(Box::new(QuicConnection {
                pair,
                started,
                socket,
                client: SocketAddrV4::new(client, address.port()),
                unsent: 0,
                failed: None,
                worked: started,
                due: None,
            })));
        }
        self.go_on_quic(slot)
    }

    /// Has a connection do what is due.
    pub(super) fn go_on_quic(&mut self, slot: u32) -> Result<(), LabError> {
        self.step_quic(slot, None, |pair, now, send| pair.on_time(now, send))
    }

    /// Has a client read and answer all that has come, one datagram after the other.
    pub(super) fn take_from_client_socket(&mut self, slot: u32) -> Result<(), LabError> {
        // Another's turn, as long as it lasts.
        let mut scratch = mem::take(&mut self.scratch);
        let taken = self.take_from_client_socket_into(slot, &mut scratch);
        self.scratch = scratch;
        taken
    }

    fn take_from_client_socket_into(
        &mut self,
        slot: u32,
        scratch: &mut [u8],
    ) -> Result<(), LabError> {
        while let Some(connection) = self.quic(slot) {
            match connection.socket.receive(scratch) {
                Ok((length, ecn, _)) => {
                    let datagram = scratch.get(..length).unwrap_or_default();
                    self.receive_quic(slot, Side::Client, ecn, datagram)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_of_peer(&error) => {}
                Err(error) => self.end(slot, broken(Side::Client, error)),
            }
        }
        Ok(())
    }

    /// Has the server read and answer all that has come, one datagram after the other.
    pub(super) fn take_from_server_socket(&mut self) -> Result<(), LabError> {
        let mut scratch = mem::take(&mut self.scratch);
        let taken = self.take_from_server_socket_into(&mut scratch);
        self.scratch = scratch;
        taken
    }

    fn take_from_server_socket_into(&mut self, scratch: &mut [u8]) -> Result<(), LabError> {
        while let Some(Listener::Quic(server)) = &self.listener {
            match server.socket.receive(scratch) {
                Ok((length, ecn, Some(client))) => {
                    let datagram = scratch.get(..length).unwrap_or_default();
                    // What comes of a connection that has ended is nobody's.
                    if let Some(slot) = client_slot(*client.ip()) {
                        self.receive_quic(slot, Side::Server, ecn, datagram)?;
                    }
                }
                Ok((_, _, None)) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_of_peer(&error) => {}
                Err(error) => return Err(LabError::Socket(error)),
            }
        }
        Ok(())
    }

    fn receive_quic(
        &mut self,
        slot: u32,
        receiver: Side,
        ecn: EcnCodepoint,
        datagram: &[u8],
    ) -> Result<(), LabError> {
        self.step_quic(slot, Some(receiver), |pair, now, send| {
            pair.receive(now, receiver, ecn, datagram, send);
        })
    }

    /// Has a connection take a step. One end may have received something; else something is due.
    fn step_quic(
        &mut self,
        slot: u32,
        receiver: Option<Side>,
        step: impl FnOnce(&mut QuicPair, Time, Transmit<'_>),
    ) -> Result<(), LabError> {
        let shared = self.settings.shared;
        let idle_since = self.waking.idle_since();
        let running = self.running.get_mut(&slot);
        let Some(Carried::Quic(connection)) = running.and_then(|running| running.carried.as_mut())
        else {
            return Ok(());
        };
        let Some(Listener::Quic(server)) = &mut self.listener else {
            return Err(LabError::Crashed("a server of QUIC"));
        };
        let now = sys::now();
        if let Some(idle_since) = idle_since {
            let possible = match receiver {
                Some(end) => shared.delivered(slot, end),
                None => connection.due.unwrap_or(connection.started),
            };
            let possible = possible.max(idle_since).max(connection.worked);
            let end = receiver.unwrap_or(Side::Client);
            connection.pair.waited(end, now.since(possible));
        }
        let was_due = connection.due;
        let outcome = connection.step(now, server, step);
        if idle_since.is_some() {
            connection.worked = sys::now();
        }
        let due = connection.due;
        match (outcome, due) {
            (Some(outcome), _) => self.end(slot, outcome),
            (None, Some(at)) if due != was_due || at <= now => {
                self.thoughts.push(Reverse((at, slot)));
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Whether sockets have dropped what no link did.
    ///
    /// # Errors
    ///
    /// How much, with the remedy.
    pub(crate) fn check_sockets(&self) -> Result<(), LabError> {
        let by_server = match &self.listener {
            Some(Listener::Quic(server)) => server.unsent + dropped(&server.socket),
            Some(Listener::Tcp(_)) | None => 0,
        };
        match self.dropped + by_server {
            0 => Ok(()),
            dropped => Err(LabError::Dropped(dropped)),
        }
    }

    fn quic(&self, slot: u32) -> Option<&QuicConnection> {
        match self.running(slot)?.carried.as_ref()? {
            Carried::Quic(connection) => Some(connection),
            Carried::Tcp(_) => None,
        }
    }
}
