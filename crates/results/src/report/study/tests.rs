#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::command::commands;
use super::verdict::{Agreement, Verdict, check_claims, compare, prediction};
use super::{Findings, automatic, figures, page};
use crate::results::fixtures::{CLASSICAL, HYBRID, run_folder};
use crate::results::{Dataset, Estimate, Interval};
use crate::study::{Arm, Cell, Plot, Study};

const MEASURED: &str = r#"connections = 100
[arm.old]
tls = "secp256r1/rsa-2048"
[arm.new]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[link.path]
rtt = "35ms"
rate = "1gbit"
loss = ["0%", "1%"]
[[measure]]
id = "growth"
data = ["0KiB", "50KiB", "200KiB"]
"#;

const DRAWN: &str = r#"
[[figure]]
id = "fig1"
measure = "growth"
plot = "increase"
x = "data"
facet = "loss"
beside = ["arithmetic", "rules-of-thumb"]
[[figure]]
id = "fig2"
title = "A < B & C"
measure = "growth"
plot = "percentiles"
metric = "handshake"
where = { data = "0KiB" }
facet = "loss"
[[figure]]
id = "fig3"
measure = "growth"
plot = "cdf"
where = { data = "200KiB" }
pool = ["loss"]
[[figure]]
id = "tab1"
measure = "growth"
plot = "table"
where = { data = "50KiB" }

[[published]]
source = "Table I"
figure = "tab1"
measure = "growth"
arm = "new"
what = "increase"
metric = "handshake"
by = ["loss", "data"]
rows = [["0%", "0KiB", 50, 50, 50], ["1%", "0KiB", 5, 5, 5]]
cause = "Nobody knows."

[[claim]]
id = "one-more"
text = "One more round trip"
[[claim.check]]
measure = "growth"
arm = "new"
metric = "handshake"
what = "increase"
where = { data = "0KiB" }
within = "45..55"
[[claim]]
id = "none"
text = "No difference"
[[claim.check]]
measure = "growth"
arm = "new"
metric = "handshake"
percentiles = [50]
what = "increase"
where = { data = "0KiB" }
within = "..5"
[[claim]]
id = "late"
text = "The last connections are slow"
[[claim.check]]
measure = "growth"
arm = "old"
what = "slowdown"
than = { loss = "0%" }
where = { data = "200KiB", loss = "1%" }
within = "0..0"
"#;

fn findings(text: &str, missing: &[(usize, usize, usize)]) -> Findings {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run");
    run_folder(&path, text, missing);
    Findings::read(&Dataset::open(&path).unwrap()).unwrap()
}

fn described() -> Findings {
    findings(&format!("{MEASURED}{DRAWN}"), &[])
}

#[test]
fn a_page_needs_nothing_else() {
    let page = page(&described());
    for figure in ["fig1", "fig2", "fig3", "tab1"] {
        assert!(page.contains(&format!("id=\"{figure}\"")), "{figure}");
    }
    let outside: Vec<_> = page
        .match_indices("http")
        .filter(|(at, _)| !page[*at..].starts_with("http://www.w3.org/2000/svg"))
        .collect();
    assert_eq!(outside, []);
    assert!(page.contains("A &lt; B &amp; C") && !page.contains("A < B"));
    assert!(page.contains("--initcwnd 10 --data 0B,50KiB,200KiB --connections 100"));
}

#[test]
fn claims_are_checked_against_the_whole_interval() {
    let findings = described();
    let verdicts: Vec<_> = (check_claims(&findings).iter())
        .map(|checked| (checked.claim.id.clone(), checked.verdict))
        .collect();
    // Luck is the same at both losses, so the slowdown is zero and nothing but zero.
    assert_eq!(
        verdicts,
        [
            ("one-more".to_owned(), Verdict::Holds),
            ("none".to_owned(), Verdict::Fails),
            ("late".to_owned(), Verdict::Holds),
        ]
    );
}

#[test]
fn published_numbers_stand_beside_ours() {
    let findings = described();
    let agreements: Vec<Vec<_>> = (compare(&findings).iter())
        .map(|row| row.numbers.iter().map(|one| one.agreement).collect())
        .collect();
    assert_eq!(
        agreements,
        [[Agreement::Agrees; 3], [Agreement::Differs; 3]]
    );
    assert!(page(&findings).contains("Nobody knows."));
}

#[test]
fn another_run_has_luck_of_its_own() {
    let ours = Estimate {
        value: 10.0,
        interval: Interval {
            low: Some(9.0),
            high: None,
        },
    };
    let Interval { low, high } = prediction(ours);
    assert!((low.unwrap() - (10.0 - 2.0_f64.sqrt())).abs() < 1e-9);
    assert_eq!(high, None);
}

#[test]
fn what_is_missing_is_a_hole() {
    // The post-quantum arm at 1 % and 50 KiB.
    let findings = findings(&format!("{MEASURED}{DRAWN}"), &[(0, 4, 1)]);
    let page = page(&findings);
    assert!(page.contains("Not measured: new at path, RTT 35ms, 1gbit, loss 1%"));
    assert!(figures(&findings).unwrap().len() == 3);
}

#[test]
fn nothing_measured_is_no_panic() {
    let all: Vec<_> = (0..6)
        .flat_map(|cell| [(0, cell, 0), (0, cell, 1)])
        .collect();
    let findings = findings(&format!("{MEASURED}{DRAWN}"), &all);
    assert!(page(&findings).contains("not measured"));
    let verdicts = check_claims(&findings);
    assert!(
        verdicts
            .iter()
            .all(|claim| claim.verdict == Verdict::Unknown)
    );
}

#[test]
fn a_study_without_figures_gets_some() {
    let findings = findings(MEASURED, &[]);
    let figures = automatic::figures(&findings.study);
    let ids: Vec<_> = figures
        .iter()
        .map(|figure| (&*figure.id, figure.plot))
        .collect();
    assert_eq!(
        ids,
        [
            ("growth-increase", Plot::Increase),
            ("growth-percentiles", Plot::Percentiles)
        ]
    );
    assert!(page(&findings).matches("<svg xmlns").count() >= 4);
}

#[test]
fn files_are_pictures() {
    let files = figures(&described()).unwrap();
    let ids: Vec<_> = files.iter().map(|file| &*file.id).collect();
    assert_eq!(ids, ["fig1", "fig2", "fig3"]);
    for file in &files {
        assert!(
            file.png.as_deref().unwrap().starts_with(b"\x89PNG"),
            "{}",
            file.id
        );
        assert!(file.svg.starts_with("<svg"), "{}", file.id);
    }
}

#[test]
fn rows_of_dots_are_of_several_measures() {
    let text = format!(
        r#"{MEASURED}arms = ["old", "new"]
[arm.other]
tls = "X25519MLKEM768/ecdsa-p256"
[arm.another]
tls = "secp256r1/ecdsa-p256"
[[measure]]
id = "more"
arms = ["other", "another"]
data = ["0KiB", "50KiB", "200KiB"]
[[figure]]
id = "rows"
measure = ["growth", "more"]
plot = "dots"
x = "data"
facet = "loss"
percentiles = [50]
[[claim]]
id = "larger"
text = "What an ML-DSA-65 server sends in place of an RSA chain is ten times that"
[[claim.check]]
measure = "growth"
arm = "new"
what = "multiple"
of = "old"
percentiles = [50]
# 1493 of 2031 bytes are the Certificate; 15 630 less the others'.
within = "0.0989..0.09893"
"#
    );
    let findings = findings(&text, &[]);
    let files = figures(&findings).unwrap();
    // Two panels of four arms at three sizes.
    assert_eq!(files[0].svg.matches("<circle").count(), 24);
    assert_eq!(files[0].svg.matches(">?<").count(), 0);
    let page = page(&findings);
    assert!(page.contains("A dot for each value of"));
    assert!(page.contains("largest chain of new to that of old"));
    assert_eq!(check_claims(&findings)[0].verdict, Verdict::Holds);
}

#[test]
fn figures_of_another_study_are_refused() {
    let other = MEASURED.replace("200KiB", "300KiB");
    let study = Study::parse(&other, Path::new("other.toml")).unwrap();
    let error = described().drawn_by(study).err().unwrap();
    assert_snapshot!(error, @r#""other.toml" measures something else than what was run: name the study that was run, in which only figures, published numbers and claims are others"#);
}

#[test]
fn commands_are_as_few_as_grids_allow() {
    let study = Study::parse(MEASURED, Path::new("a.toml")).unwrap();
    let experiment = &study.measures[0].experiment;
    let arms: Vec<&Arm> = experiment.arms.iter().collect();
    let of = |cells: &[usize]| {
        let cells: Vec<&Cell> = cells.iter().map(|cell| &experiment.cells[*cell]).collect();
        commands(experiment, &cells, &arms, "virtual")
            .unwrap()
            .join("\n")
    };
    let start = format!(
        "lastbyte compare --baseline {CLASSICAL} --against {HYBRID} --rtt 35ms --rate 1gbit"
    );
    let end = "--connections 100 --engine virtual";
    assert_eq!(
        of(&[0, 1, 2, 3, 4, 5]),
        format!("{start} --loss 0%,1% --initcwnd 10 --data 0B,50KiB,200KiB {end}")
    );
    assert_eq!(
        of(&[0, 1, 5]),
        format!(
            "{start} --loss 0% --initcwnd 10 --data 0B,50KiB {end}\n\
             {start} --loss 1% --initcwnd 10 --data 200KiB {end}"
        )
    );
}

#[test]
fn commands_say_rates_down_and_up() {
    let text = MEASURED.replace("\"1gbit\"", "\"50mbit/10mbit\"");
    let study = Study::parse(&text, Path::new("a.toml")).unwrap();
    let experiment = &study.measures[0].experiment;
    let arms: Vec<&Arm> = experiment.arms.iter().collect();
    let commands = commands(experiment, &[&experiment.cells[0]], &arms, "virtual").unwrap();
    assert!(
        commands[0].contains(" --rate 50mbit/10mbit "),
        "{commands:?}"
    );
}
