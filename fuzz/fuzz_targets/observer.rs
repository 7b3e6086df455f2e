//! Both directions of a connection and its key log. Since no fuzzer guesses what decrypts,
//! records can also be sealed here, with the secrets that the key log has.
#![no_main]

use lastbyte_fuzz::{expand, pieces};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::{Observer, Side};
use libfuzzer_sys::fuzz_target;
use openssl::symm::{Cipher, encrypt_aead};

fuzz_target!(|data: &[u8]| {
    let mut observer = Observer::default();
    let mut key_log = KeyLog::default();
    let mut client = Sealer::new([1; 32]);
    let mut server = Sealer::new([2; 32]);
    let mut sent = 0;
    for (tag, piece) in pieces(data) {
        let (side, sealer) = match tag & 1 {
            0 => (Side::Client, &mut client),
            _ => (Side::Server, &mut server),
        };
        let wire = match (tag >> 1, piece) {
            (0, [content_type, content @ ..]) => record(*content_type, content),
            (1, [content_type, content @ ..]) => sealer.seal(*content_type, content),
            (2, line) => {
                key_log.push_line(&String::from_utf8_lossy(line));
                continue;
            }
            _ => piece.to_vec(),
        };
        sent += wire.len();
        observer.sent(side, &wire);
    }
    key_log.push_line(&client.key_log_line("CLIENT_HANDSHAKE_TRAFFIC_SECRET"));
    key_log.push_line(&server.key_log_line("SERVER_HANDSHAKE_TRAFFIC_SECRET"));

    let observation = observer.observe(&key_log);
    let in_flights: usize = observation
        .flights
        .iter()
        .map(|flight| flight.wire_bytes)
        .sum();
    assert!(in_flights <= sent);
});

/// A record in the clear (RFC 8446, 5.1).
fn record(content_type: u8, content: &[u8]) -> Vec<u8> {
    let [.., high, low] = content.len().to_be_bytes();
    [&[content_type, 3, 3, high, low], content].concat()
}

/// Protects the records of one side with TLS_AES_128_GCM_SHA256 (RFC 8446, 5.2).
struct Sealer {
    secret: [u8; 32],
    key: [u8; 16],
    iv: [u8; 12],
    sequence: u64,
}

impl Sealer {
    fn new(secret: [u8; 32]) -> Sealer {
        Sealer {
            secret,
            key: expand(&secret, b"key"),
            iv: expand(&secret, b"iv"),
            sequence: 0,
        }
    }

    fn seal(&mut self, content_type: u8, content: &[u8]) -> Vec<u8> {
        const APPLICATION_DATA: u8 = 23;
        const TAG_BYTES: usize = 16;

        let mut nonce = self.iv;
        for (byte, sequence) in nonce.iter_mut().rev().zip(self.sequence.to_le_bytes()) {
            *byte ^= sequence;
        }
        self.sequence += 1;
        let inner = [content, &[content_type]].concat();
        let mut sealed = record(APPLICATION_DATA, &vec![0; inner.len() + TAG_BYTES]);
        let (header, body) = sealed.split_at_mut(5);
        let (text, tag) = body.split_at_mut(inner.len());
        let cipher = Cipher::aes_128_gcm();
        let encrypted = encrypt_aead(cipher, &self.key, Some(&nonce), header, &inner, tag).unwrap();
        text.copy_from_slice(&encrypted);
        sealed
    }

    fn key_log_line(&self, label: &str) -> String {
        let secret = hex::encode(self.secret);
        format!("{label} {} {secret}", "00".repeat(32))
    }
}
