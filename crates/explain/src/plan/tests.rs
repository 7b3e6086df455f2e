#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use lastbyte_link::Seed;
use lastbyte_sizes::Resumption;

use super::*;
use lastbyte_results::reduce::{Reduction, Subject};
use lastbyte_results::{Metric, Percentile, fixtures};
use lastbyte_study::{Parameter, TransportName};

fn arm(text: &str) -> Arm {
    text.parse().unwrap()
}

fn plan_of(today: &str, planned: &str, own: &str) -> Plan {
    let (population, _) = usual_population(own, Path::new("/nowhere")).unwrap();
    let cell = Cell {
        population: Some(Arc::new(population)),
        ..Cell::default()
    };
    Plan::new(arm(today), arm(planned), cell, Amounts::default())
}

fn plan() -> Plan {
    plan_of("X25519MLKEM768/ecdsa-p256", "X25519MLKEM768/ml-dsa-44", "")
}

fn lever(name: &str) -> &'static Lever {
    Lever::all()
        .iter()
        .find(|lever| lever.name == name)
        .unwrap()
}

/// Connections of `plan`'s settings, each with this many milliseconds to the first byte.
fn measured(settings: &[Setting], ttfb: impl Fn(&str, u32) -> u64) -> Vec<Measured> {
    let experiment =
        fixtures::experiment(&[fixtures::CLASSICAL], vec![fixtures::cell("0%", "1B")], 1);
    let row = fixtures::samples(&experiment).remove(0).rows.remove(0);
    let of = |setting: &Setting| {
        let rows = (0..100).map(|index| {
            let mut row = row.clone();
            row.index = index;
            row.times.ttfb = Some(Duration::from_millis(ttfb(&setting.name, index)));
            row
        });
        Measured {
            setting: setting.clone(),
            rows: rows.collect(),
        }
    };
    settings.iter().map(of).collect()
}

#[test]
fn each_lever_changes_one_thing() {
    let plan = plan();
    let named: Vec<&str> = plan.levers.iter().map(|(lever, _)| lever.name).collect();
    let of_chains = Reduction::ALL.iter();
    let of_chains = of_chains.filter(|way| way.subject == Subject::Chain);
    let unavailable = |name: &str| plan.unavailable.iter().any(|(lever, _)| lever.name == name);
    let ways = of_chains
        .map(|way| way.name)
        .filter(|name| !unavailable(name));
    let own = ["window", "no intermediate", "resumption", "edge"];
    assert_eq!(named, own.into_iter().chain(ways).collect::<Vec<_>>());
    assert!(named.contains(&"MTC, landmark"), "{named:?}");
    for (lever, setting) in &plan.levers {
        let (one, other) = (&plan.planned, setting);
        let changed = [
            one.arm != other.arm,
            one.cell.initcwnd != other.cell.initcwnd,
            one.cell.population != other.cell.population,
        ];
        assert_eq!(
            changed.iter().filter(|changed| **changed).count(),
            1,
            "{}",
            lever.name
        );
    }
    let of = |name: &str| {
        &plan
            .levers
            .iter()
            .find(|(lever, _)| lever.name == name)
            .unwrap()
            .1
    };
    assert_eq!(of("window").cell.initcwnd, 32);
    assert_eq!(
        of("no intermediate").arm.label,
        "X25519MLKEM768/ml-dsa-44/intermediates=0"
    );
    // Whoever resumes does so still, and as many more as are missing.
    let sessions = |setting: &Setting| -> Vec<bool> {
        let session = |index| setting.arm.session(&setting.cell, index);
        (0..2000)
            .map(|index| session(index) != Resumption::Full)
            .collect()
    };
    let (few, many) = (sessions(&plan.planned), sessions(of("resumption")));
    assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
    let share = many.iter().filter(|resumes| **resumes).count();
    assert!((1860..1900).contains(&share), "{share}");
    // Half of each connection's own RTT.
    for index in 0..50 {
        let rtt = |setting: &Setting| setting.cell.of_connection(index).link.rtt();
        assert_eq!(rtt(of("edge")) * 2, rtt(&plan.planned));
    }
}

#[test]
fn what_can_not_be_pulled_has_a_reason() {
    let reasons = |planned: &str| -> String {
        let plan = plan_of("x25519/rsa-2048", planned, "");
        let reasons = plan.unavailable.iter();
        let reasons: Vec<_> = reasons
            .map(|(lever, reason)| format!("{}: {reason}", lever.name))
            .collect();
        format!("{planned}\n  {}", reasons.join("\n  "))
    };
    insta::assert_snapshot!(
        [
            "x25519/ml-dsa-44/intermediates=0",
            "x25519/ml-dsa-44:20000B",
            "x25519/chain.pem",
            "x25519/ml-dsa-44/stack=rustls/delivery=compressed",
            "x25519/ml-dsa-44/resume=94%",
            "x25519/ml-dsa-44/resume=ticket",
            "x25519/ml-dsa-44/client_stack=s2n-tls",
        ]
        .map(reasons)
        .join("\n")
    );
}

#[test]
fn together_each_has_one_more_than_the_one_before() {
    let plan = plan();
    let order = ["edge", "resumption", "window"].map(lever);
    let together = plan.together(&order);
    let names: Vec<&str> = together
        .iter()
        .map(|setting| setting.name.as_str())
        .collect();
    assert_eq!(names, ["edge + resumption", "edge + resumption + window"]);
    let all = together.last().unwrap();
    assert_eq!(all.cell.initcwnd, 32);
    assert!(plan.together(&order[..1]).is_empty());
    assert_eq!(by_cell(&plan.alone()).len(), 4);
}

#[test]
fn what_measured_settings_tell() {
    let plan = plan();
    let alone = measured(&plan.alone(), |name, index| match name {
        "today" => 100,
        "planned" => 130,
        "window" => 100,
        // Only every other connection gains.
        "resumption" if index % 2 == 0 => 100,
        "edge" => 60,
        _ => 130,
    });
    let percentiles = [Percentile::MEDIAN];
    let mut tale = Tale::new(&plan, Metric::Ttfb, &percentiles, Seed(1), &alone).unwrap();
    assert_eq!(tale.connections, 100);
    assert_eq!(tale.planned[0].mean.unwrap().value, 30.0);
    let gains: Vec<(&str, f64)> = (tale.levers.iter())
        .map(|(lever, gain)| (lever.name, gain.mean().unwrap().value))
        .collect();
    assert_eq!(
        gains[..3],
        [
            ("window", 30.0),
            ("resumption", 15.0),
            ("no intermediate", 0.0)
        ]
    );
    // What shortens every connection is told apart, however much it gains.
    let (edge, others) = gains[3..].split_last().unwrap();
    assert_eq!(*edge, ("edge", 70.0));
    assert!(others.iter().all(|(_, gain)| *gain == 0.0), "{gains:?}");
    let resumption = &tale.levers[1].1;
    let interval = resumption.mean().unwrap().interval;
    assert!(interval.low.unwrap() < 15.0 && interval.high.unwrap() > 15.0);
    assert_eq!(resumption.than_today.slower[0].connections.value, 0.5);

    let order: Vec<&str> = tale.order().iter().map(|lever| lever.name).collect();
    assert_eq!(order, ["window", "resumption"]);
    let settings = plan.together(&tale.order());
    let together = measured(&settings, |_, _| 50);
    tale.add_together(&percentiles, Seed(1), &alone, &together);
    assert_eq!(tale.together.len(), 1);
    assert_eq!(tale.together[0].mean().unwrap().value, 80.0);
    assert_eq!(tale.together[0].than_today.mean.unwrap().value, -50.0);

    // Measured settings of something else are no tale.
    assert!(Tale::new(&plan, Metric::Ttfb, &percentiles, Seed(1), &alone[..3]).is_none());
}

#[test]
fn what_the_user_says_is_not_taken_for_granted() {
    let keys = |own: &str| -> Vec<String> {
        let (_, usual) = usual_population(own, Path::new("/nowhere")).unwrap();
        usual.iter().map(|usual| usual.key.to_string()).collect()
    };
    assert_eq!(keys(""), ["rtt", "rate", "loss", "data", "resumes"]);
    assert_eq!(keys("rtt = \"5ms\"\n"), ["rate", "loss", "data", "resumes"]);
    assert_eq!(
        keys("[population.joint]\ndata_bytes = [1]\nresumes = [true]\n"),
        ["rtt", "rate", "loss"]
    );
    // What a kind of traffic says is told with who says so, but for what has another word.
    assert_eq!(
        keys("traffic = \"updates\"\nupload = \"5KiB\"\n"),
        [
            "rtt", "rate", "loss", "requests", "think", "data", "resumes", "mutual"
        ]
    );
    let (_, usual) = usual_population("traffic = \"web\"\n", Path::new("/nowhere")).unwrap();
    let data = usual.iter().find(|usual| usual.key == "data").unwrap();
    assert!(
        data.source.contains("HTTP Archive") && data.source.contains("; stated: "),
        "{data:?}"
    );
    let (population, _) = usual_population("rtt = \"5ms\"\n", Path::new("/nowhere")).unwrap();
    assert!(
        Parameter::drawable()
            .filter(|parameter| population.draws(*parameter))
            .count()
            >= 4
    );
    let error = usual_population("rtt = \"5\"\n", Path::new("/nowhere")).unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
}

/// Half of all have 100 ms, the others 10 ms; nobody resumes.
const HALF: &str = "joint = { class = [\"far\", \"near\"], rtt = [\"100ms\", \"10ms\"], weight = [1, 1] }\nrate = \"1gbit\"\n\
     loss = \"0%\"\nresumes = \"0%\"\ndata = \"20KiB\"\n";

fn mixed(
    plan: &Plan,
    share: &str,
    connections: u32,
    metric: Metric,
) -> Result<Transports, Unmixed> {
    let on_wire = |arm: &Arm| crate::wire(arm);
    let arithmetic = Arithmetic::first(plan, connections, &on_wire).unwrap();
    let told = (metric, &[Percentile::MEDIAN][..], Seed(1));
    Transports::new(plan, share.parse().unwrap(), &arithmetic, &on_wire, told)
}

/// ML-DSA-44 is a round trip over QUIC and nothing over TCP: those that wait are those who are far, over QUIC.
#[test]
fn all_together_are_those_over_tcp_and_those_over_quic() {
    let plan = plan_of(
        "X25519MLKEM768/ecdsa-p256",
        "X25519MLKEM768/ml-dsa-44",
        HALF,
    );
    let waits = |waiting: &lastbyte_results::Waiting| {
        let mut slower = waiting.slower.iter();
        let slower = slower.find(|slower| slower.step == NOTICEABLE).unwrap();
        (slower.connections.value * f64::from(waiting.connections)).round() as u32
    };
    let transports = mixed(&plan, "40%", 400, Metric::Ttfb).unwrap();
    let [(TransportName::Tcp, tcp), (TransportName::Quic, quic)] = &transports.of_each[..] else {
        panic!("{transports:?}")
    };
    assert_eq!(
        [&transports.all, tcp, quic].map(|waiting| waiting.connections),
        [400, 240, 160]
    );
    assert_eq!(waits(tcp), 0);
    // Of those who draw 100 ms, about half.
    let (far, _) = (waits(quic), assert_eq!(waits(&transports.all), waits(quic)));
    assert!((60..=100).contains(&far), "{far}");
    let mean = |waiting: &lastbyte_results::Waiting| waiting.mean.unwrap().value;
    let sum = 0.6 * mean(tcp) + 0.4 * mean(quic);
    assert!((mean(&transports.all) - sum).abs() < 1e-9, "{sum}");

    // All of them over one.
    let all = mixed(&plan, "100%", 400, Metric::Ttfb).unwrap();
    assert_eq!(all.of_each.len(), 1);
    assert_eq!(waits(&all.all), waits(&all.of_each[0].1));
}

#[test]
fn what_can_not_be_over_both() {
    let today = "X25519MLKEM768/ecdsa-p256";
    let error = |planned: &str, share: &str, metric| {
        let plan = plan_of(today, planned, HALF);
        mixed(&plan, share, 40, metric).unwrap_err().to_string()
    };
    for (planned, share, metric, expected) in [
        (
            "X25519MLKEM768/ml-dsa-44",
            "1%",
            Metric::Ttfb,
            "1% of 40 connections are none over QUIC",
        ),
        (
            "X25519MLKEM768/ml-dsa-44",
            "40%",
            Metric::Ttlb,
            "no last byte",
        ),
        (
            "X25519MLKEM768/ml-dsa-44/transport=quic",
            "40%",
            Metric::Ttfb,
            "is over QUIC already",
        ),
        (
            "X25519MLKEM768/ml-dsa-44/record_size=1400",
            "40%",
            Metric::Ttfb,
            "can't be had over QUIC",
        ),
    ] {
        let error = error(planned, share, metric);
        assert!(error.contains(expected), "{error}");
    }
}
