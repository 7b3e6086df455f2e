#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::id::LogNumber;
use crate::tree::Tree;

fn id() -> LogId {
    LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap()
}

fn open(folder: &TempDir) -> Log {
    Log::open(id(), folder.path()).unwrap()
}

fn entries(range: Range<u64>) -> Vec<Vec<u8>> {
    range
        .map(|index| format!("entry {index}").into_bytes())
        .collect()
}

fn tree(size: u64) -> Tree {
    let mut tree = Tree::new();
    for entry in entries(0..size) {
        tree.push(entry::leaf(&entry));
    }
    tree
}

/// That a log has just these entries, in memory and on the disk.
fn check(log: &Log, size: u64) {
    let tree = tree(size);
    assert_eq!(log.size(), size);
    assert_eq!(log.root().unwrap(), tree.root().unwrap());
    for range in [0..size, 250..260, size / 2..size + 9, size..size + 1, 7..7] {
        let read: Vec<_> = log.entries(range.clone()).map(Result::unwrap).collect();
        let expected = range.start.min(size)..range.end.min(size);
        assert_eq!(read, entries(expected), "{range:?} of {size}");
    }
    for index in [0, 1, 255, 256, size / 2, size.saturating_sub(1)] {
        if index >= size {
            log.entry(index).unwrap_err();
            continue;
        }
        assert_eq!(log.entry(index).unwrap(), entries(index..index + 1)[0]);
        let whole = Subtree::whole(size);
        let proof = whole.inclusion_proof(index, log).unwrap();
        assert_eq!(proof, whole.inclusion_proof(index, &tree).unwrap());
    }
}

#[test]
fn a_log_is_what_was_appended_also_when_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut size = 0;
    for batch in [0, 1, 2, 252, 1, 1, 300, 512, 70_000] {
        let mut log = open(&folder);
        let appended = log.append(&entries(size..size + batch)).unwrap();
        assert_eq!(appended, size..size + batch);
        size += batch;
        if batch < 1000 {
            check(&log, size);
        }
        drop(log);
        check(&open(&folder), size);
    }
    for name in ["0/000", "0/276", "1/000", "1/001.p/21", "2/000.p/1"] {
        let path = folder.path().join("tile").join(name);
        assert!(path.exists(), "{name}");
    }
    for name in ["0/000.p", "0/001.p", "entries/001.p", "1/000.p"] {
        let path = folder.path().join("tile").join(name);
        assert!(!path.exists(), "{name} is of a full tile");
    }
    assert_eq!(
        bundle_path(1_234_067, TILE),
        Path::new("tile/entries/x001/x234/067")
    );
    assert_eq!(tile_path(3, 67, 12), Path::new("tile/3/067.p/12"));
}

#[test]
fn a_log_is_of_one_process_and_of_one_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(&folder);
    let error = Log::open(id(), folder.path()).unwrap_err();
    assert!(matches!(error, LogError::InUse(_)), "{error}");
    log.append(&entries(0..3)).unwrap();
    drop(log);
    let other = LogId::new("32473.2".parse().unwrap(), LogNumber::FIRST).unwrap();
    let error = Log::open(other, folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("it is of another log"), "{error}");
    open(&folder);
}

/// What is in a folder, and below.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        }
        found.insert(path);
    }
    found
}

#[test]
fn a_log_is_read_beside_who_adds_to_it_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let none = LogReader::open(id(), &folder.path().join("none")).unwrap();
    assert_eq!(none.size(), 0);
    assert_eq!(files(folder.path()), BTreeSet::new());
    open(&folder).append(&entries(0..300)).unwrap();
    fs::remove_file(folder.path().join(LOCK)).unwrap();
    let before = files(folder.path());
    let early = LogReader::open(id(), folder.path()).unwrap();
    assert_eq!(files(folder.path()), before);
    let mut log = open(&folder);
    log.append(&entries(300..600)).unwrap();
    check(&log, 600);
    assert_eq!(LogReader::open(id(), folder.path()).unwrap().size(), 600);
    // What was read is as it was.
    assert_eq!(early.root().unwrap(), tree(300).root().unwrap());
    assert_eq!(early.entry(299).unwrap(), entries(299..300)[0]);
}

#[test]
fn a_log_that_grows_meanwhile_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(&folder);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let signer = Anybody("32473.1".parse().unwrap());
            let signers = [NoteSigner {
                cosigner: &signer,
                key: b"key",
            }];
            for start in (0..8000).step_by(100) {
                log.append(&entries(start..start + 100)).unwrap();
                log.publish(UnixTime(1000), &signers).unwrap();
                log.make_landmark(UnixTime(start), UnixTime(0)).unwrap();
            }
        });
        while !writer.is_finished() {
            let log = LogReader::open(id(), folder.path()).unwrap();
            let published = log.checkpoint().map_or(0, |checkpoint| checkpoint.size);
            let landmark = log.landmarks().latest();
            assert!(landmark.size <= published && published <= log.size());
        }
    });
}

#[test]
fn every_byte_of_the_files_at_the_edge_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    open(&folder).append(&entries(0..300)).unwrap();
    for name in [
        ".tree",
        "tile/0/001.p/44",
        "tile/1/000.p/1",
        "tile/entries/001.p/44",
    ] {
        let path = folder.path().join(name);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1;
            for wrong in [&flipped[..], &good[..at]] {
                // The last newline is nobody's.
                if wrong.trim_ascii() == good.trim_ascii() {
                    continue;
                }
                fs::write(&path, wrong).unwrap();
                let opened = Log::open(id(), folder.path());
                assert!(opened.is_err(), "{name} changed at {at}");
            }
        }
        fs::write(&path, good).unwrap();
    }
    check(&open(&folder), 300);
    fs::write(folder.path().join("tile/0/000"), [0; 100]).unwrap();
    let log = open(&folder);
    assert!(log.node(0, 5).is_err());
    fs::remove_file(folder.path().join("tile/entries/000")).unwrap();
    assert!(log.entry(5).is_err());
}

#[test]
fn any_byte_of_any_file_is_found_when_it_is_another() {
    let folder = tempfile::tempdir().unwrap();
    open(&folder).check().unwrap();
    open(&folder).append(&entries(0..70_000)).unwrap();
    let log = open(&folder);
    log.check().unwrap();
    for (name, at) in [
        ("0/000", 0),
        ("0/100", 4000),
        ("0/272", 8191),
        ("1/000", 17),
        ("entries/000", 0),
        ("entries/005", 2),
        ("entries/272", 900),
    ] {
        let path = folder.path().join("tile").join(name);
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        for wrong in [&flipped[..], &good[..at], &[&good[..], &[0]].concat()] {
            fs::write(&path, wrong).unwrap();
            let error = log.check().unwrap_err();
            assert!(matches!(error, LogError::Damaged { .. }), "{name}: {error}");
        }
        fs::remove_file(&path).unwrap();
        log.check().unwrap_err();
        fs::write(&path, good).unwrap();
    }
    log.check().unwrap();
    // Entries of another log, with tiles that go with them: the edge tells.
    let other = tempfile::tempdir().unwrap();
    let mut changed = entries(0..70_000);
    changed[77].push(0);
    open(&other).append(&changed).unwrap();
    for name in ["0/000", "1/000", "entries/000"] {
        let from = other.path().join("tile").join(name);
        fs::copy(from, folder.path().join("tile").join(name)).unwrap();
    }
    log.check().unwrap_err();
}

/// A disk that ends after so many writes: full, or without power, with half of a file written.
struct EndingDisk {
    left: usize,
    error: ErrorKind,
}

impl EndingDisk {
    fn write(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &content[..content.len() / 2])?;
        Err(self.error.into())
    }
}

impl Disk for EndingDisk {
    fn put(&mut self, folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
        for file in files {
            self.write(&file.0, &file.1)?;
            RealDisk.put(folder, std::slice::from_ref(file))?;
        }
        Ok(())
    }

    fn replace(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.write(&path.with_extension("draft"), content)?;
        RealDisk.replace(path, content)
    }
}

/// Wherever the power goes, the log is opened as it was acknowledged, and takes other entries then.
#[test]
fn a_batch_is_in_whole_or_not_at_all_wherever_it_is_cut() {
    for start in [0, 200, 256, 300] {
        let mut ended = 0;
        for left in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let mut log = open(&folder);
            log.append(&entries(0..start)).unwrap();
            let mut disk = EndingDisk {
                left,
                error: ErrorKind::Interrupted,
            };
            let unlike = vec![b"never acknowledged".to_vec(); 300];
            let appended = log.append_to(&mut disk, &unlike);
            drop(log);
            let mut log = open(&folder);
            if appended.is_ok() {
                assert_eq!(log.size(), start + 300);
                break;
            }
            ended += 1;
            check(&log, start);
            log.append(&entries(start..start + 300)).unwrap();
            drop(log);
            check(&open(&folder), start + 300);
        }
        assert!(ended >= 5, "{ended} writes were cut");
    }
}

#[test]
fn a_full_disk_is_one_clear_error_and_nothing_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(&folder);
    log.append(&entries(0..10)).unwrap();
    let mut disk = EndingDisk {
        left: 1,
        error: ErrorKind::StorageFull,
    };
    let error = log.append_to(&mut disk, &entries(10..700)).unwrap_err();
    let expected = format!(
        "can't write the log in \"{}\": no storage space; nothing of this batch counts",
        folder.path().display()
    );
    assert_eq!(error.to_string(), expected);
    check(&log, 10);
    log.append(&entries(10..700)).unwrap();
    check(&log, 700);
    let long = vec![0; MAX_ENTRY_BYTES + 1];
    log.append(&[long]).unwrap_err();
    check(&log, 700);
}

/// The file system itself says so: one of 1 MB, where the machine lets us have one.
#[test]
fn a_file_system_that_is_full_is_no_harm() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(&folder);
    log.append(&entries(0..10)).unwrap();
    // The next bundle's file is the device that is always full.
    let path = folder.path().join("tile/entries/000.p/20");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(full, &path).unwrap();
    let error = log.append(&entries(10..20)).unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    check(&log, 10);
    fs::remove_file(path).unwrap();
    log.append(&entries(10..20)).unwrap();
    check(&log, 20);
}

#[test]
fn landmarks_are_of_what_was_published() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(&folder);
    let [now, later] = [UnixTime(1000), UnixTime(5000)];
    log.append(&entries(0..500)).unwrap();
    log.make_landmark(later, now).unwrap_err();
    let signer = Anybody("32473.1".parse().unwrap());
    let signers = [NoteSigner {
        cosigner: &signer,
        key: b"key",
    }];
    let note = log.publish(now, &signers).unwrap();
    log.append(&entries(500..600)).unwrap();
    let landmark = log.make_landmark(later, now).unwrap();
    assert_eq!((landmark.number, landmark.size), (1, 500));
    log.make_landmark(later, now).unwrap_err();
    log.publish(now, &signers).unwrap();
    log.make_landmark(UnixTime(9000), UnixTime(5001)).unwrap();
    drop(log);
    let log = open(&folder);
    assert_eq!(log.checkpoint().unwrap().size, 600);
    assert_eq!(log.landmarks().to_string(), "2\n600 9000\n500 5000\n");
    drop(log);
    // A log that has lost what it signed must not go on.
    let state = folder.path().join(STATE);
    let good = fs::read(&state).unwrap();
    fs::remove_file(&state).unwrap();
    let error = Log::open(id(), folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("it is missing"), "{error}");
    let shorter = tempfile::tempdir().unwrap();
    open(&shorter).append(&entries(0..10)).unwrap();
    fs::copy(
        folder.path().join(CHECKPOINT),
        shorter.path().join(CHECKPOINT),
    )
    .unwrap();
    let error = Log::open(id(), shorter.path()).unwrap_err().to_string();
    assert!(
        error.ends_with("more was published than it knows of"),
        "{error}"
    );
    fs::write(&state, good).unwrap();
    fs::write(folder.path().join(CHECKPOINT), note).unwrap();
    open(&folder);
}

struct Anybody(crate::TrustAnchorId);

impl crate::Cosigner for Anybody {
    fn id(&self) -> &crate::TrustAnchorId {
        &self.0
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, crate::cosign::SignError> {
        Ok(message.to_owned())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_batches_make_the_same_log(batches in prop::collection::vec(0_u64..400, 0..6)) {
        let folder = tempfile::tempdir().unwrap();
        let mut size = 0;
        for batch in batches {
            open(&folder).append(&entries(size..size + batch)).unwrap();
            size += batch;
        }
        check(&open(&folder), size);
    }
}
