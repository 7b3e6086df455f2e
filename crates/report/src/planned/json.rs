//! As JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::super::assumed;
use super::super::waiting::{EstimateDocument, WaitingDocument, waiting_document};
use super::{Origin, Planned};
use lastbyte_explain::plan::{Gain, Lever, Plan};
use lastbyte_results::{Contents, Environment};

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../schemas/plan-1.schema.json");

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    answer: Vec<String>,
    today: &'a str,
    planned: &'a str,
    metric: &'static str,
    contents: &'static str,
    connections: u32,
    initcwnd: u32,
    waiting: Vec<WaitingDocument<'a>>,
    /// Absent where no share is over QUIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    transports: Option<TransportsDocument<'a>>,
    because: Vec<CauseDocument<'a>>,
    supposed: Vec<SupposedDocument<'a>>,
    levers: Vec<GainDocument<'a>>,
    calculated: Vec<GainDocument<'a>>,
    together: Vec<GainDocument<'a>>,
    unavailable: BTreeMap<&'static str, &'a str>,
    sources: &'a [String],
    taken_for_granted: Vec<UsualDocument<'a>>,
    warnings: &'a [String],
    command: &'a str,
    assumptions: Value,
    /// Absent where all is arithmetic.
    environment: Option<&'a Environment>,
    /// Why all is arithmetic, if it is.
    arithmetic: Option<&'a str>,
}

#[derive(Serialize)]
struct CauseDocument<'a> {
    class: Option<&'a str>,
    connections: u32,
    resumed: u32,
    waiting: BTreeMap<&'static str, u32>,
}

#[derive(Serialize)]
struct TransportsDocument<'a> {
    quic_share: f64,
    all: WaitingDocument<'a>,
    #[serde(flatten)]
    of_each: BTreeMap<&'static str, WaitingDocument<'a>>,
}

#[derive(Serialize)]
struct SupposedDocument<'a> {
    r#if: &'a str,
    than_today: WaitingDocument<'a>,
}

#[derive(Serialize)]
struct GainDocument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    gain_ms: Option<EstimateDocument>,
    than_today: WaitingDocument<'a>,
}

#[derive(Serialize)]
struct UsualDocument<'a> {
    key: &'a str,
    value: &'a str,
    source: &'a str,
}

fn gains<'a>(levers: &'a [(&'static Lever, Gain)], plan: &Plan) -> Vec<GainDocument<'a>> {
    let documents = levers.iter().map(|(lever, gain)| GainDocument {
        name: lever.name,
        amount: Some(lever.words(&plan.planned, &plan.amounts)),
        gain_ms: gain.mean().map(EstimateDocument::from),
        than_today: waiting_document(&gain.than_today),
    });
    documents.collect()
}

/// The whole plan as one JSON document, as [`SCHEMA`] has it. A number that can't be had is null.
pub fn json(planned: &Planned<'_>) -> String {
    let tale = planned.tale;
    let gains = |levers| gains(levers, planned.plan);
    let document = Document {
        schema: "lastbyte.plan/1",
        answer: planned.answer(),
        today: &planned.plan.today.arm.label,
        planned: &planned.plan.planned.arm.label,
        metric: tale.metric.name(),
        contents: Contents::Network.name(),
        connections: tale.connections,
        initcwnd: planned.plan.today.cell.initcwnd,
        waiting: tale.planned.iter().map(waiting_document).collect(),
        transports: planned.transports.map(|transports| TransportsDocument {
            quic_share: transports.quic_share.fraction(),
            all: waiting_document(&transports.all),
            of_each: (transports.of_each.iter())
                .map(|(transport, waiting)| (transport.name(), waiting_document(waiting)))
                .collect(),
        }),
        because: (tale.causes.iter())
            .map(|cause| CauseDocument {
                class: cause.class.as_deref(),
                connections: cause.connections,
                resumed: cause.resumed,
                waiting: (cause.waiting.iter())
                    .map(|(because, count)| (because.name(), *count))
                    .collect(),
            })
            .collect(),
        supposed: (tale.supposed.iter())
            .map(|(what, waiting)| SupposedDocument {
                r#if: what,
                than_today: waiting_document(waiting),
            })
            .collect(),
        levers: gains(&tale.levers),
        calculated: gains(&tale.calculated),
        together: (tale.together.iter())
            .map(|gain| GainDocument {
                name: &gain.name,
                amount: None,
                gain_ms: gain.mean().map(EstimateDocument::from),
                than_today: waiting_document(&gain.than_today),
            })
            .collect(),
        unavailable: (planned.plan.unavailable.iter())
            .map(|(lever, reason)| (lever.name, reason.as_str()))
            .collect(),
        sources: planned.sources,
        taken_for_granted: (planned.usual.iter())
            .map(|usual| UsualDocument {
                key: &usual.key,
                value: &usual.value,
                source: &usual.source,
            })
            .collect(),
        warnings: planned.warnings,
        command: planned.command,
        assumptions: assumed::json(
            &planned.plan.planned.arm,
            std::slice::from_ref(&planned.plan.planned.cell),
        ),
        environment: match planned.origin {
            Origin::Measured(environment) => Some(environment),
            Origin::Arithmetic(_) => None,
        },
        arithmetic: match planned.origin {
            Origin::Measured(_) => None,
            Origin::Arithmetic(reason) => Some(reason),
        },
    };
    // Serialising plain structures to memory cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
