#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::num::NonZero;
use std::time::Duration;

use lastbyte_link::{Probability, Seed};
use proptest::prelude::*;

use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn cores(cores: u32) -> NonZero<u32> {
    NonZero::new(cores).unwrap()
}

fn rate(text: &str) -> PerSecond {
    text.parse().unwrap()
}

/// A server that computes so long with a ClientHello, and nothing else.
fn answers(answer: Duration) -> Computing {
    Computing {
        answer,
        ..Computing::default()
    }
}

fn mix_of(full: &[Computing]) -> Mix<'_> {
    Mix {
        full,
        resumed: &[],
        resumes: Probability::ZERO,
        wakes: Duration::ZERO,
    }
}

/// Three come at once to two cores: 10 ms with the hello, 5 ms later the Finished, with 2 ms.
///
/// | ms | core 1 | core 2 |
/// |---|---|---|
/// | 0 | hello 0 | hello 1 |
/// | 10 | hello 2 | free |
/// | 15 | | Finished 0 |
/// | 17 | | Finished 1 |
/// | 25 | Finished 2 | |
#[test]
fn by_hand() {
    let of = Computing {
        answer: ms(10),
        client: ms(5),
        finish: ms(2),
    };
    let served = serve(&[Duration::ZERO; 3], &[of; 3], cores(2), ms(0));
    let waiting = served.iter().map(|served| served.waiting);
    assert_eq!(waiting.collect::<Vec<_>>(), [ms(0), ms(2), ms(10)]);
    let done = served.iter().map(|served| served.done);
    assert_eq!(done.collect::<Vec<_>>(), [ms(17), ms(19), ms(27)]);
    assert!(served.iter().all(|served| served.computing == ms(12)));
    // Finished 0 finds core 2 free since 10 ms, 1 finds it at work, and 2 finds both free since 20 ms.
    let served = serve(&[Duration::ZERO; 3], &[of; 3], cores(2), ms(1));
    let waiting = served.iter().map(|served| served.waiting);
    assert_eq!(waiting.collect::<Vec<_>>(), [ms(1), ms(3), ms(11)]);
}

#[test]
fn a_storm_of_equal_handshakes_is_served_core_by_core() {
    let waits = in_storm(
        &mix_of(&[answers(ms(3))]),
        cores(4),
        1000,
        Duration::ZERO,
        Seed(1),
    );
    let waits = waits.unwrap();
    assert_eq!(waits.last, ms(3 * 250));
    assert_eq!(waits.at_server.p50, ms(3 * 125));
    assert_eq!(waits.at_server.p999, ms(3 * 250));
    assert_eq!(waits.waiting.p50, ms(3 * 124));
}

/// Erlang's C: that who arrives has to wait, with so many cores at this load of each.
fn erlang_c(cores: u32, load: f64) -> f64 {
    let offered = f64::from(cores) * load;
    let mut term = 1.0;
    let mut sum = 0.0;
    for k in 0..cores {
        sum += term;
        term *= offered / f64::from(k + 1);
    }
    let last = term / (1.0 - load);
    last / (sum + last)
}

/// Handshakes whose computing is exponential, by quantiles so fine that their mean is within 10^-4 of one millisecond.
fn exponential() -> Vec<Computing> {
    let steps = 20_000;
    let of = |step| {
        let place = (f64::from(step) + 0.5) / f64::from(steps);
        answers(Duration::from_secs_f64(-(1.0 - place).ln() / 1e3))
    };
    (0..steps).map(of).collect()
}

/// The formulas of M/M/c and M/D/1, which know nothing of this queue.
#[test]
fn what_theory_says_of_queues() {
    let exponential = exponential();
    let equal = [answers(ms(1))];
    let mean_wait = |mix: &Mix<'_>, of_cores, load: f64| {
        let many = 400_000;
        let at = PerSecond::new(load * mix.saturation(cores(of_cores)).unwrap().get()).unwrap();
        let arrivals = Arrivals::Steady(at);
        let served = served(mix, cores(of_cores), arrivals, many, Seed(7)).unwrap();
        let waiting: Duration = served.iter().map(|served| served.waiting).sum();
        1e3 * waiting.as_secs_f64() / many as f64
    };
    for (of_cores, load) in [(1, 0.5), (1, 0.8), (4, 0.7), (16, 0.9)] {
        let theory = erlang_c(of_cores, load) / (f64::from(of_cores) * (1.0 - load));
        let found = mean_wait(&mix_of(&exponential), of_cores, load);
        assert!(
            (found / theory - 1.0).abs() < 0.05,
            "{of_cores} {load}: {found} {theory}"
        );
    }
    // Pollaczek and Khinchine, without variance.
    for load in [0.3, 0.8] {
        let theory = load / (2.0 * (1.0 - load));
        let found = mean_wait(&mix_of(&equal), 1, load);
        assert!(
            (found / theory - 1.0).abs() < 0.03,
            "{load}: {found} {theory}"
        );
    }
}

/// Of M/M/1, the time at the server is exponential, too.
#[test]
fn percentiles_are_those_of_theory() {
    let exponential = exponential();
    let mix = mix_of(&exponential);
    let point = at_rate(&mix, cores(1), rate("500/s"), 400_000, Seed(3)).unwrap();
    assert!((point.load - 0.5).abs() < 1e-3, "{}", point.load);
    let waits = point.waits.unwrap();
    assert_eq!(waits.handshakes, 360_000);
    for (found, share) in [
        (waits.at_server.p50, 0.5),
        (waits.at_server.p99, 0.99),
        (waits.at_server.p999, 0.999),
    ] {
        let theory = -2.0 * f64::ln(1.0 - share);
        let found = 1e3 * found.as_secs_f64();
        assert!(
            (found / theory - 1.0).abs() < 0.06,
            "{share}: {found} {theory}"
        );
    }
}

#[test]
fn more_than_can_be_served_has_no_percentiles_but_growth() {
    let equal = [answers(ms(1))];
    let point = |text| at_rate(&mix_of(&equal), cores(2), rate(text), 1000, Seed(1)).unwrap();
    assert_eq!(point("2500/s").waits, None);
    assert_eq!(point("2500/s").grows(), Some(ms(250)));
    assert_eq!(point("2000/s").grows(), Some(ms(0)));
    assert_eq!(point("1999/s").grows(), None);
    assert_eq!(mix_of(&[]).mean(), None);
    assert_eq!(
        at_rate(&mix_of(&[]), cores(1), rate("1"), 10, Seed(1)),
        None
    );
    assert_eq!(mix_of(&[answers(ms(0))]).saturation(cores(1)), None);
}

#[test]
fn a_mix_is_of_both() {
    let [full, resumed] = [[answers(ms(4))], [answers(ms(1))]];
    let mix = Mix {
        full: &full,
        resumed: &resumed,
        resumes: "75%".parse().unwrap(),
        wakes: Duration::ZERO,
    };
    assert_eq!(mix.mean(), Some(Duration::from_micros(1750)));
    let drawn = (0..10_000).map(|index| mix.draw(Seed(1), index).unwrap());
    let resumed = drawn.filter(|drawn| drawn.answer == ms(1)).count();
    assert!((7300..7700).contains(&resumed), "{resumed}");
    // All of one kind need nothing of the other.
    let alone = Mix {
        full: &[],
        resumes: "100%".parse().unwrap(),
        ..mix
    };
    assert_eq!(alone.mean(), Some(ms(1)));
    assert!((0..100).all(|index| alone.draw(Seed(1), index).is_some()));
}

#[test]
fn schedules() {
    let steady = |text| Arrivals::Steady(rate(text)).times(10_000, Seed(1));
    let (once, twice) = (steady("100/s"), steady("200/s"));
    assert!(once.is_sorted());
    for (once, twice) in once.iter().zip(&twice) {
        assert!(once.abs_diff(*twice * 2) < Duration::from_micros(1));
    }
    let last = once.last().unwrap().as_secs_f64();
    assert!((95.0..105.0).contains(&last), "{last}");
    let within = Arrivals::Within(ms(1000)).times(1000, Seed(1));
    assert!(within.is_sorted() && within.iter().all(|time| *time < ms(1000)));
    let half = within.iter().filter(|time| **time < ms(500)).count();
    assert!((440..560).contains(&half), "{half}");
    assert_ne!(within, Arrivals::Within(ms(1000)).times(1000, Seed(2)));
    assert!(Arrivals::Steady(rate("0.01")).times(0, Seed(1)).is_empty());
}

#[test]
fn rates() {
    for (text, expected) in [
        ("500/s", "500"),
        ("2.5", "2.50"),
        ("12.34/s", "12.3"),
        ("1000000000", "1000000000"),
    ] {
        assert_eq!(rate(text).to_string(), expected);
    }
    for text in [
        "",
        "0",
        "0.001",
        "-1",
        "inf",
        "NaN",
        "1e3",
        "1000000001",
        "5/m",
        "0/s",
        ".",
        "1_0",
    ] {
        let error = text.parse::<PerSecond>().unwrap_err();
        assert!(error.contains("handshakes a second"), "{error}");
    }
}

#[test]
fn percentiles_are_the_least_time_that_is_not_exceeded() {
    let times = (1..=1000).rev().map(ms).collect();
    let found = ByPercentile::of(times);
    assert_eq!(
        [found.p50, found.p99, found.p999],
        [ms(500), ms(990), ms(999)]
    );
    assert_eq!(ByPercentile::of(vec![ms(3)]).p999, ms(3));
    assert_eq!(ByPercentile::of(Vec::new()), ByPercentile::default());
}

/// Another way to the same: each millisecond, every core that is free takes whoever has been ready longest.
fn by_steps(
    arrivals: &[Duration],
    computing: &[Computing],
    cores: u32,
    wakes: Duration,
) -> Vec<Served> {
    let mut served = vec![Served::default(); arrivals.len()];
    // Ready, Finished before hello, who.
    let mut ready: Vec<(Duration, bool, usize)> = (arrivals.iter().enumerate())
        .map(|(at, time)| (*time, true, at))
        .collect();
    let mut busy: Vec<(Duration, bool, usize)> = Vec::new();
    // Since when each core is free that is.
    let mut free = vec![Duration::ZERO; cores as usize];
    let mut now = Duration::ZERO;
    while !(ready.is_empty() && busy.is_empty()) {
        for (end, is_hello, who) in busy.extract_if(.., |(end, ..)| *end <= now) {
            free.push(end);
            if is_hello {
                ready.push((now + computing[who].client, false, who));
            } else {
                served[who].done = now;
            }
        }
        ready.sort();
        free.sort();
        while !free.is_empty() && ready.first().is_some_and(|(at, ..)| *at <= now) {
            let (at, is_hello, who) = ready.remove(0);
            let takes = if is_hello {
                computing[who].answer
            } else {
                computing[who].finish
            };
            let sleeps = free.remove(0) < at && !is_hello;
            let begins = now + if sleeps { wakes } else { Duration::ZERO };
            served[who].waiting += begins - at;
            served[who].computing += takes;
            busy.push((begins + takes, is_hello, who));
        }
        now += ms(1);
    }
    served
}

proptest! {
    #[test]
    fn step_by_step_it_is_the_same(
        handshakes in prop::collection::vec((0u64..30, 1u64..8, 1u64..8, 1u64..8), 0..30),
        of_cores in 1u32..5,
        wakes in 0u64..4,
    ) {
        let mut arrivals: Vec<Duration> = handshakes.iter().map(|of| ms(of.0)).collect();
        arrivals.sort();
        let computing: Vec<Computing> = (handshakes.iter())
            .map(|of| Computing { answer: ms(of.1), client: ms(of.2), finish: ms(of.3) })
            .collect();
        let found = serve(&arrivals, &computing, cores(of_cores), ms(wakes));
        prop_assert_eq!(found, by_steps(&arrivals, &computing, of_cores, ms(wakes)));
    }
}
