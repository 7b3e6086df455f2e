//! What an arm's TLS costs on this machine, in CPU time.

#[cfg(test)]
mod tests;

use std::array;
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lastbyte_pki::Store;
use lastbyte_tls::{Connection, MAX_PLAINTEXT, StepTimes, TlsError, time_handshake};
use serde::{Deserialize, Serialize};

use super::lock::lock;
use super::runner::{BlockError, Job};
use super::sys::thread_cpu_time;
use super::{PreparedArm, environment};
use crate::explain::load::Computing;
use crate::kernel::digest::sha256;
use crate::results::{Beside, CpuCosts, Flights, RecordCost};
use crate::study::exchange::REQUEST;
use crate::study::{Arm, CpuTime};

/// What an arm's TLS costs on this machine, in memory: the CPU time of each step, in caches that
/// are warm. The machine's noise shows in the spread, and medians keep clear of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// The arm, as it was written.
    pub arm: String,
    /// Key-exchange group.
    pub group: String,
    /// SHA-256 of its certificates as sent, in hex.
    pub chain_sha256: String,
    /// What else its handshakes depend on: stacks, key shares, resumption, tickets.
    pub options: String,
    /// The machine's processor, as `/proc/cpuinfo` calls it.
    pub cpu: String,
    /// Versions of Lastbyte and of the libraries under test, by name.
    pub versions: BTreeMap<String, String>,
    /// When it was measured, in seconds since 1970.
    pub measured_at: u64,
    /// How often each step was measured.
    pub handshakes: u32,
    /// Making a client that has not sent anything yet. In a measurement, that is done before the
    /// clock starts.
    pub client_setup: Spread,
    /// Making a server that waits for a ClientHello.
    pub server_setup: Spread,
    /// The client makes its key share and ClientHello.
    pub client_hello: Spread,
    /// The server answers with its whole flight.
    pub server_flight: Spread,
    /// How that is spread.
    pub flights: Flights,
    /// The client verifies that flight and makes its own last one.
    pub client_finish: Spread,
    /// How that is spread: a client that proves itself signs, too.
    #[serde(default)]
    pub finishes: Flights,
    /// The server verifies the client's last flight.
    pub server_finish: Spread,
    /// The client encrypts the request.
    pub encrypt_request: Spread,
    /// The server decrypts the request.
    pub decrypt_request: Spread,
    /// The server encrypts a record of 16 KiB.
    pub encrypt_record: Spread,
    /// The client decrypts a record of 16 KiB.
    pub decrypt_record: Spread,
}

/// A CPU time in nanoseconds, and how far it varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The 5th percentile.
    pub p5_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
}

/// An arm can't be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// A handshake of it fails in memory.
    #[error("arm {arm:?}: {problem}")]
    Tls {
        /// The arm.
        arm: String,
        /// Why.
        problem: TlsError,
    },
    /// The file to keep it in can't be written.
    #[error("can't write \"{}\": {problem}; set LASTBYTE_CACHE to a folder that can be written", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
}

/// How often each step is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// So many times, at least once.
    Handshakes(u32),
    /// So many times, or until [`Effort::PATIENCE`] is over; once, if once takes longer.
    UpTo(u32),
    /// Until the median of all steps together is known to 2 % either way, or [`Effort::PATIENCE`]
    /// is over; once, if once takes longer.
    Enough,
}

impl Effort {
    /// How long it goes on for the sake of precision.
    pub const PATIENCE: Duration = Duration::from_secs(5);
    /// The fewest that a median is taken of where there is time, and between two looks at it.
    const LEAST: usize = 100;
    /// How long caches are warmed for at most.
    const WARM_UP: Duration = Duration::from_millis(500);

    fn is_warm(self, elapsed: Duration) -> bool {
        !matches!(self, Effort::Handshakes(_)) && elapsed > Effort::WARM_UP
    }

    fn is_enough(self, wholes: &[Duration], elapsed: Duration) -> bool {
        match self {
            Effort::Handshakes(handshakes) => wholes.len() >= handshakes as usize,
            Effort::UpTo(handshakes) => {
                elapsed >= Effort::PATIENCE || wholes.len() >= handshakes as usize
            }
            Effort::Enough => {
                let looks = wholes.len().is_multiple_of(Effort::LEAST);
                elapsed >= Effort::PATIENCE || (looks && is_precise(wholes))
            }
        }
    }
}

/// Whether the median of times is known to 2 % either way: between the ranks where it lies 19 times
/// in 20.
fn is_precise(times: &[Duration]) -> bool {
    let mut times = times.to_vec();
    times.sort_unstable();
    let half = times.len() as f64 / 2.0;
    let off = 0.98 * (times.len() as f64).sqrt();
    let at = |rank: f64| times.get(rank.max(0.0) as usize).copied();
    match (at((half - off).floor()), at(half), at((half + off).ceil())) {
        (Some(low), Some(median), Some(high)) => high - low <= median.mul_f64(0.04),
        _ => false,
    }
}

/// What arms cost, each calibrated once.
pub(super) struct CalibratedCosts {
    chains: Store,
    /// The folder that calibrations are kept in.
    cache: PathBuf,
    /// By arm and the way its connections begin.
    known: Mutex<HashMap<(String, &'static str), CpuCosts>>,
}

impl CalibratedCosts {
    /// Of arms whose chains are in this store.
    pub(super) fn new(chains: Store, cache: PathBuf) -> Self {
        Self {
            chains,
            cache,
            known: Mutex::default(),
        }
    }

    /// What an arm costs. Workers wait for each other: the first one measures, alone, and all
    /// blocks of a sample have the same costs.
    pub(super) fn of(&self, arm: &PreparedArm) -> Result<CpuCosts, BlockError> {
        let mut known = lock(&self.known);
        Ok(
            match known.entry((arm.arm.label.clone(), arm.arm.resumption.name())) {
                Entry::Occupied(costs) => *costs.get(),
                Entry::Vacant(unknown) => {
                    let calibration = Calibration::load_or_measure(arm, &self.cache);
                    let calibration =
                        calibration.map_err(|error| BlockError::Failed(error.to_string()))?;
                    *unknown.insert(calibration.costs())
                }
            },
        )
    }

    /// What the arm of a job costs beside virtual times, in each way in which it begins.
    pub(super) fn beside(&self, job: &Job<'_>) -> Result<Beside, BlockError> {
        let costs = |session| {
            let costs = match job.arm.arm.beginning(session) {
                Cow::Borrowed(_) => self.of(job.arm)?,
                Cow::Owned(arm) => {
                    let arm = PreparedArm::new(arm, &self.chains);
                    self.of(&arm.map_err(|error| BlockError::Failed(error.to_string()))?)?
                }
            };
            Ok((session, costs))
        };
        let sessions = match job.experiment.cpu {
            CpuTime::None | CpuTime::Calibrated | CpuTime::Laptop | CpuTime::Phone => Vec::new(),
            CpuTime::Beside => job.arm.arm.possible_sessions(job.cell),
        };
        sessions.into_iter().map(costs).collect()
    }
}

impl Calibration {
    /// What a handshake takes of the client and of the server: of the steps in which ends sign the mean, as that varies by nature
    /// with some algorithms, and a second holds as many as fit; of other steps the median, which the machine's noise leaves alone.
    pub fn handshake(&self) -> [Duration; 2] {
        let median = |spread: Spread| Duration::from_nanos(spread.p50_ns);
        let client = [self.client_setup, self.client_hello].map(median);
        let server = [self.server_setup, self.server_finish].map(median);
        let finish = self.finishes.mean(median(self.client_finish));
        let flight = self.flights.mean(median(self.server_flight));
        [
            client.iter().sum::<Duration>() + finish,
            server.iter().sum::<Duration>() + flight,
        ]
    }

    /// The one that `cache` keeps for this arm, this processor and these versions, else a new one,
    /// which is then kept.
    ///
    /// # Errors
    ///
    /// [`CalibrationError`] when a new one can't be measured or kept.
    pub fn load_or_measure(arm: &PreparedArm, cache: &Path) -> Result<Self, CalibrationError> {
        if let Some(stored) = Self::load(arm, cache) {
            return Ok(stored);
        }
        let calibration = Self::measure(arm, Effort::Enough)?;
        calibration.store(cache)?;
        Ok(calibration)
    }

    /// Measures `arm` on the thread that calls, each step this often.
    ///
    /// # Errors
    ///
    /// [`CalibrationError::Tls`] when a handshake fails.
    pub fn measure(arm: &PreparedArm, effort: Effort) -> Result<Self, CalibrationError> {
        let measured = Steps::measure(arm, effort).map_err(|problem| CalibrationError::Tls {
            arm: arm.arm.label.clone(),
            problem,
        })?;
        let [
            client_setup,
            server_setup,
            client_hello,
            server_flight,
            client_finish,
            server_finish,
            encrypt_request,
            decrypt_request,
            encrypt_record,
            decrypt_record,
        ] = measured.0.each_ref().map(|times| Spread::of(times));
        let [_, _, _, server_flights, client_finishes, ..] = &measured.0;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            measured_at: now.map_or(0, |since| since.as_secs()),
            handshakes: server_flights.len() as u32,
            client_setup,
            server_setup,
            client_hello,
            server_flight,
            flights: flights(server_flights),
            client_finish,
            finishes: flights(client_finishes),
            server_finish,
            encrypt_request,
            decrypt_request,
            encrypt_record,
            decrypt_record,
            ..Self::unmeasured(arm)
        })
    }

    /// What single handshakes of `arm` compute, in the order in which they were measured on the thread that calls.
    ///
    /// # Errors
    ///
    /// [`CalibrationError::Tls`] when one fails.
    pub fn of_each(arm: &PreparedArm, effort: Effort) -> Result<Vec<Computing>, CalibrationError> {
        let measured = Steps::in_turn(arm, effort).map_err(|problem| CalibrationError::Tls {
            arm: arm.arm.label.clone(),
            problem,
        })?;
        let [_, setups, _, flights, clients, finishes, ..] = &measured.0;
        // With a HelloRetryRequest, it has two flights, of which each is half of both.
        let of_flights = if arm.arm.key_shares.contains(&arm.arm.group) {
            1
        } else {
            2
        };
        let server = setups.iter().zip(flights).zip(finishes);
        let each = server.zip(clients);
        let each = each.map(|(((setup, flight), finish), client)| Computing {
            answer: *setup + *flight * of_flights,
            client: *client,
            finish: *finish,
        });
        Ok(each.collect())
    }

    /// Keeps it in `cache`, in the place of an earlier one, and tells where.
    ///
    /// # Errors
    ///
    /// [`CalibrationError::Unwritable`] when it can't.
    pub fn store(&self, cache: &Path) -> Result<PathBuf, CalibrationError> {
        let path = self.path(cache);
        match write(&path, self) {
            Ok(()) => Ok(path),
            Err(problem) => Err(CalibrationError::Unwritable { path, problem }),
        }
    }

    /// The medians.
    pub fn costs(&self) -> CpuCosts {
        let median = |spread: Spread| Duration::from_nanos(spread.p50_ns);
        let line = |request, record| {
            RecordCost::through(
                (REQUEST.len(), median(request)),
                (MAX_PLAINTEXT, median(record)),
            )
        };
        CpuCosts {
            server_setup: median(self.server_setup),
            client_hello: median(self.client_hello),
            server_flight: median(self.server_flight),
            client_finish: median(self.client_finish),
            server_finish: median(self.server_finish),
            encrypt: line(self.encrypt_request, self.encrypt_record),
            decrypt: line(self.decrypt_request, self.decrypt_record),
            flights: self.flights,
        }
    }

    /// The kept one. One of other versions, or that can't be read, is as good as none.
    fn load(arm: &PreparedArm, cache: &Path) -> Option<Self> {
        let new = Self::unmeasured(arm);
        let stored: Self = serde_json::from_slice(&fs::read(new.path(cache)).ok()?).ok()?;
        let fits = stored.group == new.group
            && stored.chain_sha256 == new.chain_sha256
            && stored.options == new.options
            && stored.cpu == new.cpu
            && stored.versions == new.versions;
        // Arms that differ in their records alone share it.
        fits.then_some(Self {
            arm: new.arm,
            ..stored
        })
    }

    /// What is known of one without measuring.
    fn unmeasured(arm: &PreparedArm) -> Self {
        let environment = environment(&[]);
        let none = Spread::default();
        Self {
            arm: arm.arm.label.clone(),
            group: arm.arm.group.name().to_owned(),
            chain_sha256: arm.digest(),
            options: options(&arm.arm),
            cpu: environment.host.cpu,
            versions: environment.versions,
            measured_at: 0,
            handshakes: 0,
            client_setup: none,
            server_setup: none,
            client_hello: none,
            server_flight: none,
            flights: Flights::default(),
            client_finish: none,
            finishes: Flights::default(),
            server_finish: none,
            encrypt_request: none,
            decrypt_request: none,
            encrypt_record: none,
            decrypt_record: none,
        }
    }

    /// `calibration/PROCESSOR/GROUP-DIGEST.json`, of the chains and the options.
    fn path(&self, cache: &Path) -> PathBuf {
        let word = |text: &str| {
            let words: Vec<_> = text
                .split(|c: char| !c.is_ascii_alphanumeric())
                .filter(|word| !word.is_empty())
                .collect();
            words.join("-")
        };
        let digest = sha256(format!("{} {}", self.chain_sha256, self.options).as_bytes());
        let digest = digest.get(..16).unwrap_or(&digest);
        cache
            .join("calibration")
            .join(word(&self.cpu))
            .join(format!("{}-{digest}.json", word(&self.group)))
    }
}

/// What the handshakes of an arm depend on besides its group and its chains, in words.
fn options(arm: &Arm) -> String {
    let shares: Vec<_> = arm.key_shares.iter().map(|group| group.name()).collect();
    let delivery = arm.delivery.words();
    let delivery = delivery.map_or(String::new(), |words| format!(", {words}"));
    format!(
        "{} with {}, key shares {}, {:?}, {} tickets{}",
        arm.client_stack,
        arm.server_stack,
        shares.join("+"),
        arm.resumption,
        arm.tickets,
        delivery
    )
}

fn write(path: &Path, calibration: &Calibration) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    lastbyte_files::make_folders(folder)?;
    let text = serde_json::to_string_pretty(calibration)? + "\n";
    lastbyte_files::write(path, text.as_bytes())
}

impl Spread {
    fn of(times: &[Duration]) -> Self {
        Self {
            p5_ns: quantile(times, 1, 20),
            p50_ns: quantile(times, 1, 2),
            p95_ns: quantile(times, 19, 20),
        }
    }
}

/// Of ascending times, in nanoseconds: the one that `part` of `parts` are not above.
fn quantile(times: &[Duration], part: usize, parts: usize) -> u64 {
    let last = times.len().saturating_sub(1);
    let time = times.get((last * part).div_ceil(parts));
    time.map_or(0, |time| time.as_nanos() as u64)
}

/// The middle of each twentieth of ascending times, as part of their median.
fn flights(times: &[Duration]) -> Flights {
    let median = quantile(times, 1, 2).max(1);
    Flights(array::from_fn(|index| {
        let middle = quantile(times, 2 * index + 1, 2 * Flights::COUNT);
        u16::try_from(middle.saturating_mul(1000) / median).unwrap_or(u16::MAX)
    }))
}

/// The times of each step, in the order of [`Calibration`]'s fields.
#[derive(Default)]
struct Steps([Vec<Duration>; 10]);

impl Steps {
    /// Each in ascending order.
    fn measure(arm: &PreparedArm, effort: Effort) -> Result<Self, TlsError> {
        let mut steps = Self::in_turn(arm, effort)?;
        for step in &mut steps.0 {
            step.sort_unstable();
        }
        Ok(steps)
    }

    /// Each in the order of the handshakes.
    fn in_turn(arm: &PreparedArm, effort: Effort) -> Result<Self, TlsError> {
        /// Before the first that counts.
        const WARM_UP: u32 = 20;

        let begun = Instant::now();
        for _ in 0..WARM_UP {
            handshake(arm)?;
            if effort.is_warm(begun.elapsed()) {
                break;
            }
        }
        let mut steps = Self::default();
        let mut established = arm.handshake()?;
        let (client, server) = (established.client.as_mut(), established.server.as_mut());
        let mut record = [0; MAX_PLAINTEXT];
        let mut wholes = Vec::new();
        let begun = Instant::now();
        loop {
            let (_, client_setup) = timed(|| arm.client())?;
            let (_, server_setup) = timed(|| arm.stack.server())?;
            let handshake = handshake(arm)?;
            let request = exchange(client, server, &mut record[..REQUEST.len()])?;
            let response = exchange(server, client, &mut record)?;
            let times = [
                client_setup,
                server_setup,
                handshake.client_hello,
                handshake.server_flight,
                handshake.client_finish,
                handshake.server_finish,
                request.0,
                request.1,
                response.0,
                response.1,
            ];
            for (step, time) in steps.0.iter_mut().zip(times) {
                step.push(time);
            }
            wholes.push(times.iter().sum());
            if effort.is_enough(&wholes, begun.elapsed()) {
                break;
            }
        }
        Ok(steps)
    }
}

fn handshake(arm: &PreparedArm) -> Result<StepTimes, TlsError> {
    time_handshake(arm.client()?, arm.stack.server()?, &mut thread_cpu_time)
}

/// What it takes to encrypt a record, and to decrypt it.
fn exchange(
    sender: &mut dyn Connection,
    receiver: &mut dyn Connection,
    payload: &mut [u8],
) -> Result<(Duration, Duration), TlsError> {
    let mut sent = Vec::with_capacity(2 * MAX_PLAINTEXT);
    let ((), encrypt) = timed(|| {
        sender.write_record(payload)?;
        sender.transmit(&mut sent);
        Ok(())
    })?;
    let (_, decrypt) = timed(|| {
        receiver.receive(&sent);
        receiver.read(payload)
    })?;
    Ok((encrypt, decrypt))
}

fn timed<T>(work: impl FnOnce() -> Result<T, TlsError>) -> Result<(T, Duration), TlsError> {
    let start = thread_cpu_time();
    let done = work()?;
    Ok((done, thread_cpu_time().saturating_sub(start)))
}
