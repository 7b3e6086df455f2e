#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

#[test]
fn the_example_of_the_draft() {
    let id: TrustAnchorId = "32473.1".parse().unwrap();
    assert_eq!(list([&id]), [0, 5, 4, 0x81, 0xfd, 0x59, 0x01]);
    // What browsers send that name none.
    assert_eq!(list([]), [0, 0]);
    assert_eq!(parse_list(&[0, 0]), Some(Vec::new()));
}

#[test]
fn what_is_no_list_is_none() {
    // An id of no bytes, an id that is cut, bytes behind the list, no length.
    for data in [&[0, 1, 0][..], &[0, 3, 4, 1, 1], &[0, 0, 0], &[0], &[]] {
        assert_eq!(parse_list(data), None, "{data:?}");
    }
}

proptest! {
    #[test]
    fn lists_come_back(all in prop::collection::vec(prop::collection::vec(0_u64..1 << 40, 1..5), 0..8)) {
        let ids: Vec<_> = all.iter().map(|numbers| TrustAnchorId::from_numbers(numbers.iter().copied()).unwrap()).collect();
        prop_assert_eq!(parse_list(&list(&ids)), Some(ids));
    }

    #[test]
    fn any_bytes_are_a_list_or_none(data in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Some(ids) = parse_list(&data) {
            prop_assert_eq!(list(&ids), data);
        }
    }
}
