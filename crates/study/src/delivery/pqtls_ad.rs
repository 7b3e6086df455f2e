//! PQTLS-AD: some or all of the certificates come through DNS.

use std::time::Duration;

use lastbyte_exchange::{Exchange, HelloDigest};
use lastbyte_link::{format_duration, named, parse_duration};
use lastbyte_sizes::{ChainSpec, Message, Outcome, Part, Resumption, framing};

use super::mismatch::Mismatch;
use super::{
    Certificates, Delivery, DeliveryKey, DeliveryProblem, Kind, Lengths, OnWire, Spec, Way, key,
};
use crate::Arm;
use crate::row::Dns;
use crate::value::{ValueError, one_of};

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
    keys: &[
        key!(
            PqtlsAd,
            FROM,
            "`root`, `intermediate` or `end-entity`",
            "",
            "the lowest certificate that DNS delivers; without it, the first at which the server's flight fits ten segments",
            |ad| Some(ad.from?.to_string()),
            |ad, text| {
                ad.from = Some(one_of(text, Part::ALL.map(Part::name))?);
                Ok(())
            },
        ),
        key!(
            PqtlsAd,
            DNS,
            "`cached`, `cold`, `absent`, `broken` or `foreign`",
            "cached",
            "what the resolver has",
            |ad| Some(ad.cache.to_string()),
            |ad, text| {
                ad.cache = one_of(text, DnsCache::ALL.map(DnsCache::name))?;
                Ok(())
            },
        ),
        key!(
            PqtlsAd,
            RESOLVER_RTT,
            "a time up to 5s",
            "0ms",
            "between client and resolver",
            |ad| Some(time(ad.resolver_rtt)),
            |ad, text| {
                const LONGEST: Duration = Duration::from_secs(5);
                let rtt = parse_duration(text).map_err(|_| ValueError::Time)?;
                // Unbound and its client would ask again.
                if rtt > LONGEST {
                    return Err(ValueError::ResolverRtt);
                }
                ad.resolver_rtt = rtt;
                Ok(())
            },
        ),
        key!(
            PqtlsAd,
            GRACE,
            "a time",
            "0ms",
            "how long a client that is connected waits for the record",
            |ad| Some(time(ad.grace)),
            |ad, text| {
                ad.grace = parse_duration(text).map_err(|_| ValueError::Time)?;
                Ok(())
            },
        ),
    ],
    subject: "certificates that come through DNS",
    named: |name| {
        let end_entity = name.parse().ok()?;
        Some(Delivery::PqtlsAd(PqtlsAd::new(end_entity)))
    },
    ways: &[Way {
        said: None,
        by: "by an extension of its own",
    }],
    trace: |wire, dns| match (dns.outcome, wire.negotiated.hello_digest) {
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

fn time(time: Duration) -> String {
    format_duration(time)
}

impl Kind for PqtlsAd {
    fn name(&self) -> &'static str {
        self.end_entity.name()
    }

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), DeliveryProblem> {
        let problem = match (self.end_entity, self.from) {
            (EndEntity::Sent, Some(Part::EndEntity)) => DeliveryProblem::EmptyCertificate,
            (EndEntity::RawKey | EndEntity::Carrier, Some(Part::Root | Part::Intermediate)) => {
                DeliveryProblem::StandsForEndEntity
            }
            _ if arm.resumption != Resumption::Full => DeliveryProblem::Resumed {
                what: " that DNS could deliver",
            },
            _ => return Ok(()),
        };
        Err(problem)
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

    fn check_handshake(
        &self,
        _: &Arm,
        wire: &Exchange,
        dns: &Dns,
    ) -> Result<Certificates, Mismatch> {
        let Some(outcome) = dns.outcome else {
            return Err(Mismatch::NoOutcome);
        };
        let expected = match outcome {
            Outcome::Used => HelloDigest::Echoed,
            Outcome::Mismatch => HelloDigest::Contradicted,
            Outcome::RefusedByServer => HelloDigest::Offered,
            _ => HelloDigest::None,
        };
        if wire.negotiated.hello_digest != expected {
            return Err(Mismatch::Digest {
                got: wire.negotiated.hello_digest,
                asked: expected,
            });
        }
        let bytes = wire.bytes(Message::Certificate);
        match dns.certificate_bytes {
            Some(expected) if expected != bytes => Err(Mismatch::CertificateBytes {
                got: bytes as usize,
                asked: expected as usize,
            }),
            None => Err(Mismatch::NoCertificateBytes),
            Some(_) if outcome == Outcome::Used => Ok(Certificates::Rest),
            Some(_) => Ok(Certificates::Whole),
        }
    }
}
