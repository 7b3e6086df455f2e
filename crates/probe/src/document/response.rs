//! What a document says of a response, and how that left its server.

use lastbyte_exchange::{Then, Transfer, Writes};
use serde::{Deserialize, Serialize};

use super::exchange::seen;
use super::{LEAST_RECORD, MOST_RECORD, MOST_RESPONSE, Number};
use crate::{AnswerWrites, ResponseWrites};

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
    /// In which writes it left the server; none where segments were not counted, or came as nothing that is known would have them.
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
    /// One of which nothing is known but how it left: how long its first record was, and what was found of its writes.
    #[must_use]
    pub fn left(first_record: Option<usize>, answered: Option<&AnswerWrites>) -> ResponseSeen {
        ResponseSeen {
            first_record_wire_bytes: first_record,
            writes: answered.and_then(|answered| answered.response.clone()),
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
        let writes = writes.and_then(|writes| seen(Then::Again, &writes.first));
        Transfer::seen(response.wire_bytes).in_writes(writes)
    }
}
