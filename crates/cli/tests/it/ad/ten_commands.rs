//! The ten commands of docs/pqtls-ad.md, run as they stand there: with BIND, nginx and curl of the distribution.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::repository::{Block, blocks, root};
use crate::common::run;
use lastbyte_ad::test_servers::isolate;
use tempfile::TempDir;

const HEADING: &str = "## From nginx and BIND to a working front in ten commands\n";

/// What all of it may take on a busy machine, in seconds: each program gives up by itself before.
const PATIENCE: &str = "300";

#[test]
fn ten_commands_lead_from_nginx_and_bind_to_a_working_front() {
    isolate();
    let blocks = blocks(&section());
    let folder = TempDir::new().unwrap();
    for block in &blocks {
        let name = block.before.strip_prefix('`');
        if let Some(name) = name.and_then(|rest| rest.strip_suffix("`:")) {
            fs::write(folder.path().join(name), &block.text).unwrap();
        }
    }
    let shell: Vec<&Block> = blocks
        .iter()
        .filter(|block| block.language == "sh")
        .collect();
    let [commands, end] = shell.as_slice() else {
        panic!("{} blocks of commands", shell.len());
    };
    let is_new = |line: &&str| !line.starts_with(' ') && !line.is_empty();
    assert_eq!(commands.text.lines().filter(is_new).count(), 10);
    // Who types them reads what a server says before going on; whatever happens, all is ended.
    let script = format!(
        "set -eu\nend() {{\nset +eu\n{}}}\ntrap end EXIT\n{}",
        end.text,
        waiting(&commands.text)
    );
    fs::write(folder.path().join("commands"), &script).unwrap();
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", PATIENCE, "bash", "commands"]);
    let ended = run(command
        .current_dir(folder.path())
        .env("LASTBYTE_CACHE", folder.path().join("cache"))
        .env("PATH", path()));
    let log = |name| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!(ended.code, Some(0), "{ended:?}: {}", log("nginx.log"));
    // Of `ad fetch` and of curl.
    let hello = "hello, 127.0.0.1\n";
    assert_eq!(ended.stdout.matches(hello).count(), 2, "{ended:?}");
    assert!(ended.stdout.ends_with(hello), "{ended:?}");
    // What the document says that they say.
    for told in quoted() {
        let is_told = ended.stdout.contains(told) || ended.stderr.contains(told);
        assert!(is_told, "{told}: {ended:?}");
    }
    let used = "outcome                used\n";
    assert!(ended.stdout.contains(used), "ad check: {ended:?}");
    assert!(ended.stderr.contains(used), "ad fetch: {ended:?}");
    assert!(!ended.stderr.contains("warning: "), "{ended:?}");
}

fn section() -> String {
    let document = fs::read_to_string(root().join("docs/pqtls-ad.md")).unwrap();
    let (_, section) = document.split_once(HEADING).unwrap();
    section.split_once("\n## ").unwrap().0.to_owned()
}

/// What the text after the commands quotes of their words.
fn quoted() -> [&'static str; 2] {
    [
        "serving on 127.0.0.1:8443",
        "published 1 record of 11410 bytes",
    ]
    .map(|words| {
        assert!(section().contains(words), "{words}");
        words
    })
}

/// These commands, which go on after one in the background once it listens.
fn waiting(commands: &str) -> String {
    let listened = commands.split_once("--listen 127.0.0.1:").unwrap().1;
    let port = listened.split(' ').next().unwrap();
    let wait = format!(
        " &\nuntil (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.05; kill -0 $!; done\n"
    );
    assert_eq!(commands.matches(" &\n").count(), 1);
    commands.replace(" &\n", &wait)
}

/// Where `lastbyte` is this one, and servers are where Debian has them.
fn path() -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_lastbyte")).parent().unwrap();
    let others = env::var("PATH").unwrap_or_default();
    format!("{}:{others}:/usr/sbin", own.display())
}
