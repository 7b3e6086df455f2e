//! Where a study file has edges searched.

use lastbyte_link::Bytes;
use thiserror::Error;

use super::keys::{self, names};
use super::table::{Field, Table};
use super::{File, GRID, StudyError, StudyProblem, grid, sampling};
use crate::search::unpadded;
use crate::{
    Arm, ArmChain, Connections, CpuTime, Experiment, Metric, NoSuchTime, NobodyHas, PublishedEdges,
    Search, check_metric, check_transports,
};

const HEADER: &str = "[[search]]";
const PUBLISHED: &str = "[[search.published]]";
impl File {
    pub(super) fn searches(&self, top: &Table) -> Result<Vec<Search>, StudyError> {
        let mut searches: Vec<Search> = Vec::new();
        let Some(field) = top.get("search") else {
            return Ok(searches);
        };
        let known = [names(keys::SEARCH), GRID.clone(), names(keys::SAMPLING)].concat();
        for table in field.tables(HEADER, &known)? {
            let search = self.search(&table)?;
            if searches.iter().any(|other| other.id == search.id) {
                return Err(table.same_name("search", &search.id));
            }
            searches.push(search);
        }
        Ok(searches)
    }

    fn search(&self, table: &Table) -> Result<Search, StudyError> {
        const MOST_BYTES: usize = 1 << 20;
        let id = table.require("id", "id = \"NAME\"")?.name()?.to_owned();
        let arms = self.arms_of(table)?;
        let cells = grid::cells(
            table,
            &self.links_of(table)?,
            &self.folder,
            super::MOST_CELLS,
            super::Drawn::default(),
        )?;
        if let Some(traffic) = table
            .get("traffic")
            .filter(|_| cells.iter().any(|cell| cell.traffic.is_some()))
        {
            return Err(traffic.error(value(
                "\"traffic\" is drawn, and an edge is that of one response: say its size, as in data = \"20KiB\"",
            )));
        }
        let bytes = |key, example| {
            let field = table.require(key, example)?;
            Ok((bytes(&field, MOST_BYTES)?, field))
        };
        let (from, _) = bytes("from", "from = \"2KB\"")?;
        let (to, to_field) = bytes("to", "to = \"100KB\"")?;
        let usual = sampling(table, self.usual.clone())?;
        let connections = match usual.connections {
            Connections::UpTo(most) => Connections::Fixed(most),
            other => other,
        };
        let search = Search {
            id,
            metric: table.read("metric", Field::parse)?.unwrap_or(Metric::Ttfb),
            from,
            to,
            sizes: (table.read("sizes", |field| field.whole(2..=Search::MOST_SIZES as u64))?)
                .map_or(Search::SIZES, |sizes| sizes as usize),
            published: published(table, MOST_BYTES)?,
            experiment: Experiment {
                arms,
                cells,
                // An edge is a matter of bytes.
                cpu: CpuTime::None,
                connections,
                ..usual
            },
        };
        if let Some(cpu) = table.get("cpu") {
            return Err(cpu.error(value(
                "\"cpu\" is none in [[search]]: an edge is a matter of bytes; measure the time of computing in a [[measure]]",
            )));
        }
        check_sizes(&search, &to_field)?;
        check(&search).map_err(|problem| table.error(StudyProblem::Value(problem.to_string())))?;
        Ok(search)
    }
}

fn value(text: &str) -> StudyProblem {
    StudyProblem::Value(text.to_owned())
}

fn bytes(field: &Field, most: usize) -> Result<usize, StudyError> {
    let Bytes(bytes) = field.parse()?;
    let count = usize::try_from(bytes).unwrap_or(usize::MAX);
    if count <= most {
        Ok(count)
    } else {
        Err(field.out_of_range(Bytes(bytes), Bytes(1)..=Bytes(most as u64)))
    }
}

fn check_sizes(search: &Search, to: &Field) -> Result<(), StudyError> {
    let Search { from, to: most, .. } = search;
    if from >= most {
        let problem = format!("\"to\" can't be {most}B: use more than \"from\", which is {from}B");
        return Err(to.error(StudyProblem::Value(problem)));
    }
    let too_large = |arm: &&Arm| unpadded(arm).is_some_and(|least| least >= *most);
    match search.experiment.arms.iter().find(too_large) {
        Some(arm) => {
            let least = unpadded(arm).unwrap_or_default();
            let problem = format!(
                "\"to\" can't be {most}B: the chain of arm {:?} has {least}B without padding; use more, or leave that arm out",
                arm.name
            );
            Err(to.error(StudyProblem::Value(problem)))
        }
        None => Ok(()),
    }
}

/// Why a search finds nothing.
#[derive(Debug, Error)]
enum NothingToFind {
    #[error("arm {arm:?} can't grow: {problem}; name one whose chain is made, without :BYTESB")]
    CantGrow { arm: String, problem: &'static str },
    #[error(transparent)]
    NobodyHas(#[from] NobodyHas),
    #[error(transparent)]
    NoSuchTime(#[from] NoSuchTime),
    #[error("\"connections\" of a search is a number: so many for each size")]
    Connections,
    #[error("without an RTT nothing steps: give links one")]
    NoRtt,
    #[error("there is no {0} without a response: add data = \"1KiB\"")]
    NoMetric(Metric),
    #[error(
        "{connections} connections of each size tell no step from luck where packets are lost or delayed at \
         random: use {least} or more"
    )]
    Luck { connections: u32, least: u32 },
}

/// Whether there is something to be found.
fn check(search: &Search) -> Result<(), NothingToFind> {
    let Experiment {
        arms,
        cells,
        connections,
        ..
    } = &search.experiment;
    check_transports(arms, cells)?;
    check_metric(search.metric, arms)?;
    for arm in arms {
        let problem = match &arm.chain {
            ArmChain::Pem(_) => "its chain is a file, which is sent as it is",
            ArmChain::Made(spec) if spec.certificate_bytes.is_some() => {
                "its chain is padded already"
            }
            ArmChain::Made(_) => continue,
        };
        return Err(NothingToFind::CantGrow {
            arm: arm.name.clone(),
            problem,
        });
    }
    let Connections::Fixed(connections) = connections else {
        return Err(NothingToFind::Connections);
    };
    for cell in cells {
        if cell.link.rtt().is_zero() {
            return Err(NothingToFind::NoRtt);
        }
        if !cell.metrics().contains(&search.metric) {
            return Err(NothingToFind::NoMetric(search.metric));
        }
        if Search::has_luck(cell) && *connections < Search::LEAST_WITH_LUCK {
            return Err(NothingToFind::Luck {
                connections: *connections,
                least: Search::LEAST_WITH_LUCK,
            });
        }
    }
    Ok(())
}

fn published(table: &Table, most: usize) -> Result<Vec<PublishedEdges>, StudyError> {
    let Some(field) = table.get("published") else {
        return Ok(Vec::new());
    };
    let tables = field.tables(PUBLISHED, &names(keys::SEARCH_PUBLISHED))?;
    let read = |table: Table| {
        let edges = table.require("edges", "edges = [\"10KB\"]")?;
        Ok(PublishedEdges {
            source: table
                .require("source", "source = \"WORDS\"")?
                .text()?
                .to_owned(),
            edges: edges.list(|field| bytes(field, most))?,
            note: table.read("note", Field::text)?.map(str::to_owned),
        })
    };
    tables.into_iter().map(read).collect()
}
