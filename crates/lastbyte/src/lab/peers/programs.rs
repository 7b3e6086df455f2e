//! Other people's ends: how each is started and what it is told.

use std::fs;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lastbyte_pki::private_key_pem;
use lastbyte_tls::KeyLog;
use serde::Serialize;
use serde_json::json;

use crate::lab::PreparedArm;
use crate::lab::process::{Priority, Process};
use crate::lab::programs::PageError;
use crate::lab::socket::SERVER_PORT;
use crate::lab::surroundings::SERVER;
use crate::study::{Arm, Cell, Client, Server};

const CURL: &str = include_str!("curl.py");
/// Of a browser that loads one page, and ends.
const SWITCHES: [&str; 12] = [
    "--headless=new",
    "--dump-dom",
    "--enable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
];
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// An end, as the programs of `scripts/quic-peers.d` and `curl.py` read it.
#[derive(Serialize)]
struct Described<'a> {
    address: String,
    group: &'a str,
    secrets: &'a Path,
    chain: &'a Path,
    key: &'a Path,
    name: &'a str,
    root: &'a Path,
    seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    knobs: Option<Knobs>,
}

/// What is said to a server besides, if it can be.
#[derive(Serialize)]
struct Knobs {
    /// The initial congestion window, in datagrams.
    window: u32,
    congestion: &'static str,
    initial_rtt_ns: u64,
    /// How many times what has come it may send before it knows its client's address; none as it has it.
    amplification: Option<u8>,
}

impl Knobs {
    fn of(arm: &Arm, cell: &Cell) -> Option<Knobs> {
        arm.server.has_quic_knobs().then(|| Knobs {
            window: cell.initcwnd,
            congestion: cell.congestion.name(),
            initial_rtt_ns: u64::try_from(cell.quic.initial_rtt.as_nanos()).unwrap_or(u64::MAX),
            amplification: arm.amplification,
        })
    }
}

/// The files of a block's programs.
pub(super) struct Files<'a> {
    arm: &'a PreparedArm,
    cell: &'a Cell,
    folder: &'a Path,
    chain: PathBuf,
    key: PathBuf,
    root: PathBuf,
    secrets: PathBuf,
}

impl<'a> Files<'a> {
    /// Writes the arm's chain into a folder of the block's own.
    pub(super) fn write(
        arm: &'a PreparedArm,
        cell: &'a Cell,
        folder: &'a Path,
    ) -> Result<Files<'a>, PageError> {
        let files = Files {
            arm,
            cell,
            folder,
            chain: folder.join("chain.pem"),
            key: folder.join("key.pem"),
            root: folder.join("root.pem"),
            secrets: folder.join("secrets"),
        };
        let mut chain = Vec::new();
        for certificate in arm.chain.certificates() {
            chain.extend(certificate.to_pem().map_err(PageError::Crypto)?);
        }
        // Of keys of ML-DSA this has the seed alone, which is what Go and BoringSSL take.
        let key = private_key_pem(arm.chain.key()).map_err(PageError::Crypto)?;
        let root = arm.chain.root().to_pem().map_err(PageError::Crypto)?;
        for (path, content) in [
            (&files.chain, chain),
            (&files.key, key),
            (&files.root, root),
            (&files.secrets, Vec::new()),
        ] {
            fs::write(path, content).map_err(PageError::Write)?;
        }
        Ok(files)
    }

    /// The secrets of TLS that programs have written since there were so many bytes of them, and how many there are now.
    pub(super) fn secrets(&self, since: usize) -> (KeyLog, usize) {
        let text = fs::read(&self.secrets).unwrap_or_default();
        let new = text.get(since..).unwrap_or_default();
        let mut keys = KeyLog::default();
        (String::from_utf8_lossy(new).lines()).for_each(|line| keys.push_line(line));
        (keys, text.len())
    }

    fn described(&self, timeout: Duration) -> Described<'_> {
        Described {
            address: format!("{SERVER}:{SERVER_PORT}"),
            group: self.arm.arm.group.name(),
            secrets: &self.secrets,
            chain: &self.chain,
            key: &self.key,
            name: self.arm.chain.server_name(),
            root: &self.root,
            seconds: timeout.as_secs().max(1),
            knobs: Knobs::of(&self.arm.arm, self.cell),
        }
    }

    /// Starts the arm's server in the calling thread's namespace, and waits until it has its socket.
    pub(super) fn serve(&self, program: &Path) -> Result<Process, PageError> {
        let server = self.arm.arm.server;
        let name = server.name();
        let path = self.folder.join("server.json");
        let mut command = self.command(program);
        let content = match server {
            Server::Caddy => {
                command.args(["run", "--config"]).arg(&path);
                self.caddy().to_string()
            }
            _ => {
                command.arg("server").arg(&path);
                self.json(Duration::ZERO)?
            }
        };
        fs::write(&path, content).map_err(PageError::Write)?;
        let process = Process::start(name, command, self.folder, Priority::Usual);
        let mut process = process.map_err(|error| PageError::start(name, error))?;
        let address = SocketAddrV4::new(SERVER, SERVER_PORT);
        let bound = process.wait_for_datagrams(address, PATIENCE);
        bound.map_err(|error| PageError::start(name, error))?;
        Ok(process)
    }

    /// Starts the arm's client in the calling thread's namespace.
    pub(super) fn ask(&self, program: &Path, timeout: Duration) -> Result<Process, PageError> {
        let client = self.arm.arm.client;
        let name = client.name();
        let path = self.folder.join("client.json");
        fs::write(&path, self.json(timeout)?).map_err(PageError::Write)?;
        let mut command = self.command(program);
        match client {
            Client::Chromium => self.browse(&mut command),
            Client::Curl => {
                let script = self.folder.join("curl.py");
                fs::write(&script, CURL).map_err(PageError::Write)?;
                command
                    .arg(script)
                    .env("SSLKEYLOGFILE", &self.secrets)
                    .arg("client")
                    .arg(&path);
            }
            Client::QuicGo | Client::Lastbyte => {
                command.arg("client").arg(&path);
            }
        }
        (Process::start(name, command, self.folder, Priority::Usual))
            .map_err(|error| PageError::start(name, error))
    }

    /// Has a browser load a page over HTTP/3 and nothing else. It trusts the key of the arm's own certificate, as it takes no
    /// root of a user's over QUIC.
    fn browse(&self, command: &mut Command) {
        let leaf = self.arm.chain.certificates().first();
        let key = leaf.and_then(|leaf| leaf.public_key().ok());
        let key = key.and_then(|key| key.public_key_to_der().ok());
        let key = openssl::sha::sha256(&key.unwrap_or_default());
        let name = self.arm.chain.server_name();
        // A profile that is new.
        let profile = self.folder.join("profile");
        let _ = fs::remove_dir_all(&profile);
        command
            .args(SWITCHES)
            .arg(format!("--origin-to-force-quic-on={name}:{SERVER_PORT}"))
            .arg(format!("--host-resolver-rules=MAP {name} {SERVER}"))
            .arg(format!(
                "--ignore-certificate-errors-spki-list={}",
                openssl::base64::encode_block(&key)
            ))
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("https://{name}/"))
            .env("XDG_RUNTIME_DIR", self.folder)
            .env("SSLKEYLOGFILE", &self.secrets)
            .env("LANG", "C.UTF-8");
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.folder)
            .env("TMPDIR", self.folder);
        command
    }

    fn json(&self, timeout: Duration) -> Result<String, PageError> {
        serde_json::to_string(&self.described(timeout))
            .map_err(|error| PageError::Write(error.into()))
    }

    fn caddy(&self) -> serde_json::Value {
        json!({
            "admin": { "disabled": true },
            "storage": { "module": "file_system", "root": self.folder },
            "apps": {
                "http": { "servers": { "one": {
                    "listen": [format!("{SERVER}:{SERVER_PORT}")],
                    "protocols": ["h1", "h2", "h3"],
                    "automatic_https": { "disable": true },
                    "tls_connection_policies": [{
                        "curves": [self.arm.arm.group.name().to_lowercase()],
                        "protocol_min": "tls1.3",
                        "insecure_secrets_log": self.secrets,
                        "certificate_selection": { "any_tag": ["one"] },
                    }],
                    "routes": [{ "handle": [{ "handler": "static_response", "status_code": 200 }] }],
                } } },
                "tls": { "certificates": { "load_files": [
                    { "certificate": self.chain, "key": self.key, "tags": ["one"] },
                ] } },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::study::Congestion;

    #[test]
    fn quiche_is_set_by_its_cell_and_its_arm() {
        const QUIC: &str = "X25519MLKEM768/ml-dsa-65/transport=quic/server=";
        let said = |cell: &Cell, server: &str| {
            let arm: Arm = format!("{QUIC}{server}").parse().unwrap();
            Knobs::of(&arm, cell).map(|knobs| serde_json::to_value(knobs).unwrap())
        };
        let usual = Cell::default();
        // As quiche has it by itself, in its terms.
        let own = json!({
            "window": 10, "congestion": "cubic", "initial_rtt_ns": 333_000_000, "amplification": null,
        });
        assert_eq!(said(&usual, "quiche"), Some(own));
        let mut cell = Cell {
            initcwnd: 32,
            congestion: Congestion::Reno,
            ..usual
        };
        cell.quic.initial_rtt = Duration::from_millis(50);
        let other = json!({
            "window": 32, "congestion": "reno", "initial_rtt_ns": 50_000_000, "amplification": 30,
        });
        assert_eq!(said(&cell, "quiche/amplification=30"), Some(other));
        assert_eq!(said(&cell, "s2n-quic"), None);
    }
}
