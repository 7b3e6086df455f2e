//! `lastbyte kernel` with tiny sources and tools that only look like those of a build, so that
//! neither a network nor minutes are needed.
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Ended, need_root, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// How long the machine may take for what it does at once when it is not busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Programs of the system that take part as they are.
const REAL: [&str; 15] = [
    "cat", "chmod", "cp", "grep", "gzip", "head", "ln", "mkdir", "mv", "rm", "sh", "sleep", "tail",
    "tar", "touch",
];

/// Does what `make` does for the two goals of a build.
const MAKE: &str = r#"
for argument; do
    case $argument in
        KCONFIG_ALLCONFIG=*) grep -v '=n$' "${argument#*=}" > .config ;;
        linux)
            echo "  CC      init/main.o"
            echo made >> "$BENCH/made"
            number() { grep "^$1 =" Makefile | { read -r _ _ number; echo "$number"; }; }
            version=$(number VERSION).$(number PATCHLEVEL).$(number SUBLEVEL)
            { echo '#!/bin/sh'; echo "case \$1 in --version) echo $version ;; esac"; } > linux
            chmod +x linux
            ;;
    esac
done
"#;

const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 99\n";

/// A cache and a search path of its own.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench {
            folder: TempDir::new().unwrap(),
        };
        fs::create_dir(bench.path("bin")).unwrap();
        for name in REAL {
            let folders = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
            let program = folders.iter().find(|program| program.exists());
            let program = program.unwrap_or_else(|| panic!("this test needs {name}"));
            symlink(program, bench.path("bin").join(name)).unwrap();
        }
        for name in ["bc", "bison", "flex", "ld", "patch", "strip", "xz"] {
            bench.tool(name, "");
        }
        bench.tool("gcc", "echo gcc 1.2.3");
        bench.tool("make", MAKE);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where Lastbyte keeps kernels.
    fn kernels(&self) -> PathBuf {
        self.path("cache/kernel")
    }

    /// What is there apart from the lock and the log.
    fn kept(&self) -> Vec<String> {
        let mut names = names(&self.kernels());
        names.retain(|name| name != "lock" && name != "build.log");
        names
    }

    /// Puts a script on the search path.
    fn tool(&self, name: &str, script: &str) {
        let bench = self.folder.path().display();
        let script = format!("#!/bin/sh\nBENCH={bench}\n{script}");
        let path = self.path("bin").join(name);
        // Whoever runs the old one goes on with it.
        let _ = fs::remove_file(&path);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }

    fn without(&self, name: &str) {
        fs::remove_file(self.path("bin").join(name)).unwrap();
    }

    /// A source with these files.
    fn archive(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let top = self.path("tree/linux");
        let _ = fs::remove_dir_all(&top);
        for (name, text) in files {
            let file = top.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let archive = self.path(name);
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--auto-compress").arg("--file");
        tar.arg(&archive).arg("-C").arg(self.path("tree")).arg(".");
        assert!(tar.status().unwrap().success());
        archive
    }

    fn source(&self) -> PathBuf {
        let kconfig = ("arch/um/Kconfig", "");
        let offsets = ("arch/x86/um/user-offsets.c", "");
        let makefile = ("Makefile", MAKEFILE);
        self.archive("linux-6.12.99.tar.gz", &[kconfig, offsets, makefile])
    }

    fn lastbyte(&self, arguments: &[&str]) -> Command {
        let mut command = crate::common::lastbyte(["kernel"]);
        command.args(arguments).env("PATH", self.path("bin"));
        command.env("LASTBYTE_CACHE", self.path("cache"));
        command
    }

    fn build(&self, source: &Path) -> Command {
        let mut command = self.lastbyte(&["build", "--source"]);
        command.arg(source);
        command
    }

    fn status(&self) -> Ended {
        run(&mut self.lastbyte(&["status"]))
    }

    /// How often `make linux` was run to its end.
    fn made(&self) -> usize {
        let made = fs::read_to_string(self.path("made"));
        made.unwrap_or_default().lines().count()
    }

    fn wait_for(&self, name: &str) {
        wait_for(name, || self.path(name).exists());
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn wait_for(what: &str, come: impl Fn() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(start.elapsed() < PATIENCE, "still waiting for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn start(command: &mut Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

fn end(child: Child) -> Ended {
    Ended::from(child.wait_with_output().unwrap())
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// The last line on standard error, which must be the only one that is no stage.
fn last(ended: &Ended) -> &str {
    let line = ended.stderr.lines().last().unwrap_or_default();
    assert!(line.starts_with("lastbyte: "), "{ended:?}");
    line
}

#[track_caller]
fn succeeds(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[track_caller]
fn fails(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    for part in parts {
        assert!(last(ended).contains(part), "{part:?} in {ended:?}");
    }
}

#[test]
fn from_nothing_to_nothing() {
    let bench = Bench::new();
    let none = format!(
        "no kernel is built for the virtual engine in {:?}: run `lastbyte kernel build`, or `lastbyte kernel fetch` with one that is built",
        bench.kernels()
    );
    fails(&bench.status(), 3, &[&none]);
    assert!(!bench.kernels().exists());

    let source = bench.source();
    bench.tool("make", "exit 1");
    fails(&run(&mut bench.build(&source)), 1, &["configuring failed"]);
    let [work] = bench.kept().try_into().unwrap();
    bench.tool("make", MAKE);
    let built = run(&mut bench.build(&source));
    succeeds(&built);
    assert!(
        built
            .stdout
            .starts_with("Linux 6.12.99 is built, in 0 min "),
        "{built:?}"
    );
    let stages = [
        "minutes on",
        "unpacking",
        "configuring",
        "compiling",
        "checking",
    ];
    for stage in stages {
        assert!(built.stderr.contains(stage), "{built:?}");
    }
    let [key] = bench.kept().try_into().unwrap();
    let folder = bench.kernels().join(&key);
    assert_eq!(names(&folder), ["built-here", "kernel.json", "linux"]);
    assert!(
        built
            .stdout
            .contains(folder.join("linux").to_str().unwrap())
    );

    let info = fs::read(folder.join("kernel.json")).unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(info["version"], "6.12.99");
    assert_eq!(info["compiler"], "gcc 1.2.3");
    assert_eq!(info["source"]["name"], "linux-6.12.99.tar.gz");
    assert_eq!(info["source"]["origin"], "file");
    assert!(info["patches"].as_array().unwrap().len() > 1);

    let status = bench.status();
    succeeds(&status);
    for part in [
        "Linux 6.12.99, fits",
        "linux-6.12.99.tar.gz (a file of yours)",
    ] {
        assert!(status.stdout.contains(part), "{status:?}");
    }

    // Once is enough.
    let again = run(&mut bench.build(&source));
    succeeds(&again);
    assert!(
        again.stdout.starts_with("Linux 6.12.99 is built already: "),
        "{again:?}"
    );
    assert_eq!(bench.made(), 1);
    // Nor does it leave what a build did that was killed while it cleaned up.
    let work = bench.kernels().join(&work);
    fs::create_dir_all(work.join("tree/linux")).unwrap();
    succeeds(&run(&mut bench.build(&source)));
    assert!(!work.exists());

    let removed = run(&mut bench.lastbyte(&["remove"]));
    succeeds(&removed);
    assert!(removed.stdout.contains("kB are free again"), "{removed:?}");
    assert_eq!(names(&bench.kernels()), ["lock"]);
    fails(&bench.status(), 3, &[&none]);
    let removed = run(&mut bench.lastbyte(&["remove"]));
    assert_eq!(removed.stdout, "There was no kernel.\n");
}

#[test]
fn a_damaged_kernel_is_built_anew() {
    let bench = Bench::new();
    let source = bench.source();
    succeeds(&run(&mut bench.build(&source)));
    let [key] = bench.kept().try_into().unwrap();
    let folder = bench.kernels().join(key);
    fs::write(folder.join("linux"), "half").unwrap();
    let status = bench.status();
    let told = format!("the kernel in {folder:?} is damaged: `lastbyte kernel remove` removes it");
    fails(&status, 3, &[&told]);
    // In real time, numbers would be others.
    for engine in ["auto", "virtual"] {
        let mut compare = crate::common::lastbyte(["compare", "--rtt", "10ms", "--engine", engine]);
        fails(
            &run(compare.env("LASTBYTE_CACHE", bench.path("cache"))),
            3,
            &[&told],
        );
    }
    assert!(
        status.stdout.contains(": damaged, a build makes it anew"),
        "{status:?}"
    );
    succeeds(&run(&mut bench.build(&source)));
    succeeds(&bench.status());
    assert_eq!(bench.made(), 2);
}

#[test]
fn wrong_sources() {
    let bench = Bench::new();
    let good = bench.source();
    let um = ("arch/um/Kconfig", "");
    let x86 = ("arch/x86/um/user-offsets.c", "");
    let old = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 1\n";
    let truncated = bench.path("truncated.tar.gz");
    let bytes = fs::read(&good).unwrap();
    fs::write(&truncated, &bytes[..bytes.len() / 2]).unwrap();
    let text = bench.path("text.tar.xz");
    fs::write(&text, "Not an archive").unwrap();
    let empty = bench.path("empty");
    fs::write(&empty, "").unwrap();
    let evil = bench.archive("two\nlines.tar", &[("a", "")]);
    let plain = bench.archive("plain.tar", &[("Makefile", "all:\n"), um, x86]);
    let old = bench.archive("old.tar", &[("Makefile", old), um, x86]);
    let between = "VERSION = 6\nPATCHLEVEL = 13\nSUBLEVEL = 0\n";
    let between = bench.archive("between.tar", &[("Makefile", between), um, x86]);
    let no_um = bench.archive("no-um.tar", &[("Makefile", MAKEFILE), x86]);
    let takes =
        "is no source of Linux: it takes a .tar.xz, .tar.gz or .tar, or a linux-source package";
    for (source, problem) in [
        (bench.path("absent.tar"), "can't be read: No such file"),
        (bench.path("bin"), takes),
        (text, takes),
        (empty, takes),
        (
            truncated,
            "can't be unpacked: gzip: stdin: unexpected end of file",
        ),
        (evil, "is no source of Linux: it has no Makefile at its top"),
        (
            plain,
            "is no source of Linux: its Makefile tells no version",
        ),
        (
            old,
            "is Linux 6.1.1: the virtual engine has patches for 6.12 and 7.3",
        ),
        (
            between,
            "is Linux 6.13.0: the virtual engine has patches for 6.12 and 7.3",
        ),
        (no_um, "is no whole source of Linux: it has no arch/um"),
    ] {
        let ended = run(&mut bench.build(&source));
        fails(&ended, 2, &[&format!("{source:?}"), problem]);
        assert_eq!(ended.stdout, "");
        assert!(bench.kept().is_empty(), "{ended:?}");
    }

    // One that does not take a change, and one that lacks an option.
    bench.tool("patch", "echo '1 out of 1 hunk FAILED'; exit 1");
    let problem =
        "is Linux 6.12.99, which does not take the patch 0001-hz-1000: 1 out of 1 hunk FAILED";
    fails(&run(&mut bench.build(&good)), 2, &[problem]);
    // It takes the first, and half of the second.
    bench.tool(
        "patch",
        r#"[ -e first ] || exec touch first; touch half; echo '1 out of 2 hunks FAILED'; exit 1"#,
    );
    let problem =
        "is Linux 6.12.99, which does not take the patch 0002-amx-state: 1 out of 2 hunks FAILED";
    fails(&run(&mut bench.build(&good)), 2, &[problem]);
    assert!(bench.kept().is_empty());
    offer(&bench, "6.12.9-1");
    let problem = "preparing the source failed: linux-source-6.12 6.12.9-1 is Linux 6.12.99, which does not take the \
                   patch 0002-amx-state";
    fails(&run(&mut bench.lastbyte(&["build"])), 1, &[problem]);
    // But for the package, which is at no fault.
    assert_eq!(bench.kept(), ["download"]);
    fs::remove_dir_all(bench.kernels().join("download")).unwrap();
    bench.tool("patch", "");
    bench.tool("make", "grep -v CONFIG_VETH ${2#*=} > .config");
    let problem = "can't be configured with CONFIG_VETH=y";
    fails(&run(&mut bench.build(&good)), 2, &[problem]);
    assert!(bench.kept().is_empty());
    assert_eq!(bench.made(), 0);
}

/// A cache keeps both, each of its own recipe, and says which measures.
#[test]
fn kernels_of_two_series() {
    let bench = Bench::new();
    bench.tool(
        "patch",
        r#"for file; do :; done; cat "$file" >> "$BENCH/patches""#,
    );
    let makefile = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n";
    let um = ("arch/um/Kconfig", "");
    let x86 = ("arch/x86/um/user-offsets.c", "");
    let later = bench.archive("linux-7.3.4.tar", &[("Makefile", makefile), um, x86]);
    let ended = run(&mut bench.build(&later));
    succeeds(&ended);
    assert!(
        ended.stdout.starts_with("Linux 7.3.4 is built, "),
        "{ended:?}"
    );
    // Another one's patch would be for floating-point state that it asks the host about.
    let patches = fs::read_to_string(bench.path("patches")).unwrap();
    assert!(
        patches.contains("fp_forget") && !patches.contains("AMX, "),
        "{patches}"
    );
    let [key] = bench.kept().try_into().unwrap();
    let info = fs::read(bench.kernels().join(&key).join("kernel.json")).unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    let names = info["patches"].as_array().unwrap();
    let names: Vec<_> = names
        .iter()
        .map(|patch| patch["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"0001-hz-1000") && !names.contains(&"0002-amx-state"),
        "{names:?}"
    );

    let first = bench.source();
    succeeds(&run(&mut bench.build(&first)));
    assert_eq!(bench.kept().len(), 2);
    let status = |series: &str| run(bench.lastbyte(&["status"]).env("LASTBYTE_LINUX", series));
    let other = "fits this version of Lastbyte, but another one measures";
    for (series, measures, waits) in [("", "6.12.99", "7.3.4"), ("7.3", "7.3.4", "6.12.99")] {
        let ended = status(series);
        succeeds(&ended);
        let has = |line: &str| ended.stdout.lines().any(|it| it == line);
        assert!(
            has(&format!("Linux {measures}, fits this version of Lastbyte")),
            "{ended:?}"
        );
        assert!(has(&format!("Linux {waits}, {other}")), "{ended:?}");
    }
    let unknown = r#"LASTBYTE_LINUX is "6.13": kernels are of Linux 6.12 and 7.3"#;
    fails(&status("6.13"), 2, &[unknown]);
    assert_eq!(bench.made(), 2);

    // Each package has its own name.
    let mut build = bench.lastbyte(&["build"]);
    let problem = "can't get linux-source-7.3: this system has no apt-get; or name a source of Linux 7.3 with --source";
    offer(&bench, "7.3.9-1");
    bench.without("apt-get");
    fails(&run(build.env("LASTBYTE_LINUX", "7.3")), 3, &[problem]);
}

#[test]
fn missing_tools_are_named() {
    let bench = Bench::new();
    let source = bench.source();
    for name in ["gcc", "flex"] {
        bench.without(name);
    }
    let missing = "gcc, flex and the headers of libc are missing, needed to build Linux: \
                   install what your system calls so";
    fails(&run(&mut bench.build(&source)), 3, &[missing]);
    bench.tool("flex", "");
    bench.tool("gcc", "echo 'fatal error: stdio.h: No such file'; exit 1");
    fails(
        &run(&mut bench.build(&source)),
        3,
        &["the headers of libc are missing"],
    );
    assert!(bench.kept().is_empty());
}

#[test]
fn root_gets_missing_tools_installed() {
    need_root();
    let bench = Bench::new();
    let source = bench.source();
    for name in ["bc", "bison"] {
        bench.without(name);
    }
    // As on a system whose lists of packages are absent.
    bench.tool(
        "apt-get",
        r#"echo "$DEBIAN_FRONTEND $*" >> "$BENCH/apt"
        case "$*" in
            *update) : > "$BENCH/lists" ;;
            *) [ -e "$BENCH/lists" ] || { echo "E: Unable to locate package bc"; exit 100; }
               cp "$BENCH/bin/ld" "$BENCH/bin/bc"; cp "$BENCH/bin/ld" "$BENCH/bin/bison" ;;
        esac"#,
    );
    let ended = run(&mut bench.build(&source));
    succeeds(&ended);
    assert!(
        ended.stderr.contains("installing bison and bc"),
        "{ended:?}"
    );
    let apt = fs::read_to_string(bench.path("apt")).unwrap();
    assert_eq!(apt.lines().count(), 3, "{apt}");
    assert!(
        apt.lines().all(|line| line.starts_with("noninteractive ")),
        "{apt}"
    );
    assert!(apt.contains("--yes") && apt.contains("install --no-install-recommends bison bc"));

    let bench = Bench::new();
    bench.without("bc");
    bench.tool("apt-get", "echo 'E: Unable to locate package bc'; exit 100");
    let ended = run(&mut bench.build(&source));
    let said = "bc is missing, needed to build Linux: `apt-get install bc` did not help: \
                E: Unable to locate package bc";
    fails(&ended, 3, &[said]);
}

#[test]
fn a_failed_build_is_continued() {
    let bench = Bench::new();
    let source = bench.source();
    let failing = format!(
        "case $* in *linux) echo '  CC      init/main.o'; echo 'init/main.c:1: error: no'
         echo 'make: *** [init/main.o] Error 1' >&2; exit 2 ;; esac\n{MAKE}"
    );
    bench.tool("make", &failing);
    let ended = run(&mut bench.build(&source));
    let log = bench.kernels().join("build.log");
    let said = format!("compiling failed: init/main.c:1: error: no (all of it: {log:?})");
    fails(&ended, 1, &[&said]);
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("make: *** [init/main.o] Error 1"), "{log}");
    let status = bench.status();
    fails(&status, 3, &["no kernel is built"]);
    assert!(
        status
            .stdout
            .contains("unfinished, a build of the same source continues it")
    );

    // Nothing is unpacked a second time.
    bench.tool("tar", "exit 1");
    bench.tool("patch", "exit 1");
    bench.tool("make", MAKE);
    let ended = run(&mut bench.build(&source));
    succeeds(&ended);
    assert!(
        ended.stderr.contains("less what an earlier build has done"),
        "{ended:?}"
    );
    succeeds(&bench.status());
    assert_eq!(bench.kept().len(), 1);
}

#[test]
fn another_source_makes_an_unfinished_build_useless() {
    let bench = Bench::new();
    bench.tool("make", "exit 2");
    let first = bench.archive(
        "a.tar",
        &[
            ("Makefile", MAKEFILE),
            ("arch/um/Kconfig", "a"),
            ("arch/x86/um/a", ""),
        ],
    );
    fails(&run(&mut bench.build(&first)), 1, &["configuring failed"]);
    let before = bench.kept();
    let source = bench.source();
    fails(&run(&mut bench.build(&source)), 1, &["configuring failed"]);
    assert_eq!((before.len(), bench.kept().len()), (1, 1));
    assert_ne!(before, bench.kept());
    bench.tool("make", MAKE);
    succeeds(&run(&mut bench.build(&first)));
    succeeds(&run(&mut bench.build(&source)));
    assert_eq!((bench.kept().len(), bench.made()), (2, 2));
}

#[test]
fn a_kernel_that_does_not_start_is_not_kept() {
    let bench = Bench::new();
    let source = bench.source();
    for (program, problem) in [
        (
            "echo 'error: no ptrace'; exit 1",
            "checking the kernel failed: error: no ptrace",
        ),
        ("echo 6.13.1", "it tells the version \"6.13.1\""),
    ] {
        let script = format!("{{ echo '#!/bin/sh'; echo \"{program}\"; }}");
        bench.tool(
            "make",
            &MAKE.replace("chmod", &format!("{script} > linux; chmod")),
        );
        fails(&run(&mut bench.build(&source)), 1, &[problem]);
        fails(&bench.status(), 3, &["no kernel is built"]);
    }
}

#[test]
fn a_disk_that_becomes_full() {
    let bench = Bench::new();
    let source = bench.source();
    let full = "head -c 1 /dev/zero > /dev/full || exit 2";
    for (tool, script) in [
        ("patch", full.to_owned()),
        ("make", format!("case $* in *linux) {full} ;; esac\n{MAKE}")),
    ] {
        bench.tool(tool, &script);
        let ended = run(&mut bench.build(&source));
        let said = format!(
            "lastbyte: the disk of {:?} is full: make room",
            bench.kernels()
        );
        fails(&ended, 2, &[&said]);
        bench.tool("patch", "");
    }
    bench.tool("make", MAKE);
    succeeds(&run(&mut bench.build(&source)));
}

/// A disk of one megabyte, as long as this lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(place: PathBuf) -> SmallDisk {
        need_root();
        fs::create_dir(&place).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
        let mounted = mount.arg(&place).status().unwrap();
        assert!(mounted.success(), "this test needs the right to mount");
        SmallDisk(place)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_disk_without_room_is_told_before() {
    let bench = Bench::new();
    let source = bench.source();
    let _disk = SmallDisk::new(bench.path("cache"));
    let ended = run(&mut bench.build(&source));
    fails(&ended, 2, &["the build needs 2.5 GB of disk", "has 1.0 MB"]);
    assert!(bench.kept().is_empty());
}

#[test]
fn a_folder_that_linux_refuses() {
    let bench = Bench::new();
    let source = bench.source();
    let mut build = bench.build(&source);
    build.env("LASTBYTE_CACHE", bench.path("a b"));
    fails(
        &run(&mut build),
        2,
        &["Linux can't be built in", "set LASTBYTE_CACHE"],
    );
    assert!(!bench.path("a b").exists());
}

/// Makes `make linux` wait for a file `go`.
fn slow(bench: &Bench) {
    let slow = r#"case $* in
        *linux)
            echo $$ > "$BENCH/pid.new"; mv "$BENCH/pid.new" "$BENCH/pid"
            # It does not outlive a test that fails.
            while [ -e "$BENCH" ] && ! [ -e "$BENCH/go" ]; do sleep 0.02; done ;;
        esac"#;
    bench.tool("make", &format!("{slow}\n{MAKE}"));
}

#[test]
fn ctrl_c_ends_the_tools_and_keeps_the_rest() {
    let bench = Bench::new();
    let source = bench.source();
    slow(&bench);
    let child = start(&mut bench.build(&source));
    bench.wait_for("pid");
    let make = fs::read_to_string(bench.path("pid")).unwrap();
    send(&child, Signal::SIGINT);
    let ended = end(child);
    let said = "lastbyte: interrupted: `lastbyte kernel build` continues where this one stopped";
    fails(&ended, 130, &[said]);
    let make = Path::new("/proc").join(make.trim());
    assert!(!make.exists(), "make goes on");

    fs::write(bench.path("go"), "").unwrap();
    bench.tool("tar", "exit 1");
    succeeds(&run(&mut bench.build(&source)));
    assert_eq!(bench.made(), 1);
}

#[test]
fn two_builds_at_once() {
    let bench = Bench::new();
    let source = bench.source();
    slow(&bench);
    let first = start(&mut bench.build(&source));
    bench.wait_for("pid");
    fails(
        &run(&mut bench.lastbyte(&["remove"])),
        1,
        &["a build is under way: wait for it or end it first"],
    );
    let heard = bench.path("heard");
    let mut second = bench.build(&source);
    second.stdout(Stdio::piped());
    let second = second
        .stderr(fs::File::create(&heard).unwrap())
        .spawn()
        .unwrap();
    wait_for("the second to wait", || {
        let heard = fs::read_to_string(&heard).unwrap();
        heard.contains("another build is under way: waiting for its end")
    });
    // Whoever waits can be interrupted.
    let third = start(&mut bench.build(&source));
    thread::sleep(Duration::from_millis(200));
    send(&third, Signal::SIGINT);
    assert_eq!(end(third).code, Some(130));

    fs::write(bench.path("go"), "").unwrap();
    let (first, second) = (end(first), end(second));
    succeeds(&first);
    succeeds(&second);
    assert!(first.stdout.contains(" is built, in "), "{first:?}");
    assert!(second.stdout.contains(" is built already: "), "{second:?}");
    assert_eq!((bench.made(), bench.kept().len()), (1, 1));
}

#[test]
fn nobody_builds_beside_the_tools_of_a_build_that_was_killed() {
    let bench = Bench::new();
    let source = bench.source();
    slow(&bench);
    let mut killed = bench.build(&source);
    let mut killed = killed
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    bench.wait_for("pid");
    send(&killed, Signal::SIGKILL);
    killed.wait().unwrap();
    let next = start(&mut bench.build(&source));
    thread::sleep(Duration::from_millis(300));
    // Its make is still at work, and alone.
    assert_eq!(bench.made(), 0);
    fs::write(bench.path("go"), "").unwrap();
    let next = end(next);
    succeeds(&next);
    assert!(
        next.stderr.contains("another build is under way"),
        "{next:?}"
    );
    assert_eq!(bench.kept().len(), 1);
}

/// Stands for apt and dpkg, on a system that offers one version of the package.
fn offer(bench: &Bench, version: &str) {
    let madison = format!("echo ' linux-source-6.12 | {version} | http://debian.example Packages'");
    bench.tool("apt-cache", &madison);
    let mut package = b"!<arch>\ndebian-binary".to_vec();
    package.extend(fs::read(bench.source()).unwrap());
    fs::write(bench.path("package.deb"), package).unwrap();
    let get = r#"echo "$*" >> "$BENCH/apt"
        case $1 in download) cp "$BENCH/package.deb" "linux-source-6.12_all.deb" ;; esac"#;
    bench.tool("apt-get", get);
    let extract = r#"[ "$1" = --extract ] || exit 1
        mkdir -p "$3/usr/src"; tail -c +22 "$2" > "$3/usr/src/linux-source-6.12.tar.gz""#;
    bench.tool("dpkg-deb", extract);
}

#[test]
fn the_package_of_the_distribution() {
    let bench = Bench::new();
    let build = || run(&mut bench.lastbyte(&["build"]));
    let name = "--source";
    fails(&build(), 3, &["dpkg-deb is missing"]);
    offer(&bench, "6.12.9-1");
    bench.without("apt-get");
    fails(
        &build(),
        3,
        &[
            "can't get linux-source-6.12: this system has no apt-get",
            name,
        ],
    );
    offer(&bench, "6.12.9-1");
    bench.tool("apt-cache", "exit 0");
    fails(
        &build(),
        3,
        &["can't get linux-source-6.12: ", "repositor", name],
    );

    offer(&bench, "6.12.9-1");
    let ended = build();
    succeeds(&ended);
    let told = "apt offers linux-source-6.12 6.12.9-1 but not 6.12.117-1~deb12u1";
    assert!(ended.stderr.contains(told), "{ended:?}");
    let apt = fs::read_to_string(bench.path("apt")).unwrap();
    assert!(
        apt.contains("download linux-source-6.12=6.12.9-1\n"),
        "{apt}"
    );
    let status = bench.status();
    succeeds(&status);
    let source = "linux-source-6.12 6.12.9-1 (not the version that Lastbyte is tested with)";
    assert!(status.stdout.contains(source), "{status:?}");
    assert_eq!(bench.kept().len(), 1);

    // Nothing is downloaded to find out that it is there.
    bench.without("apt-cache");
    succeeds(&build());
}

#[test]
fn the_pinned_package_has_the_recorded_digest() {
    let bench = Bench::new();
    offer(&bench, "6.12.117-1~deb12u1");
    let ended = run(&mut bench.lastbyte(&["build"]));
    let problem = "can't get linux-source-6.12 6.12.117-1~deb12u1: its SHA-256 is ";
    fails(
        &ended,
        3,
        &[problem, "instead of e849faf3", "removed again"],
    );
    assert!(names(&bench.kernels().join("download")).is_empty());

    bench.tool(
        "apt-get",
        "echo 'E: Failed to fetch http://debian.example  404 Not Found'; exit 100",
    );
    let ended = run(&mut bench.lastbyte(&["build"]));
    fails(
        &ended,
        3,
        &["can't get linux-source-6.12 6.12.117", "404 Not Found"],
    );
}

#[test]
fn a_package_that_the_user_has() {
    let bench = Bench::new();
    offer(&bench, "6.12.9-1");
    succeeds(&run(&mut bench.build(&bench.path("package.deb"))));
    bench.tool("dpkg-deb", "mkdir -p $3");
    let other = bench.path("other.deb");
    fs::write(&other, "!<arch>\ndebian-binary ").unwrap();
    fails(
        &run(&mut bench.build(&other)),
        2,
        &["is no linux-source package"],
    );
}
