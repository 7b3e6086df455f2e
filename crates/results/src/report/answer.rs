//! What the results come to, in plain words.

use std::cmp::Ordering;
use std::time::Duration;

use jiff::SignedDuration;
use lastbyte_link::counted;
use lastbyte_sizes::Message;

use crate::results::number::{difference_digits, milliseconds, percent, share};
use crate::results::{
    ArmSummary, CellSummary, Metric, Percent, Percentile, Shares, Step, Summary, Validity,
};
use crate::study::{Experiment, Parameter};

/// How far from a whole number of round trips an increase may be and still be called one.
const ROUND_TRIP_TOLERANCE: f64 = 0.1;

/// How much longer a wait is that people notice.
pub(super) const FELT: Step = Step::Milliseconds(20);

/// The share of what is computed more that one step may be, where another one takes less.
const MOST_OF_ALL: f64 = 1.1;

/// The least increase that is reported as anything but zero, in percent.
const LEAST: f64 = 0.005;

/// One sentence for each arm that is compared, or for an arm alone. It calls nothing a difference
/// whose interval holds zero, or that does not stand out among all that is asked, and is silent about
/// samples that are not valid.
pub(super) fn answer(summary: &Summary) -> Vec<String> {
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
    let clauses = std::iter::once(handshake_clause(&handshake, &summary.experiment))
        .chain(last_byte.map(|differences| last_byte_clause(&differences)));
    Some(clauses.collect::<Vec<_>>().join("; "))
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
    before: Side<'a>,
    after: Side<'a>,
    told: Told,
}

/// What is known of a difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It is one.
    Shown,
    /// It may be none.
    NotShown,
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
                before,
                after,
                told: match shown {
                    Some(shown) if shown.value.0.abs() >= LEAST => Told::Shown,
                    None if increase.interval.is_unknown() => Told::Unknown,
                    _ => Told::NotShown,
                },
            });
        }
        let mut shown: Vec<usize> = (0..measured.len()).collect();
        shown.retain(|index| {
            measured
                .get(*index)
                .is_some_and(|one| one.told == Told::Shown)
        });
        let increase = |index: &usize| measured.get(*index).map_or(0.0, |one| one.increase.0);
        shown.sort_by(|a, b| increase(a).total_cmp(&increase(b)));
        (!measured.is_empty()).then_some(Differences { measured, shown })
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
        self.measured.iter().all(|one| one.told == Told::Unknown)
    }

    /// Where nothing was shown.
    fn elsewhere(&self) -> String {
        match self.measured.len() - self.shown.len() {
            0 => String::new(),
            others => format!(
                ", and in {others} of {} cases no difference was shown",
                self.measured.len()
            ),
        }
    }
}

fn trend(shown: &[&Difference<'_>]) -> Trend {
    match (shown.first(), shown.last()) {
        (Some(least), _) if least.increase > Percent(0.0) => Trend::Up,
        (_, Some(most)) if most.increase < Percent(0.0) => Trend::Down,
        (Some(_), Some(_)) => Trend::Both,
        _ => Trend::None,
    }
}

fn handshake_clause(differences: &Differences<'_>, experiment: &Experiment) -> String {
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
        Trend::Up => format!("adds {size} to the handshake{because}"),
        Trend::Down => format!("takes {size} off the handshake{because}"),
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
        let before = flights(difference.before.sample)?;
        let after = flights(difference.after.sample)?;
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
        shown.retain(|one| one.told == Told::Shown);
        shown.sort_by(|a, b| a.increase.0.total_cmp(&b.increase.0));
        let Extent { size, because } = extent(&shown, experiment);
        let place = &turn.place;
        let of = match index {
            0 => " to the handshake",
            _ => "",
        };
        let from = of.replace("to", "off");
        match trend(&shown) {
            Trend::None if index == 0 => format!("shows no difference in the handshake {place}"),
            Trend::None => format!("{place} it shows none"),
            Trend::Up if index == 0 => format!("adds {size}{of} {place}{because}"),
            Trend::Up => format!("{place} it adds {size}{because}"),
            Trend::Down if index == 0 => format!("takes {size}{from} {place}{because}"),
            Trend::Down => format!("{place} it takes {size} off{because}"),
            Trend::Both => format!("{place} it changes it by {}", percents(&shown)),
        }
    });
    clauses.collect::<Vec<_>>().join("; ")
}

fn last_byte_clause(differences: &Differences<'_>) -> String {
    if differences.are_unknown() {
        return "they are too few to tell the last byte's times apart, too".into();
    }
    let shown = differences.shown();
    let (Some(least), Some(most)) = (shown.first(), shown.last()) else {
        return "no difference was shown in the last byte".into();
    };
    let size = |difference: &Difference<'_>| percent(Percent(difference.increase.0.abs()));
    let comes = match (&*shown, trend(&shown)) {
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
    comes + because_of_the_window(&shown) + &differences.elsewhere()
}

/// How the larger of two handshakes has moved the response that follows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shift {
    Earlier,
    Later,
}

/// What a response has of a handshake before it, where that is all that can have moved the last byte by whole round
/// trips. Without loss, the window that it begins with has grown by what was acknowledged until then.
fn because_of_the_window(shown: &[&Difference<'_>]) -> &'static str {
    let shift = |difference: &&Difference<'_>| {
        let before = flights(difference.before.sample)?;
        let after = flights(difference.after.sample)?;
        let (then, now) = (difference.before.network(), difference.after.network());
        let shift = match (now < then, before.segments.cmp(&after.segments)) {
            (true, Ordering::Less) => Shift::Earlier,
            (false, Ordering::Greater) => Shift::Later,
            _ => return None,
        };
        let is_one = whole_round_trips(difference, now.abs_diff(then)) == Some(1);
        let is_so = is_one
            && after.round_trips() == before.round_trips()
            && !difference.cell.cell.has_loss();
        is_so.then_some(shift)
    };
    let mut shifts = shown.iter().map(shift);
    let first = shifts.next().flatten();
    match first.filter(|_| shifts.all(|shift| shift == first)) {
        Some(Shift::Earlier) => {
            ", as the larger handshake has opened the server's window: the response takes one round trip less"
        }
        Some(Shift::Later) => {
            ", as the smaller handshake has opened the server's window less: the response takes one round trip more"
        }
        None => "",
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
    let computing = computing(shown, experiment);
    let (size, causes) = match (round_trips(shown), computing) {
        (Some((round_trips, because)), None) => {
            (format!("{round_trips} ({time}, {percents})"), because)
        }
        (Some((round_trips, because)), Some(computing)) => {
            let because = match &*because {
                "" => String::new(),
                because => format!(" ({because})"),
            };
            (plain, format!("{round_trips}{because}, and {computing}"))
        }
        (None, Some(computing)) => {
            let network = shown
                .iter()
                .map(|one| one.before.network().abs_diff(one.after.network()));
            let sent = range(shown.iter().map(|one| sending(one)));
            let takes_long = |one: &&Difference<'_>| {
                let network = one.before.network().abs_diff(one.after.network());
                sending(one) > network.mul_f64(ROUND_TRIP_TOLERANCE)
            };
            let network = match shown.iter().all(takes_long) {
                true => (
                    range(network),
                    format!(", {sent} of it for the bytes alone"),
                ),
                false => (range(network), String::new()),
            };
            let (network, sent) = network;
            let is_less = shown
                .iter()
                .all(|one| one.after.network() < one.before.network());
            let network = match is_less {
                true => format!("{network} less on the network"),
                false => format!("{network} on the network{sent}"),
            };
            (plain, format!("{network}, and {computing}"))
        }
        (None, None) => (plain, String::new()),
    };
    let because = match &*causes {
        "" => String::new(),
        causes => format!(": {causes}"),
    };
    Extent { size, because }
}

/// `36.3 ms`, or `1.54 ms to 36.4 ms`.
fn range(times: impl Iterator<Item = Duration> + Clone) -> String {
    let least = times.clone().min().map_or(String::new(), milliseconds);
    let most = times.max().map_or(String::new(), milliseconds);
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

/// `1.3 ms of computing`, or `0.5 ms less of computing`, where it is known and worth a word; and whose it is, where it
/// is most of all.
fn computing(shown: &[&Difference<'_>], experiment: &Experiment) -> Option<String> {
    /// Of a difference; less than that does not show in it.
    const WORTH: f64 = 0.005;
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
    if !shares.iter().any(|shares| part(shares) >= WORTH) {
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
    let before = difference.before.sample.engine.beside.of(one.resumption)?;
    let after = difference.after.sample.engine.beside.of(other.resumption)?;
    let signature = match one.group == other.group && one.resumption == other.resumption {
        true => "the server's signature",
        false => "the server's",
    };
    // In mutual TLS, the client signs, too.
    let client = match one.client_chain.is_none() && other.client_chain.is_none() {
        true => "the client's verification",
        false => "the client's",
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

/// The round trips that all differences amount to, in words, and why. Time alone is none: a signature can take as long.
fn round_trips(shown: &[&Difference<'_>]) -> Option<(String, String)> {
    let mut all = shown.iter().map(|difference| {
        let before = flights(difference.before.sample)?;
        let after = flights(difference.after.sample)?;
        let (then, now) = (difference.before.network(), difference.after.network());
        let more = after.round_trips().abs_diff(before.round_trips());
        let is_so = (after.round_trips() > before.round_trips()) == (now > then);
        let count = whole_round_trips(difference, then.abs_diff(now));
        // What a slow link takes for the bytes alone is no waiting.
        let is_waiting = sending(difference)
            <= difference
                .cell
                .cell
                .link
                .rtt()
                .mul_f64(ROUND_TRIP_TOLERANCE);
        let count = count.filter(|count| *count == more && is_so && is_waiting)?;
        let whys =
            [Window::Told, Window::Untold].map(|window| because(difference, before, after, window));
        Some((count, whys))
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

/// How long the bytes that the server's handshake has more, or fewer, take on the link.
fn sending(difference: &Difference<'_>) -> Duration {
    let bytes = |side: &Side<'_>| {
        let wire = side.sample.wire.as_ref();
        wire.map_or(0, |wire| wire.server_wire_bytes.median)
    };
    let more = bytes(&difference.before).abs_diff(bytes(&difference.after));
    let rate = difference.cell.cell.link.backward.rate;
    rate.map_or(Duration::ZERO, |rate| rate.serialisation(more as usize))
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

/// Whether the server's first window is part of a because.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    Told,
    Untold,
}

/// `12 segments and not 2, where the window is 10`
fn because(difference: &Difference<'_>, before: Flights, after: Flights, window: Window) -> String {
    let segments = difference.cell.cell.initcwnd;
    let mut causes = Vec::new();
    if after.server != before.server {
        let (now, then) = (after.segments, before.segments);
        let window = match window {
            Window::Told => format!(", where the window is {segments}"),
            Window::Untold => String::new(),
        };
        let now = counted(now, "segment");
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

fn cells_with_data(summary: &Summary) -> Vec<&CellSummary> {
    summary
        .cells
        .iter()
        .filter(|cell| cell.cell.work().requests > 0)
        .collect()
}

/// The whole round trips by which an arm is later than the baseline, or sooner: counted in flights for a handshake, and
/// for a response where nothing is lost and the link is not what takes the time.
pub(super) fn round_trips_later(
    cell: &CellSummary,
    arm: &ArmSummary,
    metric: Metric,
    percentile: Percentile,
) -> Option<i64> {
    let side = |sample| side_of(sample, metric, percentile);
    let difference = Difference {
        cell,
        increase: Percent(0.0),
        before: side(cell.baseline()?)?,
        after: side(arm)?,
        told: Told::Shown,
    };
    let (then, now) = (difference.before.network(), difference.after.network());
    let rtt = cell.cell.link.rtt();
    let moved = now.abs_diff(then);
    let whole = match moved <= rtt.mul_f64(ROUND_TRIP_TOLERANCE) {
        true => 0,
        false => i64::from(whole_round_trips(&difference, moved)?),
    };
    let signed = if now < then { -whole } else { whole };
    let is_waiting = sending(&difference) <= rtt.mul_f64(1.5 * ROUND_TRIP_TOLERANCE);
    let is_so = match metric {
        Metric::Handshake => {
            let [before, after] = [difference.before.sample, difference.after.sample].map(flights);
            i64::from(after?.round_trips()) - i64::from(before?.round_trips()) == signed
        }
        _ => !cell.cell.has_loss(),
    };
    (is_so && (whole == 0 || is_waiting)).then_some(signed)
}
