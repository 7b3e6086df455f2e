//! Probes a server: a handful of connections, and the document of what they told.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lastbyte::explain::site;
use lastbyte_pki::openssl_reason;
use lastbyte_probe::{
    Answered, Ask, Certainty, ClientCertificate, Document, Limits, PathReport, PathSeen, Probe,
    QuicSeen, RateSeen, ResponseSeen, SCHEMA, TicketsSeen, Times, TlsSeen, VERSION, Window,
    WindowSeen, milliseconds,
};
use lastbyte_tls::names;
use lastbyte_tls::observer::{Message, Side};
use openssl::ssl::SslVersion;
use openssl::x509::X509;

use super::connection::{Nothing, Purpose, Response, Seen, connect};
use super::quic::{self, WithQuic};
use super::session::{Offer, Tls};
use super::target::Target;
use crate::own::in_parts;
use crate::own::server::addresses;
use crate::tell;

/// What a probe may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// Connections.
    pub(super) connections: usize,
    /// From the beginning of one connection to that of the next.
    pub(super) interval: Duration,
    /// In all.
    pub(super) timeout: Duration,
    /// When QUIC is tried.
    pub(super) quic: WithQuic,
    /// Whether each connection is told.
    pub(super) detail: Detail,
}

/// What is told while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Nothing.
    Nothing,
    /// What each connection showed of the window.
    Connections,
}

/// Whether an address is this machine's own, or of a network that is told apart by no router.
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
    }
}

/// Connections that fail in a row before a probe gives up.
const PATIENCE: usize = 2;

/// Probes.
///
/// # Errors
///
/// One line: the server, what it does instead and what to do.
pub(super) fn probe(target: &Target, manners: Manners) -> Result<Document, String> {
    let host = &target.host;
    let of_host = |problem: String| format!("{host} {problem}");
    let failure = |nothing| match nothing {
        Nothing::Server(why) => of_host(why),
        Nothing::Here(error) => of_host(format!("can't be asked: {}", openssl_reason(&error))),
    };
    let until = Instant::now() + manners.timeout;
    let addresses = addresses(host, until).map_err(of_host)?;
    let tls = Tls::new(target).map_err(|error| failure(error.into()))?;
    if manners.detail == Detail::Nothing {
        tell_near(target, &addresses);
    }
    let Some(ask) = Probe::new(Limits { connections: 1 }).next() else {
        return Err(of_host("can't be asked without a connection".to_owned()));
    };
    let mut asking = Asking {
        target,
        tls: &tls,
        interval: manners.interval,
        until,
        began: Instant::now(),
    };
    // Each address that is tried is a connection, whoever has it.
    let addresses = addresses.get(..manners.connections).unwrap_or(&addresses);
    let (failed_before, address, first) = asking.first(addresses, ask).map_err(failure)?;
    let connections = manners.connections - failed_before;
    // One that can be resumed is kept for that.
    let reserve = usize::from(connections > 2);
    let mut probe = Probe::new(Limits {
        connections: connections - reserve,
    });
    probe.add(first.connection.clone());
    let tickets = tls.tickets().count;
    let mut notes = Vec::new();
    let failed = if is_new(&first) {
        let failed = asking.others(address, &mut probe, &mut notes);
        failed.map_err(failure)?
    } else {
        0
    };
    let can_resume = tickets > 0 && reserve > 0 && failed < PATIENCE;
    let resumption = (probe.findings().path)
        .filter(|_| can_resume)
        .and_then(|path| asking.resume(address, ask, path.rtt.least));
    let max_early_data = tls.tickets().early;
    let quic = asking.quic(address, manners.quic, &first, &mut notes);
    let mut document = document(target, address, &probe, &first, notes);
    document.tls.tickets = tickets;
    document.tls.max_early_data = max_early_data;
    document.tls.resumed = resumption.as_ref().map(|seen| seen.resumed);
    document.tls.alpn = resumption.map_or(first.alpn, |seen| seen.alpn);
    document.quic = quic;
    site::add_edges(&mut document);
    site::add_quic_edges(&mut document);
    let other = other_chain_over_quic(&document);
    document.notes.extend(other);
    let document = (document.fitted())
        .map_err(|error| of_host(format!("sends what no document of a probe has: {error}")))?;
    if manners.detail == Detail::Connections {
        tell_connections(&probe);
    }
    Ok(document)
}

/// Warns of a name that leads to this machine: whoever has the name chooses what it leads to, and a
/// list of names is read by nobody.
fn tell_near(target: &Target, addresses: &[SocketAddr]) {
    let host = &target.host;
    if let Some(own) = addresses.iter().find(|address| is_near(address.ip()))
        && host.name.parse::<IpAddr>().is_err()
        && host.name != "localhost"
    {
        tell(format!(
            "{host} leads to {}, which is of this machine or its own network",
            own.ip()
        ));
    }
}

/// Connections to a server, one after the other, each of which begins an interval after the one
/// before.
struct Asking<'a> {
    target: &'a Target,
    tls: &'a Tls,
    interval: Duration,
    /// When all of them have to have ended.
    until: Instant,
    /// When the last one began.
    began: Instant,
}

impl Asking<'_> {
    /// Makes a first connection: to the first address at which the server answers, with how many it
    /// does not answer at before that.
    fn first(
        &mut self,
        addresses: &[SocketAddr],
        ask: Ask,
    ) -> Result<(usize, SocketAddr, Seen), Nothing> {
        let mut problem = "has no address: check its name".to_owned();
        for (tried, address) in addresses.iter().enumerate() {
            if tried > 0 {
                thread::sleep(self.wait());
            }
            self.began = Instant::now();
            let left = self.until.saturating_duration_since(self.began);
            // One that nobody answers at leaves time for the others.
            let others = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let by = match others {
                0 | 1 => self.until,
                others => self.began + left / others,
            };
            match self.request(*address, ask, by) {
                Ok(seen) => return Ok((tried, *address, seen)),
                Err(Nothing::Server(why)) => problem = why,
                Err(nothing) => return Err(nothing),
            }
        }
        Err(Nothing::Server(problem))
    }

    /// Makes those that may show more of the window, and returns how many have failed in a row when
    /// it ends.
    fn others(
        &mut self,
        address: SocketAddr,
        probe: &mut Probe,
        notes: &mut Vec<String>,
    ) -> Result<usize, Nothing> {
        let mut failed = 0;
        while let Some(ask) = probe.next() {
            let wait = self.wait();
            let takes = wait + ask.pause + rtt(probe) * 8;
            if Instant::now() + takes > self.until {
                notes.push(format!(
                    "after {}, there was no time for another connection: --timeout",
                    lastbyte_link::counted(probe.connections().len(), "connection")
                ));
                break;
            }
            thread::sleep(wait);
            self.began = Instant::now();
            match self.request(address, ask, self.until) {
                Ok(seen) => {
                    failed = 0;
                    probe.add(seen.connection);
                }
                Err(Nothing::Server(why)) => {
                    failed += 1;
                    let number = probe.connections().len() + 1;
                    notes.push(format!("connection {number}: the server {why}"));
                    // A place that it would have had.
                    probe.add(lastbyte_probe::Connection::default());
                }
                Err(nothing) => return Err(nothing),
            }
            if failed >= PATIENCE {
                break;
            }
        }
        Ok(failed)
    }

    /// Makes one that resumes the first; none where there is no time, or the server does not
    /// answer.
    fn resume(&self, address: SocketAddr, ask: Ask, rtt: Duration) -> Option<Seen> {
        let wait = self.wait();
        if Instant::now() + wait + rtt * 4 >= self.until {
            return None;
        }
        thread::sleep(wait);
        let purpose = Purpose {
            ask,
            offer: Offer::Resume,
        };
        connect(self.tls, self.target, address, purpose, self.until).ok()
    }

    /// Makes one over QUIC, where that is wanted and the server has it.
    fn quic(
        &self,
        address: SocketAddr,
        wanted: WithQuic,
        first: &Seen,
        notes: &mut Vec<String>,
    ) -> Option<QuicSeen> {
        let head = first.response.as_ref().map(|response| &response.head);
        let place = match wanted.place(self.target, head) {
            Ok(place) => place?,
            Err(why) => {
                notes.push(why);
                return None;
            }
        };
        let wait = self.wait();
        if Instant::now() + wait >= self.until {
            notes.push("there was no time for a connection over QUIC: --timeout".to_owned());
            return None;
        }
        thread::sleep(wait);
        Some(quic::connect(
            self.tls,
            self.target,
            address,
            place,
            self.until,
        ))
    }

    fn request(&self, address: SocketAddr, ask: Ask, by: Instant) -> Result<Seen, Nothing> {
        let purpose = Purpose {
            ask,
            offer: Offer::Request,
        };
        connect(self.tls, self.target, address, purpose, by)
    }

    /// What is left of the interval.
    fn wait(&self) -> Duration {
        (self.began + self.interval).saturating_duration_since(Instant::now())
    }
}

/// Whether the server speaks TLS 1.3.
fn is_new(first: &Seen) -> bool {
    first.version == Some(SslVersion::TLS1_3)
}

/// That a server has another chain over QUIC: what is told of chains is of the one that it has over TCP.
fn other_chain_over_quic(document: &Document) -> Option<String> {
    let quic = document.quic.as_ref()?.certificate_bytes?;
    let tcp = document.tls.certificate_bytes;
    // A staple comes and goes.
    let tcp_alone = tcp.saturating_sub(document.tls.staple_bytes.unwrap_or_default());
    (tcp > 0 && quic != tcp && quic != tcp_alone).then(|| {
        format!(
            "over QUIC its Certificate message has {quic} B, and over TCP {tcp} B: what is calculated is of the latter"
        )
    })
}

/// What each connection showed of the window: segments of each round trip, and what that says.
fn tell_connections(probe: &Probe) {
    let findings = probe.findings();
    let Some(path) = findings.path else { return };
    for (number, (connection, look)) in (1..).zip(probe.connections().iter().zip(&findings.looks)) {
        let rounds = lastbyte_probe::rounds(connection, path.rtt.least, path.rtt.spread());
        let rounds = rounds.iter().take(8).map(|round| {
            format!(
                "{} ({:.1} ms, {:?})",
                round.segments,
                milliseconds(round.start),
                round.ending
            )
        });
        tell(format_args!(
            "connection {number}, segments of {} B: {}; handshake {:?}, response {:?}",
            connection.segment,
            rounds.collect::<Vec<_>>().join(", "),
            look.handshake,
            look.response
        ));
    }
}

fn rtt(probe: &Probe) -> Duration {
    probe
        .findings()
        .path
        .map_or(Duration::ZERO, |path| path.rtt.least)
}

fn document(
    target: &Target,
    address: SocketAddr,
    probe: &Probe,
    first: &Seen,
    mut notes: Vec<String>,
) -> Document {
    let findings = probe.findings();
    let window = findings.window.filter(|_| is_new(first));
    let path = findings.path;
    notes.extend(notes_of(target, first, window));
    let window = window.map(WindowSeen::from);
    let observation = &first.observation;
    Document {
        version: VERSION,
        schema: SCHEMA.to_owned(),
        host: target.host.to_string(),
        address: address.to_string(),
        time: now(),
        rtt_ms: path.map(|path| milliseconds(path.rtt.least)),
        rate_mbit: path.and_then(|path| rates(path)[0]),
        initial_window: window.as_ref().and_then(WindowSeen::value),
        mss: u32::try_from(first.connection.segment)
            .ok()
            .filter(|mss| *mss > 0),
        group: observation.group.map(|group| {
            names::group(group).map_or_else(|| format!("{group:#06x}"), str::to_owned)
        }),
        chain: in_parts(&first.certificates),
        certificate_brotli_bytes: brotli(&first.certificates),
        certificate_verify_bytes: observation
            .bytes(Message::CertificateVerify)
            .and_then(|bytes| u32::try_from(bytes).ok()),
        window,
        path: path.map_or_else(PathReport::default, |path| path_of(path, probe)),
        tls: tls(first),
        times: times(first, rtt(probe)),
        response: first
            .response
            .as_ref()
            .map(|response| response_seen(response, first.answered.as_ref())),
        edges: Vec::new(),
        quic: None,
        notes,
    }
}

/// What to mind, in lines.
fn notes_of(target: &Target, first: &Seen, window: Option<Window>) -> Vec<String> {
    let mut notes = Vec::new();
    if !is_new(first) {
        notes.push(
            "it speaks no TLS 1.3: of its messages only the certificates are told, and no window"
                .to_owned(),
        );
    }
    notes.extend(first.problem.clone());
    if window.is_some_and(|window| window.certainty == Certainty::Uncertain) {
        notes.push(
            "connections disagree about the window, or lost packets hide it: probe again"
                .to_owned(),
        );
    }
    if client_certificate(first) == Some(ClientCertificate::Required) {
        notes.push(
            "it wants a client's certificate, which a probe has none of: its window is told, and what it answers is not seen"
                .to_owned(),
        );
    }
    notes.extend(redirection(target, first));
    notes
}

fn redirection(target: &Target, first: &Seen) -> Option<String> {
    let head = &first.response.as_ref()?.head;
    let location = head.location.as_ref()?;
    if !(300..400).contains(&head.status) {
        return None;
    }
    let is_elsewhere = !location.contains(&target.host.name);
    Some(if is_elsewhere && !first.problems.is_empty() {
        format!(
            "it redirects to {location} under a chain that is not trusted here: a captive portal may answer in its place"
        )
    } else {
        format!("it redirects to {location}: probe that for what users get")
    })
}

/// About how fast the path is, or how fast at least, in Mbit/s.
fn rates(path: PathSeen) -> [Option<f64>; 2] {
    path.rate.map_or([None, None], RateSeen::megabits)
}

fn path_of(path: PathSeen, probe: &Probe) -> PathReport {
    let made = probe.connections().iter();
    let made = made.filter(|connection| connection.connected().is_some());
    let [_, rate_at_least_mbit] = rates(path);
    PathReport {
        rtt_median_ms: milliseconds(path.rtt.median),
        rtt_most_ms: milliseconds(path.rtt.most),
        rate_at_least_mbit,
        connections: made.count(),
        segments: path.loss.segments,
        out_of_order: path.loss.out_of_order,
        retransmitted: path.loss.retransmitted,
    }
}

fn tls(first: &Seen) -> TlsSeen {
    let observation = &first.observation;
    let bytes = |message| observation.bytes(message).unwrap_or_default();
    let client_hello = observation.flights.first();
    let server_flight = server_flight(first);
    let problems: Vec<&str> = (first.problems.iter())
        .map(|problem| problem.error_string())
        .collect();
    TlsSeen {
        version: match first.version {
            Some(SslVersion::TLS1_3) => "TLSv1.3".to_owned(),
            Some(SslVersion::TLS1_2) => "TLSv1.2".to_owned(),
            _ => String::new(),
        },
        cipher: first.cipher.clone(),
        signature: observation.signature.map(|scheme| {
            names::signature_scheme(scheme).map_or_else(|| format!("{scheme:#06x}"), str::to_owned)
        }),
        hello_retry: bytes(Message::HelloRetryRequest) > 0,
        encrypted_extensions_bytes: observation
            .bytes(Message::EncryptedExtensions)
            .and_then(|bytes| u32::try_from(bytes).ok()),
        certificate_bytes: bytes(Message::Certificate),
        staple_bytes: Some(if is_new(first) {
            observation.staple_bytes
        } else {
            first.status_bytes
        }),
        client_certificate: client_certificate(first),
        client_hello_wire_bytes: client_hello.map_or(0, |flight| flight.wire_bytes),
        server_flight_wire_bytes: server_flight.unwrap_or_default(),
        tickets_seen: (first.answered.as_ref())
            .map_or_else(TicketsSeen::default, Answered::tickets),
        writes: server_flight.and_then(|bytes| lastbyte_probe::writes(&first.connection, bytes)),
        distrusted: (!problems.is_empty()).then(|| problems.join("; ")),
        ..TlsSeen::default()
    }
}

/// Bytes of the server's handshake, with those of tickets that left with it; none without TLS 1.3.
fn server_flight(first: &Seen) -> Option<usize> {
    let of_handshake = first.answered.as_ref().map_or(0, Answered::of_handshake);
    let mut flights = first.observation.flights.iter().rev();
    flights
        .find(|flight| flight.sender == Side::Server)
        .map(|flight| flight.wire_bytes + of_handshake)
        .filter(|_| is_new(first))
}

fn times(first: &Seen, rtt: Duration) -> Times {
    let connection = &first.connection;
    let finished = connection.finished();
    let server = first.first_byte.zip(finished);
    Times {
        connect_ms: connection.connected().map_or(0.0, milliseconds),
        handshake_ms: finished.map_or(0.0, milliseconds),
        first_byte_ms: first.first_byte.map(milliseconds),
        last_byte_ms: first.last_byte.map(milliseconds),
        server_ms: server
            .map(|(first, finished)| milliseconds(first.saturating_sub(finished + rtt))),
    }
}

fn response_seen(response: &Response, answered: Option<&Answered>) -> ResponseSeen {
    ResponseSeen {
        status: response.head.status,
        wire_bytes: response.wire_bytes,
        is_whole: response.is_whole,
        location: response.head.location.clone(),
        alt_svc: response.head.alt_svc.clone(),
        ..ResponseSeen::left(response.first_record, answered)
    }
}
/// What became of a request for the client's certificate.
fn client_certificate(seen: &Seen) -> Option<ClientCertificate> {
    seen.asks_for_certificate.then_some(())?;
    Some(match (seen.alert, seen.first_byte) {
        (Some(_), None) => ClientCertificate::Required,
        (_, Some(_)) => ClientCertificate::Optional,
        (None, None) => ClientCertificate::Asked,
    })
}

/// When it is, to the second, in UTC.
fn now() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    lastbyte::results::Moment::from(SystemTime::UNIX_EPOCH + now.unwrap_or_default()).rfc3339()
}

/// What brotli leaves of their Certificate message (RFC 8879), without headers; none of none.
fn brotli(certificates: &[X509]) -> Option<u32> {
    /// The best, as a server compresses once for many.
    const QUALITY: u32 = 11;
    const WINDOW: u32 = 22;
    if certificates.is_empty() {
        return None;
    }
    // No request context; each certificate without extensions.
    let length = |bytes: usize| u32::try_from(bytes).map(u32::to_be_bytes).ok();
    let mut entries = Vec::new();
    for certificate in certificates {
        let der = certificate.to_der().ok()?;
        entries.extend_from_slice(length(der.len())?.get(1..)?);
        entries.extend_from_slice(&der);
        entries.extend_from_slice(&[0, 0]);
    }
    let head = length(entries.len())?;
    let message = [&[0][..], head.get(1..)?, &entries].concat();
    let mut compressor = brotli::CompressorWriter::new(Vec::new(), message.len(), QUALITY, WINDOW);
    compressor.write_all(&message).ok()?;
    u32::try_from(compressor.into_inner().len()).ok()
}
