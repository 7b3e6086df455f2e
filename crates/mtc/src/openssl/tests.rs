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
