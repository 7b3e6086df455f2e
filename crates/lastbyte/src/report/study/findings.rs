//! All that a page tells of a run, from its folder.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::results::{
    Answer, ArmSummary, CellSummary, Dataset, Environment, Estimate, FolderError, Group,
    Measurements, Metric, MetricSummary, Percentile, Role, SampleKey, Summary, Validity, family,
};
use crate::study::{Cell, Quantity, Question, Study};
use crate::validate::arithmetic;

/// What was measured, summarised.
pub struct Findings {
    /// What was to be measured, and how it is drawn.
    pub study: Study,
    /// What carried the bytes: `live` or `virtual`.
    pub engine: String,
    /// Where the run began.
    pub environment: Environment,
    /// One for each measure. What counts as a difference is chosen among all of them together.
    pub summaries: Vec<Summary>,
    /// Every connection's times.
    pub(super) times: Measurements,
    /// What flight arithmetic says, where it says anything, in the order of [`Metric::ALL`].
    arithmetic: BTreeMap<SampleKey, [Option<Duration>; 4]>,
}

impl Findings {
    /// Reads the folder of a run, complete or not.
    ///
    /// # Errors
    ///
    /// When its rows can't be read.
    pub fn read(data: &Dataset) -> Result<Findings, FolderError> {
        let mut findings = Findings {
            study: data.study.clone(),
            engine: data.manifest.engine.clone(),
            environment: data.manifest.environment.clone(),
            summaries: Vec::new(),
            times: Measurements::default(),
            arithmetic: BTreeMap::new(),
        };
        let Findings {
            summaries,
            times,
            arithmetic: computed,
            ..
        } = &mut findings;
        let see = |key: SampleKey, sample: &_| {
            let measure = data.study.measures.get(key.measure);
            let Some(experiment) = measure.map(|measure| &measure.experiment) else {
                return;
            };
            let (Some(arm), Some(cell)) =
                (experiment.arms.get(key.arm), experiment.cells.get(key.cell))
            else {
                return;
            };
            times.add(key, sample, sample.validity(arm));
            if let Some(times) =
                arithmetic(&data.manifest.engine, experiment.cpu, arm, cell, sample)
            {
                computed.insert(key, times);
            }
        };
        data.summarise_seeing(see, |_, _, summary| {
            summaries.push(summary);
            Ok::<_, FolderError>(())
        })?;
        let p_values = findings.summaries.iter().flat_map(Summary::p_values);
        let critical = family::critical(p_values.collect());
        for summary in &mut findings.summaries {
            summary.critical = critical;
        }
        Ok(findings)
    }

    /// Draws with the figures, published numbers and claims of another version of the study.
    ///
    /// # Errors
    ///
    /// When that measures something else.
    pub fn drawn_by(self, study: Study) -> Result<Findings, String> {
        if study.measures != self.study.measures {
            return Err(format!(
                "\"{}\" measures something else than what was run: name the study that was run, in which only \
                 figures, published numbers and claims are others",
                study.path.display()
            ));
        }
        Ok(Findings {
            study: Study {
                percentiles: self.study.percentiles.clone(),
                ..study
            },
            ..self
        })
    }

    pub(super) fn cell(&self, (measure, cell): (usize, usize)) -> Option<&Cell> {
        self.study.measures.get(measure)?.experiment.cells.get(cell)
    }

    pub(super) fn cell_summary(&self, (measure, cell): (usize, usize)) -> Option<&CellSummary> {
        self.summaries.get(measure)?.cells.get(cell)
    }

    pub(super) fn metric(
        &self,
        cell: (usize, usize),
        arm: &str,
        metric: Metric,
    ) -> Option<&MetricSummary> {
        let arms = &self.cell_summary(cell)?.arms;
        let arm = arms.iter().find(|known| known.label == arm)?;
        Some(arm.metric(metric))
    }

    fn tells(&self, percentile: Percentile) -> bool {
        let mut summaries = self.summaries.iter();
        summaries.all(|summary| summary.percentiles.contains(&percentile))
    }

    /// One number of one cell, or of several whose connections are thrown together.
    pub(super) fn number(
        &self,
        cells: &[(usize, usize)],
        question: &Question,
        percentile: Percentile,
    ) -> Option<Estimate<f64>> {
        match (cells, &question.quantity) {
            ([cell], Quantity::Time) if self.tells(percentile) => {
                let metric = self.metric(*cell, &question.arm, question.metric)?;
                let time = metric.percentiles.get(&percentile)?.ok()?;
                Some(time.map(|time| time.as_secs_f64() * 1e3))
            }
            ([cell], Quantity::Increase) if self.tells(percentile) => {
                let metric = self.metric(*cell, &question.arm, question.metric)?;
                let increase = metric.increases.get(&percentile)?.ok()?;
                Some(increase.map(|percent| percent.0))
            }
            _ => {
                let group = Group {
                    cells: cells.to_vec(),
                };
                let numbers = self.times.numbers(&self.study, question, &group).ok()?;
                let place = question
                    .percentiles
                    .iter()
                    .position(|known| *known == percentile)?;
                numbers.get(place).copied().flatten()
            }
        }
    }

    /// Answers to a question. What the summaries hold is not resampled once more.
    pub(super) fn answers(&self, question: &Question) -> Vec<Answer> {
        let is_summarised = matches!(question.quantity, Quantity::Time | Quantity::Increase)
            && question.pool.is_empty();
        if !is_summarised {
            return self.times.answers(&self.study, question);
        }
        let cells = (self.study.measures_named(&question.measures)).flat_map(|(index, measure)| {
            let cells = measure.experiment.cells_where(&question.cells);
            cells.map(move |(cell, _)| (index, cell))
        });
        let answers = cells.flat_map(|cell| {
            let answer = move |percentile: &Percentile| Answer {
                group: Group { cells: vec![cell] },
                percentile: *percentile,
                number: self.summarised(cell, question, *percentile),
            };
            question.percentiles.iter().map(answer)
        });
        answers.collect()
    }

    /// # Errors
    ///
    /// Why there is no such number, or none that may be trusted.
    fn summarised(
        &self,
        cell: (usize, usize),
        question: &Question,
        percentile: Percentile,
    ) -> Result<Estimate<f64>, String> {
        let arms = self.cell_summary(cell).map(|summary| &*summary.arms);
        let arms = arms.unwrap_or_default();
        let is_asked = |arm: &&ArmSummary| arm.label == question.arm;
        let own = arms.iter().find(is_asked);
        let own = own.ok_or_else(|| format!("{} was not measured there", question.arm))?;
        let baseline = arms.iter().find(|arm| arm.role == Role::Baseline);
        let compared = baseline.filter(|_| question.quantity == Quantity::Increase);
        for arm in [Some(own), compared].into_iter().flatten() {
            if let Validity::Invalid(reason) = &arm.validity {
                return Err(format!("{} is not to be trusted: {reason}", arm.label));
            }
        }
        self.number(&[cell], question, percentile)
            .ok_or_else(|| "connections failed, or there is no such time".to_owned())
    }

    /// What flight arithmetic says of one sample.
    pub(super) fn computed(
        &self,
        (measure, cell): (usize, usize),
        arm: usize,
        metric: Metric,
    ) -> Option<Duration> {
        let times = self.arithmetic.get(&SampleKey { measure, cell, arm })?;
        let place = Metric::ALL.iter().position(|known| *known == metric)?;
        times.get(place).copied().flatten()
    }
}
