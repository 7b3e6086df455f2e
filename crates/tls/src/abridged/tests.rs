#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery};
use proptest::prelude::*;

use super::*;
use crate::fixtures::chain;

fn certificates() -> Vec<X509> {
    let spec = ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    chain(&spec).certificates().to_vec()
}

fn listing() -> Listing {
    let [end_entity, cas @ ..] = &certificates()[..] else {
        panic!("a chain of one certificate")
    };
    Listing::new(cas, std::slice::from_ref(end_entity)).unwrap()
}

/// A Certificate message without its header.
fn message(certificates: &[Vec<u8>], extension: &[u8]) -> Vec<u8> {
    let mut entries = Vec::new();
    for certificate in certificates {
        put_vector(&mut entries, 3, certificate).unwrap();
        put_vector(&mut entries, 2, extension).unwrap();
    }
    let mut message = vec![0];
    put_vector(&mut message, 3, &entries).unwrap();
    message
}

fn der(certificates: &[X509]) -> Vec<Vec<u8>> {
    certificates
        .iter()
        .map(|certificate| certificate.to_der().unwrap())
        .collect()
}

#[test]
fn listed_certificates_become_three_bytes_and_come_back() {
    let all = der(&certificates());
    let listing = listing();
    for extension in [&[][..], &[0, 5, 0, 0]] {
        let whole = message(&all, extension);
        let abridged = listing.abridge(&whole).unwrap();
        let saved: usize = all[1..]
            .iter()
            .map(|certificate| certificate.len() - 3)
            .sum();
        assert_eq!(whole.len() - abridged.len(), saved);
        let ids = [vec![0xff, 0, 0], vec![0xff, 0, 1]];
        let expected = [std::slice::from_ref(&all[0]), &ids].concat();
        assert_eq!(abridged, message(&expected, extension));
        assert_eq!(listing.restore(&abridged, whole.len()), Some(whole.clone()));
        // A byte too many is none.
        assert_eq!(listing.restore(&abridged, whole.len() - 1), None);
    }
}

#[test]
fn an_id_that_is_not_listed_stays() {
    let unknown = message(&[vec![0xff, 0, 2]], &[]);
    assert_eq!(listing().restore(&unknown, 100), Some(unknown));
}

#[test]
fn a_file_lists_its_cas_and_samples_its_others() {
    let pem: Vec<u8> = certificates()
        .iter()
        .flat_map(|certificate| certificate.to_pem().unwrap())
        .collect();
    let read = Listing::from_pem(&[pem.clone(), pem].concat()).unwrap();
    assert_eq!(read.len(), 2);
    let end_entity = certificates()[0].to_pem().unwrap();
    assert!(matches!(
        Listing::from_pem(&end_entity),
        Err(ListingError::Empty)
    ));
    assert!(matches!(Listing::from_pem(b""), Err(ListingError::Empty)));
    // What certificates of one issuer have alike is in the dictionary.
    let crl = b"http://ca.lastbyte.example/1.crl";
    assert!(
        read.dictionary()
            .windows(crl.len())
            .any(|found| found == crl)
    );
    let name = certificates()[1].subject_name().to_der().unwrap();
    assert!(
        read.dictionary()
            .windows(name.len())
            .any(|found| found == name)
    );
}

proptest! {
    #[test]
    fn whatever_comes_is_restored_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let listing = listing();
        for most in [0, 100, 1 << 16] {
            if let Some(restored) = listing.restore(&bytes, most) {
                prop_assert!(restored.len() <= most.max(4));
            }
        }
        let _ = listing.abridge(&bytes);
    }

    #[test]
    fn a_byte_that_is_cut_is_refused(cut in 1usize..40) {
        let whole = message(&der(&certificates()), &[]);
        let abridged = listing().abridge(&whole).unwrap();
        prop_assert_eq!(listing().restore(&abridged[..abridged.len() - cut], 1 << 20), None);
    }
}
