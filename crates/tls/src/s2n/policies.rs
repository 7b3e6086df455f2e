//! The security policies of s2n-tls that come nearest to one group.
//!
//! A policy settles the groups, and with them the key shares: a client sends one for the first
//! post-quantum group and one for the first classical one. All are for TLS 1.3 alone where there is
//! such a one; the only others know TLS 1.2 too, which no peer here speaks.

use lastbyte_pki::KeyAlgorithm::{self, *};

use crate::Group::{self, *};
use crate::error::cannot;
use crate::observer::Side;
use crate::{StackName, TlsError};

use crate::ask::Ask;

#[derive(Debug)]
pub(super) struct Policy {
    pub(super) version: &'static str,
    /// The most preferred first.
    post_quantum: &'static [Group],
    classical: &'static [Group],
    keys: &'static [KeyAlgorithm],
}

const STACK: StackName = StackName::S2nTls;

const CLASSICAL_KEYS: &[KeyAlgorithm] = &[EcdsaP256, EcdsaP384, Rsa2048, Rsa3072, Rsa4096];

/// The narrower ones first.
static POLICIES: [Policy; 9] = [
    Policy {
        version: "20250414",
        post_quantum: &[],
        classical: &[Secp384r1],
        keys: CLASSICAL_KEYS,
    },
    Policy {
        version: "CloudFront-Upstream-TLS-1-3-2025",
        post_quantum: &[],
        classical: &[Secp256r1, X25519, Secp384r1],
        keys: CLASSICAL_KEYS,
    },
    Policy {
        version: "CloudFront-TLS-1-3-2025-no-pq",
        post_quantum: &[],
        classical: &[X25519, Secp256r1, Secp384r1],
        keys: CLASSICAL_KEYS,
    },
    Policy {
        version: "20260219",
        post_quantum: &[MlKem1024],
        classical: &[],
        keys: &[MlDsa87],
    },
    Policy {
        version: "test_pq_only",
        post_quantum: &[
            X25519MlKem768,
            Secp256r1MlKem768,
            Secp384r1MlKem1024,
            MlKem1024,
        ],
        classical: &[],
        keys: CLASSICAL_KEYS,
    },
    Policy {
        version: "20260513",
        post_quantum: &[MlKem1024],
        classical: &[Secp384r1],
        keys: &[EcdsaP256, EcdsaP384, Rsa2048, Rsa3072, Rsa4096, MlDsa87],
    },
    Policy {
        version: "CloudFront-TLS-1-3-2025",
        post_quantum: &[X25519MlKem768, Secp256r1MlKem768],
        classical: &[X25519, Secp256r1, Secp384r1],
        keys: CLASSICAL_KEYS,
    },
    Policy {
        version: "CloudFront-Upstream-TLS-1-3-2025-PQ",
        post_quantum: &[X25519MlKem768, Secp256r1MlKem768, Secp384r1MlKem1024],
        classical: &[Secp256r1, X25519, Secp384r1],
        keys: CLASSICAL_KEYS,
    },
    Policy {
        version: "20250721",
        post_quantum: &[X25519MlKem768, Secp256r1MlKem768, Secp384r1MlKem1024],
        classical: &[Secp256r1, X25519, Secp384r1],
        keys: &[
            EcdsaP256, EcdsaP384, Rsa2048, Rsa3072, Rsa4096, MlDsa44, MlDsa65, MlDsa87,
        ],
    },
];

impl Policy {
    /// The policy for one side.
    pub(super) fn of(ask: &Ask) -> Result<&'static Policy, TlsError> {
        let all: Vec<KeyAlgorithm> = POLICIES
            .iter()
            .flat_map(|policy| policy.keys)
            .copied()
            .collect();
        ask.check_keys(STACK, &all)?;
        match ask.side {
            Side::Client => Self::of_client(ask),
            Side::Server => Self::of_server(ask),
        }
    }

    fn of_client(ask: &Ask) -> Result<&'static Policy, TlsError> {
        POLICIES
            .iter()
            .find(|policy| {
                policy.has_keys(ask)
                    && policy.groups().any(|group| group == ask.group)
                    && policy.key_shares().eq(ask.key_shares.iter().copied())
            })
            .ok_or_else(|| {
                cannot(
                    STACK,
                    "send these key shares for this group and key algorithm",
                    format!("give it one of these: {}", possible_key_shares(ask)),
                )
            })
    }

    /// A server does what one with a single group would do as long as it chooses that one.
    fn of_server(ask: &Ask) -> Result<&'static Policy, TlsError> {
        let offered = match ask.peer {
            // It offers all groups of its policy.
            StackName::S2nTls => Self::of_client(ask)?.groups().collect(),
            StackName::OpenSsl | StackName::Rustls => ask.client_groups.clone(),
        };
        POLICIES
            .iter()
            .find(|policy| {
                policy.has_keys(ask) && policy.choice(&offered, &ask.key_shares) == Some(ask.group)
            })
            .ok_or_else(|| {
                cannot(
                    STACK,
                    format!(
                        "be made to choose {} from these groups and key algorithm",
                        ask.group
                    ),
                    "choose other groups, keys or another stack",
                )
            })
    }

    /// What a server chooses of what a client offers.
    fn choice(&self, offered: &[Group], key_shares: &[Group]) -> Option<Group> {
        let choose = |ours: &[Group]| {
            let mutual = || ours.iter().copied().filter(|group| offered.contains(group));
            mutual()
                .find(|group| key_shares.contains(group))
                .or_else(|| mutual().next())
        };
        choose(self.post_quantum).or_else(|| choose(self.classical))
    }

    fn has_keys(&self, ask: &Ask) -> bool {
        ask.keys()
            .all(|key| key.is_some_and(|key| self.keys.contains(&key)))
    }

    fn groups(&self) -> impl Iterator<Item = Group> {
        self.post_quantum.iter().chain(self.classical).copied()
    }

    fn key_shares(&self) -> impl Iterator<Item = Group> {
        self.post_quantum
            .iter()
            .take(1)
            .chain(self.classical.iter().take(1))
            .copied()
    }
}

/// What a client can send key shares for, for the group and the keys that are asked for.
fn possible_key_shares(ask: &Ask) -> String {
    let mut possible: Vec<String> = Vec::new();
    for policy in &POLICIES {
        if policy.has_keys(ask) && policy.groups().any(|group| group == ask.group) {
            let names: Vec<_> = policy.key_shares().map(Group::name).collect();
            possible.push(names.join(" and "));
        }
    }
    possible.dedup();
    if possible.is_empty() {
        "none, choose another group, key algorithm or stack".to_owned()
    } else {
        possible.join("; ")
    }
}
