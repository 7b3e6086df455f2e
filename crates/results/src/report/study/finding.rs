//! What a figure shows, as its heading.

use super::plan::{Plan, Series};
use crate::report::text;
use crate::results::Group;
use crate::study::Percentile;

/// Series that are named.
const NAMED: usize = 2;
/// An increase that is one, in percent.
const NOTICED: f64 = 0.5;
/// One that is worth a clause beside another.
const WORTH: f64 = 4.0;
/// So many times as long is longer.
const LONGER: f64 = 1.05;
/// So many times as long as hardly anything is not told as times.
const TIMES: f64 = 20.0;

/// The largest and the smallest of a series, with where they are.
struct Range {
    name: String,
    arm: String,
    most: (f64, String),
    least: (f64, String),
}

/// `pq delays the last byte by up to 51 % (fibre, no data); sig is up to 9 % sooner (geo, 50KiB)`
pub(super) fn increase(plan: &Plan) -> Option<String> {
    let median = percentile(plan, Percentile::MEDIAN);
    let of = |groups: &[&Group], one: &Series, x: &str| {
        let points = plan.points(plan.at(groups, one, x), &one.arm);
        let point = (*points.get(median)?)?;
        let [low, high] = point.closed()?;
        // What may be none is called none.
        Some(if low <= 0.0 && high >= 0.0 {
            0.0
        } else {
            point.value
        })
    };
    let mut ranges: Vec<Range> = ranges(plan, of);
    ranges.sort_by(|one, other| other.most.0.total_cmp(&one.most.0));
    let is_noticed = |range: &Range| range.most.0 >= NOTICED || range.least.0 <= -NOTICED;
    match ranges.iter().any(is_noticed) {
        true => words(&ranges, plan),
        false => slowest(plan).or_else(|| words(&ranges, plan)),
    }
}

/// Where medians are not delayed, what is for certain at the latest percentile: `The median handshake is not delayed; at
/// p90, pq is, by up to 85 % (loss 5%)`.
fn slowest(plan: &Plan) -> Option<String> {
    let (place, percentile) = plan.percentiles.iter().enumerate().next_back()?;
    let of = |groups: &[&Group], one: &Series, x: &str| {
        let points = plan.points(plan.at(groups, one, x), &one.arm);
        let point = (*points.get(place)?)?;
        let [low, _] = point.closed()?;
        (low > 0.0).then_some(point.value)
    };
    let ranges = ranges(plan, of);
    let latest = most(&ranges)?;
    (latest.most.0 >= NOTICED).then(|| {
        format!(
            "The median {} is not delayed; at {percentile}, {} is, by up to {}{}",
            text::metric(plan.figure.metric),
            latest.name,
            percent(latest.most.0),
            at(&latest.most.1)
        )
    })
}

/// `slh takes up to 9.5 times as long as classical (fibre, no data)`, at the median.
pub(super) fn times(plan: &Plan) -> Option<String> {
    at_percentile(plan, Percentile::MEDIAN, "")
}

/// The same of the slowest tenth, which distributions are drawn for.
pub(super) fn tail(plan: &Plan) -> Option<String> {
    let slowest = plan.percentiles.iter().find(|one| one.to_string() == "p90");
    match slowest {
        Some(slowest) => at_percentile(plan, *slowest, "one connection in ten of "),
        None => times(plan),
    }
}

fn at_percentile(plan: &Plan, wanted: Percentile, whose: &str) -> Option<String> {
    let place = percentile(plan, wanted);
    let series = plan.series();
    let first = series.first()?;
    let point = |groups: &[&Group], one: &Series, x: &str| {
        let points = plan.points(plan.at(groups, one, x), &one.arm);
        let point = (*points.get(place)?)?;
        Some((point.value, point.closed()?))
    };
    let of = |groups: &[&Group], one: &Series, x: &str| Some(point(groups, one, x)?.0);
    if let [_] = &*series {
        let all = ranges(plan, of);
        let Range {
            name, most, least, ..
        } = all.first()?;
        return Some(match most.0 > LONGER * least.0 {
            true => capital(format!(
                "{whose}{name} takes {} to {}{}",
                milliseconds(least.0),
                milliseconds(most.0),
                at(&most.1)
            )),
            false => capital(format!("{whose}{name} takes {}", milliseconds(most.0))),
        });
    }
    // Where arms differ, each is compared with the first one in its own surroundings.
    let is_of_arms = series.iter().any(|one| one.arm != first.arm);
    let than = |one: &Series| match is_of_arms {
        true => plan.of_arm(&first.arm, one),
        false => first.clone(),
    };
    let baseline = match is_of_arms {
        true => first.arm.clone(),
        false => plan.name(first),
    };
    let is_baseline = |range: &Range| match is_of_arms {
        true => range.arm == first.arm,
        false => range.name == baseline,
    };
    let compared = |of: &dyn Fn(f64, f64) -> f64, certain: bool| {
        let of = |groups: &[&Group], one: &Series, x: &str| {
            let ([now, then], [now_within, then_within]) = {
                let (now, then) = (point(groups, one, x)?, point(groups, &than(one), x)?);
                ([now.0, then.0], [now.1, then.1])
            };
            let apart = now_within[0] > then_within[1] || now_within[1] < then_within[0];
            let number = of(now, then);
            (number.is_finite() && (apart || !certain)).then_some(number)
        };
        let mut all = ranges(plan, of);
        all.retain(|range| !is_baseline(range));
        all
    };
    let times = compared(&|now, then| now / then, true);
    let slowest = most(&times);
    let soonest = least(&times);
    if slowest.is_some_and(|slowest| slowest.most.0 >= TIMES) {
        let all = compared(&|now, then| now - then, true);
        let slowest = most(&all)?;
        return Some(capital(format!(
            "{whose}{} takes up to {} longer than {baseline}{}",
            slowest.name,
            milliseconds(slowest.most.0),
            at(&slowest.most.1)
        )));
    }
    if let Some(slowest) = slowest.filter(|slowest| slowest.most.0 >= LONGER) {
        let times = match slowest.most.0 {
            9.95.. => format!("{:.0}", slowest.most.0),
            1.95.. => format!("{:.1}", slowest.most.0),
            _ => format!("{:.2}", slowest.most.0),
        };
        return Some(capital(format!(
            "{whose}{} takes up to {times} times as long as {baseline}{}",
            slowest.name,
            at(&slowest.most.1)
        )));
    }
    if let Some(soonest) = soonest.filter(|soonest| soonest.least.0 <= 1.0 / LONGER) {
        return Some(capital(format!(
            "{whose}{} takes down to {} of the time of {baseline}{}",
            soonest.name,
            percent(100.0 * soonest.least.0),
            at(&soonest.least.1)
        )));
    }
    let all = compared(&|now, then| now / then, false);
    let within = (most(&all)?.most.0 - 1.0).max(1.0 - least(&all)?.least.0);
    // More than that, and nobody knows.
    (within < LONGER - 1.0).then(|| {
        capital(format!(
            "{whose}all are within {} of {baseline}",
            percent(100.0 * within.max(0.001))
        ))
    })
}

fn most(ranges: &[Range]) -> Option<&Range> {
    let ranges = ranges.iter();
    ranges.max_by(|one, other| one.most.0.total_cmp(&other.most.0))
}

fn least(ranges: &[Range]) -> Option<&Range> {
    let ranges = ranges.iter();
    ranges.min_by(|one, other| one.least.0.total_cmp(&other.least.0))
}

/// Where a percentile is among those of the figure; the first, if it is not.
fn percentile(plan: &Plan, wanted: Percentile) -> usize {
    let place = plan.percentiles.iter().position(|one| *one == wanted);
    place.unwrap_or_default()
}

/// What is least and most of each series that has a number anywhere.
fn ranges(plan: &Plan, of: impl Fn(&[&Group], &Series, &str) -> Option<f64>) -> Vec<Range> {
    let axis = match plan.axis() {
        empty if empty.is_empty() => vec![(String::new(), None)],
        axis => axis,
    };
    let panels = plan.panels();
    let mut ranges: Vec<Range> = Vec::new();
    for series in plan.series() {
        let mut range: Option<Range> = None;
        for (panel, groups) in &panels {
            for (x, _) in &axis {
                let Some(value) = of(groups, &series, x) else {
                    continue;
                };
                let words: Vec<String> = [panel.clone(), plan.place_on_axis(x)]
                    .into_iter()
                    .filter(|word| !word.is_empty())
                    .collect();
                let here = (value, words.join(", "));
                match &mut range {
                    Some(range) if here.0 > range.most.0 => range.most = here,
                    Some(range) if here.0 < range.least.0 => range.least = here,
                    Some(_) => {}
                    None => {
                        range = Some(Range {
                            name: plan.name(&series),
                            arm: series.arm.clone(),
                            most: here.clone(),
                            least: here,
                        });
                    }
                }
            }
        }
        ranges.extend(range);
    }
    ranges
}

fn at(place: &str) -> String {
    match place {
        "" => String::new(),
        place => format!(" ({place})"),
    }
}

fn words(ranges: &[Range], plan: &Plan) -> Option<String> {
    let what = text::metric(plan.figure.metric);
    let first = ranges.first()?;
    let soonest = least(ranges)?;
    if first.most.0 < NOTICED && soonest.least.0 > -NOTICED {
        return Some(match ranges {
            [only] => format!("{} does not delay the {what}", only.name),
            _ => format!("Nothing delays the {what}"),
        });
    }
    if first.most.0 < NOTICED {
        return Some(format!(
            "{} brings the {what} up to {} sooner{}",
            soonest.name,
            percent(-soonest.least.0),
            at(&soonest.least.1)
        ));
    }
    let mut clauses = vec![match first.least.0 > 0.8 * first.most.0 {
        true => format!(
            "{} delays the {what} by {}",
            first.name,
            percent(first.most.0)
        ),
        false => format!(
            "{} delays the {what} by up to {}{}",
            first.name,
            percent(first.most.0),
            at(&first.most.1)
        ),
    }];
    let others = ranges.iter().take(NAMED).skip(1);
    for other in others.filter(|one| one.most.0 >= NOTICED) {
        clauses.push(format!("{} by {}", other.name, percent(other.most.0)));
    }
    let mut words = clauses.join(", ");
    if soonest.least.0 <= -WORTH {
        let who = match ranges {
            [_] => "it",
            _ => &soonest.name,
        };
        words += &format!(
            "; {who} comes up to {} sooner{}",
            percent(-soonest.least.0),
            at(&soonest.least.1)
        );
    }
    Some(words)
}

fn percent(value: f64) -> String {
    match value {
        9.95.. => format!("{value:.0}\u{a0}%"),
        _ => format!("{value:.1}\u{a0}%"),
    }
}

fn milliseconds(value: f64) -> String {
    match value {
        9.95.. => format!("{value:.0}\u{a0}ms"),
        _ => format!("{value:.1}\u{a0}ms"),
    }
}

/// Names of arms are as they are.
fn capital(words: String) -> String {
    match words.strip_prefix("one ").map(|rest| format!("One {rest}")) {
        Some(words) => words,
        None => match words.strip_prefix("all ") {
            Some(rest) => format!("All {rest}"),
            None => words,
        },
    }
}
