//! The report of a study: one page that needs nothing else, and its figures as files.

mod automatic;
mod bars;
mod command;
mod deciding;
mod details;
mod figure;
mod files;
mod finding;
mod findings;
mod flights;
mod inside;
mod noticed;
mod numbers;
mod overview;
mod page;
mod plan;
mod plot;
mod question;
mod share;
mod statement;
#[cfg(test)]
mod tests;
mod verdict;
mod waterfall;

pub use files::{Drawing, FigureFiles, figures};
pub use findings::{Findings, OtherStudy};
pub use flights::closest;
pub use page::{SO_FAR, page};
pub use share::share;
pub use statement::{
    SCHEMA as ANSWER_SCHEMA, json as answer_json, markdown as answer_markdown, text as answer_text,
};

use maud::{Markup, html};

use lastbyte_study::{Figure, Study};

/// Those that the study describes, else those that suit it.
fn described(findings: &Findings) -> Vec<Figure> {
    match &*findings.study.figures {
        [] => automatic::figures(&findings.study),
        figures => figures.to_vec(),
    }
}

/// A sentence in which names of arms don't break at their hyphens.
fn whole_names(sentence: &str, study: &Study) -> Markup {
    let arms = study.arms();
    let is_name = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        arms.iter().any(|arm| arm.name == word)
    };
    html! {
        @for (index, word) in sentence.split(' ').enumerate() {
            @if index > 0 { " " }
            @if word.contains('-') && is_name(word) { span.whole { (word) } } @else { (word) }
        }
    }
}
