use crate::{
    ChainError, ChainSpec, KeyAlgorithm, LeafExtension, PaddedCertificate, RootDelivery,
    message_bytes, padding, sizes,
};

/// What a certificate does without is exactly as long as it says.
#[test]
fn a_trimmed_leaf_is_as_much_smaller_as_what_it_left_out() {
    let usual = ChainSpec::new(KeyAlgorithm::MlDsa44);
    let bytes = |names: u8, leaf_without: &[LeafExtension]| {
        let spec = ChainSpec {
            names,
            leaf_without: leaf_without.to_vec(),
            ..usual.clone()
        };
        let lengths = spec.certificate_lengths().unwrap();
        assert_eq!(lengths[1..], usual.certificate_lengths().unwrap()[1..]);
        spec.unpadded_bytes()
    };
    let whole = usual.unpadded_bytes();
    assert_eq!(bytes(2, &[]), whole);
    // "www.server.example" and its two bytes.
    assert_eq!(whole - bytes(1, &[]), 20);
    let each = LeafExtension::ALL.map(|left| whole - bytes(2, &[left]));
    assert_eq!(
        whole - bytes(2, &LeafExtension::ALL),
        each.iter().sum::<usize>()
    );
    assert!(each.iter().all(|saved| *saved > 15), "{each:?}");
    let spec = ChainSpec {
        names: 1,
        leaf_without: LeafExtension::ALL.to_vec(),
        ..usual
    };
    assert_eq!(
        spec.to_string(),
        "ml-dsa-44/names=1/leaf_without=policies+aia+crl"
    );
}

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
        .filter(|bytes| matches!(spec(*bytes).validate(), Err(ChainError::Unreachable(_))))
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
            assert_eq!(message_bytes(&spec, &padding(&spec).unwrap()), bytes);
        }
    }
}
