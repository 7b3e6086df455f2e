#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::time::Duration;

use insta::assert_snapshot;
use lastbyte_link::{Direction, Link};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use lastbyte_results::fixtures::{CLASSICAL, HYBRID, MIXED, cell, experiment, failed, samples};
use lastbyte_results::rows::Origin;
use lastbyte_results::{
    Environment, Host, Metric, Moment, Outcome, Percentile, Sample, Saved, Summary, Validity,
    write_rows,
};
use lastbyte_study::{
    Connections, EngineName, Experiment, Parameter, ParameterValue, StudyFolder, Until,
};

fn summary(experiment: &Experiment, samples: &[Sample]) -> Summary {
    Summary::new(experiment, samples, &Percentile::USUAL)
}

/// The question that `compare` answers when nothing is asked.
pub(super) fn headline() -> Summary {
    let cells = ["0KiB", "50KiB", "200KiB"]
        .map(|data| cell("0%", data))
        .into();
    let experiment = experiment(&[CLASSICAL, HYBRID], cells, 200);
    summary(&experiment, &samples(&experiment))
}

fn alone() -> Summary {
    let experiment = experiment(&[CLASSICAL], vec![cell("0%", "200KiB")], 100);
    summary(&experiment, &samples(&experiment))
}

/// Three arms, with all that can go wrong on a lossy path.
pub(super) fn troubled() -> Summary {
    let cells = vec![cell("0%", "0KiB"), cell("5%", "200KiB")];
    let experiment = experiment(&[CLASSICAL, HYBRID, MIXED], cells, 60);
    let mut samples = samples(&experiment);
    for row in &mut samples[4].rows[..9] {
        row.outcome = match row.index % 4 {
            0 => failed("connection reset by the peer"),
            _ => Outcome::TimedOut,
        };
    }
    samples[2].engine.validity =
        Validity::Invalid("the machine was too busy: close other programs".into());
    for row in &mut samples[5].rows {
        // Much luck, and none that the arms share.
        let late = Duration::from_millis(u64::from(row.index * 7919 % 61) * 2);
        row.times.handshake = row.times.handshake.map(|time| time + late);
        row.times.ttlb = row
            .times
            .ttlb
            .map(|time| time - Duration::from_millis(60) + late);
    }
    summary(&experiment, &samples)
}

pub(super) fn environment() -> Environment {
    let pairs = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    Environment {
        engine: EngineName::Live,
        command: vec!["lastbyte".into(), "compare".into()],
        versions: pairs(&[("lastbyte", "0.1.0"), ("openssl", "3.6.3")]),
        kernel: "Linux 6.12.0".into(),
        sysctls: pairs(&[("net.ipv4.tcp_no_metrics_save", "1")]),
        host: Host {
            cpu: "A processor".into(),
            cpus: 2,
            memory_bytes: 1 << 30,
        },
    }
}

/// One arm is slower than it was, one cell had failures then, and the kernel is another one.
fn changed() -> (Summary, Environment) {
    let cells = vec![cell("0%", "0KiB"), cell("1%", "50KiB")];
    let experiment = experiment(&[CLASSICAL, HYBRID], cells, 60);
    let mut then = samples(&experiment);
    for row in &mut then[1].rows {
        row.times.handshake = row.times.handshake.map(|time| time * 9 / 10);
    }
    for row in &mut then[2].rows[..9] {
        row.outcome = Outcome::TimedOut;
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("main.parquet");
    let origin = Origin {
        study: "compare",
        measure: "compare",
        engine: EngineName::Live,
    };
    let mut environment = environment();
    let (file, at) = (File::create(&path).unwrap(), Moment(1_795_341_487));
    write_rows(file, origin, &experiment, &then, &environment, Some(at)).unwrap();
    environment.kernel = "Linux 6.12.9".into();
    let now = samples(&experiment);
    let mut summary = summary(&experiment, &now);
    let saved = Saved::open(&path, "main").unwrap();
    summary.compare_with(&saved, &now, &environment);
    (summary, environment)
}

#[test]
fn changes_in_a_terminal() {
    let table = table(&changed().0, Screen::PLAIN, Detail::Everything);
    assert!(table.lines().all(|line| line.chars().count() <= 100));
    assert_snapshot!(table);
}

#[test]
fn changes_in_markdown() {
    assert_snapshot!(markdown(&changed().0));
}

#[test]
fn changes_in_csv() {
    let (summary, _) = changed();
    let told = csv(&summary);
    // What was there before keeps its place.
    let before = csv(&Summary {
        since: None,
        ..summary
    });
    for (told, before) in told.lines().zip(before.lines()) {
        assert!(told.starts_with(&format!("{before},")), "{told}");
    }
    assert_snapshot!(told);
}

#[test]
fn changes_in_json() {
    let (summary, environment) = changed();
    let document = json(&summary, &environment);
    assert_valid(&document);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        document["since"],
        json!({"name": "main", "saved": "2026-11-22T09:58:07Z", "paired": true})
    );
    let changes = &document["cells"][0]["change_percent"];
    assert_eq!(changes.as_array().unwrap().len(), 8);
    assert_eq!(changes[5]["arm"], HYBRID);
    assert_eq!(changes[5]["metric"], "handshake");
    assert_eq!(changes[5]["p50"]["value"], 11.1111);
    assert_eq!(
        document["cells"][1]["change_percent"][3]["p90"]["value"],
        Value::Null
    );
    let notes = document["notes"].as_array().unwrap();
    let note = "cells[1].change_percent[3].p90: the saved results have none";
    assert!(notes.contains(&json!(note)), "{notes:#?}");
}

#[test]
fn the_headline_in_a_terminal() {
    assert_snapshot!(table(&headline(), Screen::PLAIN, Detail::Everything));
}

#[test]
fn an_arm_alone_in_a_terminal() {
    assert_snapshot!(table(&alone(), Screen::PLAIN, Detail::Everything));
}

#[test]
fn trouble_in_a_terminal() {
    assert_snapshot!(table(&troubled(), Screen::PLAIN, Detail::Everything));
}

#[test]
fn colours_do_not_change_the_text() {
    let coloured = table(
        &troubled(),
        Screen {
            colours: Colours::Ansi,
            ..Screen::PLAIN
        },
        Detail::Everything,
    );
    assert!(coloured.contains("\x1b[1mRTT 35ms"), "{coloured}");
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, code)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = code.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, table(&troubled(), Screen::PLAIN, Detail::Everything));
}

#[test]
fn the_answer_stands_first_in_a_terminal() {
    assert_snapshot!(table(&headline(), Screen::PLAIN, Detail::Answer));
}

#[test]
fn trouble_at_a_glance() {
    assert_snapshot!(table(&troubled(), Screen::PLAIN, Detail::Answer));
}

#[test]
fn a_narrow_terminal_has_arms_below_each_other() {
    let screen = Screen {
        columns: 60,
        ..Screen::PLAIN
    };
    assert_snapshot!(table(&headline(), screen, Detail::Answer));
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    for summary in [headline(), alone(), troubled()] {
        for detail in [Detail::Answer, Detail::Everything] {
            for line in table(&summary, Screen::PLAIN, detail).lines() {
                assert!(line.chars().count() <= 100, "{line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

#[test]
fn a_terminal_of_twenty_columns_has_all_of_it() {
    let words = |columns| -> Vec<String> {
        let screen = Screen {
            columns,
            ..Screen::PLAIN
        };
        let text = table(&headline(), screen, Detail::Everything);
        let mut words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        // Messages stand below each other, each arm with their names.
        words.sort_unstable();
        words.dedup();
        words
    };
    for columns in [0, 1, 20, 79] {
        assert_eq!(words(columns), words(100), "{columns}");
    }
    let screen = Screen {
        columns: 20,
        ..Screen::PLAIN
    };
    let text = table(&headline(), screen, Detail::Answer);
    let too_wide = text.lines().filter(|line| line.chars().count() > 34);
    assert_eq!(too_wide.collect::<Vec<_>>(), [""; 0], "{text}");
}

#[test]
fn a_long_label_has_a_line_of_its_own() {
    let label = "SecP256r1MLKEM768/rsa-2048:16000B/intermediates=2/root=sent/record_size=1400";
    let experiment = experiment(&[CLASSICAL, label], vec![cell("0%", "0B")], 20);
    assert_snapshot!(table(
        &summary(&experiment, &samples(&experiment)),
        Screen::PLAIN,
        Detail::Everything
    ));
}

#[test]
fn nothing_was_measured() {
    let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("0%", "200KiB")], 20);
    let summary = summary(&experiment, &[]);
    assert_snapshot!(table(&summary, Screen::PLAIN, Detail::Everything));
    assert_valid(&json(&summary, &environment()));
    assert!(!markdown(&summary).is_empty());
    assert_eq!(csv(&summary).lines().count(), 1);
}

#[test]
fn every_connection_failed() {
    let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("0%", "200KiB")], 20);
    let mut samples = samples(&experiment);
    for row in samples.iter_mut().flat_map(|sample| &mut sample.rows) {
        row.outcome = Outcome::TimedOut;
    }
    let summary = summary(&experiment, &samples);
    assert_snapshot!(table(&summary, Screen::PLAIN, Detail::Everything));
    assert_valid(&json(&summary, &environment()));
}

mod answering {
    use super::*;
    use crate::answer::answer;

    /// What is said of an arm whose last bytes come this much later than the baseline's, in
    /// thousandths, at 50, 100 and so on KiB; a number above 100 is spread around zero.
    fn answer_to(handshake: Duration, last_bytes: &[i32]) -> String {
        let cells = (1..=last_bytes.len())
            .map(|n| cell("0%", &format!("{}KiB", 50 * n)))
            .collect();
        let experiment = experiment(&[CLASSICAL, HYBRID], cells, 100);
        let mut samples = samples(&experiment);
        for sample in &mut samples {
            for row in &mut sample.rows {
                let thousandths = match (sample.arm, last_bytes[sample.cell]) {
                    (0, _) => 0,
                    (_, uncertain @ 101..) if row.index % 2 == 0 => uncertain,
                    (_, uncertain @ 101..) => -uncertain,
                    (_, certain) => certain,
                };
                let base = if sample.arm == 0 {
                    Duration::ZERO
                } else {
                    handshake
                };
                row.times.handshake = Some(Duration::from_millis(70) + base);
                row.times.ttfb = Some(Duration::from_millis(105) + base);
                row.times.ttlb = Some(Duration::from_micros((200_000 + 200 * thousandths) as u64));
            }
        }
        let [sentence, ..] = &*answer(&summary(&experiment, &samples)) else {
            panic!()
        };
        sentence
            .strip_prefix("At the median, SecP256r1MLKEM768/ml-dsa-65 ")
            .unwrap_or(sentence)
            .to_owned()
    }

    /// The sentences where every connection whose index `nth` divides has its last byte 300 ms later.
    fn slow(nth: u32) -> Vec<String> {
        let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("1%", "50KiB")], 200);
        let mut samples = samples(&experiment);
        for sample in &mut samples {
            for row in &mut sample.rows {
                let late = if sample.arm == 1 && row.index.is_multiple_of(nth) {
                    300
                } else {
                    0
                };
                row.times.handshake = Some(Duration::from_millis(70));
                row.times.ttlb = Some(Duration::from_millis(200 + late));
            }
        }
        answer(&summary(&experiment, &samples))
    }

    #[test]
    fn of_a_tail_that_the_median_does_not_show() {
        let told = "The slowest wait longer than the median tells: at p90, SecP256r1MLKEM768/ml-dsa-65 brings the last byte \
                    300 ms (+150 %) later (50KiB).";
        assert!(
            slow(5).iter().any(|sentence| sentence == told),
            "{:?}",
            slow(5)
        );
        // What the median shows, and what too few have to be shown, is not repeated.
        for nth in [1, 40] {
            assert!(
                slow(nth).iter().all(|sentence| !sentence.contains("p90")),
                "{:?}",
                slow(nth)
            );
        }
    }

    #[test]
    fn of_the_last_byte() {
        let none = Duration::ZERO;
        for (last_bytes, expected) in [
            (&[19][..], "at 50KiB the last byte comes 1.9 % later"),
            (&[-19], "at 50KiB the last byte comes 1.9 % earlier"),
            (&[0], "no difference was shown in the last byte"),
            (
                &[500],
                "no difference was shown in the last byte (from 50 % earlier to 50 % later can't be excluded)",
            ),
            (&[20, 20], "the last byte comes 2.0 % later"),
            (
                &[20, 10],
                "the last byte comes 1.0 % (100KiB) to 2.0 % (50KiB) later",
            ),
            (
                &[-10, -20],
                "the last byte comes 1.0 % (50KiB) to 2.0 % (100KiB) earlier",
            ),
            (
                &[10, -20],
                "the last byte comes between 2.0 % earlier (100KiB) and 1.0 % later (50KiB)",
            ),
            (
                &[500, 0, 100],
                "at 150KiB the last byte comes 10 % later, and at 50KiB and at 100KiB no difference was shown",
            ),
        ] {
            let expected = format!("shows no difference in the handshake; {expected}.");
            assert_eq!(answer_to(none, last_bytes), expected);
        }
    }

    /// Five connections say nothing, which is another thing than no difference.
    #[test]
    fn of_too_few_connections() {
        let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("0%", "50KiB")], 5);
        let summary = summary(&experiment, &samples(&experiment));
        let [sentence, ..] = &*answer(&summary) else {
            panic!()
        };
        assert_eq!(
            sentence,
            "At the median, SecP256r1MLKEM768/ml-dsa-65 was measured with too few connections to tell its handshake \
             from the baseline's; they are too few to tell the last byte's times apart, too."
        );
        let table = table(&summary, Screen::PLAIN, Detail::Everything);
        assert!(table.contains("% [too few]"), "{table}");
        assert!(!table.contains('∞'), "{table}");
    }

    #[test]
    fn of_the_handshake() {
        for (millis, expected) in [
            (
                35,
                "adds one round trip (35.0 ms, +50 %) to the handshake, and as much to the first byte: 11 segments and not 2, where the window \
                 is 10; ",
            ),
            // Another flight is one: signatures can take as long as three. In real time nobody knows the rest.
            (
                72,
                "adds 72.0 ms (+103 %) to the handshake, and as much to the first byte: one round trip (11 segments and not 2, where the window is \
                 10), and 37.0 ms besides; ",
            ),
            (
                36,
                "adds 36.0 ms (+51 %) to the handshake, and as much to the first byte: one round trip (11 segments and not 2, where the window is \
                 10), and 1.00 ms besides; ",
            ),
            (
                3,
                "adds 3.00 ms (+4.3 %) to the handshake, and as much to the first byte; ",
            ),
        ] {
            let answer = answer_to(Duration::from_millis(millis), &[0]);
            assert!(answer.starts_with(expected), "{answer}");
        }
    }

    /// What is said of handshakes without computing, over networks of this RTT and these rates.
    fn answer_over(networks: &[(u64, &str, u64, u64)]) -> String {
        let cells = networks.iter().map(|(rtt, rate, ..)| {
            let mut cell = cell("0%", "0B");
            cell.link = Link::symmetric(Duration::from_millis(*rtt), Direction::default());
            Parameter::RATE
                .set(&mut cell, rate, &StudyFolder::HERE)
                .unwrap();
            cell
        });
        let experiment = experiment(&[CLASSICAL, HYBRID], cells.collect(), 100);
        let mut samples = samples(&experiment);
        for sample in &mut samples {
            let (_, _, before, after) = networks[sample.cell];
            sample.engine.emulator_cpu = Duration::ZERO;
            sample.engine.endpoint_cpu = Duration::ZERO;
            for row in &mut sample.rows {
                let time = [before, after][sample.arm];
                row.times.handshake = Some(Duration::from_millis(time));
            }
        }
        let [sentence, ..] = &*answer(&summary(&experiment, &samples)) else {
            panic!()
        };
        sentence
            .strip_prefix("At the median, SecP256r1MLKEM768/ml-dsa-65 ")
            .unwrap_or(sentence)
            .to_owned()
    }

    /// A slow link sends the bytes of the last flight besides, and waits no round trip where it is never idle.
    #[test]
    fn of_what_slow_links_take_for_the_bytes() {
        for (networks, expected) in [
            (
                &[(100, "10mbit/1mbit", 207, 318)][..],
                "adds 111.0 ms (+54 %) to the handshake: one round trip (11 segments and not 2, where the window \
                 is 10), and 11.0 ms for the bytes themselves at 1mbit up and 10mbit down.",
            ),
            (
                &[(50, "20mbit", 112, 169), (300, "1.6mbit", 620, 936)],
                "adds 57.0 ms to 316.0 ms (+51 %) to the handshake: one round trip (11 segments and not 2, where \
                 the window is 10), and 7.00 ms to 16.0 ms for the bytes themselves.",
            ),
            (
                &[(10, "1mbit", 40, 150)],
                "adds 110.0 ms (+275 %) to the handshake: 110.0 ms for the bytes themselves at 1mbit.",
            ),
            // More than arithmetic knows of.
            (
                &[(100, "10mbit/1mbit", 207, 367)],
                "adds 160.0 ms (+77 %) to the handshake.",
            ),
        ] {
            assert_eq!(answer_over(networks), expected);
        }
    }

    /// Both handshakes of one flight, without computing, before responses of 20 and 30 KiB: handshakes and last bytes in
    /// milliseconds, the baseline's first.
    fn before_responses(
        rate: &str,
        rtt: u64,
        handshakes: [u64; 2],
        last_bytes: [[u64; 2]; 2],
    ) -> Summary {
        let cells = ["20KiB", "30KiB"].map(|data| {
            let mut cell = cell("0%", data);
            cell.initcwnd = 32;
            cell.link = Link::symmetric(Duration::from_millis(rtt), Direction::default());
            Parameter::RATE
                .set(&mut cell, rate, &StudyFolder::HERE)
                .unwrap();
            cell
        });
        let experiment = experiment(&[CLASSICAL, HYBRID], cells.into(), 100);
        let mut samples = samples(&experiment);
        for sample in &mut samples {
            sample.engine.emulator_cpu = Duration::ZERO;
            sample.engine.endpoint_cpu = Duration::ZERO;
            for row in &mut sample.rows {
                row.times.handshake = Some(Duration::from_millis(handshakes[sample.arm]));
                let time = last_bytes[sample.cell][sample.arm];
                row.times.ttlb = Some(Duration::from_millis(time));
            }
        }
        summary(&experiment, &samples)
    }

    /// What comes earlier has its reason, whatever comes later.
    #[test]
    fn of_last_bytes_of_which_some_come_earlier() {
        let summary = before_responses("1gbit", 35, [70, 71], [[140, 106], [140, 141]]);
        let sentence = answer(&summary).concat();
        assert!(
            sentence.ends_with(
                "the last byte comes between 24 % earlier (20KiB) and 0.7 % later (30KiB), and where it is earlier, the \
                 larger handshake has opened the server's window: the response takes one round trip less."
            ),
            "{sentence}"
        );
    }

    /// A slow link takes time for the bytes of the handshake, and where it is busy, a flight less saves less than a
    /// round trip.
    #[test]
    fn of_what_a_slow_link_saves() {
        use crate::answer::{Reason, parts};
        let summary = before_responses("1.6mbit", 300, [620, 688], [[1400, 1243], [1400, 1170]]);
        let parts = |cell: usize, metric| {
            let cell = &summary.cells[cell];
            let parts = parts(cell, &cell.arms[1], metric, Percentile::MEDIAN).unwrap();
            let rest = parts.rest.into_iter();
            let rest: Vec<(Reason, i64)> = rest
                .map(|(reason, ms)| (reason, ms.round() as i64))
                .collect();
            (parts.round_trips, rest)
        };
        let bytes = (Reason::Bytes, 68);
        assert_eq!(parts(0, Metric::Handshake), (0, vec![bytes]));
        let waiting = (Reason::Waiting, -225);
        assert_eq!(parts(0, Metric::Ttlb), (0, vec![bytes, waiting]));
        // A whole one is told as one.
        let whole = (Reason::Waiting, 2);
        assert_eq!(parts(1, Metric::Ttlb), (-1, vec![bytes, whole]));
    }

    #[test]
    fn of_samples_that_are_not_valid() {
        let cells = vec![cell("0%", "50KiB"), cell("0%", "200KiB")];
        let experiment = experiment(&[CLASSICAL, HYBRID], cells, 100);
        let mut samples = samples(&experiment);
        let invalid = Validity::Invalid("too busy".into());
        samples[0].engine.validity = invalid.clone();
        assert_eq!(
            answer(&summary(&experiment, &samples)),
            [
                "At the median, SecP256r1MLKEM768/ml-dsa-65 adds one round trip (35.0 ms, +50 %) to the handshake, and as much to \
                 the first byte: 11 segments and not 2, where the window is 10; at 200KiB the last byte comes 17 % later.",
                "If the first window is 12 segments (nginx: 13), the server's handshake takes 1 flight and not 2: a round trip \
                 less until the first byte (by arithmetic)."
            ]
        );
        samples[3].engine.validity = invalid;
        assert_eq!(
            answer(&summary(&experiment, &samples)),
            [
                "Nothing can be said about SecP256r1MLKEM768/ml-dsa-65: its samples are not valid (too busy)."
            ]
        );
    }

    #[test]
    fn of_a_faster_handshake_and_without_a_median() {
        let cells = vec![cell("0%", "0B")];
        let experiment = experiment(&[HYBRID, CLASSICAL], cells, 100);
        let percentiles = [Percentile::new(75).unwrap()];
        let summary = Summary::new(&experiment, &samples(&experiment), &percentiles);
        assert_eq!(
            answer(&summary),
            [
                "At p75, secp256r1/rsa-2048 takes one round trip (35.0 ms, -33 %) off the handshake: 2 segments and not \
              11, where the window is 10."
            ]
        );
    }

    /// Whether a cost is larger where packets are lost is a sentence of its own, and the first one is about networks that lose none.
    #[test]
    fn of_networks_with_loss_and_without() {
        let cells = vec![
            cell("0%", "0B"),
            cell("0%", "50KiB"),
            cell("3%", "0B"),
            cell("3%", "50KiB"),
        ];
        let experiment = experiment(&[CLASSICAL, HYBRID], cells, 100);
        let of_loss = |slower: f64| {
            let mut samples = samples(&experiment);
            let is_one = |sample: &&mut Sample| sample.cell == 3 && sample.arm == 1;
            let rows = samples.iter_mut().filter(is_one);
            for row in rows.flat_map(|sample| &mut sample.rows) {
                row.times.ttlb = row.times.ttlb.map(|time| time.mul_f64(slower));
            }
            let said = answer(&summary(&experiment, &samples));
            assert!(!said[0].contains("3%"), "{said:?}");
            let mut of_loss = said
                .into_iter()
                .filter(|one| one.starts_with("Where packets"));
            of_loss.next().unwrap()
        };
        assert_eq!(
            of_loss(1.0),
            "Where packets are lost, at the median, the handshake costs as much as without; the last byte costs as much as \
             without (-0.01 %)."
        );
        let slower = of_loss(1.5);
        assert!(
            slower.starts_with(
                "Where packets are lost, at the median, the handshake costs as much as without; the last byte costs more at \
                 loss 3%, 50KiB (+50 % ["
            ),
            "{slower}"
        );
        assert!(slower.ends_with("] and not -0.01 %)."), "{slower}");
    }

    /// As browsers report pages that were redirected.
    #[test]
    fn of_times_without_a_handshake() {
        let cells = vec![cell("0%", "50KiB")];
        for (arms, expected) in [
            (
                &[CLASSICAL][..],
                "At the median, secp256r1/rsa-2048 has no handshake that the browser reports; the last byte comes after 176.0 ms.",
            ),
            (
                &[CLASSICAL, HYBRID],
                "At the median, SecP256r1MLKEM768/ml-dsa-65 has no handshake that the browser reports; at 50KiB the \
                 last byte comes 0.01 % earlier.",
            ),
        ] {
            let experiment = experiment(arms, cells.clone(), 100);
            let mut samples = samples(&experiment);
            for row in samples.iter_mut().flat_map(|sample| &mut sample.rows) {
                row.times.handshake = None;
            }
            let said = answer(&summary(&experiment, &samples));
            assert_eq!(said.first().map(String::as_str), Some(expected));
        }
    }

    #[test]
    fn of_an_arm_alone_in_two_cells() {
        let cells = vec![cell("0%", "50KiB"), cell("0%", "200KiB")];
        let experiment = experiment(&[CLASSICAL], cells, 100);
        assert_eq!(
            answer(&summary(&experiment, &samples(&experiment))),
            [
                "At the median, secp256r1/rsa-2048 completes the handshake in 70.5 ms; the last byte comes \
              after 176.0 ms (50KiB) to 211.0 ms (200KiB)."
            ]
        );
    }
}

#[test]
fn the_headline_in_markdown() {
    assert_snapshot!(markdown(&headline()));
}

#[test]
fn trouble_in_markdown() {
    assert_snapshot!(markdown(&troubled()));
}

#[test]
fn trouble_in_csv() {
    assert_snapshot!(csv(&troubled()));
}

#[test]
fn trouble_in_json() {
    let document = json(&troubled(), &environment());
    assert_valid(&document);
    assert_snapshot!(document);
}

#[test]
fn names_of_networks_are_told() {
    let mut cell = cell("0%", "50KiB");
    cell.link_name = Some("lte".to_owned());
    let experiment = experiment(&[CLASSICAL], vec![cell], 40);
    let summary = summary(&experiment, &samples(&experiment));
    let document = json(&summary, &environment());
    assert_valid(&document);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["cells"][0]["link"], "lte");
    let table = table(&summary, Screen::PLAIN, Detail::Everything);
    assert!(
        table.contains("\nlte, RTT 35ms, ") || table.starts_with("lte, RTT 35ms, "),
        "{table}"
    );
}

#[test]
fn directions_that_differ_are_noted_in_json() {
    let mut cell = cell("1%", "50KiB");
    cell.link.forward.rate = None;
    cell.link.backward.loss = "2%".parse().unwrap();
    let experiment = experiment(&[CLASSICAL], vec![cell], 40);
    let document = json(&summary(&experiment, &samples(&experiment)), &environment());
    assert_valid(&document);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["cells"][0]["loss"], Value::Null);
    assert_eq!(document["cells"][0]["backward"]["loss"], 0.02);
    assert_eq!(
        document["notes"],
        json!([
            "cells[0].rate_bps: the directions differ: see forward and backward",
            "cells[0].loss: the directions differ: see forward and backward",
        ])
    );
}

#[test]
fn loss_in_bursts_is_told_by_its_mean_and_its_model() {
    let bursts = |text: &str| {
        let experiment = experiment(&[CLASSICAL], vec![cell(text, "50KiB")], 20);
        summary(&experiment, &samples(&experiment))
    };
    let document = json(&bursts("gemodel:1%/9%/50%"), &environment());
    assert_valid(&document);
    let document: Value = serde_json::from_str(&document).unwrap();
    let told = &document["cells"][0];
    assert_eq!(
        (&told["loss"], &told["backward"]["loss"]),
        (&json!(0.05), &json!(0.05))
    );
    assert_eq!(told["loss_model"], "gemodel:1%/9%/50%");
    assert_eq!(told["forward"]["loss_model"], "gemodel:1%/9%/50%");

    let table = csv(&bursts("gemodel:1%/9%/50%"));
    let mut records = ::csv::Reader::from_reader(table.as_bytes());
    let record: std::collections::BTreeMap<String, String> =
        records.deserialize().next().unwrap().unwrap();
    assert_eq!(
        (&*record["forward_loss"], &*record["backward_loss_model"]),
        ("0.05", "gemodel:1%/9%/50%")
    );
    let [uniform, bursts] =
        ["5%", "gemodel:1%/19%"].map(|loss| bursts(loss).cells[0].cell.to_string());
    assert_eq!(bursts, uniform.replace("5%", "gemodel:1%/19%"));
}

#[test]
fn every_null_of_a_number_has_a_note() {
    let document: Value = serde_json::from_str(&json(&troubled(), &environment())).unwrap();
    let notes: Vec<&str> = document["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note.as_str().unwrap())
        .collect();
    let mut nulls = Vec::new();
    find_nulls(&document["cells"], "cells".into(), &mut nulls);
    let text = [
        ".invalid_reason",
        ".loss_model",
        ".client_signature",
        ".early_data",
    ];
    nulls.retain(|path| {
        !path.contains(".intervals.") && !text.iter().any(|name| path.ends_with(name))
    });
    assert!(nulls.len() > 20, "{nulls:?}");
    for null in nulls {
        let noted = notes
            .iter()
            .any(|note| null.starts_with(note.split_once(": ").unwrap().0));
        assert!(noted, "{null}");
    }
}

fn find_nulls(value: &Value, path: String, nulls: &mut Vec<String>) {
    match value {
        Value::Null => nulls.push(path),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_nulls(item, format!("{path}[{index}]"), nulls);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                find_nulls(member, format!("{path}.{name}"), nulls);
            }
        }
        _ => (),
    }
}

/// The document that the command line's contract shows.
const CONTRACT: &str = r#"
{"schema": "lastbyte.compare/1", "engine": "virtual", "seed": 1, "notes": [],
 "cells": [{"rtt_ms": 35.0, "rate_bps": 1000000000, "loss": 0.0, "jitter_ms": 0.0,
   "initcwnd": 10, "data_bytes": 204800,
   "arms": [{"arm": "secp256r1/rsa-2048", "baseline": true, "valid": true, "connections": 200, "failed": 0,
     "client_hello_bytes": 266, "server_hello_bytes": 155, "certificate_bytes": 1471, "certificate_verify_bytes": 264,
     "connect_ms": {"p50": 35.0, "p75": 35.0, "p90": 35.0}, "handshake_ms": {"p50": 70.4, "p75": 70.4, "p90": 70.5},
     "ttfb_ms": {"p50": 105.5, "p75": 105.5, "p90": 105.6}, "ttlb_ms": {"p50": 246.1, "p75": 246.1, "p90": 246.2}}],
   "increase_percent": [{"arm": "SecP256r1MLKEM768/ml-dsa-65", "metric": "ttlb",
     "p50": {"value": 1.0, "low": 0.8, "high": 1.2}, "p75": {"value": 1.0, "low": 0.8, "high": 1.2}, "p90": {"value": 1.0, "low": 0.8, "high": 1.2}}]}]}
"#;

#[test]
fn what_was_measured_until_it_was_precise_enough_says_so() {
    let until = Connections::Until(Until::new("0.01%".parse().unwrap()));
    let experiment = experiment(&[CLASSICAL, HYBRID], vec![cell("0%", "50KiB")], until);
    let mut samples = samples(&experiment);
    for sample in &mut samples {
        sample.rows.truncate(400);
    }
    let summary = summary(&experiment, &samples);
    let told = "Measured until ±0.01%, with 200 to 10000 connections. Intervals are 99.29 % ones, so \
                that those of all 7 looks hold together with 95 %.";
    let warning = " of TTLB is known to ±";
    for text in [
        table(&summary, Screen::PLAIN, Detail::Everything),
        markdown(&summary),
    ] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(told) && text.contains(warning), "{text}");
    }
    let document = json(&summary, &environment());
    assert_valid(&document);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        document["until"],
        json!({
            "precision_percent": 0.01, "least": 200, "most": 10_000, "looks": 7, "level_percent": 99.2857,
        })
    );
    assert_eq!(document["notes"][0], format!("until: {told}"));
    assert_eq!(document["cells"][0]["arms"][0]["connections"], 400);
}

#[test]
fn the_contract_is_kept() {
    assert_valid(CONTRACT);
    // Whatever the contract's document has, ours has in the same place.
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    let document: Value = serde_json::from_str(&json(&headline(), &environment())).unwrap();
    assert_holds(&document, &contract, "");
}

fn assert_holds(document: &Value, contract: &Value, path: &str) {
    match (document, contract) {
        (Value::Object(document), Value::Object(contract)) => {
            for (name, value) in contract {
                let path = format!("{path}.{name}");
                assert_holds(
                    document.get(name).unwrap_or_else(|| panic!("{path}")),
                    value,
                    &path,
                );
            }
        }
        (Value::Array(document), Value::Array(contract)) => {
            for (document, contract) in document.iter().zip(contract) {
                assert_holds(document, contract, path);
            }
        }
        _ => (),
    }
}

#[test]
fn the_schema_tells_documents_from_others() {
    for (from, to) in [
        (r#""seed": 1"#, r#""seed": "1""#),
        (r#""seed": 1,"#, ""),
        ("lastbyte.compare/1", "lastbyte.compare/2"),
        (r#""loss": 0.0"#, r#""loss": 5.0"#),
        (r#""p75": 35.0"#, r#""75": 35.0"#),
        (r#""p50": {"value": 1.0"#, r#""p50": {"value": "1""#),
        (r#""metric": "ttlb""#, r#""metric": "tltb""#),
        (r#""certificate_bytes": 1471"#, r#""certificate_bytes": -1"#),
    ] {
        let broken = CONTRACT.replace(from, to);
        assert_ne!(broken, CONTRACT);
        assert!(!errors(&broken, SCHEMA).is_empty(), "{to}");
    }
}

#[track_caller]
fn assert_valid(document: &str) {
    assert_eq!(errors(document, SCHEMA), [""; 0]);
}

/// What a schema has against a document.
pub(super) fn errors(document: &str, schema: &str) -> Vec<String> {
    let schema = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    schema
        .iter_errors(&serde_json::from_str(document).unwrap())
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn each_parameter_is_in_the_schemas_of_cells() {
    for schema in [SCHEMA, crate::validation::SCHEMA] {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let properties = &schema["$defs"]["cell"]["properties"];
        for (parameter, column) in Parameter::columns() {
            let name = match parameter.value(&cell("0%", "50KiB")) {
                Some(ParameterValue::Time(_)) => format!("{}_ms", parameter.name()),
                _ => column.name.to_owned(),
            };
            // Only `compare` measures pages.
            let is_of_pages = parameter.is_of_pages() && schema["title"] != "lastbyte.compare/1";
            assert!(properties.get(&name).is_some() || is_of_pages, "{name}");
        }
    }
}
