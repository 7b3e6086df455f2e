//! What the results come to, in plain words.

mod cause;
mod failed;
mod loss;
mod tail;

pub(super) use cause::{Reason, parts};

use cause::{Flights, Parts, behind_the_handshake, both, of_handshake, sending};

use std::cmp::Ordering;
use std::time::Duration;

use jiff::SignedDuration;
use lastbyte_flights::quic::Hold;
use lastbyte_link::counted;

use super::assumed::turns_of;
use super::thresholds::{
    LEAST_PERCENT, MOST_OF_ALL, NOTICEABLE, NOTICED_PERCENT, ROUND_TRIP_TOLERANCE, SURE, WORTH_MS,
    WORTH_PART, WORTH_PART_OF_COST, WORTH_PART_OF_HANDSHAKE,
};
use lastbyte_results::number::{difference_digits, milliseconds, percent, share};
use lastbyte_results::{
    ArmSummary, CellSummary, Estimate, Interval, Metric, Percent, Percentile, Role, Shares,
    Summary, Validity,
};
use lastbyte_study::{Arm, Experiment, Parameter, TransportName};

/// One sentence for each arm that is compared, or for an arm alone. It calls nothing a difference
/// whose interval holds zero, or that does not stand out among all that is asked, and is silent about
/// samples that are not valid.
pub(crate) fn answer(summary: &Summary) -> Vec<String> {
    let Some(percentile) = summary.representative() else {
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
    let tails = labels.iter();
    let tails: Vec<String> = tails
        .filter_map(|label| tail::tail(summary, label, percentile))
        .collect();
    // What would turn an answer, where there is one.
    let turns = if labels.iter().any(|label| sentence(label).is_some()) {
        turns_of(&summary.experiment)
    } else {
        Vec::new()
    };
    // The baseline's, too.
    let all_arms = summary.experiment.arms.iter();
    let failed: Vec<String> = all_arms
        .filter_map(|arm| failed::failed(summary, &arm.name))
        .collect();
    let losses = labels.iter();
    let losses: Vec<String> = losses
        .filter_map(|label| loss::loss(summary, label, percentile))
        .collect();
    let of_arms = labels.into_iter().map(|label| match sentence(label) {
        Some(sentence) => format!("{at}, {label} {sentence}."),
        None => match invalid(summary, label) {
            Some(reason) => {
                format!("Nothing can be said about {label}: its samples are not valid ({reason}).")
            }
            None => {
                format!("Nothing can be said about {label}: there is no valid {known} to go by.")
            }
        },
    });
    changed(summary)
        .into_iter()
        .chain(waits(summary))
        .chain(of_arms)
        .chain(failed)
        .chain(losses)
        .chain(tails)
        .chain(turns)
        .collect()
}

/// Why the samples of an arm, or of the baseline, are not valid.
fn invalid<'a>(summary: &'a Summary, label: &str) -> Option<&'a str> {
    let arms = || summary.cells.iter().flat_map(|cell| &cell.arms);
    let reason = |arm: &'a ArmSummary| match &arm.validity {
        Validity::Valid => None,
        Validity::Invalid(reason) => Some(reason.as_str()),
    };
    let own = arms().filter(|arm| arm.label == label);
    let others = arms().filter(|arm| arm.role == Role::Baseline);
    own.chain(others).find_map(reason)
}

/// Whether anything has changed since results were saved, where they were: what changed most, and how much else did.
fn changed(summary: &Summary) -> Option<String> {
    let since = summary.since.as_ref()?;
    let mut changes = Vec::new();
    let mut compared = 0_usize;
    for cell in &summary.cells {
        for arm in &cell.arms {
            for metric in super::text::metrics(cell) {
                let of_metric = arm.metric(*metric);
                for percentile in of_metric.changes.keys() {
                    compared += 1;
                    let change = of_metric.change(*percentile, summary.critical_change);
                    let worth = change.filter(|change| change.value.0.abs() >= LEAST_PERCENT);
                    changes.extend(worth.map(|change| (change, arm, *metric, *percentile, cell)));
                }
            }
        }
    }
    let most = changes
        .iter()
        .max_by(|(one, ..), (other, ..)| one.value.0.abs().total_cmp(&other.value.0.abs()));
    let Some((change, arm, metric, percentile, cell)) = most else {
        return Some(match compared {
            0 => format!(
                "Nothing can be compared with {}: no sample of it is here.",
                since.name
            ),
            _ => format!(
                "Nothing was shown to have changed since {}, in {}.",
                since.name,
                counted(compared, "comparison")
            ),
        });
    };
    let (amount, direction) = if change.value.0 < 0.0 {
        (-change.value.0, "sooner")
    } else {
        (change.value.0, "later")
    };
    let others = match changes.len() - 1 {
        0 => String::new(),
        others => format!(
            "; {others} more of {} changed by less",
            counted(compared, "comparison")
        ),
    };
    Some(format!(
        "Since {}, the {} of {} comes {} {direction}{} at {percentile}{others}.",
        since.name,
        super::text::metric(*metric),
        arm.label,
        percent(Percent(amount)),
        cell.place(),
    ))
}

/// How many wait, where populations are measured: one sentence for each arm that is compared, and each time that is
/// told.
fn waits(summary: &Summary) -> Vec<String> {
    let mut shown: Vec<Wait<'_>> = summary.cells.iter().flat_map(waits_of_cell).collect();
    let mut sentences = Vec::new();
    while let Some(first) = shown.first() {
        let (label, metric) = (first.label, first.metric);
        let is_alike = |wait: &Wait<'_>| wait.label == label && wait.metric == metric;
        let (alike, others): (Vec<_>, Vec<_>) = shown.into_iter().partition(is_alike);
        sentences.push(wait(&alike));
        shown = others;
    }
    sentences
}

/// How many wait with an arm in a cell.
struct Wait<'a> {
    label: &'a str,
    metric: Metric,
    /// The share that waits longer than [`NOTICEABLE`].
    slower: Estimate<f64>,
    /// In milliseconds.
    mean: Option<f64>,
    cell: &'a CellSummary,
}

fn waits_of_cell(cell: &CellSummary) -> Vec<Wait<'_>> {
    let arms = cell.arms.iter();
    let valid = arms.filter(|arm| arm.validity == Validity::Valid);
    let shown = valid.filter_map(|arm| {
        let mut all = arm.waiting.iter().filter(|waiting| waiting.class.is_none());
        let felt = all.clone().find(|waiting| waiting.metric == Metric::Ttfb);
        let waiting = felt.or(all.next_back())?;
        let slower = waiting
            .slower
            .iter()
            .find(|slower| slower.step == NOTICEABLE)?;
        Some(Wait {
            label: &arm.label,
            metric: waiting.metric,
            slower: slower.connections,
            mean: waiting.mean.map(|mean| mean.value),
            cell,
        })
    });
    shown.collect()
}

/// One sentence of an arm in one cell or several.
fn wait(alike: &[Wait<'_>]) -> String {
    let least = (alike.iter()).min_by(|a, b| a.slower.value.total_cmp(&b.slower.value));
    let most = (alike.iter()).max_by(|a, b| a.slower.value.total_cmp(&b.slower.value));
    let (Some(least), Some(most)) = (least, most) else {
        return String::new();
    };
    let (low, interval) = share(least.slower);
    let (high, _) = share(most.slower);
    let (slower, place) = match alike {
        [only] => (format!("{low} {interval}"), only.cell.place()),
        _ if low == high => (low, String::new()),
        _ => (
            format!(
                "{low} ({}) to {high} ({})",
                place(least.cell),
                place(most.cell)
            ),
            String::new(),
        ),
    };
    let means: Option<Vec<f64>> = alike.iter().map(|wait| wait.mean).collect();
    let mean = means.map_or(String::new(), |means| {
        let least = difference_digits(means.iter().copied().fold(f64::INFINITY, f64::min));
        let most = difference_digits(means.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        if least == most {
            format!("; in the mean it takes {least} ms longer")
        } else {
            format!("; in the mean it takes {least} to {most} ms longer")
        }
    });
    let (label, what) = (most.label, super::text::metric(most.metric));
    format!(
        "With {label}, {slower} of connections wait more than {NOTICEABLE} longer for the {what}{mean}{place}."
    )
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
    let handshake = times(Metric::Handshake, &cells);
    let handshake = handshake.map(|time| format!("completes the handshake in {time}"));
    let (metric, cells, comes) = last(summary);
    let last = times(metric, &cells).map(|time| format!("{comes} after {time}"));
    joined(handshake, last)
}

/// A handshake's clause and the others; of pages that are redirected, browsers report no handshake.
fn joined(handshake: Option<String>, others: impl IntoIterator<Item = String>) -> Option<String> {
    let others: Vec<String> = others.into_iter().collect();
    let handshake = if others.is_empty() {
        handshake?
    } else {
        handshake.unwrap_or_else(|| NO_HANDSHAKE.to_owned())
    };
    let clauses: Vec<String> = [handshake].into_iter().chain(others).collect();
    Some(clauses.join("; "))
}

/// In place of a handshake's clause.
const NO_HANDSHAKE: &str = "has no handshake that the browser reports";

/// `adds one round trip (35.1 ms, +50 %) to the handshake, and as much to the first byte; at 200KiB the last byte comes 1.9 % later`
fn compared(summary: &Summary, label: &str, percentile: Percentile) -> Option<String> {
    // What loss makes of it is a sentence of its own.
    let is_apart = loss::is_compared(summary);
    let is_told = |cell: &&CellSummary| !(is_apart && cell.cell.has_loss());
    let cells: Vec<_> = summary.cells.iter().filter(is_told).collect();
    let differences =
        |cells: &[_], metric| Differences::new(cells, label, metric, percentile, summary.critical);
    let (metric, mut cells_to_its_end, comes) = last(summary);
    cells_to_its_end.retain(is_told);
    let last = differences(&cells_to_its_end, metric);
    let Some(handshake) = differences(&cells, Metric::Handshake) else {
        let last = last.map(|differences| last_clause(&differences, percentile, comes));
        return joined(None, last);
    };
    let last = last.map(|differences| {
        let clause = last_clause(&differences, percentile, comes);
        let because = match metric {
            Metric::Ttlb => made_up_for(&handshake, &differences),
            _ => "",
        };
        clause + because
    });
    let first = differences(&cells_to_its_end, Metric::Ttfb).filter(|_| metric == Metric::Ttlb);
    let first = first.map_or(FirstByte::Absent, |first| FirstByte::new(&handshake, first));
    let clause = handshake_clause(&handshake, &first, &summary.experiment);
    joined(
        Some(clause),
        first.clause(percentile).into_iter().chain(last),
    )
}

/// Whether the window for a response has grown by all that was sent of the handshake: quinn's does not where credit ended a
/// flight.
fn is_slow_start([before, _]: &[Flights; 2]) -> bool {
    before.transport == TransportName::Tcp
}

/// Why a round trip of the handshake's is gone by the last byte, where nothing is lost and it is gone everywhere: what was sent of a larger
/// handshake, and acknowledged, has opened the window for the response.
fn made_up_for(handshake: &Differences<'_>, last: &Differences<'_>) -> &'static str {
    let is_made_up_for = |one: &Difference<'_>| {
        let own = handshake.of_cell(one.cell);
        let Some([before, after]) = both(one).filter(is_slow_start) else {
            return false;
        };
        let cell = &one.cell.cell;
        let is_still = !cell.has_loss() && !cell.has_jitter();
        is_still
            && after.round_trips() > before.round_trips()
            && own.is_some_and(|own| one.ms() < WORTH_PART_OF_HANDSHAKE * own.ms())
            && one.increase.0 > 0.0
    };
    let is = |certainty| move |one: &Difference<'_>| one.shown == certainty;
    let measured = &last.measured;
    if measured.is_empty()
        || !measured.iter().all(is_made_up_for)
        || measured.iter().any(is(Certainty::Unknown))
    {
        ""
    } else if measured.iter().all(is(Certainty::Open)) {
        ", as the larger handshake has opened the window"
    } else {
        ", and no more, as the larger handshake has opened the window"
    }
}

/// How the first byte differs, beside the handshake before it.
enum FirstByte<'a> {
    /// Nothing is asked for.
    Absent,
    /// By as much as the handshake, wherever it was measured.
    AsMuch,
    /// By something else.
    Otherwise(Differences<'a>),
}

impl<'a> FirstByte<'a> {
    fn new(handshake: &Differences<'_>, first: Differences<'a>) -> FirstByte<'a> {
        let is_as_much = |one: &Difference<'_>| {
            handshake.of_cell(one.cell).is_some_and(|own| {
                let off = (own.ms() - one.ms()).abs();
                own.shown == one.shown && off <= WORTH_MS.max(WORTH_PART_OF_COST * own.ms().abs())
            })
        };
        if first.measured.iter().all(is_as_much) {
            FirstByte::AsMuch
        } else {
            FirstByte::Otherwise(first)
        }
    }

    /// What is added behind the handshake's own clause.
    fn as_much(&self, preposition: &str) -> String {
        match self {
            FirstByte::AsMuch => format!(", and as much {preposition} the first byte"),
            FirstByte::Absent | FirstByte::Otherwise(_) => String::new(),
        }
    }

    /// A clause of its own.
    fn clause(&self, percentile: Percentile) -> Option<String> {
        match self {
            FirstByte::Otherwise(first) => Some(last_clause(first, percentile, FIRST)),
            FirstByte::Absent | FirstByte::AsMuch => None,
        }
    }
}

/// Increases of one metric over the cells.
struct Differences<'a> {
    /// All that were measured, in the order of the cells.
    measured: Vec<Difference<'a>>,
    /// Where in those the differences are, the least first.
    shown: Vec<usize>,
}

struct Difference<'a> {
    cell: &'a CellSummary,
    increase: Percent,
    interval: Interval<Percent>,
    before: Side<'a>,
    after: Side<'a>,
    shown: Certainty,
}

/// What is known of a difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// It is one.
    Shown,
    /// It may be none.
    Open,
    /// Connections are too few to say anything.
    Unknown,
}

/// One of two that are compared.
struct Side<'a> {
    sample: &'a ArmSummary,
    /// How long it takes altogether.
    time: Duration,
    /// What that consists of, where it is known.
    shares: Option<Shares>,
}

/// `None` where there is no such time.
fn side_of(sample: &ArmSummary, metric: Metric, percentile: Percentile) -> Option<Side<'_>> {
    let metric = sample.metric(metric);
    Some(Side {
        sample,
        time: metric.percentiles.get(&percentile)?.ok()?.value,
        shares: metric.shares(percentile),
    })
}

impl Difference<'_> {
    /// In milliseconds, below zero for sooner.
    fn ms(&self) -> f64 {
        1e3 * (self.after.time.as_secs_f64() - self.before.time.as_secs_f64())
    }

    /// Whether its number is worth repeating: luck has little to do with it.
    fn is_sure(&self) -> bool {
        let Interval {
            low: Some(low),
            high: Some(high),
        } = self.interval
        else {
            return false;
        };
        (high.0 - low.0) / 2.0 <= (SURE * self.increase.0.abs()).max(NOTICED_PERCENT)
    }
}

impl Side<'_> {
    /// Without what computing takes, where that is known.
    fn network(&self) -> Duration {
        self.shares.map_or(self.time, |shares| shares.network)
    }
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
        let mut measured = Vec::new();
        for cell in cells {
            let Some((baseline, arm)) = cell.baseline().zip(valid_arm(cell, label)) else {
                continue;
            };
            let side = |sample| side_of(sample, metric, percentile);
            let increase = arm.metric(metric).increases.get(&percentile);
            let (Some(Ok(increase)), Some(before), Some(after), Validity::Valid) =
                (increase, side(baseline), side(arm), &baseline.validity)
            else {
                continue;
            };
            let shown = arm.metric(metric).difference(percentile, critical);
            measured.push(Difference {
                cell,
                increase: increase.value,
                interval: increase.interval,
                before,
                after,
                shown: match shown {
                    Some(shown) if shown.value.0.abs() >= LEAST_PERCENT => Certainty::Shown,
                    None if increase.interval.is_unknown() => Certainty::Unknown,
                    _ => Certainty::Open,
                },
            });
        }
        let mut shown: Vec<usize> = (0..measured.len()).collect();
        shown.retain(|index| {
            measured
                .get(*index)
                .is_some_and(|one| one.shown == Certainty::Shown)
        });
        let increase = |index: &usize| measured.get(*index).map_or(0.0, |one| one.increase.0);
        shown.sort_by(|a, b| increase(a).total_cmp(&increase(b)));
        (!measured.is_empty()).then_some(Differences { measured, shown })
    }

    /// What was measured of a cell of the same summary.
    fn of_cell(&self, cell: &CellSummary) -> Option<&Difference<'a>> {
        let mut measured = self.measured.iter();
        measured.find(|one| std::ptr::eq(one.cell, cell))
    }

    /// Those that are differences for all that is known, the least first.
    fn shown(&self) -> Vec<&Difference<'a>> {
        self.shown
            .iter()
            .filter_map(|index| self.measured.get(*index))
            .collect()
    }

    /// Whether connections are too few everywhere.
    fn are_unknown(&self) -> bool {
        self.measured
            .iter()
            .all(|one| one.shown == Certainty::Unknown)
    }

    /// Where nothing was shown: by name where that is one place or two.
    fn elsewhere(&self) -> String {
        let others = self
            .measured
            .iter()
            .filter(|one| one.shown != Certainty::Shown);
        let places: Vec<String> = others.map(|one| place(one.cell)).collect();
        match places.len() {
            0 => String::new(),
            1..=MOST_PLACES => format!(
                ", and at {} no difference was shown",
                places.join(" and at ")
            ),
            count => format!(
                ", and in {count} of {} cases no difference was shown",
                self.measured.len()
            ),
        }
    }
}

/// Cells are named in a sentence where they are no more than that.
const MOST_PLACES: usize = 2;

fn trend(shown: &[&Difference<'_>]) -> Trend {
    match (shown.first(), shown.last()) {
        (Some(least), _) if least.increase > Percent(0.0) => Trend::Up,
        (_, Some(most)) if most.increase < Percent(0.0) => Trend::Down,
        (Some(_), Some(_)) => Trend::Both,
        _ => Trend::None,
    }
}

fn handshake_clause(
    differences: &Differences<'_>,
    first: &FirstByte<'_>,
    experiment: &Experiment,
) -> String {
    if differences.are_unknown() {
        return "was measured with too few connections to tell its handshake from the baseline's"
            .into();
    }
    if let Some(turns) = turns(differences) {
        return turned(&turns, experiment);
    }
    let shown = differences.shown();
    let Extent { size, because } = extent(&shown, experiment);
    let clause = match trend(&shown) {
        Trend::None => return "shows no difference in the handshake".into(),
        Trend::Up => format!(
            "adds {size} to the handshake{}{because}",
            first.as_much("to")
        ),
        Trend::Down => format!(
            "takes {size} off the handshake{}{because}",
            first.as_much("off")
        ),
        Trend::Both => format!("changes the handshake by {}", percents(&shown)),
    };
    clause + &differences.elsewhere()
}

/// Networks that take as many round trips more, or fewer, and at which values of one parameter they are.
struct Turn<'d, 'a> {
    /// `from initcwnd 16 on`
    place: String,
    differences: Vec<&'d Difference<'a>>,
}

/// Networks with one value of a parameter.
struct At<'d, 'a> {
    /// As a study would say it.
    value: String,
    /// `initcwnd 16`
    name: String,
    number: Option<f64>,
    /// Round trips that are added there.
    more: i64,
    differences: Vec<&'d Difference<'a>>,
}

/// Where the number of round trips that are added depends on one parameter alone: by its values, in their order.
/// `None` where it is the same everywhere, or more than one decides.
fn turns<'d, 'a>(differences: &'d Differences<'a>) -> Option<Vec<Turn<'d, 'a>>> {
    let more = |difference: &Difference<'_>| {
        let [before, after] = both(difference)?;
        Some(i64::from(after.round_trips()) - i64::from(before.round_trips()))
    };
    let counts = differences.measured.iter().map(more);
    let counts: Vec<i64> = counts.collect::<Option<_>>()?;
    if counts.iter().all(|count| Some(count) == counts.first()) {
        return None;
    }
    let values = Parameter::measured()
        .find_map(|parameter| values(parameter, &differences.measured, &counts))?;
    let is_ordered = values.iter().all(|at| at.number.is_some());
    let mut groups: Vec<Vec<At<'_, '_>>> = Vec::new();
    for at in values {
        match groups.last_mut() {
            Some(last) if last.last().is_some_and(|last| last.more == at.more) => last.push(at),
            _ => groups.push(vec![at]),
        }
    }
    // On a slow link, one more flight may cost no time.
    let costs = |group: &Vec<At<'_, '_>>| {
        let all = group.iter().flat_map(|at| &at.differences);
        let costs = all.map(|one| {
            let more = one.after.network().as_secs_f64() - one.before.network().as_secs_f64();
            more / one.cell.cell.link.rtt().as_secs_f64().max(1e-9)
        });
        let (sum, count) = costs.fold((0.0, 0), |(sum, count), cost| (sum + cost, count + 1));
        sum / f64::from(count)
    };
    let costs: Vec<f64> = groups.iter().map(costs).collect();
    let mut pairs = costs.iter().zip(costs.iter().skip(1));
    if pairs.any(|(one, next)| (one - next).abs() < ROUND_TRIP_TOLERANCE) {
        return None;
    }
    let count = groups.len();
    let turn = |(index, group): (usize, Vec<At<'d, 'a>>)| Turn {
        place: match (&*group, is_ordered) {
            ([_, .., last], true) if index == 0 => format!("up to {}", last.name),
            ([first, ..], true) if index > 0 && index + 1 == count => {
                format!("from {} on", first.name)
            }
            ([first, .., last], true) => format!("from {} to {}", first.name, last.value),
            (group, _) => {
                let names: Vec<&str> = group.iter().map(|at| at.name.as_str()).collect();
                format!("at {}", names.join(" and "))
            }
        },
        differences: group.into_iter().flat_map(|at| at.differences).collect(),
    };
    Some(groups.into_iter().enumerate().map(turn).collect())
}

/// By the values of a parameter, in their order. `None` where they don't tell how many round trips are added.
fn values<'d, 'a>(
    parameter: Parameter,
    measured: &'d [Difference<'a>],
    counts: &[i64],
) -> Option<Vec<At<'d, 'a>>> {
    let mut values: Vec<At<'_, '_>> = Vec::new();
    for (difference, count) in measured.iter().zip(counts) {
        let cell = &difference.cell.cell;
        let value = parameter.of(cell);
        match values.iter_mut().find(|at| at.value == value) {
            Some(at) if at.more != *count => return None,
            Some(at) => at.differences.push(difference),
            None => values.push(At {
                value,
                name: parameter.describe(cell),
                number: parameter.number(cell),
                more: *count,
                differences: vec![difference],
            }),
        }
    }
    // What is no number stays as it is written.
    values.sort_by(|one, other| (one.number.partial_cmp(&other.number)).unwrap_or(Ordering::Equal));
    Some(values)
}

/// `adds 36.3 ms (+51 %) to the handshake at initcwnd 10: one round trip ...; from initcwnd 16 on 1.3 ms (+1.9 %)`
fn turned(turns: &[Turn<'_, '_>], experiment: &Experiment) -> String {
    let clauses = turns.iter().enumerate().map(|(index, turn)| {
        let mut shown = turn.differences.clone();
        shown.retain(|one| one.shown == Certainty::Shown);
        shown.sort_by(|a, b| a.increase.0.total_cmp(&b.increase.0));
        let Extent { size, because } = extent(&shown, experiment);
        let place = &turn.place;
        match trend(&shown) {
            Trend::None if index == 0 => format!("shows no difference in the handshake {place}"),
            Trend::None => format!("{place} it shows none"),
            Trend::Up if index == 0 => format!("adds {size} to the handshake {place}{because}"),
            Trend::Up => format!("{place} it adds {size}{because}"),
            Trend::Down if index == 0 => {
                format!("takes {size} off the handshake {place}{because}")
            }
            Trend::Down => format!("{place} it takes {size} off{because}"),
            Trend::Both => format!("{place} it changes it by {}", percents(&shown)),
        }
    });
    clauses.collect::<Vec<_>>().join("; ")
}

/// How the end of a page is said.
const PAGE: &str = "the page is loaded";
/// The same of a first byte.
const FIRST: &str = "the first byte comes";

/// ` (from 0.7 % earlier to 10.9 % later can't be excluded)`: what intervals hold that show nothing, where that is worth a word.
fn not_excluded(measured: &[Difference<'_>]) -> String {
    let lows = measured.iter().map(|one| Some(one.interval.low?.0));
    let highs = measured.iter().map(|one| Some(one.interval.high?.0));
    let (Some(lows), Some(highs)) = (
        lows.collect::<Option<Vec<f64>>>(),
        highs.collect::<Option<Vec<f64>>>(),
    ) else {
        return String::new();
    };
    let low = lows.into_iter().fold(0.0, f64::min);
    let high = highs.into_iter().fold(0.0, f64::max);
    let earlier = format!("{} earlier", percent(Percent(-low)));
    let later = format!("{} later", percent(Percent(high)));
    match (-low >= NOTICED_PERCENT, high >= NOTICED_PERCENT) {
        (false, false) => String::new(),
        (false, true) => format!(" (up to {later} can't be excluded)"),
        (true, false) => format!(" (up to {earlier} can't be excluded)"),
        (true, true) => format!(" (from {earlier} to {later} can't be excluded)"),
    }
}

/// What comes last, of which cells, and how that is said.
fn last(summary: &Summary) -> (Metric, Vec<&CellSummary>, &'static str) {
    if summary.experiment.has_pages() {
        (Metric::Load, summary.cells.iter().collect(), PAGE)
    } else {
        (
            Metric::Ttlb,
            cells_with_data(summary),
            "the last byte comes",
        )
    }
}

/// `at 50KiB the last byte comes 1.9 % later`
fn last_clause(differences: &Differences<'_>, percentile: Percentile, comes: &str) -> String {
    if differences.are_unknown() {
        return match comes {
            PAGE => "they are too few to tell when the page is loaded, too".into(),
            FIRST => "they are too few to tell the first byte's times apart, too".into(),
            _ => "they are too few to tell the last byte's times apart, too".into(),
        };
    }
    let mut shown = differences.shown();
    // The least and the most of many are those that luck has moved furthest.
    let mut unsure = Vec::new();
    if shown.iter().any(|one| one.is_sure()) {
        (shown, unsure) = shown.into_iter().partition(|one| one.is_sure());
    }
    let unsure = amounts_that_luck_hides(&unsure, differences.measured.len());
    let (Some(least), Some(most)) = (shown.first(), shown.last()) else {
        let what = match comes {
            PAGE => "its page",
            FIRST => "the first byte",
            _ => "the last byte",
        };
        return format!(
            "no difference was shown in {what}{}",
            not_excluded(&differences.measured)
        );
    };
    let size = |difference: &Difference<'_>| percent(Percent(difference.increase.0.abs()));
    let comes = match (&*shown, trend(&shown)) {
        ([only], Trend::Up) => format!("{}{comes} {} later", at(only.cell), size(only)),
        ([only], _) => format!("{}{comes} {} earlier", at(only.cell), size(only)),
        (_, Trend::Up) => format!(
            "{comes} {} later",
            span(&size(least), least.cell, &size(most), most.cell)
        ),
        (_, Trend::Down) => format!(
            "{comes} {} earlier",
            span(&size(most), most.cell, &size(least), least.cell)
        ),
        (_, _) => format!(
            "{comes} between {} earlier ({}) and {} later ({})",
            size(least),
            place(least.cell),
            size(most),
            place(most.cell)
        ),
    };
    comes + &because_of_the_window(&shown, percentile) + &unsure + &differences.elsewhere()
}

/// `, 20 % [0.7, 20] later at loss 3%, 50KiB`: where there is a difference whose size is luck's.
fn amounts_that_luck_hides(unsure: &[&Difference<'_>], cases: usize) -> String {
    let amount = |difference: &&Difference<'_>| {
        let (low, high) = (difference.interval.low?.0, difference.interval.high?.0);
        let (way, least, most) = if low >= 0.0 {
            ("later", low, high)
        } else {
            ("earlier", -high, -low)
        };
        let [size, least, most] =
            [difference.increase.0.abs(), least, most].map(|number| percent(Percent(number)));
        let least = least.trim_end_matches(" %");
        Some(format!(
            ", {size} {way} at {} (from {least} to {most})",
            place(difference.cell)
        ))
    };
    let amounts: Option<Vec<String>> = unsure.iter().map(amount).collect();
    match amounts {
        Some(amounts) if amounts.len() <= MOST_PLACES => amounts.concat(),
        _ => format!(
            ", in {} of {cases} cases by an amount that luck hides",
            unsure.len()
        ),
    }
}

/// How the larger of two handshakes has moved the response that follows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shift {
    Earlier,
    Later,
}

/// What a response has of a handshake before it, where that is all that can have moved the last byte. Without loss,
/// the window that it begins with has grown by what was acknowledged until then.
fn because_of_the_window(shown: &[&Difference<'_>], percentile: Percentile) -> String {
    let shift = |difference: &&Difference<'_>| {
        let [before, after] = both(difference).filter(is_slow_start)?;
        let behind = behind_the_handshake(difference, percentile)?;
        let is_whole = (behind.abs() - 1.0).abs() <= ROUND_TRIP_TOLERANCE;
        // A part of one is waiting, too, where the link is busy with the rest.
        let is_busy = difference.cell.cell.link.backward.rate.is_some()
            && difference.before.shares.is_some()
            && (ROUND_TRIP_TOLERANCE..1.0).contains(&behind.abs());
        let is_so = after.round_trips() == before.round_trips() && (is_whole || is_busy);
        match (
            difference.increase.0 < 0.0,
            before.segments.cmp(&after.segments),
        ) {
            (true, Ordering::Less) if is_so && behind < 0.0 => Some((Shift::Earlier, is_whole)),
            (false, Ordering::Greater) if is_so && behind > 0.0 => Some((Shift::Later, is_whole)),
            _ => None,
        }
    };
    // Where some come later, because of what they compute, those that come earlier have a reason of their own.
    let is_both = matches!(trend(shown), Trend::Both);
    let explained = (shown.iter()).filter(|one| !is_both || one.increase.0 < 0.0);
    let shifts: Option<Vec<(Shift, bool)>> = explained.map(shift).collect();
    let Some((&(first, _), shifts)) = shifts.as_deref().and_then(|all| Some((all.first()?, all)))
    else {
        return String::new();
    };
    if shifts.iter().any(|(shift, _)| *shift != first) {
        return String::new();
    }
    let is_whole = shifts.iter().all(|(_, is_whole)| *is_whole);
    let (opened, waits) = match (first, is_whole) {
        (Shift::Earlier, true) => (
            "the larger handshake has opened the server's window",
            "the response takes one round trip less",
        ),
        (Shift::Earlier, false) => (
            "the larger handshake has opened the server's window",
            "the response waits less for acknowledgements",
        ),
        (Shift::Later, true) => (
            "the smaller handshake has opened the server's window less",
            "the response takes one round trip more",
        ),
        (Shift::Later, false) => (
            "the smaller handshake has opened the server's window less",
            "the response waits longer for acknowledgements",
        ),
    };
    if is_both {
        format!(", and where it is earlier, {opened}: {waits}")
    } else {
        format!(", as {opened}: {waits}")
    }
}

/// How much differences come to, and why.
struct Extent {
    /// `36.3 ms (+51 %)`, or `one round trip (35.1 ms, +50 %)` where that is all.
    size: String,
    /// `: one round trip (12 segments and not 2, where the window is 10), and 1.3 ms of computing`
    because: String,
}

fn extent(shown: &[&Difference<'_>], experiment: &Experiment) -> Extent {
    let time = range(
        shown
            .iter()
            .map(|one| one.before.time.abs_diff(one.after.time)),
    );
    let percents = percents(shown);
    let plain = format!("{time} ({percents})");
    let parts: Option<Vec<Parts>> = shown.iter().map(|one| of_handshake(one)).collect();
    let round_trips = parts.as_deref().and_then(|parts| round_trips(shown, parts));
    let rest = match (&round_trips, parts.as_deref()) {
        (Some(_), Some(parts)) => {
            rest(shown, parts, Reason::Bytes).or_else(|| rest(shown, parts, Reason::Unknown))
        }
        (None, Some(parts)) => rest(shown, parts, Reason::Bytes).or_else(|| on_the_network(shown)),
        (_, None) => on_the_network(shown),
    };
    let others: Vec<String> = rest
        .into_iter()
        .chain(computing(shown, experiment))
        .collect();
    let round_trips = round_trips.or_else(|| Some((each_round_trips(shown)?, String::new())));
    let (size, causes) = match (round_trips, &*others) {
        (Some((round_trips, because)), []) => {
            (format!("{round_trips} ({time}, {percents})"), because)
        }
        (Some((round_trips, because)), others) => {
            let first = match &*because {
                "" => round_trips,
                because => format!("{round_trips} ({because})"),
            };
            (plain, listed(&[&[first], others].concat()))
        }
        (None, others) => (plain, listed(others)),
    };
    let because = match &*causes {
        "" => String::new(),
        causes => format!(": {causes}"),
    };
    Extent { size, because }
}

/// `a`, `a, and b`, `a, b, and c`.
fn listed(causes: &[String]) -> String {
    match causes {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{}, and {last}", others.join(", ")),
    }
}

/// What is left of whole round trips, where it is worth a word: `3.10 ms for the bytes themselves at 5mbit`, `0.80 ms
/// besides`.
fn rest(shown: &[&Difference<'_>], parts: &[Parts], reason: Reason) -> Option<String> {
    if (parts.iter()).any(|parts| parts.rest.iter().any(|(of, _)| *of != reason)) {
        return None;
    }
    let is_worth = |(one, parts): (&&Difference<'_>, &Parts)| {
        let whole = 1e3 * one.before.time.abs_diff(one.after.time).as_secs_f64();
        parts.of(reason).abs() >= WORTH_PART * whole
    };
    let times = parts.iter().map(|parts| parts.of(reason));
    let is_worth = shown.iter().zip(parts).any(is_worth);
    let is_more = times.clone().all(|time| time >= 0.0);
    let is_less = times.clone().all(|time| time <= 0.0);
    if !is_worth || !(is_more || is_less) {
        return None;
    }
    let time = range(times.map(|time| Duration::from_secs_f64(time.abs() / 1e3)));
    let less = if is_more { "" } else { " less" };
    match reason {
        Reason::Bytes => {
            let mut rates: Vec<String> = (shown.iter())
                .map(|one| Parameter::RATE.describe(&one.cell.cell))
                .collect();
            rates.dedup();
            let at = match &*rates {
                [rate] => format!(" at {rate}"),
                _ => String::new(),
            };
            Some(format!("{time}{less} for the bytes themselves{at}"))
        }
        // Of fewer round trips, more besides is told by the sign of the whole.
        Reason::Unknown | Reason::Waiting => Some(format!("{time}{less} besides")),
    }
}

/// What can't be told apart of the network's part of a difference, where that is known.
fn on_the_network(shown: &[&Difference<'_>]) -> Option<String> {
    if !shown
        .iter()
        .all(|one| one.before.shares.is_some() && one.after.shares.is_some())
    {
        return None;
    }
    let moved = |one: &&Difference<'_>| one.before.network().abs_diff(one.after.network());
    let network = range(shown.iter().map(moved));
    let is_less = (shown.iter()).all(|one| one.after.network() < one.before.network());
    if is_less {
        return Some(format!("{network} less on the network"));
    }
    let sent = |one: &&Difference<'_>| Duration::from_secs_f64(sending(one).abs() / 1e3);
    let takes_long = |one: &&Difference<'_>| sent(one) > moved(one).mul_f64(ROUND_TRIP_TOLERANCE);
    Some(if shown.iter().all(takes_long) {
        format!(
            "{network} on the network, {} of it for the bytes alone",
            range(shown.iter().map(sent))
        )
    } else {
        format!("{network} on the network")
    })
}

/// `36.3 ms`, or `1.54 ms to 36.4 ms`.
fn range(times: impl Iterator<Item = Duration> + Clone) -> String {
    let least = times.clone().min().map_or(String::new(), milliseconds);
    let most = times.max().map_or(String::new(), milliseconds);
    if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

/// `1.3 ms of computing`, or `0.5 ms less of computing`, where it is known and worth a word; and whose it is, where it
/// is most of all.
fn computing(shown: &[&Difference<'_>], experiment: &Experiment) -> Option<String> {
    let shares = shown.iter().map(|one| {
        let (before, after) = (one.before.shares?, one.after.shares?);
        let whole = one.before.time.abs_diff(one.after.time);
        Some((before.cpu, after.cpu, whole))
    });
    let shares: Vec<_> = shares.collect::<Option<_>>()?;
    let more = |before: &SignedDuration, after: &SignedDuration| (*after - *before).unsigned_abs();
    let part = |(before, after, whole): &(SignedDuration, SignedDuration, Duration)| {
        more(before, after).as_secs_f64() / whole.as_secs_f64().max(1e-9)
    };
    if !shares.iter().any(|shares| part(shares) >= WORTH_PART) {
        return None;
    }
    let time = range(shares.iter().map(|(before, after, _)| more(before, after)));
    let words = match (
        shares.iter().all(|(before, after, _)| after >= before),
        shares.iter().all(|(before, after, _)| after < before),
    ) {
        (true, _) => format!("{time} of computing"),
        (_, true) => format!("{time} less of computing"),
        _ => format!("{time} more or less of computing"),
    };
    let is_most = shares.iter().all(|shares| part(shares) > 0.5);
    let whose = is_most.then(|| shown.iter().map(|one| dominant(one, experiment)));
    let whose = whose.and_then(|mut all| {
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    });
    Some(match whose {
        Some(step) => format!("{words}, most of it {step}"),
        None => words,
    })
}

/// The step that more than half of what is computed more, or less, goes to.
fn dominant(difference: &Difference<'_>, experiment: &Experiment) -> Option<&'static str> {
    let arm = |side: &Side<'_>| {
        let mut arms = experiment.arms.iter();
        arms.find(|arm| arm.name == side.sample.label)
    };
    let (one, other) = (arm(&difference.before)?, arm(&difference.after)?);
    let cell = &difference.cell.cell;
    let costs = |side: &Side<'_>, arm: &Arm| {
        let costs = side.sample.engine.beside.of(arm.resumption)?;
        Some(costs.compute(cell, arm.record_size))
    };
    let before = costs(&difference.before, one)?;
    let after = costs(&difference.after, other)?;
    let signature = if one.group == other.group && one.resumption == other.resumption {
        "the server's signature"
    } else {
        "the server's"
    };
    // In mutual TLS, the client signs, too.
    let client = if one.client_chain.is_none() && other.client_chain.is_none() {
        "the client's verification"
    } else {
        "the client's"
    };
    let steps = [
        (
            "the client's ClientHello",
            before.client_hello,
            after.client_hello,
        ),
        (signature, before.server_flight, after.server_flight),
        (client, before.client_finish, after.client_finish),
    ];
    let moved = |(_, before, after): &(&'static str, Duration, Duration)| {
        after.as_secs_f64() - before.as_secs_f64()
    };
    let all: f64 = steps.iter().map(moved).sum();
    let most =
        (steps.iter()).max_by(|one, other| (moved(one) / all).total_cmp(&(moved(other) / all)))?;
    // Where others take off what it adds, it is not most of what is left.
    (0.5..=MOST_OF_ALL)
        .contains(&(moved(most) / all))
        .then_some(most.0)
}

/// `+50 %`, or `-3.0 % to +14 %`.
fn percents(shown: &[&Difference<'_>]) -> String {
    let signed = |difference: &&Difference<'_>| {
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

/// `one round trip on each`: of networks with round trips of their own, by the flights that each took.
fn each_round_trips(shown: &[&Difference<'_>]) -> Option<String> {
    let mut all = shown.iter().map(|difference| {
        let [before, after] = both(difference)?;
        after.round_trips().checked_sub(before.round_trips())
    });
    let first = all.next()?.filter(|more| *more > 0)?;
    let is_alike = shown.len() > 1 && all.all(|more| more == Some(first));
    is_alike.then(|| match first {
        1 => "one round trip on each network".to_owned(),
        more => format!("{more} round trips on each network"),
    })
}

/// The round trips that all differences amount to, in words, and why.
fn round_trips(shown: &[&Difference<'_>], parts: &[Parts]) -> Option<(String, String)> {
    let mut all = shown.iter().zip(parts).map(|(difference, parts)| {
        let [before, after] = both(difference)?;
        let whys = [Window::Shown, Window::Untold]
            .map(|window| because(difference, before, after, window));
        let count = parts.round_trips.unsigned_abs();
        (count > 0).then_some((count, whys))
    });
    let (count, [mut exactly, mut roughly]) = all.next()??;
    for other in all {
        let (other, whys) = other?;
        if other != count {
            return None;
        }
        // Of networks with several windows, what they have in common is told.
        for (why, other) in [&mut exactly, &mut roughly].into_iter().zip(whys) {
            if *why != other {
                why.clear();
            }
        }
    }
    let words = match count {
        1 => "one round trip".into(),
        2 => "two round trips".into(),
        3 => "three round trips".into(),
        more => format!("{more} round trips"),
    };
    let why = if exactly.is_empty() { roughly } else { exactly };
    Some((words, why))
}

/// Whether the server's first window is part of a because.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    Shown,
    Untold,
}

/// `12 segments and not 2, where the window is 10`
fn because(difference: &Difference<'_>, before: Flights, after: Flights, window: Window) -> String {
    let segments = difference.cell.cell.initcwnd;
    let mut causes = Vec::new();
    if after.server != before.server {
        let (now, then) = (after.segments, before.segments);
        let longer = if after.server > before.server {
            after
        } else {
            before
        };
        let window = match (longer.held, window) {
            (Some(Hold::Credit), _) => {
                ", of which the server may send three times what it has received".to_owned()
            }
            (_, Window::Shown) => format!(", where the window is {segments}"),
            (_, Window::Untold) => String::new(),
        };
        let now = counted(now, after.transport.packet());
        causes.push(format!("{now} and not {then}{window}"));
    }
    if after.is_retried != before.is_retried {
        causes.push("a HelloRetryRequest".to_owned());
    }
    if after.is_second != before.is_second {
        causes.push("a first connection that fails".to_owned());
    }
    causes.join(", and ")
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

/// `at 50KiB `; nothing of a page that stands alone.
fn at(cell: &CellSummary) -> String {
    match (&cell.cell.page, &*cell.name) {
        (Some(_), "") => String::new(),
        _ => format!("at {} ", place(cell)),
    }
}

fn cells_with_data(summary: &Summary) -> Vec<&CellSummary> {
    summary
        .cells
        .iter()
        .filter(|cell| cell.cell.work().requests > 0)
        .collect()
}
