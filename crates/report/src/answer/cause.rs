//! What a difference between two arms comes of: round trips, bytes and what is left.

use std::time::Duration;

use lastbyte_flights::quic::Hold;
use lastbyte_link::Side as End;
use lastbyte_sizes::Message;

use super::{Certainty, Difference, Side, side_of};
use crate::thresholds::{BYTES_TOLERANCE, BYTES_TOLERANCE_OF_RTT, ROUND_TRIP_TOLERANCE};
use lastbyte_results::{ArmSummary, CellSummary, Contents, Interval, Metric, Percent, Percentile};
use lastbyte_study::{Parameter, TransportName};

/// What the network's part of a difference consists of, and where that is not known apart, the whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts {
    /// Whole ones more, or fewer.
    pub(crate) round_trips: i64,
    /// What is left of it, in milliseconds, fewer if it is negative.
    pub(crate) rest: Vec<(Reason, f64)>,
}

/// What else than whole round trips a time is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Sending them, while nothing waits for an acknowledgement.
    Bytes,
    /// Waiting for acknowledgements while the link has nothing to send, for less than a round trip.
    Waiting,
    /// Nobody knows: in real time and in calibrated time computing is in it, and luck where there is any.
    Unknown,
}

impl Parts {
    pub(super) fn of(&self, reason: Reason) -> f64 {
        let parts = self.rest.iter().filter(|(of, _)| *of == reason);
        parts.map(|(_, ms)| ms).sum()
    }
}

/// Of an arm and the baseline. `None` where round trips can't be told from the rest.
pub(crate) fn parts(
    cell: &CellSummary,
    arm: &ArmSummary,
    metric: Metric,
    percentile: Percentile,
) -> Option<Parts> {
    let difference = |metric| {
        let side = |sample| side_of(sample, metric, percentile);
        Some(Difference {
            cell,
            increase: Percent(0.0),
            interval: Interval {
                low: None,
                high: None,
            },
            before: side(cell.baseline()?)?,
            after: side(arm)?,
            shown: Certainty::Shown,
        })
    };
    let handshake = difference(Metric::Handshake)?;
    match metric {
        Metric::Handshake => of_handshake(&handshake),
        _ => of_response(&handshake, &difference(metric)?),
    }
}

/// Of a handshake: how many round trips are told by flights, never by time alone, as a signature can take as long.
pub(super) fn of_handshake(difference: &Difference<'_>) -> Option<Parts> {
    let [before, after] = both(difference)?;
    let rtt = rtt_of(difference)?;
    let moved = moved(difference);
    let round_trips = i64::from(after.round_trips()) - i64::from(before.round_trips());
    let rest = moved - round_trips as f64 * rtt;
    let near = ROUND_TRIP_TOLERANCE * rtt;
    let whole = |reason| {
        Some(Parts {
            round_trips,
            rest: vec![(reason, rest)],
        })
    };
    let is_so = round_trips == 0 || (round_trips > 0) == (moved > 0.0);
    let bytes = sending(difference);
    let is_sending = |time: f64| {
        let tolerance =
            BYTES_TOLERANCE * bytes.abs().max(time.abs()) + BYTES_TOLERANCE_OF_RTT * rtt;
        (bytes.min(0.0) - tolerance..=bytes.max(0.0) + tolerance).contains(&time)
    };
    // Where a link is busy with one flight until the next may leave, more flights cost the time of their bytes alone.
    if round_trips != 0 && !is_idle_between(difference, before.server.max(after.server)) {
        return (!has_luck(difference) && is_network(difference) && is_sending(moved)).then(|| {
            Parts {
                round_trips: 0,
                rest: vec![(Reason::Bytes, moved)],
            }
        });
    }
    match (has_luck(difference), is_network(difference)) {
        _ if !is_so => None,
        (false, true) if is_sending(rest) => whole(Reason::Bytes),
        // Whatever computes longer makes a handshake longer yet.
        (false, false) if rest * moved.signum() >= -near => whole(Reason::Unknown),
        _ if rest.abs() <= near => whole(Reason::Unknown),
        _ => None,
    }
}

/// Of a response with what came before it. It has as many bytes in both arms: what moves it behind the handshake is
/// waiting, and what the client sends with its Finished.
fn of_response(handshake: &Difference<'_>, whole: &Difference<'_>) -> Option<Parts> {
    let rtt = rtt_of(whole)?;
    let near = ROUND_TRIP_TOLERANCE * rtt;
    if has_luck(whole) || !is_network(whole) {
        let round_trips = (moved(whole) / rtt).round();
        let rest = moved(whole) - round_trips * rtt;
        let is_waiting = sending(whole).abs() <= 1.5 * near;
        return (!whole.cell.cell.has_loss() && rest.abs() <= near && is_waiting).then(|| Parts {
            round_trips: round_trips as i64,
            rest: vec![(Reason::Unknown, rest)],
        });
    }
    let mut parts = of_handshake(handshake)?;
    let finish = taking(whole, End::Client, finish_bytes);
    let behind = moved(whole) - moved(handshake) - finish;
    let round_trips = (behind / rtt).round();
    let left = behind - round_trips * rtt;
    let (round_trips, left) = if left.abs() <= near {
        (round_trips as i64, left)
    } else {
        (0, behind)
    };
    parts.round_trips += round_trips;
    if let Some((_, bytes)) = parts.rest.first_mut() {
        *bytes += finish;
    }
    parts.rest.push((Reason::Waiting, left));
    Some(parts)
}

/// How much later a response comes behind its handshake, in whole round trips or in parts of one, where the network
/// alone is known and does not depend on luck.
pub(super) fn behind_the_handshake(whole: &Difference<'_>, percentile: Percentile) -> Option<f64> {
    let side = |side: &Side<'_>| {
        let handshake = side_of(side.sample, Metric::Handshake, percentile)?;
        Some(side.network().as_secs_f64() - handshake.network().as_secs_f64())
    };
    if whole.cell.cell.has_loss() {
        return None;
    }
    let moved = 1e3 * (side(&whole.after)? - side(&whole.before)?);
    Some(moved / rtt_of(whole)?)
}

/// In milliseconds; `None` where connections have different ones.
fn rtt_of(difference: &Difference<'_>) -> Option<f64> {
    let cell = &difference.cell.cell;
    let rtt = 1e3 * cell.link.rtt().as_secs_f64();
    (rtt > 0.0 && !cell.draws(Parameter::RTT)).then_some(rtt)
}

/// How much later, in milliseconds, without computing where that is known.
fn moved(difference: &Difference<'_>) -> f64 {
    let network = |side: &Side<'_>| side.network().as_secs_f64();
    1e3 * (network(&difference.after) - network(&difference.before))
}

fn has_luck(difference: &Difference<'_>) -> bool {
    difference.cell.cell.has_luck()
}

/// Whether there is no computing in [`Side::network`].
fn is_network(difference: &Difference<'_>) -> bool {
    [&difference.before, &difference.after]
        .iter()
        .all(|side| side.shares.is_some() || side.sample.engine.contents() == Contents::Network)
}

/// How long the bytes that a handshake has more take on the link, in milliseconds; negative if it has fewer.
pub(super) fn sending(difference: &Difference<'_>) -> f64 {
    taking(difference, End::Server, server_bytes) + taking(difference, End::Client, hello_bytes)
}

/// How long the bytes that `end` sends more take on the link, in milliseconds.
fn taking(difference: &Difference<'_>, end: End, bytes: fn(&Side<'_>, usize) -> u64) -> f64 {
    let cell = &difference.cell.cell;
    let rate = match end {
        End::Client => cell.link.forward.rate,
        End::Server => cell.link.backward.rate,
    };
    let headers = cell.hosts.headers();
    let [before, after] = [&difference.before, &difference.after].map(|side| bytes(side, headers));
    let time = |bytes: u64| {
        let time = rate.map(|rate| rate.serialisation(bytes as usize));
        1e3 * time.unwrap_or(Duration::ZERO).as_secs_f64()
    };
    time(after) - time(before)
}

fn server_bytes(side: &Side<'_>, headers: usize) -> u64 {
    let wire = side.sample.wire.as_ref();
    wire.map_or(0, |wire| {
        let segments = wire.server_flights.map_or(0, |flights| flights.segments);
        u64::from(wire.server_wire_bytes().median + wire.failed_server_wire_bytes().median)
            + (segments * headers) as u64
    })
}

fn hello_bytes(side: &Side<'_>, headers: usize) -> u64 {
    let wire = side.sample.wire.as_ref();
    wire.map_or(0, |wire| {
        let hellos = [Message::ClientHello, Message::SecondClientHello];
        let bytes: u32 = hellos
            .iter()
            .map(|message| wire.bytes(*message).median)
            .sum();
        u64::from(bytes) + u64::from(wire.size("client_hello_segments").median) * headers as u64
    })
}

fn finish_bytes(side: &Side<'_>, _: usize) -> u64 {
    let wire = side.sample.wire.as_ref();
    wire.map_or(0, |wire| {
        let sent = [
            Message::ClientCertificate,
            Message::ClientCertificateVerify,
            Message::ClientFinished,
        ];
        sent.iter()
            .map(|message| u64::from(wire.bytes(*message).median))
            .sum()
    })
}

/// Whether the link has sent each flight but the last before the next one may leave, so that each costs a round trip.
fn is_idle_between(difference: &Difference<'_>, flights: u32) -> bool {
    let cell = &difference.cell.cell;
    let Some(rate) = cell.link.backward.rate.filter(|_| flights > 1) else {
        return true;
    };
    // Slow start doubles them.
    let largest = f64::from(cell.initcwnd) * 2f64.powf(f64::from(flights) - 2.0);
    let segment = rate.serialisation(cell.hosts.mss() + cell.hosts.headers());
    largest * segment.as_secs_f64() < cell.link.rtt().as_secs_f64()
}

/// What costs a handshake round trips.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Flights {
    /// The server's.
    pub(super) server: u32,
    /// Segments in them, or datagrams.
    pub(super) segments: usize,
    /// What ended the one before the last.
    pub(super) held: Option<Hold>,
    /// What carries them.
    pub(super) transport: TransportName,
    /// Whether the server asks for another key share.
    pub(super) is_retried: bool,
    /// Whether a connection fails before it.
    pub(super) is_second: bool,
}

pub(super) fn flights(arm: &ArmSummary) -> Option<Flights> {
    let wire = arm.wire.as_ref()?;
    let server = wire.server_flights?;
    Some(Flights {
        server: server.flights,
        segments: server.segments,
        held: server.held,
        transport: server.transport,
        is_retried: wire.bytes(Message::HelloRetryRequest).median > 0,
        is_second: wire.failed_server_wire_bytes().median > 0,
    })
}

/// Those of the baseline and of the arm, if one transport carries both: each takes round trips of its own.
pub(super) fn both(difference: &Difference<'_>) -> Option<[Flights; 2]> {
    let before = flights(difference.before.sample)?;
    let after = flights(difference.after.sample)?;
    (before.transport == after.transport).then_some([before, after])
}

impl Flights {
    /// Besides the two that every handshake takes.
    pub(super) fn round_trips(self) -> u32 {
        // A connection that fails takes its own two, to be known for what it is.
        const FAILED: u32 = 2;
        let retried = u32::from(self.is_retried);
        self.server.saturating_sub(1) + retried + FAILED * u32::from(self.is_second)
    }
}
