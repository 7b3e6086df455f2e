//! What is to be negotiated, and whether it was.

use std::path::PathBuf;
use std::sync::Arc;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, RootDelivery, Store, private_key_pem};
use lastbyte_tls::observer::Message;
use lastbyte_tls::observer::{CertificateType, EarlyData, Observation};
use lastbyte_tls::{
    CertificateCompression, Compressions, Delivery, Group, Stack, StackName, TlsConfig, names,
    stack,
};
use tempfile::TempDir;

/// One configuration, and the files by which a peer shares it.
pub(crate) struct Arm {
    pub(crate) group: Group,
    pub(crate) chain: Chain,
    leaf: KeyAlgorithm,
    compression: Option<CertificateCompression>,
    files: TempDir,
}

/// Chains that all tests share, kept for later runs too since RSA keys take long to make.
pub(crate) fn store() -> Store {
    Store::open(concat!(env!("CARGO_TARGET_TMPDIR"), "/chains"))
}

/// An arm of a group and a chain.
pub(crate) fn arm(group: Group, spec: &ChainSpec) -> Arm {
    let chain = store().chain(spec).unwrap();
    let files = TempDir::new().unwrap();
    let pem = |name: &str, contents: Vec<u8>| {
        std::fs::write(files.path().join(name), contents).unwrap();
    };
    let certificates = chain.certificates().iter();
    let sent: Vec<_> = certificates.map(|c| c.to_pem().unwrap()).collect();
    pem("chain.pem", sent.concat());
    pem("issuers.pem", sent[1..].concat());
    pem("root.pem", chain.root().to_pem().unwrap());
    pem("key.pem", private_key_pem(chain.key()).unwrap());
    Arm {
        group,
        chain,
        leaf: spec.leaf,
        compression: None,
        files,
    }
}

/// An arm of a chain that every peer can verify.
pub(crate) fn classical(group: Group) -> Arm {
    arm(group, &ChainSpec::new(KeyAlgorithm::EcdsaP256))
}

/// An arm of another root than all others here.
pub(crate) fn stranger(group: Group) -> Arm {
    let spec = ChainSpec {
        intermediates: 0,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    arm(group, &spec)
}

/// An arm of what a browser negotiates first and an ML-DSA chain.
pub(crate) fn post_quantum() -> Arm {
    arm(
        Group::X25519MlKem768,
        &ChainSpec::new(KeyAlgorithm::MlDsa65),
    )
}

/// What a peer with any OpenSSL is to do.
pub(crate) fn classical_arms() -> Vec<Arm> {
    let large = ChainSpec {
        ca: KeyAlgorithm::EcdsaP384,
        intermediates: 2,
        root: RootDelivery::Sent,
        certificate_bytes: Some(60_000),
        ..ChainSpec::new(KeyAlgorithm::Rsa2048)
    };
    vec![
        classical(Group::X25519),
        arm(Group::Secp256r1, &ChainSpec::new(KeyAlgorithm::Rsa2048)),
        arm(Group::Secp384r1, &ChainSpec::new(KeyAlgorithm::EcdsaP384)),
        arm(Group::X25519, &large),
    ]
}

/// What a peer with ML-DSA is to do: every one of its groups, and with `group` every kind of
/// chain that has a TLS signature scheme, up to one with all that a chain can have.
pub(crate) fn arms(groups: &[Group], group: Group) -> Vec<Arm> {
    const KEYS: [KeyAlgorithm; 6] = [
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::EcdsaP384,
        KeyAlgorithm::Rsa2048,
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ];
    let large = ChainSpec {
        ca: KeyAlgorithm::MlDsa87,
        intermediates: 2,
        root: RootDelivery::Sent,
        certificate_bytes: Some(60_000),
        ..ChainSpec::new(KeyAlgorithm::MlDsa44)
    };
    let chains = KEYS.map(ChainSpec::new).into_iter().chain([large]);
    let by_group = groups.iter().map(|group| classical(*group));
    by_group
        .chain(chains.map(|spec| arm(group, &spec)))
        .collect()
}

impl Arm {
    /// Our stack of this arm. The only place where one is made.
    pub(crate) fn stack(&self) -> Arc<dyn Stack> {
        let mut config = TlsConfig::new(self.group, &self.chain);
        if let Some(algorithm) = self.compression {
            (config.client, config.server) = (StackName::Rustls, StackName::Rustls);
            config.delivery = Delivery::Compressed(Compressions::both(&[algorithm]));
        }
        stack(&config).unwrap().into()
    }

    /// The same with rustls, which compresses certificates.
    #[cfg(feature = "rustls")]
    pub(crate) fn compressed(self, algorithm: CertificateCompression) -> Arm {
        Arm {
            compression: Some(algorithm),
            ..self
        }
    }

    /// The certificates that a server sends, in PEM.
    pub(crate) fn chain_file(&self) -> PathBuf {
        self.files.path().join("chain.pem")
    }

    /// The same without the end-entity's.
    pub(crate) fn issuers_file(&self) -> PathBuf {
        self.files.path().join("issuers.pem")
    }

    /// The trust anchor, in PEM.
    pub(crate) fn root_file(&self) -> PathBuf {
        self.files.path().join("root.pem")
    }

    /// The end-entity's key, in PEM.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.files.path().join("key.pem")
    }

    /// The group as every version of OpenSSL knows it, while older ones lack some of IANA's names.
    pub(crate) fn openssl_group(&self) -> &'static str {
        match self.group {
            Group::X25519 => "X25519",
            Group::Secp256r1 => "P-256",
            Group::Secp384r1 => "P-384",
            other => other.name(),
        }
    }

    /// A place for whatever else a peer needs.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    pub(crate) fn name(&self) -> &str {
        self.chain.server_name()
    }

    /// Fails unless this arm, and nothing else, was negotiated in a full handshake at once.
    pub(crate) fn expect(&self, observation: &Observation) {
        self.expect_but_for_retry(observation);
        assert_eq!(observation.bytes(Message::HelloRetryRequest), None);
        assert_eq!(observation.flights.len(), 3, "{:#?}", observation.flights);
    }

    /// As [`expect`](Arm::expect), but after a HelloRetryRequest.
    pub(crate) fn expect_retried(&self, observation: &Observation) {
        self.expect_but_for_retry(observation);
        assert!(observation.bytes(Message::HelloRetryRequest).is_some());
        assert!(observation.bytes(Message::SecondClientHello).is_some());
        assert_eq!(observation.flights.len(), 5, "{:#?}", observation.flights);
    }

    fn expect_but_for_retry(&self, observation: &Observation) {
        let o = observation;
        let sizes = self.chain.certificates().iter();
        let sizes: Vec<_> = sizes.map(|c| c.to_der().unwrap().len()).collect();
        assert_eq!(o.version, Some(0x0304));
        assert_eq!(
            o.group.and_then(names::group),
            Some(self.group.name()),
            "{o:#?}"
        );
        assert_eq!(
            o.signature.and_then(names::signature_scheme),
            Some(scheme(self.leaf))
        );
        assert_eq!(o.certificate_type, CertificateType::X509);
        let compression = self.compression.map(CertificateCompression::code_point);
        assert_eq!(o.certificate_compression, compression);
        assert_eq!(o.certificates, sizes);
        let plain = self.chain.certificate_message_bytes();
        let sent = o.bytes(Message::Certificate).unwrap();
        match self.compression {
            None => assert_eq!(sent, plain),
            Some(_) => assert!(sent < plain, "{sent}"),
        }
        // Those of ECDSA vary in length.
        let header = 4 + 2 + 2;
        let spread = usize::from(scheme(self.leaf).starts_with("ecdsa")) * 8;
        let verify = o.bytes(Message::CertificateVerify).unwrap();
        assert!(verify.abs_diff(header + self.leaf.signature_bytes()) <= spread);
        assert_eq!(o.server_name.as_deref(), Some(self.name()));
        assert_eq!(o.resumed, Some(false));
        assert_eq!(o.early_data, EarlyData::NotOffered);
        assert_eq!(o.bytes(Message::CertificateRequest), None);
        assert_eq!(o.alert, None);
        assert!(
            o.bytes(Message::ServerFinished).is_some()
                && o.bytes(Message::ClientFinished).is_some()
        );
    }
}

/// How a key of this algorithm signs in TLS 1.3, by IANA's name.
fn scheme(leaf: KeyAlgorithm) -> &'static str {
    match leaf {
        KeyAlgorithm::EcdsaP256 => "ecdsa_secp256r1_sha256",
        KeyAlgorithm::EcdsaP384 => "ecdsa_secp384r1_sha384",
        KeyAlgorithm::Rsa2048 | KeyAlgorithm::Rsa3072 | KeyAlgorithm::Rsa4096 => {
            "rsa_pss_rsae_sha256"
        }
        KeyAlgorithm::MlDsa44 => "mldsa44",
        KeyAlgorithm::MlDsa65 => "mldsa65",
        KeyAlgorithm::MlDsa87 => "mldsa87",
        #[allow(unreachable_patterns, reason = "no peer knows the schemes of others")]
        other => panic!("no peer is asked for {other}"),
    }
}
