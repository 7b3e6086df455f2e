//! A TCP stream that fills its segments.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What OpenSSL collects of a flight before it writes (`BIO_f_buffer`): after less than that, there is no more to come.
const PIECE: usize = 4096;

/// Holds back partial segments of a flight until it is flushed.
///
/// OpenSSL writes a flight in pieces of 4 KB at least: each would end in a short segment, and the initial
/// window counts segments. A flight of one short piece leaves as it is.
#[derive(Debug)]
pub(super) struct FlightStream {
    stream: TcpStream,
    state: State,
    /// Bytes that were written since something was read.
    written: usize,
    /// The same, when something was read last.
    flight: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is held back, until a piece is written after which more may come.
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
            written: 0,
            flight: 0,
        }
    }

    /// Bytes of the last flight that was answered.
    pub(super) fn flight(&self) -> usize {
        self.flight
    }

    /// What follows comes in records that nothing follows for sure.
    pub(super) fn handshake_done(&mut self) {
        // A failure shows when something is written.
        let _ = self.uncork();
        self.state = State::Open;
    }

    /// Closes it as TCP does when nothing more is sent, and takes what still comes for a moment: what is unread when it
    /// is closed would reset the connection, and take with it what the other side has not read.
    pub(super) async fn linger(&mut self) {
        /// For the last bytes, whatever they are.
        const MOMENT: Duration = Duration::from_secs(2);
        let _ = self.uncork();
        let drained = async {
            let mut unread = [0; 1 << 10];
            self.stream.shutdown().await?;
            while self.stream.read(&mut unread).await? > 0 {}
            io::Result::Ok(())
        };
        // It is over, however that ends.
        let _ = timeout(MOMENT, drained).await;
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
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.written > 0 && buffer.filled().len() > before {
            self.flight = std::mem::take(&mut self.written);
        }
        read
    }
}

impl AsyncWrite for FlightStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.state == State::Flushed && bytes.len() >= PIECE {
            SockRef::from(&self.stream).set_tcp_cork(true)?;
            self.state = State::Corked;
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = written {
            self.written = self.written.saturating_add(written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.uncork())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.uncork()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::{FlightStream, PIECE, State};

    #[tokio::test]
    async fn only_a_piece_after_which_more_may_come_waits_for_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let mut stream = FlightStream::new(client.await.unwrap());
        let is_corked = |stream: &FlightStream| {
            let is_corked = socket2::SockRef::from(&stream.stream).tcp_cork().unwrap();
            assert_eq!(is_corked, stream.state == State::Corked);
            is_corked
        };
        for (pieces, waits) in [
            (&[PIECE - 1][..], false),
            (&[PIECE], true),
            (&[PIECE, 100], true),
        ] {
            for piece in pieces {
                stream.write_all(&vec![7; *piece]).await.unwrap();
            }
            assert_eq!(is_corked(&stream), waits, "{pieces:?}");
            stream.flush().await.unwrap();
            assert!(!is_corked(&stream));
        }
        stream.handshake_done();
        stream.write_all(&[7; PIECE]).await.unwrap();
        assert!(!is_corked(&stream), "it is a record");
    }
}
