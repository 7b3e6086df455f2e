#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{Bytes, Direction, Distribution, Link};
use lastbyte_sizes::{
    ChainRole, ChainSpec, Group, KeyAlgorithm, LeafExtension, PaddedCertificate, Part, PemFiles,
    Resumption, RootDelivery, StackName,
};
use proptest::prelude::*;

use super::*;

fn arm(text: &str) -> Arm {
    text.parse().unwrap()
}

/// One of which all is as usual that its label does not say: what that makes of it is left to who compares.
fn usual(label: &str, group: Group, chain: ArmChain) -> Arm {
    Arm {
        name: label.to_owned(),
        label: label.to_owned(),
        settings: arm(label).settings,
        ..Arm::bare(group, chain)
    }
}

fn problem(text: &str) -> String {
    text.parse::<Arm>().unwrap_err().to_string()
}

#[test]
fn the_headline() {
    assert_eq!(
        arm("SecP256r1MLKEM768/ml-dsa-65"),
        usual(
            "SecP256r1MLKEM768/ml-dsa-65",
            Group::Secp256r1MlKem768,
            ArmChain::Made(ChainSpec::new(KeyAlgorithm::MlDsa65)),
        )
    );
}

#[test]
fn every_key_of_a_made_chain() {
    let label = "x25519/rsa-2048+ml-dsa-44+fn-dsa-512:20000B/root=sent/intermediates=2/\
        record_size=1400/stack=openssl/padding=last/scts=2/sct_algorithm=ml-dsa-44/\
        names=3/leaf_without=crl+policies";
    assert_eq!(
        arm(label),
        Arm {
            record_size: RecordSize::Fixed(1400),
            ..usual(
                label,
                Group::X25519,
                ArmChain::Made(ChainSpec {
                    role: ChainRole::Server,
                    leaf: KeyAlgorithm::Rsa2048,
                    ca: KeyAlgorithm::MlDsa44,
                    root_key: KeyAlgorithm::FnDsa512,
                    intermediates: 2,
                    root: RootDelivery::Sent,
                    certificate_bytes: Some(20_000),
                    padding: PaddedCertificate::Last,
                    scts: 2,
                    sct_algorithm: KeyAlgorithm::MlDsa44,
                    names: 3,
                    leaf_without: vec![LeafExtension::Policies, LeafExtension::Crl],
                    origin: 0,
                })
            )
        }
    );
    assert_eq!(
        arm("x25519/rsa-2048/record_size=auto").record_size,
        RecordSize::FirstSegment
    );
}

#[test]
fn paths_keep_their_slashes() {
    for (label, chain, key, ca) in [
        ("x25519/chain.pem", "chain.pem", None, None),
        (
            "x25519//etc/chain.crt/ca=/etc/root.pem",
            "/etc/chain.crt",
            None,
            Some("/etc/root.pem"),
        ),
        (
            "x25519/./chain/key=k/e/y/ca=c/a",
            "./chain",
            Some("k/e/y"),
            Some("c/a"),
        ),
        ("x25519/a-b=c/chain.cer", "a-b=c/chain.cer", None, None),
    ] {
        let files = PemFiles {
            key: key.map(Into::into),
            ca: ca.map(Into::into),
            ..PemFiles::new(chain)
        };
        assert_eq!(arm(label).chain, ArmChain::Pem(files), "{label}");
    }
    assert!(problem("x25519/a/b=c/chain.pem").contains(r#"unknown key "b""#));
}

/// A value may have what parts keys from each other.
#[test]
fn a_key_is_replaced_whole() {
    for (label, key, value, other) in [
        (
            "x25519/./c.pem/ca=./a/b.pem",
            "ca",
            "./d.pem",
            "x25519/./c.pem/ca=./d.pem",
        ),
        (
            "x25519/./c.pem/key=./a-1=b/ca=c.pem",
            "ca",
            "/e1=f/g",
            "x25519/./c.pem/key=./a-1=b/ca=/e1=f/g",
        ),
    ] {
        let with = arm(label).with(key, value).unwrap();
        assert_eq!(with, arm(other), "{label}");
        assert!(with.says(key) && !with.says("a"));
    }
}

#[test]
fn a_server_stands_where_its_chain_could() {
    for (chain, name, port) in [
        ("shop.example:443", "shop.example", 443),
        ("localhost:8443", "localhost", 8443),
        ("127.0.0.1:1", "127.0.0.1", 1),
        ("[::1]:65535", "::1", 65535),
    ] {
        let arm = arm(&format!("x25519/{chain}/ca=root.pem"));
        let ArmChain::Pem(files) = &arm.chain else {
            panic!("{chain}")
        };
        let host = files.host().unwrap();
        assert_eq!((host.name.as_str(), host.port), (name, port));
        assert_eq!(host.to_string(), chain);
    }
    for chain in ["./shop.example:443", "a/shop.example:443"] {
        let ArmChain::Pem(files) = arm(&format!("x25519/{chain}")).chain else {
            panic!("{chain}")
        };
        assert_eq!(files.host(), None, "{chain}");
    }
    for chain in ["rsa-2048:443", "chain.pem:443", "a.example:0", "[::g]:443"] {
        let parsed = format!("x25519/{chain}").parse::<Arm>();
        assert!(parsed.is_err(), "{chain}");
    }
}

/// Groups and algorithms in any letters are those of the standards.
#[test]
fn an_arm_is_read_in_any_letters() {
    for (text, usual) in [
        ("SECP256R1/ML-DSA-65", "secp256r1/ml-dsa-65"),
        (
            "x25519mlkem768/Ml-Dsa-44+ECDSA-P256:16KB/scts=2",
            "X25519MLKEM768/ml-dsa-44+ecdsa-p256:16KB/scts=2",
        ),
        ("X25519/./Chain.pem", "x25519/./Chain.pem"),
    ] {
        assert_eq!(text.parse::<Arm>(), usual.parse::<Arm>(), "{text}");
        assert_eq!(text.parse::<Arm>().unwrap().label, usual);
    }
}

#[test]
fn errors_name_the_arm_the_part_and_the_hint() {
    for (text, expected) in [
        ("", r#"arm "": unknown group "": "#),
        (
            "secp256r1",
            r#"missing chain: write GROUP/CHAIN, such as "secp256r1/rsa-2048""#,
        ),
        (
            "secp256r1/",
            r#"missing chain: write GROUP/CHAIN, such as "secp256r1/rsa-2048""#,
        ),
        ("secp256r1/root=sent", "missing chain: write GROUP/CHAIN"),
        (
            "secp256r2/rsa-2048",
            r#"unknown group "secp256r2": did you mean "secp256r1"?"#,
        ),
        (
            "secp256r1/rsa2048",
            r#"arm "secp256r1/rsa2048": unknown chain "rsa2048": did you mean "rsa-2048"?"#,
        ),
        (
            "secp256r1/ML-DSA-56",
            r#"unknown chain "ML-DSA-56": did you mean "ml-dsa-65"?"#,
        ),
        (
            "secp256r1/falcon1024",
            r#"unknown chain "falcon1024": did you mean "fn-dsa-1024"?"#,
        ),
        (
            "secp256r1/rsa-2048+mldsa65",
            r#"unknown chain "mldsa65": did you mean "ml-dsa-65"?"#,
        ),
        (
            "secp256r1/zzzzzzzzz",
            "unknown chain \"zzzzzzzzz\": use one of ecdsa-p256, ",
        ),
        ("secp256r1/rsa-2048:16000", r#"did you mean "16000B"?"#),
        ("secp256r1/rsa-2048:100B", "100B"),
        (
            "secp256r1/c.pem:16000B",
            r#"a size is for chains that are made, and "c.pem" is sent as it is"#,
        ),
        (
            "secp256r1/rsa-2048/sent",
            r#""sent" is not KEY=VALUE; for a file, write "./rsa-2048/sent""#,
        ),
        ("secp256r1/rsa-2048/", r#""" is not KEY=VALUE"#),
        (
            "secp256r1/rsa-2048/intermediate=2",
            r#"unknown key "intermediate": did you mean "intermediates"?"#,
        ),
        (
            "secp256r1/rsa-2048/intermediates=4",
            r#"intermediates="4" is not possible: use 0 to 3"#,
        ),
        (
            "secp256r1/rsa-2048/names=0",
            r#"names="0" is not possible: use 1 to 100"#,
        ),
        (
            "secp256r1/rsa-2048/leaf_without=crl+cps",
            r#"leaf_without="crl+cps" is not possible: use one of policies, aia, crl"#,
        ),
        (
            "secp256r1/rsa-2048/leaf_without=policies+crl+policies",
            r#"leaf_without="policies+crl+policies" is not possible: name policies once"#,
        ),
        (
            "secp256r1/rsa-2048/intermediates=2/delivery=mtc-landmark",
            "has no place for intermediates: leave it out",
        ),
        (
            "secp256r1/rsa-2048/intermediates=0/delivery=mtc-standalone/hello=nothing",
            "has no place for intermediates: leave it out",
        ),
        (
            "secp256r1/rsa-2048:9000B/padding=last/delivery=elide",
            "padding=last makes larger what is left out, so the size would be lost: leave it out",
        ),
        (
            "secp256r1/rsa-2048/intermediates=2/intermediates=2",
            "intermediates= is given twice",
        ),
        (
            "secp256r1/rsa-2048/root=send",
            r#"root="send" is not possible: did you mean "sent"?"#,
        ),
        (
            "secp256r1/rsa-2048/root=sent/x",
            r#"root="sent/x" is not possible"#,
        ),
        (
            "secp256r1/rsa-2048/padding=first",
            r#"padding="first" is not possible: "#,
        ),
        (
            "secp256r1/rsa-2048/scts=4",
            r#"scts="4" is not possible: use 0 to 3"#,
        ),
        (
            "secp256r1/rsa-2048/sct_algorithm=ml-dsa-43",
            r#"sct_algorithm="ml-dsa-43" is not possible: did you mean "ml-dsa-4"#,
        ),
        (
            "secp256r1/rsa-2048+ecdsa-p256+ml-dsa-44/intermediates=0",
            "without intermediates the root issues",
        ),
        (
            "secp256r1/rsa-2048+rsa-2048+rsa-2048+rsa-2048",
            r#"unknown chain "rsa-2048+rsa-2048""#,
        ),
        (
            "secp256r1/c.pem/scts=2",
            r#"scts= is for chains that are made, and "c.pem" is sent as it is"#,
        ),
        (
            "secp256r1/rsa-2048/record_size=0",
            "use 1 to 16384 bytes, or auto",
        ),
        (
            "secp256r1/rsa-2048/record_size=16385",
            "use 1 to 16384 bytes, or auto",
        ),
        (
            "secp256r1/rsa-2048/key=k.pem",
            "key= is for a chain in a PEM file, and rsa-2048 is made",
        ),
        (
            "secp256r1/a.example:443/root=sent",
            r#"root= is for chains that are made, and "a.example:443" is sent as it is"#,
        ),
        (
            "secp256r1/a.example",
            r#"unknown chain "a.example": for a server, write "a.example:443""#,
        ),
        (
            "secp256r1/rsa-2048/mutual=a.example:443",
            "a server shows no client's chain",
        ),
        (
            "secp256r1/c.pem/key=",
            r#"key="" is not possible: name a PEM file"#,
        ),
        (
            "secp256r1/rsa-2048/stack=s2n",
            r#"stack="s2n" is not possible: use one of openssl, s2n-tls, rustls"#,
        ),
        (
            "secp256r1/rsa-2048/client_stack=boring",
            r#"client_stack="boring" is not possible: use one of openssl, s2n-tls, rustls"#,
        ),
        (
            "secp256r1/rsa-2048/key_share=x25519+p256",
            r#"unknown group "p256": did you mean "secp256r1"?"#,
        ),
        (
            "secp256r1/rsa-2048/mutual=rsa2048",
            r#"unknown chain "rsa2048": did you mean "rsa-2048"?"#,
        ),
        ("secp256r1/rsa-2048/mutual=rsa-2048:100B", "100B"),
        (
            "secp256r1/rsa-2048/client_intermediates=2",
            "client_intermediates= is for a client that proves itself: add mutual=CHAIN",
        ),
        (
            "secp256r1/rsa-2048/mutual=c.pem/client_intermediates=2",
            r#"client_intermediates= is for chains that are made, and "c.pem" is sent as it is"#,
        ),
        (
            "secp256r1/rsa-2048/mutual=rsa-2048/client_key=k.pem",
            "client_key= is for a chain in a PEM file, and rsa-2048 is made",
        ),
        (
            "secp256r1/rsa-2048/resume=0-rtt",
            r#"resume="0-rtt" is not possible: did you mean "0rtt"?"#,
        ),
        (
            "secp256r1/rsa-2048/key_share=x25519/resume=0rtt",
            "a HelloRetryRequest ends early data: add secp256r1 to key_share=",
        ),
        (
            "secp256r1/rsa-2048/tickets=11",
            r#"tickets="11" is not possible: use 0 to 10"#,
        ),
        (
            "secp256r1/rsa-2048/max_cert_list=4096",
            r#"missing unit in size "4096": did you mean "4096B"?"#,
        ),
        (
            "secp256r1/rsa-2048/flush=own",
            r#"flush="own" is not possible: use one of whole, native"#,
        ),
        (
            "secp256r1/rsa-2048/client_hello_split=0B",
            r#"client_hello_split="0B" is not possible: use 1B to 65535B"#,
        ),
        (
            "secp256r1/rsa-2048/delivery=dns",
            r#"delivery="dns" is not possible: use one of full, pqtls-ad, pqtls-ad-raw-key, pqtls-ad-carrier"#,
        ),
        (
            "secp256r1/rsa-2048/grace=1ms",
            "grace= is for certificates that come through DNS: add delivery=pqtls-ad",
        ),
        (
            "secp256r1/rsa-2048/delivery=full/from=root",
            "from= is for certificates that come through DNS",
        ),
        (
            "secp256r1/rsa-2048/delivery=pqtls-ad/from=leaf",
            r#"from="leaf" is not possible: use one of root, intermediate, end-entity"#,
        ),
        (
            "secp256r1/rsa-2048/delivery=pqtls-ad/from=end-entity",
            "with from=end-entity, use delivery=pqtls-ad-raw-key",
        ),
        (
            "secp256r1/rsa-2048/delivery=pqtls-ad-raw-key/from=root",
            "leave from= out, or use delivery=pqtls-ad",
        ),
        (
            "secp256r1/rsa-2048/delivery=pqtls-ad/dns=warm",
            r#"dns="warm" is not possible"#,
        ),
        (
            "secp256r1/rsa-2048/delivery=pqtls-ad/resolver_rtt=6s",
            r#"resolver_rtt="6s" is not possible: use 0ms to 5s"#,
        ),
        (
            "secp256r1/rsa-2048/delivery=pqtls-ad/resume=ticket",
            "a resumed session has no certificates that DNS could deliver",
        ),
        (
            "secp256r1/fn-dsa-256",
            r#"unknown chain "fn-dsa-256": did you mean "fn-dsa-512"?"#,
        ),
    ] {
        let problem = problem(text);
        assert!(problem.starts_with(&format!("arm {text:?}: ")), "{problem}");
        assert!(problem.contains(expected), "{problem}");
    }
}

/// What a chain has besides its end-entity, where a client gets that.
#[test]
fn what_the_wire_has_is_not_refused() {
    for text in [
        "x25519/rsa-2048/intermediates=2/delivery=mtc-landmark/hello=empty",
        "x25519/rsa-2048:9000B/padding=last/delivery=elide/client=stale",
        "x25519/rsa-2048/padding=last/delivery=elide",
        "x25519/rsa-2048:9000B/delivery=elide",
    ] {
        arm(text);
    }
}

/// Each way that a delivery says it is negotiated is one that an arm can ask for, and each name is among them.
#[test]
fn deliveries_tell_how_they_are_negotiated() {
    let ways = Delivery::ways();
    for (delivery, words) in &ways {
        let (keys, _) = words.split_once(", ").unwrap();
        let arm = arm(&format!("x25519/ml-dsa-44/{keys}"));
        assert_eq!(arm.delivery, *delivery, "{words}");
    }
    let told = |start: &str| {
        let ways = ways.iter().map(|(_, words)| words);
        ways.filter(|words| words.starts_with(start)).count()
    };
    assert_eq!(told("delivery=mtc-landmark/hello="), Hello::ALL.len());
    assert_eq!(told("delivery=mtc-standalone/hello="), Hello::ALL.len());
    assert_eq!(told("delivery=elide/signal="), 2);
    for name in ["compressed", "abridged", "pqtls-ad", "pqtls-ad-carrier"] {
        assert_eq!(told(&format!("delivery={name}, by ")), 1, "{name}");
    }
}

#[test]
fn every_key_of_a_handshake() {
    let arm = arm(
        "X25519MLKEM768/ml-dsa-65/stack=rustls/client_stack=openssl/key_share=x25519+X25519MLKEM768/\
         mutual=ml-dsa-44+ml-dsa-65:20000B/client_intermediates=2/resume=0rtt/tickets=2/\
         max_cert_list=64KiB/flush=native/client_hello_split=100B",
    );
    assert_eq!(arm.server_stack, StackName::Rustls);
    assert_eq!(arm.client_stack, StackName::OpenSsl);
    assert_eq!(arm.key_shares, [Group::X25519, Group::X25519MlKem768]);
    let client = ChainSpec {
        role: ChainRole::Client,
        ca: KeyAlgorithm::MlDsa65,
        root_key: KeyAlgorithm::MlDsa65,
        intermediates: 2,
        certificate_bytes: Some(20_000),
        ..ChainSpec::new(KeyAlgorithm::MlDsa44)
    };
    assert_eq!(arm.client_chain, Some(ArmChain::Made(client)));
    assert_eq!(arm.resumption, Resumption::EarlyData);
    assert_eq!(arm.tickets, 2);
    assert_eq!(arm.max_cert_list, Some(64 << 10));
    assert_eq!(arm.flush, Flush::Native);
    assert_eq!(arm.client_hello_split, Some(100));
}

#[test]
fn one_stack_is_both_sides_unless_the_client_has_its_own() {
    let stacks = |text| {
        let arm = arm(text);
        (arm.client_stack, arm.server_stack)
    };
    use StackName::{OpenSsl, Rustls, S2nTls};
    assert_eq!(stacks("x25519/rsa-2048"), (OpenSsl, OpenSsl));
    assert_eq!(stacks("x25519/rsa-2048/stack=s2n-tls"), (S2nTls, S2nTls));
    assert_eq!(
        stacks("x25519/rsa-2048/client_stack=rustls"),
        (Rustls, OpenSsl)
    );
}

#[test]
fn a_clients_chain_can_be_a_file() {
    let arm = arm("x25519/rsa-2048/mutual=./c/chain.pem/client_key=k/key.pem/client_ca=ca.pem");
    let files = PemFiles {
        key: Some("k/key.pem".into()),
        ca: Some("ca.pem".into()),
        ..PemFiles::new("./c/chain.pem")
    };
    assert_eq!(arm.client_chain, Some(ArmChain::Pem(files)));
    assert_eq!(
        arm.chain,
        ArmChain::Made(ChainSpec::new(KeyAlgorithm::Rsa2048))
    );
}

/// What an arm with a chain of this project can say, of which some go together.
fn keys() -> impl Strategy<Value = Vec<String>> {
    const ALTERNATIVES: [&[&str]; 16] = [
        &["scts=2", "scts=3/sct_algorithm=ml-dsa-44"],
        &["names=1", "names=100"],
        &["leaf_without=crl+policies", "leaf_without=aia"],
        &["root=sent", "root=omitted"],
        &["padding=last", "padding=end-entity"],
        &["record_size=auto", "record_size=1400"],
        &[
            "stack=rustls",
            "stack=s2n-tls/client_stack=openssl",
            "client_stack=rustls",
        ],
        &[
            "key_share=X25519MLKEM768+x25519",
            "key_share=X25519MLKEM768",
        ],
        &[
            "mutual=ml-dsa-65:20000B/client_intermediates=2",
            "mutual=./a1=b/c.pem/client_key=d/e-2=f/client_ca=../c.pem/client_root=sent",
        ],
        &[
            "resume=no",
            "resume=50%/early_data=12.5%",
            "early_data=3%/resume=0.25%",
        ],
        &["tickets=2", "tickets=0"],
        &["max_cert_list=64KiB", "max_cert_list=1000000B"],
        &["flush=native", "flush=whole"],
        &["client_hello_split=1KiB", "client_hello_split=100B"],
        &["intermediates=1", "delivery=full"],
        &["server=lastbyte", "server=nginx"],
    ];
    const DELIVERIES: [&str; 12] = [
        "",
        "delivery=elide/client=stale",
        "signal=trust-anchors/fallback=short/delivery=elide",
        "delivery=abridged/abridged_list=./a/b-3=c.pem",
        "delivery=abridged/client_abridged_list=/d/e.pem",
        "delivery=compressed/compression=zlib+brotli/client_compression=zlib",
        "delivery=compressed",
        "delivery=pqtls-ad/from=intermediate/dns=cold/resolver_rtt=1500us/grace=5ms",
        "delivery=pqtls-ad-raw-key/grace=0.25ms",
        "delivery=elide",
        "dns=absent/delivery=pqtls-ad-carrier",
        "delivery=full",
    ];
    let some = ALTERNATIVES.map(|these| {
        let these = these.iter().map(|said| (*said).to_owned());
        prop::option::of(prop::sample::select(these.collect::<Vec<_>>()))
    });
    let delivery = prop::sample::select(&DELIVERIES[..]);
    let all = (some.to_vec(), delivery).prop_map(|(some, delivery)| {
        let mut said: Vec<String> = some.into_iter().flatten().collect();
        if !delivery.is_empty() {
            said.retain(|said| !said.starts_with("delivery="));
            said.push(delivery.to_owned());
        }
        said
    });
    all.prop_shuffle()
}

/// What is said of an arm, written and read again, key by key.
fn check_round_trip(arm: &Arm) {
    let read = arm.label.parse::<Arm>().unwrap();
    let named = Arm {
        name: arm.name.clone(),
        ..read
    };
    assert_eq!(&named, arm);
    for key in ArmKey::all().filter(|key| arm.says(key.name())) {
        if let Some(value) = key.get(arm) {
            // As it is written by itself: the same in other words, at the end.
            let again = arm.with(key.name(), &value).unwrap();
            let same = Arm {
                name: arm.name.clone(),
                label: arm.label.clone(),
                settings: arm.settings.clone(),
                ..again
            };
            assert_eq!(&same, arm, "{arm}: {key:?}={value}");
        }
        // Where it is no arm without the key, others are of it.
        if let Ok(without) = arm.saying(&[key.name()], &[]) {
            assert!(!without.says(key.name()));
            assert_eq!(without, without.label.parse::<Arm>().unwrap());
        }
    }
}

/// Labels that stand somewhere are the same when they are written again.
#[test]
fn every_label_of_studies_and_documents_is_an_arm_of_its_own_words() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut read = 0;
    for folder in ["studies", "docs", "."] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_text = path
                .extension()
                .is_some_and(|end| end == "toml" || end == "md");
            let Some(text) = is_text.then(|| std::fs::read_to_string(&path).unwrap()) else {
                continue;
            };
            let words = text.split(|c: char| c.is_whitespace() || "\"'`|(),;".contains(c));
            for word in words.filter(|word| word.contains('/')) {
                let word = word.trim_end_matches(['.', ':']);
                let Ok(arm) = word.parse::<Arm>() else {
                    continue;
                };
                assert!(
                    arm.label.eq_ignore_ascii_case(word),
                    "{}: {word}",
                    path.display()
                );
                check_round_trip(&arm);
                read += 1;
            }
        }
    }
    assert!(read > 200, "{read}");
}

/// What readers are told that an arm has without a key is what it has.
#[test]
fn every_key_tells_what_is_usual() {
    let deliveries = Delivery::ways()
        .into_iter()
        .map(|(delivery, _)| delivery.name());
    let arms: Vec<Arm> = deliveries
        .map(|name| arm(&format!("x25519/ml-dsa-44/delivery={name}")))
        .chain([arm("x25519/ml-dsa-44"), arm("x25519/./chain.pem")])
        .collect();
    for key in ArmKey::all().filter(|key| !key.is_of_client_chain()) {
        assert!(!key.takes().is_empty() && !key.doc().is_empty(), "{key:?}");
        let mut known = arms.iter().filter(|arm| !arm.says(key.name()));
        let usual = match key.usual() {
            "" => known
                .find_map(|arm| key.get(arm))
                .map_or(String::new(), |value| match key.name() {
                    // What they have is in words.
                    "client_compression" => value,
                    _ => panic!("{key:?}={value}"),
                }),
            usual => {
                let told = known.find_map(|arm| key.get(arm)).unwrap();
                let times = [usual, &told].map(lastbyte_link::parse_duration);
                assert!(
                    told == usual || times[0].is_ok() && times[0] == times[1],
                    "{key:?}: {told}"
                );
                told
            }
        };
        assert!(usual.len() < 20);
    }
}

/// The page that tells what keys mean has each of them.
#[test]
fn arms_md_has_every_key() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/arms.md");
    let text = std::fs::read_to_string(path).unwrap();
    for key in ArmKey::all().filter(|key| !key.is_of_client_chain()) {
        assert!(text.contains(&format!("`{}=", key.name())), "{key:?}");
    }
}

/// With a key said otherwise, an arm is as if that had been written.
#[test]
fn keys_are_said_otherwise() {
    for (label, key, value, other) in [
        (
            "x25519/rsa-2048/stack=rustls",
            "client_stack",
            "openssl",
            "x25519/rsa-2048/stack=rustls/client_stack=openssl",
        ),
        (
            "x25519/rsa-2048/client_stack=openssl",
            "stack",
            "rustls",
            "x25519/rsa-2048/client_stack=openssl/stack=rustls",
        ),
        (
            "x25519/rsa-2048",
            "stack",
            "rustls",
            "x25519/rsa-2048/stack=rustls",
        ),
        (
            "x25519/rsa-2048/delivery=elide/client=stale",
            "delivery",
            "mtc-landmark",
            "x25519/rsa-2048/client=stale/delivery=mtc-landmark",
        ),
        (
            "x25519/rsa-2048:16KB/mutual=rsa-2048/client_scts=1",
            "mutual",
            "ml-dsa-44",
            "x25519/rsa-2048:16KB/client_scts=1/mutual=ml-dsa-44",
        ),
        (
            "x25519/rsa-2048/resume=50%/early_data=5%",
            "resume",
            "60%",
            "x25519/rsa-2048/early_data=5%/resume=60%",
        ),
    ] {
        assert_eq!(arm(label).with(key, value).unwrap(), arm(other), "{label}");
    }
    let refused =
        |label: &str, key: &str, value: &str| arm(label).with(key, value).unwrap_err().to_string();
    assert_eq!(
        refused(
            "x25519/rsa-2048/delivery=elide/signal=tls-flags",
            "delivery",
            "compressed"
        ),
        "signal= is for intermediates that a client has: add delivery=elide"
    );
    assert_eq!(
        refused("x25519/rsa-2048", "nothing", "1"),
        problem("x25519/rsa-2048/nothing=1")
            .split_once(": ")
            .unwrap()
            .1
    );
    // Or its label would be read otherwise.
    for path in ["a/ca=b.pem", "a/b=c.pem"] {
        let problem = refused("x25519/c.pem", "key", path);
        assert!(
            problem.contains("which would be read as a key"),
            "{problem}"
        );
        let chain = ArmChain::Pem(PemFiles::new(path));
        assert!(Arm::of(Group::X25519, chain).is_err());
    }
    let without = arm("x25519/rsa-2048/mutual=rsa-2048/client_scts=1").saying(&["mutual"], &[]);
    assert_eq!(without.unwrap_err(), ArmProblem::NotMutual("client_scts"));
}

/// What an arm has otherwise than it was written stays so: where a study's files are.
#[test]
fn what_an_arm_has_stays_with_it() {
    let mut settled = arm("x25519/c.pem/ca=a/b.pem/root=sent");
    let ArmChain::Pem(files) = &mut settled.chain else {
        panic!()
    };
    files.chain = "/study/c.pem".into();
    files.ca = Some("/study/a/b.pem".into());
    let with = settled.with("tickets", "2").unwrap();
    assert_eq!(with.chain, settled.chain);
    assert_eq!(with.label, "x25519/c.pem/ca=a/b.pem/root=sent/tickets=2");
}

/// Neither the size without the key nor the key without the size has to be possible.
#[test]
fn an_arm_is_made_of_all_that_it_says() {
    let written = arm("x25519/slh-dsa-sha2-192f:40000B/intermediates=0");
    let ArmChain::Made(spec) = arm("x25519/slh-dsa-sha2-192f").chain else {
        panic!()
    };
    let chain = ArmChain::Made(ChainSpec {
        certificate_bytes: Some(40_000),
        ..spec
    });
    let said = Settings::of_keys(&[("intermediates", "0")]).unwrap();
    assert!(Arm::of(Group::X25519, chain.clone()).is_err());
    assert_eq!(
        Arm::of_settings(Group::X25519, chain, &said).unwrap(),
        written
    );
    assert_eq!(
        Arm::of_settings(Group::X25519, written.chain.clone(), &said).unwrap(),
        written
    );
}

#[test]
fn an_arm_is_padded_as_if_that_were_written() {
    let padded = arm("x25519/ML-DSA-44+rsa-2048/intermediates=2")
        .padded(20_000)
        .unwrap();
    let written = arm("x25519/ml-dsa-44+rsa-2048:20000B/intermediates=2");
    assert_eq!(
        padded.name,
        "x25519/ml-dsa-44+rsa-2048/intermediates=2 20000B"
    );
    let named = Arm {
        name: padded.name.clone(),
        ..written
    };
    assert_eq!(padded, named);
    assert_eq!(named.padded(30_000), None);
    assert_eq!(arm("x25519/ml-dsa-44").padded(10), None);
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(
        group in prop::sample::select(&Group::ALL[..]),
        leaf in prop::sample::select(&KeyAlgorithm::ALL[..]),
        ca in prop::sample::select(&KeyAlgorithm::ALL[..]),
        root_key in prop::sample::select(&KeyAlgorithm::ALL[..]),
        at in prop::sample::select(vec![PaddedCertificate::EndEntity, PaddedCertificate::Last]),
        scts in 0..=1_u8,
        sct_algorithm in prop::sample::select(&KeyAlgorithm::ALL[..]),
        intermediates in 0..=ChainSpec::MAX_INTERMEDIATES,
        (names, left) in (1..=ChainSpec::MAX_NAMES, 0..=3_usize),
        root in prop::sample::select(vec![RootDelivery::Omitted, RootDelivery::Sent]),
        padding in prop::option::of(0..100_000_usize),
        bytes in prop::option::of(1..=16384_u16),
    ) {
        let mut spec = ChainSpec {
            role: ChainRole::Server,
            leaf,
            ca,
            root_key: if intermediates == 0 { ca } else { root_key },
            intermediates,
            root,
            certificate_bytes: None,
            padding: at,
            scts,
            sct_algorithm,
            names,
            leaf_without: LeafExtension::ALL.into_iter().take(left).collect(),
            origin: 0,
        };
        spec.certificate_bytes = padding.map(|padding| spec.unpadded_bytes() + padding);
        let record_size = bytes.map_or("auto".into(), |bytes| bytes.to_string());
        let label = format!("{group}/{spec}/record_size={record_size}");
        prop_assert_eq!(
            label.parse::<Arm>().unwrap(),
            Arm {
                record_size: bytes.map_or(RecordSize::FirstSegment, RecordSize::Fixed),
                ..usual(&label, group, ArmChain::Made(spec.clone()))
            }
        );
        // Made of the value, it says the same, if not in the same order.
        let made = Arm::of(group, ArmChain::Made(spec)).unwrap();
        let made = made.with("record_size", &record_size).unwrap();
        let read = made.label.parse::<Arm>().unwrap();
        prop_assert_eq!(&read, &made);
        prop_assert_eq!(read.chain, label.parse::<Arm>().unwrap().chain);
    }

    /// Any arm, written and read, is the same; a key that is said as it is stays as it is; and one that is no longer said is as
    /// usual, or the arm needs it.
    #[test]
    fn an_arm_is_what_its_label_says(said in keys()) {
        let text = [vec!["X25519MLKEM768/ml-dsa-44".to_owned()], said].concat().join("/");
        check_round_trip(&text.parse().unwrap());
    }

    #[test]
    fn any_text_is_an_arm_or_one_line(text in "\\PC*|(x25519|secp256r1)/[a-z0-9:=+./_\n-]{0,30}") {
        match text.parse::<Arm>() {
            Ok(arm) => prop_assert_eq!(arm.to_string(), text),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }

    #[test]
    fn any_text_is_congestion_or_one_line(text in "\\PC*|[bcuren]{0,5}") {
        match text.parse::<Congestion>() {
            Ok(congestion) => prop_assert_eq!(congestion.to_string(), text),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }
}

#[test]
fn congestion_is_named_as_the_kernel_does() {
    for congestion in Congestion::ALL {
        assert_eq!(congestion.to_string().parse(), Ok(congestion));
    }
    assert_eq!(
        "cubc".parse::<Congestion>().unwrap_err().to_string(),
        r#"unknown congestion control "cubc": did you mean "cubic"?"#
    );
}

#[test]
fn settings_have_names() {
    fn assert_named<T>(all: impl IntoIterator<Item = T>, names: &str)
    where
        T: Debug + Display + FromStr<Err = UnknownName> + PartialEq,
    {
        let all: Vec<_> = all.into_iter().collect();
        let named: Vec<_> = all.iter().map(T::to_string).collect();
        assert_eq!(named.join(" "), names);
        for (setting, name) in all.into_iter().zip(named) {
            assert_eq!(name.parse(), Ok(setting));
        }
    }
    assert_named(CpuTime::ALL, "none beside calibrated laptop phone");
    assert_named(Emulation::ALL, "netem link");
    assert_named(QuicIn::ALL, "model guest");
    assert_named(EngineChoice::ALL, "auto live virtual");
    assert_named(Leads::ALL, "later sooner");
    assert_named(Gso::ALL, "off on");
    assert_named(
        Metric::ALL,
        "connect handshake ttfb ttlb tls_handshake dns_record fcp lcp load speed_index",
    );
    for size in MessageSize::all() {
        assert_eq!(size.name().parse(), Ok(size));
    }
    assert_named(EndEntity::ALL, "pqtls-ad pqtls-ad-raw-key pqtls-ad-carrier");
    assert_named(DnsCache::ALL, "cached cold absent broken foreign");
    assert_named(Beside::ALL, "arithmetic rules-of-thumb");
    let parameters = "link rtt rate trace loss jitter jitter_distribution jitter_order queue qdisc cross_traffic cross_lead at_once preset gso mtu timestamps ecn buffers receive_buffer tso \
                      writes congestion client_initcwnd initcwnd quic_datagram quic_client_datagram quic_initial_rtt quic_ack_delay quic_mtu_discovery page origins cache cpu_slowdown client_cpu traffic requests think upload data";
    assert_eq!(Parameter::ALL.map(Parameter::name).join(" "), parameters);
    assert_named(Plot::ALL, "increase percentiles dots cdf table");
    assert_named(Preset::ALL, "network published-2024");
}

#[test]
fn percentiles_have_at_most_one_decimal() {
    for per_mille in 1..=999_u16 {
        let text = format!("p{}.{}", per_mille / 10, per_mille % 10);
        let percentile: Percentile = text.parse().unwrap();
        assert_eq!(percentile.per_mille(), per_mille);
        assert_eq!(percentile.to_string(), text.trim_end_matches(".0"));
        assert_eq!(percentile.to_string().parse(), Ok(percentile));
    }
    assert_eq!("p75".parse(), Ok(Percentile::new(75).unwrap()));
    for text in [
        "", "p", "75", "p0", "p0.0", "p100", "p99.95", "p.5", "p5.", "p+5", "p-1", "p5.-1", "p1e1",
        "p65586", "p6558.6", "pp5",
    ] {
        assert_eq!(
            text.parse::<Percentile>().unwrap_err().to_string(),
            format!("{text:?} is no percentile: use p0.1 to p99.9, such as p75")
        );
    }
}

fn cell(data: u64, direction: &Direction) -> Cell {
    Cell {
        link: Link::symmetric(Duration::from_millis(35), direction.clone()),
        data: Bytes(data),
        ..Cell::default()
    }
}

#[test]
fn a_cell_tells_what_is_unusual() {
    let gigabit = Direction {
        rate: Some("1gbit".parse().unwrap()),
        ..Direction::default()
    };
    let mut cell = cell(204_800, &gigabit);
    assert_eq!(
        cell.to_string(),
        "RTT 35ms, 1gbit, loss 0%, initcwnd 10, 200KiB"
    );

    cell.link.forward.delay = Duration::from_millis(5);
    cell.link.backward = Direction {
        loss: "1%".parse().unwrap(),
        jitter: Duration::from_millis(2),
        rate: None,
        ..cell.link.backward
    };
    cell.congestion = Congestion::Bbr;
    cell.client_initcwnd = 20;
    assert_eq!(
        cell.to_string(),
        "RTT 22.5ms (5ms up and 17.5ms down), 1gbit up and no rate limit down, loss 0% up and 1% down, \
         jitter 0s up and 2ms uniform down, bbr, client initcwnd 20, initcwnd 10, 200KiB"
    );

    let bursts = Direction {
        loss: "gemodel:1%/10%".parse().unwrap(),
        jitter: Duration::from_millis(2),
        distribution: Distribution::Pareto,
        ..gigabit
    };
    cell = Cell {
        link: Link::symmetric(Duration::from_millis(35), bursts),
        gso: Gso::On,
        preset: Preset::Published2024,
        hosts: Hosts::of(Preset::Published2024),
        ..Cell::default()
    };
    assert_eq!(
        cell.to_string(),
        "RTT 35ms, 1gbit, loss gemodel:1%/10%, jitter 2ms pareto, \
         preset published-2024, initcwnd 10, 0B"
    );
    cell.hosts = Hosts {
        timestamps: Timestamps::Off,
        ..Hosts::default()
    };
    assert_eq!(
        cell.to_string(),
        "RTT 35ms, 1gbit, loss gemodel:1%/10%, jitter 2ms pareto, \
         preset published-2024, timestamps off, buffers auto, tso on, writes whole, initcwnd 10, 0B"
    );
}

#[test]
fn cells_are_told_apart_by_what_differs() {
    let direction = &Direction::default();
    let lossy = &Direction {
        loss: "5%".parse().unwrap(),
        ..direction.clone()
    };
    assert_eq!(distinctions(&[]), Vec::<String>::new());
    assert_eq!(distinctions(&[cell(0, direction)]), [""]);
    assert_eq!(
        distinctions(&[cell(0, direction), cell(1024, direction)]),
        ["0B", "1KiB"]
    );
    assert_eq!(
        distinctions(&[cell(0, direction), cell(0, lossy), cell(1024, lossy)]),
        ["loss 0%, 0B", "loss 5%, 0B", "loss 5%, 1KiB"]
    );
}

#[test]
fn names_of_links_tell_them_apart() {
    let lossy = &Direction {
        loss: "5%".parse().unwrap(),
        ..Direction::default()
    };
    let on = |name: &str, direction: &Direction| Cell {
        link_name: Some(name.to_owned()),
        ..cell(0, direction)
    };
    let direction = &Direction::default();
    let [near, far] = [on("near", direction), on("far", lossy)];
    assert!(far.to_string().starts_with("far, RTT "), "{far}");
    assert_eq!(distinctions(&[near.clone(), far.clone()]), ["near", "far"]);
    // Not where a link has more than one value, or no name.
    assert_eq!(
        distinctions(&[near.clone(), on("far", direction), far.clone()]),
        ["near, loss 0%", "far, loss 0%", "far, loss 5%"]
    );
    assert_eq!(
        distinctions(&[far, cell(0, direction)]),
        ["far, loss 5%", "loss 0%"]
    );
}

#[test]
fn certificates_come_through_dns_as_an_arm_says() {
    let delivery = |text: &str| {
        let arm: Arm = format!("MLKEM768/ml-dsa-65/{text}").parse().unwrap();
        arm.delivery
    };
    assert_eq!(delivery("delivery=full"), Delivery::Full);
    let usual = PqtlsAd {
        end_entity: EndEntity::Sent,
        from: None,
        cache: DnsCache::Cached,
        resolver_rtt: Duration::ZERO,
        grace: Duration::ZERO,
    };
    assert_eq!(
        delivery("delivery=pqtls-ad"),
        Delivery::PqtlsAd(usual.clone())
    );
    // Keys may stand before what they are of.
    let all = "dns=cold/grace=5ms/delivery=pqtls-ad/from=root/resolver_rtt=1ms";
    assert_eq!(
        delivery(all),
        Delivery::PqtlsAd(PqtlsAd {
            from: Some(Part::Root),
            cache: DnsCache::Cold,
            resolver_rtt: Duration::from_millis(1),
            grace: Duration::from_millis(5),
            ..usual.clone()
        })
    );
    assert_eq!(
        delivery("delivery=pqtls-ad-raw-key/from=end-entity"),
        Delivery::PqtlsAd(PqtlsAd {
            end_entity: EndEntity::RawKey,
            from: Some(Part::EndEntity),
            ..usual
        })
    );
}

#[test]
fn a_jitter_wider_than_the_delay_is_told() {
    let cell = |rtt: u64, jitter: u64, distribution, rate| {
        let direction = lastbyte_link::Direction {
            jitter: Duration::from_millis(jitter),
            distribution,
            rate,
            ..lastbyte_link::Direction::default()
        };
        let link = lastbyte_link::Link::symmetric(Duration::from_millis(rtt), direction);
        Cell {
            link,
            ..Cell::default()
        }
    };
    let gigabit = lastbyte_link::Rate::from_bits_per_second(1_000_000_000);
    let note = |rtt, jitter, distribution| cell(rtt, jitter, distribution, gigabit).jitter_note();
    use lastbyte_link::Distribution::{Normal, Pareto, Uniform};
    assert_eq!(note(35, 0, Normal), None);
    assert_eq!(note(35, 17, Uniform), None);
    // A tail of 0.02 %.
    assert_eq!(note(35, 5, Normal), None);
    assert_eq!(note(35, 20, Pareto), None);
    let note = |rtt, jitter, distribution| cell(rtt, jitter, distribution, None).jitter_note();
    assert_eq!(
        note(35, 50, Normal).unwrap(),
        "a jitter of 50ms is wider than the delay of 17.5ms one way: 36 % of packets are not delayed at all, packets overtake each \
         other (with a --rate, or --jitter-order kept, they would not), and a round trip takes 59.8 ms in the mean, not 35ms; lower --jitter to 7ms"
    );
    // What pareto leaves delayed, and uniform does not.
    let told = note(35, 26, Uniform).unwrap();
    let ends = "; lower --jitter to 17ms, or take --jitter-distribution pareto";
    assert!(told.ends_with(ends), "{told}");
    let told = note(35, 50, Uniform).unwrap();
    assert!(
        told.contains(": 32 % of") && told.ends_with("; lower --jitter to 17ms"),
        "{told}"
    );
    assert!(note(35, 50, Pareto).is_some());
    assert!(note(1, 50, Normal).unwrap().ends_with("; lower --jitter"));
    let told = cell(35, 50, Uniform, gigabit).jitter_note().unwrap();
    assert!(!told.contains("overtake"), "{told}");
    assert_eq!(note(35, 0, Normal), None);
    assert_eq!(
        note(35, 5, Normal).unwrap(),
        "with a jitter of 5ms and no rate, packets overtake each other, as in netem, which TCP and QUIC take for losses: \
         --jitter-order kept keeps their order, as does a --rate"
    );
    let mut kept = cell(35, 5, Normal, None);
    let order = Parameter::ALL
        .into_iter()
        .find(|one| one.name() == "jitter_order");
    let set = order.unwrap().set(&mut kept, "kept", &StudyFolder::HERE);
    assert_eq!((set.is_ok(), kept.jitter_note()), (true, None));
}
