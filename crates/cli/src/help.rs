//! What is shown of the command line: all commands in four groups, and with `-h` the options that most readers ask for, with
//! examples. `--help` has all of them.

use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// Each command is in one of these.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Ask what it costs, and what wins it back",
        &[
            "compare", "explain", "plan", "reduce", "lose", "load", "probe", "explore", "rtt",
            "zeek",
        ],
    ),
    (
        "Measure a study",
        &["run", "report", "show", "trace", "validate"],
    ),
    ("Make and serve certificates", &["chain", "ad", "mtc"]),
    (
        "This machine",
        &[
            "doctor",
            "kernel",
            "calibrate",
            "stacks",
            "completions",
            "man",
        ],
    ),
];

/// Of a command, what `-h` shows: these options, by what they are called inside, and examples.
struct Short {
    command: &'static str,
    options: &'static [&'static str],
    examples: &'static [&'static str],
}

const SHORT: [Short; 9] = [
    Short {
        command: "compare",
        options: &[
            "arms",
            "link",
            "rtt",
            "rate",
            "loss",
            "initcwnd",
            "data",
            "page",
            "connections",
            "capture",
            "output",
            "report",
            "save",
            "compare_to",
            "fail_if",
            "verbose",
        ],
        examples: &[
            "lastbyte compare ml-dsa-44 ml-dsa-65 --rtt 35ms,200ms --data 20KiB",
            "lastbyte compare now=x25519/ecdsa-p256 next=X25519MLKEM768/ml-dsa-44 --link lte --report lte.html",
            "lastbyte compare --page shop.har --link lte",
        ],
    },
    Short {
        command: "explain",
        options: &[
            "arms", "link", "rtt", "rate", "initcwnd", "data", "format", "svg",
        ],
        examples: &[
            "lastbyte explain ml-dsa-44",
            "lastbyte explain x25519/ecdsa-p256 X25519MLKEM768/ml-dsa-65 --initcwnd 10,20",
            "lastbyte explain example.com:443",
        ],
    },
    Short {
        command: "plan",
        options: &[],
        examples: &[
            "lastbyte plan ml-dsa-44",
            "lastbyte plan fullchain.pem --rtt users.csv -o plan.html",
        ],
    },
    Short {
        command: "reduce",
        options: &[],
        examples: &["lastbyte reduce ml-dsa-44 --rtt 35ms --data 20KiB"],
    },
    Short {
        command: "lose",
        options: &[],
        examples: &["lastbyte lose ml-dsa-65 ml-dsa-65/transport=quic --rtt 100ms"],
    },
    Short {
        command: "load",
        options: &[],
        examples: &[
            "lastbyte load x25519/ecdsa-p256 X25519MLKEM768/ml-dsa-65 --cores 8",
            "lastbyte load ml-dsa-44 ml-dsa-65 --cores 8 --storm 10000 --within 5s",
        ],
    },
    Short {
        command: "probe",
        options: &[],
        examples: &[
            "lastbyte probe example.com",
            "lastbyte probe example.com --what-if ml-dsa-44",
        ],
    },
    Short {
        command: "run",
        options: &[],
        examples: &[
            "lastbyte run study.toml -o results",
            "lastbyte report results -o study.html",
        ],
    },
    Short {
        command: "show",
        options: &[],
        examples: &[
            "lastbyte show captures",
            "lastbyte show captures/FILE.pcapng 3 --svg connection.svg",
        ],
    },
];

/// The command line, as it is read and shown.
pub(super) fn command() -> Command {
    let command = Cli::command();
    let list = grouped(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    );
    let command = command.help_template(template);
    SHORT.iter().fold(command, |command, short| {
        command.mut_subcommand(short.command, |command| shortened(command, short))
    })
}

/// The commands, each with a line.
fn grouped(command: &Command) -> String {
    let mut list = String::new();
    for (title, names) in GROUPS {
        list += &format!("{title}:\n");
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(Command::get_about)
                .map_or_else(String::new, ToString::to_string);
            list += &format!("  {name:<11}  {about}\n");
        }
        list.push('\n');
    }
    list
}

fn shortened(command: Command, short: &Short) -> Command {
    let examples = short.examples.join("\n  ");
    let command = command.after_help(format!("Examples:\n  {examples}"));
    if short.options.is_empty() {
        return command;
    }
    command.mut_args(|argument| {
        if short.options.contains(&argument.get_id().as_str()) {
            brief(argument)
        } else {
            argument.hide_short_help(true)
        }
    })
}

/// With `-h`, the beginning of what there is to say of an option, and what holds without it.
fn brief(argument: Arg) -> Arg {
    let Some(full) = argument.get_help().map(ToString::to_string) else {
        return argument;
    };
    let ends = [". ", "; ", ": ", ", ", " ("];
    let end = ends.iter().filter_map(|end| full.find(end)).min();
    let mut brief = full[..end.unwrap_or(full.len())].to_owned();
    if let Some(usual) = full.find(" [default").filter(|at| *at >= brief.len()) {
        brief += &full[usual..];
    }
    argument.help(brief).long_help(full)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let there = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut there: Vec<&str> = there.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        there.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(there, grouped);
    }

    #[test]
    fn what_is_shown_first_is_a_screen() {
        let command = command();
        let screens = [None, Some("compare"), Some("explain")];
        for name in screens {
            let mut shown = match name {
                Some(name) => command.find_subcommand(name).unwrap().clone(),
                None => command.clone(),
            };
            let help = shown.render_help().to_string();
            assert!(help.lines().count() <= 40, "{help}");
            assert!(help.lines().all(|line| line.len() <= 100), "{help}");
        }
    }

    #[test]
    fn what_is_shown_first_is_there() {
        let command = command();
        for short in &SHORT {
            let shown = command.find_subcommand(short.command).unwrap();
            for option in short.options {
                let ids = shown
                    .get_arguments()
                    .map(|argument| argument.get_id().as_str());
                assert!(ids.into_iter().any(|id| id == *option), "{option}");
            }
            for example in short.examples {
                let words = example.split(' ').map(str::to_owned);
                let read = super::command().try_get_matches_from(words);
                // Files of examples are nobody's.
                let problem = read.err().map(|error| error.to_string());
                let is_missing = |text: &String| text.contains("can't read");
                assert!(problem.as_ref().is_none_or(is_missing), "{problem:?}");
            }
        }
    }
}
