//! PQTLS-AD: some or all of the certificates come through DNS.

use std::time::Duration;

use lastbyte_link::{named, nearest, parse_duration};
use lastbyte_sizes::{ChainSpec, Message, Outcome, Part, Resumption, framing};

use super::{Certificates, Delivery, Kind, Lengths, OnWire, Spec, Way};
use crate::row::{Dns, HelloDigest, Wire};
use crate::study::Arm;

/// What DNS delivers, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PqtlsAd {
    /// What the server sends of its end-entity.
    pub end_entity: EndEntity,
    /// The lowest certificate that is dns. Without it, the first at which the server's flight
    /// fits an initial window of ten segments.
    pub from: Option<Part>,
    /// What the resolver has.
    pub cache: DnsCache,
    /// Between client and resolver. Zero is a resolver on the client's own host.
    pub resolver_rtt: Duration,
    /// How long a client that is connected waits for the record.
    pub grace: Duration,
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

const FROM: &str = "from";
const DNS: &str = "dns";
const RESOLVER_RTT: &str = "resolver_rtt";
const GRACE: &str = "grace";

pub(super) static SPEC: Spec = Spec {
    names: || EndEntity::ALL.map(EndEntity::name).to_vec(),
    keys: &[FROM, DNS, RESOLVER_RTT, GRACE],
    subject: "certificates that come through DNS",
    named: |name| {
        let end_entity = name.parse().ok()?;
        Some(Delivery::PqtlsAd(PqtlsAd::new(end_entity)))
    },
    ways: &[Way {
        said: None,
        by: "by an extension of its own",
    }],
    trace: |wire, dns| match (dns.outcome, wire.hello_digest) {
        (Some(_), _) => Some("asked DNS"),
        (None, HelloDigest::None) => None,
        (None, _) => Some("said in its hellos what DNS delivered"),
    },
};

/// What each hello says of what DNS delivers: an extension with a digest of 32 bytes.
const DIGEST: usize = framing::EXTENSION_HEADER + 32;
/// server_certificate_type with two types, and with one (RFC 7250, section 3).
const OFFERED_TYPES: usize = framing::EXTENSION_HEADER + 1 + 2;
const CHOSEN_TYPE: usize = framing::EXTENSION_HEADER + 1;

impl PqtlsAd {
    /// From a cache on the client's own host, with no grace.
    fn new(end_entity: EndEntity) -> Self {
        Self {
            end_entity,
            from: None,
            cache: DnsCache::default(),
            resolver_rtt: Duration::ZERO,
            grace: Duration::ZERO,
        }
    }
}

impl Kind for PqtlsAd {
    fn name(&self) -> &'static str {
        self.end_entity.name()
    }

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let duration = || parse_duration(value).map_err(|_| "use a time such as 1ms".to_owned());
        match key {
            FROM => {
                let part = value.parse();
                self.from = Some(part.map_err(|_| nearest(value, Part::ALL.map(Part::name)))?);
            }
            DNS => {
                let cache = value.parse();
                self.cache =
                    cache.map_err(|_| nearest(value, DnsCache::ALL.map(DnsCache::name)))?;
            }
            RESOLVER_RTT => {
                const LONGEST: Duration = Duration::from_secs(5);
                let rtt = duration()?;
                // Unbound and its client would ask again.
                if rtt > LONGEST {
                    return Err("use 0ms to 5s".to_owned());
                }
                self.resolver_rtt = rtt;
            }
            _ => self.grace = duration()?,
        }
        Ok(())
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), String> {
        let problem = match (self.end_entity, self.from) {
            (EndEntity::Sent, Some(Part::EndEntity)) => {
                "TLS 1.3 has no empty Certificate message: with from=end-entity, \
                 use delivery=pqtls-ad-raw-key"
            }
            (EndEntity::RawKey | EndEntity::Carrier, Some(Part::Root | Part::Intermediate)) => {
                "a raw key or a carrier stands for the end-entity certificate: \
                 leave from= out, or use delivery=pqtls-ad"
            }
            _ if arm.resumption != Resumption::Full => {
                "a resumed session has no certificates that DNS could deliver: leave resume= out"
            }
            _ => return Ok(()),
        };
        Err(problem.to_owned())
    }

    fn words(&self) -> String {
        let from = self.from.map_or("as much as fits", Part::name);
        format!("{} from {from}", self.end_entity)
    }

    fn asks_dns(&self) -> bool {
        true
    }

    fn arithmetic(&self, spec: &ChainSpec) -> Result<Vec<OnWire>, &'static str> {
        let lengths = spec.certificate_lengths();
        let lengths = lengths.map_err(|_| "the size of a chain that can't be made")?;
        let sent = lengths.get(..spec.certificates()).unwrap_or(&lengths);
        match spec.certificate_bytes {
            Some(_) => Err("what DNS leaves of a chain that is padded"),
            None => self.arithmetic_of(Lengths {
                certificates: sent,
                alike: Some(spec),
                brotli: None,
            }),
        }
    }

    fn arithmetic_of(&self, chain: Lengths<'_>) -> Result<Vec<OnWire>, &'static str> {
        if (self.cache, self.resolver_rtt) != (DnsCache::Cached, Duration::ZERO) {
            return Err("a record that has to be waited for, or that is none,");
        }
        let usual = OnWire {
            client_hello: DIGEST,
            server_hello: DIGEST,
            hello_digest: HelloDigest::Echoed,
            ..chain.end_entity()
        };
        match (self.end_entity, self.from, chain.alike) {
            (EndEntity::Sent, Some(Part::Intermediate), _) if chain.certificates.len() > 1 => {
                Ok(vec![usual])
            }
            (EndEntity::RawKey, _, Some(alike)) => Ok(vec![OnWire {
                client_hello: DIGEST + OFFERED_TYPES,
                encrypted_extensions: CHOSEN_TYPE,
                certificate: framing::certificate_message([alike.leaf.key_info_bytes()]),
                ..usual
            }]),
            (EndEntity::Sent, None, _) => {
                Err("which certificates come from DNS, unless from=intermediate says it,")
            }
            _ => Err("what DNS leaves of a chain"),
        }
    }

    fn check_handshake(&self, _: &Arm, wire: &Wire, dns: &Dns) -> Result<Certificates, String> {
        let Some(outcome) = dns.outcome else {
            return Err("does not say what became of its DNS record".to_owned());
        };
        let expected = match outcome {
            Outcome::Used => HelloDigest::Echoed,
            Outcome::Mismatch => HelloDigest::Contradicted,
            Outcome::RefusedByServer => HelloDigest::Offered,
            _ => HelloDigest::None,
        };
        if wire.hello_digest != expected {
            return Err(format!(
                "has hellos whose digests are {:?}, not {expected:?}",
                wire.hello_digest
            ));
        }
        let bytes = wire.bytes(Message::Certificate);
        match dns.certificate_bytes {
            Some(expected) if expected != bytes => Err(format!(
                "got a Certificate message of {bytes} bytes, not {expected}"
            )),
            None => Err("does not say what its Certificate message must have".to_owned()),
            Some(_) if outcome == Outcome::Used => Ok(Certificates::Rest),
            Some(_) => Ok(Certificates::Whole),
        }
    }
}
