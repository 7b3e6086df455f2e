use proptest::prelude::*;

use super::{Maker, mixed};
use crate::{
    ChainError, ChainRole, ChainSpec, KeyAlgorithm, PaddedCertificate, RootDelivery, sizes,
};

#[test]
fn real_certificates_have_the_sizes_of_the_table() {
    for (row, (_, chain)) in sizes().into_iter().zip(super::chains()) {
        let der = chain.certificates().iter().chain([chain.root()]);
        let der: Vec<_> = der
            .map(|certificate| certificate.to_der().unwrap().len())
            .collect();
        assert_eq!(
            der,
            [row.end_entity, row.intermediate, row.root],
            "{}",
            row.algorithm
        );
        assert_eq!(
            chain.certificate_message_bytes(),
            row.certificate_message[1]
        );
    }
}

#[test]
fn any_number_of_intermediates_and_a_root_are_counted() {
    for intermediates in 0..=ChainSpec::MAX_INTERMEDIATES {
        for root in [RootDelivery::Omitted, RootDelivery::Sent] {
            let spec = ChainSpec {
                intermediates,
                root,
                ..mixed()
            };
            let unpadded = spec.unpadded_bytes();
            let chain = Maker::new(spec).chain(None);
            let sent = usize::from(intermediates) + 1 + usize::from(root == RootDelivery::Sent);
            assert_eq!(chain.certificates().len(), sent);
            assert_eq!(chain.certificate_message_bytes(), unpadded);
        }
    }
}

/// Each size is made and signed, from no padding to well past the sizes at which
/// the padding's own lengths grow.
fn every_small_size_is_reached(algorithm: KeyAlgorithm, step: usize) {
    let maker = Maker::new(ChainSpec::new(algorithm));
    let unpadded = maker.spec.unpadded_bytes();
    for bytes in (unpadded..=unpadded + 400).step_by(step) {
        let chain = maker.chain(Some(bytes));
        assert_eq!(chain.certificate_message_bytes(), bytes, "{algorithm}");
    }
}

/// Each size is computed, and every `step`th is made and signed, around those at
/// which the lengths grow to three bytes.
fn every_large_size_is_reached(algorithm: KeyAlgorithm, step: usize) {
    let maker = Maker::new(ChainSpec::new(algorithm));
    let unpadded = maker.spec.unpadded_bytes();
    for bytes in 65_536..=65_536 + unpadded + 64 {
        let spec = ChainSpec {
            certificate_bytes: Some(bytes),
            ..maker.spec.clone()
        };
        let padding = lastbyte_sizes::padding(&spec).unwrap();
        assert_eq!(
            lastbyte_sizes::message_bytes(&spec, &padding),
            bytes,
            "{algorithm}"
        );
        if bytes % step == 0 {
            assert_eq!(maker.chain(Some(bytes)).certificate_message_bytes(), bytes);
        }
    }
}

#[test]
fn every_size_is_reached_with_rsa() {
    every_small_size_is_reached(KeyAlgorithm::Rsa2048, 1);
    every_large_size_is_reached(KeyAlgorithm::Rsa2048, 23);
}

#[test]
fn every_size_is_reached_with_ecdsa() {
    every_small_size_is_reached(KeyAlgorithm::EcdsaP256, 1);
    every_large_size_is_reached(KeyAlgorithm::EcdsaP256, 23);
}

#[test]
fn every_size_is_reached_with_ml_dsa() {
    every_small_size_is_reached(KeyAlgorithm::MlDsa65, 7);
}

#[test]
fn the_largest_size_is_reached_and_none_above() {
    let largest = ChainSpec {
        certificate_bytes: Some(ChainSpec::MAX_CERTIFICATE_BYTES),
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    assert!(largest.validate().is_ok());
    let chain = Maker::new(largest.clone()).chain(largest.certificate_bytes);
    assert_eq!(chain.certificate_message_bytes(), 16_777_219);

    let above = ChainSpec {
        certificate_bytes: Some(16_777_220),
        ..largest
    };
    assert_eq!(
        above.validate().unwrap_err().to_string(),
        "chain \"ecdsa-p256:16777220B\": the length of a TLS handshake message has 24 bits; \
         ask for 16777219B or less"
    );
}

/// Compression must not see through it.
#[test]
fn padding_is_not_repetitive() {
    let maker = Maker::new(ChainSpec::new(KeyAlgorithm::EcdsaP256));
    let der = maker
        .chain(Some(10_000))
        .certificates()
        .first()
        .unwrap()
        .to_der()
        .unwrap();
    let mut counts = [0; 256];
    for byte in der {
        counts[usize::from(byte)] += 1;
    }
    assert!(
        counts.iter().all(|count| (1..200).contains(count)),
        "{counts:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is padded, and whatever else the chain holds.
    #[test]
    fn any_certificate_is_padded_exactly(
        intermediates in 0..=ChainSpec::MAX_INTERMEDIATES,
        root in prop::sample::select(vec![RootDelivery::Omitted, RootDelivery::Sent]),
        padding in prop::sample::select(vec![PaddedCertificate::EndEntity, PaddedCertificate::Last]),
        role in prop::sample::select(vec![ChainRole::Server, ChainRole::Client]),
        scts in 0..=ChainSpec::MAX_SCTS,
        more in prop_oneof![0..400_usize, 60_000..70_000_usize],
    ) {
        let plain = ChainSpec {
            role,
            intermediates,
            root,
            padding,
            scts,
            ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
        };
        let bytes = plain.unpadded_bytes() + more;
        let spec = ChainSpec { certificate_bytes: Some(bytes), ..plain.clone() };
        match spec.validate() {
            Ok(()) => {
                let chain = Maker::new(plain.clone()).chain(Some(bytes));
                prop_assert_eq!(chain.certificate_message_bytes(), bytes);
                let unpadded = Maker::new(plain).chain(None);
                let grown: Vec<usize> = chain
                    .certificates()
                    .iter()
                    .zip(unpadded.certificates())
                    .map(|(padded, plain)| {
                        padded.to_der().unwrap().len() - plain.to_der().unwrap().len()
                    })
                    .collect();
                // The others grow by a few bytes at most, to fill gaps.
                let padded = match padding {
                    PaddedCertificate::EndEntity => 0,
                    PaddedCertificate::Last => grown.len() - 1,
                };
                let others: usize = grown.iter().sum::<usize>() - grown[padded];
                prop_assert!(others <= 16 || more <= 16, "{:?} of {}", grown, more);
            }
            // Four sizes near 64 KiB, where there is nothing else to pad.
            Err(error) => {
                let alone = intermediates == 0
                    && (padding == PaddedCertificate::EndEntity || root == RootDelivery::Omitted);
                prop_assert!(alone && matches!(error, ChainError::Unreachable(_)), "{}", error);
            }
        }
    }
}
