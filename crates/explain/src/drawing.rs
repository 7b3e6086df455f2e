//! A connection as a drawing has it: what leaves when, in how many segments.

use std::time::Duration;

use lastbyte_exchange::AddressValidation;
use lastbyte_flights::Flight;
use lastbyte_link::Side;
use lastbyte_sizes::Message;

use super::{Explanation, server_flights};

/// A flight, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it leaves, in how many segments.
    pub flight: Flight,
    /// When its first segment is there, on a link without a rate.
    pub arrives: Duration,
    /// What it is.
    pub what: String,
}

impl Explanation {
    /// The cell that is drawn: the first with a response, else the first.
    pub fn drawn(&self) -> usize {
        let has_response = self
            .times
            .iter()
            .position(|(_, times)| times.ttfb.is_some());
        has_response.unwrap_or(0)
    }

    /// The flights in one of the cells, in the order in which they begin, as far as they are modelled; none if there is no
    /// such cell.
    pub fn steps(&self, cell: usize) -> Vec<Step> {
        let Some((cell, timeline)) = self.times.get(cell) else {
            return Vec::new();
        };
        let mut handshake = server_flights(&self.exchange, timeline, cell).into_iter();
        let unit = self.arm.transport.packet();
        let mut writes = 0;
        let mut requests = 0;
        let mut last = None;
        let quic = self.exchange.transport.quic().unwrap_or_default();
        let has_retry_packet = quic.address_validation == Some(AddressValidation::Retry);
        let step = |flight: &Flight| {
            let is_new = last.replace(flight.sender) != Some(flight.sender);
            let is_handshake = flight.start < timeline.handshake;
            if flight.sender == Side::Client && is_new {
                writes += 1;
                requests += u32::from(!is_handshake);
            }
            let what = match flight.sender {
                Side::Client if requests > 1 => format!("request {requests}"),
                Side::Client if !is_handshake && cell.work().requests == 0 => "Finished".to_owned(),
                Side::Client if !is_handshake => "Finished, request".to_owned(),
                Side::Client if !is_new && has_retry_packet => {
                    "ClientHello once more, with the token of a Retry packet".to_owned()
                }
                Side::Client if writes > 1 => "second ClientHello".to_owned(),
                Side::Client => "ClientHello".to_owned(),
                Side::Server if is_handshake => handshake
                    .next()
                    .map_or_else(String::new, |flight| ends(&flight.messages, unit)),
                Side::Server => "response".to_owned(),
            };
            let way = match flight.sender {
                Side::Client => &cell.link.forward,
                Side::Server => &cell.link.backward,
            };
            Step {
                flight: *flight,
                arrives: flight.start + way.delay,
                what,
            }
        };
        let flights = timeline.flights.iter();
        let modelled = flights.filter(|flight| timeline.beyond(flight.start).is_none());
        modelled.map(step).collect()
    }
}

/// `ServerHello ends in segment 1, Certificate in 9`; EncryptedExtensions are small.
fn ends(messages: &[(Message, usize)], unit: &str) -> String {
    let told = messages
        .iter()
        .filter(|(message, _)| *message != Message::EncryptedExtensions);
    let words: Vec<String> = told
        .enumerate()
        .map(|(index, (message, segment))| match index {
            0 => format!("{} ends in {unit} {segment}", message.title()),
            _ => format!("{} in {segment}", message.title()),
        })
        .collect();
    if words.is_empty() {
        "more of the Certificate".to_owned()
    } else {
        words.join(", ")
    }
}
