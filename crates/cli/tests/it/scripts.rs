//! What scripts/test does about the folder that it builds in when CI is set, and where scripts/compare puts the program.
//! Compilers only look as if.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::common::{Ended, run};

const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/lib.sh");

/// A home of its own, with a compiler.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        let home = Home(TempDir::new().unwrap());
        home.program("rustc", "echo rustc 1.95.0");
        home.program("cargo", "");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs `script` after scripts/lib.sh.
    fn bash(&self, script: &str) -> Ended {
        self.run(&mut Command::new("bash"), script)
    }

    /// The same, where it may mount.
    fn bash_with_mounts(&self, script: &str) -> Ended {
        self.run(Command::new("unshare").args(["--mount", "bash"]), script)
    }

    fn run(&self, bash: &mut Command, script: &str) -> Ended {
        let search = format!("{}:{}", self.path("bin").display(), env!("PATH"));
        bash.args(["-euo", "pipefail", "-c"])
            .arg(format!("source {LIBRARY}; {script}"))
            .env("HOME", self.0.path())
            .env("PATH", search)
            .env_remove("XDG_CACHE_HOME")
            .env_remove("CARGO_TARGET_DIR");
        run(bash)
    }

    /// Chooses a folder, compiles one library into it, and ends well. Says which folder.
    fn compile(&self) -> PathBuf {
        let ended = self.bash(
            "keep_target; begin_in_target; mkdir -p $CARGO_TARGET_DIR/release/deps; \
             echo library > $CARGO_TARGET_DIR/release/deps/libother.rlib; \
             target_is_whole; echo $CARGO_TARGET_DIR",
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        PathBuf::from(ended.stdout.trim())
    }

    /// What is said when a folder is chosen, and which it is.
    fn choose(&self) -> (String, String) {
        let ended = self.bash("keep_target; echo ${CARGO_TARGET_DIR-its own}");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (ended.stderr, ended.stdout.trim().to_owned())
    }
}

fn library(folder: &Path) -> PathBuf {
    folder.join("release/deps/libother.rlib")
}

#[test]
fn what_is_compiled_serves_the_next_checkout() {
    let home = Home::new();
    let folder = home.compile();
    assert!(folder.starts_with(home.path(".cache/lastbyte/target")));
    assert_eq!(home.choose(), (String::new(), folder.display().to_string()));
    assert!(library(&folder).exists());
}

#[test]
fn a_damaged_folder_is_built_again() {
    let home = Home::new();
    let folder = home.compile();
    File::create(library(&folder)).unwrap();
    let (said, chosen) = home.choose();
    assert_eq!(
        said,
        format!("{} is damaged: building all again\n", folder.display())
    );
    assert_eq!(chosen, folder.display().to_string());
    assert!(!library(&folder).exists());
    // A run that did not come to its end.
    home.compile();
    home.bash("keep_target; begin_in_target");
    assert!(home.choose().0.contains("is damaged"));
}

#[test]
fn another_compiler_has_another_folder() {
    let home = Home::new();
    let folder = home.compile();
    home.program("rustc", "echo rustc 1.96.0");
    let (said, chosen) = home.choose();
    assert_eq!(said, "");
    assert_ne!(chosen, folder.display().to_string());
    assert!(!folder.exists(), "it is of no use any more");
}

#[test]
fn two_runs_at_once_do_not_share_a_folder() {
    let home = Home::new();
    let script = format!(
        "keep_target; unset CARGO_TARGET_DIR; \
         bash -euc 'source {LIBRARY}; keep_target; echo ${{CARGO_TARGET_DIR-its own}}' "
    );
    let ended = home.bash(&script);
    assert_eq!(ended.stdout, "its own\n", "{ended:?}");
    assert!(
        ended.stderr.starts_with("another run uses "),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_disk_without_room_is_named() {
    let home = Home::new();
    let small = home.path("small");
    fs::create_dir(&small).unwrap();
    let ended = home.bash_with_mounts(&format!(
        "mount -t tmpfs -o size=1m tmpfs {0}; export CARGO_TARGET_DIR={0}; need_space 8",
        small.display()
    ));
    assert_eq!(
        (ended.code, ended.stderr),
        (
            Some(3),
            format!(
                "error: 0 GB are free for {}, which holds 0 GB, and 8 GB are needed: free some, or name another \
                 folder with CARGO_TARGET_DIR\n",
                small.display()
            )
        )
    );
}

#[test]
fn a_disk_that_fills_up_is_named_and_built_again() {
    let home = Home::new();
    let folders = home.path(".cache/lastbyte/target");
    fs::create_dir_all(&folders).unwrap();
    home.program(
        "cargo",
        "test \"$1\" = build || exit 0; mkdir -p $CARGO_TARGET_DIR/release/deps
         head --bytes 8M /dev/zero > $CARGO_TARGET_DIR/release/deps/libother.rlib",
    );
    let ended = home.bash_with_mounts(&format!(
        "mount -t tmpfs -o size=4m tmpfs {folders}; keep_target; begin_in_target
         cargo build || say_if_full; echo $CARGO_TARGET_DIR
         flock --unlock $kept_lock; unset CARGO_TARGET_DIR; keep_target
         ls $CARGO_TARGET_DIR",
        folders = folders.display()
    ));
    let folder = ended.stdout.trim();
    assert!(folder.starts_with(folders.to_str().unwrap()), "{ended:?}");
    assert!(
        ended.stderr.contains("No space left on device"),
        "{}",
        ended.stderr
    );
    let said = format!(
        "the disk of {folder} is full: free 8 GB, or name another folder with CARGO_TARGET_DIR\n\
         {folder} is damaged: building all again\n"
    );
    assert!(ended.stderr.ends_with(&said), "{}", ended.stderr);
}

#[test]
fn a_folder_that_may_not_be_written_to_is_left_alone() {
    let home = Home::new();
    let folder = home.compile();
    // As root left it: nobody may write, and root is stopped by a file in the way.
    let folders = folder.parent().unwrap();
    fs::remove_dir_all(folders).unwrap();
    File::create(folders).unwrap();
    assert_eq!(home.choose(), (String::new(), "its own".to_owned()));
}

#[test]
fn the_program_is_put_where_shells_look() {
    let home = Home::new();
    home.program("built/lastbyte", "echo one");
    let program = home.path("bin/built/lastbyte");
    let put = |before: &str| {
        let (program, here) = (program.display(), home.path("here"));
        let here = here.display();
        let ended = home.bash(&format!(
            "{before}; here={here}; PATH=$here:$PATH; put_on_path {program} /none/there {here}; lastbyte"
        ));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (ended.stdout, ended.stderr)
    };
    let link = home.path("here/lastbyte");
    let at_hand = format!("lastbyte is at hand now: {}\n", link.display());
    assert_eq!(put(":"), ("one\n".to_owned(), at_hand.clone()));
    // Once is enough.
    assert_eq!(put(":"), ("one\n".to_owned(), String::new()));
    // One of an earlier checkout.
    let earlier = format!("ln -sfn /bin/true {}", link.display());
    assert_eq!(put(&earlier), ("one\n".to_owned(), at_hand));
    // What somebody installed stays.
    let installed = format!("rm {0}; cp /bin/true {0}", link.display());
    let (said, told) = put(&installed);
    assert_eq!(said, "");
    let told_of = format!("lastbyte is {}: the one that was built is ", link.display());
    assert!(told.starts_with(&told_of), "{told}");
}

#[test]
fn where_no_place_is_on_the_path_the_line_to_add_is_told() {
    let home = Home::new();
    let program = home.path("built/lastbyte");
    let ended = home.bash(&format!(
        "put_on_path {} $HOME/.local/bin",
        program.display()
    ));
    let folder = program.parent().unwrap().display();
    let expected = format!("to have lastbyte at hand: export PATH={folder}:$PATH\n");
    assert_eq!((ended.code, ended.stderr), (Some(0), expected));
    assert!(!home.path(".local").exists());
}

/// `scripts/compare` where cargo builds a program that only tells what it was asked, and has a kernel or not.
fn compare(has_kernel: bool, before: &str, options: &str) -> Ended {
    let home = Home::new();
    let status = if has_kernel { "true" } else { "false" };
    let program = format!("echo \"$@\"; case $* in (\"kernel status\") {status};; esac");
    home.program("built", &program);
    let built = home.path("bin/built");
    home.program(
        "cargo",
        &format!(
            "mkdir -p $CARGO_TARGET_DIR/release; cp {} $CARGO_TARGET_DIR/release/lastbyte",
            built.display()
        ),
    );
    home.bash(&format!(
        "export LASTBYTE_BUILD=yes CARGO_TARGET_DIR=$HOME/target; mkdir -p $HOME/.local/bin; \
             PATH=$HOME/.local/bin:$PATH; {before} $root/scripts/compare {options}"
    ))
}

#[test]
fn a_first_comparison_begins_with_arithmetic_and_builds_the_kernel() {
    const EXPLAIN: &str = "explain SecP256r1MLKEM768/ml-dsa-65 --chain-profile private";
    for (has_kernel, before, options, expected) in [
        (false, "", "", vec![EXPLAIN, "kernel build", "compare"]),
        (true, "", "", vec![EXPLAIN, "compare"]),
        (false, "LASTBYTE_KERNEL=skip", "", vec![EXPLAIN, "compare"]),
        (
            false,
            "",
            "--rtt 5ms",
            vec!["kernel build", "compare --rtt 5ms"],
        ),
        (false, "", "--engine live", vec!["compare --engine live"]),
        (false, "", "--help", vec!["compare --help"]),
    ] {
        let ended = compare(has_kernel, before, options);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said: Vec<_> = ended.stdout.lines().collect();
        assert_eq!(said, expected, "{ended:?}");
        // How long it takes is told before it begins, and where the program is.
        let told = "building Lastbyte: about 5 minutes on 2 cores that do nothing else, ";
        assert!(ended.stderr.starts_with(told), "{ended:?}");
        let place = "/.local/bin/lastbyte\n";
        assert!(ended.stderr.contains(place), "{ended:?}");
        let builds = expected.contains(&"kernel build");
        let told = "building the kernel of the virtual engine: about 5 minutes more";
        assert_eq!(ended.stderr.contains(told), builds, "{ended:?}");
    }
}

#[test]
fn what_is_installed_compares_and_nothing_is_built() {
    let home = Home::new();
    home.program("cargo", "echo built");
    home.program("lastbyte", "echo \"$@\"");
    let ended = home.bash("LASTBYTE_BUILD= $root/scripts/compare --rtt 5ms");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "compare --rtt 5ms\n");
    let told = format!(
        "comparing with {}, which is installed ",
        home.path("bin/lastbyte").display()
    );
    assert!(ended.stderr.starts_with(&told), "{ended:?}");
    // A link is what this script has left itself.
    let linked = home.bash(
        "mv $HOME/bin/lastbyte $HOME/built; ln -s $HOME/built $HOME/bin/lastbyte; \
         CARGO_TARGET_DIR=$HOME/target $root/scripts/compare || true",
    );
    assert!(linked.stdout.starts_with("built\n"), "{linked:?}");
}
