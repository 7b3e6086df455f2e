//! Rate traces: how they are written, what they carry, and that they end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::{
    Direction, Fate, Link, PacketKey, Passes, Pipe, Rate, Seed, Side, Time, Trace,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// What takes all of an opportunity.
const FULL: usize = 1500;

fn trace(text: &str, passes: Passes) -> Trace {
    Trace::parse("lte.trace", passes, text.as_bytes()).unwrap()
}

fn over(trace: Trace) -> Direction {
    Direction {
        trace: Some(trace),
        queue: u32::MAX,
        ..Direction::default()
    }
}

fn pipe(trace: Trace) -> Pipe {
    Pipe::new(&over(trace), Seed(1).luck(0, Side::Client))
}

/// When packets come out that come in at these times, in ms.
fn arrivals(pipe: &mut Pipe, packets: &[(u64, usize)]) -> Vec<Option<u64>> {
    let send = |(at, length): &(u64, usize)| match pipe.send(Time(at * MS), *length, PacketKey(0)) {
        Fate::Arrives(Time(at)) => {
            assert_eq!(at % MS, 0);
            Some(at / MS)
        }
        Fate::Lost => None,
        Fate::Overflows | Fate::Waits => panic!(),
    };
    packets.iter().map(send).collect()
}

#[test]
fn an_opportunity_is_a_packet() {
    let mut pipe = pipe(trace("0\n2\n2\n7\n10\n", Passes::Looped));
    let full = |at| (at, FULL);
    assert_eq!(
        arrivals(
            &mut pipe,
            &[
                full(0),
                full(0),
                full(0),
                full(0),
                full(8),
                full(8),
                full(8)
            ]
        ),
        // The end of a pass is the first line of the next, too.
        [0, 2, 2, 7, 10, 10, 12].map(Some)
    );
    // What nobody has used by then is gone.
    assert_eq!(
        arrivals(&mut pipe, &[full(113), full(113)]),
        [117, 120].map(Some)
    );
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_take_several() {
    let mut pipe = pipe(trace("1\n2\n3\n4\n", Passes::Looped));
    let packets = [(0, 496), (0, 496), (0, 500), (0, 500), (0, 3004), (0, 100)];
    // 500 + 500 + 504, then 504 + 1000 of 3008, 1504, 504 and 104.
    assert_eq!(arrivals(&mut pipe, &packets), [1, 1, 1, 2, 4, 4].map(Some));
    // What is left of the fourth is for those who are there at its time.
    assert_eq!(arrivals(&mut pipe, &[(4, 100), (5, 100)]), [4, 5].map(Some));
}

#[test]
fn a_trace_that_does_not_begin_again_carries_nothing_more() {
    let mut pipe = pipe(trace("1\n2\n", Passes::Once));
    let packets = [(0, FULL), (0, FULL), (0, FULL), (9, 40)];
    assert_eq!(
        arrivals(&mut pipe, &packets),
        [Some(1), Some(2), None, None]
    );
}

/// What Mahimahi's documentation promises, and what makes traces comparable.
#[test]
fn each_millisecond_carries_as_many_bytes_as_the_trace_says() {
    let lines: Vec<u64> = (0..2000_u64)
        .scan(0, |at, line| {
            *at += (line * line) % 7 / 3;
            Some(*at)
        })
        .collect();
    let text: String = lines.iter().map(|at| format!("{at}\n")).collect();
    let period = *lines.last().unwrap();
    let mut pipe = pipe(trace(&text, Passes::Looped));
    let mut carried = vec![0_u64; 3 * period as usize];
    // Of many sizes, always more than can go.
    for number in 0_usize.. {
        let length = 40 + number * 97 % 1461;
        let Fate::Arrives(Time(at)) = pipe.send(Time(0), length, PacketKey(0)) else {
            panic!()
        };
        let Some(millisecond) = carried.get_mut((at / MS) as usize) else {
            break;
        };
        *millisecond += length as u64 + Trace::HEADER as u64;
    }
    let (mut told, mut sent) = (0, 0);
    for (millisecond, carried) in carried.iter().enumerate() {
        let passes = (0..3).map(|pass| pass * period);
        let opportunities = passes.flat_map(|begin| lines.iter().map(move |at| begin + at));
        told += 1504 * opportunities.filter(|at| *at == millisecond as u64).count() as u64;
        sent += carried;
        // A packet counts when all of it is out.
        assert!(
            sent <= told && told - sent < 1504,
            "{millisecond}: {sent} of {told}"
        );
    }
}

#[test]
fn delays_come_before_it_and_keep_the_order() {
    let direction = Direction {
        delay: Duration::from_millis(10),
        jitter: Duration::from_millis(9),
        ..over(trace("1\n", Passes::Looped))
    };
    let mut pipe = Pipe::new(&direction, Seed(3).luck(0, Side::Client));
    let mut before = 0;
    for number in 0..100 {
        let fate = pipe.send(Time(number * MS), FULL, PacketKey(number));
        let Fate::Arrives(Time(at)) = fate else {
            panic!("{fate:?}")
        };
        assert!(at > before && at >= (number + 1) * MS);
        before = at;
    }
}

#[test]
fn connections_begin_anywhere_in_a_loop_and_both_directions_together() {
    let text: String = (1..=1000).map(|at| format!("{}\n", at * 3)).collect();
    let link = Link {
        forward: over(trace(&text, Passes::Looped)),
        backward: over(trace(&text, Passes::Looped)),
    };
    let begin = Time(77 * MS);
    let first = |link: &Link, index| {
        let pipes = link.pipes(Seed(5), index, begin);
        pipes.map(|mut pipe| match pipe.send(begin, FULL, PacketKey(0)) {
            Fate::Arrives(at) => at.since(begin),
            other => panic!("{other:?}"),
        })
    };
    let waits: Vec<_> = (0..1000).map(|index| first(&link, index)).collect();
    assert!(
        waits
            .iter()
            .all(|[up, down]| up == down && up.as_millis() < 3)
    );
    let mean = waits.iter().map(|[up, _]| up.as_secs_f64()).sum::<f64>();
    // The mean of 1000 from 0 to 3 ms.
    assert!(
        (mean - 1.5).abs() < 5.0 * 3.0 / 12_f64.sqrt() / 1000_f64.sqrt(),
        "{mean}"
    );
    let once = Link {
        backward: over(trace(&text, Passes::Once)),
        ..link
    };
    assert_eq!(first(&once, 4)[1].as_millis(), 3);
}

#[test]
fn at_its_best_a_link_has_the_mean_rate_of_its_trace() {
    let trace = trace("1\n2\n3\n3\n4\n", Passes::Looped);
    assert_eq!(trace.mean_rate(), "15.04mbit".parse::<Rate>().unwrap());
    assert_eq!(trace.period(), Duration::from_millis(4));
    let link = Link::symmetric(Duration::ZERO, over(trace.clone())).without_luck();
    assert_eq!(
        (&link.forward.trace, link.forward.rate),
        (&None, Some(trace.mean_rate()))
    );
}

#[test]
fn files_that_are_no_traces() {
    let many = "1\n".repeat(Trace::MOST + 1);
    for (text, expected) in [
        (
            "",
            r#""t" has no lines: write for each packet of 1504 bytes in which millisecond it can go"#,
        ),
        (
            "\n\n",
            r#""t" has no lines: write for each packet of 1504 bytes in which millisecond it can go"#,
        ),
        (
            "0\n0\n0\n",
            r#""t" has nothing but zeros: its last line is when it ends, 1 or later"#,
        ),
        (
            "1\n5\n4\n",
            r#""t", line 3: 4 comes after 5: sort its lines (sort -n)"#,
        ),
        (
            "1\n-5\n",
            r#""t", line 2: "-5" is no whole number of milliseconds from 0 to 4294967295: a trace has on each line when a packet of 1504 bytes can go"#,
        ),
        (
            "1.5\n",
            r#""t", line 1: "1.5" is no whole number of milliseconds from 0 to 4294967295: a trace has on each line when a packet of 1504 bytes can go"#,
        ),
        (
            "1\n4294967296\n",
            r#""t", line 2: "4294967296" is no whole number of milliseconds from 0 to 4294967295: a trace has on each line when a packet of 1504 bytes can go"#,
        ),
        (&many, r#""t" has more than 10000000 lines: cut it"#),
    ] {
        let error = Trace::parse("t", Passes::Looped, text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(
        trace("1\r\n2", Passes::Looped).period(),
        Duration::from_millis(2)
    );
}

#[test]
fn names_say_what_comes_after_the_last_line() {
    assert_eq!(Passes::of("a b.down"), ("a b.down", Passes::Looped));
    assert_eq!(Passes::of("a b.down once"), ("a b.down", Passes::Once));
    let [looped, once] = [Passes::Looped, Passes::Once].map(|passes| trace("1", passes));
    assert_eq!(looped.to_string(), "lte.trace");
    assert_eq!(once.to_string(), "lte.trace once");
    assert_ne!(looped.digest(), once.digest());
}

/// What a packet gets of a trace, opportunity by opportunity.
fn walked(lines: &[u32], packets: &[(u64, usize)]) -> Vec<u64> {
    let period = u64::from(*lines.last().unwrap());
    let passes = (0_u64..).map(|pass| pass * period);
    let mut opportunities =
        passes.flat_map(|begin| lines.iter().map(move |at| begin + u64::from(*at)));
    let (mut at, mut left, mut from) = (opportunities.next().unwrap(), 1504, 0);
    let mut out = Vec::new();
    for (sent, length) in packets {
        from = from.max(*sent);
        let mut rest = length + 4;
        loop {
            if at >= from && left > 0 {
                let used = rest.min(left);
                rest -= used;
                left -= used;
            }
            if rest == 0 {
                break;
            }
            at = opportunities.next().unwrap();
            left = 1504;
        }
        out.push(at);
        from = at;
    }
    out
}

proptest! {
    #[test]
    fn packets_go_as_if_each_opportunity_were_looked_at(
        steps in proptest::collection::vec(0_u32..9, 1..20),
        gaps in proptest::collection::vec((0_u64..40, 20_usize..4000), 1..40),
    ) {
        let lines: Vec<u32> = steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect();
        prop_assume!(lines.last() != Some(&0));
        let packets: Vec<(u64, usize)> = gaps
            .iter()
            .scan(0, |at, (gap, length)| { *at += gap / 3 * (gap % 3); Some((*at, *length)) })
            .collect();
        let text: String = lines.iter().map(|at| format!("{at}\n")).collect();
        let found = arrivals(&mut pipe(trace(&text, Passes::Looped)), &packets);
        let expected: Vec<_> = walked(&lines, &packets).into_iter().map(Some).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes_are_read_or_refused(text in r"([0-9]{0,3}\n){0,9}|\PC*") {
        match Trace::parse("t", Passes::Once, text.as_bytes()) {
            Ok(trace) => prop_assert!(trace.period() >= Duration::from_millis(1)),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
