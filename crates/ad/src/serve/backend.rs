//! Where the plain text goes.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

/// How long the addresses of a name are good. Sooner, they are looked up after a failure only.
const GOOD: Duration = Duration::from_secs(30);

/// What is between two lookups at least, however many connections fail.
const BETWEEN: Duration = Duration::from_secs(1);

type Looking = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// A server, by name or address.
pub(super) struct Backend {
    name: String,
    look_up: Box<dyn Fn(&str) -> Looking + Send + Sync>,
    resolved: Mutex<Option<Resolved>>,
    /// Held by whoever looks the name up.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Resolved {
    addresses: Arc<[SocketAddr]>,
    since: Instant,
}

impl Backend {
    /// `HOST:PORT`.
    pub(super) fn new(name: &str) -> Backend {
        Backend::with(name, |name| {
            let name = name.to_owned();
            Box::pin(async move { Ok(lookup_host(name).await?.collect()) })
        })
    }

    fn with(name: &str, look_up: impl Fn(&str) -> Looking + Send + Sync + 'static) -> Backend {
        Backend {
            name: name.to_owned(),
            look_up: Box::new(look_up),
            resolved: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Connects to the first of its addresses that answers. If none of those that were known does,
    /// they are looked up anew.
    ///
    /// # Errors
    ///
    /// The system's, of the last address.
    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        let addresses = self.addresses(GOOD).await?;
        let error = match any(&addresses).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        match self.addresses(BETWEEN).await {
            Ok(anew) if anew != addresses => any(&anew).await,
            _ => Err(error),
        }
    }

    /// Its addresses, as they were at most so long ago. Old ones are good while somebody else
    /// looks, or if there is no answer.
    async fn addresses(&self, good: Duration) -> io::Result<Arc<[SocketAddr]>> {
        let resolved = self.resolved();
        if let Some(resolved) = resolved
            .as_ref()
            .filter(|resolved| resolved.since.elapsed() < good)
        {
            return Ok(Arc::clone(&resolved.addresses));
        }
        let _looking = match (self.looking.try_lock(), &resolved) {
            (Ok(looking), _) => looking,
            (Err(_), Some(resolved)) => return Ok(Arc::clone(&resolved.addresses)),
            (Err(_), None) => {
                let looking = self.looking.lock().await;
                if let Some(resolved) = self.resolved() {
                    return Ok(resolved.addresses);
                }
                looking
            }
        };
        let found = (self.look_up)(&self.name).await;
        let mut latest = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let addresses: Arc<[SocketAddr]> = match (found, resolved) {
            (Ok(found), _) => found.into(),
            (Err(_), Some(resolved)) => resolved.addresses,
            (Err(error), None) => return Err(error),
        };
        *latest = Some(Resolved {
            addresses: Arc::clone(&addresses),
            since: Instant::now(),
        });
        Ok(addresses)
    }

    fn resolved(&self) -> Option<Resolved> {
        let resolved = self.resolved.lock();
        resolved.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Backend").field(&self.name).finish()
    }
}

/// What takes longer than this has failed.
pub(super) async fn timed<T>(
    limit: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::TcpListener;

    use super::{BETWEEN, Backend};

    #[tokio::test]
    async fn a_name_is_looked_up_once_and_again_when_nobody_answers() {
        let here = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let moved = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [&here, &moved].map(|listener| listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let backend = Backend::with("backend:80", move |name| {
            assert_eq!(name, "backend:80");
            let times = count.fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::ready(Ok(vec![addresses[times.min(1)]])))
        });
        for _ in 0..3 {
            backend.connect().await.unwrap();
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        drop(here);
        tokio::time::sleep(BETWEEN).await;
        let stream = backend.connect().await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        drop(moved);
        for _ in 0..3 {
            backend.connect().await.unwrap_err();
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2, "not for each connection");
    }
}
