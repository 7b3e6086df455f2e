//! What carries one end of a connection: a transport with TLS on it.

mod boundary;
mod tcp;

pub(crate) use tcp::{SCRATCH, TcpChannel, TcpWriting};

use lastbyte_link::Bytes;
use lastbyte_tls::{Connection, Progress};

use super::failure::Failure;
use super::shared;
use crate::results::EndStats;

/// One end's way to its peer. What is written waits in memory until it is flushed: all that an end
/// has to send at one moment leaves in one `write`, so no stack's own buffering decides the
/// segments.
pub(crate) trait Channel {
    /// Whether the transport is established.
    ///
    /// # Errors
    ///
    /// [`Failure::Connect`] when it never will be.
    fn is_connected(&mut self) -> Result<bool, Failure>;

    /// Has `tls` take the place of the TLS that has sent nothing yet.
    fn use_tls(&mut self, tls: Box<dyn Connection>);

    /// The TLS on it.
    fn tls(&self) -> &dyn Connection;

    /// Takes all that has come, up to the end where `event` says that there is one. `hears` is
    /// given it as it was on the wire.
    fn receive(
        &mut self,
        event: Input,
        scratch: &mut [u8],
        hold: Hold<'_>,
        hears: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure>;

    /// Whether the peer may still send.
    fn input(&self) -> Input;

    /// Carries the handshake as far as it goes with what was received.
    fn advance(&mut self) -> Result<Progress, Failure>;

    /// Encrypts `data` as early data. False where the session does not allow it.
    fn write_early(&mut self, data: &[u8]) -> Result<bool, Failure>;

    /// Encrypts `data` as one record.
    fn write(&mut self, data: &[u8]) -> Result<(), Failure>;

    /// Decrypts what has come of one record into `buffer`, and gives its length; 0 when there is no
    /// whole one.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure>;

    /// Has what was written wait to be flushed, and shows it.
    fn take_output(&mut self) -> &[u8];

    /// Has all that was made to wait since [`queued`](Channel::queued) was `since` leave apart from
    /// the rest.
    fn set_apart(&mut self, since: u64);

    /// Whether more may wait.
    fn has_room(&self) -> bool;

    /// Sends what waits, as much of it as the transport takes.
    fn flush(&mut self, hold: Hold<'_>) -> Result<(), Failure>;

    /// Bytes that were ever made to wait.
    fn queued(&self) -> u64;

    /// Bytes of those that are sent.
    fn sent(&self) -> u64;

    /// Has the transport's receive buffer be of so many bytes.
    fn set_receive_buffer(&mut self, bytes: Bytes) -> Result<(), Failure>;

    /// Asks not to be woken for less than this, as far as the transport can tell.
    fn wake_for(&mut self, awaited: Awaited);

    /// Tells the peer that nothing more comes.
    fn close_writing(&mut self);

    /// What the transport has to tell. It then closes without a trace when it is dropped, so that
    /// no later packet of this connection meets another one.
    fn close(&self) -> Option<EndStats>;
}

impl dyn Channel {
    /// Whether nothing waits to be sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.sent() == self.queued()
    }
}

/// Keeps packets from a socket for as long as a system call on it takes.
pub(crate) type Hold<'a> = &'a dyn Fn() -> shared::Hold<'a>;

/// Whether the peer may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Open,
    Closed,
}

/// What an end can go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Whatever comes.
    Anything,
    /// Something that can be decrypted as a whole.
    Decryptable,
    /// So much payload, in bytes.
    Payload(u64),
}
