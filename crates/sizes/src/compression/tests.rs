#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn names_and_code_points_are_those_of_iana() {
    let known: Vec<_> = CertificateCompression::ALL
        .map(|algorithm| (algorithm.code_point(), algorithm.to_string()))
        .into();
    let registry = [(1, "zlib"), (2, "brotli"), (3, "zstd")];
    assert_eq!(known, registry.map(|(code, name)| (code, name.to_owned())));
    for algorithm in CertificateCompression::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        let code_point = algorithm.code_point();
        assert_eq!(
            CertificateCompression::of_code_point(code_point),
            Some(algorithm)
        );
    }
    assert_eq!(CertificateCompression::of_code_point(0), None);
    assert_eq!(CertificateCompression::of_code_point(4), None);
}

#[test]
fn another_name_is_answered_with_the_nearest_or_with_all() {
    let table = [
        ("Brotli", "did you mean \"brotli\"?"),
        ("br", "did you mean \"brotli\"?"),
        ("zlip", "did you mean \"zlib\"?"),
        ("gzip", "did you mean \"zlib\"?"),
        ("zst", "did you mean \"zstd\"?"),
        ("zstandard", "did you mean \"zstd\"?"),
        ("", "use one of zlib, brotli, zstd"),
        ("none", "use one of zlib, brotli, zstd"),
    ];
    for (text, hint) in table {
        let error = text.parse::<CertificateCompression>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("unknown certificate compression {text:?}: {hint}")
        );
    }
}
