//! What comes sooner, of a study that asks what wins time back: on the network that most readers have, and then elsewhere.

use super::shown::{
    Times, by_arm, elsewhere, followers, further, is_sooner, place, time, up_to, what,
};
use super::{Source, Statement};
use crate::study::overview::{Case, Column, Overview};
use lastbyte_study::Leads;

pub(super) fn statement(source: &Source<'_>) -> Option<Statement> {
    let overview = source.overview?;
    match source.findings.study.leads {
        Leads::Sooner => words(overview).map(Statement::made),
        Leads::Later => None,
    }
}

/// `None` if nothing is sooner.
pub(super) fn words(overview: &Overview) -> Option<String> {
    let columns = overview.columns.iter().enumerate();
    let clauses = columns.filter_map(|(index, column)| clause(*column, &overview.cases_of(index)));
    let clauses: Vec<String> = clauses.collect();
    (!clauses.is_empty()).then(|| clauses.join("; ") + ".")
}

fn clause(column: Column, cases: &[&Case]) -> Option<String> {
    let times = Times::new(cases)?;
    let here = by_arm(&times.here, is_sooner);
    let away = by_arm(&times.away, is_sooner);
    let leading = if here.is_empty() { &away } else { &here };
    let first = leading.first()?;
    let mut words = format!(
        "{} brings {} {} forward{}{}",
        first.arm,
        what(column),
        time(&first.known),
        place(first),
        further(first)
    );
    words += &followers(leading, "", "more");
    let most = (!here.is_empty()).then(|| elsewhere(away.first().copied(), Some(first)));
    if let Some(most) = most.flatten() {
        words += &format!(
            ", elsewhere {} {}{}",
            most.arm,
            up_to(&most.known),
            place(most)
        );
    }
    Some(words)
}
