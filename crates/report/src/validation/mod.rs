//! What came of comparing two sets of results, for people and for programs.

mod json;
mod markdown;
mod page;
mod table;
#[cfg(test)]
mod tests;

pub use json::{SCHEMA, json};
pub use markdown::markdown;
pub use page::page;
pub use table::table;

use lastbyte_link::counted;

use super::text::{self, interval};
use lastbyte_results::Percent;
use lastbyte_results::number::percent_digits;
use lastbyte_results::validate::{
    Comparison, Connections, FAMILY_WISE_ERROR, Margin, MetricComparison, SampleComparison,
    Validation, Verdict,
};

/// What stands in the columns after the percentiles.
const DISTANCE: &str = "K-S";
const VERDICT: &str = "verdict";

/// The samples of each cell, in their order.
fn cells(validation: &Validation) -> impl Iterator<Item = &[SampleComparison]> {
    validation.samples.chunk_by(|one, next| {
        (&one.key.measure, &one.key.cell) == (&next.key.measure, &next.key.cell)
    })
}

/// The measure and the cell, and how many connections its samples have if they agree in that.
fn heading(samples: &[SampleComparison]) -> String {
    match samples.first() {
        Some(first) if have_same_connections(samples) => {
            format!("{}: {}", cell_name(samples), connections(first))
        }
        _ => cell_name(samples),
    }
}

fn cell_name(samples: &[SampleComparison]) -> String {
    samples.first().map_or(String::new(), |first| {
        let cell = &first.key.cell;
        match &*first.key.measure {
            "" => cell.to_string(),
            measure => format!("{measure}: {cell}"),
        }
    })
}

fn have_same_connections(samples: &[SampleComparison]) -> bool {
    let mut counts = samples.iter().map(|sample| sample.connections);
    let first = counts.next();
    counts.all(|count| Some(count) == first)
}

/// `1000 and 5000 connections`
fn connections(sample: &SampleComparison) -> String {
    let count = |connections: &Connections| match connections.failed {
        0 => connections.all.to_string(),
        failed => format!("{} ({failed} failed)", connections.all),
    };
    let counts: Vec<_> = sample.connections.iter().flatten().map(count).collect();
    counted(counts.join(" and "), "connection")
}

/// `+0.08 [-0.01, 0.2]`, in percent, or who never gets there.
fn difference(comparison: &Comparison) -> String {
    match (comparison.times, comparison.difference) {
        ([None, None], _) => "never".to_owned(),
        ([None, Some(_)], _) => "never in A".to_owned(),
        (_, None) => "never in B".to_owned(),
        (_, Some(difference)) => {
            let sign = if difference > Percent(0.0) { "+" } else { "" };
            format!(
                "{sign}{} {}",
                percent_digits(difference),
                interval(&comparison.interval, percent_digits)
            )
        }
    }
}

fn distance(distance: Option<f64>) -> String {
    distance.map_or("-".into(), |distance| format!("{distance:.3}"))
}

/// What the numbers are, and what they were measured by.
fn legend(validation: &Validation) -> Vec<String> {
    let [a, b] = &validation.names;
    let [engine_a, engine_b] = &validation.engines;
    let margins = |margins: &[Margin]| {
        let texts: Vec<_> = margins
            .iter()
            .map(|margin| format!("{} ±{} %", margin.percentile, margin.most.0))
            .collect();
        match &*texts {
            [] => "none".to_owned(),
            _ => texts.join(", "),
        }
    };
    vec![
        format!("A is {a:?} ({engine_a}), B is {b:?} ({engine_b})."),
        format!(
            "Differences are those of B from A, in percent of A, with their {} % intervals: {} % for all {} comparisons together.",
            percentage(validation.level()),
            percentage(1.0 - FAMILY_WISE_ERROR),
            validation.comparisons
        ),
        format!(
            "Margins: without loss {}; with loss {}.",
            margins(&validation.margins.without_loss),
            margins(&validation.margins.with_loss)
        ),
    ]
}

/// A level in percent, without nines that mean nothing: `99.9`.
fn percentage(level: f64) -> String {
    let outside = 100.0 * (1.0 - level);
    let decimals = (1.0 - outside.log10()).ceil().clamp(0.0, 9.0) as usize;
    let text = format!("{:.decimals$}", 100.0 - outside);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// What it comes to.
fn answer(validation: &Validation) -> Vec<String> {
    let verdicts: Vec<Verdict> = validation.verdicts().collect();
    let count = |wanted: &Verdict| verdicts.iter().filter(|verdict| *verdict == wanted).count();
    let needed: Vec<Option<u64>> = verdicts
        .iter()
        .filter_map(|verdict| match verdict {
            Verdict::Undecided { needed } => Some(*needed),
            Verdict::Agrees | Verdict::Differs => None,
        })
        .collect();
    let mut sentences = vec![format!(
        "Of {} comparisons, {} agree, {} differ and {} are undecided.",
        verdicts.len(),
        count(&Verdict::Agrees),
        count(&Verdict::Differs),
        needed.len()
    )];
    if let Some(most) = needed.iter().flatten().max() {
        let hopeless = needed.iter().filter(|needed| needed.is_none()).count();
        let but = match hopeless {
            0 => String::new(),
            _ => format!(" but {hopeless}"),
        };
        sentences.push(format!(
            "About {most} connections a sample would decide all{but}."
        ));
    }
    sentences
}

/// What a metric is called.
fn metric(comparison: &MetricComparison) -> &'static str {
    text::metric(comparison.metric)
}
