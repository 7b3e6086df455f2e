//! `lastbyte compare`.

use std::ffi::OsString;
use std::io::{self, Seek, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use lastbyte_link::format_duration;
use lastbyte_pki::Store;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::budgets::{Limit, facts_of, judge};
use super::draft::{Draft, check_folder, page_path};
use super::engine::{self, Carrier};
use super::inside::Inside;
use super::options::{Network, Pages, Sampling, option};
use super::progress::Bar;
use super::saved::SavedName;
use super::{
    Failure, arguments, detail, loads, own, print, print_document, print_json, screen, show, tell,
};
use lastbyte::lab::{self, CAPTURES, Ending, Interception, PreparedArm, Run, Shortcuts};
use lastbyte::report;
use lastbyte::report::study::Findings;
use lastbyte::results::rows::{Batch, CsvWriter, Origin};
use lastbyte::results::{
    Bound, Environment, Moment, Percentile, Sample, Spending, Summary, Threshold, Validity,
    write_rows,
};
use lastbyte::study::{
    Arm, ChainProfile, CpuTime, EngineChoice, Experiment, NamedNetwork, Parameter,
    check_comparison, check_metric, note_of_traffic,
};

pub(super) const DEFAULT_BASELINE: &str = "secp256r1/rsa-2048";
const RESULTS: &str = "Results";
pub(super) const DEFAULT_AGAINST: &str = "SecP256r1MLKEM768/ml-dsa-65";
/// The same of page loads: groups that browsers offer, roots that they take, and somebody's server.
const PAGE_BASELINE: &str = "x25519/ecdsa-p256/server=node";
const PAGE_AGAINST: &str = "X25519MLKEM768/ml-dsa-65+ml-dsa-65+ecdsa-p256/server=node";

#[derive(Debug, Args)]
pub(super) struct Compare {
    /// What is compared, the first with each of the others: [NAME=]GROUP/CHAIN[:BYTESB][/KEY=VALUE...], or a chain alone, which
    /// can be a PEM file, with its key or without, or a server: example.com:443
    /// [default: secp256r1/rsa-2048 SecP256r1MLKEM768/ml-dsa-65]
    #[arg(value_name = "ARM", value_parser = arguments::named, conflicts_with_all = ["baseline", "against"])]
    arms: Vec<Arm>,
    /// The same as an option: what others are compared with
    #[arg(long, value_name = "ARM", value_parser = arguments::named, hide_short_help = true)]
    baseline: Option<Arm>,
    /// What is compared with it; may be repeated, and with none, --baseline is measured alone
    #[arg(long, value_name = "ARM", value_parser = arguments::named, hide_short_help = true)]
    against: Vec<Arm>,
    #[command(flatten)]
    chains: arguments::Chains,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
    #[command(flatten, next_help_heading = "Page")]
    pages: Pages,
    #[command(flatten, next_help_heading = "Sampling")]
    sampling: Sampling,
    /// What carries the bytes
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        help_heading = "Sampling",
        value_parser = engine::names()
    )]
    engine: EngineChoice,
    /// Whether the virtual engine does what it does for speed alone
    #[arg(long, hide = true, default_value_t)]
    shortcuts: Shortcuts,
    /// How guests' calls are intercepted, and not the best way that this machine has
    #[arg(long, hide = true)]
    interception: Option<Interception>,
    #[command(flatten)]
    inside: Inside,
    /// The folder for captures
    #[arg(long, value_name = "DIR", default_value = CAPTURES, requires = "capture", help_heading = "See inside")]
    capture_to: PathBuf,
    /// How results are printed
    #[arg(long, default_value = "table", help_heading = RESULTS)]
    format: Format,
    /// Keep every connection (FILE.parquet, FILE.csv) or the JSON document (FILE.json)
    #[arg(short, long, value_name = "FILE", help_heading = RESULTS)]
    output: Option<Output>,
    /// Write a page that can be shared: the answer, figures and every number
    #[arg(long, value_name = "FILE.html", value_parser = page_path, help_heading = RESULTS)]
    report: Option<PathBuf>,
    /// Save the results under a name, in .lastbyte below the current folder, or as a file:
    /// ./FILE.parquet
    #[arg(long, value_name = "NAME", help_heading = RESULTS)]
    save: Option<SavedName>,
    /// Tell what has changed since results were saved
    #[arg(long, value_name = "NAME", help_heading = RESULTS)]
    compare_to: Option<SavedName>,
    /// Exit with 99 if a threshold is crossed: `ttlb.p75 > 10%`, `handshake.p90 > 300ms`,
    /// `ttlb.p75 > 2% since saved`; or if a chain needs more: `flights > 1`, `left < 500B`, `certificate > 16KB`
    #[arg(long, value_name = "THRESHOLD", value_delimiter = ',', help_heading = RESULTS)]
    fail_if: Vec<Limit>,
    /// Write what became of the thresholds as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    junit: Option<PathBuf>,
    /// Fail if a sample is invalid
    #[arg(long, help_heading = RESULTS)]
    strict: bool,
    /// Print all percentiles of all times, with what they consist of
    #[arg(short, long, help_heading = RESULTS)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
    Markdown,
}

/// A file to write, and what to write into it.
#[derive(Clone, Debug)]
struct Output {
    path: PathBuf,
    content: Content,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Parquet,
    Csv,
    Document,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let content = match path.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => Content::Parquet,
            Some("csv") => Content::Csv,
            Some("json") => Content::Document,
            _ => {
                return Err("name it .parquet or .csv, for every connection, or .json".to_owned());
            }
        };
        Ok(Self { path, content })
    }
}

/// Arms that differ in their chains, compared over networks: told in full, without computing, and each arm has what it says.
pub(super) struct Chains {
    pub(super) arms: Vec<Arm>,
    /// Of each arm over each network.
    pub(super) connections: u32,
    /// Networks by name.
    pub(super) named: Vec<&'static NamedNetwork>,
    /// What there is of networks besides, in the order in which it is told.
    pub(super) said: Vec<(Parameter, String)>,
}

impl Chains {
    /// As somebody would ask for it.
    pub(super) fn line(&self) -> Vec<String> {
        let mut line = [
            "lastbyte",
            "compare",
            "--verbose",
            "--cpu",
            CpuTime::None.name(),
            "--chain-profile",
            ChainProfile::Private.name(),
        ]
        .map(str::to_owned)
        .to_vec();
        for (index, arm) in self.arms.iter().enumerate() {
            let option = match index {
                0 => "--baseline",
                _ => "--against",
            };
            line.extend([option.to_owned(), arm.label.clone()]);
        }
        line.extend(["--connections".to_owned(), self.connections.to_string()]);
        for (parameter, value) in &self.said {
            line.extend([option(*parameter), value.clone()]);
        }
        if !self.named.is_empty() {
            let names: Vec<&str> = self.named.iter().map(|network| network.name).collect();
            line.extend(["--link".to_owned(), names.join(",")]);
        }
        line
    }

    /// The same as what the program makes of that line.
    pub(super) fn question(self) -> Compare {
        let mut arms = self.arms.into_iter();
        Compare {
            arms: Vec::new(),
            baseline: arms.next(),
            against: arms.collect(),
            chains: arguments::Chains::profiled(ChainProfile::Private),
            network: Network::of(self.named, &self.said),
            pages: Pages::none(),
            sampling: Sampling::without_computing(self.connections.into()),
            engine: EngineChoice::Auto,
            shortcuts: Shortcuts::default(),
            interception: None,
            inside: Inside::default(),
            capture_to: CAPTURES.into(),
            format: Format::Table,
            output: None,
            report: None,
            save: None,
            compare_to: None,
            fail_if: Vec::new(),
            junit: None,
            strict: false,
            verbose: true,
        }
    }
}

impl Compare {
    pub(super) fn run(mut self, arguments: &[OsString]) -> Result<(), Failure> {
        self.network.load(&self.pages);
        let arms = self.arms()?;
        let quic_in = self.sampling.quic_in;
        let chosen = engine::choose(self.engine, arms.iter().map(|arm| (arm, quic_in)))?;
        // Before the network is one of our own.
        own::fetch(&arms)?;
        if let Carrier::Live = chosen.engine {
            // Before anything else: it needs a process with one thread.
            lab::acquire()?;
        }
        let draft = |path| Draft::new(path);
        let output = self.output.as_ref().map(|output| &*output.path);
        let output = output.map(draft).transpose()?;
        let junit = self.junit.as_deref().map(draft).transpose()?;
        let page = self.report.as_deref().map(draft).transpose()?;
        let interrupt = interrupt().map_err(Failure::run)?;

        self.check_thresholds(&arms)?;
        let experiment = (self.network.experiment(arms, &self.sampling)).map_err(Failure::Usage)?;
        self.inside.check_loads([&experiment])?;
        let saved = self.compare_to.as_ref().map(SavedName::open).transpose()?;
        if let Some(saved) = &saved {
            saved.check(&experiment).map_err(Failure::usage)?;
        }
        let save = self.begin_saving()?;
        let percentiles = self.percentiles();
        let bar = Bar::new();
        let arms = prepare(&experiment.arms, &bar)?;
        check_comparison(&experiment.arms).map_err(Failure::usage)?;
        tell_notes(&experiment, &arms)?;
        let carrier = chosen.engine.intercepting(self.interception)?;
        let engine = carrier.set_up(arguments, self.shortcuts)?;
        if self.inside.captures() {
            check_folder(&self.capture_to)?;
        }
        let kept = self.inside.begin(&self.capture_to)?;
        for draft in [&output, &junit, &page].into_iter().flatten() {
            draft.check()?;
        }
        let run = engine::measure(
            engine.as_ref(),
            &experiment,
            &arms,
            &percentiles,
            &interrupt,
            &bar,
            Some(&kept.inspection),
        )?
        .whole()?;
        let kept = kept.finish();
        let environment = engine.environment();

        let mut summary = Summary::new(&experiment, &run.samples, &percentiles);
        if let Some(saved) = &saved {
            summary.compare_with(saved, &run.samples, environment);
        }
        let rows = Rows {
            experiment: &experiment,
            samples: &run.samples,
            environment,
        };
        let spending = self.spending(&summary);
        // Before any file: where one can't be written, what was measured is not lost.
        if self.engine == EngineChoice::Auto {
            tell(&chosen.reason);
        }
        self.print(&summary, environment)?;
        if let (Some(draft), Some(output)) = (output, &self.output) {
            draft.write(|out| match output.content {
                Content::Parquet => rows.write_parquet(out, None),
                Content::Csv => rows.write_csv(out),
                Content::Document => out.write_all(report::json(&summary, environment).as_bytes()),
            })?;
        }
        if let Some(draft) = page {
            let page = self.page(&rows, &run)?;
            draft.write(|out| out.write_all(page.as_bytes()))?;
        }
        if let Some(draft) = junit {
            let junit = self.junit(&summary, environment, &spending);
            draft.write(|out| out.write_all(junit.as_bytes()))?;
        }
        // What crosses a threshold was measured all the same.
        let is_complete = run.ending == Ending::Complete && self.check_samples(&summary).is_ok();
        if let Some(draft) = save.filter(|_| is_complete) {
            let now = SystemTime::now().into();
            draft.write(|out| rows.write_parquet(out, Some(now)))?;
        } else if self.save.is_some() {
            tell("nothing was saved");
        }
        self.verdict(&run, &summary, &spending)?;
        kept
    }

    fn begin_saving(&self) -> Result<Option<Draft<'_>>, Failure> {
        let Some(path) = self.save.as_ref().map(SavedName::place).transpose()? else {
            return Ok(None);
        };
        let earlier = self.compare_to.as_ref();
        let draft = if earlier.is_some_and(|earlier| earlier.is_at(path)) {
            // What was saved under a name gives way to what is saved under it now.
            Draft::replacing(path)
        } else {
            Draft::new(path)
        };
        draft.map(Some)
    }

    /// The percentiles to measure: a threshold can be of one that is not among the usual ones.
    fn percentiles(&self) -> Vec<Percentile> {
        let thresholds = self.thresholds().into_iter();
        let thresholds = thresholds.map(|threshold| threshold.percentile);
        Percentile::USUAL.into_iter().chain(thresholds).collect()
    }

    fn print(&self, summary: &Summary, environment: &Environment) -> Result<(), Failure> {
        match self.format {
            Format::Table => print(&format!(
                "{}{}",
                report::table(summary, screen(), detail(self.verbose)),
                report::assumed(summary, screen())
            )),
            Format::Json => print_json(&report::json(summary, environment)),
            Format::Csv => print_document(&report::csv(summary)),
            Format::Markdown => print_document(&report::markdown(summary)),
        }
    }

    fn page(&self, rows: &Rows<'_>, run: &Run) -> Result<String, Failure> {
        let mut findings = Findings::of(rows.experiment.clone(), rows.samples, rows.environment);
        if self.inside.captures() {
            findings.inside = show::closest_of(&findings, &self.capture_to)?;
        }
        findings.loads = loads::usual(&findings, &run.pages())?;
        Ok(report::study::page(&findings, None))
    }

    fn junit(&self, summary: &Summary, environment: &Environment, spending: &[Spending]) -> String {
        let samples = if self.strict {
            report::Samples::MustBeValid
        } else {
            report::Samples::AsTheyAre
        };
        report::junit(summary, environment, &self.thresholds(), spending, samples)
    }

    fn check_thresholds(&self, arms: &[Arm]) -> Result<(), Failure> {
        for threshold in self.thresholds() {
            check_metric(threshold.metric, arms).map_err(|problem| {
                Failure::Usage(format!("threshold \"{threshold}\": {problem}"))
            })?;
            let hint = match threshold.bound {
                Bound::Increase(_) if arms.len() == 1 => {
                    "is an increase over the baseline: name an arm with --against"
                }
                Bound::Change(_) if self.compare_to.is_none() => {
                    "is a change since saved results: name them with --compare-to"
                }
                _ => continue,
            };
            return Err(Failure::Usage(format!("threshold \"{threshold}\" {hint}")));
        }
        if self.junit.is_some() && self.fail_if.is_empty() && !self.strict {
            return Err(Failure::Usage(
                "--junit has nothing to tell: state what must hold with --fail-if or --strict"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn arms(&self) -> Result<Vec<Arm>, Failure> {
        let arms = if self.arms.is_empty() {
            self.arms_of_options()?
        } else {
            self.arms.iter().map(|arm| self.chains.of(arm)).collect()
        };
        arguments::check_once(&arms)?;
        Ok(arms)
    }

    fn arms_of_options(&self) -> Result<Vec<Arm>, Failure> {
        let is_of_page = self.pages.are_given();
        let usual = if is_of_page {
            [PAGE_BASELINE, PAGE_AGAINST]
        } else {
            [DEFAULT_BASELINE, DEFAULT_AGAINST]
        };
        let [usual_baseline, usual_against] = usual.map(str::parse::<Arm>);
        let usual_baseline = usual_baseline.map_err(Failure::usage)?;
        Ok(match (&self.baseline, self.against.as_slice()) {
            (None, []) => {
                let usual = [usual_baseline, usual_against.map_err(Failure::usage)?];
                let profiled = |arm: &Arm| {
                    if is_of_page {
                        // A page is of a site that browsers trust; the other pair is a paper's.
                        self.chains.of(arm)
                    } else {
                        self.chains.of_usual(arm)
                    }
                };
                usual.iter().map(profiled).collect()
            }
            (baseline, against) => {
                let baseline = baseline.as_ref().unwrap_or(&usual_baseline);
                let arms = [baseline].into_iter().chain(against);
                arms.map(|arm| self.chains.of(arm)).collect()
            }
        })
    }

    fn verdict(&self, run: &Run, summary: &Summary, spending: &[Spending]) -> Result<(), Failure> {
        if run.ending == Ending::Interrupted {
            return Err(Failure::Interrupted(
                "interrupted; the results above are those of the finished blocks".to_owned(),
            ));
        }
        let thresholds = self.thresholds();
        let crossings: Vec<_> = (thresholds.iter())
            .flat_map(|threshold| threshold.crossings(summary))
            .collect();
        let doubts = thresholds
            .iter()
            .flat_map(|threshold| threshold.doubts(summary));
        for doubt in doubts {
            tell(format_args!("can't tell: {doubt}"));
        }
        for crossing in &crossings {
            tell(format_args!("threshold crossed: {crossing}"));
        }
        let budgets = judge(spending);
        if !crossings.is_empty() {
            return Err(Failure::Threshold);
        }
        budgets?;
        self.check_samples(summary)
    }

    fn thresholds(&self) -> Vec<Threshold> {
        let limits = self.fail_if.iter();
        let thresholds = limits.filter_map(|limit| match limit {
            Limit::Threshold(threshold) => Some(*threshold),
            Limit::Budget(_) => None,
        });
        thresholds.collect()
    }

    /// What came of the budgets.
    fn spending(&self, summary: &Summary) -> Vec<Spending> {
        let limits = self.fail_if.iter();
        let budgets = limits.filter_map(|limit| match limit {
            Limit::Threshold(_) => None,
            Limit::Budget(budget) => Some(*budget),
        });
        let budgets: Vec<_> = budgets.collect();
        if budgets.is_empty() {
            Vec::new()
        } else {
            Spending::all(&budgets, &facts_of(&summary.experiment))
        }
    }

    fn check_samples(&self, summary: &Summary) -> Result<(), Failure> {
        let arms = summary.cells.iter().flat_map(|cell| &cell.arms);
        if arms.clone().all(|arm| arm.wire.is_none()) {
            return Err(none_completed(summary));
        }
        if self.strict
            && let Some(reason) = arms.into_iter().find_map(|arm| match &arm.validity {
                Validity::Invalid(reason) => Some(format!("{}: {reason}", arm.label)),
                Validity::Valid => None,
            })
        {
            return Err(Failure::Run(format!("invalid sample: {reason}")));
        }
        Ok(())
    }
}

/// What to mind of an experiment before it is measured.
fn tell_notes(experiment: &Experiment, arms: &[PreparedArm]) -> Result<(), Failure> {
    own::tell(&own::notes(arms));
    own::tell(&own::of_other_shape(&experiment.arms)?);
    own::tell(&experiment.har_notes());
    own::tell(experiment.jitter_note().as_slice());
    own::tell(note_of_traffic(&experiment.cells).as_slice());
    Ok(())
}

pub(super) fn prepare<'a>(
    arms: impl IntoIterator<Item = &'a Arm>,
    bar: &Bar,
) -> Result<Vec<PreparedArm>, Failure> {
    prepare_in(&own::store()?, arms, bar)
}

/// The same with chains of this store.
pub(super) fn prepare_in<'a>(
    store: &Store,
    arms: impl IntoIterator<Item = &'a Arm>,
    bar: &Bar,
) -> Result<Vec<PreparedArm>, Failure> {
    let prepare = |arm: &Arm| {
        bar.say(format!("chain of {}", arm.label));
        let prepared = PreparedArm::new(arm.clone(), store)?.tried()?;
        own::tell_replaced(arm, &prepared);
        Ok(prepared)
    };
    arms.into_iter().map(prepare).collect()
}

/// Tries one handshake in memory of each way in which arms may begin in a population, so that what can't be is
/// reported before anything is measured.
pub(super) fn try_sessions(store: &Store, experiment: &Experiment) -> Result<(), Failure> {
    let drawn = experiment
        .cells
        .iter()
        .filter(|cell| cell.population.is_some());
    for arm in &experiment.arms {
        // Cells of one kind of traffic draw the same.
        let mut tried = Vec::new();
        for session in drawn.clone().flat_map(|cell| arm.possible_sessions(cell)) {
            if !tried.contains(&session) {
                PreparedArm::new(arm.beginning(session).into_owned(), store)?.tried()?;
                tried.push(session);
            }
        }
    }
    Ok(())
}

/// Of a run whose connections all failed, with what most of the first arm's did.
pub(super) fn none_completed(summary: &Summary) -> Failure {
    let mut arms = summary.cells.iter().flat_map(|cell| &cell.arms);
    let most = arms.find_map(|arm| arm.failures.first());
    let why = most.map_or_else(String::new, |most| match most.cause {
        None => {
            let timeout = format_duration(summary.experiment.timeout);
            format!(": {most} after {timeout}, which is the timeout")
        }
        Some(_) => format!(": {most}"),
    });
    Failure::Run(format!("no connection completed{why}"))
}

/// A flag that Ctrl-C sets. A second Ctrl-C ends the process at once; the kernel
/// cleans up after it.
pub(super) fn interrupt() -> io::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupt))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupt))?;
    }
    Ok(interrupt)
}

/// The connections of a run, and all that they depend on.
struct Rows<'a> {
    experiment: &'a Experiment,
    samples: &'a [Sample],
    environment: &'a Environment,
}

impl Rows<'_> {
    fn write_parquet(
        &self,
        out: impl Write + Seek + Send,
        saved: Option<Moment>,
    ) -> io::Result<()> {
        write_rows(
            out,
            self.origin(),
            self.experiment,
            self.samples,
            self.environment,
            saved,
        )
    }

    fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let mut writer = CsvWriter::new(out)?;
        for sample in self.samples {
            writer.write(&Batch::new(self.origin(), self.experiment, sample)?)?;
        }
        writer.finish()
    }

    fn origin(&self) -> Origin<'_> {
        Origin {
            study: "compare",
            measure: "compare",
            engine: self.environment.engine,
        }
    }
}
