//! Which packets are lost, as `loss_event` and `loss_gilb_ell` in `net/sched/sch_netem.c` (Linux
//! 6.12) decide it, with the integers that `tc` gives them.

use std::fmt;
use std::str::FromStr;

use crate::UnknownName;
use crate::luck::Draw;
use crate::{Probability, UnitError};

/// How packets are lost.
///
/// Written `1%` when random, `1% in bursts of 4` by the mean length of bursts, and
/// `gemodel:P[/R[/1-H[/1-K]]]` with the parameters of `tc`'s `loss gemodel` and its defaults: R is
/// 1-P, 1-H is 100 %, 1-K is 0 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each packet alone, with this probability: 0 % never, 100 % always, and a packet that is
    /// lost at 1 % is lost at 3 % too.
    Random(Probability),
    /// In bursts, by what can be counted: [`GilbertElliott`](Loss::GilbertElliott) whose bad state
    /// loses all and whose good one nothing (Gilbert's model), with R = 1 / `length` and
    /// P = R * `share` / (1 - `share`).
    Bursts {
        /// The share of packets lost in the long run.
        share: Probability,
        /// How many packets in a row are lost, in the mean.
        length: BurstLength,
    },
    /// In bursts: the model of Gilbert and Elliott. The network is in a good or in a bad state,
    /// at first in the good one. Each packet may change it, for the packets after it. Time does
    /// not: a sender that waits for a timeout finds the burst where it left it.
    GilbertElliott {
        /// That a packet turns the good state into the bad one: P.
        to_bad: Probability,
        /// That a packet turns the bad state into the good one: R. Bursts last 1/R packets.
        to_good: Probability,
        /// The share lost in the bad state: 1-H.
        loss_in_bad: Probability,
        /// The share lost in the good state: 1-K.
        loss_in_good: Probability,
    },
}

impl Loss {
    /// No packet is lost.
    pub const NONE: Loss = Loss::Random(Probability::ZERO);

    /// The share of packets lost in the long run.
    #[must_use]
    pub fn mean(self) -> Probability {
        match self {
            Loss::Random(loss) | Loss::Bursts { share: loss, .. } => loss,
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            } => {
                let changes = to_bad.fraction() + to_good.fraction();
                if changes == 0.0 {
                    return loss_in_good;
                }
                let bad = to_bad.fraction() / changes;
                let mean = bad * loss_in_bad.fraction() + (1.0 - bad) * loss_in_good.fraction();
                Probability::from_fraction(mean.min(1.0)).unwrap_or_default()
            }
        }
    }

    /// How likely the first packet of a connection is lost, in each direction.
    #[must_use]
    pub fn of_first(self) -> Probability {
        match self {
            Loss::Random(loss) => loss,
            Loss::Bursts { .. } => Probability::ZERO,
            Loss::GilbertElliott { loss_in_good, .. } => loss_in_good,
        }
    }

    /// What more there is to tell than the [mean](Loss::mean): the text of a loss that is not
    /// random.
    #[must_use]
    pub fn model(self) -> Option<String> {
        match self {
            Loss::Random(_) => None,
            Loss::Bursts { .. } | Loss::GilbertElliott { .. } => Some(self.to_string()),
        }
    }

    /// The same in `tc`'s words: random, or with the parameters of the model.
    #[must_use]
    pub fn in_tc(self) -> Loss {
        match self {
            Loss::Random(_) | Loss::GilbertElliott { .. } => self,
            Loss::Bursts { share, length } => {
                let share = share.fraction();
                let of = |fraction: f64| Probability::from_fraction(fraction).unwrap_or_default();
                Loss::GilbertElliott {
                    to_bad: of((share / (length.0 * (1.0 - share))).min(1.0)),
                    to_good: of(1.0 / length.0),
                    loss_in_bad: Probability::ONE,
                    loss_in_good: Probability::ZERO,
                }
            }
        }
    }

    /// Losses of this `share` in bursts of this mean `length`.
    ///
    /// # Errors
    ///
    /// When so many can't be lost in bursts that are so short, as a packet arrives between each and the next.
    fn of_bursts(share: Probability, length: BurstLength, text: &str) -> Result<Loss, UnitError> {
        if share == Probability::ZERO {
            return Ok(Loss::NONE);
        }
        let most = length.0 / (length.0 + 1.0);
        if share.fraction() <= most {
            return Ok(Loss::Bursts { share, length });
        }
        let shown = (most * 1e4).floor() / 1e2;
        let least = share.fraction() / (1.0 - share.fraction());
        let longer = if least.is_finite() {
            format!(", or bursts of {}", (least * 1e2).ceil() / 1e2)
        } else {
            String::new()
        };
        Err(UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            hint: format!(
                "can't be: a packet arrives between two bursts, so those of {length} lose {shown}% at most: lower the loss{longer}"
            ),
        })
    }

    /// Decides about a packet: `draw` gives 32 even bits for each decision.
    pub(crate) fn strikes(self, state: &mut State, draw: impl Fn(Draw) -> u32) -> bool {
        match self {
            Loss::Random(loss) => {
                let loss = loss.to_netem();
                loss != 0 && loss >= draw(Draw::Loss)
            }
            Loss::Bursts { .. } => self.in_tc().strikes(state, draw),
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            } => {
                let (next, change, lost) = match state {
                    State::Good => (
                        State::Bad,
                        to_bad,
                        draw(Draw::Loss) < loss_in_good.to_netem(),
                    ),
                    State::Bad => (
                        State::Good,
                        to_good,
                        draw(Draw::Loss) > u32::MAX - loss_in_bad.to_netem(),
                    ),
                };
                if draw(Draw::Change) < change.to_netem() {
                    *state = next;
                }
                lost
            }
        }
    }
}

/// How many packets in a row a burst loses, in the mean: 1 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLength(f64);

// It is never NaN.
impl Eq for BurstLength {}

impl BurstLength {
    /// `None` unless `packets` is between 1 and 2^32.
    #[must_use]
    pub fn new(packets: f64) -> Option<BurstLength> {
        const MOST: f64 = 4_294_967_296.0;
        (1.0..=MOST)
            .contains(&packets)
            .then_some(BurstLength(packets))
    }

    /// In packets.
    #[must_use]
    pub fn packets(self) -> f64 {
        self.0
    }
}

impl FromStr for BurstLength {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<BurstLength, UnitError> {
        let is_decimal = |c: char| c.is_ascii_digit() || c == '.';
        let number: Option<f64> = Some(text)
            .filter(|text| text.chars().all(is_decimal))
            .and_then(|text| text.parse().ok());
        match number {
            Some(packets) => BurstLength::new(packets).ok_or_else(|| UnitError::OutOfRange {
                quantity: "burst",
                text: text.into(),
                hint: "is out of range: one packet is the shortest, and 4294967296 are the longest"
                    .into(),
            }),
            None => Err(UnitError::NotANumber {
                quantity: "number of packets",
                text: text.into(),
                example: "4",
            }),
        }
    }
}

impl fmt::Display for BurstLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

/// Where the model of Gilbert and Elliott is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Good,
    Bad,
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::NONE
    }
}

const MODEL: &str = "gemodel";
const BURSTS: &str = " in bursts of ";
const QUANTITY: &str = "loss";

impl FromStr for Loss {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Loss, UnitError> {
        let misshapen = || UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            hint: format!(
                "has another form: write {MODEL}:P[/R[/1-H[/1-K]]], such as \"{MODEL}:1%/10%\", or \"5%{BURSTS}4\""
            ),
        };
        if let Some((share, length)) = text.split_once(BURSTS) {
            return Loss::of_bursts(share.parse()?, length.parse()?, text);
        }
        match text.split_once(':') {
            None if text.starts_with(MODEL) => Err(misshapen()),
            None => text.parse().map(Loss::Random),
            Some((MODEL, parameters)) => {
                let parameters: Vec<Probability> = parameters
                    .split('/')
                    .map(str::parse)
                    .collect::<Result<_, _>>()?;
                let [to_bad, ref rest @ ..] = *parameters else {
                    return Err(misshapen());
                };
                let (to_good, loss_in_bad, loss_in_good) = match *rest {
                    [] => (to_bad.complement(), Probability::ONE, Probability::ZERO),
                    [r] => (r, Probability::ONE, Probability::ZERO),
                    [r, h] => (r, h, Probability::ZERO),
                    [r, h, k] => (r, h, k),
                    _ => return Err(misshapen()),
                };
                Ok(Loss::GilbertElliott {
                    to_bad,
                    to_good,
                    loss_in_bad,
                    loss_in_good,
                })
            }
            Some((model, _)) => Err(UnknownName::new("loss model", model, [MODEL]).into()),
        }
    }
}

impl fmt::Display for Loss {
    /// Without the parameters at the end that are as usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Loss::Random(loss) => loss.fmt(f),
            Loss::Bursts { share, length } => f.pad(&format!("{share}{BURSTS}{length}")),
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            } => {
                let parameters = [
                    (to_good, to_bad.complement()),
                    (loss_in_bad, Probability::ONE),
                    (loss_in_good, Probability::ZERO),
                ];
                let given = parameters
                    .iter()
                    .rposition(|(parameter, usual)| parameter != usual)
                    .map_or(0, |last| last + 1);
                let mut text = format!("{MODEL}:{to_bad}");
                for (parameter, _) in parameters.iter().take(given) {
                    text.push_str(&format!("/{parameter}"));
                }
                f.pad(&text)
            }
        }
    }
}

#[cfg(test)]
mod tests;
