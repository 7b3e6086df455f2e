//! A connection over QUIC for terminals: the client on the left, the server on the right, time going down.

use lastbyte_link::Side;

use super::{Datagrams, Row, rows};
use crate::inside::text::drawn;
use crate::layout::Screen;
use lastbyte_results::number::{millisecond_digits, milliseconds};

const TIME: usize = 9;
const LEDGER: usize = 14;
/// An arrow is at least so long.
const SHORTEST: usize = 24;

/// The sentences and the drawing, as wide as the screen.
#[must_use]
pub(in crate::inside) fn text(inside: &Datagrams, screen: Screen) -> String {
    let columns = screen.columns.max(2 * TIME + LEDGER + SHORTEST + 4);
    let story = inside.story().join(" ");
    let mut text = format!("{}\n\n", screen.wrap(&story, 0).trim_end());
    if !inside.name.is_empty() {
        text += &format!("{}\n", inside.name);
    }
    let arrow = columns - 2 * TIME - LEDGER - 4;
    text += &format!(
        "{:>TIME$} {:<half$}{:>rest$} {:<TIME$}{:>LEDGER$}\n",
        "ms",
        "client",
        "server",
        "ms",
        "sent / credit",
        half = (arrow + 2) / 2,
        rest = arrow + 2 - (arrow + 2) / 2,
    );
    let mut blocked = inside.ledger.blocked.iter().peekable();
    for row in rows(inside) {
        let begins = row.datagrams.first().map(|one| one.sent);
        while let Some([begin, end]) =
            blocked.next_if(|[_, end]| begins.is_some_and(|begins| *end <= begins))
        {
            let waited = milliseconds(end.saturating_sub(*begin));
            let note = format!("no credit: the server waits {waited}");
            text += &format!("{:>TIME$} |{note:>arrow$}|\n", "");
        }
        text += &line(inside, &row, arrow);
    }
    let note = "Times are those at the client (left) and at the server (right), in the order in which datagrams leave: what \
                arrives late stands above what leaves before that. Behind them is what the server has sent, in bytes of UDP's \
                payload, of three times what it had received, until it knows the client's address.";
    format!("{text}\n{}\n", screen.wrap(note, 0).trim_end())
}

fn line(inside: &Datagrams, row: &Row<'_>, arrow: usize) -> String {
    let (Some(first), Some(last)) = (row.datagrams.first(), row.datagrams.last()) else {
        return String::new();
    };
    let drawn = drawn(first.sender, &row.label(), first.is_lost(), arrow);
    let sent = millisecond_digits(first.sent);
    let arrived = last.arrived.map(millisecond_digits).unwrap_or_default();
    let (left, right) = match first.sender {
        Side::Client => (sent, arrived),
        Side::Server => (arrived, sent),
    };
    let ledger = match (first.sender, inside.ledger.credit(last.sent)) {
        (Side::Server, Some(credit)) => {
            format!("{} / {credit}", inside.sent(Side::Server, last.sent))
        }
        _ => String::new(),
    };
    let line = format!("{left:>TIME$} |{drawn}| {right:<TIME$}{ledger:>LEDGER$}");
    format!("{}\n", line.trim_end())
}
