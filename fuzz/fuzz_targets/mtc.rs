//! What others say in Merkle Tree Certificates: certificates, proofs, logs and landmarks, real ones that were
//! changed, and anything else.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use lastbyte_fuzz::{change, pieces};
use lastbyte_mtc::issue::made_up_key;
use lastbyte_mtc::note::Checkpoint;
use lastbyte_mtc::pem;
use lastbyte_mtc::serve::Request;
use lastbyte_mtc::{
    CaCertificate, Certificate, Entry, HashValue, Landmarks, LogId, LogNumber, MemoryLog, Pattern,
    Proof, Properties, RelyingParty, Subtree, TrustAnchorId, TrustedAuthority, UnixTime, Validity,
};
use libfuzzer_sys::fuzz_target;

const NOW: UnixTime = UnixTime(1_800_000_000);

/// A certificate, and a client that accepts it.
static REAL: LazyLock<(Vec<u8>, RelyingParty)> = LazyLock::new(|| {
    let id = LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap();
    let validity = Validity::of(NOW, Duration::from_secs(86_400));
    let mut log = MemoryLog::filled(id, 100, 1, validity).unwrap();
    log.make_landmark(validity.to).unwrap();
    let mut authority = TrustedAuthority::new(log.id().ca().clone());
    for (subtree, hash) in log.landmark_subtrees(1).unwrap() {
        authority.trust(LogNumber::FIRST, subtree, hash);
    }
    let mut client = RelyingParty::new();
    client.trust(authority);
    let certificate = log.landmark_relative(70, &made_up_key(1, 70)).unwrap();
    (certificate, client)
});

fuzz_target!(|data: &[u8]| {
    let (real, client) = &*REAL;
    for (tag, bytes) in pieces(data) {
        let text = String::from_utf8_lossy(bytes);
        match tag {
            0 => {
                let mut changed = real.clone();
                change(&mut changed, bytes);
                let accepted = client.verify(&changed, NOW).is_ok();
                assert_eq!(accepted, changed == *real);
            }
            1 => {
                let read = Certificate::parse(bytes).map(|certificate| {
                    let _ = (certificate.leaf(), certificate.hosts());
                });
                assert!(read.is_ok() || client.verify(bytes, NOW).is_err());
                let _ = CaCertificate::parse(bytes)
                    .map(|ca| CaCertificate::parse(&ca.to_der()).unwrap());
            }
            2 => {
                if let Ok(proof) = Proof::parse(bytes) {
                    assert_eq!(proof.to_bytes().unwrap(), bytes);
                    let size = proof.subtree.end();
                    let leaf = HashValue::empty();
                    let _ = proof
                        .subtree
                        .evaluate(proof.subtree.start(), leaf, &proof.path);
                    let _ = Subtree::whole(size).check_consistency(leaf, size, leaf, &proof.path);
                }
            }
            3 => drop(Entry::parse(bytes).map(|entry| entry.map(|entry| entry.leaf()))),
            4 => {
                if let Ok(landmarks) = Landmarks::parse(&text) {
                    assert_eq!(landmarks.to_string(), text);
                    let _ = landmarks.active(NOW, 10);
                }
            }
            5 => drop(Checkpoint::parse(&text)),
            6 => {
                if let Ok(id) = TrustAnchorId::from_bytes(bytes) {
                    assert_eq!(id.to_string().parse::<TrustAnchorId>().unwrap(), id);
                }
                if let Ok(pattern) = Pattern::from_bytes(bytes) {
                    assert_eq!(pattern.to_bytes(), bytes);
                }
                if let Ok(properties) = Properties::from_bytes(bytes) {
                    let written = properties.to_bytes().unwrap();
                    assert_eq!(Properties::from_bytes(&written).unwrap(), properties);
                }
            }
            8 => drop(Request::parse(bytes).response(Path::new("/nonexistent"))),
            9 => drop(pem::decode(pem::CERTIFICATE, &text)),
            _ => {
                let _ = text.parse::<TrustAnchorId>();
                let _ = text.parse::<Pattern>();
            }
        }
    }
});
