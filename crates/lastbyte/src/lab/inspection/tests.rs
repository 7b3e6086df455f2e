#![allow(clippy::unwrap_used)]

use super::*;

fn captures(connections: u32) -> Captures {
    Captures {
        connections,
        folder: PathBuf::from("captures"),
    }
}

#[test]
fn the_first_connections_of_a_sample_are_kept() {
    let kept = |connections, range| captures(connections).of_block(&range);
    assert_eq!(kept(5, 0..250), 5);
    assert_eq!(kept(500, 0..250), 250);
    assert_eq!(kept(300, 250..500), 50);
    assert_eq!(kept(5, 250..500), 0);
}

#[test]
fn a_guest_is_told_as_many_bytes_whatever_is_asked() {
    for captured in [0, 1, 250, u32::MAX] {
        for secrets in [Secrets::OfCaptured, Secrets::OfAll] {
            let retention = Retention { captured, secrets };
            assert_eq!(Retention::from_bytes(retention.to_bytes()), retention);
        }
    }
    assert!(Retention::default().is_nothing());
}

#[test]
fn a_tap_notes_its_connections_until_it_is_full_and_counts_the_others() {
    let mut tap = Tap {
        notes: Mapping::anonymous(PLACES[0], NonZero::new(4096).unwrap()).unwrap(),
        length: 0,
        connections: 2,
        unseen: 0,
    };
    for slot in 0..3 {
        tap.note(slot, Time(7), Point::SentByClient, Fate::Lost, &[1; 1500]);
        tap.note(
            slot,
            Time(8),
            Point::SentByServer,
            Fate::Carried,
            &[2; 1500],
        );
    }
    let seen = tap.close();
    // Those of slot 2 are nobody's business.
    assert_eq!(seen.unseen, 2);
    let noted: Vec<(u64, Fate)> = Records(&seen.notes)
        .map(|packet| (packet.at.0, packet.fate))
        .collect();
    assert_eq!(noted, [(7, Fate::Lost), (8, Fate::Carried)]);
}

#[test]
fn what_is_small_leaves_no_gap_in_a_full_tap() {
    let mut tap = Tap {
        notes: Mapping::anonymous(PLACES[0], NonZero::new(4096).unwrap()).unwrap(),
        length: 0,
        connections: 1,
        unseen: 0,
    };
    for bytes in [3000, 1500, 40] {
        tap.note(
            0,
            Time(7),
            Point::SentByClient,
            Fate::Carried,
            &vec![1; bytes],
        );
    }
    let seen = tap.close();
    assert_eq!(seen.unseen, 2);
    assert_eq!(Records(&seen.notes).count(), 1);
}

#[test]
fn what_was_sent_when_one_side_was_full_is_not_known_to_be_lost() {
    let packet = |at, point| Packet::whole(Time(at), point, Fate::Carried, Vec::new());
    let packets = [
        packet(1, Point::SentByServer),
        packet(5, Point::DeliveredToClient),
        packet(9, Point::SentByServer),
    ];
    assert_eq!(full(&packets), Some(Time(5)));
    assert_eq!(full(&packets[..1]), None);
}

#[test]
fn the_secrets_of_a_failed_attempt_are_those_of_its_connection() {
    use crate::lab::connection::{EndedConnection, FailedConnection, Seen};
    use crate::results::Outcome;
    let ended = |line: &str, failed: Option<&str>| {
        let keys = |line: &str| {
            let mut keys = lastbyte_tls::KeyLog::default();
            keys.push_line(line);
            keys
        };
        EndedConnection {
            outcome: Outcome::Completed,
            times: Default::default(),
            waited: Default::default(),
            keys: keys(line),
            transport: Default::default(),
            dns: Default::default(),
            amplification: None,
            seen: Seen::Records {
                observer: Default::default(),
                ticket_bytes: 0,
                failed: failed.map(|line| FailedConnection {
                    observer: Default::default(),
                    keys: keys(line),
                }),
            },
        }
    };
    let connections = [ended("A", None), ended("B", Some("C")), ended("D", None)];
    let retention = Retention {
        captured: 2,
        secrets: Secrets::OfCaptured,
    };
    assert_eq!(
        retention.secrets_of(10, connections.iter().map(EndedConnection::secrets)),
        [(10, "A\n".to_owned()), (11, "C\nB\n".to_owned())]
    );
}
