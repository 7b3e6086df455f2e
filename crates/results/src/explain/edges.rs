//! How far it is to where a handshake needs a flight more, or one less.

use lastbyte_sizes::{Message, framing};

use super::{flights, wire};
use crate::row::Wire;
use crate::study::{Arm, Cell};

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
    pub(super) fn new(arm: &Arm, own: &Wire, cell: &Cell) -> Edges {
        let verify = own.bytes(Message::CertificateVerify) as usize;
        let with = |certificate| wire::with(own, certificate, verify);
        let needed = |certificate| flights(arm, &with(certificate), cell);
        let certificate = own.bytes(Message::Certificate) as usize;
        let count = needed(certificate);
        let edge = |largest: usize| {
            let server_flight = with(largest).server_flight_wire_bytes as usize;
            Edge {
                certificate: largest,
                certificate_distance: largest.abs_diff(certificate),
                server_flight,
                server_flight_distance: server_flight
                    .abs_diff(own.server_flight_wire_bytes as usize),
            }
        };
        let least = framing::NO_CERTIFICATES;
        let below = (needed(least) < count)
            .then(|| largest(least, certificate, |bytes| needed(bytes) < count));
        let mut beyond = certificate;
        let mut step = cell.hosts.mss();
        while beyond < framing::MAX_MESSAGE && needed(beyond) <= count {
            beyond = (beyond + step).min(framing::MAX_MESSAGE);
            step *= 2;
        }
        let above = (needed(beyond) > count)
            .then(|| largest(certificate, beyond, |bytes| needed(bytes) <= count));
        Edges {
            flights: count,
            below: below.map(edge),
            above: above.map(edge),
        }
    }
}

/// The largest that `fits`, between one that does and one that does not.
fn largest(mut fitting: usize, mut other: usize, fits: impl Fn(usize) -> bool) -> usize {
    while fitting + 1 < other {
        let middle = fitting.midpoint(other);
        match fits(middle) {
            true => fitting = middle,
            false => other = middle,
        }
    }
    fitting
}
