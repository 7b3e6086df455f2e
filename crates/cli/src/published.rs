//! Sizes that papers state, beside those of the standards and of the chains made here.

use std::fmt::{self, Write};

use lastbyte_pki::SlhDsa::Sha2_192f;
use lastbyte_pki::{AlgorithmSizes, ChainSpec, KeyAlgorithm, RootDelivery, sizes};

const KIB: f64 = 1024.0;

/// A row of table I of "The impact of data-heavy, post-quantum TLS 1.3 on the Time-To-Last-Byte of
/// real-world connections" (2024), in KB, as far as it is of signatures.
struct KeyAndSignature {
    algorithm: KeyAlgorithm,
    public_key: f64,
    signature: f64,
}

const fn row(algorithm: KeyAlgorithm, public_key: f64, signature: f64) -> KeyAndSignature {
    KeyAndSignature {
        algorithm,
        public_key,
        signature,
    }
}

const TTLB_TABLE_1: [KeyAndSignature; 5] = [
    row(KeyAlgorithm::EcdsaP384, 0.05, 0.1),
    row(KeyAlgorithm::Rsa3072, 0.4, 0.4),
    row(KeyAlgorithm::MlDsa44, 1.3, 2.4),
    row(KeyAlgorithm::MlDsa65, 2.0, 3.3),
    row(KeyAlgorithm::MlDsa87, 1.6, 4.6),
];

/// "TLS 1.3 authentication data" in KB, of the same paper, section III: the algorithm, the
/// certificates that are sent, the number.
const TTLB_AUTHENTICATION_DATA: [(KeyAlgorithm, usize, usize); 5] = [
    (KeyAlgorithm::MlDsa44, 2, 14),
    (KeyAlgorithm::MlDsa65, 2, 19),
    (KeyAlgorithm::MlDsa44, 1, 11),
    (KeyAlgorithm::MlDsa65, 1, 14),
    (KeyAlgorithm::MlDsa87, 1, 20),
];

/// Rows of table II of "PQTLS-AD: Post-Quantum TLS Accelerated with DNS" in bytes: its name for the
/// signature, the standard's, whether the root is sent, Certificate, CertificateVerify.
const PQTLS_AD_TABLE_2: [(&str, KeyAlgorithm, RootDelivery, usize, usize); 5] = {
    use RootDelivery::{Omitted, Sent};
    const SLH_DSA: KeyAlgorithm = KeyAlgorithm::SlhDsa(Sha2_192f);
    [
        ("SHA256ECDSA", KeyAlgorithm::EcdsaP256, Sent, 1120, 75),
        ("DILITHIUM3", KeyAlgorithm::MlDsa65, Sent, 10934, 3297),
        ("DILITHIUM3", KeyAlgorithm::MlDsa65, Omitted, 5433, 3297),
        ("SPHINCS+-192f", SLH_DSA, Sent, 71829, 35668),
        ("SPHINCS+-192f", SLH_DSA, Omitted, 35880, 35668),
    ]
};

/// What a header of a handshake message takes (RFC 8446, section 4).
const HEADER: usize = 4;

/// All of them, for people to read.
pub(super) fn tables() -> String {
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = write_tables(&mut text);
    text
}

fn write_tables(text: &mut String) -> fmt::Result {
    let sizes = sizes();
    write_keys_and_signatures(text, &sizes)?;
    write_authentication_data(text, &sizes)?;
    write_messages(text, &sizes)
}

/// What is here of an algorithm, if anything.
fn of(sizes: &[AlgorithmSizes], algorithm: KeyAlgorithm) -> Option<&AlgorithmSizes> {
    sizes.iter().find(|row| row.algorithm == algorithm)
}

fn write_keys_and_signatures(text: &mut String, sizes: &[AlgorithmSizes]) -> fmt::Result {
    writeln!(
        text,
        "Time-to-last-byte paper, table I: KB, and bytes here.\n"
    )?;
    let titles = ["key KB", "key", "sig KB", "sig"];
    writeln!(text, "{:<18}{}", "algorithm", columns(titles))?;
    for row in TTLB_TABLE_1 {
        let Some(here) = of(sizes, row.algorithm) else {
            continue;
        };
        let cells = [
            row.public_key.to_string(),
            here.public_key.to_string(),
            row.signature.to_string(),
            here.signature.to_string(),
        ];
        let cells = columns(cells.each_ref().map(String::as_str));
        writeln!(text, "{:<18}{cells}", row.algorithm)?;
    }
    text.push_str(
        "\nIts key of ml-dsa-87 is as long as its key of ML-KEM-1024; FIPS 204 has 2592 bytes.\n\n",
    );
    Ok(())
}

fn write_authentication_data(text: &mut String, sizes: &[AlgorithmSizes]) -> fmt::Result {
    writeln!(
        text,
        "Its authentication data, section III: a CertificateVerify's signature, SCTs' signatures, and\n\
         a signature and a key of each certificate sent. Published KB, and KiB here.\n"
    )?;
    let titles = ["certs", "KB", "2 SCTs", "3 SCTs"];
    writeln!(text, "{:<18}{}", "algorithm", columns(titles))?;
    for (algorithm, certificates, published) in TTLB_AUTHENTICATION_DATA {
        let Some(here) = of(sizes, algorithm) else {
            continue;
        };
        let kib = |scts| {
            format!(
                "{:.1}",
                authentication_data(here, certificates, scts) as f64 / KIB
            )
        };
        let cells = [
            certificates.to_string(),
            published.to_string(),
            kib(2),
            kib(3),
        ];
        let cells = columns(cells.each_ref().map(String::as_str));
        writeln!(text, "{algorithm:<18}{cells}")?;
    }
    text.push_str(
        "\nThe text says three SCTs; all its numbers are within 1 KiB of two, and 2 to 6 KiB below three.\n\
         With 1.6 KB for its key, two SCTs make 20.0 KB of ml-dsa-87.\n\n",
    );
    Ok(())
}

fn write_messages(text: &mut String, sizes: &[AlgorithmSizes]) -> fmt::Result {
    writeln!(
        text,
        "PQTLS-AD, table II: bytes without the messages' headers, published and here, of an\n\
         end-entity and its root.\n"
    )?;
    let titles = ["cert", "here", "verify", "here"];
    writeln!(text, "{:<18}{:<10}{}", "signature", "root", columns(titles))?;
    for (name, algorithm, root, certificate, verify) in PQTLS_AD_TABLE_2 {
        let Some(here) = of(sizes, algorithm) else {
            continue;
        };
        let spec = ChainSpec {
            intermediates: 0,
            root,
            ..ChainSpec::new(algorithm)
        };
        let delivery = match root {
            RootDelivery::Sent => "sent",
            RootDelivery::Omitted => "omitted",
        };
        let cells = [
            certificate,
            spec.unpadded_bytes() - HEADER,
            verify,
            here.certificate_verify - HEADER,
        ];
        let cells = columns(
            cells
                .map(|bytes| bytes.to_string())
                .each_ref()
                .map(String::as_str),
        );
        writeln!(text, "{name:<18}{delivery:<10}{cells}")?;
    }
    text.push_str(
        "\nOur certificates say more, as a public CA's do. A signature of DILITHIUM3 has 3293 bytes, one\n\
         of ml-dsa-65 3309.\n",
    );
    Ok(())
}

/// Bytes of the keys and signatures alone.
fn authentication_data(sizes: &AlgorithmSizes, certificates: usize, scts: usize) -> usize {
    let signatures = 1 + scts + certificates;
    signatures * sizes.signature + certificates * sizes.public_key
}

fn columns(cells: [&str; 4]) -> String {
    cells.map(|cell| format!("{cell:>8}")).concat()
}

#[cfg(test)]
mod tests {
    #[test]
    fn published_sizes_stand_beside_ours() {
        insta::assert_snapshot!(super::tables());
    }
}
