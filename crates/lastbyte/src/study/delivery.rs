//! Certificates that come through DNS: what is delivered, and from where.

use std::time::Duration;

use pqtlsad::Part;

use super::named::named;

/// What DNS delivers, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsDelivery {
    /// What the server sends of its end-entity.
    pub end_entity: EndEntity,
    /// The lowest certificate that is delivered. Without it, the first at which the server's flight
    /// fits an initial window of ten segments.
    pub from: Option<Part>,
    /// What the resolver has.
    pub cache: DnsCache,
    /// Between client and resolver. Zero is a resolver on the client's own host.
    pub resolver_rtt: Duration,
    /// How long a client that is connected waits for the record.
    pub grace: Duration,
}

impl DnsDelivery {
    /// From a cache on the client's own host, with no grace.
    pub(super) fn new(end_entity: EndEntity) -> Self {
        Self {
            end_entity,
            from: None,
            cache: DnsCache::default(),
            resolver_rtt: Duration::ZERO,
            grace: Duration::ZERO,
        }
    }
}

/// What a server sends of its end-entity while DNS delivers the certificates above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndEntity {
    /// Its certificate.
    Sent,
    /// Its public key alone (RFC 7250); DNS delivers the certificate.
    RawKey,
    /// A certificate that holds nothing but the hash of the one that DNS delivers: an experiment.
    Carrier,
}

named!(EndEntity, "delivery", {
    Sent => "pqtls-ad",
    RawKey => "pqtls-ad-raw-key",
    Carrier => "pqtls-ad-carrier",
});

/// What the resolver has when a client asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnsCache {
    /// The records: it was asked before.
    #[default]
    Cached,
    /// Nothing yet: each connection asks for a name that it has never seen. It knows the name server.
    Cold,
    /// The knowledge that there is no record.
    Absent,
    /// Records with a bit that is wrong.
    Broken,
    /// A record of another server, whose CA clients trust as well.
    Foreign,
}

named!(DnsCache, "dns", {
    Cached => "cached",
    Cold => "cold",
    Absent => "absent",
    Broken => "broken",
    Foreign => "foreign",
});
