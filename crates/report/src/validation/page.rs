//! A validation as one page that needs nothing else.

use maud::{Markup, PreEscaped, html};

use super::{
    DISTANCE, VERDICT, answer, cell_name, cells, connections, difference, distance, legend, metric,
};
use crate::document::{Head, document};
use crate::qq::{Mark, QqPlot, STYLE};
use lastbyte_results::validate::{
    Comparison, MetricComparison, SampleComparison, Validation, Verdict,
};

/// Quantiles of a plot, besides the least.
const POINTS: u32 = 100;

/// The differences of each sample with a Q-Q plot of each metric, as HTML in light and dark.
pub fn page(validation: &Validation) -> String {
    let [a, b] = &validation.names;
    let answer = answer(validation).join(" ");
    let body = html! {
        header {
            h1 { (a) " and " (b) }
            p.verdict { (answer) }
        }
        p.legend { (legend(validation).join(" ")) }
        @for warning in &validation.warnings { p.warning { "warning: " (warning) } }
        @for samples in cells(validation) {
            h2 { (cell_name(samples)) }
            @for sample in samples { (section(sample)) }
        }
    };
    let head = Head {
        title: &format!("{a} and {b}"),
        about: Some(&answer),
        url: None,
    };
    document(&head, &format!("{STYLE}{OWN_STYLE}"), &body)
}

/// What stands beside the style of all pages.
const OWN_STYLE: &str = "\
.legend, .untold { color: var(--mut) } .legend { font-size: 14px; max-width: 52em }
.plots { display: flex; flex-wrap: wrap; gap: 8px }
";

/// One arm in one cell.
fn section(sample: &SampleComparison) -> Markup {
    let percentiles = sample.metrics.first().map(|metric| &metric.percentiles);
    html! {
        h3 { (sample.key.arm) ": " (connections(sample)) }
        div.scroll { table {
            thead {
                tr {
                    th {}
                    @for comparison in percentiles.into_iter().flatten() { th { (comparison.percentile) } }
                    th { (DISTANCE) }
                    th { (VERDICT) }
                }
            }
            @for metric in &sample.metrics { (row(metric)) }
        } }
        div.plots {
            @for metric in &sample.metrics { (PreEscaped(plot(metric))) }
        }
    }
}

fn row(comparison: &MetricComparison) -> Markup {
    html! {
        tr {
            th { (metric(comparison)) }
            @for one in &comparison.percentiles {
                @let verdict = one.judgement.map(|judgement| judgement.verdict);
                td class=(verdict.map_or("untold", class)) { (difference(one)) }
            }
            td { (distance(comparison.distance)) }
            @match comparison.verdict() {
                Some(verdict) => td class=(class(verdict)) { (verdict) },
                None => td { "-" },
            }
        }
    }
}

fn plot(comparison: &MetricComparison) -> String {
    let milliseconds = |[a, b]: [f64; 2]| [a / 1e6, b / 1e6];
    let points = (0..=POINTS)
        .filter_map(|point| comparison.quantiles(f64::from(point) / f64::from(POINTS)))
        .map(milliseconds)
        .collect();
    QqPlot {
        title: metric(comparison),
        points,
        marks: comparison.percentiles.iter().filter_map(mark).collect(),
    }
    .svg()
}

/// A ring around each percentile that is reported.
fn mark(comparison: &Comparison) -> Option<Mark> {
    let [a, b] = comparison.times;
    let verdict = comparison.judgement.map(|judgement| judgement.verdict);
    Some(Mark {
        name: comparison.percentile.to_string(),
        at: [a?, b?].map(|time| time.as_secs_f64() * 1e3),
        class: verdict.map_or("told", class),
    })
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Undecided { .. } => "undecided",
        Verdict::Differs => "differs",
    }
}
