//! The few kernel interfaces that no safe wrapper offers: TUN, `TCP_INFO`,
//! real-time scheduling, mappings.
#![allow(unsafe_code)]

pub(crate) mod memory;
pub(crate) mod ring;
pub(crate) mod trap;

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZero;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use lastbyte_link::Time;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::{ForkResult, Pid};

use crate::results::TcpStats;

/// `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn now() -> Time {
    let time = read(ClockId::CLOCK_MONOTONIC);
    Time(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// CPU time that the calling thread has used.
pub(crate) fn thread_cpu_time() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID).into()
}

/// CPU time that all threads of a process have used; none if it has ended.
pub(crate) fn process_cpu_time(process: Pid) -> Option<Duration> {
    let clock = clock_getcpuclockid(process).ok()?;
    clock_gettime(clock).ok().map(Duration::from)
}

/// Linux has always had both clocks, so that none fails.
#[inline]
fn read(clock: ClockId) -> TimeSpec {
    clock_gettime(clock).unwrap_or(TimeSpec::new(0, 0))
}

/// Gives memory back that the allocator has kept and nobody uses.
pub(crate) fn trim_memory() {
    // SAFETY: it takes the allocator's own locks, and changes nothing that is in use.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

nix::ioctl_none!(random_reseed, b'R', 7);

/// Has this kernel's randomness for programs begin again: in a guest, with the same numbers each time.
pub(crate) fn begin_randomness_again() -> io::Result<()> {
    let random = File::open("/dev/urandom")?;
    // SAFETY: RNDRESEEDCRNG has no argument.
    unsafe { random_reseed(random.as_raw_fd()) }?;
    Ok(())
}

/// Makes a second process of this one, which has a single thread.
pub(crate) fn fork() -> io::Result<ForkResult> {
    // SAFETY: there is one thread, so the second process finds no lock taken and nothing half done.
    Ok(unsafe { nix::unistd::fork() }?)
}

/// Ends this process, without what programs do besides when they end.
pub(crate) fn exit_at_once() -> ! {
    // SAFETY: the process is forked from one that goes on; what that has registered is to run there.
    unsafe { libc::_exit(0) }
}

/// Creates the TUN device `name` in the calling thread's network namespace and
/// returns its non-blocking end. The device lives as long as the descriptor.
pub(crate) fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd = open("/dev/net/tun", flags, Mode::empty())?;
    // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request
        .ifr_name
        .iter_mut()
        .zip(name.bytes().take(libc::IFNAMSIZ - 1))
    {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which `request` is.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd)
}

/// A page of memory, in bytes.
pub(crate) const PAGE: NonZero<usize> = NonZero::new(4096).unwrap();

/// Maps the first [`PAGE`] of `file` as code and data, shared, and unmaps it again.
pub(crate) fn try_execute_mapping(file: BorrowedFd<'_>) -> io::Result<()> {
    let code_and_data = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE | ProtFlags::PROT_EXEC;
    // SAFETY: the kernel chooses the place, so no memory of ours is replaced; nobody uses the mapping.
    let mapped = unsafe { mmap(None, PAGE, code_and_data, MapFlags::MAP_SHARED, file, 0) }?;
    // SAFETY: it is the mapping that was just made.
    unsafe { munmap(mapped, PAGE.get()) }?;
    Ok(())
}

/// The parts of `struct tcp_info` that a row keeps.
pub(crate) fn tcp_stats(socket: BorrowedFd<'_>) -> io::Result<TcpStats> {
    // SAFETY: tcp_info is plain data, for which all zeroes is a valid value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpStats {
        retransmits: info.tcpi_total_retrans,
        lost: info.tcpi_lost,
        rtt: Duration::from_micros(u64::from(info.tcpi_rtt)),
        min_rtt: Duration::from_micros(u64::from(info.tcpi_min_rtt)),
        cwnd: info.tcpi_snd_cwnd,
        mss: info.tcpi_snd_mss,
        segments_out: info.tcpi_segs_out,
        segments_in: info.tcpi_segs_in,
    })
}

/// Has the sender cut super-packets up before they leave a device of this namespace, as
/// `ethtool -K DEVICE tso off` does (`ETHTOOL_STSO`).
pub(crate) fn turn_off_tso(device: &str) -> io::Result<()> {
    /// `struct ethtool_value` of linux/ethtool.h
    #[repr(C)]
    struct EthtoolValue {
        command: u32,
        data: u32,
    }
    const ETHTOOL_STSO: u32 = 0x1f;
    let mut value = EthtoolValue {
        command: ETHTOOL_STSO,
        data: 0,
    };
    // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let name = request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1);
    for (place, byte) in name.zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the kernel reads `request` and the two words that it points to; both live until it returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets `SO_RCVLOWAT`: the socket counts as readable from so many bytes on.
pub(crate) fn set_low_water(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Sets `TCP_QUICKACK`: acknowledges at once until the connection is interactive.
pub(crate) fn acknowledge_at_once(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1)
}

/// Sets `IP_MTU_DISCOVER`: no datagram is cut into fragments, at either end or on its way.
pub(crate) fn never_fragment(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(
        socket,
        libc::IPPROTO_IP,
        libc::IP_MTU_DISCOVER,
        libc::IP_PMTUDISC_DO,
    )
}

/// Packets that a socket had no room for (`SO_MEMINFO`).
pub(crate) fn dropped_packets(socket: BorrowedFd<'_>) -> io::Result<u32> {
    /// `SK_MEMINFO_DROPS` of linux/sock_diag.h, and how many numbers there are.
    const DROPS: usize = 8;
    const VARIABLES: usize = 9;
    let mut info = [0_u32; VARIABLES];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(info[DROPS])
}

fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads one int, which `value` is.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Puts the calling thread under `SCHED_FIFO` with `priority`.
pub(crate) fn schedule_fifo(priority: i32) -> io::Result<()> {
    schedule(libc::SCHED_FIFO, priority)
}

/// Puts the calling thread under `SCHED_IDLE`: it runs when nothing else wants to.
pub(crate) fn schedule_idle() -> io::Result<()> {
    schedule(libc::SCHED_IDLE, 0)
}

/// Has the process that a command starts end with the calling thread, and run under `SCHED_FIFO` with
/// this priority if it may, or without one as usual, whatever the calling thread has.
pub(crate) fn serve_this_thread(command: &mut Command, priority: Option<i32>) {
    let prepare = move || {
        // Where the machine does not allow it, lateness shows it.
        let _ = match priority {
            Some(priority) => schedule_fifo(priority),
            None => schedule(libc::SCHED_OTHER, 0),
        };
        set_pdeathsig(Signal::SIGKILL)?;
        Ok(())
    };
    // SAFETY: what runs between fork and exec is two system calls.
    unsafe { command.pre_exec(prepare) };
}

/// Which kind of process takes virtual time for what it computes (`kernel/patches/0010-computing.patch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Computes {
    Browser = 1,
    Server = 2,
}

/// Of the same patch: which kind the caller is, and all that it starts.
const ARCH_COMPUTING_KIND: libc::c_int = 0x4c42_0001;
/// How fast all of them are, in thousandths of what their kind costs.
const ARCH_COMPUTING_PACE: libc::c_int = 0x4c42_0002;

/// Has the process that a command starts, and all that it starts, take time for what it computes. It is not started where
/// the kernel gives none.
pub(crate) fn compute(command: &mut Command, kind: Computes) {
    let prepare = move || arch_prctl(ARCH_COMPUTING_KIND, kind as libc::c_ulong);
    // SAFETY: what runs between fork and exec is a system call.
    unsafe { command.pre_exec(prepare) };
}

/// How many thousandths of what it costs all computing takes from now on.
pub(crate) fn set_pace(thousandths: u32) -> io::Result<()> {
    arch_prctl(ARCH_COMPUTING_PACE, thousandths.into())
}

fn arch_prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these options take a number, and touch no memory.
    match unsafe { libc::syscall(libc::SYS_arch_prctl, option, value) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the process that a command starts have these descriptors under the numbers beside them, which are small.
pub(crate) fn give(command: &mut Command, given: Vec<(OwnedFd, libc::c_int)>) -> io::Result<()> {
    /// Above all numbers that are given, so that none is overwritten before it is copied.
    const ABOVE: libc::c_int = 100;
    let mut high = Vec::new();
    for (descriptor, number) in given {
        let copy = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(ABOVE))?;
        // SAFETY: the kernel has just made it, and nobody else has it.
        high.push((unsafe { OwnedFd::from_raw_fd(copy) }, number));
    }
    let prepare = move || {
        for (descriptor, number) in &high {
            // SAFETY: a system call on descriptors that are open; the copy stays open when the program begins.
            if unsafe { libc::dup2(descriptor.as_raw_fd(), *number) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: what runs between fork and exec is a system call for each.
    unsafe { command.pre_exec(prepare) };
    Ok(())
}

fn schedule(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` is valid for the call; 0 names the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &parameters) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
