//! How the client gets the server's chain: whole from the server, or another way, of which each has a file
//! here: its keys, what goes with them, and what a row must show.

mod abridged;
mod compressed;
mod elided;
mod memo;
mod mismatch;
mod mtc;
mod pqtls_ad;
mod problem;

pub use abridged::Abridged;
pub use compressed::{Compressed, LEFT_WITHIN as COMPRESSED_WITHIN};
pub use elided::Elided;
pub use mismatch::Mismatch;
pub use mtc::{Cosigners, Form, Hello, Mtc, MtcPath};
pub use pqtls_ad::{DnsCache, EndEntity, PqtlsAd};
pub use problem::{DeliveryProblem, MtcProblem, OtherStack};

use std::path::PathBuf;

use lastbyte_exchange::{ChainSignal, Exchange, HelloDigest};
use lastbyte_sizes::{ChainSpec, framing};

use super::Arm;
use super::value::ValueError;
use crate::row::Dns;

/// Where an arm names a delivery.
struct Spec {
    /// The values of `delivery=` that ask for it, the usual one first.
    names: fn() -> Vec<&'static str>,
    /// The keys of an arm that are its own.
    keys: &'static [DeliveryKey],
    /// What those keys are for, as in "from= is for …".
    subject: &'static str,
    /// As usual, under one of its names.
    named: fn(&str) -> Option<Delivery>,
    /// How the two sides come to it.
    ways: &'static [Way],
    /// What shows that a handshake was of this delivery, if it was: what its connection did.
    trace: fn(&Exchange, &Dns) -> Option<&'static str>,
}

/// A key of a delivery: what it is called, what it takes and does, and how it is written and set.
pub(super) struct DeliveryKey {
    pub(super) name: &'static str,
    /// What it can be, for readers.
    pub(super) takes: &'static str,
    /// What a delivery has without it; empty where `doc` says that in words.
    pub(super) usual: &'static str,
    /// What it does, for readers.
    pub(super) doc: &'static str,
    /// As a delivery has it; none of another delivery, and where that is said by leaving the key out.
    get: fn(&Delivery) -> Option<String>,
    set: fn(&mut Delivery, &str) -> Result<(), ValueError>,
}

/// How a key of one delivery is written and set.
macro_rules! key {
    ($delivery:ident, $name:expr, $takes:expr, $usual:expr, $doc:expr, $get:expr, $set:expr $(,)?) => {
        DeliveryKey {
            name: $name,
            takes: $takes,
            usual: $usual,
            doc: $doc,
            get: |delivery| {
                let get: fn(&$delivery) -> Option<String> = $get;
                match delivery {
                    Delivery::$delivery(own) => get(own),
                    _ => None,
                }
            },
            set: |delivery, text| {
                let set: fn(&mut $delivery, &str) -> Result<(), ValueError> = $set;
                match delivery {
                    Delivery::$delivery(own) => set(own, text),
                    _ => Ok(()),
                }
            },
        }
    };
}
use key;

/// How the two sides of a handshake come to a delivery: what not every stack can do.
struct Way {
    /// The key that asks for it, with its value, where there are others.
    said: Option<(&'static str, &'static str)>,
    /// In words, as in "negotiated by …".
    by: &'static str,
}

/// What a delivery says of itself.
trait Kind {
    /// The value of `delivery=`.
    fn name(&self) -> &'static str;

    fn spec(&self) -> &'static Spec;

    /// The files that it names.
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }

    /// Whether an arm can have all that it asks for besides.
    ///
    /// # Errors
    ///
    /// Why it can't, with the hint.
    fn check_arm(&self, arm: &Arm) -> Result<(), DeliveryProblem>;

    /// Whether an arm that delivers like this can be compared with a baseline.
    ///
    /// # Errors
    ///
    /// Why it can't, with the hint.
    fn check_baseline(&self, arm: &Arm, baseline: &Arm) -> Result<(), OtherStack> {
        let _ = (arm, baseline);
        Ok(())
    }

    /// What its handshakes depend on, in words: those of one cost what those of another with the same words do.
    fn words(&self) -> String;

    /// Whether clients ask DNS.
    fn asks_dns(&self) -> bool {
        false
    }

    /// Whether clients name anchors that they trust, or could name some.
    fn names_anchors(&self) -> bool {
        false
    }

    /// Whether clients fail at first, and connect once more.
    fn retries(&self) -> bool {
        false
    }

    /// Whether one certificate comes alone, whose proof is in the place of intermediates and timestamps.
    fn is_alone(&self) -> bool {
        false
    }

    /// What its handshakes put on the wire of such a chain, by arithmetic: each of them, the last of which succeeds.
    ///
    /// # Errors
    ///
    /// What is no arithmetic, as in "… is no arithmetic".
    fn arithmetic(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, &'static str>;

    /// The same of a chain that is known by its sizes alone.
    ///
    /// # Errors
    ///
    /// As for [`Kind::arithmetic`].
    fn arithmetic_of(&self, chain: Lengths<'_>) -> Result<Vec<OnWire>, &'static str> {
        let _ = chain;
        Err("what this delivery makes of a chain of which only the sizes are known")
    }

    /// Whether a handshake of an arm did what this says, and which certificates it shows then.
    ///
    /// # Errors
    ///
    /// The end of a sentence that begins with the connection.
    fn check_handshake(
        &self,
        arm: &Arm,
        wire: &Exchange,
        dns: &Dns,
    ) -> Result<Certificates, Mismatch>;
}

/// A chain that is known by its sizes alone.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a> {
    /// The DER of each certificate, as they are sent.
    pub certificates: &'a [usize],
    /// One of the laboratory's with the end-entity's key and as many names, if those are known.
    pub alike: Option<&'a ChainSpec>,
    /// What brotli leaves of its Certificate message, without headers, if that is known.
    pub brotli: Option<usize>,
}

impl Lengths<'_> {
    fn whole(self) -> OnWire {
        OnWire {
            certificate: framing::certificate_message(self.certificates.iter().copied()),
            certificates: self.certificates.len(),
            ..OnWire::default()
        }
    }

    /// Without those above the end-entity's.
    fn end_entity(self) -> OnWire {
        Lengths {
            certificates: self.certificates.get(..1).unwrap_or_default(),
            ..self
        }
        .whole()
    }
}

/// What a delivery makes of a handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnWire {
    /// Bytes more of the ClientHello.
    pub client_hello: usize,
    /// Bytes more of the ServerHello.
    pub server_hello: usize,
    /// Bytes more of the EncryptedExtensions.
    pub encrypted_extensions: usize,
    /// Bytes of the Certificate message.
    pub certificate: usize,
    /// Certificates in it.
    pub certificates: usize,
    /// What is said of intermediates that the client has.
    pub signal: ChainSignal,
    /// What the hellos say of certificates from DNS.
    pub hello_digest: HelloDigest,
}

impl OnWire {
    /// The chain as it is, and nothing said of it.
    fn whole(spec: &ChainSpec) -> OnWire {
        OnWire {
            certificate: spec
                .certificate_bytes
                .unwrap_or_else(|| spec.unpadded_bytes()),
            certificates: spec.certificates(),
            ..OnWire::default()
        }
    }
}

/// Which certificates a handshake shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// Those of the arm's chain, as the server has them.
    Whole,
    /// What is left of them, and was checked.
    Rest,
}

macro_rules! deliveries {
    ($($(#[$doc:meta])* $delivery:ident = $module:ident;)+) => {
        /// How a client gets a server's chain.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub enum Delivery {
            /// Whole, from the server.
            #[default]
            Full,
            $($(#[$doc])* $delivery($delivery),)+
        }

        static SPECS: &[&Spec] = &[$(&$module::SPEC),+];

        impl Delivery {
            fn kind(&self) -> Option<&dyn Kind> {
                match self {
                    Delivery::Full => None,
                    $(Delivery::$delivery(delivery) => Some(delivery),)+
                }
            }

            fn kind_mut(&mut self) -> Option<&mut dyn Kind> {
                match self {
                    Delivery::Full => None,
                    $(Delivery::$delivery(delivery) => Some(delivery),)+
                }
            }
        }
    };
}

deliveries! {
    /// In part from DNS.
    PqtlsAd = pqtls_ad;
    /// Compressed, from the server (RFC 8879).
    Compressed = compressed;
    /// From the server, without intermediates that the client has.
    Elided = elided;
    /// Abridged, from the server.
    Abridged = abridged;
    /// One Merkle Tree Certificate, from the server.
    Mtc = mtc;
}

impl Delivery {
    const FULL: &'static str = "full";

    /// The value of `delivery=`.
    pub fn name(&self) -> &'static str {
        self.kind().map_or(Delivery::FULL, Kind::name)
    }

    /// All keys that deliveries have.
    pub(super) fn keys() -> impl Iterator<Item = &'static DeliveryKey> + Clone {
        SPECS.iter().flat_map(|spec| spec.keys)
    }

    /// As usual, under this name.
    ///
    /// # Errors
    ///
    /// Which names there are.
    pub(super) fn named(name: &str) -> Result<Delivery, ValueError> {
        if name == Delivery::FULL {
            return Ok(Delivery::Full);
        }
        let mut found = SPECS.iter().filter_map(|spec| (spec.named)(name));
        found.next().ok_or_else(|| {
            let others = SPECS.iter().flat_map(|spec| (spec.names)());
            ValueError::Unlisted {
                text: name.to_owned(),
                known: [Delivery::FULL].into_iter().chain(others).collect(),
            }
        })
    }

    /// Each delivery, each way that it is negotiated: as an arm says it, and in words.
    pub fn ways() -> Vec<(Delivery, String)> {
        let mut ways = Vec::new();
        for spec in SPECS {
            for name in (spec.names)() {
                for Way { said, by } in spec.ways {
                    let Some(mut delivery) = (spec.named)(name) else {
                        continue;
                    };
                    let mut words = format!("delivery={name}");
                    if let Some((key, value)) = said {
                        let _ = delivery.set(key, value);
                        words += &format!("/{key}={value}");
                    }
                    ways.push((delivery, format!("{words}, {by}")));
                }
            }
        }
        ways
    }

    /// How it has one of the [`keys`](Delivery::keys), as that would be written.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        let own = self.kind()?.spec().keys.iter();
        let own = own.into_iter().find(|own| own.name == key)?;
        (own.get)(self)
    }

    /// Takes the value of one of the [`keys`](Delivery::keys).
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), SetError> {
        let has = |spec: &&Spec| spec.keys.iter().any(|own| own.name == key);
        let own = self.kind().map(Kind::spec).into_iter();
        if let Some(own) = own.flat_map(|spec| spec.keys).find(|own| own.name == key) {
            return (own.set)(self, value).map_err(SetError::Value);
        }
        let specs = SPECS.iter().copied().filter(has);
        let subjects = specs.clone().map(|spec| spec.subject);
        let names = specs.filter_map(|spec| (spec.names)().first().copied());
        Err(SetError::NotIts {
            subject: subjects.collect::<Vec<_>>().join(" or "),
            name: names.collect::<Vec<_>>().join(" or "),
        })
    }

    /// The files that it names.
    pub(super) fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        self.kind_mut().map_or_else(Vec::new, Kind::paths_mut)
    }

    /// Whether it names files.
    pub fn names_files(&self) -> bool {
        !self.clone().paths_mut().is_empty()
    }

    /// What its handshakes depend on, in words, if that is anything.
    pub fn words(&self) -> Option<String> {
        self.kind().map(Kind::words)
    }

    /// Whether clients ask DNS before they connect.
    pub fn asks_dns(&self) -> bool {
        self.kind().is_some_and(Kind::asks_dns)
    }

    /// Whether clients fail at first, and connect once more.
    pub fn retries(&self) -> bool {
        self.kind().is_some_and(Kind::retries)
    }

    /// Whether one certificate comes alone, whose proof is in the place of intermediates and timestamps.
    pub fn is_alone(&self) -> bool {
        self.kind().is_some_and(Kind::is_alone)
    }

    /// What its handshakes put on the wire of such a chain, by arithmetic: each of them, the last of which succeeds.
    ///
    /// # Errors
    ///
    /// What is no arithmetic, as in "… is no arithmetic".
    pub fn arithmetic(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, &'static str> {
        match self.kind() {
            None => Ok(vec![OnWire::whole(spec)]),
            Some(kind) => kind.arithmetic(spec),
        }
    }

    /// The same of a chain that is known by its sizes alone.
    ///
    /// # Errors
    ///
    /// What is no arithmetic, as in "… is no arithmetic".
    pub fn arithmetic_of(&self, chain: Lengths<'_>) -> Result<Vec<OnWire>, &'static str> {
        match self.kind() {
            None => Ok(vec![chain.whole()]),
            Some(kind) => kind.arithmetic_of(chain),
        }
    }

    /// Whether an arm can have all that it asks for besides.
    pub fn check_arm(&self, arm: &Arm) -> Result<(), DeliveryProblem> {
        self.kind().map_or(Ok(()), |kind| kind.check_arm(arm))
    }

    /// Whether an arm that delivers like this can be compared with a baseline.
    fn check_baseline(&self, arm: &Arm, baseline: &Arm) -> Result<(), OtherStack> {
        self.kind()
            .map_or(Ok(()), |kind| kind.check_baseline(arm, baseline))
    }

    /// Whether a handshake of an arm did what this says, and which certificates it shows then.
    pub fn check_handshake(
        &self,
        arm: &Arm,
        wire: &Exchange,
        dns: &Dns,
    ) -> Result<Certificates, Mismatch> {
        let own = self.kind();
        let is_own = |spec: &Spec| own.is_some_and(|kind| std::ptr::eq(kind.spec(), spec));
        let others = SPECS.iter().filter(|spec| !is_own(spec));
        for spec in others {
            if let Some(what) = (spec.trace)(wire, dns) {
                return Err(Mismatch::Unasked(what));
            }
        }
        let named = matches!(
            wire.negotiated.signal,
            ChainSignal::TrustAnchors | ChainSignal::Anchored
        );
        if named && !own.is_some_and(Kind::names_anchors) {
            return Err(Mismatch::Unasked("named trust anchors"));
        }
        match (self.retries(), wire.failed) {
            (true, Some(_)) | (false, None) => {}
            (true, None) => return Err(Mismatch::DidNotFail),
            (false, Some(_)) => return Err(Mismatch::Unasked("failed at first")),
        }
        own.map_or(Ok(Certificates::Whole), |kind| {
            kind.check_handshake(arm, wire, dns)
        })
    }
}

/// Whether an arm and a baseline are of one stack, as they must be where the stacks' difference would be larger than
/// what the arm's delivery makes. `what` the arm is, as in "is compressed".
fn check_stacks(arm: &Arm, baseline: &Arm, what: &'static str) -> Result<(), OtherStack> {
    let (client, server) = (arm.client_stack, arm.server_stack);
    if (baseline.client_stack, baseline.server_stack) == (client, server) {
        return Ok(());
    }
    Err(OtherStack {
        arm: arm.label.clone(),
        what,
        baseline: baseline.label.clone(),
        client,
        server,
    })
}

/// Whether arms can be compared with the first of them.
///
/// # Errors
///
/// Why one can't, with the hint.
pub fn check_comparison(arms: &[Arm]) -> Result<(), OtherStack> {
    let Some((baseline, others)) = arms.split_first() else {
        return Ok(());
    };
    others.iter().try_for_each(|arm| {
        arm.delivery.check_baseline(arm, baseline)?;
        baseline.delivery.check_baseline(baseline, arm)
    })
}

/// A key of a delivery was not taken.
pub(super) enum SetError {
    /// It is another delivery's.
    NotIts {
        /// What it is for.
        subject: String,
        /// The values of `delivery=` that have it.
        name: String,
    },
    /// It can have other values.
    Value(ValueError),
}
