//! All files, side by side in the order in which their rows were written.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroI64;

use lastbyte_link::counted;

use crate::cdn::{CdnList, Class};
use crate::columns::ParquetFolder;
use crate::input::Source;
use crate::join::{ConnPart, History, Joined, OursPart, Part, SslPart, Table, Waits};
use crate::log::{Event, Left, Log};
use crate::reason::Reason;
use crate::row::{Conn, Kind, Ours, Row, Ssl, Uid, Written};
use crate::servers::{Names, Servers};
use crate::tally::{End, Tally};
use crate::time::Micros;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is a CDN.
    pub cdn: CdnList,
    /// How many connections may wait for their other rows at once: 100 bytes each.
    pub join_rows: u32,
    /// Whether names of servers may be shown.
    pub names: Names,
}

/// How many connections wait at once, where nobody says otherwise.
pub const JOIN_ROWS: u32 = 1_000_000;

/// Lines that could not be read and are shown.
const SHOWN: usize = 5;

/// Lines of one kind of log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Those that were read.
    pub rows: u64,
    /// Those that could not be.
    pub unreadable: u64,
    /// Of the rows, those of a connection that had one already. The first counts, and of `conn.log`
    /// the one of the longest duration.
    pub repeats: u64,
}

/// What was found.
pub struct Survey {
    pub(crate) options: Options,
    /// `ssl.log`.
    pub ssl: Lines,
    /// `conn.log`.
    pub conn: Lines,
    /// The log of our script.
    pub ours: Lines,
    /// Unreadable lines of files before a line of them could be read.
    pub unreadable: u64,
    /// Rows of drafts of TLS 1.3, which count as it.
    pub drafts: u64,
    /// Rows of `ssl.log` without a time that can be read.
    pub without_time: u64,
    /// Rows of connections that still lasted, as `conn_long.log` has them.
    pub interim: u64,
    /// Files that were read, and of which rows were used.
    pub files: [u64; 2],
    /// The first lines that could not be read, as `file:line: reason`.
    pub examples: Vec<String>,
    /// Files that are no logs that are read here, and why.
    pub told: Vec<String>,
    /// Files that could not be read, or not to their end, and why.
    pub broken: Vec<String>,
    /// What was counted.
    pub tally: Tally,
    pub(crate) servers: Servers,
}

/// Reads logs, and counts what is in them. With `parquet`, each connection is written there.
///
/// Files are read a piece at a time, always of the one that is behind by the time of its rows. A
/// connection waits for its other rows until so many others came that there is no room.
///
/// # Errors
///
/// When Parquet can't be written. Of a file that can't be read, [`Survey::broken`] tells.
pub fn survey(
    sources: &[Source],
    options: Options,
    parquet: Option<&mut ParquetFolder>,
) -> io::Result<Survey> {
    let mut reading = Reading::new(options, parquet);
    reading.all(sources);
    reading.end();
    match reading.failed {
        Some(error) => Err(error),
        None => Ok(reading.survey),
    }
}

struct Reading<'p> {
    table: Table,
    /// Rows that are joined together, and how many that are.
    coming: Vec<Coming>,
    together: usize,
    parquet: Option<&'p mut ParquetFolder>,
    failed: Option<io::Error>,
    survey: Survey,
}

/// How many rows are joined together: as many as a processor waits for at once, and some more.
const TOGETHER: usize = 64;

/// A row that is to be joined.
struct Coming {
    uid: Uid,
    part: Part,
    waits: Waits,
    is_draft: bool,
}

/// A file that is to be read further.
struct File {
    name: String,
    source: Source,
    /// `None` until its turn comes.
    log: Option<Log>,
    used: bool,
    /// Rows of connections that still lasted.
    interim: u64,
    /// Lines that could not be read before it was known what they were.
    unknown: u64,
    pieces: u64,
}

impl<'p> Reading<'p> {
    fn new(options: Options, parquet: Option<&'p mut ParquetFolder>) -> Self {
        Reading {
            table: Table::new(options.join_rows),
            coming: Vec::new(),
            together: TOGETHER,
            parquet,
            failed: None,
            survey: Survey {
                servers: Servers::new(options.names),
                options,
                ssl: Lines::default(),
                conn: Lines::default(),
                ours: Lines::default(),
                unreadable: 0,
                drafts: 0,
                without_time: 0,
                interim: 0,
                files: [0; 2],
                examples: Vec::new(),
                told: Vec::new(),
                broken: Vec::new(),
                tally: Tally::default(),
            },
        }
    }

    fn all(&mut self, sources: &[Source]) {
        let mut files: Vec<File> = Vec::new();
        // Without a clock it is behind all others; of those that are equally so, whoever has had
        // less.
        let mut behind: BinaryHeap<Reverse<(Option<Micros>, u64, usize)>> = BinaryHeap::new();
        for source in sources {
            let name = source.name();
            match begin(source) {
                Ok((clock, log)) => {
                    behind.push(Reverse((clock, 0, files.len())));
                    files.push(File {
                        name,
                        source: source.clone(),
                        log,
                        used: false,
                        interim: 0,
                        unknown: 0,
                        pieces: 0,
                    });
                }
                Err(error) => self.survey.broken.push(format!("{name}: {error}")),
            }
        }
        while let Some(Reverse((_, _, index))) = behind.pop() {
            let Some(file) = files.get_mut(index) else {
                continue;
            };
            match self.piece(file) {
                Left::More => {
                    let clock = file.log.as_ref().and_then(Log::clock);
                    behind.push(Reverse((clock, file.pieces, index)));
                }
                Left::Nothing => {
                    file.log = None;
                    self.read_whole(file);
                }
            }
            if self.failed.is_some() {
                return;
            }
        }
    }

    /// Reads the next piece of a file.
    fn piece(&mut self, file: &mut File) -> Left {
        file.pieces += 1;
        let log = match &mut file.log {
            Some(log) => log,
            None => match file.source.open() {
                Ok(input) => file.log.insert(Log::new(input, file.source.written())),
                Err(error) => {
                    self.survey.broken.push(format!("{}: {error}", file.name));
                    return Left::Nothing;
                }
            },
        };
        let (name, used, unknown) = (&file.name, &mut file.used, &mut file.unknown);
        let interim = &mut file.interim;
        log.read(|event| match event {
            Event::Row(Row::Interim) => *interim += 1,
            Event::Row(row) => {
                if let Some(kind) = row.kind() {
                    *used = true;
                    self.survey.lines(kind).unreadable += std::mem::take(unknown);
                }
                self.row(row);
            }
            Event::Unreadable(line, kind, reason) => {
                match kind {
                    Some(kind) => self.survey.lines(kind).unreadable += 1,
                    None => *unknown += 1,
                }
                self.survey.show(name, line, reason);
            }
            Event::BrokenOff(line, error) => {
                let problem = format!("{name}: breaks off after line {line}: {error}");
                self.survey.broken.push(problem);
            }
        })
    }

    fn read_whole(&mut self, file: &File) {
        let survey = &mut self.survey;
        survey.files[0] += 1;
        survey.files[1] += u64::from(file.used);
        survey.unreadable += file.unknown;
        survey.interim += file.interim;
        if file.interim > 0 {
            survey.told.push(format!(
                "{}: {} of connections that still lasted, as logs of long connections have them: not counted",
                file.name,
                counted(file.interim, "row")
            ));
        } else if !file.used && file.unknown == 0 {
            let what = "no row of ssl.log or conn.log by its fields: skipped";
            survey.told.push(format!("{}: {what}", file.name));
        }
    }

    fn row(&mut self, row: Row<'_>) {
        let coming = match row {
            Row::Ssl(row) => self.ssl(&row),
            Row::Conn(row) => self.conn(&row),
            Row::Ours(row) => self.ours(&row),
            Row::Interim | Row::Other => return,
        };
        self.coming.push(coming);
        if self.coming.len() >= self.together {
            self.join();
        }
    }

    fn ssl(&mut self, row: &Ssl<'_>) -> Coming {
        let survey = &mut self.survey;
        survey.ssl.rows += 1;
        survey.without_time += u64::from(row.time.is_none());
        let (server, by_name) = survey.servers.find(row.server, &survey.options.cdn);
        let part = SslPart {
            time: row.time.and_then(NonZeroI64::new),
            server,
            version: row.version,
            class: if by_name || survey.options.cdn.has_address(row.address) {
                Class::Cdn
            } else {
                Class::Other
            },
            resumed: row.resumed,
            established: row.established,
            history: History::parse(row.history),
        };
        Coming {
            uid: row.uid,
            part: Part::Ssl(part),
            waits: Waits::Yes,
            is_draft: row.is_draft,
        }
    }

    fn conn(&mut self, row: &Conn) -> Coming {
        self.survey.conn.rows += 1;
        Coming {
            uid: row.uid,
            part: Part::Conn(ConnPart::new(row)),
            // Of what is no TLS, there is nothing to wait for.
            waits: if row.has_tls { Waits::Yes } else { Waits::No },
            is_draft: false,
        }
    }

    fn ours(&mut self, row: &Ours) -> Coming {
        self.survey.ours.rows += 1;
        Coming {
            uid: row.uid,
            part: Part::Ours(OursPart::new(row)),
            waits: Waits::Yes,
            is_draft: false,
        }
    }

    /// Joins the rows that have come, in their order.
    fn join(&mut self) {
        let mut coming = std::mem::take(&mut self.coming);
        self.table.look_ahead(coming.iter().map(|row| row.uid));
        for row in coming.drain(..) {
            let joined = self.table.join(row.uid, row.part, row.waits);
            if row.is_draft && !matches!(joined, Joined::Repeats) {
                self.survey.drafts += 1;
            }
            self.joined(row.part.kind(), joined);
        }
        self.coming = coming;
    }

    fn joined(&mut self, kind: Kind, joined: Joined) {
        match joined {
            Joined::Kept | Joined::Alone => {}
            Joined::Repeats => self.survey.lines(kind).repeats += 1,
            Joined::InPlaceOf(before) => self.count(&before, End::Expired),
        }
    }

    fn end(&mut self) {
        self.join();
        for connection in self.table.drain() {
            self.count(&connection, End::AllRead);
        }
    }

    fn count(&mut self, connection: &crate::join::Connection, end: End) {
        let survey = &mut self.survey;
        survey.tally.count(connection, end, &mut survey.servers);
        if let (Some(parquet), Some(ssl)) = (&mut self.parquet, &connection.ssl) {
            let entry = survey.servers.get(ssl.server);
            let name = entry.and_then(|entry| entry.name.as_deref());
            if let Err(error) = parquet.write(connection, ssl, name) {
                self.failed.get_or_insert(error);
            }
        }
    }
}

impl Survey {
    fn lines(&mut self, kind: Kind) -> &mut Lines {
        match kind {
            Kind::Ssl => &mut self.ssl,
            Kind::Conn => &mut self.conn,
            Kind::Ours => &mut self.ours,
        }
    }

    fn show(&mut self, name: &str, line: u64, reason: Reason) {
        if self.examples.len() < SHOWN {
            self.examples.push(format!("{name}:{line}: {reason}"));
        }
    }

    /// All lines that could not be read.
    pub fn all_unreadable(&self) -> u64 {
        self.ssl.unreadable + self.conn.unreadable + self.ours.unreadable + self.unreadable
    }

    /// The profile, as a study's population reads it.
    ///
    /// # Errors
    ///
    /// When not one connection can be used.
    pub fn profile(&self) -> Result<String, crate::profile::NoProfile> {
        let expired = self.expired_warning();
        let over_quic = self.tally.all_over_quic();
        self.tally.joint.to_toml(expired.as_deref(), over_quic)
    }

    /// What has to be known of the numbers.
    pub fn warnings(&self) -> Vec<String> {
        let few = crate::profile::too_small(self.tally.joint.total());
        let interim = (self.interim > 0).then(|| {
            format!(
                "{} of connections that still lasted: not counted, as conn.log has them when they are over",
                counted(self.interim, "row")
            )
        });
        let dtls = (self.tally.dtls > 0).then(|| {
            format!(
                "{} of DTLS: counted by version alone, and in no share, no bytes and no profile",
                counted(self.tally.dtls, "row")
            )
        });
        let all = few.into_iter().chain(self.expired_warning());
        all.chain(interim).chain(dtls).collect()
    }

    fn expired_warning(&self) -> Option<String> {
        let Tally {
            joined, expired, ..
        } = self.tally;
        (expired * 100 > joined + expired).then(|| {
            format!(
                "{expired} connections had to go before they were joined, most of them long: raise --join-rows \
                 above {}",
                self.options.join_rows
            )
        })
    }
}

/// When the first rows of a file were written, and the file if it can't be opened once more.
fn begin(source: &Source) -> io::Result<(Option<Micros>, Option<Log>)> {
    if !source.is_lasting() {
        let log = Log::new(source.open()?, source.written());
        return Ok((None, Some(log)));
    }
    let mut log = Log::new(source.peek()?.0, source.written());
    let mut first = None;
    log.read(|event| {
        if let Event::Row(row) = event {
            first = first.or(row.written());
        }
    });
    Ok((first, None))
}

/// As [`survey`], of one file that is in memory.
pub fn survey_bytes(bytes: &[u8], options: Options) -> Survey {
    survey_joining(bytes, options, TOGETHER)
}

/// The same, of which so many rows are joined together.
pub(crate) fn survey_joining(bytes: &[u8], options: Options, together: usize) -> Survey {
    let mut reading = Reading::new(options, None);
    reading.together = together;
    let input = crate::input::decompress(io::Cursor::new(bytes.to_vec()));
    let mut file = File {
        name: "memory".to_owned(),
        source: Source::Stdin,
        log: (input.ok()).map(|(input, _)| Log::new(input, Written::AtTheEnd)),
        used: false,
        interim: 0,
        unknown: 0,
        pieces: 0,
    };
    while file.log.is_some() && reading.piece(&mut file) == Left::More {}
    reading.read_whole(&file);
    reading.end();
    reading.survey
}
