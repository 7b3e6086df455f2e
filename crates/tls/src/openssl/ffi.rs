//! What the safe bindings lack.
#![allow(unsafe_code)]

pub(super) mod quic;
pub(super) mod random;

use std::ffi::{c_int, c_long};
use std::ptr;

use foreign_types::ForeignTypeRef;
use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContextBuilder, SslRef, SslSession, SslSessionRef};

const SSL_CTRL_SET_MAX_CERT_LIST: c_int = 51;
const SSL_OP_NO_ANTI_REPLAY: u64 = 1 << 24;
const SSL_EARLY_DATA_ACCEPTED: c_int = 2;

unsafe extern "C" {
    fn SSL_get_early_data_status(ssl: *const openssl_sys::SSL) -> c_int;
    fn SSL_SESSION_is_resumable(session: *const openssl_sys::SSL_SESSION) -> c_int;
}

/// Accepts a peer's certificate chain of up to `bytes`; OpenSSL's default is 100 KiB.
pub(super) fn set_max_cert_list(context: &mut SslContextBuilder, bytes: c_long) {
    // SAFETY: the builder owns a valid SSL_CTX, and this control reads no pointer.
    unsafe {
        openssl_sys::SSL_CTX_ctrl(
            context.as_ptr(),
            SSL_CTRL_SET_MAX_CERT_LIST,
            bytes,
            ptr::null_mut(),
        );
    }
}

/// Accepts early data however often it comes.
pub(super) fn set_no_anti_replay(context: &mut SslContextBuilder) {
    // SAFETY: the builder owns a valid SSL_CTX.
    unsafe { openssl_sys::SSL_CTX_set_options(context.as_ptr(), SSL_OP_NO_ANTI_REPLAY) };
}

/// Offers to resume `session`.
pub(super) fn set_session(ssl: &mut Ssl, session: &SslSession) -> Result<(), ErrorStack> {
    // SAFETY: the binding asks that both be of one context. The session is of none: it was decoded
    // just now, and it keeps alive all that it refers to.
    unsafe { ssl.set_session(session) }
}

/// Has this connection send no certificates besides the end-entity's.
pub(super) fn clear_chain(ssl: &mut SslRef) -> Result<(), ErrorStack> {
    const SSL_CTRL_CHAIN: c_int = 88;
    // SAFETY: the connection is alive; without a pointer, what it had is dropped and nothing is read.
    match unsafe { openssl_sys::SSL_ctrl(ssl.as_ptr(), SSL_CTRL_CHAIN, 0, ptr::null_mut()) } {
        1 => Ok(()),
        _ => Err(ErrorStack::get()),
    }
}

/// Whether a ticket has come for the session.
pub(super) fn is_resumable(session: &SslSessionRef) -> bool {
    // SAFETY: the session is alive, and only read.
    unsafe { SSL_SESSION_is_resumable(session.as_ptr()) == 1 }
}

/// Whether the server accepted this client's early data.
pub(super) fn is_early_data_accepted(ssl: &SslRef) -> bool {
    // SAFETY: the connection is alive, and only read.
    unsafe { SSL_get_early_data_status(ssl.as_ptr()) == SSL_EARLY_DATA_ACCEPTED }
}
