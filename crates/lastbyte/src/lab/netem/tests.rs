#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_link::{Distribution, Passes, Rate, Trace};

use super::*;

const MS: Duration = Duration::from_millis(1);

/// The numbers of `struct tc_netem_qopt`, and the attributes behind it.
fn parse(options: &[u8]) -> (Vec<u32>, Vec<(u16, Vec<u8>)>) {
    let (qopt, mut rest) = options.split_at(24);
    let numbers = qopt
        .chunks(4)
        .map(|number| u32::from_ne_bytes(number.try_into().unwrap()))
        .collect();
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let kind = u16::from_ne_bytes([rest[2], rest[3]]);
        attributes.push((kind, rest[4..length].to_vec()));
        rest = &rest[length.next_multiple_of(4)..];
    }
    (numbers, attributes)
}

fn numbers(payload: &[u8]) -> Vec<u32> {
    let numbers = payload.chunks(4);
    numbers
        .map(|number| u32::from_ne_bytes(number.try_into().unwrap()))
        .collect()
}

fn gigabit() -> Direction {
    Direction {
        delay: 17 * MS,
        rate: Some("1gbit".parse().unwrap()),
        ..Direction::default()
    }
}

#[test]
fn a_plain_direction_is_delay_rate_queue_and_seed() {
    let options = options(&gigabit(), 0x1122_3344_5566_7788, Table::Send).unwrap();
    let (qopt, attributes) = parse(&options);
    assert_eq!(qopt, [0, 1000, 0, 0, 0, 0]);
    let expected: [(u16, Vec<u8>); 4] = [
        (10, 17_000_000i64.to_ne_bytes().to_vec()),
        (11, 0i64.to_ne_bytes().to_vec()),
        (6, [125_000_000u32, 0, 0, 0].map(u32::to_ne_bytes).concat()),
        // Which nothing is drawn from.
        (14, vec![0; 8]),
    ];
    assert_eq!(attributes, expected);
}

#[test]
fn what_draws_has_a_seed() {
    let lossy = Direction {
        loss: "1%".parse().unwrap(),
        ..gigabit()
    };
    let bursty = Direction {
        loss: "gemodel:0%/100%".parse().unwrap(),
        ..gigabit()
    };
    let jittery = Direction {
        jitter: MS,
        ..gigabit()
    };
    for (direction, draws) in [
        (gigabit(), false),
        (lossy, true),
        (bursty, true),
        (jittery, true),
    ] {
        let [one, other] = [1, 2].map(|seed| options(&direction, seed, Table::Keep).unwrap());
        assert_eq!(one != other, draws, "{direction:?}");
    }
}

#[test]
fn loss_is_in_parts_of_all_that_32_bits_hold() {
    for (loss, told) in [("0%", 0), ("5%", 214_748_365), ("100%", u32::MAX)] {
        let lossy = Direction {
            loss: loss.parse().unwrap(),
            ..gigabit()
        };
        let (qopt, _) = parse(&options(&lossy, 0, Table::Send).unwrap());
        assert_eq!(qopt[2], told, "{loss}");
    }
}

#[test]
fn a_gilbert_elliott_model_is_told_by_what_it_keeps_in_its_bad_state() {
    let bursty = Direction {
        loss: "gemodel:1%/10%/75%/0.5%".parse().unwrap(),
        ..gigabit()
    };
    let (qopt, attributes) = parse(&options(&bursty, 0, Table::Send).unwrap());
    assert_eq!(qopt[2], 0);
    let (_, loss) = attributes.iter().find(|(kind, _)| *kind == 5).unwrap();
    assert_eq!(loss[..4], [20, 0, 2, 0]);
    assert_eq!(
        numbers(&loss[4..]),
        [42_949_673, 429_496_730, 1_073_741_824, 21_474_836]
    );
}

#[test]
fn what_netem_has_not_is_refused() {
    let trace = Trace::parse("a.trace", Passes::Looped, b"1").unwrap();
    let traced = Direction {
        trace: Some(trace),
        rate: None,
        ..gigabit()
    };
    assert_eq!(
        options(&traced, 0, Table::Send).unwrap_err().to_string(),
        r#"netem has no rate traces ("a.trace"): use emulation = "link""#
    );
    let queued = Direction {
        qdisc: Some("fq_codel limit 20".parse().unwrap()),
        ..gigabit()
    };
    assert_eq!(
        options(&queued, 0, Table::Send).unwrap_err().to_string(),
        r#"netem has no queue disciplines (fq_codel limit 20): use emulation = "link""#
    );
    let kept = Direction {
        jitter: MS,
        order: Order::Kept,
        ..gigabit()
    };
    assert!(options(&kept, 0, Table::Send).is_ok());
    let kept = Direction { rate: None, ..kept };
    assert_eq!(
        options(&kept, 0, Table::Send).unwrap_err(),
        NetemError::Order
    );
    let still = Direction {
        jitter: Duration::ZERO,
        ..kept
    };
    assert!(options(&still, 0, Table::Send).is_ok());
}

#[test]
fn bursts_by_their_mean_are_a_gilbert_elliott_model() {
    let of = |loss: &str| {
        let bursty = Direction {
            loss: loss.parse().unwrap(),
            ..gigabit()
        };
        options(&bursty, 0, Table::Send).unwrap()
    };
    assert_eq!(of("50% in bursts of 4"), of("gemodel:25%/25%"));
    assert_ne!(of("50% in bursts of 4"), of("50%"));
}

#[test]
fn a_table_goes_along_once() {
    let jittery = Direction {
        jitter: 9 * MS,
        distribution: Distribution::Normal,
        ..gigabit()
    };
    let sent = |table| {
        let (_, attributes) = parse(&options(&jittery, 0, table).unwrap());
        attributes.into_iter().find(|(kind, _)| *kind == 2)
    };
    let (_, table) = sent(Table::Send).unwrap();
    assert_eq!(table.len(), 2 * 4096);
    let quantiles = Distribution::Normal.table().unwrap();
    assert_eq!(table[..2], quantiles[0].to_ne_bytes());
    assert_eq!(sent(Table::Keep), None);
}

#[test]
fn a_fast_rate_has_an_attribute_of_its_own() {
    let fast = Direction {
        rate: Rate::from_bits_per_second(400_000_000_000),
        ..gigabit()
    };
    let (_, attributes) = parse(&options(&fast, 0, Table::Send).unwrap());
    let rate = attributes.iter().find(|(kind, _)| *kind == 6).unwrap();
    let rate64 = attributes.iter().find(|(kind, _)| *kind == 8).unwrap();
    assert_eq!(numbers(&rate.1)[0], u32::MAX);
    assert_eq!(rate64.1, 50_000_000_000u64.to_ne_bytes());
}

#[test]
fn what_netem_cannot_do_is_refused_with_the_hint() {
    let odd = Direction {
        rate: Rate::from_bits_per_second(1_000_001),
        ..gigabit()
    };
    let wild = Direction {
        jitter: Duration::from_secs(3),
        ..gigabit()
    };
    let said = |direction: &Direction| options(direction, 0, Table::Send).unwrap_err().to_string();
    assert_eq!(
        said(&odd),
        "netem can't limit a rate to 1000001bit: use a multiple of 8 bits a second, or emulation = \"link\""
    );
    assert_eq!(
        said(&wild),
        "netem can't do a jitter of 3s: use 2.147s or less, or emulation = \"link\""
    );
}
