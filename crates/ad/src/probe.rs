//! Asks a server whether it would leave out certificates.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openssl::error::ErrorStack;
use openssl::ssl::{
    ExtensionContext, Ssl, SslAlert, SslContext, SslMethod, SslVerifyMode, SslVersion,
};
use pqtlsad::Digest;
use pqtlsad::extension::ExtensionType;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_openssl::SslStream;

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
    let answer = Arc::default();
    let ssl = ssl(name, *digest, number, Arc::clone(&answer));
    let ssl = ssl.map_err(|error| tls(error.to_string()))?;
    let asked = async {
        let stream = TcpStream::connect(server).await.map_err(io)?;
        let mut stream = SslStream::new(ssl, stream).map_err(|error| tls(error.to_string()))?;
        let connected = Pin::new(&mut stream).connect().await;
        connected.map_err(|error| tls(error.to_string()))
    };
    let asked = match timeout(PATIENCE, asked).await {
        Ok(asked) => asked,
        Err(_) => Err(io(io::ErrorKind::TimedOut.into())),
    };
    // The ServerHello has the answer. How the key is proved after it is not ours to judge: a carrier
    // certificate, for one, can't be.
    let answer = *answer.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        Some(answer) => Ok(answer == *digest),
        None => asked.map(|()| false),
    }
}

fn ssl(
    name: &str,
    digest: Digest,
    number: ExtensionType,
    answer: Arc<Mutex<Option<Digest>>>,
) -> Result<Ssl, ErrorStack> {
    let signatures: Vec<_> = lastbyte_providers::signatures().collect();
    let mut context =
        lastbyte_providers::offering(
            &signatures,
            || SslContext::builder(SslMethod::tls_client()),
        )??;
    context.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    context.set_verify(SslVerifyMode::NONE);
    let hellos = ExtensionContext::CLIENT_HELLO
        | ExtensionContext::TLS1_3_SERVER_HELLO
        | ExtensionContext::TLS1_3_ONLY;
    context.add_custom_ext(
        number.0,
        hellos,
        move |_, _, _| Ok(Some(digest)),
        move |_, _, data, _| {
            let digest = Digest::from_bytes(data).ok_or(SslAlert::DECODE_ERROR)?;
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(digest);
            Ok(())
        },
    )?;
    let mut ssl = Ssl::new(&context.build())?;
    ssl.set_hostname(name)?;
    Ok(ssl)
}
