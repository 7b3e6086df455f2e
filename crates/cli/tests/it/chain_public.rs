//! Chains as their users have them: without a key, without a root, or at a server.
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_pki::{Chain, ChainSpec, RootDelivery, test_chains};
use openssl::pkey::PKey;
use openssl::ssl::{SslAcceptor, SslMethod};
use openssl::symm::Cipher;
use openssl::x509::X509;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Ended, at, compare_with, lastbyte, run, store};

const GROUP: &str = "X25519MLKEM768";

/// A chain that the tests share.
fn chain(description: &str) -> Chain {
    let arm: lastbyte::study::Arm = format!("{GROUP}/{description}").parse().unwrap();
    match arm.chain {
        lastbyte::study::ArmChain::Made(spec) => store().chain(&spec).unwrap(),
        lastbyte::study::ArmChain::Pem(_) => panic!("{description}"),
    }
}

#[test]
fn a_cache_that_others_can_change_is_warned_of() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "chain.pem", chain("ecdsa-p256").certificates());
    let cache = at(&folder, "cache");
    fs::create_dir(&cache).unwrap();
    for (mode, is_warned) in [(0o700, false), (0o755, false), (0o777, true)] {
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = lastbyte(["explain", &file]);
        let ended = run(command.env("LASTBYTE_CACHE", &cache));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let warning = "chains are taken from a cache that others can change";
        assert_eq!(
            ended.stderr.contains(warning),
            is_warned,
            "{mode:o}: {ended:?}"
        );
    }
}

fn pem(certificates: &[X509]) -> Vec<u8> {
    let certificates = certificates.iter();
    certificates
        .flat_map(|certificate| certificate.to_pem().unwrap())
        .collect()
}

fn write(folder: &TempDir, name: &str, certificates: &[X509]) -> String {
    let path = at(folder, name);
    fs::write(&path, pem(certificates)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn show(chain: &str) -> Ended {
    run(&mut lastbyte(["chain", "show", chain]))
}

fn shown(chain: &str) -> String {
    let ended = show(chain);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

/// That `command` ends with this code and one line that ends like this.
fn assert_refused(command: &[&str], code: i32, expected: &str) {
    let ended = run(&mut lastbyte(command));
    assert_eq!(ended.code, Some(code), "{command:?}: {ended:?}");
    assert_eq!(ended.stdout, "", "{command:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{command:?}: {ended:?}");
    assert!(ended.stderr.contains(expected), "{command:?}: {ended:?}");
}

/// A server with a chain, at a port of this machine. It answers as often as it is asked.
fn serve(chain: &Chain) -> String {
    serve_certificates(chain.certificates(), chain)
}

/// A server that sends these, and has the key of a chain.
fn serve_certificates(sent: &[X509], chain: &Chain) -> String {
    let mut acceptor = SslAcceptor::mozilla_modern_v5(SslMethod::tls_server()).unwrap();
    let (leaf, issuers) = sent.split_first().unwrap();
    acceptor.set_certificate(leaf).unwrap();
    acceptor.set_private_key(chain.key()).unwrap();
    for issuer in issuers {
        acceptor.add_extra_chain_cert(issuer.clone()).unwrap();
    }
    acceptor.clear_options(openssl::ssl::SslOptions::NO_TICKET);
    let acceptor = Arc::new(acceptor.build());
    listen(move |socket| {
        if let Ok(mut stream) = acceptor.accept(socket) {
            let _ = stream.read(&mut [0]);
        }
    })
}

/// A server that does this with each connection.
fn listen(answer: impl Fn(std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        listener
            .incoming()
            .for_each(|socket| answer(socket.unwrap()))
    });
    address
}

#[test]
fn a_chain_is_shown_without_its_key_and_root() {
    let chain = chain("ml-dsa-65/intermediates=2/scts=2");
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "site.pem", chain.certificates());
    let told = shown(&file);
    let bytes = chain.certificate_message_bytes();
    let first = format!("Certificate message  {bytes} B for server.example\n");
    assert!(told.starts_with(&first), "{told}");
    assert_eq!(told.matches(" B sent, key ml-dsa-65").count(), 3, "{told}");
    assert_eq!(told.matches("of an unknown log").count(), 2, "{told}");
    let last =
        format!("{file}: no root here, so whether a client would trust it was not checked\n");
    assert!(told.ends_with(&last), "{told}");

    // One beside it is taken, as other commands do, if it is the chain's.
    write(&folder, "root.pem", &[chain.root().clone()]);
    let told = shown(&file);
    assert!(told.starts_with(&first), "{told}");
    assert!(told.contains("root, not sent\n"), "{told}");
    let root = at(&folder, "root.pem");
    let beside = format!(
        "{file}, which does not end in its root: clients trust the one beside it, {}\n",
        root.display()
    );
    assert!(told.ends_with(&beside), "{told}");
    let other = test_chains::for_name("server.example").unwrap();
    write(&folder, "root.pem", &[other.root().clone()]);
    assert!(shown(&file).ends_with(&last));
    // An end-entity alone is a chain, too.
    let file = write(&folder, "leaf.pem", &chain.certificates()[..1]);
    assert_eq!(shown(&file).matches(" B sent").count(), 1);
}

/// What is shown, what is explained and what is sent is one number.
#[test]
fn a_root_in_the_file_is_not_sent_unless_it_is_asked_for() {
    let folder = TempDir::new().unwrap();
    let made = "ml-dsa-65/root=sent";
    let ended = run(lastbyte(["chain", "new", made, "-o"]).arg(folder.path()));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let file = at(&folder, "chain.pem");
    let file = file.to_str().unwrap();
    let told = shown(file);
    assert!(told.starts_with("Certificate message  11620 B"), "{told}");
    let note = ": the root is in the file, and is not sent (root=sent has it sent: 17212 B)\n";
    assert!(told.ends_with(&format!("{file}{note}")), "{told}");
    let sent = format!("{file}/root=sent");
    let told = shown(&sent);
    assert!(told.starts_with("Certificate message  17212 B"), "{told}");
    assert!(shown(made).starts_with("Certificate message  17212 B"));
    for (chain, bytes) in [(file, 11620), (&sent, 17212)] {
        assert_eq!(explained(chain)["messages"]["certificate_bytes"], bytes);
        let measured = compare_with(&[
            "--baseline",
            &format!("{GROUP}/{chain}"),
            "--connections=1",
            "--rtt=1ms",
            "--data=0KiB",
        ]);
        assert_eq!(measured.rows[0].number("certificate_bytes"), bytes);
    }
}

fn explained(chain: &str) -> Value {
    let arm = format!("{GROUP}/{chain}");
    let mut command = lastbyte(["explain", &arm, "--format", "json"]);
    let ended = run(command.args(["--chain-profile", "private"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    document["arms"][0].clone()
}

/// What stands in for a chain costs on the wire what the chain itself does, and what arithmetic says of it.
#[test]
fn a_stand_in_is_measured_in_the_place_of_a_chain_without_its_key() {
    const COLUMNS: [&str; 5] = [
        "client_hello_bytes",
        "certificate_bytes",
        "certificate_verify_bytes",
        "server_flight_wire_bytes",
        "certificates",
    ];
    let folder = TempDir::new().unwrap();
    for description in [
        "ml-dsa-44/intermediates=2/scts=2",
        "rsa-2048+rsa-4096",
        "fn-dsa-512",
    ] {
        let chain = chain(description);
        let file = write(&folder, "site.pem", chain.certificates());
        let ended = run(&mut lastbyte([
            "compare",
            "--baseline",
            &format!("{GROUP}/{description}"),
            "--against",
            &format!("{GROUP}/{file}"),
            "--chain-profile=private",
            "--connections=2",
            "--rtt=1ms",
            "--data=0KiB",
            "--output",
            at(&folder, "rows.csv").to_str().unwrap(),
        ]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let note = format!(
            "lastbyte: {file} (no private key here): measured with a stand-in of the same names, sizes, algorithms and \
             extensions\n"
        );
        assert_eq!(ended.stderr.matches(&note).count(), 1, "{ended:?}");
        let rows = crate::common::read_rows(&at(&folder, "rows.csv"));
        assert_eq!(rows.len(), 4);
        for column in COLUMNS {
            let numbers: Vec<u64> = rows.iter().map(|row| row.number(column)).collect();
            assert!(
                numbers.iter().all(|number| *number == numbers[0]),
                "{column} {numbers:?}"
            );
        }
        let explained = explained(&file);
        let messages = &explained["messages"];
        for column in &COLUMNS[..3] {
            assert_eq!(messages[column], rows[0].number(column), "{column}");
        }
        let flight = &explained["server_flight_wire_bytes"];
        assert_eq!(*flight, rows[0].number("server_flight_wire_bytes"));
        // Repeated, it is the same chain.
        let digests: Vec<&str> = rows.iter().map(|row| row.text("chain_sha256")).collect();
        let again = compare_with(&[
            "--baseline",
            &format!("{GROUP}/{file}"),
            "--connections=1",
            "--rtt=1ms",
            "--data=0KiB",
        ]);
        assert!(digests.contains(&again.rows[0].text("chain_sha256")));
        assert_ne!(digests[0], digests[3]);
    }
}

/// A name that is not as long as ours is in the ClientHello as well.
#[test]
fn arithmetic_knows_the_name_of_a_chain() {
    let chain = test_chains::for_name("a.much.longer.name.of.a.shop.example").unwrap();
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "site.pem", chain.certificates());
    let explained = explained(&file);
    let measured = compare_with(&[
        "--baseline",
        &format!("{GROUP}/{file}"),
        "--connections=1",
        "--rtt=1ms",
        "--data=0KiB",
    ]);
    let row = &measured.rows[0];
    for column in ["client_hello_bytes", "certificate_bytes"] {
        assert_eq!(
            explained["messages"][column],
            row.number(column),
            "{column}"
        );
    }
}

#[test]
fn a_server_is_asked_for_its_chain() {
    let chain = chain("ml-dsa-44/intermediates=2");
    let server = serve(&chain);
    let told = shown(&server);
    let bytes = chain.certificate_message_bytes();
    assert!(
        told.starts_with(&format!(
            "Certificate message  {bytes} B for server.example\n"
        )),
        "{told}"
    );
    assert_eq!(told.matches(" B sent, key ml-dsa-44").count(), 3, "{told}");
    // No client trusts a chain of ours.
    let last = told.lines().last().unwrap();
    let lacks = format!("\"{server}\" lacks the issuer of its certificate 3");
    assert!(
        last.starts_with(&lacks) || last.ends_with("was not checked"),
        "{told}"
    );

    assert_eq!(explained(&server)["messages"]["certificate_bytes"], bytes);
    let ended = run(&mut lastbyte(["explain", &server, "--data", "0KiB"]));
    assert!(
        ended.stdout.starts_with(&format!("{GROUP}/{server}\n")),
        "{ended:?}"
    );
    let arm = format!("{GROUP}/{server}");
    let measured = compare_with(&[
        "--baseline",
        &arm,
        "--connections=1",
        "--rtt=1ms",
        "--data=0KiB",
    ]);
    assert_eq!(measured.rows[0].number("certificate_bytes"), bytes as u64);
    assert_eq!(measured.rows[0].text("arm"), arm);
}

/// A root that a server sends is sent.
#[test]
fn what_a_server_sends_is_what_it_sends() {
    let spec = ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(lastbyte_pki::KeyAlgorithm::EcdsaP256)
    };
    let chain = store().chain(&spec).unwrap();
    let told = shown(&serve(&chain));
    assert_eq!(told.matches(" B sent").count(), 3, "{told}");
    let last = told.lines().last().unwrap();
    assert!(
        last.contains("ends in a root, ") || last.ends_with("was not checked"),
        "{told}"
    );
    let bytes = chain.certificate_message_bytes();
    assert!(
        told.starts_with(&format!("Certificate message  {bytes} B")),
        "{told}"
    );
}

/// As many servers do: the end-entity twice, and a CA that has signed none of it. Clients don't mind.
#[test]
fn what_a_server_sends_besides_its_chain_is_measured_and_told() {
    let chain = chain("ecdsa-p256/intermediates=1");
    let foreign = test_chains::for_name("other.example").unwrap();
    let [leaf, issuer] = chain.certificates() else {
        panic!()
    };
    let sent = [leaf, leaf, &foreign.certificates()[1], issuer].map(Clone::clone);
    let server = serve_certificates(&sent, &chain);
    let note = format!(
        "lastbyte: {server} sends certificate 2, 3 besides its chain, which is measured so"
    );
    let arm = format!("{GROUP}/{server}");
    let question = [
        "compare",
        "--baseline",
        &arm,
        "--connections=1",
        "--rtt=1ms",
        "--data=0KiB",
    ];
    let folder = TempDir::new().unwrap();
    let rows = at(&folder, "rows.csv");
    let ended = run(lastbyte(question).arg("-o").arg(&rows));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains(&note), "{ended:?}");
    let lengths = sent.iter().map(|sent| sent.to_der().unwrap().len());
    let bytes = 4 + 1 + 3 + lengths.map(|der| 3 + der + 2).sum::<usize>();
    let rows = fs::read_to_string(rows).unwrap();
    assert!(rows.contains(&format!(",{bytes},")), "{bytes}: {rows}");
    assert_eq!(explained(&server)["messages"]["certificate_bytes"], bytes);
}

#[test]
fn servers_that_do_not_show_a_chain_are_told_in_one_line() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let http = listen(|mut socket| {
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = socket.read(&mut [0; 4096]);
    });
    let hangs_up = listen(|mut socket| {
        let _ = socket.read(&mut [0; 4096]);
    });
    // It has no certificate that it could send.
    let refuses = {
        let acceptor = SslAcceptor::mozilla_modern_v5(SslMethod::tls_server())
            .unwrap()
            .build();
        listen(move |socket| {
            let _ = acceptor.accept(socket);
        })
    };
    for (server, expected) in [
        (&closed, "refuses the connection at 127.0.0.1:"),
        (
            &http,
            "speaks no TLS at this port: name the port of its TLS",
        ),
        (
            &hangs_up,
            "hangs up before it says anything: name the port of its TLS",
        ),
        (
            &refuses,
            "refuses the handshake with alert protocol_version (70): it may speak neither TLS 1.3 nor TLS 1.2; or name a PEM file",
        ),
        (
            &"no.such.name.invalid:443".to_owned(),
            "has no address: check its name, and DNS",
        ),
    ] {
        let arm = format!("{GROUP}/{server}");
        for command in [
            &["chain", "show", server.as_str()][..],
            &["explain", &arm],
            &["compare", "--baseline", &arm],
            &["plan", server],
            &["reduce", &arm],
        ] {
            assert_refused(command, 1, &format!("lastbyte: {server} {expected}"));
        }
    }
}

#[test]
fn a_server_that_stalls_is_waited_for_ten_seconds() {
    // One says nothing, one says something from time to time, but never enough.
    let silent = listen(|socket| {
        thread::sleep(Duration::from_secs(60) + socket.read_timeout().unwrap().unwrap_or_default())
    });
    let slow = listen(|mut socket| {
        // The beginning of a handshake record.
        for byte in [22, 3, 3, 64, 0].into_iter().chain([2; 60]) {
            let _ = socket.write_all(&[byte]);
            thread::sleep(Duration::from_secs(1));
        }
    });
    let cases = [
        (silent, "does not answer within 10 s: check its port"),
        (
            slow,
            "begins to answer, and has not sent its certificates within 10 s: is it TLS, at this port?",
        ),
    ];
    let asked = cases.map(|(server, expected)| {
        thread::spawn(move || {
            let began = Instant::now();
            let expected = format!("lastbyte: {server} {expected}");
            assert_refused(&["chain", "show", &server], 1, &expected);
            assert!(began.elapsed() > Duration::from_secs(9));
        })
    });
    for asked in asked {
        asked.join().unwrap();
    }
}

#[test]
fn a_server_without_its_port_is_told_what_to_write() {
    let hint = "unknown chain \"shop.example\": for a server, write \"shop.example:443\"; for a file, \"./shop.example\"";
    for command in [
        &["explain", "shop.example"][..],
        &["compare", "--baseline", "x25519/shop.example"],
        &["chain", "show", "shop.example"],
    ] {
        let ended = run(&mut lastbyte(command));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(hint), "{ended:?}");
    }
}

#[test]
fn a_study_asks_no_server() {
    let folder = TempDir::new().unwrap();
    let study = "[arm.site]\ntls = \"x25519/shop.example:443\"\n[link.x]\nrtt = \"1ms\"\n[[measure]]\nid = \"m\"\n";
    fs::write(at(&folder, "study.toml"), study).unwrap();
    let file = at(&folder, "study.toml");
    assert_refused(
        &["run", file.to_str().unwrap()],
        2,
        "arm \"site\": what shop.example:443 sends can change, and a study is to be measured again as it was: name a file",
    );
}

#[test]
fn files_that_are_no_chain_are_told_in_one_line() {
    let folder = TempDir::new().unwrap();
    let chain = chain("ecdsa-p256/intermediates=2");
    let [leaf, first, second] = chain.certificates() else {
        panic!()
    };
    let [leaf, first, second] = [leaf, first, second].map(Clone::clone);
    let foreign = test_chains::for_name("other.example").unwrap();
    let foreign = foreign.certificates()[1].clone();
    let order = write(
        &folder,
        "order.pem",
        &[first.clone(), leaf.clone(), second.clone()],
    );
    let between = write(
        &folder,
        "between.pem",
        &[leaf.clone(), foreign, first.clone(), second],
    );
    let missing = write(
        &folder,
        "missing.pem",
        &[leaf.clone(), chain.root().clone()],
    );
    let problems = [
        (
            order,
            "is out of order: its leaf is certificate 2 (CN=server.example); put its certificates in the order 2, 1, 3",
        ),
        (
            between,
            "has a certificate that signed none of the others: leave out certificate 2",
        ),
        (missing, "lacks the issuer of its certificate 1"),
    ];
    for (file, problem) in &problems {
        let arm = format!("{GROUP}/{file}");
        let expected = format!("{file:?} {problem}");
        assert_refused(&["compare", "--baseline", &arm], 2, &expected);
        assert_refused(&["plan", file], 2, &expected);
        // It can be shown all the same.
        let told = shown(file);
        assert!(
            told.lines().last().unwrap().starts_with(&expected),
            "{told}"
        );
    }
    for (file, problem) in &problems[..2] {
        let arm = format!("{GROUP}/{file}");
        assert_refused(&["explain", &arm], 2, problem);
    }
}

#[test]
fn files_without_certificates_are_told_in_one_line() {
    let folder = TempDir::new().unwrap();
    let chain = chain("ecdsa-p256");
    let leaf = &chain.certificates()[0];
    fs::write(at(&folder, "leaf.der.pem"), leaf.to_der().unwrap()).unwrap();
    fs::write(at(&folder, "empty.pem"), "").unwrap();
    fs::write(
        at(&folder, "key.pem"),
        chain.key().private_key_to_pem_pkcs8().unwrap(),
    )
    .unwrap();
    let path = |name: &str| at(&folder, name).to_str().unwrap().to_owned();
    for (name, problem) in [
        ("leaf.der.pem", "is DER, not PEM: convert it with"),
        ("empty.pem", "is empty: write certificates in PEM into it"),
        ("key.pem", "holds no certificate, only \"PRIVATE KEY\""),
        ("none.pem", "can't be read: No such file"),
    ] {
        let file = path(name);
        let expected = format!("{file:?} {problem}");
        assert_refused(&["chain", "show", &file], 2, &expected);
        assert_refused(&["explain", &format!("{GROUP}/{file}")], 2, &expected);
        assert_refused(
            &["compare", "--baseline", &format!("{GROUP}/{file}")],
            2,
            &expected,
        );
    }
}

/// A key that can't be read is not as good as none: it was meant to be used.
#[test]
fn a_key_that_is_encrypted_is_in_the_way_of_measuring_alone() {
    let folder = TempDir::new().unwrap();
    let chain = chain("ecdsa-p256");
    let file = write(&folder, "chain.pem", chain.certificates());
    let key = PKey::private_key_from_pem(&chain.key().private_key_to_pem_pkcs8().unwrap()).unwrap();
    let encrypted = key.private_key_to_pem_pkcs8_passphrase(Cipher::aes_128_cbc(), b"secret");
    fs::write(at(&folder, "key.pem"), encrypted.unwrap()).unwrap();
    assert!(shown(&file).starts_with("Certificate message"));
    let expected =
        "key.pem\" holds an encrypted key: decrypt it with \"openssl pkey -in FILE -out key.pem\"";
    assert_refused(
        &["compare", "--baseline", &format!("{GROUP}/{file}")],
        2,
        expected,
    );
}

/// To the byte: what is said to be left is, and what is said to have to go is.
#[test]
fn what_saves_a_round_trip_is_said_to_the_byte() {
    let arm = |bytes: u64| format!("{GROUP}/ml-dsa-44:{bytes}B");
    let said = |arm: &str| {
        let ended = run(&mut lastbyte(["explain", arm, "--initcwnd", "10"]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        // A sentence goes on in lines that begin with spaces.
        let lines = ended
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("initcwnd 10: "));
        let first = lines.clone().take(1);
        let rest = lines.skip(1).take_while(|line| line.starts_with("  "));
        let words = first.chain(rest).map(str::trim).collect::<Vec<_>>();
        words.join(" ")
    };
    let document = explained("ml-dsa-44");
    let edge = document["windows"][0]["room"]["certificate_bytes"]
        .as_u64()
        .unwrap();
    assert_eq!(
        said(&arm(edge - 1)),
        "initcwnd 10: it fits one flight, and 1 byte is left for the chain"
    );
    assert_eq!(
        said(&arm(edge)),
        "initcwnd 10: it fits one flight, and 0 bytes are left for the chain"
    );
    assert_eq!(
        said(&arm(edge + 1)),
        "initcwnd 10: the server's handshake takes 2 flights: cut 1 byte of the chain, or start with a window of 11, to save the round trip"
    );
    assert_eq!(
        said(&arm(edge + 1448)),
        "initcwnd 10: the server's handshake takes 2 flights: cut 1448 bytes of the chain, or start with a window of 11 (nginx: 12), to save the round trip"
    );
    assert_eq!(
        said(&arm(edge + 1449)),
        "initcwnd 10: the server's handshake takes 2 flights: cut 1449 bytes of the chain, or start with a window of 12, to save the round trip"
    );
    assert!(said(&arm(60_000)).ends_with(", to save a round trip"));
    // The window that is named does, and the one before does not.
    let flights = |initcwnd: &str| {
        let arm = arm(edge + 1449);
        let ended = run(&mut lastbyte([
            "explain",
            &arm,
            "--initcwnd",
            initcwnd,
            "--format",
            "json",
        ]));
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        document["arms"][0]["windows"][0]["server_flights"]
            .as_u64()
            .unwrap()
    };
    assert_eq!((flights("11"), flights("12")), (2, 1));
}

/// As the program of OpenSSL serves a chain, where there is one.
#[test]
fn openssl_shows_its_chain() {
    let folder = TempDir::new().unwrap();
    let chain = chain("ecdsa-p256");
    let file = write(&folder, "chain.pem", &chain.certificates()[..1]);
    let issuers = write(&folder, "issuers.pem", &chain.certificates()[1..]);
    fs::write(
        at(&folder, "key.pem"),
        chain.key().private_key_to_pem_pkcs8().unwrap(),
    )
    .unwrap();
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    for version in ["-tls1_3", "-tls1_2"] {
        let server = Command::new("openssl")
            .args([
                "s_server",
                "-quiet",
                "-accept",
                &port.to_string(),
                version,
                "-cert",
                &file,
            ])
            .args(["-cert_chain", &issuers, "-key"])
            .arg(at(&folder, "key.pem"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut server) = server else {
            assert!(!Path::new("/usr/bin/openssl").exists());
            return;
        };
        let address = format!("localhost:{port}");
        let told = (0..100).find_map(|_| {
            thread::sleep(Duration::from_millis(100));
            let ended = show(&address);
            (ended.code == Some(0)).then_some(ended.stdout)
        });
        server.kill().unwrap();
        server.wait().unwrap();
        let told = told.unwrap();
        let bytes = chain.certificate_message_bytes();
        assert!(
            told.starts_with(&format!(
                "Certificate message  {bytes} B for server.example"
            )),
            "{told}"
        );
    }
}
