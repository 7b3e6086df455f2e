#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::results::fixtures::{self, cell};
use crate::results::{Fault, Imprecision, Metric, Percentile};
use crate::study::{Connections, Measure, Until};

const BLOCK: u32 = 10;

/// A measure of two cells that are looked at after one, two and four blocks, and of 35 connections at
/// last; and one of a fixed number.
fn study() -> Study {
    let until = Until {
        least: 10,
        most: 35,
        ..Until::new("2%".parse().unwrap())
    };
    let cells = vec![cell("0%", "0B"), cell("1%", "0B")];
    let arms = ["x25519/ecdsa-p256", "secp256r1/ecdsa-p256"];
    let first = fixtures::experiment(&arms, cells.clone(), Connections::Until(until));
    let mut study = Study::single("trees", first);
    study.measures.push(Measure {
        id: "shrubs".to_owned(),
        experiment: fixtures::experiment(&arms[..1], cells[..1].to_vec(), 25),
    });
    study
}

fn agenda(missing: impl Fn(&BlockId) -> bool) -> Agenda {
    let study = study();
    let blocks: Vec<_> = study.blocks(BLOCK).filter(missing).collect();
    Agenda::new(&study, BLOCK, &blocks)
}

fn block(measure: usize, cell: usize, block: u32, arm: usize) -> BlockId {
    BlockId {
        measure,
        cell,
        block,
        arm,
    }
}

fn stage(cell: usize, end: u32) -> Stage {
    Stage {
        measure: 0,
        cell,
        end,
    }
}

fn imprecision() -> Look {
    Look::Imprecise(Imprecision {
        arm: 0,
        metric: Metric::Ttlb,
        percentile: Percentile::MEDIAN,
        fault: Fault::Open,
        enough: None,
    })
}

#[test]
fn later_stages_begin_when_a_look_asks_for_them() {
    let mut agenda = agenda(|id| id.measure == 0 && id.cell == 0);
    let begin = |agenda: &mut Agenda, number: u32| {
        for arm in 0..2 {
            assert_eq!(agenda.next(), Turn::Block(block(0, 0, number, arm)));
        }
    };
    let done = |agenda: &mut Agenda, number: u32| {
        for arm in 0..2 {
            agenda.done(block(0, 0, number, arm));
        }
    };
    begin(&mut agenda, 0);
    assert_eq!(agenda.next(), Turn::Wait);
    agenda.done(block(0, 0, 0, 1));
    assert_eq!(agenda.next(), Turn::Wait);
    agenda.done(block(0, 0, 0, 0));
    assert_eq!(agenda.next(), Turn::Look(stage(0, 1)));
    // Nobody looks twice.
    assert_eq!(agenda.next(), Turn::Wait);
    assert_eq!(agenda.looked(stage(0, 1), &imprecision()), []);
    begin(&mut agenda, 1);
    assert_eq!(agenda.next(), Turn::Wait);
    done(&mut agenda, 1);
    assert_eq!(agenda.next(), Turn::Look(stage(0, 2)));
    assert_eq!(agenda.looked(stage(0, 2), &imprecision()), []);
    begin(&mut agenda, 2);
    begin(&mut agenda, 3);
    // After the last one, nothing is left to be decided.
    assert_eq!(agenda.next(), Turn::Over);
    done(&mut agenda, 3);
    assert_eq!(agenda.next(), Turn::Over);
}

#[test]
fn what_is_precise_needs_no_more() {
    let mut agenda = agenda(|id| id.measure == 0 && id.cell == 0);
    for arm in 0..2 {
        agenda.next();
        agenda.done(block(0, 0, 0, arm));
    }
    agenda.next();
    let passed = agenda.looked(stage(0, 1), &Look::Precise);
    let later = (1..4).flat_map(|number| [0, 1].map(|arm| block(0, 0, number, arm)));
    assert_eq!(passed, later.collect::<Vec<_>>());
    assert_eq!(agenda.next(), Turn::Over);
}

#[test]
fn while_one_cell_waits_others_have_their_turn() {
    let mut agenda = agenda(|_| true);
    let turns: Vec<_> = (0..8).map(|_| agenda.next()).collect();
    assert_eq!(
        turns,
        [
            Turn::Block(block(0, 0, 0, 0)),
            Turn::Block(block(0, 0, 0, 1)),
            Turn::Block(block(0, 1, 0, 0)),
            Turn::Block(block(0, 1, 0, 1)),
            Turn::Block(block(1, 0, 0, 0)),
            Turn::Block(block(1, 0, 1, 0)),
            Turn::Block(block(1, 0, 2, 0)),
            Turn::Wait,
        ]
    );
    agenda.done(block(0, 1, 0, 0));
    agenda.done(block(0, 1, 0, 1));
    assert_eq!(agenda.next(), Turn::Look(stage(1, 1)));
    agenda.looked(stage(1, 1), &Look::Precise);
    assert_eq!(agenda.next(), Turn::Wait);
}

#[test]
fn what_is_finished_says_where_a_cell_stands() {
    let first = |missing: &dyn Fn(&BlockId) -> bool| {
        let mut agenda = agenda(|id| id.measure == 0 && id.cell == 0 && missing(id));
        agenda.next()
    };
    // The first stage is whole.
    assert_eq!(first(&|id| id.block >= 1), Turn::Look(stage(0, 1)));
    // Somebody has seen that a second one is needed.
    let half = first(&|id| id.block >= 1 && *id != block(0, 0, 1, 0));
    assert_eq!(half, Turn::Block(block(0, 0, 1, 1)));
    assert_eq!(first(&|id| id.block >= 2), Turn::Look(stage(0, 2)));
    // And that the last one is, though the first is damaged.
    let damaged = first(&|id| id.block >= 3 || *id == block(0, 0, 0, 1));
    assert_eq!(damaged, Turn::Block(block(0, 0, 0, 1)));
    assert_eq!(first(&|_| false), Turn::Over);
}

#[test]
fn a_cell_with_a_block_that_failed_is_not_looked_at() {
    let mut agenda = agenda(|id| id.measure == 0 && id.cell == 0 && id.block > 0);
    agenda.next();
    agenda.looked(stage(0, 1), &imprecision());
    assert_eq!(agenda.next(), Turn::Block(block(0, 0, 1, 0)));
    assert_eq!(agenda.failed(block(0, 0, 1, 0)).len(), 4);
    // The other arm may still be measured.
    assert_eq!(agenda.next(), Turn::Block(block(0, 0, 1, 1)));
    agenda.done(block(0, 0, 1, 1));
    assert_eq!(agenda.next(), Turn::Over);
}
