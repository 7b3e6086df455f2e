//! Certificates: those of servers, whose signature is a proof, and those that describe CAs
//! (sections 5.5 and 6).

use std::ops::RangeInclusive;

use crate::der::{self, DerError, Element, Elements};
use crate::entry::{
    Critical, DNS_NAME, Entry, EntryError, Fields, Names, authority, check_tail, extensions,
    key_algorithm, names, of_field, put_authority, put_extension, put_name, put_validity, validity,
    version,
};
use crate::hash::HashValue;
use crate::id::{LogNumber, TrustAnchorId};
use crate::oid::{self, Draft, SignatureAlgorithm};
use crate::proof::{EncodingError, Proof};
use crate::time::Validity;

/// Why something is no certificate of these kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It is no X.509 certificate, or not as strict as it should be.
    #[error("{0}")]
    Field(#[from] EntryError),
    /// It is of another draft.
    #[error("it is of {0}: only draft-ietf-plants-merkle-tree-certs-07 is known")]
    Draft(Draft),
    /// Its signature is no proof.
    #[error("its signature is none of a Merkle Tree Certificate")]
    Algorithm,
    /// The algorithm of its signature differs inside and outside.
    #[error("the algorithm of its signature differs inside and outside")]
    Algorithms,
    /// Its proof is none.
    #[error("its proof: {0}")]
    Proof(#[from] EncodingError),
    /// Its serial number has no log number.
    #[error("its serial number {0} has no log number")]
    NoLog(u64),
    /// A CA's certificate must not be signed (RFC 9925).
    #[error("the CA's certificate is signed: it should be an unsigned one, as in RFC 9925")]
    Signed,
    /// It is of no CA that issues Merkle Tree Certificates.
    #[error("it is of no CA that issues Merkle Tree Certificates: {0}")]
    NoAuthority(&'static str),
    /// The CA signs with an algorithm that is not known.
    #[error("the CA signs with an algorithm that is not known")]
    UnknownAlgorithm,
}

/// A server's certificate, read.
#[derive(Clone, Debug)]
pub struct Certificate<'a> {
    /// The log that has it.
    pub log: LogNumber,
    /// Its place in the log.
    pub index: u64,
    /// The proof.
    pub proof: Proof,
    names: Names<'a>,
    fields: Fields<'a>,
    key: &'a [u8],
}

const INDEX_BITS: u32 = 48;

/// The serial number of a log's entry.
pub fn serial(log: LogNumber, index: u64) -> u64 {
    u64::from(log.get()) << INDEX_BITS | index
}

impl<'a> Certificate<'a> {
    /// Reads a certificate.
    ///
    /// # Errors
    ///
    /// If it is no Merkle Tree Certificate of this draft, or its DER is not as strict as it should
    /// be.
    pub fn parse(bytes: &'a [u8]) -> Result<Certificate<'a>, CertificateError> {
        let [to_be_signed, algorithm, signature] = parts(bytes)?;
        let mut elements = Elements::new(to_be_signed.content);
        let version = version(&mut elements)?;
        let serial = of_field("the serial number", elements.unsigned())?;
        check_algorithm(&mut elements, algorithm, oid::PROOF)?;
        let (names, text) = names(&mut elements)?;
        let key = of_field("the public key", elements.element(der::SEQUENCE))?.whole;
        let tail = elements.rest();
        check_tail(tail)?;
        let number = (serial >> INDEX_BITS) as u16;
        Ok(Certificate {
            log: LogNumber::new(number).ok_or(CertificateError::NoLog(serial))?,
            index: serial & ((1 << INDEX_BITS) - 1),
            proof: Proof::parse(signature.content)?,
            names,
            fields: Fields {
                version,
                names: text,
                algorithm: key_algorithm(key)?,
                tail,
            },
            key,
        })
    }

    /// The certificate of an entry, as DER.
    ///
    /// # Errors
    ///
    /// If the proof can't be written.
    pub fn encode(
        entry: &Entry<'_>,
        key: &[u8],
        log: LogNumber,
        index: u64,
        proof: &Proof,
    ) -> Result<Vec<u8>, EncodingError> {
        let Fields {
            version,
            names,
            tail,
            ..
        } = entry.fields;
        let proof = proof.to_bytes()?;
        let mut out = Vec::with_capacity(128 + names.len() + key.len() + tail.len() + proof.len());
        der::put(&mut out, der::SEQUENCE, |out| {
            der::put(out, der::SEQUENCE, |out| {
                out.extend_from_slice(version);
                der::put_unsigned(out, serial(log, index));
                put_algorithm(out, oid::PROOF);
                out.extend_from_slice(names);
                out.extend_from_slice(key);
                out.extend_from_slice(tail);
            });
            put_algorithm(out, oid::PROOF);
            der::put_bits(out, &proof);
        });
        Ok(out)
    }

    /// The CA.
    pub fn issuer(&self) -> &TrustAnchorId {
        &self.names.issuer
    }

    /// When it holds.
    pub fn validity(&self) -> Validity {
        self.names.validity
    }

    /// Its serial number.
    pub fn serial(&self) -> u64 {
        serial(self.log, self.index)
    }

    /// Whose it is, as DER.
    pub fn subject(&self) -> &'a [u8] {
        self.names.subject
    }

    /// The public key, as a SubjectPublicKeyInfo in DER.
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The hash of the log's entry.
    pub fn leaf(&self) -> HashValue {
        (self.fields).leaf(&self.proof.extensions, HashValue::of(self.key))
    }

    /// The hosts that it is for. What is no name of a host is passed over.
    pub fn hosts(&self) -> Vec<&'a str> {
        let mut hosts = Vec::new();
        for extension in extensions(self.fields.tail).unwrap_or_default() {
            if extension.oid != oid::ALTERNATIVE_NAME {
                continue;
            }
            let mut value = Elements::new(extension.value);
            let Ok(mut names) = value.inside(der::SEQUENCE) else {
                continue;
            };
            while let Ok(name) = names.any() {
                if name.tag == DNS_NAME {
                    hosts.extend(str::from_utf8(name.content));
                }
            }
        }
        hosts
    }

    /// Whether it has an extension that is critical and that nobody here knows.
    pub(crate) fn has_unknown_critical(&self) -> bool {
        const SUPPORTED: [&[u8]; 5] = [
            oid::KEY_USAGE,
            oid::ALTERNATIVE_NAME,
            oid::BASIC_CONSTRAINTS,
            oid::POLICIES,
            oid::EXTENDED_KEY_USAGE,
        ];
        let mut extensions = extensions(self.fields.tail).unwrap_or_default().into_iter();
        extensions.any(|extension| extension.critical && !SUPPORTED.contains(&extension.oid))
    }
}

/// What is signed, the algorithm and the signature's bits.
fn parts(bytes: &[u8]) -> Result<[Element<'_>; 3], EntryError> {
    let parse = || {
        let mut outer = Elements::new(bytes);
        let mut parts = outer.inside(der::SEQUENCE)?;
        outer.finish()?;
        let to_be_signed = parts.element(der::SEQUENCE)?;
        let algorithm = parts.element(der::SEQUENCE)?;
        let before = parts.rest();
        let content = parts.bits()?;
        parts.finish()?;
        let signature = Element {
            tag: der::BIT_STRING,
            content,
            whole: before,
        };
        Ok([to_be_signed, algorithm, signature])
    };
    of_field("the certificate", parse())
}

/// Checks that a certificate is signed with this algorithm, inside as outside.
fn check_algorithm(
    inside: &mut Elements<'_>,
    outside: Element<'_>,
    expected: &[u8],
) -> Result<(), CertificateError> {
    let inside = of_field("the algorithm", inside.element(der::SEQUENCE))?;
    let mut elements = Elements::new(inside.content);
    let oid = of_field("the algorithm", elements.content(der::OID))?;
    if let Some(draft) = Draft::of(oid) {
        return Err(CertificateError::Draft(draft));
    }
    if oid != expected {
        return Err(CertificateError::Algorithm);
    }
    of_field("the algorithm", elements.finish())?;
    if inside.whole == outside.whole {
        Ok(())
    } else {
        Err(CertificateError::Algorithms)
    }
}

fn put_algorithm(out: &mut Vec<u8>, oid: &[u8]) {
    der::put(out, der::SEQUENCE, |out| {
        der::put_bytes(out, der::OID, oid);
    });
}

/// A certificate that describes a CA: unsigned, trusted because somebody says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaCertificate {
    /// The CA, and its cosigner's name.
    pub id: TrustAnchorId,
    /// The cosigner's public key, as a SubjectPublicKeyInfo in DER.
    pub key: Vec<u8>,
    /// How the cosigner signs.
    pub algorithm: SignatureAlgorithm,
    /// The serial numbers that it may issue.
    pub serials: RangeInclusive<u64>,
    /// When it holds.
    pub validity: Validity,
    /// Where its logs are, if it has them as c2sp.org/mtc-tlog.
    pub prefix_url: Option<String>,
}

impl CaCertificate {
    /// All serial numbers that there are.
    pub const ALL_SERIALS: RangeInclusive<u64> = 1 << INDEX_BITS..=u64::MAX;

    /// Reads the certificate of a CA.
    ///
    /// # Errors
    ///
    /// If it is signed, of another draft, or misses what such a certificate has.
    pub fn parse(bytes: &[u8]) -> Result<CaCertificate, CertificateError> {
        let [to_be_signed, algorithm, signature] = parts(bytes)?;
        let mut elements = Elements::new(to_be_signed.content);
        version(&mut elements)?;
        of_field("the serial number", elements.unsigned())?;
        check_algorithm(&mut elements, algorithm, oid::UNSIGNED).map_err(|error| match error {
            CertificateError::Algorithm => CertificateError::Signed,
            error => error,
        })?;
        if !signature.content.is_empty() {
            return Err(CertificateError::Signed);
        }
        let issuer = of_field("the issuer", elements.element(der::SEQUENCE))?;
        let validity = of_field("the validity", validity(&mut elements))?;
        let subject = of_field("the subject", elements.element(der::SEQUENCE))?;
        let id = authority(subject.content)?;
        // As RFC 9925 asks, section 3.
        if issuer.whole != unsigned_name() && issuer.whole != subject.whole {
            return Err(CertificateError::Signed);
        }
        let key = of_field("the public key", elements.element(der::SEQUENCE))?.whole;
        key_algorithm(key)?;
        let tail = elements.rest();
        check_tail(tail)?;
        let extension = authority_extension(tail)?;
        let prefix_url = of_field("the prefix URL", prefix_url(tail))?;
        Ok(CaCertificate {
            id,
            key: key.to_owned(),
            algorithm: extension.algorithm,
            serials: extension.serials,
            validity,
            prefix_url,
        })
    }

    /// The certificate as DER.
    pub fn to_der(&self) -> Vec<u8> {
        const CERTIFICATE_SIGN: [u8; 4] = [der::BIT_STRING, 2, 2, 0x04];
        let mut out = Vec::with_capacity(256 + self.key.len());
        der::put(&mut out, der::SEQUENCE, |out| {
            der::put(out, der::SEQUENCE, |out| {
                der::put(out, der::explicit(0), |out| der::put_unsigned(out, 2));
                der::put_unsigned(out, 1);
                put_algorithm(out, oid::UNSIGNED);
                out.extend(unsigned_name());
                put_validity(out, self.validity);
                put_authority(out, &self.id);
                out.extend_from_slice(&self.key);
                der::put(out, der::explicit(3), |out| {
                    der::put(out, der::SEQUENCE, |out| {
                        put_extension(out, oid::KEY_USAGE, Critical::Yes, |out| {
                            out.extend(CERTIFICATE_SIGN);
                        });
                        put_extension(out, oid::BASIC_CONSTRAINTS, Critical::Yes, |out| {
                            der::put(out, der::SEQUENCE, |out| {
                                der::put_bytes(out, der::BOOLEAN, &[0xff]);
                            });
                        });
                        put_extension(out, oid::AUTHORITY, Critical::Yes, |out| {
                            self.put_authority_extension(out);
                        });
                        if let Some(url) = &self.prefix_url {
                            put_extension(out, oid::PREFIX_URL, Critical::No, |out| {
                                der::put_bytes(out, IA5_STRING, url.as_bytes());
                            });
                        }
                    });
                });
            });
            put_algorithm(out, oid::UNSIGNED);
            der::put_bits(out, &[]);
        });
        out
    }

    fn put_authority_extension(&self, out: &mut Vec<u8>) {
        der::put(out, der::SEQUENCE, |out| {
            put_algorithm(out, self.algorithm.oid());
            der::put_unsigned(out, *self.serials.start());
            der::put_unsigned(out, *self.serials.end());
        });
    }
}

const IA5_STRING: u8 = 0x16;

/// The issuer of a certificate that nobody signed (RFC 9925, section 3.2).
fn unsigned_name() -> Vec<u8> {
    let mut out = Vec::new();
    put_name(&mut out, oid::UNSIGNED_NAME, der::UTF8_STRING, &[]);
    out
}

struct AuthorityExtension {
    algorithm: SignatureAlgorithm,
    serials: RangeInclusive<u64>,
}

fn authority_extension(tail: &[u8]) -> Result<AuthorityExtension, CertificateError> {
    let extensions = of_field("an extension", extensions(tail))?;
    let find = |oid: &[u8]| extensions.iter().find(|extension| extension.oid == oid);
    if let Some(draft) = extensions.iter().find_map(|one| Draft::of(one.oid)) {
        return Err(CertificateError::Draft(draft));
    }
    let missing = CertificateError::NoAuthority;
    let constraints = find(oid::BASIC_CONSTRAINTS).ok_or(missing("it has no basic constraints"))?;
    if of_field("basic constraints", is_authority(constraints.value))? == Role::Other {
        return Err(missing("its basic constraints are not those of a CA"));
    }
    let usage = find(oid::KEY_USAGE).ok_or(missing("it has no key usage"))?;
    if of_field("the key usage", may_certify(usage.value))? == Role::Other {
        return Err(missing("its key is not for certificates"));
    }
    let supported = [oid::BASIC_CONSTRAINTS, oid::KEY_USAGE, oid::AUTHORITY];
    if (extensions.iter()).any(|one| one.critical && !supported.contains(&one.oid)) {
        return Err(missing("it has a critical extension that is not known"));
    }
    let authority = find(oid::AUTHORITY).ok_or(missing("it does not say so"))?;
    if !authority.critical {
        return Err(missing("the extension that says so is not critical"));
    }
    let parsed = of_field("the CA's extension", authority_fields(authority.value))?;
    let (oid, least, most) = parsed;
    if least > most || least < *CaCertificate::ALL_SERIALS.start() {
        return Err(missing("it may issue no serial numbers"));
    }
    Ok(AuthorityExtension {
        algorithm: SignatureAlgorithm::of(oid).ok_or(CertificateError::UnknownAlgorithm)?,
        serials: least..=most,
    })
}

/// The algorithm's identifier, the least and the largest serial number.
fn authority_fields(value: &[u8]) -> Result<(&[u8], u64, u64), DerError> {
    let mut outer = Elements::new(value);
    let mut fields = outer.inside(der::SEQUENCE)?;
    outer.finish()?;
    let mut algorithm = fields.inside(der::SEQUENCE)?;
    let oid = algorithm.content(der::OID)?;
    algorithm.finish()?;
    let found = (oid, fields.unsigned()?, fields.unsigned()?);
    fields.finish()?;
    Ok(found)
}

#[derive(PartialEq, Eq)]
enum Role {
    Authority,
    Other,
}

fn is_authority(value: &[u8]) -> Result<Role, DerError> {
    let mut outer = Elements::new(value);
    let mut constraints = outer.inside(der::SEQUENCE)?;
    outer.finish()?;
    let role = if constraints.flag()? {
        Role::Authority
    } else {
        Role::Other
    };
    constraints.optional(der::INTEGER)?;
    constraints.finish()?;
    Ok(role)
}

fn may_certify(value: &[u8]) -> Result<Role, DerError> {
    const KEY_CERT_SIGN: u8 = 0x04;
    let mut outer = Elements::new(value);
    let bits = outer.content(der::BIT_STRING)?;
    outer.finish()?;
    match bits {
        [0..=7, first, ..] if first & KEY_CERT_SIGN != 0 => Ok(Role::Authority),
        [0..=7, ..] => Ok(Role::Other),
        _ => Err(DerError::Bits),
    }
}

fn prefix_url(tail: &[u8]) -> Result<Option<String>, DerError> {
    let extensions = extensions(tail)?;
    let found = extensions.iter().find(|one| one.oid == oid::PREFIX_URL);
    let Some(extension) = found else {
        return Ok(None);
    };
    let mut outer = Elements::new(extension.value);
    let text = outer.content(IA5_STRING)?;
    outer.finish()?;
    if text.is_ascii() {
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    } else {
        Err(DerError::Form)
    }
}

#[cfg(test)]
mod tests;
