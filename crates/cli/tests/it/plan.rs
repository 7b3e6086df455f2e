//! `lastbyte plan`: from a user's chain and logs to what would win it back, measured in the virtual kernel.
use std::fs;
use std::process::Command;

use crate::common::{Ended, assert_fits, at, run};
use serde_json::Value;
use tempfile::TempDir;

/// The program with the user's own cache, which has the kernel.
fn lastbyte(folder: &TempDir, arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    run(command.args(arguments).current_dir(folder.path()))
}

fn document(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, lastbyte::report::planned::SCHEMA);
    document
}

/// Logs of so many connections, of which each third resumed.
fn logs(folder: &TempDir, connections: u32) {
    let head = "#separator \\x09\n#unset_field\t-\n";
    let mut ssl = format!(
        "{head}#fields\tts\tuid\tversion\tserver_name\tresumed\testablished\tssl_history\n"
    );
    let mut conn = format!(
        "{head}#fields\tts\tuid\tproto\tservice\tduration\torig_bytes\tresp_bytes\tconn_state\tmissed_bytes\n"
    );
    for at in 0..connections {
        let (time, resumed) = (1_790_000_000 + at, if at % 3 == 0 { 'T' } else { 'F' });
        ssl += &format!("{time}.0\tC{at}\tTLSv13\ta.example\t{resumed}\tT\tCsiI\n");
        conn += &format!(
            "{time}.0\tC{at}\ttcp\tssl\t0.5\t600\t{}\tSF\t0\n",
            5000 + at % 50 * 400
        );
    }
    fs::write(at(folder, "ssl.log"), ssl).unwrap();
    fs::write(at(folder, "conn.log"), conn).unwrap();
}

#[test]
fn from_ones_own_logs_and_chain_to_levers() {
    let folder = TempDir::new().unwrap();
    logs(&folder, 1200);
    let ended = lastbyte(
        &folder,
        &["zeek", "ssl.log", "conn.log", "-o", "profile.toml"],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    fs::write(
        at(&folder, "rtt.csv"),
        "class,rtt_ms,weight\nnear,10,3\nfar,100,1\n",
    )
    .unwrap();
    // A chain whose key is elsewhere.
    let ended = lastbyte(
        &folder,
        &["chain", "new", "ml-dsa-65/intermediates=2", "-o", "site"],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    fs::rename(at(&folder, "site/chain.pem"), at(&folder, "chain.pem")).unwrap();

    let plan = [
        "plan",
        "chain.pem",
        "--profile",
        "profile.toml",
        "--rtt",
        "rtt.csv",
        "-n",
        "120",
    ];
    let told = lastbyte(
        &folder,
        &[&plan[..], &["--format", "json", "-o", "plan.html"]].concat(),
    );
    let document = document(&told);
    assert_eq!(document["connections"], 120);
    // The third is what stands in for the chain. What it is compared with has its shape: keys alone differ.
    let sources = document["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 3, "{sources:?}");
    assert_eq!(
        document["today"],
        "X25519MLKEM768/ecdsa-p256/intermediates=2/scts=0"
    );
    let granted: Vec<&Value> = document["taken_for_granted"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let keys: Vec<&str> = granted
        .iter()
        .filter_map(|usual| usual["key"].as_str())
        .collect();
    assert_eq!(keys, ["rate", "loss"]);
    let classes: Vec<&Value> = document["waiting"]
        .as_array()
        .unwrap()
        .iter()
        .map(|waiting| &waiting["class"])
        .collect();
    assert_eq!(
        classes,
        // The larger class first.
        [&Value::Null, &Value::from("near"), &Value::from("far")]
    );
    // What stands in for the chain has its name and its size.
    assert_eq!(document["planned"], "X25519MLKEM768/chain.pem");
    let told = "chain.pem (no private key here): measured with a stand-in of the same names, sizes, algorithms and \
        extensions";
    assert_eq!(document["sources"][2], told);
    // 20 KB of handshake cross a window of 10 segments and not one of 32.
    let gain = |name: &str| {
        let levers = document["levers"].as_array().unwrap();
        let lever = levers.iter().find(|lever| lever["name"] == name).unwrap();
        lever["gain_ms"]["value"].as_f64().unwrap()
    };
    assert!(gain("window") > 5.0, "{}", gain("window"));
    assert!(gain("edge") > 5.0);
    assert!(
        fs::read_to_string(at(&folder, "plan.html"))
            .unwrap()
            .contains("What would win it back")
    );
    // The same question has the same answer.
    let again = lastbyte(&folder, &[&plan[..], &["--format", "json"]].concat());
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    for key in ["answer", "waiting", "levers", "together"] {
        assert_eq!(again[key], document[key], "{key}");
    }
}

/// Keys alone are exchanged: a chain of many names keeps them.
#[test]
fn what_is_planned_has_the_names_of_the_chain_that_there_is() {
    let folder = TempDir::new().unwrap();
    let made = lastbyte(
        &folder,
        &["chain", "new", "ecdsa-p256/names=40", "-o", "many"],
    );
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let plan = [
        "plan",
        "ml-dsa-44",
        "--today",
        "many/chain.pem",
        "--users",
        "fibre=1",
    ];
    let told = lastbyte(
        &folder,
        &[&plan[..], &["-n", "20", "--format", "json"]].concat(),
    );
    let planned = "X25519MLKEM768/ml-dsa-44/intermediates=1/scts=0/names=40";
    assert_eq!(document(&told)["planned"], planned);
}

/// What `chain new` writes is all that is needed, and so is any full chain with its root beside it.
#[test]
fn a_root_beside_the_chain_is_the_one_that_clients_trust() {
    let folder = TempDir::new().unwrap();
    for (name, chain) in [("site", "ml-dsa-44"), ("other", "ml-dsa-65")] {
        let ended = lastbyte(&folder, &["chain", "new", chain, "-o", name]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let arguments = ["reduce", "site/chain.pem", "--connections=2", "--data=0B"];
    let ended = lastbyte(
        &folder,
        &[&arguments[..], &["--handshakes=0", "--format=json"]].concat(),
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = "which does not end in its root: clients trust the one beside it, site/root.pem";
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(
        document["warnings"].to_string().contains(told),
        "{document}"
    );
    // One that is not the chain's is not taken.
    fs::copy(at(&folder, "other/root.pem"), at(&folder, "site/root.pem")).unwrap();
    let ended = lastbyte(
        &folder,
        &[&arguments[..], &["--handshakes=0", "--format=json"]].concat(),
    );
    let told = "site/chain.pem (no root here): measured with a stand-in";
    assert!(ended.stdout.contains(told), "{ended:?}");
}

#[test]
fn no_output_takes_the_place_of_an_input() {
    let folder = TempDir::new().unwrap();
    logs(&folder, 400);
    fs::write(at(&folder, "rtt.csv"), "rtt_ms\n10\n").unwrap();
    fs::write(at(&folder, "users.csv"), "region,edge_rtt\nEast US,10\n").unwrap();
    fs::copy(at(&folder, "rtt.csv"), at(&folder, "rtt.html")).unwrap();
    let rtt = [
        "rtt",
        "x25519/rsa-2048",
        "--users",
        "users.csv",
        "--origin",
        "East US",
        "--within",
        "1ms",
    ];
    for arguments in [
        &["zeek", "ssl.log", "conn.log", "-o", "ssl.log"][..],
        &["zeek", ".", "-o", "conn.log"],
        &["plan", "ml-dsa-44", "--rtt", "rtt.html", "-o", "rtt.html"],
        &[&rtt[..], &["--svg", "users.csv"]].concat(),
        &[&rtt[..], &["--svg", "a.svg", "--population", "a.svg"]].concat(),
        &["explain", "x25519/rsa-2048", "--svg", "rtt.csv"],
        &["zeek", "ssl.log", "conn.log", "-o", "/dev/full"],
    ] {
        let before: Vec<_> = ["ssl.log", "conn.log", "rtt.html", "users.csv", "rtt.csv"]
            .map(|name| fs::read(at(&folder, name)).unwrap())
            .into();
        let ended = lastbyte(&folder, arguments);
        assert_eq!(
            ended.code,
            Some(2),
            "{arguments:?} {}{}",
            ended.stdout,
            ended.stderr
        );
        assert_eq!(
            ended.stderr.trim_end().lines().count(),
            1,
            "{}",
            ended.stderr
        );
        let after: Vec<_> = ["ssl.log", "conn.log", "rtt.html", "users.csv", "rtt.csv"]
            .map(|name| fs::read(at(&folder, name)).unwrap())
            .into();
        assert_eq!(before, after, "{arguments:?}");
    }
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

/// Swapped, what one loses is what the other gains.
#[test]
fn swapped_arms_swap_the_sign() {
    let folder = TempDir::new().unwrap();
    let mean = |planned: &str, today: &str| {
        let ended = lastbyte(
            &folder,
            &[
                "plan", planned, "--today", today, "-n", "60", "--format", "json",
            ],
        );
        document(&ended)["waiting"][0]["longer_ms"]["mean"]["value"]
            .as_f64()
            .unwrap()
    };
    let there = mean("x25519/rsa-2048", "X25519MLKEM768/ml-dsa-65");
    let back = mean("X25519MLKEM768/ml-dsa-65", "x25519/rsa-2048");
    assert!(back > 1.0, "{back}");
    assert!((there + back).abs() < 1e-6, "{there} and {back}");
}

#[test]
fn what_can_not_be_planned() {
    let folder = TempDir::new().unwrap();
    fs::write(at(&folder, "empty.toml"), "").unwrap();
    fs::write(at(&folder, "holes.csv"), "rtt_ms,weight\n10,1\n,1\n").unwrap();
    fs::write(at(&folder, "none.csv"), "rtt_ms,weight\n").unwrap();
    fs::write(at(&folder, "no.pem"), "nothing\n").unwrap();
    for (arguments, problem) in [
        (
            &["ml-dsa-45"][..],
            "is no arm, no chain, no PEM file and no size",
        ),
        (&["X25519MLKEM769/ml-dsa-44"], "X25519MLKEM769"),
        (&["no.pem"], "is not PEM"),
        (&["missing.pem"], "can't be read"),
        (
            &["ml-dsa-44", "--today", "ml-dsa-44"],
            "is what there is today",
        ),
        (&["ml-dsa-44", "--profile", "missing.toml"], "can't read"),
        (
            &["ml-dsa-44", "--profile", "empty.toml"],
            "missing \"population\"",
        ),
        (
            &["ml-dsa-44", "--rtt", "holes.csv"],
            "row 2: there is nothing",
        ),
        (&["ml-dsa-44", "--rtt", "none.csv"], "drawn from nothing"),
        (&["ml-dsa-44", "-o", "plan.txt"], "name it .html"),
        (&["ml-dsa-44", "--try-resumes", "94"], "94%"),
    ] {
        let ended = lastbyte(&folder, &[&["plan"], arguments].concat());
        assert_eq!(
            ended.code,
            Some(2),
            "{arguments:?} {}{}",
            ended.stdout,
            ended.stderr
        );
        assert!(
            ended.stderr.contains(problem),
            "{arguments:?} {}",
            ended.stderr
        );
    }
}

/// Where no kernel is, the answer is arithmetic, and says so; a budget of it holds all the same.
#[test]
fn without_a_kernel_a_plan_is_arithmetic() {
    let folder = TempDir::new().unwrap();
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        command
            .arg("plan")
            .args(arguments)
            .current_dir(folder.path());
        run(command.env("XDG_CACHE_HOME", folder.path()))
    };
    let arguments = [
        "ml-dsa-44",
        "--users",
        "fibre=56%,cable=14%,lte=30%",
        "-n",
        "500",
    ];
    let ended = ask(&[&arguments[..], &["--format", "json"]].concat());
    let document = document(&ended);
    assert!(document["environment"].is_null());
    assert!(
        document["arithmetic"].as_str().unwrap().contains("kernel"),
        "{document}"
    );
    // The largest class comes first; who is near does not wait for so long.
    let classes: Vec<&Value> = (document["because"].as_array().unwrap().iter())
        .map(|cause| &cause["class"])
        .collect();
    assert_eq!(
        classes,
        [
            &Value::Null,
            &Value::from("fibre"),
            &Value::from("lte"),
            &Value::from("cable")
        ]
    );
    let waiting = |class: usize| document["because"][class]["waiting"].as_object().unwrap();
    assert!(waiting(1).is_empty());
    assert!(waiting(2)["waits for an acknowledgement"].as_u64().unwrap() > 50);
    // No stack of every build compresses, which arithmetic does not need.
    let calculated = document["levers"].as_array().unwrap().iter();
    assert!(
        calculated
            .clone()
            .any(|lever| lever["name"] == "compression")
    );

    let ended = ask(&[&arguments[..], &["--fail-if", "waiting > 1%,flights > 2"]].concat());
    assert_eq!(ended.code, Some(99), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("budget exceeded: waiting > 1%: "),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("within budget: flights of "),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stdout
            .starts_with("By arithmetic, over links that lose nothing ("),
        "{}",
        ended.stdout
    );

    for (users, expected) in [
        ("lte=30%,fibre=60%", "the shares are 90 % together"),
        ("lte=0", "write a number above 0"),
        ("lte=1,35ms=1", "is an RTT among networks"),
    ] {
        let ended = ask(&["ml-dsa-44", "--users", users]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(
            ended.stderr.trim_end().lines().count(),
            1,
            "{}",
            ended.stderr
        );
    }
}

/// The share of connections over QUIC goes from logs through the profile into the plan, and an option goes before it.
#[test]
fn from_ones_own_logs_to_both_transports() {
    let folder = TempDir::new().unwrap();
    logs(&folder, 900);
    // A quarter is over QUIC, of which Zeek sees hellos alone.
    let (mut ssl, mut conn) = ["ssl.log", "conn.log"]
        .map(|name| fs::read_to_string(at(&folder, name)).unwrap())
        .into();
    for at in 0..300 {
        let time = 1_790_000_000 + at;
        ssl += &format!("{time}.0\tQ{at}\tTLSv13\ta.example\tF\tF\tCs\n");
        conn += &format!("{time}.0\tQ{at}\tudp\tquic,ssl\t0.5\t600\t9000\tSF\t0\n");
    }
    fs::write(at(&folder, "ssl.log"), ssl).unwrap();
    fs::write(at(&folder, "conn.log"), conn).unwrap();
    let zeek = ["zeek", "ssl.log", "conn.log", "-o", "profile.toml"];
    let ended = lastbyte(&folder, &zeek);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("Over QUIC"), "{}", ended.stdout);
    // Without a kernel, so that nothing is measured.
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        let users = ["plan", "--profile", "profile.toml", "-n", "400"];
        command
            .args(users)
            .args(arguments)
            .current_dir(folder.path());
        run(command.env("XDG_CACHE_HOME", folder.path()))
    };
    let transports = |arguments: &[&str]| {
        let ended = ask(&[&["ml-dsa-44", "--format", "json"], arguments].concat());
        let document = document(&ended);
        (
            document["transports"].clone(),
            document["warnings"].to_string(),
        )
    };
    let (of_profile, _) = transports(&[]);
    assert_eq!(of_profile["quic_share"], 0.25);
    assert_eq!(of_profile["tcp"]["connections"], 300);
    assert_eq!(of_profile["quic"]["connections"], 100);
    let (of_option, _) = transports(&["--quic-share", "40%"]);
    assert_eq!(of_option["quic"]["connections"], 160);
    assert!(transports(&["--quic-share", "0%"]).0.is_null());
    // What was not asked for is no error.
    let (none, warnings) = transports(&["--metric", "ttlb"]);
    assert!(none.is_null());
    assert!(
        warnings.contains("the profile's share over QUIC, 25%, is left out"),
        "{warnings}"
    );

    for (arguments, problem) in [
        (&["ml-dsa-44", "--quic-share", "40"][..], "40%"),
        (
            &["ml-dsa-44", "--quic-share", "40%", "--metric", "ttlb"],
            "--quic-share 40%: arithmetic has no last byte",
        ),
        (
            &[
                "X25519MLKEM768/ml-dsa-44/transport=quic",
                "--quic-share",
                "40%",
            ],
            "is over QUIC already",
        ),
    ] {
        let ended = ask(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?} {}", ended.stderr);
        assert!(ended.stderr.contains(problem), "{}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    }
    let profile = fs::read_to_string(at(&folder, "profile.toml")).unwrap();
    fs::write(
        at(&folder, "profile.toml"),
        profile.replace("25.00%", "125%"),
    )
    .unwrap();
    let ended = ask(&["ml-dsa-44"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    let problem = "profile.toml:4: probability \"125%\" is above 100%";
    assert!(ended.stderr.contains(problem), "{}", ended.stderr);
}
