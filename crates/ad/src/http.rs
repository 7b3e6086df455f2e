//! As much of HTTP/1.1 as fetching one resource takes (RFC 9112).

use std::fmt;
use std::str::FromStr;

/// The largest head of a response, or line of a chunk, in bytes.
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
#[error("\"{url}\" is no URL that can be fetched: {mend}")]
pub struct UrlError {
    url: String,
    mend: &'static str,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Url, UrlError> {
        let wrong = |mend| UrlError {
            url: url.to_owned(),
            mend,
        };
        let scheme = "https://";
        let rest = match url.get(..scheme.len()) {
            Some(start) if start.eq_ignore_ascii_case(scheme) => &url[scheme.len()..],
            _ => return Err(wrong("begin it with https://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("write its special characters as %XX"));
        }
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or(wrong("close the bracket"))?,
            None => match authority.find(':') {
                Some(at) => authority.split_at(at),
                None => (authority, ""),
            },
        };
        if host.is_empty() || host.contains(['@', '[', ']']) {
            return Err(wrong("name a host, without a user"));
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => 443,
            None => return Err(wrong("put a colon before the port")),
            Some(port) => port.parse().map_err(|_| wrong("use a port up to 65535"))?,
        };
        Ok(Url {
            host: host.to_ascii_lowercase(),
            port,
            path: match path.strip_prefix('/') {
                Some(_) => path.to_owned(),
                None => format!("/{path}"),
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
    /// The request (RFC 9112, section 3).
    pub fn request(&self) -> Vec<u8> {
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: lastbyte/{}\r\nAccept: */*\r\n\
             Connection: close\r\n\r\n",
            self.path,
            self.authority(),
            env!("CARGO_PKG_VERSION"),
        )
        .into_bytes()
    }

    fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port {
            443 => host,
            port => format!("{host}:{port}"),
        }
    }
}

/// Why a response can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Its head is not HTTP/1.1.
    #[error("the response is not HTTP/1.1: {0}")]
    Head(String),
    /// Its head is larger than we take.
    #[error("the head of the response exceeds {MAX_HEAD} bytes")]
    TooLarge,
    /// Its length can't be told.
    #[error("the length of the response can't be told: {0}")]
    Framing(String),
    /// It ends too early.
    #[error("the server closes the connection before the response is complete")]
    Truncated,
}

/// Reads one response, in whatever pieces it comes.
#[derive(Debug, Default)]
pub struct Response {
    status: Option<u16>,
    state: State,
    /// What was received and not yet read.
    received: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// So many bytes of the body are to come.
    Length(u64),
    /// All until the end of the connection.
    UntilClose,
    /// The size of a chunk.
    ChunkSize,
    /// So many bytes of a chunk are to come.
    Chunk(u64),
    /// The line break after a chunk.
    ChunkEnd,
    Trailers,
    Done,
}

impl Response {
    /// The status code, once the head is there.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether all of it is there.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes what came, and appends what it has of the body to `body`.
    ///
    /// # Errors
    ///
    /// If that is no response.
    pub fn push(&mut self, bytes: &[u8], body: &mut Vec<u8>) -> Result<(), HttpError> {
        self.received.extend_from_slice(bytes);
        while let Some(state) = self.step(body)? {
            self.state = state;
        }
        Ok(())
    }

    /// The connection has ended.
    ///
    /// # Errors
    ///
    /// If the response has not.
    pub fn close(&mut self) -> Result<(), HttpError> {
        match self.state {
            State::Done | State::UntilClose => {
                self.state = State::Done;
                Ok(())
            }
            _ => Err(HttpError::Truncated),
        }
    }

    /// The next state, unless more has to come first.
    fn step(&mut self, body: &mut Vec<u8>) -> Result<Option<State>, HttpError> {
        match self.state {
            State::Head => self.head(),
            State::Length(0) => Ok(Some(State::Done)),
            State::Length(left) => Ok(self.take(left, body).map(State::Length)),
            State::UntilClose => {
                body.append(&mut self.received);
                Ok(None)
            }
            State::ChunkSize => self.chunk_size(),
            State::Chunk(0) => Ok(Some(State::ChunkEnd)),
            State::Chunk(left) => Ok(self.take(left, body).map(State::Chunk)),
            State::ChunkEnd => match self.received.get(..2) {
                Some(b"\r\n") => {
                    self.received.drain(..2);
                    Ok(Some(State::ChunkSize))
                }
                Some(_) => Err(HttpError::Framing("a chunk does not end".to_owned())),
                None => Ok(None),
            },
            State::Trailers => self.trailer(),
            State::Done => Ok(None),
        }
    }

    fn head(&mut self) -> Result<Option<State>, HttpError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(&self.received);
        let parsed = parsed.map_err(|error| HttpError::Head(error.to_string()))?;
        let httparse::Status::Complete(length) = parsed else {
            return self.wait();
        };
        let status = response.code.unwrap_or_default();
        let state = match status {
            // Switching protocols was not asked for.
            101 => return Err(HttpError::Head("it switches protocols".to_owned())),
            100..200 => State::Head,
            204 | 304 => State::Done,
            _ => framing(response.headers)?,
        };
        if state != State::Head {
            self.status = Some(status);
        }
        self.received.drain(..length);
        Ok(Some(state))
    }

    fn chunk_size(&mut self) -> Result<Option<State>, HttpError> {
        let parsed = httparse::parse_chunk_size(&self.received);
        let wrong = |_| HttpError::Framing("a chunk has no size".to_owned());
        match parsed.map_err(wrong)? {
            httparse::Status::Complete((length, size)) => {
                self.received.drain(..length);
                Ok(Some(match size {
                    0 => State::Trailers,
                    size => State::Chunk(size),
                }))
            }
            httparse::Status::Partial => self.wait(),
        }
    }

    /// Skips a line of the trailer section; an empty one ends it.
    fn trailer(&mut self) -> Result<Option<State>, HttpError> {
        match self.received.windows(2).position(|two| two == b"\r\n") {
            Some(at) => {
                self.received.drain(..at + 2);
                Ok(Some(match at {
                    0 => State::Done,
                    _ => State::Trailers,
                }))
            }
            None => self.wait(),
        }
    }

    /// Takes up to `left` bytes of the body. How many are left then, if any came.
    fn take(&mut self, left: u64, body: &mut Vec<u8>) -> Option<u64> {
        let length =
            usize::try_from(left).map_or(self.received.len(), |left| left.min(self.received.len()));
        if length == 0 {
            return None;
        }
        body.extend(self.received.drain(..length));
        Some(left - length as u64)
    }

    fn wait(&self) -> Result<Option<State>, HttpError> {
        match self.received.len() {
            0..MAX_HEAD => Ok(None),
            _ => Err(HttpError::TooLarge),
        }
    }
}

/// How the body is delimited (RFC 9112, section 6.3).
fn framing(fields: &[httparse::Header<'_>]) -> Result<State, HttpError> {
    let values = |name: &'static str| {
        let fields = fields.iter();
        let named = fields.filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| {
            String::from_utf8_lossy(field.value)
                .trim()
                .to_ascii_lowercase()
        })
    };
    let codings: Vec<_> = values("transfer-encoding").collect();
    let mut lengths: Vec<_> = values("content-length").collect();
    lengths.dedup();
    match (codings.as_slice(), lengths.as_slice()) {
        ([], []) => Ok(State::UntilClose),
        ([coding], _) if coding == "chunked" => Ok(State::ChunkSize),
        ([], [length]) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            let length = length.parse().map(State::Length);
            length.map_err(|error| HttpError::Framing(format!("Content-Length: {error}")))
        }
        ([], lengths) => Err(HttpError::Framing(format!(
            "Content-Length: {}",
            lengths.join(", ")
        ))),
        (codings, _) => Err(HttpError::Framing(format!(
            "Transfer-Encoding: {}",
            codings.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests;
