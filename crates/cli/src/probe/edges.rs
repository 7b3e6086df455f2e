//! How far a site is from its next edge, today and with other chains: by arithmetic.

use lastbyte::explain::{Explanation, Shown, explain_shown};
use lastbyte::study::{Arm, ArmError, Cell, NamedNetwork, Parameter, StudyFolder};
use lastbyte_link::{Bytes, Direction, Link, Rate};
use lastbyte_probe::{Document, Edge};
use lastbyte_sizes::{Group, KeyAlgorithm, Message};
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
    /// How it comes, as an arm says it; empty is whole.
    pub(super) way: String,
}

impl Chain {
    /// The same, coming so.
    pub(super) fn delivered(&self, way: &str) -> Chain {
        let name = match way.is_empty() {
            true => self.name.clone(),
            false => format!("{}/{way}", self.name),
        };
        Chain {
            name,
            way: way.to_owned(),
            shown: self.shown.clone(),
        }
    }
}

/// The chain as it is.
pub(super) fn today(document: &Document) -> Option<Chain> {
    Some(Chain {
        name: "today".to_owned(),
        shown: Shown::seen(document)?,
        way: String::new(),
    })
}

/// The same names, extensions and number of certificates with other keys; none where the parts of a certificate are not
/// known.
pub(super) fn with(document: &Document, algorithm: KeyAlgorithm) -> Option<Chain> {
    Some(Chain {
        name: algorithm.to_string(),
        shown: Shown::supposed(document, algorithm)?,
        way: String::new(),
    })
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

/// An arm of some server whose chain comes so; with a group that is not known here, of the usual one. Which server it is
/// changes nothing: its name's length is in what is shown.
pub(super) fn arm(group: Option<&str>, way: &str) -> Result<Arm, ArmError> {
    let way = if way.is_empty() {
        String::new()
    } else {
        format!("/{way}")
    };
    let of = |group: &str| format!("{group}/server.example:443{way}").parse::<Arm>();
    match group.filter(|group| group.parse::<Group>().is_ok()) {
        Some(group) => of(group),
        None => of(GROUP),
    }
}

/// What arithmetic says of a chain over these cells.
pub(super) fn explained(document: &Document, chain: &Chain, cells: &[Cell]) -> Option<Explanation> {
    try_explained(document, chain, cells).ok()
}

/// The same, or why there is no arithmetic of it.
pub(super) fn try_explained(
    document: &Document,
    chain: &Chain,
    cells: &[Cell],
) -> Result<Explanation, String> {
    let arm =
        arm(document.group.as_deref(), &chain.way).map_err(|error| error.problem.to_string())?;
    explain_shown(&arm, &chain.shown, cells).map_err(|unknown| unknown.what)
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
        certificate_bytes: explanation.wire.bytes(Message::Certificate) as usize,
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
