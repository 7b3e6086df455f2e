#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn due(at: u64, order: u64) -> Due {
    Due {
        at: Time(at),
        order,
        slot: 0,
        toward: Side::Client,
        what: What::Served,
    }
}

#[test]
fn packets_leave_by_time_and_then_by_arrival() {
    let mut queue = BinaryHeap::new();
    for (at, order) in [(20, 1), (10, 3), (10, 2), (30, 4), (20, 5), (10, 6)] {
        queue.push(Reverse(due(at, order)));
    }
    let left: Vec<_> = std::iter::from_fn(|| queue.pop())
        .map(|Reverse(due)| (due.at.0, due.order))
        .collect();
    assert_eq!(left, [(10, 2), (10, 3), (10, 6), (20, 1), (20, 5), (30, 4)]);
}

proptest! {
    #[test]
    fn packets_are_ordered_as_their_times_are(a in (0..4_u64, 0..4_u64), b in (0..4_u64, 0..4_u64)) {
        let (one, other) = (due(a.0, a.1), due(b.0, b.1));
        prop_assert_eq!(one.cmp(&other), a.cmp(&b));
        prop_assert_eq!(one == other, a == b);
    }
}

#[test]
fn buffers_are_reused_and_keep_apart() {
    let mut packets = Packets::within(Mtu::ETHERNET);
    let [first, second] = [packets.allocate(), packets.allocate()];
    packets.buffer(first).fill(1);
    packets.buffer(second).fill(2);
    // More memory moves the buffers, and not what is in them.
    let third = packets.allocate();
    packets.buffer(third).fill(3);
    assert_eq!(packets.get(first, 1500), [1; 1500]);
    assert_eq!(packets.get(second, 40), [2; 40]);

    packets.free(second);
    assert_eq!(packets.allocate(), second);
    assert_eq!(packets.bytes.len(), 3 * 1500);
}

/// A host that has no room for a datagram has lost it, and no link; TCP shows in its own counts that it sent a segment again.
#[test]
fn a_datagram_that_a_device_has_no_room_for_is_counted() {
    use nix::fcntl::OFlag;
    use std::io::Write;

    let (_read, device) = nix::unistd::pipe2(OFlag::O_NONBLOCK).unwrap();
    let mut full = std::fs::File::from(device.try_clone().unwrap());
    while full.write(&[0; 4096]).is_ok() {}
    let (link, shared) = (Link::default(), Shared::new(1));
    let mut emulator = Emulator::new(&device, &device, &link, Seed(1), 0, &shared, None);
    for (protocol, dropped) in [(libc::IPPROTO_TCP, 0), (libc::IPPROTO_UDP, 1)] {
        let packet = emulator.packets.allocate();
        let bytes = emulator.packets.buffer(packet);
        bytes[0] = 0x45;
        bytes[9] = protocol as u8;
        let due = Due {
            what: What::Arrives { packet, length: 28 },
            ..due(0, 0)
        };
        emulator.deliver(&due, packet, 28).unwrap();
        assert_eq!(emulator.report.dropped, dropped, "{protocol}");
    }
}

/// A header's checksum is right if all of its words add up to -0 (RFC 1071).
#[test]
fn a_mark_of_congestion_keeps_the_checksum_right() {
    let sum = |packet: &[u8]| {
        let words = packet
            .chunks(2)
            .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        (sum >> 16) + (sum & 0xffff)
    };
    for class in 0..=255_u8 {
        let mut packet = [
            0x45, class, 0, 60, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6,
        ];
        let checksum = !(sum(&packet) as u16);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(sum(&packet), 0xffff);
        mark_congestion(&mut packet);
        assert_eq!((packet[1], sum(&packet)), (class | 3, 0xffff), "{class}");
    }
    mark_congestion(&mut []);
}

#[test]
fn a_ticket_is_a_packet_and_its_length() {
    let parts = (59_999, u32::MAX - 1, 9216);
    let (slot, packet, length) = parts;
    assert_eq!(of_ticket(ticket(slot, packet, length)), parts);
}
