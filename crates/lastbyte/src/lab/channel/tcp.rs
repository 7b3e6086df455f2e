//! TLS over TCP.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use lastbyte_link::Bytes;
use lastbyte_tls::{Connection, Progress, TlsError};
use nix::sys::socket::{setsockopt, sockopt};

use super::boundary::RecordBoundary;
use super::{Channel, Hold, Input};
use crate::lab::failure::Failure;
use crate::lab::sys;
use crate::results::TcpStats;
use crate::study::Flush;

/// Ciphertext that waits in memory at most. A response up to this size is one `write`.
const MAX_PENDING: usize = 1 << 20;
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
    flush: Flush,
    /// The lengths of the first parts of what is pending, if each is a `write`.
    parts: VecDeque<usize>,
    input: Input,
    boundary: RecordBoundary,
    low_water: u64,
}

impl TcpChannel {
    /// `flush` says which bytes leave in one `write`.
    pub(crate) fn new(socket: TcpStream, tls: Box<dyn Connection>, flush: Flush) -> Self {
        Self {
            socket,
            tls,
            pending: Vec::new(),
            written: 0,
            flushed: 0,
            flush,
            parts: VecDeque::new(),
            input: Input::Open,
            boundary: RecordBoundary::default(),
            low_water: 1,
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
        match self.flush {
            Flush::Whole => self.tls.transmit(&mut self.pending),
            Flush::Native => {
                let mut end = start;
                while self.tls.transmit_write(&mut self.pending) {
                    self.parts.push_back(self.pending.len() - end);
                    end = self.pending.len();
                }
            }
        }
        &self.pending[start..]
    }

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

    fn set_apart(&mut self, length: usize) {
        // A stack's own writes are apart already.
        if self.flush == Flush::Native {
            return;
        }
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

    fn record_seen(&self) -> u64 {
        self.boundary.seen() as u64
    }

    fn record_missing(&self) -> u64 {
        self.boundary.missing() as u64
    }

    fn set_receive_buffer(&mut self, bytes: Bytes) -> Result<(), Failure> {
        let bytes = usize::try_from(bytes.0).unwrap_or(usize::MAX);
        setsockopt(&self.socket, sockopt::RcvBuf, &bytes).map_err(io::Error::from)?;
        Ok(())
    }

    fn wake_at(&mut self, bytes: u64) {
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

    fn close(&self) -> Option<TcpStats> {
        let stats = sys::tcp_stats(self.socket.as_fd()).ok();
        let reset = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let _ = setsockopt(&self.socket, sockopt::Linger, &reset);
        stats
    }
}
