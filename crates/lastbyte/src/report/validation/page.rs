//! A validation as one page that needs nothing else.

use super::{
    DISTANCE, VERDICT, answer, cell_name, cells, connections, difference, distance, legend, metric,
};
use crate::report::escape::xml as escape;
use crate::report::qq::{Mark, QqPlot, STYLE};
use crate::validate::{Comparison, MetricComparison, SampleComparison, Validation, Verdict};

/// Quantiles of a plot, besides the least.
const POINTS: u32 = 100;

/// The differences of each sample with a Q-Q plot of each metric, as HTML in light and dark.
pub fn page(validation: &Validation) -> String {
    let title = validation.names.each_ref().map(|name| escape(name));
    let mut body = String::new();
    for samples in cells(validation) {
        body.push_str(&format!("<h2>{}</h2>\n", escape(&cell_name(samples))));
        for sample in samples {
            body.push_str(&section(sample));
        }
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{a} and {b}</title>\n<style>\n{PAGE}{STYLE}</style>\n</head>\n<body>\n\
         <h1>{a} and {b}</h1>\n{answer}{legend}{warnings}{body}</body>\n</html>\n",
        a = title[0],
        b = title[1],
        answer = paragraph("answer", &answer(validation).join(" ")),
        legend = paragraph("legend", &legend(validation).join(" ")),
        warnings = (validation.warnings.iter())
            .map(|warning| paragraph("warning", &format!("warning: {warning}")))
            .collect::<String>(),
    )
}

const PAGE: &str = "\
body { font: 15px/1.45 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
  color: CanvasText; background: Canvas }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2.5rem } h3 { font-size: 1rem }
.answer { font-weight: 600 } .legend, .untold { opacity: .7 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .8rem .15rem 0; text-align: right; font-weight: 400 }
th:first-child { text-align: left } thead th { opacity: .7 }
.plots { display: flex; flex-wrap: wrap; gap: .5rem }
";

fn paragraph(class: &str, text: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escape(text))
}

/// One arm in one cell.
fn section(sample: &SampleComparison) -> String {
    let percentiles = sample.metrics.first().map(|metric| &metric.percentiles);
    let titles: String = percentiles
        .into_iter()
        .flatten()
        .map(|comparison| comparison.percentile.to_string())
        .chain([DISTANCE, VERDICT].map(str::to_owned))
        .map(|title| format!("<th>{title}</th>"))
        .collect();
    let rows: String = sample.metrics.iter().map(row).collect();
    let plots: String = sample.metrics.iter().map(plot).collect();
    format!(
        "<h3>{}: {}</h3>\n<table>\n<thead><tr><th></th>{titles}</tr></thead>\n{rows}</table>\n\
         <div class=\"plots\">\n{plots}</div>\n",
        escape(&sample.key.arm),
        connections(sample)
    )
}

fn row(comparison: &MetricComparison) -> String {
    let cells: String = comparison
        .percentiles
        .iter()
        .map(|one| {
            let verdict = one.judgement.map(|judgement| judgement.verdict);
            let class = verdict.map_or("untold", class);
            format!("<td class=\"{class}\">{}</td>", escape(&difference(one)))
        })
        .collect();
    let verdict = match comparison.verdict() {
        Some(verdict) => format!("<td class=\"{}\">{verdict}</td>", class(verdict)),
        None => "<td>-</td>".to_owned(),
    };
    format!(
        "<tr><th>{}</th>{cells}<td>{}</td>{verdict}</tr>\n",
        metric(comparison),
        distance(comparison.distance)
    )
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

/// A ring around each percentile that is told.
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
