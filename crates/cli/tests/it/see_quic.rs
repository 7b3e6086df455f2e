//! Captures and key logs of arms over QUIC, end to end, held against another reader of QUIC: tshark.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lastbyte::report::inside::quic::SCHEMA;
use lastbyte_capture::{Fate, Flow, flows, read};
use lastbyte_link::Side;
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::quic::{Packet, PacketKind, read_all};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Ended, Row, assert_fits, at, need_live_engine, need_root, read_rows, run};

const ARMS: &str = "--baseline X25519MLKEM768/ml-dsa-65/transport=quic \
    --against X25519MLKEM768/ml-dsa-65/transport=quic/resume=0rtt \
    --against X25519MLKEM768/ml-dsa-65/transport=quic/resume=ticket \
    --against X25519MLKEM768/ml-dsa-65/transport=quic/address_validation=retry \
    --against x25519/ecdsa-p256/transport=quic/address_validation=token";

/// Some of what was measured, and the folder of its captures.
struct Measured {
    folder: TempDir,
    rows: Vec<Row>,
}

impl Measured {
    /// What `compare` has of a question, with the user's own cache, which has the kernel.
    fn of(question: &str, options: &[&str]) -> Measured {
        let folder = TempDir::new().unwrap();
        let rows = at(&folder, "rows.csv");
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        command
            .args(["compare", "--cpu", "none", "--chain-profile", "private"])
            .args(question.split_whitespace())
            .arg("-o")
            .arg(&rows)
            .args(options);
        if options.contains(&"--capture") {
            command.arg("--capture-to").arg(at(&folder, "captures"));
        }
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
        let rows = read_rows(&rows);
        Measured { folder, rows }
    }

    fn captures(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(at(&self.folder, "captures")).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

fn capture(path: &Path) -> (Vec<Flow>, KeyLog) {
    let capture = read(&*fs::read(path).unwrap()).unwrap();
    assert_eq!(capture.unseen, 0);
    let mut keys = KeyLog::default();
    capture
        .secrets
        .lines()
        .for_each(|line| keys.push_line(line));
    (flows(&capture.packets), keys)
}

/// What tshark makes of a file, these fields of each packet.
fn tshark(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let fields = fields.iter().flat_map(|field| ["-e", *field]);
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-T", "fields"]);
    let output = command
        .args([
            "-o",
            "udp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ])
        .args(fields)
        .output()
        .unwrap_or_else(|error| panic!("this test needs tshark (apt-get install tshark): {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split('\t').map(str::to_owned).collect();
    lines.lines().map(words).collect()
}

/// A capture without what was delivered: tshark follows updates of keys where it meets each packet once.
fn sent_only(path: &Path) -> PathBuf {
    let sent = path.with_extension("sent.pcapng");
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).arg("-w").arg(&sent);
    command.args(["-Y", "frame.interface_name contains \"sent by\""]);
    assert_eq!(run(&mut command).code, Some(0));
    sent
}

/// Type, number and length of a packet, as tshark has them: a number of the type of a long header, or none.
type Seen = (Option<u8>, Option<u64>, usize);

/// Which packets tshark opens: it needs both ends' secrets of 1-RTT packets for either's, and who never completes a handshake
/// has none.
#[derive(Clone, Copy, PartialEq)]
enum Opens {
    All,
    Handshake,
}

impl Opens {
    fn has_number(self, kind: Option<u8>) -> bool {
        const RETRY: u8 = 3;
        match kind {
            Some(kind) => kind != RETRY,
            None => self == Opens::All,
        }
    }

    fn observed(self, packet: &Packet) -> Seen {
        let kind = match packet.kind {
            PacketKind::Initial => Some(0),
            PacketKind::ZeroRtt => Some(1),
            PacketKind::Handshake => Some(2),
            PacketKind::Retry => Some(3),
            PacketKind::OneRtt => None,
            PacketKind::VersionNegotiation => panic!("nobody speaks another version"),
        };
        let number = packet.number.filter(|_| self.has_number(kind));
        (kind, number, packet.bytes)
    }

    /// The packets of one datagram, of the lists that tshark makes of their fields.
    fn dissected(self, fields: &[String]) -> Vec<Seen> {
        let list = |at: usize| {
            let all = fields[at].split(',').filter(|word| !word.is_empty());
            all.map(|word| word.parse().unwrap())
        };
        let (mut kinds, mut numbers, mut lengths) = (list(1), list(2), list(3));
        let packets = list(0).map(|form: u64| {
            let kind = (form == 1).then(|| kinds.next().unwrap() as u8);
            let number = (self.has_number(kind)).then(|| numbers.next().unwrap());
            (kind, number, lengths.next().unwrap() as usize)
        });
        packets.collect()
    }
}

/// Holds captures to tshark, and their datagrams to the rows: how many packets there are, and how many of them are behind an
/// update of keys.
fn check(measured: &Measured) -> (usize, usize) {
    let mut rows = measured.rows.iter();
    let (mut packets, mut updated) = (0, 0);
    for path in measured.captures() {
        let (flows, keys) = capture(&path);
        let fields = [
            "quic.header_form",
            "quic.long.packet_type",
            "quic.packet_number",
            "quic.packet_length",
            "udp.srcport",
            "ip.src",
            "ip.dst",
            "quic.key_phase",
            "quic.decryption_failed",
            "udp.checksum.status",
            "ip.checksum.status",
            "frame.time_epoch",
        ];
        let mut dissections = tshark(&sent_only(&path), &fields);
        // By their clients' addresses, as flows are told apart, and otherwise in the order in which they were sent.
        for flow in flows {
            let (client, _) = flow.id.client;
            let client = client.to_string();
            let own = dissections.extract_if(.., |fields| fields[5..7].contains(&client));
            let own: Vec<Vec<String>> = own.collect();
            assert_eq!(own.len(), flow.datagrams.len(), "{path:?}");
            let random = read_all(flow.payloads(), &KeyLog::default()).client_random;
            let seen = read_all(flow.payloads(), &keys.of_client_random(&random));
            let row = rows.next().unwrap();
            let opens = match row.text("outcome") {
                "completed" => Opens::All,
                _ => Opens::Handshake,
            };
            for (datagram, fields) in seen.datagrams.iter().zip(&own) {
                let own = datagram.packets.iter().map(|packet| opens.observed(packet));
                let own: Vec<Seen> = own.collect();
                assert_eq!(own, opens.dissected(fields), "{path:?}: {fields:?}");
                let sum: usize = datagram.packets.iter().map(|packet| packet.bytes).sum();
                assert_eq!(sum, datagram.bytes);
                let is_client = datagram.sender == Side::Client;
                assert_eq!(fields[4] == "20000", is_client);
                assert_eq!(fields[9..11], ["1", "1"], "{path:?}: {fields:?}");
                let is_opened = fields[8].is_empty();
                assert!(
                    is_opened || opens == Opens::Handshake,
                    "{path:?}: {fields:?}"
                );
                packets += own.len();
                updated += usize::from(fields[7].contains('1'));
            }
            assert_eq!(flow.comment, format!("connection {}", row.number("index")));
            for (side, name) in [(Side::Client, "client"), (Side::Server, "server")] {
                let sent = flow.payloads().filter(|(sender, _)| *sender == side);
                let bytes: usize = sent.clone().map(|(_, payload)| payload.len()).sum();
                let column = |what: &str| row.number(&format!("{name}_{what}"));
                assert_eq!(column("datagrams"), sent.count() as u64, "{path:?}");
                assert_eq!(column("udp_bytes"), bytes as u64, "{path:?}");
            }
        }
        assert_eq!(dissections, Vec::<Vec<String>>::new());
    }
    (packets, updated)
}

/// `LASTBYTE_TSHARK=200` has 200 connections of each arm, 1,000 in all.
#[test]
fn tshark_and_the_observer_agree_on_every_packet() {
    let each = std::env::var("LASTBYTE_TSHARK").unwrap_or_else(|_| "6".to_owned());
    // With this seed, some of the first connections update their keys.
    let question = format!(
        "{ARMS} --seed 8 --rtt 50ms --rate 50mbit --jitter 1ms --loss 2% --data 50KiB --connections {each}"
    );
    let measured = Measured::of(&question, &["--capture", &each]);
    let (packets, updated) = check(&measured);
    println!(
        "{} connections with {packets} packets, {updated} of them behind an update of keys",
        measured.rows.len()
    );
    assert!(packets > 80 * measured.rows.len(), "{packets}");
    assert!(updated > 0);
}

#[test]
fn captures_of_sockets_are_what_their_rows_say() {
    need_root();
    need_live_engine();
    // Of these quinn recovers from each loss: live, a connection that never completes takes half a minute.
    let arms = "--baseline x25519/ecdsa-p256/transport=quic \
        --against X25519MLKEM768/ml-dsa-65/transport=quic/resume=0rtt/address_validation=retry";
    for engine in [
        "virtual --quic-in guest",
        "virtual --quic-in guest --emulation link",
        "live",
    ] {
        let question =
            format!("--engine {engine} {arms} --rtt 20ms --loss 2% --data 20KiB --connections 3");
        let measured = Measured::of(&question, &["--capture", "3"]);
        let (packets, _) = check(&measured);
        assert!(packets > 200, "{engine}: {packets}");
    }
}

#[test]
fn no_row_tells_whether_anybody_looks_inside_quic() {
    let question = format!("{ARMS} --rtt 50ms --loss 2% --data 20KiB --connections 4");
    for engine in ["", " --quic-in guest"] {
        let question = format!("{question}{engine}");
        let rows = |measured: Measured| {
            let file = at(&measured.folder, "rows.csv");
            fs::read_to_string(file).unwrap()
        };
        let keys = TempDir::new().unwrap();
        let keys = at(&keys, "keys.txt");
        let without = rows(Measured::of(&question, &[]));
        let with = ["--capture", "3", "--keylog", keys.to_str().unwrap()];
        assert_eq!(rows(Measured::of(&question, &with)), without, "{engine}");
    }
}

#[test]
fn a_capture_of_the_model_says_what_was_lost_and_its_key_log_has_all_secrets() {
    let place = TempDir::new().unwrap();
    let keys = at(&place, "keys.txt");
    let question =
        format!("{ARMS} --rtt 50ms --loss 2% --rate 20mbit --data 20KiB --connections 6");
    let options = ["--capture", "4", "--keylog", keys.to_str().unwrap()];
    let measured = Measured::of(&question, &options);
    let mut lost = 0;
    for path in measured.captures() {
        let (flows, keys) = capture(&path);
        assert_eq!(flows.len(), 4);
        for (place, flow) in flows.iter().enumerate() {
            assert_eq!(flow.comment, format!("connection {place}"));
            for passage in &flow.datagrams {
                assert_eq!(passage.arrived.is_none(), passage.fate == Fate::Lost);
                lost += usize::from(passage.arrived.is_none());
            }
        }
        let randoms = keys.as_str().lines().map(|line| line.split(' ').nth(1));
        assert_eq!(randoms.collect::<BTreeSet<_>>().len(), 4);
    }
    assert!(lost > 5, "{lost}");
    let text = fs::read_to_string(&keys).unwrap();
    let count = |label: &str| text.lines().filter(|line| line.starts_with(label)).count();
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET ",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET ",
        "CLIENT_TRAFFIC_SECRET_0 ",
        "SERVER_TRAFFIC_SECRET_0 ",
    ] {
        assert_eq!(count(label), 30, "{label}");
    }
    assert_eq!(count("CLIENT_EARLY_TRAFFIC_SECRET "), 6);
}

/// The records of a file of qlog, the header first.
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let records = text.split('\u{1e}').skip(1);
    records
        .map(|record| {
            assert!(record.ends_with('\n'));
            serde_json::from_str(record).unwrap()
        })
        .collect()
}

/// Another reader's types are in scripts/check-qlog.
#[test]
fn qlog_has_the_packets_and_the_credit_of_each_end() {
    let question = format!("{ARMS} --seed 3 --rtt 50ms --loss 2% --data 20KiB --connections 4");
    let measured = Measured::of(&question, &["--capture", "4"]);
    let folder = at(&measured.folder, "qlog");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.arg("show").arg(at(&measured.folder, "captures"));
    let ended = run(command.arg("--qlog").arg(&folder));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("20 connections"), "{}", ended.stdout);
    let mut rows = measured.rows.iter();
    for path in measured.captures() {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for (index, flow) in capture(&path).0.iter().enumerate() {
            let row = rows.next().unwrap();
            for (side, name) in [(Side::Client, "client"), (Side::Server, "server")] {
                let file = folder.join(format!("{stem}-connection-{index}-{name}.sqlog"));
                let records = records(&file);
                assert_eq!(records[0]["trace"]["vantage_point"]["type"], name);
                let events = &records[1..];
                let times: Vec<f64> = (events.iter())
                    .map(|event| event["time"].as_f64().unwrap())
                    .collect();
                assert!(times.is_sorted(), "{file:?}");
                let bytes = |what: &str| -> u64 {
                    let own = events.iter().filter(|event| event["name"] == what);
                    own.map(|event| event["data"]["raw"]["length"].as_u64().unwrap())
                        .sum()
                };
                let column = format!("{name}_udp_bytes");
                assert_eq!(bytes("quic:packet_sent"), row.number(&column), "{file:?}");
                let came = flow.datagrams.iter();
                let came = came.filter(|one| one.sender != side && one.arrived.is_some());
                let came: usize = came.map(|one| one.payload.len()).sum();
                assert_eq!(bytes("quic:packet_received"), came as u64, "{file:?}");
                // From "blocked" to "unblocked", as the row says.
                let blocked = events
                    .iter()
                    .filter(|event| event["name"] == "quic:connection_data_blocked_updated");
                let blocked: f64 = (blocked)
                    .map(|event| match event["data"]["new"].as_str() {
                        Some("blocked") => -event["time"].as_f64().unwrap(),
                        _ => event["time"].as_f64().unwrap(),
                    })
                    .sum();
                let told = match side {
                    Side::Client => 0.0,
                    Side::Server => row.number("blocked_by_credit_ns") as f64 / 1e6,
                };
                assert!((blocked - told).abs() < 1e-5, "{file:?}: {blocked}, {told}");
            }
        }
    }
}

#[test]
fn what_is_shown_of_a_connection_is_its_row() {
    let question = format!("{ARMS} --seed 3 --rtt 50ms --loss 2% --data 20KiB --connections 4");
    let measured = Measured::of(&question, &["--capture", "4"]);
    let mut rows = measured.rows.iter();
    for path in measured.captures() {
        for index in ["0", "1", "2", "3"] {
            let row = rows.next().unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
            command.args(["show", "--format", "json"]).arg(&path);
            let ended = run(command.arg(index));
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            let document: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_fits(&document, SCHEMA);
            for (member, column) in [("handshake_ms", "handshake_ns"), ("end_ms", "ttlb_ns")] {
                let shown = document[member].as_f64().map(|time| (time * 1e6).round());
                let told = (!row.text(column).is_empty()).then(|| row.number(column) as f64);
                assert_eq!(shown, told, "{path:?} {index} {member}");
            }
            let credit = &document["credit"];
            let sent = row.number("unvalidated_bytes");
            assert_eq!(credit["unvalidated_bytes"].as_u64(), Some(sent));
            let received = credit["received"].as_array().unwrap().last();
            let received = received.map_or(0, |step| step["bytes"].as_u64().unwrap());
            assert_eq!(received, row.number("credited_bytes"));
        }
    }
}

#[test]
fn qlog_that_can_not_be_written_is_one_line_and_loses_nothing() {
    need_root();
    let arm = "--baseline x25519/ecdsa-p256/transport=quic --data 20KiB";
    let measured = Measured::of(&format!("{arm} --connections 8"), &["--capture", "8"]);
    let [capture] = &measured.captures()[..] else {
        panic!("one was made");
    };
    let show = |folder: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        run(command.arg("show").arg(capture).arg("--qlog").arg(folder))
    };
    let is_line = |ended: &Ended, path: &str| {
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let line = format!("lastbyte: can't write \"{path}");
        assert!(ended.stderr.starts_with(&line), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    };
    // A file is no folder, and a folder can't be below it.
    is_line(&show(capture), capture.to_str().unwrap());
    is_line(&show(&capture.join("below")), capture.to_str().unwrap());
    // A full disk: what was there before stays, and no file is half of one.
    let full = at(&measured.folder, "full");
    fs::create_dir(&full).unwrap();
    let script = "mount -t tmpfs -o size=40k tmpfs \"$2\" && echo kept > \"$2\"/kept && \
        { \"$1\" show \"$3\" --qlog \"$2\"; code=$?; cat \"$2\"/kept; \
        for file in \"$2\"/*.sqlog; do tail -c 1 \"$file\" | od -An -c; done; exit $code; }";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_lastbyte")).arg(&full);
    let ended = run(command.arg(capture));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("No space left on device"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let mut lines = ended.stdout.lines();
    assert_eq!(lines.next(), Some("kept"));
    let rest: BTreeSet<&str> = lines.map(str::trim).collect();
    assert_eq!(rest, BTreeSet::from(["\\n"]));
}

#[test]
fn captures_of_tcp_have_no_qlog() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let capture = corpus.join("capture-without-secrets/capture.pcapng");
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command.arg("show").arg(capture);
    let ended = run(command.arg("--qlog").arg(at(&folder, "qlog")));
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.stderr,
        "lastbyte: --qlog is of connections over QUIC, and there is none: leave it out\n"
    );
    assert!(!at(&folder, "qlog").exists());
}
