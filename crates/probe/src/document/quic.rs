//! What a document says of a connection over QUIC.

use lastbyte_link::visible;
use serde::{Deserialize, Serialize};

use super::{Edge, MOST_FLIGHT, MOST_RTT, MOST_TIME, Number};

/// Datagrams of each end that are listed.
pub const MOST_DATAGRAMS: usize = 64;
/// Bytes of a UDP datagram's payload.
const MOST_DATAGRAM: f64 = 65_527.0;
/// Characters of what went wrong.
const MOST_PROBLEM: usize = 300;

/// A server as one connection over QUIC showed it (RFC 9000). Sizes are UDP payload, and bytes of
/// messages have a header of four.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuicSeen {
    /// The UDP port.
    pub port: u16,
    /// Who says that QUIC is there.
    pub named_by: NamedBy,
    /// Why the connection did not come to its end, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The least time in which something was answered: with what the server computes meanwhile,
    /// where it acknowledges nothing at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// From the client's first datagram to its Finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_ms: Option<f64>,
    /// Flights of the server that handshake messages came in; none where they are too near to each
    /// other to be told apart, or the handshake was not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flights: Option<usize>,
    /// Whether a HelloRetryRequest asked for another group.
    pub hello_retry: bool,
    /// The token of a Retry packet, with which the client had to begin again; none without one
    /// (RFC 9000, section 8.1.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_token_bytes: Option<usize>,
    /// What the server answered the ClientHello with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_answer: Option<FirstAnswer>,
    /// From that to its first handshake message, where that is another datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_ms: Option<f64>,
    /// The client's datagrams, up to its Finished.
    pub client_datagrams: Vec<usize>,
    /// The server's, up to the last of its handshake.
    pub server_datagrams: Vec<usize>,
    /// What the server had received and sent when it had sent the most by what it had received,
    /// before it knew the client's address (RFC 9000, section 8.1).
    pub credited_bytes: usize,
    /// The same of what it had sent.
    pub unvalidated_bytes: usize,
    /// What of three times the client's first flight the server's first flight left, where that had
    /// its whole handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_left_bytes: Option<usize>,
    /// The ClientHello.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_hello_bytes: Option<usize>,
    /// The Certificate message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_bytes: Option<usize>,
    /// How far it is to where the server needs another flight, today and with other chains: by
    /// arithmetic, as quinn would be.
    pub edges: Vec<Edge>,
}

/// Who says that a server has QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBy {
    /// The server, in its response over TCP (RFC 7838).
    #[default]
    AltSvc,
    /// Whoever probes.
    Asked,
}

/// What a server answers a ClientHello with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstAnswer {
    /// An acknowledgement of all of it, and its handshake in a later datagram.
    InstantAck,
    /// An acknowledgement of a part of it: of each datagram on its own.
    AckOfPart,
    /// Its handshake.
    Handshake,
}

impl QuicSeen {
    /// The most that the server had sent by what it had received, before it knew the client's
    /// address; none where nothing was received, or no server of QUIC answered.
    #[must_use]
    pub fn amplification(&self) -> Option<f64> {
        let is_known =
            self.first_answer.is_some() && self.credited_bytes > 0 && self.unvalidated_bytes > 0;
        is_known.then(|| self.unvalidated_bytes as f64 / self.credited_bytes as f64)
    }

    /// What became of it, in a word: `complete`, or `failed`.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self.problem {
            None => "complete",
            Some(_) => "failed",
        }
    }

    /// Round trips of a handshake with so many flights of the server: a Retry packet takes one more.
    #[must_use]
    pub fn round_trips(&self, flights: usize) -> usize {
        flights + usize::from(self.retry_token_bytes.is_some())
    }

    /// The same without what no reader takes: where numbers are wild, nothing but that. What was found over TCP stays,
    /// whatever came over QUIC.
    pub(super) fn fitted(&mut self) {
        self.client_datagrams.truncate(MOST_DATAGRAMS);
        self.server_datagrams.truncate(MOST_DATAGRAMS);
        if let Some(problem) = &mut self.problem {
            let text: String = problem.chars().take(MOST_PROBLEM).collect();
            *problem = visible(&text);
        }
        let wild = self.numbers().find(|number| !number.is_in_bounds());
        if let Some(number) = wild {
            *self = QuicSeen {
                port: self.port,
                named_by: self.named_by,
                problem: Some(format!(
                    "it shows what no handshake has: {}",
                    number.problem()
                )),
                ..QuicSeen::default()
            };
        }
    }

    /// All numbers that somebody calculates with or prints.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        let bytes =
            |what, bytes: Option<usize>| Number::bytes(what, bytes.unwrap_or(0), MOST_FLIGHT);
        let time = |what, ms: Option<f64>| Number::counted(what, ms.unwrap_or_default(), MOST_TIME);
        let datagrams = [&self.client_datagrams, &self.server_datagrams];
        let counts = datagrams
            .map(|sizes| Number::bytes("quic: datagrams", sizes.len(), MOST_DATAGRAMS as f64));
        let sizes = datagrams.into_iter().flatten();
        let sizes = sizes.map(|bytes| Number::bytes("quic: a datagram", *bytes, MOST_DATAGRAM));
        let numbers = [
            Number {
                least: 1.0,
                ..Number::counted("quic.port", self.port, 65_535.0)
            },
            Number::positive("quic.rtt_ms", self.rtt_ms, MOST_RTT),
            time("quic.handshake_ms", self.handshake_ms),
            time("quic.thought_ms", self.thought_ms),
            bytes("quic.flights", self.flights),
            bytes("quic.retry_token_bytes", self.retry_token_bytes),
            bytes("quic.credited_bytes", Some(self.credited_bytes)),
            bytes("quic.unvalidated_bytes", Some(self.unvalidated_bytes)),
            bytes("quic.credit_left_bytes", self.credit_left_bytes),
            bytes("quic.client_hello_bytes", self.client_hello_bytes),
            bytes("quic.certificate_bytes", self.certificate_bytes),
        ];
        let edges = self.edges.iter().flat_map(Edge::numbers);
        numbers.into_iter().chain(counts).chain(sizes).chain(edges)
    }
}
