//! The CPU time of an arm's steps that was put back into results.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_exchange::Records;
use lastbyte_flights::Compute;
use lastbyte_link::Bytes;
use lastbyte_sizes::Resumption;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use lastbyte_study::exchange::{REQUEST, records};
use lastbyte_study::{Cell, RecordSize};

/// What a guest spends in its clock, in which computing takes no time of its own.
///
/// Written as one word:
///
/// ```
/// # use lastbyte_results::CpuCosts;
/// let word = "server_setup=9100ns,client_hello=52000ns,server_flight=710000ns,\
///             client_finish=260000ns,server_finish=18000ns,encrypt=900ns+310ps,decrypt=1100ns+290ps,\
///             flights=700/750/800/850/900/920/940/960/980/1000/\
///             1000/1020/1040/1080/1120/1200/1300/1500/1900/2600";
/// let costs: CpuCosts = word.parse()?;
/// assert_eq!(costs.to_string(), word);
/// # Ok::<(), lastbyte_results::CpuCostsError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuCosts {
    /// The server makes its side when it accepts. That delays its flight only if the ClientHello
    /// is there already.
    pub server_setup: Duration,
    /// The client makes its key share and ClientHello, once TCP is established.
    pub client_hello: Duration,
    /// The server answers the ClientHello with its whole flight: the median.
    pub server_flight: Duration,
    /// The client verifies that flight and makes its own last one, without the request.
    pub client_finish: Duration,
    /// The server verifies the client's last flight, without the request.
    pub server_finish: Duration,
    /// Encrypting a record.
    pub encrypt: RecordCost,
    /// Decrypting a record.
    pub decrypt: RecordCost,
    /// How the time of the server's flight is spread.
    pub flights: Flights,
}

/// What a step's time is multiplied with, in thousandths of its median: equally likely factors in
/// ascending order. ML-DSA signs until a signature fits (FIPS 204, algorithm 7), so that the time
/// is spread by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flights(pub [u16; Flights::COUNT]);

impl Flights {
    /// How many factors there are.
    pub const COUNT: usize = 20;
    /// A multiple without a common divisor, so that neighbours are far apart in the order.
    const STRIDE: usize = 7;

    /// The mean of what takes so long at the median.
    pub fn mean(self, median: Duration) -> Duration {
        let thousandths: u32 = self.0.iter().copied().map(u32::from).sum();
        median * thousandths / (1000 * Self::COUNT as u32)
    }

    /// The factor of a connection, by its index: each has its turn among any twenty in a row.
    fn of_connection(self, median: Duration, index: u32) -> Duration {
        let factor = self.0[index as usize % Self::COUNT * Self::STRIDE % Self::COUNT];
        median * u32::from(factor) / 1000
    }
}

impl Default for Flights {
    fn default() -> Self {
        Self([1000; Self::COUNT])
    }
}

/// What encrypting or decrypting a record takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCost {
    /// Whatever it holds.
    pub record: Duration,
    /// For each byte of payload.
    pub byte: Picoseconds,
}

/// A time too short for a [`Duration`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Picoseconds(pub u64);

/// What computing takes on a machine beside times in which it takes none: of each way in which connections begin.
/// Empty where nobody has measured it, and where times have it within them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside(BTreeMap<String, CpuCosts>);

impl Beside {
    /// How far two calibrations of the same on one machine may be from each other, minutes apart, as a share of what
    /// computing takes: see docs/benchmarks/cross-check.md.
    pub const APART: f64 = 0.1;

    /// Those of connections that begin so.
    pub fn of(&self, session: Resumption) -> Option<CpuCosts> {
        self.0.get(session.name()).copied()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Resumption, CpuCosts)> for Beside {
    fn from_iter<I: IntoIterator<Item = (Resumption, CpuCosts)>>(costs: I) -> Beside {
        let named = |(session, costs): (Resumption, _)| (session.name().to_owned(), costs);
        Beside(costs.into_iter().map(named).collect())
    }
}

impl CpuCosts {
    /// The most of a step in nanoseconds, days, and of a byte in picoseconds: sums of what is less are times still.
    pub const MOST: u64 = 1 << 48;

    /// Those of one connection of a sample, by its index.
    pub fn of_connection(self, index: u32) -> CpuCosts {
        CpuCosts {
            server_flight: self.flights.of_connection(self.server_flight, index),
            ..self
        }
    }

    /// The same where all takes so many times as long.
    #[must_use]
    pub fn slowed(self, times: u32) -> CpuCosts {
        let slowed = |time: Duration| time.saturating_mul(times);
        let record = |cost: RecordCost| RecordCost {
            record: slowed(cost.record),
            byte: Picoseconds(cost.byte.0.saturating_mul(times.into())),
        };
        CpuCosts {
            server_setup: slowed(self.server_setup),
            client_hello: slowed(self.client_hello),
            server_flight: slowed(self.server_flight),
            client_finish: slowed(self.client_finish),
            server_finish: slowed(self.server_finish),
            encrypt: record(self.encrypt),
            decrypt: record(self.decrypt),
            flights: self.flights,
        }
    }

    /// Before a response of `data` bytes begins to be written. It is encrypted as a whole, but for
    /// what is over 1 MiB.
    pub fn response(&self, data: u64, records: Records) -> Duration {
        const MOST: u64 = 1 << 20;
        let mut encrypt = Duration::ZERO;
        let mut done = 0;
        while done < data.min(MOST) {
            let payload = records.payload(done, data);
            encrypt = encrypt.saturating_add(self.encrypt.of(payload));
            done += payload.max(1) as u64;
        }
        encrypt
    }

    /// For flight arithmetic in a cell.
    pub fn compute(&self, cell: &Cell, record_size: RecordSize) -> Compute {
        let (Bytes(data), records) = (cell.data, records(record_size, cell));
        let request = |cost: RecordCost| match data {
            0 => Duration::ZERO,
            _ => cost.of(REQUEST.len()),
        };
        let client = self.slowed(cell.client_cpu.times());
        Compute {
            client_hello: client.client_hello,
            server_flight: self.server_flight,
            client_finish: client.client_finish + request(client.encrypt),
            response: self.server_finish + request(self.decrypt) + self.response(data, records),
        }
    }
}

impl RecordCost {
    /// A record with this payload, in bytes.
    pub fn of(self, payload: usize) -> Duration {
        self.record.saturating_add(self.byte.times(payload))
    }

    /// The line through what two records of these payloads take, the smaller one first.
    pub fn through(small: (usize, Duration), large: (usize, Duration)) -> Self {
        let bytes = large.0.saturating_sub(small.0).max(1) as u128;
        let byte = large.1.saturating_sub(small.1).as_nanos() * 1000 / bytes;
        let byte = Picoseconds(u64::try_from(byte).unwrap_or(u64::MAX));
        Self {
            record: small.1.saturating_sub(byte.times(small.0)),
            byte,
        }
    }
}

impl Picoseconds {
    pub(crate) fn times(self, count: usize) -> Duration {
        let nanos = u128::from(self.0) * count as u128 / 1000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for CpuCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, step) in STEPS {
            write!(f, "{name}={}ns,", step(&mut self.clone()).as_nanos())?;
        }
        write!(
            f,
            "encrypt={},decrypt={},flights={}",
            self.encrypt, self.decrypt, self.flights
        )
    }
}

impl fmt::Display for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, factor) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "/" };
            write!(f, "{separator}{factor}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RecordCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns+{}ps", self.record.as_nanos(), self.byte.0)
    }
}

/// The text is no [`CpuCosts`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("CPU costs {text:?}: {problem}")]
pub struct CpuCostsError {
    text: String,
    problem: CostsProblem,
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum CostsProblem {
    #[error("{found:?} stands where {name}= should")]
    Name { found: String, name: &'static str },
    #[error("{0:?} is too much")]
    Rest(String),
    #[error("{0:?} is not of the form 900ns+310ps")]
    RecordCost(String),
    #[error("{text:?} is not of the form 1000/1000/…, with {count} numbers")]
    Flights { text: String, count: usize },
    #[error("{text:?} is no number of {unit}")]
    Number { text: String, unit: &'static str },
}

impl FromStr for CpuCosts {
    type Err = CpuCostsError;

    fn from_str(text: &str) -> Result<Self, CpuCostsError> {
        parse(text).map_err(|problem| CpuCostsError {
            text: text.to_owned(),
            problem,
        })
    }
}

impl TryFrom<String> for CpuCosts {
    type Error = CpuCostsError;

    fn try_from(text: String) -> Result<Self, CpuCostsError> {
        text.parse()
    }
}

impl From<CpuCosts> for String {
    fn from(costs: CpuCosts) -> String {
        costs.to_string()
    }
}

/// The name of a step, and where its cost is.
type Step = (&'static str, fn(&mut CpuCosts) -> &mut Duration);

const STEPS: [Step; 5] = [
    ("server_setup", |costs| &mut costs.server_setup),
    ("client_hello", |costs| &mut costs.client_hello),
    ("server_flight", |costs| &mut costs.server_flight),
    ("client_finish", |costs| &mut costs.client_finish),
    ("server_finish", |costs| &mut costs.server_finish),
];

fn parse(text: &str) -> Result<CpuCosts, CostsProblem> {
    let mut fields = text.split(',');
    let mut costs = CpuCosts::default();
    let mut value = |name: &'static str| {
        let field = fields.next().unwrap_or("");
        let value = field.strip_prefix(name);
        value
            .and_then(|value| value.strip_prefix('='))
            .ok_or_else(|| CostsProblem::Name {
                found: field.to_owned(),
                name,
            })
    };
    for (name, step) in STEPS {
        *step(&mut costs) = nanos(value(name)?)?;
    }
    costs.encrypt = record_cost(value("encrypt")?)?;
    costs.decrypt = record_cost(value("decrypt")?)?;
    costs.flights = flights(value("flights")?)?;
    match fields.next() {
        None => Ok(costs),
        Some(rest) => Err(CostsProblem::Rest(rest.to_owned())),
    }
}

fn record_cost(text: &str) -> Result<RecordCost, CostsProblem> {
    let (record, byte) = text
        .split_once('+')
        .ok_or_else(|| CostsProblem::RecordCost(text.to_owned()))?;
    Ok(RecordCost {
        record: nanos(record)?,
        byte: Picoseconds(number(byte, "ps")?),
    })
}

fn flights(text: &str) -> Result<Flights, CostsProblem> {
    let factors: Result<Vec<u16>, _> = text.split('/').map(str::parse).collect();
    let factors = factors.ok().and_then(|factors| factors.try_into().ok());
    factors.map(Flights).ok_or_else(|| CostsProblem::Flights {
        text: text.to_owned(),
        count: Flights::COUNT,
    })
}

fn nanos(text: &str) -> Result<Duration, CostsProblem> {
    number(text, "ns").map(Duration::from_nanos)
}

fn number(text: &str, unit: &'static str) -> Result<u64, CostsProblem> {
    let digits = text.strip_suffix(unit);
    digits
        .and_then(|digits| digits.parse().ok())
        .filter(|number| *number <= CpuCosts::MOST)
        .ok_or_else(|| CostsProblem::Number {
            text: text.to_owned(),
            unit,
        })
}
