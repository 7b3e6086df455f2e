//! What to mind when reading results, and what to do about it.

use std::fmt;
use std::time::Duration;

use lastbyte_flights::Reason;

use super::failures::Failures;
use super::look::{BEYOND, Fault, Imprecision};
use super::modes::Mode;
use super::number::{milliseconds, percent, percent_digits};
use super::{Metric, Percent, Percentile};
use lastbyte_study::{Connections, Precision};

/// What to mind, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// What to mind.
    pub problem: Problem,
    /// The names of the cells that have it, unless there is only one cell.
    pub cells: Vec<String>,
}

/// What to mind when reading results.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A sample is not what its arm says, or the engine disturbed it.
    Invalid {
        /// The arm.
        arm: String,
        /// Why, in one line with the hint.
        reason: String,
    },
    /// Connections failed.
    Failures {
        /// The arm.
        arm: String,
        /// How many failed.
        failed: u32,
        /// Of how many.
        connections: u32,
        /// Why, and how many for each cause, the most frequent first.
        reasons: Vec<Failures>,
    },
    /// What was measured is not as precise as was asked for.
    Imprecise {
        /// The arm.
        arm: String,
        /// What is known least.
        imprecision: Imprecision,
        /// Connections measured.
        connections: u32,
        /// What was asked for.
        precision: Precision,
    },
    /// Too few connections lie beyond some percentiles.
    TooFew {
        /// The percentiles.
        percentiles: Vec<Percentile>,
        /// Connections measured.
        connections: u32,
        /// Connections that would do.
        enough: u32,
    },
    /// About as many connections lose their SYN or SYN-ACK as lie beyond a percentile.
    Cliff {
        /// The percentile.
        percentile: Percentile,
        /// The share of connections that wait for the SYN's retransmission timeout.
        share: f64,
    },
    /// The connections around a percentile are far apart.
    Gap {
        /// The arm.
        arm: String,
        /// The percentile of its TTLB.
        percentile: Percentile,
        /// The connection just below it.
        below: Duration,
        /// The connection just above it.
        above: Duration,
    },
    /// Packets were sent again over a link that loses none.
    SentAgain {
        /// The arm.
        arm: String,
        /// Connections in which they were.
        again: u32,
        /// Connections measured.
        connections: u32,
        /// Why, if arithmetic has that.
        reason: Option<Reason>,
    },
    /// Loads of a page end at one of several times.
    Modes {
        /// The arm.
        arm: String,
        /// Which time.
        metric: Metric,
        /// Each of them, the earliest first.
        modes: Vec<Mode>,
    },
    /// Browser and server computed in no time.
    ComputesNothing,
    /// Linux's own buffers would bind, by flight arithmetic.
    Buffers,
    /// Results that are compared with were measured otherwise.
    OtherThen {
        /// What they are called.
        name: String,
        /// What differs.
        what: String,
        /// What it was then.
        then: String,
        /// What it is now.
        now: String,
    },
    /// An arm's chain was made anew, so its keys, and lengths of signatures, are other ones.
    ChainMadeAnew {
        /// What the saved results are called.
        name: String,
        /// The arm.
        arm: String,
    },
    /// The user's own certificates have changed.
    OtherPem {
        /// What the saved results are called.
        name: String,
        /// The arm.
        arm: String,
    },
    /// Handshakes were calibrated anew.
    OtherCosts {
        /// What the saved results are called.
        name: String,
        /// The arm.
        arm: String,
    },
}

impl Problem {
    /// The arm that has it, if it is one's.
    pub fn arm_mut(&mut self) -> Option<&mut String> {
        match self {
            Problem::Invalid { arm, .. }
            | Problem::Failures { arm, .. }
            | Problem::Imprecise { arm, .. }
            | Problem::Gap { arm, .. }
            | Problem::SentAgain { arm, .. }
            | Problem::Modes { arm, .. }
            | Problem::ChainMadeAnew { arm, .. }
            | Problem::OtherPem { arm, .. }
            | Problem::OtherCosts { arm, .. } => Some(arm),
            Problem::TooFew { .. }
            | Problem::Cliff { .. }
            | Problem::ComputesNothing
            | Problem::Buffers
            | Problem::OtherThen { .. } => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.cells {
            [] => (),
            [cell] => write!(f, "{cell}: ")?,
            cells => write!(f, "in {} cells ({}): ", cells.len(), cells.join("; "))?,
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Invalid { arm, reason } => write!(f, "{arm}: not to be trusted: {reason}"),
            Problem::Failures {
                arm,
                failed,
                connections,
                reasons,
            } => write!(
                f,
                "{arm}: {failed} of {connections} connections failed ({}): they count as infinitely late; \
                 rows.parquet of a run, or `-o FILE.csv` of `lastbyte compare`, has each of them",
                counted_reasons(reasons)
            ),
            Problem::Imprecise {
                arm,
                imprecision,
                connections,
                precision,
            } => write!(
                f,
                "{arm}: after {connections} connections, {}: {}",
                describe(imprecision, *precision),
                mend(imprecision)
            ),
            Problem::TooFew {
                percentiles,
                connections,
                enough,
            } => write!(
                f,
                "fewer than {BEYOND} of {connections} connections lie beyond {}: \
                 measure {enough} or more",
                listed(percentiles)
            ),
            Problem::Cliff { percentile, share } => write!(
                f,
                "{percentile} stands on a cliff: about {} of connections lose their SYN or SYN-ACK and wait \
                 1 s, so it can fall on either side: compare other percentiles, or measure \
                 thousands of connections",
                percent(Percent(100.0 * share))
            ),
            Problem::Gap {
                arm,
                percentile,
                below,
                above,
            } => write!(
                f,
                "{arm}: {percentile} of TTLB lies in a gap between {} and {}: a few connections decide \
                 where: compare other percentiles, or measure more connections",
                milliseconds(*below),
                milliseconds(*above)
            ),
            Problem::Modes { arm, metric, modes } => write!(
                f,
                "{arm}: {} is one of {}: {}, by which responses share a flight, and a median says \
                 little: look at the shares",
                name(*metric),
                modes.len(),
                times(modes)
            ),
            Problem::SentAgain {
                arm,
                again,
                connections,
                reason,
            } => write!(
                f,
                "{arm}: {again} of {connections} connections sent packets again, although the link \
                 loses none: {}",
                cause(*reason)
            ),
            Problem::ComputesNothing => f.write_str(COMPUTES_NOTHING),
            Problem::Buffers => f.write_str(BUFFERS),
            Problem::OtherThen {
                name,
                what,
                then,
                now,
            } => write!(
                f,
                "since {name}, {what} has changed from {then} to {now}: its effect is in the changes, too"
            ),
            Problem::ChainMadeAnew { name, arm } => write!(
                f,
                "{arm}: its chain was made anew since {name}: to compare like with like, keep the folder \
                 that LASTBYTE_CACHE names"
            ),
            Problem::OtherPem { name, arm } => {
                write!(f, "{arm}: its certificates are not those of {name}")
            }
            Problem::OtherCosts { name, arm } => write!(
                f,
                "{arm}: its CPU time was calibrated anew since {name}: its effect is in the changes, too"
            ),
        }
    }
}

const COMPUTES_NOTHING: &str = "browser and server computed in no time, so all requests of a page left in one moment: \
     paints and loads come up to a round trip early: leave `--cpu none` (in a study, cpu = \"none\") out";
const BUFFERS: &str = "with Linux's own buffers the last byte would come at another time, by more than 1 % even without \
     loss: ask with `--buffers linux` (in a study, buffers = \"linux\"), too";

/// `the server reset it: 3, …`
fn counted_reasons(reasons: &[Failures]) -> String {
    let counted = |failures: &Failures| format!("{failures}: {}", failures.connections);
    let reasons: Vec<_> = reasons.iter().map(counted).collect();
    reasons.join(", ")
}

/// What to do about a lack of precision.
fn mend(imprecision: &Imprecision) -> String {
    match (imprecision.fault, imprecision.enough) {
        (Fault::Open, _) => "mend what fails, or tell other percentiles".to_owned(),
        (_, Some(enough)) => {
            format!("about {enough} would do: set `most` in a study, or ask for less precision")
        }
        (_, None) => format!(
            "more than {} would be needed: ask for less precision",
            Connections::MOST
        ),
    }
}

/// `p90, p95 and p99`
fn listed(percentiles: &[Percentile]) -> String {
    let percentiles: Vec<_> = percentiles.iter().map(Percentile::to_string).collect();
    match &*percentiles {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        few => few.concat(),
    }
}

/// `120 ms in 30 loads, …`
fn times(modes: &[Mode]) -> String {
    let time = |mode: &Mode| format!("{} in {} loads", milliseconds(mode.middle), mode.loads);
    let times: Vec<_> = modes.iter().map(time).collect();
    times.join(", ")
}

/// Why packets were sent again: arithmetic's reason, or else what else it can be.
fn cause(reason: Option<Reason>) -> String {
    reason.map_or_else(
        || {
            "its queue was full, or an acknowledgement came later than Linux waits for one"
                .to_owned()
        },
        |reason| reason.to_string(),
    )
}

/// What is not precise enough, and how far it is from that.
fn describe(imprecision: &Imprecision, precision: Precision) -> String {
    let what = format!("{} of {}", imprecision.percentile, name(imprecision.metric));
    let asked = precision.percent();
    match imprecision.fault {
        Fault::Wide(reached) => {
            let reached = percent(reached);
            format!("{what} is known to ±{reached}, not to ±{asked} %")
        }
        Fault::WideIncrease(reached) => {
            let reached = percent_digits(reached);
            format!("the increase of {what} is known to ±{reached} points, not to ±{asked}")
        }
        Fault::Open => {
            format!("{what} is not known to ±{asked} %, since it leans on connections that failed")
        }
        Fault::Sparse => format!("fewer than {BEYOND} lie beyond {what}"),
    }
}

/// A metric in a sentence.
fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Connect => "the connect time",
        Metric::Handshake => "the handshake time",
        Metric::Ttfb => "TTFB",
        Metric::Ttlb => "TTLB",
        Metric::TlsHandshake => "the TLS handshake time",
        Metric::DnsRecord => "the time to the DNS record",
        Metric::Fcp => "the first contentful paint",
        Metric::Lcp => "the largest contentful paint",
        Metric::Load => "the load event",
        Metric::SpeedIndex => "the Speed Index",
    }
}
