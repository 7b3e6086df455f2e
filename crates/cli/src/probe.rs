//! `lastbyte probe`.

mod connection;
mod finding;
mod fleet;
mod measure;
mod quic;
mod session;
mod stream;
mod target;
mod tcp_info;
mod what_if;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lastbyte::explain::site;
use lastbyte::report::site as report;
use lastbyte_link::{counted, parse_duration, visible};
use lastbyte_probe::Document;
use openssl::x509::X509;

use self::finding::{Detail, Manners};
use self::quic::WithQuic;
use self::target::Target;
use super::budgets::{self, Budgets};
use super::draft::Draft;
use super::{Failure, print, tell};
use lastbyte::results::Facts;
use lastbyte::study::NamedNetwork;

/// Finds out from outside what a live site costs its users and how near it is to its next edge: round-trip time, the
/// server's initial window, chain, group, times; and what other chains would change.
///
/// It is polite: a handful of connections, one after the other, 10 s at most, and no root.
#[derive(Debug, Args)]
pub(super) struct Probe {
    /// What to probe: HOST, HOST:PORT or https://HOST[:PORT][/PATH]
    #[arg(value_name = "HOST|URL", required_unless_present_any = ["from", "fleet"])]
    target: Option<Target>,
    /// Take what an earlier probe wrote with --format json, and connect to nobody
    #[arg(long, value_name = "FILE.json", conflicts_with = "target")]
    from: Option<PathBuf>,
    /// Connections over TCP at most
    #[arg(long, value_name = "N", default_value = "6", value_parser = clap::value_parser!(u8).range(1..=6))]
    connections: u8,
    /// Connections that are begun in a second, at most
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
    max_rate: u16,
    /// How long it may take in all
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = timeout)]
    timeout: Duration,
    /// When to make one more, over QUIC: where the server's Alt-Svc has HTTP/3 at its own host (alt-svc), at the same port in
    /// any case (always), or never
    #[arg(long, value_name = "WHEN", default_value = "alt-svc")]
    quic: WithQuic,
    /// Whom to trust, as PEM [default: the roots of this machine]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// How it is told: table, json, or line, which is one for monitoring
    #[arg(long, value_name = "NAME", default_value = "table")]
    format: Format,
    /// Tell besides what each connection showed of the window
    #[arg(short, long)]
    verbose: bool,
    /// Write metrics for Prometheus' node exporter (its textfile collector), at once and whole
    #[arg(long, value_name = "FILE.prom")]
    textfile: Option<PathBuf>,
    #[command(flatten, next_help_heading = "What if")]
    what_if: what_if::WhatIf,
    #[command(flatten, next_help_heading = "Results")]
    budgets: Budgets,
    #[command(flatten, next_help_heading = "Many sites")]
    fleet: fleet::Fleet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Line,
}

/// The longest file of roots that is read, in bytes: ten times what a machine has.
const MOST_ROOTS: u64 = 4 << 20;
/// The longest document that is read, in bytes.
const MOST_DOCUMENT: u64 = 4 << 20;

impl Probe {
    pub(super) fn run(mut self) -> Result<(), Failure> {
        self.what_if.check()?;
        self.fleet.check()?;
        self.check()?;
        let judge = self.budgets.begin(budgets::Subject::Chains)?;
        if let Some(file) = &self.fleet.fleet {
            let (known, failure) = self.fleet.run(file, self.ca.as_ref(), self.manners())?;
            // Of sites that could not be probed nothing is known, which is worse than any budget.
            return judge
                .judge("lastbyte probe", &known)
                .and(failure.map_or(Ok(()), Err));
        }
        let textfile = self.textfile.clone();
        let mut textfile = textfile.as_deref().map(Draft::new).transpose()?;
        let document = match (&self.from, self.target.take()) {
            (Some(file), _) => read(file)?,
            (None, Some(mut target)) => {
                target.ca = self.ca.clone();
                let found = self.probe(&target);
                if found.is_err()
                    && let Some(draft) = textfile.take()
                {
                    let failed = report::failed(&target.host.to_string());
                    draft.write(|out| out.write_all(failed.as_bytes()))?;
                }
                found?
            }
            (None, None) => return Err(Failure::Usage("name a HOST to probe".to_owned())),
        };
        // Before anything is told: what can't be is refused alone.
        let mut notes = Vec::new();
        let chains = self.what_if.chains(&document, &mut notes)?;
        let answer = self.what_if.answer(&document, &chains);
        for note in notes.into_iter().chain(self.what_if.traffic_note()) {
            tell(format_args!("{note}"));
        }
        print(&match self.format {
            Format::Table => answer.lead() + &report::table(&document) + &answer.table(),
            Format::Json => answer.json(),
            Format::Line => report::line(&document),
        })?;
        if let Some(draft) = textfile {
            draft.write(|out| out.write_all(report::metrics(&document).as_bytes()))?;
        }
        match self.what_if.measured_over() {
            Some(networks) => measure::measure(&answer, networks),
            None => Ok(()),
        }?;
        judge.judge("lastbyte probe", &[facts(&document)])
    }

    /// Before anything is sent.
    fn check(&self) -> Result<(), Failure> {
        let is_what_if = self.what_if.is_given();
        match self.format {
            Format::Line if is_what_if => Err(Failure::Usage(
                "--format line has no what-if: write --format json".to_owned(),
            )),
            Format::Json | Format::Line if self.what_if.measured_over().is_some() => {
                Err(Failure::Usage(
                    "--measure prints tables: leave --format out, or have its command print JSON"
                        .to_owned(),
                ))
            }
            _ => Ok(()),
        }?;
        let Some(file) = &self.ca else {
            return Ok(());
        };
        let wrong = |problem: String| Failure::Usage(format!("--ca {file:?}: {problem}"));
        let pem =
            lastbyte_files::read(file, MOST_ROOTS).map_err(|error| wrong(error.to_string()))?;
        match X509::stack_from_pem(&pem) {
            Ok(roots) if !roots.is_empty() => Ok(()),
            _ => Err(wrong("it has no certificate in PEM".to_owned())),
        }
    }

    fn manners(&self) -> Manners {
        Manners {
            connections: usize::from(self.connections),
            interval: Duration::from_secs(1) / u32::from(self.max_rate),
            timeout: self.timeout,
            quic: self.quic,
            detail: if self.verbose {
                Detail::Connections
            } else {
                Detail::Nothing
            },
        }
    }

    fn probe(&self, target: &Target) -> Result<Document, Failure> {
        let manners = self.manners();
        let besides = match self.quic {
            WithQuic::AltSvc => " and one over QUIC if it names that",
            WithQuic::Always => " and one over QUIC",
            WithQuic::Never => "",
        };
        tell(format_args!(
            "{}: at most {}{besides}, one after the other, {} in a second, {} s in all; GET {}",
            target.host,
            counted(manners.connections, "connection"),
            self.max_rate,
            self.timeout.as_secs_f64(),
            target.path
        ));
        finding::probe(target, manners).map_err(Failure::Run)
    }
}

/// What is known of the chain that the site has.
fn facts(document: &Document) -> Facts {
    let of_today = site::of_today(document);
    let needs = of_today.map(|edge| {
        budgets::needs(
            edge.flights,
            edge.left,
            edge.certificate_bytes,
            edge.server_flight_wire_bytes,
        )
    });
    Facts {
        of: visible(&document.host),
        place: String::new(),
        needs: needs.unwrap_or_default(),
    }
}

/// What an earlier probe wrote.
fn read(file: &std::path::Path) -> Result<Document, Failure> {
    let wrong = |problem: String| Failure::Usage(format!("{file:?}: {problem}"));
    let text =
        lastbyte_files::read_text(file, MOST_DOCUMENT).map_err(|error| wrong(error.to_string()))?;
    Document::read(&text).map_err(|error| wrong(error.to_string()))
}

fn timeout(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&time) {
        Ok(time)
    } else {
        Err("take from 100ms to 60s".to_owned())
    }
}

/// A network by name.
fn network(name: &str) -> Result<&'static NamedNetwork, String> {
    NamedNetwork::find(name).map_err(|error| error.to_string())
}
