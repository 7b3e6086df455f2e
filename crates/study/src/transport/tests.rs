#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use crate::{
    Arm, Buffers, Cell, Hosts, Parameter, QuicIn, Study, Timestamps, TransportName, check_place,
};

const TCP: &str = "x25519/ecdsa-p256";
const QUIC: &str = "x25519/ecdsa-p256/transport=quic";

/// What a study of these arms says of these lines of its only measure, or of its search.
fn refusal(arms: &[&str], part: &str, lines: &str) -> Option<String> {
    let arms: String = (arms.iter().enumerate())
        .map(|(place, arm)| format!("[arm.a{place}]\ntls = \"{arm}\"\n"))
        .collect();
    let text = format!(
        "connections = 2\n{arms}[link.l]\nrtt = \"50ms\"\n[[measure]]\nid = \"m\"\n{part}{lines}\n"
    );
    let read = Study::parse(&text, Path::new("s.toml"));
    read.err().map(|error| error.to_string())
}

/// A value of each of them that is not the usual one.
fn unusual(parameter: Parameter) -> &'static str {
    match parameter.name() {
        "preset" => "\"published-2024\"",
        "gso" => "\"on\"",
        "timestamps" | "tso" => "\"off\"",
        "buffers" => "\"large\"",
        "receive_buffer" => "\"64KiB\"",
        "writes" => "\"17B\"",
        "quic_datagram" | "quic_client_datagram" => "1250",
        "quic_initial_rtt" | "quic_ack_delay" => "\"50ms\"",
        "quic_mtu_discovery" => "\"on\"",
        other => panic!("a new parameter of one transport: {other}"),
    }
}

#[test]
fn what_acts_on_no_arm_is_refused_and_says_what_an_arm_would_need() {
    let mut refused = 0;
    for parameter in Parameter::ALL {
        let Some(transport) = parameter.transport() else {
            continue;
        };
        let (has, has_not, hint) = match transport {
            TransportName::Tcp => (TCP, QUIC, "add one without transport=quic"),
            TransportName::Quic => (QUIC, TCP, "no arm has transport=quic: add one with it"),
        };
        let line = format!("{} = {}", parameter.name(), unusual(parameter));
        for part in ["", SEARCH] {
            let problem = refusal(&[has_not], part, &line).expect(&line);
            assert!(problem.contains(hint), "{problem}");
            assert!(problem.contains(parameter.name()), "{problem}");
            assert!(!problem.contains('\n'), "{problem}");
        }
        assert_eq!(refusal(&[has], "", &line), None);
        assert_eq!(refusal(&[has_not, has], "", &line), None, "{line}");
        refused += 1;
    }
    assert_eq!(refused, 12);
}

const SEARCH: &str = "[[search]]\nid = \"s\"\nfrom = \"2KB\"\nto = \"24KB\"\ndata = \"1KiB\"\n";

/// As a study is kept beside its results.
#[test]
fn what_is_usual_may_be_said_of_any_arm() {
    for (arm, line) in [(QUIC, "timestamps = \"on\""), (TCP, "quic_datagram = 1200")] {
        assert_eq!(refusal(&[arm], "", line), None);
    }
}

/// Where they are carried is of arms over QUIC. A study says it of all its measures, whichever arms those have.
#[test]
fn the_place_of_quic_is_of_arms_over_quic() {
    let arms = |text: &str| -> Vec<Arm> {
        Study::parse(text, Path::new("s.toml")).unwrap().measures[0]
            .experiment
            .arms
            .clone()
    };
    let [tcp, quic] = [TCP, QUIC].map(|arm| {
        arms(&format!("connections = 2\n[arm.a]\ntls = \"{arm}\"\n[link.l]\nrtt = \"50ms\"\n[[measure]]\nid = \"m\"\n"))
    });
    let problem = check_place(QuicIn::Guest, &tcp).unwrap_err().to_string();
    assert!(problem.contains("quic_in is of QUIC alone"), "{problem}");
    assert_eq!(check_place(QuicIn::Guest, tcp.iter().chain(&quic)), Ok(()));
    assert_eq!(check_place(QuicIn::Model, &tcp), Ok(()));
    assert_eq!(refusal(&[TCP], "", "quic_in = \"guest\""), None);
}

/// There is no handshake of TCP's over QUIC, whoever asks for it.
#[test]
fn a_time_that_no_arm_has_is_refused() {
    let figure = "[[figure]]\nid = \"f\"\nplot = \"cdf\"\nmeasure = \"m\"\n";
    let claim = "[[claim]]\nid = \"c\"\ntext = \"t\"\n[[claim.check]]\nmeasure = \"m\"\narm = \"a0\"\nwhat = \"time\"\n\
                 within = \"0..5\"\n";
    let number = "[number.n]\nmeasure = \"m\"\narm = \"a0\"\nwhat = \"time\"\n";
    for metric in ["connect", "tls_handshake"] {
        let line = format!("metric = \"{metric}\"");
        for part in [figure, claim, SEARCH] {
            let problem = refusal(&[QUIC], part, &line).expect(part);
            let expected = format!("there is no {metric} over QUIC");
            // A search has other metrics besides.
            assert!(problem.contains(&expected), "{problem}");
            assert!(!problem.contains('\n'), "{problem}");
        }
        assert_eq!(refusal(&[QUIC, TCP], figure, &line), None);
        assert_eq!(
            refusal(&[QUIC, TCP], &format!("{figure}arms = [\"a1\"]\n"), &line),
            None
        );
        let of_quic = format!("{figure}arms = [\"a0\"]\n");
        assert!(refusal(&[QUIC, TCP], &of_quic, &line).is_some());
        assert!(refusal(&[QUIC, TCP], number, &line).is_some());
    }
    assert_eq!(refusal(&[QUIC], figure, "metric = \"handshake\""), None);
}

/// A cell that arms of both transports share, as an arm of one has it alone.
#[test]
fn what_is_of_another_transport_goes_without_saying() {
    let cell = Cell {
        initcwnd: 20,
        hosts: Hosts {
            buffers: Buffers::Linux,
            timestamps: Timestamps::Off,
            ..Hosts::default()
        },
        ..Cell::default()
    };
    let expected = Cell {
        hosts: Hosts::default(),
        ..cell.clone()
    };
    assert_eq!(cell.of_transport(TransportName::Quic), expected);
    assert_eq!(cell.of_transport(TransportName::Tcp), cell);
}
