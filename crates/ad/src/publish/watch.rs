//! Follows the renewal of chains.
//!
//! The order is: the server loads the new chain, and still accepts the old one; its acceptance of
//! what is to be published is seen; only then the record changes. So whatever a client finds in
//! DNS, or a resolver still holds, the server knows.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use domain::tsig::Key;
use pqtlsad::Part;
use pqtlsad::extension::ExtensionType;
use pqtlsad::flight::InitialWindow;
use pqtlsad::record::{Delivered, RecordType};
use tokio::time::{Instant, sleep};

use super::{Publication, PublishError, count, plan};
use crate::probe::{ProbeError, Wanted, accepts};
use crate::serve::{Unfit, public_chain};

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long what did not work rests at most: less than what a server gives whoever publishes
/// ([`PUBLISHING`](crate::serve::PUBLISHING)).
const LONGEST_REST: Duration = Duration::from_secs(30);

/// What to publish, and where.
#[derive(Clone, Debug)]
pub struct Source {
    /// The server's name.
    pub name: String,
    /// Its chains, in PEM.
    pub files: Vec<PathBuf>,
    /// How far down; as computed if this is absent.
    pub part: Option<Part>,
    /// What the server may send at once.
    pub window: InitialWindow,
    /// The type of the records.
    pub record_type: RecordType,
    /// How long resolvers may keep them.
    pub ttl: Duration,
}

/// Whom to tell, and whom to ask.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The primary server of the zone.
    pub dns: SocketAddr,
    /// What signs updates.
    pub key: Option<Key>,
    /// The server whose chains they are: it has to accept what is published.
    pub tls: SocketAddr,
    /// The extension's number there.
    pub extension: ExtensionType,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// DNS has the records.
    Published {
        /// How many.
        records: usize,
        /// Their data in bytes.
        bytes: usize,
    },
    /// The files have changed, but not what they have DNS say.
    Unchanged,
    /// The server does not yet accept what is to be published.
    Waiting,
    /// Something did not work. It is tried again.
    Failed(WatchError),
}

/// Why something is tried again.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The files can't be published.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The DNS server does not take it.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The TLS server does not answer.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// Why a source can't be published.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file can't be read.
    #[error("can't read \"{}\": {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's words.
        error: std::io::Error,
    },
    /// A file has no whole chain.
    #[error("\"{}\": {error}", file.display())]
    Unfit {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        error: Unfit,
    },
    /// A chain can't be published.
    #[error("\"{}\": {error}", file.display())]
    Chain {
        /// Its file.
        file: PathBuf,
        /// What is wrong.
        error: PublishError,
    },
    /// The chains together can't be published.
    #[error(transparent)]
    Publication(PublishError),
}

/// What a source has DNS say.
#[derive(Debug)]
pub struct Loaded {
    /// The records.
    pub publication: Publication,
    /// The server's name.
    name: String,
    /// What the server is to leave out, of each chain.
    pub(crate) wanted: Vec<Wanted>,
    /// Why so many, where that was not given: for the operator.
    pub explanations: Vec<String>,
}

impl Source {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// If they can't be read or published.
    pub fn load(&self) -> Result<Loaded, SourceError> {
        let mut chains = Vec::new();
        let mut wanted = Vec::new();
        let mut explanations = Vec::new();
        for file in &self.files {
            let wrong = |error| SourceError::Chain {
                file: file.clone(),
                error,
            };
            let pem = fs::read(file).map_err(|error| SourceError::Read {
                file: file.clone(),
                error,
            })?;
            let chain = public_chain(&pem).map_err(|error| SourceError::Unfit {
                file: file.clone(),
                error,
            })?;
            let plan = plan(&chain, self.window);
            if self.part.is_none() {
                explanations.push(format!("{}: {plan}", file.display()));
            }
            let count = count(&chain, self.part, &plan).map_err(wrong)?;
            let list = chain.topmost(count);
            let list = list.map_err(|error| wrong(PublishError::Chain(error.into())))?;
            let part = chain.part(count);
            // There is one, of which the list begins.
            wanted.extend(chain.certificates().last().map(|top| Wanted {
                delivered: Delivered { part, list },
                top: top.clone(),
            }));
            chains.push((chain, count));
        }
        let counted = chains.iter().map(|(chain, count)| (chain, *count));
        let publication = Publication::new(&self.name, counted, self.record_type, self.ttl)
            .map_err(SourceError::Publication)?;
        Ok(Loaded {
            name: self.name.clone(),
            publication,
            wanted,
            explanations,
        })
    }
}

impl Loaded {
    /// Whether this server leaves out what is to be published, for clients that have it from DNS,
    /// and proves the keys.
    ///
    /// # Errors
    ///
    /// If it can't be asked.
    pub async fn is_accepted(
        &self,
        server: SocketAddr,
        extension: ExtensionType,
    ) -> Result<bool, ProbeError> {
        for wanted in &self.wanted {
            if !accepts(server, &self.name, wanted, extension).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Publishes `source`, now and whenever it changes, for as long as it is polled.
pub async fn watch(source: &Source, to: &Watch, mut report: impl FnMut(Event)) -> Infallible {
    let mut published: Option<Publication> = None;
    let mut files = None;
    let mut rest = Rest::new(Instant::now());
    let mut tried = None;
    let mut last = String::new();
    // What lasts is reported once.
    let mut report = move |event: Event| {
        let says = match &event {
            Event::Published { .. } | Event::Unchanged => String::new(),
            Event::Waiting => "waiting".to_owned(),
            Event::Failed(error) => error.to_string(),
        };
        if says.is_empty() || says != last {
            last = says;
            report(event);
        }
    };
    loop {
        let now: Vec<_> = source.files.iter().map(fs::read).map(Result::ok).collect();
        if tried.as_ref() != Some(&now) {
            rest = Rest::new(Instant::now());
            tried = Some(now.clone());
        }
        if files.as_ref() != Some(&now) && rest.is_over(Instant::now()) {
            let followed = follow(source, to, &published).await;
            rest.begin(Instant::now());
            match followed {
                Ok(Step::Done(publication)) => {
                    files = Some(now);
                    let (records, bytes) = publication.size();
                    report(match published.replace(publication.clone()) {
                        Some(old) if old == publication => Event::Unchanged,
                        _ => Event::Published { records, bytes },
                    });
                }
                Ok(Step::NotYet) => report(Event::Waiting),
                Err(error) => report(Event::Failed(error)),
            }
        }
        sleep(INTERVAL).await;
    }
}

/// How long nothing is tried: twice as long after each time.
struct Rest {
    until: Instant,
    next: Duration,
}

impl Rest {
    /// None, at `now`.
    fn new(now: Instant) -> Rest {
        Rest {
            until: now,
            next: INTERVAL,
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    fn begin(&mut self, now: Instant) {
        self.until = now + self.next;
        self.next = (2 * self.next).min(LONGEST_REST);
    }
}

enum Step {
    Done(Publication),
    /// The server is yet to accept it.
    NotYet,
}

async fn follow(
    source: &Source,
    to: &Watch,
    published: &Option<Publication>,
) -> Result<Step, WatchError> {
    let loaded = source.load()?;
    if published.as_ref() == Some(&loaded.publication) {
        return Ok(Step::Done(loaded.publication));
    }
    if !loaded.is_accepted(to.tls, to.extension).await? {
        return Ok(Step::NotYet);
    }
    loaded.publication.send(to.dns, to.key.as_ref()).await?;
    Ok(Step::Done(loaded.publication))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_work_is_tried_ever_more_rarely_but_within_the_servers_time() {
        let start = Instant::now();
        let mut rest = Rest::new(start);
        let seconds = 0..=200;
        let tried: Vec<u64> = seconds
            .filter(|second| {
                let now = start + Duration::from_secs(*second);
                let is_over = rest.is_over(now);
                if is_over {
                    rest.begin(now);
                }
                is_over
            })
            .collect();
        assert_eq!(tried, [0, 1, 3, 7, 15, 31, 61, 91, 121, 151, 181]);
        assert!(LONGEST_REST < crate::serve::PUBLISHING);
    }
}
