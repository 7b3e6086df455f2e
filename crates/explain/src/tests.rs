#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use lastbyte_exchange::HandshakeFlight;

fn cells(initcwnds: &[u32]) -> Vec<Cell> {
    let with = |initcwnd: &u32| Cell {
        initcwnd: *initcwnd,
        ..Cell::default()
    };
    initcwnds.iter().map(with).collect()
}

fn explained(arm: &str, initcwnds: &[u32]) -> Explanation {
    explain(&arm.parse().unwrap(), &cells(initcwnds)).unwrap()
}

#[test]
fn each_message_ends_in_its_flight() {
    let explained = explained("SecP256r1MLKEM768/ml-dsa-65", &[10, 20]);
    let [ten, twenty] = &explained.windows[..] else {
        panic!("{:?}", explained.windows)
    };
    assert_eq!((ten.edges.flights, twenty.edges.flights), (2, 1));
    let ends = |flight: &ServerFlight| flight.messages.clone();
    assert_eq!(
        ten.flights.iter().map(ends).collect::<Vec<_>>(),
        [
            vec![
                (Message::ServerHello, 1),
                (Message::EncryptedExtensions, 1),
                (Message::Certificate, 9),
            ],
            vec![
                (Message::CertificateVerify, 12),
                (Message::ServerFinished, 12)
            ],
        ]
    );
    let sent: usize = ten.flights.iter().map(|flight| flight.bytes).sum();
    assert_eq!(
        sent,
        explained.exchange.sent(HandshakeFlight::Server) as usize
    );
}

/// A byte beyond an edge needs another number of flights, wherever the edge is said to be.
#[test]
fn edges_are_exact() {
    for arm in [
        "x25519/ecdsa-p256",
        "X25519MLKEM768/ml-dsa-44",
        "SecP256r1MLKEM768/ml-dsa-65",
        "MLKEM1024/slh-dsa-sha2-192f/key_share=x25519",
    ] {
        for window in [1, 4, 10, 32] {
            let [cell] = &cells(&[window])[..] else {
                panic!()
            };
            let cell = probe(cell);
            let arm: Arm = arm.parse().unwrap();
            let wire = wire(&arm).unwrap();
            let edges = Edges::new(&arm, &wire, &cell);
            let verify = wire.bytes(Message::CertificateVerify) as usize;
            let needed = |bytes| flights(&arm, &super::wire::with(&wire, bytes, verify), &cell);
            let above = edges.above.unwrap();
            assert_eq!(needed(above.certificate), edges.flights, "{arm} {window}");
            assert_eq!(
                needed(above.certificate + 1),
                edges.flights + 1,
                "{arm} {window}"
            );
            if let Some(below) = edges.below {
                assert_eq!(
                    needed(below.certificate),
                    edges.flights - 1,
                    "{arm} {window}"
                );
                assert_eq!(
                    needed(below.certificate + 1),
                    edges.flights,
                    "{arm} {window}"
                );
            }
        }
    }
}

/// Padding stays, so that a chain that stands for a larger one shrinks by as much as one without.
#[test]
fn cuts_are_those_of_the_chain_without_padding() {
    let arm = "x25519/ml-dsa-65/intermediates=2/root=sent/scts=2/sct_algorithm=ml-dsa-44";
    let plain = explained(arm, &[10]);
    let padded = explained(&arm.replace("65/", "65:40000B/"), &[10]);
    let bytes = |explained: &Explanation| -> Vec<(String, usize)> {
        let cuts = explained.cuts.iter();
        cuts.map(|cut| (cut.what.clone(), cut.certificate))
            .collect()
    };
    let found = bytes(&plain);
    for what in [
        "intermediates=1",
        "intermediates=0",
        "root=omitted",
        "scts=0",
        "sct_algorithm=ecdsa-p256",
        "ml-dsa-44 for ml-dsa-65",
    ] {
        assert!(
            found.iter().any(|(cut, bytes)| cut == what && *bytes > 0),
            "{what}: {found:?}"
        );
    }
    let mut padded = bytes(&padded);
    let mut found = found;
    padded.sort();
    found.sort();
    assert_eq!(padded, found);
}

/// What a client has is neither sent nor to be cut.
#[test]
fn intermediates_that_are_left_out_are_no_cut() {
    let arm = "x25519/ml-dsa-65/intermediates=1/delivery=elide";
    let elided = explained(arm, &[10]);
    let plain = explained("x25519/ml-dsa-65/intermediates=0", &[10]);
    let bytes = |explained: &Explanation| explained.exchange.bytes(Message::Certificate);
    assert_eq!(bytes(&elided), bytes(&plain));
    assert_eq!(
        elided.exchange.bytes(Message::ClientHello),
        plain.exchange.bytes(Message::ClientHello) + 6
    );
    let mut cuts = elided.cuts.iter();
    assert!(!cuts.any(|cut| cut.what.starts_with("intermediates=")));
}

#[test]
fn what_is_no_arithmetic_says_so() {
    for (arm, expected) in [
        ("x25519/./chain.pem", "arithmetic does not read files"),
        ("x25519/rsa-2048/stack=rustls", "rustls"),
        ("x25519/rsa-2048/client_stack=s2n-tls", "s2n-tls"),
        ("x25519/rsa-2048/mutual=rsa-2048", "a client proves itself"),
        ("x25519/rsa-2048/resume=ticket", "a session"),
        ("x25519/rsa-2048/tickets=2", "a ticket"),
        ("x25519/rsa-2048/flush=native", "writes"),
        ("x25519/rsa-2048/client_hello_split=100B", "split"),
        ("x25519/rsa-2048/delivery=pqtls-ad", "DNS"),
        ("x25519/rsa-2048/stack=rustls/delivery=compressed", "rustls"),
        ("x25519/rsa-2048/stack=rustls/delivery=abridged", "rustls"),
        (
            "x25519/rsa-2048/delivery=elide/client=stale",
            "client=current",
        ),
        (
            "x25519/rsa-2048/delivery=elide/client=stale/key_share=secp256r1",
            "a HelloRetryRequest on a connection that fails",
        ),
        ("x25519/rsa-2048/max_cert_list=1000B", "allow 2162B or more"),
    ] {
        let error = explain(&arm.parse().unwrap(), &cells(&[10]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && !error.contains('\n'),
            "{arm}: {error}"
        );
    }
    let mut cell = Cell::default();
    assert_eq!(check(&cell), Ok(()));
    cell.link.forward.loss = "1%".parse().unwrap();
    assert!(
        check(&cell)
            .unwrap_err()
            .to_string()
            .contains("loss is luck")
    );
}

/// What a window has room for that a server in pieces needs is what such a server sends more, to the byte.
#[test]
fn a_window_for_a_server_that_writes_in_pieces_has_room_for_them() {
    let cell = Cell::default();
    for (chain, windows) in [
        ("ml-dsa-44/intermediates=2/scts=2", [12, 13]),
        ("ml-dsa-65/intermediates=2/scts=2", [16, 17]),
        ("ml-dsa-87/intermediates=2/scts=2", [21, 22]),
    ] {
        let arm: Arm = format!("X25519MLKEM768/{chain}").parse().unwrap();
        let window = window_that_saves(&arm, &cell).unwrap();
        assert_eq!([window.at_once, window.in_pieces], windows, "{chain}");
        let own = wire(&arm).unwrap();
        let verify = own.bytes(Message::CertificateVerify) as usize;
        let certificate = own.bytes(Message::Certificate) as usize;
        let longer = super::wire::with(&own, certificate + IN_PIECES, verify);
        let flights_of = |window| {
            let cell = Cell {
                initcwnd: window,
                ..probe(&cell)
            };
            flights(&arm, &longer, &cell)
        };
        assert_eq!(flights_of(window.in_pieces), 1, "{chain}");
        assert_eq!(flights_of(window.in_pieces - 1), 2, "{chain}");
    }
    let node: Arm = "X25519MLKEM768/ml-dsa-65/server=node".parse().unwrap();
    let window = window_that_saves(&node, &cell).unwrap();
    assert_eq!(window.to_string(), window.at_once.to_string());
    let window = LargerWindow {
        at_once: 12,
        in_pieces: 13,
    };
    assert_eq!(window.to_string(), "12 (nginx: 13)");
    assert_eq!(
        window.supposed(TransportName::Tcp),
        "the first window is 12 segments (nginx: 13)"
    );
}
