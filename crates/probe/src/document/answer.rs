//! What a document says of what came behind a handshake, tickets and a response, and how those left
//! their server.

use lastbyte_exchange::{Then, Transfer, Writes};
use serde::{Deserialize, Serialize};

use super::exchange::observed_writes;
use super::{LEAST_RECORD, MOST_FLIGHT, MOST_RECORD, MOST_RESPONSE, Number};
use crate::{Answer, AnswerWrites, Connection, ResponseWrites, answer_writes};

/// What came behind a server's Finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Bytes of all tickets on the wire.
    tickets: usize,
    writes: AnswerWrites,
}

impl Answered {
    /// What is found of an answer on its connection.
    #[must_use]
    pub fn new(connection: &Connection, answer: Answer<'_>) -> Answered {
        Answered {
            tickets: answer.tickets.iter().sum(),
            writes: answer_writes(connection, answer),
        }
    }

    /// Bytes that left with the handshake and answer nothing.
    #[must_use]
    pub fn of_handshake(&self) -> usize {
        self.writes.early_tickets
    }

    /// The tickets that answer the client's Finished.
    #[must_use]
    pub fn tickets(&self) -> TicketsSeen {
        let bytes = self.tickets.checked_sub(self.writes.early_tickets);
        TicketsSeen {
            wire_bytes: bytes.and_then(|bytes| u32::try_from(bytes).ok()),
            writes: self.writes.tickets.clone(),
        }
    }
}

/// Session tickets between a handshake and its response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TicketsSeen {
    /// On the wire; none where that was not seen, and then they are in the response's bytes. Those
    /// that left with the handshake are in that one's.
    #[serde(rename = "ticket_wire_bytes", skip_serializing_if = "Option::is_none")]
    pub wire_bytes: Option<u32>,
    /// The writes in which those left the server; none where they left with the response, or nobody
    /// could tell.
    #[serde(rename = "ticket_writes", skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<usize>,
}

impl TicketsSeen {
    /// All numbers that somebody calculates with or prints.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        let writes = self.writes.iter().map(|bytes| Number {
            least: 1.0,
            ..Number::bytes("tls.writes", *bytes, MOST_FLIGHT)
        });
        let bytes = Number::counted(
            "tls.ticket_wire_bytes",
            self.wire_bytes.unwrap_or_default(),
            MOST_FLIGHT,
        );
        std::iter::once(bytes).chain(writes)
    }

    /// As what crosses the wire, if anything does.
    pub(super) fn transfer(&self) -> Option<Transfer> {
        let bytes = self.wire_bytes.filter(|bytes| *bytes > 0)?;
        Some(Transfer::seen(bytes as usize).in_writes(observed_writes(Then::Rest, &self.writes)))
    }
}

/// A response of HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseSeen {
    /// Its status code.
    pub status: u16,
    /// On the wire, without tickets before it, as far as it was read.
    pub wire_bytes: usize,
    /// Of its first record on the wire: nothing of it can be read before its last byte is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_record_wire_bytes: Option<usize>,
    /// In which writes it left the server; none where segments were not counted, or came as nothing
    /// that is known would have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<ResponseWrites>,
    /// Whether all of it was read.
    pub is_whole: bool,
    /// Where it says that the resource is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Other protocols that it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alt_svc: Option<String>,
}

impl ResponseSeen {
    /// One of which nothing is known but how it left: how long its first record was, and what was
    /// found of its writes.
    #[must_use]
    pub fn left(first_record: Option<usize>, answered: Option<&Answered>) -> ResponseSeen {
        ResponseSeen {
            first_record_wire_bytes: first_record,
            writes: answered.and_then(|answered| answered.writes.response.clone()),
            ..ResponseSeen::default()
        }
    }

    /// The same without what no reader takes.
    pub(super) fn fitted(&mut self) {
        let record = self.first_record_wire_bytes;
        self.first_record_wire_bytes = record.filter(|bytes| *bytes >= LEAST_RECORD);
        let are_records =
            |writes: &ResponseWrites| writes.first.iter().all(|bytes| *bytes >= LEAST_RECORD);
        self.writes = self.writes.take().filter(are_records);
    }

    /// All numbers that somebody calculates with or prints.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        let writes = self.writes.iter().flat_map(|writes| {
            let count = Number::bytes(
                "response.writes: how many",
                writes.first.len(),
                Writes::MOST as f64,
            );
            let each = writes.first.iter().map(|bytes| Number {
                least: LEAST_RECORD as f64,
                ..Number::bytes("response.writes", *bytes, MOST_RESPONSE)
            });
            std::iter::once(count).chain(each)
        });
        [
            Number::counted("response.status", u32::from(self.status), 999.0),
            Number::bytes("response.wire_bytes", self.wire_bytes, MOST_RESPONSE),
            Number {
                least: LEAST_RECORD as f64,
                ..Number::of(
                    "response.first_record_wire_bytes",
                    self.first_record_wire_bytes.map(|bytes| bytes as f64),
                    MOST_RECORD,
                )
            },
        ]
        .into_iter()
        .chain(writes)
    }
}

impl From<&ResponseSeen> for Transfer {
    fn from(response: &ResponseSeen) -> Transfer {
        let writes = response.writes.as_ref();
        let writes = writes.and_then(|writes| observed_writes(Then::Again, &writes.first));
        Transfer::seen(response.wire_bytes).in_writes(writes)
    }
}
