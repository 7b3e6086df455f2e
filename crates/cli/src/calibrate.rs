//! `lastbyte calibrate`.

use std::path::PathBuf;
use std::slice;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use lastbyte_link::counted;
use lastbyte_pki::Store;
use serde::Serialize;

use super::compare::{DEFAULT_AGAINST, DEFAULT_BASELINE, interrupt};
use super::{Failure, arguments, own, print, print_json};
use lastbyte::lab::PreparedArm;
use lastbyte::lab::calibration::{Calibration, CalibrationError, Effort, Spread};
use lastbyte::study::Arm;

/// Measures the CPU time of each step of a handshake on this machine, in memory, and keeps it for
/// studies with `cpu = "calibrated"`. Needs no root.
#[derive(Debug, Args)]
pub(super) struct Calibrate {
    /// Arms to measure: GROUP/CHAIN[:BYTESB][/KEY=VALUE...], or a chain alone: ml-dsa-44
    #[arg(value_name = "ARM", value_parser = arguments::arm_or_chain, default_values = [DEFAULT_BASELINE, DEFAULT_AGAINST])]
    arms: Vec<Arm>,
    /// How often each step is measured [default: until the median is known to 2 %, for at most 5 s]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    handshakes: Option<u32>,
    /// How results are printed
    #[arg(long, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
}

impl Calibrate {
    pub(super) fn run(self) -> Result<(), Failure> {
        let cache = Store::default_dir().map_err(Failure::usage)?;
        let store = Store::open(&cache);
        let effort = self.handshakes.map_or(Effort::Enough, Effort::Handshakes);
        let mut calibrations = Vec::new();
        own::fetch(&self.arms)?;
        let interrupt = interrupt().map_err(Failure::run)?;
        let all = self.arms.len();
        for arm in self.arms {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted(format!(
                    "interrupted; {} of {} kept",
                    calibrations.len(),
                    counted(all, "calibration") + if all == 1 { " is" } else { " are" }
                )));
            }
            let prepared = PreparedArm::new(arm, &store)?.tried()?;
            own::tell(&own::notes(slice::from_ref(&prepared)));
            let calibration = Calibration::measure(&prepared, effort)?;
            let path = calibration.store(&cache)?;
            calibrations.push((calibration, path));
        }
        match self.format {
            Format::Table => {
                let each: String = calibrations.iter().map(table).collect();
                print(&(each + &rates(&calibrations)))
            }
            Format::Json => print_json(&json(&calibrations)),
        }
    }
}

impl From<CalibrationError> for Failure {
    fn from(error: CalibrationError) -> Failure {
        match error {
            CalibrationError::Tls { .. } => Failure::run(error),
            CalibrationError::Unwritable { .. } => Failure::usage(error),
        }
    }
}

/// The steps, in the order in which a connection takes them.
fn steps(calibration: &Calibration) -> [(&'static str, Spread); 10] {
    [
        ("client: make a connection", calibration.client_setup),
        ("client: ClientHello", calibration.client_hello),
        ("server: make a connection", calibration.server_setup),
        ("server: ServerHello … Finished", calibration.server_flight),
        ("client: verify, Finished", calibration.client_finish),
        ("client: encrypt the request", calibration.encrypt_request),
        ("server: verify Finished", calibration.server_finish),
        ("server: decrypt the request", calibration.decrypt_request),
        ("server: encrypt 16 KiB", calibration.encrypt_record),
        ("client: decrypt 16 KiB", calibration.decrypt_record),
    ]
}

fn table((calibration, path): &(Calibration, PathBuf)) -> String {
    let handshakes = match calibration.handshakes {
        1 => "1 handshake".to_owned(),
        many => format!("{many} handshakes"),
    };
    let mut text = format!("{}: {handshakes}\n", calibration.arm);
    text.push_str(&format!(
        "{:34}{:>12}{:>12}{:>12}\n",
        "  CPU time", "p50", "p5", "p95"
    ));
    for (name, spread) in steps(calibration) {
        let [median, low, high] = [spread.p50_ns, spread.p5_ns, spread.p95_ns].map(microseconds);
        text.push_str(&format!("  {name:32}{median:>12}{low:>12}{high:>12}\n"));
    }
    let costs = calibration.costs();
    text.push_str(&format!(
        "  records: {} and {} ps a byte to encrypt, {} and {} ps a byte to decrypt\n  {}, kept in {}\n\n",
        microseconds(nanos(costs.encrypt.record)),
        costs.encrypt.byte.0,
        microseconds(nanos(costs.decrypt.record)),
        costs.decrypt.byte.0,
        calibration.cpu,
        path.display()
    ));
    text
}

/// What one core does in a second of nothing but handshakes, by arm.
fn rates(calibrations: &[(Calibration, PathBuf)]) -> String {
    let names = calibrations.iter().map(|(calibration, _)| &calibration.arm);
    let widest = names.map(|arm| arm.chars().count()).max().unwrap_or(0);
    let title = "handshakes a second and core (the server's flight and the client's Finished by their mean, all else by medians)";
    let width = (widest + 2).max(title.len()) + 2;
    let mut text = format!("{title:width$}{:>10}{:>10}\n", "client", "server");
    for (calibration, _) in calibrations {
        let [client, server] = calibration.handshake().map(per_second);
        let arm = format!("  {}", calibration.arm);
        text.push_str(&format!("{arm:width$}{client:>10.0}{server:>10.0}\n"));
    }
    text
}

/// How many of what takes so long are in a second.
fn per_second(time: Duration) -> f64 {
    1.0 / time.as_secs_f64().max(1e-9)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn microseconds(nanos: u64) -> String {
    format!("{:.1} µs", nanos as f64 / 1e3)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    arms: Vec<ArmDocument<'a>>,
}

#[derive(Serialize)]
struct ArmDocument<'a> {
    #[serde(flatten)]
    calibration: &'a Calibration,
    client_handshakes_per_second: f64,
    server_handshakes_per_second: f64,
    file: String,
}

fn json(calibrations: &[(Calibration, PathBuf)]) -> String {
    let arms = calibrations.iter().map(|(calibration, path)| {
        let [client, server] = calibration.handshake().map(per_second);
        ArmDocument {
            calibration,
            client_handshakes_per_second: client,
            server_handshakes_per_second: server,
            file: path.display().to_string(),
        }
    });
    let document = Document {
        schema: "lastbyte.calibrate/1",
        arms: arms.collect(),
    };
    // Serialising plain structures to memory cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
