//! A connection of a probe over QUIC: datagrams on a socket, each noted with its time.

mod seen;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use lastbyte_link::{EcnCodepoint, Time, visible};
use lastbyte_probe::{Alternative, Http3, NamedBy, QuicSeen, ResponseHead, http3};
use lastbyte_quic::{End, Ended, Kept, Settings};
use lastbyte_tls::observer::Side;
use lastbyte_tls::observer::quic::{PacketKind, has_packet};
use lastbyte_tls::{SingleClient, TlsError};

use self::seen::{Passed, is_confirmed, is_quic};
use super::session::{Offer, Tls};
use super::stream::is_timeout;
use super::target::Target;
use crate::own::server::refusal;

/// When a probe connects over QUIC, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum WithQuic {
    /// Where the response's Alt-Svc has HTTP/3 at the same host.
    #[default]
    AltSvc,
    /// Also where it has not: at the port of TCP's.
    Always,
    /// Never.
    Never,
}

/// Where QUIC is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    port: u16,
    named_by: NamedBy,
}

/// How long a server may say nothing at all.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a handshake may take.
const LONGEST: Duration = Duration::from_secs(6);
/// How long a server may take to say that it has the client's Finished.
const CONFIRMATION: Duration = Duration::from_secs(1);
/// Datagrams of a connection without data: many more than any handshake has.
const MOST_DATAGRAMS: usize = 4096;
/// Bytes of such a connection, both ways: less than a document can have, whatever comes last.
const MOST_BYTES: usize = 768 << 10;
/// `H3_NO_ERROR` (RFC 9114, section 8.1).
const NO_ERROR: u32 = 0x100;
/// The longest UDP payload.
const LONGEST_DATAGRAM: usize = 65_527;

impl WithQuic {
    /// Where a server is to be asked, by what its response says; else, why it is not, where that has something to do with
    /// what it says.
    pub(super) fn place(
        self,
        target: &Target,
        head: Option<&ResponseHead>,
    ) -> Result<Option<Place>, String> {
        let asked = match self {
            WithQuic::Never => return Ok(None),
            WithQuic::AltSvc => None,
            WithQuic::Always => Some(Place {
                port: target.host.port,
                named_by: NamedBy::Asked,
            }),
        };
        let alternatives = head.map_or(Ok(Vec::new()), |head| head.alternatives.clone());
        match alternatives.map(|all| http3(&all, &target.host.name)) {
            Ok(Some(Http3::Here(port))) => Ok(Some(Place {
                port,
                named_by: NamedBy::AltSvc,
            })),
            Ok(None) => Ok(asked),
            _ if asked.is_some() => Ok(asked),
            Ok(Some(Http3::Elsewhere(Alternative { host, port, .. }))) => Err(format!(
                "its Alt-Svc has HTTP/3 at another host, which is not asked: probe {}:{port}, if it is yours",
                visible(&host.unwrap_or_default())
            )),
            Err(error) => Err(format!("{error}, and is not followed")),
        }
    }
}

/// What becomes of a connection over QUIC at this address, until then at the latest.
pub(super) fn connect(
    tls: &Tls,
    target: &Target,
    address: SocketAddr,
    place: Place,
    until: Instant,
) -> QuicSeen {
    let Place { port, named_by } = place;
    let to = SocketAddr::new(address.ip(), port);
    let carried = Carried::new(tls, target, to, until).map(|mut carried| {
        let ended = carried.carry();
        (carried, ended)
    });
    let (mut seen, ended) = match carried {
        Ok((carried, ended)) => (carried.seen(), ended),
        Err(problem) => (QuicSeen::default(), Err(problem)),
    };
    let problem = ended.err().map(|problem| visible(&problem));
    (seen.port, seen.named_by, seen.problem) = (port, named_by, problem);
    seen
}

/// A connection, and all that passed.
struct Carried {
    socket: UdpSocket,
    end: End,
    start: Instant,
    until: Instant,
    passed: Vec<Passed>,
    /// Of all of them.
    bytes: usize,
    /// When the client's Finished left.
    finished: Option<Time>,
}

impl Carried {
    fn new(tls: &Tls, target: &Target, to: SocketAddr, until: Instant) -> Result<Carried, String> {
        let of_openssl =
            |error| format!("can't be asked: {}", lastbyte_pki::openssl_reason(&error));
        let ssl = tls.ssl(target, Offer::Quic).map_err(of_openssl)?;
        let mut seed = [0; 8];
        openssl::rand::rand_bytes(&mut seed).map_err(of_openssl)?;
        let stack = Arc::new(SingleClient::new(ssl));
        let settings = Settings::with_window(10, Settings::DATAGRAM);
        let seed = u64::from_ne_bytes(seed);
        let end = End::client(stack, &settings, Kept::default(), seed, Time(0))
            .map_err(|error| format!("can't be asked: {error}"))?;
        let socket = open(to).map_err(|error| unreachable(&error))?;
        let start = Instant::now();
        Ok(Carried {
            socket,
            end,
            start,
            until: until.min(start + LONGEST),
            passed: Vec::new(),
            bytes: 0,
            finished: None,
        })
    }

    fn now(&self) -> Time {
        let since = self.start.elapsed().as_nanos();
        Time(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Until the server has confirmed the handshake, or says no more.
    fn carry(&mut self) -> Result<(), String> {
        let mut buffer = vec![0; LONGEST_DATAGRAM];
        let ended = loop {
            self.end.on_time(self.now());
            self.send()?;
            if let Some(ended) = self.end.ended() {
                break Some(ended.clone());
            }
            if self.end.is_established() && self.finished.is_none() {
                self.finished = Some(self.now());
            }
            let is_over =
                self.finished.is_some() && is_confirmed(&self.passed, &self.end.key_log());
            if is_over {
                break None;
            }
            if self.passed.len() > MOST_DATAGRAMS || self.bytes > MOST_BYTES {
                return Err(format!(
                    "it is asked no further: {} bytes in {} datagrams are more than a handshake has",
                    self.bytes,
                    self.passed.len()
                ));
            }
            let limit = self.limit();
            let Some(left) = limit.checked_duration_since(Instant::now()) else {
                break None;
            };
            let due = self
                .end
                .deadline()
                .map(|due| due.since(self.now().min(due)));
            let wait = due.map_or(left, |due| due.min(left));
            match self.receive(&mut buffer, wait) {
                Ok(()) => {}
                Err(error) if is_timeout(&error) || error.kind() == ErrorKind::Interrupted => {}
                // Whoever answers may be somebody else, once the server has.
                Err(_) if self.has_come() => {}
                Err(error) => return Err(unreachable(&error)),
            }
        };
        let now = self.now();
        self.end.close(now, NO_ERROR);
        // Whether the server hears of it is its own affair.
        let _ = self.send();
        match (ended, self.finished) {
            (Some(ended), finished) => Err(self.broken(&ended, finished.is_some())),
            (None, Some(_)) => Ok(()),
            (None, None) => Err(self.unfinished()),
        }
    }

    /// When it is over if nothing more comes.
    fn limit(&self) -> Instant {
        let patience = match self.finished {
            Some(finished) => finished.since(Time(0)) + CONFIRMATION,
            None if self.has_come() => LONGEST,
            None => PATIENCE,
        };
        self.until.min(self.start + patience)
    }

    fn has_come(&self) -> bool {
        self.passed
            .iter()
            .any(|passed| passed.sender == Side::Server)
    }

    fn send(&mut self) -> Result<(), String> {
        let mut datagram = Vec::new();
        while self.end.transmit(self.now(), &mut datagram).is_some() {
            self.send_one(&datagram)?;
        }
        Ok(())
    }

    fn send_one(&mut self, datagram: &[u8]) -> Result<(), String> {
        // Of what could not leave, another comes.
        if let Err(error) = self.socket.send(datagram)
            && !self.has_come()
        {
            return Err(unreachable(&error));
        }
        self.note(Side::Client, datagram);
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], wait: Duration) -> io::Result<()> {
        const LEAST: Duration = Duration::from_micros(100);
        self.socket.set_read_timeout(Some(wait.max(LEAST)))?;
        let length = self.socket.recv(buffer)?;
        let datagram = buffer.get(..length).unwrap_or_default();
        self.note(Side::Server, datagram);
        if let Some(answer) = self.end.receive(self.now(), EcnCodepoint::NotEct, datagram) {
            self.note(Side::Client, &answer);
            self.socket.send(&answer)?;
        }
        Ok(())
    }

    fn note(&mut self, sender: Side, datagram: &[u8]) {
        self.bytes += datagram.len();
        self.passed.push(Passed {
            at: self.now(),
            sender,
            datagram: datagram.to_vec(),
        });
    }

    fn seen(&self) -> QuicSeen {
        seen::seen(&self.passed, &self.end.key_log(), self.finished)
    }

    /// Why a connection is over that was to go on.
    fn broken(&self, ended: &Ended, is_finished: bool) -> String {
        let behind = if is_finished {
            ", once that is complete"
        } else {
            ""
        };
        match ended {
            Ended::Tls(TlsError::Refused(alert)) => format!("it {}{behind}", refusal(*alert)),
            Ended::Tls(error) => format!("the handshake does not go on: {error}"),
            Ended::Transport(_) if self.has_other_versions() && !is_finished => self.unfinished(),
            Ended::Transport(why) => format!("the connection is ended: {why}"),
            Ended::Idle => self.unfinished(),
        }
    }

    fn has_other_versions(&self) -> bool {
        let of_server = |passed: &&Passed| passed.sender == Side::Server;
        let mut came = self.passed.iter().filter(of_server);
        came.any(|passed| has_packet(&passed.datagram, PacketKind::VersionNegotiation))
    }

    /// Why a handshake that was begun is not complete.
    fn unfinished(&self) -> String {
        let waited = self.start.elapsed().as_secs_f64();
        if !self.has_come() {
            return format!(
                "nothing answers within {waited:.0} s: check that a server listens there, and any firewall between"
            );
        }
        if self.has_other_versions() {
            return "it speaks other versions of QUIC than 1 alone (RFC 9000, section 6)"
                .to_owned();
        }
        if !is_quic(&self.passed) {
            return "what answers is no QUIC: name the port of its HTTP/3".to_owned();
        }
        format!("it begins its handshake and does not end it within {waited:.0} s")
    }
}

/// A socket that nobody but this address reaches.
fn open(to: SocketAddr) -> io::Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket)
}

fn unreachable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            "nothing listens there (ICMP says that the port is unreachable)".to_owned()
        }
        _ => format!("it can't be reached: {error}"),
    }
}
