#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use lastbyte_link::Side;
use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, Store};
use lastbyte_tls::{Group, Randomness, Resumption, TlsConfig, stack};

use super::*;

mod hostile;

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
    let client = End::client(stacks[0].clone(), &settings, Kept::default(), 1, Time(0));
    let server = End::server(stacks[1].clone(), &settings, Retries::Never, 2);
    carry([client.unwrap(), server], data, lost, until)
}

/// The same of ends that were made for it. What the client may, it sends as early data; what is not accepted, again.
fn carry(
    mut ends: [End; 2],
    data: usize,
    lost: &[usize],
    until: Time,
) -> (Log, [End; 2], Option<Time>, Option<Time>) {
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
            asked = asked.filter(|_| ends[0].is_early_data_accepted());
        }
        if asked.is_none() && (established.is_some() || ends[0].has_early_data()) {
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
            while ends[index].transmit(now, &mut datagram).is_some() {
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
            if let Some(answer) = ends[to].receive(now, EcnCodepoint::NotEct, &datagram) {
                on_the_way.push((Time(now.0 + 50_000_000), 1 - to, answer.clone()));
                let side = [Side::Client, Side::Server][to];
                log.push((now, side, answer));
            }
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

/// With a window in which a whole handshake fits.
fn wide() -> Settings {
    Settings::with_window(40, Settings::DATAGRAM)
}

fn client(stack: &Arc<dyn Stack>, kept: Kept) -> End {
    End::client(stack.clone(), &wide(), kept, 1, Time(0)).unwrap()
}

fn server(stack: &Arc<dyn Stack>, retries: Retries) -> End {
    End::server(stack.clone(), &wide(), retries, 2)
}

fn before(stack: &Arc<dyn Stack>) -> Kept {
    connection_before(stack, &wide(), &wide(), 9).unwrap()
}

/// A stack whose clients send early data and whose servers take it.
fn early(chain: &Chain) -> Arc<dyn Stack> {
    let config = TlsConfig {
        resumption: Resumption::EarlyData,
        ..TlsConfig::new(Group::X25519MlKem768, chain)
    };
    Arc::from(stack(&config).unwrap())
}

fn ms(time: Option<Time>) -> Option<u64> {
    time.map(|time| time.0 / 1_000_000)
}

#[test]
fn a_request_is_early_data_once_there_is_a_session() {
    let _seeded = Randomness::of_seed(7);
    let stack = early(&chain(KeyAlgorithm::MlDsa65));
    // Without one it is not.
    let ends = [
        client(&stack, Kept::default()),
        server(&stack, Retries::Never),
    ];
    let (_, ends, _, _) = carry(ends, 500, &[], SECOND);
    assert!(!ends[0].is_early_data_accepted());
    let kept = before(&stack);
    let ends = [
        client(&stack, kept.clone().session()),
        server(&stack, Retries::Never),
    ];
    let (_, ends, established, last) = carry(ends, 500, &[], SECOND);
    assert!(ends[0].is_early_data_accepted() && !ends[0].has_early_data());
    assert_eq!((ms(established), ms(last)), (Some(100), Some(100)));
    // A Retry has it sent again, a round trip later.
    let ends = [
        client(&stack, kept.session()),
        server(&stack, Retries::Always),
    ];
    let (_, ends, established, last) = carry(ends, 500, &[], SECOND);
    assert!(ends[0].is_early_data_accepted());
    assert_eq!((ms(established), ms(last)), (Some(200), Some(200)));
}

#[test]
fn early_data_that_is_refused_is_sent_again() {
    let _seeded = Randomness::of_seed(7);
    let chain = chain(KeyAlgorithm::MlDsa44);
    // Another server of the same name and chain has other keys for its tickets.
    let (one, other) = (early(&chain), early(&chain));
    let never = stack_of(KeyAlgorithm::MlDsa44);
    for server_stack in [&other, &never] {
        let kept = before(&one).session();
        let ends = [client(&one, kept), server(server_stack, Retries::Never)];
        assert!(ends[0].has_early_data());
        let (_, ends, established, last) = carry(ends, 500, &[], SECOND);
        assert!(!ends[0].is_early_data_accepted());
        assert_eq!((ends[0].ended(), ends[1].ended()), (None, None));
        let established = ms(established).unwrap();
        assert_eq!(ms(last), Some(established + 100));
    }
}

/// Sizes of what a server sends at once.
fn at_once(log: &Log) -> usize {
    let sent = (log.iter()).filter(|(at, side, _)| *side == Side::Server && at.0 <= 60_000_000);
    sent.map(|(.., datagram)| datagram.len()).sum()
}

#[test]
fn a_token_lifts_the_limit_once_and_at_its_own_address_alone() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack_of(KeyAlgorithm::MlDsa65);
    let limit = 3 * 2400 + 1200;
    let used = Arc::<Used>::default();
    let server = || {
        let tls = Tls::server(stack.clone(), Tickets::Configured);
        End::listening(tls, &wide(), 0, used.clone(), 2)
    };
    let kept = before(&stack).token();
    let mut stranger = server();
    stranger.peer = ([10, 0, 0, 9], 50_000).into();
    // Addresses are those of hosts: another port is the same.
    let mut neighbour = server();
    neighbour.peer.set_port(1);
    for (what, server, is_known) in [
        ("another address", stranger, false),
        ("its own", neighbour, true),
        ("once more", server(), false),
    ] {
        let ends = [client(&stack, kept.clone()), server];
        let (log, _, established, _) = carry(ends, 500, &[], SECOND);
        // The pacer holds back what is more than ten datagrams.
        assert_eq!(
            ms(established),
            Some(if is_known { 150 } else { 200 }),
            "{what}"
        );
        assert_eq!(at_once(&log) > limit, is_known, "{what}: {}", at_once(&log));
    }
}

#[test]
fn a_token_that_is_garbage_is_as_none() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack_of(KeyAlgorithm::EcdsaP256);
    for token in [vec![0; 1], vec![7; 46], vec![0xff; 900]] {
        let kept = Kept {
            session: None,
            token: Some(token.into()),
        };
        let ends = [client(&stack, kept), server(&stack, Retries::Never)];
        let (_, ends, established, _) = carry(ends, 500, &[], SECOND);
        assert_eq!(ms(established), Some(100));
        assert_eq!((ends[0].ended(), ends[1].ended()), (None, None));
    }
}

/// Whoever sends Initials in another's name has the server send that one three times as much, and a datagram, however long it
/// waits.
#[test]
fn a_spoofed_initial_is_answered_with_three_times_its_size_at_most() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack_of(KeyAlgorithm::MlDsa87);
    for retries in [Retries::Never, Retries::Always] {
        let (mut client, mut server) = (client(&stack, Kept::default()), server(&stack, retries));
        let (mut came, mut sent, mut now) = (0, 0, Time(1));
        let mut datagram = Vec::new();
        while client.transmit(now, &mut datagram).is_some() {
            came += datagram.len();
            // As often as it likes: they are the same.
            for _ in 0..2 {
                sent += server
                    .receive(now, EcnCodepoint::NotEct, &datagram)
                    .map_or(0, |answer| answer.len());
            }
        }
        assert_eq!(came, 2400);
        let mut out = Vec::new();
        for _ in 0..10_000 {
            while server.transmit(now, &mut out).is_some() {
                sent += out.len();
            }
            let Some(next) = server.deadline() else { break };
            now = next.max(now);
            server.on_time(now);
        }
        let most = match retries {
            Retries::Never => 3 * 2 * came + usize::from(Settings::DATAGRAM),
            // Each is answered by a packet that is smaller than it.
            Retries::Always => 4 * 100,
        };
        assert!(sent > 0 && sent <= most, "{sent} of {most}, {retries:?}");
    }
}

#[test]
fn a_forged_or_repeated_retry_changes_nothing() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack_of(KeyAlgorithm::EcdsaP256);
    let first = |end: &mut End| {
        let mut out = Vec::new();
        assert!(end.transmit(Time(0), &mut out).is_some());
        out
    };
    let retry_of = |hello: &[u8]| {
        let mut retrying = server(&stack, Retries::Always);
        retrying
            .receive(Time(0), EcnCodepoint::NotEct, hello)
            .unwrap()
    };
    let flush = |end: &mut End| {
        let mut out = Vec::new();
        let mut count = 0;
        while end.transmit(Time(0), &mut out).is_some() {
            count += 1;
        }
        count
    };
    let begin = || {
        let mut one = client(&stack, Kept::default());
        let retry = retry_of(&first(&mut one));
        assert_eq!(flush(&mut one), 1);
        (one, retry)
    };
    // Every byte behind the version counts, and a part of it is none.
    let (_, retry) = begin();
    for at in 5..retry.len() {
        let (mut one, retry) = begin();
        let mut forged = retry.clone();
        forged[at] ^= 1;
        let forged = if at % 2 == 0 { &forged } else { &retry[..at] };
        assert_eq!(one.receive(Time(0), EcnCodepoint::NotEct, forged), None);
        assert_eq!((flush(&mut one), one.ended()), (0, None), "byte {at}");
    }
    // docs/quic.md: quinn counts it among packets that are authentic, and so drops the true one that follows it.
    let (mut one, retry) = begin();
    let mut forged = retry.clone();
    *forged.last_mut().unwrap() ^= 1;
    one.receive(Time(0), EcnCodepoint::NotEct, &forged);
    one.receive(Time(0), EcnCodepoint::NotEct, &retry);
    assert_eq!(flush(&mut one), 0);
    // The true one has it begin again, and once alone.
    let (mut one, retry) = begin();
    for initials in [2, 0, 0] {
        one.receive(Time(0), EcnCodepoint::NotEct, &retry);
        assert_eq!(flush(&mut one), initials);
    }
    assert_eq!(one.ended(), None);
}

/// RFC 9000, 8.1.3: a token of a Retry packet that is another's ends the connection.
#[test]
fn a_retry_token_of_another_address_is_refused() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack_of(KeyAlgorithm::EcdsaP256);
    let mut client = client(&stack, Kept::default());
    let mut hello = Vec::new();
    assert!(client.transmit(Time(0), &mut hello).is_some());
    let retry = server(&stack, Retries::Always)
        .receive(Time(0), EcnCodepoint::NotEct, &hello)
        .unwrap();
    client.receive(Time(0), EcnCodepoint::NotEct, &retry);
    assert!(client.transmit(Time(0), &mut hello).is_some());
    let mut other = server(&stack, Retries::Always);
    other.peer = ([10, 0, 0, 9], 50_000).into();
    let answer = other
        .receive(Time(0), EcnCodepoint::NotEct, &hello)
        .unwrap();
    assert_eq!(other.transmit(Time(0), &mut hello), None);
    client.receive(Time(0), EcnCodepoint::NotEct, &answer);
    client.transmit(Time(0), &mut hello);
    let Some(Ended::Transport(reason)) = client.ended() else {
        panic!("{:?}", client.ended());
    };
    assert!(reason.contains("invalid Retry Token"), "{reason}");
}

#[test]
fn what_is_no_packet_is_dropped() {
    let stack = stack_of(KeyAlgorithm::EcdsaP256);
    let settings = Settings::with_window(10, Settings::DATAGRAM);
    let mut server = End::server(stack, &settings, Retries::Never, 2);
    for garbage in [
        &[][..],
        &[0xff; 3],
        &[0; 1200],
        &[0xc3; 1200],
        b"\xc0\0\0\0\x01",
    ] {
        assert_eq!(server.receive(Time(1), EcnCodepoint::NotEct, garbage), None);
        assert_eq!(server.transmit(Time(1), &mut Vec::new()), None);
    }
}
