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
mod numbers;
mod overview;
mod page;
mod plan;
mod plot;
mod share;
#[cfg(test)]
mod tests;
mod verdict;
mod waterfall;

pub use files::{Drawing, FigureFiles, figures};
pub use findings::Findings;
pub use flights::closest;
pub use page::{SO_FAR, page};
pub use share::share;

use crate::study::Figure;

/// Those that the study describes, else those that suit it.
fn described(findings: &Findings) -> Vec<Figure> {
    match &*findings.study.figures {
        [] => automatic::figures(&findings.study),
        figures => figures.to_vec(),
    }
}
