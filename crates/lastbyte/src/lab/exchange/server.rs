//! The server's end.

use lastbyte_link::{Side, Time};
use lastbyte_tls::Progress;

use super::{Exchange, Notes, Turn, encrypt, encrypt_apart};
use crate::lab::channel::{Channel, Hold, Input};
use crate::lab::failure::{During, Failure};
use crate::study::Writes;
use crate::study::exchange::REQUEST;

/// The server's end of a connection.
pub(crate) struct Server {
    channel: Box<dyn Channel>,
    state: State,
    progress: Progress,
    /// Requests that it has answered.
    answered: u32,
    /// On the wire, record framing included.
    ticket_bytes: usize,
    /// When it had verified the client's Finished.
    established: Option<Time>,
    /// When it had the last request.
    received: Option<Time>,
}

#[derive(Debug)]
enum State {
    AwaitingRequest { missing: u64 },
    Responding { sent: u64, writes: usize },
    Done,
    Failed(Failure),
}

impl Server {
    /// A server that has accepted a connection.
    pub(crate) fn new(channel: Box<dyn Channel>, exchange: &Exchange) -> Self {
        Self {
            channel,
            state: State::after(0, exchange),
            progress: Progress::Handshaking,
            answered: 0,
            ticket_bytes: 0,
            established: None,
            received: None,
        }
    }

    pub(crate) fn channel(&self) -> &dyn Channel {
        self.channel.as_ref()
    }

    /// Of its session tickets on the wire, record framing included.
    pub(crate) fn ticket_bytes(&self) -> usize {
        self.ticket_bytes
    }

    /// Whether it has sent its last byte and has the client's, Finished included.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done) && self.progress == Progress::Established
    }

    /// Why it could not go on.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Whether it waits for a request, or for the rest of one.
    pub(crate) fn is_awaiting(&self) -> bool {
        matches!(self.state, State::AwaitingRequest { .. })
    }

    /// Whether it is in the midst of a request's body.
    pub(crate) fn is_receiving(&self, exchange: &Exchange) -> bool {
        matches!(self.state, State::AwaitingRequest { missing } if missing < exchange.upload)
    }

    /// Whether it has all that it was to receive, or all so far.
    pub(crate) fn is_responding(&self) -> bool {
        matches!(self.state, State::Responding { .. } | State::Done)
    }

    /// Goes as far as it gets. A failure is its state then, and it tells the client.
    pub(crate) fn drive(&mut self, turn: &mut Turn<'_>, exchange: &Exchange, notes: &mut Notes) {
        if let Err(failure) = self.try_drive(turn, exchange, notes) {
            self.fail(failure, turn.hold);
        }
        let since_start = |at: Option<Time>| at.map(|at| at.since(notes.started));
        notes.times.server_handshake = since_start(self.established);
        if self.received.is_some() {
            notes.times.ttlb = since_start(self.received);
        }
    }

    fn try_drive(
        &mut self,
        turn: &mut Turn<'_>,
        exchange: &Exchange,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        if matches!(self.state, State::Failed(_)) {
            return self.channel.flush(turn.hold);
        }
        let was_awaiting = self.is_awaiting();
        let driven = self.go_on(turn, exchange, notes);
        if was_awaiting && !self.is_awaiting() {
            notes.waits.end_turn();
        }
        driven
    }

    fn go_on(
        &mut self,
        turn: &mut Turn<'_>,
        exchange: &Exchange,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        (self.channel).receive(turn.input, turn.scratch, turn.hold, &mut |_| ())?;
        if self.progress == Progress::Handshaking {
            self.shake_hands(turn, exchange, notes)?;
        }
        self.receive(turn, exchange)?;
        self.respond(turn, exchange)?;
        match (self.channel.input(), self.progress) {
            (Input::Closed, Progress::Handshaking) => Err(Failure::PeerClosed(During::Handshake)),
            _ => Ok(()),
        }
    }

    fn shake_hands(
        &mut self,
        turn: &Turn<'_>,
        exchange: &Exchange,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        let progress = self.channel.advance();
        let bytes = self.channel.take_output();
        notes.observer.sent(Side::Server, bytes);
        match progress {
            Ok(Progress::Established) => {
                self.ticket_bytes = bytes.len();
                turn.clock.spend(exchange.server_cpu.server_finish);
                self.established = Some(turn.clock.now());
            }
            _ if bytes.is_empty() => {}
            _ => turn.clock.spend(exchange.server_cpu.server_flight),
        }
        if progress.is_err() {
            self.channel.flush(turn.hold)?;
        }
        self.progress = progress?;
        Ok(())
    }

    /// Reads what has come of a request.
    fn receive(&mut self, turn: &mut Turn<'_>, exchange: &Exchange) -> Result<(), Failure> {
        while let State::AwaitingRequest { missing } = &mut self.state {
            let count = self.channel.read(turn.scratch)?;
            if count == 0 {
                return Ok(());
            }
            *missing = missing.saturating_sub(count as u64);
            if *missing > 0 {
                continue;
            }
            turn.clock.spend(exchange.server_cpu.decrypt.of(count));
            self.state = match exchange.data {
                0 => {
                    self.received = Some(turn.clock.now());
                    self.answered += 1;
                    State::after(self.answered, exchange)
                }
                data => {
                    (turn.clock).spend(exchange.server_cpu.response(data, exchange.records));
                    State::Responding { sent: 0, writes: 0 }
                }
            };
        }
        Ok(())
    }

    /// Encrypts and sends as much of the response as the transport takes.
    fn respond(&mut self, turn: &Turn<'_>, exchange: &Exchange) -> Result<(), Failure> {
        loop {
            self.encrypt(exchange, turn.scratch)?;
            self.channel.flush(turn.hold)?;
            if !matches!(self.state, State::Responding { .. }) || !self.channel.is_flushed() {
                return Ok(());
            }
        }
    }

    /// Encrypts as much of the response as may wait.
    fn encrypt(&mut self, exchange: &Exchange, scratch: &[u8]) -> Result<(), Failure> {
        let channel = self.channel.as_mut();
        if let State::Responding { sent, writes } = &mut self.state {
            while *sent < exchange.data
                && channel.has_room()
                && let Some(size) = exchange.responses.size(*writes)
            {
                let end = exchange.data.min(*sent + u64::from(size));
                encrypt_apart(channel, sent, end, exchange.records, scratch)?;
                *writes += 1;
            }
            if exchange.responses == Writes::WHOLE {
                encrypt(channel, sent, exchange.data, exchange.records, scratch)?;
            }
            if *sent == exchange.data {
                self.answered += 1;
                self.state = State::after(self.answered, exchange);
            }
        }
        Ok(())
    }

    /// Sends the alert, if the stack has one, and closes for writing.
    fn fail(&mut self, failure: Failure, hold: Hold<'_>) {
        self.channel.take_output();
        // The peer may be gone already; the reason that we have is the better one.
        let _ = self.channel.flush(hold);
        self.channel.close_writing();
        self.state = State::Failed(failure);
    }
}

impl State {
    /// When so many requests are answered.
    fn after(answered: u32, exchange: &Exchange) -> Self {
        if answered < exchange.requests {
            State::AwaitingRequest {
                missing: REQUEST.len() as u64 + exchange.upload,
            }
        } else {
            State::Done
        }
    }
}
