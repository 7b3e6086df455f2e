//! What nobody sends who means well: each is dropped, or ends the connection with its reason.

use lastbyte_tls::observer::quic::{PacketKind, has_packet};
use lastbyte_tls::{PacketSecret, QUIC_V1};

use super::*;

/// Two ends whose datagrams are moved by hand, in no time.
struct Two {
    ends: [End; 2],
    now: Time,
    /// Destination and Source Connection ID of the last header that each has sent.
    ids: [[Vec<u8>; 2]; 2],
    initial: Option<[PacketSecret; 2]>,
    /// The Key Phase bit of the last 1-RTT packet of each, and how often that has changed: quinn updates keys as it likes
    /// (RFC 9001, 6).
    phases: [(u8, u32); 2],
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Two {
    fn new(stacks: [&Arc<dyn Stack>; 2]) -> Two {
        Two {
            ends: [
                client(stacks[CLIENT], Kept::default()),
                server(stacks[SERVER], Retries::Never),
            ],
            now: Time(0),
            ids: Default::default(),
            initial: None,
            phases: [(0, 0); 2],
        }
    }

    /// All that an end has to send now.
    fn send(&mut self, sender: usize) -> Vec<Vec<u8>> {
        let (mut all, mut datagram) = (Vec::new(), Vec::new());
        while self.ends[sender]
            .transmit(self.now, &mut datagram)
            .is_some()
        {
            if let Some(ids) = ids(&datagram) {
                if sender == CLIENT && self.initial.is_none() {
                    self.initial = PacketSecret::initial(&ids[0]);
                }
                self.ids[sender] = ids;
            } else {
                self.note_short(sender, &datagram);
            }
            all.push(datagram.clone());
        }
        all
    }

    fn receive(&mut self, receiver: usize, datagrams: &[Vec<u8>]) {
        for datagram in datagrams {
            self.ends[receiver].receive(self.now, EcnCodepoint::NotEct, datagram);
        }
    }

    /// Moves all there is, in turns, until nothing is left.
    fn settle(&mut self) {
        for _ in 0..8 {
            for sender in [CLIENT, SERVER] {
                let sent = self.send(sender);
                self.receive(1 - sender, &sent);
            }
        }
    }

    fn is_established(&self) -> bool {
        self.ends.iter().all(End::is_established)
    }

    /// What an end's packets are protected with.
    fn secret(&self, sender: usize, label: &str) -> PacketSecret {
        let label = format!("{}_{label} ", ["CLIENT", "SERVER"][sender]);
        let log = self.ends[sender].key_log();
        let line = log.as_str().lines().find(|line| line.starts_with(&label));
        let secret = hex(line.unwrap().split(' ').nth(2).unwrap());
        PacketSecret {
            cipher_suite: if secret.len() == 48 { 0x1302 } else { 0x1301 },
            secret,
        }
    }

    /// Looks at a 1-RTT packet: the connection ID is another one than of the handshake, which is retired, and the Key Phase bit.
    fn note_short(&mut self, sender: usize, datagram: &[u8]) {
        const KEY_PHASE: u8 = 0x04;
        let number_at = 1 + self.ids[sender][0].len();
        self.ids[sender][0] = datagram[1..number_at].to_vec();
        let sample = *datagram[number_at + 4..].first_chunk().unwrap();
        let header = self.secret(sender, "TRAFFIC_SECRET_0").header().unwrap();
        let [mask, ..] = header.mask(sample).unwrap();
        let phase = (datagram[0] ^ mask) & KEY_PHASE;
        let (before, updates) = &mut self.phases[sender];
        *updates += u32::from(phase != *before);
        *before = phase;
    }

    /// A packet to this end, protected as the other one would.
    fn seal(&self, receiver: usize, kind: PacketKind, number: u32, frames: &[u8]) -> Vec<u8> {
        let sender = 1 - receiver;
        let (first, secret) = match kind {
            PacketKind::Initial => (0xc3_u8, self.initial.as_ref().unwrap()[sender].clone()),
            PacketKind::Handshake => (0xe3, self.secret(sender, "HANDSHAKE_TRAFFIC_SECRET")),
            PacketKind::OneRtt => (
                0x43 | self.phases[sender].0,
                self.secret(sender, "TRAFFIC_SECRET_0"),
            ),
            other => panic!("{other:?} is not sealed here"),
        };
        let is_long = kind != PacketKind::OneRtt;
        let mut payload = frames.to_vec();
        payload.resize(payload.len().max(4), 0);
        let mut packet = vec![first];
        let [destination, source] = &self.ids[sender];
        if is_long {
            packet.extend(QUIC_V1.to_be_bytes());
            for id in [destination, source] {
                packet.push(id.len() as u8);
                packet.extend(id);
            }
            if kind == PacketKind::Initial {
                packet.push(0);
            }
            let length = (4 + payload.len() + 16) as u32 | 2 << 30;
            packet.extend(length.to_be_bytes());
        } else {
            packet.extend(destination);
        }
        let number_at = packet.len();
        packet.extend(number.to_be_bytes());
        let updates = if is_long { 0 } else { self.phases[sender].1 };
        let updated = (0..updates).fold(secret.clone(), |secret, _| secret.updated().unwrap());
        let sealing = updated.sealing().unwrap();
        let tag = sealing.seal(number.into(), &packet, &mut payload).unwrap();
        packet.extend([&payload[..], &tag].concat());
        let sample = packet[number_at + 4..].first_chunk().unwrap();
        let [mask, rest @ ..] = secret.header().unwrap().mask(*sample).unwrap();
        packet[0] ^= mask & if is_long { 0x0f } else { 0x1f };
        for (byte, mask) in packet[number_at..].iter_mut().zip(rest) {
            *byte ^= mask;
        }
        packet
    }

    fn reason(&self, end: usize) -> String {
        self.ends[end]
            .ended()
            .map_or_else(String::new, Ended::to_string)
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn ids(datagram: &[u8]) -> Option<[Vec<u8>; 2]> {
    let vector = |at: usize| datagram[at + 1..][..usize::from(datagram[at])].to_vec();
    let is_long = datagram[0] & 0x80 != 0;
    is_long.then(|| {
        let destination = vector(5);
        let source = vector(6 + destination.len());
        [destination, source]
    })
}

fn stack() -> Arc<dyn Stack> {
    stack_of(KeyAlgorithm::EcdsaP256)
}

/// CRYPTO at an offset below 2^30.
fn crypto(offset: u32, bytes: &[u8]) -> Vec<u8> {
    let offset = (offset | 2 << 30).to_be_bytes();
    let length = (bytes.len() as u16 | 1 << 14).to_be_bytes();
    [&[6], &offset[..], &length, bytes].concat()
}

#[test]
fn another_version_is_negotiated_and_nobody_is_talked_out_of_his_own() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack();
    // A client of another version, as large as a client's first datagram has to be, and too small a one (RFC 9000, 5.2.2).
    let mut foreign = vec![
        0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0,
    ];
    let mut one = server(&stack, Retries::Never);
    assert_eq!(one.receive(Time(1), EcnCodepoint::NotEct, &foreign), None);
    foreign.resize(1200, 0);
    let answer = one
        .receive(Time(1), EcnCodepoint::NotEct, &foreign)
        .unwrap();
    assert!(has_packet(&answer, PacketKind::VersionNegotiation));
    assert!(
        answer.len() < 100
            && answer[7..]
                .windows(4)
                .any(|four| four == QUIC_V1.to_be_bytes())
    );
    assert_eq!(one.ended(), None);

    let negotiation = |two: &Two, versions: &[u32]| {
        let [destination, source] = &two.ids[CLIENT];
        let mut packet = vec![0xc0, 0, 0, 0, 0];
        for id in [source, destination] {
            packet.push(id.len() as u8);
            packet.extend(id);
        }
        packet.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
        packet
    };
    // One that has the version, or comes once a server has answered, is dropped (6.2).
    let mut two = Two::new([&stack, &stack]);
    let hello = two.send(CLIENT);
    two.receive(CLIENT, &[negotiation(&two, &[QUIC_V1, 7])]);
    two.receive(SERVER, &hello);
    let answer = two.send(SERVER);
    two.receive(CLIENT, &answer);
    two.receive(CLIENT, &[negotiation(&two, &[7])]);
    two.settle();
    assert!(two.is_established(), "{}", two.reason(CLIENT));
    // Before that, there is nothing that both speak.
    let mut two = Two::new([&stack, &stack]);
    two.send(CLIENT);
    two.receive(CLIENT, &[negotiation(&two, &[7])]);
    assert!(
        two.reason(CLIENT).contains("version"),
        "{}",
        two.reason(CLIENT)
    );
}

/// RFC 9000, 14.1.
#[test]
fn an_initial_in_too_small_a_datagram_begins_nothing() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack();
    for (bytes, begins) in [(1199, false), (1200, true)] {
        let mut two = Two::new([&stack, &stack]);
        two.send(CLIENT);
        // A datagram of an Initial packet with no more than a PING.
        let mut frames = vec![1];
        let least = two
            .seal(SERVER, PacketKind::Initial, 0, &[1, 0, 0, 0])
            .len();
        frames.resize(4 + bytes - least, 0);
        let packet = two.seal(SERVER, PacketKind::Initial, 0, &frames);
        assert_eq!(packet.len(), bytes);
        two.receive(SERVER, &[packet]);
        assert_eq!(!two.send(SERVER).is_empty(), begins, "{bytes}");
    }
}

#[test]
fn duplicates_and_what_is_overtaken_change_nothing() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack_of(KeyAlgorithm::MlDsa65);
    let mut two = Two::new([&stack, &stack]);
    for _ in 0..20 {
        for sender in [CLIENT, SERVER] {
            let mut sent = two.send(sender);
            sent.reverse();
            let twice = [&sent[..], &sent].concat();
            two.receive(1 - sender, &twice);
        }
        let due = two.ends.iter_mut().filter_map(End::deadline).min();
        two.now = due.unwrap_or(two.now).max(two.now);
        for end in &mut two.ends {
            end.on_time(two.now);
        }
    }
    assert!(
        two.is_established(),
        "{} {}",
        two.reason(CLIENT),
        two.reason(SERVER)
    );
}

/// Of whom it hears nothing more, an end sends a few probes, and then gives up.
#[test]
fn a_peer_that_never_acknowledges_is_given_up() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack_of(KeyAlgorithm::MlDsa65);
    for silent in [CLIENT, SERVER] {
        let mut two = Two::new([&stack, &stack]);
        let hello = two.send(CLIENT);
        two.receive(SERVER, &hello);
        let answer = two.send(SERVER);
        if silent == CLIENT {
            // It has heard of the server, and says no more.
            drop(answer);
        } else {
            two.receive(CLIENT, &answer);
        }
        let left = 1 - silent;
        let mut count = 0;
        while let Some(due) = two.ends[left].deadline() {
            two.now = due;
            two.ends[left].on_time(due);
            count += two.send(left).len();
        }
        assert_eq!(two.ends[left].ended(), Some(&Ended::Idle), "{left}");
        assert!(count < 50, "{count} datagrams to nobody");
        assert!(two.now < Time(120_000_000_000), "{:?}", two.now);
    }
}

/// In an Initial and in a Handshake packet, to either end (RFC 9000, 19.19).
#[test]
fn a_peer_may_close_in_each_state_of_a_handshake() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack();
    // INTERNAL_ERROR in a frame of no type, with a reason of two bytes.
    let close = [0x1c, 1, 0, 2, b'n', b'o'];
    for receiver in [CLIENT, SERVER] {
        for kind in [PacketKind::Initial, PacketKind::Handshake] {
            let mut two = Two::new([&stack, &stack]);
            let hello = two.send(CLIENT);
            two.receive(SERVER, &hello);
            let answer = two.send(SERVER);
            match (kind, receiver) {
                (PacketKind::Initial, _) => {}
                (PacketKind::Handshake, CLIENT) => two.receive(CLIENT, &answer),
                _ => {
                    two.receive(CLIENT, &answer);
                    two.settle();
                }
            }
            // Handshake packets are none any more once the handshake is confirmed.
            let is_dropped = (kind, receiver) == (PacketKind::Handshake, SERVER);
            let packet = two.seal(receiver, kind, 1000, &close);
            two.receive(receiver, &[packet]);
            let reason = two.reason(receiver);
            let is_closed = reason.starts_with("aborted by peer") && reason.ends_with(": no");
            assert_eq!(is_closed, !is_dropped, "{receiver} {kind:?}: {reason:?}");
            // Nor does it answer with more than a word, however often it hears more.
            assert!(two.send(receiver).len() <= 1 || is_dropped);
        }
    }
}

/// Where a connection is when its peer closes it in a 1-RTT packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its handshake has just become complete at this end, and the other may not know it yet.
    Established,
    /// A part of the response has come.
    WithinTransfer,
    /// All of it has.
    AfterLastByte,
}

/// As far as that for this end, with what it was asked or asks.
fn at_stage(stack: &Arc<dyn Stack>, stage: Stage, receiver: usize) -> (Two, Option<Request>) {
    let mut two = Two::new([stack, stack]);
    while !two.ends[receiver].is_established() {
        for sender in [CLIENT, SERVER] {
            if !two.ends[receiver].is_established() {
                let sent = two.send(sender);
                two.receive(1 - sender, &sent);
            }
        }
    }
    if stage == Stage::Established {
        return (two, None);
    }
    two.settle();
    let request = two.ends[CLIENT].open().unwrap();
    two.ends[CLIENT].write(request, b"get");
    two.ends[CLIENT].finish(request);
    let asking = two.send(CLIENT);
    two.receive(SERVER, &asking);
    let answering = two.ends[SERVER].accept().unwrap();
    two.ends[SERVER].read(answering);
    let length = match stage {
        Stage::WithinTransfer => 1_000_000,
        Stage::Established | Stage::AfterLastByte => 10_000,
    };
    let written = two.ends[SERVER].write(answering, &vec![1; length]);
    if stage == Stage::AfterLastByte {
        assert_eq!(written, length);
        two.ends[SERVER].finish(answering);
        two.settle();
        assert_eq!(two.ends[CLIENT].read(request), (length as u64, true));
    } else {
        let sent = two.send(SERVER);
        assert!(sent.len() > 2);
        two.receive(CLIENT, &sent[..sent.len() / 2]);
        let (bytes, is_all) = two.ends[CLIENT].read(request);
        assert!(bytes > 0 && !is_all);
    }
    (two, Some([request, answering][receiver]))
}

/// QUIC's own and the application's, in a 1-RTT packet of a peer that has the keys, to either end (RFC 9000, 19.19).
#[test]
fn a_peer_may_close_in_each_state_of_a_connection() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack();
    let stages = [
        Stage::Established,
        Stage::WithinTransfer,
        Stage::AfterLastByte,
    ];
    // INTERNAL_ERROR in a frame of no type; H3_NO_ERROR; certificate_required in a CRYPTO frame. Behind some is what is no frame, and
    // some say that they are longer than they are.
    let closes = [
        (
            &[0x1c, 1, 0, 2, b'n', b'o'][..],
            "aborted by peer: ",
            ": no",
        ),
        (
            &[0x1d, 0x41, 0, 2, b'n', b'o'],
            "closed by peer: no",
            "(code 256)",
        ),
        (
            &[0x1c, 0x41, 0x74, 6, 2, b'n', b'o'],
            "the peer refused: ",
            "certificate_required (116)",
        ),
        (&[0x1c, 1, 0, 2, b'n', b'o', 0x3f, 0xff], "", ""),
        // Its words move no cursor and begin no line.
        (
            &[0x1c, 1, 0, 2, b'\n', 0x1b],
            "aborted by peer: ",
            "\\u{a}\\u{1b}",
        ),
        (&[0x1d, 0x41, 0, 2, b'n', b'o', 0x3f, 0xff], "", ""),
        (&[0x1c, 1, 0, 0x7f, 0xff, b'n'], "", ""),
        (&[0x1d, 0x41, 0, 0x7f, 0xff, b'n'], "", ""),
    ];
    for receiver in [CLIENT, SERVER] {
        for stage in stages {
            for (close, begins, ends) in closes {
                let what = format!("{receiver} {stage:?} {close:?}");
                let (mut two, request) = at_stage(&stack, stage, receiver);
                assert_eq!(two.reason(receiver), "", "{what}");
                // What nobody can open comes before it, and behind it.
                let packet = two.seal(receiver, PacketKind::OneRtt, 1000, close);
                let forged = [&packet[..packet.len() - 1], &[!packet[packet.len() - 1]]].concat();
                let garbage = [vec![0x43; 100], vec![0xff; 1200], vec![0]];
                two.receive(receiver, &garbage);
                two.receive(receiver, &[forged]);
                assert_eq!(two.reason(receiver), "", "{what}");
                two.receive(receiver, std::slice::from_ref(&packet));
                let reason = two.reason(receiver);
                assert!(
                    !reason.is_empty() && !reason.contains('\n'),
                    "{what}: {reason:?}"
                );
                let is_expected = reason.starts_with(begins) && reason.ends_with(ends);
                assert!(is_expected, "{what}: {reason:?}");
                // It answers with a word at most, whatever it hears then, and says nothing else.
                let again = two.seal(receiver, PacketKind::OneRtt, 1001, close);
                two.receive(receiver, &[packet, again]);
                two.receive(receiver, &garbage);
                let end = &mut two.ends[receiver];
                assert!(end.open().is_none() && end.accept().is_none(), "{what}");
                if let Some(request) = request {
                    assert_eq!(end.write(request, b"more"), 0, "{what}");
                    end.finish(request);
                    end.read(request);
                }
                let mut words = two.send(receiver).len();
                while let Some(due) = two.ends[receiver].deadline() {
                    two.now = due;
                    two.ends[receiver].on_time(due);
                    words += two.send(receiver).len();
                }
                assert!(words <= 1, "{what}: {words} datagrams");
                assert!(two.now < Time(30_000_000_000), "{what}: {:?}", two.now);
                assert_eq!(two.reason(receiver), reason, "{what}");
            }
        }
    }
}

/// What comes ahead waits, what comes again is dropped, and what is too far ahead ends the connection (RFC 9000, 7.5).
#[test]
fn crypto_may_have_gaps_and_overlaps_and_an_end() {
    let _seeded = Randomness::of_seed(7);
    let stack = stack();
    // The ClientHello in pieces, from the back to the front, each of which begins in the one before.
    let mut two = Two::new([&stack, &stack]);
    let hello = {
        use lastbyte_tls::observer::Side as Who;
        use lastbyte_tls::observer::quic::QuicObserver;
        let mut observer = QuicObserver::default();
        let sent = two.send(CLIENT);
        for datagram in &sent {
            observer.sent(Who::Client, datagram);
        }
        let observed = observer.observe(&KeyLog::default());
        let bytes = observed
            .handshake
            .bytes(lastbyte_tls::observer::Message::ClientHello);
        (sent, bytes.unwrap())
    };
    let (sent, length) = hello;
    assert!(length > 1200);
    two.receive(SERVER, &[sent[1].clone(), sent[1].clone(), sent[0].clone()]);
    assert!(!two.send(SERVER).is_empty());

    for (what, frames, ends) in [
        ("a gap", crypto(5000, b"later"), false),
        ("what overlaps", crypto(2, b"xyz"), false),
        ("the last that is kept", crypto(16_000, &[7; 100]), false),
        ("beyond 16 KiB", crypto(20_000, b"far"), true),
        ("beyond 64 KiB", crypto(70_000, b"far"), true),
        (
            "an offset without end",
            [&[6][..], &[0xff; 8], &[1, 7]].concat(),
            true,
        ),
    ] {
        for receiver in [CLIENT, SERVER] {
            let mut two = Two::new([&stack, &stack]);
            let hello = two.send(CLIENT);
            two.receive(SERVER, &hello[..1]);
            let answer = two.send(SERVER);
            two.receive(CLIENT, &answer);
            let mut frames = frames.clone();
            frames.resize(frames.len().max(1160), 0);
            let packet = two.seal(receiver, PacketKind::Initial, 1000, &frames);
            two.receive(receiver, &[packet]);
            let reason = two.reason(receiver);
            assert_eq!(!reason.is_empty(), ends, "{what}, {receiver}: {reason}");
            assert!(!reason.contains('\n'));
        }
    }
}

/// A client that takes smaller Certificate messages only.
#[test]
fn a_chain_that_a_stack_s_buffer_refuses_ends_the_connection() {
    let _seeded = Randomness::of_seed(7);
    let chain = chain(KeyAlgorithm::MlDsa65);
    let small = TlsConfig {
        max_certificate_list: Some(4000),
        ..TlsConfig::new(Group::X25519MlKem768, &chain)
    };
    let small: Arc<dyn Stack> = Arc::from(super::stack(&small).unwrap());
    let whole = stack_of(KeyAlgorithm::MlDsa65);
    let (_, ends, established, _) = connect([&small, &whole], 1000, &[], SECOND);
    assert_eq!(established, None);
    assert!(
        matches!(ends[CLIENT].ended(), Some(Ended::Tls(_))),
        "{:?}",
        ends[CLIENT].ended()
    );
    assert!(ends[SERVER].ended().is_some());
}
