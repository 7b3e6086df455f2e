//! How far a chain is from an edge.

use lastbyte_probe::{Edge, Left};

/// How far it is to where it is one of these less, and one more.
pub(super) fn distance(edge: &Edge, of: &str) -> String {
    let up_to = match edge.left_is {
        Some(Left::AtMost) => "up to ",
        Some(Left::Exact) | None => "",
    };
    match (edge.over, edge.left) {
        (Some(over), left) => {
            let window = edge
                .larger_window
                .map_or_else(String::new, |window| format!(", or a window of {window}"));
            let left = left.map_or_else(String::new, |left| {
                format!("; {up_to}{left} B of chain are left")
            });
            format!("cut {over} B for a {of} less{window}{left}")
        }
        (None, Some(left)) => format!("{up_to}{left} B of chain are left"),
        (None, None) => "none".to_owned(),
    }
}
