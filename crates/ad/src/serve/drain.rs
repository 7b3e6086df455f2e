//! Which connections end at once when a server stops: those of which nobody waits for anything.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// A client that was answered, and to whom nothing came for this long, waits for nothing. It is
/// longer than what TCP takes to send a segment again that it loses four times (RFC 6298), or than
/// a busy machine lets any program wait: an answer that rests half-way is not to be cut.
const QUIET: Duration = Duration::from_secs(5);

/// What a client waits for, and since when.
#[derive(Debug)]
pub(super) struct Turn {
    start: Instant,
    /// Milliseconds after the start, and what is awaited in the lowest bits.
    last: AtomicU64,
}

/// Something that a client waits for, as a bit.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// The server's answer to what the client sent.
    Answer = 1,
    /// What was answered, and could not be written yet: a client may be slow to take it.
    Rest = 2,
}

/// How many bits those take.
const BITS: u32 = 2;

impl Turn {
    pub(super) fn new() -> Turn {
        Turn {
            start: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    /// Something moved, or would have: from now on that is awaited, or not.
    fn note(&self, what: Awaited, is_awaited: bool) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX >> BITS);
        let others = self.awaited() & !(what as u64);
        let own = u64::from(is_awaited) * what as u64;
        self.last
            .store(now << BITS | others | own, Ordering::Relaxed);
    }

    fn awaited(&self) -> u64 {
        self.last.load(Ordering::Relaxed) & ((1 << BITS) - 1)
    }

    /// Is done when the server stops and the client waits for nothing.
    pub(super) async fn rests(&self, mut stopping: watch::Receiver<Serving>) {
        let stops = stopping.wait_for(|serving| *serving == Serving::Stopping);
        if stops.await.is_err() {
            return std::future::pending().await;
        }
        loop {
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed) >> BITS);
            let quiet = self.start.elapsed().saturating_sub(last);
            match (self.awaited(), QUIET.checked_sub(quiet)) {
                (0, None | Some(Duration::ZERO)) => return,
                (0, Some(left)) => sleep(left).await,
                _ => sleep(QUIET / 50).await,
            }
        }
    }
}

/// Whether connections are still accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serving {
    Accepting,
    Stopping,
}

/// A client's stream of which is noted who spoke last.
pub(super) struct Noted<'a, S> {
    pub(super) stream: &'a mut S,
    pub(super) turn: &'a Turn,
    /// Called whenever the client has sent something.
    pub(super) heard: &'a (dyn Fn() + Sync),
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut *self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.turn.note(Awaited::Answer, true);
            (self.heard)();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.stream).poll_write(context, bytes);
        match &written {
            Poll::Pending => self.turn.note(Awaited::Rest, true),
            Poll::Ready(_) => {
                self.turn.note(Awaited::Rest, false);
                self.turn.note(Awaited::Answer, false);
            }
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut *self.stream).poll_flush(context);
        // Whoever had it flushed before is not to seem busy for that.
        if flushed.is_pending() || self.turn.awaited() & Awaited::Rest as u64 != 0 {
            self.turn.note(Awaited::Rest, flushed.is_pending());
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_an_answer_is_waited_for() {
        let (stop, stopping) = watch::channel(Serving::Accepting);
        let turn = Turn::new();
        let (mut client, mut server) = tokio::io::duplex(100);
        let mut noted = Noted {
            stream: &mut server,
            turn: &turn,
            heard: &|| {},
        };
        let rests = |stopping| tokio::time::timeout(Duration::from_secs(60), turn.rests(stopping));
        assert!(rests(stopping.clone()).await.is_err(), "it does not stop");
        stop.send(Serving::Stopping).unwrap();
        let at_once = tokio::time::timeout(Duration::ZERO, turn.rests(stopping.clone()));
        assert!(at_once.await.is_ok(), "nothing was ever asked");

        client.write_all(b"request").await.unwrap();
        noted.read_exact(&mut [0; 7]).await.unwrap();
        assert!(rests(stopping.clone()).await.is_err());
        noted.write_all(b"answer").await.unwrap();
        let answered = Instant::now();
        assert!(rests(stopping).await.is_ok());
        assert!(
            answered.elapsed() >= QUIET - Duration::from_millis(1),
            "more may come"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_to_take_an_answer_gets_all_of_it() {
        let (stop, stopping) = watch::channel(Serving::Accepting);
        let turn = Turn::new();
        let (mut client, mut server) = tokio::io::duplex(100);
        let mut noted = Noted {
            stream: &mut server,
            turn: &turn,
            heard: &|| {},
        };
        stop.send(Serving::Stopping).unwrap();
        let rests = || tokio::time::timeout(Duration::from_secs(60), turn.rests(stopping.clone()));
        {
            let mut written = std::pin::pin!(noted.write_all(&[0; 250]));
            tokio::select! {
                _ = &mut written => panic!("there is no room for it"),
                ended = rests() => assert!(ended.is_err(), "it is not there yet"),
            }
            let mut read = [0; 250];
            let (written, read) = tokio::join!(written, client.read_exact(&mut read));
            written.unwrap();
            assert_eq!(read.unwrap(), 250);
        }
        assert!(rests().await.is_ok());
    }
}
