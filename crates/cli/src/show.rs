//! `lastbyte show`.

mod qlog;
mod quic;

use std::collections::HashSet;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lastbyte_capture::{Capture, Connection, Flow, Taken, connections, flows, read};
use lastbyte_exchange::Transfer;
use lastbyte_link::{Time, counted};
use lastbyte_sizes::framing::{PROTECTION, RECORD_HEADER};
use lastbyte_tls::KeyLog;
use lastbyte_tls::observer::{MessageType, Observer, Side};

use self::quic::ReadFlow;
use super::draft::write_drawing;
use super::{Failure, print, print_json, screen};
use lastbyte::lab::{capture_name, captured_sample, observed_exchange};
use lastbyte::report::inside::{
    Attempt, Conditions, Extent, FINISHED, Inside, Last, Listed, Messages, Next, Seen, Span, list,
};
use lastbyte::report::study::{Findings, closest};
use lastbyte::results::{Exchange, expected};
use lastbyte::study::{BlockId, Study};

/// Draws a connection of a capture, packet by packet, and says first why it took so long: the slowest, below a list of all.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Files that `compare` or `run` has written with --capture, or folders of them; behind one file, which connection of it, counted
    /// from 0 [default: the slowest of all, with a list]
    #[arg(value_name = "CAPTURE.pcapng", required = true)]
    captures: Vec<PathBuf>,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
    /// Draw it into this file besides
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write connections over QUIC into this folder as qlog besides, a file for each end
    #[arg(long, value_name = "FOLDER")]
    qlog: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let found = match self.captures.as_slice() {
            [path, index] if is_index(index) => one(path, index)?,
            paths => all(&files(paths)?, self.qlog.as_deref())?,
        };
        if let Some(folder) = &self.qlog {
            if found.flows.is_empty() {
                return Err(Failure::Usage(
                    "--qlog is of connections over QUIC, and there is none: leave it out"
                        .to_owned(),
                ));
            }
            qlog::write_all(folder, &found.flows)?;
        }
        if let Some(path) = &self.svg {
            write_drawing(path, &found.shown.svg())?;
        }
        match self.format {
            Format::Text => {
                if found.listed.len() > 1 {
                    print(&(list(&found.listed, screen()) + "\n"))?;
                }
                print(&found.shown.text(screen()))
            }
            Format::Json => print_json(&found.shown.json()),
        }
    }
}

/// What was asked for of captures.
struct Found {
    /// The connection that is drawn.
    shown: Seen,
    /// All of them.
    listed: Vec<Listed>,
    /// Those over QUIC, each with its name in files; none unless somebody wants them.
    flows: Vec<(String, ReadFlow)>,
}

/// A connection of a capture before it is read.
enum Taped {
    Tcp(Connection),
    Quic(Flow),
}

impl Taped {
    fn begin(&self) -> Time {
        match self {
            Taped::Tcp(connection) => connection.begin,
            Taped::Quic(flow) => flow.begin,
        }
    }

    fn see(self, capture: &Capture) -> (Seen, Option<ReadFlow>) {
        match self {
            Taped::Tcp(connection) => (Seen::Tcp(Box::new(inside(capture, connection))), None),
            Taped::Quic(flow) => {
                let read = ReadFlow::new(capture, flow);
                (Seen::Quic(Box::new(read.inside(capture))), Some(read))
            }
        }
    }
}

/// The connections of a capture, over whatever transport, in the order in which they begin.
fn taped(capture: &Capture) -> Vec<Taped> {
    let tcp = connections(&capture.packets).into_iter().map(Taped::Tcp);
    let quic = flows(&capture.packets).into_iter().map(Taped::Quic);
    let mut all: Vec<Taped> = tcp.chain(quic).collect();
    all.sort_by_key(Taped::begin);
    all
}

/// What files of a connection are called.
fn stem(path: &Path, index: usize) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}-connection-{index}")
}

/// Whether it is the number of a connection, and no file.
fn is_index(word: &Path) -> bool {
    let digits = word.to_str().unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !word.exists()
}

/// The files that are named, and those in folders, in the order of their names.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let cannot = |error| Failure::Usage(format!("can't read \"{}\": {error}", path.display()));
        let entries = fs::read_dir(path).map_err(cannot)?;
        let entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(cannot)?;
        let is_capture = |path: &PathBuf| path.extension().is_some_and(|end| end == "pcapng");
        let mut inside: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        inside.retain(is_capture);
        inside.sort_unstable();
        if inside.is_empty() {
            return Err(Failure::Usage(format!(
                "there is no .pcapng in \"{}\"",
                path.display()
            )));
        }
        files.extend(inside);
    }
    let mut seen = HashSet::new();
    files.retain(|path| seen.insert(path.clone()));
    Ok(files)
}

/// All connections of these files, and the slowest of them; the first one where none has a time.
fn all(files: &[PathBuf], qlog: Option<&Path>) -> Result<Found, Failure> {
    let mut listed: Vec<Listed> = Vec::new();
    let mut slowest: Option<Seen> = None;
    let mut flows = Vec::new();
    for path in files {
        let capture = opened(path)?;
        for (index, connection) in taped(&capture).into_iter().enumerate() {
            let (found, read) = connection.see(&capture);
            if qlog.is_some() {
                flows.extend(read.map(|read| (stem(path, index), read)));
            }
            let is_slower = slowest
                .as_ref()
                .is_none_or(|slowest| found.slowness() > slowest.slowness());
            listed.push(Listed::new(&super::shown(path), index, &found));
            if is_slower {
                slowest = Some(found);
            }
        }
    }
    let shown = slowest.ok_or_else(|| {
        let names = files.iter().map(|path| format!("\"{}\"", path.display()));
        let names: Vec<String> = names.collect();
        let have = if names.len() == 1 { "has" } else { "have" };
        Failure::Usage(format!(
            "{} {have} no connection that begins in it",
            names.join(", ")
        ))
    })?;
    Ok(Found {
        shown,
        listed,
        flows,
    })
}

/// A connection by its number.
fn one(path: &Path, index: &Path) -> Result<Found, Failure> {
    let capture = opened(path)?;
    let mut connections = taped(&capture);
    let count = connections.len();
    let number = index.to_str().and_then(|digits| digits.parse().ok());
    let number = number.filter(|number| *number < count);
    let Some(number) = number else {
        let path = super::shown(path);
        return Err(Failure::Usage(match count {
            0 => format!("\"{path}\" has no connection that begins in it"),
            1 => format!("\"{path}\" has one connection: leave the index out, or write 0"),
            all => format!(
                "\"{path}\" has {all} connections: the index goes from 0 to {}",
                all - 1
            ),
        }));
    };
    let (shown, read) = connections.swap_remove(number).see(&capture);
    Ok(Found {
        shown,
        listed: Vec::new(),
        flows: (read.into_iter())
            .map(|read| (stem(path, number), read))
            .collect(),
    })
}

/// A capture, and on the side what of its packets is not in it.
fn opened(path: &Path) -> Result<Capture, Failure> {
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
    Ok(capture)
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
pub(super) fn closest_of(findings: &Findings, folder: &Path) -> Result<Vec<Seen>, Failure> {
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

fn slowest(path: &Path) -> Result<Option<Seen>, Failure> {
    let capture = open(path)?;
    let all = taped(&capture).into_iter();
    let all = all.map(|connection| connection.see(&capture).0);
    let all = all.filter_map(|seen| Some((seen.slowness()?, seen)));
    Ok(all
        .max_by_key(|(slowness, _)| *slowness)
        .map(|(_, seen)| seen))
}

fn tell(path: &Path, what: &str) {
    super::tell(format_args!("{}: {what}", path.display()));
}

/// A connection with what its TLS and its file say of it.
fn inside(capture: &Capture, connection: Connection) -> Inside {
    let mut observer = Observer::default();
    for (sender, bytes) in connection.turns() {
        observer.sent(sender, &bytes);
    }
    let mut keys = KeyLog::default();
    capture
        .secrets
        .lines()
        .for_each(|line| keys.push_line(line));
    let keys = keys.of_client_random(observer.client_random());
    let sample = captured_sample(&capture.comment);
    let first_line = capture.comment.lines().next().unwrap_or_default();
    let messages = messages(&observer, &keys, &connection);
    let spans = spans(&observer, &keys, &connection, messages);
    // Arithmetic needs the sizes of messages, and the end which of them is the last.
    let sample = sample.filter(|_| messages == Messages::Read);
    Inside {
        name: if connection.comment.is_empty() {
            first_line.to_owned()
        } else {
            format!("{first_line}, {}", connection.comment)
        },
        asked: sample.and_then(|sample| conditions(&sample, &observer, &keys, &connection, &spans)),
        attempt: attempt(capture, &observer, &keys, &connection),
        extent: match (capture.unseen, capture.taken) {
            (1.., _) => Extent::OutOfRoom(capture.unseen),
            (0, Taken::Whole) => Extent::Whole,
            (0, Taken::Cut | Taken::UpToLimit) => Extent::Cut,
        },
        spans,
        messages,
        connection,
    }
}

/// What bytes are called of which nobody knows what they say.
const SEALED: &str = "TLS records";

/// Whether what follows a ServerHello was read: the first of it is always EncryptedExtensions (RFC 8446, 4.3.1).
fn messages(observer: &Observer, keys: &KeyLog, connection: &Connection) -> Messages {
    let placed = observer.messages(keys);
    let of_server = || {
        placed
            .iter()
            .filter(|message| message.sender == Side::Server)
    };
    let has = |kind| of_server().any(|message| message.kind == kind);
    let end = of_server()
        .next_back()
        .map_or(0, |message| message.bytes.end);
    let alert = observer.observe(keys).alert;
    let ends_so = alert.is_some_and(|(sender, _)| sender == Side::Server);
    let goes_on = connection.stream(Side::Server).len() > end && !ends_so;
    if has(MessageType::ServerHello) && !has(MessageType::EncryptedExtensions) && goes_on {
        Messages::Sealed
    } else {
        Messages::Read
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
            next: if has_next() {
                Next::Anew
            } else {
                Next::Nothing
            },
        };
    }
    if connection.comment.ends_with(ANEW) {
        Attempt::Second
    } else {
        Attempt::Only
    }
}

fn spans(
    observer: &Observer,
    keys: &KeyLog,
    connection: &Connection,
    messages: Messages,
) -> Vec<Span> {
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
                (_, 0, _) => SEALED,
                _ if messages == Messages::Sealed => SEALED,
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
fn conditions(
    sample: &Study,
    observer: &Observer,
    keys: &KeyLog,
    connection: &Connection,
    spans: &[Span],
) -> Option<Conditions> {
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
    let tickets = tickets
        .map(|ticket| ticket.bytes.len())
        .reduce(|one, other| one + other);
    let exchange = Exchange {
        tickets: tickets.map(Transfer::seen),
        ..observed_exchange(observer, keys, u32::try_from(cell.hosts.mss()).ok())
    };
    let timeline = expected(
        &exchange,
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
    Some(Conditions {
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
