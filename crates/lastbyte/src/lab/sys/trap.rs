//! Whether system calls of this process can be turned into signals, as those of a guest's processes are.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Calls that are tried: those of x86-64, and some that are still to come. With [`MARK`], none of them is made. Between
/// them are numbers without a call, and those of probes, which no filter sees.
const CALLS: [Range<libc::c_long>; 2] = [0..335, 424..512];
/// The first argument of a call that is to be a signal, which no other call has.
const MARK: u32 = 0x6c61_7374;

static TRAPPED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    TRAPPED.fetch_add(1, Ordering::Relaxed);
}

/// Turns a call of each kind into a signal, with a filter (seccomp(2)) that lets others pass and that this process
/// has from then on. A filter that it had before may kill it: that is seen by whoever has started it.
pub(crate) fn try_trapping_calls() -> io::Result<()> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    /// Where `struct seccomp_data` has the lower half of it.
    const FIRST_ARGUMENT: u32 = 16;
    let filter = |code: u32, if_equal, if_not, k| libc::sock_filter {
        code: code as u16,
        jt: if_equal,
        jf: if_not,
        k,
    };
    let mut filters = [
        filter(LOAD, 0, 0, FIRST_ARGUMENT),
        filter(JUMP_IF_EQUAL, 0, 1, MARK),
        filter(RETURN, 0, 0, libc::SECCOMP_RET_TRAP),
        filter(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filters.len() as u16,
        filter: filters.as_mut_ptr(),
    };
    let handler = SigAction::new(
        SigHandler::Handler(count),
        SaFlags::empty(),
        SigSet::empty(),
    );
    nix::sys::prctl::set_no_new_privs()?;
    // SAFETY: the handler counts, and does nothing else.
    unsafe { sigaction(Signal::SIGSYS, &handler) }?;
    // SAFETY: the kernel only reads the program, which outlives the call.
    let set = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &program,
        )
    };
    if set != 0 {
        return Err(io::Error::other(format!("seccomp: {}", Errno::last())));
    }
    let calls = CALLS.into_iter().flatten();
    for call in calls.clone() {
        // SAFETY: the filter has it not made.
        unsafe { libc::syscall(call, libc::c_ulong::from(MARK)) };
    }
    if TRAPPED.load(Ordering::Relaxed) == calls.count() {
        Ok(())
    } else {
        Err(io::Error::other("calls don't become signals"))
    }
}
