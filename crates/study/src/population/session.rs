//! How connections begin: in full, resumed, or resumed with early data.

use std::sync::Arc;

use lastbyte_link::Probability;
use lastbyte_sizes::Resumption;

use super::{Draw, Population};

/// Which connections of an arm resume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sessions {
    /// Those that the population says, if it says any; else all begin as the arm does.
    #[default]
    Population,
    /// All begin as the arm does, whatever a population says.
    Fixed,
    /// So many of a population.
    Share {
        /// Those that resume.
        resumes: Probability,
        /// Those among them that send early data.
        early_data: Probability,
    },
}

/// Which connections of a population resume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Those that resume.
    pub resumes: ByClass,
    /// Those among them that send early data.
    pub early_data: ByClass,
}

impl Shares {
    /// Whether either is another one for each class.
    pub(super) fn are_by_class(&self) -> bool {
        [&self.resumes, &self.early_data]
            .iter()
            .any(|share| matches!(share, ByClass::Each(_)))
    }
}

/// A share, or one for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByClass {
    /// Of all.
    All(Probability),
    /// Of each class; of those that are not named, none.
    Each(Vec<(String, Probability)>),
}

impl Default for ByClass {
    fn default() -> ByClass {
        ByClass::All(Probability::ZERO)
    }
}

impl ByClass {
    /// That of a class.
    pub(super) fn of(&self, class: &Option<Arc<str>>) -> Probability {
        match self {
            ByClass::All(share) => *share,
            ByClass::Each(classes) => {
                let named = classes
                    .iter()
                    .find(|(name, _)| Some(&**name) == class.as_deref());
                named.map_or(Probability::ZERO, |(_, share)| *share)
            }
        }
    }

    /// The largest that there is.
    pub(super) fn most(&self) -> f64 {
        match self {
            ByClass::All(share) => share.fraction(),
            ByClass::Each(classes) => {
                let shares = classes.iter().map(|(_, share)| share.fraction());
                shares.fold(0.0, f64::max)
            }
        }
    }
}

impl Sessions {
    /// The shares that resume, and that send early data among them, if these are the arm's own.
    pub(crate) fn shares(self) -> (Probability, Probability) {
        match self {
            Sessions::Share {
                resumes,
                early_data,
            } => (resumes, early_data),
            Sessions::Population | Sessions::Fixed => (Probability::ZERO, Probability::ZERO),
        }
    }

    /// How connection `index`, which drew this, begins. `usual` is the arm's own way.
    pub(super) fn of(
        self,
        population: &Population,
        draw: &Draw,
        index: u32,
        usual: Resumption,
    ) -> Resumption {
        match (self, draw.session) {
            // What is listed is of one arm already.
            (_, Some(session)) if population.listed.is_some() => session,
            (Sessions::Population, Some(session)) => session,
            (Sessions::Population, None) | (Sessions::Fixed, _) => usual,
            (
                Sessions::Share {
                    resumes,
                    early_data,
                },
                _,
            ) => population.drawn_session(resumes, early_data, index),
        }
    }

    /// How connections may begin, each way once.
    pub(super) fn possible(self, population: &Population, usual: Resumption) -> Vec<Resumption> {
        if let Some(listed) = &population.listed {
            let mut all = Vec::new();
            for session in listed.draws.iter().filter_map(|draw| draw.session) {
                if !all.contains(&session) {
                    all.push(session);
                }
            }
            return all;
        }
        let (resumes, early_data) = match self {
            Sessions::Population if population.draws_sessions() => {
                let shares = population.shares.clone().unwrap_or_default();
                let resumes = population.most_that_resume().unwrap_or_default();
                (resumes, shares.early_data.most())
            }
            Sessions::Population | Sessions::Fixed => return vec![usual],
            Sessions::Share {
                resumes,
                early_data,
            } => (resumes.fraction(), early_data.fraction()),
        };
        match (resumes > 0.0, early_data > 0.0) {
            (false, _) => vec![Resumption::Full],
            (true, false) => vec![Resumption::Full, Resumption::Ticket],
            (true, true) => vec![Resumption::Full, Resumption::Ticket, Resumption::EarlyData],
        }
    }
}
