//! One connection: who asks for what, and when it comes.

use std::sync::Arc;
use std::time::Duration;

use lastbyte_exchange::{Handshake, Quic, Transport};
use lastbyte_link::{Side, Time, mix};
use lastbyte_quic::{Congestion, End, Ended, Request, Settings};
use lastbyte_tls::observer::Message;
use lastbyte_tls::observer::quic::{Packet, PacketKind, QuicObservation, QuicObserver};
use lastbyte_tls::{Randomness, TlsError};

use super::path::{Datagram, Network};
use crate::lab::PreparedArm;
use crate::lab::failure::Failure;
use crate::lab::luck::link_seed;
use crate::lab::row;
use crate::results::{
    Cause, Dns, Exchange, FailureKind, HandshakeFlight, Lateness, Measurement, Outcome, QuicStats,
    Row, Times, TransportStats,
};
use crate::study::exchange::REQUEST;
use crate::study::{self, Cell, Experiment};

/// What a payload consists of.
static PAYLOAD: [u8; 1 << 16] = [b'z'; 1 << 16];
/// When a connection begins.
const START: Time = Time(0);
/// What happens on one connection at most, whatever it asks for: enough for gigabytes.
const MOST_STEPS: u64 = 1 << 32;

/// A connection that has come to its end.
pub(super) struct Carried {
    pub(super) row: Row,
    /// All that were sent.
    #[cfg_attr(not(test), allow(dead_code, reason = "arithmetic is held against it"))]
    pub(super) datagrams: Vec<Datagram>,
    /// Those of the handshake.
    pub(super) observed: QuicObservation,
}

/// Carries connection `index` of a sample to its end.
pub(super) fn connection(
    arm: &PreparedArm,
    cell: &Cell,
    experiment: &Experiment,
    index: u32,
) -> Carried {
    connection_losing(arm, cell, experiment, index, None)
}

/// The same with this datagram lost besides, by its number among its sender's, from 0.
pub(super) fn connection_losing(
    arm: &PreparedArm,
    cell: &Cell,
    experiment: &Experiment,
    index: u32,
    lost: Option<(Side, u32)>,
) -> Carried {
    let seed = experiment.seed.part("QUIC").0 ^ u64::from(index);
    let _seeded = Randomness::of_seed(mix(seed));
    let settings = |window: u32, datagram: u16| Settings {
        initial_rtt: cell.quic.initial_rtt,
        congestion: match cell.congestion {
            study::Congestion::Cubic => Congestion::Cubic,
            study::Congestion::Reno => Congestion::NewReno,
            study::Congestion::Bbr => Congestion::Bbr,
        },
        ..Settings::with_window(window, datagram)
    };
    let stack = || Arc::clone(&arm.stack);
    let client = End::client(
        stack(),
        &settings(cell.client_initcwnd, cell.quic.client_datagram),
        mix(seed ^ 1),
        START,
    );
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            let reason = error.to_string();
            return Carried {
                row: failed(index, Cause::Client(FailureKind::Tls), reason),
                datagrams: Vec::new(),
                observed: QuicObservation::default(),
            };
        }
    };
    let server = End::server(
        stack(),
        &settings(cell.initcwnd, cell.quic.server_datagram),
        mix(seed ^ 2),
    );
    let work = cell.work();
    let connection = Connection {
        network: Network::new(
            &cell.link,
            link_seed(experiment.seed, &cell.link),
            index,
            lost,
        ),
        client: Client {
            end: client,
            state: State::Handshaking,
            answered: 0,
        },
        server: Server {
            end: server,
            answering: None,
        },
        work: Work {
            requests: work.requests,
            upload: work.upload.0,
            data: work.data.0,
            think: cell.think,
        },
        times: Times::default(),
        observer: QuicObserver::default(),
        now: START,
    };
    connection.run(experiment.timeout, index)
}

/// What both ends are to do.
#[derive(Clone, Copy)]
struct Work {
    requests: u32,
    /// The body of each request, in bytes.
    upload: u64,
    /// Each response, in bytes.
    data: u64,
    /// From the end of a response to the next request.
    think: Duration,
}

impl Work {
    fn request_bytes(&self) -> u64 {
        REQUEST.len() as u64 + self.upload
    }
}

struct Connection {
    network: Network,
    client: Client,
    server: Server,
    work: Work,
    times: Times,
    observer: QuicObserver,
    now: Time,
}

struct Client {
    end: End,
    state: State,
    answered: u32,
}

#[derive(Clone, Copy)]
enum State {
    Handshaking,
    /// How much of the request was given to the transport.
    Requesting {
        request: Request,
        sent: u64,
    },
    /// How much of the response has come.
    Receiving {
        request: Request,
        received: u64,
    },
    Thinking {
        until: Time,
    },
    Done,
}

struct Server {
    end: End,
    answering: Option<Answering>,
}

#[derive(Clone, Copy)]
struct Answering {
    request: Request,
    received: u64,
    /// How much of the response was given to the transport, once the request is here.
    sent: Option<u64>,
}

impl Connection {
    fn run(mut self, timeout: Duration, index: u32) -> Carried {
        let end = Time(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let mut outcome = None;
        for _ in 0..MOST_STEPS {
            self.step();
            outcome = self.outcome();
            if outcome.is_some() {
                break;
            }
            match self.next().filter(|next| *next <= end) {
                Some(next) => self.now = next.max(self.now),
                None => {
                    self.now = end;
                    break;
                }
            }
        }
        let keys = self.client.end.key_log();
        let observed = self.observer.observe(&keys);
        let row = Row {
            index,
            block: 0,
            outcome: outcome.unwrap_or(Outcome::TimedOut),
            times: self.times,
            exchange: exchange(&observed),
            dns: Dns::default(),
            measurement: Measurement::Transfer,
            transport: self.stats(),
            lateness: Lateness::default(),
        };
        Carried {
            row,
            datagrams: self.network.datagrams,
            observed,
        }
    }

    /// What happens now: one datagram comes at a time, as at a socket, and each end answers it before the next. An end at
    /// which nothing happens sends nothing, whatever it might.
    fn step(&mut self) {
        let thinks_no_more =
            matches!(self.client.state, State::Thinking { until } if until <= self.now);
        if self.client.end.on_time(self.now) || thinks_no_more || self.now == START {
            self.turn(Side::Client);
        }
        if self.server.end.on_time(self.now) {
            self.turn(Side::Server);
        }
        while let Some((receiver, datagram)) = self.network.arrived(self.now) {
            let end = match receiver {
                Side::Client => &mut self.client.end,
                Side::Server => &mut self.server.end,
            };
            if let Some(answer) = end.receive(self.now, &datagram) {
                self.network.send(self.now, receiver, answer);
            }
            self.turn(receiver);
        }
    }

    /// Has an end do what it can, and send what it has.
    fn turn(&mut self, side: Side) {
        match side {
            Side::Client => self.drive_client(),
            Side::Server => self.drive_server(),
        }
        self.transmit(side);
    }

    fn transmit(&mut self, side: Side) {
        let is_complete = self.times.handshake.is_some() && self.times.server_handshake.is_some();
        let mut datagram = Vec::new();
        loop {
            let end = match side {
                Side::Client => &mut self.client.end,
                Side::Server => &mut self.server.end,
            };
            if !end.transmit(self.now, &mut datagram) {
                return;
            }
            if !is_complete {
                self.observer.sent(side, &datagram);
            }
            self.network.send(self.now, side, datagram.clone());
        }
    }

    fn since_start(&self) -> Option<Duration> {
        Some(self.now.since(START))
    }

    fn drive_client(&mut self) {
        let now = self.since_start();
        let work = self.work;
        loop {
            self.client.state = match self.client.state {
                State::Handshaking if self.client.end.is_established() => {
                    // Its Finished leaves now.
                    self.times.handshake = now;
                    if work.requests == 0 {
                        self.times.ttlb = now;
                        State::Done
                    } else {
                        State::Thinking { until: self.now }
                    }
                }
                State::Thinking { until } if until <= self.now => match self.client.end.open() {
                    Some(request) => State::Requesting { request, sent: 0 },
                    None => return,
                },
                State::Requesting { request, sent } => {
                    let left = work.request_bytes() - sent;
                    let written = write(&mut self.client.end, request, left);
                    match (written == left, written) {
                        (true, _) => {
                            self.client.end.finish(request);
                            match work.data {
                                0 => State::Done,
                                _ => State::Receiving {
                                    request,
                                    received: 0,
                                },
                            }
                        }
                        (false, 0) => return,
                        (false, written) => State::Requesting {
                            request,
                            sent: sent + written,
                        },
                    }
                }
                State::Receiving { request, received } => {
                    let (bytes, is_all) = self.client.end.read(request);
                    if bytes > 0 {
                        self.times.ttfb = self.times.ttfb.or(now);
                    }
                    if !is_all {
                        self.client.state = State::Receiving {
                            request,
                            received: received + bytes,
                        };
                        return;
                    }
                    self.client.answered += 1;
                    if self.client.answered == work.requests {
                        self.times.ttlb = now;
                        State::Done
                    } else {
                        State::Thinking {
                            until: self.now + work.think,
                        }
                    }
                }
                State::Handshaking | State::Thinking { .. } | State::Done => return,
            };
        }
    }

    fn drive_server(&mut self) {
        let now = self.since_start();
        let Server { end, answering } = &mut self.server;
        if end.is_established() {
            self.times.server_handshake = self.times.server_handshake.or(now);
        }
        loop {
            let Some(current) = answering else {
                let Some(request) = end.accept() else {
                    return;
                };
                *answering = Some(Answering {
                    request,
                    received: 0,
                    sent: None,
                });
                continue;
            };
            match current.sent {
                None => {
                    let (bytes, is_all) = end.read(current.request);
                    current.received += bytes;
                    if !is_all {
                        return;
                    }
                    current.sent = Some(0);
                    if self.work.data == 0 {
                        self.times.ttlb = self.times.ttlb.or(now);
                    }
                }
                Some(sent) => {
                    let left = self.work.data - sent;
                    let written = write(end, current.request, left);
                    if written < left && written == 0 {
                        return;
                    }
                    current.sent = Some(sent + written);
                    if written == left {
                        end.finish(current.request);
                        *answering = None;
                    }
                }
            }
        }
    }

    /// When something happens next.
    fn next(&mut self) -> Option<Time> {
        let thinking = match self.client.state {
            State::Thinking { until } if until > self.now => Some(until),
            _ => None,
        };
        [
            self.network.next_arrival(),
            self.client.end.deadline(),
            self.server.end.deadline(),
            thinking,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// What the connection has come to, once it has.
    fn outcome(&self) -> Option<Outcome> {
        let is_done = matches!(self.client.state, State::Done);
        if is_done && self.times.ttlb.is_some() && self.times.server_handshake.is_some() {
            return Some(Outcome::Completed);
        }
        let failed = |ended: &Ended, cause: fn(FailureKind) -> Cause, end: &str| {
            let failure = Failure::from(ended);
            Outcome::Failed {
                cause: cause(failure.kind()),
                reason: format!("{end}: {failure}"),
            }
        };
        let (client, server) = (self.client.end.ended(), self.server.end.ended());
        // Who has an error of its own failed first, and the other hears of it.
        let is_told =
            |ended: Option<&Ended>| matches!(ended, Some(Ended::Tls(TlsError::Refused(_))));
        match (client, server) {
            (Some(client), Some(server)) if is_told(Some(client)) => {
                Some(failed(server, Cause::Server, "server"))
            }
            // It may still hear why.
            (Some(ended), _) => Some(failed(ended, Cause::Client, "client")),
            (None, Some(ended))
                if !is_told(Some(ended)) && self.network.next_arrival().is_none() =>
            {
                Some(failed(ended, Cause::Server, "server"))
            }
            (None, _) => None,
        }
    }

    fn stats(&self) -> TransportStats {
        let number = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let of = |end: &End, side: Side| {
            let stats = end.stats()?;
            let sent = self.network.sent(side);
            let credit = self.network.credit();
            let is_server = side == Side::Server;
            Some(QuicStats {
                datagrams: sent.datagrams,
                udp_bytes: number(sent.bytes),
                lost: number(stats.lost),
                rtt: stats.rtt,
                cwnd_bytes: number(stats.window),
                unvalidated_bytes: is_server.then(|| number(credit.sent)),
                credited_bytes: is_server.then(|| number(credit.received)),
                blocked_by_credit: is_server.then_some(credit.blocked),
            })
        };
        TransportStats::Quic {
            client: of(&self.client.end, Side::Client),
            server: of(&self.server.end, Side::Server),
        }
    }
}

/// Gives the transport as much of a payload as it takes.
fn write(end: &mut End, request: Request, left: u64) -> u64 {
    let most = usize::try_from(left)
        .unwrap_or(usize::MAX)
        .min(PAYLOAD.len());
    let payload = PAYLOAD.get(..most).unwrap_or_default();
    end.write(request, payload) as u64
}

/// The row of a connection that never was.
fn failed(index: u32, cause: Cause, reason: String) -> Row {
    Row {
        index,
        outcome: Outcome::Failed { cause, reason },
        exchange: Exchange {
            transport: Transport::Quic(Quic::default()),
            ..Exchange::default()
        },
        transport: TransportStats::Quic {
            client: None,
            server: None,
        },
        ..Row::default()
    }
}

/// What was seen of a handshake on its datagrams.
fn exchange(observed: &QuicObservation) -> Exchange {
    // Payload of the datagrams that have handshake messages in packets of one kind.
    let carrying = |sender: Side, kinds: &[PacketKind]| -> Vec<u32> {
        let is_one = |packet: &Packet| {
            kinds.contains(&packet.kind) && packet.crypto.is_some_and(|bytes| bytes > 0)
        };
        let sent = observed.datagrams.iter();
        let datagrams =
            sent.filter(|sent| sent.sender == sender && sent.packets.iter().any(is_one));
        datagrams.map(|datagram| datagram.bytes as u32).collect()
    };
    let sum = |sender, kinds: &[PacketKind]| {
        let datagrams = carrying(sender, kinds).into_iter();
        datagrams.reduce(|one, other| one.saturating_add(other))
    };
    let both = [PacketKind::Initial, PacketKind::Handshake];
    let hellos = carrying(Side::Client, &[PacketKind::Initial]).len();
    let mut handshake = Handshake::of(observed.handshake.messages);
    let has_retry = observed
        .handshake
        .bytes(Message::HelloRetryRequest)
        .is_some();
    if !has_retry {
        handshake.see_all([
            (
                HandshakeFlight::ClientHello,
                sum(Side::Client, &[PacketKind::Initial]),
            ),
            (HandshakeFlight::Server, sum(Side::Server, &both)),
            (
                HandshakeFlight::ClientFinish,
                sum(Side::Client, &[PacketKind::Handshake]),
            ),
        ]);
    }
    let hellos = u32::try_from(hellos).unwrap_or(u32::MAX);
    Exchange {
        transport: Transport::Quic(Quic {
            client_hello_datagrams: Some(hellos).filter(|count| *count > 0 && !has_retry),
        }),
        handshake,
        negotiated: row::negotiated(&observed.handshake),
        ..Exchange::default()
    }
}
