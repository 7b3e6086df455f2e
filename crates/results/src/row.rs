//! The row: what one connection did.

use std::fmt;
use std::time::Duration;

use lastbyte_link::named;
use lastbyte_sizes::{
    ABRIDGED, CertificateCompression, Message, MessageSizes, Outcome as DeliveryOutcome,
};

/// One connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the connection in its sample; arms share the luck of an index.
    pub index: u32,
    /// The block that it was measured in.
    pub block: u32,
    /// Whether it did what it should, or why not.
    pub outcome: Outcome,
    /// From just before `connect()`; each is absent if it was not reached.
    pub times: Times,
    /// What went over the wire in the handshake, as far as it went.
    pub wire: Wire,
    /// What came through DNS before.
    pub dns: Dns,
    /// What a browser saw, if a page was loaded. [`Row::times`] are from the start of the navigation then, and those of
    /// the document's connection.
    pub page: PageLoad,
    /// The client's TCP at the end.
    pub client_tcp: Option<TcpStats>,
    /// The server's TCP at the end.
    pub server_tcp: Option<TcpStats>,
    /// What the engine added to this connection.
    pub lateness: Lateness,
}

/// Whether a connection did what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It delivered every byte.
    Completed,
    /// It did not finish within the timeout.
    TimedOut,
    /// It failed.
    Failed {
        /// Why, as connections that fail alike have it.
        cause: Cause,
        /// Why, in one line.
        reason: String,
    },
}

/// Why a connection failed, without the numbers and words in which one failure differs from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The rows are of an earlier version, which had reasons alone.
    Unknown,
    /// DNS gave no address.
    Dns,
    /// The client could not go on, and the server had not failed.
    Client(FailureKind),
    /// The server could not go on.
    Server(FailureKind),
    /// The browser did not load the page.
    PageLoad,
    /// The browser did not get a resource of the page.
    PageResource,
    /// A handshake of the page was not what the arm says.
    PageHandshake,
}

/// What one end of a connection failed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// `connect()` failed.
    Connect,
    /// The socket failed later.
    Socket,
    /// The peer sent an alert.
    Refused,
    /// The peer's certificates were not accepted.
    Certificate,
    /// TLS could not go on for another reason.
    Tls,
    /// The peer closed the connection during the handshake.
    ClosedInHandshake,
    /// The peer closed it before the last request.
    ClosedBeforeRequest,
    /// The peer closed it before the end of the response.
    ClosedInResponse,
    /// The peer sent more than was asked for.
    TooMuchData,
    /// The response is not what was asked for.
    Response,
    /// No buffer holds a record of this size.
    RecordTooLarge,
}

named!(FailureKind, {
    Connect => "connect",
    Socket => "socket",
    Refused => "refused",
    Certificate => "certificate",
    Tls => "tls",
    ClosedInHandshake => "closed-in-handshake",
    ClosedBeforeRequest => "closed-before-request",
    ClosedInResponse => "closed-in-response",
    TooMuchData => "too-much-data",
    Response => "response",
    RecordTooLarge => "record-too-large",
});

impl Cause {
    /// All that there are.
    pub fn all() -> impl Iterator<Item = Cause> {
        let whole = [
            Cause::Unknown,
            Cause::Dns,
            Cause::PageLoad,
            Cause::PageResource,
            Cause::PageHandshake,
        ];
        (whole.into_iter())
            .chain(FailureKind::ALL.map(Cause::Client))
            .chain(FailureKind::ALL.map(Cause::Server))
    }
}

/// As files have it: `client-closed-in-response`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Unknown => f.write_str("unknown"),
            Cause::Dns => f.write_str("dns"),
            Cause::Client(kind) => write!(f, "client-{kind}"),
            Cause::Server(kind) => write!(f, "server-{kind}"),
            Cause::PageLoad => f.write_str("page-load"),
            Cause::PageResource => f.write_str("page-resource"),
            Cause::PageHandshake => f.write_str("page-handshake"),
        }
    }
}

/// Times of one connection, from just before `connect()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// To TCP established.
    pub connect: Option<Duration>,
    /// To the client's Finished written.
    pub handshake: Option<Duration>,
    /// To the client's Finished verified by the server.
    pub server_handshake: Option<Duration>,
    /// To the first response payload byte decrypted; absent without data.
    pub ttfb: Option<Duration>,
    /// To the last byte of the last response decrypted. Without a response, to the last byte of the
    /// request decrypted by the server; without data in either direction, the handshake time.
    pub ttlb: Option<Duration>,
}

/// What a browser saw of one page. All is absent if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageLoad {
    /// How much of the time to first byte nothing that was waited for was on the network: what browser and server computed.
    pub ttfb_computing: Option<Duration>,
    /// From the start of the navigation to the first contentful paint.
    pub fcp: Option<Duration>,
    /// To the largest contentful paint before the load event.
    pub lcp: Option<Duration>,
    /// To the load event.
    pub load: Option<Duration>,
    /// How late what is seen was seen, weighted by its share of the whole (Speed Index).
    pub speed_index: Option<Duration>,
    /// Processor time that the page's main thread had taken by its first contentful paint.
    pub fcp_cpu: Option<Duration>,
    /// By its largest.
    pub lcp_cpu: Option<Duration>,
    /// By the load event.
    pub load_cpu: Option<Duration>,
    /// Processor time that all processes of browser and server took from the navigation to the load event.
    pub programs_cpu: Option<Duration>,
    /// Bytes that came over the network, headers included, up to the load event.
    pub bytes: Option<u32>,
    /// Connections that were made.
    pub connections: Option<u32>,
    /// Requests that were answered over the network.
    pub requests: Option<u32>,
}

/// What came through DNS for one connection. All is absent if it did not ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// From the queries to the server's address.
    pub address: Option<Duration>,
    /// From the queries to the whole record, or to the answer that there is none.
    pub record: Option<Duration>,
    /// What became of the record; absent if the handshake did not get so far.
    pub outcome: Option<DeliveryOutcome>,
    /// Why it was not used.
    pub reason: Option<String>,
    /// What the Certificate message must have in bytes, as certificates have their sizes.
    pub certificate_bytes: Option<u32>,
}

/// What the hellos said of certificates that the client has from DNS (PQTLS-AD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HelloDigest {
    /// Neither said anything.
    #[default]
    None,
    /// The client's alone said which.
    Offered,
    /// The server's said the same.
    Echoed,
    /// The server's said something else.
    Contradicted,
}

/// What the observer read from the wire. A size of zero is of what was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// How large each message was.
    pub messages: MessageSizes,
    /// Segments that the ClientHello's record took, at the connection's MSS.
    pub client_hello_segments: u32,
    /// The client's first flight on the wire, record framing included; early data too.
    pub client_hello_wire_bytes: u32,
    /// The flight with the HelloRetryRequest on the wire, record framing included.
    pub hello_retry_request_wire_bytes: u32,
    /// The flight with the second ClientHello on the wire, record framing included.
    pub second_client_hello_wire_bytes: u32,
    /// The server's messages from ServerHello to Finished on the wire, record framing included.
    pub server_flight_wire_bytes: u32,
    /// The writes that those leave in, but for the last, where they are known not to be one.
    pub server_writes: [u32; lastbyte_flights::MOST_WRITES],
    /// The client's last handshake messages on the wire, record framing included.
    pub client_finish_wire_bytes: u32,
    /// The server's session tickets on the wire, record framing included.
    pub ticket_wire_bytes: u32,
    /// The writes that those leave in, where they are known not to leave with what follows them.
    pub ticket_writes: [u32; lastbyte_flights::MOST_WRITES],
    /// The first writes of the response, of which the last repeats, where they are known not to be one, nor as the cell has them.
    pub response_writes: [u32; lastbyte_flights::MOST_RESPONSE_WRITES],
    /// Key-exchange group (IANA code point), when negotiated.
    pub group: Option<u16>,
    /// Cipher suite (IANA code point), when negotiated.
    pub cipher_suite: Option<u16>,
    /// Signature scheme of the server's CertificateVerify (IANA code point), when seen.
    pub signature: Option<u16>,
    /// Signature scheme of the client's CertificateVerify (IANA code point), when seen.
    pub client_signature: Option<u16>,
    /// Certificates in the server's Certificate message.
    pub certificates: u32,
    /// How the server's Certificate message was compressed, if it was.
    pub compression: Option<Compression>,
    /// How the client's was.
    pub client_compression: Option<Compression>,
    /// Whether a pre-shared key was accepted.
    pub resumption: Resumption,
    /// What became of early data.
    pub early_data: EarlyData,
    /// What the hellos said of certificates from DNS.
    pub hello_digest: HelloDigest,
    /// What was said of intermediates that the client has.
    pub signal: ChainSignal,
    /// The connection before this one, if that failed so that the client tried once more.
    pub failed: Option<FailedAttempt>,
}

/// What a client said of intermediates that it has, and the server of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChainSignal {
    /// Nothing.
    #[default]
    None,
    /// The client said by a flag that it has them.
    TlsFlags,
    /// The client named anchors, none of which the server has a path for.
    TrustAnchors,
    /// The client named anchors, and the server sent the path of one.
    Anchored,
}

named!(ChainSignal, {
    None => "none",
    TlsFlags => "tls-flags",
    TrustAnchors => "trust-anchors",
    Anchored => "anchored",
});

/// What a connection had on the wire whose client gave up in the handshake and tried once more. In bytes with record
/// framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The client's first flight.
    pub client_hello_wire_bytes: u32,
    /// All that the server sent of its handshake.
    pub server_flight_wire_bytes: u32,
    /// What of that the client needed to know better: all up to the end of the Certificate message.
    pub through_certificate_wire_bytes: u32,
    /// What the client said of that: its alert.
    pub alert_wire_bytes: u32,
}

impl Wire {
    /// How large a message was, in bytes with its 4-byte handshake header; zero when it was not seen.
    pub fn bytes(&self, message: Message) -> u32 {
        self.messages.get(message).unwrap_or(0)
    }

    /// The server's Certificate message as it is uncompressed.
    pub fn certificate_bytes(&self) -> u32 {
        let compressed = self.compression;
        compressed.map_or(self.bytes(Message::Certificate), |compressed| {
            compressed.uncompressed_bytes
        })
    }

    /// The client's, likewise; zero if there was none.
    pub fn client_certificate_bytes(&self) -> u32 {
        let compressed = self.client_compression;
        compressed.map_or(self.bytes(Message::ClientCertificate), |compressed| {
            compressed.uncompressed_bytes
        })
    }
}

/// How a Certificate message was compressed (RFC 8879, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// The algorithm (IANA code point).
    pub algorithm: u16,
    /// What the message has uncompressed, in bytes with its 4-byte handshake header.
    pub uncompressed_bytes: u32,
}

impl Compression {
    /// What abridged certificates are called among algorithms.
    pub(crate) const ABRIDGED: &str = "abridged";

    /// IANA's name of the algorithm or our own, else its code point.
    pub fn algorithm_name(self) -> String {
        if self.algorithm == ABRIDGED {
            return Compression::ABRIDGED.to_owned();
        }
        let known = CertificateCompression::of_code_point(self.algorithm);
        known.map_or_else(|| self.algorithm.to_string(), |known| known.to_string())
    }
}

/// What became of early data (RFC 8446, section 4.2.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// The client sent none.
    #[default]
    None,
    /// The server took it.
    Accepted,
    /// The server left it, so that the client had to send it again.
    Refused,
}

/// Whether the handshake resumed an earlier session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resumption {
    /// A full handshake.
    #[default]
    Full,
    /// The server accepted a pre-shared key.
    Resumed,
}

/// The parts of `struct tcp_info` that explain a time (linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// `tcpi_total_retrans`, in segments.
    pub retransmits: u32,
    /// `tcpi_lost`, in segments.
    pub lost: u32,
    /// `tcpi_rtt`, smoothed.
    pub rtt: Duration,
    /// `tcpi_min_rtt`.
    pub min_rtt: Duration,
    /// `tcpi_snd_cwnd`, in segments.
    pub cwnd: u32,
    /// `tcpi_snd_mss`, in bytes.
    pub mss: u32,
    /// `tcpi_segs_out`.
    pub segments_out: u32,
    /// `tcpi_segs_in`.
    pub segments_in: u32,
}

/// What the engine itself added to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The latest delivery of a packet, behind the moment the link gave it.
    pub link: Duration,
    /// How long the steps of this connection waited for other connections' work, summed.
    pub endpoint: Duration,
}
