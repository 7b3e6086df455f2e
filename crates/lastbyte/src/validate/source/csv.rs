//! Rows that `lastbyte compare -o rows.csv` wrote.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use csv::Reader;
use lastbyte_link::{Direction, Distribution, Link, Loss, Probability, Rate};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::{Computing, Key, Nature, Results, SampleTimes, SourceError};
use crate::results::{CpuCosts, EarlyData, Validity, Wire};
use crate::study::{Cell, CpuTime, Parameter, ParameterValue, RecordSize};

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
    let mut file = Reader::from_path(path).map_err(unreadable)?;
    let columns = file.headers().map_err(unreadable)?.clone();
    for record in file.records() {
        let record = record.map_err(unreadable)?;
        let row: Row = record.deserialize(Some(&columns)).map_err(unreadable)?;
        let parameters = columns.iter().zip(record.iter()).collect();
        let line = record.position().map_or(0, csv::Position::line);
        let key = row.key(&parameters);
        let key = key.map_err(|problem| SourceError::Unreadable {
            path: path.to_owned(),
            problem: format!("line {line}: {problem}"),
        })?;
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
    #[serde(default, deserialize_with = "parsed_if_any")]
    cpu: Option<CpuTime>,
    #[serde(default, deserialize_with = "parsed_if_any")]
    cpu_costs: Option<CpuCosts>,
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
}

impl Row {
    /// What is no column is as the preset has it.
    fn key(&self, columns: &HashMap<&str, &str>) -> Result<Key, String> {
        let mut cell = Cell {
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
                    loss: (self.backward_loss_model).unwrap_or(Loss::Random(self.backward_loss)),
                    rate: self.backward_rate_bps.and_then(Rate::from_bits_per_second),
                    queue: self.backward_queue_packets,
                },
            },
            ..Cell::default()
        };
        for (parameter, column) in Parameter::columns() {
            let Some(field) = columns.get(column.name) else {
                continue;
            };
            let unit = match parameter.value(&cell) {
                Some(ParameterValue::Time(_)) => Some("ns"),
                Some(ParameterValue::Bytes(_)) => Some("B"),
                _ => None,
            };
            let text = match (unit, field.parse::<u64>()) {
                (Some(unit), Ok(number)) => format!("{number}{unit}"),
                (Some(_), Err(_)) => {
                    return Err(format!("{}: {field:?} is no whole number", column.name));
                }
                (None, _) => (*field).to_owned(),
            };
            let set = parameter.set(&mut cell, &text, Path::new(""));
            set.map_err(|problem| format!("{}: {problem}", column.name))?;
        }
        Ok(Key::new(&self.measure, &self.arm, cell))
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
