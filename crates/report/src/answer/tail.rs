//! What the slowest connections wait, where that is another finding than the median.

use super::{Certainty, Difference, Differences, last, place};
use crate::text;
use crate::thresholds::{NOTICEABLE_MS, WORTH_MORE};
use lastbyte_results::number::{difference_digits, percent};
use lastbyte_results::{CellSummary, Metric, Percent, Percentile, Summary};

/// `The slowest wait longer than the median tells: at p90, pq brings the last byte at least 45 ms later (loss 3%)`. `None` where the latest percentile
/// that was asked for tells nothing else than `representative`.
pub(super) fn tail(summary: &Summary, label: &str, representative: Percentile) -> Option<String> {
    let latest = *summary.percentiles.iter().max()?;
    let asked = metrics_of(summary);
    let worse = asked.into_iter().flat_map(|(metric, cells)| {
        let at = |percentile| Differences::new(&cells, label, metric, percentile, summary.critical);
        let known = at(representative);
        let latest = at(latest).map_or_else(Vec::new, |all| all.measured);
        let worse = latest.into_iter().filter_map(move |one| {
            let certain = certain_ms(&one)?;
            let usual = known.as_ref().and_then(|known| known.of_cell(one.cell));
            // The whole interval lies beyond what the median tells, by what people notice.
            let usual = usual.map_or(0.0, |usual| of_before(usual, usual.increase).max(0.0));
            let is_worse = certain >= NOTICEABLE_MS + usual && certain >= WORTH_MORE * usual;
            is_worse.then_some((certain, metric, one))
        });
        worse.collect::<Vec<_>>()
    });
    let Some((certain, metric, one)) = worse.max_by(|(one, ..), (other, ..)| one.total_cmp(other))
    else {
        return hidden(summary, label, representative, latest);
    };
    let amount = if one.is_sure() {
        format!(
            "{} ms (+{})",
            difference_digits(of_before(&one, one.increase)),
            percent(one.increase)
        )
    } else {
        format!("at least {} ms", difference_digits(certain))
    };
    let usual = match representative {
        Percentile::MEDIAN => "the median".to_owned(),
        other => other.to_string(),
    };
    Some(format!(
        "The slowest wait longer than {usual} tells: at {latest}, {label} brings the {} {amount} later ({}).",
        text::metric(metric),
        place(one.cell),
    ))
}

/// Handshakes, and what connections come to at last, each with the cells that have it.
pub(super) fn metrics_of(summary: &Summary) -> [(Metric, Vec<&CellSummary>); 2] {
    let (last, cells_to_its_end, _) = last(summary);
    [
        (Metric::Handshake, summary.cells.iter().collect()),
        (last, cells_to_its_end),
    ]
}

/// `At p90, no difference was shown for the last byte`: what the median shows everywhere, and luck hides from the slowest.
fn hidden(
    summary: &Summary,
    label: &str,
    representative: Percentile,
    latest: Percentile,
) -> Option<String> {
    let [_, (metric, mut cells)] = metrics_of(summary);
    cells.retain(|cell| cell.cell.has_loss() || cell.cell.has_jitter());
    let shown = |percentile| {
        let all = Differences::new(&cells, label, metric, percentile, summary.critical)?;
        Some(all.measured.iter().map(|one| one.shown).collect::<Vec<_>>())
    };
    let (usual, latest_told) = (shown(representative)?, shown(latest)?);
    let is_hidden = usual.contains(&Certainty::Shown)
        && latest_told.iter().all(|shown| *shown == Certainty::Open);
    is_hidden.then(|| {
        format!(
            "At {latest}, no difference was shown in the {} where packets are lost or late: luck decides more there than {label} \
             does, in {} connections of each.",
            text::metric(metric),
            cells.first().and_then(|cell| cell.baseline()).map_or(0, |arm| arm.connections),
        )
    })
}

/// An increase in milliseconds.
fn of_before(one: &Difference<'_>, increase: Percent) -> f64 {
    1e3 * one.before.time.as_secs_f64() * increase.0 / 100.0
}

/// How much later it is for certain. `None` of what may be no later.
fn certain_ms(one: &Difference<'_>) -> Option<f64> {
    let low = one.interval.low.filter(|_| one.shown == Certainty::Shown)?;
    (low > Percent(0.0)).then(|| of_before(one, low))
}
