//! Luck: what happens to a packet, as a function of seed, link, connection, direction and place.

/// The seed of a study: all luck in it comes from this number.
///
/// Luck is counter-based. It is hashed from what it belongs to, never drawn
/// from a stream, so it does not depend on the order or the time in which
/// packets come. The hash is the finaliser of SplitMix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(pub u64);

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The one that connects, and sends the ClientHello.
    Client,
    /// The one that listens, and answers it.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// The luck of one connection in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Luck(u64);

/// What identifies a packet's luck within its connection and direction.
///
/// The same packet of the same connection meets the same luck in every arm. Take the
/// keys of real packets from a [`KeyMaker`](crate::KeyMaker).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketKey(pub u64);

/// What a draw decides. Each has luck of its own: whether a packet is lost says
/// nothing about its delay.
#[derive(Clone, Copy)]
pub(crate) enum Draw {
    Loss = 1,
    Delay = 2,
    /// Whether the state of [bursts](crate::Loss::GilbertElliott) changes.
    Change = 3,
    /// Where a connection begins in a [`Trace`](crate::Trace).
    Phase = 4,
    /// Whether a [queue](crate::qdisc) that is not full drops it.
    Early = 5,
}

impl Seed {
    /// The greatest that users can choose: what tables of whole numbers with a sign can hold.
    pub const MOST: u64 = i64::MAX as u64;

    /// The seed of a part of this study, such as one link. Parts with different names have
    /// unrelated luck; luck drawn from one seed is shared.
    #[must_use]
    pub fn part(self, name: &str) -> Seed {
        let hash = name
            .bytes()
            .fold(mix(self.0), |hash, byte| mix(hash ^ u64::from(byte)));
        // The length keeps apart names that only zero bytes tell apart.
        Seed(mix(hash ^ name.len() as u64))
    }

    /// The luck of connection `index` in the direction `toward`.
    #[must_use]
    pub fn luck(self, index: u32, toward: Side) -> Luck {
        let direction = match toward {
            Side::Server => 0,
            Side::Client => 1,
        };
        Luck(mix(mix(self.0) ^ (u64::from(index) << 1 | direction)))
    }
}

impl Luck {
    /// 64 even bits for one decision about one packet.
    pub(crate) fn draw(self, key: PacketKey, draw: Draw) -> u64 {
        let lane = mix(self.0 ^ draw as u64);
        mix(lane.wrapping_add(mix(key.0)))
    }
}

impl PacketKey {
    const ACKNOWLEDGEMENT: u64 = 1 << 63;
    const SYN_FIN_RST: u8 = 0b111;

    /// A TCP segment that carries data or one of SYN, FIN and RST.
    ///
    /// `flags` is the flags byte of its header (RFC 9293, section 3.1). Only SYN, FIN and RST
    /// count, as PSH depends on how the data was written. `sequence` is relative to
    /// the initial sequence number; `attempt` is 0 when it is first sent.
    #[must_use]
    pub fn segment(flags: u8, sequence: u32, attempt: u32) -> PacketKey {
        let flags = u64::from(flags & Self::SYN_FIN_RST) << 60;
        PacketKey(flags | low_bits(attempt) | u64::from(sequence))
    }

    /// The datagram of this number, from 0, among those of a direction.
    #[must_use]
    pub fn datagram(number: u32) -> PacketKey {
        // No segment has all three flags.
        PacketKey(u64::from(Self::SYN_FIN_RST) << 60 | u64::from(number))
    }

    /// A TCP segment that only acknowledges: `acknowledgement` is relative to the peer's
    /// initial sequence number; `attempt` counts duplicates from 0.
    #[must_use]
    pub fn acknowledgement(acknowledgement: u32, attempt: u32) -> PacketKey {
        PacketKey(Self::ACKNOWLEDGEMENT | low_bits(attempt) | u64::from(acknowledgement))
    }
}

/// The attempt, in the 28 bits between the flags and the sequence number.
fn low_bits(attempt: u32) -> u64 {
    u64::from(attempt & 0x0fff_ffff) << 32
}

/// The finaliser of SplitMix64, on the next state after `value`: a bijection in which every
/// input bit flips each output bit with probability one half.
#[inline]
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number from 0 to 1, without 1, by the first 53 of even bits.
#[must_use]
pub fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
