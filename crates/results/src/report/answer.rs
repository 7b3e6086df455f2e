//! What the results come to, in plain words.

use std::time::Duration;

use lastbyte_sizes::Message;

use crate::results::number::{difference_digits, milliseconds, percent, share};
use crate::results::{
    ArmSummary, CellSummary, Metric, Percent, Percentile, Step, Summary, Validity,
};

/// How far from a whole number of round trips an increase may be and still be called one.
const ROUND_TRIP_TOLERANCE: f64 = 0.1;

/// How much longer a wait is that people notice.
pub(super) const FELT: Step = Step::Milliseconds(20);

/// The least increase that is reported as anything but zero, in percent.
const LEAST: f64 = 0.005;

/// One sentence for each arm that is compared, or for an arm alone. It calls nothing a difference
/// whose interval holds zero, or that does not stand out among all that is asked, and is silent about
/// samples that are not valid.
pub(super) fn answer(summary: &Summary) -> Vec<String> {
    let Some(percentile) = representative(&summary.percentiles) else {
        return Vec::new();
    };
    let labels: Vec<&str> = match &*summary.experiment.arms {
        [alone] => vec![&alone.name],
        [_, compared @ ..] => compared.iter().map(|arm| arm.name.as_str()).collect(),
        [] => Vec::new(),
    };
    let sentence = |label| match &*summary.experiment.arms {
        [_] => alone(summary, label, percentile),
        _ => compared(summary, label, percentile),
    };
    let (at, known) = match percentile {
        Percentile::MEDIAN => ("At the median".to_owned(), "median".to_owned()),
        other => (format!("At {other}"), other.to_string()),
    };
    let of_arms = labels.into_iter().map(|label| match sentence(label) {
        Some(sentence) => format!("{at}, {label} {sentence}."),
        None => {
            format!("Nothing can be said about {label}: there is no valid {known} to go by.")
        }
    });
    waits(summary).into_iter().chain(of_arms).collect()
}

/// How many wait, where populations are measured: one sentence for each arm that is compared.
fn waits(summary: &Summary) -> Vec<String> {
    let of_cell = |cell: &CellSummary| -> Vec<String> {
        let arms = cell.arms.iter();
        let valid = arms.filter(|arm| arm.validity == Validity::Valid);
        let told = valid.filter_map(|arm| {
            let mut all = arm.waiting.iter().filter(|waiting| waiting.class.is_none());
            let felt = all.clone().find(|waiting| waiting.metric == Metric::Ttfb);
            let waiting = felt.or(all.next_back())?;
            let slower = waiting.slower.iter().find(|slower| slower.step == FELT)?;
            let (slower, interval) = share(slower.connections);
            let mean = waiting.mean.map_or(String::new(), |mean| {
                let digits = difference_digits(mean.value);
                format!("; in the mean it takes {digits} ms longer")
            });
            let what = super::text::metric(waiting.metric);
            let (label, place) = (&arm.label, cell.place());
            Some(format!(
                "With {label}, {slower} {interval} of connections wait more than {FELT} longer for the {what}{mean}{place}."
            ))
        });
        told.collect()
    };
    summary.cells.iter().flat_map(of_cell).collect()
}

fn representative(percentiles: &[Percentile]) -> Option<Percentile> {
    let median = percentiles
        .iter()
        .find(|percentile| **percentile == Percentile::MEDIAN);
    median.or(percentiles.first()).copied()
}

/// `completes the handshake in 70.4 ms; the last byte comes after 246.1 ms`
fn alone(summary: &Summary, label: &str, percentile: Percentile) -> Option<String> {
    let times = |metric, cells: &[&CellSummary]| -> Option<String> {
        let times = cells.iter().filter_map(|cell| {
            let arm = valid_arm(cell, label)?;
            let estimate = arm.metric(metric).percentiles.get(&percentile)?.ok()?;
            Some((estimate.value, *cell))
        });
        let times: Vec<_> = times.collect();
        let (least, at_least) = times.iter().min_by_key(|(time, _)| *time)?;
        let (most, at_most) = times.iter().max_by_key(|(time, _)| *time)?;
        Some(span(
            &milliseconds(*least),
            at_least,
            &milliseconds(*most),
            at_most,
        ))
    };
    let cells: Vec<_> = summary.cells.iter().collect();
    let handshake = times(Metric::Handshake, &cells)?;
    let mut sentence = format!("completes the handshake in {handshake}");
    if let Some(last_byte) = times(Metric::Ttlb, &cells_with_data(summary)) {
        sentence.push_str(&format!("; the last byte comes after {last_byte}"));
    }
    Some(sentence)
}

/// `adds one round trip (35.1 ms, +50 %) to the handshake; at 200KiB the last byte comes 1.9 % later`
fn compared(summary: &Summary, label: &str, percentile: Percentile) -> Option<String> {
    let cells: Vec<_> = summary.cells.iter().collect();
    let differences =
        |cells: &[_], metric| Differences::new(cells, label, metric, percentile, summary.critical);
    let handshake = differences(&cells, Metric::Handshake)?;
    let last_byte = differences(&cells_with_data(summary), Metric::Ttlb);
    let clauses = std::iter::once(handshake_clause(&handshake))
        .chain(last_byte.map(|differences| last_byte_clause(&differences)));
    Some(clauses.collect::<Vec<_>>().join("; "))
}

/// Increases of one metric over the cells.
struct Differences<'a> {
    /// Those that are differences for all that is known, the least first.
    shown: Vec<Difference<'a>>,
    /// All that were measured.
    measured: usize,
}

struct Difference<'a> {
    cell: &'a CellSummary,
    increase: Percent,
    before: Duration,
    after: Duration,
    baseline: &'a ArmSummary,
    arm: &'a ArmSummary,
}

/// Which way differences point.
enum Trend {
    None,
    Up,
    Down,
    Both,
}

impl<'a> Differences<'a> {
    /// `None` if nothing was measured.
    fn new(
        cells: &[&'a CellSummary],
        label: &str,
        metric: Metric,
        percentile: Percentile,
        critical: f64,
    ) -> Option<Differences<'a>> {
        let mut shown = Vec::new();
        let mut measured = 0;
        for cell in cells {
            let Some((baseline, arm)) = cell.baseline().zip(valid_arm(cell, label)) else {
                continue;
            };
            let time = |arm: &ArmSummary| arm.metric(metric).percentiles.get(&percentile)?.ok();
            let is_known = matches!(arm.metric(metric).increases.get(&percentile), Some(Ok(_)));
            let (true, Some(before), Some(after), Validity::Valid) =
                (is_known, time(baseline), time(arm), &baseline.validity)
            else {
                continue;
            };
            measured += 1;
            let increase = arm.metric(metric).difference(percentile, critical);
            if let Some(increase) = increase.filter(|increase| increase.value.0.abs() >= LEAST) {
                let (before, after) = (before.value, after.value);
                shown.push(Difference {
                    cell,
                    increase: increase.value,
                    before,
                    after,
                    baseline,
                    arm,
                });
            }
        }
        shown.sort_by(|a, b| a.increase.0.total_cmp(&b.increase.0));
        (measured > 0).then_some(Differences { shown, measured })
    }

    fn trend(&self) -> Trend {
        match (self.shown.first(), self.shown.last()) {
            (Some(least), _) if least.increase > Percent(0.0) => Trend::Up,
            (_, Some(most)) if most.increase < Percent(0.0) => Trend::Down,
            (Some(_), Some(_)) => Trend::Both,
            _ => Trend::None,
        }
    }

    /// Where nothing was shown.
    fn elsewhere(&self) -> String {
        match self.measured - self.shown.len() {
            0 => String::new(),
            others => format!(
                ", and in {others} of {} cells no difference was shown",
                self.measured
            ),
        }
    }
}

fn handshake_clause(differences: &Differences<'_>) -> String {
    let (extent, because) = extent(&differences.shown);
    let clause = match differences.trend() {
        Trend::None => return "shows no difference in the handshake".into(),
        Trend::Up => format!("adds {extent} to the handshake{because}"),
        Trend::Down => format!("takes {extent} off the handshake{because}"),
        Trend::Both => format!("changes the handshake by {}", percents(&differences.shown)),
    };
    clause + &differences.elsewhere()
}

fn last_byte_clause(differences: &Differences<'_>) -> String {
    let (Some(least), Some(most)) = (differences.shown.first(), differences.shown.last()) else {
        return "no difference was shown in the last byte".into();
    };
    let size = |difference: &Difference<'_>| percent(Percent(difference.increase.0.abs()));
    let comes = match (&*differences.shown, differences.trend()) {
        ([only], Trend::Up) => {
            format!(
                "at {} the last byte comes {} later",
                place(only.cell),
                size(only)
            )
        }
        ([only], _) => format!(
            "at {} the last byte comes {} earlier",
            place(only.cell),
            size(only)
        ),
        (_, Trend::Up) => format!(
            "the last byte comes {} later",
            span(&size(least), least.cell, &size(most), most.cell)
        ),
        (_, Trend::Down) => format!(
            "the last byte comes {} earlier",
            span(&size(most), most.cell, &size(least), least.cell)
        ),
        (_, _) => format!(
            "the last byte comes between {} earlier ({}) and {} later ({})",
            size(least),
            place(least.cell),
            size(most),
            place(most.cell)
        ),
    };
    comes + &because_of_the_window(differences) + &differences.elsewhere()
}

/// What a response has of a handshake before it, where that is all that can have moved the last byte by whole round
/// trips. Without loss, the window that it begins with has grown by what was acknowledged until then.
fn because_of_the_window(differences: &Differences<'_>) -> String {
    let is_told = |difference: &Difference<'_>, grows: bool| {
        let Some((before, after)) = flights(difference.baseline).zip(flights(difference.arm))
        else {
            return false;
        };
        let (moved, sends_so) = match grows {
            true => (
                difference.before.checked_sub(difference.after),
                before.segments < after.segments,
            ),
            false => (
                difference.after.checked_sub(difference.before),
                before.segments > after.segments,
            ),
        };
        let moved = moved.and_then(|moved| whole_round_trips(difference, moved));
        sends_so
            && after.round_trips() == before.round_trips()
            && !difference.cell.cell.has_loss()
            && moved == Some(1)
    };
    let all = |grows| differences.shown.iter().all(|one| is_told(one, grows));
    if differences.shown.is_empty() {
        String::new()
    } else if all(true) {
        ", as the larger handshake has opened the server's window: the response takes one round trip less".into()
    } else if all(false) {
        ", as the smaller handshake has opened the server's window less: the response takes one round trip more".into()
    } else {
        String::new()
    }
}

/// `one round trip (35.1 ms, +50 %)`, and why; or `3.2 ms (+4.5 %)`.
fn extent(shown: &[Difference<'_>]) -> (String, String) {
    let times = shown
        .iter()
        .map(|difference| difference.before.abs_diff(difference.after));
    let least = times.clone().min().map_or(String::new(), milliseconds);
    let most = times.max().map_or(String::new(), milliseconds);
    let time = if least == most {
        least
    } else {
        format!("{least} to {most}")
    };
    let percents = percents(shown);
    match round_trips(shown) {
        Some((round_trips, because)) => (format!("{round_trips} ({time}, {percents})"), because),
        None => (format!("{time} ({percents})"), String::new()),
    }
}

/// `+50 %`, or `-3.0 % to +14 %`.
fn percents(shown: &[Difference<'_>]) -> String {
    let signed = |difference: &Difference<'_>| {
        let sign = if difference.increase > Percent(0.0) {
            "+"
        } else {
            ""
        };
        format!("{sign}{}", percent(difference.increase))
    };
    let least = shown.first().map_or(String::new(), signed);
    let most = shown.last().map_or(String::new(), signed);
    if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

/// The round trips that all differences amount to, in words, and why. Time alone is none: a signature can take as long.
fn round_trips(shown: &[Difference<'_>]) -> Option<(String, String)> {
    let mut all = shown.iter().map(|difference| {
        let (before, after) = (flights(difference.baseline)?, flights(difference.arm)?);
        let more = after.round_trips().abs_diff(before.round_trips());
        let moved = difference.before.abs_diff(difference.after);
        let is_so =
            (after.round_trips() > before.round_trips()) == (difference.after > difference.before);
        let count = whole_round_trips(difference, moved).filter(|count| *count == more && is_so)?;
        Some((count, because(difference, before, after)))
    });
    let (count, because) = all.next()??;
    let mut same = true;
    for other in all {
        let (other, why) = other?;
        if other != count {
            return None;
        }
        same &= why == because;
    }
    let words = match count {
        1 => "one round trip".into(),
        2 => "two round trips".into(),
        3 => "three round trips".into(),
        more => format!("{more} round trips"),
    };
    Some((words, if same { because } else { String::new() }))
}

/// How many whole round trips a time is, nearly.
fn whole_round_trips(difference: &Difference<'_>, time: Duration) -> Option<u32> {
    let round_trips = time.as_secs_f64() / difference.cell.cell.link.rtt().as_secs_f64();
    let whole = round_trips.round();
    let near = (round_trips - whole).abs() <= ROUND_TRIP_TOLERANCE;
    (near && (1.0..100.0).contains(&whole)).then_some(whole as u32)
}

/// What costs a handshake round trips.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flights {
    /// The server's.
    server: u32,
    /// Segments in them.
    segments: usize,
    /// Whether the server asks for another key share.
    is_retried: bool,
    /// Whether a connection fails before it.
    is_second: bool,
}

fn flights(arm: &ArmSummary) -> Option<Flights> {
    let wire = arm.wire.as_ref()?;
    let server = wire.server_flights?;
    Some(Flights {
        server: server.flights,
        segments: server.segments,
        is_retried: wire.bytes(Message::HelloRetryRequest).median > 0,
        is_second: wire.failed_server_wire_bytes.median > 0,
    })
}

impl Flights {
    /// Besides the two that every handshake takes.
    fn round_trips(self) -> u32 {
        // A connection that fails takes its own two, to be known for what it is.
        const FAILED: u32 = 2;
        let retried = u32::from(self.is_retried);
        self.server.saturating_sub(1) + retried + FAILED * u32::from(self.is_second)
    }
}

/// `: 12 segments, and the window is 10`, of what has more of it.
fn because(difference: &Difference<'_>, before: Flights, after: Flights) -> String {
    let (less, more) = match after.round_trips() > before.round_trips() {
        true => (before, after),
        false => (after, before),
    };
    let window = difference.cell.cell.initcwnd;
    let mut causes = Vec::new();
    if more.server > less.server {
        causes.push(match (more.segments, less.segments) {
            (many, few) if after == more => {
                format!("{many} segments and not {few}, where the window is {window}")
            }
            (many, few) => format!("{few} segments and not {many}, where the window is {window}"),
        });
    }
    if more.is_retried != less.is_retried {
        causes.push("a HelloRetryRequest".to_owned());
    }
    if more.is_second != less.is_second {
        causes.push("a first connection that fails".to_owned());
    }
    match &*causes {
        [] => String::new(),
        causes => format!(": {}", causes.join(", and ")),
    }
}

/// `70.4 ms`, or `70.4 ms (0B) to 246.1 ms (200KiB)`.
fn span(least: &str, at_least: &CellSummary, most: &str, at_most: &CellSummary) -> String {
    if least == most {
        return least.to_owned();
    }
    format!(
        "{least} ({}) to {most} ({})",
        place(at_least),
        place(at_most)
    )
}

/// What tells the cell from others, or how much data it has.
fn place(cell: &CellSummary) -> String {
    if cell.name.is_empty() {
        cell.cell.data.to_string()
    } else {
        cell.name.clone()
    }
}

fn valid_arm<'a>(cell: &'a CellSummary, label: &str) -> Option<&'a ArmSummary> {
    cell.arms
        .iter()
        .find(|arm| arm.label == label && arm.validity == Validity::Valid)
}

fn cells_with_data(summary: &Summary) -> Vec<&CellSummary> {
    summary
        .cells
        .iter()
        .filter(|cell| cell.cell.work().requests > 0)
        .collect()
}
