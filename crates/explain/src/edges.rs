//! How far it is to where a handshake needs a flight more, or one less.

use lastbyte_exchange::{Exchange, HandshakeFlight};
use lastbyte_flights::around;
use lastbyte_sizes::{Message, framing};

use super::{flights, wire};
use lastbyte_study::{Arm, Cell};

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
    /// Bytes of the server's messages on the wire, from ServerHello to Finished, with that.
    pub server_flight: usize,
    /// Bytes from there to the arm's own.
    pub server_flight_distance: usize,
}

impl Edges {
    pub(super) fn new(arm: &Arm, own: &Exchange, cell: &Cell) -> Edges {
        let verify = own.bytes(Message::CertificateVerify) as usize;
        let with = |certificate| wire::with(own, certificate, verify);
        let certificate = own.bytes(Message::Certificate) as usize;
        let found = around(
            certificate,
            [framing::NO_CERTIFICATES, framing::MAX_MESSAGE],
            cell.hosts.mss(),
            |certificate| flights(arm, &with(certificate), cell),
        );
        let edge = |largest: usize| {
            let server_flight = with(largest).sent(HandshakeFlight::Server) as usize;
            Edge {
                certificate: largest,
                certificate_distance: largest.abs_diff(certificate),
                server_flight,
                server_flight_distance: server_flight
                    .abs_diff(own.sent(HandshakeFlight::Server) as usize),
            }
        };
        Edges {
            flights: found.flights,
            below: found.below.map(edge),
            above: found.above.map(edge),
        }
    }
}
