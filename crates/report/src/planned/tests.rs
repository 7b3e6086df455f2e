#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_link::Seed;

use super::*;
use crate::Screen;
use crate::tests::environment;
use crate::tests::errors;
use lastbyte_explain::plan::{
    Amounts, Arithmetic, Measured, Setting, Transports, usual_population,
};
use lastbyte_explain::wire;
use lastbyte_results::{Metric, fixtures};
use lastbyte_study::{Arm, Cell};

/// A made-up plan, told.
fn told(tell: impl Fn(&Planned<'_>) -> String) -> String {
    let own =
        "rtt = \"40ms\"\nconnections_per_user = 2\nclass = { values = [\"near\", \"far\"] }\n";
    let (population, usual) = usual_population(own, Path::new("/nowhere")).unwrap();
    let cell = Cell {
        population: Some(Arc::new(population)),
        ..Cell::default()
    };
    let arm = |text: &str| text.parse().unwrap();
    let plan = Plan::new(
        arm("X25519MLKEM768/ecdsa-p256"),
        arm("X25519MLKEM768/ml-dsa-65:16000B"),
        cell,
        Amounts::default(),
    );
    let measured = |settings: &[Setting]| -> Vec<Measured> {
        let experiment =
            fixtures::experiment(&[fixtures::CLASSICAL], vec![fixtures::cell("0%", "1B")], 1);
        let row = fixtures::samples(&experiment).remove(0).rows.remove(0);
        let of = |setting: &Setting| {
            let rows = (0..200).map(|index| {
                let mut row = row.clone();
                row.index = index;
                let ms = match setting.name.as_str() {
                    "today" => 120,
                    "planned" if index % 4 > 0 => 160,
                    "resumption" if index % 3 == 0 => 160,
                    _ => 120,
                };
                row.times.ttfb = Some(Duration::from_millis(ms + u64::from(index % 7)));
                row
            });
            Measured {
                setting: setting.clone(),
                rows: rows.collect(),
            }
        };
        settings.iter().map(of).collect()
    };
    let percentiles: Vec<Percentile> = ["p50", "p90"].map(|text| text.parse().unwrap()).into();
    let alone = measured(&plan.alone());
    let mut tale = Tale::new(&plan, Metric::Ttfb, &percentiles, Seed(1), &alone).unwrap();
    let together = measured(&plan.together(&tale.order()));
    tale.add_together(&percentiles, Seed(1), &alone, &together);
    tell(&Planned {
        plan: &plan,
        tale: &tale,
        transports: None,
        percentiles: &percentiles,
        usual: &usual,
        sources: &["the profile profile.toml".to_owned()],
        warnings: &["few <connections>".to_owned()],
        explained: None,
        origin: Origin::Measured(&environment()),
        command: "lastbyte plan 16000B",
    })
}

#[test]
fn in_a_terminal() {
    let text = told(|planned| super::text(planned, None, Screen::PLAIN));
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

/// What arithmetic said before is not said twice: only that it was measured.
#[test]
fn what_was_printed_is_not_printed_again() {
    let after = |more: f64| {
        told(|planned| {
            let mut tale = planned.tale.clone();
            for slower in &mut tale.planned[0].slower {
                slower.connections.value += more;
            }
            let before = Planned {
                tale: &tale,
                ..planned.clone()
            };
            super::text(planned, Some(&before), Screen::PLAIN)
        })
    };
    let (same, other) = (after(0.0), after(0.1));
    assert!(same.starts_with("Measured, it is the same."), "{same}");
    assert!(other.starts_with("Measured: With "), "{other}");
}

/// With loss, a lever that gains can have others wait: what it "leaves" is never more than there were.
#[test]
fn a_lever_does_not_leave_more_than_there_were() {
    let answer = |more: f64| {
        told(|planned| {
            let mut tale = planned.tale.clone();
            let gain = &mut tale.levers[0].1;
            let left = &mut gain.than_today.slower;
            for slower in left.iter_mut().filter(|slower| slower.step == NOTICEABLE) {
                slower.connections.value = more;
            }
            let planned = Planned {
                tale: &tale,
                ..planned.clone()
            };
            planned.answer().pop().unwrap()
        })
    };
    let (less, more) = (answer(0.01), answer(0.99));
    assert!(less.contains("1.0 %"), "{less}");
    assert!(!less.contains("others than without it"), "{less}");
    assert!(
        more.ends_with(
            "Some of those are others than without it: where packets are lost, another connection is hit."
        ),
        "{more}"
    );
}

/// What arithmetic knows of a plan for these users.
fn calculated(chain: &str, own: &str) -> (Plan, Tale) {
    let (population, _) = usual_population(own, Path::new("/nowhere")).unwrap();
    let cell = Cell {
        population: Some(Arc::new(population)),
        ..Cell::default()
    };
    let arm = |text: &str| text.parse().unwrap();
    let today = arm("X25519MLKEM768/ecdsa-p256");
    let plan = Plan::new(today, arm(chain), cell, Amounts::default());
    let arithmetic = Arithmetic::new(&plan, 400, &|arm| wire(arm)).unwrap();
    let tale = arithmetic
        .tale(Metric::Ttfb, &[Percentile::MEDIAN], Seed(1))
        .unwrap();
    (plan, tale)
}

/// Half of all have 100 ms, the others 10 ms; nobody resumes, and links are fast.
const HALF: &str = "joint = { class = [\"far\", \"near\"], rtt = [\"100ms\", \"10ms\"], weight = [1, 1] }\nrate = \"1gbit\"\n\
     loss = \"0%\"\nresumes = \"0%\"\ndata = \"20KiB\"\n";

/// By hand: 12 segments where the window is 10 are a round trip, which 20 ms tell of the far half alone.
#[test]
fn a_flight_more_is_why_they_wait() {
    let (plan, tale) = calculated("X25519MLKEM768/ml-dsa-44/intermediates=2/scts=2", HALF);
    let all = &tale.causes[0];
    let far = tale
        .causes
        .iter()
        .find(|cause| cause.class.as_deref() == Some("far"))
        .unwrap();
    assert_eq!((all.connections, all.resumed), (400, 0));
    assert_eq!(all.waiting, far.waiting);
    assert_eq!(
        all.waiting.keys().collect::<Vec<_>>(),
        [&Because::Acknowledgement]
    );
    assert_eq!(all.all(), far.connections);
    // The largest class comes first.
    assert!(tale.causes[1].connections >= tale.causes[2].connections);
    let supposed = |what: &str| {
        let mut supposed = tale.supposed.iter();
        let (_, waiting) = supposed.find(|(marked, _)| marked.contains(what)).unwrap();
        slower(waiting, NOTICEABLE).connections.value
    };
    assert_eq!(supposed("one intermediate"), 0.0);
    assert_eq!(supposed("relative to a landmark"), 0.0);
    // It is two flights already.
    assert_eq!(
        supposed("logs sign with ml-dsa-44"),
        slower(&tale.planned[0], NOTICEABLE).connections.value
    );
    // What no stack of every build has is arithmetic.
    assert!(
        tale.levers
            .iter()
            .any(|(lever, gain)| lever.name == "compression" && gain.mean().unwrap().value > 0.0)
    );
    let planned = Planned {
        plan: &plan,
        tale: &tale,
        transports: None,
        percentiles: &[Percentile::MEDIAN],
        usual: &[],
        sources: &[],
        warnings: &[],
        explained: None,
        origin: Origin::Arithmetic("no kernel is built"),
        command: "lastbyte plan ml-dsa-44",
    };
    let answer = planned.answer().join("\n");
    for expected in [
        "By arithmetic, over links that lose nothing (no kernel is built):",
        "wait more than 20 ms longer: all for an acknowledgement.",
        "or if a Merkle Tree Certificate relative to a landmark is sent, or if a standalone Merkle Tree Certificate is sent, 0.0 %",
        "each of these alone wins back nearly all of that: ",
        "a window of 32 segments",
    ] {
        assert!(answer.contains(expected), "{expected}: {answer}");
    }
    // What shortens every connection is no remedy for certificates.
    assert!(!answer.contains("of each RTT"), "{answer}");
    assert_eq!(errors(&json(&planned), SCHEMA), [""; 0]);
}

/// A chain that fits has nobody wait, and logs of another kind turn that.
#[test]
fn timestamps_can_turn_the_answer() {
    let (_, tale) = calculated("X25519MLKEM768/ml-dsa-44/scts=2", HALF);
    assert_eq!(tale.causes[0].all(), 0);
    let (what, waiting) = &tale.supposed[0];
    assert_eq!(what, "logs sign with ml-dsa-44 too");
    let then = slower(waiting, NOTICEABLE).connections.value;
    assert!((0.4..0.6).contains(&then), "{then}");
}

/// Who resumes needs no chain.
#[test]
fn who_resumes_does_not_wait() {
    let own = HALF.replace("resumes = \"0%\"", "resumes = \"100%\"");
    let (_, tale) = calculated("X25519MLKEM768/ml-dsa-44/intermediates=2/scts=2", &own);
    assert_eq!((tale.causes[0].resumed, tale.causes[0].all()), (400, 0));
    assert_eq!(tale.planned[0].mean.unwrap().value, 0.0);
}

#[test]
fn a_document_that_has_its_schema() {
    let document = told(json);
    assert_eq!(errors(&document, SCHEMA), [""; 0]);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["waiting"].as_array().unwrap().len(), 3);
    assert_eq!(document["waiting"][0]["users"], 100);
}

#[test]
fn a_page_that_needs_nothing_else() {
    let page = told(super::page);
    assert!(page.contains("few &lt;connections&gt;"));
    assert!(
        !page.contains("src=") && !page.contains("href="),
        "it refers to elsewhere"
    );
    // What all pages look like is not this one's.
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    insta::assert_snapshot!(format!("{head}{body}"));
}

/// The same plan, of which 40 % are over QUIC.
#[test]
fn by_transport() {
    let (plan, tale) = calculated("X25519MLKEM768/ml-dsa-44", HALF);
    let on_wire = |arm: &Arm| wire(arm);
    let arithmetic = Arithmetic::first(&plan, 400, &on_wire).unwrap();
    let told = (Metric::Ttfb, &[Percentile::MEDIAN][..], Seed(1));
    let share = "40%".parse().unwrap();
    let transports = Transports::new(&plan, share, &arithmetic, &on_wire, told).unwrap();
    let planned = Planned {
        plan: &plan,
        tale: &tale,
        transports: Some(&transports),
        percentiles: &[Percentile::MEDIAN],
        usual: &[],
        sources: &[],
        warnings: &[],
        explained: None,
        origin: Origin::Arithmetic("there is no kernel"),
        command: "lastbyte plan ml-dsa-44 --quic-share 40%",
    };
    let document = json(&planned);
    assert_eq!(errors(&document, SCHEMA), [""; 0]);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["transports"]["quic_share"], 0.4);
    assert_eq!(document["transports"]["quic"]["connections"], 160);
    assert!(super::page(&planned).contains("Over TCP and over QUIC"));
    let text = super::text(&planned, None, Screen::PLAIN);
    let (_, below) = text.split_once("\nby transport").unwrap();
    let (tables, _) = below.split_once("\nwhat would win it back").unwrap();
    assert!(
        tables.lines().all(|line| line.chars().count() <= 100),
        "{tables}"
    );
    let sentence = planned.answer().pop().unwrap();
    insta::assert_snapshot!(format!("{sentence}\n\nby transport{tables}"));
}
