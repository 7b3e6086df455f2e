//! Requests of page loads as Parquet: one table of columns, as of rows.

use std::io::{self, Seek, Write};
use std::sync::LazyLock;
use std::time::Duration;

use lastbyte_page::Kind as ResourceKind;
use lastbyte_page::cdp::{Connecting, Load, Request, Source};
use serde::Serialize;

use super::parquet::{Packing, Table};
use super::{Batch, COLUMNS, Column, Connection, Kind, Value};
use crate::loaded::Loaded;

/// All columns, in their order.
pub static REQUEST_COLUMNS: LazyLock<Vec<Column<OfRequest>>> = LazyLock::new(|| {
    let shared = shared().map(|column| Column {
        name: column.name,
        doc: column.doc,
        kind: column.kind,
        presence: column.presence,
        absent: column.absent,
        value: OfRequest(Field::Connection(column)),
    });
    shared.chain(OF_REQUESTS.iter().cloned()).collect()
});

/// The last of the columns of rows that say what was measured, and the one that says which load it was.
const LAST: &str = "cache";
const INDEX: &str = "index";

/// The columns that rows have, too.
pub(super) fn shared() -> impl Iterator<Item = &'static Column> {
    let last = COLUMNS.iter().position(|column| column.name == LAST);
    let count = last.map_or(0, |last| last + 1);
    let index = COLUMNS.iter().filter(|column| column.name == INDEX);
    COLUMNS.iter().take(count).chain(index)
}

/// What a column says of a request.
#[derive(Clone, Copy)]
pub struct OfRequest(Field);

#[derive(Clone, Copy)]
enum Field {
    /// What it says of the connection that is the load's row.
    Connection(&'static Column),
    Request(for<'a> fn(&OfLoad<'a>) -> Value<'a>),
}

/// A request of a load.
#[derive(Clone, Copy)]
struct OfLoad<'a> {
    /// Its place among the load's, from 0.
    place: u32,
    request: &'a Request,
}

const NO_TCP: &str = "it had a connection that was there, or needed none, and over QUIC";
const NO_TLS: &str = "no TLS was begun for it";
const NO_RESPONSE: &str = "there was no response";

/// Those that rows have not.
pub(super) const OF_REQUESTS: &[Column<OfRequest>] = &[
    column(
        "request",
        "its place among those of the navigation, in the order in which they were made, from 0",
        Kind::Whole,
        |a| a.place.into(),
    ),
    column("url", "what was asked for", Kind::Text, |a| {
        a.request.url.as_str().into()
    }),
    column(
        "kind",
        "what it is for: `document`, `style`, `script`, `image`, `font`, `fetch` or `redirect`",
        Kind::Text,
        |a| a.request.kind.map(ResourceKind::name).into(),
    )
    .absent("it is for something that pages here don't have"),
    column(
        "found_in",
        "the URL of what it was found in",
        Kind::Text,
        |a| a.request.found_in.as_deref().into(),
    )
    .absent("the browser does not say so, as of the document"),
    column("start_ns", "when it was found", Kind::Whole, |a| {
        a.request.start.into()
    }),
    column(
        "connect_start_ns",
        "when TCP began to connect for it",
        Kind::Whole,
        |a| connecting(a, |way| Some(way.tcp?.0)),
    )
    .absent(NO_TCP),
    column(
        "connect_end_ns",
        "when TCP was connected",
        Kind::Whole,
        |a| connecting(a, |way| Some(way.tcp?.1)),
    )
    .absent(NO_TCP),
    column(
        "tls_start_ns",
        "when TLS began to shake hands for it",
        Kind::Whole,
        |a| connecting(a, |way| Some(way.tls?.0)),
    )
    .absent(NO_TLS),
    column("tls_end_ns", "when that was done", Kind::Whole, |a| {
        connecting(a, |way| Some(way.tls?.1))
    })
    .absent(NO_TLS),
    column("sent_ns", "when it was sent", Kind::Whole, |a| {
        a.request.sent.into()
    })
    .absent("it was never sent"),
    column(
        "first_byte_ns",
        "when the first byte of its response was there",
        Kind::Whole,
        |a| a.request.first_byte.into(),
    )
    .absent(NO_RESPONSE),
    column(
        "end_ns",
        "when the last byte was there, or when it failed",
        Kind::Whole,
        |a| a.request.end.into(),
    )
    .absent("it never ended"),
    column(
        "connection",
        "the browser's number of the connection that it went over",
        Kind::Whole,
        |a| a.request.connection.into(),
    )
    .absent("it went over none"),
    column(
        "protocol",
        "`h2` or `http/1.1`, and another word of the browser's where it asked no server",
        Kind::Text,
        |a| a.request.protocol.as_str().into(),
    ),
    column("status", "the response's status", Kind::Whole, |a| {
        a.request.status.map(u32::from).into()
    })
    .absent(NO_RESPONSE),
    column(
        "source",
        "who answered: `network`, a server, or `cache`, the browser itself",
        Kind::Text,
        |a| {
            match a.request.source {
                Source::Network => "network",
                Source::Cache => "cache",
            }
            .into()
        },
    ),
    column("media_type", "the response's media type", Kind::Text, |a| {
        a.request.media_type.as_str().into()
    }),
    column(
        "priority",
        "how urgent the browser found it: `VeryHigh` to `VeryLow`",
        Kind::Text,
        |a| a.request.priority.as_str().into(),
    ),
    column(
        "wire_bytes",
        "the response as HTTP has it: fields and body, compressed",
        Kind::Whole,
        |a| a.request.wire.0.into(),
    ),
    column("body_bytes", "its body, uncompressed", Kind::Whole, |a| {
        a.request.body.0.into()
    }),
    column(
        "failure",
        "why there is no response, or not all of it, as the browser says it",
        Kind::Text,
        |a| a.request.failure.as_deref().into(),
    )
    .absent("it did not fail"),
];

const fn column(
    name: &'static str,
    doc: &'static str,
    kind: Kind,
    value: for<'a> fn(&OfLoad<'a>) -> Value<'a>,
) -> Column<OfRequest> {
    Column::required(name, doc, kind, OfRequest(Field::Request(value)))
}

fn connecting<'a>(of_load: &OfLoad<'a>, of: fn(&Connecting) -> Option<Duration>) -> Value<'a> {
    of_load.request.connecting.as_ref().and_then(of).into()
}

/// Writes the requests of page loads as Parquet.
pub struct RequestWriter<W: Write + Seek + Send>(Table<W>);

impl<W: Write + Seek + Send> RequestWriter<W> {
    /// Begins a file at the beginning of `out`, which tells what each column holds.
    ///
    /// # Errors
    ///
    /// When `out` can't be written.
    pub fn new(out: W) -> io::Result<Self> {
        let mut table = Table::new(out, "request", &REQUEST_COLUMNS, Packing::Whole)?;
        table.describe(&REQUEST_COLUMNS);
        Ok(Self(table))
    }

    /// Writes the requests of those loads that are rows of `batch`. One that failed before the browser told anything has none.
    ///
    /// # Errors
    ///
    /// When they can't be written, or a whole number needs more than 63 bits.
    pub fn write(&mut self, batch: &Batch<'_>, loads: &[Loaded]) -> io::Result<()> {
        for connection in batch.connections() {
            let mut of_row = loads.iter().filter(|one| one.index == connection.row.index);
            if let Some(load) = of_row.find_map(|one| one.load.as_ref()) {
                self.write_load(&connection, load)?;
            }
        }
        Ok(())
    }

    fn write_load(&mut self, connection: &Connection<'_>, load: &Load) -> io::Result<()> {
        let requests = (0..).zip(&load.requests);
        let mut requests = requests.map(|(place, request)| OfLoad { place, request });
        loop {
            let room = self.0.room()?;
            let some: Vec<OfLoad<'_>> = requests.by_ref().take(room).collect();
            if some.is_empty() {
                return Ok(());
            }
            for (column, buffer) in REQUEST_COLUMNS.iter().zip(&mut self.0.columns) {
                match column.value.0 {
                    Field::Connection(column) => {
                        buffer.push(column.value(connection))?;
                        buffer.repeat(some.len() - 1);
                    }
                    Field::Request(value) => {
                        some.iter()
                            .try_for_each(|of_load| buffer.push(value(of_load)))?;
                    }
                }
            }
        }
    }

    /// Writes what is still held back, and of which study it is.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn finish(self, study: &str) -> io::Result<W> {
        self.0.finish(&About {
            schema: SCHEMA,
            study,
        })
    }
}

/// The form of these files.
const SCHEMA: &str = "lastbyte.requests/1";

#[derive(Serialize)]
struct About<'a> {
    schema: &'a str,
    study: &'a str,
}
