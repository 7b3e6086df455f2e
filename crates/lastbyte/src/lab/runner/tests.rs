#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs::{self, File};

use lastbyte_pki::Store;
use tempfile::TempDir;

use super::*;
use crate::results::fixtures::{self, cell};
use crate::results::{
    EngineReport, Manifest, Outcome, PartHeader, Percentile, Start, Validity, write_part,
};
use crate::study::{Connections, Measure, Until};

const ARMS: [&str; 2] = ["x25519/ecdsa-p256", "secp256r1/ecdsa-p256"];
const BLOCK: u32 = 10;

/// Two measures of two cells and one, with three blocks and one: 6 x 2 + 2.
fn study() -> Study {
    let cells = vec![cell("0%", "0B"), cell("1%", "0B")];
    let mut study = Study::single("trees", fixtures::experiment(&ARMS, cells, 25));
    study.measures.push(Measure {
        id: "shrubs".to_owned(),
        experiment: fixtures::experiment(&ARMS, vec![cell("3%", "0B")], 8),
    });
    study
}

/// What an engine does with a block.
type Doing = fn(BlockId) -> Result<Ending, BlockError>;

/// An engine that makes rows up.
struct Invented {
    environment: Environment,
    workers: usize,
    doing: Doing,
    /// Of all connections.
    outcome: Outcome,
    measured: Mutex<Vec<BlockId>>,
}

impl Invented {
    fn new(workers: usize, doing: Doing) -> Self {
        Self {
            environment: Environment::default(),
            workers,
            doing,
            outcome: Outcome::Completed,
            measured: Mutex::default(),
        }
    }
}

impl Engine for Invented {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn check(&self, _: &Study) -> Result<(), String> {
        Ok(())
    }

    fn block_size(&self, _: &Study) -> u32 {
        BLOCK
    }

    fn workers(&self, _: &Study) -> usize {
        self.workers
    }

    fn expected_block(&self, job: &Job<'_>) -> Duration {
        Duration::from_secs(1) * job.connections.len() as u32
    }

    fn measure(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        assert!(!draft.exists());
        assert_eq!(job.arm.arm.label, job.experiment.arms[job.id.arm].label);
        let ending = (self.doing)(job.id)?;
        // Some, and one more than there are in the last block: it is measured again.
        for _ in 0..=job.connections.len().min(7) {
            (job.ended)();
        }
        lock(&self.measured).push(job.id);
        let sample = fixtures::sample(job.experiment, job.id.cell, job.id.arm);
        let mut rows = sample.rows;
        rows.retain(|row| job.connections.contains(&row.index));
        for row in &mut rows {
            row.block = job.id.block;
            row.outcome = self.outcome.clone();
        }
        let header = PartHeader::new(
            job.study,
            job.id,
            job.connections.clone(),
            sample.chain_digest,
            EngineReport {
                validity: Validity::Valid,
                ..sample.engine
            },
            self.environment.clone(),
        );
        write_part(
            File::create(draft).unwrap(),
            &header.unwrap(),
            job.study,
            &rows,
        )
        .unwrap();
        Ok(ending)
    }
}

#[derive(Default)]
struct Ears {
    expected: Mutex<Duration>,
    advanced: Mutex<Duration>,
    warnings: Mutex<Vec<String>>,
}

impl Watcher for Ears {
    fn expect(&self, total: Duration) {
        *lock(&self.expected) = total;
    }

    fn advance(&self, part: Duration) {
        *lock(&self.advanced) += part;
    }

    fn warn(&self, line: &str) {
        lock(&self.warnings).push(line.to_owned());
    }
}

/// What came of running the study: the end, the engine, what was heard and the parts that are
/// there.
struct Ran {
    end: Result<Finished, RunError>,
    measured: Vec<BlockId>,
    ears: Ears,
    finished: BTreeSet<BlockId>,
}

fn run(workers: usize, interrupt: bool, doing: Doing) -> Ran {
    let study = study();
    let engine = Invented::new(workers, doing);
    let root = TempDir::new().unwrap();
    let store = Store::open(root.path().join("chains"));
    let arms = study.measures[0].experiment.arms.iter();
    let arms: Vec<_> = arms
        .map(|arm| PreparedArm::new(arm.clone(), &store).unwrap())
        .collect();
    let manifest = Manifest::new(&study, BLOCK, engine.environment.clone());
    let path = root.path().join("run");
    let folder = Folder::take(&path, &study, manifest, Start::Afresh).unwrap();
    let ears = Ears::default();
    let interrupt = AtomicBool::new(interrupt);
    let runner = Runner {
        inspection: None,
        study: &study,
        engine: &engine,
        arms: &arms,
        interrupt: &interrupt,
        watcher: &ears,
    };
    let blocks: Vec<_> = study.blocks(BLOCK).collect();
    let end = runner.run(&blocks, &folder);
    let finished = folder
        .finished(&study, |_| None, |error| panic!("{error}"))
        .unwrap();
    let hidden = fs::read_dir(path.join("parts")).unwrap();
    let hidden = hidden.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    if end.is_ok() {
        assert_eq!(hidden.count(), finished.len());
    }
    Ran {
        end,
        measured: engine.measured.into_inner().unwrap(),
        ears,
        finished,
    }
}

/// Runs what is missing in a folder.
fn run_in(path: &Path, study: &Study, engine: &Invented) -> (Finished, BTreeSet<BlockId>) {
    let store = Store::open(path.join("../chains"));
    let arms = study.measures[0].experiment.arms.iter();
    let arms: Vec<_> = arms
        .map(|arm| PreparedArm::new(arm.clone(), &store).unwrap())
        .collect();
    let start = if path.exists() {
        Start::Resume
    } else {
        Start::Afresh
    };
    let manifest = Manifest::new(study, BLOCK, engine.environment.clone());
    let folder = Folder::take(path, study, manifest, start).unwrap();
    let finished = |folder: &Folder| {
        folder
            .finished(study, |_| None, |error| panic!("{error}"))
            .unwrap()
    };
    let before = finished(&folder);
    let missing: Vec<_> = (study.blocks(BLOCK))
        .filter(|id| !before.contains(id))
        .collect();
    let ears = Ears::default();
    let runner = Runner {
        inspection: None,
        study,
        engine,
        arms: &arms,
        interrupt: &AtomicBool::new(false),
        watcher: &ears,
    };
    let end = runner.run(&missing, &folder).unwrap();
    if end.ending == Ending::Complete {
        assert_eq!(*lock(&ears.advanced), *lock(&ears.expected));
    }
    (end, finished(&folder))
}

/// Four cells, that are looked at after 20, 40 and so on up to 300 connections.
fn study_until() -> Study {
    let until = Connections::Until(Until {
        least: 20,
        most: 300,
        ..Until::new("0.04%".parse().unwrap())
    });
    let cells = ["0B", "50KiB", "200KiB", "20KiB"].map(|data| cell("0%", data));
    let experiment = fixtures::experiment(&ARMS, cells.into(), until);
    Study {
        percentiles: vec![Percentile::MEDIAN],
        ..Study::single("trees", experiment)
    }
}

/// The blocks that the rule asks for, one look after the other.
fn needed(study: &Study) -> BTreeSet<BlockId> {
    let experiment = &study.measures[0].experiment;
    let samples = fixtures::samples(experiment);
    let end = |cell: usize| {
        let stages = experiment.stages(&experiment.cells[0], BLOCK);
        let enough = stages.iter().find(|end| {
            let rows: Vec<_> = (samples.iter())
                .filter(|sample| sample.cell == cell)
                .map(|sample| &sample.rows[..300.min((**end * BLOCK) as usize)])
                .collect();
            let look = look(
                experiment,
                &experiment.cells[cell],
                &rows,
                &study.percentiles,
            );
            look == Look::Precise
        });
        *enough.unwrap_or(&30)
    };
    let ends: Vec<_> = (0..4).map(end).collect();
    // Else the tests below would show nothing.
    assert!(ends[0] < ends[1] && ends[1] <= 30, "{ends:?}");
    study
        .blocks(BLOCK)
        .filter(|id| id.block < ends[id.cell])
        .collect()
}

#[test]
fn a_cell_has_as_many_blocks_as_it_takes_with_any_number_of_workers() {
    let study = study_until();
    let needed = needed(&study);
    for workers in [1, 4] {
        let root = TempDir::new().unwrap();
        let engine = Invented::new(workers, |_| Ok(Ending::Complete));
        let (end, finished) = run_in(&root.path().join("run"), &study, &engine);
        assert_eq!(end.ending, Ending::Complete);
        assert_eq!(finished, needed, "{workers}");
        assert_eq!(end.measured, needed.len());
    }
}

#[test]
fn an_interruption_does_not_change_how_many_blocks_a_cell_has() {
    let study = study_until();
    let needed = needed(&study);
    let root = TempDir::new().unwrap();
    let path = root.path().join("run");
    let doings: [Doing; 4] = [
        |id| match (id.cell, id.block) {
            (0, 1) => Ok(Ending::Interrupted),
            _ => Ok(Ending::Complete),
        },
        |id| match (id.cell, id.block, id.arm) {
            (1, 2, 1) => Ok(Ending::Interrupted),
            _ => Ok(Ending::Complete),
        },
        |id| match (id.cell, id.block) {
            (1, 4) => Err(BlockError::Failed("the guest died".to_owned())),
            _ => Ok(Ending::Complete),
        },
        |_| Ok(Ending::Complete),
    ];
    let mut measured = 0;
    for (turn, doing) in doings.into_iter().enumerate() {
        let engine = Invented::new(2, doing);
        let (end, finished) = run_in(&path, &study, &engine);
        measured += end.measured;
        assert_eq!(finished.len(), measured);
        assert!(finished.is_subset(&needed));
        assert_eq!(finished == needed, turn == 3, "{turn}");
    }
    // There is no more to be done, however often it is asked.
    let engine = Invented::new(2, |_| panic!("it measures"));
    assert_eq!(run_in(&path, &study, &engine).1, needed);
}

#[test]
fn a_cell_in_which_everything_fails_ends_early() {
    let study = study_until();
    let root = TempDir::new().unwrap();
    let engine = Invented {
        outcome: Outcome::TimedOut,
        ..Invented::new(2, |_| Ok(Ending::Complete))
    };
    let (_, finished) = run_in(&root.path().join("run"), &study, &engine);
    assert!(finished.iter().all(|id| id.block < 2), "{finished:?}");
}

#[test]
fn every_block_is_measured_in_its_order() {
    let ran = run(1, false, |_| Ok(Ending::Complete));
    let blocks: Vec<_> = study().blocks(BLOCK).collect();
    assert_eq!(ran.measured, blocks);
    assert_eq!(ran.finished, blocks.into_iter().collect());
    let end = ran.end.unwrap();
    assert_eq!(
        (end.ending, end.measured, end.failed),
        (Ending::Complete, 14, Vec::new())
    );
    // 4 samples of 25 and 2 of 8, a second each.
    let expected = *lock(&ran.ears.expected);
    assert_eq!(expected, Duration::from_secs(116));
    assert_eq!(*lock(&ran.ears.advanced), expected);
}

#[test]
fn workers_share_the_blocks() {
    let ran = run(3, false, |_| Ok(Ending::Complete));
    let blocks: BTreeSet<_> = study().blocks(BLOCK).collect();
    assert_eq!(ran.measured.len(), blocks.len());
    assert_eq!(ran.finished, blocks);
    let expected = lock(&ran.ears.expected).as_secs_f64();
    assert!((expected - 116.0 / 3.0).abs() < 1e-3, "{expected}");
}

#[test]
fn a_block_that_fails_keeps_no_other_from_its_turn() {
    let ran = run(2, false, |id| match (id.cell, id.block) {
        (1, 2) => Err(BlockError::Failed("the guest died".to_owned())),
        _ => Ok(Ending::Complete),
    });
    assert_eq!(ran.finished.len(), 12);
    let end = ran.end.unwrap();
    assert_eq!((end.ending, end.measured), (Ending::Complete, 12));
    let mut told: Vec<_> = end.failed.iter().map(ToString::to_string).collect();
    told.sort_unstable();
    let cell = "RTT 35ms, 1gbit, loss 1%, initcwnd 10, 0B";
    assert_eq!(
        told,
        [
            format!("block 2 of secp256r1/ecdsa-p256 ({cell}) failed: the guest died"),
            format!("block 2 of x25519/ecdsa-p256 ({cell}) failed: the guest died"),
        ]
    );
    let mut warnings = ran.ears.warnings.into_inner().unwrap();
    warnings.sort_unstable();
    assert_eq!(warnings, told);
}

#[test]
fn nothing_goes_on_when_nothing_can() {
    let ran = run(1, false, |id| match id.block {
        1 => Err(LabError::Crashed("the lights").into()),
        _ => Ok(Ending::Complete),
    });
    assert_eq!(ran.finished.len(), 2);
    assert!(matches!(ran.end, Err(RunError::Lab(LabError::Crashed(_)))));

    let ran = run(1, false, |id| match id.block {
        1 => Err(BlockError::Write(io::ErrorKind::StorageFull.into())),
        _ => Ok(Ending::Complete),
    });
    assert_eq!(ran.finished.len(), 2);
    let line = ran.end.unwrap_err().to_string();
    assert!(
        line.starts_with("can't write \"") && line.ends_with("no storage space"),
        "{line}"
    );
}

#[test]
fn a_worker_that_panics_ends_the_run() {
    let ran = run(1, false, |id| match id.block {
        1 => panic!("of fright, for a test"),
        _ => Ok(Ending::Complete),
    });
    assert_eq!(ran.finished.len(), 2);
    assert!(matches!(ran.end, Err(RunError::Lab(LabError::Crashed(_)))));
}

#[test]
fn an_interrupted_block_is_not_kept() {
    let ran = run(1, false, |id| match id.block {
        1 => Ok(Ending::Interrupted),
        _ => Ok(Ending::Complete),
    });
    assert_eq!(ran.finished.len(), 2);
    let end = ran.end.unwrap();
    assert_eq!((end.ending, end.measured), (Ending::Interrupted, 2));
}

#[test]
fn an_interrupt_keeps_blocks_from_beginning() {
    let ran = run(2, true, |_| Ok(Ending::Complete));
    assert!(ran.measured.is_empty());
    assert_eq!(ran.end.unwrap().ending, Ending::Interrupted);
}

#[test]
fn shards_are_all_blocks_once_and_do_not_part_arms() {
    let study = study();
    let all: Vec<_> = study.blocks(BLOCK).collect();
    assert_eq!(Shard::WHOLE.blocks(&study, BLOCK), all);
    for of in 1..=9 {
        let shards: Vec<_> = (1..=of)
            .map(|index| Shard { index, of }.blocks(&study, BLOCK))
            .collect();
        let mut together = shards.concat();
        together.sort_unstable();
        assert_eq!(together, all);
        for shard in &shards {
            // Seven groups of two arms.
            let fair = 7 / of as usize;
            assert!(
                (fair * 2..=fair * 2 + 2).contains(&shard.len()),
                "{shard:?}"
            );
            for pair in shard.chunks(2) {
                assert_eq!(pair.len(), 2);
                assert_eq!((pair[0].arm, pair[1].arm), (0, 1));
                assert_eq!(pair[0].block, pair[1].block);
            }
        }
    }
}

#[test]
fn shards_do_not_part_a_cell_that_ends_when_it_is_precise_enough() {
    let mut study = study_until();
    study.measures.extend(self::study().measures);
    let all: Vec<_> = study.blocks(BLOCK).collect();
    for of in 1..=5 {
        let shards: Vec<_> = (1..=of)
            .map(|index| Shard { index, of }.blocks(&study, BLOCK))
            .collect();
        let mut together = shards.concat();
        together.sort_unstable();
        assert_eq!(together, all);
        let cells = shards.iter().flat_map(|shard| {
            let mut cells: Vec<_> = (shard.iter())
                .filter(|id| id.measure == 0)
                .map(|id| id.cell)
                .collect();
            cells.dedup();
            cells
        });
        assert_eq!(cells.count(), 4, "{of}");
    }
}

#[test]
fn shards_are_written_with_a_slash() {
    let shard: Shard = "2/3".parse().unwrap();
    assert_eq!(shard, Shard { index: 2, of: 3 });
    assert_eq!(shard.to_string(), "2/3");
    for text in [
        "",
        "1",
        "/",
        "0/3",
        "4/3",
        "1/0",
        "-1/3",
        "+1/3",
        "1/3/5",
        "1 / 3",
        "1/99999999999",
    ] {
        let error = text.parse::<Shard>().unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{text:?} is no shard: write one such as \"1/4\", the first of four")
        );
    }
}

#[test]
fn batch_systems_say_which_shard_it_is() {
    let shard = |set: &[(&str, &str)]| {
        let get = |name: &str| {
            let known = set.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).to_owned())
        };
        Shard::from_environment(get)
            .map(|assigned| format!("{}, as {}", assigned.shard, assigned.by))
    };
    let slurm = |id, first, step, count| {
        let set = [
            ("SLURM_ARRAY_TASK_ID", id),
            ("SLURM_ARRAY_TASK_MIN", first),
            ("SLURM_ARRAY_TASK_STEP", step),
            ("SLURM_ARRAY_TASK_COUNT", count),
        ];
        shard(&set)
    };
    assert_eq!(
        slurm("1", "1", "1", "4").unwrap(),
        "1/4, as SLURM_ARRAY_TASK_ID=1, SLURM_ARRAY_TASK_COUNT=4, SLURM_ARRAY_TASK_MIN=1, SLURM_ARRAY_TASK_STEP=1 say"
    );
    assert!(slurm("3", "0", "1", "4").unwrap().starts_with("4/4, "));
    assert!(slurm("12", "10", "2", "4").unwrap().starts_with("2/4, "));
    // Tasks of a list of numbers, which are between those of a range or beyond them.
    for (task, first, step) in [
        ("9", "1", "1"),
        ("0", "1", "1"),
        ("11", "10", "2"),
        ("4294967295", "0", "1"),
    ] {
        let error = slurm(task, first, step, "4").unwrap_err();
        assert!(
            error.contains("no shard of 4: number the tasks from 1 to 4"),
            "{error}"
        );
    }
    assert_eq!(
        slurm("x", "1", "1", "4").unwrap_err(),
        "SLURM_ARRAY_TASK_ID is \"x\", which is no whole number"
    );
    // All tasks of a list, also those that a range of as many would have.
    let of_array = |id, [count, first, last, step]: [&str; 4]| {
        shard(&[
            ("SLURM_ARRAY_TASK_ID", id),
            ("SLURM_ARRAY_TASK_COUNT", count),
            ("SLURM_ARRAY_TASK_MIN", first),
            ("SLURM_ARRAY_TASK_MAX", last),
            ("SLURM_ARRAY_TASK_STEP", step),
        ])
    };
    for task in ["1", "2", "5"] {
        let error = of_array(task, ["3", "1", "5", "1"]).unwrap_err();
        assert!(error.contains("SLURM_ARRAY_TASK_MAX=5"), "{error}");
        assert!(
            error.contains("no shard of 3: number the tasks from 1 to 3"),
            "{error}"
        );
    }
    // 0-15:4, whether its end is said as it was asked for or as its last task.
    for last in ["15", "12"] {
        let fourth = of_array("12", ["4", "0", last, "4"]).unwrap();
        assert!(fourth.starts_with("4/4, "), "{fourth}");
    }
    assert!(of_array("1", ["3", "2", "1", "1"]).is_err());
    // Two tasks of four, once more.
    let again = [
        ("LASTBYTE_SHARDS", "4"),
        ("SLURM_ARRAY_TASK_ID", "3"),
        ("SLURM_ARRAY_TASK_COUNT", "2"),
        ("SLURM_ARRAY_TASK_MIN", "3"),
    ];
    assert_eq!(
        shard(&again).unwrap(),
        "3/4, as LASTBYTE_SHARDS=4, SLURM_ARRAY_TASK_ID=3 say"
    );
    let pod = ("JOB_COMPLETION_INDEX", "0");
    assert_eq!(
        shard(&[pod, ("LASTBYTE_SHARDS", "8")]).unwrap(),
        "1/8, as LASTBYTE_SHARDS=8, JOB_COMPLETION_INDEX=0 say"
    );
    assert!(shard(&[pod]).unwrap_err().contains("set LASTBYTE_SHARDS"));
    let beyond = [("JOB_COMPLETION_INDEX", "3"), ("LASTBYTE_SHARDS", "3")];
    assert_eq!(
        shard(&beyond).unwrap_err(),
        "LASTBYTE_SHARDS=3, JOB_COMPLETION_INDEX=3 are the numbers of no shard of 3: the pods of a Job are numbered from \
         0, here to 2: set LASTBYTE_SHARDS to its completions, or write --shard I/N"
    );
    assert!(
        shard(&[pod, ("LASTBYTE_SHARDS", "0")])
            .unwrap_err()
            .starts_with("LASTBYTE_SHARDS is 0: ")
    );
    // Both systems: the same shard, or none.
    let both = |task| shard(&[pod, ("LASTBYTE_SHARDS", "4"), ("SLURM_ARRAY_TASK_ID", task)]);
    assert!(both("1").unwrap().starts_with("1/4, "));
    let error = both("2").unwrap_err();
    assert!(error.contains("name different shards"), "{error}");
    assert!(
        shard(&[("SLURM_ARRAY_TASK_ID", "1")])
            .unwrap_err()
            .contains("SLURM_ARRAY_TASK_COUNT is not set")
    );
    assert!(shard(&[]).unwrap_err().contains("write --shard I/N"));
}
