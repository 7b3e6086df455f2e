//! Kinds of traffic: what connections carry, drawn for each, from kinds that have a name or from a file of one's own.
//!
//! A kind is a population of work alone: what its connections draw of links is somebody else's. It is one file in
//! `traffic/`, whose every number says who has published it, or that it is stated, and one line of [`Traffic::ALL`].

use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use lastbyte_link::UnknownName;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::arm::chain_as_written;
use super::population::number;
use super::{Arm, ArmProblem, Cell, Parameter, Population, StudyError, StudyFolder, quoted};

/// What connections carry, as somebody has asked for it.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// As it was asked for: a name, or a file.
    name: Arc<str>,
    kind: Arc<Kind>,
    /// What is said besides, so that it is not drawn.
    said: Vec<Parameter>,
}

/// A kind of traffic.
#[derive(Debug)]
pub struct Kind {
    /// What it is, in some words; empty if its file does not say.
    pub what: String,
    /// What its connections draw, none of it of a link.
    pub population: Population,
    /// Who has a certificate.
    pub proof: Proof,
    /// What it says and who says so, in the order of its file; of a file of one's own there may be none.
    pub facts: Vec<Fact>,
}

/// Who proves to be somebody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// The server alone.
    #[default]
    Server,
    /// Client and server.
    Both,
}

lastbyte_link::named!(Proof, "answer of mutual", { Server => "no", Both => "yes" });

/// Something that a kind says, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The key.
    pub key: String,
    /// Its value, as a study says it.
    pub value: String,
    /// Who has published it, with the year.
    pub published: Option<String>,
    /// What of it nobody has published, and why it is so.
    pub stated: Option<String>,
}

impl Fact {
    /// Both in a line.
    pub fn source(&self) -> String {
        let stated = self.stated.as_ref().map(|why| format!("stated: {why}"));
        let all: Vec<String> = self.published.iter().cloned().chain(stated).collect();
        all.join("; ")
    }
}

/// A text names no traffic.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// It is no kind that has a name, nor looks like a file.
    #[error("{0} (or name a FILE.toml with [population], as of `lastbyte zeek -o`)")]
    Name(UnknownName),
    /// Its file can't be read.
    #[error("can't read traffic {name:?}: {error}")]
    Unreadable {
        /// The file.
        name: String,
        /// Why not.
        error: std::io::Error,
    },
    /// What is in its file is no traffic.
    #[error(transparent)]
    File(Box<StudyError>),
}

macro_rules! kinds {
    ($($name:literal),* $(,)?) => {
        /// Each with its file.
        static NAMED: [(&str, &str); Traffic::ALL.len()] =
            [$(($name, include_str!(concat!("traffic/", $name, ".toml")))),*];

        impl Traffic {
            /// The names of those that have one, in the order in which they are reported.
            pub const ALL: [&'static str; [$($name),*].len()] = [$($name),*];
        }
    };
}

kinds![
    "web",
    "mobile-web",
    "social",
    "cloud-api",
    "video",
    "updates",
    "iot",
    "mesh",
];

impl Traffic {
    /// The one of a name, or of a file with `[population]`. Relative paths begin at `folder`.
    ///
    /// # Errors
    ///
    /// When there is no such kind, or its file can't be drawn from: one line with the hint.
    pub fn read(text: &str, folder: &StudyFolder) -> Result<Traffic, TrafficError> {
        let path = Path::new(text);
        let kind = if path.extension().is_some_and(|ending| ending == "toml") {
            let file = folder
                .read(text)
                .map_err(|error| TrafficError::Unreadable {
                    name: text.to_owned(),
                    error,
                })?;
            let kind = Kind::of_file(&folder.path.join(text), file);
            Arc::new(kind.map_err(|error| TrafficError::File(Box::new(error)))?)
        } else {
            named(text)?
        };
        Ok(Traffic {
            name: text.into(),
            kind,
            said: Vec::new(),
        })
    }

    /// As it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether connections draw this of it.
    pub fn draws(&self, parameter: Parameter) -> bool {
        self.kind.population.draws(parameter) && !self.said.contains(&parameter)
    }

    /// The same where these are said besides, which has the last word.
    #[must_use]
    pub fn beside(&self, said: impl IntoIterator<Item = Parameter>) -> Traffic {
        let is_its = |parameter: &Parameter| self.kind.population.draws(*parameter);
        let mut all = self.said.clone();
        for parameter in said.into_iter().filter(is_its) {
            if !all.contains(&parameter) {
                all.push(parameter);
            }
        }
        // Which was said first is no difference.
        let order = |parameter: &Parameter| Parameter::ALL.iter().position(|one| one == parameter);
        all.sort_by_key(order);
        Traffic {
            said: all,
            ..self.clone()
        }
    }

    /// What connections draw that draw all else of `own`, which has the last word.
    #[must_use]
    pub fn under(&self, own: Population) -> Population {
        let its = self.kind.population.drawn();
        let its: Vec<Parameter> = its
            .filter(|parameter| self.draws(*parameter) && !own.draws(*parameter))
            .collect();
        own.over(self, &|parameter| its.contains(&parameter))
    }

    /// What it says that holds for connections which draw all else of `own`, with who says so.
    pub(crate) fn facts(&self, own: &Population) -> Vec<Fact> {
        let holds = |fact: &&Fact| match (fact.key.parse::<Parameter>(), fact.key.as_str()) {
            (Ok(parameter), _) => self.draws(parameter) && !own.draws(parameter),
            (_, "connections_per_user") => own.connections_per_user.get() == 1,
            (_, "resumes" | "early_data") => !own.draws_sessions(),
            _ => true,
        };
        self.kind.facts.iter().filter(holds).cloned().collect()
    }

    /// What stands in the middle of what connections draw, each for itself: where all of them must be alike.
    pub fn medians(&self) -> Vec<(Parameter, Arc<str>)> {
        /// Odd, so that one of them is in the middle.
        const DRAWS: u32 = 1001;
        let population = self.alone();
        let draws: Vec<_> = (0..DRAWS).map(|index| population.draw(index)).collect();
        let middle = |parameter: Parameter| {
            let values = draws.iter().flat_map(|draw| &draw.values);
            let texts = values.filter(|(one, _)| *one == parameter);
            let mut numbers: Vec<(f64, &Arc<str>)> = texts
                .filter_map(|(_, text)| Some((number(parameter, text)?, text)))
                .collect();
            numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let (_, text) = numbers.get(numbers.len() / 2)?;
            Some((parameter, Arc::clone(text)))
        };
        let drawn = Parameter::drawable().filter(|parameter| population.draws(*parameter));
        drawn.filter_map(middle).collect()
    }

    /// What a cell's connections draw that is of one kind alone.
    pub(crate) fn alone(&self) -> Population {
        self.under(Population::empty(self.kind.population.seed))
    }
}

fn named(name: &str) -> Result<Arc<Kind>, TrafficError> {
    static KINDS: LazyLock<Vec<Option<Arc<Kind>>>> = LazyLock::new(|| {
        // A test reads all of them.
        let read = |(name, text): &(&str, &str)| Kind::parse(text, Path::new(name)).ok();
        NAMED.iter().map(|one| read(one).map(Arc::new)).collect()
    });
    let lower = name.to_ascii_lowercase();
    let place = Traffic::ALL.iter().position(|one| *one == lower);
    let kind = place.and_then(|place| KINDS.get(place)).cloned().flatten();
    kind.ok_or_else(|| TrafficError::Name(UnknownName::new("kind of traffic", name, Traffic::ALL)))
}

impl Arm {
    /// The same with a client that proves itself with a chain as the server's, if it says nothing of that.
    ///
    /// # Errors
    ///
    /// Why its client can't have such a chain.
    pub fn proving_itself(&self) -> Result<Arm, ArmProblem> {
        if self.client_chain.is_some() {
            return Ok(self.clone());
        }
        let chain = chain_as_written(&self.chain);
        let mut settings = vec![("mutual", chain.as_str())];
        let intermediates = self
            .settings
            .pairs()
            .find(|(key, _)| *key == "intermediates");
        settings.extend(intermediates.map(|(_, count)| ("client_intermediates", count)));
        let name = (self.name != self.label).then(|| self.name.clone());
        let mut arm = self.with_all(&settings)?;
        // Who has named it knows it by that name.
        arm.name = name.unwrap_or(arm.name);
        Ok(arm)
    }
}

/// The arms as the traffic of all these cells has them.
///
/// # Errors
///
/// When clients prove themselves in some of them alone and an arm does not say whether its own does, or its client can't.
pub fn arms_of_traffic(arms: Vec<Arm>, cells: &[Cell]) -> Result<Vec<Arm>, String> {
    let proof = |cell: &Cell| cell.traffic.as_ref().map(|traffic| traffic.kind.proof);
    let proving = cells.iter().find(|cell| proof(cell) == Some(Proof::Both));
    let Some(proving) = proving.and_then(|cell| cell.traffic.as_ref()) else {
        return Ok(arms);
    };
    let silent = arms.iter().find(|arm| arm.client_chain.is_none());
    let other = cells.iter().find(|cell| proof(cell) != Some(Proof::Both));
    if let (Some(arm), Some(other)) = (silent, other) {
        let other = other
            .traffic
            .as_ref()
            .map_or("none", |traffic| traffic.name());
        return Err(format!(
            "of the traffic {:?} clients prove themselves, and of {other:?} they don't: measure them apart, or say mutual=CHAIN in \
             arm {:?}, for both",
            proving.name(),
            arm.name
        ));
    }
    let proving = arms.iter().map(|arm| {
        arm.proving_itself().map_err(|problem| {
            format!(
                "of the traffic {:?} clients prove themselves, and that of arm {:?} can't with a chain like its server's: {problem}; \
                 say mutual=CHAIN in it",
                proving.name(),
                arm.name
            )
        })
    });
    proving.collect()
}

/// What to know of the clients of these cells, if an arm's traffic has them prove themselves.
pub fn note_of_traffic(cells: &[Cell]) -> Option<String> {
    let mut all = cells.iter().filter_map(|cell| cell.traffic.as_ref());
    let proving = all.find(|traffic| traffic.kind.proof == Proof::Both)?;
    Some(format!(
        "of the traffic {proving}, clients prove themselves: an arm without mutual= has them do so with a chain like its server's"
    ))
}

/// Has all populations know the files of them all: whoever has the rows of one cell knows of which files they are.
///
/// # Errors
///
/// When there are files, and cells that draw nothing: rows of these would not know of which files they are.
pub fn share_files<'a>(cells: impl Iterator<Item = &'a mut Cell>) -> Result<(), String> {
    let mut cells: Vec<&mut Cell> = cells.collect();
    let mut digests: Vec<String> = Vec::new();
    let mut known = cells
        .iter()
        .map(|cell| (cell.population.as_ref()).and_then(|population| population.digest.clone()));
    let first = known.next().flatten();
    if known.all(|digest| digest == first) {
        return Ok(());
    }
    for population in cells.iter().filter_map(|cell| cell.population.as_ref()) {
        if let Some(digest) = population
            .digest
            .as_ref()
            .filter(|one| !digests.contains(one))
        {
            digests.push(digest.clone());
        }
    }
    if cells.iter().any(|cell| cell.population.is_none()) {
        return Err(
            "cells without traffic can't be measured beside the traffic of a file: measure them in a study of their own"
                .to_owned(),
        );
    }
    let all = digests
        .iter()
        .fold(Sha256::new(), |all, one| all.chain_update(one));
    let all = hex::encode(all.finalize());
    // Cells share what they draw.
    let mut changed: Vec<(Arc<Population>, Arc<Population>)> = Vec::new();
    for cell in &mut cells {
        let Some(population) = &cell.population else {
            continue;
        };
        let is_same = |(before, _): &&(Arc<Population>, _)| Arc::ptr_eq(before, population);
        let shared = match changed.iter().find(is_same) {
            Some((_, shared)) => shared.clone(),
            None => {
                let shared = Arc::new(Population {
                    digest: Some(all.clone()),
                    ..population.as_ref().clone()
                });
                changed.push((population.clone(), shared.clone()));
                shared
            }
        };
        cell.population = Some(shared);
    }
    Ok(())
}

impl Cell {
    /// What connections draw in this cell, if they draw anything: `own`, and below that its traffic.
    pub fn drawing(&self, own: Option<&Population>) -> Option<Population> {
        match (&self.traffic, own) {
            (None, own) => own.cloned(),
            (Some(traffic), None) => Some(traffic.alone()),
            (Some(traffic), Some(own)) => Some(traffic.under(own.clone())),
        }
    }
}

/// Two are the same if connections draw the same.
impl PartialEq for Traffic {
    fn eq(&self, other: &Traffic) -> bool {
        self.name == other.name
            && self.said == other.said
            && self.kind.proof == other.kind.proof
            && self.kind.population == other.kind.population
    }
}

impl Eq for Traffic {}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// The line of `[population]` that has connections draw of this.
pub fn line_of_traffic(name: &str) -> String {
    format!("traffic = {}\n", quoted(name))
}

#[cfg(test)]
mod tests;
