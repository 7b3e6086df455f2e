//! What a handful of connections tell of a server and of the path to it.
//!
//! Nothing here owns a socket or reads a clock. Whoever makes [connections](Connection) notes what
//! happens on them (when something was written, when how many bytes came, what TCP counted
//! meanwhile), asks a [`Probe`] which connection to make next, and has its [`Findings`] at the end:
//! the round-trip time, the rate, losses, and the server's **initial window**.
//!
//! # How the window is found
//!
//! Nothing that a server sends in answer to an acknowledgement can be there within a round trip
//! after the first segment of its flight. So what comes until then is what its window held, if
//! silence follows: the window, seen in segments. A client that asks for small segments
//! (`TCP_MAXSEG`) makes short answers of many segments, and even a chain of 2 KB can fill a window
//! of 20.
//!
//! There are two places to look. The server's first flight begins with the initial window itself.
//! The response begins with what slow start has made of it since: [`lastbyte_flights::timeline`]
//! says what each initial window would have become, and those that agree with what was seen are
//! kept ([`candidates`]).
//!
//! What can't be seen is not guessed. Where a flight ends because there was no more to send, or
//! because the path was full, the window has [at least](Certainty::AtLeast) so many segments. Where
//! packets are lost, or where connections disagree, it is [uncertain](Certainty::Uncertain).

mod alt_svc;
mod body;
mod connection;
mod document;
mod findings;
mod head;
mod path;
mod plan;
mod rounds;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod window;
mod writes;

pub use alt_svc::{AltSvcError, Alternative, Http3, MOST_ALTERNATIVES, alternatives, http3};
pub use body::{Body, Cut};
pub use connection::{Arrival, Connection, Counters, Event};
pub use document::{
    Answered, Certificate, ClientCertificate, Document, DocumentError, Edge, FirstAnswer,
    JSON_SCHEMA, Left, MOST_DATAGRAMS, NamedBy, PathReport, QuicSeen, ResponseSeen, SCHEMA,
    TicketsSeen, Times, TlsSeen, VERSION, WindowSeen, milliseconds,
};
pub use findings::{Findings, Probe};
pub use head::{Head, HeadError, MOST_HEAD, MOST_INTERIM, Response as ResponseHead};
pub use path::{Loss, PathSeen, RateSeen, Rtt};
pub use plan::{Ask, Limits};
pub use rounds::{Ending, Round, rounds};
pub use window::{Certainty, Evidence, Look, Pacing, Window, candidates};
pub use writes::{Answer, AnswerWrites, ResponseWrites, Writes, answer_writes, writes};

/// The largest initial window that is distinguished from larger ones, in segments.
pub const MOST_WINDOW: u32 = 128;
