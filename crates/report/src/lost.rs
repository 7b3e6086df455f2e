//! What each lost packet of a handshake costs, in words and as JSON.

use std::time::Duration;

use lastbyte_link::{Side, counted};
use lastbyte_results::number::milliseconds;
use lastbyte_results::{Losses, Lost, Outcome};
use serde_json::{Value, json};

use crate::aligned::{Align, aligned};
use crate::layout::Screen;

/// A sentence for each arm and network, and a table below each; before those of a network, all its arms side by side, if it
/// has several.
pub fn text(all: &[Losses], screen: Screen) -> String {
    let part = |sentence: &str, table: String| {
        let sentence = screen.wrap(sentence, 0);
        format!("{}\n\n{table}", sentence.trim_end())
    };
    let mut parts = Vec::new();
    for arms in all.chunk_by(|one, next| one.cell == next.cell) {
        if arms.len() > 1 {
            parts.push(part(&comparison(arms), summary(arms)));
        }
        parts.extend(arms.iter().map(|one| part(&answer(one), table(one))));
    }
    parts.join("\n")
}

/// What a lost packet costs several arms over one network at most, and how many each never recovers from.
fn comparison(arms: &[Losses]) -> String {
    let of_arm = |losses: &Losses| {
        let name = &losses.arm;
        let all = counted(losses.lost.len(), losses.transport.packet());
        match (losses.all_added().max(), losses.never().count()) {
            (Some(most), 0) => format!("{name} at most {}", milliseconds(most)),
            (Some(most), never) => format!(
                "{name} at most {}, or its handshake ({never} of {all})",
                milliseconds(most)
            ),
            (None, 0) => format!("{name} nothing, as it does not complete even without loss"),
            (None, _) => format!("{name} its handshake (each of {all})"),
        }
    };
    let rtt = arms
        .first()
        .map_or(Duration::ZERO, |losses| losses.cell.link.rtt());
    let arms: Vec<String> = arms.iter().map(of_arm).collect();
    format!(
        "Over an RTT of {}, one lost packet costs {}.",
        milliseconds(rtt),
        arms.join("; ")
    )
}

/// An arm in each line. The factor is the most that a server of QUIC
/// had sent by what it had received, before it knew the client's address.
fn summary(arms: &[Losses]) -> String {
    let heading = [
        "",
        "handshake",
        "packets",
        "never",
        "mean",
        "most",
        "factor",
    ];
    let optional = |time: Option<Duration>| time.map_or_else(|| "-".to_owned(), milliseconds);
    let added = |time: Option<Duration>| {
        time.map_or_else(|| "-".to_owned(), |time| format!("+{}", milliseconds(time)))
    };
    let of_arm = |losses: &Losses| {
        let whole = &losses.whole;
        let handshake = whole.times.handshake;
        [
            losses.arm.clone(),
            optional(handshake.filter(|_| whole.outcome == Outcome::Completed)),
            losses.lost.len().to_string(),
            losses.never().count().to_string(),
            added(losses.mean_added()),
            added(losses.all_added().max()),
            losses
                .amplification
                .map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}")),
        ]
    };
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(arms.iter().map(of_arm));
    let right = Align::Right;
    aligned(
        &rows,
        [Align::Left, right, right, right, right, right, right],
    )
}

/// What a lost packet costs at least and at most, and which is never recovered from.
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
        let reason = whole
            .outcome
            .reason()
            .map_or_else(String::new, |why| format!(" ({why})"));
        return format!(
            "{arm} over an RTT of {rtt}: the handshake does not complete even without loss{reason}."
        );
    };
    let packets = counted(lost.len(), losses.transport.packet());
    let begin = format!(
        "{arm} over an RTT of {rtt}: a handshake takes {} and {packets}",
        milliseconds(handshake)
    );
    let never: Vec<String> = (losses.never())
        .map(|lost| {
            format!(
                "the {} {} ({})",
                side(lost.sender),
                ordinal(lost.number),
                lost.carries
            )
        })
        .collect();
    let others = match (losses.all_added().min(), losses.all_added().max()) {
        (Some(least), Some(most)) if least == most => format!("costs {}", milliseconds(most)),
        (Some(least), Some(most)) => {
            format!("costs {} to {}", milliseconds(least), milliseconds(most))
        }
        _ => String::new(),
    };
    match (&*never, others.is_empty()) {
        ([], _) => format!("{begin}; the loss of any one of them {others}."),
        (never, _) if never.len() > MOST_NAMED => {
            let others = match &*others {
                "" => String::new(),
                others => format!("; the loss of any other {others}"),
            };
            format!(
                "{begin}; it never completes if one of {} of them is lost, from {} on{others}.",
                never.len(),
                never.first().map_or("", String::as_str)
            )
        }
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

/// More than these are counted.
const MOST_NAMED: usize = 3;

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
    let mut rows = vec![["lost", "handshake", "", "what is in it"].map(str::to_owned)];
    rows.extend(losses.lost.iter().map(|lost| {
        [
            format!("{} {}", side(lost.sender), ordinal(lost.number)),
            lost.handshake()
                .map_or_else(|| "never".to_owned(), milliseconds),
            losses
                .added(lost)
                .map_or_else(String::new, |added| format!("+{}", milliseconds(added))),
            match lost.row.outcome.reason() {
                Some(reason) => format!("{} ({reason})", lost.carries),
                None => lost.carries.clone(),
            },
        ]
    }));
    aligned(
        &rows,
        [Align::Left, Align::Right, Align::Right, Align::Left],
    )
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
            "reason": lost.row.outcome.reason(),
        })
    };
    let all = all.iter().map(|losses| {
        json!({
            "arm": losses.arm,
            "transport": losses.transport.name(),
            "programs": losses.programs,
            "cell": losses.cell.to_string(),
            "answer": answer(losses),
            "handshake_ns": losses.whole.times.handshake.map(nanoseconds),
            "reason": losses.whole.outcome.reason(),
            "amplification": losses.amplification,
            "lost": losses.lost.iter().map(|one| lost(losses, one)).collect::<Vec<_>>(),
        })
    });
    json!({ "losses": all.collect::<Vec<_>>() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use insta::assert_snapshot;
    use lastbyte_results::{Cause, FailureKind, Row};
    use lastbyte_study::{Cell, TransportName};

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
            programs: std::collections::BTreeMap::new(),
            amplification: Some(3.012),
            cell: Cell::default(),
            transport: TransportName::Quic,
            whole: row(whole),
            lost: lost.collect(),
        }
    }

    fn over_tcp(losses: Losses) -> Losses {
        Losses {
            arm: "pq over TCP".to_owned(),
            transport: TransportName::Tcp,
            amplification: None,
            ..losses
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
            none.ends_with("does not complete even without loss (client: nothing came any more)."),
            "{none}"
        );
        let many = answer(&losses(Some(200), &[None, None, Some(300), None, None]));
        assert!(
            many.ends_with("if one of 4 of them is lost, from the server's 1st (ServerHello) on; the loss of any other costs 100.0 ms."),
            "{many}"
        );
    }

    #[test]
    fn what_tcp_sends_is_called_a_segment() {
        let answer = answer(&over_tcp(losses(Some(200), &[Some(1200)])));
        assert!(
            answer.ends_with(
                "takes 200.0 ms and 1 segment; the loss of any one of them costs 1000.0 ms."
            ),
            "{answer}"
        );
        let [tcp, quic] = [over_tcp(losses(None, &[])), losses(None, &[])]
            .map(|losses| json(&[losses])["losses"][0]["transport"].clone());
        assert_eq!([tcp, quic], ["tcp", "quic"]);
    }

    #[test]
    fn arms_over_one_network_stand_side_by_side() {
        let screen = Screen {
            colours: crate::layout::Colours::None,
            columns: 100,
        };
        let arms = [
            over_tcp(losses(Some(300), &[Some(1300), Some(300), Some(400)])),
            losses(Some(200), &[Some(400), None, Some(300)]),
            Losses {
                arm: "fragile".to_owned(),
                ..losses(Some(200), &[None])
            },
            Losses {
                arm: "broken".to_owned(),
                ..losses(None, &[])
            },
        ];
        let text = text(&arms, screen);
        let (both, _) = text.split_once("\npq over TCP over").unwrap();
        assert_snapshot!(both, @r"
        Over an RTT of 0.000 ms, one lost packet costs pq over TCP at most 1000.0 ms; pq at most 200.0 ms,
        or its handshake (1 of 3 datagrams); fragile its handshake (each of 1 datagram); broken nothing, as
        it does not complete even without loss.

                       handshake  packets  never       mean        most  factor
          pq over TCP   300.0 ms        3      0  +366.7 ms  +1000.0 ms       -
          pq            200.0 ms        3      1  +150.0 ms   +200.0 ms    3.01
          fragile       200.0 ms        1      1          -           -    3.01
          broken               -        0      0          -           -    3.01
        ");
        // One alone has nothing beside it, and neither has one over another network.
        let mut apart = [arms[0].clone(), arms[1].clone()];
        apart[1].cell.initcwnd = 20;
        let alone = super::text(&apart, screen);
        assert!(alone.starts_with("pq over TCP over an RTT"), "{alone}");
        assert!(!alone.contains("one lost packet costs"), "{alone}");
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
