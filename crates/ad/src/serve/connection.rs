//! The life of a connection: accepted, its handshake, its backend, what is relayed, its end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lastbyte_flights::flights_needed;
use nix::sys::socket::{MsgFlags, recv};
use openssl::error::ErrorStack;
use openssl::ssl::{ErrorCode, NameType, Ssl};
use pqtlsad::flight::InitialWindow;
use pqtlsad::openssl::server;
use pqtlsad::server::Selection;
use thiserror::Error;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_openssl::SslStream;

use super::access::{Entry, Session};
use super::announce::{ClientAddress, Ends};
use super::announced::{self, Announced};
use super::backend::{Backend, timed};
use super::chains;
use super::drain::{Noted, Serving, Turn};
use super::flight::FlightStream;
use super::forwarded::{To, relay_http};
use super::log::Log;
use super::relay::{End, passing, relay};
use super::room::{MADE_ROOM, Place, Spot};
use super::source::Source;
use super::{NO_ROOM, Server};
use crate::tls::stream_words;

/// What can fail, as the log has it.
const ACCEPTING: &str = "accepting";
const ANNOUNCED: &str = "the load balancer's PROXY protocol";
const HANDSHAKE: &str = "the handshake";
const CONNECTING: &str = "connecting to the backend";
const ANSWERING: &str = "the backend's answer";
const RELAYING: &str = "relaying";
const WAITING: &str = "waiting for the client's request";

/// The type of a record, before a version and the length of what follows (RFC 8446, section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// OpenSSL's words for a client that can verify no signature of the keys that a server has.
const NO_SIGNATURE: &str = "no suitable signature algorithm";

/// Why a connection is closed at once.
const FULL: &str = "its address has as many connections as one may have";

/// A client with which there is a session.
type Client = SslStream<FlightStream>;

/// Why a connection failed.
struct Failure {
    /// At what.
    what: &'static str,
    reason: String,
    counted: Counted,
}

/// Why there is no session with a client.
#[derive(Debug, Error)]
enum NoHandshake {
    #[error("not done in time")]
    Late,
    #[error("{MADE_ROOM}")]
    MadeRoom,
    #[error(transparent)]
    Stream(#[from] io::Error),
    #[error("{}", lastbyte_providers::reason(.0))]
    OpenSsl(#[from] ErrorStack),
    #[error("no chain is for the name that it asks for")]
    UnknownName,
    #[error("it asks for no name")]
    NoName,
    #[error("it could not be computed")]
    NotComputed,
    /// As OpenSSL has it, without what differs from client to client.
    #[error("{reason}")]
    Tls { reason: String },
    #[error(
        "{reason}: the client can't verify {algorithms}, and the name has no other chain; {}",
        chains::CLASSICAL_HINT
    )]
    PostQuantumAlone { reason: String, algorithms: String },
}

/// Whether a failure was counted and is in the log already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Before,
    NotYet,
}

impl Failure {
    fn new(what: &'static str, reason: String) -> Failure {
        Failure {
            what,
            reason,
            counted: Counted::NotYet,
        }
    }
}

impl Server {
    pub(super) async fn accept(
        self: &Arc<Self>,
        listener: TcpListener,
        connections: &mut JoinSet<()>,
        log: &Arc<Log>,
    ) -> Infallible {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => match self.place(peer).await {
                    Some(place) => {
                        self.served.accepted.fetch_add(1, Ordering::Relaxed);
                        let server = Arc::clone(self);
                        let log = Arc::clone(log);
                        connections.spawn(async move {
                            server.connection(stream, peer, place, &log).await;
                        });
                    }
                    None => {
                        self.served.refused.fetch_add(1, Ordering::Relaxed);
                        log.failed(ACCEPTING, Some(peer), FULL);
                    }
                },
                Err(error) => {
                    log.failed(ACCEPTING, None, &error.to_string());
                    sleep(NO_ROOM).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }

    /// A place for a connection that has come, once there is one.
    async fn place(&self, peer: SocketAddr) -> Option<Place> {
        self.room.ready().await;
        if self.is_balancer(peer) {
            Some(self.room.enter_for_others(peer.ip().into()))
        } else {
            self.room.enter(peer.ip().into())
        }
    }

    /// Whether it says first whose a connection is.
    fn is_balancer(&self, peer: SocketAddr) -> bool {
        let mut balancers = self.config.balancers.iter();
        balancers.any(|network| network.contains(peer.ip()))
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, place: Place, log: &Log) {
        let mut entry = Entry::new(self.access.clone(), peer);
        match self.serve(stream, place, &mut entry, log).await {
            Ok(end) => entry.end = name(end),
            Err(Failure {
                what,
                reason,
                counted,
            }) => {
                if counted == Counted::NotYet {
                    self.failed(what, entry.client, &reason, log);
                }
                entry.end = "failed";
                entry.reason = Some(format!("{what} failed: {reason}"));
            }
        }
        let sum = |sum: &std::sync::atomic::AtomicU64, of: &std::sync::atomic::AtomicU64| {
            sum.fetch_add(of.load(Ordering::Relaxed), Ordering::Relaxed)
        };
        sum(&self.served.bytes_to_clients, &entry.carried.to_client);
        sum(&self.served.bytes_to_backends, &entry.carried.to_backend);
    }

    async fn serve(
        &self,
        mut stream: TcpStream,
        place: Place,
        entry: &mut Entry,
        log: &Log,
    ) -> Result<End, Failure> {
        let limits = &self.config.limits;
        let mut ends = Ends {
            client: entry.client,
            server: stream.local_addr().ok(),
        };
        if self.is_balancer(entry.client) {
            let read = Box::pin(timed(limits.handshake, announced::read(&mut stream))).await;
            let announced = read.map_err(|error| Failure::new(ANNOUNCED, error.to_string()))?;
            if let Announced::Client(client, server) = announced {
                ends = Ends {
                    client,
                    server: Some(server),
                };
                entry.client = client;
            }
            if !place.is_of(ends.client.ip().into()) {
                self.served.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Failure::new(ACCEPTING, FULL.to_owned()));
            }
        }
        // What only this takes is given back after it.
        let handshake = Box::pin(self.handshake(stream, entry, &place));
        let client = match handshake.await {
            Ok(client) => client,
            Err(reason) => {
                self.served
                    .handshakes_failed
                    .fetch_add(1, Ordering::Relaxed);
                return Err(Failure::new(HANDSHAKE, reason.to_string()));
            }
        };
        place.is_established();
        tokio::select! {
            // First, as it has to learn what was carried.
            biased;
            relayed = self.relayed(client, place.spot(), ends, entry, log) => relayed,
            () = place.has_to_go() => Err(Failure::new(WAITING, MADE_ROOM.to_owned())),
        }
    }

    /// What follows a handshake. Its place makes room for others until the client says something.
    async fn relayed(
        &self,
        mut client: Client,
        spot: Arc<Spot>,
        ends: Ends,
        entry: &mut Entry,
        log: &Log,
    ) -> Result<End, Failure> {
        let limits = &self.config.limits;
        let session = session(&client, entry.start().elapsed());
        self.served.count(&session);
        let backend = self.backend(session.protocol.as_deref());
        let header = self.config.clients.header(ends, &session);
        entry.session = Some(session);
        if self.config.clients == ClientAddress::Forwarded {
            let failed = Mutex::new(None);
            let tell = |failure: Failure| {
                self.failed(failure.what, ends.client, &failure.reason, log);
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Failure {
                    counted: Counted::Before,
                    ..failure
                });
            };
            let to = To {
                backend,
                client: ends.client.ip(),
                dropped: &self.config.dropped,
                connecting: limits.handshake,
                idle: limits.idle,
                request: limits.request,
                spot,
                connected: &|connected| match connected {
                    Ok(()) => log.succeeded(CONNECTING),
                    Err(error) => {
                        self.served.unanswered.fetch_add(1, Ordering::Relaxed);
                        tell(unconnected(backend, error));
                    }
                },
                unanswered: &|why| {
                    let reason = format!("{}: {why}", backend.name());
                    tell(Failure::new(ANSWERING, reason));
                },
            };
            let stops = self.stops();
            let relayed = Box::pin(relay_http(client, to, stops, &entry.carried)).await;
            let end = relayed.map_err(relaying)?;
            // One request without its response is what there is to say of all, however they ended.
            let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
            return failed.map_or(Ok(end), Err);
        }
        let connected = Box::pin(timed(limits.handshake, connect(backend, &header))).await;
        let mut backend = match connected {
            Ok(stream) => {
                log.succeeded(CONNECTING);
                stream
            }
            Err(error) => {
                self.served.unanswered.fetch_add(1, Ordering::Relaxed);
                // The client learns that it is over, and not that it was cut.
                let _ = timeout(limits.handshake, client.shutdown()).await;
                Box::pin(client.get_mut().linger()).await;
                return Err(unconnected(backend, &error));
            }
        };
        drop(header);
        let turn = Turn::new();
        let mut noted = Noted {
            stream: &mut client,
            turn: &turn,
            heard: &|| spot.speaks(),
        };
        let relayed = tokio::select! {
            relayed = relay(&mut noted, &mut backend, limits.idle, &entry.carried) => relayed,
            () = turn.rests(self.serving.subscribe()) => Ok(End::Stopped),
        };
        let end = relayed.map_err(relaying)?;
        if end == End::Stopped {
            // The client waits for nothing, and learns that it is over.
            let _ = timeout(limits.handshake, client.shutdown()).await;
        }
        if matches!(end, End::Refused | End::BackendGone) {
            drop(backend);
            Box::pin(client.get_mut().linger()).await;
        }
        Ok(end)
    }

    /// Until no more connections are accepted.
    async fn stops(&self) {
        let mut serving = self.serving.subscribe();
        let stops = serving.wait_for(|serving| *serving == Serving::Stopping);
        // The sender is this server's own.
        let _ = stops.await;
    }

    /// Counts what failed, and says so.
    fn failed(&self, what: &'static str, client: SocketAddr, reason: &str, log: &Log) {
        self.served.failed.fetch_add(1, Ordering::Relaxed);
        log.failed(what, Some(client), reason);
    }

    /// Where what is spoken inside goes.
    fn backend(&self, protocol: Option<&str>) -> &Backend {
        let mut own = self.protocols.iter();
        let own = own.find(|(name, _)| Some(name.as_str()) == protocol);
        own.map_or(&self.backend, |(_, backend)| backend)
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        entry: &mut Entry,
        place: &Place,
    ) -> Result<Client, NoHandshake> {
        let source = entry.client.ip().into();
        let until = Instant::now() + self.config.limits.handshake;
        // Whoever it waits for costs no more than a socket.
        let hello = async { Ok(hello(&stream).await?) };
        bounded(place, until, hello).await?;
        place.begins();
        bounded(
            place,
            until,
            self.shake(stream, source, &mut entry.requested_name),
        )
        .await
    }

    async fn shake(
        &self,
        stream: TcpStream,
        source: Source,
        requested_name: &mut Option<String>,
    ) -> Result<Client, NoHandshake> {
        let mut ssl = Ssl::new(&self.context)?;
        server::stop_at_client_hello(&mut ssl, self.config.unknown_names)?;
        let mut stream = SslStream::new(ssl, FlightStream::new(stream))?;
        loop {
            let accepted = Pin::new(&mut stream).accept().await;
            *requested_name = server::requested_name(stream.ssl()).map(str::to_owned);
            match accepted {
                Ok(()) => break,
                // What follows is computed elsewhere, when it is this client's turn.
                Err(error) if error.code() == ErrorCode::WANT_CLIENT_HELLO_CB => {}
                // Which name is in the access log: clients choose it, and causes are counted.
                Err(_) if server::is_refused(stream.ssl()) => {
                    return Err(match requested_name {
                        Some(_) => NoHandshake::UnknownName,
                        None => NoHandshake::NoName,
                    });
                }
                Err(error) => return Err(self.explained(&error, requested_name.as_deref())),
            }
            server::pass(stream.ssl());
            let signers = if server::may_sign_slowly(stream.ssl()) {
                &self.slow_signers
            } else {
                &self.signers
            };
            let (computed, polled) = signers
                .run(source, stream, compute)
                .await
                .ok_or(NoHandshake::NotComputed)?;
            stream = computed;
            match polled {
                Poll::Ready(Ok(())) => break,
                Poll::Ready(Err(error)) if error.code() != ErrorCode::WANT_CLIENT_HELLO_CB => {
                    return Err(self.explained(&error, requested_name.as_deref()));
                }
                _ => {}
            }
        }
        stream.get_mut().handshake_done();
        Ok(stream)
    }

    /// Why a handshake with a client that asked for `name` failed, and what to do where it is this
    /// server's affair.
    fn explained(&self, error: &openssl::ssl::Error, name: Option<&str>) -> NoHandshake {
        let reason = reason(error);
        let (NO_SIGNATURE, Some(chains)) = (reason.as_str(), &self.chains) else {
            return NoHandshake::Tls { reason };
        };
        let chains = chains.load();
        let Selection::Whole(sent) = chains.select(name, None) else {
            return NoHandshake::Tls { reason };
        };
        match chains::post_quantum_alone(sent.iter().map(|chain| &***chain)) {
            Some(algorithms) => NoHandshake::PostQuantumAlone { reason, algorithms },
            None => NoHandshake::Tls { reason },
        }
    }
}

/// A step of a handshake, if it is done in time, and need not make room.
async fn bounded<T>(
    place: &Place,
    until: Instant,
    step: impl Future<Output = Result<T, NoHandshake>>,
) -> Result<T, NoHandshake> {
    tokio::select! {
        done = timeout_at(until, step) => done.unwrap_or_else(|_| Err(NoHandshake::Late)),
        () = place.has_to_go() => Err(NoHandshake::MadeRoom),
    }
}

/// Until a client has sent a whole record, in which a ClientHello begins, or what can't become one:
/// OpenSSL knows what to answer.
async fn hello(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let ready = stream.ready(Interest::READABLE).await?;
        // There is no more to come.
        if ready.is_read_closed() {
            return Ok(());
        }
        // Tokio takes what was just accepted for readable, and what is peeked at for read.
        match stream.try_io(Interest::READABLE, || peek_record(stream)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

/// Would block for as long as a record is not whole.
fn peek_record(stream: &TcpStream) -> io::Result<()> {
    passing(|buffer| {
        let come = recv(stream.as_raw_fd(), buffer, MsgFlags::MSG_PEEK)?;
        let is_enough = match buffer.get(..come).unwrap_or_default() {
            [] => true,
            [first, ..] if *first != HANDSHAKE_RECORD => true,
            [_, _, _, high, low, body @ ..] => {
                let length = u16::from_be_bytes([*high, *low]);
                // A longer one is refused, or as good as whole.
                body.len() >= length.into() || come == buffer.len()
            }
            _ => false,
        };
        if is_enough {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    })
}

fn unconnected(backend: &Backend, error: &io::Error) -> Failure {
    Failure::new(CONNECTING, format!("{}: {error}", backend.name()))
}

fn relaying(error: io::Error) -> Failure {
    Failure::new(RELAYING, stream_words(&error))
}

/// Goes on with a handshake for as long as it waits for nobody.
fn compute(mut stream: Client) -> (Client, Poll<Result<(), openssl::ssl::Error>>) {
    // Whoever waits for what comes next asks again.
    let polled = Pin::new(&mut stream).poll_accept(&mut Context::from_waker(Waker::noop()));
    (stream, polled)
}

async fn connect(backend: &Backend, header: &[u8]) -> io::Result<TcpStream> {
    let mut stream = backend.connect().await?;
    if !header.is_empty() {
        stream.write_all(header).await?;
    }
    Ok(stream)
}

/// What the handshake came to.
fn session(client: &Client, took: Duration) -> Session {
    let ssl = client.ssl();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let omitted = server::omitted(ssl).filter(|_| !ssl.session_reused());
    let bytes_omitted = omitted.map_or(0, |_| server::omitted_bytes(ssl));
    let flights = |bytes| {
        let window = InitialWindow::default();
        let mss = usize::try_from(window.mss).unwrap_or(usize::MAX);
        flights_needed(bytes, mss, window.segments)
    };
    let sent = client.get_ref().flight();
    Session {
        took,
        name: ssl.servername_raw(NameType::HOST_NAME).map(text),
        group: server::group(ssl).map(str::to_owned),
        protocol: ssl.selected_alpn_protocol().map(text),
        delivery: match omitted {
            _ if ssl.session_reused() => "resumed",
            Some((part, _)) => part.name(),
            None => "whole",
        },
        bytes_omitted,
        round_trips_saved: flights(sent + bytes_omitted).saturating_sub(flights(sent)),
    }
}

fn name(end: End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::Refused => "refused-by-backend",
        End::ClientGone => "client-gone",
        End::BackendGone => "backend-gone",
        End::Idle => "idle",
        End::Stopped => "stopped",
    }
}

/// OpenSSL's reason alone, which is the same for all who fail alike.
fn reason(error: &openssl::ssl::Error) -> String {
    let first = error.ssl_error().and_then(|stack| stack.errors().first());
    match (first.and_then(|error| error.reason()), error.io_error()) {
        (Some(reason), _) => reason.to_owned(),
        (None, Some(error)) => error.to_string(),
        (None, None) => "the client closed the connection".to_owned(),
    }
}
