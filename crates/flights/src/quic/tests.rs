//! As quinn 0.11.19 has it: the numbers are those of the laboratory's model, which `lastbyte` holds against this, datagram by
//! datagram.

use lastbyte_link::{Direction, Link};

use super::*;

fn path() -> Path {
    Path {
        link: Link::symmetric(Duration::from_millis(100), Direction::default()),
        ..Path::default()
    }
}

fn of(client_hello: usize, rest: usize) -> Messages {
    Messages {
        client_hello,
        server_hello: 1178,
        rest,
        finish: 52,
        ..Messages::default()
    }
}

/// What the server sends: when, and how many bytes.
fn server(messages: Messages) -> Vec<(u128, usize)> {
    let walked = walk(messages, &path());
    let sent = walked
        .datagrams
        .iter()
        .filter(|datagram| datagram.sender == Server);
    sent.map(|datagram| (datagram.sent.as_millis(), datagram.bytes))
        .collect()
}

#[test]
fn ml_dsa_87_takes_two_flights() {
    let mut wanted = vec![(50, 48)];
    wanted.extend([(50, 1200); 6]);
    wanted.extend([(150, 1200); 12]);
    wanted.push((150, 1028));
    assert_eq!(server(of(1478, 139 + 15_536 + 4635 + 52)), wanted);
    let walked = walk(of(1478, 139 + 15_536 + 4635 + 52), &path());
    assert_eq!(walked.handshake, Duration::from_millis(200));
}

#[test]
fn a_small_client_hello_gives_a_server_half_of_the_credit() {
    let messages = Messages {
        server_hello: 90,
        ..of(300, 139 + 8562 + 2428 + 52)
    };
    let mut wanted = vec![(50, 1200); 3];
    wanted.extend([(150, 1200); 6]);
    wanted.push((150, 1130));
    assert_eq!(server(messages), wanted);
}

/// With a window of 40 datagrams: six are what two Initials give credit for.
#[test]
fn a_retry_costs_a_round_trip_and_a_token_does_not_and_both_lift_the_credits_limit() {
    let path = Path {
        server_initcwnd: 40,
        ..path()
    };
    let flights = |address_validation, token| {
        let messages = Messages {
            address_validation,
            token,
            ..of(1478, 139 + 8562 + 2428 + 52)
        };
        let walked = walk(messages, &path);
        let sent = walked.datagrams.iter();
        let at_once = sent.filter(|sent| sent.sender == Server && sent.sent < walked.handshake / 2);
        (walked.handshake.as_millis(), at_once.count())
    };
    // An acknowledgement is one of them.
    assert_eq!(flights(None, 0), (200, 7));
    // The pacer lets no more than ten leave at once.
    assert_eq!(flights(Some(AddressValidation::Token), 46), (166, 11));
    // The Retry packets are first.
    let messages = Messages {
        address_validation: Some(AddressValidation::Retry),
        token: 57,
        ..of(1478, 700)
    };
    let sent = walk(messages, &path).datagrams;
    let sent: Vec<_> = (sent.iter())
        .map(|sent| (sent.sender, sent.sent.as_millis(), sent.bytes))
        .collect();
    assert_eq!(sent[..2], [(Client, 0, 1200); 2]);
    assert_eq!(sent[2..4], [(Server, 50, 96); 2]);
    assert_eq!(sent[4..6], [(Client, 100, 1200); 2]);
    assert_eq!(sent[6].1, 150);
}

#[test]
fn each_byte_of_a_message_is_in_a_datagram() {
    for rest in (1..40_000).step_by(37) {
        let datagrams = server(of(1450, rest));
        assert!(datagrams.iter().all(|(_, bytes)| *bytes <= 1200));
        assert!(
            datagrams.iter().map(|(_, bytes)| bytes).sum::<usize>() > 1178 + rest,
            "{rest} {datagrams:?}"
        );
        let credit: usize = (datagrams.iter().filter(|(at, _)| *at == 50))
            .map(|(_, bytes)| bytes)
            .sum();
        // Three times two datagrams, and less than a whole one.
        assert!(credit < 3 * 2400 + 1200);
    }
}

/// What ends each of the server's flights, and its datagrams that carry messages.
fn held(rest: usize) -> Vec<(usize, Option<Hold>)> {
    let flights = walk(of(1484, rest), &path()).server_flights(&path());
    let carried: usize = (flights.iter().flat_map(|flight| &flight.datagrams))
        .map(|(_, datagram)| datagram.crypto)
        .sum();
    assert_eq!(carried, 1178 + rest);
    let flights = flights.iter();
    flights
        .map(|flight| (flight.datagrams.len(), flight.held()))
        .collect()
}

#[test]
fn credit_ends_the_first_flight_and_the_window_the_next() {
    let (credit, window) = (Some(Hold::Credit), Some(Hold::Window));
    assert_eq!(held(5689), [(6, None)]);
    assert_eq!(held(5690), [(6, credit), (1, None)]);
    assert_eq!(held(20_672), [(6, credit), (13, None)]);
    assert_eq!(held(20_673), [(6, credit), (13, window), (1, None)]);
}

#[test]
fn a_client_hello_takes_as_many_initials_as_hold_it() {
    // 1200 bytes less the header of 27, a tag of 16 and that of CRYPTO.
    assert_eq!([1153, 1154].map(|hello| initials(hello, 1200, 0)), [1, 2]);
    assert_eq!([2305, 2306].map(|hello| initials(hello, 1200, 0)), [2, 3]);
    assert_eq!(initials(0, 1200, 0), 0);
}
