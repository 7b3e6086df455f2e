//! A validation as Markdown.

use super::{
    DISTANCE, VERDICT, answer, cells, connections, difference, distance, have_same_connections,
    heading, legend, metric,
};
use crate::escape;
use lastbyte_results::validate::{SampleComparison, Validation};

/// What it comes to, a table for each cell, and warnings.
pub fn markdown(validation: &Validation) -> String {
    let mut out = format!("{}\n\n", escape::markdown(&answer(validation).join(" ")));
    out.push_str(&format!(
        "{}\n\n",
        escape::markdown(&legend(validation).join(" "))
    ));
    for samples in cells(validation) {
        out.push_str(&format!(
            "**{}**\n\n{}\n",
            escape::markdown(&heading(samples)),
            table(samples)
        ));
        if !have_same_connections(samples) {
            for sample in samples {
                let arm = escape::markdown_code(&sample.key.arm);
                out.push_str(&format!("- {arm}: {}\n", connections(sample)));
            }
            out.push('\n');
        }
    }
    for warning in &validation.warnings {
        out.push_str(&format!("- Warning: {}\n", escape::markdown(warning)));
    }
    out
}

fn table(samples: &[SampleComparison]) -> String {
    let metrics = samples
        .first()
        .into_iter()
        .flat_map(|sample| &sample.metrics);
    let percentiles = metrics.take(1).flat_map(|metric| &metric.percentiles);
    let titles: Vec<String> = ["arm".to_owned(), "metric".to_owned()]
        .into_iter()
        .chain(percentiles.map(|comparison| comparison.percentile.to_string()))
        .chain([DISTANCE, VERDICT].map(str::to_owned))
        .collect();
    let line = |fields: &[String]| format!("| {} |\n", fields.join(" | "));
    let alignments: Vec<String> = (0..titles.len())
        .map(|column| if column < 2 { "---" } else { "---:" }.to_owned())
        .collect();
    let mut out = line(&titles) + &line(&alignments);
    for sample in samples {
        for comparison in &sample.metrics {
            let mut fields = vec![
                escape::markdown_code(&sample.key.arm),
                metric(comparison).to_owned(),
            ];
            fields.extend(comparison.percentiles.iter().map(difference));
            fields.push(distance(comparison.distance));
            let verdict = comparison.verdict();
            fields.push(verdict.map_or("-".to_owned(), |verdict| verdict.to_string()));
            out.push_str(&line(&fields));
        }
    }
    out
}
