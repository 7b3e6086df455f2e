//! Asks a server whether it would leave out certificates.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslMethod, SslVerifyMode};
use pqtlsad::Digest;
use pqtlsad::client::Answer;
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::client;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_openssl::SslStream;

use crate::tls::context;

/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a server can't be asked.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It can't be reached.
    #[error("{server}: {error}")]
    Io {
        /// The server.
        server: SocketAddr,
        /// The system's words.
        error: io::Error,
    },
    /// The handshake fails.
    #[error("{server}: the TLS handshake failed: {reason}")]
    Tls {
        /// The server.
        server: SocketAddr,
        /// OpenSSL's words.
        reason: String,
    },
}

/// Whether `server` leaves out the certificates of this digest for a client of `name`.
///
/// Who the server is, is not verified: nothing but its answer is used.
///
/// # Errors
///
/// If there is no answer.
pub(crate) async fn accepts(
    server: SocketAddr,
    name: &str,
    digest: &Digest,
    number: ExtensionType,
) -> Result<bool, ProbeError> {
    let io = |error| ProbeError::Io { server, error };
    let tls = |reason: String| ProbeError::Tls { server, reason };
    let late = |_| io(io::ErrorKind::TimedOut.into());
    let ssl = ssl(name, *digest, number).map_err(|error| tls(error.to_string()))?;
    let stream = timeout(PATIENCE, TcpStream::connect(server)).await;
    let stream = stream.map_err(late)?.map_err(io)?;
    let mut stream = SslStream::new(ssl, stream).map_err(|error| tls(error.to_string()))?;
    let connected = timeout(PATIENCE, Pin::new(&mut stream).connect()).await;
    // The ServerHello has the answer. How the key is proved after it is not ours to judge: a carrier
    // certificate, for one, can't be.
    if let Some(Answer::Digest(answer)) = client::answer(stream.ssl()) {
        return Ok(answer == *digest);
    }
    let connected = connected.map_err(late)?;
    connected.map_err(|error| tls(error.to_string()))?;
    Ok(false)
}

fn ssl(name: &str, digest: Digest, number: ExtensionType) -> Result<Ssl, ErrorStack> {
    let mut context = context(SslMethod::tls_client())?;
    client::install(&mut context, number)?;
    context.set_verify(SslVerifyMode::NONE);
    let mut ssl = Ssl::new(&context.build())?;
    ssl.set_hostname(name)?;
    client::ask(&mut ssl, digest)?;
    Ok(ssl)
}
