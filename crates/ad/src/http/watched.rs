//! A connection as hyper takes it, with the time of the first byte, and how it ends.

use std::cell::{Cell, OnceCell};
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

/// A connection's first byte and its end.
#[derive(Debug, Default)]
pub(super) struct ObservedStream {
    /// When the first byte was there, by the clock.
    pub(super) first_byte: OnceCell<Duration>,
    /// It has ended without TLS's goodbye.
    pub(super) is_cut: Cell<bool>,
}

pub(super) struct Watched<S> {
    stream: S,
    clock: Instant,
    observed: Rc<ObservedStream>,
    received: Box<[u8]>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, clock: Instant, observed: Rc<ObservedStream>) -> Self {
        Self {
            stream,
            clock,
            observed,
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
            this.observed
                .first_byte
                .get_or_init(|| this.clock.elapsed());
            buffer.put_slice(received);
        }
        match read {
            // Many servers end the connection without TLS's goodbye, which only matters to bodies
            // without a length.
            Poll::Ready(Err(error)) if is_end(&error) => {
                this.observed.is_cut.set(true);
                Poll::Ready(Ok(()))
            }
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
