use super::*;
use crate::layout::{Colours, Screen};
use crate::tests::errors;

const MS: Duration = Duration::from_millis(1);

fn datagram(sender: Side, sent: u32, bytes: usize, what: &str) -> Datagram {
    Datagram {
        sender,
        sent: sent * MS,
        arrived: Some((sent + 50) * MS),
        fate: Fate::Carried,
        bytes,
        is_data: what != "ACK",
        what: what.to_owned(),
    }
}

/// A server whose chain does not fit its credit.
fn inside() -> Datagrams {
    use Side::{Client, Server};
    let mut datagrams = vec![
        datagram(Client, 0, 1200, "ClientHello"),
        datagram(Client, 0, 1200, "ClientHello"),
    ];
    for _ in 0..6 {
        datagrams.push(datagram(Server, 50, 1200, "ServerHello to Certificate"));
    }
    datagrams.push(datagram(Client, 100, 1200, "ACK"));
    datagrams.push(datagram(Server, 150, 900, "Certificate to server Finished"));
    datagrams.push(datagram(Client, 200, 1200, "client Finished"));
    datagrams[6].fate = Fate::Lost;
    datagrams[6].arrived = None;
    Datagrams {
        name: "x25519/ml-dsa-44/transport=quic, 100 ms, connection 3".to_owned(),
        comment: "connection 3".to_owned(),
        datagrams,
        handshake: Some(200 * MS),
        end: Some(200 * MS),
        is_whole: true,
        ledger: Ledger {
            received: vec![(50 * MS, 1200), (50 * MS, 2400)],
            unvalidated: 7200,
            validated: Some(150 * MS),
            blocked: vec![[50 * MS, 150 * MS]],
            acknowledged: vec![(150 * MS, 6000)],
            window: Some(12_000),
        },
    }
}

#[test]
fn a_server_without_credit_is_told() {
    let story = inside().story().join(" ");
    assert_eq!(
        story,
        "The handshake took 200.0 ms. Before the server knew its client's address, it sent 7200 bytes for 2400 that it had \
         received, 3.00 times as much, and waited 100.0 ms for more. One datagram was lost: the server's ServerHello to \
         Certificate of 50.0 ms."
    );
}

#[test]
fn a_drawing_for_terminals_has_what_is_sent_of_the_credit() {
    let screen = Screen {
        colours: Colours::None,
        columns: 100,
    };
    let text = text(&inside(), screen);
    assert!(text.contains("7200 / 7200"), "{text}");
    assert!(
        text.contains("no credit: the server waits 100.0 ms"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let narrow = Screen {
        columns: 20,
        ..screen
    };
    assert!(!super::text(&inside(), narrow).is_empty());
}

#[test]
fn a_drawing_has_credit_window_and_where_the_server_had_none() {
    for (class, drawing) in for_page(&inside()) {
        for part in [
            "credit: 3 × received",
            "no credit",
            "address known",
            "line c1",
            "band fill c1",
        ] {
            assert!(drawing.contains(part), "{class}: {part}");
        }
    }
    assert!(svg(&inside()).contains("waited 100.0 ms"));
    // Of a connection of which nothing came, and which has no window that is known.
    let none = Datagrams {
        datagrams: inside().datagrams[..1].to_vec(),
        handshake: None,
        end: None,
        ledger: Ledger::default(),
        ..inside()
    };
    assert!(!svg(&none).contains("credit: 3"));
    assert_eq!(none.slowness(), Some(Duration::MAX));
}

#[test]
fn the_document_fits_its_schema() {
    assert_eq!(errors(&json(&inside()), SCHEMA), Vec::<String>::new());
}
