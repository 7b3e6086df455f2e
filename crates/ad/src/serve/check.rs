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

/// Looks at all that `config` needs of this machine. Nothing is listened on, and nothing is changed.
pub fn check(config: &Config, listen: &Listen, state: Option<&Path>) -> Findings {
    let mut findings = Findings::default();
    let mut served: Vec<(&ChainFiles, Vec<String>, Option<(i32, u32)>)> = Vec::new();
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
                    .find(|(_, others, other)| *others == names && *other == algorithm);
                if let Some((first, ..)) = same {
                    findings.warnings.push(format!(
                        "\"{}\" has the names and the algorithm of \"{}\": who has nothing from DNS gets the former alone; leave one out",
                        files.chain.display(),
                        first.chain.display()
                    ));
                }
                served.push((files, names, algorithm));
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
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use lastbyte_pki::test_chains;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_would_keep_it_from_starting_is_told_and_nothing_is_made() {
        let folder = TempDir::new().unwrap();
        let made = test_chains::for_name("server.example").unwrap();
        let certificates = made.certificates().iter();
        let pem: Vec<_> = certificates.map(|one| one.to_pem().unwrap()).collect();
        let files = ChainFiles {
            chain: folder.path().join("chain.pem"),
            key: folder.path().join("key.pem"),
        };
        fs::write(&files.chain, pem.concat()).unwrap();
        fs::write(&files.key, made.key().private_key_to_pem_pkcs8().unwrap()).unwrap();
        let good = Config::new(vec![files.clone()], "127.0.0.1:1");
        let address = |text: &str| Listen::Address(text.parse().unwrap());
        let listen = address("127.0.0.1:0");
        let state = folder.path().join("not/there");
        let problems = check(&good, &listen, Some(&state)).problems;
        assert!(problems.is_empty(), "{problems:?}");
        assert!(!folder.path().join("not").exists());

        let told = |change: &dyn Fn(&mut Config), listen: &Listen| {
            let mut config = good.clone();
            change(&mut config);
            let Findings { problems, warnings } = check(&config, listen, None);
            [problems, warnings].map(|lines| lines.join("; "))
        };
        for (change, part) in [
            (
                &(|config: &mut Config| {
                    let file = folder.path().join("no/access.log");
                    config.access_log = Some(AccessLogTo::File(file));
                }) as &dyn Fn(&mut Config),
                "there is no such folder",
            ),
            (
                &|config| config.metrics = Some("192.0.2.1:1".parse().unwrap()),
                "--metrics: can't listen on 192.0.2.1:1",
            ),
            (
                &|config| config.groups = "X25519:nosuch".to_owned(),
                "--groups: there is no group \"nosuch\" here",
            ),
            (
                &|config| config.limits.idle = Duration::ZERO,
                "--idle-timeout is zero",
            ),
            (
                &|config| config.limits.handshake = Duration::ZERO,
                "--handshake-timeout is zero",
            ),
        ] {
            let [problems, _] = told(change, &listen);
            assert!(problems.contains(part), "{problems}");
        }
        let [problems, _] = told(&|_| {}, &address("127.0.0.1:1"));
        assert!(problems.contains("is what is listened on"), "{problems}");
        let [_, warnings] = told(&|config| config.chains.push(files.clone()), &listen);
        assert!(warnings.contains("has the names and the algorithm of"));
        let [problems, warnings] = told(&|_| {}, &Listen::Systemd);
        assert!(problems.is_empty() && warnings.contains("opened no socket"));
    }
}
