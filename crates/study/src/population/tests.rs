#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use lastbyte_link::Bytes;
use proptest::prelude::*;

use super::*;
use crate::Study;

const REST: &str = "\n[arm.one]\ntls = \"x25519/rsa-2048\"\n[[measure]]\nid = \"users\"\n";

fn parse(population: &str) -> Result<Study, String> {
    let text = format!("[population]\n{population}{REST}");
    Study::parse(&text, Path::new("study.toml")).map_err(|error| error.to_string())
}

fn cell(population: &str) -> Cell {
    parse(population).unwrap().measures[0].experiment.cells[0].clone()
}

fn error(population: &str) -> String {
    let error = parse(population).unwrap_err();
    assert!(!error.contains('\n'), "{error}");
    let here = std::env::current_dir().unwrap();
    error.replace(&format!("{}/", here.display()), "")
}

fn rtts(cell: &Cell, count: u32) -> Vec<Duration> {
    (0..count)
        .map(|index| cell.of_connection(index).link.rtt())
        .collect()
}

#[test]
fn a_draw_depends_on_the_seed_and_the_index_alone() {
    let text = "rtt = { median = \"30ms\", p95 = \"120ms\" }\ndata = \"10KiB\"\n";
    let one = cell(text);
    let drawn = rtts(&one, 100);
    assert_eq!(drawn, rtts(&cell(text), 100));
    assert!(drawn.windows(2).any(|pair| pair[0] != pair[1]));
    let other = Population {
        seed: Seed(2),
        ..(**one.population.as_ref().unwrap()).clone()
    };
    let other = Cell {
        population: Some(Arc::new(other)),
        ..one
    };
    assert_ne!(drawn, rtts(&other, 100));
}

#[test]
fn numbers_are_distributed_as_they_should() {
    let quantile = |times: &mut Vec<Duration>, share: f64| {
        times.sort_unstable();
        times[(share * times.len() as f64) as usize].as_secs_f64() * 1e3
    };
    // Of 200000, these are off by some 1 %.
    for (text, expected) in [
        (
            "{ median = \"30ms\", p95 = \"120ms\" }",
            [(0.5, 30.0), (0.95, 120.0), (0.05, 7.5)],
        ),
        (
            "{ uniform = [\"10ms\", \"50ms\"] }",
            [(0.5, 30.0), (0.95, 48.0), (0.05, 12.0)],
        ),
        (
            "{ mean = \"100ms\" }",
            [(0.5, 69.3), (0.95, 299.6), (0.05, 5.13)],
        ),
        (
            "{ percentiles = { p0 = \"0ms\", p50 = \"20ms\", p100 = \"100ms\" } }",
            [(0.5, 20.0), (0.95, 92.0), (0.05, 2.0)],
        ),
        (
            "{ values = [\"1ms\", \"2ms\", \"3ms\"], weights = [1, 8, 1] }",
            [(0.5, 2.0), (0.95, 3.0), (0.05, 1.0)],
        ),
    ] {
        let mut times = rtts(&cell(&format!("rtt = {text}\n")), 200_000);
        for (share, ms) in expected {
            let found = quantile(&mut times, share);
            assert!(
                (found / ms - 1.0).abs() < 0.03,
                "{text}: {share} is {found}, not {ms}"
            );
        }
    }
}

#[test]
fn bounds_hold() {
    let cell = cell("rtt = { mean = \"100ms\", least = \"20ms\", most = \"90ms\" }\n");
    let times = rtts(&cell, 1000);
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert_eq!((least.as_millis(), most.as_millis()), (20, 90));
}

#[test]
fn rows_of_a_joint_table_stay_together() {
    let cell = cell(
        "[population.joint]\nrtt_ms = [10, 200]\ndata = [\"1KiB\", \"5KiB\"]\nclass = [\"near\", \"far\"]\nweight = [3, 1]\n",
    );
    let mut seen = HashMap::<String, u32>::new();
    for index in 0..4000 {
        let (draw, of) = (cell.draw(index).unwrap(), cell.of_connection(index));
        let expected = match draw.class.as_deref() {
            Some("near") => (Duration::from_millis(10), Bytes(1024)),
            _ => (Duration::from_millis(200), Bytes(5120)),
        };
        assert_eq!((of.link.rtt(), of.data), expected);
        *seen.entry(draw.class.unwrap().to_string()).or_default() += 1;
    }
    let near = f64::from(seen["near"]) / 4000.0;
    assert!((0.72..0.78).contains(&near), "{near}");
}

#[test]
fn a_row_without_weight_is_never_drawn() {
    let cell = cell("[population.joint]\nrtt = [\"1ms\", \"2ms\", \"3ms\"]\nweight = [0, 1, 0]\n");
    assert!(rtts(&cell, 500).iter().all(|rtt| rtt.as_millis() == 2));
}

#[test]
fn users_keep_their_link_and_draw_what_they_ask() {
    let cell = cell(
        "connections_per_user = 10\nrtt = { mean = \"100ms\" }\ndata = { mean = \"100KiB\" }\n",
    );
    for user in 0..20 {
        let own: Vec<_> = (10 * user..10 * user + 10)
            .map(|index| cell.of_connection(index))
            .collect();
        assert!(own.windows(2).all(|pair| pair[0].link == pair[1].link));
        assert!(own.windows(2).any(|pair| pair[0].data != pair[1].data));
        assert_eq!(cell.user(10 * user + 9), user);
    }
    assert_ne!(cell.of_connection(9).link, cell.of_connection(10).link);
}

#[test]
fn arms_resume_in_the_order_of_their_shares() {
    let cell = cell("resumes = \"50%\"\nearly_data = \"20%\"\nrtt = \"10ms\"\n");
    let sessions = |tls: &str| -> Vec<Resumption> {
        let arm: Arm = tls.parse().unwrap();
        (0..4000).map(|index| arm.session(&cell, index)).collect()
    };
    let share = |sessions: &[Resumption], of| {
        sessions.iter().filter(|session| **session == of).count() as f64 / sessions.len() as f64
    };
    let half = sessions("x25519/rsa-2048");
    assert!((0.47..0.53).contains(&share(&half, Resumption::Full)));
    assert!((0.08..0.12).contains(&share(&half, Resumption::EarlyData)));
    // Whoever resumes at 50 % does so at 80 %.
    let most = sessions("x25519/rsa-2048/resume=80%");
    for (half, most) in half.iter().zip(&most) {
        assert!(*half == Resumption::Full || *most != Resumption::Full);
    }
    assert!((0.77..0.83).contains(&share(&most, Resumption::Ticket)));
    for (word, all) in [("no", Resumption::Full), ("ticket", Resumption::Ticket)] {
        let sessions = sessions(&format!("x25519/rsa-2048/resume={word}"));
        assert!(sessions.iter().all(|session| *session == all), "{word}");
    }
    let early = sessions("x25519/rsa-2048/resume=100%/early_data=100%");
    assert!(
        early
            .iter()
            .all(|session| *session == Resumption::EarlyData)
    );
}

#[test]
fn shares_go_by_class() {
    let cell = cell(
        "rtt = \"10ms\"\nclass = { values = [\"cdn\", \"other\"] }\nresumes = { cdn = \"100%\", other = \"0%\" }\n",
    );
    let arm: Arm = "x25519/rsa-2048".parse().unwrap();
    for index in 0..200 {
        let is_cdn = cell.draw(index).unwrap().class.as_deref() == Some("cdn");
        assert_eq!(arm.session(&cell, index) == Resumption::Ticket, is_cdn);
    }
}

#[test]
fn what_is_listed_is_what_would_be_drawn() {
    let text = "connections_per_user = 3\nrtt = { mean = \"100ms\" }\nresumes = \"50%\"\nclass = { values = [\"a\", \"b\"] }\n";
    let study = parse(text).unwrap();
    let cell = &study.measures[0].experiment.cells[0];
    let arm = &study.measures[0].experiment.arms[0];
    let listed = cell.population.as_ref().unwrap().listed(arm, 250..500);
    let mut other = study.clone();
    other.measures[0].experiment.cells[0].population = Some(Arc::new(listed));
    let read = Study::parse(&other.to_toml(), Path::new("job.toml")).unwrap();
    let known = &read.measures[0].experiment.cells[0];
    for index in 250..500 {
        assert_eq!(
            known.draw(index).unwrap().class,
            cell.draw(index).unwrap().class
        );
        assert_eq!(
            known.of_connection(index).link,
            cell.of_connection(index).link
        );
        assert_eq!(arm.session(known, index), arm.session(cell, index));
        assert_eq!(known.user(index), cell.user(index));
    }
}

#[test]
fn what_is_written_is_read_as_the_same() {
    for text in [
        "rtt = { median = \"30ms\", p95 = \"120ms\", most = \"1s\" }\nrate = { values = [\"10mbit\", \"unlimited\"] }\n",
        "rtt = { percentiles = { p0 = \"1ms\", p50 = \"20ms\", \"p99.9\" = \"1s\", p100 = \"2s\" } }\nloss = { uniform = [\"0%\", \"2%\"] }\n",
        "rtt = { mean = \"30ms\" }\nresumes = { a = \"94%\", b = \"46%\" }\nclass = { values = [\"a\", \"b\"], weights = [0.5, 2] }\n",
        "early_data = \"10%\"\n[population.joint]\nrtt = [\"1ms\", \"2ms\"]\nresumes = [true, false]\nclass = [\"x\", \"y\"]\n",
    ] {
        let study = parse(text).unwrap_or_else(|error| panic!("{text}{error}"));
        let written = study.to_toml();
        let read = Study::parse(&written, Path::new("study.toml"));
        let read = read.unwrap_or_else(|error| panic!("{written}{error}"));
        let (one, other) = (&study.measures[0].experiment, &read.measures[0].experiment);
        assert_eq!(one.cells, other.cells);
        for index in 0..100 {
            assert_eq!(
                one.cells[0].draw(index),
                other.cells[0].draw(index),
                "{text}"
            );
        }
        assert_eq!(written, read.to_toml());
    }
}

/// In TOML, what Rust shows in braces is no text.
#[test]
fn any_name_is_written_as_it_is_read() {
    for class in [
        "Que\u{301}bec",
        "Iran\u{200c}ian",
        "\u{1b}[31m",
        "a\"b\\c",
        "\u{202e}x",
    ] {
        let joint = Joint::new(
            vec![
                ("rtt_ms".to_owned(), vec!["5".to_owned()]),
                ("class".to_owned(), vec![class.to_owned()]),
            ],
            None,
        );
        let population = Population {
            joint: vec![joint.unwrap()],
            ..Population::empty(Seed(1))
        };
        let arm: Arm = "x25519/rsa-2048".parse().unwrap();
        for text in [
            population.to_toml(),
            population.listed(&arm, 0..2).to_toml(),
        ] {
            let text = text.strip_prefix("[population]\n").unwrap();
            let read = Population::parse(text, Path::new("study.toml"));
            let read = read.unwrap_or_else(|error| panic!("{text}{error}"));
            assert_eq!(read.draw(1).class.as_deref(), Some(class));
        }
    }
}

#[test]
fn as_many_resume_as_are_asked_for_and_those_that_did() {
    let table =
        "[population.joint]\nrtt = [\"1ms\", \"2ms\"]\nresumes = [true, false]\nweight = [3, 2]\n";
    for own in [
        table,
        "rtt = \"1ms\"\nresumes = \"60%\"\n",
        "rtt = \"1ms\"\n",
    ] {
        let arm: Arm = "x25519/rsa-2048".parse().unwrap();
        let sessions = |least: &str| -> Vec<bool> {
            let cell = cell(&format!("{least}{own}"));
            (0..4000)
                .map(|index| arm.session(&cell, index) != Resumption::Full)
                .collect()
        };
        let (few, many) = (sessions(""), sessions("resumes_least = \"90%\"\n"));
        assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
        let share = many.iter().filter(|resumes| **resumes).count() as f64 / 4000.0;
        assert!((0.885..0.915).contains(&share), "{own}{share}");
        // Fewer than there are, is none less.
        assert_eq!(few, sessions("resumes_least = \"0%\"\n"));
    }
}

#[test]
fn what_no_population_can_be() {
    insta::assert_snapshot!(
        [
            "",
            "rtt = []\n",
            "rtt = { values = [] }\n",
            "rtt = \"-5ms\"\n",
            "rtt = { values = [\"5ms\"], weights = [0] }\n",
            "rtt = { values = [\"5ms\"], weights = [-1] }\n",
            "rtt = { values = [\"5ms\"], weights = [inf] }\n",
            "rtt = { values = [\"5ms\", \"6ms\"], weights = [1] }\n",
            "rtt = { median = \"30ms\" }\n",
            "rtt = { median = \"30ms\", p95 = \"20ms\" }\n",
            "rtt = { median = \"30ms\", mean = \"20ms\" }\n",
            "rtt = { uniform = [\"30ms\"] }\n",
            "rtt = { percentiles = { p0 = \"0ms\", p50 = \"30ms\", p100 = \"20ms\" } }\n",
            "rtt = { percentiles = { p5 = \"8ms\", p50 = \"30ms\" } }\n",
            "rtt = { percentiles = { q50 = \"30ms\" } }\n",
            "rtt = { mean = \"30ms\", least = \"2ms\", most = \"1ms\" }\n",
            "rtt = { mean = 30 }\n",
            "loss = { values = [\"gemodel:1%\"] }\nloss2 = 1\n",
            "loss = { uniform = [\"0%\", \"gemodel:1%\"] }\n",
            "initcwnd = 10\n",
            "data = \"2GiB\"\n",
            "requests = { values = [0] }\n",
            "resumes = \"94\"\n",
            "resumes = 2\n",
            "rtt = \"1ms\"\nclass = \"a\"\nresumes = { b = \"1%\" }\n",
            "rtt = \"1ms\"\nclass = { values = [\"a\", \"b\"] }\nresumes = { a = \"1%\" }\n",
            "connections_per_user = 0\nrtt = \"1ms\"\n",
            "joint = \"missing.csv\"\n",
            "profile = \"missing.toml\"\n",
            "[population.joint]\n",
            "[population.joint]\nrtt = []\n",
            "[population.joint]\nrtt = [\"1ms\", \"2ms\"]\ndata = [\"1KiB\"]\n",
            "[population.joint]\nrtt = [\"1ms\", \"\"]\n",
            "[population.joint]\nrtt_ms = [1, -2]\n",
            "[population.joint]\nrtt_ms = [1, inf]\n",
            "[population.joint]\nrtt_ms = [1]\nrtt = [\"1ms\"]\n",
            "[population.joint]\nlatency = [\"1ms\"]\n",
            "[population.joint]\nrtt = [\"1ms\"]\nweight = [0]\n",
            "[population.joint]\nrtt = [\"1ms\"]\nweight = [\"many\"]\n",
            "[population.joint]\nrtt = [\"1ms\"]\nresumes = [\"perhaps\"]\n",
            "rtt = \"1ms\"\n[population.joint]\nrtt = [\"1ms\"]\n",
            "resumes = \"1%\"\n[population.joint]\nrtt = [\"1ms\"]\nresumes = [true]\n",
        ]
        .map(|text| format!(
            "{}\n    {}",
            text.trim_end().replace('\n', "; "),
            error(text)
        ))
        .join("\n")
    );
}

#[test]
fn what_is_drawn_stands_nowhere_else() {
    let with = |rest: &str| {
        let text = format!(
            "[population]\nrtt = \"10ms\"\ndata = \"1KiB\"\n[arm.one]\ntls = \"x25519/rsa-2048\"\n{rest}"
        );
        let error = Study::parse(&text, Path::new("study.toml")).unwrap_err();
        error.to_string()
    };
    insta::assert_snapshot!(
        [
            with("[link.a]\nrtt = \"10ms\"\n[[measure]]\nid = \"m\"\n"),
            with("[link.a]\ndelay = \"10ms\"\n[[measure]]\nid = \"m\"\n"),
            with("[link.a]\nforward = { delay = \"10ms\" }\n[[measure]]\nid = \"m\"\n"),
            with("[[measure]]\nid = \"m\"\ndata = \"1KiB\"\n"),
        ]
        .join("\n")
    );
    // What isn't drawn makes a grid.
    let study = Study::parse(
        "[population]\nrtt = \"10ms\"\n[arm.one]\ntls = \"x25519/rsa-2048\"\n[link.a]\nloss = [\"0%\", \"1%\"]\n\
         [[measure]]\nid = \"m\"\ninitcwnd = [10, 32]\ndata = \"1KiB\"\n",
        Path::new("study.toml"),
    )
    .unwrap();
    assert_eq!(study.measures[0].experiment.cells.len(), 4);
}

#[test]
fn a_share_needs_a_population() {
    let text = "[arm.one]\ntls = \"x25519/rsa-2048/resume=50%\"\n[link.a]\nrtt = \"1ms\"\n[[measure]]\nid = \"m\"\n";
    let error = Study::parse(text, Path::new("study.toml")).unwrap_err();
    insta::assert_snapshot!(error.to_string());
    insta::assert_snapshot!(
        [
            "early_data=5%",
            "resume=0%/early_data=5%",
            "resume=101%",
            "resume=some"
        ]
        .map(|keys| format!("x25519/rsa-2048/{keys}")
            .parse::<Arm>()
            .unwrap_err()
            .to_string())
        .join("\n")
    );
}

#[test]
fn a_file_that_has_changed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (table, path) = (
        folder.path().join("users.csv"),
        folder.path().join("study.toml"),
    );
    std::fs::write(&table, "rtt_ms,class,weight\n10,near,1\n20,far,2\n").unwrap();
    let text = format!("[population]\njoint = \"users.csv\"\n{REST}");
    let study = Study::parse(&text, &path).unwrap();
    let written = study.to_toml();
    let again = Study::parse(&written, Path::new("/elsewhere.toml")).unwrap();
    assert_eq!(
        study.measures[0].experiment.cells[0].draw(7),
        again.measures[0].experiment.cells[0].draw(7)
    );
    std::fs::write(&table, "rtt_ms,class,weight\n10,near,1\n21,far,2\n").unwrap();
    let error = Study::parse(&written, &path).unwrap_err().to_string();
    assert!(error.contains("has changed since"), "{error}");
}

#[test]
fn a_profile_is_what_a_population_begins_with() {
    let folder = tempfile::tempdir().unwrap();
    let profile =
        "[profile]\nconnections = 100\n[population.joint]\ndata_bytes = [1000]\nresumes = [true]\n";
    std::fs::write(folder.path().join("profile.toml"), profile).unwrap();
    let text = format!("[population]\nprofile = \"profile.toml\"\nrtt = \"40ms\"\n{REST}");
    let study = Study::parse(&text, &folder.path().join("study.toml")).unwrap();
    let experiment = &study.measures[0].experiment;
    let of = experiment.cells[0].of_connection(3);
    assert_eq!((of.data, of.link.rtt().as_millis()), (Bytes(1000), 40));
    assert_eq!(
        experiment.arms[0].session(&experiment.cells[0], 3),
        Resumption::Ticket
    );
}

proptest! {
    #[test]
    fn no_place_is_beyond_the_ends(
        weights in prop::collection::vec(0.0..10.0_f64, 1..20),
        place in 0.0..1.0_f64,
    ) {
        prop_assume!(weights.iter().sum::<f64>() > 0.0);
        let values: Vec<Arc<str>> = (0..weights.len()).map(|index| index.to_string().into()).collect();
        let weighted = Weighted::new(values, Some(weights.clone())).unwrap();
        for place in [0.0, place, 1.0 - f64::EPSILON] {
            let drawn: usize = weighted.at(place).parse().unwrap();
            prop_assert!(weights[drawn] > 0.0);
        }
    }

    #[test]
    fn numbers_keep_within_what_a_parameter_can_be(seed in any::<u64>(), median in 1_u64..1_000_000, spread in 1_u64..1000) {
        let text = format!(
            "data = {{ median = \"{median}B\", p95 = \"{}B\" }}\nrequests = {{ mean = 3 }}\nrate = {{ uniform = [\"8bit\", \"1gbit\"] }}\nrtt = \"1ms\"\n",
            median + spread
        );
        let cell = cell(&text);
        let population = Population { seed: Seed(seed), ..(**cell.population.as_ref().unwrap()).clone() };
        let draw = population.draw(seed as u32);
        for (parameter, value) in &draw.values {
            prop_assert!(parameter.checked(value).is_ok(), "{parameter} {value}");
        }
        prop_assert_eq!(cell.with(&draw).population, None);
    }
}

#[test]
fn columns_of_other_names_are_told_what_they_are_called() {
    let load = |text: &str| Joint::load("users.csv", text.as_bytes());
    let plain = load("rtt_ms,weight\n20,1000\n40,500\n").unwrap();
    for text in [
        "rtt_ms,users\n20,1000\n40,500\n",
        "RTT_ms;Users\n20,0;1000.0\n40;500,0\n",
    ] {
        assert_eq!(
            format!("{:?}", load(text).unwrap().row(0.7).values),
            format!("{:?}", plain.row(0.7).values)
        );
    }
    let refused = load("latency,weight\n20,1\n").unwrap_err().to_string();
    assert!(
        refused.ends_with("it may be called rtt_ms here"),
        "{refused}"
    );
}
