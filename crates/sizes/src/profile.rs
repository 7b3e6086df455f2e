//! What the certificates say: the profiles of the CA/Browser Forum Baseline
//! Requirements (version 2, section 7.1.2) on RFC 5280.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::algorithm::KeyAlgorithm;
use crate::der::{self, Oid, element, sequence};
use crate::role::ChainRole;
use crate::spec::LeafExtension;

/// Changes when certificates of one specification would look different, so that
/// kept ones are made anew.
pub const VERSION: u32 = 1;

/// The certificates are for this name and its `www.`.
pub const SERVER_NAME: &str = "server.example";

/// Client certificates are for this name.
pub const CLIENT_NAME: &str = "client.example";

impl ChainRole {
    /// Whom the end-entity certificate is for.
    pub fn name(self) -> &'static str {
        match self {
            ChainRole::Server => SERVER_NAME,
            ChainRole::Client => CLIENT_NAME,
        }
    }
}

/// Bytes of a serial number: 126 random bits, so that the length never varies.
pub const SERIAL_BYTES: usize = 16;

/// The padding extension. RFC 5612 sets this enterprise number aside for
/// examples, so it is nobody else's.
pub const PADDING: Oid = Oid(&[1, 3, 6, 1, 4, 1, 32473, 1]);

const COUNTRY_NAME: Oid = Oid(&[2, 5, 4, 6]);
const ORGANIZATION_NAME: Oid = Oid(&[2, 5, 4, 10]);
const COMMON_NAME: Oid = Oid(&[2, 5, 4, 3]);
const SUBJECT_KEY_IDENTIFIER: Oid = Oid(&[2, 5, 29, 14]);
const KEY_USAGE: Oid = Oid(&[2, 5, 29, 15]);
const SUBJECT_ALT_NAME: Oid = Oid(&[2, 5, 29, 17]);
const BASIC_CONSTRAINTS: Oid = Oid(&[2, 5, 29, 19]);
const CRL_DISTRIBUTION_POINTS: Oid = Oid(&[2, 5, 29, 31]);
const CERTIFICATE_POLICIES: Oid = Oid(&[2, 5, 29, 32]);
const AUTHORITY_KEY_IDENTIFIER: Oid = Oid(&[2, 5, 29, 35]);
const EXTENDED_KEY_USAGE: Oid = Oid(&[2, 5, 29, 37]);
const AUTHORITY_INFO_ACCESS: Oid = Oid(&[1, 3, 6, 1, 5, 5, 7, 1, 1]);
const OCSP: Oid = Oid(&[1, 3, 6, 1, 5, 5, 7, 48, 1]);
const CA_ISSUERS: Oid = Oid(&[1, 3, 6, 1, 5, 5, 7, 48, 2]);
const SERVER_AUTH: Oid = Oid(&[1, 3, 6, 1, 5, 5, 7, 3, 1]);
const CLIENT_AUTH: Oid = Oid(&[1, 3, 6, 1, 5, 5, 7, 3, 2]);
const DOMAIN_VALIDATED: Oid = Oid(&[2, 23, 140, 1, 2, 1]);

const DIGITAL_SIGNATURE: u8 = 0x80;
const KEY_ENCIPHERMENT: u8 = 0x20;
const KEY_CERT_SIGN: u8 = 0x04;
const CRL_SIGN: u8 = 0x02;

/// The names of a server that is called `name` and has so many.
pub fn host_names(name: &str, count: u8) -> Vec<String> {
    let nth = |number| match number {
        0 => name.to_owned(),
        1 => format!("www.{name}"),
        _ => format!("www{number}.{name}"),
    };
    (0..count).map(nth).collect()
}

/// What names a key: 160 bits that are unique (RFC 5280, section 4.2.1.2).
pub type KeyIdentifier = [u8; 20];

/// All that a certificate says.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// Certificates above it: none above a root.
    pub level: usize,
    /// Its number.
    pub serial: [u8; SERIAL_BYTES],
    /// When it is valid.
    pub validity: Validity,
    /// The DER of its `SubjectPublicKeyInfo`.
    pub key: &'a [u8],
    /// What names that key.
    pub key_identifier: KeyIdentifier,
    /// What names its issuer's key, its own for a root.
    pub issuer_identifier: KeyIdentifier,
    /// The issuer's algorithm, with which it is signed.
    pub signature: KeyAlgorithm,
    /// Whom its chain is for.
    pub role: ChainRole,
    /// Its place in the chain.
    pub kind: Kind<'a>,
    /// What the padding extension holds, if there is one.
    pub padding: Option<&'a [u8]>,
}

/// A certificate's place in its chain, and what it says because of that.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// The root.
    Root,
    /// Between the root and the end-entity.
    Intermediate {
        /// How many intermediates may follow.
        path_length: u8,
        /// Characters more in the URL of its CRL.
        crl_padding: usize,
    },
    /// Of a server or a client.
    EndEntity {
        /// The algorithm of its key.
        algorithm: KeyAlgorithm,
        /// Whom it is for.
        name: &'a str,
        /// Characters more in the URL of its CRL.
        crl_padding: usize,
        /// The DER of the extension with its SCTs, nothing if it has none.
        scts: &'a [u8],
        /// How many names it has, if it is a server's.
        names: u8,
        /// What it does not say.
        without: &'a [LeafExtension],
    },
}

/// What makes a chain larger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    /// Characters more in the URL of each intermediate's CRL.
    pub intermediate_crl: usize,
    /// Characters more in the URL of the end-entity's CRL.
    pub crl: usize,
    /// What the padding extension holds of the certificate that is padded, if it has one.
    pub extension: Option<Vec<u8>>,
}

/// When a certificate is valid, since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// From when on.
    pub not_before: Duration,
    /// Until when.
    pub not_after: Duration,
}

impl Contents<'_> {
    /// The DER of the `TBSCertificate`, which is what is signed.
    pub fn to_be_signed(&self) -> Vec<u8> {
        const V3: u8 = 2;
        let issuer = self.level.saturating_sub(1);
        let subject = match self.kind {
            Kind::Root | Kind::Intermediate { .. } => ca_name(self.level),
            Kind::EndEntity { name, .. } => {
                sequence(&[&attribute(COMMON_NAME, der::UTF8_STRING, name)])
            }
        };
        sequence(&[
            &element(der::explicit(0), &element(der::INTEGER, &[V3])),
            &element(der::INTEGER, &self.serial),
            &self.signature.signature_identifier(),
            &ca_name(issuer),
            &self.validity.to_der(),
            &subject,
            self.key,
            &element(der::explicit(3), &sequence(&[&self.extensions().concat()])),
        ])
    }

    fn extensions(&self) -> Vec<Vec<u8>> {
        let ca = "http://ca.lastbyte.example";
        let issuer = self.level.saturating_sub(1);
        let constraints = |contents: &[&[u8]]| critical(BASIC_CONSTRAINTS, &sequence(contents));
        let usage = |bits| critical(KEY_USAGE, &der::named_bits(bits));
        let is_ca = element(der::BOOLEAN, &[0xff]);
        let purpose = match self.role {
            ChainRole::Server => SERVER_AUTH,
            ChainRole::Client => CLIENT_AUTH,
        };
        let purpose = || extension(EXTENDED_KEY_USAGE, &sequence(&[&purpose.to_der()]));
        let subject_key = extension(
            SUBJECT_KEY_IDENTIFIER,
            &element(der::OCTET_STRING, &self.key_identifier),
        );
        let issuer_key = || {
            let identifier = element(der::implicit(0), &self.issuer_identifier);
            extension(AUTHORITY_KEY_IDENTIFIER, &sequence(&[&identifier]))
        };
        let policies = || {
            let policy = sequence(&[&DOMAIN_VALIDATED.to_der()]);
            extension(CERTIFICATE_POLICIES, &sequence(&[&policy]))
        };
        let issuers = sequence(&[&CA_ISSUERS.to_der(), &url(&format!("{ca}/{issuer}.cer"))]);
        let crl = |more| {
            let point = url(&format!("{ca}/{issuer}{}.crl", "0".repeat(more)));
            let full_name = element(der::explicit(0), &point);
            let point = sequence(&[&element(der::explicit(0), &full_name)]);
            extension(CRL_DISTRIBUTION_POINTS, &sequence(&[&point]))
        };
        let access = |ways: &[&[u8]]| extension(AUTHORITY_INFO_ACCESS, &sequence(ways));
        let mut extensions = match self.kind {
            Kind::Root => vec![
                usage(KEY_CERT_SIGN | CRL_SIGN),
                constraints(&[&is_ca]),
                subject_key,
            ],
            Kind::Intermediate {
                path_length,
                crl_padding,
            } => vec![
                usage(DIGITAL_SIGNATURE | KEY_CERT_SIGN | CRL_SIGN),
                purpose(),
                constraints(&[&is_ca, &element(der::INTEGER, &[path_length])]),
                subject_key,
                issuer_key(),
                access(&[&issuers]),
                policies(),
                crl(crl_padding),
            ],
            Kind::EndEntity {
                algorithm,
                name,
                crl_padding,
                scts: _,
                names,
                without,
            } => {
                use KeyAlgorithm::{Rsa2048, Rsa3072, Rsa4096};
                let encipherment = match algorithm {
                    Rsa2048 | Rsa3072 | Rsa4096 => KEY_ENCIPHERMENT,
                    _ => 0,
                };
                let names: Vec<_> = (host_names(name, names).iter())
                    .map(|name| element(der::implicit(2), name.as_bytes()))
                    .collect();
                let names = match self.role {
                    ChainRole::Server => extension(SUBJECT_ALT_NAME, &sequence(&[&names.concat()])),
                    ChainRole::Client => Vec::new(),
                };
                let unless_without = |what, extension: Vec<u8>| {
                    if without.contains(&what) {
                        Vec::new()
                    } else {
                        extension
                    }
                };
                let ocsp = sequence(&[&OCSP.to_der(), &url("http://ocsp.lastbyte.example")]);
                vec![
                    usage(DIGITAL_SIGNATURE | encipherment),
                    purpose(),
                    constraints(&[]),
                    subject_key,
                    issuer_key(),
                    unless_without(LeafExtension::Access, access(&[&ocsp, &issuers])),
                    names,
                    unless_without(LeafExtension::Policies, policies()),
                    unless_without(LeafExtension::Crl, crl(crl_padding)),
                ]
            }
        };
        if let Some(bytes) = self.padding {
            extensions.push(extension(PADDING, bytes));
        }
        if let Kind::EndEntity { scts, .. } = self.kind {
            extensions.push(scts.to_vec());
        }
        extensions
    }
}

impl Validity {
    fn to_der(self) -> Vec<u8> {
        sequence(&[&time(self.not_before), &time(self.not_after)])
    }
}

/// The DER of a certificate: of what is signed, the signer's algorithm and its signature.
pub fn certificate(to_be_signed: &[u8], algorithm: KeyAlgorithm, signature: &[u8]) -> Vec<u8> {
    sequence(&[
        to_be_signed,
        &algorithm.signature_identifier(),
        &der::bit_string(signature),
    ])
}

fn ca_name(level: usize) -> Vec<u8> {
    let common_name = match level {
        // As long as the others, so that all intermediates have one size.
        0 => "Lastbyte Test Root CA".to_owned(),
        level => format!("Lastbyte Test TLS CA{level}"),
    };
    // XX: a code that ISO 3166 leaves to its users.
    sequence(&[
        &attribute(COUNTRY_NAME, der::PRINTABLE_STRING, "XX"),
        &attribute(ORGANIZATION_NAME, der::UTF8_STRING, "Lastbyte Test"),
        &attribute(COMMON_NAME, der::UTF8_STRING, &common_name),
    ])
}

fn attribute(kind: Oid, string: u8, value: &str) -> Vec<u8> {
    let pair = sequence(&[&kind.to_der(), &element(string, value.as_bytes())]);
    element(der::SET, &pair)
}

/// The DER of an extension that is not critical (RFC 5280, section 4.1).
pub fn extension(kind: Oid, value: &[u8]) -> Vec<u8> {
    sequence(&[&kind.to_der(), &element(der::OCTET_STRING, value)])
}

fn critical(kind: Oid, value: &[u8]) -> Vec<u8> {
    sequence(&[
        &kind.to_der(),
        &element(der::BOOLEAN, &[0xff]),
        &element(der::OCTET_STRING, value),
    ])
}

fn url(at: &str) -> Vec<u8> {
    element(der::implicit(6), at.as_bytes())
}

/// The DER of a time since 1970, to the second: UTCTime through 2049, GeneralizedTime after it (RFC
/// 5280 section 4.1.2.5). Those after 9999 become its end.
pub fn time(since_1970: Duration) -> Vec<u8> {
    let seconds = i64::try_from(since_1970.as_secs()).ok();
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    let time = Offset::UTC.to_datetime(time.unwrap_or(Timestamp::MAX));
    let (tag, format) = match time.year() {
        ..2050 => (der::UTC_TIME, "%y%m%d%H%M%SZ"),
        _ => (der::GENERALIZED_TIME, "%Y%m%d%H%M%SZ"),
    };
    element(tag, time.strftime(format).to_string().as_bytes())
}
