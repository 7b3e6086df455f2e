//! The programs of PQTLS-AD, with DNS servers of the distribution and TLS stacks of others.

mod front;
mod peer;
mod ten_commands;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{CACHE, Ended, lastbyte, run, store};
use lastbyte_ad::test_servers::{BIND, KEY, bind, isolate, unbound};
use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, RootDelivery, test_chains};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const NAME: &str = "server.example";

/// Where the TLS server listens; DNS says so.
pub(crate) const SERVER: &str = "127.0.0.9:443";

pub(crate) const ZONE: &str = "server A 127.0.0.9";

/// What no step takes on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn what_is_published_is_used_until_and_after_it_is_renewed() {
    isolate();
    let resolver = Files::new(&test_chains::for_name("resolver.example").unwrap());
    let _dns = bind(ZONE);
    let _resolver = unbound(BIND, &resolver.chain, &resolver.key);
    let chain = chain("ml-dsa-65");
    let files = Files::new(&chain);
    let mut server = serve(&[&files], &[]);

    // The name has no record yet.
    let before = fetch(&files, &[]);
    assert_eq!(before["outcome"], "no-record");
    assert_eq!(before["reason"], "the name has none");
    assert_eq!(before["flights"], 2);
    assert_eq!(before["http_code"], 200);
    assert_eq!(before["size_download"], BODY.len());

    let published = publish(&files, &["--ttl", "2s"]);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    assert!(
        published
            .stderr
            .contains("-> from DNS down to the root (1)"),
        "{}",
        published.stderr
    );
    for via in [
        ["--resolver", "127.0.0.1"].as_slice(),
        &["--resolver", "127.0.0.3:53"],
        &[
            "--resolver",
            "127.0.0.3",
            "--dot=resolver.example",
            "--dot-ca",
            resolver.root.to_str().unwrap(),
        ],
    ] {
        let fetched = fetch(&files, via);
        assert_eq!(fetched["outcome"], "used", "{via:?}: {fetched:#}");
        assert_eq!(fetched["reason"], Value::Null);
        assert_eq!(fetched["round_trips_saved"], 1);
        assert_eq!(fetched["group"], "X25519MLKEM768");
        assert_eq!(fetched["signature"], "mldsa65");
        let omitted = chain.root().to_der().unwrap().len() + 5;
        assert_eq!(fetched["bytes_omitted"], omitted);
        let difference = before["certificate_bytes"].as_u64().unwrap()
            - fetched["certificate_bytes"].as_u64().unwrap();
        assert_eq!(difference, omitted as u64);
        let hello = |fetched: &Value| fetched["server_hello_bytes"].as_u64().unwrap();
        assert_eq!(hello(&fetched) - hello(&before), 36);
        let times = [
            "time_namelookup",
            "time_connect",
            "time_appconnect",
            "time_pretransfer",
            "time_starttransfer",
            "time_total",
        ];
        let times = times.map(|name| fetched[name].as_f64().unwrap());
        assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
        assert!(fetched["time_record"].as_f64().unwrap() > 0.0);
    }

    // A renewal: the server takes it up by itself, and is in step before and after.
    let renewed = self::chain("ml-dsa-87");
    let watching = Program::start(
        lastbyte(["ad", "publish", NAME, "--watch", "--ttl", "2s"]).args([
            "--chain".as_ref(),
            files.chain.as_os_str(),
            "--update".as_ref(),
            "127.0.0.1".as_ref(),
            "--tsig".as_ref(),
            files.tsig.as_os_str(),
            "--server".as_ref(),
            SERVER.as_ref(),
        ]),
    );
    watching.line_with("published 1 record");
    files.write(&renewed);
    watching.line_with("published 1 record");
    let fetched = fetch(&files, &[]);
    assert_eq!(fetched["outcome"], "used", "{fetched:#}");
    assert_eq!(fetched["signature"], "mldsa87");
    assert_eq!(watching.stop(Signal::SIGTERM), Some(0));

    server.expect("the chains are loaded again");
    kill(server.pid(), Signal::SIGHUP).unwrap();
    server.expect("the chains are loaded again");
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn check_says_what_is_out_of_step_and_exits_with_1() {
    isolate();
    let _dns = bind(ZONE);
    let [old, new] = [(); 2].map(|()| test_chains::for_name(NAME).unwrap());
    let files = Files::new(&old);
    let server = serve(&[&files], &[]);

    let missing = check(&files, &[]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing
            .stderr
            .contains("there is no record: the name has none"),
        "{missing:?}"
    );

    let published = publish(&files, &["--from", "end-entity"]);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    let fine = check(&files, &[]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    let document: Value = serde_json::from_str(&fine.stdout).unwrap();
    assert_eq!(document["outcome"], "used");
    assert_eq!(document["problems"], Value::Array(Vec::new()));
    assert_eq!(document["record"]["ttl_s"], 3600);
    assert_eq!(document["record_part"], "end-entity");
    assert_eq!(document["record_certificates"], 2);
    assert_eq!(document["plain_certificates"], 2);
    assert!(document["expires_in_s"].as_u64().unwrap() > 86_400);
    let table = run(check_command(&files, &[]).args(["--format", "table"]));
    assert!(
        table.stdout.contains("outcome                used\n"),
        "{}",
        table.stdout
    );

    let expiring = check(&files, &["--expires-within", "9000"]);
    assert_eq!(expiring.code, Some(1));
    assert!(expiring.stderr.contains("expires in"), "{expiring:?}");

    let other = check(&files, &["--extension", "65"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("not in step"), "{other:?}");

    // A server that never had the chain that was published, of a CA that is trusted as well.
    assert_eq!(server.stop(Signal::SIGTERM), Some(0));
    files.write(&new);
    let both = [&old, &new].map(|chain| chain.root().to_pem().unwrap());
    fs::write(&files.root, both.concat()).unwrap();
    let server = serve(&[&files], &[]);
    let out_of_step = check(&files, &[]);
    assert_eq!(out_of_step.code, Some(1));
    let document: Value = serde_json::from_str(&out_of_step.stdout).unwrap();
    assert_eq!(document["outcome"], "mismatch");
    // Of a CA that is trusted no more.
    fs::write(&files.root, new.root().to_pem().unwrap()).unwrap();
    let unusable = check(&files, &[]);
    assert_eq!(unusable.code, Some(1));
    let hint = "publish again, with `lastbyte ad publish` and the chain that the server has\n";
    assert!(
        unusable.stderr.contains("the record can't be used: ") && unusable.stderr.ends_with(hint),
        "{unusable:?}"
    );
    drop(server);
    let absent = check(&files, &[]);
    assert_eq!(absent.code, Some(1));
    assert!(
        absent.stderr.contains("can't connect to 127.0.0.9:443"),
        "{absent:?}"
    );
}

#[test]
fn what_the_server_does_not_accept_is_not_published_for_a_cron_job_either() {
    isolate();
    let _dns = bind(ZONE);
    let [old, new] = ["ml-dsa-44", "ml-dsa-65"].map(|name| Files::new(&chain(name)));
    let _server = serve(&[&old], &[]);
    let asked = ["--from", "root", "--server", SERVER];
    let refused = publish(&new, &asked);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let expected = "nothing is published, as 127.0.0.9:443 does not accept these certificates";
    assert!(refused.stderr.contains(expected), "{refused:?}");
    let missing = check(&old, &[]);
    assert!(missing.stderr.contains("there is no record"), "{missing:?}");
    let absent = publish(&old, &["--from", "root", "--server", "127.0.0.1:1"]);
    assert_eq!(absent.code, Some(1), "{absent:?}");
    assert!(absent.stderr.contains("127.0.0.1:1: "), "{absent:?}");
    let published = publish(&old, &asked);
    assert_eq!(published.code, Some(0), "{published:?}");
    assert_eq!(check(&old, &[]).code, Some(0));
    // Zone lines are for the same server.
    let lines = |files: &Files| {
        let mut command = lastbyte(["ad", "publish", NAME, "--chain"]);
        run(command.arg(&files.chain).args(asked))
    };
    assert!(
        lines(&old)
            .stdout
            .starts_with("server.example. 3600 IN TYPE65280")
    );
    let none = lines(&new);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""), "{none:?}");
}

#[test]
fn clients_without_ml_dsa_are_told_of_before_and_after_they_fail() {
    isolate();
    let [ecdsa, ml_dsa] = ["ecdsa-p256", "ml-dsa-65"].map(|name| Files::new(&chain(name)));
    let hint = "; give it an ECDSA chain, too, with another --chain and --key";
    let warning =
        "warning: server.example has no chain but of ML-DSA-65, which many clients can't verify";
    let server = serve(&[&ml_dsa], &[]);
    let warned = server.line_with(warning);
    assert!(warned.ends_with(hint), "{warned}");
    // Debian's OpenSSL is older than ML-DSA.
    let resolve = format!("{NAME}:443:127.0.0.9");
    let mut curl = Command::new("curl");
    curl.args(["-sSk", "--resolve", &resolve]);
    curl.arg(format!("https://{NAME}/"));
    let refused = run(&mut curl);
    assert_eq!(refused.code, Some(35), "{refused:?}");
    let logged = server.line_with("no suitable signature algorithm: ");
    let reason = "the client can't verify ML-DSA-65, and the name has no other chain";
    assert!(logged.ends_with(&format!("{reason}{hint}")), "{logged}");
    server.stop(Signal::SIGTERM);

    let _server = serve(&[&ml_dsa, &ecdsa], &[]);
    assert_eq!(run(&mut curl).stdout, BODY);
    let check_config = |chains: &[&Files]| {
        let mut command = lastbyte(["ad", "serve", "--check-config", "--listen", "127.0.0.1:0"]);
        command.args(["--backend", "127.0.0.1:1"]);
        for files in chains {
            command.arg("--chain").arg(&files.chain);
            command.arg("--key").arg(&files.key);
        }
        run(&mut command)
    };
    let warned = check_config(&[&ml_dsa]);
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert!(warned.stderr.contains(warning), "{warned:?}");
    let both = check_config(&[&ml_dsa, &ecdsa]);
    assert!(!both.stderr.contains("can't verify"), "{both:?}");
}

#[test]
fn without_update_publish_prints_zone_lines() {
    let files = Files::new(&chain("slh-dsa-sha2-192f"));
    let mut command = lastbyte([
        "ad", "publish", NAME, "--type", "tlsa", "--ttl", "1.5d", "--chain",
    ]);
    let published = run(command.arg(&files.chain));
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    let starts: Vec<_> = published.stdout.lines().map(|line| &line[..54]).collect();
    assert_eq!(starts.len(), 2);
    assert!(
        starts[0].starts_with("server.example. 129600 IN TLSA \\# 3"),
        "{starts:?}"
    );
    assert!(
        starts[1].starts_with("_1._pqtlsad.server.example. 129600 IN TLSA \\# 3"),
        "{starts:?}"
    );
    assert!(
        published.stderr.contains("None fits: the whole chain"),
        "{}",
        published.stderr
    );
}

#[test]
fn a_backend_that_does_not_answer_is_told_with_its_address() {
    isolate();
    let _dns = bind(ZONE);
    let files = Files::new(&chain("ecdsa-p256"));
    let server = serve_in_front_of("127.0.0.1:1", &[&files], &[]);
    let url = format!("https://{NAME}/");
    for _ in 0..3 {
        let mut command = lastbyte(["ad", "fetch", &url, "--plain", "--resolver", "127.0.0.1"]);
        let fetched = run(command.arg("--ca").arg(&files.root));
        assert_eq!(fetched.code, Some(1), "{fetched:?}");
    }
    server.line_with("connecting to the backend failed: 127.0.0.1:1: Connection refused");
    kill(server.pid(), Signal::SIGTERM).unwrap();
    assert!(server.line_with("handshakes").ends_with(
        "3 handshakes, 0 of them shorter by what DNS had delivered; 3 connections failed, \
         3 of them as the backend 127.0.0.1:1 did not answer"
    ));
}

#[test]
fn a_backend_can_be_told_whose_connections_it_has() {
    isolate();
    let _dns = bind(ZONE);
    let files = Files::new(&chain("ecdsa-p256"));
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap().to_string();
    let (sender, announced) = channel();
    thread::spawn(move || {
        let (mut stream, _) = backend.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        sender.send(lines.next().unwrap().unwrap()).unwrap();
        sender.send(lines.next().unwrap().unwrap()).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
    });
    let _server = serve_in_front_of(&address, &[&files], &["--proxy-protocol"]);
    let url = format!("https://{NAME}/");
    // Its CA is nobody's whom this machine knows.
    let refused = run(&mut lastbyte([
        "ad",
        "fetch",
        &url,
        "--resolver",
        "127.0.0.1",
    ]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let hint = "; name its CA with --ca if you trust it\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
    let mut command = lastbyte(["ad", "fetch", &url, "--plain", "--resolver", "127.0.0.1"]);
    let fetched = run(command.arg("--ca").arg(&files.root));
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let line = announced.recv_timeout(PATIENCE).unwrap();
    let words: Vec<_> = line.split(' ').collect();
    assert_eq!(words[..4], ["PROXY", "TCP4", "127.0.0.1", "127.0.0.9"]);
    assert_eq!(words[5..], ["443"], "{line}");
    let request = announced.recv_timeout(PATIENCE).unwrap();
    assert!(request.starts_with("GET / HTTP/1.1"), "{request}");
}

#[test]
fn wrong_usage_is_told_in_one_line() {
    let files = Files::new(&chain("ecdsa-p256"));
    let chain = files.chain.to_str().unwrap();
    let key = files.key.to_str().unwrap();
    for (arguments, code, message) in [
        (
            vec!["publish", NAME, "--chain", chain],
            2,
            "name a part with --from",
        ),
        (
            vec![
                "publish",
                "other.example",
                "--chain",
                chain,
                "--from",
                "root",
            ],
            2,
            "the chain is for server.example",
        ),
        (
            vec!["publish", NAME, "--chain", key, "--from", "root"],
            2,
            "there is no certificate",
        ),
        (
            vec!["publish", NAME, "--chain", chain, "--ttl", "500ms"],
            2,
            "a TTL has whole seconds",
        ),
        (
            vec!["fetch", "https://server.example/", "--extension", "51"],
            2,
            "OpenSSL has extension 51 itself: use another number",
        ),
        (
            vec!["publish", NAME, "--chain", "/nowhere"],
            2,
            "can't read \"/nowhere\"",
        ),
        (
            vec!["publish", NAME, "--chain", chain, "--from", "intermediate"],
            2,
            "has no intermediate to publish",
        ),
        (
            vec![
                "publish",
                NAME,
                "--chain",
                chain,
                "--update",
                "127.0.0.1",
                "--tsig",
                chain,
            ],
            2,
            "name a part with --from",
        ),
        (
            vec![
                "publish",
                NAME,
                "--chain",
                chain,
                "--from",
                "root",
                "--update",
                "127.0.0.1",
                "--tsig",
                key,
            ],
            2,
            "line 1, column 1: key is expected here",
        ),
        (
            vec![
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--chain",
                chain,
                "--chain",
                chain,
                "--key",
                key,
                "--backend",
                "127.0.0.1:1",
            ],
            2,
            "give one key for each chain",
        ),
        (
            vec![
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--chain",
                chain,
                "--key",
                chain,
                "--backend",
                "127.0.0.1:1",
            ],
            2,
            "chain.pem",
        ),
        (
            vec![
                "serve",
                "--listen",
                "192.0.2.1:1",
                "--chain",
                chain,
                "--key",
                key,
                "--backend",
                "127.0.0.1:1",
            ],
            2,
            "name an address of this machine with --listen",
        ),
        (
            vec![
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--metrics",
                "192.0.2.1:1",
                "--chain",
                chain,
                "--key",
                key,
                "--backend",
                "127.0.0.1:1",
            ],
            2,
            "name an address of this machine with --metrics",
        ),
        (
            vec!["fetch", "http://server.example/"],
            2,
            "begin it with https://",
        ),
        (
            vec![
                "fetch",
                "https://server.example/",
                "--resolver",
                "127.0.0.1",
                "--ca",
                "/nowhere",
            ],
            2,
            "\"/nowhere\"",
        ),
        (
            vec!["check", "server.example:x"],
            2,
            "write NAME or NAME:PORT",
        ),
    ] {
        let ended = run(lastbyte(["ad"]).args(&arguments));
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(message),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn no_word_of_a_key_is_told_and_who_else_can_read_it_is() {
    const SECRET: &str = "bm90IHRvIGJlIHRvbGQ=";
    let files = Files::new(&chain("ecdsa-p256"));
    let mode = |file: &Path, mode| {
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    };
    let publish = || {
        let mut command = lastbyte(["ad", "publish", NAME, "--from", "root", "--chain"]);
        command
            .arg(&files.chain)
            .args(["--update", "127.0.0.1:1", "--tsig"]);
        run(command.arg(&files.tsig))
    };
    for (bits, told) in [
        (0o600, ""),
        (0o640, "by its group"),
        (0o644, "by everybody"),
    ] {
        mode(&files.tsig, bits);
        let published = publish();
        assert_eq!(published.code, Some(1), "{published:?}");
        let warned = published.stderr.contains("can be read by");
        assert_eq!(warned, !told.is_empty(), "{published:?}");
        assert!(published.stderr.contains(told), "{published:?}");
    }
    for key in [
        format!("hmac-sha256:update.example:{SECRET}\n"),
        format!("key x {{ algorithm hmac-sha256; secret = \"{SECRET}\"; }};\n"),
    ] {
        fs::write(&files.tsig, key).unwrap();
        let published = publish();
        assert_eq!(published.code, Some(2), "{published:?}");
        assert!(
            published.stderr.contains("tsig.key\": line 1, column"),
            "{published:?}"
        );
        assert!(!published.stderr.contains("bm90"), "{published:?}");
    }
    let pem = |label| format!("-----BEGIN {label}-----\n{SECRET}\n-----END {label}-----\n");
    for key in [
        pem("PRIVATE KEY"),
        pem("ENCRYPTED PRIVATE KEY"),
        SECRET.to_owned(),
    ] {
        fs::write(&files.key, key).unwrap();
        let mut command = lastbyte(["ad", "serve", "--listen", "127.0.0.1:0", "--backend"]);
        command.args(["127.0.0.1:1", "--chain"]).arg(&files.chain);
        let served = run(command.arg("--key").arg(&files.key));
        assert_eq!(served.code, Some(2), "{served:?}");
        assert!(!served.stderr.contains("bm90"), "{served:?}");
    }
}

#[test]
fn a_response_that_never_ends_is_given_so_much_time() {
    isolate();
    let _dns = bind(ZONE);
    let files = Files::new(&chain("ecdsa-p256"));
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\n",
    ] {
        let backend = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = backend.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = backend.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let mut next = head;
            // Never silent for long.
            while stream.write_all(next.as_bytes()).is_ok() {
                thread::sleep(Duration::from_millis(20));
                next = if head.contains("200") { "a" } else { head };
            }
        });
        let _server = serve_in_front_of(&address, &[&files], &[]);
        let url = format!("https://{NAME}/");
        let mut command = lastbyte(["ad", "fetch", &url, "--plain", "--resolver", "127.0.0.1"]);
        let fetched = run(command.args(["-m", "500ms", "--ca"]).arg(&files.root));
        assert_eq!(fetched.code, Some(1), "{fetched:?}");
        assert!(
            fetched.stderr.ends_with("not complete within 500ms\n"),
            "{fetched:?}"
        );
    }
}

#[test]
fn standard_clients_speak_with_the_server() {
    isolate();
    let [ecdsa, ml_dsa] = ["ecdsa-p256", "ml-dsa-65"].map(|name| Files::new(&chain(name)));
    let _server = serve(&[&ml_dsa, &ecdsa], &[]);
    // Debian's OpenSSL is older than ML-DSA.
    let mut openssl = Command::new("openssl");
    openssl
        .args([
            "s_client",
            "-connect",
            SERVER,
            "-servername",
            NAME,
            "-verify_hostname",
            NAME,
        ])
        .args([
            "-verify_return_error",
            "-quiet",
            "-tls1_3",
            "-ign_eof",
            "-CAfile",
        ])
        .arg(&ecdsa.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = openssl
        .spawn()
        .unwrap_or_else(|error| panic!("{openssl:?}: {error}"));
    let request = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(request.as_bytes())
        .unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(ended.stdout.ends_with(BODY), "{ended:?}");
    // Go knows ML-DSA: it gets the first chain.
    let root = ml_dsa.root.to_str().unwrap();
    let ended = run(go_peer().args(["client", SERVER, NAME, root]));
    assert!(ended.stdout.ends_with(&format!("{BODY}\n")), "{ended:?}");
}

#[test]
fn fetch_speaks_with_standard_servers() {
    isolate();
    let _dns = bind(ZONE);
    let files = Files::new(&chain("ml-dsa-65"));
    let published = publish(&files, &["--from", "root"]);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    let go = Program::start(go_peer().args([
        "server".as_ref(),
        files.chain.as_os_str(),
        files.key.as_os_str(),
    ]));
    let address = go.line_with("listening on ");
    let address = address.trim_start_matches("listening on ");
    let fetched = fetch_with(&files, &["--connect", address], "hello from Go");
    // The record is there, but the server knows nothing of it.
    assert_eq!(fetched["outcome"], "refused-by-server", "{fetched:#}");
    assert_eq!(fetched["bytes_omitted"], 0);
    assert_eq!(fetched["round_trips_saved"], 0);

    let files = Files::new(&chain("ecdsa-p256"));
    let page = files.folder.path().join("page");
    fs::write(&page, "hello from OpenSSL").unwrap();
    let mut openssl = Command::new("openssl");
    openssl
        .args([
            "s_server",
            "-accept",
            SERVER,
            "-tls1_3",
            "-WWW",
            "-cert_chain",
        ])
        .arg(&files.chain)
        .arg("-cert")
        .arg(&files.chain)
        .arg("-key")
        .arg(&files.key)
        .current_dir(files.folder.path());
    let _openssl = Program::start(&mut openssl);
    let start = Instant::now();
    while TcpStream::connect(SERVER).is_err() {
        assert!(start.elapsed() < PATIENCE, "s_server does not start");
        thread::sleep(Duration::from_millis(20));
    }
    let body = files.folder.path().join("body");
    let url = format!("https://{NAME}/page");
    let mut command = lastbyte(["ad", "fetch", &url, "--resolver", "127.0.0.1", "--ca"]);
    let ended = run(command.arg(&files.root).arg("-o").arg(&body));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&body).unwrap(), "hello from OpenSSL");
}

#[test]
fn a_server_that_can_not_be_trusted_is_refused() {
    isolate();
    let _dns = bind(ZONE);
    let [files, stranger] = [(); 2].map(|()| Files::new(&test_chains::for_name(NAME).unwrap()));
    let _server = serve(&[&files], &[]);
    for part in ["intermediate", "end-entity"] {
        let published = publish(&files, &["--from", part]);
        assert_eq!(published.code, Some(0), "{}", published.stderr);
        let url = format!("https://{NAME}/");
        let mut command = lastbyte(["ad", "fetch", &url, "--resolver", "127.0.0.1", "--ca"]);
        let ended = run(command.arg(&stranger.root));
        assert_eq!(ended.code, Some(1));
        assert_eq!(ended.stdout, "", "not a byte of the body");
        assert!(
            ended.stderr.contains("certificate is not accepted"),
            "{}",
            ended.stderr
        );
    }
}

/// What the backend answers.
pub(crate) const BODY: &str = "hello through the proxy";

/// An end-entity and a root, which is sent.
pub(crate) fn chain(algorithm: &str) -> Chain {
    let algorithm: KeyAlgorithm = algorithm.parse().unwrap();
    let spec = ChainSpec {
        intermediates: 0,
        root: RootDelivery::Sent,
        ..ChainSpec::new(algorithm)
    };
    store().chain(&spec).unwrap()
}

/// A chain in files, and the key for updates.
pub(crate) struct Files {
    pub(crate) folder: TempDir,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) root: PathBuf,
    tsig: PathBuf,
}

impl Files {
    pub(crate) fn new(chain: &Chain) -> Files {
        let folder = TempDir::new().unwrap();
        let path = |name| folder.path().join(name);
        let files = Files {
            chain: path("chain.pem"),
            key: path("key.pem"),
            root: path("root.pem"),
            tsig: path("tsig.key"),
            folder,
        };
        files.write(chain);
        fs::write(&files.tsig, KEY).unwrap();
        files
    }

    /// Puts another chain in its place, as a renewal does.
    pub(crate) fn write(&self, chain: &Chain) {
        let sent = chain.certificates().iter();
        let sent: Vec<u8> = sent.flat_map(|one| one.to_pem().unwrap()).collect();
        fs::write(
            &self.key,
            lastbyte_pki::private_key_pem(chain.key()).unwrap(),
        )
        .unwrap();
        fs::write(&self.root, chain.root().to_pem().unwrap()).unwrap();
        fs::write(&self.chain, sent).unwrap();
    }
}

/// `ad serve` with these chains, in front of a server that answers [`BODY`].
pub(crate) fn serve(chains: &[&Files], options: &[&str]) -> Program {
    serve_in_front_of(&greet(), chains, options)
}

/// A server that answers [`BODY`]: where it is.
pub(crate) fn greet() -> String {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in backend.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let length = BODY.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                let _ = stream.write_all((head + BODY).as_bytes());
            });
        }
    });
    address
}

pub(crate) fn serve_in_front_of(backend: &str, chains: &[&Files], options: &[&str]) -> Program {
    let mut command = lastbyte(["ad", "serve", "--listen", SERVER, "--backend", backend]);
    for files in chains {
        command
            .arg("--chain")
            .arg(&files.chain)
            .arg("--key")
            .arg(&files.key);
    }
    let server = Program::start(command.args(options));
    server.line_with("serving on 127.0.0.9:443");
    server
}

pub(crate) fn publish(files: &Files, options: &[&str]) -> Ended {
    let mut command = lastbyte(["ad", "publish", NAME, "--update", "127.0.0.1:53", "--tsig"]);
    command.arg(&files.tsig).arg("--chain").arg(&files.chain);
    run(command.args(options))
}

pub(crate) fn fetch(files: &Files, options: &[&str]) -> Value {
    fetch_with(files, options, BODY)
}

/// What `ad fetch` tells, which waits for the record: the machine may be busy.
fn fetch_with(files: &Files, options: &[&str], expected: &str) -> Value {
    let body = files.folder.path().join("body");
    let url = format!("https://{NAME}/");
    let mut command = lastbyte([
        "ad", "fetch", &url, "--format", "json", "--grace", "10s", "--ca",
    ]);
    command.arg(&files.root).arg("-o").arg(&body);
    if !options.contains(&"--resolver") {
        command.args(["--resolver", &BIND.to_string()]);
    }
    let ended = run(command.args(options));
    assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
    assert_eq!(fs::read_to_string(&body).unwrap(), expected);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn check_command(files: &Files, options: &[&str]) -> Command {
    let mut command = lastbyte(["ad", "check", NAME, "--resolver", "127.0.0.1", "--ca"]);
    command.arg(&files.root).args(options);
    command
}

fn check(files: &Files, options: &[&str]) -> Ended {
    run(check_command(files, options).args(["--format", "json"]))
}

/// The Go program that the interop tests of the TLS stacks speak with.
fn go_peer() -> Command {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tls/tests/interop/go/peer.go"
    );
    let go = installed("go");
    fs::create_dir_all(CACHE).unwrap();
    let peer = Path::new(CACHE).join(format!("go-peer-{}", std::process::id()));
    if !peer.exists() {
        let building = peer.with_extension(format!("{:?}", thread::current().id()));
        let mut build = Command::new(go);
        build.args(["build", "-o"]).arg(&building).arg(source);
        let built = run(build.env("GOCACHE", peers().join("go-cache")));
        assert_eq!(built.code, Some(0), "{}", built.stderr);
        fs::rename(building, &peer).unwrap();
    }
    Command::new(peer)
}

/// Where `scripts/interop` keeps the programs of others.
fn peers() -> PathBuf {
    let peers = env::var_os("LASTBYTE_PEERS").map(PathBuf::from);
    let peers = peers.or_else(|| Some(env::home_dir()?.join(".cache/lastbyte/tools/peers")));
    peers.unwrap()
}

/// One of them.
fn installed(name: &str) -> PathBuf {
    let program = peers().join("bin").join(name);
    assert!(
        program.is_file(),
        "this test needs {}: run scripts/interop to install it",
        program.display()
    );
    program
}

/// A program that runs, and is ended with its test.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Program {
        Program::start_with(command, Stdio::null())
    }

    pub(crate) fn start_with(command: &mut Command, input: Stdio) -> Program {
        let mut child = command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = channel();
        let outputs: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for output in outputs {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).lines() {
                    let _ = sender.send(line.unwrap_or_default());
                }
            });
        }
        Program { child, lines }
    }

    /// The next line that holds `text`.
    pub(crate) fn line_with(&self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("it does not say {text:?} ({error}), but {before:#?}"),
            }
        }
    }

    fn expect(&mut self, text: &str) {
        self.line_with(text);
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// Its exit code, once it has ended by this signal.
    pub(crate) fn stop(mut self, signal: Signal) -> Option<i32> {
        kill(self.pid(), signal).unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
