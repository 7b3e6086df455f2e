//! `lastbyte rtt`: tables of RTTs, and the first byte by region.
use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Ended, lastbyte, run};

const OLD: &str = "x25519/ecdsa-p256";
const NEW: &str = "SecP256r1MLKEM768/ml-dsa-65";

/// A folder with two regions and a table in it.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
    write(
        "table.csv",
        "from,to,rtt_ms\nParis,Virginia,83\nLima,Virginia,92.5\n",
    );
    write(
        "users.csv",
        "region,users,edge,edge_rtt,origin_rtt,lat,lon\n\
         France,3,Paris,14ms,95ms,46,2\nPeru,1,Lima,30ms,,-9,-75\n",
    );
    write("far.csv", "region,edge\nPeru,Lima\nChile,Lima\n");
    place
}

fn ask(place: &TempDir, arguments: &[&str]) -> Ended {
    let mut command = lastbyte(["rtt"]);
    run(command.current_dir(place.path()).args(arguments))
}

const REGIONS: [&str; 6] = [
    "--table",
    "table.csv",
    "--users",
    "users.csv",
    "--origin",
    "Virginia",
];

#[test]
fn the_table_that_comes_along_is_told() {
    let ended = run(&mut lastbyte(["rtt"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in ["Attribution 4.0", "not for users", "54 places", "West US 3"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let ended = run(&mut lastbyte(["rtt", "--format", "json"]));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["table"]["rtts"], 54 * 53);
}

#[test]
fn regions_are_told_drawn_and_kept_for_a_study() {
    let place = place();
    let files = [
        "--svg",
        "dots.svg",
        "--map",
        "map.svg",
        "--population",
        "regions.csv",
    ];
    let ended = ask(&place, &[&[OLD, NEW], &REGIONS[..], &files].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in ["France", "mean of users", "direct", "cold", "warm", NEW] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    for name in ["dots.svg", "map.svg"] {
        roxmltree::Document::parse(&read(name)).unwrap();
    }
    assert_eq!(
        read("regions.csv"),
        "class,rtt,weight\nFrance,14ms,3\nPeru,30ms,1\n"
    );
    // A study takes what was written.
    let study = "[arm.old]\ntls = \"x25519/ecdsa-p256\"\n[population]\njoint = \"regions.csv\"\n\
                 [link.all]\n[[measure]]\nid = \"m\"\n";
    fs::write(place.path().join("study.toml"), study).unwrap();
    let study = lastbyte::study::Study::load(&place.path().join("study.toml")).unwrap();
    let population = study.measures[0].experiment.cells[0].population.clone();
    assert!(population.unwrap().draws(lastbyte::study::Parameter::RTT));
}

#[test]
fn what_can_not_be_is_told_in_one_line() {
    let place = place();
    let regions = |more: &[&'static str]| [&[OLD], &REGIONS[..], more].concat();
    let table: &[(Vec<&str>, &str)] = &[
        (vec![OLD], "--users"),
        (vec!["--users", "users.csv"], "--origin"),
        (vec!["--table", "nowhere.csv"], "can't read \"nowhere.csv\""),
        (vec!["--table", "users.csv"], "\"users.csv\", line 2: from"),
        (regions(&["--rtt", "10ms"]), "stated with --user-edge"),
        (regions(&["--rate", "1mbit,2mbit"]), "these are 2 networks"),
        (regions(&["--data", "0KiB"]), "no first byte"),
        (regions(&["--loss", "1%"]), "loss is luck"),
        (regions(&["--edge", "Parsi"]), "which --edge does not name"),
        (regions(&["--user-edge", "0ms"]), "nothing takes no time"),
        (
            regions(&["--origin-connection", "luke"]),
            "unknown connection to the origin",
        ),
        (
            regions(&["--svg", "missing/dots.svg"]),
            "there is no folder",
        ),
        (
            vec![OLD, "--users", "users.csv", "--origin", "East SU"],
            "it has no \"Paris\"",
        ),
        (
            vec![
                OLD,
                "--table",
                "table.csv",
                "--users",
                "far.csv",
                "--origin",
                "Virginia",
            ],
            "region \"Peru\" has no RTT to its edge \"Lima\"",
        ),
        (
            vec![
                OLD,
                "--table",
                "table.csv",
                "--users",
                "far.csv",
                "--origin",
                "Virginia",
                "--user-edge",
                "5ms,15ms",
                "--population",
                "regions.csv",
            ],
            "--population takes one RTT from users to edges, and 2 are stated",
        ),
        (
            vec![
                OLD,
                "--table",
                "table.csv",
                "--users",
                "far.csv",
                "--origin",
                "Virginia",
                "--user-edge",
                "5ms",
                "--map",
                "map.svg",
            ],
            "give lat and lon",
        ),
    ];
    for (arguments, expected) in table {
        let ended = ask(&place, arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{arguments:?}: {ended:?}");
    }
    assert!(!place.path().join("regions.csv").exists());
}

/// Both connections of an edge, measured apart and added by hand.
#[test]
fn the_virtual_engine_measures_what_is_added() {
    let place = place();
    let ended = ask(
        &place,
        &[&[OLD, NEW], &REGIONS[..], &["--format", "json"]].concat(),
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = |arm: usize, way: &str| {
        let ttfb = &told["settings"][0]["regions"][0]["ttfb_ns"][arm][way];
        Duration::from_nanos(ttfb.as_u64().unwrap()).as_secs_f64() * 1e3
    };
    // With the user's own cache, which has the kernel.
    let mut compare = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    compare
        .args([
            "compare",
            "--engine",
            "virtual",
            "--format",
            "json",
            "--data",
            "50KiB",
            "--connections",
            "2",
            // As arithmetic has it.
            "--cpu",
            "none",
            "--chain-profile",
            "private",
        ])
        .args([
            "--rtt",
            "14ms,83ms,95ms",
            "--baseline",
            OLD,
            "--against",
            NEW,
        ]);
    let ended = run(compare.current_dir(place.path()));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let measured: Value = serde_json::from_str(&ended.stdout).unwrap();
    for arm in 0..2 {
        let [front, behind, direct] = [0, 1, 2].map(|cell| {
            let ttfb = &measured["cells"][cell]["arms"][arm]["ttfb_ms"]["p50"];
            ttfb.as_f64().unwrap()
        });
        for (told, measured) in [
            (told(arm, "direct"), direct),
            (told(arm, "cold"), front + behind),
        ] {
            let difference = (told - measured).abs();
            assert!(
                difference < 0.01 * measured,
                "{told} ms, measured {measured} ms"
            );
        }
        // What a request alone takes is no handshake's matter.
        let warm = told(arm, "warm") - front;
        assert!((83.0..84.0).contains(&warm), "{warm} ms");
    }
}

/// As `compare` takes it.
#[test]
fn a_chain_alone_is_an_arm() {
    let place = place();
    let told = |arm: &str| {
        let ended = ask(&place, &[&REGIONS[..], &["--within", "1ms", arm]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    assert_eq!(told("ml-dsa-44"), told("X25519MLKEM768/ml-dsa-44"));
}
