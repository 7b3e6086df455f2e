use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::authority::END_ENTITY_LIFE;
use crate::cache::default_dir;
use crate::{Chain, ChainSpec, KeyAlgorithm, Note, RootDelivery, Store, test_chains};

const ECDSA: KeyAlgorithm = KeyAlgorithm::EcdsaP256;

fn padded(bytes: usize) -> ChainSpec {
    ChainSpec {
        certificate_bytes: Some(bytes),
        ..ChainSpec::new(ECDSA)
    }
}

#[test]
fn a_chain_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let made = Store::open(folder.path()).chain(&padded(5000)).unwrap();
    let kept = Store::open(folder.path()).chain(&padded(5000)).unwrap();
    assert_eq!(made.digest(), kept.digest());
    assert!(made.key().public_eq(kept.key()));
    assert!(made.root() == kept.root());
    assert_eq!(kept.certificate_message_bytes(), 5000);
    assert_eq!(kept.server_name(), "server.example");
}

#[test]
fn everybody_who_asks_at_once_gets_the_same_chain() {
    let folder = tempfile::tempdir().unwrap();
    // Its keys take long enough to make that all would make their own.
    let spec = ChainSpec::new(KeyAlgorithm::Rsa2048);
    let start = Barrier::new(8);
    let digests: HashSet<String> = thread::scope(|scope| {
        let ask = || {
            let store = Store::open(folder.path());
            start.wait();
            store.chain(&spec).unwrap().digest()
        };
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        asking
            .into_iter()
            .map(|asking| asking.join().unwrap())
            .collect()
    });
    assert_eq!(digests.len(), 1);
}

#[test]
fn chains_that_differ_in_size_share_keys_and_issuers() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let padded = store.chain(&padded(5000)).unwrap();
    let plain = store.chain(&ChainSpec::new(ECDSA)).unwrap();
    let with_root = ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(ECDSA)
    };
    let with_root = store.chain(&with_root).unwrap();
    for other in [&padded, &with_root] {
        assert!(plain.key().public_eq(other.key()));
        assert!(plain.root() == other.root());
        assert!(plain.certificates()[1] == other.certificates()[1]);
        assert_ne!(plain.digest(), other.digest());
    }
    assert_eq!(with_root.certificates().len(), 3);
    assert!(with_root.certificates()[2] == *plain.root());
}

#[test]
fn a_folder_can_be_used_by_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Store::open(folder.path()).chain(&padded(5000)).unwrap();
    let kept = only_chain(folder.path());
    assert_eq!(kept.file_name().unwrap(), "ecdsa-p256_5000B-v1");
    let read = |name| fs::read(kept.join(name)).unwrap();
    let pem = |index: usize| chain.certificates()[index].to_pem().unwrap();
    assert_eq!(read("chain.pem"), [pem(0), pem(1)].concat());
    assert_eq!(read("root.pem"), chain.root().to_pem().unwrap());
    let mode = fs::metadata(kept.join("key.pem"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_chain_that_is_no_good_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let spec = ChainSpec::new(ECDSA);
    let mut digest = store.chain(&spec).unwrap().digest();
    let kept = only_chain(folder.path());

    let almost_a_day = Duration::from_secs(86_000);
    let about_to_expire = SystemTime::now() - END_ENTITY_LIFE + almost_a_day;
    let about_to_expire = test_chains::issued_at(about_to_expire).unwrap();
    let expired = test_chains::expired().unwrap();
    let other = test_chains::for_name("other.example").unwrap();
    let rsa = store.chain(&ChainSpec::new(KeyAlgorithm::Rsa2048)).unwrap();
    let broken = test_chains::broken().unwrap();
    let padded = store.chain(&padded(5000)).unwrap();

    let certificates = |chain: &Chain| {
        let pem = chain
            .certificates()
            .iter()
            .map(|certificate| certificate.to_pem().unwrap());
        pem.collect::<Vec<_>>().concat()
    };
    let key = |chain: &Chain| chain.key().private_key_to_pem_pkcs8().unwrap();
    let root = |chain: &Chain| chain.root().to_pem().unwrap();
    let whole = |chain: &Chain| {
        vec![
            ("chain.pem", certificates(chain)),
            ("key.pem", key(chain)),
            ("root.pem", root(chain)),
        ]
    };
    let unwanted = [&about_to_expire, &expired, &other, &rsa, &broken, &padded].map(Chain::digest);
    for (fault, files) in [
        // First, while the two still share a key.
        (
            "of another size",
            vec![("chain.pem", certificates(&padded))],
        ),
        ("empty", vec![("chain.pem", Vec::new())]),
        (
            "cut",
            vec![("chain.pem", certificates(&padded)[..900].to_vec())],
        ),
        ("another key", vec![("key.pem", key(&other))]),
        ("no key", vec![("key.pem", b"no key".to_vec())]),
        ("another root", vec![("root.pem", root(&other))]),
        ("expired", whole(&expired)),
        ("about to expire", whole(&about_to_expire)),
        ("for another name", whole(&other)),
        ("of another algorithm", whole(&rsa)),
        ("broken", whole(&broken)),
    ] {
        for (name, contents) in files {
            fs::write(kept.join(name), contents).unwrap();
        }
        let anew = store.chain(&spec).unwrap().digest();
        assert_ne!(anew, digest, "{fault}");
        assert!(!unwanted.contains(&anew), "{fault}");
        assert_eq!(store.chain(&spec).unwrap().digest(), anew, "{fault}");
        digest = anew;
    }

    fs::remove_file(kept.join("root.pem")).unwrap();
    fs::create_dir(kept.with_added_extension("new")).unwrap();
    assert_ne!(store.chain(&spec).unwrap().digest(), digest);
}

#[test]
fn an_authority_that_is_no_good_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let plain = store.chain(&ChainSpec::new(ECDSA)).unwrap();
    let other = test_chains::for_name("server.example").unwrap();
    let ca = folder.path().join("ca/ecdsa-p256_intermediates=1-v1");
    let mut root = plain.root().to_owned();
    for (bytes, name, contents) in [
        (5000, "key.pem", b"no key".to_vec()),
        (
            5001,
            "key.pem",
            other.key().private_key_to_pem_pkcs8().unwrap(),
        ),
        (5002, "root.pem", other.root().to_pem().unwrap()),
        (5003, "chain.pem", Vec::new()),
    ] {
        fs::write(ca.join(name), contents).unwrap();
        let chain = store.chain(&padded(bytes)).unwrap();
        assert!(*chain.root() != root, "{name}");
        assert!(plain.key().public_eq(chain.key()));
        assert_eq!(
            store.chain(&padded(bytes)).unwrap().digest(),
            chain.digest()
        );
        root = chain.root().to_owned();
    }
}

/// This would need an end-entity certificate of 65,540 bytes, which none can have.
#[test]
fn a_chain_with_a_longer_intermediate_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let spec = padded(8 + 5 + 65_540 + 5 + 656);
    let chain = store.chain(&spec).unwrap();
    assert!(chain.certificates()[1].to_der().unwrap().len() > 656);
    assert_eq!(
        Some(chain.certificate_message_bytes()),
        spec.certificate_bytes
    );
    assert_eq!(store.chain(&spec).unwrap().digest(), chain.digest());
    let plain = store.chain(&ChainSpec::new(ECDSA)).unwrap();
    assert!(plain.key().public_eq(chain.key()));
    assert_eq!(plain.certificates()[1].to_der().unwrap().len(), 656);
}

#[test]
fn a_kept_chain_needs_nothing_writable() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let digest = store.chain(&padded(5000)).unwrap().digest();
    fs::remove_file(folder.path().join("lock")).unwrap();
    fs::create_dir(folder.path().join("lock")).unwrap();
    assert_eq!(store.chain(&padded(5000)).unwrap().digest(), digest);
    assert!(store.chain(&padded(5001)).is_err());
}

#[test]
fn a_folder_that_cannot_be_written_is_named_with_the_hint() {
    let error = Store::open("/dev/null/chains")
        .chain(&padded(5000))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "can't write \"/dev/null/chains/lock\": Not a directory (os error 20); \
         name a folder that can be written"
    );
}

#[test]
fn the_cache_is_where_the_environment_says() {
    let dir = |variables: &'static [(&str, &str)]| {
        let value = |name: &str| {
            let pair = variables.iter().find(|(known, _)| *known == name);
            pair.map(|(_, value)| OsString::from(value))
        };
        default_dir(value, Some(PathBuf::from("/home/user"))).unwrap()
    };
    assert_eq!(dir(&[]), Path::new("/home/user/.cache/lastbyte"));
    assert_eq!(
        dir(&[("XDG_CACHE_HOME", "/cache")]),
        Path::new("/cache/lastbyte")
    );
    assert_eq!(
        dir(&[("XDG_CACHE_HOME", "cache")]),
        Path::new("/home/user/.cache/lastbyte")
    );
    assert_eq!(
        dir(&[("LASTBYTE_CACHE", "")]),
        Path::new("/home/user/.cache/lastbyte")
    );
    assert_eq!(
        dir(&[("XDG_CACHE_HOME", "/cache"), ("LASTBYTE_CACHE", "here")]),
        Path::new("here")
    );
    assert_eq!(default_dir(|_| None, None), None);
    let cache = |name: &str| (name == "XDG_CACHE_HOME").then(|| OsString::from("/cache"));
    assert_eq!(
        default_dir(cache, None).unwrap(),
        Path::new("/cache/lastbyte")
    );
}

fn only_chain(folder: &Path) -> PathBuf {
    let chains = fs::read_dir(folder.join("chains")).unwrap();
    let names = chains.map(|entry| entry.unwrap().path());
    names
        .max_by_key(|path| path.to_string_lossy().len())
        .unwrap()
}

/// Whoever has given the old chain away can still find its key, and is told where.
#[test]
fn a_chain_that_was_damaged_is_kept_beside_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let spec = ChainSpec::new(ECDSA);
    assert!(store.chain(&spec).unwrap().notes().is_empty());
    let kept = only_chain(folder.path());
    let key = fs::read(kept.join("key.pem")).unwrap();
    fs::write(kept.join("chain.pem"), "damaged").unwrap();
    let chain = store.chain(&spec).unwrap();
    let [Note::Replaced { aside, .. }] = chain.notes() else {
        panic!("{:?}", chain.notes());
    };
    assert_eq!(fs::read(aside.join("key.pem")).unwrap(), key);
    assert_eq!(fs::read(aside.join("chain.pem")).unwrap(), b"damaged");
    assert_ne!(fs::read(kept.join("key.pem")).unwrap(), key);
    // The new one is good.
    assert!(store.chain(&spec).unwrap().notes().is_empty());
}

#[test]
fn a_sealed_folder_gives_what_it_has_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let made = Store::open(folder.path()).chain(&padded(5000)).unwrap();
    let sealed = Store::sealed(folder.path());
    assert_eq!(sealed.chain(&padded(5000)).unwrap().digest(), made.digest());
    let before = fs::read_dir(folder.path().join("chains")).unwrap().count();
    let error = sealed.chain(&padded(6000)).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "\"{}\" has no chain ecdsa-p256:6000B that this user can read and that is valid for another day: let it be read, or make its \
             chains with `lastbyte run STUDY.toml --prepare`, before any shard",
            folder.path().display()
        )
    );
    let nowhere = folder.path().join("nowhere");
    assert!(Store::sealed(&nowhere).chain(&padded(6000)).is_err());
    assert_eq!(
        fs::read_dir(folder.path().join("chains")).unwrap().count(),
        before
    );
    assert!(!nowhere.exists());
}
