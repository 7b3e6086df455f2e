//! Memory of a tap, at a place of its own.

use std::io;
use std::num::NonZero;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Where taps have their memory, unless something is there: far from all that the kernel and the allocator place by
/// themselves, so that nothing is elsewhere for it. In virtual time, OpenSSL's randomness depends on addresses.
pub(crate) const PLACES: [usize; 2] = [0x1000_0000_0000, 0x1100_0000_0000];

/// Mapped memory, which takes no more than was touched of it.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: NonZero<usize>,
}

impl Mapping {
    /// Zeroes.
    pub(crate) fn anonymous(place: usize, length: NonZero<usize>) -> io::Result<Mapping> {
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        let read_and_write = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let place = NonZero::new(place);
        // SAFETY: without MAP_FIXED the place is a hint, so no memory of ours is replaced.
        let start = unsafe { mmap_anonymous(place, length, read_and_write, flags) }?;
        Ok(Mapping {
            start: start.cast(),
            length,
        })
    }

    /// What a file or socket shares. Processes that this one starts do not have it: the guest's kernel fails when it
    /// copies a packet ring for them.
    pub(crate) fn shared(
        place: usize,
        length: NonZero<usize>,
        with: impl AsFd,
    ) -> io::Result<Mapping> {
        let read_and_write = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let place = NonZero::new(place);
        // SAFETY: as above.
        let start = unsafe { mmap(place, length, read_and_write, MapFlags::MAP_SHARED, with, 0) }?;
        let mapping = Mapping {
            start: start.cast(),
            length,
        };
        // SAFETY: it is our mapping, and this changes nothing for this process.
        unsafe { madvise(start, length.get(), MmapAdvise::MADV_DONTFORK) }?;
        Ok(mapping)
    }

    pub(crate) fn length(&self) -> usize {
        self.length.get()
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// All of it, which must be nobody else's: not [`shared`](Mapping::shared).
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable and lives as long as `self`; whoever changes it has it mutably.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length.get()) }
    }

    /// As [`bytes`](Mapping::bytes), to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is writable, lives as long as `self`, and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length.get()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, and nobody has a reference into it any more.
        let _ = unsafe { munmap(self.start.cast(), self.length.get()) };
    }
}

// SAFETY: it is memory of this process, with an owner as a Vec has one.
unsafe impl Send for Mapping {}
