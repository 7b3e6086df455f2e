//! What a study's results come to, in a sentence or two: the one room that such sentences come from, for pages,
//! pictures, terminals, Markdown and JSON alike.
//!
//! A way of a sentence is a file here, and a line of [`WAYS`].

mod costs;
mod edges;
mod gains;
mod media;
mod overall;
mod shown;
mod stated;
#[cfg(test)]
mod tests;

pub use media::{SCHEMA, json, markdown, text};

use lastbyte_link::named;
use maud::{Markup, html};

use super::findings::Findings;
use super::overview::Overview;
use super::whole_names;

/// A sentence, of words and numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(super) standing: Standing,
    pub(super) parts: Vec<Part>,
}

/// How a sentence stands to the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The study states it, and the results bear it out.
    BorneOut,
    /// The study states something else, which they do not bear out: this says why.
    NotBorneOut,
    /// It is made of the results.
    Made,
}

named!(Standing, "standing", {
    BorneOut => "borne-out",
    NotBorneOut => "not-borne-out",
    Made => "made",
});

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Words(String),
    /// A number that the results fill in.
    Number(Number),
}

/// A number in a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// What the sentence calls it.
    pub(super) name: String,
    /// `35.1 ms`
    pub(super) told: String,
    /// `[34.9, 35.3]`, where it has any width.
    pub(super) interval: Option<String>,
}

/// What sentences are made of.
pub(super) struct Source<'a> {
    pub(super) findings: &'a Findings,
    pub(super) overview: Option<&'a Overview>,
}

/// A way of a sentence. `None` if it has nothing to say.
type Way = fn(&Source<'_>) -> Option<Statement>;

/// Every way of a sentence. The first one that has something to say is taken.
const WAYS: [Way; 5] = [
    stated::statement,
    edges::statement,
    gains::statement,
    costs::statement,
    overall::statement,
];

/// What it comes to: the first sentence that there is. One that the results do not bear out says so, and another one
/// follows it.
pub(super) fn statements(source: &Source<'_>) -> Vec<Statement> {
    let mut statements = Vec::new();
    for statement in WAYS.iter().filter_map(|way| way(source)) {
        let standing = statement.standing;
        statements.push(statement);
        if standing != Standing::NotBorneOut {
            break;
        }
    }
    statements
}

/// Sentences as one text; `None` of none.
pub(super) fn in_text(statements: &[Statement]) -> Option<String> {
    let texts: Vec<String> = statements.iter().map(Statement::text).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

impl Statement {
    /// One that is made of the results.
    fn made(words: String) -> Statement {
        Statement {
            standing: Standing::Made,
            parts: vec![Part::Words(words)],
        }
    }

    /// As a text.
    pub(crate) fn text(&self) -> String {
        self.parts.iter().map(Part::text).collect()
    }

    pub(super) fn html(&self, findings: &Findings) -> Markup {
        let class = match self.standing {
            Standing::BorneOut | Standing::Made => "verdict",
            Standing::NotBorneOut => "verdict unsupported",
        };
        html! {
            p class=(class) {
                @for part in &self.parts {
                    @match part {
                        Part::Words(words) => (whole_names(words, &findings.study)),
                        Part::Number(number) => {
                            b.number { (number.told) }
                            @if let Some(interval) = &number.interval { " " span.interval { (interval) } }
                        }
                    }
                }
            }
        }
    }
}

impl Part {
    fn text(&self) -> String {
        match self {
            Part::Words(words) => words.clone(),
            Part::Number(Number { told, interval, .. }) => match interval {
                Some(interval) => format!("{told} {interval}"),
                None => told.clone(),
            },
        }
    }
}
