use std::fs;

use lastbyte_pki::test_chains;
use tempfile::TempDir;

use super::*;

const NAME: &str = "server.example";

fn made() -> lastbyte_pki::Chain {
    test_chains::for_name(NAME).unwrap()
}

fn pem(certificates: &[X509]) -> Vec<u8> {
    let pem = certificates.iter().map(|one| one.to_pem().unwrap());
    pem.collect::<Vec<_>>().concat()
}

fn key_of(chain: &lastbyte_pki::Chain) -> Vec<u8> {
    chain.key().private_key_to_pem_pkcs8().unwrap()
}

/// A chain's files, followed, at a moment that the test says.
struct Folder {
    _folder: TempDir,
    files: ChainFiles,
    followed: Followed,
    now: Instant,
}

impl Folder {
    fn new(chain: &lastbyte_pki::Chain) -> Folder {
        let folder = TempDir::new().unwrap();
        let files = ChainFiles {
            chain: folder.path().join("chain.pem"),
            key: folder.path().join("key.pem"),
        };
        fs::write(&files.chain, pem(chain.certificates())).unwrap();
        fs::write(&files.key, key_of(chain)).unwrap();
        let loaded = load(&files).unwrap();
        let followed = Followed::new(&files, &loaded);
        Folder {
            _folder: folder,
            files,
            followed,
            now: Instant::now(),
        }
    }

    fn write(&self, chain: &lastbyte_pki::Chain) {
        fs::write(&self.files.chain, pem(chain.certificates())).unwrap();
        fs::write(&self.files.key, key_of(chain)).unwrap();
    }

    fn look(&mut self, reading: Reading) -> Step {
        self.followed.look(reading, self.now, SystemTime::now())
    }

    /// A second later.
    fn next(&mut self, reading: Reading) -> Step {
        self.now += INTERVAL;
        self.look(reading)
    }
}

#[track_caller]
fn changed(step: Step, to: &lastbyte_pki::Chain) {
    match step {
        Step::Changed(chain) => assert_eq!(pem(chain.certificates()), pem(to.certificates())),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(step: Step) -> String {
    match step {
        Step::Refused(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn waiting(step: Step) {
    assert!(matches!(step, Step::Waiting), "{step:?}");
}

#[track_caller]
fn same(step: Step) {
    assert!(matches!(step, Step::Same), "{step:?}");
}

#[test]
fn chains_are_whole_linked_and_fit_their_key() {
    let chain = made();
    let whole = pem(chain.certificates());
    let key = key_of(&chain);
    let wrong = |chain: &[u8], key: &[u8]| parse(chain, key).unwrap_err().to_string();
    assert!(parse(&whole, &key).is_ok());
    // One file for both, as HAProxy has it.
    let both = [&whole[..], &key].concat();
    assert!(parse(&both, &both).is_ok());

    let cut = &whole[..whole.len() - 40];
    assert!(wrong(cut, &key).contains("the file is cut, or still being written"));
    let next = [&pem(&chain.certificates()[..1])[..], b"-----BEGIN CERTIF"].concat();
    assert!(wrong(&next, &key).contains("is no whole line of PEM"));
    let left = [&whole[..], b"MIIB\n"].concat();
    assert!(wrong(&left, &key).contains("left over after the last certificate"));
    assert_eq!(wrong(b"", &key), "there is no certificate");
    assert_eq!(wrong(b"current\n", b"current\n"), "there is no certificate");
    for no_key in [&whole[..], b"", b"PRIVATE KEY"] {
        assert_eq!(
            wrong(&whole, no_key),
            "there is no private key: name the file that has it"
        );
    }

    let other = made();
    assert_eq!(
        wrong(&whole, &key_of(&other)),
        "the key is not that of the first certificate"
    );
    let mixed = [
        chain.certificates()[0].clone(),
        other.certificates()[1].clone(),
    ];
    assert!(
        wrong(&pem(&mixed), &key).starts_with("certificate 2 does not issue certificate 1"),
        "{}",
        wrong(&pem(&mixed), &key)
    );
    // Of the issuer's name, with another key.
    let broken = test_chains::broken().unwrap();
    let broken = wrong(&pem(broken.certificates()), &key_of(&broken));
    assert!(
        broken.starts_with("certificate 2 does not issue"),
        "{broken}"
    );
    // The wrong way round.
    let mut reversed = chain.certificates().to_vec();
    reversed.reverse();
    assert!(parse(&pem(&reversed), &key).is_err());
    // With the root, which signs itself.
    let rooted = [chain.certificates(), &[chain.root().clone()]].concat();
    assert!(parse(&pem(&rooted), &key).is_ok());
}

#[test]
fn what_is_wrong_with_one_file_is_told_where_the_other_can_not_be_read() {
    let good = made();
    let folder = Folder::new(&good);
    let told = || {
        let Wrong { first, second } = *inspect(&folder.files).unwrap_err();
        [Some(first), second].map(|one| one.map(|one| one.to_string()))
    };
    let is = |found: &Option<String>, part: &str| {
        assert!(found.as_ref().unwrap().contains(part), "{found:?}");
    };
    fs::remove_file(&folder.files.key).unwrap();
    let [first, second] = told();
    is(&first, "key.pem\": No such file");
    assert_eq!(second, None);
    let whole = pem(good.certificates());
    fs::write(&folder.files.chain, &whole[..whole.len() / 2]).unwrap();
    let [first, second] = told();
    is(&first, "key.pem\": No such file");
    is(&second, "does not end: the file is cut");
    let mut swapped = good.certificates().to_vec();
    swapped.reverse();
    fs::write(&folder.files.chain, pem(&swapped)).unwrap();
    is(&told()[1], "does not issue certificate 1");
    fs::remove_file(&folder.files.chain).unwrap();
    let [first, second] = told();
    is(&first, "chain.pem\": No such file");
    is(&second, "key.pem\": No such file");
    fs::write(&folder.files.key, &whole).unwrap();
    is(&told()[1], "there is no private key");
}

#[test]
fn a_change_counts_when_it_lasts() {
    let [old, new] = [made(), made()];
    let mut folder = Folder::new(&old);
    same(folder.look(Reading::IfChanged));
    folder.write(&new);
    waiting(folder.look(Reading::IfChanged));
    // Two looks at one moment are one.
    waiting(folder.look(Reading::IfChanged));
    changed(folder.next(Reading::IfChanged), &new);
    same(folder.next(Reading::IfChanged));
}

#[test]
fn a_chain_that_is_being_written_is_not_taken() {
    let [old, new] = [made(), made()];
    let mut folder = Folder::new(&old);
    let whole = pem(new.certificates());
    let first = pem(&new.certificates()[..1]).len();
    fs::write(&folder.files.key, key_of(&new)).unwrap();
    // Between the certificates, what is there could be served.
    for cut in [0, 100, first, first + 17] {
        fs::write(&folder.files.chain, &whole[..cut]).unwrap();
        waiting(folder.next(Reading::IfChanged));
        waiting(folder.look(Reading::Always));
    }
    fs::write(&folder.files.chain, &whole).unwrap();
    waiting(folder.next(Reading::IfChanged));
    changed(folder.next(Reading::IfChanged), &new);
}

#[test]
fn what_can_not_be_served_is_told_each_time_that_it_comes() {
    let [old, other] = [made(), made()];
    let mut folder = Folder::new(&old);
    for _ in 0..2 {
        fs::write(&folder.files.key, key_of(&other)).unwrap();
        waiting(folder.next(Reading::IfChanged));
        assert!(refused(folder.next(Reading::IfChanged)).contains("the key is not that"));
        assert!(folder.followed.still_refused().is_some());
        for _ in 0..3 {
            same(folder.next(Reading::IfChanged));
        }
        folder.write(&old);
        same(folder.next(Reading::IfChanged));
        assert!(folder.followed.still_refused().is_none());
    }
    fs::remove_file(&folder.files.chain).unwrap();
    waiting(folder.next(Reading::IfChanged));
    assert!(refused(folder.next(Reading::IfChanged)).contains("No such file"));
    same(folder.next(Reading::IfChanged));
    // It can't be read for another reason.
    fs::create_dir(&folder.files.chain).unwrap();
    waiting(folder.next(Reading::IfChanged));
    assert!(refused(folder.next(Reading::IfChanged)).contains("Is a directory"));
    same(folder.next(Reading::IfChanged));
}

#[test]
fn who_asks_waits_for_two_looks_as_well() {
    let [old, new] = [made(), made()];
    let mut folder = Folder::new(&old);
    waiting(folder.look(Reading::Always));
    changed(folder.next(Reading::Always), &old);
    // Between the writes.
    fs::write(&folder.files.key, key_of(&new)).unwrap();
    waiting(folder.next(Reading::Always));
    folder.write(&new);
    waiting(folder.next(Reading::Always));
    changed(folder.next(Reading::Always), &new);
}

#[test]
fn a_change_between_loading_and_the_first_look_is_seen() {
    let [old, new] = [made(), made()];
    let mut folder = Folder::new(&old);
    folder.write(&new);
    waiting(folder.look(Reading::IfChanged));
    changed(folder.next(Reading::IfChanged), &new);
}

#[test]
fn files_are_read_when_something_says_that_they_changed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "one").unwrap();
    let mut watched = Watched::new(&path);
    let now = SystemTime::now();
    let digest = sha256(b"one");
    assert_eq!(watched.look(now).unwrap(), digest);
    assert!(
        watched.last.is_none(),
        "another write could have these times"
    );
    let later = now + Duration::from_secs(10);
    assert_eq!(watched.look(later).unwrap(), digest);
    let (_, last) = watched.last.as_mut().unwrap();
    // What is not read is not noticed.
    *last = [0; 32];
    assert_eq!(watched.look(later).unwrap(), [0; 32]);
    // As many bytes, in another file.
    let new = folder.path().join("new");
    fs::write(&new, "two").unwrap();
    fs::rename(&new, &path).unwrap();
    assert_eq!(watched.look(later).unwrap(), sha256(b"two"));
    fs::remove_file(&path).unwrap();
    let error = watched.look(later).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn files_that_no_chain_has_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, vec![b' '; (MOST + 1) as usize]).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert_eq!(error, "it is larger than 1 MiB");
}

#[test]
fn old_chains_are_told() {
    let chain = made();
    let chain = parse(&pem(chain.certificates()), &key_of(&chain)).unwrap();
    let before = |days: u64| chain.valid_until() - Duration::from_secs(days * 24 * 3600 + 60);
    assert_eq!(ageing(&chain, before(20)), None);
    for (time, words) in [
        (before(13), "expires in 13 days"),
        (before(1), "expires in a day"),
        (before(0), "expires in less than a day"),
        (chain.valid_until(), "expires in less than a day"),
        (
            chain.valid_until() + Duration::from_secs(1),
            "has expired: clients refuse it until it is renewed",
        ),
    ] {
        let told = ageing(&chain, time).unwrap();
        assert_eq!(told, format!("the chain for {NAME} {words}"));
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_keeps_nobody_waiting() {
    let first = made();
    for is_key in [false, true] {
        let mut folder = Folder::new(&first);
        let path = if is_key {
            folder.files.key.clone()
        } else {
            folder.files.chain.clone()
        };
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        waiting(folder.look(Reading::IfChanged));
        let told = refused(folder.next(Reading::IfChanged));
        assert_eq!(
            told,
            format!(
                "can't read \"{}\": it is no regular file: name another",
                path.display()
            )
        );
        // It is told once, and what comes after it is served.
        same(folder.next(Reading::IfChanged));
        fs::remove_file(&path).unwrap();
        let next = made();
        folder.write(&next);
        waiting(folder.next(Reading::IfChanged));
        changed(folder.next(Reading::IfChanged), &next);
    }
}

/// As `lastbyte mtc issue` writes them: a proof of inclusion stands where others have a signature.
#[test]
fn a_merkle_tree_certificate_is_refused_as_one() {
    const ECDSA_WITH_SHA_256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    const MTC_PROOF: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 6, 67];
    let chain = made();
    let mut der = chain.certificates()[0].to_der().unwrap();
    let places = (0..der.len()).filter(|at| der[*at..].starts_with(&ECDSA_WITH_SHA_256));
    for at in places.collect::<Vec<_>>() {
        der[at..at + MTC_PROOF.len()].copy_from_slice(&MTC_PROOF);
    }
    let proof = X509::from_der(&der).unwrap();
    let said = parse(&pem(&[proof]), &key_of(&chain)).unwrap_err();
    assert!(matches!(said, Unfit::MerkleTree(1)), "{said}");
    assert!(said.to_string().contains("give the X.509 chain"), "{said}");
}

/// As Windows' editors, people and `openssl x509 -trustout` write files.
#[test]
fn marks_comments_and_trusted_certificates_are_read() {
    let chain = made();
    let pem = String::from_utf8(pem(chain.certificates())).unwrap();
    let trusted = pem.replace("CERTIFICATE", "TRUSTED CERTIFICATE");
    for file in [
        format!("\u{feff}{pem}"),
        format!("----------\nserver\n----------\n{pem}"),
        trusted,
    ] {
        let read = parse(file.as_bytes(), &key_of(&chain)).unwrap();
        assert_eq!(read.certificates(), chain.certificates(), "{file}");
    }
}
