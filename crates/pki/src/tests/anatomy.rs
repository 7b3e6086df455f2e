use lastbyte_sizes::der::{self, Oid};
use openssl::asn1::{Asn1Integer, Asn1Object, Asn1Time};
use openssl::bn::BigNum;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::x509::{X509, X509Name};
use proptest::prelude::*;

use super::Maker;
use crate::anatomy::{DerProblem, anatomy};
use crate::{ChainSpec, KeyAlgorithm, PkiError, explain, sizes};

/// OpenSSL has no text of them, and no reason either.
#[test]
fn values_of_names_that_are_no_strings_can_be_read() {
    let attribute = |tag, value: &[u8]| {
        let kind = der::object_identifier(&[1, 3, 6, 1, 5, 5, 7, 25, 3]);
        let attribute = der::sequence(&[&kind, &der::element(tag, value)]);
        der::element(der::SET, &attribute)
    };
    let trust_anchor = attribute(0x0d, &[0x81, 0xfd, 0x59, 1]);
    for (value, expected) in [
        (trust_anchor.clone(), "1.3.6.1.5.5.7.25.3=32473.1"),
        // It ends within a number.
        (
            attribute(0x0d, &[0x81, 0xfd]),
            "1.3.6.1.5.5.7.25.3=#0d0281fd",
        ),
        (
            attribute(der::BIT_STRING, &[0, 7]),
            "1.3.6.1.5.5.7.25.3=#03020007",
        ),
        (
            [trust_anchor, attribute(der::UTF8_STRING, b"a")].concat(),
            "1.3.6.1.5.5.7.25.3=32473.1, 1.3.6.1.5.5.7.25.3=a",
        ),
    ] {
        let read = X509Name::from_der(&der::sequence(&[&value])).unwrap();
        assert_eq!(crate::explain::name(&read).unwrap(), expected);
    }
}

/// Some of OpenSSL's functions fail without a reason: what failed is said all the same.
#[test]
fn a_file_that_openssl_fails_at_without_a_reason_is_named() {
    let _ = ErrorStack::get();
    let error = PkiError::OpenSsl(ErrorStack::get()).of_file("chain.pem".as_ref());
    assert_eq!(
        error.to_string(),
        "\"chain.pem\" can't be used (OpenSSL gives no reason): look for what it has and others have not with \
         \"openssl x509 -noout -text -in FILE\""
    );
}

#[test]
fn a_made_certificate_is_explained() {
    let chain = Maker::new(ChainSpec::new(KeyAlgorithm::MlDsa65)).chain(Some(12_000));
    let [end_entity, intermediate] = chain.certificates() else {
        panic!("there are {} certificates", chain.certificates().len());
    };

    let explanation = explain(end_entity).unwrap();
    assert_eq!(explanation.subject, "CN=server.example");
    assert_eq!(
        explanation.issuer,
        "C=XX, O=Lastbyte Test, CN=Lastbyte Test TLS CA1"
    );
    assert_eq!(explanation.key, "ml-dsa-65");
    assert_eq!(explanation.signature, "ML-DSA-65");
    let anatomy = explanation.anatomy;
    assert_eq!(anatomy.public_key, 1952);
    assert_eq!(anatomy.signature, 3309);
    assert_eq!(anatomy.names, 27 + 71);
    let extensions: Vec<_> = anatomy
        .extensions
        .iter()
        .map(|extension| (extension.name(), extension.bytes))
        .collect();
    let expected = [
        ("keyUsage", 16),
        ("extendedKeyUsage", 21),
        ("basicConstraints", 14),
        ("subjectKeyIdentifier", 31),
        ("authorityKeyIdentifier", 33),
        ("authorityInfoAccess", 104),
        ("subjectAltName", 47),
        ("certificatePolicies", 21),
        ("crlDistributionPoints", 51),
        ("padding", 12_000 - 11_620),
    ];
    assert_eq!(
        extensions,
        expected.map(|(name, bytes)| (name.to_owned(), bytes))
    );

    assert_eq!(explain(intermediate).unwrap().anatomy.extensions.len(), 8);
    assert_eq!(explain(chain.root()).unwrap().anatomy.extensions.len(), 3);
}

#[test]
fn every_byte_of_every_algorithm_is_accounted_for() {
    for (size, (_, chain)) in sizes().into_iter().zip(super::chains()) {
        let anatomy = anatomy(&chain.certificates().first().unwrap().to_der().unwrap()).unwrap();
        assert_eq!(anatomy.bytes(), size.end_entity);
        assert_eq!(anatomy.public_key, size.public_key);
        assert_eq!(anatomy.signature, size.signature);
    }
}

#[test]
fn a_certificate_of_openssl_s_own_is_explained() {
    let explanation = explain(&foreign()).unwrap();
    assert_eq!(explanation.subject, "");
    assert_eq!(explanation.key, "ED25519");
    assert_eq!(explanation.signature, "ED25519");
    assert_eq!(explanation.anatomy.public_key, 32);
    assert_eq!(explanation.anatomy.signature, 64);
    assert_eq!(explanation.anatomy.names, 2 + 2);
    assert_eq!(explanation.anatomy.extensions, []);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let der = foreign().to_der().unwrap();
    let error = |der: &[u8]| anatomy(der).unwrap_err();

    let text = error(b"not a certificate").to_string();
    assert_eq!(
        text,
        "byte 0 of the certificate: Certificate was expected, not an element with tag 0x6e"
    );
    let longer = [&*der, &[0]].concat();
    assert_eq!(error(&longer).problem, DerProblem::Trailing);
    assert_eq!(error(&longer).offset, der.len());
    assert_eq!(
        error(&[0x30, 0x80]).problem,
        DerProblem::Length("Certificate")
    );
    assert_eq!(
        error(&[0x30, 0x81, 0x01, 0]).problem,
        DerProblem::Length("Certificate")
    );
    assert_eq!(
        error(&[0x30, 0x82, 0x00, 0xff]).problem,
        DerProblem::Length("Certificate")
    );
    assert_eq!(
        error(&[0x30, 0xff]).problem,
        DerProblem::Truncated("Certificate")
    );
}

/// A certificate of hardly anything, and NULL at one place where it is too much.
fn minimal(extra: Option<usize>) -> Vec<u8> {
    let null = |place| {
        if extra == Some(place) {
            vec![5, 0]
        } else {
            Vec::new()
        }
    };
    let empty = der::sequence(&[]);
    let algorithm = der::sequence(&[&Oid(&[1, 2, 3]).to_der()]);
    let bits = der::bit_string(&[1, 2, 3]);
    let value = der::element(der::OCTET_STRING, &[]);
    let extension = der::sequence(&[&Oid(&[2, 5, 29, 15]).to_der(), &value, &null(0)]);
    let extensions = [der::sequence(&[&extension]), null(1)].concat();
    let key_info = der::sequence(&[&algorithm, &bits, &null(2)]);
    let signed = der::sequence(&[
        &der::element(der::INTEGER, &[1]),
        &algorithm,
        &empty,
        &empty,
        &empty,
        &key_info,
        &der::element(der::explicit(3), &extensions),
        &null(3),
    ]);
    [
        der::sequence(&[&signed, &algorithm, &bits, &null(4)]),
        null(5),
    ]
    .concat()
}

#[test]
fn every_part_is_read_to_its_end() {
    let anatomy = anatomy(&minimal(None)).unwrap();
    assert_eq!(
        (anatomy.key_algorithm.as_str(), anatomy.public_key),
        ("1.2.3", 3)
    );
    assert_eq!((anatomy.names, anatomy.signature), (4, 3));
    assert_eq!(anatomy.extension_bytes(), 9);
    // The headers of five elements around others, serial number, validity, three
    // algorithms, and what two BIT STRINGs have before their contents.
    assert_eq!(anatomy.rest, 5 * 2 + 3 + 2 + 3 * 6 + 2 * 3);
    for place in 0..=5 {
        let error = crate::anatomy::anatomy(&minimal(Some(place))).unwrap_err();
        assert_eq!(error.problem, DerProblem::Trailing, "{place}");
    }
}

#[test]
fn object_identifiers_that_are_none_are_refused() {
    for contents in [
        &[][..],
        &[0x80],
        &[0x2a, 0x86],
        &[0x2a, 0x80, 0x01],
        &[0xff; 20],
    ] {
        assert_eq!(crate::anatomy::dotted(contents), None, "{contents:x?}");
    }
}

#[test]
fn lengths_take_their_shortest_form() {
    for (contents, prefix) in [
        (0, &[4, 0][..]),
        (127, &[4, 127]),
        (128, &[4, 0x81, 128]),
        (255, &[4, 0x81, 255]),
        (256, &[4, 0x82, 1, 0]),
        (65_535, &[4, 0x82, 255, 255]),
        (65_536, &[4, 0x83, 1, 0, 0]),
    ] {
        let element = der::element(der::OCTET_STRING, &vec![7; contents]);
        assert_eq!(element, [prefix, &vec![7; contents]].concat());
    }
}

#[test]
fn object_identifiers_are_written_as_openssl_does() {
    for oid in [
        Oid(&[2, 5, 29, 15]),
        Oid(&[1, 2, 840, 113549, 1, 1, 11]),
        Oid(&[2, 23, 140, 1, 2, 1]),
        Oid(&[1, 3, 6, 1, 4, 1, 32473, 1]),
        Oid(&[1, 2, 16_384, 1 << 21, 1 << 28]),
        Oid(&[2, 999, 4_294_967_295]),
    ] {
        let object = Asn1Object::from_str(&oid.to_string()).unwrap();
        assert_eq!(
            oid.to_der(),
            der::element(der::OBJECT_IDENTIFIER, object.as_slice())
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = anatomy(&bytes);
    }

    #[test]
    fn a_cut_certificate_is_refused(length in 0..foreign_der().len()) {
        let der = foreign_der();
        prop_assert!(anatomy(&der[..length]).is_err());
    }

    #[test]
    fn a_changed_certificate_is_refused_or_adds_up(at in 0..foreign_der().len(), to: u8) {
        let mut der = foreign_der();
        der[at] = to;
        if let Ok(anatomy) = anatomy(&der) {
            prop_assert_eq!(anatomy.bytes(), der.len());
        }
    }

    #[test]
    fn object_identifiers_are_read_as_openssl_does(
        first in 0_u8..3,
        second in 0_u8..40,
        rest in prop::collection::vec(any::<u64>(), 1..9),
    ) {
        let rest: Vec<_> = rest.iter().map(u64::to_string).collect();
        let dotted = format!("{first}.{second}.{}", rest.join("."));
        let object = Asn1Object::from_str(&dotted).unwrap();
        prop_assert_eq!(crate::anatomy::dotted(object.as_slice()), Some(dotted));
    }
}

fn foreign_der() -> Vec<u8> {
    let chain = crate::test_chains::for_name("server.example").unwrap();
    chain.certificates().first().unwrap().to_der().unwrap()
}

/// A certificate of version 1 with empty names, made by OpenSSL.
fn foreign() -> X509 {
    let key = openssl::pkey::PKey::generate_ed25519().unwrap();
    let name = X509Name::builder().unwrap().build();
    let serial = Asn1Integer::from_bn(&BigNum::from_u32(1).unwrap()).unwrap();
    let time = Asn1Time::from_unix(0).unwrap();
    let mut builder = X509::builder().unwrap();
    builder.set_serial_number(&serial).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_not_before(&time).unwrap();
    builder.set_not_after(&time).unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.sign(&key, MessageDigest::null()).unwrap();
    builder.build()
}
