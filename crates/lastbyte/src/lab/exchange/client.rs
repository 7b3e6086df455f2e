//! The client's end.

use std::time::Duration;

use lastbyte_link::{Side, Time};
use lastbyte_tls::{Connection, Progress, TlsError};

use super::head::Head;
use super::{EarlyRequest, Exchange, Notes, Turn, encrypt, plaintext};
use crate::lab::channel::{Awaited, Channel, Input};
use crate::lab::failure::{During, Failure};
use crate::lab::shortcuts::WakePolicy;
use crate::study::exchange::{REQUEST, early_upload};

/// The client's end of a connection.
pub(crate) struct Client {
    channel: Box<dyn Channel>,
    state: State,
    early_request: EarlyRequest,
    /// How much of its body went with it.
    early_upload: u64,
    /// Requests that were answered.
    answered: u32,
    /// What must be sent until the handshake is, of all that was queued.
    handshake: Option<u64>,
    /// What has come of the head of a response, until all has.
    head: Option<Head>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Connecting,
    /// Connected, but not sure yet what the source delivers.
    AwaitingSource {
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

/// Where a client may get something from before its ClientHello.
pub(crate) trait Source {
    /// The transport is established.
    fn connected(&mut self, now: Time);

    /// What a client that is connected does at `now`.
    ///
    /// # Errors
    ///
    /// Those of making its TLS.
    fn decide(&mut self, now: Time) -> Result<Step, TlsError>;
}

/// What a client that is connected does.
pub(crate) enum Step {
    /// It waits for its source until then.
    Wait(Time),
    /// It sends this connection's ClientHello.
    Offer(Box<dyn Connection>),
    /// It sends the one that it has.
    Plain,
}

/// Whether the ClientHello is among what is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hello {
    /// It is; what came before it, early data, took this long.
    Now { early_data: Duration },
    /// It was sent before.
    Sent,
}

impl Client {
    /// A client whose transport is being established. Its TLS is one that has nothing from a source.
    pub(crate) fn new(channel: Box<dyn Channel>, exchange: &Exchange) -> Self {
        Self {
            channel,
            state: State::Connecting,
            early_request: exchange.early_request,
            early_upload: 0,
            answered: 0,
            handshake: None,
            head: None,
        }
    }

    pub(crate) fn channel(&self) -> &dyn Channel {
        self.channel.as_ref()
    }

    /// Whether it has its last byte.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Until when it has nothing to do, if it is thinking or waits for its source.
    pub(crate) fn thinks_until(&self) -> Option<Time> {
        match self.state {
            State::Thinking { until } | State::AwaitingSource { until } => Some(until),
            _ => None,
        }
    }

    /// Goes as far as it gets.
    pub(crate) fn drive(
        &mut self,
        turn: &mut Turn<'_>,
        exchange: &Exchange,
        source: Option<&mut (dyn Source + '_)>,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        let Some(hello) = self.begin(turn, exchange, source, notes)? else {
            return Ok(());
        };
        // What our own server sends, it notes itself.
        let is_unheard = exchange.server.is_foreign() && notes.times.ttfb.is_none();
        let observer = &mut notes.observer;
        (self.channel).receive(turn.input, turn.scratch, turn.hold, &mut |bytes| {
            if is_unheard {
                observer.sent(Side::Server, bytes);
            }
        })?;
        if matches!(self.state, State::Handshaking) {
            self.shake_hands(hello, turn, exchange, notes)?;
        }
        self.channel.flush(turn.hold)?;
        self.note_handshake(turn, exchange, notes);
        self.request_and_receive(turn, exchange, notes)?;
        if exchange.wakes == WakePolicy::Progress {
            self.wake_when_it_matters(notes);
        }
        self.check_open()
    }

    /// Establishes the transport and asks the source, if it has not yet. None while there is nothing to say.
    fn begin(
        &mut self,
        turn: &Turn<'_>,
        exchange: &Exchange,
        mut source: Option<&mut (dyn Source + '_)>,
        notes: &mut Notes,
    ) -> Result<Option<Hello>, Failure> {
        if matches!(self.state, State::Connecting) {
            if !self.channel.is_connected()? {
                return Ok(None);
            }
            // Of a client that tries once more, the first one counts.
            let connected = notes.since_start(turn.clock);
            notes.times.connect = notes.times.connect.or(connected);
            if let Some(bytes) = exchange.receive_buffer.bytes() {
                self.channel.set_receive_buffer(bytes)?;
            }
            let now = turn.clock.now();
            if let Some(source) = &mut source {
                source.connected(now);
            }
            self.state = State::AwaitingSource { until: now };
        }
        if !matches!(self.state, State::AwaitingSource { .. }) {
            return Ok(Some(Hello::Sent));
        }
        let step = match source {
            Some(source) => source.decide(turn.clock.now())?,
            None => Step::Plain,
        };
        match step {
            Step::Wait(until) => {
                self.state = State::AwaitingSource { until };
                return Ok(None);
            }
            Step::Offer(tls) => self.channel.use_tls(tls),
            Step::Plain => {}
        }
        self.state = State::Handshaking;
        let early_data = self.try_early_request(exchange, turn.scratch)?;
        Ok(Some(Hello::Now { early_data }))
    }

    /// Has the first request go with the ClientHello, as much of it as a server takes, if it should and
    /// the session allows it. Gives what that costs.
    fn try_early_request(
        &mut self,
        exchange: &Exchange,
        scratch: &[u8],
    ) -> Result<Duration, Failure> {
        if self.early_request != EarlyRequest::Tried {
            return Ok(Duration::ZERO);
        }
        if !self.channel.write_early(REQUEST)? {
            self.early_request = EarlyRequest::None;
            return Ok(Duration::ZERO);
        }
        self.early_request = EarlyRequest::Sent;
        let most = early_upload(exchange.upload);
        while self.early_upload < most {
            let payload = exchange.records.payload(self.early_upload, most);
            if !self.channel.write_early(plaintext(scratch, payload)?)? {
                return Err(TlsError::NoEarlyData.into());
            }
            self.early_upload += payload as u64;
        }
        Ok(exchange
            .client_cpu
            .encrypt
            .of(REQUEST.len() + most as usize))
    }

    fn shake_hands(
        &mut self,
        hello: Hello,
        turn: &Turn<'_>,
        exchange: &Exchange,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        let progress = self.channel.advance();
        let is_established = matches!(progress, Ok(Progress::Established));
        let cost = match (is_established, hello) {
            (true, _) => exchange.client_cpu.client_finish + self.begin_request(exchange)?,
            (false, Hello::Now { early_data }) => exchange.client_cpu.client_hello + early_data,
            (false, Hello::Sent) => exchange.client_cpu.client_hello,
        };
        let bytes = self.channel.take_output();
        if !bytes.is_empty() {
            turn.clock.spend(cost);
        }
        notes.observer.sent(Side::Client, bytes);
        if is_established {
            self.handshake = Some(self.channel.queued());
            self.encrypt(exchange, turn.scratch)?;
        }
        self.channel.flush(turn.hold)?;
        progress.map(drop)
    }

    /// Notes when all of the handshake is sent.
    fn note_handshake(&mut self, turn: &Turn<'_>, exchange: &Exchange, notes: &mut Notes) {
        if let Some(queued) = self.handshake
            && self.channel.sent() >= queued
        {
            self.handshake = None;
            notes.times.handshake = notes.since_start(turn.clock);
            if exchange.requests == 0 {
                notes.times.ttlb = notes.times.handshake;
            }
        }
    }

    /// Sends requests and takes responses, until something has to come or to go first.
    fn request_and_receive(
        &mut self,
        turn: &mut Turn<'_>,
        exchange: &Exchange,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        loop {
            self.send(turn, exchange)?;
            self.receive(turn, exchange, notes)?;
            match self.state {
                State::Thinking { until } if until <= turn.clock.now() => {
                    turn.clock.spend(self.begin_request(exchange)?);
                    self.channel.take_output();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Encrypts the head of the next request, if there is one. Gives what that costs.
    fn begin_request(&mut self, exchange: &Exchange) -> Result<Duration, Failure> {
        if exchange.requests == 0 {
            self.state = State::Done;
            return Ok(Duration::ZERO);
        }
        let has_gone = self.answered == 0
            && self.early_request == EarlyRequest::Sent
            && self.channel.tls().is_early_data_accepted();
        let sent = if has_gone { self.early_upload } else { 0 };
        self.state = State::Requesting { sent };
        let mut cost = (exchange.client_cpu).response(exchange.upload - sent, exchange.records);
        if !has_gone {
            self.channel.write(REQUEST)?;
            cost += exchange.client_cpu.encrypt.of(REQUEST.len());
        }
        Ok(cost)
    }

    /// Sends as much of the request as the transport takes.
    fn send(&mut self, turn: &Turn<'_>, exchange: &Exchange) -> Result<(), Failure> {
        loop {
            self.encrypt(exchange, turn.scratch)?;
            self.channel.flush(turn.hold)?;
            if !matches!(self.state, State::Requesting { .. }) || !self.channel.is_flushed() {
                return Ok(());
            }
        }
    }

    /// Encrypts as much of the request's body as may wait.
    fn encrypt(&mut self, exchange: &Exchange, scratch: &[u8]) -> Result<(), Failure> {
        if let State::Requesting { sent } = &mut self.state {
            let (length, records) = (exchange.upload, exchange.records);
            encrypt(self.channel.as_mut(), sent, length, records, scratch)?;
            if *sent == length {
                self.state = match exchange.data {
                    0 => State::Done,
                    remaining => State::Receiving { remaining },
                };
                self.head = exchange.server.is_foreign().then(Head::default);
            }
        }
        Ok(())
    }

    /// Takes what has come of a response.
    fn receive(
        &mut self,
        turn: &mut Turn<'_>,
        exchange: &Exchange,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        while let State::Receiving { remaining } = self.state {
            let count = self.channel.read(turn.scratch)?;
            if count == 0 {
                break;
            }
            let is_first = notes.times.ttfb.is_none();
            let payload = match &mut self.head {
                Some(head) => head.take(&turn.scratch[..count], exchange.data)?,
                None => Some(count),
            };
            if payload.is_some() {
                self.head = None;
            }
            let remaining = remaining.checked_sub(payload.unwrap_or(0) as u64);
            let remaining = remaining.ok_or(Failure::TooMuchData)?;
            self.state = State::Receiving { remaining };
            // What comes between is decrypted while the rest is under way.
            if is_first || remaining == 0 {
                turn.clock.spend(exchange.client_cpu.decrypt.of(count));
            }
            if is_first {
                notes.times.ttfb = notes.since_start(turn.clock);
            }
            if remaining == 0 {
                self.end_response(turn, exchange, notes);
            }
        }
        Ok(())
    }

    fn end_response(&mut self, turn: &Turn<'_>, exchange: &Exchange, notes: &mut Notes) {
        self.answered += 1;
        if self.answered == exchange.requests {
            notes.times.ttlb = notes.since_start(turn.clock);
            self.state = State::Done;
        } else {
            notes.waits.end_turn();
            let until = turn.clock.now() + exchange.think;
            self.state = State::Thinking { until };
        }
    }

    /// Asks to be woken when there is enough to go on with.
    fn wake_when_it_matters(&mut self, notes: &Notes) {
        let awaited = match self.state {
            // At least so much comes before the last byte.
            State::Receiving { remaining } if notes.times.ttfb.is_some() => {
                Awaited::Payload(remaining)
            }
            State::Handshaking | State::Receiving { .. } => Awaited::Decryptable,
            _ => Awaited::Anything,
        };
        self.channel.wake_for(awaited);
    }

    /// Whether the peer may still send what is missing.
    fn check_open(&self) -> Result<(), Failure> {
        if self.channel.input() == Input::Open {
            return Ok(());
        }
        Err(Failure::PeerClosed(match self.state {
            State::Handshaking => During::Handshake,
            State::Requesting { .. } | State::Thinking { .. } => During::Request,
            State::Receiving { remaining } => During::Response { missing: remaining },
            State::Connecting | State::AwaitingSource { .. } | State::Done => return Ok(()),
        }))
    }
}
