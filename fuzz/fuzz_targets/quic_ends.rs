//! Datagrams that come to an end of QUIC in each of its states: real ones lost, repeated, overtaken, cut short, changed and with
//! garbage behind; those of another connection; and packets that are made here of any frames, with the right keys of any level,
//! since no fuzzer guesses those.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lastbyte_fuzz::{change, pieces};
use lastbyte_link::{EcnCodepoint, Time};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, Store};
use lastbyte_quic::{Ecn, End, Kept, Retries, Settings, connection_before};
use lastbyte_tls::observer::quic::{PacketKind, has_packet, has_token};
use lastbyte_tls::{Group, PacketSecret, Randomness, Resumption, Stack, TlsConfig, stack};
use libfuzzer_sys::fuzz_target;

static REAL: LazyLock<(Arc<dyn Stack>, Kept)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let chain = Store::open(folder.path()).chain(&ChainSpec::new(KeyAlgorithm::EcdsaP256));
    let chain = chain.unwrap();
    let config = TlsConfig {
        resumption: Resumption::EarlyData,
        ..TlsConfig::new(Group::X25519MlKem768, &chain)
    };
    let stack: Arc<dyn Stack> = Arc::from(stack(&config).unwrap());
    let kept = connection_before(&stack, &settings(), &settings(), 9).unwrap();
    (stack, kept)
});

fn settings() -> Settings {
    Settings {
        ecn: Ecn::On,
        ..Settings::with_window(10, Settings::DATAGRAM)
    }
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Both ends, and what each has sent that the other has not got.
struct Ends {
    ends: [End; 2],
    /// By receiver.
    under_way: [Vec<Vec<u8>>; 2],
    /// All that came, by receiver.
    before: [Vec<Vec<u8>>; 2],
    /// Destination and Source Connection ID of the last header, by sender.
    ids: [Option<[Vec<u8>; 2]>; 2],
    /// What the client's first Initial packet is protected with, and the server's.
    initial: Option<[PacketSecret; 2]>,
    now: Time,
    /// UDP payload that the server got and sent while it did not know the client's address.
    got: usize,
    sent: usize,
    is_validated: bool,
    /// Of packets that are made here.
    number: u32,
    /// The Key Phase bit of the last 1-RTT packet, by sender, and how often that has changed: quinn updates keys as it likes.
    phases: [(u8, u32); 2],
}

impl Ends {
    fn receive(&mut self, receiver: usize, datagram: &[u8]) {
        // A socket has no empty datagrams, nor longer ones.
        if receiver == SERVER {
            self.got += datagram.len();
            self.is_validated |= has_packet(datagram, PacketKind::Handshake) || has_token(datagram);
        }
        // As an attacker or a router likes.
        let ecn = EcnCodepoint::of_class(datagram.len() as u8);
        let answer = self.ends[receiver].receive(self.now, ecn, datagram);
        if let Some(answer) = answer {
            assert!(!answer.is_empty());
            self.leaves(receiver, answer);
        }
        self.before[receiver].push(datagram.to_vec());
        self.flush();
    }

    fn flush(&mut self) {
        for sender in [CLIENT, SERVER] {
            let mut datagram = Vec::new();
            for count in 0.. {
                assert!(count < 1000, "it has no end of datagrams");
                if self.ends[sender]
                    .transmit(self.now, &mut datagram)
                    .is_none()
                {
                    break;
                }
                assert!(!datagram.is_empty() && datagram.len() <= Settings::DATAGRAM.into());
                self.note(sender, &datagram);
                self.leaves(sender, datagram.clone());
            }
            if let Some(ended) = self.ends[sender].ended() {
                assert!(!ended.to_string().contains('\n'), "{ended}");
            }
            if let Some(request) = self.ends[sender].accept() {
                let _ = self.ends[sender].read(request);
                self.ends[sender].write(request, b"ok");
                self.ends[sender].finish(request);
            }
        }
    }

    /// Notes the connection IDs of a datagram of its own connection: what answers others' has theirs.
    fn note(&mut self, sender: usize, datagram: &[u8]) {
        if let Some(ids) = ids(datagram) {
            if sender == CLIENT && self.initial.is_none() {
                self.initial = PacketSecret::initial(&ids[0]);
            }
            self.ids[sender] = Some(ids);
        } else {
            self.note_short(sender, datagram);
        }
    }

    /// Looks at a 1-RTT packet: the connection ID is another one than of the handshake, which is retired, and the Key Phase bit
    /// (RFC 9001, 6).
    fn note_short(&mut self, sender: usize, datagram: &[u8]) -> Option<()> {
        const KEY_PHASE: u8 = 0x04;
        let [destination, _] = self.ids[sender].as_mut()?;
        let number_at = 1 + destination.len();
        *destination = datagram.get(1..number_at)?.to_vec();
        let sample = *datagram.get(number_at + 4..)?.first_chunk()?;
        let secret = self.secret(sender, "TRAFFIC_SECRET_0")?;
        let [mask, ..] = secret.header()?.mask(sample)?;
        let phase = (datagram[0] ^ mask) & KEY_PHASE;
        let (before, updates) = &mut self.phases[sender];
        *updates += u32::from(phase != *before);
        *before = phase;
        Some(())
    }

    /// What an end's packets are protected with.
    fn secret(&self, sender: usize, label: &str) -> Option<PacketSecret> {
        let label = format!("{}_{label} ", ["CLIENT", "SERVER"][sender]);
        let log = self.ends[sender].key_log();
        let line = log.as_str().lines().find(|line| line.starts_with(&label))?;
        let secret = hex::decode(line.split(' ').nth(2)?).ok()?;
        Some(PacketSecret {
            cipher_suite: if secret.len() == 48 { 0x1302 } else { 0x1301 },
            secret,
        })
    }

    fn leaves(&mut self, sender: usize, datagram: Vec<u8>) {
        if sender == SERVER && !self.is_validated {
            self.sent += datagram.len();
            let most = 3 * self.got + usize::from(Settings::DATAGRAM);
            assert!(self.sent <= most, "{} of {most}", self.sent);
        }
        self.under_way[1 - sender].push(datagram);
    }

    /// Does what is due next.
    fn wait(&mut self) {
        let due = self.ends.iter_mut().filter_map(End::deadline).min();
        self.now = due.unwrap_or(self.now).max(self.now) + Duration::from_micros(1);
        for end in &mut self.ends {
            end.on_time(self.now);
        }
        self.flush();
    }

    /// Has the peer of this end close in a 1-RTT packet: QUIC itself or its application, with a reason and what is behind. Not every
    /// end hears it, as what came before may have taken its keys or connection IDs further; that those do which can is held by the tests of
    /// hostile peers.
    fn close(&mut self, receiver: usize, piece: &[u8]) {
        let [kind, code, reason, rest @ ..] = piece else {
            return;
        };
        let (reason, behind) = rest.split_at(rest.len().min(usize::from(reason & 0x3f)));
        let mut frames = match kind & 1 {
            0 => vec![0x1c, code & 0x3f, 0],
            _ => vec![0x1d, code & 0x3f],
        };
        frames.push(reason.len() as u8);
        frames.extend(reason);
        frames.extend(behind);
        let Some(packet) = self.seal(receiver, 3, &frames) else {
            return;
        };
        self.receive(receiver, &packet);
        let end = &mut self.ends[receiver];
        assert!(
            end.ended().is_none() || end.open().is_none(),
            "it goes on after that"
        );
    }

    /// A packet to this end with these frames, of a level: Initial, 0-RTT, Handshake, 1-RTT.
    fn seal(&mut self, receiver: usize, level: u8, frames: &[u8]) -> Option<Vec<u8>> {
        const TAG: usize = 16;
        let sender = 1 - receiver;
        let [destination, source] = self.ids[sender].clone()?;
        let (first, secret) = match level {
            0 => (0xc3, self.initial.as_ref().map(|both| both[sender].clone())),
            1 => (0xd3, self.secret(CLIENT, "EARLY_TRAFFIC_SECRET")),
            2 => (0xe3, self.secret(sender, "HANDSHAKE_TRAFFIC_SECRET")),
            _ => (
                0x43 | self.phases[sender].0,
                self.secret(sender, "TRAFFIC_SECRET_0"),
            ),
        };
        let secret = secret?;
        self.number += 1;
        let number = (1000 + self.number).to_be_bytes();
        // Enough for a sample of the header's protection.
        let mut payload = frames.to_vec();
        payload.resize(payload.len().max(4), 0);
        let mut packet = vec![first];
        if first & 0x80 != 0 {
            packet.extend([0, 0, 0, 1]);
            for id in [&destination, &source] {
                packet.push(id.len() as u8);
                packet.extend(id);
            }
            if level == 0 {
                packet.push(0);
            }
            let length = (number.len() + payload.len() + TAG) as u32 | 2 << 30;
            packet.extend(length.to_be_bytes());
        } else {
            packet.extend(&destination);
        }
        let number_at = packet.len();
        packet.extend(number);
        let number = u64::from(1000 + self.number);
        let updates = if first & 0x80 == 0 {
            self.phases[sender].1
        } else {
            0
        };
        let updated = (0..updates).try_fold(secret.clone(), |secret, _| secret.updated())?;
        let tag = updated.sealing()?.seal(number, &packet, &mut payload)?;
        packet.extend([&payload[..], &tag].concat());
        let sample = packet.get(number_at + 4..)?.first_chunk()?;
        let [mask, rest @ ..] = secret.header()?.mask(*sample)?;
        packet[0] ^= mask & if first & 0x80 == 0 { 0x1f } else { 0x0f };
        for (byte, mask) in packet[number_at..].iter_mut().zip(rest) {
            *byte ^= mask;
        }
        Some(packet)
    }
}

/// Both connection IDs of a long header.
fn ids(datagram: &[u8]) -> Option<[Vec<u8>; 2]> {
    if datagram.first()? & 0x80 == 0 {
        return None;
    }
    let vector = |at: usize| {
        let length = usize::from(*datagram.get(at)?);
        datagram.get(at + 1..at + 1 + length)
    };
    let destination = vector(5)?;
    let source = vector(6 + destination.len())?;
    Some([destination.to_vec(), source.to_vec()])
}

fuzz_target!(|data: &[u8]| {
    let (stack, kept) = &*REAL;
    let _seeded = Randomness::of_seed(1);
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let kept = match kind & 3 {
        0 => Kept::default(),
        1 => kept.clone().session(),
        2 => kept.clone().token(),
        _ => kept.clone(),
    };
    let retries = match kind & 4 {
        0 => Retries::Never,
        _ => Retries::Always,
    };
    let client = |kept, seed| End::client(stack.clone(), &settings(), kept, seed, Time(0)).unwrap();
    let mut ends = Ends {
        ends: [
            client(kept, 1),
            End::server(stack.clone(), &settings(), retries, 2),
        ],
        under_way: Default::default(),
        before: Default::default(),
        ids: Default::default(),
        initial: None,
        now: Time(0),
        got: 0,
        sent: 0,
        is_validated: false,
        number: 0,
        phases: [(0, 0); 2],
    };
    if ends.ends[CLIENT].has_early_data()
        && let Some(request) = ends.ends[CLIENT].open()
    {
        ends.ends[CLIENT].write(request, b"get");
        ends.ends[CLIENT].finish(request);
    }
    ends.flush();
    for (tag, piece) in pieces(data) {
        let receiver = usize::from(tag & 1);
        // A real one, the first or another.
        let place = |among: &[Vec<u8>]| {
            let at = piece.first().copied().unwrap_or_default();
            (!among.is_empty()).then(|| usize::from(at) % among.len().max(1))
        };
        let rest = piece.get(1..).unwrap_or_default();
        match tag >> 1 & 15 {
            0 => ends.receive(receiver, piece),
            1 | 2 => {
                // In order, all that is there.
                for datagram in std::mem::take(&mut ends.under_way[receiver]) {
                    ends.receive(receiver, &datagram);
                }
            }
            3 => {
                if let Some(at) = place(&ends.under_way[receiver]) {
                    let datagram = ends.under_way[receiver].remove(at);
                    ends.receive(receiver, &datagram);
                }
            }
            4 => {
                if let Some(at) = place(&ends.under_way[receiver]) {
                    ends.under_way[receiver].remove(at);
                }
            }
            5 => {
                if let Some(at) = place(&ends.before[receiver]) {
                    let datagram = ends.before[receiver][at].clone();
                    ends.receive(receiver, &datagram);
                }
            }
            6 => {
                if let Some(at) = place(&ends.under_way[receiver]) {
                    let mut datagram = ends.under_way[receiver].remove(at);
                    change(&mut datagram, rest);
                    ends.receive(receiver, &datagram);
                }
            }
            7 => {
                // Cut short, and with garbage behind.
                if let Some(at) = place(&ends.under_way[receiver]) {
                    let mut datagram = ends.under_way[receiver].remove(at);
                    let most = rest.first().copied().unwrap_or_default();
                    datagram.truncate(usize::from(most) * 5);
                    datagram.extend(rest.get(1..).unwrap_or_default());
                    ends.receive(receiver, &datagram);
                }
            }
            8 => {
                // Two in one.
                let datagrams: Vec<_> = ends.under_way[receiver].drain(..).collect();
                let datagram = datagrams.concat();
                ends.receive(receiver, &datagram[..datagram.len().min(65_507)]);
            }
            9 => ends.wait(),
            10 => {
                // Another client's, or another server's of that.
                let mut other = client(Kept::default(), 3);
                let mut datagram = Vec::new();
                while other.transmit(ends.now, &mut datagram).is_some() {
                    ends.receive(receiver, &datagram);
                }
            }
            11 => {
                if let Some(request) = ends.ends[CLIENT].open() {
                    ends.ends[CLIENT].write(request, piece);
                    ends.ends[CLIENT].finish(request);
                    ends.flush();
                }
            }
            15 if tag & 0x20 != 0 => ends.close(receiver, piece),
            level => {
                let mut frames = piece.to_vec();
                if level == 12 {
                    // As servers ask of Initial packets (RFC 9000, 14.1).
                    frames.resize(frames.len().max(1160), 0);
                }
                if let Some(packet) = ends.seal(receiver, level - 12, &frames) {
                    ends.receive(receiver, &packet);
                }
            }
        }
    }
    for end in &ends.ends {
        let _ = (
            end.stats(),
            end.is_established(),
            end.is_early_data_accepted(),
        );
    }
});
