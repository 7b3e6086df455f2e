//! Both ends of one connection: who asks for what, and what was noted.

use std::sync::Arc;
use std::time::Duration;

use lastbyte_exchange::AddressValidation;
use lastbyte_link::{EcnCodepoint, Seed, Side, Time, mix};
use lastbyte_quic::{
    Congestion, Ecn, End, EndError, Ended, Kept, MtuDiscovery, Request, Retries, Settings,
    connection_before,
};
use lastbyte_sizes::Resumption;
use lastbyte_tls::observer::quic::QuicObserver;
use lastbyte_tls::{RandomSequence, TlsError};

use super::ledger::Ledger;
use crate::lab::PreparedArm;
use crate::lab::connection::{EndedConnection, Seen};
use crate::lab::exchange::QueueingDelay;
use crate::lab::failure::Failure;
use crate::results::{
    Cause, Dns, FailureKind, Outcome, QuicCounts, QuicStats, Times, TransportStats,
};
use crate::study::exchange::REQUEST;
use crate::study::{self, Cell};

/// What a payload consists of.
static PAYLOAD: [u8; 1 << 16] = [b'z'; 1 << 16];
/// When a connection begins.
const START: Time = Time(0);

/// Takes a datagram that an end sends.
pub(crate) type Transmit<'s> = &'s mut dyn FnMut(Side, EcnCodepoint, &[u8]);

/// How the connections of a sample are set.
#[derive(Clone, Copy)]
pub(crate) struct QuicSettings<'a> {
    arm: &'a PreparedArm,
    client: Settings,
    server: Settings,
    work: Work,
    /// Where the randomness of all of them comes from.
    seed: u64,
}

impl<'a> QuicSettings<'a> {
    /// Of an arm's connections in a cell, whose randomness comes from the seed of their experiment.
    pub(crate) fn new(arm: &'a PreparedArm, cell: &Cell, seed: Seed) -> QuicSettings<'a> {
        let settings = |window: u32, datagram: u16| Settings {
            mtu_discovery: match cell.quic.mtu_discovery {
                study::MtuDiscovery::Off => MtuDiscovery::Off,
                study::MtuDiscovery::On => MtuDiscovery::On,
            },
            ecn: match cell.hosts.ecn {
                study::Ecn::Off => Ecn::Off,
                study::Ecn::On => Ecn::On,
            },
            receives: Settings::RECEIVES.max(cell.quic.largest_datagram()),
            initial_rtt: cell.quic.initial_rtt,
            ack_delay: Some(cell.quic.ack_delay).filter(|delay| *delay != study::Quic::ACK_DELAY),
            congestion: match cell.congestion {
                study::Congestion::Cubic => Congestion::Cubic,
                study::Congestion::Reno => Congestion::NewReno,
                study::Congestion::Bbr => Congestion::Bbr,
            },
            ..Settings::with_window(window, datagram)
        };
        let work = cell.work();
        QuicSettings {
            arm,
            client: settings(cell.client_initcwnd, cell.quic.client_datagram),
            server: settings(cell.initcwnd, cell.quic.server_datagram),
            work: Work {
                requests: work.requests,
                upload: work.upload.0,
                data: work.data.0,
                think: cell.think,
            },
            seed: seed.part("QUIC").0,
        }
    }

    /// That of a connection, of which each of its parts takes one of its own.
    fn seed(&self, index: u32) -> Seed {
        Seed(mix(self.seed ^ u64::from(index)))
    }

    /// What the client of connection `index` has kept of one before it, where the arm has it use something of that. That one
    /// is carried in memory, and takes no time of this one.
    ///
    /// # Errors
    ///
    /// When that one does not get so far.
    pub(crate) fn kept(&self, index: u32) -> Result<Kept, EndError> {
        let arm = &self.arm.arm;
        let resumes = arm.resumption == Resumption::EarlyData;
        let shows = arm.address_validation == Some(AddressValidation::Token);
        if !resumes && !shows {
            return Ok(Kept::default());
        }
        let seed = self.seed(index).part("before");
        // What is drawn for it changes nothing of the one that is measured.
        let mut random = RandomSequence::of_seed(seed.part("TLS").0);
        let kept = random
            .within(|| connection_before(&self.arm.stack, &self.client, &self.server, seed.0))?;
        Ok(match (resumes, shows) {
            (true, false) => kept.session(),
            (false, _) => kept.token(),
            (true, true) => kept,
        })
    }

    /// Where the random numbers of connection `index` come from.
    pub(crate) fn random(&self, index: u32) -> RandomSequence {
        RandomSequence::of_seed(self.seed(index).part("TLS").0)
    }

    /// The client of connection `index`, which begins at once.
    ///
    /// # Errors
    ///
    /// When nothing can be sent at all.
    pub(crate) fn client(&self, index: u32, kept: Kept) -> Result<End, EndError> {
        let seed = self.seed(index).0;
        End::client(Arc::clone(&self.arm.stack), &self.client, kept, seed, START)
    }

    /// Its server.
    pub(crate) fn server(&self, index: u32) -> End {
        let seed = self.seed(index).0;
        let stack = Arc::clone(&self.arm.stack);
        End::server(stack, &self.server, self.retries(), seed)
    }

    fn retries(&self) -> Retries {
        match self.arm.arm.address_validation {
            Some(AddressValidation::Retry) => Retries::Always,
            Some(AddressValidation::Token) | None => Retries::Never,
        }
    }
}

/// Both ends of one connection, which own no socket and read no clock: each step has its time, since the connection's
/// beginning, and never goes back. OpenSSL's random numbers are the connection's own in each.
pub(crate) struct QuicPair {
    random: RandomSequence,
    ends: Ends,
}

/// Whether a datagram may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnderWay {
    Nothing,
    /// Some may be, for all that is known.
    Something,
}

impl QuicPair {
    /// Connection `index` of a sample, whose client has [kept](QuicSettings::kept) something or nothing. It has something to send
    /// at the [first step](QuicPair::on_time), which is due.
    ///
    /// # Errors
    ///
    /// When nothing can be sent at all.
    pub(crate) fn new(
        settings: &QuicSettings<'_>,
        index: u32,
        kept: Kept,
    ) -> Result<QuicPair, EndError> {
        let mut random = settings.random(index);
        let client = random.within(|| settings.client(index, kept))?;
        let server = random.within(|| settings.server(index));
        let ends = Ends {
            client: Client {
                end: client,
                state: State::Beginning,
                answered: 0,
            },
            server: Server {
                end: server,
                answering: None,
            },
            work: settings.work,
            times: Times::default(),
            observer: QuicObserver::default(),
            ledger: Ledger::default(),
            waits: QueueingDelay::default(),
            now: START,
        };
        Ok(QuicPair { random, ends })
    }

    /// Does what is due by now: an end at which nothing happens sends nothing, whatever it might.
    pub(crate) fn on_time(&mut self, now: Time, send: Transmit<'_>) {
        self.random.within(|| self.ends.on_time(now, send));
    }

    /// An end has received a datagram, and answers it.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        receiver: Side,
        ecn: EcnCodepoint,
        datagram: &[u8],
        send: Transmit<'_>,
    ) {
        (self.random).within(|| self.ends.receive(now, receiver, ecn, datagram, send));
    }

    /// When [`on_time`](QuicPair::on_time) has something to do.
    pub(crate) fn due(&mut self) -> Option<Time> {
        self.ends.due()
    }

    /// What the connection has come to, once it has.
    pub(crate) fn outcome(&self, under_way: UnderWay) -> Option<Outcome> {
        self.ends.outcome(under_way)
    }

    /// Notes that the step about to be taken has waited for other connections' work.
    pub(crate) fn waited(&mut self, side: Side, wait: Duration) {
        self.ends.waited(side, wait);
    }

    /// What is left of it.
    pub(crate) fn finish(self, outcome: Outcome) -> EndedConnection {
        let Ends {
            client,
            server,
            times,
            observer,
            waits,
            ..
        } = &self.ends;
        let mut keys = client.end.key_log();
        // A client that never got a whole ServerHello has none of the handshake.
        keys.complete(&server.end.key_log());
        EndedConnection {
            outcome,
            times: *times,
            waited: waits.total(),
            keys,
            transport: self.ends.stats(),
            dns: Dns::default(),
            seen: Seen::Datagrams(observer.clone()),
            amplification: self.ends.ledger.credit.amplification(),
        }
    }
}

/// What is left of a connection whose client could not begin.
pub(crate) fn never_began(error: &EndError) -> EndedConnection {
    EndedConnection {
        outcome: Outcome::Failed {
            cause: Cause::Client(FailureKind::Tls),
            reason: error.to_string(),
        },
        times: Times::default(),
        waited: Duration::ZERO,
        keys: lastbyte_tls::KeyLog::default(),
        transport: TransportStats::Quic {
            client: None,
            server: None,
        },
        dns: Dns::default(),
        seen: Seen::Datagrams(QuicObserver::default()),
        amplification: None,
    }
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

struct Ends {
    client: Client,
    server: Server,
    work: Work,
    times: Times,
    observer: QuicObserver,
    ledger: Ledger,
    waits: QueueingDelay,
    now: Time,
}

struct Client {
    end: End,
    state: State,
    answered: u32,
}

#[derive(Clone, Copy)]
enum State {
    /// Nothing is sent yet.
    Beginning,
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

impl Ends {
    fn on_time(&mut self, now: Time, send: Transmit<'_>) {
        self.now = now;
        let goes_on = match self.client.state {
            State::Beginning => {
                self.client.state = State::Handshaking;
                true
            }
            State::Thinking { until } => until <= now,
            _ => false,
        };
        if self.client.end.on_time(now) || goes_on {
            self.turn(Side::Client, send);
        }
        if self.server.end.on_time(now) {
            self.turn(Side::Server, send);
        }
    }

    fn receive(
        &mut self,
        now: Time,
        receiver: Side,
        ecn: EcnCodepoint,
        datagram: &[u8],
        send: Transmit<'_>,
    ) {
        self.now = now;
        self.ledger.receive(now, receiver, datagram);
        if let Some(answer) = self.end(receiver).receive(now, ecn, datagram) {
            self.observer.sent(receiver, &answer);
            self.ledger.send(now, receiver, &answer);
            send(receiver, EcnCodepoint::NotEct, &answer);
        }
        self.turn(receiver, send);
    }

    /// Has an end do what it can, and send what it has.
    fn turn(&mut self, side: Side, send: Transmit<'_>) {
        match side {
            Side::Client => self.drive_client(),
            Side::Server => self.drive_server(),
        }
        self.transmit(side, send);
    }

    fn transmit(&mut self, side: Side, send: Transmit<'_>) {
        let is_complete = self.is_complete();
        let now = self.now;
        let mut datagram = Vec::new();
        while let Some(ecn) = self.end(side).transmit(now, &mut datagram) {
            if !is_complete {
                self.observer.sent(side, &datagram);
            }
            self.ledger.send(now, side, &datagram);
            send(side, ecn, &datagram);
        }
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client.end,
            Side::Server => &mut self.server.end,
        }
    }

    /// Whether both have completed the handshake.
    fn is_complete(&self) -> bool {
        self.times.handshake.is_some() && self.times.server_handshake.is_some()
    }

    fn since_start(&self) -> Option<Duration> {
        Some(self.now.since(START))
    }

    fn drive_client(&mut self) {
        let now = self.since_start();
        let work = self.work;
        if self.times.handshake.is_none() && self.client.end.is_established() {
            // Its Finished leaves now.
            self.times.handshake = now;
            if work.requests == 0 {
                self.times.ttlb = now;
                self.client.state = State::Done;
            } else if !self.client.end.is_early_data_accepted() {
                // A request that went as early data has to be sent again.
                self.client.state = State::Thinking { until: self.now };
            }
        }
        loop {
            self.client.state = match self.client.state {
                State::Handshaking if work.requests > 0 && self.client.end.has_early_data() => {
                    State::Thinking { until: self.now }
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
                State::Beginning | State::Handshaking | State::Thinking { .. } | State::Done => {
                    return;
                }
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

    fn due(&mut self) -> Option<Time> {
        let thinking = match self.client.state {
            State::Beginning => Some(self.now),
            State::Thinking { until } if until > self.now => Some(until),
            _ => None,
        };
        [
            self.client.end.deadline(),
            self.server.end.deadline(),
            thinking,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// As for TCP: the sum up to the response, and after that the latest.
    fn waited(&mut self, side: Side, wait: Duration) {
        let is_responding = (self.server.answering).is_some_and(|current| current.sent.is_some());
        match side {
            _ if self.times.ttlb.is_some() => {}
            Side::Client if self.times.handshake.is_some() => self.waits.last = wait,
            Side::Server if is_responding => {}
            Side::Client | Side::Server => self.waits.handshake += wait,
        }
    }

    fn outcome(&self, under_way: UnderWay) -> Option<Outcome> {
        let is_done = matches!(self.client.state, State::Done);
        if is_done && self.times.ttlb.is_some() && self.is_complete() {
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
            (None, Some(ended)) if !is_told(Some(ended)) && under_way == UnderWay::Nothing => {
                Some(failed(ended, Cause::Server, "server"))
            }
            (None, _) => None,
        }
    }

    fn stats(&self) -> TransportStats {
        let number = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let of = |end: &End, side: Side| {
            let stats = end.stats()?;
            let sent = self.ledger.sent(side);
            let credit = &self.ledger.credit;
            let is_server = side == Side::Server;
            Some(QuicStats {
                datagrams: sent.datagrams,
                udp_bytes: sent.bytes,
                counted: Some(QuicCounts {
                    lost: number(stats.lost),
                    rtt: stats.rtt,
                    cwnd_bytes: number(stats.window),
                    probes: number(stats.probes),
                    blocked_by_window: stats.blocked_by_window,
                    blocked_by_pacer: stats.blocked_by_pacer,
                }),
                unvalidated_bytes: is_server.then(|| number(credit.sent())),
                credited_bytes: is_server.then(|| number(credit.received())),
                blocked_by_credit: is_server.then_some(credit.blocked()),
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
