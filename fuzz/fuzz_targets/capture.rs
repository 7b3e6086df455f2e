//! A capture as anybody may have written it, and the packets of its connections. What is made up here can also be
//! packets, which are written and read again.
#![no_main]

use lastbyte_capture::{About, Fate, Packet, Point, connections, read, settle, write};
use lastbyte_fuzz::pieces;
use lastbyte_link::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(capture) = read(data) {
        for connection in connections(&capture.packets) {
            let _ = connection.losses();
            let _ = connection.turns();
        }
    }
    let mut time = 0_u64;
    let mut packets = Vec::new();
    for (tag, piece) in pieces(data) {
        time += u64::from(tag) * 1_000_000;
        let point = Point::ALL[usize::from(tag) % Point::ALL.len()];
        let packet = Packet::whole(Time(time), point, Fate::Carried, piece.to_vec());
        packets.push(packet);
    }
    settle(&mut packets, None);
    let about = About {
        comment: "",
        program: "",
        secrets: "",
        unseen: 0,
        closed: Time(time),
    };
    let mut file = Vec::new();
    let described = packets.iter().map(|packet| (packet, None));
    write(&mut file, &about, described).unwrap();
    let again = read(&*file).unwrap().packets;
    assert!(again.iter().map(|(packet, _)| packet).eq(&packets));
    let _ = connections(&again);
});
