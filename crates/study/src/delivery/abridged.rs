//! Abridged certificates (draft-ietf-tls-cert-abridge-02): both ends know certificates of CAs beforehand, which the
//! server sends as ids, and what is left is compressed with what certificates of theirs have in common.

use std::path::PathBuf;

use lastbyte_exchange::Exchange;
use lastbyte_sizes::{ABRIDGED, ChainSpec, Resumption};

use super::compressed::{COMPRESSED, incompressible, offer, usual};
use super::mismatch::Mismatch;
use super::{
    Certificates, Delivery, DeliveryKey, DeliveryProblem, Kind, Lengths, OnWire, OtherStack, Spec,
    Way, check_stacks, key,
};
use crate::Arm;
use crate::row::Dns;
use crate::value::ValueError;

/// What each side knows beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abridged {
    /// The server's, a file in PEM. Without one, a small list of our own that has the chain's CAs in it.
    pub list: Option<PathBuf>,
    /// The client's, if it is not the server's.
    pub client_list: Option<PathBuf>,
}

const NAME: &str = "abridged";
const LIST: &str = "abridged_list";
const CLIENT_LIST: &str = "client_abridged_list";

pub(super) static SPEC: Spec = Spec {
    names: || vec![NAME],
    keys: &[
        key!(
            Abridged,
            LIST,
            "a PEM file",
            "",
            "CAs' certificates that both sides know, and samples of end-entities; without it, a small list of our own",
            |abridged| Some(abridged.list.as_ref()?.to_str()?.to_owned()),
            |abridged, text| {
                abridged.list = Some(file(text)?);
                Ok(())
            },
        ),
        key!(
            Abridged,
            CLIENT_LIST,
            "a PEM file",
            "",
            "the client's, where it has another",
            |abridged| Some(abridged.client_list.as_ref()?.to_str()?.to_owned()),
            |abridged, text| {
                abridged.client_list = Some(file(text)?);
                Ok(())
            },
        ),
    ],
    subject: "certificates that are abridged",
    named: |name| (name == NAME).then(|| Delivery::Abridged(Abridged::default())),
    ways: &[Way {
        said: None,
        by: "by compress_certificate",
    }],
    trace: |wire, _| is_abridged(wire).then_some("got certificates abridged"),
};

fn file(text: &str) -> Result<PathBuf, ValueError> {
    match text {
        "" => Err(ValueError::NoFile),
        path => Ok(path.into()),
    }
}

fn is_abridged(wire: &Exchange) -> bool {
    let both = [
        wire.negotiated.compression,
        wire.negotiated.client_compression,
    ];
    let mut found = both.into_iter().flatten();
    found.any(|compression| compression.algorithm == ABRIDGED)
}

/// What is left of an end-entity's certificate but for its key and signature.
const LEFT: usize = 234;
/// What stands for a certificate that both know: three bytes with those around them.
const IDENTIFIER_BYTES: usize = 7;

impl Abridged {
    /// What the client knows.
    pub fn client_list(&self) -> Option<&PathBuf> {
        self.client_list.as_ref().or(self.list.as_ref())
    }
}

impl Kind for Abridged {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        self.list.iter_mut().chain(&mut self.client_list).collect()
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), DeliveryProblem> {
        match arm.resumption {
            Resumption::Full => Ok(()),
            Resumption::Ticket | Resumption::EarlyData => Err(DeliveryProblem::Resumed {
                what: " to abridge",
            }),
        }
    }

    fn check_baseline(&self, arm: &Arm, baseline: &Arm) -> Result<(), OtherStack> {
        check_stacks(arm, baseline, "is abridged")
    }

    fn words(&self) -> String {
        let list = |path: Option<&PathBuf>| {
            path.map_or("our own".to_owned(), |path| path.display().to_string())
        };
        format!(
            "abridged by {}, restored by {}",
            list(self.list.as_ref()),
            list(self.client_list())
        )
    }

    fn arithmetic(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, &'static str> {
        let usual = usual(spec);
        if (spec, self.list.as_ref(), self.client_list()) != (&usual, None, None) {
            return Err("what abridging leaves of other certificates and lists than usual");
        }
        let leaf = ChainSpec {
            intermediates: 0,
            root_key: spec.issuer_key(0),
            ca: spec.issuer_key(0),
            ..usual
        };
        Ok(vec![OnWire {
            client_hello: offer(1),
            certificate: COMPRESSED
                + incompressible(&leaf)
                + LEFT
                + IDENTIFIER_BYTES * usize::from(spec.intermediates),
            certificates: spec.certificates(),
            ..OnWire::default()
        }])
    }

    fn arithmetic_of(&self, _: Lengths<'_>) -> Result<Vec<OnWire>, &'static str> {
        Err(
            "what a dictionary of certificates alike leaves of names and extensions that only their lengths are known of \
             (delivery=elide is as near as that comes: it has the end-entity's certificate as it is)",
        )
    }

    fn check_handshake(&self, _: &Arm, wire: &Exchange, _: &Dns) -> Result<Certificates, Mismatch> {
        if is_abridged(wire) {
            Ok(Certificates::Whole)
        } else {
            Err(Mismatch::Unabridged)
        }
    }
}
