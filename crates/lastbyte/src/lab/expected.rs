//! What flight arithmetic expects of a sample.

use std::time::Duration;

use lastbyte_flights::{Compute, Exchange, Path, Records, Request, Timeline, timeline};
use lastbyte_tls::MAX_PLAINTEXT;

use super::connection::{FIRST_RECORD, REQUEST, early_upload};
use crate::results::{EarlyData, Wire};
use crate::study::{Cell, RecordSize};

/// The MSS of an MTU of 1500 bytes with TCP timestamps.
const MSS: usize = 1448;

/// When what happens on a connection without loss and jitter. `wire` is what an observer
/// saw of a handshake of the arm, `compute` the time that its steps take in memory.
pub fn expected(wire: &Wire, cell: &Cell, record_size: RecordSize, compute: Compute) -> Timeline {
    let payload = cell.data.0 as usize;
    let records = match record_size {
        RecordSize::FirstSegment => Records {
            first: FIRST_RECORD,
            later: MAX_PLAINTEXT,
        },
        RecordSize::Fixed(size) => Records {
            first: size.into(),
            later: size.into(),
        },
    };
    let upload = cell.upload.0 as usize;
    let head = REQUEST.len() + Records::OVERHEAD;
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
    let hello_record = Records::HEADER + wire.client_hello_bytes as usize;
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
        client_finish: wire.client_finish_wire_bytes as usize + first_request,
        upload,
        tickets: wire.ticket_wire_bytes as usize,
        response: records.wire_bytes(payload),
        first_record: records.first_wire_bytes(payload),
        request,
        later_requests: cell.requests.saturating_sub(1),
        later_request,
        think: cell.think,
        compute,
    };
    let path = Path {
        link: cell.link.clone(),
        mss: MSS,
        client_initcwnd: cell.client_initcwnd,
        server_initcwnd: cell.initcwnd,
    };
    timeline(&exchange, &path)
}

/// About how long one connection takes.
pub(crate) fn duration(wire: &Wire, cell: &Cell, record_size: RecordSize) -> Duration {
    expected(wire, cell, record_size, Compute::default())
        .ttlb
        .max(cell.link.rtt() * 2)
}
