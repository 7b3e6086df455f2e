//! Queries and their answers (RFC 1035, RFC 6891).

use std::time::Duration;

use domain::base::iana::{Class, OptRcode, Rcode};
use domain::base::message_builder::PushError;
use domain::base::wire::ParseError;
use domain::base::{Message, MessageBuilder, Rtype, ToName, UnknownRecordData};
use domain::rdata::Cname;

use super::Name;

/// The largest UDP answer that we ask for, in bytes: one that is not fragmented on the way, as DNS
/// Flag Day 2020 has it.
pub const UDP_PAYLOAD: u16 = 1232;

/// How many aliases are followed.
const MAX_ALIASES: usize = 16;

/// What is asked, of class IN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Whose records.
    pub name: Name,
    /// Of which type.
    pub rtype: Rtype,
}

/// What the DNS says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There are such records.
    Records(Records),
    /// The name has none of this type (RFC 2308, section 2.2).
    NoData,
    /// There is no such name (RFC 2308, section 2.1).
    NoSuchName,
}

/// The records of one name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// How long they may be kept: the least of theirs and of the aliases that lead to them.
    pub ttl: Duration,
    /// The data of each.
    pub data: Vec<Vec<u8>>,
}

/// What a message of the server is to its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// It is the answer.
    Answer(Answer),
    /// The answer does not fit: it is to be asked over TCP.
    Truncated,
}

/// Why a message is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It answers something else, and may be forged.
    #[error("the message answers another question")]
    Other,
    /// It can't be read.
    #[error("the answer can't be read: {0}")]
    Malformed(String),
    /// The server answers that it can't.
    #[error("the server answers {0}")]
    Failure(OptRcode),
    /// The aliases lead nowhere.
    #[error("the name is an alias of an alias, more than {MAX_ALIASES} times")]
    Aliases,
}

impl Question {
    /// The query, for any transport.
    ///
    /// # Errors
    ///
    /// Never, as a question always fits.
    pub fn query(&self, id: u16) -> Result<Vec<u8>, PushError> {
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(id);
        builder.header_mut().set_rd(true);
        let mut question = builder.question();
        question.push((&self.name, self.rtype, Class::IN))?;
        let mut additional = question.additional();
        additional.opt(|opt| {
            opt.set_udp_payload_size(UDP_PAYLOAD);
            Ok(())
        })?;
        Ok(additional.finish())
    }

    /// Reads `message` as the answer to the query with this id.
    ///
    /// # Errors
    ///
    /// If it is no answer, or says that there is none to be had.
    pub fn response(&self, id: u16, message: &[u8]) -> Result<Response, MessageError> {
        let message = Message::from_octets(message).map_err(|_| MessageError::Other)?;
        let header = message.header();
        if header.id() != id || !header.qr() {
            return Err(MessageError::Other);
        }
        let rcode = message.opt_rcode();
        match message.sole_question() {
            Ok(question)
                if question.qname().name_eq(&self.name)
                    && question.qtype() == self.rtype
                    && question.qclass() == Class::IN => {}
            // A server that can't read a query can't repeat its question.
            _ if message.header_counts().qdcount() == 0
                && matches!(header.rcode(), Rcode::FORMERR | Rcode::REFUSED) =>
            {
                return Err(MessageError::Failure(rcode));
            }
            _ => return Err(MessageError::Other),
        }
        if header.tc() {
            return Ok(Response::Truncated);
        }
        match rcode {
            OptRcode::NOERROR => self.answer(&message).map(Response::Answer),
            OptRcode::NXDOMAIN => Ok(Response::Answer(Answer::NoSuchName)),
            other => Err(MessageError::Failure(other)),
        }
    }

    fn answer(&self, message: &Message<&[u8]>) -> Result<Answer, MessageError> {
        let records = self.records(message).map_err(malformed)?;
        let mut name = self.name.clone();
        let mut ttl = u32::MAX;
        for _ in 0..=MAX_ALIASES {
            let own = || records.iter().filter(|record| record.owner.name_eq(&name));
            let mut data = Vec::new();
            let mut alias = None;
            for record in own() {
                match &record.data {
                    Data::Sought(octets) => data.push(octets.clone()),
                    Data::Alias(target) => alias = Some(target.clone()),
                }
            }
            ttl = own().map(|record| record.ttl).fold(ttl, u32::min);
            match alias {
                _ if !data.is_empty() => {
                    let ttl = Duration::from_secs(ttl.into());
                    return Ok(Answer::Records(Records { ttl, data }));
                }
                Some(target) => name = target,
                None => return Ok(Answer::NoData),
            }
        }
        Err(MessageError::Aliases)
    }

    /// The records of the answer that are sought, or lead there.
    fn records(&self, message: &Message<&[u8]>) -> Result<Vec<Record>, ParseError> {
        let mut records = Vec::new();
        for record in message.answer()? {
            let record = record?;
            if record.class() != Class::IN {
                continue;
            }
            let data = if record.rtype() == self.rtype {
                let Some(sought) = record.to_record::<UnknownRecordData<_>>()? else {
                    continue;
                };
                Data::Sought(sought.data().data().to_vec())
            } else if let Some(alias) = record.to_record::<Cname<_>>()? {
                Data::Alias(alias.data().cname().to_vec())
            } else {
                continue;
            };
            records.push(Record {
                owner: record.owner().to_vec(),
                // One with the top bit set counts as 0 (RFC 2181, section 8).
                ttl: match record.ttl().as_secs() {
                    ttl if ttl > i32::MAX.unsigned_abs() => 0,
                    ttl => ttl,
                },
                data,
            });
        }
        Ok(records)
    }
}

struct Record {
    owner: Name,
    ttl: u32,
    data: Data,
}

enum Data {
    Sought(Vec<u8>),
    Alias(Name),
}

fn malformed(error: ParseError) -> MessageError {
    MessageError::Malformed(error.to_string())
}
