//! `lastbyte doctor`.

use std::fmt::Write;

use super::{Failure, engine, print};
use lastbyte::kernel::{self, Kernel};
use lastbyte::lab::{self, Addresses, Finding, Interception, MemoryFolder, SHARED_MEMORY, State};

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
    let grants = lab::can_boot_kernels();
    let mut findings = match &grants {
        Ok(grants) => vec![
            Finding {
                what: "kernels as processes",
                state: State::Good(match grants.addresses {
                    Addresses::Fixed => "they can run here".to_owned(),
                    Addresses::Random => "they can run here, without personality(2), which is \
                                          refused: rows are the same"
                        .to_owned(),
                }),
            },
            Finding {
                what: "their memory",
                state: describe(&grants.memory),
            },
        ],
        Err(problem) => vec![Finding {
            what: "kernels as processes",
            state: State::Missing(problem.clone()),
        }],
    };
    let kernel = kernel::find();
    let mut way = None;
    if let (Ok(grants), Ok(Some(kernel))) = (&grants, &kernel) {
        let chosen = grants.interception(&kernel.info);
        way = chosen.as_ref().ok().map(|chosen| chosen.way);
        findings.push(Finding {
            what: "its system calls",
            state: match chosen {
                Ok(chosen) => State::Good(format!("by {}: {}", chosen.way, chosen.reason)),
                Err(problem) => State::Missing(problem),
            },
        });
    }
    findings.push(Finding {
        what: "its kernel",
        state: match (kernel, way) {
            (Ok(Some(kernel)), Some(way)) => try_boot(kernel, way),
            (Ok(Some(kernel)), None) => State::Good(format!("Linux {}", kernel.info.version)),
            (Ok(None), _) => State::Missing(format!("not built: run {}", kernel::GET)),
            (Err(error), _) => State::Missing(error.to_string()),
        },
    });
    findings
}

fn try_boot(kernel: Kernel, way: Interception) -> State {
    let version = kernel.info.version.clone();
    let booted = engine::virtual_engine(Box::new(kernel), way, &[]).map_err(|failure| {
        let message = failure.message().unwrap_or_default();
        message.to_owned()
    });
    match booted.and_then(|engine| engine.try_boot()) {
        Ok(()) => State::Good(format!("Linux {version} boots")),
        Err(problem) => State::Missing(format!("Linux {version} does not boot: {problem}")),
    }
}

fn describe(memory: &MemoryFolder) -> State {
    let path = memory.path.display();
    match &memory.instead {
        None => State::Good(path.to_string()),
        Some(why) => State::Poor(format!(
            "{path}, as {why}: mount {SHARED_MEMORY} with exec and 256 MB for each processor \
             (docker run --tmpfs {SHARED_MEMORY}:exec,size=1g)"
        )),
    }
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
    let runs = !findings.iter().any(Finding::is_missing);
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
