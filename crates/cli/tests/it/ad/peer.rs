//! Another PQTLS-AD, in Python, that was written from docs/pqtls-ad-format.md: as a client of `ad serve`, as a server of
//! `ad fetch`, and on the test vectors.

use super::*;

/// The chain's parts, and what is sent besides.
const PARTS: [(&str, usize, &str); 3] = [
    ("root", 1, "2"),
    ("intermediate", 2, "1"),
    ("end-entity", 3, "a raw public key"),
];

#[test]
fn it_reads_and_writes_the_vectors() {
    let vectors = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../pqtlsad/vectors/pqtls-ad.json"
    );
    let ended = run(peer("vectors").arg(vectors));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.ends_with("checks of the vectors pass\n"));
}

#[test]
fn its_client_speaks_with_ad_serve() {
    isolate();
    for algorithm in ["ecdsa-p256", "ml-dsa-65"] {
        let files = Files::new(&whole_chain(algorithm));
        let server = serve(&[&files], &[]);
        let plain = client(&files, "", &[]);
        assert_eq!(plain["outcome"], "no-record");
        assert_eq!(plain["sent"], 3);
        assert_eq!(plain["body"], BODY);
        for (part, count, _) in PARTS {
            for (record_type, number) in [("65280", "65280"), ("tlsa", "52")] {
                let zone = zone_lines(&files, part, record_type);
                for options in [&["--type", number][..], &["--type", number, "--retry"]] {
                    let told = client(&files, &zone, options);
                    assert_eq!(told["outcome"], "used", "{part} {options:?}: {told}");
                    match count {
                        3 => assert_eq!(told["sent"], "raw public key", "{told}"),
                        _ => assert_eq!(told["sent"], 3 - count, "{told}"),
                    }
                    assert_eq!(told["body"], BODY);
                }
            }
        }
        // A record that was spoilt on the way.
        let spoilt = zone_lines(&files, "end-entity", "65280").replacen("01030001", "01030002", 1);
        let told = client(&files, &spoilt, &[]);
        assert!(
            told["outcome"].as_str().unwrap().starts_with("invalid"),
            "{told}"
        );
        assert_eq!(told["sent"], 3);
        // One of a chain of the same CA that the server does not have, or has renewed.
        let other = Files::new(&test_chains::for_name(NAME).unwrap());
        let both = [&files.root, &other.root].map(|file| fs::read(file).unwrap());
        fs::write(&files.root, both.concat()).unwrap();
        for part in ["intermediate", "end-entity"] {
            for retry in [&[][..], &["--retry"]] {
                let told = client(&files, &zone_lines(&other, part, "65280"), retry);
                assert_eq!(told["outcome"], "mismatch", "{told}");
                assert_eq!(told["sent"], 3);
            }
        }
        assert_eq!(server.stop(Signal::SIGTERM), Some(0));
        // A server that knows another extension.
        let server = serve(&[&files], &["--extension", "65"]);
        let told = client(&files, &zone_lines(&files, "root", "65280"), &[]);
        assert_eq!(told["outcome"], "refused-by-server", "{told}");
        assert_eq!(told["sent"], 3);
        assert_eq!(server.stop(Signal::SIGTERM), Some(0));
    }
}

#[test]
fn its_client_refuses_who_does_not_have_the_chain() {
    isolate();
    let [files, stranger] = [(); 2].map(|()| Files::new(&test_chains::for_name(NAME).unwrap()));
    let _server = serve(&[&files], &[]);
    let mut command = peer("client");
    let ended = run(command.args([SERVER, NAME]).arg(&stranger.root));
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("the chain is not accepted"),
        "{ended:?}"
    );
}

#[test]
fn ad_fetch_speaks_with_its_server() {
    const HELLO: &str = "hello from Python";
    isolate();
    let _dns = bind(ZONE);
    for algorithm in ["ecdsa-p256", "ml-dsa-65"] {
        let files = Files::new(&whole_chain(algorithm));
        let started = |options: &[&str]| {
            let mut command = peer("server");
            let server = Program::start(command.arg(&files.chain).arg(&files.key).args(options));
            let address = server.line_with("listening on ");
            (
                server,
                address.trim_start_matches("listening on ").to_owned(),
            )
        };
        for options in [&[][..], &["--retry"]] {
            let (server, address) = started(options);
            let fetch = |options: &[&str]| {
                fetch_with(&files, &[&["--connect", &address], options].concat(), HELLO)
            };
            let plain = fetch(&["--plain"]);
            assert_eq!(plain["outcome"], "no-record", "{plain:#}");
            server.line_with("sent 3, omitted 0");
            for (part, count, sent) in PARTS {
                let published = publish(&files, &["--from", part]);
                assert_eq!(published.code, Some(0), "{}", published.stderr);
                let fetched = fetch(&[]);
                assert_eq!(
                    fetched["outcome"], "used",
                    "{part} {options:?}: {fetched:#}"
                );
                server.line_with(&format!("sent {sent}, omitted {count}"));
            }
            // Without raw public keys the end-entity's certificate is sent.
            let fetched = fetch(&["--end-entity", "carrier"]);
            assert_eq!(fetched["outcome"], "used", "{fetched:#}");
            server.line_with("sent 1, omitted 3");
        }
        // The record is there, and the server knows nothing of it.
        let (_server, address) = started(&["--ignorant"]);
        let fetched = fetch_with(&files, &["--connect", &address], HELLO);
        assert_eq!(fetched["outcome"], "refused-by-server", "{fetched:#}");
        // Or has another chain.
        let other = Files::new(&test_chains::for_name(NAME).unwrap());
        let both = [&files.root, &other.root].map(|file| fs::read(file).unwrap());
        fs::write(&files.root, both.concat()).unwrap();
        for part in ["intermediate", "end-entity"] {
            let published = publish(&other, &["--from", part]);
            assert_eq!(published.code, Some(0), "{}", published.stderr);
            let (server, address) = started(&[]);
            let fetched = fetch_with(&files, &["--connect", &address], HELLO);
            assert_eq!(fetched["outcome"], "mismatch", "{fetched:#}");
            server.line_with("sent 3, omitted 0");
        }
    }
}

/// An end-entity, an intermediate and a root, which is sent.
fn whole_chain(algorithm: &str) -> Chain {
    let spec = ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(algorithm.parse().unwrap())
    };
    store().chain(&spec).unwrap()
}

/// What a zone has of a chain.
fn zone_lines(files: &Files, part: &str, record_type: &str) -> String {
    let options = ["ad", "publish", NAME, "--from", part, "--type", record_type];
    let published = run(lastbyte(options).arg("--chain").arg(&files.chain));
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    published.stdout
}

/// What a client says that knows these lines.
fn client(files: &Files, zone: &str, options: &[&str]) -> Value {
    let lines = files.folder.path().join("zone");
    fs::write(&lines, zone).unwrap();
    let mut command = peer("client");
    command.args([SERVER, NAME]).arg(&files.root);
    let ended = run(command.arg("--zone").arg(lines).args(options));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

fn peer(role: &str) -> Command {
    let mut command = Command::new(installed("python"));
    command.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../pqtlsad/tests/interop/peer.py"
    ));
    command.arg(role);
    command
}
