//! What a probe found, for people, for monitoring and for Prometheus.

use std::fmt::Write;
use std::time::Duration;

use super::distance::distance;
use super::quic;
use crate::thresholds::NOTHING_MS;
use lastbyte_explain::{response, site};
use lastbyte_link::{counted, visible};
use lastbyte_probe::{
    Certainty, ClientCertificate, Document, Edge, Left, QuicSeen, WindowSeen, Writes,
};

/// A time, or how much later than today's it is.
pub(super) fn later(time: Option<Duration>, today: Option<Duration>) -> String {
    let Some(time) = time else {
        return format!("{:>10}", "-");
    };
    let ms = time.as_secs_f64() * 1e3;
    match today {
        Some(today) if today != time => {
            let more = ms - today.as_secs_f64() * 1e3;
            // Less than is shown has no sign.
            let more = if more.abs() < NOTHING_MS { 0.0 } else { more };
            format!("{:>10}", format!("{more:+.1} ms"))
        }
        _ => format!("{:>10}", format!("{ms:.1} ms")),
    }
}

/// Whether this machine trusts the chain.
pub fn trusted(document: &Document) -> &'static str {
    match document.tls.distrusted {
        None => "yes",
        Some(_) => "no",
    }
}

/// For people.
pub fn table(document: &Document) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{name:<18} {}", visible(&value));
        }
    };
    row(
        "server",
        format!("{} at {}", document.host, document.address),
    );
    row("round trip", round_trip(document));
    row("initial window", window(document));
    row(
        "segment",
        document
            .mss
            .map_or_else(String::new, |mss| format!("{mss} B")),
    );
    row("rate", rate(document));
    row("lost", loss(document));
    let tls = &document.tls;
    row(
        "TLS",
        [tls.version.as_str(), tls.cipher.as_str()].join(", "),
    );
    row("key exchange", key_exchange(document));
    row("server's flight", server_flight(document));
    row("OCSP staple", staple(document));
    row("client's chain", client_certificate(document));
    row("signature", tls.signature.clone().unwrap_or_default());
    row("protocol", protocol(document));
    for (name, value) in quic::rows(document) {
        row(name, value);
    }
    row("resumption", resumption(document));
    row("times", times(document));
    row("response", response(document));
    row(
        "trusted here",
        tls.distrusted
            .as_ref()
            .map_or_else(|| "yes".to_owned(), |why| format!("no: {why}")),
    );
    text.push('\n');
    text += &chain(document);
    text.push('\n');
    text += &edges(document);
    text += &quic::edges(document);
    for note in &document.notes {
        let _ = writeln!(text, "note: {}", visible(note));
    }
    text
}

fn round_trip(document: &Document) -> String {
    let Some(rtt) = document.rtt_ms else {
        return "not seen".to_owned();
    };
    let path = &document.path;
    format!(
        "{rtt:.2} ms at least, {:.2} ms at the median, {:.2} ms at most, of {}",
        path.rtt_median_ms,
        path.rtt_most_ms,
        counted(path.connections, "connection")
    )
}

/// The window in words.
pub(super) fn window(document: &Document) -> String {
    let Some(window) = &document.window else {
        return match document.rtt_ms {
            Some(rtt) if rtt < 1.0 => {
                "not seen: flights are a round trip apart, and that is too short".to_owned()
            }
            _ => "not seen".to_owned(),
        };
    };
    let paced = if window.paced { "; paced" } else { "" };
    let words = match (window.certainty, window.most) {
        (Certainty::Exact, _) => format!("{} segments", window.least),
        (Certainty::Likely, _) => format!("{} segments, of one look", window.least),
        (Certainty::AtLeast, _) => format!(
            "at least {} segments: nothing that came was ended by it",
            window.least
        ),
        (Certainty::Between, Some(most)) => format!("{} to {most} segments", window.least),
        (Certainty::Uncertain, Some(most)) => {
            format!("uncertain: {} to {most} segments", window.least)
        }
        (Certainty::Between | Certainty::Uncertain, None) => {
            format!("uncertain: {} segments or more", window.least)
        }
    };
    words + paced
}

fn rate(document: &Document) -> String {
    match (document.rate_mbit, document.path.rate_at_least_mbit) {
        (Some(rate), _) => format!("about {rate:.1} Mbit/s, the path's"),
        (None, Some(rate)) => format!("{rate:.1} Mbit/s at least: nothing was seen to limit it"),
        (None, None) => String::new(),
    }
}

fn loss(document: &Document) -> String {
    let path = &document.path;
    match (path.out_of_order, path.retransmitted) {
        (0, 0) => format!("nothing of {}", counted(path.segments, "segment")),
        (behind, again) => format!(
            "of {}, {behind} came behind a gap; {again} of ours were sent again",
            counted(path.segments, "segment")
        ),
    }
}

fn key_exchange(document: &Document) -> String {
    let Some(group) = &document.group else {
        return String::new();
    };
    if document.tls.hello_retry {
        format!("{group}, after a HelloRetryRequest: a round trip")
    } else {
        group.clone()
    }
}

/// What the server sends of its handshake, and in which writes.
fn server_flight(document: &Document) -> String {
    let bytes = document.tls.server_flight_wire_bytes;
    if bytes == 0 {
        return String::new();
    }
    let writes = match &document.tls.writes {
        None => String::new(),
        Some(Writes { first, is_certain }) => {
            let last = bytes.saturating_sub(first.iter().sum());
            let sizes: Vec<usize> = first.iter().copied().chain([last]).collect();
            response::in_writes(&sizes) + response::about(*is_certain)
        }
    };
    format!("{bytes} B on the wire{writes}")
}

/// What of the Certificate message is no chain.
fn staple(document: &Document) -> String {
    match document.tls.staple_bytes {
        None => String::new(),
        Some(0) => "none".to_owned(),
        Some(bytes) => format!("{bytes} B in the server's flight, besides the chain"),
    }
}

fn client_certificate(document: &Document) -> String {
    let Some(asked) = document.tls.client_certificate else {
        return String::new();
    };
    let then = match asked {
        ClientCertificate::Optional => "the connection went on without one",
        ClientCertificate::Required => "the connection ended without one",
        ClientCertificate::Asked => "what follows without one was not seen",
    };
    format!("asked for (CertificateRequest), and {then}")
}

fn protocol(document: &Document) -> String {
    let alpn = match &document.tls.alpn {
        Some(alpn) => alpn.clone(),
        None => "none chosen".to_owned(),
    };
    let alt_svc = document
        .response
        .as_ref()
        .and_then(|response| response.alt_svc.as_ref());
    match alt_svc {
        Some(alt_svc) => format!("{alpn}; Alt-Svc {alt_svc}"),
        None => alpn,
    }
}

fn resumption(document: &Document) -> String {
    let tls = &document.tls;
    let early = match tls.max_early_data {
        0 => "no early data".to_owned(),
        most => format!("up to {most} B of early data"),
    };
    let resumed = match tls.resumed {
        Some(true) => ", and a second connection resumes",
        Some(false) => ", and a second connection does not resume",
        None => "",
    };
    match tls.tickets {
        0 => "no tickets".to_owned(),
        tickets => {
            let bytes = response::manner_of_tickets(document);
            format!("{}{bytes}{resumed}; {early}", counted(tickets, "ticket"))
        }
    }
}

/// When the handshake was done, if it was: a server can break off right after its own part.
pub(super) fn handshake_ms(document: &Document) -> Option<f64> {
    Some(document.times.handshake_ms).filter(|ms| *ms > 0.0)
}

fn times(document: &Document) -> String {
    let times = &document.times;
    let trips = |ms: f64| match document.rtt_ms {
        Some(rtt) if rtt >= 1.0 => format!(" ({:.1} round trips)", ms / rtt),
        _ => String::new(),
    };
    let mut parts = vec![format!("connect {:.1} ms", times.connect_ms)];
    for (name, ms) in [
        ("handshake", handshake_ms(document)),
        ("first byte", times.first_byte_ms),
        ("last byte", times.last_byte_ms),
    ] {
        if let Some(ms) = ms {
            parts.push(format!("{name} {ms:.1} ms{}", trips(ms)));
        }
    }
    if let Some(server) = times.server_ms {
        parts.push(format!(
            "of the first byte {server:.1} ms beyond a round trip"
        ));
    }
    parts.join(", ")
}

fn response(document: &Document) -> String {
    let Some(response) = &document.response else {
        return "none".to_owned();
    };
    let (status, bytes) = (response.status, response.wire_bytes);
    format!(
        "status {status}, {bytes} B on the wire{}",
        response::manner(document)
    )
}

fn chain(document: &Document) -> String {
    let mut text = format!(
        "{:<11} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  {:>5} {:>4}  {}\n",
        "certificate", "bytes", "key", "sig", "names", "ext", "rest", "hosts", "SCTs", "what"
    );
    for (number, certificate) in (1..).zip(&document.chain) {
        let _ = writeln!(
            text,
            "{number:<11} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  {:>5} {:>4}  {}, signed with {}: {}",
            certificate.bytes,
            certificate.key_bytes,
            certificate.signature_bytes,
            certificate.name_bytes,
            certificate.extension_bytes,
            certificate.rest_bytes,
            certificate.names,
            certificate.scts,
            visible(&certificate.algorithm),
            visible(&certificate.signature),
            visible(&certificate.subject)
        );
    }
    if document.chain.is_empty() {
        text.push_str("none was seen\n");
    }
    text
}

fn edges(document: &Document) -> String {
    if document.edges.is_empty() {
        return String::new();
    }
    let window = site::window(document);
    let is_known = document.initial_window.is_some();
    let mut text = format!(
        "{:<18} {:>11} {:>11} {:>7}  {}\n",
        "chain", "Certificate", "on the wire", "flights", "to the next edge"
    );
    for edge in &document.edges {
        let far = distance(edge, "flight");
        let _ = writeln!(
            text,
            "{:<18} {:>11} {:>11} {:>7}  {far}",
            visible(&edge.chain),
            edge.certificate_bytes,
            edge.server_flight_wire_bytes,
            edge.flights
        );
    }
    let supposed = match (is_known, &document.window) {
        (true, _) => String::new(),
        (false, Some(seen)) if seen.certainty != Certainty::Uncertain => {
            format!(", of which {} was seen", seen.to_text())
        }
        (false, _) => ", which is supposed, as it was not seen".to_owned(),
    };
    let _ = writeln!(
        text,
        "by arithmetic, with a window of {window}{supposed}; other chains have the same names, extensions and number of \
         certificates"
    );
    let is_at_most = |edge: &Edge| edge.left_is == Some(Left::AtMost);
    if document.edges.iter().any(is_at_most) {
        text += "up to: a segment within the server's flight that is not full, where it writes in pieces, leaves less\n";
    }
    text
}

/// One line for monitoring: `key=value`, and `-` for what is not known.
pub fn line(document: &Document) -> String {
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let number = |value: Option<f64>| known(value.map(|value| format!("{value:.2}")));
    let today = site::of_today(document);
    let window = document.window.as_ref().map(WindowSeen::to_text);
    let quic = document.quic.as_ref();
    let over_quic = site::of_today_over_quic(document);
    let fields = [
        ("host", document.host.clone()),
        ("rtt_ms", number(document.rtt_ms)),
        ("window", known(window)),
        ("group", known(document.group.clone())),
        (
            "key",
            known(document.chain.first().map(|leaf| leaf.algorithm.clone())),
        ),
        ("certificate", document.tls.certificate_bytes.to_string()),
        ("flights", known(today.map(|edge| edge.flights.to_string()))),
        (
            "left",
            known(
                today
                    .and_then(|edge| edge.left)
                    .map(|left| left.to_string()),
            ),
        ),
        ("handshake_ms", number(handshake_ms(document))),
        ("ttfb_ms", number(document.times.first_byte_ms)),
        ("ttlb_ms", number(document.times.last_byte_ms)),
        ("trusted", trusted(document).to_owned()),
        ("quic", known(quic.map(|quic| quic.outcome().to_owned()))),
        (
            "quic_flights",
            known(over_quic.map(|edge| edge.flights.to_string())),
        ),
        (
            "quic_left",
            known(
                over_quic
                    .and_then(|edge| edge.left)
                    .map(|left| left.to_string()),
            ),
        ),
        (
            "quic_handshake_ms",
            number(quic.and_then(|quic| quic.handshake_ms)),
        ),
        (
            "quic_amplification",
            number(quic.and_then(QuicSeen::amplification)),
        ),
    ];
    let fields = fields.map(|(key, value)| format!("{key}={}", visible(&value).replace(' ', "_")));
    fields.join(" ") + "\n"
}

/// Metrics in the text format of Prometheus.
pub fn metrics(document: &Document) -> String {
    let today = site::of_today(document);
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    let window = document.window.as_ref();
    let quic = document.quic.as_ref();
    let over_quic = site::of_today_over_quic(document);
    let gauges = [
        (
            "rtt_seconds",
            "Least round-trip time.",
            seconds(document.rtt_ms),
        ),
        (
            "initial_window_segments",
            "The server's initial window, where it is known.",
            document.initial_window.map(f64::from),
        ),
        (
            "initial_window_least_segments",
            "The smallest initial window that was not ruled out.",
            window.map(|window| f64::from(window.least)),
        ),
        (
            "certificate_bytes",
            "The Certificate message.",
            Some(document.tls.certificate_bytes as f64).filter(|bytes| *bytes > 0.0),
        ),
        (
            "server_flights",
            "Flights of the server for the handshake, by arithmetic.",
            today.map(|edge| edge.flights as f64),
        ),
        (
            "bytes_left",
            "Bytes before the handshake takes a flight more, by arithmetic.",
            today.and_then(|edge| edge.left).map(|left| left as f64),
        ),
        (
            "handshake_seconds",
            "From connect() to the client's Finished.",
            seconds(handshake_ms(document)),
        ),
        (
            "first_byte_seconds",
            "From connect() to the first byte.",
            seconds(document.times.first_byte_ms),
        ),
        (
            "last_byte_seconds",
            "From connect() to the last byte.",
            seconds(document.times.last_byte_ms),
        ),
        (
            "trusted",
            "Whether this machine trusts the chain.",
            Some(f64::from(u8::from(document.tls.distrusted.is_none()))),
        ),
        (
            "quic_success",
            "Whether a handshake over QUIC was completed, where one was tried.",
            quic.map(|quic| f64::from(u8::from(quic.problem.is_none()))),
        ),
        (
            "quic_server_flights",
            "Flights of the server for the handshake over QUIC, by arithmetic.",
            over_quic.map(|edge| edge.flights as f64),
        ),
        (
            "quic_bytes_left",
            "Bytes before the handshake over QUIC takes a flight more, by arithmetic.",
            over_quic.and_then(|edge| edge.left).map(|left| left as f64),
        ),
        (
            "quic_handshake_seconds",
            "From the first datagram to the client's Finished.",
            seconds(quic.and_then(|quic| quic.handshake_ms)),
        ),
        (
            "quic_amplification_ratio",
            "The most that the server had sent by what it had received, before it knew the client's address.",
            quic.and_then(QuicSeen::amplification),
        ),
    ];
    let known = gauges
        .into_iter()
        .filter_map(|(name, help, value)| Some(gauge(name, help, &document.host, value?)));
    success(&document.host, 1.0) + &known.collect::<String>()
}

/// The same of a site that could not be probed: nothing is left there of an earlier probe.
pub fn failed(host: &str) -> String {
    success(host, 0.0)
}

fn success(host: &str, value: f64) -> String {
    gauge("success", "Whether it could be probed.", host, value)
}

fn gauge(name: &str, help: &str, host: &str, value: f64) -> String {
    let host = host.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "# HELP lastbyte_probe_{name} {help}\n# TYPE lastbyte_probe_{name} gauge\nlastbyte_probe_{name}{{host=\"{host}\"}} {value}\n"
    )
}
