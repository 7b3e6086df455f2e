//! Trust anchor ids (draft-ietf-tls-trust-anchor-ids-06): what a client and a server call the CAs that end their
//! paths, and the extension in which they say so.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::framing::EXTENSION_HEADER;

/// The number of `trust_anchors`. IANA has not assigned one; this is the one that Chromium and OpenSSL's branch use.
pub const TRUST_ANCHORS: u16 = 0xca34;

/// An object identifier below 1.3.6.1.4.1, as DER has the contents of a RELATIVE-OID (X.690, 8.20).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrustAnchorId(Vec<u8>);

impl TrustAnchorId {
    /// The longest that a list can hold, in bytes.
    pub const LONGEST: usize = 255;

    /// The one that has these bytes on the wire: components in base 128, each as short as it can be.
    pub fn from_bytes(bytes: &[u8]) -> Option<TrustAnchorId> {
        const MORE: u8 = 0x80;
        let ends = bytes.last().is_some_and(|last| last & MORE == 0);
        let mut begins = true;
        for byte in bytes {
            if begins && *byte == MORE {
                return None;
            }
            begins = byte & MORE == 0;
        }
        (ends && bytes.len() <= Self::LONGEST).then(|| TrustAnchorId(bytes.to_vec()))
    }

    /// Of these components, if their bytes are few enough.
    pub fn of_components(components: &[u64]) -> Option<TrustAnchorId> {
        let mut bytes = Vec::new();
        for component in components {
            let digits = (64 - component.leading_zeros()).div_ceil(7).max(1);
            for digit in (0..digits).rev() {
                let more = if digit > 0 { 0x80 } else { 0 };
                bytes.push((component >> (7 * digit)) as u8 & 0x7f | more);
            }
        }
        TrustAnchorId::from_bytes(&bytes)
    }

    /// What a chain of our own calls the CA with so many certificates above it: the number of RFC 5612, which is
    /// for examples, and the CA's level.
    pub fn of_level(level: usize) -> TrustAnchorId {
        TrustAnchorId(vec![0x81, 0xfd, 0x59, 1, (level & 0x3f) as u8])
    }

    /// What that CA was called before its key was changed: as long, and of no path that a server has.
    pub fn of_earlier(level: usize) -> TrustAnchorId {
        TrustAnchorId(vec![0x81, 0xfd, 0x59, 2, (level & 0x3f) as u8])
    }

    /// As on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What it takes in a list, its length included.
    pub fn wire_bytes(&self) -> usize {
        1 + self.0.len()
    }
}

impl fmt::Display for TrustAnchorId {
    /// Dotted, without the arc that all have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut component: u128 = 0;
        let mut dot = "";
        for byte in &self.0 {
            component = component << 7 | u128::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                write!(f, "{dot}{component}")?;
                (component, dot) = (0, ".");
            }
        }
        Ok(())
    }
}

impl FromStr for TrustAnchorId {
    type Err = TrustAnchorIdError;

    fn from_str(text: &str) -> Result<TrustAnchorId, TrustAnchorIdError> {
        let components = text.split('.').map(str::parse);
        let components: Result<Vec<u64>, _> = components.collect();
        let id = components.ok().and_then(|all| Self::of_components(&all));
        id.ok_or_else(|| TrustAnchorIdError(text.to_owned()))
    }
}

/// The text is no trust anchor id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown trust anchor id {0:?}: write numbers as 32473.1")]
pub struct TrustAnchorIdError(String);

/// What a ClientHello or EncryptedExtensions says with `trust_anchors`: a list of ids, which has two bytes of length.
pub fn trust_anchor_list(ids: &[TrustAnchorId]) -> Vec<u8> {
    let mut list = Vec::new();
    for id in ids {
        list.push(id.0.len() as u8);
        list.extend_from_slice(&id.0);
    }
    let length = u16::try_from(list.len()).unwrap_or(u16::MAX);
    [length.to_be_bytes().as_slice(), &list].concat()
}

/// The ids of such a list; none where it is no list.
pub fn parse_trust_anchor_list(data: &[u8]) -> Option<Vec<TrustAnchorId>> {
    let (length, mut rest) = data.split_first_chunk::<2>()?;
    (usize::from(u16::from_be_bytes(*length)) == rest.len()).then_some(())?;
    let mut ids = Vec::new();
    while let Some((length, list)) = rest.split_first() {
        let (id, list) = list.split_at_checked(usize::from(*length))?;
        ids.push(TrustAnchorId::from_bytes(id)?);
        rest = list;
    }
    Some(ids)
}

/// Bytes of the whole extension with a list of these.
pub fn trust_anchors_bytes(ids: &[TrustAnchorId]) -> usize {
    let list: usize = ids.iter().map(TrustAnchorId::wire_bytes).sum();
    EXTENSION_HEADER + 2 + list
}

#[cfg(test)]
mod tests;
