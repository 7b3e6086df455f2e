//! What comes in CRYPTO frames, as OpenSSL's callbacks for QUIC get it: real messages of the other side in any cuts, changed
//! ones, and anything else, to both sides and at each level.
#![no_main]

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use lastbyte_fuzz::{change, pieces};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, Store};
use lastbyte_tls::{
    Group, Level, Progress, QuicOutput, QuicTls, Randomness, Resumption, Session, Stack, Tickets,
    TlsConfig, stack,
};
use libfuzzer_sys::fuzz_target;

/// A stack whose clients resume with early data where they have a session, and such a session.
static REAL: LazyLock<(Arc<dyn Stack>, Session)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let chain = Store::open(folder.path()).chain(&ChainSpec::new(KeyAlgorithm::EcdsaP256));
    let chain = chain.unwrap();
    let config = TlsConfig {
        resumption: Resumption::EarlyData,
        ..TlsConfig::new(Group::X25519, &chain)
    };
    let stack: Arc<dyn Stack> = Arc::from(stack(&config).unwrap());
    let mut sides = [
        Side::of(stack.quic_client(PARAMETERS).unwrap()),
        Side::of(stack.quic_server(Tickets::OfSession, PARAMETERS).unwrap()),
    ];
    for _ in 0..3 {
        sides.iter_mut().for_each(|side| side.take(&[]));
        exchange(&mut sides);
    }
    let session = sides[0].tls.session().expect("a session");
    (stack, session)
});

const PARAMETERS: &[u8] = b"\x01\x02\x67\x10";

/// One side, and what it has sent that the other has not got.
struct Side {
    tls: Box<dyn QuicTls>,
    sent: VecDeque<Vec<u8>>,
    level: Option<Level>,
    progress: Progress,
    /// After an error nothing is asked of it any more, as quinn asks nothing.
    has_failed: bool,
}

impl Side {
    fn of(tls: Box<dyn QuicTls>) -> Side {
        Side {
            tls,
            sent: VecDeque::new(),
            level: None,
            progress: Progress::Handshaking,
            has_failed: false,
        }
    }

    /// Takes what came in order, and goes as far as it gets.
    fn take(&mut self, crypto: &[u8]) {
        if self.has_failed {
            return;
        }
        self.tls.receive(crypto);
        match self.tls.advance() {
            Ok(progress) => {
                let was_established = self.progress == Progress::Established;
                assert!(!was_established || progress == Progress::Established);
                self.progress = progress;
            }
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                self.has_failed = true;
            }
        }
        while let Some(output) = self.tls.next() {
            match output {
                QuicOutput::Crypto(bytes) => {
                    assert!(!bytes.is_empty());
                    self.sent.push_back(bytes);
                }
                QuicOutput::Level(level, secret) => {
                    // One after the other, and each once.
                    assert!(self.level < Some(level), "{level:?} after {:?}", self.level);
                    assert!(secret.sealing().is_some() && secret.header().is_some());
                    self.level = Some(level);
                }
            }
        }
        // Whatever came, these are asked at any time.
        let _ = (
            self.tls.peer_parameters(),
            self.tls.alert(),
            self.tls.early_secret(),
        );
        let _ = (
            self.tls.session().is_some(),
            self.tls.is_early_data_accepted(),
        );
        for level in [Level::Handshake, Level::Application] {
            if let Some(secret) = self.tls.opening_secret(level) {
                assert!(secret.opening().is_some() && secret.header().is_some());
            }
        }
    }

    /// The next bytes that it has sent, so many at most: of one flight of a level.
    fn next(&mut self, most: usize) -> Vec<u8> {
        let Some(mut first) = self.sent.pop_front() else {
            return Vec::new();
        };
        let rest = first.split_off(most.min(first.len()));
        if !rest.is_empty() {
            self.sent.push_front(rest);
        }
        first
    }
}

/// All that both have for each other.
fn exchange(sides: &mut [Side; 2]) {
    for receiver in [1, 0] {
        loop {
            let bytes = sides[1 - receiver].next(usize::MAX);
            if bytes.is_empty() {
                break;
            }
            sides[receiver].take(&bytes);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let (stack, session) = &*REAL;
    let _seeded = Randomness::of_seed(1);
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let client = match kind & 1 {
        0 => stack.quic_client(PARAMETERS),
        _ => stack.quic_resuming_client(session, PARAMETERS),
    };
    let tickets = match kind & 2 {
        0 => Tickets::Configured,
        _ => Tickets::OfSession,
    };
    let server = stack.quic_server(tickets, PARAMETERS).unwrap();
    let mut sides = [Side::of(client.unwrap()), Side::of(server)];
    sides[0].take(&[]);
    for (tag, piece) in pieces(data) {
        let receiver = usize::from(tag & 1);
        let bytes = match tag >> 1 & 3 {
            0 => piece.to_vec(),
            // All that is there.
            1 => {
                exchange(&mut sides);
                continue;
            }
            // As many of the real bytes as the piece begins with, and some of them changed.
            _ => {
                let (most, changes) = match piece {
                    [high, low, changes @ ..] => (u16::from_be_bytes([*high, *low]), changes),
                    _ => (1, piece),
                };
                let mut bytes = sides[1 - receiver].next(most.into());
                change(&mut bytes, changes);
                bytes
            }
        };
        sides[receiver].take(&bytes);
    }
});
