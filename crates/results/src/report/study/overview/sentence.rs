//! The verdict of a page: one sentence, the largest cost first.

use std::cmp::Ordering;

use super::draw::digits;
use super::{Column, Felt, Known, Overview, Row};
use crate::study::Leads;

/// A space at which no line ends.
const SPACE: char = '\u{a0}';
/// Configurations that are named.
const NAMED: usize = 3;

/// An arm with where it costs most, and where least: of what was shown to be a difference, if any of it was.
struct Extremes<'a> {
    arm: &'a str,
    most: (&'a Row, &'a Known),
    least: (&'a Row, &'a Known),
    /// The most that it may be anywhere, in milliseconds.
    at_most: f64,
}

impl Extremes<'_> {
    /// Whether any of it was shown.
    fn has_difference(&self) -> bool {
        self.most.1.is_shown || self.least.1.is_shown
    }

    /// Whether there is one, and nowhere another.
    fn is_one_difference(&self) -> bool {
        self.most.1.is_shown && self.most.0.name == self.least.0.name
    }
}

/// Which costs more. A number that nothing stands behind is behind all others.
fn costlier(one: &Known, other: &Known) -> Ordering {
    let shown = one.is_shown.cmp(&other.is_shown);
    shown.then(one.most.total_cmp(&other.most))
}

/// Which costs less, likewise.
fn cheaper(one: &Known, other: &Known) -> Ordering {
    let shown = one.is_shown.cmp(&other.is_shown);
    shown.then(other.least.total_cmp(&one.least))
}

impl Overview {
    /// What the page is about, where the study asks nothing itself.
    pub(in super::super) fn question(&self) -> String {
        let baseline = self.baselines.join(" or ");
        match &*self.arms {
            [arm] => format!("What does {arm} cost, compared with {baseline}?"),
            arms => format!(
                "What do {} configurations cost, compared with {baseline}?",
                arms.len()
            ),
        }
    }

    /// What it comes to. `None` if no time is known.
    pub(in super::super) fn verdict(&self, leads: Leads) -> Option<String> {
        match leads {
            Leads::Later => self.costs(),
            Leads::Sooner => self.gains().or_else(|| self.costs()),
        }
    }

    /// What is sooner than the baseline, most of all first. `None` if nothing is.
    fn gains(&self) -> Option<String> {
        let clause = |(index, column): (usize, &Column)| {
            let what = what(*column);
            let mut sooner = self.extremes(index);
            sooner.retain(|one| one.least.1.felt() == Felt::Sooner);
            // What nobody could tell apart stays in the study's order.
            sooner.sort_by_key(|one| one.least.1.least.round() as i64);
            let first = sooner.first()?;
            let mut words = format!(
                "{} brings the {what} up to {} forward{}",
                first.arm,
                time(first.least.1.least),
                place(first.least.0)
            );
            for one in sooner.iter().skip(1).take(NAMED - 1) {
                let place = match one.least.0.name == first.least.0.name {
                    true => String::new(),
                    false => place(one.least.0),
                };
                words += &format!(", {} {}{place}", one.arm, time(one.least.1.least));
            }
            if sooner.len() > NAMED {
                words += &format!(", and {} more", sooner.len() - NAMED);
            }
            Some(words)
        };
        let clauses: Vec<String> = self.columns.iter().enumerate().filter_map(clause).collect();
        (!clauses.is_empty()).then(|| clauses.join("; ") + ".")
    }

    fn costs(&self) -> Option<String> {
        let mut clauses = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            let mut all = self.extremes(index);
            all.sort_by(|one, other| costlier(other.most.1, one.most.1));
            match index {
                0 => clauses.push(handshake(&all)?),
                _ => clauses.extend(last_byte(*column, &all)),
            }
        }
        Some(clauses.join("; ") + ".")
    }

    fn extremes(&self, column: usize) -> Vec<Extremes<'_>> {
        let mut all: Vec<Extremes<'_>> = Vec::new();
        for (row, arm, known) in self.of_column(column) {
            match all.iter_mut().find(|one| one.arm == arm) {
                Some(one) => {
                    if costlier(known, one.most.1).is_gt() {
                        one.most = (row, known);
                    }
                    if cheaper(known, one.least.1).is_gt() {
                        one.least = (row, known);
                    }
                    one.at_most = one.at_most.max(at_most(known));
                }
                None => all.push(Extremes {
                    arm,
                    most: (row, known),
                    least: (row, known),
                    at_most: at_most(known),
                }),
            }
        }
        all
    }
}

fn handshake(all: &[Extremes<'_>]) -> Option<String> {
    all.first()?;
    let is_late = |one: &&Extremes<'_>| matches!(one.most.1.felt(), Felt::Later | Felt::Part);
    let late: Vec<_> = all.iter().filter(is_late).collect();
    let Some(worst) = late.first() else {
        let most = all_at_most(all);
        return Some(match all {
            _ if most < 0.05 => "No handshake takes longer".to_owned(),
            [only] if only.is_one_difference() => {
                format!("{} delays the handshake by {}", only.arm, time(most))
            }
            [only] if !only.has_difference() => format!(
                "No difference was shown in the handshake: with {}, it may take up to {} longer",
                only.arm,
                time(most)
            ),
            [only] => format!(
                "{} delays the handshake by {} at most",
                only.arm,
                time(most)
            ),
            _ => format!("No handshake takes more than {} longer", time(most)),
        });
    };
    let mut words = format!(
        "{} delays the handshake by {}{}",
        worst.arm,
        time(worst.most.1.most),
        place(worst.most.0)
    );
    let (row, least) = worst.least;
    if least.felt() == Felt::Same && row.name != worst.most.0.name {
        words += &format!(" and by {}{}", time(least.least.max(0.0)), place(row));
    }
    for one in late.iter().skip(1).take(NAMED - 1) {
        words += &format!(
            ", {} by {}{}",
            one.arm,
            time(one.most.1.most),
            elsewhere(one, worst)
        );
    }
    if late.len() > NAMED {
        words += &format!(", and {} more by less", late.len() - NAMED);
    }
    let calm: Vec<_> = all.iter().filter(|one| !is_late(one)).collect();
    if let Some(most) = calm.iter().map(|one| one.at_most).reduce(f64::max) {
        let who = match &*calm {
            [only] => only.arm.to_owned(),
            _ if calm.len() <= NAMED => {
                let names: Vec<&str> = calm.iter().map(|one| one.arm).collect();
                names.join(" and ")
            }
            _ => format!("{} others", calm.len()),
        };
        words += &format!(", {who} by {} at most", time(most.max(0.0)));
    }
    Some(words)
}

fn last_byte(column: Column, all: &[Extremes<'_>]) -> Option<String> {
    let what = what(column);
    let latest = all.first()?;
    let soonest = (all.iter()).min_by(|one, other| cheaper(other.least.1, one.least.1))?;
    let is_late = matches!(latest.most.1.felt(), Felt::Later | Felt::Part);
    let least = soonest.least.1;
    let is_soon = least.is_shown && least.trips[0] <= -super::NOTICED;
    let named = |one: &Extremes<'_>, row: &Row| match (all.len(), place(row)) {
        (1, place) => place,
        (_, place) if place.is_empty() => format!(" ({})", one.arm),
        (_, place) => format!(" ({},{}", one.arm, place.replacen('(', "", 1)),
    };
    let later = format!(
        "{}{} later",
        time(latest.most.1.most),
        named(latest, latest.most.0)
    );
    let sooner = format!(
        "{}{} sooner",
        time(-soonest.least.1.least),
        named(soonest, soonest.least.0)
    );
    Some(
        match (is_late, is_soon) {
            (true, true) => format!("the {what} comes up to {later}, and up to {sooner}"),
            (true, false) => format!("the {what} comes up to {later}"),
            (false, true) => format!("the {what} comes up to {sooner}"),
            (false, false) => match all_at_most(all) {
                most if most < 0.05 => format!("the {what} comes no later"),
                most if !all.iter().any(Extremes::has_difference) => format!(
                    "no difference was shown in the {what}, which may come up to {} later",
                    time(most)
                ),
                most => format!("the {what} comes {} later at most", time(most)),
            },
        }
        .replace("the the", "the"),
    )
}

/// A column's title within a sentence.
fn what(column: Column) -> String {
    let title = column.title();
    title[..1].to_lowercase() + &title[1..]
}

/// The most that any may be.
fn all_at_most(all: &[Extremes<'_>]) -> f64 {
    all.iter().map(|one| one.at_most).fold(0.0, f64::max)
}

/// The most that it may be: of what was not shown to be anything, the end of its interval.
fn at_most(known: &Known) -> f64 {
    match known.is_shown {
        true => known.most,
        false => (known.interval).map_or(known.most, |[_, high]| high.max(known.most)),
    }
}

fn time(ms: f64) -> String {
    format!("{}{SPACE}ms", digits(ms.abs()))
}

/// ` (RTT 35ms)`
fn place(row: &Row) -> String {
    match &*row.name {
        "" => String::new(),
        name => format!(" ({name})"),
    }
}

/// Where it is, if that is elsewhere.
fn elsewhere(one: &Extremes<'_>, than: &Extremes<'_>) -> String {
    match one.most.0.name == than.most.0.name {
        true => String::new(),
        false => place(one.most.0),
    }
}
