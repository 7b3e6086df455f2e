//! What would keep a server from starting, without starting it.

use std::fs::File;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::SystemTime;

use pqtlsad::server::PublicChain;

use super::chains::{ageing, inspect, unverifiable};
use super::listen::Listen;
use super::{Account, ChainFiles, Config, ListenError, ServeError, State, context};
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

impl<'a> Served<'a> {
    fn of(files: &'a ChainFiles, chain: &PublicChain) -> Served<'a> {
        let mut names = chain.names().to_vec();
        names.sort();
        let signs = chain.end_entity().public_key().ok();
        Served {
            files,
            names,
            // The size tells curves of one kind of key apart.
            algorithm: signs.map(|key| (key.id().as_raw(), key.bits())),
        }
    }

    fn is_like(&self, other: &Served<'_>) -> bool {
        other.names == self.names && other.algorithm == self.algorithm
    }
}

/// What whoever asks can't do again that was done when the server started, perhaps by root: a line
/// for each.
pub fn out_of_reach(config: &Config, name: &str) -> Vec<String> {
    let files = config
        .chains
        .iter()
        .flat_map(|files| [&files.chain, &files.key]);
    let unread = files.filter_map(|file| {
        let error = File::open(file).err()?;
        Some(format!(
            "\"{}\" can't be read by {name} ({error}): its renewal will not be taken",
            file.display()
        ))
    });
    let unwritten = config.access_log.iter().filter_map(|to| {
        let error = to.check().err()?;
        Some(format!(
            "the access log {to} can't be opened by {name} ({error}): after it is moved, it will not be begun anew"
        ))
    });
    unread.chain(unwritten).collect()
}

/// Looks at all that `config` needs of this machine, and as `user` will see it who has it when it
/// is served. Nothing is listened on, and nothing is changed.
pub fn check(
    config: &Config,
    listen: &Listen,
    state: Option<&Path>,
    user: Option<&Account>,
) -> Findings {
    let mut findings = Findings::default();
    check_chains(&config.chains, &mut findings);
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
    problems.extend(metrics_problem(config, listen));
    problems.extend(access_log_problem(config));
    problems.extend(limit_problems(config));
    problems.extend(backend_problems(config, listen));
    let look = || {
        let mut lines: Vec<_> = (config.chains.iter())
            .filter_map(|files| exposure(&files.key))
            .collect();
        if let Some(user) = user {
            lines.extend(out_of_reach(config, user.name()));
        }
        (lines, state.map_or(Ok(()), State::check))
    };
    let looked = user.map_or_else(|| Ok(look()), |user| user.sees(look));
    match looked {
        Ok((lines, state)) => {
            findings.warnings.extend(lines);
            problems.extend(state.err().map(|error| error.to_string()));
        }
        Err(error) => problems.push(error.to_string()),
    }
    findings
}

/// Each chain by itself, and then all of them together.
fn check_chains(all: &[ChainFiles], findings: &mut Findings) {
    let mut served: Vec<Served<'_>> = Vec::new();
    let mut chains = Vec::new();
    for files in all {
        match inspect(files) {
            Ok(loaded) => {
                let ageing = ageing(&loaded.chain, SystemTime::now());
                findings.warnings.extend(ageing);
                let own = Served::of(files, &loaded.chain);
                let same = served.iter().find(|other| own.is_like(other));
                if let Some(first) = same {
                    findings.warnings.push(format!(
                        "\"{}\" has the names and the algorithm of \"{}\": who has nothing from DNS gets the former alone; leave one out",
                        files.chain.display(),
                        first.files.chain.display()
                    ));
                }
                served.push(own);
                chains.push(loaded.chain);
            }
            Err(wrong) => {
                let problems = [Some(wrong.first), wrong.second].into_iter().flatten();
                let problems = problems.map(|error| error.to_string());
                findings.problems.extend(problems);
            }
        }
    }
    let chains: Vec<&PublicChain> = chains.iter().map(|chain| &**chain).collect();
    findings.warnings.extend(unverifiable(&chains));
}

fn metrics_problem(config: &Config, listen: &Listen) -> Option<String> {
    let metrics = config.metrics?;
    match *listen {
        Listen::Address(address) if overlap(address, metrics) => Some(format!(
            "--metrics: {metrics} is taken by what listens on {address}: name another port"
        )),
        _ => {
            let opened = Listen::Address(metrics).check();
            opened.err().map(|error| format!("--metrics: {error}"))
        }
    }
}

fn access_log_problem(config: &Config) -> Option<String> {
    if let Err(error) = config.check_access_log() {
        return Some(error.to_string());
    }
    let to = config.access_log.as_ref()?;
    let error = to.check().err()?;
    let to = to.clone();
    Some(ServeError::AccessLog { to, error }.to_string())
}

fn limit_problems(config: &Config) -> impl Iterator<Item = String> {
    let limits = &config.limits;
    let times = [
        ("--handshake-timeout", limits.handshake),
        ("--idle-timeout", limits.idle),
    ];
    let zero = times.into_iter().filter(|(_, time)| time.is_zero());
    zero.map(|(option, _)| format!("{option} is zero: every connection would be closed at once"))
}

fn backend_problems(config: &Config, listen: &Listen) -> impl Iterator<Item = String> {
    let own = config.protocol_backends.iter().map(|(_, backend)| backend);
    let backends = [&config.backend].into_iter().chain(own);
    backends.filter_map(
        |backend| match backend.to_socket_addrs().map(|mut all| all.next()) {
            Ok(Some(address)) if *listen == Listen::Address(address) => Some(format!(
                "the backend {backend} is what is listened on: connections would go round"
            )),
            Ok(Some(_)) => None,
            Ok(None) => Some(format!("the backend {backend} has no address")),
            Err(error) => Some(format!("the backend {backend}: {error}")),
        },
    )
}

/// Whether no two sockets can listen on these. One for all addresses of IPv6 takes IPv4's, too.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let takes = |one: IpAddr, other: IpAddr| {
        one == other || one.is_unspecified() && (one.is_ipv6() || other.is_ipv4())
    };
    let (first, second) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port() && one.port() != 0 && (takes(first, second) || takes(second, first))
}

#[cfg(test)]
mod tests;
