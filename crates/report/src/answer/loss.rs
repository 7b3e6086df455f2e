//! What loss makes of a cost, where some networks lose packets, and others are the same without.

use lastbyte_link::Loss;

use super::tail::metrics_of;
use super::{Certainty, Difference, Differences, place};
use crate::thresholds::WORTH_PART_OF_COST;
use lastbyte_results::number::{interval, percent};
use lastbyte_results::{CellSummary, Metric, Percent, Percentile, Summary};
use lastbyte_study::Cell;

/// Whether some networks lose packets, and each of them is there without, too.
pub(super) fn is_compared(summary: &Summary) -> bool {
    let mut lossy = summary.cells.iter().filter(|cell| cell.cell.has_loss());
    let has_twin = |cell: &CellSummary| twin(cell, &summary.cells).is_some();
    let is_any = lossy.clone().next().is_some();
    is_any && lossy.all(has_twin)
}

/// The same network without loss.
fn twin<'a>(lossy: &CellSummary, cells: &'a [CellSummary]) -> Option<&'a CellSummary> {
    let mut wanted: Cell = lossy.cell.clone();
    wanted.link.forward.loss = Loss::NONE;
    wanted.link.backward.loss = Loss::NONE;
    cells.iter().find(|cell| cell.cell == wanted)
}

/// What loss makes of a cost.
enum Then {
    /// It is larger, as its whole interval says.
    More,
    /// It is as large: its interval holds what it is without loss.
    AsMuch,
    /// No difference was shown.
    Hidden,
    /// It is something else.
    Other,
}

/// `Where packets are lost, the handshake costs as much (+51 %); the last byte costs more at loss 3%, 50KiB (+20 % [0.7, 20] and not
/// +0.6 %), and at loss 3%, 200KiB no difference was shown`. `None` where no network is there with and without loss.
pub(super) fn loss(summary: &Summary, label: &str, percentile: Percentile) -> Option<String> {
    if !is_compared(summary) {
        return None;
    }
    let [(handshake, all), (last, cells)] = metrics_of(summary);
    let clause = |cells: &[&CellSummary], metric: Metric| {
        let known = Differences::new(cells, label, metric, percentile, summary.critical)?;
        let lossy = known.measured.iter().filter(|one| one.cell.cell.has_loss());
        let pairs = lossy.filter_map(|lossy| {
            let twin = twin(lossy.cell, &summary.cells)?;
            let without = known.of_cell(twin)?;
            Some((lossy, without, then(lossy, without)))
        });
        let pairs: Vec<_> = pairs.collect();
        (!pairs.is_empty()).then(|| cost_clause(&pairs))
    };
    let handshake = format!("the handshake {}", clause(&all, handshake)?);
    let clauses = match clause(&cells, last) {
        Some(of_last) if last == Metric::Ttlb => format!("{handshake}; the last byte {of_last}"),
        _ => handshake,
    };
    let at = match percentile {
        Percentile::MEDIAN => "at the median".to_owned(),
        other => format!("at {other}"),
    };
    let where_lost = match summary.experiment.arms.len() {
        // The baseline and this one.
        2 => "Where packets are lost".to_owned(),
        _ => format!("Of {label}, where packets are lost"),
    };
    Some(format!("{where_lost}, {at}, {clauses}."))
}

fn then(lossy: &Difference<'_>, without: &Difference<'_>) -> Then {
    let (low, high) = match (lossy.shown, lossy.interval.low, lossy.interval.high) {
        (Certainty::Shown, Some(low), Some(high)) => (low.0, high.0),
        _ => return Then::Hidden,
    };
    let own = without.increase.0;
    let near = WORTH_PART_OF_COST * own.abs();
    match lossy.increase.0 > own + near {
        true if low > own.max(0.0) => Then::More,
        _ if without.shown == Certainty::Shown && (low - near..=high + near).contains(&own) => {
            Then::AsMuch
        }
        _ => Then::Other,
    }
}

/// `costs as much`, or more, with what it costs there.
fn cost_clause(pairs: &[(&Difference<'_>, &Difference<'_>, Then)]) -> String {
    let signed = |increase: Percent| {
        if increase.0 < 0.0 {
            percent(increase)
        } else {
            format!("+{}", percent(increase))
        }
    };
    let place_of = |(lossy, ..): &&(&Difference<'_>, &Difference<'_>, Then)| place(lossy.cell);
    let of = |wanted: fn(&Then) -> bool| pairs.iter().filter(move |(_, _, then)| wanted(then));
    let more = of(|then| matches!(then, Then::More)).map(|(lossy, without, _)| {
        let without = match without.shown {
            Certainty::Shown => format!(" and not {}", signed(without.increase)),
            Certainty::Open | Certainty::Unknown => String::new(),
        };
        format!(
            "at {} ({} {}{without})",
            place(lossy.cell),
            signed(lossy.increase),
            interval(&lossy.interval, |end| percent(end)
                .trim_end_matches(" %")
                .to_owned()),
        )
    });
    let more: Vec<String> = more.collect();
    let as_much: Vec<&(&Difference<'_>, &Difference<'_>, Then)> =
        of(|then| matches!(then, Then::AsMuch)).collect();
    let hidden: Vec<String> = of(|then| matches!(then, Then::Hidden))
        .map(|pair| place_of(&pair))
        .collect();
    let mut clauses = Vec::new();
    if !more.is_empty() {
        clauses.push(format!("costs more {}", more.join(" and ")));
    }
    match &*as_much {
        [] => {}
        all if all.len() == pairs.len() => clauses.push(match all {
            [(lossy, ..)] => format!("costs as much as without ({})", signed(lossy.increase)),
            _ => "costs as much as without".to_owned(),
        }),
        some => {
            let places: Vec<String> = some.iter().map(place_of).collect();
            clauses.push(format!(
                "costs as much as without at {}",
                places.join(" and at ")
            ));
        }
    }
    if !hidden.is_empty() {
        clauses.push(if hidden.len() == pairs.len() {
            "was not shown to cost anything".to_owned()
        } else {
            format!(
                "was not shown to cost anything at {}",
                hidden.join(" and at ")
            )
        });
    }
    match &*clauses {
        [] => "costs another share than without".to_owned(),
        clauses => clauses.join(", and "),
    }
}
