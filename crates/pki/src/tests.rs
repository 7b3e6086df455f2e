#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod algorithm;
mod anatomy;
mod blocks;
mod chain;
mod padding;
mod pem;
mod profile;
mod sct;
mod stand_in;
mod store;
mod verify;

use std::cell::OnceCell;
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;

use openssl::pkey::{PKey, Private};

use crate::authority::{self, Authority};
use crate::keys::Keys;
use crate::sct::Log;
use crate::{Chain, ChainSpec, KeyAlgorithm, PaddedCertificate, RootDelivery, Store};

/// Makes chains that share their keys, without a folder.
struct Maker {
    spec: ChainSpec,
    /// By what the padding asks of the intermediates.
    authorities: [OnceCell<Authority>; 2],
    key: PKey<Private>,
    logs: Vec<Log>,
}

impl Maker {
    fn new(spec: ChainSpec) -> Maker {
        let algorithm = spec.sct_algorithm;
        let log = |_| Log {
            algorithm,
            key: algorithm.generate().unwrap(),
        };
        Maker {
            authorities: Default::default(),
            key: spec.leaf.generate().unwrap(),
            logs: (0..spec.scts).map(log).collect(),
            spec,
        }
    }

    fn chain(&self, certificate_bytes: Option<usize>) -> Chain {
        let spec = ChainSpec {
            certificate_bytes,
            ..self.spec.clone()
        };
        let padding = authority::padding(&spec).unwrap();
        let now = SystemTime::now();
        let new = || Authority::new(&spec, &padding, now).unwrap();
        let authority = match spec.padding {
            PaddedCertificate::EndEntity => self.authorities[padding.intermediate_crl]
                .get_or_init(new)
                .clone(),
            PaddedCertificate::Last => new(),
        };
        let end_entity = authority.issue_end_entity(&spec, &self.key, &padding, &self.logs, now);
        let mut certificates = vec![end_entity.unwrap()];
        certificates.extend(authority.intermediates);
        if spec.root == RootDelivery::Sent {
            certificates.push(authority.root.clone());
        }
        let name = spec.role.name().to_owned();
        let public =
            |log: &Log| PKey::public_key_from_der(&log.key.public_key_to_der().unwrap()).unwrap();
        Chain::new(certificates, authority.root, self.key.clone(), name)
            .unwrap()
            .with_logs(self.logs.iter().map(public).collect())
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
        root_key: KeyAlgorithm::MlDsa65,
        intermediates: 2,
        root: RootDelivery::Sent,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    }
}
