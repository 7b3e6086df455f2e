//! What Zeek has seen of a network's own users: how often their handshakes are resumed, by version of TLS, by
//! CDN or not and by server, and how large and long their connections are.
//!
//! `ssl.log` and `conn.log` are read in whatever format Zeek writes them, and joined by `uid`. A third log, of the
//! [script](SCRIPT) that comes with it, adds what those two lack: the RTT, and the size of encrypted
//! handshakes. Memory does not grow with the logs: [`survey`] says how.
//!
//! What is counted as what:
//!
//! - TLS: rows that Zeek calls established, of which some are resumed. A draft of TLS 1.3 counts as TLS 1.3.
//! - QUIC: rows of TLS 1.3 whose connection is over UDP, or, without a row of `conn.log`, that are not
//!   established and whose history has nothing but hellos. Zeek sees nothing further of QUIC and calls none
//!   established, so all with a ServerHello count.
//! - Bytes and durations: connections whose beginning was seen and that were answered (`SF`, `S1`, `S2`, `S3`,
//!   `RSTO`, `RSTR`), and of which Zeek missed nothing. Bytes are those of a connection: handshake, records
//!   and all its responses.

mod ahead;
mod amount;
mod cdn;
mod columns;
mod handshake;
mod input;
mod join;
mod json;
mod lines;
mod log;
mod places;
mod profile;
mod reason;
mod report;
mod row;
mod servers;
mod share;
mod sketch;
mod survey;
mod tally;
#[cfg(test)]
mod tests;
mod time;
mod tsv;
mod version;

pub use cdn::{CdnError, CdnList, Class, DEFAULT as DEFAULT_CDN_LIST};
pub use columns::{ParquetFolder, SQL};
pub use handshake::Carrier;
pub use input::{Found, Source, sources};
pub use profile::{FEWEST, NoProfile};
pub use report::{SCHEMA, json, text};
pub use servers::Names;
pub use share::Share;
pub use sketch::Sketch;
pub use survey::{JOIN_ROWS, Lines, Options, Survey, survey, survey_bytes};
pub use tally::{Amounts, OfQuic, OfVersion, Tally, Unusable};
pub use version::Version;

/// A script for Zeek that logs what the default logs lack.
pub const SCRIPT: &str = include_str!("../zeek/lastbyte.zeek");
