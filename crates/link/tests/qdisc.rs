//! Directions whose packets wait by a queue discipline.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::qdisc::{Queue, Surroundings, Waiting};
use lastbyte_link::{
    Direction, EcnCodepoint, Fate, Left, Packet, PacketKey, Passes, Pipe, Probability, Rate, Seed,
    Side, Time, Trace,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn pipe(direction: &Direction) -> Pipe {
    Pipe::new(direction, Seed(1).luck(0, Side::Client))
}

fn packet(ticket: u64, length: usize) -> Packet {
    Packet {
        ticket,
        length,
        key: PacketKey(ticket),
        flow: 0,
        ecn: EcnCodepoint::Ect0,
    }
}

/// What becomes of packets that are sent at these times, served whenever something happens.
fn carry(pipe: &mut Pipe, packets: &[(u64, usize)]) -> Vec<Left> {
    let mut left = Vec::new();
    for (ticket, (at, length)) in (0..).zip(packets) {
        while let Some(next) = pipe.next().filter(|next| next.0 < *at) {
            pipe.serve(next, &mut left);
        }
        let fate = pipe.accept(Time(*at), packet(ticket, *length));
        if fate != Fate::Waits {
            let marked = false;
            left.push(Left {
                ticket,
                fate,
                marked,
            });
        }
    }
    while let Some(next) = pipe.next() {
        pipe.serve(next, &mut left);
    }
    left.sort_by_key(|left| left.ticket);
    left
}

fn fates(left: &[Left]) -> Vec<Fate> {
    left.iter().map(|left| left.fate).collect()
}

fn slow(qdisc: &str) -> Direction {
    Direction {
        rate: Some("10mbit".parse().unwrap()),
        qdisc: Some(qdisc.parse().unwrap()),
        ..Direction::default()
    }
}

#[test]
fn a_packet_that_finds_no_room_is_dropped() {
    // 1236 bytes and a header take 1 ms.
    let packets = [(0, 1236); 5];
    let left = carry(&mut pipe(&slow("fifo limit 3")), &packets);
    let arrives = |ms: u64| Fate::Arrives(Time(ms * MS));
    assert_eq!(
        fates(&left),
        [
            arrives(1),
            arrives(2),
            arrives(3),
            Fate::Overflows,
            Fate::Overflows
        ]
    );
    let left = carry(&mut pipe(&slow("fifo limit 2ms")), &packets);
    assert_eq!(fates(&left)[2..4], [arrives(3), Fate::Overflows]);
    // The delay comes first, and takes no room.
    let far = Direction {
        delay: Duration::from_millis(100),
        ..slow("fifo limit 1")
    };
    let packets: Vec<_> = (0..50).map(|number| (number * MS, 1236)).collect();
    let left = carry(&mut pipe(&far), &packets);
    assert!(
        left.iter()
            .all(|left| matches!(left.fate, Fate::Arrives(_)))
    );
}

#[test]
fn a_queue_that_stands_is_shortened_and_who_can_is_marked() {
    // Twice what the link carries, for two seconds.
    let packets: Vec<_> = (0..4000).map(|number| (number * MS / 2, 1236)).collect();
    let delay = |left: &[Left]| {
        let last = left.iter().rev().find_map(|left| match left.fate {
            Fate::Arrives(at) => Some(at.since(Time(left.ticket * MS / 2))),
            _ => None,
        });
        last.unwrap()
    };
    let tail = carry(&mut pipe(&slow("fifo limit 10000")), &packets);
    assert!(delay(&tail) > Duration::from_millis(1900));
    for qdisc in [
        "codel",
        "fq_codel noecn",
        "pie",
        "red limit 100KB avpkt 1250B",
    ] {
        let left = carry(&mut pipe(&slow(qdisc)), &packets);
        let dropped = left.iter().filter(|left| left.fate == Fate::Overflows);
        assert!(dropped.count() > 20, "{qdisc}");
        assert!(delay(&left) < delay(&tail), "{qdisc}");
        assert!(left.iter().all(|left| !left.marked), "{qdisc}");
    }
    for qdisc in [
        "codel limit 5000 ecn",
        "fq_codel",
        "red limit 100MB min 5KiB max 60KB ecn",
    ] {
        let left = carry(&mut pipe(&slow(qdisc)), &packets);
        assert!(
            left.iter()
                .all(|left| matches!(left.fate, Fate::Arrives(_))),
            "{qdisc}"
        );
        assert!(
            left.iter().filter(|left| left.marked).count() > 20,
            "{qdisc}"
        );
    }
    // It marks until the probability says that this does not help.
    let left = carry(&mut pipe(&slow("dualpi2")), &packets);
    let dropped = left.iter().filter(|left| left.fate == Fate::Overflows);
    let marked = left.iter().filter(|left| left.marked);
    assert!(dropped.count() > 1000 && marked.count() > 10);
    assert!(delay(&left) < delay(&tail) / 2);
}

#[test]
fn who_waits_for_a_trace_that_has_ended_is_lost() {
    let trace = Trace::parse("a", Passes::Once, b"1\n2\n").unwrap();
    let direction = Direction {
        trace: Some(trace),
        ..Direction {
            rate: None,
            ..slow("codel")
        }
    };
    let left = carry(
        &mut pipe(&direction),
        &[(0, 1500), (0, 1500), (0, 40), (9 * MS, 40)],
    );
    let arrives = |ms: u64| Fate::Arrives(Time(ms * MS));
    assert_eq!(
        fates(&left),
        [arrives(1), arrives(2), Fate::Lost, Fate::Lost]
    );
}

/// What becomes of packets that come to a queue at these times, told of all of them before it begins: events one after the other, each at its
/// time.
fn event_by_event(direction: &Direction, packets: &[(u64, usize, u32)]) -> Vec<Left> {
    const HEADER: usize = 14;
    let rate = direction.rate.unwrap();
    let around = Surroundings {
        mtu: 1514,
        rate: Some(rate),
        begin: Time(0),
    };
    let mut queue = Queue::new(&direction.qdisc.unwrap(), around);
    let (mut left, mut dropped) = (Vec::new(), Vec::new());
    let mut coming = (0..).zip(packets).peekable();
    let mut out: Option<Time> = None;
    loop {
        let comes = coming.peek().map(|(_, (at, ..))| Time(*at));
        match (out, comes) {
            (Some(at), comes) if comes.is_none_or(|comes| at <= comes) => {
                queue.finish(at);
                out = None;
                take(&mut queue, at, rate, &mut out, &mut left, &mut dropped);
            }
            (_, Some(at)) => {
                let (ticket, (_, length, flow)) = coming.next().unwrap();
                let packet = Waiting {
                    ticket,
                    length: (length + HEADER) as u32,
                    flow: *flow,
                    ecn: EcnCodepoint::Ect0,
                    marked: false,
                };
                queue.enqueue(at, packet, || panic!(), &mut dropped);
                if out.is_none() {
                    take(&mut queue, at, rate, &mut out, &mut left, &mut dropped);
                }
            }
            (_, None) => break,
        }
    }
    left.extend(dropped.into_iter().map(|ticket| Left {
        ticket,
        fate: Fate::Overflows,
        marked: false,
    }));
    left.sort_by_key(|left| left.ticket);
    left
}

fn take(
    queue: &mut Queue,
    at: Time,
    rate: Rate,
    out: &mut Option<Time>,
    left: &mut Vec<Left>,
    dropped: &mut Vec<u64>,
) {
    if let Some(packet) = queue.dequeue(at, dropped) {
        let until = at + rate.serialisation(packet.length as usize);
        *out = Some(until);
        left.push(Left {
            ticket: packet.ticket,
            fate: Fate::Arrives(until),
            marked: packet.marked,
        });
    }
}

proptest! {
    /// A direction says of packets what becomes of them as soon as that is known, before it has happened: it is what happens.
    #[test]
    fn what_is_told_before_is_what_happens(
        delay in 0_u64..40_000_000,
        sends in proptest::collection::vec((0_u64..2_500_000, 20_usize..1500, 0_u32..3), 1..400),
        which in 0_usize..5,
    ) {
        const ALL: [&str; 5] = [
            "fifo limit 7", "fifo limit 4ms", "codel target 1ms interval 5ms", "codel limit 9 target 1ms interval 3ms ecn",
            "fq_codel limit 20 target 1ms interval 4ms noecn quantum 300B",
        ];
        let direction = Direction { delay: Duration::from_nanos(delay), ..slow(ALL[which]) };
        let packets: Vec<_> = sends
            .iter()
            .scan(0, |at, (gap, length, flow)| { *at += gap; Some((*at, *length, *flow)) })
            .collect();
        let mut pipe = pipe(&direction);
        let mut told = Vec::new();
        for (ticket, (at, length, flow)) in (0..).zip(&packets) {
            while let Some(next) = pipe.next().filter(|next| next.0 < *at) {
                pipe.serve(next, &mut told);
            }
            let packet = Packet { flow: *flow, ..packet(ticket, *length) };
            match pipe.accept(Time(*at), packet) {
                Fate::Waits => {}
                fate => told.push(Left { ticket, fate, marked: false }),
            }
        }
        while let Some(next) = pipe.next() {
            pipe.serve(next, &mut told);
        }
        told.sort_by_key(|left| left.ticket);
        let released: Vec<_> = packets.iter().map(|(at, length, flow)| (at + delay, *length, *flow)).collect();
        prop_assert_eq!(told, event_by_event(&direction, &released));
    }

    /// A queue that drops nobody and has one flow changes no arrival: neither behind a rate nor behind a trace.
    #[test]
    fn where_nobody_is_dropped_nothing_changes(
        delay in 0_u64..20_000_000,
        jitter in 0_u64..10_000_000,
        rate in 100_000_u64..1 << 34,
        traced: bool,
        loss in 0.0..0.3,
        sends in proptest::collection::vec((0_u64..3_000_000, 20_usize..2000), 1..100),
    ) {
        let trace = Trace::parse("a", Passes::Looped, b"0\n1\n1\n1\n4\n6\n6\n11\n").unwrap();
        let plain = Direction {
            // A draw below zero shortens netem's serialisation, which no queue does.
            delay: Duration::from_nanos(delay + jitter),
            jitter: Duration::from_nanos(jitter),
            loss: lastbyte_link::Loss::Random(Probability::from_fraction(loss).unwrap()),
            rate: lastbyte_link::Rate::from_bits_per_second(rate).filter(|_| !traced),
            trace: traced.then_some(trace),
            queue: u32::MAX,
            ..Direction::default()
        };
        let packets: Vec<_> = sends
            .iter()
            .scan(0, |at, (gap, length)| { *at += gap; Some((*at, *length)) })
            .collect();
        let expected = fates(&carry(&mut pipe(&plain), &packets));
        for qdisc in ["fifo limit 100000", "fq_codel limit 100000 target 60s", "codel limit 100000 target 60s"] {
            let queued = Direction { qdisc: Some(qdisc.parse().unwrap()), ..plain.clone() };
            prop_assert_eq!(&fates(&carry(&mut pipe(&queued), &packets)), &expected, "{}", qdisc);
        }
    }
}
