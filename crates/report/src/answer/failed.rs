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
    let [(least_at, least), .., (most_at, most)] = cells.as_slice() else {
        let [(_, only)] = cells.as_slice() else {
            return None;
        };
        return (1..only.connections).contains(&only.failed()).then(|| {
            let (failed, connections) = (only.failed(), only.connections);
            format!("{failed} of {connections} connections of {label} did not complete.")
        });
    };
    if !(1..most.connections).contains(&most.failed()) {
        return None;
    }
    let connections = most.connections;
    let most_at = place(most_at);
    let failed = if least.failed() == most.failed() {
        most.failed().to_string()
    } else if least.failed() == 0 {
        format!("up to {} ({most_at})", most.failed())
    } else {
        format!(
            "{} ({}) to {} ({most_at})",
            least.failed(),
            place(least_at),
            most.failed()
        )
    };
    Some(sentence_case(&format!(
        "{failed} of {connections} connections of {label} did not complete."
    )))
}

fn sentence_case(sentence: &str) -> String {
    match sentence.strip_prefix("up to") {
        Some(rest) => format!("Up to{rest}"),
        None => sentence.to_owned(),
    }
}
