use std::time::Duration;

use lastbyte_sizes::profile;
use openssl::asn1::Asn1Time;
use openssl::x509::X509Ref;

use super::Maker;
use crate::{ChainSpec, KeyAlgorithm};

fn urls(certificate: &X509Ref) -> Vec<String> {
    let crl = certificate.crl_distribution_points().into_iter().flatten();
    let crl = crl.flat_map(|point| {
        let names = point.distpoint().unwrap().fullname().unwrap();
        names
            .iter()
            .map(|name| name.uri().unwrap().to_owned())
            .collect::<Vec<_>>()
    });
    let access = certificate.authority_info().into_iter().flatten();
    access
        .map(|access| access.location().uri().unwrap().to_owned())
        .chain(crl)
        .collect()
}

#[test]
fn an_end_entity_is_as_a_public_ca_issues_it() {
    let chain = Maker::new(ChainSpec::new(KeyAlgorithm::Rsa2048)).chain(None);
    let [end_entity, intermediate] = chain.certificates() else {
        panic!("there are {} certificates", chain.certificates().len());
    };
    let names = end_entity.subject_alt_names().unwrap();
    let names: Vec<_> = names.iter().map(|name| name.dnsname().unwrap()).collect();
    assert_eq!(names, ["server.example", "www.server.example"]);
    assert_eq!(
        urls(end_entity),
        [
            "http://ocsp.lastbyte.example",
            "http://ca.lastbyte.example/1.cer",
            "http://ca.lastbyte.example/1.crl",
        ]
    );
    assert_eq!(
        end_entity.authority_key_id().unwrap().as_slice(),
        intermediate.subject_key_id().unwrap().as_slice()
    );
    assert!(end_entity.subject_key_id().is_some());
    assert_eq!(end_entity.pathlen(), None);
    let text = String::from_utf8(end_entity.to_text().unwrap()).unwrap();
    for line in [
        "Digital Signature, Key Encipherment",
        "TLS Web Server Authentication",
        "X509v3 Key Usage: critical",
        "X509v3 Basic Constraints: critical",
        "CA:FALSE",
        "Policy: 2.23.140.1.2.1",
        "Subject: CN=server.example",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let life = end_entity
        .not_before()
        .diff(end_entity.not_after())
        .unwrap();
    assert_eq!((life.days, life.secs), (90, 3600));
    let serial = end_entity.serial_number().to_bn().unwrap();
    assert_eq!(serial.num_bits(), 127);
}

#[test]
fn only_rsa_keys_encipher() {
    let chain = Maker::new(ChainSpec::new(KeyAlgorithm::MlDsa44)).chain(None);
    let text = chain.certificates().first().unwrap().to_text().unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("Digital Signature\n"), "{text}");
}

#[test]
fn authorities_are_as_a_public_ca_has_them() {
    let spec = ChainSpec {
        intermediates: 3,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    let chain = Maker::new(spec).chain(None);
    let [_, intermediates @ ..] = chain.certificates() else {
        panic!("there is no certificate");
    };
    let lengths: Vec<_> = intermediates.iter().map(|ca| ca.pathlen()).collect();
    assert_eq!(lengths, [Some(0), Some(1), Some(2)]);
    let sizes: Vec<_> = intermediates
        .iter()
        .map(|ca| ca.to_der().unwrap().len())
        .collect();
    assert_eq!(sizes, [656; 3]);
    let text = String::from_utf8(intermediates.last().unwrap().to_text().unwrap()).unwrap();
    for line in [
        "Issuer: C=XX, O=Lastbyte Test, CN=Lastbyte Test Root CA",
        "Subject: C=XX, O=Lastbyte Test, CN=Lastbyte Test TLS CA1",
        "Digital Signature, Certificate Sign, CRL Sign",
        "TLS Web Server Authentication",
        "CA:TRUE, pathlen:2",
        "CA Issuers - URI:http://ca.lastbyte.example/0.cer",
        "Policy: 2.23.140.1.2.1",
        "URI:http://ca.lastbyte.example/0.crl",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let root = chain.root();
    assert_eq!(root.pathlen(), None);
    let life = root.not_before().diff(root.not_after()).unwrap();
    assert_eq!(life.days, 20 * 365);
    let text = String::from_utf8(root.to_text().unwrap()).unwrap();
    assert!(
        text.contains("                Certificate Sign, CRL Sign\n"),
        "{text}"
    );
}

/// Every day from 1970 to 2106, over the change of form in 2050.
#[test]
fn times_are_written_as_openssl_reads_them() {
    for day in 0..49_710 {
        let seconds = day * 86_400 + day * 7919 % 86_400;
        let der = profile::time(Duration::from_secs(seconds));
        let (header, text) = der.split_at(2);
        let text = std::str::from_utf8(text).unwrap();
        let read = Asn1Time::from_str_x509(text).unwrap();
        assert!(
            read == Asn1Time::from_unix(seconds as i64).unwrap(),
            "{text}"
        );
        let before_2050 = seconds < 2_524_608_000;
        assert_eq!(header, if before_2050 { [0x17, 13] } else { [0x18, 15] });
    }
}
