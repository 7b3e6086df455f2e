//! What rustls makes of servers that say nothing true of what they compressed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::rustls::CertificateCompressionAlgorithm;
use ::rustls::compress::{CertCompressor, CompressionFailed, CompressionLevel};
use lastbyte_pki::ChainSpec;

use super::*;
use crate::abridged::Listing;
use crate::fixtures::{chain, plain_chain};
use crate::observer::{Message, Observation, Observer};
use crate::{Compressions, Delivery, handshake_between};

const ALL: [CertificateCompression; 3] = CertificateCompression::ALL;

fn config(chain: &Chain, algorithm: CertificateCompression) -> TlsConfig<'_> {
    TlsConfig {
        client: STACK,
        server: STACK,
        delivery: Delivery::Compressed(Compressions::both(&[algorithm])),
        ..TlsConfig::new(Group::X25519, chain)
    }
}

/// Says that it compressed a certificate, and sends something else.
#[derive(Debug)]
struct Liar {
    algorithm: CertificateCompression,
    lie: Lie,
    times: AtomicUsize,
}

#[derive(Debug, Clone)]
enum Lie {
    /// None: that it compresses is counted.
    Truth,
    /// More than the certificate, compressed.
    Longer,
    /// Less than the certificate, compressed.
    Shorter,
    /// The certificate, compressed, and more.
    Followed,
    /// The certificate as it is, in a frame of Zstandard.
    Stored,
    /// Anything.
    Bytes(Vec<u8>),
}

impl CertCompressor for Liar {
    fn compress(
        &self,
        mut input: Vec<u8>,
        level: CompressionLevel,
    ) -> Result<Vec<u8>, CompressionFailed> {
        self.times.fetch_add(1, Ordering::Relaxed);
        let compress = |input| compression::compressor(self.algorithm).compress(input, level);
        match &self.lie {
            Lie::Truth => compress(input),
            Lie::Longer => {
                input.push(0);
                compress(input)
            }
            Lie::Shorter => {
                input.pop();
                compress(input)
            }
            Lie::Followed => Ok([compress(input)?, b"more".to_vec()].concat()),
            Lie::Stored => Ok(stored(&input)),
            Lie::Bytes(bytes) => Ok(bytes.clone()),
        }
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        compression::compressor(self.algorithm).algorithm()
    }
}

/// A frame of raw blocks, which says how much there is (RFC 8878, 3.1.1).
fn stored(input: &[u8]) -> Vec<u8> {
    const MAGIC: u32 = 0xFD2F_B528;
    const SIZE_OF_FOUR_BYTES_AND_NO_WINDOW: u8 = 0xA0;
    const LAST_AND_RAW: u32 = 1;
    let length = u32::try_from(input.len()).unwrap();
    let mut frame = MAGIC.to_le_bytes().to_vec();
    frame.push(SIZE_OF_FOUR_BYTES_AND_NO_WINDOW);
    frame.extend(length.to_le_bytes());
    frame.extend(&(length << 3 | LAST_AND_RAW).to_le_bytes()[..3]);
    frame.extend(input);
    frame
}

/// A server that compresses like that.
fn server(config: &TlsConfig<'_>, lie: Lie) -> (RustlsServer, &'static Liar) {
    let mut server = RustlsServer::new(config).unwrap();
    let liar = &*Box::leak(Box::new(Liar {
        algorithm: *Ask::server(config).compressions().first().unwrap(),
        lie,
        times: AtomicUsize::new(0),
    }));
    server.config.cert_compressors = vec![liar];
    (server, liar)
}

/// Why a client gives up, what the server hears of it, and what was on the wire.
fn refusal(client: &RustlsClient, server: &RustlsServer) -> (TlsError, TlsError, Observation) {
    let mut client = client.connect(None).unwrap();
    let mut server = server.accept(0).unwrap();
    let mut observer = Observer::default();
    let mut pass = |side, from: &mut dyn Connection, to: &mut dyn Connection| {
        let mut sent = Vec::new();
        from.transmit(&mut sent);
        observer.sent(side, &sent);
        to.receive(&sent);
        to.advance()
    };
    client.advance().unwrap();
    pass(Side::Client, client.as_mut(), server.as_mut()).unwrap();
    let error = pass(Side::Server, server.as_mut(), client.as_mut()).unwrap_err();
    let heard = pass(Side::Client, client.as_mut(), server.as_mut()).unwrap_err();
    (error, heard, observer.observe(&client.key_log()))
}

const BAD_CERTIFICATE: Alert = Alert(42);

fn assert_refused(refusal: &(TlsError, TlsError, Observation), reason: &str, what: &str) {
    let (error, heard, observation) = refusal;
    assert_eq!(error, &protocol(reason), "{what}");
    assert_eq!(heard, &TlsError::Refused(BAD_CERTIFICATE), "{what}");
    let alert = Some((Side::Client, BAD_CERTIFICATE));
    assert_eq!(observation.alert, alert, "{what}");
}

#[test]
fn what_does_not_have_the_declared_length_is_refused() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let declared = chain.certificate_message_bytes() - 4;
    for algorithm in ALL {
        let config = config(&chain, algorithm);
        let client = RustlsClient::new(&config).unwrap();
        for lie in [
            Lie::Longer,
            Lie::Shorter,
            Lie::Followed,
            Lie::Bytes(vec![]),
            Lie::Bytes(vec![0; 100]),
            Lie::Bytes(vec![0xff; 20_000]),
        ] {
            let what = format!("{algorithm} {lie:?}");
            let refusal = refusal(&client, &server(&config, lie).0);
            assert_refused(&refusal, "peer misbehaved: InvalidCertCompression", &what);
            let (_, _, seen) = refusal;
            assert_eq!(seen.certificate_compression, Some(algorithm.code_point()));
            assert_eq!(seen.uncompressed_certificate, Some(declared), "{what}");
            assert!(seen.bytes(Message::Certificate).is_some());
            assert_eq!(seen.certificates, [], "{what}");
        }
    }
}

/// By the zlib, brotli and zstandard of Python.
#[test]
fn what_others_compressed_is_decompressed() {
    const TEXT: &[u8] = b"a certificate is a certificate is a certificate";
    for (algorithm, compressed) in [
        (
            CertificateCompression::Zlib,
            "789c4b54484e2d2ac94ccb4c4e2c4955c82c5648c42b000099ea1145",
        ),
        (
            CertificateCompression::Brotli,
            "1b2e00f8a540c28a19680a04946ee53d",
        ),
        (
            CertificateCompression::Zstd,
            "28b52ffd202fbd00008861206365727469666963617465206973200100499c4b",
        ),
    ] {
        let digits = compressed.as_bytes().chunks(2);
        let byte = |digits| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
        let bytes: Vec<u8> = digits.map(byte).collect();
        let found = decompress(algorithm.code_point(), &bytes, TEXT.len());
        assert_eq!(found.as_deref(), Some(TEXT), "{algorithm}");
        assert_eq!(
            decompress(algorithm.code_point(), &bytes, TEXT.len() + 1),
            None
        );
        assert_eq!(
            decompress(algorithm.code_point(), &bytes, TEXT.len() - 1),
            None
        );
    }
}

#[test]
fn a_bomb_takes_no_memory() {
    const INFLATED: usize = 48 << 20;
    // A window of brotli's is 4 MiB.
    const BOUND: usize = 12 << 20;
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for algorithm in ALL {
        let config = config(&chain, algorithm);
        let client = RustlsClient::new(&config).unwrap();
        let bomb = compression::compressor(algorithm)
            .compress(vec![0; INFLATED], CompressionLevel::Interactive)
            .unwrap();
        assert!(bomb.len() < 60_000, "{algorithm}: {}", bomb.len());
        let server = server(&config, Lie::Bytes(bomb)).0;

        // The peak begins anew.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = memory_of_this_process("VmRSS:");
        let refusal = refusal(&client, &server);
        let taken = memory_of_this_process("VmHWM:").saturating_sub(before);
        assert!(taken < BOUND, "{algorithm}: {taken}");
        let what = algorithm.name();
        assert_refused(&refusal, "peer misbehaved: InvalidCertCompression", what);
        assert_eq!(refusal.2.certificates, [], "{what}");
    }
}

/// Bytes, of `/proc/self/status`.
fn memory_of_this_process(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kibibytes.parse::<usize>().unwrap() << 10
}

/// A certificate that is small on the wire only is refused for what it says it has.
#[test]
fn a_chain_that_is_too_large_uncompressed_is_refused() {
    let small = plain_chain(KeyAlgorithm::EcdsaP256);
    let large = chain(&ChainSpec {
        certificate_bytes: Some(70_000),
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    });
    let declared = large.certificate_message_bytes() - 4;
    for algorithm in ALL {
        let asked = config(&large, algorithm);
        assert_eq!(
            RustlsClient::new(&asked).unwrap_err(),
            cannot(
                STACK,
                "take a Certificate message of 70000 bytes",
                "its own limit is 60000 bytes"
            )
        );
        // It decompresses well.
        let compressor = compression::compressor(algorithm);
        let zeros = compressor.compress(vec![0; declared], CompressionLevel::Amortized);
        let server = server(&asked, Lie::Bytes(zeros.unwrap())).0;
        let client = RustlsClient::new(&config(&small, algorithm)).unwrap();
        let refusal = refusal(&client, &server);
        let reason = "received corrupt message of type MessageTooLarge";
        assert_refused(&refusal, reason, algorithm.name());
        let (_, _, seen) = refusal;
        assert_eq!(seen.uncompressed_certificate, Some(declared));
        assert!(seen.bytes(Message::Certificate).unwrap() < 1000);
    }
}

/// The largest chain that is taken passes when it can hardly be compressed, its padding being random,
/// and when it grows.
#[test]
fn a_certificate_may_grow_when_it_is_compressed() {
    const BYTES: usize = MAX_CERTIFICATE_MESSAGE;
    let chain = chain(&ChainSpec {
        certificate_bytes: Some(BYTES),
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    });
    let sent = |algorithm, lie| {
        let config = config(&chain, algorithm);
        let client = RustlsClient::new(&config).unwrap().connect(None).unwrap();
        let server = server(&config, lie).0.accept(0).unwrap();
        let handshake = handshake_between(client, server).unwrap();
        let seen = handshake.observer.observe(&handshake.client.key_log());
        assert_eq!(seen.certificates.len(), 2, "{algorithm}");
        assert_eq!(seen.uncompressed_certificate, Some(BYTES - 4));
        seen.bytes(Message::Certificate).unwrap()
    };
    for algorithm in ALL {
        let bytes = sent(algorithm, Lie::Truth);
        assert!(
            (BYTES - 1000..BYTES).contains(&bytes),
            "{algorithm} {bytes}"
        );
    }
    // The header of the frame, and what a CompressedCertificate has before that.
    let grown = BYTES + (4 + 1 + 4 + 3) + (2 + 3 + 3);
    assert_eq!(sent(CertificateCompression::Zstd, Lie::Stored), grown);
}

/// What costs most is done once for all connections of a server.
#[test]
fn a_certificate_is_compressed_in_the_first_handshake_only() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for algorithm in ALL {
        let config = config(&chain, algorithm);
        let client = RustlsClient::new(&config).unwrap();
        let (server, liar) = server(&config, Lie::Truth);
        assert_eq!(liar.times.load(Ordering::Relaxed), 0);
        for _ in 0..3 {
            let client = client.connect(None).unwrap();
            handshake_between(client, server.accept(0).unwrap()).unwrap();
            assert_eq!(liar.times.load(Ordering::Relaxed), 1, "{algorithm}");
        }
    }
}

#[test]
fn no_algorithm_can_be_named_twice() {
    use CertificateCompression::{Brotli, Zlib};
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let config = TlsConfig {
        delivery: Delivery::Compressed(Compressions::both(&[Zlib, Brotli, Zlib])),
        ..config(&chain, Zlib)
    };
    let error = RustlsClient::new(&config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rustls can't compress certificates with zlib twice: name it once"
    );
    assert_eq!(RustlsServer::new(&config).unwrap_err(), error);
}

/// Both sides with the listings that they know.
fn abridging<'a>(chain: &'a Chain, server: &Listing, client: &Listing) -> TlsConfig<'a> {
    TlsConfig {
        client: STACK,
        server: STACK,
        delivery: Delivery::Abridged {
            server: server.clone(),
            client: client.clone(),
        },
        ..TlsConfig::new(Group::X25519, chain)
    }
}

#[test]
fn listings_that_differ_between_the_ends_are_refused() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let [end_entity, intermediate] = chain.certificates() else {
        panic!("a chain of two")
    };
    let of = |certificates: &[_], samples: &[_]| Listing::new(certificates, samples).unwrap();
    let root = chain.root().clone();
    let own = of(
        &[intermediate.clone(), root.clone()],
        std::slice::from_ref(end_entity),
    );
    let others = [
        // Another order, another dictionary, a certificate fewer, none.
        of(
            &[root.clone(), intermediate.clone()],
            std::slice::from_ref(end_entity),
        ),
        of(&[intermediate.clone(), root.clone()], &[]),
        of(&[root], std::slice::from_ref(end_entity)),
        Listing::default(),
    ];
    let same = abridging(&chain, &own, &own);
    let client = RustlsClient::new(&same).unwrap().connect(None).unwrap();
    let server = RustlsServer::new(&same).unwrap();
    let handshake = handshake_between(client, server.accept(0).unwrap()).unwrap();
    let seen = handshake.observer.observe(&handshake.client.key_log());
    assert_eq!(seen.certificate_compression, Some(lastbyte_sizes::ABRIDGED));
    assert_eq!(seen.certificates.len(), 2);
    let sent = seen.bytes(Message::Certificate).unwrap();
    assert!(sent < chain.certificate_message_bytes() / 2, "{sent}");
    for other in others {
        let config = abridging(&chain, &own, &other);
        let client = RustlsClient::new(&config).unwrap();
        let refusal = refusal(&client, &server);
        assert_refused(
            &refusal,
            "peer misbehaved: InvalidCertCompression",
            &format!("{other:?}"),
        );
    }
}

#[test]
fn what_is_abridged_wrongly_is_refused() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let cas = [chain.certificates()[1].clone()];
    let listing = Listing::new(&cas, &[]).unwrap();
    let abridger = abridged::Abridger::of(&listing);
    let restored = |bytes: &[u8], length: usize| {
        let mut message = vec![0; length];
        use ::rustls::compress::CertDecompressor;
        abridger.decompress(bytes, &mut message).is_ok()
    };
    let certificate = cas[0].to_der().unwrap();
    let length = certificate.len();
    let entries = [
        &[0, (length >> 8) as u8, length as u8][..],
        &certificate,
        &[0, 0],
    ]
    .concat();
    let list = entries.len();
    let message = [&[0, 0, (list >> 8) as u8, list as u8][..], &entries].concat();
    let compressed = abridger
        .compress(message.clone(), CompressionLevel::Amortized)
        .unwrap();
    assert!(compressed.len() < 60, "{}", compressed.len());
    assert!(restored(&compressed, message.len()));
    assert!(!restored(&compressed, message.len() + 1));
    assert!(!restored(&compressed, message.len() - 1));
    for cut in 0..compressed.len() {
        assert!(!restored(&compressed[..cut], message.len()), "{cut}");
    }
    // No message at all.
    assert!(
        abridger
            .compress(vec![1, 2, 3], CompressionLevel::Amortized)
            .is_err()
    );
    // A bomb of either pass: many zeros, and a listed certificate again and again.
    let zeros = zstd::bulk::compress(&vec![0; 16 << 20], 19).unwrap();
    assert!(!restored(&zeros, 60_000));
    let again = [0, 0, 3, 0xff, 0, 0, 0, 0].repeat(10_000);
    let list = again.len();
    let again = [
        &[0, (list >> 16) as u8, (list >> 8) as u8, list as u8][..],
        &again,
    ]
    .concat();
    assert!(listing.restore(&again, 60_000).is_none());
}
