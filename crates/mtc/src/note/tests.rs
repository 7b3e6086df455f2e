#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::id::LogNumber;

/// Signs by repeating what it signs.
struct Echo(TrustAnchorId);

impl Cosigner for Echo {
    fn id(&self) -> &TrustAnchorId {
        &self.0
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(message.to_owned())
    }
}

impl CheckCosignature for Echo {
    fn check(&self, message: &[u8], signature: &[u8]) -> Signature {
        if message == signature {
            Signature::Good
        } else {
            Signature::Bad
        }
    }
}

fn log() -> LogId {
    LogId::new("32473.2".parse().unwrap(), LogNumber::new(42).unwrap()).unwrap()
}

fn note() -> String {
    let [ca, mirror] = ["32473.2", "9"].map(|id| Echo(id.parse().unwrap()));
    let signers = [&ca, &mirror].map(|cosigner| NoteSigner {
        cosigner,
        key: b"key",
    });
    sign(&log(), 1234, HashValue::empty(), UnixTime(77), &signers).unwrap()
}

fn check(checkpoint: &Checkpoint, cosigner: &str, key: &[u8]) -> Result<UnixTime, CheckpointError> {
    let id: TrustAnchorId = cosigner.parse().unwrap();
    checkpoint.check(&log(), &id, key, &Echo(id.clone()))
}

#[test]
fn a_checkpoint_is_believed_if_it_is_signed() {
    let note = note();
    assert!(note.starts_with("oid/1.3.6.1.4.1.32473.2.0.42\n1234\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n\u{2014} oid/1.3.6.1.4.1.32473.2 "));
    let checkpoint = Checkpoint::parse(&note).unwrap();
    assert_eq!(
        (checkpoint.size, checkpoint.root),
        (1234, HashValue::empty())
    );
    for cosigner in ["32473.2", "9"] {
        assert_eq!(check(&checkpoint, cosigner, b"key"), Ok(UnixTime(77)));
    }
    let unsigned = check(&checkpoint, "9", b"another").unwrap_err();
    assert_eq!(unsigned.to_string(), "the checkpoint is not signed by 9");
    check(&checkpoint, "8", b"key").unwrap_err();
    let other = LogId::new("32473.2".parse().unwrap(), LogNumber::FIRST).unwrap();
    let id: TrustAnchorId = "9".parse().unwrap();
    let error = checkpoint
        .check(&other, &id, b"key", &Echo(id.clone()))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the checkpoint is of oid/1.3.6.1.4.1.32473.2.0.42, not of oid/1.3.6.1.4.1.32473.2.0.1"
    );
}

#[test]
fn every_byte_that_is_flipped_or_cut_is_refused() {
    let note = note();
    let believed = |bytes: &[u8]| {
        let checkpoint = Checkpoint::parse(str::from_utf8(bytes).ok()?).ok()?;
        check(&checkpoint, "32473.2", b"key").ok()?;
        check(&checkpoint, "9", b"key").ok()
    };
    assert!(believed(note.as_bytes()).is_some());
    for at in 0..note.len() {
        assert_eq!(believed(&note.as_bytes()[..at]), None, "cut at {at}");
        for flip in 1..=255 {
            let mut flipped = note.clone().into_bytes();
            flipped[at] ^= flip;
            assert_eq!(believed(&flipped), None, "{at} flipped by {flip:#x}");
        }
    }
}

proptest! {
    #[test]
    fn base64_is_written_in_one_way(bytes: Vec<u8>, text in "[A-Da-d0-9+/=]{0,12}") {
        prop_assert_eq!(unbase64(&base64(&bytes)), Some(bytes));
        if let Some(bytes) = unbase64(&text) {
            prop_assert_eq!(base64(&bytes), text);
        }
    }

    #[test]
    fn any_note_is_judged(text in "(\\PC|\n){0,60}") {
        let _ = Checkpoint::parse(&text);
    }
}
