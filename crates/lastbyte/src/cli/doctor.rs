//! `lastbyte doctor`.

use std::fmt::Write;

use super::{Failure, print};
use crate::kernel;
use crate::lab::{self, Finding, State};

pub(super) fn run() -> Result<(), Failure> {
    // First of all: it needs a process with one thread.
    let live = lab::examine(&lab::acquire());
    let mut text = String::new();
    let live = tell(&mut text, "live", &live);
    text.push('\n');
    let virtual_engine = tell(&mut text, "virtual", &examine_virtual());
    text.push('\n');
    add(&mut text, &dns_servers());
    if !live && !virtual_engine {
        print(&text)?;
        return Err(Failure::Machine(
            "this machine can't run an engine yet: mend the lines marked FAIL of one of them"
                .to_owned(),
        ));
    }
    print(&text)
}

/// What the virtual engine needs.
fn examine_virtual() -> Vec<Finding> {
    let processes = Finding {
        what: "kernels as processes",
        state: match lab::can_boot_kernels() {
            Ok(()) => State::Good("they can run here".to_owned()),
            Err(problem) => State::Missing(problem),
        },
    };
    let kernel = Finding {
        what: "its kernel",
        state: match kernel::find() {
            Ok(Some(kernel)) => State::Good(format!("Linux {}", kernel.info.version)),
            Ok(None) => State::Missing("not built: run `lastbyte kernel build`".to_owned()),
            Err(error) => State::Missing(error.to_string()),
        },
    };
    vec![processes, kernel]
}

/// What arms need whose certificates come through DNS, and no others.
fn dns_servers() -> Finding {
    Finding {
        what: "DNS servers",
        state: match lab::find_dns_programs() {
            Ok(programs) => {
                let programs = programs.map(|program| program.display().to_string());
                State::Good(programs.join(", "))
            }
            Err(error) => State::Poor(error.to_string()),
        },
    }
}

/// Adds what was found of an engine's needs, and whether it can run.
fn tell(text: &mut String, engine: &str, findings: &[Finding]) -> bool {
    for finding in findings {
        add(text, finding);
    }
    let missing = |finding: &Finding| matches!(finding.state, State::Missing(_));
    let runs = !findings.iter().any(missing);
    let can = if runs { "can" } else { "can't" };
    let _ = writeln!(text, "This machine {can} run the {engine} engine.");
    runs
}

fn add(text: &mut String, finding: &Finding) {
    let (mark, found) = match &finding.state {
        State::Good(found) => ("ok  ", found),
        State::Poor(found) => ("poor", found),
        State::Missing(found) => ("FAIL", found),
    };
    // Writing to a String can't fail.
    let _ = writeln!(text, "{mark}  {:<22} {found}", finding.what);
}
