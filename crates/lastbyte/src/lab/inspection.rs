//! What is kept of connections besides their rows: packets, and the secrets of their TLS.
//!
//! No row may tell whether anything is kept. What an engine notes while it measures goes into
//! memory at a place of its own ([`Tap`]); all else is done when a block is measured.

use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, mem};

use lastbyte_capture::{
    About, DNS_PORT, Datagram, Fate, Limits, Packet, Point, Records, complete_checksums, encode,
    read, settle, write,
};
use lastbyte_link::{TcpPacket, Time};
use serde::{Deserialize, Serialize};

use super::surroundings::client_slot;
use super::sys;
use super::sys::memory::{Mapping, PLACES};
use crate::results::block_name;
use crate::study::{BlockId, Cell, Experiment, Preset, Study};

/// Where captures of a run are in its folder.
pub const CAPTURES: &str = "captures";

/// What a run keeps besides its rows.
pub struct Inspection {
    captures: Option<Captures>,
    secrets: Option<Mutex<Box<dyn Write + Send>>>,
    report: Mutex<InspectionReport>,
}

/// Which packets to keep, and where.
#[derive(Clone, Debug)]
pub struct Captures {
    /// Of how many connections, the first ones of each sample.
    pub connections: u32,
    /// The folder for the files.
    pub folder: PathBuf,
}

/// What became of an [`Inspection`].
#[derive(Clone, Debug, Default)]
pub struct InspectionReport {
    /// Captures that were written.
    pub files: Vec<PathBuf>,
    /// Packets that taps had no room for.
    pub unseen: u64,
    /// What could not be written, each in a line.
    pub problems: Vec<String>,
}

/// The block that something is kept of.
pub(super) struct Whose<'a> {
    pub(super) study: &'a Study,
    pub(super) id: BlockId,
    pub(super) connections: Range<u32>,
    pub(super) cell: &'a Cell,
    /// The label of its arm.
    pub(super) arm: &'a str,
}

/// What is to be kept of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retention {
    /// The packets of so many connections, its first ones.
    pub(super) captured: u32,
    pub(super) secrets: Secrets,
}

/// Whether the secrets of connections are kept whose packets are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Secrets {
    #[default]
    OfCaptured,
    OfAll,
}

/// What was observed of a block, besides its rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ObservedBlock {
    /// What a tap has noted.
    #[serde(skip)]
    pub(super) notes: Vec<u8>,
    /// What the times of notes are counted from, in ns since 1970.
    pub(super) since: u64,
    /// When the tap was closed, likewise counted.
    pub(super) closed: u64,
    pub(super) unseen: u64,
    pub(super) fates: Fates,
    /// Lines of a key log, by index of the connection.
    pub(super) secrets: Vec<(u32, String)>,
}

/// What shows which packets the link dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fates {
    /// The link has reported it.
    Reported,
    /// A packet was sent, and not delivered.
    Absence,
}

impl Inspection {
    /// Keeps these, and writes secrets of all connections to `secrets`.
    #[must_use]
    pub fn new(captures: Option<Captures>, secrets: Option<Box<dyn Write + Send>>) -> Inspection {
        Inspection {
            captures,
            secrets: secrets.map(Mutex::new),
            report: Mutex::default(),
        }
    }

    /// Whether all of it can be had of a study, in blocks of this size.
    ///
    /// # Errors
    ///
    /// One line: what can't be seen, or what is there already and is of another question.
    pub fn check(&self, study: &Study, block_size: u32) -> Result<(), String> {
        if self.captures.is_some() || self.secrets.is_some() {
            let measures = study.measures.iter();
            let mut arms = measures.flat_map(|measure| &measure.experiment.arms);
            if let Some(arm) = arms.find(|arm| arm.is_of_programs_over_quic()) {
                return Err(format!(
                    "--capture and --keylog are of Lastbyte's own ends over QUIC, and arm {:?} has a program at one: leave \
                     them or the arm out",
                    arm.name
                ));
            }
        }
        let Some(captures) = &self.captures else {
            return Ok(());
        };
        for measure in &study.measures {
            let mut cells = measure.experiment.cells.iter();
            if cells.any(|cell| !cell.crowd.is_alone()) {
                return Err(
                    "--capture is of a connection that has its link to itself: leave it, or cross_traffic and at_once, out"
                        .to_owned(),
                );
            }
            let mut cells = measure.experiment.cells.iter();
            if let Some(cell) = cells.find(|cell| cell.preset == Preset::Published2024) {
                return Err(format!(
                    "--capture can't see what the preset {} does: its netem is on the devices of both ends, so nobody \
                     is between TCP and the link; leave --capture or the preset out",
                    cell.preset
                ));
            }
        }
        for id in study.blocks(block_size) {
            let range = study.block(id, block_size);
            if captures.of_block(&range) == 0 {
                continue;
            }
            let path = captures.path(study, id, range.start);
            if let Some(problem) = occupied(&path, &comment(study, id)) {
                return Err(problem);
            }
        }
        Ok(())
    }

    /// What is to be kept of a block.
    pub(super) fn retention(&self, connections: &Range<u32>) -> Retention {
        let captures = self.captures.as_ref();
        Retention {
            captured: captures.map_or(0, |captures| captures.of_block(connections)),
            secrets: match self.secrets {
                Some(_) => Secrets::OfAll,
                None => Secrets::OfCaptured,
            },
        }
    }

    /// Keeps what was seen of a block that is measured. What can't be is reported in the end: rows
    /// are not lost for it.
    pub(super) fn keep(&self, block: &Whose<'_>, observed: ObservedBlock) {
        if let Some(secrets) = &self.secrets
            && let Err(error) = write_secrets(&mut **held(secrets), block, &observed.secrets)
        {
            let problem = format!("can't write secrets: {error}");
            let mut report = held(&self.report);
            if !report.problems.contains(&problem) {
                report.problems.push(problem);
            }
        }
        let Some(captures) = &self.captures else {
            return;
        };
        let captured = captures.of_block(&block.connections);
        if captured == 0 {
            return;
        }
        let path = captures.path(block.study, block.id, block.connections.start);
        let unseen = observed.unseen;
        let written = write_capture(&path, block, observed, captured);
        let mut report = held(&self.report);
        report.unseen += unseen;
        match written {
            Ok(()) => report.files.push(path),
            Err(error) => {
                let path = path.display();
                report
                    .problems
                    .push(format!("can't write \"{path}\": {error}"));
            }
        }
    }

    /// What was kept, with all that could not be.
    ///
    /// # Errors
    ///
    /// That secrets could not be written to their end.
    pub fn finish(&self) -> io::Result<InspectionReport> {
        if let Some(secrets) = &self.secrets {
            held(secrets).flush()?;
        }
        Ok(mem::take(&mut held(&self.report)))
    }
}

impl Captures {
    /// How many of a block's connections are kept.
    fn of_block(&self, connections: &Range<u32>) -> u32 {
        let end = self.connections.min(connections.end);
        end.saturating_sub(connections.start)
    }

    fn path(&self, study: &Study, id: BlockId, first: u32) -> PathBuf {
        self.folder.join(capture_name(study, id, first))
    }
}

/// The name of the file with a block's packets, of which `first` is the first connection.
pub fn capture_name(study: &Study, id: BlockId, first: u32) -> String {
    block_name(study, id, first) + ".pcapng"
}

/// What a file says of what it is: a line for people, and a study of nothing but its sample.
fn comment(study: &Study, id: BlockId) -> String {
    /// What a comment can hold.
    const LONGEST: usize = 60_000;
    let measure = study.measures.get(id.measure);
    let experiment = measure.map(|measure| &measure.experiment);
    let found = experiment.and_then(|experiment| {
        Some((
            experiment,
            experiment.cells.get(id.cell)?,
            experiment.arms.get(id.arm)?,
        ))
    });
    let Some((experiment, cell, arm)) = found else {
        return String::new();
    };
    let sample = Experiment {
        arms: vec![arm.clone()],
        cells: vec![cell.clone()],
        ..experiment.clone()
    };
    let sample = Study {
        folder: study.folder.clone(),
        ..Study::single("sample", sample)
    };
    let text = format!("{}, {cell}\n\n{}", arm.name, sample.to_toml());
    match text.len() {
        ..=LONGEST => text,
        _ => format!("{}, {cell}", arm.name),
    }
}

/// The cell and the arm that a capture's comment names.
pub fn captured_sample(comment: &str) -> Option<Study> {
    let (_, study) = comment.split_once("\n\n")?;
    Study::parse(study, Path::new("capture.toml")).ok()
}

/// Why a file can't be written, if it is there and is none of this question.
fn occupied(path: &Path, comment: &str) -> Option<String> {
    let file = match lastbyte_files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("can't write \"{}\": {error}", path.display())),
    };
    match read(io::BufReader::new(file)) {
        Ok(capture) if capture.comment == comment => None,
        _ => Some(format!(
            "can't write \"{}\": it is there already, and of another question: name another folder with \
             --capture-to or -o, or remove it",
            path.display()
        )),
    }
}

fn write_secrets(
    out: &mut dyn Write,
    block: &Whose<'_>,
    secrets: &[(u32, String)],
) -> io::Result<()> {
    writeln!(out, "# {}, {}", block.arm, block.cell)?;
    for (index, lines) in secrets {
        writeln!(out, "# connection {index}")?;
        out.write_all(lines.as_bytes())?;
    }
    Ok(())
}

fn write_capture(
    path: &Path,
    block: &Whose<'_>,
    observed: ObservedBlock,
    captured: u32,
) -> io::Result<()> {
    let since = |time: Time| Time(time.0.wrapping_add(observed.since));
    let mut packets: Vec<Packet> = Records(&observed.notes)
        .map(|packet| Packet {
            at: since(packet.at),
            ..packet
        })
        .collect();
    packets.sort_by_key(|packet| packet.at);
    let closed = match observed.unseen {
        0 => since(Time(observed.closed)),
        // What was sent after that may have arrived: nobody had room to note it.
        _ => full(&packets).unwrap_or(since(Time(observed.closed))),
    };
    let Cell { link, .. } = block.cell;
    // What a discipline drops, it drops for lack of room, whenever it does.
    let queue = |direction: &lastbyte_link::Direction| match direction.qdisc {
        Some(_) => 0,
        None => direction.queue,
    };
    let limits = Limits {
        toward_client: queue(&link.backward),
        toward_server: queue(&link.forward),
        closed,
    };
    let is_told = observed.fates != Fates::Absence && !block.cell.has_qdisc();
    settle(&mut packets, (!is_told).then_some(&limits));
    for packet in &mut packets {
        // A veth leaves that to a device which there is not.
        complete_checksums(&mut packet.bytes);
    }
    let secrets: String = (observed.secrets.iter())
        .take_while(|(index, _)| *index < block.connections.start + captured)
        .map(|(_, lines)| lines.as_str())
        .collect();
    let comment = comment(block.study, block.id);
    let about = About {
        comment: &comment,
        program: concat!("lastbyte ", env!("CARGO_PKG_VERSION")),
        secrets: &secrets,
        unseen: observed.unseen,
        closed,
    };
    let mut named = Vec::new();
    let first = block.connections.start;
    let packets = packets
        .iter()
        .map(|packet| (packet, begins(packet, first, &mut named)));
    let mut file = Vec::new();
    write(&mut file, &about, packets)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    lastbyte_files::write(path, &file)
}

/// Until when both sides were seen, of packets of which some had no room: each side has room of its
/// own, or both have one.
fn full(packets: &[Packet]) -> Option<Time> {
    let last = |points: [Point; 2]| {
        let sightings = packets.iter().rev();
        let mut sightings = sightings.filter(|packet| points.contains(&packet.point));
        sightings.next().map(|packet| packet.at)
    };
    let client = last([Point::SentByClient, Point::DeliveredToClient])?;
    Some(client.min(last([Point::SentByServer, Point::DeliveredToServer])?))
}

/// `connection 17`, of its first SYN, or its first datagram.
fn begins(packet: &Packet, first: u32, named: &mut Vec<SocketAddrV4>) -> Option<String> {
    if packet.point != Point::SentByClient {
        return None;
    }
    let (client, server_port) = match TcpPacket::parse(&packet.bytes) {
        Some(header) if header.flags & TcpPacket::SYN != 0 => {
            let client = SocketAddrV4::new(header.source, header.source_port);
            (client, header.destination_port)
        }
        Some(_) => return None,
        None => {
            let datagram = Datagram::parse(&packet.bytes)?;
            (datagram.source, datagram.destination.port())
        }
    };
    let slot = client_slot(*client.ip())?;
    if server_port == DNS_PORT || named.contains(&client) {
        return None;
    }
    let attempt = named.iter().filter(|other| other.ip() == client.ip());
    let attempt = attempt.count();
    named.push(client);
    Some(match attempt {
        0 => format!("connection {}", first + slot),
        _ => format!("connection {}, once more", first + slot),
    })
}

impl Retention {
    /// As many as [`to_bytes`](Retention::to_bytes) makes.
    pub(super) const BYTES: usize = 5;

    /// For a guest, which reads as many bytes whatever is to be kept.
    pub(super) fn to_bytes(self) -> [u8; Retention::BYTES] {
        let [a, b, c, d] = self.captured.to_le_bytes();
        [a, b, c, d, u8::from(self.secrets == Secrets::OfAll)]
    }

    pub(super) fn from_bytes([a, b, c, d, all]: [u8; Retention::BYTES]) -> Retention {
        Retention {
            captured: u32::from_le_bytes([a, b, c, d]),
            secrets: match all {
                0 => Secrets::OfCaptured,
                _ => Secrets::OfAll,
            },
        }
    }

    /// Whether there is nothing to be kept.
    pub(super) fn is_nothing(self) -> bool {
        self == Retention::default()
    }

    /// The secrets to keep of a block's connections, which begin with `first`, of those of all of them.
    pub(super) fn secrets_of(
        self,
        first: u32,
        secrets: impl Iterator<Item = String>,
    ) -> Vec<(u32, String)> {
        let count = match self.secrets {
            Secrets::OfAll => u32::MAX,
            Secrets::OfCaptured => self.captured,
        };
        (first..).zip(secrets.take(count as usize)).collect()
    }
}

/// Whoever held it and panicked has left it whole.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Between the monotonic clock and that of the day.
pub(super) fn since_1970() -> u64 {
    let day = SystemTime::now().duration_since(UNIX_EPOCH);
    let day = day.map_or(0, |day| u64::try_from(day.as_nanos()).unwrap_or(0));
    day.saturating_sub(sys::now().0)
}

/// About how many packets so many connections of a cell send, and how many bytes, with some of them
/// sent again.
pub(super) fn expected_packets(cell: &Cell, connections: u32) -> (usize, usize) {
    /// Handshakes, a large chain, tickets.
    const BESIDES: u64 = 128 << 10;
    const FEWEST: u64 = 100;
    let bytes = cell
        .work()
        .payload()
        .0
        .saturating_add(BESIDES)
        .saturating_mul(2);
    let packets = (bytes / cell.hosts.mss() as u64).saturating_mul(2) + FEWEST;
    let all = |each: u64| {
        let all = each.saturating_mul(connections.into());
        usize::try_from(all).unwrap_or(usize::MAX)
    };
    (all(packets), all(bytes))
}

/// Notes the packets of a block's first connections as they pass, without asking the allocator for
/// anything.
pub(super) struct Tap {
    notes: Mapping,
    length: usize,
    connections: u32,
    unseen: u64,
}

impl Tap {
    /// The most that a tap keeps, in bytes.
    const MOST: usize = 64 << 20;

    /// For so many connections; none if there are none.
    pub(super) fn new(cell: &Cell, connections: u32) -> io::Result<Option<Tap>> {
        const HEADERS: usize = 128;
        if connections == 0 {
            return Ok(None);
        }
        let (packets, bytes) = expected_packets(cell, connections);
        // Before the link and behind it.
        let all = bytes
            .saturating_add(packets.saturating_mul(HEADERS))
            .saturating_mul(2);
        let length = NonZero::new(all.min(Self::MOST)).ok_or(io::ErrorKind::InvalidInput)?;
        let [place, _] = PLACES;
        Ok(Some(Tap {
            notes: Mapping::anonymous(place, length)?,
            length: 0,
            connections,
            unseen: 0,
        }))
    }

    /// For so many page loads, with as much as it can keep.
    pub(super) fn of_pages(loads: u32) -> io::Result<Tap> {
        let [place, _] = PLACES;
        let length = NonZero::new(Self::MOST).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Tap {
            notes: Mapping::anonymous(place, length)?,
            length: 0,
            connections: loads,
            unseen: 0,
        })
    }

    /// Notes a packet of the connection in this slot.
    pub(super) fn note(&mut self, slot: u32, at: Time, point: Point, fate: Fate, bytes: &[u8]) {
        if slot >= self.connections {
            return;
        }
        // A smaller one may have room, but what is there shall have no gaps.
        if self.unseen > 0 {
            self.unseen += 1;
            return;
        }
        let length = bytes.len() as u32;
        match encode(
            self.notes.bytes_mut(),
            self.length,
            at,
            point,
            fate,
            bytes,
            length,
        ) {
            Some(length) => self.length = length,
            None => self.unseen += 1,
        }
    }

    /// What it has seen, without secrets.
    pub(super) fn close(self) -> ObservedBlock {
        ObservedBlock {
            notes: self
                .notes
                .bytes()
                .get(..self.length)
                .unwrap_or_default()
                .to_vec(),
            since: since_1970(),
            closed: sys::now().0,
            unseen: self.unseen,
            fates: Fates::Reported,
            secrets: Vec::new(),
        }
    }
}

impl ObservedBlock {
    /// Nothing but secrets.
    pub(super) fn of_secrets(secrets: Vec<(u32, String)>) -> ObservedBlock {
        ObservedBlock {
            notes: Vec::new(),
            since: 0,
            closed: 0,
            unseen: 0,
            fates: Fates::Reported,
            secrets,
        }
    }
}

#[cfg(test)]
mod tests;
