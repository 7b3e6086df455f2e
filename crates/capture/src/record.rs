//! What a tap notes.

use lastbyte_link::{Side, Time};

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Before the link: the client has sent it.
    SentByClient,
    /// Behind the link: the server gets it.
    DeliveredToServer,
    /// Before the link: the server has sent it.
    SentByServer,
    /// Behind the link: the client gets it.
    DeliveredToClient,
}

impl Point {
    /// All of them, in the order of a file's interfaces.
    pub const ALL: [Point; 4] = [
        Point::SentByClient,
        Point::DeliveredToServer,
        Point::SentByServer,
        Point::DeliveredToClient,
    ];

    /// Where packets toward `side` enter the link.
    #[must_use]
    pub fn sent(toward: Side) -> Point {
        match toward {
            Side::Client => Point::SentByServer,
            Side::Server => Point::SentByClient,
        }
    }

    /// Where packets toward `side` leave the link.
    #[must_use]
    pub fn delivered(toward: Side) -> Point {
        match toward {
            Side::Client => Point::DeliveredToClient,
            Side::Server => Point::DeliveredToServer,
        }
    }

    /// Who sends what is seen here.
    #[must_use]
    pub fn sender(self) -> Side {
        match self {
            Point::SentByClient | Point::DeliveredToServer => Side::Client,
            Point::SentByServer | Point::DeliveredToClient => Side::Server,
        }
    }

    /// Whether it is before the link.
    #[must_use]
    pub fn is_before_link(self) -> bool {
        matches!(self, Point::SentByClient | Point::SentByServer)
    }

    /// What a file calls it (`if_name`).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Point::SentByClient => "sent by the client",
            Point::DeliveredToServer => "delivered to the server",
            Point::SentByServer => "sent by the server",
            Point::DeliveredToClient => "delivered to the client",
        }
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Point::SentByClient => 0,
            Point::DeliveredToServer => 1,
            Point::SentByServer => 2,
            Point::DeliveredToClient => 3,
        }
    }
}

/// What the link did with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It arrived; or nobody has looked yet.
    #[default]
    Carried,
    /// The link lost it.
    Lost,
    /// It found the link's queue full.
    QueueFull,
    /// It had not arrived when the capture ended.
    UnderWay,
}

impl Fate {
    const ALL: [Fate; 4] = [Fate::Carried, Fate::Lost, Fate::QueueFull, Fate::UnderWay];

    /// What a file says of it (`opt_comment`), if anything.
    #[must_use]
    pub fn comment(self) -> Option<&'static str> {
        match self {
            Fate::Carried => None,
            Fate::Lost => Some("lost by the link"),
            Fate::QueueFull => Some("queue full"),
            Fate::UnderWay => Some("under way when the capture ended"),
        }
    }

    /// The inverse of [`comment`](Fate::comment).
    pub(crate) fn of_comment(comment: &str) -> Option<Fate> {
        let mut all = Fate::ALL.into_iter();
        all.find(|fate| fate.comment() == Some(comment))
    }

    fn number(self) -> u8 {
        match self {
            Fate::Carried => 0,
            Fate::Lost => 1,
            Fate::QueueFull => 2,
            Fate::UnderWay => 3,
        }
    }
}

/// A packet at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When, since 1970.
    pub at: Time,
    /// Where.
    pub point: Point,
    /// What became of it, if the point is before the link.
    pub fate: Fate,
    /// From the IP header on.
    pub bytes: Vec<u8>,
    /// How long it was, if more than what is kept of it.
    pub length: u32,
}

impl Packet {
    /// A packet of which everything is kept.
    #[must_use]
    pub fn whole(at: Time, point: Point, fate: Fate, bytes: Vec<u8>) -> Packet {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Packet {
            at,
            point,
            fate,
            bytes,
            length,
        }
    }
}

/// Bytes before a packet's own in a tap's notes: time, length, kept length, point, fate.
const HEADER: usize = 18;

/// Notes a packet behind others in `notes`, which has room or not, and gives the length of all of
/// them then.
///
/// A tap that must not allocate has one large buffer, and calls this for each packet.
pub fn encode(
    notes: &mut [u8],
    length: usize,
    at: Time,
    point: Point,
    fate: Fate,
    bytes: &[u8],
    original: u32,
) -> Option<usize> {
    let room = notes.get_mut(length..length.checked_add(HEADER + bytes.len())?)?;
    let captured = u32::try_from(bytes.len()).ok()?;
    let (header, body) = room.split_at_mut(HEADER);
    header[..8].copy_from_slice(&at.0.to_le_bytes());
    header[8..12].copy_from_slice(&original.to_le_bytes());
    header[12..16].copy_from_slice(&captured.to_le_bytes());
    header[16] = point.number();
    header[17] = fate.number();
    body.copy_from_slice(bytes);
    Some(length + HEADER + bytes.len())
}

/// The packets of a tap's notes; what is cut short or makes no sense ends them.
#[derive(Clone, Debug)]
pub struct Records<'a>(pub &'a [u8]);

impl Iterator for Records<'_> {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let (header, rest) = self.0.split_first_chunk::<HEADER>()?;
        let word = |at: usize| {
            let bytes = header.get(at..at + 4).and_then(|word| word.try_into().ok());
            bytes.map(u32::from_le_bytes)
        };
        let time = header.first_chunk::<8>()?;
        let (bytes, rest) = rest.split_at_checked(word(12)? as usize)?;
        let packet = Packet {
            at: Time(u64::from_le_bytes(*time)),
            point: *Point::ALL.get(usize::from(header[16]))?,
            fate: *Fate::ALL.get(usize::from(header[17]))?,
            bytes: bytes.to_vec(),
            length: word(8)?,
        };
        self.0 = rest;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn packets() -> impl Strategy<Value = Vec<Packet>> {
        let packet = (
            any::<u64>(),
            0..4_usize,
            0..4_usize,
            proptest::collection::vec(any::<u8>(), 0..100),
            0..1000_u32,
        );
        let packet = packet.prop_map(|(at, point, fate, bytes, more)| Packet {
            length: bytes.len() as u32 + more,
            ..Packet::whole(Time(at), Point::ALL[point], Fate::ALL[fate], bytes)
        });
        proptest::collection::vec(packet, 0..20)
    }

    proptest! {
        #[test]
        fn what_a_tap_notes_is_read_back(packets in packets(), cut in 0..2000_usize) {
            let mut notes = vec![0; 1 << 16];
            let mut length = 0;
            for packet in &packets {
                let Packet { at, point, fate, bytes, length: original } = packet;
                length = encode(&mut notes, length, *at, *point, *fate, bytes, *original).unwrap();
            }
            let read: Vec<Packet> = Records(&notes[..length]).collect();
            prop_assert_eq!(&read, &packets);
            // Cut anywhere, what is whole is read.
            let cut: Vec<Packet> = Records(&notes[..cut.min(length)]).collect();
            prop_assert_eq!(&cut[..], &packets[..cut.len()]);
        }
    }

    #[test]
    fn a_tap_without_room_says_so_and_leaves_what_it_has() {
        let mut notes = [0; HEADER + 3];
        let at = |notes: &mut [u8], length, bytes: &[u8]| {
            encode(
                notes,
                length,
                Time(1),
                Point::SentByClient,
                Fate::Lost,
                bytes,
                9,
            )
        };
        assert_eq!(at(&mut notes, 0, &[1, 2, 3, 4]), None);
        assert_eq!(at(&mut notes, 0, &[1, 2, 3]), Some(HEADER + 3));
        assert_eq!(at(&mut notes, HEADER + 3, &[]), None);
        assert_eq!(at(&mut notes, usize::MAX, &[]), None);
        assert_eq!(Records(&notes).count(), 1);
    }
}
