//! Intermediates that a server leaves out because the client says that it has them: by a flag
//! (draft-kampanakis-tls-scas-latest-03), or by the id of one (draft-ietf-tls-trust-anchor-ids-06).

use lastbyte_exchange::{ChainSignal, Exchange};
use lastbyte_sizes::{
    ChainSpec, ElidedHandshake, Elision, Fallback, Held, Message, PaddedCertificate, Resumption,
    Signal,
};

use super::mismatch::Mismatch;
use super::{
    Certificates, Delivery, DeliveryKey, DeliveryProblem, Kind, Lengths, OnWire, OtherStack, Spec,
    Way, check_stacks, key,
};
use crate::row::Dns;
use crate::value::{ValueError, one_of};
use crate::{Arm, ArmChain};

/// What the client says, and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elided(pub Elision);

const NAME: &str = "elide";
const SIGNAL: &str = "signal";
const CLIENT: &str = "client";
const FALLBACK: &str = "fallback";

pub(super) static SPEC: Spec = Spec {
    names: || vec![NAME],
    keys: &[
        key!(
            Elided,
            SIGNAL,
            "`tls-flags` or `trust-anchors`",
            "tls-flags",
            "how a client says which intermediates it has",
            |elided| Some(elided.0.signal.to_string()),
            |elided, text| {
                elided.0.signal = one_of(text, Signal::ALL.map(Signal::name))?;
                Ok(())
            },
        ),
        key!(
            Elided,
            CLIENT,
            "`current` or `stale`",
            "current",
            "whether it has the server's intermediates, or those of before",
            |elided| Some(elided.0.client.to_string()),
            |elided, text| {
                elided.0.client = one_of(text, Held::ALL.map(Held::name))?;
                Ok(())
            },
        ),
        key!(
            Elided,
            FALLBACK,
            "`whole` or `short`",
            "whole",
            "what is sent where the server has no path for the anchors that were named",
            |elided| Some(elided.0.fallback.to_string()),
            |elided, text| {
                elided.0.fallback = one_of(text, Fallback::ALL.map(Fallback::name))?;
                Ok(())
            },
        ),
    ],
    subject: "intermediates that a client has",
    named: |name| (name == NAME).then(|| Delivery::Elided(Elided::default())),
    ways: &[
        Way {
            said: Some((SIGNAL, "tls-flags")),
            by: "by tls_flags",
        },
        Way {
            said: Some((SIGNAL, "trust-anchors")),
            by: "by trust_anchors",
        },
    ],
    trace: |wire, _| match wire.negotiated.signal {
        ChainSignal::TlsFlags => Some("said that it has intermediates"),
        // Of anchors, others speak, too.
        ChainSignal::None | ChainSignal::TrustAnchors | ChainSignal::Anchored => None,
    },
};

impl Elided {
    /// What is said in a handshake.
    fn signal(&self, handshake: &ElidedHandshake) -> ChainSignal {
        match (self.0.signal, handshake) {
            (
                _,
                ElidedHandshake {
                    client_hello: 0, ..
                },
            ) => ChainSignal::None,
            (Signal::TlsFlags, _) => ChainSignal::TlsFlags,
            (Signal::TrustAnchors, ElidedHandshake { certificate: 0, .. }) => {
                ChainSignal::TrustAnchors
            }
            (Signal::TrustAnchors, _) => ChainSignal::Anchored,
        }
    }

    /// What its handshakes put on the wire of certificates of these lengths.
    fn on_wire(&self, intermediates: usize, lengths: &[usize]) -> Vec<OnWire> {
        let handshakes = self.0.handshakes(intermediates);
        let on_wire = handshakes.iter().map(|handshake| OnWire {
            client_hello: handshake.client_hello,
            encrypted_extensions: handshake.encrypted_extensions,
            certificate: handshake.certificate_bytes(intermediates, lengths),
            certificates: handshake.sent.count(intermediates, lengths.len()),
            signal: self.signal(handshake),
            ..OnWire::default()
        });
        on_wire.collect()
    }

    fn check_signal(&self, wire: &Exchange) -> Result<(), Mismatch> {
        // What is said depends on no chain.
        let last = self.0.handshakes(1).pop().unwrap_or_default();
        let expected = self.signal(&last);
        if wire.negotiated.signal == expected {
            Ok(())
        } else {
            Err(Mismatch::Signal {
                said: wire.negotiated.signal,
                of: "intermediates that its client has",
                asked: expected,
            })
        }
    }
}

impl Kind for Elided {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), DeliveryProblem> {
        let problem = match (&arm.chain, self.0) {
            (ArmChain::Made(spec), _) if spec.intermediates == 0 => DeliveryProblem::NoIntermediate,
            (
                ArmChain::Made(ChainSpec {
                    certificate_bytes: Some(_),
                    padding: PaddedCertificate::Last,
                    ..
                }),
                Elision {
                    client: Held::Current,
                    ..
                },
            ) => DeliveryProblem::PaddingLeftOut,
            (
                _,
                Elision {
                    signal: Signal::TlsFlags,
                    fallback: Fallback::Short,
                    ..
                },
            ) => DeliveryProblem::NoFallback,
            _ if arm.resumption != Resumption::Full => DeliveryProblem::Resumed {
                what: " to leave out",
            },
            _ => return Ok(()),
        };
        Err(problem)
    }

    fn check_baseline(&self, arm: &Arm, baseline: &Arm) -> Result<(), OtherStack> {
        check_stacks(arm, baseline, "leaves intermediates out")
    }

    fn words(&self) -> String {
        let Elision {
            signal,
            client,
            fallback,
        } = self.0;
        format!("without intermediates by {signal}, client {client}, else {fallback}")
    }

    fn names_anchors(&self) -> bool {
        self.0.signal == Signal::TrustAnchors
    }

    fn retries(&self) -> bool {
        self.0.retries()
    }

    fn arithmetic(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, &'static str> {
        let lengths = spec.certificate_lengths();
        let lengths = lengths.map_err(|_| "the size of a chain that can't be made")?;
        Ok(self.on_wire(usize::from(spec.intermediates), &lengths))
    }

    fn arithmetic_of(&self, chain: Lengths<'_>) -> Result<Vec<OnWire>, &'static str> {
        match chain.certificates {
            [_, intermediates @ ..] if !intermediates.is_empty() => {
                Ok(self.on_wire(intermediates.len(), chain.certificates))
            }
            _ => Err("to leave out intermediates of a chain that has none"),
        }
    }

    fn check_handshake(
        &self,
        arm: &Arm,
        wire: &Exchange,
        _: &Dns,
    ) -> Result<Certificates, Mismatch> {
        self.check_signal(wire)?;
        let ArmChain::Made(spec) = &arm.chain else {
            if let Held::Current = self.0.client {
                Mismatch::check_count(wire, 1)?;
            }
            return Ok(Certificates::Rest);
        };
        let handshakes = self.arithmetic(spec).map_err(Mismatch::NoArithmetic)?;
        let Some(expected) = handshakes.last() else {
            return Ok(Certificates::Whole);
        };
        Mismatch::check_count(wire, expected.certificates)?;
        let bytes = wire.bytes(Message::Certificate) as usize;
        if bytes != expected.certificate {
            return Err(Mismatch::CertificateBytes {
                got: bytes,
                asked: expected.certificate,
            });
        }
        Ok(Certificates::Rest)
    }
}
