//! The row: what one connection did.

use std::fmt;
use std::time::Duration;

use lastbyte_exchange::Exchange;
use lastbyte_link::named;
use lastbyte_sizes::Outcome as DeliveryOutcome;

use crate::Metric;

/// One connection; by default one that completed, of which nothing was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Index of the connection in its sample; arms share the luck of an index.
    pub index: u32,
    /// The block that it was measured in.
    pub block: u32,
    /// Whether it did what it should, or why not.
    pub outcome: Outcome,
    /// From just before `connect()`; each is absent if it was not reached.
    pub times: Times,
    /// What was seen of it on the wire, as far as it went.
    pub exchange: Exchange,
    /// What came through DNS before.
    pub dns: Dns,
    /// What it was: a transfer, whose [`Row::times`] are from just before `connect()`, or a page load, whose times are those of
    /// the document's connection, from the start of the navigation.
    pub measurement: Measurement,
    /// What the transport counted, at the end.
    pub transport: TransportStats,
    /// What the engine added to this connection.
    pub lateness: Lateness,
}

/// Whether a connection did what it should.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It delivered every byte.
    #[default]
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

impl Outcome {
    /// Why it did not complete, in one line; none where it did.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Completed => None,
            Outcome::TimedOut => Some("timed out"),
            Outcome::Failed { reason, .. } => Some(reason),
        }
    }
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
    /// Nothing came for as long as QUIC waits.
    Idle,
    /// The transport could not go on.
    Transport,
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
    Idle => "idle",
    Transport => "transport",
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
    /// To TCP established; absent over QUIC, which has no handshake of its own before TLS's.
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

/// What was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measurement {
    /// Requests and responses of one connection.
    #[default]
    Transfer,
    /// A page in a browser. One of which nothing was seen can't be told from a transfer once it is read from a file: its cell
    /// says which it is.
    Load(PageLoad),
}

impl Row {
    /// What a browser saw; none of a transfer.
    pub fn load(&self) -> Option<&PageLoad> {
        match &self.measurement {
            Measurement::Transfer => None,
            Measurement::Load(load) => Some(load),
        }
    }

    /// The client's TCP at the end, if it had a connection.
    pub fn client_tcp(&self) -> Option<TcpStats> {
        self.transport.client_tcp()
    }

    /// The server's TCP at the end, if it had a connection that is ours.
    pub fn server_tcp(&self) -> Option<TcpStats> {
        self.transport.tcp()[1]
    }
}

/// What a browser saw of one page.
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

/// What the transport counted, at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportStats {
    /// TCP's; absent at an end that had no connection.
    Tcp {
        /// The client's.
        client: Option<TcpStats>,
        /// The server's.
        server: Option<TcpStats>,
    },
    /// QUIC's, likewise.
    Quic {
        /// The client's.
        client: Option<QuicStats>,
        /// The server's.
        server: Option<QuicStats>,
    },
}

/// What the transport counted at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStats {
    /// TCP's.
    Tcp(TcpStats),
}

impl TransportStats {
    /// Of both ends, each absent where it had no connection.
    pub fn of(client: Option<EndStats>, server: Option<EndStats>) -> TransportStats {
        let tcp = |end: EndStats| match end {
            EndStats::Tcp(tcp) => tcp,
        };
        TransportStats::Tcp {
            client: client.map(tcp),
            server: server.map(tcp),
        }
    }

    /// TCP's, the client's first; none of an end that had no connection of TCP.
    pub fn tcp(&self) -> [Option<TcpStats>; 2] {
        match self {
            TransportStats::Tcp { client, server } => [*client, *server],
            TransportStats::Quic { .. } => [None; 2],
        }
    }

    /// QUIC's, likewise.
    pub fn quic(&self) -> [Option<QuicStats>; 2] {
        match self {
            TransportStats::Quic { client, server } => [*client, *server],
            TransportStats::Tcp { .. } => [None; 2],
        }
    }

    /// The client's TCP, if it had a connection.
    pub fn client_tcp(&self) -> Option<TcpStats> {
        self.tcp()[0]
    }
}

impl Default for TransportStats {
    /// Of no connection.
    fn default() -> TransportStats {
        TransportStats::Tcp {
            client: None,
            server: None,
        }
    }
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

/// What QUIC did at one end, by the datagrams on its link and by what it tells itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicStats {
    /// UDP datagrams that it sent.
    pub datagrams: u32,
    /// Their payload, in bytes.
    pub udp_bytes: u64,
    /// What it counts itself; absent of a program that people run, of which there is what is on the wire.
    pub counted: Option<QuicCounts>,
    /// Payload of the datagrams that it had sent before it knew the peer's address: all that a server sends before the
    /// client's first Handshake packet comes (RFC 9000, 8.1). None of a client, which asks for nothing without one.
    pub unvalidated_bytes: Option<u32>,
    /// Payload of the datagrams that had come by then: three times that is the credit.
    pub credited_bytes: Option<u32>,
    /// How long it had no credit left, and sent at once when it got some.
    pub blocked_by_credit: Option<Duration>,
}

/// What an end of QUIC knows of itself, and no wire shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicCounts {
    /// Packets that it deemed lost.
    pub lost: u32,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The congestion window at the end, in bytes.
    pub cwnd_bytes: u32,
    /// Datagrams that it sent because acknowledgements had not come in time (RFC 9002, 6.2).
    pub probes: u32,
    /// How long it had something to send, and no room in its congestion window.
    pub blocked_by_window: Duration,
    /// How long it had something to send, and room for it, and its pacer held that back.
    pub blocked_by_pacer: Duration,
}

/// What the engine itself added to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The latest delivery of a packet, behind the moment the link gave it.
    pub link: Duration,
    /// How long the steps of this connection waited for other connections' work, summed.
    pub endpoint: Duration,
}

impl Metric {
    /// The time of one connection. A connection that did not complete is infinitely late in
    /// every metric, and has none.
    pub fn of(self, row: &Row) -> Option<Duration> {
        if row.outcome != Outcome::Completed {
            return None;
        }
        match self {
            Metric::Connect => row.times.connect,
            Metric::Handshake => row.times.handshake,
            Metric::Ttfb => row.times.ttfb,
            Metric::Ttlb => row.times.ttlb,
            Metric::TlsHandshake => row.times.handshake?.checked_sub(row.times.connect?),
            Metric::DnsRecord => row.dns.record,
            Metric::Fcp => row.load().and_then(|load| load.fcp),
            Metric::Lcp => row.load().and_then(|load| load.lcp),
            Metric::Load => row.load().and_then(|load| load.load),
            Metric::SpeedIndex => row.load().and_then(|load| load.speed_index),
        }
    }
}
