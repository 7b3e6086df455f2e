//! DNS over TLS (RFC 7858), authenticated (RFC 8310).

use std::path::{Path, PathBuf};
use std::pin::Pin;

use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVerifyMode, SslVersion};
use openssl::x509::X509VerifyResult;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use crate::tls::{require, words};

/// The application protocol of DNS over TLS, in the form of RFC 7301.
const ALPN: &[u8] = b"\x03dot";

/// How a DNS server proves who it is.
#[derive(Clone, Debug)]
pub struct TlsServer {
    context: SslContext,
    /// A name or an address.
    identity: String,
}

/// There is no connection to a DNS server by TLS.
#[derive(Debug, Error)]
pub(super) enum TlsError {
    #[error("{}", lastbyte_providers::reason(.0))]
    OpenSsl(#[from] ErrorStack),
    #[error("{}", words(.0))]
    Handshake(#[source] openssl::ssl::Error),
    #[error("its certificate is not accepted: {0}")]
    Certificate(X509VerifyResult),
}

impl TlsServer {
    /// A server whose certificate has this name or address, by a CA of `ca` (PEM) or of the system.
    ///
    /// # Errors
    ///
    /// If the file can't be used.
    pub fn new(identity: &str, ca: Option<&Path>) -> Result<TlsServer, ErrorStack> {
        let mut context = SslContext::builder(SslMethod::tls_client())?;
        context.set_min_proto_version(Some(SslVersion::TLS1_2))?;
        context.set_verify(SslVerifyMode::PEER);
        context.set_alpn_protos(ALPN)?;
        match ca.map(Path::to_owned).or_else(system_roots) {
            Some(file) => context.set_ca_file(file)?,
            None => context.set_default_verify_paths()?,
        }
        Ok(TlsServer {
            context: context.build(),
            identity: identity.to_owned(),
        })
    }

    pub(super) async fn connect(
        &self,
        stream: TcpStream,
    ) -> Result<SslStream<TcpStream>, TlsError> {
        let ssl = self.ssl()?;
        let mut stream = SslStream::new(ssl, stream)?;
        match Pin::new(&mut stream).connect().await {
            Ok(()) => Ok(stream),
            Err(error) => Err(match stream.ssl().verify_result() {
                X509VerifyResult::OK => TlsError::Handshake(error),
                problem => TlsError::Certificate(problem),
            }),
        }
    }

    fn ssl(&self) -> Result<Ssl, ErrorStack> {
        let mut ssl = Ssl::new(&self.context)?;
        require(&mut ssl, &self.identity)?;
        Ok(ssl)
    }
}

/// The file of the CAs that this system trusts: the OpenSSL that is built in looks elsewhere.
pub fn system_roots() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.or_else(|| {
        [
            "/etc/ssl/certs/ca-certificates.crt",
            "/etc/pki/tls/certs/ca-bundle.crt",
            "/etc/ssl/ca-bundle.pem",
            "/etc/ssl/cert.pem",
        ]
        .into_iter()
        .map(PathBuf::from)
        .find(|file| file.exists())
    })
}
