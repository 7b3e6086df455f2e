#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::mix;

/// Packets of each test.
const COUNT: u64 = 100_000;
/// Of an octet at the shaper's 10 Mbit/s.
const BYTE: i64 = 800;
/// Tokens that the shaper keeps: of 1502 bytes, so that no packet leaves when another comes.
const BURST: i64 = 1502 * BYTE;

/// A packet that came out: when, which, and whether it was marked.
type Out = (u64, u64, bool);

/// `sch_tbf` with a queue below it. It takes the next packet when the one before has left.
struct Shaper {
    queue: Queue,
    tokens: i64,
    at: u64,
    taken: Option<Waiting>,
    wakes: Option<u64>,
    out: Vec<Out>,
    dropped: Vec<u64>,
}

impl Shaper {
    fn new(qdisc: &str, begin: u64) -> Shaper {
        let around = Surroundings {
            // A TUN device has no header.
            mtu: 1500,
            rate: Some("10mbit".parse().unwrap()),
            begin: Time(begin),
        };
        Shaper {
            queue: Queue::new(&qdisc.parse().unwrap(), around),
            tokens: BURST,
            at: 0,
            taken: None,
            wakes: None,
            out: Vec::new(),
            dropped: Vec::new(),
        }
    }

    fn run(&mut self, now: u64) {
        self.wakes = None;
        loop {
            if self.taken.is_none() {
                self.taken = self.queue.dequeue(Time(now), &mut self.dropped);
            }
            let Some(packet) = self.taken else {
                self.queue.finish(Time(now));
                return;
            };
            let earned = i64::try_from(now - self.at).unwrap().min(BURST);
            let left = (earned + self.tokens).min(BURST) - i64::from(packet.length) * BYTE;
            if left < 0 {
                self.wakes = Some(now + left.unsigned_abs());
                return;
            }
            (self.tokens, self.at, self.taken) = (left, now, None);
            self.queue.finish(Time(now));
            self.out.push((now, packet.ticket, packet.marked));
        }
    }

    /// When it goes on: where a kernel's timer was late, as late.
    fn woken(&self, kernel: &HashMap<u64, (u64, bool)>) -> Option<u64> {
        const LATEST: u64 = 1000;
        let wakes = self.wakes?;
        let at = kernel.get(&self.taken?.ticket).map(|(at, _)| *at);
        Some(
            at.filter(|at| (wakes..wakes + LATEST).contains(at))
                .unwrap_or(wakes),
        )
    }
}

/// What `scripts/qdiscs` sends: when, and a packet.
fn arrivals(qdisc: &str, begin: u64) -> impl Iterator<Item = (u64, Waiting)> {
    let l4s = qdisc.starts_with("dualpi2");

    // Phases of 2048 packets, from half of what the link carries to three times as much.
    const LOADS: [u64; 8] = [60, 100, 110, 130, 50, 200, 300, 90];
    (0..COUNT).scan(begin, move |at, number| {
        let draw = mix(number);
        let load = LOADS[(number / 2048 % 8) as usize];
        let gap = 800 * 850 * 100 / load * (50 + draw / (1 << 16) % 101) / 100;
        *at += gap / 3200 * 3200 + 3200;
        let (flow, ect) = (draw / (1 << 32) % 8, draw / (1 << 40) % 2);
        let packet = Waiting {
            ticket: number,
            length: (200 + draw % 325 * 4) as u32,
            flow: (2 * flow + ect) as u32,
            ecn: match (ect, flow % 2) {
                (0, _) => EcnCodepoint::NotEct,
                (_, 1) if l4s => EcnCodepoint::Ect1,
                _ => EcnCodepoint::Ect0,
            },
            marked: false,
        };
        Some((*at + 40, packet))
    })
}

fn digest(out: &[Out]) -> u64 {
    let out = out.iter();
    out.fold(0, |digest, (_, ticket, marked)| {
        mix(digest ^ (2 * ticket + u64::from(*marked)))
    })
}

/// What came out of the guest kernel's disciplines (6.12.117): how many, how many of them marked, and which, in their order.
/// `scripts/qdiscs` has it again.
#[test]
fn each_packet_leaves_or_is_dropped_as_in_the_kernel() {
    for (qdisc, begin, out, marked, which) in KERNEL {
        let mut shaper = Shaper::new(qdisc, begin);
        for (at, packet) in arrivals(qdisc, begin) {
            while let Some(wakes) = shaper.wakes.filter(|wakes| *wakes <= at) {
                shaper.run(wakes);
            }
            let dropped = &mut shaper.dropped;
            shaper.queue.enqueue(Time(at), packet, || panic!(), dropped);
            if shaper.wakes.is_none() {
                shaper.run(at);
            }
        }
        while let Some(wakes) = shaper.wakes {
            shaper.run(wakes);
        }
        let marks = shaper.out.iter().filter(|(.., marked)| *marked).count();
        assert_eq!((shaper.out.len(), marks), (out, marked), "{qdisc}");
        assert_eq!(digest(&shaper.out), which, "{qdisc}");
        assert_eq!(shaper.out.len() + shaper.dropped.len(), COUNT as usize);
    }
}

/// Those that chance has no part in.
const KERNEL: [(&str, u64, usize, usize, u64); 6] = [
    (
        "fifo limit 100",
        715_000_000_000,
        83186,
        0,
        0xe1f8_3170_0afd_737d,
    ),
    (
        "fifo limit 64KiB",
        804_000_000_000,
        86115,
        0,
        0x7eea_5426_ddfb_3e6a,
    ),
    ("codel", 3_000_000_000, 88795, 0, 0x14d4_e0d3_69ef_5910),
    (
        "codel limit 200 target 10ms interval 50ms ecn",
        92_000_000_000,
        83536,
        2724,
        0xad53_f9ae_1792_e9f6,
    ),
    (
        "fq_codel quantum 1500B",
        181_000_000_000,
        91376,
        23641,
        0xfe89_cd25_8a5f_1950,
    ),
    (
        "fq_codel limit 300 noecn quantum 1500B",
        270_000_000_000,
        82765,
        0,
        0x320d_640e_469e_0d86,
    ),
];

/// Holds all disciplines against what a kernel did, which `scripts/qdiscs` has recorded in a folder, with the kernel's luck
/// where chance decides.
#[test]
fn recorded_packets_leave_or_are_dropped_as_in_the_kernel() {
    let Some(folder) = std::env::var_os("LASTBYTE_QDISCS") else {
        return;
    };
    for (name, qdisc) in [
        ("fifo", "fifo limit 100"),
        ("bytes", "fifo limit 64KiB"),
        ("codel", "codel"),
        ("codel_ecn", "codel limit 200 target 10ms interval 50ms ecn"),
        ("fq_codel", "fq_codel quantum 1500B"),
        ("fq_codel_small", "fq_codel limit 300 noecn quantum 1500B"),
        ("red", "red"),
        ("red_ecn", "red ecn"),
        // The kernel's timers come a jiffy after what they are set to (`calc_index` of kernel/time/timer.c).
        ("pie", "pie tupdate 16ms"),
        ("pie_ecn", "pie tupdate 16ms ecn"),
        ("dualpi2", "dualpi2"),
    ] {
        let folder = Path::new(&folder);
        if name == "dualpi2" && !folder.join("dualpi2.out").exists() {
            println!("{name}: this kernel had none (Linux 6.17 and later have)");
            continue;
        }
        // Where the kernel's timers began is not told.
        let phases = if name.starts_with("pie") { 0..16 } else { 0..1 };
        let begins = phases.map(Duration::from_millis);
        let held = begins.map(|early| hold(folder, name, qdisc, early));
        let best = held.max_by_key(|held| held.same).unwrap();
        println!("{name}: {best:?}");

        assert_eq!(best.draws.wrong, 0, "{name}");
        if best.chances == 0 {
            assert_eq!((best.own, best.same), (best.kernel, best.kernel), "{name}");
        } else {
            // A tick that comes late changes all after it, but not by much.
            let far = (best.struck - best.expected).abs() / best.expected;
            assert!(
                best.own.abs_diff(best.kernel) * 1000 < best.kernel,
                "{name}"
            );
            assert!(best.same > best.kernel / 10 && far < 0.02, "{name}: {far}");
        }
    }
}

/// How a discipline was against the kernel's.
#[derive(Debug, Default)]
struct Likeness {
    /// How many came out here and there, and how many of them at first are the same.
    own: usize,
    kernel: usize,
    same: usize,
    /// What chance decided, how often it struck in the kernel, and how often it should by the probabilities here.
    chances: u32,
    struck: f64,
    expected: f64,
    draws: Draws,
}

/// With a clock that has begun so much `early`.
fn hold(folder: &Path, name: &str, qdisc: &str, early: Duration) -> Likeness {
    let out = fs::read_to_string(folder.join(format!("{name}.out"))).unwrap();
    let mut lines = out.lines();
    let numbers =
        |line: &str| -> Vec<u64> { line.split(' ').map(|word| word.parse().unwrap()).collect() };
    let [begin, added] = numbers(lines.next().unwrap())[..] else {
        panic!("{name}: no beginning");
    };
    let kernel: Vec<Out> = lines
        .map(numbers)
        .map(|line| (begin + line[0], line[1], line[2] == 1))
        .collect();
    let fates: HashMap<u64, (u64, bool)> = (kernel.iter())
        .map(|(at, ticket, marked)| (*ticket, (*at, *marked)))
        .collect();
    let l4s = qdisc.starts_with("dualpi2");
    let begins = if l4s { added } else { begin };
    let mut shaper = Shaper::new(qdisc, begins - early.as_nanos() as u64);
    let mut held = Likeness::default();
    for (at, packet) in arrivals(qdisc, begin) {
        while let Some(wakes) = shaper.woken(&fates).filter(|wakes| *wakes <= at) {
            shaper.run(wakes);
        }
        let strikes = fates.get(&packet.ticket).is_none_or(|(_, marked)| *marked);
        let before = match &mut shaper.queue.machine {
            Machine::Red(red) => {
                // A draw decides about all packets up to the one that it strikes.
                red.draw = if strikes { 0 } else { u64::MAX };
                red.count
            }
            _ => None,
        };
        let is_asked = std::cell::Cell::new(false);
        let luck = || {
            is_asked.set(true);
            match packet.ecn {
                _ if !strikes => u64::MAX,
                // Its first draw strikes, and not the second, which has who is marked be dropped where more comes than marks can hold back.
                EcnCodepoint::Ect1 if fates.contains_key(&packet.ticket) => u64::MAX >> 32,
                _ => 0,
            }
        };
        shaper
            .queue
            .enqueue(Time(at), packet, luck, &mut shaper.dropped);
        match &shaper.queue.machine {
            Machine::Pie(pie) if is_asked.get() => {
                let p = (pie.probability as f64 / 2_f64.powi(56)).min(1.0);
                held.chances += 1;
                held.struck += f64::from(u8::from(strikes));
                held.expected += p;
            }
            Machine::Red(red) => held.draws.note(red, before, is_asked.get()),
            Machine::DualPi2(_) => held.chances += 1,
            _ => {}
        }
        if shaper.wakes.is_none() {
            shaper.run(at);
        }
    }
    while let Some(wakes) = shaper.woken(&fates) {
        shaper.run(wakes);
    }
    held.same = (shaper.out.iter().zip(&kernel))
        .take_while(|(own, other)| (own.1, own.2) == (other.1, other.2))
        .count();
    (held.own, held.kernel) = (shaper.out.len(), kernel.len());
    if l4s {
        let struck = |out: &[Out]| {
            let marked = out.iter().filter(|(.., marked)| *marked).count();
            (COUNT as usize - out.len() + marked) as f64
        };
        held.struck = struck(&kernel);
        held.expected = struck(&by_own_luck(qdisc, begin, begins));
    }
    held
}

/// What comes out by luck that is not the kernel's.
fn by_own_luck(qdisc: &str, begin: u64, begins: u64) -> Vec<Out> {
    let mut shaper = Shaper::new(qdisc, begins);
    for (at, packet) in arrivals(qdisc, begin) {
        while let Some(wakes) = shaper.wakes.filter(|wakes| *wakes <= at) {
            shaper.run(wakes);
        }
        let luck = || mix(!packet.ticket);
        (shaper.queue).enqueue(Time(at), packet, luck, &mut shaper.dropped);
        if shaper.wakes.is_none() {
            shaper.run(at);
        }
    }
    while let Some(wakes) = shaper.wakes {
        shaper.run(wakes);
    }
    shaper.out
}

/// What a draw of RED must have been, by whom it struck and whom not.
#[derive(Debug, Default)]
struct Draws {
    least: u64,
    count: u32,
    wrong: u32,
}

impl Draws {
    fn note(&mut self, red: &red::State, before: Option<u64>, is_drawn: bool) {
        let above = red.mean.saturating_sub(red.min) >> red.weight;
        match (before, red.count) {
            (Some(before), Some(_)) if is_drawn => {
                let most = (1_u64 << 32) / u64::from(red.slope);
                self.count += 1;
                let struck = above * (before + 1);
                self.wrong += u32::from(self.least > struck || self.least > most);
                self.least = 0;
            }
            (Some(_), Some(count)) => self.least = self.least.max(above * count + 1),
            _ => self.least = 0,
        }
    }
}

fn packet(ticket: u64, length: u32) -> Waiting {
    Waiting {
        ticket,
        length,
        flow: 0,
        ecn: EcnCodepoint::NotEct,
        marked: false,
    }
}

#[test]
fn a_fifo_holds_packets_bytes_or_a_time() {
    // A packet of 1250 bytes takes 1 ms, and the one on its way out is held.
    for (limit, held) in [
        ("3", 3),
        ("4999B", 3),
        ("5000B", 4),
        ("2500us", 3),
        ("3ms", 4),
    ] {
        let qdisc = format!("fifo limit {limit}").parse().unwrap();
        let around = Surroundings {
            mtu: 1514,
            rate: Some("10mbit".parse().unwrap()),
            begin: Time(0),
        };
        let mut queue = Queue::new(&qdisc, around);
        let mut dropped = Vec::new();
        for ticket in 0..10 {
            queue.enqueue(Time(0), packet(ticket, 1250), || 0, &mut dropped);
            if ticket == 0 {
                assert!(queue.dequeue(Time(0), &mut dropped).is_some());
            }
        }
        assert_eq!(
            (queue.packets(), dropped[0]),
            (held, u64::from(held)),
            "{limit}"
        );
        queue.finish(Time(0));
        assert_eq!(queue.packets(), held - 1);
    }
}

/// In `dualpi2`: who sends ECT(1) overtakes the others, is marked after 1 ms and never dropped; who sends ECT(0) is marked where others are
/// dropped.
#[test]
fn coupled_queues_tell_senders_apart() {
    let around = Surroundings {
        mtu: 1514,
        rate: Some("10mbit".parse().unwrap()),
        begin: Time(0),
    };
    let send = |ecn: EcnCodepoint, ticket| Waiting {
        ecn,
        ..packet(ticket, 1250)
    };
    let at = |ms: u64| Time(ms * 1_000_000);
    let mut queue = Queue::new(&Qdisc::DualPi2(DualPi2::default()), around);
    let mut dropped = Vec::new();
    for (ticket, ecn) in [
        EcnCodepoint::NotEct,
        EcnCodepoint::Ect0,
        EcnCodepoint::NotEct,
        EcnCodepoint::Ect1,
        EcnCodepoint::Ce,
    ]
    .into_iter()
    .enumerate()
    {
        let one = send(ecn, ticket as u64);
        queue.enqueue(at(0), one, || u64::MAX, &mut dropped);
    }
    // 1514 bytes of credit for each of 80 out of 100 that the classic queue has less of.
    let mut out = Vec::new();
    for ms in 0..5 {
        let one = queue.dequeue(at(ms), &mut dropped).unwrap();
        queue.finish(at(ms + 1));
        out.push((one.ticket, one.marked));
    }
    assert_eq!(
        out,
        [(3, false), (4, false), (0, false), (1, false), (2, false)]
    );
    assert!(dropped.is_empty());
    // Who waits longer than the threshold is marked, whatever its luck.
    for ticket in 0..4 {
        let one = send(EcnCodepoint::Ect1, ticket);
        queue.enqueue(at(10), one, || u64::MAX, &mut dropped);
    }
    let marks = (10..14).map(|ms| {
        let marked = queue.dequeue(at(ms), &mut dropped).unwrap().marked;
        queue.finish(at(ms + 1));
        marked
    });
    // The last of them wait alone, and 1 ms is not longer than 1 ms.
    assert_eq!(marks.collect::<Vec<_>>(), [false, false, true, true]);

    // A second of standing queue: by hand, the first change is (16 - 0 ms) * 819/256 + (16 - 15 ms) * 41/256, in 2^-32.
    let mut queue = Queue::new(&Qdisc::DualPi2(DualPi2::default()), around);
    for ticket in 0..1000 {
        let ecn = [EcnCodepoint::NotEct, EcnCodepoint::Ect0][ticket as usize % 2];
        queue.enqueue(at(0), send(ecn, ticket), || 0, &mut dropped);
    }
    assert!(dropped.is_empty());
    let first = queue.dequeue(at(16), &mut dropped).unwrap();
    let Machine::DualPi2(dual) = &queue.machine else {
        panic!("it is one");
    };
    let expected = (0.016 * 819.0 / 256.0 + 0.001 * 41.0 / 256.0) * 4_294_967_296.0;
    let off = f64::from(dual.probability) / expected - 1.0;
    assert!(off.abs() < 0.02, "{off}");
    // All luck strikes: who can't be marked is dropped.
    assert_eq!(
        (first.ticket, first.marked, &dropped[..]),
        (1, true, &[0][..])
    );
}

#[test]
fn disciplines_as_they_are_written() {
    for (text, canonical) in [
        ("fifo", "fifo limit 1000"),
        ("fifo limit 65536B", "fifo limit 64KiB"),
        ("fifo limit 50ms", "fifo limit 50ms"),
        ("codel", "codel"),
        (
            "codel  target 5ms ecn interval 50ms",
            "codel interval 50ms ecn",
        ),
        (
            "fq_codel noecn quantum 300B limit 17",
            "fq_codel limit 17 noecn quantum 300B",
        ),
        (
            "pie alpha 1 beta 10 target 20ms ecn",
            "pie target 20ms alpha 1 beta 10 ecn",
        ),
        ("red", "red"),
        (
            "red probability 5% limit 100KB",
            "red limit 100000B probability 5%",
        ),
        ("red min 5KiB max 15KiB ecn", "red min 5KiB max 15KiB ecn"),
        ("dualpi2 target 15ms step_thresh 1000us", "dualpi2"),
        (
            "dualpi2 coupling_factor 4 step_thresh 2ms",
            "dualpi2 step_thresh 2ms coupling_factor 4",
        ),
    ] {
        let qdisc: Qdisc = text.parse().unwrap();
        assert_eq!(qdisc.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(qdisc));
    }
}

#[test]
fn disciplines_that_are_none() {
    for (text, expected) in [
        (
            "cake",
            r#"unknown queue discipline "cake": use one of fifo, codel, fq_codel, pie, red, dualpi2"#,
        ),
        (
            "",
            r#"unknown queue discipline "": use one of fifo, codel, fq_codel, pie, red, dualpi2"#,
        ),
        (
            "fifo limit 0",
            r#"limit "0" has no room for any packet: write 1 packet or more"#,
        ),
        (
            "fifo limit 0ms",
            r#"limit "0ms" has no room for any packet: write 1 packet or more"#,
        ),
        (
            "fifo limit 9x",
            r#"limit "9x" is none: write packets (100), bytes (64KiB) or a time (50ms)"#,
        ),
        (
            "fifo ecn on",
            r#"queue discipline "fifo ecn on" has no setting "ecn": use "limit""#,
        ),
        (
            "codel limit",
            r#"queue discipline "codel limit" has nothing behind "limit": write its value"#,
        ),
        (
            "codel taget 5ms",
            r#"queue discipline "codel taget 5ms" has no setting "taget": did you mean "target"?"#,
        ),
        (
            "codel target 0ms",
            r#"duration "0ms" is none of a queue: write whole microseconds from 1ms to 60s"#,
        ),
        (
            "pie limit -1",
            r#""-1" is no whole number: write one such as "100""#,
        ),
        (
            "pie alpha 33",
            r#"gain "33" is none: write 0 to 32, in 1/16 per second"#,
        ),
        (
            "dualpi2 ecn",
            r#"queue discipline "dualpi2 ecn" has no setting "ecn": use one of limit, target, tupdate, step_thresh, coupling_factor"#,
        ),
        (
            "dualpi2 coupling_factor 256",
            r#"coupling factor "256" is none: write 1 to 255"#,
        ),
        (
            "red min 9KiB max 8KiB",
            r#"queue discipline "red min 9KiB max 8KiB" can't be: 9KiB (min), 8KiB (max) and 400000B (limit) have to grow"#,
        ),
    ] {
        assert_eq!(text.parse::<Qdisc>().unwrap_err().to_string(), expected);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in r"(fifo|codel|fq_codel|pie|red|dualpi2)( (limit|target|interval|min|max|ecn|alpha|step_thresh) ?[0-9]{0,3}(ms|KiB)?){0,4}|\PC*",
    ) {
        match text.parse::<Qdisc>() {
            Ok(qdisc) => prop_assert_eq!(qdisc.to_string().parse(), Ok(qdisc)),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }

    /// Whatever comes and goes, each packet leaves once or is dropped once, and a queue holds no more than it says.
    #[test]
    fn no_packet_is_lost_without_a_word(
        which in 0_usize..7,
        steps in proptest::collection::vec((0_u64..3_000_000, 40_u32..1515, 0_u32..4, any::<bool>(), any::<u64>()), 1..300),
    ) {
        const ALL: [&str; 7] = [
            "fifo limit 10", "codel limit 10 target 1ms interval 3ms", "fq_codel limit 10 target 1ms interval 3ms", "pie limit 10 target 1ms tupdate 1ms ecn",
            "dualpi2 limit 10 target 1ms tupdate 1ms", "red limit 15000B avpkt 500B probability 50% ecn", "fifo limit 4ms",
        ];
        let around = Surroundings { mtu: 1514, rate: Some("10mbit".parse().unwrap()), begin: Time(0) };
        let mut queue = Queue::new(&ALL[which].parse().unwrap(), around);
        let (mut now, mut dropped, mut out) = (Time(0), Vec::new(), Vec::new());
        for (ticket, (gap, length, flow, takes, luck)) in steps.iter().enumerate() {
            now = now + Duration::from_nanos(*gap);
            let ecn = EcnCodepoint::of_class(*flow as u8);
            let one = Waiting { flow: *flow, ecn, ..packet(ticket as u64, *length) };
            queue.enqueue(now, one, || *luck, &mut dropped);
            prop_assert!(queue.packets() <= 10 + 100 * u32::from(which > 4));
            if *takes {
                queue.finish(now);
                out.extend(queue.dequeue(now, &mut dropped).map(|packet| packet.ticket));
            }
        }
        queue.finish(now);
        while let Some(packet) = queue.dequeue(now, &mut dropped) {
            out.push(packet.ticket);
            queue.finish(now);
        }
        prop_assert!(!queue.is_waiting() && queue.packets() == 0);
        out.extend(dropped);
        out.sort_unstable();
        prop_assert_eq!(out, (0..steps.len() as u64).collect::<Vec<_>>());
    }
}
