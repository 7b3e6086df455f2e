#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lastbyte_exchange::{
    Exchange, HandshakeFlight, Records, Requests, Then, Transfer, Unit, Writes,
};
use lastbyte_link::{Direction, Link, Rate, Side};
use lastbyte_sizes::framing;
use proptest::prelude::*;

use super::*;

/// A connection in bytes on the wire, and how long its ends compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sizes {
    /// With early data.
    client_hello: usize,
    early_data: usize,
    hello_retry_request: usize,
    second_client_hello: usize,
    server_flight: usize,
    flight_writes: [u32; 6],
    client_finish: usize,
    first_request: usize,
    upload: usize,
    tickets: usize,
    ticket_writes: [u32; 6],
    response: usize,
    writes: [u32; Writes::MOST],
    first_record: usize,
    later_requests: u32,
    later_request: usize,
    think: Duration,
    compute: Compute,
}

impl Sizes {
    fn exchange(&self) -> Exchange {
        let mut exchange = Exchange::default();
        for (flight, bytes) in [
            (
                HandshakeFlight::ClientHello,
                self.client_hello - self.early_data,
            ),
            (HandshakeFlight::HelloRetryRequest, self.hello_retry_request),
            (HandshakeFlight::SecondClientHello, self.second_client_hello),
            (HandshakeFlight::Server, self.server_flight),
            (HandshakeFlight::ClientFinish, self.client_finish),
        ] {
            exchange.handshake.see(flight, Some(bytes as u32));
        }
        let writes = |then, sizes: &[u32]| {
            let writes = Writes::new(Unit::Wire, then, sizes.to_vec());
            (!writes.sizes().is_empty()).then_some(writes)
        };
        exchange.handshake.server_writes = writes(Then::Rest, &self.flight_writes);
        let some = |bytes| (bytes > 0).then(|| Transfer::seen(bytes));
        exchange.tickets = some(self.tickets)
            .map(|tickets| tickets.in_writes(writes(Then::Rest, &self.ticket_writes)));
        exchange.requests = Some(Box::new(Requests {
            early: some(self.early_data),
            first: some(self.first_request),
            body: self.upload,
            later: self.later_requests,
            each: some(self.later_request),
            think: self.think,
        }));
        exchange.response = (self.response > 0)
            .then(|| of_first_record(self.response, self.first_record))
            .map(|response| response.in_writes(writes(Then::Again, &self.writes)));
        exchange
    }
}

/// So many bytes on the wire, of which the first record has as many, as near as there are such.
fn of_first_record(bytes: usize, first: usize) -> Transfer {
    const RECORD: usize = framing::RECORD_OVERHEAD;
    let records = Records {
        first: first.saturating_sub(RECORD).max(1),
        later: usize::MAX,
    };
    match bytes {
        ..=RECORD => Transfer::seen(bytes),
        bytes if bytes <= first => Transfer::of_records(bytes - RECORD, records),
        bytes => Transfer::of_records(bytes.saturating_sub(2 * RECORD), records),
    }
}

fn timeline(sizes: &Sizes, path: &Path) -> Timeline {
    trace(sizes, path).0
}

fn trace(sizes: &Sizes, path: &Path) -> (Timeline, Vec<Packet>) {
    let path = Path {
        compute: sizes.compute,
        ..path.clone()
    };
    let exchange = sizes.exchange();
    let traced = super::trace(&exchange, &path);
    assert_eq!(super::timeline(&exchange, &path), traced.0);
    traced
}

/// P-256 and an RSA chain, and a request.
const CLASSICAL: Sizes = Sizes {
    client_hello: 271,
    early_data: 0,
    hello_retry_request: 0,
    second_client_hello: 0,
    server_flight: 1900,
    flight_writes: [0; 6],
    client_finish: 150,
    first_request: 0,
    upload: 0,
    tickets: 0,
    ticket_writes: [0; 6],
    response: 0,
    writes: [0; Writes::MOST],
    first_record: 1448,
    later_requests: 0,
    later_request: 0,
    think: Duration::ZERO,
    compute: NO_COMPUTE,
};

const NO_COMPUTE: Compute = Compute {
    client_hello: Duration::ZERO,
    server_flight: Duration::ZERO,
    client_finish: Duration::ZERO,
    response: Duration::ZERO,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn path(rtt: Duration, rate: Option<Rate>, initcwnd: u32) -> Path {
    Path {
        link: Link::symmetric(
            rtt,
            Direction {
                rate,
                ..Direction::default()
            },
        ),
        server_initcwnd: initcwnd,
        ..Path::default()
    }
}

fn unlimited(rtt: u64, initcwnd: u32) -> Path {
    path(ms(rtt), None, initcwnd)
}

fn limited(rtt: u64, rate: &str, initcwnd: u32) -> Path {
    path(ms(rtt), Some(rate.parse().unwrap()), initcwnd)
}

/// The segments of each of the server's flights.
fn server_flights(timeline: &Timeline) -> Vec<u32> {
    timeline
        .flights
        .iter()
        .filter(|flight| flight.sender == Side::Server)
        .map(|flight| flight.segments)
        .collect()
}

fn assert_near(found: Duration, expected_ms: f64, tolerance: f64) {
    let found = found.as_secs_f64() * 1e3;
    assert!(
        (found / expected_ms - 1.0).abs() < tolerance,
        "{found} ms, not {expected_ms} ms"
    );
}

#[test]
fn connecting_takes_a_round_trip_and_two_syns() {
    // 74 bytes take 592 ns.
    let timeline = timeline(&CLASSICAL, &limited(35, "1gbit", 10));
    assert_eq!(
        timeline.connect,
        Some(ms(35) + Duration::from_nanos(2 * 592))
    );
}

#[test]
fn a_classical_handshake_takes_two_round_trips() {
    let timeline = timeline(&CLASSICAL, &unlimited(35, 10));
    assert_eq!(timeline.connect, Some(ms(35)));
    assert_eq!(timeline.handshake, ms(70));
    // Without a request.
    assert_eq!(timeline.ttfb, None);
    assert_eq!(timeline.ttlb, ms(70));
    let flight = |sender, start, segments, bytes| Flight {
        sender,
        start,
        segments,
        bytes,
        cwnd: 10,
    };
    assert_eq!(
        timeline.flights,
        [
            flight(Side::Client, ms(35), 1, 271),
            flight(Side::Server, Duration::from_micros(52_500), 2, 1900),
            flight(Side::Client, ms(70), 1, 150),
        ]
    );
}

#[test]
fn a_large_handshake_waits_for_the_window() {
    let handshake = |server_flight, initcwnd| {
        let exchange = Sizes {
            server_flight,
            ..CLASSICAL
        };
        let timeline = timeline(&exchange, &unlimited(35, initcwnd));
        (
            timeline.handshake,
            timeline.handshake_flights(),
            server_flights(&timeline),
        )
    };
    assert_eq!(handshake(16_000, 10), (ms(105), 2, vec![10, 2]));
    assert_eq!(handshake(16_000, 20), (ms(70), 1, vec![12]));
    // The last byte that fits ten segments, and one more.
    assert_eq!(handshake(14_480, 10), (ms(70), 1, vec![10]));
    assert_eq!(handshake(14_481, 10), (ms(105), 2, vec![10, 1]));
    // SecP256r1MLKEM768 with ML-DSA-65.
    assert_eq!(handshake(15_600, 10), (ms(105), 2, vec![10, 1]));
    // Two more flights: ten segments, twenty, and the rest.
    assert_eq!(handshake(31 * 1448, 10), (ms(140), 3, vec![10, 20, 1]));
}

#[test]
fn a_client_certificate_can_outgrow_the_window_too() {
    let exchange = Sizes {
        client_finish: 16_000,
        response: 100,
        ..CLASSICAL
    };
    let timeline = timeline(&exchange, &unlimited(35, 10));
    assert_eq!(timeline.handshake, ms(70));
    assert_eq!(timeline.ttfb, Some(ms(140)));
    assert_eq!(timeline.flights_of(Side::Client), 3);
}

#[test]
fn computing_adds_up() {
    let compute = Compute {
        client_hello: ms(1),
        server_flight: ms(2),
        client_finish: ms(4),
        response: ms(8),
    };
    let exchange = Sizes {
        response: 100,
        compute,
        ..CLASSICAL
    };
    let timeline = timeline(&exchange, &unlimited(100, 10));
    assert_eq!(timeline.connect, Some(ms(100)));
    assert_eq!(timeline.handshake, ms(207));
    assert_eq!(timeline.ttfb, Some(ms(315)));
}

/// Linux raises the window only while it is used.
#[test]
fn a_handshake_lifts_the_window_as_far_as_it_used_it() {
    let window = |segments: usize, initcwnd| {
        let exchange = Sizes {
            server_flight: segments * 1448,
            response: 1_000_000,
            ..CLASSICAL
        };
        let timeline = timeline(&exchange, &unlimited(35, initcwnd));
        let handshake_flights = timeline.handshake_flights();
        server_flights(&timeline)[handshake_flights]
    };
    assert_eq!(window(3, 20), 20);
    assert_eq!(window(10, 20), 20);
    assert_eq!(window(11, 20), 22);
    assert_eq!(window(13, 20), 26);
    // A window that was full is raised by all that is acknowledged.
    assert_eq!(window(20, 20), 40);
    assert_eq!(window(10, 10), 20);
    assert_eq!(window(9, 10), 18);
}

/// 142 segments do not fit three flights from 20 segments on, which hold 140.
#[test]
fn a_larger_handshake_can_save_the_response_a_round_trip() {
    let response = Records {
        first: 16_384,
        later: 16_384,
    }
    .wire_bytes(204_800);
    let classical = Sizes {
        server_flight: 3120,
        response,
        ..CLASSICAL
    };
    let post_quantum = Sizes {
        client_hello: 1449,
        server_flight: 18_054,
        ..classical
    };
    let path = limited(35, "1gbit", 20);
    let classical = timeline(&classical, &path);
    let post_quantum = timeline(&post_quantum, &path);
    assert_eq!(server_flights(&classical), [3, 20, 40, 80, 2]);
    assert_eq!(server_flights(&post_quantum), [13, 26, 52, 64]);
    // Measured with Linux 6.12 on such a link: 210.1 ms and 176 ms.
    assert_near(classical.ttlb, 210.1, 0.001);
    assert_near(post_quantum.ttlb, 176.0, 0.001);
}

#[test]
fn plain_tcp_at_a_high_rate() {
    let timeline = transfer(8, 204_800, &limited(35, "1gbit", 20));
    assert_eq!(Some(timeline.handshake), timeline.connect);
    assert_eq!(server_flights(&timeline), [20, 40, 80, 2]);
    // Measured: 175 ms. Five round trips, and what had to be serialised:
    let nanos = 592 + 592 // SYN and SYN-ACK,
        + 528 + 592 // their acknowledgement and the request,
        + 4 * (528 + 12_112) // the acknowledgement of the first segment of a flight, and the next one's,
        + 5584; // and the last segment.
    assert_eq!(timeline.ttlb, ms(175) + Duration::from_nanos(nanos));
}

#[test]
fn plain_tcp_at_a_low_rate() {
    let timeline = transfer(8, 204_800, &limited(200, "1mbit", 10));
    // Measured with Linux 6.12 in virtual time, one connection after the other: 2208.257 ms. The
    // FIN of the one before is on the link ahead of the SYN then: 66 bytes, 0.528 ms.
    let fin = Duration::from_micros(528);
    assert_eq!(timeline.ttlb + fin, Duration::from_micros(2_208_256));
    // The receiver's window grows with each segment, so each is acknowledged at once, and the first of a
    // flight starts the next.
    let starts: Vec<_> = timeline
        .flights
        .iter()
        .map(|flight| flight.start.as_micros())
        .collect();
    assert_eq!(starts, [201_184, 302_304, 515_472, 728_112, 970_352]);
}

/// Its Finished makes a client interactive also where the response to early data overtakes it.
#[test]
fn an_early_response_is_acknowledged_by_an_interactive_client() {
    let exchange = Sizes {
        client_hello: 1794,
        early_data: 87,
        server_flight: 1333,
        client_finish: 100,
        response: Records::default().wire_bytes(40_000),
        ..CLASSICAL
    };
    // Linux 6.12 in virtual time. Acknowledged one by one, the response would come a round trip earlier.
    let timeline = timeline(&exchange, &limited(35, "100mbit", 10));
    assert_near(timeline.handshake, 70.297_609, 1e-4);
    assert_near(timeline.ttlb, 140.504_733, 1e-4);
}

#[test]
fn tickets_answer_the_finished_not_the_request() {
    let exchange = Sizes {
        client_hello: 1416,
        server_flight: 12_357,
        client_finish: 80,
        first_request: 59 + framing::RECORD_OVERHEAD + Records::default().wire_bytes(30_720),
        upload: 30_720,
        tickets: 510,
        response: Records::default().wire_bytes(1024),
        ..CLASSICAL
    };
    // Linux 6.12 in virtual time. With the response, they would delay it by 0.4 ms.
    let timeline = timeline(&exchange, &limited(35, "10mbit", 10));
    assert_near(timeline.handshake, 81.770_420, 1e-4);
    assert_near(timeline.ttlb, 168.192_018, 1e-4);
}

/// nginx with a window of 4, as `lastbyte compare` had it in virtual time: its two tickets take two segments of four, and
/// 16 KB behind them a round trip more than where all goes on in one segment.
#[test]
fn tickets_that_leave_alone_have_segments_of_their_own() {
    let exchange = Sizes {
        client_hello: 238,
        server_flight: 2709,
        client_finish: 80,
        first_request: 81,
        tickets: 574,
        response: Records {
            first: 16_384,
            ..Records::default()
        }
        .wire_bytes(300_000),
        first_record: 16_406,
        ..CLASSICAL
    };
    let walk = |ticket_writes: &[usize]| {
        let mut exchange = exchange;
        for (place, bytes) in exchange.ticket_writes.iter_mut().zip(ticket_writes) {
            *place = *bytes as u32;
        }
        let timeline = timeline(&exchange, &unlimited(50, 4));
        let first = &timeline.flights[3];
        (timeline.ttfb, timeline.ttlb, first.segments, first.bytes)
    };
    let whole = (Some(ms(200)), ms(400), 4, 4 * 1448);
    assert_eq!(walk(&[]), whole);
    assert_eq!(
        walk(&[287, 287]),
        (Some(ms(250)), ms(400), 4, 574 + 2 * 1448)
    );
    assert_eq!(walk(&[287]), walk(&[287, 287]));
    // One segment of both, and the response still has its round trip more: 16,406 bytes are more than eleven segments.
    assert_eq!(walk(&[574]), (Some(ms(250)), ms(400), 4, 574 + 3 * 1448));
}

/// Go's net/http with a window of 10, as scripts/probe-truth had it: 12,289 bytes are nine segments in one write, and eleven in
/// records that are a write each.
#[test]
fn writes_of_a_response_have_segments_of_their_own() {
    let exchange = Sizes {
        client_hello: 238,
        server_flight: 1871,
        client_finish: 80,
        first_request: 120,
        response: 12_289,
        first_record: 1448,
        ..CLASSICAL
    };
    let walk = |writes: &[usize], tickets: usize| {
        let mut exchange = exchange;
        exchange.tickets = tickets;
        for (place, bytes) in exchange.writes.iter_mut().zip(writes) {
            *place = *bytes as u32;
        }
        let timeline = timeline(&exchange, &unlimited(50, 10));
        let first = &timeline.flights[3];
        (timeline.ttlb, first.segments, first.bytes)
    };
    assert_eq!(walk(&[], 0), (ms(150), 9, 12_289));
    let go = [1208, 2394, 560, 4766, 3332];
    assert_eq!(walk(&go, 0), (ms(200), 10, 1208 + 2394 + 560 + 4766 + 2896));
    // Tickets without writes of their own go with the first one: of 240 bytes, they need no segment more.
    assert_eq!(
        walk(&go, 240),
        (ms(200), 10, 240 + 1208 + 2394 + 560 + 4766 + 2896)
    );
    assert_eq!(
        walk(&go, 241),
        (ms(200), 10, 241 + 1208 + 2394 + 560 + 4766 + 1448)
    );
    // The last write repeats: nginx with `ssl_buffer_size 4k`.
    assert_eq!(walk(&[4118], 0), (ms(150), 9, 12_289));
    assert_eq!(walk(&[4118], 574), (ms(150), 10, 574 + 12_289));
}

/// A record ends with the write that it begins in, whatever else a segment would hold.
#[test]
fn the_first_byte_waits_for_no_second_write() {
    let mut exchange = Sizes {
        response: 9000,
        first_record: 1448,
        ..CLASSICAL
    };
    let rate = Rate::from_bits_per_second(1_000_000);
    let path = path(ms(50), rate, 10);
    let whole = timeline(&exchange, &path).ttfb.unwrap();
    [exchange.writes[0], exchange.writes[1]] = [200, 4000];
    let apart = timeline(&exchange, &path).ttfb.unwrap();
    assert_eq!(whole - apart, Duration::from_micros((1448 - 200) * 8));
}

/// A request makes the client interactive: it acknowledges every second segment then.
#[test]
fn an_odd_segment_waits_for_the_delayed_acknowledgement() {
    let exchange = Sizes {
        server_flight: 100,
        response: 10 * 1448,
        ..CLASSICAL
    };
    let timeline = timeline(&exchange, &unlimited(200, 3));
    let response: Vec<_> = timeline.flights[3..]
        .iter()
        .map(|flight| (flight.start, flight.segments, flight.cwnd))
        .collect();
    // Two of three segments are acknowledged at once, the third after 40 ms. That lets six segments
    // go, two of them 40 ms later. As it had to wait, all that follow are acknowledged one by one.
    assert_eq!(
        response,
        [(ms(500), 3, 3), (ms(700), 6, 6), (ms(900), 1, 7)]
    );
    assert_eq!(timeline.ttlb, ms(1000));
    // Without the tenth segment, the two that were late are the last.
    let exchange = Sizes {
        response: 9 * 1448,
        ..exchange
    };
    assert_eq!(self::timeline(&exchange, &unlimited(200, 3)).ttlb, ms(840));
}

/// A client that takes 40 ms to answer is not interactive, and acknowledges each segment.
#[test]
fn a_slow_client_is_not_interactive() {
    let ttlb = |client_finish| {
        let compute = Compute {
            client_finish,
            ..NO_COMPUTE
        };
        let exchange = Sizes {
            server_flight: 100,
            response: 9 * 1448,
            compute,
            ..CLASSICAL
        };
        timeline(&exchange, &unlimited(200, 3)).ttlb
    };
    assert_eq!(ttlb(ms(39)), ms(879));
    assert_eq!(ttlb(ms(40)), ms(840));
}

/// A short segment is acknowledged as soon as it is read, ahead of the client's Finished.
#[test]
fn a_short_segment_is_acknowledged_when_it_is_read() {
    let exchange = Sizes {
        server_flight: 18 * 1448 + 100,
        response: 1000,
        ..CLASSICAL
    };
    let timeline = timeline(&exchange, &limited(200, "2mbit", 20));
    // 66 bytes of acknowledgement, 216 of Finished and 1066 of response take 264, 864 and 4264 us.
    let on_the_way = ms(200) + Duration::from_micros(264 + 864 + 4264);
    assert_eq!(timeline.ttlb, timeline.handshake + on_the_way);
}

/// Hosts with Linux's own buffers, as independent clients and servers had it: 140.3 and 175.4 ms, where large
/// buffers take 105.9 and 140.6.
#[test]
fn the_receive_window_binds_a_large_initial_window() {
    let ttlb = |buffers, response| {
        let exchange = Sizes {
            response,
            ..CLASSICAL
        };
        let path = Path {
            buffers,
            ..limited(35, "1gbit", 100)
        };
        timeline(&exchange, &path).ttlb
    };
    for (response, linux, large) in [(102_400, 140.1, 105.9), (204_800, 175.2, 140.6)] {
        assert_near(ttlb(Buffers::LINUX, response), linux, 0.003);
        assert_near(ttlb(Buffers::LARGE, response), large, 0.003);
    }
}

/// Of 32 KiB of memory, 153 of 256 bytes are payload: 13 segments. Before, what the SYN has promised holds.
#[test]
fn a_receive_buffer_that_the_client_sets_binds_once_the_first_window_is_used() {
    let flights = |client_receive_buffer| {
        let exchange = Sizes {
            response: 100 * 1448,
            ..CLASSICAL
        };
        let path = Path {
            buffers: Buffers::LINUX,
            client_receive_buffer,
            ..unlimited(35, 10)
        };
        server_flights(&timeline(&exchange, &path))
    };
    let (own, set) = (flights(None), flights(Some(16 << 10)));
    assert_eq!(own.iter().sum::<u32>(), set.iter().sum());
    assert_eq!(own[..3], set[..3]);
    assert!(
        own[3] > 30 && set[3..].iter().all(|segments| *segments <= 14),
        "{own:?} {set:?}"
    );
    // As much as Linux begins with by itself changes nothing here.
    assert_eq!(flights(Some(64 << 10))[..4], own[..4]);
}

/// 87040 bytes, which the kernels of distributions begin with, hold 37 segments.
#[test]
fn the_send_buffer_binds_when_a_handshake_has_lifted_the_window() {
    let flights = |buffers| {
        let exchange = Sizes {
            server_flight: 30 * 1448,
            response: 100 * 1448,
            ..CLASSICAL
        };
        let path = Path {
            buffers,
            ..unlimited(35, 10)
        };
        server_flights(&timeline(&exchange, &path))
    };
    assert_eq!(flights(Buffers::LARGE), [10, 20, 40, 60]);
    assert_eq!(flights(Buffers::LINUX), [10, 20, 37, 63]);
}

/// Seen from a real Linux 6.18, between two namespaces with such a link (and `tcp_wmem` raised).
#[test]
fn linux_sends_these_flights() {
    let flights =
        |rtt,
         rate,
         initcwnd,
         [client_hello, server_flight, client_finish, response]: [usize; 4]| {
            let exchange = Sizes {
                client_hello,
                server_flight,
                client_finish,
                response,
                ..CLASSICAL
            };
            server_flights(&timeline(&exchange, &limited(rtt, rate, initcwnd)))
        };
    let large = [271, 18_054, 150, 207_166];
    assert_eq!(flights(200, "20mbit", 20, large), [13, 26, 52, 66]);
    assert_eq!(flights(200, "20mbit", 10, large), [10, 3, 23, 46, 75]);
    assert_eq!(
        flights(200, "20mbit", 3, [271, 100, 150, 14_480]),
        [1, 3, 6, 1]
    );
    assert_eq!(
        flights(200, "20mbit", 1, [271, 5000, 150, 40_000]),
        [1, 2, 1, 5, 10, 13]
    );
    assert_eq!(
        flights(200, "20mbit", 1, [271, 2000, 150, 20_000]),
        [1, 1, 2, 4, 8]
    );
    assert_eq!(
        flights(200, "20mbit", 2, [271, 4000, 150, 30_000]),
        [2, 1, 5, 10, 6]
    );
    assert_eq!(
        flights(100, "20mbit", 10, [271, 3000, 150, 300_000]),
        [3, 10, 20, 40, 80, 58]
    );
    assert_eq!(
        flights(60, "10mbit", 10, [1449, 44_888, 16_000, 100_000]),
        [10, 20, 1, 41, 29]
    );
    assert_eq!(
        flights(35, "5mbit", 10, [271, 16_000, 150, 51_200]),
        [10, 2, 22, 14]
    );
}

#[test]
fn a_first_record_is_there_with_its_last_byte() {
    let ttfb = |first_record| {
        let exchange = Sizes {
            response: 100_000,
            first_record,
            ..CLASSICAL
        };
        timeline(&exchange, &unlimited(100, 10)).ttfb.unwrap()
    };
    assert_eq!(ttfb(1448), ms(300));
    assert_eq!(ttfb(14_480), ms(300));
    assert_eq!(ttfb(16_406), ms(400));
    // Nonsense is made the best of.
    assert_eq!(ttfb(0), ms(300));
    assert_eq!(ttfb(usize::MAX), ms(500));
}

#[test]
fn records_add_22_bytes_each() {
    let records = Records::default();
    assert_eq!(records.wire_bytes(0), 0);
    assert_eq!(records.wire_bytes(1), 23);
    assert_eq!(records.wire_bytes(1426), 1448);
    assert_eq!(records.wire_bytes(1427), 1427 + 44);
    assert_eq!(records.wire_bytes(1426 + 16_384), 1426 + 16_384 + 44);
    assert_eq!(records.wire_bytes(1426 + 16_385), 1426 + 16_385 + 66);
    assert_eq!(records.first_wire_bytes(100), 122);
    assert_eq!(records.first_wire_bytes(204_800), 1448);
    let large = Records {
        first: 16_384,
        later: 16_384,
    };
    assert_eq!(large.wire_bytes(204_800), 204_800 + 13 * 22);
    assert_eq!(large.first_wire_bytes(204_800), 16_406);
    assert_eq!(Records { first: 0, later: 0 }.wire_bytes(3), 3 + 3 * 22);
}

#[test]
fn counting_without_a_walk() {
    assert_eq!(segments(0, 1448), 0);
    assert_eq!(segments(1, 1448), 1);
    assert_eq!(segments(1448, 1448), 1);
    assert_eq!(segments(1449, 1448), 2);
    assert_eq!(segments(3, 0), 3);
    assert_eq!(flights_needed(0, 1448, 10), 0);
    assert_eq!(flights_needed(14_480, 1448, 10), 1);
    assert_eq!(flights_needed(14_481, 1448, 10), 2);
    assert_eq!(flights_needed(140 * 1448, 1448, 20), 3);
    assert_eq!(flights_needed(142 * 1448, 1448, 20), 4);
    assert_eq!(flights_needed(3, 1, 0), 2);
    assert_eq!(flights_needed(usize::MAX, 1, u32::MAX), 33);
}

#[test]
fn parts_of_no_bytes_are_left_out() {
    let path = Path {
        mss: 0,
        client_initcwnd: 0,
        server_initcwnd: 0,
        ..unlimited(10, 0)
    };
    let nothing = timeline(&Sizes::default(), &path);
    assert_eq!(
        (nothing.connect.unwrap(), nothing.handshake, nothing.ttlb),
        (ms(10), ms(10), ms(10))
    );
    assert_eq!((nothing.ttfb, nothing.flights), (None, Vec::new()));
    for parts in 0..16 {
        let bytes = |part: usize| if parts & part == 0 { 0 } else { 3 };
        let exchange = Sizes {
            client_hello: bytes(1),
            server_flight: bytes(2),
            client_finish: bytes(4),
            response: bytes(8),
            ..Sizes::default()
        };
        let timeline = timeline(&exchange, &path);
        assert!(timeline.handshake >= ms(10) && timeline.ttlb >= timeline.handshake);
        assert_eq!(timeline.flights.is_empty(), parts == 0);
    }
    assert_eq!(transfer(0, 0, &path).ttlb, ms(10));
}

prop_compose! {
    fn any_compute()(times in [0_u64..60, 0_u64..60, 0_u64..60, 0_u64..60]) -> Compute {
        let [client_hello, server_flight, client_finish, response] = times.map(ms);
        Compute { client_hello, server_flight, client_finish, response }
    }
}

/// On a path of 100 ms without a rate limit.
fn at_100_ms(exchange: Sizes) -> Timeline {
    timeline(&exchange, &path(ms(100), None, 10))
}

#[test]
fn a_hello_retry_request_is_a_round_trip() {
    let retried = Sizes {
        hello_retry_request: 93,
        second_client_hello: 1449,
        ..CLASSICAL
    };
    assert_eq!(at_100_ms(CLASSICAL).handshake, ms(200));
    assert_eq!(at_100_ms(retried).handshake, ms(300));
}

#[test]
fn early_data_saves_a_round_trip() {
    let exchange = Sizes {
        response: 5000,
        ..CLASSICAL
    };
    let early = Sizes {
        early_data: 80,
        ..exchange
    };
    let times = |timeline: Timeline| (timeline.handshake, timeline.ttfb, timeline.ttlb);
    let (full, early) = (times(at_100_ms(exchange)), times(at_100_ms(early)));
    assert_eq!(full, (ms(200), Some(ms(300)), ms(300)));
    assert_eq!(early, (ms(200), Some(ms(200)), ms(200)));
}

#[test]
fn a_server_answers_the_hello_before_it_has_all_early_data() {
    let early = |early_data, late, response| {
        let exchange = Sizes {
            client_hello: 271 + early_data,
            early_data,
            first_request: late,
            upload: early_data + late,
            response,
            ..CLASSICAL
        };
        let timeline = at_100_ms(exchange);
        assert_eq!(timeline.handshake, ms(200));
        timeline.ttlb
    };
    // Ten segments are the client's window; what is beyond leaves when the first is acknowledged.
    let window = 10 * 1448 - 271;
    assert_eq!(early(window, 0, 1000), ms(200));
    assert_eq!(early(window + 1, 0, 1000), ms(300));
    // What is no early data leaves with the client's Finished.
    assert_eq!(early(window, 1, 1000), ms(300));
    assert_eq!(early(window + 1, 1, 1000), ms(300));
    // The server has all of it, and nothing to answer.
    assert_eq!(early(window, 0, 0), ms(150));
    assert_eq!(early(window + 1, 0, 0), ms(250));
    assert_eq!(early(window, 1, 0), ms(250));
}

#[test]
fn a_client_with_a_large_chain_fills_its_own_window() {
    let mutual = |client_finish, client_initcwnd| {
        let exchange = Sizes {
            client_finish,
            response: 1000,
            ..CLASSICAL
        };
        let path = Path {
            client_initcwnd,
            ..path(ms(100), None, 10)
        };
        let timeline = timeline(&exchange, &path);
        // Its Finished is written all the same: the server has to wait.
        assert_eq!(timeline.handshake, ms(200));
        timeline.ttlb
    };
    assert_eq!(mutual(10 * 1448, 10), ms(300));
    // The ClientHello has not used the window, so its acknowledgement has not opened it.
    assert_eq!(mutual(10 * 1448 + 1, 10), ms(400));
    assert_eq!(mutual(10 * 1448 + 1, 24), ms(300));
}

#[test]
fn an_upload_ends_at_the_server() {
    let upload = |upload| {
        let exchange = Sizes {
            first_request: upload,
            upload,
            ..CLASSICAL
        };
        let timeline = at_100_ms(exchange);
        assert_eq!(timeline.ttfb, None);
        timeline.ttlb
    };
    assert_eq!(upload(10_000), ms(250));
    assert_eq!(upload(20_000), ms(350));
    assert_eq!(upload(0), ms(200));
}

#[test]
fn each_later_request_is_a_round_trip_and_a_thought() {
    let requests = |later_requests, think| {
        at_100_ms(Sizes {
            response: 10 * 1448,
            later_requests,
            later_request: 83,
            think,
            ..CLASSICAL
        })
    };
    let first = requests(0, ms(0));
    assert_eq!(first.ttlb, ms(300));
    assert_eq!(requests(1, ms(0)).ttlb, ms(400));
    assert_eq!(requests(4, ms(30)).ttlb, ms(300 + 4 * 130));
    assert_eq!(requests(4, ms(30)).ttfb, first.ttfb);
}

#[test]
fn a_long_thought_closes_the_window() {
    let second = |think| {
        let timeline = at_100_ms(Sizes {
            response: 20 * 1448,
            later_requests: 1,
            later_request: 83,
            think,
            ..CLASSICAL
        });
        timeline.ttlb - think
    };
    // The first response takes two flights, and opens the window for the second one.
    assert_eq!(second(ms(0)), ms(500));
    // The server is idle for a round trip more than the client thinks, and waits for 300 ms.
    assert_eq!(second(ms(200)), ms(500));
    assert_eq!(second(ms(201)), ms(600));
}

/// Each write ends with a segment of its own, which takes a place in the window.
#[test]
fn writes_of_the_handshake_take_segments_more() {
    let handshake = |flight_writes| {
        let exchange = Sizes {
            server_flight: 13_300,
            flight_writes,
            ..CLASSICAL
        };
        let timeline = timeline(&exchange, &unlimited(50, 10));
        let segments: u32 = server_flights(&timeline).iter().sum();
        (segments, timeline.handshake_flights(), timeline.handshake)
    };
    assert_eq!(handshake([0; 6]), (10, 1, ms(100)));
    assert_eq!(handshake([4096, 0, 0, 0, 0, 0]), (10, 1, ms(100)));
    assert_eq!(handshake([4096, 1000, 0, 0, 0, 0]), (10, 1, ms(100)));
    assert_eq!(handshake([4096, 100, 100, 0, 0, 0]), (12, 2, ms(150)));
    // What would be more than the flight is none.
    assert_eq!(handshake([13_300, 100, 0, 0, 0, 0]), (10, 1, ms(100)));
}

/// A window of 4 after a handshake of two segments: Reno leaves it as it is, BBR has it grow.
#[test]
fn windows_grow_as_they_are_used_or_always() {
    let opened = |server_initcwnd, server_flight, growth| {
        let path = Path {
            growth,
            ..unlimited(50, server_initcwnd)
        };
        let exchange = Sizes {
            server_flight,
            response: 200_000,
            ..CLASSICAL
        };
        let timeline = timeline(&exchange, &path);
        server_flights(&timeline)[timeline.handshake_flights()]
    };
    let to_gain = Growth::ToGain(Growth::BBR_GAIN);
    for (window, flight, used, always, gain) in [
        (4, 1900, 4, 6, 6),
        (20, 3000, 20, 23, 23),
        (10, 14_480, 20, 20, 20),
        // Ten were acknowledged, and the gain leaves room for 2.885 times that alone.
        (40, 15_000, 40, 51, 49),
    ] {
        let grown = [Growth::Used, Growth::Always, to_gain].map(|way| opened(window, flight, way));
        assert_eq!(grown, [used, always, gain], "{window}, {flight}");
    }
    assert_eq!(opened(2, 1000, Growth::Always), 4);
}

prop_compose! {
    fn any_exchange()(
        client_hello in 1_usize..3000,
        server_flight in 1_usize..60_000,
        flight_writes in prop::array::uniform6(0_u32..9000),
        client_finish in 1_usize..20_000,
        first_request in 0_usize..20_000,
        tickets in 0_usize..1000,
        ticket_writes in prop::array::uniform6(0_u32..500),
        early_data in 0_usize..=1,
        response in 0_usize..200_000,
        // Of smaller ones there would be many thousands.
        writes in prop::array::uniform12(prop_oneof![Just(0), 100_u32..20_000]),
        first_record in 0_usize..20_000,
        compute in any_compute(),
    ) -> Sizes {
        Sizes {
            client_hello, server_flight, flight_writes, client_finish, first_request, tickets, ticket_writes,
            early_data, response, writes, first_record, compute, ..Sizes::default()
        }
    }
}

/// The same, each message written at once, and none amid another.
fn at_once(exchange: Sizes) -> Sizes {
    Sizes {
        flight_writes: [0; 6],
        ticket_writes: [0; 6],
        writes: [0; Writes::MOST],
        early_data: 0,
        compute: NO_COMPUTE,
        ..exchange
    }
}

prop_compose! {
    fn any_path()(
        rtt in 0_u64..400_000,
        kilobits in 0_u64..2_000_000,
        mss in 50_usize..3000,
        client_initcwnd in 0_u32..40,
        server_initcwnd in 0_u32..40,
    ) -> Path {
        let rate = Rate::from_bits_per_second(1000 * kilobits);
        let Path { link, .. } = path(Duration::from_micros(rtt), rate, 0);
        Path { link, mss, client_initcwnd, server_initcwnd, ..Path::default() }
    }
}

proptest! {
    #[test]
    fn a_timeline_is_in_order(exchange in any_exchange(), path in any_path()) {
        let timeline = timeline(&exchange, &path);
        prop_assert!(timeline.connect >= Some(path.link.rtt()));
        prop_assert!(Some(timeline.handshake) >= timeline.connect);
        prop_assert!(timeline.ttlb >= timeline.handshake);
        prop_assert_eq!(timeline.ttfb.is_some(), exchange.response > 0);
        prop_assert!(timeline.ttfb.is_none_or(|ttfb| ttfb <= timeline.ttlb));
        prop_assert!(timeline.flights.is_sorted_by_key(|flight| flight.start));
    }

    #[test]
    fn flights_carry_all_bytes_within_the_window(exchange in any_exchange(), path in any_path()) {
        let flights = timeline(&exchange, &path).flights;
        let bytes = |sender| -> usize {
            flights.iter().filter(|flight| flight.sender == sender).map(|flight| flight.bytes).sum()
        };
        let Sizes { client_hello, client_finish, first_request, .. } = exchange;
        prop_assert_eq!(bytes(Side::Client), client_hello + client_finish + first_request);
        let Sizes { server_flight, tickets, response, .. } = exchange;
        prop_assert_eq!(bytes(Side::Server), server_flight + tickets + response);
        for flight in &flights {
            prop_assert!(flight.segments <= flight.cwnd);
            // The end of each write is a segment of its own.
            prop_assert!(flight.segments as usize >= segments(flight.bytes, path.mss));
        }
    }

    // An acknowledgement may leave at once or 40 ms later, for a microsecond more or less on the way: as in
    // `a_finished_amid_a_response_delays_an_acknowledgement`. What the client sends goes at once: a server that waits for it over
    // several round trips may be idle for as long as its timeout, or a microsecond less, and keep its window.
    #[test]
    fn a_longer_path_saves_a_delayed_acknowledgement_at_most(
        exchange in any_exchange(), path in any_path(), more in 0_u64..50_000,
    ) {
        let exchange = at_once(exchange);
        let path = Path { client_initcwnd: 1000, ..path };
        let rtt = path.link.rtt() + Duration::from_micros(more);
        let longer = Path { link: Link::symmetric(rtt, path.link.forward.clone()), ..path.clone() };
        let saved = timeline(&exchange, &path).ttlb.checked_sub(timeline(&exchange, &longer).ttlb);
        prop_assert!(saved.is_none_or(|saved| saved <= ms(40)), "{saved:?}");
    }

    #[test]
    fn a_larger_response_takes_no_less_time(
        exchange in any_exchange(), path in any_path(), more in 0_usize..20_000,
    ) {
        let exchange = at_once(exchange);
        let larger = Sizes { response: exchange.response + more, ..exchange };
        prop_assert!(timeline(&larger, &path).ttlb >= timeline(&exchange, &path).ttlb);
    }

    #[test]
    fn slow_start_doubles(bytes in 1_usize..1_000_000, half_initcwnd in 1_u32..20) {
        let initcwnd = 2 * half_initcwnd;
        // A window that never stops growing: each segment is acknowledged.
        let endless = Buffers { receive: 1 << 30, receive_most: 1 << 30, ..Buffers::LARGE };
        let path = Path { buffers: endless, ..unlimited(35, initcwnd) };
        let flights = transfer(1, bytes, &path).flights_of(Side::Server);
        prop_assert_eq!(flights, flights_needed(bytes, 1448, initcwnd) as usize);
    }

    #[test]
    fn an_odd_window_takes_at_most_one_flight_more(
        bytes in 1_usize..1_000_000, initcwnd in 1_u32..40,
    ) {
        let flights = transfer(1, bytes, &unlimited(35, initcwnd)).flights_of(Side::Server);
        let needed = flights_needed(bytes, 1448, initcwnd) as usize;
        prop_assert!((needed..=needed + 1).contains(&flights));
    }
}

/// A client that has sent data expects more of it to carry its acknowledgements: where its Finished leaves between two
/// segments of the response to early data, the second one is acknowledged 40 ms later. Where the path is 0.15 ms longer,
/// it leaves before both, and the response is there sooner.
#[test]
fn a_finished_amid_a_response_delays_an_acknowledgement() {
    let at = |rtt| {
        let exchange = Sizes {
            client_hello: 1000,
            server_flight: 1000,
            client_finish: 100,
            response: 60 * 1448,
            early_data: 100,
            compute: Compute {
                client_finish: ms(51),
                ..NO_COMPUTE
            },
            ..Sizes::default()
        };
        let rate = Rate::from_bits_per_second(100_000_000);
        timeline(&exchange, &path(rtt, rate, 1)).ttlb
    };
    let (amid, before) = (Duration::from_micros(50_850), ms(51));
    let saved = at(amid).checked_sub(at(before));
    assert!(
        saved.is_some_and(|saved| saved > ms(25) && saved < ms(41)),
        "{saved:?}"
    );
}

/// All that crosses the link, where a window of two segments meets five.
#[test]
fn a_trace_has_each_packet() {
    let exchange = Sizes {
        server_flight: 5 * 1448 - 100,
        ..CLASSICAL
    };
    let (timeline, packets) = trace(&exchange, &unlimited(100, 2));
    assert_eq!(timeline.handshake, ms(300));
    use PacketKind::{Acknowledgement, Data, Open};
    use Side::{Client, Server};
    let seen: Vec<_> = packets
        .iter()
        .map(|packet| {
            let Packet {
                sender,
                kind,
                sent,
                offset,
                payload,
                acknowledged,
                ..
            } = *packet;
            assert_eq!(packet.arrives, sent + ms(50));
            let sent = sent.as_millis();
            (sender, kind, sent, offset, payload, acknowledged)
        })
        .collect();
    assert_eq!(
        seen,
        [
            (Client, Open, 0, 0, 0, 0),
            (Server, Open, 50, 0, 0, 0),
            (Client, Acknowledgement, 100, 0, 0, 0),
            (Client, Data, 100, 0, 271, 0),
            // The first segments are acknowledged at once, whatever there is to send.
            (Server, Acknowledgement, 150, 0, 0, 271),
            (Server, Data, 150, 0, 1448, 271),
            (Server, Data, 150, 1448, 1448, 271),
            (Client, Acknowledgement, 200, 271, 0, 1448),
            (Client, Acknowledgement, 200, 271, 0, 2896),
            // Each acknowledgement makes room for two.
            (Server, Data, 250, 2896, 1448, 271),
            (Server, Data, 250, 4344, 1448, 271),
            (Server, Data, 250, 5792, 1348, 271),
            (Client, Acknowledgement, 300, 271, 0, 4344),
            (Client, Acknowledgement, 300, 271, 0, 5792),
            (Client, Acknowledgement, 300, 271, 0, 7140),
            (Client, Data, 300, 271, 150, 7140),
        ]
    );
    let cwnd = |at: usize| packets.get(at).unwrap().cwnd;
    assert_eq!([5, 6, 9, 10, 11].map(cwnd), [2, 2, 3, 3, 4]);
}

proptest! {
    /// A trace is of the walk that is timed, and has all of it.
    #[test]
    fn a_trace_agrees_with_its_timeline(exchange in any_exchange(), path in any_path()) {
        let (timeline, packets) = trace(&exchange, &path);
        let again = self::timeline(&exchange, &path);
        prop_assert_eq!(&timeline, &again);
        for sender in [Side::Client, Side::Server] {
            let data = || packets.iter().filter(move |packet| packet.sender == sender && packet.kind == PacketKind::Data);
            let mut sent = 0;
            for packet in data() {
                prop_assert_eq!(packet.offset, sent);
                prop_assert!(packet.payload <= path.mss);
                sent += packet.payload;
            }
            let flights = timeline.flights.iter().filter(|flight| flight.sender == sender);
            let segments: u32 = flights.clone().map(|flight| flight.segments).sum();
            prop_assert_eq!(data().count(), segments as usize);
            prop_assert_eq!(sent, flights.map(|flight| flight.bytes).sum::<usize>());
        }
        let delay = path.link.forward.delay.min(path.link.backward.delay);
        prop_assert!(packets.iter().all(|packet| packet.arrives >= packet.sent + delay));
        prop_assert!(packets.is_sorted_by_key(|packet| packet.sent));
    }

    /// What is around a size are edges, and nothing changes between them.
    #[test]
    fn edges_around_a_size(steps in prop::collection::vec(1_usize..5000, 1..6), size in 0_usize..20_000, step in 1_usize..3000) {
        let mut ends = steps.clone();
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let needed = |bytes: usize| ends.iter().filter(|end| bytes > **end).count();
        let found = around(size, [0, 30_000], step, needed);
        prop_assert_eq!(found.flights, needed(size));
        prop_assert_eq!(found.below, ends.iter().rev().find(|end| **end < size).copied());
        prop_assert_eq!(found.above, ends.iter().find(|end| **end >= size).copied());
    }
}

/// Several requests with bodies, as Linux 6.12 answers them in virtual time: the timeout after which a window is idle is
/// three round trips at first, and gets shorter with each.
#[test]
fn a_window_is_idle_after_the_timeout_of_its_path() {
    for (rtt, last) in [
        (35, 281.778),
        (100, 801.8),
        (150, 1351.5),
        (180, 1621.5),
        (200, 1801.5),
        (300, 2701.5),
    ] {
        let exchange = Sizes {
            client_hello: 1416,
            server_flight: 12_357,
            client_finish: 80,
            first_request: 81 + Records::default().wire_bytes(51_200),
            upload: 51_200,
            response: Records::default().wire_bytes(102_400),
            later_requests: 1,
            later_request: 81 + Records::default().wire_bytes(51_200),
            ..CLASSICAL
        };
        let timeline = timeline(&exchange, &limited(rtt, "1gbit", 10));
        assert_near(timeline.ttlb, last, 1e-4);
    }
}

/// `explain secp256r1/rsa-2048 --rtt 1ms --rate 1mbit --data 5KiB`: a segment of 12 ms is sent twice. What has left before
/// is as it is, and what comes behind it is not.
#[test]
fn a_limit_lies_where_linux_sends_a_segment_again() {
    let exchange = Sizes {
        client_hello: 221,
        server_flight: 2500,
        client_finish: 80,
        first_request: 81,
        response: Records::default().wire_bytes(5120),
        ..CLASSICAL
    };
    let at = |rtt, rate| timeline(&exchange, &limited(rtt, rate, 10));
    let slow = at(1, "1mbit");
    let limit = slow.limit.unwrap();
    assert_eq!(limit.reason, Reason::LossProbe);
    assert!(limit.until > slow.handshake && limit.until < slow.ttfb.unwrap());
    assert_eq!(slow.beyond(slow.handshake), None);
    assert_eq!(slow.modelled(slow.handshake), Some(slow.handshake));
    assert_eq!(slow.beyond(slow.ttlb), Some(Reason::LossProbe));
    assert_eq!(slow.modelled(slow.ttlb), None);
    // A longer round trip leaves time for it.
    assert_eq!(at(35, "1mbit").limit, None);
    assert_eq!(at(1, "100mbit").limit, None);
}

#[test]
fn a_syn_is_sent_again_after_a_second() {
    let at = |rtt| at_rtt(rtt, CLASSICAL);
    assert_eq!(at(999).limit, None);
    let limit = at(1000).limit.unwrap();
    assert_eq!((limit.until, limit.reason), (ms(1000), Reason::SynAgain));
    assert_eq!(at(1000).modelled(at(1000).connect.unwrap()), Some(ms(1000)));
}

fn at_rtt(rtt: u64, exchange: Sizes) -> Timeline {
    timeline(&exchange, &unlimited(rtt, 10))
}

/// Its own flight of eleven segments is lost in part; the handshake before it is not.
#[test]
fn a_queue_limits_what_comes_behind_it() {
    let exchange = Sizes {
        response: 11 * 1448,
        ..CLASSICAL
    };
    let with = |queue| {
        let mut path = unlimited(100, 20);
        path.link.backward.queue = queue;
        timeline(&exchange, &path)
    };
    assert_eq!(with(11).limit, None);
    let limited = with(10);
    assert_eq!(limited.beyond(limited.handshake), None);
    assert_eq!(limited.beyond(limited.ttlb), Some(Reason::QueueOverflow));
}

/// Where a segment takes less than a microsecond on the link, arithmetic follows no more of them at once than half of the receive buffer
/// holds: of 131072 bytes, one of 1448 takes 2408.
#[test]
fn segments_that_come_too_fast_to_be_read_apart_limit_what_comes_behind_them() {
    let limit = |segments: usize, rate: u64, receive: usize| {
        let exchange = Sizes {
            response: segments * 1448,
            ..CLASSICAL
        };
        let path = Path {
            buffers: Buffers {
                receive,
                ..Buffers::LARGE
            },
            ..path(ms(100), Rate::from_bits_per_second(rate), 100)
        };
        let timeline = timeline(&exchange, &path);
        timeline.limit.map(|limit| limit.reason)
    };
    let linux = Buffers::LINUX.receive;
    // 1500 bytes in a microsecond, and then in less.
    let (slow, fast) = (12_000_000_000, 12_100_000_000);
    assert_eq!(limit(27, fast, linux), None);
    assert_eq!(limit(28, fast, linux), Some(Reason::ReadTogether));
    assert_eq!(limit(28, slow, linux), None);
    assert_eq!(limit(28, fast, Buffers::LARGE.receive), None);
}

/// Five times what a client sets its receive buffer to are followed, and a byte more is not; nor are segments that come too fast for that
/// buffer.
#[test]
fn a_small_receive_buffer_is_followed_for_a_while() {
    let limit = |response: usize, rate: &str, client_receive_buffer: Option<usize>| {
        let exchange = Sizes {
            response,
            ..CLASSICAL
        };
        let path = Path {
            client_receive_buffer,
            ..limited(100, rate, 10)
        };
        timeline(&exchange, &path).limit.map(|limit| limit.reason)
    };
    const BYTES: usize = 48 << 10;
    let before = CLASSICAL.server_flight + CLASSICAL.tickets;
    let most = 5 * BYTES - before;
    assert_eq!(limit(most, "1gbit", Some(BYTES)), None);
    assert_eq!(
        limit(most + 1, "1gbit", Some(BYTES)),
        Some(Reason::SmallBuffer)
    );
    assert_eq!(limit(most + 1, "1gbit", None), None);
    assert_eq!(
        limit(90 * 1448, "40gbit", Some(BYTES)),
        Some(Reason::ReadTogether)
    );
    assert_eq!(limit(90 * 1448, "40gbit", None), None);
}

/// A client that hears nothing for longer than its timeout acknowledges quickly again (`tcp_event_data_recv`): here it hears the
/// response 400 ms after the handshake, within three round trips. As Linux 6.12 has it in virtual time; one that acknowledged
/// each segment would have its last one 240 ms later.
#[test]
fn a_client_that_waits_for_its_upload_is_interactive_still() {
    let request = 81 + Records::default().wire_bytes(18_196);
    let exchange = Sizes {
        client_hello: 271,
        server_flight: 2738,
        client_finish: 80,
        first_request: request,
        upload: 18_196,
        response: Records::default().wire_bytes(18_360),
        ..CLASSICAL
    };
    let timeline = timeline(&exchange, &limited(200, "1gbit", 1));
    assert_near(timeline.ttlb, 1400.218, 1e-5);
}
