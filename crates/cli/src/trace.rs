//! `lastbyte trace`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use lastbyte_link::cellular::{Begins, Generation, Motion, Radio, Share, Signal};
use lastbyte_link::{
    Passes, Probability, Seed, Side, Trace, format_duration, parse_duration, shell_word,
};

use super::draft::Draft;
use super::one_of::one_of;
use super::{Failure, options, print, shown};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make rate traces of a user of LTE, by a stated model
    Lte(Make),
    /// Make rate traces of a user of 5G, by a stated model
    #[command(name = "5g")]
    Nr(Make),
    /// Tell what rate traces carry, in Mahimahi's format
    Show {
        /// In Mahimahi's format, one direction each
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

/// Makes rate traces in Mahimahi's format, for `compare --trace`. Each number of the model, with its source, is in docs/links.md.
#[derive(Debug, Args)]
pub(super) struct Make {
    /// The file of what can go down, to the user
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The file of what the same user can send up
    #[arg(long, value_name = "FILE")]
    up: Option<PathBuf>,
    /// How long the trace is, after which it begins again
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = length)]
    length: Duration,
    /// How well the user hears the cell: good (20 dB over noise and other cells), fair (10 dB), edge (2 dB)
    #[arg(long, value_name = "NAME", default_value = "fair", value_parser = signals())]
    signal: Signal,
    /// How the user moves: standing, walking (3 km/h), driving (30 km/h); whoever moves passes houses, and changes cells each 500 m
    #[arg(long, value_name = "NAME", default_value = "walking", value_parser = motions())]
    motion: Motion,
    /// How wide the cell's carrier is: 1.4MHz to 20MHz of LTE, 10MHz to 100MHz of 5G [default: the widest]
    #[arg(long, value_name = "WIDTH")]
    bandwidth: Option<String>,
    /// What the user gets of the cell, whose rest others have
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = share)]
    share: Share,
    /// Begins with an idle radio, which connects before anything goes: for traces that are used `once`
    #[arg(long)]
    idle: bool,
    /// Where all randomness comes from: each is another user
    #[arg(long, value_name = "N", default_value = "1", value_parser = options::seed())]
    seed: u64,
}

fn signals() -> impl TypedValueParser<Value = Signal> {
    one_of(Signal::ALL.map(Signal::name), str::parse)
}

fn motions() -> impl TypedValueParser<Value = Motion> {
    one_of(Motion::ALL.map(Motion::name), str::parse)
}

fn length(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_secs(1);
    const MOST: Duration = Duration::from_secs(3600);
    let length = parse_duration(text).map_err(|error| error.to_string())?;
    if !(LEAST..=MOST).contains(&length) {
        return Err(format!("{text} is not from 1s to 3600s"));
    }
    if length.subsec_nanos() % 1_000_000 != 0 {
        return Err(format!("{text} is no whole number of milliseconds"));
    }
    Ok(length)
}

fn share(text: &str) -> Result<Share, String> {
    let share: Probability = text.parse().map_err(|error| format!("{error}"))?;
    Share::new(share).ok_or_else(|| format!("{text} is nothing of a cell: write 0.0001% or more"))
}

impl Command {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Lte(make) => make.run(Generation::Lte),
            Command::Nr(make) => make.run(Generation::Nr),
            Command::Show { files } => {
                let lines = files.iter().map(|file| Ok(carried(&read(file)?)));
                print(&lines.collect::<Result<String, Failure>>()?)
            }
        }
    }
}

impl Make {
    fn run(self, generation: Generation) -> Result<(), Failure> {
        let radio = self.radio(generation)?;
        let down = (&*self.output, Side::Client);
        let up = self.up.as_deref().map(|file| (file, Side::Server));
        // Both names are taken before either file is made.
        let drafts = [Some(down), up].into_iter().flatten();
        let drafts = drafts.map(|(file, toward)| Ok((Draft::new(file)?, toward)));
        let drafts: Vec<_> = drafts.collect::<Result<_, Failure>>()?;
        let mut made = Vec::new();
        for (draft, toward) in &drafts {
            made.push(self.trace(&radio, draft.path(), *toward)?);
        }
        let mut text = String::new();
        for ((draft, _), trace) in drafts.into_iter().zip(&made) {
            text += &carried(trace);
            draft.write(|out| {
                let mut lines = trace.opportunities().iter();
                lines.try_for_each(|at| writeln!(out, "{at}"))
            })?;
        }
        print(&format!("{text}\n{}\n", self.command()))
    }

    fn radio(&self, generation: Generation) -> Result<Radio, Failure> {
        let widest = generation.bandwidths().last().copied();
        let bandwidth = match (&self.bandwidth, widest) {
            (None, Some(widest)) => widest,
            (text, _) => generation
                .bandwidth(text.as_deref().unwrap_or_default())
                .map_err(|error| Failure::Usage(format!("--bandwidth: {error}")))?,
        };
        Ok(Radio {
            generation,
            bandwidth,
            signal: self.signal,
            motion: self.motion,
            share: self.share,
            begins: if self.idle {
                Begins::Idle
            } else {
                Begins::Connected
            },
        })
    }

    fn trace(&self, radio: &Radio, file: &Path, toward: Side) -> Result<Trace, Failure> {
        let trace = radio.trace(
            &file.to_string_lossy(),
            toward,
            Seed(self.seed),
            self.length,
        );
        trace.ok_or_else(|| {
            Failure::Usage(format!(
                "{} of this has more than {} packets, which a trace has at most: shorten --for, or take less by --share",
                format_duration(self.length),
                Trace::MOST
            ))
        })
    }

    /// What measures over both files.
    fn command(&self) -> String {
        let files = [Some(&self.output), self.up.as_ref()];
        let once = if self.idle { " once" } else { "" };
        let names = files.into_iter().flatten();
        let names = names.map(|file| format!("{}{once}", file.display()));
        let both = names.collect::<Vec<_>>().join(":");
        format!(
            "lastbyte compare --emulation link --trace {}",
            shell_word(&both)
        )
    }
}

fn read(file: &Path) -> Result<Trace, Failure> {
    let text = lastbyte_files::read(file, Trace::MOST_BYTES)
        .map_err(|error| Failure::Usage(format!("can't read \"{}\": {error}", file.display())))?;
    Trace::parse(&file.to_string_lossy(), Passes::Looped, &text).map_err(Failure::usage)
}

/// What a trace carries, in a line.
fn carried(trace: &Trace) -> String {
    let mut seconds = trace.bits_by_second();
    seconds.sort_unstable();
    let by_second = match seconds.len() {
        0 | 1 => String::new(),
        count => {
            // The nearest rank.
            let percentile = |percent: usize| {
                let rank = (percent * count).div_ceil(100).max(1);
                megabits(seconds.get(rank - 1).copied().unwrap_or_default())
            };
            format!(
                "; its seconds {} (p5), {} (p50), {} (p95)",
                percentile(5),
                percentile(50),
                percentile(95)
            )
        }
    };
    format!(
        "{}: {} of {} Mbit/s in the mean{by_second}; at most {} without a packet\n",
        shown(Path::new(trace.name())),
        format_duration(trace.period()),
        megabits(trace.mean_rate().bits_per_second()),
        format_duration(trace.longest_gap())
    )
}

/// Bits a second in Mbit/s, to three digits where there are so many.
fn megabits(bits: u64) -> String {
    let rate = bits as f64 / 1e6;
    match rate {
        100.0.. => format!("{rate:.0}"),
        10.0.. => format!("{rate:.1}"),
        _ => format!("{rate:.2}"),
    }
}
