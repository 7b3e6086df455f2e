#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::{Signer, Verifier};
use openssl::x509::{X509, X509Name};

use super::{Degree, Key, PrivateKeyInfo, Structure, SubjectPublicKeyInfo};
use crate::{FN_DSA, generate, install, is_a};

#[test]
fn sizes_are_fixed() {
    for (degree, public, signature) in [(Degree::N512, 897, 666), (Degree::N1024, 1793, 1280)] {
        assert_eq!(degree.public_key_bytes(), public);
        assert_eq!(degree.signature_bytes(), signature);
        // An object identifier is as long as those of NIST's algorithms.
        assert_eq!(degree.identifier().len(), 13);
    }
}

#[test]
fn a_written_key_is_read_again_and_no_other() {
    for degree in Degree::ALL {
        let key = Key::generate(degree).unwrap();
        let private = PrivateKeyInfo::to_der(&key).unwrap();
        let public = SubjectPublicKeyInfo::to_der(&key).unwrap();
        assert_eq!(public.len(), degree.public_key_bytes() + 22);
        assert!(private.len() < PrivateKeyInfo::MOST_BYTES);
        let read = PrivateKeyInfo::from_der(degree, &private).unwrap();
        assert!(read.matches(&key) && read.has_private());
        let read = SubjectPublicKeyInfo::from_der(degree, &public).unwrap();
        assert!(read.matches(&key) && !read.has_private());
        assert!(PrivateKeyInfo::to_der(&read).is_none());

        for other in Degree::ALL.into_iter().filter(|other| *other != degree) {
            assert!(PrivateKeyInfo::from_der(other, &private).is_none());
            assert!(SubjectPublicKeyInfo::from_der(other, &public).is_none());
        }
        for length in 0..public.len() {
            assert!(SubjectPublicKeyInfo::from_der(degree, &public[..length]).is_none());
        }
        assert!(SubjectPublicKeyInfo::from_der(degree, &[&public[..], &[0]].concat()).is_none());
        assert!(SubjectPublicKeyInfo::from_der(degree, &private).is_none());
    }
}

#[test]
fn openssl_writes_reads_and_compares_keys() {
    for algorithm in &FN_DSA {
        let key = generate(algorithm.algorithm).unwrap();
        assert!(is_a(&key, algorithm.algorithm));
        let pem = key.private_key_to_pem_pkcs8().unwrap();
        assert!(pem.starts_with(b"-----BEGIN PRIVATE KEY-----\n"));
        let read = PKey::private_key_from_pem(&pem).unwrap();
        assert!(read.public_eq(&key));
        let der = key.private_key_to_pkcs8().unwrap();
        assert!(PKey::private_key_from_der(&der).unwrap().public_eq(&key));
        let pem = key.public_key_to_pem().unwrap();
        assert!(PKey::public_key_from_pem(&pem).unwrap().public_eq(&key));
        let der = key.public_key_to_der().unwrap();
        assert!(PKey::public_key_from_der(&der).unwrap().public_eq(&key));
        let other = generate(algorithm.algorithm).unwrap();
        assert!(!other.public_eq(&key));
    }
}

#[test]
fn openssl_signs_and_verifies() {
    for algorithm in &FN_DSA {
        let key = generate(algorithm.algorithm).unwrap();
        let mut signer = Signer::new_without_digest(&key).unwrap();
        let signature = signer.sign_oneshot_to_vec(b"message").unwrap();
        let public = PKey::public_key_from_der(&key.public_key_to_der().unwrap()).unwrap();
        let verify = |signature: &[u8], message: &[u8]| {
            let mut verifier = Verifier::new_without_digest(&public).unwrap();
            verifier.verify_oneshot(signature, message).unwrap_or(false)
        };
        assert!(verify(&signature, b"message"));
        assert!(!verify(&signature, b"massage"));
        assert!(!verify(&signature[1..], b"message"));
        assert!(!verify(&[], b""));
        // It has no digest to sign.
        assert!(Signer::new(MessageDigest::sha256(), &key).is_err());
    }
}

/// With OpenSSL's own builder, which asks the provider how to name the signature.
#[test]
fn openssl_signs_a_certificate_and_reads_it() {
    install().unwrap();
    for algorithm in &FN_DSA {
        let key = generate(algorithm.algorithm).unwrap();
        let mut name = X509Name::builder().unwrap();
        name.append_entry_by_text("CN", "FN-DSA").unwrap();
        let name = name.build();
        let mut builder = X509::builder().unwrap();
        builder.set_subject_name(&name).unwrap();
        builder.set_issuer_name(&name).unwrap();
        let now = Asn1Time::days_from_now(0).unwrap();
        builder.set_not_before(&now).unwrap();
        builder.set_not_after(&now).unwrap();
        builder.set_pubkey(&key).unwrap();
        builder.sign(&key, MessageDigest::null()).unwrap();
        let certificate = X509::from_der(&builder.build().to_der().unwrap()).unwrap();
        assert!(certificate.verify(&key).unwrap());
        assert!(certificate.public_key().unwrap().public_eq(&key));
        let other = generate(algorithm.algorithm).unwrap();
        assert!(!certificate.verify(&other).unwrap());
    }
}
