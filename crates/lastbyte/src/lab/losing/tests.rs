#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

#[test]
fn the_first_connection_loses_nothing_and_each_other_one_segment() {
    use Side::{Client, Server};
    let losing = Losing {
        client: 2,
        server: 3,
    };
    let lost: Vec<_> = (0..8).map(|slot| losing.of_slot(slot)).collect();
    assert_eq!(
        lost,
        [
            None,
            Some((Client, 0)),
            Some((Client, 1)),
            Some((Server, 0)),
            Some((Server, 1)),
            Some((Server, 2)),
            None,
            None
        ]
    );
    assert_eq!(losing.connections(), 6);
    assert!((0..10).all(|slot| Losing::default().of_slot(slot).is_none()));
    assert_eq!(Losing::default().connections(), 1);
}

proptest! {
    #[test]
    fn each_segment_has_a_slot_of_its_own(client in 0..50_u32, server in 0..50_u32) {
        let losing = Losing { client, server };
        for slot in 1..losing.connections() {
            let (sender, number) = losing.of_slot(slot).unwrap();
            prop_assert_eq!(losing.slot(sender, number), slot as usize);
        }
        prop_assert_eq!(losing.of_slot(losing.connections()), None);
    }

    #[test]
    fn a_guest_reads_what_is_lost(client: u32, server: u32) {
        let losing = Losing { client, server };
        prop_assert_eq!(Losing::from_bytes(losing.to_bytes()), losing);
        let _ = losing.connections();
    }
}
