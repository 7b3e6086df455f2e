#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use super::*;
use crate::id::{LogId, LogNumber};
use crate::issue::Sample;
use crate::time::UnixTime;
use crate::verify::{Group, RelyingParty};
use crate::{CaCertificate, Refusal, Request, Trusted};

const NOW: UnixTime = UnixTime(1_800_000_000);
const WEEK: Duration = Duration::from_secs(7 * 86_400);

#[test]
fn every_algorithm_cosigns_and_is_checked() {
    let ca: TrustAnchorId = "32473.1".parse().unwrap();
    let mirror: TrustAnchorId = "32473.2".parse().unwrap();
    let leaf = SigningKey::generate(ca.clone(), SignatureAlgorithm::MlDsa44).unwrap();
    let leaf = leaf.public().unwrap();
    let request = Request {
        names: &["example.com", "www.example.com"],
        key: &leaf,
        validity: Validity::of(NOW, WEEK),
    };
    let log = LogId::new(ca.clone(), LogNumber::FIRST).unwrap();
    let sample = Sample::new(log, &request, 1000, 3000, 1).unwrap();
    for algorithm in SignatureAlgorithm::ALL {
        let of_ca = SigningKey::generate(ca.clone(), algorithm).unwrap();
        let of_mirror = SigningKey::generate(mirror.clone(), algorithm).unwrap();
        let described = of_ca.ca_certificate(Validity::of(NOW, WEEK)).unwrap();
        let described = CaCertificate::parse(&described.to_der()).unwrap();
        assert_eq!(described.algorithm, algorithm);
        let mut authority = TrustedAuthority::of_certificate(&described).unwrap();
        authority.cosigner(mirror.clone(), Box::new(of_mirror.checker().unwrap()));
        authority.require(Group::all([mirror.clone()]));
        let mut client = RelyingParty::new();
        client.trust(authority);
        let certificate = sample.standalone(0..2500, &[&of_ca, &of_mirror]).unwrap();
        let verified = client.verify(&certificate, NOW).unwrap();
        let both = Trusted::Cosigned(vec![ca.clone(), mirror.clone()]);
        assert_eq!(verified.trusted, both);
        let of_others = SigningKey::generate(mirror.clone(), algorithm).unwrap();
        let wrong = sample.standalone(0..2500, &[&of_ca, &of_others]).unwrap();
        let refused = client.verify(&wrong, NOW).map(|_| ()).unwrap_err();
        assert_eq!(refused, Refusal::Cosignature(mirror.clone()));
    }
}

#[test]
fn a_key_of_another_algorithm_than_its_certificate_says_is_refused() {
    let ca: TrustAnchorId = "32473.1".parse().unwrap();
    let key = SigningKey::generate(ca, SignatureAlgorithm::MlDsa44).unwrap();
    let certificate = CaCertificate {
        algorithm: SignatureAlgorithm::MlDsa65,
        ..key.ca_certificate(Validity::of(NOW, WEEK)).unwrap()
    };
    let error = TrustedAuthority::of_certificate(&certificate).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key is of ml-dsa-44, and the certificate says ml-dsa-65"
    );
    PublicKey::from_der(b"no key").unwrap_err();
}

/// The bytes of TLS's Certificate messages, header included, of hosts with two names, as arithmetic has them
/// with what the draft says of the sizes of proofs (section 6.5).
#[test]
fn certificates_weigh_what_arithmetic_says() {
    const MESSAGE: usize = 13;
    let ca: TrustAnchorId = "32473.1".parse().unwrap();
    let ids = ["32473.1", "32473.2", "32473.3"].map(|id| id.parse::<TrustAnchorId>().unwrap());
    let cosigners = ids.map(|id| SigningKey::generate(id, SignatureAlgorithm::MlDsa44).unwrap());
    let cosigners = cosigners.each_ref().map(|one| one as &dyn Cosigner);
    for (algorithm, landmark, standalone) in [
        (
            SignatureAlgorithm::MlDsa44,
            2_291,
            &[4_366, 6_794, 9_222][..],
        ),
        (SignatureAlgorithm::MlDsa65, 2_931, &[5_006, 7_434, 9_862]),
        (SignatureAlgorithm::EcdsaP256, 1_047, &[]),
    ] {
        let key = SigningKey::generate(ca.clone(), algorithm).unwrap();
        let request = Request {
            names: &["example.com", "www.example.com"],
            key: &key.public().unwrap(),
            validity: Validity::of(NOW, WEEK),
        };
        let log = LogId::new(ca.clone(), LogNumber::FIRST).unwrap();
        // The first entry has 23 hashes beside it in a subtree of 2^23, and 12 in one of 2^12.
        let size = 1 << 23;
        let mut sample = Sample::new(log, &request, 0, 2 * size, 1).unwrap();
        sample.make_landmark(2 * size, NOW.after(WEEK)).unwrap();
        let near = |bytes: usize, expected: usize| {
            let message = bytes + MESSAGE;
            let off = message.abs_diff(expected) as f64 / expected as f64;
            assert!(
                off < 0.01,
                "{algorithm}: {message} bytes instead of {expected}"
            );
        };
        near(sample.landmark_relative().unwrap().len(), landmark);
        for (count, expected) in (1..).zip(standalone) {
            let certificate = sample.standalone(0..8192, &cosigners[..count]).unwrap();
            near(certificate.len(), *expected);
        }
    }
}
