//! The profile: an empirical table of connections, which a study's population draws from.

use std::fmt::{self, Write};
use std::num::NonZeroI64;

use crate::cdn::Class;
use crate::handshake::Handshake;
use crate::share::Share;
use crate::time::{Micros, rfc3339};

/// Fewer connections than these say nothing of a population: of 300, the interval of a share is up
/// to 11 percentage points wide.
pub const FEWEST: u64 = 300;

/// More rows make wider bins of bytes.
const MOST_ROWS: usize = 4096;
/// Bins of bytes in an octave, of which some make a row of the profile.
const FINE: usize = 32;
const OCTAVES: usize = 48;
const BYTES: usize = OCTAVES * FINE;
/// One for an RTT that is not known, and then two an octave from 62.5 µs on.
const RTTS: usize = 1 + 2 * 18;
const LEAST_RTT: f64 = 62.5;

/// Connections by class, handshake, RTT and bytes.
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    counts: Vec<u64>,
    /// Of each bin of RTTs, their sum in microseconds.
    rtts: [f64; RTTS],
    total: u64,
    first: Option<Micros>,
    last: Option<Micros>,
}

impl Default for Joint {
    fn default() -> Self {
        Joint {
            counts: vec![0; Class::ALL.len() * Handshake::ALL.len() * RTTS * BYTES],
            rtts: [0.0; RTTS],
            total: 0,
            first: None,
            last: None,
        }
    }
}

/// Whether a profile can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no connection can be used for a profile: that needs handshakes in ssl.log that are joined with whole connections in conn.log"
)]
pub struct NoProfile;

/// One row of the table.
struct Row {
    class: Class,
    handshake: Handshake,
    bytes: u64,
    /// Microseconds.
    rtt: Option<f64>,
    weight: u64,
}

impl Joint {
    pub(crate) fn add(
        &mut self,
        class: Class,
        handshake: Handshake,
        bytes: u64,
        rtt: Option<u64>,
        time: Option<NonZeroI64>,
    ) {
        let rtt_bin = rtt.map_or(0, rtt_bin);
        let at = place(class, handshake, rtt_bin, fine(bytes));
        if let (Some(count), Some(sum)) = (self.counts.get_mut(at), self.rtts.get_mut(rtt_bin)) {
            *count += 1;
            *sum += rtt.unwrap_or(0) as f64;
            self.total += 1;
        }
        if let Some(time) = time.map(NonZeroI64::get) {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
        }
    }

    /// Connections in it.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// When the first and the last of them began, where they say so.
    pub(crate) fn period(&self) -> Option<[String; 2]> {
        Some([rfc3339(self.first?), rfc3339(self.last?)])
    }

    fn of_rtt(&self, rtt: usize) -> u64 {
        let kinds = kinds().flat_map(|(class, handshake)| {
            let from = place(class, handshake, rtt, 0);
            self.counts.get(from..from + BYTES).unwrap_or_default()
        });
        kinds.sum()
    }

    /// The profile, as TOML. `remark` is a sentence that has to be known of it.
    /// `over_quic` is of all connections, as those over QUIC are in no row.
    pub(crate) fn to_toml(
        &self,
        remark: Option<&str>,
        over_quic: Share,
    ) -> Result<String, NoProfile> {
        let measured: u64 = (1..RTTS).map(|rtt| self.of_rtt(rtt)).sum();
        let with_rtt = measured >= FEWEST;
        let mut rows = Vec::new();
        for per_row in [8, 16, FINE] {
            rows = self.rows(per_row, with_rtt);
            if rows.len() <= MOST_ROWS {
                break;
            }
        }
        let connections: u64 = rows.iter().map(|row| row.weight).sum();
        if connections == 0 {
            return Err(NoProfile);
        }
        let mut out = String::new();
        // To a String, nothing fails.
        let _ = self.write(&mut out, &rows, connections, with_rtt, remark, over_quic);
        Ok(out)
    }

    fn write(
        &self,
        out: &mut String,
        rows: &[Row],
        connections: u64,
        with_rtt: bool,
        remark: Option<&str>,
        over_quic: Share,
    ) -> fmt::Result {
        writeln!(
            out,
            "# Written by lastbyte zeek: what {connections} joined connections were, without names of servers."
        )?;
        if let Some(remark) = remark {
            writeln!(out, "# {remark}")?;
        }
        if let Some(warning) = too_small(connections) {
            writeln!(out, "# Warning: {warning}")?;
        }
        writeln!(out, "[profile]\nconnections = {connections}")?;
        if let Some(share) = over_quic.value() {
            writeln!(out, "quic_share = \"{}\"", percentage(share))?;
        }
        if let Some([from, to]) = self.period() {
            writeln!(out, "from = \"{from}\"\nto = \"{to}\"")?;
        }
        writeln!(out, "\n[population.joint]")?;
        column(out, "class", rows, |row| {
            format!("\"{}\"", row.class.name())
        })?;
        let resumes = |row: &Row| (row.handshake == Handshake::Resumed).to_string();
        column(out, "resumes", rows, resumes)?;
        column(out, "data_bytes", rows, |row| row.bytes.max(1).to_string())?;
        if with_rtt {
            let rtt = |row: &Row| format!("\"{}ms\"", milliseconds(row.rtt.unwrap_or(0.0)));
            column(out, "rtt", rows, rtt)?;
        }
        column(out, "weight", rows, |row| row.weight.to_string())
    }

    /// Rows of bins that are so many fine ones wide.
    fn rows(&self, per_row: usize, with_rtt: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        for (class, handshake) in kinds() {
            // Without RTTs, all of them are one.
            let (first, width) = if with_rtt { (1, 1) } else { (0, RTTS) };
            for from in (first..RTTS).step_by(width) {
                let rtts = from..from + width;
                let mean = rtts.clone().next_back().and_then(|rtt| self.mean_rtt(rtt));
                for from in (0..BYTES).step_by(per_row) {
                    let fine: Vec<u64> = (from..from + per_row)
                        .map(|bytes| {
                            let places =
                                rtts.clone().map(|rtt| place(class, handshake, rtt, bytes));
                            places.filter_map(|at| self.counts.get(at)).sum()
                        })
                        .collect();
                    let weight: u64 = fine.iter().sum();
                    if weight == 0 {
                        continue;
                    }
                    let mut seen = 0;
                    let median = fine.iter().position(|count| {
                        seen += count;
                        seen * 2 >= weight
                    });
                    rows.push(Row {
                        class,
                        handshake,
                        bytes: middle(from + median.unwrap_or(0)),
                        rtt: mean.filter(|_| with_rtt),
                        weight,
                    });
                }
            }
        }
        rows
    }

    fn mean_rtt(&self, rtt: usize) -> Option<f64> {
        let count = self.of_rtt(rtt);
        let sum = self.rtts.get(rtt)?;
        (count > 0).then(|| sum / count as f64)
    }
}

/// What is wrong with a profile of so few connections.
pub(crate) fn too_small(connections: u64) -> Option<String> {
    (connections < FEWEST).then(|| {
        format!(
            "{connections} connections are too few to say anything of a population: have {FEWEST} or more"
        )
    })
}

fn column(
    out: &mut String,
    name: &str,
    rows: &[Row],
    value: impl Fn(&Row) -> String,
) -> fmt::Result {
    let values: Vec<String> = rows.iter().map(value).collect();
    writeln!(out, "{name} = [{}]", values.join(", "))
}

/// To four digits, which is more than a bin knows.
fn milliseconds(micros: f64) -> String {
    let milliseconds = micros / 1000.0;
    match milliseconds {
        0.0..1.0 => format!("{milliseconds:.3}"),
        1.0..100.0 => format!("{milliseconds:.1}"),
        _ => format!("{milliseconds:.0}"),
    }
}

/// To a hundredth of a percent, which is more than an interval is narrow.
fn percentage(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

fn kinds() -> impl Iterator<Item = (Class, Handshake)> {
    let of_class = |class| Handshake::ALL.map(|handshake| (class, handshake));
    Class::ALL.into_iter().flat_map(of_class)
}

fn place(class: Class, handshake: Handshake, rtt: usize, bytes: usize) -> usize {
    let kind = class as usize * Handshake::ALL.len() + handshake as usize;
    (kind * RTTS + rtt) * BYTES + bytes
}

fn rtt_bin(micros: u64) -> usize {
    let halves = (2.0 * (micros as f64 / LEAST_RTT).log2()).floor();
    // What is shorter or longer is in the first or the last.
    1 + (halves.max(0.0) as usize).min(RTTS - 2)
}

fn fine(bytes: u64) -> usize {
    let bytes = bytes.max(1);
    let octave = bytes.ilog2() as usize;
    if octave >= OCTAVES {
        return BYTES - 1;
    }
    let above = bytes - (1 << octave);
    octave * FINE + ((u128::from(above) * FINE as u128) >> octave) as usize
}

fn middle(fine: usize) -> u64 {
    let (octave, within) = (fine / FINE, fine % FINE);
    let width = 2_f64.powi(octave as i32);
    let least = (width * (1.0 + within as f64 / FINE as f64)).ceil();
    let next = width * (1.0 + (within + 1) as f64 / FINE as f64);
    // The middle of the whole numbers in it.
    ((least + next.ceil() - 1.0) / 2.0).floor().max(least) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_know_their_numbers(bytes in (0u32..47).prop_flat_map(|octave| 1u64 << octave..2 << octave)) {
            let found = middle(fine(bytes));
            let error = (found as f64 - bytes as f64).abs() / bytes as f64;
            prop_assert!(error <= 1.0 / FINE as f64, "{bytes}: {found}");
            prop_assert_eq!(fine(found), fine(bytes));
        }
    }

    fn time(seconds: i64) -> Option<NonZeroI64> {
        NonZeroI64::new(seconds * 1_000_000)
    }

    const OVER_QUIC: Share = Share { part: 1, of: 3 };

    #[test]
    fn what_is_written() {
        let mut joint = Joint::default();
        assert_eq!(joint.to_toml(None, Share::default()), Err(NoProfile));
        for (bytes, count) in [(0, 1), (1000, 40), (1024, 20), (1030, 30)] {
            for second in 0..count {
                joint.add(
                    Class::Cdn,
                    Handshake::Resumed,
                    bytes,
                    None,
                    time(1_541_001_600 + second),
                );
            }
        }
        joint.add(Class::Other, Handshake::Full, u64::MAX, Some(20_000), None);
        let toml = joint.to_toml(Some("A remark."), OVER_QUIC).unwrap();
        assert!(
            toml.contains("\n# A remark.\n# Warning: 92 connections are too few"),
            "{toml}"
        );
        let document: toml::Table = toml.parse().unwrap();
        assert_eq!(document["profile"]["connections"].as_integer(), Some(92));
        assert_eq!(document["profile"]["quic_share"].as_str(), Some("33.33%"));
        assert_eq!(
            document["profile"]["from"].as_str(),
            Some("2018-10-31T16:00:00Z")
        );
        assert_eq!(
            document["profile"]["to"].as_str(),
            Some("2018-10-31T16:00:39Z")
        );
        let joint = document["population"]["joint"].as_table().unwrap();
        assert!(!joint.contains_key("rtt"));
        let numbers = |name: &str| -> Vec<i64> {
            let values = joint[name].as_array().unwrap();
            values
                .iter()
                .map(|value| value.as_integer().unwrap())
                .collect()
        };
        assert_eq!(numbers("weight"), [1, 40, 50, 1]);
        assert_eq!(numbers("data_bytes")[..3], [1, 999, 1039]);
    }

    #[test]
    fn the_rtt_where_it_is_known() {
        let mut joint = Joint::default();
        for index in 0..FEWEST {
            joint.add(
                Class::Cdn,
                Handshake::Full,
                5000,
                Some(10_000 + index % 2),
                None,
            );
            joint.add(Class::Cdn, Handshake::Full, 5000, Some(100_000), None);
            joint.add(Class::Cdn, Handshake::Full, 5000, None, None);
        }
        let toml = joint.to_toml(None, OVER_QUIC).unwrap();
        assert!(toml.contains("connections = 600\n"), "{toml}");
        assert!(toml.contains("rtt = [\"10.0ms\", \"100ms\"]\n"), "{toml}");
        assert!(
            !toml.contains("Warning") && !toml.contains("from"),
            "{toml}"
        );
    }
}
