//! Merkle Tree Certificates (draft-ietf-plants-merkle-tree-certs-07): the server sends one certificate, whose proof is
//! all that there is to verify besides the handshake's own signature.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_exchange::{ChainSignal, Exchange};
use lastbyte_link::named;
use lastbyte_mtc::cosign::SignError;
use lastbyte_mtc::id::IdError;
use lastbyte_mtc::{
    Cosigner, LogId, LogNumber, Properties, Request, Sample, SignatureAlgorithm, TrustAnchorId,
    UnixTime, Validity, trust_anchors,
};
use lastbyte_sizes::{
    ChainSpec, Held, KeyAlgorithm, Message, Resumption, RootDelivery, StackName, der, framing,
    profile,
};

use super::memo::Memo;
use super::mismatch::Mismatch;
use super::problem::MtcProblem;
use super::{
    Certificates, Delivery, DeliveryKey, DeliveryProblem, Kind, Lengths, OnWire, OtherStack, Spec,
    Way, check_stacks, key,
};
use crate::row::Dns;
use crate::value::{ValueError, one_of};
use crate::{Arm, ArmChain};

/// What the server has of its certificate, what clients have of the log, and what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtc {
    /// Which certificates the server has.
    pub form: Form,
    /// What clients have of the log's landmarks.
    pub client: Held,
    /// What they say of it.
    pub hello: Hello,
    /// Who signs for standalone certificates, and has to.
    pub cosigners: Cosigners,
    /// Entries between two landmarks.
    pub entries: u32,
}

/// Which certificates a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One relative to a landmark, and a standalone one for those who don't have that.
    Landmark,
    /// A standalone one.
    Standalone,
}

named!(Form, "delivery", { Landmark => "mtc-landmark", Standalone => "mtc-standalone" });

/// What clients say of the anchors that they trust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hello {
    /// The last landmark that they have (draft-ietf-tls-trust-anchor-ids-06).
    #[default]
    Anchors,
    /// That they could name some: an empty list. Who gets a chain that ends nowhere connects anew, and names one
    /// that the server has.
    Empty,
    /// Nothing. The server sends what it has.
    Nothing,
}

named!(Hello, "hello", { Anchors => "anchors", Empty => "empty", Nothing => "nothing" });

/// Who signs for a standalone certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cosigners {
    /// The CA alone, with ML-DSA-44.
    Ca,
    /// The CA and a mirror, both with ML-DSA-44: what Chrome's draft policy of 2026 asks for at least.
    Chrome,
    /// The CA with ML-DSA-44 and with P-256, and a mirror with ML-DSA-44: what Apple announced in 2026.
    Apple,
    /// The CA and as many mirrors less one, all with ML-DSA-44.
    Count(u8),
}

impl Cosigners {
    const MOST: u8 = 16;

    /// Their names and keys, the CA's own first.
    ///
    /// # Errors
    ///
    /// None, as these names are short.
    pub fn all(self) -> Result<Vec<(TrustAnchorId, SignatureAlgorithm)>, MtcProblem> {
        const OTHERS: u64 = 32474;
        let mirror =
            |number| Ok::<_, MtcProblem>((id([OTHERS, number])?, SignatureAlgorithm::MlDsa44));
        let mut all = vec![(id(CA)?, SignatureAlgorithm::MlDsa44)];
        match self {
            Cosigners::Ca => {}
            Cosigners::Chrome => all.push(mirror(1)?),
            Cosigners::Apple => {
                all.push((id([CA[0], CA[1], 3, 1])?, SignatureAlgorithm::EcdsaP256));
                all.push(mirror(1)?);
            }
            Cosigners::Count(count) => {
                for number in 1..u64::from(count) {
                    all.push(mirror(number)?);
                }
            }
        }
        Ok(all)
    }
}

impl FromStr for Cosigners {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Cosigners, ValueError> {
        match text {
            "ca" => Ok(Cosigners::Ca),
            "chrome" => Ok(Cosigners::Chrome),
            "apple" => Ok(Cosigners::Apple),
            _ => match text.parse() {
                Ok(count @ 1..=Cosigners::MOST) => Ok(Cosigners::Count(count)),
                _ => Err(ValueError::Cosigners {
                    most: Cosigners::MOST,
                }),
            },
        }
    }
}

impl fmt::Display for Cosigners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cosigners::Ca => f.pad("ca"),
            Cosigners::Chrome => f.pad("chrome"),
            Cosigners::Apple => f.pad("apple"),
            Cosigners::Count(count) => count.fmt(f),
        }
    }
}

/// The CA, of the numbers that RFC 5612 has for examples.
const CA: [u64; 2] = [32473, 1];
/// Landmarks that are of use: one an hour, for the seven days that a certificate is valid.
const LANDMARKS: u64 = 168;
const LANDMARK_EVERY: Duration = Duration::from_secs(3600);
/// Entries that are cosigned together come so long after each other.
const BATCH_EVERY: Duration = Duration::from_secs(2);
const SEED: u64 = 1;

const CLIENT: &str = "client";
const HELLO: &str = "hello";
const COSIGNERS: &str = "cosigners";
const ENTRIES: &str = "entries";

pub(super) static SPEC: Spec = Spec {
    names: || Form::ALL.map(Form::name).to_vec(),
    keys: &[
        key!(
            Mtc,
            CLIENT,
            "`current` or `stale`",
            "current",
            "whether clients have the newest landmark, or those up to the one before",
            |mtc| Some(mtc.client.to_string()),
            |mtc, text| {
                mtc.client = one_of(text, Held::ALL.map(Held::name))?;
                Ok(())
            },
        ),
        key!(
            Mtc,
            HELLO,
            "`anchors`, `empty` or `nothing`",
            "anchors",
            "what clients say of the anchors that they trust",
            |mtc| Some(mtc.hello.to_string()),
            |mtc, text| {
                mtc.hello = one_of(text, Hello::ALL.map(Hello::name))?;
                Ok(())
            },
        ),
        key!(
            Mtc,
            COSIGNERS,
            "`ca`, `chrome`, `apple`, or 1 to 16",
            "chrome",
            "who signs for standalone certificates",
            |mtc| Some(mtc.cosigners.to_string()),
            |mtc, text| {
                mtc.cosigners = text.parse()?;
                Ok(())
            },
        ),
        key!(
            Mtc,
            ENTRIES,
            "1 to 1000000000",
            "4400000",
            "entries of the log between two landmarks",
            |mtc| Some(mtc.entries.to_string()),
            |mtc, text| {
                const MOST: u32 = 1_000_000_000;
                let entries = text.parse().ok();
                let entries = entries.filter(|entries| (1..=MOST).contains(entries));
                mtc.entries = entries.ok_or(ValueError::Entries { most: MOST })?;
                Ok(())
            },
        ),
    ],
    subject: "Merkle Tree Certificates",
    named: |name| {
        let form = name.parse().ok()?;
        Some(Delivery::Mtc(Mtc {
            form,
            client: Held::default(),
            hello: Hello::default(),
            cosigners: Cosigners::Chrome,
            // The Web's, as draft-ietf-plants-merkle-tree-certs-07 has it, section 6.3.
            entries: 4_400_000,
        }))
    },
    ways: &[
        Way {
            said: Some((HELLO, "anchors")),
            by: "by trust_anchors",
        },
        Way {
            said: Some((HELLO, "empty")),
            by: "by trust_anchors, named in a second connection",
        },
        Way {
            said: Some((HELLO, "nothing")),
            by: "not negotiated",
        },
    ],
    // What it says on the wire, other deliveries say, too.
    trace: |_, _| None,
};

/// A certificate of the server's.
pub struct MtcPath {
    /// What it ends in.
    pub id: TrustAnchorId,
    /// Which clients get it.
    pub properties: Properties,
    /// The certificate, in DER.
    pub certificate: Vec<u8>,
}

impl Mtc {
    /// The CA's log with an entry for a server of these names: `key` is its SubjectPublicKeyInfo in DER. All other entries are
    /// made up. The last landmark is the first that has it.
    ///
    /// # Errors
    ///
    /// Why there is no such entry, in one line.
    pub fn sample(&self, names: &[&str], key: &[u8], now: UnixTime) -> Result<Sample, MtcProblem> {
        let log = log()?;
        let validity = Validity::of(now, LANDMARK_EVERY * LANDMARKS as u32);
        let request = Request {
            names,
            key,
            validity,
        };
        let entries = u64::from(self.entries);
        let index = (LANDMARKS - 1) * entries + entries / 2;
        let size = LANDMARKS * entries;
        let mut sample = Sample::new(log, &request, index, size, SEED)?;
        for number in 1..=LANDMARKS {
            let age = LANDMARK_EVERY * (LANDMARKS - number) as u32;
            let expiry = UnixTime(now.0 + (LANDMARK_EVERY * LANDMARKS as u32 - age).as_secs());
            sample.make_landmark(number * entries, expiry)?;
        }
        Ok(sample)
    }

    /// What the server has, the preferred one first.
    ///
    /// # Errors
    ///
    /// Why there is none, in one line.
    pub fn paths(
        &self,
        sample: &Sample,
        cosigners: &[&dyn Cosigner],
    ) -> Result<Vec<MtcPath>, MtcProblem> {
        let entries = u64::from(self.entries);
        let batch = (entries * BATCH_EVERY.as_secs() / LANDMARK_EVERY.as_secs()).max(1);
        let first = ((LANDMARKS - 1) * entries + entries / 2) / batch * batch;
        let last = (first + batch).min(LANDMARKS * entries);
        let mut paths = Vec::new();
        if self.form == Form::Landmark {
            let (landmark, _) = sample.landmark()?;
            paths.push(MtcPath {
                id: sample.log().landmark(landmark.number)?,
                properties: sample.landmark_properties()?,
                certificate: sample.landmark_relative()?,
            });
        }
        paths.push(MtcPath {
            id: sample.log().ca().clone(),
            properties: sample.standalone_properties(),
            certificate: sample.standalone(first..last, cosigners)?,
        });
        Ok(paths)
    }

    /// What clients name at first, if they say anything.
    ///
    /// # Errors
    ///
    /// None, as these names are short.
    pub fn named(&self) -> Result<Option<Vec<TrustAnchorId>>, MtcProblem> {
        Ok(match self.hello {
            Hello::Nothing => None,
            Hello::Empty => Some(Vec::new()),
            Hello::Anchors => Some(vec![match self.form {
                Form::Landmark => log()?.landmark_group(self.last_held())?,
                Form::Standalone => log()?.ca().clone(),
            }]),
        })
    }

    /// The last landmark that clients have.
    pub fn last_held(&self) -> u64 {
        match self.client {
            Held::Current => LANDMARKS,
            Held::Stale => LANDMARKS - 1,
        }
    }

    /// What clients can name of what the server has, once they know that.
    ///
    /// # Errors
    ///
    /// None, as these names are short.
    pub fn trusted(&self) -> Result<Vec<TrustAnchorId>, MtcProblem> {
        let log = log()?;
        let landmark = match (self.form, self.client) {
            (Form::Landmark, Held::Current) => Some(log.landmark(LANDMARKS)?),
            (Form::Landmark, Held::Stale) | (Form::Standalone, _) => None,
        };
        Ok(landmark.into_iter().chain([log.ca().clone()]).collect())
    }

    /// The likeliest length of a cosignature.
    pub fn signature_bytes(algorithm: SignatureAlgorithm) -> usize {
        let key = match algorithm {
            SignatureAlgorithm::EcdsaP256 => KeyAlgorithm::EcdsaP256,
            SignatureAlgorithm::EcdsaP384 => KeyAlgorithm::EcdsaP384,
            SignatureAlgorithm::MlDsa44 => KeyAlgorithm::MlDsa44,
            SignatureAlgorithm::MlDsa65 => KeyAlgorithm::MlDsa65,
            SignatureAlgorithm::MlDsa87 => KeyAlgorithm::MlDsa87,
        };
        key.signature_bytes()
    }

    /// Bytes that clients hold of the log's landmarks: two hashes for each that is of use.
    pub fn held_bytes(&self) -> u64 {
        match self.form {
            Form::Landmark => 2 * 32 * LANDMARKS,
            Form::Standalone => 0,
        }
    }
}

fn log() -> Result<LogId, IdError> {
    LogId::new(id(CA)?, LogNumber::FIRST)
}

fn id(numbers: impl IntoIterator<Item = u64>) -> Result<TrustAnchorId, IdError> {
    TrustAnchorId::from_numbers(numbers)
}

impl Kind for Mtc {
    fn name(&self) -> &'static str {
        self.form.name()
    }

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), DeliveryProblem> {
        let rustls = StackName::Rustls;
        if let ArmChain::Made(spec) = &arm.chain {
            let usual = ChainSpec::new(spec.leaf);
            let unsaid = [
                (spec.certificate_bytes.is_some(), "a size"),
                (spec.scts > 0, "timestamps"),
                (spec.root == RootDelivery::Sent, "a root"),
                // Who names nothing at first gets the chain then.
                (
                    self.hello != Hello::Empty && spec.intermediates != usual.intermediates,
                    "intermediates",
                ),
            ];
            if let Some((_, what)) = unsaid.iter().find(|(is_asked, _)| *is_asked) {
                return Err(DeliveryProblem::NoPlace { what });
            }
        }
        let problem = match (self.form, self.client, self.hello) {
            _ if arm.resumption != Resumption::Full => DeliveryProblem::Resumed { what: "" },
            (Form::Standalone, Held::Stale, _) => DeliveryProblem::NoLandmark,
            (Form::Landmark, Held::Stale, Hello::Nothing) => DeliveryProblem::StaleUntold,
            (_, _, hello)
                if hello != Hello::Nothing
                    && [arm.client_stack, arm.server_stack].contains(&rustls) =>
            {
                DeliveryProblem::RustlsNamesNone
            }
            _ => return Ok(()),
        };
        Err(problem)
    }

    fn check_baseline(&self, arm: &Arm, baseline: &Arm) -> Result<(), OtherStack> {
        check_stacks(arm, baseline, "has a Merkle Tree Certificate")
    }

    fn words(&self) -> String {
        let cosigners = match self.cosigners {
            Cosigners::Ca => "the CA".to_owned(),
            Cosigners::Chrome => "the CA and a mirror".to_owned(),
            Cosigners::Apple => "the CA twice and a mirror".to_owned(),
            Cosigners::Count(count) => format!("{count} cosigners"),
        };
        format!(
            "{} of {cosigners}, {} entries a landmark, client {}, hello {}",
            self.form, self.entries, self.client, self.hello
        )
    }

    fn names_anchors(&self) -> bool {
        self.hello != Hello::Nothing
    }

    fn is_alone(&self) -> bool {
        // Who names nothing at first gets the chain then.
        self.hello != Hello::Empty
    }

    fn retries(&self) -> bool {
        self.hello == Hello::Empty
    }

    fn arithmetic(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, &'static str> {
        self.handshakes(spec)
            .map_err(|_| "the size of a certificate that can't be made")
    }

    /// Its certificate is made anew, for the key and as many names.
    fn arithmetic_of(&self, chain: Lengths<'_>) -> Result<Vec<OnWire>, &'static str> {
        match chain.alike {
            Some(alike) => self.arithmetic(alike),
            None => Err("a Merkle Tree Certificate for a key that is not known"),
        }
    }

    fn check_handshake(
        &self,
        arm: &Arm,
        wire: &Exchange,
        _: &Dns,
    ) -> Result<Certificates, Mismatch> {
        let expected = match self.hello {
            Hello::Nothing => ChainSignal::None,
            Hello::Anchors | Hello::Empty => ChainSignal::Anchored,
        };
        if wire.negotiated.signal != expected {
            return Err(Mismatch::Signal {
                said: wire.negotiated.signal,
                of: "anchors",
                asked: expected,
            });
        }
        Mismatch::check_count(wire, 1)?;
        if let ArmChain::Made(spec) = &arm.chain {
            let handshakes = self.handshakes(spec)?;
            let certificate = handshakes.last().map_or(0, |last| last.certificate);
            let bytes = wire.bytes(Message::Certificate) as usize;
            if bytes != certificate {
                return Err(Mismatch::CertificateBytes {
                    got: bytes,
                    asked: certificate,
                });
            }
        }
        Ok(Certificates::Rest)
    }
}

impl Mtc {
    /// What its handshakes put on the wire, the last of which succeeds. Every row asks.
    fn handshakes(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, MtcProblem> {
        static ON_WIRE: Memo<(Mtc, ChainSpec), Vec<OnWire>> = Memo::new();
        ON_WIRE.get((*self, spec.clone()), |(mtc, spec)| mtc.calculate(spec))
    }

    fn calculate(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, MtcProblem> {
        // Any time: all take as many bytes.
        let now = UnixTime(1_800_000_000);
        let names = profile::host_names(profile::SERVER_NAME, spec.names);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let sample = self.sample(&names, &made_up_key(spec.leaf), now)?;
        let blanks: Vec<Blank> = (self.cosigners.all()?.into_iter())
            .map(|(id, algorithm)| Blank(id, algorithm))
            .collect();
        let blanks: Vec<&dyn Cosigner> = blanks.iter().map(|blank| blank as _).collect();
        let paths = self.paths(&sample, &blanks)?;
        let extension = |list: Vec<u8>| framing::EXTENSION_HEADER + list.len();
        let available = extension(trust_anchors::list(paths.iter().map(|path| &path.id)));
        let hello = |named: &[TrustAnchorId]| extension(trust_anchors::list(named));
        let sent = |path: &MtcPath| {
            framing::NO_CERTIFICATES + framing::CERTIFICATE_ENTRY + path.certificate.len()
        };
        let matched = |named: &[TrustAnchorId]| {
            let mut paths = paths.iter();
            let found = paths.find(|path| named.iter().any(|id| path.properties.matches(id)));
            found.map(|path| OnWire {
                client_hello: hello(named),
                encrypted_extensions: available,
                certificate: framing::EXTENSION_HEADER + sent(path),
                certificates: 1,
                signal: ChainSignal::Anchored,
                ..OnWire::default()
            })
        };
        let found = match self.named()? {
            None => paths.first().map(|path| {
                vec![OnWire {
                    certificate: sent(path),
                    certificates: 1,
                    ..OnWire::default()
                }]
            }),
            Some(named) if named.is_empty() => {
                let trusted = self.trusted()?;
                let known = paths.iter().find(|path| trusted.contains(&path.id));
                let second = known.and_then(|path| matched(std::slice::from_ref(&path.id)));
                let first = OnWire {
                    client_hello: hello(&named),
                    encrypted_extensions: available,
                    signal: ChainSignal::TrustAnchors,
                    ..OnWire::whole(spec)
                };
                second.map(|second| vec![first, second])
            }
            Some(named) => matched(&named).map(|one| vec![one]),
        };
        found.ok_or(MtcProblem::Nothing)
    }
}

/// Signs with as many zeros as a signature has bytes.
struct Blank(TrustAnchorId, SignatureAlgorithm);

impl Cosigner for Blank {
    fn id(&self) -> &TrustAnchorId {
        &self.0
    }

    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(vec![0; Mtc::signature_bytes(self.1)])
    }
}

/// A SubjectPublicKeyInfo of nobody, as long as one of this algorithm.
fn made_up_key(algorithm: KeyAlgorithm) -> Vec<u8> {
    let key = der::bit_string(&vec![0; algorithm.public_key_bytes()]);
    let bare = der::sequence(&[&der::sequence(&[]), &key]).len();
    // What is left is the name of the algorithm.
    let name = algorithm.key_info_bytes().saturating_sub(bare + 2);
    let name = [&[0x06, name as u8][..], &vec![1; name]].concat();
    der::sequence(&[&der::sequence(&[&name]), &key])
}
