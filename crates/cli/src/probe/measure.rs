//! The same site with other chains, measured: which command of `compare` that is.

use std::ffi::OsString;
use std::time::Duration;

use lastbyte::explain::site::{self, Chain};
use lastbyte::explain::{self, Explanation, response};
use lastbyte::report::site::Answer;
use lastbyte::study::{Arm, ArmChain, Hosts, NamedNetwork, Parameter, Settings};
use lastbyte_exchange::HandshakeFlight;
use lastbyte_link::{counted, format_duration, visible};
use lastbyte_probe::{Certificate, Document};
use lastbyte_sizes::{ChainSpec, KeyAlgorithm, Message};

use super::{Failure, print};
use crate::compare::Chains;

/// Of each chain, over each network.
const CONNECTIONS: u32 = 50;

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
    let arms = arms.collect::<Result<Vec<Arm>, Failure>>()?;
    print(&response::otherwise(answer.document))?;
    for question in questions(answer, &arms, networks) {
        let line = question.line();
        print(&format!("\n{}\n", line.join(" ")))?;
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        question.question().run(&arguments)?;
    }
    Ok(())
}

/// The arm with such a chain whose server sends as many bytes on the wire; what it can't have is a line besides.
fn arm(
    document: &Document,
    chain: &Chain,
    explanation: &Explanation,
) -> Result<(Arm, String), Failure> {
    let wanted = i64::from(explanation.exchange.sent(HandshakeFlight::Server));
    let certificate = i64::from(explanation.exchange.bytes(Message::Certificate));
    let key = key(document, chain);
    let records = response::sends(document).arm;
    let besides: Vec<_> = records
        .into_iter()
        .chain(site::key_share(document, chain))
        .collect();
    let besides: Vec<_> = besides
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let group = chain.group(document);
    let of = |spec: ChainSpec, way: &Settings| {
        Arm::of_settings(group, ArmChain::Made(spec), way)?.with_all(&besides)
    };
    let alone = ChainSpec {
        intermediates: 0,
        ..ChainSpec::new(key)
    };
    let sized = |bytes: i64| {
        let spec = ChainSpec {
            certificate_bytes: Some(usize::try_from(bytes).ok()?),
            ..alone.clone()
        };
        of(spec, &Settings::default()).ok()
    };
    let (arm, rest) = match padded(&sized, certificate, wanted) {
        Some(found) => found,
        // None of the laboratory's chains for this key is so short: the one that is like it.
        None => {
            let arm = if chain.way.is_empty() {
                of(alone, &chain.way)
            } else {
                of(ChainSpec::new(key), &chain.way)
            };
            let arm = arm.map_err(Failure::usage)?;
            let sent = explain::wire(&arm).map_err(Failure::run)?;
            (arm, wanted - i64::from(sent.sent(HandshakeFlight::Server)))
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
    let arm = match explain::tickets(document) {
        0 => arm,
        tickets => arm
            .with("tickets", &tickets.to_string())
            .map_err(Failure::usage)?,
    };
    Ok((arm, told))
}

/// The end-entity's key.
fn key(document: &Document, chain: &Chain) -> KeyAlgorithm {
    let supposed = chain.keys.map(|keys| keys.leaf);
    let leaf = document.chain.first().and_then(Certificate::key);
    supposed.or(leaf).unwrap_or(KeyAlgorithm::EcdsaP256)
}

/// An arm of one certificate that is padded until its server sends so many bytes on the wire, and how many are missing; none if
/// such a chain can't be so short.
fn padded(sized: &dyn Fn(i64) -> Option<Arm>, certificate: i64, wanted: i64) -> Option<(Arm, i64)> {
    let of = |bytes: i64| {
        let arm = sized(bytes)?;
        let wire = explain::wire(&arm).ok()?;
        Some((arm, wanted - i64::from(wire.sent(HandshakeFlight::Server))))
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

/// What compares these arms: over the measured path, and over networks by name.
///
/// What this machine takes to compute is neither the site's nor its users', and takes longest to measure. In brief, the first
/// byte would not be told. Arms have what they say.
fn questions(answer: &Answer<'_>, arms: &[Arm], networks: &[&'static NamedNetwork]) -> Vec<Chains> {
    let path = answer.cells.first();
    let host = response::sends(answer.document).host;
    let data = match &host {
        Some(host) => host.data.0,
        None => path.map_or(0, |path| path.data.0),
    };
    let hosts = path.map_or_else(Hosts::default, |path| path.hosts);
    let mtu = (hosts.mtu != Hosts::default().mtu).then(|| hosts.mtu.to_string());
    let said = [
        (
            Parameter::INITCWND,
            Some(site::window(answer.document).to_string()),
        ),
        (Parameter::DATA, Some(format!("{data}B"))),
        (Parameter::MTU, mtu),
    ];
    let said = said
        .into_iter()
        .filter_map(|(parameter, value)| Some((parameter, value?)))
        .chain(host.into_iter().flat_map(|host| host.settings));
    let question = |named: &[&'static NamedNetwork], link: Vec<(Parameter, String)>| Chains {
        arms: arms.to_vec(),
        connections: CONNECTIONS,
        named: named.to_vec(),
        said: said.clone().chain(link).collect(),
    };
    let rtt = answer.document.rtt_ms.unwrap_or_default();
    let rtt = format_duration(Duration::from_micros((rtt * 1e3) as u64));
    let rate = answer.rate.rate().to_string();
    let path = vec![(Parameter::RTT, rtt), (Parameter::RATE, rate)];
    let mut questions = vec![question(&[], path)];
    if !networks.is_empty() {
        questions.push(question(networks, Vec::new()));
    }
    questions
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::str::FromStr;

    use clap::Parser;

    use super::*;
    use lastbyte::explain::site::{explained, measured, one_certificate, today};

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
            assert!(text.label.starts_with("x25519/ecdsa-p256:"), "{text}");
            assert!(
                text.label.ends_with("B/intermediates=0/tickets=2"),
                "{text}"
            );
            assert_eq!(text, text.label.parse().unwrap());
            let wire = explain::wire(&text.saying(&["tickets"], &[]).unwrap()).unwrap();
            let rest = i64::from(explanation.exchange.sent(HandshakeFlight::Server))
                - i64::from(wire.sent(HandshakeFlight::Server));
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
            text.label,
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
            let rate = site::PathRate::of(document, None);
            let answer = Answer {
                document,
                explained: Vec::new(),
                users: None,
                cells: vec![measured(document, rate.rate())],
                rate,
            };
            let arms = [Arm::from_str("x25519/rsa-2048").unwrap()];
            let question = questions(&answer, &arms, &[]).remove(0);
            question.line().join(" ")
        };
        let go = of("[1208, 2394, 560, 4766, 3332]");
        assert!(line(&go).contains(" --data 12157B --writes 1186B+2372B+538B+4744B+3310B --rtt "));
        let nginx = of("[4118]");
        assert!(line(&nginx).contains(" --data 12223B --writes 4096B --rtt "));
        let chain = chain("ecdsa-p256", 1500, 0);
        let arm = |document: &Document| {
            let explanation = explained(document, &chain, &[]).unwrap();
            arm(document, &chain, &explanation).unwrap().0.label
        };
        assert!(!arm(&nginx).contains("record_size"));
        assert!(arm(&of("[]")).contains("/record_size=4096"));
        assert!(response::otherwise(&nginx).is_empty());
        assert!(response::otherwise(&of("[]")).is_empty());
        // More than a record in a write.
        let head = of("[221, 40000]");
        assert!(!line(&head).contains("--writes"));
        assert!(
            response::otherwise(&head)
                .starts_with("response: this site's leaves in writes of 221, 40000 B;")
        );
    }

    #[test]
    fn the_command_has_the_path_s_window_response_and_segments() {
        let said = r#""chain": [], "rtt_ms": 50, "mss": 1400, "initial_window": 4,
            "response": {"status": 200, "wire_bytes": 1022, "first_record_wire_bytes": 1022}"#;
        let document = document(said);
        let rate = site::PathRate::of(&document, None);
        let cells = vec![measured(&document, rate.rate())];
        assert!(today(&document).is_none());
        let answer = Answer {
            document: &document,
            explained: Vec::new(),
            users: None,
            cells,
            rate,
        };
        let arms = ["x25519/rsa-2048", "x25519/ml-dsa-44"].map(|arm| Arm::from_str(arm).unwrap());
        let networks = [
            NamedNetwork::find("lte").unwrap(),
            NamedNetwork::find("geo").unwrap(),
        ];
        let [path, named] = <[Chains; 2]>::try_from(questions(&answer, &arms, &networks))
            .ok()
            .unwrap();
        let begins = "lastbyte compare --verbose --cpu none --chain-profile private --baseline x25519/rsa-2048 \
             --against x25519/ml-dsa-44 --connections 50 --initcwnd 4 --data 1000B --mtu 1452";
        assert_eq!(
            path.line().join(" "),
            format!("{begins} --rtt 50ms --rate 1gbit")
        );
        assert_eq!(named.line().join(" "), format!("{begins} --link lte,geo"));
        // Who types the line asks the same.
        for question in [path, named] {
            let typed = crate::Cli::try_parse_from(question.line()).unwrap();
            let crate::Command::Compare(typed) = typed.command else {
                panic!()
            };
            assert_eq!(format!("{:?}", question.question()), format!("{typed:?}"));
        }
    }
}
