//! The certificates that both ends of an abridged handshake know beforehand
//! (draft-ietf-tls-cert-abridge-02), and what pass 2 has as its dictionary.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use openssl::error::ErrorStack;
use openssl::sha::sha256;
use openssl::x509::X509;

/// Certificates of CAs in an order that both ends know, and a dictionary.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Listing(Arc<Listed>);

#[derive(Default, PartialEq, Eq)]
struct Listed {
    /// In DER.
    certificates: Vec<Vec<u8>>,
    dictionary: Vec<u8>,
    digest: [u8; 32],
}

/// A list is too long for the two bytes of a place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a list of {0} certificates is too long: an abridged one has room for 65536")]
pub struct ListingTooLong(pub usize);

impl Listing {
    /// The most certificates that it can hold.
    pub const MOST: usize = 1 << 16;

    /// Of these certificates, in their order, each once. The dictionary holds what their
    /// end-entities say of them, and some extensions of `samples`, which are end-entities of
    /// theirs.
    ///
    /// The draft has log ids of Certificate Transparency between the two; they are left out, since
    /// no list of logs comes with certificates.
    ///
    /// # Errors
    /// [`ListingTooLong`], and OpenSSL's.
    pub fn new(certificates: &[X509], samples: &[X509]) -> Result<Listing, ListingError> {
        let mut listed: Vec<Vec<u8>> = Vec::new();
        let mut distinct = HashSet::new();
        let mut dictionary = Vec::new();
        for certificate in certificates {
            let der = certificate.to_der()?;
            if !distinct.insert(der.clone()) {
                continue;
            }
            dictionary.extend(certificate.subject_name().to_der()?);
            if let Some(key) = certificate.subject_key_id() {
                dictionary.extend(authority_key_identifier(key.as_slice()));
            }
            listed.push(der);
        }
        if listed.len() > Self::MOST {
            return Err(ListingTooLong(listed.len()).into());
        }
        for sample in samples {
            dictionary.extend(shared_extensions(&sample.to_der()?));
        }
        let mut all = dictionary.clone();
        all.extend(listed.iter().flatten());
        Ok(Listing(Arc::new(Listed {
            digest: sha256(&all),
            certificates: listed,
            dictionary,
        })))
    }

    /// Of a file in PEM: its certificates of CAs are listed, and its others are end-entities of
    /// theirs.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`ListingError::Empty`] where it has none of CAs.
    pub fn from_pem(pem: &[u8]) -> Result<Listing, ListingError> {
        let mut cas = Vec::new();
        let mut others = Vec::new();
        for certificate in X509::stack_from_pem(pem)? {
            if is_ca(&certificate.to_der()?) {
                cas.push(certificate);
            } else {
                others.push(certificate);
            }
        }
        if cas.is_empty() {
            Err(ListingError::Empty)
        } else {
            Listing::new(&cas, &others)
        }
    }

    /// How many certificates there are.
    pub fn len(&self) -> usize {
        self.0.certificates.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.certificates.is_empty()
    }

    /// SHA-256 of all of it.
    pub fn digest(&self) -> [u8; 32] {
        self.0.digest
    }

    /// Bytes that a client has to hold beforehand.
    pub fn bytes(&self) -> usize {
        let certificates = self.0.certificates.iter().map(Vec::len);
        certificates.sum::<usize>() + self.0.dictionary.len()
    }

    /// What pass 2 compresses with.
    #[cfg_attr(
        not(feature = "rustls"),
        allow(dead_code, reason = "rustls compresses")
    )]
    pub(crate) fn dictionary(&self) -> &[u8] {
        &self.0.dictionary
    }

    /// Pass 1 of a Certificate message without its header. None where that can't be parsed.
    pub fn abridge(&self, message: &[u8]) -> Option<Vec<u8>> {
        map_certificates(message, usize::MAX, |certificate| {
            let mut listed = self.0.certificates.iter();
            let place = listed.position(|listed| listed == certificate)?;
            let [high, low] = u16::try_from(place).ok()?.to_be_bytes();
            Some(vec![MARK, high, low])
        })
    }

    /// The message of which pass 1 has made this. An id that is not listed stays as it is. None
    /// where it can't be parsed, or has more than `most` bytes.
    pub fn restore(&self, abridged: &[u8], most: usize) -> Option<Vec<u8>> {
        map_certificates(abridged, most, |certificate| match certificate {
            [MARK, high, low] => {
                let place = usize::from(u16::from_be_bytes([*high, *low]));
                self.0.certificates.get(place).cloned()
            }
            _ => None,
        })
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.len())
    }
}

/// What a listing can't be made of.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ListingError {
    /// Too many.
    #[error(transparent)]
    TooLong(#[from] ListingTooLong),
    /// None of a CA.
    #[error("it holds no certificate of a CA")]
    Empty,
    /// OpenSSL can't read one.
    #[error("a certificate of the list can't be read: {}", lastbyte_providers::reason(.0))]
    Unreadable(#[from] ErrorStack),
}

/// What stands in place of a certificate begins with this: no DER of a certificate does.
const MARK: u8 = 0xff;

/// A Certificate message with some of its certificates replaced, and lengths corrected. None where
/// it can't be parsed, or would have more than `most` bytes.
fn map_certificates(
    message: &[u8],
    most: usize,
    replace: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut rest = message;
    let context = take_vector(&mut rest, 1)?;
    let mut entries = take_vector(&mut rest, 3)?;
    if !rest.is_empty() {
        return None;
    }
    let mut mapped = Vec::new();
    let head = 1 + context.len() + 3;
    while !entries.is_empty() {
        let certificate = take_vector(&mut entries, 3)?;
        let extensions = take_vector(&mut entries, 2)?;
        let replaced = replace(certificate);
        let certificate = replaced.as_deref().unwrap_or(certificate);
        if head + mapped.len() + 3 + certificate.len() + 2 + extensions.len() > most {
            return None;
        }
        put_vector(&mut mapped, 3, certificate)?;
        put_vector(&mut mapped, 2, extensions)?;
    }
    let mut message = Vec::new();
    put_vector(&mut message, 1, context)?;
    put_vector(&mut message, 3, &mapped)?;
    Some(message)
}

/// Takes what follows a length of so many bytes.
fn take_vector<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(length)?;
    let length = head
        .iter()
        .fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (vector, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(vector)
}

/// Puts `vector` behind its length in so many bytes, if that holds it.
fn put_vector(bytes: &mut Vec<u8>, length: usize, vector: &[u8]) -> Option<()> {
    (vector.len() >> (8 * length) == 0).then_some(())?;
    let size = u32::try_from(vector.len()).ok()?.to_be_bytes();
    bytes.extend_from_slice(size.get(size.len() - length..)?);
    bytes.extend_from_slice(vector);
    Some(())
}

/// The DER of the extension with which certificates name their issuer's key (RFC 5280, 4.2.1.1).
fn authority_key_identifier(key: &[u8]) -> Vec<u8> {
    use lastbyte_sizes::der::{self, Oid};
    const AUTHORITY_KEY_IDENTIFIER: Oid = Oid(&[2, 5, 29, 35]);
    let identifier = der::element(der::implicit(0), key);
    lastbyte_sizes::profile::extension(AUTHORITY_KEY_IDENTIFIER, &der::sequence(&[&identifier]))
}

/// The extensions of an end-entity that others of its issuer have alike, whole: where to ask about
/// it, under which policies it was issued, where lists of revoked ones are, and the freshest one.
fn shared_extensions(certificate: &[u8]) -> Vec<u8> {
    const OIDS: [&[u8]; 4] = [
        &[0x2b, 6, 1, 5, 5, 7, 1, 1],
        &[0x55, 29, 32],
        &[0x55, 29, 31],
        &[0x55, 29, 46],
    ];
    let mut shared = Vec::new();
    for extension in extensions(certificate).unwrap_or_default() {
        let oid = element(extension, 0x30).and_then(|(inside, _)| element(inside, 0x06));
        if oid.is_some_and(|(oid, _)| OIDS.contains(&oid)) {
            shared.extend_from_slice(extension);
        }
    }
    shared
}

/// Whether a certificate's basic constraints say that it is of a CA (RFC 5280, 4.2.1.9).
fn is_ca(certificate: &[u8]) -> bool {
    const BASIC_CONSTRAINTS: &[u8] = &[0x55, 29, 19];
    const OCTET_STRING: u8 = 0x04;
    let says_so = |extension: &[u8]| {
        let (inside, _) = element(extension, 0x30)?;
        let (oid, rest) = element(inside, 0x06)?;
        (oid == BASIC_CONSTRAINTS).then_some(())?;
        // Critical or not.
        let rest = element(rest, 0x01).map_or(rest, |(_, rest)| rest);
        let (value, _) = element(rest, OCTET_STRING)?;
        let (constraints, _) = element(value, 0x30)?;
        let (is_ca, _) = element(constraints, 0x01)?;
        Some(is_ca != [0])
    };
    let mut all = extensions(certificate).unwrap_or_default().into_iter();
    all.any(|extension| says_so(extension) == Some(true))
}

/// The DER of each extension of a certificate.
fn extensions(certificate: &[u8]) -> Option<Vec<&[u8]>> {
    const SEQUENCE: u8 = 0x30;
    const EXTENSIONS: u8 = 0xa3;
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    while let Some(tag) = fields.first() {
        let (inside, rest) = element(fields, *tag)?;
        if *tag == EXTENSIONS {
            let (mut list, _) = element(inside, SEQUENCE)?;
            let mut all = Vec::new();
            while !list.is_empty() {
                let (_, rest) = element(list, SEQUENCE)?;
                all.push(list.get(..list.len() - rest.len())?);
                list = rest;
            }
            return Some(all);
        }
        fields = rest;
    }
    Some(Vec::new())
}

/// What is in the element of this tag at the front, and what is behind it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    (*found == tag).then_some(())?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        long => {
            let count = usize::from(long & 0x7f);
            (1..=4).contains(&count).then_some(())?;
            let (bytes, rest) = rest.split_at_checked(count)?;
            let length = bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            (length, rest)
        }
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests;
