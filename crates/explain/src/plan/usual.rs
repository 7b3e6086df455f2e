//! What a plan takes for granted where the user says nothing, with source and year.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lastbyte_study::{Population, StudyError};

/// Something that is taken for granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usual {
    /// The key of `[population]`, or the option.
    pub key: Cow<'static, str>,
    /// Its value, as a study says it.
    pub value: Cow<'static, str>,
    /// Where it comes from.
    pub source: Cow<'static, str>,
}

const fn usual(key: &'static str, value: &'static str, source: &'static str) -> Usual {
    Usual {
        key: Cow::Borrowed(key),
        value: Cow::Borrowed(value),
        source: Cow::Borrowed(source),
    }
}

/// All that is taken for granted.
pub static USUAL: [Usual; 5] = [
    usual(
        "rtt",
        "{ values = [\"5ms\", \"15ms\", \"30ms\", \"60ms\", \"150ms\"], weights = [10, 25, 35, 20, 10] }",
        "stated, not measured: access classes from fibre near an edge to satellite and far regions. \
                 Give your own with --rtt",
    ),
    usual(
        "rate",
        "{ values = [\"10mbit\", \"50mbit\", \"200mbit\"], weights = [20, 50, 30] }",
        "stated, not measured",
    ),
    usual(
        "loss",
        "{ values = [\"0%\", \"0.5%\", \"2%\"], weights = [80, 15, 5] }",
        "stated, not measured",
    ),
    usual(
        "data",
        "{ median = \"20KiB\", p95 = \"300KiB\", most = \"2MiB\" }",
        "stated, not measured: the first response of a connection. A profile of lastbyte zeek has all that a server sent on one, \
                 without its handshake where Zeek ran with lastbyte zeek --script",
    ),
    usual(
        "resumes",
        "\"46%\"",
        "share of TLS 1.3 connections outside CDNs, by a review of arXiv 2604.24869 (secondary source, 2026)",
    ),
];

/// A population of `own`, the text of `[population]` without its header, and of what is [`USUAL`] for all that
/// `own` is silent about. Paths begin at `folder`. Gives what was taken for granted, too, with what a kind of traffic says that
/// `own` names.
///
/// # Errors
///
/// What is wrong with `own`.
pub fn population(own: &str, folder: &Path) -> Result<(Population, Vec<Usual>), StudyError> {
    let own_population = match own.trim() {
        "" => None,
        _ => Some(read(own, folder)?),
    };
    let is_given = |usual: &&Usual| match (&own_population, usual.key.parse()) {
        (None, _) => false,
        (Some(population), Ok(parameter)) => population.draws(parameter),
        (Some(population), Err(_)) => population.draws_sessions(),
    };
    let mut usual: Vec<Usual> = USUAL
        .iter()
        .filter(|usual| !is_given(usual))
        .cloned()
        .collect();
    let beside: Vec<String> = usual
        .iter()
        .map(|usual| format!("{} = {}\n", usual.key, usual.value))
        .collect();
    let population = read(&format!("{}{own}", beside.concat()), folder)?;
    let of_traffic = population.facts().into_iter().map(|fact| Usual {
        source: fact.source().into(),
        key: fact.key.into(),
        value: fact.value.into(),
    });
    usual.extend(of_traffic);
    Ok((population, usual))
}

fn read(own: &str, folder: &Path) -> Result<Population, StudyError> {
    Population::parse(own, &path(folder))
}

/// What a problem with `own` itself names for its file.
pub fn path(folder: &Path) -> PathBuf {
    folder.join("population")
}
