//! The document.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ByServer, ENOUGH, largest};
use crate::cdn::Class;
use crate::handshake::Carrier;
use crate::handshake::Handshake;
use crate::share::Share;
use crate::sketch::Sketch;
use crate::survey::{Lines, Survey};
use crate::tally::Unusable;
use crate::version::Version;

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../schemas/zeek-1.schema.json");

/// The whole survey as one JSON document, as [`SCHEMA`] has it, with so many servers by name if names were kept.
pub fn json(survey: &Survey, servers: usize) -> String {
    // Serialising plain structures to memory cannot fail.
    serde_json::to_string_pretty(&Document::new(survey, servers)).unwrap_or_default() + "\n"
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    warnings: Vec<String>,
    files: FilesDocument<'a>,
    ssl: SslDocument,
    conn: ConnDocument,
    lastbyte: LinesDocument,
    unreadable: UnreadableDocument<'a>,
    join_rows: u32,
    joined: u64,
    expired: u64,
    unmatched: u64,
    tls: BTreeMap<&'static str, VersionDocument>,
    quic: QuicDocument,
    over_quic: OverQuicDocument,
    classes: BTreeMap<&'static str, ClassDocument>,
    servers: ServersDocument<'a>,
    bytes_per_connection: BTreeMap<&'static str, BTreeMap<&'static str, Percentiles>>,
    bytes_sent_per_connection: BTreeMap<&'static str, BTreeMap<&'static str, Percentiles>>,
    duration_us: BTreeMap<&'static str, BTreeMap<&'static str, Percentiles>>,
    unusable: UnusableDocument,
    tcp_rtt_us: Percentiles,
    server_handshake_bytes: BTreeMap<&'static str, Percentiles>,
    percentile_error: f64,
    from: Option<String>,
    to: Option<String>,
}

#[derive(Serialize)]
struct FilesDocument<'a> {
    read: u64,
    used: u64,
    problems: Vec<&'a String>,
}

#[derive(Serialize)]
struct LinesDocument {
    rows: u64,
    unreadable: u64,
    repeats: u64,
}

#[derive(Serialize)]
struct SslDocument {
    #[serde(flatten)]
    lines: LinesDocument,
    drafts: u64,
    without_time: u64,
}

#[derive(Serialize)]
struct ConnDocument {
    #[serde(flatten)]
    lines: LinesDocument,
    tls_without_ssl: u64,
}

#[derive(Serialize)]
struct UnreadableDocument<'a> {
    lines: u64,
    of_unknown_kind: u64,
    examples: &'a [String],
}

#[derive(Serialize)]
struct VersionDocument {
    rows: u64,
    established: u64,
    #[serde(flatten)]
    resumed: ShareDocument,
}

#[derive(Serialize)]
struct QuicDocument {
    rows: u64,
    #[serde(flatten)]
    resumed: ShareDocument,
    without_server_hello: u64,
    told_by_history: u64,
}

#[derive(Serialize)]
struct ClassDocument {
    tls: HandshakesDocument,
    quic: HandshakesDocument,
    over_quic: OverQuicDocument,
}

#[derive(Serialize)]
struct OverQuicDocument {
    handshakes: u64,
    quic: u64,
    share: Option<f64>,
    interval: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct HandshakesDocument {
    handshakes: u64,
    #[serde(flatten)]
    resumed: ShareDocument,
}

#[derive(Serialize)]
struct ShareDocument {
    resumed: u64,
    share: Option<f64>,
    interval: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct ServersDocument<'a> {
    told_apart: u64,
    rows_beyond: u64,
    with_enough_handshakes: u64,
    enough: u64,
    share_p25: Option<f64>,
    share_p50: Option<f64>,
    share_p75: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    largest: Vec<ServerDocument<'a>>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    name: &'a str,
    #[serde(flatten)]
    handshakes: HandshakesDocument,
    over_quic: OverQuicDocument,
}

#[derive(Serialize)]
struct Percentiles {
    connections: u64,
    p5: Option<u64>,
    p25: Option<u64>,
    p50: Option<u64>,
    p75: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
}

#[derive(Serialize)]
struct UnusableDocument {
    state: u64,
    missed_bytes: u64,
    no_bytes: u64,
}

impl<'a> Document<'a> {
    fn new(survey: &'a Survey, servers: usize) -> Self {
        let tally = &survey.tally;
        let versions = Version::ALL.into_iter().map(|version| {
            let counts = tally.of_version(version);
            let document = VersionDocument {
                rows: counts.rows,
                established: counts.resumed.of,
                resumed: counts.resumed.into(),
            };
            (version.name(), document)
        });
        let [from, to] = match tally.joint.period() {
            Some(period) => period.map(Some),
            None => [None, None],
        };
        Document {
            schema: "lastbyte.zeek/1",
            warnings: survey.warnings(),
            files: FilesDocument {
                read: survey.files[0],
                used: survey.files[1],
                problems: survey.broken.iter().chain(&survey.told).collect(),
            },
            ssl: SslDocument {
                lines: survey.ssl.into(),
                drafts: survey.drafts,
                without_time: survey.without_time,
            },
            conn: ConnDocument {
                lines: survey.conn.into(),
                tls_without_ssl: tally.conn_alone,
            },
            lastbyte: survey.ours.into(),
            unreadable: UnreadableDocument {
                lines: survey.all_unreadable(),
                of_unknown_kind: survey.unreadable,
                examples: &survey.examples,
            },
            join_rows: survey.options.join_rows,
            joined: tally.joined,
            expired: tally.expired,
            unmatched: tally.unmatched,
            tls: versions.filter(|(_, counts)| counts.rows > 0).collect(),
            quic: QuicDocument {
                rows: tally.quic.resumed.of,
                resumed: tally.quic.resumed.into(),
                without_server_hello: tally.quic.without_server_hello,
                told_by_history: tally.quic.told_by_history,
            },
            over_quic: tally.all_over_quic().into(),
            classes: of_classes(|class| ClassDocument {
                tls: tally.of_class(class, Carrier::Tls).into(),
                quic: tally.of_class(class, Carrier::Quic).into(),
                over_quic: tally.over_quic(class).into(),
            }),
            servers: ServersDocument::new(survey, servers),
            bytes_per_connection: of_kinds(|class, kind| &tally.amounts(class, kind).received),
            bytes_sent_per_connection: of_kinds(|class, kind| &tally.amounts(class, kind).sent),
            duration_us: of_kinds(|class, kind| &tally.amounts(class, kind).duration),
            unusable: tally.unusable.into(),
            tcp_rtt_us: (&tally.rtt).into(),
            server_handshake_bytes: of_handshakes(|kind| tally.handshake_bytes(kind)),
            percentile_error: Sketch::ERROR,
            from,
            to,
        }
    }
}

fn of_classes<T>(document: impl Fn(Class) -> T) -> BTreeMap<&'static str, T> {
    let classes = Class::ALL.into_iter();
    classes
        .map(|class| (class.name(), document(class)))
        .collect()
}

fn of_handshakes<'a>(
    sketch: impl Fn(Handshake) -> &'a Sketch,
) -> BTreeMap<&'static str, Percentiles> {
    let kinds = Handshake::ALL.into_iter();
    kinds
        .map(|kind| (kind.name(), sketch(kind).into()))
        .collect()
}

fn of_kinds<'a>(
    sketch: impl Fn(Class, Handshake) -> &'a Sketch,
) -> BTreeMap<&'static str, BTreeMap<&'static str, Percentiles>> {
    of_classes(|class| of_handshakes(|kind| sketch(class, kind)))
}

impl<'a> ServersDocument<'a> {
    fn new(survey: &'a Survey, count: usize) -> Self {
        let servers = ByServer::new(survey);
        let largest = largest(survey, count).into_iter();
        ServersDocument {
            told_apart: servers.known,
            rows_beyond: survey.servers.beyond,
            with_enough_handshakes: servers.shares.len() as u64,
            enough: ENOUGH,
            share_p25: servers.share(25),
            share_p50: servers.share(50),
            share_p75: servers.share(75),
            largest: largest
                .map(|server| ServerDocument {
                    name: server.name,
                    handshakes: server.resumed.into(),
                    over_quic: server.over_quic.into(),
                })
                .collect(),
        }
    }
}

impl From<Share> for ShareDocument {
    fn from(share: Share) -> Self {
        ShareDocument {
            resumed: share.part,
            share: share.value(),
            interval: share.interval(),
        }
    }
}

impl From<Share> for HandshakesDocument {
    fn from(share: Share) -> Self {
        HandshakesDocument {
            handshakes: share.of,
            resumed: share.into(),
        }
    }
}

impl From<Share> for OverQuicDocument {
    fn from(share: Share) -> Self {
        OverQuicDocument {
            handshakes: share.of,
            quic: share.part,
            share: share.value(),
            interval: share.interval(),
        }
    }
}

impl From<Lines> for LinesDocument {
    fn from(lines: Lines) -> Self {
        LinesDocument {
            rows: lines.rows,
            unreadable: lines.unreadable,
            repeats: lines.repeats,
        }
    }
}

impl From<Unusable> for UnusableDocument {
    fn from(counts: Unusable) -> Self {
        UnusableDocument {
            state: counts.state,
            missed_bytes: counts.missed_bytes,
            no_bytes: counts.no_bytes,
        }
    }
}

impl From<&Sketch> for Percentiles {
    fn from(sketch: &Sketch) -> Self {
        Percentiles {
            connections: sketch.count(),
            p5: sketch.percentile(5),
            p25: sketch.percentile(25),
            p50: sketch.percentile(50),
            p75: sketch.percentile(75),
            p95: sketch.percentile(95),
            p99: sketch.percentile(99),
        }
    }
}
