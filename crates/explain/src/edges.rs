//! How far it is to where a handshake needs a flight more, or one less.

use lastbyte_exchange::{Exchange, HandshakeFlight};
use lastbyte_flights::around;
use lastbyte_flights::quic::Hold;
use lastbyte_sizes::{Message, framing};

use super::{flights, wire};
use lastbyte_results::quic_flights;
use lastbyte_study::{Arm, Cell, TransportName};

/// How far it is to both edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    /// Flights of the server until the handshake is done.
    pub flights: usize,
    /// The largest that needs one flight less, if any chain does.
    pub below: Option<Edge>,
    /// The largest that needs no flight more, if any chain does.
    pub above: Option<Edge>,
}

/// The largest Certificate message that needs so many flights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Bytes of that Certificate message with its 4-byte header.
    pub certificate: usize,
    /// Bytes from there to the arm's own.
    pub certificate_distance: usize,
    /// Bytes of the server's messages on the wire, from ServerHello to Finished, with that; over QUIC without frames and packets.
    pub server_flight: usize,
    /// Bytes from there to the arm's own.
    pub server_flight_distance: usize,
    /// What of a byte more over QUIC would wait for.
    pub held: Option<Hold>,
}

impl Edges {
    pub(super) fn new(arm: &Arm, own: &Exchange, cell: &Cell) -> Edges {
        let verify = own.bytes(Message::CertificateVerify) as usize;
        let with = |certificate| wire::with(own, certificate, verify);
        let certificate = own.bytes(Message::Certificate) as usize;
        let step = match arm.transport {
            TransportName::Tcp => cell.hosts.mss(),
            TransportName::Quic => cell.quic.server_datagram.into(),
        };
        let found = around(
            certificate,
            [framing::NO_CERTIFICATES, framing::MAX_MESSAGE],
            step,
            |certificate| flights(arm, &with(certificate), cell),
        );
        let edge = |largest: usize| {
            let server_flight = with(largest).carried(HandshakeFlight::Server) as usize;
            let held = match arm.transport {
                TransportName::Tcp => None,
                TransportName::Quic => last_held(&with(largest + 1), cell),
            };
            Edge {
                certificate: largest,
                certificate_distance: largest.abs_diff(certificate),
                server_flight,
                server_flight_distance: server_flight
                    .abs_diff(own.carried(HandshakeFlight::Server) as usize),
                held,
            }
        };
        Edges {
            flights: found.flights,
            below: found.below.map(edge),
            above: found.above.map(edge),
        }
    }
}

/// What the last flight of the server's waits for.
fn last_held(exchange: &Exchange, cell: &Cell) -> Option<Hold> {
    let flights = quic_flights(exchange, cell);
    let [.., before, _] = &*flights else {
        return None;
    };
    before.held()
}
