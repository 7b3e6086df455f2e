//! QUIC ends that own no socket and read no clock.
//!
//! An [`End`] is quinn's protocol (`quinn-proto`) on the TLS of a [`Stack`](lastbyte_tls::Stack): OpenSSL's, with every
//! chain and delivery that it has, through the callbacks that it offers to others' transports. It takes datagrams and
//! gives datagrams, at times that whoever moves them says. All that is random comes from a seed: two runs have the same
//! datagrams, to the byte.
//!
//! quinn is taken as it is: what it does otherwise than RFC 9000 says is a finding, and no fault of the measurement.

mod end;
mod seeded;
mod session;
mod tokens;
mod watched;

pub use end::{
    Congestion, Ecn, End, EndError, Ended, Kept, MtuDiscovery, Request, Retries, Settings, Stats,
    connection_before,
};

/// The version of the library that speaks QUIC.
pub const VERSION: &str = "quinn-proto 0.11.19";
