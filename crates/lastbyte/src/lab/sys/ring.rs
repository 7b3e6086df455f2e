//! Packets of a device, as the kernel leaves them in memory that it shares (packet(7),
//! `PACKET_RX_RING`).
//!
//! Nobody is woken and no packet is held, so nothing about a connection is different for it.

use std::cell::Cell;
use std::io;
use std::mem;
use std::num::NonZero;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use lastbyte_link::Time;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::memory::Mapping;

/// Bytes of what the kernel writes before a packet's own: `struct tpacket2_hdr` and `struct
/// sockaddr_ll`.
const HEADERS: usize = 96;
/// The kernel allots memory by blocks of so many bytes, of whole frames.
const BLOCK: usize = 1 << 16;
const HEADER: usize = mem::size_of::<libc::tpacket2_hdr>();

/// The packets of one device, until it is full or is stopped.
#[derive(Debug)]
pub(crate) struct PacketRing {
    socket: OwnedFd,
    memory: Mapping,
    frame: usize,
    /// Packets that came when it was full, once it has been stopped.
    unseen: Cell<Option<u64>>,
}

/// A packet that was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedPacket<'a> {
    /// Since 1970.
    pub(crate) at: Time,
    pub(crate) direction: Direction,
    /// From the IP header on.
    pub(crate) bytes: &'a [u8],
    /// How long it was.
    pub(crate) length: u32,
}

/// Whether a device has sent or received a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Received,
    Sent,
}

impl PacketRing {
    /// Sees packets of at most `longest` bytes of a device of this namespace from now on, `count`
    /// of them.
    pub(crate) fn open(
        interface: u32,
        longest: usize,
        count: usize,
        place: usize,
    ) -> io::Result<PacketRing> {
        let frame = (longest + HEADERS).next_power_of_two();
        let block = frame.max(BLOCK);
        let blocks = (count.max(1) * frame).div_ceil(block);
        // A protocol of none: nothing is received before it is bound.
        let socket = socket(
            AddressFamily::Packet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set(&socket, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req {
            tp_block_size: block as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: frame as libc::c_uint,
            tp_frame_nr: (blocks * (block / frame)) as libc::c_uint,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let length = NonZero::new(blocks * block).ok_or(io::ErrorKind::InvalidInput)?;
        let memory = Mapping::shared(place, length, &socket)?;
        // SAFETY: sockaddr_ll is plain data, for which all zeroes is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as libc::c_ushort).to_be();
        address.sll_ifindex = interface as libc::c_int;
        // SAFETY: the kernel reads one address, which this is.
        let bound = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                mem::size_of_val(&address) as libc::socklen_t,
            )
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(PacketRing {
            socket,
            memory,
            frame,
            unseen: Cell::new(None),
        })
    }

    /// Sees no more. What came when it was full is counted by then.
    pub(crate) fn stop(&self) -> io::Result<()> {
        if self.unseen.get().is_some() {
            return Ok(());
        }
        // SAFETY: tpacket_stats is plain data, for which all zeroes is a valid value.
        let mut statistics: libc::tpacket_stats = unsafe { mem::zeroed() };
        let mut length = mem::size_of_val(&statistics) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `statistics`.
        let got = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        self.unseen.set(Some(statistics.tp_drops.into()));
        // A frame that is marked as in use is where the kernel ends: the ring is full for it.
        let next = (0..self.frames()).find(|frame| !self.is_taken(*frame));
        if let Some(status) = next.and_then(|next| self.status(next)) {
            status.store(libc::TP_STATUS_USER, Ordering::Release);
        }
        Ok(())
    }

    /// Packets that came when it was full, before it was stopped.
    pub(crate) fn unseen(&self) -> u64 {
        self.unseen.get().unwrap_or_default()
    }

    /// What was seen, in order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = ObservedPacket<'_>> {
        (0..self.frames()).map_while(|frame| self.packet(frame))
    }

    fn frames(&self) -> usize {
        self.memory.length() / self.frame
    }

    fn status(&self, frame: usize) -> Option<&AtomicU32> {
        if frame >= self.frames() {
            return None;
        }
        // SAFETY: it is within the mapping, which is aligned to pages, and frames to powers of two.
        // The first field of a frame is its status, which this side and the kernel read and write
        // in turn.
        Some(unsafe {
            AtomicU32::from_ptr(self.memory.start().add(frame * self.frame).cast().as_ptr())
        })
    }

    fn is_taken(&self, frame: usize) -> bool {
        let user = libc::TP_STATUS_USER;
        (self.status(frame)).is_some_and(|status| status.load(Ordering::Acquire) & user != 0)
    }

    fn packet(&self, frame: usize) -> Option<ObservedPacket<'_>> {
        if !self.is_taken(frame) {
            return None;
        }
        let start = frame * self.frame;
        // SAFETY: the frame is within the mapping, and the kernel writes no more to one that is
        // ours.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.memory.start().add(start).as_ptr(), self.frame)
        };
        // SAFETY: a frame begins with this header, aligned as a frame is.
        let header: libc::tpacket2_hdr =
            unsafe { bytes.as_ptr().cast::<libc::tpacket2_hdr>().read() };
        // SAFETY: behind that is an address, at a multiple of 16.
        let address: libc::sockaddr_ll = unsafe {
            let place = bytes
                .as_ptr()
                .add(HEADER.next_multiple_of(libc::TPACKET_ALIGNMENT));
            place.cast::<libc::sockaddr_ll>().read_unaligned()
        };
        // What this side has marked to stop has no packet.
        let data = usize::from(header.tp_net);
        let packet = bytes.get(data..data + header.tp_snaplen as usize)?;
        (data > 0).then_some(ObservedPacket {
            at: Time(u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec)),
            direction: match address.sll_pkttype {
                libc::PACKET_OUTGOING => Direction::Sent,
                _ => Direction::Received,
            },
            bytes: packet,
            length: header.tp_len,
        })
    }
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as `value` has.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
