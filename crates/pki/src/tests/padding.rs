use proptest::prelude::*;

use super::{Maker, mixed};
use crate::{
    ChainSpec, KeyAlgorithm, PaddedCertificate, PkiError, Role, RootDelivery, size, sizes,
};

#[test]
fn the_table_is_what_it_was() {
    let table: Vec<_> = sizes()
        .into_iter()
        .map(|row| {
            let certificates = [row.end_entity, row.intermediate, row.root];
            (
                row.algorithm.name(),
                certificates,
                row.certificate_message,
                row.certificate_verify,
            )
        })
        .collect();
    assert_eq!(
        table,
        [
            ("ecdsa-p256", [696, 656, 462], [709, 1370, 2031, 2692], 79),
            ("ecdsa-p384", [757, 717, 523], [770, 1492, 2214, 2936], 111),
            ("rsa-2048", [1092, 1052, 858], [1105, 2162, 3219, 4276], 264),
            (
                "rsa-3072",
                [1348, 1308, 1114],
                [1361, 2674, 3987, 5300],
                392
            ),
            (
                "rsa-4096",
                [1604, 1564, 1370],
                [1617, 3186, 4755, 6324],
                520
            ),
            (
                "ml-dsa-44",
                [4292, 4252, 4058],
                [4305, 8562, 12819, 17076],
                2428
            ),
            (
                "ml-dsa-65",
                [5821, 5781, 5587],
                [5834, 11620, 17406, 23192],
                3317
            ),
            (
                "ml-dsa-87",
                [7779, 7739, 7545],
                [7792, 15536, 23280, 31024],
                4635
            ),
            (
                "slh-dsa-sha2-128s",
                [8444, 8404, 8210],
                [8457, 16866, 25275, 33684],
                7864
            ),
            (
                "slh-dsa-sha2-128f",
                [17676, 17636, 17442],
                [17689, 35330, 52971, 70612],
                17096
            ),
            (
                "slh-dsa-sha2-192s",
                [16828, 16788, 16594],
                [16841, 33634, 50427, 67220],
                16232
            ),
            (
                "slh-dsa-sha2-192f",
                [36268, 36228, 36034],
                [36281, 72514, 108747, 144980],
                35672
            ),
            (
                "slh-dsa-sha2-256s",
                [30412, 30372, 30178],
                [30425, 60802, 91179, 121556],
                29800
            ),
            (
                "slh-dsa-sha2-256f",
                [50476, 50436, 50242],
                [50489, 100930, 151371, 201812],
                49864
            ),
            (
                "slh-dsa-shake-128s",
                [8444, 8404, 8210],
                [8457, 16866, 25275, 33684],
                7864
            ),
            (
                "slh-dsa-shake-128f",
                [17676, 17636, 17442],
                [17689, 35330, 52971, 70612],
                17096
            ),
            (
                "slh-dsa-shake-192s",
                [16828, 16788, 16594],
                [16841, 33634, 50427, 67220],
                16232
            ),
            (
                "slh-dsa-shake-192f",
                [36268, 36228, 36034],
                [36281, 72514, 108747, 144980],
                35672
            ),
            (
                "slh-dsa-shake-256s",
                [30412, 30372, 30178],
                [30425, 60802, 91179, 121556],
                29800
            ),
            (
                "slh-dsa-shake-256f",
                [50476, 50436, 50242],
                [50489, 100930, 151371, 201812],
                49864
            ),
            (
                "fn-dsa-512",
                [2123, 2083, 1889],
                [2136, 4224, 6312, 8400],
                674
            ),
            (
                "fn-dsa-1024",
                [3633, 3593, 3399],
                [3646, 7244, 10842, 14440],
                1288
            ),
        ]
    );
}

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
        let padding = size::padding(&spec).unwrap();
        assert_eq!(size::message_bytes(&spec, &padding), bytes, "{algorithm}");
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

/// DER has no element of 65,540 bytes, and so on for each that the padding is in.
#[test]
fn without_intermediates_four_sizes_are_out_of_reach() {
    let spec = |bytes| ChainSpec {
        intermediates: 0,
        certificate_bytes: Some(bytes),
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    let unreachable: Vec<usize> = (709..709 + 400)
        .chain(65_536..65_536 + 700)
        .filter(|bytes| matches!(spec(*bytes).validate(), Err(PkiError::Unreachable(_))))
        .collect();
    assert_eq!(unreachable.first(), Some(&(8 + 5 + 65_540)));
    assert_eq!(unreachable.len(), 4, "{unreachable:?}");
    assert_eq!(
        spec(65_553).validate().unwrap_err().to_string(),
        "chain \"ecdsa-p256:65553B/intermediates=0\": no certificate has exactly this size; \
         ask for a byte more"
    );
    assert!(spec(65_554).validate().is_ok());
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

#[test]
fn a_size_below_the_smallest_is_refused_with_it() {
    let spec = |bytes| ChainSpec {
        certificate_bytes: Some(bytes),
        ..ChainSpec::new(KeyAlgorithm::MlDsa65)
    };
    assert_eq!(
        spec(2000).validate().unwrap_err().to_string(),
        "chain \"ml-dsa-65:2000B\": its Certificate message has 11620 bytes without padding; \
         ask for 11620B or more"
    );
    assert!(spec(11_619).validate().is_err());
    assert!(spec(11_620).validate().is_ok());
}

#[test]
fn too_many_intermediates_are_refused() {
    let spec = ChainSpec {
        intermediates: 4,
        ..ChainSpec::new(KeyAlgorithm::Rsa2048)
    };
    assert_eq!(
        spec.validate().unwrap_err().to_string(),
        "chain \"rsa-2048/intermediates=4\": ask for at most 3 intermediates"
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
        role in prop::sample::select(vec![Role::Server, Role::Client]),
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
                prop_assert!(alone && matches!(error, PkiError::Unreachable(_)), "{}", error);
            }
        }
    }
}

#[test]
fn every_size_is_reached_at_the_end_of_the_chain() {
    for root in [RootDelivery::Omitted, RootDelivery::Sent] {
        let spec = |certificate_bytes| ChainSpec {
            root,
            padding: PaddedCertificate::Last,
            certificate_bytes,
            ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
        };
        let unpadded = spec(None).unpadded_bytes();
        for bytes in (unpadded..unpadded + 400).chain(65_500..66_500) {
            let spec = spec(Some(bytes));
            let padding = size::padding(&spec).unwrap();
            assert_eq!(size::message_bytes(&spec, &padding), bytes);
        }
    }
}
