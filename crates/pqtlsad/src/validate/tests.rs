#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_pki::{KeyAlgorithm, test_chains};
use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509Builder, X509Extension, X509Name};

use super::*;
use crate::fixtures::{NAME, anchors, chain, checked, delivered, of_pki, spec};
use crate::record::Delivered;

fn refused(result: Result<Offer, Fallback>) -> (Outcome, String) {
    let fallback = result.map(drop).unwrap_err();
    (fallback.outcome, fallback.reason)
}

fn invalid(reason: &str) -> (Outcome, String) {
    (Outcome::Invalid, reason.to_owned())
}

#[test]
fn every_part_of_a_good_chain_is_taken() {
    for algorithm in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa65] {
        let (chain, root) = chain(&spec(algorithm));
        for count in 1..=3 {
            let offer = checked(delivered(&chain, count), &root).unwrap();
            assert_eq!(offer.digest(), &chain.topmost(count).unwrap().digest());
            assert_eq!(offer.part(), chain.part(count));
            assert_eq!(offer.certificates().len(), count);
        }
    }
}

#[test]
fn a_root_from_dns_is_never_an_anchor() {
    let (chain, _) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let (_, another) = of_pki(&test_chains::for_name(NAME).unwrap());
    for count in 1..=3 {
        let (outcome, reason) = refused(checked(delivered(&chain, count), &another));
        assert_eq!(outcome, Outcome::Invalid);
        assert!(reason.contains("self-signed certificate"), "{reason}");
    }
}

#[test]
fn another_names_valid_chain_is_refused_when_it_holds_the_end_entity() {
    let (other, root) = of_pki(&test_chains::for_name("other.example").unwrap());
    let whole = refused(checked(delivered(&other, 2), &root));
    assert_eq!(whole, invalid("hostname mismatch"));
    // CA certificates are nobody's: the server's own chain decides.
    checked(delivered(&other, 1), &root).unwrap();
}

#[test]
fn dates_count() {
    for (fault, reason) in [
        (test_chains::expired().unwrap(), "certificate has expired"),
        (
            test_chains::not_yet_valid().unwrap(),
            "certificate is not yet valid or the system clock is incorrect",
        ),
    ] {
        let (chain, root) = of_pki(&fault);
        assert_eq!(
            refused(checked(delivered(&chain, 2), &root)),
            invalid(reason)
        );
    }
    // By the client's clock, whatever the host's says.
    let (chain, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let in_years = Trust {
        anchors: &anchors(&root),
        at: SystemTime::now() + Duration::from_secs(30 * 366 * 86_400),
        algorithms: Algorithms::All,
    };
    let late = validate(delivered(&chain, 2), NAME, &in_years);
    assert_eq!(refused(late), invalid("certificate has expired"));
}

#[test]
fn signatures_count() {
    let (chain, root) = of_pki(&test_chains::broken().unwrap());
    let (outcome, _) = refused(checked(delivered(&chain, 2), &root));
    assert_eq!(outcome, Outcome::Invalid);
    let (chain, root) = of_pki(&test_chains::untrusted().unwrap());
    let (outcome, _) = refused(checked(delivered(&chain, 2), &root));
    assert_eq!(outcome, Outcome::Invalid);
}

#[test]
fn one_flipped_bit_anywhere_is_noticed() {
    let (chain, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let good = chain.topmost(3).unwrap();
    for (at, certificate) in good.certificates().iter().enumerate() {
        for byte in 0..certificate.len() {
            let mut certificates = good.certificates().to_vec();
            certificates[at][byte] ^= 0x20;
            let list = CertificateList::new(certificates).unwrap();
            let part = Part::EndEntity;
            let result = checked(Delivered { part, list }, &root);
            // The root's own signature says nothing: whoever trusts it has its own copy, which must
            // then be this one for the digest to be of use. All else is signed.
            if at > 0 {
                assert!(result.is_err(), "byte {byte} of certificate {at}");
            }
        }
    }
}

#[test]
fn what_is_no_certificate_is_refused() {
    let (chain, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let der = chain.topmost(1).unwrap().certificates()[0].clone();
    let cut = der[..der.len() - 1].to_vec();
    let longer = [&der[..], &[0]].concat();
    for bytes in [cut, longer, vec![0x30; 60_000], b"-----BEGIN".to_vec()] {
        let list = CertificateList::new(vec![bytes]).unwrap();
        let part = Part::Root;
        let result = checked(Delivered { part, list }, &root);
        assert_eq!(refused(result), invalid("not a certificate"));
    }
}

#[test]
fn the_order_counts() {
    let (chain, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let mut certificates = chain.topmost(3).unwrap().certificates().to_vec();
    certificates.swap(0, 1);
    let list = CertificateList::new(certificates).unwrap();
    let part = Part::EndEntity;
    assert_eq!(
        refused(checked(Delivered { part, list }, &root)),
        invalid("its certificates are not a chain")
    );
}

#[test]
fn the_part_must_be_true() {
    let (chain, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let claim = |part, count| {
        let list = chain.topmost(count).unwrap();
        refused(checked(Delivered { part, list }, &root)).1
    };
    assert_eq!(
        claim(Part::EndEntity, 2),
        "said to hold the end-entity, but holds CA certificates only"
    );
    assert_eq!(
        claim(Part::Intermediate, 3),
        "said to hold CA certificates only, but holds an end-entity"
    );
    assert_eq!(
        claim(Part::Root, 2),
        "said to hold the root only, but holds more"
    );
}

#[test]
fn algorithms_that_the_client_does_not_take_are_unsupported() {
    let (chain, root) = chain(&spec(KeyAlgorithm::MlDsa65));
    let anchors = anchors(&root);
    let taken = |accepted: &[Nid]| {
        let trust = Trust {
            anchors: &anchors,
            at: SystemTime::now(),
            algorithms: Algorithms::Only(accepted),
        };
        validate(delivered(&chain, 2), NAME, &trust)
    };
    let (outcome, reason) = refused(taken(&[Nid::X9_62_ID_ECPUBLICKEY, Nid::RSAENCRYPTION]));
    assert_eq!(outcome, Outcome::Unsupported);
    assert_eq!(reason, "ML-DSA-65 keys");
    let ml_dsa_65 = ffi::key_algorithm(chain.end_entity());
    taken(&[ml_dsa_65]).unwrap();
}

#[test]
fn algorithms_that_nobody_knows_are_unsupported() {
    let (chain, root) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let der = chain.topmost(1).unwrap().certificates()[0].clone();
    let change = |from: &[u8], to: &[u8]| {
        let mut der = der.clone();
        let positions: Vec<_> = (0..der.len() - from.len())
            .filter(|&at| der[at..].starts_with(from))
            .collect();
        assert!(!positions.is_empty());
        for at in positions {
            der[at..at + to.len()].copy_from_slice(to);
        }
        let list = CertificateList::new(vec![der]).unwrap();
        let part = Part::Root;
        refused(checked(Delivered { part, list }, &root)).0
    };
    // id-ecPublicKey, and ecdsa-with-SHA256.
    let key = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    let signature = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
    for known in [&key[..], &signature] {
        let mut unknown = known.to_vec();
        unknown[2] = 0x77;
        assert_eq!(change(known, &unknown), Outcome::Unsupported);
    }
}

/// A CA or an end-entity of ECDSA, with extensions of its own.
fn issue(
    name: &str,
    issuer: Option<(&X509, &PKey<Private>)>,
    extensions: &[X509Extension],
) -> (X509, PKey<Private>) {
    use openssl::ec::{EcGroup, EcKey};
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut own = X509Name::builder().unwrap();
    own.append_entry_by_text("CN", name).unwrap();
    let own = own.build();
    let mut certificate = X509Builder::new().unwrap();
    certificate.set_version(2).unwrap();
    certificate.set_subject_name(&own).unwrap();
    let above = issuer.map_or(&*own, |(above, _)| above.subject_name());
    certificate.set_issuer_name(above).unwrap();
    let day = Asn1Time::days_from_now(0).unwrap();
    certificate.set_not_before(&day).unwrap();
    certificate
        .set_not_after(&Asn1Time::days_from_now(9).unwrap())
        .unwrap();
    certificate.set_pubkey(&key).unwrap();
    for extension in extensions {
        certificate.append_extension2(extension).unwrap();
    }
    let signer = issuer.map_or(&key, |(_, key)| key);
    certificate.sign(signer, MessageDigest::sha256()).unwrap();
    (certificate.build(), key)
}

fn whole(certificates: &[&X509]) -> Delivered {
    let ders = certificates
        .iter()
        .map(|certificate| certificate.to_der().unwrap());
    Delivered {
        part: Part::EndEntity,
        list: CertificateList::new(ders.collect()).unwrap(),
    }
}

fn end_entity_extensions() -> [X509Extension; 1] {
    let certificate = X509Builder::new().unwrap();
    let context = certificate.x509v3_context(None, None);
    [SubjectAlternativeName::new()
        .dns(NAME)
        .build(&context)
        .unwrap()]
}

#[test]
fn path_lengths_count() {
    let ca = |limit: Option<u32>| {
        let mut constraints = BasicConstraints::new();
        constraints.critical().ca();
        if let Some(limit) = limit {
            constraints.pathlen(limit);
        }
        [constraints.build().unwrap()]
    };
    for (limit, is_good) in [(None, true), (Some(1), true), (Some(0), false)] {
        let (root, root_key) = issue("root", None, &ca(limit));
        let (middle, middle_key) = issue("middle", Some((&root, &root_key)), &ca(None));
        let (end, _) = issue(
            "end",
            Some((&middle, &middle_key)),
            &end_entity_extensions(),
        );
        let result = checked(whole(&[&root, &middle, &end]), &root);
        if is_good {
            drop(result.unwrap());
        } else {
            assert_eq!(refused(result), invalid("path length constraint exceeded"));
        }
    }
}

#[test]
#[allow(
    deprecated,
    reason = "the bindings write name constraints in no other way"
)]
fn name_constraints_count() {
    for (permitted, is_good) in [("server.example", true), ("other.example", false)] {
        let constraints = X509Extension::new_nid(
            None,
            None,
            Nid::NAME_CONSTRAINTS,
            &format!("critical,permitted;DNS:{permitted}"),
        );
        let ca = BasicConstraints::new().critical().ca().build().unwrap();
        let (root, root_key) = issue("root", None, &[ca, constraints.unwrap()]);
        let (end, _) = issue("end", Some((&root, &root_key)), &end_entity_extensions());
        let result = checked(whole(&[&root, &end]), &root);
        if is_good {
            drop(result.unwrap());
        } else {
            assert_eq!(refused(result), invalid("permitted subtree violation"));
        }
    }
}

#[test]
fn only_names_of_the_subject_alternative_name_count_and_whole_wildcards() {
    let ca = [BasicConstraints::new().critical().ca().build().unwrap()];
    let (root, root_key) = issue("root", None, &ca);
    const HOST: &str = "ab.server.example";
    for (common_name, alternative, is_good) in [
        ("end", Some(HOST), true),
        ("end", Some("*.server.example"), true),
        ("end", Some("a*.server.example"), false),
        ("end", Some("*b.server.example"), false),
        (HOST, Some("other.example"), false),
        (HOST, None, false),
    ] {
        let extensions = alternative.map(|name| {
            let context = X509Builder::new().unwrap();
            let context = context.x509v3_context(None, None);
            let names = SubjectAlternativeName::new().dns(name).build(&context);
            names.unwrap()
        });
        let extensions: Vec<_> = extensions.into_iter().collect();
        let (end, _) = issue(common_name, Some((&root, &root_key)), &extensions);
        let trust = Trust {
            anchors: &anchors(&root),
            at: SystemTime::now(),
            algorithms: Algorithms::All,
        };
        let result = validate(whole(&[&root, &end]), HOST, &trust);
        if is_good {
            drop(result.unwrap());
        } else {
            assert_eq!(refused(result), invalid("hostname mismatch"));
        }
    }
}

#[test]
fn names_must_chain() {
    let ca = || [BasicConstraints::new().critical().ca().build().unwrap()];
    let (root, _) = issue("root", None, &ca());
    let (other, other_key) = issue("other", None, &ca());
    let (end, _) = issue("end", Some((&other, &other_key)), &end_entity_extensions());
    assert_eq!(
        refused(checked(whole(&[&root, &end]), &root)),
        invalid("its certificates are not a chain")
    );
}

#[test]
fn a_forged_root_of_the_true_name_is_noticed() {
    let ca = || [BasicConstraints::new().critical().ca().build().unwrap()];
    let (root, root_key) = issue("root", None, &ca());
    let (forged, _) = issue("root", None, &ca());
    let (middle, middle_key) = issue("middle", Some((&root, &root_key)), &ca());
    let (end, _) = issue(
        "end",
        Some((&middle, &middle_key)),
        &end_entity_extensions(),
    );
    checked(whole(&[&root, &middle, &end]), &root).unwrap();
    // OpenSSL alone would build its path around it.
    assert_eq!(
        refused(checked(whole(&[&forged, &middle, &end]), &root)),
        invalid("its certificates are not a chain")
    );
}
