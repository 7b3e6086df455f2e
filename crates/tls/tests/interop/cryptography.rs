//! PyPI's cryptography: reads every kind of chain, with a parser in Rust and an OpenSSL of its own.

use std::fs;

use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery};
use tempfile::TempDir;

use crate::harness::{Program, installed, store};

/// Every algorithm, unpadded and padded, with the root sent and omitted; and the longest chain,
/// of three algorithms and with timestamps.
fn specs() -> Vec<ChainSpec> {
    let mut specs = Vec::new();
    for algorithm in KeyAlgorithm::ALL {
        for root in [RootDelivery::Omitted, RootDelivery::Sent] {
            let plain = ChainSpec {
                root,
                ..ChainSpec::new(algorithm)
            };
            let padded = ChainSpec {
                certificate_bytes: Some(plain.unpadded_bytes() + 5000),
                ..plain.clone()
            };
            specs.extend([plain, padded]);
        }
    }
    let long = ChainSpec {
        intermediates: ChainSpec::MAX_INTERMEDIATES,
        ca: KeyAlgorithm::MlDsa65,
        root_key: KeyAlgorithm::Rsa2048,
        scts: ChainSpec::MAX_SCTS,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    specs.push(long);
    specs
}

#[test]
fn cryptography_reads_and_verifies_every_chain() {
    let folder = TempDir::new().unwrap();
    let mut reader = installed("python");
    reader.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/interop/read_chains.py"
    ));
    let mut expected = Vec::new();
    for (index, spec) in specs().iter().enumerate() {
        let chain = store().chain(spec).unwrap();
        if index == 0 {
            reader.arg(chain.server_name());
        }
        let name = spec.to_string().replace(['/', ':'], "_");
        let place = folder.path().join(&name);
        fs::create_dir(&place).unwrap();
        let sent = chain.certificates();
        let pem: Vec<_> = sent.iter().map(|c| c.to_pem().unwrap()).collect();
        fs::write(place.join("sent.pem"), pem.concat()).unwrap();
        fs::write(place.join("root.pem"), chain.root().to_pem().unwrap()).unwrap();
        reader.arg(place);

        let kept = match spec.root {
            RootDelivery::Omitted => Some(("kept", chain.root())),
            RootDelivery::Sent => None,
        };
        let all = sent.iter().map(|certificate| ("sent", certificate));
        let key_at = |place: usize| match usize::from(spec.intermediates) {
            _ if place == 0 => spec.leaf,
            intermediates if place <= intermediates => spec.ca,
            _ => spec.root_key,
        };
        for (place, (delivery, certificate)) in all.chain(kept).enumerate() {
            let bytes = certificate.to_der().unwrap().len();
            let known = oids(key_at(place)).zip(oids(key_at(place + 1)));
            expected.push((
                format!("{name} {delivery} {bytes}"),
                known.map(|((key, _), (_, signature))| format!("{key} {signature} verified")),
            ));
        }
    }
    let read = Program::start(&mut reader).end();
    let lines: Vec<_> = read.output().lines().collect();
    assert_eq!(lines.len(), expected.len());
    for (line, (certificate, known)) in lines.iter().zip(&expected) {
        let rest = line.strip_prefix(certificate.as_str());
        let rest = rest.unwrap_or_else(|| panic!("{line:?} instead of {certificate:?}"));
        match known {
            Some(known) => assert_eq!(rest.trim(), known, "{certificate}"),
            None => println!("{line}"),
        }
    }
}

/// The OIDs of keys and signatures of what cryptography can verify: RFC 5480, RFC 5758, RFC 4055
/// and RFC 9881. Of others, it tells the OIDs.
fn oids(algorithm: KeyAlgorithm) -> Option<(&'static str, &'static str)> {
    Some(match algorithm {
        KeyAlgorithm::EcdsaP256 => ("1.2.840.10045.2.1", "1.2.840.10045.4.3.2"),
        KeyAlgorithm::EcdsaP384 => ("1.2.840.10045.2.1", "1.2.840.10045.4.3.3"),
        KeyAlgorithm::Rsa2048 | KeyAlgorithm::Rsa3072 | KeyAlgorithm::Rsa4096 => {
            ("1.2.840.113549.1.1.1", "1.2.840.113549.1.1.11")
        }
        KeyAlgorithm::MlDsa44 => ("2.16.840.1.101.3.4.3.17", "2.16.840.1.101.3.4.3.17"),
        KeyAlgorithm::MlDsa65 => ("2.16.840.1.101.3.4.3.18", "2.16.840.1.101.3.4.3.18"),
        KeyAlgorithm::MlDsa87 => ("2.16.840.1.101.3.4.3.19", "2.16.840.1.101.3.4.3.19"),
        #[allow(
            unreachable_patterns,
            reason = "there may be more algorithms than it knows"
        )]
        _ => return None,
    })
}
