//! What was seen of a server, as a file says it.
//!
//! ```json
//! {
//!   "version": 1,
//!   "host": "example.com:443",
//!   "rtt_ms": 23.4,
//!   "rate_mbit": 50,
//!   "initial_window": 10,
//!   "mss": 1448,
//!   "group": "X25519MLKEM768",
//!   "chain": [
//!     { "algorithm": "ecdsa-p256", "bytes": 1046 },
//!     { "algorithm": "ecdsa-p384", "bytes": 832 }
//!   ],
//!   "certificate_verify_bytes": 79
//! }
//! ```
//!
//! Only `version`, `host` and `chain` have to be there. `chain` has each certificate as it is sent, the end-entity's
//! first: the algorithm of its key, by Lastbyte's name, and the bytes of its DER. Sizes of messages are with their
//! header of four bytes. Whatever else is there is passed over.

use std::net::IpAddr;

use lastbyte_sizes::{Group, Host, KeyAlgorithm, framing};
use serde::Deserialize;
use serde_json::Value;

use super::sizes::MOST_CERTIFICATES;
use crate::explain::{Shown, Signature};

/// The version that is read.
pub const VERSION: u64 = 1;

/// A server as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// `NAME:PORT`, as an arm has it.
    pub host: String,
    /// Milliseconds there and back.
    pub rtt_ms: Option<f64>,
    /// Mbit/s.
    pub rate_mbit: Option<f64>,
    /// Segments.
    pub initial_window: Option<u32>,
    /// Bytes of payload that fit one segment.
    pub mss: Option<u32>,
    /// What was negotiated.
    pub group: Group,
    /// The chain's sizes.
    pub chain: Shown,
}

/// The file's own words.
#[derive(Deserialize)]
struct Document {
    host: String,
    rtt_ms: Option<f64>,
    rate_mbit: Option<f64>,
    initial_window: Option<f64>,
    mss: Option<f64>,
    group: Option<String>,
    chain: Vec<Certificate>,
    certificate_verify_bytes: Option<f64>,
}

#[derive(Deserialize)]
struct Certificate {
    algorithm: String,
    bytes: f64,
}

/// What a number may be: from, to, and in what unit.
type Range = (f64, f64, &'static str);

const RTT: Range = (0.1, 10_000.0, "ms");
const RATE: Range = (0.01, 100_000.0, "Mbit/s");
const WINDOW: Range = (1.0, 500.0, "segments");
/// Of an MTU from 576 to 9000, as `--mtu` takes it.
const MSS: Range = (524.0, 8948.0, "bytes");
const DER: Range = (64.0, 200_000.0, "bytes");
const VERIFY: Range = (16.0, 60_000.0, "bytes");

impl Probe {
    /// Reads a probe's JSON.
    ///
    /// # Errors
    ///
    /// What is wrong with it, where, and the mend, in one line.
    pub fn read(text: &str) -> Result<Probe, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        match value.get("version") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => {
                let version: String = version.to_string().chars().take(20).collect();
                return Err(format!(
                    "version {version} is not known here: only {VERSION} is; get a newer lastbyte, or probe again"
                ));
            }
            None => return Err(format!("no probe: it says no \"version\": {VERSION}")),
        }
        let document: Document =
            serde_json::from_value(value).map_err(|error| format!("no probe: {error}"))?;
        document.checked()
    }
}

impl Document {
    fn checked(self) -> Result<Probe, String> {
        let host = Host::parse(&self.host)
            .filter(|_| !self.host.contains('/'))
            .ok_or_else(|| {
                format!(
                    "host: {:?} is no NAME:PORT such as example.com:443",
                    self.host.chars().take(60).collect::<String>()
                )
            })?;
        let group = match &self.group {
            Some(name) => name.parse().map_err(|error| format!("group: {error}"))?,
            None => Group::X25519MlKem768,
        };
        let Some(leaf) = self.chain.first() else {
            return Err("chain: no certificate: name at least the end-entity's".to_owned());
        };
        if self.chain.len() > MOST_CERTIFICATES {
            let count = self.chain.len();
            return Err(format!(
                "chain: {count} certificates: at most {MOST_CERTIFICATES} are drawn"
            ));
        }
        let mut keys = Vec::new();
        let mut certificates = Vec::new();
        for (number, certificate) in (1..).zip(&self.chain) {
            let key: KeyAlgorithm = (certificate.algorithm.parse())
                .map_err(|error| format!("chain, certificate {number}: {error}"))?;
            let place = format!("chain, certificate {number}: bytes");
            certificates.push(whole(&place, certificate.bytes, DER)? as usize);
            keys.push(key);
        }
        let leaf: KeyAlgorithm =
            (leaf.algorithm.parse()).map_err(|error| format!("chain, certificate 1: {error}"))?;
        let around = framing::certificate_verify(0);
        let signature = match self.certificate_verify_bytes {
            Some(bytes) => {
                let bytes = whole("certificate_verify_bytes", bytes, VERIFY)? as usize;
                let signature = bytes.saturating_sub(around);
                Signature {
                    bytes: signature,
                    longest: signature.max(leaf.longest_signature_bytes()),
                }
            }
            None => Signature {
                bytes: leaf.signature_bytes(),
                longest: leaf.longest_signature_bytes(),
            },
        };
        keys.sort_unstable();
        keys.dedup();
        Ok(Probe {
            rtt_ms: self
                .rtt_ms
                .map(|ms| within("rtt_ms", ms, RTT))
                .transpose()?,
            rate_mbit: (self.rate_mbit)
                .map(|rate| within("rate_mbit", rate, RATE))
                .transpose()?,
            initial_window: (self.initial_window)
                .map(|window| whole("initial_window", window, WINDOW))
                .transpose()?,
            mss: self.mss.map(|mss| whole("mss", mss, MSS)).transpose()?,
            group,
            chain: Shown {
                certificates,
                signature,
                server_name: match host.name.parse::<IpAddr>() {
                    Ok(_) => 0,
                    Err(_) => host.name.len(),
                },
                provided: keys.iter().filter(|key| key.provided().is_some()).count(),
            },
            host: self.host,
        })
    }
}

fn within(key: &str, number: f64, (least, most, unit): Range) -> Result<f64, String> {
    match number {
        _ if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "{key}: {number} is not from {least} to {most} {unit}"
        )),
    }
}

fn whole(key: &str, number: f64, range: Range) -> Result<u32, String> {
    let number = within(key, number, range)?;
    match number.fract() == 0.0 {
        // No range goes further.
        true => Ok(number as u32),
        false => Err(format!("{key}: {number} is no whole number")),
    }
}
