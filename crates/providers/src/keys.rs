//! Private keys as others read them.

use lastbyte_sizes::der::{self, Oid};
use openssl::base64::encode_block;
use openssl::error::ErrorStack;
use openssl::pkey::{KeyType, PKeyRef, Private};

/// The seed that a key of ML-DSA is made of (FIPS 204, algorithm 1).
const SEED: usize = 32;

/// A private key as PKCS #8, in DER. One of ML-DSA is its seed alone, where that is known: of the three forms that it can have (RFC
/// 9881, section 6), everybody reads this one, and Go and BoringSSL no other. OpenSSL by itself writes the seed and what
/// is made of it. A key without its seed is as OpenSSL writes it.
///
/// # Errors
///
/// If OpenSSL can't write it.
pub fn private_key_pkcs8(key: &PKeyRef<Private>) -> Result<Vec<u8>, ErrorStack> {
    match of_seed(key) {
        Some(der) => Ok(der),
        None => key.private_key_to_pkcs8(),
    }
}

/// The same as PEM.
///
/// # Errors
///
/// If OpenSSL can't write it.
pub fn private_key_pem(key: &PKeyRef<Private>) -> Result<Vec<u8>, ErrorStack> {
    /// Of a line (RFC 7468, section 2).
    const CHARACTERS: usize = 64;
    let Some(der) = of_seed(key) else {
        return key.private_key_to_pem_pkcs8();
    };
    let mut pem = b"-----BEGIN PRIVATE KEY-----\n".to_vec();
    for line in encode_block(&der).as_bytes().chunks(CHARACTERS) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    pem.extend_from_slice(b"-----END PRIVATE KEY-----\n");
    Ok(pem)
}

fn of_seed(key: &PKeyRef<Private>) -> Option<Vec<u8>> {
    // RFC 9881, section 2.
    let algorithms = [
        (KeyType::ML_DSA_44, Oid(&[2, 16, 840, 1, 101, 3, 4, 3, 17])),
        (KeyType::ML_DSA_65, Oid(&[2, 16, 840, 1, 101, 3, 4, 3, 18])),
        (KeyType::ML_DSA_87, Oid(&[2, 16, 840, 1, 101, 3, 4, 3, 19])),
    ];
    let mut algorithms = algorithms.into_iter();
    let (_, algorithm) = algorithms.find(|(kind, _)| key.is_a(*kind))?;
    let mut seed = [0; SEED];
    (key.seed_into(&mut seed).ok()? == SEED).then_some(())?;
    let version = der::element(der::INTEGER, &[0]);
    let algorithm = der::sequence(&[&algorithm.to_der()]);
    let seed = der::element(der::implicit(0), &seed);
    let key = der::element(der::OCTET_STRING, &seed);
    Some(der::sequence(&[&version, &algorithm, &key]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use openssl::ec::{EcGroup, EcKey};
    use openssl::nid::Nid;
    use openssl::pkey::PKey;

    use super::*;

    const KINDS: [KeyType; 3] = [KeyType::ML_DSA_44, KeyType::ML_DSA_65, KeyType::ML_DSA_87];

    #[test]
    fn the_seed_alone_is_the_same_key() {
        for kind in KINDS {
            let key = PKey::private_key_from_seed(None, kind, None, &[7; SEED]).unwrap();
            let der = private_key_pkcs8(&key).unwrap();
            assert_eq!(der.len(), 54);
            assert!(der.ends_with(&[7; SEED]));
            assert!(PKey::private_key_from_pkcs8(&der).unwrap().public_eq(&key));
            let pem = private_key_pem(&key).unwrap();
            assert!(PKey::private_key_from_pem(&pem).unwrap().public_eq(&key));
            let text = String::from_utf8(pem).unwrap();
            assert!(text.lines().all(|line| line.len() <= 64), "{text}");
        }
    }

    /// RFC 9881, appendix C.1.2.1 (of ML-DSA-44, of the seed 00 01 … 1f).
    #[test]
    fn the_example_of_the_rfc_is_written() {
        const EXAMPLE: &str = "-----BEGIN PRIVATE KEY-----\n\
            MDQCAQAwCwYJYIZIAWUDBAMRBCKAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZ\n\
            GhscHR4f\n\
            -----END PRIVATE KEY-----\n";
        let seed: [u8; SEED] = std::array::from_fn(|place| place as u8);
        let key = PKey::private_key_from_seed(None, KeyType::ML_DSA_44, None, &seed).unwrap();
        let pem = private_key_pem(&key).unwrap();
        assert_eq!(String::from_utf8(pem).unwrap(), EXAMPLE);
    }

    #[test]
    fn what_has_no_seed_is_as_openssl_writes_it() {
        let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        let key = PKey::from_ec_key(EcKey::generate(&curve).unwrap()).unwrap();
        let der = private_key_pkcs8(&key).unwrap();
        assert_eq!(der, key.private_key_to_pkcs8().unwrap());
        let pem = private_key_pem(&key).unwrap();
        assert_eq!(pem, key.private_key_to_pem_pkcs8().unwrap());
        // ML-DSA's key as what was made of the seed, which is lost.
        for kind in KINDS {
            let key = PKey::private_key_from_seed(None, kind, None, &[7; SEED]).unwrap();
            let expanded = expanded_only(&key.private_key_to_pkcs8().unwrap());
            let read = PKey::private_key_from_pkcs8(&expanded).unwrap();
            assert!(read.public_eq(&key));
            assert_eq!(private_key_pkcs8(&read).unwrap(), expanded);
        }
    }

    /// Of the form with both, that with what is made of the seed alone.
    fn expanded_only(both: &[u8]) -> Vec<u8> {
        // Behind version, algorithm, both headers and the seed.
        let expanded = &both[20 + 4 + 4 + 2 + SEED..];
        let long = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82, length[0], length[1]], content].concat()
        };
        long(0x30, &[&both[4..20], &long(4, expanded)].concat())
    }
}
