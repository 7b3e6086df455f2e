//! A TCP stream that fills its segments.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Holds a flight back until the handshake waits for the client, or is done.
///
/// OpenSSL writes a flight in pieces of 4 KB at least, and each ticket by itself: each would end in a short segment, and
/// the initial window counts segments. All at once they are one system call, too.
#[derive(Debug)]
pub(super) struct FlightStream {
    stream: TcpStream,
    state: State,
    /// What is to be sent before all else.
    held: Vec<u8>,
    /// Bytes that were written since something was read.
    written: usize,
    /// The same, when something was read last.
    flight: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// More may follow what is written.
    Handshake,
    /// Each write is a record, and is sent at once.
    Open,
}

impl FlightStream {
    pub(super) fn new(stream: TcpStream) -> FlightStream {
        FlightStream {
            stream,
            state: State::Handshake,
            held: Vec::new(),
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
        self.state = State::Open;
        self.send_what_fits();
    }

    /// Closes it as TCP does when nothing more is sent, and takes what still comes for a moment: what is unread when it
    /// is closed would reset the connection, and take with it what the other side has not read.
    pub(super) async fn linger(&mut self) {
        /// For the last bytes, whatever they are.
        const MOMENT: Duration = Duration::from_secs(2);
        self.send_what_fits();
        let drained = async {
            let mut unread = [0; 1 << 10];
            self.stream.shutdown().await?;
            while self.stream.read(&mut unread).await? > 0 {}
            io::Result::Ok(())
        };
        // It is over, however that ends.
        let _ = timeout(MOMENT, drained).await;
    }

    /// The rest goes with what is read or written next, where a failure shows as well.
    fn send_what_fits(&mut self) {
        let _ = self.poll_send(&mut Context::from_waker(Waker::noop()));
    }

    /// Sends what is held.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut sent = 0;
        let done = loop {
            let rest = self.held.get(sent..).unwrap_or_default();
            if rest.is_empty() {
                break Poll::Ready(Ok(()));
            }
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => sent += count,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        match done {
            Poll::Pending => drop(self.held.drain(..sent)),
            Poll::Ready(_) => self.held = Vec::new(),
        }
        done
    }
}

impl Drop for FlightStream {
    /// Where a handshake fails, an alert says why.
    fn drop(&mut self) {
        self.send_what_fits();
    }
}

impl AsyncRead for FlightStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
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
        let written = match self.state {
            State::Handshake => {
                self.held.extend_from_slice(bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            State::Open => {
                ready!(self.poll_send(context))?;
                Pin::new(&mut self.stream).poll_write(context, bytes)
            }
        };
        if let Poll::Ready(Ok(written)) = written {
            self.written = self.written.saturating_add(written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.state {
            State::Handshake => Poll::Ready(Ok(())),
            State::Open => self.poll_send(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
    use tokio::net::{TcpListener, TcpStream};

    use super::FlightStream;

    async fn pair() -> (FlightStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = TcpStream::connect(listener.local_addr().unwrap());
        let stream = FlightStream::new(server.await.unwrap());
        (stream, listener.accept().await.unwrap().0)
    }

    /// What has come so far.
    fn come(client: &TcpStream) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 16];
        let count = client.try_read(&mut buffer).unwrap_or(0);
        buffer.truncate(count);
        buffer
    }

    /// Has the handshake wait for the client, as far as it does.
    async fn waits(stream: &mut FlightStream) {
        poll_fn(|context| {
            let mut buffer = [0; 1];
            let read = Pin::new(&mut *stream).poll_read(context, &mut ReadBuf::new(&mut buffer));
            assert!(read.is_pending());
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn a_flight_goes_as_a_whole_when_the_client_is_to_answer() {
        let (mut stream, client) = pair().await;
        for piece in [&[1; 4096][..], &[2; 4096], &[3; 100]] {
            stream.write_all(piece).await.unwrap();
            stream.flush().await.unwrap();
        }
        assert!(come(&client).is_empty(), "more may follow");
        waits(&mut stream).await;
        client.readable().await.unwrap();
        let expected = [vec![1; 4096], vec![2; 4096], vec![3; 100]].concat();
        assert_eq!(come(&client), expected);
        stream.write_all(b"tickets").await.unwrap();
        stream.handshake_done();
        client.readable().await.unwrap();
        assert_eq!(come(&client), b"tickets");
        stream.write_all(b"a record").await.unwrap();
        client.readable().await.unwrap();
        assert_eq!(come(&client), b"a record");
    }

    #[tokio::test]
    async fn an_alert_is_sent_when_there_is_no_handshake() {
        let (mut stream, mut client) = pair().await;
        stream.write_all(b"alert").await.unwrap();
        drop(stream);
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"alert");
    }

    /// As a stream does that holds nothing, with more than TCP takes at once.
    #[tokio::test]
    async fn all_bytes_come_in_their_order() {
        let flight: Vec<u8> = (0..20_000_000_u32)
            .map(|number| (number >> 8) as u8)
            .collect();
        let (mut stream, mut client) = pair().await;
        let sent = flight.clone();
        let sending = tokio::spawn(async move {
            let (flight, tickets) = sent.split_at(12_000_000);
            stream.write_all(flight).await.unwrap();
            // Its answer, for which it sends.
            assert_eq!(stream.read_u8().await.unwrap(), 7);
            assert_eq!(stream.flight(), flight.len());
            let (tickets, response) = tickets.split_at(6_000_000);
            stream.write_all(tickets).await.unwrap();
            stream.handshake_done();
            stream.write_all(response).await.unwrap();
            stream.shutdown().await.unwrap();
        });
        let mut read = vec![0; 12_000_000];
        client.read_exact(&mut read).await.unwrap();
        client.write_u8(7).await.unwrap();
        client.read_to_end(&mut read).await.unwrap();
        assert!(read == flight);
        sending.await.unwrap();
    }
}
