//! How a guest's kernel gets what its processes want.

use lastbyte_link::named;

use super::boot::{self, Grants};
use crate::kernel::{KernelInfo, Series};

/// How a guest's kernel gets the system calls and page faults of its processes, which are processes of the host. No row
/// may tell which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interception {
    /// The host turns them into signals (seccomp(2)), whose handler shares memory with the kernel: fewer
    /// switches between processes, and no copies of registers.
    Seccomp,
    /// The kernel traces its processes (ptrace(2)).
    Ptrace,
}

named!(Interception, "way to intercept calls", { Seccomp => "seccomp", Ptrace => "ptrace" });

impl Interception {
    /// The first series whose kernels can do without ptrace(2).
    const SECCOMP_SINCE: Series = Series {
        major: 6,
        minor: 16,
    };

    /// Whether a kernel has it.
    #[must_use]
    pub fn is_in(self, kernel: &KernelInfo) -> bool {
        self == Interception::Ptrace || has_seccomp(kernel)
    }

    /// What tells a kernel of it. Those that trace in any case would hand it to their init.
    pub(super) fn parameter(self, kernel: &KernelInfo) -> Option<&'static str> {
        has_seccomp(kernel).then_some(match self {
            Interception::Seccomp => "seccomp=on",
            Interception::Ptrace => "seccomp=off",
        })
    }
}

/// The way that a kernel has its processes intercepted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The way.
    pub way: Interception,
    /// Why it is this one.
    pub reason: String,
}

impl Grants {
    /// How this machine has a kernel's processes intercepted: the faster way where it can be had.
    ///
    /// # Errors
    ///
    /// What is missing, with the hint.
    pub fn interception(&self, kernel: &KernelInfo) -> Result<Chosen, String> {
        choose(kernel, boot::try_seccomp, &self.ptrace)
    }
}

fn choose(
    kernel: &KernelInfo,
    try_seccomp: impl FnOnce() -> Result<(), String>,
    ptrace: &Result<(), String>,
) -> Result<Chosen, String> {
    let traced = |reason: String| {
        let way = Interception::Ptrace;
        ptrace.clone().map(|()| Chosen { way, reason })
    };
    if !has_seccomp(kernel) {
        let since = Interception::SECCOMP_SINCE;
        return traced(format!("kernels have a faster way since Linux {since}"));
    }
    match try_seccomp() {
        Ok(()) => Ok(Chosen {
            way: Interception::Seccomp,
            reason: "it is faster than ptrace".to_owned(),
        }),
        Err(problem) => traced(format!("seccomp can't be had: {problem}")),
    }
}

fn has_seccomp(kernel: &KernelInfo) -> bool {
    let series = kernel.series();
    series.is_some_and(|series| series >= Interception::SECCOMP_SINCE)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Interception, choose};
    use crate::kernel::{KernelInfo, Origin, SourceInfo};

    fn kernel(version: &str) -> KernelInfo {
        KernelInfo {
            version: version.to_owned(),
            sha256: String::new(),
            source: SourceInfo {
                name: String::new(),
                sha256: String::new(),
                origin: Origin::File,
            },
            recipe_sha256: String::new(),
            config_sha256: String::new(),
            patches: Vec::new(),
            compiler: String::new(),
            built: String::new(),
            build_seconds: 0,
        }
    }

    #[test]
    fn the_faster_way_where_both_have_it() {
        let chosen = |kernel: &KernelInfo, seccomp: Result<(), &str>, ptrace: Result<(), &str>| {
            let (seccomp, ptrace) = (
                seccomp.map_err(str::to_owned),
                ptrace.map_err(str::to_owned),
            );
            choose(kernel, || seccomp, &ptrace).map(|chosen| (chosen.way, chosen.reason))
        };
        let (old, new, odd) = (kernel("6.12.117"), kernel("7.3.4"), kernel("odd"));
        let ways = |seccomp, ptrace| {
            [&old, &new, &odd].map(|kernel| {
                let chosen = chosen(kernel, seccomp, ptrace);
                chosen.map(|(way, _)| way)
            })
        };
        let (by_seccomp, by_ptrace) = (Ok(Interception::Seccomp), Ok(Interception::Ptrace));
        let traced = by_ptrace.clone();
        assert_eq!(
            ways(Ok(()), Ok(())),
            [traced.clone(), by_seccomp.clone(), traced.clone()]
        );
        let refused = Err("no ptrace".to_owned());
        assert_eq!(
            ways(Ok(()), Err("no ptrace")),
            [refused.clone(), by_seccomp, refused]
        );
        assert_eq!(
            ways(Err("a filter kills"), Ok(())),
            [traced.clone(), traced.clone(), traced]
        );
        assert_eq!(
            chosen(&new, Err("a filter kills"), Ok(())).unwrap().1,
            "seccomp can't be had: a filter kills"
        );
        // The kernel that knows no such parameter is not given one.
        assert_eq!(Interception::Ptrace.parameter(&old), None);
        assert_eq!(Interception::Ptrace.parameter(&new), Some("seccomp=off"));
    }
}
