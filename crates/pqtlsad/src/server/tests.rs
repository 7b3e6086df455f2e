#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_pki::{ChainSpec, KeyAlgorithm, test_chains};

use super::*;
use crate::fixtures::{NAME, chain, of_pki, pki, spec};

fn for_name(name: &str) -> Chain {
    of_pki(&test_chains::for_name(name).unwrap()).0
}

fn whole(selection: Selection) -> Vec<Digest> {
    match selection {
        Selection::Whole(chains) => chains.iter().map(|chain| chain.digest()).collect(),
        Selection::Without(_) => panic!("something is left out"),
    }
}

fn omitted(selection: Selection) -> (Digest, usize) {
    match selection {
        Selection::Without(omissions) => match &omissions[..] {
            [Omission { chain, omitted }] => (chain.digest(), *omitted),
            several => panic!("{several:?}"),
        },
        Selection::Whole(_) => panic!("nothing is left out"),
    }
}

#[test]
fn parts_of_a_chain() {
    let (rooted, _) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let parts: Vec<_> = (1..=3).map(|count| rooted.part(count)).collect();
    assert_eq!(parts, Part::ALL);
    for part in Part::ALL {
        assert_eq!(rooted.part(rooted.count(part).unwrap()), part);
    }
    // As public servers have it, without the root.
    let (usual, _) = chain(&ChainSpec::new(KeyAlgorithm::EcdsaP256));
    assert_eq!(usual.count(Part::Intermediate).unwrap(), 1);
    assert_eq!(
        usual.count(Part::Root).unwrap_err().to_string(),
        "the chain has no root to publish"
    );
    // Root and end-entity, as the mechanism's authors had it.
    let two = ChainSpec {
        intermediates: 0,
        ..spec(KeyAlgorithm::EcdsaP256)
    };
    let (two, _) = chain(&two);
    assert_eq!(two.count(Part::Root).unwrap(), 1);
    assert!(two.count(Part::Intermediate).is_err());
    assert_eq!(two.count(Part::EndEntity).unwrap(), 2);
}

#[test]
fn each_part_has_a_digest_from_the_top() {
    let (chain, _) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let chains = Chains::new(vec![]);
    assert!(whole(chains.select(None, None)).is_empty());
    for count in 1..=3 {
        let digest = chain.topmost(count).unwrap().digest();
        assert_eq!(chain.matches(&digest), Some(count));
    }
    assert_eq!(chain.matches(&chain.digest()), Some(3));
    let reversed: Vec<Vec<u8>> = (chain.certificates().iter())
        .map(|certificate| certificate.to_der().unwrap())
        .collect();
    let wrong_way = CertificateList::new(reversed).unwrap().digest();
    assert_eq!(chain.matches(&wrong_way), None);
}

#[test]
fn names_choose_among_chains() {
    let (here, there, wild) = (
        for_name("here.example"),
        for_name("there.example"),
        for_name("*.wild.example"),
    );
    let digests = [&here, &there, &wild].map(|chain| chain.digest());
    let part = there.topmost(1).unwrap().digest();
    let chains = Chains::new(vec![here, there, wild]);
    let chosen = |name| whole(chains.select(name, None));
    assert_eq!(chosen(Some("there.example")), [digests[1]]);
    assert_eq!(chosen(Some("a.wild.example")), [digests[2]]);
    // The first is for whoever asks for nothing that there is.
    for name in [
        None,
        Some("wild.example"),
        Some("a.b.wild.example"),
        Some(""),
    ] {
        assert_eq!(chosen(name), [digests[0]]);
    }
    let offered = chains.select(Some("there.example"), Some(&part));
    assert_eq!(omitted(offered), (digests[1], 1));
    // A digest counts for its own name alone.
    for name in [None, Some("here.example"), Some("a.wild.example")] {
        whole(chains.select(name, Some(&part)));
    }
}

#[test]
fn chains_of_several_algorithms_go_together() {
    let (ecdsa, _) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let (ml_dsa, _) = chain(&spec(KeyAlgorithm::MlDsa44));
    let digests = [ecdsa.digest(), ml_dsa.digest()];
    let part = ml_dsa.topmost(2).unwrap().digest();
    let chains = Chains::new(vec![ecdsa, ml_dsa]);
    assert_eq!(whole(chains.select(Some(NAME), None)), digests);
    assert_eq!(whole(chains.select(None, None)), digests);
    let offered = chains.select(Some(NAME), Some(&part));
    assert_eq!(omitted(offered), (digests[1], 2));
}

#[test]
fn rotation_keeps_what_records_may_still_deliver() {
    let [first, second, third] = [(); 3].map(|()| for_name(NAME));
    let digests = [&first, &second, &third].map(|chain| chain.digest());
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let mut chains = Chains::new(vec![first]);
    chains.rotate(vec![second], at(300));
    chains.rotate(vec![third], at(400));
    assert_eq!(whole(chains.select(Some(NAME), None)), [digests[2]]);
    let good = |chains: &Chains| {
        digests.map(|digest| matches!(chains.select(None, Some(&digest)), Selection::Without(_)))
    };
    assert_eq!(good(&chains), [true, true, true]);
    chains.expire(at(299));
    assert_eq!(good(&chains), [true, true, true]);
    chains.expire(at(300));
    assert_eq!(good(&chains), [false, true, true]);
    chains.expire(at(400));
    assert_eq!(good(&chains), [false, false, true]);
}

#[test]
fn a_chain_that_comes_back_is_current() {
    let (chain, _) = chain(&spec(KeyAlgorithm::EcdsaP256));
    let again = || crate::fixtures::chain(&spec(KeyAlgorithm::EcdsaP256)).0;
    let digest = chain.digest();
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let mut chains = Chains::new(vec![chain]);
    chains.rotate(vec![for_name(NAME)], until);
    chains.rotate(vec![again()], until);
    chains.expire(until);
    assert_eq!(whole(chains.select(None, None)), [digest]);
}

#[test]
fn what_is_forgotten_is_never_left_out_again() {
    let [first, second] = [(); 2].map(|()| for_name(NAME));
    let digests = [first.digest(), second.digest()];
    let mut chains = Chains::new(vec![first]);
    chains.rotate(vec![second], SystemTime::now() + Duration::from_secs(300));
    assert_eq!(
        omitted(chains.select(None, Some(&digests[0]))),
        (digests[0], 2)
    );
    chains.forget();
    assert_eq!(whole(chains.select(None, Some(&digests[0]))), [digests[1]]);
}

#[test]
fn chains_of_an_earlier_server_are_taken_until_their_time_is_over() {
    let [first, second] = [(); 2].map(|()| for_name(NAME));
    let digests = [first.digest(), second.digest()];
    let until = SystemTime::now() + Duration::from_secs(300);
    let mut chains = Chains::new(vec![second.clone()]);
    // What is sent now, or was taken before, stays as it is.
    for chain in [second, first.clone(), first.clone()] {
        chains.restore(chain, until);
    }
    let previous: Vec<_> = chains
        .previous()
        .map(|(chain, until)| (chain.digest(), until))
        .collect();
    assert_eq!(previous, [(digests[0], until)]);
    assert_eq!(
        omitted(chains.select(None, Some(&digests[0]))),
        (digests[0], 2)
    );
    let mut late = Chains::new(vec![for_name(NAME)]);
    let end = first.valid_until();
    late.restore(first, end + Duration::from_secs(1));
    assert_eq!(
        late.previous().map(|(_, until)| until).collect::<Vec<_>>(),
        [end]
    );
}

#[test]
fn keys_must_fit() {
    let one = pki(&spec(KeyAlgorithm::EcdsaP256));
    let other = test_chains::for_name(NAME).unwrap();
    let wrong = Chain::new(one.certificates().to_vec(), other.key().clone());
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "the key is not that of the first certificate"
    );
    let none = Chain::new(vec![], other.key().clone());
    assert_eq!(none.unwrap_err().to_string(), "there is no certificate");
    assert!(Chain::from_pem(b"nothing", b"nothing").is_err());
}

#[test]
fn a_chain_before_is_good_for_as_long_as_it_is_valid() {
    let old = for_name(NAME);
    let (digest, expires) = (old.digest(), old.valid_until());
    assert!(expires > SystemTime::now());
    let second = Duration::from_secs(1);
    let mut chains = Chains::new(vec![old]);
    chains.rotate(vec![for_name(NAME)], expires + 1000 * second);
    chains.expire(expires - second);
    assert_eq!(omitted(chains.select(None, Some(&digest))), (digest, 2));
    chains.expire(expires);
    whole(chains.select(None, Some(&digest)));
}
