//! What a plan takes for granted where the user says nothing, with source and year.

use std::path::{Path, PathBuf};

use lastbyte_study::{Population, StudyError};

/// Something that is taken for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usual {
    /// The key of `[population]`, or the option.
    pub key: &'static str,
    /// Its value, as a study says it.
    pub value: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// All that is taken for granted.
pub const USUAL: [Usual; 5] = [
    Usual {
        key: "rtt",
        value: "{ values = [\"5ms\", \"15ms\", \"30ms\", \"60ms\", \"150ms\"], weights = [10, 25, 35, 20, 10] }",
        source: "stated, not measured: access classes from fibre near an edge to satellite and far regions. \
                 Give your own with --rtt",
    },
    Usual {
        key: "rate",
        value: "{ values = [\"10mbit\", \"50mbit\", \"200mbit\"], weights = [20, 50, 30] }",
        source: "stated, not measured",
    },
    Usual {
        key: "loss",
        value: "{ values = [\"0%\", \"0.5%\", \"2%\"], weights = [80, 15, 5] }",
        source: "stated, not measured",
    },
    Usual {
        key: "data",
        value: "{ median = \"20KiB\", p95 = \"300KiB\", most = \"2MiB\" }",
        source: "stated, not measured: the first response of a connection. A profile of lastbyte zeek has all that a server sent on one, \
                 without its handshake where Zeek ran with lastbyte zeek --script",
    },
    Usual {
        key: "resumes",
        value: "\"46%\"",
        source: "share of TLS 1.3 connections outside CDNs, by a review of arXiv 2604.24869 (secondary source, 2026)",
    },
];

/// A population of `own`, the text of `[population]` without its header, and of what is [`USUAL`] for all that
/// `own` is silent about. Paths begin at `folder`. Gives what was taken for granted, too.
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
    let usual: Vec<Usual> = USUAL
        .iter()
        .filter(|usual| !is_given(usual))
        .copied()
        .collect();
    let beside: Vec<String> = usual
        .iter()
        .map(|usual| format!("{} = {}\n", usual.key, usual.value))
        .collect();
    Ok((read(&format!("{}{own}", beside.concat()), folder)?, usual))
}

fn read(own: &str, folder: &Path) -> Result<Population, StudyError> {
    Population::parse(own, &path(folder))
}

/// What a problem with `own` itself names for its file.
pub fn path(folder: &Path) -> PathBuf {
    folder.join("population")
}
