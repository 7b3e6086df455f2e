//! Trust anchor identifiers, patterns of them, and what comes with a certificate to be chosen by
//! (draft-ietf-tls-trust-anchor-ids-06).

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use crate::wire::{Reader, WireError, put_uint, put_vector};

/// The name of whoever is trusted: an object identifier below 1.3.6.1.4.1, relative to that.
///
/// In order, shorter ones come before longer ones, as cosignatures do in a certificate.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TrustAnchorId {
    /// The contents of a RELATIVE-OID.
    binary: Vec<u8>,
}

/// Why something is no trust anchor identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// It is no numbers with dots between them.
    #[error(
        "{0:?} is no trust anchor identifier: write numbers with dots between them, as in 32473.1"
    )]
    Text(String),
    /// It is no pattern.
    #[error(
        "{0:?} is no pattern: write numbers or ranges with dots between them, as in 32473.{{1-7}}.{{42-}}"
    )]
    Pattern(String),
    /// The bytes are not those of numbers.
    #[error("{} is no trust anchor identifier", hex::encode(.0))]
    Binary(Vec<u8>),
    /// It is empty or too long.
    #[error("a trust anchor identifier has 1 to {max} bytes, not {bytes}", max = TrustAnchorId::MAX_BYTES)]
    Length {
        /// As many as it has.
        bytes: usize,
    },
}

impl TrustAnchorId {
    /// The most bytes that one may have.
    pub const MAX_BYTES: usize = 32;

    /// Of its binary form.
    ///
    /// # Errors
    ///
    /// If these are no numbers in as few bytes as possible, each below 2^64, or they are too many.
    pub fn from_bytes(bytes: &[u8]) -> Result<TrustAnchorId, IdError> {
        let id = TrustAnchorId {
            binary: bytes.to_owned(),
        };
        if bytes.is_empty() || bytes.len() > TrustAnchorId::MAX_BYTES {
            return Err(IdError::Length { bytes: bytes.len() });
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            number(&mut rest).ok_or_else(|| IdError::Binary(bytes.to_owned()))?;
        }
        Ok(id)
    }

    /// Of its numbers.
    ///
    /// # Errors
    ///
    /// If they are none or too many.
    pub fn from_numbers(numbers: impl IntoIterator<Item = u64>) -> Result<TrustAnchorId, IdError> {
        let mut binary = Vec::new();
        for component in numbers {
            put_number(&mut binary, component);
        }
        match binary.len() {
            1..=TrustAnchorId::MAX_BYTES => Ok(TrustAnchorId { binary }),
            bytes => Err(IdError::Length { bytes }),
        }
    }

    /// Below the number that is for examples (RFC 5612): `32473.1.2` of 1 and 2. Each is below 128,
    /// of which the lowest bits are taken.
    pub fn of_example(numbers: [u8; 2]) -> TrustAnchorId {
        let [first, second] = numbers.map(|number| number & 0x7f);
        TrustAnchorId {
            binary: vec![0x81, 0xfd, 0x59, first, second],
        }
    }

    /// The identifier below this one.
    ///
    /// # Errors
    ///
    /// If it would be too long.
    pub fn child(&self, numbers: &[u64]) -> Result<TrustAnchorId, IdError> {
        TrustAnchorId::from_numbers(self.numbers().chain(numbers.iter().copied()))
    }

    /// The binary form, as it stands in TLS and in certificates.
    pub fn as_bytes(&self) -> &[u8] {
        &self.binary
    }

    /// Its numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        let mut rest = self.binary.as_slice();
        std::iter::from_fn(move || number(&mut rest))
    }

    /// The name of a log or a cosigner in checkpoints and in what is cosigned (section 5.3.1 of the
    /// draft).
    pub fn origin(&self) -> String {
        format!("oid/1.3.6.1.4.1.{self}")
    }
}

impl Ord for TrustAnchorId {
    fn cmp(&self, other: &TrustAnchorId) -> Ordering {
        order(&self.binary, &other.binary)
    }
}

impl PartialOrd for TrustAnchorId {
    fn partial_cmp(&self, other: &TrustAnchorId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of binary identifiers: shorter ones first.
pub(crate) fn order(one: &[u8], other: &[u8]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

impl fmt::Display for TrustAnchorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, component) in self.numbers().enumerate() {
            write!(f, "{}{component}", if place == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl fmt::Debug for TrustAnchorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TrustAnchorId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<TrustAnchorId, IdError> {
        let numbers: Option<Vec<u64>> = text.split('.').map(decimal).collect();
        TrustAnchorId::from_numbers(numbers.ok_or_else(|| IdError::Text(text.to_owned()))?)
    }
}

/// A number as it is written: digits without zeros before them.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = text == "0" || !text.starts_with('0');
    (digits && shortest).then(|| text.parse().ok())?
}

/// A number in base 128, the first digits first, each but the last with its highest bit set.
fn put_number(out: &mut Vec<u8>, number: u64) {
    let digits = (u64::BITS - (number | 1).leading_zeros()).div_ceil(7);
    for place in (0..digits).rev() {
        let digit = (number >> (7 * place)) as u8 & 0x7f;
        out.push(if place == 0 { digit } else { digit | 0x80 });
    }
}

/// Takes a number from the front, or none if there is none in as few bytes as possible.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let length = rest.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (digits, after) = rest.split_at_checked(length)?;
    if digits.first() == Some(&0x80) {
        return None;
    }
    *rest = after;
    digits.iter().try_fold(0_u64, |number, digit| {
        let shifted = number.checked_mul(1 << 7)?;
        Some(shifted | u64::from(digit & 0x7f))
    })
}

/// The number of a log of a CA, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogNumber(pub NonZeroU16);

impl LogNumber {
    /// The first log.
    pub const FIRST: LogNumber = LogNumber(NonZeroU16::MIN);

    /// The number, or `None` for zero.
    pub fn new(number: u16) -> Option<LogNumber> {
        NonZeroU16::new(number).map(LogNumber)
    }

    /// As a number.
    pub fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for LogNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An issuance log: whose it is, and which.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId {
    ca: TrustAnchorId,
    number: LogNumber,
    /// `{ca 0 N}`.
    id: TrustAnchorId,
}

impl LogId {
    /// The log `number` of a CA.
    ///
    /// # Errors
    ///
    /// If the CA's identifier is so long that identifiers of its logs and landmarks would be too
    /// long.
    pub fn new(ca: TrustAnchorId, number: LogNumber) -> Result<LogId, IdError> {
        let id = ca.child(&[0, number.get().into()])?;
        // Landmarks have one more number, below 2^48.
        ca.child(&[2, number.get().into(), (1 << 48) - 1])?;
        Ok(LogId { ca, number, id })
    }

    /// Whose it is: also the identifier of standalone certificates, and of the CA's cosigner.
    pub fn ca(&self) -> &TrustAnchorId {
        &self.ca
    }

    /// Which of the CA's it is.
    pub fn number(&self) -> LogNumber {
        self.number
    }

    /// The log's own identifier.
    pub fn id(&self) -> &TrustAnchorId {
        &self.id
    }

    /// The identifier of a landmark, that of the certificates relative to it: `{ca 1 N L}`.
    ///
    /// # Errors
    ///
    /// If it would be too long: not below 2^48.
    pub fn landmark(&self, number: u64) -> Result<TrustAnchorId, IdError> {
        self.ca.child(&[1, self.number.get().into(), number])
    }

    /// The identifier that a client sends which has this landmark and earlier ones: `{ca 2 N L}`.
    ///
    /// # Errors
    ///
    /// If it would be too long: not below 2^48.
    pub fn landmark_group(&self, number: u64) -> Result<TrustAnchorId, IdError> {
        self.ca.child(&[2, self.number.get().into(), number])
    }

    /// What a server is to know of a standalone certificate (section 8.2.1).
    pub fn standalone_properties(&self) -> Properties {
        let mut group = Pattern::of(&self.ca);
        group.0.extend([
            Component::exactly(2),
            Component::from(0),
            Component::from(0),
        ]);
        Properties {
            id: Some(self.ca.clone()),
            groups: vec![group],
            negotiation: Negotiation::Optional,
        }
    }

    /// What a server is to know of a certificate relative to a landmark (section 8.2.1).
    ///
    /// # Errors
    ///
    /// As [`landmark`](LogId::landmark).
    pub fn landmark_properties(&self, number: u64) -> Result<Properties, IdError> {
        let mut group = Pattern::of(&self.ca);
        group.0.extend([
            Component::exactly(2),
            Component::exactly(self.number.get().into()),
            Component::from(number),
        ]);
        Ok(Properties {
            id: Some(self.landmark(number)?),
            groups: vec![group],
            negotiation: Negotiation::Required,
        })
    }
}

/// What one number of a pattern may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    least: u64,
    /// `None` is without end.
    most: Option<u64>,
}

impl Component {
    /// One number alone.
    pub fn exactly(number: u64) -> Component {
        Component {
            least: number,
            most: Some(number),
        }
    }

    /// Any number from this one on.
    pub fn from(least: u64) -> Component {
        Component { least, most: None }
    }

    fn matches(self, number: u64) -> bool {
        self.least <= number && self.most.is_none_or(|most| number <= most)
    }
}

/// Identifiers that are alike but for ranges of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Vec<Component>);

impl Pattern {
    /// The pattern of one identifier.
    pub fn of(id: &TrustAnchorId) -> Pattern {
        Pattern(id.numbers().map(Component::exactly).collect())
    }

    /// Whether an identifier is one of them.
    pub fn matches(&self, id: &TrustAnchorId) -> bool {
        let numbers: Vec<u64> = id.numbers().collect();
        let pairs = || self.0.iter().zip(&numbers);
        numbers.len() == self.0.len() && pairs().all(|(component, at)| component.matches(*at))
    }

    /// The binary form: two numbers for each.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for component in &self.0 {
            put_number(&mut out, component.least);
            match component.most {
                Some(most) => put_number(&mut out, most),
                None => out.push(0x80),
            }
        }
        out
    }

    /// Of its binary form.
    ///
    /// # Errors
    ///
    /// If these are no pairs of numbers, or a range ends before it begins.
    pub fn from_bytes(bytes: &[u8]) -> Result<Pattern, IdError> {
        let wrong = || IdError::Binary(bytes.to_owned());
        let mut rest = bytes;
        let mut components = Vec::new();
        while !rest.is_empty() {
            let least = number(&mut rest).ok_or_else(wrong)?;
            let most = match rest.split_first() {
                Some((0x80, after)) => {
                    rest = after;
                    None
                }
                _ => Some(number(&mut rest).ok_or_else(wrong)?),
            };
            components.push(Component { least, most });
        }
        Pattern::new(components).ok_or_else(wrong)
    }

    fn new(components: Vec<Component>) -> Option<Pattern> {
        let ordered =
            |component: &Component| component.most.is_none_or(|most| component.least <= most);
        let valid = !components.is_empty() && components.iter().all(ordered);
        valid.then_some(Pattern(components))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Component { least, most }) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "." })?;
            match most {
                Some(most) if most == least => write!(f, "{least}")?,
                Some(most) => write!(f, "{{{least}-{most}}}")?,
                None => write!(f, "{{{least}-}}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Pattern {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Pattern, IdError> {
        let component = |text: &str| {
            let range = (text.strip_prefix('{')).and_then(|text| text.strip_suffix('}'));
            let Some(range) = range else {
                return decimal(text).map(Component::exactly);
            };
            let (least, most) = range.split_once('-')?;
            let most = match most {
                "" => None,
                most => Some(decimal(most)?),
            };
            let least = decimal(least)?;
            Some(Component { least, most })
        };
        let components: Option<Vec<_>> = text.split('.').map(component).collect();
        (components.and_then(Pattern::new)).ok_or_else(|| IdError::Pattern(text.to_owned()))
    }
}

/// Whether a certificate may be sent to a client that did not ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Negotiation {
    /// It may.
    #[default]
    Optional,
    /// It may not: most clients don't have what it needs.
    Required,
}

/// What comes with a certificate for the server to choose it by: a CertificatePropertyList.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Its trust anchor.
    pub id: Option<TrustAnchorId>,
    /// Groups of trust anchors that its own is in.
    pub groups: Vec<Pattern>,
    /// Whether it needs to be asked for.
    pub negotiation: Negotiation,
}

/// Why something is no list of properties.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertiesError {
    /// Its bytes are not those of a list.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// It has an identifier that is none.
    #[error("{0}")]
    Id(#[from] IdError),
    /// It has a property twice, or one before another of a lower number.
    #[error("property {0} stands after one that should follow it, or twice")]
    Order(u64),
}

const PROPERTY_ID: u64 = 0;
const PROPERTY_GROUPS: u64 = 1;
const PROPERTY_NEGOTIATION: u64 = 2;
const PROPERTIES: &str = "the property list";

impl Properties {
    /// The label of its PEM form.
    pub const PEM_LABEL: &'static str = "CERTIFICATE PROPERTIES";

    /// Whether a client which sends these identifiers accepts the certificate.
    pub fn matches(&self, id: &TrustAnchorId) -> bool {
        self.id.as_ref() == Some(id) || self.groups.iter().any(|group| group.matches(id))
    }

    /// The list as bytes.
    ///
    /// # Errors
    ///
    /// If there are too many groups.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        let mut list = Vec::new();
        if let Some(id) = &self.id {
            put_uint(&mut list, 2, PROPERTY_ID);
            put_vector(&mut list, PROPERTIES, 2, id.as_bytes())?;
        }
        if !self.groups.is_empty() {
            let mut groups = Vec::new();
            for group in &self.groups {
                put_vector(&mut groups, "a pattern", 1, &group.to_bytes())?;
            }
            let mut property = Vec::new();
            put_vector(&mut property, PROPERTIES, 2, &groups)?;
            put_uint(&mut list, 2, PROPERTY_GROUPS);
            put_vector(&mut list, PROPERTIES, 2, &property)?;
        }
        if self.negotiation == Negotiation::Required {
            put_uint(&mut list, 2, PROPERTY_NEGOTIATION);
            put_uint(&mut list, 2, 0);
        }
        let mut out = Vec::new();
        put_vector(&mut out, PROPERTIES, 2, &list)?;
        Ok(out)
    }

    /// Of its bytes. Properties that nobody knows are passed over.
    ///
    /// # Errors
    ///
    /// If it is no list, or what is in it is not what it should be.
    pub fn from_bytes(bytes: &[u8]) -> Result<Properties, PropertiesError> {
        let mut outer = Reader::new(PROPERTIES, bytes);
        let mut list = Reader::new(PROPERTIES, outer.vector(2)?);
        outer.finish()?;
        let mut properties = Properties::default();
        let mut after = 0;
        while !list.is_empty() {
            let kind = list.uint(2)?;
            if kind < after {
                return Err(PropertiesError::Order(kind));
            }
            after = kind + 1;
            let content = list.vector(2)?;
            let mut property = Reader::new("a property", content);
            match kind {
                PROPERTY_ID => properties.id = Some(TrustAnchorId::from_bytes(content)?),
                PROPERTY_GROUPS => {
                    let mut groups = Reader::new("a list of patterns", property.vector(2)?);
                    property.finish()?;
                    while !groups.is_empty() {
                        let group = Pattern::from_bytes(groups.vector(1)?)?;
                        properties.groups.push(group);
                    }
                }
                PROPERTY_NEGOTIATION => {
                    property.finish()?;
                    properties.negotiation = Negotiation::Required;
                }
                _ => {}
            }
        }
        Ok(properties)
    }
}

#[cfg(test)]
mod tests;
