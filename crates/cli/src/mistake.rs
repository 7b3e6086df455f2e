//! What is told where nothing can be done: command lines that are wrong, in one line with the hint, and empty ones.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use lastbyte::study::Parameter;
use lastbyte_link::visible;

use super::Cli;

/// What `lastbyte` alone tells: where to begin.
pub(super) const BEGIN: &str = "\
lastbyte tells what post-quantum TLS 1.3 costs, from connect() to the last byte. To begin with:

  lastbyte explain SecP256r1MLKEM768/ml-dsa-65     by arithmetic, at once: what is sent, flight by flight
  lastbyte compare --rtt 35ms --data 0KiB,50KiB    measured: a classical chain and a post-quantum one
  lastbyte plan ml-dsa-44                          how many of your users would wait longer, and the remedies

`lastbyte --help` has all commands, and `lastbyte COMMAND --help` their options.
";

/// What other tools call options that are no parameters of cells: curl, wrk, hyperfine, iperf, openssl and ab.
const CALLED_ELSEWHERE: [(&str, Here); 36] = [
    ("--runs", Here::Option("connections")),
    ("--count", Here::Option("connections")),
    ("--samples", Here::Option("connections")),
    ("--iterations", Here::Option("connections")),
    ("--repeat", Here::Option("connections")),
    ("--number", Here::Option("connections")),
    ("-n", Here::Option("connections")),
    ("-r", Here::Option("connections")),
    ("--duration", Here::Option("connections")),
    ("--parallel", Here::Option("concurrency")),
    ("--threads", Here::Option("concurrency")),
    ("-c", Here::Option("concurrency")),
    ("-t", Here::Option("concurrency")),
    ("-P", Here::Option("concurrency")),
    ("--max-time", Here::Option("timeout")),
    ("--connect-timeout", Here::Option("timeout")),
    ("-m", Here::Option("timeout")),
    ("--packet-loss", Here::Option("loss")),
    ("--throughput", Here::Option("rate")),
    ("--limit-rate", Here::Option("rate")),
    ("-b", Here::Option("rate")),
    ("--bytes", Here::Option("data")),
    ("--window", Here::Option("initcwnd")),
    ("--export-json", Here::Written("output", "-o FILE.json")),
    ("--export-csv", Here::Written("output", "-o FILE.csv")),
    (
        "--export-markdown",
        Here::Written("format", "--format markdown"),
    ),
    ("--json", Here::Written("format", "--format json")),
    ("--csv", Here::Written("format", "--format csv")),
    ("--curves", Here::Written("against", ARM)),
    ("--groups", Here::Written("against", ARM)),
    ("-groups", Here::Written("against", ARM)),
    ("--cert", Here::Written("baseline", FILES)),
    ("-cert", Here::Written("baseline", FILES)),
    // What other commands have, and `plan` says in its own words.
    ("--link", Here::Written("users", USERS)),
    ("--mix", Here::Written("users", USERS)),
    ("--loss", Here::Written("users", USERS)),
];
const ARM: &str = "--against GROUP/CHAIN";
const USERS: &str = "--users lte=70,fibre=30, or --rtt FILE with columns rtt_ms, rate and loss";
const FILES: &str = "--baseline GROUP/CHAIN.pem/key=KEY.pem";

/// What stands for it here.
#[derive(Clone, Copy)]
enum Here {
    /// The option of this name.
    Option(&'static str),
    /// The option of this name, written like this.
    Written(&'static str, &'static str),
}

/// A command line that clap refuses, in one line: what is wrong, and what would be right.
pub(super) fn line(error: &clap::Error, arguments: &[OsString]) -> String {
    let command = command_of(arguments);
    let text = error.render().to_string();
    let mut joined = String::new();
    let mut hints = Vec::new();
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("tip: ") {
            _ if line.is_empty() => {}
            // That an option may be meant as a value helps nobody.
            Some(tip) if tip.starts_with("to pass '") => {}
            Some(tip) => hints.push(tip.to_owned()),
            None if line.starts_with("Usage:") => break,
            None if line.starts_with("For more information") => break,
            None => {
                joined.extend((!joined.is_empty()).then_some(' '));
                joined += line.strip_prefix("error: ").unwrap_or(line);
            }
        }
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && let Some(here) = elsewhere(&as_given(unknown, arguments), &command)
    {
        hints = vec![format!("it is {here} here")];
    }
    let says_itself =
        error.kind() == ErrorKind::ValueValidation || joined.contains("[possible values: ");
    if hints.is_empty() && !says_itself {
        hints.push(format!("see `{} --help`", path(arguments)));
    }
    let whole = [vec![joined], hints].concat().join(": ");
    readable(&whole, 60)
}

/// The same line, with words of more than `most` characters without their middle, which nobody reads, and without what
/// acts on a terminal. It stays one line, whatever a file in it is called.
pub(super) fn readable(line: &str, most: usize) -> String {
    let words = line.split(' ').map(|word| cut(&visible(word), most));
    words.collect::<Vec<_>>().join(" ")
}

/// The command that arguments name, and what it takes.
fn command_of(arguments: &[OsString]) -> clap::Command {
    let found = named(arguments).into_iter();
    found.fold(Cli::command(), |command, name| {
        let inner = command.find_subcommand(name).cloned();
        inner.unwrap_or(command)
    })
}

/// The command as it is called: `lastbyte ad serve`.
fn path(arguments: &[OsString]) -> String {
    [vec!["lastbyte"], named(arguments)].concat().join(" ")
}

/// The names of the command and of those within it, as far as they are known.
fn named(arguments: &[OsString]) -> Vec<&str> {
    let mut command = Cli::command();
    let mut names = Vec::new();
    for argument in arguments.iter().skip(1).map_while(|word| word.to_str()) {
        let Some(inner) = command.find_subcommand(argument).cloned() else {
            break;
        };
        names.push(argument);
        command = inner;
    }
    names
}

/// A short option as it was given: `-groups`, of which clap tells `-g`.
fn as_given(unknown: &str, arguments: &[OsString]) -> String {
    let is_short = unknown.len() == 2 && !unknown.starts_with("--");
    let mut given = arguments.iter().filter_map(|argument| argument.to_str());
    let longer = given.find(|given| is_short && given.starts_with(unknown));
    longer.unwrap_or(unknown).to_owned()
}

/// What stands here for an option of another tool, if this command has it.
fn elsewhere(unknown: &str, command: &clap::Command) -> Option<String> {
    let has = |name: &str| {
        let mut all = command.get_arguments();
        all.any(|argument| argument.get_long() == Some(name))
    };
    let name = unknown.trim_start_matches('-').replace('-', "_");
    let parameter = Parameter::called_elsewhere(&name).filter(|_| unknown.starts_with("--"));
    if let Some(parameter) = parameter {
        let option = parameter.name().replace('_', "-");
        return has(&option).then(|| format!("--{option}"));
    }
    let mut all = CALLED_ELSEWHERE.iter();
    let (_, here) = all.find(|(called, _)| *called == unknown)?;
    match *here {
        Here::Option(option) => has(option).then(|| format!("--{option}")),
        Here::Written(option, written) => has(option).then(|| written.to_owned()),
    }
}

fn cut(word: &str, most: usize) -> String {
    const END: usize = 15;
    let letters: Vec<char> = word.chars().collect();
    if letters.len() <= most {
        return word.to_owned();
    }
    let start = letters.iter().take(most.saturating_sub(END + 5));
    let end = letters.iter().skip(letters.len().saturating_sub(END));
    format!("{}…{}", String::from_iter(start), String::from_iter(end))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{CALLED_ELSEWHERE, Cli, Here, cut, line};

    fn joined(words: &[&str]) -> String {
        let error = Cli::try_parse_from(words).unwrap_err();
        let arguments: Vec<_> = words.iter().map(Into::into).collect();
        line(&error, &arguments)
    }

    #[test]
    fn names_of_other_tools_are_of_options_that_there_are() {
        let commands = ["compare", "plan"];
        let commands = commands.map(|name| Cli::command().find_subcommand(name).cloned().unwrap());
        for (called, here) in CALLED_ELSEWHERE {
            let (Here::Option(option) | Here::Written(option, _)) = here;
            let is_of = |command: &clap::Command, name: &str| {
                let mut all = command.get_arguments();
                all.any(|argument| argument.get_long() == Some(name))
            };
            // A hint is given where its option is, and is none where the word itself is one.
            let hinted = commands.iter().filter(|command| is_of(command, option));
            let long = called.strip_prefix("--");
            let helped = hinted.filter(|command| !long.is_some_and(|long| is_of(command, long)));
            assert!(helped.count() > 0, "{called}: {option}");
        }
    }

    #[test]
    fn a_plan_has_its_own_words_for_networks() {
        let line = joined(&["lastbyte", "plan", "ml-dsa-44", "--link", "lte"]);
        assert!(line.ends_with("it is --users lte=70,fibre=30, or --rtt FILE with columns rtt_ms, rate and loss here"), "{line}");
    }

    #[test]
    fn what_is_no_option_of_the_command_is_no_hint() {
        assert!(joined(&["lastbyte", "report", "x", "--runs", "5"]).ends_with("--help`"));
    }

    #[test]
    fn long_words_are_cut_in_the_middle() {
        assert_eq!(cut(&"ä".repeat(60), 60), "ä".repeat(60));
        let long = format!("{}{}", "a".repeat(100), "b".repeat(100));
        let expected = format!("{}…{}", "a".repeat(40), "b".repeat(15));
        assert_eq!(cut(&long, 60), expected);
    }
}
