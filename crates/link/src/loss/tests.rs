#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// `q->loss && q->loss >= get_crandom()`, with what tc makes of a percentage.
#[test]
fn random_loss_at_its_edges() {
    let is_lost = |fraction: f64, number: u32| {
        let loss = Loss::Random(Probability::from_fraction(fraction).unwrap());
        loss.strikes(&mut State::Good, |_| number)
    };
    assert!(!is_lost(0.0, 0));
    assert!(is_lost(1.0, u32::MAX));
    assert!(is_lost(0.5, 1 << 31));
    assert!(!is_lost(0.5, (1 << 31) + 1));
    // 1 % is 42,949,673.
    assert!(is_lost(0.01, 42_949_673));
    assert!(!is_lost(0.01, 42_949_674));
    // Too little to be anything, and the least that is.
    assert!(!is_lost(1e-10, 0));
    assert!(is_lost(2e-10, 1));
    assert!(!is_lost(2e-10, 2));
}

/// `struct clgstate` of `net/sched/sch_netem.c`.
struct Clg {
    state: State,
    a1: u32,
    a2: u32,
    a3: u32,
    a4: u32,
}

/// `loss_gilb_ell` of `net/sched/sch_netem.c`, line by line. `numbers` are what
/// `prandom_u32_state` gives.
fn loss_gilb_ell(clg: &mut Clg, numbers: &mut VecDeque<u32>) -> bool {
    let mut prandom_u32_state = || numbers.pop_front().unwrap();
    match clg.state {
        State::Good => {
            if prandom_u32_state() < clg.a1 {
                clg.state = State::Bad;
            }
            if prandom_u32_state() < clg.a4 {
                return true;
            }
        }
        State::Bad => {
            if prandom_u32_state() < clg.a2 {
                clg.state = State::Good;
            }
            if prandom_u32_state() > clg.a3 {
                return true;
            }
        }
    }
    false
}

/// `rint(percent * UINT32_MAX)`, as `tc/q_netem.c` of iproute2 scales a percentage.
fn scaled(fraction: f64) -> u32 {
    (fraction * f64::from(u32::MAX)).round_ties_even() as u32
}

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => Just(0.0),
        2 => Just(1.0),
        1 => Just(1e-10),
        5 => 0.0..=1.0,
    ]
}

proptest! {
    #[test]
    fn bursts_are_those_of_netem(
        [p, r, h, k] in [probability(), probability(), probability(), probability()],
        packets in proptest::collection::vec((any::<u32>(), any::<u32>(), 0_usize..8, -1_i64..=1), 1..100),
    ) {
        let of = |fraction| Probability::from_fraction(fraction).unwrap();
        let loss = Loss::GilbertElliott {
            to_bad: of(p),
            to_good: of(r),
            loss_in_bad: of(h),
            loss_in_good: of(k),
        };
        // tc reads 1-h, and gives h.
        let mut clg = Clg {
            state: State::Good,
            a1: scaled(p),
            a2: scaled(r),
            a3: u32::MAX - scaled(h),
            a4: scaled(k),
        };
        let mut state = State::default();
        for (mut change, mut lost, edge, beside) in packets {
            // Some numbers next to where the decisions turn.
            let threshold = [clg.a1, clg.a2, clg.a3, clg.a4].get(edge / 2).copied();
            let number = u32::try_from(i64::from(threshold.unwrap_or_default()) + beside);
            match (number, edge % 2) {
                (Ok(number), 0) => change = number,
                (Ok(number), _) => lost = number,
                (Err(_), _) => (),
            }
            let expected = loss_gilb_ell(&mut clg, &mut [change, lost].into());
            let is_lost = loss.strikes(&mut state, |draw| match draw {
                Draw::Change => change,
                Draw::Loss => lost,
                Draw::Delay | Draw::Phase | Draw::Early => unreachable!(),
            });
            prop_assert_eq!((is_lost, state), (expected, clg.state));
        }
    }
}
