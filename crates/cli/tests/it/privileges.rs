//! Without root: what works, and what is said when something is missing.
//!
//! These tests change users and mount over /dev/net/tun in a mount namespace of their own, so
//! they need root themselves, and `unshare` and `setpriv` of util-linux.
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use crate::common::{Ended, at, lastbyte, need_live_engine, need_root, run};
use tempfile::TempDir;

const NOBODY: u32 = 65534;
/// Puts a TUN node of mode $1 over /dev/net/tun, by way of the folder $2, and runs the rest.
const WITH_TUN: &str = r#"
    mount -t tmpfs tmpfs "$2"
    mknod "$2/tun" c 10 200
    chmod "$1" "$2/tun"
    mount --bind "$2/tun" /dev/net/tun
    shift 2
    exec "$@"
"#;
const COMPARE: &[&str] = &[
    "compare",
    "--baseline",
    "x25519/ecdsa-p256",
    "--rtt",
    "20ms",
    "--data",
    "20KiB",
    "--connections",
    "4",
    "--format",
    "json",
    "-o",
    "rows.csv",
];

/// Whoever built a kernel, it can't reach the network, nor gain what its caller does not have.
#[test]
fn a_guest_kernel_gains_no_rights_and_sees_no_network() {
    need_root();
    let step = |program: &str| {
        let parent = std::process::id().to_string();
        let mut command = lastbyte([
            "__boot", &parent, "anywhere", "taken", "/bin/sh", "-c", program,
        ]);
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    assert_eq!(
        step("grep NoNewPrivs /proc/self/status"),
        "NoNewPrivs:\t1\n"
    );
    let network = step("readlink /proc/self/ns/net");
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    assert_ne!(network.trim_end(), own.to_str().unwrap());
    let devices = step("tail -n +3 /proc/net/dev");
    let mut names = devices.lines().map(|line| line.split(':').next().unwrap());
    assert!(names.all(|name| name.trim() == "lo"), "{devices}");
}

/// A user who is not root, with a home of their own.
struct User {
    home: TempDir,
}

impl User {
    fn new() -> User {
        need_root();
        need_live_engine();
        let home = TempDir::new().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_lastbyte"), at(&home, "lastbyte")).unwrap();
        fs::create_dir(at(&home, "mount")).unwrap();
        let user = User { home };
        let version = run(user.command("0600").arg("--version"));
        assert!(
            version.stdout.starts_with("lastbyte "),
            "this test needs `unshare` and `setpriv` of util-linux, the right to mount, and a \
             temporary folder (TMPDIR) that every user may enter: {version:?}"
        );
        user
    }

    /// The program as this user runs it where /dev/net/tun has this mode.
    fn command(&self, tun_mode: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", WITH_TUN, "sh", tun_mode]);
        command.arg(at(&self.home, "mount"));
        let user = NOBODY.to_string();
        command.args([
            "setpriv",
            "--reuid",
            &user,
            "--regid",
            &user,
            "--clear-groups",
        ]);
        command.arg(at(&self.home, "lastbyte"));
        command.env("LASTBYTE_CACHE", at(&self.home, "chains"));
        command.current_dir(self.home.path());
        command
    }
}

#[test]
fn a_device_that_is_roots_alone() {
    let user = User::new();
    let ended = run(user.command("0600").args(COMPARE));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.stdout, "");
    assert_eq!(
        ended.stderr,
        "lastbyte: can't make a TUN device: /dev/net/tun: Permission denied (os error 13); \
         run as root, or measure without it in virtual time, which takes `lastbyte kernel build`, or `lastbyte kernel fetch` with one that is built; \
         `lastbyte doctor` tells more\n"
    );

    let doctor = run(user.command("0600").arg("doctor"));
    assert_eq!(doctor.code, Some(3), "{doctor:?}");
    let failures: Vec<_> = found(&doctor, "FAIL").collect();
    assert!(failures[0].contains("TUN devices"), "{doctor:?}");
    assert!(
        failures[0].ends_with("run as root, or chmod 0666 /dev/net/tun"),
        "{doctor:?}"
    );
    assert!(
        doctor.stderr.contains("mend the lines marked FAIL"),
        "{doctor:?}"
    );
}

#[test]
fn a_device_that_is_everybodys() {
    let user = User::new();
    let doctor = run(user.command("0666").arg("doctor"));
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let namespaces =
        found(&doctor, "ok").any(|line| line.ends_with("in a user namespace, without root"));
    assert!(namespaces, "{doctor:?}");
    assert!(
        found(&doctor, "ok").any(|line| line.contains("cubic, reno")),
        "{doctor:?}"
    );

    let ended = run(user.command("0666").args(COMPARE));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rows = crate::common::read_rows(&at(&user.home, "rows.csv"));
    let outcomes: Vec<_> = rows.iter().map(|row| row.text("outcome")).collect();
    assert_eq!(outcomes, ["completed"; 4]);
}

/// What may not be read is no worse for it: nobody shall delete what somebody else can read.
#[test]
fn results_that_are_anothers_are_not_to_be_deleted() {
    let user = User::new();
    let study = "connections = 2\ncpu = \"none\"\n[arm.a]\ntls = \"x25519/ecdsa-p256/transport=quic\"\n[link.l]\n\
                 rtt = \"2ms\"\n[[measure]]\nid = \"m\"\ndata = \"0B\"\n";
    let here = user.home.path();
    fs::write(here.join("s.toml"), study).unwrap();
    for arguments in [
        "run s.toml -o out",
        "compare x25519/ecdsa-p256/transport=quic x25519/rsa-2048/transport=quic --connections 2 --cpu none -o own.parquet",
    ] {
        let ended = run(lastbyte(arguments.split(' ')).current_dir(here));
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let ask = |arguments: &str| {
        let ended = run(user.command("0600").args(arguments.split(' ')));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        // Before it may stand why no kernel is needed.
        let last = ended.stderr.lines().last().unwrap_or_default();
        format!("{last}\n")
    };
    for path in ["out/rows.parquet", "own.parquet"] {
        fs::set_permissions(here.join(path), Permissions::from_mode(0o600)).unwrap();
        let refused = format!(
            "lastbyte: can't read {path:?}: Permission denied (os error 13): have its owner let you read it (chmod u+r, or \
             chown)\n"
        );
        let named = path.trim_end_matches("/rows.parquet");
        assert_eq!(ask(&format!("report {named}")), refused);
        if named != path {
            chown(here.join(named), Some(NOBODY), Some(NOBODY)).unwrap();
            fs::remove_file(here.join(named).join(".lock")).ok();
            assert_eq!(ask(&format!("run s.toml -o {named} --resume")), refused);
        }
    }
    assert_eq!(
        ask(
            "compare x25519/ecdsa-p256/transport=quic --connections 2 --cpu none --compare-to ./own.parquet"
        ),
        "lastbyte: can't read \"./own.parquet\": Permission denied (os error 13): have its owner let you read it (chmod u+r, \
         or chown)\n"
    );
}

/// Whether a user namespace can be had must not depend on chance: the kernel gives none to a
/// process that has a second thread, even one that is about to end.
#[test]
fn a_user_namespace_can_be_had_every_time() {
    let user = User::new();
    for _ in 0..150 {
        // Fails right after it: there is no such file.
        let options = ["compare", "--baseline", "x25519/missing.pem"];
        let ended = run(user.command("0666").args(options));
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}

#[test]
fn no_user_namespaces_at_all() {
    let user = User::new();
    let with = |argument| {
        // A limit for the descendants of a namespace, and root without its capabilities.
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-ec"]);
        command.arg(r#"echo 0 > /proc/sys/user/max_user_namespaces; exec "$@""#);
        command.args(["sh", "setpriv", "--bounding-set=-all", "--inh-caps=-all"]);
        // Without a kernel for the virtual engine, which needs none of this.
        command.env("LASTBYTE_CACHE", at(&user.home, "chains"));
        run(command.arg(at(&user.home, "lastbyte")).arg(argument))
    };

    let ended = with("compare");
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended
            .stderr
            .starts_with("lastbyte: can't make a network namespace: "),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .ends_with(", which takes `lastbyte kernel build`, or `lastbyte kernel fetch` with one that is built; `lastbyte doctor` tells more\n"),
        "{ended:?}"
    );

    let doctor = with("doctor");
    assert_eq!(doctor.code, Some(3), "{doctor:?}");
    let failures: Vec<_> = found(&doctor, "FAIL").collect();
    assert!(
        failures[0].contains("sysctl user.max_user_namespaces"),
        "{doctor:?}"
    );
}

/// The lines of `doctor` that begin with a mark.
fn found<'a>(doctor: &'a Ended, mark: &'a str) -> impl Iterator<Item = &'a str> {
    doctor
        .stdout
        .lines()
        .filter(move |line| line.starts_with(mark))
}
