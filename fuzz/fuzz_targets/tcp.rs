//! The packets of a TCP connection, as the link's emulator reads them from its devices.
#![no_main]

use lastbyte_fuzz::pieces;
use lastbyte_link::{KeyMaker, Side, TcpPacket};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut keys = KeyMaker::new();
    for (tag, packet) in pieces(data) {
        let toward = if tag & 1 == 0 {
            Side::Server
        } else {
            Side::Client
        };
        let parsed = TcpPacket::parse(packet);
        if let Some(parsed) = parsed {
            assert!(usize::from(parsed.payload_length) + 40 <= packet.len());
        }
        assert_eq!(keys.key(toward, packet).is_some(), parsed.is_some());
    }
});
