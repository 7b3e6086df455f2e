//! Says what fails, without repeating it for every connection.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// How many causes are told apart: clients may choose what fails.
const CAUSES: usize = 100;

pub(super) struct Log {
    say: Box<dyn Fn(&str) + Send + Sync>,
    counts: Mutex<HashMap<String, u64>>,
}

impl Log {
    pub(super) fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log {
            say: Box::new(say),
            counts: Mutex::default(),
        }
    }

    pub(super) fn say(&self, line: &str) {
        (self.say)(line);
    }

    /// Says what failed with whom, and why: the 1st, 10th, 100th, … time that it does for this reason.
    pub(super) fn failed(&self, what: &str, peer: Option<SocketAddr>, reason: &str) {
        let cause = format!("{what} failed: {reason}");
        let Some(times) = self.count(&cause) else {
            return;
        };
        let peer = peer.map_or_else(String::new, |peer| format!("{peer}: "));
        self.say(&match times {
            1 => format!("{peer}{cause}"),
            _ => format!("{peer}{cause} ({times} times by now)"),
        });
    }

    /// How often there was this cause, if that is to be said.
    fn count(&self, cause: &str) -> Option<u64> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let cause = match counts.len() < CAUSES || counts.contains_key(cause) {
            true => cause,
            false => "another",
        };
        let count = counts.entry(cause.to_owned()).or_default();
        *count += 1;
        let is_power = count
            .checked_ilog10()
            .is_some_and(|log| 10_u64.pow(log) == *count);
        is_power.then_some(*count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::Log;

    #[test]
    fn a_cause_is_said_ever_less_often() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&said);
        let log = Log::new(move |line| lines.lock().unwrap().push(line.to_owned()));
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
}
