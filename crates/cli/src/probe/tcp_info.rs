//! What Linux counts of a TCP connection.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::libc;

/// The parts of `struct tcp_info` (linux/tcp.h) that a probe reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpInfo {
    /// Whether both ends put timestamps into their segments.
    pub(super) timestamps: bool,
    /// Bytes of payload of the peer's segments, as far as they came.
    pub(super) peer_segment: u32,
    /// The segment that was asked for.
    pub(super) advertised_segment: u32,
    /// Segments that were sent again.
    pub(super) retransmitted: u32,
    /// None on kernels that don't tell.
    pub(super) min_rtt: Option<Duration>,
    /// What the peer's echoes of our timestamps say; none before the first.
    pub(super) receiver_rtt: Option<Duration>,
    /// Segments with data that came; none on kernels before 4.6.
    pub(super) segments: Option<u32>,
    /// Those that came out of order; none on kernels before 5.4.
    pub(super) out_of_order: Option<u32>,
}

/// What the kernel knows of this connection now.
pub(super) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    // More than any kernel has; what an older one does not fill in is not read.
    let mut bytes = [0_u8; 512];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `bytes`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let known = bytes.get(..length as usize).unwrap_or(&bytes);
    // Places in the struct, which only grows.
    let number = |at: usize| {
        let bytes = known.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    /// `TCPI_OPT_TIMESTAMPS`
    const TIMESTAMPS: u8 = 1;
    Ok(TcpInfo {
        timestamps: known
            .get(5)
            .is_some_and(|options| options & TIMESTAMPS != 0),
        peer_segment: number(20).unwrap_or_default(),
        advertised_segment: number(84).unwrap_or_default(),
        retransmitted: number(100).unwrap_or_default(),
        // All ones before the first sample.
        min_rtt: number(148)
            .filter(|rtt| *rtt > 0 && *rtt < u32::MAX)
            .map(|rtt| Duration::from_micros(u64::from(rtt))),
        receiver_rtt: number(92)
            .filter(|rtt| *rtt > 0)
            .map(|rtt| Duration::from_micros(u64::from(rtt))),
        segments: number(152),
        out_of_order: number(224),
    })
}
