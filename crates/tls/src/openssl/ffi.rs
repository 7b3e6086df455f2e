//! What the safe bindings lack.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::ptr;

use openssl::ssl::SslContextBuilder;

const SSL_CTRL_SET_MAX_CERT_LIST: c_int = 51;

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
