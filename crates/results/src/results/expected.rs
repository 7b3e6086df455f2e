//! What flight arithmetic expects of a sample.

use std::time::Duration;

use lastbyte_flights::{
    Compute, Exchange, Flight, Limit, MOST_WRITES, Path, Reason, Records, Request, Timeline,
    timeline, trace,
};

use lastbyte_sizes::{Message, framing};

use super::{EarlyData, FailedAttempt, Row, Wire};
use crate::study::exchange::{Cut, REQUEST, early_upload};
use crate::study::{Buffers, Cell, RecordSize, Writes};

/// When what happens on a connection without loss and jitter. `wire` is what an observer
/// saw of a handshake of the arm, `compute` the time that its steps take in memory.
pub fn expected(wire: &Wire, cell: &Cell, record_size: RecordSize, compute: Compute) -> Timeline {
    let last = timeline(&exchange(wire, cell, record_size, compute), &path(cell));
    match &wire.failed {
        None => last,
        Some(failed) => after(failed, last, cell, compute),
    }
}

/// The same of a connection after one that failed.
fn after(failed: &FailedAttempt, last: Timeline, cell: &Cell, compute: Compute) -> Timeline {
    let path = path(cell);
    // The client has to wait for the whole segment in which the certificate ends.
    let whole = failed.server_flight_wire_bytes as usize;
    let segments = (failed.through_certificate_wire_bytes as usize).div_ceil(path.mss.max(1));
    let exchange = Exchange {
        client_hello: failed.client_hello_wire_bytes as usize,
        server_flight: whole.min(segments * path.mss),
        client_finish: failed.alert_wire_bytes as usize,
        // A chain that leads nowhere is given up before anything of it is verified.
        compute: Compute {
            client_finish: Duration::ZERO,
            ..compute
        },
        ..Exchange::default()
    };
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

/// What crosses the wire of the connection that succeeds.
fn exchange(wire: &Wire, cell: &Cell, record_size: RecordSize, compute: Compute) -> Exchange {
    let payload = cell.data.0 as usize;
    let Cut { first, later } = Cut::new(record_size, cell);
    let records = Records { first, later };
    let response = match cell.hosts.writes {
        Writes::WHOLE => Response::whole(payload, records, wire),
        writes => Response::written(payload, records, writes),
    };
    let upload = cell.upload.0 as usize;
    let head = REQUEST.len() + framing::RECORD_OVERHEAD;
    let later_request = match (upload, payload) {
        (0, 0) => 0,
        _ => head + records.wire_bytes(upload),
    };
    // An early request goes with the ClientHello, as much of it as servers take.
    let is_early = wire.early_data == EarlyData::Accepted;
    let late = upload - early_upload(cell.upload.0) as usize;
    let late_records = Records {
        first: records.later,
        ..records
    };
    let (request, first_request) = match (is_early, late) {
        (true, 0) => (Request::EarlyData, 0),
        (true, late) => (Request::AfterHandshake, late_records.wire_bytes(late)),
        (false, _) => (Request::AfterHandshake, later_request),
    };
    let client_hello = wire.client_hello_wire_bytes as usize;
    let hello_record = framing::RECORD_HEADER + wire.bytes(Message::ClientHello) as usize;
    let early_data = match is_early {
        true => client_hello.saturating_sub(hello_record),
        false => 0,
    };
    Exchange {
        client_hello,
        early_data,
        hello_retry_request: wire.hello_retry_request_wire_bytes as usize,
        second_client_hello: wire.second_client_hello_wire_bytes as usize,
        server_flight: wire.server_flight_wire_bytes as usize,
        flight_writes: wire.server_writes.map(|bytes| bytes as usize),
        client_finish: wire.client_finish_wire_bytes as usize,
        first_request,
        upload,
        tickets: wire.ticket_wire_bytes as usize,
        ticket_writes: ticket_writes(wire, cell.hosts.writes),
        response: response.bytes,
        writes: response.writes,
        first_record: response.first_record,
        request,
        later_requests: cell.requests.saturating_sub(1),
        later_request,
        think: cell.think,
        compute,
    }
}

fn path(cell: &Cell) -> Path {
    Path {
        link: cell.link.clone(),
        mss: cell.hosts.mss(),
        headers: cell.hosts.headers(),
        client_initcwnd: cell.client_initcwnd,
        server_initcwnd: cell.initcwnd,
        buffers: cell.hosts.buffers.sizes(),
        client_receive_buffer: (cell.hosts.receive_buffer.bytes()).map(|bytes| bytes.0 as usize),
        ..Path::default()
    }
}

/// A response on the wire.
struct Response {
    bytes: usize,
    first_record: usize,
    /// As [`Exchange::writes`].
    writes: [usize; Writes::MOST],
}

impl Response {
    /// One that leaves as a whole, or as it was seen to.
    fn whole(payload: usize, records: Records, wire: &Wire) -> Response {
        Response {
            bytes: records.wire_bytes(payload),
            first_record: records.first_wire_bytes(payload),
            writes: wire.response_writes.map(|bytes| bytes as usize),
        }
    }

    /// One that a host of the laboratory writes so.
    fn written(payload: usize, records: Records, writes: Writes) -> Response {
        let in_write = Records {
            first: records.later,
            ..records
        };
        let size = |number| writes.size(number).map_or(payload, usize::from);
        let mut response = Response {
            bytes: 0,
            first_record: in_write.first_wire_bytes(payload.min(size(0))),
            writes: std::array::from_fn(|number| in_write.wire_bytes(size(number))),
        };
        let (mut left, mut number) = (payload, 0);
        while left > 0 {
            let part = left.min(size(number));
            response.bytes += in_write.wire_bytes(part);
            left -= part;
            number += 1;
        }
        response
    }
}

/// As [`Exchange::ticket_writes`]. A host that has writes of its own writes what waits before them first.
fn ticket_writes(wire: &Wire, writes: Writes) -> [usize; MOST_WRITES] {
    let mut known = wire.ticket_writes.map(|bytes| bytes as usize);
    if let [first @ 0, ..] = &mut known
        && writes != Writes::WHOLE
    {
        *first = wire.ticket_wire_bytes as usize;
    }
    known
}

/// About how long one connection takes.
pub fn expected_duration(wire: &Wire, cell: &Cell, record_size: RecordSize) -> Duration {
    expected(wire, cell, record_size, Compute::default())
        .ttlb
        .max(cell.link.rtt() * 2)
}

/// Whether each packet of a connection leaves and arrives in the same nanosecond, whether hosts have Linux's own buffers or
/// large ones: without loss and jitter, and of clients that try once.
pub(crate) fn buffers_change_no_packet(wire: &Wire, cell: &Cell, record_size: RecordSize) -> bool {
    let exchange = exchange(wire, cell, record_size, Compute::default());
    let with = |buffers: Buffers| {
        let path = Path {
            buffers: buffers.sizes(),
            ..path(cell)
        };
        trace(&exchange, &path)
    };
    let (of_linux, large) = (with(Buffers::Linux), with(Buffers::Large));
    wire.failed.is_none() && of_linux == large && large.0.limit.is_none()
}

/// Whether Linux's own buffers, in place of large ones, would have the last byte come more than 1 %
/// earlier or later, by arithmetic without loss.
pub(super) fn linux_buffers_matter(wire: &Wire, cell: &Cell, record_size: RecordSize) -> bool {
    if cell.hosts.buffers != Buffers::Large {
        return false;
    }
    let mut linux = cell.clone();
    linux.hosts.buffers = Buffers::Linux;
    let last_byte = |cell| expected(wire, cell, record_size, Compute::default()).ttlb;
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
        let ends = [row.client_tcp, row.server_tcp];
        ends.into_iter().flatten().any(|tcp| tcp.retransmits > 0)
    };
    let first = rows.iter().find(sent_again)?;
    let cell = cell.of_connection(first.index);
    let expected = expected(&first.wire, &cell, record_size, Compute::default());
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
    fn answer(wire: &Wire, writes: &str) -> (u32, Duration) {
        let mut cell = Cell {
            data: lastbyte_link::Bytes(12_245),
            ..Cell::default()
        };
        cell.link = lastbyte_link::Link::symmetric(
            Duration::from_millis(50),
            lastbyte_link::Direction::default(),
        );
        cell.hosts.writes = writes.parse().unwrap();
        let walked = expected(wire, &cell, RecordSize::FirstSegment, Compute::default());
        let mut of_server = walked.flights.iter();
        let response =
            of_server.rfind(|flight| flight.sender == Side::Server && flight.segments > 3);
        (response.unwrap().segments, walked.ttlb)
    }

    #[test]
    fn a_response_leaves_as_its_host_writes_it_or_as_it_was_seen_to() {
        let mut wire = Wire {
            client_hello_wire_bytes: 300,
            server_flight_wire_bytes: 1871,
            client_finish_wire_bytes: 80,
            ..Wire::default()
        };
        let ms = Duration::from_millis;
        assert_eq!(answer(&wire, "whole"), (9, ms(150)));
        for (place, bytes) in wire.response_writes.iter_mut().zip([1208, 2394, 560, 4766]) {
            *place = bytes;
        }
        assert_eq!(answer(&wire, "whole"), (10, ms(200)));
        // A host of the laboratory has its own: nine segments, and its tickets one of their own before them.
        assert_eq!(answer(&wire, "4322B"), (9, ms(150)));
        wire.ticket_wire_bytes = 2;
        assert_eq!(answer(&wire, "4322B"), (10, ms(150)));
    }
}
