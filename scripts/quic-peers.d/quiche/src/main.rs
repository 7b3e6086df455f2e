//! An HTTP/3 server on quiche and its BoringSSL, over one socket. It takes JSON in a file:
//!
//!     lastbyte-quiche server FILE.json

use std::collections::VecDeque;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quiche::{Config, ConnectionId, RecvInfo, h3};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Deserialize;

/// A server, as lastbyte describes it.
#[derive(Deserialize)]
struct Described {
    address: SocketAddr,
    group: String,
    secrets: PathBuf,
    chain: String,
    key: String,
    /// What replaces quiche's own settings.
    knobs: Knobs,
}

#[derive(Deserialize)]
struct Knobs {
    /// The initial congestion window, in datagrams.
    window: usize,
    congestion: String,
    initial_rtt_ns: u64,
    /// How many times what has come it may send before it knows its client's address.
    amplification: Option<usize>,
}

/// Bytes of the IDs that connections have here.
const ID: usize = 16;
/// As long as other stacks keep a connection on which nothing happens, in milliseconds: without one, quiche keeps it for good.
const IDLE_MS: u64 = 30_000;
/// What a client may send that is not read yet: quiche lets it send nothing unless that is said.
const UNREAD: u64 = 1 << 20;
const STREAMS: u64 = 100;
const LONGEST: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["version"] => {
            println!("{}", version());
            Ok(())
        }
        ["server", file] => serve(&serde_json::from_str(&fs::read_to_string(file)?)?),
        _ => Err("usage: lastbyte-quiche server FILE.json".into()),
    }
}

/// What it is made of: `0.30.0 (boring 5.4.0)`.
fn version() -> String {
    let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"));
    let of = |name: &str| {
        let package = lock.split("[[package]]").find(|package| package.contains(&format!("name = \"{name}\"")));
        let version = package.and_then(|package| package.split("version = \"").nth(1)?.split('"').next());
        version.unwrap_or("unknown")
    };
    format!("{} (boring {})", of("quiche"), of("boring"))
}

fn configure(described: &Described) -> quiche::Result<Config> {
    let Described { group, chain, key, knobs, .. } = described;
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.load_cert_chain_from_pem_file(chain)?;
    config.load_priv_key_from_pem_file(key)?;
    // BoringSSL has all others under the names that TLS has for them.
    config.set_curves_list(if group == "secp256r1" { "P-256" } else { group })?;
    config.log_keys();
    config.set_application_protos(h3::APPLICATION_PROTOCOL)?;
    config.set_max_idle_timeout(IDLE_MS);
    config.set_initial_max_data(UNREAD);
    config.set_initial_max_stream_data_bidi_remote(UNREAD);
    config.set_initial_max_stream_data_uni(UNREAD);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    config.set_initial_congestion_window_packets(knobs.window);
    config.set_cc_algorithm_name(&knobs.congestion)?;
    config.set_initial_rtt(Duration::from_nanos(knobs.initial_rtt_ns));
    if let Some(factor) = knobs.amplification {
        config.set_max_amplification_factor(factor);
    }
    Ok(config)
}

fn serve(described: &Described) -> Result<(), Box<dyn Error>> {
    let mut config = configure(described)?;
    let http = h3::Config::new()?;
    let socket = UdpSocket::bind(described.address)?;
    socket.set_nonblocking(true)?;
    let mut connections: Vec<Connection> = Vec::new();
    let mut buffer = vec![0; LONGEST];
    loop {
        let due = connections.iter().filter_map(Connection::due).min();
        wait(&socket, PollFlags::IN, due)?;
        while let Some((length, from)) = without_waiting(socket.recv_from(&mut buffer))? {
            let datagram = &mut buffer[..length];
            let Ok(header) = quiche::Header::from_slice(datagram, ID) else {
                continue;
            };
            let known = connections.iter().position(|one| one.is_at(&header.dcid));
            let place = match known {
                Some(place) => place,
                None if header.ty != quiche::Type::Initial => continue,
                None if !quiche::version_is_supported(header.version) => {
                    let mut answer = [0; 1200];
                    let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut answer)?;
                    send(&socket, &answer[..length], from)?;
                    continue;
                }
                None => {
                    let first_id = header.dcid.into_owned();
                    let new = Connection::accept(first_id, described.address, from, &mut config, &described.secrets)?;
                    connections.push(new);
                    connections.len() - 1
                }
            };
            // What is wrong with a datagram quiche says to the client, if anybody.
            let _ = connections[place].quic.recv(datagram, RecvInfo { from, to: described.address });
        }
        for connection in &mut connections {
            connection.quic.on_timeout();
            connection.answer(&http);
            connection.prepare(&mut buffer);
            connection.send_due(&socket)?;
        }
        connections.retain(|one| !one.quic.is_closed() || !one.unsent.is_empty());
    }
}

/// A connection, and what it has to send.
struct Connection {
    quic: quiche::Connection,
    /// What the client called it at first, which more than one of its datagrams may.
    first_id: ConnectionId<'static>,
    /// Once there is one.
    http: Option<h3::Connection>,
    /// Streams whose requests have no response yet.
    unanswered: Vec<u64>,
    unsent: VecDeque<Datagram>,
}

/// A datagram and when it is to leave, as quiche paces it.
struct Datagram {
    at: Instant,
    to: SocketAddr,
    payload: Vec<u8>,
}

impl Connection {
    fn accept(
        first_id: ConnectionId<'static>,
        local: SocketAddr,
        peer: SocketAddr,
        config: &mut Config,
        secrets: &Path,
    ) -> Result<Connection, Box<dyn Error>> {
        let mut id = [0; ID];
        boring::rand::rand_bytes(&mut id)?;
        let mut quic = quiche::accept(&ConnectionId::from_ref(&id), None, local, peer, config)?;
        quic.set_keylog(Box::new(File::options().create(true).append(true).open(secrets)?));
        Ok(Connection {
            quic,
            first_id,
            http: None,
            unanswered: Vec::new(),
            unsent: VecDeque::new(),
        })
    }

    fn is_at(&self, id: &ConnectionId<'_>) -> bool {
        self.first_id == *id || self.quic.source_id() == *id
    }

    /// When something is to be done, if nothing comes.
    fn due(&self) -> Option<Instant> {
        let paced = self.unsent.front().map(|first| first.at);
        self.quic.timeout_instant().into_iter().chain(paced).min()
    }

    /// Answers requests, as far as the connection lets it.
    fn answer(&mut self, config: &h3::Config) {
        if self.http.is_none() && self.quic.is_established() {
            // Without streams for it, the connection is closed, and the client hears why.
            self.http = h3::Connection::with_transport(&mut self.quic, config).ok();
        }
        let Some(http) = &mut self.http else {
            return;
        };
        while let Ok((stream, event)) = http.poll(&mut self.quic) {
            if matches!(event, h3::Event::Headers { .. }) {
                self.unanswered.push(stream);
            }
        }
        let quic = &mut self.quic;
        self.unanswered.retain(|stream| {
            let response = [h3::Header::new(b":status", b"200")];
            http.send_response(quic, *stream, &response, true) == Err(h3::Error::StreamBlocked)
        });
    }

    /// Has quiche make all that it can send now.
    fn prepare(&mut self, buffer: &mut [u8]) {
        while let Ok((length, info)) = self.quic.send(buffer) {
            self.unsent.push_back(Datagram {
                at: info.at,
                to: info.to,
                payload: buffer[..length].to_vec(),
            });
        }
    }

    fn send_due(&mut self, socket: &UdpSocket) -> io::Result<()> {
        while let Some(first) = self.unsent.pop_front_if(|first| first.at <= Instant::now()) {
            send(socket, &first.payload, first.to)?;
        }
        Ok(())
    }
}

/// Waits until the socket is ready, or it is time. A thousandth of a second, which most such calls round to, is longer than what
/// is between datagrams.
fn wait(socket: &UdpSocket, flags: PollFlags, until: Option<Instant>) -> io::Result<()> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut [PollFd::new(socket, flags)], left.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn send(socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
    while without_waiting(socket.send_to(datagram, to))?.is_none() {
        wait(socket, PollFlags::OUT, None)?;
    }
    Ok(())
}

/// What a call on the socket gives; none if there is nothing now.
fn without_waiting<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(given) => Ok(Some(given)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
