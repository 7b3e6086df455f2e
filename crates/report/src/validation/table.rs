//! A validation for a terminal.

use super::{
    DISTANCE, VERDICT, answer, cells, connections, difference, distance, have_same_connections,
    heading, legend, metric,
};
use crate::layout::{Field, Line, Role, Screen, set};
use lastbyte_results::validate::{
    Comparison, MetricComparison, SampleComparison, Validation, Verdict,
};

/// The differences of each sample, their verdicts, and what it comes to, as text of at most 100
/// columns.
pub fn table(validation: &Validation, screen: Screen) -> String {
    let mut lines = Vec::new();
    for samples in cells(validation) {
        lines.push(Line::Text(Role::Heading, heading(samples)));
        for sample in samples {
            lines.extend(sample_lines(sample));
            if !have_same_connections(samples) {
                let text = format!("    {}", connections(sample));
                lines.push(Line::Text(Role::Dim, text));
            }
        }
        lines.push(Line::Text(Role::Normal, String::new()));
    }
    let mut out = set(&lines, screen);
    for sentence in legend(validation) {
        out.push_str(&format!(
            "{}\n",
            screen.paint(Role::Dim, &screen.wrap(&sentence, 0))
        ));
    }
    out.push('\n');
    for sentence in answer(validation) {
        out.push_str(&format!("{}\n", screen.wrap(&sentence, 0)));
    }
    if !validation.warnings.is_empty() {
        out.push('\n');
    }
    for warning in &validation.warnings {
        let text = screen.wrap(&format!("warning: {warning}"), 2);
        let rest = text.strip_prefix("warning:").unwrap_or(&text);
        out.push_str(&format!(
            "{}{rest}\n",
            screen.paint(Role::Warning, "warning:")
        ));
    }
    out
}

fn sample_lines(sample: &SampleComparison) -> Vec<Line> {
    let percentiles = sample.metrics.first().map(|metric| &metric.percentiles);
    let titles = percentiles
        .into_iter()
        .flatten()
        .map(|comparison| comparison.percentile.to_string())
        .chain([DISTANCE, VERDICT].map(str::to_owned))
        .map(|title| Field::new(Role::Dim, title));
    let label = Field::new(Role::Normal, format!("  {}", sample.key.arm));
    let mut lines = vec![Line::Fields(label, titles.collect())];
    lines.extend(sample.metrics.iter().map(metric_line));
    lines
}

fn metric_line(comparison: &MetricComparison) -> Line {
    let mut fields: Vec<_> = comparison
        .percentiles
        .iter()
        .map(|comparison| Field::new(role(comparison), difference(comparison)))
        .collect();
    fields.push(Field::new(Role::Normal, distance(comparison.distance)));
    fields.push(match comparison.verdict() {
        None => Field::new(Role::Dim, "-"),
        Some(Verdict::Agrees) => Field::new(Role::Normal, Verdict::Agrees.to_string()),
        Some(verdict) => Field::new(Role::Warning, verdict.to_string()),
    });
    let label = Field::new(Role::Normal, format!("    {}", metric(comparison)));
    Line::Fields(label, fields)
}

fn role(comparison: &Comparison) -> Role {
    match comparison.judgement.map(|judgement| judgement.verdict) {
        None => Role::Dim,
        Some(Verdict::Agrees) => Role::Normal,
        Some(Verdict::Undecided { .. } | Verdict::Differs) => Role::Warning,
    }
}
