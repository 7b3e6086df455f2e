//! What is reported of the connections of a sample.

use std::fmt;
use std::str::FromStr;

use lastbyte_link::named;

macro_rules! metrics {
    ($($(#[$default:ident])? $metric:ident = $name:literal: $doc:literal;)+) => {
        /// A time of a connection.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Metric {
            $(#[doc = $doc] $(#[$default])? $metric,)+
        }

        named!(Metric, "metric", { $($metric => $name,)+ });

        impl Metric {
            /// From when to when it is.
            pub fn doc(self) -> &'static str {
                match self {
                    $(Metric::$metric => $doc,)+
                }
            }
        }
    };
}

metrics! {
    Connect = "connect": "From just before `connect()` to TCP established.";
    Handshake = "handshake": "From just before `connect()` to the client's Finished written.";
    Ttfb = "ttfb": "From just before `connect()` to the first response payload byte decrypted.";
    #[default]
    Ttlb = "ttlb": "From just before `connect()` to the last response payload byte decrypted.";
    TlsHandshake = "tls_handshake":
        "From TCP established, when the ClientHello leaves, to the client's Finished written.";
    DnsRecord = "dns_record":
        "From the client's queries to the record with the server's certificates.";
    Fcp = "fcp": "From the start of a navigation to the first contentful paint.";
    Lcp = "lcp": "From the start of a navigation to the largest contentful paint.";
    Load = "load": "From the start of a navigation to the load event.";
    SpeedIndex = "speed_index": "How late what is seen of a page was seen, weighted by its share.";
}

impl Metric {
    /// Whether it is of TCP's own handshake, which there is none of over QUIC.
    pub fn is_of_tcp(self) -> bool {
        matches!(self, Metric::Connect | Metric::TlsHandshake)
    }

    /// Those from just before `connect()`, in the order of a connection.
    pub const FROM_CONNECT: [Metric; 4] = [
        Metric::Connect,
        Metric::Handshake,
        Metric::Ttfb,
        Metric::Ttlb,
    ];

    /// Those of a page, from the start of a navigation.
    pub const OF_PAGE: [Metric; 7] = [
        Metric::Connect,
        Metric::Handshake,
        Metric::Ttfb,
        Metric::Fcp,
        Metric::Lcp,
        Metric::Load,
        Metric::SpeedIndex,
    ];
}

/// A percentile from 0.1 to 99.9 with at most one decimal, written `p75` or `p99.9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percentile {
    per_mille: u16,
}

impl Percentile {
    /// Half of all connections are no later.
    pub const MEDIAN: Percentile = Percentile { per_mille: 500 };

    /// Those that are reported if nothing else is asked for.
    pub const USUAL: [Percentile; 3] = [
        Percentile::MEDIAN,
        Percentile { per_mille: 750 },
        Percentile { per_mille: 900 },
    ];

    /// A whole one; `None` unless from 1 to 99.
    pub fn new(percent: u8) -> Option<Percentile> {
        (1..=99).contains(&percent).then_some(Percentile {
            per_mille: u16::from(percent) * 10,
        })
    }

    /// From 1 to 999.
    pub fn per_mille(self) -> u16 {
        self.per_mille
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimal) = (self.per_mille / 10, self.per_mille % 10);
        f.pad(&match decimal {
            0 => format!("p{whole}"),
            _ => format!("p{whole}.{decimal}"),
        })
    }
}

impl FromStr for Percentile {
    type Err = NoPercentile;

    fn from_str(text: &str) -> Result<Percentile, NoPercentile> {
        text.strip_prefix('p')
            .and_then(per_mille)
            .filter(|per_mille| (1..=999).contains(per_mille))
            .map(|per_mille| Percentile { per_mille })
            .ok_or_else(|| NoPercentile(text.to_owned()))
    }
}

/// Reads `99.9` as 999.
fn per_mille(percent: &str) -> Option<u16> {
    let (whole, decimal) = percent.split_once('.').unwrap_or((percent, "0"));
    let digits = format!("{whole}{decimal}");
    let is_number = decimal.len() == 1 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|_| is_number && !whole.is_empty())
}

/// The text is no [`Percentile`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no percentile: use p0.1 to p99.9, such as p75")]
pub struct NoPercentile(String);
