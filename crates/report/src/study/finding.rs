//! What a figure shows, as its heading.

use super::plan::{Plan, Series};
use crate::text;
use crate::thresholds::{LONGER, NAMED_SERIES, NOTICED_PERCENT, SURE, TIMES, WORTH_PERCENT};
use lastbyte_results::Group;
use lastbyte_study::Percentile;

/// The largest and the smallest of a series.
struct Range {
    name: String,
    arm: String,
    most: Extreme,
    least: Extreme,
    /// The least and the largest value, certain or not.
    values: [f64; 2],
}

/// One of them: what is certain of it decides, so that none is an extreme of noise.
#[derive(Clone)]
struct Extreme {
    value: f64,
    certain: f64,
    place: String,
}

impl Extreme {
    /// Whether its number is worth repeating, as a difference from `nothing`.
    fn is_sure(&self, nothing: f64) -> bool {
        (self.value - self.certain).abs() <= SURE * (self.value - nothing).abs()
    }

    /// `up to` with its number, or `at least` with what is certain of it.
    fn up_to(&self, nothing: f64, to_text: impl Fn(f64) -> String) -> String {
        if self.is_sure(nothing) {
            format!("up to {}", to_text(self.value))
        } else {
            format!("at least {}", to_text(self.certain))
        }
    }
}

/// An increase of an arm over its baseline, with where it is. The arm is what delays: a window, or a network, is a place.
struct Increase {
    arm: String,
    place: String,
    value: f64,
    ends: [f64; 2],
    /// Whether it stands out among all that are reported together.
    stands_out: bool,
}

impl Increase {
    /// What may be none is called none.
    fn is_shown(&self) -> bool {
        let [low, high] = self.ends;
        self.stands_out
            && ((low > 0.0 && self.value >= NOTICED_PERCENT)
                || (high < 0.0 && self.value <= -NOTICED_PERCENT))
    }

    /// How large it is at least: the end of its interval that is nearer to nothing.
    fn at_least(&self) -> f64 {
        let [low, high] = self.ends;
        low.max(0.0 - high).max(0.0)
    }

    /// Whether its number is worth repeating.
    fn is_sure(&self) -> bool {
        let [low, high] = self.ends;
        (high - low) / 2.0 <= (SURE * self.value.abs()).max(NOTICED_PERCENT)
    }

    /// `51 %`, or `at least 9 %` of what is not known better.
    fn to_text(&self) -> String {
        if self.is_sure() {
            percent(self.value.abs())
        } else {
            format!("at least {}", percent(self.at_least()))
        }
    }

    /// The same of the largest of several.
    fn up_to(&self) -> String {
        if self.is_sure() {
            format!("up to {}", percent(self.value.abs()))
        } else {
            self.to_text()
        }
    }
}

/// All increases at a percentile of the figure that are known.
fn increases(plan: &Plan, percentile: usize) -> Vec<Increase> {
    let axis = match plan.axis() {
        empty if empty.is_empty() => vec![(String::new(), None)],
        axis => axis,
    };
    let mut known = Vec::new();
    for (panel, groups) in plan.panels() {
        for series in plan.series() {
            for (x, _) in &axis {
                let group = plan.at(&groups, &series, x);
                let points = plan.points(group, &series.arm);
                let point = points.get(percentile).copied().flatten();
                let Some((value, ends)) =
                    point.and_then(|point| Some((point.value, point.closed()?)))
                else {
                    continue;
                };
                let words = [
                    panel.clone(),
                    series.others().to_owned(),
                    plan.place_on_axis(x),
                ];
                let words: Vec<String> =
                    words.into_iter().filter(|word| !word.is_empty()).collect();
                known.push(Increase {
                    arm: series.arm.clone(),
                    place: words.join(", "),
                    value,
                    ends,
                    stands_out: plan.stands_out(group, &series.arm, percentile),
                });
            }
        }
    }
    known
}

/// The largest for sure of each arm, the largest of all first.
fn largest(all: &[Increase], is_one: impl Fn(&Increase) -> bool) -> Vec<&Increase> {
    let mut largest: Vec<&Increase> = Vec::new();
    for one in all.iter().filter(|one| one.is_shown() && is_one(one)) {
        match largest.iter_mut().find(|known| known.arm == one.arm) {
            Some(known) if one.at_least() > known.at_least() => *known = one,
            Some(_) => {}
            None => largest.push(one),
        }
    }
    largest.sort_by(|one, other| other.at_least().total_cmp(&one.at_least()));
    largest
}

/// `pq delays the last byte by up to 51 % (fibre, no data); sig comes up to 9 % sooner (geo, 50KiB)`
pub(super) fn increase(plan: &Plan) -> Option<String> {
    let all = increases(plan, percentile(plan, Percentile::MEDIAN));
    let what = text::metric(plan.figure.metric);
    let late = largest(&all, |one| one.value > 0.0);
    let soon = largest(&all, |one| one.value < 0.0).into_iter().next();
    let Some(first) = late.first() else {
        return Some(match soon {
            Some(soon) => format!(
                "{} brings the {what} {} sooner{}",
                soon.arm,
                soon.up_to(),
                at(&soon.place)
            ),
            None => slowest(plan).or_else(|| none(&all, what))?,
        });
    };
    // Wherever it is, it is about as much.
    let of_first = || all.iter().filter(|one| one.arm == first.arm);
    let mut words = if of_first().all(|one| one.is_shown() && one.value > 0.8 * first.value)
        && first.is_sure()
    {
        format!("{} delays the {what} by {}", first.arm, first.to_text())
    } else {
        format!(
            "{} delays the {what} by {}{}",
            first.arm,
            first.up_to(),
            at(&first.place)
        )
    };
    for other in late.iter().take(NAMED_SERIES).skip(1) {
        words += &format!(", {} by {}", other.arm, other.to_text());
    }
    if let Some(soon) = soon.filter(|soon| soon.at_least() >= WORTH_PERCENT) {
        let who = if all.iter().all(|one| one.arm == soon.arm) {
            "it"
        } else {
            &soon.arm
        };
        words += &format!("; {who} comes {} sooner{}", soon.up_to(), at(&soon.place));
    }
    Some(words)
}

/// Where nothing is shown. `None` where nothing is known.
fn none(all: &[Increase], what: &str) -> Option<String> {
    let first = all.first()?;
    let is_narrow = |one: &Increase| one.ends.iter().all(|end| end.abs() < WORTH_PERCENT);
    Some(
        match (
            all.iter().all(|one| one.arm == first.arm),
            all.iter().all(is_narrow),
        ) {
            (true, true) => format!("{} does not delay the {what}", first.arm),
            (false, true) => format!("Nothing delays the {what}"),
            (_, false) => format!("No difference was shown in the {what}"),
        },
    )
}

/// Where medians are not delayed, what is for certain at the latest percentile: `No delay of the median handshake was
/// shown; at p90, pq delays it by up to 85 % (loss 5%)`.
fn slowest(plan: &Plan) -> Option<String> {
    let (place, percentile) = plan.percentiles.iter().enumerate().next_back()?;
    let all = increases(plan, place);
    let latest = largest(&all, |one| one.value > 0.0).into_iter().next()?;
    (*percentile > Percentile::MEDIAN).then(|| {
        format!(
            "No delay of the median {} was shown; at {percentile}, {} delays it by {}{}",
            text::metric(plan.figure.metric),
            latest.arm,
            latest.up_to(),
            at(&latest.place)
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
        Some(slowest) => at_percentile(plan, *slowest, "the slowest tenth of "),
        None => times(plan),
    }
}

fn at_percentile(plan: &Plan, wanted: Percentile, whose: &str) -> Option<String> {
    let place = percentile(plan, wanted);
    let words = match &*plan.series() {
        [] => return None,
        [_] => alone(plan, place)?,
        [first, others @ ..] => Comparison::with(plan, place, first, others).difference()?,
    };
    Some(capital(format!("{whose}{words}")))
}

/// `classical takes 72 ms to 180 ms (geo, 50KiB)`: the only series of a figure.
fn alone(plan: &Plan, place: usize) -> Option<String> {
    let ranges = ranges(plan, |groups, one, x| {
        let (value, _) = point(plan, place, groups, one, x)?;
        Some([value, value])
    });
    let Range {
        name, most, least, ..
    } = ranges.first()?;
    Some(if most.value > LONGER * least.value {
        format!(
            "{name} takes {} to {}{}",
            milliseconds(least.value),
            milliseconds(most.value),
            at(&most.place)
        )
    } else {
        format!("{name} takes {}", milliseconds(most.value))
    })
}

/// A point of a series whose interval is closed, with the ends of that.
fn point(
    plan: &Plan,
    place: usize,
    groups: &[&Group],
    one: &Series,
    x: &str,
) -> Option<(f64, [f64; 2])> {
    let points = plan.points(plan.at(groups, one, x), &one.arm);
    let point = (*points.get(place)?)?;
    Some((point.value, point.closed()?))
}

/// The series of a figure, compared with the first one: where arms differ, each in its own
/// surroundings.
struct Comparison<'a> {
    plan: &'a Plan<'a>,
    /// The percentile, by its place among the figure's.
    place: usize,
    first: &'a Series,
    is_of_arms: bool,
}

impl<'a> Comparison<'a> {
    fn with(
        plan: &'a Plan<'a>,
        place: usize,
        first: &'a Series,
        others: &[Series],
    ) -> Comparison<'a> {
        Comparison {
            plan,
            place,
            first,
            is_of_arms: others.iter().any(|one| one.arm != first.arm),
        }
    }

    /// The largest difference: in milliseconds where it is several times, else as a part.
    fn difference(&self) -> Option<String> {
        let times = self.ranges(|now, then| now / then);
        let (slowest, soonest) = (most(&times)?, least(&times)?);
        if slowest.most.certain >= TIMES {
            return self.longer();
        }
        Some(if slowest.most.certain >= LONGER {
            self.times_as_long(slowest)
        } else if soonest.least.certain <= 1.0 / LONGER {
            self.less_time(soonest)
        } else {
            return self.within(&times);
        })
    }

    /// What `of` makes of each time and of the one that it is compared with.
    fn ranges(&self, of: impl Fn(f64, f64) -> f64) -> Vec<Range> {
        let of = |groups: &[&Group], one: &Series, x: &str| {
            let point = |one: &Series| point(self.plan, self.place, groups, one, x);
            let (now, now_within) = point(one)?;
            let (then, then_within) = point(&self.baseline_of(one))?;
            let value = of(now, then);
            // The end that is nearer to none; where the intervals touch, nothing is certain but that.
            let certain = match () {
                () if now_within[0] > then_within[1] => of(now_within[0], then_within[1]),
                () if now_within[1] < then_within[0] => of(now_within[1], then_within[0]),
                () => of(then, then),
            };
            (value.is_finite() && certain.is_finite()).then_some([value, certain])
        };
        let mut all = ranges(self.plan, of);
        all.retain(|range| !self.is_baseline(range));
        all
    }

    fn baseline_of(&self, one: &Series) -> Series {
        if self.is_of_arms {
            self.plan.of_arm(&self.first.arm, one)
        } else {
            self.first.clone()
        }
    }

    fn is_baseline(&self, range: &Range) -> bool {
        if self.is_of_arms {
            range.arm == self.first.arm
        } else {
            range.name == self.baseline()
        }
    }

    fn baseline(&self) -> String {
        if self.is_of_arms {
            self.first.arm.clone()
        } else {
            self.plan.name(self.first)
        }
    }

    fn longer(&self) -> Option<String> {
        let all = self.ranges(|now, then| now - then);
        let slowest = most(&all)?;
        Some(format!(
            "{} takes {} longer than {}{}",
            slowest.name,
            slowest.most.up_to(0.0, milliseconds),
            self.baseline(),
            at(&slowest.most.place)
        ))
    }

    fn times_as_long(&self, slowest: &Range) -> String {
        let times = |times: f64| match times {
            9.95.. => format!("{times:.0}"),
            1.95.. => format!("{times:.1}"),
            _ => format!("{times:.2}"),
        };
        format!(
            "{} takes {} times as long as {}{}",
            slowest.name,
            slowest.most.up_to(1.0, times),
            self.baseline(),
            at(&slowest.most.place)
        )
    }

    fn less_time(&self, soonest: &Range) -> String {
        let less = |part: f64| percent(100.0 * (1.0 - part));
        format!(
            "{} takes {} less time than {}{}",
            soonest.name,
            soonest.least.up_to(1.0, less),
            self.baseline(),
            at(&soonest.least.place)
        )
    }

    /// How near all are to the baseline; `None` where one is further away, but not for certain.
    fn within(&self, times: &[Range]) -> Option<String> {
        let values = times.iter().flat_map(|range| range.values);
        let within = values.map(|times| (times - 1.0).abs()).fold(0.0, f64::max);
        (within < LONGER - 1.0).then(|| {
            format!(
                "all are within {} of {}",
                percent(100.0 * within.max(0.001)),
                self.baseline()
            )
        })
    }
}

fn most(ranges: &[Range]) -> Option<&Range> {
    let ranges = ranges.iter();
    ranges.max_by(|one, other| one.most.certain.total_cmp(&other.most.certain))
}

fn least(ranges: &[Range]) -> Option<&Range> {
    let ranges = ranges.iter();
    ranges.min_by(|one, other| one.least.certain.total_cmp(&other.least.certain))
}

/// Where a percentile is among those of the figure; the first, if it is not.
fn percentile(plan: &Plan, wanted: Percentile) -> usize {
    let place = plan.percentiles.iter().position(|one| *one == wanted);
    place.unwrap_or_default()
}

/// What is least and most of each series that has a number anywhere: of what is certain of each, beside its value.
fn ranges(plan: &Plan, of: impl Fn(&[&Group], &Series, &str) -> Option<[f64; 2]>) -> Vec<Range> {
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
                let Some([value, certain]) = of(groups, &series, x) else {
                    continue;
                };
                let words: Vec<String> = [panel.clone(), plan.place_on_axis(x)]
                    .into_iter()
                    .filter(|word| !word.is_empty())
                    .collect();
                let place = words.join(", ");
                let here = Extreme {
                    value,
                    certain,
                    place,
                };
                if let Some(Range {
                    values: [low, high],
                    ..
                }) = &mut range
                {
                    (*low, *high) = (low.min(value), high.max(value));
                }
                match &mut range {
                    Some(range) if certain > range.most.certain => range.most = here,
                    Some(range) if certain < range.least.certain => range.least = here,
                    Some(_) => {}
                    None => {
                        range = Some(Range {
                            name: plan.name(&series),
                            arm: series.arm.clone(),
                            most: here.clone(),
                            least: here,
                            values: [value, value],
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

pub(super) fn percent(value: f64) -> String {
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
