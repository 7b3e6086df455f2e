//! What a probe found, as a file says it.

mod answer;
mod exchange;
mod quic;

pub use answer::{Answered, ResponseSeen, TicketsSeen};
pub use quic::{FirstAnswer, MOST_DATAGRAMS, NamedBy, QuicSeen};

use std::time::Duration;

use lastbyte_link::visible;
use lastbyte_sizes::KeyAlgorithm;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{Certainty, Pacing, RateSeen, Window, Writes};

/// The version of documents.
pub const VERSION: u64 = 1;
/// What documents call their form.
pub const SCHEMA: &str = "lastbyte.probe/1";

/// The JSON Schema of a [`Document`].
pub const JSON_SCHEMA: &str = include_str!("../schemas/probe-1.schema.json");

/// More than any chain has.
const MOST_CERTIFICATES: usize = 100;
/// More than any certificate has, in bytes.
const MOST_DER: usize = 1 << 20;
/// Bytes of a response: more than a probe reads of a connection, and few enough to be walked
/// through.
const MOST_RESPONSE: f64 = 8_388_608.0;
/// Bytes of a record on the wire, with the expansion that RFC 8446 allows it (section 5.2), and
/// that TLS 1.2 did.
const MOST_RECORD: f64 = 18_437.0;
/// Bytes of a server's handshake: ten times what OpenSSL takes of a chain, and few enough to be
/// walked through.
const MOST_FLIGHT: f64 = 1_048_576.0;
/// Bytes of a segment: Linux sends none that is smaller (`TCP_MIN_SND_MSS`).
const LEAST_SEGMENT: f64 = 48.0;
/// Bytes of a record on the wire: any with something in it.
const LEAST_RECORD: usize = 23;
/// Milliseconds there and back.
const MOST_RTT: f64 = 60_000.0;
/// Milliseconds: longer than any probe takes.
const MOST_TIME: f64 = 600_000.0;
/// Mbit/s.
const MOST_RATE: f64 = 1e6;
/// Segments of a window, and whatever else a server has few of.
const MOST_SEGMENTS: f64 = 1e5;
/// Whatever is counted over all connections.
const MOST_COUNT: f64 = 1e9;

/// A time as documents have it: in milliseconds, to the microsecond.
pub fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// What a probe found of a server. Times are in milliseconds, sizes in bytes; of a message with its
/// header of four.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Of this form.
    pub version: u64,
    /// `lastbyte.probe/1`.
    #[serde(default)]
    pub schema: String,
    /// `NAME:PORT`.
    pub host: String,
    /// Where it was connected to.
    #[serde(default)]
    pub address: String,
    /// When, in RFC 3339.
    #[serde(default)]
    pub time: String,
    /// The least round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// What limits the path from the server, if that was seen, in Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbit: Option<f64>,
    /// The server's initial window, if it is known, in segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Bytes of payload that fit one segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// What was negotiated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Each certificate as it is sent, the end-entity's first.
    pub chain: Vec<Certificate>,
    /// Of the server's CertificateVerify.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_verify_bytes: Option<u32>,
    /// What brotli leaves of the Certificate message (RFC 8879), without headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_brotli_bytes: Option<u32>,
    /// The window and how sure it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSeen>,
    /// The path in more words.
    #[serde(default)]
    pub path: PathReport,
    /// The handshake.
    #[serde(default)]
    pub tls: TlsSeen,
    /// When things happened on the first connection.
    #[serde(default)]
    pub times: Times,
    /// The response to the first request; none if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSeen>,
    /// How far it is to where the server needs another flight, today and with other chains: by
    /// arithmetic.
    #[serde(default)]
    pub edges: Vec<Edge>,
    /// What a connection over QUIC showed; none where none was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicSeen>,
    /// What else there is to say, a line each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One certificate of a chain. Parts come to its bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The algorithm of its key, by Lastbyte's name, or by OpenSSL's where that is not among those.
    pub algorithm: String,
    /// Its DER.
    pub bytes: usize,
    /// The algorithm of its signature, by OpenSSL's name.
    #[serde(default)]
    pub signature: String,
    /// Whom it is for.
    #[serde(default)]
    pub subject: String,
    /// Who signed it.
    #[serde(default)]
    pub issuer: String,
    /// The names that it is for.
    #[serde(default)]
    pub names: usize,
    /// Timestamps of Certificate Transparency in it.
    #[serde(default)]
    pub scts: usize,
    /// Of its key.
    #[serde(default)]
    pub key_bytes: usize,
    /// Of its signature.
    #[serde(default)]
    pub signature_bytes: usize,
    /// Of subject and issuer.
    #[serde(default)]
    pub name_bytes: usize,
    /// Of its extensions.
    #[serde(default)]
    pub extension_bytes: usize,
    /// Of all else.
    #[serde(default)]
    pub rest_bytes: usize,
}

/// The window as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSeen {
    /// The smallest that it can be.
    pub least: u32,
    /// The largest, if anything bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// How sure it is.
    pub certainty: Certainty,
    /// Whether flights are spread over the round trip.
    #[serde(default)]
    pub paced: bool,
}

/// The path in more words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathReport {
    /// The median of `connect()`.
    pub rtt_median_ms: f64,
    /// The longest.
    pub rtt_most_ms: f64,
    /// As fast as anything came, in Mbit/s; what limits it is in `rate_mbit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_at_least_mbit: Option<f64>,
    /// Connections that were made.
    pub connections: usize,
    /// Segments that came.
    pub segments: u64,
    /// Of those, the ones behind a gap.
    pub out_of_order: u64,
    /// Segments that the client sent again.
    pub retransmitted: u64,
}

/// The handshake as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsSeen {
    /// `TLSv1.3`.
    pub version: String,
    /// The cipher suite.
    pub cipher: String,
    /// The algorithm of the server's CertificateVerify.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Whether a HelloRetryRequest asked for another group.
    pub hello_retry: bool,
    /// What the server chose of what was offered, `h2` and `http/1.1`; none if it chose none, or
    /// was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpn: Option<String>,
    /// Session tickets on the first connection.
    pub tickets: u32,
    /// How those came that answer the client's Finished.
    #[serde(flatten)]
    pub tickets_seen: TicketsSeen,
    /// Bytes of early data that its tickets allow.
    pub max_early_data: u32,
    /// Whether a second connection could resume the first; none if that was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<bool>,
    /// Of the EncryptedExtensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_extensions_bytes: Option<u32>,
    /// Of the Certificate message.
    pub certificate_bytes: usize,
    /// What of that are OCSP responses, with the headers of their extensions: 0 where none was
    /// stapled. In TLS 1.2, of the CertificateStatus; none where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staple_bytes: Option<usize>,
    /// What became of a request for the client's certificate; none where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// Of the ClientHello on the wire.
    pub client_hello_wire_bytes: usize,
    /// Of the server's messages on the wire, from ServerHello to Finished, and of tickets that left
    /// with those.
    pub server_flight_wire_bytes: usize,
    /// In which writes those left the server; none where segments were not counted, or came out of
    /// order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<Writes>,
    /// Why the chain is not trusted here; none if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distrusted: Option<String>,
}

/// What a server does that asks for a client's certificate and gets none (CertificateRequest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientCertificate {
    /// It goes on, and answers.
    Optional,
    /// It ends the connection with the alert certificate_required, or with one that comes in its
    /// place.
    Required,
    /// It was not seen to do either.
    Asked,
}

/// When things happened on the first connection, since just before `connect()`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// TCP was established.
    pub connect_ms: f64,
    /// The client's Finished was written.
    pub handshake_ms: f64,
    /// The first byte of the response was decrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// The last byte was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_byte_ms: Option<f64>,
    /// What of the first byte is no round trip: the server's own time, and what both ends compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ms: Option<f64>,
}

/// How far a chain is from a flight more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// `today`, or the algorithm of the chain that is supposed.
    pub chain: String,
    /// Of the Certificate message.
    pub certificate_bytes: usize,
    /// Of the server's messages on the wire.
    pub server_flight_wire_bytes: usize,
    /// Flights of the server for the handshake.
    pub flights: usize,
    /// Bytes that are left before it is a flight more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<usize>,
    /// How sure that is, where any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_is: Option<Left>,
    /// Bytes that would have to go for a flight less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<usize>,
    /// The smallest initial window that saves a flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub larger_window: Option<u32>,
}

/// How sure it is how many bytes are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Left {
    /// All segments of the server's flight but its last one were full, or were counted as they are.
    Exact,
    /// Segments within it may not be full, or those of another chain, and leave less.
    AtMost,
}

/// Why a text is no document of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// It is longer than any.
    #[error("it has {0} bytes, more than any probe writes")]
    TooLong(usize),
    /// It is not JSON.
    #[error("no JSON: {0}")]
    NotJson(String),
    /// It says no version.
    #[error("no probe's: it says no \"version\": {VERSION}")]
    NoVersion,
    /// It is of another version.
    #[error(
        "version {0} is not known here: only {VERSION} is; get a newer lastbyte, or probe again"
    )]
    OtherVersion(String),
    /// It says that it is of another form.
    #[error(
        "schema {0} is not known here: only {SCHEMA:?} is; get a newer lastbyte, or probe again"
    )]
    OtherSchema(String),
    /// A part is not what it should be.
    #[error("no probe's: {0}")]
    Content(String),
}

impl Edge {
    /// Whether a document can have it: a chain that nobody would send is in none.
    #[must_use]
    pub fn is_in_bounds(&self) -> bool {
        self.numbers().iter().all(Number::is_in_bounds)
    }

    fn numbers(&self) -> [Number; 5] {
        let bytes = |what, bytes| Number::bytes(what, bytes, MOST_FLIGHT);
        [
            bytes("edges: certificate_bytes", self.certificate_bytes),
            bytes(
                "edges: server_flight_wire_bytes",
                self.server_flight_wire_bytes,
            ),
            Number::bytes("edges: flights", self.flights, MOST_SEGMENTS),
            bytes("edges: left", self.left.unwrap_or_default()),
            bytes("edges: over", self.over.unwrap_or_default()),
        ]
    }
}

impl Document {
    /// More than any has, in bytes.
    pub const MOST_BYTES: usize = 4 << 20;

    /// Reads one.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and the mend.
    pub fn read(text: &str) -> Result<Document, DocumentError> {
        if text.len() > Document::MOST_BYTES {
            return Err(DocumentError::TooLong(text.len()));
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| DocumentError::NotJson(error.to_string()))?;
        Document::of(value)
    }

    /// The same of one that is in another document, which is no longer than [`Document::read`]
    /// takes.
    ///
    /// # Errors
    ///
    /// As [`Document::read`].
    pub fn of(value: Value) -> Result<Document, DocumentError> {
        match value.get("version") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => {
                let version = version.to_string().chars().take(20).collect();
                return Err(DocumentError::OtherVersion(version));
            }
            None => return Err(DocumentError::NoVersion),
        }
        // Documents of old have none.
        if let Some(schema) = value.get("schema")
            && schema != SCHEMA
            && schema != ""
        {
            let schema = schema.to_string().chars().take(40).collect();
            return Err(DocumentError::OtherSchema(schema));
        }
        let document: Document = serde_json::from_value(value)
            .map_err(|error| DocumentError::Content(visible(&error.to_string())))?;
        document.checked()
    }

    /// What a probe found, as others read it again: what no reader takes is left out, with a note.
    ///
    /// # Errors
    ///
    /// What else it has that no document can have.
    pub fn fitted(mut self) -> Result<Document, DocumentError> {
        let certificates = self.chain.len();
        if certificates > MOST_CERTIFICATES {
            self.chain.truncate(MOST_CERTIFICATES);
            self.notes.push(format!(
                "of {certificates} certificates, the first {MOST_CERTIFICATES} are told"
            ));
        }
        if let Some(response) = &mut self.response {
            response.fitted();
        }
        if let Some(quic) = &mut self.quic {
            quic.fitted();
        }
        self.tls.tickets = self.tls.tickets.min(MOST_SEGMENTS as u32);
        self.checked()
    }

    /// Writes it, with a line's end.
    #[must_use]
    pub fn write(&self) -> String {
        // All of it is numbers and texts.
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        text + "\n"
    }

    fn checked(self) -> Result<Document, DocumentError> {
        let wrong = |what: String| Err(DocumentError::Content(what));
        if self.chain.len() > MOST_CERTIFICATES {
            return wrong(format!("chain: {} certificates", self.chain.len()));
        }
        let all = self.chain.iter().map(|certificate| certificate.bytes);
        let all = all.fold(0, usize::saturating_add);
        if all as f64 > MOST_FLIGHT {
            return wrong(format!("chain: {all} bytes, more than any server sends"));
        }
        if !is_host(&self.host) {
            let host: String = self.host.chars().take(60).collect();
            return wrong(format!(
                "host: {host:?} is no NAME:PORT such as example.com:443"
            ));
        }
        for (number, certificate) in (1..).zip(&self.chain) {
            let parts = [
                certificate.key_bytes,
                certificate.signature_bytes,
                certificate.name_bytes,
                certificate.extension_bytes,
                certificate.rest_bytes,
            ];
            let all = parts.into_iter().fold(0, usize::saturating_add);
            if !(1..=MOST_DER).contains(&certificate.bytes) || all > certificate.bytes {
                let bytes = certificate.bytes;
                return wrong(format!(
                    "chain, certificate {number}: {bytes} bytes, with parts of {all}"
                ));
            }
        }
        if let Some(window) = &self.window
            && let Some(most) = window.most
            && most < window.least
        {
            let least = window.least;
            return wrong(format!("window: from {least} to {most} segments"));
        }
        let wild = self.numbers().find(|number| !number.is_in_bounds());
        match wild {
            Some(number) => wrong(number.problem()),
            None => Ok(self),
        }
    }

    /// All numbers that somebody calculates with or prints, but for those of certificates.
    fn numbers(&self) -> impl Iterator<Item = Number> {
        let Document {
            window,
            path,
            tls,
            times,
            response,
            edges,
            quic,
            ..
        } = self;
        let quic = quic.iter().flat_map(QuicSeen::numbers);
        let window = window.iter().flat_map(|window| {
            [
                Number::positive("window.least", Some(window.least), MOST_SEGMENTS),
                Number::positive("window.most", window.most, MOST_SEGMENTS),
            ]
        });
        let response = response.iter().flat_map(ResponseSeen::numbers);
        let writes = tls.writes.iter().flat_map(|writes| &writes.first);
        let writes = writes.map(|bytes| Number {
            least: 1.0,
            ..Number::bytes("tls.writes", *bytes, MOST_FLIGHT)
        });
        let edges = edges.iter().flat_map(Edge::numbers);
        [
            Number::positive("rtt_ms", self.rtt_ms, MOST_RTT),
            Number::positive("rate_mbit", self.rate_mbit, MOST_RATE),
            Number::positive("initial_window", self.initial_window, MOST_SEGMENTS),
            Number {
                least: LEAST_SEGMENT,
                ..Number::of("mss", self.mss.map(f64::from), 65_535.0)
            },
            Number::positive(
                "certificate_verify_bytes",
                self.certificate_verify_bytes,
                65_535.0,
            ),
            Number::positive(
                "certificate_brotli_bytes",
                self.certificate_brotli_bytes,
                2e8,
            ),
            Number::counted("path.rtt_median_ms", path.rtt_median_ms, MOST_TIME),
            Number::counted("path.rtt_most_ms", path.rtt_most_ms, MOST_TIME),
            Number::positive(
                "path.rate_at_least_mbit",
                path.rate_at_least_mbit,
                MOST_RATE,
            ),
            Number::bytes("path.connections", path.connections, MOST_SEGMENTS),
            Number::counted("path.segments", path.segments as f64, MOST_COUNT),
            Number::counted("path.out_of_order", path.out_of_order as f64, MOST_COUNT),
            Number::counted("path.retransmitted", path.retransmitted as f64, MOST_COUNT),
            Number::of(
                "tls.staple_bytes",
                tls.staple_bytes.map(|bytes| bytes as f64),
                MOST_FLIGHT,
            ),
            Number::counted("tls.tickets", tls.tickets, MOST_SEGMENTS),
            Number::counted(
                "tls.encrypted_extensions_bytes",
                tls.encrypted_extensions_bytes.unwrap_or_default(),
                MOST_FLIGHT,
            ),
            Number::bytes("tls.certificate_bytes", tls.certificate_bytes, MOST_FLIGHT),
            Number::bytes(
                "tls.client_hello_wire_bytes",
                tls.client_hello_wire_bytes,
                MOST_FLIGHT,
            ),
            Number::bytes(
                "tls.server_flight_wire_bytes",
                tls.server_flight_wire_bytes,
                MOST_FLIGHT,
            ),
            Number::counted("times.connect_ms", times.connect_ms, MOST_TIME),
            Number::counted("times.handshake_ms", times.handshake_ms, MOST_TIME),
            Number::counted(
                "times.first_byte_ms",
                times.first_byte_ms.unwrap_or_default(),
                MOST_TIME,
            ),
            Number::counted(
                "times.last_byte_ms",
                times.last_byte_ms.unwrap_or_default(),
                MOST_TIME,
            ),
            Number::counted(
                "times.server_ms",
                times.server_ms.unwrap_or_default(),
                MOST_TIME,
            ),
        ]
        .into_iter()
        .chain(window)
        .chain(writes)
        .chain(tls.tickets_seen.numbers())
        .chain(response)
        .chain(edges)
        .chain(quic)
    }
}

/// A number of a document, and what it may be.
struct Number {
    key: &'static str,
    /// None where the document does not say it.
    is: Option<f64>,
    /// Above 0 where that is none.
    least: f64,
    most: f64,
}

impl Number {
    fn of(key: &'static str, is: Option<f64>, most: f64) -> Number {
        Number {
            key,
            is,
            least: 0.0,
            most,
        }
    }

    /// One that there is, and that can be none.
    fn counted(key: &'static str, is: impl Into<f64>, most: f64) -> Number {
        Number::of(key, Some(is.into()), most)
    }

    fn bytes(key: &'static str, is: usize, most: f64) -> Number {
        Number::of(key, Some(is as f64), most)
    }

    /// One that is above 0, if it is there.
    fn positive<N: Into<f64>>(key: &'static str, is: Option<N>, most: f64) -> Number {
        Number {
            least: f64::MIN_POSITIVE,
            ..Number::of(key, is.map(N::into), most)
        }
    }

    fn is_in_bounds(&self) -> bool {
        self.is
            .is_none_or(|number| (self.least..=self.most).contains(&number))
    }

    fn problem(&self) -> String {
        let Number {
            key, least, most, ..
        } = self;
        let is = self.is.unwrap_or_default();
        if *least == f64::MIN_POSITIVE {
            format!("{key}: {is} is not above 0 and up to {most}")
        } else {
            format!("{key}: {is} is not from {least} to {most}")
        }
    }
}

/// Whether it is a name or an address with a port.
fn is_host(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    text.rsplit_once(':').is_some_and(|(name, port)| {
        let is_name = !name.is_empty() && name.len() < 300 && name.bytes().all(is_of_name);
        is_name && port.parse::<u16>().is_ok()
    })
}

/// What a DER element takes around so many bytes: tag and length.
fn header(bytes: usize) -> usize {
    match bytes {
        0..0x80 => 2,
        0x80..0x100 => 3,
        0x100..0x1_0000 => 4,
        _ => 5,
    }
}

impl Certificate {
    /// The algorithm of its key, if Lastbyte knows it.
    #[must_use]
    pub fn key(&self) -> Option<KeyAlgorithm> {
        self.algorithm.parse().ok()
    }

    /// Whether it is its own issuer's (RFC 5280, section 3.2), as roots are.
    #[must_use]
    pub fn is_self_issued(&self) -> bool {
        !self.subject.is_empty() && self.subject == self.issuer
    }

    /// Its DER with this key, signed with this one, and all else as it is. None where its parts are
    /// not known.
    #[must_use]
    pub fn with(&self, key: KeyAlgorithm, signer: KeyAlgorithm) -> Option<usize> {
        if self.key_bytes == 0 || self.signature_bytes == 0 {
            return None;
        }
        let signed = |bytes: usize| bytes + header(bytes);
        let bits = |bytes: usize| signed(bytes + 1);
        let key_info = match self.key() {
            Some(algorithm) => algorithm.key_info_bytes(),
            None => signed(bits(self.key_bytes) + self.key_identifier()),
        };
        let identifier = self.signature_identifier();
        let outside = self.bytes.checked_sub(header(self.bytes))?;
        let to_be_signed = outside.checked_sub(identifier + bits(self.signature_bytes))?;
        let inside = to_be_signed.checked_sub(header(to_be_signed))?;
        let stays = inside.checked_sub(key_info + identifier)?;
        let identifier = signer.signature_identifier().len();
        let to_be_signed = signed(stays + key.key_info_bytes() + identifier);
        Some(signed(
            to_be_signed + identifier + bits(signer.signature_bytes()),
        ))
    }

    /// Bytes of what says which key it has, of algorithms that Lastbyte has no name for (RFC 5480,
    /// RFC 8410, RFC 4055).
    fn key_identifier(&self) -> usize {
        match self.algorithm.as_str() {
            // P-521 has a shorter name than other curves.
            "id-ecPublicKey" if self.key_bytes == 133 => 18,
            "ecdsa-p521" | "ecdsa-secp256k1" => 18,
            "id-ecPublicKey" => 22,
            name if name.starts_with("ecdsa-") => 22,
            name if is_edwards(name) => 7,
            name if name.contains("rsaEncryption") || name.starts_with("rsa-") => 15,
            // Of RSASSA-PSS, without parameters.
            _ => 13,
        }
    }

    /// Bytes of what says how it is signed.
    fn signature_identifier(&self) -> usize {
        match self.signature.as_str() {
            // With a hash of SHA-2, twice, and the length of a salt as long as it (RFC 4055,
            // section 3.1). Longer salts take another byte, which is not known.
            "rsassaPss" => 67,
            name if name.contains("RSA") => 15,
            name if name.starts_with("ecdsa") => 12,
            name if is_edwards(name) => 7,
            _ => 13,
        }
    }
}

fn is_edwards(name: &str) -> bool {
    name.contains("ED25519") || name.contains("ED448")
}

impl From<Window> for WindowSeen {
    fn from(window: Window) -> WindowSeen {
        WindowSeen {
            least: window.least,
            most: window.most,
            certainty: window.certainty,
            paced: window.pacing == Pacing::Paced,
        }
    }
}

impl WindowSeen {
    /// In a word: `10`, `24+`, `10..12`, `?`.
    #[must_use]
    pub fn to_text(&self) -> String {
        match (self.certainty, self.most) {
            (Certainty::Exact | Certainty::Likely, _) => self.least.to_string(),
            (Certainty::Between, Some(most)) => format!("{}..{most}", self.least),
            (Certainty::AtLeast, _) => format!("{}+", self.least),
            (Certainty::Between, None) | (Certainty::Uncertain, _) => "?".to_owned(),
        }
    }

    /// The window itself, if it is known.
    #[must_use]
    pub fn value(&self) -> Option<u32> {
        let is_single = matches!(self.certainty, Certainty::Exact | Certainty::Likely);
        is_single.then_some(self.least)
    }
}

impl RateSeen {
    /// What limits the path, and how fast it is at least, in Mbit/s: one of both.
    #[must_use]
    pub fn megabits(self) -> [Option<f64>; 2] {
        let rounded = |bits: f64| Some((bits / 1e4).round() / 1e2);
        match self {
            RateSeen::About(bits) => [rounded(bits), None],
            RateSeen::AtLeast(bits) => [None, rounded(bits)],
        }
    }
}
