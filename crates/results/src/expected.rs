//! What flight arithmetic expects of a sample.

use std::time::Duration;

use lastbyte_exchange::{
    Cut, EarlyData, Exchange, FailedAttempt, HandshakeFlight, Records, Requests, Then, Transfer,
    Transport, Unit, Writes as KnownWrites,
};
use lastbyte_flights::{
    Compute, Flight, Limit, Path, QuicCongestion, QuicPath, Reason, Timeline, quic, timeline, trace,
};

use lastbyte_sizes::{Message, framing};

use super::Row;
use lastbyte_study::exchange::{REQUEST, early_upload, records};
use lastbyte_study::{Buffers, Cell, Congestion, MtuDiscovery, Quic, RecordSize, Writes};

/// When what happens on a connection without loss and jitter. `seen` is what an observer
/// saw of a handshake of the arm, `compute` the time that its steps take in memory.
pub fn expected(
    seen: &Exchange,
    cell: &Cell,
    record_size: RecordSize,
    compute: Compute,
) -> Timeline {
    let (whole, path) = (whole(seen, cell, record_size), path(cell, compute));
    let last = match seen.transport {
        Transport::Tcp(_) => timeline(&whole, &path),
        Transport::Quic(_) => over_quic(&whole, &path, cell),
    };
    match &seen.failed {
        None => last,
        Some(failed) => after(failed, last, cell, compute),
    }
}

/// Ends that ask each other for another delay of acknowledgements say so in what they send first after the handshake.
fn over_quic(whole: &Exchange, path: &Path, cell: &Cell) -> Timeline {
    let timeline = quic::timeline(whole, path);
    let limit = |until, reason| Some(Limit { until, reason });
    let limit = match (cell.quic.mtu_discovery, cell.quic.ack_delay) {
        // They pad what they send to other sizes, or lose it.
        (MtuDiscovery::On, _) if cell.quic.largest_datagram() > Quic::LEAST_DATAGRAM => {
            limit(Duration::ZERO, Reason::MtuDiscovery)
        }
        // Once the handshake is complete they search.
        (MtuDiscovery::On, _) => limit(timeline.handshake, Reason::MtuDiscovery),
        (MtuDiscovery::Off, Quic::ACK_DELAY) => None,
        (MtuDiscovery::Off, _) => limit(timeline.handshake, Reason::Paced),
    };
    let limits = [timeline.limit, limit].into_iter().flatten();
    Timeline {
        limit: limits.min_by_key(|limit| limit.until),
        ..timeline
    }
}

/// What the server of a connection over QUIC sends of its handshake before it waits for the client, flight by flight.
pub fn quic_flights(exchange: &Exchange, cell: &Cell) -> Vec<quic::ServerFlight> {
    let path = path(cell, Compute::default());
    quic::walk(quic::Messages::of(exchange), &path).server_flights(&path)
}

/// Whether arithmetic has a handshake over QUIC in this cell.
pub(crate) fn is_followed_over_quic(exchange: &Exchange, cell: &Cell) -> bool {
    quic::unfollowed(exchange, &path(cell, Compute::default())).is_none()
}

/// The same of a connection after one that failed.
fn after(failed: &FailedAttempt, last: Timeline, cell: &Cell, compute: Compute) -> Timeline {
    let path = path(
        cell,
        // A chain that leads nowhere is given up before anything of it is verified.
        Compute {
            client_finish: Duration::ZERO,
            ..compute
        },
    );
    // The client has to wait for the whole segment in which the certificate ends.
    let whole = failed.server_flight_wire_bytes as usize;
    let segments = (failed.through_certificate_wire_bytes as usize).div_ceil(path.mss.max(1));
    let received = whole.min(segments * path.mss);
    let exchange = Exchange::of_flights([
        (HandshakeFlight::ClientHello, failed.client_hello_wire_bytes),
        (HandshakeFlight::Server, number(received)),
        (HandshakeFlight::ClientFinish, failed.alert_wire_bytes),
    ]);
    let first = timeline(&exchange, &path);
    // The next SYN leaves behind the last segment's acknowledgement and the alert.
    let alert = path.headers + failed.alert_wire_bytes as usize;
    let rate = cell.link.forward.rate;
    let takes = |bytes| rate.map_or(Duration::ZERO, |rate| rate.serialisation(bytes));
    let begin = first.handshake + takes(path.headers) + takes(alert);
    let mut flights = first.flights;
    flights.extend(last.flights.into_iter().map(|flight| Flight {
        start: flight.start + begin,
        ..flight
    }));
    Timeline {
        connect: first.connect,
        handshake: last.handshake + begin,
        ttfb: last.ttfb.map(|ttfb| ttfb + begin),
        ttlb: last.ttlb + begin,
        limit: first.limit.or(last.limit.map(|limit| Limit {
            until: limit.until + begin,
            ..limit
        })),
        flights,
    }
}

/// All that crosses the wire of the connection that succeeds: what was seen of it, with the requests and responses of a cell.
fn whole(seen: &Exchange, cell: &Cell, record_size: RecordSize) -> Exchange {
    let payload = cell.data.0 as usize;
    let records = records(record_size, cell);
    let mut exchange = seen.clone();
    // What hosts of the laboratory write, or what was seen.
    let written = match cell.hosts.writes {
        Writes::WHOLE => None,
        writes => Some(KnownWrites::new(
            Unit::Payload,
            Then::Again,
            writes.sizes().map(u32::from),
        )),
    };
    if let (Some(_), Some(tickets)) = (&written, &mut exchange.tickets) {
        // Such a host writes what waits before them first.
        tickets.writes.get_or_insert_with(KnownWrites::one);
    }
    let seen_writes = seen.response.as_ref();
    let seen_writes = seen_writes.and_then(|response| response.writes.clone());
    exchange.response = (payload > 0).then(|| Transfer {
        payload,
        cut: Cut::Records(records),
        writes: written.or(seen_writes),
    });
    let upload = cell.upload.0 as usize;
    // An early request goes with the ClientHello, as much of it as servers take.
    let early = match seen.negotiated.early_data {
        EarlyData::Accepted => take_early(&mut exchange),
        EarlyData::None | EarlyData::Refused => None,
    };
    let request = (upload > 0 || payload > 0).then(|| request(upload, records));
    let late = upload - early_upload(cell.upload.0) as usize;
    exchange.requests = Some(Box::new(Requests {
        first: match (&early, late) {
            (None, _) => request.clone(),
            (Some(_), 0) => None,
            (Some(_), late) => Some(Transfer::of_records(
                late,
                Records {
                    first: records.later,
                    ..records
                },
            )),
        },
        early,
        body: upload,
        later: cell.requests.saturating_sub(1),
        each: request,
        think: cell.think,
    }));
    exchange
}

/// A request with so many bytes of body: its head has a record of its own.
fn request(upload: usize, records: Records) -> Transfer {
    let body = records.wire_bytes(upload) - upload;
    Transfer {
        payload: REQUEST.len() + upload,
        cut: Cut::Around(framing::RECORD_OVERHEAD + body),
        writes: None,
    }
}

/// What of the first flight is no ClientHello.
fn take_early(exchange: &mut Exchange) -> Option<Transfer> {
    let all = exchange.sent(HandshakeFlight::ClientHello);
    let hello = framing::RECORD_HEADER as u32 + exchange.bytes(Message::ClientHello);
    let early = all.saturating_sub(hello);
    (exchange.handshake).see(HandshakeFlight::ClientHello, Some(all - early));
    Some(Transfer::seen(early as usize))
}

fn path(cell: &Cell, compute: Compute) -> Path {
    Path {
        link: cell.link.clone(),
        mss: cell.hosts.mss(),
        headers: cell.hosts.headers(),
        client_initcwnd: cell.client_initcwnd,
        server_initcwnd: cell.initcwnd,
        buffers: cell.hosts.buffers.sizes(),
        client_receive_buffer: (cell.hosts.receive_buffer.bytes()).map(|bytes| bytes.0 as usize),
        compute,
        quic: QuicPath {
            client_datagram: cell.quic.client_datagram.into(),
            server_datagram: cell.quic.server_datagram.into(),
            initial_rtt: cell.quic.initial_rtt,
            congestion: match cell.congestion {
                Congestion::Bbr => QuicCongestion::Bbr,
                Congestion::Cubic | Congestion::Reno => QuicCongestion::ByLoss,
            },
        },
        ..Path::default()
    }
}

fn number(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// About how long one connection takes.
pub fn expected_duration(exchange: &Exchange, cell: &Cell, record_size: RecordSize) -> Duration {
    expected(exchange, cell, record_size, Compute::default())
        .ttlb
        .max(cell.link.rtt() * 2)
}

/// Whether each packet of a connection leaves and arrives in the same nanosecond, whether hosts have Linux's own buffers or
/// large ones: without loss and jitter, and of clients that try once.
pub fn buffers_change_no_packet(exchange: &Exchange, cell: &Cell, record_size: RecordSize) -> bool {
    let all = whole(exchange, cell, record_size);
    let with = |buffers: Buffers| {
        let path = Path {
            buffers: buffers.sizes(),
            ..path(cell, Compute::default())
        };
        trace(&all, &path)
    };
    let (of_linux, large) = (with(Buffers::Linux), with(Buffers::Large));
    exchange.failed.is_none() && of_linux == large && large.0.limit.is_none()
}

/// Whether Linux's own buffers, in place of large ones, would have the last byte come more than 1 %
/// earlier or later, by arithmetic without loss.
pub(super) fn linux_buffers_matter(
    exchange: &Exchange,
    cell: &Cell,
    record_size: RecordSize,
) -> bool {
    if cell.hosts.buffers != Buffers::Large {
        return false;
    }
    let mut linux = cell.clone();
    linux.hosts.buffers = Buffers::Linux;
    let last_byte = |cell| expected(exchange, cell, record_size, Compute::default()).ttlb;
    let (one, other) = (last_byte(cell), last_byte(&linux));
    one.abs_diff(other) > one / 100
}

/// Connections that sent packets again over a link that loses and delays none by chance, and why, if arithmetic has that. None
/// where none did, and of pages, whose connections are several.
pub(super) fn sent_again(
    rows: &[Row],
    cell: &Cell,
    record_size: RecordSize,
) -> Option<(u32, Option<Reason>)> {
    if cell.page.is_some() || cell.has_loss() || cell.has_jitter() {
        return None;
    }
    let sent_again = |row: &&Row| {
        let ends = [row.client_tcp(), row.server_tcp()];
        ends.into_iter().flatten().any(|tcp| tcp.retransmits > 0)
    };
    let first = rows.iter().find(sent_again)?;
    let cell = cell.of_connection(first.index);
    let expected = expected(&first.exchange, &cell, record_size, Compute::default());
    let count = rows.iter().filter(sent_again).count();
    Some((
        u32::try_from(count).unwrap_or(u32::MAX),
        expected
            .limit
            .map(|limit| limit.reason)
            .filter(|reason| reason.sends_again()),
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lastbyte_link::Side;

    use super::*;

    /// How many segments the server's last flight but one has, and when the last byte is there.
    fn answer(exchange: &Exchange, writes: &str) -> (u32, Duration) {
        let mut cell = Cell {
            data: lastbyte_link::Bytes(12_245),
            ..Cell::default()
        };
        cell.link = lastbyte_link::Link::symmetric(
            Duration::from_millis(50),
            lastbyte_link::Direction::default(),
        );
        cell.hosts.writes = writes.parse().unwrap();
        let walked = expected(
            exchange,
            &cell,
            RecordSize::FirstSegment,
            Compute::default(),
        );
        let mut of_server = walked.flights.iter();
        let response =
            of_server.rfind(|flight| flight.sender == Side::Server && flight.segments > 3);
        (response.unwrap().segments, walked.ttlb)
    }

    #[test]
    fn a_response_leaves_as_its_host_writes_it_or_as_it_was_seen_to() {
        let mut exchange = Exchange::of_flights([
            (HandshakeFlight::ClientHello, 300),
            (HandshakeFlight::Server, 1871),
            (HandshakeFlight::ClientFinish, 80),
        ]);
        let ms = Duration::from_millis;
        assert_eq!(answer(&exchange, "whole"), (9, ms(150)));
        let writes = KnownWrites::new(Unit::Wire, Then::Again, [1208, 2394, 560, 4766]);
        exchange.response = Some(Transfer::seen(0).in_writes(Some(writes)));
        assert_eq!(answer(&exchange, "whole"), (10, ms(200)));
        // A host of the laboratory has its own: nine segments, and its tickets one of their own before them.
        assert_eq!(answer(&exchange, "4322B"), (9, ms(150)));
        exchange.tickets = Some(Transfer::seen(2));
        assert_eq!(answer(&exchange, "4322B"), (10, ms(150)));
    }
}
