//! Dynamic updates (RFC 2136), signed (RFC 8945).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use domain::base::iana::{Class, Opcode, Rcode};
use domain::base::message_builder::{AdditionalBuilder, PushError};
use domain::base::{Message, MessageBuilder, Record, Rtype, ToName, Ttl, UnknownRecordData};
use domain::rdata::tsig::Time48;
use domain::tsig::{ClientTransaction, Key};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::stream::framed;
use super::{Answer, Client, DnsError, First, Name, Question, random_id};

/// How long a server is given to carry out an update.
const PATIENCE: Duration = Duration::from_secs(10);

/// One change of a zone. All of an update happen, or none (RFC 2136, section 3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// All records of this name and type go.
    Remove {
        /// Whose.
        name: Name,
        /// Of which type.
        rtype: Rtype,
    },
    /// A record comes.
    Add {
        /// Whose.
        name: Name,
        /// Of which type.
        rtype: Rtype,
        /// How long others may keep it.
        ttl: Duration,
        /// Its data.
        data: Vec<u8>,
    },
}

/// Why a zone was not updated.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The changes do not fit a message.
    #[error("the update exceeds a DNS message, which has 65535 bytes")]
    TooLong,
    /// The server can't be asked.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// The server has no zone for the name.
    #[error("{server} has no zone that holds {name}: name the zone's primary server")]
    NoZone {
        /// The server.
        server: SocketAddr,
        /// The name that was to change.
        name: Name,
    },
    /// The server refuses.
    #[error("{server} refuses the update of {zone}: {rcode}{hint}")]
    Refused {
        /// The server.
        server: SocketAddr,
        /// The zone.
        zone: Name,
        /// Its words.
        rcode: Rcode,
        /// What to do.
        hint: &'static str,
    },
    /// The answer is not signed as it should be.
    #[error("{server}: the answer to the update is not authentic: {reason}")]
    Unauthentic {
        /// The server.
        server: SocketAddr,
        /// What is wrong.
        reason: String,
    },
}

/// The zone of `server` that holds `name`.
///
/// # Errors
///
/// If the server can't be asked, or has no such zone.
pub async fn zone_of(server: SocketAddr, name: &Name) -> Result<Name, UpdateError> {
    let client = Client::new([server.into()]);
    let mut candidate = Some(name.clone());
    while let Some(zone) = candidate {
        let question = Question {
            name: zone.clone(),
            rtype: Rtype::SOA,
        };
        match client.ask(&question, First::Udp).await {
            Ok(reply) if matches!(reply.answer, Answer::Records(_)) => return Ok(zone),
            // Not below one of its zones, for it to say so.
            Ok(_) | Err(DnsError::Message { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        candidate = zone.parent().map(|parent| parent.to_vec());
    }
    Err(UpdateError::NoZone {
        server,
        name: name.clone(),
    })
}

/// Makes all of `changes` to `zone`, or none, in one message over TCP.
///
/// # Errors
///
/// If they do not fit, the server can't be asked or refuses, or the answer is not signed.
pub async fn update(
    server: SocketAddr,
    zone: &Name,
    changes: &[Change],
    key: Option<&Key>,
) -> Result<(), UpdateError> {
    let request = Request::new(zone, changes, key)?;
    let message = framed(&request.message).map_err(|_| UpdateError::TooLong)?;
    let answer = match timeout(PATIENCE, exchange(server, &message)).await {
        Ok(answer) => answer.map_err(|error| DnsError::Io { server, error })?,
        Err(_) => {
            return Err(UpdateError::Dns(DnsError::Timeout {
                server,
                attempts: 1,
                each: PATIENCE,
            }));
        }
    };
    request.check(server, answer)
}

/// An update that is asked for.
pub(super) struct Request<'a> {
    /// The message.
    pub(super) message: Vec<u8>,
    id: u16,
    zone: &'a Name,
    transaction: Option<ClientTransaction<Key>>,
}

impl Request<'_> {
    pub(super) fn new<'a>(
        zone: &'a Name,
        changes: &[Change],
        key: Option<&Key>,
    ) -> Result<Request<'a>, UpdateError> {
        let id = random_id()?;
        let mut builder = message(id, zone, changes).map_err(|_| UpdateError::TooLong)?;
        let transaction = match key {
            Some(key) => Some(
                ClientTransaction::request(key.clone(), &mut builder, Time48::now())
                    .map_err(|_| UpdateError::TooLong)?,
            ),
            None => None,
        };
        Ok(Request {
            message: builder.finish(),
            id,
            zone,
            transaction,
        })
    }

    /// What the server says to it.
    pub(super) fn check(self, server: SocketAddr, answer: Vec<u8>) -> Result<(), UpdateError> {
        let unauthentic = |reason: String| UpdateError::Unauthentic { server, reason };
        let mut answer =
            Message::from_octets(answer).map_err(|_| unauthentic("too short".to_owned()))?;
        let header = answer.header();
        if header.id() != self.id || !header.qr() || header.opcode() != Opcode::UPDATE {
            return Err(unauthentic("it answers something else".to_owned()));
        }
        let allowed = match self.transaction {
            Some(_) => ": allow the key in the zone's update policy",
            None => ": sign it with a key that the zone's update policy allows (--tsig)",
        };
        if header.rcode() == Rcode::NOERROR
            && let Some(transaction) = self.transaction
        {
            let checked = transaction.answer(&mut answer, Time48::now());
            checked.map_err(|error| unauthentic(error.to_string()))?;
        }
        match header.rcode() {
            Rcode::NOERROR => Ok(()),
            rcode => Err(UpdateError::Refused {
                server,
                zone: self.zone.clone(),
                rcode,
                hint: hint(rcode, allowed),
            }),
        }
    }
}

/// The update, to be signed.
fn message(
    id: u16,
    zone: &Name,
    changes: &[Change],
) -> Result<AdditionalBuilder<Vec<u8>>, PushError> {
    let mut builder = MessageBuilder::new_vec();
    builder.set_push_limit(u16::MAX.into());
    builder.header_mut().set_id(id);
    builder.header_mut().set_opcode(Opcode::UPDATE);
    let mut question = builder.question();
    question.push((zone, Rtype::SOA, Class::IN))?;
    let mut updates = question.authority();
    for change in changes {
        let (name, rtype, class, ttl, data) = match change {
            Change::Remove { name, rtype } => (name, rtype, Class::ANY, Duration::ZERO, &[][..]),
            Change::Add {
                name,
                rtype,
                ttl,
                data,
            } => (name, rtype, Class::IN, *ttl, data.as_slice()),
        };
        let ttl = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
        let data = UnknownRecordData::from_octets(*rtype, data).map_err(|_| PushError::ShortBuf)?;
        updates.push(Record::new(name, class, Ttl::from_secs(ttl), data))?;
    }
    Ok(updates.additional())
}

async fn exchange(server: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(request).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// What to do about a refusal, where only the zone's policy can be its reason that it is `allowed`.
fn hint(rcode: Rcode, allowed: &'static str) -> &'static str {
    match rcode {
        Rcode::REFUSED => allowed,
        Rcode::NOTAUTH => {
            ": the key is not the server's (name, algorithm, secret), or clocks differ"
        }
        Rcode::NOTZONE => ": the name is not of this zone",
        _ => "",
    }
}
