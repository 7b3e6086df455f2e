//! The page.

use super::command::commands;
use super::described;
use super::details::details;
use super::figure::{Drawn, draw};
use super::findings::Findings;
use super::numbers::{published_table, quantity, table};
use super::verdict::{Agreement, CheckedClaim, Compared, Verdict, check_claims, compare};
use crate::report::answer::answer;
use crate::report::chart;
use crate::report::escape::xml as escape;
use crate::results::{Summary, family};
use crate::study::{Arm, Cell, Plot, Study};

/// How much is told at once.
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
    let mut body = format!("<h1>{}</h1>\n", escape(&study.name));
    body.push_str(&answers(findings, &claims, &published));
    let mut sections = (drawn.iter()).map(|drawn| section(findings, drawn, &published));
    body.push_str(&sections.next().unwrap_or_default());
    body.push_str(&claims_section(findings, &claims));
    body.extend(sections);
    body.push_str(&loose_numbers(findings, &published));
    body.push_str(&warnings(&findings.summaries));
    body.push_str(&details(findings));
    body.push_str(&origin(findings));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n{body}<script>\n{}</script>\n</body>\n</html>\n",
        escape(&study.name),
        chart::STYLE,
        include_str!("page.css"),
        include_str!("copy.js"),
    )
}

/// What it comes to, in plain words.
fn answers(findings: &Findings, claims: &[CheckedClaim], published: &[Compared]) -> String {
    let mut text = String::new();
    let mut sentence = |words: &str| text.push_str(&format!("<p class=\"answer\">{words}</p>\n"));
    if !claims.is_empty() {
        let count = |wanted| {
            claims
                .iter()
                .filter(|claim| claim.verdict == wanted)
                .count()
        };
        sentence(&format!(
            "Of {} published claims, <b class=\"agrees\">{} hold</b>, <b class=\"differs\">{} do not</b> and \
             <b class=\"unknown\">{} can’t be told</b>.",
            claims.len(),
            count(Verdict::Holds),
            count(Verdict::Fails),
            count(Verdict::Unknown),
        ));
    }
    let numbers: Vec<_> = published.iter().flat_map(|row| &row.numbers).collect();
    if !numbers.is_empty() {
        let count = |wanted| numbers.iter().filter(|n| n.agreement == wanted).count();
        sentence(&format!(
            "Of {} published numbers, {} are what we measured, or within what another run of as many \
             connections could have measured; {} are not; {} we have not measured.",
            numbers.len(),
            count(Agreement::Agrees),
            count(Agreement::Differs),
            count(Agreement::Unmeasured),
        ));
    }
    let mut sentences = Vec::new();
    for (measure, summary) in findings.study.measures.iter().zip(&findings.summaries) {
        for words in answer(summary) {
            let place = match findings.study.measures.len() {
                1 => String::new(),
                _ => format!("<b>{}</b>: ", escape(&measure.id)),
            };
            sentences.push(format!(
                "<p class=\"answer\">{place}{}</p>\n",
                escape(&words)
            ));
        }
    }
    let more = sentences.split_off(sentences.len().min(SENTENCES));
    text.extend(sentences);
    if !more.is_empty() {
        text.push_str(&format!(
            "<details><summary>{} more sentences like these</summary>\n{}</details>\n",
            more.len(),
            more.concat()
        ));
    }
    text
}

fn section(findings: &Findings, drawn: &Drawn, published: &[Compared]) -> String {
    let figure = drawn.figure;
    let mut text = format!(
        "<section class=\"figure\" id=\"{id}\">\n<h2>{title}</h2>\n",
        id = escape(&figure.id),
        title = escape(&drawn.chart.title),
    );
    text.push_str(&format!(
        "<p class=\"caption\">{}</p>\n",
        caption(findings, drawn)
    ));
    text.push_str(&drawn.chart.html());
    if figure.plot == Plot::Table {
        text.push_str(&table(findings, figure, &drawn.cells));
    }
    for hole in drawn.holes.iter().take(3) {
        text.push_str(&format!(
            "<p class=\"warning\">Not measured: {}.</p>\n",
            escape(hole)
        ));
    }
    if let Some(more @ 1..) = drawn.holes.len().checked_sub(3) {
        text.push_str(&format!(
            "<p class=\"warning\">… and {more} more samples.</p>\n"
        ));
    }
    let rows = published.iter();
    let rows: Vec<_> = rows
        .filter(|row| row.published.figure.as_ref() == Some(&figure.id))
        .collect();
    text.push_str(&published_table(findings, &rows));
    text.push_str(&command(findings, drawn));
    text + "</section>\n"
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
        Some((least, most)) if least == most => words.push(format!("n = {most} connections each")),
        Some((least, most)) => words.push(format!("n = {least} to {most} connections each")),
        None => words.push("not measured".to_owned()),
    }
    words.push(format!("{} engine", findings.engine));
    let what = match (drawn.figure.plot, drawn.figure.x) {
        (Plot::Increase, Some(_)) => {
            let arm = drawn.arms.first().map_or("", |arm| arm);
            format!(" Percent over {arm}; bands are 95 % intervals.")
        }
        (Plot::Increase, None) => {
            let arm = drawn.arms.first().map_or("", |arm| arm);
            format!(" Percent over {arm}; whiskers are 95 % intervals.")
        }
        (Plot::Percentiles, Some(_)) => {
            let percentiles = findings.percentiles_of(drawn.figure).iter();
            let percentiles: Vec<_> = percentiles.map(ToString::to_string).collect();
            format!(
                " Each bar reaches {}, from dark to light; whiskers are 95 % intervals.",
                percentiles.join(", ")
            )
        }
        (Plot::Percentiles, None) => " Whiskers are 95 % intervals.".to_owned(),
        (Plot::Cdf | Plot::Table, _) => String::new(),
    };
    escape(&format!("{}.{what}", words.join("; ")))
}

/// What measures the figure alone, to copy.
fn command(findings: &Findings, drawn: &Drawn) -> String {
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

fn reproduced(commands: &[String]) -> String {
    format!(
        "<details class=\"command\"><summary>Measure this again</summary><button type=\"button\">copy</button>\
         <pre>{}</pre></details>\n",
        escape(&commands.join("\n"))
    )
}

fn claims_section(findings: &Findings, claims: &[CheckedClaim]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let mut text = "<section id=\"claims\">\n<h2>Published claims</h2>\n<p class=\"caption\">A claim holds when \
        the whole 95 % interval of every number lies within the bounds; it does not when one lies outside \
        altogether; else it can’t be told.</p>\n"
        .to_owned();
    for checked in claims {
        let (class, word) = (checked.verdict.class(), checked.verdict.word());
        text.push_str(&format!(
            "<details class=\"claim\"><summary><b class=\"{class}\">{word}</b> {} <code>{}</code></summary>\n<ul>\n",
            escape(&checked.claim.text),
            escape(&checked.claim.id),
        ));
        for (check, numbers) in &checked.checks {
            text.push_str(&format!(
                "<li>{}<br>",
                escape(&quantity::check(findings, check))
            ));
            let shown: Vec<String> = (numbers.iter())
                .map(|(answer, verdict)| {
                    let class = verdict.class();
                    let number = quantity::answer(findings, check, numbers, answer);
                    format!("<span class=\"{class}\">{}</span>", escape(&number))
                })
                .collect();
            text.push_str(&format!("{}</li>\n", shown.join("; ")));
        }
        text.push_str("</ul>\n");
        if let Some(cause) = &checked.claim.cause {
            text.push_str(&format!("<p>{}</p>\n", escape(cause)));
        }
        text.push_str("</details>\n");
    }
    text + "</section>\n"
}

/// Published numbers that stand beside no figure.
fn loose_numbers(findings: &Findings, published: &[Compared]) -> String {
    let rows = published.iter();
    let rows: Vec<_> = rows.filter(|row| row.published.figure.is_none()).collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<section>\n<h2>Other published numbers</h2>\n{}</section>\n",
            published_table(findings, &rows)
        ),
    }
}

fn warnings(summaries: &[Summary]) -> String {
    let warnings = summaries.iter().flat_map(|summary| &summary.warnings);
    let lines: String = warnings
        .map(|warning| format!("<li>{}</li>\n", escape(&warning.to_string())))
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => {
            format!("<details><summary>What to mind</summary>\n<ul>\n{lines}</ul></details>\n")
        }
    }
}

/// Where all of it comes from.
fn origin(findings: &Findings) -> String {
    let environment = &findings.environment;
    let study = &findings.study;
    let told: usize = (findings.summaries.iter())
        .map(|summary| summary.p_values().count())
        .sum();
    let many = (told > 0).then(|| {
        format!(
            "{told} increases are told here. One is a difference if it stands out among all of them (Benjamini \
             and Hochberg 1995, {} % false discoveries) and its 95 % interval does not hold zero: no sentence \
             calls another one so, and ~ stands before it. Intervals are paired percentile bootstraps over \
             connections; each holds the truth in 95 of 100 studies, not all of them together.",
            family::FALSE_DISCOVERIES * 100.0
        )
    });
    let versions: Vec<String> = (environment.versions.iter())
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let lines = [
        many.unwrap_or_default(),
        format!(
            "Measured by the {} engine over {}; {}.",
            findings.engine,
            environment.kernel,
            versions.join(", ")
        ),
        format!(
            "Processor: {}, {} in use.",
            environment.host.cpu, environment.host.cpus
        ),
    ];
    let lines: String = (lines.iter())
        .filter(|line| !line.is_empty())
        .map(|line| format!("<p>{}</p>\n", escape(line)))
        .collect();
    format!(
        "<section id=\"origin\">\n<h2>How it was measured</h2>\n{lines}<details><summary>The study</summary>\
         <pre>{}</pre></details>\n<p>All of it again:</p>\n{}</section>\n",
        escape(&study.text),
        reproduced(&[run_command(study)]),
    )
}
