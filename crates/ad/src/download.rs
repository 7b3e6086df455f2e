//! Downloads one file whole, within limits of time and size.

use std::io::{self, Write};
use std::time::Duration;

use tokio::time::timeout;

use crate::client::{ConnectError, Connector, Use};
use crate::fetch::{FetchError, fetch};
use crate::http::{HttpError, Url};

/// How often a server may send us elsewhere.
const REDIRECTS: usize = 5;

/// What a download may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the question for an address to the last byte, redirections included.
    pub time: Duration,
    /// The largest file, in bytes.
    pub bytes: usize,
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// There is no connection, or no whole response.
    #[error(transparent)]
    Fetch(FetchError),
    /// The server has none.
    #[error("{url}: the server answers with the status {status}")]
    Status {
        /// What was asked for.
        url: Url,
        /// The status code.
        status: u16,
    },
    /// The server sends us somewhere where we do not go.
    #[error("{url}: the server sends us to {location:?}: {problem}")]
    Redirect {
        /// What was asked for.
        url: Url,
        /// Where to.
        location: String,
        /// Why we do not go there.
        problem: String,
    },
    /// It is too large.
    #[error("{url}: it has more than {bytes} bytes")]
    TooLarge {
        /// What was asked for.
        url: Url,
        /// The limit.
        bytes: usize,
    },
    /// It takes too long.
    #[error("{url}: not complete within {time:?}")]
    Timeout {
        /// What was asked for.
        url: Url,
        /// The limit.
        time: Duration,
    },
}

impl From<ConnectError> for DownloadError {
    fn from(error: ConnectError) -> DownloadError {
        DownloadError::Fetch(error.into())
    }
}

/// Downloads `url`, wherever the server says that it is, but nowhere without TLS.
///
/// # Errors
///
/// If there is no whole file within the limits.
pub async fn download(
    connector: &Connector,
    url: &Url,
    limits: Limits,
) -> Result<Vec<u8>, DownloadError> {
    let downloaded = timeout(limits.time, follow(connector, url, limits));
    downloaded.await.unwrap_or_else(|_| {
        Err(DownloadError::Timeout {
            url: url.clone(),
            time: limits.time,
        })
    })
}

async fn follow(
    connector: &Connector,
    url: &Url,
    limits: Limits,
) -> Result<Vec<u8>, DownloadError> {
    let mut url = url.clone();
    for _ in 0..=REDIRECTS {
        let mut body = Limited {
            bytes: Vec::new(),
            most: limits.bytes,
        };
        // The limit of the whole ends all of it.
        let fetched = fetch(connector, &url, Use::Nothing, Duration::MAX, &mut body).await;
        let fetched = fetched.map_err(|error| match error {
            // Nothing else keeps a body from memory.
            FetchError::Http {
                url,
                error: HttpError::Body(_),
            } => DownloadError::TooLarge {
                url,
                bytes: limits.bytes,
            },
            error => DownloadError::Fetch(error),
        })?;
        match (fetched.status, fetched.location) {
            (200, _) => return Ok(body.bytes),
            (301 | 302 | 303 | 307 | 308, Some(location)) => {
                url = url.redirected(&location).map_err(|error| {
                    let url = url.clone();
                    DownloadError::Redirect {
                        url,
                        location,
                        problem: error.to_string(),
                    }
                })?;
            }
            (status, _) => return Err(DownloadError::Status { url, status }),
        }
    }
    Err(DownloadError::Redirect {
        location: url.to_string(),
        url,
        problem: format!("after {REDIRECTS} redirections that is enough"),
    })
}

/// Takes a body up to a limit.
struct Limited {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Limited {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.most - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
