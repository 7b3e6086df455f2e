//! `lastbyte probe`, against servers of this machine that do what they should, and whatever else servers do.
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, test_chains};
use lastbyte_probe::JSON_SCHEMA;
use openssl::ssl::{
    SslAcceptor, SslAcceptorBuilder, SslContextBuilder, SslMethod, SslStream, SslVersion,
};
use openssl::x509::X509;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Ended, assert_fits, at, lastbyte, run, store};

mod quic;

/// Answers as often as it is asked, at a port of this address.
fn listen_at(address: &str, answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || answer(socket.unwrap()));
        }
    });
    address
}

fn listen(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    listen_at("127.0.0.1:0", answer)
}

fn chain() -> Chain {
    let mut spec = ChainSpec::new(KeyAlgorithm::EcdsaP256);
    spec.intermediates = 1;
    store().chain(&spec).unwrap()
}

fn acceptor(chain: &Chain, settings: impl Fn(&mut SslAcceptorBuilder)) -> SslAcceptor {
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    let (leaf, issuers) = chain.certificates().split_first().unwrap();
    acceptor.set_certificate(leaf).unwrap();
    acceptor.set_private_key(chain.key()).unwrap();
    for issuer in issuers {
        acceptor.add_extra_chain_cert(issuer.clone()).unwrap();
    }
    acceptor.clear_options(openssl::ssl::SslOptions::NO_TICKET);
    acceptor.clear_options(openssl::ssl::SslOptions::NO_TLSV1_3);
    let context: &mut SslContextBuilder = &mut acceptor;
    context.set_session_id_context(b"lastbyte").unwrap();
    settings(&mut acceptor);
    acceptor.build()
}

fn request(stream: &mut SslStream<TcpStream>) {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
        seen.push(byte[0]);
    }
}

/// A server of HTTPS that answers each request so.
fn serve(
    acceptor: SslAcceptor,
    answer: impl Fn(&mut SslStream<TcpStream>) + Send + Sync + 'static,
) -> String {
    listen(move |socket| {
        socket.set_nodelay(true).unwrap();
        if let Ok(mut stream) = acceptor.accept(socket) {
            request(&mut stream);
            answer(&mut stream);
            let _ = stream.shutdown();
        }
    })
}

fn large(stream: &mut SslStream<TcpStream>) {
    let body = vec![b'x'; 100_000];
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nAlt-Svc: h3=\":443\"\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&body);
}

/// Ends the connection at once, with a RST.
fn reset(socket: TcpStream) {
    let socket = socket2::Socket::from(socket);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

fn probe(arguments: &[&str]) -> Ended {
    run(lastbyte(["probe", "--max-rate", "1000"]).args(arguments))
}

fn found(address: &str) -> Value {
    let ended = probe(&[address, "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, JSON_SCHEMA);
    document
}

/// That it ends with this code, and a last line that holds that.
#[track_caller]
fn assert_refused(arguments: &[&str], code: i32, expected: &str) {
    let ended = probe(arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    assert_eq!(ended.stdout, "", "{arguments:?}");
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.contains(expected), "{arguments:?}: {ended:?}");
    assert!(ended.stderr.lines().count() <= 2, "{ended:?}");
}

#[test]
fn a_server_is_found() {
    let chain = chain();
    let address = serve(acceptor(&chain, |_| {}), large);
    let document = found(&address);
    assert_eq!(document["host"], address.as_str());
    assert_eq!(document["group"], "X25519MLKEM768");
    assert_eq!(document["tls"]["version"], "TLSv1.3");
    assert_eq!(
        document["tls"]["certificate_bytes"],
        chain.certificate_message_bytes()
    );
    assert_eq!(document["tls"]["resumed"], true);
    assert_eq!(document["tls"]["tickets"], 2);
    assert_eq!(document["response"]["status"], 200);
    assert_eq!(document["response"]["is_whole"], true);
    assert_eq!(document["response"]["alt_svc"], "h3=\":443\"");
    let sent: Vec<_> = chain
        .certificates()
        .iter()
        .map(|one| one.to_der().unwrap().len())
        .collect();
    let told: Vec<_> = document["chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["bytes"].as_u64().unwrap() as usize)
        .collect();
    assert_eq!(told, sent);
    assert_eq!(document["chain"][0]["algorithm"], "ecdsa-p256");
    // A root of our own.
    assert!(document["tls"]["distrusted"].is_string());
    let edges: Vec<_> = document["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| edge["chain"].as_str().unwrap())
        .collect();
    assert_eq!(edges, ["today", "ml-dsa-44", "ml-dsa-65", "ml-dsa-87"]);
}

#[test]
fn it_is_told_for_people_monitoring_and_prometheus() {
    let address = serve(acceptor(&chain(), |_| {}), large);
    let folder = TempDir::new().unwrap();
    let metrics = at(&folder, "site.prom");
    let ended = probe(&[&address, "--textfile", metrics.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in [
        "initial window",
        "key exchange       X25519MLKEM768",
        "ml-dsa-65",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let metrics = fs::read_to_string(metrics).unwrap();
    assert!(
        metrics.contains(&format!(
            "lastbyte_probe_rtt_seconds{{host=\"{address}\"}} 0."
        )),
        "{metrics}"
    );
    assert!(
        metrics
            .lines()
            .all(|line| line.starts_with("# ") || line.starts_with("lastbyte_probe_"))
    );
    let line = probe(&[&address, "--format", "line"]).stdout;
    assert_eq!(line.lines().count(), 1);
    assert!(line.contains(&format!("host={address} rtt_ms=")), "{line}");
    assert!(line.contains(" trusted=no"), "{line}");

    // Nothing is left there of it once it is gone.
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let file = at(&folder, "site.prom");
    let ended = probe(&[&gone, "--textfile", file.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let left = fs::read_to_string(file).unwrap();
    let values: Vec<_> = left.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        values,
        [format!("lastbyte_probe_success{{host=\"{gone}\"}} 0")]
    );

    // Whoever writes an alert finds their names.
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/probe.md");
    let document = fs::read_to_string(document).unwrap();
    let keys = line
        .split_whitespace()
        .filter_map(|field| field.split('=').next());
    let names = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let names = names.filter_map(|line| line.split(' ').next());
    for name in keys.chain(names) {
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn an_earlier_probe_is_asked_what_if() {
    let address = serve(acceptor(&chain(), |_| {}), large);
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "probe.json");
    let mut document = found(&address);
    document["rtt_ms"] = 50.into();
    document["initial_window"] = 10.into();
    document.as_object_mut().unwrap().remove("rate_mbit");
    document["mss"] = 1448.into();
    // The explorer's page begins with it.
    let seen = lastbyte::report::explore::Probe::read(&document.to_string()).unwrap();
    assert_eq!((seen.initial_window, seen.mss), (Some(10), Some(1448)));
    fs::write(&file, document.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let ended = probe(&[
        "--from",
        file,
        "--what-if",
        "ml-dsa-44,ml-dsa-87/intermediates=0,ml-dsa-87",
        "--networks",
        "lte,geo",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<_> = ended
        .stdout
        .lines()
        .filter(|line| line.starts_with("ml-dsa-87 "))
        .collect();
    // One flight more, so a round trip of 50 ms.
    assert!(
        lines
            .iter()
            .any(|line| line.contains("the measured path") && line.contains("+50.")),
        "{}",
        ended.stdout
    );
    assert_eq!(
        ended.stdout.matches("  geo ").count(),
        4,
        "{}",
        ended.stdout
    );
    assert_refused(
        &["--from", file, "--what-if", "ml-dsa-65/intermediates=7"],
        2,
        "the chain has 1",
    );
    assert_refused(
        &["--from", file, "--measure"],
        2,
        "suppose a chain with --what-if",
    );
    assert_refused(&["--from", file, "--what-if", "ml-dsa-66"], 2, "ml-dsa-65");
}

/// A probe of a server with a response of 100 KB over a path of 50 ms. Of two, a signature can differ by a byte.
fn seen() -> Value {
    let address = serve(acceptor(&chain(), |_| {}), large);
    let mut document = found(&address);
    document["rtt_ms"] = 50.into();
    document["initial_window"] = 4.into();
    document["mss"] = 1448.into();
    document["response"]["wire_bytes"] = 100_000.into();
    document.as_object_mut().unwrap().remove("rate_mbit");
    document
}

/// Such a probe, with what is said of it besides.
fn kept(folder: &TempDir, change: impl Fn(&mut Value)) -> String {
    keep(folder, seen(), change)
}

fn keep(folder: &TempDir, mut document: Value, change: impl Fn(&mut Value)) -> String {
    change(&mut document);
    let file = at(folder, "probe.json");
    fs::write(&file, document.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What the first chain of an answer has for the measured path.
fn what_if(file: &str, arguments: &[&str]) -> Value {
    let asked = ["--from", file, "--what-if", "ml-dsa-65", "--format", "json"];
    let ended = probe(&[&asked, arguments].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&answer, JSON_SCHEMA);
    answer["what_if"][0]["times"][0].clone()
}

/// OpenSSL writes what it was given at once into records of 16 KB: the client has to wait for the whole of the first.
#[test]
fn the_first_byte_waits_for_the_first_record_that_was_seen() {
    let folder = TempDir::new().unwrap();
    let probed = seen();
    let of_record = |bytes: Option<u32>| {
        let file = keep(&folder, probed.clone(), |document| {
            let seen = document["response"]["first_record_wire_bytes"].as_u64();
            assert!(seen.is_some_and(|seen| seen > 22), "{document}");
            let response = document["response"].as_object_mut().unwrap();
            response.remove("first_record_wire_bytes");
            if let Some(bytes) = bytes {
                response.insert("first_record_wire_bytes".into(), bytes.into());
            }
        });
        let times = what_if(&file, &[]);
        let told = probe(&["--from", &file, "--what-if", "ml-dsa-65"]).stdout;
        (times["first_byte_ms"].as_f64().unwrap(), told)
    };
    let (small, told) = of_record(Some(300));
    assert!(!told.contains("the first record, which was seen"), "{told}");
    // 16 KB are twelve segments, and the window holds four, or eight once the handshake was acknowledged.
    let (large, told) = of_record(Some(16_406));
    assert!(large > small + 49.0, "{small} and {large}");
    assert!(
        told.contains("the first record, which was seen to have 16406 B"),
        "{told}"
    );
    let (unknown, told) = of_record(None);
    assert_eq!(unknown, small);
    assert!(told.contains("its length was not seen"), "{told}");
}

/// A server without a share of the client's asks for one, which is a round trip; and the chain that it has, supposed once more, is no
/// other one, although signatures of ECDSA differ by a byte.
/// Keys of several algorithms, and another key exchange, to the byte.
#[test]
fn keys_of_several_kinds_and_another_key_exchange_are_supposed() {
    let folder = TempDir::new().unwrap();
    let acceptor = acceptor(&chain(), |acceptor| {
        acceptor.set_groups_list("X25519").unwrap();
    });
    let file = keep(&folder, found(&serve(acceptor, large)), |document| {
        document["rtt_ms"] = 50.into();
        document["mss"] = 1448.into();
        document["initial_window"] = 10.into();
    });
    let asked = "ml-dsa-65,ml-dsa-44+ml-dsa-65,ml-dsa-44+ml-dsa-65+ecdsa-p256,today/group=X25519MLKEM768,today/group=x25519";
    let asked = [
        "--from",
        &file,
        "--what-if",
        asked,
        "--rate",
        "100gbit",
        "--format",
        "json",
    ];
    let ended = probe(&asked);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    let chain = |number: usize| &answer["what_if"][number];
    let certificates = |number: usize| -> Vec<i64> {
        let certificates = chain(number)["certificates"].as_array().unwrap();
        certificates
            .iter()
            .map(|bytes| bytes.as_i64().unwrap())
            .collect()
    };
    assert_eq!(chain(2)["chain"], "ml-dsa-44+ml-dsa-65");
    // FIPS 204, table 2: keys of 1312 and 1952 bytes, signatures of 2420 and 3309.
    let [same, mixed, with_root] = [1, 2, 3].map(certificates);
    assert_eq!(mixed, [same[0] - (1952 - 1312), same[1]]);
    assert_eq!(with_root[0], mixed[0]);
    // An intermediate that ECDSA signs: DER gives or takes a byte of its two numbers.
    assert!(
        (mixed[1] - with_root[1] - (3309 - 71)).abs() <= 4,
        "{with_root:?}"
    );
    let flight = |number: usize| chain(number)["server_flight_wire_bytes"].as_i64().unwrap();
    let certificate = |number: usize| chain(number)["certificate_bytes"].as_i64().unwrap();
    let rest = |number: usize| flight(number) - certificate(number);
    // The server proves its own key.
    assert_eq!(rest(1) - rest(2), 3309 - 2420);
    // FIPS 203, table 3: a ciphertext of 1088 bytes besides.
    assert_eq!(flight(4) - flight(0), 1088);
    assert_eq!(chain(5)["times"], chain(0)["times"]);

    for (asked, expected) in [
        ("ml-dsa-44+ml-dsa-66", "ml-dsa-65"),
        ("ml-dsa-44+", "ml-dsa-44+"),
        ("ml-dsa-44+ml-dsa-65+ecdsa-p256+ecdsa-p256", "unknown chain"),
        ("today/group=x25518", "x25519"),
        ("today/group=x25519/group=x25519", "given twice"),
        ("today/intermediates=0/intermediates=1", "given twice"),
    ] {
        assert_refused(&["--from", &file, "--what-if", asked], 2, expected);
    }
}

/// What a table comes to is said before it.
#[test]
fn what_if_begins_with_what_it_comes_to() {
    let folder = TempDir::new().unwrap();
    let told = |change: &dyn Fn(&mut Value), asked: &str| {
        let file = kept(&folder, change);
        let ended = probe(&["--from", &file, "--what-if", asked, "--rate", "10gbit"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let start = format!("{asked}: ");
        let line = ended
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{}", ended.stdout))
            .to_owned()
    };
    // A window of 4 opens to 8 and to 16 while ML-DSA-87 goes, and 100 KB find it so.
    let longer = told(&|_| {}, "ml-dsa-87");
    assert_eq!(
        longer,
        "2 flights more, the first byte 100.0 ms later, the last byte at the same time: the larger handshake has opened the \
         window further, which brings forward the last byte by 100.0 ms"
    );
    let as_many = told(
        &|document| document["initial_window"] = 40.into(),
        "ml-dsa-44",
    );
    assert_eq!(as_many, "as many flights, the first byte at the same time");
}

#[test]
fn a_hello_retry_request_and_the_same_chain_are_as_they_were() {
    let folder = TempDir::new().unwrap();
    let of_group = |groups: &'static str| {
        let acceptor = acceptor(&chain(), |acceptor| {
            acceptor.set_groups_list(groups).unwrap()
        });
        let mut document = found(&serve(acceptor, large));
        document["rtt_ms"] = 50.into();
        document["initial_window"] = 10.into();
        document["mss"] = 1448.into();
        let file = keep(&folder, document.clone(), |_| {});
        let asked = [
            "--from",
            &file,
            "--what-if",
            "ecdsa-p256",
            "--rate",
            "100gbit",
            "--format",
            "json",
        ];
        let ended = probe(&asked);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        let [today, same] = [0, 1].map(|number| answer["what_if"][number].clone());
        assert_eq!(today["times"], same["times"]);
        assert_eq!(
            today["server_flight_wire_bytes"],
            same["server_flight_wire_bytes"]
        );
        assert_eq!(
            today["server_flight_wire_bytes"],
            document["tls"]["server_flight_wire_bytes"]
        );
        let handshake = today["times"][0]["handshake_ms"].as_f64().unwrap();
        (
            document["tls"]["hello_retry"].as_bool(),
            (handshake / 50.0).round(),
        )
    };
    assert_eq!(of_group("X25519"), (Some(false), 2.0));
    assert_eq!(of_group("P-384"), (Some(true), 3.0));
}

/// What comes before a response is none, and what ends a connection is no part of it.
#[test]
fn a_response_is_all_of_itself_and_nothing_else() {
    const RESPONSE: &str =
        "HTTP/1.1 404 Not Found\r\nAlt-Svc: h3=\":443\"\r\nContent-Length: 5\r\n\r\nhello";
    const EARLY: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    const RECORD: u64 = 5 + 1 + 16;
    for early in ["", EARLY] {
        let address = serve(acceptor(&chain(), |_| {}), move |stream| {
            let _ = stream.write_all(early.as_bytes());
            // At once with the close_notify, which is no part of it.
            let _ = stream.write_all(RESPONSE.as_bytes());
        });
        let response = found(&address)["response"].clone();
        assert_eq!(response["status"], 404, "{response}");
        assert_eq!(response["alt_svc"], "h3=\":443\"");
        let bytes = (early.len() + RESPONSE.len()) as u64;
        let records = if early.is_empty() { 1 } else { 2 };
        assert_eq!(response["wire_bytes"], bytes + records * RECORD);
        assert_eq!(response["is_whole"], true);
    }
}

/// Asks each site of a file, with one connection.
fn fleet(hosts: &Path, results: &Path, more: &[&str]) -> Ended {
    let [hosts, results] = [hosts, results].map(|path| path.to_str().unwrap());
    let fleet = ["--fleet", hosts, "--results", results, "--connections", "1"];
    probe(&[&fleet, more].concat())
}

/// What comes before a response without end is one site's affair, and a fleet's other sites are probed; budgets hold for those.
#[test]
fn interim_responses_without_end_are_one_sites_affair() {
    let flood = serve(acceptor(&chain(), |_| {}), |stream| {
        let _ = stream.write_all("HTTP/1.1 103 \r\n\r\n".repeat(3_000).as_bytes());
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    let good = serve(acceptor(&chain(), |_| {}), large);
    let folder = TempDir::new().unwrap();
    let [hosts, results] = ["hosts.txt", "results.jsonl"].map(|name| at(&folder, name));
    fs::write(&hosts, format!("{flood}\n{good}\n")).unwrap();
    let ended = fleet(&hosts, &results, &["--fail-if", "certificate > 1B"]);
    assert_eq!(ended.code, Some(99), "{ended:?}");
    let exceeded = format!(
        "budget exceeded: certificate > 1B: {}",
        good.split(':').next().unwrap()
    );
    assert!(ended.stderr.contains(&exceeded), "{ended:?}");
    let results = fs::read_to_string(&results).unwrap();
    assert_eq!(results.lines().count(), 2, "{results}");
    assert!(
        results.contains("more than 32 interim responses"),
        "{results}"
    );
    // Needs of whole populations are none of a site.
    let good = [good.as_str(), "--fail-if", "waiting > 1%"];
    assert_refused(
        &good,
        2,
        "waiting is of `lastbyte plan`, which asks whole populations",
    );
}

/// What nobody would send is left out of what is supposed, and takes nothing else away.
#[test]
fn a_chain_of_many_certificates_is_probed() {
    let chain = chain();
    let many = acceptor(&chain, |acceptor| {
        for _ in 0..150 {
            let issuer = chain.certificates()[1].clone();
            acceptor.add_extra_chain_cert(issuer).unwrap();
        }
    });
    let document = found(&serve(many, large));
    let notes = document["notes"].to_string();
    assert!(
        notes.contains("of 152 certificates, the first 100"),
        "{notes}"
    );
    let edges = document["edges"].as_array().unwrap();
    let chains: Vec<&str> = edges
        .iter()
        .filter_map(|edge| edge["chain"].as_str())
        .collect();
    assert!(
        chains.contains(&"today") && !chains.contains(&"ml-dsa-87"),
        "{chains:?}"
    );
}

#[test]
fn what_would_change_nothing_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = kept(&folder, |_| {});
    let what_if = ["--from", &file, "--what-if", "ml-dsa-65"];
    assert_refused(
        &[&what_if[..], &["--format", "line"]].concat(),
        2,
        "--format line has no what-if",
    );
    assert_refused(
        &[&what_if[..], &["--measure", "--format", "json"]].concat(),
        2,
        "--measure prints tables",
    );
    assert_refused(
        &["localhost:1", "--results", "sites.jsonl"],
        2,
        "--results keeps what is found of many sites",
    );
    // Before anybody is asked.
    let nothing = at(&folder, "nothing.pem");
    fs::write(&nothing, "nothing").unwrap();
    for (roots, expected) in [
        ("no/roots.pem", "--ca \"no/roots.pem\": No such file"),
        (nothing.to_str().unwrap(), "it has no certificate in PEM"),
        ("/dev/zero", "--ca \"/dev/zero\": "),
    ] {
        assert_refused(&["localhost:1", "--ca", roots], 2, expected);
    }
}

/// Tickets come before the response and have their part of the window; what the laboratory measures of such a server is what
/// arithmetic says of it, on both sides of each edge.
#[test]
fn what_is_supposed_is_what_is_measured() {
    let folder = TempDir::new().unwrap();
    let probed = seen();
    assert_eq!(probed["tls"]["tickets"], 2);
    let tickets = probed["tls"]["ticket_wire_bytes"].as_u64().unwrap();
    assert!((300..800).contains(&tickets), "{tickets}");
    let mut round_trips = Vec::new();
    for segments in 3..6 {
        // A window's worth of segments, with the tickets or without.
        for bytes in [segments * 1448 - tickets - 40, segments * 1448] {
            let file = keep(&folder, probed.clone(), |document| {
                document["response"]["wire_bytes"] = bytes.into();
                document["response"]["first_record_wire_bytes"] = bytes.into();
                // On a busy machine they can be seen to leave apart, which the laboratory's server does not.
                let tls = document["tls"].as_object_mut().unwrap();
                tls.remove("ticket_writes");
            });
            let asked = ["--from", &file, "--what-if", "ml-dsa-44"];
            let told = what_if(&file, &[]);
            let supposed = told["first_byte_ms"].as_f64().unwrap();
            // The user's own cache has the kernel.
            let mut measure = lastbyte(["probe"]);
            measure
                .args(asked)
                .arg("--measure")
                .env_remove("LASTBYTE_CACHE");
            let ended = run(&mut measure);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let (_, told) = ended.stdout.split_once("\n  first byte\n").unwrap();
            let (told, _) = told.split_once(" ms").unwrap();
            let measured: f64 = told.split_whitespace().last().unwrap().parse().unwrap();
            assert!(
                (measured - supposed).abs() < 0.2,
                "{bytes}: {supposed} and {measured}"
            );
            round_trips.push((supposed / 50.0) as u32);
        }
    }
    round_trips.dedup();
    assert!(round_trips.len() > 1, "{round_trips:?}");
}

#[test]
fn a_rate_that_was_not_seen_is_said_to_be_supposed() {
    let folder = TempDir::new().unwrap();
    let file = kept(&folder, |_| {});
    let supposed = what_if(&file, &[]);
    assert_eq!(supposed["rate_from"], "supposed");
    let rate = supposed["rate_mbit"].as_f64().unwrap();
    assert!(rate >= 1000.0, "{rate}");
    let told = |arguments: &[&str]| {
        let asked = ["--from", &file, "--what-if", "ml-dsa-65"];
        probe(&[&asked, arguments].concat()).stdout
    };
    assert!(told(&[]).contains("the measured path is supposed to carry "));
    let asked = what_if(&file, &["--rate", "1mbit"]);
    assert_eq!(
        (&asked["rate_from"], &asked["rate_mbit"]),
        (&"asked".into(), &1.0.into())
    );
    let last = |times: &Value| times["last_byte_ms"].as_f64().unwrap();
    // 100 KB take 0.8 s.
    assert!(last(&asked) > last(&supposed) + 500.0);
    assert!(!told(&["--rate", "1mbit"]).contains("supposed to carry"));
    let seen = kept(&folder, |document| document["rate_mbit"] = 2.into());
    assert_eq!(what_if(&seen, &[])["rate_from"], "seen");
    let network = &what_if(&seen, &["--networks", "lte"]);
    assert_eq!(network["rate_from"], "seen");
    assert_refused(
        &["--from", &seen, "--rate", "1mbit"],
        2,
        "suppose a chain with --what-if",
    );
}

/// Arithmetic with a kind of traffic takes what stands in the middle of what it draws, and says so.
#[test]
fn a_kind_of_traffic_is_its_medians() {
    let folder = TempDir::new().unwrap();
    let file = kept(&folder, |_| {});
    let last = |asked: &Value| asked["last_byte_ms"].as_f64().unwrap();
    let [alone, updates] = [
        &["--rate", "1mbit"][..],
        &["--rate", "1mbit", "--traffic", "updates"],
    ]
    .map(|arguments| last(&what_if(&file, arguments)));
    // Twice 78,848 B in place of 100 KB, and 200 ms between them.
    let more = updates - alone;
    assert!((500.0..1000.0).contains(&more), "{more}");
    let asked = [
        "--from",
        &file,
        "--what-if",
        "ml-dsa-65",
        "--traffic",
        "updates",
    ];
    let note = "of the traffic updates, arithmetic takes the median of each, and a full handshake: requests 2, think 200ms, upload 1KiB, data 77KiB";
    let told = probe(&asked).stderr;
    assert!(told.contains(note), "{told}");
}

/// What a chain is to a population, in the table and in JSON; by hand in the program's own tests.
#[test]
fn users_of_a_population_are_told_of() {
    let folder = TempDir::new().unwrap();
    let file = kept(&folder, |document| {
        document["response"]["first_record_wire_bytes"] = 300.into();
    });
    let population = at(&folder, "users.toml");
    let text = "[population]\njoint = { rtt = [\"80ms\", \"4ms\"], rate = [\"1gbit\", \"1mbit\"], weight = [9, 1] }\n";
    fs::write(&population, text).unwrap();
    let population = population.to_str().unwrap();
    let asked = ["--from", &file, "--what-if", "ml-dsa-87", "--population"];
    let ended = probe(&[&asked[..], &[population, "--format", "json"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&answer, JSON_SCHEMA);
    let of = |chain: usize| &answer["what_if"][chain]["users"];
    let first = |chain: usize| of(chain)["first_byte_ms"]["p50"].as_f64().unwrap();
    assert_eq!(of(1)["population"], population);
    assert_eq!(of(0)["beyond_an_edge"], 0.0);
    // The path of one in ten is too slow to be empty before acknowledgements come.
    let beyond = of(1)["beyond_an_edge"].as_f64().unwrap();
    assert!((beyond - 0.9).abs() < 0.002, "{beyond}");
    // Two flights more of a window of four: 4, 8, and what is left.
    let later = first(1) - first(0);
    assert!((160.0..161.0).contains(&later), "{later}");
    let told = probe(&[&asked[..], &[population]].concat()).stdout;
    assert!(told.contains("1000 users drawn from "), "{told}");
    let line = told
        .lines()
        .rev()
        .find(|line| line.starts_with("ml-dsa-87 "));
    assert!(line.unwrap().contains(" 90.0%  "), "{told}");
    assert_eq!(probe(&[&asked[..], &["example"]].concat()).code, Some(0));
    for (arguments, expected) in [
        (
            &["everybody"][..],
            "\"everybody\" is neither a file nor \"example\"",
        ),
        (&[file.as_str()], "probe.json"),
        (
            &["example", "--measure"],
            "--population is arithmetic alone",
        ),
    ] {
        assert_refused(&[&asked[..], arguments].concat(), 2, expected);
    }
    let alone = ["--from", &file, "--population", "example"];
    assert_refused(&alone, 2, "suppose a chain with --what-if");
}

/// Where the server writes in pieces, a segment within them that is not full takes a place in the window.
#[test]
fn writes_of_a_handshake_count_for_the_next_edge() {
    let address = serve(acceptor(&chain(), |_| {}), large);
    let document = found(&address);
    let flight = document["tls"]["server_flight_wire_bytes"]
        .as_u64()
        .unwrap();
    let folder = TempDir::new().unwrap();
    let left = |writes: Value| {
        let file = kept(&folder, |document| {
            document["initial_window"] = 4.into();
            document["tls"]["server_flight_wire_bytes"] = 5000.into();
            document["tls"].as_object_mut().unwrap().remove("writes");
            if writes.is_object() {
                document["tls"]["writes"] = writes.clone();
            }
        });
        let ended = probe(&[
            "--from",
            &file,
            "--what-if",
            "ml-dsa-65",
            "--format",
            "json",
        ]);
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        answer["what_if"][0]["times"][0]["handshake_ms"]
            .as_f64()
            .unwrap()
    };
    assert!(flight > 2000, "{flight}");
    // Four segments, and five.
    let whole = left(Value::Null);
    assert_eq!(
        left(serde_json::json!({"first": [], "is_certain": true})),
        whole
    );
    let pieces = left(serde_json::json!({"first": [1000, 100], "is_certain": true}));
    assert!((pieces - whole - 50.0).abs() < 1.0, "{whole} and {pieces}");
}

/// BBR's window grows where slow start's does not: what is told of a wider one is not sure then.
#[test]
fn what_if_says_where_windows_may_grow_otherwise() {
    let folder = TempDir::new().unwrap();
    let told = |is_paced: bool, first_byte: f64, last_byte: f64| {
        let file = kept(&folder, |document| {
            document["initial_window"] = 10.into();
            document["window"] = serde_json::json!({"least": 10, "most": 10, "certainty": "exact", "paced": is_paced});
            document["times"]["handshake_ms"] = 100.0.into();
            document["times"]["first_byte_ms"] = first_byte.into();
            document["times"]["last_byte_ms"] = last_byte.into();
            document["response"]["first_record_wire_bytes"] = 16_406.into();
            document["response"]["wire_bytes"] = 40_000.into();
            document["response"]
                .as_object_mut()
                .unwrap()
                .remove("writes");
        });
        let ended = probe(&["--from", &file, "--what-if", "ml-dsa-44"]);
        let json = probe(&[
            "--from",
            &file,
            "--what-if",
            "ml-dsa-44",
            "--format",
            "json",
        ]);
        let says = |text: &str| text.contains("may send otherwise than is supposed");
        assert_eq!(says(&ended.stdout), says(&json.stdout), "{}", ended.stdout);
        says(&ended.stdout)
    };
    // Slow start has a record of twelve segments two round trips of 50 ms after the handshake, and all else with it.
    assert!(!told(false, 200.0, 200.0));
    assert!(told(false, 160.0, 160.0));
    assert!(told(true, 200.0, 200.0));
    // As with Nagle's algorithm.
    assert!(told(false, 200.0, 250.0));
}

/// A server that breaks off after its own part of the handshake has no time of the client's.
#[test]
fn a_handshake_that_was_not_done_has_no_time() {
    let folder = TempDir::new().unwrap();
    let file = kept(&folder, |document| {
        document["times"]["handshake_ms"] = 0.0.into()
    });
    let table = probe(&["--from", &file]).stdout;
    assert!(!table.contains("handshake 0.0"), "{table}");
    let line = probe(&["--from", &file, "--format", "line"]).stdout;
    assert!(line.contains(" handshake_ms=- "), "{line}");
}

/// Each write of a response ends with a segment that need not be full: as of Go's net/http, whose twelfth KB comes a round trip
/// later than in one write.
#[test]
fn writes_of_a_response_count_for_its_last_byte() {
    let folder = TempDir::new().unwrap();
    let told = |writes: Value, format: &str| {
        let file = kept(&folder, |document| {
            document["initial_window"] = 10.into();
            document["mss"] = 1448.into();
            document["tls"]["ticket_wire_bytes"] = 0.into();
            let seen = serde_json::json!({"status": 200, "wire_bytes": 12289, "first_record_wire_bytes": 1208, "is_whole": true});
            document["response"] = seen;
            if writes.is_object() {
                document["response"]["writes"] = writes.clone();
            }
        });
        let asked = ["--from", &file, "--what-if", "today", "--format", format];
        probe(&asked).stdout
    };
    let last = |writes: Value| {
        let answer: Value = serde_json::from_str(&told(writes, "json")).unwrap();
        answer["what_if"][0]["times"][0]["last_byte_ms"]
            .as_f64()
            .unwrap()
    };
    let one = last(Value::Null);
    let writes = |first: &[u32], is_certain: bool| serde_json::json!({"first": first, "is_certain": is_certain});
    // Each probe has a signature of its own, a byte longer or shorter.
    let again = last(writes(&[], false));
    assert!((again - one).abs() < 0.001, "{one} and {again}");
    let go = writes(&[1208, 2394, 560, 4766, 3332], true);
    let later = last(go.clone()) - one;
    assert!((later - 50.0).abs() < 1.0, "{later}");
    let table = told(go, "table");
    assert!(
        table.contains("12289 B on the wire in writes of 1208, 2394, 560, 4766, 3332 B, of which 1208 B are the first record"),
        "{table}"
    );
    let nginx = told(writes(&[4118], false), "table");
    assert!(
        nginx.contains(" in writes of 4118 B each, as it seems"),
        "{nginx}"
    );
    let supposed = "the response is supposed to leave in one write";
    assert!(told(Value::Null, "table").contains(supposed));
    assert!(!told(writes(&[], true), "table").contains(supposed));
}

/// A server that chooses of ALPN says so in bytes that no chain explains.
#[test]
fn what_a_server_says_besides_its_chain_counts() {
    let choosing = acceptor(&chain(), |acceptor| {
        acceptor.set_alpn_select_callback(|_, offered| {
            openssl::ssl::select_next_proto(b"\x08http/1.1", offered)
                .ok_or(openssl::ssl::AlpnError::NOACK)
        });
    });
    let document = found(&serve(choosing, large));
    assert_eq!(document["tls"]["alpn"], "http/1.1");
    let seen = document["tls"]["server_flight_wire_bytes"]
        .as_u64()
        .unwrap();
    assert_eq!(document["edges"][0]["server_flight_wire_bytes"], seen);
    assert!(
        document["tls"]["encrypted_extensions_bytes"]
            .as_u64()
            .unwrap()
            > 15
    );
}

/// Ways to send less, in the words of arms.
#[test]
fn an_earlier_probe_is_asked_for_other_deliveries() {
    let address = serve(acceptor(&chain(), |_| {}), large);
    let folder = TempDir::new().unwrap();
    let file = at(&folder, "probe.json");
    let document = found(&address);
    fs::write(&file, document.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let asked = "today/delivery=compressed,ml-dsa-65/delivery=all";
    let ended = probe(&["--from", file, "--what-if", asked, "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    let chains = answer["what_if"].as_array().unwrap();
    let bytes = |name: &str| {
        let chain = chains.iter().find(|chain| chain["chain"] == name);
        let chain = chain.unwrap_or_else(|| panic!("{name}: {}", ended.stdout));
        chain["certificate_bytes"].as_u64().unwrap()
    };
    // RFC 8879, section 4: what is compressed has 12 bytes before it.
    let brotli = document["certificate_brotli_bytes"].as_u64().unwrap();
    assert_eq!(bytes("today/delivery=compressed"), 12 + brotli);
    assert!(bytes("today/delivery=compressed") < bytes("today"));
    let whole = bytes("ml-dsa-65");
    let other = chains.iter().find(|chain| chain["chain"] == "ml-dsa-65");
    let leaf = other.unwrap()["certificates"][0].as_u64().unwrap();
    assert_eq!(bytes("ml-dsa-65/delivery=elide"), 8 + 5 + leaf);
    assert_eq!(
        bytes("ml-dsa-65/delivery=pqtls-ad/from=intermediate"),
        8 + 5 + leaf
    );
    for less in [
        "ml-dsa-65/delivery=compressed",
        "ml-dsa-65/delivery=elide/signal=trust-anchors",
        "ml-dsa-65/delivery=mtc-landmark",
        "ml-dsa-65/delivery=mtc-standalone",
        "ml-dsa-65/delivery=pqtls-ad-raw-key",
    ] {
        assert!(bytes(less) < whole, "{less}");
    }
    // What nobody can know is said.
    assert!(
        ended.stderr.contains("ml-dsa-65/delivery=abridged: "),
        "{ended:?}"
    );
    for (asked, expected) in [
        ("today/stack=rustls", "not of how a chain comes"),
        ("today/delivery=pigeon", "mtc-landmark"),
        ("today/delivery=abridged", "delivery=elide is as near"),
        ("today/intermediates=0/delivery=elide", "has none"),
        ("today/delivery=elide/client=stale", "connects anew"),
    ] {
        assert_refused(&["--from", file, "--what-if", asked], 2, expected);
    }
}

#[test]
fn what_is_no_probe_is_refused() {
    let folder = TempDir::new().unwrap();
    for (text, expected) in [
        ("{}", "no \"version\""),
        (
            r#"{"version": 2, "host": "a.b:1", "chain": []}"#,
            "version 2 is not known here",
        ),
        (
            r#"{"version": 1, "schema": "lastbyte.probe/2", "host": "a.b:1", "chain": []}"#,
            "schema \"lastbyte.probe/2\" is not known here",
        ),
        // A byte order mark is no matter.
        ("\u{feff}{}", "no \"version\""),
        ("[", "no JSON"),
        (
            r#"{"version": 1, "host": "a.b:1", "chain": [], "response": {"wire_bytes": 4611686018427387904}}"#,
            "response.wire_bytes: 4611686018427388000 is not from 0 to 8388608",
        ),
    ] {
        let file = at(&folder, "probe.json");
        fs::write(&file, text).unwrap();
        assert_refused(&["--from", file.to_str().unwrap()], 2, expected);
    }
    assert_refused(&["--from", "/nowhere/probe.json"], 2, "probe.json");
}

#[test]
fn targets_that_are_none_are_refused() {
    for (target, expected) in [
        ("http://example.com", "without TLS"),
        ("https://user@example.com", "without a user"),
        ("example.com:0", "above 0"),
        ("example.com:70000", "up to 65535"),
    ] {
        assert_refused(&[target], 2, expected);
    }
    assert_refused(&[], 2, "HOST|URL");
    assert_refused(&["127.0.0.1", "--timeout", "3600s"], 2, "60s");
    assert_refused(&["127.0.0.1", "--connections", "7"], 2, "1..=6");
}

#[test]
fn servers_that_can_not_be_reached_are_named() {
    assert_refused(
        &["nowhere.invalid"],
        1,
        "nowhere.invalid:443 has no address",
    );
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    assert_refused(&[&free], 1, "refuses the connection");
    // Nothing is there, by RFC 5737; where a machine has no way there, it says so at once.
    let ended = probe(&["192.0.2.1", "--timeout", "300ms"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
fn servers_that_are_none_of_tls_are_named() {
    let garbage = listen(|mut socket| {
        let _ = socket.write_all(b"220 mail.example ESMTP\r\n");
        thread::sleep(Duration::from_secs(1));
    });
    assert_refused(&[&garbage], 1, "speaks no TLS at this port");
    let mute = listen(|_socket| thread::sleep(Duration::from_secs(30)));
    assert_refused(
        &[&mute, "--timeout", "500ms"],
        1,
        "does not answer the ClientHello",
    );
    let closing = listen(drop);
    let ended = probe(&[&closing]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("hangs up before it says") || ended.stderr.contains("resets"),
        "{ended:?}"
    );
    let resetting = listen(|mut socket| {
        let _ = socket.read(&mut [0; 10]);
        reset(socket);
    });
    assert_refused(
        &[&resetting],
        1,
        "resets the connection during the handshake",
    );
    let half = listen(|mut socket| {
        let _ = socket.read(&mut [0; 4000]);
        // A ServerHello that does not end.
        let _ = socket.write_all(&[22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3]);
        thread::sleep(Duration::from_secs(30));
    });
    assert_refused(
        &[&half, "--timeout", "500ms"],
        1,
        "begins its handshake and does not end it",
    );
    let broken = listen(|mut socket| {
        let _ = socket.read(&mut [0; 4000]);
        let _ = socket.write_all(&[22, 3, 3, 0, 4, 2, 0, 0, 0]);
        thread::sleep(Duration::from_secs(1));
    });
    assert_refused(&[&broken], 1, "does not end the handshake (");
    let changing = listen(|mut socket| {
        let _ = socket.read(&mut [0; 4000]);
        while socket.write_all(&[20, 3, 3, 0, 1, 1].repeat(1000)).is_ok() {}
    });
    assert_refused(&[&changing], 1, "does not end the handshake (");
}

#[test]
fn a_server_of_tls_1_2_is_told_and_measured() {
    let older = acceptor(&chain(), |acceptor| {
        acceptor
            .set_max_proto_version(Some(SslVersion::TLS1_2))
            .unwrap();
    });
    let document = found(&serve(older, large));
    assert_eq!(document["tls"]["version"], "TLSv1.2");
    assert_eq!(document["chain"].as_array().unwrap().len(), 2);
    assert_eq!(document["response"]["status"], 200);
    assert!(document.get("window").is_none());
    // What its chain would have in TLS 1.3, and no handshake of today.
    assert_eq!(document["edges"][0]["chain"], "today, in TLS 1.3");
    assert!(
        document["notes"][0]
            .as_str()
            .unwrap()
            .contains("no TLS 1.3")
    );
}

#[test]
fn a_hello_retry_request_is_told() {
    let retrying = acceptor(&chain(), |acceptor| {
        acceptor.set_groups_list("P-384").unwrap()
    });
    let document = found(&serve(retrying, large));
    assert_eq!(document["tls"]["hello_retry"], true);
    assert_eq!(document["group"], "secp384r1");
}

/// What stops after the handshake is told beside what was seen until then.
#[test]
fn responses_that_do_not_end_are_told() {
    type Answer = fn(&mut SslStream<TcpStream>);
    let cases: [(Answer, &str); 10] = [
        (
            |_| thread::sleep(Duration::from_secs(30)),
            "no response within",
        ),
        (
            |stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi");
            },
            "its response ends 7 bytes before the 9 that its Content-Length says",
        ),
        (
            |stream| {
                let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
                let _ = stream.write_all(head);
            },
            "its response ends before its last chunk",
        ),
        (
            |stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhi");
            },
            "its response has a Content-Length of \\\"-5\\\", which is no number of bytes",
        ),
        (
            |stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le");
            },
            "it hangs up within the response",
        ),
        (
            |stream| {
                while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {
                    thread::sleep(Duration::from_millis(300));
                }
            },
            "interim responses (1xx) and no response within 2 s",
        ),
        (
            |stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le");
                thread::sleep(Duration::from_secs(30));
            },
            "its response stops",
        ),
        (
            |stream| {
                let _ = stream.write_all(b"\x00\x01garbage\r\n\r\n");
            },
            "none of HTTP/1.1",
        ),
        (|stream| reset(stream.get_ref().try_clone().unwrap()), ""),
        (|_| {}, "without a response"),
    ];
    for (answer, expected) in cases {
        let address = serve(acceptor(&chain(), |_| {}), answer);
        let ended = probe(&[&address, "--format", "json", "--timeout", "2s"]);
        assert_eq!(ended.code, Some(0), "{expected}: {ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_fits(&document, JSON_SCHEMA);
        let notes = document["notes"].to_string();
        assert!(notes.contains(expected), "{expected}: {notes}");
        assert_ne!(document["response"]["is_whole"], true, "{expected}");
        assert_eq!(document["group"], "X25519MLKEM768", "{expected}");
        assert_eq!(document["chain"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_chain_that_is_not_trusted_is_told_and_measured() {
    let chain = chain();
    let address = serve(acceptor(&chain, |_| {}), large);
    // Its root is trusted, and its name is another one.
    let folder = TempDir::new().unwrap();
    let root = at(&folder, "root.pem");
    fs::write(&root, chain.root().to_pem().unwrap()).unwrap();
    let ended = probe(&[&address, "--format", "json", "--ca", root.to_str().unwrap()]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = document["tls"]["distrusted"]
        .as_str()
        .unwrap()
        .to_lowercase();
    assert!(told.contains("mismatch"), "{told}");
    // The root that is needed is nowhere.
    let told = found(&address)["tls"]["distrusted"]
        .as_str()
        .unwrap()
        .to_lowercase();
    assert!(
        told.contains("unable to get") || told.contains("self-signed"),
        "{told}"
    );
    let expired = test_chains::expired().unwrap();
    let document = found(&serve(acceptor(&expired, |_| {}), large));
    // All that is wrong with it: its time, and its root.
    let told = document["tls"]["distrusted"].as_str().unwrap();
    assert!(told.contains("expired") && told.contains(';'), "{told}");
}

#[test]
fn a_redirect_is_told() {
    let address = serve(acceptor(&chain(), |_| {}), |stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 302 Found\r\nLocation: https://portal.example/login\r\nContent-Length: 0\r\n\r\n",
        );
    });
    let notes = found(&address)["notes"].to_string();
    assert!(
        notes.contains("portal.example") && notes.contains("captive portal"),
        "{notes}"
    );
    // What no field may hold hides neither the status nor where to.
    let address = serve(acceptor(&chain(), |_| {}), |stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 302 Found\r\nLocation: https://portal.example/\x1b[31m\r\nContent-Length: 0\r\n\r\n",
        );
    });
    let document = found(&address);
    assert_eq!(document["response"]["status"], 302, "{document}");
    assert_eq!(
        document["response"]["location"],
        "https://portal.example/\\u{1b}[31m"
    );
}

#[test]
fn a_server_of_ipv6_alone_is_found() {
    let acceptor = acceptor(&chain(), |_| {});
    let address = listen_at("[::1]:0", move |socket| {
        if let Ok(mut stream) = acceptor.accept(socket) {
            request(&mut stream);
            large(&mut stream);
            let _ = stream.shutdown();
        }
    });
    assert_eq!(found(&address)["host"], address.as_str());
}

/// One that turns clients away that come again: what was seen at first stands.
/// The program of OpenSSL as a server of pages, of this chain and with these options.
struct SServer {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl SServer {
    fn start(chain: &Chain, options: &[&str]) -> SServer {
        let folder = TempDir::new().unwrap();
        let write = |name: &str, contents: &[u8]| fs::write(at(&folder, name), contents).unwrap();
        let pem = |certificates: &[X509]| {
            let pem = certificates.iter().map(|one| one.to_pem().unwrap());
            pem.collect::<Vec<_>>().concat()
        };
        write("leaf.pem", &pem(&chain.certificates()[..1]));
        write("issuers.pem", &pem(&chain.certificates()[1..]));
        write("key.pem", &chain.key().private_key_to_pem_pkcs8().unwrap());
        write("page", b"hello");
        write("staple.der", &STAPLE);
        let mut child = Command::new("openssl")
            .args("s_server -accept 127.0.0.1:0 -HTTP -cert leaf.pem -cert_chain issuers.pem -key key.pem".split(' '))
            .args(options)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address =
            lines.find_map(|line| Some(line.unwrap().strip_prefix("ACCEPT ")?.to_owned()));
        // It writes a line for each connection, and ends where nobody reads it.
        thread::spawn(move || lines.for_each(drop));
        SServer {
            child,
            address: address.unwrap(),
            _folder: folder,
        }
    }
}

impl Drop for SServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An OCSPResponse (RFC 6960, section 4.2.1): unauthorized, and nothing else.
const STAPLE: [u8; 5] = [0x30, 3, 10, 1, 6];

#[test]
fn staples_are_told_apart_from_the_chain_and_count() {
    let chain = chain();
    let without = chain.certificate_message_bytes() as u64;
    for (version, has_chain) in [("-tls1_3", true), ("-tls1_2", false)] {
        let with = SServer::start(&chain, &[version, "-status_file", "staple.der"]);
        let document = found(&with.address);
        let tls = &document["tls"];
        // A type and a length; a type and a length of three bytes.
        let staple = 4 + 4 + STAPLE.len() as u64;
        assert_eq!(tls["staple_bytes"], staple, "{tls:#}");
        if has_chain {
            assert_eq!(tls["certificate_bytes"], without + staple);
            let seen = &tls["server_flight_wire_bytes"];
            assert_eq!(&document["edges"][0]["server_flight_wire_bytes"], seen);
            // Other chains have the same staple.
            let flight = |document: &Value| {
                document["edges"][1]["server_flight_wire_bytes"]
                    .as_u64()
                    .unwrap()
            };
            let plain = found(&SServer::start(&chain, &[version]).address);
            assert_eq!(flight(&document), flight(&plain) + staple);
        }
    }
    let without = SServer::start(&chain, &["-tls1_3"]);
    assert_eq!(found(&without.address)["tls"]["staple_bytes"], 0);
    let told = probe(&[&without.address]).stdout;
    assert!(told.contains("\nOCSP staple        none\n"), "{told}");
}

#[test]
fn a_request_for_a_client_s_certificate_is_told_and_what_comes_of_it() {
    let chain = chain();
    let answers = |options: &[&str]| {
        let server = SServer::start(&chain, options);
        let url = format!("https://{}/page", server.address);
        (found(&url), probe(&[&url]))
    };
    for version in ["-tls1_3", "-tls1_2"] {
        let (document, ended) = answers(&[version, "-verify", "1"]);
        assert_eq!(document["tls"]["client_certificate"], "optional");
        let row = "client's chain     asked for (CertificateRequest), and the connection went on without one\n";
        assert!(ended.stdout.contains(row), "{ended:?}");
        let (document, _) = answers(&[version]);
        assert!(document["tls"].get("client_certificate").is_none());
    }
    let (document, ended) = answers(&["-tls1_3", "-Verify", "1"]);
    assert_eq!(document["tls"]["client_certificate"], "required");
    let notes = document["notes"].to_string();
    let alert = "it ends the connection with alert certificate_required (116)";
    assert!(notes.contains(alert), "{notes}");
    let row = "asked for (CertificateRequest), and the connection ended without one\n";
    assert!(ended.stdout.contains(row), "{ended:?}");
}

#[test]
fn alerts_have_their_names() {
    let chain = chain();
    let required = SServer::start(&chain, &["-tls1_2", "-Verify", "1"]);
    let alert = format!(
        "{0} asks for a client's certificate, which a probe has none of, and refuses the handshake with alert handshake_failure (40): \
         `lastbyte explain {0}` reads its chain",
        required.address
    );
    assert_refused(&[&required.address], 1, &alert);
    let other = SServer::start(&chain, &["-tls1_2", "-cipher", "PSK-AES128-CBC-SHA256"]);
    let alert = "refuses the handshake with alert handshake_failure (40): it has no cipher suite, group or signature in common with this client, or \
         asks for a client's certificate";
    assert_refused(&[&other.address], 1, alert);
    let old = SServer::start(&chain, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]);
    let alert = "refuses the handshake with alert protocol_version (70): it may speak neither TLS 1.3 nor TLS 1.2";
    assert_refused(&[&old.address], 1, alert);
    // Its chain has come by then.
    let ended = run(&mut lastbyte(["explain", &required.address]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = run(&mut lastbyte(["explain", &other.address]));
    assert!(
        ended.stderr.contains("with alert handshake_failure (40)"),
        "{ended:?}"
    );
    // Of a fleet, too.
    let folder = TempDir::new().unwrap();
    let hosts = at(&folder, "hosts.txt");
    fs::write(&hosts, format!("{}\n", required.address)).unwrap();
    let ended = fleet(&hosts, &at(&folder, "sites.jsonl"), &[]);
    let kept = fs::read_to_string(at(&folder, "sites.jsonl")).unwrap();
    assert!(
        kept.contains("with alert handshake_failure (40)"),
        "{kept} {ended:?}"
    );
}

#[test]
fn a_server_that_limits_connections_is_told() {
    let acceptor = acceptor(&chain(), |_| {});
    let came = AtomicUsize::new(0);
    let address = listen(move |socket| {
        if came.fetch_add(1, Ordering::SeqCst) > 0 {
            return reset(socket);
        }
        let mut stream = acceptor.accept(socket).unwrap();
        request(&mut stream);
        large(&mut stream);
        let _ = stream.shutdown();
    });
    let document = found(&address);
    assert!(
        document["notes"][0]
            .as_str()
            .unwrap()
            .starts_with("connection 2: the server "),
        "{}",
        document["notes"]
    );
    assert_eq!(document["response"]["status"], 200);
}

#[test]
fn a_fleet_is_probed_once_each_and_goes_on() {
    let address = serve(acceptor(&chain(), |_| {}), large);
    let folder = TempDir::new().unwrap();
    let hosts = at(&folder, "hosts.txt");
    let results = at(&folder, "results.jsonl");
    fs::write(
        &hosts,
        format!("# sites\n{address}\n127.0.0.1:1\n{address}\n"),
    )
    .unwrap();
    let fleet = || fleet(&hosts, &results, &[]);
    let ended = fleet();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("2 sites, of which 2 to probe"),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("refuses the connection"), "{ended:?}");
    assert_eq!(fs::read_to_string(&results).unwrap().lines().count(), 2);
    // Cut short, as by a machine that goes down.
    let mut text = fs::read_to_string(&results).unwrap();
    text.push_str("{\"asked\":\"exa");
    fs::write(&results, text).unwrap();
    let ended = fleet();
    assert!(
        ended.stderr.contains("2 sites, of which 1 to probe"),
        "{ended:?}"
    );
    assert!(ended.stdout.contains(&address), "{ended:?}");
    // Both lines that name no site, before anybody is asked.
    fs::write(
        &hosts,
        format!("{address}\nhttp://a.example\nb.example:0\n"),
    )
    .unwrap();
    let ended = fleet();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("line 2: ") && ended.stderr.contains("line 3: "),
        "{ended:?}"
    );
    fs::write(&hosts, format!("{address}\n")).unwrap();
    // What is read again is read as any probe is, and stays as it is.
    let text = fs::read_to_string(&results).unwrap();
    let is_found = |line: &&str| line.contains("\"found\":");
    let good = text.lines().find(is_found).unwrap();
    assert!(
        good.contains("\"rtt_ms\":") && good.contains("\"version\":1"),
        "{good}"
    );
    let with = |from: &str, to: &str| good.replacen(from, to, 1).into_bytes();
    for (line, expected) in [
        (b"no line".to_vec(), "no line of a fleet's results"),
        (with("\"rtt_ms\":", "\"rtt_ms\":-"), "rtt_ms: -"),
        (
            with("\"version\":1", "\"version\":2"),
            "version 2 is not known here",
        ),
        (
            with("lastbyte.probe/1", "lastbyte.probe/9"),
            "schema \"lastbyte.probe/9\"",
        ),
        (with("\"chain\":", "\"chains\":"), "missing field `chain`"),
        (
            with("\"host\":\"", "\"host\":\"\u{1}"),
            "no line of a fleet's results",
        ),
        (
            [good.as_bytes(), b"\xff"].concat(),
            "no line of a fleet's results",
        ),
    ] {
        let bytes = [good.as_bytes(), b"\n", &line, b"\n", good.as_bytes(), b"\n"].concat();
        fs::write(&results, &bytes).unwrap();
        let ended = fleet();
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(ended.stdout, "");
        let [told] = ended.stderr.lines().collect::<Vec<_>>()[..] else {
            panic!("{ended:?}");
        };
        assert!(
            told.contains(", line 2: ") && told.contains(expected),
            "{told}"
        );
        assert_eq!(fs::read(&results).unwrap(), bytes);
    }
    // A file of something else without an end of line is nobody's line that was cut short.
    fs::write(&results, "mine").unwrap();
    assert_eq!(fleet().code, Some(2));
    assert_eq!(fs::read_to_string(&results).unwrap(), "mine");
    // Cut short within a letter.
    let cut = [good.as_bytes(), b"\n{\"asked\":\"\xc3"].concat();
    fs::write(&results, cut).unwrap();
    let ended = fleet();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read_to_string(&results).unwrap(), format!("{good}\n"));
}
