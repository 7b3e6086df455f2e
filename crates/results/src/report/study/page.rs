//! The page.

use lastbyte_link::counted;
use maud::{Markup, PreEscaped, html};

use super::command::commands;
use super::described;
use super::details::details;
use super::figure::{Drawn, draw};
use super::findings::Findings;
use super::numbers::{published_table, quantity};
use super::plan::Content;
use super::verdict::{Agreement, CheckedClaim, Compared, Verdict, check_claims, compare};
use crate::report::answer::answer;
use crate::report::document::document;
use crate::report::text;
use crate::report::waiting::{Which, tables, waits};
use crate::report::{chart, search};
use crate::results::{Summary, family};
use crate::study::{Arm, Cell, Study};

/// How much is reported at once.
const SENTENCES: usize = 6;

/// What was found, as HTML in light and dark that asks no network for anything: the answer, the claims,
/// the figures with published numbers beside ours, and all numbers.
pub fn page(findings: &Findings) -> String {
    let study = &findings.study;
    let figures = described(findings);
    let drawn: Vec<Drawn> = figures
        .iter()
        .map(|figure| draw(findings, figure))
        .collect();
    let claims = check_claims(findings);
    let published = compare(findings);
    let mut sections = (drawn.iter()).map(|drawn| section(findings, drawn, &published));
    let body = html! {
        h1 { (study.name) }
        (answers(findings, &claims, &published))
        @for searched in &findings.searched { (search::section(searched)) }
        (waiting(findings))
        @if let Some(first) = sections.next() { (first) }
        (claims_section(findings, &claims))
        @for section in sections { (section) }
        (loose_numbers(findings, &published))
        (warnings(&findings.summaries))
        (details(findings))
        (origin(findings))
        script { (PreEscaped(include_str!("copy.js"))) }
    };
    document(
        &study.name,
        &[chart::STYLE, include_str!("page.css")],
        &body,
    )
}

/// What it comes to, in plain words.
fn answers(findings: &Findings, claims: &[CheckedClaim], published: &[Compared]) -> Markup {
    let mut sentences = sentences(findings);
    let more = sentences.split_off(sentences.len().min(SENTENCES));
    html! {
        (claims_answer(claims))
        (published_answer(published))
        @for sentence in sentences { (sentence) }
        @if !more.is_empty() {
            details {
                summary { (more.len()) " more sentences like these" }
                @for sentence in more { (sentence) }
            }
        }
    }
}

fn claims_answer(claims: &[CheckedClaim]) -> Markup {
    let count = |wanted| {
        let verdicts = claims.iter().map(|claim| claim.verdict);
        verdicts.filter(|verdict| *verdict == wanted).count()
    };
    html! {
        @if !claims.is_empty() {
            p.answer {
                "Of " (counted(claims.len(), "published claim")) ", "
                b.agrees { (does(count(Verdict::Holds), "holds", "hold")) } ", "
                b.differs { (does(count(Verdict::Fails), "does not", "do not")) } " and "
                b.unknown { (count(Verdict::Unknown)) " can’t be told" } "."
            }
        }
    }
}

/// `1 holds`, `2 hold`.
fn does(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn published_answer(published: &[Compared]) -> Markup {
    let numbers: Vec<_> = published.iter().flat_map(|row| &row.numbers).collect();
    let count = |wanted| numbers.iter().filter(|n| n.agreement == wanted).count();
    html! {
        @if !numbers.is_empty() {
            p.answer {
                "Of " (counted(numbers.len(), "published number")) ", "
                (does(count(Agreement::Agrees), "is", "are")) " as near to ours as was asked for, or within what "
                "another run of as many connections could have measured; "
                (does(count(Agreement::Differs), "is", "are")) " not; "
                (count(Agreement::Unmeasured)) " we have not measured."
            }
        }
    }
}

/// The answers of all measures, each a paragraph.
fn sentences(findings: &Findings) -> Vec<Markup> {
    let measures = &findings.study.measures;
    let mut sentences = Vec::new();
    for (measure, summary) in measures.iter().zip(&findings.summaries) {
        for words in answer(summary) {
            sentences.push(html! {
                p.answer {
                    @if measures.len() > 1 { b { (measure.id) } ": " }
                    (words)
                }
            });
        }
    }
    sentences
}

/// How much longer the connections of populations wait.
fn waiting(findings: &Findings) -> Markup {
    let measures = findings.study.measures.iter().zip(&findings.summaries);
    let cells = measures.flat_map(|(measure, summary)| {
        let of_population = summary
            .cells
            .iter()
            .filter(|cell| cell.cell.population.is_some());
        of_population.map(move |cell| (measure, cell, &summary.percentiles))
    });
    html! {
        @for (measure, cell, percentiles) in cells {
            section {
                h2 { "Who waits longer: " (measure.id) }
                p.caption {
                    (cell.cell) ". Each connection is compared with itself; brackets are intervals of 95 %."
                }
                (tables(&waits(cell, percentiles, Which::All)))
            }
        }
    }
}

fn section(findings: &Findings, drawn: &Drawn, published: &[Compared]) -> Markup {
    let figure = drawn.figure;
    let rows: Vec<_> = (published.iter())
        .filter(|row| row.published.figure.as_ref() == Some(&figure.id))
        .collect();
    html! {
        section.figure id=(figure.id) {
            h2 { (drawn.title) }
            p.caption { (caption(findings, drawn)) }
            @match &drawn.content {
                Content::Chart(chart) => (chart.html()),
                Content::Table(table) => (table),
            }
            (holes(&drawn.holes))
            (published_table(findings, &rows))
            (command(findings, drawn))
        }
    }
}

fn holes(holes: &[String]) -> Markup {
    /// How many are named.
    const NAMED: usize = 3;
    html! {
        @for hole in holes.iter().take(NAMED) {
            p.warning { "Not measured: " (hole) "." }
        }
        @if holes.len() > NAMED {
            p.warning { "… and " (counted(holes.len() - NAMED, "more sample")) "." }
        }
    }
}

fn caption(findings: &Findings, drawn: &Drawn) -> String {
    let mut words = Vec::new();
    if !drawn.common.is_empty() {
        words.push(drawn.common.clone());
    }
    if !drawn.figure.pool.is_empty() {
        let pool: Vec<_> = drawn.figure.pool.iter().map(ToString::to_string).collect();
        words.push(format!("all values of {} together", pool.join(" and ")));
    }
    match drawn.connections {
        Some((least, most)) if least == most => {
            words.push(format!("n = {} each", counted(most, "connection")))
        }
        Some((least, most)) => words.push(format!("n = {least} to {most} connections each")),
        None => words.push("not measured".to_owned()),
    }
    words.push(format!("{} engine", findings.engine));
    let caption = format!("{}. {}", words.join("; "), drawn.note);
    caption.trim_end().to_owned()
}

/// What measures the figure alone, to copy.
fn command(findings: &Findings, drawn: &Drawn) -> Markup {
    let study = &findings.study;
    let mut all = Vec::new();
    for (index, measure) in study.measures_named(&drawn.figure.measures) {
        let cells: Vec<&Cell> = (drawn.cells.iter())
            .filter(|(of, _)| *of == index)
            .filter_map(|place| findings.cell(*place))
            .collect();
        let arms: Vec<&Arm> = (measure.experiment.arms.iter())
            .filter(|arm| drawn.arms.contains(&arm.name))
            .collect();
        if cells.is_empty() {
            continue;
        }
        let Some(commands) = commands(&measure.experiment, &cells, &arms, &findings.engine) else {
            return reproduced(&[run_command(study)]);
        };
        all.extend(commands);
    }
    reproduced(&all)
}

fn run_command(study: &Study) -> String {
    let file = study.path.file_name().unwrap_or_default().to_string_lossy();
    format!("lastbyte run {file} -o results && lastbyte report results")
}

fn reproduced(commands: &[String]) -> Markup {
    html! {
        details.command {
            summary { "Measure this again" }
            button type="button" { "copy" }
            pre { (commands.join("\n")) }
        }
    }
}

fn claims_section(findings: &Findings, claims: &[CheckedClaim]) -> Markup {
    html! {
        @if !claims.is_empty() {
            section id="claims" {
                h2 { "Published claims" }
                p.caption {
                    "A claim holds when the whole 95 % interval of every number lies within the bounds; it does "
                    "not when one lies outside altogether; else it can’t be told."
                }
                @for checked in claims { (claim(findings, checked)) }
            }
        }
    }
}

fn claim(findings: &Findings, checked: &CheckedClaim) -> Markup {
    let CheckedClaim {
        claim,
        verdict,
        checks,
    } = checked;
    html! {
        details.claim {
            summary {
                b class=(verdict.class()) { (verdict.word()) } " " (claim.text) " " code { (claim.id) }
            }
            ul {
                @for (check, numbers) in checks {
                    li {
                        (quantity::check(findings, check)) br;
                        @for (index, (answer, verdict)) in numbers.iter().enumerate() {
                            @if index > 0 { "; " }
                            span class=(verdict.class()) {
                                (quantity::answer(findings, check, numbers, answer))
                            }
                        }
                    }
                }
            }
            @if let Some(cause) = &claim.cause { p { (cause) } }
        }
    }
}

/// Published numbers that stand beside no figure.
fn loose_numbers(findings: &Findings, published: &[Compared]) -> Markup {
    let rows = published.iter();
    let rows: Vec<_> = rows.filter(|row| row.published.figure.is_none()).collect();
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Other published numbers" }
                (published_table(findings, &rows))
            }
        }
    }
}

fn warnings(summaries: &[Summary]) -> Markup {
    let warnings = summaries.iter().flat_map(|summary| &summary.warnings);
    let warnings: Vec<_> = warnings.collect();
    html! {
        @if !warnings.is_empty() {
            details {
                summary { "What to mind" }
                ul {
                    @for warning in warnings { li { (warning) } }
                }
            }
        }
    }
}

/// Where all of it comes from.
fn origin(findings: &Findings) -> Markup {
    let environment = &findings.environment;
    let study = &findings.study;
    let versions: Vec<String> = (environment.versions.iter())
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    html! {
        section id="origin" {
            h2 { "How it was measured" }
            (increases(findings))
            p {
                "Measured by the " (findings.engine) " engine over " (environment.kernel) "; "
                (versions.join(", ")) "."
            }
            @if let Some(contents) = findings.summaries.iter().find_map(text::contents) {
                p { (contents) }
            }
            p { "Processor: " (environment.host.cpu) ", " (environment.host.cpus) " in use." }
            details {
                summary { "The study" }
                pre { (study.text) }
            }
            p { "All of it again:" }
            (reproduced(&[run_command(study)]))
        }
    }
}

/// What makes an increase a difference, if there is any.
fn increases(findings: &Findings) -> Markup {
    let summaries = findings.summaries.iter();
    let count: usize = summaries.map(|summary| summary.p_values().count()).sum();
    html! {
        @if count > 0 {
            p {
                (count) " increases are told here. One is a difference if it stands out among all of them "
                "(Benjamini and Hochberg 1995, " (family::FALSE_DISCOVERIES * 100.0) " % false discoveries) and "
                "its 95 % interval does not hold zero: no sentence calls another one so, and ~ stands before "
                "it. Intervals are paired percentile bootstraps over connections; each holds the truth in 95 "
                "of 100 studies, not all of them together."
            }
        }
    }
}
