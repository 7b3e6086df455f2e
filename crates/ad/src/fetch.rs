//! Fetches one resource.

use std::io::Write;
use std::time::Duration;

use tokio::time::timeout;

use crate::client::{ConnectError, Connection, Connector, Handshake, Use};
use crate::end::CloseNotifyRequired;
use crate::http::{HttpError, Url, get};

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no whole response, or it can't be written.
    #[error("{url}: {error}")]
    Http {
        /// What was fetched.
        url: Url,
        /// What is wrong.
        error: HttpError,
    },
    /// It takes too long.
    #[error("{url}: not complete within {time:?}")]
    TooLong {
        /// What was fetched.
        url: Url,
        /// The limit.
        time: Duration,
    },
}

/// What a response may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Without a head, and without a byte of the body after it.
    pub silence: Duration,
    /// All of it, connection included.
    pub total: Duration,
}

/// What was fetched. Times are since the name was asked for.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What there is to say of the connection.
    pub handshake: Handshake,
    /// The status code.
    pub status: u16,
    /// Where it says that the resource is instead.
    pub location: Option<String>,
    /// The size of the body.
    pub body_bytes: u64,
    /// The request was about to be sent.
    pub pre_transfer: Duration,
    /// The first byte of the response was there.
    pub start_transfer: Duration,
    /// All of it was there.
    pub total: Duration,
}

/// Silence for so long, and no limit of the whole.
impl From<Duration> for Patience {
    fn from(silence: Duration) -> Patience {
        Patience {
            silence,
            total: Duration::MAX,
        }
    }
}

/// Fetches `url` over a connection that is made `how` it says, and writes the body to `body`.
///
/// # Errors
///
/// If there is no connection, or no whole response in time.
pub async fn fetch(
    connector: &Connector,
    url: &Url,
    how: Use,
    patience: impl Into<Patience>,
    body: &mut dyn Write,
) -> Result<Fetched, FetchError> {
    let patience = patience.into();
    let fetched = timeout(
        patience.total,
        respond(connector, url, how, patience.silence, body),
    );
    fetched.await.unwrap_or_else(|_| {
        Err(FetchError::TooLong {
            url: url.clone(),
            time: patience.total,
        })
    })
}

async fn respond(
    connector: &Connector,
    url: &Url,
    how: Use,
    silence: Duration,
    body: &mut dyn Write,
) -> Result<Fetched, FetchError> {
    let connection = connector.connect(&url.host, url.port, how).await?;
    let Connection {
        stream,
        start,
        handshake,
    } = connection;
    let pre_transfer = start.elapsed();
    let answer = get(CloseNotifyRequired(stream), url, start, silence, body).await;
    let answer = answer.map_err(|error| FetchError::Http {
        url: url.clone(),
        error,
    })?;
    Ok(Fetched {
        handshake,
        status: answer.status,
        location: answer.location,
        body_bytes: answer.body_bytes,
        pre_transfer,
        start_transfer: answer.start,
        total: answer.total,
    })
}
