#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::{KeyLog, fixtures};

#[test]
fn each_step_is_timed_apart() {
    // A clock of which every reading takes ten times as long as the one before.
    let mut time = 0;
    let mut step = 1;
    let mut clock = || {
        time += step;
        step *= 10;
        Duration::from_nanos(time)
    };
    let stack = fixtures::fast();
    assert_eq!(
        time_handshake(stack.client().unwrap(), stack.server().unwrap(), &mut clock),
        Ok(StepTimes {
            client_hello: Duration::from_nanos(10),
            server_flight: Duration::from_nanos(1_000),
            client_finish: Duration::from_nanos(100_000),
            server_finish: Duration::from_nanos(10_000_000),
        }),
    );
}

#[test]
fn a_peer_that_never_answers_is_noticed() {
    struct Mute;
    impl Connection for Mute {
        fn receive(&mut self, _bytes: &[u8]) {}
        fn advance(&mut self) -> Result<Progress, TlsError> {
            Ok(Progress::Handshaking)
        }
        fn transmit(&mut self, _out: &mut Vec<u8>) {}
        fn write_record(&mut self, _plaintext: &[u8]) -> Result<(), TlsError> {
            Err(TlsError::NotEstablished)
        }
        fn read(&mut self, _buffer: &mut [u8]) -> Result<usize, TlsError> {
            Ok(0)
        }
        fn key_log(&self) -> KeyLog {
            KeyLog::default()
        }
    }
    struct WithMuteServer(Box<dyn Stack>);
    impl Stack for WithMuteServer {
        fn client(&self) -> Result<Box<dyn Connection>, TlsError> {
            self.0.client()
        }
        fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
            Ok(Box::new(Mute))
        }
    }
    let stack = WithMuteServer(Box::new(fixtures::fast()));
    assert_eq!(
        handshake_in_memory(&stack).err().unwrap().to_string(),
        "TLS failed: both sides wait for the other",
    );
}
