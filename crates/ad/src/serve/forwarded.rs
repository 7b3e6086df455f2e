//! A relay that reads HTTP/1.1, to tell the backend in each request whose it is.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{
    CONNECTION, EXPECT, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::Extensions;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::backend::{Backend, timed};
use super::relay::{Carried, End, passing, relay};
use crate::end::is_end;

/// The largest head of a message, in bytes.
const MAX_HEAD: usize = 64 << 10;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What connects anew, and how long it may take.
pub(super) struct To<'a> {
    pub(super) backend: &'a Backend,
    pub(super) client: IpAddr,
    pub(super) connecting: Duration,
    pub(super) idle: Duration,
    /// Whom to tell that the backend could be connected to, or why not.
    pub(super) connected: &'a (dyn Fn(Result<(), &io::Error>) + Sync),
}

/// Relays requests and their responses until one side closes, or nothing moves for as long as connections may rest, or,
/// after the last response, when the server stops.
///
/// # Errors
///
/// What neither side's going away explains.
pub(super) async fn relay_http<C>(
    client: C,
    to: To<'_>,
    stops: impl Future<Output = ()>,
    carried: &Carried,
) -> io::Result<End>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let moved = Arc::new(Moved::default());
    let upstream = tokio::sync::Mutex::new(Upstream::default());
    let upgrade = Mutex::new(None);
    let io = Io {
        stream: client,
        moved: Arc::clone(&moved),
    };
    let service = service_fn(|request| async {
        let response = forward(request, &to, &upstream, &upgrade, &moved).await;
        Ok::<_, Infallible>(response.unwrap_or_else(answer))
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
    };
    let note = |moved: &AtomicU64, carried: &AtomicU64| {
        carried.fetch_add(moved.load(Ordering::Relaxed), Ordering::Relaxed)
    };
    note(&moved.written, &carried.to_client);
    note(&moved.read, &carried.to_backend);
    let upgrade = upgrade
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
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
        _ if error.is_parse() => Err(io::Error::other(format!("no HTTP/1.1: {error}"))),
        // Who goes away is not worth a word.
        _ => Ok(End::ClientGone),
    }
}

/// The connection to the backend, which outlives requests.
#[derive(Default)]
struct Upstream {
    sender: Option<SendRequest<Incoming>>,
    /// What carries its bytes, and ends with it.
    tasks: JoinSet<()>,
}

type Upgrade = (OnUpgrade, OnUpgrade);

/// Sends one request on, and brings its response.
async fn forward(
    mut request: Request<Incoming>,
    to: &To<'_>,
    upstream: &tokio::sync::Mutex<Upstream>,
    upgrade: &Mutex<Option<Upgrade>>,
    moved: &Arc<Moved>,
) -> Result<Response<MaybeBody>, StatusCode> {
    if request.method() == Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let client = hyper::upgrade::on(&mut request);
    prepare(request.headers_mut(), to.client);
    // One without a Host is of HTTP/1.0, and stays so.
    if request.headers().contains_key(hyper::header::HOST) {
        *request.version_mut() = Version::HTTP_11;
    }
    let mut upstream = upstream.lock().await;
    let mut response = upstream.send(request, to, moved).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let backend = hyper::upgrade::on(&mut response);
        let mut upgrade = upgrade.lock().unwrap_or_else(PoisonError::into_inner);
        *upgrade = Some((client, backend));
    } else {
        hop_by_hop(response.headers_mut());
    }
    *response.version_mut() = Version::HTTP_11;
    Ok(response.map(MaybeBody::Relayed))
}

impl Upstream {
    /// Sends a request, on a new connection if there is none, or if the old one was closed before it was sent.
    async fn send(
        &mut self,
        mut request: Request<Incoming>,
        to: &To<'_>,
        moved: &Arc<Moved>,
    ) -> Result<Response<Incoming>, StatusCode> {
        const GONE: StatusCode = StatusCode::BAD_GATEWAY;
        if let Some(mut sender) = self.sender.take()
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.sender = Some(sender);
                    return Ok(response);
                }
                // Nothing of it was sent.
                Err(mut error) => request = error.take_message().ok_or(GONE)?,
            }
        }
        let mut sender = self.connect(to, moved).await.ok_or(GONE)?;
        let response = sender.send_request(request).await.map_err(|_| GONE)?;
        self.sender = Some(sender);
        Ok(response)
    }

    async fn connect(&mut self, to: &To<'_>, moved: &Arc<Moved>) -> Option<SendRequest<Incoming>> {
        let connected = timed(to.connecting, to.backend.connect()).await;
        (to.connected)(connected.as_ref().map(|_| ()));
        let io = Io::<TcpStream> {
            stream: connected.ok()?,
            moved: moved.of_backend(),
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

/// Says whose the request is, and leaves out whatever the client has said of that.
fn prepare(headers: &mut HeaderMap, client: IpAddr) {
    let upgrades = headers.get(UPGRADE).cloned().filter(|_| {
        let mut tokens = tokens(headers);
        tokens.any(|token| token.eq_ignore_ascii_case("upgrade"))
    });
    hop_by_hop(headers);
    let claims: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_claim(name))
        .cloned()
        .collect();
    for name in claims {
        headers.remove(name);
    }
    // It was answered if it was asked.
    headers.remove(EXPECT);
    if let Some(protocol) = upgrades {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    let client = HeaderValue::from_str(&client.to_canonical().to_string());
    // Addresses are letters, digits, dots and colons.
    if let Ok(client) = client {
        headers.insert(FORWARDED_FOR, client);
    }
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
}

/// Whether a field says where a request comes from, in whatever form applications may read it: many take `_` for `-`.
fn is_claim(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    name == "forwarded" || name == "x-real-ip" || name.starts_with("x-forwarded-")
}

/// Leaves out what is for this connection alone (RFC 9110, section 7.6.1). How a body ends is told anew.
fn hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers)
        .filter_map(|token| token.parse().ok())
        .collect();
    let known = ["keep-alive", "proxy-connection"].map(HeaderName::from_static);
    let known = known
        .into_iter()
        .chain([CONNECTION, TE, TRANSFER_ENCODING, UPGRADE]);
    for name in known.chain(named) {
        headers.remove(name);
    }
}

/// What the fields Connection name.
fn tokens(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let values = headers.get_all(CONNECTION).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let tokens = values.flat_map(|value| value.split(','));
    let tokens: Vec<_> = tokens.map(|token| token.trim().to_owned()).collect();
    tokens.into_iter()
}

/// A response of this program's own.
fn answer(status: StatusCode) -> Response<MaybeBody> {
    let mut response = Response::new(MaybeBody::None);
    *response.status_mut() = status;
    *response.extensions_mut() = Extensions::new();
    response
}

/// The backend's body, or none.
enum MaybeBody {
    Relayed(Incoming),
    None,
}

impl Body for MaybeBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            MaybeBody::Relayed(body) => Pin::new(body).poll_frame(context),
            MaybeBody::None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            MaybeBody::Relayed(body) => body.is_end_stream(),
            MaybeBody::None => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            MaybeBody::Relayed(body) => body.size_hint(),
            MaybeBody::None => SizeHint::with_exact(0),
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
        Pin::new(&mut self.stream).poll_flush(context)
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
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    use super::prepare;

    #[test]
    fn what_a_client_says_of_itself_is_left_out() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "a.example"),
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-for", "7.7.7.7"),
            ("x_forwarded_for", "6.6.6.6"),
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "for=6.6.6.6"),
            ("x-real-ip", "6.6.6.6"),
            // Else the backend's own proxies would leave it out.
            ("connection", "close, X-Forwarded-For, x-own"),
            ("x-own", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("cookie", "kept"),
        ] {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_static(value));
        }
        prepare(&mut headers, "::ffff:192.0.2.7".parse().unwrap());
        let mut left: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "cookie: kept",
                "host: a.example",
                "x-forwarded-for: 192.0.2.7",
                "x-forwarded-proto: https",
            ]
        );
    }

    #[test]
    fn an_upgrade_is_asked_for_as_the_client_did() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "connection",
            HeaderValue::from_static("keep-alive, Upgrade"),
        );
        headers.insert("upgrade", HeaderValue::from_static("websocket"));
        prepare(&mut headers, "192.0.2.7".parse().unwrap());
        assert_eq!(headers.get("connection").unwrap(), "upgrade");
        assert_eq!(headers.get("upgrade").unwrap(), "websocket");
    }
}
