//! The first sentence of a probe: what post-quantum chains would cost this server's users, and what that supposes.

use std::cmp::Ordering;

use lastbyte_link::{counted, visible};
use lastbyte_probe::{Document, Edge};

use super::quic;
use lastbyte_explain::site;

/// What other chains change in the number of flights, in a sentence, and then what was supposed; nothing where arithmetic does not
/// know today's chain.
pub(super) fn lead(document: &Document) -> String {
    let Some((today, others)) = document.edges.split_first() else {
        return String::new();
    };
    // What saves the round trip of one does not save that of a larger one.
    let remedy = |edge: &Edge| (edge.flights > today.flights).then(|| saved(edge));
    let alike =
        others.chunk_by(|one, other| one.flights == other.flights && remedy(one) == remedy(other));
    let clauses = alike.filter_map(|edges| {
        let first = edges.first()?;
        let names: Vec<String> = edges
            .iter()
            .map(|edge| visible(&edge.chain).to_string())
            .collect();
        let more = counted(first.flights.abs_diff(today.flights), "round trip");
        let cost = match first.flights.cmp(&today.flights) {
            Ordering::Equal => "no round trip more".to_owned(),
            Ordering::Greater => format!("{more} more{}", saved(first)),
            Ordering::Less => format!("{more} less"),
        };
        Some(format!("{cost} with {}", names.join(" or ")))
    });
    let clauses: Vec<String> = clauses.collect();
    if clauses.is_empty() {
        return String::new();
    }
    format!(
        "{}: a handshake takes {} in place of its keys (by arithmetic).\n{}{}\n",
        visible(&document.host),
        clauses.join(", "),
        quic::lead(document),
        supposed(document)
    )
}

/// What such sentences suppose, and what changes that, in a line.
pub(super) fn supposed(document: &Document) -> String {
    let window = site::window(document);
    let seen = match document.initial_window {
        Some(_) => "",
        None => ", which was not seen for certain",
    };
    let group = document.group.as_deref().map_or_else(String::new, |group| {
        format!(
            "; a key exchange with {}, as today (/group=)",
            visible(group)
        )
    });
    let timestamps = if document
        .chain
        .iter()
        .any(|certificate| certificate.scts > 0)
    {
        "; timestamps of today's logs"
    } else {
        ""
    };
    format!(
        "Supposed: a window of {window} segments{seen}{group}{timestamps}. --what-if asks for others.\n"
    )
}

/// What would save a round trip: ` (unless …)`.
fn saved(edge: &Edge) -> String {
    let cut = edge
        .over
        .map(|over| format!("{over} B less of it are sent"));
    let window = (edge.larger_window).map(|window| format!("the window is {window}"));
    let ways: Vec<String> = cut.into_iter().chain(window).collect();
    match &*ways {
        [] => String::new(),
        ways => format!(" (unless {})", ways.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(chain: &str, flights: usize, over: usize, window: u32) -> Edge {
        Edge {
            chain: chain.to_owned(),
            flights,
            over: Some(over).filter(|over| *over > 0),
            larger_window: Some(window).filter(|window| *window > 0),
            ..Edge::default()
        }
    }

    #[test]
    fn each_chain_has_a_remedy_of_its_own() {
        let document = Document {
            host: "a.example:443".to_owned(),
            edges: vec![
                edge("today", 1, 0, 0),
                edge("ml-dsa-44", 1, 0, 0),
                edge("ml-dsa-65", 2, 736, 11),
                edge("ml-dsa-87", 2, 5970, 15),
            ],
            ..Document::default()
        };
        let said = lead(&document);
        let first = said.lines().next().unwrap_or_default();
        assert_eq!(
            first,
            "a.example:443: a handshake takes no round trip more with ml-dsa-44, 1 round trip more (unless 736 B less of it are \
             sent or the window is 11) with ml-dsa-65, 1 round trip more (unless 5970 B less of it are sent or the window is 15) \
             with ml-dsa-87 in place of its keys (by arithmetic)."
        );
    }
}
