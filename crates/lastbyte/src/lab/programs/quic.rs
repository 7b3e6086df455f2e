//! The programs at the ends of QUIC: where they are, and what they can do.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::PageError;
use super::lookup::{Needs, chosen, chromium, first_line, first_number, first_whole};
use crate::study::{Client, Server};

/// The program of a server, and what it says that it is.
pub(super) fn server(
    server: Server,
    needs: Needs,
    cache: &Path,
) -> Result<(PathBuf, String), PageError> {
    match server {
        Server::QuicGo => quic_go("server=quic-go", cache),
        Server::S2nQuic => {
            let program = built(
                "LASTBYTE_S2N_QUIC",
                "server=s2n-quic",
                "lastbyte-s2n-quic",
                cache,
            )?;
            let version = first_line(Command::new(&program).arg("version")).unwrap_or_default();
            Ok((program, version))
        }
        Server::Quiche => {
            let program = chosen(
                "LASTBYTE_QUICHE",
                Some(cache.join("tools/quiche/bin/lastbyte-quiche")),
                "lastbyte-quiche",
            );
            let program = program.ok_or(PageError::NotInstalled {
                by: "server=quiche",
                program: "lastbyte-quiche",
                hint: "`scripts/quic-peers --quiche` builds it",
            })?;
            let version = first_line(Command::new(&program).arg("version")).unwrap_or_default();
            Ok((program, version))
        }
        Server::Caddy => {
            let caddy = built("LASTBYTE_CADDY", "server=caddy", "caddy", cache)?;
            let version = first_line(Command::new(&caddy).arg("version")).unwrap_or_default();
            let made = Command::new(&caddy).arg("build-info").output().ok();
            let made = made.map(|made| String::from_utf8_lossy(&made.stdout).into_owned());
            let made = made.unwrap_or_default();
            // What it has of TLS is what it was built with.
            let go = made
                .split_whitespace()
                .find_map(|word| word.strip_prefix("go1."));
            let of = |module: &str| {
                let mut words = made.split_whitespace().skip_while(|word| *word != module);
                words.nth(1).unwrap_or("unknown").to_owned()
            };
            let number = version.split_whitespace().next().unwrap_or("unknown");
            let version = format!(
                "{number} (quic-go {}, go1.{})",
                of("github.com/quic-go/quic-go"),
                go.unwrap_or("unknown")
            );
            if needs.ml_dsa && go.and_then(first_whole).is_none_or(|go| go < 27) {
                return Err(too_old(&caddy, version, "Caddy built with Go 1.27"));
            }
            Ok((caddy, version))
        }
        Server::Lastbyte | Server::Node | Server::Nginx | Server::Go => Err(PageError::OURS),
    }
}

/// The program of a client, and what it says that it is; none if it is ours.
pub(super) fn client(
    client: Client,
    needs: Needs,
    cache: &Path,
) -> Result<Option<(PathBuf, String)>, PageError> {
    const OPENSSL_WITH_ML_DSA: [u32; 2] = [3, 5];
    match client {
        Client::Lastbyte => Ok(None),
        Client::QuicGo => quic_go("client_program=quic-go", cache).map(Some),
        Client::Curl => {
            let missing = PageError::NotInstalled {
                by: "client_program=curl",
                program: "a Python with pycurl",
                hint: "scripts/interop installs it, or name one in LASTBYTE_PYCURL",
            };
            let cached = cache.join("tools/peers/bin/python");
            let Some(python) = chosen("LASTBYTE_PYCURL", Some(cached), "no such program") else {
                return Err(missing);
            };
            let print = "import pycurl; print(pycurl.version)";
            let version = first_line(Command::new(&python).args(["-c", print]));
            let version = version.ok_or(missing)?;
            let openssl = version.split("OpenSSL/").nth(1).and_then(first_number);
            let is_old = openssl.is_none_or(|openssl| openssl < OPENSSL_WITH_ML_DSA);
            if !version.contains("ngtcp2/") || needs.ml_dsa && is_old {
                return Err(too_old(
                    &python,
                    version,
                    "pycurl 7.49 with OpenSSL 3.5 and ngtcp2",
                ));
            }
            let parts = version.split_whitespace().filter(|part| {
                ["libcurl/", "OpenSSL/", "ngtcp2/"]
                    .iter()
                    .any(|name| part.starts_with(name))
            });
            let version = parts.collect::<Vec<_>>().join(" ");
            Ok(Some((python, version)))
        }
        Client::Chromium => {
            let browser = chromium()?;
            let version = first_line(Command::new(&browser).arg("--version"));
            let version = version.ok_or_else(|| PageError::NoBrowser(browser.clone()))?;
            Ok(Some((browser, version)))
        }
    }
}

fn quic_go(by: &'static str, cache: &Path) -> Result<(PathBuf, String), PageError> {
    let program = built("LASTBYTE_QUIC_GO", by, "quic-go", cache)?;
    let version = first_line(Command::new(&program).arg("version")).unwrap_or_default();
    Ok((program, version))
}

/// Whether a server of QUIC can serve the pages of a site, and not handshakes alone.
///
/// # Errors
///
/// That it is another, or was built when it could not.
pub(super) fn check_pages(server: Server, program: &Path) -> Result<(), PageError> {
    /// The module that sets a response's fields.
    const FIELDS: &str = "http.handlers.headers";
    let has = |argument: &[&str], word: &str| {
        let output = Command::new(program).args(argument).output().ok();
        output.is_some_and(|output| {
            let all = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&all).contains(word)
        })
    };
    let (serves, program) = match server {
        Server::Caddy => (
            has(&["list-modules"], FIELDS),
            "Caddy with http.handlers.headers",
        ),
        // Its line of usage.
        Server::QuicGo => (has(&[], "|site "), "a quic-go that serves sites"),
        _ => return Err(PageError::OURS),
    };
    if serves {
        return Ok(());
    }
    Err(PageError::NotInstalled {
        by: "a page over QUIC",
        program,
        hint: "scripts/quic-peers builds it",
    })
}

/// Where `scripts/quic-peers` has built a program.
pub(super) fn built_in(cache: &Path, program: &str) -> PathBuf {
    cache.join("tools/quic-peers/bin").join(program)
}

/// What `scripts/quic-peers` has built, or a variable names.
fn built(
    variable: &'static str,
    by: &'static str,
    program: &'static str,
    cache: &Path,
) -> Result<PathBuf, PageError> {
    chosen(variable, Some(built_in(cache, program)), program).ok_or(PageError::NotInstalled {
        by,
        program,
        hint: "scripts/quic-peers builds it",
    })
}

fn too_old(program: &Path, version: String, least: &str) -> PageError {
    PageError::TooOld {
        program: program.display().to_string(),
        version,
        what: "ML-DSA over QUIC",
        least: least.to_owned(),
    }
}
