//! Loss: how it is written, and how often and in what bursts packets are lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_link::{
    BurstLength, Direction, Fate, Loss, Luck, PacketKey, Pipe, Probability, Seed, Side, Time,
};
use proptest::prelude::*;

fn loss(text: &str) -> Loss {
    text.parse().unwrap()
}

fn probability(text: &str) -> Probability {
    text.parse().unwrap()
}

fn luck(index: u32) -> Luck {
    Seed(1).luck(index, Side::Client)
}

/// Which of `packets` packets a pipe loses.
fn losses(loss: Loss, luck: Luck, packets: u32) -> Vec<bool> {
    let mut pipe = Pipe::new(
        &Direction {
            loss,
            ..Direction::default()
        },
        luck,
    );
    let mut is_lost =
        |i| pipe.send(Time(0), 1500, PacketKey::segment(0x10, 1448 * i, 0)) == Fate::Lost;
    (0..packets).map(&mut is_lost).collect()
}

#[test]
fn models_as_they_are_written() {
    let model = |p, r, h, k| Loss::GilbertElliott {
        to_bad: probability(p),
        to_good: probability(r),
        loss_in_bad: probability(h),
        loss_in_good: probability(k),
    };
    for (text, expected, shown) in [
        ("1%", Loss::Random(probability("1%")), "1%"),
        ("0.0%", Loss::NONE, "0%"),
        // As tc: r = 1-p, 1-h = 100 %, 1-k = 0 %.
        ("gemodel:1%", model("1%", "99%", "100%", "0%"), "gemodel:1%"),
        (
            "gemodel:1%/99%",
            model("1%", "99%", "100%", "0%"),
            "gemodel:1%",
        ),
        (
            "gemodel:1%/10%",
            model("1%", "10%", "100%", "0%"),
            "gemodel:1%/10%",
        ),
        (
            "gemodel:1%/10%/70%",
            model("1%", "10%", "70%", "0%"),
            "gemodel:1%/10%/70%",
        ),
        (
            "gemodel:1.0%/10%/70%/0.10%",
            model("1%", "10%", "70%", "0.1%"),
            "gemodel:1%/10%/70%/0.1%",
        ),
        (
            "gemodel:1%/10%/100%/0.1%",
            model("1%", "10%", "100%", "0.1%"),
            "gemodel:1%/10%/100%/0.1%",
        ),
        (
            "gemodel:1%/10%/100%/0%",
            model("1%", "10%", "100%", "0%"),
            "gemodel:1%/10%",
        ),
    ] {
        assert_eq!(loss(text), expected, "{text}");
        assert_eq!(expected.to_string(), shown);
        assert_eq!(loss(shown), expected, "{shown}");
    }
    // Not exactly 93 %, so that it must not be shown.
    assert_eq!(loss("gemodel:7%").to_string(), "gemodel:7%");
    assert_eq!(Loss::default(), Loss::NONE);
    assert_eq!(loss("3%").model(), None);
    assert_eq!(loss("gemodel:1%/10%").model().unwrap(), "gemodel:1%/10%");
}

#[test]
fn models_that_are_none() {
    const FORM: &str = r#"has another form: write gemodel:P[/R[/1-H[/1-K]]], such as "gemodel:1%/10%", or "5% in bursts of 4""#;
    for (text, expected) in [
        (
            "",
            r#"empty probability: write one such as "1%""#.to_owned(),
        ),
        (
            "1",
            r#"missing unit in probability "1": did you mean "1%"?"#.to_owned(),
        ),
        ("gemodel", format!(r#"loss "gemodel" {FORM}"#)),
        ("gemodel 1% 10%", format!(r#"loss "gemodel 1% 10%" {FORM}"#)),
        (
            "gemodel:1%/2%/3%/4%/5%",
            format!(r#"loss "gemodel:1%/2%/3%/4%/5%" {FORM}"#),
        ),
        (
            "gemodel:",
            r#"empty probability: write one such as "1%""#.to_owned(),
        ),
        (
            "gemodel:1%/",
            r#"empty probability: write one such as "1%""#.to_owned(),
        ),
        (
            "gemodel:1%/10",
            r#"missing unit in probability "10": did you mean "10%"?"#.to_owned(),
        ),
        (
            "gemodel:1%/101%",
            r#"probability "101%" is above 100%"#.to_owned(),
        ),
        (
            "gemdel:1%/10%",
            r#"unknown loss model "gemdel": did you mean "gemodel"?"#.to_owned(),
        ),
        (
            "state:1%",
            r#"unknown loss model "state": use "gemodel""#.to_owned(),
        ),
        (
            "5% in bursts of 0.9",
            r#"burst "0.9" is out of range: one packet is the shortest, and 4294967296 are the longest"#.to_owned(),
        ),
        (
            "5% in bursts of -4",
            r#""-4" is no number of packets: write one such as "4""#.to_owned(),
        ),
        (
            "5% in bursts of ",
            r#""" is no number of packets: write one such as "4""#.to_owned(),
        ),
        (
            "5 in bursts of 4",
            r#"missing unit in probability "5": did you mean "5%"?"#.to_owned(),
        ),
        (
            "60% in bursts of 1",
            r#"loss "60% in bursts of 1" can't be: a packet arrives between two bursts, so those of 1 lose 50% at most: lower the loss, or bursts of 1.5"#.to_owned(),
        ),
        (
            "100% in bursts of 9",
            r#"loss "100% in bursts of 9" can't be: a packet arrives between two bursts, so those of 9 lose 90% at most: lower the loss"#.to_owned(),
        ),
    ] {
        assert_eq!(text.parse::<Loss>().unwrap_err().to_string(), expected);
    }
}

#[test]
fn means() {
    for (text, mean) in [
        ("0%", 0.0),
        ("3%", 0.03),
        ("gemodel:1%", 0.01),
        ("gemodel:1%/9%", 0.1),
        ("gemodel:1%/9%/50%", 0.05),
        ("gemodel:1%/9%/50%/10%", 0.14 - 0.05 + 0.05),
        ("gemodel:0%/10%", 0.0),
        // It is good at first, and stays so.
        ("gemodel:0%/0%/100%/2%", 0.02),
        ("gemodel:5%/0%", 1.0),
        ("gemodel:100%/100%/100%/100%", 1.0),
        ("5% in bursts of 4", 0.05),
    ] {
        let found = loss(text).mean().fraction();
        assert!((found - mean).abs() < 1e-12, "{text}: {found}");
    }
    assert_eq!(loss("3%").of_first(), probability("3%"));
    assert_eq!(loss("gemodel:1%/9%/50%/2%").of_first(), probability("2%"));
}

/// Lengths of runs of `value`, but for those at the ends.
fn runs(losses: &[bool], value: bool) -> Vec<usize> {
    let runs: Vec<&[bool]> = losses.chunk_by(|a, b| a == b).collect();
    let inner = runs.get(1..runs.len() - 1).unwrap();
    inner
        .iter()
        .filter(|run| run.first() == Some(&value))
        .map(|run| run.len())
        .collect()
}

/// Geometric lengths of probability `p`: the mean is 1/p, the deviation sqrt(1-p)/p.
fn assert_geometric(lengths: &[usize], p: f64) {
    let n = lengths.len() as f64;
    let mean = lengths.iter().sum::<usize>() as f64 / n;
    let error = (1.0 - p).sqrt() / p / n.sqrt();
    assert!((mean - 1.0 / p).abs() < 5.0 * error, "{mean} of {n}");
    for least in [1, 2, 5, 10] {
        let share = (1.0 - p).powi(least - 1);
        let found = lengths
            .iter()
            .filter(|&&length| length >= least as usize)
            .count() as f64
            / n;
        let error = (share * (1.0 - share) / n).sqrt();
        assert!(
            (found - share).abs() <= 5.0 * error,
            "{found} have {least} or more"
        );
    }
}

#[test]
fn bursts_and_gaps_have_their_lengths() {
    let losses = losses(loss("gemodel:1%/20%"), luck(7), 2_000_000);
    assert_geometric(&runs(&losses, true), 0.2);
    assert_geometric(&runs(&losses, false), 0.01);
}

/// r = 1 / 4, p = r * 0.05 / 0.95: one in 76.
#[test]
fn bursts_by_their_mean_are_those_of_the_model() {
    let bursts = loss("5% in bursts of 4");
    let Loss::GilbertElliott {
        to_bad, to_good, ..
    } = bursts.in_tc()
    else {
        panic!("{bursts:?}");
    };
    assert_eq!(to_good, probability("25%"));
    assert!((to_bad.fraction() - 1.0 / 76.0).abs() < 1e-15, "{to_bad}");
    assert!((bursts.in_tc().mean().fraction() - 0.05).abs() < 1e-15);
    assert_eq!(
        losses(bursts, luck(7), 10_000),
        losses(bursts.in_tc(), luck(7), 10_000)
    );
    let losses = losses(bursts, luck(7), 2_000_000);
    assert_geometric(&runs(&losses, true), 0.25);
    assert_geometric(&runs(&losses, false), 1.0 / 76.0);
    assert_eq!(bursts.model().unwrap(), "5% in bursts of 4");
    // Every second one.
    let most = loss("50% in bursts of 1").in_tc();
    assert_eq!(most, loss("gemodel:100%/100%"));
    assert_eq!(loss("0% in bursts of 4"), Loss::NONE);
}

#[test]
fn packets_are_lost_as_often_as_the_mean_says() {
    const N: u32 = 2_000_000;
    for text in [
        "gemodel:2%",
        "gemodel:1%/10%",
        "gemodel:1%/10%/50%",
        "gemodel:1%/10%/50%/1%",
        "gemodel:60%/70%/30%/10%",
    ] {
        let Loss::GilbertElliott {
            to_bad, to_good, ..
        } = loss(text)
        else {
            panic!("{text}");
        };
        let lost = losses(loss(text), luck(3), N)
            .into_iter()
            .filter(|lost| *lost)
            .count();
        let found = lost as f64 / f64::from(N);
        let mean = loss(text).mean().fraction();
        // What neighbours have in common makes the error of the mean greater.
        let memory = 1.0 - to_bad.fraction() - to_good.fraction();
        let inflation = ((1.0 + memory) / (1.0 - memory)).max(1.0);
        let error = (mean * (1.0 - mean) * inflation / f64::from(N)).sqrt();
        assert!(
            (found - mean).abs() < 5.0 * error,
            "{text}: {found}, not {mean}"
        );
    }
}

/// With r = 1-p and no losses in the good state, each packet is lost alone: the model of Bernoulli.
#[test]
fn one_parameter_makes_no_bursts() {
    let losses = losses(loss("gemodel:30%"), luck(0), 500_000);
    assert_geometric(&runs(&losses, true), 0.7);
}

#[test]
fn a_connection_begins_in_the_good_state() {
    let first = |text| {
        (0..10_000)
            .filter(|i| losses(loss(text), luck(*i), 1)[0])
            .count()
    };
    assert_eq!(first("gemodel:100%/0%"), 0);
    assert!(first("gemodel:50%/50%/100%/20%").abs_diff(2000) < 5 * 40);
    let second = (0..1000)
        .filter(|i| losses(loss("gemodel:100%/0%"), luck(*i), 2)[1])
        .count();
    assert_eq!(second, 1000);
}

#[test]
fn arms_share_bursts() {
    let model = loss("gemodel:2%/20%/80%/1%");
    assert_eq!(losses(model, luck(5), 1000), losses(model, luck(5), 1000));
    assert_ne!(losses(model, luck(5), 1000), losses(model, luck(6), 1000));
}

fn parameter() -> impl Strategy<Value = Probability> {
    prop_oneof![
        Just(Probability::ZERO),
        Just(Probability::ONE),
        (0.0..=1.0).prop_map(|fraction| Probability::from_fraction(fraction).unwrap()),
        (0_u32..=1000).prop_map(|thousandths| format!("{}%", f64::from(thousandths) / 10.0)
            .parse()
            .unwrap()),
    ]
}

proptest! {
    #[test]
    fn models_round_trip(
        [to_bad, to_good, loss_in_bad, loss_in_good] in [parameter(), parameter(), parameter(), parameter()],
        bernoulli: bool,
    ) {
        let to_good = if bernoulli { to_bad.complement() } else { to_good };
        let loss = Loss::GilbertElliott { to_bad, to_good, loss_in_bad, loss_in_good };
        prop_assert_eq!(loss.to_string().parse(), Ok(loss));
        let (mean, bad, good) = (loss.mean().fraction(), loss_in_bad.fraction(), loss_in_good.fraction());
        prop_assert!(mean <= bad.max(good) + 1e-15 && mean >= bad.min(good) - 1e-15);
        prop_assert_eq!(Loss::Random(to_bad).to_string().parse(), Ok(Loss::Random(to_bad)));
    }

    #[test]
    fn bursts_round_trip(share in parameter(), packets in 1.0..1e6) {
        let length = BurstLength::new(packets).unwrap();
        let text = format!("{share} in bursts of {length}");
        match text.parse::<Loss>() {
            Ok(loss) => {
                prop_assert_eq!(loss.to_string().parse(), Ok(loss));
                let told = loss.in_tc().mean().fraction();
                prop_assert!((told - share.fraction()).abs() < 1e-12, "{} {}", told, share);
            }
            Err(_) => prop_assert!(share.fraction() > packets / (packets + 1.0)),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in r"\PC*|(gemodel)?:?([0-9.]{0,4}%?/?){0,6}|[0-9.]{0,4}%? in bursts of [0-9.]{0,4}") {
        match text.parse::<Loss>() {
            Ok(loss) => prop_assert_eq!(loss.to_string().parse(), Ok(loss)),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
