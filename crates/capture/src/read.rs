//! Reads pcapng, which anybody may have written.

use std::collections::HashSet;
use std::io::{self, Read};

use lastbyte_link::{TcpPacket, Time};
use pcap_parser::pcapng::{
    Block, DecryptionSecretsBlock, EnhancedPacketBlock, InterfaceDescriptionBlock,
    InterfaceStatisticsBlock, OptionCode, PcapNGOption, parse_block_be, parse_block_le,
    parse_sectionheaderblock,
};
use pcap_parser::{Linktype, SecretsType};

use crate::{Fate, Packet, Point};

/// A file that was read.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// What was measured, as the section says.
    pub comment: String,
    /// The TLS secrets inside, as an `SSLKEYLOGFILE` has them.
    pub secrets: String,
    /// In the order of the file.
    pub packets: Vec<(Packet, Vec<String>)>,
    /// Packets that the tap had no room for.
    pub unseen: u64,
    /// What was left out, if anything.
    pub taken: Taken,
}

/// Whether a file was read to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Taken {
    /// It was.
    #[default]
    Whole,
    /// It ends within a block.
    Cut,
    /// It has more packets than are read.
    UpToLimit,
}

/// A file can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins like something else.
    #[error("it is no pcapng file")]
    NoPcapng,
    /// It is damaged.
    #[error("it is damaged at byte {0}")]
    Damaged(u64),
    /// Somebody has made one file of several, whose connections have the same addresses and times.
    #[error(
        "it is several captures in one, and which packet is of which is not known: show each by itself"
    )]
    Merged,
    /// It comes from somewhere else.
    #[error(
        "it has no packets of both sides of a link, with interfaces called {:?} and so on: \
         `lastbyte compare --capture 1` makes one that has",
        Point::SentByClient.name()
    )]
    Foreign,
}

/// The longest block that is read: a packet of the longest kind, or the secrets of some ten
/// thousand connections.
const LONGEST_BLOCK: usize = 32 << 20;
/// Bytes of packets and comments that are kept.
const MOST_BYTES: usize = 1 << 30;
/// Secrets that are kept, in bytes.
const MOST_SECRETS: usize = 64 << 20;
/// Interfaces of a section that are kept.
const MOST_INTERFACES: usize = 1 << 12;

/// An interface of a section.
#[derive(Clone, Copy)]
struct Interface {
    point: Option<Point>,
    /// Of its times, in a second.
    units: u64,
}

/// Reads a file that [`write`](crate::write()) has made. What is cut short is read as far as it
/// goes.
///
/// Memory is bounded by the file, and by about 1 GB.
///
/// # Errors
///
/// When it is something else, or damaged.
pub fn read(mut from: impl Read) -> Result<Capture, ReadError> {
    let mut reading = Reading::default();
    loop {
        let block = match next_block(&mut from, reading.is_big_endian, reading.offset)? {
            Next::Block(block) => block,
            Next::End | Next::Cut if reading.is_first() => return Err(ReadError::NoPcapng),
            Next::End => break,
            Next::Cut => {
                reading.capture.taken = Taken::Cut;
                break;
            }
        };
        reading.add(&block)?;
        if reading.capture.taken == Taken::UpToLimit {
            break;
        }
        reading.offset += block.len() as u64;
    }
    reading.finish()
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    capture: Capture,
    /// Of this section.
    interfaces: Vec<Interface>,
    /// How many interfaces this section has, those that are not kept included.
    described: u32,
    is_big_endian: bool,
    /// Where the next block begins.
    offset: u64,
    /// Bytes of packets' blocks.
    retained: usize,
    /// Whether an interface is one of ours.
    is_ours: bool,
    is_merged: bool,
}

impl Reading {
    fn is_first(&self) -> bool {
        self.offset == 0
    }

    fn damaged(&self) -> ReadError {
        if self.is_first() {
            ReadError::NoPcapng
        } else {
            ReadError::Damaged(self.offset)
        }
    }

    fn add(&mut self, block: &[u8]) -> Result<(), ReadError> {
        if let Ok((_, section)) = parse_sectionheaderblock(block) {
            self.begin_section(section.big_endian(), comments(&section.options).collect());
            return Ok(());
        }
        let parse = if self.is_big_endian {
            parse_block_be
        } else {
            parse_block_le
        };
        let (_, parsed) = parse(block).map_err(|_| self.damaged())?;
        if self.is_first() {
            return Err(ReadError::NoPcapng);
        }
        match parsed {
            Block::InterfaceDescription(interface) => self.add_interface(&interface),
            Block::DecryptionSecrets(secrets) if secrets.secrets_type == SecretsType::TlsKeyLog => {
                self.add_secrets(&secrets);
            }
            Block::EnhancedPacket(packet) => self.add_packet(&packet, block.len())?,
            Block::InterfaceStatistics(statistics) => self.add_statistics(&statistics),
            _ => {}
        }
        Ok(())
    }

    fn begin_section(&mut self, is_big_endian: bool, comments: Vec<String>) {
        self.is_big_endian = is_big_endian;
        self.interfaces.clear();
        self.described = 0;
        // As mergecap has it.
        self.is_merged |= comments
            .iter()
            .any(|comment| comment.starts_with("File created by merging"));
        match comments.into_iter().next() {
            Some(comment) if self.is_first() => self.capture.comment = comment,
            Some(comment) => self.is_merged |= comment != self.capture.comment,
            None => {}
        }
    }

    fn add_interface(&mut self, interface: &InterfaceDescriptionBlock<'_>) {
        self.described = self.described.saturating_add(1);
        if self.interfaces.len() == MOST_INTERFACES {
            return;
        }
        let name = interface.if_name().and_then(Result::ok);
        let point = Point::ALL
            .into_iter()
            .find(|point| Some(point.name()) == name)
            .filter(|_| interface.linktype == Linktype::RAW);
        self.is_ours |= point.is_some();
        self.interfaces.push(Interface {
            point,
            units: interface.ts_resolution().unwrap_or(1_000_000).max(1),
        });
    }

    fn add_secrets(&mut self, secrets: &DecryptionSecretsBlock<'_>) {
        let length = secrets.secrets_len as usize;
        let bytes = secrets.data.get(..length).unwrap_or(secrets.data);
        if self.capture.secrets.len() + bytes.len() <= MOST_SECRETS {
            self.capture.secrets += &String::from_utf8_lossy(bytes);
        }
    }

    /// Adds a packet of one of our interfaces, whose block has `length` bytes, unless there are too
    /// many.
    fn add_packet(
        &mut self,
        packet: &EnhancedPacketBlock<'_>,
        length: usize,
    ) -> Result<(), ReadError> {
        if packet.if_id >= self.described {
            return Err(self.damaged());
        }
        let interface = self.interfaces.get(packet.if_id as usize);
        let Some((point, units)) = interface.and_then(|found| Some((found.point?, found.units)))
        else {
            return Ok(());
        };
        let bytes = packet.data.get(..packet.caplen as usize);
        let bytes = bytes.ok_or_else(|| self.damaged())?;
        let comments: Vec<String> = comments(&packet.options).collect();
        self.retained += length;
        if self.retained > MOST_BYTES {
            self.capture.taken = Taken::UpToLimit;
            return Ok(());
        }
        let time = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
        let fate = comments
            .iter()
            .find_map(|comment| Fate::of_comment(comment));
        self.capture.packets.push((
            Packet {
                at: Time(nanoseconds(time, units)),
                point,
                fate: fate.unwrap_or_default(),
                bytes: bytes.to_vec(),
                length: packet.origlen,
            },
            comments,
        ));
        Ok(())
    }

    fn add_statistics(&mut self, statistics: &InterfaceStatisticsBlock<'_>) {
        let mut options = statistics.options.iter();
        let dropped = options.find(|option| option.code == OptionCode::IsbIfDrop);
        let dropped = dropped.and_then(|option| option.value().first_chunk::<8>());
        let dropped = dropped.map_or(0, |bytes| {
            if self.is_big_endian {
                u64::from_be_bytes(*bytes)
            } else {
                u64::from_le_bytes(*bytes)
            }
        });
        self.capture.unseen = self.capture.unseen.saturating_add(dropped);
    }

    fn finish(self) -> Result<Capture, ReadError> {
        if !self.is_ours {
            return Err(ReadError::Foreign);
        }
        if self.is_merged || begins_twice(&self.capture.packets) {
            return Err(ReadError::Merged);
        }
        Ok(self.capture)
    }
}

/// Whether two first packets of one client's port leave in one moment: no timer of TCP's is so
/// short.
fn begins_twice(packets: &[(Packet, Vec<String>)]) -> bool {
    let mut begun = HashSet::new();
    let sent = packets
        .iter()
        .filter(|(packet, _)| packet.point == Point::SentByClient);
    let mut begins = sent.filter_map(|(packet, _)| {
        let tcp = TcpPacket::parse(&packet.bytes)?;
        let client = (tcp.source, tcp.source_port);
        let server = (tcp.destination, tcp.destination_port);
        (tcp.flags & TcpPacket::SYN != 0).then_some((packet.at, client, server))
    });
    begins.any(|begin| !begun.insert(begin))
}

fn nanoseconds(time: u64, units: u64) -> u64 {
    let nanoseconds = u128::from(time) * 1_000_000_000 / u128::from(units);
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}

fn comments<'a>(options: &'a [PcapNGOption<'a>]) -> impl Iterator<Item = String> + 'a {
    let comments = options
        .iter()
        .filter(|option| option.code == OptionCode::Comment);
    comments
        .filter_map(|option| Some(String::from_utf8_lossy(option.as_bytes().ok()?).into_owned()))
}

enum Next {
    Block(Vec<u8>),
    End,
    Cut,
}

/// Reads a block as its length says, so that nobody is asked for more memory than there are bytes.
fn next_block(from: &mut impl Read, is_big_endian: bool, offset: u64) -> Result<Next, ReadError> {
    const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
    const BIG_ENDIAN: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
    const LITTLE_ENDIAN: [u8; 4] = [0x4d, 0x3c, 0x2b, 0x1a];
    /// Type, length, and either the byte order or what every block has.
    const HEAD: usize = 12;

    let mut block = Vec::new();
    from.by_ref().take(HEAD as u64).read_to_end(&mut block)?;
    let (kind, length, order) = match block.as_chunks::<4>().0 {
        [] if block.is_empty() => return Ok(Next::End),
        [kind, length, order] => (*kind, *length, *order),
        _ => return Ok(Next::Cut),
    };
    let is_big_endian = match (kind, order) {
        (SECTION, BIG_ENDIAN) => true,
        (SECTION, LITTLE_ENDIAN) => false,
        (SECTION, _) => return Err(damaged_at(offset)),
        _ if offset == 0 => return Err(ReadError::NoPcapng),
        _ => is_big_endian,
    };
    let length = if is_big_endian {
        u32::from_be_bytes(length)
    } else {
        u32::from_le_bytes(length)
    } as usize;
    if !(HEAD..=LONGEST_BLOCK).contains(&length) || !length.is_multiple_of(4) {
        return Err(damaged_at(offset));
    }
    from.by_ref()
        .take((length - HEAD) as u64)
        .read_to_end(&mut block)?;
    if block.len() == length {
        Ok(Next::Block(block))
    } else {
        Ok(Next::Cut)
    }
}

fn damaged_at(offset: u64) -> ReadError {
    match offset {
        0 => ReadError::NoPcapng,
        offset => ReadError::Damaged(offset),
    }
}

#[cfg(test)]
mod tests;
