//! What would keep a server from starting, without starting it.

use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::SystemTime;

use super::chains::{ageing, load};
use super::listen::Listen;
use super::{AccessLogTo, ChainFiles, Config, ListenError, State, context};
use crate::secret::exposure;

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// With these, it does not start, or does not serve.
    pub problems: Vec<String>,
    /// It starts, but they are to be looked at.
    pub warnings: Vec<String>,
}

/// Whom a chain is for, and how its key signs.
struct Served<'a> {
    files: &'a ChainFiles,
    names: Vec<String>,
    /// OpenSSL's number of it, and the size of the key in bits.
    algorithm: Option<(i32, u32)>,
}

/// Looks at all that `config` needs of this machine. Nothing is listened on, and nothing is changed.
pub fn check(config: &Config, listen: &Listen, state: Option<&Path>) -> Findings {
    let mut findings = Findings::default();
    let mut served: Vec<Served<'_>> = Vec::new();
    for files in &config.chains {
        match load(files) {
            Ok(loaded) => {
                let ageing = ageing(&loaded.chain, SystemTime::now());
                findings.warnings.extend(ageing);
                let mut names = loaded.chain.names().to_vec();
                names.sort();
                let signs = loaded.chain.end_entity().public_key().ok();
                // Curves of one kind of key are told apart by their size.
                let algorithm = signs.map(|key| (key.id().as_raw(), key.bits()));
                let same = served
                    .iter()
                    .find(|other| other.names == names && other.algorithm == algorithm);
                if let Some(first) = same {
                    findings.warnings.push(format!(
                        "\"{}\" has the names and the algorithm of \"{}\": who has nothing from DNS gets the former alone; leave one out",
                        files.chain.display(),
                        first.files.chain.display()
                    ));
                }
                served.push(Served {
                    files,
                    names,
                    algorithm,
                });
            }
            Err(error) => findings.problems.push(error.to_string()),
        }
        findings.warnings.extend(exposure(&files.key));
    }
    let problems = &mut findings.problems;
    if let Err(error) = context(config) {
        problems.push(error.to_string());
    }
    match listen.check() {
        Ok(()) => {}
        // It may be one of systemd's when it is served, and is not now.
        Err(error @ ListenError::None) => findings.warnings.push(error.to_string()),
        Err(error) => problems.push(error.to_string()),
    }
    let metrics = config.metrics.map(Listen::Address);
    if let Some(Err(error)) = metrics.map(|metrics| metrics.check()) {
        problems.push(format!("--metrics: {error}"));
    }
    if let Some(AccessLogTo::File(path)) = &config.access_log {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        if !folder.unwrap_or(Path::new(".")).is_dir() {
            problems.push(format!(
                "can't write the access log \"{}\": there is no such folder",
                path.display()
            ));
        }
    }
    let limits = &config.limits;
    for (option, time) in [
        ("--handshake-timeout", limits.handshake),
        ("--idle-timeout", limits.idle),
    ] {
        if time.is_zero() {
            problems.push(format!(
                "{option} is zero: every connection would be closed at once"
            ));
        }
    }
    let own = config.protocol_backends.iter().map(|(_, backend)| backend);
    for backend in [&config.backend].into_iter().chain(own) {
        match backend.to_socket_addrs().map(|mut all| all.next()) {
            Ok(Some(address)) if *listen == Listen::Address(address) => problems.push(format!(
                "the backend {backend} is what is listened on: connections would go round"
            )),
            Ok(Some(_)) => {}
            Ok(None) => problems.push(format!("the backend {backend} has no address")),
            Err(error) => problems.push(format!("the backend {backend}: {error}")),
        }
    }
    if let Some(Err(error)) = state.map(State::check) {
        problems.push(error.to_string());
    }
    findings
}

#[cfg(test)]
mod tests;
