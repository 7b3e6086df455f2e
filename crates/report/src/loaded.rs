//! What handshakes wait at a busy server, in words and as JSON.

use std::num::NonZero;
use std::time::Duration;

use lastbyte_explain::load::{ByPercentile, PerSecond, Point, Waits};
use lastbyte_link::{Probability, counted};
use lastbyte_results::number::milliseconds;
use serde_json::{Value, json};

use crate::aligned::{Align, aligned};
use crate::layout::Screen;

/// A server, and what came to it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Of the server.
    pub cores: NonZero<u32>,
    /// The share of handshakes that resumes a session.
    pub resumes: Probability,
    /// What computed: the processor's name.
    pub processor: String,
    /// Each arm.
    pub arms: Vec<LoadedArm>,
}

/// A server of one arm.
#[derive(Clone, Debug)]
pub struct LoadedArm {
    /// As it is called.
    pub name: String,
    /// Handshakes whose computing was measured, of which those of the queue were drawn.
    pub measured: usize,
    /// What the server computes for a handshake in the mean.
    pub mean: Duration,
    /// How many a second its cores can serve at most.
    pub saturation: PerSecond,
    /// What comes of each rate.
    pub points: Vec<Point>,
    /// What came of the same rates on real cores.
    pub live: Vec<LivePoint>,
    /// What comes of all clients at once.
    pub storm: Option<Storm>,
}

/// What real cores did at a rate.
#[derive(Clone, Debug)]
pub struct LivePoint {
    /// Handshakes that began.
    pub rate: PerSecond,
    /// What they waited.
    pub waits: Waits,
    /// What the queue makes of the very same schedule, by what handshakes took there alone; `None` where that is more than
    /// there is.
    pub queue: Option<Waits>,
    /// Which share of their time on a core something else ran there.
    pub taken: f64,
}

impl LivePoint {
    /// Whether others left the cores less than the handshakes took, so that waits grew as long as there were any.
    fn is_overtaken(&self, arm: &LoadedArm) -> bool {
        self.rate.get() / arm.saturation.get() >= 1.0 - self.taken
    }
}

/// All clients come again.
#[derive(Clone, Debug)]
pub struct Storm {
    /// How many.
    pub handshakes: usize,
    /// Within this time.
    pub within: Duration,
    /// What they wait.
    pub waits: Waits,
}

/// More than this, and numbers of real cores are not the server's own.
const MOST_TAKEN: f64 = 0.02;

/// The answer, and a table of each kind.
pub fn text(loaded: &Loaded, screen: Screen) -> String {
    let mut text = screen.wrap(&answer(loaded), 0).trim_end().to_owned() + "\n";
    let mut part = |table: String| text.push_str(&format!("\n{table}"));
    part(capacities(loaded));
    if loaded.arms.iter().any(|arm| !arm.points.is_empty()) {
        part(points(loaded));
    }
    if loaded.arms.iter().any(|arm| !arm.live.is_empty()) {
        part(live(loaded));
    }
    if loaded.arms.iter().any(|arm| arm.storm.is_some()) {
        part(storms(loaded));
    }
    text.push('\n');
    text.push_str(&screen.wrap(&assumptions(loaded), 0));
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// What the first arm's server can do, each other's beside it, and what they wait where the narrowest is nearly full.
fn answer(loaded: &Loaded) -> String {
    let cores = counted(loaded.cores.get(), "core");
    let Some(first) = loaded.arms.first() else {
        return String::new();
    };
    let can = |arm: &LoadedArm| {
        let factor = arm.saturation.get() / first.saturation.get();
        if arm.name == first.name {
            format!("{} a second with {}", arm.saturation, arm.name)
        } else {
            format!(
                "{} with {} ({factor:.2} times as many)",
                arm.saturation, arm.name
            )
        }
    };
    let all: Vec<String> = loaded.arms.iter().map(can).collect();
    let mut sentences = vec![format!(
        "A server of {cores} can shake hands at most {}.",
        all.join(", and ")
    )];
    sentences.extend(storm_sentence(loaded).or_else(|| rate_sentence(loaded)));
    sentences.extend(loaded.arms.iter().filter_map(beyond));
    sentences.join(" ")
}

fn storm_sentence(loaded: &Loaded) -> Option<String> {
    let of = |arm: &LoadedArm| {
        let waits = &arm.storm.as_ref()?.waits;
        Some(format!(
            "{} with {} (the median wait is {}, p99 {})",
            seconds(waits.last),
            arm.name,
            milliseconds(waits.waiting.p50),
            milliseconds(waits.waiting.p99)
        ))
    };
    let storm = loaded.arms.first()?.storm.as_ref()?;
    let arms: Vec<String> = loaded.arms.iter().filter_map(of).collect();
    let within = match storm.within {
        Duration::ZERO => "at once".to_owned(),
        within => format!("within {}", seconds(within)),
    };
    Some(format!(
        "If {} come again {within}, the last is done after {}.",
        counted(storm.handshakes, "client"),
        arms.join(", and ")
    ))
}

/// At the largest rate that all arms can serve.
fn rate_sentence(loaded: &Loaded) -> Option<String> {
    let first = loaded.arms.first()?;
    let is_served = |index: &usize| {
        let mut points = loaded.arms.iter().map(|arm| arm.points.get(*index));
        points.all(|point| point.is_some_and(|point| point.waits.is_some()))
    };
    let rates = 0..first.points.len();
    let rate = |index: &usize| {
        first
            .points
            .get(*index)
            .map_or(0.0, |point| point.rate.get())
    };
    let at = (rates.filter(is_served)).max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    let of = |arm: &LoadedArm| {
        let point = arm.points.get(at)?;
        let at_server = point.waits.as_ref()?.at_server;
        Some(format!(
            "{} with {} (p99 {}, cores busy {:.0} % of the time)",
            milliseconds(at_server.p50),
            arm.name,
            milliseconds(at_server.p99),
            100.0 * point.load
        ))
    };
    let arms: Vec<String> = loaded.arms.iter().filter_map(of).collect();
    Some(format!(
        "At {} a second, the median time that a handshake spends at the server is {}.",
        first.points.get(at)?.rate,
        arms.join(", and ")
    ))
}

/// From which rate on an arm's server falls behind.
fn beyond(arm: &LoadedArm) -> Option<String> {
    let points = arm
        .points
        .iter()
        .filter_map(|point| Some((point.rate, point.grows()?)));
    let (rate, grows) = points.min_by(|one, other| one.0.get().total_cmp(&other.0.get()))?;
    Some(format!(
        "{rate} a second are more than it can with {}: waits get {} longer in each second.",
        arm.name,
        milliseconds(grows)
    ))
}

/// What the numbers rest on.
fn assumptions(loaded: &Loaded) -> String {
    let resumes = match loaded.resumes {
        Probability::ZERO => "None of them resumes a session".to_owned(),
        share => format!("{share} of them resume a session"),
    };
    let mut text = format!(
        "{resumes}. Computing is that of {}, measured on a thread of its own; a server with other work besides, or whose cores share \
         one another's units (SMT), can do less. Handshakes begin by themselves, at random, whatever others wait, \
         and are served in the order in which they come, by one thread a core; a server that has them wait for each other otherwise (locks, a \
         thread that accepts for all) makes them wait longer.",
        loaded.processor
    );
    text += " What the network takes is not in it. Each run measures computing anew, and near saturation a percent of it is many of a wait.";
    let live = loaded.arms.iter().flat_map(|arm| &arm.live);
    let taken = live.map(|live| live.taken).fold(0.0, f64::max);
    if taken > MOST_TAKEN {
        text += &format!(
            " Something else ran on the server's cores for up to {:.0} % of the time, so that waits on real cores are \
             longer than a quiet machine's: where it left them less than the handshakes take, there is no result.",
            100.0 * taken
        );
    }
    text
}

/// `12.3 s`, and milliseconds below one.
fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => milliseconds(time),
        seconds if seconds < 10.0 => format!("{seconds:.2} s"),
        seconds => format!("{seconds:.1} s"),
    }
}

fn capacities(loaded: &Loaded) -> String {
    let heading = ["arm", "computing", "of a core, at most", "of the server"];
    let mut rows = vec![heading.map(str::to_owned)];
    let cores = f64::from(loaded.cores.get());
    rows.extend(loaded.arms.iter().map(|arm| {
        let of_core = PerSecond::new(arm.saturation.get() / cores);
        [
            arm.name.clone(),
            milliseconds(arm.mean),
            of_core.map_or_else(String::new, |rate| format!("{rate}/s")),
            format!("{}/s", arm.saturation),
        ]
    }));
    let right = Align::Right;
    aligned(&rows, [Align::Left, right, right, right])
}

/// A table of waits: what begins each row, and its times, or a word where there are none.
fn table(
    begin: [&str; 3],
    middle: Align,
    rows: Vec<([String; 3], Result<&Waits, String>)>,
) -> String {
    let heading = ["p50", "p99", "p99.9", "waits p50", "p99"].map(str::to_owned);
    let mut lines = vec![joined(begin.map(str::to_owned), heading)];
    lines.extend(rows.into_iter().map(|(begin, waits)| {
        let times = match waits {
            Ok(Waits {
                at_server, waiting, ..
            }) => [
                at_server.p50,
                at_server.p99,
                at_server.p999,
                waiting.p50,
                waiting.p99,
            ]
            .map(milliseconds),
            Err(word) => {
                let [b, c, d, e] = <[String; 4]>::default();
                [word, b, c, d, e]
            }
        };
        joined(begin, times)
    }));
    let right = Align::Right;
    aligned(
        &lines,
        [
            Align::Left,
            right,
            middle,
            right,
            right,
            right,
            right,
            right,
        ],
    )
}

fn points(loaded: &Loaded) -> String {
    let rows = loaded.arms.iter().flat_map(|arm| {
        arm.points.iter().map(move |point| {
            let grows = || {
                let grows = point.grows().unwrap_or_default();
                format!("+{} a second", milliseconds(grows))
            };
            let begin = [
                arm.name.clone(),
                format!("{}/s", point.rate),
                format!("{:.0} %", 100.0 * point.load),
            ];
            (begin, point.waits.as_ref().ok_or_else(grows))
        })
    });
    table(["arm", "rate", "busy"], Align::Right, rows.collect())
}

fn live(loaded: &Loaded) -> String {
    let none = || "no result".to_owned();
    let mut rows = Vec::new();
    for arm in &loaded.arms {
        for point in &arm.live {
            let row = |what: &str, waits| {
                let rate = format!("{}/s", point.rate);
                ([arm.name.clone(), rate, what.to_owned()], waits)
            };
            let queue = point.queue.as_ref().ok_or_else(none);
            let cores = match &queue {
                Ok(_) if !point.is_overtaken(arm) => Ok(&point.waits),
                _ => Err(none()),
            };
            rows.extend([row("cores", cores), row("queue", queue)]);
        }
    }
    table(["on real cores", "rate", ""], Align::Left, rows)
}

fn storms(loaded: &Loaded) -> String {
    let rows = loaded.arms.iter().filter_map(|arm| {
        let Storm {
            handshakes, waits, ..
        } = arm.storm.as_ref()?;
        let begin = [
            arm.name.clone(),
            handshakes.to_string(),
            seconds(waits.last),
        ];
        Some((begin, Ok(waits)))
    });
    table(["arm", "clients", "last"], Align::Right, rows.collect())
}

fn joined([a, b, c]: [String; 3], [d, e, f, g, h]: [String; 5]) -> [String; 8] {
    [a, b, c, d, e, f, g, h]
}

/// All of it, times in nanoseconds.
pub fn json(loaded: &Loaded) -> Value {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let by = |times: &ByPercentile| {
        json!({
            "p50": nanoseconds(times.p50),
            "p99": nanoseconds(times.p99),
            "p99.9": nanoseconds(times.p999),
        })
    };
    let waits = |waits: &Waits| {
        json!({
            "handshakes": waits.handshakes,
            "at_server_ns": by(&waits.at_server),
            "waiting_ns": by(&waits.waiting),
            "last_ns": nanoseconds(waits.last),
        })
    };
    let arm = |arm: &LoadedArm| {
        let points = arm.points.iter().map(|point| {
            json!({
                "rate": point.rate.get(),
                "load": point.load,
                "waits": point.waits.as_ref().map(waits),
                "grows_ns_per_s": point.grows().map(nanoseconds),
            })
        });
        let live = arm.live.iter().map(|live| {
            json!({
                "rate": live.rate.get(),
                "cores": waits(&live.waits),
                "queue": live.queue.as_ref().map(waits),
                "taken": live.taken,
            })
        });
        let storm = arm.storm.as_ref().map(|storm| {
            json!({
                "handshakes": storm.handshakes,
                "within_ns": nanoseconds(storm.within),
                "waits": waits(&storm.waits),
            })
        });
        json!({
            "arm": arm.name,
            "measured": arm.measured,
            "mean_ns": nanoseconds(arm.mean),
            "saturation": arm.saturation.get(),
            "points": points.collect::<Vec<_>>(),
            "live": live.collect::<Vec<_>>(),
            "storm": storm,
        })
    };
    json!({
        "schema": "lastbyte.load/1",
        "cores": loaded.cores,
        "resumes": loaded.resumes.fraction(),
        "processor": loaded.processor,
        "arms": loaded.arms.iter().map(arm).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
