//! Entries of a log: what a CA certifies, without public keys and signatures (section 5.2.1).

use crate::der::{self, DerError, Element, Elements};
use crate::hash::HashValue;
use crate::id::TrustAnchorId;
use crate::oid::{self, Draft};
use crate::time::{UnixTime, Validity};
use crate::wire::{Reader, WireError, put_uint, put_vector};

/// An entry that says nothing.
pub const NULL_ENTRY: [u8; 4] = [0; 4];

/// The most bytes of an entry.
pub const MAX_ENTRY_BYTES: usize = 65_535;

const TYPE_NULL: u64 = 0;
const TYPE_CERTIFICATE: u64 = 1;
const VERSION_3: [u8; 5] = [0xa0, 3, der::INTEGER, 1, 2];

/// Why something is no entry, or no name of a CA.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Its frame is not as it should be.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// A field is not as it should be.
    #[error("{field}: {error}")]
    Field {
        /// Which.
        field: &'static str,
        /// Why.
        error: DerError,
    },
    /// It is of a type that is not known.
    #[error("an entry of type {0}, which is not known")]
    Type(u64),
    /// Its extensions are not in ascending order, or one is there twice.
    #[error("entry extension {0} stands after one that should follow it, or twice")]
    ExtensionOrder(u64),
    /// It is too long.
    #[error("an entry has at most {MAX_ENTRY_BYTES} bytes, not {0}")]
    Long(usize),
    /// It is not of version 3.
    #[error("the certificate is not of version 3")]
    Version,
    /// It is of another draft.
    #[error("the issuer is named as in {0}: only draft-ietf-plants-merkle-tree-certs-07 is known")]
    Draft(Draft),
    /// The issuer is no CA of this kind.
    #[error("the issuer is not named by a trust anchor identifier")]
    Issuer,
    /// A name can't be in a certificate.
    #[error("{name:?} is no name of a host: {problem}")]
    Name {
        /// The name.
        name: String,
        /// Why it is none.
        problem: &'static str,
    },
    /// A name is given twice.
    #[error("the host {0:?} is given twice: leave one out")]
    NameTwice(String),
    /// The public key's hash is not 32 bytes.
    #[error("the public key's hash has {0} bytes, not 32")]
    KeyHash(usize),
    /// An extension is there twice.
    #[error("an extension is there twice")]
    Twice,
}

/// Tells of which field an error is.
pub(crate) fn of_field<T>(
    field: &'static str,
    result: Result<T, DerError>,
) -> Result<T, EntryError> {
    result.map_err(|error| EntryError::Field { field, error })
}

/// What a certificate and its entry have in common, as DER.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    /// The version's element.
    pub(crate) version: &'a [u8],
    /// Issuer, validity and subject, one after the other.
    pub(crate) names: &'a [u8],
    /// The public key's algorithm.
    pub(crate) algorithm: &'a [u8],
    /// All that follows the public key.
    pub(crate) tail: &'a [u8],
}

impl Fields<'_> {
    /// The hash of the entry: `extensions` are the entry's, without their length.
    pub(crate) fn leaf(self, extensions: &[u8], key: HashValue) -> HashValue {
        let length = (extensions.len() as u16).to_be_bytes();
        HashValue::leaf([
            &length[..],
            extensions,
            &(TYPE_CERTIFICATE as u16).to_be_bytes(),
            self.version,
            self.names,
            self.algorithm,
            &[der::OCTET_STRING, HashValue::BYTES as u8],
            key.as_ref(),
            self.tail,
        ])
    }
}

/// A certificate's entry, read.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    pub(crate) fields: Fields<'a>,
    pub(crate) extensions: &'a [u8],
    names: Names<'a>,
    key_hash: HashValue,
}

/// What an entry or a certificate says of names and times.
#[derive(Clone, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) issuer: TrustAnchorId,
    pub(crate) validity: Validity,
    /// As DER.
    pub(crate) subject: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads an entry. One that says nothing is `None`.
    ///
    /// # Errors
    ///
    /// If it is none, or of a type that is not known.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Entry<'a>>, EntryError> {
        if bytes.len() > MAX_ENTRY_BYTES {
            return Err(EntryError::Long(bytes.len()));
        }
        let mut reader = Reader::new("the entry", bytes);
        let extensions = reader.vector(2)?;
        check_extensions(extensions)?;
        match reader.uint(2)? {
            TYPE_NULL => {
                reader.finish()?;
                Ok(None)
            }
            TYPE_CERTIFICATE => Entry::of_certificate(extensions, reader.rest()).map(Some),
            unknown => Err(EntryError::Type(unknown)),
        }
    }

    fn of_certificate(extensions: &'a [u8], content: &'a [u8]) -> Result<Entry<'a>, EntryError> {
        let mut elements = Elements::new(content);
        let version = version(&mut elements)?;
        let (names, text) = names(&mut elements)?;
        let algorithm = of_field("the key's algorithm", elements.element(der::SEQUENCE))?.whole;
        let hash = of_field("the key's hash", elements.content(der::OCTET_STRING))?;
        let key_hash = (hash.try_into()).map_err(|_| EntryError::KeyHash(hash.len()))?;
        let tail = elements.rest();
        check_tail(tail)?;
        Ok(Entry {
            fields: Fields {
                version,
                names: text,
                algorithm,
                tail,
            },
            extensions,
            names,
            key_hash: HashValue(key_hash),
        })
    }

    /// The CA.
    pub fn issuer(&self) -> &TrustAnchorId {
        &self.names.issuer
    }

    /// When the certificate holds.
    pub fn validity(&self) -> Validity {
        self.names.validity
    }

    /// Whose it is, as DER.
    pub fn subject(&self) -> &'a [u8] {
        self.names.subject
    }

    /// The hash of the public key's DER.
    pub fn key_hash(&self) -> HashValue {
        self.key_hash
    }

    /// The entry's hash.
    pub fn leaf(&self) -> HashValue {
        self.fields.leaf(self.extensions, self.key_hash)
    }
}

/// The hash of an entry, whatever is in it.
pub fn leaf(entry: &[u8]) -> HashValue {
    HashValue::leaf([entry])
}

/// Checks that the extensions of an entry are in order.
pub(crate) fn check_extensions(list: &[u8]) -> Result<(), EntryError> {
    let mut reader = Reader::new("the list of entry extensions", list);
    let mut after = 0;
    while !reader.is_empty() {
        let kind = reader.uint(2)?;
        reader.vector(2)?;
        if kind < after {
            return Err(EntryError::ExtensionOrder(kind));
        }
        after = kind + 1;
    }
    Ok(())
}

pub(crate) fn version<'a>(elements: &mut Elements<'a>) -> Result<&'a [u8], EntryError> {
    let version = of_field("the version", elements.element(der::explicit(0)))?;
    if version.whole == VERSION_3 {
        Ok(version.whole)
    } else {
        Err(EntryError::Version)
    }
}

/// Reads issuer, validity and subject, and gives them as they stand, too.
pub(crate) fn names<'a>(elements: &mut Elements<'a>) -> Result<(Names<'a>, &'a [u8]), EntryError> {
    let before = elements.rest();
    let issuer = of_field("the issuer", elements.element(der::SEQUENCE))?;
    let issuer = authority(issuer.content)?;
    let validity = of_field("the validity", validity(elements))?;
    let subject = of_field("the subject", elements.element(der::SEQUENCE))?.whole;
    let text = &before[..before.len() - elements.rest().len()];
    Ok((
        Names {
            issuer,
            validity,
            subject,
        },
        text,
    ))
}

pub(crate) fn validity(elements: &mut Elements<'_>) -> Result<Validity, DerError> {
    let mut dates = elements.inside(der::SEQUENCE)?;
    let from = UnixTime(dates.date()?);
    let to = UnixTime(dates.date()?);
    dates.finish()?;
    Ok(Validity { from, to })
}

/// The CA that a name, without its own tag and length, is of (section 5.1).
pub(crate) fn authority(name: &[u8]) -> Result<TrustAnchorId, EntryError> {
    let mut name = Elements::new(name);
    let set = name.inside(der::SET).map_err(|_| EntryError::Issuer)?;
    let (kind, value) = of_field("the name of the CA", attribute(name, set))?;
    if let Some(draft) = Draft::of(kind) {
        return Err(EntryError::Draft(draft));
    }
    if kind != oid::TRUST_ANCHOR || value.tag != der::RELATIVE_OID {
        return Err(EntryError::Issuer);
    }
    TrustAnchorId::from_bytes(value.content).map_err(|_| EntryError::Issuer)
}

/// The kind and the value of the one attribute of a name.
fn attribute<'a>(
    name: Elements<'_>,
    mut set: Elements<'a>,
) -> Result<(&'a [u8], Element<'a>), DerError> {
    let mut attribute = set.inside(der::SEQUENCE)?;
    let kind = attribute.content(der::OID)?;
    let value = attribute.any()?;
    for rest in [attribute, set, name] {
        rest.finish()?;
    }
    Ok((kind, value))
}

/// Appends the name of a CA.
pub(crate) fn put_authority(out: &mut Vec<u8>, id: &TrustAnchorId) {
    put_name(out, oid::TRUST_ANCHOR, der::RELATIVE_OID, id.as_bytes());
}

/// Appends a name of one attribute.
pub(crate) fn put_name(out: &mut Vec<u8>, kind: &[u8], tag: u8, value: &[u8]) {
    der::put(out, der::SEQUENCE, |out| {
        der::put(out, der::SET, |out| {
            der::put(out, der::SEQUENCE, |out| {
                der::put_bytes(out, der::OID, kind);
                der::put_bytes(out, tag, value);
            });
        });
    });
}

/// Appends a validity.
pub(crate) fn put_validity(out: &mut Vec<u8>, validity: Validity) {
    der::put(out, der::SEQUENCE, |out| {
        der::put_date(out, validity.from.0);
        der::put_date(out, validity.to.0);
    });
}

/// An X.509 extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extension<'a> {
    pub(crate) oid: &'a [u8],
    pub(crate) critical: bool,
    pub(crate) value: &'a [u8],
}

/// The extensions in what follows the public key.
pub(crate) fn extensions(tail: &[u8]) -> Result<Vec<Extension<'_>>, DerError> {
    let mut elements = Elements::new(tail);
    for number in [1, 2] {
        elements.optional(der::implicit(number))?;
    }
    let Some(around) = elements.optional(der::explicit(3))? else {
        elements.finish()?;
        return Ok(Vec::new());
    };
    elements.finish()?;
    let mut around = Elements::new(around.content);
    let mut list = around.inside(der::SEQUENCE)?;
    around.finish()?;
    let mut extensions = Vec::new();
    // Never an empty list.
    loop {
        let mut extension = list.inside(der::SEQUENCE)?;
        extensions.push(Extension {
            oid: extension.content(der::OID)?,
            critical: extension.flag()?,
            value: extension.content(der::OCTET_STRING)?,
        });
        extension.finish()?;
        if list.is_empty() {
            return Ok(extensions);
        }
    }
}

/// Checks what follows the public key.
pub(crate) fn check_tail(tail: &[u8]) -> Result<(), EntryError> {
    let extensions = of_field("an extension", extensions(tail))?;
    let twice = (extensions.iter().enumerate())
        .any(|(at, one)| extensions[..at].iter().any(|other| other.oid == one.oid));
    if twice {
        Err(EntryError::Twice)
    } else {
        Ok(())
    }
}

/// Appends an extension.
pub(crate) fn put_extension(
    out: &mut Vec<u8>,
    oid: &[u8],
    critical: Critical,
    value: impl FnOnce(&mut Vec<u8>),
) {
    der::put(out, der::SEQUENCE, |out| {
        der::put_bytes(out, der::OID, oid);
        if critical == Critical::Yes {
            der::put_bytes(out, der::BOOLEAN, &[0xff]);
        }
        der::put(out, der::OCTET_STRING, value);
    });
}

/// Whether who does not know an extension must refuse the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Critical {
    Yes,
    No,
}

/// What a server's certificate is to say.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The hosts, such as `example.com` or `*.example.com`.
    pub names: &'a [&'a str],
    /// The public key, as a SubjectPublicKeyInfo in DER.
    pub key: &'a [u8],
    /// When it holds.
    pub validity: Validity,
}

impl Request<'_> {
    /// The entry by which the CA certifies it. The subject is empty, and its names are the
    /// alternative ones.
    ///
    /// # Errors
    ///
    /// If a name can't be in a certificate, the key is no SubjectPublicKeyInfo, or it gets too
    /// long.
    pub fn entry(&self, ca: &TrustAnchorId) -> Result<Vec<u8>, EntryError> {
        self.check_names()?;
        let algorithm = key_algorithm(self.key)?;
        let mut out = Vec::with_capacity(320);
        put_vector(&mut out, "the list of entry extensions", 2, &[])?;
        put_uint(&mut out, 2, TYPE_CERTIFICATE);
        out.extend(VERSION_3);
        put_authority(&mut out, ca);
        put_validity(&mut out, self.validity);
        der::put(&mut out, der::SEQUENCE, |_| {});
        out.extend_from_slice(algorithm);
        let hash = HashValue::of(self.key);
        der::put_bytes(&mut out, der::OCTET_STRING, hash.as_ref());
        der::put(&mut out, der::explicit(3), |out| {
            der::put(out, der::SEQUENCE, |out| self.put_extensions(out));
        });
        match out.len() {
            ..=MAX_ENTRY_BYTES => Ok(out),
            bytes => Err(EntryError::Long(bytes)),
        }
    }

    fn check_names(&self) -> Result<(), EntryError> {
        for (at, &name) in self.names.iter().enumerate() {
            check_host(name).map_err(|problem| EntryError::Name {
                name: name.to_owned(),
                problem,
            })?;
            // RFC 4343.
            let is_same = |earlier: &&str| earlier.eq_ignore_ascii_case(name);
            if self.names[..at].iter().any(is_same) {
                return Err(EntryError::NameTwice(name.to_owned()));
            }
        }
        Ok(())
    }

    fn put_extensions(&self, out: &mut Vec<u8>) {
        const DIGITAL_SIGNATURE: [u8; 4] = [der::BIT_STRING, 2, 7, 0x80];
        put_extension(out, oid::KEY_USAGE, Critical::Yes, |out| {
            out.extend(DIGITAL_SIGNATURE);
        });
        put_extension(out, oid::EXTENDED_KEY_USAGE, Critical::No, |out| {
            der::put(out, der::SEQUENCE, |out| {
                der::put_bytes(out, der::OID, oid::SERVER_AUTH);
            });
        });
        if self.names.is_empty() {
            return;
        }
        // Critical because there is no other name (RFC 5280, section 4.2.1.6).
        put_extension(out, oid::ALTERNATIVE_NAME, Critical::Yes, |out| {
            der::put(out, der::SEQUENCE, |out| {
                for name in self.names {
                    der::put_bytes(out, DNS_NAME, name.as_bytes());
                }
            });
        });
    }
}

pub(crate) const DNS_NAME: u8 = der::implicit(2);

/// Checks that a text can be the name of a host in a certificate: labels of letters, digits,
/// hyphens and underscores, the first perhaps an asterisk (RFC 1123, section 2.1, and RFC 6125,
/// section 6.4.3).
fn check_host(name: &str) -> Result<(), &'static str> {
    let host = name.strip_prefix("*.").unwrap_or(name);
    let in_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let last = host.rsplit('.').next().unwrap_or(host);
    match host {
        "" => Err("it is empty"),
        _ if name.len() > 253 => Err("it has more than 253 bytes"),
        _ if host.contains('*') => Err("an asterisk can only be all of its first label"),
        _ if host.split('.').any(str::is_empty) => {
            Err("nothing stands before, after or between its dots")
        }
        _ if host.split('.').any(|label| label.len() > 63) => {
            Err("a label, between two dots, has more than 63 bytes")
        }
        _ if !(host.split('.')).all(|label| label.bytes().all(in_label)) => {
            Err("it has other bytes than letters, digits, hyphens, underscores and dots")
        }
        _ if (host.split('.')).any(|label| label.starts_with('-') || label.ends_with('-')) => {
            Err("a label, between two dots, begins or ends with a hyphen")
        }
        _ if last.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err("it ends with a number, as addresses do")
        }
        _ => Ok(()),
    }
}

/// The algorithm in a public key.
pub(crate) fn key_algorithm(key: &[u8]) -> Result<&[u8], EntryError> {
    let parse = || {
        let mut outer = Elements::new(key);
        let mut inside = outer.inside(der::SEQUENCE)?;
        outer.finish()?;
        let algorithm = inside.element(der::SEQUENCE)?;
        Elements::new(algorithm.content).content(der::OID)?;
        inside.content(der::BIT_STRING)?;
        inside.finish()?;
        Ok(algorithm.whole)
    };
    of_field("the public key", parse())
}

#[cfg(test)]
mod tests;
