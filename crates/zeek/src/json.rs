//! Rows as JSON, one object a line (`LogAscii::use_json`). What is unset is absent.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::reason::Reason;
use crate::row::{Conn, Kind, Ours, Row, Ssl, State, Transport, Uid, Written, names_tls};
use crate::time::{self, Micros};
use crate::version::Version;

/// Of any log, the fields that are wanted, and those that tell it apart.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    ts: Option<Time>,
    #[serde(default, rename = "_write_ts")]
    written: Option<Time>,
    #[serde(default, borrow, rename = "_path")]
    log: Option<Any<'a>>,
    #[serde(default, borrow)]
    uid: Option<Text<'a>>,
    #[serde(default, borrow, rename = "id.resp_h")]
    address: Option<Text<'a>>,
    #[serde(default, borrow)]
    version: Option<Any<'a>>,
    #[serde(default, borrow)]
    cipher: Option<Any<'a>>,
    #[serde(default, borrow)]
    server_name: Option<Any<'a>>,
    #[serde(default, borrow)]
    resumed: Option<Any<'a>>,
    #[serde(default, borrow)]
    established: Option<Any<'a>>,
    #[serde(default, borrow)]
    ssl_history: Option<Any<'a>>,
    #[serde(default, borrow)]
    proto: Option<Any<'a>>,
    #[serde(default, borrow)]
    service: Option<Any<'a>>,
    #[serde(default, borrow)]
    duration: Option<Any<'a>>,
    #[serde(default, borrow)]
    orig_bytes: Option<Any<'a>>,
    #[serde(default, borrow)]
    resp_bytes: Option<Any<'a>>,
    #[serde(default, borrow)]
    missed_bytes: Option<Any<'a>>,
    #[serde(default, borrow)]
    conn_state: Option<Any<'a>>,
    #[serde(default, borrow)]
    client_handshake_bytes: Option<Any<'a>>,
    #[serde(default, borrow)]
    server_handshake_bytes: Option<Any<'a>>,
    #[serde(default, borrow)]
    tcp_rtt: Option<Any<'a>>,
}

/// What keeps a line from being read.
fn reason(error: &serde_json::Error) -> Reason {
    let text = error.to_string();
    // As serde says it, of the keys that are read alone.
    let twice = text.strip_prefix("duplicate field `");
    let key = twice.and_then(|rest| Some(rest.split_once('`')?.0));
    key.map_or(Reason::Json, |key| Reason::Twice(key.into()))
}

/// A line of JSON, read but not understood.
pub(crate) struct Object<'a>(Line<'a>);

impl<'a> Object<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, Reason> {
        serde_json::from_slice(line)
            .map(Object)
            .map_err(|error| reason(&error))
    }

    /// Of several in one array.
    pub(crate) fn parse_all(line: &'a [u8]) -> Result<Vec<Self>, Reason> {
        let lines: Vec<Line<'a>> = serde_json::from_slice(line).map_err(|error| reason(&error))?;
        Ok(lines.into_iter().map(Object).collect())
    }

    /// When rows of its log are written, if it says of which it is.
    pub(crate) fn log(&self) -> Option<Written> {
        match &self.0.log {
            Some(Any::Text(log)) => Some(Written::of(log.as_bytes())),
            _ => None,
        }
    }

    /// What it is a row of, by the fields that are there.
    pub(crate) fn kind(&self) -> Option<Kind> {
        let line = &self.0;
        let ssl = [
            &line.cipher,
            &line.resumed,
            &line.established,
            &line.ssl_history,
        ];
        let conn = [
            &line.conn_state,
            &line.missed_bytes,
            &line.orig_bytes,
            &line.resp_bytes,
        ];
        let count = |fields: &[&Option<Any<'_>>]| fields.iter().filter(|f| f.is_some()).count();
        if count(&ssl) >= 2 {
            Some(Kind::Ssl)
        } else if line.conn_state.is_some() || count(&conn) >= 2 {
            Some(Kind::Conn)
        } else if line.server_handshake_bytes.is_some() {
            Some(Kind::Ours)
        } else {
            None
        }
    }

    pub(crate) fn row(&self) -> Result<Row<'_>, Reason> {
        match self.kind() {
            None => Ok(Row::Other),
            Some(Kind::Ssl) => self.ssl(),
            Some(Kind::Conn) => self.conn(),
            Some(Kind::Ours) => self.ours(),
        }
    }

    /// When it was written, where it says so.
    pub(crate) fn written(&self) -> Option<Micros> {
        self.0.written.as_ref()?.0
    }

    fn uid(&self) -> Result<Uid, Reason> {
        let uid = self.0.uid.as_ref().filter(|uid| !uid.0.is_empty());
        let uid = uid.ok_or(Reason::Field("uid"))?;
        Ok(Uid::of(uid.0.as_bytes()))
    }

    fn time(&self) -> Option<Micros> {
        self.0.ts.as_ref()?.0
    }

    fn ssl(&self) -> Result<Row<'_>, Reason> {
        let line = &self.0;
        let version = text(&line.version, "version")?.unwrap_or_default();
        Ok(Row::Ssl(Ssl {
            uid: self.uid()?,
            time: self.time(),
            version: Version::parse(version.as_bytes()),
            is_draft: version.starts_with("TLSv13-"),
            resumed: truth(&line.resumed, "resumed")?,
            established: truth(&line.established, "established")?,
            // Versions of Zeek without it have none anywhere, which no row can tell.
            history: text(&line.ssl_history, "ssl_history")?.map(str::as_bytes),
            server: text(&line.server_name, "server_name")?
                .unwrap_or_default()
                .as_bytes(),
            address: line
                .address
                .as_ref()
                .map_or(&[], |address| address.0.as_bytes()),
        }))
    }

    fn conn(&self) -> Result<Row<'_>, Reason> {
        let line = &self.0;
        let transport = text(&line.proto, "proto")?.unwrap_or_default();
        let service = text(&line.service, "service")?.unwrap_or_default();
        let state = text(&line.conn_state, "conn_state")?.unwrap_or_default();
        Ok(Row::Conn(Conn {
            uid: self.uid()?,
            time: self.time(),
            transport: Transport::parse(transport.as_bytes()),
            has_tls: names_tls(Some(service.as_bytes())),
            duration: span(&line.duration, "duration")?,
            sent: whole(&line.orig_bytes, "orig_bytes")?,
            received: whole(&line.resp_bytes, "resp_bytes")?,
            missed: whole(&line.missed_bytes, "missed_bytes")?,
            state: State::parse(state.as_bytes()),
        }))
    }

    fn ours(&self) -> Result<Row<'_>, Reason> {
        let line = &self.0;
        Ok(Row::Ours(Ours {
            uid: self.uid()?,
            time: self.time(),
            client_bytes: whole(&line.client_handshake_bytes, "client_handshake_bytes")?,
            server_bytes: whole(&line.server_handshake_bytes, "server_handshake_bytes")?,
            rtt: span(&line.tcp_rtt, "tcp_rtt")?,
        }))
    }
}

/// A text, without a copy unless something in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A scalar of whatever type, so that a log of other people's is not one that can't be read.
enum Any<'a> {
    Text(Cow<'a, str>),
    Truth(bool),
    Whole(u64),
    Fraction(f64),
    Else,
}

fn text<'a>(field: &'a Option<Any<'_>>, name: &'static str) -> Result<Option<&'a str>, Reason> {
    match field {
        None => Ok(None),
        Some(Any::Text(text)) => Ok(Some(text)),
        Some(_) => Err(Reason::Field(name)),
    }
}

fn truth(field: &Option<Any<'_>>, name: &'static str) -> Result<bool, Reason> {
    match field {
        Some(Any::Truth(truth)) => Ok(*truth),
        _ => Err(Reason::Field(name)),
    }
}

fn whole(field: &Option<Any<'_>>, name: &'static str) -> Result<Option<u64>, Reason> {
    match field {
        None => Ok(None),
        Some(Any::Whole(number)) => Ok(Some(*number)),
        Some(_) => Err(Reason::Field(name)),
    }
}

/// Seconds, as microseconds.
fn span(field: &Option<Any<'_>>, name: &'static str) -> Result<Option<u64>, Reason> {
    match field {
        None => Ok(None),
        Some(Any::Whole(seconds)) => Ok(seconds.checked_mul(1_000_000)),
        Some(Any::Fraction(seconds)) if (0.0..1e12).contains(seconds) => {
            Ok(Some((seconds * 1e6).round() as u64))
        }
        Some(_) => Err(Reason::Field(name)),
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Any<'de>, E> {
        Ok(Any::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Any<'de>, E> {
        Ok(Any::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Any<'de>, E> {
        Ok(Any::Truth(truth))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Any<'de>, E> {
        Ok(Any::Whole(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Any<'de>, E> {
        Ok(Any::Fraction(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Any<'de>, E> {
        Ok(Any::Fraction(number))
    }

    fn visit_unit<E: Error>(self) -> Result<Any<'de>, E> {
        Ok(Any::Else)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Any<'de>, A::Error> {
        while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(Any::Else)
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Any<'de>, A::Error> {
        type Nothing = serde::de::IgnoredAny;
        while map.next_entry::<Nothing, Nothing>()?.is_some() {}
        Ok(Any::Else)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Any<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(AnyVisitor)
    }
}

/// A time, if it is one.
struct Time(Option<Micros>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Ok(Time(
            match input.deserialize_any(AnyVisitor)? {
                Any::Text(text) => time::parse(text.as_bytes()),
                Any::Whole(number) => (i64::try_from(number).ok())
                    .and_then(|number| number.checked_mul(1_000_000))
                    .map(time::from_number),
                Any::Fraction(number) if number.abs() < 9e12 => {
                    Some(time::from_number((number * 1e6).round() as i64))
                }
                _ => None,
            }
            .filter(|micros| time::is_plausible(*micros)),
        ))
    }
}
