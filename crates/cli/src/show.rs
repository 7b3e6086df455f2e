//! `lastbyte show`.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use lastbyte_capture::{Capture, Connection, Taken, connections, read};
use lastbyte_link::counted;
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::{MessageType, Observer, Side};

use super::draft::Draft;
use super::{Failure, print, screen};
use lastbyte::lab::{capture_name, captured_sample, wire};
use lastbyte::report::inside::{Asked, Inside, Last, Span, json, svg, text};
use lastbyte::report::study::{Findings, closest};
use lastbyte::results::{Wire, expected};
use lastbyte::study::{BlockId, Study};

/// Draws one connection of a capture, packet by packet, and says first why it took so long.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// A file that `compare` or `run` has written with --capture
    #[arg(value_name = "CAPTURE.pcapng")]
    capture: PathBuf,
    /// Which connection of it, counted from 0
    #[arg(value_name = "INDEX", default_value_t = 0)]
    index: usize,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
    /// Draw it into this file besides
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let path = &self.capture;
        let capture = open(path)?;
        match capture.taken {
            Taken::Whole => {}
            Taken::Cut => tell(path, "it is cut short; what is there is shown"),
            Taken::UpToLimit => tell(
                path,
                "it has more than 1 GB of packets; the first ones are shown",
            ),
        }
        if capture.unseen > 0 {
            let unseen = counted(capture.unseen, "packet");
            tell(
                path,
                &format!("{unseen} of its connections had no room in it"),
            );
        }
        let connections = connections(&capture.packets);
        let Some(connection) = connections.get(self.index) else {
            let path = path.display();
            return Err(Failure::Usage(match connections.len() {
                0 => format!("\"{path}\" has no connection that begins in it"),
                1 => format!("\"{path}\" has one connection: leave the index out, or write 0"),
                all => format!(
                    "\"{path}\" has {all} connections: the index goes from 0 to {}",
                    all - 1
                ),
            }));
        };
        let inside = inside(&capture, connection.clone());
        if let Some(path) = &self.svg {
            if path.extension().is_none_or(|extension| extension != "svg") {
                return Err(Failure::Usage(format!(
                    "can't write {path:?}: name it .svg"
                )));
            }
            Draft::new(path)?.write(|out| out.write_all(svg(&inside).as_bytes()))?;
        }
        print(&match self.format {
            Format::Text => text(&inside, screen()),
            Format::Json => json(&inside),
        })
    }
}

/// Reads a capture.
pub(super) fn open(path: &Path) -> Result<Capture, Failure> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("can't read \"{}\": {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| cannot(&error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(cannot(&"it is a folder: name a file in it"));
    }
    read(BufReader::new(file)).map_err(|error| cannot(&error))
}

/// Of each arm, the slowest connection whose packets are in this folder: in the cell that a page looks closest at, else
/// in the first one of which there are any.
pub(super) fn closest_of(findings: &Findings, folder: &Path) -> Result<Vec<Inside>, Failure> {
    let study = &findings.study;
    let measures = study.measures.iter().enumerate();
    let places = measures.flat_map(|(measure, described)| {
        (0..described.experiment.cells.len()).map(move |cell| (measure, cell))
    });
    for (measure, cell) in closest(findings).into_iter().chain(places) {
        let arms = study
            .measures
            .get(measure)
            .map_or(0, |measure| measure.experiment.arms.len());
        let path = |arm| {
            let id = BlockId {
                measure,
                cell,
                block: 0,
                arm,
            };
            folder.join(capture_name(study, id, 0))
        };
        let files: Vec<PathBuf> = (0..arms).map(path).filter(|path| path.is_file()).collect();
        if !files.is_empty() {
            let slowest = files.iter().map(|path| slowest(path));
            return Ok(slowest
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .collect());
        }
    }
    Ok(Vec::new())
}

fn slowest(path: &Path) -> Result<Option<Inside>, Failure> {
    let capture = open(path)?;
    let all = connections(&capture.packets).into_iter();
    let all = all.map(|connection| inside(&capture, connection));
    Ok(all.max_by_key(|inside| inside.end().unwrap_or(Duration::MAX)))
}

fn tell(path: &Path, what: &str) {
    // Nobody is left to tell when this can't be printed.
    let _ = writeln!(std::io::stderr(), "lastbyte: {}: {what}", path.display());
}

/// A connection with what its TLS and its file say of it.
pub(super) fn inside(capture: &Capture, connection: Connection) -> Inside {
    let mut observer = Observer::default();
    for (sender, bytes) in connection.turns() {
        observer.sent(sender, bytes);
    }
    let mut keys = KeyLog::default();
    capture
        .secrets
        .lines()
        .for_each(|line| keys.push_line(line));
    let keys = keys.of_client_random(observer.client_random());
    let sample = captured_sample(&capture.comment);
    let first_line = capture.comment.lines().next().unwrap_or_default();
    Inside {
        name: match connection.comment.is_empty() {
            true => first_line.to_owned(),
            false => format!("{first_line}, {}", connection.comment),
        },
        spans: spans(&observer, &keys, &connection),
        asked: sample.and_then(|sample| asked(&sample, &observer, &keys, &connection)),
        connection,
    }
}

fn spans(observer: &Observer, keys: &KeyLog, connection: &Connection) -> Vec<Span> {
    let mut spans = Vec::new();
    let placed = observer.messages(keys);
    for side in [Side::Client, Side::Server] {
        let mut end = 0;
        for message in placed.iter().filter(|message| message.sender == side) {
            end = message.bytes.end as u64;
            spans.push(Span {
                sender: side,
                start: message.bytes.start as u64,
                end,
                what: name(message.kind),
            });
        }
        let all = connection.stream(side).len() as u64;
        if all > end {
            let what = match (side, end) {
                (_, 0) => "TLS records",
                (Side::Client, _) => "request",
                (Side::Server, _) => "response",
            };
            spans.push(Span {
                sender: side,
                // Behind the tag of the record before.
                start: end,
                end: all,
                what: what.to_owned(),
            });
        }
    }
    spans
}

/// RFC 8446, 4: new_session_ticket
const TICKET: MessageType = MessageType::Other(4);

fn name(kind: MessageType) -> String {
    match kind {
        MessageType::CertificateVerify => "CertVerify".to_owned(),
        TICKET => "ticket".to_owned(),
        MessageType::Other(code) => format!("message {code}"),
        kind => format!("{kind:?}"),
    }
}

/// What a connection is measured by, as its file tells the sample.
fn asked(
    sample: &Study,
    observer: &Observer,
    keys: &KeyLog,
    connection: &Connection,
) -> Option<Asked> {
    let experiment = &sample.measures.first()?.experiment;
    let arm = experiment.arms.first()?;
    let cell = experiment.cells.first()?;
    // `connection 17`, `connection 17, once more`
    let mut words = connection.comment.split([' ', ',']);
    let index = words
        .nth(1)
        .and_then(|index| index.parse().ok())
        .unwrap_or(0);
    let cell = cell.of_connection(index);
    let tickets = observer.messages(keys).into_iter();
    let tickets = tickets.filter(|message| message.kind == TICKET);
    let wire = Wire {
        ticket_wire_bytes: tickets.map(|ticket| ticket.bytes.len() as u32).sum(),
        ..wire(observer, keys, u32::try_from(cell.hosts.mss()).ok()?)
    };
    let timeline = expected(
        &wire,
        &cell,
        arm.record_size,
        lastbyte_flights::Compute::default(),
    );
    let work = cell.work();
    Some(Asked {
        window: cell.initcwnd,
        last: match (work.data.0, work.upload.0) {
            (0, 0) => Last::Handshake,
            (0, _) => Last::Request,
            (_, _) => Last::Response,
        },
        arithmetic: timeline.ttlb,
    })
}
