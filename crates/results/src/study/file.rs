//! How a study is written.
//!
//! ```toml
//! name = "slow links"          # the file's name without its ending
//! percentiles = [50, 75, 90]   # up to 99.9
//! engine = "auto"              # auto | live | virtual
//! folder = "."                 # where paths begin: from the folder of this file
//! connections = 1000           # of each sample; this and what follows can differ by measure
//! seed = 1
//! timeout = "300s"
//! concurrency = 20             # live only; else the engine's choice
//! emulation = "netem"          # virtual only: netem | link
//! cpu = "none"                 # virtual only: none | calibrated
//!
//! [arm.classical]              # the first arm is the baseline
//! tls = "secp256r1/rsa-2048"   # an arm as on the command line
//!
//! [link.lte-m]
//! rtt = "200ms"                # or `delay`, that of one direction
//! rate = "1mbit"               # without limit; or DOWN/UP: "50mbit/10mbit"
//! loss = ["0%", "3%"]          # 0%; lists make a grid
//! jitter = "0ms"
//! jitter_distribution = "normal"
//! queue = 1000
//! [link.lte-m.backward]        # or `forward`: what differs from the server to the client
//! loss = "0%"
//!
//! [[measure]]
//! id = "growth"
//! arms = ["classical"]         # all, in the order of the file
//! links = ["lte-m"]            # all, in the order of the file
//! preset = "network"           # network | published-2024, with which go gso = "on", tso = "off",
//!                              # buffers = "linux" and writes = "17B+26B+2B+8087B"
//! gso = "off"                  # off | on
//! congestion = "cubic"         # cubic | reno | bbr
//! client_initcwnd = 10
//! initcwnd = 20                # 10
//! mtu = 1500                   # 576 to 9000 bytes
//! timestamps = "on"            # off | on
//! buffers = "large"            # linux | large
//! tso = "on"                   # off | on
//! writes = "whole"             # whole | sizes of a server's writes, the last of which repeats
//! data = ["0KiB", "50KiB"]     # 0KiB
//!
//! [[figure]]
//! id = "fig10"
//! measure = "growth"
//! plot = "increase"            # increase | percentiles | cdf | table
//! x = "data"                   # link | rtt | rate | loss | jitter | queue | preset | gso | congestion
//!                              # | client_initcwnd | initcwnd | mtu | timestamps | buffers | tso
//!                              # | writes | requests | upload | data; without it,
//!                              # percentiles stand beside each other
//! facet = "loss"               # panels: as x, or a list
//! metric = "ttlb"              # ttlb; connect | handshake | ttfb | tls_handshake | dns_record
//! title = "Growth"             # made of what is drawn
//! arms = ["classical"]         # all
//! where = { data = "50KiB" }   # all cells; values may be lists, and tables may be in a list
//! pool = ["rtt"]               # connections that are pooled before percentiles are taken
//! percentiles = [50]           # those of the study
//! beside = "arithmetic"        # nothing; arithmetic, rules-of-thumb or both
//!
//! [[published]]                # numbers to set beside ours
//! source = "Table II"
//! figure = "fig10"             # where they are set; apart
//! measure = "growth"
//! arm = "classical"
//! what = "time"                # time | increase | slowdown | authentication | ratio | a message
//! metric = "ttlb"              # this, `where`, `pool` and `percentiles` as in a figure
//! within = 2                   # in percent of a time, in percentage points of all else
//! by = ["data"]                # the first values of a row; without it, `values = [990, 990, 990]`
//! rows = [["50KiB", 990, 990, 990]]
//! pool = ["loss"]              # each number is of one cell, or of several together
//! cause = "WORDS"              # why ours differ, if that is known
//!
//! [[claim]]                    # a statement, and what must hold for it
//! id = "small"
//! text = "WORDS"
//! [[claim.check]]              # `measure` to `percentiles` as in [[published]]
//! measure = "growth"
//! arm = "classical"
//! what = "slowdown"
//! than = { data = "0KiB" }
//! within = "..150"
//!
//! [[search]]                   # edges: sizes of chains at which a time steps
//! id = "edges"
//! arms = ["classical"]         # this, `links` and all keys of cells and of sampling but `cpu` as in [[measure]]
//! metric = "ttfb"
//! from = "2KB"                 # bytes of the Certificate message; where the chain is larger, from there
//! to = "100KB"
//! data = "1KiB"               # where there is no response, there is no first byte
//! sizes = 25                   # how many are looked at first, evenly spread
//! [[search.published]]         # edges that others found, of one server
//! source = "Figure 3"
//! edges = ["10KB", "40KB"]
//! note = "WORDS"               # what else there is to say
//! ```
//!
//! Where a key is absent, what is in its comment first holds; `id`, `tls`, `rtt`, a figure's
//! `measure` and `plot`, and all that `[[published]]` and `[[claim]]` have without saying otherwise, must be
//! there. A `slowdown` is the increase over the same arm in the cell that is alike but for
//! `than = { loss = "0%" }`, of `than_measure` if that is another one; `authentication` is the server's
//! Certificate and CertificateVerify in KB, and `client_hello`, `server_hello`, `certificate`,
//! `certificate_verify` or `server_messages` (the latter three together) are messages in bytes; a `ratio` is the increase as so many times that of the arm
//! `of`.
//!
//! A link with `network = "lte"` has what [`NamedNetwork`](super::NamedNetwork) says of that, so that `rtt` need not
//! be there; its other keys have the last word.
//!
//! The cells of a measure are those of its links in their order. In a link and in a measure, a key
//! changes faster than those that stand before it here; a link's `forward` and `backward` change
//! faster than all its other keys.
//!
//! `connections = "until ±2%"` measures each cell until the intervals of all that is reported of it reach no
//! further than 2 % of the percentile to either side, or two points of an increase. It is looked at after
//! `least` connections, after twice as many each time, and at last after `most`. So written, that is
//! `connections = { until = "±2%", least = 200, most = 10000 }`.
//!
//! A search pads the chains of its arms. Between two neighbouring sizes whose medians differ by more than half an
//! RTT, it halves the way until they are a byte apart. Where packets are lost or delayed at random, it stays with
//! the sizes of the first look, of which there should be many, with many connections each, and fits steps to them.
//!
//! Where a grid won't do, a measure has *explicit cells*, in the order in which they are reported.
//! Their `link` is a name, or a table with the keys of a link and the `name` that is reported:
//!
//! ```toml
//! [[measure.cell]]
//! link = "lte-m"
//! data = "50KiB"
//! [[measure.cell]]
//! link = { name = "lte-m", rtt = "180ms", rate = "1mbit" }
//! initcwnd = 20
//! ```
//!
//! What `[population]` names each connection draws, in every arm and cell alike; what it does not name is a grid as
//! above. A value alone is one for all; numbers are drawn as below, or with `least` and `most` as bounds:
//!
//! ```toml
//! [population]
//! connections_per_user = 5     # 1; they share what is drawn of the link
//! rtt = { median = "30ms", p95 = "120ms" }        # a log-normal distribution
//! rate = { values = ["10mbit", "100mbit"], weights = [1, 3] }
//! loss = { uniform = ["0%", "2%"] }
//! jitter = { mean = "1ms", most = "5ms" }         # an exponential one
//! data = { percentiles = { p0 = "1KiB", p50 = "20KiB", p100 = "2MiB" } }
//! requests = 2                 # queue, think and upload, too
//! resumes_least = "60%"        # whatever says who resumes, so many do
//! rtt_share = "50%"            # 100%: what is left of each RTT, as with an edge nearer by
//! class = { values = ["cdn", "other"] }           # what connections are sorted by
//! resumes = { cdn = "94%", other = "46%" }        # 0%; the share that resumes, or one for each class
//! early_data = "10%"           # 0%; the share of these that sends early data
//! ```
//!
//! `joint = "users.csv"`, or a list of such files, has rows that are drawn whole: CSV or Parquet with columns named as the
//! keys here (bare numbers as `rtt_ms`, `data_bytes`, `rate_bps` or `loss_percent`), `class`, `resumes` and `weight`;
//! `[population.joint]` is such a table in the study. `profile = "profile.toml"` begins with what stands in
//! `[population]` there.

mod drawn;
mod error;
mod grid;
mod population;
mod search;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub use error::{StudyError, StudyProblem};

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastbyte_link::Seed;

use self::drawn::Known;
use self::grid::{Drawn, GRID, LINK, NamedLink};
use self::table::{Field, Source, Table};
use self::write::key;
pub use self::write::quoted;
use super::{
    Arm, ArmChain, Cell, Connections, EngineChoice, Experiment, Measure, NoPercentile, Parameter,
    Percentile, Population, Sessions, Study, UnknownName, Until,
};

/// Cells of a study, at most.
const MOST_CELLS: usize = 100_000;

const TOP: &[&str] = &[
    "name",
    "percentiles",
    "engine",
    "folder",
    "arm",
    "link",
    "population",
    "measure",
    "figure",
    "published",
    "claim",
    "search",
];
const SAMPLING: &[&str] = &[
    "connections",
    "seed",
    "timeout",
    "concurrency",
    "emulation",
    "cpu",
];
const UNTIL: &[&str] = &["until", "least", "most"];
const MEASURE: &[&str] = &["id", "arms", "links", "cell"];

impl Study {
    /// Reads a study file.
    ///
    /// # Errors
    ///
    /// When the file can't be read or is no study: one line with the file, the line and the hint.
    pub fn load(path: &Path) -> Result<Study, StudyError> {
        let text = fs::read_to_string(path).map_err(|error| StudyError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        Study::parse(&text, path)
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
        let known = [TOP, SAMPLING].concat();
        let top = Table::new(source, String::new(), 0..0, document.get_ref(), &known)?;

        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = top.read("name", Field::text)?;
        let percentiles = top.read("percentiles", |field| field.list(percentile))?;
        let engine = top.read("engine", Field::parse)?;
        let folder = top.read("folder", Field::text)?.unwrap_or_default();
        let folder = absolute(&path.with_file_name(folder));
        let population =
            population::population(&top, &folder, path.parent().unwrap_or(Path::new("")))?;
        let file = File {
            usual: sampling(&top, Experiment::new(Vec::new(), Vec::new(), 1000))?,
            arms: arms(&top, &folder)?,
            links: links(&top, &folder, Drawn(population.as_ref()))?,
            drawn_link: NamedLink::drawn(),
            population,
            folder,
        };
        let measures = file.measures(&top)?;
        let searches = file.searches(&top)?;
        let percentiles = percentiles.unwrap_or_else(|| Percentile::USUAL.to_vec());
        let known = Known {
            arms: &file.arms,
            measures: &measures,
            percentiles: &percentiles,
        };
        let figures = known.figures(&top)?;
        let published = known.published(&top, &figures)?;
        let claims = known.claims(&top)?;
        Ok(Study {
            name: name.unwrap_or(&stem).to_owned(),
            path: path.to_owned(),
            text: text.to_owned(),
            figures,
            published,
            claims,
            measures,
            searches,
            percentiles,
            engine: engine.unwrap_or_default(),
            folder: file.folder,
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

/// What measures refer to.
struct File {
    /// An experiment without arms and cells.
    usual: Experiment,
    arms: Vec<Arm>,
    links: Vec<NamedLink>,
    /// Where a population draws all that there is to know of links.
    drawn_link: NamedLink,
    population: Option<Population>,
    folder: PathBuf,
}

impl File {
    fn measures(&self, top: &Table) -> Result<Vec<Measure>, StudyError> {
        const HEADER: &str = "[[measure]]";
        let mut measures: Vec<Measure> = Vec::new();
        let mut left = MOST_CELLS;
        let known = [MEASURE, &GRID, SAMPLING].concat();
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
        let id = table.require("id", "id = \"NAME\"")?.text()?.to_owned();
        let arms = self.arms_of(table)?;
        let cells = match table.get("cell") {
            Some(cells) => self.explicit_cells(table, &cells, most)?,
            None => {
                let links = self.links_of(table)?;
                grid::cells(table, &links, &self.folder, most, self.drawn())?
            }
        };
        let experiment = sampling(table, self.usual.clone())?;
        let population = self.population.as_ref().map(|population| {
            Arc::new(Population {
                seed: experiment.seed,
                ..population.clone()
            })
        });
        let with_population = |cell| Cell {
            population: population.clone(),
            ..cell
        };
        self.check_arms(table, &arms)?;
        Ok(Measure {
            id,
            experiment: Experiment {
                arms,
                cells: cells.into_iter().map(with_population).collect(),
                ..experiment
            },
        })
    }

    /// What the cells themselves must leave to the population.
    fn drawn(&self) -> Drawn<'_> {
        Drawn(self.population.as_ref())
    }

    /// Only of a population can a share resume.
    fn check_arms(&self, table: &Table, arms: &[Arm]) -> Result<(), StudyError> {
        let sharing = arms
            .iter()
            .find(|arm| matches!(arm.sessions, Sessions::Share { .. }));
        match sharing.filter(|_| self.population.is_none()) {
            Some(arm) => Err(table.error(StudyProblem::Value(format!(
                "arm {:?}: a share of connections can resume only in a population: \
                 add [population], if only with resumes = \"0%\"",
                arm.name
            )))),
            None => Ok(()),
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
        for table in field.tables(HEADER, &[&["link"], &GRID[..]].concat())? {
            let link = table.require("link", "link = \"NAME\"")?;
            let left = most - cells.len();
            let more = match link.is_table() {
                true => grid::cells(
                    &table,
                    &[&self.inline_link(&link, left)?],
                    &self.folder,
                    left,
                    self.drawn(),
                )?,
                false => {
                    let named = self.link(&link)?;
                    grid::cells(&table, &[named], &self.folder, left, self.drawn())?
                }
            };
            cells.extend(more);
        }
        Ok(cells)
    }

    fn inline_link(&self, field: &Field, most: usize) -> Result<NamedLink, StudyError> {
        let table = field.table("link".to_owned(), &[&["name"], &LINK[..]].concat())?;
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
        let table = field.table(format!("[arm.{}]", key(field.key())), &["tls"])?;
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

/// Lets the paths of an arm begin at `folder`.
fn settle(arm: &mut Arm, folder: &Path) {
    for chain in [Some(&mut arm.chain), arm.client_chain.as_mut()] {
        let Some(ArmChain::Pem(files)) = chain else {
            continue;
        };
        let paths = [
            Some(&mut files.chain),
            files.key.as_mut(),
            files.ca.as_mut(),
        ];
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

fn links(top: &Table, folder: &Path, drawn: Drawn<'_>) -> Result<Vec<NamedLink>, StudyError> {
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

/// `usual`, with what a table says otherwise.
fn sampling(table: &Table, usual: Experiment) -> Result<Experiment, StudyError> {
    let connections = table.read("connections", connections)?;
    let seed = table.read("seed", |field| field.whole(0..=u64::MAX))?;
    let timeout = table.read("timeout", Field::duration)?;
    let concurrency = table.read("concurrency", |field| field.whole(1..=u32::MAX))?;
    let emulation = table.read("emulation", Field::parse)?;
    let cpu = table.read("cpu", Field::parse)?;
    Ok(Experiment {
        connections: connections.unwrap_or(usual.connections),
        seed: seed.map_or(usual.seed, Seed),
        timeout: timeout.unwrap_or(usual.timeout),
        concurrency: concurrency.or(usual.concurrency),
        emulation: emulation.unwrap_or(usual.emulation),
        cpu: cpu.unwrap_or(usual.cpu),
        ..usual
    })
}

fn connections(field: &Field) -> Result<Connections, StudyError> {
    if field.is_table() {
        return until(field).map(Connections::Until);
    }
    match field.is_text() {
        true => field.parse::<Until>().map(Connections::Until),
        false => field.whole(1..=Connections::MOST).map(Connections::Fixed),
    }
}

fn until(field: &Field) -> Result<Until, StudyError> {
    let table = field.table("connections".to_owned(), UNTIL)?;
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
