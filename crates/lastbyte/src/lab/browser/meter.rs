//! Processor time that programs take, with all processes that they have started.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::unistd::Pid;

use crate::lab::sys;

/// What each process had taken at some time.
#[derive(Debug)]
pub(super) struct Meter(BTreeMap<Pid, Duration>);

impl Meter {
    /// What these and those below them have taken by now.
    pub(super) fn read(roots: &[Pid]) -> Meter {
        let parents = parents();
        let is_of_them = |process: Pid| {
            let line =
                std::iter::successors(Some(process), |process| parents.get(process).copied());
            line.take(parents.len())
                .any(|process| roots.contains(&process))
        };
        let processes = parents.keys().filter(|process| is_of_them(**process));
        let times = processes.filter_map(|process| {
            // One that ends meanwhile has no clock.
            Some((*process, sys::process_cpu_time(*process)?))
        });
        Meter(times.collect())
    }

    /// What has been taken since an earlier one. What ended between the two is not in it.
    pub(super) fn since(&self, earlier: &Meter) -> Duration {
        let taken = self.0.iter().map(|(process, time)| {
            let before = earlier.0.get(process).copied().unwrap_or_default();
            time.saturating_sub(before)
        });
        taken.sum()
    }
}

/// Who started each process of the machine.
fn parents() -> BTreeMap<Pid, Pid> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = folders.filter_map(|folder| {
        let process = folder.file_name().to_str()?.parse().ok()?;
        let status = fs::read(folder.path().join("stat")).ok()?;
        Some((Pid::from_raw(process), Pid::from_raw(parent(&status)?)))
    });
    processes.collect()
}

/// The parent in `PID (NAME) STATE PARENT ...`, whatever the name.
fn parent(status: &[u8]) -> Option<i32> {
    let status = String::from_utf8_lossy(status);
    let (_, behind) = status.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use nix::unistd::Pid;

    use super::{Meter, parent};

    #[test]
    fn a_parent_is_behind_any_name() {
        assert_eq!(parent(b"12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent(b"12 (a) R 9 (\xff) S 7 12"), Some(7));
        assert_eq!(parent(b"12 (sh"), None);
        assert_eq!(parent(b""), None);
    }

    #[test]
    fn what_ended_and_what_began_since() {
        let meter = |times: &[(i32, u64)]| {
            let times = times.iter();
            Meter(
                times
                    .map(|(process, ms)| (Pid::from_raw(*process), Duration::from_millis(*ms)))
                    .collect::<BTreeMap<_, _>>(),
            )
        };
        let before = meter(&[(1, 10), (2, 20)]);
        let now = meter(&[(1, 13), (3, 4)]);
        assert_eq!(now.since(&before), Duration::from_millis(7));
        assert_eq!(before.since(&before), Duration::ZERO);
    }

    /// A shell that has started another one, which has computed.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn what_a_program_has_started_counts() {
        let computes = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; read wait";
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c \"$0\"; true", computes])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        let Meter(times) = Meter::read(&[Pid::from_raw(shell.id() as i32)]);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(times.len(), 2, "{times:?}");
        // The one below it was started later, and has computed.
        let (_, below) = times.last_key_value().unwrap();
        assert!(
            *below > times[&Pid::from_raw(shell.id() as i32)],
            "{times:?}"
        );
    }
}
