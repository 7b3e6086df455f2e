//! What would keep a server from starting, without starting it.

use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::SystemTime;

use super::chains::{ageing, load};
use super::listen::Listen;
use super::{Config, State, context};
use crate::secret::exposure;

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// With these, it does not start, or does not serve.
    pub problems: Vec<String>,
    /// It starts, but they are to be looked at.
    pub warnings: Vec<String>,
}

/// Looks at all that `config` needs of this machine. Nothing is listened on, and nothing is changed but that the folder
/// `state` is made.
pub fn check(config: &Config, listen: &Listen, state: Option<&Path>) -> Findings {
    let mut findings = Findings::default();
    for files in &config.chains {
        match load(files) {
            Ok(loaded) => {
                let ageing = ageing(&loaded.chain, SystemTime::now());
                findings.warnings.extend(ageing);
            }
            Err(error) => findings.problems.push(error.to_string()),
        }
        findings.warnings.extend(exposure(&files.key));
    }
    let problems = &mut findings.problems;
    if let Err(error) = context(config) {
        problems.push(format!("can't set TLS up: {error}"));
    }
    if let Err(error) = listen.check() {
        problems.push(error.to_string());
    }
    let own = config.protocol_backends.iter().map(|(_, backend)| backend);
    for backend in [&config.backend].into_iter().chain(own) {
        match backend.to_socket_addrs().map(|mut all| all.next()) {
            Ok(Some(_)) => {}
            Ok(None) => problems.push(format!("the backend {backend} has no address")),
            Err(error) => problems.push(format!("the backend {backend}: {error}")),
        }
    }
    if let Some(Err(error)) = state.map(State::open) {
        problems.push(error.to_string());
    }
    findings
}
