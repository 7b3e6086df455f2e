//! A relay that reads HTTP/1.1, to tell the backend in each request whose it is.

mod head;
mod pace;

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use hyper::header::HeaderName;
use hyper::http::Extensions;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, Response, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::head::{hop_by_hop, is_websocket, prepare};
use self::pace::{Pace, UnderWay};
use super::backend::{Backend, timed};
use super::relay::{Carried, End, passing, relay};
use super::room::{MADE_ROOM, Spot};
use crate::end::is_end;

/// The largest head of a message, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// What connects anew, and how long it may take.
pub(super) struct To<'a> {
    pub(super) backend: &'a Backend,
    pub(super) client: IpAddr,
    /// Fields of requests that don't go on, besides what claims to know the client.
    pub(super) dropped: &'a [HeaderName],
    pub(super) connecting: Duration,
    pub(super) idle: Duration,
    /// From the first byte of a request's head to its end, and for a body besides what it brings.
    pub(super) request: Duration,
    /// The place that makes room for others, except within a request.
    pub(super) spot: Arc<Spot>,
    /// Whom to tell that the backend could be connected to, or why not.
    pub(super) connected: &'a (dyn Fn(Result<(), &io::Error>) + Sync),
    /// Whom to tell why a backend that was connected to has not answered a request, or not to the
    /// end.
    pub(super) unanswered: &'a (dyn Fn(&str) + Sync),
}

/// Relays requests and their responses until one side closes, or nothing moves for as long as
/// connections may rest, or, after the last response, when the server stops.
///
/// # Errors
///
/// What neither side's going away explains, and a client that is too slow.
pub(super) async fn relay_http<C>(
    client: C,
    to: To<'_>,
    stops: impl Future<Output = ()>,
    carried: &Carried,
) -> io::Result<End>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pace = Pace::new(Arc::clone(&to.spot), to.request);
    let between = Between {
        to,
        pace: Arc::clone(&pace),
        upstream: tokio::sync::Mutex::default(),
        upgrade: Mutex::default(),
        moved: Arc::default(),
        faults: Arc::default(),
    };
    let Between { to, moved, .. } = &between;
    let io = Io {
        stream: client,
        moved: Arc::clone(moved),
        pace: Some(Arc::clone(&pace)),
    };
    let service = service_fn(|request| async {
        let (body, response) = between.pace.begins();
        let relayed = between.forward(request, body).await;
        let head = relayed.unwrap_or_else(answer);
        Ok::<_, Infallible>(head.map(|body| Answer {
            body,
            faults: Arc::clone(&between.faults),
            _under_way: response,
        }))
    });
    let served = hyper::server::conn::http1::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .half_close(true)
        .max_buf_size(MAX_HEAD)
        .serve_connection(io, service)
        .with_upgrades();
    let mut served = pin!(served);
    let until_end = async {
        tokio::select! {
            served = served.as_mut() => return ended(served),
            () = stops => {}
        }
        // What is under way comes to its end.
        served.as_mut().graceful_shutdown();
        ended(served.await)
    };
    let ended = tokio::select! {
        ended = until_end => ended,
        () = moved.rests(to.idle) => Ok(End::Idle),
        () = to.spot.has_to_go() => Err(io::Error::other(MADE_ROOM)),
        why = pace.is_too_slow() => Err(io::Error::other(why)),
    };
    let note = |moved: &AtomicU64, carried: &AtomicU64| {
        carried.fetch_add(moved.load(Ordering::Relaxed), Ordering::Relaxed)
    };
    note(&moved.written, &carried.to_client);
    note(&moved.read, &carried.to_backend);
    match between.faults.first() {
        // Hyper's own words may be the client's.
        Some(Fault::Malformed) => return Err(no_http(&"a malformed chunk")),
        Some(Fault::Unanswered(why)) => (to.unanswered)(&why),
        Some(Fault::ClientGone) | None => {}
    }
    let upgrade = between.upgrade.lock();
    let upgrade = upgrade.unwrap_or_else(PoisonError::into_inner).take();
    match (ended, upgrade) {
        (Ok(End::Complete), Some((client, backend))) => {
            let both = tokio::try_join!(client, backend);
            let (client, backend) = both.map_err(io::Error::other)?;
            let (mut client, mut backend) = (Plain(client), Plain(backend));
            relay(&mut client, &mut backend, to.idle, carried).await
        }
        (ended, _) => ended,
    }
}

fn ended(served: Result<(), hyper::Error>) -> io::Result<End> {
    let Err(error) = served else {
        return Ok(End::Complete);
    };
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause {
        _ if error.is_parse() => Err(no_http(&error)),
        // Who goes away is not worth a word.
        _ => Ok(End::ClientGone),
    }
}

fn no_http(why: &dyn Display) -> io::Error {
    io::Error::other(format!("no HTTP/1.1: {why}"))
}

/// What is between a client and the backend.
struct Between<'a> {
    to: To<'a>,
    pace: Arc<Pace>,
    upstream: tokio::sync::Mutex<Upstream>,
    upgrade: Mutex<Option<Upgrade>>,
    moved: Arc<Moved>,
    faults: Arc<Faults>,
}

/// What was wrong with a body.
#[derive(Debug)]
enum Fault {
    /// The client's was.
    Malformed,
    /// The client's was cut.
    ClientGone,
    /// The backend's was malformed or cut, and why.
    Unanswered(String),
}

/// The first fault: it ends both connections, and has others for consequences.
#[derive(Debug, Default)]
struct Faults(Mutex<Option<Fault>>);

impl Faults {
    fn note(&self, fault: impl FnOnce() -> Fault) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(fault);
    }

    fn first(&self) -> Option<Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The connection to the backend, which outlives requests.
#[derive(Default)]
struct Upstream {
    sender: Option<SendRequest<Sent>>,
    /// What carries its bytes, and ends with it.
    tasks: JoinSet<()>,
}

type Upgrade = (OnUpgrade, OnUpgrade);

impl Between<'_> {
    /// Sends one request on, and brings its response.
    async fn forward(
        &self,
        mut request: Request<Incoming>,
        under_way: UnderWay,
    ) -> Result<Response<Option<Incoming>>, StatusCode> {
        let client = hyper::upgrade::on(&mut request);
        prepare(&mut request, self.to.client, self.to.dropped)?;
        let is_upgrade = is_websocket(request.headers());
        let request = request.map(|body| Sent {
            body,
            under_way,
            faults: Arc::clone(&self.faults),
        });
        let mut upstream = self.upstream.lock().await;
        let mut response = upstream.send(request, &self.to, &self.moved).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if !(is_upgrade && is_websocket(response.headers())) {
                (self.to.unanswered)("it changes to a protocol that was not asked for");
                return Err(StatusCode::BAD_GATEWAY);
            }
            let backend = hyper::upgrade::on(&mut response);
            let mut upgrade = self.upgrade.lock().unwrap_or_else(PoisonError::into_inner);
            *upgrade = Some((client, backend));
            self.pace.upgrades();
        } else {
            hop_by_hop(response.headers_mut());
        }
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(Some))
    }
}

impl Upstream {
    /// Sends a request, on a new connection if there is none, or if the old one was closed before
    /// it was sent.
    async fn send(
        &mut self,
        mut request: Request<Sent>,
        to: &To<'_>,
        moved: &Arc<Moved>,
    ) -> Result<Response<Incoming>, StatusCode> {
        if let Some(mut sender) = self.sender.take()
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.sender = Some(sender);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    // Nothing of it was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(unanswered(error.error(), to)),
                },
            }
        }
        let sender = self.connect(to, moved).await;
        let mut sender = sender.ok_or(StatusCode::BAD_GATEWAY)?;
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| unanswered(&error, to))?;
        self.sender = Some(sender);
        Ok(response)
    }

    async fn connect(&mut self, to: &To<'_>, moved: &Arc<Moved>) -> Option<SendRequest<Sent>> {
        let connected = timed(to.connecting, to.backend.connect()).await;
        (to.connected)(connected.as_ref().map(|_| ()));
        let io = Io::<TcpStream> {
            stream: connected.ok()?,
            moved: moved.of_backend(),
            pace: None,
        };
        let shaken = hyper::client::conn::http1::Builder::new()
            .preserve_header_case(true)
            .max_buf_size(MAX_HEAD)
            .handshake(io)
            .await;
        let (sender, connection) = shaken.ok()?;
        self.tasks.spawn(async move {
            // Whoever waits for a response learns of it.
            let _ = connection.with_upgrades().await;
        });
        Some(sender)
    }
}

/// Who is to blame if a request got no response: its body comes from the client, all else counts as
/// the backend's fault.
fn unanswered(error: &hyper::Error, to: &To<'_>) -> StatusCode {
    if error.is_user() {
        return StatusCode::BAD_REQUEST;
    }
    (to.unanswered)(&words(error));
    StatusCode::BAD_GATEWAY
}

/// What is wrong, and why: hyper has the latter apart.
fn words(error: &hyper::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// A response of this program's own.
fn answer(status: StatusCode) -> Response<Option<Incoming>> {
    let mut response = Response::new(None);
    *response.status_mut() = status;
    *response.extensions_mut() = Extensions::new();
    response
}

/// A client's body without its trailers, whose fields nobody looks at as at those of the head.
struct Sent {
    body: Incoming,
    under_way: UnderWay,
    faults: Arc<Faults>,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            this.under_way.waits();
            return Poll::Pending;
        };
        let data = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref());
        this.under_way.has(data.map_or(0, Bytes::len));
        if let Some(Err(error)) = &frame {
            this.faults.note(|| {
                if is_malformed(error) {
                    Fault::Malformed
                } else {
                    Fault::ClientGone
                }
            });
        }
        Poll::Ready(frame.filter(|frame| !frame.as_ref().is_ok_and(Frame::is_trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether a body is wrong, and not only cut.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    let kind = cause.map(io::Error::kind);
    matches!(
        kind,
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    )
}

/// The backend's body, or none.
struct Answer {
    body: Option<Incoming>,
    faults: Arc<Faults>,
    _under_way: UnderWay,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if let Some(Err(error)) = &frame {
            this.faults.note(|| Fault::Unanswered(words(error)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

/// What has moved, and when it did last.
#[derive(Debug)]
struct Moved {
    read: AtomicU64,
    written: AtomicU64,
    last: Arc<Mutex<Instant>>,
}

impl Default for Moved {
    fn default() -> Moved {
        Moved {
            read: AtomicU64::default(),
            written: AtomicU64::default(),
            last: Arc::new(Mutex::new(Instant::now())),
        }
    }
}

impl Moved {
    /// For a connection whose bytes are not counted, but keep this one from resting.
    fn of_backend(&self) -> Arc<Moved> {
        Arc::new(Moved {
            last: Arc::clone(&self.last),
            ..Moved::default()
        })
    }

    fn note(&self, count: &AtomicU64, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        count.fetch_add(bytes, Ordering::Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    async fn rests(&self, idle: Duration) {
        loop {
            let until = *self.last.lock().unwrap_or_else(PoisonError::into_inner) + idle;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// A stream as hyper takes it.
struct Io<S> {
    stream: S,
    moved: Arc<Moved>,
    /// The client's.
    pace: Option<Arc<Pace>>,
}

impl<S: AsyncRead + Unpin> hyper::rt::Read for Io<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut to: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        passing(|buffer| {
            let room = buffer.len().min(to.remaining());
            let mut read = ReadBuf::new(buffer.get_mut(..room).unwrap_or_default());
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut read)) {
                Ok(()) => {}
                // Many clients end the connection without TLS's goodbye.
                Err(error) if is_end(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            this.moved.note(&this.moved.read, read.filled().len());
            if let Some(pace) = &this.pace
                && !read.filled().is_empty()
            {
                pace.reads();
            }
            to.put_slice(read.filled());
            Poll::Ready(Ok(()))
        })
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for Io<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.moved.note(&self.moved.written, written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        if let Some(pace) = &self.pace {
            pace.is_flushed();
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A connection that speaks another protocol now, as tokio takes it.
struct Plain(Upgraded);

impl AsyncRead for Plain {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut read = hyper::rt::ReadBuf::new(to.initialize_unfilled());
        ready!(hyper::rt::Read::poll_read(
            Pin::new(&mut self.0),
            context,
            read.unfilled()
        ))?;
        let length = read.filled().len();
        to.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Plain {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        hyper::rt::Write::poll_write(Pin::new(&mut self.0), context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        hyper::rt::Write::poll_flush(Pin::new(&mut self.0), context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        hyper::rt::Write::poll_shutdown(Pin::new(&mut self.0), context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
