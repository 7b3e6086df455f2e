//! What both sides have of Merkle Tree Certificates (draft-ietf-plants-merkle-tree-certs-07).

use std::fmt;
use std::sync::Arc;

use lastbyte_mtc::{Properties, RelyingParty, TrustAnchorId, UnixTime};

/// A server's Merkle Tree Certificates, and what its clients know of the logs that have them.
#[derive(Clone)]
pub struct MerkleTree(Arc<Sides>);

/// What each side has.
pub struct Sides {
    /// The server's certificates, the preferred one first.
    pub certificates: Vec<Certified>,
    /// What clients name of the anchors that they trust. Without it, they say nothing, and the server sends its first
    /// certificate. With it, who has nothing in common with the server gets its chain as it is.
    pub named: Option<Vec<TrustAnchorId>>,
    /// What clients can name of what a server says it has.
    pub trusted: Vec<TrustAnchorId>,
    /// What clients accept.
    pub relying_party: RelyingParty,
    /// What time it is for clients.
    pub now: UnixTime,
}

/// A certificate for the end-entity's key of the chain.
pub struct Certified {
    /// What a server calls it.
    pub id: TrustAnchorId,
    /// Which clients get it.
    pub properties: Properties,
    /// In DER.
    pub certificate: Vec<u8>,
}

impl MerkleTree {
    /// Of these sides.
    pub fn new(sides: Sides) -> MerkleTree {
        MerkleTree(Arc::new(sides))
    }

    /// What each side has.
    pub(crate) fn sides(&self) -> &Sides {
        &self.0
    }

    /// Whether clients accept a certificate, in DER, for a host.
    pub(crate) fn accepts(&self, certificate: &[u8], host: &str) -> bool {
        let sides = self.sides();
        let verified = sides.relying_party.verify(certificate, sides.now);
        verified.is_ok_and(|verified| verified.certificate.hosts().contains(&host))
    }
}

impl Certified {
    /// Whether a client that names this anchor gets it.
    pub(crate) fn answers(&self, named: &TrustAnchorId) -> bool {
        self.properties.matches(named)
    }
}

/// Two are the same if they are one.
impl PartialEq for MerkleTree {
    fn eq(&self, other: &MerkleTree) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for MerkleTree {}

impl fmt::Debug for MerkleTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.sides().certificates.iter();
        f.debug_list()
            .entries(ids.map(|certified| &certified.id))
            .finish()
    }
}
