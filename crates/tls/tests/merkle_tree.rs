//! Merkle Tree Certificates in handshakes: who gets which, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_mtc::openssl::SigningKey;
use lastbyte_mtc::{
    Cosigner, Group as Cosigners, LogId, LogNumber, RelyingParty, Request, Sample,
    SignatureAlgorithm, TrustAnchorId, TrustedAuthority, UnixTime, Validity,
};
use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm};
use lastbyte_tls::merkle_tree::{Certified, MerkleTree, Sides};
use lastbyte_tls::observer::Message;
use lastbyte_tls::{
    Delivery, Group, Retry, Stack, StackName, TlsConfig, handshake_between, handshake_in_memory,
    stack,
};

use crate::common::chain_of;

/// A CA, its log with a landmark, and a server in it.
struct Issued {
    chain: Chain,
    landmark: Vec<u8>,
    standalone: Vec<u8>,
    sample: Sample,
    ca: SigningKey,
    now: UnixTime,
}

fn issued(host: Option<&str>) -> Issued {
    let chain = chain_of(&ChainSpec::new(KeyAlgorithm::EcdsaP256));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = UnixTime(now.as_secs());
    let week = Duration::from_secs(7 * 86_400);
    let log = LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap();
    let names = [host.unwrap_or(chain.server_name())];
    let key = chain.key().public_key_to_der().unwrap();
    let request = Request {
        names: &names,
        key: &key,
        validity: Validity::of(now, week),
    };
    let mut sample = Sample::new(log.clone(), &request, 700, 1000, 1).unwrap();
    sample.make_landmark(1000, now.after(week)).unwrap();
    let ca = SigningKey::generate(log.ca().clone(), SignatureAlgorithm::MlDsa44).unwrap();
    Issued {
        landmark: sample.landmark_relative().unwrap(),
        standalone: sample
            .standalone(696..704, &[&ca as &dyn Cosigner])
            .unwrap(),
        chain,
        sample,
        ca,
        now,
    }
}

fn id(text: &str) -> TrustAnchorId {
    text.parse().unwrap()
}

impl Issued {
    /// What clients accept that have the landmark, or not.
    fn relying_party(&self, has_landmark: bool) -> RelyingParty {
        let log = self.sample.log();
        let mut authority = TrustedAuthority::new(log.ca().clone());
        authority.cosigner(log.ca().clone(), Box::new(self.ca.checker().unwrap()));
        authority.require(Cosigners::all([log.ca().clone()]));
        for (subtree, hash) in self.sample.landmark_subtrees(1).unwrap() {
            if has_landmark {
                authority.trust(log.number(), subtree, hash);
            }
        }
        let mut client = RelyingParty::new();
        client.trust(authority);
        client
    }

    fn tree(&self, named: Option<&[&str]>, has_landmark: bool) -> MerkleTree {
        let landmark = Certified {
            id: id("32473.1.1.1.1"),
            properties: self.sample.landmark_properties().unwrap(),
            certificate: self.landmark.clone(),
        };
        let standalone = Certified {
            id: id("32473.1"),
            properties: self.sample.standalone_properties(),
            certificate: self.standalone.clone(),
        };
        MerkleTree::new(Sides {
            certificates: vec![landmark, standalone],
            named: named.map(|named| named.iter().map(|text| id(text)).collect()),
            trusted: if has_landmark {
                vec![id("32473.1.1.1.1"), id("32473.1")]
            } else {
                vec![id("32473.1")]
            },
            relying_party: self.relying_party(has_landmark),
            now: self.now,
        })
    }

    fn stack(&self, name: StackName, tree: MerkleTree) -> Box<dyn Stack> {
        stack(&TlsConfig {
            delivery: Delivery::MerkleTree(tree),
            client: name,
            server: name,
            ..TlsConfig::new(Group::X25519, &self.chain)
        })
        .unwrap()
    }

    /// Bytes of the Certificate message of a handshake, if it succeeds.
    fn certificate(&self, stack: &dyn Stack) -> Option<usize> {
        let handshake = handshake_in_memory(stack).ok()?;
        let seen = handshake.observer.observe(&handshake.client.key_log());
        seen.bytes(Message::Certificate)
    }
}

/// Bytes of a Certificate message with one certificate and, if its path was asked for, the
/// extension that says so.
fn message(certificate: &[u8], is_anchored: bool) -> Option<usize> {
    let extension = if is_anchored { 4 } else { 0 };
    Some(4 + 1 + 3 + 3 + certificate.len() + 2 + extension)
}

#[test]
fn who_has_the_landmark_gets_what_is_relative_to_it() {
    let issued = issued(None);
    let of = |named: &[&str], has_landmark| {
        let tree = issued.tree(Some(named), has_landmark);
        issued.certificate(issued.stack(StackName::OpenSsl, tree).as_ref())
    };
    let (landmark, standalone) = (&issued.landmark, &issued.standalone);
    // Landmark 1 and later ones have it.
    assert_eq!(of(&["32473.1.2.1.1"], true), message(landmark, true));
    assert_eq!(of(&["32473.1.2.1.9"], true), message(landmark, true));
    // Landmark 0 has not, and another log's says nothing of this one.
    assert_eq!(of(&["32473.1.2.1.0"], false), message(standalone, true));
    assert_eq!(of(&["32473.1.2.2.9"], false), message(standalone, true));
    assert_eq!(of(&["32473.1"], false), message(standalone, true));
    // Who is given what it can't verify does not go on.
    assert_eq!(of(&["32473.1.2.1.1"], false), None);
}

#[test]
fn who_names_nothing_tries_once_more() {
    let issued = issued(None);
    for (has_landmark, retry, certificate) in [
        (true, "32473.1.1.1.1", &issued.landmark),
        (false, "32473.1", &issued.standalone),
    ] {
        let stack = issued.stack(StackName::OpenSsl, issued.tree(Some(&[]), has_landmark));
        let failed = lastbyte_tls::first_attempt(stack.as_ref())
            .unwrap()
            .unwrap();
        assert_eq!(failed.retry, Retry::Anchor(id(retry)));
        let client = stack.retrying_client(&failed.retry).unwrap();
        let handshake = handshake_between(client, stack.server().unwrap()).unwrap();
        let seen = handshake.observer.observe(&handshake.client.key_log());
        assert_eq!(seen.bytes(Message::Certificate), message(certificate, true));
    }
}

#[test]
fn a_name_that_is_not_the_servers_is_refused() {
    let issued = issued(Some("other.example"));
    for name in stacks() {
        let stack = issued.stack(name, issued.tree(None, true));
        assert_eq!(issued.certificate(stack.as_ref()), None, "{name}");
    }
}

#[test]
fn a_certificate_of_yesterday_is_refused() {
    let mut issued = issued(None);
    issued.now = UnixTime(issued.now.0 + 8 * 86_400);
    for name in stacks() {
        let stack = issued.stack(name, issued.tree(None, true));
        assert_eq!(issued.certificate(stack.as_ref()), None, "{name}");
    }
}

#[test]
fn no_bit_of_it_can_be_another_one() {
    let whole = issued(None);
    for name in stacks() {
        let stack = whole.stack(name, whole.tree(None, true));
        assert_eq!(
            whole.certificate(stack.as_ref()),
            message(&whole.landmark, false)
        );
    }
    for place in (0..whole.landmark.len()).step_by(11) {
        let mut flipped = whole.landmark.clone();
        flipped[place] ^= 1 << (place % 8);
        for name in stacks() {
            let tree = MerkleTree::new(Sides {
                relying_party: whole.relying_party(true),
                certificates: vec![Certified {
                    id: id("32473.1.1.1.1"),
                    properties: whole.sample.landmark_properties().unwrap(),
                    certificate: flipped.clone(),
                }],
                named: None,
                trusted: Vec::new(),
                now: whole.now,
            });
            let stack = stack(&TlsConfig {
                delivery: Delivery::MerkleTree(tree),
                client: name,
                server: name,
                ..TlsConfig::new(Group::X25519, &whole.chain)
            });
            let accepted = stack
                .ok()
                .and_then(|stack| whole.certificate(stack.as_ref()));
            assert_eq!(accepted, None, "{name}: bit {} of byte {place}", place % 8);
        }
    }
}

/// Stacks that can verify them.
fn stacks() -> Vec<StackName> {
    if cfg!(feature = "rustls") {
        vec![StackName::OpenSsl, StackName::Rustls]
    } else {
        vec![StackName::OpenSsl]
    }
}
