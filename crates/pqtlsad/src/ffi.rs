//! What the safe bindings lack.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::{PKeyRef, Private, Public};
use openssl::ssl::{SslContextBuilder, SslRef};
use openssl::stack::{Stack, StackRef};
use openssl::x509::verify::X509VerifyParamRef;
use openssl::x509::{X509, X509Ref, X509StoreContextRef};
use openssl_sys as sys;

type CertificateCallback = unsafe extern "C" fn(*mut sys::SSL, *mut c_void) -> c_int;
type VerifyCallback = unsafe extern "C" fn(*mut sys::X509_STORE_CTX, *mut c_void) -> c_int;

unsafe extern "C" {
    fn SSL_CTX_set_cert_cb(
        context: *mut sys::SSL_CTX,
        callback: Option<CertificateCallback>,
        argument: *mut c_void,
    );
    fn SSL_CTX_set_cert_verify_callback(
        context: *mut sys::SSL_CTX,
        callback: Option<VerifyCallback>,
        argument: *mut c_void,
    );
    fn SSL_use_cert_and_key(
        ssl: *mut sys::SSL,
        certificate: *mut sys::X509,
        key: *mut sys::EVP_PKEY,
        chain: *mut sys::stack_st_X509,
        replace: c_int,
    ) -> c_int;
    fn SSL_set1_server_cert_type(ssl: *mut sys::SSL, types: *const u8, length: usize) -> c_int;
    fn X509_STORE_CTX_get0_untrusted(context: *mut sys::X509_STORE_CTX) -> *mut sys::stack_st_X509;
    fn X509_STORE_CTX_set0_untrusted(
        context: *mut sys::X509_STORE_CTX,
        untrusted: *mut sys::stack_st_X509,
    );
    fn X509_STORE_CTX_get0_cert(context: *const sys::X509_STORE_CTX) -> *mut sys::X509;
    fn X509_STORE_CTX_get0_rpk(context: *const sys::X509_STORE_CTX) -> *mut sys::EVP_PKEY;
    fn X509_STORE_CTX_set0_rpk(context: *mut sys::X509_STORE_CTX, key: *mut sys::EVP_PKEY);
    fn X509_STORE_CTX_get0_param(
        context: *const sys::X509_STORE_CTX,
    ) -> *mut sys::X509_VERIFY_PARAM;
    fn OPENSSL_sk_set(
        stack: *mut sys::OPENSSL_STACK,
        index: c_int,
        data: *const c_void,
    ) -> *mut c_void;
    fn X509_check_ca(certificate: *mut sys::X509) -> c_int;
    fn i2d_re_X509_tbs(certificate: *mut sys::X509, out: *mut *mut u8) -> c_int;
}

/// OpenSSL's reason, without its codes. Some of its functions give none.
pub(crate) fn reason(stack: &ErrorStack) -> &str {
    let mut reasons = stack.errors().iter().filter_map(|error| error.reason());
    reasons.next().unwrap_or("OpenSSL gives no reason")
}

/// Chooses the certificates of a handshake of a server. False ends the handshake.
type ChooseCertificates = fn(&mut SslRef) -> bool;

/// Verifies the server of a handshake of a client.
type Verify = fn(&mut X509StoreContextRef) -> bool;

/// Has `callback` called in each handshake of a server.
pub(super) fn set_certificate_callback(
    context: &mut SslContextBuilder,
    callback: ChooseCertificates,
) {
    unsafe extern "C" fn raw(ssl: *mut sys::SSL, callback: *mut c_void) -> c_int {
        // SAFETY: the argument is the function that was set, below.
        let callback: ChooseCertificates = unsafe { std::mem::transmute(callback) };
        // SAFETY: OpenSSL calls with the connection, which nobody else uses meanwhile.
        let ssl = unsafe { SslRef::from_ptr_mut(ssl) };
        // Unwinding must not reach C.
        let chosen = catch_unwind(AssertUnwindSafe(|| callback(ssl)));
        chosen.unwrap_or(false).into()
    }
    // SAFETY: the builder owns a valid context, and a function lives for ever.
    unsafe { SSL_CTX_set_cert_cb(context.as_ptr(), Some(raw), callback as *mut c_void) }
}

/// Has `callback` called in each handshake of a client.
pub(super) fn set_verify_callback(context: &mut SslContextBuilder, callback: Verify) {
    unsafe extern "C" fn raw(context: *mut sys::X509_STORE_CTX, callback: *mut c_void) -> c_int {
        // SAFETY: the argument is the function that was set, below.
        let callback: Verify = unsafe { std::mem::transmute(callback) };
        // SAFETY: OpenSSL calls with an initialised store context, which nobody else uses
        // meanwhile.
        let context = unsafe { X509StoreContextRef::from_ptr_mut(context) };
        // Unwinding must not reach C.
        let verified = catch_unwind(AssertUnwindSafe(|| callback(context)));
        verified.unwrap_or(false).into()
    }
    // SAFETY: the builder owns a valid context, and a function lives for ever.
    unsafe {
        SSL_CTX_set_cert_verify_callback(context.as_ptr(), Some(raw), callback as *mut c_void);
    }
}

/// The data of an extension of the ClientHello. To be called from a ClientHello callback only.
pub(super) fn client_hello_extension(ssl: &SslRef, number: u16) -> Option<Vec<u8>> {
    let mut data = ptr::null();
    let mut length = 0;
    // SAFETY: the connection is alive. Outside the callback OpenSSL answers 0.
    let found = unsafe {
        sys::SSL_client_hello_get0_ext(ssl.as_ptr(), number.into(), &mut data, &mut length)
    };
    if found != 1 {
        return None;
    }
    if length == 0 {
        return Some(Vec::new());
    }
    // SAFETY: OpenSSL gives a pointer to so many bytes, which live as long as the callback runs.
    Some(unsafe { std::slice::from_raw_parts(data, length) }.to_vec())
}

/// Has this connection prove itself with `certificate`, and send `chain` after it.
pub(super) fn use_certificate(
    ssl: &mut SslRef,
    certificate: &X509Ref,
    key: &PKeyRef<Private>,
    chain: &StackRef<X509>,
) -> Result<(), ErrorStack> {
    // SAFETY: all are alive; OpenSSL takes references of its own to the certificates and the key.
    let used = unsafe {
        SSL_use_cert_and_key(
            ssl.as_ptr(),
            certificate.as_ptr(),
            key.as_ptr(),
            chain.as_ptr(),
            1,
        )
    };
    check(used)
}

/// Has this connection have no certificate and no key.
pub(super) fn clear_certificates(ssl: &mut SslRef) {
    unsafe extern "C" {
        fn SSL_certs_clear(ssl: *mut sys::SSL);
    }
    // SAFETY: the connection is alive, and OpenSSL drops references of its own.
    unsafe { SSL_certs_clear(ssl.as_ptr()) }
}

/// Has this connection resume a session that the same context got.
#[cfg(test)]
pub(super) fn resume(ssl: &mut SslRef, session: &openssl::ssl::SslSessionRef) {
    // SAFETY: it is of the same context.
    let set = unsafe { ssl.set_session(session) };
    assert!(set.is_ok());
}

/// What kinds of certificates a server may send on this connection, the preferred one first
/// (RFC 7250, 4.1).
pub(super) fn set_server_certificate_types(
    ssl: &mut SslRef,
    types: &[u8],
) -> Result<(), ErrorStack> {
    // SAFETY: the connection is alive, and OpenSSL copies the bytes.
    check(unsafe { SSL_set1_server_cert_type(ssl.as_ptr(), types.as_ptr(), types.len()) })
}

/// The certificate that is to be verified, if it is one and not a raw public key.
pub(super) fn certificate(context: &X509StoreContextRef) -> Option<X509> {
    // SAFETY: the context is initialised and keeps the certificate alive; a reference is taken at
    // once.
    unsafe {
        let certificate = X509_STORE_CTX_get0_cert(context.as_ptr());
        (!certificate.is_null()).then(|| X509Ref::from_ptr(certificate).to_owned())
    }
}

/// The raw public key that is to be verified, if it is one.
pub(super) fn raw_public_key(context: &X509StoreContextRef) -> Option<&PKeyRef<Public>> {
    // SAFETY: the context is initialised, and keeps the key alive for as long as it is borrowed.
    unsafe {
        let key = X509_STORE_CTX_get0_rpk(context.as_ptr());
        (!key.is_null()).then(|| PKeyRef::from_ptr(key))
    }
}

/// The parameters of an initialised context: name, time, purpose.
pub(crate) fn parameters(context: &mut X509StoreContextRef) -> &mut X509VerifyParamRef {
    // SAFETY: an initialised context owns its parameters, which are borrowed with it.
    unsafe { X509VerifyParamRef::from_ptr_mut(X509_STORE_CTX_get0_param(context.as_ptr())) }
}

/// Verifies with further certificates that a chain may be built of, none of them an anchor.
pub(super) fn verify_with(
    context: &mut X509StoreContextRef,
    further: &[X509],
) -> Result<bool, ErrorStack> {
    // SAFETY: the context is initialised, and keeps what it has alive.
    let before = unsafe { X509_STORE_CTX_get0_untrusted(context.as_ptr()) };
    let mut untrusted = Stack::<X509>::new()?;
    if !before.is_null() {
        // SAFETY: the same; each certificate gets a reference of its own.
        for certificate in unsafe { StackRef::<X509>::from_ptr(before) } {
            untrusted.push(certificate.to_owned())?;
        }
    }
    for certificate in further {
        untrusted.push(certificate.clone())?;
    }
    // SAFETY: the context borrows the new stack until it gets the old one back, below.
    unsafe { X509_STORE_CTX_set0_untrusted(context.as_ptr(), untrusted.as_ptr()) };
    let verified = context.verify_cert();
    // SAFETY: `before` was the context's own.
    unsafe { X509_STORE_CTX_set0_untrusted(context.as_ptr(), before) };
    verified
}

/// Verifies `end_entity`, with further certificates that a chain may be built of, in the place of
/// the raw public key that came: by all that the connection says of verification, its callback
/// included.
pub(super) fn verify_instead(
    context: &mut X509StoreContextRef,
    end_entity: &X509Ref,
    further: &[X509],
) -> Result<bool, ErrorStack> {
    // SAFETY: the context is initialised with a key and no certificate, both of which it borrows:
    // the certificate while it is verified, below, and the key again afterwards.
    let key = unsafe { X509_STORE_CTX_get0_rpk(context.as_ptr()) };
    unsafe {
        X509_STORE_CTX_set0_rpk(context.as_ptr(), ptr::null_mut());
        sys::X509_STORE_CTX_set_cert(context.as_ptr(), end_entity.as_ptr());
    }
    let verified = verify_with(context, further);
    // SAFETY: as above. The chain that was built has references of its own.
    unsafe {
        sys::X509_STORE_CTX_set_cert(context.as_ptr(), ptr::null_mut());
        X509_STORE_CTX_set0_rpk(context.as_ptr(), key);
    }
    verified
}

/// Puts `end_entity` in the place of the certificate that came, here and among what the peer is
/// recorded to have sent, so that OpenSSL checks its CertificateVerify against that key.
pub(super) fn replace_end_entity(context: &mut X509StoreContextRef, end_entity: &X509Ref) -> bool {
    // SAFETY: the context of a handshake that is verified borrows the session's chain, whose first
    // is what is to be verified. The chain owns a reference of each: the new one's is handed over,
    // and the old one's is dropped. The context has none of its own.
    unsafe {
        let sent = X509_STORE_CTX_get0_untrusted(context.as_ptr());
        let first = X509_STORE_CTX_get0_cert(context.as_ptr());
        if sent.is_null()
            || first.is_null()
            || sys::OPENSSL_sk_num(sent.cast()) < 1
            || sys::OPENSSL_sk_value(sent.cast(), 0).cast() != first
        {
            return false;
        }
        let new = end_entity.to_owned();
        sys::X509_STORE_CTX_set_cert(context.as_ptr(), new.as_ptr());
        OPENSSL_sk_set(sent.cast(), 0, new.as_ptr().cast());
        std::mem::forget(new);
        drop(X509::from_ptr(first));
        true
    }
}

/// A copy of `certificate` in which `key` stands, for OpenSSL to send; its signature is not
/// renewed. The original was accepted as the certificate of another key.
pub(super) fn change_key(certificate: &mut X509, key: &PKeyRef<Public>) -> Result<(), ErrorStack> {
    // SAFETY: the certificate and the key are alive, and nobody else has the certificate: the
    // caller made it for one connection. OpenSSL takes a reference of its own to the key.
    unsafe {
        check(sys::X509_set_pubkey(certificate.as_ptr(), key.as_ptr()))?;
        match i2d_re_X509_tbs(certificate.as_ptr(), ptr::null_mut()) {
            length if length > 0 => Ok(()),
            _ => Err(ErrorStack::get()),
        }
    }
}

/// The name of the group that the keys were exchanged in.
pub(super) fn group_name(ssl: &SslRef) -> Option<&str> {
    unsafe extern "C" {
        fn SSL_get0_group_name(ssl: *mut sys::SSL) -> *const c_char;
    }
    // SAFETY: the connection is alive. The name is of its context's list of groups, which it keeps
    // alive.
    let name = unsafe {
        let name = SSL_get0_group_name(ssl.as_ptr());
        (!name.is_null()).then(|| CStr::from_ptr(name))
    };
    name?.to_str().ok()
}

/// Whether OpenSSL has an extension of this number itself.
pub(super) fn is_built_in(number: u16) -> bool {
    unsafe extern "C" {
        fn SSL_extension_supported(number: std::ffi::c_uint) -> c_int;
    }
    // SAFETY: it looks a number up.
    unsafe { SSL_extension_supported(number.into()) == 1 }
}

/// Whether a certificate may sign others.
pub(crate) fn is_ca(certificate: &X509Ref) -> bool {
    // SAFETY: the certificate is alive; OpenSSL caches its extensions under a lock.
    unsafe { X509_check_ca(certificate.as_ptr()) == 1 }
}

/// The algorithm of its key, as its SubjectPublicKeyInfo names it.
pub(crate) fn key_algorithm(certificate: &X509Ref) -> Nid {
    unsafe extern "C" {
        fn X509_get_X509_PUBKEY(certificate: *const sys::X509) -> *mut c_void;
        fn X509_PUBKEY_get0_param(
            algorithm: *mut *mut sys::ASN1_OBJECT,
            key: *mut *const u8,
            length: *mut c_int,
            parameters: *mut *mut c_void,
            public: *const c_void,
        ) -> c_int;
    }
    let mut algorithm = ptr::null_mut();
    // SAFETY: the certificate is alive and keeps what is pointed to; null asks for nothing.
    let nid = unsafe {
        let public = X509_get_X509_PUBKEY(certificate.as_ptr());
        let found = X509_PUBKEY_get0_param(
            &mut algorithm,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            public,
        );
        match found {
            1 => sys::OBJ_obj2nid(algorithm),
            _ => 0,
        }
    };
    Nid::from_raw(nid)
}

/// Binds sessions to what is given here: those of another context are not resumed.
pub(super) fn set_session_id_context(
    ssl: &mut SslRef,
    context: &[u8; 32],
) -> Result<(), ErrorStack> {
    unsafe extern "C" {
        fn SSL_set_session_id_context(
            ssl: *mut sys::SSL,
            context: *const u8,
            length: std::ffi::c_uint,
        ) -> c_int;
    }
    // SAFETY: the connection is alive, and OpenSSL copies the 32 bytes, which is as much as it has
    // room for.
    check(unsafe { SSL_set_session_id_context(ssl.as_ptr(), context.as_ptr(), 32) })
}

/// What seals a ticket (RFC 5077, section 4): AES-256 in CBC mode, and HMAC with SHA-256 over it.
#[derive(Clone, Default)]
pub(super) struct TicketKey {
    pub(super) name: [u8; 16],
    pub(super) cipher: [u8; 32],
    pub(super) mac: [u8; 32],
}

/// The key of a new ticket, or of one that has this name of a key.
type ChooseTicketKey = fn(&SslRef, Option<&[u8]>) -> Option<TicketKey>;

/// Has tickets sealed and opened with the keys that `callback` has. Those without a key are not
/// resumed.
pub(super) fn set_ticket_callback(context: &mut SslContextBuilder, callback: ChooseTicketKey) {
    type Raw = unsafe extern "C" fn(
        *mut sys::SSL,
        *mut u8,
        *mut u8,
        *mut sys::EVP_CIPHER_CTX,
        *mut c_void,
        c_int,
    ) -> c_int;
    unsafe extern "C" {
        fn SSL_CTX_set_tlsext_ticket_key_evp_cb(context: *mut sys::SSL_CTX, callback: Raw)
        -> c_int;
        fn EVP_MAC_init(
            context: *mut c_void,
            key: *const u8,
            length: usize,
            parameters: *const sys::OSSL_PARAM,
        ) -> c_int;
        fn OSSL_PARAM_construct_utf8_string(
            key: *const c_char,
            text: *mut c_char,
            length: usize,
        ) -> sys::OSSL_PARAM;
    }
    /// The same for all contexts: which keys they have, each knows itself.
    static CALLBACK: std::sync::OnceLock<ChooseTicketKey> = std::sync::OnceLock::new();

    /// OpenSSL's answers: the ticket is not used, or it is, and a new one follows, as each is for
    /// one connection (RFC 8446, appendix C.4). A negative one would end the handshake.
    const NOT_USED: c_int = 0;
    const USED: c_int = 2;

    unsafe extern "C" fn raw(
        ssl: *mut sys::SSL,
        name: *mut u8,
        iv: *mut u8,
        cipher: *mut sys::EVP_CIPHER_CTX,
        mac: *mut c_void,
        seal: c_int,
    ) -> c_int {
        // SAFETY: OpenSSL calls with the connection, with 16 bytes of a name, with the 16 bytes of
        // an initialisation vector, and with contexts of a cipher and of HMAC. The name and the
        // vector are to be written if `seal` is 1.
        let run = || unsafe {
            let ssl = SslRef::from_ptr(ssl);
            let given = (seal == 0).then(|| std::slice::from_raw_parts(name.cast_const(), 16));
            let key = CALLBACK.get().and_then(|callback| callback(ssl, given))?;
            if seal != 0 {
                ptr::copy_nonoverlapping(key.name.as_ptr(), name, key.name.len());
                let iv = std::slice::from_raw_parts_mut(iv, 16);
                openssl::rand::rand_bytes(iv).ok()?;
            }
            let init = match seal {
                0 => sys::EVP_DecryptInit_ex,
                _ => sys::EVP_EncryptInit_ex,
            };
            check(init(
                cipher,
                sys::EVP_aes_256_cbc(),
                ptr::null_mut(),
                key.cipher.as_ptr(),
                iv,
            ))
            .ok()?;
            let digest = c"SHA256";
            let parameters = [
                OSSL_PARAM_construct_utf8_string(c"digest".as_ptr(), digest.as_ptr().cast_mut(), 0),
                sys::OSSL_PARAM_construct_end(),
            ];
            let length = key.mac.len();
            check(EVP_MAC_init(
                mac,
                key.mac.as_ptr(),
                length,
                parameters.as_ptr(),
            ))
            .ok()
        };
        // Unwinding must not reach C.
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Some(())) => USED,
            _ => NOT_USED,
        }
    }
    CALLBACK.get_or_init(|| callback);
    // SAFETY: the builder owns a valid context, and a function lives for ever.
    unsafe { SSL_CTX_set_tlsext_ticket_key_evp_cb(context.as_ptr(), raw) };
}

fn check(result: c_int) -> Result<(), ErrorStack> {
    match result {
        1 => Ok(()),
        _ => Err(ErrorStack::get()),
    }
}
