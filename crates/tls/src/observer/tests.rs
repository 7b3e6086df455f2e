#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::{fixtures, handshake_in_memory};

const CHANGE_CIPHER_SPEC: u8 = 20;
const AES_128: u16 = 0x1301;

/// A conversation that a test writes itself.
struct Script {
    observer: Observer,
    client: Opener,
    server: Opener,
}

impl Script {
    fn new() -> Script {
        Script {
            observer: Observer::default(),
            client: Opener::sealer(AES_128, &[1; 32]).unwrap(),
            server: Opener::sealer(AES_128, &[2; 32]).unwrap(),
        }
    }

    /// Up to the ServerHello.
    fn hellos(client_extensions: &[u8], server_extensions: &[u8]) -> Script {
        let mut script = Script::new();
        script.plain(Side::Client, HANDSHAKE, &client_hello(client_extensions));
        script.plain(
            Side::Server,
            HANDSHAKE,
            &server_hello([9; 32], server_extensions),
        );
        script
    }

    fn plain(&mut self, sender: Side, content_type: u8, content: &[u8]) -> usize {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        let record = [&[content_type, 3, 3], &length[..], content].concat();
        self.observer.sent(sender, &record);
        record.len()
    }

    fn sealed(&mut self, sender: Side, content_type: u8, content: &[u8], padding: usize) -> usize {
        let sealer = match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        let record = sealer.seal(content_type, content, padding);
        self.observer.sent(sender, &record);
        record.len()
    }

    fn observe(&self) -> Observation {
        self.observer.observe(&secrets())
    }
}

fn secrets() -> KeyLog {
    let mut key_log = KeyLog::default();
    let random = "00".repeat(32);
    for (side, secret) in [("CLIENT", "01"), ("SERVER", "02")] {
        let secret = secret.repeat(32);
        key_log.push_line(&format!(
            "{side}_HANDSHAKE_TRAFFIC_SECRET {random} {secret}"
        ));
    }
    key_log
}

fn message(code: u8, body: &[u8]) -> Vec<u8> {
    [
        &[code],
        &u32::try_from(body.len()).unwrap().to_be_bytes()[1..],
        body,
    ]
    .concat()
}

fn vector(prefix: usize, body: &[u8]) -> Vec<u8> {
    [
        &u32::try_from(body.len()).unwrap().to_be_bytes()[4 - prefix..],
        body,
    ]
    .concat()
}

fn extension(code: u16, data: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &vector(2, data)].concat()
}

fn client_hello(extensions: &[u8]) -> Vec<u8> {
    let suites = vector(2, &AES_128.to_be_bytes());
    message(
        1,
        &[
            &[3, 3][..],
            &[8; 32],
            &[0],
            &suites,
            &[1, 0],
            &vector(2, extensions),
        ]
        .concat(),
    )
}

fn server_hello(random: [u8; 32], extensions: &[u8]) -> Vec<u8> {
    let suite = AES_128.to_be_bytes();
    message(
        2,
        &[
            &[3, 3][..],
            &random,
            &[0],
            &suite,
            &[0],
            &vector(2, extensions),
        ]
        .concat(),
    )
}

fn tls_1_3() -> Vec<u8> {
    extension(43, &[3, 4])
}

fn certificate(lengths: &[usize]) -> Vec<u8> {
    let entry = |length: &usize| [vector(3, &vec![0; *length]), vector(2, &[])].concat();
    let entries: Vec<u8> = lengths.iter().flat_map(entry).collect();
    message(11, &[&[0][..], &vector(3, &entries)].concat())
}

fn certificate_verify() -> Vec<u8> {
    message(15, &[&[8, 4][..], &vector(2, &[0; 256])].concat())
}

fn finished() -> Vec<u8> {
    message(20, &[0; 32])
}

fn encrypted_extensions(extensions: &[u8]) -> Vec<u8> {
    message(8, &vector(2, extensions))
}

#[test]
fn several_messages_in_one_padded_record() {
    let group = extension(51, &[&[0x11, 0xEB][..], &vector(2, &[0; 8])].concat());
    let mut script = Script::hellos(&[], &[tls_1_3(), group].concat());
    let bytes = script.plain(Side::Server, CHANGE_CIPHER_SPEC, &[1]);
    let flight = [
        encrypted_extensions(&extension(16, &vector(2, &vector(1, b"h2")))),
        certificate(&[1000, 500]),
        certificate_verify(),
        finished(),
    ];
    let bytes = bytes + script.sealed(Side::Server, HANDSHAKE, &flight.concat(), 100);
    script.sealed(Side::Client, HANDSHAKE, &finished(), 0);

    let observation = script.observe();
    assert_eq!(observation.version, Some(0x0304));
    assert_eq!(observation.group, Some(0x11EB));
    assert_eq!(observation.cipher_suite, Some(AES_128));
    assert_eq!(observation.alpn.as_deref(), Some("h2"));
    assert_eq!(observation.certificates, [1000, 500]);
    assert_eq!(
        observation.bytes(Message::Certificate),
        Some(4 + 1 + 3 + 1005 + 505)
    );
    assert_eq!(
        observation.bytes(Message::CertificateVerify),
        Some(4 + 2 + 2 + 256)
    );
    assert_eq!(observation.signature, Some(0x0804));
    assert_eq!(observation.resumed, Some(false));
    assert_eq!(observation.bytes(Message::ServerFinished), Some(36));
    assert_eq!(observation.bytes(Message::ClientFinished), Some(36));
    let server = observation.flights.get(1).unwrap();
    assert_eq!(server.records, 3);
    assert_eq!(
        server.wire_bytes,
        5 + observation.bytes(Message::ServerHello).unwrap() + bytes
    );
    let messages: usize = flight.iter().map(Vec::len).sum();
    assert_eq!(bytes, 6 + 5 + messages + 1 + 100 + 16);
}

/// What is stapled is of the message, and of no certificate.
#[test]
fn staples_are_told_apart_from_certificates() {
    let mut script = Script::hellos(&[], &tls_1_3());
    let staple = [&[1][..], &vector(3, &[0; 471])].concat();
    let entries = [
        vector(3, &[0; 1000]),
        vector(2, &extension(5, &staple)),
        vector(3, &[0; 500]),
        vector(2, &[]),
    ]
    .concat();
    let certificate = message(11, &[vec![0], vector(3, &entries)].concat());
    let flight = [encrypted_extensions(&[]), certificate.clone(), finished()];
    script.sealed(Side::Server, HANDSHAKE, &flight.concat(), 0);
    let observation = script.observe();
    assert_eq!(observation.certificates, [1000, 500]);
    assert_eq!(observation.staple_bytes, 4 + 4 + 471);
    assert_eq!(
        observation.bytes(Message::Certificate),
        Some(certificate.len())
    );
}

#[test]
fn a_message_over_several_records() {
    let mut script = Script::hellos(&[], &tls_1_3());
    let flight = [
        encrypted_extensions(&[]),
        certificate(&[40_000]),
        finished(),
    ]
    .concat();
    for fragment in flight.chunks(16_000) {
        script.sealed(Side::Server, HANDSHAKE, fragment, 0);
    }
    let observation = script.observe();
    assert_eq!(observation.certificates, [40_000]);
    assert_eq!(observation.bytes(Message::ServerFinished), Some(36));
    assert_eq!(observation.flights.get(1).unwrap().records, 1 + 3);
}

#[test]
fn messages_have_their_places_on_the_wire_and_tickets_behind_them() {
    let mut script = Script::hellos(&[], &tls_1_3());
    let server_hello = script.observer.server.len();
    let flight = [
        encrypted_extensions(&[]),
        certificate(&[20_000]),
        finished(),
    ];
    let [extensions, certificate, _] = flight.each_ref().map(Vec::len);
    for fragment in flight.concat().chunks(16_000) {
        script.sealed(Side::Server, HANDSHAKE, fragment, 0);
    }
    let end = script.observer.server.len();
    let mut tickets = Opener::sealer(AES_128, &[3; 32]).unwrap();
    let ticket = tickets.seal(HANDSHAKE, &message(4, &[0; 200]), 0);
    script.observer.sent(Side::Server, &ticket);
    let response = tickets.seal(APPLICATION_DATA, &[7; 50], 0);
    script.observer.sent(Side::Server, &response);
    let mut keys = secrets();
    let random = "00".repeat(32);
    keys.push_line(&format!(
        "SERVER_TRAFFIC_SECRET_0 {random} {}",
        "03".repeat(32)
    ));

    let placed = script.observer.messages(&keys);
    let of_server: Vec<_> = placed
        .iter()
        .filter(|placed| placed.sender == Side::Server)
        .collect();
    let places: Vec<_> = of_server
        .iter()
        .map(|placed| (placed.kind, placed.bytes.clone()))
        .collect();
    let certificates = server_hello + 5 + extensions;
    // The certificate goes on in a second record, behind a tag, a type and a header.
    let finished = certificates + certificate + 16 + 1 + 5;
    assert_eq!(
        places,
        [
            (MessageType::ServerHello, 0..server_hello),
            (MessageType::EncryptedExtensions, server_hello..certificates),
            (MessageType::Certificate, certificates..finished),
            // With the tag of its record.
            (MessageType::Finished, finished..end),
            (MessageType::Other(4), end..end + ticket.len()),
        ]
    );
    assert_eq!(script.observer.messages(&secrets()).len(), placed.len() - 1);
    let told: Vec<_> = script.observer.response_records(&keys).collect();
    let behind = end + ticket.len() + response.len();
    assert_eq!(told, [(behind, vec![7; 50])]);
    assert_eq!(script.observer.response_records(&secrets()).count(), 0);
    assert_eq!(script.observer.client_random().len(), 32);
    assert_eq!(Observer::default().client_random(), [0; 0]);
}

#[test]
fn secrets_are_found_by_the_random_of_the_client() {
    let mut keys = KeyLog::default();
    for random in [1, 2] {
        let random = format!("{random:02x}").repeat(32);
        keys.push_line(&format!("CLIENT_TRAFFIC_SECRET_0 {random} {random}"));
    }
    let own = keys.of_client_random(&[2; 32]);
    assert_eq!(own.secret("CLIENT_TRAFFIC_SECRET_0"), Some(vec![2; 32]));
    assert_eq!(keys.of_client_random(&[3; 32]), KeyLog::default());
}

#[test]
fn what_follows_the_handshake_does_not_matter() {
    let mut script = Script::hellos(&[], &tls_1_3());
    script.sealed(Side::Server, HANDSHAKE, &finished(), 0);
    script.sealed(Side::Client, HANDSHAKE, &finished(), 0);
    let before = script.observe();
    // Under other keys, as far as the observer knows.
    script.plain(Side::Client, APPLICATION_DATA, &[3; 100]);
    script.plain(Side::Server, APPLICATION_DATA, &[4; 16_000]);
    script.plain(Side::Client, APPLICATION_DATA, &[5; 19]);
    assert_eq!(script.observe(), before);
}

#[test]
fn the_sender_changes_in_the_midst_of_a_flight() {
    let mut script = Script::hellos(&[], &tls_1_3());
    // Some clients send it as soon as they have the ServerHello.
    script.plain(Side::Client, CHANGE_CIPHER_SPEC, &[1]);
    script.sealed(Side::Server, HANDSHAKE, &encrypted_extensions(&[]), 0);
    script.sealed(Side::Server, HANDSHAKE, &finished(), 0);
    script.sealed(Side::Client, HANDSHAKE, &finished(), 0);
    let flights: Vec<(Side, usize, usize)> = script
        .observe()
        .flights
        .iter()
        .map(|flight| (flight.sender, flight.records, flight.messages.len()))
        .collect();
    use Side::*;
    assert_eq!(
        flights,
        [
            (Client, 1, 1),
            (Server, 1, 1),
            (Client, 1, 0),
            (Server, 2, 2),
            (Client, 1, 1)
        ],
    );
}

#[test]
fn without_secrets_only_the_hellos_are_read() {
    let mut script = Script::hellos(
        &extension(0, &vector(2, &[&[0], &*vector(2, b"a.example")].concat())),
        &tls_1_3(),
    );
    script.sealed(
        Side::Server,
        HANDSHAKE,
        &[certificate(&[1000]), finished()].concat(),
        0,
    );
    let observation = script.observer.observe(&KeyLog::default());
    assert_eq!(observation.server_name.as_deref(), Some("a.example"));
    assert_eq!(observation.version, Some(0x0304));
    assert_eq!(observation.bytes(Message::Certificate), None);
    assert_eq!(observation.flights.get(1).unwrap().records, 2);
    assert_eq!(observation.flights.get(1).unwrap().messages.len(), 1);
}

#[test]
fn early_data_is_skipped_and_noted() {
    for (answer, early_data) in [
        (vec![], EarlyData::Offered),
        (extension(42, &[]), EarlyData::Accepted),
    ] {
        let mut script = Script::new();
        let hello = client_hello(&extension(42, &[]));
        let bytes = script.plain(Side::Client, HANDSHAKE, &hello);
        let early = script.plain(Side::Client, APPLICATION_DATA, &[7; 300]);
        let psk = [tls_1_3(), extension(41, &[0, 0])].concat();
        script.plain(Side::Server, HANDSHAKE, &server_hello([9; 32], &psk));
        let flight = [encrypted_extensions(&answer), finished()].concat();
        script.sealed(Side::Server, HANDSHAKE, &flight, 0);
        // EndOfEarlyData, under the early secret.
        script.plain(Side::Client, APPLICATION_DATA, &[7; 21]);
        script.sealed(Side::Client, HANDSHAKE, &finished(), 0);

        let observation = script.observe();
        assert_eq!(observation.early_data, early_data);
        assert_eq!(observation.resumed, Some(true));
        assert_eq!(observation.bytes(Message::ClientFinished), Some(36));
        assert_eq!(
            observation.flights.first().unwrap().wire_bytes,
            bytes + early
        );
    }
}

#[test]
fn raw_public_keys_and_compressed_certificates() {
    let mut script = Script::hellos(&[], &tls_1_3());
    let raw = [
        encrypted_extensions(&extension(20, &[2])),
        certificate(&[91]),
    ]
    .concat();
    script.sealed(Side::Server, HANDSHAKE, &raw, 0);
    let observation = script.observe();
    assert_eq!(observation.certificate_type, CertificateType::RawPublicKey);
    assert_eq!(observation.certificates, [91]);

    let mut script = Script::hellos(&[], &tls_1_3());
    let compressed = message(25, &[&[0, 2, 0, 16, 0][..], &vector(3, &[0; 700])].concat());
    script.sealed(Side::Server, HANDSHAKE, &compressed, 0);
    let observation = script.observe();
    assert_eq!(observation.certificate_compression, Some(2));
    assert_eq!(
        observation.bytes(Message::Certificate),
        Some(4 + 2 + 3 + 3 + 700)
    );
    assert_eq!(observation.certificates, []);
}

#[test]
fn a_client_has_algorithms_and_compresses_too() {
    let offer = extension(27, &vector(1, &[0, 2, 0, 1, 0x12, 0x34]));
    let mut script = Script::hellos(&offer, &tls_1_3());
    let compressed = |algorithm: u8, uncompressed: [u8; 3]| {
        let head = [&[0, algorithm][..], &uncompressed].concat();
        message(25, &[&head[..], &vector(3, &[7; 50])].concat())
    };
    let twice = [compressed(3, [1, 0, 0]), compressed(2, [0, 0, 9])].concat();
    script.sealed(Side::Client, HANDSHAKE, &twice, 0);
    let observation = script.observe();
    assert_eq!(observation.offered_compressions, [2, 1, 0x1234]);
    assert_eq!(observation.client_certificate_compression, Some(3));
    assert_eq!(observation.uncompressed_client_certificate, Some(1 << 16));
    assert_eq!(observation.certificate_compression, None);
    assert_eq!(observation.uncompressed_certificate, None);
}

/// A CompressedCertificate of a Certificate message, and what it says it has.
#[cfg(feature = "rustls")]
fn compressed_certificate(
    algorithm: crate::CertificateCompression,
    plain: &[u8],
    declared: usize,
) -> Vec<u8> {
    use crate::CertificateCompression as C;
    use ::rustls::compress::{BROTLI_COMPRESSOR, CompressionLevel, ZLIB_COMPRESSOR};
    let compress = |compressor: &dyn ::rustls::compress::CertCompressor| {
        compressor.compress(plain.to_vec(), CompressionLevel::Interactive)
    };
    let compressed = match algorithm {
        C::Zlib => compress(ZLIB_COMPRESSOR).unwrap(),
        C::Brotli => compress(BROTLI_COMPRESSOR).unwrap(),
        C::Zstd => zstd::bulk::compress(plain, 3).unwrap(),
    };
    let declared = u32::try_from(declared).unwrap().to_be_bytes();
    let code_point = algorithm.code_point().to_be_bytes();
    message(
        25,
        &[&code_point, &declared[1..], &vector(3, &compressed)].concat(),
    )
}

#[cfg(feature = "rustls")]
#[test]
fn compressed_certificates_are_read_if_they_have_the_declared_length() {
    let plain = certificate(&[40_000, 500]).split_off(4);
    for algorithm in crate::CertificateCompression::ALL {
        let read = |declared| {
            let mut script = Script::hellos(&[], &tls_1_3());
            let compressed = compressed_certificate(algorithm, &plain, declared);
            script.sealed(Side::Server, HANDSHAKE, &compressed, 0);
            let observation = script.observe();
            let code_point = Some(algorithm.code_point());
            assert_eq!(observation.certificate_compression, code_point);
            assert_eq!(observation.uncompressed_certificate, Some(declared));
            assert_eq!(
                observation.bytes(Message::Certificate),
                Some(compressed.len())
            );
            observation.certificates
        };
        assert_eq!(read(plain.len()), [40_000, 500]);
        for lie in [0, 1, plain.len() - 1, plain.len() + 1, (1 << 24) - 1] {
            assert_eq!(read(lie), [], "{algorithm} {lie}");
        }
    }
}

#[test]
fn alerts_are_noted_in_the_clear_and_protected() {
    let mut script = Script::new();
    script.plain(Side::Client, HANDSHAKE, &client_hello(&[]));
    script.plain(Side::Server, ALERT, &[2, 40]);
    assert_eq!(script.observe().alert, Some((Side::Server, Alert(40))));

    let mut script = Script::hellos(&[], &tls_1_3());
    script.sealed(Side::Server, HANDSHAKE, &certificate(&[10]), 0);
    script.sealed(Side::Client, ALERT, &[2, 42], 3);
    assert_eq!(script.observe().alert, Some((Side::Client, Alert(42))));
}

#[test]
fn of_tls_1_2_only_the_hellos_are_read() {
    let mut script = Script::hellos(&[], &[]);
    script.plain(Side::Server, HANDSHAKE, &message(11, &vector(3, &[0; 500])));
    let observation = script.observe();
    assert_eq!(observation.version, Some(0x0303));
    assert_eq!(observation.bytes(Message::Certificate), None);
}

/// In records of whatever length, and never behind what is encrypted.
#[test]
fn of_tls_1_2_a_request_for_a_certificate_is_seen() {
    const CHANGE_CIPHER_SPEC: u8 = 20;
    let request = message(13, &[1, 64, 0, 2, 4, 3, 0, 0]);
    let flight = |request: &[u8]| [&certificate(&[600]), request, &message(14, &[])].concat();
    let script = |flight: &[u8], piece: usize| {
        let mut script = Script::hellos(&[], &[]);
        for piece in flight.chunks(piece) {
            script.plain(Side::Server, HANDSHAKE, piece);
        }
        script
    };
    for piece in [1000, 600, 7] {
        let asked = script(&flight(&request), piece);
        assert!(asked.observer.asks_for_certificate_in_clear(), "{piece}");
        let mut not_asked = script(&flight(&[]), piece);
        not_asked.plain(Side::Server, CHANGE_CIPHER_SPEC, &[1]);
        not_asked.plain(Side::Server, HANDSHAKE, &request);
        assert!(
            !not_asked.observer.asks_for_certificate_in_clear(),
            "{piece}"
        );
    }
    assert!(!Observer::default().asks_for_certificate_in_clear());
}

#[test]
fn an_unknown_cipher_suite_is_not_opened() {
    assert!(Opener::new(0x1304, &[1; 32]).is_none());
    // Nor a secret that is too short for the suite.
    assert!(Opener::new(0x1302, &[1; 32]).is_none());
}

#[test]
fn what_is_not_tls_is_nothing() {
    let mut observer = Observer::default();
    observer.sent(Side::Client, b"GET / HTTP/1.1\r\n\r\n");
    observer.sent(Side::Server, b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(observer.observe(&secrets()), Observation::default());
}

#[test]
fn the_observer_is_bounded() {
    let mut observer = Observer::default();
    for _ in 0..40 {
        observer.sent(Side::Client, &[0; 1 << 19]);
        observer.sent(Side::Server, &[0; 1 << 18]);
    }
    assert_eq!(observer.client.len() + observer.server.len(), CAPACITY);
    assert_eq!(
        observer
            .turns
            .iter()
            .map(|(_, length)| length)
            .sum::<usize>(),
        CAPACITY
    );
}

/// Who sent what, in order.
type Sent = Vec<(Side, Vec<u8>)>;

/// A real handshake and its secrets.
static TRANSCRIPT: LazyLock<(Sent, KeyLog)> = LazyLock::new(|| {
    let handshake = handshake_in_memory(&fixtures::fast()).unwrap();
    let Observer {
        client,
        server,
        turns,
    } = handshake.observer;
    let (mut client, mut server) = (client.into_iter(), server.into_iter());
    let sent = turns.into_iter().map(|(side, length)| match side {
        Side::Client => (side, client.by_ref().take(length).collect()),
        Side::Server => (side, server.by_ref().take(length).collect()),
    });
    (sent.collect(), handshake.client.key_log())
});

fn observe(sent: &[(Side, Vec<u8>)], key_log: &KeyLog) -> Observation {
    let mut observer = Observer::default();
    for (side, bytes) in sent {
        observer.sent(*side, bytes);
    }
    observer.observe(key_log)
}

#[test]
fn a_handshake_cut_anywhere_gives_what_is_there() {
    let (sent, key_log) = &*TRANSCRIPT;
    let whole = observe(sent, key_log);
    let total: usize = sent.iter().map(|(_, bytes)| bytes.len()).sum();
    for cut in 0..total {
        let mut room = cut;
        let mut part = sent.clone();
        for (_, bytes) in &mut part {
            bytes.truncate(room);
            room -= bytes.len();
        }
        let observation = observe(&part, key_log);
        let is_part = |part: Option<usize>, whole| part.is_none() || part == whole;
        assert!(is_part(
            observation.bytes(Message::ClientHello),
            whole.bytes(Message::ClientHello)
        ));
        assert!(is_part(
            observation.bytes(Message::Certificate),
            whole.bytes(Message::Certificate)
        ));
        assert!(is_part(
            observation.bytes(Message::ServerFinished),
            whole.bytes(Message::ServerFinished)
        ));
        assert_eq!(observation.bytes(Message::ClientFinished), None);
        assert!(
            observation
                .flights
                .iter()
                .map(|flight| flight.wire_bytes)
                .sum::<usize>()
                <= cut
        );
    }
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

/// What holds whatever was sent.
fn check(observation: &Observation, sent: &[(Side, Vec<u8>)]) -> Result<(), TestCaseError> {
    let sum = |side: Side| {
        sent.iter()
            .filter(|(sender, _)| *sender == side)
            .map(|(_, bytes)| bytes.len())
            .sum()
    };
    for side in [Side::Client, Side::Server] {
        let flights = || {
            observation
                .flights
                .iter()
                .filter(|flight| flight.sender == side)
        };
        let wire_bytes: usize = flights().map(|flight| flight.wire_bytes).sum();
        let messages: usize = flights()
            .flat_map(|flight| &flight.messages)
            .map(|message| message.bytes)
            .sum();
        prop_assert!(messages <= wire_bytes);
        prop_assert!(wire_bytes <= sum(side));
    }
    for pair in observation.flights.windows(2) {
        prop_assert_ne!(pair[0].sender, pair[1].sender);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_can_be_observed(sent: Vec<(bool, Vec<u8>)>) {
        let sent: Sent = sent
            .into_iter()
            .map(|(client, bytes)| (if client { Side::Client } else { Side::Server }, bytes))
            .collect();
        check(&observe(&sent, &secrets()), &sent)?;
    }

    #[test]
    fn any_messages_can_be_observed(
        hello_extensions: Vec<u8>,
        records in prop::collection::vec(
            (side(), any::<u8>(), prop_oneof![
                any::<Vec<u8>>(),
                (0_u8..30, any::<Vec<u8>>()).prop_map(|(code, body)| message(code, &body)),
            ], 0_usize..40),
            0..10,
        ),
    ) {
        let mut script = Script::hellos(&hello_extensions, &tls_1_3());
        for (sender, kind, content, padding) in records {
            match kind {
                0..64 => script.plain(sender, 20 + kind % 5, &content),
                64..128 => script.sealed(sender, kind, &content, padding),
                _ => script.sealed(sender, HANDSHAKE, &content, padding),
            };
        }
        let Observer { client, server, .. } = &script.observer;
        let sent = [(Side::Client, client.clone()), (Side::Server, server.clone())];
        check(&script.observe(), &sent)?;
    }

    #[test]
    #[cfg(feature = "rustls")]
    fn any_compressed_certificate_can_be_observed(
        algorithm in prop::sample::select(crate::CertificateCompression::ALL.to_vec()),
        plain in prop_oneof![any::<Vec<u8>>(), Just(vec![0; 1 << 20])],
        declared in prop::option::of(0_usize..1 << 24),
        at: prop::sample::Index,
        flipped: u8,
    ) {
        let mut compressed =
            compressed_certificate(algorithm, &plain, declared.unwrap_or(plain.len()));
        // Anywhere behind the header.
        let length = compressed.len() - 4;
        compressed[4 + at.index(length)] ^= flipped;
        let mut script = Script::hellos(&[], &tls_1_3());
        script.sealed(Side::Server, HANDSHAKE, &compressed, 0);
        let Observer { client, server, .. } = &script.observer;
        let sent = [(Side::Client, client.clone()), (Side::Server, server.clone())];
        check(&script.observe(), &sent)?;
    }

    #[test]
    fn a_changed_handshake_can_be_observed(
        turn: prop::sample::Index,
        position: prop::sample::Index,
        removed in 0_usize..40,
        inserted: Vec<u8>,
    ) {
        let (mut sent, key_log) = TRANSCRIPT.clone();
        let (_, bytes) = turn.get_mut(&mut sent);
        let start = position.index(bytes.len());
        let end = bytes.len().min(start + removed);
        bytes.splice(start..end, inserted);
        check(&observe(&sent, &key_log), &sent)?;
    }

    #[test]
    fn the_observation_does_not_depend_on_how_bytes_are_noted(length in 1_usize..2000) {
        let (sent, key_log) = &*TRANSCRIPT;
        let pieces: Sent = sent
            .iter()
            .flat_map(|(side, bytes)| bytes.chunks(length).map(|piece| (*side, piece.to_vec())))
            .collect();
        prop_assert_eq!(observe(&pieces, key_log), observe(sent, key_log));
    }
}
