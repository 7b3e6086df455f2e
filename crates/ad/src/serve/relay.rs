//! Carries bytes between two streams.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

use crate::end::is_end;

/// As much as a TLS record holds (RFC 8446, section 5.1).
const BUFFER: usize = 1 << 14;

thread_local! {
    /// What is read goes through here. A connection has memory of its own only for what can't be
    /// written at once.
    static PASSING: RefCell<Box<[u8]>> = RefCell::default();
}

/// Lends memory for what is read. If it is lent already, there is more.
pub(super) fn passing<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = PASSING.take();
    if buffer.is_empty() {
        buffer = vec![0; BUFFER].into();
    }
    let done = work(&mut buffer);
    PASSING.set(buffer);
    done
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Both sides declared that they had sent all.
    Complete,
    /// The backend took no more of what the client sent, and its answer went to the client to its
    /// end.
    Refused,
    /// The client went away.
    ClientGone,
    /// The backend went away in the middle of what it sent.
    BackendGone,
    /// Nothing moved for as long as connections may rest.
    Idle,
    /// The server stopped while the client waited for nothing.
    Stopped,
}

/// How many bytes went to whom.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) to_client: AtomicU64,
    pub(super) to_backend: AtomicU64,
}

/// Relays until both sides have closed, one fails, or nothing moves for `idle`. Each side may close
/// its own direction, and still gets what the other one sends. If the backend stops to take what
/// the client sends, the client gets all of the answer first.
///
/// # Errors
///
/// What neither side's going away explains.
pub(super) async fn relay(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    backend: &mut (impl AsyncRead + AsyncWrite + Unpin),
    idle: Duration,
    carried: &Carried,
) -> io::Result<End> {
    let mut up = Direction::new(&carried.to_backend);
    let mut down = Direction::new(&carried.to_client);
    let mut last = Instant::now();
    let mut rest = pin!(sleep_until(last + idle));
    poll_fn(|context| {
        let before = up.steps + down.steps;
        let went_up = up.poll(context, client, backend);
        let went_down = down.poll(context, backend, client);
        if up.steps + down.steps > before {
            last = Instant::now();
        }
        match (went_up, went_down) {
            (_, Poll::Ready(Err(Broken::Writing(error)))) => {
                return Poll::Ready(gone(error, End::ClientGone));
            }
            (_, Poll::Ready(Err(Broken::Reading(error)))) => {
                return Poll::Ready(gone(error, End::BackendGone));
            }
            (Poll::Ready(Err(Broken::Reading(error))), _) => {
                return Poll::Ready(gone(error, End::ClientGone));
            }
            (Poll::Ready(Err(Broken::Writing(_))), Poll::Ready(Ok(()))) => {
                return Poll::Ready(Ok(End::Refused));
            }
            // The answer is what counts now.
            (Poll::Ready(Err(Broken::Writing(error))), Poll::Pending) => {
                up.state = Part::Refused;
                // Writing took the error, and reading will find an end.
                if error.kind() != io::ErrorKind::BrokenPipe {
                    down.source = Origin::Reset;
                }
                context.waker().wake_by_ref();
            }
            (_, Poll::Ready(Ok(()))) if up.state == Part::Refused => {
                return Poll::Ready(Ok(End::Refused));
            }
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(Ok(End::Complete)),
            _ => {}
        }
        while rest.as_mut().poll(context).is_ready() {
            if last.elapsed() >= idle {
                return Poll::Ready(Ok(End::Idle));
            }
            rest.as_mut().reset(last + idle);
        }
        Poll::Pending
    })
    .await
}

fn gone(error: io::Error, end: End) -> io::Result<End> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    match error.kind() {
        // Who goes away without a goodbye is not worth a word.
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Ok(end),
        _ if is_end(&error) => Ok(end),
        _ => Err(error),
    }
}

/// What one side sends and the other one gets.
struct Direction<'a> {
    state: Part,
    source: Origin,
    /// What could not be written yet. It is empty most of the time, and has no memory then.
    held: Vec<u8>,
    written: usize,
    bytes: &'a AtomicU64,
    /// How often something moved.
    steps: u64,
}

/// What a direction does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Copy,
    Flush,
    /// There is no more to come.
    Close,
    Done,
    /// Nobody takes it: what comes is read, so that the sender gets to reading, and dropped.
    Refused,
}

/// What the end of what comes means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Sound,
    /// The sender has reset the connection: there would have been more.
    Reset,
}

enum Broken {
    Reading(io::Error),
    Writing(io::Error),
}

impl<'a> Direction<'a> {
    fn new(bytes: &'a AtomicU64) -> Direction<'a> {
        Direction {
            state: Part::Copy,
            source: Origin::Sound,
            held: Vec::new(),
            written: 0,
            bytes,
            steps: 0,
        }
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<Result<(), Broken>> {
        loop {
            match self.state {
                Part::Copy if !self.held.is_empty() => {
                    let rest = self.held.get(self.written..).unwrap_or_default();
                    let written = ready!(Pin::new(&mut *to).poll_write(context, rest));
                    self.note(written.map_err(Broken::Writing)?)?;
                    if self.written >= self.held.len() {
                        self.held = Vec::new();
                        self.state = Part::Flush;
                    }
                }
                Part::Copy => match ready!(self.pass(context, from, to))? {
                    0 => self.state = Part::Close,
                    _ if self.held.is_empty() => self.state = Part::Flush,
                    _ => {}
                },
                Part::Flush => {
                    ready!(Pin::new(&mut *to).poll_flush(context)).map_err(Broken::Writing)?;
                    self.state = Part::Copy;
                }
                Part::Close if self.source == Origin::Reset => {
                    let error = io::ErrorKind::ConnectionReset.into();
                    return Poll::Ready(Err(Broken::Reading(error)));
                }
                Part::Close => {
                    ready!(Pin::new(&mut *to).poll_shutdown(context)).map_err(Broken::Writing)?;
                    self.steps += 1;
                    self.state = Part::Done;
                }
                Part::Done => return Poll::Ready(Ok(())),
                Part::Refused => {
                    self.held = Vec::new();
                    if ready!(self.drop_read(context, from))? == 0 {
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
    }

    /// Reads what is there, and writes as much of it as can be; keeps the rest. Zero is the end.
    fn pass(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<Result<usize, Broken>> {
        passing(|buffer| {
            let read = ready!(read(context, from, buffer))?;
            let bytes = buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                return Poll::Ready(Ok(0));
            }
            self.steps += 1;
            self.written = 0;
            let written = match Pin::new(to).poll_write(context, bytes) {
                Poll::Ready(written) => written.map_err(Broken::Writing)?,
                Poll::Pending => {
                    self.held = bytes.to_vec();
                    return Poll::Ready(Ok(read));
                }
            };
            self.note(written)?;
            self.written = 0;
            self.held = bytes.get(written..).unwrap_or_default().to_vec();
            Poll::Ready(Ok(read))
        })
    }

    fn drop_read(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
    ) -> Poll<Result<usize, Broken>> {
        passing(|buffer| {
            let read = ready!(read(context, from, buffer))?;
            self.steps += 1;
            Poll::Ready(Ok(read))
        })
    }

    fn note(&mut self, written: usize) -> Result<(), Broken> {
        if written == 0 {
            return Err(Broken::Writing(io::ErrorKind::WriteZero.into()));
        }
        self.written += written;
        self.steps += 1;
        let written = u64::try_from(written).unwrap_or(u64::MAX);
        self.bytes.fetch_add(written, Ordering::Relaxed);
        Ok(())
    }
}

/// Reads once. Who closes TCP without TLS's goodbye has sent all, too: TCP tells the other side no
/// more than that.
fn read(
    context: &mut Context<'_>,
    from: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
) -> Poll<Result<usize, Broken>> {
    let mut buffer = ReadBuf::new(buffer);
    match ready!(Pin::new(from).poll_read(context, &mut buffer)) {
        Ok(()) => Poll::Ready(Ok(buffer.filled().len())),
        Err(error) if is_end(&error) => Poll::Ready(Ok(0)),
        Err(error) => Poll::Ready(Err(Broken::Reading(error))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use tokio::io::{
        AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
    };

    use super::{BUFFER, Carried, End, relay};

    const LONG: Duration = Duration::from_secs(3600);

    /// A relay, and both of its ends, with little room between.
    fn relayed(
        idle: Duration,
    ) -> (
        DuplexStream,
        DuplexStream,
        tokio::task::JoinHandle<(End, u64, u64)>,
    ) {
        let (client, mut client_side) = duplex(1000);
        let (backend, mut backend_side) = duplex(1000);
        let task = tokio::spawn(async move {
            let carried = Carried::default();
            let end = relay(&mut client_side, &mut backend_side, idle, &carried).await;
            let Carried {
                to_client,
                to_backend,
            } = carried;
            (
                end.unwrap(),
                to_client.into_inner(),
                to_backend.into_inner(),
            )
        });
        (client, backend, task)
    }

    #[tokio::test]
    async fn each_side_closes_its_own_direction() {
        let (mut client, mut backend, task) = relayed(LONG);
        client.write_all(b"a request").await.unwrap();
        client.shutdown().await.unwrap();
        let mut request = Vec::new();
        backend.read_to_end(&mut request).await.unwrap();
        assert_eq!(request, b"a request");
        // Now that the client has ended, it is answered, with more than fits anywhere.
        let answer: Vec<u8> = (0..5 * BUFFER).map(|byte| byte as u8).collect();
        let sent = answer.clone();
        let answering = tokio::spawn(async move {
            backend.write_all(&sent).await.unwrap();
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, answer);
        answering.await.unwrap();
        let length = answer.len() as u64;
        assert_eq!(task.await.unwrap(), (End::Complete, length, 9));
    }

    /// A backend that reads no more than a little, and answers.
    struct Deaf(DuplexStream, usize);

    impl AsyncRead for Deaf {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Deaf {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.1 == 0 {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            self.1 -= 1;
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn an_answer_reaches_a_client_whose_request_is_not_read() {
        let (mut client, mut client_side) = duplex(1000);
        let (mut backend, backend_side) = duplex(1000);
        let task = tokio::spawn(async move {
            let carried = Carried::default();
            let mut backend = Deaf(backend_side, 2);
            relay(&mut client_side, &mut backend, LONG, &carried)
                .await
                .unwrap()
        });
        // It sends more than fits anywhere before it reads.
        let uploading = client.write_all(&[7; 5 * BUFFER]);
        uploading.await.unwrap();
        let answer = vec![1; 5 * BUFFER];
        let sent = answer.clone();
        let answering = tokio::spawn(async move {
            backend.write_all(&sent).await.unwrap();
            backend.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, answer);
        answering.await.unwrap();
        assert_eq!(task.await.unwrap(), End::Refused);
    }

    #[tokio::test]
    async fn what_rests_too_long_is_closed() {
        let (mut client, mut backend, task) = relayed(Duration::from_millis(50));
        client.write_all(b"x").await.unwrap();
        backend.read_exact(&mut [0]).await.unwrap();
        assert_eq!(task.await.unwrap(), (End::Idle, 0, 1));
    }
}
