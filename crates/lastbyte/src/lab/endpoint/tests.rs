#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn an_event_comes_back_as_it_was(slot in 0..u32::MAX, server: bool) {
        let end = if server { Side::Server } else { Side::Client };
        let event = Event::Ready { slot, end };
        prop_assert_eq!(Event::decode(event.encode()), event);
    }
}

#[test]
fn what_is_no_connection_s_is_no_slot() {
    for event in [Event::Accept, Event::Datagrams, Event::Resolver, Event::Due] {
        assert_eq!(Event::decode(event.encode()), event);
    }
}
