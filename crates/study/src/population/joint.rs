//! A table whose rows are drawn whole: what goes together stays together.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::distribution::{DistributionProblem, index_at, sums};
use crate::Parameter;
use crate::quoted::quoted;
use crate::table_file::number;

/// A table whose rows are drawn whole.
#[derive(Clone, Debug)]
pub struct Joint {
    columns: Vec<(Parameter, Vec<Arc<str>>)>,
    class: Option<Vec<Arc<str>>>,
    resumes: Option<Vec<bool>>,
    /// The share of rows that resume, by weight, if it says which do: known at each draw.
    resumed_share: Option<f64>,
    weights: Option<Vec<f64>>,
    /// Sums of weights up to each row.
    sums: Vec<f64>,
    /// The file that has it, if it is not in the study.
    file: Option<TableFile>,
}

/// A file that has a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// As the study names it.
    pub name: String,
    /// SHA-256 of what is in it, in hex.
    pub sha256: String,
}

/// One row of it.
pub(super) struct JointRow {
    pub(super) values: Vec<(Parameter, Arc<str>)>,
    pub(super) class: Option<Arc<str>>,
    pub(super) resumes: Option<bool>,
}

/// Why a table can't be drawn from, without where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JointProblem {
    /// Its columns are not equally long.
    #[error("column {column:?} has {cells} cells, others have {rows}: fill each cell")]
    Lengths {
        /// The column.
        column: String,
        /// How long it is.
        cells: usize,
        /// How long others are.
        rows: usize,
    },
    /// A cell is not what its column holds.
    #[error("column {column:?}, row {row}: {problem}")]
    Cell {
        /// The column.
        column: String,
        /// From 1 on.
        row: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A column that nobody asked for.
    #[error("column {column:?} is none that a population has: {hint}")]
    Column {
        /// Its name.
        column: String,
        /// What it may have been meant for.
        hint: String,
    },
    /// One parameter is there twice.
    #[error("{0} is there in two columns: leave one out")]
    Twice(&'static str),
    /// There is no row that could be drawn.
    #[error(transparent)]
    Weights(#[from] DistributionProblem),
    /// The file can't be read.
    #[error("{0}")]
    File(String),
}

/// Columns beside those of parameters.
const CLASS: &str = "class";
const RESUMES: &str = "resumes";
const WEIGHT: &str = "weight";
/// What a weight is called in a table of regions.
const USERS: &str = "users";
/// What other tools call a column, and what it is called here.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("count", "weight"),
    ("sessions", "weight"),
    ("visitors", "weight"),
    ("latency", "rtt_ms"),
    ("ping", "rtt_ms"),
    ("bandwidth", "rate_mbps"),
    ("throughput", "rate_mbps"),
    ("download", "rate_mbps"),
    ("size", "data_bytes"),
];

/// A parameter's column may hold bare numbers, if its name ends in their unit.
const UNITS: [(&str, &str); 9] = [
    ("_ns", "ns"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_bytes", "B"),
    ("_bps", "bit"),
    ("_kbps", "kbit"),
    ("_mbps", "mbit"),
    ("_percent", "%"),
];

/// What a column of a table says: a parameter in some unit, or one of the others.
enum Meaning {
    Parameter(Parameter, &'static str),
    Class,
    Resumes,
    Weight,
}

impl Joint {
    /// A table of columns, each with its name and its cells.
    ///
    /// # Errors
    ///
    /// When it can't be drawn from.
    pub fn new(
        table: Vec<(String, Vec<String>)>,
        file: Option<TableFile>,
    ) -> Result<Joint, JointProblem> {
        let rows = table.first().map_or(0, |(_, cells)| cells.len());
        let mut joint = Joint {
            columns: Vec::new(),
            class: None,
            resumes: None,
            resumed_share: None,
            weights: None,
            sums: Vec::new(),
            file,
        };
        for (name, cells) in table {
            if cells.len() != rows {
                return Err(JointProblem::Lengths {
                    column: name,
                    cells: cells.len(),
                    rows,
                });
            }
            joint.add(&name, cells)?;
        }
        if rows == 0 {
            return Err(DistributionProblem::Empty.into());
        }
        joint.sums = match &joint.weights {
            Some(weights) => sums(weights)?,
            None => sums(&vec![1.0; rows])?,
        };
        joint.resumed_share =
            (joint.resumes.as_ref()).and_then(|resumes| share(resumes, &joint.sums));
        Ok(joint)
    }

    fn add(&mut self, name: &str, cells: Vec<String>) -> Result<(), JointProblem> {
        let wrong = |row: usize, problem: String| JointProblem::Cell {
            column: name.to_owned(),
            row: row + 1,
            problem,
        };
        match meaning(name)? {
            Meaning::Class => self.class = Some(cells.into_iter().map(Arc::from).collect()),
            Meaning::Resumes => {
                let read = |(row, cell): (usize, &String)| match cell.as_str() {
                    "true" | "1" | "T" => Ok(true),
                    "false" | "0" | "F" => Ok(false),
                    _ => Err(wrong(row, format!("{cell:?} is neither true nor false"))),
                };
                self.resumes = Some(
                    cells
                        .iter()
                        .enumerate()
                        .map(read)
                        .collect::<Result<_, _>>()?,
                );
            }
            Meaning::Weight => {
                let read = |(row, cell): (usize, &String)| {
                    let written =
                        number(cell).map_err(|problem| wrong(row, problem.to_string()))?;
                    let number = written.parse::<f64>().ok();
                    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
                    number.ok_or_else(|| {
                        wrong(
                            row,
                            format!("{cell:?} is no weight: write a number from 0 on"),
                        )
                    })
                };
                self.weights = Some(
                    cells
                        .iter()
                        .enumerate()
                        .map(read)
                        .collect::<Result<_, _>>()?,
                );
            }
            Meaning::Parameter(parameter, unit) => {
                if self.columns.iter().any(|(known, _)| *known == parameter) {
                    return Err(JointProblem::Twice(parameter.name()));
                }
                let mut column: Vec<Arc<str>> = Vec::with_capacity(cells.len());
                // Many rows have one value.
                let mut known = std::collections::HashMap::<String, Arc<str>>::new();
                for (row, cell) in cells.into_iter().enumerate() {
                    let value = match known.get(&cell) {
                        Some(value) => value.clone(),
                        None => {
                            const NOTHING: &str =
                                "there is nothing: fill the cell, or leave the row out";
                            let written =
                                number(&cell).map_err(|problem| wrong(row, problem.to_string()))?;
                            if cell.is_empty() {
                                return Err(wrong(row, NOTHING.to_owned()));
                            }
                            let value = parameter.checked(&format!("{written}{unit}"));
                            let value: Arc<str> = value
                                .map_err(|problem| wrong(row, problem.to_string()))?
                                .into();
                            known.insert(cell, value.clone());
                            value
                        }
                    };
                    column.push(value);
                }
                self.columns.push((parameter, column));
            }
        }
        Ok(())
    }

    /// A table in a file that the study names so: CSV, or Parquet.
    ///
    /// # Errors
    ///
    /// When it can't be read, or can't be drawn from.
    pub fn load(name: &str, content: &[u8]) -> Result<Joint, JointProblem> {
        let table = if content.starts_with(b"PAR1") {
            super::super::table_file::parquet(content)
        } else {
            super::super::table_file::csv(content)
        };
        let file = TableFile {
            name: name.to_owned(),
            sha256: hex::encode(Sha256::digest(content)),
        };
        Joint::new(
            table.map_err(|error| JointProblem::File(error.to_string()))?,
            Some(file),
        )
    }

    /// The same rows without columns but those that `is_kept` says, and without who is of which class or resumes unless
    /// these are kept. `None` if nothing is left.
    pub(super) fn only(
        &self,
        is_kept: &dyn Fn(Parameter) -> bool,
        keeps_class: bool,
        keeps_resumes: bool,
    ) -> Option<Joint> {
        let columns = self.columns.iter().filter(|(one, _)| is_kept(*one));
        let resumes = self.resumes.as_ref().filter(|_| keeps_resumes).cloned();
        let kept = Joint {
            columns: columns.cloned().collect(),
            class: self.class.as_ref().filter(|_| keeps_class).cloned(),
            resumed_share: self.resumed_share.filter(|_| resumes.is_some()),
            resumes,
            weights: self.weights.clone(),
            sums: self.sums.clone(),
            file: None,
        };
        let is_left = !kept.columns.is_empty() || kept.class.is_some() || kept.resumes.is_some();
        is_left.then_some(kept)
    }

    /// The parameters that it has columns of.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + '_ {
        self.columns.iter().map(|(parameter, _)| *parameter)
    }

    /// The share of rows that resume, by weight; `None` if it does not say which do.
    pub fn resumed_share(&self) -> Option<f64> {
        self.resumed_share
    }

    /// The classes that its rows have, each once.
    pub fn classes(&self) -> Vec<&str> {
        let mut classes: Vec<&str> = self.class.iter().flatten().map(|class| &**class).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// The file that has it, if it is not in the study.
    pub fn file(&self) -> Option<&TableFile> {
        self.file.as_ref()
    }

    /// The row at a place from 0 to 1.
    pub(super) fn row(&self, place: f64) -> JointRow {
        let row = index_at(&self.sums, place);
        let values = self
            .columns
            .iter()
            .filter_map(|(parameter, column)| Some((*parameter, column.get(row)?.clone())));
        JointRow {
            values: values.collect(),
            class: self
                .class
                .as_ref()
                .and_then(|class| class.get(row))
                .cloned(),
            resumes: (self.resumes.as_ref())
                .and_then(|resumes| resumes.get(row))
                .copied(),
        }
    }

    /// Its columns as a study would say them.
    pub(super) fn to_toml(&self) -> Vec<(&'static str, String)> {
        let texts = |cells: &[Arc<str>]| -> String {
            let cells: Vec<_> = cells.iter().map(quoted).collect();
            format!("[{}]", cells.join(", "))
        };
        let mut columns: Vec<_> = (self.columns.iter())
            .map(|(parameter, cells)| (parameter.name(), texts(cells)))
            .collect();
        if let Some(class) = &self.class {
            columns.push((CLASS, texts(class)));
        }
        let bare = |cells: Vec<String>| format!("[{}]", cells.join(", "));
        if let Some(resumes) = &self.resumes {
            columns.push((RESUMES, bare(resumes.iter().map(bool::to_string).collect())));
        }
        if let Some(weights) = &self.weights {
            columns.push((WEIGHT, bare(weights.iter().map(f64::to_string).collect())));
        }
        columns
    }
}

/// The share of rows that are marked, by weight; `sums` are those of weights up to each row.
fn share(marked: &[bool], sums: &[f64]) -> Option<f64> {
    let before = [0.0].into_iter().chain(sums.iter().copied());
    let weights = sums.iter().zip(before).map(|(sum, before)| sum - before);
    let marked = marked.iter().zip(weights).filter(|(marked, _)| **marked);
    let weight: f64 = marked.map(|(_, weight)| weight).sum();
    Some(weight / sums.last()?)
}

fn meaning(written: &str) -> Result<Meaning, JointProblem> {
    let name = written.to_ascii_lowercase();
    let name = name.as_str();
    match name {
        CLASS => return Ok(Meaning::Class),
        RESUMES => return Ok(Meaning::Resumes),
        WEIGHT | USERS => return Ok(Meaning::Weight),
        _ => {}
    }
    let drawable = |name: &str| {
        let parameter = name.parse::<Parameter>().ok();
        parameter.filter(|parameter| parameter.can_be_drawn())
    };
    if let Some(parameter) = drawable(name) {
        return Ok(Meaning::Parameter(parameter, ""));
    }
    for (ending, unit) in UNITS {
        if let Some(parameter) = name.strip_suffix(ending).and_then(drawable) {
            return Ok(Meaning::Parameter(parameter, unit));
        }
    }
    let names = Parameter::drawable().map(Parameter::name);
    let names = names.chain([CLASS, RESUMES, WEIGHT]);
    let other = OTHER_NAMES
        .iter()
        .find(|(other, _)| name.starts_with(other));
    Err(JointProblem::Column {
        column: written.to_owned(),
        hint: match other {
            Some((_, name)) => format!("it may be called {name} here"),
            None => lastbyte_link::nearest(name, names),
        },
    })
}
