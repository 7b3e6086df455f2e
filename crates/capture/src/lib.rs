//! Connections packet by packet, on both sides of a link.
//!
//! A tap notes each packet at four [points](Point): where it is sent and where it is delivered, in both
//! directions. [`settle`] finds out which sent packet is which delivered one, so that what the link dropped
//! has a name; [`write`](write()) makes pcapng of that, with the TLS secrets inside, and [`read`](read())
//! reads it back, whatever the bytes are. A [`Connection`] tells what each packet was: whether it carries
//! data for the first time, what was lost, how its sender learnt of that, and how much was under way. A [`Flow`] has the
//! datagrams of two ends.
//!
//! Nothing here owns a socket, reads a clock or knows TLS or QUIC.

mod connection;
mod coverage;
mod flow;
mod packet;
mod read;
mod reassembly;
mod record;
mod settle;
mod write;

pub use connection::{
    Connection, ConnectionId, DNS_PORT, Flag, Loss, Transmission, Trigger, connections,
};
pub use flow::{Flow, Passage, flows};
pub use packet::{Datagram, Segment, complete_checksums};
pub use read::{Capture, ReadError, Taken, read};
pub use reassembly::Reassembly;
pub use record::{Fate, Packet, Point, Records, encode};
pub use settle::{Limits, Sighting, pair, settle};
pub use write::{About, write};
