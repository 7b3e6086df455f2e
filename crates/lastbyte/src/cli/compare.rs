//! `lastbyte compare`.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use lastbyte_pki::Store;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::engine::{self, Engine};
use super::options::{Network, Sampling};
use super::progress::Bar;
use super::{Failure, print, style};
use crate::lab::{self, Ending, Engine as _, LiveEngine, PreparedArm, Run};
use crate::report;
use crate::results::rows::{Batch, CsvWriter, Origin};
use crate::results::{
    Bound, Environment, Percentile, Sample, Summary, Threshold, Validity, write_rows,
};
use crate::study::{Arm, EngineChoice, Experiment};

pub(super) const DEFAULT_BASELINE: &str = "secp256r1/rsa-2048";
const RESULTS: &str = "Results";
pub(super) const DEFAULT_AGAINST: &str = "SecP256r1MLKEM768/ml-dsa-65";

#[derive(Debug, Args)]
pub(super) struct Compare {
    /// The arm that others are compared with: GROUP/CHAIN[:BYTESB][/KEY=VALUE...]
    /// [default: secp256r1/rsa-2048]
    #[arg(long, value_name = "ARM")]
    baseline: Option<Arm>,
    /// An arm to compare; may be repeated [default: SecP256r1MLKEM768/ml-dsa-65]
    #[arg(long, value_name = "ARM")]
    against: Vec<Arm>,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
    #[command(flatten, next_help_heading = "Sampling")]
    sampling: Sampling,
    /// What carries the bytes
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        help_heading = "Sampling"
    )]
    engine: EngineChoice,
    /// How results are printed
    #[arg(long, default_value = "table", help_heading = RESULTS)]
    format: Format,
    /// Keep every connection (FILE.parquet, FILE.csv) or the JSON document (FILE.json)
    #[arg(short, long, value_name = "FILE", help_heading = RESULTS)]
    output: Option<Output>,
    /// Exit with 99 if a threshold is crossed: `ttlb.p75 > 10%`, `handshake.p90 > 300ms`
    #[arg(long, value_name = "THRESHOLD", value_delimiter = ',', help_heading = RESULTS)]
    fail_if: Vec<Threshold>,
    /// Fail if a sample is invalid
    #[arg(long, help_heading = RESULTS)]
    strict: bool,
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

impl Compare {
    pub(super) fn run(self, arguments: &[OsString]) -> Result<(), Failure> {
        let chosen = engine::choose(self.engine)?;
        if let Engine::Live = chosen.engine {
            // Before anything else: it needs a process with one thread.
            lab::acquire()?;
        }
        let output = self.output.as_ref().map(Draft::new).transpose()?;
        let interrupt = interrupt().map_err(Failure::run)?;

        let arms = self.arms()?;
        if let Some(threshold) = self
            .fail_if
            .iter()
            .find(|threshold| arms.len() == 1 && matches!(threshold.bound, Bound::Increase(_)))
        {
            return Err(Failure::Usage(format!(
                "threshold \"{threshold}\" is an increase over the baseline: name an arm with --against"
            )));
        }
        let experiment = (self.network.experiment(arms, &self.sampling)).map_err(Failure::Usage)?;
        // A threshold can be of a percentile that is not among the usual ones.
        let percentiles: Vec<_> = Percentile::USUAL
            .into_iter()
            .chain(self.fail_if.iter().map(|threshold| threshold.percentile))
            .collect();
        let bar = Bar::new();
        let arms = prepare(&experiment.arms, &bar)?;
        let (run, environment) = match chosen.engine {
            Engine::Live => {
                engine::check_live(&experiment)?;
                let run = LiveEngine::new(&experiment, &arms, &interrupt, &bar)
                    .telling(&percentiles)
                    .run();
                bar.finish();
                (run?, lab::environment(arguments))
            }
            Engine::Virtual(kernel) => {
                let engine = engine::virtual_engine(kernel, arguments)?;
                let run = engine::run_in_passing(
                    &engine,
                    &experiment,
                    &arms,
                    &percentiles,
                    &interrupt,
                    &bar,
                );
                bar.finish();
                (run?, engine.environment().clone())
            }
        };

        let summary = Summary::new(&experiment, &run.samples, &percentiles);
        if let Some(draft) = output {
            draft.write(&experiment, &run, &summary, &environment)?;
        }
        if self.engine == EngineChoice::Auto {
            let _ = writeln!(io::stderr(), "lastbyte: {}", chosen.reason);
        }
        print(&match self.format {
            Format::Table => report::table(&summary, style()),
            Format::Json => report::json(&summary, &environment),
            Format::Csv => report::csv(&summary),
            Format::Markdown => report::markdown(&summary),
        })?;
        self.verdict(&run, &summary)
    }

    fn arms(&self) -> Result<Vec<Arm>, Failure> {
        let default = |label: &str| label.parse::<Arm>().map_err(Failure::usage);
        let mut arms = match &self.baseline {
            Some(baseline) => vec![baseline.clone()],
            None => vec![default(DEFAULT_BASELINE)?],
        };
        match (&self.baseline, self.against.as_slice()) {
            (None, []) => arms.push(default(DEFAULT_AGAINST)?),
            (_, against) => arms.extend_from_slice(against),
        }
        for (index, arm) in arms.iter().enumerate() {
            if arms[..index].iter().any(|other| other.label == arm.label) {
                return Err(Failure::Usage(format!(
                    "arm \"{}\" is given twice: name each once",
                    arm.label
                )));
            }
        }
        Ok(arms)
    }

    fn verdict(&self, run: &Run, summary: &Summary) -> Result<(), Failure> {
        if run.ending == Ending::Interrupted {
            let _ = writeln!(
                io::stderr(),
                "lastbyte: interrupted; the results above are those of the finished blocks"
            );
            return Err(Failure::Interrupted);
        }
        let crossings: Vec<_> = (self.fail_if.iter())
            .flat_map(|threshold| threshold.crossings(summary))
            .collect();
        for crossing in &crossings {
            let _ = writeln!(io::stderr(), "lastbyte: threshold crossed: {crossing}");
        }
        if !crossings.is_empty() {
            return Err(Failure::Threshold);
        }
        let arms = summary.cells.iter().flat_map(|cell| &cell.arms);
        if arms.clone().all(|arm| arm.wire.is_none()) {
            return Err(Failure::Run("no connection completed".to_owned()));
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

pub(super) fn prepare<'a>(
    arms: impl IntoIterator<Item = &'a Arm>,
    bar: &Bar,
) -> Result<Vec<PreparedArm>, Failure> {
    let store = Store::open(Store::default_dir().map_err(Failure::usage)?);
    let prepare = |arm: &Arm| {
        bar.say(format!("chain of {}", arm.label));
        Ok(PreparedArm::new(arm.clone(), &store)?.tried()?)
    };
    arms.into_iter().map(prepare).collect()
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

/// A file that takes its name once it is complete, so that an earlier one is never lost
/// to a run that fails.
struct Draft<'a> {
    output: &'a Output,
    file: tempfile::NamedTempFile<File>,
}

impl<'a> Draft<'a> {
    /// Before anything is measured, so that a place that can't be written is told at once.
    fn new(output: &'a Output) -> Result<Self, Failure> {
        let folder = match output.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if output.path.is_dir() {
            return Err(cannot_write(output, "it is a folder"));
        }
        if !folder.is_dir() {
            let problem = format!("there is no folder \"{}\": make it first", folder.display());
            return Err(cannot_write(output, problem));
        }
        let file = tempfile::Builder::new()
            .prefix(".lastbyte-")
            // Less the umask, as for any file that a user makes.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| cannot_write(output, error))?;
        Ok(Self { output, file })
    }

    fn write(
        mut self,
        experiment: &Experiment,
        run: &Run,
        summary: &Summary,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let origin = Origin {
            study: "compare",
            measure: "compare",
            engine: &environment.engine,
        };
        let mut out = BufWriter::new(self.file.as_file_mut());
        let written = match self.output.content {
            Content::Parquet => write_rows(
                &mut out,
                origin,
                experiment,
                &run.samples,
                environment,
                None,
            ),
            Content::Csv => write_csv(&mut out, origin, experiment, &run.samples),
            Content::Document => out.write_all(report::json(summary, environment).as_bytes()),
        };
        written
            .and_then(|()| out.flush())
            .map_err(|error| cannot_write(self.output, error))?;
        drop(out);
        self.file
            .persist(&self.output.path)
            .map_err(|error| cannot_write(self.output, error.error))?;
        Ok(())
    }
}

fn write_csv(
    out: impl Write,
    origin: Origin<'_>,
    experiment: &Experiment,
    samples: &[Sample],
) -> io::Result<()> {
    let mut writer = CsvWriter::new(out)?;
    for sample in samples {
        writer.write(&Batch::new(origin, experiment, sample)?)?;
    }
    writer.finish()
}

fn cannot_write(output: &Output, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!(
        "can't write \"{}\": {error}",
        output.path.display()
    ))
}
