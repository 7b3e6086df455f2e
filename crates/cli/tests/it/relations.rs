//! What must hold between answers of the virtual engine, whatever is asked: questions are drawn from a seed.
//!
//! `LASTBYTE_RELATIONS` is how many each test draws, `LASTBYTE_RELATIONS_SEED` from where. What breaks a
//! relation is told as commands to paste.
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::common::run;
use lastbyte::explain::buffers_change_nothing;
use lastbyte::results::rows::{Batch, CsvWriter, Origin};
use lastbyte::results::{Dataset, Row, Sample, Times, TransportStats, expected};
use lastbyte::study::{Emulation, EngineName, Experiment, ReceiveBuffer};
use lastbyte_flights::{Compute, Reason};
use lastbyte_link::Seed;
use tempfile::TempDir;

type Values = &'static [&'static str];
/// Keys of studies, which with hyphens are options of `lastbyte compare`, and what they may be. What stands
/// twice is drawn twice as often.
type Choices = &'static [(&'static str, Values)];

/// Each kind of handshake; no signature's length is left to chance.
const ARMS: Values = &[
    "secp256r1/rsa-2048",
    "secp256r1/rsa-2048:8000B",
    "X25519MLKEM768/rsa-2048:16000B",
    "SecP256r1MLKEM768/ml-dsa-65",
    "SecP384r1MLKEM1024/ml-dsa-87",
    "X25519MLKEM768/ml-dsa-44/tickets=2",
    "X25519MLKEM768/ml-dsa-44/key_share=x25519",
    "X25519MLKEM768/ml-dsa-44/resume=ticket",
    "X25519MLKEM768/ml-dsa-44/resume=0rtt",
    "X25519MLKEM768/ml-dsa-44/mutual=ml-dsa-65",
];
/// Those that fit an initial window of 32 segments, with 10 KiB besides.
const SMALL_ARMS: Values = &[
    "secp256r1/rsa-2048",
    "secp256r1/rsa-2048:8000B",
    "X25519MLKEM768/rsa-2048:16000B",
    "SecP256r1MLKEM768/ml-dsa-65",
    "X25519MLKEM768/ml-dsa-44/key_share=x25519",
];

const LINK: Choices = &[
    ("rtt", &["10ms", "35ms", "80ms", "200ms"]),
    (
        "rate",
        &["1mbit", "3mbit", "10mbit", "100mbit", "300mbit", "1gbit"],
    ),
];
const WEATHER: Choices = &[
    ("loss", &["0%", "1%", "5%", "gemodel:1%/20%"]),
    ("jitter", &["0ms", "2ms", "10ms"]),
    (
        "jitter_distribution",
        &["uniform", "normal", "paretonormal"],
    ),
    ("jitter_order", &["free", "free", "kept"]),
    ("queue", &["10", "30", "1000"]),
];
const HOSTS: Choices = &[
    ("mtu", &["576", "1500", "1500", "9000"]),
    ("timestamps", &["off", "on"]),
    ("writes", &["whole", "17B+8087B"]),
];
const TCP: Choices = &[
    ("emulation", &["netem", "netem", "link"]),
    ("preset", &["network", "network", "published-2024"]),
    ("gso", &["off", "on"]),
    ("tso", &["off", "on"]),
    ("buffers", &["auto", "linux", "large"]),
    ("congestion", &["cubic", "reno", "bbr"]),
];
const LOAD: Choices = &[
    ("client_initcwnd", &["2", "10", "24"]),
    ("initcwnd", &["4", "10", "20", "32"]),
    ("requests", &["1", "1", "3"]),
    ("think", &["0ms", "50ms", "2s"]),
    ("upload", &["0KiB", "0KiB", "1KiB", "30KiB"]),
    ("data", &["0KiB", "1KiB", "20KiB", "100KiB"]),
];
/// One download, without loss and jitter.
const DOWNLOAD: &[Choices] = &[
    LINK,
    &[
        ("loss", &["0%"]),
        ("connections", &["3"]),
        ("mtu", &["576", "1500", "1500", "9000"]),
        ("timestamps", &["off", "on"]),
        ("congestion", &["cubic", "reno"]),
        ("initcwnd", &["4", "10", "20", "32", "48"]),
        ("data", &["1KiB", "20KiB", "50KiB", "100KiB", "200KiB"]),
    ],
];
const SAMPLING: Choices = &[
    ("connections", &["3", "7", "12"]),
    ("seed", &["1", "2", "3"]),
];
const ANYTHING: &[Choices] = &[LINK, WEATHER, HOSTS, TCP, LOAD, SAMPLING];
/// Without loss and jitter, the same in every connection.
const CALM: &[Choices] = &[
    LINK,
    &[("loss", &["0%"]), ("connections", &["3"])],
    HOSTS,
    LOAD,
];

#[test]
fn arms_that_are_alike_differ_by_nothing() {
    let questions = draws("alike").map(|draw| {
        let arm = draw.pick("arm", ARMS);
        // What goes without saying, so that only names differ.
        let same = format!("{arm}/flush=whole");
        draw.question(&[arm, &same], ANYTHING)
    });
    for answers in ask(questions) {
        assert_same(&answers[0], &answers[1], Duration::ZERO);
    }
}

#[test]
fn the_order_of_arms_changes_no_row() {
    let questions = draws("order").flat_map(|draw| {
        let question = draw.question(&draw.two_arms(), ANYTHING);
        let arms = question.arms.iter().rev().cloned().collect();
        [question.clone(), Question { arms, ..question }]
    });
    for answers in ask(questions).chunks(2) {
        assert_same(&answers[0][0], &answers[1][1], Duration::ZERO);
        assert_same(&answers[0][1], &answers[1][0], Duration::ZERO);
    }
}

#[test]
fn more_connections_begin_as_fewer_do() {
    let questions = draws("more").flat_map(|draw| {
        let question = draw.question(&[draw.pick("arm", ARMS)], ANYTHING);
        ["7", "20"].map(|connections| question.with("connections", connections))
    });
    for answers in ask(questions).chunks_mut(2) {
        assert_eq!(answers[1][0].sample.rows.len(), 20);
        answers[1][0].sample.rows.truncate(7);
        for answer in answers.iter_mut().flatten() {
            // The emulator in user space does not see packets that are under way when the last one is done.
            answer.sample.rows[6].lateness.link = Duration::ZERO;
        }
        assert_same(&answers[0][0], &answers[1][0], Duration::ZERO);
    }
}

#[test]
fn compare_writes_the_rows_of_a_run() {
    let draws = draws("compare").map(|draw| draw.question(&draw.two_arms(), ANYTHING));
    let questions: Vec<Question> = draws.collect();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("rows.csv");
    for (question, answers) in questions.iter().zip(ask(questions.clone())) {
        let command = question.command();
        let words = command.split(' ').skip(1);
        succeed(lastbyte(words).arg("-o").arg(&file));
        let compared = fs::read_to_string(&file).unwrap();
        let of_run = csv(&answers);
        assert_eq!(of_run.lines().count(), compared.lines().count());
        for (of_run, compared) in of_run.lines().zip(compared.lines()) {
            let study = study(std::slice::from_ref(question));
            assert_eq!(
                of_run, compared,
                "left: of the study\n{study}right:\n  {command}"
            );
        }
    }
}

#[test]
fn shards_make_the_whole() {
    let draws = draws("shards").map(|draw| draw.question(&draw.two_arms(), ANYTHING));
    let questions: Vec<Question> = draws.collect();
    let place = Place::new(&questions);
    for shard in ["1/2", "2/2"] {
        succeed(place.run(&shard[..1]).args(["--shard", shard]));
    }
    for part in fs::read_dir(place.path("2/parts")).unwrap() {
        let part = part.unwrap();
        let to = place.path("1/parts").join(part.file_name());
        fs::copy(part.path(), to).unwrap();
    }
    succeed(place.run("1").arg("--resume"));
    let (parts, whole) = (place.answers("1"), ask(questions));
    for (parts, whole) in parts.iter().flatten().zip(whole.iter().flatten()) {
        assert_same(parts, whole, Duration::ZERO);
    }
}

#[test]
fn buffers_that_are_left_to_the_engine_are_linux_s() {
    let questions = draws("whose buffers")
        .enumerate()
        .flat_map(|(number, draw)| {
            // Where large ones may be in their place, and anywhere.
            let choices = [DOWNLOAD, ANYTHING][number % 2];
            let question = draw.question(&[draw.pick("arm", ARMS)], choices);
            // Segments that are read many at once.
            let question = match number % 4 {
                2 => question.with("rate", "unlimited").with("requests", "2"),
                _ => question,
            };
            ["auto", "linux"].map(|buffers| question.with("buffers", buffers))
        });
    for answers in ask(questions).chunks(2) {
        assert_same(&answers[0][0], &answers[1][0], Duration::ZERO);
    }
}

/// What the virtual engine's choice of buffers rests on: see `buffers_change_nothing`.
#[test]
fn large_buffers_are_linux_s_where_arithmetic_has_it_so() {
    let questions: Vec<Question> = draws("large buffers")
        .flat_map(|draw| {
            let question = draw.question(&[draw.pick("arm", ARMS)], DOWNLOAD);
            ["linux", "large"].map(|buffers| question.with("buffers", buffers))
        })
        .collect();
    // In as many looks at the clock as an acknowledgement may wait for, a nanosecond each.
    const LOOKS: Duration = Duration::from_nanos(10);
    let exact = ask_with(&["--shortcuts", "avoid"], questions.clone());
    let quick = ask(questions);
    let (mut alike, mut all) = (0, 0);
    for (exact, quick) in exact.chunks(2).zip(quick.chunks(2)) {
        let (linux, large) = (&exact[0][0], &exact[1][0]);
        let Experiment { arms, cells, .. } = &linux.experiment;
        let changes_nothing = buffers_change_nothing(&arms[linux.sample.arm], None, &cells[0]);
        if changes_nothing {
            assert_same_packets(linux, large, LOOKS);
        }
        // A read that finds nothing takes a microsecond.
        assert_same(linux, &quick[0][0], Duration::from_micros(10));
        alike += u32::from(changes_nothing);
        all += 1;
    }
    println!("{alike} of {all} cells are alike with either buffers");
    assert!(4 * alike >= all, "{alike} of {all}");
}

/// Times are near, and all that both ends sent is the same.
#[track_caller]
fn assert_same_packets(one: &Answer, other: &Answer, apart: Duration) {
    assert_same(one, other, apart);
    let packets = |row: &Row| {
        let ends = [&row.client_tcp(), &row.server_tcp()].map(|tcp| *tcp.as_ref().unwrap());
        ends.map(|tcp| (tcp.segments_out, tcp.segments_in, tcp.retransmits, tcp.cwnd))
    };
    for (row, same) in one.sample.rows.iter().zip(&other.sample.rows) {
        assert_eq!(
            packets(row),
            packets(same),
            "{}\n  {}",
            one.command,
            other.command
        );
    }
}

#[test]
fn a_longer_round_trip_is_never_faster() {
    let rtts = ["4ms", "10ms", "33ms", "70ms", "150ms", "400ms"];
    let questions = draws("rtt").flat_map(|draw| {
        let question = draw.question(&[draw.pick("arm", ARMS)], CALM);
        rtts.map(|rtt| question.with("rtt", rtt))
    });
    for answers in ask(questions).chunks(rtts.len()) {
        assert_in_order(answers);
    }
}

#[test]
fn more_data_is_never_earlier() {
    const SIZES: usize = 5;
    let questions = draws("data").flat_map(|draw| {
        let question = draw.question(&[draw.pick("arm", ARMS)], CALM);
        let mut sizes: [u64; SIZES] = std::array::from_fn(|size| {
            // As many small ones as large ones.
            let most = [3_000, 20_000, 300_000][size % 3];
            1 + draw.number(&format!("size {size}")) % most
        });
        sizes.sort_unstable();
        sizes.map(|bytes| question.with("data", &format!("{bytes}B")))
    });
    for answers in ask(questions).chunks(SIZES) {
        assert_in_order(answers);
    }
}

#[test]
fn emulations_agree_with_arithmetic_and_with_each_other() {
    let questions = draws("emulations").flat_map(|draw| {
        let question = draw.question(&[draw.pick("arm", ARMS)], CALM);
        ["netem", "link"].map(|emulation| question.with("emulation", emulation))
    });
    for answers in ask(questions).chunks(2) {
        let answers = [&answers[0][0], &answers[1][0]];
        answers.iter().for_each(|answer| assert_as_expected(answer));
        let [netem, link] = answers;
        for (one, other) in netem.sample.rows.iter().zip(&link.sample.rows) {
            assert_times(
                (&one.times, &netem.command),
                (&other.times, &link.command),
                |time| time / 1000 + passing_on(link, other),
            );
        }
    }
}

/// Times are those of flight arithmetic.
#[track_caller]
fn assert_as_expected(answer: &Answer) {
    for row in &answer.sample.rows {
        assert_times(
            (&row.times, &answer.command),
            (&arithmetic(answer, row).0, "by flight arithmetic"),
            |time| time / 1000 + passing_on(answer, row),
        );
    }
}

#[test]
fn a_receive_buffer_that_a_client_sets_is_as_arithmetic_has_it() {
    let questions = draws("receive buffer").map(|draw| {
        let question = draw.question(&[draw.pick("arm", SMALL_ARMS)], DOWNLOAD);
        // Where a segment takes longer than two round trips, it is sent twice (tail loss probe).
        let question = if question.has("mtu", "9000") {
            question.with("rate", "100mbit")
        } else {
            question
        };
        let (least, most) = (ReceiveBuffer::LEAST_WALKED.0, ReceiveBuffer::MOST.0);
        // As many small ones as large ones.
        let range = [32 << 10, most - least][(draw.number("range") % 2) as usize];
        let bytes = least + draw.number("bytes") % range;
        question.with("receive_buffer", &format!("{bytes}B"))
    });
    for answers in ask(questions) {
        assert_as_expected(&answers[0]);
    }
}

/// The times of a row by arithmetic, and why some of them are the row's own, as arithmetic does not go so far.
fn arithmetic(answer: &Answer, row: &Row) -> (Times, Option<Reason>) {
    let Experiment { arms, cells, .. } = &answer.experiment;
    let record_size = arms[answer.sample.arm].record_size;
    let timeline = expected(&row.exchange, &cells[0], record_size, Compute::default());
    let time = |computed: Option<Duration>, measured| match computed {
        Some(computed) => timeline.modelled(computed).or(measured),
        None => None,
    };
    let times = Times {
        connect: time(timeline.connect, row.times.connect),
        handshake: time(Some(timeline.handshake), row.times.handshake),
        ttfb: time(timeline.ttfb, row.times.ttfb),
        ttlb: time(Some(timeline.ttlb), row.times.ttlb),
        // Arithmetic is about clients.
        server_handshake: row.times.server_handshake,
    };
    (times, timeline.beyond(timeline.ttlb))
}

/// Slow links and long paths, on which Linux sends segments and SYNs twice without need.
#[test]
fn arithmetic_is_right_or_says_why_not() {
    const PATHS: &[Choices] = &[
        &[
            (
                "rtt",
                &[
                    "0.5ms", "1ms", "4ms", "10ms", "35ms", "80ms", "200ms", "600ms", "990ms", "2s",
                ],
            ),
            (
                "rate",
                &[
                    "56kbit",
                    "128kbit",
                    "300kbit",
                    "1mbit",
                    "3mbit",
                    "10mbit",
                    "100mbit",
                    "1gbit",
                    "10gbit",
                    "40gbit",
                    "unlimited",
                    "50mbit/5mbit",
                    "10mbit/1mbit",
                ],
            ),
            ("loss", &["0%"]),
            ("connections", &["3"]),
            ("timeout", &["600s"]),
            ("buffers", &["linux", "large"]),
        ],
        HOSTS,
        LOAD,
    ];
    let questions = draws("right").map(|draw| draw.question(&[draw.pick("arm", ARMS)], PATHS));
    let (mut right, mut limited) = (0, 0);
    let mut wrong = Vec::new();
    for answer in ask(questions).iter().flatten() {
        let row = &answer.sample.rows[1];
        let (times, reason) = arithmetic(answer, row);
        let is_near = |(one, other): (Option<Duration>, Option<Duration>)| match (one, other) {
            (Some(one), Some(other)) => {
                one.abs_diff(other) <= one / 1000 + Duration::from_micros(2)
            }
            _ => one == other,
        };
        let pairs = [
            (row.times.connect, times.connect),
            (row.times.handshake, times.handshake),
            (row.times.ttfb, times.ttfb),
            (row.times.ttlb, times.ttlb),
        ];
        match (pairs.into_iter().all(is_near), reason) {
            (true, None) => right += 1,
            (true, Some(_)) => limited += 1,
            (false, _) => wrong.push(format!("{:?}\n{times:?}\n  {}", row.times, answer.command)),
        }
    }
    println!(
        "{right} right, {limited} right as far as they go, {} wrong",
        wrong.len()
    );
    // One in 150 is what HyStart does, which ends slow start.
    let all = right + limited + wrong.len();
    assert!(wrong.len() <= all / 150, "{}", wrong.join("\n"));
}

/// Whoever thinks for longer than any retransmission timeout finds the window as it was at first.
#[test]
fn a_pause_beyond_any_timeout_costs_itself_alone() {
    let pauses = [20, 50].map(Duration::from_secs);
    let questions = draws("pause").flat_map(|draw| {
        let question = draw.question(&[draw.pick("arm", ARMS)], CALM);
        let question = question.with("requests", "3").with("data", "100KiB");
        let question = question.with("timeout", "300s");
        ["20s", "50s"].map(|think| question.with("think", think))
    });
    for answers in ask(questions).chunks(2) {
        let [short, long] = [0, 1].map(|number: usize| &answers[number][0]);
        for (one, other) in short.sample.rows.iter().zip(&long.sample.rows) {
            let work = |row: &Row, pause: Duration| row.times.ttlb.unwrap() - 2 * pause;
            let (one, other) = (work(one, pauses[0]), work(other, pauses[1]));
            assert!(
                one.abs_diff(other) <= Duration::from_micros(2),
                "{one:?}\n  {}\n{other:?}\n  {}",
                short.command,
                long.command
            );
        }
    }
}

/// What the emulator in user space takes for the packets of a connection.
fn passing_on(answer: &Answer, row: &Row) -> Duration {
    let packets =
        [&row.client_tcp(), &row.server_tcp()].map(|tcp| tcp.as_ref().unwrap().segments_out);
    match answer.experiment.emulation {
        Emulation::Netem => Duration::ZERO,
        Emulation::Link => Duration::from_micros(5) * (packets[0] + packets[1]),
    }
}

/// A setting that says nothing where others are as given.
struct Idle {
    given: &'static [(&'static str, &'static str)],
    change: (&'static str, &'static str),
    /// What looking at the clock more often takes.
    apart: Duration,
}

const fn idle(
    given: &'static [(&'static str, &'static str)],
    key: &'static str,
    value: &'static str,
) -> Idle {
    Idle {
        given,
        change: (key, value),
        apart: Duration::ZERO,
    }
}

#[test]
fn a_setting_that_cannot_bind_changes_nothing() {
    let all = [
        // Bursts of loss can outlast both.
        idle(&[("loss", "5%"), ("timeout", "300s")], "timeout", "400s"),
        idle(&[("gso", "off"), ("tso", "on")], "tso", "off"),
        idle(&[("requests", "1"), ("think", "0ms")], "think", "700ms"),
    ];
    assert_idle("idle", ARMS, ANYTHING, &all);
}

/// So little that nobody waits for a window, a buffer or a queue.
#[test]
fn without_loss_and_waiting_more_settings_cannot_bind() {
    const LITTLE: &[Choices] = &[
        CALM[0],
        CALM[1],
        &[
            ("initcwnd", &["32"]),
            ("mtu", &["1500", "9000"]),
            ("data", &["0KiB", "1KiB", "10KiB"]),
        ],
    ];
    let near = |idle: Idle| Idle {
        apart: Duration::from_micros(1),
        ..idle
    };
    let all = [
        near(idle(&[], "queue", "10000")),
        near(idle(&[], "jitter_distribution", "pareto")),
        near(idle(&[], "seed", "7")),
        idle(&[], "client_initcwnd", "40"),
        idle(&[], "initcwnd", "40"),
        idle(&[], "congestion", "reno"),
        near(idle(&[], "buffers", "large")),
        idle(&[], "timeout", "60s"),
        near(idle(
            &[("data", "0KiB"), ("writes", "whole")],
            "writes",
            "17B+8087B",
        )),
    ];
    assert_idle("little", SMALL_ARMS, LITTLE, &all);
}

fn assert_idle(test: &str, arms: Values, choices: &[Choices], all: &[Idle]) {
    let questions = draws(test)
        .zip(all.iter().cycle())
        .flat_map(|(draw, idle)| {
            let mut question = draw.question(&[draw.pick("arm", arms)], choices);
            for (key, value) in idle.given {
                question = question.with(key, value);
            }
            let (key, value) = idle.change;
            [question.clone(), question.with(key, value)]
        });
    for (answers, idle) in ask(questions).chunks_mut(2).zip(all.iter().cycle()) {
        let answers_of_arm = answers.iter_mut().flatten();
        for row in answers_of_arm.flat_map(|answer| &mut answer.sample.rows) {
            // Where a window is idle, it is still told.
            let TransportStats::Tcp { client, server } = &mut row.transport else {
                panic!("{:?}", row.transport);
            };
            for tcp in [client, server] {
                tcp.as_mut().unwrap().cwnd = 0;
            }
        }
        assert_same(&answers[0][0], &answers[1][0], idle.apart);
    }
}

/// Without loss and jitter: each answer's last byte comes no earlier than that of the one before it.
#[track_caller]
fn assert_in_order(answers: &[Vec<Answer>]) {
    for pair in answers.windows(2) {
        let (before, after) = (&pair[0][0], &pair[1][0]);
        for (one, other) in before.sample.rows.iter().zip(&after.sample.rows) {
            let (early, late) = (one.times.ttlb.unwrap(), other.times.ttlb.unwrap());
            assert!(
                early <= late + Duration::from_micros(1),
                "last byte of connection {}:\n{early:?}\n  {}\n{late:?}\n  {}",
                one.index,
                before.command,
                after.command
            );
        }
    }
}

/// Rows are the same, or where their times may be `apart`, near.
#[track_caller]
fn assert_same(one: &Answer, other: &Answer, apart: Duration) {
    assert_eq!(one.sample.rows.len(), other.sample.rows.len());
    for (row, same) in one.sample.rows.iter().zip(&other.sample.rows) {
        assert_times(
            (&row.times, &one.command),
            (&same.times, &other.command),
            |_| apart,
        );
        assert!(
            row == same || (!apart.is_zero() && row.outcome == same.outcome),
            "{row:?}\n  {}\n{same:?}\n  {}",
            one.command,
            other.command
        );
    }
}

/// All times are as near to each other as `apart` says of the first.
#[track_caller]
fn assert_times(
    (one, told): (&Times, &str),
    (other, also_told): (&Times, &str),
    apart: impl Fn(Duration) -> Duration,
) {
    let pairs = [
        ("connect", one.connect, other.connect),
        ("handshake", one.handshake, other.handshake),
        (
            "server's handshake",
            one.server_handshake,
            other.server_handshake,
        ),
        ("first byte", one.ttfb, other.ttfb),
        ("last byte", one.ttlb, other.ttlb),
    ];
    for (name, one, other) in pairs {
        let alike = match (one, other) {
            (Some(one), Some(other)) => one.abs_diff(other) <= apart(one),
            _ => one == other,
        };
        assert!(
            alike,
            "{name}:\n{one:?}\n  {told}\n{other:?}\n  {also_told}"
        );
    }
}

/// Where the questions of a test come from.
fn draws(test: &str) -> impl Iterator<Item = Draw> {
    let number = |name, usual| match env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => usual,
    };
    let (seed, count) = (
        number("LASTBYTE_RELATIONS_SEED", 1),
        number("LASTBYTE_RELATIONS", 8),
    );
    println!("LASTBYTE_RELATIONS_SEED={seed} LASTBYTE_RELATIONS={count}");
    (0..count).map(move |number| Draw(Seed(seed).part(&format!("{test} {number}"))))
}

/// What chance decides of one question.
struct Draw(Seed);

impl Draw {
    fn number(&self, what: &str) -> u64 {
        self.0.part(what).0
    }

    fn pick(&self, what: &str, values: Values) -> &'static str {
        values[(self.number(what) % values.len() as u64) as usize]
    }

    fn two_arms(&self) -> [&'static str; 2] {
        let one = self.pick("arm", ARMS);
        let others: Vec<_> = ARMS.iter().filter(|arm| **arm != one).collect();
        let other = self.number("other arm") % others.len() as u64;
        [one, others[other as usize]]
    }

    fn question(&self, arms: &[&str], choices: &[Choices]) -> Question {
        let choices = choices.iter().copied().flatten();
        let question = Question {
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            settings: choices
                .map(|(key, values)| (*key, self.pick(key, values).to_owned()))
                .collect(),
        };
        // There is no such link.
        if question.has("emulation", "link") {
            question.with("gso", "off").with("preset", "network")
        } else {
            question
        }
    }
}

/// Some arms in one cell.
#[derive(Clone)]
struct Question {
    arms: Vec<String>,
    /// Keys of a study.
    settings: Vec<(&'static str, String)>,
}

impl Question {
    fn has(&self, key: &str, value: &str) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|(known, text)| *known == key && text == value)
    }

    fn with(&self, key: &'static str, value: &str) -> Question {
        let mut question = self.clone();
        question.settings.retain(|(known, _)| *known != key);
        question.settings.push((key, value.to_owned()));
        question
    }

    /// As it is asked: without a response, there is nothing to wait for between requests.
    fn settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let no_data = self.has("data", "0KiB");
        let settings = self
            .settings
            .iter()
            .map(|(key, value)| (*key, value.as_str()));
        settings.filter(move |(key, _)| !no_data || *key != "requests")
    }

    fn command(&self) -> String {
        let mut command = "lastbyte compare --engine virtual --chain-profile private".to_owned();
        for (arm, option) in self.arms.iter().zip(["baseline", "against"]) {
            command += &format!(" --{option} {arm}");
        }
        for (key, value) in self.settings() {
            command += &format!(" --{} {value}", key.replace('_', "-"));
        }
        command
    }

    /// As a measure of a study.
    fn measure(&self, id: usize) -> String {
        const OF_LINK: Values = &[
            "rtt",
            "rate",
            "loss",
            "jitter",
            "jitter_distribution",
            "jitter_order",
            "queue",
        ];
        const OF_MEASURE: Values = &["connections", "seed", "timeout", "emulation"];
        let (mut link, mut measure, mut cell) = (Vec::new(), String::new(), String::new());
        for (key, value) in self.settings() {
            let line = match value.parse::<u64>() {
                Ok(number) => format!("{key} = {number}"),
                Err(_) => format!("{key} = {value:?}"),
            };
            match key {
                key if OF_LINK.contains(&key) => link.push(line),
                key if OF_MEASURE.contains(&key) => measure += &format!("{line}\n"),
                _ => cell += &format!("{line}\n"),
            }
        }
        format!(
            "[[measure]]\nid = \"{id}\"\narms = {:?}\n{measure}[[measure.cell]]\nlink = {{ {} }}\n{cell}",
            self.arms,
            link.join(", ")
        )
    }
}

/// A study with a measure for each question.
fn study(questions: &[Question]) -> String {
    let mut arms: Vec<&String> = questions
        .iter()
        .flat_map(|question| &question.arms)
        .collect();
    arms.sort_unstable();
    arms.dedup();
    let arms = arms
        .iter()
        .map(|arm| format!("[arm.{arm:?}]\ntls = {arm:?}\n"));
    let measures = questions.iter().enumerate();
    arms.chain(measures.map(|(id, question)| question.measure(id)))
        .collect()
}

/// One arm of a question, measured.
struct Answer {
    /// Asks for it again.
    command: String,
    experiment: Experiment,
    sample: Sample,
}

/// As `compare` writes a file of rows.
fn csv(answers: &[Answer]) -> String {
    let origin = Origin {
        study: "compare",
        measure: "compare",
        engine: EngineName::Virtual,
    };
    let mut text = Vec::new();
    let mut rows = CsvWriter::new(&mut text).unwrap();
    for answer in answers {
        let batch = Batch::new(origin, &answer.experiment, &answer.sample);
        rows.write(&batch.unwrap()).unwrap();
    }
    rows.finish().unwrap();
    String::from_utf8(text).unwrap()
}

/// Asks all in one run: of each question, an answer of each arm.
fn ask(questions: impl IntoIterator<Item = Question>) -> Vec<Vec<Answer>> {
    ask_with(&[], questions)
}

/// The same with options of the run.
fn ask_with(options: &[&str], questions: impl IntoIterator<Item = Question>) -> Vec<Vec<Answer>> {
    let questions: Vec<Question> = questions.into_iter().collect();
    let place = Place::new(&questions);
    succeed(place.run("results").args(options));
    place.answers("results")
}

/// A folder with a study in it.
struct Place<'a> {
    folder: TempDir,
    questions: &'a [Question],
}

impl Place<'_> {
    fn new(questions: &[Question]) -> Place<'_> {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("study.toml"), study(questions)).unwrap();
        Place { folder, questions }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, results: &str) -> Command {
        let mut command = lastbyte(["run", "--engine", "virtual"]);
        command.arg(self.path("study.toml"));
        command.arg("-o").arg(self.path(results));
        command
    }

    fn answers(&self, results: &str) -> Vec<Vec<Answer>> {
        let data = Dataset::open(&self.path(results)).unwrap();
        let mut answers: Vec<Vec<Answer>> = self.questions.iter().map(|_| Vec::new()).collect();
        for sample in data.samples().unwrap() {
            let (key, sample) = sample.unwrap();
            let question = &self.questions[key.measure];
            let alone = Question {
                arms: vec![question.arms[key.arm].clone()],
                ..question.clone()
            };
            answers[key.measure].push(Answer {
                command: alone.command(),
                experiment: data.study.measures[key.measure].experiment.clone(),
                sample,
            });
        }
        answers
    }
}

/// The program with the user's own cache, which has the kernel.
fn lastbyte(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.args(arguments);
    command
}

fn succeed(command: &mut Command) {
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
}
