#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

#[test]
fn the_example_of_the_draft() {
    let id: TrustAnchorId = "32473.1".parse().unwrap();
    assert_eq!(id.as_bytes(), [0x81, 0xfd, 0x59, 0x01]);
    assert_eq!(id.to_string(), "32473.1");
    assert_eq!(
        trust_anchor_list(std::slice::from_ref(&id)),
        [0, 5, 4, 0x81, 0xfd, 0x59, 0x01]
    );
    assert_eq!(trust_anchors_bytes(&[id]), 4 + 7);
    // What browsers send that name none.
    assert_eq!(trust_anchor_list(&[]), [0, 0]);
    assert_eq!(parse_trust_anchor_list(&[0, 0]), Some(Vec::new()));
}

#[test]
fn our_own_ids_are_as_long_as_each_other() {
    assert_eq!(TrustAnchorId::of_level(2).to_string(), "32473.1.2");
    assert_eq!(TrustAnchorId::of_earlier(2).to_string(), "32473.2.2");
    let bytes = TrustAnchorId::of_level(0).wire_bytes();
    assert_eq!(bytes, TrustAnchorId::of_earlier(3).wire_bytes());
}

#[test]
fn what_is_no_id_is_none() {
    for bytes in [&[][..], &[0x81], &[0x80, 0x01], &[1; 256], &[1, 0x80, 1]] {
        assert_eq!(TrustAnchorId::from_bytes(bytes), None, "{bytes:?}");
    }
    for text in ["", "1..2", "1.x", "-1", "18446744073709551616"] {
        assert!(text.parse::<TrustAnchorId>().is_err(), "{text:?}");
    }
    // An id of no bytes, an id that is cut, bytes behind the list, no length.
    for data in [&[0, 1, 0][..], &[0, 3, 4, 1, 1], &[0, 0, 0], &[0], &[]] {
        assert_eq!(parse_trust_anchor_list(data), None, "{data:?}");
    }
}

proptest! {
    #[test]
    fn lists_come_back(all in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 1..8), 0..8)) {
        let ids: Vec<_> = all.iter().map(|components| TrustAnchorId::of_components(components).unwrap()).collect();
        for (id, components) in ids.iter().zip(&all) {
            prop_assert_eq!(&id.to_string().parse::<TrustAnchorId>().unwrap(), id);
            let dotted: Vec<_> = components.iter().map(u64::to_string).collect();
            prop_assert_eq!(id.to_string(), dotted.join("."));
        }
        let list = trust_anchor_list(&ids);
        prop_assert_eq!(list.len() + EXTENSION_HEADER, trust_anchors_bytes(&ids));
        prop_assert_eq!(parse_trust_anchor_list(&list), Some(ids));
    }

    #[test]
    fn any_bytes_are_a_list_or_none(data in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Some(ids) = parse_trust_anchor_list(&data) {
            prop_assert_eq!(trust_anchor_list(&ids), data);
        }
    }
}
