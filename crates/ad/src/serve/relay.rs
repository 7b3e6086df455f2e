//! Carries bytes between two streams.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{Instant, sleep};

use crate::end::is_end;

/// As much as a TLS record holds (RFC 8446, section 5.1).
const BUFFER: usize = 1 << 14;

/// Relays until both sides have closed, one fails, or nothing moves for `idle`, which is no failure.
pub(super) async fn relay(
    client: impl AsyncRead + AsyncWrite + Unpin,
    backend: impl AsyncRead + AsyncWrite + Unpin,
    idle: Duration,
) -> io::Result<()> {
    let (client_reader, client_writer) = split(client);
    let (backend_reader, backend_writer) = split(backend);
    let activity = Activity {
        start: Instant::now(),
        last: AtomicU64::new(0),
    };
    let both = async {
        tokio::try_join!(
            copy(client_reader, backend_writer, &activity),
            copy(backend_reader, client_writer, &activity),
        )
    };
    tokio::select! {
        copied = both => match copied {
            // Who goes away without a goodbye is not worth a word.
            Err(error) if is_gone(&error) => Ok(()),
            copied => copied.map(drop),
        },
        () = activity.rests(idle) => Ok(()),
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    activity: &Activity,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        activity.note();
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..length).unwrap_or_default())
            .await?;
        to.flush().await?;
        activity.note();
    }
}

/// When something last moved, in milliseconds after the start.
struct Activity {
    start: Instant,
    last: AtomicU64,
}

impl Activity {
    fn note(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn rests(&self, idle: Duration) {
        loop {
            let rested = self.now().saturating_sub(self.last.load(Ordering::Relaxed));
            match idle.checked_sub(Duration::from_millis(rested)) {
                None | Some(Duration::ZERO) => return,
                Some(left) => sleep(left).await,
            }
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    is_end(error)
        || matches!(
            error.kind(),
            BrokenPipe | ConnectionAborted | ConnectionReset
        )
}
