#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, Store, test_chains};

use super::*;

const NAME: &str = "server.example";
const TTL: Duration = Duration::from_secs(600);

#[test]
fn records_of_several_chains_stand_side_by_side() {
    let [first, second] = [(); 2].map(|()| chain());
    let publication = publication(&[(&first, 1), (&second, 2)]).unwrap();
    let lines = publication.zone_lines();
    let mut lines = lines.lines();
    for (chain, count) in [(&first, 1), (&second, 2)] {
        let words: Vec<_> = lines.next().unwrap().splitn(5, ' ').collect();
        assert_eq!(words[..4], ["server.example.", "600", "IN", "TYPE65280"]);
        let fragment = Fragment::from_text(RecordType::DEFAULT, words[4]).unwrap();
        assert_eq!(fragment.digest, chain.topmost(count).unwrap().digest());
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn what_clients_could_not_use_is_refused() {
    let chain = chain();
    let other = Publication::new("other.example", [(&chain, 1)], RecordType::DEFAULT, TTL);
    let other = other.unwrap_err().to_string();
    assert_eq!(
        other,
        "the chain is for server.example, www.server.example, not for other.example: clients would not use it"
    );
    let slh = slh_dsa();
    let wildcard = test_chains::for_name("*.example").unwrap();
    let mut certificates = wildcard.certificates()[..1].to_vec();
    certificates.extend_from_slice(slh.certificates());
    let wildcard = PublicChain::new(certificates).unwrap();
    let publish = |count| {
        let chains = [(&wildcard, count)];
        Publication::new("*.example", chains, RecordType::DEFAULT, TTL)
    };
    publish(1).unwrap();
    let several = publish(3).unwrap_err().to_string();
    assert!(
        several.starts_with("*.example stands for many names"),
        "{several}"
    );
    let long = publication(&[(&slh, 1), (&slh_dsa_shake(), 1)])
        .unwrap_err()
        .to_string();
    assert!(
        long.starts_with("the records of server.example have 7"),
        "{long}"
    );
    let plan = plan(&chain, InitialWindow::default());
    let needless = count(&chain, None, &plan).unwrap_err().to_string();
    assert!(needless.contains("fits the initial window"), "{needless}");
    assert_eq!(count(&chain, Some(Part::EndEntity), &plan).unwrap(), 2);
}

#[test]
fn what_is_too_long_for_one_update_takes_several_in_a_safe_order() {
    let slh = slh_dsa();
    let publication = publication(&[(&slh, 2)]).unwrap();
    let [zero, one] = [NAME, "_1._pqtlsad.server.example"];
    let nothing = old([0, 0, 0]);
    assert_eq!(
        told(&publication.step_by_step(&nothing)),
        [vec![add(one)], vec![remove(zero), add(zero)]]
    );
    // The old records stay until the first tells of the new ones.
    let small = old([36_000, 10_000, 500]);
    assert_eq!(
        told(&publication.step_by_step(&small)),
        [
            vec![add(one)],
            vec![remove(zero), add(zero)],
            vec![remove(one), add(one)],
            vec![remove("_2._pqtlsad.server.example")],
        ]
    );
    let large = old([36_000, 36_000, 0]);
    assert_eq!(
        told(&publication.step_by_step(&large)),
        [vec![remove(one), add(one)], vec![remove(zero), add(zero)]]
    );
}

fn add(name: &str) -> String {
    format!("+{name}")
}

fn remove(name: &str) -> String {
    format!("-{name}")
}

fn told(steps: &[Vec<Change>]) -> Vec<Vec<String>> {
    let change = |change: &Change| match change {
        Change::Add { name, .. } => add(&name.to_string()),
        Change::Remove { name, .. } => remove(&name.to_string()),
    };
    let step = |changes: &Vec<Change>| changes.iter().map(change).collect();
    steps.iter().map(step).collect()
}

/// What is published before, in bytes at each name.
fn old<const N: usize>(sizes: [usize; N]) -> Vec<Published> {
    let published = |(index, size): (u8, usize)| Published {
        name: owner(NAME, index).unwrap(),
        data: if size > 0 {
            vec![vec![0; size]]
        } else {
            vec![]
        },
    };
    (0..).zip(sizes).map(published).collect()
}

fn publication(chains: &[(&PublicChain, usize)]) -> Result<Publication, PublishError> {
    Publication::new(NAME, chains.iter().copied(), RecordType::DEFAULT, TTL)
}

/// An end-entity and an intermediate.
fn chain() -> PublicChain {
    let chain = test_chains::for_name(NAME).unwrap();
    PublicChain::new(chain.certificates().to_vec()).unwrap()
}

/// An end-entity and a root, 36 KB each.
fn slh_dsa() -> PublicChain {
    stored("slh-dsa-sha2-192f")
}

fn slh_dsa_shake() -> PublicChain {
    stored("slh-dsa-shake-192f")
}

fn stored(algorithm: &str) -> PublicChain {
    let algorithm: KeyAlgorithm = algorithm.parse().unwrap();
    let spec = ChainSpec {
        intermediates: 0,
        root: RootDelivery::Sent,
        ..ChainSpec::new(algorithm)
    };
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-chains");
    let chain = Store::open(kept).chain(&spec).unwrap();
    PublicChain::new(chain.certificates().to_vec()).unwrap()
}

/// What a server reads is what is published, and what it refuses is not.
#[test]
fn files_are_read_as_the_server_reads_them() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("chain.pem");
    let made = test_chains::for_name(NAME).unwrap();
    let certificates = made.certificates().iter();
    let pem: Vec<u8> = certificates.flat_map(|one| one.to_pem().unwrap()).collect();
    let pem = String::from_utf8(pem).unwrap();
    let source = Source {
        name: NAME.to_owned(),
        files: vec![file.clone()],
        part: Some(pqtlsad::Part::EndEntity),
        window: InitialWindow::default(),
        record_type: RecordType::DEFAULT,
        ttl: TTL,
    };
    let lines = |pem: &str| {
        std::fs::write(&file, pem).unwrap();
        source.load().map(|loaded| loaded.publication.zone_lines())
    };
    let plain = lines(&pem).unwrap();
    for same in [
        format!("\u{feff}{pem}"),
        pem.replacen("CERTIFICATE", "TRUSTED CERTIFICATE", 2),
        format!("----------\n{pem}"),
    ] {
        assert_eq!(lines(&same).unwrap(), plain);
    }
    let cut = lines(&pem[..pem.len() - 40]).unwrap_err().to_string();
    assert!(cut.contains("does not end: the file is cut"), "{cut}");
}
