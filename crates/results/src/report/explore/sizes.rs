//! The sizes of all arms that a page offers, as `lastbyte explain` has them.

use lastbyte_sizes::{ChainSpec, Group, KeyAlgorithm, Message};
use serde::Serialize;

use crate::explain::{self, message_on_wire};
use crate::reduce::{Reduction, Subject};
use crate::row::Wire;
use crate::study::Arm;

/// The most bytes of a Certificate message that a page asks for. Nearly all sizes up to there can be made.
const MOST_CERTIFICATE: usize = 60_000;

/// Chains of several algorithms: those that are met, and those that are talked of.
const MIXED: [&str; 6] = [
    "ecdsa-p256+ecdsa-p384",
    "ecdsa-p256+rsa-2048",
    "rsa-2048+rsa-4096",
    "ecdsa-p256+ml-dsa-65",
    "ml-dsa-44+ml-dsa-87",
    "ml-dsa-44+slh-dsa-sha2-128s",
];

/// How a chain comes whole: as an arm says it, and in words.
const WHOLE: [(&str, &str); 4] = [
    ("", "whole, 1 intermediate"),
    ("/intermediates=2", "whole, 2 intermediates"),
    ("/intermediates=3", "whole, 3 intermediates"),
    ("/intermediates=0", "whole, no intermediate"),
];

/// How a chain comes, as an arm says it.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    /// What the arm says, with the stroke before it.
    key: String,
    /// In words.
    pub(super) words: String,
    /// The stack that measures it, if that is not OpenSSL: what both arms of a comparison have to say besides.
    stack: String,
}

/// All ways that arithmetic knows: whole, and every [`Reduction`] of a chain.
fn ways() -> Vec<Way> {
    let whole = WHOLE.into_iter().map(|(key, words)| Way {
        key: key.to_owned(),
        words: words.to_owned(),
        stack: String::new(),
    });
    let (group, chain) = USUAL;
    let name = format!("{group}/{chain}");
    let less = Reduction::ALL.into_iter().filter_map(|reduction| {
        let whole = name
            .parse()
            .ok()
            .filter(|_| reduction.subject == Subject::Chain)?;
        let arm = reduction.apply(&reduction.whole(&whole).ok()?).ok()?;
        let said = arm.label.strip_prefix(&name)?;
        let (stacks, own): (Vec<&str>, Vec<&str>) =
            (said.split('/').filter(|word| !word.is_empty()))
                .partition(|word| word.starts_with("stack="));
        let with_strokes =
            |words: Vec<&str>| words.into_iter().map(|word| format!("/{word}")).collect();
        let way = Way {
            key: with_strokes(own),
            words: format!("{}: {}", reduction.name, reduction.words),
            stack: with_strokes(stacks),
        };
        sizes(&format!("{name}{}", way.key)).map(|_| way)
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
}

/// A chain, and what it makes of a handshake.
#[derive(Debug, Serialize)]
pub(super) struct ChainSizes {
    pub(super) name: String,
    pub(super) kind: &'static str,
    certificate_verify: u32,
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
}

/// What others are compared with: any group and any chain would do.
const USUAL: (Group, KeyAlgorithm) = (Group::X25519, KeyAlgorithm::Rsa2048);

impl Sizes {
    pub(super) fn new() -> Sizes {
        let (group, chain) = USUAL;
        let usual = sizes(&format!("{group}/{chain}")).unwrap_or_default();
        let groups = Group::ALL.into_iter().filter_map(|group| {
            let wire = sizes(&format!("{group}/{chain}"))?;
            Some(GroupSizes {
                name: group.name(),
                client_hello: wire.client_hello_wire_bytes,
                server_hello: wire.bytes(Message::ServerHello),
            })
        });
        let ways = ways();
        let single = KeyAlgorithm::ALL.into_iter().map(|key| key.name());
        let chains: Vec<ChainSizes> = single
            .chain(MIXED)
            .filter_map(|name| ChainSizes::new(name, &usual, &ways))
            .collect();
        Sizes {
            groups: groups.collect(),
            ways,
            chains,
            server_finished: usual.bytes(Message::ServerFinished),
            client_finish: usual.client_finish_wire_bytes,
        }
    }

    /// Has a chain besides that is known by its sizes on the wire, when its handshake is with this group. It comes as it is.
    pub(super) fn add(&mut self, name: String, group: Group, wire: &Wire) {
        let hello = self.groups.iter().find(|known| known.name == group.name());
        let hello = hello.map_or(0, |known| known.client_hello);
        let mut ways = vec![None; self.ways.len()];
        if let Some(way) = ways.first_mut() {
            let certificate = wire.bytes(Message::Certificate);
            let more = i64::from(wire.client_hello_wire_bytes) - i64::from(hello);
            let extensions = wire.bytes(Message::EncryptedExtensions);
            // What its records have more or less than one for each message, as if it were of the first one.
            let messages: u32 = (Message::SERVER_FLIGHT.iter())
                .map(|message| message_on_wire(wire, *message))
                .sum();
            let besides = i64::from(wire.server_flight_wire_bytes) - i64::from(messages);
            let cipher =
                i64::from(self.server_finished) - i64::from(wire.bytes(Message::ServerFinished));
            *way = Some((more, extensions, certificate, certificate, besides - cipher));
        }
        let own = ChainSizes {
            name,
            kind: "as it was seen",
            certificate_verify: wire.bytes(Message::CertificateVerify),
            ways,
        };
        self.chains.insert(0, own);
    }
}

impl ChainSizes {
    fn new(name: &str, usual: &Wire, ways: &[Way]) -> Option<ChainSizes> {
        let (group, _) = USUAL;
        let of_way = |key: &str| -> Option<(WaySizes, Wire)> {
            let wire = sizes(&format!("{group}/{name}{key}"))?;
            let padded = sizes(&format!("{group}/{name}:{MOST_CERTIFICATE}B{key}"));
            let certificate = wire.bytes(Message::Certificate);
            let more =
                i64::from(wire.client_hello_wire_bytes) - i64::from(usual.client_hello_wire_bytes);
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
            name: name.to_owned(),
            kind: kind(name),
            certificate_verify: first.bytes(Message::CertificateVerify),
            ways: ways.iter().map(|way| way.map(|(way, _)| way)).collect(),
        })
    }
}

/// What an arm puts on the wire, where that is arithmetic and one connection.
fn sizes(arm: &str) -> Option<Wire> {
    let arm: Arm = arm.parse().ok()?;
    let wire = explain::wire(&arm).ok()?;
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
