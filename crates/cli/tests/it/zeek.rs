//! `lastbyte zeek`: counts that awk has too, and what it says of logs that it can't read.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{assert_fits, at, lastbyte, run};
use serde_json::Value;
use tempfile::TempDir;

const HEADER: &str =
    "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n";
const SSL: &str = "#fields\tts\tuid\tid.resp_h\tversion\tcipher\tserver_name\tresumed\testablished\tssl_history\n";
const CONN: &str = "#fields\tts\tuid\tproto\tservice\tduration\torig_bytes\tresp_bytes\tconn_state\tmissed_bytes\n";

/// Both logs of so many connections, of all versions, in turn resumed or not, some of them QUIC.
fn logs(connections: u64) -> (String, String) {
    let (mut ssl, mut conn) = (HEADER.to_owned() + SSL, HEADER.to_owned() + CONN);
    for at in 0..connections {
        let ts = format!("{}.{:06}", 1_793_491_200 + at / 100, at % 100 * 10_000);
        let quic = at % 11 == 0;
        let version = match at % 7 {
            _ if quic => "TLSv13",
            0..3 => "TLSv13",
            3 => "TLSv13-draft23",
            4 | 5 => "TLSv12",
            _ => "-",
        };
        let established = if quic || version == "-" || at % 13 == 0 {
            'F'
        } else {
            'T'
        };
        let resumed = if at % 3 == 0 && version != "-" {
            'T'
        } else {
            'F'
        };
        let history = if quic { "Cs" } else { "CsiI" };
        let address = if at % 2 == 0 {
            "104.16.0.1"
        } else {
            "198.51.100.7"
        };
        ssl += &format!(
            "{ts}\tC{at}x\t{address}\t{version}\tAES\thost{}.example\t{resumed}\t{established}\t{history}\n",
            at % 40
        );
        let (proto, service) = if quic {
            ("udp", "quic,ssl")
        } else {
            ("tcp", "ssl")
        };
        let bytes = 2000 + at * 37 % 50_000;
        conn += &format!("{ts}\tC{at}x\t{proto}\t{service}\t0.5\t600\t{bytes}\tSF\t0\n");
    }
    (ssl + "#close\t2026\n", conn + "#close\t2026\n")
}

fn folder(connections: u64) -> TempDir {
    let folder = TempDir::new().unwrap();
    let (ssl, conn) = logs(connections);
    fs::write(at(&folder, "ssl.log"), ssl).unwrap();
    fs::write(at(&folder, "conn.log"), conn).unwrap();
    folder
}

fn document(folder: &Path, options: &[&str]) -> Value {
    let mut command = lastbyte(["zeek", "--format", "json"]);
    let ended = run(command.arg(folder).args(options));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte_zeek::SCHEMA);
    document
}

/// What awk counts in the same files.
fn awk(program: &str, file: &Path) -> String {
    let output = Command::new("awk")
        .args(["-F", "\t", program])
        .arg(file)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn awk_counts_the_same() {
    let folder = folder(5000);
    let document = document(folder.path(), &[]);
    let ssl = at(&folder, "ssl.log");
    let rows = awk("!/^#/ { n++ } END { print n }", &ssl);
    assert_eq!(document["ssl"]["rows"].to_string(), rows);
    assert_eq!(document["joined"].to_string(), rows);
    assert_eq!(
        document["conn"]["rows"].to_string(),
        awk("!/^#/ { n++ } END { print n }", &at(&folder, "conn.log"))
    );
    for (version, pattern) in [("TLSv13", "^TLSv13"), ("TLSv12", "^TLSv12$")] {
        let program = format!(
            "$4 ~ /{pattern}/ && $8 == \"T\" {{ n++; r += $7 == \"T\" }} END {{ print n, r }}"
        );
        let counts = &document["tls"][version];
        let found = format!("{} {}", counts["established"], counts["resumed"]);
        assert_eq!(found, awk(&program, &ssl), "{version}");
    }
    let quic = awk(
        "$9 == \"Cs\" { n++; r += $7 == \"T\" } END { print n, r }",
        &ssl,
    );
    assert_eq!(
        format!(
            "{} {}",
            document["quic"]["rows"], document["quic"]["resumed"]
        ),
        quic
    );
    let over_quic = awk(
        "/^#/ { next } $9 == \"Cs\" { q++ } $9 == \"Cs\" || $8 == \"T\" { n++ } END { print n, q }",
        &ssl,
    );
    let counts = &document["over_quic"];
    assert_eq!(
        format!("{} {}", counts["handshakes"], counts["quic"]),
        over_quic
    );
}

#[test]
fn however_the_files_come() {
    let folder = folder(3000);
    let expected = document(folder.path(), &[]);
    for program in ["gzip", "zstd"] {
        if Command::new(program).arg("--version").output().is_err() {
            continue;
        }
        let packed = TempDir::new().unwrap();
        for log in ["ssl.log", "conn.log"] {
            let name = format!("{log}.{}", if program == "gzip" { "gz" } else { "zst" });
            let out = fs::File::create(at(&packed, &name)).unwrap();
            let status = Command::new(program)
                .arg("-c")
                .arg(at(&folder, log))
                .stdout(out)
                .status();
            assert!(status.unwrap().success());
        }
        assert_eq!(document(packed.path(), &[]), expected, "{program}");
    }
    // Both in one stream.
    let mut command = lastbyte(["zeek", "--format", "json", "-"]);
    let both = TempDir::new().unwrap();
    let (ssl, conn) = logs(3000);
    fs::write(at(&both, "both"), ssl + &conn).unwrap();
    let ended = run(command.stdin(Stdio::from(fs::File::open(at(&both, "both")).unwrap())));
    let streamed: Value = serde_json::from_str(&ended.stdout).unwrap();
    for key in [
        "ssl",
        "conn",
        "joined",
        "tls",
        "quic",
        "over_quic",
        "classes",
        "bytes_per_connection",
    ] {
        assert_eq!(streamed[key], expected[key], "{key}");
    }
}

#[test]
fn for_people_in_lines_that_fit() {
    let folder = folder(3000);
    fs::write(
        at(&folder, "dns.log"),
        HEADER.to_owned() + "#fields\tts\tuid\tquery\n",
    )
    .unwrap();
    fs::write(
        at(&folder, "broken.log"),
        HEADER.to_owned() + SSL + "1\t2\n",
    )
    .unwrap();
    let profile = at(&folder, "profile.toml");
    let mut command = lastbyte(["zeek", "--servers", "2", "-o"]);
    let ended = run(command.arg(&profile).arg(folder.path()));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "");
    for part in [
        "Resumed                     share   95 %                  handshakes\n  TLSv13",
        "broken.log:6: not as many columns as #fields has\n",
        "dns.log: no row of ssl.log or conn.log by its fields: skipped\n",
        "  host",
        "Joined by uid: 3000.",
    ] {
        assert!(ended.stdout.contains(part), "{part:?}: {}", ended.stdout);
    }
    let own = folder.path().display().to_string();
    let wide = ended
        .stdout
        .lines()
        .find(|line| !line.contains(&own) && line.chars().count() > 100);
    assert_eq!(wide, None);
    let profile = fs::read_to_string(profile).unwrap();
    assert!(
        profile.starts_with("# Written by lastbyte zeek: what "),
        "{profile}"
    );
    assert!(!profile.contains("example"));
}

#[test]
fn too_little_to_say_anything() {
    let folder = folder(20);
    let profile = at(&folder, "profile.toml");
    let ended = run(lastbyte(["zeek", "-o"]).arg(&profile).arg(folder.path()));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.starts_with("lastbyte: warning: "), "{ended:?}");
    assert!(
        fs::read_to_string(&profile)
            .unwrap()
            .contains("# Warning: ")
    );
    fs::remove_file(at(&folder, "conn.log")).unwrap();
    fs::remove_file(&profile).unwrap();
    let ended = run(lastbyte(["zeek", "-o"]).arg(&profile).arg(folder.path()));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("no connection can be used for a profile"),
        "{ended:?}"
    );
    assert!(!profile.exists());
}

#[test]
fn what_can_not_be_read_is_told_in_one_line() {
    let folder = TempDir::new().unwrap();
    let garbage = at(&folder, "garbage.log");
    fs::write(&garbage, [0xff, 0, 7, b'\n'].repeat(100)).unwrap();
    let list = at(&folder, "cdn");
    fs::write(&list, "a b\n").unwrap();
    let (garbage, list) = (garbage.to_str().unwrap(), list.to_str().unwrap());
    for (arguments, code, expected) in [
        (
            vec!["/nowhere/ssl.log"],
            2,
            "/nowhere/ssl.log: No such file or directory",
        ),
        (
            vec![garbage],
            2,
            "no row of ssl.log or conn.log could be read: ",
        ),
        (
            vec![garbage, "--cdn", list],
            2,
            "line 1: \"a b\" is no name, no suffix and no prefix",
        ),
        (
            vec![garbage, "--parquet", folder.path().to_str().unwrap()],
            2,
            "it is not empty",
        ),
    ] {
        let ended = run(lastbyte(["zeek"]).args(&arguments));
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
}

#[test]
fn what_comes_with_it() {
    for (option, part) in [
        (
            "--script",
            "event ssl_probable_encrypted_handshake_message(",
        ),
        ("--sql", "GROUP BY version"),
        ("--cdn-list", ".cloudfront.net"),
    ] {
        let ended = run(&mut lastbyte(["zeek", option]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(part), "{option}: {}", ended.stdout);
    }
}
