//! What a relying party does with a certificate (section 7): whom it trusts, and why it refuses.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use crate::certificate::{CaCertificate, Certificate, CertificateError};
use crate::cosign::{CheckCosignature, CosignedSubtree, Signature};
use crate::hash::HashValue;
use crate::id::{IdError, LogId, LogNumber, TrustAnchorId};
use crate::landmark::Landmarks;
use crate::subtree::{ProofError, Subtree};
use crate::time::UnixTime;

/// Why a certificate is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It can't be read.
    #[error("{0}")]
    Certificate(#[from] CertificateError),
    /// Its issuer is not trusted.
    #[error("the CA {0} is not trusted")]
    UnknownAuthority(TrustAnchorId),
    /// Its issuer's name is too long for names of logs.
    #[error("{0}")]
    Id(#[from] IdError),
    /// Its serial number is none that the CA may issue, or revoked.
    #[error("serial number {0} is revoked, or none that the CA may issue")]
    Serial(u64),
    /// It holds from later on.
    #[error("it holds only from {from}, and it is {now}")]
    NotYetValid {
        /// From when it holds.
        from: UnixTime,
        /// The time given.
        now: UnixTime,
    },
    /// It holds no more.
    #[error("it held up to {to}, and it is {now}")]
    Expired {
        /// Up to when it held.
        to: UnixTime,
        /// The time given.
        now: UnixTime,
    },
    /// It has an extension that must be known, and is not.
    #[error("it has a critical extension that is not known")]
    Critical,
    /// Its proof is none of its entry.
    #[error("{0}")]
    Proof(#[from] ProofError),
    /// The subtree is a trusted one, and another one.
    #[error("{subtree} of log {log} is trusted with another hash: the entry is not in that log")]
    OtherSubtree {
        /// Which log.
        log: LogNumber,
        /// Which subtree.
        subtree: Subtree,
    },
    /// It has no signatures, and its subtree is not known: the landmark is too new, too old or of
    /// another log.
    #[error("{subtree} of log {log} is not trusted, and nobody vouches for it")]
    UnknownSubtree {
        /// Which log.
        log: LogNumber,
        /// Which subtree.
        subtree: Subtree,
    },
    /// A signature of somebody who is known is wrong.
    #[error("the cosignature of {0} is wrong")]
    Cosignature(TrustAnchorId),
    /// Too few of those who should vouch for it do.
    #[error("{found} of the {required} cosigners needed among {group} vouch for it")]
    TooFewCosigners {
        /// As many as do.
        found: usize,
        /// As many as should.
        required: usize,
        /// Among whom.
        group: Group,
    },
}

/// Cosigners of whom so many must vouch for a subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As many as must.
    pub required: usize,
    /// Of whom.
    pub members: Vec<TrustAnchorId>,
}

impl Group {
    /// All of these.
    pub fn all(members: impl IntoIterator<Item = TrustAnchorId>) -> Group {
        let members: Vec<_> = members.into_iter().collect();
        Group {
            required: members.len(),
            members,
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, member) in self.members.iter().enumerate() {
            write!(f, "{}{member}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Why a certificate was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trusted {
    /// Its subtree was known beforehand: no signature was looked at.
    Subtree(Subtree),
    /// These cosigners vouch for its subtree.
    Cosigned(Vec<TrustAnchorId>),
}

/// A certificate that was accepted.
#[derive(Clone, Debug)]
pub struct Verified<'a> {
    /// The certificate.
    pub certificate: Certificate<'a>,
    /// Why.
    pub trusted: Trusted,
}

/// A CA that is trusted, and under which conditions. What it may be cosigned by and what is known
/// of its logs is empty at first.
pub struct TrustedAuthority {
    id: TrustAnchorId,
    serials: RangeInclusive<u64>,
    revoked: Vec<RangeInclusive<u64>>,
    cosigners: BTreeMap<TrustAnchorId, Box<dyn CheckCosignature>>,
    policy: Vec<Group>,
    subtrees: BTreeMap<(LogNumber, Subtree), HashValue>,
}

impl TrustedAuthority {
    /// A CA of which all serial numbers are accepted. Its own cosignature is always required for
    /// certificates whose subtree is not known, so it must be among the
    /// [`cosigners`](Self::cosigner).
    pub fn new(id: TrustAnchorId) -> TrustedAuthority {
        TrustedAuthority {
            policy: vec![Group::all([id.clone()])],
            id,
            serials: CaCertificate::ALL_SERIALS,
            revoked: Vec::new(),
            cosigners: BTreeMap::new(),
            subtrees: BTreeMap::new(),
        }
    }

    /// A CA as its certificate describes it. `key` checks with the certificate's key.
    pub fn of(certificate: &CaCertificate, key: Box<dyn CheckCosignature>) -> TrustedAuthority {
        let mut authority = TrustedAuthority::new(certificate.id.clone());
        authority.serials = certificate.serials.clone();
        authority.cosigner(certificate.id.clone(), key);
        authority
    }

    /// Its name.
    pub fn id(&self) -> &TrustAnchorId {
        &self.id
    }

    /// Knows a cosigner. Those who are not known are passed over in certificates, and not counted.
    pub fn cosigner(&mut self, id: TrustAnchorId, key: Box<dyn CheckCosignature>) {
        self.cosigners.insert(id, key);
    }

    /// Asks for cosigners besides the CA.
    pub fn require(&mut self, group: Group) {
        self.policy.push(group);
    }

    /// Refuses certificates with these serial numbers from now on.
    pub fn revoke(&mut self, serials: RangeInclusive<u64>) {
        self.revoked.push(serials);
    }

    /// Trusts a subtree of one of its logs. Whoever says so has made sure that it is consistent
    /// with what the required cosigners have signed.
    pub fn trust(&mut self, log: LogNumber, subtree: Subtree, hash: HashValue) {
        self.subtrees.insert((log, subtree), hash);
    }

    /// Trusts a subtree once it is shown to be a part of a tree that is trusted already, such as
    /// that of a checkpoint whose cosignatures were checked.
    ///
    /// # Errors
    ///
    /// If it is not shown.
    pub fn trust_part(
        &mut self,
        log: LogNumber,
        (subtree, hash): (Subtree, HashValue),
        (size, root): (u64, HashValue),
        proof: &[HashValue],
    ) -> Result<(), ProofError> {
        subtree.check_consistency(hash, size, root, proof)?;
        self.trust(log, subtree, hash);
        Ok(())
    }

    /// Forgets the subtrees of a log that are none of landmarks of use at a time, of which `limit`
    /// are kept.
    pub fn keep_active(
        &mut self,
        log: LogNumber,
        landmarks: &Landmarks,
        now: UnixTime,
        limit: usize,
    ) {
        let active = landmarks.active(now, limit).unwrap_or_default().iter();
        let active: Vec<Subtree> = active
            .filter_map(|landmark| landmarks.subtrees(landmark.number))
            .flatten()
            .collect();
        self.subtrees
            .retain(|(of, subtree), _| *of != log || active.contains(subtree));
    }

    /// The subtrees that it trusts: what a client holds beforehand, 32 bytes each.
    pub fn subtrees(&self) -> usize {
        self.subtrees.len()
    }

    fn verify<'a>(
        &self,
        certificate: Certificate<'a>,
        now: UnixTime,
    ) -> Result<Verified<'a>, Refusal> {
        let serial = certificate.serial();
        let is_revoked = self.revoked.iter().any(|range| range.contains(&serial));
        if is_revoked || !self.serials.contains(&serial) {
            return Err(Refusal::Serial(serial));
        }
        let validity = certificate.validity();
        if now < validity.from {
            let from = validity.from;
            return Err(Refusal::NotYetValid { from, now });
        }
        if now > validity.to {
            let to = validity.to;
            return Err(Refusal::Expired { to, now });
        }
        if certificate.has_unknown_critical() {
            return Err(Refusal::Critical);
        }
        let (log, subtree) = (certificate.log, certificate.proof.subtree);
        let hash = subtree.evaluate(
            certificate.index,
            certificate.leaf(),
            &certificate.proof.path,
        )?;
        let trusted = match self.subtrees.get(&(log, subtree)) {
            Some(trusted) if *trusted == hash => Trusted::Subtree(subtree),
            Some(_) => return Err(Refusal::OtherSubtree { log, subtree }),
            None if certificate.proof.cosignatures.is_empty() => {
                return Err(Refusal::UnknownSubtree { log, subtree });
            }
            None => Trusted::Cosigned(self.cosigned(&certificate, hash)?),
        };
        Ok(Verified {
            certificate,
            trusted,
        })
    }

    /// Who vouches for a certificate's subtree, if they are enough.
    fn cosigned(
        &self,
        certificate: &Certificate<'_>,
        hash: HashValue,
    ) -> Result<Vec<TrustAnchorId>, Refusal> {
        let log = LogId::new(self.id.clone(), certificate.log)?;
        let subtree = CosignedSubtree::of_certificates(&log, certificate.proof.subtree, hash);
        let mut found = Vec::new();
        for cosignature in &certificate.proof.cosignatures {
            // Nobody whom we know: perhaps one of the made-up ones that keep clients tolerant.
            let Ok(id) = TrustAnchorId::from_bytes(&cosignature.cosigner) else {
                continue;
            };
            let Some(key) = self.cosigners.get(&id) else {
                continue;
            };
            match key.check(&subtree.message(&id), &cosignature.signature) {
                Signature::Good => found.push(id),
                Signature::Bad => return Err(Refusal::Cosignature(id)),
            }
        }
        for group in &self.policy {
            let of_group = found.iter().filter(|id| group.members.contains(id));
            let found = of_group.count();
            if found < group.required {
                let required = group.required;
                let group = group.clone();
                return Err(Refusal::TooFewCosigners {
                    found,
                    required,
                    group,
                });
            }
        }
        Ok(found)
    }
}

impl fmt::Debug for TrustedAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedAuthority")
            .field("id", &self.id)
            .field("policy", &self.policy)
            .field("subtrees", &self.subtrees.len())
            .finish_non_exhaustive()
    }
}

/// Verifies certificates of the CAs that it trusts.
#[derive(Debug, Default)]
pub struct RelyingParty {
    authorities: BTreeMap<TrustAnchorId, TrustedAuthority>,
}

impl RelyingParty {
    /// One that trusts nobody.
    pub fn new() -> RelyingParty {
        RelyingParty::default()
    }

    /// Trusts a CA, in the place of what it knew of it.
    pub fn trust(&mut self, authority: TrustedAuthority) {
        self.authorities.insert(authority.id.clone(), authority);
    }

    /// What it knows of a CA.
    pub fn authority(&mut self, id: &TrustAnchorId) -> Option<&mut TrustedAuthority> {
        self.authorities.get_mut(id)
    }

    /// Verifies a certificate at a time. The hosts it is for, the chain around it and whether its
    /// key was really used are the caller's to check.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub fn verify<'a>(
        &self,
        certificate: &'a [u8],
        now: UnixTime,
    ) -> Result<Verified<'a>, Refusal> {
        let certificate = Certificate::parse(certificate)?;
        let issuer = certificate.issuer();
        match self.authorities.get(issuer) {
            Some(authority) => authority.verify(certificate, now),
            None => Err(Refusal::UnknownAuthority(issuer.clone())),
        }
    }
}

#[cfg(test)]
mod tests;
