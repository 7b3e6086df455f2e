#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

/// One cell that has nothing as usual, but for the preset.
fn unusual() -> Cell {
    let mut cell = Cell::default();
    for (name, text) in [
        ("link", "far"),
        ("rtt", "70ms"),
        // It takes the rate's place.
        ("trace", "src/parameter/short.trace once"),
        ("rate", "3mbit"),
        ("loss", "gemodel:1%/10%"),
        ("jitter", "2ms"),
        ("jitter_distribution", "pareto"),
        ("jitter_order", "kept"),
        ("queue", "17"),
        ("qdisc", "codel target 10ms"),
        ("cross_traffic", "2 cubic+bbr up"),
        ("cross_lead", "3s"),
        ("at_once", "6"),
        ("gso", "on"),
        ("mtu", "1280"),
        ("timestamps", "off"),
        ("ecn", "on"),
        ("buffers", "linux"),
        ("receive_buffer", "64KiB"),
        ("tso", "off"),
        ("writes", "17B+8087B"),
        ("congestion", "reno"),
        ("client_initcwnd", "11"),
        ("initcwnd", "12"),
        ("quic_datagram", "1350"),
        ("quic_client_datagram", "1250"),
        ("quic_initial_rtt", "100ms"),
        ("quic_ack_delay", "5ms"),
        ("quic_mtu_discovery", "on"),
        ("page", "median-2024"),
        ("origins", "2"),
        ("cache", "warm"),
        ("cpu_slowdown", "4"),
        ("client_cpu", "iot"),
        ("traffic", "web"),
        ("requests", "2"),
        ("think", "5ms"),
        ("upload", "3KiB"),
        ("data", "4KiB"),
    ] {
        let parameter: Parameter = name.parse().unwrap();
        assert!(parameter.is_usual(&cell), "{name}");
        parameter.set(&mut cell, text, &StudyFolder::HERE).unwrap();
        assert_eq!(parameter.of(&cell), text);
        assert_eq!(parameter.canonical(text).unwrap(), text);
        assert!(!parameter.is_usual(&cell), "{name}");
    }
    cell
}

#[test]
fn each_parameter_is_set_and_said() {
    let cell = unusual();
    let usual = Cell::default();
    for parameter in Parameter::ALL {
        let is_preset = parameter.name() == "preset";
        assert_eq!(
            parameter.of(&cell) == parameter.of(&usual),
            is_preset,
            "{parameter}"
        );
        assert_eq!(parameter.name().parse(), Ok(parameter));
    }
    // Neither is the name of the link reported where the links differ.
    assert_eq!(varying(&[&cell, &usual]).len(), Parameter::ALL.len() - 2);
}

#[test]
fn a_preset_brings_what_goes_with_it() {
    let mut cell = unusual();
    let preset: Parameter = "preset".parse().unwrap();
    preset
        .set(&mut cell, "published-2024", &StudyFolder::HERE)
        .unwrap();
    let of_preset: Vec<_> = (Parameter::ALL.into_iter())
        .filter(|parameter| parameter.goes_with_preset())
        .map(Parameter::name)
        .collect();
    assert_eq!(of_preset.join(" "), "gso mtu timestamps buffers tso writes");
    let [rtt, mtu] = ["rtt", "mtu"].map(|name| name.parse::<Parameter>().unwrap());
    assert!(mtu.is_usual(&cell) && !rtt.is_usual(&cell));
}

#[test]
fn directions_that_differ_have_no_number() {
    let mut cell = unusual();
    cell.link.backward.queue = 99;
    let queue: Parameter = "queue".parse().unwrap();
    assert_eq!((queue.value(&cell), queue.number(&cell)), (None, None));
    assert_eq!(queue.describe(&cell), "queue 17 up and 99 down");
    assert_eq!(Parameter::DATA.number(&cell), Some(4.0));
}

#[test]
fn no_limit_of_the_rate_can_be_said() {
    let rate: Parameter = "rate".parse().unwrap();
    let mut cell = unusual();
    rate.set(&mut cell, "unlimited", &StudyFolder::HERE)
        .unwrap();
    assert_eq!(cell.link.forward.rate, None);
    assert_eq!(
        (rate.of(&cell), rate.number(&cell)),
        ("unlimited".into(), None)
    );
    assert_eq!(rate.describe(&cell), "rate of a trace");
    let trace: Parameter = "trace".parse().unwrap();
    trace.set(&mut cell, "none", &StudyFolder::HERE).unwrap();
    assert_eq!(rate.describe(&cell), "no rate limit");
    rate.set(&mut cell, "1mbit", &StudyFolder::HERE).unwrap();
    let file = "src/parameter/short.trace";
    for (text, caption) in [
        (file.to_owned(), format!("trace {file}")),
        (
            format!("{file}:{file} once"),
            format!("trace {file} once up and {file} down"),
        ),
    ] {
        trace.set(&mut cell, &text, &StudyFolder::HERE).unwrap();
        assert_eq!(rate.of(&cell), "unlimited");
        assert_eq!(
            (trace.of(&cell), trace.caption(&cell)),
            (text, Some(caption))
        );
        let rate = |cell| {
            let arm = "x25519/ecdsa-p256".parse().unwrap();
            let all = crate::assumptions(&arm, &[cell]).into_iter();
            all.map(|one| (one.subject, one.value, one.changed_by))
                .find(|(subject, ..)| *subject == "rate")
        };
        let of_trace = format!("that of the trace {}", trace.of(&cell));
        assert_eq!(rate(cell.clone()), Some(("rate", of_trace, "--trace")));
        assert_eq!(
            rate(Cell::default()),
            Some(("rate", "unlimited".to_owned(), "--rate, --link"))
        );
    }
}

#[test]
fn rates_down_and_up_are_set_and_said() {
    let rate: Parameter = "rate".parse().unwrap();
    let mut cell = Cell::default();
    rate.set(&mut cell, "50mbit/10mbit", &StudyFolder::HERE)
        .unwrap();
    let rates = |cell: &Cell| [&cell.link.backward, &cell.link.forward].map(|way| way.rate);
    let [down, up] = ["50mbit", "10mbit"].map(|text| Some(text.parse().unwrap()));
    assert_eq!(rates(&cell), [down, up]);
    assert_eq!((rate.value(&cell), rate.number(&cell)), (None, None));
    assert_eq!(rate.of(&cell), "50mbit/10mbit");
    assert_eq!(rate.describe(&cell), "10mbit up and 50mbit down");

    rate.set(&mut cell, "unlimited/10mbit", &StudyFolder::HERE)
        .unwrap();
    assert_eq!(rates(&cell), [None, up]);
    assert_eq!(rate.describe(&cell), "10mbit up and no rate limit down");

    // Another way to say the same.
    assert_eq!(rate.canonical("8mbit/8000kbit").unwrap(), "8mbit");
    for (text, problem) in [
        ("50mbit/", r#"empty rate: write one such as "10mbit""#),
        ("/5mbit", r#"empty rate: write one such as "10mbit""#),
        (
            "9mbit/8mbit/7mbit",
            r#"unknown unit "mbit/7mbit" in "8mbit/7mbit": use one of tbit"#,
        ),
        ("9mbit/0bit", r#"rate "0bit" is zero"#),
    ] {
        let refused = rate.canonical(text).unwrap_err().to_string();
        assert!(refused.starts_with(problem), "{refused}");
    }
    // Only a rate has two.
    let queue: Parameter = "queue".parse().unwrap();
    assert!(queue.canonical("10/20").is_err());
}
