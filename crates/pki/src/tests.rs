#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod algorithm;
mod anatomy;
mod chain;
mod padding;
mod pem;
mod profile;
mod store;
mod verify;

use std::cell::OnceCell;
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;

use openssl::pkey::{PKey, Private};

use crate::authority::{Authority, END_ENTITY_LIFE};
use crate::profile::{Kind, SERVER_NAME, Validity};
use crate::{Chain, ChainSpec, KeyAlgorithm, RootDelivery, Store, size};

/// Makes chains that share their keys, without a folder.
struct Maker {
    spec: ChainSpec,
    /// By what the padding asks of the intermediates.
    authorities: [OnceCell<Authority>; 2],
    key: PKey<Private>,
}

impl Maker {
    fn new(spec: ChainSpec) -> Maker {
        Maker {
            authorities: Default::default(),
            key: spec.leaf.generate().unwrap(),
            spec,
        }
    }

    fn chain(&self, certificate_bytes: Option<usize>) -> Chain {
        let spec = ChainSpec {
            certificate_bytes,
            ..self.spec.clone()
        };
        let padding = size::padding(&spec).unwrap();
        let kind = Kind::EndEntity {
            algorithm: spec.leaf,
            server_name: SERVER_NAME,
            padding: &padding,
        };
        let (crl, now) = (padding.intermediate_crl, SystemTime::now());
        let authority = self.authorities[crl]
            .get_or_init(|| Authority::new(spec.ca, spec.intermediates, crl, now).unwrap());
        let validity = Validity::from(now, END_ENTITY_LIFE);
        let mut certificates = vec![authority.issue(&self.key, validity, kind).unwrap()];
        certificates.extend(authority.intermediates.clone());
        if spec.root == RootDelivery::Sent {
            certificates.push(authority.root.clone());
        }
        let root = authority.root.clone();
        Chain::new(certificates, root, self.key.clone(), SERVER_NAME.to_owned()).unwrap()
    }
}

/// A chain of each algorithm.
fn chains() -> impl Iterator<Item = (KeyAlgorithm, &'static Chain)> {
    static CHAINS: LazyLock<Vec<Chain>> = LazyLock::new(|| {
        let chain = |spec: ChainSpec| match spec.leaf {
            // SLH-DSA takes up to a second to sign.
            KeyAlgorithm::SlhDsa(_) => kept().chain(&spec).unwrap(),
            _ => Maker::new(spec).chain(None),
        };
        KeyAlgorithm::ALL.map(ChainSpec::new).map(chain).into()
    });
    KeyAlgorithm::ALL.into_iter().zip(&*CHAINS)
}

/// Chains that take long to make, kept from one test run to the next.
fn kept() -> Store {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    Store::open(target.join("test-chains"))
}

fn mixed() -> ChainSpec {
    ChainSpec {
        ca: KeyAlgorithm::MlDsa65,
        intermediates: 2,
        root: RootDelivery::Sent,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    }
}
