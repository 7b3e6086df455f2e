//! Abridged certificates, which rustls does by itself with the lists that both sides are given.

use std::path::Path;
use std::time::Duration;

use lastbyte_pki::{Chain, KeyAlgorithm};
use lastbyte_sizes::ChainRole;
use lastbyte_sizes::der;
use lastbyte_sizes::profile::{self, Contents, Kind, Validity};
use lastbyte_tls as tls;
use lastbyte_tls::abridged::Listing;
use openssl::sha::sha256;
use openssl::x509::X509;

use super::Mechanism;
use crate::study::Abridged;

impl Mechanism for Abridged {
    fn bare(&self) -> Result<tls::Delivery, String> {
        let [server, client] = [(); 2].map(|()| Listing::default());
        Ok(tls::Delivery::Abridged { server, client })
    }

    fn configure(&self, chain: &Chain) -> Result<tls::Delivery, String> {
        let listing = |path: Option<&Path>| match path {
            Some(path) => read(path),
            None => our_own(chain),
        };
        Ok(tls::Delivery::Abridged {
            server: listing(self.list.as_deref())?,
            client: listing(self.client_list().map(|path| path.as_path()))?,
        })
    }
}

/// Several times what the CCADB lists in PEM.
const MAX_LIST: u64 = 32 << 20;

fn read(path: &Path) -> Result<Listing, String> {
    let problem = |error: &dyn ToString| {
        let error = error.to_string();
        format!("its list of certificates, {}: {error}", path.display())
    };
    let pem = lastbyte_files::read(path, MAX_LIST).map_err(|error| problem(&error))?;
    Listing::from_pem(&pem).map_err(|error| problem(&error))
}

/// CAs that nobody has heard of, besides those of a chain.
const OTHERS: u8 = 62;

/// The CAs of a chain among others of like names, and its end-entity as what theirs are like.
fn our_own(chain: &Chain) -> Result<Listing, String> {
    let mut certificates: Vec<X509> = chain.certificates().iter().skip(1).cloned().collect();
    certificates.push(chain.root().clone());
    for number in 0..OTHERS {
        let der = other(number);
        let certificate = X509::from_der(&der).map_err(|error| error.to_string())?;
        certificates.push(certificate);
    }
    let samples: Vec<_> = chain.certificates().iter().take(1).cloned().collect();
    Listing::new(&certificates, &samples).map_err(|error| error.to_string())
}

/// A certificate that looks like one of a CA. Nobody has its key, and nobody has signed it: it is
/// only to be listed, so it is the same for ever.
fn other(number: u8) -> Vec<u8> {
    const ALGORITHM: KeyAlgorithm = KeyAlgorithm::EcdsaP256;
    const DAY: Duration = Duration::from_secs(86_400);
    let drawn = |what: &str| sha256(format!("abridged {what} {number}").as_bytes());
    let key = public_key(&[drawn("x"), drawn("y")].concat());
    let identifier = |drawn: [u8; 32]| std::array::from_fn(|place| drawn[place]);
    let mut serial = [0; profile::SERIAL_BYTES];
    serial.copy_from_slice(&drawn("serial")[..profile::SERIAL_BYTES]);
    serial[0] = 0x40 | serial[0] & 0x3f;
    let contents = Contents {
        level: 1,
        serial,
        validity: Validity {
            not_before: DAY * 20_000,
            not_after: DAY * 22_000,
        },
        key: &key,
        key_identifier: identifier(drawn("key")),
        issuer_identifier: identifier(drawn("issuer")),
        signature: ALGORITHM,
        role: ChainRole::Server,
        kind: Kind::Intermediate {
            path_length: 0,
            crl_padding: 0,
        },
        padding: None,
    };
    let signature = [drawn("r"), drawn("s"), drawn("t")].concat();
    profile::certificate(
        &contents.to_be_signed(),
        ALGORITHM,
        &signature[..ALGORITHM.signature_bytes()],
    )
}

/// A SubjectPublicKeyInfo of P-256 (RFC 5480) with these coordinates, which need not be on the
/// curve.
fn public_key(coordinates: &[u8]) -> Vec<u8> {
    const EC_PUBLIC_KEY: der::Oid = der::Oid(&[1, 2, 840, 10045, 2, 1]);
    const SECP256R1: der::Oid = der::Oid(&[1, 2, 840, 10045, 3, 1, 7]);
    const UNCOMPRESSED: u8 = 4;
    let point = [&[UNCOMPRESSED], coordinates].concat();
    let algorithm = der::sequence(&[&EC_PUBLIC_KEY.to_der(), &SECP256R1.to_der()]);
    der::sequence(&[&algorithm, &der::bit_string(&point)])
}
