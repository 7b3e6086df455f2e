#![allow(clippy::unwrap_used)]

use super::*;
use crate::Point;
use crate::packet::fixtures::segment;

const ONE_WAY: u64 = 50;
const SYN: u8 = TcpPacket::SYN;
const ACK: u8 = TcpPacket::ACK;

/// A trace by hand. Times are milliseconds.
#[derive(Default)]
struct Trace(Vec<(Packet, Vec<String>)>);

impl Trace {
    fn packet(&mut self, at: u64, from: Side, lost: bool, bytes: Vec<u8>) {
        let time = |ms: u64| Time(1_000_000_000 + ms * 1_000_000);
        let fate = if lost { Fate::Lost } else { Fate::Carried };
        let toward = from.other();
        self.0.push((
            Packet::whole(time(at), Point::sent(toward), fate, bytes.clone()),
            Vec::new(),
        ));
        if !lost {
            let delivered = Point::delivered(toward);
            let packet = Packet::whole(time(at + ONE_WAY), delivered, Fate::Carried, bytes);
            self.0.push((packet, Vec::new()));
        }
    }

    /// SYN at 0, SYN-ACK at 50, acknowledged at 100.
    fn established() -> Trace {
        let mut trace = Trace::default();
        trace.packet(
            0,
            Side::Client,
            false,
            segment(Side::Client, SYN, 999, 0, &[], &[]),
        );
        trace.packet(
            50,
            Side::Server,
            false,
            segment(Side::Server, SYN | ACK, 4_294_967_295, 1000, &[], &[]),
        );
        trace.client_acks(100, 0, &[]);
        trace
    }

    fn server_sends(&mut self, at: u64, offset: u32, length: usize, lost: bool) {
        let data = vec![1; length];
        let bytes = segment(Side::Server, ACK, offset, 1000, &data, &[]);
        // The identification tells two transmissions apart, as Linux has it.
        let mut bytes = bytes;
        bytes[4..6].copy_from_slice(&(at as u16).to_be_bytes());
        self.packet(at, Side::Server, lost, bytes);
    }

    fn client_acks(&mut self, at: u64, upto: u32, blocks: &[(u32, u32)]) {
        let mut bytes = segment(Side::Client, ACK, 1000, upto, &[], blocks);
        bytes[4..6].copy_from_slice(&(at as u16).to_be_bytes());
        self.packet(at, Side::Client, false, bytes);
    }

    fn connection(&self) -> Connection {
        let mut connections = connections(&self.0);
        assert_eq!(connections.len(), 1);
        connections.remove(0)
    }
}

fn recovery(connection: &Connection) -> (Trigger, u64) {
    let losses = connection.losses();
    assert_eq!(losses.len(), 1, "{losses:?}");
    let recovery = &connection.transmissions[losses[0].recovery.unwrap()];
    (recovery.again.unwrap(), recovery.sent.as_millis() as u64)
}

#[test]
fn a_hole_that_selective_acknowledgements_tell_is_a_fast_retransmit() {
    let mut trace = Trace::established();
    for (index, lost) in [false, true, false, false].into_iter().enumerate() {
        trace.server_sends(150, 1000 * index as u32, 1000, lost);
    }
    trace.client_acks(200, 1000, &[]);
    trace.client_acks(200, 1000, &[(2000, 3000)]);
    trace.client_acks(200, 1000, &[(2000, 4000)]);
    trace.server_sends(250, 1000, 1000, false);
    trace.client_acks(300, 4000, &[]);
    let connection = trace.connection();
    assert_eq!(recovery(&connection), (Trigger::FastRetransmit, 250));
    assert_eq!(connection.retransmissions(Side::Server), 1);
    assert_eq!(connection.retransmissions(Side::Client), 0);
    assert_eq!(
        connection.last_byte(Side::Server),
        Some(Duration::from_millis(300))
    );
    assert_eq!(connection.least_rtt(), Duration::from_millis(100));
    assert_eq!(connection.stream(Side::Server).len(), 4000);
    assert_eq!(connection.flights(Side::Server).len(), 1);
    let in_flight: Vec<u64> = (connection.transmissions.iter())
        .filter(|sent| sent.sender == Side::Server && !sent.payload.is_empty())
        .map(|sent| sent.in_flight)
        .collect();
    assert_eq!(in_flight, [1000, 2000, 3000, 4000, 3000]);
}

#[test]
fn the_timer_of_reordering_is_a_fast_retransmit_too() {
    let mut trace = Trace::established();
    trace.server_sends(150, 0, 1000, true);
    trace.server_sends(150, 1000, 1000, false);
    trace.client_acks(200, 0, &[(1000, 2000)]);
    // A quarter of the round trip after that has come.
    trace.server_sends(275, 0, 1000, false);
    assert_eq!(
        recovery(&trace.connection()),
        (Trigger::FastRetransmit, 275)
    );
}

#[test]
fn the_last_segment_is_probed_for_first_and_then_timed_out() {
    let mut trace = Trace::established();
    trace.server_sends(150, 0, 1000, false);
    trace.server_sends(150, 1000, 1000, true);
    trace.client_acks(200, 1000, &[]);
    trace.server_sends(450, 1000, 1000, true);
    trace.server_sends(900, 1000, 1000, false);
    let connection = trace.connection();
    let triggers: Vec<Trigger> = (connection.transmissions.iter())
        .filter_map(|sent| sent.again)
        .collect();
    let ms = Duration::from_millis;
    assert_eq!(
        triggers,
        [Trigger::LossProbe(ms(200)), Trigger::Timeout(ms(450))]
    );
    let losses = connection.losses();
    assert_eq!(losses.len(), 2);
    // Each is told what brought it: of the first one, that is another that was lost.
    assert_eq!(losses[0].recovery, Some(losses[1].lost));
}

#[test]
fn a_first_segment_that_nobody_tells_of_is_timed_out_and_others_follow() {
    let mut trace = Trace::established();
    trace.server_sends(150, 0, 1000, true);
    trace.server_sends(150, 1000, 1000, true);
    // The probe is of the last one, and lost as well.
    trace.server_sends(350, 1000, 1000, true);
    trace.server_sends(700, 0, 1000, false);
    trace.client_acks(750, 1000, &[]);
    trace.server_sends(800, 1000, 1000, false);
    let connection = trace.connection();
    let triggers: Vec<Trigger> = (connection.transmissions.iter())
        .filter_map(|sent| sent.again)
        .collect();
    let ms = Duration::from_millis;
    assert_eq!(
        triggers,
        [
            Trigger::LossProbe(ms(200)),
            Trigger::Timeout(ms(350)),
            Trigger::AfterTimeout
        ]
    );
}

#[test]
fn a_syn_that_is_lost_is_timed_out() {
    let mut trace = Trace::default();
    let syn = segment(Side::Client, SYN, 999, 0, &[], &[]);
    trace.packet(0, Side::Client, true, syn.clone());
    trace.packet(1000, Side::Client, false, syn);
    let connection = trace.connection();
    assert_eq!(
        recovery(&connection),
        (Trigger::Timeout(Duration::from_secs(1)), 1000)
    );
    assert_eq!(connection.retransmissions(Side::Client), 1);
}

#[test]
fn a_syn_that_comes_again_is_answered_again() {
    let mut trace = Trace::default();
    let syn = segment(Side::Client, SYN, 999, 0, &[], &[]);
    let answer = segment(Side::Server, SYN | ACK, 7, 1000, &[], &[]);
    trace.packet(0, Side::Client, false, syn.clone());
    trace.packet(50, Side::Server, true, answer.clone());
    trace.packet(1000, Side::Client, false, syn);
    trace.packet(1050, Side::Server, false, answer);
    assert_eq!(recovery(&trace.connection()), (Trigger::AfterTimeout, 1050));
}

#[test]
fn an_acknowledgement_is_not_sent_again() {
    let mut trace = Trace::established();
    trace.server_sends(150, 0, 1000, false);
    let ack = segment(Side::Client, ACK, 1000, 1000, &[], &[]);
    trace.packet(200, Side::Client, true, ack);
    let connection = trace.connection();
    let losses = connection.losses();
    assert_eq!((losses.len(), losses[0].recovery), (1, None));
}

#[test]
fn a_flight_begins_when_the_one_before_is_acknowledged() {
    let mut trace = Trace::established();
    trace.server_sends(150, 0, 1000, false);
    trace.server_sends(151, 1000, 1000, false);
    trace.client_acks(200, 2000, &[]);
    trace.server_sends(250, 2000, 1000, false);
    trace.server_sends(250, 3000, 1000, false);
    let connection = trace.connection();
    let flights = connection.flights(Side::Server);
    let begins: Vec<u128> = (flights.iter())
        .map(|index| connection.transmissions[*index].sent.as_millis())
        .collect();
    assert_eq!(begins, [150, 250]);
    let turns: Vec<(Side, usize)> = (connection.turns().iter())
        .map(|(side, bytes)| (*side, bytes.len()))
        .collect();
    assert_eq!(turns, [(Side::Server, 1000); 4]);
}

#[test]
fn what_begins_before_the_capture_is_no_connection() {
    let trace = Trace::established();
    assert!(connections(&trace.0[1..]).is_empty() || trace.0.len() < 2);
}

/// What is looked up in ranges is what a look at every other packet finds.
#[test]
fn losses_are_those_that_a_look_at_all_packets_finds() {
    use proptest::prelude::*;
    let packet = (any::<[bool; 5]>(), 0..12_u64, 0..5_usize, 0..6_u64);
    proptest!(|(packets in prop::collection::vec(packet, 0..25))| {
        let packets = packets.into_iter().enumerate();
        let transmissions = packets.map(|(at, ([client, lost, syn, fin, rare], offset, bytes, later))| {
            let sent = Duration::from_millis(at as u64);
            let flags = [(syn && rare, Flag::Syn), (fin && rare, Flag::Fin)];
            Transmission {
                sender: if client { Side::Client } else { Side::Server },
                sent,
                arrived: (!lost).then(|| sent + Duration::from_millis(later)),
                fate: if lost { Fate::Lost } else { Fate::Carried },
                flags: flags.into_iter().filter_map(|(has, flag)| has.then_some(flag)).collect(),
                offset,
                payload: vec![0; bytes],
                acknowledges: 0,
                is_selective: false,
                again: None,
                in_flight: 0,
            }
        });
        let trace = Connection {
            transmissions: transmissions.collect(),
            ..Trace::established().connection()
        };
        let all = &trace.transmissions;
        let brings = |other: usize, lost: usize| {
            let (other, lost) = (&all[other], &all[lost]);
            other.sender == lost.sender
                && match (lost.has(Flag::Syn), lost.payload.is_empty()) {
                    (true, _) => other.has(Flag::Syn),
                    (false, true) => lost.has(Flag::Fin) && other.has(Flag::Fin),
                    (false, false) => other.offset <= lost.offset && other.end() > lost.offset,
                }
        };
        let expected = (0..all.len()).filter(|lost| all[*lost].fate == Fate::Lost).map(|lost| Loss {
            lost,
            recovery: (lost + 1..all.len()).find(|later| brings(*later, lost)),
            came: (0..all.len())
                .filter(|other| all[*other].arrived.is_some() && brings(*other, lost))
                .min_by_key(|other| all[*other].arrived),
        });
        prop_assert_eq!(trace.losses(), expected.collect::<Vec<_>>());
    });
}
