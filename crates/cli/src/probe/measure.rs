//! The same site with other chains, measured: which command of `compare` that is.

use std::ffi::OsString;
use std::time::Duration;

use clap::Parser;
use lastbyte::explain::{self, Explanation};
use lastbyte::study::{Arm, Hosts, NamedNetwork};
use lastbyte_link::{counted, format_duration, visible};
use lastbyte_probe::{Certificate, Document};
use lastbyte_sizes::{KeyAlgorithm, Message};

use super::edges::{self, Chain};
use super::what_if::Answer;
use super::{Failure, print, told};

/// Of each chain, over each network.
const CONNECTIONS: &str = "50";

/// Has `compare` measure chains whose servers send as many bytes, over the measured path and networks by name.
pub(super) fn measure(
    answer: &Answer<'_>,
    networks: &[&'static NamedNetwork],
) -> Result<(), Failure> {
    let arms = answer.explained.iter().map(|(chain, explanation)| {
        let (arm, rest) = arm(answer.document, chain, explanation)?;
        print(&rest)?;
        Ok(arm)
    });
    let arms = arms.collect::<Result<Vec<String>, Failure>>()?;
    print(&(tickets(answer.document) + &response(answer.document)))?;
    for way in ways(answer, networks) {
        let line = line(answer, &arms, &way);
        print(&format!("\n{}\n", line.join(" ")))?;
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        let asked =
            crate::Cli::try_parse_from(&line).map_err(|error| Failure::Usage(error.to_string()))?;
        if let crate::Command::Compare(compare) = asked.command {
            compare.run(&arguments)?;
        }
    }
    Ok(())
}

/// The arm with such a chain whose server sends as many bytes on the wire; what it can't have is a line besides.
fn arm(
    document: &Document,
    chain: &Chain,
    explanation: &Explanation,
) -> Result<(String, String), Failure> {
    let wanted = i64::from(explanation.wire.server_flight_wire_bytes);
    let certificate = i64::from(explanation.wire.bytes(Message::Certificate));
    let (key, of) = (key(document, chain), chain);
    let words = |chain: &str| {
        let group = of.group(document);
        // A host that has writes of its own makes a record of each.
        let records = match explain::host_writes(document) {
            None => edges::records(document),
            Some(_) => String::new(),
        };
        format!(
            "{group}/{key}{chain}{records}{}",
            edges::key_share(document, of)
        )
    };
    let (text, rest) = match padded(&words, certificate, wanted) {
        Some(found) => found,
        // None of the laboratory's chains for this key is so short: the one that is like it.
        None => {
            let way = [chain.way.as_str(), "intermediates=0"];
            let way = way.into_iter().find(|way| !way.is_empty());
            let text = words(&way.map_or_else(String::new, |way| format!("/{way}")));
            let arm: Arm = text.parse().map_err(Failure::usage)?;
            let sent = explain::wire(&arm).map_err(Failure::run)?;
            (text, wanted - i64::from(sent.server_flight_wire_bytes))
        }
    };
    let told = match rest {
        0 => String::new(),
        _ => format!(
            "{}: the laboratory's server sends {} {} than this site's would\n",
            visible(&chain.name),
            counted(rest.unsigned_abs(), "byte"),
            if rest < 0 { "more" } else { "less" }
        ),
    };
    // As many, whose length is no arithmetic.
    let tickets = match explain::tickets(document) {
        0 => String::new(),
        tickets => format!("/tickets={tickets}"),
    };
    Ok((text + &tickets, told))
}

/// What of the site's tickets the laboratory's server does otherwise: a line, or nothing.
fn tickets(document: &Document) -> String {
    let tls = &document.tls;
    let Some(bytes) = tls.ticket_wire_bytes.filter(|bytes| *bytes > 0) else {
        return String::new();
    };
    let alone = match tls.ticket_writes.is_empty() {
        true => "",
        false => " in segments of their own",
    };
    let together = match explain::host_writes(document) {
        None => "go on in the response's first segment",
        Some(_) => "have segments of their own, but one write",
    };
    format!(
        "tickets: this site's are {bytes} B{alone}; the laboratory's are as many, some 255 B each, and {together}\n"
    )
}

/// What of the site's response the laboratory's server does otherwise: a line, or nothing.
fn response(document: &Document) -> String {
    match (
        explain::response_writes(document),
        explain::host_writes(document),
    ) {
        ([], _) | (_, Some(_)) => String::new(),
        (sizes, None) => format!(
            "response: this site's leaves{}; the laboratory's server makes writes of one record, and here one of all\n",
            told::in_first_writes(sizes)
        ),
    }
}

/// The end-entity's key.
fn key(document: &Document, chain: &Chain) -> KeyAlgorithm {
    let supposed = chain.keys.map(|keys| keys.leaf);
    let leaf = document.chain.first().and_then(Certificate::key);
    supposed.or(leaf).unwrap_or(KeyAlgorithm::EcdsaP256)
}

/// An arm of one certificate that is padded until its server sends so many bytes on the wire, and how many are missing; none if
/// such a chain can't be so short.
fn padded(words: &dyn Fn(&str) -> String, certificate: i64, wanted: i64) -> Option<(String, i64)> {
    let of = |bytes: i64| {
        let text = words(&format!(":{bytes}B/intermediates=0"));
        let wire = explain::wire(&text.parse().ok()?).ok()?;
        Some((text, wanted - i64::from(wire.server_flight_wire_bytes)))
    };
    let mut bytes = certificate;
    let mut found = of(bytes)?;
    // What is added can need another record, whose own bytes count as well.
    for _ in 0..3 {
        if found.1 == 0 {
            break;
        }
        bytes += found.1;
        found = of(bytes)?;
    }
    Some(found)
}

/// The measured path, and networks by name, as options.
fn ways(answer: &Answer<'_>, networks: &[&'static NamedNetwork]) -> Vec<Vec<String>> {
    let rtt = answer.document.rtt_ms.unwrap_or_default();
    let rtt = format_duration(Duration::from_micros((rtt * 1e3) as u64));
    let rate = answer.rate.rate().to_string();
    let mut ways = vec![vec!["--rtt".to_owned(), rtt, "--rate".to_owned(), rate]];
    if !networks.is_empty() {
        let names: Vec<&str> = networks.iter().map(|network| network.name).collect();
        ways.push(vec!["--link".to_owned(), names.join(",")]);
    }
    ways
}

/// What compares these arms.
fn line(answer: &Answer<'_>, arms: &[String], way: &[String]) -> Vec<String> {
    let path = answer.cells.first();
    let writes = explain::host_writes(answer.document);
    let data = match writes {
        Some(writes) => explain::host_payload(answer.document, writes).0,
        None => path.map_or(0, |path| path.data.0),
    };
    let window = edges::window(answer.document).to_string();
    // What this machine takes to compute is neither the site's nor its users', and takes longest to measure. In brief, the
    // first byte would not be told. Arms have what they say.
    let mut line: Vec<String> = [
        "lastbyte",
        "compare",
        "--verbose",
        "--cpu",
        "none",
        "--chain-profile",
        "private",
    ]
    .map(str::to_owned)
    .into();
    for (index, arm) in arms.iter().enumerate() {
        let option = match index {
            0 => "--baseline",
            _ => "--against",
        };
        line.extend([option.to_owned(), arm.clone()]);
    }
    let hosts = path.map_or_else(Hosts::default, |path| path.hosts);
    let mtu = (hosts.mtu != Hosts::default().mtu).then(|| hosts.mtu.to_string());
    let options = [
        ("--connections", Some(CONNECTIONS.to_owned())),
        ("--initcwnd", Some(window)),
        ("--data", Some(format!("{data}B"))),
        ("--mtu", mtu),
        ("--writes", writes.map(|writes| writes.to_string())),
    ];
    for (option, value) in options {
        line.extend(
            value
                .into_iter()
                .flat_map(|value| [option.to_owned(), value]),
        );
    }
    line.extend(way.iter().cloned());
    line
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::edges::{explained, measured, one_certificate, today};
    use super::*;

    fn document(said: &str) -> Document {
        let document = format!(r#"{{"version": 1, "host": "server.example:443", {said}}}"#);
        Document::read(&document).unwrap()
    }

    /// A chain of one certificate, whose server sends so many bytes more than arithmetic has them.
    fn chain(key: &str, certificate: usize, besides: i64) -> Chain {
        let mut chain = one_certificate(key, certificate);
        chain.shown.besides = besides;
        chain
    }

    #[test]
    fn the_laboratory_s_server_sends_as_many_bytes_as_the_site_s() {
        let document = document(
            r#""chain": [], "group": "x25519", "tls": {"tickets": 2, "ticket_wire_bytes": 534}"#,
        );
        // A record more begins with the 16,385th byte of a message.
        for (certificate, besides) in [
            (1500, 0),
            (1500, -300),
            (1500, 16),
            (15_000, 22),
            (16_000, 5000),
        ]
        .into_iter()
        .chain((16_350..16_420).map(|bytes| (15_800, bytes - 15_800)))
        {
            let chain = chain("ecdsa-p256", certificate, besides);
            let explanation = explained(&document, &chain, &[]).unwrap();
            let (text, told) = arm(&document, &chain, &explanation).unwrap();
            assert!(text.starts_with("x25519/ecdsa-p256:"), "{text}");
            let text = text.strip_suffix("/tickets=2").unwrap();
            let wire = explain::wire(&text.parse().unwrap()).unwrap();
            let rest = i64::from(explanation.wire.server_flight_wire_bytes)
                - i64::from(wire.server_flight_wire_bytes);
            // With one byte more, a message has a record more of 22 bytes and it.
            assert!(rest.abs() <= 22, "{certificate} {besides}: {rest}");
            assert_eq!(told.is_empty(), rest == 0, "{told}");
        }
    }

    #[test]
    fn what_a_certificate_of_the_laboratory_can_not_be_is_told() {
        let document = document(r#""chain": [], "group": "nosuch""#);
        let chain = chain("ml-dsa-65", 1000, 0);
        let explanation = explained(&document, &chain, &[]).unwrap();
        let (text, told) = arm(&document, &chain, &explanation).unwrap();
        assert_eq!(
            text,
            format!("{}/ml-dsa-65/intermediates=0", explain::USUAL_GROUP)
        );
        assert!(
            told.contains("ml-dsa-65: the laboratory's server sends ")
                && told.ends_with(" bytes more than this site's would\n")
        );
    }

    /// In writes of a record each, as many bytes on the wire as the site sent.
    #[test]
    fn the_laboratory_s_server_writes_as_the_site_s() {
        let of = |writes: &str| {
            document(&format!(
                r#""chain": [], "rtt_ms": 50, "initial_window": 10, "response": {{"status": 200, "wire_bytes": 12289,
                "first_record_wire_bytes": 4118, "writes": {{"first": {writes}, "is_certain": true}}}}"#
            ))
        };
        let line = |document: &Document| {
            let rate = edges::PathRate::of(document, None);
            let answer = Answer {
                document,
                explained: Vec::new(),
                users: None,
                cells: vec![measured(document, rate.rate())],
                rate,
            };
            line(&answer, &[], &[]).join(" ")
        };
        let go = of("[1208, 2394, 560, 4766, 3332]");
        assert!(line(&go).ends_with(" --data 12157B --writes 1186B+2372B+538B+4744B+3310B"));
        let nginx = of("[4118]");
        assert!(line(&nginx).ends_with(" --data 12223B --writes 4096B"));
        let chain = chain("ecdsa-p256", 1500, 0);
        let arm = |document: &Document| {
            let explanation = explained(document, &chain, &[]).unwrap();
            arm(document, &chain, &explanation).unwrap().0
        };
        assert!(!arm(&nginx).contains("record_size"));
        assert!(arm(&of("[]")).contains("/record_size=4096"));
        assert!(response(&nginx).is_empty() && response(&of("[]")).is_empty());
        // More than a record in a write.
        let head = of("[221, 40000]");
        assert!(!line(&head).contains("--writes"));
        assert!(
            response(&head).starts_with("response: this site's leaves in writes of 221, 40000 B;")
        );
    }

    #[test]
    fn the_command_has_the_path_s_window_response_and_segments() {
        let said = r#""chain": [], "rtt_ms": 50, "mss": 1400, "initial_window": 4,
            "response": {"status": 200, "wire_bytes": 1022, "first_record_wire_bytes": 1022}"#;
        let document = document(said);
        let rate = edges::PathRate::of(&document, None);
        let cells = vec![measured(&document, rate.rate())];
        assert!(today(&document).is_none());
        let answer = Answer {
            document: &document,
            explained: Vec::new(),
            users: None,
            cells,
            rate,
        };
        let ways = ways(&answer, &[]);
        let arms = ["a", "b"].map(str::to_owned);
        let line = line(&answer, &arms, &ways[0]).join(" ");
        assert_eq!(
            line,
            "lastbyte compare --verbose --cpu none --chain-profile private --baseline a --against b --connections 50 --initcwnd 4 --data 1000B \
             --mtu 1452 --rtt 50ms --rate 1gbit"
        );
    }
}
