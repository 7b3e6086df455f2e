//! What the table of costs comes to, of a study that asks what comes later: on the network that most readers have, and
//! then elsewhere. What stands out by luck leads nothing: a difference that is not shown is none, and of those elsewhere
//! the one is told that is the largest for sure.

use super::shown::{
    Times, all_at_most, arms_of, by_arm, elsewhere, followers, further, is_late, is_sooner,
    largest, milliseconds, name_of, place, time, up_to, what,
};
use super::{Source, Statement};
use crate::study::overview::{Case, Column, Overview};
use crate::thresholds::{NAMED, NOTHING_MS};

pub(super) fn statement(source: &Source<'_>) -> Option<Statement> {
    words(source.overview?).map(Statement::made)
}

/// `None` if no time is known.
pub(super) fn words(overview: &Overview) -> Option<String> {
    let mut clauses = Vec::new();
    for (index, column) in overview.columns.iter().enumerate() {
        let cases = overview.cases_of(index);
        match index {
            0 => clauses.push(handshake(&cases)?),
            _ => clauses.extend(last_byte(*column, &cases)),
        }
    }
    Some(clauses.join("; ") + ".")
}

fn handshake(cases: &[&Case]) -> Option<String> {
    let times = Times::new(cases)?;
    let here = by_arm(&times.here, is_late);
    let away = by_arm(&times.away, is_late);
    let leading = if here.is_empty() { &away } else { &here };
    let Some(first) = leading.first() else {
        return Some(none_late(cases));
    };
    let mut words = format!(
        "{} delays the handshake by {}{}{}",
        first.arm,
        time(&first.known),
        place(first),
        further(first)
    );
    words += &followers(leading, "by ", "more by less");
    // What is larger elsewhere, and who is late nowhere but there.
    let larger = elsewhere(away.first().copied(), Some(first)).filter(|_| !here.is_empty());
    let is_nowhere_else = |case: &&&Case| {
        let is_implied = larger.is_some_and(|larger| larger.arm == case.arm);
        !is_implied && !leading.iter().any(|late| late.arm == case.arm)
    };
    let alone = away.iter().filter(is_nowhere_else).copied();
    for (nth, most) in larger.into_iter().chain(alone).take(NAMED).enumerate() {
        let elsewhere = if nth == 0 { "elsewhere " } else { "" };
        let who = if cases.iter().all(|case| case.arm == most.arm) {
            String::new()
        } else {
            format!("{} ", most.arm)
        };
        words += &format!(", {elsewhere}{who}by {}{}", up_to(&most.known), place(most));
    }
    if here.is_empty() {
        let usual = times.here.iter().filter(|case| case.arm == first.arm);
        let most = usual.map(|case| case.at_most()).reduce(f64::max);
        if let (Some(most), Some(usual)) = (most, times.here.first()) {
            words += &if most < NOTHING_MS {
                format!(", and not{}", place(usual))
            } else {
                format!(" and by {} at most{}", milliseconds(most), place(usual))
            };
        }
    }
    let is_calm = |case: &&&Case| !leading.iter().chain(&away).any(|late| late.arm == case.arm);
    let calm: Vec<&Case> = cases.iter().filter(is_calm).copied().collect();
    if !calm.is_empty() {
        words += &format!(
            ", {} by {} at most",
            name_of(&calm),
            milliseconds(all_at_most(&calm))
        );
    }
    Some(words)
}

/// Where no handshake is felt to take longer.
fn none_late(cases: &[&Case]) -> String {
    let most = all_at_most(cases);
    let has_difference = cases.iter().any(|case| case.known.is_shown);
    match (&*arms_of(cases), has_difference) {
        _ if most < NOTHING_MS => "No handshake takes longer".to_owned(),
        ([only], true) => format!(
            "{only} delays the handshake by {} at most",
            milliseconds(most)
        ),
        ([only], false) => format!(
            "No difference was shown in the handshake: with {only}, it may take up to {} longer",
            milliseconds(most)
        ),
        _ => format!("No handshake takes more than {} longer", milliseconds(most)),
    }
}

fn last_byte(column: Column, cases: &[&Case]) -> Option<String> {
    let what = what(column);
    let times = Times::new(cases)?;
    let late = largest(&times.here, is_late);
    let soon = largest(&times.here, is_sooner);
    let late_away = elsewhere(largest(&times.away, is_late), late);
    let soon_away = elsewhere(largest(&times.away, is_sooner), soon);
    let who = |case: &Case| match (cases.iter().all(|one| one.arm == case.arm), place(case)) {
        (true, place) => place,
        (false, place) if place.is_empty() => format!(" ({})", case.arm),
        (false, place) => format!(" ({},{}", case.arm, place.replacen('(', "", 1)),
    };
    let here =
        |case: &Case, how| format!("{} {how}{}{}", time(&case.known), who(case), further(case));
    let away = |case: &Case, how| format!("{} {how}{}", up_to(&case.known), who(case));
    let clauses: Vec<String> = [
        late.map(|case| here(case, "later")),
        soon.map(|case| here(case, "sooner")),
        late_away.map(|case| away(case, "later")),
        soon_away.map(|case| away(case, "sooner")),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(match &*clauses {
        [] => match all_at_most(cases) {
            most if most < NOTHING_MS => format!("{what} comes no later"),
            most if !cases.iter().any(|case| case.known.is_shown) => format!(
                "no difference was shown in {what}, which may come up to {} later",
                milliseconds(most)
            ),
            most => format!("{what} comes {} later at most", milliseconds(most)),
        },
        [only] => format!("{what} comes {only}"),
        [others @ .., last] => format!("{what} comes {}, and {last}", others.join(", ")),
    })
}
