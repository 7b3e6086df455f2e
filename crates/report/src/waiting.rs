//! How much longer the connections of a population wait: tables for people.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Serialize;

use super::text;
use lastbyte_results::number::{difference_digits, interval, share};
use lastbyte_results::{CellSummary, Estimate, Metric, Percentile, Slower, Step, Waiting};

/// A table of how much longer connections wait, of one metric and one class.
pub(super) struct Waits {
    /// What it is of, in words.
    pub(super) title: String,
    pub(super) titles: Vec<String>,
    pub(super) rows: Vec<WaitsRow>,
}

/// One arm's.
pub(super) struct WaitsRow {
    pub(super) arm: String,
    /// Each with its interval.
    pub(super) fields: Vec<(String, String)>,
}

/// Which metrics are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that say something.
    All,
    /// The one that users feel.
    Felt,
}

/// Two tables for each metric and class: the shares that are slower, and by how much.
pub(super) fn waits(cell: &CellSummary, percentiles: &[Percentile], which: Which) -> Vec<Waits> {
    let Some(baseline) = cell.baseline().map(|arm| arm.label.as_str()) else {
        return Vec::new();
    };
    let mut kinds: Vec<(Metric, Option<String>)> = Vec::new();
    for waiting in cell.arms.iter().flat_map(|arm| &arm.waiting) {
        let kind = (waiting.metric, waiting.class.clone());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    // Classes are told of the metric that users feel.
    let is_felt = |metric: &Metric| *metric == Metric::Ttfb;
    let mut metrics = kinds.iter().map(|(metric, _)| *metric);
    let felt = metrics.clone().find(is_felt).or(metrics.next_back());
    kinds.retain(|(metric, class)| match which {
        Which::All => Some(*metric) == felt || class.is_none(),
        Which::Felt => Some(*metric) == felt && class.is_none(),
    });
    kinds
        .iter()
        .flat_map(|(metric, class)| {
            let of = |arm: &'_ lastbyte_results::ArmSummary| {
                let mut all = arm.waiting.iter();
                let found = all.find(|one| one.metric == *metric && one.class == *class);
                found.map(|waiting| (arm.label.clone(), waiting.clone()))
            };
            let arms: Vec<(String, Waiting)> = cell.arms.iter().filter_map(of).collect();
            both(
                *metric,
                class.as_deref(),
                &format!("with {baseline}"),
                &arms,
                percentiles,
            )
        })
        .collect()
}

/// Those of one metric and one class; `baseline` is what they are compared with, as in "longer than with rsa".
pub(super) fn both(
    metric: Metric,
    class: Option<&str>,
    baseline: &str,
    arms: &[(String, Waiting)],
    percentiles: &[Percentile],
) -> Vec<Waits> {
    let Some((_, first)) = arms.first() else {
        return Vec::new();
    };
    let what = text::metric(metric);
    let of_class = class.map_or(String::new(), |class| format!(" of {class}"));
    let connections = first.connections;
    let shares = |of: fn(&Slower) -> Estimate<f64>| -> Vec<WaitsRow> {
        arms.iter()
            .map(|(arm, waiting)| WaitsRow {
                arm: arm.clone(),
                fields: waiting
                    .slower
                    .iter()
                    .map(|slower| share(of(slower)))
                    .collect(),
            })
            .collect()
    };
    let titles: Vec<String> = Step::ALL.iter().map(Step::to_string).collect();
    let mut tables = vec![Waits {
        title: format!(
            "{what}: connections{of_class} ({connections}) that wait longer than {baseline}, by more than"
        ),
        titles: titles.clone(),
        rows: shares(|slower| slower.connections),
    }];
    if first.users != first.connections {
        tables.push(Waits {
            title: format!(
                "{what}: users{of_class} ({}) that wait longer in the mean of their connections, by more than",
                first.users
            ),
            titles,
            rows: shares(|slower| slower.users),
        });
    }
    let mean = ["mean".to_owned()].into_iter();
    tables.push(Waits {
        title: format!("{what}: how much longer connections{of_class} wait, ms"),
        titles: mean
            .chain(percentiles.iter().map(Percentile::to_string))
            .collect(),
        rows: arms
            .iter()
            .map(|(arm, waiting)| {
                let at = |percentile: &Percentile| {
                    waiting.percentiles.get(percentile).copied().flatten()
                };
                let numbers = [waiting.mean].into_iter().chain(percentiles.iter().map(at));
                WaitsRow {
                    arm: arm.clone(),
                    fields: numbers.map(shown_time).collect(),
                }
            })
            .collect(),
    });
    tables
}

/// `+3.1` and `[2.9, 3.3]`.
fn shown_time(time: Option<Estimate<f64>>) -> (String, String) {
    let Some(time) = time else {
        return ("never".to_owned(), String::new());
    };
    let sign = if time.value > 0.0 { "+" } else { "" };
    (
        format!("{sign}{}", difference_digits(time.value)),
        interval(&time.interval, difference_digits),
    )
}

/// The tables of a page.
pub(super) fn tables(waits: &[Waits]) -> Markup {
    html! {
        @for Waits { title, titles, rows } in waits {
            div.scroll {
                table {
                    caption { (title) }
                    thead { tr { th {} @for title in titles { th { (title) } } } }
                    tbody {
                        @for WaitsRow { arm, fields } in rows {
                            tr {
                                th { (arm) }
                                @for (value, interval) in fields { td { (value) " " (interval) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How much longer connections wait, in a document.
#[derive(Serialize)]
pub(super) struct WaitingDocument<'a> {
    metric: &'static str,
    class: Option<&'a str>,
    connections: u32,
    failed: u32,
    users: u32,
    slower: Vec<SlowerDocument>,
    /// In milliseconds, by percentile, and the mean.
    longer_ms: BTreeMap<String, Option<EstimateDocument>>,
}

#[derive(Serialize)]
struct SlowerDocument {
    by: String,
    connections: EstimateDocument,
    users: EstimateDocument,
}

#[derive(Serialize)]
pub(super) struct EstimateDocument {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Estimate<f64>> for EstimateDocument {
    fn from(estimate: Estimate<f64>) -> Self {
        Self {
            value: estimate.value,
            low: estimate.interval.low,
            high: estimate.interval.high,
        }
    }
}

/// What a document says of it.
pub(super) fn waiting_document(waiting: &Waiting) -> WaitingDocument<'_> {
    let percentiles = waiting.percentiles.iter();
    let percentiles = percentiles.map(|(percentile, estimate)| (percentile.to_string(), *estimate));
    let longer = [("mean".to_owned(), waiting.mean)]
        .into_iter()
        .chain(percentiles);
    WaitingDocument {
        metric: waiting.metric.name(),
        class: waiting.class.as_deref(),
        connections: waiting.connections,
        failed: waiting.failed,
        users: waiting.users,
        slower: (waiting.slower.iter())
            .map(|slower| SlowerDocument {
                by: slower.step.to_string(),
                connections: slower.connections.into(),
                users: slower.users.into(),
            })
            .collect(),
        longer_ms: longer
            .map(|(name, estimate)| (name, estimate.map(Into::into)))
            .collect(),
    }
}
