//! The datagrams of a connection over QUIC, and its key log. Since no fuzzer guesses what decrypts, packets can also be
//! sealed here: Initial ones with the keys that anybody can have, Handshake ones with the secrets of the key log.
#![no_main]

use lastbyte_fuzz::{expand, pieces};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::Side;
use lastbyte_tls::observer::quic::{QuicObserver, read_all};
use libfuzzer_sys::fuzz_target;
use openssl::kdf::{HkdfMode, hkdf};
use openssl::md::Md;
use openssl::symm::{Cipher, encrypt, encrypt_aead};

const CONNECTION_ID: [u8; 8] = [7; 8];

/// In the tag of a piece: it goes into the datagram of the one before.
const COALESCED: u8 = 0x80;

fuzz_target!(|data: &[u8]| {
    let initial = initial_secret();
    let mut sealers = [(b"client in", [1; 32]), (b"server in", [2; 32])]
        .map(|(label, handshake)| [Sealer::new(expand(&initial, label)), Sealer::new(handshake)]);
    let mut key_log = KeyLog::default();
    let mut datagrams: Vec<(Side, Vec<u8>)> = Vec::new();
    for (tag, piece) in pieces(data) {
        let side = match tag & 1 {
            0 => Side::Client,
            _ => Side::Server,
        };
        let packet = match (tag & !COALESCED) >> 1 {
            0 => sealers[side as usize][0].seal(&initial_header(), piece),
            1 => sealers[side as usize][1].seal(&header(0xe3), piece),
            2 => {
                key_log.push_line(&String::from_utf8_lossy(piece));
                continue;
            }
            _ => piece.to_vec(),
        };
        match datagrams.last_mut() {
            Some((_, datagram)) if tag & COALESCED != 0 => datagram.extend(packet),
            _ => datagrams.push((side, packet)),
        }
    }
    for (side, [_, handshake]) in ["CLIENT", "SERVER"].iter().zip(&sealers) {
        let [label, random] = [format!("{side}_HANDSHAKE_TRAFFIC_SECRET"), "00".repeat(32)];
        let secret = hex::encode(handshake.secret);
        key_log.push_line(&format!("{label} {random} {secret}"));
    }

    let mut observer = QuicObserver::default();
    for (side, datagram) in &datagrams {
        observer.sent(*side, datagram);
    }
    let observation = observer.observe(&key_log);
    assert_eq!(observation.datagrams.len(), datagrams.len());
    for (seen, (side, datagram)) in observation.datagrams.iter().zip(&datagrams) {
        assert_eq!((seen.sender, seen.bytes), (*side, datagram.len()));
        let in_packets: usize = seen.packets.iter().map(|packet| packet.bytes).sum();
        assert!(in_packets <= seen.bytes);
        for packet in &seen.packets {
            let crypto = packet.crypto.iter().flatten();
            let all: u64 = crypto
                .clone()
                .map(|crypto| crypto.bytes.end - crypto.bytes.start)
                .sum();
            assert!(all < packet.bytes as u64);
            let new: u64 = crypto.map(|crypto| crypto.new).sum();
            assert!(new <= all);
        }
    }
    let sent = datagrams.iter();
    let all = read_all(
        sent.map(|(side, bytes)| (*side, bytes.as_slice())),
        &key_log,
    );
    assert_eq!(all.handshake, observation.handshake);
    assert_eq!(all.datagrams.len(), datagrams.len());
});

/// What the keys of Initial packets come from (RFC 9001, 5.2).
fn initial_secret() -> [u8; 32] {
    const SALT: &str = "38762cf7f55934b34d179ae6a4c80cadccbb7f0a";

    let salt = hex::decode(SALT).unwrap();
    let mut secret = [0; 32];
    let mode = HkdfMode::ExtractOnly;
    hkdf(
        Md::sha256(),
        &CONNECTION_ID,
        Some(&salt),
        None,
        mode,
        None,
        &mut secret,
    )
    .unwrap();
    secret
}

/// A long header up to its connection IDs (RFC 9000, 17.2), whose packet number has four bytes.
fn header(first: u8) -> Vec<u8> {
    [&[first, 0, 0, 0, 1, 8][..], &CONNECTION_ID, &[0]].concat()
}

/// That of an Initial packet has a token, here an empty one.
fn initial_header() -> Vec<u8> {
    [header(0xc3), vec![0]].concat()
}

/// Protects the packets of one side and kind with TLS_AES_128_GCM_SHA256 (RFC 9001, 5).
struct Sealer {
    secret: [u8; 32],
    key: [u8; 16],
    iv: [u8; 12],
    header_key: [u8; 16],
    number: u32,
}

impl Sealer {
    fn new(secret: [u8; 32]) -> Sealer {
        Sealer {
            secret,
            key: expand(&secret, b"quic key"),
            iv: expand(&secret, b"quic iv"),
            header_key: expand(&secret, b"quic hp"),
            number: 0,
        }
    }

    fn seal(&mut self, header: &[u8], frames: &[u8]) -> Vec<u8> {
        const NUMBER_BYTES: usize = 4;
        const TAG_BYTES: usize = 16;

        let number = self.number.to_be_bytes();
        self.number += 1;
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().rev().zip(number.iter().rev()) {
            *byte ^= number;
        }
        let length = (NUMBER_BYTES + frames.len() + TAG_BYTES) as u32 | 2 << 30;
        let mut packet = [header, &length.to_be_bytes(), &number].concat();
        let mut tag = [0; TAG_BYTES];
        let aead = Cipher::aes_128_gcm();
        let sealed = encrypt_aead(aead, &self.key, Some(&nonce), &packet, frames, &mut tag);
        let number_at = packet.len() - NUMBER_BYTES;
        packet.extend([&sealed.unwrap()[..], &tag].concat());
        let sample = &packet[number_at + 4..][..16];
        let mask = encrypt(Cipher::aes_128_ecb(), &self.header_key, None, sample).unwrap();
        packet[0] ^= mask[0] & 0xf;
        for (byte, mask) in packet[number_at..][..NUMBER_BYTES]
            .iter_mut()
            .zip(&mask[1..])
        {
            *byte ^= mask;
        }
        packet
    }
}
