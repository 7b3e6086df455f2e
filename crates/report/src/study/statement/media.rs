//! The same sentences for a terminal, as Markdown and as JSON.

use serde::Serialize;

use super::{Number, Part, Source, Statement, statements};
use crate::escape;
use crate::layout::{Role, Screen};
use crate::study::findings::Findings;
use crate::study::overview::Overview;
use crate::study::question::question;

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../../schemas/answer-1.schema.json");

/// A question with its answer.
struct Answered {
    question: String,
    statements: Vec<Statement>,
    overview: Option<Overview>,
}

impl Answered {
    fn new(findings: &Findings) -> Answered {
        let overview = Overview::new(findings);
        let source = Source {
            findings,
            overview: overview.as_ref(),
        };
        Answered {
            question: question(findings, overview.as_ref()),
            statements: statements(&source),
            overview,
        }
    }
}

/// The question and its answer for a terminal; nothing where there is no answer.
pub fn text(findings: &Findings, screen: Screen) -> String {
    let answered = Answered::new(findings);
    if answered.statements.is_empty() {
        return String::new();
    }
    let mut out = screen.paint(Role::Heading, &screen.wrap(&answered.question, 0)) + "\n";
    for statement in &answered.statements {
        out += &format!("{}\n", screen.wrap(&statement.text(), 0));
    }
    out + "\n"
}

/// The question, its answer and the table of costs as Markdown.
pub fn markdown(findings: &Findings) -> String {
    let answered = Answered::new(findings);
    let mut out = format!("## {}\n", escape::markdown(&answered.question));
    for statement in &answered.statements {
        out += &format!(
            "\n{}\n",
            escape::markdown(&statement.text().replace('\u{a0}', " "))
        );
    }
    if let Some(overview) = &answered.overview {
        out += &format!("\n{}", overview.markdown());
    }
    out
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    study: &'a str,
    question: &'a str,
    statements: Vec<StatementDocument<'a>>,
}

#[derive(Serialize)]
struct StatementDocument<'a> {
    standing: &'static str,
    text: String,
    numbers: Vec<NumberDocument<'a>>,
}

#[derive(Serialize)]
struct NumberDocument<'a> {
    name: &'a str,
    text: &'a str,
    interval: Option<&'a str>,
}

/// What fills a place.
fn number(part: &Part) -> Option<NumberDocument<'_>> {
    match part {
        Part::Words(_) => None,
        Part::Number(Number {
            name,
            told,
            interval,
        }) => Some(NumberDocument {
            name,
            text: told,
            interval: interval.as_deref(),
        }),
    }
}

/// The question and its answer as one JSON document, as [`SCHEMA`] has it.
pub fn json(findings: &Findings) -> String {
    let answered = Answered::new(findings);
    let document = Document {
        schema: "lastbyte.answer/1",
        study: &findings.study.name,
        question: &answered.question,
        statements: (answered.statements.iter())
            .map(|statement| StatementDocument {
                standing: statement.standing.name(),
                text: statement.text(),
                numbers: statement.parts.iter().filter_map(number).collect(),
            })
            .collect(),
    };
    // Serialising plain structures to memory cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
