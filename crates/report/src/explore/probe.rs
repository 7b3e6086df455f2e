//! What a probe found of a server, as far as a page can draw it.

use lastbyte_probe::{Certainty, Document, DocumentError};
use lastbyte_sizes::{Group, Host, KeyAlgorithm, framing};
use thiserror::Error;

use super::sizes::MOST_CERTIFICATES;
use lastbyte_explain::response::{self, Sends};
use lastbyte_explain::{self as explain, OwnChain, USUAL_GROUP};
use lastbyte_study::Arm;

/// A server as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// `NAME:PORT`, as an arm has it.
    pub host: String,
    /// Milliseconds there and back.
    pub rtt_ms: Option<f64>,
    /// Mbit/s; what is supposed where nothing was seen to limit it.
    pub rate_mbit: f64,
    /// Segments.
    pub initial_window: Option<u32>,
    /// Bytes of payload that fit one segment.
    pub mss: Option<u32>,
    /// What was negotiated.
    pub group: Group,
    /// The chain's sizes.
    pub chain: OwnChain,
    /// The same server with all keys of another algorithm; none where the parts of its certificates are not known.
    pub supposed: Vec<(KeyAlgorithm, OwnChain)>,
    /// Whether it asked for another hello.
    pub hello_retry: HelloRetry,
    /// How it sends what it answers.
    pub sends: Sends,
    /// How many tickets come before the response, as far as an arm can have them. Their bytes are the chain's.
    pub tickets: u32,
    /// Bytes of payload of the response, if there was one.
    pub response: Option<u64>,
    /// What is drawn otherwise than it was seen, a line each.
    pub notes: Vec<String>,
}

/// Whether a server asked for another hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HelloRetry {
    /// The first one had a share of its group.
    #[default]
    No,
    /// By a HelloRetryRequest.
    Yes,
}

/// Why a probe can't be drawn.
#[derive(Debug, Error)]
pub enum ProbeProblem {
    /// It is no probe's document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is of no server.
    #[error("host: {0:?} is no NAME:PORT such as example.com:443")]
    Host(String),
    /// There is nothing to draw.
    #[error("chain: no certificate was seen: probe again")]
    NoChain,
    /// There is more than a page can have.
    #[error(
        "chain: {count} certificates in {bytes} bytes: at most {MOST_CERTIFICATES} in {MOST_CHAIN} are drawn"
    )]
    LongChain {
        /// How many certificates were seen.
        count: usize,
        /// How many bytes they have.
        bytes: usize,
    },
}

/// What a number may be on a page: from, to, and in what unit.
type Range = (f64, f64, &'static str);

const RTT: Range = (0.1, 10_000.0, "ms");
const RATE: Range = (0.01, 100_000.0, "Mbit/s");
const WINDOW: Range = (1.0, 500.0, "segments");
/// Of an MTU from 576 to 9000, as `--mtu` takes it.
const MSS: Range = (524.0, 8948.0, "bytes");
/// Of the response, as an address has it.
const RESPONSE: Range = (0.0, 4_194_304.0, "bytes");
/// The most bytes of a chain.
const MOST_CHAIN: usize = 200_000;

impl Probe {
    /// Reads a probe's JSON.
    ///
    /// # Errors
    ///
    /// What is wrong with it, where, and the mend, in one line.
    pub fn read(text: &str) -> Result<Probe, ProbeProblem> {
        Probe::of(&Document::read(text)?)
    }

    /// What a page can draw of it.
    ///
    /// # Errors
    ///
    /// What keeps it from being drawn at all, in one line.
    pub fn of(document: &Document) -> Result<Probe, ProbeProblem> {
        let host = host(document)?;
        let chain = chain(document)?;
        let mut notes = Vec::new();
        let group = group(document, &mut notes);
        note_unknown_keys(document, &mut notes);
        let window = window(document, &mut notes);
        let supposed = supposed(document, &mut notes);
        let mut drawn = |what: &str, number: Option<f64>, range| {
            number.map(|number| drawn(what, number, range, &mut notes))
        };
        // Whole numbers stay whole between whole ends.
        let whole = |number: f64| number as u32;
        // What an address can say: whole nanoseconds, and whole bits a second.
        let millionths = |number: f64| (number * 1e6).round() / 1e6;
        let rate = document.rate_mbit;
        let rate = rate.unwrap_or_else(|| explain::supposed_rate(document));
        let rate = (rate * 1e6).floor() / 1e6;
        let mss = drawn("The segment", document.mss.map(f64::from), MSS).map(whole);
        let segment = mss.map_or(framing::MSS, |mss| mss as usize);
        let payload = explain::payload(document, segment).map(|bytes| bytes.0 as f64);
        Ok(Probe {
            rtt_ms: drawn("The round trip", document.rtt_ms.map(millionths), RTT),
            rate_mbit: drawn("The rate", Some(rate), RATE).unwrap_or(rate),
            initial_window: drawn("The initial window", Some(window.into()), WINDOW).map(whole),
            mss,
            response: drawn("The response", payload, RESPONSE).map(|bytes| bytes as u64),
            host,
            group,
            chain,
            supposed,
            hello_retry: if document.tls.hello_retry {
                HelloRetry::Yes
            } else {
                HelloRetry::No
            },
            sends: response::sends(document),
            tickets: explain::tickets(document),
            notes,
        })
    }

    /// An arm whose handshake is as this server's are.
    pub(super) fn as_seen(&self, arm: Arm) -> Arm {
        match self.hello_retry {
            HelloRetry::Yes => explain::with_retry(arm),
            HelloRetry::No => arm,
        }
    }

    /// What its server does besides its handshake and its chain, that a page draws, in a sentence; empty where that is nothing.
    pub(super) fn besides(&self) -> String {
        let mut does = Vec::new();
        if self.hello_retry == HelloRetry::Yes {
            does.push("asks for another hello first (HelloRetryRequest)".to_owned());
        }
        if let Some(tickets) = self.chain.seen.ticket_wire_bytes() {
            does.push(format!(
                "sends {tickets} bytes of tickets before its response"
            ));
        }
        does.extend(self.sends.unusual.iter().cloned());
        match does.split_last() {
            None => String::new(),
            Some((only, [])) => format!("Its server {only}. That is drawn with any chain."),
            Some((last, others)) => {
                format!(
                    "Its server {}, and {last}. That is drawn with any chain.",
                    others.join(", ")
                )
            }
        }
    }
}

fn host(document: &Document) -> Result<String, ProbeProblem> {
    let host = &document.host;
    if Host::parse(host).is_none() || host.contains('/') {
        return Err(ProbeProblem::Host(host.chars().take(60).collect()));
    }
    Ok(host.clone())
}

fn chain(document: &Document) -> Result<OwnChain, ProbeProblem> {
    let chain = OwnChain::seen(document).ok_or(ProbeProblem::NoChain)?;
    let (count, bytes) = (chain.certificates.len(), chain.certificate_bytes());
    if count > MOST_CERTIFICATES || bytes > MOST_CHAIN {
        return Err(ProbeProblem::LongChain { count, bytes });
    }
    Ok(chain)
}

fn group(document: &Document, notes: &mut Vec<String>) -> Group {
    let Some(name) = &document.group else {
        return USUAL_GROUP;
    };
    name.parse().unwrap_or_else(|_| {
        notes.push(format!(
            "The key exchange was {}, whose sizes are not known here: it is drawn as {USUAL_GROUP}.",
            word(name)
        ));
        USUAL_GROUP
    })
}

fn note_unknown_keys(document: &Document, notes: &mut Vec<String>) {
    for certificate in document.chain.iter().filter(|one| one.key().is_none()) {
        let note = format!(
            "A certificate's key is of {}, which is not known here: only its bytes count.",
            word(&certificate.algorithm)
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// The initial window in segments: one number, also where a range was seen.
fn window(document: &Document, notes: &mut Vec<String>) -> u32 {
    let window = explain::initial_window(document);
    let seen = document.window.as_ref();
    let seen = seen.filter(|seen| seen.certainty != Certainty::Uncertain);
    if let (None, Some(seen)) = (document.initial_window, seen) {
        notes.push(format!(
            "The initial window was seen as {}: it is drawn as {window}.",
            seen.to_text(),
        ));
    }
    window
}

/// See [`Probe::supposed`].
fn supposed(document: &Document, notes: &mut Vec<String>) -> Vec<(KeyAlgorithm, OwnChain)> {
    let supposed = explain::SUPPOSED
        .into_iter()
        .filter_map(|key| Some((key, OwnChain::supposed(document, key)?)));
    let supposed: Vec<_> = supposed.collect();
    if supposed.is_empty() && !document.tls.version.is_empty() {
        notes.push(
            "The probe does not say what its certificates consist of, so chains of ML-DSA are Lastbyte's own: probe again."
                .to_owned(),
        );
    }
    supposed
}

/// The number within what pages have.
fn drawn(what: &str, number: f64, (least, most, unit): Range, notes: &mut Vec<String>) -> f64 {
    let drawn = number.clamp(least, most);
    if drawn != number {
        notes.push(format!(
            "{what} was {number} {unit}: it is drawn as {drawn} {unit}, as pages have {least} to {most}."
        ));
    }
    drawn
}

/// A name of somebody else's, short enough for a line.
fn word(text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    lastbyte_link::visible(&text)
}
