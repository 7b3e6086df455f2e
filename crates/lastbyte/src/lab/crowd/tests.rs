use super::*;

#[test]
fn groups_are_whole_but_for_the_last() {
    let of = |connections: Range<u32>, at_once| -> Vec<Range<u32>> {
        groups(&connections, at_once).collect()
    };
    assert_eq!(of(4..6, 1), [4..5, 5..6]);
    assert_eq!(of(10..20, 6), [10..16, 16..20]);
    assert_eq!(of(0..6, 6), vec![0..6]);
    assert_eq!(of(0..3, 10), vec![0..3]);
    assert!(of(3..3, 2).is_empty());
    assert_eq!(of(u32::MAX - 1..u32::MAX, 6), vec![u32::MAX - 1..u32::MAX]);
}

#[test]
fn a_block_has_a_multiple_of_each() {
    for (one, other, multiple) in [
        (1, 6, 6),
        (4, 6, 12),
        (7, 7, 7),
        (0, 5, 5),
        (u32::MAX, 2, u32::MAX),
    ] {
        assert_eq!(common_multiple(one, other), multiple, "{one} and {other}");
    }
}

#[test]
fn ports_tell_transfers_from_connections() {
    assert_eq!(cross_flow_of_port(CLIENT_PORT), Some(0));
    assert_eq!(cross_flow_of_port(CLIENT_PORT + 31), Some(31));
    for port in [CLIENT_PORT + 32, CLIENT_PORT - 1, 20_000, 20_001, 443] {
        assert_eq!(cross_flow_of_port(port), None);
    }
}

#[test]
fn transfers_have_as_many_packets_as_the_rate_lets_through() {
    let mut cell = Cell::default();
    assert_eq!(packets(&cell), 0);
    cell.crowd.cross_traffic = CrossTraffic::default();
    cell.link.backward.rate = lastbyte_link::Rate::from_bits_per_second(12_000_000);
    cell.crowd.cross_traffic = "cubic+bbr".parse().unwrap_or_default();
    // A thousand in a second, 8.5 seconds in the mean, and an acknowledgement for two.
    assert_eq!(packets(&cell), 12_750);
}
