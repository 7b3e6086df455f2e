//! What readers call arms.

use super::{Quantity, Question, Study};

/// What a study says of an arm to whoever reads its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legend {
    /// Its name in the study.
    pub arm: String,
    /// What readers know it by, in place of that.
    pub title: Option<String>,
    /// What it is, in one line.
    pub about: Option<String>,
}

impl Study {
    /// Characters of a title, at most: it stands in the head of a narrow column.
    pub const LONGEST_TITLE: usize = 40;
    /// Characters of what is said about an arm, at most.
    pub const LONGEST_ABOUT: usize = 200;

    /// What an arm is, where the study says it.
    pub fn about(&self, arm: &str) -> Option<&str> {
        let mut legends = self.legends.iter();
        legends.find(|legend| legend.arm == arm)?.about.as_deref()
    }

    /// The title of an arm, or else its name.
    pub fn title_of<'a>(&'a self, arm: &'a str) -> &'a str {
        let legend = self.legends.iter().find(|legend| legend.arm == arm);
        let title = legend.and_then(|legend| legend.title.as_deref());
        title.unwrap_or(arm)
    }

    /// Every place in which it names an arm.
    pub fn arm_names_mut(&mut self) -> Vec<&mut String> {
        let experiments = (self
            .measures
            .iter_mut()
            .map(|measure| &mut measure.experiment))
        .chain(
            self.searches
                .iter_mut()
                .map(|search| &mut search.experiment),
        );
        let mut names: Vec<&mut String> = experiments
            .flat_map(|experiment| experiment.arms.iter_mut().map(|arm| &mut arm.name))
            .collect();
        names.extend(self.figures.iter_mut().flat_map(|figure| &mut figure.arms));
        let checks = self.claims.iter_mut().flat_map(|claim| &mut claim.checks);
        let places = self
            .answer
            .iter_mut()
            .flat_map(|answer| answer.places_mut());
        let questions = (self
            .published
            .iter_mut()
            .map(|published| &mut published.question))
        .chain(checks.map(|check| &mut check.question))
        .chain(places.map(|place| &mut place.question));
        names.extend(questions.flat_map(Question::arm_names_mut));
        names.extend(self.legends.iter_mut().map(|legend| &mut legend.arm));
        names
    }
}

impl Question {
    fn arm_names_mut(&mut self) -> Vec<&mut String> {
        let of = match &mut self.quantity {
            Quantity::Later { of } | Quantity::Sooner { of } => of.as_mut(),
            Quantity::Ratio { of } | Quantity::Multiple { of } => Some(of),
            Quantity::Time
            | Quantity::Increase
            | Quantity::Slowdown { .. }
            | Quantity::Authentication
            | Quantity::Message(_) => None,
        };
        std::iter::once(&mut self.arm).chain(of).collect()
    }
}
