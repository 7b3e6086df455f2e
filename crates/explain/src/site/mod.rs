//! A live site, as a probe saw it: how far it is from its next edge, today and with other chains, and what they
//! change for its users. By arithmetic.

mod quic;
mod users;

pub use quic::{add_quic_edges, of_today_over_quic};
pub use users::{OF_PATHS, PERCENTILES, USERS, UserTimes, Users};

use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_link::{Direction, Link, Rate};
use lastbyte_probe::{Document, Edge, Left};
use lastbyte_sizes::{Group, Keys, Message, PemFiles};
use lastbyte_study::{
    Arm, ArmChain, ArmProblem, Cell, NamedNetwork, Parameter, Settings, StudyFolder,
};

use crate::{
    Explanation, OwnChain, SUPPOSED, explain_own, group, initial_window, payload, response,
    retried, supposed_rate,
};

/// What the chain that a site has is called.
pub const TODAY: &str = "today";

/// The same where the site has no TLS 1.3 today.
const IN_TLS_1_3: &str = "today, in TLS 1.3";
const TLS_1_3: &str = "TLSv1.3";

/// A chain in the place of the one that a site has.
#[derive(Clone, Debug)]
pub struct Chain {
    /// How it is called.
    pub name: String,
    /// What it shows.
    pub shown: OwnChain,
    /// The keys that are supposed; none of those that it has.
    pub keys: Option<Keys>,
    /// The key exchange that is supposed in the place of the one that was seen.
    pub group: Option<Group>,
    /// How it comes, as an arm says it; whole, where nothing is said.
    pub way: Settings,
}

impl Chain {
    /// The same, coming so.
    pub fn delivered(&self, way: &Settings) -> Chain {
        let name = if way.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{way}", self.name)
        };
        Chain {
            name,
            way: way.clone(),
            ..self.clone()
        }
    }

    /// What is connected with.
    pub fn group(&self, document: &Document) -> Group {
        self.group.unwrap_or_else(|| group(document))
    }

    /// The arm of a client that does, with a HelloRetryRequest where the server sent one for the same group.
    pub fn connecting(&self, document: &Document, arm: Arm) -> Arm {
        match self.group {
            None => retried(document, arm),
            Some(_) => arm,
        }
    }
}

/// The chain as it is. All arithmetic is of TLS 1.3, so of a server that has not that, it is of what would be.
pub fn today(document: &Document) -> Option<Chain> {
    let has_it = document.tls.version.is_empty() || document.tls.version == TLS_1_3;
    Some(Chain {
        name: if has_it { TODAY } else { IN_TLS_1_3 }.to_owned(),
        shown: OwnChain::seen(document)?,
        keys: None,
        group: None,
        way: Settings::default(),
    })
}

/// The same names, extensions and number of certificates with other keys; none where the parts of a certificate are not
/// known.
pub fn with(document: &Document, keys: impl Into<Keys>) -> Option<Chain> {
    let keys = keys.into();
    Some(Chain {
        name: keys.to_string(),
        shown: OwnChain::supposed(document, keys)?,
        keys: Some(keys),
        group: None,
        way: Settings::default(),
    })
}

/// The measured path, which carries so much, with the response that came.
pub fn measured(document: &Document, rate: Rate) -> Cell {
    let rtt = Duration::from_secs_f64(document.rtt_ms.unwrap_or_default() / 1e3);
    let link = Link::symmetric(
        rtt,
        Direction {
            rate: Some(rate),
            ..Direction::default()
        },
    );
    of(document, link, None)
}

/// What the measured path carries, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRate {
    /// A probe saw it.
    Seen(Rate),
    /// Who asks gives it.
    Given(Rate),
    /// Nobody: nothing was seen to limit it.
    Supposed(Rate),
}

impl PathRate {
    /// What is given, else what was seen, else what is supposed.
    pub fn of(document: &Document, given: Option<Rate>) -> PathRate {
        let rate = |mbit: f64| Rate::from_bits_per_second((mbit * 1e6) as u64).unwrap_or(Rate::MIN);
        match (given, document.rate_mbit) {
            (Some(given), _) => PathRate::Given(given),
            (None, Some(seen)) => PathRate::Seen(rate(seen)),
            (None, None) => PathRate::Supposed(rate(supposed_rate(document))),
        }
    }

    /// Whoever says so.
    pub fn rate(self) -> Rate {
        match self {
            PathRate::Seen(rate) | PathRate::Given(rate) | PathRate::Supposed(rate) => rate,
        }
    }

    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            PathRate::Seen(_) => "seen",
            PathRate::Given(_) => "asked",
            PathRate::Supposed(_) => "supposed",
        }
    }
}

/// One of the networks that have names.
pub fn named(document: &Document, network: &NamedNetwork) -> Cell {
    let link = network.link().without_luck();
    of(document, link, Some(network.name.to_owned()))
}

fn of(document: &Document, link: Link, link_name: Option<String>) -> Cell {
    let mut cell = Cell {
        link,
        link_name,
        initcwnd: window(document),
        ..Cell::default()
    };
    let mtu = document.mss.map(|mss| (mss + 52).to_string());
    if let Some(mtu) = mtu.filter(|mtu| mtu != "1500") {
        // One that can't be is not the path's.
        let _ = Parameter::MTU.set(&mut cell, &mtu, &StudyFolder::HERE);
    }
    cell.data = payload(document, cell.hosts.mss()).unwrap_or_default();
    cell
}

/// The window that is calculated with: the smallest that was not ruled out.
pub fn window(document: &Document) -> u32 {
    initial_window(document).clamp(1, 1000)
}

/// What an arm says besides where the server sent a HelloRetryRequest; none where it did not.
pub fn key_share(document: &Document, chain: &Chain) -> Option<(&'static str, String)> {
    let arm = arm(chain.group(document), &Settings::default());
    let arm = arm.map(|arm| chain.connecting(document, arm));
    let share = arm.ok().and_then(|arm| arm.key_shares.first().copied());
    let share = share.filter(|_| document.tls.hello_retry)?;
    Some(("key_share", share.to_string()))
}

/// An arm of some server whose chain comes so. Which server it is changes nothing: its name's length is in what is shown.
///
/// # Errors
///
/// When no chain of a server can come so.
pub fn arm(group: Group, way: &Settings) -> Result<Arm, ArmProblem> {
    let server = ArmChain::Pem(PemFiles::new("server.example:443"));
    Arm::of_settings(group, server, way)
}

/// What arithmetic says of a chain over these cells.
pub fn explained(document: &Document, chain: &Chain, cells: &[Cell]) -> Option<Explanation> {
    try_explained(document, chain, cells).ok()
}

/// The same.
///
/// # Errors
///
/// Why there is no arithmetic of it.
pub fn try_explained(
    document: &Document,
    chain: &Chain,
    cells: &[Cell],
) -> Result<Explanation, String> {
    let arm = arm(chain.group(document), &chain.way).map_err(|problem| problem.to_string())?;
    let arm = response::answering(document, chain.connecting(document, arm));
    explain_own(&arm, &chain.shown, cells).map_err(|unknown| unknown.what)
}

/// The chain as it is, and those that are supposed of whatever server.
fn chains(document: &Document) -> Vec<Chain> {
    let alternatives = SUPPOSED
        .into_iter()
        .filter_map(|algorithm| with(document, algorithm));
    today(document).into_iter().chain(alternatives).collect()
}

/// Puts how far it is into a document.
pub fn add_edges(document: &mut Document) {
    let chains = chains(document);
    let cell = measured(document, PathRate::of(document, None).rate());
    document.edges = chains
        .iter()
        .filter_map(|chain| edge(document, chain, &cell))
        .filter(Edge::is_in_bounds)
        .collect();
}

/// How far the chain that a site has is from its edges, in the handshake that it has.
pub fn of_today(document: &Document) -> Option<&Edge> {
    document.edges.first().filter(|edge| edge.chain == TODAY)
}

/// How far one chain is from its edges.
fn edge(document: &Document, chain: &Chain, cell: &Cell) -> Option<Edge> {
    let explanation = explained(document, chain, std::slice::from_ref(cell))?;
    edge_of(document, chain, &explanation)
}

/// The same, by what arithmetic says of it: with the window and the segments of its first cell.
pub fn edge_of(document: &Document, chain: &Chain, explanation: &Explanation) -> Option<Edge> {
    let window = explanation.windows.first()?;
    Some(Edge {
        chain: chain.name.clone(),
        certificate_bytes: explanation.exchange.bytes(Message::Certificate) as usize,
        server_flight_wire_bytes: explanation.exchange.carried(HandshakeFlight::Server) as usize,
        flights: window.edges.flights,
        left: window.edges.above.map(|edge| edge.certificate_distance),
        left_is: window
            .edges
            .above
            .map(|_| match (&document.tls.writes, chain.name.as_str()) {
                (Some(writes), _) if writes.first.is_empty() && writes.is_certain => Left::Exact,
                (Some(writes), TODAY) if writes.is_certain => Left::Exact,
                _ => Left::AtMost,
            }),
        over: window.edges.below.map(|edge| edge.certificate_distance),
        larger_window: window.larger_window.map(|window| window.at_once),
    })
}

/// A chain of one certificate of so many bytes.
#[cfg(any(test, feature = "fixtures"))]
pub fn one_certificate(name: &str, bytes: usize) -> Chain {
    use lastbyte_sizes::KeyAlgorithm;
    Chain {
        name: name.to_owned(),
        keys: name.parse::<KeyAlgorithm>().ok().map(Keys::from),
        group: None,
        way: Settings::default(),
        shown: OwnChain {
            certificates: vec![bytes],
            signature: KeyAlgorithm::EcdsaP256.into(),
            ..OwnChain::default()
        },
    }
}
