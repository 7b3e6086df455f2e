//! Kinds of traffic, from the command line and studies to rows: in the virtual kernel.
use std::fs;
use std::process::Command;

use crate::common::{Ended, at, run};
use lastbyte::results::{Dataset, Resumption};
use tempfile::TempDir;

/// The program with the user's own cache, which has the kernel.
fn lastbyte(folder: &TempDir, arguments: &str) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    run(command
        .args(arguments.split_whitespace())
        .current_dir(folder.path()))
}

/// These columns of a CSV file, row by row.
fn columns(folder: &TempDir, file: &str, names: &[&str]) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(at(folder, file)).unwrap();
    let titles = reader.headers().unwrap().clone();
    let places: Vec<usize> = names
        .iter()
        .map(|name| titles.iter().position(|known| known == *name).unwrap())
        .collect();
    let records = reader.records().map(Result::unwrap);
    records
        .map(|record| {
            places
                .iter()
                .map(|place| record[*place].to_owned())
                .collect()
        })
        .collect()
}

/// Both arms meet the same draws, whatever else there is; what is said besides has the last word; of `iot`, clients prove themselves.
#[test]
fn each_connection_carries_what_its_traffic_draws() {
    let folder = TempDir::new().unwrap();
    let arms = "x25519/ecdsa-p256/intermediates=1 x25519/ml-dsa-44/intermediates=1";
    let ask = |rest: &str| {
        let question = format!("compare {arms} --cpu none --connections 12 --seed 3 {rest}");
        let ended = lastbyte(&folder, &question);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended
    };
    let drawn = [
        "arm",
        "traffic",
        "requests",
        "think_ns",
        "data_bytes",
        "resumed",
    ];
    let told = ask("--link fibre --traffic web,mobile-web -o rows.csv");
    assert!(told.stdout.contains("traffic mobile-web"), "{told:?}");
    let rows = columns(&folder, "rows.csv", &drawn);
    assert_eq!(rows.len(), 48);
    let of = |arm: &str, traffic: &str| -> Vec<Vec<String>> {
        let its = rows
            .iter()
            .filter(|row| row[0].contains(arm) && row[1] == traffic);
        its.map(|row| row[2..].to_vec()).collect()
    };
    let web = of("ecdsa", "web");
    assert_eq!((web.len(), &web), (12, &of("ml-dsa", "web")));
    assert_ne!(web, of("ecdsa", "mobile-web"));
    let resumed = web.iter().filter(|row| row[3] == "true").count();
    assert!((1..=11).contains(&resumed), "{resumed}");

    // Users of networks, and a size that is said.
    ask("--mix lte=1,fibre=1 --traffic web --data 3KiB -o mixed.csv");
    let mixed = columns(&folder, "mixed.csv", &[&drawn[..], &["class"]].concat());
    for (row, before) in mixed.iter().take(12).zip(&web) {
        assert_eq!(row[4], "3072");
        assert_eq!((&row[2], &row[5]), (&before[0], &before[3]));
        assert!(["lte", "fibre"].contains(&row[6].as_str()));
    }

    let told = ask("--link lte --traffic iot -o iot.csv");
    assert!(
        told.stderr
            .contains("of the traffic iot, clients prove themselves"),
        "{told:?}"
    );
    let iot = columns(
        &folder,
        "iot.csv",
        &["client_certificate_bytes", "upload_bytes"],
    );
    for row in &iot {
        let bytes: u32 = row[0].parse().unwrap();
        assert!(bytes > 500, "{row:?}");
        assert!((1..=1024).contains(&row[1].parse::<u32>().unwrap()));
    }
}

/// A profile of one's own in a study, beside a kind with a name; results keep its file and are read again.
#[test]
fn a_study_has_kinds_and_files_of_ones_own() {
    let folder = TempDir::new().unwrap();
    let profile = "[population.joint]\ndata_bytes = [1000, 2000]\nresumes = [true, false]\nrtt = [\"5ms\", \"9ms\"]\n";
    fs::write(at(&folder, "own.toml"), profile).unwrap();
    let study = "engine = \"virtual\"\nconnections = 10\ncpu = \"none\"\n[population]\ntraffic = \"updates\"\nthink = \"1ms\"\n\
                 [arm.one]\ntls = \"x25519/ecdsa-p256\"\n[arm.other]\ntls = \"x25519/ml-dsa-44/resume=no\"\n[link.near]\nrtt = \"20ms\"\n\
                 [[measure]]\nid = \"several\"\ntraffic = [\"own.toml\", \"web\"]\n[[measure]]\nid = \"usual\"\n\
                 [[measure]]\nid = \"machines\"\ntraffic = \"mesh\"\ndata = \"1KiB\"\nupload = \"1KiB\"\nrequests = 2\n";
    fs::write(at(&folder, "study.toml"), study).unwrap();
    let ended = lastbyte(&folder, "run study.toml -o results");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    fs::remove_file(at(&folder, "own.toml")).unwrap();
    let dataset = Dataset::open(&at(&folder, "results")).unwrap();
    let measures = &dataset.study.measures;
    let samples: Vec<_> = dataset.samples().unwrap().map(Result::unwrap).collect();
    assert_eq!(samples.len(), 8);
    for (key, sample) in samples {
        let experiment = &measures[key.measure].experiment;
        let cell = &experiment.cells[sample.cell];
        let arm = &experiment.arms[sample.arm];
        let traffic = cell.traffic.as_ref().unwrap().name();
        let expected =
            [["own.toml", "web"], ["updates", ""], ["mesh", ""]][key.measure][sample.cell];
        assert_eq!(traffic, expected);
        assert_eq!(arm.client_chain.is_some(), traffic == "mesh");
        for row in &sample.rows {
            let draw = cell.draw(row.index).unwrap();
            let value = |name: &str| {
                let values = draw.values.iter();
                let mut text = values
                    .filter(|(one, _)| one.name() == name)
                    .map(|(_, text)| &**text);
                text.next().map(str::to_owned)
            };
            assert_eq!(value("think").as_deref(), Some("1ms"));
            assert_eq!(value("rtt"), None);
            let is_resumed = row.exchange.negotiated.resumption == Resumption::Resumed;
            assert_eq!(is_resumed, arm.session(cell, row.index).name() != "no");
            assert!(!(is_resumed && arm.name == "other"));
            if traffic == "own.toml" {
                let data = value("data").unwrap();
                assert!(["1000B", "2000B"].contains(&data.as_str()), "{data}");
            }
        }
    }
    let ended = lastbyte(&folder, "report results -o page.html");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let page = fs::read_to_string(at(&folder, "page.html")).unwrap();
    assert!(page.contains("For whom it is noticeable") && page.contains("own.toml, near"));
}

#[test]
fn a_plan_is_of_the_traffic() {
    let folder = TempDir::new().unwrap();
    let arguments =
        "plan ml-dsa-44 --traffic mobile-web --users lte=60,fibre=40 -n 400 --format json";
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command
        .args(arguments.split_whitespace())
        .current_dir(folder.path());
    // Where there is no kernel, it is arithmetic, which takes no time.
    let ended = run(command.env("XDG_CACHE_HOME", folder.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let granted = document["taken_for_granted"].as_array().unwrap();
    let keys: Vec<&str> = granted
        .iter()
        .map(|one| one["key"].as_str().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "connections_per_user",
            "requests",
            "think",
            "data",
            "resumes",
            "mutual"
        ]
    );
    assert!(
        granted[3]["source"]
            .as_str()
            .unwrap()
            .contains("Web Almanac")
    );
}

#[test]
fn what_is_no_traffic_is_refused_in_one_line() {
    let folder = TempDir::new().unwrap();
    fs::write(at(&folder, "rtts.toml"), "[population]\nrtt = \"5ms\"\n").unwrap();
    fs::write(
        at(&folder, "profile.toml"),
        "[population]\ndata = \"5KiB\"\n",
    )
    .unwrap();
    for (arguments, expected) in [
        (
            "compare --traffic wbe",
            "unknown kind of traffic \"wbe\": did you mean \"web\"?",
        ),
        (
            "compare --traffic missing.toml",
            "can't read traffic \"missing.toml\"",
        ),
        (
            "compare --traffic rtts.toml",
            "rtts.toml:1: the traffic does not say how much servers answer",
        ),
        (
            "compare --traffic web,mesh",
            "of the traffic \"mesh\" clients prove themselves, and of \"web\" they don't",
        ),
        (
            "compare --traffic web,web",
            "--traffic: \"web\" is given twice: leave one out",
        ),
        ("compare --traffic web --page median-2024", "--page"),
        ("compare --traffic web --engine live", "virtual"),
        (
            "explain ml-dsa-44 --traffic web",
            "--traffic web is drawn, and so it is measured",
        ),
        (
            "explain ml-dsa-44 --client-cpu phone",
            "--client-cpu phone: ends compute in no time here",
        ),
        (
            "lose ml-dsa-44 --client-cpu 8x",
            "--client-cpu 8x: ends compute in no time here",
        ),
        (
            "plan ml-dsa-44 --traffic web --profile profile.toml",
            "--profile",
        ),
        (
            "plan ml-dsa-44 --traffic cloud",
            "did you mean \"cloud-api\"?",
        ),
        (
            "probe example.com --traffic web",
            "suppose a chain with --what-if",
        ),
        (
            "probe example.com --what-if ml-dsa-44 --traffic web --measure",
            "--traffic is its medians here",
        ),
    ] {
        let ended = lastbyte(&folder, arguments);
        assert_eq!(
            ended.code,
            Some(2),
            "{arguments}: {}{}",
            ended.stdout,
            ended.stderr
        );
        let lines: Vec<&str> = ended
            .stderr
            .lines()
            .filter(|line| !line.is_empty())
            .collect();
        assert!(
            ended.stderr.contains(expected),
            "{arguments}: {}",
            ended.stderr
        );
        // clap's own have its usage below.
        assert!(
            lines.len() == 1 || ended.stderr.contains("Usage:") || ended.stderr.contains("--help"),
            "{lines:?}"
        );
    }
}
