//! The commands that measure what a figure shows.

use lastbyte_link::{Direction, Distribution, Link, Seed, format_duration};

use crate::results::gather;
use crate::study::{Arm, Cell, CpuTime, Emulation, Experiment, Parameter, SETTINGS};

/// What can be a list on the command line, in the order of its options.
const LISTS: [(Parameter, &str); 8] = [
    (Parameter::Rtt, "--rtt"),
    (Parameter::Rate, "--rate"),
    (Parameter::Loss, "--loss"),
    (Parameter::Jitter, "--jitter"),
    (Parameter::Initcwnd, "--initcwnd"),
    (Parameter::Requests, "--requests"),
    (Parameter::Upload, "--upload"),
    (Parameter::Data, "--data"),
];

/// Commands that measure these cells of an experiment with some of its arms and print the same numbers:
/// as few as grids allow. `None` if `lastbyte compare` can't say one of the cells or arms.
pub(super) fn commands(
    experiment: &Experiment,
    cells: &[&Cell],
    arms: &[&Arm],
    engine: &str,
) -> Option<Vec<String>> {
    if arms.is_empty() || !cells.iter().all(|cell| can_be_said(cell)) {
        return None;
    }
    let mut commands = Vec::new();
    for grid in grids(cells.to_vec()) {
        commands.push(command(experiment, &grid, arms, engine)?);
    }
    Some(commands)
}

/// Links that are alike in both directions.
fn can_be_said(cell: &Cell) -> bool {
    let Link { forward, backward } = &cell.link;
    *forward == Direction { ..backward.clone() }
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
        let others = Parameter::ALL
            .into_iter()
            .filter(|parameter| LISTS.iter().all(|(list, _)| list != parameter));
        others
            .filter(|parameter| *parameter != Parameter::Link)
            .map(|parameter| parameter.of(cell))
            .collect::<Vec<String>>()
    };
    let alike = cells
        .first()
        .is_none_or(|first| cells.iter().all(|cell| apart(cell) == apart(first)));
    let combinations: usize = (LISTS.iter())
        .map(|(parameter, _)| parameter.values(&cells).len())
        .product();
    if cells.len() <= 1 || (alike && combinations == cells.len()) {
        return vec![cells];
    }
    // Parted by what is no list, else by the first list that differs.
    let key = |cell: &Cell| match alike {
        false => format!("{:?}", apart(cell)),
        true => (LISTS.iter())
            .find(|(parameter, _)| parameter.values(&cells).len() > 1)
            .map_or(String::new(), |(parameter, _)| parameter.of(cell)),
    };
    let parts = gather(cells.iter().copied(), |cell| key(cell));
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
    engine: &str,
) -> Option<String> {
    let first = cells.first()?;
    let usual = Cell::default();
    let mut words = vec!["lastbyte compare".to_owned()];
    for (index, arm) in arms.iter().enumerate() {
        let option = if index == 0 {
            "--baseline"
        } else {
            "--against"
        };
        words.push(format!("{option} {}", quoted(&arm.label)));
    }
    for (parameter, option) in LISTS {
        let values = parameter.values(cells);
        let is_usual = match parameter {
            Parameter::Rate if values == ["unlimited"] => return None,
            Parameter::Jitter | Parameter::Requests | Parameter::Upload => {
                values == [parameter.of(&usual)]
            }
            _ => false,
        };
        if !is_usual {
            words.push(format!("{option} {}", values.join(",")));
        }
    }
    let way = &first.link.forward;
    if !way.jitter.is_zero() {
        words.push(format!("--jitter-distribution {}", way.distribution));
    }
    let mut unless = |is_usual: bool, option: String| {
        if !is_usual {
            words.push(option);
        }
    };
    let Direction { queue, .. } = Direction::default();
    unless(way.queue == queue, format!("--queue {}", way.queue));
    let think = format_duration(first.think);
    unless(first.think == usual.think, format!("--think {think}"));
    for setting in &SETTINGS {
        let value = (setting.of)(&first.hosts);
        unless(
            setting.is_usual(first),
            format!("--{} {value}", setting.name),
        );
    }
    let client = first.client_initcwnd;
    unless(
        client == usual.client_initcwnd,
        format!("--client-initcwnd {client}"),
    );
    unless(
        first.congestion == usual.congestion,
        format!("--congestion {}", first.congestion),
    );
    unless(
        first.preset == usual.preset,
        format!("--preset {}", first.preset),
    );
    unless(
        first.gso == first.preset.gso(),
        format!("--gso {}", first.gso),
    );
    let Experiment {
        connections,
        timeout,
        seed,
        emulation,
        cpu,
        ..
    } = experiment;
    let connections = quoted(&connections.to_string());
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
    unless(*cpu == CpuTime::default(), format!("--cpu {cpu}"));
    unless(false, format!("--engine {engine}"));
    Some(words.join(" "))
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
