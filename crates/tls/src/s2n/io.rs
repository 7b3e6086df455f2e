//! The callbacks through which s2n-tls reads, writes and logs secrets.
//!
//! They find the connection's bytes in a thread-local variable for as long as one call of s2n-tls
//! takes, so no pointer to them is kept.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::io::Read;
use std::{mem, slice};

use ::s2n_tls::config::Builder;
use ::s2n_tls::connection::Connection;
use ::s2n_tls::error::Error;

use crate::KeyLog;
use crate::stack::Outgoing;

/// The two ends of what would be a socket, the secrets so far, and the latest session.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) incoming: VecDeque<u8>,
    pub(super) outgoing: Outgoing,
    pub(super) key_log: KeyLog,
    pub(super) session: Option<Vec<u8>>,
}

thread_local! {
    static CURRENT: RefCell<Memory> = RefCell::default();
}

impl Memory {
    /// Lets `call` of s2n-tls read from here and write to here.
    pub(super) fn with<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let swap =
            |memory: &mut Memory| CURRENT.with_borrow_mut(|current| mem::swap(memory, current));
        swap(self);
        let result = call();
        swap(self);
        result
    }
}

pub(super) fn connect(connection: &mut Connection) -> Result<(), Error> {
    connection.set_receive_callback(Some(receive))?;
    connection.set_send_callback(Some(send))?;
    Ok(())
}

/// Keeps a session of the connection whose call this is.
pub(super) fn keep_session(bytes: Vec<u8>) {
    CURRENT.with_borrow_mut(|current| current.session = Some(bytes));
}

pub(super) fn log_secrets(config: &mut Builder) -> Result<(), Error> {
    // SAFETY: the callback does nothing with the context, and reads only the line.
    unsafe { config.set_key_log_callback(Some(log), std::ptr::null_mut()) }?;
    Ok(())
}

unsafe extern "C" fn receive(_: *mut c_void, to: *mut u8, length: u32) -> c_int {
    let read = CURRENT.with_borrow_mut(|current| {
        if current.incoming.is_empty() {
            return None;
        }
        // SAFETY: s2n-tls gives a buffer of its own of that length, which it has filled before.
        let to = unsafe { slice::from_raw_parts_mut(to, length as usize) };
        current.incoming.read(to).ok()
    });
    match read.and_then(|length| c_int::try_from(length).ok()) {
        Some(length) => length,
        None => {
            // SAFETY: the C library's own variable of this thread.
            unsafe { *libc::__errno_location() = libc::EWOULDBLOCK };
            -1
        }
    }
}

unsafe extern "C" fn send(_: *mut c_void, from: *const u8, length: u32) -> c_int {
    // SAFETY: s2n-tls gives so many bytes to send, and leaves them alone meanwhile.
    let bytes = unsafe { slice::from_raw_parts(from, length as usize) };
    CURRENT.with_borrow_mut(|current| current.outgoing.write(bytes));
    // It sends no more than a few records at once.
    c_int::try_from(length).unwrap_or(-1)
}

/// Generic in the connection, whose type is of the raw bindings.
unsafe extern "C" fn log<C>(_: *mut c_void, _: *mut C, line: *mut u8, length: usize) -> c_int {
    // SAFETY: s2n-tls gives so many bytes, and leaves them alone meanwhile.
    let line = unsafe { slice::from_raw_parts(line, length) };
    let line = String::from_utf8_lossy(line);
    CURRENT.with_borrow_mut(|current| current.key_log.push_line(line.trim_end()));
    0
}
