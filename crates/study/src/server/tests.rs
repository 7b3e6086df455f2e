#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use super::*;
use crate::assumptions;

/// A study with these arms, and these lines of the measure.
fn study_of(arms: &[&str], measure: &str) -> Result<Study, String> {
    let arms: String = (arms.iter().enumerate())
        .map(|(place, arm)| format!("[arm.a{place}]\ntls = \"{arm}\"\n"))
        .collect();
    let text = format!(
        "{arms}[link.l]\nrtt = \"50ms\"\n[[measure]]\nid = \"m\"\nconnections = 2\n{measure}\n"
    );
    Study::parse(&text, Path::new("s.toml")).map_err(|error| error.to_string())
}

const NGINX: &str = "x25519/ecdsa-p256/server=nginx";
const OURS: &str = "x25519/ecdsa-p256";
const OBJECT: &str = "data = \"10KiB\"";

#[test]
fn transfers_of_all_servers_are_compared() {
    let measure = "data = \"10KiB\"\nrequests = 2\nthink = \"1s\"\nbuffers = \"linux\"";
    let arms = [
        OURS,
        NGINX,
        "MLKEM1024/ml-dsa-65/server=node",
        "X25519MLKEM768/ml-dsa-65/server=go/key_share=x25519/client_stack=rustls/resume=no",
    ];
    let study = study_of(&arms, measure).unwrap();
    assert!(study.has_foreign_servers());
    // What they compute is in the clock.
    assert_eq!(study.measures[0].experiment.cpu, CpuTime::Laptop);
    let again = Study::parse(&study.to_toml(), Path::new("s.toml")).unwrap();
    assert_eq!(again.measures, study.measures);
    // And nothing but handshakes.
    study_of(&[NGINX], "data = \"0KiB\"").unwrap();
}

#[test]
fn profiles_are_of_programs_that_people_run() {
    for (measure, cpu) in [
        ("data = \"1KiB\"", CpuTime::Laptop),
        ("data = \"1KiB\"\ncpu = \"none\"", CpuTime::None),
        ("page = \"median-2024\"", CpuTime::Laptop),
        ("page = \"median-2024\"\ncpu = \"phone\"", CpuTime::Phone),
    ] {
        let study = study_of(&[NGINX], measure).unwrap();
        assert_eq!(study.measures[0].experiment.cpu, cpu, "{measure}");
    }
    let error = study_of(&[NGINX], "page = \"median-2024\"\ncpu = \"beside\"").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("what a browser computes is not measured on this machine: leave cpu out"),
        "{error}"
    );
    let error = study_of(&[OURS], "data = \"1KiB\"\ncpu = \"laptop\"").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("cpu laptop is of browsers and of servers that people run"),
        "{error}"
    );
    let error = study_of(&[NGINX], "data = \"1KiB\"\ncpu = \"calibrated\"").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("is not measured on this machine: leave cpu out"),
        "{error}"
    );
}

/// What is of pages alone says nothing of transfers, whoever serves them.
#[test]
fn transfers_have_nothing_of_pages() {
    for arm in [OURS, NGINX] {
        for (key, name) in [
            ("cache = \"warm\"", "cache"),
            ("origins = 6", "origins"),
            ("cpu_slowdown = 4", "cpu_slowdown"),
        ] {
            let error = study_of(&[arm], &format!("data = \"1KiB\"\n{key}")).unwrap_err();
            let error = error.to_string();
            let expected = format!("{name} is of pages, and here is none: add page =");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

#[test]
fn our_own_server_is_asked_for_everything() {
    let study = study_of(&[OURS], "data = \"1KiB\"\nupload = \"1KiB\"").unwrap();
    assert!(!study.has_foreign_servers());
    assert_eq!(study.measures[0].experiment.cpu, CpuTime::default());
}

#[test]
fn what_another_server_can_not_is_refused_with_the_reason() {
    let of_arm = |keys: &str| format!("{NGINX}/{keys}");
    let decides = "is for Lastbyte's own server; server=nginx decides that itself: leave it out";
    let refusals = [
        (of_arm("mutual=ecdsa-p256"), OBJECT, "mutual= is for"),
        (of_arm("resume=ticket"), OBJECT, "resume= is for"),
        (of_arm("resume=0rtt"), OBJECT, decides),
        (of_arm("delivery=pqtls-ad"), OBJECT, "delivery= is for"),
        (of_arm("stack=rustls"), OBJECT, "stack= is for"),
        (of_arm("tickets=2"), OBJECT, "tickets= is for"),
        (of_arm("record_size=4096"), OBJECT, "record_size= is for"),
        (of_arm("flush=native"), OBJECT, decides),
        (
            "MLKEM768/ecdsa-p256/server=go".to_owned(),
            OBJECT,
            "server=go has no MLKEM768: it has X25519MLKEM768,",
        ),
        (
            "x25519/fn-dsa-512+rsa-2048/server=node".to_owned(),
            OBJECT,
            "server=node has no fn-dsa-512 for TLS",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\nupload = \"1KiB\"",
            "takes no uploads: leave upload out",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\nwrites = \"17B+8087B\"",
            "decides its writes itself: leave writes out",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\ncpu = \"calibrated\"",
            "leave cpu out",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\ncpu = \"beside\"",
            "is not measured on this machine: leave cpu out",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\ncpu = \"phone\"",
            "no browser is there whose phone it could be",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\nemulation = \"link\"",
            "leave emulation = \"link\" out",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\npreset = \"published-2024\"",
            "leave preset out",
        ),
        (
            NGINX.to_owned(),
            "data = \"1KiB\"\n[population]\nresumes = \"0%\"",
            "leave [population] out",
        ),
    ];
    for (arm, measure, expected) in refusals {
        let problem = study_of(&[OURS, &arm], measure).unwrap_err();
        assert!(problem.contains(expected), "{arm}, {measure}: {problem}");
        // It is said of the arm that it is true of.
        assert!(
            problem.contains("arm \"a1\""),
            "{arm}, {measure}: {problem}"
        );
        assert!(!problem.contains('\n'), "{problem}");
    }
}

/// Over QUIC, handshakes are read off the wire, without what computing takes.
#[test]
fn programs_over_quic_shake_hands_and_no_more() {
    const MEASURE: &str = "data = \"0B\"\nemulation = \"link\"";
    let arms = [
        "X25519MLKEM768/ml-dsa-65/transport=quic",
        "X25519MLKEM768/ml-dsa-65/transport=quic/server=quic-go",
        "X25519MLKEM768/ml-dsa-65/transport=quic/server=caddy/client_program=curl",
    ];
    let study = study_of(&arms, MEASURE).unwrap();
    let experiment = &study.measures[0].experiment;
    assert_eq!(experiment.cpu, CpuTime::None);
    assert!(study.has_foreign_servers());
    let programs = experiment.arms.iter().map(Arm::is_of_programs_over_quic);
    assert_eq!(programs.collect::<Vec<_>>(), [false, true, true]);
    let again = Study::parse(&study.to_toml(), Path::new("s.toml")).unwrap();
    assert_eq!(again.measures, study.measures);
    for (arm, measure, expected) in [
        (
            arms[1],
            "data = \"1KiB\"\nemulation = \"link\"",
            "write data = \"0B\"",
        ),
        (arms[1], "data = \"0B\"", "write emulation = \"link\""),
        (
            "x25519/ecdsa-p256/server=quic-go",
            MEASURE,
            "server= is of QUIC",
        ),
        (
            "x25519/ecdsa-p256/client_program=curl",
            MEASURE,
            "client_program= is of QUIC",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/server=nginx",
            MEASURE,
            "it is reached over TCP alone",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/client_program=curl/resume=ticket",
            MEASURE,
            "resume= is for Lastbyte's own server",
        ),
    ] {
        let problem = study_of(&[arm], measure).unwrap_err();
        assert!(problem.contains(expected), "{arm}, {measure}: {problem}");
    }
}

/// quiche alone can be set: its window by the cell, what it sends to an unknown address by the arm.
#[test]
fn quiche_has_knobs_and_no_other_server_has() {
    const QUICHE: &str = "X25519MLKEM768/ml-dsa-65/transport=quic/server=quiche";
    const S2N: &str = "X25519MLKEM768/ml-dsa-65/transport=quic/server=s2n-quic";
    let amplified = format!("{QUICHE}/amplification=30");
    let measure = "data = \"0B\"\nemulation = \"link\"\ninitcwnd = 32\nquic_datagram = 1300";
    let study = study_of(&[QUICHE, &amplified, S2N], measure).unwrap();
    let again = Study::parse(&study.to_toml(), Path::new("s.toml")).unwrap();
    assert_eq!(again.measures, study.measures);
    let experiment = &study.measures[0].experiment;
    let of_each = experiment.arms.iter().map(|arm| {
        let mut assumed = assumptions(arm, &experiment.cells).into_iter();
        let window = assumed.find(|one| one.subject == "window");
        (arm.amplification, window.unwrap().value)
    });
    // Its datagrams are its own.
    let window = || "32 datagrams of 1200 bytes at first".to_owned();
    assert_eq!(
        of_each.collect::<Vec<_>>(),
        [
            (None, window()),
            (Some(30), window()),
            (None, "as s2n-quic has it".to_owned()),
        ]
    );
    for (arm, expected) in [
        (
            format!("{S2N}/amplification=30"),
            "of all servers, quiche alone can be set so: add server=quiche, or leave it out",
        ),
        (
            "x25519/ecdsa-p256/transport=quic/amplification=30".to_owned(),
            "of all servers, quiche alone can be set so",
        ),
        (
            "x25519/ecdsa-p256/amplification=30".to_owned(),
            "amplification= is of QUIC: add transport=quic, or leave it out",
        ),
        (
            "x25519/ecdsa-p256/server=quiche".to_owned(),
            "server= is of QUIC",
        ),
        (
            format!("{QUICHE}/amplification=0"),
            "amplification=\"0\" is not possible: use 1 to 100",
        ),
        (
            "SecP256r1MLKEM768/ml-dsa-65/transport=quic/server=quiche".to_owned(),
            "server=quiche has no SecP256r1MLKEM768",
        ),
    ] {
        let problem = study_of(&[&arm], measure).unwrap_err();
        assert!(problem.contains(expected), "{arm}: {problem}");
    }
}
