//! Who says what on a connection, whatever carries it: both ends as state machines, which own no socket and
//! read no clock but the one that they are given.

mod client;
mod head;
mod server;
#[cfg(test)]
mod tests;

use std::mem;
use std::time::Duration;

use lastbyte_exchange::Records;
use lastbyte_link::Time;
use lastbyte_tls::Resumption;
use lastbyte_tls::observer::Observer;

pub(crate) use self::client::{Client, Source, Step};
pub(crate) use self::server::Server;
use super::channel::{Channel, Hold, Input};
use super::failure::Failure;
use super::shortcuts::{ReadPolicy, WakePolicy};
use crate::results::{CpuCosts, Times};
use crate::study::exchange::records;
use crate::study::{self, Arm, Cell, Flush, ReceiveBuffer, Writes};

/// What the connections of a block exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// Requests on the connection. There is none without data in either direction.
    requests: u32,
    /// The body of each request, in bytes.
    upload: u64,
    /// Payload of each response, in bytes.
    data: u64,
    /// From the end of a response to the next request.
    think: Duration,
    records: Records,
    early_request: EarlyRequest,
    /// Of a response.
    responses: Writes,
    /// Which bytes of a handshake leave in one `write`.
    pub(crate) flush: Flush,
    /// The first part of the ClientHello that leaves in a `write` of its own, in bytes.
    pub(crate) client_hello_split: Option<u16>,
    wakes: WakePolicy,
    pub(crate) reads: ReadPolicy,
    /// What the client sets once it is connected.
    receive_buffer: ReceiveBuffer,
    /// Whose server answers: our own sends payload alone, and others a head of HTTP before it.
    pub(crate) server: study::Server,
    /// What the server's computing takes in a clock in which it takes no time of its own.
    pub(crate) server_cpu: CpuCosts,
    /// What the client's takes.
    pub(crate) client_cpu: CpuCosts,
}

impl Exchange {
    /// What the connections of `arm` exchange in `cell`.
    pub(crate) fn new(arm: &Arm, cell: &Cell, wakes: WakePolicy, cpu: CpuCosts) -> Self {
        let work = cell.work();
        Self {
            requests: work.requests,
            upload: work.upload.0,
            data: work.data.0,
            think: cell.think,
            records: records(arm.record_size, cell),
            responses: cell.hosts.writes,
            early_request: match arm.resumption {
                Resumption::EarlyData if work.requests > 0 => EarlyRequest::Tried,
                _ => EarlyRequest::None,
            },
            flush: arm.flush,
            client_hello_split: arm.client_hello_split,
            wakes,
            reads: ReadPolicy::of(cell),
            receive_buffer: cell.hosts.receive_buffer,
            server: arm.server,
            server_cpu: cpu,
            client_cpu: cpu.slowed(cell.client_cpu.times()),
        }
    }

    /// That of one connection of the sample, by its index.
    pub(crate) fn of_connection(self, index: u32) -> Self {
        Self {
            server_cpu: self.server_cpu.of_connection(index),
            ..self
        }
    }
}

/// Whether the first request goes with the ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyRequest {
    None,
    /// If the session allows it.
    Tried,
    /// It went.
    Sent,
}

/// What an end has when it is its turn.
pub(crate) struct Turn<'t> {
    /// What woke it says of the peer.
    pub(crate) input: Input,
    /// Room for a record, and for what a socket has.
    pub(crate) scratch: &'t mut [u8],
    pub(crate) hold: Hold<'t>,
    pub(crate) clock: &'t dyn Clock,
}

/// The clock of a connection.
pub(crate) trait Clock {
    fn now(&self) -> Time;

    /// Lets the clock go on by what computing takes.
    fn spend(&self, cost: Duration);
}

/// What both ends note of a connection.
#[derive(Default)]
pub(crate) struct Notes {
    /// When `connect()` was called.
    pub(crate) started: Time,
    pub(crate) times: Times,
    pub(crate) waits: QueueingDelay,
    pub(crate) observer: Observer,
}

impl Notes {
    fn since_start(&self, clock: &dyn Clock) -> Option<Duration> {
        Some(clock.now().since(self.started))
    }
}

/// How long the steps that decide a time waited for other connections' work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueingDelay {
    /// Sum over the steps up to the response: each delays all that follows.
    pub(crate) handshake: Duration,
    /// The latest step after that: while data streams, only the last one shows.
    pub(crate) last: Duration,
}

impl QueueingDelay {
    /// What the last step of a turn waited delays all turns that follow.
    fn end_turn(&mut self) {
        self.handshake += mem::take(&mut self.last);
    }

    /// All that the connection waited.
    pub(crate) fn total(self) -> Duration {
        self.handshake + self.last
    }
}

/// Encrypts a payload of `length` bytes from `sent` on, as much of it as may wait.
fn encrypt(
    channel: &mut dyn Channel,
    sent: &mut u64,
    length: u64,
    records: Records,
    scratch: &[u8],
) -> Result<(), Failure> {
    while *sent < length && channel.has_room() {
        let payload = records.payload(*sent, length);
        encrypt_record(channel, sent, payload, scratch)?;
    }
    Ok(())
}

/// Encrypts a payload from `sent` to `end` that leaves apart from the rest, in one record if those
/// may be as large.
fn encrypt_apart(
    channel: &mut dyn Channel,
    sent: &mut u64,
    end: u64,
    records: Records,
    scratch: &[u8],
) -> Result<(), Failure> {
    let before = channel.queued();
    while *sent < end {
        let left = usize::try_from(end - *sent);
        let payload = left.map_or(records.later, |left| left.min(records.later));
        encrypt_record(channel, sent, payload, scratch)?;
    }
    channel.set_apart(before);
    Ok(())
}

fn encrypt_record(
    channel: &mut dyn Channel,
    sent: &mut u64,
    payload: usize,
    scratch: &[u8],
) -> Result<(), Failure> {
    channel.write(plaintext(scratch, payload)?)?;
    *sent += payload as u64;
    channel.take_output();
    Ok(())
}

/// So many bytes, whatever they are.
fn plaintext(scratch: &[u8], length: usize) -> Result<&[u8], Failure> {
    scratch.get(..length).ok_or(Failure::RecordTooLarge(length))
}
