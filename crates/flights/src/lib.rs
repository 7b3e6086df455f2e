//! The arithmetic of one TLS connection over Linux TCP, without loss.
//!
//! [`timeline`] walks through a connection segment by segment: no clock, no randomness, no
//! socket. It says when TCP is established, when the handshake is done, when the first and the last
//! byte arrive, and in how many [flights](Flight); [`trace`] has each [`Packet`] besides. On a path that loses nothing, the
//! measurements of a real kernel agree with it; where they don't, one of the two is wrong.
//!
//! ```
//! use std::time::Duration;
//! use lastbyte_exchange::{Exchange, HandshakeFlight};
//! use lastbyte_flights::{Path, timeline};
//! use lastbyte_link::{Direction, Link};
//!
//! let path = Path {
//!     link: Link::symmetric(Duration::from_millis(35), Direction::default()),
//!     ..Path::default()
//! };
//! // 16 KB do not fit ten segments: the handshake takes three round trips, TCP's included.
//! let mut exchange = Exchange::default();
//! for (flight, bytes) in [(HandshakeFlight::ClientHello, 1449), (HandshakeFlight::Server, 16_000), (HandshakeFlight::ClientFinish, 74)] {
//!     exchange.handshake.see(flight, Some(bytes));
//! }
//! assert_eq!(timeline(&exchange, &path).handshake, Duration::from_millis(105));
//! ```
//!
//! # What is modelled
//!
//! TCP as Linux 6.12 has it, and the link as [`lastbyte_link::Pipe`] has it. The
//! names are those of the kernel's functions and fields in `net/ipv4`.
//!
//! - A sender has at most `cwnd` segments in flight (`tcp_cwnd_test`). A write is cut into full
//!   segments; the last, shorter one leaves at once (`TCP_NODELAY`).
//! - Slow start: an acknowledgement of n segments raises `cwnd` by n (`tcp_slow_start`), but only
//!   while the window is used (`tcp_is_cwnd_limited`): either it was full when something was last
//!   sent, or `cwnd < 2 * max_packets_out` (`tcp_cwnd_validate`). So from 20 segments, a flight of
//!   13 lifts it to 26, and one of 3 leaves it where it is. The response finds the window as the
//!   handshake left it: it can take a round trip *less* after a larger handshake.
//! - A sender that was idle for longer than a retransmission timeout halves its window for each such time, down to
//!   the initial one (`tcp_slow_start_after_idle_check`). The timeout begins at three round trips, or 200 ms above one,
//!   whichever is longer, and what it is above a round trip falls by a quarter of what is too much with each
//!   (`tcp_rtt_estimator`).
//! - The receiver acknowledges its first 16 segments one by one (`tcp_incr_quickack`), fewer if they are large,
//!   and as long as its window grows (`tcp_grow_window`), until it sends data within 40 ms of receiving some
//!   (`inet_csk_inc_pingpong_cnt`). From then on, and after the 16, it acknowledges when more than one full
//!   segment has come (`__tcp_ack_snd_check`), with the data that it sends, when a second write's end is read
//!   (`ICSK_ACK_PUSHED2`), or after 40 ms, which also ends the ping-pong mode (`tcp_delack_timer_handler`).
//!   Outside of that mode the end of a write is acknowledged when the application reads it
//!   (`__tcp_cleanup_rbuf`), which it does at once.
//! - The receive window begins at 64 KB with Linux's own buffers. It grows by two segments with each one that
//!   arrives, up to what the buffer holds, and the buffer with what is read in a round trip
//!   (`tcp_rcv_space_adjust`), which the receiver estimates from timestamps of milliseconds.
//! - A receive buffer that the client sets once it is connected is twice that, and no longer grows
//!   (`SOCK_RCVBUF_LOCK`). The window shrinks to its payload when the first full segment tells how much of its memory
//!   is that, but what was promised before holds.
//! - The send buffer holds 37 segments at first (87040 bytes, of which a segment takes 2408). It grows with the
//!   window when there is room in that (`tcp_sndbuf_expand`), and is filled again when a third of it is free.
//!
//! # What is not
//!
//! - Loss and jitter of the link.
//! - What a segment takes of the receiver's memory is the network driver's choice. Here it is as much as at the
//!   sender.
//! - Windows after slow start: `ssthresh` is infinite. Where CUBIC ends slow start (HyStart), that mostly is when the window
//!   covers the path, and no longer matters; where it does, [`Timeline::limit`] says so.
//! - What a client sends before its Finished, such as rustls' change_cipher_spec, which takes a place in its
//!   window until it is acknowledged.
//! - What is sent again without need: SYNs where the handshake takes a second, and tail loss probes
//!   (`tcp_schedule_loss_probe`) where a segment takes longer than two round trips on the link: 9000 bytes at 3 Mbit/s
//!   and an RTT of 10 ms; and what a full queue drops. [`Timeline::limit`] says when that begins: all before it holds.
//! - GSO (`tcp_tso_should_defer` may hold back part of a window), GRO and pacing: each segment
//!   leaves on its own, as soon as the window allows it.
//! - The adaption of the 40 ms to the gaps between segments, and to acknowledgements that had to wait for them
//!   (`icsk_ack.ato`): with a receive buffer of less than 48 KiB that the client sets, some percent of the last byte.

mod edges;
pub mod quic;
mod tcp;
mod timeline;

pub use edges::{Around, around, largest};
pub use tcp::{Flight, Packet, PacketKind};
pub use timeline::{
    Buffers, Compute, Growth, Limit, Path, QuicCongestion, QuicPath, Reason, Timeline, timeline,
    trace, transfer,
};

/// How many segments of at most `mss` bytes hold `bytes`.
#[must_use]
pub fn segments(bytes: usize, mss: usize) -> usize {
    bytes.div_ceil(mss.max(1))
}

/// How many flights `bytes` take from a standing start: slow start doubles the window with each.
///
/// This is what [`transfer`] walks through where the window is even and the path has no rate limit.
/// An odd window can take one flight more, as the acknowledgement of its last segment is delayed.
#[must_use]
pub fn flights_needed(bytes: usize, mss: usize, initcwnd: u32) -> u32 {
    let mut left = segments(bytes, mss);
    let mut window = usize::try_from(initcwnd.max(1)).unwrap_or(usize::MAX);
    let mut flights = 0;
    while left > 0 {
        left = left.saturating_sub(window);
        window = window.saturating_mul(2);
        flights += 1;
    }
    flights
}

#[cfg(test)]
mod tests;
