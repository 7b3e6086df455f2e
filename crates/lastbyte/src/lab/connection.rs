//! Both ends of one measured connection: whose turn it is, what was noted, and how it ended.

use std::mem;
use std::thread;
use std::time::Duration;

use lastbyte_link::{Side, Time};
use lastbyte_tls::observer::Observer;
use lastbyte_tls::observer::quic::{QuicObservation, QuicObserver};
use lastbyte_tls::{KeyLog, Retry};
use nix::errno::Errno;

use super::channel::Channel;
use super::delivery::Lookup;
use super::dns::{Question, ResolverAnswer};
use super::exchange::{Client, Clock, Exchange, Notes, Server, Source, Turn};
use super::failure::Failure;
use super::sys;
use crate::results::{Cause, Dns, FailureKind, Outcome, Times, TransportStats};

/// Both ends of one connection.
pub(crate) struct Pair<'a> {
    exchange: Exchange,
    client: Client,
    server: Option<Server>,
    notes: Notes,
    /// When this connection's latest step ended.
    pub(crate) worked: Time,
    /// What DNS delivers, if it was asked.
    lookup: Option<Lookup<'a>>,
    /// The connection before this one, if its client gave up to try this one.
    abandoned: Option<Abandoned>,
}

/// What is left of a connection whose client gave up: its server learns of that later.
struct Abandoned {
    server: Option<Server>,
    notes: Notes,
    keys: KeyLog,
}

/// How it goes on with a connection that has nothing more to say.
pub(crate) enum Next {
    /// It has ended.
    Ended(Outcome),
    /// Its client has failed, and tries this on a new one: see [`Pair::again`].
    Again(Retry),
}

/// A connection whose client gave up in its handshake.
pub(crate) struct FailedConnection {
    pub(crate) observer: Observer,
    pub(crate) keys: KeyLog,
}

/// A connection that has come to its end.
pub(crate) struct EndedConnection {
    pub(crate) outcome: Outcome,
    pub(crate) times: Times,
    pub(crate) waited: Duration,
    pub(crate) keys: KeyLog,
    pub(crate) transport: TransportStats,
    pub(crate) dns: Dns,
    pub(crate) seen: Seen,
    /// The most that its server had sent by what it had received, until it knew the client's address; none but of QUIC.
    pub(crate) amplification: Option<f64>,
}

/// What was seen on the wire of a connection.
pub(crate) enum Seen {
    /// Records of TLS.
    Records {
        observer: Observer,
        /// Of the server's session tickets, record framing included.
        ticket_bytes: usize,
        /// The connection before it, if there was one.
        failed: Option<FailedConnection>,
    },
    /// Datagrams of QUIC.
    Datagrams(QuicObserver),
}

impl EndedConnection {
    /// One that never came to `connect()`.
    pub(crate) fn unconnected(outcome: Outcome, lookup: Lookup<'_>) -> Self {
        Self {
            outcome,
            times: Times::default(),
            waited: Duration::ZERO,
            keys: KeyLog::default(),
            transport: TransportStats::default(),
            dns: lookup.finish(None),
            amplification: None,
            seen: Seen::Records {
                observer: Observer::default(),
                ticket_bytes: 0,
                failed: None,
            },
        }
    }

    /// The lines of its key log, behind those of the connection before it, if there was one.
    pub(crate) fn secrets(&self) -> String {
        let failed = match &self.seen {
            Seen::Records {
                failed: Some(failed),
                ..
            } => failed.keys.as_str(),
            Seen::Records { failed: None, .. } | Seen::Datagrams(_) => "",
        };
        failed.to_owned() + self.keys.as_str()
    }

    /// What was seen of its handshake, of one over QUIC.
    pub(crate) fn observed_datagrams(&self) -> Option<QuicObservation> {
        match &self.seen {
            Seen::Records { .. } => None,
            Seen::Datagrams(observer) => Some(observer.observe(&self.keys)),
        }
    }
}

impl<'a> Pair<'a> {
    /// A connection whose `connect()` was called at `started`. The client's channel has a TLS that has nothing
    /// from DNS.
    pub(crate) fn new(
        started: Time,
        exchange: Exchange,
        channel: Box<dyn Channel>,
        lookup: Option<Lookup<'a>>,
    ) -> Self {
        Self {
            exchange,
            client: Client::new(channel, &exchange),
            server: None,
            notes: Notes {
                started,
                ..Notes::default()
            },
            worked: started,
            lookup,
            abandoned: None,
        }
    }

    /// Goes on with a new connection, on which `connect()` was called just now. Times are still since the first
    /// one's, and the old one is closed without a trace.
    pub(crate) fn again(&mut self, channel: Box<dyn Channel>) {
        let old = self.client.channel();
        old.close();
        let keys = old.tls().key_log();
        self.abandoned = Some(Abandoned {
            server: self.server.take(),
            notes: Notes {
                started: self.notes.started,
                observer: mem::take(&mut self.notes.observer),
                ..Notes::default()
            },
            keys,
        });
        self.notes.times = Times {
            connect: self.notes.times.connect,
            ..Times::default()
        };
        self.client = Client::new(channel, &self.exchange);
    }

    /// DNS has answered. Gives what to ask it next; the client may go on.
    pub(crate) fn answered(&mut self, answer: ResolverAnswer) -> Vec<Question> {
        match &mut self.lookup {
            Some(lookup) => lookup.take(answer, sys::now()),
            None => Vec::new(),
        }
    }

    /// The server has accepted it.
    pub(crate) fn accepted(&mut self, channel: Box<dyn Channel>) {
        self.server = Some(Server::new(channel, &self.exchange));
    }

    /// One end's socket is ready. None as long as the connection has more to say.
    pub(crate) fn ready(&mut self, end: Side, mut turn: Turn<'_>) -> Option<Next> {
        match end {
            Side::Client => {
                let source = self.lookup.as_mut();
                let source = source.map(|lookup| lookup as &mut dyn Source);
                let driven =
                    (self.client).drive(&mut turn, &self.exchange, source, &mut self.notes);
                match driven {
                    Ok(()) => self.outcome().map(Next::Ended),
                    Err(failure) => Some(match self.retry() {
                        Some(retry) => Next::Again(retry),
                        None => Next::Ended(self.client_failed(&failure)),
                    }),
                }
            }
            Side::Server => {
                if let Some(Abandoned {
                    server: Some(server),
                    notes,
                    ..
                }) = &mut self.abandoned
                {
                    server.drive(&mut turn, &self.exchange, notes);
                }
                if let Some(server) = &mut self.server {
                    server.drive(&mut turn, &self.exchange, &mut self.notes);
                }
                self.outcome().map(Next::Ended)
            }
        }
    }

    /// What the client that has failed tries on a new connection.
    fn retry(&self) -> Option<Retry> {
        match self.abandoned {
            Some(_) => None,
            None => self.client.channel().tls().retry(),
        }
    }

    /// Notes that the step about to be taken has waited for other connections' work.
    pub(crate) fn waited(&mut self, end: Side, wait: Duration) {
        let times = &self.notes.times;
        let waits = &mut self.notes.waits;
        match (end, &self.server) {
            _ if times.ttlb.is_some() => {}
            (Side::Client, _) if times.handshake.is_some() => waits.last = wait,
            (Side::Server, Some(server)) if server.is_responding() => {}
            (Side::Server, Some(server)) if server.is_receiving(&self.exchange) => {
                waits.last = wait;
            }
            (Side::Client | Side::Server, _) => waits.handshake += wait,
        }
    }

    /// Until when the client has nothing to do, if it is thinking or waits for a record.
    pub(crate) fn thinks_until(&self) -> Option<Time> {
        self.client.thinks_until()
    }

    /// What it comes to when there is no more time.
    pub(crate) fn expire(&self) -> Outcome {
        // It may have waited for nothing but DNS.
        self.delivered().unwrap_or(Outcome::TimedOut)
    }

    /// Ends it: reads TCP_INFO and closes both sockets at once.
    pub(crate) fn finish(self, outcome: Outcome) -> EndedConnection {
        let client = self.client.channel();
        let established = self.notes.times.handshake.map(|_| client.tls());
        let dns = self.lookup.map(|lookup| lookup.finish(established));
        let client_stats = client.close();
        let mut keys = client.tls().key_log();
        let server = self.server.as_ref().map(Server::channel);
        let server_stats = server.and_then(|server| server.close());
        if let Some(server) = server
            && keys.as_str().is_empty()
        {
            keys = server.tls().key_log();
        }
        let ticket_bytes = match &self.server {
            Some(server) => server.ticket_bytes(),
            None => self.notes.observer.ticket_bytes(&keys),
        };
        EndedConnection {
            outcome,
            times: self.notes.times,
            waited: self.notes.waits.total(),
            keys,
            transport: TransportStats::of(client_stats, server_stats),
            dns: dns.unwrap_or_default(),
            amplification: None,
            seen: Seen::Records {
                observer: self.notes.observer,
                ticket_bytes,
                failed: self.abandoned.map(Abandoned::finish),
            },
        }
    }

    /// Complete when everything is delivered and DNS has nothing more to say.
    fn outcome(&self) -> Option<Outcome> {
        let is_answered = self.lookup.as_ref().is_none_or(Lookup::is_answered);
        self.delivered().filter(|_| is_answered)
    }

    /// Whether the client has its last byte and the server the client's, EndedConnection included.
    fn delivered(&self) -> Option<Outcome> {
        if !self.client.is_done() {
            return None;
        }
        if self.exchange.server.is_foreign() {
            // Nobody can ask it; but all that it has sent is here, and all that it was to have is sent.
            return self.notes.times.handshake.map(|_| Outcome::Completed);
        }
        let server = self.server.as_ref()?;
        match server.failure() {
            Some(failure) => Some(Outcome::Failed {
                cause: Cause::Server(failure.kind()),
                reason: format!("server: {failure}"),
            }),
            None => server.is_done().then_some(Outcome::Completed),
        }
    }

    fn client_failed(&self, failure: &Failure) -> Outcome {
        match self.server.as_ref().and_then(Server::failure) {
            Some(first) => Outcome::Failed {
                cause: Cause::Server(first.kind()),
                reason: format!("server: {first}; client: {failure}"),
            },
            None => Outcome::Failed {
                cause: Cause::Client(failure.kind()),
                reason: format!("client: {failure}"),
            },
        }
    }
}

impl Abandoned {
    /// Closes its server at once, if that has not learnt of it.
    fn finish(self) -> FailedConnection {
        if let Some(server) = &self.server {
            server.channel().close();
        }
        FailedConnection {
            observer: self.notes.observer,
            keys: self.keys,
        }
    }
}

/// Of a connection whose DNS servers gave no address.
pub(crate) fn could_not_resolve(reason: &str) -> Outcome {
    Outcome::Failed {
        cause: Cause::Dns,
        reason: format!("DNS: {reason}"),
    }
}

/// Of one whose client's `connect()` failed at once.
pub(crate) fn could_not_connect(error: Errno) -> Outcome {
    Outcome::Failed {
        cause: Cause::Client(FailureKind::Connect),
        reason: format!("client: connect: {error}"),
    }
}

/// The kernel's clock, `CLOCK_MONOTONIC`.
pub(crate) struct KernelClock;

impl Clock for KernelClock {
    fn now(&self) -> Time {
        sys::now()
    }

    fn spend(&self, cost: Duration) {
        spend(cost);
    }
}

/// Lets the clock go on by what computing takes.
pub(crate) fn spend(cost: Duration) {
    if !cost.is_zero() {
        thread::sleep(cost);
    }
}
