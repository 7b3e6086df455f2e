//! `lastbyte load`.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Args, value_parser};
use lastbyte::explain::load::{
    Arrivals, BEGIN, Computing, Mix, PerSecond, Point, Waits, at_rate, in_storm,
};
use lastbyte::lab::calibration::{Calibration, Effort};
use lastbyte::lab::load::LiveLoadError;
use lastbyte::lab::{self, PreparedArm};
use lastbyte::report::loaded::{self, LivePoint, Loaded, LoadedArm, Storm};
use lastbyte::study::{Arm, TransportName};
use lastbyte_link::{Probability, Seed};
use lastbyte_sizes::Resumption;

use super::arguments::{self, Format};
use super::compare::{interrupt, prepare};
use super::options;
use super::progress::Bar;
use super::{Failure, own, print, print_json, screen, tell};

#[derive(Debug, Args)]
pub(super) struct Load {
    /// Whose handshakes: [NAME=]GROUP/CHAIN[:BYTESB][/KEY=VALUE...], as `compare` takes it, or a chain alone: ml-dsa-65
    #[arg(value_name = "ARM", required = true, value_parser = arguments::named)]
    arms: Vec<Arm>,
    #[command(flatten)]
    chains: arguments::Chains,
    /// Cores of the server [default: those of this machine; with --live all but one]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MOST_CORES))]
    cores: Option<u32>,
    /// Handshakes that begin a second: 500/s,2000/s [default: 10, 50, 80, 90 and 95 % of what the slowest arm's server can, to three digits]
    #[arg(long, value_name = "RATE,...", value_delimiter = ',')]
    rate: Vec<PerSecond>,
    /// The share of handshakes that resume a session
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    resumes: Probability,
    /// All of so many clients come again, in place of rates: what a deployment or an outage does
    #[arg(long, value_name = "CLIENTS", conflicts_with_all = ["rate", "live"], value_parser = value_parser!(u32).range(1..=MOST_HANDSHAKES as i64))]
    storm: Option<u32>,
    /// The time within which they come, each at any moment of it
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "storm", value_parser = within)]
    within: Duration,
    /// Has this machine's cores serve such handshakes as well, by the same schedule: one thread a core, in memory
    #[arg(long)]
    live: bool,
    /// Handshakes at each rate, of which the first tenth is not counted [default: 200000; with --live 2000]
    #[arg(long, value_name = "N", conflicts_with = "storm", value_parser = value_parser!(u32).range(10..=MOST_HANDSHAKES as i64))]
    handshakes: Option<u32>,
    /// Where all randomness comes from
    #[arg(long, value_name = "N", default_value = "1", value_parser = options::seed())]
    seed: u64,
    /// How it is printed
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
}

/// More in one process serve nobody.
const MOST_CORES: i64 = 65_536;
/// A queue of ten millions takes a gigabyte.
const MOST_HANDSHAKES: u32 = 10_000_000;
/// Each of them has a client that is made before.
const MOST_LIVE: u32 = 50_000;
/// A rate in real time.
const LONGEST_LIVE: Duration = Duration::from_secs(3600);
/// A table that nobody reads to its end.
const MOST_RATES: usize = 100;
/// Of each way to begin, so that some are slower than 99.9 %.
const MEASURED: u32 = 4000;
const MEASURED_WITHIN: Duration = Duration::from_secs(5);
/// Before each rate that real cores serve, and after it.
const NOW: u32 = 1000;
const NOW_WITHIN: Duration = Duration::from_secs(2);
/// Shares of what the slowest server can do.
const SHARES: [f64; 5] = [0.1, 0.5, 0.8, 0.9, 0.95];

fn within(text: &str) -> Result<Duration, String> {
    let time = lastbyte_link::parse_duration(text).map_err(|error| error.to_string())?;
    if time > Duration::from_secs(86_400) {
        return Err(format!("{text} is longer than a day: take less"));
    }
    Ok(time)
}

impl Load {
    pub(super) fn run(self) -> Result<(), Failure> {
        let arms: Vec<Arm> = self.arms.iter().map(|arm| self.chains.of(arm)).collect();
        arguments::check_once(&arms)?;
        self.check(&arms)?;
        let there = thread::available_parallelism().map_or(1, NonZero::get);
        let there = u32::try_from(there).unwrap_or(u32::MAX);
        let usual = if self.live {
            there.saturating_sub(1)
        } else {
            there
        };
        let cores = NonZero::new(self.cores.unwrap_or(usual)).unwrap_or(NonZero::<u32>::MIN);
        own::fetch(&arms)?;
        let interrupt = interrupt().map_err(Failure::run)?;
        let bar = Bar::new();
        let sides: Vec<Side> = arms
            .iter()
            .map(|arm| Side::measure(arm, self.resumes, &bar, &interrupt))
            .collect::<Result<_, _>>()?;
        bar.finish();
        let rates = self.rates(&sides, cores)?;
        if self.live {
            let handshakes = self.handshakes() as f64;
            let takes: f64 = rates.iter().map(|rate| handshakes / rate.get()).sum();
            tell(format!(
                "real cores take about {:.0} s, as the schedule is in real time",
                (takes * sides.len() as f64).ceil()
            ));
        }
        let all = sides
            .iter()
            .map(|side| self.loaded(side, cores, &rates, &interrupt));
        let loaded = Loaded {
            cores,
            resumes: self.resumes,
            processor: lab::environment(&[]).host.cpu,
            arms: all.collect::<Result<_, _>>()?,
        };
        match self.format {
            Format::Text => print(&loaded::text(&loaded, screen())),
            Format::Json => print_json(&format!("{:#}", loaded::json(&loaded))),
        }
    }

    fn check(&self, arms: &[Arm]) -> Result<(), Failure> {
        for arm in arms {
            if arm.transport == TransportName::Quic {
                return Err(Failure::Usage(format!(
                    "{}: a load is of TLS over TCP, as what packets of QUIC compute is not in it: leave transport=quic out",
                    arm.name
                )));
            }
            let begins_otherwise = arm.resumption != Resumption::Full;
            if begins_otherwise && self.resumes != Probability::ZERO {
                return Err(Failure::Usage(format!(
                    "{}: it resumes already: leave resume= out, and --resumes says how many do",
                    arm.name
                )));
            }
        }
        if self.rate.len() > MOST_RATES {
            return Err(Failure::Usage(format!(
                "--rate: {} rates are more than {MOST_RATES}",
                self.rate.len()
            )));
        }
        let takes = |rate: &PerSecond| self.handshakes() as f64 / rate.get();
        let is_slow = |rate: &&PerSecond| takes(rate) > LONGEST_LIVE.as_secs_f64();
        if let Some(rate) = self.rate.iter().find(is_slow).filter(|_| self.live) {
            return Err(Failure::Usage(format!(
                "--rate {rate}: {} handshakes take {:.0} s of real time, and may take {} s with --live: ask for more a second, or fewer by \
                 --handshakes",
                self.handshakes(),
                takes(rate),
                LONGEST_LIVE.as_secs()
            )));
        }
        match self.handshakes {
            Some(handshakes) if self.live && handshakes > MOST_LIVE => {
                Err(Failure::Usage(format!(
                    "--handshakes {handshakes}: with --live at most {MOST_LIVE}, as each has a client in memory before it begins"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Handshakes at each rate.
    fn handshakes(&self) -> usize {
        let usual = if self.live { 2000 } else { 200_000 };
        self.handshakes.unwrap_or(usual) as usize
    }

    /// Those that were asked for, or some up to what the slowest server can do.
    fn rates(&self, sides: &[Side], cores: NonZero<u32>) -> Result<Vec<PerSecond>, Failure> {
        if !self.rate.is_empty() || self.storm.is_some() {
            return Ok(self.rate.clone());
        }
        let mut slowest = f64::INFINITY;
        for side in sides {
            slowest = slowest.min(side.saturation(self.resumes, cores)?.get());
        }
        Ok(SHARES
            .into_iter()
            .filter_map(|share| PerSecond::new(rounded(share * slowest)))
            .collect())
    }

    /// What comes of one arm.
    fn loaded(
        &self,
        side: &Side,
        cores: NonZero<u32>,
        rates: &[PerSecond],
        interrupt: &AtomicBool,
    ) -> Result<LoadedArm, Failure> {
        let seed = Seed(self.seed);
        let mix = side.mix(self.resumes);
        let unmeasured = || Failure::Run(format!("{}: its computing took no time", side.name));
        let at = |rate: &PerSecond| at_rate(&mix, cores, *rate, self.handshakes(), seed);
        let mut points: Vec<Point> = Vec::new();
        for rate in rates {
            points.push(at(rate).ok_or_else(unmeasured)?);
            check_interrupt(interrupt)?;
        }
        let mut live = Vec::new();
        if self.live {
            // Beyond what can be served, only the schedule's length says how long who waits.
            for point in &points {
                if point.waits.is_some() {
                    live.push(self.live(side, cores, point.rate, interrupt)?);
                }
            }
        }
        check_interrupt(interrupt)?;
        let storm = self.storm.map(|clients| {
            let handshakes = clients as usize;
            let waits = in_storm(&mix, cores, handshakes, self.within, seed);
            waits.map(|waits| Storm {
                handshakes,
                within: self.within,
                waits,
            })
        });
        check_interrupt(interrupt)?;
        Ok(LoadedArm {
            name: side.name.clone(),
            measured: side.full.cpu.len() + side.resumed.cpu.len(),
            mean: mix.mean().ok_or_else(unmeasured)?,
            saturation: side.saturation(self.resumes, cores)?,
            points,
            live,
            storm: storm.flatten(),
        })
    }

    /// The same rate on real cores, beside what the queue makes of the very same schedule.
    fn live(
        &self,
        side: &Side,
        cores: NonZero<u32>,
        rate: PerSecond,
        interrupt: &AtomicBool,
    ) -> Result<LivePoint, Failure> {
        let seed = Seed(self.seed);
        let handshakes = self.handshakes();
        let mut measured = side.now(interrupt)?;
        let times = Arrivals::Steady(rate).times(handshakes, seed);
        let mix = side.mix(self.resumes);
        let arms = (0..).map(|index| side.arm(mix.resumes_at(seed, index)));
        let schedule: Vec<_> = times.into_iter().zip(arms).collect();
        let live = lab::load::serve(&schedule, cores, interrupt).map_err(|error| match error {
            LiveLoadError::Cores { .. } => Failure::machine(error),
            error => Failure::Run(format!("{}: {error}", side.name)),
        })?;
        let live = live.ok_or_else(interrupted)?;
        for (before, after) in measured.iter_mut().zip(side.now(interrupt)?) {
            before.add(after);
        }
        let [full, resumed] = &measured;
        let mix = Mix {
            full: &full.clock,
            resumed: &resumed.clock,
            resumes: self.resumes,
            wakes: full.wakes,
        };
        let queue = at_rate(&mix, cores, rate, handshakes, seed);
        Ok(LivePoint {
            rate,
            waits: Waits::of(&live.served, handshakes / BEGIN),
            queue: queue.and_then(|point| point.waits),
            taken: live.taken(),
        })
    }
}

fn interrupted() -> Failure {
    Failure::Interrupted("interrupted".to_owned())
}

fn check_interrupt(interrupt: &AtomicBool) -> Result<(), Failure> {
    if interrupt.load(Ordering::Relaxed) {
        Err(interrupted())
    } else {
        Ok(())
    }
}

/// To three digits.
fn rounded(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).floor() * unit
}

/// What handshakes compute that were alone.
#[derive(Default)]
struct Measured {
    /// In CPU time.
    cpu: Vec<Computing>,
    /// By the clock, on the cores of this machine ([`own`](lab::load::Live::own)).
    clock: Vec<Computing>,
    /// How long a core that waited took to begin.
    wakes: Duration,
}

impl Measured {
    /// So many at most, within about this time.
    fn of(
        arm: &PreparedArm,
        most: u32,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Measured, Failure> {
        match lab::load::alone(arm, most as usize, within, interrupt) {
            Ok(Some(live)) => {
                let [cpu, clock] = live.own();
                Ok(Measured {
                    wakes: live.wakes(),
                    cpu,
                    clock,
                })
            }
            Ok(None) => Err(interrupted()),
            // One core has to do for both ends.
            Err(LiveLoadError::Cores { .. }) => Ok(Measured {
                cpu: Calibration::of_each(arm, Effort::UpTo(most))?,
                ..Measured::default()
            }),
            Err(error) => Err(Failure::Run(format!("{}: {error}", arm.arm.label))),
        }
    }

    fn add(&mut self, more: Measured) {
        self.cpu.extend(more.cpu);
        self.clock.extend(more.clock);
        self.wakes = (self.wakes + more.wakes) / 2;
    }
}

/// An arm, and what its handshakes compute.
struct Side {
    name: String,
    begins: PreparedArm,
    again: Option<PreparedArm>,
    full: Measured,
    resumed: Measured,
}

impl Side {
    /// Measures handshakes of each kind that there are.
    fn measure(
        arm: &Arm,
        resumes: Probability,
        bar: &Bar,
        interrupt: &AtomicBool,
    ) -> Result<Side, Failure> {
        let prepare_one = |arm: &Arm| {
            let mut prepared = prepare([arm], bar)?;
            prepared
                .pop()
                .ok_or_else(|| Failure::Run("no arm".to_owned()))
        };
        let measure = |arm: &PreparedArm| {
            check_interrupt(interrupt)?;
            bar.say(format!("computing of {}", arm.arm.label));
            Measured::of(arm, MEASURED, MEASURED_WITHIN, interrupt)
        };
        let begins = prepare_one(arm)?;
        let full = measure(&begins)?;
        let again = (resumes != Probability::ZERO)
            .then(|| prepare_one(&arm.beginning(Resumption::Ticket)))
            .transpose()?;
        let resumed = again.as_ref().map(measure).transpose()?;
        Ok(Side {
            name: arm.name.clone(),
            begins,
            again,
            full,
            resumed: resumed.unwrap_or_default(),
        })
    }

    fn mix(&self, resumes: Probability) -> Mix<'_> {
        Mix {
            full: &self.full.cpu,
            resumed: &self.resumed.cpu,
            resumes,
            wakes: Duration::ZERO,
        }
    }

    /// Measures again what handshakes of each kind compute, with fewer of them: a core is not as fast now as it was a minute ago.
    fn now(&self, interrupt: &AtomicBool) -> Result<[Measured; 2], Failure> {
        let measure = |arm| Measured::of(arm, NOW, NOW_WITHIN, interrupt);
        let full = measure(&self.begins)?;
        let resumed = self.again.as_ref().map(measure).transpose()?;
        Ok([full, resumed.unwrap_or_default()])
    }

    /// Whose handshake it is.
    fn arm(&self, resumes: bool) -> &PreparedArm {
        (self.again.as_ref())
            .filter(|_| resumes)
            .unwrap_or(&self.begins)
    }

    fn saturation(&self, resumes: Probability, cores: NonZero<u32>) -> Result<PerSecond, Failure> {
        let saturation = self.mix(resumes).saturation(cores);
        saturation.ok_or_else(|| Failure::Run(format!("{}: its computing took no time", self.name)))
    }
}
