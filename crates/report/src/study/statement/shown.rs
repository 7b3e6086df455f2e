//! Differences that are shown, which made sentences name, and how they say them.

use crate::study::overview::{Case, Column, Increase, Perception};
use crate::text::digits;
use crate::thresholds::{NAMED, NOTHING_MS, WORTH_MORE};

/// Cases on the network that most readers have, and elsewhere.
pub(super) struct Times<'a> {
    pub(super) here: Vec<&'a Case>,
    pub(super) away: Vec<&'a Case>,
}

impl<'a> Times<'a> {
    /// `None` of none.
    pub(super) fn new(cases: &[&'a Case]) -> Option<Times<'a>> {
        let usual = cases
            .iter()
            .min_by(|one, other| one.unusual.total_cmp(&other.unusual))?;
        let (here, away) = cases.iter().partition(|case| case.place == usual.place);
        Some(Times { here, away })
    }
}

pub(super) fn is_late(case: &Case) -> bool {
    matches!(
        case.known.perception(),
        Perception::Later | Perception::Part
    )
}

pub(super) fn is_sooner(case: &Case) -> bool {
    case.known.perception() == Perception::Sooner
}

/// The largest for sure.
pub(super) fn largest<'a>(cases: &[&'a Case], is_one: fn(&Case) -> bool) -> Option<&'a Case> {
    by_arm(cases, is_one).into_iter().next()
}

/// The largest of each arm, the largest of all first. What nobody could tell apart stays in the study's order.
pub(super) fn by_arm<'a>(cases: &[&'a Case], is_one: fn(&Case) -> bool) -> Vec<&'a Case> {
    let mut largest: Vec<&Case> = Vec::new();
    for case in cases.iter().copied().filter(|case| is_one(case)) {
        match largest.iter_mut().find(|known| known.arm == case.arm) {
            Some(known) if case.known.at_least() > known.known.at_least() => *known = case,
            Some(_) => {}
            None => largest.push(case),
        }
    }
    largest.sort_by_key(|case| std::cmp::Reverse(case.known.at_least().round() as i64));
    largest
}

/// Those that follow the first one: as many as are named, each with what stands between it and its time, and how many more
/// there are.
pub(super) fn followers(leading: &[&Case], between: &str, more: &str) -> String {
    let Some((first, others)) = leading.split_first() else {
        return String::new();
    };
    let mut words = String::new();
    for other in others.iter().take(NAMED - 1) {
        let place = if other.place == first.place {
            String::new()
        } else {
            place(other)
        };
        words += &format!(", {} {between}{}{place}", other.arm, time(&other.known));
    }
    if leading.len() > NAMED {
        words += &format!(", and {} {more}", leading.len() - NAMED);
    }
    words
}

/// What is so much larger elsewhere that it is worth telling.
pub(super) fn elsewhere<'a>(away: Option<&'a Case>, here: Option<&Case>) -> Option<&'a Case> {
    let least = here.map_or(0.0, |here| WORTH_MORE * here.known.at_least());
    away.filter(|away| away.known.at_least() > least)
}

/// `35 ms`, or `at least 20 ms` of what is not known better.
pub(super) fn time(known: &Increase) -> String {
    if known.is_sure() {
        milliseconds(known.size())
    } else {
        format!("at least {}", milliseconds(known.at_least()))
    }
}

/// `up to 35 ms`, or `at least 20 ms` of what is not known better.
pub(super) fn up_to(known: &Increase) -> String {
    if known.is_sure() {
        format!("up to {}", milliseconds(known.size()))
    } else {
        time(known)
    }
}

/// `35 ms`
pub(super) fn milliseconds(ms: f64) -> String {
    format!("{}\u{a0}ms", digits(ms.max(0.0)))
}

/// `, at p90 70 ms`: what other percentiles say, or which of them say about the same.
pub(super) fn further(case: &Case) -> String {
    let own = &case.known;
    let is_alike = |known: &Increase| {
        let times = known.size() / own.size().max(NOTHING_MS);
        let is_near = (1.0 / WORTH_MORE..=WORTH_MORE).contains(&times);
        known.is_shown && known.is_sooner() == own.is_sooner() && is_near
    };
    let (alike, others): (Vec<_>, Vec<_>) =
        case.others.iter().partition(|(_, known)| is_alike(known));
    let alike: Vec<String> = alike
        .iter()
        .map(|(percentile, _)| percentile.to_string())
        .collect();
    let alike = match &*alike {
        [] => String::new(),
        alike => format!(", about as much at {}", alike.join(" and ")),
    };
    let others = others.into_iter().map(|(percentile, known)| {
        match (
            known.is_shown,
            known.is_sooner() == own.is_sooner(),
            known.is_sooner(),
        ) {
            (false, _, _) => format!(", at {percentile} no difference was shown"),
            (true, true, _) => format!(", at {percentile} {}", time(known)),
            (true, false, true) => format!(", at {percentile} {} sooner", time(known)),
            (true, false, false) => format!(", at {percentile} {} later", time(known)),
        }
    });
    alike + &others.collect::<String>()
}

/// ` (RTT 35ms)`; nothing of the only network.
pub(super) fn place(case: &Case) -> String {
    match &*case.place {
        "" => String::new(),
        place => format!(" ({place})"),
    }
}

/// A column's title within a sentence, with its article.
pub(super) fn what(column: Column) -> String {
    let title = column.title();
    let rest = title.get(1..).unwrap_or_default();
    let first = title.get(..1).unwrap_or_default().to_lowercase();
    format!("the {first}{rest}")
}

/// The most that any may be.
pub(super) fn all_at_most(cases: &[&Case]) -> f64 {
    cases.iter().map(|case| case.at_most()).fold(0.0, f64::max)
}

/// The arms of cases, each once.
pub(super) fn arms_of<'a>(cases: &[&'a Case]) -> Vec<&'a str> {
    let mut arms: Vec<&str> = Vec::new();
    for case in cases {
        if !arms.contains(&&*case.arm) {
            arms.push(&case.arm);
        }
    }
    arms
}

/// All arms of cases, or how many there are.
pub(super) fn name_of(cases: &[&Case]) -> String {
    match &*arms_of(cases) {
        arms if arms.len() <= NAMED => arms.join(" and "),
        arms => format!("{} others", arms.len()),
    }
}
