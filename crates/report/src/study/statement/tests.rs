#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::path::Path;
use std::{fs, iter};

use proptest::prelude::*;

use super::{Source, Standing, Statement, costs, gains, media, statements};
use crate::answer::answer;
use crate::layout::Screen;
use crate::study::figure::draw;
use crate::study::findings::Findings;
use crate::study::overview::{self, Increase, Overview};
use crate::study::tests::{MEASURED, findings};
use crate::study::{described, finding, page};
use crate::tests::errors;
use crate::text::digits;
use lastbyte_results::number::percent;
use lastbyte_results::{Interval, Metric, Percent, Sample, fixtures};
use lastbyte_study::{Connections, Plot, Study};

fn said(findings: &Findings) -> Vec<Statement> {
    let overview = Overview::new(findings);
    statements(&Source {
        findings,
        overview: overview.as_ref(),
    })
}

/// A study that answers with these words, of which `{it}` is this.
fn answering(answer: &str, number: &str) -> Findings {
    findings(
        &format!(
            "answer = \"{answer}\"\n{MEASURED}[number.it]\nmeasure = \"growth\"\narm = \"new\"\n{number}\n"
        ),
        &[],
    )
}

const HANDSHAKE: &str =
    "metric = \"handshake\"\nwhere = { loss = \"0%\", data = \"0KiB\" }\npercentiles = [50]";

#[test]
fn a_study_says_its_finding_and_the_run_its_numbers() {
    let findings = answering(
        "The new chain adds {it} to it",
        &format!("what = \"later\"\n{HANDSHAKE}"),
    );
    let all = said(&findings);
    let [statement] = &*all else {
        panic!("{all:?}")
    };
    assert_eq!(statement.standing, Standing::BorneOut);
    assert_eq!(statement.text(), "The new chain adds 35\u{a0}ms to it");
    let page = page(&findings, None);
    assert!(
        page.contains("The new chain adds <b class=\"number\">"),
        "{page}"
    );
}

/// Terminals, Markdown and JSON say what the page says.
#[test]
fn all_media_say_the_same() {
    let number = format!("what = \"later\"\n{HANDSHAKE}");
    let findings = answering("The *new* chain adds {it} to it", &number);
    let words = "The *new* chain adds 35 ms to it";
    let text = media::text(&findings, Screen::PLAIN);
    assert!(text.contains(words), "{text}");
    let markdown = media::markdown(&findings);
    assert!(
        markdown.contains(&words.replace('*', "\\*"))
            && markdown.contains("| Network | Configuration | Handshake |"),
        "{markdown}"
    );
    let json = media::json(&findings);
    assert_eq!(errors(&json, media::SCHEMA), [""; 0]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let statement = &document["statements"][0];
    assert_eq!(statement["standing"], "borne-out");
    assert_eq!(statement["text"], words.replace(" ms", "\u{a0}ms"));
    assert_eq!(statement["numbers"][0]["name"], "it");
    assert_ne!(
        errors(&json.replace("borne-out", "true"), media::SCHEMA),
        [""; 0]
    );
}

#[test]
fn what_is_not_borne_out_is_not_said() {
    for (number, reason) in [
        (
            format!("what = \"sooner\"\n{HANDSHAKE}"),
            "that is the other way round",
        ),
        (
            format!(
                "what = \"later\"\n{}",
                HANDSHAKE.replace("handshake", "connect")
            ),
            "that is no difference",
        ),
        (
            format!("what = \"time\"\nwithin = \"..5\"\n{HANDSHAKE}"),
            "that is not at most 5 ms",
        ),
    ] {
        let findings = answering("The new chain adds {it} to it", &number);
        let all = said(&findings);
        let [refused, made] = &*all else {
            panic!("{all:?}")
        };
        assert_eq!(
            [refused.standing, made.standing],
            [Standing::NotBorneOut, Standing::Made]
        );
        let text = refused.text();
        assert!(
            text.starts_with("These results do not bear out that “The new chain adds … to it”: "),
            "{text}"
        );
        assert!(text.contains(reason), "{text}");
        assert!(page(&findings, None).contains("verdict unsupported"));
    }
}

/// A cost of so many milliseconds and round trips, to the nanosecond.
fn known(ms: f64, trips: f64) -> Increase {
    Increase {
        interval: Some([ms; 2]),
        ..overview::tests::known(ms, trips)
    }
}

/// Of two networks, the first of which most readers have.
fn overview(here: &Increase, away: &Increase) -> Overview {
    let mut overview = Overview::new(&findings(MEASURED, &[])).unwrap();
    for case in overview.cases.iter_mut().flatten() {
        case.known = match &*case.place {
            "loss 0%" => here.clone(),
            _ => away.clone(),
        };
        case.others.clear();
    }
    overview
}

fn costs_of(here: &Increase, away: &Increase) -> String {
    costs::words(&overview(here, away)).unwrap()
}

#[test]
fn what_is_sooner_leads_where_that_is_asked() {
    let sooner = overview(&known(-35.0, -1.0), &known(-70.0, -2.0));
    let words = gains::words(&sooner).unwrap();
    assert!(
        words.contains("brings the handshake 35\u{a0}ms forward (loss 0%), elsewhere new up to 70\u{a0}ms (loss 1%)"),
        "{words}"
    );
}

/// A sentence names what stands out, and nothing else, whatever else is larger.
#[test]
fn no_sentence_claims_what_was_not_shown() {
    for other in [known(-55.0, -1.5), known(103.0, 3.0)] {
        let noise = Increase {
            is_shown: false,
            interval: Some([-300.0, 470.0]),
            ..other
        };
        let words = costs_of(&known(16.0, 0.4), &noise);
        assert!(
            words.contains("delays the handshake by 16\u{a0}ms"),
            "{words}"
        );
        assert!(words.contains("comes 16\u{a0}ms later"), "{words}");
        for claimed in ["sooner", "55", "103", "470"] {
            assert!(!words.contains(claimed), "{claimed}: {words}");
        }
        // Where nothing is shown, it may be as much as the widest interval says.
        let words = costs_of(&noise, &noise);
        assert!(words.contains("470\u{a0}ms"), "{words}");
        assert!(!words.contains("sooner"), "{words}");
    }
    // What is sooner, if anything, is not that much later.
    let sooner = Increase {
        is_shown: false,
        interval: Some([-470.0, -9.0]),
        ..known(-55.0, -1.5)
    };
    let words = costs_of(&sooner, &sooner);
    assert!(words.contains("comes no later"), "{words}");
    assert!(words.contains("No handshake takes longer"), "{words}");
}

/// What stands out by luck where few have a network leads nothing.
#[test]
fn the_network_that_most_readers_have_leads() {
    // 1463 ms of 300 connections, where packets are lost.
    let extreme = Increase {
        interval: Some([110.0, 2900.0]),
        ..known(1463.0, 7.0)
    };
    let words = costs_of(&known(36.0, 1.0), &extreme);
    assert!(
        words.starts_with(
            "new delays the handshake by 36\u{a0}ms (loss 0%), elsewhere by at least 110\u{a0}ms (loss 1%)"
        ),
        "{words}"
    );
    assert!(!words.contains("1,463"), "{words}");
    // As much elsewhere is not worth a word.
    let words = costs_of(&known(36.0, 1.0), &known(37.0, 1.0));
    assert!(!words.contains("loss 1%"), "{words}");
    // Nor does what nobody feels there hide what others do.
    let words = costs_of(&known(0.2, 0.0), &known(36.0, 1.0));
    assert!(
        words.starts_with(
            "new delays the handshake by 36\u{a0}ms (loss 1%) and by 0.2\u{a0}ms at most (loss 0%)"
        ),
        "{words}"
    );
}

/// What every study of the repository asks, with made-up results.
fn repository() -> Vec<Findings> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies"));
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    paths.sort();
    let made = paths.iter().map(|path| {
        let mut study = Study::load(path).unwrap();
        for measure in &mut study.measures {
            measure.experiment.connections = Connections::Fixed(6);
        }
        made_up(study, &mut |_| {})
    });
    made.collect()
}

/// The results of a study in which nothing goes wrong but what is changed.
fn made_up(study: Study, change: &mut impl FnMut(&mut Sample)) -> Findings {
    let samples: Vec<Vec<Sample>> = (study.measures.iter())
        .map(|measure| {
            let mut samples = fixtures::samples(&measure.experiment);
            samples.iter_mut().for_each(&mut *change);
            samples
        })
        .collect();
    let samples: Vec<&[Sample]> = samples.iter().map(Vec::as_slice).collect();
    Findings::of_study(study, &samples, &fixtures::environment())
}

/// The numbers with this unit, each with the clause that it stands in.
fn numbers<'a>(sentence: &'a str, unit: &str) -> Vec<(String, &'a str)> {
    let mut found = Vec::new();
    for clause in sentence.split([';', '(', ')']) {
        for (at, _) in clause.match_indices(unit) {
            let before = clause[..at].trim_end_matches([' ', '\u{a0}']);
            let digits = before.rsplit(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
            let digits = digits.into_iter().next().unwrap_or_default();
            if before.len() < at && !digits.is_empty() {
                found.push((digits.to_owned(), clause));
            }
        }
    }
    found
}

/// Sentences that are made of results name what is shown, and say of bounds that they are.
fn assert_shown(findings: &Findings) {
    let overview = Overview::new(findings);
    let cases = || {
        overview
            .iter()
            .flat_map(|overview| overview.cases.iter().flatten())
    };
    let knowns = || {
        cases().flat_map(|case| {
            iter::once(&case.known).chain(case.others.iter().map(|(_, known)| known))
        })
    };
    let shown: Vec<String> = knowns()
        .filter(|known| known.is_shown)
        .flat_map(|known| [digits(known.size()), digits(known.at_least())])
        .collect();
    let bounds: Vec<String> = cases()
        .map(|case| digits(case.at_most().max(0.0)))
        .collect();
    for statement in said(findings)
        .iter()
        .filter(|one| one.standing == Standing::Made)
    {
        if !findings.searched.is_empty() || overview.is_none() {
            continue;
        }
        let text = statement.text();
        for (number, clause) in numbers(&text, "ms") {
            let is_bound = ["at most", " may ", "more than"]
                .iter()
                .any(|word| clause.contains(word));
            assert!(
                shown.contains(&number) || (is_bound && bounds.contains(&number)),
                "{number} ms in {text:?} of {}",
                findings.study.name
            );
        }
    }
    for summary in &findings.summaries {
        let representative = summary.representative().unwrap();
        let latest = summary.percentiles.iter().max().copied().unwrap();
        let shown_at = |percentile| -> Vec<String> {
            let metrics = summary.cells.iter().flat_map(|cell| &cell.arms);
            let metrics = metrics.flat_map(|arm| Metric::ALL.map(|metric| arm.metric(metric)));
            metrics
                .filter_map(|metric| metric.difference(percentile, summary.critical))
                // Where luck hides how large it is, its interval is told.
                .flat_map(|increase| {
                    let Interval { low, high } = increase.interval;
                    [Some(increase.value), low, high].into_iter().flatten()
                })
                .map(|number| percent(Percent(number.0.abs())))
                .collect()
        };
        let [shown, shown_latest] = [representative, latest].map(shown_at);
        for sentence in answer(summary)
            .iter()
            .filter(|one| !one.contains("of connections wait"))
        {
            let is_of_latest = sentence.contains(&format!(": at {latest}, "));
            let shown = if is_of_latest { &shown_latest } else { &shown };
            // What can't be excluded is no claim.
            let mut claimed = sentence.clone();
            while let Some((before, after)) = claimed.split_once(" can't be excluded)") {
                let (before, _) = before.rsplit_once(" (").unwrap();
                claimed = format!("{before}{after}");
            }
            for (number, _) in numbers(&claimed, "%") {
                assert!(
                    shown.contains(&format!("{number} %")),
                    "{number} % in {sentence:?}"
                );
            }
        }
    }
    let figures = described(findings);
    for drawn in figures.iter().map(|figure| draw(findings, figure)) {
        let finding = drawn.finding.as_deref().unwrap_or_default();
        if drawn.figure.plot != Plot::Increase {
            continue;
        }
        let ends = |number: &crate::study::plan::Number| {
            let point = number.ours?;
            let [low, high] = point.closed()?;
            (low > 0.0 || high < 0.0).then_some([point.value, low, high])
        };
        let shown: Vec<String> = (drawn.numbers.iter().filter_map(ends))
            .flatten()
            .map(|value| finding::percent(value.abs()))
            .collect();
        for (number, clause) in numbers(finding, "%") {
            // A place may have a share of its own.
            let told = format!("{number}\u{a0}%");
            assert!(
                shown.contains(&told) || clause.contains("loss"),
                "{told} in {finding:?} of {}",
                findings.study.name
            );
        }
    }
}

#[test]
fn no_sentence_of_the_repository_names_what_is_not_shown() {
    let all = repository();
    assert!(all.len() > 20);
    for findings in &all {
        assert_shown(findings);
        // Whatever comes of it is told, with what its author states or without.
        let statements = said(findings);
        assert_eq!(
            statements.iter().any(|one| one.standing != Standing::Made),
            findings.study.answer.is_some(),
            "{}",
            findings.study.name
        );
    }
    let answers = all
        .iter()
        .filter(|findings| findings.study.answer.is_some());
    assert!(answers.count() >= 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever luck makes of each sample.
    #[test]
    fn no_sentence_names_what_is_not_shown(
        slower in prop::collection::vec(prop_oneof![Just(1.0), 0.5..3.0_f64], 12),
        luck in prop::collection::vec(prop_oneof![Just(0.0), 0.0..4.0_f64], 12),
        seed in any::<u32>(),
        connections in prop::sample::select(vec![2_u32, 20, 60]),
    ) {
        let mut study = Study::parse(MEASURED, Path::new("drawn.toml")).unwrap();
        for measure in &mut study.measures {
            measure.experiment.connections = Connections::Fixed(connections);
        }
        let mut change = |sample: &mut Sample| {
            let place = 2 * sample.cell + sample.arm;
            for row in &mut sample.rows {
                let hash = (row.index + 1).wrapping_mul(2_654_435_761).wrapping_add(seed).wrapping_mul(place as u32 * 2 + 40_503);
                let part = f64::from(hash >> 8) / f64::from(1 << 24);
                let factor = slower[place] * (1.0 + luck[place] * part);
                for time in [&mut row.times.handshake, &mut row.times.ttfb, &mut row.times.ttlb] {
                    *time = time.map(|time| time.mul_f64(factor));
                }
            }
        };
        assert_shown(&made_up(study, &mut change));
    }
}
