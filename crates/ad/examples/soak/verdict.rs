//! What happened, and whether it may.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pqtlsad::client::Outcome;

use crate::clock::{Goodness, Moment, Was, Which};

/// What a process may have more of at its last checkpoint than at its first.
const MORE_BYTES: u64 = 16 << 20;
const MORE_FILES: usize = 8;

/// How long a fault may show after it is over: resolvers ask again, and remember for a moment who
/// did not answer.
const AFTERMATH: Duration = Duration::from_secs(3);

/// What neither a fault nor a connection takes.
const LONGEST: Duration = Duration::from_secs(300);

/// What a fault may cost a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The address.
    Names,
    /// The connection, or the response.
    Connections,
    /// The chain is of another time of day.
    Trust,
}

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// How many connections ended in which way.
    ends: Mutex<BTreeMap<String, u64>>,
    /// How often there was which fault.
    faults: Mutex<BTreeMap<String, u64>>,
    /// The last of them, and when it began.
    last: Mutex<Option<(String, Instant)>>,
    /// When connections may be refused, and why.
    rough: Mutex<Vec<(Lost, Instant, Instant)>>,
    checkpoints: Mutex<Vec<Checkpoint>>,
    failures: Mutex<Vec<String>>,
    /// Whether the chain is good for the time of day.
    pub(crate) goodness: Goodness,
    /// What some connection must come to.
    must_happen: &'static [&'static str],
}

impl Verdict {
    pub(crate) fn new(must_happen: &'static [&'static str]) -> Verdict {
        Verdict {
            must_happen,
            ..Verdict::default()
        }
    }

    /// A client that has all it asked for.
    pub(crate) fn verified(&self, outcome: Outcome, since: Moment) {
        self.ended(&format!("verified: {outcome}"));
        let which = match outcome {
            Outcome::Used => Which::Any,
            _ => Which::Last,
        };
        if self.goodness.between(since, Moment::now(), which) == Was::Bad {
            self.failed(format!(
                "verified ({outcome}) while the chain is not good for the time of day"
            ));
        }
    }

    pub(crate) fn ended(&self, how: &str) {
        *self.ends.lock().unwrap().entry(how.to_owned()).or_default() += 1;
    }

    /// A client that lost something, why, and since when it had tried.
    pub(crate) fn refused(&self, lost: Lost, why: &str, since: Moment) {
        let now = Moment::now();
        let explains = |(what, from, to): &(Lost, Instant, Instant)| {
            *what == lost && since.at < *to && *from < now.at
        };
        let is_explained = match lost {
            Lost::Trust => self.goodness.between(since, now, Which::Last) != Was::Good,
            Lost::Names | Lost::Connections => self.rough.lock().unwrap().iter().any(explains),
        };
        self.ended(&format!("refused: {why}"));
        if !is_explained {
            let last = self.last.lock().unwrap();
            let last = last.as_ref().map_or_else(String::new, |(name, at)| {
                format!(" ({name} began {} s before)", at.elapsed().as_secs())
            });
            self.failed(format!("refused while nothing explains it: {why}{last}"));
        }
    }

    pub(crate) fn fault(&self, name: String) {
        *self.last.lock().unwrap() = Some((name.clone(), Instant::now()));
        *self.faults.lock().unwrap().entry(name).or_default() += 1;
    }

    /// From then on clients may lose that.
    pub(crate) fn is_rough(&self, lost: Lost, since: Instant) {
        self.set_rough(lost, since, Instant::now() + LONGEST);
    }

    /// Not any more.
    pub(crate) fn was_rough(&self, lost: Lost, since: Instant) {
        self.set_rough(lost, since, Instant::now() + AFTERMATH);
    }

    fn set_rough(&self, lost: Lost, since: Instant, until: Instant) {
        let mut rough = self.rough.lock().unwrap();
        rough.retain(|(_, from, to)| *from != since && to.elapsed() < LONGEST);
        rough.push((lost, since, until));
    }

    pub(crate) fn check(&self, checkpoint: Option<Checkpoint>) {
        self.checkpoints.lock().unwrap().extend(checkpoint);
    }

    pub(crate) fn failed(&self, what: String) {
        eprintln!("soak: {what}");
        self.failures.lock().unwrap().push(what);
    }

    /// All that may not be.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap().clone();
        let checkpoints = self.checkpoints.lock().unwrap();
        for last in checkpoints.iter() {
            let mut same = checkpoints.iter().filter(|one| one.process == last.process);
            let Some(first) = same.next() else { continue };
            if last.bytes > first.bytes + MORE_BYTES || last.files > first.files + MORE_FILES {
                failures.push(format!("it grows: {first} and then {last}"));
            }
        }
        let ends = self.ends.lock().unwrap();
        for how in self.must_happen {
            if !ends.keys().any(|end| end.contains(how)) {
                failures.push(format!("no connection was ever \"{how}\""));
            }
        }
        failures
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "connections:")?;
        for (how, count) in self.ends.lock().unwrap().iter() {
            writeln!(f, "{count:>10}  {how}")?;
        }
        writeln!(f, "faults:")?;
        for (name, count) in self.faults.lock().unwrap().iter() {
            writeln!(f, "{count:>10}  {name}")?;
        }
        let checkpoints = self.checkpoints.lock().unwrap();
        for what in ["ad serve", "ad publish"] {
            let of = || checkpoints.iter().filter(|one| one.what == what);
            let (bytes, files) = (|| of().map(|one| one.bytes), || of().map(|one| one.files));
            writeln!(
                f,
                "{what}: {} looks at rest: {} to {} KB of memory, {} to {} descriptors",
                of().count(),
                bytes().min().unwrap_or(0) >> 10,
                bytes().max().unwrap_or(0) >> 10,
                files().min().unwrap_or(0),
                files().max().unwrap_or(0)
            )?;
        }
        drop(checkpoints);
        let failures = self.failures();
        if failures.is_empty() {
            write!(
                f,
                "passed: every connection ended verified or refused, and nothing grows"
            )
        } else {
            write!(f, "failed:\n    {}", failures.join("\n    "))
        }
    }
}

/// What a process has while nothing happens.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    what: &'static str,
    process: u32,
    bytes: u64,
    files: usize,
}

impl Checkpoint {
    /// None if it has just ended.
    pub(crate) fn of(what: &'static str, process: u32) -> Option<Checkpoint> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let mut lines = status.lines();
        let resident = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
        Some(Checkpoint {
            what,
            process,
            bytes: kibibytes << 10,
            files,
        })
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint {
            what,
            process,
            bytes,
            files,
        } = self;
        write!(
            f,
            "{what} ({process}) has {} KB, {files} descriptors",
            bytes >> 10
        )
    }
}
