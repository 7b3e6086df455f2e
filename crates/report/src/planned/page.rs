//! As one page that needs nothing else.

use maud::{Markup, html};

use super::super::chart::{Axes, Bar, Bars, Chart, Colour, Panel, Point, reached};
use super::super::document::{Head, document};
use super::super::text::NETWORK_ALONE;
use super::super::waiting::tables;
use super::{NOTICEABLE, Origin, Planned, legend, marked, share, slower};
use lastbyte_explain::plan::{Because, Gain};
use lastbyte_results::{Estimate, Step, Waiting};
use lastbyte_study::assumptions;

const TITLE: &str = "How many of my users wait longer?";

/// What stands beside the style of studies' pages.
const OWN_STYLE: &str = "\
td.bar { min-width: 12rem } td.bar div { height: .7rem; background: var(--agrees); border-radius: 2px }
td.bar div.loss { background: var(--differs) }
table.levers th { white-space: normal; min-width: 6rem }
ul.granted { padding-left: 1.1rem; max-width: 60rem } ul.granted code { font-size: 12.5px }
";

/// The answer, the shares that wait, what would win it back, what was taken for granted and the command, as HTML
/// in light and dark.
pub fn page(planned: &Planned<'_>) -> String {
    let cells = std::slice::from_ref(&planned.plan.planned.cell);
    let body = html! {
        header {
            h1 { (TITLE) }
            @for sentence in planned.answer() { p.verdict { (sentence.replace(" %", "\u{a0}%")) } }
        }
        @for warning in planned.warnings { p.warning { "warning: " (warning) } }
        section {
            h2 { "Who waits, and how long" }
            p.caption {
                "Each connection is compared with itself: one link, one response and one luck, with "
                code { (planned.plan.planned.arm.label) } " and with "
                code { (planned.plan.today.arm.label) } ". Brackets are intervals of 95 %."
            }
            (causes(planned))
            (shares(planned).html())
            details {
                summary { "By how much" }
                (tables(&planned.waits()))
            }
            @if planned.transports.is_some() {
                details open {
                    summary { "Over TCP and over QUIC" }
                    (tables(&planned.waits_by_transport()))
                }
            }
        }
        section {
            h2 { "What would win it back" }
            p.caption {
                "Each lever about certificates alone, and then together, what gains most first; then what shortens every connection. \
                 Measured, not added up."
            }
            @let levers = levers(planned);
            (levers)
            @if let Some(legend) = legend(&levers.0) { p.caption { (legend) "." } }
            @for line in planned.unavailable() { p.caption { (line) "." } }
        }
        section {
            h2 { "What this rests on" }
            ul.granted {
                @for source in planned.sources { li { (source) } }
                @for usual in planned.usual {
                    li { "taken for granted: " code { (usual.key) " = " (usual.value) } ": " (usual.source) }
                }
                @for (lever, _) in &planned.plan.levers { li { (lever.name) ": " (lever.doc) } }
                @for assumption in assumptions(&planned.plan.planned.arm, cells) {
                    li { (assumption.subject) ": " (assumption.value) " (" (assumption.changed_by) ")" }
                }
                li {
                    (planned.tale.connections) " connections each; " (planned.plan.today.cell)
                    @if let Origin::Measured(environment) = planned.origin {
                        "; engine " (environment.engine) ", " (environment.kernel)
                    }
                }
                @if let Origin::Measured(_) = planned.origin { li { (NETWORK_ALONE) } }
            }
            pre { (planned.command) }
        }
    };
    let answer = planned.answer();
    let head = Head {
        title: TITLE,
        about: answer.first().map(String::as_str),
        url: None,
    };
    document(&head, OWN_STYLE, &body)
}

/// Who waits in each class, and why.
fn causes(planned: &Planned<'_>) -> Markup {
    let causes = &planned.tale.causes;
    html! {
        @if !causes.is_empty() {
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "connections" } th { "all" } th { "that resume" } th { "wait > " (NOTICEABLE) " longer" }
                            @for because in Because::ALL { th { (because) } }
                        }
                    }
                    tbody {
                        @for cause in causes {
                            tr {
                                th { (cause.class.as_deref().unwrap_or("all")) }
                                td { (cause.connections) } td { (cause.resumed) } td { (cause.all()) }
                                @for because in Because::ALL {
                                    td { (cause.waiting.get(&because).copied().unwrap_or(0)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The shares that wait longer by each step, of all and of each class.
fn shares(planned: &Planned<'_>) -> Chart {
    let all = planned.tale.planned.iter();
    let all = all.flat_map(|waiting| Step::ALL.iter().map(|step| slower(waiting, *step)));
    let points: Vec<Point> = (all.map(|slower| slower.connections.map(|share| 100.0 * share)))
        .map(point)
        .collect();
    let mut reach = reached(points.iter());
    reach.push(1.0);
    let of = |waiting: &Waiting| {
        let bar = |step: &Step| {
            let slower = slower(waiting, *step)
                .connections
                .map(|share| 100.0 * share);
            (
                step.to_string(),
                vec![Bar {
                    colour: Colour::Nth(0),
                    parts: vec![Some(point(slower))],
                    theirs: Vec::new(),
                }],
            )
        };
        let title = waiting
            .class
            .clone()
            .unwrap_or_else(|| "all connections".to_owned());
        Panel {
            title,
            drawing: Box::new(Bars {
                x_title: "longer by more than",
                y_title: "% of connections",
                groups: Step::ALL.iter().map(bar).collect(),
                marks: Vec::new(),
                reach: reach.clone(),
            }),
        }
    };
    Chart {
        title: "Who waits longer".to_owned(),
        panels: planned.tale.planned.iter().map(of).collect(),
        key: Vec::new(),
        axes: Axes::Shared,
        has_theirs: false,
    }
}

fn point(estimate: Estimate<f64>) -> Point {
    Point {
        value: estimate.value,
        interval: Some((estimate.interval.low, estimate.interval.high)),
    }
}

fn levers(planned: &Planned<'_>) -> Markup {
    let means = planned
        .gains()
        .filter_map(|(_, gain)| Some(gain.mean()?.value.abs()));
    let most = means.fold(f64::MIN_POSITIVE, f64::max);
    let bar = |gain: &Gain| {
        let mean = gain.mean().map_or(0.0, |mean| mean.value);
        let width = 100.0 * mean.abs() / most;
        let class = if mean < 0.0 { "loss" } else { "" };
        html! { div class=(class) style=(format!("width: {width:.1}%")) {} }
    };
    html! {
        div.scroll {
            table.levers {
                thead {
                    tr {
                        th { "lever" } th { "gains, mean ms" } th {}
                        th { "wait > " (NOTICEABLE) " longer than today, still" }
                        th { "longer than today at p90, ms" }
                    }
                }
                tbody {
                    @for (name, gain) in planned.gains() {
                        tr {
                            th { (name) }
                            td { (marked(gain.mean())) }
                            td.bar { (bar(gain)) }
                            td { (share(slower(&gain.than_today, NOTICEABLE).connections)) }
                            td { (marked(at_p90(&gain.than_today))) }
                        }
                    }
                }
            }
        }
    }
}

fn at_p90(waiting: &Waiting) -> Option<Estimate<f64>> {
    let mut percentiles = waiting.percentiles.iter();
    let found = percentiles.find(|(percentile, _)| percentile.per_mille() == 900);
    found.and_then(|(_, estimate)| *estimate)
}
