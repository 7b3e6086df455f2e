//! Probes a server: a handful of connections, and the document of what they told.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lastbyte::explain::site;
use lastbyte_pki::openssl_reason;
use lastbyte_probe::{
    Answered, Certainty, ClientCertificate, Document, Limits, PathReport, Probe, ResponseSeen,
    SCHEMA, TicketsSeen, Times, TlsSeen, VERSION, WindowSeen,
};
use lastbyte_tls::names;
use lastbyte_tls::observer::Message;
use openssl::ssl::SslVersion;
use openssl::x509::X509;

use super::connection::{Nothing, Purpose, Seen, connect};
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
    let here = |error: openssl::error::ErrorStack| {
        format!("{host} can't be asked: {}", openssl_reason(&error))
    };
    let until = Instant::now() + manners.timeout;
    let addresses = addresses(host, until).map_err(of_host)?;
    let tls = Tls::new(target).map_err(here)?;
    // Whoever has the name chooses what it leads to, and a list of names is read by nobody.
    if manners.detail == Detail::Nothing
        && let Some(own) = addresses.iter().find(|address| is_near(address.ip()))
        && host.name.parse::<IpAddr>().is_err()
        && host.name != "localhost"
    {
        tell(format!(
            "{host} leads to {}, which is of this machine or its own network",
            own.ip()
        ));
    }
    let mut problem = "has no address: check its name".to_owned();
    let mut first = None;
    let mut began = Instant::now();
    let request = |ask| Purpose {
        ask,
        offer: Offer::Request,
    };
    let Some(ask) = Probe::new(Limits { connections: 1 }).next() else {
        return Err(of_host("can't be asked without a connection".to_owned()));
    };
    // Each address that is tried is a connection, whoever has it.
    let addresses = addresses.get(..manners.connections).unwrap_or(&addresses);
    for (tried, address) in addresses.iter().enumerate() {
        if tried > 0 {
            thread::sleep((began + manners.interval).saturating_duration_since(Instant::now()));
        }
        began = Instant::now();
        let left = until.saturating_duration_since(began);
        // One that nobody answers at leaves time for the others.
        let others = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let by = match others {
            0 | 1 => until,
            others => began + left / others,
        };
        match connect(&tls, target, *address, request(ask), by) {
            Ok(seen) => {
                first = Some((tried, *address, seen));
                break;
            }
            Err(Nothing::Server(why)) => problem = why,
            Err(Nothing::Here(error)) => return Err(here(error)),
        }
    }
    let (failed_before, address, first) = first.ok_or_else(|| of_host(problem))?;
    let connections = manners.connections - failed_before;
    // One that can be resumed is kept for that.
    let reserve = usize::from(connections > 2);
    let mut probe = Probe::new(Limits {
        connections: connections - reserve,
    });
    probe.add(first.connection.clone());
    let tickets = tls.tickets().count;
    let mut notes = Vec::new();
    let is_new = first.version == Some(SslVersion::TLS1_3);
    let mut failed = 0;
    while let Some(ask) = probe.next().filter(|_| is_new) {
        let rtt = rtt(&probe);
        let wait = (began + manners.interval).saturating_duration_since(Instant::now());
        let takes = wait + ask.pause + rtt * 8;
        if Instant::now() + takes > until {
            notes.push(format!(
                "after {}, there was no time for another connection: --timeout",
                lastbyte_link::counted(probe.connections().len(), "connection")
            ));
            break;
        }
        thread::sleep(wait);
        began = Instant::now();
        match connect(&tls, target, address, request(ask), until) {
            Ok(seen) => {
                failed = 0;
                probe.add(seen.connection);
            }
            Err(Nothing::Here(error)) => return Err(here(error)),
            Err(Nothing::Server(why)) => {
                failed += 1;
                let number = probe.connections().len() + 1;
                notes.push(format!("connection {number}: the server {why}"));
                // A place that it would have had.
                probe.add(lastbyte_probe::Connection::default());
            }
        }
        if failed >= PATIENCE {
            break;
        }
    }
    let resumption = match (
        tickets > 0 && reserve > 0 && failed < PATIENCE,
        probe.findings().path,
    ) {
        (true, Some(_)) => {
            let wait = (began + manners.interval).saturating_duration_since(Instant::now());
            let has_time = Instant::now() + wait + rtt(&probe) * 4 < until;
            has_time.then(|| {
                thread::sleep(wait);
                let purpose = Purpose {
                    ask,
                    offer: Offer::Resume,
                };
                connect(&tls, target, address, purpose, until).ok()
            })
        }
        _ => None,
    }
    .flatten();
    let mut document = document(target, address, &probe, &first, notes);
    document.tls.tickets = tickets;
    document.tls.max_early_data = tls.tickets().early;
    document.tls.resumed = resumption.as_ref().map(|seen| seen.resumed);
    document.tls.alpn = resumption.map_or(first.alpn, |seen| seen.alpn);
    site::add_edges(&mut document);
    let document = (document.fitted())
        .map_err(|error| of_host(format!("sends what no document of a probe has: {error}")))?;
    if manners.detail == Detail::Connections {
        tell_connections(&probe);
    }
    Ok(document)
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

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn document(
    target: &Target,
    address: SocketAddr,
    probe: &Probe,
    first: &Seen,
    mut notes: Vec<String>,
) -> Document {
    let findings = probe.findings();
    let observation = &first.observation;
    let bytes = |message| observation.bytes(message).unwrap_or_default();
    let is_new = first.version == Some(SslVersion::TLS1_3);
    let window = findings.window.filter(|_| is_new);
    let path = findings.path;
    if !is_new {
        notes.push(
            "it speaks no TLS 1.3: of its messages only the certificates are told, and no window"
                .to_owned(),
        );
    }
    if let Some(problem) = &first.problem {
        notes.push(problem.clone());
    }
    if window.is_some_and(|window| window.certainty == Certainty::Uncertain) {
        notes.push(
            "connections disagree about the window, or lost packets hide it: probe again"
                .to_owned(),
        );
    }
    let client_certificate = client_certificate(first);
    if client_certificate == Some(ClientCertificate::Required) {
        notes.push(
            "it wants a client's certificate, which a probe has none of: its window is told, and what it answers is not seen"
                .to_owned(),
        );
    }
    let problems: Vec<&str> = (first.problems.iter())
        .map(|problem| problem.error_string())
        .collect();
    let distrusted = (!problems.is_empty()).then(|| problems.join("; "));
    if let Some(response) = &first.response
        && let Some(location) = &response.head.location
        && (300..400).contains(&response.head.status)
    {
        notes.push(match &distrusted {
            Some(_) if !location.contains(&target.host.name) => format!(
                "it redirects to {location} under a chain that is not trusted here: a captive portal may answer in its place"
            ),
            _ => format!("it redirects to {location}: probe that for what users get"),
        });
    }
    let window_seen = window.map(WindowSeen::from);
    let [rate_mbit, rate_at_least_mbit] = path
        .and_then(|path| path.rate)
        .map_or([None, None], lastbyte_probe::RateSeen::megabits);
    let answered = first.answered.as_ref();
    let of_handshake = answered.map_or(0, Answered::of_handshake);
    let server_flight = observation.flights.iter().rev();
    let server_flight = server_flight
        .filter(|flight| flight.sender == lastbyte_tls::observer::Side::Server)
        .map(|flight| flight.wire_bytes + of_handshake)
        .next()
        .filter(|_| is_new);
    let client_hello = observation.flights.first().map(|flight| flight.wire_bytes);
    let connection = &first.connection;
    let rtt = path.map_or(Duration::ZERO, |path| path.rtt.least);
    let server_time = first
        .first_byte
        .zip(connection.finished())
        .map(|(first, finished)| milliseconds(first.saturating_sub(finished + rtt)));
    let made = probe.connections().iter();
    let made = made.filter(|connection| connection.connected().is_some());
    Document {
        version: VERSION,
        schema: SCHEMA.to_owned(),
        host: target.host.to_string(),
        address: address.to_string(),
        time: now(),
        rtt_ms: path.map(|path| milliseconds(path.rtt.least)),
        rate_mbit,
        initial_window: window_seen.as_ref().and_then(WindowSeen::value),
        mss: u32::try_from(connection.segment)
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
        window: window_seen,
        path: path.map_or_else(PathReport::default, |path| PathReport {
            rtt_median_ms: milliseconds(path.rtt.median),
            rtt_most_ms: milliseconds(path.rtt.most),
            rate_at_least_mbit,
            connections: made.count(),
            segments: path.loss.segments,
            out_of_order: path.loss.out_of_order,
            retransmitted: path.loss.retransmitted,
        }),
        tls: TlsSeen {
            version: match first.version {
                Some(SslVersion::TLS1_3) => "TLSv1.3".to_owned(),
                Some(SslVersion::TLS1_2) => "TLSv1.2".to_owned(),
                _ => String::new(),
            },
            cipher: first.cipher.clone(),
            signature: observation.signature.map(|scheme| {
                names::signature_scheme(scheme)
                    .map_or_else(|| format!("{scheme:#06x}"), str::to_owned)
            }),
            hello_retry: bytes(Message::HelloRetryRequest) > 0,
            encrypted_extensions_bytes: observation
                .bytes(Message::EncryptedExtensions)
                .and_then(|bytes| u32::try_from(bytes).ok()),
            certificate_bytes: bytes(Message::Certificate),
            staple_bytes: Some(if is_new {
                observation.staple_bytes
            } else {
                first.status_bytes
            }),
            client_certificate,
            client_hello_wire_bytes: client_hello.unwrap_or_default(),
            server_flight_wire_bytes: server_flight.unwrap_or_default(),
            tickets_seen: answered.map_or_else(TicketsSeen::default, Answered::tickets),
            writes: server_flight.and_then(|bytes| lastbyte_probe::writes(connection, bytes)),
            distrusted,
            ..TlsSeen::default()
        },
        times: Times {
            connect_ms: connection.connected().map_or(0.0, milliseconds),
            handshake_ms: connection.finished().map_or(0.0, milliseconds),
            first_byte_ms: first.first_byte.map(milliseconds),
            last_byte_ms: first.last_byte.map(milliseconds),
            server_ms: server_time,
        },
        response: first.response.as_ref().map(|response| ResponseSeen {
            status: response.head.status,
            wire_bytes: response.wire_bytes,
            is_whole: response.is_whole,
            location: response.head.location.clone(),
            alt_svc: response.head.alt_svc.clone(),
            ..ResponseSeen::left(response.first_record, answered)
        }),
        edges: Vec::new(),
        notes,
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
