//! Rows with a header: Zeek's `LogAscii`, whose separators and words for nothing can be chosen.

use std::borrow::Cow;

use crate::places::Places;
use crate::reason::Reason;
use crate::row::{Conn, Kind, Ours, Row, Ssl, State, Transport, Uid, Written, names_tls};
use crate::time;
use crate::version::Version;

/// The columns that are wanted of any log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Time,
    Uid,
    Address,
    Version,
    Server,
    Resumed,
    Established,
    History,
    Transport,
    Service,
    Duration,
    Sent,
    Received,
    Missed,
    State,
    ClientBytes,
    ServerBytes,
    Rtt,
}

const FIELDS: [(&str, Field); 18] = [
    ("ts", Field::Time),
    ("uid", Field::Uid),
    ("id.resp_h", Field::Address),
    ("version", Field::Version),
    ("server_name", Field::Server),
    ("resumed", Field::Resumed),
    ("established", Field::Established),
    ("ssl_history", Field::History),
    ("proto", Field::Transport),
    ("service", Field::Service),
    ("duration", Field::Duration),
    ("orig_bytes", Field::Sent),
    ("resp_bytes", Field::Received),
    ("missed_bytes", Field::Missed),
    ("conn_state", Field::State),
    ("client_handshake_bytes", Field::ClientBytes),
    ("server_handshake_bytes", Field::ServerBytes),
    ("tcp_rtt", Field::Rtt),
];

/// Where the columns go that nobody wants.
const UNWANTED: u8 = FIELDS.len() as u8;

/// How a file is written, as the lines so far declared that begin with `#`.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    separator: u8,
    empty: Vec<u8>,
    unset: Vec<u8>,
    /// For each column, which field it is.
    columns: Vec<u8>,
    present: [bool; FIELDS.len()],
    content: Content,
    /// By the name of the log, if the header has one.
    written: Option<Written>,
}

/// What its rows are.
#[derive(Clone, Debug, PartialEq)]
enum Content {
    /// No `#fields` yet.
    Nothing,
    Other,
    Rows(Kind),
    /// Of this kind by its fields, but without one that is needed.
    Lacking(Kind, &'static str),
    /// The separator is more than one byte.
    Unsplit,
    /// Somebody has pasted it, whereby tabs became blanks.
    Blanks,
}

impl Default for Header {
    fn default() -> Self {
        Header {
            separator: b'\t',
            empty: b"(empty)".to_vec(),
            unset: b"-".to_vec(),
            columns: Vec::new(),
            present: [false; FIELDS.len()],
            content: Content::Nothing,
            written: None,
        }
    }
}

impl Header {
    /// A line that begins with `#`.
    pub(crate) fn directive(&mut self, line: &[u8]) {
        // That of the separator can't use it yet.
        if let Some(separator) = line.strip_prefix(b"#separator ") {
            *self = Header::default();
            match unescape(separator).as_ref() {
                [separator] => self.separator = *separator,
                _ => self.content = Content::Unsplit,
            }
            return;
        }
        let separator = self.separator;
        let mut words = line.split(|byte| *byte == separator);
        match (words.next(), words.clone().next()) {
            (Some(b"#empty_field"), Some(empty)) => self.empty = empty.to_vec(),
            (Some(b"#unset_field"), Some(unset)) => self.unset = unset.to_vec(),
            (Some(b"#path"), Some(log)) => self.written = Some(Written::of(log)),
            (Some(b"#fields"), Some(_)) if self.content != Content::Unsplit => self.fields(words),
            (Some(fields), None) if fields.starts_with(b"#fields ") => {
                self.content = Content::Blanks;
            }
            _ => {}
        }
    }

    fn fields<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) {
        let mut has = [false; FIELDS.len()];
        let names: Vec<&[u8]> = names.collect();
        let columns = names.iter().map(|name| {
            let found = FIELDS
                .iter()
                .position(|(field, _)| field.as_bytes() == *name);
            // Of two columns with one name, the first counts.
            match found.and_then(|at| Some((at, has.get_mut(at)?))) {
                Some((at, present)) if !*present => {
                    *present = true;
                    at as u8
                }
                _ => UNWANTED,
            }
        });
        let columns = columns.collect();
        self.columns = columns;
        self.present = has;
        let names = names
            .iter()
            .filter_map(|name| std::str::from_utf8(name).ok());
        self.content = match kind(names) {
            None => Content::Other,
            Some(kind) => match (needed(kind).iter()).find(|field| !self.has(**field)) {
                Some(field) => Content::Lacking(kind, name(*field)),
                None => Content::Rows(kind),
            },
        };
    }

    fn has(&self, field: Field) -> bool {
        self.present.get(field as usize).copied().unwrap_or(false)
    }

    /// What its rows are, if it has declared so.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.content {
            Content::Rows(kind) | Content::Lacking(kind, _) => Some(kind),
            Content::Nothing | Content::Other | Content::Unsplit | Content::Blanks => None,
        }
    }

    /// When its rows are written, if it says of which log they are.
    pub(crate) fn written(&self) -> Option<Written> {
        self.written
    }

    /// What a line says that begins with anything but `#`.
    pub(crate) fn row<'a>(&'a self, line: &'a [u8]) -> Result<Row<'a>, Reason> {
        let kind = match self.content {
            Content::Rows(kind) => kind,
            Content::Other => return Ok(Row::Other),
            Content::Nothing => return Err(Reason::NoHeader),
            Content::Blanks => return Err(Reason::Blanks),
            Content::Lacking(_, column) => return Err(Reason::NoColumn(column)),
            Content::Unsplit => return Err(Reason::Separator),
        };
        let fields = self.split(line)?;
        match kind {
            Kind::Ssl => self.ssl(&fields),
            Kind::Conn => self.conn(&fields),
            Kind::Ours => self.ours(&fields),
        }
    }

    fn split<'a>(&self, line: &'a [u8]) -> Result<Fields<'a>, Reason> {
        let mut fields = Fields::of(line);
        let mut columns = self.columns.iter();
        let mut begin = 0;
        for end in Places::of(self.separator, line) {
            let Some(column) = columns.next() else {
                return Err(Reason::Columns);
            };
            fields.put(*column, begin, end);
            begin = end + 1;
        }
        let last = columns.next().ok_or(Reason::Columns)?;
        fields.put(*last, begin, line.len());
        match columns.next() {
            Some(_) => Err(Reason::Columns),
            None => Ok(fields),
        }
    }

    /// What a field holds. `None` if there is no such column, or it is unset.
    fn value<'a>(&self, fields: &Fields<'a>, field: Field) -> Option<&'a [u8]> {
        let value = fields.get(field)?;
        match value {
            value if is(value, &self.unset) => None,
            value if is(value, &self.empty) => Some(b""),
            value => Some(value),
        }
    }

    fn uid(&self, fields: &Fields<'_>) -> Result<Uid, Reason> {
        let uid = self.value(fields, Field::Uid);
        let uid = uid.filter(|uid| !uid.is_empty());
        uid.map(Uid::of).ok_or(Reason::Field("uid"))
    }

    fn ssl<'a>(&self, fields: &Fields<'a>) -> Result<Row<'a>, Reason> {
        let truth = |field| match self.value(fields, field) {
            Some(b"T") => Ok(true),
            Some(b"F") => Ok(false),
            _ => Err(Reason::Field(name(field))),
        };
        let version = self.value(fields, Field::Version).unwrap_or_default();
        Ok(Row::Ssl(Ssl {
            uid: self.uid(fields)?,
            time: self.time(fields),
            version: Version::parse(version),
            is_draft: version.starts_with(b"TLSv13-"),
            resumed: truth(Field::Resumed)?,
            established: truth(Field::Established)?,
            history: if self.has(Field::History) {
                Some(self.value(fields, Field::History).unwrap_or_default())
            } else {
                None
            },
            server: self.value(fields, Field::Server).unwrap_or_default(),
            address: self.value(fields, Field::Address).unwrap_or_default(),
        }))
    }

    fn conn(&self, fields: &Fields<'_>) -> Result<Row<'static>, Reason> {
        let service = if self.has(Field::Service) {
            Some(self.value(fields, Field::Service).unwrap_or_default())
        } else {
            None
        };
        Ok(Row::Conn(Conn {
            uid: self.uid(fields)?,
            time: self.time(fields),
            transport: Transport::parse(self.value(fields, Field::Transport).unwrap_or_default()),
            has_tls: names_tls(service),
            duration: self.number(fields, Field::Duration, time::span)?,
            sent: self.number(fields, Field::Sent, whole)?,
            received: self.number(fields, Field::Received, whole)?,
            missed: self.number(fields, Field::Missed, whole)?,
            state: State::parse(self.value(fields, Field::State).unwrap_or_default()),
        }))
    }

    fn ours(&self, fields: &Fields<'_>) -> Result<Row<'static>, Reason> {
        Ok(Row::Ours(Ours {
            uid: self.uid(fields)?,
            time: self.time(fields),
            client_bytes: self.number(fields, Field::ClientBytes, whole)?,
            server_bytes: self.number(fields, Field::ServerBytes, whole)?,
            rtt: self.number(fields, Field::Rtt, time::span)?,
        }))
    }

    fn time(&self, fields: &Fields<'_>) -> Option<time::Micros> {
        time::parse(self.value(fields, Field::Time)?)
    }

    fn number(
        &self,
        fields: &Fields<'_>,
        field: Field,
        parse: fn(&[u8]) -> Option<u64>,
    ) -> Result<Option<u64>, Reason> {
        let value = self.value(fields, field);
        let number = value.map(|value| parse(value).ok_or(Reason::Field(name(field))));
        number.transpose()
    }
}

/// The fields of a row that are wanted, as where they begin and end. Lines are far shorter than 4 GB
/// ([`crate::lines`]).
struct Fields<'a> {
    line: &'a [u8],
    places: [(u32, u32); FIELDS.len() + 1],
}

impl<'a> Fields<'a> {
    /// What no field has, as none ends before it begins.
    const ABSENT: (u32, u32) = (u32::MAX, 0);

    fn of(line: &'a [u8]) -> Self {
        Fields {
            line,
            places: [Self::ABSENT; FIELDS.len() + 1],
        }
    }

    fn put(&mut self, column: u8, begin: usize, end: usize) {
        if let Some(place) = self.places.get_mut(usize::from(column)) {
            *place = (begin as u32, end as u32);
        }
    }

    fn get(&self, field: Field) -> Option<&'a [u8]> {
        let (begin, end) = *self.places.get(field as usize)?;
        self.line.get(begin as usize..end as usize)
    }
}

/// Whether a field is this word, which has one letter most of the time: no call is worth that.
fn is(value: &[u8], word: &[u8]) -> bool {
    match (value, word) {
        ([one], [other]) => one == other,
        _ => value == word,
    }
}

/// What a log is by the names of its fields, of which a row of JSON may lack some.
pub(crate) fn kind<'a>(names: impl Iterator<Item = &'a str>) -> Option<Kind> {
    let (mut ssl, mut conn, mut ours) = (0, 0, 0);
    for name in names {
        match name {
            "cipher" | "curve" | "resumed" | "established" | "ssl_history" => ssl += 1,
            "conn_state" | "missed_bytes" | "orig_bytes" | "resp_bytes" | "local_orig" => conn += 1,
            "client_handshake_bytes" | "server_handshake_bytes" => ours += 1,
            _ => {}
        }
    }
    match (ssl, conn, ours) {
        (2.., _, _) => Some(Kind::Ssl),
        (_, 2.., _) => Some(Kind::Conn),
        (_, _, 2) => Some(Kind::Ours),
        _ => None,
    }
}

fn needed(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Ssl => &[
            Field::Uid,
            Field::Version,
            Field::Resumed,
            Field::Established,
        ],
        Kind::Conn | Kind::Ours => &[Field::Uid],
    }
}

fn name(field: Field) -> &'static str {
    FIELDS.get(field as usize).map_or("", |(name, _)| name)
}

fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// A text whose `\xNN` are bytes.
pub(crate) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(text, b"\\x").is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match rest {
            [b'\\', b'x', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = rest.get(4..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(out)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
