//! Merkle Tree Certificates from the command line: a CA, its log, certificates, and those who don't believe them.
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use crate::common::{Ended, lastbyte, run};

fn mtc(arguments: &[&str], folder: &Path) -> Ended {
    let mut command = lastbyte(["mtc"]);
    run(command.args(arguments).current_dir(folder))
}

fn succeed(arguments: &[&str], folder: &Path) -> String {
    let ended = mtc(arguments, folder);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
    ended.stdout
}

#[test]
fn a_certificate_comes_from_a_log_and_is_believed_by_who_knows_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(
        &["ca", "ca", "--mirror", "9", "--mirror", "32473.2"],
        folder,
    );
    let issue = [
        "issue",
        "ca",
        "a.example",
        "b.example",
        "-o",
        "host",
        "--others=700",
    ];
    let issued = succeed(&issue, folder);
    assert!(
        issued.starts_with("entry 350 of log 32473.1.0.1: "),
        "{issued}"
    );
    let standalone = "host/certificate.pem";
    let verified = succeed(&["verify", "ca", standalone, "--stale"], folder);
    let expected = "accepted for a.example, b.example: 9 and 32473.1 and 32473.2 vouch for it (";
    assert!(verified.starts_with(expected), "{verified}");
    let early = mtc(&["prove", "ca", standalone], folder);
    assert_eq!(early.code, Some(2));
    let hint = "lastbyte: no landmark has entry 350 yet: run lastbyte mtc landmark\n";
    assert_eq!(early.stderr, hint);
    let landmark = succeed(&["landmark", "ca"], folder);
    assert!(
        landmark.starts_with("landmark 1 of log 32473.1.0.1: 701 entries, of use up to 20"),
        "{landmark}"
    );
    assert!(landmark.ends_with("Z\n"), "{landmark}");
    let again = mtc(&["landmark", "ca"], folder);
    let hint = "which has 701: the log has 701; let it grow first, with lastbyte mtc issue\n";
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.ends_with(hint), "{}", again.stderr);
    succeed(&["prove", "ca", standalone, "-o", "landmark.pem"], folder);
    let verified = succeed(&["verify", "ca", "landmark.pem"], folder);
    let expected = "accepted for a.example, b.example: [0, 512) is a landmark's (";
    assert!(verified.starts_with(expected), "{verified}");
    for (arguments, reason) in [
        (
            vec!["--stale"],
            "[0, 512) of log 1 is not trusted, and nobody vouches for it",
        ),
        (vec!["--at=1"], "it holds only from "),
        (vec!["--at=9999999999"], "it held up to "),
        (vec!["--at=2020-02-29T12:00:00Z"], "it holds only from 20"),
    ] {
        let arguments = [vec!["verify", "ca", "landmark.pem"], arguments].concat();
        let refused = mtc(&arguments, folder);
        assert_eq!(refused.code, Some(1));
        let expected = format!("lastbyte: refused: {reason}");
        assert!(refused.stderr.starts_with(&expected), "{}", refused.stderr);
    }
    // The same log goes on, and the mirrors with it.
    succeed(
        &[
            "issue",
            "ca",
            "c.example",
            "-o",
            "other",
            "--key=ecdsa-p256",
        ],
        folder,
    );
    succeed(&["verify", "ca", "other/certificate.pem"], folder);
    let again = mtc(&["ca", "ca"], folder);
    assert_eq!(again.stderr, "lastbyte: there is a CA in \"ca\" already\n");
    // A log that forgets what mirrors have seen is not cosigned.
    fs::remove_dir_all(folder.join("ca/served")).unwrap();
    let forked = mtc(&["issue", "ca", "d.example", "-o", "forked"], folder);
    let expected = "lastbyte: log 32473.1.0.1 had 702 entries, and now 1\n";
    assert_eq!((forked.code, forked.stderr.as_str()), (Some(1), expected));
    assert!(!folder.join("forked").exists());
}

#[test]
fn a_new_ca_says_what_it_has_written_and_one_cosigner_vouches() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let made = succeed(&["ca", "ca", "--mirror", "9"], folder);
    let expected = "ca: ca.pem (the certificate of CA 32473.1), ca-key.pem (its private key), \
                    mirror-9.pem and mirror-9-key.pem (the keys of mirror 9); its log begins with lastbyte mtc issue\n";
    assert_eq!(made, expected);
    // By its seed alone, which everybody reads (RFC 9881, section 6): 54 bytes.
    for key in ["ca/ca-key.pem", "ca/mirror-9-key.pem"] {
        let pem = fs::read_to_string(folder.join(key)).unwrap();
        let lines: Vec<_> = pem.lines().collect();
        assert_eq!(lines.len(), 4, "{pem}");
        assert_eq!(lines[1].len() + lines[2].len(), 72, "{pem}");
    }
    succeed(&["ca", "alone"], folder);
    succeed(&["issue", "alone", "a.example", "-o", "host"], folder);
    let verified = succeed(
        &["verify", "alone", "host/certificate.pem", "--stale"],
        folder,
    );
    let expected = "accepted for a.example: 32473.1 vouches for it (";
    assert!(verified.starts_with(expected), "{verified}");
}

#[test]
fn what_takes_chains_says_what_a_merkle_tree_certificate_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(&["ca", "ca"], folder);
    succeed(&["issue", "ca", "a.example", "-o", "host"], folder);
    succeed(&["landmark", "ca"], folder);
    let landmark = "host/landmark.pem";
    succeed(
        &["prove", "ca", "host/certificate.pem", "-o", landmark],
        folder,
    );
    let show = |file: &str| {
        let mut command = lastbyte(["chain", "show", file]);
        let shown = run(command.current_dir(folder));
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        shown.stdout
    };
    for file in [landmark, "host/certificate.pem"] {
        let shown = show(file);
        assert!(shown.contains(" B for a.example\n"), "{shown}");
        let expected = "key ml-dsa-44, signed with id-alg-mtcProof\n";
        assert!(
            shown.contains("└─ no subject") && shown.contains(expected),
            "{shown}"
        );
        let told = format!(
            "{file}: a Merkle Tree Certificate, whose proof stands in place of a signature: check it with lastbyte mtc verify\n"
        );
        assert!(shown.ends_with(&told), "{shown}");
    }
    let ca = show("ca/ca.pem");
    let expected = "1.3.6.1.5.5.7.25.3=32473.1  ";
    assert!(ca.contains(expected), "{ca}");
    let arm = format!("X25519MLKEM768/./{landmark}");
    for arguments in [
        vec![
            "compare",
            "--baseline",
            "X25519MLKEM768/ml-dsa-44",
            "--against",
            &arm,
        ],
        vec!["chain", "new", landmark, "-o", "new"],
    ] {
        let mut command = lastbyte(&arguments);
        let refused = run(command.current_dir(folder));
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        let told = "holds a Merkle Tree Certificate, which has a proof in place of an issuer's signature, and is in no \
                    chain: measure such ones with delivery=mtc-landmark or delivery=mtc-standalone, and verify this one \
                    with \"lastbyte mtc verify\"\n";
        assert!(refused.stderr.ends_with(told), "{arguments:?}: {refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
        assert!(
            refused.stderr.contains("landmark.pem\" holds"),
            "{refused:?}"
        );
    }
}

#[test]
fn who_verifies_writes_nothing_and_has_no_private_keys() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(&["ca", "ca", "--mirror", "9"], folder);
    succeed(&["issue", "ca", "a.example", "-o", "host"], folder);
    succeed(&["landmark", "ca"], folder);
    for key in ["ca/ca-key.pem", "ca/mirror-9-key.pem"] {
        fs::remove_file(folder.join(key)).unwrap();
    }
    let lock = folder.join("ca/served/1/.lock");
    // Somebody adds to it.
    let held = fs::File::open(&lock).unwrap();
    held.try_lock().unwrap();
    let standalone = "host/certificate.pem";
    succeed(&["prove", "ca", standalone, "-o", "landmark.pem"], folder);
    for certificate in [standalone, "landmark.pem"] {
        succeed(&["verify", "ca", certificate], folder);
    }
    fs::remove_file(&lock).unwrap();
    succeed(&["verify", "ca", "landmark.pem"], folder);
    assert!(!lock.exists());
    // A mirror is not forgotten for want of its file.
    let private = folder.join("ca/mirror-9-key.pem");
    fs::rename(folder.join("ca/mirror-9.pem"), &private).unwrap();
    let refused = mtc(&["verify", "ca", standalone, "--stale"], folder);
    let expected = "lastbyte: can't read \"ca/mirror-9.pem\": ";
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.starts_with(expected), "{}", refused.stderr);
}

#[test]
fn what_a_certificate_can_not_be_of_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refuse = |arguments: &[&str], expected: &str| {
        let refused = mtc(arguments, folder);
        let expected = format!("lastbyte: {expected}\n");
        assert_eq!(refused.stderr, expected);
        assert_eq!(refused.code, Some(2));
    };
    refuse(
        &["ca", "ca", "--mirror", "9", "--mirror=10", "--mirror", "9"],
        "--mirror 9 is given twice: leave one out",
    );
    assert!(!folder.join("ca").exists());
    succeed(&["ca", "ca"], folder);
    for (host, problem) in [
        ("", "it is empty"),
        (
            "a b",
            "it has other bytes than letters, digits, hyphens, underscores and dots",
        ),
        (
            "a.*.example",
            "an asterisk can only be all of its first label",
        ),
    ] {
        let expected = format!("{host:?} is no name of a host: {problem}");
        refuse(&["issue", "ca", "-o", "host", host], &expected);
    }
    refuse(
        &["issue", "ca", "-o", "host", "a.example", "A.example"],
        "the host \"A.example\" is given twice: leave one out",
    );
    assert!(!folder.join("host").exists());
    assert!(!folder.join("ca/served/1/.tree").exists());
    for file in ["key.pem", "certificate.pem"] {
        fs::create_dir_all(folder.join("host")).unwrap();
        fs::write(folder.join("host").join(file), "precious").unwrap();
        let expected =
            format!("there is \"host/{file}\" already: name another folder, or move it away");
        refuse(&["issue", "ca", "-o", "host", "a.example"], &expected);
        let kept = fs::read_to_string(folder.join("host").join(file)).unwrap();
        assert_eq!(kept, "precious");
        fs::remove_file(folder.join("host").join(file)).unwrap();
    }
    assert!(!folder.join("ca/served/1/.tree").exists());
    // A CA that was not finished.
    fs::remove_file(folder.join("ca/ca.pem")).unwrap();
    refuse(
        &["ca", "ca"],
        "there is \"ca/ca-key.pem\" already: name another folder, or move it away",
    );
}

#[test]
fn a_file_that_is_none_is_one_line_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(&["ca", "ca", "--mirror", "9"], folder);
    succeed(&["ca", "other", "--id", "32473.7"], folder);
    succeed(&["issue", "ca", "a.example", "-o", "host"], folder);
    let refuse = |arguments: &[&str], code: i32, expected: &str| {
        let refused = mtc(arguments, folder);
        assert_eq!(refused.stderr, format!("lastbyte: {expected}\n"));
        assert_eq!(refused.code, Some(code));
    };
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let certificate = read("host/certificate.pem");
    for (name, content, problem) in [
        ("none.pem", String::new(), "it has no PEM block of one"),
        (
            "cut.pem",
            certificate[..certificate.len() - 3].to_owned(),
            "it is cut, or no Base64",
        ),
        (
            "two.pem",
            certificate.repeat(2),
            "it has 2, and a Merkle Tree Certificate stands alone: leave the others out",
        ),
    ] {
        fs::write(folder.join(name), content).unwrap();
        let expected = format!("there is not one certificate in \"{name}\": {problem}");
        for command in ["verify", "prove"] {
            refuse(&[command, "ca", name], 2, &expected);
        }
    }
    for command in ["verify", "prove"] {
        let refused = mtc(&[command, "ca", "ca/ca.pem"], folder);
        let expected = "lastbyte: there is no Merkle Tree Certificate in \"ca/ca.pem\": ";
        assert!(refused.stderr.starts_with(expected), "{}", refused.stderr);
        assert_eq!(refused.code, Some(2));
    }
    refuse(
        &["prove", "other", "host/certificate.pem"],
        2,
        "the certificate in \"host/certificate.pem\" is of 32473.1, and the CA in \"other\" is 32473.7",
    );
    let issue = ["issue", "ca", "b.example", "-o", "other-host"];
    let held = fs::File::open(folder.join("ca/served/1/.lock")).unwrap();
    held.try_lock().unwrap();
    let in_use = "the log in \"ca/served/1\" is in use by another process";
    refuse(&issue, 2, in_use);
    drop(held);
    refuse(
        &["serve", "ca", "--listen=192.0.2.1:1"],
        2,
        "can't listen on 192.0.2.1:1: Cannot assign requested address (os error 99): name an address of this machine \
         with --listen, or 0.0.0.0 for all",
    );
    let mend = "it can't be read as one: put back the file that lastbyte mtc ca wrote";
    for (name, kind) in [("ca-key", "private"), ("mirror-9-key", "private")] {
        let path = folder.join("ca").join(format!("{name}.pem"));
        let key = fs::read_to_string(&path).unwrap();
        fs::write(&path, &key[..key.len() / 2]).unwrap();
        let expected = format!("there is no {kind} key in \"ca/{name}.pem\": {mend}");
        refuse(&issue, 2, &expected);
        fs::write(&path, key).unwrap();
    }
    let verify = ["verify", "ca", "host/certificate.pem"];
    fs::write(folder.join("ca/mirror-9.pem"), "nothing").unwrap();
    let expected = format!("there is no public key in \"ca/mirror-9.pem\": {mend}");
    refuse(&verify, 2, &expected);
    fs::write(folder.join("ca/ca.pem"), &certificate).unwrap();
    let refused = mtc(&verify, folder);
    let expected = "lastbyte: the certificate in \"ca/ca.pem\" is of no CA with a log: ";
    assert!(refused.stderr.starts_with(expected), "{}", refused.stderr);
    assert_eq!(refused.code, Some(2));
}

#[test]
fn what_is_served_is_the_log_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    succeed(&["ca", "ca"], folder.path());
    succeed(&["issue", "ca", "a.example", "-o", "host"], folder.path());
    let mut command = lastbyte(["mtc", "serve", "ca", "--listen=127.0.0.1:0"]);
    let command = command.current_dir(folder.path()).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let address = line
        .trim()
        .strip_prefix("serves the logs at http://")
        .unwrap();
    let get = |request: &str| {
        let mut connection = TcpStream::connect(address.trim_end_matches('/')).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        response
    };
    let checkpoint = get("GET /1/checkpoint HTTP/1.1\r\nHost: a\r\n\r\n");
    let written = fs::read_to_string(folder.path().join("ca/served/1/checkpoint")).unwrap();
    assert!(
        checkpoint.starts_with("HTTP/1.1 200 OK\r\n"),
        "{checkpoint}"
    );
    assert!(checkpoint.ends_with(&written), "{checkpoint}");
    for target in ["/../ca-key.pem", "/1/.tree", "/1/../../ca-key.pem", "/"] {
        let response = get(&format!("GET {target} HTTP/1.1\r\n\r\n"));
        assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
    }
    // Who says nothing, or not enough, keeps nobody out.
    let idle: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut connection = TcpStream::connect(address.trim_end_matches('/')).unwrap();
            connection.write_all(b"GET /").unwrap();
            connection
        })
        .collect();
    assert_eq!(get("GET /1/checkpoint HTTP/1.1\r\n\r\n"), checkpoint);
    drop(idle);
    let response = get("DELETE /1/checkpoint HTTP/1.1\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 405 "), "{response}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_damaged_log_makes_no_proof() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(&["ca", "ca"], folder);
    succeed(
        &["issue", "ca", "a.example", "-o", "host", "--others=700"],
        folder,
    );
    succeed(&["landmark", "ca"], folder);
    let tile = folder.join("ca/served/1/tile/0/001");
    let mut hashes = fs::read(&tile).unwrap();
    hashes[32 * 10] ^= 1;
    fs::write(&tile, hashes).unwrap();
    let proved = mtc(
        &["prove", "ca", "host/certificate.pem", "-o", "landmark.pem"],
        folder,
    );
    assert_eq!(proved.code, Some(1), "{}", proved.stderr);
    assert!(!folder.join("landmark.pem").exists());
}

/// Two CAs may have one identifier, as tests do.
#[test]
fn a_certificate_of_another_log_is_told_from_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (ca, host) in [("one", "a"), ("other", "b")] {
        succeed(&["ca", ca], folder);
        succeed(&["issue", ca, "a.example", "-o", host], folder);
        succeed(&["landmark", ca], folder);
    }
    for (command, code) in [("prove", 2), ("verify", 1)] {
        let ended = mtc(&[command, "one", "b/certificate.pem"], folder);
        assert_eq!(ended.code, Some(code), "{command}: {}", ended.stderr);
        let told =
            "the certificate in \"b/certificate.pem\" is of another log than that in \"one\"";
        assert!(ended.stderr.contains(told), "{command}: {}", ended.stderr);
    }
}

#[test]
fn a_port_that_is_taken_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(&["ca", "ca"], folder);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    succeed(&["issue", "ca", "a.example", "-o", "host"], folder);
    let ended = mtc(&["serve", "ca", "--listen", &address], folder);
    assert_eq!(ended.code, Some(2));
    let hint = "another program listens there: end it, or name another port with --listen\n";
    assert!(ended.stderr.ends_with(hint), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1);
}

#[test]
fn what_never_ends_is_no_certificate() {
    let folder = tempfile::tempdir().unwrap();
    succeed(&["ca", "ca"], folder.path());
    let refused = mtc(&["verify", "ca", "/dev/zero"], folder.path());
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("it is no regular file"),
        "{}",
        refused.stderr
    );
}
