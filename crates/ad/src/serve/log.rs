//! Says what fails, without repeating it for every connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::time::now;

/// How many causes are distinguished: clients may choose what fails.
const CAUSES: usize = 100;

/// After so long it is news again that something fails.
const NEWS: Duration = Duration::from_secs(60);

/// What fails and succeeds by turns is no news, each time.
const FLAPS: Duration = Duration::from_millis(100);

/// How lines of the log look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// As people read them.
    #[default]
    Text,
    /// An object of JSON each, with `time` and `message` and what else is known.
    Json,
}

impl LogFormat {
    /// A line that says `message`.
    pub fn line(self, message: &str) -> String {
        self.with(message, [])
    }

    fn with<const N: usize>(self, message: &str, fields: [(&str, Value); N]) -> String {
        if self == LogFormat::Text {
            return message.to_owned();
        }
        let all = [("time", now().into()), ("message", message.into())];
        let all = all.into_iter().chain(fields);
        let all = all.filter(|(_, value)| !value.is_null());
        let all: Map<String, Value> = all.map(|(name, value)| (name.to_owned(), value)).collect();
        Value::from(all).to_string()
    }
}

/// What failed, and why: the first words are of this program, the others may be anybody's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cause {
    pub(super) what: &'static str,
    pub(super) reason: String,
}

/// How often there was each cause.
#[derive(Debug, Default)]
pub(super) struct Causes(Mutex<BTreeMap<Cause, Times>>);

#[derive(Clone, Copy, Debug)]
struct Times {
    all: u64,
    /// Since it was news.
    lately: u64,
    news: Instant,
    last: Instant,
}

impl Causes {
    /// All that there were, and how often.
    pub(super) fn all(&self) -> Vec<(Cause, u64)> {
        let causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let causes = causes.iter();
        causes
            .map(|(cause, times)| (cause.clone(), times.all))
            .collect()
    }

    /// Counts one more. How often it was there by now, if that is to be reported: the 1st, 10th,
    /// 100th, … time since it was news.
    fn count(&self, cause: &Cause, now: Instant) -> Option<u64> {
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_listed = causes.len() < CAUSES || causes.contains_key(cause);
        let cause = Cause {
            what: cause.what,
            reason: if is_listed {
                cause.reason.clone()
            } else {
                "another reason".to_owned()
            },
        };
        let times = causes.entry(cause).or_insert(Times {
            all: 0,
            lately: 0,
            news: now,
            last: now,
        });
        times.last = now;
        if times.lately == 0 || now.duration_since(times.news) >= NEWS {
            times.lately = 0;
            times.news = now;
        }
        times.all += 1;
        times.lately += 1;
        let is_power = times
            .lately
            .checked_ilog10()
            .is_some_and(|log| 10_u64.pow(log) == times.lately);
        is_power.then_some(times.all)
    }

    /// What fails after this is news.
    fn forget(&self, what: &str, now: Instant) {
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let those = causes
            .iter_mut()
            .filter(|(cause, times)| cause.what == what && now.duration_since(times.last) >= FLAPS);
        those.for_each(|(_, times)| times.lately = 0);
    }
}

pub(super) struct Log {
    say: Box<dyn Fn(&str) + Send + Sync>,
    format: LogFormat,
    causes: Arc<Causes>,
}

impl Log {
    pub(super) fn new(
        say: impl Fn(&str) + Send + Sync + 'static,
        format: LogFormat,
        causes: Arc<Causes>,
    ) -> Log {
        Log {
            say: Box::new(say),
            format,
            causes,
        }
    }

    pub(super) fn say(&self, message: &str) {
        (self.say)(&self.format.line(message));
    }

    /// Says what failed with whom, and why: the 1st, 10th, 100th, … time that it does for this
    /// reason, and again after a minute, or once it had succeeded.
    pub(super) fn failed(&self, what: &'static str, peer: Option<SocketAddr>, reason: &str) {
        let cause = Cause {
            what,
            reason: reason.to_owned(),
        };
        let Some(times) = self.causes.count(&cause, Instant::now()) else {
            return;
        };
        let by_now = match times {
            1 => String::new(),
            _ => format!(" ({times} times by now)"),
        };
        let line = match self.format {
            LogFormat::Text => {
                let peer = peer.map_or_else(String::new, |peer| format!("{peer}: "));
                format!("{peer}{what} failed: {reason}{by_now}")
            }
            LogFormat::Json => self.format.with(
                &format!("{what} failed: {reason}"),
                [
                    ("client", peer.map(|peer| peer.to_string()).into()),
                    ("failed", what.into()),
                    ("reason", reason.into()),
                    ("times", times.into()),
                ],
            ),
        };
        (self.say)(&line);
    }

    /// It is news if this fails from now on.
    pub(super) fn succeeded(&self, what: &str) {
        self.causes.forget(what, Instant::now());
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use super::{CAUSES, Cause, Causes, FLAPS, Log, LogFormat, NEWS};

    fn log(format: LogFormat) -> (Log, Arc<Mutex<Vec<String>>>) {
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&said);
        let say = move |line: &str| lines.lock().unwrap().push(line.to_owned());
        (Log::new(say, format, Arc::default()), said)
    }

    #[test]
    fn a_cause_is_said_ever_less_often() {
        let (log, said) = log(LogFormat::Text);
        let peer = "192.0.2.1:7".parse().unwrap();
        for _ in 0..25 {
            log.failed("the handshake", Some(peer), "no shared cipher");
        }
        log.failed("accepting", None, "no room");
        let said = said.lock().unwrap();
        assert_eq!(
            *said,
            [
                "192.0.2.1:7: the handshake failed: no shared cipher",
                "192.0.2.1:7: the handshake failed: no shared cipher (10 times by now)",
                "accepting failed: no room",
            ]
        );
    }

    fn cause() -> Cause {
        Cause {
            what: "accepting",
            reason: "no room".to_owned(),
        }
    }

    #[test]
    fn what_fails_again_after_it_had_succeeded_is_said_again() {
        let causes = Causes::default();
        let start = Instant::now();
        assert_eq!(causes.count(&cause(), start), Some(1));
        assert_eq!(causes.count(&cause(), start), None);
        causes.forget("loading", start + FLAPS);
        assert_eq!(causes.count(&cause(), start), None);
        causes.forget("accepting", start + FLAPS);
        assert_eq!(causes.count(&cause(), start + FLAPS), Some(4));
        // What succeeds in between all the time is reported less often all the same.
        causes.forget("accepting", start + FLAPS);
        assert_eq!(causes.count(&cause(), start + FLAPS), None);
    }

    #[test]
    fn what_still_fails_after_a_minute_is_said_again() {
        let causes = Causes::default();
        let start = Instant::now();
        assert_eq!(causes.count(&cause(), start), Some(1));
        assert_eq!(causes.count(&cause(), start + NEWS / 2), None);
        assert_eq!(causes.count(&cause(), start + NEWS), Some(3));
        assert_eq!(causes.all(), [(cause(), 3)]);
    }

    #[test]
    fn clients_can_not_choose_how_many_causes_there_are() {
        let (log, said) = log(LogFormat::Text);
        for number in 0..2 * CAUSES {
            log.failed("the handshake", None, &format!("reason {number}"));
        }
        let all = log.causes.all();
        assert_eq!(all.len(), CAUSES + 1);
        let said = said.lock().unwrap();
        assert!(
            said.contains(&format!("the handshake failed: reason {CAUSES}")),
            "its words are there"
        );
    }

    #[test]
    fn lines_can_be_json() {
        let (log, said) = log(LogFormat::Json);
        let peer = "192.0.2.1:7".parse().unwrap();
        log.failed("the handshake", Some(peer), "a \"word\"\n");
        log.say("hello");
        let said = said.lock().unwrap();
        let objects = said.iter().map(|line| serde_json::from_str(line).unwrap());
        let objects: Vec<serde_json::Value> = objects.collect();
        assert_eq!(objects[0]["client"], "192.0.2.1:7");
        assert_eq!(objects[0]["reason"], "a \"word\"\n");
        assert_eq!(objects[0]["times"], 1);
        assert_eq!(objects[1]["message"], "hello");
        assert_eq!(objects[1].as_object().unwrap().len(), 2);
        assert!(objects[1]["time"].as_str().unwrap().ends_with('Z'));
    }
}
