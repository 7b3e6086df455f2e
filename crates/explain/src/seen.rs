//! A chain as a probe saw it.

use std::net::IpAddr;

use lastbyte_exchange::{Exchange, HandshakeFlight};
use lastbyte_probe::{Certainty, Certificate, Document};
use lastbyte_sizes::{ChainSpec, Group, KeyAlgorithm, Keys, PemFiles, framing};

use super::wire::{Sizes, wire_of};
use super::{OwnChain, Signature};
use lastbyte_study::{Arm, ArmChain, Cell, MOST_TICKETS};

/// What a client connects with where that was not seen, or has sizes that are not known.
pub const USUAL_GROUP: Group = Group::X25519MlKem768;

impl OwnChain {
    /// The chain that a server sent; none if it sent none.
    pub fn seen(document: &Document) -> Option<OwnChain> {
        let leaf = document.chain.first()?;
        let own = leaf.key();
        let around = framing::certificate_verify(0);
        let seen = document
            .certificate_verify_bytes
            .map(|bytes| (bytes as usize).saturating_sub(around));
        let bytes = seen
            .or(own.map(KeyAlgorithm::signature_bytes))
            .unwrap_or(leaf.key_bytes);
        let chain = document.chain.iter();
        let mut own_chain = OwnChain {
            certificates: chain.clone().map(|certificate| certificate.bytes).collect(),
            signature: Signature {
                shortest: bytes.min(own.map_or(bytes, KeyAlgorithm::shortest_signature_bytes)),
                bytes,
                longest: bytes.max(own.map_or(0, KeyAlgorithm::longest_signature_bytes)),
            },
            server_name: server_name(document),
            provided: provided(chain.filter_map(|certificate| certificate.key())),
            alike: own.map(|key| alike(key, leaf.names)),
            brotli: brotli(document).map(|[_, left]| left),
            besides: 0,
            seen: Exchange::from(document),
        };
        own_chain.besides = besides(document, &own_chain);
        Some(own_chain)
    }

    /// The same server with keys of these algorithms, or all of one: the same names, extensions and number of certificates.
    /// None where the parts of a certificate are not known.
    pub fn supposed(document: &Document, keys: impl Into<Keys>) -> Option<OwnChain> {
        let keys = keys.into();
        let today = OwnChain::seen(document)?;
        let is_root = |place: usize| {
            let certificate = document.chain.get(place).filter(|_| place > 0);
            certificate.is_some_and(Certificate::is_self_issued)
        };
        let signed = document.chain.iter().enumerate();
        let signed = signed.map(|(place, certificate)| {
            let key = match place {
                0 => keys.leaf,
                _ if is_root(place) => keys.root,
                _ => keys.ca,
            };
            // Above the last one that is sent is the root, unless it is that.
            let is_below_root = place + 1 == document.chain.len() || is_root(place + 1);
            let signer = if is_below_root { keys.root } else { keys.ca };
            (certificate, key, signer)
        });
        let signed: Vec<_> = signed.collect();
        let certificates: Option<Vec<usize>> = signed
            .iter()
            .map(|(certificate, key, signer)| certificate.with(*key, *signer))
            .collect();
        // Of the key that it has, the signature that was seen: ECDSA's differ by a byte or two.
        let is_own = document.chain.first().and_then(Certificate::key) == Some(keys.leaf);
        Some(OwnChain {
            certificates: certificates.filter(|certificates| !certificates.is_empty())?,
            signature: if is_own {
                today.signature
            } else {
                keys.leaf.into()
            },
            server_name: server_name(document),
            provided: provided(signed.iter().flat_map(|(_, key, signer)| [*key, *signer])),
            alike: document.chain.first().map(|leaf| alike(keys, leaf.names)),
            // Keys and signatures don't compress, and all else stays.
            brotli: brotli(document).map(|[rest, _]| {
                let incompressible = |(_, key, signer): &(_, KeyAlgorithm, KeyAlgorithm)| {
                    key.public_key_bytes() + signer.signature_bytes()
                };
                rest + signed.iter().map(incompressible).sum::<usize>()
            }),
            ..today
        })
    }
}

/// The keys that are supposed of a server whoever asks.
pub const SUPPOSED: [KeyAlgorithm; 3] = [
    KeyAlgorithm::MlDsa44,
    KeyAlgorithm::MlDsa65,
    KeyAlgorithm::MlDsa87,
];

/// How many tickets come before the response, as far as an arm can have them. Of an earlier probe they are in the response's
/// bytes; those of some servers come with their handshake.
pub fn tickets(document: &Document) -> u32 {
    let bytes = document.tls.tickets_seen.wire_bytes.unwrap_or_default();
    let tickets = if bytes > 0 { document.tls.tickets } else { 0 };
    tickets.min(MOST_TICKETS.into())
}

/// What is connected with: the group that was negotiated, or the usual one where its sizes are not known.
pub fn group(document: &Document) -> Group {
    let negotiated = document.group.as_ref();
    let negotiated = negotiated.and_then(|name| name.parse().ok());
    negotiated.unwrap_or(USUAL_GROUP)
}

/// An arm whose handshake is with that. Which server it is changes nothing: its name's length is in what is shown.
fn arm(document: &Document) -> Option<Arm> {
    let server = ArmChain::Pem(PemFiles::new("server.example:443"));
    let arm = Arm::of(group(document), server).ok()?;
    Some(retried(document, arm))
}

/// The same arm, with a HelloRetryRequest where the server sent one.
pub fn retried(document: &Document, arm: Arm) -> Arm {
    if document.tls.hello_retry {
        with_retry(arm)
    } else {
        arm
    }
}

/// The same arm, with a HelloRetryRequest: without a share for its group.
pub fn with_retry(arm: Arm) -> Arm {
    let others = [Group::X25519, Group::Secp256r1].into_iter();
    let other = others.filter(|group| *group != arm.group).take(1);
    Arm {
        key_shares: other.collect(),
        ..arm
    }
}

/// The initial window that is calculated with, in segments: the smallest that was not ruled out, and the usual one where that can
/// be or nothing was seen.
pub fn initial_window(document: &Document) -> u32 {
    let usual = Cell::default().initcwnd;
    let seen = document.window.as_ref();
    let seen = seen.filter(|window| window.certainty != Certainty::Uncertain);
    let seen = seen.map(|window| match window.certainty {
        Certainty::AtLeast => window.least.max(usual),
        _ => window.least,
    });
    document.initial_window.or(seen).unwrap_or(usual)
}

/// The rate that is supposed of a path of which nothing was seen to limit it, in Mbit/s: 1 Gbit/s, or as fast as anything came.
pub fn supposed_rate(document: &Document) -> f64 {
    const USUAL: f64 = 1000.0;
    USUAL.max(document.path.rate_at_least_mbit.unwrap_or_default())
}

/// What the server's messages have more on the wire than arithmetic has of this chain: not every server has each message in a
/// record of its own.
fn besides(document: &Document, own: &OwnChain) -> i64 {
    let seen = own.seen.wire_bytes(HandshakeFlight::Server);
    let calculated = arm(document).and_then(|arm| wire_of(&arm, Sizes::Own(own)).ok());
    let calculated = calculated.map(|exchange| exchange.sent(HandshakeFlight::Server));
    seen.zip(calculated).map_or(0, |(seen, calculated)| {
        i64::from(seen) - i64::from(calculated)
    })
}

/// A chain of the laboratory's for such keys and so many names.
fn alike(keys: impl Into<Keys>, names: usize) -> ChainSpec {
    let most = ChainSpec::MAX_NAMES;
    let keys = keys.into();
    ChainSpec {
        ca: keys.ca,
        root_key: keys.root,
        names: u8::try_from(names).map_or(most, |names| names.clamp(1, most)),
        ..ChainSpec::new(keys.leaf)
    }
}

/// What brotli leaves of the Certificate message but for keys and signatures, and with them.
fn brotli(document: &Document) -> Option<[usize; 2]> {
    let left = document.certificate_brotli_bytes? as usize;
    let whole = |certificate: &Certificate| certificate.key_bytes + certificate.signature_bytes;
    let whole: usize = document.chain.iter().map(whole).sum();
    Some([left.saturating_sub(whole), left])
}

/// The name that a client asks for.
fn server_name(document: &Document) -> usize {
    let name = document.host.rsplit_once(':').map_or("", |(name, _)| name);
    // An address is no name that could be asked for (RFC 6066, section 3).
    match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(_) => 0,
        Err(_) => name.len(),
    }
}

fn provided(keys: impl IntoIterator<Item = KeyAlgorithm>) -> usize {
    let mut keys: Vec<KeyAlgorithm> = keys.into_iter().collect();
    keys.sort_unstable();
    keys.dedup();
    keys.iter().filter(|key| key.provided().is_some()).count()
}
