//! A file that is said to hold a chain and its key: real blocks in any order, and anything else.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use lastbyte_fuzz::pieces;
use lastbyte_pki::{ChainRole, ChainSpec, KeyAlgorithm, PemFiles, Store, explain};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// The end-entity, its issuer, the root and the key; then certificates under their other labels, with what trust OpenSSL puts behind them,
/// and the key in its older form.
static BLOCKS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let spec = ChainSpec::new(KeyAlgorithm::EcdsaP256);
    let chain = Store::open(folder.path()).chain(&spec).unwrap();
    let certificates = chain.certificates().iter().chain([chain.root()]);
    let mut blocks: Vec<_> = certificates
        .map(|certificate| certificate.to_pem().unwrap())
        .collect();
    blocks.push(chain.key().private_key_to_pem_pkcs8().unwrap());
    let labelled = |block: &[u8], label: &str| {
        let text = String::from_utf8(block.to_vec()).unwrap();
        text.replace("CERTIFICATE", label).into_bytes()
    };
    let end_entity = blocks[0].clone();
    blocks.push(labelled(&end_entity, "X509 CERTIFICATE"));
    blocks.push(labelled(&end_entity, "TRUSTED CERTIFICATE"));
    blocks.push(labelled(&end_entity, "CERTIFICATE REQUEST"));
    blocks.push(chain.key().ec_key().unwrap().private_key_to_pem().unwrap());
    blocks
});

/// In memory where that can be had: what is kept here is synced to the disk, which takes half of an execution.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).unwrap()
});

fuzz_target!(|data: &[u8]| {
    let pem: Vec<u8> = pieces(data)
        .flat_map(|(tag, bytes)| BLOCKS.get(usize::from(tag)).map_or(bytes, Vec::as_slice))
        .copied()
        .collect();
    let chain: PathBuf = FOLDER.path().join("chain.pem");
    fs::write(&chain, pem).unwrap();
    let store = Store::open(FOLDER.path().join("store"));
    match store.own(&PemFiles::new(chain), ChainRole::Server) {
        Ok(chain) => {
            for certificate in chain.certificates() {
                explain(certificate).unwrap();
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
