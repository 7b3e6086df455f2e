//! As much of HTTP/1.1 as fetching one resource takes (RFC 9112).

mod watched;

use std::error::Error;
use std::fmt;
use std::future;
use std::io::{self, ErrorKind, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONNECTION, HOST, LOCATION, TRANSFER_ENCODING, USER_AGENT};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Response, StatusCode, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

use crate::tls::stream_words;

use watched::{ObservedStream, Watched};

/// The largest head of a response, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// The most header fields.
const MAX_FIELDS: usize = 100;

/// What is to be fetched: `https://HOST[:PORT][/PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// A name, or an address without brackets.
    pub host: String,
    /// 443 if none is given.
    pub port: u16,
    /// With the query.
    pub path: String,
}

/// Why a text is no such URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{url}\" is no URL that can be fetched: {hint}")]
pub struct UrlError {
    url: String,
    hint: &'static str,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Url, UrlError> {
        let wrong = |hint| UrlError {
            url: url.to_owned(),
            hint,
        };
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("write its special characters as %XX"));
        }
        let malformed = |_| wrong("name a host, an IPv6 address in brackets");
        let uri = url.parse::<Uri>().map_err(malformed)?;
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(wrong("begin it with https://"));
        }
        let authority = uri.authority().map_or("", Authority::as_str);
        let host = uri.host().unwrap_or_default();
        let name = host.trim_matches(['[', ']']);
        if name.is_empty() || authority.contains('@') {
            return Err(wrong("name a host, without a user"));
        }
        let port = match authority.strip_prefix(host) {
            None | Some("") => 443,
            Some(port) => match port.strip_prefix(':').map(str::parse) {
                Some(Ok(port)) => port,
                Some(Err(_)) => return Err(wrong("use a port up to 65535")),
                None => return Err(wrong("put a colon before the port")),
            },
        };
        Ok(Url {
            host: name.to_ascii_lowercase(),
            port,
            path: match uri.query() {
                Some(query) => format!("{}?{query}", uri.path()),
                None => uri.path().to_owned(),
            },
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority(), self.path)
    }
}

impl Url {
    /// What a response of this URL means with its field Location: another URL, or a path here (RFC
    /// 9110, section 10.2.2, but for paths that are relative to this one's).
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub(crate) fn redirected(&self, location: &str) -> Result<Url, UrlError> {
        match location.strip_prefix('/') {
            Some(path) if !path.starts_with('/') => {
                format!("https://{}{location}", self.authority()).parse()
            }
            _ => location.parse(),
        }
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match self.port {
            443 => host,
            port => format!("{host}:{port}"),
        }
    }
}

/// Why there is no whole response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Its head is not HTTP/1.1, or larger than we take.
    #[error("the response is no HTTP/1.1 that can be read: {0}")]
    Head(String),
    /// Its length can't be known.
    #[error("the length of the response can't be told: {0}")]
    Framing(String),
    /// It ends too early.
    #[error("the server closes the connection before the response is complete")]
    Truncated,
    /// The end of the connection is that of the body, and TLS does not say that the server meant
    /// it: whoever is on the way can have cut it (RFC 9112, section 9.8).
    #[error(
        "the response says no length, and the connection ends without TLS's goodbye (close_notify): it may be cut short"
    )]
    Unclosed,
    /// The connection fails.
    #[error("{0}")]
    Io(io::Error),
    /// The body can't be written.
    #[error("can't write the body: {0}")]
    Body(io::Error),
}

impl From<hyper::Error> for HttpError {
    fn from(error: hyper::Error) -> HttpError {
        if error.is_incomplete_message() {
            return HttpError::Truncated;
        }
        let cause = error.source().and_then(|cause| cause.downcast_ref());
        match cause.map(|cause: &io::Error| (cause.kind(), stream_words(cause))) {
            None => HttpError::Head(match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            }),
            Some((ErrorKind::UnexpectedEof, _)) => HttpError::Truncated,
            // So it says of chunks; a connection has other kinds.
            Some((ErrorKind::InvalidInput | ErrorKind::InvalidData, problem)) => {
                HttpError::Framing(problem)
            }
            Some((kind, problem)) => HttpError::Io(io::Error::new(kind, problem)),
        }
    }
}

impl From<Elapsed> for HttpError {
    fn from(_: Elapsed) -> HttpError {
        HttpError::Io(ErrorKind::TimedOut.into())
    }
}

/// A response whose body was written. Times are since the clock began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Where it says that the resource is instead.
    pub(crate) location: Option<String>,
    pub(crate) body_bytes: u64,
    /// The first byte was there.
    pub(crate) start: Duration,
    /// All of it was there.
    pub(crate) total: Duration,
}

/// Asks for `url` over a connection, and writes the body of the response to `body`. No head for
/// `patience` ends it, and nothing of the body for as long.
///
/// # Errors
///
/// If there is no whole response, or it can't be written.
pub(crate) async fn get<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    url: &Url,
    clock: Instant,
    patience: Duration,
    body: &mut dyn Write,
) -> Result<Answer, HttpError> {
    let observed = Rc::new(ObservedStream::default());
    let stream = Watched::new(stream, clock, Rc::clone(&observed));
    let mut http = http1::Builder::new();
    http.max_buf_size(MAX_HEAD).max_headers(MAX_FIELDS);
    let (sender, connection) = http.handshake(stream).await?;
    // What ends the connection too early is for the exchange to say.
    let carry = async {
        let _ = connection.await;
        future::pending().await
    };
    let (status, location, body_bytes) = tokio::select! {
        exchanged = exchange(sender, url, patience, body, &observed) => exchanged?,
        never = carry => never,
    };
    let total = clock.elapsed();
    Ok(Answer {
        status,
        location,
        body_bytes,
        start: observed.first_byte.get().copied().unwrap_or(total),
        total,
    })
}

/// The status code, the field Location, and the size of the body.
async fn exchange(
    mut sender: SendRequest<String>,
    url: &Url,
    patience: Duration,
    body: &mut dyn Write,
    observed: &ObservedStream,
) -> Result<(u16, Option<String>, u64), HttpError> {
    let request = sender.send_request(request(url)?);
    let response = timeout(patience, request).await??;
    let status = response.status().as_u16();
    check(&response)?;
    let location = response.headers().get(LOCATION);
    let location = location.map(|field| String::from_utf8_lossy(field.as_bytes()).into_owned());
    let is_chunked = response.headers().contains_key(TRANSFER_ENCODING);
    let mut incoming = response.into_body();
    // Neither of a length nor in chunks, it ends with the connection.
    let ends_with_connection = !is_chunked && incoming.size_hint().exact().is_none();
    let mut body_bytes = 0;
    loop {
        let frame = future::poll_fn(|context| Pin::new(&mut incoming).poll_frame(context));
        let Some(frame) = timeout(patience, frame).await? else {
            break;
        };
        // What is no data is a trailer.
        if let Ok(data) = frame?.into_data() {
            body_bytes += data.len() as u64;
            body.write_all(&data).map_err(HttpError::Body)?;
        }
    }
    body.flush().map_err(HttpError::Body)?;
    if ends_with_connection && observed.is_cut.get() {
        return Err(HttpError::Unclosed);
    }
    Ok((status, location, body_bytes))
}

/// Refuses what was not asked for.
fn check(response: &Response<Incoming>) -> Result<(), HttpError> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(HttpError::Head("it switches protocols".to_owned()));
    }
    let codings = response.headers().get_all(TRANSFER_ENCODING);
    let codings = codings
        .iter()
        .map(|coding| String::from_utf8_lossy(coding.as_bytes()));
    for coding in codings {
        if !coding.eq_ignore_ascii_case("chunked") {
            return Err(HttpError::Framing(format!("Transfer-Encoding: {coding}")));
        }
    }
    Ok(())
}

/// The request (RFC 9112, section 3).
fn request(url: &Url) -> Result<Request<String>, HttpError> {
    Request::get(&url.path)
        .header(HOST, url.authority())
        .header(USER_AGENT, concat!("lastbyte/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .header(CONNECTION, "close")
        .body(String::new())
        .map_err(|error| HttpError::Io(io::Error::other(error)))
}

#[cfg(test)]
mod tests;
