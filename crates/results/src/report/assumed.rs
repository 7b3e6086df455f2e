//! What an answer rests on, and what would turn it: for text, Markdown, HTML and JSON from the same sentences.

use lastbyte_link::counted;
use serde_json::{Value, json};

use super::layout::{Role, Screen};
use crate::explain::{Supposition, handshake_flights, suppositions};
use crate::results::Summary;
use crate::study::{Arm, Assumption, Cell, Experiment, assumptions};

/// What would turn an answer about this arm over these cells, in sentences: none where nothing supposed takes another number of
/// flights.
pub(super) fn turns(arm: &Arm, cells: &[Cell]) -> Vec<String> {
    let Some(own) = handshake_flights(arm, cells) else {
        return Vec::new();
    };
    turned(&own, &suppositions(arm, cells), cells)
}

/// The same of what is known: `own` is the arm's flights, for each of the cells.
pub(super) fn turned(own: &[usize], supposed: &[Supposition], cells: &[Cell]) -> Vec<String> {
    // What comes to the same is one clause.
    let mut clauses: Vec<(String, Vec<&str>)> = Vec::new();
    for supposition in supposed {
        let Some(change) = change(own, &supposition.flights, cells) else {
            continue;
        };
        match clauses.iter_mut().find(|(known, _)| *known == change) {
            Some((_, causes)) => causes.push(&supposition.what),
            None => clauses.push((change, vec![&supposition.what])),
        }
    }
    if clauses.is_empty() {
        return Vec::new();
    }
    let clauses = clauses.into_iter();
    let clauses =
        clauses.map(|(change, causes)| format!("if {}, {change}", causes.join(", or if ")));
    let mut sentence = clauses.collect::<Vec<_>>().join("; ");
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    vec![format!("{sentence} (by arithmetic).")]
}

/// `the server's handshake takes 2 flights and not 1`: nothing where no cell has another number of flights. Where cells differ,
/// the first that is turned is named by its window.
fn change(own: &[usize], supposed: &[usize], cells: &[Cell]) -> Option<String> {
    let pairs = own.iter().zip(supposed).zip(cells);
    let turned: Vec<_> = pairs
        .filter(|((own, supposed), _)| own != supposed)
        .collect();
    let ((own, supposed), cell) = turned.first()?;
    let trips = own.abs_diff(**supposed);
    let than = match supposed > own {
        true => "more",
        false => "less",
    };
    let windows = cells.iter().any(|other| other.initcwnd != cell.initcwnd);
    let place = match windows {
        true => format!(" with initcwnd {}", cell.initcwnd),
        false => String::new(),
    };
    Some(format!(
        "the server's handshake takes {} and not {own}{place}: {}{than}",
        counted(**supposed, "flight"),
        match trips {
            1 => "a round trip ".to_owned(),
            trips => format!("{trips} round trips "),
        },
    ))
}

/// What results of arms rest on, as a paragraph for a terminal: of the last arm, as the others are what it is compared with.
/// Nothing of pages, whose site says all of it.
pub fn assumed(summary: &Summary, screen: Screen) -> String {
    let cells = cells(&summary.experiment);
    match summary.experiment.arms.last() {
        Some(arm) if !cells.is_empty() => format!("\n{}", text(arm, &cells, screen)),
        _ => String::new(),
    }
}

/// The same for machines; an empty list where all are pages.
pub(super) fn of_experiment(experiment: &Experiment) -> Value {
    let cells = cells(experiment);
    match experiment.arms.last() {
        Some(arm) if !cells.is_empty() => json(arm, &cells),
        _ => json!([]),
    }
}

/// The same in one line of Markdown or HTML; nothing where all are pages.
pub(super) fn line_of(experiment: &Experiment) -> Option<String> {
    let cells = cells(experiment);
    let arm = experiment.arms.last()?;
    (!cells.is_empty()).then(|| line(arm, &cells))
}

/// Those without pages.
fn cells(experiment: &Experiment) -> Vec<Cell> {
    let cells = experiment.cells.iter();
    cells.filter(|cell| cell.page.is_none()).cloned().collect()
}

/// What would turn what is reported of arms that are compared, or of one alone: sentences, which name the arm where there are
/// several.
pub(super) fn turns_of(experiment: &Experiment) -> Vec<String> {
    let cells = cells(experiment);
    let arms = match &*experiment.arms {
        [_, compared @ ..] if !compared.is_empty() => compared,
        all => all,
    };
    let named = |arm: &Arm, sentence: String| match arms.len() {
        1 => sentence,
        _ => format!("{}: {sentence}", arm.name),
    };
    let turned = arms.iter().flat_map(|arm| {
        let sentences = turns(arm, &cells).into_iter();
        sentences.map(move |sentence| named(arm, sentence))
    });
    turned.collect()
}

/// The list, as one paragraph for a terminal.
pub(super) fn text(arm: &Arm, cells: &[Cell], screen: Screen) -> String {
    let line = screen.wrap(&line(arm, cells), 2);
    screen.paint(Role::Dim, &line) + "\n"
}

/// The list in one line: `Assumed: timestamps: 2, … (scts= …); …`.
pub(super) fn line(arm: &Arm, cells: &[Cell]) -> String {
    let each = assumptions(arm, cells).into_iter();
    let each = each.map(|assumption| {
        let Assumption {
            subject,
            value,
            changed_by,
        } = assumption;
        format!("{subject}: {value} ({changed_by})")
    });
    let each: Vec<String> = each.collect();
    format!("Assumed of {}: {}.", arm.name, each.join("; "))
}

/// The list for machines.
pub(super) fn json(arm: &Arm, cells: &[Cell]) -> Value {
    let each = assumptions(arm, cells).into_iter();
    let each = each.map(|assumption| {
        json!({
            "subject": assumption.subject,
            "value": assumption.value,
            "changed_by": assumption.changed_by,
        })
    });
    each.collect()
}

/// What could be otherwise, for machines.
pub(super) fn supposed_json(supposed: &[Supposition]) -> Value {
    let each = supposed.iter().map(|supposition| {
        json!({
            "if": supposition.what,
            "arm": supposition.arm.label,
            "certificate_bytes": supposition.certificate,
            "server_flight_wire_bytes": supposition.server_flight,
            "flights": supposition.flights,
        })
    });
    each.collect()
}
