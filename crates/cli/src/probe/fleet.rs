//! Probes many sites, a few at once.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::Args;
use lastbyte::explain::site::of_today;
use lastbyte::report::site as report;
use lastbyte::results::Facts;
use lastbyte_link::{counted, visible};
use lastbyte_probe::Document;
use serde::{Deserialize, Serialize};

use super::finding::{Manners, probe};
use super::target::Target;
use crate::compare::interrupt;
use crate::{Failure, print, tell};

/// Many sites.
#[derive(Debug, Args)]
pub(super) struct Fleet {
    /// Probe the sites of a file, one a line, as HOST, HOST:PORT or a URL; # begins a comment
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "from", "textfile", "what_if", "what_if_pem", "format"], requires = "results")]
    pub(super) fleet: Option<PathBuf>,
    /// Where what is found is kept, a line of JSON for each site; those that are in it are not probed again
    #[arg(long, value_name = "FILE.jsonl", requires = "fleet")]
    results: Option<PathBuf>,
    /// Sites at once, each with one connection at a time
    #[arg(long, value_name = "N", default_value = "4", requires = "fleet", value_parser = clap::value_parser!(u8).range(1..=64))]
    at_once: u8,
}

/// A line of the results.
#[derive(Debug, Serialize)]
struct Line {
    /// As it was asked for.
    asked: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Box<Document>>,
    /// Why there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

impl Line {
    fn new(asked: &str, probed: Result<Document, String>) -> Line {
        let (found, failed) = match probed {
            Ok(document) => (Some(Box::new(document)), None),
            Err(problem) => (None, Some(problem)),
        };
        Line {
            asked: asked.to_owned(),
            found,
            failed,
        }
    }

    /// Reads one, whoever wrote it.
    fn read(bytes: &[u8]) -> Result<Line, String> {
        /// As it stands there, whatever it is.
        #[derive(Deserialize)]
        struct Raw {
            asked: String,
            #[serde(default)]
            found: Option<serde_json::Value>,
            #[serde(default)]
            failed: Option<String>,
        }
        if bytes.len() > Document::MOST_BYTES {
            return Err(format!("it has {} bytes, more than any has", bytes.len()));
        }
        let raw: Raw = serde_json::from_slice(bytes)
            .map_err(|error| format!("no line of a fleet's results ({error})"))?;
        let found = raw.found.map(Document::of).transpose();
        Ok(Line {
            asked: raw.asked,
            found: found.map_err(|error| error.to_string())?.map(Box::new),
            failed: raw.failed,
        })
    }
}

/// Whether it can be what is left of a line that was being written.
fn is_begun(line: &[u8]) -> bool {
    const BEGINS: &[u8] = b"{\"asked\":\"";
    BEGINS.iter().zip(line).all(|(one, other)| one == other)
}

/// Lines of a file that are told to be wrong.
const MOST_LINES: usize = 20;
/// More than any file of sites has, in bytes.
const MOST_SITES: u64 = 32 << 20;
/// More than any file of results has, in bytes.
const MOST: u64 = 1 << 30;

impl Fleet {
    /// What is of many sites is of a fleet.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match (&self.fleet, &self.results) {
            (None, Some(_)) => Err(Failure::Usage(
                "--results keeps what is found of many sites: name them with --fleet hosts.txt, or write --format json > site.json"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// What is known of the sites, for budgets, and how many could not be probed.
    pub(super) fn run(
        &self,
        file: &Path,
        ca: Option<&PathBuf>,
        manners: Manners,
    ) -> Result<(Vec<Facts>, Option<Failure>), Failure> {
        let sites = sites(file, ca)?;
        let Some(results) = &self.results else {
            return Err(Failure::Usage(
                "name a file for what is found with --results".to_owned(),
            ));
        };
        let (kept, mut lines) = ResultsFile::open(results)?;
        lines.retain(|_, line| line.found.is_some());
        let left: Vec<_> = sites
            .iter()
            .filter(|(asked, _)| !lines.contains_key(asked))
            .collect();
        tell(format_args!(
            "{}, of which {} to probe: {} at once, each with at most {}, one after the other",
            counted(sites.len(), "site"),
            left.len(),
            self.at_once,
            counted(manners.connections, "connection"),
        ));
        let interrupted = interrupt().map_err(Failure::run)?;
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let found = Mutex::new(lines);
        let kept = Mutex::new(kept);
        thread::scope(|scope| {
            for _ in 0..self.at_once {
                scope.spawn(|| {
                    while !interrupted.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some((asked, target)) = left.get(number) else {
                            break;
                        };
                        let line = Line::new(asked, probe(target, manners));
                        let kept = kept
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .add(&line);
                        failed.fetch_or(kept.is_err(), Ordering::Relaxed);
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.insert(line.asked.clone(), line);
                    }
                });
            }
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        print(&table(&sites, &found))?;
        if failed.into_inner() {
            return Err(Failure::Usage(format!(
                "can't write {results:?}: what is in it is whole"
            )));
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted(format!(
                "interrupted; {} of {} are probed, and kept in {results:?}",
                found.len(),
                counted(sites.len(), "site")
            )));
        }
        let documents = sites
            .iter()
            .filter_map(|(asked, _)| found.get(asked)?.found.as_deref());
        let without = found.values().filter(|line| line.found.is_none()).count();
        let failure = (without > 0).then(|| {
            Failure::Run(format!(
                "{} could not be probed; ask again, and only those are",
                counted(without, "site")
            ))
        });
        Ok((documents.map(super::facts).collect(), failure))
    }
}

/// The sites of a file, each once, in its order.
fn sites(file: &Path, ca: Option<&PathBuf>) -> Result<Vec<(String, Target)>, Failure> {
    let text = lastbyte_files::read_text(file, MOST_SITES)
        .map_err(|error| Failure::Usage(format!("{file:?}: {error}")))?;
    let mut sites: Vec<(String, Target)> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    let mut all_wrong = 0_usize;
    let mut known = std::collections::BTreeSet::new();
    let mut spelled = std::collections::BTreeSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        let asked = line.split('#').next().unwrap_or_default().trim();
        if asked.is_empty() || !known.insert(asked) {
            continue;
        }
        match asked.parse::<Target>() {
            // In another spelling, the same site.
            Ok(target) if !spelled.insert((target.host.to_string(), target.path.clone())) => {}
            Ok(mut target) => {
                target.ca = ca.cloned();
                sites.push((asked.to_owned(), target));
            }
            Err(problem) => {
                all_wrong += 1;
                if wrong.len() < MOST_LINES {
                    wrong.push(format!("line {number}: {}", visible(&problem)));
                }
            }
        }
    }
    // All of them, before anybody is asked: a file that was made wrong is mended once.
    if !wrong.is_empty() {
        let more = match all_wrong - wrong.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        return Err(Failure::Usage(format!(
            "{file:?}, {}{more}",
            wrong.join("; ")
        )));
    }
    if sites.is_empty() {
        Err(Failure::Usage(format!(
            "{file:?} names no site: write one a line"
        )))
    } else {
        Ok(sites)
    }
}

/// The file of results: whole lines only.
struct ResultsFile(File);

impl ResultsFile {
    /// With what is in it.
    fn open(path: &Path) -> Result<(ResultsFile, BTreeMap<String, Line>), Failure> {
        let wrong = |error: io::Error| Failure::Usage(format!("can't write {path:?}: {error}"));
        if path.exists() && !path.is_file() {
            return Err(Failure::Usage(format!(
                "can't write {path:?}: it is no file"
            )));
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(wrong)?;
        file.try_lock().map_err(|_| {
            Failure::Usage(format!(
                "{path:?} is being written by another probe: wait, or name another file"
            ))
        })?;
        if file.metadata().map_err(wrong)?.len() >= MOST {
            return Err(Failure::Usage(format!(
                "{path:?} is larger than any fleet's results: name another file"
            )));
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut file)
            .take(MOST)
            .read_to_end(&mut bytes)
            .map_err(wrong)?;
        let mut lines = BTreeMap::new();
        let mut whole = 0;
        for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            // A line that was cut short is probed again.
            if !line.ends_with(b"\n") && is_begun(line) {
                break;
            }
            let read = Line::read(line).map_err(|problem| {
                Failure::Usage(format!(
                    "{path:?}, line {number}: {problem}: take the line out, and its site is probed again, or name another file"
                ))
            })?;
            whole += line.len();
            lines.insert(read.asked.clone(), read);
        }
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(wrong)?;
            file.seek(io::SeekFrom::End(0)).map_err(wrong)?;
        }
        Ok((ResultsFile(file), lines))
    }

    fn add(&mut self, line: &Line) -> io::Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        self.0.write_all(text.as_bytes())?;
        self.0.sync_data()
    }
}

/// Who is how near to which edge, the nearest first.
fn table(sites: &[(String, Target)], found: &BTreeMap<String, Line>) -> String {
    let mut lines: Vec<&Line> = sites
        .iter()
        .filter_map(|(asked, _)| found.get(asked))
        .collect();
    let left = |line: &Line| {
        let document = line.found.as_ref();
        document.map_or(usize::MAX, |document| {
            of_today(document)
                .and_then(|edge| edge.left)
                .unwrap_or(usize::MAX - 1)
        })
    };
    lines.sort_by_key(|line| left(line));
    let names = lines.iter().map(|line| visible(&line.asked));
    let width = names.map(|name| name.chars().count()).fold(32, usize::max);
    let mut text = format!(
        "{:<width$} {:>9} {:>7} {:>11} {:>7} {:>7}  {:<19} {:<8} {}\n",
        "site",
        "RTT",
        "window",
        "Certificate",
        "flights",
        "left",
        "group",
        "trusted",
        "with ml-dsa-44, -65, -87"
    );
    for line in lines {
        let site = visible(&line.asked);
        let Some(document) = &line.found else {
            let why = line.failed.as_deref().unwrap_or("nothing was found");
            text += &format!("{site:<width$} {}\n", visible(why));
            continue;
        };
        let today = of_today(document);
        let window = document
            .window
            .as_ref()
            .map_or_else(|| "-".to_owned(), |window| window.to_text());
        let number =
            |number: Option<usize>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let others = document.edges.iter().skip(1).map(|edge| {
            let more = edge
                .flights
                .saturating_sub(document.edges.first().map_or(0, |first| first.flights));
            match more {
                0 => "same".to_owned(),
                more => format!("+{more}"),
            }
        });
        text += &format!(
            "{site:<width$} {:>9} {window:>7} {:>11} {:>7} {:>7}  {:<19} {:<8} {}\n",
            document
                .rtt_ms
                .map_or_else(|| "-".to_owned(), |rtt| format!("{rtt:.1} ms")),
            number(today.map(|edge| edge.certificate_bytes)),
            number(today.map(|edge| edge.flights)),
            number(today.and_then(|edge| edge.left)),
            visible(document.group.as_deref().unwrap_or("-")),
            report::trusted(document),
            others.collect::<Vec<_>>().join(", ")
        );
    }
    text += "left: bytes before the handshake takes a flight more, at most; with other chains: flights more. By arithmetic.\n\
             -: not known, or the site has no TLS 1.3.\n";
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_read_line_by_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "# all\nexample.com  # the first\n\nexample.com\nExample.COM.\nhttps://example.com:443/\n[::1]:8443\n",
        )
        .unwrap();
        let sites = sites(file.path(), None).unwrap();
        let hosts: Vec<String> = sites
            .iter()
            .map(|(_, target)| target.host.to_string())
            .collect();
        assert_eq!(hosts, ["example.com:443", "[::1]:8443"]);
        // With a byte order mark, and two lines that are none.
        std::fs::write(
            file.path(),
            "\u{feff}example.com\nhttp://example.com\nexample.com:0\n",
        )
        .unwrap();
        let refused = super::sites(file.path(), None);
        let Err(Failure::Usage(line)) = refused else {
            panic!("two lines are no sites");
        };
        let wrong = [
            "line 2: \"http://example.com\"",
            "; line 3: \"example.com:0\"",
        ];
        assert!(wrong.iter().all(|wrong| line.contains(wrong)), "{line}");
        assert!(!line.contains("line 1:"), "{line}");
    }
}
