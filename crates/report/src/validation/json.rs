//! The document of `validate`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{answer, cells};
use crate::json::{CellDocument, milliseconds, percent};
use lastbyte_results::Percentile;
use lastbyte_results::validate::{
    Comparison, Connections, FAMILY_WISE_ERROR, Margin, MetricComparison, SampleComparison,
    Validation, Verdict,
};

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../schemas/validate-1.schema.json");

/// The whole validation as one JSON document, as [`SCHEMA`] has it.
pub fn json(validation: &Validation) -> String {
    let sides = validation.names.iter().zip(&validation.engines);
    let mut sides = sides.map(|(name, engine)| Side { name, engine });
    let document = Document {
        schema: "lastbyte.validate/1",
        a: sides.next(),
        b: sides.next(),
        verdict: validation.verdict().into(),
        answer: answer(validation),
        warnings: &validation.warnings,
        comparisons: validation.comparisons,
        family_wise_error: FAMILY_WISE_ERROR,
        level: validation.level(),
        margin_percent: Margins {
            without_loss: margins(&validation.margins.without_loss),
            with_loss: margins(&validation.margins.with_loss),
        },
        cells: cells(validation)
            .filter_map(ComparedDocument::new)
            .collect(),
    };
    // Serialising plain structures to memory cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    a: Option<Side<'a>>,
    b: Option<Side<'a>>,
    verdict: VerdictName,
    answer: Vec<String>,
    warnings: &'a [String],
    comparisons: usize,
    family_wise_error: f64,
    level: f64,
    margin_percent: Margins,
    cells: Vec<ComparedDocument<'a>>,
}

#[derive(Serialize)]
struct Side<'a> {
    name: &'a str,
    engine: &'a str,
}

#[derive(Serialize)]
struct Margins {
    without_loss: BTreeMap<String, f64>,
    with_loss: BTreeMap<String, f64>,
}

#[derive(Serialize)]
struct ComparedDocument<'a> {
    measure: &'a str,
    #[serde(rename = "cell")]
    name: String,
    #[serde(flatten)]
    cell: CellDocument<'a>,
    arms: Vec<Arm<'a>>,
}

#[derive(Serialize)]
struct Arm<'a> {
    arm: &'a str,
    a: Option<Count>,
    b: Option<Count>,
    verdict: Option<VerdictName>,
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Count {
    connections: usize,
    failed: usize,
}

#[derive(Serialize)]
struct Metric {
    metric: &'static str,
    ks_distance: Option<f64>,
    verdict: Option<VerdictName>,
    #[serde(flatten)]
    percentiles: BTreeMap<String, Percentiles>,
}

#[derive(Serialize)]
struct Percentiles {
    a_ms: Option<f64>,
    b_ms: Option<f64>,
    difference_percent: Estimate,
    margin_percent: Option<f64>,
    verdict: Option<VerdictName>,
    connections_needed: Option<u64>,
}

#[derive(Serialize)]
struct Estimate {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum VerdictName {
    Agrees,
    Undecided,
    Differs,
}

impl From<Verdict> for VerdictName {
    fn from(verdict: Verdict) -> VerdictName {
        match verdict {
            Verdict::Agrees => VerdictName::Agrees,
            Verdict::Undecided { .. } => VerdictName::Undecided,
            Verdict::Differs => VerdictName::Differs,
        }
    }
}

impl<'a> ComparedDocument<'a> {
    fn new(samples: &'a [SampleComparison]) -> Option<ComparedDocument<'a>> {
        let key = &samples.first()?.key;
        Some(ComparedDocument {
            measure: &key.measure,
            name: key.cell.to_string(),
            cell: CellDocument::new(&key.cell),
            arms: samples.iter().map(Arm::new).collect(),
        })
    }
}

impl<'a> Arm<'a> {
    fn new(sample: &'a SampleComparison) -> Arm<'a> {
        let count = |connections: Connections| Count {
            connections: connections.all,
            failed: connections.failed,
        };
        let [a, b] = sample.connections.map(|side| side.map(count));
        Arm {
            arm: &sample.key.arm,
            a,
            b,
            verdict: sample.verdict().map(VerdictName::from),
            metrics: sample.metrics.iter().map(Metric::new).collect(),
        }
    }
}

impl Metric {
    fn new(comparison: &MetricComparison) -> Metric {
        let percentiles = comparison.percentiles.iter();
        Metric {
            metric: comparison.metric.name(),
            ks_distance: (comparison.distance).map(|distance| (distance * 1e6).round() / 1e6),
            verdict: comparison.verdict().map(VerdictName::from),
            percentiles: percentiles
                .map(|one| (one.percentile.to_string(), Percentiles::new(one)))
                .collect(),
        }
    }
}

impl Percentiles {
    fn new(comparison: &Comparison) -> Percentiles {
        let [a_ms, b_ms] = comparison.times.map(|time| time.map(milliseconds));
        let judgement = comparison.judgement;
        Percentiles {
            a_ms,
            b_ms,
            difference_percent: Estimate {
                value: comparison.difference.map(percent),
                low: comparison.interval.low.map(percent),
                high: comparison.interval.high.map(percent),
            },
            margin_percent: judgement.map(|judgement| judgement.margin.0),
            verdict: judgement.map(|judgement| judgement.verdict.into()),
            connections_needed: judgement.and_then(|judgement| match judgement.verdict {
                Verdict::Undecided { needed } => needed,
                Verdict::Agrees | Verdict::Differs => None,
            }),
        }
    }
}

fn margins(margins: &[Margin]) -> BTreeMap<String, f64> {
    let name = |percentile: Percentile| percentile.to_string();
    margins
        .iter()
        .map(|margin| (name(margin.percentile), margin.most.0))
        .collect()
}
