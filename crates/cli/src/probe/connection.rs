//! One connection of a probe: TCP, TLS, a request, and what was seen of them.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lastbyte_link::counted;
use lastbyte_probe::{
    Answer, Answered, Ask, Connection, Cut, Event, Head, HeadError, ResponseHead,
};
use lastbyte_tls::observer::{Message, MessageType, Observation, Observer, PlacedMessage, Side};
use lastbyte_tls::{Alert, key_log, received_alert};
use openssl::error::ErrorStack;
use openssl::ssl::{HandshakeError, ShutdownState, SslRef, SslStream, SslVersion};
use openssl::x509::{X509, X509VerifyResult};

use super::session::{Offer, Tls};
use super::stream::{Began, Stage, Stream, is_timeout};
use super::target::Target;
use crate::own::server::refusal;

/// Silence after which a response counts as over, where it does not say how long it is.
const QUIET: Duration = Duration::from_millis(1500);
/// What a message of NewSessionTicket is numbered (RFC 8446, section 4).
const NEW_SESSION_TICKET: u8 = 4;

/// What a connection is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    pub(super) ask: Ask,
    pub(super) offer: Offer,
}

/// What was seen.
pub(super) struct Seen {
    pub(super) connection: Connection,
    pub(super) observation: Observation,
    pub(super) version: Option<SslVersion>,
    pub(super) cipher: String,
    pub(super) alpn: Option<String>,
    pub(super) resumed: bool,
    /// What the server sent, the end-entity first.
    pub(super) certificates: Vec<X509>,
    /// What is wrong with them here, in the order in which it was found.
    pub(super) problems: Vec<X509VerifyResult>,
    pub(super) first_byte: Option<Duration>,
    pub(super) last_byte: Option<Duration>,
    /// The tickets and the response behind the server's Finished, where both could be read.
    pub(super) answered: Option<Answered>,
    pub(super) response: Option<Response>,
    /// Why it did not come to its end, if it did not.
    pub(super) problem: Option<String>,
    /// The alert that ended it, if one did.
    pub(super) alert: Option<Alert>,
    /// What of TLS 1.2's messages is an OCSP response.
    pub(super) status_bytes: usize,
    /// Whether the server asks for a client's certificate.
    pub(super) asks_for_certificate: bool,
}

/// The head of a response, and how much came.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) head: ResponseHead,
    pub(super) wire_bytes: usize,
    /// Of that its first record, which can't be read before its last byte is there.
    pub(super) first_record: Option<usize>,
    pub(super) is_whole: bool,
}

/// Why there is nothing to see.
#[derive(Debug)]
pub(super) enum Nothing {
    /// The server, or the way to it: a line that goes on from its name.
    Server(String),
    /// OpenSSL.
    Here(ErrorStack),
}

impl From<ErrorStack> for Nothing {
    fn from(error: ErrorStack) -> Self {
        Nothing::Here(error)
    }
}

/// Makes it.
pub(super) fn connect(
    tls: &Tls,
    target: &Target,
    address: SocketAddr,
    purpose: Purpose,
    until: Instant,
) -> Result<Seen, Nothing> {
    let ssl = tls.ssl(target, purpose.offer)?;
    // Of a connection that came to nothing.
    tls.take_problems();
    let began = Instant::now();
    let stream = Stream::connect(address, purpose.ask, until)
        .map_err(|error| Nothing::Server(unreachable(address, &error, began.elapsed())))?;
    let mut stream = match ssl.connect(stream) {
        Ok(stream) => stream,
        Err(HandshakeError::SetupFailure(error)) => return Err(Nothing::Here(error)),
        Err(HandshakeError::Failure(failed) | HandshakeError::WouldBlock(failed)) => {
            let stream = failed.get_ref();
            let is_late = failed.error().io_error().is_some_and(is_timeout);
            let stack = failed.error().ssl_error();
            let problem = no_handshake(stream, stack, is_late);
            return Err(Nothing::Server(
                if stream.observer.asks_for_certificate_in_clear() {
                    no_client_certificate(target, &problem)
                } else {
                    problem
                },
            ));
        }
    };
    let mut seen = of_handshake(stream.ssl(), tls.take_problems());
    stream.get_mut().stage = Stage::Finished;
    // What was noted up to here has the whole handshake; the client's Finished is not sent yet.
    let result = match purpose.offer {
        Offer::Resume => stream.get_mut().pause(Duration::ZERO),
        Offer::Request | Offer::Quic => exchange(target, &mut stream, purpose.ask, &mut seen),
    };
    if let Err(error) = result {
        seen.alert = alert(&error);
        seen.problem = Some(match seen.alert {
            Some(alert) => format!("it ends the connection with {alert}"),
            None => cut_short(&seen, stream.get_ref(), &error),
        });
    }
    add_observation(&mut seen, &mut stream);
    // Whether the server hears of it is its own affair.
    let _ = stream.shutdown();
    Ok(seen)
}

/// What OpenSSL knows of a handshake that was made; all else is added later.
fn of_handshake(ssl: &SslRef, problems: Vec<X509VerifyResult>) -> Seen {
    Seen {
        connection: Connection::default(),
        observation: Observation::default(),
        version: ssl.version2(),
        cipher: ssl.current_cipher().map_or_else(String::new, |cipher| {
            cipher.standard_name().unwrap_or(cipher.name()).to_owned()
        }),
        alpn: (ssl.selected_alpn_protocol()).map(|name| String::from_utf8_lossy(name).into_owned()),
        resumed: ssl.session_reused(),
        certificates: (ssl.peer_cert_chain())
            .map(|chain| chain.iter().map(ToOwned::to_owned).collect())
            .unwrap_or_default(),
        problems,
        first_byte: None,
        last_byte: None,
        answered: None,
        response: None,
        problem: None,
        alert: None,
        status_bytes: status_bytes(ssl),
        asks_for_certificate: false,
    }
}

/// Adds what only bytes show, which can be decrypted once the exchange is over.
fn add_observation(seen: &mut Seen, stream: &mut SslStream<Stream>) {
    let key_log = key_log::of(stream.ssl());
    let observer = &stream.get_ref().observer;
    seen.observation = observer.observe(&key_log);
    seen.asks_for_certificate = observer.asks_for_certificate_in_clear()
        || (seen.observation.bytes(Message::CertificateRequest)).is_some();
    let tickets = tickets(&observer.messages(&key_log));
    let first_byte = tickets.as_ref().map(|(first_byte, _)| *first_byte);
    if let (Some(response), Some(first_byte)) = (&mut seen.response, first_byte) {
        response.first_record = observer.encrypted_record_at(Side::Server, first_byte);
        response.wire_bytes = end(stream).saturating_sub(first_byte);
    }
    if seen.last_byte.is_some() {
        let at = stream.get_ref().now();
        stream.get_mut().events.push((at, Event::LastByte));
    }
    seen.connection = stream.get_ref().connection(first_byte);
    if let (Some(response), Some((first_byte, tickets))) = (&seen.response, tickets) {
        let records = records(&stream.get_ref().observer, first_byte);
        let of_response = if response.is_whole {
            count_within(&records, response.wire_bytes)
        } else {
            records.len()
        };
        let (records, behind) = records.split_at(of_response);
        let answer = Answer {
            begin: first_byte.saturating_sub(tickets.iter().sum()),
            tickets: &tickets,
            records,
            behind,
        };
        seen.answered = Some(Answered::new(&seen.connection, answer));
    }
}

/// Where in the server's bytes its response ends: before its close_notify, if that has come.
fn end(stream: &mut SslStream<Stream>) -> usize {
    /// Bytes of its record: a header, two bytes of an alert, their type and a tag.
    const CLOSE_NOTIFY: usize = 24;
    let consumed = stream.get_ref().consumed();
    if stream.get_shutdown().contains(ShutdownState::RECEIVED) {
        consumed.saturating_sub(CLOSE_NOTIFY)
    } else {
        consumed
    }
}

/// The records of the server from this place on, as far as they have begun to come.
fn records(observer: &Observer, mut begin: usize) -> Vec<usize> {
    let records = std::iter::from_fn(|| {
        let record = observer.encrypted_record_at(Side::Server, begin)?;
        begin = begin.saturating_add(record);
        Some(record)
    });
    records.collect()
}

/// How many of them have these bytes.
fn count_within(records: &[usize], mut bytes: usize) -> usize {
    let here = records.iter().take_while(|record| {
        let begins = bytes > 0;
        bytes = bytes.saturating_sub(**record);
        begins
    });
    here.count()
}

/// Where in the server's bytes its response begins: behind its Finished, and the tickets of so many bytes each.
fn tickets(messages: &[PlacedMessage]) -> Option<(usize, Vec<usize>)> {
    let of_server = messages
        .iter()
        .filter(|message| message.sender == Side::Server);
    let is_finished = |message: &&PlacedMessage| message.kind == MessageType::Finished;
    let mut end = of_server.clone().find(is_finished)?.bytes.end;
    let mut tickets = Vec::new();
    for ticket in of_server.filter(|message| message.kind == MessageType::Other(NEW_SESSION_TICKET))
    {
        // Others come in the midst of the response.
        if ticket.bytes.start == end {
            tickets.push(ticket.bytes.len());
            end = ticket.bytes.end;
        }
    }
    Some((end, tickets))
}

/// Sends the request and reads the response, or as much of it as tells anything.
fn exchange(
    target: &Target,
    stream: &mut SslStream<Stream>,
    ask: Ask,
    seen: &mut Seen,
) -> io::Result<()> {
    if ask.pause > Duration::ZERO {
        stream.get_mut().pause(ask.pause)?;
    }
    let before = stream.get_ref().received;
    io::Write::write_all(stream, target.request().as_bytes())?;
    let mut head = Head::default();
    let mut response: Option<Response> = None;
    let mut buffer = vec![0; 16 << 10];
    let end = loop {
        let read = match stream.read(&mut buffer) {
            Ok(read) => read,
            // Whatever it is waiting for, a response has come.
            Err(error) if is_timeout(&error) && response.is_some() => {
                // Without silence, it is only long.
                break if stream.get_ref().has_time() {
                    End::Quiet
                } else {
                    End::Enough
                };
            }
            Err(error) => {
                let interim = head.interim();
                seen.response = response;
                return Err(if is_timeout(&error) && interim > 0 {
                    io::Error::new(error.kind(), OnlyInterim(interim))
                } else {
                    error
                });
            }
        };
        let at = stream.get_ref().now();
        if read == 0 {
            break End::Closed;
        }
        seen.first_byte.get_or_insert(at);
        seen.last_byte = Some(at);
        stream.get_mut().end_after(QUIET);
        let new = buffer.get(..read).unwrap_or_default();
        match &mut response {
            None => {
                let whole = head.add(new).map_err(invalid)?;
                response = whole.map(|head| Response {
                    head,
                    wire_bytes: 0,
                    first_record: None,
                    is_whole: false,
                });
            }
            Some(response) => response.head.body.add(new),
        }
        let wire_bytes = stream.get_ref().received - before;
        if let Some(response) = &mut response {
            response.wire_bytes = wire_bytes;
            let body = &response.head.body;
            if body.has_length() && body.is_whole() || wire_bytes > ask.most {
                break End::Enough;
            }
        }
    };
    let Some(mut response) = response else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let body = &response.head.body;
    let ended = match end {
        End::Closed | End::Quiet => body.end(),
        End::Enough => body.check(),
    };
    response.is_whole = body.is_whole() || end == End::Closed && ended.is_ok();
    seen.response = Some(response);
    ended.map_err(invalid)
}

/// How reading a response ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The server has closed.
    Closed,
    /// It says no more.
    Quiet,
    /// All that was wanted has come, or there is no time for more.
    Enough,
}

/// So many interim responses came, and nothing else.
#[derive(Clone, Copy, Debug)]
struct OnlyInterim(usize);

impl fmt::Display for OnlyInterim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interim = counted(self.0, "interim response");
        write!(f, "it sends {interim} (1xx) and no response")
    }
}

impl Error for OnlyInterim {}

fn invalid(error: impl Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn unreachable(address: SocketAddr, error: &io::Error, waited: Duration) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("refuses the connection at {address}: check the port")
        }
        _ if is_timeout(error) => format!(
            "does not answer at {address} within {:.0} s: check its port, and any firewall between",
            waited.as_secs_f64()
        ),
        _ => format!("can't be reached at {address}: {error}"),
    }
}

/// Bytes of a CertificateStatus (RFC 6066, section 8): a header, a type, a length and the response, as the extension of TLS 1.3 has them.
fn status_bytes(ssl: &SslRef) -> usize {
    const AROUND: usize = 4 + 1 + 3;
    ssl.ocsp_status()
        .map_or(0, |response| AROUND + response.len())
}

/// The alert that the server sent, if that is why a connection failed.
fn alert(error: &io::Error) -> Option<Alert> {
    let error = error.get_ref()?.downcast_ref::<openssl::ssl::Error>()?;
    received_alert(error.ssl_error()?)
}

fn no_handshake(stream: &Stream, stack: Option<&ErrorStack>, is_late: bool) -> String {
    if let Some(alert) = stack.and_then(received_alert) {
        return refusal(alert);
    }
    let reason = stack.and_then(|stack| stack.errors().first()?.reason());
    let waited = stream.now().as_secs_f64();
    match stream.began {
        Began::Other => "speaks no TLS at this port: name the port of its TLS".to_owned(),
        Began::Nothing if is_late => format!(
            "accepts the connection and does not answer the ClientHello within {waited:.0} s: is it TLS, at this port?"
        ),
        Began::Tls if is_late => format!(
            "begins its handshake and does not end it within {waited:.0} s: what is in front of it?"
        ),
        _ if stream.was_reset => "resets the connection during the handshake".to_owned(),
        Began::Nothing => "hangs up before it says anything: name the port of its TLS".to_owned(),
        Began::Tls => format!(
            "does not end the handshake ({})",
            reason.unwrap_or("it hangs up")
        ),
    }
}

/// Of TLS 1.2, whose handshake does not end where a server insists on a client's certificate.
fn no_client_certificate(target: &Target, problem: &str) -> String {
    let (problem, _) = problem.split_once(": ").unwrap_or((problem, ""));
    format!(
        "asks for a client's certificate, which a probe has none of, and {problem}: `lastbyte explain {}` reads its chain",
        target.host
    )
}

/// What kept a connection from its end.
fn cut_short(seen: &Seen, stream: &Stream, error: &io::Error) -> String {
    let waited = stream.now().as_secs_f64();
    let begun = seen.first_byte.is_some();
    let cause = error.get_ref();
    if let Some(cut) = cause.and_then(|cause| cause.downcast_ref::<Cut>()) {
        return cut.to_string();
    }
    if let Some(interim) = cause.and_then(|cause| cause.downcast_ref::<OnlyInterim>()) {
        return format!("{interim} within {waited:.0} s");
    }
    match error.kind() {
        _ if stream.was_reset && begun => "it resets the connection within the response".to_owned(),
        _ if stream.was_reset => "it resets the connection after the handshake".to_owned(),
        io::ErrorKind::InvalidData if !begun => {
            "what it sends after the handshake is no response of HTTP/1.1".to_owned()
        }
        io::ErrorKind::InvalidData => {
            match error.get_ref().and_then(|error| error.downcast_ref()) {
                Some(error @ (HeadError::TooLong | HeadError::TooManyInterim)) => error.to_string(),
                Some(HeadError::NotHttp) | None => HeadError::NotHttp.to_string(),
            }
        }
        _ if is_timeout(error) && begun => {
            format!("its response stops and does not go on within {waited:.0} s")
        }
        _ if is_timeout(error) => format!("it sends no response within {waited:.0} s"),
        _ if begun => "it hangs up within the response".to_owned(),
        _ => "it hangs up without a response".to_owned(),
    }
}
