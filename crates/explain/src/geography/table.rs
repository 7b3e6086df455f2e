//! Tables of RTTs: from where, to where, how long there and back.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_link::nearest;

use super::{GeographyError, PlaceProblem, Unit, name, rtt};
use lastbyte_results::number::milliseconds;
use lastbyte_study::table_file::rows;

/// RTTs between places. What was not measured is a hole; there and back may be measured apart, and differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RttTable {
    /// What it is called in messages: its file.
    pub file: String,
    /// What is known of where it comes from.
    pub source: Source,
    from: Vec<String>,
    to: Vec<String>,
    rtts: BTreeMap<(String, String), Entry>,
}

/// Where a table comes from, which decides what it is fit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of the user's. It may have RTTs of users.
    Own,
    /// Azure's regions, as Microsoft published them: datacentre to datacentre. What stands in its head goes along.
    Azure,
}

/// Two places whose RTT depends on who measures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asymmetry<'a> {
    /// The first in the order of names.
    pub one: &'a str,
    /// The other.
    pub other: &'a str,
    /// From one to the other.
    pub there: Duration,
    /// From the other to the one.
    pub back: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    rtt: Duration,
    line: u64,
}

/// The table that comes along.
const AZURE: &str = include_str!("../../data/azure-rtt.csv");

impl RttTable {
    /// Azure's regions, 54 of them, in July 2026.
    ///
    /// # Errors
    ///
    /// Never: it is read in tests.
    pub fn azure() -> Result<RttTable, GeographyError> {
        let table = RttTable::parse("azure-rtt.csv", AZURE.as_bytes())?;
        Ok(RttTable {
            source: Source::Azure,
            ..table
        })
    }

    /// Reads CSV: a square with the names of places in the first line and the first column, in milliseconds,
    /// or a line for each pair, in columns `from`, `to` and `rtt_ms`, or `rtt` with units. In the square, empty
    /// cells are holes. `file` is what it is called.
    ///
    /// # Errors
    ///
    /// When it is no such table, with the line.
    pub fn parse(file: &str, content: &[u8]) -> Result<RttTable, GeographyError> {
        let error =
            |line: Option<u64>, problem: PlaceProblem| GeographyError::new(file, line, problem);
        let (names, rows) = rows(content).map_err(|problem| error(None, problem.into()))?;
        let mut table = RttTable {
            file: file.to_owned(),
            source: Source::Own,
            from: Vec::new(),
            to: Vec::new(),
            rtts: BTreeMap::new(),
        };
        match Pairs::find(&names).map_err(|problem| error(None, problem))? {
            Some(pairs) => {
                for (line, cells) in rows {
                    (table.add_pair(&pairs, line, &cells))
                        .map_err(|problem| error(Some(line), problem))?;
                }
            }
            None => {
                (table.add_columns(&names)).map_err(|problem| error(None, problem))?;
                for (line, cells) in rows {
                    (table.add_row(line, &cells)).map_err(|problem| error(Some(line), problem))?;
                }
            }
        }
        if table.rtts.is_empty() {
            Err(GeographyError::new(
                file,
                None,
                "there is no RTT in it: write a square with names in the first line and the first column, or \
                 lines of from,to,rtt_ms",
            ))
        } else {
            Ok(table)
        }
    }

    fn add_pair(&mut self, pairs: &Pairs, line: u64, cells: &[String]) -> Result<(), PlaceProblem> {
        let cell = |column: usize| cells.get(column).map_or("", String::as_str);
        let from = name(cell(pairs.from), "a place")?;
        let to = name(cell(pairs.to), "a place")?;
        for (name, names) in [(&from, &mut self.from), (&to, &mut self.to)] {
            if !names.contains(name) {
                check_room(names)?;
                names.push(name.clone());
            }
        }
        self.add(line, from, to, cell(pairs.rtt), pairs.unit)
    }

    fn add_columns(&mut self, names: &[String]) -> Result<(), PlaceProblem> {
        for cell in names.iter().skip(1) {
            let name = name(cell, "a column")?;
            if self.to.contains(&name) {
                return Err(PlaceProblem::SameColumn(name));
            }
            check_room(&self.to)?;
            self.to.push(name);
        }
        Ok(())
    }

    fn add_row(&mut self, line: u64, cells: &[String]) -> Result<(), PlaceProblem> {
        let Some((from, cells)) = cells.split_first() else {
            return Ok(());
        };
        let from = name(from, "a place")?;
        if self.from.contains(&from) {
            return Err(PlaceProblem::SameLine(from));
        }
        check_room(&self.from)?;
        self.from.push(from.clone());
        for (to, cell) in self.to.clone().into_iter().zip(cells) {
            self.add(line, from.clone(), to, cell, Unit::Milliseconds)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        line: u64,
        from: String,
        to: String,
        cell: &str,
        unit: Unit,
    ) -> Result<(), PlaceProblem> {
        if cell.is_empty() {
            return Ok(());
        }
        let rtt = rtt(cell, unit).map_err(|problem| PlaceProblem::Pair {
            from: from.clone(),
            to: to.clone(),
            problem: Box::new(problem),
        })?;
        if let Some(earlier) = self.rtts.get(&(from.clone(), to.clone())) {
            let line = earlier.line;
            return Err(PlaceProblem::SamePair { from, to, line });
        }
        self.rtts.insert((from, to), Entry { rtt, line });
        Ok(())
    }

    /// The RTT from one place to another, as it was measured from there.
    pub fn get(&self, from: &str, to: &str) -> Option<Duration> {
        let entry = self.rtts.get(&(from.to_owned(), to.to_owned()))?;
        Some(entry.rtt)
    }

    /// The same, where it must be.
    ///
    /// # Errors
    ///
    /// A place that it does not know, with the nearest that it knows; a hole, with both its ends.
    pub fn need(&self, from: &str, to: &str) -> Result<Duration, GeographyError> {
        if let Some(rtt) = self.get(from, to) {
            return Ok(rtt);
        }
        let error = |problem| GeographyError::new(&self.file, None, problem);
        for name in [from, to] {
            if !self.knows(name) {
                return Err(error(format!(
                    "it has no {name:?}: {}",
                    self.nearest_place(name)
                )));
            }
        }
        let hint = match self.get(to, from) {
            Some(back) => format!(
                "the other way it has {}: say that in both, if it holds",
                milliseconds(back)
            ),
            None => "measure it".to_owned(),
        };
        Err(error(format!(
            "it has no RTT from {from:?} to {to:?}: {hint}"
        )))
    }

    /// Whether it has a place of that name.
    pub fn knows(&self, name: &str) -> bool {
        self.places().any(|place| place == name)
    }

    fn nearest_place(&self, name: &str) -> String {
        /// A longer list of names helps nobody in a line.
        const MOST: usize = 12;
        let hint = nearest(name, self.places());
        if hint.starts_with("did you mean") || self.places().count() <= MOST {
            hint
        } else {
            "`lastbyte rtt` tells its names".to_owned()
        }
    }

    /// The names of all places, in the order of the file.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        let others = self.to.iter().filter(|name| !self.from.contains(name));
        self.from.iter().chain(others).map(String::as_str)
    }

    /// All that it has, in the order of names: from, to, RTT.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str, Duration)> {
        let pairs = self.rtts.iter();
        pairs.map(|((from, to), entry)| (from.as_str(), to.as_str(), entry.rtt))
    }

    /// What is missing between its rows and its columns, but from a place to itself.
    pub fn holes(&self) -> Vec<(&str, &str)> {
        let pairs = self
            .from
            .iter()
            .flat_map(|from| self.to.iter().map(move |to| (from, to)));
        pairs
            .filter(|(from, to)| from != to && self.get(from, to).is_none())
            .map(|(from, to)| (from.as_str(), to.as_str()))
            .collect()
    }

    /// Places whose RTT depends on who measures it, the largest difference first.
    pub fn asymmetries(&self) -> Vec<Asymmetry<'_>> {
        let pairs = self.pairs().filter(|(from, to, _)| from < to);
        let mut found: Vec<_> = pairs
            .filter_map(|(one, other, there)| {
                let back = self.get(other, one)?;
                (there != back).then_some(Asymmetry {
                    one,
                    other,
                    there,
                    back,
                })
            })
            .collect();
        found.sort_by_key(|pair| std::cmp::Reverse(pair.there.abs_diff(pair.back)));
        found
    }

    /// What stands in the head of the table that comes along: what it is, its source and its licence.
    pub fn head(&self) -> Vec<&'static str> {
        match self.source {
            Source::Own => Vec::new(),
            Source::Azure => {
                let lines = AZURE.lines();
                lines.map_while(|line| line.strip_prefix("# ")).collect()
            }
        }
    }
}

/// Where a table of pairs has what.
struct Pairs {
    from: usize,
    to: usize,
    rtt: usize,
    unit: Unit,
}

impl Pairs {
    /// `None` if the columns are those of a square.
    fn find(names: &[String]) -> Result<Option<Pairs>, PlaceProblem> {
        let column = |name: &str| {
            let mut names = names.iter();
            names.position(|known| known.eq_ignore_ascii_case(name))
        };
        let (Some(from), Some(to)) = (column("from"), column("to")) else {
            return Ok(None);
        };
        match (column("rtt_ms"), column("rtt")) {
            (Some(_), Some(_)) => Err(PlaceProblem::BothUnits),
            (Some(rtt), None) => Ok(Some(Pairs {
                from,
                to,
                rtt,
                unit: Unit::Milliseconds,
            })),
            (None, Some(rtt)) => Ok(Some(Pairs {
                from,
                to,
                rtt,
                unit: Unit::Said,
            })),
            (None, None) => Err(PlaceProblem::NoColumn),
        }
    }
}

/// Whether there is room for one more place.
fn check_room(places: &[String]) -> Result<(), PlaceProblem> {
    /// More than all datacentres of the world; a table has room for each with each.
    const MOST_PLACES: usize = 2000;
    if places.len() < MOST_PLACES {
        Ok(())
    } else {
        Err(PlaceProblem::TooMany(MOST_PLACES))
    }
}
