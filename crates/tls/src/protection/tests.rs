//! RFC 9001, appendix A.
#![allow(clippy::unwrap_used)]

use super::*;

/// The Destination Connection ID of its examples.
const CONNECTION_ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

#[test]
fn initial_secrets_are_those_of_the_appendix() {
    let [client, server] = PacketSecret::initial(&CONNECTION_ID).unwrap();
    assert_eq!(
        hex::encode(&client.secret),
        "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea"
    );
    assert_eq!(
        hex::encode(&server.secret),
        "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b"
    );
}

/// A.2: the client's Initial, of 1162 bytes of payload, and the sample of its header.
#[test]
fn an_initial_is_protected_as_in_the_appendix() {
    let [client, _] = PacketSecret::initial(&CONNECTION_ID).unwrap();
    let mask = client.header().unwrap().mask(
        hex::decode("d1b1c98dd7689fb8ec11d242b123dc9b")
            .unwrap()
            .try_into()
            .unwrap(),
    );
    assert_eq!(hex::encode(mask.unwrap()), "437b9aec36");

    let header = hex::decode("c300000001088394c8f03e5157080000449e00000002").unwrap();
    let hello = hex::decode(concat!(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c",
        "00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006",
        "001d0017001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa4",
        "7fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305",
        "0306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff0504800",
        "0ffff07048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff"
    ))
    .unwrap();
    let mut payload = hello;
    payload.resize(1162, 0);
    let plain = payload.clone();
    let tag = client
        .sealing()
        .unwrap()
        .seal(2, &header, &mut payload)
        .unwrap();
    assert_eq!(
        hex::encode(&payload[..16]),
        "d1b1c98dd7689fb8ec11d242b123dc9b"
    );
    assert_eq!(hex::encode(tag), "e221af44860018ab0856972e194cd934");

    let opening = client.opening().unwrap();
    payload.extend(tag);
    let mut changed = payload.clone();
    changed[0] ^= 1;
    assert_eq!(opening.open(2, &header, &mut changed), None);
    assert_eq!(opening.open(2, &header, &mut payload), Some(1162));
    assert_eq!(payload[..1162], plain);
}

/// A.4.
#[test]
fn a_retry_has_the_tag_of_the_appendix() {
    let packet = hex::decode("ff000000010008f067a5502a4262b5746f6b656e").unwrap();
    let tag = retry_tag(&CONNECTION_ID, &packet).unwrap();
    assert_eq!(hex::encode(tag), "04a265ba2eff4d829058fb3f0f2496ba");
}

/// A.5.
#[test]
fn a_short_packet_of_chacha20_is_protected_as_in_the_appendix() {
    let secret = PacketSecret {
        cipher_suite: 0x1303,
        secret: hex::decode("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b")
            .unwrap(),
    };
    assert_eq!(
        hex::encode(secret.updated().unwrap().secret),
        "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9"
    );
    let mut payload = [1];
    let header = hex::decode("4200bff4").unwrap();
    let tag = secret
        .sealing()
        .unwrap()
        .seal(654_360_564, &header, &mut payload)
        .unwrap();
    assert_eq!(
        hex::encode([&payload[..], &tag].concat()),
        "655e5cd55c41f69080575d7999c25a5bfb"
    );
    let sample = hex::decode("5e5cd55c41f69080575d7999c25a5bfb").unwrap();
    let mask = secret.header().unwrap().mask(sample.try_into().unwrap());
    assert_eq!(hex::encode(mask.unwrap()), "aefefe7d03");
}
