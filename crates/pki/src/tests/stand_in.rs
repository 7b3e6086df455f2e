//! What stands in for chains whose keys are elsewhere.
use std::fs;

use lastbyte_sizes::ChainRole;
use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{
    AuthorityKeyIdentifier, BasicConstraints, KeyUsage, SubjectAlternativeName,
    SubjectKeyIdentifier,
};
use openssl::x509::{X509, X509Name};

use crate::anatomy::pieces;
use crate::{
    Chain, ChainSpec, KeyAlgorithm, Missing, Note, PemFiles, RootDelivery, SlhDsa, Store, anatomy,
    test_chains,
};

/// Writes these certificates alone, and has something stand in for them.
fn stand_in(certificates: &[X509]) -> Result<Chain, String> {
    let folder = tempfile::tempdir().unwrap();
    stand_in_from(folder.path(), certificates)
}

fn stand_in_from(folder: &std::path::Path, certificates: &[X509]) -> Result<Chain, String> {
    let pem: Vec<u8> = certificates
        .iter()
        .flat_map(|certificate| certificate.to_pem().unwrap())
        .collect();
    fs::write(folder.join("chain.pem"), pem).unwrap();
    let files = PemFiles::new(folder.join("chain.pem"));
    let store = Store::open(folder.join("store"));
    let chain = store.own(&files, ChainRole::Server);
    chain.map_err(|error| error.to_string())
}

/// The same names, numbers, algorithms, extensions and sizes; other keys and signatures.
fn assert_alike(original: &X509, made: &X509) {
    let [original, made] = [original, made].map(|certificate| certificate.to_der().unwrap());
    assert_eq!(anatomy(&original).unwrap(), anatomy(&made).unwrap());
    assert_eq!(original.len(), made.len());
    let [original, made] = [&original, &made].map(|der| pieces(der).unwrap());
    assert_eq!(original.before, made.before);
    assert_eq!(original.validity, made.validity);
    assert_eq!(original.subject, made.subject);
    assert_eq!(original.key_algorithm, made.key_algorithm);
    assert_eq!(original.after, made.after);
    assert_eq!(original.signature_algorithm, made.signature_algorithm);
    assert_ne!(original.key, made.key);
    assert_ne!(original.signature, made.signature);
}

fn assert_stands_in(chain: &Chain, original: &[X509]) {
    assert_eq!(chain.certificates().len(), original.len());
    for (original, made) in original.iter().zip(chain.certificates()) {
        assert_alike(original, made);
    }
    let public = chain.certificates()[0].public_key().unwrap();
    assert!(public.public_eq(chain.key()));
    assert_eq!(chain.notes(), [Note::StandIn(Missing::Key)]);
}

#[test]
fn every_algorithm_has_its_stand_in() {
    for algorithm in [
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::EcdsaP384,
        KeyAlgorithm::Rsa2048,
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
        KeyAlgorithm::SlhDsa(SlhDsa::Sha2_128f),
        KeyAlgorithm::FnDsa512,
        KeyAlgorithm::FnDsa1024,
    ] {
        for intermediates in [0, 2] {
            let spec = ChainSpec {
                intermediates,
                scts: 2,
                ..ChainSpec::new(algorithm)
            };
            let original = super::Maker::new(spec).chain(None);
            let chain = stand_in(original.certificates()).unwrap();
            assert_stands_in(&chain, original.certificates());
            assert_eq!(chain.server_name(), original.server_name());
            assert_eq!(
                chain.certificate_message_bytes(),
                original.certificate_message_bytes()
            );
        }
    }
}

#[test]
fn a_root_that_is_known_has_its_stand_in_too() {
    let spec = ChainSpec {
        root: RootDelivery::Sent,
        ca: KeyAlgorithm::Rsa3072,
        root_key: KeyAlgorithm::EcdsaP384,
        ..ChainSpec::new(KeyAlgorithm::MlDsa44)
    };
    let original = super::Maker::new(spec).chain(None);
    let chain = stand_in(original.certificates()).unwrap();
    let [leaf, intermediate, root] = original.certificates() else {
        panic!()
    };
    for (original, made) in [leaf, intermediate].into_iter().zip(chain.certificates()) {
        assert_alike(original, made);
    }
    assert_alike(root, chain.root());
}

/// Repeated runs have the same certificates.
#[test]
fn a_stand_in_is_made_once() {
    let original = test_chains::for_name("shop.example").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let first = stand_in_from(folder.path(), original.certificates()).unwrap();
    let again = stand_in_from(folder.path(), original.certificates()).unwrap();
    assert_eq!(first.digest(), again.digest());
    assert!(first.key().public_eq(again.key()));
    // Of another chain, it is another one.
    let other = test_chains::for_name("shop.example").unwrap();
    let other = stand_in_from(folder.path(), other.certificates()).unwrap();
    assert_ne!(first.digest(), other.digest());
    // One that is damaged is made anew.
    let kept = folder.path().join("store/stand-ins");
    for entry in fs::read_dir(kept).unwrap() {
        fs::write(entry.unwrap().path().join("key.pem"), "").unwrap();
    }
    let anew = stand_in_from(folder.path(), original.certificates()).unwrap();
    assert_ne!(first.digest(), anew.digest());
}

#[test]
fn a_key_without_its_root_is_not_enough() {
    let original = test_chains::for_name("shop.example").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key = original.key().private_key_to_pem_pkcs8().unwrap();
    fs::write(folder.path().join("privkey.pem"), key).unwrap();
    let chain = stand_in_from(folder.path(), original.certificates()).unwrap();
    assert_eq!(chain.notes(), [Note::StandIn(Missing::Root)]);
    assert!(!chain.key().public_eq(original.key()));
}

#[test]
fn what_is_not_valid_today_is_in_its_stand_in() {
    for original in [test_chains::expired(), test_chains::not_yet_valid()] {
        let original = original.unwrap();
        let chain = stand_in(original.certificates()).unwrap();
        let [leaf, intermediate] = chain.certificates() else {
            panic!()
        };
        let now = Asn1Time::days_from_now(0).unwrap();
        assert!(leaf.not_before() < now && leaf.not_after() > now);
        assert_alike(&original.certificates()[1], intermediate);
        assert_eq!(
            chain.certificate_message_bytes(),
            original.certificate_message_bytes()
        );
        let numbers = vec![1];
        assert_eq!(
            chain.notes(),
            [Note::StandIn(Missing::Key), Note::Extended { numbers }]
        );
    }
}

/// A key, and the digest that it signs with.
type Signer = (PKey<Private>, MessageDigest);

/// As a CA that is not ours would issue it.
fn issue(subject: &str, key: &PKey<Private>, issuer: Option<&X509>, signer: &Signer) -> X509 {
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_text("O", "Ünïted Certificates")
        .unwrap();
    name.append_entry_by_text("CN", subject).unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder
        .set_serial_number(&BigNum::from_u32(77).unwrap().to_asn1_integer().unwrap())
        .unwrap();
    builder.set_subject_name(&name).unwrap();
    builder
        .set_issuer_name(issuer.map_or(&name, |issuer| issuer.subject_name()))
        .unwrap();
    builder
        .set_not_before(&Asn1Time::days_from_now(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::days_from_now(20_000).unwrap())
        .unwrap();
    builder.set_pubkey(key).unwrap();
    let context = builder.x509v3_context(issuer.map(|issuer| &**issuer), None);
    let mut extensions = vec![SubjectKeyIdentifier::new().build(&context).unwrap()];
    if issuer.is_some() {
        let mut identifier = AuthorityKeyIdentifier::new();
        // Some name their issuer by its number and its own issuer, which is the root itself here.
        let identifier = identifier.keyid(true).issuer(subject == "Intermediate");
        extensions.push(identifier.build(&context).unwrap());
    }
    if subject.contains('.') {
        let names = SubjectAlternativeName::new().dns(subject).build(&context);
        extensions.push(names.unwrap());
    } else {
        let ca = BasicConstraints::new().critical().ca().build();
        extensions.push(ca.unwrap());
        let usage = KeyUsage::new().critical().key_cert_sign().build();
        extensions.push(usage.unwrap());
    }
    for extension in extensions {
        builder.append_extension(extension).unwrap();
    }
    builder.sign(&signer.0, signer.1).unwrap();
    builder.build()
}

fn ec(curve: Nid) -> PKey<Private> {
    let group = EcGroup::from_curve_name(curve).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

/// Keys that no chain of ours has, and signatures with other digests.
#[test]
fn chains_of_others_have_their_stand_ins() {
    let three = BigNum::from_u32(3).unwrap();
    let rsa = |bits| PKey::from_rsa(Rsa::generate_with_e(bits, &three).unwrap()).unwrap();
    let (none, sha256) = (MessageDigest::null(), MessageDigest::sha256());
    let sha512 = MessageDigest::sha512();
    let signers: [(Signer, Signer); 5] = [
        (
            (PKey::generate_ed25519().unwrap(), none),
            (rsa(2048), sha512),
        ),
        (
            (rsa(2432), sha256),
            (PKey::generate_ed25519().unwrap(), none),
        ),
        ((ec(Nid::SECP521R1), sha512), (ec(Nid::SECP384R1), sha256)),
        (
            (ec(Nid::X9_62_PRIME256V1), sha256),
            (PKey::generate_ed448().unwrap(), none),
        ),
        (
            (rsa(3072), MessageDigest::sha384()),
            (ec(Nid::SECP521R1), sha512),
        ),
    ];
    for (leaf, ca) in signers {
        let root = issue("Root", &ca.0, None, &ca);
        let intermediate = issue("Intermediate", &ca.0, Some(&root), &ca);
        let certificate = issue("shop.example", &leaf.0, Some(&intermediate), &ca);
        // The root is in the file, or nobody has seen it.
        let chain = stand_in(&[certificate.clone(), intermediate.clone()]).unwrap();
        assert_stands_in(&chain, &[certificate.clone(), intermediate.clone()]);
        let chain = stand_in(&[certificate.clone(), intermediate, root.clone()]).unwrap();
        assert_alike(&root, chain.root());
        assert_eq!(chain.key().id(), leaf.0.id());
        // On its own.
        let chain = stand_in(slice_of(&certificate)).unwrap();
        assert_stands_in(&chain, slice_of(&certificate));
    }
}

fn slice_of(certificate: &X509) -> &[X509] {
    std::slice::from_ref(certificate)
}

#[test]
fn what_can_not_be_made_is_named() {
    let ca = (ec(Nid::X9_62_PRIME256V1), MessageDigest::sha256());
    let root = issue("Root", &ca.0, None, &ca);
    let key = PKey::generate_x25519().unwrap();
    assert_eq!(key.id(), Id::X25519);
    let certificate = issue("shop.example", &key, Some(&root), &ca);
    let said = stand_in(&[certificate, root]).unwrap_err();
    let expected =
        "has a key X25519 in its first certificate, with which no server here can sign in TLS 1.3";
    assert!(said.contains(expected), "{said}");
}
