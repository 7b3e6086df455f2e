//! The handshake of an arm over TCP, or with programs over QUIC, once for each of its packets, with that one lost: each is
//! a connection of one guest, whose emulator loses what it is told to.

use std::env;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lastbyte_capture::{Connection, Flag, Records, Transmission, connections};
use lastbyte_link::{Side, counted};
use lastbyte_sizes::Message;
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::Observer;

use super::guest::{self, Instructions};
use super::inspection::{ObservedBlock, Retention};
use super::losing::{Losing, handshake_of, in_words, part};
use super::model::datagrams_of;
use super::peers::{Seen, packets};
use super::row::quic;
use super::runner::{BlockError, Ending, Job};
use super::scratch::Scratch;
use super::surroundings::MAX_CONNECTIONS;
use super::virtual_engine::{absolute, read_observed};
use super::{LabError, PreparedArm, VirtualEngine};
use crate::results::{Losses, Lost, Outcome, Row, read_part};
use crate::study::{
    Arm, BlockId, Cell, CpuTime, Emulation, Experiment, Gso, Preset, Study, TransportName,
};

/// A segment of a handshake, or a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    sender: Side,
    /// Its number among its sender's, from 0.
    number: u32,
    /// Its payload, in bytes.
    bytes: usize,
    carries: String,
}

impl VirtualEngine {
    /// Loses each packet of the handshake of an arm once, over the network of a cell, which loses none by itself: all up to
    /// the client's Finished, SYNs and acknowledgements among them. Packets are segments of TCP, or datagrams of programs
    /// over QUIC. None where it was interrupted.
    ///
    /// # Errors
    ///
    /// Why a guest could not measure it.
    pub fn lose(
        &self,
        arm: &PreparedArm,
        cell: &Cell,
        experiment: &Experiment,
        interrupt: &AtomicBool,
    ) -> Result<Option<Losses>, BlockError> {
        let cell = handshake_of(cell);
        // What there is to lose, and then all of it.
        let instructions = Instructions {
            retention: Retention {
                captured: 1,
                ..Retention::default()
            },
            ..Instructions::default()
        };
        let Some((first, observed)) =
            self.handshakes(arm, &cell, experiment, instructions, interrupt)?
        else {
            return Ok(None);
        };
        let amplification = match arm.arm.transport {
            TransportName::Tcp => None,
            TransportName::Quic => seen(&observed).amplification(),
        };
        let programs = self.versions(&arm.arm, &cell).map_err(LabError::from)?;
        if let (TransportName::Quic, Some(whole)) = (arm.arm.transport, first.into_iter().next())
            && whole.outcome != Outcome::Completed
        {
            return Ok(Some(Losses {
                arm: arm.arm.name.clone(),
                transport: arm.arm.transport,
                programs,
                amplification,
                cell,
                whole,
                lost: Vec::new(),
            }));
        }
        let segments = match observed.unseen {
            0 => match arm.arm.transport {
                TransportName::Tcp => segments(&observed),
                TransportName::Quic => datagrams(&seen(&observed)),
            },
            unseen => {
                let packet = arm.arm.transport.packet();
                let unseen = counted(usize::try_from(unseen).unwrap_or(usize::MAX), packet);
                return Err(failed(format!(
                    "{unseen} of its handshake had no room in memory"
                )));
            }
        };
        let all_of = |side| {
            let of_side = segments.iter().filter(|segment| segment.sender == side);
            of_side.count() as u32
        };
        let losing = Losing {
            client: all_of(Side::Client),
            server: all_of(Side::Server),
        };
        if losing.connections() > MAX_CONNECTIONS {
            let segments = counted(segments.len(), arm.arm.transport.packet());
            return Err(failed(format!(
                "its handshake has {segments}, and each takes a connection, of which there can be {MAX_CONNECTIONS}"
            )));
        }
        let instructions = Instructions {
            losing,
            ..Instructions::default()
        };
        let Some((rows, _)) = self.handshakes(arm, &cell, experiment, instructions, interrupt)?
        else {
            return Ok(None);
        };
        let row = |slot: usize| {
            let row = rows.get(slot).cloned();
            row.ok_or_else(|| failed("a connection is missing".to_owned()))
        };
        let lost = segments.into_iter().map(|segment| {
            Ok(Lost {
                sender: segment.sender,
                number: segment.number + 1,
                bytes: segment.bytes,
                carries: segment.carries,
                row: row(losing.slot(segment.sender, segment.number))?,
            })
        });
        let lost = lost.collect::<Result<_, BlockError>>()?;
        Ok(Some(Losses {
            arm: arm.arm.name.clone(),
            transport: arm.arm.transport,
            programs,
            amplification,
            cell,
            whole: row(0)?,
            lost,
        }))
    }

    /// The rows of as many connections as lose something, and one besides, in a guest of their own.
    fn handshakes(
        &self,
        arm: &PreparedArm,
        cell: &Cell,
        experiment: &Experiment,
        instructions: Instructions,
        interrupt: &AtomicBool,
    ) -> Result<Option<(Vec<Row>, ObservedBlock)>, BlockError> {
        let experiment = Experiment {
            arms: vec![arm.arm.clone()],
            cells: vec![cell.clone()],
            connections: instructions.losing.connections().into(),
            emulation: Emulation::Link,
            cpu: CpuTime::None,
            ..experiment.clone()
        };
        let study = Study::single("lose", experiment.clone());
        let job = Job {
            study: &study,
            id: BlockId {
                measure: 0,
                cell: 0,
                block: 0,
                arm: 0,
            },
            connections: 0..instructions.losing.connections(),
            experiment: &experiment,
            cell,
            arm,
            interrupt,
            ended: &|| (),
            inspection: None,
            pages: Path::new(""),
        };
        let place = Scratch::new_in(&absolute(&env::temp_dir())).map_err(BlockError::Write)?;
        let folder = place.path();
        if self.carry(&job, instructions, folder)? == Ending::Interrupted {
            return Ok(None);
        }
        let part = read_part(&folder.join(guest::PART));
        let part = part.map_err(|error| failed(error.problem.to_string()))?;
        let observed = if instructions.retention.is_nothing() {
            ObservedBlock::of_secrets(Vec::new())
        } else {
            read_observed(folder).map_err(BlockError::Write)?
        };
        Ok(Some((part.rows, observed)))
    }
}

/// Whether the segments of all arms of an experiment over TCP can be lost: it takes the emulator in user space, which can be
/// told which.
///
/// # Errors
///
/// What can't, with the hint.
pub fn check(experiment: &Experiment) -> Result<(), String> {
    if experiment.cells.iter().any(|cell| !cell.crowd.is_alone()) {
        return Err(
            "what is lost is of a connection that has its link to itself: leave cross_traffic and at_once out".to_owned(),
        );
    }
    let mut arms = experiment.arms.iter();
    let Some(arm) = arms.find(|arm| arm.transport == TransportName::Tcp) else {
        return Ok(());
    };
    let refuse = |what: String| {
        Err(format!(
            "{what}, which loses packets by luck alone: leave it out"
        ))
    };
    let mut arms = experiment.arms.iter();
    let is_over_netem = |arm: &&Arm| arm.server.is_foreign() && !arm.is_of_programs_over_quic();
    if let Some(arm) = arms.find(is_over_netem) {
        let Arm { name, server, .. } = arm;
        return refuse(format!("arm {name:?}: server={server} runs over netem"));
    }
    for cell in &experiment.cells {
        if cell.preset == Preset::Published2024 {
            let preset = cell.preset;
            return refuse(format!("the preset {preset} is made of netem"));
        }
        if cell.gso == Gso::On {
            return refuse(format!(
                "arm {:?}: gso makes super-packets, for which there is netem",
                arm.name
            ));
        }
    }
    Ok(())
}

fn failed(reason: String) -> BlockError {
    BlockError::Failed(reason)
}

/// The segments of the first connection of a block, up to the client's Finished, in the order in which they left; none if it
/// sent none. A client that tries twice has two connections, one after the other.
fn segments(observed: &ObservedBlock) -> Vec<Segment> {
    let packets: Vec<_> = Records(&observed.notes)
        .map(|packet| (packet, Vec::new()))
        .collect();
    let secrets: String = (observed.secrets.iter())
        .map(|(_, lines)| lines.as_str())
        .collect();
    let connections = connections(&packets);
    let messages: Vec<_> = (connections.iter())
        .map(|connection| messages(connection, &secrets))
        .collect();
    let mut sent: Vec<(u64, &Transmission, &[Placed])> = Vec::new();
    for (connection, messages) in connections.iter().zip(&messages) {
        for transmission in &connection.transmissions {
            let since = u64::try_from(transmission.sent.as_nanos()).unwrap_or(u64::MAX);
            let at = connection.begin.0.saturating_add(since);
            sent.push((at, transmission, messages));
        }
    }
    sent.sort_by_key(|(at, ..)| *at);
    let finishes = |transmission: &Transmission, messages: &[Placed]| {
        let mut messages = messages.iter();
        let finished = messages.find(|placed| placed.message == Message::ClientFinished);
        transmission.sender == Side::Client
            && finished.is_some_and(|finished| {
                let last = finished.bytes.end.saturating_sub(1) as u64;
                (transmission.offset..transmission.end()).contains(&last)
            })
    };
    let last = sent
        .iter()
        .position(|(_, transmission, messages)| finishes(transmission, messages));
    sent.truncate(last.map_or(0, |last| last + 1));
    let mut counts = [0; 2];
    let mut numbered = |sender: Side| {
        let count: &mut u32 = &mut counts[sender as usize];
        *count += 1;
        *count - 1
    };
    (sent.into_iter())
        .map(|(_, transmission, messages)| Segment {
            sender: transmission.sender,
            number: numbered(transmission.sender),
            bytes: transmission.payload.len(),
            carries: carries(transmission, messages),
        })
        .collect()
}

/// What the datagrams of the first connection of a block tell.
fn seen(observed: &ObservedBlock) -> Seen {
    let mut keys = KeyLog::default();
    let lines = (observed.secrets.iter()).flat_map(|(_, lines)| lines.lines());
    lines.for_each(|line| keys.push_line(line));
    Seen::of(&packets(&observed.notes), 0, &keys)
}

/// Those datagrams, likewise.
fn datagrams(seen: &Seen) -> Vec<Segment> {
    let messages = quic::exchange(&seen.handshake).handshake.messages;
    (datagrams_of(&seen.handshake, &messages).into_iter())
        .map(|(sender, number, datagram, carries)| Segment {
            sender,
            number,
            bytes: datagram.bytes,
            carries,
        })
        .collect()
}

/// A message, and where it is in all that its sender sends.
struct Placed {
    message: Message,
    sender: Side,
    bytes: Range<usize>,
}

/// The handshake messages of a connection, as far as they can be read with these secrets.
fn messages(connection: &Connection, secrets: &str) -> Vec<Placed> {
    let mut observer = Observer::default();
    for (sender, bytes) in connection.turns() {
        observer.sent(sender, &bytes);
    }
    let mut keys = KeyLog::default();
    secrets.lines().for_each(|line| keys.push_line(line));
    let keys = keys.of_client_random(observer.client_random());
    let mut placed: Vec<Placed> = Vec::new();
    for found in observer.messages(&keys) {
        let Some(message) = Message::of(found.sender, found.kind) else {
            continue;
        };
        let is_second = placed.iter().any(|before| before.message == message);
        let message = match message {
            Message::ClientHello if is_second => Message::SecondClientHello,
            message => message,
        };
        placed.push(Placed {
            message,
            sender: found.sender,
            bytes: found.bytes,
        });
    }
    placed
}

/// What is in a segment.
fn carries(sent: &Transmission, messages: &[Placed]) -> String {
    let syn = match sent.sender {
        Side::Client => "SYN",
        Side::Server => "SYN-ACK",
    };
    let bytes = sent.offset as usize..sent.end() as usize;
    let of_sender = messages
        .iter()
        .filter(|placed| placed.sender == sent.sender);
    let parts = of_sender.filter_map(|placed| part(placed.message, &placed.bytes, &bytes));
    let parts: Vec<String> = parts.collect();
    match (sent.has(Flag::Syn), sent.payload.is_empty(), &*parts) {
        (true, ..) => syn.to_owned(),
        // Early data, or what ends a connection.
        (false, false, []) => "data".to_owned(),
        (false, true, []) if sent.has(Flag::Fin) => "FIN".to_owned(),
        (false, true, []) if sent.has(Flag::Reset) => "RST".to_owned(),
        (false, _, parts) => in_words(parts),
    }
}

#[cfg(test)]
mod tests;
