//! What the chain of a kind of site has where an arm does not say: how many intermediates, and which timestamps.
//!
//! An arm in a study has just what it says. On the command line, readers name an algorithm and mean their own site.

use lastbyte_link::named;

use super::{Arm, ArmChain};

/// A kind of site, by the shape of its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChainProfile {
    /// A site that browsers trust.
    #[default]
    Public,
    /// A company's own authority, a laboratory, or a paper's harness.
    Private,
}

named!(ChainProfile, "chain profile", {
    Public => "public",
    Private => "private",
});

/// A key of an arm that a profile says, with what the value rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfiledKey {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// What public sites have, by 8,151 chains of the Tranco top 10,000 as they were sent on 2026-08-07
/// (doi:10.5281/zenodo.21846142): 66 % have two intermediates, 23 % one and 10 % three; 51 % have three timestamps and
/// 48 % two; 87 % leave the root out.
const PUBLIC: [ProfiledKey; 2] = [
    ProfiledKey {
        key: "intermediates",
        value: "2",
        source: "66 % of 8,151 chains of the Tranco top 10,000 (2026-08)",
    },
    ProfiledKey {
        key: "scts",
        value: "2",
        source: "48 % of them have two, 51 % three (2026-08); logs sign with ECDSA, as an arm has it by itself",
    },
];

impl ChainProfile {
    /// What a chain of it has where nothing is said.
    pub fn keys(self) -> &'static [ProfiledKey] {
        match self {
            ChainProfile::Public => &PUBLIC,
            // What an arm has by itself: one intermediate and no timestamps.
            ChainProfile::Private => &[],
        }
    }

    /// The arm with what its chain has on such a site, under its own name. What the arm says itself stays, and so does a chain
    /// that is a file, a server's, or of a size.
    pub fn of(self, arm: &Arm) -> Arm {
        let ArmChain::Made(spec) = &arm.chain else {
            return arm.clone();
        };
        if spec.certificate_bytes.is_some() || arm.delivery.is_alone() {
            return arm.clone();
        }
        let said = self
            .keys()
            .iter()
            .filter(|profiled| !arm.says(profiled.key));
        let said: Vec<(&str, &str)> = said
            .map(|profiled| (profiled.key, profiled.value))
            .collect();
        match arm.with_all(&said) {
            Ok(profiled) => Arm {
                name: arm.name.clone(),
                ..profiled
            },
            // What can't be had with what the arm says, the arm goes without.
            Err(_) => arm.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn public(arm: &str) -> Arm {
        ChainProfile::Public.of(&arm.parse().unwrap())
    }

    #[test]
    fn a_public_chain_has_what_public_chains_have() {
        let arm = public("X25519MLKEM768/ml-dsa-44");
        assert_eq!(arm.name, "X25519MLKEM768/ml-dsa-44");
        assert_eq!(arm.label, "X25519MLKEM768/ml-dsa-44/intermediates=2/scts=2");
        // What has been filled in once is what the arm says.
        assert_eq!(ChainProfile::Public.of(&arm), arm);
    }

    #[test]
    fn what_an_arm_says_stays() {
        for (said, label) in [
            (
                "X25519MLKEM768/ml-dsa-44/intermediates=1",
                "X25519MLKEM768/ml-dsa-44/intermediates=1/scts=2",
            ),
            (
                "X25519MLKEM768/ml-dsa-44/scts=0",
                "X25519MLKEM768/ml-dsa-44/scts=0/intermediates=2",
            ),
            (
                "X25519MLKEM768/ml-dsa-44/scts=3/sct_algorithm=ml-dsa-44",
                "X25519MLKEM768/ml-dsa-44/scts=3/sct_algorithm=ml-dsa-44/intermediates=2",
            ),
            // Of a size, of a file, of a server, and without timestamps.
            (
                "X25519MLKEM768/ml-dsa-44:16KB",
                "X25519MLKEM768/ml-dsa-44:16KB",
            ),
            ("X25519MLKEM768/chain.pem", "X25519MLKEM768/chain.pem"),
            (
                "X25519MLKEM768/example.com:443",
                "X25519MLKEM768/example.com:443",
            ),
            (
                "X25519MLKEM768/ml-dsa-44/delivery=mtc-landmark",
                "X25519MLKEM768/ml-dsa-44/delivery=mtc-landmark",
            ),
        ] {
            assert_eq!(public(said).label, label);
            let arm: Arm = said.parse().unwrap();
            assert_eq!(ChainProfile::Private.of(&arm), arm);
        }
    }

    #[test]
    fn every_value_is_possible_and_has_its_source() {
        for profile in ChainProfile::ALL {
            for ProfiledKey { key, value, source } in profile.keys() {
                let arm = format!("x25519/ecdsa-p256/{key}={value}");
                assert!(arm.parse::<Arm>().is_ok(), "{arm}");
                assert!(source.contains("20"), "{source}");
            }
        }
    }
}
