//! What documents show of the program is what it prints.
//!
//! Blocks of `console` have commands after `$`, and below each what it prints, from the first line on; `...` stands for
//! whatever lines are there. All of a document run in one folder, from the top. The virtual engine's kernel must be built.
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::repository::{blocks, root};
use crate::common::{Ended, run};
use tempfile::TempDir;

/// A command, and the lines that stand below it.
struct Shown {
    command: String,
    lines: Vec<String>,
}

fn shown(document: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for block in blocks(document) {
        if block.language != "console" {
            assert!(!block.text.starts_with("$ "), "no console: {}", block.text);
            continue;
        }
        for line in block.text.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => all.push(Shown {
                    command: command.to_owned(),
                    lines: Vec::new(),
                }),
                None => all.last_mut().unwrap().lines.push(line.to_owned()),
            }
        }
    }
    all
}

/// The command, as a shell runs it that finds this program, with the user's own cache, which has the kernel.
fn type_in(command: &str, folder: &Path) -> Ended {
    let program = Path::new(env!("CARGO_BIN_EXE_lastbyte"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-euc", command]).current_dir(folder);
    run(shell.env("PATH", path))
}

/// Whether lines are as they are shown.
fn are(printed: &[String], shown: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, after)) if line == "..." => {
            (0..=printed.len()).any(|skipped| are(&printed[skipped..], after))
        }
        Some((line, after)) => printed.first() == Some(line) && are(&printed[1..], after),
    }
}

/// Text without what another machine, or another minute, has otherwise: times that have computing in them, and shares of
/// them, each alone or from one to another, and how the last byte differs, which is by computing alone. Whole numbers stay:
/// bytes, segments, connections, windows.
fn without_times(lines: &[String]) -> String {
    let text = lines.join(" ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_share = |place: usize| {
        let next = words.get(place + 1);
        next.is_some_and(|next| next.starts_with('%'))
    };
    let of_word = |(place, word): (usize, &&str)| {
        let number = word.trim_matches(|c: char| !c.is_ascii_digit());
        let is_time = number.parse::<f64>().is_ok() && (number.contains('.') || is_share(place));
        if is_time {
            word.replace(number, "#")
        } else {
            (*word).to_owned()
        }
    };
    let words: Vec<String> = words.iter().enumerate().map(of_word).collect();
    let text = words
        .join(" ")
        .replace("# ms to # ms", "# ms")
        .replace("# to #", "#");
    let (before, after) = text.split_once("the last byte comes ").unwrap();
    let (_, after) = after.split_once(" later").unwrap();
    format!("{before}the last byte comes later{after}")
}

/// The times of the table, in milliseconds.
fn times(lines: &[String]) -> Vec<f64> {
    let of_line = |line: &String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let pairs = words.windows(2).filter(|pair| pair[1] == "ms");
        let times = pairs.filter_map(|pair| pair[0].parse().ok());
        times.collect::<Vec<f64>>()
    };
    let rows = lines.iter().filter(|line| line.starts_with("  "));
    rows.flat_map(of_line).collect()
}

#[track_caller]
fn is_printed(shown: &Shown, ended: &Ended) {
    let command = &shown.command;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    // What a program refuses is shown, too.
    let is_refused = shown
        .lines
        .iter()
        .any(|line| line.starts_with("lastbyte: "));
    assert_eq!(
        ended.code,
        Some(i32::from(is_refused)),
        "{command}: {ended:?}"
    );
    let printed = lines(if is_refused {
        &ended.stderr
    } else {
        &ended.stdout
    });
    if !command.starts_with("lastbyte compare") {
        assert!(
            are(&printed, &shown.lines),
            "{command}: {}",
            printed.join("\n")
        );
        return;
    }
    let (end, head) = shown.lines.split_last().unwrap();
    assert_eq!(end, "...");
    let last = printed.iter().rposition(|line| Some(line) == head.last());
    let printed = &printed[..=last.unwrap_or_else(|| panic!("{}", printed.join("\n")))];
    assert_eq!(without_times(printed), without_times(head));
    let (here, there) = (times(printed), times(head));
    assert_eq!((here.len(), there.len()), (8, 8));
    // Round trips are most of a long time, on whatever machine.
    for (here, there) in here.iter().zip(&there).filter(|(_, there)| **there > 30.0) {
        assert!(
            (here / there - 1.0).abs() < 0.1,
            "{here} ms are shown as {there} ms"
        );
    }
}

#[track_caller]
fn is_as_shown(document: &str, folder: &Path) -> usize {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let all = shown(&text);
    for shown in &all {
        is_printed(shown, &type_in(&shown.command, folder));
    }
    all.len()
}

#[test]
fn documents_show_what_is_printed() {
    let mut commands = 0;
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let folder = TempDir::new().unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            commands += is_as_shown(&format!("docs/{name}"), folder.path());
        }
    }
    assert!(commands >= 7, "{commands}");
}

#[test]
fn the_readme_shows_what_is_printed() {
    let folder = TempDir::new().unwrap();
    let kernel = type_in("lastbyte kernel status", folder.path());
    let hint = "its sample is of virtual time: run `lastbyte kernel build`";
    assert_eq!(kernel.code, Some(0), "{hint}");
    assert_eq!(is_as_shown("README.md", folder.path()), 2);
}

/// Those that need no network, no root and no site, where a chain is.
#[test]
fn commands_of_the_readme_run() {
    let folder = TempDir::new().unwrap();
    let made = type_in("lastbyte chain new ecdsa-p256 -o made", folder.path());
    assert_eq!(made.code, Some(0), "{made:?}");
    let chain = folder.path().join("made/chain.pem");
    fs::copy(chain, folder.path().join("fullchain.pem")).unwrap();
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let of_shells = blocks(&text).into_iter();
    let lines: Vec<String> = of_shells
        .filter(|block| block.language == "sh")
        .flat_map(|block| block.text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.starts_with("lastbyte "))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        // Measuring a plan takes a minute; where no kernel is, arithmetic answers.
        let line = if line.starts_with("lastbyte plan ") {
            format!("LASTBYTE_CACHE=empty {line}")
        } else {
            line
        };
        let ended = type_in(&line, folder.path());
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        assert!(ended.stdout.len() > 500, "{line}: {ended:?}");
    }
}
