//! What a server holds and what it leaves out for whom: no socket, no clock, no TLS.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use lastbyte_sizes::{SLH_DSA, TlsSignature};
use openssl::asn1::{Asn1Object, Asn1Time};
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private, Public};
use openssl::x509::{X509, X509Ref};
use thiserror::Error;

use crate::ffi::{self, reason};
use crate::{CertificateList, Digest, ListError, Part};

/// A chain as a server sends it.
#[derive(Clone)]
pub struct PublicChain {
    /// The end-entity first. The root is the last if the server sends it.
    certificates: Vec<X509>,
    ders: Vec<Vec<u8>>,
    key: PKey<Public>,
    names: Vec<String>,
    /// Of the topmost one, two, … certificates.
    digests: Vec<Digest>,
    valid_until: SystemTime,
    is_slh_dsa: bool,
}

/// A chain, and the key that a server signs with.
#[derive(Clone)]
pub struct Chain {
    public: PublicChain,
    key: PKey<Private>,
}

impl PublicChain {
    /// These certificates, the end-entity first. The names are those of its subjectAltName.
    ///
    /// # Errors
    /// [`ChainError`] if there are none, or if they are too many or too large.
    pub fn new(certificates: Vec<X509>) -> Result<PublicChain, ChainError> {
        let end_entity = certificates.first().ok_or(ListError::Empty)?;
        let key = end_entity.public_key()?;
        let names = dns_names(end_entity);
        let ders: Vec<Vec<u8>> = certificates
            .iter()
            .map(|certificate| certificate.to_der())
            .collect::<Result<_, _>>()?;
        let digests = (1..=ders.len())
            .map(|count| Ok(topmost(&ders, count)?.digest()))
            .collect::<Result<_, ListError>>()?;
        let expiries = certificates.iter().map(|certificate| expiry(certificate));
        let valid_until = expiries.collect::<Result<Vec<_>, _>>()?.into_iter().min();
        Ok(PublicChain {
            valid_until: valid_until.unwrap_or(SystemTime::UNIX_EPOCH),
            is_slh_dsa: is_slh_dsa(end_entity),
            certificates,
            ders,
            key,
            names,
            digests,
        })
    }

    /// From PEM: the end-entity first, as web servers take them.
    ///
    /// # Errors
    /// As [`PublicChain::new`], and for what is no PEM.
    pub fn from_pem(chain: &[u8]) -> Result<PublicChain, ChainError> {
        PublicChain::new(X509::stack_from_pem(chain)?)
    }

    /// All that it sends, the end-entity first.
    pub fn certificates(&self) -> &[X509] {
        &self.certificates
    }

    /// The end-entity.
    pub fn end_entity(&self) -> &X509Ref {
        // There is one: see `new`.
        &self.certificates[0]
    }

    /// The end-entity's key.
    pub fn public_key(&self) -> &PKey<Public> {
        &self.key
    }

    /// The DNS names that it is for, in lower case.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// When the first of its certificates expires.
    pub fn valid_until(&self) -> SystemTime {
        self.valid_until
    }

    /// The algorithm of the end-entity's key by OpenSSL's name, such as `ML-DSA-65`.
    pub fn key_algorithm(&self) -> &'static str {
        let name = ffi::key_algorithm(self.end_entity()).long_name();
        name.unwrap_or("unknown")
    }

    /// Whether all clients of TLS 1.3 can be expected to verify what the end-entity signs: with
    /// RSA, ECDSA or EdDSA.
    pub fn is_classical(&self) -> bool {
        const EDDSA: [Id; 2] = [Id::ED25519, Id::ED448];
        let own = ffi::key_algorithm(self.end_entity());
        [
            Nid::RSAENCRYPTION,
            Nid::RSASSAPSS,
            Nid::X9_62_ID_ECPUBLICKEY,
        ]
        .contains(&own)
            || EDDSA.iter().any(|id| id.as_raw() == own.as_raw())
    }

    /// Whether the end-entity signs with SLH-DSA, which takes long.
    pub(crate) fn is_slh_dsa(&self) -> bool {
        self.is_slh_dsa
    }

    /// Bytes of each certificate's DER, the end-entity's first.
    pub fn lengths(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        self.ders.iter().map(Vec::len)
    }

    /// Of the whole chain.
    pub fn digest(&self) -> Digest {
        // There is at least one: see `new`.
        self.digests[self.digests.len() - 1]
    }

    /// How many certificates from the top have this digest.
    pub fn matches(&self, digest: &Digest) -> Option<usize> {
        let at = self.digests.iter().position(|own| own == digest)?;
        Some(at + 1)
    }

    /// What the topmost `count` certificates are, from 1 to all of them.
    pub fn part(&self, count: usize) -> Part {
        match count {
            _ if count >= self.certificates.len() => Part::EndEntity,
            1 if self.sends_root() => Part::Root,
            _ => Part::Intermediate,
        }
    }

    /// How many certificates from the top a part has.
    ///
    /// # Errors
    /// [`ChainError::NoSuchPart`] if the chain has none of the kind.
    pub fn count(&self, part: Part) -> Result<usize, ChainError> {
        let all = self.certificates.len();
        let count = match part {
            Part::Root => 1,
            Part::Intermediate => all - 1,
            Part::EndEntity => all,
        };
        if count > 0 && self.part(count) == part {
            Ok(count)
        } else {
            Err(ChainError::NoSuchPart(part))
        }
    }

    /// The topmost `count` certificates, as DNS delivers them.
    ///
    /// # Errors
    /// [`ListError`] if there are none.
    pub fn topmost(&self, count: usize) -> Result<CertificateList, ListError> {
        topmost(&self.ders, count)
    }

    fn sends_root(&self) -> bool {
        let top = self.certificates.last();
        top.is_some_and(|top| top.issued(top) == openssl::x509::X509VerifyResult::OK)
    }

    /// Whether it is for `name`, which is in lower case.
    pub fn is_for(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|own| match own.strip_prefix("*.") {
            Some(own) => parent == Some(own),
            None => own == name,
        })
    }
}

impl Chain {
    /// These certificates, the end-entity first, with the end-entity's key.
    ///
    /// # Errors
    /// As [`PublicChain::new`], and if the key is another's.
    pub fn new(certificates: Vec<X509>, key: PKey<Private>) -> Result<Chain, ChainError> {
        let public = PublicChain::new(certificates)?;
        if public.key.public_eq(&key) {
            Ok(Chain { public, key })
        } else {
            Err(ChainError::OtherKey)
        }
    }

    /// From PEM.
    ///
    /// # Errors
    /// As [`Chain::new`], and for what is no PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Chain, ChainError> {
        // With a passphrase, so that OpenSSL never asks for one.
        let key = PKey::private_key_from_pem_passphrase(key, b"")?;
        Chain::new(X509::stack_from_pem(chain)?, key)
    }

    /// The end-entity's key.
    pub fn key(&self) -> &PKey<Private> {
        &self.key
    }

    /// One that answers to the digests of `own`, with the certificates of `sent` and the key of
    /// `impostor`.
    #[cfg(test)]
    pub(crate) fn pretending(own: &Chain, sent: &Chain, impostor: &Chain) -> Chain {
        Chain {
            public: PublicChain {
                certificates: sent.certificates.clone(),
                ..own.public.clone()
            },
            key: impostor.key.clone(),
        }
    }
}

/// Of what a client may know of it.
impl Deref for Chain {
    type Target = PublicChain;

    fn deref(&self) -> &PublicChain {
        &self.public
    }
}

impl fmt::Debug for PublicChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicChain")
            .field("names", &self.names)
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chain").field(&self.public).finish()
    }
}

/// When a certificate expires.
///
/// # Errors
/// OpenSSL's, for a time that is none.
pub fn expiry(certificate: &X509Ref) -> Result<SystemTime, ErrorStack> {
    const DAY: i64 = 86_400;
    let since = Asn1Time::from_unix(0)?.diff(certificate.not_after())?;
    let seconds = i64::from(since.days) * DAY + i64::from(since.secs);
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Ok(SystemTime::UNIX_EPOCH + seconds)
}

fn is_slh_dsa(certificate: &X509Ref) -> bool {
    let own = ffi::key_algorithm(certificate);
    let nid = |signature: &TlsSignature| {
        Some(
            Asn1Object::from_str(signature.oid.to_str().ok()?)
                .ok()?
                .nid(),
        )
    };
    own != Nid::UNDEF && SLH_DSA.iter().any(|signature| nid(signature) == Some(own))
}

fn topmost(ders: &[Vec<u8>], count: usize) -> Result<CertificateList, ListError> {
    CertificateList::new(ders.iter().rev().take(count).cloned().collect())
}

fn dns_names(certificate: &X509Ref) -> Vec<String> {
    let names = certificate.subject_alt_names();
    let names = names.iter().flatten().filter_map(|name| name.dnsname());
    names.map(str::to_ascii_lowercase).collect()
}

/// Why there is no such chain.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// Its certificates can't be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// The key is not the end-entity's.
    #[error("the key is not that of the first certificate")]
    OtherKey,
    /// There is no such part.
    #[error("the chain has no {0} to publish")]
    NoSuchPart(Part),
    /// OpenSSL can't read it.
    #[error("{}", reason(.0))]
    OpenSsl(#[from] ErrorStack),
}

/// All chains that a server answers with. A name can have several, of different algorithms.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    current: Vec<Arc<Chain>>,
    previous: Vec<Previous>,
}

/// A chain that records may still deliver.
#[derive(Clone, Debug)]
struct Previous {
    chain: Arc<Chain>,
    until: SystemTime,
}

/// What a server sends to one client.
#[derive(Clone, Debug)]
pub enum Selection {
    /// One of these chains, without what the client has: whichever it can verify, the first if it
    /// can verify several of one algorithm. There is at least one, and no other if the client has
    /// it whole.
    Without(Vec<Omission>),
    /// One of these chains, whole: whichever the client can verify. They are those of the name that
    /// it asked for, or of the first chain if none is for that.
    Whole(Vec<Arc<Chain>>),
}

/// A chain that is not sent whole.
#[derive(Clone, Debug)]
pub struct Omission {
    /// The chain.
    pub chain: Arc<Chain>,
    /// Certificates that are left out, from the top.
    pub omitted: usize,
}

impl Omission {
    /// Whether even the end-entity is left out.
    pub fn is_whole(&self) -> bool {
        self.omitted == self.chain.certificates().len()
    }
}

impl Chains {
    /// These chains, the first of which is for clients that ask for no known name.
    pub fn new(chains: Vec<Chain>) -> Chains {
        Chains {
            current: chains.into_iter().map(Arc::new).collect(),
            previous: Vec::new(),
        }
    }

    /// Sends `chains` from now on. Those that they replace stay good for whoever has them from DNS
    /// until `until`: the records' TTL after the last moment at which one of them can have been
    /// answered. If one expires before that, it is good no longer.
    pub fn rotate(&mut self, chains: Vec<Chain>, until: SystemTime) {
        let new = Chains::new(chains).current;
        let is_new = |digest: Digest| new.iter().any(|chain| chain.digest() == digest);
        self.previous.retain(|old| !is_new(old.chain.digest()));
        for chain in std::mem::replace(&mut self.current, new.clone()) {
            if !is_new(chain.digest()) {
                let until = until.min(chain.valid_until());
                self.previous.push(Previous { chain, until });
            }
        }
    }

    /// Forgets the chains that were good until `now` at most.
    pub fn expire(&mut self, now: SystemTime) {
        self.previous.retain(|old| old.until > now);
    }

    /// Forgets all chains that others have replaced, and their keys: after a key became known, say.
    pub fn forget(&mut self) {
        self.previous.clear();
    }

    /// Chains that others have replaced, and until when they are good.
    pub fn previous(&self) -> impl ExactSizeIterator<Item = (&Chain, SystemTime)> {
        self.previous.iter().map(|old| (&*old.chain, old.until))
    }

    /// Takes a chain that an earlier server had as [`Chains::rotate`] leaves those that are
    /// replaced, unless it is sent now.
    pub fn restore(&mut self, chain: Chain, until: SystemTime) {
        let digest = chain.digest();
        let own = self.current.iter().map(|chain| chain.digest());
        let old = self.previous.iter().map(|old| old.chain.digest());
        if own.chain(old).all(|other| other != digest) {
            let until = until.min(chain.valid_until());
            let chain = Arc::new(chain);
            self.previous.push(Previous { chain, until });
        }
    }

    /// What it sends now, whole.
    pub fn current(&self) -> &[Arc<Chain>] {
        &self.current
    }

    /// Whether it has a chain for `name`, which is in lower case.
    pub fn knows(&self, name: &str) -> bool {
        self.current.iter().any(|chain| chain.is_for(name))
    }

    /// What to send to a client that asked for `name` (in lower case) and has certificates of this
    /// digest. The digest counts only for chains of that name.
    pub fn select(&self, name: Option<&str>, digest: Option<&Digest>) -> Selection {
        let served = name.filter(|name| self.knows(name));
        let first = self.current.first().map(Arc::as_ref);
        let is_candidate = |chain: &Chain| match served {
            Some(name) => chain.is_for(name),
            None => first.is_some_and(|first| chain.names == first.names),
        };
        if let Some(digest) = digest {
            let previous = self.previous.iter().map(|old| &old.chain);
            let all = self.current.iter().chain(previous);
            let matching = all.filter(|chain| is_candidate(chain)).filter_map(|chain| {
                let omitted = chain.matches(digest)?;
                let chain = Arc::clone(chain);
                Some(Omission { chain, omitted })
            });
            let matching: Vec<_> = matching.collect();
            if !matching.is_empty() {
                return Selection::Without(matching);
            }
        }
        let candidates = self.current.iter().filter(|chain| is_candidate(chain));
        Selection::Whole(candidates.cloned().collect())
    }
}

/// [`Chains`] that handshakes read while whoever owns them rotates them.
#[derive(Debug, Default)]
pub struct SharedChains(RwLock<Arc<Chains>>);

impl SharedChains {
    /// These for now.
    pub fn new(chains: Chains) -> SharedChains {
        SharedChains(RwLock::new(Arc::new(chains)))
    }

    /// As they are at this moment.
    pub fn load(&self) -> Arc<Chains> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes them for all handshakes that begin afterwards.
    pub fn update(&self, change: impl FnOnce(&mut Chains)) {
        let mut shared = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut shared));
    }
}

#[cfg(test)]
mod tests;
