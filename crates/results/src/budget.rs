//! What a chain may need: `flights > 1`, `left < 500B`, `waiting > 1%`.
//!
//! A [threshold](super::Threshold) bounds a percentile of times that were measured; a budget bounds what is known of a chain by
//! arithmetic, or of a population.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{Bytes, UnitError, format_duration, named, nearest, parse_duration};
use thiserror::Error;

use super::Percent;

/// What a chain needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The server's flights of a handshake.
    Flights,
    /// Bytes by which the chain can still grow without a flight more.
    Left,
    /// Bytes of the Certificate message.
    Certificate,
    /// Bytes of the server's handshake messages on the wire.
    Server,
    /// The share of connections that wait more than 20 ms longer.
    Waiting,
    /// How much longer each waits in the mean.
    Mean,
}

named!(Need, {
    Flights => "flights",
    Left => "left",
    Certificate => "certificate",
    Server => "server",
    Waiting => "waiting",
    Mean => "mean",
});

/// How a need is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Count,
    Bytes,
    Share,
    Time,
}

impl Need {
    fn unit(self) -> Unit {
        match self {
            Need::Flights => Unit::Count,
            Need::Left | Need::Certificate | Need::Server => Unit::Bytes,
            Need::Waiting => Unit::Share,
            Need::Mean => Unit::Time,
        }
    }

    fn is_written(self, value: f64) -> String {
        match self.unit() {
            Unit::Count => format!("{value}"),
            Unit::Bytes => format!("{value}B"),
            Unit::Share => format!("{}%", Percent(100.0 * value).0),
            Unit::Time => {
                if value < 0.0 {
                    format!("-{}", format_duration(Duration::from_secs_f64(-value)))
                } else {
                    format_duration(Duration::from_secs_f64(value))
                }
            }
        }
    }

    /// Such a bound, or what it should be.
    fn bound(self, text: &str) -> Result<f64, BudgetProblem> {
        let finite = |text: &str| {
            text.parse()
                .ok()
                .filter(|value: &f64| value.is_finite() && *value >= 0.0)
        };
        let unit = |unit| BudgetProblem::NoUnit {
            text: text.to_owned(),
            unit,
        };
        let no_share = || BudgetProblem::Share(text.to_owned());
        match self.unit() {
            Unit::Count => finite(text).ok_or_else(|| BudgetProblem::Count {
                text: text.to_owned(),
                need: self,
            }),
            Unit::Bytes if finite(text).is_some() => Err(unit("B")),
            Unit::Bytes => {
                let Bytes(bytes) = text.parse()?;
                Ok(bytes as f64)
            }
            Unit::Share => match text.strip_suffix('%').map(str::trim_end).map(finite) {
                Some(Some(percent)) => Ok(percent / 100.0),
                Some(None) => Err(no_share()),
                None if finite(text).is_some() => Err(unit("%")),
                None => Err(no_share()),
            },
            Unit::Time if finite(text).is_some() => Err(unit("ms")),
            Unit::Time => {
                let time = parse_duration(text)?;
                Ok(time.as_secs_f64())
            }
        }
    }
}

/// What makes a command fail: a need on the wrong side of a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// What is bounded.
    pub need: Need,
    side: Side,
    /// In the need's own unit: flights, bytes, a share of 1, seconds.
    bound: f64,
}

/// On which side of a bound a budget is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Side {
    const ALL: [(&'static str, Side); 4] = [
        (">=", Side::AtLeast),
        ("<=", Side::AtMost),
        (">", Side::Above),
        ("<", Side::Below),
    ];
}

/// What is known of one chain at one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The arm, or what the chain is called.
    pub of: String,
    /// Where that is, as ` over …`; empty where there is one place.
    pub place: String,
    /// In each need's own unit. What is not known is not there.
    pub needs: BTreeMap<Need, f64>,
}

/// What came of a budget for one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Within it, with the number.
    Within(String),
    /// Beyond it, with the number.
    Beyond(String),
    /// Nothing is known of that.
    Unknown,
}

/// A budget with what came of it for one chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Spending {
    /// The budget.
    pub budget: Budget,
    /// The arm, or what the chain is called, and where.
    pub of: String,
    /// What came of it.
    pub spent: Spent,
}

impl Spending {
    /// What came of each budget for each chain.
    pub fn all(budgets: &[Budget], known: &[Facts]) -> Vec<Spending> {
        let of = |budget: &Budget| {
            let budget = *budget;
            known.iter().map(move |known| Spending {
                budget,
                of: format!("{}{}", known.of, known.place),
                spent: budget.spent(known),
            })
        };
        budgets.iter().flat_map(of).collect()
    }
}

impl Budget {
    /// What came of it for one chain.
    pub fn spent(&self, known: &Facts) -> Spent {
        let Some(value) = known.needs.get(&self.need) else {
            return Spent::Unknown;
        };
        let is_beyond = match self.side {
            Side::Above => *value > self.bound,
            Side::AtLeast => *value >= self.bound,
            Side::Below => *value < self.bound,
            Side::AtMost => *value <= self.bound,
        };
        let what = format!("is {}", self.need.is_written(*value));
        if is_beyond {
            Spent::Beyond(what)
        } else {
            Spent::Within(what)
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sides = Side::ALL.into_iter();
        let sign = sides.find(|(_, side)| *side == self.side);
        let sign = sign.map_or("", |(sign, _)| sign);
        write!(
            f,
            "{} {sign} {}",
            self.need,
            self.need.is_written(self.bound)
        )
    }
}

/// The text is no [`Budget`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("budget {text:?}: {problem}")]
pub struct BudgetError {
    /// The whole text.
    pub text: String,
    /// What is wrong with it, with the remedy.
    pub problem: BudgetProblem,
}

/// What is wrong with the text of a budget.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BudgetProblem {
    /// Nothing is compared.
    #[error(
        "write NEED > BOUND, such as \"flights > 1\" or \"left < 500B\"; needs are {}",
        Need::ALL.map(Need::name).join(", ")
    )]
    Form,
    /// It is compared otherwise.
    #[error("compare with >, >=, < or <=")]
    Sign,
    /// There is no such need.
    #[error("unknown need {need:?}: {}", nearest(need, Need::ALL.map(Need::name)))]
    Need {
        /// What stands there.
        need: String,
    },
    /// A bound has no unit.
    #[error("{text:?} has no unit: write one, as in {text}{unit}")]
    NoUnit {
        /// The bound.
        text: String,
        /// The unit that it may have.
        unit: &'static str,
    },
    /// A bound is no count.
    #[error("{text:?} is no number of {need}: write one such as 1")]
    Count {
        /// The bound.
        text: String,
        /// What is counted.
        need: Need,
    },
    /// A bound is no share.
    #[error("{0:?} is no share: write one such as 1%")]
    Share(String),
    /// A bound is no quantity in its unit.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Budget, BudgetError> {
        parse(text).map_err(|problem| BudgetError {
            text: text.to_owned(),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<Budget, BudgetProblem> {
    let start = text.find(['<', '>', '=', '!']).ok_or(BudgetProblem::Form)?;
    let (need, rest) = text.split_at(start);
    let mut sides = Side::ALL.into_iter();
    let (side, bound) = sides
        .find_map(|(sign, side)| Some((side, rest.strip_prefix(sign)?)))
        .ok_or(BudgetProblem::Sign)?;
    let need = need.trim();
    let mut needs = Need::ALL.into_iter();
    let need = needs
        .find(|known| known.name() == need)
        .ok_or_else(|| BudgetProblem::Need {
            need: need.to_owned(),
        })?;
    Ok(Budget {
        need,
        side,
        bound: need.bound(bound.trim())?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn known(need: Need, value: f64) -> Facts {
        Facts {
            needs: BTreeMap::from([(need, value)]),
            ..Facts::default()
        }
    }

    #[test]
    fn a_budget_is_exceeded_on_its_side() {
        for (text, need, within, beyond) in [
            ("flights > 1", Need::Flights, 1.0, 2.0),
            ("flights>=2", Need::Flights, 1.0, 2.0),
            ("left < 500B", Need::Left, 500.0, 499.0),
            ("left <= 0.5KB", Need::Left, 501.0, 500.0),
            ("certificate > 16KiB", Need::Certificate, 16384.0, 16385.0),
            ("waiting > 1%", Need::Waiting, 0.01, 0.0101),
            ("mean > 5ms", Need::Mean, 0.005, 0.0051),
        ] {
            let budget: Budget = text.parse().unwrap();
            assert!(
                matches!(budget.spent(&known(need, within)), Spent::Within(_)),
                "{text}"
            );
            assert!(
                matches!(budget.spent(&known(need, beyond)), Spent::Beyond(_)),
                "{text}"
            );
            assert_eq!(budget.spent(&Facts::default()), Spent::Unknown);
            // What it is written as is the same budget.
            assert_eq!(
                budget.to_string().parse::<Budget>().unwrap(),
                budget,
                "{budget}"
            );
        }
        assert_eq!(
            "left < 500B"
                .parse::<Budget>()
                .unwrap()
                .spent(&known(Need::Left, 12.0)),
            Spent::Beyond("is 12B".to_owned())
        );
    }

    #[test]
    fn what_is_no_budget_is_refused() {
        for (text, expected) in [
            ("", "write NEED > BOUND"),
            ("flights", "write NEED > BOUND"),
            ("flight > 1", "did you mean \"flights\""),
            ("flights = 1", "compare with >"),
            ("flights > one", "is no number of flights"),
            ("flights > -1", "is no number of flights"),
            ("left < 500", "write one, as in 500B"),
            ("left < 500ms", "500ms"),
            ("waiting > 1", "write one, as in 1%"),
            ("waiting > x%", "is no share"),
            ("mean > 5", "write one, as in 5ms"),
            ("mean > nan", "nan"),
        ] {
            let refused = text.parse::<Budget>().unwrap_err().to_string();
            assert!(
                refused.contains(expected) && !refused.contains('\n'),
                "{text}: {refused}"
            );
        }
    }
}
