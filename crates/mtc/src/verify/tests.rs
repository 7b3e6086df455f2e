#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::cosign::{Cosignature, Cosigner, SignError};
use crate::id::Properties;
use crate::issue::{MemoryLog, made_up_key};
use crate::time::Validity;

const NOW: UnixTime = UnixTime(1_800_000_000);
const WEEK: Duration = Duration::from_secs(7 * 86_400);
const ENTRIES: u64 = 300;
const INDEX: u64 = 123;

/// Signs by hashing what it signs with its name: enough to tell right from wrong.
struct Toy(TrustAnchorId);

fn toy_signature(id: &TrustAnchorId, message: &[u8]) -> Vec<u8> {
    HashValue::of(&[id.as_bytes(), message].concat()).0.to_vec()
}

impl Cosigner for Toy {
    fn id(&self) -> &TrustAnchorId {
        &self.0
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(toy_signature(&self.0, message))
    }
}

impl CheckCosignature for Toy {
    fn check(&self, message: &[u8], signature: &[u8]) -> Signature {
        if toy_signature(&self.0, message) == signature {
            Signature::Good
        } else {
            Signature::Bad
        }
    }
}

fn id(text: &str) -> TrustAnchorId {
    text.parse().unwrap()
}

fn toy(text: &str) -> Toy {
    Toy(id(text))
}

fn log(ca: &str, number: u16) -> MemoryLog {
    let id = LogId::new(id(ca), LogNumber::new(number).unwrap()).unwrap();
    let mut log = MemoryLog::filled(id, ENTRIES, 5, Validity::of(NOW, WEEK)).unwrap();
    log.make_landmark(NOW.after(WEEK)).unwrap();
    log
}

fn key() -> Vec<u8> {
    made_up_key(5, INDEX)
}

/// Who trusts the CA 32473.1, with its cosigner and mirrors 9 and 32473.2.
fn client() -> RelyingParty {
    let mut authority = TrustedAuthority::new(id("32473.1"));
    for cosigner in ["32473.1", "9", "32473.2"] {
        authority.cosigner(id(cosigner), Box::new(toy(cosigner)));
    }
    authority.require(Group {
        required: 1,
        members: vec![id("9"), id("32473.2")],
    });
    let mut client = RelyingParty::new();
    client.trust(authority);
    client
}

/// One who has the landmarks, too.
fn up_to_date(log: &MemoryLog) -> RelyingParty {
    let mut client = client();
    let authority = client.authority(&id("32473.1")).unwrap();
    for (subtree, hash) in log.landmark_subtrees(1).unwrap() {
        authority.trust(log.id().number(), subtree, hash);
    }
    client
}

fn standalone(log: &MemoryLog, cosigners: &[&str]) -> Vec<u8> {
    let cosigners: Vec<Toy> = cosigners.iter().map(|id| toy(id)).collect();
    let cosigners: Vec<&dyn Cosigner> = cosigners.iter().map(|one| one as &dyn Cosigner).collect();
    log.standalone(INDEX, &key(), 100..200, &cosigners).unwrap()
}

fn refusal(client: &RelyingParty, certificate: &[u8]) -> Refusal {
    client.verify(certificate, NOW).map(|_| ()).unwrap_err()
}

#[test]
fn either_kind_is_accepted_by_who_can() {
    let log = log("32473.1", 1);
    let relative = log.landmark_relative(INDEX, &key()).unwrap();
    let with_landmarks = up_to_date(&log);
    let verified = with_landmarks.verify(&relative, NOW).unwrap();
    assert!(matches!(verified.trusted, Trusted::Subtree(_)));
    assert_eq!(verified.certificate.key(), key());
    assert_eq!(
        refusal(&client(), &relative).to_string(),
        "[0, 256) of log 1 is not trusted, and nobody vouches for it"
    );
    let standalone = standalone(&log, &["32473.2", "32473.1"]);
    for client in [client(), up_to_date(&log)] {
        let verified = client.verify(&standalone, NOW).unwrap();
        let both = vec![id("32473.1"), id("32473.2")];
        assert_eq!(verified.trusted, Trusted::Cosigned(both));
    }
}

#[test]
fn cosigners_are_counted_by_group_and_unknown_ones_passed_over() {
    let log = log("32473.1", 1);
    client()
        .verify(&standalone(&log, &["9", "32473.1", "7"]), NOW)
        .unwrap();
    let few = |cosigners: &[&str]| refusal(&client(), &standalone(&log, cosigners)).to_string();
    assert_eq!(
        few(&["32473.1", "7", "8"]),
        "0 of the 1 cosigners needed among 9, 32473.2 vouch for it"
    );
    assert_eq!(
        few(&["9", "32473.2"]),
        "0 of the 1 cosigners needed among 32473.1 vouch for it"
    );
    let two = Group {
        required: 2,
        members: vec![id("9"), id("32473.2")],
    };
    let mut client = client();
    client.authority(&id("32473.1")).unwrap().require(two);
    refusal(&client, &standalone(&log, &["9", "32473.1"]));
    client
        .verify(&standalone(&log, &["9", "32473.2", "32473.1"]), NOW)
        .unwrap();
}

/// Changes a certificate's proof, and writes the certificate anew.
fn with_proof(certificate: &[u8], change: impl FnOnce(&mut crate::Proof)) -> Vec<u8> {
    let read = Certificate::parse(certificate).unwrap();
    let mut proof = read.proof.clone();
    change(&mut proof);
    let log = log("32473.1", 1);
    let entry = crate::Entry::parse(log.entry(INDEX).unwrap())
        .unwrap()
        .unwrap();
    Certificate::encode(&entry, &key(), read.log, read.index, &proof).unwrap()
}

#[test]
fn made_up_cosigners_without_signatures_are_passed_over() {
    let log = log("32473.1", 1);
    let good = standalone(&log, &["9", "32473.1"]);
    for made_up in [vec![0x80], vec![0xff; 255], vec![1; 33]] {
        let greased = with_proof(&good, |proof| {
            proof.cosignatures.push(Cosignature {
                cosigner: made_up,
                signature: Vec::new(),
            });
            (proof.cosignatures)
                .sort_by(|one, other| crate::id::order(&one.cosigner, &other.cosigner));
        });
        client().verify(&greased, NOW).unwrap();
    }
}

#[test]
fn cosigners_that_are_twice_or_out_of_order_are_refused() {
    let log = log("32473.1", 1);
    let good = standalone(&log, &["9", "32473.1", "32473.2"]);
    let encoded = |proof: &crate::Proof| {
        let mut out = Vec::new();
        for one in &proof.cosignatures {
            out.push(one.cosigner.len() as u8);
            out.extend(&one.cosigner);
            out.extend((one.signature.len() as u16).to_be_bytes());
            out.extend(&one.signature);
        }
        out
    };
    let read = Certificate::parse(&good).unwrap();
    let before = encoded(&read.proof);
    let at = good
        .windows(before.len())
        .position(|part| part == before)
        .unwrap();
    for (order, message) in [
        ([1, 0, 2], "its proof: cosigners are not in order"),
        ([0, 2, 1], "its proof: cosigners are not in order"),
    ] {
        let mut proof = read.proof.clone();
        proof.cosignatures = order
            .map(|place| read.proof.cosignatures[place].clone())
            .to_vec();
        let mut wrong = good.clone();
        wrong[at..at + before.len()].copy_from_slice(&encoded(&proof));
        assert_eq!(refusal(&client(), &wrong).to_string(), message);
        proof.to_bytes().unwrap_err();
    }
    let mut twice = good.clone();
    // The last cosigner's name becomes that of the one before.
    let last = encoded(&read.proof).len() - read.proof.cosignatures[2].signature.len() - 3;
    assert_eq!(twice[at + last], 2);
    twice[at + last] = 1;
    assert_eq!(
        refusal(&client(), &twice).to_string(),
        "its proof: a cosigner is there twice"
    );
}

#[test]
fn a_proof_for_another_tree_log_or_entry_is_refused() {
    let log_1 = log("32473.1", 1);
    let relative = log_1.landmark_relative(INDEX, &key()).unwrap();
    let client = up_to_date(&log_1);
    let other_index = with_proof(&relative, |proof| proof.path.reverse());
    assert!(matches!(
        refusal(&client, &other_index),
        Refusal::OtherSubtree { .. }
    ));
    let shorter = with_proof(&relative, |proof| {
        proof.path.pop();
    });
    assert!(matches!(
        refusal(&client, &shorter),
        Refusal::Proof(ProofError::Short { .. })
    ));
    let longer = with_proof(&relative, |proof| proof.path.push(HashValue::empty()));
    assert!(matches!(
        refusal(&client, &longer),
        Refusal::Proof(ProofError::Long { .. })
    ));
    let elsewhere = with_proof(&relative, |proof| {
        proof.subtree = Subtree::new(256, 300).unwrap()
    });
    assert!(matches!(
        refusal(&client, &elsewhere),
        Refusal::Proof(ProofError::Outside { .. })
    ));
    // The same entries, as log 2: another serial number, the same hashes.
    let of_log_2 = log("32473.1", 2).landmark_relative(INDEX, &key()).unwrap();
    assert!(matches!(
        refusal(&client, &of_log_2),
        Refusal::UnknownSubtree { .. }
    ));
    // Cosignatures name the log, so those of log 1 are none of log 2.
    let good = Certificate::parse(&standalone(&log_1, &["9", "32473.1"]))
        .unwrap()
        .proof;
    let entry = log_1.entry(INDEX).unwrap();
    let entry = crate::Entry::parse(entry).unwrap().unwrap();
    let second = LogNumber::new(2).unwrap();
    let moved = Certificate::encode(&entry, &key(), second, INDEX, &good).unwrap();
    assert_eq!(refusal(&client, &moved), Refusal::Cosignature(id("9")));
    // The same certificates of another CA.
    let of_other = log("32473.7", 1).landmark_relative(INDEX, &key()).unwrap();
    assert_eq!(
        refusal(&client, &of_other).to_string(),
        "the CA 32473.7 is not trusted"
    );
}

#[test]
fn times_and_serial_numbers_are_checked() {
    let log = log("32473.1", 1);
    let relative = log.landmark_relative(INDEX, &key()).unwrap();
    let mut client = up_to_date(&log);
    let at = |client: &RelyingParty, time| client.verify(&relative, UnixTime(time)).map(|_| ());
    at(&client, NOW.0).unwrap();
    at(&client, NOW.0 + WEEK.as_secs() - 1).unwrap();
    let early = at(&client, NOW.0 - 1).unwrap_err();
    assert_eq!(
        early.to_string(),
        "it holds only from 2027-01-15T08:00:00Z, and it is 2027-01-15T07:59:59Z"
    );
    let late = at(&client, NOW.0 + WEEK.as_secs()).unwrap_err();
    assert_eq!(
        late.to_string(),
        "it held up to 2027-01-22T07:59:59Z, and it is 2027-01-22T08:00:00Z"
    );
    let serial = (1 << 48) + INDEX;
    let authority = client.authority(&id("32473.1")).unwrap();
    authority.revoke(serial..=serial);
    assert_eq!(at(&client, NOW.0).unwrap_err(), Refusal::Serial(serial));
    let certificate = CaCertificate {
        id: id("32473.1"),
        key: key(),
        algorithm: crate::SignatureAlgorithm::MlDsa44,
        serials: (1 << 48) + INDEX + 1..=u64::MAX,
        validity: Validity::of(NOW, WEEK),
        prefix_url: None,
    };
    client.trust(TrustedAuthority::of(&certificate, Box::new(toy("32473.1"))));
    assert_eq!(at(&client, NOW.0).unwrap_err(), Refusal::Serial(serial));
}

#[test]
fn landmarks_that_are_of_no_use_any_more_are_forgotten() {
    let log = log("32473.1", 1);
    let relative = log.landmark_relative(INDEX, &key()).unwrap();
    let mut client = up_to_date(&log);
    let authority = client.authority(&id("32473.1")).unwrap();
    let number = log.id().number();
    authority.keep_active(number, log.landmarks(), NOW.after(WEEK), 100);
    assert_eq!(authority.subtrees(), 2);
    authority.keep_active(
        number,
        log.landmarks(),
        UnixTime(NOW.after(WEEK).0 + 1),
        100,
    );
    assert_eq!(authority.subtrees(), 0);
    assert!(matches!(
        refusal(&client, &relative),
        Refusal::UnknownSubtree { .. }
    ));
}

#[test]
fn a_subtree_is_trusted_for_a_proof_of_consistency() {
    let log = log("32473.1", 1);
    let mut client = client();
    let authority = client.authority(&id("32473.1")).unwrap();
    let root = log.tree().root().unwrap();
    for (subtree, hash) in log.landmark_subtrees(1).unwrap() {
        let proof = subtree.consistency_proof(ENTRIES, log.tree()).unwrap();
        let number = log.id().number();
        let mut trust =
            |hash| authority.trust_part(number, (subtree, hash), (ENTRIES, root), &proof);
        trust(HashValue::empty()).unwrap_err();
        trust(hash).unwrap();
    }
    let relative = log.landmark_relative(INDEX, &key()).unwrap();
    client.verify(&relative, NOW).unwrap();
}

/// The same certificate, with the algorithm of another draft in both places.
fn of_draft(certificate: &[u8], number: u8) -> Vec<u8> {
    let text = hex::encode(certificate);
    let [ours, theirs] = [
        "300a06082b06010505070643".to_owned(),
        format!("300c060a2b0601040182da4b2f{number:02x}"),
    ];
    let mut parts = text.split(&ours);
    let [head, body, proof] = [(); 3].map(|()| hex::decode(parts.next().unwrap()).unwrap());
    let algorithm = hex::decode(theirs).unwrap();
    // Both outer lengths have two bytes.
    let signed = [&head[8..], &algorithm, &body].concat();
    let header = |length: usize| [&[0x30, 0x82][..], &(length as u16).to_be_bytes()].concat();
    let signed = [header(signed.len()), signed].concat();
    let all = [signed, algorithm, proof].concat();
    [header(all.len()), all].concat()
}

#[test]
fn certificates_of_other_drafts_are_refused_by_name() {
    let log = log("32473.1", 1);
    let good = log.landmark_relative(INDEX, &key()).unwrap();
    for (number, draft) in [
        (0, "draft-ietf-plants-merkle-tree-certs-06 or older"),
        (1, "draft-ietf-plants-merkle-tree-certs-05 or older"),
        (4, "draft-ietf-plants-merkle-tree-certs-06"),
        (
            5,
            "the text between draft-ietf-plants-merkle-tree-certs-06 and -07",
        ),
    ] {
        let message = refusal(&up_to_date(&log), &of_draft(&good, number)).to_string();
        assert_eq!(
            message,
            format!("it is of {draft}: only draft-ietf-plants-merkle-tree-certs-07 is known")
        );
    }
    let message = refusal(&up_to_date(&log), &of_draft(&good, 9)).to_string();
    assert_eq!(
        message,
        "its signature is none of a Merkle Tree Certificate"
    );
}

#[test]
fn every_byte_that_is_flipped_or_cut_is_refused() {
    let log = log("32473.1", 1);
    let client = up_to_date(&log);
    for certificate in [
        log.landmark_relative(INDEX, &key()).unwrap(),
        standalone(&log, &["9", "32473.1"]),
    ] {
        client.verify(&certificate, NOW).unwrap();
        for at in 0..certificate.len() {
            refusal(&client, &certificate[..at]);
            for flip in [1, 0x80, 0xff] {
                let mut flipped = certificate.clone();
                flipped[at] ^= flip;
                refusal(&client, &flipped);
            }
        }
        refusal(&client, &[&certificate[..], &[0]].concat());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes: Vec<u8>) {
        prop_assert!(client().verify(&bytes, NOW).is_err());
        let _ = crate::Proof::parse(&bytes);
        let _ = CaCertificate::parse(&bytes);
        let _ = crate::Entry::parse(&bytes).is_ok();
        let _ = Properties::from_bytes(&bytes);
    }

    #[test]
    fn any_changes_are_refused(changes in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..5)) {
        let log = log("32473.1", 1);
        let certificate = standalone(&log, &["9", "32473.1"]);
        let mut changed = certificate.clone();
        for (at, flip) in changes {
            let at = at.index(changed.len());
            changed[at] ^= flip;
        }
        if changed != certificate {
            prop_assert!(up_to_date(&log).verify(&changed, NOW).is_err());
        }
    }

    /// A proof is read as it was written, and as nothing else.
    #[test]
    fn proofs_survive(start in 0_u64..1 << 20, level in 0_u32..20, hashes in 0_u8..60, cosigners in 0_u8..4) {
        let proof = crate::Proof {
            extensions: Vec::new(),
            subtree: Subtree::new(start << level, (start << level) + (1 << level)).unwrap(),
            path: (0..hashes).map(|hash| HashValue::of(&[hash])).collect(),
            cosignatures: (0..cosigners).map(|cosigner| Cosignature {
                cosigner: vec![cosigner],
                signature: vec![cosigner; 300 * usize::from(cosigner)],
            }).collect(),
        };
        let bytes = proof.to_bytes().unwrap();
        prop_assert_eq!(crate::Proof::parse(&bytes).unwrap(), proof);
        for cut in 0..bytes.len().min(200) {
            prop_assert!(crate::Proof::parse(&bytes[..cut]).is_err());
        }
    }
}
