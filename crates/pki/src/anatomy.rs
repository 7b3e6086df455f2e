//! Where the bytes of a certificate go.

use std::fmt::{self, Write};

use lastbyte_sizes::der::{
    BIT_STRING, BOOLEAN, GENERALIZED_TIME, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET,
    UTC_TIME, element, explicit, implicit,
};
use lastbyte_sizes::sct;
use thiserror::Error;

/// Where the bytes of a certificate go. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anatomy {
    /// The object identifier of the public key's algorithm, in dots.
    pub key_algorithm: String,
    /// The object identifier of the signature's algorithm, in dots.
    pub signature_algorithm: String,
    /// The names of the subject and the issuer.
    pub names: usize,
    /// The public key without what says which algorithm it is of.
    pub public_key: usize,
    /// The signature without what says which algorithm it is of.
    pub signature: usize,
    /// The extensions in their order.
    pub extensions: Vec<Extension>,
    /// Serial number, validity, algorithm identifiers and the framing.
    pub rest: usize,
}

/// One extension of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its object identifier, in dots.
    pub oid: String,
    /// Its size in bytes: identifier, criticality, value and their framing.
    pub bytes: usize,
}

impl Anatomy {
    /// Bytes of all extensions.
    pub fn extension_bytes(&self) -> usize {
        self.extensions
            .iter()
            .map(|extension| extension.bytes)
            .sum()
    }

    /// Bytes of the whole certificate: the sum of its parts.
    pub fn bytes(&self) -> usize {
        self.names + self.public_key + self.signature + self.extension_bytes() + self.rest
    }
}

/// Takes the DER of a certificate (RFC 5280 section 4.1) apart.
///
/// # Errors
///
/// Where `der` is not DER, and where it is not a certificate.
pub fn anatomy(der: &[u8]) -> Result<Anatomy, DerError> {
    let mut input = Reader {
        rest: der,
        offset: 0,
    };
    let mut certificate = input.enter(SEQUENCE, "Certificate")?;
    input.end()?;

    let mut signed = certificate.enter(SEQUENCE, "TBSCertificate")?;
    signed.optional(explicit(0), "version")?;
    signed.element(INTEGER, "serialNumber")?;
    signed.element(SEQUENCE, "signature")?;
    let issuer = signed.element(SEQUENCE, "issuer")?;
    signed.element(SEQUENCE, "validity")?;
    let subject = signed.element(SEQUENCE, "subject")?;
    let mut key_info = signed.enter(SEQUENCE, "SubjectPublicKeyInfo")?;
    let key_algorithm = key_info.enter(SEQUENCE, "AlgorithmIdentifier")?.oid()?;
    let public_key = key_info.bit_string("subjectPublicKey")?;
    key_info.end()?;
    signed.optional(implicit(1), "issuerUniqueID")?;
    signed.optional(implicit(2), "subjectUniqueID")?;
    let extensions = match signed.optional(explicit(3), "extensions")? {
        Some(wrapped) => extensions(wrapped.contents)?,
        None => Vec::new(),
    };
    signed.end()?;

    let signature_algorithm = certificate.enter(SEQUENCE, "AlgorithmIdentifier")?.oid()?;
    let signature = certificate.bit_string("signatureValue")?;
    certificate.end()?;

    let mut anatomy = Anatomy {
        key_algorithm,
        signature_algorithm,
        names: issuer.bytes + subject.bytes,
        public_key,
        signature,
        extensions,
        rest: 0,
    };
    anatomy.rest = der.len() - anatomy.bytes();
    Ok(anatomy)
}

fn extensions(mut wrapped: Reader) -> Result<Vec<Extension>, DerError> {
    let mut list = wrapped.enter(SEQUENCE, "Extensions")?;
    wrapped.end()?;
    let mut extensions = Vec::new();
    while !list.rest.is_empty() {
        let Element {
            mut contents,
            bytes,
        } = list.element(SEQUENCE, "Extension")?;
        let oid = contents.oid()?;
        contents.optional(BOOLEAN, "critical")?;
        contents.element(OCTET_STRING, "extnValue")?;
        contents.end()?;
        extensions.push(Extension { oid, bytes });
    }
    Ok(extensions)
}

/// What a log of Certificate Transparency signed of a certificate.
pub(crate) struct PrecertificateParts {
    /// The bytes of its list of SCTs, if it has one.
    pub(crate) scts: Option<Vec<u8>>,
    /// The `TBSCertificate` without the extension that the list is in (RFC 6962, section 3.2).
    pub(crate) signed: Vec<u8>,
}

/// Takes the SCTs out of the DER of a certificate.
pub(crate) fn precertificate(der: &[u8]) -> Result<PrecertificateParts, DerError> {
    let mut input = Reader {
        rest: der,
        offset: 0,
    };
    let mut certificate = input.enter(SEQUENCE, "Certificate")?;
    let signed = certificate.enter(SEQUENCE, "TBSCertificate")?;
    let mut scts = None;
    let mut retained = Vec::new();
    let mut fields = signed;
    while let Some(tag) = fields.rest.first() {
        let before = fields.rest;
        let field = fields.element(*tag, "TBSCertificate")?;
        if *tag != explicit(3) {
            let (field, _) = before.split_at(field.bytes);
            retained.extend_from_slice(field);
            continue;
        }
        let mut list = field.contents.clone().enter(SEQUENCE, "Extensions")?;
        let mut extensions = Vec::new();
        while !list.rest.is_empty() {
            let before = list.rest;
            let extension = list.element(SEQUENCE, "Extension")?;
            let mut contents = extension.contents;
            if contents.oid()? == sct::EXTENSION.to_string() {
                contents.optional(BOOLEAN, "critical")?;
                let mut value = contents.enter(OCTET_STRING, "extnValue")?;
                let list = value.enter(OCTET_STRING, "SignedCertificateTimestampList")?;
                scts = Some(list.rest.to_vec());
            } else {
                let (extension, _) = before.split_at(extension.bytes);
                extensions.extend_from_slice(extension);
            }
        }
        retained.extend(element(explicit(3), &element(SEQUENCE, &extensions)));
    }
    Ok(PrecertificateParts {
        scts,
        signed: element(SEQUENCE, &retained),
    })
}

/// What a certificate says, in the pieces of which another one can be made that says the same with
/// other keys.
pub(crate) struct Pieces<'a> {
    /// The fields before the validity, from the version to the issuer.
    pub(crate) before: &'a [u8],
    /// From when the certificate is valid, with tag and length, and until when.
    pub(crate) validity: [&'a [u8]; 2],
    /// The subject.
    pub(crate) subject: &'a [u8],
    /// What says which algorithm the key is of.
    pub(crate) key_algorithm: &'a [u8],
    /// The key alone.
    pub(crate) key: &'a [u8],
    /// The fields after the key.
    pub(crate) after: &'a [u8],
    /// The issuer, which is the last field of `before`.
    pub(crate) issuer: &'a [u8],
    /// What says which algorithm the signature is of.
    pub(crate) signature_algorithm: &'a [u8],
    /// The signature alone.
    pub(crate) signature: &'a [u8],
}

/// Takes the DER of a certificate apart, as it is.
pub(crate) fn pieces(der: &[u8]) -> Result<Pieces<'_>, DerError> {
    let mut input = Reader {
        rest: der,
        offset: 0,
    };
    let mut certificate = input.enter(SEQUENCE, "Certificate")?;
    let mut signed = certificate.enter(SEQUENCE, "TBSCertificate")?;
    let all = signed.rest;
    signed.optional(explicit(0), "version")?;
    signed.element(INTEGER, "serialNumber")?;
    signed.element(SEQUENCE, "signature")?;
    let issuer = signed.whole(SEQUENCE, "issuer")?;
    let (before, _) = all.split_at(all.len() - signed.rest.len());
    let mut validity = signed.enter(SEQUENCE, "validity")?;
    let mut time = || {
        let tag = match validity.rest.first() {
            Some(&GENERALIZED_TIME) => GENERALIZED_TIME,
            _ => UTC_TIME,
        };
        validity.whole(tag, "validity")
    };
    let validity = [time()?, time()?];
    let subject = signed.whole(SEQUENCE, "subject")?;
    let mut key_info = signed.enter(SEQUENCE, "SubjectPublicKeyInfo")?;
    Ok(Pieces {
        before,
        validity,
        subject,
        key_algorithm: key_info.whole(SEQUENCE, "AlgorithmIdentifier")?,
        key: key_info.bits("subjectPublicKey")?,
        after: signed.rest,
        issuer,
        signature_algorithm: certificate.whole(SEQUENCE, "AlgorithmIdentifier")?,
        signature: certificate.bits("signatureValue")?,
    })
}

/// A value that a name has.
pub(crate) struct Value<'a> {
    tag: u8,
    contents: &'a [u8],
    /// Tag and length included.
    whole: &'a [u8],
}

/// As RFC 4514, section 2.4 has a value that is no string, but for identifiers below another one,
/// which are read in dots.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const RELATIVE_OID: u8 = 0x0d;
        match relative(self.contents).filter(|_| self.tag == RELATIVE_OID) {
            Some(dotted) => f.write_str(&dotted),
            None => write!(f, "#{}", hex::encode(self.whole)),
        }
    }
}

/// The values of a distinguished name (RFC 5280, section 4.1.2.4), in their order.
pub(crate) fn attribute_values(name: &[u8]) -> Result<Vec<Value<'_>>, DerError> {
    let mut input = Reader {
        rest: name,
        offset: 0,
    };
    let mut sets = input.enter(SEQUENCE, "Name")?;
    let mut values = Vec::new();
    while !sets.rest.is_empty() {
        let mut set = sets.enter(SET, "RelativeDistinguishedName")?;
        while !set.rest.is_empty() {
            let mut attribute = set.enter(SEQUENCE, "AttributeTypeAndValue")?;
            attribute.oid()?;
            let whole = attribute.rest;
            let tag = whole.first().copied().unwrap_or_default();
            let contents = attribute.enter(tag, "AttributeValue")?.rest;
            attribute.end()?;
            values.push(Value {
                tag,
                contents,
                whole,
            });
        }
    }
    Ok(values)
}

/// The key in the DER of a `SubjectPublicKeyInfo`.
pub(crate) fn key_of(info: &[u8]) -> Result<&[u8], DerError> {
    let mut input = Reader {
        rest: info,
        offset: 0,
    };
    let mut key_info = input.enter(SEQUENCE, "SubjectPublicKeyInfo")?;
    key_info.element(SEQUENCE, "AlgorithmIdentifier")?;
    key_info.bits("subjectPublicKey")
}

/// Why bytes are not a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {offset} of the certificate: {problem}")]
pub struct DerError {
    /// Where, from 0.
    pub offset: usize,
    /// What.
    pub problem: DerProblem,
}

/// What is wrong with DER.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DerProblem {
    /// The bytes end too early.
    #[error("{0} is cut off")]
    Truncated(&'static str),
    /// Another element is there.
    #[error("{expected} was expected, not an element with tag {found:#04x}")]
    Unexpected {
        /// The field of RFC 5280 that should be there.
        expected: &'static str,
        /// The tag that is.
        found: u8,
    },
    /// A length is not in its one DER form.
    #[error("the length of {0} is not in its shortest form")]
    Length(&'static str),
    /// An object identifier is not one.
    #[error("not an object identifier")]
    ObjectIdentifier,
    /// There is more than there should be.
    #[error("nothing more was expected")]
    Trailing,
}

/// A part of the input that is yet to be read.
#[derive(Clone, Copy)]
struct Reader<'a> {
    rest: &'a [u8],
    /// Where in the whole input it begins.
    offset: usize,
}

struct Element<'a> {
    contents: Reader<'a>,
    /// Tag and length included.
    bytes: usize,
}

impl<'a> Reader<'a> {
    /// The next element, which must have this tag.
    fn element(&mut self, tag: u8, what: &'static str) -> Result<Element<'a>, DerError> {
        let truncated = self.error(DerProblem::Truncated(what));
        let (found, rest) = self.rest.split_first().ok_or(truncated.clone())?;
        if *found != tag {
            let (expected, found) = (what, *found);
            return Err(self.error(DerProblem::Unexpected { expected, found }));
        }
        let (first, mut rest) = rest.split_first().ok_or(truncated.clone())?;
        let length = match *first {
            short @ 0..0x80 => usize::from(short),
            long => {
                let digits = usize::from(long - 0x80);
                let (length, after) = rest.split_at_checked(digits).ok_or(truncated.clone())?;
                rest = after;
                definite_length(length).ok_or(self.error(DerProblem::Length(what)))?
            }
        };
        let (contents, rest) = rest.split_at_checked(length).ok_or(truncated)?;
        let bytes = self.rest.len() - rest.len();
        let contents = Reader {
            rest: contents,
            offset: self.offset + bytes - length,
        };
        *self = Reader {
            rest,
            offset: self.offset + bytes,
        };
        Ok(Element { contents, bytes })
    }

    fn enter(&mut self, tag: u8, what: &'static str) -> Result<Reader<'a>, DerError> {
        Ok(self.element(tag, what)?.contents)
    }

    /// The next element with its tag and length.
    fn whole(&mut self, tag: u8, what: &'static str) -> Result<&'a [u8], DerError> {
        let before = self.rest;
        let Element { bytes, .. } = self.element(tag, what)?;
        let (whole, _) = before.split_at(bytes);
        Ok(whole)
    }

    fn optional(&mut self, tag: u8, what: &'static str) -> Result<Option<Element<'a>>, DerError> {
        match self.rest.first() {
            Some(found) if *found == tag => self.element(tag, what).map(Some),
            _ => Ok(None),
        }
    }

    /// How many bytes the next element's bits have.
    fn bit_string(&mut self, what: &'static str) -> Result<usize, DerError> {
        self.bits(what).map(<[u8]>::len)
    }

    /// The next element's bits.
    fn bits(&mut self, what: &'static str) -> Result<&'a [u8], DerError> {
        let bits = self.enter(BIT_STRING, what)?;
        match bits.rest.split_first() {
            // The first byte says how many bits of the last one are unused.
            Some((_, bytes)) => Ok(bytes),
            None => Err(bits.error(DerProblem::Truncated(what))),
        }
    }

    fn oid(&mut self) -> Result<String, DerError> {
        let contents = self.enter(OBJECT_IDENTIFIER, "an object identifier")?;
        dotted(contents.rest).ok_or(contents.error(DerProblem::ObjectIdentifier))
    }

    fn end(&self) -> Result<(), DerError> {
        match self.rest {
            [] => Ok(()),
            _ => Err(self.error(DerProblem::Trailing)),
        }
    }

    fn error(&self, problem: DerProblem) -> DerError {
        DerError {
            offset: self.offset,
            problem,
        }
    }
}

/// A length in the long form, if nothing shorter would do.
fn definite_length(digits: &[u8]) -> Option<usize> {
    let length = digits.iter().try_fold(0_usize, |length, digit| {
        Some(length.checked_mul(256)? | usize::from(*digit))
    })?;
    let shortest = length >= 0x80 && digits.first() != Some(&0);
    shortest.then_some(length)
}

/// A relative object identifier in dots (X.690, section 8.20).
fn relative(contents: &[u8]) -> Option<String> {
    // The first two arcs of an absolute one are one number.
    let absolute = dotted(&[&[0], contents].concat())?;
    absolute.strip_prefix("0.0.").map(str::to_owned)
}

/// An object identifier in dots.
pub(crate) fn dotted(contents: &[u8]) -> Option<String> {
    let mut dotted = String::new();
    let mut arc: u128 = 0;
    for byte in contents {
        // No arc begins with a digit of zero.
        if arc == 0 && *byte == 0x80 {
            return None;
        }
        arc = arc.checked_mul(128)? | u128::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match dotted.as_str() {
            "" => {
                let first = (arc / 40).min(2);
                write!(dotted, "{first}.{}", arc - 40 * first)
            }
            _ => write!(dotted, ".{arc}"),
        };
        arc = 0;
    }
    let whole = contents.last().is_some_and(|last| last & 0x80 == 0);
    whole.then_some(dotted)
}
