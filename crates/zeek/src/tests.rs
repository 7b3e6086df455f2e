//! Logs as Zeek writes them, and as it does not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::*;

const SSL: &str = "ts uid id.orig_h id.orig_p id.resp_h id.resp_p version cipher curve server_name resumed last_alert next_protocol established ssl_history";
const CONN: &str = "ts uid id.orig_h id.orig_p id.resp_h id.resp_p proto service duration orig_bytes resp_bytes conn_state missed_bytes";

fn options() -> Options {
    Options {
        cdn: DEFAULT_CDN_LIST.parse().unwrap(),
        join_rows: 1000,
        names: Names::LeftOut,
    }
}

/// A log with a header and these rows, whose blanks are tabs.
fn log(fields: &str, rows: &[String]) -> String {
    let header = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tany\n#open\t2026-11-01-00-00-00\n";
    let rows: String = rows
        .iter()
        .map(|row| row.replace(' ', "\t") + "\n")
        .collect();
    let fields = fields.replace(' ', "\t");
    format!("{header}#fields\t{fields}\n#types\tany\n{rows}#close\t2026-11-01-01-00-00\n")
}

fn ssl(second: u64, uid: &str, version: &str, resumed: &str, established: &str) -> String {
    format!(
        "{}.5 {uid} 10.0.0.1 4000 198.51.100.1 443 {version} AES x25519 www.example {resumed} - - {established} CsiI",
        1_793_491_200 + second
    )
}

fn conn(second: u64, uid: &str, bytes: u64) -> String {
    format!(
        "{}.25 {uid} 10.0.0.1 4000 198.51.100.1 443 tcp ssl 1.000000 500 {bytes} SF 0",
        1_793_491_200 + second
    )
}

/// What keeps the only row from being read.
fn problem(text: &str) -> String {
    let survey = survey_text(text);
    assert_eq!(survey.ssl.rows + survey.conn.rows, 0, "{text}");
    survey.examples.join("; ")
}

#[test]
fn a_row_says_each_key_once() {
    let row =
        r#"{"ts":1793491200.5,"uid":"C1","version":"TLSv13","resumed":false,"established":true}"#;
    assert_eq!(survey_text(row).ssl.rows, 1);
    for key in ["version", "uid"] {
        let twice = row.replace('}', &format!(r#","{key}":"C2"}}"#));
        let said = problem(&twice);
        assert!(
            said.ends_with(&format!("it has the key {key:?} twice")),
            "{said}"
        );
    }
}

#[test]
fn a_log_whose_tabs_became_blanks_is_named() {
    let fields = "ts uid version cipher resumed established";
    let text = log(fields, &["1793491200.5 C1 TLSv13 A F T".to_owned()]);
    assert_eq!(survey_text(&text).ssl.rows, 1);
    for blanks in [" ", "    "] {
        let said = problem(&text.replace('\t', blanks));
        assert!(
            said.contains("its log has blanks in place of tabs"),
            "{said}"
        );
    }
}

fn survey_text(text: &str) -> Survey {
    survey_bytes(text.as_bytes(), options())
}

fn document(survey: &Survey) -> Value {
    let document: Value = serde_json::from_str(&json(survey, 10)).unwrap();
    let schema = serde_json::from_str(SCHEMA).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<String> = (schema.iter_errors(&document))
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    document
}

/// Files of a folder, as they would be named on the command line.
fn survey_files(files: &[(&str, &[u8])], options: Options) -> (Survey, TempDir) {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let sources = sources(&[folder.path().to_owned()]).unwrap();
    (survey(&sources.sources, options, None).unwrap(), folder)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    ruzstd::encoding::compress_to_vec(text.as_bytes(), level)
}

#[test]
fn versions_and_resumption() {
    let text = log(
        SSL,
        &[
            ssl(0, "C1", "TLSv13", "T", "T"),
            ssl(1, "C2", "TLSv13", "F", "T"),
            ssl(2, "C3", "TLSv13-draft23", "T", "T"),
            ssl(3, "C4", "TLSv12", "T", "F"),
            ssl(4, "C5", "unknown-32257", "F", "T"),
            ssl(5, "C6", "-", "F", "F"),
            ssl(6, "C7", "(empty)", "F", "F"),
        ],
    );
    let survey = survey_text(&text);
    let document = document(&survey);
    assert_eq!(document["ssl"]["rows"], 7);
    assert_eq!(document["ssl"]["unreadable"], 0);
    assert_eq!(document["ssl"]["drafts"], 1);
    let tls = &document["tls"];
    assert_eq!(tls["TLSv13"]["established"], 3);
    assert_eq!(tls["TLSv13"]["resumed"], 2);
    assert_eq!(tls["TLSv12"]["rows"], 1);
    assert_eq!(tls["TLSv12"]["established"], 0);
    assert!(tls["TLSv12"]["share"].is_null());
    assert_eq!(tls["unknown"]["established"], 1);
    assert_eq!(tls["none"]["rows"], 2);
    assert_eq!(document["unmatched"], 7);
    assert!(super::text(&survey, 0).contains("  TLSv13                   66.7 %"));
}

#[test]
fn json_says_the_same() {
    let rows = [
        r#"{"ts":1793491200.5,"uid":"C1","id.orig_h":"10.0.0.1","id.resp_h":"104.16.0.1","version":"TLSv13","cipher":"AES","resumed":true,"established":true,"ssl_history":"CsiI"}"#,
        r#"{"_path":"ssl","_write_ts":"2026-11-01T00:00:02.000000Z","ts":"2026-11-01T00:00:01.500000Z","uid":"C\u0032","id.resp_h":"198.51.100.1","resumed":false,"established":false,"ssl_history":"C"}"#,
        r#"{"ts":1793491200250,"uid":"C1","proto":"tcp","service":"ssl","duration":1.0,"orig_bytes":500,"resp_bytes":4000,"conn_state":"SF","missed_bytes":0,"tunnel_parents":["CX"],"id.orig_p":4000}"#,
        r#"{"ts":1793491200.25,"uid":"C2","proto":"tcp","conn_state":"S0","missed_bytes":0}"#,
        r#"{"ts":1793491200.25,"uid":"C9","proto":"udp","service":"dns","query":"a.example","version":7}"#,
        r#"{"ts":1793491200.25,"uid":"C3","version":"TLSv13","resumed":null,"established":true,"ssl_history":""}"#,
        r#"{"ts":1793491200.25,"uid":"C3","version":"TLSv13","resumed":"yes","established":true}"#,
        r#"{"ts":1793491200.25,"uid":"C3","#,
        r#"{"ts":1793491200.25,"uid":"C1","client_handshake_bytes":58,"server_handshake_bytes":4500,"tcp_rtt":0.0205}"#,
    ];
    let survey = survey_text(&rows.join("\n"));
    let document = document(&survey);
    assert_eq!(document["ssl"]["rows"], 2, "{document}");
    assert_eq!(document["ssl"]["unreadable"], 3);
    assert_eq!(document["conn"]["rows"], 2);
    assert_eq!(document["lastbyte"]["rows"], 1);
    assert_eq!(document["joined"], 2);
    assert_eq!(document["tls"]["TLSv13"]["resumed"], 1);
    assert_eq!(document["tls"]["none"]["rows"], 1);
    assert_eq!(document["classes"]["cdn"]["tls"]["resumed"], 1);
    assert_eq!(
        document["bytes_per_connection"]["cdn"]["resumed"]["p50"],
        4008
    );
    assert_eq!(document["tcp_rtt_us"]["connections"], 1);
    assert_eq!(
        document["server_handshake_bytes"]["resumed"]["connections"],
        1
    );
    assert_eq!(document["from"], "2026-11-01T00:00:00Z");
    assert_eq!(
        survey.examples,
        [
            "memory:6: resumed is not what it should be",
            "memory:7: resumed is not what it should be",
            "memory:8: neither JSON nor complete"
        ]
    );
}

#[test]
fn columns_in_any_place_and_several_headers() {
    let reversed: Vec<&str> = SSL.split(' ').rev().collect();
    let backwards = |row: String| row.split(' ').rev().collect::<Vec<_>>().join(" ");
    let ctx = SSL.replace("id.resp_p ", "id.resp_p id.ctx.vlan id.ctx.inner_vlan ");
    let with_ctx = |row: String| row.replacen(" 443 ", " 443 7 - ", 1);
    let text = [
        log(SSL, &[ssl(0, "C1", "TLSv13", "T", "T")]),
        log(
            &reversed.join(" "),
            &[backwards(ssl(1, "C2", "TLSv13", "T", "T"))],
        ),
        log(&ctx, &[with_ctx(ssl(2, "C3", "TLSv13", "F", "T"))]),
        log(CONN, &[conn(3, "C3", 900)]),
        log(
            "ts uid query qtype",
            &["1793491200.5 C4 a.example A".to_owned()],
        ),
        log(SSL, &[ssl(4, "C5", "TLSv12", "F", "T")]),
    ]
    .concat();
    let document = document(&survey_text(&text));
    assert_eq!(document["ssl"]["rows"], 4);
    assert_eq!(document["conn"]["rows"], 1);
    assert_eq!(document["joined"], 1);
    assert_eq!(document["tls"]["TLSv13"]["resumed"], 2);
    assert_eq!(document["unreadable"]["lines"], 0);
}

#[test]
fn other_separators_and_words_for_nothing() {
    for separator in ["|", ",", " ", ";"] {
        let escaped = format!("\\x{:02x}", separator.as_bytes()[0]);
        let mut text = format!(
            "#separator {escaped}\n#unset_field{separator}NIL\n#empty_field{separator}EMPTY\n"
        );
        text += &format!("#fields{separator}{}\n", SSL.replace(' ', separator));
        for row in [
            ssl(0, "C1", "TLSv13", "T", "T"),
            ssl(1, "C2", "NIL", "F", "F"),
            ssl(2, "C3", "EMPTY", "F", "F"),
            ssl(3, "C4", "-", "F", "F"),
        ] {
            text += &(row.replace(' ', separator) + "\n");
        }
        let document = document(&survey_text(&text));
        assert_eq!(document["ssl"]["rows"], 4, "{separator:?}");
        assert_eq!(document["tls"]["none"]["rows"], 2, "{separator:?}");
        assert_eq!(document["tls"]["unknown"]["rows"], 1, "{separator:?}");
    }
    let text = log(SSL, &[ssl(0, "C1", "TLSv13", "T", "T")]).replacen("\\x09", "\\x09\\x09", 1);
    assert_eq!(
        survey_text(&text).examples[0],
        "memory:9: its log has a #separator of more than one byte"
    );
}

#[test]
fn columns_that_are_missing() {
    for column in ["uid", "version", "resumed", "established"] {
        let text = log(
            &SSL.replace(column, "other"),
            &[ssl(0, "C1", "TLSv13", "T", "T")],
        );
        let survey = survey_text(&text);
        assert_eq!((survey.ssl.rows, survey.ssl.unreadable), (0, 1), "{column}");
        assert_eq!(
            survey.examples,
            [format!("memory:9: its log has no column {column}")]
        );
    }
    // Without these, there is less to tell.
    for column in ["ts", "ssl_history", "server_name", "id.resp_h", "cipher"] {
        let text = log(
            &SSL.replace(column, "other"),
            &[ssl(0, "C1", "TLSv13", "T", "T")],
        );
        let survey = survey_text(&text);
        assert_eq!((survey.ssl.rows, survey.ssl.unreadable), (1, 0), "{column}");
    }
    for column in ["proto", "service", "duration", "orig_bytes", "missed_bytes"] {
        let text = log(SSL, &[ssl(0, "C1", "TLSv13", "T", "T")])
            + &log(&CONN.replace(column, "other"), &[conn(0, "C1", 900)]);
        let document = document(&survey_text(&text));
        assert_eq!(document["joined"], 1, "{column}");
        assert_eq!(
            document["bytes_per_connection"]["other"]["resumed"]["connections"], 1,
            "{column}"
        );
    }
}

#[test]
fn lines_that_are_broken() {
    let rows = [
        ssl(0, "C1", "TLSv13", "T", "T"),
        "1793491200.5 C2 10.0.0.1".to_owned(),
        ssl(0, "C3", "TLSv13", "T", "T") + " -",
        ssl(0, "C4", "TLSv13", "yes", "T"),
        ssl(0, "-", "TLSv13", "T", "T"),
        "\u{0}\u{1}\u{ff}garbage".to_owned(),
        "{ }".to_owned(),
        String::new(),
        ssl(0, "C5", "TLSv13", "T", "T").replace("1793491200.5", "XXXXXXXXXX.XXXXXX") + "\r",
    ];
    let survey = survey_text(&log(SSL, &rows));
    let document = document(&survey);
    assert_eq!(document["ssl"]["rows"], 2);
    assert_eq!(document["ssl"]["unreadable"], 5);
    assert_eq!(document["ssl"]["without_time"], 1);
    assert_eq!(
        survey.examples[0],
        "memory:10: not as many columns as #fields has"
    );
    assert_eq!(survey.examples.len(), 5);
    let long = log(
        SSL,
        &[
            ssl(0, "C1", "TLSv13", "T", "T"),
            "x".repeat(600_000),
            ssl(0, "C2", "TLSv13", "T", "T"),
        ],
    );
    let survey = survey_text(&long);
    assert_eq!((survey.ssl.rows, survey.ssl.unreadable), (2, 1));
    let numbers = log(
        CONN,
        &[conn(0, "C1", 5).replace(" 500 ", " 99999999999999999999 ")],
    );
    assert_eq!(
        survey_text(&numbers).examples,
        ["memory:9: orig_bytes is not what it should be"]
    );
}

#[test]
fn garbage_and_nothing() {
    let garbage: Vec<u8> = (0..100_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for bytes in [
        &garbage[..],
        b"",
        b"\n\n",
        b"#",
        b"#fields",
        b"{",
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd",
        b"\x50\x2a\x4d\x18\xff\xff\xff\xff",
    ] {
        let survey = survey_bytes(bytes, options());
        assert_eq!(survey.ssl.rows + survey.conn.rows, 0);
        document(&survey);
        assert!(survey.profile().is_err());
    }
    assert!(survey_bytes(&garbage, options()).unreadable > 100);
}

proptest! {
    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), before in 0usize..4) {
        let header = [String::new(), log(SSL, &[]), log(CONN, &[]), "{\"uid\":".to_owned()];
        let text = [header[before].as_bytes(), &bytes].concat();
        document(&survey_bytes(&text, options()));
    }
}

proptest! {
    /// However many rows are joined together: those of one connection are in one batch, or in
    /// several, repeat each other, and have to go for others.
    #[test]
    fn joined_together_as_one_by_one(rows in prop::collection::vec((0u64..12, 0usize..4), 0..200), join_rows in 1u32..12, together in 2usize..100) {
        let text: String = (1..).zip(&rows).map(|(second, (uid, kind))| {
            let uid = format!("C{uid}");
            match kind {
                0 => log(CONN, &[conn(second, &uid, 1000 + second)]),
                1 => log(SSL, &[ssl(second, &uid, "TLSv13-draft28", "T", "T")]),
                2 => log(SSL, &[ssl(second, &uid, "TLSv12", "F", "T")]),
                _ => log(SSL, &[ssl(second, &uid, "TLSv13", "T", "F")]),
            }
        }).collect();
        let [one, many] = [1, together].map(|together| {
            let options = Options { join_rows, ..options() };
            json(&survey::survey_joining(text.as_bytes(), options, together), 10)
        });
        prop_assert_eq!(one, many);
    }
}

#[test]
fn compressed_rotated_and_concatenated() {
    let one = log(SSL, &[ssl(0, "C1", "TLSv13", "T", "T")]);
    let two = log(SSL, &[ssl(3600, "C2", "TLSv13", "F", "T")]);
    let first = log(CONN, &[conn(1, "C1", 1000)]);
    let second = log(CONN, &[conn(3601, "C2", 5000)]);
    let dns = log("ts uid query", &["1.0 C1 a.example".to_owned()]);
    let more = log(CONN, &[conn(2, "C7", 1)]);
    let files: [(&str, &[u8]); 6] = [
        // Two members, as `cat` makes them.
        (
            "ssl.2026-11-01-00-00-00.log.gz",
            &[gzip(&one), gzip(&two)].concat(),
        ),
        // Frames, one of which holds no content.
        (
            "conn.2026-11-01-00-00-00.log.zst",
            &[
                zstd(&first),
                vec![0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3],
                zstd(&second),
            ]
            .concat(),
        ),
        ("dns.log", dns.as_bytes()),
        ("empty.log", b""),
        ("notes.txt", b"not a log"),
        // Of another kind than its name says.
        ("http.log", more.as_bytes()),
    ];
    let (survey, _folder) = survey_files(&files, options());
    let document = document(&survey);
    assert_eq!(document["ssl"]["rows"], 2);
    assert_eq!(document["conn"]["rows"], 3);
    assert_eq!(document["conn"]["tls_without_ssl"], 1);
    assert_eq!(document["joined"], 2);
    assert_eq!(document["files"]["read"], 5);
    assert_eq!(document["files"]["used"], 3);
    let problems = document["files"]["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0]
            .as_str()
            .unwrap()
            .ends_with("no row of ssl.log or conn.log by its fields: skipped")
    );
}

#[test]
fn files_that_break_off() {
    let rows: Vec<String> = (0..20_000)
        .map(|at| ssl(at, &format!("C{}", at * 7919), "TLSv13", "T", "T"))
        .collect();
    let text = log(SSL, &rows);
    for whole in [gzip(&text), zstd(&text)] {
        let survey = survey_bytes(&whole[..whole.len() / 2], options());
        assert!(
            (1000..20_000).contains(&survey.ssl.rows),
            "{}",
            survey.ssl.rows
        );
        assert!(survey.ssl.unreadable <= 1);
        assert!(
            survey.broken[0].starts_with("memory: breaks off after line "),
            "{:?}",
            survey.broken
        );
    }
    // As a file that is still written ends.
    let survey = survey_text(&text[..text.len() - 60]);
    assert_eq!((survey.ssl.rows, survey.ssl.unreadable), (19_999, 1));
}

#[test]
fn rows_that_come_early_late_twice_or_never() {
    let text = [
        log(CONN, &[conn(0, "C1", 4000)]),
        log(
            SSL,
            &[
                ssl(0, "C1", "TLSv13", "T", "T"),
                ssl(0, "C1", "TLSv13", "F", "T"),
                ssl(1, "C2", "TLSv13", "F", "T"),
            ],
        ),
        log(
            CONN,
            &[
                conn(0, "C1", 9_000_000),
                conn(9, "C3", 1),
                conn(9, "C4", 1).replace(" ssl ", " dns "),
            ],
        ),
    ]
    .concat();
    let document = document(&survey_text(&text));
    assert_eq!(document["ssl"]["rows"], 3);
    assert_eq!(document["ssl"]["repeats"], 1);
    assert_eq!(document["conn"]["repeats"], 1);
    assert_eq!(document["conn"]["tls_without_ssl"], 1);
    assert_eq!(document["joined"], 1);
    assert_eq!(document["unmatched"], 1);
    assert_eq!(document["tls"]["TLSv13"]["resumed"], 1);
    assert_eq!(
        document["bytes_per_connection"]["other"]["resumed"]["p50"],
        4008
    );
}

/// Rows of so many connections, each of which ends a minute after it began.
fn minutes(connections: u64) -> [String; 2] {
    let uid = |at: u64| format!("C{at}");
    let rows = |at: u64| ssl(at, &uid(at), "TLSv13", "F", "T");
    let ends = |at: u64| conn(at, &uid(at), 4000).replace("1.000000", "60.000000");
    [
        log(SSL, &(0..connections).map(rows).collect::<Vec<_>>()),
        log(CONN, &(0..connections).map(ends).collect::<Vec<_>>()),
    ]
}

#[test]
fn the_bound_of_joining() {
    let [ssl, conn] = minutes(20_000);
    let files = [("a.log", ssl.as_bytes()), ("z.log", conn.as_bytes())];
    // A piece of each file is read at once: some 2000 rows.
    let (survey, _folder) = survey_files(
        &files,
        Options {
            join_rows: 6000,
            ..options()
        },
    );
    assert_eq!(survey.tally.joined, 20_000, "{:?}", survey.tally.expired);
    assert_eq!(survey.warnings(), Vec::<String>::new());
    let (survey, _folder) = survey_files(
        &files,
        Options {
            join_rows: 50,
            ..options()
        },
    );
    assert!(survey.tally.expired > 10_000);
    assert_eq!(
        survey.tally.joined + survey.tally.expired + survey.tally.unmatched,
        20_000
    );
    assert!(
        survey.warnings()[1].contains("raise --join-rows above 50"),
        "{:?}",
        survey.warnings()
    );
}

#[test]
fn clocks_that_go_backwards() {
    let [ssl, conn] = minutes(20_000);
    // Now and then a row from 1970 or 2100.
    let shaken = |text: String| -> String {
        let lines = text.lines().enumerate().map(|(at, line)| match at % 50 {
            7 => line.replacen("17934", "1", 1),
            9 => line.replacen("17934", "47934", 1),
            _ => line.to_owned(),
        } + "\n");
        lines.collect()
    };
    let (ssl, conn) = (shaken(ssl), shaken(conn));
    let files = [("a.log", ssl.as_bytes()), ("z.log", conn.as_bytes())];
    let (survey, _folder) = survey_files(
        &files,
        Options {
            join_rows: 6000,
            ..options()
        },
    );
    assert_eq!(survey.tally.joined, 20_000);
    assert_eq!(survey.all_unreadable(), 0);
}

#[test]
fn quic_is_apart() {
    let quic = |uid: &str, resumed: &str, history: &str| {
        ssl(0, uid, "TLSv13", resumed, "F").replace("CsiI", history)
    };
    let udp = |uid: &str| conn(0, uid, 30_000).replace(" tcp ssl ", " udp quic,ssl ");
    let rows = [
        quic("C1", "T", "Cs"),
        quic("C2", "F", "CCs"),
        quic("C3", "T", "Cs"),
        // Over TCP, the same history is a handshake that failed.
        quic("C4", "F", "Cs"),
        quic("C5", "F", "C").replace("TLSv13", "-"),
        ssl(0, "C6", "DTLSv12", "T", "T"),
    ];
    let conns = [
        udp("C1"),
        udp("C2"),
        conn(0, "C4", 4000),
        udp("C5"),
        udp("C6").replace("quic,", ""),
    ];
    let survey = survey_text(&[log(SSL, &rows), log(CONN, &conns)].concat());
    let document = document(&survey);
    assert_eq!(document["quic"]["rows"], 3, "{document}");
    assert_eq!(document["quic"]["resumed"], 2);
    assert_eq!(document["quic"]["told_by_history"], 1);
    // None over TCP ended well.
    assert_eq!(document["over_quic"]["handshakes"], 3);
    assert_eq!(document["over_quic"]["quic"], 3);
    assert_eq!(document["tls"]["TLSv13"]["rows"], 1);
    assert_eq!(document["tls"]["TLSv13"]["established"], 0);
    assert_eq!(document["tls"]["DTLSv12"]["resumed"], 1);
    assert_eq!(document["tls"]["none"]["rows"], 1);
    assert_eq!(
        document["bytes_per_connection"]["other"]["full"]["connections"],
        0
    );
}

/// What failed, and DTLS, is in no share of connections over QUIC.
#[test]
fn the_share_over_quic() {
    let quic = |uid: &str| ssl(0, uid, "TLSv13", "F", "F").replace("CsiI", "Cs");
    let udp = |uid: &str| conn(0, uid, 30_000).replace(" tcp ssl ", " udp quic,ssl ");
    let rows = [
        quic("C1"),
        ssl(0, "C2", "TLSv13", "T", "T"),
        ssl(0, "C3", "TLSv12", "F", "T"),
        ssl(0, "C4", "TLSv13", "F", "T"),
        ssl(0, "C5", "TLSv13", "F", "F"),
        ssl(0, "C6", "DTLSv12", "F", "T"),
        quic("C7").replace("Cs", "C"),
    ];
    let conns = [
        udp("C1"),
        conn(0, "C2", 4000),
        conn(0, "C3", 4000),
        conn(0, "C4", 4000),
        conn(0, "C5", 4000),
        udp("C6").replace("quic,", ""),
        udp("C7"),
    ];
    let survey = survey_text(&[log(SSL, &rows), log(CONN, &conns)].concat());
    let document = document(&survey);
    for over_quic in [
        &document["over_quic"],
        &document["classes"]["other"]["over_quic"],
    ] {
        assert_eq!(over_quic["handshakes"], 4, "{document}");
        assert_eq!(over_quic["quic"], 1);
        assert_eq!(over_quic["share"], 0.25);
    }
    assert_eq!(
        document["classes"]["cdn"]["over_quic"]["share"],
        Value::Null
    );
    let text = crate::text(&survey, 0);
    let (_, below) = text.split_once("Over QUIC").unwrap();
    let all = below.lines().nth(1).unwrap();
    assert!(all.contains("all") && all.contains("25.0 %"), "{text}");
    let profile = survey.profile().unwrap();
    assert!(profile.contains("\nquic_share = \"25.00%\"\n"), "{profile}");
}

#[test]
fn bytes_that_say_nothing() {
    let rows: Vec<String> = (0..6)
        .map(|at| ssl(0, &format!("C{at}"), "TLSv13", "F", "T"))
        .collect();
    let conns = [
        conn(0, "C0", 4000),
        conn(0, "C1", 4000).replace(" SF 0", " SF 1460"),
        conn(0, "C2", 4000).replace(" SF ", " OTH "),
        conn(0, "C3", 4000).replace(" 4000 ", " - "),
        conn(0, "C4", 4000).replace(" SF ", " NEW "),
        conn(0, "C5", 4000).replace(" SF 0", " RSTR 0"),
    ];
    // The client's port is 4000 too.
    let conns = conns.map(|row| row.replace("10.0.0.1 - ", "10.0.0.1 4000 "));
    let document = document(&survey_text(&[log(SSL, &rows), log(CONN, &conns)].concat()));
    assert_eq!(document["joined"], 6);
    assert_eq!(document["unusable"]["state"], 2);
    assert_eq!(document["unusable"]["missed_bytes"], 1);
    assert_eq!(document["unusable"]["no_bytes"], 1, "{}", document["conn"]);
    assert_eq!(
        document["bytes_per_connection"]["other"]["full"]["connections"],
        2
    );
}

#[test]
fn names_are_left_out_unless_asked_for() {
    let rows: Vec<String> = (0..60)
        .map(|at| {
            let name = ["WWW.A.example.", "www.a.example", "b.example\\x1b[2J"][at % 3];
            ssl(
                0,
                &format!("C{at}"),
                "TLSv13",
                if at % 3 < 2 { "T" } else { "F" },
                "T",
            )
            .replace("www.example", name)
        })
        .collect();
    let text = log(SSL, &rows);
    let without = json(&survey_text(&text), 10);
    assert!(!without.contains("a.example"), "{without}");
    let survey = survey_bytes(
        text.as_bytes(),
        Options {
            names: Names::Kept,
            ..options()
        },
    );
    let document = document(&survey);
    let servers = &document["servers"];
    assert_eq!(servers["told_apart"], 2);
    assert_eq!(servers["with_enough_handshakes"], 2);
    assert_eq!(servers["share_p25"], 0.0);
    assert_eq!(servers["share_p75"], 1.0);
    assert_eq!(servers["largest"][0]["name"], "www.a.example");
    assert_eq!(servers["largest"][0]["handshakes"], 40);
    assert_eq!(servers["largest"][1]["name"], "b.example\\u{1b}[2j");
    assert!(!super::text(&survey, 10).contains('\u{1b}'));
}

#[test]
fn a_profile() {
    let [ssl, conn] = minutes(FEWEST);
    let survey = survey_text(&[ssl, conn].concat());
    let profile = survey.profile().unwrap();
    let table: toml::Table = profile.parse().unwrap();
    assert_eq!(
        table["profile"]["connections"].as_integer(),
        Some(FEWEST as i64)
    );
    assert!(
        !profile.contains("Warning") && !profile.contains("example"),
        "{profile}"
    );
    // 30 of them say nothing yet, and say so.
    let [ssl, conn] = minutes(30);
    let profile = survey_text(&[ssl, conn].concat()).profile().unwrap();
    assert!(
        profile.contains("\n# Warning: 30 connections are too few to say anything"),
        "{profile}"
    );
    let [ssl, _] = minutes(30);
    assert_eq!(survey_text(&ssl).profile(), Err(NoProfile));
}

#[test]
fn parquet_has_every_connection() {
    let [ssl, conn] = minutes(100);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("all.log");
    fs::write(&path, [ssl, conn].concat()).unwrap();
    let out = folder.path().join("parquet");
    let sources = sources(&[path]).unwrap();
    for names in [Names::LeftOut, Names::Kept] {
        let mut parquet = ParquetFolder::new(&out, names).unwrap();
        survey(
            &sources.sources,
            Options { names, ..options() },
            Some(&mut parquet),
        )
        .unwrap();
        parquet.finish().unwrap();
        let rows = rows(&out.join("connections-0000.parquet"));
        assert_eq!(rows.len(), 100);
        let row = &rows[0];
        assert_eq!(row.get_string(0).unwrap().len(), 16);
        assert_eq!(row.get_timestamp_micros(1).unwrap(), 1_793_491_200_500_000);
        assert_eq!(row.get_string(2).unwrap(), "TLSv13");
        assert!(!row.get_bool(3).unwrap());
        assert_eq!(row.get_string(5).unwrap(), "full");
        assert_eq!(row.get_long(11).unwrap(), 4000);
        assert_eq!(row.get_long(12).unwrap(), 60_000_000);
        assert_eq!(row.len(), if names == Names::Kept { 17 } else { 16 });
        assert!(ParquetFolder::new(&out, names).is_err());
        fs::remove_dir_all(&out).unwrap();
    }
    ParquetFolder::new(&out, Names::LeftOut)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(rows(&out.join("connections-0000.parquet")).len(), 0);
}

fn rows(path: &Path) -> Vec<parquet::record::Row> {
    let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    file.get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn files_that_are_not_there() {
    let missing = PathBuf::from("/nowhere/ssl.log");
    assert_eq!(
        sources(std::slice::from_ref(&missing)).unwrap_err().0,
        missing
    );
}

/// The header that the script's log has, by what the script says.
#[test]
fn the_script_logs_what_is_read() {
    let fields = SCRIPT
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'));
    let fields = fields.filter(|line| line.contains("&log"));
    let fields: Vec<&str> = fields.map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "ts",
            "uid",
            "client_handshake_bytes",
            "server_handshake_bytes",
            "tcp_rtt"
        ]
    );
    let text = log(
        &fields.join(" "),
        &["1793491200.5 C1 - 4500 0.020500".to_owned()],
    );
    assert_eq!(survey_text(&text).ours.rows, 1);
}

/// Rows that are written while a connection lasts, and the last one, of as many as that.
fn lasting() -> [Vec<String>; 3] {
    let long = |seconds: u64, uid: &str, bytes: u64, state: &str| {
        conn(0, uid, bytes)
            .replace(" 1.000000 ", &format!(" {seconds}.000000 "))
            .replace(" SF ", &format!(" {state} "))
    };
    let uids: Vec<String> = (0..40).map(|at| format!("C{at}")).collect();
    let rows = uids.iter().map(|uid| ssl(0, uid, "TLSv13", "F", "T"));
    let interim = uids
        .iter()
        .flat_map(|uid| [long(600, uid, 30_000, "S1"), long(900, uid, 45_000, "S1")]);
    let last = uids.iter().map(|uid| long(1200, uid, 60_000, "SF"));
    [rows.collect(), interim.collect(), last.collect()]
}

fn median_bytes(document: &Value) -> u64 {
    document["bytes_per_connection"]["other"]["full"]["p50"]
        .as_u64()
        .unwrap()
}

fn is_about(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 200 <= expected
}

#[test]
fn connections_that_still_last_are_not_counted() {
    let [rows, interim, last] = lasting();
    let (rows, last) = (log(SSL, &rows), log(CONN, &last));
    let long = log(CONN, &interim);
    let named = |path: &str| long.replace("#path\tany", &format!("#path\t{path}"));
    let nameless = long.replace("#path\tany\n", "");
    for (name, text) in [
        ("a.log", named("conn_long")),
        ("a.log", named("open_conn")),
        ("conn_long.12:00:00-13:00:00.log", nameless.clone()),
    ] {
        let files: [(&str, &[u8]); 3] = [
            (name, text.as_bytes()),
            ("conn.log", last.as_bytes()),
            ("ssl.log", rows.as_bytes()),
        ];
        let (survey, _folder) = survey_files(&files, options());
        let document = document(&survey);
        assert_eq!(survey.interim, 80, "{name}");
        assert_eq!(document["conn"]["rows"], 40);
        assert_eq!(document["conn"]["repeats"], 0);
        assert!(is_about(median_bytes(&document), 60_000), "{document}");
        let warnings = document["warnings"].to_string();
        assert!(
            warnings.contains("80 rows of connections that still lasted"),
            "{warnings}"
        );
        let problems = document["files"]["problems"].to_string();
        assert!(problems.contains(name), "{problems}");
    }
    // Under whatever name: the longest row is the last one.
    let document = document(&survey_text(&[rows, nameless, last].concat()));
    assert_eq!(document["conn"]["repeats"], 80);
    assert!(is_about(median_bytes(&document), 60_000), "{document}");
    assert!(is_about(
        document["duration_us"]["other"]["full"]["p50"]
            .as_u64()
            .unwrap(),
        1_200_000_000
    ));
}

#[test]
fn datagrams_are_in_no_share_and_no_profile() {
    let rows = [
        ssl(0, "C1", "TLSv12", "F", "T"),
        ssl(0, "C2", "DTLSv12", "T", "T"),
        ssl(0, "C3", "DTLSv10", "T", "T"),
        ssl(0, "C4", "DTLSv13", "T", "T"),
    ];
    let udp = |uid: &str| conn(0, uid, 9_000_000).replace(" tcp ssl ", " udp ssl,dtls ");
    let conns = [conn(0, "C1", 4000), udp("C2"), udp("C3")];
    let survey = survey_text(&[log(SSL, &rows), log(CONN, &conns)].concat());
    let document = document(&survey);
    assert_eq!(document["tls"]["DTLSv12"]["rows"], 1);
    assert_eq!(document["classes"]["other"]["tls"]["handshakes"], 1);
    assert_eq!(document["classes"]["other"]["tls"]["resumed"], 0);
    let bytes = &document["bytes_per_connection"]["other"];
    assert_eq!(bytes["resumed"]["connections"], 0);
    assert_eq!(bytes["full"]["connections"], 1);
    assert!(
        document["warnings"].to_string().contains("3 rows of DTLS"),
        "{document}"
    );
}

#[test]
fn names_and_first_bytes_that_other_programs_write() {
    let row = |uid: &str| {
        format!(
            r#"{{"ts":1793491200.5,"uid":"{uid}","id.resp_h":"198.51.100.1","version":"TLSv13","cipher":"AES","resumed":false,"established":true}}"#
        )
    };
    let rows = [row("C1"), row("C2"), row("C3")];
    let lines = rows.join("\n");
    let mark = "\u{feff}";
    let tsv = log(SSL, &[ssl(0, "C1", "TLSv13", "T", "T")]);
    // Where columns are not cut at tabs, the first line matters.
    let commas = tsv.replace("\\x09", "\\x2c").replace('\t', ",");
    for (text, count) in [
        (format!("{mark}{lines}"), 3),
        (format!("{mark}{commas}"), 1),
        (format!("[{}]", rows.join(",")), 3),
        (format!("{mark}[\n{}\n]\n", rows.join(",\n")), 3),
        (format!("[{}]\n", rows.join(",\n")), 3),
        ("[]".to_owned(), 0),
    ] {
        let survey = survey_text(&text);
        assert_eq!(
            (survey.ssl.rows, survey.all_unreadable()),
            (count, 0),
            "{text}"
        );
        for packed in [gzip(&text), zstd(&text)] {
            assert_eq!(survey_bytes(&packed, options()).ssl.rows, count, "{text}");
        }
    }
    let wide: Vec<u8> = format!("{mark}{lines}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let survey = survey_bytes(&wide, options());
    assert!(
        survey.examples[0].ends_with("the file is UTF-16: write it as UTF-8"),
        "{:?}",
        survey.examples
    );

    let packed = gzip(&lines);
    let folder = TempDir::new().unwrap();
    for name in [
        "ssl.json.gz",
        "ssl.ndjson",
        "ssl.log",
        "ssl.log.bz2",
        "a.pcap",
    ] {
        fs::write(folder.path().join(name), &packed).unwrap();
    }
    let found = sources(&[folder.path().to_owned()]).unwrap();
    assert_eq!(found.sources.len(), 3);
    let note = found.note().unwrap();
    assert!(
        note.contains(".json") && note.contains("a.pcap") && note.contains("ssl.log.bz2"),
        "{note}"
    );
    assert_eq!(
        super::survey(&found.sources, options(), None)
            .unwrap()
            .ssl
            .rows,
        9
    );
}
