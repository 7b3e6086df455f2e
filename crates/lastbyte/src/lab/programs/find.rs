//! The servers that people run, and the browser that loads pages: where they are, and what they can
//! do.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::PageError;
use super::lookup::{Needs, chosen, chromium, first_line, first_number, first_whole};
use super::quic;
use super::servers::GO_SERVER;
use crate::kernel::digest::sha256;
use crate::lab::lock::lock;
use crate::lab::process::installed;
use crate::study::{Arm, Cell, Measure, Server, Study, TransportName};

/// Programs, by their paths, with what they say that they are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::lab) struct Programs {
    /// For page loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::lab) browser: Option<BrowserPrograms>,
    /// What answers, if that is not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::lab) server: Option<PathBuf>,
    /// What connects over QUIC, if that is not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::lab) client: Option<PathBuf>,
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
    /// The programs that an arm needs in a cell; none if both ends are ours. Where a server has to
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
        if !arm.has_foreign_ends() {
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
    let mut found = |name: &str, (program, version): (PathBuf, String)| {
        versions.insert(name.to_owned(), version);
        program
    };
    let server = match (arm.server, arm.transport) {
        (Server::Lastbyte, TransportName::Quic) => None,
        (server, TransportName::Quic) => {
            let (program, version) = quic::server(server, needs, cache)?;
            if caller == Caller::Browser {
                quic::check_pages(server, &program)?;
            }
            Some(found(server.name(), (program, version)))
        }
        (of_tcp, TransportName::Tcp) => Some(found(of_tcp.name(), server(of_tcp, needs, cache)?)),
    };
    let client = quic::client(arm.client, needs, cache)?;
    let client = client.map(|program| found(arm.client.name(), program));
    Ok(Programs {
        browser,
        server,
        client,
        versions,
    })
}

/// The browser, and what it says that it is.
fn browser(needs: Needs) -> Result<(BrowserPrograms, String), PageError> {
    let browser = chromium()?;
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
        Server::Lastbyte | Server::QuicGo | Server::S2nQuic | Server::Quiche => {
            Err(PageError::OURS)
        }
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
            // What is there for QUIC has HTTP/2, too.
            let built = || Some(quic::built_in(cache, "caddy")).filter(|built| built.exists());
            let caddy = chosen("LASTBYTE_CADDY", None, "caddy").or_else(built);
            let caddy = caddy.ok_or(PageError::NotInstalled {
                by: "server=caddy",
                program: "caddy",
                hint: "install it with `apt-get install caddy`, or name it in LASTBYTE_CADDY; scripts/quic-peers builds one",
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
