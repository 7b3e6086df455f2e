//! What flight arithmetic expects of a sample.

use std::time::Duration;

use lastbyte_flights::{Compute, Exchange, Path, Records, Request, Timeline, timeline};

use lastbyte_link::Side;
use lastbyte_sizes::{Message, framing};

use super::{EarlyData, Wire};
use crate::study::exchange::{Cut, REQUEST, early_upload};
use crate::study::{Buffers, Cell, RecordSize, Writes};

/// When what happens on a connection without loss and jitter. `wire` is what an observer
/// saw of a handshake of the arm, `compute` the time that its steps take in memory.
pub fn expected(wire: &Wire, cell: &Cell, record_size: RecordSize, compute: Compute) -> Timeline {
    let payload = cell.data.0 as usize;
    let Cut { first, later } = Cut::new(record_size, cell);
    let records = Records { first, later };
    let response = Response::new(payload, records, cell.hosts.writes);
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
    let exchange = Exchange {
        client_hello,
        early_data,
        hello_retry_request: wire.hello_retry_request_wire_bytes as usize,
        second_client_hello: wire.second_client_hello_wire_bytes as usize,
        server_flight: wire.server_flight_wire_bytes as usize,
        client_finish: wire.client_finish_wire_bytes as usize,
        first_request,
        upload,
        tickets: wire.ticket_wire_bytes as usize,
        response: response.bytes,
        writes: response.writes,
        first_record: response.first_record,
        request,
        later_requests: cell.requests.saturating_sub(1),
        later_request,
        think: cell.think,
        compute,
    };
    let path = Path {
        link: cell.link.clone(),
        mss: cell.hosts.mss(),
        headers: cell.hosts.headers(),
        client_initcwnd: cell.client_initcwnd,
        server_initcwnd: cell.initcwnd,
        buffers: cell.hosts.buffers.sizes(),
    };
    timeline(&exchange, &path)
}

/// Whether a flight of this connection has more segments than its way holds, so that some are lost: arithmetic
/// has no queue that could overflow.
pub fn overflows(timeline: &Timeline, cell: &Cell) -> bool {
    timeline.flights.iter().any(|flight| {
        let queue = match flight.sender {
            Side::Client => cell.link.forward.queue,
            Side::Server => cell.link.backward.queue,
        };
        flight.segments > queue
    })
}

/// A response on the wire.
struct Response {
    bytes: usize,
    first_record: usize,
    /// As [`Exchange::writes`].
    writes: [usize; Writes::MOST],
}

impl Response {
    fn new(payload: usize, records: Records, writes: Writes) -> Response {
        if writes == Writes::WHOLE {
            return Response {
                bytes: records.wire_bytes(payload),
                first_record: records.first_wire_bytes(payload),
                writes: [0; Writes::MOST],
            };
        }
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

/// About how long one connection takes.
pub fn expected_duration(wire: &Wire, cell: &Cell, record_size: RecordSize) -> Duration {
    expected(wire, cell, record_size, Compute::default())
        .ttlb
        .max(cell.link.rtt() * 2)
}

/// Whether Linux's own buffers, in place of those of the cell, would have the last byte come more than 1 %
/// earlier or later, by arithmetic without loss.
pub(super) fn linux_buffers_matter(wire: &Wire, cell: &Cell, record_size: RecordSize) -> bool {
    if cell.hosts.buffers == Buffers::Linux {
        return false;
    }
    let mut linux = cell.clone();
    linux.hosts.buffers = Buffers::Linux;
    let last_byte = |cell| expected(wire, cell, record_size, Compute::default()).ttlb;
    let (one, other) = (last_byte(cell), last_byte(&linux));
    one.abs_diff(other) > one / 100
}
