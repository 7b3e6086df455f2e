//! What the first measure comes to, of a study that compares nothing.

use super::{Source, Statement};
use crate::answer::answer;

pub(super) fn statement(source: &Source<'_>) -> Option<Statement> {
    let mut summaries = source.findings.summaries.iter();
    let words = summaries.find_map(|summary| answer(summary).into_iter().next())?;
    Some(Statement::made(words))
}
