use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use openssl::x509::X509;

use super::Maker;
use crate::{ChainSpec, KeyAlgorithm, SctStatus, Store, verify_scts};

fn with_scts(scts: u8, sct_algorithm: KeyAlgorithm) -> ChainSpec {
    ChainSpec {
        scts,
        sct_algorithm,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    }
}

#[test]
fn scts_verify_and_have_the_size_that_was_computed() {
    for (algorithm, name) in [
        (KeyAlgorithm::EcdsaP256, 0x0403),
        (KeyAlgorithm::Rsa2048, 0x0401),
        (KeyAlgorithm::MlDsa44, 0x0904),
        (KeyAlgorithm::FnDsa512, 0xFFF0),
    ] {
        for count in 0..=ChainSpec::MAX_SCTS {
            let maker = Maker::new(with_scts(count, algorithm));
            let unpadded = maker.spec.unpadded_bytes();
            for bytes in [None, Some(unpadded + 1000)] {
                let chain = maker.chain(bytes);
                let scts = chain.scts().unwrap();
                assert_eq!(scts.len(), usize::from(count));
                for sct in scts {
                    assert_eq!(sct.status, SctStatus::Valid, "{algorithm}");
                    assert_eq!(sct.algorithm, name);
                    assert_eq!(sct.signature_bytes, algorithm.signature_bytes());
                }
                assert_eq!(
                    chain.certificate_message_bytes(),
                    bytes.unwrap_or(unpadded),
                    "{count} of {algorithm}"
                );
            }
        }
    }
}

#[test]
fn an_sct_is_of_one_certificate_issuer_and_log() {
    let chain = Maker::new(with_scts(2, KeyAlgorithm::EcdsaP256)).chain(None);
    let other = Maker::new(with_scts(2, KeyAlgorithm::EcdsaP256)).chain(None);
    let [end_entity, issuer] = chain.certificates() else {
        panic!("there are {} certificates", chain.certificates().len());
    };
    let [_, other_issuer] = other.certificates() else {
        panic!("there are {} certificates", other.certificates().len());
    };
    let logs = chain.logs();
    let statuses = |certificate: &X509, issuer: &X509, logs: &[_]| -> Vec<SctStatus> {
        let scts = verify_scts(certificate, issuer, logs).unwrap();
        scts.into_iter().map(|sct| sct.status).collect()
    };
    use SctStatus::*;
    assert_eq!(statuses(end_entity, issuer, logs), [Valid, Valid]);
    assert_eq!(statuses(end_entity, other_issuer, logs), [Invalid, Invalid]);
    assert_eq!(statuses(end_entity, issuer, other.logs()), [UnknownLog; 2]);
    assert_eq!(
        statuses(end_entity, issuer, &logs[..1]),
        [Valid, UnknownLog]
    );

    let mut der = end_entity.to_der().unwrap();
    let name = der.windows(14).position(|bytes| bytes == b"server.example");
    der[name.unwrap()] = b'S';
    let tampered = X509::from_der(&der).unwrap();
    assert_eq!(statuses(&tampered, issuer, logs), [Invalid, Invalid]);
}

/// Another program reads them.
#[test]
fn openssl_lists_them() {
    let chain = Maker::new(with_scts(2, KeyAlgorithm::EcdsaP256)).chain(None);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leaf.pem");
    fs::write(&file, chain.certificates()[0].to_pem().unwrap()).unwrap();
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in ["CT Precertificate SCTs", "ecdsa-with-SHA256"] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(text.matches("Signed Certificate Timestamp:").count(), 2);
    assert_eq!(text.matches("Version   : v1 (0x0)").count(), 2);
}

#[test]
fn a_store_keeps_its_logs() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let spec = with_scts(2, KeyAlgorithm::MlDsa44);
    let chain = store.chain(&spec).unwrap();
    assert_eq!(store.chain(&spec).unwrap().digest(), chain.digest());
    assert!(
        chain
            .scts()
            .unwrap()
            .iter()
            .all(|sct| sct.status == SctStatus::Valid)
    );
    let plain = store.chain(&with_scts(0, KeyAlgorithm::EcdsaP256)).unwrap();
    assert!(plain.key().public_eq(chain.key()));

    // One that asks for more logs keeps those that others have.
    store.chain(&with_scts(3, KeyAlgorithm::MlDsa44)).unwrap();
    assert_eq!(store.chain(&spec).unwrap().digest(), chain.digest());

    // Without its log nobody could verify it.
    fs::remove_dir_all(folder.path().join("logs/ml-dsa-44-1")).unwrap();
    let renewed = store.chain(&spec).unwrap();
    assert_ne!(renewed.digest(), chain.digest());
    assert!(
        renewed
            .scts()
            .unwrap()
            .iter()
            .all(|sct| sct.status == SctStatus::Valid)
    );
}

#[test]
fn what_no_list_can_hold_is_refused() {
    let slh_dsa = KeyAlgorithm::SlhDsa(crate::SlhDsa::Sha2_256f);
    assert!(with_scts(1, slh_dsa).validate().is_ok());
    assert_eq!(
        with_scts(2, slh_dsa).validate().unwrap_err().to_string(),
        "chain \"ecdsa-p256/scts=2/sct_algorithm=slh-dsa-sha2-256f\": the length of a list of SCTs \
         has 16 bits; ask for fewer or for a smaller sct_algorithm"
    );
    assert_eq!(
        with_scts(4, KeyAlgorithm::EcdsaP256)
            .validate()
            .unwrap_err()
            .to_string(),
        "chain \"ecdsa-p256/scts=4\": ask for at most 3 SCTs"
    );
}

/// Another program verifies them, from the wire.
#[test]
fn openssl_validates_them() {
    let chain = Maker::new(with_scts(3, KeyAlgorithm::EcdsaP256)).chain(None);
    let [end_entity, issuer] = chain.certificates() else {
        panic!("there are {} certificates", chain.certificates().len());
    };
    let mut logs = String::from("enabled_logs = log0,log1,log2\n");
    for (index, log) in chain.logs().iter().enumerate() {
        let key = openssl::base64::encode_block(&log.public_key_to_der().unwrap());
        logs += &format!("[log{index}]\ndescription = log {index}\nkey = {key}\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
    write("leaf.pem", &end_entity.to_pem().unwrap());
    write("issuer.pem", &issuer.to_pem().unwrap());
    write("root.pem", &chain.root().to_pem().unwrap());
    write("key.pem", &chain.key().private_key_to_pem_pkcs8().unwrap());
    write("logs.cnf", logs.as_bytes());

    // A server ends with its standard input, so that stays open.
    let openssl = |arguments: &[&str], input: Stdio| {
        let mut command = Command::new("openssl");
        command.args(arguments).current_dir(folder.path());
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut server = openssl(
        &[
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-naccept",
            "1",
            "-cert",
            "leaf.pem",
            "-key",
            "key.pem",
            "-cert_chain",
            "issuer.pem",
        ],
        Stdio::piped(),
    );
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = lines
        .find_map(|line| line.unwrap().strip_prefix("ACCEPT ").map(str::to_owned))
        .unwrap();
    let client = openssl(
        &[
            "s_client",
            "-connect",
            &address,
            "-ct",
            "-ctlogfile",
            "logs.cnf",
            "-CAfile",
            "root.pem",
        ],
        Stdio::null(),
    );
    let output = client.wait_with_output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text.matches("SCT validation status: valid").count(),
        3,
        "{text}"
    );
}
