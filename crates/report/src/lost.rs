//! What each lost datagram of a handshake costs, in words and as JSON.

use std::time::Duration;

use lastbyte_link::{Side, counted};
use lastbyte_results::number::milliseconds;
use lastbyte_results::{Losses, Lost, Outcome};
use serde_json::{Value, json};

use crate::layout::Screen;

/// A sentence for each arm and network, and a table below each.
pub fn text(all: &[Losses], screen: Screen) -> String {
    let one = |losses: &Losses| {
        let answer = screen.wrap(&answer(losses), 0);
        format!("{}\n\n{}", answer.trim_end(), table(losses))
    };
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// What a lost datagram costs at least and at most, and which is never recovered from.
pub fn answer(losses: &Losses) -> String {
    let Losses {
        arm, whole, lost, ..
    } = losses;
    let rtt = milliseconds(losses.cell.link.rtt());
    let Some(handshake) = whole
        .times
        .handshake
        .filter(|_| whole.outcome == Outcome::Completed)
    else {
        return format!(
            "{arm} over an RTT of {rtt}: the handshake does not complete even without loss."
        );
    };
    let datagrams = counted(lost.len(), "datagram");
    let begin = format!(
        "{arm} over an RTT of {rtt}: a handshake takes {} and {datagrams}",
        milliseconds(handshake)
    );
    let never: Vec<String> = (lost.iter())
        .filter(|lost| lost.handshake().is_none())
        .map(|lost| {
            format!(
                "the {} {} ({})",
                side(lost.sender),
                ordinal(lost.number),
                lost.carries
            )
        })
        .collect();
    let added: Vec<Duration> = lost.iter().filter_map(|lost| losses.added(lost)).collect();
    let others = match (added.iter().min(), added.iter().max()) {
        (Some(least), Some(most)) if least == most => format!("costs {}", milliseconds(*most)),
        (Some(least), Some(most)) => {
            format!("costs {} to {}", milliseconds(*least), milliseconds(*most))
        }
        _ => String::new(),
    };
    match (&*never, others.is_empty()) {
        ([], _) => format!("{begin}; the loss of any one of them {others}."),
        (never, true) => format!(
            "{begin}; it never completes if one of them is lost: {}.",
            never.join(", ")
        ),
        (never, false) => format!(
            "{begin}; it never completes if {} is lost, and the loss of any other {others}.",
            never.join(" or ")
        ),
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client's",
        Side::Server => "server's",
    }
}

/// `1st`
fn ordinal(number: u32) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

fn table(losses: &Losses) -> String {
    let rows: Vec<[String; 4]> = (losses.lost.iter())
        .map(|lost| {
            [
                format!("{} {}", side(lost.sender), ordinal(lost.number)),
                lost.handshake()
                    .map_or_else(|| "never".to_owned(), milliseconds),
                losses
                    .added(lost)
                    .map_or_else(String::new, |added| format!("+{}", milliseconds(added))),
                lost.carries.clone(),
            ]
        })
        .collect();
    let heading = ["lost", "handshake", "", "what is in it"].map(str::to_owned);
    let wide = |column: usize| {
        let rows = rows.iter().chain([&heading]);
        rows.map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let wide = [wide(0), wide(1), wide(2)];
    let mut text = String::new();
    for [lost, handshake, added, carries] in [&heading].into_iter().chain(&rows) {
        text += &format!(
            "  {lost:<first$}  {handshake:>second$}  {added:>third$}  {carries}\n",
            first = wide[0],
            second = wide[1],
            third = wide[2]
        );
    }
    text
}

/// All of it, an element for each arm and network.
pub fn json(all: &[Losses]) -> Value {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let lost = |losses: &Losses, lost: &Lost| {
        json!({
            "sender": match lost.sender { Side::Client => "client", Side::Server => "server" },
            "number": lost.number,
            "bytes": lost.bytes,
            "carries": lost.carries,
            "handshake_ns": lost.handshake().map(nanoseconds),
            "added_ns": losses.added(lost).map(nanoseconds),
            "reason": match &lost.row.outcome {
                Outcome::Completed => None,
                Outcome::TimedOut => Some("timed out".to_owned()),
                Outcome::Failed { reason, .. } => Some(reason.clone()),
            },
        })
    };
    let all = all.iter().map(|losses| {
        json!({
            "arm": losses.arm,
            "cell": losses.cell.to_string(),
            "answer": answer(losses),
            "handshake_ns": losses.whole.times.handshake.map(nanoseconds),
            "lost": losses.lost.iter().map(|one| lost(losses, one)).collect::<Vec<_>>(),
        })
    });
    json!({ "losses": all.collect::<Vec<_>>() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lastbyte_results::{Cause, FailureKind, Row};
    use lastbyte_study::Cell;

    use super::*;

    fn row(milliseconds: Option<u64>) -> Row {
        let mut row = Row::default();
        row.times.handshake = milliseconds.map(Duration::from_millis);
        if milliseconds.is_none() {
            row.outcome = Outcome::Failed {
                cause: Cause::Client(FailureKind::Idle),
                reason: "client: nothing came any more".to_owned(),
            };
        }
        row
    }

    fn losses(whole: Option<u64>, lost: &[Option<u64>]) -> Losses {
        let lost = (1..).zip(lost).map(|(number, handshake)| Lost {
            sender: Side::Server,
            number,
            bytes: 1200,
            carries: "ServerHello".to_owned(),
            row: row(*handshake),
        });
        Losses {
            arm: "pq".to_owned(),
            cell: Cell::default(),
            whole: row(whole),
            lost: lost.collect(),
        }
    }

    #[test]
    fn the_answer_names_what_is_beyond_recovery_and_what_the_others_cost() {
        let begin = "pq over an RTT of 0.000 ms: a handshake takes 200.0 ms and";
        for (lost, wanted) in [
            (
                &[Some(300), None][..],
                "2 datagrams; it never completes if the server's 2nd (ServerHello) is lost, and the loss of any other costs 100.0 ms.",
            ),
            (
                &[Some(200), Some(350)],
                "2 datagrams; the loss of any one of them costs 0.000 ms to 150.0 ms.",
            ),
            (
                &[None],
                "1 datagram; it never completes if one of them is lost: the server's 1st (ServerHello).",
            ),
        ] {
            assert_eq!(
                answer(&losses(Some(200), lost)),
                format!("{begin} {wanted}")
            );
        }
        let none = answer(&losses(None, &[]));
        assert!(
            none.ends_with("the handshake does not complete even without loss."),
            "{none}"
        );
    }

    #[test]
    fn json_has_the_reason_and_no_number_of_what_never_was() {
        let document = json(&[losses(Some(200), &[None, Some(300)])]);
        let lost = &document["losses"][0]["lost"];
        assert_eq!(lost[0]["added_ns"], Value::Null);
        assert_eq!(lost[0]["reason"], "client: nothing came any more");
        assert_eq!(lost[1]["added_ns"], 100_000_000);
        assert_eq!(lost[1]["reason"], Value::Null);
    }

    #[test]
    fn numbers_are_ordinal() {
        let numbers = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(ordinal);
        assert_eq!(
            numbers.join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th"
        );
    }
}
