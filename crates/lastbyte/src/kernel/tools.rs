//! What a build needs of the system.

use nix::unistd::geteuid;

use super::KernelError;
use super::process::{AtInterrupt, Runner, ToolError};

/// A program, and the package of Debian that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) program: &'static str,
    pub(super) package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

pub(super) const DPKG_DEB: Tool = tool("dpkg-deb", "dpkg");
pub(super) const GZIP: Tool = tool("gzip", "gzip");
pub(super) const TAR: Tool = tool("tar", "tar");
pub(super) const XZ: Tool = tool("xz", "xz-utils");

/// What Linux is built with.
pub(super) const BUILD: [Tool; 8] = [
    tool("patch", "patch"),
    tool("make", "make"),
    tool("gcc", "gcc"),
    tool("ld", "binutils"),
    tool("strip", "binutils"),
    tool("flex", "flex"),
    tool("bison", "bison"),
    tool("bc", "bc"),
];

/// Not a program; looked for where there is a compiler.
const LIBC_HEADERS: Tool = tool("the headers of libc", "libc6-dev");

/// Installs what is missing of `needed` if Lastbyte may, and says otherwise how to.
pub(super) fn ensure(
    runner: &Runner<'_>,
    needed: &[Tool],
    say: impl FnOnce(&str),
) -> Result<(), KernelError> {
    let missing = missing(runner, needed)?;
    if missing.is_empty() {
        return Ok(());
    }
    let has_apt = runner.has("apt-get");
    let mut problem = None;
    if has_apt && geteuid().is_root() {
        say(&format!("installing {}", list(&missing)));
        problem = match install(runner, &missing) {
            Ok(()) => None,
            Err(ToolError::Failed(problem)) => Some(problem),
            Err(error) => return Err(failed(runner, error)),
        };
    }
    let missing = self::missing(runner, needed)?;
    if missing.is_empty() {
        return Ok(());
    }
    let packages = packages(&missing).join(" ");
    let hint = match (has_apt, problem) {
        (true, None) => format!("run `sudo apt-get install {packages}`"),
        (true, Some(problem)) => {
            format!("`apt-get install {packages}` did not help: {problem}")
        }
        (false, _) => "install what your system calls so".to_owned(),
    };
    Err(KernelError::Tools {
        missing: format!("{} {}", list(&missing), be(&missing)),
        hint,
    })
}

fn missing(runner: &Runner<'_>, needed: &[Tool]) -> Result<Vec<Tool>, KernelError> {
    let mut missing: Vec<_> = needed.to_vec();
    missing.retain(|tool| !runner.has(tool.program));
    // Some of libc's and some of Linux's, as both come with the package.
    let mut headers = runner.tool("gcc");
    headers.args(["-E", "-o", "/dev/null", "-x", "c", "/dev/null"]);
    headers.args(["-include", "stdio.h", "-include", "linux/types.h"]);
    if runner.has("gcc") {
        match runner.run(&mut headers) {
            Ok(()) => {}
            Err(ToolError::Failed(_)) => missing.push(LIBC_HEADERS),
            Err(error) => return Err(failed(runner, error)),
        }
    } else {
        missing.push(LIBC_HEADERS);
    }
    Ok(missing)
}

fn install(runner: &Runner<'_>, tools: &[Tool]) -> Result<(), ToolError> {
    let apt = |arguments: &[&str]| {
        let mut command = runner.tool("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        // Somebody else may be installing something.
        command.args(["--quiet", "--yes", "-o", "DPkg::Lock::Timeout=120"]);
        runner.run_with(command.args(arguments), AtInterrupt::Finish, |_| {})
    };
    let mut install = vec!["install", "--no-install-recommends"];
    install.extend(packages(tools));
    match apt(&install) {
        // The lists of packages may be absent or too old.
        Err(ToolError::Failed(_)) => {
            // Some may have failed only.
            let _ = apt(&["update"]);
            apt(&install)
        }
        other => other,
    }
}

fn packages(tools: &[Tool]) -> Vec<&'static str> {
    let mut packages: Vec<_> = tools.iter().map(|tool| tool.package).collect();
    packages.dedup();
    packages
}

/// `a, b and c`.
fn list(tools: &[Tool]) -> String {
    let names: Vec<_> = tools.iter().map(|tool| tool.program).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn be(tools: &[Tool]) -> &'static str {
    match tools {
        [LIBC_HEADERS] | [_, _, ..] => "are",
        _ => "is",
    }
}

fn failed(runner: &Runner<'_>, error: ToolError) -> KernelError {
    KernelError::from_tool("looking for tools", runner.log(), error)
}
