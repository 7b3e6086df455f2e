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
use crate::report::search;
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
    let mut charts = Vec::new();
    for searched in &findings.searched {
        let id = format!("search-{}", searched.search.id);
        charts.push((id, search::chart(searched, &searched.found())));
    }
    for figure in &described(findings) {
        if let Content::Chart(chart) = draw(findings, figure).content {
            charts.push((figure.id.clone(), chart));
        }
    }
    charts.retain(|(_, chart)| !chart.panels.is_empty());
    let mut files = Vec::new();
    for (id, chart) in charts {
        let svg = chart.file();
        files.push(FigureFiles {
            id,
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
