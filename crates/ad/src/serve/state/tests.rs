use std::os::unix::fs::{chown, symlink};

use lastbyte_pki::test_chains;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::*;

fn chain() -> Chain {
    let chain = test_chains::for_name("server.example").unwrap();
    Chain::new(chain.certificates().to_vec(), chain.key().clone()).unwrap()
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// In whole seconds.
fn in_an_hour() -> SystemTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    at(now.as_secs() + 3600)
}

#[test]
fn chains_come_back_with_their_keys_until_their_time_is_over() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().join("made/by/itself");
    let state = State::open(&folder).unwrap();
    let [first, second] = [chain(), chain()];
    let digests = [first.digest(), second.digest()];
    let mut chains = Chains::new(vec![first]);
    state.save(&chains).unwrap();
    let until = in_an_hour();
    chains.rotate(vec![second], until);
    state.save(&chains).unwrap();
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600, "keys are their owner's alone");
    }

    let again = State::open(&folder).unwrap();
    let mut kept = again.load(SystemTime::now()).unwrap();
    assert!(kept.useless.is_empty());
    kept.chains.sort_by_key(|(_, until)| *until);
    let found = kept.chains.iter();
    let found: Vec<_> = found
        .map(|(chain, until)| (chain.digest(), *until))
        .collect();
    assert_eq!(found, [(digests[1], None), (digests[0], Some(until))]);

    let later = again.load(until).unwrap();
    assert_eq!(later.chains.len(), 1, "the time of the first is over");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn what_is_forgotten_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    let state = State::open(folder.path()).unwrap();
    fs::write(folder.path().join("notes.pem"), "of somebody else").unwrap();
    let mut chains = Chains::new(vec![chain()]);
    chains.rotate(vec![chain()], in_an_hour());
    state.save(&chains).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    chains.forget();
    state.save(&chains).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn damaged_files_are_told_and_not_used() {
    let folder = TempDir::new().unwrap();
    let state = State::open(folder.path()).unwrap();
    let chains = Chains::new(vec![chain()]);
    state.save(&chains).unwrap();
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap();
    let file = file.unwrap().path();
    let whole = fs::read(&file).unwrap();
    let other = folder.path().join(format!("{}.pem", "0".repeat(64)));
    let no_time = [b"until never\n", &whole[CURRENT.len() + 1..]].concat();
    let never_over = format!("until {}\n", u64::MAX);
    let never_over = [never_over.as_bytes(), &whole[CURRENT.len() + 1..]].concat();
    for (path, content) in [
        (&file, &never_over[..]),
        (&file, &whole[..whole.len() / 2]),
        (&file, b"current\n"),
        (&file, b""),
        (&file, &no_time),
        (&other, &whole),
    ] {
        fs::write(path, content).unwrap();
        let kept = state.load(SystemTime::now()).unwrap();
        assert_eq!(kept.useless.len(), 1, "{:?}", kept.useless);
        fs::write(&file, &whole).unwrap();
    }
}

#[test]
fn a_folder_that_can_not_be_made_is_told() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = State::open(&file.join("state")).unwrap_err();
    assert!(
        error.to_string().contains("can't keep chains in"),
        "{error}"
    );
}

#[test]
fn what_is_no_file_of_its_own_is_written_anew() {
    let folder = TempDir::new().unwrap();
    let state = State::open(folder.path()).unwrap();
    let chains = Chains::new(vec![chain()]);
    state.save(&chains).unwrap();
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap();
    let file = file.unwrap().path();
    let whole = fs::read(&file).unwrap();
    let elsewhere = TempDir::new().unwrap();
    let elsewhere = elsewhere.path().join("key.pem");
    fs::write(&elsewhere, &whole).unwrap();
    fs::remove_file(&file).unwrap();
    mkfifo(&file, Mode::S_IRWXU).unwrap();
    assert_eq!(state.load(SystemTime::now()).unwrap().useless.len(), 1);
    for is_link in [false, true] {
        if is_link {
            fs::remove_file(&file).unwrap();
            symlink(&elsewhere, &file).unwrap();
        }
        state.save(&chains).unwrap();
        let found = file.symlink_metadata().unwrap();
        assert!(found.is_file());
        assert_eq!(found.mode() & 0o777, 0o600);
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    state.save(&chains).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn one_that_can_not_be_removed_keeps_no_other() {
    let folder = TempDir::new().unwrap();
    let state = State::open(folder.path()).unwrap();
    // Whichever of the two comes first in the folder.
    let stuck = ["0", "f"].map(|digit| folder.path().join(format!("{}.pem", digit.repeat(64))));
    stuck.iter().for_each(|path| fs::create_dir(path).unwrap());
    let mut chains = Chains::new(vec![chain()]);
    chains.rotate(vec![chain()], in_an_hour());
    state.save(&chains).unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    chains.forget();
    let told = state.save(&chains).unwrap_err().to_string();
    for path in &stuck {
        assert!(told.contains(&path.display().to_string()), "{told}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let folder = TempDir::new().unwrap();
    let refused = || State::open(folder.path()).unwrap_err().to_string();
    for mode in [0o770, 0o707, 0o1777] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(refused().contains("others can write to it"), "{mode:o}");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    State::open(folder.path()).unwrap();
    if geteuid().is_root() {
        chown(folder.path(), Some(65534), None).unwrap();
        assert!(refused().contains("it is another user's"));
    }
}
