//! The TLS extension in which a client and a server say what they call the CAs that end their paths
//! (draft-ietf-tls-trust-anchor-ids-06).

use crate::id::TrustAnchorId;

/// The number of `trust_anchors`. IANA has not assigned one; this is the one that Chromium and OpenSSL's branch use.
pub const EXTENSION: u16 = 0xca34;

/// What a ClientHello or EncryptedExtensions says with it: a list of ids, which has two bytes of length.
pub fn list<'a>(ids: impl IntoIterator<Item = &'a TrustAnchorId>) -> Vec<u8> {
    let mut list = Vec::new();
    for id in ids {
        list.push(id.as_bytes().len() as u8);
        list.extend_from_slice(id.as_bytes());
    }
    let length = u16::try_from(list.len()).unwrap_or(u16::MAX);
    [length.to_be_bytes().as_slice(), &list].concat()
}

/// The ids of such a list; none where it is no list.
pub fn parse_list(data: &[u8]) -> Option<Vec<TrustAnchorId>> {
    let (length, mut rest) = data.split_first_chunk::<2>()?;
    (usize::from(u16::from_be_bytes(*length)) == rest.len()).then_some(())?;
    let mut ids = Vec::new();
    while let Some((length, list)) = rest.split_first() {
        let (id, list) = list.split_at_checked(usize::from(*length))?;
        ids.push(TrustAnchorId::from_bytes(id).ok()?);
        rest = list;
    }
    Some(ids)
}

#[cfg(test)]
mod tests;
