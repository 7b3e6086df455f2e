//! The servers that people run, and the browser that loads pages: where they are, and what they can
//! do.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use lastbyte_sizes::{Group, KeyAlgorithm};
use serde::{Deserialize, Serialize};

use super::PageError;
use super::servers::GO_SERVER;
use crate::kernel::digest::sha256;
use crate::lab::lock::lock;
use crate::lab::process::installed;
use crate::study::{Arm, ArmChain, Cell, Measure, Server, Study};

/// Names another browser than the one that is installed.
const BROWSER_VARIABLE: &str = "LASTBYTE_CHROMIUM";
/// Where Debian has the program that its `chromium`, a script, starts. A guest has no scripts.
const BROWSER: &str = "/usr/lib/chromium/chromium";

/// Programs, by their paths, with what they say that they are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::lab) struct Programs {
    /// For page loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::lab) browser: Option<BrowserPrograms>,
    pub(in crate::lab) server: PathBuf,
    /// By name, for the environment of rows.
    pub(in crate::lab) versions: BTreeMap<String, String>,
}

/// A browser, and what has it trust a root.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::lab) struct BrowserPrograms {
    pub(in crate::lab) browser: PathBuf,
    pub(in crate::lab) certutil: PathBuf,
}

/// What connects to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    Browser,
    /// Our own client.
    Ours,
}

impl Caller {
    fn of(has_page: bool) -> Caller {
        if has_page {
            Caller::Browser
        } else {
            Caller::Ours
        }
    }
}

/// What was found, by arm: to ask programs what they are takes longer than much of what they are
/// needed for.
#[derive(Debug, Default)]
pub(in crate::lab) struct Finder(Mutex<HashMap<(String, Caller), Programs>>);

impl Finder {
    /// The programs that an arm needs in a cell; none if its server is ours. Where a server has to
    /// be compiled, `cache` keeps it.
    ///
    /// # Errors
    ///
    /// What is not there, or too old for the arm, with the hint.
    pub(in crate::lab) fn find(
        &self,
        arm: &Arm,
        cell: &Cell,
        cache: &Path,
    ) -> Result<Option<Programs>, PageError> {
        if !arm.server.is_foreign() {
            return Ok(None);
        }
        let caller = Caller::of(cell.page.is_some());
        // Workers wait for each other: the first one looks, and compiles.
        let mut programs = lock(&self.0);
        Ok(Some(match programs.entry((arm.label.clone(), caller)) {
            Entry::Occupied(found) => found.get().clone(),
            Entry::Vacant(unknown) => unknown.insert(find(arm, caller, cache)?).clone(),
        }))
    }

    /// Those that a study needs.
    ///
    /// # Errors
    ///
    /// As of [`Finder::find`], with the arm.
    pub(in crate::lab) fn find_all(&self, study: &Study, cache: &Path) -> Result<(), PageError> {
        for Measure { experiment, .. } in &study.measures {
            // All of them have a page, or none has.
            let Some(cell) = experiment.cells.first() else {
                continue;
            };
            for arm in &experiment.arms {
                let found = self.find(arm, cell, cache);
                found.map_err(|error| error.of_arm(arm))?;
            }
        }
        Ok(())
    }
}

fn find(arm: &Arm, caller: Caller, cache: &Path) -> Result<Programs, PageError> {
    let needs = Needs::of(arm);
    let mut versions = BTreeMap::new();
    let browser = match caller {
        Caller::Ours => None,
        Caller::Browser => {
            let (browser, version) = browser(needs)?;
            versions.insert("browser".to_owned(), version);
            Some(browser)
        }
    };
    let (server, version) = server(arm.server, needs, cache)?;
    versions.insert(arm.server.name().to_owned(), version);
    Ok(Programs {
        browser,
        server,
        versions,
    })
}

/// The browser, and what it says that it is.
fn browser(needs: Needs) -> Result<(BrowserPrograms, String), PageError> {
    let browser = match env::var_os(BROWSER_VARIABLE) {
        Some(named) if !named.is_empty() => PathBuf::from(named),
        _ => PathBuf::from(BROWSER),
    };
    if !browser.exists() {
        return Err(PageError::NoBrowser(browser));
    }
    let certutil = installed("certutil").ok_or(PageError::NotInstalled {
        by: "a page load",
        program: "certutil",
        hint: "install it with `apt-get install libnss3-tools`",
    })?;
    let browser_version = first_line(Command::new(&browser).arg("--version"))
        .ok_or_else(|| PageError::NoBrowser(browser.clone()))?;
    let number = first_number(&browser_version);
    if needs.ml_dsa && number.is_none_or(|number| number < [BROWSER_WITH_ML_DSA, 0]) {
        return Err(PageError::TooOld {
            program: browser.display().to_string(),
            version: browser_version,
            what: "ML-DSA",
            least: format!("Chromium {BROWSER_WITH_ML_DSA}"),
        });
    }
    Ok((BrowserPrograms { browser, certutil }, browser_version))
}

/// The first Chromium that offers ML-DSA by itself.
const BROWSER_WITH_ML_DSA: u32 = 151;

/// What of an arm is newer than some TLS.
#[derive(Clone, Copy)]
struct Needs {
    /// The group, if it has ML-KEM.
    ml_kem: Option<Group>,
    ml_dsa: bool,
}

impl Needs {
    fn of(arm: &Arm) -> Needs {
        let is_ml_dsa = |key: KeyAlgorithm| key.name().starts_with("ml-dsa");
        Needs {
            ml_kem: Some(arm.group).filter(|group| group.name().contains("MLKEM")),
            ml_dsa: match &arm.chain {
                ArmChain::Made(spec) => [spec.leaf, spec.ca].into_iter().any(is_ml_dsa),
                ArmChain::Pem(_) => false,
            },
        }
    }

    fn newest(self) -> Option<&'static str> {
        match (self.ml_dsa, self.ml_kem) {
            (true, _) => Some("ML-DSA"),
            (false, group) => group.map(Group::name),
        }
    }
}

/// The program of a server, and what it says that it is.
fn server(server: Server, needs: Needs, cache: &Path) -> Result<(PathBuf, String), PageError> {
    const OPENSSL_WITH_BOTH: [u32; 2] = [3, 5];
    let too_old = |program: &Path, version: &str, least: String| {
        needs.newest().map(|what| PageError::TooOld {
            program: program.display().to_string(),
            version: version.to_owned(),
            what,
            least,
        })
    };
    match server {
        Server::Lastbyte => Err(PageError::OURS),
        Server::Node => {
            let cached = cache.join("tools/peers/bin/node");
            let node = chosen("LASTBYTE_NODE", Some(cached), "node").ok_or(PageError::NotInstalled {
                by: "server=node",
                program: "node",
                hint: "install Node.js 24 or newer, or name it in LASTBYTE_NODE; scripts/interop has one",
            })?;
            let print = "process.version + ' (OpenSSL ' + process.versions.openssl + ')'";
            let version = first_line(Command::new(&node).args(["-p", print])).unwrap_or_default();
            let openssl = version.split("OpenSSL ").nth(1).and_then(first_number);
            if openssl.is_none_or(|openssl| openssl < OPENSSL_WITH_BOTH)
                && let Some(error) = too_old(&node, &version, "OpenSSL 3.5 in it".to_owned())
            {
                return Err(error);
            }
            Ok((node, version))
        }
        Server::Nginx => {
            let nginx = chosen("LASTBYTE_NGINX", None, "nginx").ok_or(PageError::NotInstalled {
                by: "server=nginx",
                program: "nginx",
                hint: "install it with `apt-get install nginx`, or name it in LASTBYTE_NGINX",
            })?;
            let output = Command::new(&nginx).arg("-V").output().ok();
            let output = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
            let output = output.unwrap_or_default();
            let word = |before: &str| {
                let after = output.split(before).nth(1)?;
                after.split_whitespace().next()
            };
            let openssl = word("built with OpenSSL ").unwrap_or("unknown");
            let number = word("nginx/").unwrap_or("unknown");
            let version = format!("{number} (OpenSSL {openssl})");
            if first_number(openssl).is_none_or(|openssl| openssl < OPENSSL_WITH_BOTH)
                && let Some(error) = too_old(&nginx, &version, "OpenSSL 3.5 in it".to_owned())
            {
                return Err(error);
            }
            Ok((nginx, version))
        }
        Server::Caddy => {
            let caddy = chosen("LASTBYTE_CADDY", None, "caddy").ok_or(PageError::NotInstalled {
                by: "server=caddy",
                program: "caddy",
                hint: "install it with `apt-get install caddy`, or name it in LASTBYTE_CADDY",
            })?;
            let version = first_line(Command::new(&caddy).arg("version")).unwrap_or_default();
            if needs.ml_dsa {
                return Err(PageError::Never {
                    program: caddy.display().to_string(),
                    version,
                    what: "ML-DSA",
                });
            }
            // It names groups itself.
            if first_number(&version).is_none_or(|caddy| caddy < [2, 10])
                && let Some(error) = too_old(&caddy, &version, "Caddy 2.10".to_owned())
            {
                return Err(error);
            }
            Ok((caddy, version))
        }
        Server::Go => {
            let cached = cache.join("tools/peers/bin/go");
            let go = chosen("LASTBYTE_GO", Some(cached), "go").ok_or(PageError::NotInstalled {
                by: "server=go",
                program: "go",
                hint: "its server is compiled when it is needed: install Go 1.27, or name it in LASTBYTE_GO; \
                       scripts/interop has one",
            })?;
            let version = first_line(Command::new(&go).arg("version")).unwrap_or_default();
            let number = version.split("go1.").nth(1).and_then(first_whole);
            let least = if needs.ml_dsa { 27 } else { 24 };
            if number.is_none_or(|number| number < least)
                && let Some(error) = too_old(&go, &version, format!("Go 1.{least}"))
            {
                return Err(error);
            }
            Ok((compiled(&go, &version, cache)?, version))
        }
    }
}

/// A program that a variable names, or else that is in the cache, or else that is installed.
fn chosen(variable: &str, cached: Option<PathBuf>, program: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).filter(|named| !named.is_empty());
    if let Some(named) = named.map(PathBuf::from) {
        return named.exists().then_some(named);
    }
    let on_path = || {
        let path = env::var_os("PATH")?;
        let mut places = env::split_paths(&path).map(|place| place.join(program));
        places.find(|place| place.exists())
    };
    (cached.filter(|cached| cached.exists()))
        .or_else(on_path)
        .or_else(|| installed(program))
}

/// The server that is written in Go, compiled once for each version of both.
fn compiled(go: &Path, version: &str, cache: &Path) -> Result<PathBuf, PageError> {
    let failed = |reason: String| PageError::Start {
        program: "go".to_owned(),
        reason,
    };
    let folder = cache.join("pages");
    let digest = sha256(format!("{version}\n{GO_SERVER}").as_bytes());
    let name = digest.get(..16).unwrap_or(&digest);
    let program = folder.join(format!("go-{name}"));
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&folder).map_err(PageError::Write)?;
    let place = tempfile::tempdir_in(&folder).map_err(PageError::Write)?;
    let source = place.path().join("main.go");
    fs::write(&source, GO_SERVER).map_err(PageError::Write)?;
    let made = place.path().join("server");
    let output = Command::new(go)
        .args(["build", "-trimpath", "-o"])
        .args([&made, &source])
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", folder.join("go-cache"))
        .current_dir(place.path())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(failed(
            errors
                .lines()
                .last()
                .unwrap_or("it said nothing")
                .to_owned(),
        ));
    }
    fs::rename(&made, &program).map_err(PageError::Write)?;
    Ok(program)
}

/// The first line that a program prints, if it runs.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(|line| line.trim().to_owned())
}

/// `156.0` of `Chromium 156.0.8078.79 built on Debian`.
fn first_number(text: &str) -> Option<[u32; 2]> {
    let mut parts = text
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .splitn(3, |c: char| !c.is_ascii_digit());
    Some([
        parts.next()?.parse().ok()?,
        parts.next().and_then(|part| part.parse().ok()).unwrap_or(0),
    ])
}

fn first_whole(text: &str) -> Option<u32> {
    first_number(text).map(|[number, _]| number)
}

#[cfg(test)]
mod tests {
    use super::first_number;

    #[test]
    fn versions_are_read() {
        assert_eq!(first_number("Chromium 156.0.8078.79 built"), Some([156, 0]));
        assert_eq!(first_number("3.5.7"), Some([3, 5]));
        assert_eq!(first_number("v24.19.0 (OpenSSL 3.5.7)"), Some([24, 19]));
        assert_eq!(first_number("27.3 linux/amd64"), Some([27, 3]));
        assert_eq!(first_number("9"), Some([9, 0]));
        assert_eq!(first_number("none"), None);
    }
}
