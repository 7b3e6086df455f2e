//! pcapng (draft-ietf-opsawg-pcapng).

use std::io::{self, Write};

use lastbyte_link::Time;

use crate::{Packet, Point};

/// What a file says besides its packets.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// What was measured (`opt_comment` of the section).
    pub comment: &'a str,
    /// What has written it (`shb_userappl`).
    pub program: &'a str,
    /// The TLS secrets of its connections, as an `SSLKEYLOGFILE` has them.
    pub secrets: &'a str,
    /// Packets that the tap had no room for (`isb_ifdrop`).
    pub unseen: u64,
    /// When the tap was closed.
    pub closed: Time,
}

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const SECRETS: u32 = 10;

const COMMENT: u16 = 1;
const SECTION_PROGRAM: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const STATISTICS_DROPPED: u16 = 5;

/// IPv4 and IPv6 without a header before them (LINKTYPE_RAW).
const RAW: u16 = 101;
/// 10^-9 s.
const NANOSECONDS: u8 = 9;
/// "TLSK"
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// The longest that an option can be.
const LONGEST_OPTION: usize = u16::MAX as usize;

/// Writes a file: interfaces of all [points](Point::ALL), secrets, and then packets, each with what `comment` says of it
/// besides its fate. They have to be in the order of their times.
///
/// # Errors
///
/// Those of `out`.
pub fn write<'a>(
    mut out: impl Write,
    about: &About<'_>,
    packets: impl IntoIterator<Item = (&'a Packet, Option<String>)>,
) -> io::Result<()> {
    let mut section = Block::new(SECTION);
    section.words(&[0x1a2b_3c4d]);
    section.bytes(&1_u16.to_le_bytes());
    section.bytes(&0_u16.to_le_bytes());
    // Its length is not known.
    section.bytes(&(-1_i64).to_le_bytes());
    section.option(COMMENT, about.comment.as_bytes());
    section.option(SECTION_PROGRAM, about.program.as_bytes());
    section.finish(&mut out)?;
    for point in Point::ALL {
        let mut interface = Block::new(INTERFACE);
        interface.bytes(&RAW.to_le_bytes());
        interface.bytes(&0_u16.to_le_bytes());
        interface.words(&[0]);
        interface.option(INTERFACE_NAME, point.name().as_bytes());
        interface.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
        interface.finish(&mut out)?;
    }
    if !about.secrets.is_empty() {
        let mut secrets = Block::new(SECRETS);
        secrets.words(&[TLS_KEY_LOG, about.secrets.len() as u32]);
        secrets.padded(about.secrets.as_bytes());
        secrets.finish(&mut out)?;
    }
    for (packet, comment) in packets {
        let mut block = Block::new(PACKET);
        let [high, low] = halves(packet.at);
        block.words(&[
            u32::from(packet.point.number()),
            high,
            low,
            packet.bytes.len() as u32,
            packet.length,
        ]);
        block.padded(&packet.bytes);
        for comment in comment
            .iter()
            .map(String::as_str)
            .chain(packet.fate.comment())
        {
            block.option(COMMENT, comment.as_bytes());
        }
        block.finish(&mut out)?;
    }
    let mut statistics = Block::new(STATISTICS);
    let [high, low] = halves(about.closed);
    statistics.words(&[0, high, low]);
    if about.unseen > 0 {
        let comment = format!(
            "{} packets of all interfaces are missing: the tap had no room for them",
            about.unseen
        );
        statistics.option(COMMENT, comment.as_bytes());
    }
    statistics.option(STATISTICS_DROPPED, &about.unseen.to_le_bytes());
    statistics.finish(&mut out)
}

fn halves(time: Time) -> [u32; 2] {
    [(time.0 >> 32) as u32, time.0 as u32]
}

/// A block that is being made: type, length, body, options, length.
struct Block {
    bytes: Vec<u8>,
    has_options: bool,
}

impl Block {
    fn new(kind: u32) -> Block {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        Block {
            bytes,
            has_options: false,
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn words(&mut self, words: &[u32]) {
        words
            .iter()
            .for_each(|word| self.bytes(&word.to_le_bytes()));
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..LONGEST_OPTION).unwrap_or(value);
        self.bytes(&code.to_le_bytes());
        self.bytes(&(value.len() as u16).to_le_bytes());
        self.padded(value);
        self.has_options = true;
    }

    fn finish(mut self, out: &mut impl Write) -> io::Result<()> {
        if self.has_options {
            // opt_endofopt
            self.words(&[0]);
        }
        let length = (self.bytes.len() + 4) as u32;
        self.words(&[length]);
        if let Some(place) = self.bytes.get_mut(4..8) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        out.write_all(&self.bytes)
    }
}
