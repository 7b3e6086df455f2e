//! What changes as chains or responses grow.

use std::time::Duration;

use lastbyte_exchange::Records;
use lastbyte_flights::{Packet, PacketKind, Path, largest, trace};
use lastbyte_link::{ETHERNET_HEADER, Side};

use crate::layout::{Network, Sweep};
use crate::{Handshake, Question, ms, whole};

/// The most sizes of a sweep, edges apart.
const MOST_STEPS: u32 = 400;
/// The most edges of a staircase.
const MOST_EDGES: usize = 40;

/// First byte, or handshake without a response, for Certificate messages of growing size. Both
/// sides of each edge are among them, and of each size beyond which the first byte comes a round
/// trip sooner, as the handshake has opened the window.
pub(crate) fn staircase(question: &Question) -> Vec<f64> {
    let handshake = Handshake::of(&question.arms[0]);
    let network = &question.network;
    let path = network.path();
    // Of a longer response, the first record comes no later. Where its last segment is not full,
    // others fill it.
    let payload = (network.payload()).min(network.response.records(path.mss).first + path.mss);
    // Over QUIC, it is in the first datagram.
    let payload = if handshake.is_over_quic() {
        payload.min(1000)
    } else {
        payload
    };
    let flights = |bytes: usize| {
        let handshake = handshake.with_certificate(bytes);
        handshake.flights(&path, path.server_initcwnd)
    };
    let (from, to, _) = question.sweep.bounds();
    // Each edge with the flights up to it; beyond the last one, as many as the largest needs.
    let (mut edges, mut low) = (Vec::new(), from);
    let mut count = flights(low);
    let most = flights(to);
    while count < most && edges.len() < MOST_EDGES {
        let edge = largest(low, to, |bytes| flights(bytes) <= count);
        edges.push((edge, count));
        low = edge + 1;
        count = flights(low);
    }
    let beside = edges.iter().flat_map(|(edge, _)| [*edge, edge + 1]);
    let mut sizes: Vec<usize> = question.sweep.evenly().chain(beside).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let first = |size: usize| {
        let walk = (handshake.with_certificate(size)).walk(network, payload, &path);
        walk.ttfb.unwrap_or(walk.handshake)
    };
    let mut steps: Vec<(usize, Duration)> = Vec::new();
    for size in sizes {
        let here = (size, first(size));
        if let Some(before) = steps.last().copied() {
            steps.extend(fall(before, here, path.link.rtt() / 2, first));
        }
        steps.push(here);
    }
    let step = |(size, first): (usize, Duration)| {
        let up_to = edges.iter().find(|(edge, _)| size <= *edge);
        let flights = up_to.map_or(count, |(_, flights)| *flights);
        [size as f64, flights as f64, ms(first)]
    };
    steps.into_iter().flat_map(step).collect()
}

/// Both sides of the size beyond which a time falls by more than `least`, as far as they lie
/// between these two.
fn fall(
    from: (usize, Duration),
    to: (usize, Duration),
    least: Duration,
    time: impl Fn(usize) -> Duration,
) -> impl Iterator<Item = (usize, Duration)> {
    let falls = |low: (usize, Duration), high: (usize, Duration)| low.1 > high.1 + least;
    let (mut low, mut high) = (from, to);
    while falls(from, to) && high.0 - low.0 > 1 {
        let middle = low.0.midpoint(high.0);
        let middle = (middle, time(middle));
        if falls(low, middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    [low, high]
        .into_iter()
        .filter(move |side| (from.0 + 1..to.0).contains(&side.0))
}

/// Last byte of both arms for responses of growing size. Both sides of each size at which either
/// needs a flight more are among them.
pub(crate) fn difference(question: &Question) -> Vec<f64> {
    let sweep = &question.sweep;
    let (from, to, _) = sweep.bounds();
    let path = question.network.path();
    let handshakes = question.arms.map(|arm| Handshake::of(&arm));
    // What the pacer makes of longer responses is no arithmetic.
    if handshakes.iter().any(Handshake::is_over_quic) {
        return Vec::new();
    }
    let [one, other] =
        handshakes.map(|handshake| Arrivals::new(&handshake, &question.network, to.max(1), &path));
    let edges = one.edges().chain(other.edges());
    let edges = edges.filter(|edge| (from..to).contains(edge));
    let beside = edges.flat_map(|edge| [edge, edge + 1]);
    let mut sizes: Vec<usize> = sweep.by_factors().chain(beside).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let point = |payload: usize| {
        [
            payload as f64,
            ms(one.last(payload)),
            ms(other.last(payload)),
        ]
    };
    sizes.into_iter().flat_map(point).collect()
}

/// When each byte of a response is there. Its sender does not know what is still to come, so each
/// shorter response comes as the first bytes of this one do, but for its last packet, which is
/// shorter: a test walks through both.
struct Arrivals {
    packets: Vec<Packet>,
    /// Bytes that the server has sent before it.
    begin: usize,
    records: Records,
    /// Where each flight begins, after `begin`.
    flights: Vec<usize>,
    path: Path,
}

impl Arrivals {
    /// Those of a response that has at least a byte.
    fn new(handshake: &Handshake, network: &Network, payload: usize, path: &Path) -> Arrivals {
        let (timeline, packets) = trace(&handshake.exchange(network, payload), path);
        let begin = handshake.before_response(network);
        let is_of_response = |packet: &Packet| {
            packet.sender == Side::Server
                && packet.kind == PacketKind::Data
                && packet.offset + packet.payload > begin
        };
        let mut flights = Vec::new();
        let mut sent = 0;
        for flight in &timeline.flights {
            if flight.sender == Side::Server {
                flights.extend((sent > begin).then(|| sent - begin));
                sent += flight.bytes;
            }
        }
        Arrivals {
            packets: packets.into_iter().filter(is_of_response).collect(),
            begin,
            records: network.response.records(path.mss),
            flights,
            path: path.clone(),
        }
    }

    /// The largest payloads that need no flight more.
    fn edges(&self) -> impl Iterator<Item = usize> {
        self.flights.iter().map(|wire| {
            let fits = |payload: usize| self.records.wire_bytes(payload) <= *wire;
            largest(0, *wire + 1, fits)
        })
    }

    /// When all of a response with so much payload is there.
    fn last(&self, payload: usize) -> Duration {
        let end = self.begin + self.records.wire_bytes(payload);
        let ends_after = self
            .packets
            .partition_point(|packet| packet.offset + packet.payload < end);
        let Some(packet) = self.packets.get(ends_after) else {
            return self
                .packets
                .last()
                .map_or(Duration::ZERO, |last| last.arrives);
        };
        let takes = |payload: usize| {
            // As the link counts it: an Ethernet frame.
            let frame = ETHERNET_HEADER + self.path.headers + payload;
            (self.path.link.backward.rate).map_or(Duration::ZERO, |rate| rate.serialisation(frame))
        };
        (packet.arrives + takes(end - packet.offset)).saturating_sub(takes(packet.payload))
    }
}

impl Sweep {
    fn bounds(&self) -> (usize, usize, usize) {
        let from = whole(self.from, 1 << 24);
        let to = whole(self.to, 1 << 24).max(from);
        (from, to, whole(self.steps, MOST_STEPS).max(1))
    }

    /// Sizes that are equally far apart.
    fn evenly(&self) -> impl Iterator<Item = usize> {
        let (from, to, steps) = self.bounds();
        let part = move |step| (to - from) as u64 * step as u64 / steps as u64;
        (0..=steps).map(move |step| from + part(step) as usize)
    }

    /// Sizes that grow by equal parts of each doubling, so that there are at least as many steps:
    /// nothing here that the library of another machine could round otherwise.
    fn by_factors(&self) -> impl Iterator<Item = usize> {
        let (from, to, steps) = self.bounds();
        let from = from.max(64);
        let doublings = (to / from).max(1).ilog2() as usize + 1;
        let parts = steps.div_ceil(doublings).max(1);
        let within = move |doubling: usize| {
            let base = from << doubling;
            (0..parts).map(move |part| base + base / parts * part)
        };
        let sizes = (0..doublings).flat_map(within);
        sizes
            .take_while(move |size| *size < to)
            .chain(std::iter::once(to.max(from)))
    }
}
