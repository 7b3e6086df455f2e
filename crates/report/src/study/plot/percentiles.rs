//! Percentiles of each arm, as bars.

use super::time_title;
use crate::study::bars::bars;
use crate::study::finding;
use crate::study::plan::{Baseline, Kind, Plan};
use lastbyte_study::Quantity;

pub(super) static KIND: Kind = Kind {
    quantity: Quantity::Time,
    baseline: Baseline::Drawn,
    title: time_title,
    note,
    draw: bars,
    finding: finding::times,
    numbers: |plan| plan.numbers(),
};

fn note(plan: &Plan) -> String {
    if plan.figure.x.is_none() {
        return "Whiskers are 95 % intervals.".to_owned();
    }
    let percentiles: Vec<_> = plan.percentiles.iter().map(ToString::to_string).collect();
    format!(
        "Each bar reaches {}, from dark to light; whiskers are 95 % intervals.",
        percentiles.join(", ")
    )
}
