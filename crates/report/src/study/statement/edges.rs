//! Where edges are, of a study that searches them.

use super::{Source, Statement};
use crate::search;

pub(super) fn statement(source: &Source<'_>) -> Option<Statement> {
    let mut searched = source.findings.searched.iter();
    searched.find_map(search::answer).map(Statement::made)
}
