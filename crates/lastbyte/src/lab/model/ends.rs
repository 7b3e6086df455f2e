//! One connection: its ends and the network between them on a clock of their own.

use std::time::Duration;

use lastbyte_link::{Side, Time};
use lastbyte_tls::observer::quic::QuicObservation;

use super::path::{Datagram, Network};
use super::tap::Tap;
use crate::lab::PreparedArm;
use crate::lab::luck::link_seed;
use crate::lab::quic::{QuicPair, QuicSettings, UnderWay, never_began};
use crate::lab::row;
use crate::results::{Outcome, Row};
use crate::study::{Cell, Experiment};

/// What happens on one connection at most, whatever it asks for: enough for gigabytes.
const MOST_STEPS: u64 = 1 << 32;

/// A connection that has come to its end.
pub(super) struct Carried {
    pub(super) row: Row,
    /// All that were sent.
    #[cfg_attr(not(test), allow(dead_code, reason = "arithmetic is held against it"))]
    pub(super) datagrams: Vec<Datagram>,
    /// The most that the server had sent by what it had received, until it knew the client's address.
    pub(super) amplification: Option<f64>,
    /// Those of the handshake.
    pub(super) observed: QuicObservation,
    /// The lines of its key log.
    pub(super) secrets: String,
}

/// Carries connection `index` of a sample to its end. A tap sees its datagrams.
pub(super) fn connection(
    arm: &PreparedArm,
    cell: &Cell,
    experiment: &Experiment,
    index: u32,
    tap: Option<&mut Tap>,
) -> Carried {
    connection_losing(arm, cell, experiment, index, None, tap)
}

/// The same with this datagram lost besides, by its number among its sender's, from 0.
pub(super) fn connection_losing(
    arm: &PreparedArm,
    cell: &Cell,
    experiment: &Experiment,
    index: u32,
    lost: Option<(Side, u32)>,
    tap: Option<&mut Tap>,
) -> Carried {
    let seed = link_seed(experiment.seed, &cell.link);
    let mut network = Network::new(cell, seed, index, lost, tap);
    let settings = QuicSettings::new(arm, cell, experiment.seed);
    let kept = settings.kept(index);
    let ended = match kept.and_then(|kept| QuicPair::new(&settings, index, kept)) {
        Ok(mut pair) => {
            let outcome = carry(&mut pair, &mut network, experiment.timeout);
            pair.finish(outcome)
        }
        Err(error) => never_began(&error),
    };
    let observed = ended.observed_datagrams().unwrap_or_default();
    let amplification = ended.amplification;
    let exchange = row::quic::exchange(&observed);
    let secrets = ended.secrets();
    Carried {
        row: row::row_of(ended, exchange, index, 0, Duration::ZERO),
        datagrams: network.datagrams,
        amplification,
        observed,
        secrets,
    }
}

/// Has a connection go on to its end.
fn carry(pair: &mut QuicPair, network: &mut Network<'_>, timeout: Duration) -> Outcome {
    let end = Time(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let mut now = Time(0);
    for _ in 0..MOST_STEPS {
        if pair.due().is_some_and(|due| due <= now) {
            pair.on_time(now, &mut |sender, ecn, datagram| {
                network.send(now, sender, ecn, datagram);
            });
        }
        // One datagram comes at a time, as at a socket, and each end answers it before the next.
        while let Some((receiver, ecn, datagram)) = network.arrived(now) {
            pair.receive(
                now,
                receiver,
                ecn,
                &datagram,
                &mut |sender, ecn, datagram| {
                    network.send(now, sender, ecn, datagram);
                },
            );
        }
        let under_way = match network.next_arrival() {
            Some(_) => UnderWay::Something,
            None => UnderWay::Nothing,
        };
        if let Some(outcome) = pair.outcome(under_way) {
            return outcome;
        }
        let next = network.next_arrival().into_iter().chain(pair.due()).min();
        match next.filter(|next| *next <= end) {
            Some(next) => now = next.max(now),
            None => break,
        }
    }
    Outcome::TimedOut
}
