//! Chains for tests: for any name, and with one fault each.
//!
//! All keys are of ECDSA on P-256, and every call makes a new CA.

use std::time::{Duration, SystemTime};

use lastbyte_sizes::profile::{CLIENT_NAME, Kind, Padding, SERVER_NAME, Validity};
use lastbyte_sizes::{ChainRole, ChainSpec, KeyAlgorithm};
use openssl::x509::X509;

use crate::authority::{Authority, END_ENTITY_LIFE, Subject};
use crate::chain::Chain;
use crate::error::PkiError;
use crate::keys::Keys;
use crate::validity::validity;

const ALGORITHM: KeyAlgorithm = KeyAlgorithm::EcdsaP256;
const TEN_DAYS: Duration = Duration::from_secs(10 * 86_400);

/// A chain without fault, for a name of your own.
pub fn for_name(server_name: &str) -> Result<Chain, PkiError> {
    issue(&authority()?, server_name, server_name, SystemTime::now())
}

/// A CA that issues again and again, for clocks that go on.
pub struct Ca(Authority);

impl Ca {
    /// One whose certificates begin an hour before `now`, and last for years.
    pub fn new(now: SystemTime) -> Result<Ca, PkiError> {
        let spec = ChainSpec::new(ALGORITHM);
        Authority::new(&spec, &Padding::default(), now).map(Ca)
    }

    /// The certificate that clients have.
    pub fn root(&self) -> &X509 {
        &self.0.root
    }

    /// A chain whose end-entity certificate begins an hour before `now`, and ends `life` after it.
    pub fn issue(
        &self,
        server_name: &str,
        now: SystemTime,
        life: Duration,
    ) -> Result<Chain, PkiError> {
        issue_for(&self.0, server_name, server_name, validity(now, life))
    }
}

/// A chain whose certificate is not for its [`server_name`](Chain::server_name).
pub fn wrong_name() -> Result<Chain, PkiError> {
    issue(
        &authority()?,
        "other.example",
        SERVER_NAME,
        SystemTime::now(),
    )
}

/// A chain whose end-entity certificate expired ten days ago.
pub fn expired() -> Result<Chain, PkiError> {
    issued_at(SystemTime::now() - END_ENTITY_LIFE - TEN_DAYS)
}

/// A chain whose end-entity certificate becomes valid in ten days.
pub fn not_yet_valid() -> Result<Chain, PkiError> {
    issued_at(SystemTime::now() + TEN_DAYS)
}

/// A chain whose intermediate has the issuer's name, but another key.
pub fn broken() -> Result<Chain, PkiError> {
    let mixed = Authority {
        intermediates: authority()?.intermediates,
        ..authority()?
    };
    issue(&mixed, SERVER_NAME, SERVER_NAME, SystemTime::now())
}

/// A chain that leads to another root than [`Chain::root`].
pub fn untrusted() -> Result<Chain, PkiError> {
    let mixed = Authority {
        root: authority()?.root,
        ..authority()?
    };
    issue(&mixed, SERVER_NAME, SERVER_NAME, SystemTime::now())
}

/// A client's chain whose end-entity certificate expired ten days ago.
pub fn expired_client() -> Result<Chain, PkiError> {
    let then = SystemTime::now() - END_ENTITY_LIFE - TEN_DAYS;
    issue(
        &authority_for(ChainRole::Client)?,
        CLIENT_NAME,
        CLIENT_NAME,
        then,
    )
}

/// A client's chain that leads to another root than [`Chain::root`].
pub fn untrusted_client() -> Result<Chain, PkiError> {
    let mixed = Authority {
        root: authority_for(ChainRole::Client)?.root,
        ..authority_for(ChainRole::Client)?
    };
    issue(&mixed, CLIENT_NAME, CLIENT_NAME, SystemTime::now())
}

/// A chain that is a server's alone, in the place of a client's.
pub fn server_as_client() -> Result<Chain, PkiError> {
    for_name(CLIENT_NAME)
}

/// A chain whose end-entity certificate was issued then, by a CA of today.
pub(crate) fn issued_at(then: SystemTime) -> Result<Chain, PkiError> {
    issue(&authority()?, SERVER_NAME, SERVER_NAME, then)
}

fn authority() -> Result<Authority, PkiError> {
    authority_for(ChainRole::Server)
}

fn authority_for(role: ChainRole) -> Result<Authority, PkiError> {
    let spec = ChainSpec {
        role,
        ..ChainSpec::new(ALGORITHM)
    };
    Authority::new(&spec, &Padding::default(), SystemTime::now())
}

fn issue(
    authority: &Authority,
    certified: &str,
    claimed: &str,
    now: SystemTime,
) -> Result<Chain, PkiError> {
    issue_for(
        authority,
        certified,
        claimed,
        validity(now, END_ENTITY_LIFE),
    )
}

fn issue_for(
    authority: &Authority,
    certified: &str,
    claimed: &str,
    validity: Validity,
) -> Result<Chain, PkiError> {
    let key = ALGORITHM.generate()?;
    let end_entity = authority.issue(&Subject {
        key: &key,
        validity,
        kind: Kind::EndEntity {
            algorithm: ALGORITHM,
            name: certified,
            crl_padding: 0,
            scts: &[],
            names: ChainSpec::USUAL_NAMES,
            without: &[],
        },
        padding: None,
    })?;
    let certificates = [vec![end_entity], authority.intermediates.clone()].concat();
    let root = authority.root.clone();
    Ok(Chain::new(certificates, root, key, claimed.to_owned())?)
}
