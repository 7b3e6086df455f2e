//! The same site with other chains: what changes for its users.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use lastbyte::explain::site::{self, Chain, PathRate, TODAY, Users};
use lastbyte::explain::{self, OwnChain, USUAL_GROUP};
use lastbyte::reduce::{Reduction, Subject};
use lastbyte::report::site::Answer;
use lastbyte::study::{
    Arm, ArmChain, Cell, NamedNetwork, NoKeys, Parameter, Settings, StudyFolder, Traffic,
};
use lastbyte_link::Rate;
use lastbyte_pki::PemFiles;
use lastbyte_probe::Document;
use lastbyte_sizes::{Group, KeyAlgorithm, Keys};

use super::{Failure, network};
use crate::options::traffic;
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
    /// With what this traffic's connections carry, in place of the response that was seen: web, mobile-web, social, cloud-api,
    /// video, updates, iot or mesh, or a FILE.toml of your own; of each size and number its median, as this is arithmetic
    #[arg(long, value_name = "NAME|FILE.toml", value_parser = traffic())]
    traffic: Option<String>,
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
    One(Settings),
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
fn way_of(text: &str) -> Result<Settings, String> {
    let way = Settings::keys_of(text).map_err(|error| match error {
        NoKeys::Word(word) => not_of_a_way(&word),
        NoKeys::Keys(problem) => problem.to_string(),
    })?;
    check(&way).map(|()| way)
}

/// Whether an arm would take it, and it is of nothing but how a chain comes.
fn check(way: &Settings) -> Result<(), String> {
    site::arm(USUAL_GROUP, way).map_err(|problem| problem.to_string())?;
    // What says how a delivery goes is nothing without it.
    let is_of_others = |(key, value): &(&str, &str)| {
        let alone = Settings::of_keys(&[(key, value)]);
        *key != "delivery" && alone.is_ok_and(|alone| site::arm(USUAL_GROUP, &alone).is_ok())
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
            None => site::today(document),
            Some(keys) => site::with(document, keys),
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
                site::try_explained(document, &chain, &[]).map_err(|problem| {
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
                    match site::try_explained(document, &chain, &[]) {
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
fn way(document: &Document, reduction: &Reduction) -> Option<Settings> {
    let whole = site::arm(explain::group(document), &Settings::default()).ok()?;
    let less = reduction.apply(&whole).ok()?;
    let way = less.settings_unlike(&whole).without(&["hello"]);
    check(&way).ok().map(|()| way)
}

impl WhatIf {
    pub(super) fn is_given(&self) -> bool {
        !self.what_if.is_empty() || !self.what_if_pem.is_empty()
    }

    /// Before anything is sent.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let needs = |what: &str| {
            Err(Failure::Usage(format!(
                "{what} has nothing to compare: suppose a chain with --what-if ml-dsa-44,ml-dsa-65"
            )))
        };
        match self.is_given() {
            false if self.measure => needs("--measure"),
            false if !self.networks.is_empty() => needs("--networks"),
            false if self.population.is_some() => needs("--population"),
            false if self.rate.is_some() => needs("--rate"),
            false if self.traffic.is_some() => needs("--traffic"),
            true if self.measure && self.traffic.is_some() => Err(Failure::Usage(
                "--traffic is its medians here, and --measure has connections as they are: leave one of both out, or measure it \
                 with lastbyte compare --traffic"
                    .to_owned(),
            )),
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
        if !self.is_given() {
            return Ok(Vec::new());
        }
        let Some(today) = site::today(document) else {
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

    /// What it takes of the traffic that was asked for: in the middle of what connections draw.
    fn medians(&self) -> Vec<(Parameter, Arc<str>)> {
        let traffic = self.traffic.as_deref();
        // It was read before.
        let traffic = traffic.and_then(|name| Traffic::read(name, &StudyFolder::HERE).ok());
        traffic.map_or_else(Vec::new, |traffic| traffic.medians())
    }

    /// What to know of the traffic that was asked for.
    pub(super) fn traffic_note(&self) -> Option<String> {
        let name = self.traffic.as_ref()?;
        let of_each = self.medians().into_iter();
        let of_each = of_each.map(|(parameter, text)| format!("{parameter} {text}"));
        Some(format!(
            "of the traffic {name}, arithmetic takes the median of each, and a full handshake: {}",
            of_each.collect::<Vec<_>>().join(", ")
        ))
    }

    /// What arithmetic says of them.
    pub(super) fn answer<'a>(&'a self, document: &'a Document, chains: &'a [Chain]) -> Answer<'a> {
        let networks = self.networks.iter();
        let rate = PathRate::of(document, self.rate);
        let cells: Vec<Cell> = std::iter::once(site::measured(document, rate.rate()))
            .chain(networks.map(|network| site::named(document, network)))
            .map(|mut cell| {
                for (parameter, text) in self.medians() {
                    // They were read before.
                    let _ = parameter.set(&mut cell, &text, &StudyFolder::HERE);
                }
                cell
            })
            .collect();
        let explained = chains
            .iter()
            .filter_map(|chain| Some((chain, site::explained(document, chain, &cells)?)));
        let explained: Vec<_> = explained.collect();
        let users = self.population.as_ref().zip(cells.first());
        let users = users.map(|(users, path)| (users, users.times(path, &explained)));
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
        way: Settings::default(),
        shown: OwnChain {
            certificates: own.certificates,
            // Of a key like the one that the site has, the signature that was seen: ECDSA's differ by a byte or two.
            signature: if today.signature.longest == own.signature.longest {
                today.signature
            } else {
                own.signature
            },
            provided: own.provided,
            alike: None,
            brotli: None,
            ..today
        },
    })
}
