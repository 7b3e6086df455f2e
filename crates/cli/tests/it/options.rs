//! What an arm and a cell can ask for besides a group, a chain and a response: end to end, over a real
//! network stack.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Row as Line, cell, compare, lastbyte, measure, prepare, run};
use lastbyte::lab::PreparedArm;
use lastbyte::results::{EarlyData, Outcome, Resumption, Row, TcpStats, Validity, check};
use lastbyte::study::{Cell, Experiment};
use lastbyte_exchange::HandshakeFlight;
use lastbyte_link::{Bytes, Direction, Link};
use lastbyte_pki::{Chain, test_chains};
use lastbyte_tls::observer::Message;
use lastbyte_tls::{Connection, Session, Stack, StackName, TlsConfig, TlsError, stack, version};

const TIMEOUT: Duration = Duration::from_secs(20);

fn link() -> Link {
    Link::symmetric(Duration::from_millis(20), Direction::default())
}

/// A few connections of an arm, which did what it says.
fn rows(arm: &str, cell: Cell) -> Vec<Row> {
    let prepared = prepare(arm);
    let arm = prepared.arm.clone();
    let run = measure(prepared, cell, 4, TIMEOUT);
    let rows: Vec<Row> = run
        .samples
        .into_iter()
        .flat_map(|sample| sample.rows)
        .collect();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!(row.outcome, Outcome::Completed);
    }
    let checked = check(&arm, &Cell::default(), &rows);
    assert_eq!(checked.map_err(|unlike| unlike.to_string()), Ok(()));
    rows
}

#[test]
fn a_wrong_guess_takes_a_round_trip_more() {
    let cell = cell(link(), Bytes(1000));
    for row in rows("X25519MLKEM768/ecdsa-p256/key_share=x25519", cell) {
        assert_eq!(row.exchange.bytes(Message::HelloRetryRequest), 88);
        assert!(
            row.exchange.bytes(Message::SecondClientHello)
                > row.exchange.bytes(Message::ClientHello)
        );
        assert!(row.exchange.sent(HandshakeFlight::HelloRetryRequest) > 88);
        // TCP, two hellos, two answers.
        assert!(row.times.handshake.unwrap() >= Duration::from_millis(60));
    }
}

#[test]
fn sessions_are_resumed_with_and_without_early_data() {
    let round_trips = |row: &Row| {
        let ttfb = row.times.ttfb.unwrap() - row.times.connect.unwrap();
        ttfb.as_millis() / 20
    };
    let cell = cell(link(), Bytes(1000));
    let full = rows("x25519/ml-dsa-44", cell.clone());
    let resumed = rows("x25519/ml-dsa-44/resume=ticket", cell.clone());
    let early = rows("x25519/ml-dsa-44/resume=0rtt", cell);
    for row in &full {
        assert_eq!(row.exchange.negotiated.resumption, Resumption::Full);
        assert_eq!(row.exchange.negotiated.early_data, EarlyData::None);
        assert!(round_trips(row) >= 2);
    }
    for row in resumed.iter().chain(&early) {
        assert_eq!(row.exchange.negotiated.resumption, Resumption::Resumed);
        assert_eq!(row.exchange.bytes(Message::Certificate), 0);
    }
    for row in &early {
        assert_eq!(row.exchange.negotiated.early_data, EarlyData::Accepted);
        // The server answers before it has the client's Finished.
        assert!(
            row.times.ttfb
                < row
                    .times
                    .server_handshake
                    .map(|time| time + Duration::from_millis(5))
        );
    }
    // The fastest speaks, since the machine may be busy.
    assert_eq!(early.iter().map(round_trips).min(), Some(1));
    assert_eq!(resumed.iter().map(round_trips).min(), Some(2));
}

#[test]
fn an_upload_ends_at_the_server() {
    let up = Cell {
        upload: Bytes(40_000),
        ..cell(link(), Bytes(0))
    };
    for row in rows("x25519/ecdsa-p256", up) {
        assert_eq!(row.times.ttfb, None);
        // The server's flight, then two of the client. Not from the end of the handshake: that is noted once
        // the first of the two is sent, and a busy machine may come to it late.
        assert!(row.times.ttlb.unwrap() >= row.times.connect.unwrap() + Duration::from_millis(50));
        let sent = row.client_tcp().unwrap().segments_out;
        assert!(sent > 40_000 / 1448, "{sent}");
    }
}

#[test]
fn several_requests_take_turns_with_thinking() {
    let cell = Cell {
        requests: 4,
        think: Duration::from_millis(30),
        upload: Bytes(3000),
        ..cell(link(), Bytes(5000))
    };
    for row in rows("x25519/ecdsa-p256", cell) {
        let ttfb = row.times.ttfb.unwrap();
        // Three more round trips and thoughts.
        assert!(row.times.ttlb.unwrap() >= ttfb + 3 * Duration::from_millis(20 + 30));
    }
}

#[test]
fn tickets_are_counted() {
    let cell = cell(link(), Bytes(1000));
    let [one, three] = [1, 3].map(|tickets| {
        let rows = rows(
            &format!("x25519/ecdsa-p256/tickets={tickets}"),
            cell.clone(),
        );
        rows[0].exchange.ticket_wire_bytes().unwrap()
    });
    assert!(one > 200, "{one}");
    assert_eq!(three, 3 * one);
}

/// The fewest segments that either end of an arm's connections sent.
fn segments(arm: &str, tcp: fn(&Row) -> Option<TcpStats>) -> u32 {
    let rows = rows(arm, cell(link(), Bytes(1000)));
    let sent = rows.iter().map(|row| tcp(row).unwrap().segments_out);
    sent.min().unwrap()
}

#[test]
fn a_stack_can_decide_its_writes_itself() {
    // OpenSSL writes its flight in pieces of 4 KiB.
    let [whole, native] = ["", "/flush=native"]
        .map(|flush| segments(&format!("x25519/ml-dsa-65{flush}"), |row| row.server_tcp()));
    assert!(native > whole, "{native} and {whole}");
}

#[test]
fn a_hello_is_split_where_one_likes() {
    for flush in ["whole", "native"] {
        let [whole, split] = ["", "/client_hello_split=100B"].map(|split| {
            let arm = format!("x25519/ecdsa-p256/flush={flush}{split}");
            segments(&arm, |row| row.client_tcp())
        });
        // Only the hello is.
        assert_eq!(split, whole + 1, "{flush}");
    }
}

/// Those that are not built in are told before anything runs.
#[test]
fn every_stack_speaks_with_every_other() {
    let is_built_in = |stack: &StackName| version(*stack).is_some();
    let (built_in, absent): (Vec<_>, Vec<_>) = StackName::ALL.into_iter().partition(is_built_in);
    for client in &built_in {
        for server in &built_in {
            let arm = format!("X25519MLKEM768/ecdsa-p256/client_stack={client}/stack={server}");
            for row in rows(&arm, cell(link(), Bytes(20_000))) {
                assert_eq!(row.exchange.negotiated.certificates, Some(2));
                assert!(row.times.ttfb < row.times.ttlb);
            }
        }
    }
    for stack in absent {
        let arm = format!("X25519MLKEM768/ecdsa-p256/stack={stack}");
        assert_eq!(
            refused(&arm, &[]),
            format!(
                "lastbyte: arm {arm:?}: {stack} can't be used: it is not built in: \
                 build lastbyte with --features {stack}"
            )
        );
    }
}

#[test]
fn the_command_line_has_it_all() {
    let measured = compare(
        "--engine live --rtt 10ms --data 10KiB --upload 5KiB --requests 3 --think 5ms --connections 3 \
         --baseline x25519/ecdsa-p256/resume=0rtt",
    );
    let cell = &measured.document["cells"][0];
    assert_eq!(cell["upload_bytes"], 5 << 10);
    assert_eq!(cell["requests"], 3);
    assert_eq!(cell["think_ms"], 5.0);
    let negotiated = &measured.sample(0, 0)["negotiated"];
    assert_eq!(negotiated["resumed"], true);
    assert_eq!(negotiated["early_data"], "accepted");
    let column = |name: &str| -> Vec<String> {
        let rows = measured.rows.iter();
        rows.map(|row: &Line| row.text(name).to_owned()).collect()
    };
    assert_eq!(column("early_data"), ["accepted"; 3]);
    assert_eq!(column("requests"), ["3"; 3]);
    assert_eq!(column("client_stack"), ["openssl"; 3]);
}

/// A server that is replaced by another one, with other keys for tickets, or a client whose session is
/// a stranger's.
struct Replaced {
    clients: Arc<dyn Stack>,
    servers: Arc<dyn Stack>,
    replaced: AtomicU32,
}

impl Stack for Replaced {
    fn client(&self) -> Result<Box<dyn Connection>, TlsError> {
        self.clients.client()
    }

    fn resuming_client(&self, session: &Session) -> Result<Box<dyn Connection>, TlsError> {
        self.clients.resuming_client(session)
    }

    fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
        self.replaced.fetch_add(1, Ordering::Relaxed);
        self.servers.server()
    }
}

#[test]
fn what_a_server_refuses_is_told_and_costs_what_it_costs() {
    for (option, wire, problem) in [
        (
            "resume=ticket",
            EarlyData::None,
            "connection 0 did not resume its session: the server did not accept its ticket",
        ),
        (
            "resume=0rtt",
            EarlyData::Refused,
            "connection 0 did not resume its session: the server did not accept its ticket",
        ),
    ] {
        let name = format!("x25519/ecdsa-p256/{option}");
        let [clients, servers] = [(); 2].map(|()| prepare(&name));
        let arm = clients.arm.clone();
        let prepared = replaced(clients, servers);
        let cell = cell(link(), Bytes(1000));
        let experiment = Experiment::new(vec![arm], vec![cell.clone()], 3);
        let run = measure(prepared, cell, 3, TIMEOUT);
        let sample = &run.samples[0];
        for row in &sample.rows {
            // Nobody is turned away: the request is sent again, after a full handshake.
            assert_eq!(row.outcome, Outcome::Completed);
            assert_eq!(row.exchange.negotiated.resumption, Resumption::Full);
            assert_eq!(row.exchange.negotiated.early_data, wire);
            assert!(row.exchange.bytes(Message::Certificate) > 0);
            assert!(row.times.ttfb.unwrap() >= Duration::from_millis(60));
        }
        // A machine that was busy has something to add.
        match sample.validity(&experiment) {
            Validity::Invalid(reason) => assert!(reason.starts_with(problem), "{option}: {reason}"),
            Validity::Valid => panic!("{option}"),
        }
    }
}

/// Servers whose clients are others.
fn replaced(clients: PreparedArm, servers: PreparedArm) -> PreparedArm {
    let stack = Replaced {
        clients: clients.stack,
        servers: Arc::clone(&servers.stack),
        replaced: AtomicU32::new(0),
    };
    servers.with_stack(Arc::new(stack))
}

/// The reasons with which all connections of clients of one configuration fail at servers of another.
fn failures(clients: PreparedArm, servers: PreparedArm) -> Vec<String> {
    let run = measure(
        replaced(clients, servers),
        cell(link(), Bytes(1000)),
        2,
        TIMEOUT,
    );
    let rows = run.samples.into_iter().flat_map(|sample| sample.rows);
    rows.map(|row| match row.outcome {
        Outcome::Failed { reason, .. } => {
            // TCP was there, and no data came.
            assert!(row.times.connect.is_some());
            assert_eq!(row.times.ttfb, None);
            reason
        }
        outcome => panic!("{outcome:?}"),
    })
    .collect()
}

/// An arm whose client sends this chain, which its server trusts.
fn with_client_chain(chain: Option<&Chain>) -> PreparedArm {
    let arm = prepare("x25519/ecdsa-p256");
    let config = TlsConfig {
        client_chain: chain,
        ..TlsConfig::new(arm.arm.group, &arm.chain)
    };
    let stack: Arc<dyn Stack> = stack(&config).unwrap().into();
    arm.with_stack(stack)
}

#[test]
fn a_client_that_does_not_prove_itself_is_refused() {
    let trusting = |chain: Option<&Chain>| match chain {
        Some(chain) => with_client_chain(Some(chain)),
        None => prepare("x25519/ecdsa-p256/mutual=ecdsa-p256"),
    };
    let refused = |chain: Option<&Chain>, trusted: Option<&Chain>, expected: &str| {
        let reasons = failures(with_client_chain(chain), trusting(trusted));
        assert_eq!(reasons, [expected; 2]);
    };
    refused(
        None,
        None,
        "server: TLS failed: peer did not return a certificate; \
         client: the peer refused: alert certificate_required (116)",
    );
    let expired = test_chains::expired_client().unwrap();
    refused(
        Some(&expired),
        Some(&expired),
        "server: certificate verification failed: certificate has expired; \
         client: the peer refused: alert certificate_expired (45)",
    );
    let server = test_chains::server_as_client().unwrap();
    refused(
        Some(&server),
        Some(&server),
        "server: certificate verification failed: unsuitable certificate purpose; \
         client: the peer refused: alert unsupported_certificate (43)",
    );
    let untrusted = test_chains::untrusted_client().unwrap();
    refused(
        Some(&untrusted),
        None,
        "server: certificate verification failed: unable to get local issuer certificate; \
         client: the peer refused: alert unknown_ca (48)",
    );
}

#[test]
fn a_group_that_only_one_side_has_is_no_connection() {
    let clients = prepare("x25519/ecdsa-p256");
    let servers = prepare("secp256r1/ecdsa-p256");
    assert_eq!(
        failures(clients, servers),
        ["server: TLS failed: no suitable key share; \
          client: the peer refused: alert handshake_failure (40)"; 2]
    );
}

/// The line with which `compare` refuses an arm.
fn refused(arm: &str, more: &[&str]) -> String {
    let mut arguments = vec!["compare", "--engine", "live", "--baseline", arm];
    arguments.extend(["--chain-profile", "private"]);
    arguments.extend(more);
    let ended = run(&mut lastbyte(arguments));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    ended.stderr.trim_end().to_owned()
}

#[test]
fn what_can_not_be_is_refused_before_anything_runs() {
    assert_eq!(
        refused("x25519/ml-dsa-65/max_cert_list=4KiB", &[]),
        "lastbyte: arm \"x25519/ml-dsa-65/max_cert_list=4KiB\": its handshake, tried in memory, fails: \
         TLS failed: excessive message size"
    );
    let absent = "./no-such-client.pem";
    assert!(
        refused(&format!("x25519/ecdsa-p256/mutual={absent}"), &[]).contains("no-such-client.pem"),
    );
    assert_eq!(
        refused("x25519/ecdsa-p256", &["--requests", "2", "--data", "0KiB"]),
        "lastbyte: 2 requests need a response to wait for: ask for data, or for one request"
    );
}

#[test]
fn hosts_that_can_not_be_are_refused_with_the_hint() {
    for (option, value, hint) in [
        ("--mtu", "40", "write bytes from 576 to 9000"),
        ("--timestamps", "yes", "off, on"),
        ("--buffers", "64B", "auto, linux, large"),
        ("--receive-buffer", "0", "a size from 4KiB to 208KiB"),
        (
            "--receive-buffer",
            "300KiB",
            "a size from 4KiB to 208KiB (net.core.rmem_max)",
        ),
        ("--tso", "half", "off, on"),
        (
            "--writes",
            "0B",
            "write whole, or 1 to 12 sizes of 1B to 16384B",
        ),
        (
            "--writes",
            "8087",
            "write whole, or 1 to 12 sizes of 1B to 16384B",
        ),
    ] {
        let ended = run(&mut lastbyte(["compare", option, value]));
        assert_eq!(ended.code, Some(2));
        let line = ended.stderr.lines().next().unwrap();
        assert!(line.contains(option) && line.contains(value), "{line}");
        assert!(line.contains(hint), "{line}");
    }
    assert_eq!(
        refused("x25519/ecdsa-p256", &["--gso", "on", "--tso", "off"]),
        "lastbyte: the live engine has no super-packets (gso = \"on\"), which measure \"compare\" asks for: \
         use --engine virtual"
    );
}
