//! How far a site is from its next edge, today and with other chains: by arithmetic.

use lastbyte::explain::{Explanation, Shown, Signature, explain_shown};
use lastbyte::study::{Arm, Cell, NamedNetwork, Parameter, StudyFolder};
use lastbyte_link::{Bytes, Direction, Link, Rate};
use lastbyte_probe::{Document, Edge};
use lastbyte_sizes::{KeyAlgorithm, framing};
use std::time::Duration;

/// What a site is asked about whoever asks.
pub(super) const USUAL: [KeyAlgorithm; 3] = [
    KeyAlgorithm::MlDsa44,
    KeyAlgorithm::MlDsa65,
    KeyAlgorithm::MlDsa87,
];
/// What a client connects with where that was not seen.
const GROUP: &str = "X25519MLKEM768";
/// The initial window that is supposed where it is not known.
const WINDOW: u32 = 10;

/// A chain in the place of the one that a site has.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// How it is called.
    pub(super) name: String,
    pub(super) shown: Shown,
}

/// The chain as it is.
pub(super) fn today(document: &Document) -> Option<Chain> {
    let leaf = document.chain.first()?;
    let around = framing::certificate_verify(0);
    let own = leaf.algorithm.parse::<KeyAlgorithm>().ok();
    let seen = document
        .certificate_verify_bytes
        .map(|bytes| (bytes as usize).saturating_sub(around));
    let bytes = seen
        .or(own.map(KeyAlgorithm::signature_bytes))
        .unwrap_or(leaf.key_bytes);
    let chain = document.chain.iter();
    Some(Chain {
        name: "today".to_owned(),
        shown: Shown {
            certificates: chain.clone().map(|certificate| certificate.bytes).collect(),
            signature: Signature {
                bytes,
                longest: bytes.max(own.map_or(0, KeyAlgorithm::longest_signature_bytes)),
            },
            server_name: server_name(document),
            provided: provided(chain.filter_map(|certificate| certificate.algorithm.parse().ok())),
        },
    })
}

/// The same names, extensions and number of certificates with other keys; none where the parts of a certificate are not
/// known.
pub(super) fn with(document: &Document, algorithm: KeyAlgorithm) -> Option<Chain> {
    let certificates = document.chain.iter();
    let certificates: Option<Vec<usize>> = certificates
        .map(|certificate| certificate.with(algorithm, algorithm))
        .collect();
    Some(Chain {
        name: algorithm.to_string(),
        shown: Shown {
            certificates: certificates.filter(|certificates| !certificates.is_empty())?,
            signature: Signature {
                bytes: algorithm.signature_bytes(),
                longest: algorithm.longest_signature_bytes(),
            },
            server_name: server_name(document),
            provided: provided([algorithm]),
        },
    })
}

fn server_name(document: &Document) -> usize {
    let name = document.host.rsplit_once(':').map_or("", |(name, _)| name);
    // An address is no name that could be asked for (RFC 6066, section 3).
    match name.trim_matches(['[', ']']).parse::<std::net::IpAddr>() {
        Ok(_) => 0,
        Err(_) => name.len(),
    }
}

fn provided(keys: impl IntoIterator<Item = KeyAlgorithm>) -> usize {
    let mut keys: Vec<KeyAlgorithm> = keys.into_iter().collect();
    keys.sort_unstable();
    keys.dedup();
    keys.iter().filter(|key| key.provided().is_some()).count()
}

/// The measured path, with the response that came.
pub(super) fn measured(document: &Document) -> Cell {
    let rtt = Duration::from_secs_f64(document.rtt_ms.unwrap_or_default() / 1e3);
    let rate = document
        .rate_mbit
        .and_then(|rate| Rate::from_bits_per_second((rate * 1e6) as u64));
    let link = Link::symmetric(
        rtt,
        Direction {
            rate,
            ..Direction::default()
        },
    );
    of(document, link, None)
}

/// One of the networks that have names.
pub(super) fn named(document: &Document, network: &NamedNetwork) -> Cell {
    let mut link = network.link();
    // What is luck is measured, not calculated.
    for way in [&mut link.forward, &mut link.backward] {
        (way.loss, way.jitter) = (lastbyte_link::Loss::NONE, Duration::ZERO);
    }
    of(document, link, Some(network.name.to_owned()))
}

fn of(document: &Document, link: Link, link_name: Option<String>) -> Cell {
    let response = document.response.as_ref();
    let mut cell = Cell {
        link,
        link_name,
        initcwnd: window(document),
        data: Bytes(response.map_or(0, |response| response.wire_bytes as u64)),
        ..Cell::default()
    };
    let mtu = document.mss.map(|mss| (mss + 52).to_string());
    if let Some(mtu) = mtu.filter(|mtu| mtu != "1500")
        && let Some(parameter) = Parameter::ALL
            .into_iter()
            .find(|parameter| parameter.name() == "mtu")
    {
        // One that can't be is not the path's.
        let _ = parameter.set(&mut cell, &mtu, &StudyFolder::HERE);
    }
    cell
}

/// The window that is calculated with: the smallest that was not ruled out.
pub(super) fn window(document: &Document) -> u32 {
    let seen = document
        .window
        .as_ref()
        .filter(|window| window.certainty != "uncertain");
    let known = document
        .initial_window
        .or(seen.map(|window| match window.certainty.as_str() {
            // The usual one, if it can be.
            "at-least" => window.least.max(WINDOW),
            _ => window.least,
        }));
    known.unwrap_or(WINDOW).clamp(1, 1000)
}

/// What arithmetic says of a chain over these cells.
pub(super) fn explained(document: &Document, chain: &Chain, cells: &[Cell]) -> Option<Explanation> {
    let group = document.group.as_deref().unwrap_or(GROUP);
    // Which server it is changes nothing: its name's length is in what is shown.
    let arm = |group: &str| format!("{group}/server.example:443").parse::<Arm>().ok();
    let arm = arm(group).or_else(|| arm(GROUP))?;
    explain_shown(&arm, &chain.shown, cells).ok()
}

/// Puts how far it is into a document.
pub(super) fn tell(document: &mut Document) {
    let alternatives = USUAL
        .into_iter()
        .filter_map(|algorithm| with(document, algorithm));
    let chains: Vec<Chain> = today(document).into_iter().chain(alternatives).collect();
    let cell = measured(document);
    document.edges = chains
        .iter()
        .filter_map(|chain| edge(document, chain, &cell))
        .collect();
}

/// How far one chain is from its edges.
pub(super) fn edge(document: &Document, chain: &Chain, cell: &Cell) -> Option<Edge> {
    let explanation = explained(document, chain, std::slice::from_ref(cell))?;
    let window = explanation.windows.first()?;
    let own = explanation.wire.server_flight_wire_bytes as usize;
    // What the server says besides, such as the protocol that it chose, arithmetic does not know.
    let seen = document.tls.server_flight_wire_bytes;
    let calculated = explained(document, &today(document)?, std::slice::from_ref(cell))
        .map_or(seen, |explained| {
            explained.wire.server_flight_wire_bytes as usize
        });
    let (more, less) = match seen {
        0 => (0, 0),
        seen => (
            seen.saturating_sub(calculated),
            calculated.saturating_sub(seen),
        ),
    };
    let left = window
        .edges
        .above
        .map(|edge| edge.certificate_distance + less);
    let is_over = left.is_some_and(|left| left < more);
    Some(Edge {
        chain: chain.name.clone(),
        certificate_bytes: framing::certificate_message(chain.shown.certificates.iter().copied()),
        server_flight_wire_bytes: (own + more).saturating_sub(less),
        flights: window.edges.flights + usize::from(is_over),
        left: left
            .map(|left| left.saturating_sub(more))
            .filter(|_| !is_over),
        over: window
            .edges
            .below
            .map(|edge| (edge.certificate_distance + more).saturating_sub(less)),
        larger_window: window.larger_window,
    })
}
