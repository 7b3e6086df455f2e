//! What all TLS of the programs has in common.

use std::io;

use openssl::error::ErrorStack;
use openssl::ssl::{ErrorCode, SslContext, SslContextBuilder, SslMethod, SslRef, SslVersion};
use openssl::x509::X509VerifyResult;
use pqtlsad::validate::require_host;

/// A context for TLS 1.3 and nothing else, which knows all signatures whose algorithm is a
/// standard.
pub(crate) fn context(method: SslMethod) -> Result<SslContextBuilder, ErrorStack> {
    // FN-DSA's is none yet, and its code points are for private use: only the laboratory speaks it.
    let signatures: Vec<_> = lastbyte_providers::SLH_DSA.iter().collect();
    let context = lastbyte_providers::offering(&signatures, || SslContext::builder(method));
    let mut context = context??;
    context.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    Ok(context)
}

/// Has a connection be with the server of this DNS name or address: it asks for that, and accepts
/// no other's certificate.
pub(crate) fn require(ssl: &mut SslRef, identity: &str) -> Result<(), ErrorStack> {
    match identity.parse() {
        Ok(address) => ssl.param_mut().set_ip(address),
        Err(_) => {
            ssl.set_hostname(identity)?;
            require_host(ssl.param_mut(), identity)
        }
    }
}

/// Why a handshake failed: a certificate that is not accepted says more than that.
pub(crate) fn reason(error: &openssl::ssl::Error, verified: X509VerifyResult) -> String {
    match verified {
        X509VerifyResult::OK => words(error),
        problem => format!("the server's certificate is not accepted: {problem}"),
    }
}

/// What ended a connection, without OpenSSL's codes.
pub(crate) fn words(error: &openssl::ssl::Error) -> String {
    match (error.ssl_error(), error.code()) {
        (Some(stack), _) => lastbyte_providers::reason(stack),
        (None, ErrorCode::SSL) => lastbyte_providers::reason(&ErrorStack::get()),
        (None, _) => error.to_string(),
    }
}

/// The same of what a stream fails with, be it one of TLS.
pub(crate) fn stream_words(error: &io::Error) -> String {
    let inner = error.get_ref();
    let of_tls = inner.and_then(|inner| inner.downcast_ref::<openssl::ssl::Error>());
    of_tls.map_or_else(|| error.to_string(), words)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};

    use openssl::ssl::{Ssl, SslStream};

    use super::*;

    /// Keeps what is sent, and answers nothing.
    struct Recorded(Vec<u8>);

    impl Read for Recorded {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    impl Write for Recorded {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The schemes in the signature_algorithms of the ClientHello (RFC 8446, section 4.2.3).
    fn offered(hello: &[u8]) -> Vec<u16> {
        const SIGNATURE_ALGORITHMS: u16 = 13;
        let number = |at: usize| u16::from_be_bytes([hello[at], hello[at + 1]]);
        // Headers, version and random; then session id, suites and compression.
        let mut at = 5 + 4 + 2 + 32;
        at += 1 + usize::from(hello[at]);
        at += 2 + usize::from(number(at));
        at += 1 + usize::from(hello[at]) + 2;
        while number(at) != SIGNATURE_ALGORITHMS {
            at += 4 + usize::from(number(at + 2));
        }
        let schemes = hello[at + 6..at + 4 + usize::from(number(at + 2))].chunks(2);
        schemes
            .map(|two| u16::from_be_bytes([two[0], two[1]]))
            .collect()
    }

    #[test]
    fn only_signatures_of_standards_are_offered() {
        let context = context(SslMethod::tls_client()).unwrap().build();
        let ssl = Ssl::new(&context).unwrap();
        let mut stream = SslStream::new(ssl, Recorded(Vec::new())).unwrap();
        stream.connect().unwrap_err();
        let offered = offered(&stream.get_ref().0);
        for signature in lastbyte_providers::signatures() {
            let is_standard = lastbyte_providers::SLH_DSA.contains(signature);
            let is_offered = offered.contains(&signature.code_point);
            assert_eq!(is_offered, is_standard, "{signature:?}");
        }
    }
}
