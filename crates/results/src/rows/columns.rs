//! The columns, what they say of a connection, and how a row is had back from them.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use lastbyte_exchange::{AddressValidation, Negotiated, Quic, Transfer, Transport};
use lastbyte_link::{Direction, Qdisc, Rate, Trace};
use lastbyte_sizes::{ABRIDGED, CertificateCompression, Message, names};

use super::{Batch, Column, Connection, Kind, OfConnection, Presence, Restore, Source, Value};
use crate::check::{cipher_suite_name, group_name, signature_name};
use crate::{
    Cause, ChainSignal, Compression, DeliveryOutcome, EarlyData, Exchange, HandshakeFlight,
    HelloDigest, Measurement, Outcome, Resumption, Row, TransportStats, Validity,
};
use lastbyte_study::{
    Cell, Client, Draw, Emulation, EngineName, Parameter, ParameterColumn, ParameterValue,
    RecordSize, TransportName, is_modelled,
};

/// A column of a field of rows: its kind, name and meaning, the field, and what it says where there is none.
macro_rules! of_row {
    ($kind:ident $name:expr, $doc:expr, $($field:ident).+ $(, absent $absent:expr)?) => {
        $kind($name, $doc, |c| c.row.$($field).+.into())
            $(.absent($absent))?
            .restored(|row, value| set(&mut row.$($field).+, value))
    };
}

/// The same of a page load.
macro_rules! of_load {
    ($kind:ident $name:expr, $doc:expr, $field:ident, absent $absent:expr) => {
        $kind($name, $doc, |c| {
            c.row.load().and_then(|load| load.$field).into()
        })
        .absent($absent)
        // A row with something that a browser saw is of a load.
        .restored(|row, value| {
            let mut load = row.load().copied().unwrap_or_default();
            set(&mut load.$field, value)?;
            row.measurement = Measurement::Load(load);
            Some(())
        })
    };
}

/// The same of a flight of the handshake, in bytes on the wire.
macro_rules! of_flight {
    ($name:expr, $doc:expr, $flight:ident) => {
        size($name, $doc, |seen| {
            seen.wire_bytes(HandshakeFlight::$flight)
        })
        .absent(NOT_SEEN)
        .restored(|row, value| see(row, HandshakeFlight::$flight, value))
    };
}

/// The same of the connection that failed before.
macro_rules! of_failed {
    ($name:expr, $doc:expr, $field:ident) => {
        size($name, $doc, |seen| Some(seen.failed?.$field))
            .absent(NO_FAILED)
            .restored(|row, value| {
                let failed = row.exchange.failed.get_or_insert_default();
                set(&mut failed.$field, value)
            })
    };
}

/// The same of what was negotiated, by IANA's names.
macro_rules! of_code_point {
    ($name:expr, $doc:expr, $field:ident, $name_of:ident, $names:ident, absent $absent:expr) => {
        text($name, $doc, |c| {
            c.row.exchange.negotiated.$field.map($name_of).into()
        })
        .absent($absent)
        .restored(|row, value| {
            row.exchange.negotiated.$field = Some($names.code_point(value.text()?)?);
            Some(())
        })
    };
}

/// What TCP counts at an end.
macro_rules! tcp_columns {
    ($name:literal, $end:ident) => {
        tcp_columns!(
            $name, $end,
            "retransmits" "tcpi_total_retrans" "" retransmits,
            "lost" "tcpi_lost" "" lost,
            "rtt_ns" "tcpi_rtt" "" rtt,
            "min_rtt_ns" "tcpi_min_rtt" "" min_rtt,
            "cwnd" "tcpi_snd_cwnd" ", in segments" cwnd,
            "mss" "tcpi_snd_mss" ", in bytes" mss,
            "segments_out" "tcpi_segs_out" "" segments_out,
            "segments_in" "tcpi_segs_in" "" segments_in,
        )
    };
    ($name:literal, $end:ident, $($column:literal $of:literal $unit:literal $field:ident,)+) => {
        [$(
            whole(
                concat!($name, "_", $column),
                concat!($of, " of the ", $name, " at the end", $unit),
                |c| {
                    let TransportStats::Tcp { $end: tcp, .. } = c.row.transport else {
                        return Value::Absent;
                    };
                    tcp.map(|tcp| tcp.$field).into()
                },
            )
            .absent(NO_TCP)
            .restored(|row, value| {
                let TransportStats::Tcp { $end: tcp, .. } = &mut row.transport else {
                    return None;
                };
                set(&mut tcp.get_or_insert_default().$field, value)
            }),
        )+]
    };
}

/// What QUIC did at an end.
macro_rules! quic_columns {
    ($name:literal, $end:ident) => {
        quic_columns!(
            $name, $end,
            "datagrams" "UDP datagrams that the " " sent" datagrams,
            "udp_bytes" "payload of the UDP datagrams that the " " sent, in bytes" udp_bytes;
            "lost_packets" "packets that QUIC deemed lost of the " "'s" lost,
            "quic_rtt_ns" "smoothed round-trip time of QUIC at the " " at the end" rtt,
            "quic_cwnd_bytes" "congestion window of QUIC at the " " at the end, in bytes" cwnd_bytes,
            "probes" "datagrams that the " " sent because acknowledgements had not come in time (PTO)" probes,
            "blocked_by_window_ns" "how long the " " had something to send, and no room in its congestion window" blocked_by_window,
            "blocked_by_pacer_ns" "how long the " " had something to send, and its pacer held that back" blocked_by_pacer,
        )
    };
    (
        $name:literal, $end:ident,
        $($column:literal $doc:literal $rest:literal $field:ident),+;
        $($counted:literal $counted_doc:literal $counted_rest:literal $counted_field:ident,)+
    ) => {
        [
            $(
                quic_columns!(@ $name $column $doc $rest $end NO_QUIC, |quic| Some(quic.$field), |quic| &mut quic.$field),
            )+
            $(
                quic_columns!(
                    @ $name $counted $counted_doc $counted_rest $end NO_COUNTS,
                    |quic| quic.counted.map(|counted| counted.$counted_field),
                    |quic| &mut quic.counted.get_or_insert_default().$counted_field
                ),
            )+
        ]
    };
    (
        @ $name:literal $column:literal $doc:literal $rest:literal $end:ident $absent:expr,
        |$got:ident| $get:expr,
        |$of:ident| $place:expr
    ) => {
        whole(
            concat!($name, "_", $column),
            concat!($doc, $name, $rest),
            |c| {
                let TransportStats::Quic { $end: quic, .. } = c.row.transport else {
                    return Value::Absent;
                };
                quic.and_then(|$got| $get).into()
            },
        )
        .absent($absent)
        .restored(|row, value| {
            let TransportStats::Quic { $end: quic, .. } = &mut row.transport else {
                return None;
            };
            let $of = quic.get_or_insert_default();
            set($place, value)
        })
    };
}

/// What a server of QUIC had of its client before it knew that one's address.
macro_rules! of_credit {
    ($name:expr, $doc:expr, $field:ident) => {
        whole($name, $doc, |c| {
            let [_, server] = c.row.transport.quic();
            server.and_then(|server| server.$field).into()
        })
        .absent(NO_QUIC)
        .restored(|row, value| {
            let TransportStats::Quic { server, .. } = &mut row.transport else {
                return None;
            };
            set(&mut server.get_or_insert_default().$field, value)
        })
    };
}

/// All columns, in their order.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let of_cells =
        Parameter::columns().map(|(parameter, column)| Column::of_cell(parameter, column));
    let messages = Message::all().map(Column::of_message);
    (LINKS.iter().cloned())
        .chain(of_cells)
        .chain(OTHERS.iter().cloned())
        .chain(messages)
        .chain(REST.iter().cloned())
        .chain(tcp_columns!("client", client))
        .chain(tcp_columns!("server", server))
        .chain(ADDED.iter().cloned())
        .chain(quic_columns!("client", client))
        .chain(quic_columns!("server", server))
        .chain(CREDIT.iter().cloned())
        .collect()
});

const NOT_REACHED: &str = "it was not reached";
const NOT_SEEN: &str = "there was none";
const NOT_SO_FAR: &str = "the handshake did not get so far";
const NOT_COMPRESSED: &str = "it was not compressed";
const NO_FAILED: &str = "no connection failed before";
const NO_DNS: &str = "nothing comes through DNS";
const NO_PAGE: &str = "it was not reached, or no page was loaded";
const NO_TASKS: &str = "no page was loaded, or the engine was virtual, where nobody watches tasks";
const NO_TCP: &str = "that end had no connection of TCP";
const NO_QUIC: &str = "that end had no connection of QUIC";
/// Of columns of what an end of QUIC counts itself.
const NO_COUNTS: &str =
    "nothing was connected by QUIC at that end, or a program that people run is there";

/// The columns up to those of links.
const LINKS: &[Column] = &[
    text("study", "what was measured", |c| {
        c.batch.origin.study.into()
    }),
    text("measure", "the part of the study", |c| {
        c.batch.origin.measure.into()
    }),
    text(
        "engine",
        "what carried the bytes: `live` or `virtual`",
        |c| c.batch.origin.engine.name().into(),
    ),
    text(
        "arm",
        "what the study calls the TLS configuration, else its `tls`",
        |c| c.batch.arm.name.as_str().into(),
    ),
    text("tls", "the TLS configuration, as it was written", |c| {
        c.batch.arm.label.as_str().into()
    }),
    text("link", "what the study calls the link", |c| {
        c.cell().link_name.as_deref().into()
    })
    .absent("the link has no name"),
    whole("forward_delay_ns", "delay from client to server", |c| {
        c.forward().delay.into()
    }),
    whole("forward_jitter_ns", "jitter from client to server", |c| {
        c.forward().jitter.into()
    }),
    text(
        "forward_distribution",
        "how jitter from client to server is distributed",
        |c| c.forward().distribution.to_string().into(),
    ),
    fraction(
        "forward_loss",
        "share of packets lost from client to server, as a fraction",
        |c| c.forward().loss.mean().fraction().into(),
    ),
    text(
        "forward_loss_model",
        "how packets are lost from client to server, unless each has its own luck",
        |c| c.forward().loss.model().into(),
    )
    .absent("each packet has its own luck"),
    whole(
        "forward_rate_bps",
        "rate limit from client to server, in bits per second",
        |c| c.forward().rate.map(Rate::bits_per_second).into(),
    )
    .absent("there is no limit, or a trace is it"),
    text(
        "forward_trace",
        "the trace of the rate from client to server",
        |c| c.forward().trace.as_ref().map(Trace::to_string).into(),
    )
    .absent("it has none"),
    text(
        "forward_jitter_order",
        "whether jitter from client to server reorders packets that no rate holds up",
        |c| c.forward().order.name().into(),
    ),
    whole(
        "forward_queue_packets",
        "queue limit from client to server",
        |c| c.forward().queue.into(),
    ),
    text(
        "forward_qdisc",
        "how packets from client to server wait for the rate",
        |c| c.forward().qdisc.as_ref().map(Qdisc::to_string).into(),
    )
    .absent("they wait in the queue"),
    whole("backward_delay_ns", "delay from server to client", |c| {
        c.backward().delay.into()
    }),
    whole("backward_jitter_ns", "jitter from server to client", |c| {
        c.backward().jitter.into()
    }),
    text(
        "backward_distribution",
        "how jitter from server to client is distributed",
        |c| c.backward().distribution.to_string().into(),
    ),
    fraction(
        "backward_loss",
        "share of packets lost from server to client, as a fraction",
        |c| c.backward().loss.mean().fraction().into(),
    ),
    text(
        "backward_loss_model",
        "how packets are lost from server to client, unless each has its own luck",
        |c| c.backward().loss.model().into(),
    )
    .absent("each packet has its own luck"),
    whole(
        "backward_rate_bps",
        "rate limit from server to client, in bits per second",
        |c| c.backward().rate.map(Rate::bits_per_second).into(),
    )
    .absent("there is no limit, or a trace is it"),
    text(
        "backward_trace",
        "the trace of the rate from server to client",
        |c| c.backward().trace.as_ref().map(Trace::to_string).into(),
    )
    .absent("it has none"),
    text(
        "backward_jitter_order",
        "whether jitter from server to client reorders packets that no rate holds up",
        |c| c.backward().order.name().into(),
    ),
    whole(
        "backward_queue_packets",
        "queue limit from server to client",
        |c| c.backward().queue.into(),
    ),
    text(
        "backward_qdisc",
        "how packets from server to client wait for the rate",
        |c| c.backward().qdisc.as_ref().map(Qdisc::to_string).into(),
    )
    .absent("they wait in the queue"),
];

/// The columns between those of cells and of messages.
const OTHERS: &[Column] = &[
    text(
        "emulation",
        "what emulated the link: `netem` or `link`",
        |c| emulation(c.batch).into(),
    ),
    text(
        "cpu",
        "CPU time in a virtual clock: `none`, `calibrated`, `laptop` or `phone`",
        |c| cpu(c.batch),
    )
    .absent("it was measured in real time"),
    text(
        "cpu_costs",
        "CPU time of each step that was put back into the virtual clock",
        |c| c.batch.cpu_costs.map(|costs| costs.to_string()).into(),
    )
    .absent("none was put back"),
    text(
        "client_stack",
        "the client's TLS implementation, or the program that people run in its place",
        |c| {
            let arm = c.batch.arm;
            match arm.client {
                Client::Lastbyte => arm.client_stack.name().into(),
                program => program.name().into(),
            }
        },
    ),
    text(
        "server",
        "whose server it is: `lastbyte`, `node`, `nginx`, `go`, `caddy`, `quic-go`, `s2n-quic` or `quiche`",
        |c| c.batch.arm.server.name().into(),
    ),
    text("server_stack", "the TLS implementation of our own server", |c| {
        let arm = c.batch.arm;
        let stack = (!arm.server.is_foreign()).then(|| arm.server_stack.name());
        stack.into()
    })
    .absent("the server is not ours"),
    text(
        "record_size",
        "most bytes of a TLS record, or `auto`",
        |c| {
            let arm = c.batch.arm;
            let size = (!arm.server.is_foreign()).then(|| record_size(arm.record_size));
            size.into()
        },
    )
    .absent("the server is not ours"),
    whole("timeout_ns", "when a connection counts as failed", |c| {
        c.batch.experiment.timeout.into()
    }),
    whole("seed", "where all randomness comes from", |c| {
        c.batch.experiment.seed.0.into()
    }),
    whole("concurrency", "connections at once, at most", |c| {
        c.batch.concurrency.into()
    }),
    truth(
        "valid",
        "`false` if what was measured together with it may not be trusted",
        |c| (c.batch.validity == Validity::Valid).into(),
    ),
    of_row!(whole "index", "the connection; arms share the luck of an index", index),
    whole(
        "user",
        "whose connection it is, if it was drawn from a population",
        |c| c.draw().map(|draw| draw.user).into(),
    )
    .absent("there is no population"),
    text("class", "what a population sorts it by", |c| {
        c.draw().and_then(|draw| draw.class.as_deref()).into()
    })
    .absent("there is no population, or it has no classes"),
    text(
        "session",
        "how it was to begin: `no` in full, `ticket` resumed, `0rtt` resumed with early data",
        |c| c.batch.arm.session(&c.batch.cell, c.row.index).name().into(),
    ),
    of_row!(whole "block", "the block that it was measured in", block),
    text("outcome", "`completed`, `timed-out` or `failed`", |c| {
        outcome(&c.row.outcome)
    })
    .restored(|row, value| set(&mut row.outcome, value)),
    text("reason", "why it failed", |c| reason(&c.row.outcome))
        .absent("it did not fail")
        .restored(|row, value| {
            row.outcome = Outcome::Failed {
                cause: Cause::Unknown,
                reason: value.text()?.to_owned(),
            };
            Some(())
        }),
    text(
        "cause",
        "what failures for one cause have in common: `dns`, `page-load`, `page-resource`, `page-handshake`, or the end that failed first with what it failed of: `client-connect`, `client-closed-in-response`, `server-tls`",
        |c| cause(&c.row.outcome),
    )
    .absent("it did not fail, or an earlier version wrote the row")
    .restored(|row, value| match &mut row.outcome {
        Outcome::Failed { cause, .. } => set(cause, value),
        Outcome::Completed | Outcome::TimedOut => None,
    }),
    of_row!(whole "connect_ns", "from just before connect() to TCP established", times.connect, absent "it was not reached, or there is no TCP"),
    of_row!(whole "handshake_ns", "from just before connect() to the client's Finished written", times.handshake, absent NOT_REACHED),
    of_row!(whole "server_handshake_ns", "from just before connect() to the client's Finished verified by the server", times.server_handshake, absent NOT_REACHED),
    of_row!(whole "ttfb_ns", "from just before connect() to the first byte of the response decrypted, of its head if it has one", times.ttfb, absent "it was not reached, or there is no response"),
    of_row!(whole "ttlb_ns", "from just before connect() to the last payload byte decrypted, by the server if it answers nothing", times.ttlb, absent "it was not reached, or there is no data"),
    of_row!(whole "dns_address_ns", "from the client's queries to the server's address", dns.address, absent NO_DNS),
    of_row!(whole "dns_record_ns", "from the client's queries to the record with certificates, or to the answer that there is none", dns.record, absent NO_DNS),
    of_load!(whole "fcp_ns", "from the start of a page's navigation to the first contentful paint, in frames of the browser", fcp, absent NO_PAGE),
    of_load!(whole "lcp_ns", "from there to the largest contentful paint, in frames of the browser", lcp, absent NO_PAGE),
    of_load!(whole "load_ns", "from there to the load event", load, absent NO_PAGE),
    of_load!(whole "speed_index_ns", "how late what is seen of the page was seen, weighted by its share (Speed Index), in frames of the browser", speed_index, absent NO_PAGE),
    of_load!(whole "ttfb_computing_ns", "how much of a document's `ttfb_ns` browser and server computed, as nothing that they waited for was on the network", ttfb_computing, absent "no page was loaded, the engine was virtual, the document was redirected, it came over QUIC, or packets were not seen"),
    of_load!(whole "fcp_cpu_ns", "processor time that tasks of the page's main thread had taken by the first contentful paint, as the browser traces them", fcp_cpu, absent NO_TASKS),
    of_load!(whole "lcp_cpu_ns", "the same by the largest contentful paint", lcp_cpu, absent NO_TASKS),
    of_load!(whole "load_cpu_ns", "the same by the load event", load_cpu, absent NO_TASKS),
    of_load!(whole "programs_cpu_ns", "processor time that browser and server took from the navigation until the load event was told of, all of their processes together", programs_cpu, absent NO_TASKS),
    of_load!(whole "page_bytes", "what came over the network for the page, headers included", bytes, absent NO_PAGE),
    of_load!(whole "page_connections", "connections that the browser made for the page", connections, absent NO_PAGE),
    of_load!(whole "page_requests", "requests for the page that were answered over the network", requests, absent NO_PAGE),
    text(
        "delivery",
        "how certificates come: `full`, all from the server, `compressed`, `abridged`, `elide`, without those that \
         the client has, or a way through DNS",
        |c| c.batch.arm.delivery.name().into(),
    ),
    text(
        "delivery_outcome",
        "what became of the DNS record: `used`, `no-record`, `late`, `invalid`, `unsupported`, \
         `mismatch` or `refused-by-server`",
        |c| c.row.dns.outcome.map(DeliveryOutcome::name).into(),
    )
    .absent(NO_DNS)
    .restored(|row, value| {
        let mut all = DeliveryOutcome::ALL.into_iter();
        row.dns.outcome = Some(all.find(|outcome| Some(outcome.name()) == value.text())?);
        Some(())
    }),
    text("delivery_reason", "why the record was not used", |c| {
        c.row.dns.reason.as_deref().into()
    })
    .absent("it was used, or nothing comes through DNS")
    .restored(|row, value| {
        row.dns.reason = Some(value.text()?.to_owned());
        Some(())
    }),
    of_row!(whole "expected_certificate_bytes", "what Certificate must have with what DNS delivered left out, by the sizes of certificates", dns.certificate_bytes, absent "DNS delivered nothing"),
    text(
        "hello_digest",
        "what the hellos said of certificates from DNS: `offered` by the client alone, `echoed` or \
         `contradicted` by the server",
        |c| match c.row.exchange.negotiated.hello_digest {
            HelloDigest::None => Value::Absent,
            HelloDigest::Offered => "offered".into(),
            HelloDigest::Echoed => "echoed".into(),
            HelloDigest::Contradicted => "contradicted".into(),
        },
    )
    .absent("they said nothing")
    .restored(|row, value| {
        row.exchange.negotiated.hello_digest = match value.text()? {
            "offered" => HelloDigest::Offered,
            "echoed" => HelloDigest::Echoed,
            "contradicted" => HelloDigest::Contradicted,
            _ => return None,
        };
        Some(())
    }),
    text(
        "certificate_compression",
        "what the server's Certificate message was compressed with: `zlib`, `brotli`, `zstd` or `abridged`",
        |c| c.row.exchange.negotiated.compression.map(Compression::algorithm_name).into(),
    )
    .absent(NOT_COMPRESSED)
    .restored(|row, value| restore_algorithm(&mut row.exchange.negotiated.compression, value)),
    whole(
        "uncompressed_certificate_bytes",
        "what the server's Certificate message has uncompressed, with its 4-byte header",
        |c| uncompressed(c.row.exchange.negotiated.compression),
    )
    .absent(NOT_COMPRESSED)
    .restored(|row, value| restore_uncompressed(&mut row.exchange.negotiated.compression, value)),
    text(
        "client_certificate_compression",
        "what the client's Certificate message was compressed with",
        |c| c.row.exchange.negotiated.client_compression.map(Compression::algorithm_name).into(),
    )
    .absent(NOT_COMPRESSED)
    .restored(|row, value| restore_algorithm(&mut row.exchange.negotiated.client_compression, value)),
    whole(
        "uncompressed_client_certificate_bytes",
        "what the client's Certificate message has uncompressed, with its 4-byte header",
        |c| uncompressed(c.row.exchange.negotiated.client_compression),
    )
    .absent(NOT_COMPRESSED)
    .restored(|row, value| restore_uncompressed(&mut row.exchange.negotiated.client_compression, value)),
    text(
        "chain_signal",
        "what was said of intermediates that the client has: `tls-flags`, `trust-anchors` of which the server has \
         none, or `anchored`, of which it has",
        |c| match c.row.exchange.negotiated.signal {
            ChainSignal::None => Value::Absent,
            signal => signal.name().into(),
        },
    )
    .absent("nothing was said")
    .restored(|row, value| {
        let mut all = ChainSignal::ALL.into_iter();
        row.exchange.negotiated.signal = all.find(|signal| Some(signal.name()) == value.text())?;
        Some(())
    }),
    whole(
        "attempts",
        "connections that it took: of two, the first one failed, and times are since its connect()",
        |c| match c.row.exchange.failed {
            None => 1u32.into(),
            Some(_) => 2u32.into(),
        },
    )
    .absent("the rows are older than this column")
    .restored(|row, value| {
        if u32::from_value(&value)? > 1 {
            row.exchange.failed.get_or_insert_default();
        }
        Some(())
    }),
    of_failed!("failed_client_hello_wire_bytes", "the client's first flight on the connection that failed, with record framing", client_hello_wire_bytes),
    of_failed!("failed_server_flight_wire_bytes", "what the server wrote of its handshake on that connection, with record framing", server_flight_wire_bytes),
    of_failed!("failed_through_certificate_wire_bytes", "all of that up to the end of its Certificate, at which the client gave up", through_certificate_wire_bytes),
    of_failed!("failed_alert_wire_bytes", "the alert with which the client gave up, with record framing", alert_wire_bytes),
];

/// The columns after those of messages.
const REST: &[Column] = &[
    size(
        "client_hello_segments",
        "segments that the ClientHello took",
        |seen| seen.transport.tcp()?.client_hello_segments,
    )
    .absent(NOT_SEEN)
    .restored(|row, value| {
        let mut tcp = row.exchange.transport.tcp().unwrap_or_default();
        set(&mut tcp.client_hello_segments, value)?;
        row.exchange.transport = Transport::Tcp(tcp);
        Some(())
    }),
    of_flight!(
        "client_hello_wire_bytes",
        "the client's first flight, with record framing and early data",
        ClientHello
    ),
    of_flight!(
        "hello_retry_request_wire_bytes",
        "the flight with the HelloRetryRequest, with record framing",
        HelloRetryRequest
    ),
    of_flight!(
        "second_client_hello_wire_bytes",
        "the flight with the second ClientHello, with record framing",
        SecondClientHello
    ),
    of_flight!(
        "server_flight_wire_bytes",
        "the server's messages from ServerHello to Finished, with record framing",
        Server
    ),
    of_flight!(
        "client_finish_wire_bytes",
        "the client's last messages, with record framing",
        ClientFinish
    ),
    size(
        "ticket_wire_bytes",
        "the server's session tickets, with record framing",
        Exchange::ticket_wire_bytes,
    )
    .absent(NOT_SEEN)
    .restored(|row, value| {
        let bytes = u32::from_value(&value)?;
        row.exchange.tickets = Some(Transfer::seen(bytes as usize));
        Some(())
    }),
    size(
        "certificates",
        "certificates in the Certificate message",
        |seen| seen.negotiated.certificates,
    )
    .absent(NOT_SEEN)
    .restored(|row, value| set(&mut row.exchange.negotiated.certificates, value)),
    of_code_point!("group", "key-exchange group negotiated", group, group_name, GROUPS, absent NOT_SO_FAR),
    of_code_point!("cipher_suite", "cipher suite negotiated", cipher_suite, cipher_suite_name, CIPHER_SUITES, absent NOT_SO_FAR),
    of_code_point!("signature", "signature scheme of CertificateVerify", signature, signature_name, SIGNATURES, absent NOT_SEEN),
    of_code_point!("client_signature", "signature scheme of the client's CertificateVerify", client_signature, signature_name, SIGNATURES, absent NOT_SEEN),
    truth("resumed", "`true` if an earlier session was resumed", |c| {
        resumed(&c.row.exchange.negotiated)
    })
    .absent(NOT_SO_FAR)
    .restored(|row, value| set(&mut row.exchange.negotiated.resumption, value)),
    text(
        "early_data",
        "what the server did with early data: `accepted` or `refused`",
        |c| match c.row.exchange.negotiated.early_data {
            EarlyData::None => Value::Absent,
            EarlyData::Accepted => "accepted".into(),
            EarlyData::Refused => "refused".into(),
        },
    )
    .absent("none was sent")
    .restored(|row, value| {
        row.exchange.negotiated.early_data = match value.text()? {
            "accepted" => EarlyData::Accepted,
            "refused" => EarlyData::Refused,
            _ => return None,
        };
        Some(())
    }),
    text(
        "chain_sha256",
        "SHA-256 of the certificates as sent, the client's after a plus sign",
        |c| c.batch.chain_digest.into(),
    ),
];

/// The last columns.
const ADDED: &[Column] = &[
    of_row!(whole "link_lateness_ns", "latest delivery of a packet, behind the link's time for it", lateness.link),
    of_row!(whole "endpoint_wait_ns", "waiting for other connections' work, summed", lateness.endpoint),
    text("transport", "what carried it: `tcp` or `quic`", |c| {
        transport(c.row.exchange.transport).name().into()
    })
    .restored(|row, value| {
        let name = TransportName::from_str(value.text()?).ok()?;
        if name != transport(row.exchange.transport) {
            (row.exchange.transport, row.transport) = match name {
                TransportName::Tcp => Default::default(),
                TransportName::Quic => (
                    Transport::Quic(Quic::default()),
                    TransportStats::Quic {
                        client: None,
                        server: None,
                    },
                ),
            };
        }
        Some(())
    }),
    size(
        "client_hello_datagrams",
        "datagrams that the ClientHello took",
        |seen| seen.transport.quic()?.client_hello_datagrams,
    )
    .absent(NO_QUIC)
    .restored(|row, value| {
        let mut quic = row.exchange.transport.quic()?;
        set(&mut quic.client_hello_datagrams, value)?;
        row.exchange.transport = Transport::Quic(quic);
        Some(())
    }),
    text(
        "address_validation",
        "how the server knew the client's address before the handshake: by `retry` or by a `token` of a connection before",
        |c| {
            let quic = c.row.exchange.transport.quic();
            let known = quic.and_then(|quic| quic.address_validation);
            known.map_or(Value::Absent, |known| known.name().into())
        },
    )
    .absent("it did not, or nothing is carried by QUIC")
    .restored(|row, value| {
        let mut quic = row.exchange.transport.quic()?;
        quic.address_validation = Some(AddressValidation::from_str(value.text()?).ok()?);
        row.exchange.transport = Transport::Quic(quic);
        Some(())
    }),
    size(
        "token_bytes",
        "the token that the client showed, of a Retry packet or of a connection before",
        |seen| seen.transport.quic()?.token_bytes,
    )
    .absent("it showed none, or nothing is carried by QUIC")
    .restored(|row, value| {
        let mut quic = row.exchange.transport.quic()?;
        set(&mut quic.token_bytes, value)?;
        row.exchange.transport = Transport::Quic(quic);
        Some(())
    }),
];

/// What a server may send before it knows its client's address (RFC 9000, 8.1).
const CREDIT: &[Column] = &[
    of_credit!(
        "unvalidated_bytes",
        "payload of the UDP datagrams that the server sent before it knew the client's address, in bytes",
        unvalidated_bytes
    ),
    of_credit!(
        "credited_bytes",
        "payload of the client's UDP datagrams that the server had by then: it may send three times as much",
        credited_bytes
    ),
    of_credit!(
        "blocked_by_credit_ns",
        "how long the server had no credit left, and sent at once when it got some",
        blocked_by_credit
    ),
];

const fn text(
    name: &'static str,
    doc: &'static str,
    value: for<'a> fn(&'a Connection<'a>) -> Value<'a>,
) -> Column {
    Column::new(name, doc, Kind::Text, value)
}

const fn whole(
    name: &'static str,
    doc: &'static str,
    value: for<'a> fn(&'a Connection<'a>) -> Value<'a>,
) -> Column {
    Column::new(name, doc, Kind::Whole, value)
}

/// One that summaries have, too.
const fn size(name: &'static str, doc: &'static str, of: fn(&Exchange) -> Option<u32>) -> Column {
    let value = OfConnection {
        source: Source::Size(of),
        restore: Restore::Never,
    };
    Column::required(name, doc, Kind::Whole, value)
}

const fn fraction(
    name: &'static str,
    doc: &'static str,
    value: for<'a> fn(&'a Connection<'a>) -> Value<'a>,
) -> Column {
    Column::new(name, doc, Kind::Fraction, value)
}

const fn truth(
    name: &'static str,
    doc: &'static str,
    value: for<'a> fn(&'a Connection<'a>) -> Value<'a>,
) -> Column {
    Column::new(name, doc, Kind::Truth, value)
}

impl Column {
    const fn new(
        name: &'static str,
        doc: &'static str,
        kind: Kind,
        value: for<'a> fn(&'a Connection<'a>) -> Value<'a>,
    ) -> Column {
        let value = OfConnection {
            source: Source::Connection(value),
            restore: Restore::Never,
        };
        Column::required(name, doc, kind, value)
    }

    fn of_cell(parameter: Parameter, column: &ParameterColumn) -> Column {
        let kind = match parameter.value(&Cell::default()) {
            Some(ParameterValue::Text(_)) | None => Kind::Text,
            Some(ParameterValue::Loss(_)) => Kind::Fraction,
            Some(_) => Kind::Whole,
        };
        let value = OfConnection {
            source: Source::Cell(parameter),
            restore: Restore::Never,
        };
        Column::required(column.name, column.doc, kind, value)
    }

    fn of_message(message: Message) -> Column {
        Column {
            name: message.column(),
            doc: message.doc(),
            kind: Kind::Whole,
            presence: Presence::Optional,
            absent: NOT_SEEN,
            value: OfConnection {
                source: Source::Message(message),
                restore: Restore::Message(message),
            },
        }
    }

    /// Whether a row has it back from a file.
    pub(crate) fn is_restored(&self) -> bool {
        !matches!(self.value.restore, Restore::Never)
    }

    /// Whether all rows of a batch have the same field: it is not the row's own, and nothing is drawn.
    pub(super) fn is_common(&self, batch: &Batch<'_>) -> bool {
        !self.is_restored() && batch.cell.population.is_none()
    }

    /// Gives a row what a field says; `None` when it can't say that.
    pub(crate) fn give_back(&self, row: &mut Row, value: Value<'_>) -> Option<()> {
        match self.value.restore {
            Restore::Never => Some(()),
            Restore::Row(restore) => restore(row, value),
            Restore::Message(message) => {
                let bytes = u32::from_value(&value)?;
                row.exchange.handshake.messages.set(message, Some(bytes));
                (bytes <= MOST_MESSAGE).then_some(())
            }
        }
    }

    /// What it says of a connection.
    pub(super) fn value<'a>(&self, connection: &'a Connection<'a>) -> Value<'a> {
        match self.value.source {
            Source::Connection(value) => value(connection),
            Source::Message(message) => {
                let messages = &connection.row.exchange.handshake.messages;
                messages.get(message).into()
            }
            Source::Size(of) => of(&connection.row.exchange).into(),
            Source::Cell(parameter) => match parameter.value(connection.cell()) {
                None => Value::Absent,
                Some(ParameterValue::Text(text)) => text.into(),
                Some(ParameterValue::Count(count)) => count.into(),
                Some(ParameterValue::Bytes(bytes)) => bytes.0.into(),
                Some(ParameterValue::Time(time)) => time.into(),
                Some(ParameterValue::Rate(rate)) => rate.map(Rate::bits_per_second).into(),
                Some(ParameterValue::Loss(loss)) => loss.mean().fraction().into(),
            },
        }
    }

    /// What it says of an exchange, to add it up: nothing seen is 0. `None` where it is no size of one.
    pub(crate) fn size(&self, exchange: &Exchange) -> Option<u32> {
        match self.value.source {
            Source::Message(message) => Some(exchange.bytes(message)),
            Source::Size(of) => Some(of(exchange).unwrap_or(0)),
            Source::Connection(_) | Source::Cell(_) => None,
        }
    }

    const fn restored(mut self, restore: fn(&mut Row, Value<'_>) -> Option<()>) -> Column {
        self.value.restore = Restore::Row(restore);
        self
    }
}

impl<V: Copy> Column<V> {
    /// One of which there is always something to tell.
    pub(super) const fn required(
        name: &'static str,
        doc: &'static str,
        kind: Kind,
        value: V,
    ) -> Column<V> {
        Column {
            name,
            doc,
            kind,
            presence: Presence::Required,
            absent: "",
            value,
        }
    }

    /// The same, of which there is not always something to tell.
    pub(super) const fn absent(self, when: &'static str) -> Column<V> {
        Column {
            presence: Presence::Optional,
            absent: when,
            ..self
        }
    }
}

impl<'a> Connection<'a> {
    /// As it was for this connection.
    fn cell(&'a self) -> &'a Cell {
        &self.cell
    }

    fn forward(&'a self) -> &'a Direction {
        &self.cell.link.forward
    }

    fn backward(&'a self) -> &'a Direction {
        &self.cell.link.backward
    }

    /// What it drew, if it is of a population.
    fn draw(&'a self) -> Option<&'a Draw> {
        self.draw.as_ref()
    }
}

fn transport(transport: Transport) -> TransportName {
    match transport {
        Transport::Tcp(_) => TransportName::Tcp,
        Transport::Quic(_) => TransportName::Quic,
    }
}

fn emulation(batch: &Batch<'_>) -> &'static str {
    let experiment = batch.experiment;
    match batch.origin.engine {
        EngineName::Virtual if !is_modelled(batch.arm, experiment.quic_in) => {
            experiment.emulation.name()
        }
        EngineName::Virtual | EngineName::Live => Emulation::Link.name(),
    }
}

fn cpu(batch: &Batch<'_>) -> Value<'static> {
    match (batch.origin.engine, batch.experiment.cpu) {
        (EngineName::Live, _) => Value::Absent,
        // What is told beside times is in none of them.
        (_, cpu) => cpu.in_clock_of(batch.arm.server).name().into(),
    }
}

fn uncompressed(compression: Option<Compression>) -> Value<'static> {
    let bytes = compression.map(|compression| compression.uncompressed_bytes);
    bytes.into()
}

fn restore_algorithm(compression: &mut Option<Compression>, value: Value<'_>) -> Option<()> {
    let text = value.text()?;
    let known = text.parse().map(CertificateCompression::code_point);
    let algorithm = match text {
        Compression::ABRIDGED => ABRIDGED,
        _ => known.or_else(|_| text.parse()).ok()?,
    };
    compression.get_or_insert_default().algorithm = algorithm;
    Some(())
}

fn restore_uncompressed(compression: &mut Option<Compression>, value: Value<'_>) -> Option<()> {
    set(
        &mut compression.get_or_insert_default().uncompressed_bytes,
        value,
    )
}

fn record_size(size: RecordSize) -> Value<'static> {
    match size {
        RecordSize::FirstSegment => "auto".into(),
        RecordSize::Fixed(bytes) => bytes.to_string().into(),
    }
}

fn outcome(outcome: &Outcome) -> Value<'static> {
    match outcome {
        Outcome::Completed => "completed".into(),
        Outcome::TimedOut => "timed-out".into(),
        Outcome::Failed { .. } => "failed".into(),
    }
}

fn reason(outcome: &Outcome) -> Value<'_> {
    match outcome {
        Outcome::Failed { reason, .. } => reason.as_str().into(),
        Outcome::Completed | Outcome::TimedOut => Value::Absent,
    }
}

fn cause(outcome: &Outcome) -> Value<'static> {
    match outcome {
        Outcome::Failed { cause, .. } => {
            let known = (*cause != Cause::Unknown).then(|| cause.to_string());
            known.into()
        }
        Outcome::Completed | Outcome::TimedOut => Value::Absent,
    }
}

/// Of a handshake that did not get so far, nothing is known.
fn resumed(negotiated: &Negotiated) -> Value<'static> {
    match (negotiated.group, negotiated.resumption) {
        (_, Resumption::Resumed) => true.into(),
        (Some(_), Resumption::Full) => false.into(),
        (None, Resumption::Full) => Value::Absent,
    }
}

/// A flight on the wire, whose messages stand in columns before it.
fn see(row: &mut Row, flight: HandshakeFlight, value: Value<'_>) -> Option<()> {
    let bytes = u32::from_value(&value)?;
    row.exchange.handshake.see(flight, Some(bytes));
    Some(())
}

fn set<T: FromValue>(field: &mut T, value: Value<'_>) -> Option<()> {
    *field = T::from_value(&value)?;
    Some(())
}

/// What a field of a row can be had back from.
trait FromValue: Sized {
    fn from_value(value: &Value<'_>) -> Option<Self>;
}

impl Value<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

// What is more than any connection has is not taken from a file: sums of the rest are numbers still.

/// Bytes of a handshake message with its header, whose length has three bytes (RFC 8446, section 4).
const MOST_MESSAGE: u32 = (1 << 24) + 3;
/// Bytes, segments or connections.
const MOST: u32 = 1 << 28;
/// Bytes of all transfers of a connection: each has 1 GiB at most, of at most 1000.
const MOST_TRANSFERRED: u64 = 1 << 42;
/// 104 days: what JSON's numbers tell to the nanosecond.
pub(crate) const LONGEST: Duration = Duration::from_nanos(1 << 53);

impl FromValue for u32 {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Whole(number) => (*number).try_into().ok().filter(|number| *number <= MOST),
            _ => None,
        }
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Whole(number) => Some(*number).filter(|number| *number <= MOST_TRANSFERRED),
            _ => None,
        }
    }
}

impl FromValue for Duration {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Whole(nanos) => {
                Some(Duration::from_nanos(*nanos)).filter(|time| *time <= LONGEST)
            }
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        T::from_value(value).map(Some)
    }
}

impl FromValue for Resumption {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Truth(true) => Some(Resumption::Resumed),
            Value::Truth(false) => Some(Resumption::Full),
            _ => None,
        }
    }
}

impl FromValue for Outcome {
    /// Of one that failed, cause and reason are in columns of their own.
    fn from_value(value: &Value<'_>) -> Option<Self> {
        match value.text()? {
            "completed" => Some(Outcome::Completed),
            "timed-out" => Some(Outcome::TimedOut),
            "failed" => Some(Outcome::Failed {
                cause: Cause::Unknown,
                reason: String::new(),
            }),
            _ => None,
        }
    }
}

impl FromValue for Cause {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        let name = value.text()?;
        Cause::all().find(|cause| cause.to_string() == name)
    }
}

/// IANA's names, to find code points by.
struct CodePoints(LazyLock<HashMap<&'static str, u16>>);

static GROUPS: CodePoints = CodePoints::new(|| all(names::group));
static CIPHER_SUITES: CodePoints = CodePoints::new(|| all(names::cipher_suite));
static SIGNATURES: CodePoints = CodePoints::new(|| all(names::signature_scheme));

impl CodePoints {
    const fn new(all: fn() -> HashMap<&'static str, u16>) -> CodePoints {
        CodePoints(LazyLock::new(all))
    }

    /// One that has no name was written as a number.
    fn code_point(&self, name: &str) -> Option<u16> {
        match name.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16).ok(),
            None => self.0.get(name).copied(),
        }
    }
}

fn all(name: fn(u16) -> Option<&'static str>) -> HashMap<&'static str, u16> {
    (0..=u16::MAX)
        .filter_map(|code_point| Some((name(code_point)?, code_point)))
        .collect()
}
