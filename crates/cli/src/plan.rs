//! `lastbyte plan`.

mod users;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use lastbyte_link::{Probability, Seed};

use super::arguments::{self, Answer, Format};
use super::budgets::{self, Budgets};
use super::compare::{interrupt, prepare, try_sessions};
use super::draft::Draft;
use super::engine;
use super::progress::Bar;
use super::{Failure, own, print, screen};
use lastbyte::explain::{Explanation, OwnChain, Unknown, explain, explain_own, wire, wire_of_own};
use lastbyte::lab::{self, Ending, Engine, Shortcuts};
use lastbyte::plan::{
    self, Amounts, Arithmetic, Measured, NOTICEABLE, Plan, Setting, Tale, Transports, Unmixed,
    Usual, usual_path, usual_population,
};
use lastbyte::report::planned::{self, Origin, Planned};
use lastbyte::results::{Environment, Exchange, Facts, Metric, Need, Percentile};
use lastbyte::study::{
    Arm, ArmChain, Cell, CpuTime, EngineChoice, Experiment, Population, Preset, QuicIn, Study,
    StudyError, TransportName, arms_of_traffic, line_of_traffic, quoted,
};

/// What the web has in 2026: hybrid key exchange with a classical chain.
const TODAY: &str = "X25519MLKEM768/ecdsa-p256";
const RESULTS: &str = "Results";
const USERS: &str = "Users";
const LEVERS: &str = "Levers";

#[derive(Debug, Args)]
pub(super) struct Command {
    /// What is planned: an arm (GROUP/CHAIN[:BYTESB][/KEY=VALUE...]), a chain (ml-dsa-44), a PEM file, a server
    /// that is asked for its chain (example.com:443), or the size of a Certificate message (16KB)
    #[arg(value_name = "CHAIN")]
    planned: String,
    /// What there is today: the same
    #[arg(long, value_name = "CHAIN", default_value = TODAY)]
    today: String,
    #[command(flatten)]
    chains: arguments::Chains,
    /// Users as `lastbyte zeek -o` has them, or any file with [population]
    #[arg(long, value_name = "FILE.toml", help_heading = USERS)]
    profile: Option<PathBuf>,
    /// RTTs of users: CSV or Parquet with the column rtt_ms, as `lastbyte rtt --population` writes it. More columns, where they are
    /// known: class, weight, rate (21mbit/6mbit) or rate_bps, loss (0.5%) or loss_percent, jitter (5ms), data (20KiB) or data_bytes,
    /// resumes (true, false)
    #[arg(long, value_name = "FILE", conflicts_with = "users", help_heading = USERS)]
    rtt: Option<PathBuf>,
    /// Users by network or by RTT, each with its share: fibre=56,cable=14,lte=30 or 30ms=80%,80ms=15%,200ms=5%
    #[arg(long, value_name = "NAME=SHARE,...", value_parser = users::Mix::from_str, help_heading = USERS)]
    users: Option<users::Mix>,
    /// What their connections carry, in place of what is usual: web, mobile-web, social, cloud-api, video, updates, iot or mesh, or
    /// a file of your own. What --rtt says besides has the last word
    #[arg(long, value_name = "NAME|FILE.toml", value_parser = super::options::traffic(), conflicts_with = "profile", help_heading = USERS)]
    traffic: Option<String>,
    /// The share of connections over QUIC, rather than the profile's: who waits over TCP, over QUIC, and of all together
    #[arg(long, value_name = "SHARE", help_heading = USERS)]
    quic_share: Option<Probability>,
    /// Connections of one user
    #[arg(long, value_name = "N", help_heading = USERS)]
    connections_per_user: Option<NonZero<u32>>,
    /// The server's initial window today, in segments: Linux's own
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = USERS)]
    initcwnd: u32,
    /// Connections that are drawn
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Where all randomness comes from
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = super::options::seed())]
    seed: u64,
    /// How long users wait for what: handshake, ttfb or ttlb
    #[arg(long, value_name = "NAME", default_value = "ttfb")]
    metric: Noticeable,
    /// The initial window of the lever "window"
    #[arg(long, value_name = "N", default_value_t = Amounts::default().initcwnd, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = LEVERS)]
    try_initcwnd: u32,
    /// The share that resumes of the lever "resumption"
    #[arg(long, value_name = "SHARE", default_value_t = Amounts::default().resumes, help_heading = LEVERS)]
    try_resumes: Probability,
    /// What is left of each RTT with the lever "edge"
    #[arg(long, value_name = "SHARE", default_value_t = Amounts::default().rtt_share, help_heading = LEVERS)]
    try_rtt: Probability,
    #[command(flatten, next_help_heading = RESULTS)]
    budgets: Budgets,
    /// How it is told
    #[arg(long, default_value = "text", help_heading = RESULTS)]
    format: Format,
    /// Write the page (FILE.html) or the JSON document (FILE.json)
    #[arg(short, long, value_name = "FILE", help_heading = RESULTS)]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Noticeable {
    Handshake,
    Ttfb,
    Ttlb,
}

impl From<Noticeable> for Metric {
    fn from(felt: Noticeable) -> Metric {
        match felt {
            Noticeable::Handshake => Metric::Handshake,
            Noticeable::Ttfb => Metric::Ttfb,
            Noticeable::Ttlb => Metric::Ttlb,
        }
    }
}

/// The percentiles of differences that are told.
fn percentiles() -> Vec<Percentile> {
    let texts = ["p50", "p75", "p90", "p99"];
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

impl Command {
    pub(super) fn run(self, arguments: &[OsString]) -> Result<(), Failure> {
        let (population, usual) = self.population()?;
        let [today, planned] = arguments::pair([&self.today, &self.planned], self.chains)?;
        let [today, planned] = of_traffic([today, planned], &population)?;
        let shapes = own::of_other_shape(&[today.clone(), planned.clone()])?;
        let supposed = [own::notes_of(&today)?, own::notes_of(&planned)?, shapes].concat();
        check_differ(&today, &planned)?;
        let page = self.output.as_deref().map(arguments::content).transpose()?;
        let plan = self.plan(today, planned, population)?;

        let draft = self.draft()?;
        let judge = self.budgets.begin(budgets::Subject::Populations)?;
        let (metric, percentiles, seed) = (self.metric.into(), percentiles(), Seed(self.seed));
        let sizes = Sizes::of(&plan)?;
        let on_wire = |arm: &Arm| sizes.wire(arm);
        let arithmetic = Arithmetic::first(&plan, self.connections, &on_wire);
        let sources = [self.sources(), supposed].concat();
        let mut warnings = self.warnings(&plan);
        let transports = self.transports(|share| {
            let told = (metric, &percentiles[..], seed);
            let arithmetic = arithmetic.as_ref().map_err(Clone::clone)?;
            Transports::new(&plan, share, arithmetic, &on_wire, told)
        })?;
        let transports = transports.and_then(|answer| match answer {
            Ok(transports) => Some(transports),
            Err(warning) => {
                warnings.push(warning);
                None
            }
        });
        let command = arguments::command(arguments);
        let planned = |tale, origin| Planned {
            plan: &plan,
            tale,
            transports: transports.as_ref(),
            percentiles: &percentiles,
            usual: &usual,
            sources: &sources,
            warnings: &warnings,
            explained: sizes
                .explained
                .as_ref()
                .map(|[today, planned]| [today, planned]),
            origin,
            command: &command,
        };
        let answer = |planned: &Planned<'_>, printed: Option<&Planned<'_>>| {
            let answer = Answer {
                text: &|| planned::text(planned, printed, screen()),
                page: &|| planned::page(planned),
                document: &|| planned::json(planned),
            };
            answer.tell(draft.zip(page), self.format)?;
            judge.judge("lastbyte plan", &[facts(planned)])
        };
        let calculated = |arithmetic: &Arithmetic| arithmetic.tale(metric, &percentiles, seed);
        let with_levers =
            |arithmetic: Arithmetic| arithmetic.with_levers(&plan, self.connections, &on_wire);
        let arms = [&plan.today.arm, &plan.planned.arm].map(|arm| (arm, QuicIn::default()));
        let chosen = engine::choose(EngineChoice::Virtual, arms);
        let chosen = match chosen.and_then(|chosen| check_quic(&plan).map(|()| chosen)) {
            Ok(chosen) => chosen,
            // What comes after the first byte of a response over QUIC is no arithmetic.
            Err(failure) if metric == Metric::Ttlb && is_over_quic(&plan) => {
                return Err(failure);
            }
            // Arithmetic is all that there is.
            Err(failure) => {
                let tale = arithmetic.ok().map(with_levers);
                let tale = tale.and_then(|arithmetic| calculated(&arithmetic));
                let Some(tale) = tale.filter(Tale::is_of_any) else {
                    return Err(failure);
                };
                let reason = failure.message().unwrap_or("there is no kernel").to_owned();
                return answer(&planned(&tale, Origin::Arithmetic(&reason)), None);
            }
        };
        let engine = chosen.engine.set_up(arguments, Shortcuts::default())?;
        // What is there at once, before anything is measured.
        let at_once = arithmetic.as_ref().ok().and_then(calculated);
        let first = match (&at_once, self.format) {
            (Some(tale), Format::Text) => Some(planned(
                tale,
                Origin::Arithmetic("what is measured follows"),
            )),
            _ => None,
        };
        if let Some(first) = &first {
            print(&planned::first(first, screen()))?;
        }
        let arithmetic = arithmetic.map(with_levers);
        let interrupt = interrupt().map_err(Failure::run)?;
        let lab = Lab {
            engine: engine.as_ref(),
            interrupt: &interrupt,
            connections: self.connections,
            seed,
        };
        let tale = lab.tale(&plan, metric, &percentiles, arithmetic.ok().as_ref())?;
        let environment: &Environment = engine.environment();
        answer(
            &planned(&tale, Origin::Measured(environment)),
            first.as_ref(),
        )
    }

    /// Whose connections they are, and what was taken for granted of them.
    fn population(&self) -> Result<(Population, Vec<Usual>), Failure> {
        let own = self.population_text();
        let here = std::env::current_dir().map_err(Failure::run)?;
        let (population, usual) = usual_population(&own, &here).map_err(|error| match error {
            // A file that nobody has: what options say, as a study would say it.
            StudyError::Wrong { path, problem, .. } if path == usual_path(&here) => {
                Failure::usage(problem)
            }
            error => Failure::usage(error),
        })?;
        let population = Population {
            seed: Seed(self.seed),
            ..population
        };
        Ok((population, usual))
    }

    /// The plan, without the levers that can't be had.
    fn plan(&self, today: Arm, planned: Arm, population: Population) -> Result<Plan, Failure> {
        let cell = Cell {
            initcwnd: self.initcwnd,
            population: Some(population.into()),
            ..Cell::of(Preset::default())
        };
        let amounts = Amounts {
            initcwnd: self.try_initcwnd,
            resumes: self.try_resumes,
            rtt_share: self.try_rtt,
        };
        let mut plan = Plan::new(today, planned, cell, amounts);
        let store = own::store()?;
        plan.leave_out(|setting| {
            try_sessions(&store, &alone(setting))
                .err()
                .and_then(|failure| failure.message().map(str::to_owned))
        });
        Ok(plan)
    }

    /// What the share of connections over QUIC comes to, if there is one: an error of one that was asked for, and a warning where
    /// the profile has it.
    fn transports(
        &self,
        of: impl Fn(Probability) -> Result<Transports, Unmixed>,
    ) -> Result<Option<Result<Transports, String>>, Failure> {
        if let Some(share) = self.quic_share.filter(|share| *share != Probability::ZERO) {
            let asked = |problem| Failure::usage(format!("--quic-share {share}: {problem}"));
            return of(share)
                .map(|transports| Some(Ok(transports)))
                .map_err(asked);
        }
        let profile = match self.quic_share {
            None => self.profile.as_deref(),
            Some(_) => None,
        };
        let share = profile.map(Population::quic_share).transpose();
        let share = share.map_err(Failure::usage)?.flatten();
        let share = share.filter(|share| *share != Probability::ZERO);
        Ok(share.map(|share| {
            of(share).map_err(|problem| {
                format!("the profile's share over QUIC, {share}, is left out: {problem}")
            })
        }))
    }

    /// The file that is written, which must not be one that was read.
    fn draft(&self) -> Result<Option<Draft<'_>>, Failure> {
        let chains = [&self.planned, &self.today].map(Path::new);
        let tables = [&self.profile, &self.rtt]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path);
        let traffic = self.traffic.as_ref().map(Path::new);
        let inputs: Vec<&Path> = chains.into_iter().chain(tables).chain(traffic).collect();
        let output = self.output.as_deref();
        output.map(|path| Draft::beside(path, &inputs)).transpose()
    }

    /// What stands in `[population]` of what the user gave.
    fn population_text(&self) -> String {
        let mut text = String::new();
        if let Some(traffic) = &self.traffic {
            text += &line_of_traffic(traffic);
        }
        if let Some(profile) = &self.profile {
            text += &format!("profile = {}\n", quoted(profile.display()));
        }
        if let Some(rtt) = &self.rtt {
            text += &format!("joint = {}\n", quoted(rtt.display()));
        }
        if let Some(users) = &self.users {
            text += &users.population();
        }
        if let Some(connections) = self.connections_per_user {
            text += &format!("connections_per_user = {connections}\n");
        }
        text
    }

    fn sources(&self) -> Vec<String> {
        let told = |what: &str, path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            Some(format!("{what} {}", path.display()))
        };
        let users = self.users.as_ref();
        let all = [
            told("the profile", &self.profile),
            told("the RTTs in", &self.rtt),
            users.map(|users| format!("users: {users}")),
            (self.traffic.as_ref()).map(|traffic| format!("the traffic {traffic}")),
        ];
        all.into_iter().flatten().collect()
    }

    fn warnings(&self, plan: &Plan) -> Vec<String> {
        const FEW: u32 = 1000;
        let few = (self.connections < FEW).then(|| {
            format!(
                "{} connections are few to tell of a population: give at least --connections {FEW}",
                self.connections
            )
        });
        let is_example = self.profile.is_none() && self.rtt.is_none() && self.users.is_none();
        let example = is_example.then(|| {
            "no users were given (--users, --rtt or --profile): these are an example's, and not yours".to_owned()
        });
        let population = plan.today.cell.population.as_deref();
        let tables = population.map_or(&[][..], |population| &population.joint);
        let sorted = tables.iter().filter(|table| !table.classes().is_empty());
        let twice = (sorted.count() > 1).then(|| {
            "the profile and the RTTs both have classes: connections are told by those of the RTTs".to_owned()
        });
        few.into_iter().chain(example).chain(twice).collect()
    }
}

fn is_over_quic(plan: &Plan) -> bool {
    let settings = [&plan.today, &plan.planned];
    (settings.iter()).any(|setting| setting.arm.transport == TransportName::Quic)
}

/// Whether both settings can be measured, as far as QUIC decides it.
fn check_quic(plan: &Plan) -> Result<(), Failure> {
    for setting in [&plan.today, &plan.planned] {
        let study = Study::single("plan", alone(setting));
        lab::check_quic(&study).map_err(Failure::Usage)?;
    }
    Ok(())
}

/// Both arms as a population's traffic has them: where clients prove themselves, theirs do.
fn of_traffic(arms: [Arm; 2], population: &Population) -> Result<[Arm; 2], Failure> {
    let cell = Cell {
        traffic: population.traffic.clone(),
        ..Cell::default()
    };
    let arms = arms_of_traffic(arms.to_vec(), &[cell]).map_err(Failure::Usage)?;
    <[Arm; 2]>::try_from(arms).map_err(|_| Failure::Usage("two chains are planned with".to_owned()))
}

fn check_differ(today: &Arm, planned: &Arm) -> Result<(), Failure> {
    if today.label == planned.label {
        return Err(Failure::Usage(format!(
            "what is planned is what there is today, {}: name another with --today",
            today.label
        )));
    }
    Ok(())
}

/// What is known of the chain that is planned.
fn facts(planned: &Planned<'_>) -> Facts {
    let explained = planned.explained.as_ref();
    let explained =
        explained.and_then(|[_, explained]| budgets::facts(explained).into_iter().next());
    let all = planned.tale.planned.first();
    let waiting = all.and_then(|all| all.slower.iter().find(|slower| slower.step == NOTICEABLE));
    let mean = all.and_then(|all| all.mean);
    let mut needs = explained.map(|known| known.needs).unwrap_or_default();
    needs.extend(waiting.map(|waiting| (Need::Waiting, waiting.connections.value)));
    // Milliseconds are what differences are told in.
    needs.extend(mean.map(|mean| (Need::Mean, mean.value / 1e3)));
    Facts {
        of: planned.plan.planned.arm.name.clone(),
        place: String::new(),
        needs,
    }
}

/// What both chains put on the wire, by arithmetic.
struct Sizes {
    /// Of a chain in files, by the label of its arm.
    shown: Vec<(String, OwnChain)>,
    explained: Option<[Explanation; 2]>,
}

impl Sizes {
    fn of(plan: &Plan) -> Result<Sizes, Failure> {
        let arms = [&plan.today.arm, &plan.planned.arm];
        let mut shown = Vec::new();
        for arm in arms {
            if let ArmChain::Pem(files) = &arm.chain {
                shown.push((arm.label.clone(), own::sizes(files)?.0));
            }
        }
        let mut sizes = Sizes {
            shown,
            explained: None,
        };
        let cells = [Cell {
            population: None,
            ..plan.planned.cell.clone()
        }];
        let explained = arms.map(|arm| match sizes.shown(arm) {
            Some(shown) => explain_own(arm, shown, &cells),
            None => explain(arm, &cells),
        });
        if let [Ok(today), Ok(planned)] = explained {
            sizes.explained = Some([today, planned]);
        }
        Ok(sizes)
    }

    fn shown(&self, arm: &Arm) -> Option<&OwnChain> {
        let mut shown = self.shown.iter();
        shown.find_map(|(label, shown)| (*label == arm.label).then_some(shown))
    }

    fn wire(&self, arm: &Arm) -> Result<Exchange, Unknown> {
        match self.shown(arm) {
            Some(shown) => wire_of_own(arm, shown),
            None => wire(arm),
        }
    }
}

/// An experiment of nothing but a setting.
fn alone(setting: &Setting) -> Experiment {
    Experiment::new(vec![setting.arm.clone()], vec![setting.cell.clone()], 1)
}

/// Measures settings.
struct Lab<'a> {
    engine: &'a dyn Engine,
    interrupt: &'a AtomicBool,
    connections: u32,
    seed: Seed,
}

impl Lab<'_> {
    /// Measures what there is today, what is planned and each lever alone, and then levers
    /// together.
    fn tale(
        &self,
        plan: &Plan,
        metric: Metric,
        percentiles: &[Percentile],
        arithmetic: Option<&Arithmetic>,
    ) -> Result<Tale, Failure> {
        let alone = self.measure(&plan.alone())?;
        let mut tale = Tale::new(plan, metric, percentiles, self.seed, &alone)
            .filter(Tale::is_of_any)
            .ok_or_else(|| {
                Failure::Run(format!(
                    "no connection has come to its {metric}: ask for data, shorter RTTs, or another --metric"
                ))
            })?;
        if let (Some(arithmetic), [today, planned, ..]) = (arithmetic, &*alone) {
            tale.add_arithmetic(arithmetic, percentiles, self.seed, [today, planned]);
        }
        let together = self.measure(&plan.together(&tale.order()))?;
        tale.add_together(percentiles, self.seed, &alone, &together);
        Ok(tale)
    }

    /// The connections of each setting, in their order.
    fn measure(&self, settings: &[Setting]) -> Result<Vec<Measured>, Failure> {
        let mut measured = Vec::new();
        for (cell, settings) in plan::by_cell(settings) {
            measured.extend(self.measure_cell(cell, settings)?);
        }
        let place = |one: &Measured| settings.iter().position(|known| *known == one.setting);
        measured.sort_by_key(place);
        Ok(measured)
    }

    /// Those of one cell, each arm once.
    fn measure_cell(&self, cell: Cell, settings: Vec<Setting>) -> Result<Vec<Measured>, Failure> {
        let mut arms: Vec<Arm> = Vec::new();
        for setting in &settings {
            if !arms.iter().any(|arm| arm.label == setting.arm.label) {
                arms.push(setting.arm.clone());
            }
        }
        let experiment = Experiment {
            seed: self.seed,
            cpu: CpuTime::None,
            ..Experiment::new(arms, vec![cell], self.connections)
        };
        let bar = Bar::new();
        let prepared = prepare(&experiment.arms, &bar)?;
        try_sessions(&own::store()?, &experiment)?;
        let percentiles = percentiles();
        let run = engine::measure(
            self.engine,
            &experiment,
            &prepared,
            &percentiles,
            self.interrupt,
            &bar,
            None,
        )?
        .whole()?;
        if run.ending == Ending::Interrupted {
            return Err(Failure::Interrupted(
                "interrupted; nothing that was measured is kept, and what is printed above is arithmetic".to_owned(),
            ));
        }
        let sample_of = |setting: &Setting| {
            let mut arms = experiment.arms.iter();
            let arm = arms.position(|arm| arm.label == setting.arm.label)?;
            run.samples.iter().find(|sample| sample.arm == arm).cloned()
        };
        Ok(settings
            .into_iter()
            .filter_map(|setting| {
                let sample = sample_of(&setting)?;
                Some(Measured::new(setting, sample))
            })
            .collect())
    }
}
