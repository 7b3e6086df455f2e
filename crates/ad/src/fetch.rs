//! Fetches one resource.

use std::io::{self, Write};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::client::{ConnectError, Connection, Connector, Handshake, Use};
use crate::end::is_end;
use crate::http::{HttpError, Response, Url};

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The response can't be read.
    #[error("{url}: {error}")]
    Http {
        /// What was fetched.
        url: Url,
        /// What is wrong.
        error: HttpError,
    },
    /// The connection fails.
    #[error("{url}: {error}")]
    Io {
        /// What was fetched.
        url: Url,
        /// The system's words.
        error: io::Error,
    },
    /// The body can't be written.
    #[error("can't write the body: {0}")]
    Body(io::Error),
}

/// What was fetched. Times are since the name was asked for.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What there is to say of the connection.
    pub handshake: Handshake,
    /// The status code.
    pub status: u16,
    /// The size of the body.
    pub body_bytes: u64,
    /// The request was about to be sent.
    pub pre_transfer: Duration,
    /// The first byte of the response was there.
    pub start_transfer: Duration,
    /// All of it was there.
    pub total: Duration,
}

/// Fetches `url` over a connection that is made `how` it says, and writes the body to `body`.
/// Nothing for `patience` ends it.
///
/// # Errors
///
/// If there is no connection, or no whole response.
pub async fn fetch(
    connector: &Connector,
    url: &Url,
    how: Use,
    patience: Duration,
    body: &mut dyn Write,
) -> Result<Fetched, FetchError> {
    let connection = connector.connect(&url.host, url.port, how).await?;
    let Connection {
        mut stream,
        start,
        handshake,
    } = connection;
    let pre_transfer = start.elapsed();
    let failed = |error| FetchError::Io {
        url: url.clone(),
        error,
    };
    let http = |error| FetchError::Http {
        url: url.clone(),
        error,
    };
    let sent = timeout(patience, stream.write_all(&url.request())).await;
    in_time(sent).map_err(failed)?;
    let mut start_transfer = None;
    let mut response = Response::default();
    let mut body_bytes = 0;
    let mut received = vec![0; 1 << 14];
    let mut content = Vec::new();
    while !response.is_done() {
        let length = timeout(patience, stream.read(&mut received)).await;
        let length = match in_time(length) {
            // Many servers end the connection without TLS's goodbye.
            Err(error) if is_end(&error) => 0,
            length => length.map_err(failed)?,
        };
        if length == 0 {
            response.close().map_err(http)?;
            break;
        }
        start_transfer.get_or_insert_with(|| start.elapsed());
        let received = received.get(..length).unwrap_or_default();
        response.push(received, &mut content).map_err(http)?;
        body_bytes += content.len() as u64;
        body.write_all(&content).map_err(FetchError::Body)?;
        content.clear();
    }
    body.flush().map_err(FetchError::Body)?;
    let total = start.elapsed();
    Ok(Fetched {
        handshake,
        status: response
            .status()
            .ok_or_else(|| http(HttpError::Truncated))?,
        body_bytes,
        pre_transfer,
        start_transfer: start_transfer.unwrap_or(total),
        total,
    })
}

fn in_time<T>(done: Result<io::Result<T>, tokio::time::error::Elapsed>) -> io::Result<T> {
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
