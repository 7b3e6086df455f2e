//! How far two percentiles may be apart and still agree: `p50=0.5%`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::{NoPercentile, Percent, Percentile};
use lastbyte_study::Cell;

/// How far a percentile of one side may be from that of the other, either way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The percentile.
    pub percentile: Percentile,
    /// Of the first side's percentile; more than zero.
    pub most: Percent,
}

/// The margins of a comparison, which are stated before it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Margins {
    /// For cells without loss.
    pub without_loss: Vec<Margin>,
    /// For cells with loss, whose times vary by whole retransmission timeouts.
    pub with_loss: Vec<Margin>,
}

impl Margins {
    /// The margins of this cell.
    pub fn of(&self, cell: &Cell) -> &[Margin] {
        if cell.has_loss() {
            &self.with_loss
        } else {
            &self.without_loss
        }
    }

    /// The percentiles that are reported: the usual ones, and those that have a margin.
    pub fn percentiles(&self) -> Vec<Percentile> {
        let margins = self.without_loss.iter().chain(&self.with_loss);
        let mut percentiles: Vec<_> = Percentile::USUAL
            .into_iter()
            .chain(margins.map(|margin| margin.percentile))
            .collect();
        percentiles.sort_unstable();
        percentiles.dedup();
        percentiles
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}%", self.percentile, self.most.0)
    }
}

impl FromStr for Margin {
    type Err = MarginError;

    fn from_str(text: &str) -> Result<Margin, MarginError> {
        parse(text).map_err(|problem| MarginError {
            text: text.to_owned(),
            problem,
        })
    }
}

/// The text is no [`Margin`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("margin {text:?}: {problem}")]
pub struct MarginError {
    /// The whole text.
    pub text: String,
    /// What is wrong with it.
    pub problem: MarginProblem,
}

/// What is wrong with the text of a margin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MarginProblem {
    /// It does not have two parts.
    #[error("write PERCENTILE=PERCENT, such as \"p50=0.5%\"")]
    Form,
    /// There is no such percentile.
    #[error(transparent)]
    Percentile(#[from] NoPercentile),
    /// The number stands alone.
    #[error("missing unit in {0:?}: did you mean \"{0}%\"?")]
    NoUnit(String),
    /// The percentage is no number above zero.
    #[error("{0:?} is no percentage above zero: write one such as \"0.5%\"")]
    Percentage(String),
}

fn parse(text: &str) -> Result<Margin, MarginProblem> {
    let (percentile, most) = text.split_once('=').ok_or(MarginProblem::Form)?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let most = most.trim();
    let Some(digits) = most.strip_suffix('%') else {
        return Err(match number(most) {
            Some(_) => MarginProblem::NoUnit(most.to_owned()),
            None => MarginProblem::Percentage(most.to_owned()),
        });
    };
    Ok(Margin {
        percentile: percentile.trim().parse()?,
        most: number(digits)
            .filter(|most| *most > 0.0 && most.is_finite())
            .map(Percent)
            .ok_or_else(|| MarginProblem::Percentage(most.to_owned()))?,
    })
}
