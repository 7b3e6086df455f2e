//! What shells and man are told of the command line.
use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::common::{at, lastbyte, run};

/// As `lastbyte --help` lists them.
fn commands() -> Vec<String> {
    let help = run(&mut lastbyte(["--help"])).stdout;
    let (_, after) = help.split_once("COMMAND>\n\n").unwrap();
    let (list, _) = after.split_once("\nOptions:\n").unwrap();
    let names = list.lines().filter(|line| line.starts_with("  "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn printed(arguments: &[&str]) -> String {
    let ended = run(&mut lastbyte(arguments));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    ended.stdout
}

#[test]
fn every_shell_is_told_all_commands_and_none_that_is_nobodys() {
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for command in &commands {
            let words = script.split(|c: char| !c.is_alphanumeric());
            assert!(
                words.into_iter().any(|word| word == command),
                "{shell}: {command}"
            );
        }
        assert!(script.contains("initcwnd"), "{shell}");
        for inner in ["__guest", "__boot", "__try"] {
            assert!(!script.contains(inner), "{shell}: {inner}");
        }
    }
}

#[test]
fn bash_takes_its_script_and_completes_with_it() {
    let folder = TempDir::new().unwrap();
    let script = at(&folder, "lastbyte.bash");
    fs::write(&script, printed(&["completions", "bash"])).unwrap();
    let bash = |arguments: &[&str]| {
        let ended = run(Command::new("bash").args(arguments).arg(&script));
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        ended.stdout
    };
    bash(&["-n"]);
    let complete = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        let [.., before, current] = &words[..] else {
            panic!("{words:?}");
        };
        let command = format!(
            "source \"$0\"; COMP_WORDS=({}); COMP_CWORD={}; _lastbyte lastbyte {current} {before}; \
             echo \"${{COMPREPLY[*]}}\"",
            words.join(" "),
            words.len() - 1
        );
        bash(&["--norc", "-c", &command])
    };
    assert_eq!(complete("lastbyte comp"), "compare completions\n");
    for (begun, whole) in [
        ("--engine vi", "virtual\n"),
        ("--cpu n", "none\n"),
        ("--emulation l", "link\n"),
        ("--link l", "lte leo lte-m\n"),
    ] {
        assert_eq!(complete(&format!("lastbyte compare {begun}")), whole);
    }
}

#[test]
fn a_shell_that_is_none_is_told() {
    let ended = run(&mut lastbyte(["completions", "bsh"]));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("bash"), "{}", ended.stderr);
}

#[test]
fn man_has_a_page_of_each_command() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH lastbyte 1"), "{page}");
    for command in commands() {
        assert!(page.contains(&command), "{command}");
    }
    assert!(page.contains("LASTBYTE_CACHE"));
    assert!(printed(&["man", "compare"]).contains("initcwnd"));
    assert!(printed(&["man", "chain", "new"]).contains("CHAIN"));

    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(printed(&["man", "--output", path]), "");
    for page in ["lastbyte.1", "lastbyte-compare.1", "lastbyte-chain-new.1"] {
        assert!(at(&folder, page).exists(), "{page}");
    }

    let ended = run(&mut lastbyte(["man", "compar"]));
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.stderr,
        "lastbyte: no command \"compar\": did you mean \"compare\"?\n"
    );
}

#[test]
fn help_tells_where_things_are_kept() {
    let help = printed(&["--help"]);
    assert!(help.contains("LASTBYTE_CACHE"), "{help}");
    assert!(help.contains("~/.cache/lastbyte"), "{help}");
}
