#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_file_replaces_an_earlier_one_once_it_is_complete() {
    let folder = folder();
    let path = folder.path().join("a");
    write(&path, b"old").unwrap();
    let mut draft = Draft::new(&path).unwrap();
    draft.file().write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    draft.keep().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn readers_find_all_of_one_or_of_the_other() {
    let folder = folder();
    let path = folder.path().join("a");
    let contents = [vec![b'a'; 1 << 16], vec![b'b'; 1 << 17]];
    write(&path, &contents[0]).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..50 {
                write(&path, &contents[round % 2]).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            assert!(contents.contains(&fs::read(&path).unwrap()));
        }
    });
}

#[test]
fn an_earlier_file_hands_down_its_permissions() {
    let folder = folder();
    let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
    write(&path, b"old").unwrap();
    fs::write(&other, "").unwrap();
    assert_eq!(mode(&path), mode(&other), "those of any file");
    for permissions in [0o600, 0o640, 0o666] {
        fs::set_permissions(&path, Permissions::from_mode(permissions)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(mode(&path), permissions);
    }
}

#[test]
fn what_fails_leaves_nothing_behind() {
    let folder = folder();
    let path = folder.path().join("a");
    write(&path, b"old").unwrap();
    drop(Draft::new(&path).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    let taken = folder.path().join("folder");
    fs::create_dir(&taken).unwrap();
    write(&taken, b"new").unwrap_err();
    write(&folder.path().join("none/a"), b"new").unwrap_err();
    keep(&folder.path().join("none"), &path).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a", "folder"]);
}

#[test]
fn errors_name_no_file_that_nobody_knows() {
    let folder = folder();
    let error = Draft::new(&folder.path().join("none/a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!error.to_string().contains(".lastbyte-"), "{error}");
}

#[test]
fn a_draft_of_ones_own_is_renamed() {
    let folder = folder();
    let [draft, path] = [".a.draft", "a"].map(|name| folder.path().join(name));
    for content in ["old", "new"] {
        fs::write(&draft, content).unwrap();
        keep(&draft, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_folder_replaces_an_earlier_one() {
    let folder = folder();
    let [draft, path] = ["a.new", "a"].map(|name| folder.path().join(name));
    for name in ["old", "new"] {
        fs::create_dir_all(draft.join("deep")).unwrap();
        fs::write(draft.join("deep").join(name), name).unwrap();
        keep_folder(&draft, &path).unwrap();
        assert_eq!(names(&path.join("deep")), [name]);
    }
    assert_eq!(names(folder.path()), ["a"]);
    keep_folder(&draft, &path).unwrap_err();
    assert_eq!(names(&path), ["deep"], "without a draft it stays");
}

#[test]
fn what_a_user_names_is_read_to_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "12345678").unwrap();
    assert_eq!(read(&file, 8).unwrap(), b"12345678");
    assert_eq!(
        read(&file, 7).unwrap_err().to_string(),
        "it is larger than 7 bytes"
    );
    let zero = folder.path().join("zero");
    std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
    for endless in [zero.as_path(), Path::new("/dev/zero")] {
        assert_eq!(
            read(endless, 1 << 20).unwrap_err().to_string(),
            "it is no regular file: name another"
        );
    }
    // Nobody writes into it: opening it would wait.
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    assert!(read(&pipe, 1 << 20).is_err());
    assert!(read(folder.path(), 1 << 20).is_err());
    fs::write(&file, [0xff]).unwrap();
    assert_eq!(
        read_text(&file, 8).unwrap_err().to_string(),
        "it is no text in UTF-8"
    );
}

/// As a shell's `<(...)` is.
#[test]
fn a_pipe_that_is_open_is_read_to_its_bound() {
    use std::os::fd::AsRawFd;
    let pipe = |content: &[u8]| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(content).unwrap();
        reader
    };
    let path =
        |reader: &std::io::PipeReader| PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    let whole = pipe(b"12345678");
    assert_eq!(read(&path(&whole), 8).unwrap(), b"12345678");
    let more = pipe(b"123456789");
    assert!(read(&path(&more), 8).is_err());
}

#[test]
fn a_file_to_read_again_is_no_pipe_and_its_name_no_link() {
    let folder = folder();
    let [file, link, pipe, socket] =
        ["file", "link", "pipe", "socket"].map(|name| folder.path().join(name));
    fs::write(&file, b"1234").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(read_regular(&link, 4, Links::Followed).unwrap(), b"1234");
    assert_eq!(read_regular(&file, 4, Links::Refused).unwrap(), b"1234");
    for (path, links) in [
        (&link, Links::Refused),
        (&pipe, Links::Followed),
        (&socket, Links::Followed),
    ] {
        let error = read_regular(path, 4, links).unwrap_err().to_string();
        assert_eq!(error, "it is no regular file: name another");
    }
    let error = read_regular(&file, 3, Links::Followed).unwrap_err();
    assert_eq!(error.to_string(), "it is larger than 3 bytes");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let folder = folder();
    let file = folder.path().join("text");
    fs::write(&file, "\u{feff}{} \u{feff}").unwrap();
    assert_eq!(read_text(&file, 100).unwrap(), "{} \u{feff}");
}

#[test]
fn a_file_is_itself_under_all_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, hard, other] =
        ["file", "link", "hard", "other"].map(|name| folder.path().join(name));
    fs::write(&file, "").unwrap();
    fs::write(&other, "").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    fs::hard_link(&file, &hard).unwrap();
    for name in [&file, &link, &hard, &folder.path().join("./file")] {
        assert!(is_same(&file, name) && is_same(name, &file), "{name:?}");
    }
    for name in [&other, &folder.path().join("none")] {
        assert!(!is_same(&file, name) && !is_same(name, &file), "{name:?}");
    }
    assert!(!is_same(
        &folder.path().join("none"),
        &folder.path().join("none")
    ));
}

/// Whatever the umask, which is one of the whole process: the test is another one's.
#[test]
fn folders_that_are_made_are_their_owners_alone() {
    const AGAIN: &str = "LASTBYTE_FILES_UMASK";
    if std::env::var_os(AGAIN).is_none() {
        let mut again = std::process::Command::new("sh");
        let name = "tests::folders_that_are_made_are_their_owners_alone";
        again.args(["-c", "umask 000 && exec \"$0\" --exact \"$1\""]);
        again.arg(std::env::current_exe().unwrap()).arg(name);
        let ended = again.env(AGAIN, "000").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(
            ended.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    make_folders(&inner).unwrap();
    make_folders(&inner).unwrap();
    for made in [&inner, &folder.path().join("a")] {
        let mode = made.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{made:?}");
    }
}

/// Whatever names it, and until another file has its name.
#[test]
fn files_that_were_opened_are_remembered() {
    let folder = folder();
    let [file, other, link] = ["a", "b", "c"].map(|name| folder.path().join(name));
    write(&file, b"read").unwrap();
    write(&other, b"not read").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(!was_opened(&file));
    assert_eq!(read(&link, 10).unwrap(), b"read");
    assert!(was_opened(&file) && was_opened(&link));
    assert!(!was_opened(&other) && !was_opened(&folder.path().join("none")));
    // What is opened as a program reads it again and again is not.
    read_regular(&other, 10, Links::Refused).unwrap();
    assert!(!was_opened(&other));
    // Whoever opens a folder reads no file.
    assert!(open(folder.path()).is_ok());
    assert!(!was_opened(folder.path()));
    let earlier = File::open(&file).unwrap();
    write(&file, b"new").unwrap();
    assert!(!was_opened(&file));
    drop(earlier);
}
