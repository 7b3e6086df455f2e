//! What a probe saw of a site over QUIC, beside what it saw over TCP.

use std::fmt::Write;

use lastbyte_explain::site;
use lastbyte_link::{counted, visible};
use lastbyte_probe::{Document, Edge, FirstAnswer, NamedBy, QuicSeen};

/// The round trip over TCP that QUIC has not: `connect()`.
const CONNECT: usize = 1;

/// How many round trips a handshake takes over both, today and with other chains, in a sentence; nothing where that is not known.
pub(super) fn lead(document: &Document) -> String {
    let Some(quic) = &document.quic else {
        return String::new();
    };
    let clauses = both(document, quic).map(|(chain, over_quic, over_tcp)| {
        let with = match chain {
            site::TODAY => "as it is".to_owned(),
            chain => format!("with {}", visible(chain)),
        };
        format!("{} ({over_tcp}) {with}", counted(over_quic, "round trip"))
    });
    let clauses: Vec<String> = clauses.collect();
    if clauses.is_empty() {
        return String::new();
    }
    let named = match quic.named_by {
        NamedBy::AltSvc => ", which its Alt-Svc names",
        NamedBy::Asked => "",
    };
    format!(
        "Over QUIC at UDP port {}{named}, a handshake takes {}, in brackets what it takes over TCP, connect() included (by arithmetic).\n",
        quic.port,
        clauses.join(", ")
    )
}

/// Each chain that arithmetic knows over both, with its round trips over QUIC and over TCP.
fn both<'d>(
    document: &'d Document,
    quic: &'d QuicSeen,
) -> impl Iterator<Item = (&'d str, usize, usize)> {
    quic.edges.iter().filter_map(|edge| {
        Some((
            edge.chain.as_str(),
            quic.round_trips(edge.flights),
            over_tcp(document, edge)?,
        ))
    })
}

/// Round trips of a handshake over TCP with the chain of an edge, where that is known.
fn over_tcp(document: &Document, edge: &Edge) -> Option<usize> {
    let mut edges = document.edges.iter();
    let tcp = edges.find(|tcp| tcp.chain == edge.chain)?;
    Some(tcp.flights + CONNECT)
}

/// The rows of what was seen, each with its name.
pub(super) fn rows(document: &Document) -> Vec<(&'static str, String)> {
    let Some(quic) = &document.quic else {
        return Vec::new();
    };
    let named = match quic.named_by {
        NamedBy::AltSvc => "as its Alt-Svc says",
        NamedBy::Asked => "as was asked for",
    };
    let place = format!("UDP port {}, {named}", quic.port);
    let mut rows = vec![match &quic.problem {
        Some(problem) => ("QUIC", format!("{place}: {problem}")),
        None => ("QUIC", format!("{place}: {}", handshake(quic))),
    }];
    if quic.problem.is_some() && quic.handshake_ms.is_some() {
        rows.push(("QUIC handshake", handshake(quic)));
    }
    // Of a server that did not begin its handshake there is nothing else to report.
    if quic.first_answer.is_none() && quic.retry_token_bytes.is_none() {
        return rows;
    }
    rows.push(("QUIC answer", answer(quic)));
    rows.push(("QUIC credit", credit(quic)));
    rows.push(("QUIC datagrams", datagrams(quic)));
    rows
}

fn handshake(quic: &QuicSeen) -> String {
    let Some(handshake) = quic.handshake_ms else {
        return String::new();
    };
    let trips = match quic.rtt_ms {
        Some(rtt) if rtt >= 1.0 => {
            format!(", {:.1} round trips of {rtt:.2} ms", handshake / rtt)
        }
        _ => String::new(),
    };
    let flights = match quic.flights {
        Some(flights) => format!("in {} of the server", counted(flights, "flight")),
        None => "in flights that are too near to each other to be told apart".to_owned(),
    };
    format!("handshake {handshake:.1} ms{trips}, {flights}")
}

fn answer(quic: &QuicSeen) -> String {
    let retry = match quic.retry_token_bytes {
        Some(token) => {
            format!("a Retry packet with a token of {token} B, which is a round trip; then ")
        }
        None => String::new(),
    };
    let hello_retry = if quic.hello_retry {
        ", after a HelloRetryRequest: a round trip"
    } else {
        ""
    };
    let first = match (quic.first_answer, quic.thought_ms) {
        (Some(FirstAnswer::InstantAck), Some(later)) => {
            format!("an acknowledgement at once, {later:.2} ms before its handshake (instant ACK)")
        }
        (Some(FirstAnswer::InstantAck), None) => {
            "an acknowledgement at once, before its handshake (instant ACK)".to_owned()
        }
        (Some(FirstAnswer::AckOfPart), _) => {
            "an acknowledgement of a part of the ClientHello, of all of it with its handshake (no instant ACK)"
                .to_owned()
        }
        (Some(FirstAnswer::Handshake), _) => {
            "its handshake, with the acknowledgement of the ClientHello (no instant ACK)".to_owned()
        }
        (None, _) => return retry.trim_end_matches("; then ").to_owned(),
    };
    let no_retry = if quic.retry_token_bytes.is_none() {
        "; no Retry"
    } else {
        ""
    };
    format!("{retry}{first}{hello_retry}{no_retry}")
}

fn credit(quic: &QuicSeen) -> String {
    let Some(factor) = quic.amplification() else {
        return String::new();
    };
    let left = match quic.credit_left_bytes {
        Some(left) => format!(
            "; its handshake was done then, and {left} B of three times the ClientHello's datagrams are left"
        ),
        None => String::new(),
    };
    format!(
        "{} B sent for {} B received, {factor:.2} times as much, at most, before it knew the client's address{left}",
        quic.unvalidated_bytes, quic.credited_bytes
    )
}

fn datagrams(quic: &QuicSeen) -> String {
    let [client, server] = [&quic.client_datagrams, &quic.server_datagrams].map(|sizes| {
        let mut parts: Vec<String> = Vec::new();
        for alike in sizes.chunk_by(|one, other| one == other) {
            let bytes = alike.first().copied().unwrap_or_default();
            parts.push(match alike.len() {
                1 => format!("{bytes}"),
                count => format!("{count} x {bytes}"),
            });
        }
        parts.join(", ")
    });
    if server.is_empty() {
        return String::new();
    }
    format!("the server's {server} B; the client's {client} B")
}

/// How far each chain is from a round trip more over QUIC.
pub(super) fn edges(document: &Document) -> String {
    let Some(quic) = document.quic.as_ref().filter(|quic| !quic.edges.is_empty()) else {
        return String::new();
    };
    let mut text = format!(
        "\n{:<18} {:>11} {:>11} {:>8}  {}\n",
        "over QUIC", "Certificate", "round trips", "over TCP", "to the next edge"
    );
    for edge in &quic.edges {
        let over_tcp =
            over_tcp(document, edge).map_or_else(|| "-".to_owned(), |trips| trips.to_string());
        let _ = writeln!(
            text,
            "{:<18} {:>11} {:>11} {over_tcp:>8}  {}",
            visible(&edge.chain),
            edge.certificate_bytes,
            quic.round_trips(edge.flights),
            super::distance::distance(edge, "round trip")
        );
    }
    text += "by arithmetic, as quinn would be with this ClientHello: three times of what it has received is its credit, and where a byte \
             of that is left, it sends a whole datagram\n";
    if let (Some(seen), Some(today)) = (quic.flights, site::of_today_over_quic(document))
        && seen != today.flights
    {
        let _ = writeln!(
            text,
            "seen today: {} of the server, where arithmetic has {}: its stack, or the path, is another",
            counted(seen, "flight"),
            today.flights
        );
    }
    text
}
