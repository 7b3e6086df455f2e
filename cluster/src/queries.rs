//! The queries that `lastbyte zeek --sql` prints.

const SQL: &str = include_str!("../../crates/zeek/sql/counts.sql");

/// The query below the remark that is its name.
pub(crate) fn query(name: &str) -> Option<&'static str> {
    let remark = format!("-- {name}\n");
    let (_, below) = SQL.split_once(&remark)?;
    below.split_once(';').map(|(query, _)| query)
}
