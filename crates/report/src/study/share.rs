//! The picture of a page where it is shared: its question, its verdict and the table of answers.

use super::findings::Findings;
use super::overview::{ONE_NETWORK, Overview};
use super::question::question;
use super::statement::{Source, in_text, statements};
use crate::chart::{DrawError, Painter, file_style, wrapped};
use crate::svg::Svg;

/// What previews of pages have (the Open Graph protocol's usual 1.91 to 1), in pixels.
const SIZE: [f64; 2] = [1200.0, 630.0];
const EDGE: f64 = 48.0;
/// Of the table.
const ROWS: usize = 5;
const COLUMNS: usize = 4;
const ROW: f64 = 46.0;

/// What it looks like besides what drawings do. Sizes are larger: previews are shown small.
const STYLE: &str = "\
svg .question { font-size: 44px; font-weight: 700; letter-spacing: -1px }
svg .verdict { font-size: 24px }
svg .column { font-size: 21px; fill: var(--mut) }
svg .row { font-size: 23px; font-weight: 600 }
svg .cost { font-size: 25px; fill: var(--ink) } svg .cost.later { fill: var(--on-later); font-weight: 700 }
svg .cell { fill: var(--same) } svg .cell.later { fill: var(--later) } svg .cell.part { fill: var(--part) }
svg .cell.sooner { fill: var(--sooner) }
";

/// The picture as PNG; `None` where that is not built in.
///
/// # Errors
///
/// When there is no font to draw with, in one line with the hint.
pub fn share(findings: &Findings) -> Result<Option<Vec<u8>>, DrawError> {
    let painter = Painter::find()?;
    painter
        .map(|painter| painter.png_as_large(&picture(findings)))
        .transpose()
}

fn picture(findings: &Findings) -> String {
    let overview = Overview::new(findings);
    let title = question(findings, overview.as_ref());
    let mut svg = Svg::new(SIZE[0], SIZE[1], &title);
    let style = crate::chart::palette::resolved(STYLE);
    svg.style(&format!("{}{style}", file_style()));
    svg.rect("ground", [0.0, 0.0], SIZE);
    // Widths are of a text of 13 pixels.
    let room = SIZE[0] - 2.0 * EDGE;
    let mut y = EDGE + 34.0;
    for line in wrapped(&title, room / 4.0).iter().take(3) {
        svg.text("question", EDGE, y, line);
        y += 52.0;
    }
    let table = overview
        .as_ref()
        .map_or(0, |overview| overview.rows.len().min(ROWS));
    let below = if table > 0 {
        ROW * (table as f64 + 1.0)
    } else {
        0.0
    };
    let lines = ((SIZE[1] - y - below - EDGE) / 33.0).floor().max(0.0) as usize;
    let statements = statements(&Source {
        findings,
        overview: overview.as_ref(),
    });
    let verdict = in_text(&statements).unwrap_or_default();
    let all = wrapped(&verdict, room / 2.0);
    for (nth, line) in all.iter().take(lines).enumerate() {
        let line = if nth + 1 == lines && all.len() > lines {
            format!("{line} …")
        } else {
            line.clone()
        };
        svg.text("verdict", EDGE, y, &line);
        y += 33.0;
    }
    if let Some(overview) = &overview {
        draw(
            &mut svg,
            overview,
            SIZE[1] - EDGE - ROW * table as f64 + 4.0,
        );
    }
    svg.text("end column", SIZE[0] - EDGE, SIZE[1] - 22.0, "Lastbyte");
    svg.finish()
}

/// The handshake's costs: networks down, configurations across.
fn draw(svg: &mut Svg, overview: &Overview, top: f64) {
    const NAMES: f64 = 300.0;
    const GAP: f64 = 4.0;
    let arms = overview.arms.len().min(COLUMNS);
    let width = (SIZE[0] - 2.0 * EDGE - NAMES) / arms.max(1) as f64;
    let place = |column: usize| EDGE + NAMES + width * column as f64;
    svg.text("column", EDGE, top - 14.0, "Handshake");
    for (column, arm) in overview.arms.iter().take(arms).enumerate() {
        let name = wrapped(arm, width / 1.75).into_iter().next();
        svg.text(
            "column",
            place(column) + 14.0,
            top - 14.0,
            &name.unwrap_or_default(),
        );
    }
    for (nth, row) in overview.rows.iter().take(ROWS).enumerate() {
        let y = top + ROW * nth as f64;
        let name = match &*row.name {
            "" => ONE_NETWORK,
            name => name,
        };
        let name = wrapped(name, NAMES / 1.9).into_iter().next();
        svg.text("row", EDGE, y + 29.0, &name.unwrap_or_default());
        let costs = row.costs.first().into_iter().flatten();
        for (column, cost) in costs.take(arms).enumerate() {
            let (class, text) = cost
                .as_ref()
                .map_or(("same", "–".to_owned()), |cost| cost.class_and_text());
            svg.rect(
                &format!("cell {class}"),
                [place(column), y],
                [width - GAP, ROW - GAP],
            );
            svg.text(
                &format!("cost {class}"),
                place(column) + 14.0,
                y + 29.0,
                &text,
            );
        }
    }
}
