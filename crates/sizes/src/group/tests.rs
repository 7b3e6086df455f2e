#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

#[test]
fn names_and_code_points_are_those_of_iana() {
    let table = [
        (Group::Secp256r1, "secp256r1", 23),
        (Group::X25519, "x25519", 29),
        (Group::Secp384r1, "secp384r1", 24),
        (Group::Secp256r1MlKem768, "SecP256r1MLKEM768", 4587),
        (Group::X25519MlKem768, "X25519MLKEM768", 4588),
        (Group::Secp384r1MlKem1024, "SecP384r1MLKEM1024", 4589),
        (Group::MlKem768, "MLKEM768", 513),
        (Group::MlKem1024, "MLKEM1024", 514),
    ];
    assert_eq!(table.map(|(group, ..)| group), Group::ALL);
    for (group, name, code_point) in table {
        assert_eq!(group.to_string(), name);
        assert_eq!(group.code_point(), code_point);
        assert_eq!(name.parse(), Ok(group));
        assert_eq!(crate::names::group(code_point), Some(name));
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let table = [
        ("P256", "secp256r1"),
        ("P-256", "secp256r1"),
        ("prime256v1", "secp256r1"),
        ("SECP256R1", "secp256r1"),
        ("secp256k1", "secp256r1"),
        ("X25519", "x25519"),
        ("curve25519", "x25519"),
        ("P-384", "secp384r1"),
        ("secp256r1mlkem768", "SecP256r1MLKEM768"),
        ("p256_mlkem768", "SecP256r1MLKEM768"),
        ("X25519-ML-KEM-768", "X25519MLKEM768"),
        ("x25519_kyber768", "X25519MLKEM768"),
        ("ML-KEM-768", "MLKEM768"),
        ("mlkem-1024", "MLKEM1024"),
    ];
    for (text, nearest) in table {
        assert_eq!(
            text.parse::<Group>().unwrap_err().to_string(),
            format!("unknown group {text:?}: did you mean \"{nearest}\"?"),
        );
    }
}

#[test]
fn a_name_like_no_other_is_answered_with_all() {
    assert_eq!(
        "".parse::<Group>().unwrap_err().to_string(),
        "unknown group \"\": use one of secp256r1, x25519, secp384r1, SecP256r1MLKEM768, \
         X25519MLKEM768, SecP384r1MLKEM1024, MLKEM768, MLKEM1024",
    );
}

proptest! {
    #[test]
    fn any_text_is_a_name_or_an_error_of_one_line(text: String) {
        match text.parse::<Group>() {
            Ok(group) => prop_assert_eq!(group.name(), text),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
