//! OpenSSL's TLS for QUIC transports of others (`SSL_set_quic_tls_cbs`, since 3.5).

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use foreign_types::ForeignTypeRef;
use openssl::error::ErrorStack;
use openssl::ssl::{ErrorCode, Ssl, SslRef};

/// What a TLS says to its transport, and asks of it.
pub(in crate::openssl) trait Transport: Send {
    /// Handshake messages to be sent at the level that it writes at.
    fn send(&mut self, crypto: &[u8]);

    /// What came at the level that it reads at and was not [released](Transport::release). It is there, unmoved,
    /// until that is called.
    fn incoming(&self) -> &[u8];

    /// So much of that was taken.
    fn release(&mut self, bytes: usize);

    /// A secret of a level, by OpenSSL's number; the suite by its code point.
    fn secret(&mut self, level: u32, direction: Direction, cipher_suite: u16, secret: &[u8]);

    /// The peer's transport parameters.
    fn parameters(&mut self, parameters: &[u8]);

    /// What is wrong, by the alert's number.
    fn alert(&mut self, alert: u8);
}

/// What a secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::openssl) enum Direction {
    Read,
    Write,
}

/// A TLS connection and the transport that it is on.
pub(in crate::openssl) struct OnTransport<T> {
    /// First, so that it is gone before what it points to.
    ssl: Ssl,
    transport: Arc<Mutex<T>>,
    /// OpenSSL keeps a pointer to it.
    _parameters: Box<[u8]>,
}

type Anything = unsafe extern "C" fn();

/// `OSSL_DISPATCH` (openssl/core.h).
#[repr(C)]
struct Dispatch {
    function_id: c_int,
    function: Option<Anything>,
}

unsafe extern "C" {
    fn SSL_set_quic_tls_cbs(
        ssl: *mut openssl_sys::SSL,
        callbacks: *const Dispatch,
        argument: *mut c_void,
    ) -> c_int;
    fn SSL_set_quic_tls_transport_params(
        ssl: *mut openssl_sys::SSL,
        parameters: *const u8,
        length: usize,
    ) -> c_int;
    fn SSL_set_quic_tls_early_data_enabled(ssl: *mut openssl_sys::SSL, enabled: c_int) -> c_int;
    fn SSL_get_pending_cipher(ssl: *const openssl_sys::SSL) -> *const openssl_sys::SSL_CIPHER;
}

impl<T: Transport> OnTransport<T> {
    /// `ssl` knows which side it is, and has sent nothing yet.
    pub(in crate::openssl) fn new(
        ssl: Ssl,
        transport: T,
        parameters: &[u8],
    ) -> Result<OnTransport<T>, ErrorStack> {
        let on_transport = OnTransport {
            ssl,
            transport: Arc::new(Mutex::new(transport)),
            _parameters: parameters.into(),
        };
        let callbacks = [
            (2001, callback(send::<T> as *const ())),
            (2002, callback(receive::<T> as *const ())),
            (2003, callback(release::<T> as *const ())),
            (2004, callback(secret::<T> as *const ())),
            (2005, callback(parameters_came::<T> as *const ())),
            (2006, callback(alert::<T> as *const ())),
            (0, None),
        ]
        .map(|(function_id, function)| Dispatch {
            function_id,
            function,
        });
        let argument = Arc::as_ptr(&on_transport.transport).cast_mut().cast();
        let parameters = &on_transport._parameters;
        // SAFETY: the connection is alive. The functions are those of these numbers in openssl/core_dispatch.h, and
        // their addresses are copied. The argument and the parameters are on the heap, where they stay until after
        // the connection is freed: both are owned by the same value, and the connection is its first field.
        let is_set = unsafe {
            let ssl = on_transport.ssl.as_ptr();
            SSL_set_quic_tls_cbs(ssl, callbacks.as_ptr(), argument) == 1
                && SSL_set_quic_tls_transport_params(ssl, parameters.as_ptr(), parameters.len())
                    == 1
        };
        if is_set {
            Ok(on_transport)
        } else {
            Err(ErrorStack::get())
        }
    }

    pub(in crate::openssl) fn ssl(&self) -> &SslRef {
        &self.ssl
    }

    /// What it is on.
    pub(in crate::openssl) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self
            .transport
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }

    /// Has a server take early data, or a client offer some of its session, before the handshake. False of a session that
    /// allows none.
    pub(in crate::openssl) fn enable_early_data(&mut self) -> bool {
        // SAFETY: the connection is alive, and nobody else uses it.
        unsafe { SSL_set_quic_tls_early_data_enabled(self.ssl.as_ptr(), 1) == 1 }
    }

    /// Goes on with the handshake. True once it is complete, false where more has to come.
    pub(in crate::openssl) fn do_handshake(&mut self) -> Result<bool, ErrorStack> {
        loop {
            // SAFETY: the connection is alive, and nobody else uses it; nor does anyone hold the transport.
            let result = unsafe { openssl_sys::SSL_do_handshake(self.ssl.as_ptr()) };
            // A server that would have taken early data, and is offered none or refuses it, returns once before the
            // client's Finished.
            if !self.outcome(result)? || self.ssl.is_init_finished() {
                return Ok(result > 0);
            }
        }
    }

    /// Takes what follows the handshake.
    pub(in crate::openssl) fn read(&mut self) -> Result<(), ErrorStack> {
        let mut nothing = [0; 1];
        // SAFETY: as in `do_handshake`; the buffer has that length.
        let result =
            unsafe { openssl_sys::SSL_read(self.ssl.as_ptr(), nothing.as_mut_ptr().cast(), 1) };
        self.outcome(result).map(drop)
    }

    fn outcome(&self, result: c_int) -> Result<bool, ErrorStack> {
        if result > 0 {
            return Ok(true);
        }
        // SAFETY: the connection is alive, and only read.
        let error = unsafe { openssl_sys::SSL_get_error(self.ssl.as_ptr(), result) };
        match ErrorCode::from_raw(error) {
            ErrorCode::WANT_READ | ErrorCode::WANT_WRITE => Ok(false),
            _ => Err(ErrorStack::get()),
        }
    }
}

fn callback(function: *const ()) -> Option<Anything> {
    // SAFETY: it is the address of a function, which OpenSSL casts back to its own type before the call.
    Some(unsafe { std::mem::transmute::<*const (), Anything>(function) })
}

/// The transport of a callback's argument.
///
/// # Safety
/// It is what `OnTransport::new` gave.
unsafe fn transport<'a, T>(argument: *mut c_void) -> &'a Mutex<T> {
    // SAFETY: the value that gave it is borrowed while OpenSSL calls back.
    unsafe { &*argument.cast::<Mutex<T>>() }
}

/// What a callback's pointer and length say.
///
/// # Safety
/// They are a buffer of OpenSSL's that it does not change during the call.
unsafe fn bytes<'a>(pointer: *const u8, length: usize) -> &'a [u8] {
    if pointer.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

fn with<T, R>(transport: &Mutex<T>, f: impl FnOnce(&mut T) -> R) -> R {
    f(&mut transport.lock().unwrap_or_else(PoisonError::into_inner))
}

/// # Safety
/// Of all callbacks: OpenSSL calls them, with the argument of `SSL_set_quic_tls_cbs`.
unsafe extern "C" fn send<T: Transport>(
    _: *mut openssl_sys::SSL,
    buffer: *const u8,
    length: usize,
    consumed: *mut usize,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: OpenSSL's own buffers and our argument.
    unsafe {
        with(transport::<T>(argument), |transport| {
            transport.send(bytes(buffer, length));
        });
        *consumed = length;
    }
    1
}

unsafe extern "C" fn receive<T: Transport>(
    _: *mut openssl_sys::SSL,
    buffer: *mut *const u8,
    length: *mut usize,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: as in `send`. What `incoming` shows stays where it is until it is released.
    unsafe {
        with(transport::<T>(argument), |transport| {
            let incoming = transport.incoming();
            *buffer = incoming.as_ptr();
            *length = incoming.len();
        });
    }
    1
}

unsafe extern "C" fn release<T: Transport>(
    _: *mut openssl_sys::SSL,
    length: usize,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: as in `send`.
    unsafe {
        with(transport::<T>(argument), |transport| {
            transport.release(length);
        });
    }
    1
}

unsafe extern "C" fn secret<T: Transport>(
    ssl: *mut openssl_sys::SSL,
    level: u32,
    direction: c_int,
    secret: *const u8,
    length: usize,
    argument: *mut c_void,
) -> c_int {
    let direction = match direction {
        0 => Direction::Read,
        _ => Direction::Write,
    };
    // SAFETY: as in `send`; the connection is alive while it calls.
    unsafe {
        let cipher = SSL_get_pending_cipher(ssl);
        let cipher = if cipher.is_null() {
            openssl_sys::SSL_get_current_cipher(ssl)
        } else {
            cipher
        };
        if cipher.is_null() {
            return 0;
        }
        let suite = openssl_sys::SSL_CIPHER_get_protocol_id(cipher);
        with(transport::<T>(argument), |transport| {
            transport.secret(level, direction, suite, bytes(secret, length));
        });
    }
    1
}

unsafe extern "C" fn parameters_came<T: Transport>(
    _: *mut openssl_sys::SSL,
    parameters: *const u8,
    length: usize,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: as in `send`.
    unsafe {
        with(transport::<T>(argument), |transport| {
            transport.parameters(bytes(parameters, length));
        });
    }
    1
}

unsafe extern "C" fn alert<T: Transport>(
    _: *mut openssl_sys::SSL,
    alert: u8,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: as in `send`.
    unsafe {
        with(transport::<T>(argument), |transport| {
            transport.alert(alert);
        });
    }
    1
}
