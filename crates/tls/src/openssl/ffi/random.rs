//! Where OpenSSL's random numbers come from (`RAND_set_rand_method`).

use std::cell::Cell;
use std::ffi::{c_double, c_int, c_void};
use std::sync::Once;

use lastbyte_link::mix;

/// `RAND_METHOD` (openssl/rand.h).
#[repr(C)]
struct Method {
    seed: Option<unsafe extern "C" fn(*const c_void, c_int) -> c_int>,
    bytes: Option<unsafe extern "C" fn(*mut u8, c_int) -> c_int>,
    cleanup: Option<unsafe extern "C" fn()>,
    add: Option<unsafe extern "C" fn(*const c_void, c_int, c_double) -> c_int>,
    pseudorandom: Option<unsafe extern "C" fn(*mut u8, c_int) -> c_int>,
    status: Option<unsafe extern "C" fn() -> c_int>,
}

unsafe extern "C" {
    fn RAND_set_rand_method(method: *const Method) -> c_int;
    fn RAND_OpenSSL() -> *const Method;
}

static METHOD: Method = Method {
    seed: None,
    bytes: Some(bytes),
    cleanup: None,
    add: None,
    pseudorandom: Some(bytes),
    status: Some(status),
};

thread_local! {
    /// What this thread's come from, while they come from a seed.
    static STATE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Has this thread's random numbers come from a seed from now on, or from the system again. Gives what they came from
/// before. Other threads keep theirs.
pub(in crate::openssl) fn set_state(state: Option<u64>) -> Option<u64> {
    static INSTALLED: Once = Once::new();
    if state.is_some() {
        // SAFETY: the method is static.
        INSTALLED.call_once(|| unsafe {
            RAND_set_rand_method(&raw const METHOD);
        });
    }
    STATE.replace(state)
}

/// # Safety
/// OpenSSL calls it, with a buffer of its own.
unsafe extern "C" fn bytes(buffer: *mut u8, length: c_int) -> c_int {
    let Some(mut state) = STATE.get() else {
        // SAFETY: the default method is static, and was OpenSSL's until this one took its place.
        return unsafe {
            match RAND_OpenSSL().as_ref().and_then(|method| method.bytes) {
                Some(bytes) => bytes(buffer, length),
                None => 0,
            }
        };
    };
    let length = usize::try_from(length).unwrap_or(0);
    if buffer.is_null() || length == 0 {
        return 1;
    }
    // SAFETY: the caller's buffer has that length.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    for part in buffer.chunks_mut(8) {
        state = mix(state);
        part.copy_from_slice(&state.to_le_bytes()[..part.len()]);
    }
    STATE.set(Some(state));
    1
}

unsafe extern "C" fn status() -> c_int {
    1
}
