//! The test vectors in `vectors/` are what this crate makes of them. With `UPDATE_VECTORS=1` they are written anew, and
//! keep what nothing follows from: certificates, their key, and the hellos of a handshake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lastbyte_pki::{KeyAlgorithm, test_chains};
use openssl::pkey::PKey;
use openssl::ssl::SslContextBuilder;
use openssl::x509::X509;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::fixtures::{self, NAME, Sender, anchors, connect_over, delivered, of_pki, shared, spec};
use crate::openssl::EndEntity;
use crate::record::{Assembly, Delivered, Fragment, RecordError, RecordType, owner, split};
use crate::server::{Chain, PublicChain};
use crate::validate::{Algorithms, Trust, validate};
use crate::{CertificateList, Digest, Part, extension};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/pqtls-ad.json");
const TYPES: [RecordType; 2] = [RecordType::DEFAULT, RecordType::Tlsa];

#[test]
fn the_vectors_are_what_the_code_says() {
    let kept = fs::read_to_string(FILE).ok();
    let inputs: Option<Value> = kept
        .as_deref()
        .map(|text| serde_json::from_str(text).unwrap());
    let inputs = inputs.unwrap_or_else(fresh);
    let text = format!("{:#}\n", derived(&inputs));
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        fs::create_dir_all(Path::new(FILE).parent().unwrap()).unwrap();
        fs::write(FILE, text).unwrap();
        return;
    }
    let hint = "cargo nextest run --release -p pqtlsad test_vectors:: with UPDATE_VECTORS=1 writes them anew";
    assert!(kept.as_deref() == Some(&text), "{FILE}: {hint}");
}

/// What is taken as it is.
fn fresh() -> Value {
    let pem = |chain: &lastbyte_pki::Chain| {
        let sent = chain.certificates().iter();
        json!({
            "certificates": sent.map(|one| hex::encode(one.to_der().unwrap())).collect::<Vec<_>>(),
            "key": hex::encode(chain.key().private_key_to_pkcs8().unwrap()),
            "anchor": hex::encode(chain.root().to_der().unwrap()),
        })
    };
    let own = fixtures::pki(&spec(KeyAlgorithm::EcdsaP256));
    let other = test_chains::for_name("other.example").unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    json!({
        "at_unix": now.unwrap().as_secs(),
        "chains": { "own": pem(&own), "other": pem(&other) },
    })
}

fn derived(inputs: &Value) -> Value {
    let chains = &inputs["chains"];
    let own = chain(&chains["own"]);
    let other = chain(&chains["other"]);
    json!({
        "name": NAME,
        "at_unix": inputs["at_unix"],
        "chains": chains,
        "lists": (1..=3).map(|count| list(&own, count)).collect::<Vec<_>>(),
        "fragments": fragments(),
        "invalid_records": invalid_records(&own),
        "invalid_sets": invalid_sets(&own),
        "validation": validation(inputs, &own, &other),
        "extension_data": extension_data(&own),
        "answers": answers(&own),
        "hellos": match inputs.get("hellos") {
            Some(hellos) => hellos.as_array().unwrap().iter().map(hello).collect(),
            None => hellos(&own, &certificate(&chains["own"]["anchor"])),
        },
    })
}

fn bytes(text: &Value) -> Vec<u8> {
    hex::decode(text.as_str().unwrap()).unwrap()
}

fn certificate(text: &Value) -> X509 {
    X509::from_der(&bytes(text)).unwrap()
}

fn chain(kept: &Value) -> Chain {
    let certificates = kept["certificates"].as_array().unwrap();
    let key = PKey::private_key_from_pkcs8(&bytes(&kept["key"])).unwrap();
    Chain::new(certificates.iter().map(certificate).collect(), key).unwrap()
}

/// What DNS holds of the topmost certificates, what hellos say of them, and what the server sends besides.
fn list(chain: &PublicChain, count: usize) -> Value {
    let list = chain.topmost(count).unwrap();
    let digest = list.digest();
    let part = chain.part(count);
    let records = TYPES.map(|record_type| {
        let fragments = split(part, &list).unwrap();
        let record = |fragment: &Fragment| {
            json!({
                "owner": owner(NAME, fragment.index),
                "rdata": hex::encode(fragment.encode(record_type)),
                "zone_file": fragment.to_text(record_type),
            })
        };
        json!({
            "type": record_type.number(),
            "records": fragments.iter().map(record).collect::<Vec<_>>(),
        })
    });
    let all = chain.certificates().len();
    let extension = [
        &extension::ExtensionType::DEFAULT.0.to_be_bytes()[..],
        &[0, 32],
        digest.as_bytes(),
    ];
    json!({
        "chain": "own",
        "lowest": part.name(),
        // Of the chain as the server would send it.
        "certificates": (all - count..all).rev().collect::<Vec<_>>(),
        "encoding": hex::encode(list.encode()),
        "digest": digest.to_string(),
        "records": records,
        "extension": hex::encode(extension.concat()),
        "server_sends": (0..all - count).collect::<Vec<_>>(),
        "server_proves": match part {
            Part::EndEntity => json!({
                "raw_public_key": hex::encode(chain.public_key().public_key_to_der().unwrap()),
            }),
            _ => json!("the key of the first that it sends"),
        },
    })
}

/// Lists of what is no certificate, byte `i` of number `j` being `i + j`: records are opaque.
fn fragments() -> Value {
    let of = |lengths: &[usize]| {
        let certificates = (0..).zip(lengths).map(|(j, length)| {
            let bytes = (0..*length).map(|i| (i + j) as u8);
            bytes.collect::<Vec<u8>>()
        });
        let list = CertificateList::new(certificates.collect()).unwrap();
        let fragments = split(Part::EndEntity, &list).unwrap();
        let record = |fragment: &Fragment| {
            let rdata = fragment.encode(RecordType::DEFAULT);
            json!({
                "owner": owner(NAME, fragment.index),
                "certificates": fragment.certificates.len(),
                "rdata_bytes": rdata.len(),
                "rdata_sha256": hex::encode(::openssl::sha::sha256(&rdata)),
            })
        };
        json!({
            "certificate_bytes": lengths,
            "digest": list.digest().to_string(),
            "records": fragments.iter().map(record).collect::<Vec<_>>(),
        })
    };
    let lists: [&[usize]; 5] = [
        &[1],
        &[300, 65_535, 65_536 - 1200],
        &[36_000, 36_000],
        &[20_000, 20_000, 20_000, 20_000],
        &[1000; 10],
    ];
    let fitting = lists.iter().filter(|lengths| {
        // One certificate is never split.
        lengths.iter().all(|length| *length < 64_000)
    });
    Value::Array(fitting.map(|lengths| of(lengths)).collect())
}

fn told(error: &RecordError) -> Value {
    Value::String(error.to_string())
}

/// What is no record, and why.
fn invalid_records(chain: &PublicChain) -> Value {
    let list = chain.topmost(2).unwrap();
    let good = split(Part::Intermediate, &list).unwrap()[0].encode(RecordType::DEFAULT);
    let changed = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        bad
    };
    let with_list = |list: &[u8]| [&good[..36], list].concat();
    let one_too_many: Vec<u8> = [0, 0, 1, 48].repeat(11);
    let cases = [
        ("nothing", RecordType::DEFAULT, vec![]),
        ("another version", RecordType::DEFAULT, changed(0, 2)),
        (
            "an unknown lowest certificate",
            RecordType::DEFAULT,
            changed(1, 0),
        ),
        (
            "an unknown lowest certificate",
            RecordType::DEFAULT,
            changed(1, 4),
        ),
        (
            "an index that is not below the count",
            RecordType::DEFAULT,
            changed(2, 1),
        ),
        ("no fragments at all", RecordType::DEFAULT, changed(3, 0)),
        ("too many fragments", RecordType::DEFAULT, changed(3, 11)),
        (
            "cut within the digest",
            RecordType::DEFAULT,
            good[..35].to_vec(),
        ),
        (
            "without a certificate",
            RecordType::DEFAULT,
            good[..36].to_vec(),
        ),
        (
            "an empty certificate",
            RecordType::DEFAULT,
            with_list(&[0, 0, 0]),
        ),
        (
            "cut within a length",
            RecordType::DEFAULT,
            with_list(&[0, 0]),
        ),
        (
            "cut within a certificate",
            RecordType::DEFAULT,
            good[..good.len() - 1].to_vec(),
        ),
        (
            "a byte more",
            RecordType::DEFAULT,
            [&good[..], &[0]].concat(),
        ),
        (
            "more than ten certificates",
            RecordType::DEFAULT,
            with_list(&one_too_many),
        ),
        (
            "TLSA of DANE",
            RecordType::Tlsa,
            [&[3, 1, 1][..], &[7; 32]].concat(),
        ),
        (
            "TLSA without what stands before it",
            RecordType::Tlsa,
            good.clone(),
        ),
    ];
    let invalid = |(what, record_type, rdata): (&str, RecordType, Vec<u8>)| {
        let error = Fragment::decode(record_type, &rdata).unwrap_err();
        json!({
            "what": what,
            "type": record_type.number(),
            "rdata": hex::encode(&rdata),
            "reason": told(&error),
        })
    };
    Value::Array(cases.into_iter().map(invalid).collect())
}

/// Records that are each fine, and no list together.
fn invalid_sets(chain: &PublicChain) -> Value {
    let [one, two] = [1, 2].map(|count| chain.topmost(count).unwrap());
    let fragment = |list: &CertificateList, part, index, count| Fragment {
        part,
        index,
        count,
        digest: list.digest(),
        certificates: list.certificates().to_vec(),
    };
    let part = Part::Intermediate;
    let many = (0..9u8).map(|number| {
        let list = CertificateList::new(vec![vec![48, number]]).unwrap();
        fragment(&list, Part::Root, 0, 1)
    });
    let sets = [
        ("one of two", vec![fragment(&two, part, 0, 2)]),
        (
            "another digest",
            vec![Fragment {
                digest: one.digest(),
                ..fragment(&two, part, 0, 1)
            }],
        ),
        (
            "two counts",
            vec![fragment(&two, part, 0, 2), fragment(&two, part, 1, 3)],
        ),
        (
            "two contents of one fragment",
            vec![
                fragment(&two, part, 0, 2),
                Fragment {
                    certificates: one.certificates().to_vec(),
                    ..fragment(&two, part, 0, 2)
                },
            ],
        ),
        (
            "two lowest certificates",
            vec![
                fragment(&two, part, 0, 2),
                fragment(&two, Part::EndEntity, 1, 2),
            ],
        ),
        ("more than eight lists", many.collect()),
    ];
    let invalid = |(what, fragments): (&str, Vec<Fragment>)| {
        let mut assembly = Assembly::default();
        let added = fragments
            .iter()
            .try_for_each(|one| assembly.add(one.clone()));
        let error = added.err().or_else(|| assembly.finish().remove(0).err());
        let record = |one: &Fragment| hex::encode(one.encode(RecordType::DEFAULT));
        json!({
            "what": what,
            "type": RecordType::DEFAULT.number(),
            "rdata": fragments.iter().map(record).collect::<Vec<_>>(),
            "reason": told(&error.unwrap()),
        })
    };
    Value::Array(sets.into_iter().map(invalid).collect())
}

/// Lists that are well formed: what a client of [`NAME`] makes of each.
fn validation(inputs: &Value, own: &Chain, other: &Chain) -> Value {
    let chains = &inputs["chains"];
    let at = inputs["at_unix"].as_u64().unwrap();
    let list = |certificates: &[&X509]| {
        let ders = certificates.iter().map(|one| one.to_der().unwrap());
        CertificateList::new(ders.collect()).unwrap()
    };
    let [end, middle, root] = own.certificates() else {
        panic!("three certificates");
    };
    let mut forged = own.topmost(2).unwrap().certificates().to_vec();
    *forged[1].last_mut().unwrap() ^= 1;
    let forged = CertificateList::new(forged).unwrap();
    let garbage = CertificateList::new(vec![b"no certificate".to_vec()]).unwrap();
    let other_end = other.end_entity().to_owned();
    let year = 366 * 86_400;
    let cases = [
        ("the root", Part::Root, list(&[root]), "own", at),
        (
            "down to the intermediate",
            Part::Intermediate,
            list(&[root, middle]),
            "own",
            at,
        ),
        (
            "the whole chain",
            Part::EndEntity,
            list(&[root, middle, end]),
            "own",
            at,
        ),
        (
            "without the root",
            Part::EndEntity,
            list(&[middle, end]),
            "own",
            at,
        ),
        (
            "an anchor of somebody else",
            Part::Intermediate,
            list(&[root, middle]),
            "other",
            at,
        ),
        (
            "another order",
            Part::EndEntity,
            list(&[root, end, middle]),
            "own",
            at,
        ),
        (
            "a certificate missing within",
            Part::EndEntity,
            list(&[root, end]),
            "own",
            at,
        ),
        (
            "an end-entity that is said to be none",
            Part::Intermediate,
            list(&[root, middle, end]),
            "own",
            at,
        ),
        (
            "no end-entity where one is said to be",
            Part::EndEntity,
            list(&[root, middle]),
            "own",
            at,
        ),
        (
            "more than the root it is said to be",
            Part::Root,
            list(&[root, middle]),
            "own",
            at,
        ),
        (
            "a signature that is forged",
            Part::Intermediate,
            forged,
            "own",
            at,
        ),
        ("what is no certificate", Part::Root, garbage, "own", at),
        (
            "years later",
            Part::EndEntity,
            list(&[root, middle, end]),
            "own",
            at + 20 * year,
        ),
        (
            "years before",
            Part::EndEntity,
            list(&[root, middle, end]),
            "own",
            at - 20 * year,
        ),
        (
            "the end-entity of another name",
            Part::EndEntity,
            list(&[other.certificates().last().unwrap(), &other_end]),
            "other",
            at,
        ),
    ];
    let judged = |(what, part, list, anchor, at): (&str, Part, CertificateList, &str, u64)| {
        let trust = Trust {
            anchors: &anchors(&certificate(&chains[anchor]["anchor"])),
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(at),
            algorithms: Algorithms::All,
        };
        let certificates = list.certificates().iter();
        let certificates: Vec<_> = certificates.map(hex::encode).collect();
        let offer = validate(Delivered { part, list }, NAME, &trust);
        json!({
            "what": what,
            "lowest": part.name(),
            "certificates": certificates,
            "anchor_of": anchor,
            "at_unix": at,
            "outcome": match &offer {
                Ok(_) => "offered",
                Err(fallback) => fallback.outcome.name(),
            },
            "reason": offer.err().map(|fallback| fallback.reason),
        })
    };
    Value::Array(cases.into_iter().map(judged).collect())
}

/// The data of the extension, in either hello.
fn extension_data(chain: &PublicChain) -> Value {
    let digest = *chain.digest().as_bytes();
    let cases = [
        digest.to_vec(),
        vec![0; 32],
        vec![],
        digest[..8].to_vec(),
        digest[..31].to_vec(),
        [&digest[..], &[0]].concat(),
        [&[32], &digest[..]].concat(),
    ];
    let read = |data: Vec<u8>| {
        let digest = Digest::from_bytes(&data).map(|digest| digest.to_string());
        json!({
            "data": hex::encode(&data),
            "alert": digest.is_none().then_some("decode_error"),
            "digest": digest,
        })
    };
    Value::Array(cases.into_iter().map(read).collect())
}

/// What comes of what the ServerHello says.
fn answers(chain: &PublicChain) -> Value {
    let offered = chain.topmost(2).unwrap().digest();
    let whole = chain.digest();
    let cases = [Answer::Digest(offered), Answer::Digest(whole), Answer::None];
    let outcome = |answer: Answer| {
        let outcome = answer.outcome(&offered);
        json!({
            "client_hello": offered.to_string(),
            "server_hello": match answer {
                Answer::Digest(digest) => Some(digest.to_string()),
                Answer::None => None,
            },
            "outcome": outcome.map_or_else(|fallback| fallback.outcome.name(), |()| "used"),
        })
    };
    Value::Array(cases.into_iter().map(outcome).collect())
}

/// The hellos of three handshakes: all of a chain by raw public key, a part of it after a HelloRetryRequest, and a mismatch.
fn hellos(own: &Chain, root: &X509) -> Vec<Value> {
    const CHANGE_CIPHER_SPEC: u8 = 20;
    const HANDSHAKE: u8 = 22;
    let mut all = Vec::new();
    let again = || Chain::new(own.certificates().to_vec(), own.key().clone()).unwrap();
    let other = of_pki(&test_chains::for_name(NAME).unwrap()).0;
    let retry: fn(&mut SslContextBuilder, &mut SslContextBuilder) = |client, server| {
        client.set_groups_list("X25519:P-256").unwrap();
        server.set_groups_list("P-256").unwrap();
    };
    let once: fn(&mut SslContextBuilder, &mut SslContextBuilder) = |client, _| {
        client.set_groups_list("X25519").unwrap();
    };
    let handshakes = [
        (
            "the whole chain from DNS, the key as a raw public key",
            3,
            again(),
            once,
        ),
        ("a part, after a HelloRetryRequest", 2, again(), retry),
        ("a mismatch", 2, other, once),
    ];
    for (what, count, chain, change) in handshakes {
        let mut client = fixtures::client(root);
        let mut store = openssl::x509::store::X509StoreBuilder::new().unwrap();
        store.add_cert(root.clone()).unwrap();
        store
            .add_cert(chain.certificates().last().unwrap().clone())
            .unwrap();
        store
            .set_flags(openssl::x509::verify::X509VerifyFlags::PARTIAL_CHAIN)
            .unwrap();
        client.set_cert_store(store.build());
        let mut server = fixtures::server(&shared(vec![chain]), EndEntity::RawPublicKey);
        change(&mut client, &mut server);
        let offer = fixtures::checked(delivered(own, count), root).unwrap();
        connect_over(
            &client.build(),
            &server.build(),
            NAME,
            Some((offer, EndEntity::RawPublicKey)),
            &mut |sender, bytes| {
                let sender = match sender {
                    Sender::Client => "client",
                    Sender::Server => "server",
                };
                // A record of the handshake that is not encrypted holds one hello.
                let mut rest = &bytes[..];
                while let [
                    kind @ (HANDSHAKE | CHANGE_CIPHER_SPEC),
                    _,
                    _,
                    high,
                    low,
                    after @ ..,
                ] = rest
                {
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    if *kind == HANDSHAKE {
                        let message = hex::encode(&after[..length]);
                        all.push(json!({ "of": what, "sender": sender, "message": message }));
                    }
                    rest = &after[length..];
                }
            },
        )
        .unwrap();
    }
    all.iter().map(hello).collect()
}

/// What a hello says, read with nothing of a TLS stack.
fn hello(kept: &Value) -> Value {
    const RETRY: &str = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c";
    let message = bytes(&kept["message"]);
    let kind = match (message[0], hex::encode(&message[6..38])) {
        (1, _) => "ClientHello",
        (2, random) if random == RETRY => "HelloRetryRequest",
        (2, _) => "ServerHello",
        other => panic!("{other:?}"),
    };
    let mut at = 38;
    at += 1 + usize::from(message[at]);
    at += match kind {
        "ClientHello" => {
            let suites = 2 + usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
            suites + 1 + usize::from(message[at + suites])
        }
        _ => 3,
    };
    let mut rest = &message[at + 2..];
    let mut digest = None;
    let mut types = None;
    while let [a, b, c, d, data @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*c, *d]));
        let data_of = &data[..length];
        match u16::from_be_bytes([*a, *b]) {
            64 => digest = Digest::from_bytes(data_of),
            20 => types = Some(hex::encode(data_of)),
            _ => {}
        }
        rest = &data[length..];
    }
    json!({
        "of": kept["of"],
        "sender": kept["sender"],
        "kind": kind,
        "digest": digest.map(|digest| digest.to_string()),
        "server_certificate_type": types,
        "message": kept["message"],
    })
}
