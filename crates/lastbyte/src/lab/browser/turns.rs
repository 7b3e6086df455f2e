//! How much of a connection's time was the network's: what remains of it, browser and server have
//! computed.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_capture::{Segment, Sighting, pair};
use lastbyte_link::{Side, TcpPacket, Time};

use super::wire::ObservedPacket;

/// A packet that crossed the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    sender: Side,
    holds: Holds,
    sent: Time,
    delivered: Time,
}

/// What a program can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// Data, or a connection.
    Data,
    /// What the kernel alone waits for, whose window was full.
    Acknowledgement,
}

impl Holds {
    fn of(packet: &ObservedPacket<'_>) -> Holds {
        let segment = Segment::parse(packet.bytes);
        let is_bare = segment.is_some_and(|segment| {
            segment.payload.is_empty() && segment.header.flags & TcpPacket::SYN == 0
        });
        if is_bare {
            Holds::Acknowledgement
        } else {
            Holds::Data
        }
    }
}

/// What crossed, of packets that were seen on both sides of the link, in their order. None of those
/// that were seen on one side alone.
pub(super) fn passages(packets: &[ObservedPacket<'_>]) -> Vec<Passage> {
    let sightings: Vec<Sighting<'_>> = packets.iter().map(ObservedPacket::sighting).collect();
    let pairs = pair(&sightings).into_iter().enumerate();
    let pairs = pairs.filter_map(|(sent, delivered)| Some((delivered?, sent)));
    // As they were delivered.
    let pairs: BTreeMap<usize, usize> = pairs.collect();
    let passage = |(delivered, sent): (usize, usize)| {
        let (sent, delivered) = (packets.get(sent)?, packets.get(delivered)?);
        Some(Passage {
            sender: sent.point.sender(),
            holds: Holds::of(delivered),
            sent: sent.at,
            delivered: delivered.at,
        })
    };
    pairs.into_iter().filter_map(passage).collect()
}

/// For how much of the time up to the packet that came to the client at `end` packets that were
/// waited for were on the network: that one, the one for which its sender had waited before it sent
/// it, and so back to the first. None if no packet came then.
///
/// That is the data that had come last, or the acknowledgement where that made a full window wider, to which the kernel answers
/// [`AT_ONCE`]. Where more data comes to an end that computes, it is taken for what it waited for, which changes nothing unless it
/// computes for longer than a round trip. A timer that an end waits for is no packet, and counts as computing.
pub(super) fn of_network(passages: &[Passage], end: Time) -> Option<Duration> {
    let came = |passage: &Passage| passage.sender == Side::Server && passage.delivered == end;
    let mut place = passages.iter().rposition(came);
    place?;
    let mut network = Duration::ZERO;
    while let Some((last, before)) = place.and_then(|place| passages.get(..=place)?.split_last()) {
        network += last.delivered.since(last.sent);
        place = before.iter().rposition(|passage| {
            let was_there = passage.sender != last.sender && passage.delivered <= last.sent;
            was_there
                && match passage.holds {
                    Holds::Data => true,
                    Holds::Acknowledgement => last.sent.since(passage.delivered) <= AT_ONCE,
                }
        });
    }
    Some(network)
}

/// Longer than a kernel takes for an answer of its own, which the emulator reads before it does
/// anything else.
const AT_ONCE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use lastbyte_capture::Point;
    use lastbyte_link::{Side, Time};

    use super::{Holds, Passage, of_network, passages};
    use crate::lab::browser::wire::ObservedPacket;

    const CLIENT: Side = Side::Client;
    const SERVER: Side = Side::Server;

    /// In ms.
    fn passage((sender, sent, delivered): (Side, u64, u64)) -> Passage {
        Passage {
            sender,
            holds: Holds::Data,
            sent: Time(sent * 1_000_000),
            delivered: Time(delivered * 1_000_000),
        }
    }

    fn acknowledgement(times: (Side, u64, u64)) -> Passage {
        Passage {
            holds: Holds::Acknowledgement,
            ..passage(times)
        }
    }

    fn network(passages: &[Passage], end: u64) -> Option<u64> {
        let network = of_network(passages, Time(end * 1_000_000))?;
        Some(network.as_millis() as u64)
    }

    /// A handshake over 25 ms each way: the client computes 2 for its hello, 3 for its request; the
    /// server 4 for its flight, 1 for tickets, 5 for its response.
    fn handshake() -> Vec<Passage> {
        vec![
            passage((CLIENT, 0, 25)),
            passage((SERVER, 25, 50)),
            acknowledgement((CLIENT, 50, 75)),
            passage((CLIENT, 52, 77)),
            passage((SERVER, 81, 106)),
            acknowledgement((CLIENT, 106, 131)),
            passage((CLIENT, 109, 134)),
            passage((SERVER, 135, 160)),
            passage((SERVER, 139, 164)),
        ]
    }

    #[test]
    fn ends_compute_while_nothing_that_is_waited_for_is_under_way() {
        let handshake = handshake();
        // Six times across it, whatever else came meanwhile.
        assert_eq!(network(&handshake, 164), Some(150));
        assert_eq!(164 - 150, 2 + 4 + 3 + 5);
        // The tickets were there before.
        assert_eq!(network(&handshake, 160), Some(150));
        assert_eq!(network(&handshake, 161), None);
        assert_eq!(network(&[], 0), None);
    }

    /// What the window does not let out waits for an acknowledgement, which is the network's time.
    #[test]
    fn a_window_is_of_the_network() {
        let mut all = handshake();
        all.push(acknowledgement((CLIENT, 164, 189)));
        all.push(passage((SERVER, 189, 214)));
        assert_eq!(network(&all, 214), Some(200));
    }

    /// The server computes for 60, and its tickets are acknowledged meanwhile.
    #[test]
    fn acknowledgements_are_not_what_a_program_waits_for() {
        let mut all = handshake();
        all.truncate(8);
        all.push(acknowledgement((CLIENT, 160, 185)));
        all.push(passage((SERVER, 194, 219)));
        assert_eq!(network(&all, 219), Some(150));
        assert_eq!(219 - 150, 2 + 4 + 3 + 60);
    }

    /// A link without delay has packets come when they are sent.
    #[test]
    fn packets_that_take_no_time_come_to_an_end() {
        let all = [
            (CLIENT, 7, 7),
            (SERVER, 7, 7),
            (CLIENT, 7, 7),
            (SERVER, 7, 7),
        ];
        assert_eq!(network(&all.map(passage), 7), Some(0));
    }

    /// One is lost, two are the same, and one is only seen behind the link. Of those that are the
    /// same, the latest is taken that can have come so early.
    #[test]
    fn a_packet_is_found_again_behind_the_link() {
        let seen = [
            (0, Point::SentByClient, "lost"),
            (1, Point::SentByClient, "a"),
            (2, Point::SentByClient, "a"),
            (3, Point::SentByServer, "a"),
            (9, Point::DeliveredToServer, "a"),
            (10, Point::DeliveredToClient, "a"),
            (11, Point::DeliveredToServer, "a"),
            (12, Point::DeliveredToServer, "another's"),
        ];
        let seen = seen.map(|(at, point, bytes)| ObservedPacket {
            at: Time(at * 1_000_000),
            point,
            bytes: bytes.as_bytes(),
        });
        let expected = [(CLIENT, 2, 9), (SERVER, 3, 10), (CLIENT, 1, 11)];
        assert_eq!(passages(&seen), expected.map(passage));
    }
}
