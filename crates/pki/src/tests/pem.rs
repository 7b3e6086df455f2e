use std::fs;
use std::path::{Path, PathBuf};

use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::symm::Cipher;
use openssl::x509::extension::{ExtendedKeyUsage, SubjectAlternativeName};
use openssl::x509::{X509, X509Extension, X509Name};
use tempfile::TempDir;

use crate::{
    Chain, ChainRole, ChainSpec, KeyAlgorithm, Missing, Note, PemFiles, RootDelivery, Store,
    private_key_pem, test_chains,
};

/// A folder of PEM files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, parts: &[Vec<u8>]) -> PathBuf {
        fs::write(self.path(name), parts.concat()).unwrap();
        self.path(name)
    }

    /// Reads `chain.pem` without naming any other file.
    fn load(&self) -> Result<Chain, String> {
        self.load_with(None, None)
    }

    fn load_with(&self, key: Option<&Path>, ca: Option<&Path>) -> Result<Chain, String> {
        let files = PemFiles {
            key: key.map(Path::to_owned),
            ca: ca.map(Path::to_owned),
            ..PemFiles::new(self.path("chain.pem"))
        };
        self.own(&files, ChainRole::Server)
    }

    fn own(&self, files: &PemFiles, role: ChainRole) -> Result<Chain, String> {
        let store = Store::open(self.path("store"));
        store.own(files, role).map_err(|error| {
            error
                .to_string()
                .replace(self.0.path().to_str().unwrap(), "DIR")
        })
    }
}

fn certificate(chain: &Chain, index: usize) -> Vec<u8> {
    chain.certificates()[index].to_pem().unwrap()
}

fn root(chain: &Chain) -> Vec<u8> {
    chain.root().to_pem().unwrap()
}

fn key(chain: &Chain) -> Vec<u8> {
    chain.key().private_key_to_pem_pkcs8().unwrap()
}

/// What [`Folder::load_with`] says to a made chain.
fn refusal(chain: &Chain) -> String {
    let folder = Folder::new();
    folder.write(
        "chain.pem",
        &[certificate(chain, 0), certificate(chain, 1), key(chain)],
    );
    let ca = folder.write("root.pem", &[root(chain)]);
    folder.load_with(None, Some(&ca)).unwrap_err()
}

/// The forms that a key of ML-DSA can have (RFC 9881, section 6): its seed, what is made of it, and
/// both, as caches have had it.
#[test]
fn ml_dsa_keys_of_all_three_forms_are_read() {
    for algorithm in [
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ] {
        let folder = Folder::new();
        let store = Store::open(folder.path("store"));
        let chain = store.chain(&ChainSpec::new(algorithm)).unwrap();
        let (seed, both) = (private_key_pem(chain.key()).unwrap(), key(&chain));
        assert!(seed.len() < 200 && both.len() > 3000);
        let der = chain.key().private_key_to_pkcs8().unwrap();
        let expanded = PKey::private_key_from_pkcs8(&expanded_only(&der)).unwrap();
        // Without its seed, OpenSSL writes it as it has read it.
        let expanded = key_of(&expanded);
        folder.write(
            "chain.pem",
            &[certificate(&chain, 0), certificate(&chain, 1)],
        );
        let ca = folder.write("ca.pem", &[root(&chain)]);
        for form in [seed, expanded, both.clone()] {
            let file = folder.write("named.pem", &[form]);
            let loaded = folder.load_with(Some(&file), Some(&ca)).unwrap();
            assert!(loaded.key().public_eq(chain.key()), "{algorithm}");
        }
        // A chain that was kept with both is the same chain.
        let kept = walk(&folder.path("store"), "key.pem");
        assert_eq!(kept.len(), 2, "{kept:?}");
        for file in &kept {
            assert!(fs::metadata(file).unwrap().len() < 200);
            let pem = fs::read(file).unwrap();
            let read = PKey::private_key_from_pem(&pem).unwrap();
            fs::write(file, key_of(&read)).unwrap();
        }
        let again = store.chain(&ChainSpec::new(algorithm)).unwrap();
        assert_eq!(again.digest(), chain.digest());
    }
}

fn key_of(key: &PKey<Private>) -> Vec<u8> {
    key.private_key_to_pem_pkcs8().unwrap()
}

/// Of the form with both, that with what is made of the seed alone.
fn expanded_only(both: &[u8]) -> Vec<u8> {
    let long = |tag: u8, content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82, length[0], length[1]], content].concat()
    };
    // Behind version, algorithm, both headers and the seed.
    let expanded = &both[20 + 4 + 4 + 2 + 32..];
    long(0x30, &[&both[4..20], &long(4, expanded)].concat())
}

/// The keys of a CA and of an end-entity that a store has under this name.
fn walk(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path, name));
        } else if path.ends_with(name) {
            found.push(path);
        }
    }
    found.retain(|path| path.with_file_name("chain.pem").exists());
    found
}

#[test]
fn a_chain_is_read_from_where_its_parts_are() {
    let chain = test_chains::for_name("shop.example").unwrap();
    let sent = [certificate(&chain, 0), certificate(&chain, 1)].concat();
    let check = |loaded: Result<Chain, String>| {
        let loaded = loaded.unwrap();
        assert_eq!(loaded.digest(), chain.digest());
        assert_eq!(loaded.server_name(), "shop.example");
        assert!(loaded.root() == chain.root());
        assert!(loaded.key().public_eq(chain.key()));
        assert_eq!(
            loaded.certificate_message_bytes(),
            chain.certificate_message_bytes()
        );
    };

    let folder = Folder::new();
    folder.write("chain.pem", &[sent.clone(), root(&chain), key(&chain)]);
    check(folder.load());

    let folder = Folder::new();
    folder.write("chain.pem", &[sent.clone(), root(&chain)]);
    folder.write("privkey.pem", &[key(&chain)]);
    check(folder.load());

    let folder = Folder::new();
    let ca = folder.write(
        "ca.pem",
        &[root(&test_chains::broken().unwrap()), root(&chain)],
    );
    folder.write("chain.pem", &[sent]);
    folder.write(
        "key.pem",
        &[chain.key().ec_key().unwrap().private_key_to_pem().unwrap()],
    );
    check(folder.load_with(None, Some(&ca)));

    let elsewhere = folder.write("elsewhere.pem", &[key(&chain)]);
    folder.write("key.pem", &[key(&test_chains::broken().unwrap())]);
    check(folder.load_with(Some(&elsewhere), Some(&ca)));
}

#[test]
fn a_self_signed_certificate_is_its_own_root() {
    let (certificate, private) = self_signed("localhost", None);
    let folder = Folder::new();
    let pem = certificate.to_pem().unwrap();
    folder.write(
        "chain.pem",
        &[pem, private.private_key_to_pem_pkcs8().unwrap()],
    );
    let chain = folder.load().unwrap();
    assert_eq!(chain.certificates().len(), 1);
    assert!(*chain.root() == certificate);
}

#[test]
fn the_server_name_is_one_that_a_client_can_ask_for() {
    let name = |common_name, extension| {
        let (certificate, private) = self_signed(common_name, extension);
        let folder = Folder::new();
        let pem = certificate.to_pem().unwrap();
        folder.write(
            "chain.pem",
            &[pem, private.private_key_to_pem_pkcs8().unwrap()],
        );
        folder.load().map(|chain| chain.server_name().to_owned())
    };
    assert_eq!(name("shop.example", None).unwrap(), "shop.example");
    assert_eq!(
        name("Shop", Some(dns_name("shop.example"))).unwrap(),
        "shop.example"
    );
    assert_eq!(
        name("", Some(dns_name("*.shop.example"))).unwrap(),
        "www.shop.example"
    );
    assert_eq!(
        name("", None).unwrap_err(),
        "\"DIR/chain.pem\" names no server: its first certificate has no DNS name and no common \
         name"
    );
}

#[test]
fn files_that_hold_something_else_are_refused() {
    let chain = test_chains::for_name("server.example").unwrap();
    let folder = Folder::new();
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" can't be read: No such file or directory (os error 2)"
    );
    folder.write("chain.pem", &[]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" is empty: write certificates in PEM into it, the end-entity's first"
    );
    folder.write("chain.pem", &[b"\xff\xfe garbage".to_vec()]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" is not PEM: no line of it is \"-----BEGIN CERTIFICATE-----\""
    );
    folder.write("chain.pem", &[chain.root().to_der().unwrap()]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" is DER, not PEM: convert it with \"openssl x509 -inform der -in FILE \
         -out FILE.pem\""
    );
    folder.write("chain.pem", &[key(&chain)]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" holds no certificate, only \"PRIVATE KEY\""
    );
    let mut damaged = certificate(&chain, 0);
    damaged.drain(100..120);
    folder.write("chain.pem", &[damaged]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" holds a certificate that is damaged: too long"
    );
}

#[test]
fn keys_that_cannot_be_used_are_refused() {
    let chain = test_chains::for_name("server.example").unwrap();
    let folder = Folder::new();
    let certificates = certificate(&chain, 0);
    let chain_pem = folder.write("chain.pem", &[certificates, certificate(&chain, 1)]);
    assert_eq!(
        folder.load_with(Some(&chain_pem), None).unwrap_err(),
        "\"DIR/chain.pem\" holds no private key"
    );
    folder.write("key.pem", &[key(&test_chains::broken().unwrap())]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/key.pem\" holds another key than that of the first certificate in \
         \"DIR/chain.pem\": name the right file with key="
    );
    let cipher = Cipher::aes_128_cbc();
    let encrypted = chain
        .key()
        .private_key_to_pem_pkcs8_passphrase(cipher, b"secret");
    let traditional = chain.key().ec_key().unwrap();
    let traditional = traditional.private_key_to_pem_passphrase(cipher, b"secret");
    for pem in [encrypted.unwrap(), traditional.unwrap()] {
        folder.write("key.pem", &[pem]);
        assert_eq!(
            folder.load().unwrap_err(),
            "\"DIR/key.pem\" holds an encrypted key: decrypt it with \"openssl pkey -in FILE -out \
             key.pem\""
        );
    }
    let mut damaged = key(&chain);
    damaged.drain(60..80);
    folder.write("key.pem", &[damaged]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/key.pem\" holds a private key that is damaged or of an unknown kind: unsupported"
    );
}

#[test]
fn certificates_out_of_their_time_are_refused() {
    let expired = test_chains::expired().unwrap();
    let on = expired.certificates()[0].not_after();
    assert_eq!(
        refusal(&expired),
        format!("\"DIR/chain.pem\" is out of date: its certificate 1 expired on {on}")
    );
    let early = test_chains::not_yet_valid().unwrap();
    let until = early.certificates()[0].not_before();
    assert_eq!(
        refusal(&early),
        format!(
            "\"DIR/chain.pem\" can't be used yet: its certificate 1 is not valid until {until}"
        )
    );
}

#[test]
fn chains_that_lead_nowhere_are_refused() {
    assert_eq!(
        refusal(&test_chains::broken().unwrap()),
        "\"DIR/chain.pem\" is a broken chain: its certificate 1 (CN=server.example) is not issued \
         by the next one; put the certificate of C=XX, O=Lastbyte Test, CN=Lastbyte Test TLS CA1 \
         there"
    );
    assert_eq!(
        refusal(&test_chains::untrusted().unwrap()),
        "\"DIR/chain.pem\" lacks the issuer of its certificate 2, C=XX, O=Lastbyte Test, CN=Lastbyte \
         Test Root CA, which is not in \"DIR/root.pem\" either: add it, or name the file that holds \
         it with ca="
    );
}

/// Of an end-entity, two intermediates and a root.
fn long_chain() -> Chain {
    let spec = ChainSpec {
        intermediates: 2,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    super::Maker::new(spec).chain(None)
}

#[test]
fn certificates_in_another_order_are_put_in_order() {
    let chain = long_chain();
    let [leaf, first, second] = [0, 1, 2].map(|index| certificate(&chain, index));
    let folder = Folder::new();
    let refusal = |parts: &[&Vec<u8>]| {
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| (*part).clone()).collect();
        folder.write("chain.pem", &parts);
        folder.load().unwrap_err()
    };
    let disorder = |leaf: usize, order: &str| {
        format!(
            "\"DIR/chain.pem\" is out of order: its leaf is certificate {leaf} (CN=server.example); put its \
             certificates in the order {order}"
        )
    };
    assert_eq!(refusal(&[&first, &leaf, &second]), disorder(2, "2, 1, 3"));
    assert_eq!(refusal(&[&leaf, &second, &first]), disorder(1, "1, 3, 2"));
    assert_eq!(
        refusal(&[&root(&chain), &second, &first, &leaf]),
        disorder(4, "4, 3, 2, 1")
    );
    // With the key and the root there as well.
    assert_eq!(
        refusal(&[&first, &leaf, &second, &root(&chain)]),
        disorder(2, "2, 1, 3")
    );

    let foreign = certificate(&long_chain(), 1);
    let stranger = "\"DIR/chain.pem\" has a certificate that signed none of the others: leave out certificate 2";
    let said = refusal(&[&leaf, &foreign, &first, &second]);
    assert!(said.starts_with(stranger), "{said}");
    let said = refusal(&[&leaf, &leaf, &first]);
    let doubled = "\"DIR/chain.pem\" has the same certificate twice: leave out certificate";
    assert_eq!(said, format!("{doubled} 2 (CN=server.example)"));
    let said = refusal(&[&leaf, &first, &first, &second]);
    assert!(said.starts_with(&format!("{doubled} 3")), "{said}");
    // Whoever is not there can't be put anywhere.
    let said = refusal(&[&leaf, &second]);
    assert!(
        said.contains("is a broken chain: its certificate 1"),
        "{said}"
    );
}

#[test]
fn a_root_in_the_file_is_sent_if_it_is_asked_for() {
    let chain = test_chains::for_name("server.example").unwrap();
    let folder = Folder::new();
    let parts = [certificate(&chain, 0), certificate(&chain, 1), root(&chain)];
    let all = [parts.to_vec(), vec![key(&chain)]].concat();
    let files = PemFiles::new(folder.write("chain.pem", &all));
    let without = folder.own(&files, ChainRole::Server).unwrap();
    let files = PemFiles {
        root: RootDelivery::Sent,
        ..files
    };
    let with = folder.own(&files, ChainRole::Server).unwrap();
    assert_eq!(
        (without.certificates().len(), with.certificates().len()),
        (2, 3)
    );
    let with_root = with.certificate_message_bytes();
    assert_eq!(without.notes(), [Note::RootInFile { with_root }]);
    assert_eq!(with.notes(), []);
    // What is shown has the same sizes, with a key or without.
    let store = Store::open(folder.path("store"));
    assert_eq!(
        store.public(&files).unwrap().certificate_message_bytes,
        with_root
    );
    folder.write("chain.pem", &parts);
    let stood_in = folder.own(&files, ChainRole::Server).unwrap();
    assert_eq!(stood_in.certificate_message_bytes(), with_root);
}

#[test]
fn a_root_that_is_not_there_is_not_sent() {
    let folder = Folder::new();
    let chain = long_chain();
    folder.write(
        "chain.pem",
        &[certificate(&chain, 0), certificate(&chain, 1)],
    );
    let files = PemFiles {
        root: RootDelivery::Sent,
        ..PemFiles::new(folder.path("chain.pem"))
    };
    assert_eq!(
        folder.own(&files, ChainRole::Server).unwrap_err(),
        "\"DIR/chain.pem\" does not end in its root, which root=sent has sent: write the root at its end, or leave \
         root=sent out"
    );
}

/// What is shown of a chain says so where the key beside it is another chain's.
#[test]
fn a_key_that_does_not_fit_is_told() {
    let folder = Folder::new();
    let chain = test_chains::for_name("server.example").unwrap();
    let other = long_chain();
    let certificates = [certificate(&chain, 0), certificate(&chain, 1), root(&chain)];
    folder.write("chain.pem", &certificates);
    let store = Store::open(folder.path("store"));
    let files = PemFiles::new(folder.path("chain.pem"));
    assert!(store.wrong_key(&files).unwrap().is_none());
    folder.write("key.pem", &[key(&chain)]);
    assert!(store.wrong_key(&files).unwrap().is_none());
    folder.write("key.pem", &[key(&other)]);
    assert!(store.wrong_key(&files).unwrap().is_some());
}

#[test]
fn what_only_verification_finds_is_refused() {
    let chain = test_chains::for_name("server.example").unwrap();
    let mut forged = chain.certificates()[0].to_der().unwrap();
    *forged.last_mut().unwrap() ^= 1;
    let forged = X509::from_der(&forged).unwrap().to_pem().unwrap();
    let folder = Folder::new();
    folder.write(
        "chain.pem",
        &[forged, certificate(&chain, 1), root(&chain), key(&chain)],
    );
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" does not verify against \"DIR/chain.pem\": certificate 1: certificate \
         signature failure"
    );

    let client = ExtendedKeyUsage::new().client_auth().build().unwrap();
    let (certificate, private) = self_signed("client.example", Some(client));
    let key = private.private_key_to_pem_pkcs8().unwrap();
    folder.write("chain.pem", &[certificate.to_pem().unwrap(), key]);
    assert_eq!(
        folder.load().unwrap_err(),
        "\"DIR/chain.pem\" does not verify against \"DIR/chain.pem\": certificate 1: unsuitable \
         certificate purpose"
    );
}

/// As `openssl req -x509` makes it.
fn self_signed(common_name: &str, extension: Option<X509Extension>) -> (X509, PKey<Private>) {
    let key = PKey::generate_ed25519().unwrap();
    let mut name = X509Name::builder().unwrap();
    if !common_name.is_empty() {
        name.append_entry_by_text("CN", common_name).unwrap();
    }
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    let days = |days| Asn1Time::days_from_now(days).unwrap();
    builder.set_not_before(&days(0)).unwrap();
    builder.set_not_after(&days(2)).unwrap();
    builder.set_pubkey(&key).unwrap();
    if let Some(extension) = extension {
        builder.append_extension(extension).unwrap();
    }
    builder.sign(&key, MessageDigest::null()).unwrap();
    (builder.build(), key)
}

fn dns_name(name: &str) -> X509Extension {
    let builder = X509::builder().unwrap();
    let context = builder.x509v3_context(None, None);
    SubjectAlternativeName::new()
        .dns(name)
        .build(&context)
        .unwrap()
}

#[test]
fn a_clients_chain_is_read_as_one() {
    let spec = ChainSpec {
        role: ChainRole::Client,
        ca: KeyAlgorithm::MlDsa44,
        root_key: KeyAlgorithm::MlDsa44,
        ..ChainSpec::new(KeyAlgorithm::FnDsa512)
    };
    let made = super::Maker::new(spec).chain(None);
    let load = |chain: &Chain| {
        let folder = Folder::new();
        let parts = [certificate(chain, 0), certificate(chain, 1), key(chain)];
        let files = PemFiles {
            ca: Some(folder.write("root.pem", &[root(chain)])),
            ..PemFiles::new(folder.write("chain.pem", &parts))
        };
        (
            folder.own(&files, ChainRole::Client),
            folder.own(&files, ChainRole::Server),
        )
    };
    let (client, server) = load(&made);
    let client = client.unwrap();
    assert_eq!(client.digest(), made.digest());
    assert_eq!(client.server_name(), "client.example");
    // Without its key as well.
    let folder = Folder::new();
    let alone = [certificate(&made, 0), certificate(&made, 1)];
    let files = PemFiles::new(folder.write("chain.pem", &alone));
    let stood_in = folder.own(&files, ChainRole::Client).unwrap();
    assert_eq!(stood_in.notes(), [Note::StandIn(Missing::Key)]);
    assert_eq!(
        stood_in.certificate_message_bytes(),
        made.certificate_message_bytes()
    );
    let error = folder.own(&files, ChainRole::Server).unwrap_err();
    assert!(error.contains("is no chain that a client would take: certificate 1"));
    assert!(server.unwrap_err().ends_with("certificate purpose"));

    for (faulty, expected) in [
        (test_chains::expired_client(), "is out of date"),
        (
            test_chains::untrusted_client(),
            "lacks the issuer of its certificate 2",
        ),
        (test_chains::server_as_client(), "certificate purpose"),
    ] {
        let error = load(&faulty.unwrap()).0.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// A leaf and its root, of which the second did not sign the first.
#[test]
fn a_file_without_its_intermediate_lacks_it_and_has_no_root_to_leave_out() {
    let folder = Folder::new();
    let store = Store::open(folder.path("store"));
    let file = folder.path("chain.pem");
    // Below the root, and below another intermediate.
    for chain in [
        test_chains::for_name("server.example").unwrap(),
        long_chain(),
    ] {
        let kept = chain.certificates().len() - 1;
        let certificates = (0..kept).map(|index| certificate(&chain, index));
        let parts: Vec<_> = certificates.chain([root(&chain)]).collect();
        folder.write("chain.pem", &parts);
        let public = store.public(&PemFiles::new(&file)).unwrap();
        assert_eq!(public.notes, []);
        let said = public.order.unwrap_err().to_string();
        let expected = format!("lacks the issuer of its certificate {kept}, ");
        assert!(said.contains(&expected), "{said}");
    }
}
