//! Traces of LTE and 5G are traces, and one seed's are the same.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use lastbyte_link::cellular::{Begins, Generation, Motion, Radio, Share, Signal};
use lastbyte_link::{Passes, Probability, Seed, Side, Trace};
use proptest::prelude::*;
use proptest::sample::select;

fn radios() -> impl Strategy<Value = Radio> {
    let widths = Generation::ALL.map(|generation| {
        select(generation.bandwidths()).prop_map(move |width| (generation, width))
    });
    let [lte, nr] = widths;
    let begins = select(vec![Begins::Connected, Begins::Idle]);
    let signals = select(Signal::ALL.to_vec());
    let motions = select(Motion::ALL.to_vec());
    (lte.prop_union(nr), signals, motions, 1_u32..=100, begins).prop_map(
        |((generation, bandwidth), signal, motion, percent, begins)| Radio {
            generation,
            bandwidth,
            signal,
            motion,
            share: Share::new(Probability::from_fraction(f64::from(percent) / 100.0).unwrap())
                .unwrap(),
            begins,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn traces_are_read_as_they_were_made(
        radio in radios(),
        seed in any::<u64>(),
        up in any::<bool>(),
        length in 1_u64..5000,
    ) {
        let toward = if up { Side::Server } else { Side::Client };
        let make = |seed| radio.trace("lte.trace", toward, Seed(seed), Duration::from_millis(length)).unwrap();
        let trace = make(seed);
        prop_assert_eq!(trace.period(), Duration::from_millis(length));
        let text: String = trace.opportunities().iter().map(|at| format!("{at}\n")).collect();
        let read = Trace::parse("lte.trace", Passes::Looped, text.as_bytes()).unwrap();
        prop_assert_eq!(&read, &trace);
        prop_assert_eq!(&make(seed), &trace);
        let seconds = trace.bits_by_second();
        prop_assert_eq!(seconds.len() as u64, length / 1000);
        prop_assert!(trace.longest_gap() <= trace.period());
        let in_seconds = trace.opportunities().iter().filter(|at| u64::from(**at) <= length / 1000 * 1000);
        prop_assert_eq!(seconds.iter().sum::<u64>(), in_seconds.count() as u64 * 1504 * 8);
    }
}

#[test]
fn seeds_are_users() {
    let radio = Radio {
        generation: Generation::Lte,
        bandwidth: Generation::Lte.bandwidth("20MHz").unwrap(),
        signal: Signal::Fair,
        motion: Motion::Walking,
        share: Share::new(Probability::ONE).unwrap(),
        begins: Begins::Connected,
    };
    let make = |seed, toward| radio.trace("t", toward, Seed(seed), Duration::from_secs(10));
    assert_ne!(make(1, Side::Client), make(2, Side::Client));
    assert_ne!(make(1, Side::Client), make(1, Side::Server));
}
