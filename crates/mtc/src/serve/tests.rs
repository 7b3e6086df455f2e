#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use proptest::prelude::*;

use super::*;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("served/1");
    fs::create_dir_all(log.join("tile/0/000.p")).unwrap();
    fs::write(log.join("checkpoint"), checkpoint(5)).unwrap();
    fs::write(log.join(".tree"), "private").unwrap();
    fs::write(log.join("tile/0/000.p/5"), "a tile").unwrap();
    fs::write(folder.path().join("key"), "private").unwrap();
    let link = std::os::unix::fs::symlink::<PathBuf, PathBuf>;
    link(folder.path().join("key"), log.join("link")).unwrap();
    link(folder.path().into(), folder.path().join("served/2")).unwrap();
    link(folder.path().into(), log.join("out")).unwrap();
    link(log.clone(), log.join("in")).unwrap();
    folder
}

/// Of a log of so many entries.
fn checkpoint(size: u64) -> String {
    let [root, signature] = [&[0; 32][..], &[0; 20]].map(crate::note::base64);
    format!("a log\n{size}\n{root}\n\n\u{2014} a {signature}\n")
}

fn get(folder: &tempfile::TempDir, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = Request::parse(request.as_bytes()).response(&folder.path().join("served"));
    String::from_utf8(response.unwrap()).unwrap()
}

#[test]
fn files_of_logs_are_served() {
    let folder = folder();
    assert_eq!(
        get(&folder, "/1/checkpoint"),
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{}",
            checkpoint(5).len(),
            checkpoint(5)
        )
    );
    let tile = get(&folder, "/1/tile/0/000.p/5");
    assert!(tile.contains("application/octet-stream") && tile.ends_with("a tile"));
}

#[test]
fn the_folder_itself_can_be_a_link() {
    let folder = folder();
    let link = folder.path().join("a link");
    std::os::unix::fs::symlink(folder.path().join("served"), &link).unwrap();
    let response = Request::Get("/1/checkpoint").response(&link).unwrap();
    assert!(response.ends_with(checkpoint(5).as_bytes()));
}

/// A batch that was cut has written what no checkpoint covers.
#[test]
fn what_no_checkpoint_covers_is_not_served() {
    let folder = folder();
    let log = folder.path().join("served/1");
    let put = |name: &str| {
        let path = log.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content").unwrap();
    };
    for (size, covered, beyond) in [
        (
            5,
            vec!["tile/0/000.p/5", "tile/entries/000.p/5"],
            vec!["tile/0/000.p/6", "tile/0/000", "tile/1/000.p/1"],
        ),
        (
            513,
            vec![
                "tile/0/001",
                "tile/0/002.p/1",
                "tile/1/000.p/2",
                "tile/entries/001",
            ],
            vec![
                "tile/0/002",
                "tile/0/002.p/2",
                "tile/1/000.p/3",
                "tile/entries/002.p/2",
                "tile/9/000",
            ],
        ),
        (
            256_256,
            vec!["tile/0/x001/000"],
            vec!["tile/0/x001/001", "tile/0/x001/000.p/0", "tile/0/0"],
        ),
    ] {
        fs::write(log.join("checkpoint"), checkpoint(size)).unwrap();
        for (names, status) in [(covered, "200"), (beyond, "404")] {
            for name in names {
                if name.matches(".p/").count() == 0 {
                    let _ = fs::remove_dir_all(log.join(name));
                }
                put(name);
                let response = get(&folder, &format!("/1/{name}"));
                assert_eq!(&response[9..12], status, "{size}: {name}");
            }
        }
    }
    fs::remove_file(log.join("checkpoint")).unwrap();
    assert!(get(&folder, "/1/tile/0/000.p/5").starts_with("HTTP/1.1 404 "));
}

#[test]
fn nothing_else_is() {
    let folder = folder();
    for target in [
        "/",
        "/1",
        "/1/",
        "//1/checkpoint",
        "/1/.tree",
        "/../key",
        "/1/../../key",
        "/1/./checkpoint",
        "/1/link",
        "/2/key",
        "/1/out/key",
        "/1/in/checkpoint",
        "/%2e%2e/key",
        "1/checkpoint",
        "/1/checkpoint?",
        "/1/checkpoint/x",
        "/1/tile",
        "/1\\checkpoint",
        "/1/checkpoint\0",
    ] {
        let response = get(&folder, target);
        assert!(
            response.starts_with("HTTP/1.1 404 "),
            "{target}: {response}"
        );
    }
    for (request, status) in [
        ("HEAD /1/checkpoint HTTP/1.1\r\n\r\n", "405"),
        ("POST /1/checkpoint HTTP/1.1\r\n\r\n", "405"),
        ("GET /1/checkpoint\r\n\r\n", "400"),
        ("GET  /1/checkpoint HTTP/1.1\r\n\r\n", "400"),
        ("GET /1/checkpoint HTTP/2\r\n\r\n", "400"),
        ("\r\n\r\n", "400"),
    ] {
        let response = Request::parse(request.as_bytes())
            .response(folder.path())
            .unwrap();
        assert_eq!(&response[9..12], status.as_bytes(), "{request}");
    }
    let long = vec![b'a'; MAX_REQUEST_BYTES];
    assert!(matches!(Request::parse(&long), Request::Refused(status) if status.starts_with("431")));
    assert_eq!(Request::parse(b"GET / HTTP/1.1\r\n"), Request::Unfinished);
}

proptest! {
    #[test]
    fn no_target_leads_out(target in "/[./a-z%0-9\\\\]{0,20}", bytes: Vec<u8>) {
        if let Some(path) = path(&target) {
            let normal = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            prop_assert!(normal);
        }
        let _ = Request::parse(&bytes).response(Path::new("/nonexistent"));
    }
}
