//! What each side of each stack can be configured for.

use lastbyte_link::named;
use lastbyte_pki::KeyAlgorithm;
use lastbyte_sizes::framing;

use crate::ask::{Ask, Material};
use crate::observer::Side;
use crate::stacks::{implementation, version};
use crate::{Delivery, Group, Resumption, StackName};

/// What one side of one implementation can be configured for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The implementation.
    pub stack: StackName,
    /// Which side of it.
    pub side: Side,
    /// What it negotiates in one round trip, with a key share for that group alone: with each key
    /// algorithm, these groups.
    pub groups: Vec<(KeyAlgorithm, Vec<Group>)>,
    /// The algorithms that it proves itself with and verifies, with some key shares at least.
    pub key_algorithms: Vec<KeyAlgorithm>,
    /// The lists of two key shares that a client sends, or that a server copes with.
    pub two_key_shares: Vec<[Group; 2]>,
    /// What else it can do.
    pub features: Vec<Feature>,
    /// The most tickets that a server sends after a handshake; of a client, those that it takes.
    pub max_tickets: u8,
    /// Bytes of the largest Certificate message that it takes.
    pub max_certificate_message: usize,
}

/// Something that not every implementation can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// A client proves itself, a server asks for that.
    MutualTls,
    /// Sessions are resumed.
    Resumption,
    /// Sessions are resumed though the client proved itself.
    MutualResumption,
    /// Requests are sent and taken as early data (0-RTT).
    EarlyData,
    /// The key shares can be such that a HelloRetryRequest follows.
    HelloRetryRequest,
    /// The size of the certificate list that it takes can be set.
    CertificateListLimit,
}

named!(Feature, {
    MutualTls => "mutual TLS",
    Resumption => "resumption",
    MutualResumption => "resumption with mutual TLS",
    EarlyData => "early data",
    HelloRetryRequest => "HelloRetryRequest",
    CertificateListLimit => "limit of the certificate list",
});

/// What all implementations that are built in can be configured for, the clients first.
///
/// These are the answers of the same checks that [`stack`](crate::stack) makes. They hold with
/// OpenSSL on the other side.
pub fn capabilities() -> Vec<Capabilities> {
    [Side::Client, Side::Server]
        .into_iter()
        .flat_map(|side| {
            let built_in = StackName::ALL
                .into_iter()
                .filter(|stack| version(*stack).is_some());
            built_in.map(move |stack| Questions { stack, side }.ask())
        })
        .collect()
}

/// Whether one side of an implementation can be configured for a delivery, whatever the chain. As
/// [`capabilities`] tells of all else.
pub fn delivers(stack: StackName, side: Side, delivery: &Delivery) -> bool {
    let questions = Questions { stack, side };
    questions.can(&Ask {
        delivery: delivery.clone(),
        ..questions.plain()
    })
}

struct Questions {
    stack: StackName,
    side: Side,
}

impl Questions {
    fn ask(&self) -> Capabilities {
        let pairs = Group::ALL.into_iter().flat_map(|first| {
            let others = Group::ALL
                .into_iter()
                .filter(move |&second| second != first);
            others.map(move |second| [first, second])
        });
        let two_key_shares: Vec<_> = pairs.filter(|pair| self.sends(pair)).collect();
        let groups_of = |key| {
            let groups = Group::ALL.into_iter();
            let alone = groups.filter(|&group| self.can(&self.base(key, group, &[group])));
            (key, alone.collect())
        };
        let uses = |key: &KeyAlgorithm| {
            let alone = Group::ALL
                .into_iter()
                .any(|group| self.can(&self.base(*key, group, &[group])));
            let two = |pair: &[Group; 2]| self.can(&self.base(*key, pair[0], pair));
            alone || two_key_shares.iter().any(two)
        };
        Capabilities {
            stack: self.stack,
            side: self.side,
            groups: KeyAlgorithm::ALL.map(groups_of).into(),
            key_algorithms: KeyAlgorithm::ALL.into_iter().filter(uses).collect(),
            features: Feature::ALL
                .into_iter()
                .filter(|&feature| self.has(feature))
                .collect(),
            max_tickets: self.most(u8::MAX.into(), |ask, tickets| {
                ask.tickets = u8::try_from(tickets).unwrap_or(u8::MAX);
            }) as u8,
            max_certificate_message: self.most(framing::MAX_MESSAGE, |ask, bytes| {
                ask.verifies = ask.proves.take().or(ask.verifies.take());
                if let Some(material) = &mut ask.verifies {
                    material.certificate_message_bytes = bytes;
                }
            }),
            two_key_shares,
        }
    }

    /// A handshake that every stack can do.
    fn plain(&self) -> Ask {
        self.base(KeyAlgorithm::EcdsaP256, Group::X25519, &[Group::X25519])
    }

    fn base(&self, key: KeyAlgorithm, group: Group, key_shares: &[Group]) -> Ask {
        let mut client_groups = key_shares.to_vec();
        if !client_groups.contains(&group) {
            client_groups.push(group);
        }
        let material = || {
            Some(Material {
                keys: vec![Some(key)],
                certificate_message_bytes: 0,
            })
        };
        Ask {
            side: self.side,
            group,
            key_shares: key_shares.to_vec(),
            client_groups,
            peer: StackName::OpenSsl,
            proves: material().filter(|_| self.side == Side::Server),
            verifies: material().filter(|_| self.side == Side::Client),
            resumption: Resumption::Full,
            tickets: 0,
            delivery: Delivery::Full,
            max_certificate_list: None,
        }
    }

    fn can(&self, ask: &Ask) -> bool {
        let implementation = implementation(self.stack);
        implementation.is_ok_and(|implementation| implementation.check(ask).is_ok())
    }

    fn sends(&self, key_shares: &[Group]) -> bool {
        key_shares.iter().any(|&group| {
            let mut keys = KeyAlgorithm::ALL.into_iter();
            keys.any(|key| self.can(&self.base(key, group, key_shares)))
        })
    }

    fn has(&self, feature: Feature) -> bool {
        let mut ask = self.plain();
        let mutual = |ask: &mut Ask| {
            ask.proves = ask.proves.take().or_else(|| ask.verifies.clone());
            ask.verifies = ask.verifies.take().or_else(|| ask.proves.clone());
        };
        match feature {
            Feature::MutualTls => mutual(&mut ask),
            Feature::Resumption => ask.resumption = Resumption::Ticket,
            Feature::MutualResumption => {
                mutual(&mut ask);
                ask.resumption = Resumption::Ticket;
            }
            Feature::EarlyData => ask.resumption = Resumption::EarlyData,
            Feature::HelloRetryRequest => {
                let wrong = |group| {
                    let ask = self.base(KeyAlgorithm::EcdsaP256, group, &[Group::X25519]);
                    group != Group::X25519 && self.can(&ask)
                };
                return Group::ALL.into_iter().any(wrong);
            }
            Feature::CertificateListLimit => {
                mutual(&mut ask);
                ask.max_certificate_list = Some(1 << 12);
            }
        }
        self.can(&ask)
    }

    /// The most, up to `limit`, that `set` can set.
    fn most(&self, limit: usize, set: impl Fn(&mut Ask, usize)) -> usize {
        let can = |value| {
            let mut ask = self.plain();
            set(&mut ask, value);
            self.can(&ask)
        };
        let (mut possible, mut impossible) = (0, limit + 1);
        while impossible - possible > 1 {
            let middle = possible.midpoint(impossible);
            if can(middle) {
                possible = middle;
            } else {
                impossible = middle;
            }
        }
        possible
    }
}

#[cfg(test)]
mod tests;
