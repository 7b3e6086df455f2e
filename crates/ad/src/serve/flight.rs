//! A TCP stream that fills its segments.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Holds back partial segments of a flight until it is flushed.
///
/// OpenSSL writes a flight in pieces of 4 KB: each would end in a short segment, and the initial
/// window counts segments.
#[derive(Debug)]
pub(super) struct FlightStream {
    stream: TcpStream,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is held back, until something is written.
    Flushed,
    /// There may be a partial segment.
    Corked,
    /// The handshake is done: each write is a record, and is sent at once.
    Open,
}

impl FlightStream {
    pub(super) fn new(stream: TcpStream) -> FlightStream {
        FlightStream {
            stream,
            state: State::Flushed,
        }
    }

    /// What follows comes in records that nothing follows for sure.
    pub(super) fn handshake_done(&mut self) {
        // A failure shows when something is written.
        let _ = self.uncork();
        self.state = State::Open;
    }

    fn uncork(&mut self) -> io::Result<()> {
        if self.state == State::Corked {
            SockRef::from(&self.stream).set_tcp_cork(false)?;
            self.state = State::Flushed;
        }
        Ok(())
    }
}

impl AsyncRead for FlightStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for FlightStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.state == State::Flushed {
            SockRef::from(&self.stream).set_tcp_cork(true)?;
            self.state = State::Corked;
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.uncork())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.uncork()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
