//! The same site with other chains: what changes for its users.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use lastbyte::explain::{self, Explanation, OwnChain, USUAL_GROUP, response};
use lastbyte::reduce::{Reduction, Subject};
use lastbyte::report::thresholds::{NOTHING_MS, WORTH_MS};
use lastbyte::study::{Arm, ArmChain, Cell, NamedNetwork, NoKeys, Said};
use lastbyte_link::{Rate, counted, visible};
use lastbyte_pki::PemFiles;
use lastbyte_probe::{Document, Edge, Left};
use lastbyte_sizes::{Group, KeyAlgorithm, Keys, Message};

use super::edges::{self, Chain, PathRate, TODAY};
use super::lead::{lead, supposed};
use super::told;
use super::users::{Felt, Users};
use super::{Failure, network};
use crate::own;

/// What is supposed.
#[derive(Debug, Args)]
pub(super) struct WhatIf {
    /// The same names, extensions and number of certificates under other keys: ml-dsa-44,ml-dsa-65, LEAF+CA or
    /// LEAF+CA+ROOT for keys of several kinds, or today's; with /intermediates=N, fewer certificates; with /group=NAME,
    /// another key exchange; with /delivery=NAME as of arms, another way in which they come, or all with /delivery=all
    #[arg(
        long,
        value_name = "KEYS|today[/intermediates=N][/group=NAME][/delivery=NAME...]",
        value_delimiter = ','
    )]
    what_if: Vec<Other>,
    /// The chain of a PEM file in its place
    #[arg(long, value_name = "FILE.pem")]
    what_if_pem: Vec<PathBuf>,
    /// Over networks by name, besides the path that was measured
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = network)]
    networks: Vec<&'static NamedNetwork>,
    /// Over the paths of a population of users besides: a FILE.toml with [population], a table of RTTs (CSV, Parquet), or
    /// example, what lastbyte plan takes for granted
    #[arg(long, value_name = "NAME|FILE")]
    population: Option<Users>,
    /// What the measured path carries from the server [default: what was seen; where that was nothing, 1gbit]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Measure it besides, with the virtual engine
    #[arg(long)]
    measure: bool,
}

/// A chain that is supposed.
#[derive(Clone, Debug)]
struct Other {
    /// Other keys than today's.
    keys: Option<Keys>,
    intermediates: Option<usize>,
    group: Option<Group>,
    ways: Ways,
}

/// How it comes.
#[derive(Clone, Debug)]
enum Ways {
    /// As an arm says it: `delivery=elide/signal=trust-anchors`; whole, where nothing is said.
    One(Said),
    /// In every way to send less that there is.
    All,
}

const INTERMEDIATES: &str = "intermediates=";
const GROUP: &str = "group=";
const ALL: &str = "delivery=all";

impl FromStr for Other {
    type Err = String;

    fn from_str(text: &str) -> Result<Other, String> {
        let (key, rest) = text.split_once('/').unwrap_or((text, ""));
        let keys = match key {
            TODAY => None,
            _ => Some(keys(key)?),
        };
        let mut intermediates = None;
        let mut group = None;
        let mut said = Vec::new();
        let twice = |word: &str| Err(format!("{word:?}: that is given twice"));
        for word in rest.split('/').filter(|word| !word.is_empty()) {
            if let Some(count) = word.strip_prefix(INTERMEDIATES) {
                if intermediates.is_some() {
                    return twice(word);
                }
                intermediates = Some(count.parse().map_err(|_| {
                    format!("{count:?} is no number of intermediates: write one such as 0")
                })?);
            } else if let Some(name) = word.strip_prefix(GROUP) {
                if group.is_some() {
                    return twice(word);
                }
                group = Some(name.parse::<Group>().map_err(|error| error.to_string())?);
            } else {
                said.push(word);
            }
        }
        let ways = match said.as_slice() {
            [ALL] => Ways::All,
            said => Ways::One(way_of(&said.join("/"))?),
        };
        Ok(Other {
            keys,
            intermediates,
            group,
            ways,
        })
    }
}

/// Keys as an arm says them: `LEAF`, `LEAF+CA` or `LEAF+CA+ROOT`.
fn keys(text: &str) -> Result<Keys, String> {
    // What is but one algorithm has the shorter answer.
    let first = text.split('+').next().unwrap_or(text);
    let first = (first.parse::<KeyAlgorithm>()).map_err(|error| error.to_string())?;
    if !text.contains('+') {
        return Ok(first.into());
    }
    let arm = Arm::of_chain(USUAL_GROUP, text).map_err(|error| error.problem.to_string())?;
    match &arm.chain {
        ArmChain::Made(spec) if !text.contains(':') => Ok(spec.into()),
        _ => Err(format!(
            "{text:?} is no chain's keys: write an algorithm, LEAF+CA or LEAF+CA+ROOT"
        )),
    }
}

/// How a chain comes, as somebody has written it.
fn way_of(text: &str) -> Result<Said, String> {
    let way = Said::keys_of(text).map_err(|error| match error {
        NoKeys::Word(word) => not_of_a_way(&word),
        NoKeys::Keys(problem) => problem.to_string(),
    })?;
    check(&way).map(|()| way)
}

/// Whether an arm would take it, and it is of nothing but how a chain comes.
fn check(way: &Said) -> Result<(), String> {
    edges::arm(USUAL_GROUP, way).map_err(|problem| problem.to_string())?;
    // What says how a delivery goes is nothing without it.
    let is_of_others = |(key, value): &(&str, &str)| {
        let alone = Said::of_keys(&[(key, value)]);
        *key != "delivery" && alone.is_ok_and(|alone| edges::arm(USUAL_GROUP, &alone).is_ok())
    };
    match way.pairs().find(is_of_others) {
        None => Ok(()),
        Some((key, value)) => Err(not_of_a_way(&format!("{key}={value}"))),
    }
}

fn not_of_a_way(word: &str) -> String {
    format!(
        "{word:?} is not of how a chain comes: write delivery=elide, or another delivery of docs/arms.md, or {ALL}"
    )
}

impl Other {
    /// What it is, if arithmetic goes so far; where every way was asked for, the others are lines in `notes`.
    fn chains(&self, document: &Document, notes: &mut Vec<String>) -> Result<Vec<Chain>, Failure> {
        let mut chain = match self.keys {
            None => edges::today(document),
            Some(keys) => edges::with(document, keys),
        }
        .ok_or_else(|| {
            Failure::Usage(
                "the probe does not say what its certificates consist of: probe again".to_owned(),
            )
        })?;
        if let Some(count) = self.intermediates {
            let has = chain.shown.certificates.len().saturating_sub(1);
            if count > has {
                return Err(Failure::Usage(format!(
                    "--what-if {}/{INTERMEDIATES}{count}: the chain has {has}",
                    chain.name
                )));
            }
            chain.shown.certificates.truncate(count + 1);
            // That was of all of them.
            chain.shown.brotli = chain.shown.brotli.filter(|_| count == has);
            chain.name = format!("{}/{INTERMEDIATES}{count}", chain.name);
        }
        if let Some(group) = self.group {
            chain.group = Some(group).filter(|supposed| *supposed != explain::group(document));
            chain.name = format!("{}/{GROUP}{group}", chain.name);
        }
        match &self.ways {
            Ways::One(way) => {
                let chain = chain.delivered(way);
                edges::try_explained(document, &chain, &[]).map_err(|problem| {
                    Failure::Usage(format!("--what-if {}: {problem}", chain.name))
                })?;
                Ok(vec![chain])
            }
            Ways::All => {
                let mut chains = vec![chain.clone()];
                for reduction in Reduction::ALL {
                    let of_chain = reduction.subject == Subject::Chain;
                    let Some(way) = of_chain.then(|| way(document, reduction)).flatten() else {
                        continue;
                    };
                    let chain = chain.delivered(&way);
                    match edges::try_explained(document, &chain, &[]) {
                        Ok(_) => chains.push(chain),
                        Err(problem) => notes.push(format!("{}: {problem}", chain.name)),
                    }
                }
                Ok(chains)
            }
        }
    }
}

/// What an arm says of this way to send less, but for the stack; none where it changes what the chain holds.
fn way(document: &Document, reduction: &Reduction) -> Option<Said> {
    let whole = edges::arm(explain::group(document), &Said::default()).ok()?;
    let less = reduction.apply(&whole).ok()?;
    let way = less.said_unlike(&whole).without(&["hello"]);
    check(&way).ok().map(|()| way)
}

impl WhatIf {
    pub(super) fn is_asked(&self) -> bool {
        !self.what_if.is_empty() || !self.what_if_pem.is_empty()
    }

    /// Before anything is sent.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let needs = |what: &str| {
            Err(Failure::Usage(format!(
                "{what} has nothing to compare: suppose a chain with --what-if ml-dsa-44,ml-dsa-65"
            )))
        };
        match self.is_asked() {
            false if self.measure => needs("--measure"),
            false if !self.networks.is_empty() => needs("--networks"),
            false if self.population.is_some() => needs("--population"),
            false if self.rate.is_some() => needs("--rate"),
            true if self.measure && self.population.is_some() => Err(Failure::Usage(
                "--population is arithmetic alone, and --measure has paths and networks: leave one of both out, or measure a \
                 study with that [population] (docs/study.md)"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// The chain as it is, and those that are supposed: none if none are. What can't be told is a line in `notes`.
    pub(super) fn chains(
        &self,
        document: &Document,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Chain>, Failure> {
        if !self.is_asked() {
            return Ok(Vec::new());
        }
        let Some(today) = edges::today(document) else {
            return Err(Failure::Run(
                "no chain was seen that another one could be compared with".to_owned(),
            ));
        };
        let mut chains = vec![today];
        for other in &self.what_if {
            for chain in other.chains(document, notes)? {
                if chains.iter().all(|known| known.name != chain.name) {
                    chains.push(chain);
                }
            }
        }
        for file in &self.what_if_pem {
            chains.push(from_file(file, &chains)?);
        }
        Ok(chains)
    }

    /// What arithmetic says of them.
    pub(super) fn answer<'a>(&'a self, document: &'a Document, chains: &'a [Chain]) -> Answer<'a> {
        let networks = self.networks.iter();
        let rate = PathRate::of(document, self.rate);
        let cells: Vec<Cell> = std::iter::once(edges::measured(document, rate.rate()))
            .chain(networks.map(|network| edges::named(document, network)))
            .collect();
        let explained = chains
            .iter()
            .filter_map(|chain| Some((chain, edges::explained(document, chain, &cells)?)));
        let explained: Vec<_> = explained.collect();
        let users = self.population.as_ref().zip(cells.first());
        let users = users.map(|(users, path)| (users, users.felt(path, &explained)));
        Answer {
            document,
            explained,
            users,
            cells,
            rate,
        }
    }

    /// The networks by name over which they are measured besides the path, if that was asked for.
    pub(super) fn measured_over(&self) -> Option<&[&'static NamedNetwork]> {
        self.measure.then_some(self.networks.as_slice())
    }
}

/// What arithmetic says of chains over some networks.
pub(super) struct Answer<'a> {
    pub(super) document: &'a Document,
    pub(super) explained: Vec<(&'a Chain, Explanation)>,
    /// A population, if one was asked for, and what each of the chains is to it.
    pub(super) users: Option<(&'a Users, Vec<Felt>)>,
    /// The measured path, and networks by name.
    pub(super) cells: Vec<Cell>,
    /// Of the measured path.
    pub(super) rate: PathRate,
}

impl Answer<'_> {
    /// What is read first: a sentence of each chain that was asked for; where none was, of those that everybody asks for.
    pub(super) fn lead(&self) -> String {
        match self.explained.is_empty() {
            true => lead(self.document),
            false => {
                let conclusions = conclusions(self.document, &self.explained);
                format!("{conclusions}{}\n", supposed(self.document))
            }
        }
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        match self.explained.is_empty() {
            true => String::new(),
            false => table(self),
        }
    }

    /// The probe's document, with the answer in it if there is one.
    pub(super) fn json(&self) -> String {
        let Ok(serde_json::Value::Object(mut document)) = serde_json::to_value(self.document)
        else {
            return self.document.write();
        };
        if !self.explained.is_empty() {
            document.insert("what_if".to_owned(), json(self));
            let notes = document
                .get_mut("notes")
                .and_then(|notes| notes.as_array_mut());
            let otherwise = sends_otherwise(self).map(serde_json::Value::from);
            // An earlier answer may have it already.
            if let (Some(notes), Some(otherwise)) = (notes, otherwise)
                && !notes.contains(&otherwise)
            {
                notes.push(otherwise);
            }
        }
        // All of it is numbers and texts.
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }
}

/// The chain of a file, whatever its key.
fn from_file(file: &Path, before: &[Chain]) -> Result<Chain, Failure> {
    let files = PemFiles::new(file.to_owned());
    let chain = own::store()?.public(&files).map_err(Failure::usage)?;
    let own = own::shown(&chain)?;
    let today = before.first().map(|today| today.shown.clone());
    let today = today.unwrap_or_default();
    Ok(Chain {
        name: file.display().to_string(),
        keys: None,
        group: None,
        way: Said::default(),
        shown: OwnChain {
            certificates: own.certificates,
            // Of a key like the one that the site has, the signature that was seen: ECDSA's differ by a byte or two.
            signature: match today.signature.longest == own.signature.longest {
                true => today.signature,
                false => own.signature,
            },
            provided: own.provided,
            alike: None,
            brotli: None,
            ..today
        },
    })
}

/// Handshake, first and last byte.
type Times = [Option<Duration>; 3];

/// Those of a chain in one cell, as far as they are modelled.
fn times(explanation: &Explanation, cell: usize) -> Times {
    let Some((_, timeline)) = explanation.times.get(cell) else {
        return Times::default();
    };
    let times = [Some(timeline.handshake), timeline.ttfb, Some(timeline.ttlb)];
    times.map(|time| timeline.modelled(time?))
}

/// Why there are times that are not modelled, by network.
fn limits(explained: &[(&Chain, Explanation)]) -> String {
    let cells = explained.iter().flat_map(|(_, arm)| &arm.times);
    let mut lines: Vec<String> = Vec::new();
    for (cell, times) in cells {
        if let Some(reason) = times.beyond(times.ttlb) {
            let line = format!(
                "times that are missing over {} are not by arithmetic: {reason}\n",
                name(cell)
            );
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines.concat()
}

fn name(cell: &Cell) -> String {
    let network = cell.link_name.clone();
    network.unwrap_or_else(|| "the measured path".to_owned())
}

fn table(answer: &Answer<'_>) -> String {
    let Answer {
        document,
        explained,
        users,
        cells,
        rate,
    } = answer;
    // A name can be long, and columns stay below each other.
    let names = explained.iter().map(|(chain, _)| visible(&chain.name));
    let width = names.map(|name| name.chars().count()).fold(28, usize::max);
    let mut text = format!(
        "\n{:<width$} {:>11} {:>11} {:>7}  {:<20} {:>10} {:>10} {:>10}\n",
        "chain",
        "Certificate",
        "on the wire",
        "flights",
        "network",
        "handshake",
        "first byte",
        "last byte"
    );
    for (number, (chain, explanation)) in explained.iter().enumerate() {
        let edge = edges::edge_of(document, chain, explanation).unwrap_or_default();
        for (index, cell) in cells.iter().enumerate() {
            let own = times(explanation, index);
            let today = explained.first().map(|(_, today)| times(today, index));
            let columns = own.iter().zip(today.unwrap_or_default());
            let columns = columns.map(|(own, today)| told::later(*own, today));
            let columns: Vec<String> = columns.collect();
            let head = match index {
                0 => format!(
                    "{:<width$} {:>11} {:>11} {:>7}",
                    visible(&chain.name),
                    edge.certificate_bytes,
                    edge.server_flight_wire_bytes,
                    edge.flights
                ),
                _ => " ".repeat(width + 32),
            };
            text += &format!("{head}  {:<20} {}\n", name(cell), columns.join(" "));
        }
        if let (Some(over), true) = (edge.over, number > 0) {
            text += &format!("{:<width$} cut {over} B of it to save a flight\n", "");
        }
    }
    text += "by arithmetic, without loss, jitter and computing: every percentile is the same; --measure has networks with their luck\n";
    text += &limits(explained);
    if let PathRate::Supposed(rate) = rate {
        let least = document.path.rate_at_least_mbit;
        let least = least.map_or_else(String::new, |least| {
            format!(", only {least:.1} Mbit/s at least")
        });
        text += &format!(
            "the measured path is supposed to carry {rate}: what it does was not seen{least}; say it with --rate\n"
        );
    }
    text += &response::supposed(document);
    if let Some(otherwise) = sends_otherwise(answer) {
        text += &format!("{otherwise}\n");
    }
    let mut others = explained.iter().skip(1);
    if others.any(|(chain, explanation)| is_at_most(document, chain, explanation)) {
        text += "flights are at least that: this server writes its handshake in pieces, and where those of another chain would end is not known\n";
    }
    let users = users.iter();
    let users = users.map(|(users, felt)| users.table(explained, felt));
    text + &users.collect::<String>()
}

/// What it comes to over the measured path: a sentence of each chain that is supposed.
fn conclusions(document: &Document, explained: &[(&Chain, Explanation)]) -> String {
    let Some((first, others)) = explained.split_first() else {
        return String::new();
    };
    let of = |(chain, explanation): &(&Chain, Explanation)| {
        let edge = edges::edge_of(document, chain, explanation).unwrap_or_default();
        (edge, times(explanation, 0))
    };
    let today = of(first);
    let sentences = others.iter().map(|other| {
        let supposed = of(other);
        format!(
            "{}: {}\n",
            visible(&other.0.name),
            conclusion(&today, &supposed)
        )
    });
    sentences.collect()
}

/// How a chain differs from today's, and why.
fn conclusion((today, before): &(Edge, Times), (edge, after): &(Edge, Times)) -> String {
    let flights = match edge.flights.cmp(&today.flights) {
        Ordering::Equal => "as many flights".to_owned(),
        Ordering::Greater => format!("{} more", counted(edge.flights - today.flights, "flight")),
        Ordering::Less => format!("{} less", counted(today.flights - edge.flights, "flight")),
    };
    let [handshake, first, last] = [0, 1, 2].map(|of| later_by(before[of], after[of]));
    let mut text = flights;
    let (what, begins) = match first {
        Some(_) => ("first byte", first),
        None => ("handshake", handshake),
    };
    if let Some(begins) = begins {
        text += &format!(", the {what} {}", in_words(begins));
    }
    if let Some(last) = last.filter(|last| begins.map(in_words) != Some(in_words(*last))) {
        text += &format!(", the last byte {}", in_words(last));
    }
    // Each segment of a handshake that is acknowledged lets the response have another one.
    let is_larger = edge.server_flight_wire_bytes > today.server_flight_wire_bytes;
    let gained = |time: Option<f64>| Some(handshake? - time?).filter(|ms| *ms >= WORTH_MS);
    let gained = [("first", gained(first)), ("last", gained(last))];
    let gained = gained
        .into_iter()
        .filter_map(|(which, ms)| Some((which, ms?)));
    let gained = gained.map(|(which, ms)| format!("the {which} byte by {ms:.1} ms"));
    let gained = gained.collect::<Vec<_>>().join(", ");
    if is_larger && !gained.is_empty() {
        text += &format!(
            ": the larger handshake has opened the window further, which brings forward {gained}"
        );
    }
    text
}

/// Milliseconds; below 0 is sooner.
fn later_by(before: Option<Duration>, after: Option<Duration>) -> Option<f64> {
    Some((after?.as_secs_f64() - before?.as_secs_f64()) * 1e3)
}

fn in_words(ms: f64) -> String {
    match ms {
        ms if ms.abs() < NOTHING_MS => "at the same time".to_owned(),
        ms if ms > 0.0 => format!("{ms:.1} ms later"),
        ms => format!("{:.1} ms sooner", -ms),
    }
}

/// Whether more flights can be needed than are told, as nobody knows where writes would end.
fn is_at_most(document: &Document, chain: &Chain, explanation: &Explanation) -> bool {
    let edge = edges::edge_of(document, chain, explanation);
    let is_in_pieces = (document.tls.writes.as_ref())
        .is_some_and(|writes| !writes.first.is_empty() || !writes.is_certain);
    is_in_pieces && edge.is_some_and(|edge| edge.left_is == Some(Left::AtMost))
}

/// That the server sends otherwise than is supposed, where that was seen. BBR's window grows while it is not full, too, and has
/// already what a larger handshake would bring; with Nagle's algorithm or a small send buffer, writes wait.
fn sends_otherwise(answer: &Answer<'_>) -> Option<String> {
    let document = answer.document;
    let (_, today) = answer.explained.first()?;
    let [handshake, first, last] = times(today, 0).map(|time| Some(time?.as_secs_f64() * 1e3));
    // Of shorter ones, computing is a part that counts.
    let half = document.rtt_ms.filter(|rtt| *rtt >= 1.0)? / 2.0;
    let first_seen = document.times.first_byte_ms?;
    let begins = (
        first? - handshake?,
        first_seen - told::handshake_ms(document)?,
    );
    let ends = (last? - first?, document.times.last_byte_ms? - first_seen);
    let is_paced = document.window.as_ref().is_some_and(|window| window.paced);
    let seen = |what: &str, after: &str, (supposed, seen): (f64, f64)| {
        format!(
            "the {what} was seen {seen:.1} ms after the {after}, and arithmetic has it {supposed:.1} ms after it: this server"
        )
    };
    let what = match is_paced {
        // It may think before it answers, so later says nothing.
        _ if begins.1 + half < begins.0 => seen("first byte", "handshake", begins),
        _ if (ends.1 - ends.0).abs() > half => seen("last byte", "first one", ends),
        true => "this server paces what it sends, as BBR does: it".to_owned(),
        false => return None,
    };
    Some(format!(
        "{what} may send otherwise than is supposed here, and what is told of windows and flights is as unsure with other chains"
    ))
}

fn json(answer: &Answer<'_>) -> serde_json::Value {
    let Answer {
        explained,
        users,
        cells,
        ..
    } = answer;
    let chains = explained
        .iter()
        .enumerate()
        .map(|(number, (chain, explanation))| {
            let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
            let networks = cells.iter().enumerate().map(|(index, cell)| {
                let [handshake, first, last] = times(explanation, index);
                let rate = cell.link.backward.rate;
                serde_json::json!({
                    "network": name(cell),
                    "rate_mbit": rate.map(|rate| rate.bits_per_second() as f64 / 1e6),
                    "rate_from": match cell.link_name {
                        None => answer.rate.name(),
                        Some(_) => "network",
                    },
                    "handshake_ms": ms(handshake),
                    "first_byte_ms": ms(first),
                    "last_byte_ms": ms(last),
                })
            });
            let edge = edges::edge_of(answer.document, chain, explanation).unwrap_or_default();
            let mut told = serde_json::json!({
                "chain": chain.name,
                "certificates": chain.shown.certificates,
                "certificate_bytes": explanation.exchange.bytes(Message::Certificate),
                "server_flight_wire_bytes": edge.server_flight_wire_bytes,
                "flights": edge.flights,
                "left": edge.left,
                "left_is": edge.left_is,
                "over": edge.over,
                "times": networks.collect::<Vec<_>>(),
            });
            let felt = (users.as_ref()).and_then(|(users, felt)| Some((users, felt.get(number)?)));
            if let (Some((users, felt)), Some(told)) = (felt, told.as_object_mut()) {
                told.insert("users".to_owned(), users.json(felt));
            }
            told
        });
    chains.collect()
}
