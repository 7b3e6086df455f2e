//! `lastbyte kernel pack` and `lastbyte kernel fetch`, with a program that only stands for a kernel: it is an ELF file, and a
//! version is in it.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lastbyte::kernel::{Digest, KernelInfo, Packed};
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::ssl::{SslAcceptor, SslMethod};
use openssl::x509::extension::SubjectAlternativeName;
use openssl::x509::{X509, X509NameBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Ended, need_root, run};

/// Stands for the kernel.
const PROGRAM: &str = "/usr/bin/true";
/// What is behind it, as any program may be followed by anything.
const BANNER: &[u8] = b"Linux version 6.12.1 (lastbyte@lastbyte)";

/// A place with a packed kernel, and the caches of two users.
struct Place {
    folder: TempDir,
    /// What the kernel is packed from.
    info: Value,
    program: Vec<u8>,
}

impl Place {
    fn new() -> Place {
        let place = Place {
            folder: TempDir::new().unwrap(),
            info: json!({
                "version": "6.12.1",
                "sha256": null,
                "source": {"name": "linux.tar", "sha256": "0".repeat(64), "origin": "file"},
                "recipe_sha256": lastbyte::kernel::recipe(),
                "config_sha256": "0".repeat(64),
                "patches": [],
                "compiler": "cc",
                "built": "2026-01-01T00:00:00Z",
                "build_seconds": 1,
            }),
            program: [&fs::read(PROGRAM).unwrap(), BANNER].concat(),
        };
        place.keep();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Has the first user keep it, as a build does.
    fn keep(&self) {
        let folder = self.path("first/kernel/0123456789abcdef");
        fs::create_dir_all(&folder).unwrap();
        put(&folder, &self.info(), &self.program);
    }

    /// What the file `kernel.json` of this program says.
    fn info(&self) -> Vec<u8> {
        let mut info = self.info.clone();
        info["sha256"] = Digest::of(&self.program).to_string().into();
        serde_json::from_value::<KernelInfo>(info.clone()).unwrap();
        serde_json::to_vec(&info).unwrap()
    }

    fn lastbyte(&self, user: &str, arguments: &[&str]) -> Command {
        let mut command = crate::common::lastbyte(["kernel"]);
        command.args(arguments).current_dir(self.folder.path());
        command.env("LASTBYTE_CACHE", self.path(user));
        command
    }

    fn run(&self, user: &str, arguments: &[&str]) -> Ended {
        run(&mut self.lastbyte(user, arguments))
    }

    /// Packs the kernel of the first user.
    fn pack(&self, name: &str) -> Vec<u8> {
        let packed = self.run("first", &["pack", name]);
        assert_eq!(packed.code, Some(0), "{packed:?}");
        fs::read(self.path(name)).unwrap()
    }

    /// Writes an archive with these entries, and its digest beside it.
    fn archive(&self, name: &str, entries: &[(&str, &[u8])]) {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut archive = tar::Builder::new(gzip);
        for (path, content) in entries {
            let mut header = tar::Header::new_ustar();
            // What no tool would write.
            header.as_ustar_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            archive.append(&header, *content).unwrap();
        }
        self.write(name, &archive.into_inner().unwrap().finish().unwrap());
    }

    /// Writes a file, and its digest beside it.
    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
        let digest = format!("{}  {name}\n", Digest::of(content));
        fs::write(self.path(&format!("{name}.sha256")), digest).unwrap();
    }

    /// The second user has nothing, not even half of it.
    fn assert_nothing_is_kept(&self) {
        let kept = fs::read_dir(self.path("second/kernel"))
            .into_iter()
            .flatten();
        let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
        let kernels = kept
            .iter()
            .filter(|name| *name != "lock" && *name != "build.log");
        assert_eq!(kernels.count(), 0, "{kept:?}");
    }

    /// Has the second user take a file by its digest.
    fn fetch(&self, name: &str) -> Ended {
        let digest = Digest::of(&fs::read(self.path(name)).unwrap()).to_string();
        self.run("second", &["fetch", name, "--sha256", &digest])
    }

    #[track_caller]
    fn assert_not_fetched(&self, name: &str, problem: &str) {
        let digest = Digest::of(&fs::read(self.path(name)).unwrap()).to_string();
        self.assert_refused(&[name, "--sha256", &digest], 2, problem);
    }

    #[track_caller]
    fn assert_refused(&self, arguments: &[&str], code: i32, problem: &str) {
        let fetched = self.run("second", &[&["fetch"], arguments].concat());
        assert_eq!(fetched.code, Some(code), "{arguments:?}: {fetched:?}");
        assert_eq!(fetched.stdout, "");
        assert_eq!(fetched.stderr.lines().count(), 1, "{fetched:?}");
        assert!(fetched.stderr.starts_with("lastbyte: "), "{fetched:?}");
        assert!(fetched.stderr.contains(problem), "{problem}: {fetched:?}");
        self.assert_nothing_is_kept();
    }
}

/// Puts a kernel into a folder.
fn put(folder: &Path, info: &[u8], program: &[u8]) {
    fs::write(folder.join("kernel.json"), info).unwrap();
    fs::write(folder.join("linux"), program).unwrap();
    fs::set_permissions(folder.join("linux"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_is_packed_is_taken_elsewhere() {
    let place = Place::new();
    let packed = place.pack("k.tar.gz");
    // Later, elsewhere, it is the same.
    thread::sleep(Duration::from_millis(1100));
    assert!(packed == place.pack("again.tar.gz"));

    let fetched = place.fetch("k.tar.gz");
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert!(fetched.stdout.contains(" is there now: "), "{fetched:?}");
    let status = place.run("second", &["status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    // Whoever has packed it may have written what they liked.
    for told in [
        "  known as  built elsewhere: what follows is what it says of itself, and nobody else does\n",
        "  source    says that it is of linux.tar (",
    ] {
        assert!(status.stdout.contains(told), "{status:?}");
    }
    assert!(status.stdout.contains(", fits this version"), "{status:?}");
    let program = status
        .stdout
        .split_whitespace()
        .find(|word| word.ends_with("/linux"));
    assert_eq!(fs::read(program.unwrap()).unwrap(), place.program);

    let digest = Digest::of(&packed).to_string().to_uppercase();
    fs::remove_file(place.path("k.tar.gz.sha256")).unwrap();
    let again = place.run("second", &["fetch", "k.tar.gz", "--sha256", &digest]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains(" was there already: "), "{again:?}");
    let repacked = place.run("second", &["pack", "second.tar.gz"]);
    assert_eq!(repacked.code, Some(0), "{repacked:?}");
    assert!(fs::read(place.path("second.tar.gz")).unwrap() == packed);
}

#[test]
fn files_that_are_refused() {
    let mut place = Place::new();
    let good = place.pack("good.tar.gz");
    let (info, program) = (place.info(), place.program.clone());
    let info_entry = ("kernel.json", info.as_slice());
    let program_entry = ("linux", program.as_slice());

    let zeros = "0".repeat(64);
    let other = format!(
        "is incomplete or another file: its SHA-256 is {}",
        Digest::of(&good)
    );
    place.assert_refused(&["good.tar.gz", "--sha256", &zeros], 2, &other);
    place.assert_refused(
        &["good.tar.gz", "--sha256", "abc"],
        2,
        "64 hexadecimal digits",
    );
    // What is beside it is whose it is.
    assert!(place.path("good.tar.gz.sha256").exists());
    place.assert_refused(
        &["good.tar.gz"],
        2,
        "is not a whole kernel of a release, and nobody vouches for it: give the SHA-256",
    );
    place.assert_refused(
        &["none.tar.gz"],
        2,
        "lastbyte: \"none.tar.gz\" can't be read: No such file",
    );
    place.assert_refused(
        &["none.tar.gz", "--sha256", &zeros],
        2,
        "can't be read: No such file",
    );
    place.assert_refused(&[".", "--sha256", &zeros], 2, "it is no file");

    // Half of it, by the digest of the whole and by its own.
    fs::write(place.path("half.tar.gz"), &good[..good.len() / 2]).unwrap();
    let whole = Digest::of(&good).to_string();
    place.assert_refused(
        &["half.tar.gz", "--sha256", &whole],
        2,
        "is incomplete or another file",
    );
    place.write("half.tar.gz", &good[..good.len() / 2]);
    place.assert_not_fetched("half.tar.gz", "is incomplete: get it again");
    place.write("text.tar.gz", b"<html>There is no such page.</html>");
    place.assert_not_fetched(
        "text.tar.gz",
        "is no kernel: it takes what `lastbyte kernel pack`",
    );

    let long = "x".repeat(100);
    for (entries, problem) in [
        (
            vec![("../../evil", b"".as_slice())],
            r#"is no kernel: "../../evil" has no place"#,
        ),
        (
            vec![("/etc/passwd", b"")],
            r#"is no kernel: "/etc/passwd" has no place"#,
        ),
        (
            vec![("./kernel.json", &info)],
            r#"is no kernel: "./kernel.json" has no place"#,
        ),
        (vec![("a\u{1b}[2J", b"")], r"is no kernel: "),
        (vec![(&long, b"")], "is no kernel: "),
        (
            vec![program_entry, info_entry],
            r#"is no kernel: "linux" has no place"#,
        ),
        (
            vec![info_entry, program_entry, ("more", b"")],
            r#""more" has no place"#,
        ),
        (vec![info_entry], r#"is no kernel: it has no "linux""#),
        (vec![], r#"is no kernel: it has no "kernel.json""#),
        (vec![("kernel.json", b"{}"), program_entry], "can't be read"),
        (
            vec![info_entry, ("linux", b"other")],
            "is damaged: its program is not",
        ),
    ] {
        place.archive("odd.tar.gz", &entries);
        place.assert_not_fetched("odd.tar.gz", problem);
    }

    // Another recipe, words that would move a cursor, and one that is not what it says.
    for (key, value, problem) in [
        (
            "recipe_sha256",
            zeros.as_str(),
            "is a kernel for another version of Lastbyte: its recipe is 0000",
        ),
        ("compiler", "gcc\u{1b}[2J", r#"its "kernel.json" is odd"#),
        ("config_sha256", "none", r#"its "kernel.json" is odd"#),
        (
            "version",
            "6.12",
            "is damaged: its program is not Linux \"6.12\"",
        ),
    ] {
        let before = place.info[key].take();
        place.info[key] = value.into();
        place.archive(
            "other.tar.gz",
            &[("kernel.json", &place.info()), program_entry],
        );
        place.assert_not_fetched("other.tar.gz", problem);
        place.info[key] = before;
    }

    // Another processor's, none's, and one of no version.
    let machine = |low| {
        let mut program = program.clone();
        program[18] = low;
        program
    };
    for (program, problem) in [
        (
            machine(183),
            "is a kernel for another processor: for aarch64, and this one is x86_64",
        ),
        (
            machine(243),
            "for number 243 of ELF, and this one is x86_64",
        ),
        (
            b"#!/bin/sh\necho 6.12".to_vec(),
            "holds no program of 64-bit Linux",
        ),
        (
            program[..64].to_vec(),
            "is damaged: its program is not Linux",
        ),
    ] {
        place.program = program;
        place.archive(
            "other.tar.gz",
            &[("kernel.json", &place.info()), ("linux", &place.program)],
        );
        place.assert_not_fetched("other.tar.gz", problem);
    }
}

#[test]
fn what_is_damaged_is_refused_or_says_the_same() {
    let place = Place::new();
    let whole = place.pack("k.tar.gz");
    let packed = Packed::read(&whole).unwrap();
    // Its heads in full, and the rest in steps.
    for at in (0..whole.len()).filter(|at| *at < 200 || at % 97 == 0) {
        let cut = Packed::read(&whole[..at]);
        assert!(cut.is_err(), "the first {at} bytes");
        let mut changed = whole.clone();
        changed[at] ^= 1;
        if let Ok(read) = Packed::read(&changed) {
            assert!(read == packed, "byte {at} changed");
        }
    }
}

/// A program that leaves a mark wherever it is run, even to tell its version.
#[test]
fn nothing_that_is_fetched_is_run() {
    let mut place = Place::new();
    let (source, built) = (place.path("mark.c"), place.path("mark"));
    let mark = place.path("ran");
    let text = format!(
        "#include <stdio.h>\nint main(void) {{ fclose(fopen({mark:?}, \"w\")); puts(\"6.12.1\"); return 0; }}\n"
    );
    fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .arg("-o")
        .arg(&built)
        .arg(&source)
        .status();
    assert!(compiled.unwrap().success());
    place.program = [&fs::read(&built).unwrap(), BANNER].concat();
    place.archive(
        "k.tar.gz",
        &[("kernel.json", &place.info()), ("linux", &place.program)],
    );
    place.assert_refused(&["k.tar.gz"], 2, "nobody vouches for it");
    let fetched = place.fetch("k.tar.gz");
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(place.run("second", &["status"]).code, Some(0));
    assert!(!mark.exists());
}

#[test]
fn a_cache_that_can_not_be_made() {
    let place = Place::new();
    place.pack("k.tar.gz");
    fs::write(place.path("second"), "").unwrap();
    place.assert_not_fetched("k.tar.gz", "/second/kernel\": Not a directory");
}

#[test]
fn a_disk_without_room_keeps_nothing() {
    need_root();
    let mut place = Place::new();
    // A program may be followed by anything.
    place.program.resize(3 << 20, 0);
    place.keep();
    let digest = Digest::of(&place.pack("k.tar.gz")).to_string();
    let script = "mkdir second && mount -t tmpfs -o size=1m tmpfs second && \
                  LASTBYTE_CACHE=$PWD/second \"$0\" kernel fetch k.tar.gz --sha256 $1 || code=$?; \
                  ls second/kernel; exit $code";
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-c",
        script,
        env!("CARGO_BIN_EXE_lastbyte"),
        &digest,
    ]);
    let ended = run(command.current_dir(place.folder.path()));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let full = "/second/kernel\" is full: make room or set LASTBYTE_CACHE\n";
    assert!(ended.stderr.ends_with(full), "{ended:?}");
    assert!(!ended.stdout.contains("work-fetch"), "{ended:?}");
}

#[test]
fn installed_kernels_are_found_beside_the_program() {
    let place = Place::new();
    let installed = place.path("usr/lib/lastbyte/kernels/0123456789abcdef");
    fs::create_dir_all(&installed).unwrap();
    put(&installed, &place.info(), &place.program);
    let program = place.path("usr/bin/lastbyte");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_lastbyte"), &program).unwrap();
    // As somebody may call it.
    let link = place.path("link");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let kernel = |arguments: &[&str]| {
        let mut command = Command::new(&link);
        command.arg("kernel").args(arguments);
        run(command.env("LASTBYTE_CACHE", place.path("second")))
    };

    let status = kernel(&["status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let told = format!(
        "{}/linux (",
        fs::canonicalize(&installed).unwrap().display()
    );
    assert!(status.stdout.contains(&told), "{status:?}");
    assert!(status.stdout.contains(", installed)\n"), "{status:?}");
    // Nothing is written to find it, and what was installed is not ours to remove.
    assert!(!place.path("second").exists());
    let removed = kernel(&["remove"]);
    assert_eq!(removed.stdout, "There was no kernel.\n", "{removed:?}");
    assert_eq!(kernel(&["status"]).code, Some(0));

    fs::write(installed.join("linux"), "half").unwrap();
    let status = kernel(&["status"]);
    assert_eq!(status.code, Some(3), "{status:?}");
    let told = "0123456789abcdef: damaged, install its package anew\n";
    assert!(status.stdout.ends_with(told), "{status:?}");
}

/// A server on loopback, whose certificate is in this file.
struct Server {
    address: String,
    certificate: PathBuf,
}

impl Server {
    /// One that answers a path with these bytes.
    fn start(folder: &Path, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
        let mut name = X509NameBuilder::new().unwrap();
        name.append_entry_by_text("CN", "loopback").unwrap();
        let name = name.build();
        let mut builder = X509::builder().unwrap();
        builder.set_version(2).unwrap();
        builder.set_subject_name(&name).unwrap();
        builder.set_issuer_name(&name).unwrap();
        builder.set_pubkey(&key).unwrap();
        builder
            .set_not_before(&Asn1Time::days_from_now(0).unwrap())
            .unwrap();
        builder
            .set_not_after(&Asn1Time::days_from_now(1).unwrap())
            .unwrap();
        let mut names = SubjectAlternativeName::new();
        let names = names
            .ip("127.0.0.1")
            .dns("kernels.example")
            .build(&builder.x509v3_context(None, None))
            .unwrap();
        builder.append_extension(names).unwrap();
        builder.sign(&key, MessageDigest::sha256()).unwrap();
        let certificate = builder.build();
        let file = folder.join("certificate.pem");
        fs::write(&file, certificate.to_pem().unwrap()).unwrap();

        let mut acceptor = SslAcceptor::mozilla_modern_v5(SslMethod::tls()).unwrap();
        acceptor.set_private_key(&key).unwrap();
        acceptor.set_certificate(&certificate).unwrap();
        let acceptor = acceptor.build();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                // A client that does not trust it goes away.
                let Ok(mut stream) = acceptor.accept(socket) else {
                    continue;
                };
                let answer = Arc::clone(&answer);
                thread::spawn(move || {
                    let mut request = Vec::new();
                    let mut buffer = [0; 1000];
                    while !request.ends_with(b"\r\n\r\n") {
                        match stream.read(&mut buffer) {
                            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
                            _ => return,
                        }
                    }
                    let request = String::from_utf8(request).unwrap();
                    let path = request.split(' ').nth(1).unwrap();
                    let _ = stream.write_all(&answer(path));
                    let _ = stream.shutdown();
                });
            }
        });
        Server {
            address,
            certificate: file,
        }
    }
}

fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn a_kernel_from_a_server() {
    let place = Place::new();
    let packed = place.pack("k.tar.gz");
    let digest = Digest::of(&packed).to_string();
    let server = {
        let digest = digest.clone();
        Server::start(place.folder.path(), move |path| match path {
            "/k.tar.gz" => response("200 OK", &packed),
            "/other" => response("200 OK", format!("{digest}  k.tar.gz\n").as_bytes()),
            "/moved" => response("302 Found\r\nLocation: /k.tar.gz", b"elsewhere"),
            "/round" => response("302 Found\r\nLocation: /round", b""),
            "/plain" => response("302 Found\r\nLocation: http://127.0.0.1/k.tar.gz", b""),
            "/half" => {
                let mut whole = response("200 OK", &packed);
                whole.truncate(whole.len() - 1);
                whole
            }
            "/silent" => {
                thread::sleep(Duration::from_secs(5));
                Vec::new()
            }
            _ => response("404 Not Found", b""),
        })
    };
    let url = |path: &str| format!("https://{}{path}", server.address);
    let fetch = |arguments: &[&str]| {
        let mut command = place.lastbyte("second", &[&["fetch"], arguments].concat());
        run(command.env("SSL_CERT_FILE", &server.certificate))
    };
    for (path, timeout, code, problem) in [
        (
            "/none",
            "60s",
            1,
            "/none: the server answers with the status 404",
        ),
        ("/round", "60s", 1, "after 5 redirections that is enough"),
        ("/plain", "60s", 1, "begin it with https://"),
        (
            "/half",
            "60s",
            1,
            "closes the connection before the response is complete",
        ),
        ("/silent", "300ms", 1, "/silent: not complete within 300ms"),
        ("/other", "60s", 2, "is incomplete or another file"),
    ] {
        let ended = fetch(&[&url(path), "--sha256", &digest, "--timeout", timeout]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(problem), "{problem}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        place.assert_nothing_is_kept();
    }
    let ended = fetch(&[&url("/k.tar.gz")]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("nobody vouches for it"), "{ended:?}");
    place.assert_nothing_is_kept();
    let http = url("/k.tar.gz").replace("https", "http");
    assert!(fetch(&[&http]).stderr.contains("begin it with https://"));
    // Nobody vouches for it.
    place.assert_refused(
        &[&url("/k.tar.gz"), "--sha256", &digest],
        1,
        "self-signed certificate",
    );

    let ended = fetch(&[&url("/moved"), "--sha256", &digest]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains(" is there now: "), "{ended:?}");
    let ended = fetch(&[&url("/k.tar.gz"), "--sha256", &digest]);
    assert!(ended.stdout.contains(" was there already: "), "{ended:?}");
}

/// A name that is in /etc/hosts alone, where nobody answers questions of DNS.
#[test]
fn names_are_looked_up_as_the_system_does_it() {
    need_root();
    let place = Place::new();
    let packed = place.pack("k.tar.gz");
    let digest = Digest::of(&packed).to_string();
    let server = Server::start(place.folder.path(), move |_| response("200 OK", &packed));
    fs::write(place.path("hosts"), "127.0.0.1 kernels.example\n").unwrap();
    fs::write(place.path("resolv.conf"), "nameserver 127.0.0.250\n").unwrap();
    fs::write(place.path("nsswitch.conf"), "hosts: files dns\n").unwrap();
    let port = server.address.rsplit(':').next().unwrap();
    let fetch = |host: &str| {
        let script = "for file in hosts resolv.conf; do mount --bind $file /etc/$file; done; \
                      [ ! -e /etc/nsswitch.conf ] || mount --bind nsswitch.conf /etc/nsswitch.conf; \
                      exec \"$0\" kernel fetch \"$@\"";
        let mut command = place.lastbyte("second", &[]);
        let variables: Vec<_> = (command.get_envs())
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        command = Command::new("unshare");
        command.args(["--mount", "sh", "-euc", script]);
        command.args([env!("CARGO_BIN_EXE_lastbyte"), "--sha256", &digest]);
        command.arg(format!("https://{host}:{port}/k.tar.gz"));
        command.envs(variables).current_dir(place.folder.path());
        run(command.env("SSL_CERT_FILE", &server.certificate))
    };
    let ended = fetch("nobody.example");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told = "lastbyte: nobody.example has no address: ";
    assert!(ended.stderr.starts_with(told), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let ended = fetch("kernels.example");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains(" is there now: "), "{ended:?}");
}
