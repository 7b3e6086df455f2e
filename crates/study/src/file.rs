//! How a study is written.
//!
//! `keys` has all keys that are no parameters: with the table of parameters, it is what files are read by, and what
//! [`reference()`] makes `docs/study.md` of.

mod drawn;
mod error;
mod grid;
mod keys;
mod population;
mod reference;
mod search;
mod table;
#[cfg(test)]
mod tests;
mod traffic;
mod write;

pub use error::{StudyError, StudyProblem};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastbyte_link::Seed;

pub use self::drawn::NoBounds;
use self::drawn::References;
use self::grid::{Drawn, GRID, LINK, NamedLink};
use self::keys::names;
pub use self::reference::reference;
use self::table::{Field, Source, Table};
use self::write::key;
use super::{
    Arm, ArmChain, Cell, Connections, CpuTime, EngineChoice, Experiment, Leads, Legend, Measure,
    NoPercentile, Parameter, Percentile, Population, Sessions, Study, StudyFolder, Traffic,
    UnknownName, Until, arms_of_traffic, check_servers, share_files,
};

/// Cells of a study, at most.
const MOST_CELLS: usize = 100_000;

impl Study {
    /// Reads a study file.
    ///
    /// # Errors
    ///
    /// When the file can't be read or is no study: one line with the file, the line and the hint.
    pub fn load(path: &Path) -> Result<Study, StudyError> {
        Study::parse(&text(path)?, path)
    }

    /// Reads the text of a study file. Relative paths in it begin at the folder of `path`, which
    /// also names the study if nothing else does.
    ///
    /// # Errors
    ///
    /// When it is no study: one line with the file, the line and the hint.
    pub fn parse(text: &str, path: &Path) -> Result<Study, StudyError> {
        let source = Source { path, text };
        let document = source.parse()?;
        let known = [names(keys::TOP), names(keys::SAMPLING)].concat();
        let top = Table::new(source, String::new(), 0..0, document.get_ref(), &known)?;

        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = top.read("name", Field::name)?;
        let told = |key| Ok(top.read(key, Field::text)?.map(str::to_owned));
        let percentiles = top.read("percentiles", |field| field.list(percentile))?;
        let engine = top.read("engine", Field::parse)?;
        let leads = top.read("leads", Field::parse)?;
        let folder = folder(&top, path)?;
        let read = population::population(&top, &folder)?;
        let names_traffic = || {
            top.get("measure")
                .is_some_and(|all| all.mentions("traffic"))
        };
        let (population, traffic) = match read {
            None => (None, None),
            Some(read) if read.is_nothing() && !names_traffic() => return Err(read.nothing),
            Some(read) => (Some(read.own), read.traffic),
        };
        let drawn = Drawn {
            population: population.as_ref(),
            traffic: None,
        };
        let file = File {
            usual: sampling(&top, Experiment::new(Vec::new(), Vec::new(), USUAL))?,
            cpu: cpu(&top)?,
            arms: arms(&top, &folder.path)?,
            links: links(&top, &folder, drawn)?,
            drawn_link: NamedLink::drawn(),
            population,
            traffic,
            folder,
        };
        let mut measures = file.measures(&top)?;
        let drawn = measures
            .iter_mut()
            .flat_map(|measure| &mut measure.experiment.cells);
        share_files(drawn).map_err(|problem| top.error(StudyProblem::Value(problem)))?;
        let searches = file.searches(&top)?;
        let percentiles = percentiles.unwrap_or_else(|| Percentile::USUAL.to_vec());
        let known = References {
            arms: &file.arms,
            measures: &measures,
            percentiles: &percentiles,
        };
        let figures = known.figures(&top)?;
        let published = known.published(&top, &figures)?;
        let claims = known.claims(&top)?;
        let answer = known.answer(&top)?;
        Ok(Study {
            name: name.unwrap_or(&stem).to_owned(),
            question: told("question")?,
            answer,
            legends: legends(&top, &file.arms)?,
            leads: leads.unwrap_or_default(),
            note: told("note")?,
            path: path.to_owned(),
            text: text.to_owned(),
            figures,
            published,
            claims,
            measures,
            searches,
            percentiles,
            engine: engine.unwrap_or_default(),
            folder: file.folder.path,
        })
    }

    /// A study that no file holds, of one measure. Relative paths begin at the current folder.
    pub fn single(name: &str, mut experiment: Experiment) -> Study {
        let folder = absolute(Path::new(""));
        for arm in &mut experiment.arms {
            settle(arm, &folder);
        }
        Study {
            name: name.to_owned(),
            question: None,
            answer: None,
            legends: Vec::new(),
            leads: Leads::default(),
            note: None,
            path: PathBuf::new(),
            text: String::new(),
            measures: vec![Measure {
                id: name.to_owned(),
                experiment,
            }],
            percentiles: Percentile::USUAL.to_vec(),
            engine: EngineChoice::default(),
            figures: Vec::new(),
            published: Vec::new(),
            claims: Vec::new(),
            searches: Vec::new(),
            folder,
        }
    }
}

/// The text of a file of studies.
fn text(path: &Path) -> Result<String, StudyError> {
    /// Larger than any study that somebody has written.
    const MOST: u64 = 64 << 20;
    let bytes = lastbyte_files::read(path, MOST).map_err(|error| StudyError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    utf8(path, bytes)
}

fn utf8(path: &Path, bytes: Vec<u8>) -> Result<String, StudyError> {
    String::from_utf8(bytes).map_err(|error| {
        let before = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to());
        StudyError::Wrong {
            path: path.to_owned(),
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            problem: Box::new(StudyProblem::Encoding),
        }
    })
}

/// Where relative paths of a file begin.
fn folder(top: &Table, path: &Path) -> Result<StudyFolder, StudyError> {
    let folder = top.read("folder", Field::text)?.unwrap_or_default();
    Ok(StudyFolder {
        path: absolute(&path.with_file_name(folder)),
        beside: path.parent().unwrap_or(Path::new("")).to_owned(),
    })
}

/// What measures refer to.
struct File {
    /// An experiment without arms and cells.
    usual: Experiment,
    cpu: Option<CpuTime>,
    arms: Vec<Arm>,
    links: Vec<NamedLink>,
    /// Where a population draws all that there is to know of links.
    drawn_link: NamedLink,
    population: Option<Population>,
    /// What connections carry, where a cell does not say so.
    traffic: Option<Traffic>,
    folder: StudyFolder,
}

impl File {
    fn measures(&self, top: &Table) -> Result<Vec<Measure>, StudyError> {
        const HEADER: &str = "[[measure]]";
        let mut measures: Vec<Measure> = Vec::new();
        let mut left = MOST_CELLS;
        let known = [names(keys::MEASURE), GRID.clone(), names(keys::SAMPLING)].concat();
        let tables = top.require("measure", HEADER)?.tables(HEADER, &known)?;
        for table in tables {
            let measure = self.measure(&table, left)?;
            if measures.iter().any(|other| other.id == measure.id) {
                return Err(table.same_name("measure", &measure.id));
            }
            left -= measure.experiment.cells.len();
            measures.push(measure);
        }
        Ok(measures)
    }

    /// `most` is how many cells it may have.
    fn measure(&self, table: &Table, most: usize) -> Result<Measure, StudyError> {
        let id = table.require("id", "id = \"NAME\"")?.name()?.to_owned();
        let arms = self.arms_of(table)?;
        let cells = match table.get("cell") {
            Some(cells) => self.explicit_cells(table, &cells, most)?,
            None => {
                let links = self.links_of(table)?;
                grid::cells(table, &links, &self.folder, most, self.drawn())?
            }
        };
        let experiment = sampling(table, self.usual.clone())?;
        let seeded = |population: &Population| Population {
            seed: experiment.seed,
            ..population.clone()
        };
        let own = self.population.as_ref().map(seeded);
        let mut known: Vec<(Option<Traffic>, Option<Arc<Population>>)> = Vec::new();
        let with_population = |cell: Cell| {
            let shared = known.iter().find(|(traffic, _)| *traffic == cell.traffic);
            let population = match shared {
                Some((_, population)) => population.clone(),
                None => {
                    let drawing = cell.drawing(own.as_ref());
                    let drawing = drawing.map(|drawing| Arc::new(seeded(&drawing)));
                    known.push((cell.traffic.clone(), drawing.clone()));
                    drawing
                }
            };
            Cell { population, ..cell }
        };
        let cells: Vec<Cell> = cells.into_iter().map(with_population).collect();
        let arms = arms_of_traffic(arms, &cells)
            .map_err(|problem| table.error(StudyProblem::Value(problem)))?;
        check_arms(table, &arms, &cells)?;
        let experiment = Experiment {
            arms,
            cells,
            ..experiment
        };
        let experiment = experiment.with_cpu(cpu(table)?.or(self.cpu));
        check_servers(&experiment).map_err(|problem| table.error(StudyProblem::Value(problem)))?;
        Ok(Measure { id, experiment })
    }

    /// What the cells themselves must leave to the population.
    fn drawn(&self) -> Drawn<'_> {
        Drawn {
            population: self.population.as_ref(),
            traffic: self.traffic.as_ref(),
        }
    }

    /// Those that a table names; all, if it names none.
    fn arms_of(&self, table: &Table) -> Result<Vec<Arm>, StudyError> {
        match table.get("arms") {
            None => Ok(self.arms.clone()),
            Some(arms) => arms.list(|arm| self.arm(arm)),
        }
    }

    /// The same of links.
    fn links_of(&self, table: &Table) -> Result<Vec<&NamedLink>, StudyError> {
        match table.get("links") {
            Some(links) => links.list(|link| self.link(link)),
            None if !self.links.is_empty() => Ok(self.links.iter().collect()),
            None if self.drawn().draws(Parameter::RTT) => Ok(vec![&self.drawn_link]),
            None => Err(table.missing("links", "[link.NAME]")),
        }
    }

    fn explicit_cells(
        &self,
        measure: &Table,
        field: &Field,
        most: usize,
    ) -> Result<Vec<Cell>, StudyError> {
        const HEADER: &str = "[[measure.cell]]";
        let mut grid = ["links"].iter().chain(GRID.iter());
        if let Some(other) = grid.find_map(|key| measure.get(key)) {
            return Err(other.conflict(HEADER));
        }
        let mut cells = Vec::new();
        for table in field.tables(HEADER, &[names(keys::CELL), GRID.clone()].concat())? {
            let link = table.require("link", "link = \"NAME\"")?;
            let left = most - cells.len();
            let more = if link.is_table() {
                grid::cells(
                    &table,
                    &[&self.inline_link(&link, left)?],
                    &self.folder,
                    left,
                    self.drawn(),
                )?
            } else {
                let named = self.link(&link)?;
                grid::cells(&table, &[named], &self.folder, left, self.drawn())?
            };
            cells.extend(more);
        }
        Ok(cells)
    }

    fn inline_link(&self, field: &Field, most: usize) -> Result<NamedLink, StudyError> {
        let table = field.table(
            "link".to_owned(),
            &[names(keys::INLINE_LINK), LINK.clone()].concat(),
        )?;
        Ok(NamedLink {
            name: table.read("name", Field::text)?.map(str::to_owned),
            grid: grid::links(&table, &self.folder, most, self.drawn())?,
        })
    }

    fn arm(&self, field: &Field) -> Result<Arm, StudyError> {
        find("arm", field, &self.arms, |arm| &arm.name).cloned()
    }

    fn link(&self, field: &Field) -> Result<&NamedLink, StudyError> {
        find("link", field, &self.links, |link| {
            link.name.as_deref().unwrap_or_default()
        })
    }
}

/// Only of a population can a share resume.
fn check_arms(table: &Table, arms: &[Arm], cells: &[Cell]) -> Result<(), StudyError> {
    let mut sharing = arms
        .iter()
        .filter(|arm| matches!(arm.sessions, Sessions::Share { .. }));
    match sharing.next() {
        Some(arm) if cells.iter().any(|cell| cell.population.is_none()) => {
            Err(table.error(StudyProblem::Value(format!(
                "arm {:?}: a share of connections can resume only in a population: \
                 add [population], if only with resumes = \"0%\"",
                arm.name
            ))))
        }
        _ => Ok(()),
    }
}

/// The one of `known` that a field names.
fn find<'k, T>(
    kind: &'static str,
    field: &Field,
    known: &'k [T],
    name: impl Fn(&T) -> &str,
) -> Result<&'k T, StudyError> {
    let text = field.text()?;
    known
        .iter()
        .find(|known| name(known) == text)
        .ok_or_else(|| {
            let unknown = UnknownName::new(kind, text, known.iter().map(name));
            field.error(StudyProblem::Value(unknown.to_string()))
        })
}

fn arms(top: &Table, folder: &Path) -> Result<Vec<Arm>, StudyError> {
    let mut arms: Vec<Arm> = Vec::new();
    for field in top.require("arm", "[arm.NAME]")?.named_tables()? {
        // One that is called by what it says is as long as that.
        if field.key().parse::<Arm>().is_err() {
            field.check_length(field.key(), Study::LONGEST_NAME)?;
        }
        let table = field.table(format!("[arm.{}]", key(field.key())), &names(keys::ARM))?;
        let tls = table.require("tls", "tls = \"GROUP/CHAIN\"")?;
        let mut arm: Arm = tls.parse()?;
        if let Some(other) = arms.iter().find(|other| other.label == arm.label) {
            return Err(tls.error(StudyProblem::SameArm {
                name: field.key().to_owned(),
                other: other.name.clone(),
            }));
        }
        arm.name = field.key().to_owned();
        settle(&mut arm, folder);
        arms.push(arm);
    }
    Ok(arms)
}

/// What readers call arms. No two are called alike.
fn legends(top: &Table, arms: &[Arm]) -> Result<Vec<Legend>, StudyError> {
    let mut legends: Vec<Legend> = Vec::new();
    for field in top.require("arm", "[arm.NAME]")?.named_tables()? {
        let table = field.table(format!("[arm.{}]", key(field.key())), &names(keys::ARM))?;
        let line = |key, most| {
            table.read(key, |field| {
                let text = field.line()?;
                field.check_length(text, most)?;
                Ok(text.to_owned())
            })
        };
        let title = line("title", Study::LONGEST_TITLE)?;
        let about = line("about", Study::LONGEST_ABOUT)?;
        if let Some(title) = &title {
            let has_title = |other: &&Legend| other.title.as_ref() == Some(title);
            let named = arms
                .iter()
                .find(|arm| arm.name == *title && arm.name != field.key());
            let other = legends.iter().find(has_title).map(|other| &other.arm);
            if let Some(other) = other.or(named.map(|arm| &arm.name)) {
                return Err(table.error(StudyProblem::Value(format!(
                    "arm {other:?} is called {title:?}, too: give each a title of its own"
                ))));
            }
        }
        if title.is_some() || about.is_some() {
            legends.push(Legend {
                arm: field.key().to_owned(),
                title,
                about,
            });
        }
    }
    Ok(legends)
}

/// Lets the paths of an arm begin at `folder`.
fn settle(arm: &mut Arm, folder: &Path) {
    for chain in [Some(&mut arm.chain), arm.client_chain.as_mut()] {
        let Some(ArmChain::Pem(files)) = chain else {
            continue;
        };
        let chain = files.host().is_none().then_some(&mut files.chain);
        let paths = [chain, files.key.as_mut(), files.ca.as_mut()];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&path);
        }
    }
    for path in arm.delivery.paths_mut() {
        *path = folder.join(&path);
    }
}

/// `path` from the root of the file system, whether or not there is something.
fn absolute(path: &Path) -> PathBuf {
    // An empty path is none, but the current folder is meant.
    std::path::absolute(path.join(".")).unwrap_or_else(|_| path.to_owned())
}

fn links(
    top: &Table,
    folder: &StudyFolder,
    drawn: Drawn<'_>,
) -> Result<Vec<NamedLink>, StudyError> {
    let mut links = Vec::new();
    let Some(field) = top.get("link") else {
        return Ok(links);
    };
    let mut left = MOST_CELLS;
    for field in field.named_tables()? {
        let table = field.table(format!("[link.{}]", key(field.key())), &LINK)?;
        let grid = grid::links(&table, folder, left, drawn)?;
        left -= grid.len();
        links.push(NamedLink {
            name: Some(field.key().to_owned()),
            grid,
        });
    }
    Ok(links)
}

/// The connections of a sample, where a study does not say how many.
const USUAL: Connections = Connections::UpTo(1000);

/// `usual`, with what a table says otherwise.
fn sampling(table: &Table, usual: Experiment) -> Result<Experiment, StudyError> {
    let connections = table.read("connections", connections)?;
    let seed = table.read("seed", |field| field.whole(0..=Seed::MOST))?;
    let timeout = table.read("timeout", Field::duration)?;
    let concurrency = table.read("concurrency", |field| field.whole(1..=u32::MAX))?;
    let emulation = table.read("emulation", Field::parse)?;
    let quic_in = table.read("quic_in", Field::parse)?;
    Ok(Experiment {
        connections: connections.unwrap_or(usual.connections),
        seed: seed.map_or(usual.seed, Seed),
        timeout: timeout.unwrap_or(usual.timeout),
        concurrency: concurrency.or(usual.concurrency),
        emulation: emulation.unwrap_or(usual.emulation),
        quic_in: quic_in.unwrap_or(usual.quic_in),
        ..usual
    })
}

/// What a table says of it: what is usual depends on what is measured.
fn cpu(table: &Table) -> Result<Option<CpuTime>, StudyError> {
    table.read("cpu", Field::parse)
}

fn connections(field: &Field) -> Result<Connections, StudyError> {
    if field.is_table() {
        return until(field).map(Connections::Until);
    }
    if field.is_text() {
        field.parse()
    } else if field.is_integer() {
        field.whole(1..=Connections::MOST).map(Connections::Fixed)
    } else {
        Err(field.wrong_type("a whole number, \"up to 1000\" or \"until ±2%\""))
    }
}

fn until(field: &Field) -> Result<Until, StudyError> {
    let table = field.table("connections".to_owned(), &names(keys::UNTIL))?;
    let precision = table.require("until", "until = \"±2%\"")?.parse()?;
    let bound = |key| table.read(key, |field| field.whole(1..=Connections::MOST));
    let (least, most) = (bound("least")?, bound("most")?);
    // The usual bound gives way to the one that is given.
    let (least, most) = match (least, most) {
        (Some(least), Some(most)) => (least, most),
        (Some(least), None) => (least, least.max(Until::MOST)),
        (None, Some(most)) => (most.min(Until::LEAST), most),
        (None, None) => (Until::LEAST, Until::MOST),
    };
    match table.get("least") {
        Some(field) if least > most => Err(field.out_of_range(least, 1..=most)),
        _ => Ok(Until {
            precision,
            least,
            most,
        }),
    }
}

fn percentile(field: &Field) -> Result<Percentile, StudyError> {
    let percentile = format!("p{}", field.number()?).parse();
    percentile.map_err(|error: NoPercentile| field.error(StudyProblem::Value(error.to_string())))
}
