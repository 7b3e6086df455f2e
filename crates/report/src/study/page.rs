//! The page.

use std::collections::BTreeSet;

use lastbyte_link::{counted, shell_word};
use maud::{Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::command::commands;
use super::details::details;
use super::figure::{Drawn, draw};
use super::files::numbers;
use super::findings::Findings;
use super::flights;
use super::inside;
use super::noticed;
use super::numbers::{published_table, quantity};
use super::overview::{Overview, grouped, networks};
use super::plan::Content;
use super::question::question;
use super::statement::{Source, in_text, statements};
use super::verdict::{Agreement, CheckedClaim, Compared, Verdict, check_claims, compare};
use super::waterfall;
use super::{described, whole_names};
use crate::answer::answer;
use crate::chart::Axes;
use crate::document::{Head, document};
use crate::search;
use crate::text;
use crate::waiting::{Which, tables, waits};
use lastbyte_results::{
    CellSummary, Percentile, Progress, QUIC, Summary, family, file_name, group_by,
};
use lastbyte_study::{Arm, Cell, Client, EngineName, Measure, Study, TransportName};

/// What was found, as HTML in light and dark that asks no network for anything: a question with its answer, what each
/// configuration costs on each network, why, the figures with published numbers in them, the claims, and all numbers.
///
/// `url` is where the page will stand, if it is to be shared with its [picture](super::share) beside it.
pub fn page(findings: &Findings, url: Option<&str>) -> String {
    let study = &findings.study;
    let overview = Overview::new(findings);
    let title = question(findings, overview.as_ref());
    let statements = statements(&Source {
        findings,
        overview: overview.as_ref(),
    });
    let about = in_text(&statements);
    let sentences = sentences(findings);
    let figures = described(findings);
    let drawn: Vec<Drawn> = figures
        .iter()
        .map(|figure| draw(findings, figure))
        .collect();
    let claims = check_claims(findings);
    let published = compare(findings);
    let folds = drawn.len() > MOST_OPEN;
    let body = html! {
        header {
            @if !study.text.is_empty() { p.kicker { bdi { (study.name) } } }
            h1 { (whole_names(&title, study)) }
            @for statement in &statements { (statement.html(findings)) }
            @if statements.is_empty() { p.verdict { (NOTHING) } }
            p.scope { (scope(findings)) }
            @if findings.progress == Progress::SoFar { p.warning { "This run is not complete: " (SO_FAR) "." } }
            @if let Some(note) = &study.note { p.note { bdi { (note) } } }
        }
        @if folds { (contents(&drawn, &claims, &published)) }
        @match noticed::section(findings) {
            // What one kind of traffic costs is nobody else's.
            Some(noticed) if is_of_traffic(findings) => (noticed),
            noticed => {
                @if let Some(overview) = &overview { (overview.html()) }
                @if let Some(noticed) = noticed { (noticed) }
            },
        }
        (legends(study))
        (claims_section(findings, &claims))
        (scoreboard(findings, &published))
        (in_words(&sentences, findings.study.measures.len()))
        @if let Some(flights) = flights::section(findings) { (flights) }
        @if let Some(inside) = inside::section(findings) { (inside) }
        @if let Some(waterfall) = waterfall::section(findings) { (waterfall) }
        @for searched in &findings.searched { (search::section(searched)) }
        (waiting(findings))
        @for (place, drawn) in drawn.iter().enumerate() {
            @let inside = figure(findings, drawn, &published);
            @if folds && place >= OPEN {
                details.figure {
                    summary { (heading(findings, drawn)) }
                    div id=(drawn.figure.id) { (inside) }
                }
            } @else {
                section.figure id=(drawn.figure.id) {
                    (heading(findings, drawn))
                    (inside)
                }
            }
        }
        (warnings(&findings.summaries))
        (details(findings))
        (origin(findings))
        script { (PreEscaped(include_str!("page.js"))) }
    };
    let head = Head {
        title: &title,
        about: about.as_deref(),
        url,
    };
    document(&head, "", &body)
}

/// A page with more figures than so many has contents, and
const MOST_OPEN: usize = 5;
/// only so many are open there: the others show their headings.
const OPEN: usize = 2;

/// What is said where there is nothing to say.
const NOTHING: &str = "Nothing was measured that could be told.";

/// What is said of a run that has not come to its end.
pub const SO_FAR: &str = "the numbers are of what has been measured so far";

/// How much was measured, and with what: one line.
fn scope(findings: &Findings) -> String {
    let summaries = findings.summaries.iter();
    let samples = summaries.clone().flat_map(|summary| &summary.cells);
    let samples = samples.flat_map(|cell| &cell.arms);
    let connections: u64 = samples.clone().map(|arm| u64::from(arm.connections)).sum();
    let cells: Vec<&Cell> = summaries
        .flat_map(|summary| &summary.cells)
        .map(|cell| &cell.cell)
        .collect();
    let networks = networks(cells.into_iter());
    let engine = match findings.engine {
        EngineName::Virtual => "in virtual time",
        EngineName::Live => "in real time",
    };
    format!(
        "Measured: {} connections of {} over {}, by real TLS stacks{}, {engine}.",
        grouped(connections as usize),
        counted(findings.study.arms().len(), "configuration"),
        counted(networks, "network"),
        transports(findings)
    )
}

/// Whose transports carried them: `, the TCP of Linux 6.12.117 and the QUIC of quinn-proto 0.11.19`.
fn transports(findings: &Findings) -> String {
    let environment = &findings.environment;
    let arms = findings.study.arms();
    let mut all: Vec<String> = (TransportName::ALL.iter())
        .filter(|transport| arms.iter().any(|arm| arm.transport == **transport))
        .map(|transport| match transport {
            TransportName::Tcp => format!("the TCP of {}", environment.kernel),
            TransportName::Quic => {
                format!("the QUIC of {}", quic_ends(findings).join(" and "))
            }
        })
        .collect();
    let last = all.pop().map(|last| format!(" and {last}"));
    let before = all.into_iter().map(|one| format!(", {one}"));
    before.chain(last).collect()
}

/// What is at the ends of its arms over QUIC: ours, with its version, and programs that people run.
fn quic_ends(findings: &Findings) -> Vec<&str> {
    let ours = findings.environment.versions.get(QUIC);
    let mut all: Vec<&str> = Vec::new();
    for Measure { experiment, .. } in &findings.study.measures {
        let arms = experiment.arms.iter();
        for arm in arms.filter(|arm| arm.transport == TransportName::Quic) {
            let client = if experiment.has_pages() {
                Client::Chromium
            } else {
                arm.client
            };
            let ends = [
                client.is_foreign().then(|| client.name()),
                arm.server.is_foreign().then(|| arm.server.name()),
            ];
            for end in ends {
                let end = end.unwrap_or(ours.map_or("quinn", String::as_str));
                if !all.contains(&end) {
                    all.push(end);
                }
            }
        }
    }
    all
}

/// What is said of a measure.
struct Sentence<'a> {
    measure: &'a str,
    words: String,
}

/// The answers of all measures.
fn sentences(findings: &Findings) -> Vec<Sentence<'_>> {
    let measures = findings.study.measures.iter().zip(&findings.summaries);
    let of_measure = |(measure, summary)| {
        let measure: &Measure = measure;
        let sentence = |words| Sentence {
            measure: &measure.id,
            words,
        };
        answer(summary).into_iter().map(sentence)
    };
    measures.flat_map(of_measure).collect()
}

/// What each configuration is, where the study says it.
fn legends(study: &Study) -> Markup {
    html! {
        @if study.legends.iter().any(|legend| legend.about.is_some()) {
            details.words {
                summary { "The configurations" }
                @for arm in study.arms() {
                    p {
                        b { (arm.name) }
                        @if let Some(about) = study.about(&arm.name) { ": " bdi { (about) } }
                        " " code { (arm.label) }
                    }
                }
            }
        }
    }
}

fn in_words(sentences: &[Sentence<'_>], measures: usize) -> Markup {
    html! {
        @if !sentences.is_empty() {
            details.words {
                summary { "The same in words, with its causes" }
                @for Sentence { measure, words } in sentences {
                    p {
                        @if measures > 1 { b { (measure) } ": " }
                        (words)
                    }
                }
            }
        }
    }
}

/// Whether all that was measured is of some kind of traffic.
fn is_of_traffic(findings: &Findings) -> bool {
    let mut cells = findings.summaries.iter().flat_map(|summary| &summary.cells);
    cells.all(|cell| cell.cell.traffic.is_some())
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
    let cells: Vec<_> = cells.collect();
    // Of many, the tables of all of them have the rest.
    let which = match cells.as_slice() {
        [_] => Which::All,
        _ => Which::Felt,
    };
    let inside = |cell: &CellSummary, percentiles: &[Percentile]| {
        html! {
            p.caption {
                (cell.cell) ". Each connection is compared with itself; brackets are intervals of 95 %."
            }
            (tables(&waits(cell, percentiles, which)))
        }
    };
    match cells.as_slice() {
        [] => html! {},
        [(measure, cell, percentiles)] => html! {
            section {
                h2 { "Who waits longer: " (measure.id) }
                (inside(cell, percentiles))
            }
        },
        cells => html! {
            details {
                summary { "Who waits longer, of each" }
                @for (measure, cell, percentiles) in cells {
                    details {
                        summary { (if cell.name.is_empty() { &measure.id } else { &cell.name }) }
                        (inside(cell, percentiles))
                    }
                }
            }
        },
    }
}

/// Where everything is: what agrees with what is published, and each figure.
fn contents(drawn: &[Drawn], claims: &[CheckedClaim], published: &[Compared]) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ul {
                @if !claims.is_empty() { li { a href="#claims" { (held(claims)) } } }
                @if !published.is_empty() { li { a href="#published" { (tally(published.iter())) } } }
                @for drawn in drawn {
                    li { a href={ "#" (drawn.figure.id) } { (drawn.title) } }
                }
                li { a href="#origin" { "How it was measured" } }
            }
        }
    }
}

/// What stands above a figure.
fn heading(findings: &Findings, drawn: &Drawn) -> Markup {
    let finding = drawn.finding.as_ref();
    html! {
        @if finding.is_some() { span.kicker { (drawn.title) } }
        h2 { (whole_names(finding.unwrap_or(&drawn.title), &findings.study)) }
    }
}

/// What stands below its heading.
fn figure(findings: &Findings, drawn: &Drawn, published: &[Compared]) -> Markup {
    let figure = drawn.figure;
    let rows: Vec<_> = (published.iter())
        .filter(|row| row.published.figure.as_ref() == Some(&figure.id))
        .collect();
    html! {
        @match &drawn.content {
            Content::Chart(chart) => (chart.html()),
            Content::Table(table) => (table),
        }
        p.caption { (caption(findings, drawn)) " " (download(drawn)) }
        (holes(&drawn.holes))
        @if !rows.is_empty() {
            details {
                summary { (tally(rows.iter().copied())) }
                (published_table(findings, &rows))
            }
        }
        (command(findings, drawn))
    }
}

/// What the word means.
const AGREES: &str = "A published number agrees if ours is as near as was asked for, or if another run of as many \
    connections could as well have measured it, 19 times in 20.";

/// `5 of 6 published numbers agree`
fn tally<'a>(rows: impl Iterator<Item = &'a Compared<'a>>) -> String {
    let numbers: Vec<_> = rows.flat_map(|row| &row.numbers).collect();
    let count = |wanted| {
        let all = numbers.iter();
        all.filter(|number| number.agreement == wanted).count()
    };
    let [agree, open, unmeasured] =
        [Agreement::Agrees, Agreement::Open, Agreement::Unmeasured].map(count);
    let verb = if numbers.len() == 1 {
        "agrees"
    } else {
        "agree"
    };
    let of = counted(numbers.len(), "published number");
    let mut words = format!("{agree} of {of} {verb}");
    if open > 0 {
        words += &format!(", {open} can’t be told");
    }
    if unmeasured > 0 {
        words += &format!(", {unmeasured} were not measured");
    }
    words
}

fn holes(holes: &[String]) -> Markup {
    /// How many are named.
    const NAMED: usize = 3;
    html! {
        @for hole in holes.iter().take(NAMED) {
            p.warning { (hole) "." }
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
    if let Content::Chart(chart) = &drawn.content
        && chart.panels.len() > 1
        && chart.axes == Axes::Own
    {
        words.push("each panel has its own axis".to_owned());
    }
    let caption = format!("{}. {}", words.join("; "), drawn.note);
    caption.trim_end().to_owned()
}

/// A page has no longer ones in it.
const LONGEST_CSV: usize = 40_000;
/// What is three characters in a `data:` URL: all but what RFC 3986, section 2.3, has unreserved, and commas, which CSV is full of.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b',');

/// The figure's numbers, in the page itself.
fn download(drawn: &Drawn) -> Markup {
    let name = format!("{}.csv", file_name(&drawn.figure.id));
    let csv = numbers(drawn);
    html! {
        @if csv.len() <= LONGEST_CSV {
            @let data = format!("data:text/csv;charset=utf-8,{}", utf8_percent_encode(&csv, ESCAPED));
            a.download download=(name) href=(data) { "CSV" }
        } @else {
            "Its numbers are many: " code { "lastbyte report --figures" } " writes them as CSV."
        }
    }
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
        let Some(commands) = commands(&measure.experiment, &cells, &arms, findings.engine) else {
            return reproduced(&[run_command(findings)]);
        };
        all.extend(commands);
    }
    reproduced(&all)
}

fn run_command(findings: &Findings) -> String {
    let study = &findings.study;
    if study.text.is_empty() {
        return findings.environment.command_line();
    }
    let file = study.path.file_name().unwrap_or_default().to_string_lossy();
    let file = shell_word(&file);
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

/// `6 of 16 published claims hold, 6 do not, 4 can’t be told`
fn held(claims: &[CheckedClaim]) -> String {
    let count = |wanted: Verdict| {
        let claims = claims.iter();
        claims.filter(|claim| claim.verdict == wanted).count()
    };
    let holding = count(Verdict::Holds);
    let of = counted(claims.len(), "published claim");
    let verb = if claims.len() == 1 || holding == 1 {
        "holds"
    } else {
        "hold"
    };
    let mut words = format!("{holding} of {of} {verb}");
    let failing = count(Verdict::Fails);
    if failing > 0 {
        let verb = if failing == 1 { "does" } else { "do" };
        words += &format!(", {failing} {verb} not");
    }
    let rest = claims.len() - holding - failing;
    if rest > 0 {
        words += &format!(", {rest} can’t be told");
    }
    words
}

fn claims_section(findings: &Findings, claims: &[CheckedClaim]) -> Markup {
    /// More than so many are folded.
    const MOST: usize = 3;
    let table = html! {
        table.claims {
            thead { tr { th { "Verdict" } th { "Claim" } th { "The number that decides" } } }
            tbody { @for checked in claims { (claim(findings, checked)) } }
        }
    };
    html! {
        @if !claims.is_empty() {
            section id="claims" {
                h2 { (held(claims)) }
                p.lead {
                    "A claim holds if the whole 95 % interval of each of its numbers is within the bounds, and does "
                    "not if one is outside altogether; else it can’t be told."
                }
                @if claims.len() > MOST {
                    details {
                        summary { "Each claim, and the number that decides it" }
                        (table)
                    }
                } @else { (table) }
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
    let deciding = checked.deciding();
    html! {
        tr id=(claim.id) {
            td { b class=(verdict.class()) { (verdict.word()) } }
            td {
                (claim.text)
                @if let Some(cause) = &claim.cause { p.cause { (cause) } }
                details {
                    summary { (counted(checks.iter().map(|(_, numbers)| numbers.len()).sum::<usize>(), "number")) }
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
                }
            }
            @match &deciding {
                Some(deciding) => td {
                    (PreEscaped(deciding.bar()))
                    p { (deciding.words()) }
                    p.cause { (deciding.of_what(findings)) }
                },
                None => td { "not measured" },
            }
        }
    }
}

/// Published numbers: how many agree, what that means, and those that stand beside no figure.
fn scoreboard(findings: &Findings, published: &[Compared]) -> Markup {
    let rows = published.iter();
    let rows: Vec<_> = rows.filter(|row| row.published.figure.is_none()).collect();
    let stand_alone = rows.len() == published.len();
    html! {
        @if !published.is_empty() {
            section id="published" {
                h2 { (tally(published.iter())) }
                p.lead { (AGREES) }
                (causes(published))
                @if !rows.is_empty() {
                    details {
                        summary {
                            @if stand_alone { "Each of them" } @else { "Those of no figure: " (tally(rows.iter().copied())) }
                        }
                        (published_table(findings, &rows))
                    }
                }
            }
        }
    }
}

/// Why numbers differ, each reason once: what the study states of them.
fn causes(published: &[Compared]) -> Markup {
    let differing = published.iter().flat_map(|row| {
        let numbers = row.numbers.iter();
        let differing = numbers.filter(|number| number.agreement == Agreement::Differs);
        differing.map(|_| row.published.cause.as_deref())
    });
    let causes = group_by(differing, |cause| *cause);
    html! {
        @if causes.iter().any(|(cause, _)| cause.is_some()) {
            p { "Why the others differ:" }
            ul {
                @for (cause, numbers) in causes {
                    li { (numbers.len()) ": " (cause.unwrap_or("not known.")) }
                }
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
    // Measures of one study say the same.
    let precision: BTreeSet<String> = (findings.summaries.iter())
        .filter_map(text::precision)
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
            @if let Some(buffers) = text::buffers(&findings.summaries) {
                p { (buffers) }
            }
            @for precision in &precision {
                p { (precision) }
            }
            p { "Processor: " (environment.host.cpu) ", " (environment.host.cpus) " in use." }
            @if !study.text.is_empty() {
                details {
                    summary { "The study" }
                    pre { (study.text) }
                }
            }
            p.again { "All of it again:" }
            (reproduced(&[run_command(findings)]))
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
