//! A connection as hyper takes it, with the time of the first byte.

use std::cell::OnceCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::end::is_end;

/// What one read takes at most, in bytes: a record of TLS.
const READ: usize = 1 << 14;

pub(super) struct Watched<S> {
    stream: S,
    clock: Instant,
    /// When the first byte was there, by the clock.
    first_byte: Rc<OnceCell<Duration>>,
    received: Box<[u8]>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, clock: Instant, first_byte: Rc<OnceCell<Duration>>) -> Self {
        Self {
            stream,
            clock,
            first_byte,
            received: vec![0; READ].into(),
        }
    }
}

impl<S: AsyncRead + Unpin> Read for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let room = this.received.len().min(buffer.remaining());
        let mut received = ReadBuf::new(this.received.get_mut(..room).unwrap_or_default());
        let read = Pin::new(&mut this.stream).poll_read(context, &mut received);
        let received = received.filled();
        if !received.is_empty() {
            this.first_byte.get_or_init(|| this.clock.elapsed());
            buffer.put_slice(received);
        }
        match read {
            // Many servers end the connection without TLS's goodbye.
            Poll::Ready(Err(error)) if is_end(&error) => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl<S: AsyncWrite + Unpin> Write for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
