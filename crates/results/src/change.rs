//! What has changed since results were saved.

use std::collections::BTreeMap;

use lastbyte_link::{Seed, format_duration};

use super::family;
use super::look;
use super::saved::Saved;
use super::since::{Pairing, Since};
use super::stats::{self, Level, Series};
use super::warning::{Problem, Warning};
use super::{Absent, Environment, KERNEL_SOURCE, MetricSummary, Percentile, Sample, Summary};
use lastbyte_study::{Arm, ArmChain, CpuTime, EngineName, Experiment, TransportName};

impl Summary {
    /// Adds how every metric of `samples`, which are those summarised, has changed since `saved`, and
    /// warnings of what else is not as it was.
    pub fn compare_with(&mut self, saved: &Saved, samples: &[Sample], environment: &Environment) {
        let experiment = &self.experiment;
        let pairing = pairing(saved, experiment, environment);
        let mut problems = differences(saved, experiment, environment);
        for (index, cell) in self.cells.iter_mut().enumerate() {
            for summary in &mut cell.arms {
                let mut arms = experiment.arms.iter().enumerate();
                let (Some((place, arm)), Some(then)) = (
                    arms.find(|(_, arm)| arm.name == summary.label),
                    saved.sample(&summary.label, &cell.cell),
                ) else {
                    continue;
                };
                let mut samples = samples.iter();
                let Some(now) = samples.find(|now| (now.cell, now.arm) == (index, place)) else {
                    continue;
                };
                for metric in cell.cell.all_metrics().iter().copied() {
                    let both =
                        [now, then].map(|sample| look::series(metric, &cell.cell, &sample.rows));
                    let summary = summary.metric_mut(metric);
                    summary.compare(both, &self.percentiles, experiment, pairing);
                }
                problems.extend(other_chain(saved, arm, now, then));
                problems.extend(other_costs(saved, arm, now, then));
            }
        }
        for (index, problem) in problems.iter().enumerate() {
            if !problems.iter().take(index).any(|other| other == problem) {
                self.warnings.push(Warning {
                    problem: problem.clone(),
                    cells: Vec::new(),
                });
            }
        }
        self.critical_change = family::critical(self.change_p_values().collect());
        self.since = Some(Since {
            name: saved.name.clone(),
            at: saved.at,
            pairing,
        });
    }
}

impl MetricSummary {
    /// Of the series of now and then.
    fn compare(
        &mut self,
        [now, then]: [Series; 2],
        percentiles: &[Percentile],
        experiment: &Experiment,
        pairing: Pairing,
    ) {
        let (seed, level) = (experiment.seed, Level::of(&experiment.connections));
        let resampled = match pairing {
            Pairing::ByConnection => stats::percentiles(&[now, then], percentiles, seed),
            // Another seed draws independently.
            Pairing::Apart => [(now, seed), (then, Seed(!seed.0))]
                .into_iter()
                .flat_map(|(series, seed)| stats::percentiles(&[series], percentiles, seed))
                .collect(),
        };
        let [now, then] = &*resampled else {
            return;
        };
        for (percentile, time) in &self.percentiles {
            let change = now
                .increase(then, *percentile, level)
                .ok_or(Absent::NoSaved);
            self.changes.insert(*percentile, time.and(change));
            let p_value = now.p_value(then, *percentile, level);
            self.change_p_values.insert(*percentile, p_value);
        }
    }
}

/// Luck is a function of the seed, and the engine's emulator draws it.
fn pairing(saved: &Saved, experiment: &Experiment, environment: &Environment) -> Pairing {
    let luck = |experiment: &Experiment, environment: &Environment| {
        let is_virtual = environment.engine == EngineName::Virtual;
        (
            experiment.seed,
            environment.engine,
            is_virtual.then_some((experiment.emulation, experiment.quic_in)),
        )
    };
    if luck(experiment, environment) == luck(&saved.experiment, &saved.environment) {
        Pairing::ByConnection
    } else {
        Pairing::Apart
    }
}

/// What else than the arms is not as it was.
fn differences(saved: &Saved, experiment: &Experiment, environment: &Environment) -> Vec<Problem> {
    let circumstances = |experiment: &Experiment, environment: &Environment| {
        let mut circumstances = vec![
            ("the engine".to_owned(), environment.engine.to_string()),
            ("the kernel".to_owned(), environment.kernel.clone()),
            ("the seed".to_owned(), experiment.seed.0.to_string()),
            (
                "the timeout".to_owned(),
                format_duration(experiment.timeout),
            ),
        ];
        let is_virtual = environment.engine == EngineName::Virtual;
        if is_virtual {
            circumstances.push(("the emulation".to_owned(), experiment.emulation.to_string()));
            let has_quic = |arm: &Arm| arm.transport == TransportName::Quic;
            if experiment.arms.iter().any(has_quic) {
                circumstances.push((
                    "the place of QUIC".to_owned(),
                    experiment.quic_in.to_string(),
                ));
            }
            let cpu = experiment.cpu.in_clock();
            circumstances.push(("CPU time".to_owned(), cpu.to_string()));
        }
        if !is_virtual || experiment.cpu == CpuTime::Calibrated {
            circumstances.push(("the processor".to_owned(), environment.host.cpu.clone()));
        }
        let versions = environment.versions.iter();
        let versions = versions.filter(|(name, _)| *name != KERNEL_SOURCE);
        circumstances.extend(
            versions.map(|(name, version)| (format!("the version of {name}"), version.clone())),
        );
        let sysctls = environment.sysctls.iter();
        circumstances.extend(sysctls.map(|(name, value)| (name.clone(), value.clone())));
        circumstances
    };
    let then: BTreeMap<_, _> = circumstances(&saved.experiment, &saved.environment)
        .into_iter()
        .collect();
    let now = circumstances(experiment, environment).into_iter();
    now.filter_map(|(what, now)| {
        // What is reported on one side alone goes with something that is reported on both.
        let then = then.get(&what).filter(|then| **then != now)?.clone();
        Some(Problem::OtherThen {
            name: saved.name.clone(),
            what,
            then,
            now,
        })
    })
    .collect()
}

fn other_chain(saved: &Saved, arm: &Arm, now: &Sample, then: &Sample) -> Option<Problem> {
    let (name, arm_name) = (saved.name.clone(), arm.name.clone());
    if now.chain_digest == then.chain_digest {
        return None;
    }
    let mut arms = saved.experiment.arms.iter();
    if let Some(other) = arms.find(|other| other.name == arm.name && other.label != arm.label) {
        return Some(Problem::OtherThen {
            name,
            what: format!("the chain of {arm_name}"),
            then: other.label.clone(),
            now: arm.label.clone(),
        });
    }
    match &arm.chain {
        ArmChain::Made(_) => Some(Problem::ChainMadeAnew {
            name,
            arm: arm_name,
        }),
        ArmChain::Pem(_) => Some(Problem::OtherPem {
            name,
            arm: arm_name,
        }),
    }
}

fn other_costs(saved: &Saved, arm: &Arm, now: &Sample, then: &Sample) -> Option<Problem> {
    // Whether there are any is reported of the whole experiment.
    let (then, now) = (then.engine.cpu_costs?, now.engine.cpu_costs?);
    (then != now).then(|| Problem::OtherCosts {
        name: saved.name.clone(),
        arm: arm.name.clone(),
    })
}

#[cfg(test)]
mod tests;
