//! A TCP stream that notes the handshake.

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lastbyte_tls::observer::{Observer, Side};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Gives an [`Observer`] what goes to the server and what comes from it.
#[derive(Debug)]
pub struct Observed {
    stream: TcpStream,
    /// None once the handshake is done.
    observer: Option<Observer>,
}

impl Observed {
    pub(super) fn new(stream: TcpStream) -> Observed {
        Observed {
            stream,
            observer: Some(Observer::default()),
        }
    }

    /// What was noted. Nothing is from now on.
    pub(super) fn finish(&mut self) -> Observer {
        mem::take(&mut self.observer).unwrap_or_default()
    }

    fn note(&mut self, sender: Side, bytes: &[u8]) {
        if let Some(observer) = &mut self.observer {
            observer.sent(sender, bytes);
        }
    }
}

impl AsyncRead for Observed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        self.note(Side::Server, read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Observed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.note(Side::Client, bytes.get(..length).unwrap_or_default());
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
