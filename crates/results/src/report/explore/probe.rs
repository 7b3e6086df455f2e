//! What a probe found of a server, as far as a page can draw it.

use lastbyte_probe::{Certainty, Document};
use lastbyte_sizes::{Group, Host, framing};

use super::sizes::MOST_CERTIFICATES;
use crate::explain::{Shown, USUAL_GROUP};

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
    /// What is drawn otherwise than it was seen, a line each.
    pub notes: Vec<String>,
}

/// What a number may be on a page: from, to, and in what unit.
type Range = (f64, f64, &'static str);

const RTT: Range = (0.1, 10_000.0, "ms");
const RATE: Range = (0.01, 100_000.0, "Mbit/s");
const WINDOW: Range = (1.0, 500.0, "segments");
/// Of an MTU from 576 to 9000, as `--mtu` takes it.
const MSS: Range = (524.0, 8948.0, "bytes");
/// The most bytes of a chain.
const MOST_CHAIN: usize = 200_000;

impl Probe {
    /// Reads a probe's JSON.
    ///
    /// # Errors
    ///
    /// What is wrong with it, where, and the mend, in one line.
    pub fn read(text: &str) -> Result<Probe, String> {
        let document = Document::read(text).map_err(|error| error.to_string())?;
        Probe::of(&document)
    }

    /// What a page can draw of it.
    ///
    /// # Errors
    ///
    /// What keeps it from being drawn at all, in one line.
    pub fn of(document: &Document) -> Result<Probe, String> {
        let host = &document.host;
        if Host::parse(host).is_none() || host.contains('/') {
            return Err(format!(
                "host: {:?} is no NAME:PORT such as example.com:443",
                host.chars().take(60).collect::<String>()
            ));
        }
        let Some(chain) = Shown::seen(document) else {
            return Err("chain: no certificate was seen: probe again".to_owned());
        };
        let (count, bytes) = (chain.certificates.len(), chain.certificate_bytes());
        if count > MOST_CERTIFICATES || bytes > MOST_CHAIN {
            return Err(format!(
                "chain: {count} certificates in {bytes} bytes: at most {MOST_CERTIFICATES} in {MOST_CHAIN} are drawn"
            ));
        }
        let mut notes = Vec::new();
        let group = match &document.group {
            None => USUAL_GROUP,
            Some(name) => name.parse().unwrap_or_else(|_| {
                notes.push(format!(
                    "The key exchange was {}, whose sizes are not known here: it is drawn as {USUAL_GROUP}.",
                    word(name)
                ));
                USUAL_GROUP
            }),
        };
        for certificate in document.chain.iter().filter(|one| one.key().is_none()) {
            let note = format!(
                "A certificate's key is of {}, which is not known here: only its bytes count.",
                word(&certificate.algorithm)
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        // Of one that is not known, the smallest that was not ruled out, as elsewhere.
        let seen = document.window.as_ref();
        let seen = seen.filter(|window| window.certainty != Certainty::Uncertain.name());
        let window = document.initial_window.or(seen.map(|window| window.least));
        if let (None, Some(seen)) = (document.initial_window, seen) {
            notes.push(format!(
                "The initial window was seen as {}: it is drawn as {}.",
                seen.told(),
                seen.least
            ));
        }
        let first = document.response.as_ref();
        let first = first.and_then(|response| response.first_record_wire_bytes);
        let is_long = first > document.mss.map(|mss| mss as usize).or(Some(framing::MSS));
        let has_tickets = document
            .tls
            .ticket_wire_bytes
            .is_some_and(|bytes| bytes > 0);
        if is_long || has_tickets || document.tls.hello_retry {
            notes.push(
                "Its tickets, a first record that is longer than a segment and a HelloRetryRequest are not drawn, and chains of ML-DSA are \
                 Lastbyte's own: lastbyte probe --what-if has all of that, and can tell other times."
                    .to_owned(),
            );
        }
        let mut drawn = |what: &str, number: Option<f64>, (least, most, unit): Range| {
            let number = number?;
            let drawn = number.clamp(least, most);
            if drawn != number {
                notes.push(format!(
                    "{what} was {number} {unit}: it is drawn as {drawn} {unit}, as pages have {least} to {most}."
                ));
            }
            Some(drawn)
        };
        // Whole numbers stay whole between whole ends.
        let whole = |number: f64| number as u32;
        Ok(Probe {
            rtt_ms: drawn("The round trip", document.rtt_ms, RTT),
            rate_mbit: drawn("The rate", document.rate_mbit, RATE),
            initial_window: drawn("The initial window", window.map(f64::from), WINDOW).map(whole),
            mss: drawn("The segment", document.mss.map(f64::from), MSS).map(whole),
            host: host.clone(),
            group,
            chain,
            notes,
        })
    }
}

/// A name of somebody else's, short enough for a line.
fn word(text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    lastbyte_link::visible(&text)
}
