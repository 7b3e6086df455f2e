//! All that a page tells of a run, from its folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::inside;
use crate::waterfall::Loaded;
use lastbyte_explain::search::Searched;
use lastbyte_results::validate::arithmetic;
use lastbyte_results::{
    ArmSummary, CellSummary, Dataset, Environment, Estimate, FolderError, Group, Measurements,
    Metric, MetricSummary, Missing, Percent, Percentile, Progress, Sample, SampleKey, Summary,
    baseline, family, groups,
};
use lastbyte_study::{
    Cell, Direction, Distance, EngineName, Experiment, Figure, Quantity, Question, Search, Study,
};

/// What came of a question, for one group and one percentile.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Where.
    pub(super) group: Group,
    /// Of which percentile.
    pub(super) percentile: Percentile,
    /// In the unit of the quantity; why there is none, in one line.
    pub(super) number: Result<Estimate<f64>, Missing>,
}

/// A study is not the one that was run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OtherStudy {
    /// Its parts are others.
    #[error(
        "\"{}\" measures something else than what was run: name the study that was run, in which only \
         figures, published numbers and claims are others",
        .0.display()
    )]
    Measures(PathBuf),
    /// Its searches are others.
    #[error(
        "\"{}\" searches something else than what was run: name the study that was run",
        .0.display()
    )]
    Searches(PathBuf),
}

/// What was measured, summarised.
pub struct Findings {
    /// What was to be measured, and how it is drawn.
    pub study: Study,
    /// What carried the bytes: `live` or `virtual`.
    pub engine: EngineName,
    /// Where the run began.
    pub environment: Environment,
    /// How much of it has been measured.
    pub progress: Progress,
    /// One for each measure. What counts as a difference is chosen among all of them together.
    pub summaries: Vec<Summary>,
    /// What its searches have measured.
    pub searched: Vec<Searched>,
    /// A connection of each arm in one cell, if packets were kept.
    pub inside: Vec<inside::Seen>,
    /// A load of each arm's page in one cell, if loads were kept.
    pub loads: Vec<Loaded>,
    /// Every connection's times.
    pub(super) times: Measurements,
    /// What flight arithmetic says, where it says anything, in the order of [`Metric::FROM_CONNECT`].
    arithmetic: BTreeMap<SampleKey, [Option<Duration>; 4]>,
}

/// What is kept of samples that come by.
struct Seen<'a> {
    times: &'a mut Measurements,
    arithmetic: &'a mut BTreeMap<SampleKey, [Option<Duration>; 4]>,
}

impl Seen<'_> {
    fn see(&mut self, study: &Study, engine: EngineName, key: SampleKey, sample: &Sample) {
        let measure = study.measures.get(key.measure);
        let Some(experiment) = measure.map(|measure| &measure.experiment) else {
            return;
        };
        let user = |index| {
            let cell = experiment.cells.get(key.cell);
            cell.map_or(index, |cell| cell.user(index))
        };
        let sample = sample.waited(experiment);
        (self.times).add(key, &sample, sample.validity(experiment), user, experiment);
        if let Some(times) = arithmetic(engine, experiment, &sample) {
            self.arithmetic.insert(key, times);
        }
    }
}

impl Findings {
    /// Reads the folder of a run, complete or not.
    ///
    /// # Errors
    ///
    /// When its rows can't be read.
    pub fn read(data: &Dataset) -> Result<Findings, FolderError> {
        let environment = data.manifest.environment.clone();
        let mut findings = Findings::empty(data.study.clone(), data.manifest.engine, environment);
        findings.progress = data.progress();
        findings.searched = Searched::read_all(data.path(), &data.study)?;
        let Findings {
            summaries,
            times,
            arithmetic,
            ..
        } = &mut findings;
        let mut seen = Seen { times, arithmetic };
        data.summarise_seeing(
            |key, sample| seen.see(&data.study, data.manifest.engine, key, sample),
            |_, _, summary| {
                summaries.push(summary);
                Ok::<_, FolderError>(())
            },
        )?;
        findings.settle();
        Ok(findings)
    }

    /// What came of one experiment.
    pub fn of(experiment: Experiment, samples: &[Sample], environment: &Environment) -> Findings {
        let study = Study::single("compare", experiment);
        Findings::of_study(study, &[samples], environment)
    }

    /// What came of each measure of a study.
    pub(super) fn of_study(
        study: Study,
        samples: &[&[Sample]],
        environment: &Environment,
    ) -> Findings {
        let mut findings = Findings::empty(study, environment.engine, environment.clone());
        let Findings {
            study,
            summaries,
            times,
            arithmetic,
            ..
        } = &mut findings;
        let mut seen = Seen { times, arithmetic };
        for (index, (measure, samples)) in study.measures.iter().zip(samples).enumerate() {
            for sample in *samples {
                let key = SampleKey {
                    measure: index,
                    cell: sample.cell,
                    arm: sample.arm,
                };
                seen.see(study, environment.engine, key, sample);
            }
            let summary = Summary::new(&measure.experiment, samples, &study.percentiles);
            summaries.push(summary);
        }
        findings.settle();
        findings
    }

    /// The same, where each arm is called by the title that the study gives it: for whoever reads, not for who looks arms up.
    #[must_use]
    pub fn titled(mut self) -> Findings {
        let titles: BTreeMap<String, String> = (self.study.legends.iter())
            .filter_map(|legend| Some((legend.arm.clone(), legend.title.clone()?)))
            .collect();
        if titles.is_empty() {
            return self;
        }
        let summaries = self.summaries.iter_mut();
        let of_summaries = summaries.flat_map(|summary| {
            let arms = summary.experiment.arms.iter_mut().map(|arm| &mut arm.name);
            let samples = summary.cells.iter_mut().flat_map(|cell| &mut cell.arms);
            let warnings = summary.warnings.iter_mut();
            arms.chain(samples.map(|sample| &mut sample.label))
                .chain(warnings.filter_map(|warning| warning.problem.arm_mut()))
        });
        let searched = self.searched.iter_mut();
        let of_searches = searched.flat_map(|searched| {
            let arms = searched.search.experiment.arms.iter_mut();
            arms.map(|arm| &mut arm.name)
        });
        let of_study = self.study.arm_names_mut();
        for name in of_summaries.chain(of_searches).chain(of_study) {
            if let Some(title) = titles.get(name) {
                name.clone_from(title);
            }
        }
        self
    }

    fn empty(study: Study, engine: EngineName, environment: Environment) -> Findings {
        Findings {
            study,
            engine,
            environment,
            progress: Progress::Complete,
            summaries: Vec::new(),
            searched: Vec::new(),
            inside: Vec::new(),
            loads: Vec::new(),
            times: Measurements::default(),
            arithmetic: BTreeMap::new(),
        }
    }

    /// Chooses what counts as a difference, among all that was summarised.
    fn settle(&mut self) {
        let p_values = self.summaries.iter().flat_map(Summary::p_values);
        let critical = family::critical(p_values.collect());
        for summary in &mut self.summaries {
            summary.critical = critical;
        }
    }

    /// The last p-value that counts among all increases of the study.
    pub(super) fn critical(&self) -> f64 {
        self.summaries
            .first()
            .map_or(0.0, |summary| summary.critical)
    }

    /// Draws with the figures, published numbers and claims of another version of the study.
    ///
    /// # Errors
    ///
    /// When that measures something else.
    pub fn drawn_by(self, study: Study) -> Result<Findings, OtherStudy> {
        if study.measures != self.study.measures {
            return Err(OtherStudy::Measures(study.path));
        }
        let asks = |study: &Study| -> Vec<_> {
            let searches = study.searches.iter().cloned();
            let unpublished = searches.map(|search| Search {
                published: Vec::new(),
                ..search
            });
            unpublished.collect()
        };
        if asks(&study) != asks(&self.study) {
            return Err(OtherStudy::Searches(study.path));
        }
        let mut searched = self.searched;
        for (searched, search) in searched.iter_mut().zip(&study.searches) {
            searched.search.published.clone_from(&search.published);
        }
        Ok(Findings {
            searched,
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

    /// The percentiles that a figure draws.
    pub(super) fn percentiles_of<'a>(&'a self, figure: &'a Figure) -> &'a [Percentile] {
        match &*figure.percentiles {
            [] => &self.study.percentiles,
            percentiles => percentiles,
        }
    }

    /// Whether a question's numbers are those of one cell that is summarised.
    fn is_summarised(&self, group: &Group, question: &Question) -> bool {
        let tells = |percentile| {
            let mut summaries = self.summaries.iter();
            summaries.all(|summary| summary.percentiles.contains(percentile))
        };
        let is_implied = matches!(question.quantity, Quantity::Time | Quantity::Increase)
            || question.quantity.distance().is_some();
        is_implied && group.cells.len() == 1 && question.percentiles.iter().all(tells)
    }

    /// The numbers of a group of cells, one for each percentile of a question. What the summaries hold is
    /// not resampled once more.
    ///
    /// # Errors
    ///
    /// Why there is none at all, in one line.
    fn numbers(
        &self,
        group: &Group,
        question: &Question,
    ) -> Result<Vec<Option<Estimate<f64>>>, Missing> {
        if !self.is_summarised(group, question) {
            return self.times.numbers(&self.study, question, group);
        }
        if let Some(distance) = question.quantity.distance() {
            return self.distances(group, question, distance);
        }
        let metric = self
            .arm_summary(group, &question.arm)
            .map(|arm| arm.metric(question.metric));
        let number = |percentile: &Percentile| match question.quantity {
            Quantity::Increase => {
                let increase = metric?.increases.get(percentile)?.ok()?;
                Some(increase.map(|percent| percent.0))
            }
            _ => {
                let time = metric?.percentiles.get(percentile)?.ok()?;
                Some(time.map(|time| time.as_secs_f64() * 1e3))
            }
        };
        Ok(question.percentiles.iter().map(number).collect())
    }

    /// Whether the increase of an arm in the first cell of a group is a difference among all that was summarised.
    pub(super) fn stands_out(
        &self,
        group: &Group,
        arm: &str,
        metric: Metric,
        percentile: Percentile,
    ) -> bool {
        let summary = group.cells.first();
        let summary = summary.and_then(|(measure, _)| self.summaries.get(*measure));
        let known = self.arm_summary(group, arm).zip(summary);
        known.is_none_or(|(arm, summary)| {
            let difference = arm.metric(metric).difference(percentile, summary.critical);
            difference.is_some()
        })
    }

    /// The arm in the first cell of a group.
    fn arm_summary(&self, group: &Group, arm: &str) -> Option<&ArmSummary> {
        let summary = self.cell_summary(*group.cells.first()?)?;
        summary.arms.iter().find(|known| known.label == arm)
    }

    /// How much later, or sooner, an arm is in one cell: over the baseline as its increase is, over others resampled
    /// together.
    fn distances(
        &self,
        group: &Group,
        question: &Question,
        distance: Distance<'_>,
    ) -> Result<Vec<Option<Estimate<f64>>>, Missing> {
        let baseline = baseline(&self.study, group)?;
        let other = distance.of.unwrap_or(baseline);
        let arms = [&*question.arm, other].map(|arm| self.arm_summary(group, arm));
        let [Some(own), Some(than)] = arms else {
            return Err(Missing::OneOf(question.arm.clone(), other.to_owned()));
        };
        let [now, then] = [own, than].map(|arm| arm.metric(question.metric));
        let time = |metric: &MetricSummary, percentile: &Percentile| {
            let time = metric.percentiles.get(percentile)?.ok()?;
            Some(time.map(|time| time.as_secs_f64() * 1e3))
        };
        let is_point = |time: &Estimate<f64>| {
            time.interval.low == Some(time.value) && time.interval.high == Some(time.value)
        };
        let direction = distance.direction;
        if other == baseline {
            let number = |percentile: &Percentile| {
                let increase = now.increases.get(percentile)?.ok()?;
                let then = time(then, percentile)?.value;
                let later = increase.map(|Percent(increase)| increase / 100.0 * then);
                Some(match direction {
                    Direction::Later => later,
                    Direction::Sooner => later.negated(),
                })
            };
            return Ok(question.percentiles.iter().map(number).collect());
        }
        let resampled = self.times.numbers(&self.study, question, group)?;
        let number = |(percentile, resampled): (&Percentile, Option<Estimate<f64>>)| {
            let (one, another) = (time(now, percentile)?, time(then, percentile)?);
            let estimate = if is_point(&one) && is_point(&another) {
                Estimate::exact(direction.of(one.value - another.value))
            } else {
                resampled?
            };
            let off = if own.engine.beside == than.engine.beside {
                None
            } else {
                now.calibrations_apart(then, *percentile)
            };
            Some(estimate.widened(off.map_or(0.0, |off| off.as_secs_f64() * 1e3)))
        };
        Ok((question.percentiles.iter().zip(resampled))
            .map(number)
            .collect())
    }

    /// Whether a number that is more than nothing is a difference for all that is known: of an increase over the baseline,
    /// and of what is later or sooner than that, by the same criterion as everywhere; of others by its interval.
    pub(super) fn is_shown(&self, question: &Question, answer: &Answer) -> bool {
        let Ok(estimate) = &answer.number else {
            return false;
        };
        let baseline = baseline(&self.study, &answer.group).ok();
        let is_over_baseline = match question.quantity.distance() {
            Some(distance) => distance.of.is_none_or(|of| baseline == Some(of)),
            None => question.quantity == Quantity::Increase,
        };
        let stands_out = if is_over_baseline && self.is_summarised(&answer.group, question) {
            self.arm_summary(&answer.group, &question.arm)
                .is_some_and(|arm| {
                    let metric = arm.metric(question.metric);
                    metric
                        .difference(answer.percentile, self.critical())
                        .is_some()
                })
        } else {
            true
        };
        stands_out && estimate.interval.low.is_some_and(|low| low > 0.0)
    }

    /// The same, from samples that may be trusted.
    ///
    /// # Errors
    ///
    /// Why there is none at all, in one line.
    pub(super) fn trusted_numbers(
        &self,
        group: &Group,
        question: &Question,
    ) -> Result<Vec<Option<Estimate<f64>>>, Missing> {
        self.check_samples(group, question)?;
        self.numbers(group, question)
    }

    /// Answers for each group of cells and each percentile, from samples that may be trusted.
    pub(super) fn answers(&self, question: &Question) -> Vec<Answer> {
        let cells = self.study.cells_named(&question.measures, &question.cells);
        let cells = cells.map(|(cell, _)| cell).collect();
        let groups = groups(&self.study, cells, &question.pool);
        let answers = groups.into_iter().flat_map(|group| {
            let known = self.trusted_numbers(&group, question);
            let answer = |(index, percentile): (usize, &Percentile)| Answer {
                group: group.clone(),
                percentile: *percentile,
                number: known.clone().and_then(|numbers| {
                    let number = numbers.get(index).copied().flatten();
                    number.ok_or(Missing::NoTime)
                }),
            };
            let percentiles = question.percentiles.iter().enumerate();
            percentiles.map(answer).collect::<Vec<_>>()
        });
        answers.collect()
    }

    /// Whether the summarised samples of a question may be trusted. Who resamples asks for himself.
    fn check_samples(&self, group: &Group, question: &Question) -> Result<(), Missing> {
        if !self.is_summarised(group, question) {
            return Ok(());
        }
        let mut arms = vec![&*question.arm];
        match question.quantity.distance() {
            Some(Distance { of: Some(of), .. }) => arms.push(of),
            Some(_) => arms.push(baseline(&self.study, group)?),
            None if question.quantity == Quantity::Increase => {
                arms.push(baseline(&self.study, group)?);
            }
            None => {}
        }
        for (cell, arm) in group
            .cells
            .iter()
            .flat_map(|cell| arms.iter().map(move |arm| (cell, arm)))
        {
            self.times.trusted(&self.study, *cell, arm)?;
        }
        Ok(())
    }

    /// What flight arithmetic says of one sample.
    pub(super) fn computed(
        &self,
        (measure, cell): (usize, usize),
        arm: usize,
        metric: Metric,
    ) -> Option<Duration> {
        let times = self.arithmetic.get(&SampleKey { measure, cell, arm })?;
        if metric == Metric::TlsHandshake {
            let time = |metric| self.computed((measure, cell), arm, metric);
            return time(Metric::Handshake)?.checked_sub(time(Metric::Connect)?);
        }
        let place = Metric::FROM_CONNECT
            .iter()
            .position(|known| *known == metric)?;
        times.get(place).copied().flatten()
    }
}
