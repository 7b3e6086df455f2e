#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::time::Duration;

use insta::assert_snapshot;
use lastbyte_link::{Bytes, Direction, Distribution, Link, Loss, Probability, Rate, is_hidden};
use lastbyte_sizes::{PemFiles, Resumption};
use proptest::prelude::*;

use super::*;
use crate::{
    Bearing, BlockId, Congestion, CpuTime, Emulation, EngineChoice, Figure, Filter, Gso, Leads,
    Metric, Parameter, Piece, Plot, Preset, Quantity, QuicIn, Size,
};
use crate::{Buffers, Ecn, Hosts, ReceiveBuffer, Timestamps, Tso, Writes};

const SLOW_LINKS: &str = r#"name = "slow links"
connections = 1000
seed = 1
percentiles = [50, 75, 90]

[arm.classical]              # the first arm is the baseline
tls = "secp256r1/rsa-2048:2500B"
[arm.pq]
tls = "SecP256r1MLKEM768/rsa-2048:16000B"

[link.lte-m]
rtt = "200ms"
rate = "1mbit"
loss = ["0%", "3%", "10%"]   # lists make a grid

[[measure]]
id = "growth"
arms = ["classical", "pq"]
links = ["lte-m"]
initcwnd = 20
data = ["0KiB", "50KiB", "100KiB", "200KiB"]

[[figure]]
id = "fig10"
measure = "growth"
plot = "increase"
x = "data"
facet = "loss"
metric = "ttlb"
"#;

fn parse(text: &str) -> Result<Study, StudyError> {
    Study::parse(text, Path::new("studies/slow-links.toml"))
}

fn study(text: &str) -> Study {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The one measure of a study with the arms a and b, and the links x and y.
fn measure(rest: &str) -> Experiment {
    let mut study = study(&format!("{BASE}{rest}"));
    study.measures.remove(0).experiment
}

const BASE: &str = r#"
[arm.a]
tls = "x25519/rsa-2048"
[arm.b]
tls = "x25519/ml-dsa-44"
[link.x]
rtt = "10ms"
[link.y]
rtt = "20ms"
[[measure]]
id = "m"
"#;

#[test]
fn all_studies_of_the_repository_are_read() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies"));
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let study = Study::parse(&text, &path).unwrap_or_else(|error| panic!("{error}"));
        // Its file is called what it is.
        assert_eq!(
            Some(study.name.as_ref()),
            path.file_stem().and_then(|name| name.to_str())
        );
        read += 1;
    }
    assert!(read > 20, "{read}");
}

#[test]
fn slow_links() {
    let study = study(SLOW_LINKS);
    let arm = |name: &str, tls: &str| Arm {
        name: name.into(),
        ..tls.parse().unwrap()
    };
    let cell = |loss: &str, kibibytes: u64| {
        let direction = Direction {
            rate: Rate::from_bits_per_second(1_000_000),
            loss: loss.parse().unwrap(),
            distribution: Distribution::Normal,
            ..Direction::default()
        };
        Cell {
            link: Link::symmetric(Duration::from_millis(200), direction),
            link_name: Some("lte-m".into()),
            initcwnd: 20,
            data: Bytes(kibibytes << 10),
            ..Cell::default()
        }
    };
    let cells = ["0%", "3%", "10%"]
        .into_iter()
        .flat_map(|loss| [0, 50, 100, 200].map(|kibibytes| cell(loss, kibibytes)));
    let arms = vec![
        arm("classical", "secp256r1/rsa-2048:2500B"),
        arm("pq", "SecP256r1MLKEM768/rsa-2048:16000B"),
    ];
    assert_eq!(
        study,
        Study {
            name: "slow links".into(),
            question: None,
            answer: None,
            legends: Vec::new(),
            leads: Leads::Later,
            note: None,
            path: "studies/slow-links.toml".into(),
            text: SLOW_LINKS.into(),
            measures: vec![Measure {
                id: "growth".into(),
                experiment: Experiment::new(arms, cells.collect(), 1000),
            }],
            percentiles: Percentile::USUAL.to_vec(),
            engine: EngineChoice::Auto,
            figures: vec![Figure {
                id: "fig10".into(),
                title: None,
                measures: vec!["growth".into()],
                plot: Plot::Increase,
                x: Some(Parameter::DATA),
                facets: vec!["loss".parse().unwrap()],
                metric: Metric::Ttlb,
                arms: Vec::new(),
                cells: Filter::default(),
                pool: Vec::new(),
                percentiles: Vec::new(),
                beside: Vec::new(),
            }],
            published: Vec::new(),
            claims: Vec::new(),
            searches: Vec::new(),
            folder: std::env::current_dir().unwrap().join("studies"),
        }
    );
}

#[test]
fn all_that_may_be_absent() {
    let study = study(BASE);
    assert_eq!(study.name, "slow-links");
    assert_eq!(study.engine, EngineChoice::Auto);
    assert_eq!(study.percentiles, Percentile::USUAL);
    assert_eq!(study.figures, []);
    let experiment = &study.measures[0].experiment;
    let names = |arms: &[Arm]| arms.iter().map(|arm| arm.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&experiment.arms), ["a", "b"]);
    assert_eq!(
        *experiment,
        Experiment {
            arms: experiment.arms.clone(),
            ..Experiment::new(
                Vec::new(),
                experiment.cells.clone(),
                Connections::UpTo(1000)
            )
        }
    );
    let cell = |name: &str, rtt| Cell {
        link: Link::symmetric(
            Duration::from_millis(rtt),
            Direction {
                distribution: Distribution::Normal,
                ..Direction::default()
            },
        ),
        link_name: Some(name.into()),
        ..Cell::default()
    };
    assert_eq!(experiment.cells, [cell("x", 10), cell("y", 20)]);
}

#[test]
fn what_a_measure_says_holds_for_it_alone() {
    let top = r#"
        engine = "virtual"
        percentiles = [25, 99.9]
        connections = 7
        seed = 9223372036854775807
        timeout = "10s"
        concurrency = 3
        emulation = "link"
        quic_in = "guest"
        cpu = "calibrated"
    "#;
    let own = r#"
        [[measure]]
        id = "own"
        links = "y"
        arms = "b"
        connections = 8
        seed = 2
        timeout = "20s"
        concurrency = 4
        emulation = "netem"
        quic_in = "model"
        cpu = "none"
    "#;
    let study = study(&format!("{top}{BASE}{own}"));
    assert_eq!(study.engine, EngineChoice::Virtual);
    assert_eq!(
        study.percentiles,
        ["p25", "p99.9"].map(|percentile| percentile.parse().unwrap())
    );
    let [usual, own] = &study.measures[..] else {
        panic!("{study:?}");
    };
    let (usual, own) = (&usual.experiment, &own.experiment);
    assert_eq!(
        *usual,
        Experiment {
            arms: usual.arms.clone(),
            cells: usual.cells.clone(),
            connections: Connections::Fixed(7),
            seed: Seed(Seed::MOST),
            timeout: Duration::from_secs(10),
            concurrency: Some(3),
            emulation: Emulation::Link,
            quic_in: QuicIn::Guest,
            cpu: CpuTime::Calibrated,
        }
    );
    assert_eq!(
        *own,
        Experiment {
            arms: usual.arms[1..].to_vec(),
            cells: usual.cells[1..].to_vec(),
            connections: Connections::Fixed(8),
            seed: Seed(2),
            timeout: Duration::from_secs(20),
            concurrency: Some(4),
            emulation: Emulation::Netem,
            quic_in: QuicIn::Model,
            cpu: CpuTime::None,
        }
    );
}

#[test]
fn connections_until_it_is_precise_enough() {
    for (written, percent, least, most) in [
        ("\"until ±2%\"", 2.0, 200, 10_000),
        ("\"until 0.5%\"", 0.5, 200, 10_000),
        ("{ until = \"±2%\" }", 2.0, 200, 10_000),
        (
            "{ until = \"2%\", least = 100, most = 20_000 }",
            2.0,
            100,
            20_000,
        ),
        ("{ until = \"±2%\", least = 30_000 }", 2.0, 30_000, 30_000),
        ("{ until = \"±2%\", most = 50 }", 2.0, 50, 50),
    ] {
        let measured = measure(&format!("connections = {written}")).connections;
        let Connections::Until(until) = measured else {
            panic!("{written}: {measured:?}");
        };
        assert_eq!(until.precision.percent(), percent, "{written}");
        assert_eq!((until.least, until.most), (least, most), "{written}");
    }
    // A measure has its own.
    let top = format!("connections = \"until ±2%\"\n{BASE}connections = 7");
    let own = study(&top).measures.remove(0).experiment.connections;
    assert_eq!(own, Connections::Fixed(7));
}

#[test]
fn the_order_of_a_grid() {
    let text = r#"
        [arm.a]
        tls = "x25519/rsa-2048"
        [link.far]
        rtt = "300ms"
        [link.near]
        delay = ["1ms", "2ms"]
        rate = ["1mbit", "2mbit"]
        loss = ["0%", "1%"]
        jitter = ["0ms", "1ms"]
        [link.near.forward]
        queue = [10, 20]
        [[measure]]
        id = "links"
        links = ["near", "far"]
        [[measure]]
        id = "cells"
        links = "far"
        preset = ["network", "published-2024"]
        congestion = ["cubic", "bbr"]
        client_initcwnd = [10, 20]
        initcwnd = [10, 20]
        data = ["0KiB", "1KiB"]
    "#;
    let lines: Vec<_> = study(text)
        .measures
        .into_iter()
        .flat_map(|measure| measure.experiment.cells)
        .map(|mut cell| {
            let name = cell.link_name.take().unwrap_or_default();
            format!("{name} {cell}")
        })
        .collect();
    assert_snapshot!(lines.join("\n"));
}

#[test]
fn rates_down_and_up() {
    let text = r#"
        [arm.a]
        tls = "x25519/rsa-2048"
        [link.x]
        rtt = "30ms"
        rate = ["50mbit/10mbit", "1mbit"]
        [[measure]]
        id = "m"
    "#;
    let study = study(text);
    let rates = |cell: &Cell| {
        let [down, up] = [&cell.link.backward, &cell.link.forward].map(|way| way.rate.unwrap());
        format!("{down} {up}")
    };
    let cells = &study.measures[0].experiment.cells;
    let rates: Vec<_> = cells.iter().map(rates).collect();
    assert_eq!(rates, ["50mbit 10mbit", "1mbit 1mbit"]);
    assert!(
        cells[0]
            .to_string()
            .contains("RTT 30ms, 10mbit up and 50mbit down, ")
    );
    // What is written of it is read as the same.
    let written = self::study(&study.to_toml());
    assert_eq!(written.measures[0].experiment, study.measures[0].experiment);

    let one_way = text.replace("rate = [", "forward.rate = [");
    let refused = parse(&one_way).unwrap_err().to_string();
    assert!(
        refused.contains(r#"unknown unit "mbit/10mbit""#),
        "{refused}"
    );
}

#[test]
fn links_that_are_networks_with_a_name() {
    let text = r#"
        [arm.a]
        tls = "x25519/rsa-2048"
        [link.phone]
        network = "lte"
        [link.far]
        network = "geo"
        rtt = "650ms"
        rate = "20mbit/2mbit"
        [link.far.backward]
        loss = "1%"
        [[measure]]
        id = "m"
    "#;
    let study = study(text);
    let names: Vec<_> = (study.measures[0].experiment.cells.iter())
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        names,
        [
            "phone, RTT 55ms, 6mbit up and 21mbit down, loss 0%, initcwnd 10, 0B",
            "far, RTT 650ms, 2mbit up and 20mbit down, loss 0% up and 1% down, initcwnd 10, 0B",
        ]
    );
    assert_eq!(
        study.measures[0].experiment.cells[0].link,
        crate::NamedNetwork::find("lte").unwrap().link()
    );
    let written = self::study(&study.to_toml());
    assert_eq!(written.measures[0].experiment, study.measures[0].experiment);

    let misspelt = parse(&text.replace("\"lte\"", "\"lt\"")).unwrap_err();
    let misspelt = misspelt.to_string();
    assert!(
        misspelt.contains(r#":5: unknown network "lt": did you mean "lte"?"#),
        "{misspelt}"
    );
    let drawn = format!("[population]\nrate = \"1mbit\"\ndata = \"1KiB\"\n{text}");
    let drawn = parse(&drawn).unwrap_err().to_string();
    assert!(drawn.contains("\"network\""), "{drawn}");
    assert!(drawn.contains("[population], which draws it"), "{drawn}");
}

#[test]
fn directions_that_differ() {
    let text = r#"
        [arm.a]
        tls = "x25519/rsa-2048"
        [link.x]
        rtt = "30ms"
        rate = "1mbit"
        loss = "1%"
        jitter_distribution = "uniform"
        [link.x.forward]
        delay = "5ms"
        loss = "gemodel:1%/10%"
        [link.x.backward]
        rate = "10mbit"
        jitter = "2ms"
        jitter_distribution = "paretonormal"
        queue = 20
        [[measure]]
        id = "m"
    "#;
    let forward = Direction {
        delay: Duration::from_millis(5),
        rate: Rate::from_bits_per_second(1_000_000),
        loss: "gemodel:1%/10%".parse().unwrap(),
        distribution: Distribution::Uniform,
        ..Direction::default()
    };
    let backward = Direction {
        delay: Duration::from_millis(15),
        rate: Rate::from_bits_per_second(10_000_000),
        loss: "1%".parse().unwrap(),
        jitter: Duration::from_millis(2),
        distribution: Distribution::ParetoNormal,
        queue: 20,
        ..Direction::default()
    };
    let study = study(text);
    let cells = &study.measures[0].experiment.cells;
    assert_eq!(cells[0].link, Link { forward, backward });
    assert_eq!(cells.len(), 1);

    let delays = text.replace(r#"rtt = "30ms""#, "");
    assert_eq!(
        parse(&delays).unwrap_err().to_string(),
        r#"studies/slow-links.toml:4: missing "rtt" in [link.x]: write rtt = "35ms""#
    );
    let delays = delays.replace("queue", "delay = '15ms'\nqueue");
    assert_eq!(self::study(&delays).measures, study.measures);
}

#[test]
fn a_preset_has_its_gso_unless_told_otherwise() {
    let settings = |rest| {
        let cells = measure(&format!("links = 'x'\n{rest}")).cells;
        cells
            .iter()
            .map(|cell| (cell.preset, cell.gso))
            .collect::<Vec<_>>()
    };
    let network = (Preset::Network, Gso::Off);
    let published = (Preset::Published2024, Gso::On);
    assert_eq!(settings(""), [network]);
    assert_eq!(settings("preset = 'network'"), [network]);
    assert_eq!(
        settings("preset = ['published-2024', 'network']"),
        [published, network]
    );
    assert_eq!(
        settings("preset = 'published-2024'\ngso = 'off'"),
        [(published.0, Gso::Off)]
    );
    assert_eq!(settings("gso = 'on'"), [(network.0, Gso::On)]);
}

#[test]
fn explicit_cells() {
    let experiment = measure(
        r#"
        [[measure.cell]]
        link = "y"
        data = ["1KiB", "0KiB"]
        [[measure.cell]]
        link = { name = "z", delay = "15ms", backward.queue = 20 }
        congestion = "reno"
        [[measure.cell]]
        link = { rtt = "20ms" }
        preset = "published-2024"
        [[measure.cell]]
        link = "y"
        data = "1KiB"
        "#,
    );
    let [y1, y0, z, unnamed, again] = &experiment.cells[..] else {
        panic!("{experiment:?}");
    };
    assert_eq!(
        (y1.link.rtt(), y1.data),
        (Duration::from_millis(20), Bytes(1024))
    );
    assert_eq!(y1.link_name.as_deref(), Some("y"));
    assert_eq!(again, y1);
    assert_eq!(y0.data, Bytes(0));
    assert_eq!(z.link.rtt(), Duration::from_millis(30));
    assert_eq!(z.link.backward.queue, 20);
    assert_eq!(z.link_name.as_deref(), Some("z"));
    assert_eq!(z.congestion, Congestion::Reno);
    assert_eq!((&unnamed.link, &unnamed.link_name), (&y0.link, &None));
    assert_eq!(
        (unnamed.preset, unnamed.gso),
        (Preset::Published2024, Gso::On)
    );
}

#[test]
fn what_no_measure_uses_is_no_error() {
    let experiment = measure("arms = 'b'\nlinks = 'y'");
    assert_eq!((experiment.arms.len(), experiment.cells.len()), (1, 1));
}

/// Or a figure would draw one value for all, and a pool would throw them together.
#[test]
fn whatever_may_be_a_list_is_a_parameter() {
    let keys = grid::LINK.iter().chain(grid::GRID.iter());
    // Both directions' delays are the RTT; the directions have the keys of a link; a network is its name.
    for key in keys.filter(|key| !["delay", "forward", "backward", "network"].contains(key)) {
        assert!(key.parse::<Parameter>().is_ok(), "{key} is no parameter");
    }
    let text = r#"
        [arm.a]
        tls = "x25519/ecdsa-p256"
        [link.x]
        rtt = "35ms"
        jitter = "1ms"
        jitter_distribution = ["uniform", "normal"]
        [[measure]]
        id = "m"
        requests = 2
        think = ["0s", "1s"]
        data = "10KiB"
    "#;
    let cells = &study(text).measures[0].experiment.cells;
    let seen: HashSet<Vec<String>> = (cells.iter())
        .map(|cell| Parameter::ALL.map(|parameter| parameter.of(cell)).to_vec())
        .collect();
    assert_eq!((cells.len(), seen.len()), (4, 4));
}

#[test]
fn paths_of_client_chains_begin_there_as_well() {
    let text = r#"
        [arm.a]
        tls = "x25519/ecdsa-p256/mutual=client.pem"
        [link.x]
        rtt = "35ms"
        [[measure]]
        id = "m"
    "#;
    let study = study(text);
    let Some(ArmChain::Pem(files)) = &study.measures[0].experiment.arms[0].client_chain else {
        panic!("the client's chain is no file");
    };
    let here = std::env::current_dir().unwrap();
    assert_eq!(files.chain, here.join("studies/client.pem"));
}

#[test]
fn paths_begin_at_the_folder_of_the_file() {
    let text = r#"
        [arm.a]
        tls = "x25519/certs/chain.pem/key=key.pem/ca=/etc/root.pem"
        [link.x]
        rtt = "35ms"
        [[measure]]
        id = "m"
    "#;
    let chain = |text: &str| study(text).measures[0].experiment.arms[0].chain.clone();
    let here = std::env::current_dir().unwrap();
    let files = |folder: PathBuf| {
        ArmChain::Pem(PemFiles {
            key: Some(folder.join("key.pem")),
            ca: Some("/etc/root.pem".into()),
            ..PemFiles::new(folder.join("certs/chain.pem"))
        })
    };
    assert_eq!(chain(text), files(here.join("studies")));
    assert_eq!(
        chain(&format!("folder = 'x/y'{text}")),
        files(here.join("studies/x/y"))
    );
    assert_eq!(chain(&format!("folder = '/x'{text}")), files("/x".into()));

    let label = "x25519/certs/chain.pem/key=key.pem/ca=/etc/root.pem";
    let arms = vec![label.parse().unwrap()];
    let single = Study::single("one", Experiment::new(arms, vec![Cell::default()], 1));
    assert_eq!(single.measures[0].experiment.arms[0].chain, files(here));
    assert_eq!(single.measures[0].experiment.arms[0].label, label);
    assert_reads_again(&single);
}

#[test]
fn jitter_from_a_file_beside_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.toml");
    let text = format!("{BASE}links = 'x'").replace(
        "rtt = \"10ms\"",
        "rtt = '10ms'\njitter = '1ms'\njitter_distribution = 'wifi.dist'",
    );
    fs::write(&path, &text).unwrap();
    let missing = Study::load(&path).unwrap_err().to_string();
    let start = format!("{}:9: can't read jitter distribution", path.display());
    assert!(missing.starts_with(&start), "{missing}");

    fs::write(folder.path().join("wifi.dist"), "-8192 0 x").unwrap();
    let wrong = Study::load(&path).unwrap_err().to_string();
    assert!(
        wrong.contains(r#":9: jitter distribution "wifi.dist", line 1: "x" is no"#),
        "{wrong}"
    );

    fs::write(folder.path().join("wifi.dist"), "-8192 0 8192").unwrap();
    let study = Study::load(&path).unwrap();
    let distribution = &study.measures[0].experiment.cells[0]
        .link
        .forward
        .distribution;
    assert_eq!(distribution.to_string(), "wifi.dist");
    assert_eq!(distribution.table(), Some(&[-8192, 0, 8192][..]));
    assert_reads_again(&study);
}

#[test]
fn a_file_that_is_none() {
    assert_eq!(
        Study::load(Path::new("/no/such.toml"))
            .unwrap_err()
            .to_string(),
        r#"can't read study "/no/such.toml": No such file or directory (os error 2)"#
    );
}

/// What replaces what in [`SLOW_LINKS`], and the error with its line.
const ERRORS: &[(&str, &str, &str)] = &[
    // As other tools call it.
    (
        "rate = \"1mbit\"",
        "bandwidth = \"1mbit\"",
        r#"13: unknown key "bandwidth" in [link.lte-m]: it is called "rate" here"#,
    ),
    (
        "rtt = \"200ms\"",
        "latency = \"200ms\"",
        r#"12: unknown key "latency" in [link.lte-m]: it is called "rtt" here"#,
    ),
    (
        "initcwnd = 20",
        "server_initcwnd = 20",
        r#"20: unknown key "server_initcwnd" in [[measure]]: it is called "initcwnd" here"#,
    ),
    // Not TOML.
    (
        "seed = 1",
        "seed = ",
        "3: not TOML: string values must be quoted, expected literal string",
    ),
    (
        "[link.lte-m]",
        "[link.lte-m",
        "11: not TOML: unclosed table, expected `]`",
    ),
    (
        "seed = 1",
        "name = 'x'",
        r#"3: "name" is there twice: leave one out"#,
    ),
    (
        "[arm.pq]",
        "[arm.classical]",
        r#"8: "classical" is there twice: leave one out"#,
    ),
    // Keys.
    (
        "seed",
        "sead",
        r#"3: unknown key "sead": did you mean "seed"?"#,
    ),
    (
        "links = [",
        "lnik = [",
        r#"19: unknown key "lnik" in [[measure]]: did you mean "links"?"#,
    ),
    (
        "[arm.pq]\ntls",
        "[arm.'p q']\ntsl",
        r#"9: unknown key "tsl" in [arm."p q"]: did you mean "tls"?"#,
    ),
    (
        "rate",
        "rat",
        r#"13: unknown key "rat" in [link.lte-m]: did you mean "rate"?"#,
    ),
    (
        "rate =",
        "backward.rtt =",
        r#"13: unknown key "rtt" in [link.lte-m.backward]: did you mean "rate"?"#,
    ),
    (
        "[[figure]]",
        "[[figures]]",
        r#"23: unknown key "figures": did you mean "figure"?"#,
    ),
    (
        "facet",
        "face",
        r#"28: unknown key "face" in [[figure]]: did you mean "facet"?"#,
    ),
    // What is missing.
    (
        "tls = \"secp256r1/rsa-2048:2500B\"",
        "",
        r#"6: missing "tls" in [arm.classical]: write tls = "GROUP/CHAIN""#,
    ),
    (
        "rtt = \"200ms\"",
        "",
        r#"11: missing "rtt" in [link.lte-m]: write rtt = "35ms""#,
    ),
    (
        "id = \"growth\"",
        "",
        r#"16: missing "id" in [[measure]]: write id = "NAME""#,
    ),
    (
        "plot = \"increase\"",
        "",
        r#"23: missing "plot" in [[figure]]: write plot = "increase""#,
    ),
    // Types.
    (
        "1000",
        "\"many\"",
        r#"2: "many" is no number of connections: write one such as 1000, "up to 1000" or "until ±2%""#,
    ),
    (
        "1000",
        "1.5",
        r#"2: "connections" is a fraction: write a whole number, "up to 1000" or "until ±2%""#,
    ),
    (
        "1000",
        "\"until\"",
        r#"2: "until" says no precision: write one such as "until ±2%""#,
    ),
    (
        "1000",
        "\"until 2\"",
        r#"2: missing unit in precision "2": did you mean "±2%"?"#,
    ),
    (
        "1000",
        "\"until ±0%\"",
        r#"2: precision "±0%" can't be had: use ±0.001% to ±100%"#,
    ),
    (
        "1000",
        "{ untl = \"±2%\" }",
        r#"2: unknown key "untl" in connections: did you mean "until"?"#,
    ),
    (
        "1000",
        "{ least = 100 }",
        r#"2: missing "until" in connections: write until = "±2%""#,
    ),
    (
        "1000",
        "{ until = 2 }",
        r#"2: missing unit in precision "2": did you mean "±2%"?"#,
    ),
    (
        "1000",
        "{ until = \"±2%\", most = \"many\" }",
        r#"2: "most" is a text: write a whole number"#,
    ),
    (
        "1000",
        "{ until = \"±2%\", most = 0 }",
        r#"2: "most" can't be 0: use 1 to 1000000"#,
    ),
    (
        "1000",
        "{ until = \"±2%\", least = 300, most = 200 }",
        r#"2: "least" can't be 300: use 1 to 200"#,
    ),
    (
        "\"slow links\"",
        "5",
        r#"1: "name" is a whole number: write a text in quotes"#,
    ),
    (
        "[50, 75, 90]",
        "true",
        r#"4: "percentiles" is a truth value: write a number"#,
    ),
    (
        "[50, 75, 90]",
        "[50, [75]]",
        r#"4: "percentiles" is a list: write a number"#,
    ),
    (
        "rtt = \"200ms\"",
        "rtt = 2000-01-01",
        r#"12: "rtt" is a date: write a text in quotes"#,
    ),
    (
        "[\"lte-m\"]",
        "[{ rtt = \"35ms\" }]",
        r#"19: "links" is a table: write a text in quotes"#,
    ),
    (
        "[[measure]]",
        "[measure]",
        r#"16: "measure" is a table: write tables such as [[measure]]"#,
    ),
    (
        "[link.lte-m]",
        "[link]",
        r#"12: "rtt" is a text: write a table such as [link.rtt]"#,
    ),
    (
        "rate = \"1mbit\"",
        "forward = \"1mbit\"",
        r#"13: "forward" is a text: write a table such as [link.lte-m.forward]"#,
    ),
    // Units and names.
    (
        "200ms",
        "200msec",
        r#"12: unknown unit "msec" in "200msec": did you mean "ms"?"#,
    ),
    (
        "\"200ms\"",
        "200",
        r#"12: missing unit in duration "200": did you mean "200ms"?"#,
    ),
    (
        "\"200ms\"",
        "0.2",
        r#"12: missing unit in duration "0.2": did you mean "0.2ms"?"#,
    ),
    (
        "1mbit",
        "1mbits",
        r#"13: unknown unit "mbits" in "1mbits": did you mean "mbit"?"#,
    ),
    (
        "\"10%\"]",
        "\n\"10\"]",
        r#"15: missing unit in probability "10": did you mean "10%"?"#,
    ),
    (
        "50KiB",
        "50K",
        r#"21: unknown unit "K" in "50K": did you mean "50KiB" (of 1024) or "50KB" (of 1000)?"#,
    ),
    (
        "secp256r1/rsa-2048:2500B",
        "secp256r1/rsa2048",
        r#"7: arm "secp256r1/rsa2048": unknown chain "rsa2048": did you mean "rsa-2048"?"#,
    ),
    (
        "seed = 1",
        "engine = \"real\"",
        r#"3: unknown engine "real": use one of auto, live, virtual"#,
    ),
    (
        "seed = 1",
        "emulation = \"netme\"",
        r#"3: unknown emulation "netme": did you mean "netem"?"#,
    ),
    (
        "seed = 1",
        "cpu = \"calibrate\"",
        r#"3: unknown CPU time "calibrate": did you mean "calibrated"?"#,
    ),
    (
        "seed = 1",
        "timeout = 300",
        r#"3: missing unit in duration "300": did you mean "300ms"?"#,
    ),
    (
        "initcwnd = 20",
        "gso = \"ON\"",
        r#"20: unknown GSO setting "ON": did you mean "on"?"#,
    ),
    (
        "initcwnd = 20",
        "preset = \"published\"",
        r#"20: unknown preset "published": did you mean "published-2024"?"#,
    ),
    (
        "initcwnd = 20",
        "congestion = \"cubc\"",
        r#"20: unknown congestion control "cubc": did you mean "cubic"?"#,
    ),
    (
        "rate = \"1mbit\"",
        "jitter_distribution = \"norml\"",
        r#"13: unknown jitter distribution "norml": did you mean "normal"?"#,
    ),
    (
        "\"increase\"",
        "\"increas\"",
        r#"26: unknown plot "increas": did you mean "increase"?"#,
    ),
    (
        "x = \"data\"",
        "x = \"date\"",
        r#"27: unknown parameter "date": did you mean "data"?"#,
    ),
    (
        "facet = \"loss\"",
        "facet = \"octets\"",
        r#"28: unknown parameter "octets": use one of link, rtt, rate, trace, loss, jitter, jitter_distribution, jitter_order, queue, qdisc, cross_traffic, cross_lead, at_once, preset, gso, mtu, timestamps, ecn, buffers, receive_buffer, tso, writes, congestion, client_initcwnd, initcwnd, quic_datagram, quic_client_datagram, quic_initial_rtt, quic_ack_delay, quic_mtu_discovery, page, origins, cache, cpu_slowdown, client_cpu, traffic, requests, think, upload, data"#,
    ),
    (
        "\"ttlb\"",
        "\"ttl\"",
        r#"29: unknown metric "ttl": did you mean "ttlb"?"#,
    ),
    // References.
    (
        "\"pq\"]",
        "\"qp\"]",
        r#"18: unknown arm "qp": did you mean "pq"?"#,
    ),
    (
        "[\"lte-m\"]",
        "[\"lte\"]",
        r#"19: unknown link "lte": did you mean "lte-m"?"#,
    ),
    (
        "measure = \"growth\"",
        "measure = \"groth\"",
        r#"25: unknown measure "groth": did you mean "growth"?"#,
    ),
    // Ranges.
    (
        "1000",
        "0",
        r#"2: "connections" can't be 0: use 1 to 1000000"#,
    ),
    (
        "1000",
        "1_000_001",
        r#"2: "connections" can't be 1000001: use 1 to 1000000"#,
    ),
    (
        "seed = 1",
        "seed = -1",
        r#"3: "seed" can't be -1: use 0 to 9223372036854775807"#,
    ),
    (
        "seed = 1",
        "seed = 9223372036854775808",
        r#"3: "seed" can't be 9223372036854775808: use 0 to 9223372036854775807"#,
    ),
    (
        "seed = 1",
        "concurrency = 0",
        r#"3: "concurrency" can't be 0: use 1 to 4294967295"#,
    ),
    (
        "[50, 75, 90]",
        "[50, 100]",
        r#"4: "p100" is no percentile: use p0.1 to p99.9, such as p75"#,
    ),
    (
        "[50, 75, 90]",
        "0",
        r#"4: "p0" is no percentile: use p0.1 to p99.9, such as p75"#,
    ),
    (
        "[50, 75, 90]",
        "[99.99]",
        r#"4: "p99.99" is no percentile: use p0.1 to p99.9, such as p75"#,
    ),
    (
        "rate = \"1mbit\"",
        "queue = 0",
        r#"13: "queue" can't be 0: use 1 to 4294967295"#,
    ),
    (
        "initcwnd = 20",
        "initcwnd = [20, 1001]",
        r#"20: "initcwnd" can't be 1001: use 1 to 1000"#,
    ),
    (
        "200KiB",
        "2GiB",
        r#"21: "data" can't be 2GiB: use 0B to 1GiB"#,
    ),
    // What is empty.
    (
        "[50, 75, 90]",
        "[]",
        r#"4: "percentiles" is empty: write at least one"#,
    ),
    (
        "[\"classical\", \"pq\"]",
        "[]",
        r#"18: "arms" is empty: write at least one"#,
    ),
    (
        "[\"lte-m\"]",
        "[]",
        r#"19: "links" is empty: write at least one"#,
    ),
    (
        "[\"0%\", \"3%\", \"10%\"]",
        "[]",
        r#"14: "loss" is empty: write at least one"#,
    ),
    (
        "\"slow links\"",
        "\"\"",
        r#"1: "name" is empty: write a text"#,
    ),
    ("\"growth\"", "\"\"", r#"17: "id" is empty: write a text"#),
    // What is there twice.
    (
        "[50, 75, 90]",
        "[50, 50.0]",
        r#"4: "percentiles" has 50.0 twice: leave one out"#,
    ),
    (
        "\"pq\"]",
        "\"classical\"]",
        r#"18: "arms" has "classical" twice: leave one out"#,
    ),
    (
        "\"10%\"",
        "\"3.0%\"",
        r#"14: "loss" has "3.0%" twice: leave one out"#,
    ),
    (
        "\"50KiB\"",
        "\"51200B\", \"50KiB\"",
        r#"21: "data" has "50KiB" twice: leave one out"#,
    ),
    (
        "initcwnd = 20",
        "initcwnd = [20, 0x14]",
        r#"20: "initcwnd" has 0x14 twice: leave one out"#,
    ),
    (
        "SecP256r1MLKEM768/rsa-2048:16000B",
        "secp256r1/rsa-2048:2500B",
        r#"9: arm "pq" is the same as arm "classical": leave one out"#,
    ),
    (
        "[[figure]]",
        "[[measure]]\nid = \"growth\"\n[[figure]]",
        r#"23: measure "growth" is there twice: give each a name of its own"#,
    ),
    // What is drawn, published and claimed.
    (
        "facet = \"loss\"",
        "arms = [\"quick\"]",
        r#"28: unknown arm "quick": use one of classical, pq"#,
    ),
    (
        "facet = \"loss\"",
        "where = { loss = \"4%\" }",
        r#"28: no cell of growth is like that: compare it with the measure's lists"#,
    ),
    (
        "facet = \"loss\"",
        "where = { lost = \"3%\" }",
        r#"28: unknown key "lost" in where = { loss = "0%" }: did you mean "loss"?"#,
    ),
    (
        "[[figure]]",
        "[[published]]\nsource = \"T\"\nmeasure = \"growth\"\narm = \"pq\"\nwhat = \"increase\"\n\
         by = [\"loss\"]\nrows = [[\"3%\", 5, 5]]\n[[figure]]",
        r#"29: 3 values where there should be 4: write loss, p50, p75, p90"#,
    ),
    (
        "[[figure]]",
        "[[published]]\nsource = \"T\"\nmeasure = \"growth\"\narm = \"pq\"\nwhat = \"increase\"\n\
         values = [5, 5, 5]\n[[figure]]",
        r#"28: that is 12 cells of growth: say which with where, or pool them"#,
    ),
    (
        "[[figure]]",
        "[[published]]\nsource = \"T\"\nfigure = \"fig11\"\n[[figure]]",
        r#"25: unknown figure "fig11": did you mean "fig10"?"#,
    ),
    (
        "[[figure]]",
        "[[claim]]\nid = \"c\"\ntext = \"t\"\n[[claim.check]]\nmeasure = \"growth\"\narm = \"pq\"\n\
         what = \"increse\"\nwithin = \"0..5\"\n[[figure]]",
        r#"29: unknown quantity "increse": did you mean "increase"?"#,
    ),
    (
        "[[figure]]",
        "[[claim]]\nid = \"c\"\ntext = \"t\"\n[[claim.check]]\nmeasure = \"growth\"\narm = \"pq\"\n\
         what = \"increase\"\nwithin = \"5..0\"\n[[figure]]",
        r#"30: "5..0" are no bounds: write some such as "0..5" or "..15""#,
    ),
    (
        "[[figure]]",
        "[[claim]]\nid = \"c\"\ntext = \"t\"\n[[claim.check]]\nmeasure = \"growth\"\narm = \"classical\"\n\
         what = \"increase\"\nwithin = \"0..5\"\n[[figure]]",
        r#"28: "classical" is the baseline of growth, over which there is no increase: name another arm"#,
    ),
    // What contradicts.
    (
        "rate = \"1mbit\"",
        "delay = \"100ms\"",
        r#"13: "delay" does not go with "rtt": leave one out"#,
    ),
    (
        "[[figure]]",
        "[[measure.cell]]\nlink = \"lte-m\"\n[[figure]]",
        r#"19: "links" does not go with [[measure.cell]]: leave one out"#,
    ),
];

#[test]
fn errors_have_the_line_and_the_hint() {
    for (good, bad, expected) in ERRORS {
        let text = SLOW_LINKS.replacen(good, bad, 1);
        assert_ne!(text, SLOW_LINKS, "{good}");
        let error = parse(&text).expect_err(expected).to_string();
        assert_eq!(
            error,
            format!("studies/slow-links.toml:{expected}"),
            "{bad}"
        );
    }
}

const SEARCH: &str = r#"
[[search]]
id = "edges"
links = ["x"]
from = "2KB"
to = "50KB"
data = "1KiB"
initcwnd = [10, 20]
connections = 16
"#;

#[test]
fn a_search_pads_what_it_names() {
    let study = study(&format!("{BASE}{SEARCH}"));
    let [search] = &study.searches[..] else {
        panic!("{:?}", study.searches)
    };
    assert_eq!((search.from, search.to, search.sizes), (2000, 50_000, 25));
    assert_eq!(search.metric, Metric::Ttfb);
    assert_eq!(search.experiment.cells.len(), 2);
    let [rsa, ml_dsa] = &search.experiment.arms[..] else {
        panic!()
    };
    let sizes = search.first_sizes(rsa);
    assert_eq!((sizes.len(), sizes[0], sizes[24]), (25, 2162, 50_000));
    // A chain that is larger begins with itself.
    assert_eq!(search.first_sizes(ml_dsa)[0], 8562);
    let padded = ml_dsa.padded(9000).unwrap();
    assert_eq!(padded.label, "x25519/ml-dsa-44:9000B");
    assert_eq!(padded.name, "b 9000B");
    assert_eq!(padded.padded(9001), None);
    assert_eq!(ml_dsa.padded(100), None);
}

#[test]
fn searches_that_find_nothing_are_refused() {
    for (good, bad, expected) in [
        (
            "from = \"2KB\"",
            "",
            r#"missing "from" in [[search]]: write from = "2KB""#,
        ),
        (
            "from = \"2KB\"",
            "from = '50KB'",
            r#""to" can't be 50000B: use more than "from", which is 50000B"#,
        ),
        (
            "to = \"50KB\"",
            "to = '8KB'",
            r#""to" can't be 8000B: the chain of arm "b" has 8562B without padding; use more, or leave that arm out"#,
        ),
        (
            "to = \"50KB\"",
            "to = '2MB'",
            r#""to" can't be 2000000B: use 1B to 1MiB"#,
        ),
        (
            "to = \"50KB\"",
            "to = 50000",
            "missing unit in size \"50000\": did you mean \"50000KiB\"?",
        ),
        (
            "data = \"1KiB\"",
            "",
            "there is no ttfb without a response: add data = \"1KiB\"",
        ),
        (
            "data = \"1KiB\"",
            "data = '1KiB'\nsizes = 1",
            "\"sizes\" can't be 1: use 2 to 1000",
        ),
        (
            "links = [\"x\"]",
            "links = ['x']\ncpu = 'calibrated'",
            "\"cpu\" is none in [[search]]: an edge is a matter of bytes; measure the time of computing in a [[measure]]",
        ),
        (
            "connections = 16",
            "connections = 'until ±2%'",
            "\"connections\" of a search is a number: so many for each size",
        ),
        (
            "rtt = \"10ms\"",
            "rtt = '10ms'\nloss = '1%'",
            "16 connections of each size tell no step from luck where packets are lost or delayed at random: use 50 or more",
        ),
        (
            "rtt = \"10ms\"",
            "rtt = '0ms'",
            "without an RTT nothing steps: give links one",
        ),
        (
            "x25519/ml-dsa-44",
            "x25519/ml-dsa-44:9000B",
            "arm \"b\" can't grow: its chain is padded already; name one whose chain is made, without :BYTESB",
        ),
        (
            "x25519/ml-dsa-44",
            "x25519/./chain.pem",
            "arm \"b\" can't grow: its chain is a file, which is sent as it is; name one whose chain is made, without :BYTESB",
        ),
        (
            "connections = 16",
            "[[search]]\nid = 'edges'\nfrom='2KB'\nto='9KB'\ndata='1KiB'",
            r#"search "edges" is there twice: give each a name of its own"#,
        ),
    ] {
        let whole = format!("{BASE}{SEARCH}");
        let text = whole.replacen(good, bad, 1);
        assert_ne!(text, whole, "{good}");
        let error = parse(&text).expect_err(expected).to_string();
        let (_, problem) = error.split_once(": ").unwrap();
        assert_eq!(problem, expected, "{bad}");
    }
}

#[test]
fn errors_of_what_is_not_there_at_all() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    let arm = "[arm.a]\ntls = \"x25519/rsa-2048\"\n";
    let measure = "[[measure]]\nid = \"m\"\n";
    assert_eq!(
        error(""),
        r#"studies/slow-links.toml:1: missing "arm": write [arm.NAME]"#
    );
    assert_eq!(
        error("[arm]"),
        r#"studies/slow-links.toml:1: "arm" is empty: write a table such as [arm.NAME]"#
    );
    assert_eq!(
        error(arm),
        r#"studies/slow-links.toml:1: missing "measure": write [[measure]]"#
    );
    assert_eq!(
        error(&format!("measure = []\n{arm}")),
        r#"studies/slow-links.toml:1: "measure" is empty: write at least one [[measure]]"#
    );
    assert_eq!(
        error(&format!("{arm}{measure}")),
        r#"studies/slow-links.toml:3: missing "links" in [[measure]]: write [link.NAME]"#
    );
    assert_eq!(
        error(&format!("{arm}{measure}links = \"x\"")),
        r#"studies/slow-links.toml:5: unknown link "x": there is none"#
    );
    assert_eq!(
        error(&format!("{arm}{measure}[[measure.cell]]\ninitcwnd = 5")),
        r#"studies/slow-links.toml:5: missing "link" in [[measure.cell]]: write link = "NAME""#
    );
    let figure = "[[figure]]\nid = \"f\"\nmeasure = \"m\"\nplot = \"cdf\"\n";
    assert_eq!(
        error(&format!("{BASE}{figure}{figure}")),
        r#"studies/slow-links.toml:16: figure "f" is there twice: give each a name of its own"#
    );
}

#[test]
fn errors_stay_on_one_line() {
    let error = Study::parse("a\nb", Path::new("new\nline.toml")).unwrap_err();
    assert_eq!(
        error.to_string(),
        r"new\u{a}line.toml:1: not TOML: key with no value, expected `=`"
    );
    let error = parse("\"a\\nb\" = 1").unwrap_err().to_string();
    assert!(error.contains(r#"unknown key "a\nb""#), "{error}");
}

#[test]
fn there_is_an_end_to_what_lists_make() {
    let list = |unit: &str, count: u32| {
        let values: Vec<_> = (1..=count)
            .map(|value| format!("'{value}{unit}'"))
            .collect();
        format!("[{}]", values.join(", "))
    };
    let (delays, sizes) = (list("ms", 400), list("B", 400));
    let links = format!("rtt = {delays}\njitter = {}\n", list("us", 300));
    let too_many = "more than 100000 cells: shorten the lists, or write several studies";
    let error = |text: String| parse(&text).unwrap_err().to_string();

    let wide = BASE.replace("rtt = \"10ms\"", &links);
    assert_eq!(
        error(wide),
        format!("studies/slow-links.toml:8: {too_many}")
    );
    let links = links.replace(&list("us", 300), &list("us", 150));
    let wide = BASE
        .replace("rtt = \"10ms\"", &links)
        .replace("rtt = \"20ms\"", &links);
    assert_eq!(
        error(wide),
        format!("studies/slow-links.toml:12: {too_many}")
    );
    let cells = BASE.replace("rtt = \"10ms\"", &format!("rtt = {delays}"));
    assert_eq!(
        error(format!("{cells}data = {sizes}")),
        format!("studies/slow-links.toml:12: {too_many}")
    );
    let most = format!("{cells}links = 'x'\ndata = {}", list("B", 250));
    assert_eq!(study(&most).size(1).cells, 100_000);
    assert_eq!(
        error(format!("{most}\n[[measure]]\nid = 'n'")),
        format!("studies/slow-links.toml:14: {too_many}")
    );
    assert_eq!(
        error(format!(
            "{most}\n[[measure]]\nid = 'n'\n[[measure.cell]]\nlink = 'y'"
        )),
        format!("studies/slow-links.toml:16: {too_many}")
    );
}

/// That what is written of a study is the same study, wherever it is put.
fn assert_reads_again(study: &Study) {
    let text = study.to_toml();
    let again = Study::parse(&text, Path::new("/else/where.toml"))
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let expected = Study {
        path: "/else/where.toml".into(),
        text: text.clone(),
        ..study.clone()
    };
    assert_eq!(again, expected, "{text}");
}

#[test]
fn what_is_written_of_an_example() {
    let text = SLOW_LINKS.replace("lte-m]", "lte-m]\nqueue = 20");
    let (measured, _) = text.split_once("[[figure]]").unwrap();
    let study = study(measured);
    assert_reads_again(&study);
    let short = study
        .to_toml()
        .replace(&study.folder.display().to_string(), "FOLDER");
    let cells: Vec<_> = short.split("\n\n[[measure.cell]]").collect();
    assert_eq!(cells.len(), 13);
    assert_snapshot!([cells[0], cells[6], cells[12]].join("\n\n[[measure.cell]]"));
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..1000_u64).prop_map(Duration::from_millis),
        any::<u64>().prop_map(Duration::from_nanos)
    ]
}

fn probability() -> impl Strategy<Value = Probability> {
    (0.0..=1.0).prop_map(|fraction| Probability::from_fraction(fraction).unwrap())
}

fn loss() -> impl Strategy<Value = Loss> {
    let parameters = (probability(), probability(), probability(), probability());
    prop_oneof![
        probability().prop_map(Loss::Random),
        parameters.prop_map(|(to_bad, to_good, loss_in_bad, loss_in_good)| {
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            }
        }),
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    let distributions = vec![
        Distribution::Uniform,
        Distribution::Normal,
        Distribution::Pareto,
        Distribution::ParetoNormal,
    ];
    (
        duration(),
        duration(),
        prop::sample::select(distributions),
        loss(),
        prop::option::of(1..=u64::MAX),
        1..=u32::MAX,
    )
        .prop_map(
            |(delay, jitter, distribution, loss, rate, queue)| Direction {
                delay,
                jitter,
                distribution,
                loss,
                rate: rate.and_then(Rate::from_bits_per_second),
                queue,
                ..Direction::default()
            },
        )
}

fn link() -> impl Strategy<Value = Link> {
    prop_oneof![
        (duration(), direction()).prop_map(|(rtt, direction)| Link::symmetric(rtt, direction)),
        (direction(), direction()).prop_map(|(forward, backward)| Link { forward, backward }),
    ]
}

fn cell() -> impl Strategy<Value = Cell> {
    (
        link(),
        prop::option::of(name()),
        1..=1000_u32,
        1..=1000_u32,
        prop::sample::select(&Congestion::ALL[..]),
        work(),
        prop::sample::select(&Gso::ALL[..]),
        prop::sample::select(&Preset::ALL[..]),
        hosts(),
    )
        .prop_map(
            |(link, link_name, initcwnd, client_initcwnd, congestion, work, gso, preset, hosts)| {
                let (data, upload, requests, think) = work;
                Cell {
                    link,
                    link_name,
                    initcwnd,
                    client_initcwnd,
                    congestion,
                    data: Bytes(data),
                    upload: Bytes(upload),
                    requests,
                    think,
                    gso,
                    preset,
                    hosts,
                    population: None,
                    ..Cell::default()
                }
            },
        )
}

fn hosts() -> impl Strategy<Value = Hosts> {
    (
        576..=9000_u16,
        prop::sample::select(&Timestamps::ALL[..]),
        prop::sample::select(&Ecn::ALL[..]),
        prop::sample::select(&Buffers::ALL[..]),
        prop::option::of(ReceiveBuffer::LEAST.0..=ReceiveBuffer::MOST.0),
        prop::sample::select(&Tso::ALL[..]),
        prop::collection::vec(1..=1_u16 << 14, 0..=Writes::MOST),
    )
        .prop_map(
            |(mtu, timestamps, ecn, buffers, receive_buffer, tso, sizes)| {
                let sizes: Vec<String> = sizes.iter().map(|size| format!("{size}B")).collect();
                Hosts {
                    mtu: mtu.to_string().parse().unwrap(),
                    timestamps,
                    ecn,
                    buffers,
                    receive_buffer: receive_buffer.map_or(ReceiveBuffer::Unset, |bytes| {
                        ReceiveBuffer::Set(Bytes(bytes))
                    }),
                    tso,
                    writes: if sizes.is_empty() {
                        Writes::WHOLE
                    } else {
                        sizes.join("+").parse().unwrap()
                    },
                }
            },
        )
}

fn work() -> impl Strategy<Value = (u64, u64, u32, Duration)> {
    let bytes = 0..=1_u64 << 30;
    prop_oneof![
        (bytes.clone(), bytes.clone(), Just(1), duration()),
        (1..=1_u64 << 30, bytes, 1..=1000_u32, duration()),
    ]
}

/// Anything that can be a name, quotes and brackets included.
fn name() -> impl Strategy<Value = String> {
    let any = prop_oneof!["[a-z0-9-]{1,8}", "[\"'\\\\\\]. #=é]{1,4}", ".{1,4}"];
    any.prop_filter("no name", |name| !name.chars().any(is_hidden))
}

fn names(count: usize) -> impl Strategy<Value = Vec<String>> {
    let names = prop::collection::hash_set(name(), count);
    names.prop_map(|names: HashSet<String>| names.into_iter().collect())
}

/// Three arms, some of which have their label as their name.
fn arms() -> impl Strategy<Value = Vec<Arm>> {
    let labels = [
        "secp256r1/rsa-2048",
        "SecP256r1MLKEM768/ml-dsa-65+ecdsa-p256:16000B/intermediates=2",
        "x25519//etc/\"chain\".pem/key=/etc/key\\.pem",
    ];
    names(labels.len()).prop_flat_map(move |names| {
        let arms = labels.into_iter().zip(names).map(|(label, name)| {
            let arm: Arm = label.parse().unwrap();
            let named = Arm {
                name,
                ..arm.clone()
            };
            prop::sample::select(vec![arm, named])
        });
        arms.collect::<Vec<_>>()
    })
}

fn connections() -> impl Strategy<Value = Connections> {
    let until = (1..=100_000_u32, 1..=1_000_000_u32, 1..=1_000_000_u32).prop_map(
        |(thousandths, one, other)| {
            Connections::Until(Until {
                precision: format!("{}%", f64::from(thousandths) / 1000.0)
                    .parse()
                    .unwrap(),
                least: one.min(other),
                most: one.max(other),
            })
        },
    );
    let fixed = (1..=Connections::MOST).prop_map(Connections::Fixed);
    let up_to = (1..=Connections::MOST).prop_map(Connections::UpTo);
    prop_oneof![fixed, up_to, until]
}

fn experiment(arms: Vec<Arm>) -> impl Strategy<Value = Experiment> {
    (
        prop::sample::subsequence(arms, 1..=3).prop_shuffle(),
        prop::collection::vec(cell(), 1..4),
        connections(),
        prop::option::of(1..=u32::MAX),
        duration(),
        0..=Seed::MOST,
        prop::sample::select(&Emulation::ALL[..]),
        prop::sample::select(&QuicIn::ALL[..]),
        // The others are of servers that people run.
        prop::sample::select(&[CpuTime::None, CpuTime::Beside, CpuTime::Calibrated][..]),
    )
        .prop_map(
            |(arms, cells, connections, concurrency, timeout, seed, emulation, quic_in, cpu)| {
                Experiment {
                    arms,
                    cells,
                    connections,
                    concurrency,
                    timeout,
                    seed: Seed(seed),
                    emulation,
                    quic_in,
                    cpu,
                }
            },
        )
}

fn measures() -> impl Strategy<Value = Vec<Measure>> {
    (arms(), names(3), 1..=3_usize).prop_flat_map(|(arms, ids, count)| {
        let measure = |id| {
            experiment(arms.clone()).prop_map(move |experiment| Measure {
                id: String::clone(&id),
                experiment,
            })
        };
        ids.into_iter().take(count).map(measure).collect::<Vec<_>>()
    })
}

fn any_study() -> impl Strategy<Value = Study> {
    let percentiles =
        (1..=999_u16).prop_map(|per_mille| format!("p{}.{}", per_mille / 10, per_mille % 10));
    (
        name(),
        measures(),
        prop::collection::btree_set(percentiles, 1..4),
        prop::sample::select(&EngineChoice::ALL[..]),
        prop::option::of(name()),
        prop::option::of(name()),
        prop::sample::select(&Leads::ALL[..]),
    )
        .prop_map(
            |(name, measures, percentiles, engine, question, note, leads)| Study {
                name,
                question,
                answer: None,
                legends: Vec::new(),
                leads,
                note,
                path: PathBuf::new(),
                text: String::new(),
                measures,
                percentiles: percentiles.iter().map(|p| p.parse().unwrap()).collect(),
                engine,
                figures: Vec::new(),
                published: Vec::new(),
                claims: Vec::new(),
                searches: Vec::new(),
                folder: "/some where/\"else\"".into(),
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(study in any_study()) {
        assert_reads_again(&study);
    }

    #[test]
    fn any_text_is_a_study_or_one_line(
        (good, bad) in prop::sample::select(ERRORS).prop_map(|(good, bad, _)| (good, bad)),
        other in ".{0,10}|[a-z=\"\\[\\]{},.\n]{0,10}",
        at in 0..SLOW_LINKS.len(),
    ) {
        let mut text = SLOW_LINKS.replacen(good, bad, 1);
        text.insert_str(text.floor_char_boundary(at), &other);
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}

#[test]
fn stages_are_whole_blocks() {
    let text = "connections = { until = \"±2%\", least = 200, most = 10_000 }";
    let experiment = measure(text);
    let stages = |experiment: &Experiment, size| experiment.stages(&experiment.cells[0], size);
    assert_eq!(stages(&experiment, 100), [2, 4, 8, 16, 32, 64, 100]);
    assert_eq!(stages(&experiment, 250), [1, 2, 4, 7, 13, 26, 40]);
    assert_eq!(stages(&experiment, 1000), [1, 2, 4, 7, 10]);
    assert_eq!(stages(&experiment, 20_000), [1]);
    assert_eq!(stages(&measure("connections = 1000"), 250), [4]);

    let study = study(&format!("{BASE}{text}"));
    let (cells, arms) = (2, 2);
    assert_eq!(
        study.size(250),
        Size {
            cells,
            samples: cells * arms,
            blocks: cells * arms * 40,
            connections: cells * arms * 10_000,
        }
    );
    let certain = |id: &BlockId| study.is_certain(*id, 100);
    let certain: Vec<_> = study.blocks(100).filter(certain).collect();
    assert_eq!(certain.len() as u64, cells * arms * 2);
    assert!(certain.iter().all(|id| id.block < 2));
}

#[test]
fn cells_without_luck_are_looked_at_after_40_and_400_connections() {
    let experiment = up_to(1000, "loss = [\"0%\", \"1%\"]", "");
    let [calm, lossy, ..] = &experiment.cells[..] else {
        panic!("two links with two losses each");
    };
    // 0..40, 40..290, 290..400, 400..650, 650..900, 900..1000
    assert_eq!(experiment.stages(calm, 250), [1, 3, 6]);
    assert_eq!(experiment.stages(lossy, 250), [4]);
    assert_eq!(experiment.stages(calm, 20), [2, 20, 50]);
    assert!(experiment.may_end_early(calm) && !experiment.may_end_early(lossy));

    let study = Study::single("study", experiment.clone());
    let ranges = |cell: usize| -> Vec<Range<u32>> {
        let blocks = study
            .blocks(250)
            .filter(|id| (id.cell, id.arm) == (cell, 0));
        blocks.map(|id| study.block(id, 250)).collect()
    };
    assert_eq!(
        ranges(0),
        [0..40, 40..290, 290..400, 400..650, 650..900, 900..1000]
    );
    assert_eq!(ranges(1), [0..250, 250..500, 500..750, 750..1000]);

    // Where it ended after a look, it shows all.
    let shown = |cell, connections| experiment.shown_by(cell, connections);
    assert_eq!([40, 400].map(|n| shown(calm, n)), [1000; 2]);
    assert_eq!([39, 290, 1000].map(|n| shown(calm, n)), [39, 290, 1000]);
    assert_eq!(shown(lossy, 40), 40);

    let few = up_to(40, "", "");
    assert_eq!(few.stages(&few.cells[0], 250), [1]);
    assert!(!few.may_end_early(&few.cells[0]));
    // What may differ by more than what is sent is not looked at.
    for (link, load) in [
        ("", "cpu = \"calibrated\""),
        ("", "congestion = \"bbr\""),
        ("", "traffic = \"web\""),
        ("", "at_once = 10"),
        ("jitter = \"1ms\"", ""),
        ("rate = \"10mbit\"\nqdisc = \"codel\"", ""),
    ] {
        let experiment = up_to(1000, link, load);
        let stages = experiment.stages(&experiment.cells[0], 250);
        assert_eq!(stages, [4], "{link}{load}");
    }
    let mut resumed = up_to(1000, "", "");
    resumed.arms[1].resumption = Resumption::Ticket;
    assert_eq!(resumed.stages(&resumed.cells[0], 250), [4]);
}

/// A measure of up to so many connections on links that have this, and a load.
fn up_to(most: u32, link: &str, load: &str) -> Experiment {
    let text = BASE.replace("rtt = \"10ms\"", &format!("rtt = \"10ms\"\n{link}"));
    let mut study = study(&format!("{text}connections = \"up to {most}\"\n{load}"));
    study.measures.remove(0).experiment
}

proptest! {
    #[test]
    fn blocks_have_each_connection_once(
        most in 1_u32..3000,
        size in 1_u32..700,
        loss in prop_oneof!["0%", "1%"],
    ) {
        let experiment = up_to(most, &format!("loss = \"{loss}\""), "");
        let study = Study::single("study", experiment);
        let mut next = 0;
        for id in study.blocks(size).filter(|id| (id.cell, id.arm) == (0, 0)) {
            let range = study.block(id, size);
            prop_assert_eq!(range.start, next);
            prop_assert!(!range.is_empty() && range.len() <= size as usize);
            next = range.end;
        }
        prop_assert_eq!(next, most);
        let experiment = &study.measures[0].experiment;
        let stages = experiment.stages(&experiment.cells[0], size);
        let of_sample = study.blocks(size).filter(|id| (id.cell, id.arm) == (0, 0));
        prop_assert_eq!(stages.last().copied(), Some(of_sample.count() as u32));
        prop_assert!(stages.is_sorted());
    }
}

#[test]
fn sizes_and_blocks() {
    let other =
        "[[measure]]\nid = \"other\"\nconnections = 10\narms = \"pq\"\ndata = [\"0B\", \"1B\"]";
    let study = study(&format!("{SLOW_LINKS}{other}"));
    assert_eq!(
        study.size(400),
        Size {
            cells: 12 + 6,
            samples: 24 + 6,
            blocks: 24 * 3 + 6,
            connections: 24_000 + 60,
        }
    );
    let blocks: Vec<_> = study.blocks(400).collect();
    assert_eq!(blocks.len(), 78);
    assert!(blocks.is_sorted());
    let places: Vec<_> = (blocks.iter().take(7))
        .map(|id| (id.cell, id.block, id.arm, study.block(*id, 400)))
        .collect();
    assert_eq!(
        places,
        [
            (0, 0, 0, 0..400),
            (0, 0, 1, 0..400),
            (0, 1, 0, 400..800),
            (0, 1, 1, 400..800),
            (0, 2, 0, 800..1000),
            (0, 2, 1, 800..1000),
            (1, 0, 0, 0..400),
        ]
    );
    let last = blocks[77];
    assert_eq!(
        (last.measure, last.cell, last.block, last.arm),
        (1, 5, 0, 0)
    );
    assert_eq!(study.block(last, 400), 0..10);
    let all: u64 = blocks
        .iter()
        .map(|id| study.block(*id, 400).len() as u64)
        .sum();
    assert_eq!(all, study.size(400).connections);

    for absent in [
        BlockId { measure: 2, ..last },
        BlockId { cell: 6, ..last },
        BlockId {
            block: u32::MAX,
            ..last
        },
        BlockId { arm: 1, ..last },
    ] {
        let none = study.block(absent, 400);
        assert_eq!(none.start, none.end, "{absent:?}");
    }
}

#[test]
fn names_can_be_files_and_leave_the_text_around_them_alone() {
    let problem = |from: &str, to: &str| {
        let text = SLOW_LINKS.replacen(from, to, 1);
        assert_ne!(text, SLOW_LINKS);
        parse(&text).unwrap_err().to_string()
    };
    let long = format!("id = \"{}\"", "growth".repeat(50));
    assert_eq!(
        problem("id = \"growth\"", &long),
        r#"studies/slow-links.toml:17: the name "growthgrowthgrowthgr"... has 300 characters: use at most 100"#
    );
    assert_eq!(
        problem("id = \"growth\"", "id = \"a\\u001b[31m\""),
        r#"studies/slow-links.toml:17: "id" has the control character '\u{1b}': leave it out"#
    );
    assert_eq!(
        problem("id = \"growth\"", "id = \"a\\u202eb\""),
        r#"studies/slow-links.toml:17: "id" has the control character '\u{202e}': leave it out"#
    );
    // Nor have texts that pages show.
    let noted = format!("note = \"a\\u202eb\"\n{SLOW_LINKS}");
    assert_eq!(
        parse(&noted).unwrap_err().to_string(),
        r#"studies/slow-links.toml:1: "note" has the control character '\u{202e}': leave it out"#
    );
    let arm = problem("[arm.pq]", "[arm.\"p\\u0007q\"]");
    assert!(arm.contains("control character '\\u{7}'"), "{arm}");
    // Other scripts are names like any.
    let text = SLOW_LINKS.replacen(
        "id = \"growth\"",
        "id = \"\u{5d2}\u{5d3}\u{5d9}\u{5dc}\u{5d4}\"",
        1,
    );
    assert!(
        !parse(&text)
            .err()
            .is_some_and(|error| error.to_string().contains("control"))
    );
}

#[test]
fn a_file_that_is_not_utf_8_is_told_with_its_line() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("study.toml");
    std::fs::write(&path, b"connections = 1\nname = \"caf\xe9\"\n").unwrap();
    let error = Study::load(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("study.toml:2: this is not UTF-8: save the file as UTF-8"),
        "{error}"
    );
}

/// Each place of an answer has its number, and each number its place.
#[test]
fn an_answer_has_a_number_for_each_place() {
    let told = |answer: &str, number: &str| {
        let text = format!("{answer}\n{SLOW_LINKS}{number}");
        parse(&text).map_err(|error| error.to_string())
    };
    let line = SLOW_LINKS.lines().count() + 2;
    const LATER: &str = "[number.later]\nmeasure = \"growth\"\narm = \"pq\"\nwhat = \"later\"\n";
    let study = told("answer = \"It comes {later}\\nlater\"", LATER).unwrap();
    let [Piece::Words(it), Piece::Place(place), Piece::Words(later)] =
        &*study.answer.unwrap().pieces
    else {
        panic!("other pieces")
    };
    assert_eq!(
        [it.as_str(), &place.name, later],
        ["It comes ", "later", " later"]
    );
    assert_eq!(place.bearing, Bearing::Shown);
    assert_eq!(place.question.quantity, Quantity::Later { of: None });
    for (answer, number, at, expected) in [
        (
            "answer = \"It comes {later} later\"",
            "",
            1,
            "\"answer\" has a place {later} that nothing fills: write [number.later], or leave it out",
        ),
        (
            "answer = \"It comes {later later\"",
            LATER,
            1,
            "\"answer\" has a \"{\" that no \"}\" closes: write a place such as {later}",
        ),
        (
            "answer = \"It comes later\"",
            LATER,
            1,
            "\"answer\" has no place for a number, so no result can bear it out: write one such as {later}, and \
             [number.later]",
        ),
        (
            "answer = \"It comes {later} later\"",
            &format!(
                "{LATER}[number.sooner]\nmeasure = \"growth\"\narm = \"pq\"\nwhat = \"sooner\"\n"
            ),
            line + 4,
            "\"answer\" has no place {sooner} for this number: write it there, or leave the number out",
        ),
        (
            "",
            LATER,
            line,
            "numbers are for the places of an answer, and there is none: write answer = \"WORDS {NAME}\"",
        ),
        (
            "answer = \"It comes {later} later\"",
            &LATER.replace("pq", "pg"),
            line + 2,
            "unknown arm \"pg\": did you mean \"pq\"?",
        ),
        (
            "answer = \"It comes {later} later\"",
            &format!("{LATER}where = {{ data = \"7KiB\" }}\n"),
            line + 4,
            "no cell of growth is like that: compare it with the measure's lists",
        ),
        (
            "answer = \"It comes {later} later\"",
            &format!("{LATER}of = \"pq\"\n"),
            line + 2,
            "\"pq\" is compared with itself: name another arm with of",
        ),
    ] {
        assert_eq!(
            told(answer, number).unwrap_err(),
            format!("studies/slow-links.toml:{at}: {expected}")
        );
    }
}

/// Readers know arms by titles, of which no two are alike.
#[test]
fn arms_have_titles() {
    let told = |arm: &str| {
        let text = SLOW_LINKS.replacen("[arm.pq]\n", &format!("[arm.pq]\n{arm}\n"), 1);
        parse(&text).map_err(|error| error.to_string())
    };
    let study = told("title = \"16 KB\"\nabout = \"As large as <ML-DSA>\"").unwrap();
    assert_eq!(
        [study.title_of("pq"), study.title_of("classical")],
        ["16 KB", "classical"]
    );
    assert_eq!(study.about("pq"), Some("As large as <ML-DSA>"));
    assert_eq!(study.about("classical"), None);
    let line = 1 + SLOW_LINKS
        .lines()
        .position(|line| line == "[arm.pq]")
        .unwrap();
    for (arm, at, expected) in [
        (
            "title = \"classical\"".to_owned(),
            line,
            "arm \"classical\" is called \"classical\", too: give each a title of its own",
        ),
        (
            format!("title = \"{}\"", "x".repeat(200)),
            line + 1,
            "the name \"xxxxxxxxxxxxxxxxxxxx\"... has 200 characters: use at most 40",
        ),
        (
            "about = \"one\\ntwo\"".to_owned(),
            line + 1,
            "\"about\" has the control character '\\n': leave it out",
        ),
    ] {
        assert_eq!(
            told(&arm).unwrap_err(),
            format!("studies/slow-links.toml:{at}: {expected}")
        );
    }
    // An arm that is called by what it says is as long as that.
    let own = "X25519MLKEM768/ml-dsa-44/names=1/leaf_without=policies+aia+crl/stack=rustls/delivery=compressed/compression=zlib+zstd";
    assert!(own.len() > 100);
    let named = SLOW_LINKS.replacen("[arm.pq]", &format!("[arm.\"{own}\"]"), 1);
    let refused = parse(&named).err().map(|error| error.to_string());
    assert!(!refused.is_some_and(|refused| refused.contains("characters")));
    let long = SLOW_LINKS.replacen("[arm.pq]", &format!("[arm.{}]", "x".repeat(200)), 1);
    assert_eq!(
        parse(&long).unwrap_err().to_string(),
        format!(
            "studies/slow-links.toml:{line}: the name \"xxxxxxxxxxxxxxxxxxxx\"... has 200 characters: use at most 100"
        )
    );
}

#[test]
fn a_plot_takes_what_it_draws() {
    for (plot, key, is_taken) in [
        ("increase", "beside = \"arithmetic\"", true),
        ("percentiles", "beside = \"arithmetic\"", false),
        ("cdf", "x = \"loss\"", false),
        ("cdf", "percentiles = [50]", false),
        ("table", "x = \"loss\"", false),
        ("table", "percentiles = [50]", true),
        ("dots", "x = \"loss\"", true),
    ] {
        let figure = format!("[[figure]]\nid = \"f\"\nmeasure = \"m\"\nplot = \"{plot}\"\n{key}\n");
        let text = format!("{BASE}arms = [\"a\", \"b\"]\nlinks = [\"x\"]\n{figure}");
        let parsed = parse(&text);
        assert_eq!(parsed.is_ok(), is_taken, "{plot} {key}: {:?}", parsed.err());
        if let Err(error) = parsed {
            let said = format!("does not go with plot = \"{plot}\"");
            assert!(error.to_string().contains(&said), "{error}");
        }
    }
}
