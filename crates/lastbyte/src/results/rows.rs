//! Rows as CSV: one line per connection.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use lastbyte_link::{Direction, Rate};

use super::check::{cipher_suite_name, group_name, signature_name};
use super::{Outcome, Resumption, Row, Sample, TcpStats, Validity, Wire};
use crate::study::{Arm, Cell, Experiment, RecordSize};

/// One column of the rows.
pub struct Column {
    /// Its name, in the first line of the file.
    pub name: &'static str,
    /// What it holds.
    pub doc: &'static str,
    value: for<'a> fn(&Connection<'a>) -> Value<'a>,
}

/// One connection, with all that it depends on.
struct Connection<'a> {
    study: &'a str,
    experiment: &'a Experiment,
    arm: &'a Arm,
    cell: &'a Cell,
    sample: &'a Sample,
    validity: &'a Validity,
    row: &'a Row,
}

/// What a field holds. Nothing is written for what is absent.
enum Value<'a> {
    Absent,
    Text(Cow<'a, str>),
    Whole(u64),
    Fraction(f64),
}

/// Writes rows, after a first line with the columns' names.
pub struct Writer<'a, W: io::Write> {
    study: &'a str,
    csv: csv::Writer<W>,
}

impl<'a, W: io::Write> Writer<'a, W> {
    /// Writes the names of the columns. `study` is what the rows say they belong to.
    ///
    /// # Errors
    ///
    /// When `out` can't be written.
    pub fn new(out: W, study: &'a str) -> io::Result<Writer<'a, W>> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS.iter().map(|column| column.name))?;
        Ok(Writer { study, csv })
    }

    /// Writes the connections of a sample. A sample of an arm or a cell that `experiment` does not
    /// have is an error.
    ///
    /// # Errors
    ///
    /// When the rows can't be written.
    pub fn write(&mut self, experiment: &Experiment, sample: &Sample) -> io::Result<()> {
        let (Some(arm), Some(cell)) = (
            experiment.arms.get(sample.arm),
            experiment.cells.get(sample.cell),
        ) else {
            return Err(io::Error::other(
                "a sample is of no arm or no cell of the experiment",
            ));
        };
        let validity = &sample.validity(arm);
        for row in &sample.rows {
            let study = self.study;
            let connection = Connection {
                study,
                experiment,
                arm,
                cell,
                sample,
                validity,
                row,
            };
            for column in COLUMNS {
                match (column.value)(&connection) {
                    Value::Absent => self.csv.write_field(""),
                    Value::Text(text) => self.csv.write_field(text.as_ref()),
                    Value::Whole(number) => self.csv.write_field(number.to_string()),
                    Value::Fraction(number) => self.csv.write_field(number.to_string()),
                }?;
            }
            self.csv.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    /// Writes what is still held back.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.csv.flush()
    }
}

/// All columns, in their order. A field is empty where there is nothing to tell: a time that was not
/// reached, a message that was not seen, no rate limit.
pub const COLUMNS: &[Column] = &[
    column("study", "what was measured", |c| c.study.into()),
    column("arm", "the TLS configuration, as it was written", |c| {
        c.arm.label.as_str().into()
    }),
    column("forward_delay_ns", "delay from client to server", |c| {
        c.forward().delay.into()
    }),
    column("forward_jitter_ns", "jitter from client to server", |c| {
        c.forward().jitter.into()
    }),
    column(
        "forward_distribution",
        "how jitter from client to server is distributed",
        |c| distribution(c.forward()),
    ),
    column(
        "forward_loss",
        "share of packets lost from client to server, as a fraction",
        |c| loss(c.forward()),
    ),
    column(
        "forward_rate_bps",
        "rate limit from client to server, in bits per second",
        |c| rate(c.forward()),
    ),
    column(
        "forward_queue_packets",
        "queue limit from client to server",
        |c| c.forward().queue.into(),
    ),
    column("backward_delay_ns", "delay from server to client", |c| {
        c.backward().delay.into()
    }),
    column("backward_jitter_ns", "jitter from server to client", |c| {
        c.backward().jitter.into()
    }),
    column(
        "backward_distribution",
        "how jitter from server to client is distributed",
        |c| distribution(c.backward()),
    ),
    column(
        "backward_loss",
        "share of packets lost from server to client, as a fraction",
        |c| loss(c.backward()),
    ),
    column(
        "backward_rate_bps",
        "rate limit from server to client, in bits per second",
        |c| rate(c.backward()),
    ),
    column(
        "backward_queue_packets",
        "queue limit from server to client",
        |c| c.backward().queue.into(),
    ),
    column(
        "initcwnd",
        "the server's initial congestion window, in segments",
        |c| c.cell.initcwnd.into(),
    ),
    column(
        "client_initcwnd",
        "the client's initial congestion window, in segments",
        |c| c.cell.client_initcwnd.into(),
    ),
    column("congestion", "congestion control of both ends", |c| {
        c.cell.congestion.name().into()
    }),
    column("data_bytes", "response payload", |c| c.cell.data.0.into()),
    column(
        "record_size",
        "most bytes of a TLS record, or `auto`",
        |c| match c.arm.record_size {
            RecordSize::FirstSegment => "auto".into(),
            RecordSize::Fixed(bytes) => u32::from(bytes).into(),
        },
    ),
    column("timeout_ns", "when a connection counts as failed", |c| {
        c.experiment.timeout.into()
    }),
    column("seed", "where all randomness comes from", |c| {
        c.experiment.seed.0.into()
    }),
    column("concurrency", "connections at once, at most", |c| {
        c.sample.engine.concurrency.into()
    }),
    column(
        "valid",
        "`true`, or `false` if the sample may not be trusted",
        |c| match c.validity {
            Validity::Valid => "true".into(),
            Validity::Invalid(_) => "false".into(),
        },
    ),
    column(
        "index",
        "the connection; arms share the luck of an index",
        |c| c.row.index.into(),
    ),
    column("block", "the block that it was measured in", |c| {
        c.row.block.into()
    }),
    column(
        "outcome",
        "`completed`, `timed-out` or `failed`",
        |c| match c.row.outcome {
            Outcome::Completed => "completed".into(),
            Outcome::TimedOut => "timed-out".into(),
            Outcome::Failed(_) => "failed".into(),
        },
    ),
    column("reason", "why it failed", |c| match &c.row.outcome {
        Outcome::Failed(reason) => reason.as_str().into(),
        Outcome::Completed | Outcome::TimedOut => Value::Absent,
    }),
    column(
        "connect_ns",
        "from just before connect() to TCP established",
        |c| c.row.times.connect.into(),
    ),
    column(
        "handshake_ns",
        "from just before connect() to the client's Finished written",
        |c| c.row.times.handshake.into(),
    ),
    column(
        "ttfb_ns",
        "from just before connect() to the first payload byte decrypted",
        |c| c.row.times.ttfb.into(),
    ),
    column(
        "ttlb_ns",
        "from just before connect() to the last payload byte decrypted",
        |c| c.row.times.ttlb.into(),
    ),
    column(
        "client_hello_bytes",
        "ClientHello with its 4-byte header",
        |c| seen(c.row.wire.client_hello_bytes),
    ),
    column(
        "client_hello_segments",
        "segments that the ClientHello took",
        |c| seen(c.row.wire.client_hello_segments),
    ),
    column(
        "server_hello_bytes",
        "ServerHello with its 4-byte header",
        |c| seen(c.row.wire.server_hello_bytes),
    ),
    column(
        "encrypted_extensions_bytes",
        "EncryptedExtensions with its 4-byte header",
        |c| seen(c.row.wire.encrypted_extensions_bytes),
    ),
    column(
        "certificate_bytes",
        "Certificate with its 4-byte header",
        |c| seen(c.row.wire.certificate_bytes),
    ),
    column(
        "certificate_verify_bytes",
        "CertificateVerify with its 4-byte header",
        |c| seen(c.row.wire.certificate_verify_bytes),
    ),
    column(
        "server_finished_bytes",
        "the server's Finished with its 4-byte header",
        |c| seen(c.row.wire.server_finished_bytes),
    ),
    column(
        "client_finished_bytes",
        "the client's Finished with its 4-byte header",
        |c| seen(c.row.wire.client_finished_bytes),
    ),
    column(
        "client_hello_wire_bytes",
        "the client's first flight, with record framing",
        |c| seen(c.row.wire.client_hello_wire_bytes),
    ),
    column(
        "server_flight_wire_bytes",
        "the server's messages, with record framing",
        |c| seen(c.row.wire.server_flight_wire_bytes),
    ),
    column(
        "client_finish_wire_bytes",
        "the client's last messages, with record framing",
        |c| seen(c.row.wire.client_finish_wire_bytes),
    ),
    column(
        "certificates",
        "certificates in the Certificate message",
        |c| seen(c.row.wire.certificates),
    ),
    column("group", "key-exchange group negotiated", |c| {
        c.row.wire.group.map(group_name).into()
    }),
    column("cipher_suite", "cipher suite negotiated", |c| {
        c.row.wire.cipher_suite.map(cipher_suite_name).into()
    }),
    column("signature", "signature scheme of CertificateVerify", |c| {
        c.row.wire.signature.map(signature_name).into()
    }),
    column(
        "resumed",
        "`true` if an earlier session was resumed",
        |c| match c.row.wire {
            Wire { group: None, .. } => Value::Absent,
            Wire {
                resumption: Resumption::Full,
                ..
            } => "false".into(),
            Wire {
                resumption: Resumption::Resumed,
                ..
            } => "true".into(),
        },
    ),
    column("chain_sha256", "SHA-256 of the certificates as sent", |c| {
        c.sample.chain_digest.as_str().into()
    }),
    column(
        "client_retransmits",
        "tcpi_total_retrans of the client at the end",
        |c| c.client(|tcp| tcp.retransmits),
    ),
    column("client_lost", "tcpi_lost of the client at the end", |c| {
        c.client(|tcp| tcp.lost)
    }),
    column("client_rtt_ns", "tcpi_rtt of the client at the end", |c| {
        c.client(|tcp| tcp.rtt)
    }),
    column(
        "client_min_rtt_ns",
        "tcpi_min_rtt of the client at the end",
        |c| c.client(|tcp| tcp.min_rtt),
    ),
    column(
        "client_cwnd",
        "tcpi_snd_cwnd of the client at the end, in segments",
        |c| c.client(|tcp| tcp.cwnd),
    ),
    column(
        "client_mss",
        "tcpi_snd_mss of the client at the end, in bytes",
        |c| c.client(|tcp| tcp.mss),
    ),
    column(
        "client_segments_out",
        "tcpi_segs_out of the client at the end",
        |c| c.client(|tcp| tcp.segments_out),
    ),
    column(
        "client_segments_in",
        "tcpi_segs_in of the client at the end",
        |c| c.client(|tcp| tcp.segments_in),
    ),
    column(
        "server_retransmits",
        "tcpi_total_retrans of the server at the end",
        |c| c.server(|tcp| tcp.retransmits),
    ),
    column("server_lost", "tcpi_lost of the server at the end", |c| {
        c.server(|tcp| tcp.lost)
    }),
    column("server_rtt_ns", "tcpi_rtt of the server at the end", |c| {
        c.server(|tcp| tcp.rtt)
    }),
    column(
        "server_min_rtt_ns",
        "tcpi_min_rtt of the server at the end",
        |c| c.server(|tcp| tcp.min_rtt),
    ),
    column(
        "server_cwnd",
        "tcpi_snd_cwnd of the server at the end, in segments",
        |c| c.server(|tcp| tcp.cwnd),
    ),
    column(
        "server_mss",
        "tcpi_snd_mss of the server at the end, in bytes",
        |c| c.server(|tcp| tcp.mss),
    ),
    column(
        "server_segments_out",
        "tcpi_segs_out of the server at the end",
        |c| c.server(|tcp| tcp.segments_out),
    ),
    column(
        "server_segments_in",
        "tcpi_segs_in of the server at the end",
        |c| c.server(|tcp| tcp.segments_in),
    ),
    column(
        "link_lateness_ns",
        "latest delivery of a packet, behind the link's time for it",
        |c| c.row.lateness.link.into(),
    ),
    column(
        "endpoint_wait_ns",
        "waiting for other connections' work, summed",
        |c| c.row.lateness.endpoint.into(),
    ),
];

const fn column(
    name: &'static str,
    doc: &'static str,
    value: for<'a> fn(&Connection<'a>) -> Value<'a>,
) -> Column {
    Column { name, doc, value }
}

impl<'a> Connection<'a> {
    fn forward(&self) -> &'a Direction {
        &self.cell.link.forward
    }

    fn backward(&self) -> &'a Direction {
        &self.cell.link.backward
    }

    fn client<T: Into<Value<'a>>>(&self, field: fn(&TcpStats) -> T) -> Value<'a> {
        self.row.client_tcp.as_ref().map(field).into()
    }

    fn server<T: Into<Value<'a>>>(&self, field: fn(&TcpStats) -> T) -> Value<'a> {
        self.row.server_tcp.as_ref().map(field).into()
    }
}

fn distribution(direction: &Direction) -> Value<'static> {
    direction.distribution.to_string().into()
}

fn loss(direction: &Direction) -> Value<'static> {
    Value::Fraction(direction.loss.fraction())
}

fn rate(direction: &Direction) -> Value<'static> {
    direction.rate.map(Rate::bits_per_second).into()
}

/// A message of no bytes was not seen.
fn seen(number: u32) -> Value<'static> {
    (number > 0).then_some(number).into()
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Absent, Into::into)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(text.into())
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::Whole(number.into())
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Whole(number)
    }
}

impl From<Duration> for Value<'_> {
    /// In nanoseconds.
    fn from(duration: Duration) -> Self {
        Value::Whole(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}
