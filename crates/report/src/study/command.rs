//! The commands that measure what a figure shows.

use lastbyte_link::{Direction, Distribution, Link, Seed, format_duration, shell_word};

use lastbyte_results::group_by;
use lastbyte_study::{
    Arm, Cell, ChainProfile, CpuTime, Emulation, EngineName, Experiment, Lists, Parameter, QuicIn,
};

/// What can be a list on the command line.
fn lists() -> impl Iterator<Item = Parameter> {
    let options = Parameter::options();
    options
        .filter(|(_, option)| option.lists == Lists::Taken)
        .map(|(parameter, _)| parameter)
}

/// Commands that measure these cells of an experiment with some of its arms and print the same numbers:
/// as few as grids allow. `None` if `lastbyte compare` can't say one of the cells or arms.
pub(super) fn commands(
    experiment: &Experiment,
    cells: &[&Cell],
    arms: &[&Arm],
    engine: EngineName,
) -> Option<Vec<String>> {
    if arms.is_empty() || !cells.iter().all(|cell| has_command(cell)) {
        return None;
    }
    let mut commands = Vec::new();
    for grid in grids(cells.to_vec()) {
        commands.push(command(experiment, &grid, arms, engine)?);
    }
    Some(commands)
}

/// Links that are alike in both directions but for their rates, and of which nothing is drawn.
fn has_command(cell: &Cell) -> bool {
    let Link { forward, backward } = &cell.link;
    cell.population.is_none()
        && *forward
            == Direction {
                rate: forward.rate,
                ..backward.clone()
            }
        && matches!(
            forward.distribution,
            Distribution::Uniform
                | Distribution::Normal
                | Distribution::Pareto
                | Distribution::ParetoNormal
        )
}

/// Parts of the cells that are each every combination of some lists.
fn grids(cells: Vec<&Cell>) -> Vec<Vec<&Cell>> {
    let apart = |cell: &Cell| {
        let mut others = Parameter::measured();
        others
            .by_ref()
            .filter(|parameter| lists().all(|list| list != *parameter))
            .map(|parameter| parameter.of(cell))
            .collect::<Vec<String>>()
    };
    let alike = cells
        .first()
        .is_none_or(|first| cells.iter().all(|cell| apart(cell) == apart(first)));
    let combinations: usize = lists()
        .map(|parameter| parameter.values(&cells).len())
        .product();
    if cells.len() <= 1 || (alike && combinations == cells.len()) {
        return vec![cells];
    }
    // Parted by what is no list, else by the first list that differs.
    let key = |cell: &Cell| {
        if alike {
            lists()
                .find(|parameter| parameter.values(&cells).len() > 1)
                .map_or(String::new(), |parameter| parameter.of(cell))
        } else {
            format!("{:?}", apart(cell))
        }
    };
    let parts = group_by(cells.iter().copied(), |cell| key(cell));
    if parts.len() == 1 {
        // The same cell more than once.
        return vec![cells.into_iter().take(1).collect()];
    }
    parts
        .into_iter()
        .flat_map(|(_, part)| grids(part))
        .collect()
}

fn command(
    experiment: &Experiment,
    cells: &[&Cell],
    arms: &[&Arm],
    engine: EngineName,
) -> Option<String> {
    let first = cells.first()?;
    let mut words = vec!["lastbyte compare".to_owned()];
    for (index, arm) in arms.iter().enumerate() {
        let option = if index == 0 {
            "--baseline"
        } else {
            "--against"
        };
        words.push(format!("{option} {}", shell_word(&arm.label)));
    }
    // An arm of a study has what it says, and no more.
    if arms.iter().any(|arm| ChainProfile::Public.of(arm) != **arm) {
        words.push(format!("--chain-profile {}", ChainProfile::Private));
    }
    for (parameter, _) in Parameter::options() {
        let goes_without_saying = match parameter.name() {
            // Without jitter, it is nothing.
            "jitter_distribution" => first.link.forward.jitter.is_zero(),
            _ => cells.iter().all(|cell| !parameter.is_given(cell)),
        };
        if !goes_without_saying {
            let option = parameter.name().replace('_', "-");
            let values = parameter.values(cells).join(",");
            words.push(format!("--{option} {}", shell_word(&values)));
        }
    }
    let mut unless = |is_usual: bool, option: String| {
        if !is_usual {
            words.push(option);
        }
    };
    let Experiment {
        connections,
        timeout,
        seed,
        emulation,
        quic_in,
        cpu,
        ..
    } = experiment;
    let connections = shell_word(&connections.to_string());
    unless(false, format!("--connections {connections}"));
    let new = Experiment::new(Vec::new(), Vec::new(), 1);
    let Seed(number) = seed;
    unless(*seed == new.seed, format!("--seed {number}"));
    unless(
        *timeout == new.timeout,
        format!("--timeout {}", format_duration(*timeout)),
    );
    unless(
        *emulation == Emulation::default(),
        format!("--emulation {emulation}"),
    );
    unless(
        *quic_in == QuicIn::default(),
        format!("--quic-in {quic_in}"),
    );
    unless(*cpu == CpuTime::default(), format!("--cpu {cpu}"));
    unless(false, format!("--engine {engine}"));
    Some(words.join(" "))
}
