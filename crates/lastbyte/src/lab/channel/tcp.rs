//! TLS over TCP.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use lastbyte_link::Bytes;
use lastbyte_tls::{Connection, Progress, TlsError};
use nix::sys::socket::{setsockopt, sockopt};

use super::boundary::RecordBoundary;
use super::{Awaited, Channel, Hold, Input};
use crate::lab::failure::Failure;
use crate::lab::sys;
use crate::results::EndStats;
use crate::study::Flush;

/// Ciphertext that waits in memory at most. A response up to this size is one `write`.
const MAX_PENDING: usize = 1 << 20;
/// Of the memory for that, what a connection keeps when all is written.
const KEPT: usize = 64 << 10;
/// The highest low-water mark: see [`Shortcuts`](crate::lab::Shortcuts).
const LOW_WATER: Bytes = Bytes(64 << 10);
/// Larger than a receive buffer's worth of one wake-up at the rates of interest.
pub(crate) const SCRATCH: usize = 256 << 10;

/// A socket, its TLS and what waits to be written.
pub(crate) struct TcpChannel {
    socket: TcpStream,
    tls: Box<dyn Connection>,
    pending: Vec<u8>,
    /// How much of that is written.
    written: usize,
    /// Bytes that were pending before, all of them written.
    flushed: u64,
    writing: TcpWriting,
    /// The lengths of the first parts of what is pending, if each is a `write`.
    parts: VecDeque<usize>,
    input: Input,
    boundary: RecordBoundary,
    low_water: u64,
}

/// Which bytes leave in one `write`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpWriting {
    pub(crate) flush: Flush,
    /// How much of the very first output leaves in a `write` of its own, in bytes.
    pub(crate) first: Option<u16>,
}

impl TcpChannel {
    pub(crate) fn new(socket: TcpStream, tls: Box<dyn Connection>, writing: TcpWriting) -> Self {
        Self {
            socket,
            tls,
            pending: Vec::new(),
            written: 0,
            flushed: 0,
            writing,
            parts: VecDeque::new(),
            input: Input::Open,
            boundary: RecordBoundary::default(),
            low_water: 1,
        }
    }

    /// Has the first `length` bytes of what is pending leave in a `write` of their own, unless the
    /// first one is as short already.
    fn split(&mut self, length: usize) {
        let first = self.parts.pop_front().unwrap_or(self.pending.len());
        match first.checked_sub(length) {
            Some(rest @ 1..) if length > 0 => {
                self.parts.push_front(rest);
                self.parts.push_front(length);
            }
            _ => self.parts.push_front(first),
        }
    }
}

impl Channel for TcpChannel {
    fn is_connected(&mut self) -> Result<bool, Failure> {
        match self.socket.take_error()? {
            Some(error) => Err(Failure::Connect(error)),
            None => Ok(self.socket.peer_addr().is_ok()),
        }
    }

    fn use_tls(&mut self, tls: Box<dyn Connection>) {
        self.tls = tls;
    }

    fn tls(&self) -> &dyn Connection {
        self.tls.as_ref()
    }

    fn receive(
        &mut self,
        event: Input,
        scratch: &mut [u8],
        hold: Hold<'_>,
        hears: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        while self.input == Input::Open {
            let read = {
                let _inside = hold();
                self.socket.read(scratch)
            };
            match read {
                Ok(0) => self.input = Input::Closed,
                Ok(count) => {
                    hears(&scratch[..count]);
                    self.boundary.pass(&scratch[..count]);
                    self.tls.receive(&scratch[..count]);
                    // What comes later is another event.
                    if event == Input::Open && count < scratch.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn input(&self) -> Input {
        self.input
    }

    fn advance(&mut self) -> Result<Progress, Failure> {
        Ok(self.tls.advance()?)
    }

    fn write_early(&mut self, data: &[u8]) -> Result<bool, Failure> {
        match self.tls.write_early_data(data) {
            Ok(()) => Ok(true),
            Err(TlsError::NoEarlyData) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        Ok(self.tls.write_record(data)?)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        Ok(self.tls.read(buffer)?)
    }

    fn take_output(&mut self) -> &[u8] {
        let start = self.pending.len();
        match self.writing.flush {
            Flush::Whole => self.tls.transmit(&mut self.pending),
            Flush::Native => {
                let mut end = start;
                while self.tls.transmit_write(&mut self.pending) {
                    self.parts.push_back(self.pending.len() - end);
                    end = self.pending.len();
                }
            }
        }
        if self.pending.len() > start
            && let Some(first) = self.writing.first.take()
        {
            self.split(first.into());
        }
        &self.pending[start..]
    }

    fn set_apart(&mut self, since: u64) {
        // A stack's own writes are apart already.
        if self.writing.flush == Flush::Native {
            return;
        }
        let length = (self.queued() - since) as usize;
        let before = self.pending.len().saturating_sub(length);
        if self.parts.is_empty() && before > self.written {
            self.parts.push_back(before - self.written);
        }
        self.parts.push_back(length);
    }

    fn has_room(&self) -> bool {
        self.pending.len() < MAX_PENDING
    }

    fn flush(&mut self, hold: Hold<'_>) -> Result<(), Failure> {
        while self.written < self.pending.len() {
            let rest = &self.pending[self.written..];
            let part = self.parts.front().copied().unwrap_or(rest.len());
            let written = {
                let _inside = hold();
                self.socket.write(rest.get(..part).unwrap_or(rest))
            };
            match written {
                Ok(count) => {
                    self.written += count;
                    match self.parts.front_mut() {
                        Some(part) if *part > count => *part -= count,
                        _ => drop(self.parts.pop_front()),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.flushed += self.pending.len() as u64;
        self.pending.clear();
        self.pending.shrink_to(KEPT);
        self.parts.clear();
        self.written = 0;
        Ok(())
    }

    fn queued(&self) -> u64 {
        self.flushed + self.pending.len() as u64
    }

    fn sent(&self) -> u64 {
        self.flushed + self.written as u64
    }

    fn set_receive_buffer(&mut self, bytes: Bytes) -> Result<(), Failure> {
        let bytes = usize::try_from(bytes.0).unwrap_or(usize::MAX);
        setsockopt(&self.socket, sockopt::RcvBuf, &bytes).map_err(io::Error::from)?;
        Ok(())
    }

    fn wake_for(&mut self, awaited: Awaited) {
        let bytes = match awaited {
            Awaited::Anything => 1,
            Awaited::Decryptable => self.boundary.missing() as u64,
            // What has come of the record that is under way is payload, but for its header.
            Awaited::Payload(bytes) => bytes.saturating_sub(self.boundary.seen() as u64),
        };
        let bytes = bytes.clamp(1, LOW_WATER.0);
        if bytes != self.low_water {
            self.low_water = bytes;
            // A socket that refuses wakes the client more often.
            let _ = sys::set_low_water(self.socket.as_fd(), bytes as u32);
        }
    }

    fn close_writing(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    fn close(&self) -> Option<EndStats> {
        let stats = sys::tcp_stats(self.socket.as_fd()).ok();
        let reset = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let _ = setsockopt(&self.socket, sockopt::Linger, &reset);
        stats.map(EndStats::Tcp)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpListener;

    use lastbyte_link::Side;
    use lastbyte_tls::KeyLog;

    use super::*;
    use crate::lab::shared::Shared;

    /// Sends what it was given as it is, and takes whatever comes.
    #[derive(Default)]
    struct NoTls(Vec<u8>);

    impl Connection for NoTls {
        fn receive(&mut self, _: &[u8]) {}

        fn advance(&mut self) -> Result<Progress, TlsError> {
            Ok(Progress::Established)
        }

        fn transmit(&mut self, out: &mut Vec<u8>) {
            out.append(&mut self.0);
        }

        fn write_record(&mut self, data: &[u8]) -> Result<(), TlsError> {
            self.0.extend_from_slice(data);
            Ok(())
        }

        fn read(&mut self, _: &mut [u8]) -> Result<usize, TlsError> {
            Ok(0)
        }

        fn key_log(&self) -> KeyLog {
            KeyLog::default()
        }
    }

    /// A channel, and the socket of its peer.
    fn channel(first: Option<u16>) -> (TcpChannel, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        let flush = Flush::Whole;
        let tls = Box::new(NoTls::default());
        (
            TcpChannel::new(socket, tls, TcpWriting { flush, first }),
            peer,
        )
    }

    #[test]
    fn what_is_awaited_sets_the_low_water_mark() {
        let (mut channel, mut peer) = channel(None);
        channel.wake_for(Awaited::Decryptable);
        assert_eq!(channel.low_water, 5, "a record's header");
        // Of a record of 1000 bytes, the first 300.
        let mut record = vec![23, 3, 3, 3, 232];
        record.resize(300, 0);
        peer.write_all(&record).unwrap();
        let shared = Shared::new(0);
        let hold = || shared.hold(0, Side::Client);
        let mut scratch = vec![0; 1024];
        channel
            .receive(Input::Open, &mut scratch, &hold, &mut |_| ())
            .unwrap();
        for (awaited, bytes) in [
            (Awaited::Decryptable, 705),
            (Awaited::Payload(1500), 1200),
            (Awaited::Payload(7), 1),
            (Awaited::Payload(1 << 30), LOW_WATER.0),
            (Awaited::Anything, 1),
        ] {
            channel.wake_for(awaited);
            assert_eq!(channel.low_water, bytes, "{awaited:?}");
        }
    }

    #[test]
    fn what_is_written_is_given_back() {
        let (mut channel, mut peer) = channel(None);
        let reader = std::thread::spawn(move || io::copy(&mut peer, &mut io::sink()));
        channel.write(&[0; MAX_PENDING]).unwrap();
        channel.take_output();
        assert!(channel.pending.capacity() >= MAX_PENDING);
        let shared = Shared::new(0);
        channel.flush(&|| shared.hold(0, Side::Server)).unwrap();
        assert!(channel.pending.capacity() <= KEPT);
        assert_eq!(channel.sent(), MAX_PENDING as u64);
        drop(channel);
        assert_eq!(reader.join().unwrap().unwrap(), MAX_PENDING as u64);
    }

    #[test]
    fn the_very_first_output_is_split_and_no_other() {
        let (mut channel, _peer) = channel(Some(100));
        assert!(channel.take_output().is_empty());
        channel.write(&[0; 300]).unwrap();
        channel.take_output();
        assert_eq!(channel.parts, [100, 200]);
        let shared = Shared::new(0);
        channel.flush(&|| shared.hold(0, Side::Client)).unwrap();
        channel.write(&[0; 300]).unwrap();
        channel.take_output();
        assert!(channel.parts.is_empty());
        // What is apart begins where it was set to.
        let before = channel.queued();
        channel.write(&[0; 40]).unwrap();
        channel.take_output();
        channel.write(&[0; 20]).unwrap();
        channel.take_output();
        channel.set_apart(before);
        assert_eq!(channel.parts, [300, 60]);
    }
}
