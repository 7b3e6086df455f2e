//! The report of a study: one page that needs nothing else, and its figures as files.

mod automatic;
mod bars;
mod command;
mod details;
mod figure;
mod findings;
mod numbers;
mod page;
mod plan;
mod plot;
#[cfg(test)]
mod tests;
mod verdict;

pub use findings::Findings;
pub use page::page;

use self::figure::draw;
use self::plan::Content;
use crate::report::chart::Painter;
use crate::study::Figure;

/// A figure as files of its own.
pub struct FigureFiles {
    /// What the figure is called.
    pub id: String,
    /// The drawing.
    pub svg: String,
    /// The same in dots, with the feature `png`.
    pub png: Option<Vec<u8>>,
}

/// The figures of a study as files, without those that are tables.
///
/// # Errors
///
/// When there is no font to draw with, in one line with the hint.
pub fn figures(findings: &Findings) -> Result<Vec<FigureFiles>, String> {
    let painter = Painter::find()?;
    let mut files = Vec::new();
    for figure in &described(findings) {
        let chart = match draw(findings, figure).content {
            Content::Chart(chart) if !chart.panels.is_empty() => chart,
            Content::Chart(_) | Content::Table(_) => continue,
        };
        let svg = chart.file();
        files.push(FigureFiles {
            id: figure.id.clone(),
            png: painter
                .as_ref()
                .map(|painter| painter.png(&svg))
                .transpose()?,
            svg,
        });
    }
    Ok(files)
}

/// Those that the study describes, else those that suit it.
fn described(findings: &Findings) -> Vec<Figure> {
    match &*findings.study.figures {
        [] => automatic::figures(&findings.study),
        figures => figures.to_vec(),
    }
}
