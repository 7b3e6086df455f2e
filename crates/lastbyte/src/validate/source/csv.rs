//! Rows that `lastbyte compare -o rows.csv` wrote.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use csv::Reader;
use lastbyte_link::{Bytes, Direction, Distribution, Link, Loss, Probability, Rate};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::{Computing, Key, Nature, Results, SampleTimes, SourceError};
use crate::results::{CpuCosts, EarlyData, Validity, Wire};
use crate::study::{Cell, Congestion, CpuTime, Gso, Hosts, Preset, RecordSize, Setting};

/// Reads the samples of a file, in the order in which they begin.
pub(super) fn read(path: &Path) -> Result<Results, SourceError> {
    let unreadable = |problem: csv::Error| SourceError::Unreadable {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    let mut samples: Vec<SampleTimes> = Vec::new();
    let mut engine = String::new();
    // Where the sample of the line before is: nearly always that of the next line too.
    let mut latest = 0;
    for row in Reader::from_path(path).map_err(unreadable)?.deserialize() {
        let row: Row = row.map_err(unreadable)?;
        let key = row.key();
        engine.clone_from(&row.engine);
        if samples.get(latest).is_none_or(|known| known.key != key) {
            let known = samples.iter().position(|known| known.key == key);
            latest = known.unwrap_or(samples.len());
        }
        if latest == samples.len() {
            samples.push(row.sample(key));
        }
        if let Some(sample) = samples.get_mut(latest) {
            sample.add(row.times(), &row.wire());
        }
    }
    Ok(Results {
        name: path.display().to_string(),
        engine,
        samples,
    })
}

/// What is needed of a line. Older files lack some columns, which then are as usual.
#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    measure: String,
    #[serde(default = "live")]
    engine: String,
    arm: String,
    forward_delay_ns: u64,
    forward_jitter_ns: u64,
    #[serde(deserialize_with = "parsed")]
    forward_distribution: Distribution,
    #[serde(deserialize_with = "fraction")]
    forward_loss: Probability,
    #[serde(default, deserialize_with = "parsed_if_any")]
    forward_loss_model: Option<Loss>,
    #[serde(deserialize_with = "if_any")]
    forward_rate_bps: Option<u64>,
    forward_queue_packets: u32,
    backward_delay_ns: u64,
    backward_jitter_ns: u64,
    #[serde(deserialize_with = "parsed")]
    backward_distribution: Distribution,
    #[serde(deserialize_with = "fraction")]
    backward_loss: Probability,
    #[serde(default, deserialize_with = "parsed_if_any")]
    backward_loss_model: Option<Loss>,
    #[serde(deserialize_with = "if_any")]
    backward_rate_bps: Option<u64>,
    backward_queue_packets: u32,
    #[serde(default, deserialize_with = "parsed")]
    gso: Gso,
    initcwnd: u32,
    client_initcwnd: u32,
    #[serde(deserialize_with = "parsed")]
    congestion: Congestion,
    #[serde(default, deserialize_with = "parsed")]
    preset: Preset,
    #[serde(default, deserialize_with = "parsed_if_any")]
    cpu: Option<CpuTime>,
    #[serde(default, deserialize_with = "parsed_if_any")]
    cpu_costs: Option<CpuCosts>,
    data_bytes: u64,
    #[serde(default)]
    upload_bytes: u64,
    #[serde(default = "one")]
    requests: u32,
    #[serde(default)]
    think_ns: u64,
    #[serde(deserialize_with = "record_size")]
    record_size: RecordSize,
    valid: bool,
    outcome: String,
    #[serde(deserialize_with = "if_any")]
    connect_ns: Option<u64>,
    #[serde(deserialize_with = "if_any")]
    handshake_ns: Option<u64>,
    #[serde(deserialize_with = "if_any")]
    ttfb_ns: Option<u64>,
    #[serde(deserialize_with = "if_any")]
    ttlb_ns: Option<u64>,
    #[serde(deserialize_with = "if_any")]
    client_hello_wire_bytes: Option<u32>,
    #[serde(deserialize_with = "if_any")]
    server_flight_wire_bytes: Option<u32>,
    #[serde(deserialize_with = "if_any")]
    client_finish_wire_bytes: Option<u32>,
    #[serde(default)]
    hello_retry_request_wire_bytes: Option<u32>,
    #[serde(default)]
    second_client_hello_wire_bytes: Option<u32>,
    #[serde(default)]
    ticket_wire_bytes: Option<u32>,
    #[serde(default)]
    early_data: Option<String>,
    chain_sha256: String,
    mtu: Option<String>,
    timestamps: Option<String>,
    buffers: Option<String>,
    tso: Option<String>,
    writes: Option<String>,
}

impl Row {
    /// Where a column is absent, as the preset has it.
    fn hosts(&self) -> Hosts {
        let columns = [
            ("mtu", &self.mtu),
            ("timestamps", &self.timestamps),
            ("buffers", &self.buffers),
            ("tso", &self.tso),
            ("writes", &self.writes),
        ];
        let mut hosts = Hosts::of(self.preset);
        for (name, text) in columns {
            if let (Some(setting), Some(text)) = (Setting::find(name), text) {
                // What is not possible was not measured.
                let _ = (setting.set)(&mut hosts, text);
            }
        }
        hosts
    }

    fn key(&self) -> Key {
        Key::new(
            &self.measure,
            &self.arm,
            Cell {
                link: Link {
                    forward: Direction {
                        delay: Duration::from_nanos(self.forward_delay_ns),
                        jitter: Duration::from_nanos(self.forward_jitter_ns),
                        distribution: self.forward_distribution.clone(),
                        loss: (self.forward_loss_model).unwrap_or(Loss::Random(self.forward_loss)),
                        rate: self.forward_rate_bps.and_then(Rate::from_bits_per_second),
                        queue: self.forward_queue_packets,
                    },
                    backward: Direction {
                        delay: Duration::from_nanos(self.backward_delay_ns),
                        jitter: Duration::from_nanos(self.backward_jitter_ns),
                        distribution: self.backward_distribution.clone(),
                        loss: (self.backward_loss_model)
                            .unwrap_or(Loss::Random(self.backward_loss)),
                        rate: self.backward_rate_bps.and_then(Rate::from_bits_per_second),
                        queue: self.backward_queue_packets,
                    },
                },
                link_name: None,
                initcwnd: self.initcwnd,
                client_initcwnd: self.client_initcwnd,
                congestion: self.congestion,
                data: Bytes(self.data_bytes),
                upload: Bytes(self.upload_bytes),
                requests: self.requests,
                think: Duration::from_nanos(self.think_ns),
                gso: self.gso,
                preset: self.preset,
                hosts: self.hosts(),
            },
        )
    }

    /// The sample that the row belongs to, without connections.
    fn sample(&self, key: Key) -> SampleTimes {
        SampleTimes {
            key,
            nature: Nature::Measured,
            computing: Computing::of(&self.engine, self.cpu.unwrap_or_default()),
            cpu_costs: self.cpu_costs,
            times: Vec::new(),
            validity: if self.valid {
                Validity::Valid
            } else {
                Validity::Invalid("its rows say so".to_owned())
            },
            wire: None,
            record_size: self.record_size,
            chain_digest: self.chain_sha256.clone(),
        }
    }

    fn times(&self) -> [Option<Duration>; 4] {
        let reached = [
            self.connect_ns,
            self.handshake_ns,
            self.ttfb_ns,
            self.ttlb_ns,
        ];
        match &*self.outcome {
            "completed" => reached.map(|nanos| nanos.map(Duration::from_nanos)),
            _ => [None; 4],
        }
    }

    fn wire(&self) -> Wire {
        Wire {
            client_hello_wire_bytes: self.client_hello_wire_bytes.unwrap_or(0),
            server_flight_wire_bytes: self.server_flight_wire_bytes.unwrap_or(0),
            client_finish_wire_bytes: self.client_finish_wire_bytes.unwrap_or(0),
            hello_retry_request_wire_bytes: self.hello_retry_request_wire_bytes.unwrap_or(0),
            second_client_hello_wire_bytes: self.second_client_hello_wire_bytes.unwrap_or(0),
            ticket_wire_bytes: self.ticket_wire_bytes.unwrap_or(0),
            early_data: match self.early_data.as_deref() {
                Some("accepted") => EarlyData::Accepted,
                Some(_) => EarlyData::Refused,
                None => EarlyData::None,
            },
            ..Wire::default()
        }
    }
}

/// Once, there was no other number of requests.
fn one() -> u32 {
    1
}

/// Once, there was no other engine.
fn live() -> String {
    "live".to_owned()
}

/// A field that may be empty, of a column that must be there.
fn if_any<'de, D, T>(field: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(field)
}

fn parsed<'de, D, T>(field: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(field)?.parse().map_err(Error::custom)
}

fn parsed_if_any<'de, D, T>(field: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = Option::<String>::deserialize(field)?;
    let parsed = text.map(|text| text.parse().map_err(Error::custom));
    parsed.transpose()
}

fn fraction<'de, D: Deserializer<'de>>(field: D) -> Result<Probability, D::Error> {
    let fraction = f64::deserialize(field)?;
    Probability::from_fraction(fraction)
        .ok_or_else(|| Error::custom(format!("{fraction} is not from 0 to 1")))
}

fn record_size<'de, D: Deserializer<'de>>(field: D) -> Result<RecordSize, D::Error> {
    let text = String::deserialize(field)?;
    match &*text {
        "auto" => Ok(RecordSize::FirstSegment),
        bytes => bytes.parse().map(RecordSize::Fixed).map_err(Error::custom),
    }
}
