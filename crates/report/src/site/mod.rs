//! What a probe saw of a live site, for people and machines.

mod distance;
mod lead;
mod quic;
mod table;
mod users;
mod what_if;

pub use table::{failed, line, metrics, table, trusted};
pub use what_if::Answer;
