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

/// What an IP packet has to say about congestion, in the lowest two bits of its traffic class (RFC 3168, 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EcnCodepoint {
    /// Its sender does not understand ECN.
    #[default]
    NotEct = 0b00,
    /// ECT(1): it does, and asks for L4S (RFC 9331).
    Ect1 = 0b01,
    /// ECT(0): it does.
    Ect0 = 0b10,
    /// The packet has met congestion.
    Ce = 0b11,
}

impl EcnCodepoint {
    /// Of a traffic class.
    #[must_use]
    pub fn of_class(class: u8) -> EcnCodepoint {
        match class & 0b11 {
            0b00 => EcnCodepoint::NotEct,
            0b01 => EcnCodepoint::Ect1,
            0b10 => EcnCodepoint::Ect0,
            _ => EcnCodepoint::Ce,
        }
    }

    /// A traffic class with nothing else in it.
    #[must_use]
    pub fn class(self) -> u8 {
        self as u8
    }

    /// Whether a queue may mark the packet in place of dropping it.
    #[must_use]
    pub fn is_capable(self) -> bool {
        self != EcnCodepoint::NotEct
    }
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
    /// What it says about congestion.
    pub ecn: EcnCodepoint,
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
