use crate::framing;

#[test]
fn a_certificate_message_is_counted_with_its_framing() {
    assert_eq!(framing::certificate_message([]), 8);
    assert_eq!(framing::certificate_message([1000, 500]), 8 + 1005 + 505);
}

/// Each record holds 16 KiB, and has a header, a type and a tag.
#[test]
fn content_is_cut_into_records() {
    assert_eq!(framing::encrypted(0), 0);
    assert_eq!(framing::encrypted(1), 23);
    assert_eq!(framing::encrypted(16_384), 16_406);
    assert_eq!(framing::encrypted(16_385), 16_385 + 2 * 22);
}
