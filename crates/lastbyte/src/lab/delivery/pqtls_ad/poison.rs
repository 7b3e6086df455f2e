//! Records that are not what they should be.

use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::extension::BasicConstraints;
use openssl::x509::{X509, X509Builder, X509Name};
use pqtlsad::record::{Fragment, split};
use pqtlsad::{CertificateList, Part};

/// Changes the last bit.
pub(super) fn break_bit(fragments: &mut [Fragment]) {
    let last = fragments.last_mut();
    let last = last.and_then(|fragment| fragment.certificates.last_mut());
    if let Some(byte) = last.and_then(|certificate| certificate.last_mut()) {
        *byte ^= 1;
    }
}

/// The root of a CA that has nothing to do with the server.
pub(super) fn another_root() -> Result<X509, ErrorStack> {
    const DAYS: u32 = 3650;
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&group)?)?;
    let mut name = X509Name::builder()?;
    name.append_entry_by_nid(Nid::COMMONNAME, "Another CA")?;
    let name = name.build();
    let mut root = X509Builder::new()?;
    root.set_version(2)?;
    root.set_subject_name(&name)?;
    root.set_issuer_name(&name)?;
    let (from, until) = (Asn1Time::from_unix(0)?, Asn1Time::days_from_now(DAYS)?);
    root.set_not_before(&from)?;
    root.set_not_after(&until)?;
    root.set_pubkey(&key)?;
    let constraints = BasicConstraints::new().critical().ca().build()?;
    root.append_extension2(&constraints)?;
    root.sign(&key, MessageDigest::sha256())?;
    Ok(root.build())
}

/// What publishes this root.
pub(super) fn record_of(root: &X509) -> Result<Vec<Fragment>, String> {
    let der = root.to_der().map_err(|error| error.to_string())?;
    let list = CertificateList::new(vec![der]).map_err(|error| error.to_string())?;
    split(Part::Root, &list).map_err(|error| error.to_string())
}
