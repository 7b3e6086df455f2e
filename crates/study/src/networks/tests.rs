#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use super::*;

#[test]
fn each_value_is_read_and_said_as_it_is_written() {
    for network in NamedNetwork::ALL {
        let name = network.name;
        for written in [name.to_owned(), name.to_uppercase()] {
            assert_eq!(NamedNetwork::find(&written).unwrap().name, name);
        }
        let cell = Cell {
            link: network.link(),
            ..Cell::default()
        };
        for (parameter, text) in network.values() {
            let canonical = parameter.canonical(text).unwrap();
            assert_eq!(parameter.of(&cell), canonical, "{name} {parameter}");
        }
        assert!(network.source.contains("20"), "{name} has no year");
    }
}

#[test]
fn who_writes_another_name_is_told_which_was_meant() {
    for (name, hint) in [
        ("lt", r#"unknown network "lt": did you mean "lte"?"#),
        ("fiber", r#"unknown network "fiber": did you mean "fibre"?"#),
        ("4G", r#"unknown network "4G": use "lte""#),
        ("starlink", r#"unknown network "starlink": use "leo""#),
        (
            "bad-wify",
            r#"unknown network "bad-wify": did you mean "bad-wifi"?"#,
        ),
        (
            "dial-up",
            r#"unknown network "dial-up": use one of fibre, cable, lte, 5g, 3g, leo, geo, bad-wifi, lte-m"#,
        ),
    ] {
        let problem = NamedNetwork::find(name).unwrap_err();
        assert_eq!(problem.to_string(), hint);
    }
}

/// `docs/networks.md` has the table of all networks, line by line.
#[test]
fn the_page_has_the_table() {
    let line = |cells: [&str; 7]| format!("| {} |\n", cells.join(" | "));
    let head = [
        "name", "network", "RTT", "down/up", "loss", "jitter", "source",
    ];
    let mut table = line(head) + &line(["---"; 7]);
    for network in NamedNetwork::ALL {
        let name = format!("`{}`", network.name);
        let NamedNetwork {
            what,
            rtt,
            rate,
            loss,
            jitter,
            source,
            ..
        } = network;
        table += &line([&name, what, rtt, rate, loss, jitter, source]);
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/networks.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&table), "docs/networks.md must have\n{table}");
}
