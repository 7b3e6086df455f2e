//! Asks a server whether it would leave out certificates.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVerifyMode};
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509VerifyResult};
use pqtlsad::client::Answer;
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::{EndEntity, client};
use pqtlsad::record::Delivered;
use pqtlsad::validate::{Algorithms, Offer, Trust, validate};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_openssl::SslStream;

use crate::tls::{self, reason};

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
    /// Clients would not use the chain.
    #[error("the chain can't be used: {0}")]
    Chain(String),
}

/// What a server is to leave out.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// What DNS would deliver.
    pub(crate) delivered: Delivered,
    /// The top of the chain that it is of: whoever proves a key that leads there is the server.
    pub(crate) top: X509,
}

/// Whether `server` leaves out these certificates for a client of `name`, and proves the key of their chain.
///
/// # Errors
///
/// If there is no answer, or if it comes from somebody else.
pub(crate) async fn accepts(
    server: SocketAddr,
    name: &str,
    wanted: &Wanted,
    number: ExtensionType,
) -> Result<bool, ProbeError> {
    let io = |error| ProbeError::Io { server, error };
    let failed = |reason: String| ProbeError::Tls { server, reason };
    let late = |_| io(io::ErrorKind::TimedOut.into());
    let context =
        context(&wanted.top, number).map_err(|error| failed(lastbyte_providers::reason(&error)))?;
    let trust = Trust {
        anchors: context.cert_store(),
        at: SystemTime::now(),
        algorithms: Algorithms::All,
    };
    let offer = validate(wanted.delivered.clone(), name, &trust);
    let offer = offer.map_err(|fallback| ProbeError::Chain(fallback.reason))?;
    let digest = *offer.digest();
    let ssl =
        ssl(&context, name, offer).map_err(|error| failed(lastbyte_providers::reason(&error)))?;
    let stream = timeout(PATIENCE, TcpStream::connect(server)).await;
    let stream = stream.map_err(late)?.map_err(io)?;
    let mut stream =
        SslStream::new(ssl, stream).map_err(|error| failed(lastbyte_providers::reason(&error)))?;
    let connected = timeout(PATIENCE, Pin::new(&mut stream).connect()).await;
    let connected = connected.map_err(late)?;
    let verified = stream.ssl().verify_result();
    match (client::answer(stream.ssl()), connected) {
        (Some(Answer::Digest(answer)), Ok(())) => Ok(answer == digest),
        (Some(Answer::Digest(answer)), Err(error)) if answer == digest => {
            Err(failed(reason(&error, verified)))
        }
        // It has another chain, which need not lead to the same top.
        (Some(Answer::Digest(_)), Err(_)) | (_, Ok(())) => Ok(false),
        (_, Err(_)) if verified != X509VerifyResult::OK => Ok(false),
        (_, Err(error)) => Err(failed(tls::words(&error))),
    }
}

/// One that trusts `top` alone, wherever in a chain it is.
fn context(top: &X509, number: ExtensionType) -> Result<SslContext, ErrorStack> {
    let mut context = tls::context(SslMethod::tls_client())?;
    client::install(&mut context, number)?;
    context.set_verify(SslVerifyMode::PEER);
    let mut anchors = X509StoreBuilder::new()?;
    anchors.add_cert(top.clone())?;
    anchors.set_flags(X509VerifyFlags::PARTIAL_CHAIN)?;
    context.set_cert_store(anchors.build());
    Ok(context.build())
}

fn ssl(context: &SslContext, name: &str, offer: Offer) -> Result<Ssl, ErrorStack> {
    let mut ssl = Ssl::new(context)?;
    tls::require(&mut ssl, name)?;
    client::offer(&mut ssl, offer, EndEntity::RawPublicKey)?;
    Ok(ssl)
}
