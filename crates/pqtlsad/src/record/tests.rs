#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn list(lengths: &[usize]) -> CertificateList {
    let certificates = (1..).zip(lengths).map(|(fill, length)| vec![fill; *length]);
    CertificateList::new(certificates.collect()).unwrap()
}

fn assemble(fragments: impl IntoIterator<Item = Fragment>) -> Vec<Result<Delivered, RecordError>> {
    let mut assembly = Assembly::default();
    for fragment in fragments {
        assembly.add(fragment).unwrap();
    }
    assembly.finish()
}

const TYPES: [RecordType; 2] = [RecordType::DEFAULT, RecordType::Tlsa];

#[test]
fn the_layout_is_as_documented() {
    let list = list(&[3, 2]);
    let [fragment] = split(Part::Intermediate, &list)
        .unwrap()
        .try_into()
        .unwrap();
    let certificates = [0, 0, 3, 1, 1, 1, 0, 0, 2, 2, 2];
    let digest = ::openssl::sha::sha256(&certificates);
    let expected = [&[1, 2, 0, 1], &digest[..], &certificates].concat();
    assert_eq!(fragment.encode(RecordType::DEFAULT), expected);
    let expected = [&[255, 255, 255], &expected[..]].concat();
    assert_eq!(fragment.encode(RecordType::Tlsa), expected);
    assert_eq!(
        fragment.to_text(RecordType::DEFAULT),
        format!("\\# 47 01020001{}0000030101010000020202", list.digest())
    );
}

#[test]
fn names_of_fragments() {
    assert_eq!(owner("server.example", 0), "server.example");
    assert_eq!(owner("server.example", 2), "_2._pqtlsad.server.example");
}

#[test]
fn types_by_name_and_number() {
    assert_eq!("65280".parse(), Ok(RecordType::DEFAULT));
    assert_eq!("TYPE65281".parse(), Ok(RecordType::Own(65_281)));
    assert_eq!("tlsa".parse(), Ok(RecordType::Tlsa));
    assert_eq!(RecordType::Tlsa.number(), 52);
    for unknown in ["", "1", "65279", "65535", "type", "TYPEs", "é280", "mx"] {
        assert!(unknown.parse::<RecordType>().is_err(), "{unknown}");
    }
    assert_eq!(RecordType::DEFAULT.to_string(), "TYPE65280");
}

#[test]
fn a_chain_that_exceeds_a_message_is_split_between_certificates() {
    // Root and end-entity of SLH-DSA-SHA2-192f.
    let large = list(&[35_954, 36_000]);
    let fragments = split(Part::EndEntity, &large).unwrap();
    let lengths: Vec<_> = fragments
        .iter()
        .map(|own| own.encode(RecordType::Tlsa).len())
        .collect();
    assert_eq!(lengths, [3 + HEADER + 3 + 35_954, 3 + HEADER + 3 + 36_000]);
    let counts: Vec<_> = fragments.iter().map(|own| (own.index, own.count)).collect();
    assert_eq!(counts, [(0, 2), (1, 2)]);

    let mut assembly = Assembly::default();
    assembly.add(fragments[1].clone()).unwrap();
    assert_eq!(assembly.missing(), [0]);
    assembly.add(fragments[0].clone()).unwrap();
    // Again: resolvers may repeat themselves.
    assembly.add(fragments[0].clone()).unwrap();
    assert!(assembly.missing().is_empty());
    let delivered = Delivered {
        part: Part::EndEntity,
        list: large,
    };
    assert_eq!(assembly.finish(), [Ok(delivered)]);
}

#[test]
fn records_fit_a_message_to_the_byte() {
    let room = MAX_RDATA - HEADER - 3;
    let full = split(Part::Root, &list(&[room - 3])).unwrap();
    assert_eq!(full[0].encode(RecordType::Tlsa).len(), MAX_RDATA);
    let over = split(Part::Root, &list(&[room - 2]));
    assert_eq!(over, Err(RecordError::CertificateTooLarge(room - 2)));
    assert_eq!(
        split(Part::EndEntity, &list(&[room - 7, 1])).unwrap().len(),
        1
    );
    assert_eq!(
        split(Part::EndEntity, &list(&[room - 6, 1])).unwrap().len(),
        2
    );
}

#[test]
fn several_chains_of_one_name_are_told_apart() {
    let lists = [list(&[35_954, 36_000]), list(&[500, 600])];
    let fragments = lists
        .iter()
        .flat_map(|list| split(Part::EndEntity, list).unwrap());
    let all = assemble(fragments);
    let found: Vec<_> = all
        .into_iter()
        .map(|delivered| delivered.unwrap().list)
        .collect();
    assert_eq!(found.len(), 2);
    assert!(lists.iter().all(|list| found.contains(list)));
}

#[test]
fn fragments_of_two_rotations_make_no_list() {
    let (old, new) = (list(&[40_000, 40_000]), list(&[40_000, 40_001]));
    let [first, _] = split(Part::EndEntity, &old).unwrap().try_into().unwrap();
    let [_, second] = split(Part::EndEntity, &new).unwrap().try_into().unwrap();
    let found = assemble([first.clone(), second.clone()]);
    assert_eq!(
        found,
        [Err(RecordError::Incomplete), Err(RecordError::Incomplete)]
    );

    // As a forger would write it.
    let forged = Fragment {
        digest: first.digest,
        ..second
    };
    assert_eq!(
        assemble([first.clone(), forged]),
        [Err(RecordError::Digest)]
    );
    let mut assembly = Assembly::default();
    assembly.add(first.clone()).unwrap();
    let more = Fragment { count: 3, ..first };
    assert_eq!(assembly.add(more), Err(RecordError::Contradiction));
}

#[test]
fn bad_records_say_what_is_wrong() {
    let good = split(Part::Root, &list(&[9])).unwrap()[0].encode(RecordType::DEFAULT);
    let decode = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        Fragment::decode(RecordType::DEFAULT, &bytes)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(decode(&|bytes| bytes.clear()), "truncated");
    assert_eq!(
        decode(&|bytes| bytes[0] = 2),
        "version 2: only version 1 is known"
    );
    assert_eq!(decode(&|bytes| bytes[1] = 0), "unknown part 0");
    assert_eq!(decode(&|bytes| bytes[2] = 1), "fragment 1 of 1");
    assert_eq!(decode(&|bytes| bytes[3] = 11), "fragment 0 of 11");
    assert_eq!(
        decode(&|bytes| bytes.truncate(HEADER)),
        "there is no certificate"
    );
    assert_eq!(
        decode(&|bytes| bytes.push(0)),
        "truncated within a certificate"
    );
    assert_eq!(
        decode(&|bytes| bytes[HEADER] = 255),
        "truncated within a certificate"
    );
    assert_eq!(
        decode(&|bytes| bytes[HEADER + 2] = 0),
        "there is no certificate"
    );
    // A record for DANE: domain-issued certificate, full, exact.
    let dane = [&[3, 0, 0], &good[..]].concat();
    assert_eq!(
        Fragment::decode(RecordType::Tlsa, &dane),
        Err(RecordError::NotOurs)
    );
}

#[test]
fn bombs_are_refused_before_they_cost_anything() {
    // 64 KB of certificates of one byte each.
    let mut bomb = split(Part::Root, &list(&[1])).unwrap()[0].encode(RecordType::DEFAULT);
    bomb.extend([0, 0, 1, 48].repeat(16_000));
    assert_eq!(
        Fragment::decode(RecordType::DEFAULT, &bomb),
        Err(RecordError::List(ListError::TooMany(11)))
    );

    // Many lists at one name.
    let mut assembly = Assembly::default();
    let fragments = (1..).map(|length| split(Part::Root, &list(&[length])).unwrap().remove(0));
    let refused = fragments
        .map(|own| assembly.add(own))
        .position(|added| added.is_err());
    assert_eq!(refused, Some(Assembly::MAX_LISTS));

    // Fragments that together are too much.
    let huge = list(&[64_000, 64_000, 64_000, 60_000]);
    let mut fragments = split(Part::Root, &huge).unwrap();
    for own in &mut fragments {
        own.count = 5;
    }
    let fifth = Fragment {
        index: 4,
        ..fragments[0].clone()
    };
    fragments.push(fifth);
    let found = assemble(fragments);
    assert!(
        matches!(found[..], [Err(RecordError::List(ListError::TooLarge(_)))]),
        "{found:?}"
    );
}

#[test]
fn text_is_taken_as_zone_files_break_it() {
    let own = &split(Part::Root, &list(&[40])).unwrap()[0];
    let text = own.to_text(RecordType::DEFAULT);
    let (head, hex) = text.split_at(10);
    let broken = format!("{head}\n\t{}", hex.to_uppercase());
    assert_eq!(
        Fragment::from_text(RecordType::DEFAULT, &broken).unwrap(),
        *own
    );
    for bad in [
        "", "\\#", "\\# x 00", "# 1 00", "\\# 2 00", "\\# 1 0", "\\# 1 zz",
    ] {
        let read = Fragment::from_text(RecordType::DEFAULT, bad);
        assert_eq!(read, Err(RecordError::Text), "{bad}");
    }
}

proptest! {
    #[test]
    fn what_is_split_comes_back_in_any_order(
        lengths in vec(1usize..60_000, 1..=4),
        part in select(Part::ALL.to_vec()),
        record_type in select(TYPES.to_vec()),
        turn in any::<usize>(),
    ) {
        let list = list(&lengths);
        let mut fragments = split(part, &list).unwrap();
        let turn = turn % fragments.len();
        fragments.rotate_left(turn);
        let read = fragments.iter().map(|own| {
            let bytes = own.encode(record_type);
            assert!(bytes.len() <= MAX_RDATA);
            let read = Fragment::decode(record_type, &bytes).unwrap();
            assert_eq!(Fragment::from_text(record_type, &own.to_text(record_type)), Ok(read.clone()));
            read
        });
        prop_assert_eq!(assemble(read), [Ok(Delivered { part, list })]);
    }

    #[test]
    fn whatever_decodes_encodes_to_the_same(
        bytes in vec(any::<u8>(), 0..120),
        record_type in select(TYPES.to_vec()),
    ) {
        // Most bytes are no record: begin as one does.
        let mut likely = record_type.prefix().to_vec();
        likely.extend([1, 1, 0, 1]);
        likely.extend([7; Digest::LENGTH]);
        likely.extend([0, 0]);
        likely.extend(&bytes);
        for bytes in [bytes, likely] {
            if let Ok(fragment) = Fragment::decode(record_type, &bytes) {
                prop_assert_eq!(fragment.encode(record_type), bytes);
            }
        }
    }
}
