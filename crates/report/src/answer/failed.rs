//! Connections that did not complete, which a median does not show.

use lastbyte_results::{ArmSummary, CellSummary, Summary};

use super::place;

/// `20 of 2000 connections of ml-dsa-65/transport=quic did not complete`, or `12 (initcwnd 10) to 42 (initcwnd 32) of 1000
/// connections ...`. `None` where all did, or none.
pub(super) fn failed(summary: &Summary, label: &str) -> Option<String> {
    let mut cells: Vec<(&CellSummary, &ArmSummary)> = (summary.cells.iter())
        .filter_map(|cell| {
            let arm = cell.arms.iter().find(|arm| arm.label == label)?;
            Some((cell, arm))
        })
        .collect();
    cells.sort_by_key(|(_, arm)| arm.failed());
    let ((least_at, least), (most_at, most)) = (cells.first()?, cells.last()?);
    if !(1..most.connections).contains(&most.failed()) {
        return None;
    }
    let connections = most.connections;
    let most_at = place(most_at);
    let failed = if least.failed() == most.failed() {
        most.failed().to_string()
    } else if least.failed() == 0 {
        format!("Up to {} ({most_at})", most.failed())
    } else {
        format!(
            "{} ({}) to {} ({most_at})",
            least.failed(),
            place(least_at),
            most.failed()
        )
    };
    Some(format!(
        "{failed} of {connections} connections of {label} did not complete."
    ))
}
