#![allow(clippy::unwrap_used)]

use std::fs;
use std::time::Duration;

use lastbyte_pki::test_chains;
use tempfile::TempDir;

use super::*;
use crate::serve::{AccessLogTo, Server};

#[test]
fn what_would_keep_it_from_starting_is_told_and_nothing_is_made() {
    let folder = TempDir::new().unwrap();
    let made = test_chains::for_name("server.example").unwrap();
    let certificates = made.certificates().iter();
    let pem: Vec<_> = certificates.map(|one| one.to_pem().unwrap()).collect();
    let files = ChainFiles {
        chain: folder.path().join("chain.pem"),
        key: folder.path().join("key.pem"),
    };
    fs::write(&files.chain, pem.concat()).unwrap();
    fs::write(&files.key, made.key().private_key_to_pem_pkcs8().unwrap()).unwrap();
    let good = Config::new(vec![files.clone()], "127.0.0.1:1");
    let address = |text: &str| Listen::Address(text.parse().unwrap());
    let listen = address("127.0.0.1:0");
    let state = folder.path().join("not/there");
    let problems = check(&good, &listen, Some(&state), None).problems;
    assert!(problems.is_empty(), "{problems:?}");
    assert!(!folder.path().join("not").exists());

    // Nor does a server begin that would write behind a key.
    let mut config = good.clone();
    config.access_log = Some(AccessLogTo::File(files.key.clone()));
    let key = fs::read(&files.key).unwrap();
    let refused = Server::new(config).err().unwrap().to_string();
    assert!(refused.contains("which is read: name another"), "{refused}");
    assert_eq!(fs::read(&files.key).unwrap(), key);

    let told = |change: &dyn Fn(&mut Config), listen: &Listen| {
        let mut config = good.clone();
        change(&mut config);
        let Findings { problems, warnings } = check(&config, listen, None, None);
        [problems, warnings].map(|lines| lines.join("; "))
    };
    for (change, part) in [
        (
            &(|config: &mut Config| {
                let file = folder.path().join("no/access.log");
                config.access_log = Some(AccessLogTo::File(file));
            }) as &dyn Fn(&mut Config),
            "no/access.log\": No such file or directory",
        ),
        (
            &|config| {
                let link = folder.path().join("link.log");
                let _ = fs::hard_link(&files.key, &link);
                config.access_log = Some(AccessLogTo::File(link));
            },
            "key.pem\", which is read: name another file for it",
        ),
        (
            &|config| config.metrics = Some("192.0.2.1:1".parse().unwrap()),
            "--metrics: can't listen on 192.0.2.1:1",
        ),
        (
            &|config| config.groups = "X25519:nosuch".to_owned(),
            "--groups: there is no group \"nosuch\" here",
        ),
        (
            &|config| config.limits.idle = Duration::ZERO,
            "--idle-timeout is zero",
        ),
        (
            &|config| config.limits.handshake = Duration::ZERO,
            "--handshake-timeout is zero",
        ),
    ] {
        let [problems, _] = told(change, &listen);
        assert!(problems.contains(part), "{problems}");
    }
    let log = AccessLogTo::File(folder.path().join("access.log"));
    let [problems, _] = told(&|config| config.access_log = Some(log.clone()), &listen);
    assert_eq!(problems, "");
    assert!(!folder.path().join("access.log").exists(), "it was made");
    let [problems, _] = told(
        &|config| config.metrics = Some("[::1]:9".parse().unwrap()),
        &address("[::]:9"),
    );
    assert!(problems.contains("--metrics: [::1]:9 is taken by what listens on [::]:9"));
    // Where nothing can be made, although root may write.
    let Findings { problems, .. } = check(&good, &listen, Some(Path::new("/proc/state")), None);
    assert!(
        problems
            .concat()
            .contains("can't keep chains in \"/proc/state\"")
    );
    let [problems, _] = told(&|_| {}, &address("127.0.0.1:1"));
    assert!(problems.contains("is what is listened on"), "{problems}");
    let [_, warnings] = told(&|config| config.chains.push(files.clone()), &listen);
    assert!(warnings.contains("has the names and the algorithm of"));
    let [problems, warnings] = told(&|_| {}, &Listen::Systemd);
    assert!(problems.is_empty() && warnings.contains("opened no socket"));
}

#[test]
fn addresses_that_two_sockets_can_not_have_are_told() {
    for (one, other, expected) in [
        ("127.0.0.1:443", "127.0.0.1:443", true),
        ("127.0.0.1:443", "127.0.0.1:444", false),
        ("127.0.0.1:443", "127.0.0.2:443", false),
        ("0.0.0.0:443", "127.0.0.2:443", true),
        ("[::]:443", "127.0.0.2:443", true),
        ("[::]:443", "0.0.0.0:443", true),
        ("[::ffff:127.0.0.1]:443", "127.0.0.1:443", true),
        ("[::1]:443", "0.0.0.0:443", false),
        // The system gives each its own port.
        ("127.0.0.1:0", "127.0.0.1:0", false),
    ] {
        let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
        assert_eq!(overlap(one, other), expected, "{one} {other}");
        assert_eq!(overlap(other, one), expected, "{other} {one}");
    }
}
