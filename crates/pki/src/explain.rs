//! What a certificate is, for people to read.

use lastbyte_sizes::{profile, visible};
use openssl::asn1::Asn1Object;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::{HasPublic, Id, PKeyRef};
use openssl::x509::{X509NameRef, X509Ref};

use crate::anatomy::{Anatomy, Extension, Value, anatomy, attribute_values};
use crate::error::PkiError;
use crate::keys::key_algorithm;

/// id-alg-mtcProof (draft-ietf-plants-merkle-tree-certs).
const MTC_PROOF: &str = "1.3.6.1.5.5.7.6.67";
/// id-alg-unsigned (RFC 9925).
const UNSIGNED: &str = "1.3.6.1.5.5.7.6.36";

/// What a certificate is and where its bytes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whom it is for, such as `CN=server.example`.
    pub subject: String,
    /// Who signed it.
    pub issuer: String,
    /// The algorithm of its key: a [`KeyAlgorithm`](crate::KeyAlgorithm)'s name, or OpenSSL's for others.
    pub key: String,
    /// The algorithm of its signature, by OpenSSL's name.
    pub signature: String,
    /// Where its bytes go.
    pub anatomy: Anatomy,
}

/// Explains one certificate.
///
/// # Errors
///
/// [`PkiError::Der`] for a certificate that OpenSSL tolerates but that is not DER.
pub fn explain(certificate: &X509Ref) -> Result<Explanation, PkiError> {
    // Keys and names of algorithms are known from then on.
    lastbyte_providers::install()?;
    let anatomy = anatomy(&certificate.to_der()?)?;
    let key = certificate.public_key().ok();
    Ok(Explanation {
        subject: name(certificate.subject_name())?,
        issuer: name(certificate.issuer_name())?,
        key: (key.as_deref().and_then(key_name))
            .unwrap_or_else(|| algorithm_name(&anatomy.key_algorithm)),
        signature: algorithm_name(&anatomy.signature_algorithm),
        anatomy,
    })
}

impl Extension {
    /// Its name in RFC 5280, such as `keyUsage`, or its object identifier.
    pub fn name(&self) -> String {
        if self.oid == profile::PADDING.to_string() {
            return "padding".to_owned();
        }
        let name = nid(&self.oid).and_then(|nid| nid.short_name().ok());
        name.unwrap_or(&self.oid).to_owned()
    }
}

/// A distinguished name on one line.
pub(crate) fn name(name: &X509NameRef) -> Result<String, ErrorStack> {
    let der = name.to_der()?;
    let values = attribute_values(&der).unwrap_or_default();
    let mut parts = Vec::new();
    for (index, entry) in name.entries().enumerate() {
        let kind = entry.object();
        let value = match entry.data().to_string() {
            Ok(text) => text,
            // OpenSSL gives no reason for what is no string.
            Err(_) => values.get(index).map(Value::to_string).unwrap_or_default(),
        };
        parts.push(match kind.nid().short_name() {
            Ok(short) if kind.nid() != Nid::UNDEF => format!("{short}={value}"),
            _ => format!("{kind}={value}"),
        });
    }
    Ok(visible(&parts.join(", ")))
}

/// Whether a certificate has a proof of inclusion in a log in place of its issuer's signature
/// (draft-ietf-plants-merkle-tree-certs).
pub fn is_merkle_tree(certificate: &X509Ref) -> bool {
    let own = certificate.signature_algorithm().object();
    // By whatever name this OpenSSL has for it.
    Asn1Object::from_str(MTC_PROOF).is_ok_and(|proof| proof.to_string() == own.to_string())
}

/// A key's algorithm with its size, in the manner of a [`KeyAlgorithm`](crate::KeyAlgorithm)'s name.
fn key_name<T: HasPublic>(key: &PKeyRef<T>) -> Option<String> {
    match (key_algorithm(key), key.id()) {
        (Some(algorithm), _) => Some(algorithm.to_string()),
        (None, Id::RSA) => Some(format!("rsa-{}", key.bits())),
        (None, Id::EC) => match key.ec_key().ok()?.group().curve_name()? {
            Nid::SECP521R1 => Some("ecdsa-p521".to_owned()),
            curve => Some(format!("ecdsa-{}", curve.short_name().ok()?)),
        },
        _ => None,
    }
}

fn algorithm_name(oid: &str) -> String {
    let own = match oid {
        MTC_PROOF => Some("id-alg-mtcProof"),
        UNSIGNED => Some("id-alg-unsigned"),
        _ => composite(oid),
    };
    let name = own.or_else(|| nid(oid)?.long_name().ok());
    name.unwrap_or(oid).to_owned()
}

/// The name of a composite algorithm (draft-ietf-lamps-pq-composite-sigs), of which OpenSSL has none.
fn composite(oid: &str) -> Option<&'static str> {
    /// From 1.3.6.1.5.5.7.6.37 on.
    const NAMES: [&str; 18] = [
        "id-MLDSA44-RSA2048-PSS-SHA256",
        "id-MLDSA44-RSA2048-PKCS15-SHA256",
        "id-MLDSA44-Ed25519-SHA512",
        "id-MLDSA44-ECDSA-P256-SHA256",
        "id-MLDSA65-RSA3072-PSS-SHA512",
        "id-MLDSA65-RSA3072-PKCS15-SHA512",
        "id-MLDSA65-RSA4096-PSS-SHA512",
        "id-MLDSA65-RSA4096-PKCS15-SHA512",
        "id-MLDSA65-ECDSA-P256-SHA512",
        "id-MLDSA65-ECDSA-P384-SHA512",
        "id-MLDSA65-ECDSA-brainpoolP256r1-SHA512",
        "id-MLDSA65-Ed25519-SHA512",
        "id-MLDSA87-ECDSA-P384-SHA512",
        "id-MLDSA87-ECDSA-brainpoolP384r1-SHA512",
        "id-MLDSA87-Ed448-SHAKE256",
        "id-MLDSA87-RSA3072-PSS-SHA512",
        "id-MLDSA87-RSA4096-PSS-SHA512",
        "id-MLDSA87-ECDSA-P521-SHA512",
    ];
    let last: usize = oid.strip_prefix("1.3.6.1.5.5.7.6.")?.parse().ok()?;
    NAMES.get(last.checked_sub(37)?).copied()
}

/// OpenSSL's number of an object identifier that it knows.
fn nid(oid: &str) -> Option<Nid> {
    let nid = Asn1Object::from_str(oid).ok()?.nid();
    (nid != Nid::UNDEF).then_some(nid)
}
