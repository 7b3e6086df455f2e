//! Servers that people run, with the files and chains of their origins.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lastbyte_page::{Answer, Content, Frames, Framing, Site};
use lastbyte_pki::private_key_pem;
use lastbyte_sizes::Group;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Computing, Origin, PageError};
use crate::lab::process::{Priority, Process};
use crate::lab::sys::Computes;
use crate::study::{Server, TransportName};

/// The server that Node.js runs.
const NODE_SERVER: &str = include_str!("server.mjs");
/// The one that Go compiles.
pub(super) const GO_SERVER: &str = include_str!("server.go");
/// Where they listen.
pub(in crate::lab) const PORT: u16 = 443;
/// How long a connection of a page may be idle before a server closes it.
pub(in crate::lab) const IDLE: Duration = Duration::from_secs(10);
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// What our servers read.
#[derive(Serialize)]
struct Described<'a> {
    site: &'a Path,
    group: &'a str,
    idle_ms: u64,
    origins: Vec<Files>,
}

/// An origin's files.
#[derive(Serialize)]
struct Files {
    name: String,
    address: Ipv4Addr,
    port: u16,
    chain: PathBuf,
    key: PathBuf,
}

/// What a server is to be.
pub(in crate::lab) struct Serving<'a> {
    pub(in crate::lab) server: Server,
    pub(in crate::lab) transport: TransportName,
    pub(in crate::lab) program: &'a Path,
    /// The one that it takes.
    pub(in crate::lab) group: Group,
    pub(in crate::lab) origins: &'a [Origin],
    /// How long a connection may be idle before it is closed; in whole seconds.
    pub(in crate::lab) idle: Duration,
    pub(in crate::lab) computing: Computing,
}

impl Serving<'_> {
    /// Starts it in the calling thread's namespace with its files in `folder`, and waits until it
    /// listens at every origin.
    pub(in crate::lab) fn start(&self, site: &Site, folder: &Path) -> Result<Process, PageError> {
        let &Serving {
            server,
            transport,
            program,
            group,
            origins,
            idle,
            computing,
        } = self;
        let root = folder.join("site");
        site.write(&root).map_err(PageError::Site)?;
        let files = (0..)
            .zip(origins)
            .map(|(place, origin)| write_chain(place, origin, folder));
        let files: Vec<Files> = files.collect::<Result<_, _>>()?;
        let write = |name: &str, content: String| {
            let path = folder.join(name);
            fs::write(&path, content).map_err(PageError::Write)?;
            Ok::<_, PageError>(path)
        };
        let described = Described {
            site: &root,
            group: group_name(server, group),
            idle_ms: idle.as_millis() as u64,
            origins: files,
        };
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", folder)
            .env("TMPDIR", folder);
        match server {
            Server::Node => {
                let program = write("server.mjs", NODE_SERVER.to_owned())?;
                command
                    .arg(program)
                    .arg(write("server.json", to_json(&described)?)?);
            }
            Server::Go => {
                command.arg(write("server.json", to_json(&described)?)?);
            }
            Server::Nginx => {
                let configuration = nginx(&described, site, folder);
                command
                    .arg("-p")
                    .arg(folder)
                    .arg("-c")
                    .arg(write("nginx.conf", configuration)?);
            }
            Server::QuicGo => {
                command
                    .arg("site")
                    .arg(write("server.json", to_json(&described)?)?);
            }
            Server::Lastbyte | Server::S2nQuic | Server::Quiche => return Err(PageError::OURS),
            Server::Caddy => {
                let configuration = to_json(&caddy(&described, transport, site, folder))?;
                command
                    .args(["run", "--config"])
                    .arg(write("caddy.json", configuration)?);
            }
        }
        computing.of(&mut command, Computes::Server);
        let name = server.name();
        let mut process = Process::start(name, command, folder, Priority::Usual)
            .map_err(|error| PageError::start(name, error))?;
        for origin in origins {
            let address = SocketAddrV4::new(origin.address, PORT);
            let listens = match transport {
                TransportName::Tcp => process.wait_for(address.into(), PATIENCE),
                TransportName::Quic => process.wait_for_datagrams(address, PATIENCE),
            };
            listens.map_err(|error| PageError::start(name, error))?;
        }
        Ok(process)
    }
}

fn to_json(value: &impl Serialize) -> Result<String, PageError> {
    serde_json::to_string(value).map_err(|error| PageError::Write(error.into()))
}

fn write_chain(place: usize, origin: &Origin, folder: &Path) -> Result<Files, PageError> {
    let (chain, key) = (
        folder.join(format!("chain{place}.pem")),
        folder.join(format!("key{place}.pem")),
    );
    let mut pem = Vec::new();
    for certificate in origin.chain.certificates() {
        pem.extend(certificate.to_pem().map_err(PageError::Crypto)?);
    }
    fs::write(&chain, pem).map_err(PageError::Write)?;
    let private = origin.chain.key();
    let pem = private_key_pem(private).map_err(PageError::Crypto)?;
    fs::write(&key, pem).map_err(PageError::Write)?;
    Ok(Files {
        name: origin.name.clone(),
        address: origin.address,
        port: PORT,
        chain,
        key,
    })
}

/// What a server calls a group.
fn group_name(server: Server, group: Group) -> &'static str {
    match (server, group) {
        (Server::Node | Server::Nginx, Group::Secp256r1) => "prime256v1",
        (Server::Node | Server::Nginx, Group::X25519) => "X25519",
        (Server::Caddy, Group::Secp256r1) => "secp256r1",
        (Server::Caddy, Group::X25519MlKem768) => "x25519mlkem768",
        _ => group.name(),
    }
}

/// The answers of one origin.
fn answers(site: &Site, place: usize) -> impl Iterator<Item = &Answer> {
    (site.answers.iter()).filter(move |answer| answer.origin == place)
}

fn field<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let mut fields = answer.fields.iter();
    fields
        .find(|(key, _)| key == name)
        .map_or("", |(_, value)| value)
}

/// How a server frames what was recorded. Node.js and Go are had to send nothing else. nginx sends
/// its name, a date, whose length differs by a byte or two, and a tag of its own, 9 bytes longer
/// than ours. Caddy keeps fields in HPACK's table: what one takes depends on what came before, and
/// its own are about as long as what that saves.
pub(in crate::lab) fn framing(server: Server) -> Framing {
    let ours = Frames {
        added: 0,
        has_numbers: true,
        first: 1,
        most: 16 << 10,
        whole: u64::MAX,
    };
    Framing::Http2(match server {
        // It says that the table has 4096 bytes, and not as many as the browser offers.
        Server::Node | Server::Lastbyte => Frames { first: 3, ..ours },
        Server::Go => Frames {
            // What fills its buffer has left when the handler is done.
            whole: 4 << 10,
            ..ours
        },
        Server::Nginx => Frames {
            added: 31,
            has_numbers: false,
            most: 8 << 10,
            ..ours
        },
        // Over HTTP/3 bodies are as long as Caddy's over HTTP/2, whatever frames there take.
        Server::Caddy | Server::QuicGo | Server::S2nQuic | Server::Quiche => ours,
    })
}

fn nginx(described: &Described<'_>, site: &Site, folder: &Path) -> String {
    let folder = folder.display();
    let idle = described.idle_ms / 1000;
    let servers =
        described.origins.iter().enumerate().map(|(place, origin)| {
            let locations = answers(site, place).map(|answer| {
            let has_tag = answer.fields.iter().any(|(name, _)| name == "etag");
            // It has a tag and a date of its own.
            let own = match (answer.is_recorded, has_tag) {
                (false, _) => "",
                (true, true) => "server_tokens off; max_ranges 0; add_header last-modified \"\";",
                (true, false) => {
                    "server_tokens off; max_ranges 0; add_header last-modified \"\"; etag off;"
                }
            };
            let fields = answer.fields.iter().filter(|(name, _)| name != "content-type" && name != "etag");
            let fields = fields.map(|(name, value)| format!("add_header {name} \"{value}\";"));
            let fields = fields.collect::<Vec<_>>().join(" ");
            let what = match (&answer.content, answer.path.as_str()) {
                (Content::Elsewhere(location), _) => format!("return 302 \"{location}\";"),
                (Content::Body(_), "/") => "try_files /index.html =404;".to_owned(),
                (Content::Body(_), _) => String::new(),
            };
            format!(
                "        location = {} {{ types {{ }} default_type \"{}\"; {own} {fields} {what} }}\n",
                answer.path,
                field(answer, "content-type")
            )
        });
            format!(
                "    server {{
        listen {}:{} ssl http2;
        server_name {};
        ssl_certificate {};
        ssl_certificate_key {};
        root {}/o{place};
{}    }}
",
                origin.address,
                origin.port,
                origin.name,
                origin.chain.display(),
                origin.key.display(),
                described.site.display(),
                locations.collect::<String>()
            )
        });
    format!(
        "daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_timeout {idle}s;
    ssl_protocols TLSv1.3;
    ssl_ecdh_curve {};
{}}}
",
        described.group,
        servers.collect::<String>()
    )
}

fn caddy(described: &Described<'_>, transport: TransportName, site: &Site, folder: &Path) -> Value {
    // One of both, so that no browser finds another way.
    let protocols: &[&str] = match transport {
        TransportName::Tcp => &["h1", "h2"],
        TransportName::Quic => &["h3"],
    };
    let server = |(place, origin): (usize, &Files)| {
        let routes = answers(site, place).map(|answer| {
            let has_tag = answer.fields.iter().any(|(name, _)| name == "etag");
            let fields = answer.fields.iter().filter(|(name, _)| name != "etag");
            let fields: serde_json::Map<_, _> = fields
                .map(|(name, value)| (name.clone(), json!([value])))
                .collect();
            // It has a tag and a date of its own.
            let without: &[&str] = match (answer.is_recorded, has_tag) {
                (false, _) => &[],
                (true, true) => &["Last-Modified", "Accept-Ranges", "Vary"],
                (true, false) => &["Last-Modified", "Accept-Ranges", "Vary", "Etag"],
            };
            let body = match &answer.content {
                Content::Elsewhere(location) => json!({
                    "handler": "static_response", "status_code": 302, "headers": { "Location": [location] },
                }),
                Content::Body(_) => json!({
                    "handler": "file_server", "root": described.site.join(format!("o{place}")),
                }),
            };
            json!({
                "match": [{ "path": [answer.path] }],
                "handle": [{ "handler": "headers", "response": { "set": fields, "delete": without, "deferred": true } }, body],
            })
        });
        let name = format!("o{place}");
        let server = json!({
            "listen": [format!("{}:{}", origin.address, origin.port)],
            "idle_timeout": format!("{}ms", described.idle_ms),
            "protocols": protocols,
            "automatic_https": { "disable": true },
            "tls_connection_policies": [{
                "curves": [described.group],
                "protocol_min": "tls1.3",
                "certificate_selection": { "any_tag": [name] },
            }],
            "routes": routes.collect::<Vec<_>>(),
        });
        (name, server)
    };
    let servers: serde_json::Map<_, _> = described.origins.iter().enumerate().map(server).collect();
    let load = |(place, origin): (usize, &Files)| json!({ "certificate": origin.chain, "key": origin.key, "tags": [format!("o{place}")] });
    let load: Vec<_> = described.origins.iter().enumerate().map(load).collect();
    json!({
        "admin": { "disabled": true },
        "storage": { "module": "file_system", "root": folder },
        "apps": {
            "http": { "servers": servers },
            "tls": { "certificates": { "load_files": load } },
        },
    })
}
