#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use lastbyte_link::{Bytes, EcnCodepoint, Seed, Side, Time};
use lastbyte_pki::Store;

use super::*;
use crate::lab::PreparedArm;
use crate::lab::row::row;
use crate::results::{Outcome, Row};

const ARM: &str = "X25519MLKEM768/ml-dsa-65/transport=quic";
/// How long each datagram takes.
const WAY: Duration = Duration::from_millis(50);

fn prepared(arm: &str) -> PreparedArm {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let store = Store::open(target.join("test-chains"));
    PreparedArm::new(arm.parse().unwrap(), &store).unwrap()
}

/// A connection, and the datagrams on their way.
struct Moved {
    pair: QuicPair,
    under_way: VecDeque<(Time, Side, Vec<u8>)>,
    /// All that were sent, by whom.
    sent: Vec<(Side, Vec<u8>)>,
    now: Time,
    outcome: Option<Outcome>,
}

impl Moved {
    fn new(arm: &PreparedArm, index: u32) -> Moved {
        let cell = Cell {
            data: Bytes(20_000),
            ..Cell::default()
        };
        let settings = QuicSettings::new(arm, &cell, Seed(1));
        Moved {
            pair: QuicPair::new(&settings, index, settings.kept(index).unwrap()).unwrap(),
            under_way: VecDeque::new(),
            sent: Vec::new(),
            now: Time(0),
            outcome: None,
        }
    }

    fn with_sink(
        &mut self,
        step: impl FnOnce(&mut QuicPair, Time, &mut dyn FnMut(Side, EcnCodepoint, &[u8])),
    ) {
        let (at, under_way, sent) = (self.now + WAY, &mut self.under_way, &mut self.sent);
        step(&mut self.pair, self.now, &mut |sender, _, datagram| {
            under_way.push_back((at, sender.other(), datagram.to_vec()));
            sent.push((sender, datagram.to_vec()));
        });
    }

    fn receive(&mut self, receiver: Side, datagram: &[u8]) {
        self.with_sink(|pair, now, sink| {
            pair.receive(now, receiver, EcnCodepoint::NotEct, datagram, sink)
        });
    }

    /// Goes on to what happens next. Every datagram that arrives is shown to `meets` first.
    fn go_on(&mut self, meets: &mut dyn FnMut(&mut Moved, Side)) {
        if self.pair.due().is_some_and(|due| due <= self.now) {
            self.with_sink(|pair, now, sink| pair.on_time(now, sink));
        }
        while let Some((at, receiver, _)) = self.under_way.front()
            && *at <= self.now
        {
            let receiver = *receiver;
            meets(self, receiver);
            let (_, receiver, datagram) = self.under_way.pop_front().unwrap();
            self.receive(receiver, &datagram);
        }
        self.outcome = self.pair.outcome(UnderWay::Something);
        let arrival = self.under_way.front().map(|(at, ..)| *at);
        let next = arrival.into_iter().chain(self.pair.due()).min();
        self.now = next.unwrap().max(self.now);
    }

    fn run(mut self, meets: &mut dyn FnMut(&mut Moved, Side)) -> (Row, Vec<(Side, Vec<u8>)>) {
        while self.outcome.is_none() {
            self.go_on(meets);
        }
        let ended = self.pair.finish(self.outcome.unwrap());
        (row(ended, 0, 0, Duration::ZERO), self.sent)
    }
}

/// As on one thread of the live engine: each goes on with its own random numbers.
#[test]
fn connections_that_take_turns_are_as_they_are_alone() {
    let arm = prepared(ARM);
    let alone = [3, 4].map(|index| Moved::new(&arm, index).run(&mut |_, _| ()));
    let mut turns = [3, 4].map(|index| Moved::new(&arm, index));
    while turns.iter().any(|moved| moved.outcome.is_none()) {
        for moved in &mut turns {
            if moved.outcome.is_none() {
                moved.go_on(&mut |_, _| ());
            }
        }
    }
    for (alone, moved) in alone.into_iter().zip(turns) {
        let sent = moved.sent.clone();
        let ended = moved.pair.finish(moved.outcome.unwrap());
        assert_eq!(alone.0.outcome, Outcome::Completed);
        assert!(alone.1 == sent, "some byte of {} differs", sent.len());
        assert!(alone.0 == row(ended, 0, 0, Duration::ZERO));
    }
}

/// No end of any connection draws what another one draws.
#[test]
fn ends_share_no_random_numbers() {
    let arm = prepared("X25519MLKEM768/ecdsa-p256/transport=quic");
    let mut owners = std::collections::BTreeMap::new();
    for index in 0..8 {
        let (_, sent) = Moved::new(&arm, index).run(&mut |_, _| ());
        // The Source Connection ID of a long header (RFC 9000, 17.2).
        let long = sent.iter().filter(|(_, datagram)| datagram[0] & 0x80 != 0);
        for (sender, datagram) in long {
            let at = 6 + usize::from(datagram[5]);
            let id = &datagram[at + 1..][..usize::from(datagram[at])];
            let owner = *owners.entry(id.to_vec()).or_insert((index, *sender));
            assert_eq!(owner, (index, *sender));
        }
    }
    assert_eq!(owners.len(), 16);
}

/// What another connection's ends say, to whichever end, is no word of this one.
#[test]
fn another_connections_datagrams_change_nothing() {
    let arm = prepared(ARM);
    let (alone, _) = Moved::new(&arm, 3).run(&mut |_, _| ());
    let (_, others) = Moved::new(&arm, 4).run(&mut |_, _| ());
    let mut others = others.iter().cycle();
    let (met, _) = Moved::new(&arm, 3).run(&mut |moved, receiver| {
        // The first datagram of any client begins a connection.
        if moved.now > Time(0) + WAY {
            let (_, datagram) = others.find(|(sender, _)| *sender != receiver).unwrap();
            moved.receive(receiver, datagram);
        }
    });
    assert_eq!(met.outcome, Outcome::Completed);
    assert_eq!(met.times, alone.times);
    assert!(met.exchange.handshake == alone.exchange.handshake);
}

/// Bytes of nobody are no datagram of QUIC, and end no connection.
#[test]
fn garbage_changes_nothing() {
    let arm = prepared(ARM);
    let (alone, sent) = Moved::new(&arm, 3).run(&mut |_, _| ());
    let mut count = 0_u8;
    let (met, _) = Moved::new(&arm, 3).run(&mut |moved, receiver| {
        count = count.wrapping_add(1);
        let (_, own) = &sent[usize::from(count) % sent.len()];
        let mut bytes = own.clone();
        match count % 4 {
            0 => bytes.clear(),
            1 => bytes.truncate(bytes.len() / 2),
            2 => bytes.iter_mut().for_each(|byte| *byte ^= count),
            _ => bytes = vec![count; 1300],
        }
        if moved.now > Time(0) + WAY {
            moved.receive(receiver, &bytes);
        }
    });
    assert_eq!(met.outcome, Outcome::Completed);
    assert_eq!(met.times, alone.times);
}

/// Of a peer that has gone, nothing more comes, and the connection ends by its own timer.
#[test]
fn a_peer_that_goes_silent_ends_by_idleness() {
    let arm = prepared(ARM);
    let mut moved = Moved::new(&arm, 3);
    while moved.outcome.is_none() {
        // The server's datagrams are lost from the start.
        moved
            .under_way
            .retain(|(_, receiver, _)| *receiver == Side::Server);
        moved.go_on(&mut |_, _| ());
    }
    let Some(Outcome::Failed { reason, .. }) = &moved.outcome else {
        panic!("{:?}", moved.outcome);
    };
    assert_eq!(reason, "client: nothing came any more");
    assert!(moved.now >= Time(30_000_000_000), "{:?}", moved.now);
}
