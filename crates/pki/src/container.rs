//! What a file is that is not PEM: containers of certificates by what they begin with, each with what makes PEM of it.

use openssl::x509::{X509, X509Req};

/// A file in a binary form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// A certificate in DER (X.690).
    Certificate,
    /// PKCS#12 (RFC 7292): a chain and its key, often encrypted.
    Pkcs12,
    /// PKCS#7 (RFC 2315, 5652) in DER: certificates alone.
    Pkcs7,
    /// A private key in DER (RFC 5208, 5915, 8017).
    Key,
    /// A request for a certificate (RFC 2986).
    Request,
    /// Java's own keystore.
    Jks,
    /// DER of another kind.
    Other,
}

/// How a SEQUENCE begins.
const SEQUENCE: u8 = 0x30;
/// How Java's keystores begin.
const JKS: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];
/// `1.2.840.113549.1.7`, as an OBJECT IDENTIFIER of one more byte: PKCS#7's contents.
const PKCS7: [u8; 10] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07];

impl Container {
    /// What begins so, if it is any.
    pub(crate) fn of(bytes: &[u8]) -> Option<Container> {
        if bytes.starts_with(&JKS) {
            return Some(Container::Jks);
        }
        let content = content(bytes)?;
        Some(match content {
            _ if content.starts_with(&PKCS7) => Container::Pkcs7,
            [0x02, 0x01, 3, SEQUENCE, ..] => Container::Pkcs12,
            [0x02, 0x01, 0 | 1, ..] => Container::Key,
            _ if X509::from_der(bytes).is_ok() => Container::Certificate,
            _ if X509Req::from_der(bytes).is_ok() => Container::Request,
            _ => Container::Other,
        })
    }

    /// What it is, and what to do about it.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Container::Certificate => {
                "is DER, not PEM: convert it with \"openssl x509 -inform der -in FILE -out FILE.pem\""
            }
            Container::Pkcs12 => {
                "is PKCS#12, not PEM: convert it with \"openssl pkcs12 -in FILE -nodes -out FILE.pem\""
            }
            Container::Pkcs7 => {
                "is PKCS#7, not PEM: convert it with \"openssl pkcs7 -inform der -print_certs -in FILE -out FILE.pem\""
            }
            Container::Key => {
                "is a private key in DER, not a chain in PEM: name the file of the chain"
            }
            Container::Request => {
                "is a request for a certificate, not a chain in PEM: name the file that the CA has sent for it"
            }
            Container::Jks => {
                "is a keystore of Java, not PEM: convert it with \"keytool -importkeystore -srckeystore FILE -destkeystore \
                 FILE.p12 -deststoretype pkcs12\", and then \"openssl pkcs12 -in FILE.p12 -nodes -out FILE.pem\""
            }
            Container::Other => "is binary, not PEM, and no certificate in DER either",
        }
    }
}

/// What is in a SEQUENCE, as far as it is there.
fn content(der: &[u8]) -> Option<&[u8]> {
    let [SEQUENCE, length, rest @ ..] = der else {
        return None;
    };
    match length {
        0x81..=0x84 => rest.get(usize::from(length & 0x7f)..),
        // A length that comes at the end (BER), as some keystores write it.
        _ => Some(rest),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::test_chains;
    use openssl::pkcs12::Pkcs12;
    use openssl::stack::Stack;
    use openssl::x509::X509ReqBuilder;

    #[test]
    fn each_by_what_it_begins_with() {
        let chain = test_chains::for_name("server.example").unwrap();
        let end_entity = chain.certificates().first().unwrap();
        let container = |der: &[u8]| Container::of(der).unwrap();
        assert_eq!(
            container(&end_entity.to_der().unwrap()),
            Container::Certificate
        );
        assert_eq!(
            container(&chain.key().private_key_to_der().unwrap()),
            Container::Key
        );
        assert_eq!(
            container(&chain.key().private_key_to_pkcs8().unwrap()),
            Container::Key
        );
        let mut store = Pkcs12::builder();
        store.pkey(chain.key()).cert(end_entity);
        assert_eq!(
            container(&store.build2("").unwrap().to_der().unwrap()),
            Container::Pkcs12
        );
        let none = openssl::pkcs7::Pkcs7::sign(
            end_entity,
            chain.key(),
            &Stack::new().unwrap(),
            b"",
            openssl::pkcs7::Pkcs7Flags::empty(),
        );
        assert_eq!(
            container(&none.unwrap().to_der().unwrap()),
            Container::Pkcs7
        );
        let mut request = X509ReqBuilder::new().unwrap();
        request.set_pubkey(chain.key()).unwrap();
        request
            .sign(chain.key(), openssl::hash::MessageDigest::sha256())
            .unwrap();
        assert_eq!(
            container(&request.build().to_der().unwrap()),
            Container::Request
        );
        assert_eq!(
            container(&[0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2]),
            Container::Jks
        );
        // BER without a length, and a SEQUENCE of nothing that is known.
        assert_eq!(
            container(&[0x30, 0x80, 0x02, 0x01, 3, 0x30]),
            Container::Pkcs12
        );
        assert_eq!(container(&[0x30, 0x03, 0x0c, 0x01, b'x']), Container::Other);
        for none in [&b""[..], b"\x30", b"\x30\x84\x01", b"-----BEGIN"] {
            assert_eq!(Container::of(none), None, "{none:?}");
        }
    }
}
