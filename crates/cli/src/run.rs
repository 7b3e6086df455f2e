//! `lastbyte run`.

mod search;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use clap::Args;
use lastbyte_link::{counted, nearest, shell_word};
use lastbyte_pki::Store;

use self::search::Searching;
use super::compare::{interrupt, none_completed, prepare_in, try_sessions};
use super::engine::{self, Carrier, Chosen, choose};
use super::inside::Inside;
use super::progress::{Bar, rounded};
use super::{Failure, detail, own, print, screen, tell};
use lastbyte::kernel;
use lastbyte::lab::{
    self, AssignedShard, CAPTURES, Ending, Engine, Finished, Inspection, Interception, NoShard,
    PreparedArm, RunError, Runner, Shard, Shortcuts, Watcher,
};
use lastbyte::report;
use lastbyte::report::study::{Findings, answer_json, answer_text};
use lastbyte::results::{
    Action, Dataset, Environment, Folder, FolderError, GatherError, Gathered, Manifest, Start,
    Validity, file_name, gather,
};
use lastbyte::study::{Arm, BlockId, EngineChoice, Study, check_comparison};

/// Blocks of a run, each of which is known before the first is measured.
const MOST_BLOCKS: u64 = 10_000_000;

#[derive(Debug, Args)]
pub(super) struct Run {
    /// The study file
    #[arg(value_name = "STUDY.toml", required_unless_present = "gather")]
    study: Option<PathBuf>,
    /// The folder for the results [default: the study's name]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What carries the bytes [default: what the study says]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = engine::names()
    )]
    engine: Option<EngineChoice>,
    /// Measure only the I-th of N shards, or the one that Slurm's array or Kubernetes' indexed Job says (auto).
    /// --gather makes one run of all
    #[arg(long, value_name = "I/N|auto", default_value = "1/1")]
    shard: ShardChoice,
    /// Measure only these measures of the study, by their id; --resume without it goes on with the others
    #[arg(long, value_name = "MEASURE", value_delimiter = ',', conflicts_with_all = ["gather", "prepare"])]
    only: Vec<String>,
    /// Make one run of these folders, each of a shard
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["study", "shard", "resume", "dry_run", "engine"])]
    gather: Vec<PathBuf>,
    /// Make the arms' chains in the folder STUDY.chains beside the study, or in that of --chains, and end: every run of
    /// the study has them from there, on whatever machine, and makes none
    #[arg(long, conflicts_with_all = ["gather", "shard", "resume", "dry_run", "output"])]
    prepare: bool,
    /// Keep the arms' chains in this folder [default: STUDY.chains if it is there, else the user's cache]
    #[arg(long, value_name = "DIR")]
    chains: Option<PathBuf>,
    /// Go on with a run that has not come to its end
    #[arg(long)]
    resume: bool,
    /// Only tell what would be measured, and about how long it would take
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    inside: Inside,
    /// Fail if a sample is invalid
    #[arg(long)]
    strict: bool,
    /// Print all percentiles of all times, with what they consist of
    #[arg(short, long)]
    verbose: bool,
    /// Whether the virtual engine does what it does for speed alone
    #[arg(long, hide = true, default_value_t)]
    shortcuts: Shortcuts,
    /// How guests' calls are intercepted, and not the best way that this machine has
    #[arg(long, hide = true)]
    interception: Option<Interception>,
}

impl Run {
    pub(super) fn run(self, arguments: &[OsString]) -> Result<(), Failure> {
        if !self.gather.is_empty() {
            return self.gather(arguments);
        }
        let study = Study::load(self.study()).map_err(Failure::usage)?;
        own::check_study(arms(&study))?;
        if self.prepare {
            return self.prepare(&study);
        }
        self.inside.check_place(&self.path(&study))?;
        let measures = study.measures.iter();
        (self.inside).check_loads(measures.map(|measure| &measure.experiment))?;
        let shard = self.shard.read()?;
        let carrier = self.carrier(&study)?.intercepting(self.interception)?;
        let store = self.store()?;
        let engine = carrier.set_up_with(arguments, self.shortcuts, &store, None)?;
        engine.check(&study).map_err(Failure::Usage)?;
        engine.equip(&study)?;
        search::check(engine.as_ref(), &study)?;
        if self.inside.captures() {
            let folder = self.path(&study).join(CAPTURES);
            let inspection = self.inside.begin(&folder)?.inspection;
            let size = engine.block_size(&study);
            inspection.check(&study, size).map_err(Failure::Usage)?;
        }
        let size = study.size(engine.block_size(&study));
        if size.blocks > MOST_BLOCKS {
            return Err(Failure::Usage(format!(
                "{}: all {} connections would take {} blocks, and a run has at most {MOST_BLOCKS}: ask for fewer connections or cells, \
                 or make several studies of it",
                super::shown(self.study()),
                size.connections,
                size.blocks
            )));
        }
        let mut blocks = shard.blocks(&study, engine.block_size(&study));
        self.retain_only(&study, &mut blocks)?;
        if self.dry_run {
            return plan(&study, &store, engine.as_ref(), &blocks);
        }
        let take_folder = || self.take_folder(&study, engine.as_ref());
        let begun = self.resume.then(take_folder).transpose()?;
        if let Some(folder) = begun.as_ref().filter(|folder| folder.is_complete()) {
            // Whoever asks wants to know whether it can be used.
            Dataset::open(folder.path())?.samples()?;
            return print(&format!("{} is complete\n", super::shown(folder.path())));
        }
        // What can't be leaves no folder behind.
        let arms = prepare_all(&study, &store)?;
        tell_notes(&study, &arms);
        let kept = self.inside.begin(&self.path(&study).join(CAPTURES))?;
        let folder = begun.map_or_else(take_folder, Ok)?;
        let interrupt = interrupt().map_err(Failure::run)?;
        let work = Work {
            study: &study,
            engine: engine.as_ref(),
            arms: &arms,
            shard,
            interrupt: &interrupt,
            inspection: Some(&kept.inspection),
        };
        let measured = self.measure(&work, &blocks, &folder, &folder);
        let kept = kept.finish();
        let measured = measured?;
        kept?;
        let all = study.size(engine.block_size(&study)).blocks;
        let is_left = measured < all || !study.searches.is_empty();
        if !self.only.is_empty() && is_left {
            return print(&format!(
                "{}: {measured} of {} are measured: `lastbyte report {}` draws what is there, and `{}` goes on with what is left\n",
                folder.path().display(),
                counted(all, "block"),
                word(folder.path()),
                self.resume_command(&folder, shard)
            ));
        }
        // Without the other shards' looks, nobody knows which cells end early.
        if shard != Shard::WHOLE && measured < all {
            return print(&end_of_shard(&study, shard, &blocks, &folder, all));
        }
        let searching = Searching {
            run: &self,
            carrier: &carrier,
            arguments,
            interrupt: &interrupt,
        };
        let searched = searching.search_all(&study, &folder)?;
        folder
            .merge(&study)
            .map_err(|error| self.stopped(&folder, shard, error))?;
        // The first of its engines may be another: measures can be measured apart.
        let environment = Dataset::open(folder.path())?.manifest.environment;
        self.report(&folder, &environment)?;
        search::report(&searched, &folder)
    }

    /// Leaves only blocks of the measures that were asked for, if some were.
    fn retain_only(&self, study: &Study, blocks: &mut Vec<BlockId>) -> Result<(), Failure> {
        let ids = || study.measures.iter().map(|measure| measure.id.as_str());
        if let Some(unknown) = self.only.iter().find(|only| ids().all(|id| id != *only)) {
            return Err(Failure::Usage(format!(
                "--only {unknown:?}: {} has no such measure: {}",
                self.study().display(),
                nearest(unknown, ids())
            )));
        }
        if !self.only.is_empty() {
            let measures = &study.measures;
            blocks.retain(|block| {
                let measure = measures.get(block.measure);
                measure.is_some_and(|measure| self.asks_for(&measure.id))
            });
        }
        Ok(())
    }

    /// Whether a measure is one of those that are measured now.
    fn asks_for(&self, measure: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == measure)
    }

    /// The study file; whoever gathers has none.
    fn study(&self) -> &Path {
        self.study.as_deref().unwrap_or(Path::new(""))
    }

    /// The folder beside the study that its chains travel in.
    fn travelling(&self) -> PathBuf {
        self.study().with_extension("chains")
    }

    /// Where chains are. Those that travel with the study are nobody's to make but `--prepare`'s.
    fn store(&self) -> Result<Store, Failure> {
        let travelling = self.travelling();
        match &self.chains {
            Some(folder) => Ok(Store::open(folder)),
            None if travelling.is_dir() => Ok(Store::sealed(travelling)),
            None => own::store(),
        }
    }

    /// Makes the chains of a study's arms where every run of it finds them.
    fn prepare(&self, study: &Study) -> Result<(), Failure> {
        let folder = self.chains.clone().unwrap_or_else(|| self.travelling());
        let arms = prepare_all(study, &Store::open(&folder))?;
        own::tell(&own::notes(&arms));
        print(&format!(
            "{}: the chains of {}; take it along with {}\n",
            folder.display(),
            counted(arms.len(), "arm"),
            self.study().display()
        ))
    }

    /// Makes one run of shards.
    fn gather(&self, arguments: &[OsString]) -> Result<(), Failure> {
        let open = |error: GatherError| match error {
            GatherError::Folder(error) => of_shard(error),
            error => Failure::usage(error),
        };
        let first = self.gather.first().map(|shard| Dataset::open(shard));
        let first = first.transpose().map_err(of_shard)?;
        let name = first.map_or_else(String::new, |first| file_name(&first.study.name));
        let path = self.output.clone().unwrap_or_else(|| name.into());
        let gathered = gather(&self.gather, &path, arguments).map_err(open)?;
        for part in &gathered.damaged {
            tell(part);
        }
        let resume = format!("lastbyte run STUDY.toml -o {} --resume", word(&path));
        let shards = counted(self.gather.len(), "shard");
        if !gathered.missing.is_empty() || gathered.blocks == 0 {
            return Err(Failure::Run(format!(
                "{} of {shards} are gathered in {}, and {} missing: {}; measure what is missing with `{resume}`",
                counted(gathered.blocks, "block"),
                path.display(),
                counted(gathered.missing.len(), "block")
                    + if gathered.missing.len() == 1 {
                        " is"
                    } else {
                        " are"
                    },
                named(&gathered),
            )));
        }
        let mut measures = gathered.study.measures.iter();
        if measures.any(|measure| measure.experiment.has_early_ends())
            || !gathered.study.searches.is_empty()
        {
            // Whether cells show enough, and where edges are, is known from all shards together.
            return print(&format!(
                "{}: {shards} are gathered; finish it with `{resume}`\n",
                path.display()
            ));
        }
        gathered.folder.merge(&gathered.study).map_err(|error| {
            let kept = format!("what is gathered is kept: go on with `{resume}`");
            Failure::from(error).and(&kept)
        })?;
        let environment = Dataset::open(&path)?.manifest.environment;
        self.report(&gathered.folder, &environment)
    }

    fn carrier(&self, study: &Study) -> Result<Carrier, Failure> {
        let choice = self.engine.unwrap_or(study.engine);
        let measures = study.measures.iter();
        let asked = measures.filter(|measure| self.asks_for(&measure.id));
        // Searches come once all is measured.
        let searches = study.searches.iter().filter(|_| self.only.is_empty());
        let experiments = asked.map(|measure| &measure.experiment);
        let experiments = experiments.chain(searches.map(|search| &search.experiment));
        let arms = experiments
            .flat_map(|experiment| (experiment.arms.iter()).map(|arm| (arm, experiment.quic_in)));
        let Chosen { engine, reason } = choose(choice, arms)?;
        if choice == EngineChoice::Auto {
            tell(reason);
        }
        if let (Carrier::Live, false) = (&engine, self.dry_run) {
            // Before anything else: it needs a process with one thread.
            lab::acquire()?;
        }
        Ok(engine)
    }

    fn path(&self, study: &Study) -> PathBuf {
        let named = self.output.clone();
        named.unwrap_or_else(|| file_name(&study.name).into())
    }

    fn take_folder(&self, study: &Study, engine: &dyn Engine) -> Result<Folder, Failure> {
        let path = self.path(study);
        let start = if self.resume {
            Start::Resume
        } else {
            Start::Afresh
        };
        let environment = engine.environment().clone();
        let manifest = Manifest::new(study, engine.block_size(study), environment);
        // Where it can't be read, nothing is said of it.
        let program = std::env::current_exe().and_then(|program| kernel::sha256_of_file(&program));
        let manifest = match program {
            Ok(sha256) => manifest.by_program(sha256),
            Err(_) => manifest,
        };
        Ok(Folder::take(&path, study, manifest, start)?)
    }

    /// Measures those of `blocks` that are missing, and tells how many of all there are then. `whole` is the
    /// folder that the run goes on in.
    fn measure(
        &self,
        work: &Work<'_>,
        blocks: &[BlockId],
        folder: &Folder,
        whole: &Folder,
    ) -> Result<u64, Failure> {
        let Work {
            study,
            engine,
            arms,
            shard,
            interrupt,
            inspection,
        } = *work;
        let bar = Bar::new();
        let chains: HashMap<_, _> = (arms.iter())
            .map(|prepared| (prepared.arm.label.as_str(), prepared.digest()))
            .collect();
        let chain = |id: BlockId| {
            let arm = study
                .measures
                .get(id.measure)?
                .experiment
                .arms
                .get(id.arm)?;
            chains.get(arm.label.as_str()).cloned()
        };
        let finished = folder.finished(study, chain, |part| bar.warn(&part.to_string()))?;
        let missing: Vec<_> = (blocks.iter().copied())
            .filter(|id| !finished.contains(id))
            .collect();
        if missing.is_empty() {
            return Ok(finished.len() as u64);
        }
        let size = engine.block_size(study);
        let is_certain = missing.iter().all(|id| study.is_certain(*id, size));
        if !is_certain {
            bar.ends_early();
        }
        let runner = Runner {
            inspection,
            ..runner(study, engine, arms, interrupt, &bar)
        };
        let run = runner.run(&missing, folder);
        bar.finish();
        let run = run.map_err(|error| match error {
            RunError::Folder(error) => self.stopped(whole, shard, error),
            error => error.into(),
        })?;
        let asked = if is_certain {
            missing.len().to_string()
        } else {
            format!("up to {}", missing.len())
        };
        self.verdict(&run, &asked, whole, shard)?;
        Ok((finished.len() + run.measured) as u64)
    }

    fn verdict(
        &self,
        run: &Finished,
        asked: &str,
        folder: &Folder,
        shard: Shard,
    ) -> Result<(), Failure> {
        let resume = self.resume_command(folder, shard);
        match (run.ending, run.failed.len()) {
            (Ending::Interrupted, _) => Err(Failure::Interrupted(format!(
                "interrupted; {} of {asked} blocks are finished and kept: go on with `{resume}`",
                run.measured,
            ))),
            (Ending::Complete, 0) => Ok(()),
            (Ending::Complete, failed) => Err(Failure::Run(format!(
                "{failed} of {asked} blocks failed; the others are kept: try these again with `{resume}`"
            ))),
        }
    }

    /// The folder can't be written any more.
    fn stopped(&self, folder: &Folder, shard: Shard, error: FolderError) -> Failure {
        let resume = self.resume_command(folder, shard);
        let kept = format!("finished blocks are kept: go on with `{resume}`");
        Failure::from(error).and(&kept)
    }

    fn resume_command(&self, folder: &Folder, shard: Shard) -> String {
        let mut command = format!(
            "lastbyte run {} -o {} --resume",
            word(self.study()),
            word(folder.path())
        );
        // Writing to a String can't fail.
        if let Some(engine) = self.engine {
            let _ = write!(command, " --engine {engine}");
        }
        if let Some(chains) = &self.chains {
            let _ = write!(command, " --chains {}", word(chains));
        }
        if shard != Shard::WHOLE {
            let _ = write!(command, " --shard {shard}");
        }
        command
    }

    /// Prints the table of each measure, and keeps its document.
    fn report(&self, folder: &Folder, environment: &Environment) -> Result<(), Failure> {
        let data = Dataset::open(folder.path())?;
        let mut completed = false;
        let mut invalid = None;
        let findings = Findings::read(&data)?;
        for (index, summary) in findings.summaries.iter().enumerate() {
            let document = report::json(summary, environment);
            folder.keep_document(&data.study, index, &document)?;
        }
        // Programs read names of arms, people their titles.
        let findings = findings.titled();
        folder.keep_answer(&answer_json(&findings))?;
        print(&answer_text(&findings, screen()))?;
        for (measure, summary) in findings.study.measures.iter().zip(&findings.summaries) {
            print(&format!(
                "{}\n\n{}\n",
                measure.id,
                report::table(summary, screen(), detail(self.verbose))
            ))?;
            for arm in summary.cells.iter().flat_map(|cell| &cell.arms) {
                completed |= arm.wire.is_some();
                if let Validity::Invalid(reason) = &arm.validity {
                    invalid.get_or_insert(format!("{}: {}: {reason}", measure.id, arm.label));
                }
            }
        }
        print(&format!("Results: {}\n", super::shown(folder.path())))?;
        if !completed {
            return Err(match findings.summaries.first() {
                Some(summary) => none_completed(summary),
                None => Failure::Run("no connection completed".to_owned()),
            });
        }
        match invalid {
            Some(reason) if self.strict => Err(Failure::Run(format!("invalid sample: {reason}"))),
            _ => Ok(()),
        }
    }
}

/// A path as a word of a command.
fn word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

/// Which shard, or who says which.
#[derive(Clone, Copy, Debug)]
enum ShardChoice {
    Named(Shard),
    Auto,
}

impl FromStr for ShardChoice {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<ShardChoice, NoShard> {
        match text {
            "auto" => Ok(ShardChoice::Auto),
            text => text.parse().map(ShardChoice::Named),
        }
    }
}

impl ShardChoice {
    /// The shard; where a batch system says which, what was read is told.
    fn read(self) -> Result<Shard, Failure> {
        match self {
            ShardChoice::Named(shard) => Ok(shard),
            ShardChoice::Auto => {
                let read = Shard::from_environment(|name| std::env::var(name).ok());
                let AssignedShard { shard, by } = read.map_err(Failure::Usage)?;
                tell(format_args!("shard {shard}, as {by}"));
                Ok(shard)
            }
        }
    }
}

/// A shard that can't be read is as one that is missing: it can be measured again, on whatever machine.
fn of_shard(error: FolderError) -> Failure {
    match error {
        FolderError::Io {
            action: Action::Read,
            ..
        }
        | FolderError::Content { .. }
        | FolderError::Part(_) => Failure::run(error),
        error => error.into(),
    }
}

/// The first of the samples of which blocks are missing.
fn named(gathered: &Gathered) -> String {
    const NAMED: usize = 3;
    let mut names: Vec<String> = Vec::new();
    for id in &gathered.missing {
        let measure = gathered.study.measures.get(id.measure);
        let name = measure.and_then(|measure| {
            let (arm, cell) = (
                measure.experiment.arms.get(id.arm)?,
                measure.experiment.cells.get(id.cell)?,
            );
            Some(format!("{} of {} at {cell}", measure.id, arm.name))
        });
        let name = name.unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match more {
        0 => names.join("; "),
        more => format!("{}; and {more} more", names.join("; ")),
    }
}

/// What blocks are measured with.
#[derive(Clone, Copy)]
struct Work<'a> {
    study: &'a Study,
    engine: &'a dyn Engine,
    arms: &'a [PreparedArm],
    shard: Shard,
    interrupt: &'a AtomicBool,
    inspection: Option<&'a Inspection>,
}

/// What would be measured, and about how long it would take.
fn plan(
    study: &Study,
    store: &Store,
    engine: &dyn Engine,
    blocks: &[BlockId],
) -> Result<(), Failure> {
    let bar = Bar::new();
    let arms = prepare_all(study, store)?;
    let interrupt = AtomicBool::new(false);
    let runner = runner(study, engine, &arms, &interrupt, &bar);
    let size = engine.block_size(study);
    let certain = |blocks: &[BlockId]| -> Vec<BlockId> {
        let blocks = blocks.iter().copied();
        blocks.filter(|id| study.is_certain(*id, size)).collect()
    };
    let count = |blocks: &[BlockId]| span(certain(blocks).len(), blocks.len());
    let connections = |blocks: &[BlockId]| -> usize {
        let each = blocks.iter().map(|id| study.block(*id, size).len());
        each.sum()
    };
    let time = |blocks: &[BlockId]| {
        let certain = certain(blocks);
        let most = rounded(runner.expected(blocks));
        if certain.len() == blocks.len() {
            most
        } else {
            span(rounded(runner.expected(&certain)), most)
        }
    };
    let mut text = String::new();
    let mut of_cells: BTreeMap<_, Vec<BlockId>> = BTreeMap::new();
    for id in blocks {
        (of_cells.entry((id.measure, id.cell)).or_default()).push(*id);
    }
    for (index, measure) in study.measures.iter().enumerate() {
        let names = measure.experiment.arms.iter().map(|arm| arm.name.as_str());
        let names: Vec<_> = names.collect();
        let _ = writeln!(text, "{}: {}", measure.id, names.join(", "));
        for (cell, parameters) in measure.experiment.cells.iter().enumerate() {
            let blocks = of_cells.get(&(index, cell));
            let blocks = blocks.map_or(&[][..], Vec::as_slice);
            let (count, time) = (count(blocks), time(blocks));
            let count = counted(count, "block");
            let _ = writeln!(text, "  {parameters}: {count}, about {time}");
        }
    }
    let samples: BTreeSet<_> = blocks
        .iter()
        .map(|id| (id.measure, id.cell, id.arm))
        .collect();
    let cells: BTreeSet<_> = blocks.iter().map(|id| (id.measure, id.cell)).collect();
    let _ = writeln!(
        text,
        "\n{}, {}, {} in {}: about {} on the {} engine",
        counted(cells.len(), "cell"),
        counted(samples.len(), "sample"),
        counted(
            span(connections(&certain(blocks)), connections(blocks)),
            "connection"
        ),
        counted(count(blocks), "block"),
        time(blocks),
        engine.environment().engine,
    );
    text += &search::plan(study);
    print(&text)
}

fn runner<'a>(
    study: &'a Study,
    engine: &'a dyn Engine,
    arms: &'a [PreparedArm],
    interrupt: &'a AtomicBool,
    watcher: &'a dyn Watcher,
) -> Runner<'a> {
    Runner {
        study,
        engine,
        arms,
        interrupt,
        watcher,
        inspection: None,
    }
}

/// What to do next once a shard is measured, of a study of `all` blocks.
fn end_of_shard(
    study: &Study,
    shard: Shard,
    blocks: &[BlockId],
    folder: &Folder,
    all: u64,
) -> String {
    let place = folder.path().display();
    if blocks.is_empty() {
        return format!(
            "{place}: shard {shard} has nothing to measure, and no parts to copy: the study has {}, which others measure\n",
            counted(all, "block")
        );
    }
    format!(
        "{place}: shard {shard} is complete; once all are:\nlastbyte run --gather {} ... -o {}\n",
        word(folder.path()),
        file_name(&study.name)
    )
}

/// What to mind of a study before it is measured.
fn tell_notes(study: &Study, arms: &[PreparedArm]) {
    own::tell(&own::notes(arms));
    let measures = study.measures.iter();
    let notes = measures.flat_map(|measure| measure.experiment.har_notes());
    own::tell(&notes.collect::<Vec<_>>());
    let mut measures = study.measures.iter();
    let jitter = measures.find_map(|measure| measure.experiment.jitter_note());
    own::tell(jitter.as_slice());
}

/// The arms of a study, with their chains and stacks.
fn prepare_all(study: &Study, store: &Store) -> Result<Vec<PreparedArm>, Failure> {
    let bar = Bar::new();
    let of_arm = |arm: &Arm| {
        let prepared = prepare_in(store, [arm], &bar);
        prepared
            .map_err(|failure| failure.of(&format!("{}: arm {:?}", study.path.display(), arm.name)))
    };
    let prepared: Result<Vec<_>, Failure> = arms(study).into_iter().map(of_arm).collect();
    bar.finish();
    let prepared: Vec<PreparedArm> = prepared?.into_iter().flatten().collect();
    for measure in &study.measures {
        check_comparison(&measure.experiment.arms).map_err(|problem| {
            let (file, id) = (study.path.display(), &measure.id);
            Failure::Usage(format!("{file}: measure {id:?}: {problem}"))
        })?;
        try_sessions(store, &measure.experiment)?;
    }
    Ok(prepared)
}

/// The arms of all measures, each label once.
fn arms(study: &Study) -> Vec<&Arm> {
    let mut arms: Vec<&Arm> = Vec::new();
    for arm in study
        .measures
        .iter()
        .flat_map(|measure| &measure.experiment.arms)
    {
        if !arms.iter().any(|known| known.label == arm.label) {
            arms.push(arm);
        }
    }
    arms
}

/// What there is at least and at most: `500`, `500 to 20000`.
fn span<T: Display + PartialEq>(least: T, most: T) -> String {
    if least == most {
        most.to_string()
    } else {
        format!("{least} to {most}")
    }
}
