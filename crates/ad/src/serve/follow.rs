//! Loads chains again while they are served.

use std::convert::Infallible;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use pqtlsad::server::{Chain, Chains, SharedChains};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep};

use super::chains::{self, Followed, INTERVAL, Reading, Step};
use super::log::Log;
use super::{PUBLISHING, Server};
use crate::secret::exposure;

/// How often the log repeats that a chain ages, or can't be loaded.
const REMINDER: Duration = Duration::from_secs(24 * 3600);

/// That chains are to be loaded now, whether they have changed or not.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) before: Before,
    /// Dropped when it is done, or when the log has why it can't be.
    pub(super) _done: oneshot::Sender<()>,
}

/// What becomes of the chains that are replaced, and of those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Who has them from DNS may go on.
    Kept,
    /// Their keys sign nothing more.
    Forgotten,
}

impl Server {
    pub(super) async fn follow(
        &self,
        mut reloads: UnboundedReceiver<Reload>,
        log: &Log,
    ) -> Infallible {
        let Some(shared) = &self.chains else {
            return pending().await;
        };
        let followed = self.followed.lock();
        let mut followed = std::mem::take(&mut *followed.unwrap_or_else(PoisonError::into_inner));
        let mut readings = vec![Reading::IfChanged; followed.len()];
        let mut asking: Vec<Reload> = Vec::new();
        let mut reminded = Instant::now();
        self.remind(shared, log).await;
        warn(shared, log);
        let mut folder = Folder::default();
        folder.keep(self, shared, log).await;
        loop {
            tokio::select! {
                Some(reload) = reloads.recv() => {
                    readings.fill(Reading::Always);
                    asking.push(reload);
                }
                () = sleep(INTERVAL) => {}
            }
            let (now, time) = (Instant::now(), SystemTime::now());
            let mut new: Vec<Chain> = current(shared);
            let mut is_changed = false;
            let steps;
            (followed, steps) = blocking({
                let readings = readings.clone();
                move || {
                    let looks = followed.iter_mut().zip(readings);
                    let steps = looks.map(|(followed, reading)| followed.look(reading, now, time));
                    let steps: Vec<_> = steps.collect();
                    (followed, steps)
                }
            })
            .await;
            for ((step, reading), chain) in steps.into_iter().zip(&mut readings).zip(&mut new) {
                match step {
                    Step::Waiting => continue,
                    Step::Same => {}
                    Step::Changed(loaded) => {
                        *chain = loaded;
                        is_changed = true;
                    }
                    Step::Refused(error) => log.say(&format!(
                        "loading a chain again failed: {error}; the one before goes on being served"
                    )),
                }
                *reading = Reading::IfChanged;
            }
            if is_changed {
                let until = time + self.config.ttl + PUBLISHING;
                shared.update(|chains| chains.rotate(new, until));
                log.say("the chains are loaded again");
                self.remind(shared, log).await;
                warn(shared, log);
            }
            shared.update(|chains| chains.expire(time));
            let is_done = !readings.contains(&Reading::Always);
            let forgets = |reload: &Reload| reload.before == Before::Forgotten;
            let forgotten = (is_done && asking.iter().any(forgets)).then(|| {
                let count = shared.load().previous().len();
                shared.update(Chains::forget);
                count
            });
            if now.saturating_duration_since(reminded) >= REMINDER {
                reminded = now;
                self.remind(shared, log).await;
                let refused: Vec<_>;
                (followed, refused) = blocking(move || {
                    let refused = followed.iter().filter_map(Followed::still_refused);
                    let refused = refused.collect();
                    (followed, refused)
                })
                .await;
                let refused = refused.into_iter();
                refused.for_each(|error| log.say(&format!("still can't be loaded: {error}")));
            }
            folder.keep(self, shared, log).await;
            if let Some(count) = forgotten {
                log.say(&format!("chains that were sent before: {count} forgotten"));
            }
            if is_done {
                asking.clear();
            }
        }
    }

    /// Says which chains age, and which keys others may read.
    async fn remind(&self, shared: &SharedChains, log: &Log) {
        let now = SystemTime::now();
        let chains = shared.load();
        let ageing = chains
            .current()
            .iter()
            .filter_map(|chain| chains::ageing(chain, now));
        ageing.for_each(|line| log.say(&line));
        let files = self.config.chains.clone();
        let exposed = blocking(move || {
            let exposed = files.iter().filter_map(|files| exposure(&files.key));
            exposed.collect::<Vec<_>>()
        })
        .await;
        exposed.iter().for_each(|line| log.say(line));
    }
}

/// Says which names many clients can't be served for.
fn warn(shared: &SharedChains, log: &Log) {
    let chains = shared.load();
    let chains: Vec<_> = chains.current().iter().map(|chain| &***chain).collect();
    let lines = chains::unverifiable(&chains);
    lines
        .iter()
        .for_each(|line| log.say(&format!("warning: {line}")));
}

/// Does what waits for a file system, which may hang, where nobody else waits for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work)
        .await
        .map_err(JoinError::try_into_panic)
    {
        Ok(done) => done,
        Err(Ok(panic)) => resume_unwind(panic),
        // It has not begun, and won't: the server ends.
        Err(Err(_)) => pending().await,
    }
}

fn current(shared: &SharedChains) -> Vec<Chain> {
    let chains = shared.load();
    chains
        .current()
        .iter()
        .map(|chain| (**chain).clone())
        .collect()
}

/// The state's folder, and whether it is in step.
#[derive(Debug, Default)]
struct Folder {
    /// The chains that it was to hold last, by their digests, and which time is the last of them.
    saved: Option<Content>,
    /// Why it does not.
    failed: Option<String>,
}

type Content = Vec<(pqtlsad::Digest, Option<SystemTime>)>;

impl Folder {
    /// Writes what has changed, and goes on trying.
    async fn keep(&mut self, server: &Server, shared: &SharedChains, log: &Log) {
        let Some(state) = &server.state else {
            return;
        };
        let chains = shared.load();
        let current = chains.current().iter().map(|chain| (chain.digest(), None));
        let previous = chains.previous();
        let previous = previous.map(|(chain, until)| (chain.digest(), Some(until)));
        let content: Content = current.chain(previous).collect();
        if self.saved.as_ref() == Some(&content) {
            return;
        }
        let state = Arc::clone(state);
        match blocking(move || state.save(&chains)).await {
            Ok(()) => {
                self.saved = Some(content);
                if self.failed.take().is_some() {
                    log.say("the chains are kept again for the next start");
                }
            }
            Err(error) => {
                let error = error.to_string();
                if self.failed.as_ref() != Some(&error) {
                    log.say(&format!(
                        "can't keep the chains for the next start: {error}"
                    ));
                    self.failed = Some(error);
                }
            }
        }
    }
}
