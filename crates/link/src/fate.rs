//! Packets, and what becomes of them.

use crate::{PacketKey, Time};

/// Bytes that a rate counts for each packet besides the IP packet itself.
pub const ETHERNET_HEADER: usize = 14;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It comes out at this time. Packets of one time come out in the order in which they went in.
    Arrives(Time),
    /// The link loses it: by its [`Loss`](crate::Loss), or because its [`Trace`](crate::Trace) ends before it is through.
    Lost,
    /// The queue is full, or drops it before it is.
    Overflows,
    /// It waits by a [`Qdisc`](crate::Qdisc), which says later what becomes of it: see [`Pipe::serve`](crate::Pipe::serve).
    Waits,
}

/// A packet with all that a [`Qdisc`](crate::Qdisc) asks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// By which whoever sends it knows it.
    pub ticket: u64,
    /// That of the IP packet, in bytes.
    pub length: usize,
    /// Its luck.
    pub key: PacketKey,
    /// What tells its flow from others.
    pub flow: u32,
    /// Whether its sender understands ECN.
    pub capable: bool,
}

/// What has become of a packet that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// [`Packet::ticket`]
    pub ticket: u64,
    /// Whether it arrives.
    pub fate: Fate,
    /// Whether it is marked on its way: that it met congestion (RFC 3168).
    pub marked: bool,
}
