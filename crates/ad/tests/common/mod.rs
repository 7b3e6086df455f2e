//! What the tests share.
// Each test program has its own copy, and uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_ad::dns::{Answer, Client, DnsError, First, Question, Records, Reply, Rtype};
use lastbyte_ad::test_servers::isolate;
use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, RootDelivery, Store, test_chains};
use pqtlsad::record::{Assembly, Delivered, Fragment, RecordType, owner};
use tempfile::TempDir;

/// The name that most chains are for.
pub(crate) const NAME: &str = "server.example";

/// Runs `test` in a network of its own, with these servers.
pub(crate) fn in_own_network<S, T>(
    servers: impl FnOnce() -> S,
    test: impl Future<Output = T>,
) -> T {
    isolate();
    let _servers = servers();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(120), test).await };
    runtime.block_on(bounded).unwrap()
}

pub(crate) async fn ask(
    client: &Client,
    name: &str,
    rtype: Rtype,
    first: First,
) -> Result<Reply, DnsError> {
    let name = name.parse().unwrap();
    client.ask(&Question { name, rtype }, first).await
}

pub(crate) fn records(reply: &Reply) -> &Records {
    match &reply.answer {
        Answer::Records(records) => records,
        other => panic!("no records: {other:?}"),
    }
}

/// What `server` says of [`NAME`], put together.
pub(crate) async fn delivered(server: SocketAddr, record_type: RecordType) -> Vec<Delivered> {
    let client = Client::new([server.into()]);
    let mut assembly = Assembly::default();
    let mut wanted = vec![0];
    while let Some(index) = wanted.pop() {
        let name = owner(NAME, index);
        let rtype = Rtype::from_int(record_type.number());
        let reply = ask(&client, &name, rtype, First::Tcp).await.unwrap();
        for data in &records(&reply).data {
            let fragment = Fragment::decode(record_type, data).unwrap();
            assembly.add(fragment).unwrap();
        }
        wanted = assembly.missing();
    }
    assembly.finish().into_iter().map(Result::unwrap).collect()
}

/// An end-entity and a root, which is sent.
pub(crate) fn with_root(algorithm: &str) -> Chain {
    let algorithm: KeyAlgorithm = algorithm.parse().unwrap();
    stored(&ChainSpec {
        intermediates: 0,
        root: RootDelivery::Sent,
        ..ChainSpec::new(algorithm)
    })
}

pub(crate) fn stored(spec: &ChainSpec) -> Chain {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-chains");
    Store::open(kept).chain(spec).unwrap()
}

/// A chain in files.
pub(crate) struct Files {
    pub(crate) folder: TempDir,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) root: PathBuf,
}

impl Files {
    pub(crate) fn new(chain: &Chain) -> Files {
        let folder = TempDir::new().unwrap();
        let path = |name| folder.path().join(name);
        let files = Files {
            chain: path("chain.pem"),
            key: path("key.pem"),
            root: path("root.pem"),
            folder,
        };
        files.write(chain);
        files
    }

    /// Puts another chain in its place, as a renewal does.
    pub(crate) fn write(&self, chain: &Chain) {
        let sent = chain.certificates().iter();
        let sent: Vec<u8> = sent.flat_map(|one| one.to_pem().unwrap()).collect();
        fs::write(&self.key, chain.key().private_key_to_pem_pkcs8().unwrap()).unwrap();
        fs::write(&self.root, chain.root().to_pem().unwrap()).unwrap();
        fs::write(&self.chain, sent).unwrap();
    }
}

/// The files of a resolver's chain.
pub(crate) fn resolver_chain() -> Files {
    Files::new(&test_chains::for_name("resolver.example").unwrap())
}
