//! Figures as files of their own: drawings, slides and numbers; and the picture of a page where it is shared.

use super::described;
use super::figure::{Drawn, draw};
use super::findings::Findings;
use super::plan::{Content, Number};
use crate::chart::{Chart, DrawError, Painter};
use crate::escape::csv_field;
use crate::search;
use lastbyte_study::Parameter;

/// A figure as files.
pub struct FigureFiles {
    /// What the figure is called.
    pub id: String,
    /// The drawings: what is added to the name, and what they look like.
    pub drawings: Vec<(&'static str, Drawing)>,
    /// What is drawn, as CSV.
    pub csv: String,
}

/// A drawing in all of its forms.
pub struct Drawing {
    /// As it was drawn.
    pub svg: String,
    /// The same with how a file's name ends, for each form that is built in: `png`, `pdf`.
    pub others: Vec<(&'static str, Vec<u8>)>,
}

/// The figures of a study as files, and why they are drawn as SVG alone where this program could do more. Those that are
/// tables have no drawings.
///
/// # Errors
///
/// What can't be drawn in another form, in one line.
pub fn figures(findings: &Findings) -> Result<(Vec<FigureFiles>, Option<String>), DrawError> {
    let (painter, note) = match Painter::find() {
        Ok(painter) => (painter, None),
        Err(problem) => (None, Some(problem.to_string())),
    };
    let mut files = Vec::new();
    for searched in &findings.searched {
        let found = searched.found();
        let chart = search::chart(searched, &found);
        files.push(FigureFiles {
            id: format!("search-{}", searched.search.id),
            drawings: drawings(&chart, &chart.title, &foot(findings, ""), painter.as_ref())?,
            csv: search::numbers(searched, &found),
        });
    }
    for figure in &described(findings) {
        let drawn = draw(findings, figure);
        let drawings = match &drawn.content {
            Content::Table(_) => Vec::new(),
            Content::Chart(chart) => {
                let heading = drawn.finding.as_ref().unwrap_or(&drawn.title);
                drawings(
                    chart,
                    heading,
                    &foot(findings, &drawn.common),
                    painter.as_ref(),
                )?
            }
        };
        files.push(FigureFiles {
            id: figure.id.clone(),
            drawings,
            csv: numbers(&drawn),
        });
    }
    Ok((files, note))
}

/// The chart with its title, and a slide that says what it shows.
fn drawings(
    chart: &Chart,
    heading: &str,
    foot: &str,
    painter: Option<&Painter>,
) -> Result<Vec<(&'static str, Drawing)>, DrawError> {
    if chart.panels.is_empty() {
        return Ok(Vec::new());
    }
    let of = |svg: String| {
        let others = painter.map(|painter| painter.forms(&svg)).transpose()?;
        let others = others.unwrap_or_default();
        Ok::<_, DrawError>(Drawing { svg, others })
    };
    Ok(vec![
        ("", of(chart.file())?),
        ("-slide", of(chart.slide(heading, foot))?),
    ])
}

/// Where a slide's numbers come from.
fn foot(findings: &Findings, common: &str) -> String {
    let parts = [common, &findings.study.name, "measured with Lastbyte"];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

/// What a figure draws, as CSV: a line for each number, with its interval and what is published of it.
pub(super) fn numbers(drawn: &Drawn) -> String {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    let mut write = |fields: [&str; 8]| {
        // Writing to memory cannot fail.
        let _ = csv.write_record(fields);
    };
    let x = drawn.figure.x.map_or("x", Parameter::name);
    let unit = drawn.unit.replace(", ", "_").replace('%', "percent");
    write([
        "panel",
        x,
        "series",
        "percentile",
        &unit,
        "low",
        "high",
        "published",
    ]);
    // To a nanosecond, or to as much of a percent.
    let told = |number: Option<f64>| {
        number.map_or_else(String::new, |number| {
            ((number * 1e6).round() / 1e6).to_string()
        })
    };
    for Number {
        panel,
        x,
        series,
        percentile,
        ours,
        theirs,
    } in &drawn.numbers
    {
        let (low, high) = ours.and_then(|ours| ours.interval).unwrap_or_default();
        let numbers = [ours.map(|ours| ours.value), low, high, *theirs].map(told);
        let [value, low, high, theirs] = &numbers;
        let [panel, series] = [panel, series].map(|name| csv_field(name));
        write([&panel, x, &series, percentile, value, low, high, theirs]);
    }
    String::from_utf8(csv.into_inner().unwrap_or_default()).unwrap_or_default()
}
