//! What is asked of results: published numbers to set beside them, and claims to check.

use std::fmt;
use std::str::FromStr;

use lastbyte_sizes::Message;

use super::{Cell, Filter, Measure, Metric, Parameter, Percentile, Study, UnknownName};

/// Numbers that are asked of samples: one for each percentile of each of its cells, or of those that
/// are pooled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The measures that are asked.
    pub measures: Vec<String>,
    /// Which of their cells.
    pub cells: Filter,
    /// The arm.
    pub arm: String,
    /// The time that is asked for.
    pub metric: Metric,
    /// Its percentiles.
    pub percentiles: Vec<Percentile>,
    /// Over what connections are pooled before percentiles are taken.
    pub pool: Vec<Parameter>,
    /// What is asked of them.
    pub quantity: Quantity,
}

/// What is asked of percentiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The time, in milliseconds.
    Time,
    /// The increase over the baseline, in percent.
    Increase,
    /// How much later it comes than with another arm, in milliseconds.
    Later {
        /// The other arm; the baseline, if it is absent.
        of: Option<String>,
    },
    /// How much sooner it comes than with another arm, in milliseconds.
    Sooner {
        /// The other arm; the baseline, if it is absent.
        of: Option<String>,
    },
    /// The increase over the same arm in another cell, in percent: the one of these measures that is
    /// alike but for what the filter names.
    Slowdown {
        /// Where that cell is.
        measures: Vec<String>,
        /// What it has otherwise.
        than: Filter,
    },
    /// What the server proves itself with: its Certificate and CertificateVerify messages, in KB (1000
    /// bytes). It is the same for all percentiles.
    Authentication,
    /// Handshake messages, in bytes with their 4-byte headers. It is the same for all percentiles.
    Message(MessageSize),
    /// How much larger a chain may be, if all of it grows alike, than what another arm sends whole, until the
    /// server's first flight is full. It is the same for all percentiles.
    Multiple {
        /// The arm that sends it whole.
        of: String,
    },
    /// The increase over the baseline, as so many times that of another arm.
    Ratio {
        /// The other arm.
        of: String,
    },
}

/// Handshake messages whose bytes are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageSize {
    /// One of them.
    One(Message),
    /// ServerHello, Certificate and CertificateVerify together.
    ServerMessages,
}

impl MessageSize {
    /// All that can be asked for.
    pub fn all() -> impl Iterator<Item = MessageSize> + Clone {
        let messages = Message::all().map(MessageSize::One);
        messages.chain([MessageSize::ServerMessages])
    }

    /// The name in studies.
    pub fn name(self) -> &'static str {
        match self {
            MessageSize::One(message) => message.name(),
            MessageSize::ServerMessages => "server_messages",
        }
    }

    /// Its messages.
    pub fn messages(self) -> Vec<Message> {
        match self {
            MessageSize::One(message) => vec![message],
            MessageSize::ServerMessages => vec![
                Message::ServerHello,
                Message::Certificate,
                Message::CertificateVerify,
            ],
        }
    }
}

impl fmt::Display for MessageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MessageSize {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<MessageSize, UnknownName> {
        let mut all = MessageSize::all();
        let names = MessageSize::all().map(MessageSize::name);
        all.find(|size| size.name() == text)
            .ok_or_else(|| UnknownName::new("message", text, names))
    }
}

/// A published number: what others measured where we did.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Where it is published: `Table II`.
    pub source: String,
    /// The figure that it stands beside.
    pub figure: Option<String>,
    /// What is asked; it has one cell, or one pool of cells.
    pub question: Question,
    /// The numbers, in the order of the question's percentiles: milliseconds or percent.
    pub values: Vec<f64>,
    /// How far ours may be off: percent of a time, percentage points of an increase.
    pub within: f64,
    /// Why ours is another, if it is known.
    pub cause: Option<String>,
}

/// A published statement, and what would have to be measured for it to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name, unique in the study.
    pub id: String,
    /// What is claimed.
    pub text: String,
    /// What all must hold.
    pub checks: Vec<Check>,
    /// Why it does not hold, if that is known.
    pub cause: Option<String>,
}

/// Numbers that must lie within bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The numbers.
    pub question: Question,
    /// Their bounds, in the unit of the question's quantity.
    pub within: Bounds,
}

/// From `least` to `most`, both included; open where one is absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least.
    pub least: Option<f64>,
    /// The most.
    pub most: Option<f64>,
}

impl Quantity {
    /// The quantity as a distance in milliseconds from another arm, and which arm that is, if it is one.
    pub fn distance(&self) -> Option<Distance<'_>> {
        let (of, direction) = match self {
            Quantity::Later { of } => (of, Direction::Later),
            Quantity::Sooner { of } => (of, Direction::Sooner),
            _ => return None,
        };
        Some(Distance {
            of: of.as_deref(),
            direction,
        })
    }

    /// Whether zero of it is no difference.
    pub(crate) fn is_difference(&self) -> bool {
        match self {
            Quantity::Increase
            | Quantity::Later { .. }
            | Quantity::Sooner { .. }
            | Quantity::Slowdown { .. } => true,
            Quantity::Time
            | Quantity::Authentication
            | Quantity::Message(_)
            | Quantity::Multiple { .. }
            | Quantity::Ratio { .. } => false,
        }
    }
}

/// How much later, or sooner, a time is than with another arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance<'a> {
    /// The other arm; the baseline, if it is absent.
    pub of: Option<&'a str>,
    /// What it is to be.
    pub direction: Direction,
}

/// What counts as more than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More time.
    Later,
    /// Less.
    Sooner,
}

impl Direction {
    /// From how much later it is.
    pub fn of(self, later: f64) -> f64 {
        match self {
            Direction::Later => later,
            // No negative zero.
            Direction::Sooner => 0.0 - later,
        }
    }
}

impl Study {
    /// The measures of these names, with their places.
    pub fn measures_named<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = (usize, &'a Measure)> {
        named(&self.measures, names)
    }

    /// The cells of these measures that a filter lets through, each with the places of its measure and of
    /// itself among the measure's.
    pub fn cells_named<'a>(
        &'a self,
        names: &'a [String],
        filter: &'a Filter,
    ) -> impl Iterator<Item = ((usize, usize), &'a Cell)> {
        cells_named(&self.measures, names, filter)
    }
}

/// [`Study::cells_named`], of measures that are no study yet.
pub(super) fn cells_named<'a>(
    measures: &'a [Measure],
    names: &'a [String],
    filter: &'a Filter,
) -> impl Iterator<Item = ((usize, usize), &'a Cell)> {
    named(measures, names).flat_map(move |(measure, of)| {
        let cells = of.experiment.cells.iter().enumerate();
        let cells = cells.filter(|(_, cell)| filter.has(cell));
        cells.map(move |(cell, known)| ((measure, cell), known))
    })
}

fn named<'a>(
    measures: &'a [Measure],
    names: &'a [String],
) -> impl Iterator<Item = (usize, &'a Measure)> {
    let measures = measures.iter().enumerate();
    measures.filter(|(_, measure)| names.contains(&measure.id))
}
