//! The PQTLSAD record: certificates in the RDATA of DNS records.
//!
//! A list that does not fit one DNS message is split between certificates. Fragment 0 is a record
//! of the server's name itself, fragment `i` one of [`owner`]`(name, i)`. Several chains of one
//! name are several records of one RRset: the digest in each tells them apart.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::certificates::{self, CertificateList, ListError};
use crate::{Digest, Part};

/// The version of the RDATA that is written here.
pub const VERSION: u8 = 1;
/// Bytes before the certificates: version, part, index, count and digest.
pub const HEADER: usize = 4 + Digest::LENGTH;
/// The most bytes of RDATA in one record: a message has up to 65,535 bytes, and the header, the
/// question, the record's own header and an OPT record are in it as well, each name up to 255
/// bytes.
pub const MAX_RDATA: usize = 65_535 - 12 - (255 + 4) - (255 + 10) - 64;
/// The most fragments of a list.
pub const MAX_FRAGMENTS: usize = CertificateList::MAX_CERTIFICATES;

/// Where records are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// A type of its own, of this number.
    Own(u16),
    /// TLSA (RFC 6698), as the mechanism's authors did. Usage, selector and matching type are 255,
    /// the private use of each (RFC 7218), so that DANE clients let it be; the RDATA follows.
    Tlsa,
}

impl RecordType {
    /// The first type for private use (RFC 6895, 3.1).
    pub const DEFAULT: RecordType = RecordType::Own(65_280);
    const TLSA: u16 = 52;
    /// What stands before the RDATA in a TLSA record.
    const TLSA_PREFIX: [u8; 3] = [255; 3];

    /// Its number.
    pub fn number(self) -> u16 {
        match self {
            RecordType::Own(number) => number,
            RecordType::Tlsa => RecordType::TLSA,
        }
    }

    fn prefix(self) -> &'static [u8] {
        match self {
            RecordType::Own(_) => &[],
            RecordType::Tlsa => &RecordType::TLSA_PREFIX,
        }
    }
}

impl Default for RecordType {
    fn default() -> Self {
        RecordType::DEFAULT
    }
}

/// As zone files have it (RFC 3597, 5).
impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordType::Own(number) => write!(f, "TYPE{number}"),
            RecordType::Tlsa => f.write_str("TLSA"),
        }
    }
}

/// A number of the private range, with or without `TYPE`, or `tlsa`.
impl FromStr for RecordType {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<RecordType, RecordError> {
        /// RFC 6895, 3.1.
        const PRIVATE: std::ops::RangeInclusive<u16> = 65_280..=65_534;
        if text.eq_ignore_ascii_case("tlsa") {
            return Ok(RecordType::Tlsa);
        }
        let digits = match text.get(..4) {
            Some(word) if word.eq_ignore_ascii_case("type") => &text[4..],
            _ => text,
        };
        let number = digits
            .parse()
            .ok()
            .filter(|number| PRIVATE.contains(number));
        number
            .map(RecordType::Own)
            .ok_or_else(|| RecordError::UnknownType(text.to_owned()))
    }
}

/// A part as records have it.
fn part_to_byte(part: Part) -> u8 {
    match part {
        Part::Root => 1,
        Part::Intermediate => 2,
        Part::EndEntity => 3,
    }
}

fn part_from_byte(byte: u8) -> Option<Part> {
    Part::ALL
        .into_iter()
        .find(|part| part_to_byte(*part) == byte)
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// How far down the whole list goes.
    pub part: Part,
    /// Which fragment it is, from 0.
    pub index: u8,
    /// How many fragments the list has.
    pub count: u8,
    /// Of the whole list.
    pub digest: Digest,
    /// Its own certificates, the top one first.
    pub certificates: Vec<Vec<u8>>,
}

impl Fragment {
    /// The RDATA.
    pub fn encode(&self, record_type: RecordType) -> Vec<u8> {
        let mut bytes = record_type.prefix().to_vec();
        bytes.extend([VERSION, part_to_byte(self.part), self.index, self.count]);
        bytes.extend_from_slice(self.digest.as_bytes());
        bytes.extend(certificates::encode(&self.certificates));
        bytes
    }

    /// The inverse of [`Fragment::encode`]. Certificates are taken as bytes, not parsed.
    ///
    /// # Errors
    /// [`RecordError`] for anything that is not exactly a record of version 1.
    pub fn decode(record_type: RecordType, rdata: &[u8]) -> Result<Fragment, RecordError> {
        let rdata = rdata
            .strip_prefix(record_type.prefix())
            .ok_or(RecordError::NotOurs)?;
        let (&version, rest) = rdata.split_first().ok_or(RecordError::Truncated)?;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let (&[part, index, count], rest) = rest
            .split_first_chunk::<3>()
            .ok_or(RecordError::Truncated)?;
        let (digest, rest) = rest
            .split_first_chunk::<{ Digest::LENGTH }>()
            .ok_or(RecordError::Truncated)?;
        if index >= count || usize::from(count) > MAX_FRAGMENTS {
            return Err(RecordError::Fragment { index, count });
        }
        let certificates = certificates::decode(rest)?;
        if certificates.is_empty() {
            return Err(RecordError::List(ListError::Empty));
        }
        Ok(Fragment {
            part: part_from_byte(part).ok_or(RecordError::Part(part))?,
            index,
            count,
            digest: Digest::from_bytes(digest).ok_or(RecordError::Truncated)?,
            certificates,
        })
    }

    /// The RDATA as zone files hold that of any type (RFC 3597, 5).
    pub fn to_text(&self, record_type: RecordType) -> String {
        let bytes = self.encode(record_type);
        format!("\\# {} {}", bytes.len(), hex::encode(&bytes))
    }

    /// The inverse of [`Fragment::to_text`].
    ///
    /// # Errors
    /// [`RecordError::Text`] for what is no such text, and all that [`Fragment::decode`] has.
    pub fn from_text(record_type: RecordType, text: &str) -> Result<Fragment, RecordError> {
        let mut words = text.split_ascii_whitespace();
        let (Some("\\#"), Some(length)) = (words.next(), words.next()) else {
            return Err(RecordError::Text);
        };
        let length: u16 = length.parse().map_err(|_| RecordError::Text)?;
        // White space may be anywhere in the digits.
        let bytes = hex::decode(words.collect::<String>()).map_err(|_| RecordError::Text)?;
        if bytes.len() != usize::from(length) {
            return Err(RecordError::Text);
        }
        Fragment::decode(record_type, &bytes)
    }
}

/// The records of a list, in order.
///
/// # Errors
/// [`RecordError::CertificateTooLarge`] if one certificate alone does not fit a record.
pub fn split(part: Part, list: &CertificateList) -> Result<Vec<Fragment>, RecordError> {
    // TLSA has the less room.
    const ROOM: usize = MAX_RDATA - HEADER - RecordType::TLSA_PREFIX.len();
    let mut groups: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut room = 0;
    for certificate in list.certificates() {
        let needed = certificate.len() + CertificateList::LENGTH_BYTES;
        if needed > ROOM {
            return Err(RecordError::CertificateTooLarge(certificate.len()));
        }
        match groups.last_mut() {
            Some(group) if needed <= room => group.push(certificate.clone()),
            _ => {
                groups.push(vec![certificate.clone()]);
                room = ROOM;
            }
        }
        room -= needed;
    }
    // A list has few certificates.
    let count = groups.len() as u8;
    let digest = list.digest();
    Ok((0..)
        .zip(groups)
        .map(|(index, certificates)| Fragment {
            part,
            index,
            count,
            digest,
            certificates,
        })
        .collect())
}

/// The name that owns fragment `index` of a server's list: its own name, or `_1._pqtlsad.` before
/// it. Names are without a dot at the end.
pub fn owner(name: &str, index: u8) -> String {
    match index {
        0 => name.to_owned(),
        _ => format!("_{index}._pqtlsad.{name}"),
    }
}

/// A whole list, as records brought it. Nothing about its certificates is known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// How far down it claims to go.
    pub part: Part,
    /// The certificates.
    pub list: CertificateList,
}

/// Puts lists together from fragments that come in any order.
#[derive(Debug, Default)]
pub struct Assembly {
    lists: BTreeMap<[u8; Digest::LENGTH], Partial>,
}

#[derive(Debug)]
struct Partial {
    part: Part,
    fragments: Vec<Option<Vec<Vec<u8>>>>,
}

impl Assembly {
    /// Lists that are put together at once at most: chains of one name.
    pub const MAX_LISTS: usize = 8;

    /// Takes one fragment.
    ///
    /// # Errors
    /// [`RecordError`] if it contradicts an earlier one, or if there are too many lists.
    pub fn add(&mut self, fragment: Fragment) -> Result<(), RecordError> {
        let key = *fragment.digest.as_bytes();
        if !self.lists.contains_key(&key) && self.lists.len() == Assembly::MAX_LISTS {
            return Err(RecordError::TooManyLists);
        }
        let list = self.lists.entry(key).or_insert_with(|| Partial {
            part: fragment.part,
            fragments: vec![None; usize::from(fragment.count)],
        });
        let same =
            list.part == fragment.part && list.fragments.len() == usize::from(fragment.count);
        match list.fragments.get_mut(usize::from(fragment.index)) {
            Some(slot)
                if same
                    && slot
                        .as_ref()
                        .is_none_or(|old| *old == fragment.certificates) =>
            {
                *slot = Some(fragment.certificates);
                Ok(())
            }
            _ => Err(RecordError::Contradiction),
        }
    }

    /// The indices of fragments that are yet to be asked for, over all lists.
    pub fn missing(&self) -> Vec<u8> {
        let missing = self.lists.values().flat_map(|list| {
            let fragments = (0..).zip(&list.fragments);
            fragments.filter_map(|(index, fragment)| fragment.is_none().then_some(index))
        });
        let mut missing: Vec<u8> = missing.collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// The lists, each if it is whole and has the digest that its records say.
    pub fn finish(self) -> Vec<Result<Delivered, RecordError>> {
        let lists = self.lists.into_iter();
        lists.map(|(digest, list)| list.finish(digest)).collect()
    }
}

impl Partial {
    fn finish(self, digest: [u8; Digest::LENGTH]) -> Result<Delivered, RecordError> {
        let fragments: Option<Vec<_>> = self.fragments.into_iter().collect();
        let certificates = fragments.ok_or(RecordError::Incomplete)?.concat();
        let list = CertificateList::new(certificates)?;
        if *list.digest().as_bytes() != digest {
            return Err(RecordError::Digest);
        }
        Ok(Delivered {
            part: self.part,
            list,
        })
    }
}

/// Why bytes are no record, or records no list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A TLSA record for DANE.
    #[error("not a PQTLSAD record")]
    NotOurs,
    /// The bytes end too early.
    #[error("truncated")]
    Truncated,
    /// Of another version than [`VERSION`].
    #[error("version {0}: only version {VERSION} is known")]
    Version(u8),
    /// No [`Part`] has this number.
    #[error("unknown part {0}")]
    Part(u8),
    /// There can be no such fragment.
    #[error("fragment {index} of {count}")]
    Fragment {
        /// Its index.
        index: u8,
        /// How many there are claimed to be.
        count: u8,
    },
    /// Its certificates are no list.
    #[error(transparent)]
    List(#[from] ListError),
    /// One certificate is larger than a record.
    #[error(
        "a certificate of {0} bytes does not fit one DNS record of {MAX_RDATA}: leave it in the handshake"
    )]
    CertificateTooLarge(usize),
    /// More lists than [`Assembly::MAX_LISTS`].
    #[error("records of more than {} chains", Assembly::MAX_LISTS)]
    TooManyLists,
    /// Two fragments say different things of one list.
    #[error("its fragments contradict each other")]
    Contradiction,
    /// A fragment did not come.
    #[error("a fragment is missing")]
    Incomplete,
    /// The certificates have another digest than the records say.
    #[error("its certificates have another digest than it says")]
    Digest,
    /// The text is not `\# LENGTH HEX`.
    #[error("not of the form \\# LENGTH HEX")]
    Text,
    /// The text names no type.
    #[error("unknown record type {0:?}: use tlsa or a number of the private range, 65280 to 65534")]
    UnknownType(String),
}

#[cfg(test)]
mod tests;
