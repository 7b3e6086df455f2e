//! Peers that misbehave: each makes a row with its reason, and spoils no other.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{cell, measure, prepare};
use lastbyte::results::{Cause, FailureKind, Outcome, Row};
use lastbyte_exchange::HandshakeFlight;
use lastbyte_link::{Bytes, Direction, Link};
use lastbyte_pki::{Chain, PkiError, test_chains};
use lastbyte_tls::observer::Message;
use lastbyte_tls::{Connection, KeyLog, Progress, Stack, TlsConfig, TlsError, stack};

const ARM: &str = "x25519/ecdsa-p256";
const TIMEOUT: Duration = Duration::from_millis(600);
const DATA: u64 = 60_000;
/// What the stack writes of it before it stops: the first record fills a segment.
const TWO_RECORDS: u64 = 1426 + 16_384;

/// What a peer does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    ServerGivesUp,
    ServerIsSilent,
    ServerSendsGarbage,
    ServerGivesUpInItsFlight,
    ServerGivesUpInTheResponse,
    ServerSendsTooMuch,
    ServerSpoilsTheResponse,
    ClientGivesUp,
    ClientIsSilent,
    ClientSendsGarbage,
}

#[test]
fn a_server_that_gives_up() {
    half_fail(
        Fault::ServerGivesUp,
        "server: TLS failed: gave up; client: the peer closed the connection during the handshake",
    );
}

#[test]
fn a_server_that_is_silent() {
    for row in half(Fault::ServerIsSilent) {
        assert_eq!(row.outcome, Outcome::TimedOut);
        assert!(row.times.connect.is_some());
        assert_eq!(row.times.handshake, None);
        assert!(row.exchange.bytes(Message::ClientHello) > 0);
        assert_eq!(row.exchange.bytes(Message::ServerHello), 0);
    }
}

#[test]
fn a_server_that_sends_garbage() {
    half_fail(
        Fault::ServerSendsGarbage,
        "client: TLS failed: wrong version number",
    );
}

#[test]
fn a_server_that_gives_up_in_its_flight() {
    half_fail(
        Fault::ServerGivesUpInItsFlight,
        "server: TLS failed: gave up; client: the peer closed the connection during the handshake",
    );
}

#[test]
fn a_server_that_gives_up_in_the_response() {
    let left = DATA - TWO_RECORDS;
    let reason = format!(
        "server: TLS failed: gave up; client: the peer closed the connection {left} bytes before the end"
    );
    for row in half_fail(Fault::ServerGivesUpInTheResponse, &reason) {
        assert!(row.times.ttfb.is_some());
        assert_eq!(row.times.ttlb, None);
    }
}

#[test]
fn a_server_that_sends_too_much() {
    half_fail(
        Fault::ServerSendsTooMuch,
        "client: more data than asked for",
    );
}

#[test]
fn a_server_that_spoils_the_response() {
    half_fail(
        Fault::ServerSpoilsTheResponse,
        "client: TLS failed: record layer failure: decryption failed or bad record mac",
    );
}

#[test]
fn a_client_that_gives_up() {
    half_fail(Fault::ClientGivesUp, "client: TLS failed: gave up");
}

#[test]
fn a_client_that_is_silent() {
    for row in half(Fault::ClientIsSilent) {
        assert_eq!(row.outcome, Outcome::TimedOut);
        assert_eq!(row.exchange.bytes(Message::ClientHello), 0);
    }
}

#[test]
fn a_client_that_sends_garbage() {
    half_fail(
        Fault::ClientSendsGarbage,
        "server: TLS failed: wrong version number; client: ",
    );
}

/// Every second connection fails, for a reason that begins like this.
fn half_fail(fault: Fault, reason: &str) -> Vec<Row> {
    let failed = half(fault);
    for row in &failed {
        let Outcome::Failed { reason: told, .. } = &row.outcome else {
            panic!("{:?}", row.outcome);
        };
        assert!(told.starts_with(reason), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
    failed
}

/// Measures six connections, every second of which meets the fault, and gives those.
fn half(fault: Fault) -> Vec<Row> {
    let mut prepared = prepare(ARM);
    prepared.stack = Arc::new(Faulty {
        stack: prepared.stack,
        fault,
        connections: AtomicUsize::new(0),
    });
    let run = measure(prepared, cell(link(), Bytes(DATA)), 6, TIMEOUT);
    let rows: Vec<_> = run
        .samples
        .into_iter()
        .flat_map(|sample| sample.rows)
        .collect();
    assert_eq!(rows.len(), 6);
    let (completed, failed): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|row| row.outcome == Outcome::Completed);
    assert_eq!(completed.len(), 3, "{failed:?}");
    assert!(completed.iter().all(|row| row.times.ttlb.is_some()));
    failed
}

fn link() -> Link {
    Link::symmetric(Duration::from_millis(10), Direction::default())
}

/// A stack every second connection of which has a fault.
struct Faulty {
    stack: Arc<dyn Stack>,
    fault: Fault,
    connections: AtomicUsize,
}

impl Faulty {
    fn wrap(&self, connection: Box<dyn Connection>) -> Box<dyn Connection> {
        if self
            .connections
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(2)
        {
            return connection;
        }
        Box::new(FaultyConnection {
            connection,
            fault: self.fault,
            records: 0,
        })
    }

    fn is_the_clients(&self) -> bool {
        matches!(
            self.fault,
            Fault::ClientGivesUp | Fault::ClientIsSilent | Fault::ClientSendsGarbage
        )
    }
}

impl Stack for Faulty {
    fn client(&self) -> Result<Box<dyn Connection>, TlsError> {
        let client = self.stack.client()?;
        Ok(if self.is_the_clients() {
            self.wrap(client)
        } else {
            client
        })
    }

    fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
        let server = self.stack.server()?;
        Ok(if self.is_the_clients() {
            server
        } else {
            self.wrap(server)
        })
    }
}

struct FaultyConnection {
    connection: Box<dyn Connection>,
    fault: Fault,
    records: usize,
}

fn gave_up<T>() -> Result<T, TlsError> {
    Err(TlsError::Protocol {
        reason: "gave up".into(),
    })
}

impl Connection for FaultyConnection {
    fn receive(&mut self, bytes: &[u8]) {
        self.connection.receive(bytes);
    }

    fn advance(&mut self) -> Result<Progress, TlsError> {
        match self.fault {
            Fault::ServerGivesUp | Fault::ClientGivesUp => gave_up(),
            Fault::ServerIsSilent | Fault::ClientIsSilent => Ok(Progress::Handshaking),
            Fault::ServerGivesUpInItsFlight => {
                self.connection.advance()?;
                gave_up()
            }
            _ => self.connection.advance(),
        }
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        self.connection.transmit(out);
        match self.fault {
            Fault::ServerIsSilent | Fault::ClientIsSilent => out.truncate(start),
            Fault::ServerSendsGarbage | Fault::ClientSendsGarbage => out[start..].fill(b'?'),
            Fault::ServerGivesUpInItsFlight => out.truncate(start + (out.len() - start) / 2),
            Fault::ServerSpoilsTheResponse if self.records > 0 => {
                if let Some(last) = out[start..].last_mut() {
                    *last ^= 1;
                }
            }
            _ => {}
        }
    }

    fn write_record(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        self.records += 1;
        match self.fault {
            Fault::ServerGivesUpInTheResponse if self.records > 2 => gave_up(),
            Fault::ServerSendsTooMuch => {
                self.connection.write_record(plaintext)?;
                self.connection.write_record(plaintext)
            }
            _ => self.connection.write_record(plaintext),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError> {
        self.connection.read(buffer)
    }

    fn key_log(&self) -> KeyLog {
        self.connection.key_log()
    }
}

#[test]
fn chains_that_a_client_must_refuse() {
    type Make = fn() -> Result<Chain, PkiError>;
    let chains: [(Make, &str); 5] = [
        (test_chains::expired, "certificate has expired"),
        (
            test_chains::not_yet_valid,
            "certificate is not yet valid or the system clock is incorrect",
        ),
        (test_chains::wrong_name, "hostname mismatch"),
        (
            test_chains::broken,
            "unable to get local issuer certificate",
        ),
        (
            test_chains::untrusted,
            "unable to get local issuer certificate",
        ),
    ];
    for (make, reason) in chains {
        let mut prepared = prepare(ARM);
        prepared.chain = make().unwrap();
        let config = TlsConfig::new(prepared.arm.group, &prepared.chain);
        prepared.stack = stack(&config).unwrap().into();
        let run = measure(prepared, cell(link(), Bytes(0)), 2, TIMEOUT);
        let rows: Vec<_> = run.samples.iter().flat_map(|sample| &sample.rows).collect();
        assert_eq!(rows.len(), 2);
        for row in rows {
            let expected = format!("client: certificate verification failed: {reason}");
            let failed = Outcome::Failed {
                cause: Cause::Client(FailureKind::Certificate),
                reason: expected,
            };
            assert_eq!(row.outcome, failed);
            assert_eq!(row.times.handshake, None);
            assert!(row.exchange.bytes(Message::Certificate) > 0);
            // The alert is on its way. OpenSSL does not encrypt it yet: 5 bytes of header, 2 of alert.
            assert_eq!(row.exchange.sent(HandshakeFlight::ClientFinish), 7);
        }
    }
}
