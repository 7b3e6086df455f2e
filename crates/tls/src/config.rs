//! What both sides of a connection are configured with.

use lastbyte_pki::Chain;
use lastbyte_sizes::Elision;
use pqtlsad::openssl::EndEntity;

use crate::abridged::Listing;
use crate::merkle_tree::MerkleTree;
use crate::{Compressions, Group, Resumption, StackName};

/// What both sides of a connection are configured with.
#[derive(Debug, Clone)]
pub struct TlsConfig<'a> {
    /// The client's implementation.
    pub client: StackName,
    /// The server's implementation.
    pub server: StackName,
    /// The only group that the server supports.
    pub group: Group,
    /// What the client sends key shares for. The client supports these groups and `group`; without
    /// a share for `group`, the server asks for one with a HelloRetryRequest. An s2n-tls client
    /// says that it supports all other groups of its security policy, too.
    pub key_shares: Vec<Group>,
    /// What the server sends and proves, and what the client trusts.
    pub chain: &'a Chain,
    /// What the client sends and proves, and what the server trusts. Without it, the server does
    /// not ask.
    pub client_chain: Option<&'a Chain>,
    /// What clients do with a session.
    pub resumption: Resumption,
    /// Tickets that the server sends after a handshake.
    pub tickets: u8,
    /// How the client gets the server's chain.
    pub delivery: Delivery,
    /// Bytes of the largest Certificate message that either side takes. Without it, the most that
    /// the implementation can be known to take.
    pub max_certificate_list: Option<usize>,
}

impl<'a> TlsConfig<'a> {
    /// OpenSSL on both sides, a full handshake that only the server proves itself in, no tickets.
    pub fn new(group: Group, chain: &'a Chain) -> Self {
        Self {
            client: StackName::OpenSsl,
            server: StackName::OpenSsl,
            group,
            key_shares: vec![group],
            chain,
            client_chain: None,
            resumption: Resumption::Full,
            tickets: 0,
            delivery: Delivery::Full,
            max_certificate_list: None,
        }
    }

    /// The groups that the client supports: those it sends key shares for, and the server's.
    pub(crate) fn client_groups(&self) -> Vec<Group> {
        let mut groups = self.key_shares.clone();
        if !groups.contains(&self.group) {
            groups.push(self.group);
        }
        groups
    }
}

/// How a client gets a server's chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Delivery {
    /// From the server, in the handshake.
    #[default]
    Full,
    /// From the server, in the handshake, compressed if both sides have an algorithm in common. With
    /// mutual TLS, the client's chain likewise.
    Compressed(Compressions),
    /// From the server, in the handshake, abridged by the certificates that each side knows beforehand: the same on
    /// both, or it fails. With mutual TLS, the client's chain likewise.
    Abridged {
        /// The server's.
        server: Listing,
        /// The client's.
        client: Listing,
    },
    /// From the server, without intermediates that the client says it has.
    Elided(Elision),
    /// From the server, one Merkle Tree Certificate in place of all.
    MerkleTree(MerkleTree),
    /// Some or all of it from DNS ([`pqtlsad`]): see
    /// [`Stack::offering_client`](crate::Stack::offering_client). If DNS delivers even the end-entity,
    /// its key is proved like this.
    PqtlsAd(EndEntity),
}
