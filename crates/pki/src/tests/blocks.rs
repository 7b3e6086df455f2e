//! Files as other tools write them, made anew.

use std::fs;
use std::path::PathBuf;

use lastbyte_sizes::der::{bit_string, element, object_identifier, sequence};
use openssl::asn1::Asn1Time;
use openssl::base64::encode_block;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private};
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::Rsa;
use openssl::sign::Signer;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Name};
use tempfile::TempDir;

use crate::anatomy::pieces;
use crate::keys::ecdsa_signature_bytes;
use crate::{Chain, ChainRole, Note, PemFiles, PublicChain, Store, explain, test_chains};

struct Folder(TempDir);

impl Folder {
    /// With this as its `chain.pem`.
    fn new(chain: &[u8]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("chain.pem", chain);
        folder
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn said<T>(&self, result: Result<T, crate::PkiError>) -> Result<T, String> {
        let folder = self.0.path().to_str().unwrap();
        result.map_err(|error| error.to_string().replace(folder, "DIR"))
    }

    fn public(&self) -> Result<PublicChain, String> {
        let files = PemFiles::new(self.0.path().join("chain.pem"));
        self.said(Store::open(self.0.path().join("store")).public(&files))
    }

    fn own(&self) -> Result<Chain, String> {
        let files = PemFiles::new(self.0.path().join("chain.pem"));
        let store = Store::open(self.0.path().join("store"));
        self.said(store.own(&files, ChainRole::Server))
    }
}

fn block(label: &str, der: &[u8]) -> String {
    let lines = encode_block(der);
    let lines: Vec<_> = lines.as_bytes().chunks(64).collect();
    let lines: String = lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned() + "\n")
        .collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

/// What `openssl x509 -trustout -addtrust serverAuth` writes after the certificate.
fn trust() -> Vec<u8> {
    let server_auth = object_identifier(&[1, 3, 6, 1, 5, 5, 7, 3, 1]);
    sequence(&[&sequence(&[&server_auth])])
}

#[test]
fn certificates_have_three_labels() {
    let chain = test_chains::for_name("shop.example").unwrap();
    let [leaf, issuer] = [0, 1].map(|index| chain.certificates()[index].to_der().unwrap());
    let trusted = [leaf.as_slice(), &trust()].concat();
    let key = chain.key().private_key_to_pem_pkcs8().unwrap();
    for first in [
        block("TRUSTED CERTIFICATE", &trusted),
        block("X509 CERTIFICATE", &leaf),
        block("CERTIFICATE", &leaf),
    ] {
        let folder = Folder::new((first + &block("X509 CERTIFICATE", &issuer)).as_bytes());
        folder.write("key.pem", &key);
        let root = chain.root().to_der().unwrap();
        let root = [root.as_slice(), &trust()].concat();
        folder.write("root.pem", block("TRUSTED CERTIFICATE", &root).as_bytes());
        let public = folder.public().unwrap();
        assert_eq!(
            public.certificate_message_bytes,
            chain.certificate_message_bytes()
        );
        let own = folder.own().unwrap();
        assert_eq!(own.digest(), chain.digest());
        assert!(own.key().public_eq(chain.key()));
    }
}

#[test]
fn what_is_left_out_is_named() {
    let chain = test_chains::for_name("shop.example").unwrap();
    let [leaf, issuer] = [0, 1].map(|index| chain.certificates()[index].to_der().unwrap());
    let [leaf, issuer] = [block("CERTIFICATE", &leaf), block("CERTIFICATE", &issuer)];
    let left_out = |text: String| {
        let notes = Folder::new(text.as_bytes()).public().unwrap().notes;
        match notes.as_slice() {
            [] => Vec::new(),
            [Note::LeftOut { what }] => what.clone(),
            notes => panic!("{notes:?}"),
        }
    };
    let nothing: [&str; 0] = [];
    let parameters = block("EC PARAMETERS", &object_identifier(&[1, 3, 132, 0, 34]));
    assert_eq!(left_out(format!("{leaf}{parameters}")), nothing);
    assert_eq!(left_out(format!("\u{feff}Subject: BEGIN\n{leaf}")), nothing);
    let others = block("X509 CRL", b"0") + &block("PKCS7", b"0") + &block("PKCS7", b"1");
    assert_eq!(
        left_out(format!("{leaf}{others}")),
        ["\"X509 CRL\"", "\"PKCS7\""]
    );
    let line = leaf.lines().count() + 1;
    for begins in [
        " -----BEGIN CERTIFICATE-----",
        "----BEGIN CERTIFICATE-----",
        "-----BEGIN CERTIFICATE----",
        "-----Begin certificate-----",
        "\u{2014}BEGIN CERTIFICATE\u{2014}",
    ] {
        let issuer = issuer.replace("-----BEGIN CERTIFICATE-----", begins);
        let expected = [format!("what begins in line {line}")];
        assert_eq!(left_out(format!("{leaf}{issuer}")), expected, "{begins}");
    }
}

/// At the end of the file, and where another block begins.
#[test]
fn a_block_without_its_end_is_named_by_its_line() {
    let chain = test_chains::for_name("shop.example").unwrap();
    let whole = block("CERTIFICATE", &chain.certificates()[0].to_der().unwrap());
    let cut: String = whole.split_inclusive('\n').take(4).collect();
    let begin = whole.lines().count() + 1;
    for (blocks, line) in [
        (format!("{whole}{cut}"), begin),
        (cut.clone(), 1),
        (format!("{whole}{cut}{whole}"), begin),
    ] {
        let folder = Folder::new(blocks.as_bytes());
        assert_eq!(
            folder.public().unwrap_err(),
            format!(
                "\"DIR/chain.pem\" is cut: the block \"CERTIFICATE\" that begins in line {line} has no line \
                 \"-----END CERTIFICATE-----\""
            )
        );
    }
}

#[test]
fn what_no_server_reads_is_refused_with_the_remedy() {
    let chain = test_chains::for_name("shop.example").unwrap();
    let pem = chain.certificates()[0].to_pem().unwrap();
    let pem = String::from_utf8(pem).unwrap();
    let returns = pem.replace('\n', "\r");
    let said = Folder::new(returns.as_bytes()).public().unwrap_err();
    assert_eq!(
        said,
        "\"DIR/chain.pem\" has lines that end in a carriage return alone, which no server reads: convert it with \
         \"tr '\\r' '\\n' < FILE > FILE.pem\""
    );
    assert!(
        Folder::new(pem.replace('\n', "\r\n").as_bytes())
            .public()
            .is_ok()
    );
    let letters = |bytes: fn(u16) -> [u8; 2], mark: &str| -> Vec<u8> {
        format!("{mark}{pem}")
            .encode_utf16()
            .flat_map(bytes)
            .collect()
    };
    for file in [
        letters(u16::to_le_bytes, "\u{feff}"),
        letters(u16::to_be_bytes, "\u{feff}"),
        letters(u16::to_le_bytes, ""),
    ] {
        let said = Folder::new(&file).public().unwrap_err();
        assert!(said.contains("is UTF-16, which no server reads"), "{said}");
    }
    let folder = Folder::new(pem.as_bytes());
    folder.write("key.pem", block("OPENSSH PRIVATE KEY", b"0").as_bytes());
    let said = folder.own().unwrap_err();
    assert!(
        said.contains("only a key under \"OPENSSH PRIVATE KEY\""),
        "{said}"
    );
}

/// The same certificate with a key of an algorithm that this is the identifier of.
fn with_key(certificate: &X509, algorithm: &[u32], key: &[u8]) -> Vec<u8> {
    let der = certificate.to_der().unwrap();
    let pieces = pieces(&der).unwrap();
    let [from, until] = pieces.validity;
    let identifier = sequence(&[&object_identifier(algorithm)]);
    let signed = sequence(&[
        pieces.before,
        &sequence(&[from, until]),
        pieces.subject,
        &sequence(&[&identifier, &bit_string(key)]),
        pieces.after,
    ]);
    sequence(&[
        &signed,
        pieces.signature_algorithm,
        &bit_string(pieces.signature),
    ])
}

#[test]
fn a_key_that_cannot_sign_is_named() {
    let chain = test_chains::for_name("shop.example").unwrap();
    let issuer = chain.certificates()[1].to_der().unwrap();
    for (algorithm, bytes, name) in [
        (
            &[1, 3, 6, 1, 5, 5, 7, 6, 40][..],
            1377,
            "id-MLDSA44-ECDSA-P256-SHA256",
        ),
        (
            &[2, 16, 840, 1, 101, 3, 4, 3, 32],
            1312,
            "HASH-ML-DSA-44-WITH-SHA512",
        ),
        (
            &[1, 2, 643, 7, 1, 1, 1, 1],
            66,
            "GOST R 34.10-2012 with 256 bit modulus",
        ),
        (&[2, 16, 840, 1, 101, 3, 4, 4, 1], 800, "ML-KEM-512"),
        (&[1, 3, 101, 110], 32, "X25519"),
        (&[1, 3, 9999, 3, 6], 897, "1.3.9999.3.6"),
        (&[1, 2, 3, 4], 10, "1.2.3.4"),
    ] {
        let leaf = with_key(&chain.certificates()[0], algorithm, &vec![7; bytes]);
        let text = block("CERTIFICATE", &leaf) + &block("CERTIFICATE", &issuer);
        let folder = Folder::new(text.as_bytes());
        let public = folder.public().unwrap();
        let said = folder.said(public.signature_bytes()).unwrap_err();
        let expected = format!(
            "\"DIR/chain.pem\" has a key {name} in its first certificate, with which no server"
        );
        assert!(
            said.to_lowercase().starts_with(&expected.to_lowercase()),
            "{said}"
        );
        assert_eq!(folder.own().unwrap_err(), said);
        if ["ML-KEM-512", "X25519"].contains(&name) {
            // OpenSSL reads these, and knows that they have signed nothing.
            continue;
        }
        // Of a CA's, the leaf's signature is known.
        let ca = with_key(&chain.certificates()[1], algorithm, &vec![7; bytes]);
        let leaf = chain.certificates()[0].to_der().unwrap();
        let text = block("CERTIFICATE", &leaf) + &block("CERTIFICATE", &ca);
        let folder = Folder::new(text.as_bytes());
        assert!(folder.public().unwrap().signature_bytes().is_ok());
        let said = folder.own().unwrap_err();
        assert!(
            said.to_lowercase()
                .contains(&format!("key {name} in its certificate 2").to_lowercase()),
            "{said}"
        );
    }
}

fn ec(curve: Nid) -> PKey<Private> {
    let group = EcGroup::from_curve_name(curve).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

#[test]
fn signatures_of_ecdsa_are_as_long_as_is_said() {
    for (curve, name, expected) in [
        (Nid::X9_62_PRIME256V1, "ecdsa-p256", [70, 71, 72]),
        (Nid::SECP384R1, "ecdsa-p384", [102, 103, 104]),
        (Nid::SECP521R1, "ecdsa-p521", [137, 139, 139]),
        (Nid::BRAINPOOL_P256R1, "ecdsa-brainpoolP256r1", [70, 70, 72]),
        (
            Nid::BRAINPOOL_P384R1,
            "ecdsa-brainpoolP384r1",
            [102, 102, 104],
        ),
        (
            Nid::BRAINPOOL_P512R1,
            "ecdsa-brainpoolP512r1",
            [135, 135, 137],
        ),
    ] {
        let key = ec(curve);
        let mut order = BigNum::new().unwrap();
        let mut context = openssl::bn::BigNumContext::new().unwrap();
        let group = EcGroup::from_curve_name(curve).unwrap();
        group.order(&mut order, &mut context).unwrap();
        assert_eq!(ecdsa_signature_bytes(&order.to_vec()), expected, "{name}");
        let mut counts = [0; 160];
        for number in 0..400_u32 {
            let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
            let signature = signer.sign_oneshot_to_vec(&number.to_be_bytes());
            counts[signature.unwrap().len()] += 1;
        }
        let likeliest = (0..160).max_by_key(|length| counts[*length]).unwrap();
        assert_eq!(likeliest, expected[1], "{name}");
        let shorter: u32 = counts[..expected[0]].iter().sum();
        assert!(
            counts[expected[0]] > 0 && shorter <= 12,
            "{name}: {counts:?}"
        );
        assert!(
            counts[expected[2] + 1..].iter().all(|count| *count == 0),
            "{name}"
        );

        let leaf = certificate("shop.example", &key, None);
        assert_eq!(explain(&leaf).unwrap().key, name);
        let folder = Folder::new(&leaf.to_pem().unwrap());
        assert_eq!(
            folder.public().unwrap().signature_bytes().unwrap(),
            expected
        );
    }
    let leaf = certificate("shop.example", &ec(Nid::SECP256K1), None);
    let folder = Folder::new(&leaf.to_pem().unwrap());
    let said = folder
        .public()
        .unwrap()
        .signature_bytes()
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("has a key ecdsa-secp256k1 in its first certificate"),
        "{said}"
    );
}

/// A certificate of a CA or, where its name has a dot, of a server; self-signed without an issuer.
fn certificate(name: &str, key: &PKey<Private>, issuer: Option<(&X509, &PKey<Private>)>) -> X509 {
    let mut subject = X509Name::builder().unwrap();
    subject.append_entry_by_text("CN", name).unwrap();
    let subject = subject.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let number = BigNum::from_u32(7).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&number).unwrap();
    builder.set_subject_name(&subject).unwrap();
    let issuer_name = issuer.map_or(&*subject, |(issuer, _)| issuer.subject_name());
    builder.set_issuer_name(issuer_name).unwrap();
    builder.set_pubkey(key).unwrap();
    builder
        .set_not_before(&Asn1Time::days_from_now(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::days_from_now(30).unwrap())
        .unwrap();
    let extension = if name.contains('.') {
        let context = builder.x509v3_context(None, None);
        SubjectAlternativeName::new()
            .dns(name)
            .build(&context)
            .unwrap()
    } else {
        BasicConstraints::new().critical().ca().build().unwrap()
    };
    builder.append_extension(extension).unwrap();
    let signer = issuer.map_or(key, |(_, key)| key);
    builder.sign(signer, MessageDigest::sha256()).unwrap();
    builder.build()
}

#[test]
fn a_ca_may_have_a_certificate_of_each_root() {
    let [key, ca_key, old_key, new_key] = [(); 4].map(|()| ec(Nid::X9_62_PRIME256V1));
    let old = certificate("Old root", &old_key, None);
    let new = certificate("New root", &new_key, None);
    let ca = certificate("CA", &ca_key, Some((&new, &new_key)));
    let cross = certificate("CA", &ca_key, Some((&old, &old_key)));
    let leaf = certificate("shop.example", &key, Some((&ca, &ca_key)));
    let pem =
        |all: &[&X509]| -> Vec<u8> { all.iter().flat_map(|one| one.to_pem().unwrap()).collect() };
    let file = |all: &[&X509]| Folder::new(&pem(all));
    for (sent, root) in [([&leaf, &ca, &cross], &new), ([&leaf, &cross, &ca], &old)] {
        let folder = file(&sent);
        let public = folder.public().unwrap();
        assert!(public.order.is_ok(), "{:?}", public.order);
        let message = public.certificate_message_bytes;
        assert_eq!(folder.own().unwrap().certificate_message_bytes(), message);
        folder.write("key.pem", &key.private_key_to_pem_pkcs8().unwrap());
        // OpenSSL follows the one that comes first.
        folder.write("root.pem", &root.to_pem().unwrap());
        let own = folder.own().unwrap();
        assert_eq!(own.certificate_message_bytes(), message);
    }
    let said = file(&[&ca, &cross, &leaf]).own().unwrap_err();
    assert!(
        said.contains("put its certificates in the order 3, 1, 2"),
        "{said}"
    );
    let said = file(&[&leaf, &ca, &new, &cross, &old]).own();
    assert!(said.is_ok(), "{said:?}");
}

#[test]
fn a_name_is_shown_whatever_it_is_made_of() {
    use crate::explain::name;
    let oid = object_identifier(&[2, 5, 4, 45]);
    let attribute = |value: Vec<u8>| element(0x31, &sequence(&[&oid, &value]));
    for (value, shown) in [
        (bit_string(b"box"), "#030400626f78"),
        (element(0x0c, "Bücher".as_bytes()), "Bücher"),
        (element(0x1e, b"\0B\0\xfc"), "Bü"),
        (element(0x30, &[]), "#3000"),
    ] {
        let der = sequence(&[&attribute(value)]);
        let made = X509Name::from_der(&der).unwrap();
        assert_eq!(
            name(&made).unwrap(),
            format!("x500UniqueIdentifier={shown}")
        );
    }
}

/// Keys with which nobody has TLS 1.3, although there are signatures of them.
#[test]
fn keys_that_nobody_takes_in_tls_1_3_are_noted() {
    let rsa = |bits| PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap();
    let ca_key = ec(Nid::X9_62_PRIME256V1);
    let ca = certificate("CA", &ca_key, None);
    for (key, expected) in [
        (
            ec(Nid::BRAINPOOL_P256R1),
            Some("ecdsa-brainpoolP256r1, with which servers"),
        ),
        (rsa(1024), Some("RSASSA-PSS with SHA-512 does not fit it")),
        (
            rsa(1536),
            Some("they take RSA of 2048 bits or more: take one"),
        ),
        (rsa(2048), None),
        (ec(Nid::SECP521R1), None),
        (PKey::generate_ed448().unwrap(), None),
    ] {
        let leaf = certificate("shop.example", &key, Some((&ca, &ca_key)));
        let folder = Folder::new(&leaf.to_pem().unwrap());
        let notes = folder.public().unwrap().notes;
        let said: String = notes.iter().map(Note::to_string).collect();
        match expected {
            Some(expected) => assert!(said.contains(expected), "{said}"),
            None => assert_eq!(said, ""),
        }
    }
}

#[test]
fn a_key_of_rsassa_pss_has_a_stand_in() {
    let mut context = PkeyCtx::new_id(Id::RSA_PSS).unwrap();
    context.keygen_init().unwrap();
    context.set_rsa_keygen_bits(2048).unwrap();
    let (key, ca_key) = (context.keygen().unwrap(), ec(Nid::X9_62_PRIME256V1));
    let ca = certificate("CA", &ca_key, None);
    let leaf = certificate("shop.example", &key, Some((&ca, &ca_key)));
    let folder = Folder::new(&[leaf, ca].map(|one| one.to_pem().unwrap()).concat());
    let own = folder.own().unwrap();
    assert_eq!(own.key().id(), Id::RSA_PSS);
    let message = folder.public().unwrap().certificate_message_bytes;
    assert_eq!(own.certificate_message_bytes(), message);
}

#[test]
fn a_merkle_tree_certificate_is_called_one() {
    const ECDSA_WITH_SHA_256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    const MTC_PROOF: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 6, 67];
    let leaf = certificate("shop.example", &ec(Nid::X9_62_PRIME256V1), None);
    let mut der = leaf.to_der().unwrap();
    let places = (0..der.len()).filter(|at| der[*at..].starts_with(&ECDSA_WITH_SHA_256));
    for at in places.collect::<Vec<_>>() {
        der[at..at + MTC_PROOF.len()].copy_from_slice(&MTC_PROOF);
    }
    let folder = Folder::new(block("CERTIFICATE", &der).as_bytes());
    assert_eq!(folder.public().unwrap().notes, [Note::MerkleTree]);
    let said = folder.own().unwrap_err();
    assert!(said.contains("holds a Merkle Tree Certificate"), "{said}");
}
