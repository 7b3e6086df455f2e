//! The sizes of all arms that a page offers, as `lastbyte explain` has them.

use lastbyte_exchange::{Exchange, HandshakeFlight};
use lastbyte_sizes::{ChainSpec, Group, KeyAlgorithm, Message, SlhDsa, framing};
use serde::Serialize;

use super::Probe;
use lastbyte_explain::{self as explain, Unknown, explain_own, message_on_wire};
use lastbyte_results::reduce::{Reduction, Subject};
use lastbyte_study::{Arm, ArmChain, Settings};

/// The most bytes of a Certificate message that a page asks for. Nearly all sizes up to there can be made.
const MOST_CERTIFICATE: usize = 60_000;

/// Chains of several algorithms, of the end-entity and of those above it: those that are met, and those that are talked of.
const MIXED: [(KeyAlgorithm, KeyAlgorithm); 9] = [
    (KeyAlgorithm::EcdsaP256, KeyAlgorithm::EcdsaP384),
    (KeyAlgorithm::EcdsaP256, KeyAlgorithm::Rsa2048),
    (KeyAlgorithm::Rsa2048, KeyAlgorithm::Rsa4096),
    (KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa44),
    (KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa65),
    (KeyAlgorithm::MlDsa44, KeyAlgorithm::MlDsa65),
    (KeyAlgorithm::MlDsa44, KeyAlgorithm::MlDsa87),
    (KeyAlgorithm::MlDsa65, KeyAlgorithm::MlDsa87),
    (
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::SlhDsa(SlhDsa::Sha2_128s),
    ),
];

/// How a chain comes whole: as an arm says it, and in words.
const WHOLE: [(&[(&str, &str)], &str); 4] = [
    (&[], "whole, 1 intermediate"),
    (&[("intermediates", "2")], "whole, 2 intermediates"),
    (&[("intermediates", "3")], "whole, 3 intermediates"),
    (&[("intermediates", "0")], "whole, no intermediate"),
];

/// How a chain comes, as an arm says it.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    /// What the arm says; for a page, with strokes before each key.
    #[serde(serialize_with = "with_strokes")]
    key: Settings,
    /// In words.
    pub(super) words: String,
    /// Whether it goes over TCP alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tcp: bool,
    /// The stack that measures it, if that is not OpenSSL: what both arms of a comparison have to say besides.
    #[serde(serialize_with = "with_strokes")]
    stack: Settings,
}

fn with_strokes<S: serde::Serializer>(said: &Settings, serializer: S) -> Result<S::Ok, S::Error> {
    if said.is_empty() {
        serializer.serialize_str("")
    } else {
        serializer.collect_str(&format_args!("/{said}"))
    }
}

/// All ways that arithmetic knows: whole, and every [`Reduction`] of a chain.
fn ways() -> Vec<Way> {
    let whole = WHOLE.into_iter().filter_map(|(key, words)| {
        Some(Way {
            key: Settings::of_keys(key).ok()?,
            words: words.to_owned(),
            tcp: false,
            stack: Settings::default(),
        })
    });
    let less = Reduction::ALL.into_iter().filter_map(|reduction| {
        let usual = usual()?;
        let usual = Some(usual).filter(|_| reduction.subject == Subject::Chain)?;
        let arm = reduction.apply(&reduction.whole(&usual).ok()?).ok()?;
        let (stack, key) = arm.settings_unlike(&usual).parted(&["stack"]);
        let over_quic = usual
            .with_settings(&key)
            .and_then(|arm| arm.with("transport", "quic"));
        let way = Way {
            tcp: over_quic.is_err(),
            key,
            words: format!("{}: {}", reduction.name, reduction.words),
            stack,
        };
        sizes(&usual.with_settings(&way.key).ok()?).map(|_| way)
    });
    whole.chain(less).collect()
}

/// A group, and the hellos of a handshake with it.
#[derive(Debug, Serialize)]
pub(super) struct GroupSizes {
    pub(super) name: &'static str,
    /// On the wire.
    client_hello: u32,
    server_hello: u32,
    /// On the wire, where the server asks for another hello; else 0.
    second_client_hello: u32,
    /// The group that the client has a share for then, as an arm says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    key_share: String,
}

/// A chain, and what it makes of a handshake.
#[derive(Debug, Serialize)]
pub(super) struct ChainSizes {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// What it is called in a list, where that is not its name.
    #[serde(skip)]
    pub(super) words: Option<String>,
    /// What an arm has in its place that is measured, where that is not its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<String>,
    certificate_verify: u32,
    /// The writes that its handshake leaves in besides the last, as far as they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    writes: Vec<u32>,
    /// For each of the ways; none where such a chain can't come so.
    pub(super) ways: Vec<Option<WaySizes>>,
}

/// What a chain and the way in which it comes make of a handshake: bytes more of the ClientHello than of one for a usual
/// chain, or fewer; the EncryptedExtensions; the Certificate message, and the most that it can be padded to; bytes more of the
/// ServerHello, or fewer. Without names, which would be a tenth of the page.
pub(super) type WaySizes = (i64, u32, u32, u32, i64);

/// All that a page needs to know of sizes.
#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    pub(super) groups: Vec<GroupSizes>,
    pub(super) chains: Vec<ChainSizes>,
    pub(super) ways: Vec<Way>,
    server_finished: u32,
    /// On the wire.
    client_finish: u32,
    /// On the wire; 0 where the first hello will do.
    hello_retry_request: u32,
}

/// What others are compared with: any group and any chain would do.
const USUAL: (Group, KeyAlgorithm) = (Group::X25519, KeyAlgorithm::Rsa2048);

fn usual() -> Option<Arm> {
    let (group, key) = USUAL;
    arm(group, ChainSpec::new(key))
}

fn arm(group: Group, spec: ChainSpec) -> Option<Arm> {
    Arm::of(group, ArmChain::Made(spec)).ok()
}

impl Sizes {
    /// Those of all arms; their hellos are as such a server has them, if one was seen.
    pub(super) fn new(probe: Option<&Probe>) -> Sizes {
        let (group, chain) = USUAL;
        let usual = usual().and_then(|usual| sizes(&usual)).unwrap_or_default();
        let as_seen = |arm: Arm| match probe {
            Some(probe) => probe.as_seen(arm),
            None => arm,
        };
        let hellos = |group: Group| {
            let arm = as_seen(arm(group, ChainSpec::new(chain))?);
            Some((explain::wire(&arm).ok()?, arm))
        };
        let groups = Group::ALL.into_iter().filter_map(|group| {
            let (wire, arm) = hellos(group)?;
            let with_retry = wire.sent(HandshakeFlight::HelloRetryRequest) > 0;
            let share = arm.key_shares.first().filter(|_| with_retry);
            Some(GroupSizes {
                name: group.name(),
                client_hello: wire.sent(HandshakeFlight::ClientHello),
                server_hello: wire.bytes(Message::ServerHello),
                second_client_hello: wire.sent(HandshakeFlight::SecondClientHello),
                key_share: share.map(Group::to_string).unwrap_or_default(),
            })
        });
        let wire = hellos(group).map_or_else(|| usual.clone(), |(wire, _)| wire);
        let ways = ways();
        let single = KeyAlgorithm::ALL.into_iter().map(ChainSpec::new);
        let mixed = MIXED.into_iter().map(|(leaf, ca)| ChainSpec {
            ca,
            root_key: ca,
            ..ChainSpec::new(leaf)
        });
        let chains: Vec<ChainSizes> = single
            .chain(mixed)
            .filter_map(|spec| ChainSizes::new(&spec, &usual, &ways))
            .collect();
        Sizes {
            groups: groups.collect(),
            ways,
            chains,
            server_finished: usual.bytes(Message::ServerFinished),
            client_finish: wire.sent(HandshakeFlight::ClientFinish),
            hello_retry_request: wire.sent(HandshakeFlight::HelloRetryRequest),
        }
    }

    /// Has the chain that a server has besides, and those that are supposed of it: known by their sizes on the wire when its
    /// handshake is with its group. They come as they are.
    ///
    /// # Errors
    ///
    /// [`Unknown`] where arithmetic does not know what such a server sends.
    pub(super) fn add(&mut self, probe: &Probe, arm: &Arm) -> Result<(), Unknown> {
        let today = (
            probe.host.clone(),
            format!("{}, today", probe.host),
            None,
            &probe.chain,
        );
        let supposed = probe.supposed.iter().map(|(key, shown)| {
            let name = supposed_name(&probe.host, *key);
            (name.clone(), name, Some(*key), shown)
        });
        for (place, (name, words, key, shown)) in std::iter::once(today).chain(supposed).enumerate()
        {
            let wire = explain_own(arm, shown, &[])?.exchange;
            let chain = self.seen(name, words, key, arm.group, &wire);
            self.chains.insert(place, chain);
        }
        Ok(())
    }

    fn seen(
        &self,
        name: String,
        words: String,
        key: Option<KeyAlgorithm>,
        group: Group,
        wire: &Exchange,
    ) -> ChainSizes {
        let hello = self.groups.iter().find(|known| known.name == group.name());
        let hello = hello.map_or(0, |known| known.client_hello);
        let mut ways = vec![None; self.ways.len()];
        let certificate = wire.bytes(Message::Certificate);
        // What its records have more or less than one for each message, as if it were of the first one.
        let messages: u32 = (Message::SERVER_FLIGHT.iter())
            .map(|message| message_on_wire(wire, *message))
            .sum();
        let besides = i64::from(wire.sent(HandshakeFlight::Server)) - i64::from(messages);
        if let Some(way) = ways.first_mut() {
            let more = i64::from(wire.sent(HandshakeFlight::ClientHello)) - i64::from(hello);
            let extensions = wire.bytes(Message::EncryptedExtensions);
            let cipher =
                i64::from(self.server_finished) - i64::from(wire.bytes(Message::ServerFinished));
            *way = Some((more, extensions, certificate, certificate, besides - cipher));
        }
        ChainSizes {
            // As many bytes on the wire, in a chain that the laboratory can make.
            measured: key.map(|key| {
                let extensions = i64::from(wire.bytes(Message::EncryptedExtensions));
                let bytes = i64::from(certificate) + besides + extensions
                    - framing::ENCRYPTED_EXTENSIONS as i64;
                format!("{key}:{bytes}B/intermediates=0")
            }),
            name,
            words: Some(words),
            kind: "as it was seen",
            certificate_verify: wire.bytes(Message::CertificateVerify),
            writes: super::sizes_of(wire.handshake.server_writes.as_ref()),
            ways,
        }
    }
}

/// How a server's chain with all keys of an algorithm is called.
pub(super) fn supposed_name(host: &str, key: KeyAlgorithm) -> String {
    format!("{host} under {key}")
}

impl ChainSizes {
    fn new(spec: &ChainSpec, usual: &Exchange, ways: &[Way]) -> Option<ChainSizes> {
        let (group, _) = USUAL;
        let name = spec.to_string();
        let coming = |spec: ChainSpec, key: &Settings| {
            Arm::of_settings(group, ArmChain::Made(spec), key).ok()
        };
        let of_way = |key: &Settings| -> Option<(WaySizes, Exchange)> {
            let wire = sizes(&coming(spec.clone(), key)?)?;
            let padded = ChainSpec {
                certificate_bytes: Some(MOST_CERTIFICATE),
                ..spec.clone()
            };
            let padded = coming(padded, key).and_then(|arm| sizes(&arm));
            let certificate = wire.bytes(Message::Certificate);
            let more = i64::from(wire.sent(HandshakeFlight::ClientHello))
                - i64::from(usual.sent(HandshakeFlight::ClientHello));
            let way = (
                more,
                wire.bytes(Message::EncryptedExtensions),
                certificate,
                padded.map_or(certificate, |wire| wire.bytes(Message::Certificate)),
                i64::from(wire.bytes(Message::ServerHello))
                    - i64::from(usual.bytes(Message::ServerHello)),
            );
            Some((way, wire))
        };
        let ways: Vec<_> = ways.iter().map(|way| of_way(&way.key)).collect();
        let (_, first) = ways.iter().flatten().next()?;
        Some(ChainSizes {
            kind: kind(&name),
            name,
            words: None,
            measured: None,
            writes: super::sizes_of(first.handshake.server_writes.as_ref()),
            certificate_verify: first.bytes(Message::CertificateVerify),
            ways: ways
                .iter()
                .map(|way| way.as_ref().map(|(way, _)| *way))
                .collect(),
        })
    }
}

/// What an arm puts on the wire, where that is arithmetic and one connection.
fn sizes(arm: &Arm) -> Option<Exchange> {
    let wire = explain::wire(arm).ok()?;
    wire.failed.is_none().then_some(wire)
}

/// What a list of chains is divided by.
fn kind(name: &str) -> &'static str {
    match name {
        _ if name.contains('+') => "of several algorithms",
        _ if name.starts_with("ml-dsa") => "ML-DSA",
        _ if name.starts_with("slh-dsa") => "SLH-DSA",
        _ if name.starts_with("fn-dsa") => "FN-DSA",
        _ => "classical",
    }
}

/// Certificates of a chain at most, so that a page can't be asked for more.
pub(super) const MOST_CERTIFICATES: usize = 2 + ChainSpec::MAX_INTERMEDIATES as usize + 5;
