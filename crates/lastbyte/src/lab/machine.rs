//! The machine: what results depend on, and what the live engine needs of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::mman::{MlockAllFlags, mlockall};

use lastbyte_link::Bytes;
use lastbyte_tls::{StackName, version};

use super::cores::available_cpus;
use super::surroundings::{SYSCTLS, Sockets, Surroundings};
use super::{LabError, Privilege, sys};
use crate::results::{Environment, Host, QUIC, command_of};
use crate::study::{Cell, Congestion, EngineName};

/// Where results of the live engine come from.
pub fn environment(arguments: &[OsString]) -> Environment {
    let stacks = StackName::ALL.into_iter();
    let stacks = stacks.filter_map(|stack| Some((stack.name(), version(stack)?)));
    let versions = [
        ("lastbyte", env!("CARGO_PKG_VERSION").to_owned()),
        (QUIC, lastbyte_quic::VERSION.to_owned()),
    ];
    let sysctls = SYSCTLS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Environment {
        engine: EngineName::Live,
        command: command_of(arguments),
        versions: (versions.into_iter().chain(stacks))
            .map(|(name, version)| (name.to_owned(), version))
            .collect(),
        kernel: kernel(),
        sysctls: sysctls.collect::<BTreeMap<_, _>>(),
        host: Host {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_default(),
            cpus: available_cpus().len() as u32,
            memory_bytes: memory_bytes(),
        },
    }
}

/// One thing that the live engine needs or is better for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// What was found.
    pub state: State,
}

impl Finding {
    /// Whether the engine can't run for it.
    pub fn is_missing(&self) -> bool {
        matches!(self.state, State::Missing(_))
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be, in a few words.
    Good(String),
    /// Results are noisier for it, with the hint.
    Poor(String),
    /// The live engine can't run, with the hint.
    Missing(String),
}

/// Looks at all that the live engine needs. `privilege` is what [`super::acquire`]
/// answered.
pub fn examine(privilege: &Result<Privilege, LabError>) -> Vec<Finding> {
    let mut findings = vec![
        Finding {
            what: "kernel",
            state: State::Good(kernel()),
        },
        Finding {
            what: "processors",
            state: processors(),
        },
        Finding {
            what: "network namespaces",
            state: match privilege {
                Ok(Privilege::Root) => State::Good("as root".to_owned()),
                Ok(Privilege::UserNamespace) => {
                    State::Good("in a user namespace, without root".to_owned())
                }
                Err(LabError::Namespace(error)) => State::Missing(format!(
                    "{error}: run as root, or allow user namespaces \
                     (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, \
                     on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0)"
                )),
                Err(error) => State::Missing(error.to_string()),
            },
        },
    ];
    if privilege.is_ok() {
        findings.push(Finding {
            what: "TUN devices",
            state: match Surroundings::new(&Cell::default(), Sockets::Ours) {
                Ok(_) => State::Good("/dev/net/tun".to_owned()),
                Err(LabError::Tun(error)) if error.kind() == io::ErrorKind::NotFound => {
                    State::Missing("/dev/net/tun is not there: modprobe tun".to_owned())
                }
                Err(LabError::Tun(error)) => State::Missing(format!(
                    "/dev/net/tun: {error}: run as root, or chmod 0666 /dev/net/tun"
                )),
                Err(error) => State::Missing(error.to_string()),
            },
        });
        findings.push(Finding {
            what: "congestion control",
            state: congestion(),
        });
    }
    findings.push(Finding {
        what: "real-time scheduling",
        state: real_time(),
    });
    findings.push(Finding {
        what: "locked memory",
        state: match mlockall(MlockAllFlags::MCL_CURRENT) {
            Ok(()) => State::Good("allowed".to_owned()),
            Err(error) => State::Poor(format!("{error}: run as root, or raise ulimit -l")),
        },
    });
    findings.push(Finding {
        what: "waking up in time",
        state: wake_up(),
    });
    findings
}

fn processors() -> State {
    match available_cpus().len() {
        0 | 1 => State::Poor(
            "one: the emulator and the endpoints share it; use a machine with two".to_owned(),
        ),
        count => State::Good(count.to_string()),
    }
}

fn congestion() -> State {
    let algorithms = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr];
    let (there, missing): (Vec<_>, Vec<_>) = algorithms
        .into_iter()
        .partition(|algorithm| sys_congestion(*algorithm));
    let names = |algorithms: Vec<Congestion>| {
        let names: Vec<_> = algorithms.iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    if missing.contains(&Congestion::Cubic) {
        return State::Missing("cubic is not there: modprobe tcp_cubic".to_owned());
    }
    let there = names(there);
    if missing.is_empty() {
        State::Good(there)
    } else {
        State::Good(format!("{there}; not there: {}", names(missing)))
    }
}

fn sys_congestion(algorithm: Congestion) -> bool {
    super::socket::open_socket(algorithm).is_ok()
}

fn real_time() -> State {
    // A thread of its own, which ends at once: the caller keeps its scheduling.
    match thread::spawn(|| sys::schedule_fifo(1)).join() {
        Ok(Ok(())) => State::Good("SCHED_FIFO".to_owned()),
        Ok(Err(error)) => State::Poor(format!("{error}: run as root, or raise ulimit -r")),
        Err(_) => State::Poor("could not be tried".to_owned()),
    }
}

/// How late a sleeping thread wakes up: what the emulator can't be better than.
fn wake_up() -> State {
    const SLEEP: Duration = Duration::from_millis(1);
    const LIMIT: Duration = Duration::from_micros(500);
    let late = thread::spawn(|| {
        let _ = nix::sys::prctl::set_timerslack(1);
        let _ = sys::schedule_fifo(1);
        let mut late: Vec<_> = (0..200)
            .map(|_| {
                let start = Instant::now();
                thread::sleep(SLEEP);
                start.elapsed().saturating_sub(SLEEP)
            })
            .collect();
        late.sort_unstable();
        late.get(late.len() * 99 / 100).copied().unwrap_or_default()
    })
    .join()
    .unwrap_or_default();
    let found = format!("99 of 100 sleeps of 1 ms end at most {late:.0?} late");
    if late > LIMIT {
        State::Poor(format!("{found}: close other programs"))
    } else {
        State::Good(found)
    }
}

pub(super) fn kernel() -> String {
    let part = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", part("ostype").trim(), part("osrelease").trim())
}

fn memory_bytes() -> u64 {
    memory("MemTotal").map_or(0, |bytes| bytes.0)
}

/// What programs may still use, as the kernel reckons, if it says so.
pub(super) fn available_memory() -> Option<Bytes> {
    memory("MemAvailable")
}

fn memory(name: &str) -> Option<Bytes> {
    let value = field("/proc/meminfo", name)?;
    let kibibytes: u64 = value.split(' ').next()?.parse().ok()?;
    Some(Bytes(kibibytes.saturating_mul(1024)))
}

/// The first field of that name in a file of `name: value` lines.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}
