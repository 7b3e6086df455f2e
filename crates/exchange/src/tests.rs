#![allow(clippy::unwrap_used)]

use lastbyte_sizes::Message;
use lastbyte_sizes::framing::RECORD_OVERHEAD;
use proptest::prelude::*;

use super::*;

fn payload(sizes: &[u32]) -> Option<Writes> {
    Some(Writes::new(
        Unit::Payload,
        Then::Again,
        sizes.iter().copied(),
    ))
}

fn on_wire(then: Then, sizes: &[u32]) -> Option<Writes> {
    Some(Writes::new(Unit::Wire, then, sizes.iter().copied()))
}

#[test]
fn a_flight_is_its_messages_and_what_was_seen_around_them() {
    let mut handshake = Handshake::default();
    assert_eq!(handshake.wire_bytes(HandshakeFlight::Server), None);
    for (message, bytes) in [(Message::ServerHello, 90), (Message::Certificate, 1000)] {
        handshake.messages.set(message, Some(bytes));
    }
    handshake.see(HandshakeFlight::Server, Some(1123));
    assert_eq!(handshake.wire_bytes(HandshakeFlight::Server), Some(1123));
    // A larger message makes it so much larger.
    handshake.messages.set(Message::Certificate, Some(1500));
    assert_eq!(handshake.wire_bytes(HandshakeFlight::Server), Some(1623));
    assert_eq!(handshake.wire_bytes(HandshakeFlight::ClientFinish), None);
    handshake.see(HandshakeFlight::ClientFinish, Some(0));
    assert_eq!(handshake.wire_bytes(HandshakeFlight::ClientFinish), Some(0));
}

#[test]
fn every_message_leaves_in_one_flight() {
    for message in Message::all() {
        let flights = HandshakeFlight::ALL.into_iter();
        let flights = flights.filter(|flight| flight.messages().contains(&message));
        assert_eq!(flights.count(), 1, "{message:?}");
    }
}

#[test]
fn writes_go_on_as_they_say() {
    let of = |then, bytes| on_wire(then, &[100, 50]).unwrap().of(bytes);
    assert_eq!(of(Then::Rest, 260), [100, 50, 110]);
    assert_eq!(of(Then::Again, 260), [100, 50, 50, 50, 10]);
    assert_eq!(of(Then::Rest, 100), [100]);
    assert_eq!(of(Then::Again, 0), [0; 0]);
    assert_eq!(Writes::one().of(7), [7]);
    // What comes behind a 0 is none.
    assert_eq!(on_wire(Then::Rest, &[3, 0, 9]).unwrap().sizes(), [3]);
    let many = on_wire(Then::Rest, &[1; 40]).unwrap();
    assert_eq!(many.sizes().len(), Writes::MOST);
}

#[test]
fn a_write_of_payload_has_records_of_its_own_and_one_that_was_seen_has_not() {
    let records = Records {
        first: 1426,
        later: 16_384,
    };
    let whole = Transfer::of_records(20_000, records);
    let framed = Transport::default().framed(&whole);
    assert_eq!((framed.bytes, framed.first), (20_066, 1448));
    assert!(framed.writes.is_empty());
    // 17, 8087, 8087 and 3809 bytes, each with a record.
    let framed = Transport::default().framed(&whole.clone().in_writes(payload(&[17, 8087])));
    assert_eq!(framed.writes, [39, 8109, 8109, 3831]);
    assert_eq!((framed.bytes, framed.first), (20_088, 39));
    // As it was seen, the first write ends before the first record could.
    let framed = Transport::default().framed(&whole.in_writes(on_wire(Then::Again, &[1000, 9000])));
    assert_eq!(framed.writes, [1000, 9000, 9000, 1066]);
    assert_eq!((framed.bytes, framed.first), (20_066, 1000));
}

#[test]
fn what_was_seen_is_as_large_as_it_was() {
    let framed = Transport::default().framed(&Transfer::seen(510));
    assert_eq!((framed.bytes, framed.first), (510, 510));
}

proptest! {
    /// Nothing is lost between writes, whatever they are.
    #[test]
    fn writes_come_to_all_of_it(
        bytes in 0_usize..1 << 20,
        sizes in prop::collection::vec(100_u32..1 << 17, 0..20),
        again in any::<bool>(),
    ) {
        let then = if again { Then::Again } else { Then::Rest };
        let writes = on_wire(then, &sizes).unwrap();
        prop_assert_eq!(writes.of(bytes).iter().sum::<usize>(), bytes);
    }

    /// Each record has its overhead, and no transfer fewer than one.
    #[test]
    fn records_are_counted_by_writes(
        bytes in 1_usize..1 << 20,
        sizes in prop::collection::vec(100_u32..16_384, 1..12),
    ) {
        let framed = Transport::default().framed(&Transfer {
            payload: bytes,
            cut: Cut::Records(Records::whole()),
            writes: payload(&sizes),
        });
        prop_assert_eq!(framed.bytes, framed.writes.iter().sum::<usize>());
        prop_assert_eq!(framed.bytes, bytes + RECORD_OVERHEAD * framed.writes.len());
        prop_assert!(framed.first <= framed.writes[0]);
    }
}
