//! `lastbyte show`.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lastbyte_capture::{Capture, Connection, Taken, connections, read};
use lastbyte_link::counted;
use lastbyte_sizes::framing::{PROTECTION, RECORD_HEADER};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::{MessageType, Observer, Side};

use super::draft::write_drawing;
use super::{Failure, print, print_json, screen};
use lastbyte::lab::{capture_name, captured_sample, wire};
use lastbyte::report::inside::{
    Asked, Attempt, Extent, FINISHED, Inside, Last, Next, Span, json, svg, text,
};
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
            write_drawing(path, &svg(&inside))?;
        }
        match self.format {
            Format::Text => print(&text(&inside, screen())),
            Format::Json => print_json(&json(&inside)),
        }
    }
}

/// Reads a capture.
pub(super) fn open(path: &Path) -> Result<Capture, Failure> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("can't read \"{}\": {error}", path.display()))
    };
    let file = lastbyte_files::open(path).map_err(|error| cannot(&error))?;
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
    let all = all.filter_map(|inside| Some((inside.slowness()?, inside)));
    Ok(all
        .max_by_key(|(slowness, _)| *slowness)
        .map(|(_, inside)| inside))
}

fn tell(path: &Path, what: &str) {
    super::tell(format_args!("{}: {what}", path.display()));
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
    let spans = spans(&observer, &keys, &connection);
    Inside {
        name: match connection.comment.is_empty() {
            true => first_line.to_owned(),
            false => format!("{first_line}, {}", connection.comment),
        },
        asked: sample.and_then(|sample| asked(&sample, &observer, &keys, &connection, &spans)),
        attempt: attempt(capture, &observer, &keys, &connection),
        extent: match (capture.unseen, capture.taken) {
            (1.., _) => Extent::OutOfRoom(capture.unseen),
            (0, Taken::Whole) => Extent::Whole,
            (0, Taken::Cut | Taken::UpToLimit) => Extent::Cut,
        },
        spans,
        connection,
    }
}

/// Whether its handshake failed, and was made anew.
fn attempt(
    capture: &Capture,
    observer: &Observer,
    keys: &KeyLog,
    connection: &Connection,
) -> Attempt {
    const ANEW: &str = ", once more";
    let alert = observer.observe(keys).alert;
    let has_next = || {
        let comment = format!("{}{ANEW}", connection.comment);
        let mut packets = capture.packets.iter();
        packets.any(|(_, said)| said.contains(&comment))
    };
    if alert.is_some() || has_next() {
        return Attempt::Failed {
            because: alert.map(|(sender, alert)| match sender {
                Side::Client => format!("the client said {alert}"),
                Side::Server => format!("the server said {alert}"),
            }),
            next: match has_next() {
                true => Next::Anew,
                false => Next::Nothing,
            },
        };
    }
    match connection.comment.ends_with(ANEW) {
        true => Attempt::Second,
        false => Attempt::Only,
    }
}

fn spans(observer: &Observer, keys: &KeyLog, connection: &Connection) -> Vec<Span> {
    let mut spans = Vec::new();
    let placed = observer.messages(keys);
    let alert = observer.observe(keys).alert;
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
            let is_done = placed
                .iter()
                .any(|message| message.sender == side && message.kind == MessageType::Finished);
            let what = match (side, end, alert) {
                (_, _, Some((sender, _))) if sender == side && !is_done => "alert",
                (_, 0, _) => "TLS records",
                (Side::Client, _, _) => "request",
                (Side::Server, _, _) => "response",
            };
            spans.push(Span {
                sender: side,
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
    spans: &[Span],
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
    let (last, sender, each) = match (work.data.0, work.upload.0) {
        (0, 0) => (Last::Handshake, Side::Client, 0),
        (0, upload) => (Last::Request, Side::Client, upload),
        (data, _) => (Last::Response, Side::Server, data),
    };
    let payload = each.saturating_mul(work.requests.into());
    Some(Asked {
        window: cell.initcwnd,
        mss: cell.hosts.mss(),
        rtt: cell.link.rtt(),
        think: cell.think * work.requests.saturating_sub(1),
        timeout: experiment.timeout,
        last,
        end: behind_payload(spans, &connection.stream(sender), sender, payload),
        arithmetic: match timeline.beyond(timeline.ttlb) {
            None => Ok(timeline.ttlb),
            Some(reason) => Err(reason),
        },
    })
}

/// Behind the record that has the last byte of so much application data; none if there is not so much.
fn behind_payload(spans: &[Span], stream: &[u8], sender: Side, payload: u64) -> Option<u64> {
    /// RFC 8446, 5.1
    const APPLICATION_DATA: u8 = 23;
    if !spans.iter().any(|span| span.what == "ClientHello") {
        // Without TLS, all is payload.
        return (stream.len() as u64 >= payload).then_some(payload);
    }
    let messages: Vec<&Span> = (spans.iter())
        .filter(|span| {
            span.sender == sender && !["request", "response", "alert"].contains(&span.what.as_str())
        })
        .collect();
    // Without keys, nobody knows which records are the handshake's.
    messages.iter().find(|span| span.what == FINISHED)?;
    let mut place = 0;
    let mut there = 0;
    loop {
        let (header, rest) = stream.get(place..)?.split_first_chunk::<RECORD_HEADER>()?;
        let [kind, _, _, high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        rest.get(..length)?;
        let begin = place as u64;
        place += RECORD_HEADER + length;
        // Those of the handshake are among them, and so are tickets and what early data is between.
        let is_message = |span: &&Span| span.start < place as u64 && span.end > begin;
        if kind == APPLICATION_DATA && !messages.iter().any(is_message) {
            there += length.saturating_sub(PROTECTION) as u64;
        }
        if there >= payload {
            return Some(place as u64);
        }
    }
}
