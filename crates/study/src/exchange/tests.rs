#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

#[test]
fn the_request_is_for_the_object() {
    let head = str::from_utf8(REQUEST).unwrap();
    assert_eq!(head.split(' ').nth(1), Some(OBJECT));
}

/// The payloads of the records of a response.
fn payloads(records: RecordSize, data: u64) -> Vec<usize> {
    let records = super::records(records, &Cell::default());
    let mut payloads = Vec::new();
    let mut sent = 0;
    while sent < data {
        let payload = records.payload(sent, data);
        assert!(payload > 0, "no end after {sent} of {data} bytes");
        payloads.push(payload);
        sent += payload as u64;
    }
    payloads
}

#[test]
fn the_first_record_fills_a_segment_and_later_ones_are_full() {
    let records = RecordSize::FirstSegment;
    assert_eq!(payloads(records, 0), [0; 0]);
    assert_eq!(payloads(records, 1), [1]);
    assert_eq!(payloads(records, 1426), [1426]);
    assert_eq!(payloads(records, 1427), [1426, 1]);
    assert_eq!(payloads(records, 1426 + 16_384 + 1), [1426, 16_384, 1]);
    // With 5 bytes of header, 1 of content type and 16 of tag, a segment of 1448.
    assert_eq!(1426 + 5 + 1 + 16, Cell::default().hosts.mss());
}

#[test]
fn records_of_a_fixed_size() {
    let records = RecordSize::Fixed(1000);
    assert_eq!(payloads(records, 2500), [1000, 1000, 500]);
    assert_eq!(payloads(records, 2000), [1000, 1000]);
}

proptest! {
    #[test]
    fn records_add_up_to_the_response(
        size in prop_oneof![
            Just(RecordSize::FirstSegment),
            (100..=16_384_u16).prop_map(RecordSize::Fixed),
        ],
        data in 0..1_000_000_u64,
    ) {
        let payloads = payloads(size, data);
        prop_assert_eq!(payloads.iter().map(|payload| *payload as u64).sum::<u64>(), data);
        let (first, most) = match size {
            RecordSize::FirstSegment => (1426, 16_384),
            RecordSize::Fixed(size) => (usize::from(size), usize::from(size)),
        };
        prop_assert!(payloads.first().is_none_or(|payload| *payload <= first));
        prop_assert!(payloads.iter().all(|payload| *payload <= most));
        // None is smaller than it must be, but for the last.
        let full = [first].into_iter().chain(std::iter::repeat(most));
        let all_but_last = payloads.len().saturating_sub(1);
        prop_assert!(payloads.iter().copied().zip(full).take(all_but_last).all(|(is, full)| is == full));
    }
}
