//! What a browser tells of a load.

use std::time::Duration;

use lastbyte_link::Bytes;
use serde::{Deserialize, Serialize};

use crate::page::Kind;

/// One load of a page. All times are since the navigation began, as the browser has it (`navigationStart`), in whole microseconds: its
/// clock has no finer ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The browser and its version: `Chrome/156.0.8078.79`.
    pub browser: String,
    /// Where the page is.
    pub url: String,
    /// When the navigation began, since the beginning of 1970.
    pub began: Duration,
    /// When the document's connection was there. Absent where it was there before, and over QUIC, which has none before TLS's.
    pub connect: Option<Duration>,
    /// When TLS on it was done. Absent without TLS, too.
    pub handshake: Option<Duration>,
    /// When the first byte of the document's response was there (`responseStart`).
    pub ttfb: Duration,
    /// When the document was read and its scripts had run.
    pub dom_content_loaded: Option<Duration>,
    /// When something of the page was seen at first: text or a picture.
    pub fcp: Duration,
    /// When the largest text or picture was seen. Absent where the browser saw none.
    pub lcp: Option<Duration>,
    /// When all that holds up the `load` event was there.
    pub load: Duration,
    /// When the average part of the screen looked as in the end. Absent where no frames were asked for.
    pub speed_index: Option<Duration>,
    /// How far the screen was at each frame that changed it.
    pub frames: Vec<Frame>,
    /// What the page's main thread had computed. Absent where that was not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computing: Option<Computing>,
    /// All requests, in the order in which they were made.
    pub requests: Vec<Request>,
    /// All connections that requests were made on, in the order of their ends of connecting.
    pub connections: Vec<Connection>,
}

/// Processor time of the tasks of a page's main thread that had begun since the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Computing {
    /// By [`Load::fcp`].
    pub fcp: Duration,
    /// By [`Load::lcp`].
    pub lcp: Option<Duration>,
    /// By [`Load::load`].
    pub load: Duration,
}

/// A frame on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// When.
    pub at: Duration,
    /// How much of the screen looks as in the end: from 0, blank, to 1.
    pub progress: f64,
}

/// One request, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// For what.
    pub url: String,
    /// What it is for; none for what pages here don't have.
    #[serde(with = "kind")]
    pub kind: Option<Kind>,
    /// In what it was found.
    pub found_in: Option<String>,
    /// When it was found.
    pub start: Duration,
    /// What was done to have a connection for it; none where there was one.
    pub connecting: Option<Connecting>,
    /// When it was sent.
    pub sent: Option<Duration>,
    /// When the first byte of its response was there.
    pub first_byte: Option<Duration>,
    /// When the last one was, or when it failed.
    pub end: Option<Duration>,
    /// On which connection, by [`Connection::id`].
    pub connection: Option<u64>,
    /// The response's status.
    pub status: Option<u16>,
    /// Fields of the response.
    pub fields: Vec<(String, String)>,
    /// `h3`, `h2`, `http/1.1`.
    pub protocol: String,
    /// The response's media type.
    pub media_type: String,
    /// Who answered it.
    pub source: Source,
    /// The bytes of its response as HTTP has them: fields and body, compressed.
    #[serde(with = "bytes")]
    pub wire: Bytes,
    /// The body's bytes, uncompressed.
    #[serde(with = "bytes")]
    pub body: Bytes,
    /// How urgent the browser found it in the end: `VeryHigh` to `VeryLow`.
    pub priority: String,
    /// Why there is no response, or not all of it: `net::ERR_CONNECTION_RESET`.
    pub failure: Option<String>,
}

/// Who answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// A server.
    Network,
    /// The browser itself, which has it.
    Cache,
}

/// The way to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connecting {
    /// The name is resolved.
    pub dns: Option<(Duration, Duration)>,
    /// TCP connects. Absent over QUIC, which has nothing of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<(Duration, Duration)>,
    /// TLS shakes hands.
    pub tls: Option<(Duration, Duration)>,
}

impl Connecting {
    /// From its first packet until it can be used.
    #[must_use]
    pub fn whole(&self) -> Option<(Duration, Duration)> {
        let (start, _) = self.tcp.or(self.tls)?;
        let (_, end) = self.tls.or(self.tcp)?;
        Some((start, end))
    }
}

/// A connection as the browser sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Its number.
    pub id: u64,
    /// With whom: scheme, name and port, as in a URL.
    pub origin: String,
    /// How it came about; none where it was there before all that took it: browsers tell no times of one that connected for a request
    /// which another connection, idle meanwhile, then carried.
    pub connecting: Option<Connecting>,
    /// How many requests went over it.
    pub requests: u32,
    /// `h3`, `h2`, `http/1.1`.
    pub protocol: String,
    /// What was negotiated.
    pub tls: Option<Negotiated>,
}

/// What a browser says of TLS on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Negotiated {
    /// `TLS 1.3`.
    pub version: String,
    /// `X25519MLKEM768`.
    pub group: String,
    /// `AES_128_GCM`.
    pub cipher: String,
    /// The code point of the signature in CertificateVerify (RFC 8446, 4.2.3); none where the session was resumed.
    pub signature: Option<u16>,
    /// Whose certificate it is.
    pub subject: String,
    /// Who issued it.
    pub issuer: String,
}

impl Load {
    /// All bytes that servers sent as responses.
    #[must_use]
    pub fn wire(&self) -> Bytes {
        Bytes(self.requests.iter().map(|request| request.wire.0).sum())
    }

    /// Requests that servers answered.
    pub fn from_network(&self) -> impl Iterator<Item = &Request> {
        let all = self.requests.iter();
        all.filter(|request| request.source == Source::Network)
    }

    /// Requests of which no whole response came, or one that says that there is nothing.
    pub fn failures(&self) -> impl Iterator<Item = &Request> {
        let all = self.requests.iter();
        all.filter(|request| {
            request.failure.is_some() || request.status.is_some_and(|status| status >= 400)
        })
    }
}

mod bytes {
    use lastbyte_link::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        bytes.0.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        u64::deserialize(from).map(Bytes)
    }
}

mod kind {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use crate::page::Kind;

    pub(super) fn serialize<S: Serializer>(kind: &Option<Kind>, to: S) -> Result<S::Ok, S::Error> {
        kind.map(Kind::name).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Kind>, D::Error> {
        let name = Option::<String>::deserialize(from)?;
        name.map(|name| name.parse().map_err(de::Error::custom))
            .transpose()
    }
}
