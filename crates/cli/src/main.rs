//! The `lastbyte` program: its command line.

mod ad;
mod arguments;
mod budgets;
mod calibrate;
mod chain;
mod compare;
mod completions;
mod doctor;
mod draft;
mod engine;
mod explain;
mod explore;
mod help;
mod inside;
mod kernel;
mod load;
mod loads;
mod lose;
mod mistake;
mod mtc;
mod one_of;
mod options;
mod own;
mod plan;
mod probe;
mod progress;
mod published;
mod reduce;
mod report;
mod rtt;
mod run;
mod saved;
mod show;
mod stacks;
mod trace;
mod validate;
mod zeek;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{FromArgMatches, Parser, Subcommand};

use lastbyte::lab::{self, DnsError, LabError, PageError, RunError};
use lastbyte::report::{Colours, Detail, Screen, for_terminal, json_for_terminal};
use lastbyte::results::FolderError;
use lastbyte_link::visible;
use lastbyte_pki::openssl_reason;
use openssl::error::ErrorStack;

/// What the environment says, below all commands.
const ENVIRONMENT: &str = "\
Environment:
  LASTBYTE_CACHE  Where chains, kernels and calibrations are kept
                  [default: $XDG_CACHE_HOME/lastbyte, else ~/.cache/lastbyte]
  LASTBYTE_LINUX  The series of Linux that measures in virtual time: 6.12 or 7.3
                  [default: 6.12, or 7.3 if it is the only one that is built]
  NO_COLOR        Nothing is coloured";

/// Measures what post-quantum TLS 1.3 costs, from connect() to the last byte.
#[derive(Debug, Parser)]
#[command(
    name = "lastbyte",
    version,
    max_term_width = 100,
    after_long_help = ENVIRONMENT
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    fn read(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
        let matches = help::command().try_get_matches_from(arguments)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut help::command()))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What TLS configurations cost on a network, measured now
    Compare(Box<compare::Compare>),
    /// Where each handshake message ends, and how far the next flight is
    Explain(explain::Explain),
    /// A page on which two connections are compared by moving sliders
    Explore(explore::Explore),
    /// What a live site costs its users, seen from outside
    Probe(Box<probe::Probe>),
    /// How many of your users will wait longer, and what wins it back
    Plan(plan::Command),
    /// What each packet of a handshake costs if it is lost
    Lose(Box<lose::Lose>),
    /// What handshakes wait at a server that is busy
    Load(Box<load::Load>),
    /// Every way to send less of a chain: bytes, times, CPU
    Reduce(Box<reduce::Command>),
    /// The first byte by region, with an edge and without
    Rtt(Box<rtt::Rtt>),
    /// Measure what a study asks for, into a folder
    Run(run::Run),
    /// Make one page of what was measured, with figures
    Report(report::Report),
    /// Draw one connection of a capture, and say why it took so long
    Show(show::Show),
    /// Make rate traces of LTE and 5G, and tell what traces carry
    #[command(subcommand)]
    Trace(trace::Command),
    /// Compare two sets of results, sample by sample
    Validate(validate::Validate),
    /// Make, explain and tabulate certificate chains
    #[command(subcommand)]
    Chain(chain::Command),
    /// Certificates through DNS (PQTLS-AD): publish, serve, fetch, check
    ///
    /// It is an experiment. No browser and no curl can use it today, only `lastbyte ad fetch` and programs that use the crate
    /// pqtlsad: to all others, `lastbyte ad serve` is a server of plain TLS 1.3.
    #[command(subcommand)]
    Ad(Box<ad::Command>),
    /// Merkle Tree Certificates: a CA with its log, issue, prove, verify
    #[command(subcommand)]
    Mtc(mtc::Command),
    /// What Zeek saw of your own users: resumption, bytes, durations
    Zeek(zeek::Zeek),
    /// Tell what each TLS stack can do
    Stacks(stacks::Stacks),
    /// Measure what handshakes cost this machine in CPU time
    Calibrate(calibrate::Calibrate),
    /// Build the kernel of the virtual engine, tell about it or remove it
    #[command(subcommand)]
    Kernel(kernel::Command),
    /// Tell what this machine can do, and how to mend what it can't
    Doctor,
    /// Print what has a shell complete commands and options
    Completions(completions::Completions),
    /// Print the manual page of a command, for man
    Man(completions::Manual),
}

/// Why the program ends otherwise than well. Each has an exit code of its own.
#[derive(Debug)]
enum Failure {
    /// A run failed.
    Run(String),
    /// The command line is wrong, or a place that it names can't be written.
    Usage(String),
    /// This machine can't run the engine.
    Machine(String),
    /// A threshold was crossed; it has been said how.
    Threshold,
    /// Interrupted: what is kept.
    Interrupted(String),
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = lab::inner_command(&arguments) {
        return code;
    }
    let cli = match Cli::read(joined(&arguments)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &arguments),
    };
    let result = match cli.command {
        Command::Compare(compare) => compare.run(&arguments),
        Command::Explain(explain) => explain.run(),
        Command::Explore(explore) => explore.run(),
        Command::Probe(probe) => probe.run(),
        Command::Plan(plan) => plan.run(&arguments),
        Command::Lose(lose) => lose.run(&arguments),
        Command::Load(load) => load.run(),
        Command::Reduce(reduce) => reduce.run(&arguments),
        Command::Rtt(rtt) => rtt.run(),
        Command::Run(run) => run.run(&arguments),
        Command::Report(report) => report.run(),
        Command::Show(show) => show.run(),
        Command::Trace(command) => command.run(),
        Command::Validate(validate) => validate.run(),
        Command::Chain(command) => command.run(),
        Command::Ad(command) => command.run(),
        Command::Mtc(command) => command.run(),
        Command::Zeek(zeek) => zeek.run(),
        Command::Stacks(stacks) => stacks.run(),
        Command::Calibrate(calibrate) => calibrate.run(),
        Command::Kernel(command) => command.run(),
        Command::Doctor => doctor::run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(manual) => manual.run(),
    };
    end(result)
}

fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                // Of paths, nearly all are shorter.
                let message = mistake::readable(message, 250);
                let _ = writeln!(io::stderr(), "lastbyte: {message}");
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Tells what was asked for instead of work, or what is wrong with the command line.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        return end(written(printed));
    }
    // Nobody is left to tell when this can't be printed.
    let _ = match arguments.len() {
        ..=1 => write!(io::stderr(), "{}", mistake::BEGIN),
        _ if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.print(),
        _ => writeln!(
            io::stderr(),
            "lastbyte: {}",
            mistake::line(error, arguments)
        ),
    };
    ExitCode::from(error.exit_code() as u8)
}

/// The arguments, with each negative number made the value of the option before it, which says best why it can't be.
fn joined(arguments: &[OsString]) -> Vec<OsString> {
    let is_option = |text: &str| text.starts_with("--") && text.len() > 2 && !text.contains('=');
    let is_negative = |text: &str| {
        let digits = text.strip_prefix('-');
        digits.is_some_and(|digits| digits.starts_with(|first: char| first.is_ascii_digit()))
    };
    let mut joined: Vec<OsString> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let negative = argument.to_str().filter(|text| is_negative(text));
        let option = joined.last().and_then(|last| last.to_str());
        match (option.filter(|text| is_option(text)), negative) {
            (Some(option), Some(negative)) => {
                let both = format!("{option}={negative}");
                joined.pop();
                joined.push(both.into());
            }
            _ => joined.push(argument.clone()),
        }
    }
    joined
}

impl Failure {
    fn exit_code(&self) -> u8 {
        match self {
            Failure::Run(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Machine(_) => 3,
            Failure::Threshold => 99,
            Failure::Interrupted(_) => 130,
        }
    }

    fn message(&self) -> Option<&str> {
        match self {
            Failure::Run(message)
            | Failure::Usage(message)
            | Failure::Machine(message)
            | Failure::Interrupted(message) => Some(message),
            Failure::Threshold => None,
        }
    }

    /// The same, of something that has a name.
    fn of(self, what: &str) -> Self {
        self.map(|message| format!("{what}: {message}"))
    }

    /// The same, and besides.
    fn and(self, besides: &str) -> Self {
        self.map(|message| format!("{message}; {besides}"))
    }

    fn map(self, other: impl FnOnce(String) -> String) -> Self {
        match self {
            Failure::Run(message) => Failure::Run(other(message)),
            Failure::Usage(message) => Failure::Usage(other(message)),
            Failure::Machine(message) => Failure::Machine(other(message)),
            Failure::Threshold | Failure::Interrupted(_) => self,
        }
    }

    fn usage(error: impl fmt::Display) -> Self {
        Failure::Usage(error.to_string())
    }

    fn machine(error: impl fmt::Display) -> Self {
        Failure::Machine(error.to_string())
    }

    fn run(error: impl fmt::Display) -> Self {
        Failure::Run(error.to_string())
    }
}

impl From<ErrorStack> for Failure {
    fn from(error: ErrorStack) -> Self {
        Failure::Run(format!("OpenSSL: {}", openssl_reason(&error)))
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let message = error.to_string();
        match error {
            LabError::Namespace(_)
            | LabError::Tun(_)
            | LabError::Configure(_)
            | LabError::Dns(DnsError::NotInstalled(_) | DnsError::NoNetem(_)) => {
                Failure::Machine(message)
            }
            LabError::Page(error) => match error.itself() {
                PageError::NoBrowser(_)
                | PageError::NotInstalled { .. }
                | PageError::TooOld { .. }
                | PageError::Never { .. }
                | PageError::Memory { .. } => Failure::Machine(message),
                PageError::Names { .. } | PageError::Page(_) | PageError::Root(_) => {
                    Failure::Usage(message)
                }
                _ => Failure::Run(message),
            },
            LabError::Arm { .. } | LabError::Chain(_) | LabError::Netem(_) => {
                Failure::Usage(message)
            }
            LabError::Stack(_)
            | LabError::Socket(_)
            | LabError::Dropped(_)
            | LabError::Crashed(_)
            | LabError::Dns(_)
            | LabError::Emulator(_) => Failure::Run(message),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Lab(error) => error.into(),
            RunError::Folder(error) => error.into(),
            RunError::Scratch(_) => Failure::usage(error),
            RunError::Block(_) => Failure::run(error),
        }
    }
}

impl From<FolderError> for Failure {
    /// Results are a place that a user names, whether it can't be read or written, or holds something else: as a single file.
    fn from(error: FolderError) -> Self {
        Failure::usage(error)
    }
}

/// What standard output is: in colours and as wide as it is on a terminal, unless `NO_COLOR` is set.
fn screen() -> Screen {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let terminal = console::Term::stdout();
    if !terminal.is_term() {
        return Screen::PLAIN;
    }
    Screen {
        colours: if plain { Colours::None } else { Colours::Ansi },
        columns: match terminal.size_checked() {
            Some((_, columns)) => usize::from(columns).min(Screen::PLAIN.columns),
            None => Screen::PLAIN.columns,
        },
    }
}

/// How much of results is told.
fn detail(verbose: bool) -> Detail {
    if verbose {
        Detail::Everything
    } else {
        Detail::Answer
    }
}

/// A file or folder as it stands in what is printed: in one line, whatever it is called.
fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

/// Prints results for people: what strangers have named acts on no terminal.
fn print(text: &str) -> Result<(), Failure> {
    print_document(&for_terminal(text))
}

/// Tells something beside the results.
fn tell(line: impl fmt::Display) {
    // At once: another process may write to the same place.
    // One line, whatever a file in it is called.
    let line = for_terminal(&line.to_string()).replace('\n', &visible("\n"));
    let line = format!("lastbyte: {line}\n");
    // Nobody is left to tell when this can't be printed.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints a document in JSON, which reads as what it is.
fn print_json(json: &str) -> Result<(), Failure> {
    print_document(&json_for_terminal(json))
}

/// Prints results for programs, as they are.
fn print_document(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What came of printing. A reader that has gone away is no failure of ours.
fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Usage(format!("can't write the results: {error}")))
        }
        _ => Ok(()),
    }
}
