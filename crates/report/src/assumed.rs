//! What an answer rests on, and what would turn it: for text, Markdown, HTML and JSON from the same sentences.

use lastbyte_link::counted;
use serde_json::{Value, json};

use super::layout::{Role, Screen};
use lastbyte_explain::{Supposition, handshake_flights, suppositions, window_that_saves};
use lastbyte_results::{Summary, group_by};
use lastbyte_study::{Arm, Assumption, Cell, Experiment, assumptions};

/// What would turn an answer about this arm over these cells, in a sentence: none where nothing supposed takes another number of
/// flights.
pub(super) fn turns(arm: &Arm, cells: &[Cell]) -> Option<String> {
    let own = handshake_flights(arm, cells)?;
    let window = windows(arm, &own, cells);
    stated(window, &own, &suppositions(arm, cells), cells)
}

/// What a larger first window saves, where all cells have the same.
fn windows(arm: &Arm, own: &[usize], cells: &[Cell]) -> Option<(String, String)> {
    let cell = cells.first()?;
    let is_alike = cells.iter().all(|other| other.initcwnd == cell.initcwnd);
    let window = window_that_saves(arm, cell).filter(|_| is_alike)?;
    let larger: Vec<Cell> = cells
        .iter()
        .map(|cell| Cell {
            initcwnd: window.at_once,
            ..cell.clone()
        })
        .collect();
    let then = change(own, &handshake_flights(arm, &larger)?, cells)?;
    Some((window.supposed(arm.transport), then))
}

/// The same of what is known: `own` is the arm's flights, for each of the cells.
pub(super) fn turned(own: &[usize], supposed: &[Supposition], cells: &[Cell]) -> Option<String> {
    stated(None, own, supposed, cells)
}

/// What turns an answer, and then all else that does, as a sentence.
fn stated(
    first: Option<(String, String)>,
    own: &[usize],
    supposed: &[Supposition],
    cells: &[Cell],
) -> Option<String> {
    let changes = supposed.iter().filter_map(|supposition| {
        let change = change(own, &supposition.flights, cells)?;
        Some((supposition.what.clone(), change))
    });
    let changes: Vec<(String, String)> = first.into_iter().chain(changes).collect();
    let changes = changes
        .iter()
        .map(|(what, then)| (what.as_str(), then.clone()));
    Some(format!("{} (by arithmetic).", conditions(changes)?))
}

/// `If …, or if …, this; if …, that`: what is supposed with what comes of it, of which the same is one clause.
pub(super) fn conditions<'a>(supposed: impl Iterator<Item = (&'a str, String)>) -> Option<String> {
    let clauses = group_by(supposed, |(_, then)| then.clone()).into_iter();
    let clauses = clauses.map(|(then, supposed)| {
        let causes: Vec<&str> = supposed.into_iter().map(|(what, _)| what).collect();
        format!("if {}, {then}", causes.join(", or if "))
    });
    let clauses: Vec<String> = clauses.collect();
    (!clauses.is_empty()).then(|| capital(&clauses.join("; ")))
}

/// The same as the beginning of a sentence.
pub(super) fn capital(words: &str) -> String {
    let mut sentence = words.to_owned();
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    sentence
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
    let than = if supposed > own { "more" } else { "less" };
    let windows = cells.iter().any(|other| other.initcwnd != cell.initcwnd);
    let place = if windows {
        format!(" with initcwnd {}", cell.initcwnd)
    } else {
        String::new()
    };
    Some(format!(
        "the server's handshake takes {} and not {own}{place}: {}{than} until the first byte",
        counted(**supposed, "flight"),
        match trips {
            1 => "a round trip ".to_owned(),
            trips => format!("{trips} round trips "),
        },
    ))
}

/// What results of arms rest on, as a paragraph for a terminal.
pub fn assumed(summary: &Summary, screen: Screen) -> String {
    subject(&summary.experiment).map_or_else(String::new, |(arm, cells)| {
        format!("\n{}", text(arm, &cells, screen))
    })
}

/// The same for machines.
pub(super) fn of_experiment(experiment: &Experiment) -> Value {
    subject(experiment).map_or_else(|| json!([]), |(arm, cells)| json(arm, &cells))
}

/// The same in one line of Markdown.
pub(super) fn line_of(experiment: &Experiment) -> Option<String> {
    subject(experiment).map(|(arm, cells)| line(arm, &cells))
}

/// Whose assumptions they are: those of the last arm, as the others are what it is compared with; over transfers, or over pages where
/// nothing else is there.
fn subject(experiment: &Experiment) -> Option<(&Arm, Vec<Cell>)> {
    let transfers = experiment.transfers();
    let cells = if transfers.is_empty() {
        experiment.cells.clone()
    } else {
        transfers
    };
    Some((experiment.arms.last()?, cells))
}

/// What would turn what is reported of arms that are compared, or of one alone: sentences, which name the arm where there are
/// several, or where the one that it is compared with is over another transport, as a window is not the same to both.
pub(super) fn turns_of(experiment: &Experiment) -> Vec<String> {
    let cells = experiment.transfers();
    let arms = match &*experiment.arms {
        [_, compared @ ..] if !compared.is_empty() => compared,
        all => all,
    };
    let baseline = experiment.arms.first();
    let is_mixed = |arm: &Arm| baseline.is_some_and(|other| other.transport != arm.transport);
    let named = |arm: &Arm, sentence: String| {
        if arms.len() > 1 || is_mixed(arm) {
            format!("{}: {sentence}", arm.name)
        } else {
            sentence
        }
    };
    let turned = arms
        .iter()
        .filter_map(|arm| Some(named(arm, turns(arm, &cells)?)));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use lastbyte_results::fixtures::{cell, experiment};

    use super::*;

    #[test]
    fn what_turns_one_of_two_transports_names_it() {
        let tcp = "x25519/ml-dsa-65";
        let quic = "x25519/ml-dsa-65/transport=quic";
        let turns = |arms: &[&str]| turns_of(&experiment(arms, vec![cell("0%", "50KiB")], 20));
        let of_tcp = turns(&["x25519/ecdsa-p256", tcp]);
        assert!(of_tcp[0].starts_with("If the first window"), "{of_tcp:?}");
        assert_eq!(turns(&[quic, tcp]), [format!("{tcp}: {}", of_tcp[0])]);
        assert_eq!(turns(&[tcp, quic]), [""; 0]);
    }
}
