#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, Store};
use lastbyte_tls::{Group, Randomness, TlsConfig, stack};

use super::*;

fn chain(algorithm: KeyAlgorithm) -> Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let store = Store::open(target.join("test-chains"));
    store.chain(&ChainSpec::new(algorithm)).unwrap()
}

fn stack_of(algorithm: KeyAlgorithm) -> Arc<dyn Stack> {
    let chain = chain(algorithm);
    Arc::from(stack(&TlsConfig::new(Group::X25519MlKem768, &chain)).unwrap())
}

/// What two ends sent: when, who, and how many bytes.
type Log = Vec<(Time, Side, Vec<u8>)>;

/// What has left and not arrived: when it does, at which end.
type Under = Vec<(Time, usize, Vec<u8>)>;

/// Both ends over a network that delays for 50 ms each way and loses the datagrams of the server with these numbers.
/// The client asks for so much.
fn connect(
    stacks: [&Arc<dyn Stack>; 2],
    data: usize,
    lost: &[usize],
    until: Time,
) -> (Log, [End; 2], Option<Time>, Option<Time>) {
    let _seeded = Randomness::of_seed(7);
    let settings = Settings::with_window(10, Settings::DATAGRAM);
    let mut ends = [
        End::client(stacks[0].clone(), &settings, 1, Time(0)).unwrap(),
        End::server(stacks[1].clone(), &settings, 2),
    ];
    let mut log = Log::new();
    let mut on_the_way = Under::new();
    let mut now = Time(0);
    let (mut established, mut last) = (None, None);
    let (mut asked, mut answering, mut left) = (None, None, data);
    let mut sent = 0;
    loop {
        for end in &mut ends {
            let _is_due = end.on_time(now);
        }
        if ends[0].is_established() && established.is_none() {
            established = Some(now);
            let request = ends[0].open().unwrap();
            assert_eq!(ends[0].write(request, b"get"), 3);
            ends[0].finish(request);
            asked = Some(request);
        }
        if let Some(request) = ends[1].accept() {
            answering = Some(request);
        }
        if let Some(request) = answering {
            ends[1].read(request);
            while left > 0 {
                let part = ends[1].write(request, &vec![1; left]);
                if part == 0 {
                    break;
                }
                left -= part;
            }
            if left == 0 {
                ends[1].finish(request);
                answering = None;
            }
        }
        if let Some(request) = asked
            && ends[0].read(request).1
        {
            last = last.or(Some(now));
        }
        for (index, side) in [(0, Side::Client), (1, Side::Server)] {
            let mut datagram = Vec::new();
            while ends[index].transmit(now, &mut datagram) {
                log.push((now, side, datagram.clone()));
                let is_lost = side == Side::Server && lost.contains(&sent);
                sent += usize::from(side == Side::Server);
                if !is_lost {
                    let arrival = Time(now.0 + 50_000_000);
                    on_the_way.push((arrival, 1 - index, datagram.clone()));
                }
            }
        }
        let arrival = on_the_way.iter().map(|(at, ..)| *at).min();
        let [client, server] = &mut ends;
        let deadlines = [arrival, client.deadline(), server.deadline()];
        let Some(next) = deadlines
            .into_iter()
            .flatten()
            .min()
            .filter(|next| *next <= until)
        else {
            break;
        };
        now = next.max(now);
        // One at a time, the first that was sent first: each is answered before the next.
        if let Some(place) = on_the_way.iter().position(|(at, ..)| *at <= now) {
            let (_, to, datagram) = on_the_way.remove(place);
            ends[to].receive(now, &datagram);
        }
    }
    (log, ends, established, last)
}

const SECOND: Time = Time(1_000_000_000);

#[test]
fn the_round_trips_of_a_handshake_are_those_of_its_credit() {
    for (algorithm, milliseconds) in [
        (KeyAlgorithm::EcdsaP256, 100),
        (KeyAlgorithm::MlDsa44, 200),
        (KeyAlgorithm::MlDsa65, 200),
        (KeyAlgorithm::MlDsa87, 200),
    ] {
        let stack = stack_of(algorithm);
        let (_, _, established, last) = connect([&stack, &stack], 1000, &[], SECOND);
        assert_eq!(
            established,
            Some(Time(milliseconds * 1_000_000)),
            "{algorithm:?}"
        );
        let last = last.unwrap().0 - established.unwrap().0;
        assert_eq!(last, 100_000_000, "{algorithm:?}");
    }
}

#[test]
fn two_runs_have_the_same_datagrams() {
    let stack = stack_of(KeyAlgorithm::EcdsaP256);
    let (one, ..) = connect([&stack, &stack], 50_000, &[2], SECOND);
    let (other, ..) = connect([&stack, &stack], 50_000, &[2], SECOND);
    let sizes = |log: &Log| -> Vec<_> {
        log.iter()
            .map(|(at, side, datagram)| (*at, *side, datagram.len()))
            .collect()
    };
    assert_eq!(sizes(&one), sizes(&other));
    assert!(one.len() > 50);
}

/// docs/quic.md: the server's datagram that begins the ServerHello, the one after an acknowledgement, lost once, is not sent
/// again.
#[test]
fn a_handshake_whose_server_hello_loses_its_first_part_never_completes() {
    let stack = stack_of(KeyAlgorithm::MlDsa65);
    let (_, ends, established, _) = connect([&stack, &stack], 1000, &[1], Time(60_000_000_000));
    assert_eq!(established, None);
    assert_eq!(ends[0].ended(), Some(&Ended::Idle));
}

#[test]
fn a_client_that_does_not_trust_the_chain_says_so_and_the_server_is_refused() {
    let (client, server) = (
        stack_of(KeyAlgorithm::MlDsa44),
        stack_of(KeyAlgorithm::EcdsaP256),
    );
    let (_, ends, established, _) = connect([&client, &server], 1000, &[], SECOND);
    assert_eq!(established, None);
    assert!(
        matches!(
            ends[0].ended(),
            Some(Ended::Tls(TlsError::Certificate { .. }))
        ),
        "{:?}",
        ends[0].ended()
    );
    // unknown_ca.
    assert_eq!(
        ends[1].ended(),
        Some(&Ended::Tls(TlsError::Refused(Alert(48))))
    );
}

#[test]
fn what_is_no_packet_is_dropped() {
    let stack = stack_of(KeyAlgorithm::EcdsaP256);
    let mut server = End::server(stack, &Settings::with_window(10, Settings::DATAGRAM), 2);
    for garbage in [
        &[][..],
        &[0xff; 3],
        &[0; 1200],
        &[0xc3; 1200],
        b"\xc0\0\0\0\x01",
    ] {
        assert_eq!(server.receive(Time(1), garbage), None);
        assert!(!server.transmit(Time(1), &mut Vec::new()));
    }
}
