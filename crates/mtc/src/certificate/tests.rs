#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use super::*;
use crate::time::UnixTime;

fn certificate() -> CaCertificate {
    CaCertificate {
        id: "32473.1".parse().unwrap(),
        key: crate::issue::made_up_key(1, 1),
        algorithm: SignatureAlgorithm::EcdsaP256,
        serials: 1 << 48..=(2 << 48) - 1,
        validity: Validity::of(UnixTime(1_577_836_800), Duration::from_secs(86_400)),
        prefix_url: Some("http://ca.example/mtc".to_owned()),
    }
}

#[test]
fn the_certificate_of_a_ca_is_read_as_it_was_written() {
    for algorithm in SignatureAlgorithm::ALL {
        let certificate = CaCertificate {
            algorithm,
            ..certificate()
        };
        let der = certificate.to_der();
        assert_eq!(CaCertificate::parse(&der), Ok(certificate));
        for cut in 0..der.len() {
            CaCertificate::parse(&der[..cut]).unwrap_err();
        }
        CaCertificate::parse(&[&der[..], &[0]].concat()).unwrap_err();
    }
}

/// RFC 9925's name of nobody, and the CA's extension, byte for byte.
#[test]
fn the_certificate_of_a_ca_has_the_drafts_bytes() {
    let der = hex::encode(certificate().to_der());
    for part in [
        "a003020102020101300a06082b060105050706243010310e300c06082b060105050719010c00",
        "3014311230100 6082b060105050719030d0481fd5901",
        "06082b060105050701260101ff",
        "300a06082b06010505070624030100",
    ] {
        assert!(der.contains(&part.replace(' ', "")), "{part} in {der}");
    }
}

#[test]
fn what_is_no_ca_is_refused() {
    let der = certificate().to_der();
    let changed = |from: &str, to: &str| {
        let text = hex::encode(&der).replace(from, to);
        CaCertificate::parse(&hex::decode(text).unwrap()).unwrap_err()
    };
    let message = |from, to| changed(from, to).to_string();
    assert!(matches!(
        changed("010505070624", "010505070625"),
        CertificateError::Signed
    ));
    assert_eq!(
        message("06082b060105050701260101ff", "06082b060105050701270101ff"),
        "it is of no CA that issues Merkle Tree Certificates: it has a critical extension that is not known"
    );
    assert_eq!(
        message("03020204", "03020202"),
        "it is of no CA that issues Merkle Tree Certificates: its key is not for certificates"
    );
    assert_eq!(
        changed("2a8648ce3d040302", "2a8648ce3d040309"),
        CertificateError::UnknownAlgorithm
    );
    let no_serials = CaCertificate {
        serials: 0..=u64::MAX,
        ..certificate()
    };
    CaCertificate::parse(&no_serials.to_der()).unwrap_err();
}
