#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs::{self, File};

use lastbyte_pki::Store;
use tempfile::TempDir;

use super::*;
use crate::results::fixtures::{self, cell};
use crate::results::{EngineReport, Manifest, PartHeader, Start, Validity, write_part};
use crate::study::Measure;

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
    measured: Mutex<Vec<BlockId>>,
}

impl Invented {
    fn new(workers: usize, doing: Doing) -> Self {
        Self {
            environment: Environment::default(),
            workers,
            doing,
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

    fn workers(&self) -> usize {
        self.workers
    }

    fn expected_block(&self, job: &Job<'_>) -> Duration {
        Duration::from_secs(1) * job.connections.len() as u32
    }

    fn measure(&self, job: &Job<'_>, draft: &Path) -> Result<Ending, BlockError> {
        assert!(!draft.exists());
        assert_eq!(job.arm.arm.label, job.experiment.arms[job.id.arm].label);
        let ending = (self.doing)(job.id)?;
        lock(&self.measured).push(job.id);
        let samples = fixtures::samples(job.experiment);
        let sample = (samples.into_iter())
            .find(|sample| (sample.cell, sample.arm) == (job.id.cell, job.id.arm))
            .unwrap();
        let mut rows = sample.rows;
        rows.retain(|row| job.connections.contains(&row.index));
        for row in &mut rows {
            row.block = job.id.block;
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

impl Progress for Ears {
    fn expect(&self, total: Duration) {
        *lock(&self.expected) = total;
    }

    fn advance(&self, part: Duration) {
        *lock(&self.advanced) += part;
    }
}

impl Watcher for Ears {
    fn warn(&self, line: &str) {
        lock(&self.warnings).push(line.to_owned());
    }
}

/// What came of running the study: the end, the engine, what was heard and the parts that are there.
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
        study: &study,
        engine: &engine,
        arms: &arms,
        interrupt: &interrupt,
        watcher: &ears,
    };
    let blocks: Vec<_> = study.blocks(BLOCK).collect();
    let end = runner.run(&blocks, &folder);
    let finished = folder.finished(&study, |error| panic!("{error}")).unwrap();
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
