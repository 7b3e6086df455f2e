//! Questions to the resolver, over one TCP connection that is kept open (RFC 7766).
//!
//! Unbound closes it when an answer comes too late (`discard-timeout`). Then another one is
//! made, and what has no answer is asked again (RFC 7766, 6.2.4).

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::str::FromStr;
use std::time::{Duration, Instant};

use domain::base::iana::OptRcode;
use lastbyte_ad::dns::message::Response;
use lastbyte_ad::dns::{self, MessageError, Name, Rtype, framed, take_message};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{SockaddrIn, connect};
use pqtlsad::record::{RecordType, owner};

use super::{DnsError, Published};
use crate::lab::socket::open_socket;
use crate::lab::sys;
use crate::study::{Congestion, DnsCache};

const SCRATCH: usize = 64 << 10;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::lab) enum Question {
    /// The server's address.
    Address,
    /// A fragment of its record.
    Fragment(u8),
}

/// What is asked before anything is known.
pub(in crate::lab) const FIRST: [Question; 2] = [Question::Address, Question::Fragment(0)];

/// An answer.
#[derive(Debug)]
pub(in crate::lab) struct Answer {
    /// Who asked.
    pub(in crate::lab) slot: u32,
    /// The server's name as it was asked for.
    pub(in crate::lab) name: String,
    pub(in crate::lab) question: Question,
    /// RDATA of each record; none if the name has no such record.
    pub(in crate::lab) records: Result<Vec<Vec<u8>>, OptRcode>,
}

/// The client's end of the connection.
pub(in crate::lab) struct Resolver {
    address: SocketAddrV4,
    socket: TcpStream,
    /// Watches the socket, whichever it is, so that others can watch this.
    epoll: Epoll,
    next_id: u16,
    /// By the message's id.
    pending: BTreeMap<u16, PendingQuery>,
    received: Vec<u8>,
    unsent: Vec<u8>,
}

/// A question that has no answer yet.
struct PendingQuery {
    slot: u32,
    name: String,
    question: Question,
    in_dns: dns::Question,
}

impl Resolver {
    /// Connects, and asks once for what the resolver is to know.
    pub(super) fn connect(
        address: SocketAddrV4,
        published: &Published,
        patience: Duration,
    ) -> Result<Resolver, DnsError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(gone)?;
        let mut resolver = Resolver {
            address,
            socket: begin(address, &epoll).map_err(gone)?,
            epoll,
            next_id: 0,
            pending: BTreeMap::new(),
            received: Vec::new(),
            unsent: Vec::new(),
        };
        resolver.warm_up(published, patience)?;
        Ok(resolver)
    }

    fn warm_up(&mut self, published: &Published, patience: Duration) -> Result<(), DnsError> {
        let name = match published.cache {
            DnsCache::Cold => format!("warm-up.{}", published.name),
            _ => published.name.clone(),
        };
        let others = published.fragments.iter().skip(1);
        let others = others.map(|fragment| Question::Fragment(fragment.index));
        for question in FIRST.into_iter().chain(others) {
            self.ask(0, &name, &[question])?;
            for answer in self.await_answers(patience)? {
                match answer.records {
                    Ok(records) if !records.is_empty() => {}
                    Ok(_)
                        if published.fragments.is_empty()
                            && answer.question != Question::Address => {}
                    Ok(_) => return Err(refused(&name, "has no such record")),
                    Err(code) => return Err(refused(&name, &code.to_string())),
                }
            }
        }
        Ok(())
    }

    fn await_answers(&mut self, patience: Duration) -> Result<Vec<Answer>, DnsError> {
        /// Between looks at the clock.
        const LOOK_MS: u16 = 100;
        let begun = Instant::now();
        while begun.elapsed() < patience {
            let answers = self.read()?;
            if !answers.is_empty() {
                return Ok(answers);
            }
            match self.epoll.wait(&mut [EpollEvent::empty()], LOOK_MS) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(gone(error)),
            }
        }
        Err(DnsError::Resolver(format!("no answer in {patience:?}")))
    }

    /// Asks all questions of a name in one `write`.
    pub(in crate::lab) fn ask(
        &mut self,
        slot: u32,
        name: &str,
        questions: &[Question],
    ) -> Result<(), DnsError> {
        for question in questions {
            // The id of an answer that is still awaited is not free.
            while self.pending.contains_key(&self.next_id) {
                self.next_id = self.next_id.wrapping_add(1);
            }
            let id = self.next_id;
            let pending = PendingQuery {
                slot,
                name: name.to_owned(),
                question: *question,
                in_dns: in_dns(name, *question)?,
            };
            self.unsent.extend(query(&pending.in_dns, id)?);
            self.pending.insert(id, pending);
            self.next_id = id.wrapping_add(1);
        }
        self.send()
    }

    /// Makes another connection, and asks everything again.
    fn ask_again(&mut self) -> Result<(), DnsError> {
        self.socket = begin(self.address, &self.epoll).map_err(gone)?;
        self.received.clear();
        self.unsent.clear();
        for (id, pending) in &self.pending {
            self.unsent.extend(query(&pending.in_dns, *id)?);
        }
        Ok(())
    }

    /// Takes all answers that are there, and sends what could not be sent before.
    pub(in crate::lab) fn read(&mut self) -> Result<Vec<Answer>, DnsError> {
        // Whoever watches this has seen that there is an event.
        let taken = self
            .epoll
            .wait(&mut [EpollEvent::empty()], EpollTimeout::ZERO);
        taken.or_else(|error| match error {
            Errno::EINTR => Ok(0),
            error => Err(gone(error)),
        })?;
        self.send()?;
        let mut scratch = [0; SCRATCH];
        loop {
            match self.socket.read(&mut scratch) {
                Ok(0) => {
                    self.ask_again()?;
                    break;
                }
                Ok(count) => self.received.extend_from_slice(&scratch[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(gone(error)),
            }
        }
        // As after a pause, which each client has. All clients of a block share this connection;
        // else the kernel would call it interactive and hold acknowledgements back, for which
        // Unbound waits. One that is not connected yet refuses.
        let _ = sys::acknowledge_at_once(self.socket.as_fd());
        let mut answers = Vec::new();
        while let Some(message) = take_message(&mut self.received) {
            let id = message.first_chunk().copied().map(u16::from_be_bytes);
            let id =
                id.ok_or_else(|| DnsError::Resolver("it sent a message that is too short".into()))?;
            // Whoever asked may have given up.
            let Some(pending) = self.pending.remove(&id) else {
                continue;
            };
            let records = records(&pending.in_dns, id, &message)?;
            answers.push(Answer {
                slot: pending.slot,
                name: pending.name,
                question: pending.question,
                records,
            });
        }
        Ok(answers)
    }

    fn send(&mut self) -> Result<(), DnsError> {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(gone(error)),
            }
        }
        Ok(())
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

/// A connection that is on its way.
fn begin(address: SocketAddrV4, epoll: &Epoll) -> io::Result<TcpStream> {
    let socket = open_socket(Congestion::default())?;
    match connect(socket.as_raw_fd(), &SockaddrIn::from(address)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    // Both edges: there is something to read, and there is room for what could not be sent.
    let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
    epoll.add(&socket, EpollEvent::new(flags, 0))?;
    Ok(socket)
}

/// The address in an A record's RDATA.
pub(in crate::lab) fn address(rdata: &[u8]) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = rdata.try_into().ok()?;
    Some(octets.into())
}

/// A query as it goes over the connection.
pub(super) fn query(question: &dns::Question, id: u16) -> Result<Vec<u8>, DnsError> {
    let name = question.name.to_string();
    let message = question
        .query(id)
        .map_err(|error| unaskable(&name, &error))?;
    framed(&message).map_err(|error| unaskable(&name, &error))
}

/// A question in DNS's own terms.
pub(super) fn in_dns(name: &str, question: Question) -> Result<dns::Question, DnsError> {
    let (name, rtype) = match question {
        Question::Address => (name.to_owned(), Rtype::A),
        Question::Fragment(index) => {
            let rtype = Rtype::from_int(RecordType::DEFAULT.number());
            (owner(name, index), rtype)
        }
    };
    let name = Name::from_str(&name).map_err(|error| unaskable(&name, &error))?;
    Ok(dns::Question { name, rtype })
}

/// RDATA of each record, or what the resolver says instead.
fn records(
    question: &dns::Question,
    id: u16,
    message: &[u8],
) -> Result<Result<Vec<Vec<u8>>, OptRcode>, DnsError> {
    match question.response(id, message) {
        Ok(Response::Answer(dns::Answer::Records(records))) => Ok(Ok(records.data)),
        Ok(Response::Answer(dns::Answer::NoData)) => Ok(Ok(Vec::new())),
        Ok(Response::Answer(dns::Answer::NoSuchName)) => Ok(Err(OptRcode::NXDOMAIN)),
        Err(MessageError::Failure(code)) => Ok(Err(code)),
        Ok(Response::Truncated) => Err(refused(&question.name.to_string(), "is truncated")),
        Err(error) => Err(DnsError::Resolver(error.to_string())),
    }
}

fn unaskable(name: &str, problem: &dyn fmt::Display) -> DnsError {
    DnsError::Resolver(format!("can't be asked for {name:?}: {problem}"))
}

fn refused(name: &str, what: &str) -> DnsError {
    DnsError::Resolver(format!("{name}: {what}"))
}

fn gone(error: impl Into<io::Error>) -> DnsError {
    DnsError::Resolver(error.into().to_string())
}
