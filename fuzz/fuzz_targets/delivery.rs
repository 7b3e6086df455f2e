//! What DNS and hellos say of certificates: real fragments in any order, and anything else.
#![no_main]

use std::sync::LazyLock;
use std::time::SystemTime;

use lastbyte_fuzz::{change, pieces};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, Store};
use libfuzzer_sys::fuzz_target;
use openssl::x509::store::{X509Store, X509StoreBuilder};
use pqtlsad::record::{Assembly, Delivered, Fragment, RecordType, split};
use pqtlsad::validate::{Algorithms, Trust, validate};
use pqtlsad::{CertificateList, Digest, Part, extension};

const NAME: &str = "server.example";

type Encoded = Vec<Vec<u8>>;

/// Records of every part of a chain, the DER of its certificates, and what the client trusts.
static REAL: LazyLock<(Encoded, X509Store, Encoded)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let spec = ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    let chain = Store::open(folder.path()).chain(&spec).unwrap();
    let own = pqtlsad::server::Chain::new(chain.certificates().to_vec(), chain.key().clone());
    let own = own.unwrap();
    let mut real = Vec::new();
    for count in 1..=3 {
        let list = own.topmost(count).unwrap();
        let mut fragments = split(own.part(count), &list).unwrap();
        real.push(fragments[0].encode(RecordType::DEFAULT));
        // As if it had not fitted.
        let certificates = std::mem::take(&mut fragments[0].certificates);
        for (index, certificate) in (0..).zip(certificates) {
            let part = Fragment {
                index,
                count: count as u8,
                certificates: vec![certificate],
                ..fragments[0].clone()
            };
            real.push(part.encode(RecordType::DEFAULT));
        }
    }
    let mut anchors = X509StoreBuilder::new().unwrap();
    anchors.add_cert(chain.root().clone()).unwrap();
    let ders = chain
        .certificates()
        .iter()
        .map(|certificate| certificate.to_der().unwrap());
    let ders = ders.collect();
    (real, anchors.build(), ders)
});

fuzz_target!(|data: &[u8]| {
    let (real, anchors, ders) = &*REAL;
    let mut assembly = Assembly::default();
    for (tag, bytes) in pieces(data) {
        // Half of what is real has some of its bytes changed.
        let known = real.get(usize::from(tag) / 2);
        let mut rdata = known.cloned().unwrap_or_else(|| bytes.to_vec());
        if known.is_some() && tag % 2 == 1 {
            change(&mut rdata, bytes);
        }
        for record_type in [RecordType::DEFAULT, RecordType::Tlsa] {
            match Fragment::decode(record_type, &rdata) {
                Ok(fragment) => {
                    assert_eq!(fragment.encode(record_type), rdata);
                    let text = fragment.to_text(record_type);
                    assert_eq!(Fragment::from_text(record_type, &text).unwrap(), fragment);
                    let _ = assembly.add(fragment);
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        let _ = Fragment::from_text(RecordType::DEFAULT, &String::from_utf8_lossy(bytes));
        let _ = extension::server_name(bytes);
        let _ = Digest::from_bytes(bytes);
    }
    assembly.missing();
    for delivered in assembly.finish().into_iter().flatten() {
        check(delivered, anchors);
    }
    // Lists of changed certificates, each with its own digest, as anybody can publish them.
    let mut lists = [const { Vec::new() }; 3];
    for (tag, bytes) in pieces(data) {
        let part = Part::ALL[usize::from(tag) % 3];
        let known = ders.get(usize::from(tag) / 3 % (ders.len() + 1));
        let mut der = known.cloned().unwrap_or_else(|| bytes.to_vec());
        if known.is_some() {
            change(&mut der, bytes);
        }
        lists[part as usize % 3].push(der);
    }
    for (part, certificates) in Part::ALL.into_iter().zip(lists) {
        if let Ok(list) = CertificateList::new(certificates) {
            check(Delivered { part, list }, anchors);
        }
    }
});

fn check(delivered: Delivered, anchors: &X509Store) {
    let trust = Trust {
        anchors,
        at: SystemTime::now(),
        algorithms: Algorithms::All,
    };
    let (_, _, ders) = &*REAL;
    let is_real = ders.iter().any(|der| der == delivered.list.lowest());
    match validate(delivered, NAME, &trust) {
        Ok(offer) => {
            assert_eq!(*offer.digest(), offer.list().digest());
            // An anchor has signed nothing else.
            assert!(is_real);
        }
        Err(fallback) => assert!(!fallback.reason.is_empty()),
    }
}
