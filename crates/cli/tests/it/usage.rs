//! Wrong command lines: exit code 2, and a message that says what, where and the hint.
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{at, lastbyte, need_live_engine, run};
use lastbyte_pki::{Chain, test_chains};
use tempfile::TempDir;

/// Nobody may ever write into a pipe, and some devices have no end.
#[test]
fn files_without_an_end_are_refused() {
    let place = TempDir::new().unwrap();
    let pipe = place.path().join("pipe.parquet");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let zero = place.path().join("zero.parquet");
    std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
    let folder = place.path().join("folder");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.join("manifest.json")).unwrap();
    for path in [&pipe, &zero] {
        let path = path.to_str().unwrap();
        for command in [
            &["run", path][..],
            &["report", path],
            &["report", folder.to_str().unwrap()],
            &["show", path],
            &["zeek", path],
            &["chain", "show", path],
            &["validate", path, "arithmetic"],
            &["compare", "--compare-to", path],
            &["rtt", "--table", path],
        ] {
            let ended = run(&mut lastbyte(command));
            assert!(
                [Some(1), Some(2)].contains(&ended.code),
                "{command:?}: {}",
                ended.stderr
            );
            assert!(
                ended.stderr.contains("it is no regular file"),
                "{command:?}: {}",
                ended.stderr
            );
            assert_eq!(
                ended.stderr.lines().count(),
                1,
                "{command:?}: {}",
                ended.stderr
            );
        }
    }
}

/// Secrets in a folder of results would be in everybody's way, or in a file's place.
#[test]
fn secrets_have_a_place_outside_of_results() {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("there")).unwrap();
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/windows.toml");
    fs::copy(study, place.path().join("study.toml")).unwrap();
    for (folder, keys) in [
        ("there", "there/keys"),
        ("there", "./there/../there/manifest.json"),
        ("there/.", "there/parts/keys"),
        ("new", "new/keys"),
        (".", "keys"),
    ] {
        let mut command = lastbyte(["run", "study.toml", "-o", folder, "--keylog", keys]);
        let ended = run(command.current_dir(place.path()));
        assert_eq!(ended.code, Some(2), "{keys}: {}", ended.stderr);
        let told = "is the folder of the results: name a place outside of it";
        assert!(ended.stderr.contains(told), "{keys}: {}", ended.stderr);
    }
    assert!(!place.path().join("new").exists());
}

/// What a command reads stays, wherever it is named: right behind an option's letter, in a study, or nowhere, as a key beside its chain.
#[test]
fn what_is_read_is_never_written() {
    let place = TempDir::new().unwrap();
    let inside = |name: &str| place.path().join(name);
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explore.md");
    let document = fs::read_to_string(document).unwrap();
    let (_, probe) = document.split_once("```json\n").unwrap();
    let (probe, _) = probe.split_once("```").unwrap();
    fs::write(inside("probe.html"), probe).unwrap();
    fs::write(inside("users.csv"), "rtt_ms,weight\n20,3\n80,1\n").unwrap();
    fs::write(inside("delays.txt"), "1ms\n2ms\n").unwrap();
    std::os::unix::fs::symlink("users.csv", inside("link")).unwrap();
    let arm = "engine = \"live\"\nconnections = 2\n[arm.old]\ntls = \"x25519/ecdsa-p256\"\n";
    for (name, rest) in [
        (
            "users",
            "[population]\njoint = \"users.csv\"\n[[measure]]\nid = \"m\"\n",
        ),
        (
            "delays",
            "[link.l]\nrtt = \"20ms\"\njitter = \"1ms\"\njitter_distribution = \"delays.txt\"\n[[measure]]\nid = \"m\"\n",
        ),
    ] {
        fs::write(inside(&format!("{name}.toml")), format!("{arm}{rest}")).unwrap();
    }
    let before = |name: &str| fs::read(inside(name)).unwrap();
    for (command, file) in [
        ("explore probe.html -oprobe.html", "probe.html"),
        ("explore probe.html -o=probe.html", "probe.html"),
        ("run users.toml -o new --keylog users.csv", "users.csv"),
        ("run users.toml -o new --keylog link", "users.csv"),
        ("run delays.toml -onew --keylog=delays.txt", "delays.txt"),
    ] {
        let content = before(file);
        let ended = run(lastbyte(command.split(' ')).current_dir(place.path()));
        assert_eq!(ended.code, Some(2), "{command}: {}", ended.stderr);
        assert_eq!(
            ended.stderr.lines().count(),
            1,
            "{command}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("can't write"),
            "{command}: {}",
            ended.stderr
        );
        assert_eq!(before(file), content, "{command}");
        assert!(!inside("new").exists(), "{command}");
    }
}

/// A key that is found beside a chain is named nowhere.
#[test]
fn a_key_beside_a_chain_is_never_written() {
    need_live_engine();
    let place = TempDir::new().unwrap();
    let inside = |name: &str| place.path().join(name);
    let ended = run(lastbyte(["chain", "new", "ecdsa-p256", "-o", "."]).current_dir(place.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let key = fs::read(inside("key.pem")).unwrap();
    let study = "engine = \"live\"\nconnections = 2\n[arm.own]\ntls = \"x25519/chain.pem\"\n[link.l]\nrtt = \"2ms\"\n\
                 [[measure]]\nid = \"m\"\n";
    fs::write(inside("study.toml"), study).unwrap();
    for command in [
        "compare --engine live --connections 2 --rtt 2ms --data 0KiB --baseline x25519/chain.pem --keylog key.pem",
        "run study.toml -o new --keylog key.pem",
    ] {
        let ended = run(lastbyte(command.split(' ')).current_dir(place.path()));
        assert_eq!(ended.code, Some(2), "{command}: {}", ended.stderr);
        let told = "can't write \"key.pem\": the command reads this file: name another";
        assert!(ended.stderr.contains(told), "{command}: {}", ended.stderr);
        assert_eq!(fs::read(inside("key.pem")).unwrap(), key, "{command}");
        assert!(!inside("new").exists(), "{command}");
    }
}

#[test]
fn options_that_can_not_be() {
    let baseline = |arm| vec!["compare", "--baseline", arm];
    let table: &[(Vec<&str>, &str)] = &[
        (
            baseline("secp256r2/rsa-2048"),
            r#"'--baseline <ARM>': arm "secp256r2/rsa-2048": unknown group "secp256r2": did you mean "secp256r1"?"#,
        ),
        (
            vec!["compare", "--against", "secp256r1/rsa2048"],
            r#"'--against <ARM>': arm "secp256r1/rsa2048": unknown chain "rsa2048": did you mean "rsa-2048"?"#,
        ),
        (
            baseline("secp256r1/rsa-2048:1000B"),
            r#"chain "rsa-2048:1000B": its Certificate message has 2162 bytes without padding; ask for 2162B or more"#,
        ),
        (
            vec!["compare", "--rate", "5mbits"],
            r#"'--rate <RATE>': unknown unit "mbits" in "5mbits": did you mean "mbit"?"#,
        ),
        (
            vec!["compare", "--rate", "1gbit,5mbits"],
            r#"invalid value '5mbits' for '--rate <RATE>'"#,
        ),
        (
            vec!["compare", "--link", "lte,goe"],
            r#"'--link <NAME>': unknown network "goe": did you mean "geo"?"#,
        ),
        (
            vec!["compare", "--rate", "5mbit/2"],
            r#"'--rate <RATE>': missing unit in rate "2": did you mean "2mbit"?"#,
        ),
        (
            vec!["compare", "--loss", "150%"],
            r#"'--loss <LOSS>': probability "150%" is above 100%"#,
        ),
        (
            vec!["compare", "--loss", "5"],
            r#"missing unit in probability "5": did you mean "5%"?"#,
        ),
        (
            vec!["compare", "--rtt", "35"],
            r#"'--rtt <TIME>': missing unit in duration "35": did you mean "35ms"?"#,
        ),
        (vec!["compare", "--rtt=-5ms"], r#"negative duration "-5ms""#),
        (
            vec!["compare", "--rtt", "-5ms"],
            r#"'--rtt <TIME>': negative duration "-5ms": write one such as "35ms""#,
        ),
        (
            vec!["explain", "https://localhost:8443/path"],
            r#"for a server, write "localhost:8443""#,
        ),
        (
            vec!["chain", "show", "localhost:70000"],
            r#"a server's port is a number from 1 to 65535, as in "localhost:443""#,
        ),
        (
            vec!["explain", "X25519MLKEM786/ml-dsa-44"],
            r#"unknown group "X25519MLKEM786": did you mean "X25519MLKEM768"?"#,
        ),
        (
            vec!["plan", "kyber768/ml-dsa-65"],
            r#"unknown group "kyber768": did you mean "MLKEM768"?"#,
        ),
        (
            vec!["compare", "Dilithium3"],
            r#"unknown chain "Dilithium3": did you mean "ml-dsa-65"?"#,
        ),
        (
            vec!["explain", "x25519/ecdsa"],
            r#"unknown chain "ecdsa": did you mean "ecdsa-p256"?"#,
        ),
        (
            vec!["compare", "ml-dsa-44", "--baseline", "ml-dsa-65"],
            "cannot be used with '--baseline <ARM>'",
        ),
        (
            vec!["compare", "a=ml-dsa-44", "a=ml-dsa-65"],
            r#"arm "a" is given twice: name each once"#,
        ),
        (
            vec!["compare", "a=ml-dsa-44", "b=ml-dsa-44"],
            r#"arm "b" is the same as arm "a": leave one out"#,
        ),
        (
            vec!["compare", "=ml-dsa-44"],
            "begins or ends with nothing to see: write NAME=ARM",
        ),
        (
            vec!["compare", "a\u{202e}=ml-dsa-44"],
            "has a character that is not seen",
        ),
        (
            vec!["compare", "--mix", "lte"],
            "write each network with its weight, as in lte=3,fibre=1",
        ),
        (
            vec!["compare", "--mix", "lte=3,fibre=0"],
            r#""0" is no weight: write a number above 0"#,
        ),
        (
            vec!["compare", "--mix", "lte=3,lte=1"],
            r#"--mix: "lte" is given twice: give it one weight"#,
        ),
        (
            vec!["compare", "--rate", "0"],
            r#"rate "0" is zero: leave it out for a link without limit"#,
        ),
        (
            vec!["compare", "--timeout", "0s"],
            "'--timeout <TIME>': nothing takes no time: give a connection some, such as 300s",
        ),
        (
            vec!["compare", "--report", "page.pdf"],
            "'--report <FILE.html>': it is a page: name it .html",
        ),
        (
            vec!["explain", "a=ml-dsa-44", "a=ml-dsa-65"],
            "arm \"a\" is given twice: name each once",
        ),
        (
            vec!["report", ".", "-o", "page.pdf"],
            "'--output <FILE.html|md|json>': name it .html, for the page, or .md or .json, for its answer",
        ),
        (
            vec!["report", "nonexist.parquet"],
            r#""nonexist.parquet" does not exist: name a folder of `lastbyte run`, or a file of"#,
        ),
        (
            vec!["report", "/dev/null"],
            r#"report takes a folder of `lastbyte run` or a file of `lastbyte compare --output FILE.parquet`"#,
        ),
        (
            vec!["explain", "localhost"],
            r#"for a server, write "localhost:443""#,
        ),
        (
            vec!["explain", "localhost:0"],
            r#"a server's port is a number from 1 to 65535, as in "localhost:443""#,
        ),
        (
            vec!["explain", "X25519MLKEM768/localhost:99999"],
            r#"a server's port is a number from 1 to 65535, as in "localhost:443""#,
        ),
        (vec!["explain", "/dev/zero/../zero.pem"], "can't be read"),
        (
            vec!["run", "/dev/zero"],
            "it is no regular file: name another",
        ),
        (
            vec!["compare", "--save", "a\u{1b}[31mb"],
            "it has a character that is not seen: leave that out",
        ),
        (
            vec!["explain", "a\u{1b}[31mb.pem"],
            "has the character U+001B, which acts on a terminal and is not seen: leave it out",
        ),
        (
            vec!["compare", "--against", "X25519MLKEM768/./\u{202e}red.pem"],
            "has the character U+202E, which acts on a terminal and is not seen: leave it out",
        ),
        (
            vec!["compare", "--mix", "ltee=3"],
            r#"unknown network "ltee": did you mean "lte"?"#,
        ),
        (
            vec!["compare", "--mtu", "-1"],
            r#"no MTU "-1": write bytes from 576 to 9000, such as 1500"#,
        ),
        (
            vec!["compare", "--initcwnd", "-1"],
            "'--initcwnd <SEGMENTS>': -1 is not from 1 to 1000",
        ),
        (
            vec!["compare", "--initcwnd", "ten"],
            "'--initcwnd <SEGMENTS>': no whole number: write one such as 10",
        ),
        (
            vec!["compare", "--seed", "abc"],
            "'--seed <N>': no whole number: write one such as 10",
        ),
        (
            vec!["plan", "--seed", "abc"],
            "'--seed <N>': no whole number: write one such as 10",
        ),
        (
            vec!["compare", "--loss", "0.03"],
            r#"missing unit in probability "0.03": did you mean "3%" or "0.03%"?"#,
        ),
        (
            vec!["mtc", "serve", "folder", "--listen", "8444"],
            r#"'--listen <ADDRESS:PORT>': no address: did you mean "127.0.0.1:8444"?"#,
        ),
        (
            vec!["mtc", "serve", "folder", "--listen", "::1"],
            r#"no port: write one such as "[::1]:8443""#,
        ),
        (
            vec!["ad", "serve", "--backend", "localhost"],
            r#"'--backend <[PROTOCOL=]HOST:PORT>': no port: write HOST:PORT, such as "localhost:8080""#,
        ),
        (
            vec!["ad", "serve", "--backend", "::1"],
            r#"'--backend <[PROTOCOL=]HOST:PORT>': no port: write HOST:PORT, such as "localhost:8080""#,
        ),
        (
            vec!["ad", "serve", "--backend", "localhost:0"],
            "'--backend <[PROTOCOL=]HOST:PORT>': no port: write one from 1 to 65535",
        ),
        (
            vec!["ad", "serve", "--listen", "localhost"],
            r#"write an address and a port, such as "127.0.0.1:8443""#,
        ),
        (
            vec!["compare", "--jitter-distribution", "norml"],
            r#"unknown jitter distribution "norml": did you mean "normal"?"#,
        ),
        (
            vec!["compare", "--congestion", "cubc"],
            r#"unknown congestion control "cubc": did you mean "cubic"?"#,
        ),
        (
            vec!["compare", "--data", "200K"],
            r#"'--data <SIZE>': unknown unit "K" in "200K": did you mean "200KiB" (of 1024) or "200KB" (of 1000)?"#,
        ),
        (
            vec!["compare", "--data", "18446744073709551615B"],
            "'--data <SIZE>': ask for 1GiB or less",
        ),
        (
            vec!["compare", "--connections", "0"],
            "'--connections <N>': 0 connections can't be had: use 1 to 1000000",
        ),
        (
            vec!["compare", "--concurrency", "0"],
            "'--concurrency <N>': 0 is ",
        ),
        (
            vec!["compare", "--queue", "0"],
            "'--queue <PACKETS>': 0 is ",
        ),
        (
            vec!["compare", "--initcwnd", "10,0"],
            "'--initcwnd <SEGMENTS>': 0 is not from 1 to 1000",
        ),
        (
            vec!["compare", "--engine", "vitual"],
            r#"'--engine <NAME>': unknown engine "vitual": did you mean "virtual"?"#,
        ),
        (
            vec!["compare", "--output", "rows.xlsx"],
            "'--output <FILE>': name it .parquet or .csv, for every connection, or .json",
        ),
        (
            vec!["compare", "--fail-if", "latency.p50 > 1ms"],
            r#"'--fail-if <THRESHOLD>': threshold "latency.p50 > 1ms": unknown metric "latency": use one of connect, handshake, ttfb, ttlb"#,
        ),
        (
            vec!["compare", "--fail-if", "ttlb.p75 > 10%,ttlb.p100 > 10%"],
            r#"threshold "ttlb.p100 > 10%": "p100" is no percentile: use p0.1 to p99.9, such as p75"#,
        ),
        (
            vec!["compare", "--fail-if", "ttlb.p50 > 10"],
            r#"missing unit in "10": did you mean "10%" or "10ms"?"#,
        ),
        (
            vec!["compare", "--fail-if", "ttlb.p50 < 10ms"],
            "a threshold is crossed from below: use > or >=",
        ),
        (
            vec!["compare", "--fail-if", "ttlb.p50 > 10ms since saved"],
            r#"a change is written "2% since saved", with a percentage"#,
        ),
        (
            vec!["compare", "--save", ""],
            "'--save <NAME>': give it a name",
        ),
        (
            vec!["compare", "--save", "main.parquet"],
            "'--save <NAME>': for a file in this folder, write ./main.parquet",
        ),
        (
            vec!["compare", "--compare-to", "topic/chain"],
            "'--compare-to <NAME>': with a /, it is the path of a file: .../NAME.parquet",
        ),
        (
            vec!["compare", "--rt", "5ms"],
            "a similar argument exists: '--rtt'",
        ),
        (vec!["compar"], "a similar subcommand exists: 'compare'"),
        (
            vec!["compare", "--bandwidth", "5mbit"],
            "unexpected argument '--bandwidth' found: it is --rate here",
        ),
        (vec!["compare", "--delay", "5ms"], "it is --rtt here"),
        (vec!["explain", "--size=5KiB"], "it is --data here"),
        (vec!["compare", "-n", "100"], "it is --connections here"),
        (vec!["compare", "--cc", "bbr"], "it is --congestion here"),
        (
            vec!["compare", "--export-json", "a.json"],
            "it is -o FILE.json here",
        ),
        (
            vec!["compare", "-groups", "X25519"],
            "it is --against GROUP/CHAIN here",
        ),
        (
            vec!["compare", "--format", "tabel"],
            "[possible values: table, json, csv, markdown]: a similar value exists: 'table'",
        ),
        (
            vec!["chain", "show", "rsa-2408"],
            r#"'<CHAIN>': unknown chain "rsa-2408": did you mean "rsa-2048"?"#,
        ),
    ];
    for (arguments, expected) in table {
        let ended = run(&mut lastbyte(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        let stderr = ended.stderr;
        assert!(stderr.starts_with("lastbyte: "), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn no_arguments_at_all() {
    let ended = run(&mut lastbyte([""; 0]));
    assert_eq!(ended.code, Some(2));
    // As of other tools that need to be told what to do.
    for example in ["explain ", "compare ", "plan ", "--help"] {
        let command = format!("lastbyte {example}");
        assert!(ended.stderr.contains(&command), "{}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
    for line in ended.stderr.lines().filter(|line| line.starts_with("  ")) {
        let words = line.split_whitespace();
        let words: Vec<_> = words.skip(1).collect();
        // The commands are those that there are, whatever is told beside them.
        let ended = run(lastbyte(&words[..1]).arg("--help"));
        assert_eq!(ended.code, Some(0), "{line}");
    }
}

#[test]
fn values_too_long_to_read_are_cut() {
    let arm = format!("x25519/{}", "a".repeat(5000));
    for command in [
        vec!["compare", "--baseline", &arm],
        vec!["plan", "ml-dsa-44", "--today", &arm],
    ] {
        let ended = run(&mut lastbyte(command));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.len() < 1500, "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn arms_that_are_given_twice() {
    let arms = [
        "--baseline",
        "x25519/rsa-2048",
        "--against",
        "x25519/rsa-2048",
    ];
    let problem = r#"arm "x25519/rsa-2048" is given twice: name each once"#;
    refuses(&arms, problem);
    // The baseline that nobody asked for counts as well.
    let problem = r#"arm "secp256r1/rsa-2048" is given twice: name each once"#;
    refuses(&["--against", "secp256r1/rsa-2048"], problem);
}

#[test]
fn values_that_are_given_twice() {
    refuses(
        &["--rtt", "10ms,0.01s"],
        r#"--rtt: "0.01s" is given twice: leave one out"#,
    );
    refuses(
        &["--link", "lte,geo,LTE"],
        r#"--link: "lte" is given twice: leave one out"#,
    );
    refuses(
        &["--initcwnd", "10,20,10"],
        r#"--initcwnd: "10" is given twice: leave one out"#,
    );
}

#[test]
fn a_rate_at_which_nothing_arrives() {
    refuses(
        &["--rate", "1gbit/1bit"],
        "--rate: at 1bit a packet of 1500 bytes takes 12000s, and a connection has 300s (--timeout): ask for more",
    );
}

#[test]
fn chains_in_files_that_can_not_be_used() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| at(&folder, name).display().to_string();
    write(
        &test_chains::for_name("server.example").unwrap(),
        &at(&folder, "good"),
    );
    write(
        &test_chains::for_name("server.example").unwrap(),
        &at(&folder, "other"),
    );
    write(&test_chains::expired().unwrap(), &at(&folder, "expired"));
    fs::write(at(&folder, "text.pem"), "a chain of thought\n").unwrap();

    for (arm, at_fault, problem) in [
        (
            path("missing.pem"),
            path("missing.pem"),
            "can't be read: No such file or directory (os error 2)",
        ),
        (
            path("text.pem"),
            path("text.pem"),
            r#"is not PEM: no line of it is "-----BEGIN CERTIFICATE-----""#,
        ),
        (
            path("good/chain.pem") + "/key=" + &path("other/key.pem"),
            path("other/key.pem"),
            "holds another key than that of the first certificate in ",
        ),
        (
            path("good/chain.pem") + "/key=" + &path("text.pem"),
            path("text.pem"),
            "holds no private key",
        ),
        (
            path("good/chain.pem") + "/ca=" + &path("other/root.pem"),
            path("good/chain.pem"),
            "lacks the issuer of its certificate 2, ",
        ),
        (
            path("expired/chain.pem") + "/ca=" + &path("expired/root.pem"),
            path("expired/chain.pem"),
            "is out of date: its certificate 1 expired on ",
        ),
    ] {
        let problem = format!("\"{at_fault}\" {problem}");
        refuses(&["--baseline", &format!("x25519/{arm}")], &problem);
    }
}

fn write(chain: &Chain, folder: &Path) {
    fs::create_dir(folder).unwrap();
    let certificates = chain.certificates().iter();
    let pem: Vec<_> = certificates
        .flat_map(|sent| sent.to_pem().unwrap())
        .collect();
    fs::write(folder.join("chain.pem"), pem).unwrap();
    fs::write(folder.join("root.pem"), chain.root().to_pem().unwrap()).unwrap();
    let key = chain.key().private_key_to_pem_pkcs8().unwrap();
    fs::write(folder.join("key.pem"), key).unwrap();
}

#[test]
fn places_that_can_not_be_written() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(at(&folder, "folder.csv")).unwrap();
    fs::write(at(&folder, "file"), "").unwrap();
    let path = |name: &str| at(&folder, name).display().to_string();
    for (output, problem) in [
        (
            path("missing/rows.csv"),
            format!("there is no folder \"{}\": make it first", path("missing")),
        ),
        (
            path("file/rows.csv"),
            format!("there is no folder \"{}\": make it first", path("file")),
        ),
        (path("folder.csv"), "it is a folder".to_owned()),
    ] {
        let problem = format!("can't write \"{output}\": {problem}");
        refuses(&["-o", &output], &problem);
    }
}

#[test]
fn a_cache_that_can_not_be_written() {
    let folder = TempDir::new().unwrap();
    fs::write(at(&folder, "file"), "").unwrap();
    let mut command = lastbyte(["compare"]);
    let ended = run(command.env("LASTBYTE_CACHE", at(&folder, "file")));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("can't write "), "{}", ended.stderr);
    let hint = "set LASTBYTE_CACHE to a folder that can be written\n";
    assert!(ended.stderr.ends_with(hint), "{}", ended.stderr);
}

#[test]
fn keys_are_never_overwritten() {
    let folder = TempDir::new().unwrap();
    let make = || run(lastbyte(["chain", "new", "ecdsa-p256", "-o"]).arg(folder.path()));
    assert_eq!(make().code, Some(0));
    let key = fs::read(at(&folder, "key.pem")).unwrap();
    let ended = make();
    assert_eq!(ended.code, Some(2));
    let problem = format!(
        "lastbyte: can't write \"{}\": there is one already, and it may be the only copy of a key: name another folder \
         with -o\n",
        at(&folder, "chain.pem").display()
    );
    assert_eq!(ended.stderr, problem);
    assert_eq!(fs::read(at(&folder, "key.pem")).unwrap(), key);
}

/// A name is taken, wherever it leads.
#[test]
fn a_link_that_leads_nowhere_leaves_no_part_of_a_chain() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("nowhere", at(&folder, "key.pem")).unwrap();
    let ended = run(lastbyte(["chain", "new", "ecdsa-p256", "-o"]).arg(folder.path()));
    assert_eq!(ended.code, Some(2));
    let taken = at(&folder, "key.pem");
    let problem = format!(
        "lastbyte: can't write \"{}\": there is one already",
        taken.display()
    );
    assert!(ended.stderr.starts_with(&problem), "{}", ended.stderr);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Messages are one line each, whatever files are called.
#[test]
fn a_line_break_in_a_name_is_told() {
    let folder = TempDir::new().unwrap();
    let name = at(&folder, "no\nsuch.csv");
    let table = name.to_str().unwrap();
    for command in [
        &["rtt", "--table", table][..],
        &["zeek", table],
        &["show", table],
        &["explore", table],
    ] {
        let ended = run(&mut lastbyte(command.iter().copied()));
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(
            ended.stderr.contains("no\\u{a}such.csv"),
            "{}",
            ended.stderr
        );
    }
}

/// `compare` with these options ends with 2 and one line that begins like this.
fn refuses(options: &[&str], problem: &str) {
    let ended = run(lastbyte(["compare"]).args(options));
    assert_eq!(ended.code, Some(2), "{options:?}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{options:?}");
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let expected = format!("lastbyte: {problem}");
    assert!(lines[0].starts_with(&expected), "{lines:?}\nnot {expected}");
}
