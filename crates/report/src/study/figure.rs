//! A figure of a study, drawn.

use super::findings::Findings;
use super::plan::{Content, Number, Plan};
use super::plot;
use lastbyte_study::Figure;

/// A figure, drawn.
pub(super) struct Drawn<'a> {
    pub(super) figure: &'a Figure,
    pub(super) title: String,
    /// What it shows, where that can be told.
    pub(super) finding: Option<String>,
    pub(super) content: Content,
    /// The same as numbers.
    pub(super) numbers: Vec<Number>,
    /// What those are.
    pub(super) unit: &'static str,
    /// What all that is drawn has in common.
    pub(super) common: String,
    /// What the caption says of this kind of plot.
    pub(super) note: String,
    /// Connections of each sample: the fewest and the most.
    pub(super) connections: Option<(usize, usize)>,
    /// Samples that are not there, in words.
    pub(super) holes: Vec<String>,
    /// The cells that are drawn.
    pub(super) cells: Vec<(usize, usize)>,
    /// The arms that are drawn, and what they are compared with.
    pub(super) arms: Vec<String>,
}

pub(super) fn draw<'a>(findings: &'a Findings, figure: &'a Figure) -> Drawn<'a> {
    let plan = Plan::new(findings, figure, plot::kind(figure.plot));
    Drawn {
        figure,
        title: plan.title(),
        finding: plan.kind.finding(&plan),
        content: plan.kind.draw(&plan),
        numbers: plan.kind.numbers(&plan),
        unit: plan.y_title(),
        common: plan.common(),
        note: plan.kind.note(&plan),
        connections: plan.connections(),
        holes: plan.holes(),
        arms: plan.all_arms(),
        cells: plan.cells,
    }
}
