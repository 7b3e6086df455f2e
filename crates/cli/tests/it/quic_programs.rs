//! QUIC with programs that people run, of `scripts/quic-peers` and `scripts/interop`. A kernel has to be there.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Row, at, lastbyte, need_live_engine, read_rows, run};

/// What an engine measures of an arm over QUIC with each of these at its ends: one handshake each, over 100 ms.
fn handshakes(engine: &str, chain: &str, ends: &[&str]) -> Vec<Row> {
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "rows.csv");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command
        .args(["compare", "--engine", engine, "--emulation", "link", "-o"])
        .arg(&file)
        .args(["--chain-profile", "private", "--cpu", "none"])
        .args(["--rtt", "100ms", "--data", "0B", "--connections", "1"]);
    for (place, ends) in ends.iter().enumerate() {
        let role = if place == 0 {
            "--baseline"
        } else {
            "--against"
        };
        command.args([
            role,
            &format!("X25519MLKEM768/{chain}/transport=quic{ends}"),
        ]);
    }
    let ended = run(&mut command);
    // Where nothing completes, there is no answer, but rows.
    assert!(file.exists(), "{command:?}: {}", ended.stderr);
    read_rows(&file)
}

/// A handshake as others have it: the same messages of the same sizes, but for Finished, whose hash is the cipher suite's.
#[track_caller]
fn assert_whole(row: &Row, ours: &Row, most: Duration) {
    let arm = row.text("arm");
    assert_eq!(row.text("outcome"), "completed", "{arm}");
    for column in [
        "group",
        "signature",
        "server_hello_bytes",
        "certificate_bytes",
        "certificate_verify_bytes",
        "client_hello_datagrams",
    ] {
        assert_eq!(row.text(column), ours.text(column), "{arm}, {column}");
    }
    let handshake = row.time("handshake_ns");
    let least = ours.time("handshake_ns") - Duration::from_micros(100);
    assert!((least..most).contains(&handshake), "{arm}: {handshake:?}");
    assert!(row.time("server_handshake_ns") > handshake, "{arm}");
    // Two datagrams of a client, and what it sends until it has keys of the handshake; and more of the server.
    assert!(row.number("credited_bytes") >= 2 * 1200, "{arm}");
    let sent = row.number("unvalidated_bytes");
    assert!(sent > row.number("credited_bytes"), "{arm}: {sent}");
    // What only an end itself knows, nobody asks a program.
    assert!(row.text("server_lost_packets").is_empty(), "{arm}");
}

#[test]
fn each_program_shakes_hands_in_the_guest() {
    let rows = handshakes(
        "virtual",
        "ml-dsa-65",
        &[
            "",
            "/server=quic-go",
            "/server=s2n-quic",
            "/server=caddy",
            "/client_program=quic-go",
            "/client_program=curl",
            "/server=quic-go/client_program=curl",
        ],
    );
    let [ours, others @ ..] = rows.as_slice() else {
        panic!("no rows");
    };
    assert_eq!((others.len(), ours.text("outcome")), (6, "completed"));
    for row in others {
        assert_whole(row, ours, Duration::from_millis(210));
    }
}

/// Which verifies no chain of ML-DSA over QUIC, and says so in a row.
#[test]
fn a_browser_shakes_hands_in_the_guest() {
    let rows = handshakes(
        "virtual",
        "ecdsa-p256",
        &["", "/server=quic-go/client_program=chromium"],
    );
    let [ours, browser] = rows.as_slice() else {
        panic!("{} rows", rows.len());
    };
    assert_eq!(browser.text("outcome"), "completed");
    assert_eq!(browser.text("group"), ours.text("group"));
    let handshake = browser.time("handshake_ns");
    let round_trip = Duration::from_millis(100)..Duration::from_millis(110);
    assert!(round_trip.contains(&handshake), "{handshake:?}");
}

/// quic-go's client takes 16 KiB of handshake messages at most, and says why the connection ends.
#[test]
fn what_a_program_refuses_is_a_row_with_its_reason() {
    let rows = handshakes("virtual", "ml-dsa-87", &["/client_program=quic-go"]);
    let [row] = rows.as_slice() else {
        panic!("{} rows", rows.len());
    };
    assert_eq!(row.text("outcome"), "failed");
    let reason = row.text("reason");
    assert!(reason.contains("CRYPTO_BUFFER_EXCEEDED"), "{reason}");
    assert!(row.text("handshake_ns").is_empty());
}

#[test]
fn the_live_engine_has_them_too() {
    need_live_engine();
    let ends = ["/server=quic-go", "/client_program=curl"];
    let rows = handshakes("live", "ml-dsa-65", &ends);
    assert_eq!(rows.len(), ends.len());
    for row in &rows {
        assert_eq!(row.text("outcome"), "completed");
        assert!(row.time("handshake_ns") >= Duration::from_millis(200));
        assert!(row.number("unvalidated_bytes") > row.number("credited_bytes"));
    }
}

/// The second part of the ClientHello and quic-go's ServerHello come again by a timer, and nothing is lost for good.
#[test]
fn each_datagram_of_a_programs_handshake_is_lost_once() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    let arm = "X25519MLKEM768/ml-dsa-44/transport=quic/server=quic-go";
    command.args(["lose", arm, "--chain-profile", "private", "--rtt", "100ms"]);
    let ended = run(command.args(["--format", "json"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let losses = &told["losses"][0];
    assert!(
        losses["programs"]["quic-go"]
            .as_str()
            .unwrap()
            .starts_with('v')
    );
    // A whole datagram is begun while a byte of three times as much is left.
    let factor = losses["amplification"].as_f64().unwrap();
    assert!((2.5..4.0).contains(&factor), "{factor}");
    let lost = losses["lost"].as_array().unwrap();
    let carrying = |what: &str| {
        let mut found = lost
            .iter()
            .filter(|lost| lost["carries"].as_str() == Some(what));
        found.next().unwrap_or_else(|| panic!("{what}: {lost:?}"))
    };
    let timer = 100_000_000..500_000_000;
    for what in ["the end of ClientHello", "ServerHello"] {
        let added = carrying(what)["added_ns"].as_u64().unwrap();
        assert!(timer.contains(&added), "{what}: {added}");
    }
    // The client is done when it has left, give or take how often the guest looks at its clock.
    assert!(carrying("client Finished")["added_ns"].as_u64().unwrap() < 1_000);
    assert!(lost.iter().all(|lost| lost["reason"].is_null()), "{lost:?}");
}

#[test]
fn what_programs_can_not_do_is_refused() {
    let cases = [
        ("/server=node", "", "quic-go, s2n-quic, caddy or quiche"),
        (
            "/server=quic-go/tickets=1",
            "",
            "tickets= is for Lastbyte's own server",
        ),
        (
            "/client_program=curl/client_stack=rustls",
            "",
            "it is for Lastbyte's own client",
        ),
        ("/client_program=curl", "", "write emulation = \"link\""),
        (
            "/client_program=curl",
            "--emulation link --data 1KiB",
            "write data = \"0B\"",
        ),
        (
            "/client_program=curl",
            "--emulation link --data 0B --capture 1 --capture-to c",
            "leave them or the arm out",
        ),
        (
            "/client_program=curl",
            "--emulation link --cpu beside",
            "write cpu = \"none\"",
        ),
    ];
    for (ends, options, expected) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        command
            .args(["compare", "--baseline"])
            .arg(format!("x25519/ecdsa-p256/transport=quic{ends}"))
            .args(options.split_whitespace());
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(2), "{ends}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{ends}: {}", ended.stderr);
    }
    for (server, variable, expected) in [
        (
            "s2n-quic",
            "LASTBYTE_S2N_QUIC",
            "scripts/quic-peers builds it",
        ),
        (
            "quiche",
            "LASTBYTE_QUICHE",
            "server=quiche needs lastbyte-quiche: `scripts/quic-peers --quiche` builds it",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        let arm = format!("ml-dsa-44/transport=quic/server={server}");
        command.args(["lose", &arm]).env(variable, "/nowhere/peer");
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

/// Caddy as people run it, which has HTTP/3 on the port of HTTPS and names it in Alt-Svc. Nobody of ours wrote its ends.
#[test]
fn a_probe_follows_the_alt_svc_of_caddy() {
    let folder = TempDir::new().unwrap();
    let made = run(
        lastbyte(["chain", "new", "ecdsa-p256/intermediates=2/scts=2", "-o"])
            .arg(at(&folder, "site")),
    );
    assert_eq!(made.code, Some(0), "{made:?}");
    let file = |name: &str| at(&folder, "site").join(name);
    // Free for TCP and for UDP, when it was looked at.
    let (listener, socket) = loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()) {
            break (listener, socket);
        }
    };
    let address = listener.local_addr().unwrap().to_string();
    drop((listener, socket));
    let configuration = serde_json::json!({
        "admin": { "disabled": true },
        "storage": { "module": "file_system", "root": folder.path() },
        "apps": {
            "http": { "servers": { "site": {
                "listen": [address],
                "automatic_https": { "disable": true },
                "tls_connection_policies": [{ "certificate_selection": { "any_tag": ["site"] } }],
                "routes": [{ "handle": [{ "handler": "static_response", "body": "here" }] }],
            } } },
            "tls": { "certificates": { "load_files": [
                { "certificate": file("chain.pem"), "key": file("key.pem"), "tags": ["site"] },
            ] } },
        },
    });
    let configured = at(&folder, "caddy.json");
    std::fs::write(&configured, configuration.to_string()).unwrap();
    let caddy = std::env::var_os("LASTBYTE_CADDY").map_or_else(
        || {
            let cache = lastbyte_pki::Store::default_dir().unwrap();
            cache.join("tools/quic-peers/bin/caddy")
        },
        PathBuf::from,
    );
    let mut caddy = Command::new(caddy)
        .args(["run", "--config"])
        .arg(&configured)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while TcpStream::connect(&address).is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "Caddy does not answer"
        );
        thread::sleep(Duration::from_millis(20));
    }
    let probed = run(&mut lastbyte(["probe", &address, "--format", "json"]));
    caddy.kill().unwrap();
    caddy.wait().unwrap();
    assert_eq!(probed.code, Some(0), "{probed:?}");
    let document: Value = serde_json::from_str(&probed.stdout).unwrap();
    let (quic, tls) = (&document["quic"], &document["tls"]);
    assert_eq!(quic["problem"], Value::Null, "{quic}");
    assert_eq!(quic["named_by"], "alt-svc");
    assert_eq!(quic["retry_token_bytes"], Value::Null);
    assert_eq!(
        quic["certificate_bytes"], tls["certificate_bytes"],
        "{document}"
    );
    assert_eq!(quic["edges"][0]["flights"], 1, "{quic}");
    let credited = quic["credited_bytes"].as_u64().unwrap();
    assert!(credited >= 2400, "{quic}");
    assert!(
        quic["unvalidated_bytes"].as_u64().unwrap() <= 3 * credited,
        "{quic}"
    );
}
