#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::*;
use crate::fixtures::{environment, part_folder, run_folder};
use crate::{PAGES, Part, Sample, Summary, loads_path, write_part};
use lastbyte_study::Metric;
use lastbyte_study::Percentile;

const STUDY: &str = r#"connections = 100
[arm.old]
tls = "secp256r1/rsa-2048"
[arm.new]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[link.path]
rtt = "35ms"
[[measure]]
id = "growth"
data = ["0KiB", "50KiB"]
"#;

/// The command that gathers.
fn command() -> Vec<OsString> {
    ["lastbyte", "run", "--gather", "one", "two"]
        .map(OsString::from)
        .to_vec()
}

/// A place for shards.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// One that has the blocks of these cells.
    fn shard(&self, name: &str, cells: &[usize]) -> PathBuf {
        self.changed(name, cells, &environment(), |_| {})
    }

    fn changed(
        &self,
        name: &str,
        cells: &[usize],
        environment: &Environment,
        change: impl Fn(&mut Sample),
    ) -> PathBuf {
        let path = self.path(name);
        let is_there = |id: BlockId| cells.contains(&id.cell);
        part_folder(&path, STUDY, environment, is_there, change);
        path
    }

    fn gather(&self, shards: &[PathBuf]) -> Result<Gathered, GatherError> {
        gather(shards, &self.path("out"), &command())
    }

    /// Why it can't be, which leaves nothing behind, without where the place is.
    fn refused(&self, shards: &[PathBuf]) -> String {
        let files = || fs::read_dir(self.path("out")).map_or(0, Iterator::count);
        let before = files();
        let error = self.gather(shards).err().unwrap().to_string();
        assert_eq!(files(), before);
        error.replace(&self.0.path().display().to_string(), "DIR")
    }
}

/// The first part of a shard.
fn first_part(shard: &Path) -> PathBuf {
    let parts = fs::read_dir(shard.join("parts")).unwrap();
    let mut parts: Vec<_> = parts.map(|part| part.unwrap().path()).collect();
    parts.sort();
    parts.swap_remove(0)
}

#[test]
fn shards_make_the_rows_of_one_machine() {
    let place = Place::new();
    let (one, two) = (place.shard("one", &[0]), place.shard("two", &[1]));
    let gathered = place.gather(&[one.clone(), two]).unwrap();
    assert_eq!((gathered.blocks, gathered.missing.len()), (8, 0));
    gathered.folder.merge(&gathered.study).unwrap();
    run_folder(&place.path("whole"), STUDY, &[]);
    let rows = |folder: &str| fs::read(place.path(folder).join("rows.parquet")).unwrap();
    assert!(rows("out") == rows("whole"));
    // Nobody measured all of it by a shard's command.
    let manifest = Dataset::open(&place.path("out")).unwrap().manifest;
    assert_eq!(
        manifest.environment.command_line(),
        "lastbyte run --gather one two"
    );
    // Shards stay as they are.
    assert!(first_part(&one).exists());
}

/// What browsers told goes with the parts.
#[test]
fn loads_of_pages_are_gathered() {
    const PAGES_STUDY: &str = "connections = 4\n[arm.a]\ntls = \"x25519/ecdsa-p256/server=node\"\n\
        [link.l]\nrtt = \"35ms\"\n[[measure]]\nid = \"m\"\npage = \"median-2024\"\norigins = [1, 2]\n";
    let place = Place::new();
    let shards = [0, 1].map(|cell| {
        let path = place.path(&format!("shard-{cell}"));
        part_folder(
            &path,
            PAGES_STUDY,
            &environment(),
            |id| id.cell == cell,
            |_| {},
        );
        let study = Dataset::open(&path).unwrap().study;
        let id = BlockId {
            measure: 0,
            cell,
            block: 0,
            arm: 0,
        };
        let loads = loads_path(&path.join(PAGES), &study, id, 0);
        fs::create_dir(path.join(PAGES)).unwrap();
        fs::write(loads, "[]").unwrap();
        path
    });
    place.gather(&shards).unwrap();
    let mut found: Vec<_> = fs::read_dir(place.path("out").join(PAGES))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, ["m-cell-0-arm-0-a.json", "m-cell-1-arm-0-a.json"]);
}

#[test]
fn what_no_shard_has_is_told() {
    let place = Place::new();
    let one = place.shard("one", &[0]);
    let gathered = place.gather(&[one]).unwrap();
    let missing: Vec<_> = (gathered.missing.iter())
        .map(|id| (id.cell, id.arm, id.block))
        .collect();
    assert_eq!(missing, [(1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)]);
}

#[test]
fn a_part_that_was_cut_short_is_missing_unless_another_shard_has_it() {
    let place = Place::new();
    let (one, two) = (place.shard("one", &[0, 1]), place.shard("two", &[0]));
    let cut = first_part(&one);
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let gathered = place.gather(&[one.clone(), two]).unwrap();
    assert_eq!((gathered.missing.len(), gathered.damaged.len()), (0, 1));
    let gathered = gather(&[one], &place.path("alone"), &command()).unwrap();
    assert_eq!((gathered.missing.len(), gathered.damaged.len()), (1, 1));
}

#[test]
fn the_same_rows_twice_are_one_and_others_are_refused() {
    let place = Place::new();
    let (one, two) = (place.shard("one", &[0]), place.shard("two", &[0, 1]));
    let gathered = gather(
        &[one.clone(), two.clone()],
        &place.path("alike"),
        &command(),
    )
    .unwrap();
    assert_eq!(gathered.blocks, 8);
    let other = place.changed("other", &[0], &environment(), |sample| {
        let times = &mut sample.rows[0].times;
        times.handshake = times
            .handshake
            .map(|time| time + std::time::Duration::from_nanos(1));
    });
    assert_snapshot!(
        place.refused(&[one, two, other]),
        @r#""DIR/one/parts/00-growth-0000-00-00000.parquet" and "DIR/other/parts/00-growth-0000-00-00000.parquet" are the same connections with other rows: keep the part that you trust"#
    );
}

#[test]
fn shards_of_other_studies_versions_kernels_and_chains_are_refused() {
    let place = Place::new();
    let one = place.shard("one", &[0]);
    let path = place.path("seed");
    let text = STUDY.replace("connections = 100", "connections = 100\nseed = 2");
    part_folder(&path, &text, &environment(), |_| true, |_| {});
    assert_snapshot!(place.refused(&[one.clone(), path]), @r#""DIR/seed" does not fit "DIR/one": it measures another file of the study "made-up": gather shards of one"#);
    let kernel = Environment {
        kernel: "Linux 6.13.0".to_owned(),
        ..environment()
    };
    let other = place.changed("kernel", &[1], &kernel, |_| {});
    assert_snapshot!(place.refused(&[one.clone(), other]), @r#""DIR/kernel" does not fit "DIR/one": it was measured with "Linux 6.13.0", not "Linux 6.12.0": measure all shards with one kernel"#);
    let version = Environment {
        versions: [("openssl".to_owned(), "3.9".to_owned())].into(),
        ..environment()
    };
    let other = place.changed("version", &[1], &version, |_| {});
    assert_snapshot!(place.refused(&[one.clone(), other]), @r#""DIR/version" does not fit "DIR/one": its "openssl" was "3.9", not none: measure all shards with one version"#);
    let other = place.changed("chain", &[1], &environment(), |sample| {
        sample.chain_digest = "another".to_owned();
    });
    let build = place.shard("build", &[1]);
    let manifest = build.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(
        &manifest,
        text.replacen('{', "{\"program_sha256\": \"00\",", 1),
    )
    .unwrap();
    assert_snapshot!(place.refused(&[one.clone(), build]), @r#""DIR/build" does not fit "DIR/one": it was measured by another build of lastbyte, which draws other random numbers: measure all shards with one file of the program"#);
    assert_snapshot!(place.refused(&[one, other]), @r#""DIR/chain/parts/00-growth-0001-00-00000.parquet" does not fit "DIR/one/parts/00-growth-0000-00-00000.parquet": its server had another chain: measure all shards with one folder of them (--chains DIR)"#);
}

/// What stands in a folder is not believed because it stands there.
#[test]
fn shards_that_contradict_themselves_or_each_other_are_refused() {
    let place = Place::new();
    let one = place.shard("one", &[0]);
    let told = |name: &str, from: &str, to: &str| {
        let shard = place.shard(name, &[1]);
        let manifest = shard.join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&manifest, text.replace(from, to)).unwrap();
        shard
    };
    let cells = told("cells", "\"cells\": 2", "\"cells\": 3");
    assert_snapshot!(place.refused(&[one.clone(), cells]), @r#"the manifest of "DIR/cells" tells of 3 cells, of which its study has 2: measure that shard again, or leave it out"#);
    let blocks = told(
        "blocks",
        "\"blocks\": 8",
        "\"blocks\": 18446744073709551615",
    );
    assert_snapshot!(place.refused(&[one.clone(), blocks]), @r#"the manifest of "DIR/blocks" tells of 18446744073709551615 blocks, of which its study has 8: measure that shard again, or leave it out"#);
    let connections = told("connections", "\"connections\": 400", "\"connections\": 0");
    // Whichever is first.
    assert_snapshot!(place.refused(&[connections, one.clone()]), @r#"the manifest of "DIR/connections" tells of 0 connections, of which its study has 400: measure that shard again, or leave it out"#);
    let size = told("size", "\"block_size\": 50", "\"block_size\": 25");
    assert_snapshot!(place.refused(&[one.clone(), size]), @r#""DIR/size" does not fit "DIR/one": its blocks have 25 connections: use the version of Lastbyte that began it"#);
    // With its own manifest, the study would be that of the others.
    let study = place.shard("study", &[1]);
    let file = study.join("study.toml");
    fs::write(&file, STUDY.replace("35ms", "50ms")).unwrap();
    assert_snapshot!(place.refused(&[one.clone(), study.clone()]), @r#"can't read "DIR/study/study.toml": it is another file than what was measured, as the manifest beside it tells: bring it back, and give what is to be drawn in another one with --study"#);
    fs::remove_file(&file).unwrap();
    assert_snapshot!(place.refused(&[one, study]), @r#"can't read "DIR/study/study.toml": No such file or directory (os error 2)"#);
}

/// A part's name, what it says of itself and what it holds are one.
#[test]
fn parts_of_other_rows_than_they_tell_of_are_refused() {
    let place = Place::new();
    let shard = |name: &str, change: fn(&mut Part)| {
        let shard = place.shard(name, &[0, 1]);
        let study = Dataset::open(&shard).unwrap().study;
        let path = first_part(&shard);
        let mut part = read_part(&path).unwrap();
        change(&mut part);
        let mut bytes = Vec::new();
        write_part(&mut bytes, &part.header, &study, &part.rows).unwrap();
        fs::write(&path, bytes).unwrap();
        shard
    };
    for (name, change) in [
        ("seed", (|part| part.header.seed = 2) as fn(&mut Part)),
        ("arm", |part| part.header.arm = "new".to_owned()),
        ("measure", |part| part.header.measure = "others".to_owned()),
        ("first", |part| part.header.first = 1),
    ] {
        let told = place.refused(&[shard(name, change)]);
        let told = told.replace(name, "NAME");
        assert_eq!(
            told,
            "\"DIR/NAME/parts/00-growth-0000-00-00000.parquet\" does not fit \"DIR/NAME\": block is another one than its \
             name says: delete it"
        );
    }
    // Of fewer or more rows than they tell of, they are damaged, and somebody else may have them.
    for (name, change) in [
        ("fewer", (|part| part.rows.truncate(49)) as fn(&mut Part)),
        ("none", |part| part.rows.clear()),
        ("more", |part| part.rows.extend(part.rows.clone())),
    ] {
        let gathered = gather(&[shard(name, change)], &place.path("out").join(name), &[]).unwrap();
        assert_eq!((gathered.missing.len(), gathered.damaged.len()), (1, 1));
        let told = gathered.damaged[0].to_string();
        assert!(
            told.contains("it does not hold the rows that it tells of"),
            "{told}"
        );
    }
}

#[test]
fn what_is_no_shard_is_said() {
    let place = Place::new();
    assert_snapshot!(place.refused(&[]), @r#"nothing to gather: name the folders of the shards, as in --gather shard-1 shard-2"#);
    run_folder(&place.path("whole"), STUDY, &[]);
    assert_snapshot!(place.refused(&[place.path("whole")]), @r#""DIR/whole" is a run that has come to its end: there is nothing to gather, report on it"#);
    assert_snapshot!(place.refused(&[place.path("nothing")]), @r#""DIR/nothing" holds no run: name a folder of `lastbyte run`"#);
    let one = place.shard("one", &[0]);
    fs::create_dir(place.path("out")).unwrap();
    fs::write(place.path("out/mine.txt"), "").unwrap();
    assert_snapshot!(place.refused(&[one]), @r#""DIR/out" is not empty and holds no run: name another folder with -o"#);
}

#[test]
fn what_is_gathered_is_summarised_like_any_run() {
    let place = Place::new();
    let shards = [place.shard("one", &[0]), place.shard("two", &[1])];
    let gathered = place.gather(&shards).unwrap();
    gathered.folder.merge(&gathered.study).unwrap();
    let data = Dataset::open(&place.path("out")).unwrap();
    let mut summaries: Vec<Summary> = Vec::new();
    data.summarise(|_, _, summary| {
        summaries.push(summary);
        Ok::<_, FolderError>(())
    })
    .unwrap();
    let arms = &summaries[0].cells[1].arms;
    assert!(arms.iter().all(|arm| arm.connections == 100));
    assert!(arms[0].metric(Metric::Handshake).percentiles[&Percentile::MEDIAN].is_ok());
}

#[test]
fn what_a_node_was_writing_when_it_died_is_passed_over() {
    let place = Place::new();
    let (one, two) = (place.shard("one", &[0]), place.shard("two", &[1]));
    let part = first_part(&one);
    let name = part.file_name().unwrap().to_str().unwrap();
    let bytes = fs::read(&part).unwrap();
    fs::write(part.with_file_name(format!(".{name}.draft")), &bytes[..100]).unwrap();
    fs::create_dir(part.with_file_name(format!(".{name}.guest"))).unwrap();
    let gathered = place.gather(&[one, two]).unwrap();
    assert_eq!(
        (
            gathered.blocks,
            gathered.missing.len(),
            gathered.damaged.len()
        ),
        (8, 0, 0)
    );
    // What is no part of the study is left alone, too.
    let stray = place.shard("stray", &[0, 1]);
    fs::write(stray.join("parts/notes.txt"), "mine").unwrap();
    let gathered = gather(&[stray], &place.path("other"), &command()).unwrap();
    assert_eq!((gathered.blocks, gathered.damaged.len()), (8, 0));
}

#[test]
fn a_shard_given_twice_is_one() {
    let place = Place::new();
    let (one, two) = (place.shard("one", &[0]), place.shard("two", &[1]));
    let gathered = place.gather(&[one.clone(), two, one]).unwrap();
    assert_eq!((gathered.blocks, gathered.missing.len()), (8, 0));
}

/// Of two file systems, as shards and results on a cluster may be.
#[test]
fn what_can_not_be_linked_is_copied() {
    let place = Place::new();
    let one = place.shard("one", &[0, 1]);
    let memory = TempDir::new_in("/dev/shm").unwrap();
    for out in [place.path("linked"), memory.path().join("copied")] {
        let gathered = gather(std::slice::from_ref(&one), &out, &command()).unwrap();
        gathered.folder.merge(&gathered.study).unwrap();
    }
    let rows = |folder: &Path| fs::read(folder.join("rows.parquet")).unwrap();
    assert!(rows(&place.path("linked")) == rows(&memory.path().join("copied")));
    assert!(first_part(&one).exists());
}

#[test]
fn a_study_that_was_changed_after_it_was_measured_is_refused() {
    let place = Place::new();
    let one = place.shard("one", &[0, 1]);
    let file = one.join("study.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("35ms", "50ms")).unwrap();
    let refused = place.refused(std::slice::from_ref(&one));
    assert!(
        refused.contains("it is another file than what was measured"),
        "{refused}"
    );
    assert!(Dataset::open(&one).is_err());
    fs::write(&file, text).unwrap();
    assert!(place.gather(&[one]).is_ok());
}
