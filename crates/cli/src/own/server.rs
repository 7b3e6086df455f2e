//! Asks a server for its chain: one TLS connection, of which only the certificates are of interest.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_pki::{Host, openssl_reason};
use lastbyte_tls::{Alert, names, received_alert};
use openssl::error::ErrorStack;
use openssl::ssl::{
    HandshakeError, SslConnector, SslConnectorBuilder, SslMethod, SslRef, SslVerifyMode,
};
use openssl::x509::X509;

/// For the name, the connection and the handshake.
const TIMEOUT: Duration = Duration::from_secs(10);

/// More than any handshake has, in bytes.
const MOST: u64 = 4 << 20;

/// The certificates that a server sends to a client that takes any, in their order.
///
/// # Errors
///
/// One line that names the server, what it does instead and what to do.
pub(super) fn chain(host: &Host) -> Result<Vec<X509>, String> {
    let until = Instant::now() + TIMEOUT;
    let socket = connect(host, until).map_err(|problem| format!("{host} {problem}"))?;
    let certificates = shake_hands(host, Timed::new(socket, until))
        .map_err(|problem| format!("{host} {problem}"))?;
    if certificates.is_empty() {
        Err(format!("{host} sends no certificate: name a PEM file"))
    } else {
        Ok(certificates)
    }
}

fn connect(host: &Host, until: Instant) -> Result<TcpStream, String> {
    let mut problem = "has no address: check its name".to_owned();
    let addresses = addresses(host, until)?;
    for (tried, address) in addresses.iter().enumerate() {
        let left = left(until).ok_or_else(silent)?;
        // One that nobody answers at leaves time for the others.
        let others = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match TcpStream::connect_timeout(address, left / others) {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                problem = format!("refuses the connection at {address}: check the port");
            }
            Err(error) if is_timeout(&error) => problem = silent(),
            Err(error) => problem = format!("can't be reached at {address}: {error}"),
        }
    }
    Err(problem)
}

/// Its addresses. The system's resolver has no timeout that could be set, so another thread waits for it.
pub(crate) fn addresses(host: &Host, until: Instant) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = host.name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, host.port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let target = (host.name.clone(), host.port);
    let resolver = thread::spawn(move || {
        let found = target.to_socket_addrs().map(Iterator::collect);
        // Nobody waits any longer when this fails.
        let _ = sender.send(found);
    });
    let found: io::Result<Vec<SocketAddr>> = receiver
        .recv_timeout(left(until).unwrap_or_default())
        .map_err(|_| format!("has no address within {} s: check DNS", TIMEOUT.as_secs()))?;
    // It has sent all that it has: whoever asks for namespaces next has one thread again.
    let _ = resolver.join();
    found.map_err(|_| "has no address: check its name, and DNS".to_owned())
}

/// What came of certificates.
fn shake_hands(host: &Host, stream: Timed) -> Result<Vec<X509>, String> {
    let mut connector =
        connector().map_err(|error| format!("can't be asked: {}", openssl_reason(&error)))?;
    connector.set_verify(SslVerifyMode::NONE);
    let configuration = connector
        .build()
        .configure()
        .map_err(|error| format!("can't be asked: {}", openssl_reason(&error)))?
        .verify_hostname(false)
        // An address is no name that could be asked for (RFC 6066 section 3).
        .use_server_name_indication(host.name.parse::<IpAddr>().is_err());
    match configuration.connect(&host.name, stream) {
        Ok(mut stream) => {
            let certificates = certificates(stream.ssl());
            // Whether the server hears of it is its own affair.
            let _ = stream.shutdown();
            Ok(certificates)
        }
        Err(HandshakeError::SetupFailure(error)) => {
            Err(format!("can't be asked: {}", openssl_reason(&error)))
        }
        Err(HandshakeError::Failure(failed) | HandshakeError::WouldBlock(failed)) => {
            let error = failed.error();
            let certificates = certificates(failed.ssl());
            // In TLS 1.2, a server that insists on a client's certificate has sent its own by then.
            if !certificates.is_empty() && error.ssl_error().and_then(received_alert).is_some() {
                return Ok(certificates);
            }
            Err(match failed.get_ref().began {
                Began::OtherThanTls => {
                    "speaks no TLS at this port: name the port of its TLS".to_owned()
                }
                Began::Nothing if error.io_error().is_some_and(is_timeout) => silent(),
                Began::Tls if error.io_error().is_some_and(is_timeout) => format!(
                    "begins to answer, and has not sent its certificates within {} s: is it TLS, at this port?",
                    TIMEOUT.as_secs()
                ),
                _ if failed.get_ref().received > MOST => {
                    "sends more than any handshake has: name the port of its TLS".to_owned()
                }
                Began::Nothing => {
                    "hangs up before it says anything: name the port of its TLS".to_owned()
                }
                Began::Tls => match error.ssl_error().and_then(received_alert) {
                    Some(alert) => format!("{}; or name a PEM file", refusal(alert)),
                    None => format!(
                        "refuses the handshake ({}): name a PEM file",
                        error.ssl_error().and_then(reason).unwrap_or("it hangs up")
                    ),
                },
            })
        }
    }
}

fn certificates(ssl: &SslRef) -> Vec<X509> {
    let sent = ssl.peer_cert_chain().into_iter().flatten();
    sent.map(ToOwned::to_owned).collect()
}

/// Of whatever strength its keys are: they are measured, not relied upon.
fn connector() -> Result<SslConnectorBuilder, ErrorStack> {
    let mut connector = SslConnector::builder(SslMethod::tls_client())?;
    connector.set_security_level(0);
    Ok(connector)
}

/// What a server says that ends the handshake with an alert: a line that goes on from its name, and what that can mean.
pub(crate) fn refusal(alert: Alert) -> String {
    let means = match names::alert(alert.0) {
        Some("handshake_failure") => {
            ": it has no cipher suite, group or signature in common with this client, or asks for a client's certificate"
        }
        Some("protocol_version") => ": it may speak neither TLS 1.3 nor TLS 1.2",
        Some("unrecognized_name") => ": it has no site of this name",
        Some("certificate_required") => ": it asks for a client's certificate",
        _ => "",
    };
    format!("refuses the handshake with {alert}{means}")
}

fn reason(stack: &ErrorStack) -> Option<&str> {
    stack.errors().first().and_then(|error| error.reason())
}

fn silent() -> String {
    format!(
        "does not answer within {} s: check its port, and any firewall between",
        TIMEOUT.as_secs()
    )
}

fn left(until: Instant) -> Option<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    (left > Duration::ZERO).then_some(left)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}

/// A connection that ends at a time, whatever the other end does.
#[derive(Debug)]
struct Timed {
    socket: TcpStream,
    until: Instant,
    began: Began,
    /// Bytes.
    received: u64,
}

/// What the other end has begun to say.
#[derive(Clone, Copy, Debug)]
enum Began {
    Nothing,
    Tls,
    OtherThanTls,
}

impl Timed {
    fn new(socket: TcpStream, until: Instant) -> Timed {
        Timed {
            socket,
            until,
            began: Began::Nothing,
            received: 0,
        }
    }

    fn left(&self) -> io::Result<Duration> {
        left(self.until).ok_or_else(|| ErrorKind::TimedOut.into())
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// Records of TLS (RFC 8446 section 5.1).
        const ALERT: u8 = 21;
        const HANDSHAKE: u8 = 22;
        self.socket.set_read_timeout(Some(self.left()?))?;
        let count = match self.socket.read(buffer) {
            // OpenSSL would ask again.
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            read => read?,
        };
        self.received += count as u64;
        if self.received > MOST {
            return Err(ErrorKind::InvalidData.into());
        }
        self.began = match (self.began, buffer.first()) {
            (Began::Nothing, Some(&(ALERT | HANDSHAKE))) if count > 0 => Began::Tls,
            (Began::Nothing, Some(_)) if count > 0 => Began::OtherThanTls,
            (began, _) => began,
        };
        Ok(count)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
