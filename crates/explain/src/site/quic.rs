//! The same over QUIC, whose server may send three times what it has received (RFC 9000, 8.1).

use lastbyte_exchange::{AddressValidation, HandshakeFlight};
use lastbyte_probe::{Document, Edge, QuicSeen};
use lastbyte_sizes::Message;
use lastbyte_study::{Arm, Cell, Quic, Settings, TransportName};

use super::{Chain, TODAY, arm, chains, window};
use crate::{Edges, LargerWindow, check_over, probe, wire_of_own, with_messages};

/// Puts how far it is over QUIC into a document, if it says anything of a connection over that.
pub fn add_quic_edges(document: &mut Document) {
    let Some(quic) = &document.quic else {
        return;
    };
    let chains = chains(document);
    let edges = chains
        .iter()
        .filter_map(|chain| edge(document, quic, chain))
        .filter(Edge::is_in_bounds)
        .collect();
    if let Some(quic) = &mut document.quic {
        quic.edges = edges;
    }
}

/// How far the chain that a site has is from its edges over QUIC.
pub fn of_today_over_quic(document: &Document) -> Option<&Edge> {
    let edges = &document.quic.as_ref()?.edges;
    edges.first().filter(|edge| edge.chain == TODAY)
}

/// How far one chain is from its edges, behind the ClientHello that was sent and in datagrams as large as those that were seen.
fn edge(document: &Document, quic: &QuicSeen, chain: &Chain) -> Option<Edge> {
    // Of a server that did not begin its handshake, nothing is known.
    quic.first_answer?;
    let hello = quic.client_hello_bytes?;
    let arm = arm(chain.group(document), &Settings::default()).ok()?;
    let mut arm = Arm {
        transport: TransportName::Quic,
        address_validation: (quic.retry_token_bytes).map(|_| AddressValidation::Retry),
        ..chain.connecting(document, arm)
    };
    if !quic.hello_retry {
        arm.key_shares = vec![arm.group];
    }
    let cell = probe(&cell(document, quic));
    check_over(&arm, &cell).ok()?;
    let wire = wire_of_own(&arm, &chain.shown).ok()?;
    let wire = with_messages(&wire, [(Message::ClientHello, Some(hello))]);
    let edges = Edges::new(&arm, &wire, &cell);
    Some(Edge {
        chain: chain.name.clone(),
        certificate_bytes: wire.bytes(Message::Certificate) as usize,
        server_flight_wire_bytes: wire.carried(HandshakeFlight::Server) as usize,
        flights: edges.flights,
        left: edges.above.map(|edge| edge.certificate_distance),
        left_is: None,
        over: edges.below.map(|edge| edge.certificate_distance),
        larger_window: LargerWindow::new(&arm, &wire, &cell).map(|window| window.at_once),
    })
}

/// The largest datagram that a packet of Ethernet's holds over IPv4.
const OF_ETHERNET: u16 = 1500 - Quic::HEADERS;

/// A host that has what was seen of it over TCP: its window in datagrams, where that was in segments.
fn cell(document: &Document, quic: &QuicSeen) -> Cell {
    let size = |sizes: &[usize]| {
        let largest = sizes.iter().copied().max().unwrap_or_default();
        let largest = u16::try_from(largest).unwrap_or(u16::MAX);
        largest.clamp(Quic::LEAST_DATAGRAM, OF_ETHERNET)
    };
    let usual = Cell::default();
    Cell {
        initcwnd: window(document).max(2),
        quic: Quic {
            server_datagram: size(&quic.server_datagrams),
            client_datagram: size(&quic.client_datagrams),
            ..usual.quic
        },
        ..usual
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use lastbyte_probe::{Certificate, FirstAnswer};

    use super::*;

    /// A site with a chain of two certificates, behind a ClientHello of so many bytes.
    fn edges(hello: Option<usize>, retry_token: Option<usize>) -> Vec<Edge> {
        let certificate = Certificate {
            algorithm: "ecdsa-p256".to_owned(),
            signature: "ecdsa-with-SHA256".to_owned(),
            bytes: 900,
            key_bytes: 65,
            signature_bytes: 71,
            ..Certificate::default()
        };
        let mut document = Document {
            host: "site.example:443".to_owned(),
            group: Some("X25519MLKEM768".to_owned()),
            chain: vec![certificate.clone(), certificate],
            quic: Some(QuicSeen {
                first_answer: hello.map(|_| FirstAnswer::Handshake),
                client_hello_bytes: Some(hello.unwrap_or(1700)),
                retry_token_bytes: retry_token,
                client_datagrams: vec![1200],
                server_datagrams: vec![1200, 700],
                ..QuicSeen::default()
            }),
            ..Document::default()
        };
        add_quic_edges(&mut document);
        assert_eq!(
            of_today_over_quic(&document),
            document.quic.as_ref().unwrap().edges.first()
        );
        document.quic.unwrap().edges
    }

    fn flights(edges: &[Edge]) -> Vec<(&str, usize)> {
        let edges = edges.iter();
        edges
            .map(|edge| (edge.chain.as_str(), edge.flights))
            .collect()
    }

    #[test]
    fn credit_comes_with_each_datagram_of_the_hello() {
        let [one, two] = [500, 1700].map(|hello| edges(Some(hello), None));
        let left = |edges: &[Edge]| edges[0].left.unwrap();
        assert_eq!((one[0].flights, two[0].flights), (1, 1));
        // Three datagrams more, but for their headers.
        let more = left(&two) - left(&one);
        assert!((3300..3600).contains(&more), "{more}");
        assert_eq!(
            flights(&two),
            [
                ("today", 1),
                ("ml-dsa-44", 2),
                ("ml-dsa-65", 2),
                // Its window holds it back besides.
                ("ml-dsa-87", 3)
            ]
        );
    }

    /// Its window alone holds back what it sends, of which nine datagrams are full.
    #[test]
    fn a_token_lifts_the_limit() {
        let [credit, token] = [None, Some(57)].map(|token| edges(Some(1700), token));
        let left = |edges: &[Edge]| edges[0].left.unwrap();
        let more = left(&token) - left(&credit);
        assert!((2000..3600).contains(&more), "{more}");
        assert!(token[1].larger_window.unwrap() > 10);
    }

    #[test]
    fn of_what_said_nothing_nothing_is_calculated() {
        assert_eq!(edges(None, None), []);
    }
}
