//! FN-DSA as OpenSSL calls it: key management, signatures, encoders and decoders.
//!
//! To OpenSSL a key is a pointer that came from [`hand_out`].

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use openssl::base64;
use openssl_sys::{self as sys, OSSL_PARAM};

use super::{
    Algorithm, Dispatch, END, INTEGER, OCTET_STRING, Table, Take, UTF8_STRING, number, parameter,
    string,
};
use crate::fn_dsa::{Degree, Key, PrivateKeyInfo, Structure, SubjectPublicKeyInfo};

/// `core_dispatch.h`.
const SELECT_PRIVATE_KEY: c_int = 1;
const SELECT_PUBLIC_KEY: c_int = 2;
/// `core_object.h`.
const OBJECT_PKEY: c_int = 2;

/// Where OpenSSL's functions to read and write a BIO are.
pub(super) static READ: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
pub(super) static WRITE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

type Read = unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut usize) -> c_int;
type Write = unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut usize) -> c_int;

unsafe extern "C" {
    fn OSSL_PARAM_set_int(parameter: *mut OSSL_PARAM, value: c_int) -> c_int;
    fn OSSL_PARAM_set_utf8_string(parameter: *mut OSSL_PARAM, value: *const c_char) -> c_int;
    fn OSSL_PARAM_set_octet_string(
        parameter: *mut OSSL_PARAM,
        value: *const c_void,
        length: usize,
    ) -> c_int;
}

const N512: Option<&CStr> = Some(c"FN-DSA-512:1.3.6.1.4.1.32473.2");
const N1024: Option<&CStr> = Some(c"FN-DSA-1024:1.3.6.1.4.1.32473.3");
const DER_PUBLIC: &CStr = c"provider=lastbyte,output=der,structure=SubjectPublicKeyInfo";
const PEM_PUBLIC: &CStr = c"provider=lastbyte,output=pem,structure=SubjectPublicKeyInfo";
const DER_PRIVATE: &CStr = c"provider=lastbyte,output=der,structure=PrivateKeyInfo";
const PEM_PRIVATE: &CStr = c"provider=lastbyte,output=pem,structure=PrivateKeyInfo";
const FROM_PUBLIC: &CStr = c"provider=lastbyte,input=der,structure=SubjectPublicKeyInfo";
const FROM_PRIVATE: &CStr = c"provider=lastbyte,input=der,structure=PrivateKeyInfo";

pub(super) static KEYMGMT: Table<[Algorithm; 2]> = Table([
    Algorithm::new(N512, super::OURS, keymgmt::<0>()),
    Algorithm::new(N1024, super::OURS, keymgmt::<1>()),
]);

pub(super) static SIGNATURE: Table<[Algorithm; 2]> = Table([
    Algorithm::new(N512, super::OURS, SIGNATURE_FUNCTIONS),
    Algorithm::new(N1024, super::OURS, SIGNATURE_FUNCTIONS),
]);

pub(super) static ENCODERS: Table<[Algorithm; 9]> = Table([
    Algorithm::new(N512, DER_PUBLIC, encoder::<SubjectPublicKeyInfo, Der>()),
    Algorithm::new(N512, PEM_PUBLIC, encoder::<SubjectPublicKeyInfo, Pem>()),
    Algorithm::new(N512, DER_PRIVATE, encoder::<PrivateKeyInfo, Der>()),
    Algorithm::new(N512, PEM_PRIVATE, encoder::<PrivateKeyInfo, Pem>()),
    Algorithm::new(N1024, DER_PUBLIC, encoder::<SubjectPublicKeyInfo, Der>()),
    Algorithm::new(N1024, PEM_PUBLIC, encoder::<SubjectPublicKeyInfo, Pem>()),
    Algorithm::new(N1024, DER_PRIVATE, encoder::<PrivateKeyInfo, Der>()),
    Algorithm::new(N1024, PEM_PRIVATE, encoder::<PrivateKeyInfo, Pem>()),
    Algorithm::END,
]);

pub(super) static DECODERS: Table<[Algorithm; 5]> = Table([
    Algorithm::new(N512, FROM_PUBLIC, decoder::<SubjectPublicKeyInfo, 0>()),
    Algorithm::new(N512, FROM_PRIVATE, decoder::<PrivateKeyInfo, 0>()),
    Algorithm::new(N1024, FROM_PUBLIC, decoder::<SubjectPublicKeyInfo, 1>()),
    Algorithm::new(N1024, FROM_PRIVATE, decoder::<PrivateKeyInfo, 1>()),
    Algorithm::END,
]);

/// `DEGREE` is an index of [`Degree::ALL`], and the numbers are those of `core_dispatch.h`, here
/// and below.
const fn keymgmt<const DEGREE: usize>() -> &'static [Dispatch] {
    const {
        &[
            Dispatch::new(2, gen_init::<DEGREE> as *const c_void),
            Dispatch::new(6, generate as *const c_void),
            Dispatch::new(7, ignore as *const c_void),
            Dispatch::new(8, load as *const c_void),
            Dispatch::new(10, free as *const c_void),
            Dispatch::new(11, get_params as *const c_void),
            Dispatch::new(12, gettable_params as *const c_void),
            Dispatch::new(21, has as *const c_void),
            Dispatch::new(23, match_keys as *const c_void),
            Dispatch::END,
        ]
    }
}

const SIGNATURE_FUNCTIONS: &[Dispatch] = &[
    Dispatch::new(1, new_context as *const c_void),
    Dispatch::new(8, digest_init as *const c_void),
    Dispatch::new(11, digest_sign as *const c_void),
    Dispatch::new(12, digest_init as *const c_void),
    Dispatch::new(15, digest_verify as *const c_void),
    Dispatch::new(16, free_context as *const c_void),
    Dispatch::new(18, get_context_params as *const c_void),
    Dispatch::new(19, gettable_context_params as *const c_void),
    Dispatch::END,
];

const fn encoder<S: Selected, F: Form>() -> &'static [Dispatch] {
    const {
        &[
            Dispatch::new(1, no_context as *const c_void),
            Dispatch::new(2, ignore as *const c_void),
            Dispatch::new(10, does_selection::<S> as *const c_void),
            Dispatch::new(11, encode::<S, F> as *const c_void),
            Dispatch::END,
        ]
    }
}

const fn decoder<S: Selected, const DEGREE: usize>() -> &'static [Dispatch] {
    const {
        &[
            Dispatch::new(1, no_context as *const c_void),
            Dispatch::new(2, ignore as *const c_void),
            Dispatch::new(10, does_selection::<S> as *const c_void),
            Dispatch::new(11, decode::<S, DEGREE> as *const c_void),
            Dispatch::END,
        ]
    }
}

/// Gives OpenSSL a key, which it gives back to [`free`].
fn hand_out(key: Key) -> *const Key {
    Arc::into_raw(Arc::new(key))
}

/// OSSL_FUNC_keymgmt_gen_init: all that there is to know is the degree.
unsafe extern "C" fn gen_init<const DEGREE: usize>(
    _: *mut c_void,
    _: c_int,
    _: *const OSSL_PARAM,
) -> *const Degree {
    const { &Degree::ALL[DEGREE] }
}

/// OSSL_FUNC_keymgmt_gen.
unsafe extern "C" fn generate(degree: *const Degree, _: *mut c_void, _: *mut c_void) -> *const Key {
    // SAFETY: it came from `gen_init`, and is static.
    let degree = unsafe { *degree };
    Key::generate(degree).map_or(ptr::null(), hand_out)
}

/// What needs no cleaning up.
unsafe extern "C" fn ignore(_: *mut c_void) {}

/// OSSL_FUNC_keymgmt_load: takes over the key that a decoder made.
unsafe extern "C" fn load(reference: *mut *const Key, size: usize) -> *const Key {
    if size != size_of::<*const Key>() {
        return ptr::null();
    }
    // SAFETY: the reference is that of `decode`, which gives away a key that is taken out of it.
    unsafe { mem::replace(&mut *reference, ptr::null()) }
}

/// OSSL_FUNC_keymgmt_free.
unsafe extern "C" fn free(key: *const Key) {
    if !key.is_null() {
        // SAFETY: it came from `hand_out`, and OpenSSL frees it once.
        drop(unsafe { Arc::from_raw(key) });
    }
}

/// OSSL_FUNC_keymgmt_get_params.
unsafe extern "C" fn get_params(key: *const Key, params: *mut OSSL_PARAM) -> c_int {
    // SAFETY: the key is one of ours and in use, and the list ends as lists of parameters do.
    unsafe {
        let degree = (*key).degree();
        let set = |name: &CStr, value: usize| {
            let parameter = sys::OSSL_PARAM_locate(params, name.as_ptr());
            let value = c_int::try_from(value).unwrap_or(c_int::MAX);
            parameter.is_null() || OSSL_PARAM_set_int(parameter, value) == 1
        };
        let digest = sys::OSSL_PARAM_locate(params, MANDATORY_DIGEST.as_ptr());
        c_int::from(
            set(BITS, degree.public_key_bytes() * 8)
                && set(SECURITY_BITS, degree.algorithm().security_bits.into())
                && set(MAX_SIZE, degree.signature_bytes())
                && (digest.is_null() || OSSL_PARAM_set_utf8_string(digest, c"".as_ptr()) == 1),
        )
    }
}

const BITS: &CStr = c"bits";
const SECURITY_BITS: &CStr = c"security-bits";
const MAX_SIZE: &CStr = c"max-size";
/// There is none: the message itself is signed.
const MANDATORY_DIGEST: &CStr = c"mandatory-digest";
const ALGORITHM_ID: &CStr = c"algorithm-id";

const fn described(name: &'static CStr, kind: c_uint) -> OSSL_PARAM {
    parameter(Some(name), kind, ptr::null_mut(), 0)
}

unsafe extern "C" fn gettable_params(_: *mut c_void) -> *const OSSL_PARAM {
    static PARAMS: Table<[OSSL_PARAM; 5]> = Table([
        described(BITS, INTEGER),
        described(SECURITY_BITS, INTEGER),
        described(MAX_SIZE, INTEGER),
        described(MANDATORY_DIGEST, UTF8_STRING),
        END,
    ]);
    PARAMS.0.as_ptr()
}

/// OSSL_FUNC_keymgmt_has.
unsafe extern "C" fn has(key: *const Key, selection: c_int) -> c_int {
    // SAFETY: it is null or one of ours and in use.
    let key = unsafe { key.as_ref() };
    c_int::from(key.is_some_and(|key| selection & SELECT_PRIVATE_KEY == 0 || key.has_private()))
}

/// OSSL_FUNC_keymgmt_match. A private key belongs to one public key.
unsafe extern "C" fn match_keys(one: *const Key, other: *const Key, _: c_int) -> c_int {
    // SAFETY: both are ours and in use.
    c_int::from(unsafe { (*one).matches(&*other) })
}

/// Of one signature: its key, once it is known.
type Context = Option<Arc<Key>>;

/// OSSL_FUNC_signature_newctx.
unsafe extern "C" fn new_context(_: *mut c_void, _: *const c_char) -> *mut Context {
    Box::into_raw(Box::default())
}

/// OSSL_FUNC_signature_freectx.
unsafe extern "C" fn free_context(context: *mut Context) {
    if !context.is_null() {
        // SAFETY: it came from `new_context`, and OpenSSL frees it once.
        drop(unsafe { Box::from_raw(context) });
    }
}

/// OSSL_FUNC_signature_digest_sign_init and OSSL_FUNC_signature_digest_verify_init. Without a key it
/// is that of last time.
unsafe extern "C" fn digest_init(
    context: *mut Context,
    digest: *const c_char,
    key: *const Key,
    _: *const OSSL_PARAM,
) -> c_int {
    // SAFETY: the context is ours, the digest null or a string, and the key null or ours and in use.
    unsafe {
        if !digest.is_null() && *digest != 0 {
            return 0;
        }
        if !key.is_null() {
            Arc::increment_strong_count(key);
            *context = Some(Arc::from_raw(key));
        }
        c_int::from((*context).is_some())
    }
}

/// OSSL_FUNC_signature_digest_sign. Without a place for the signature it tells the length.
unsafe extern "C" fn digest_sign(
    context: *mut Context,
    signature: *mut u8,
    length: *mut usize,
    size: usize,
    message: *const u8,
    message_length: usize,
) -> c_int {
    // SAFETY: the context is ours, the length can be written to, the signature is null or has
    // `size` bytes, and the message has its length.
    unsafe {
        let Some(key) = &*context else { return 0 };
        let bytes = key.degree().signature_bytes();
        *length = bytes;
        if signature.is_null() {
            return 1;
        }
        if size < bytes {
            return 0;
        }
        let signature = slice::from_raw_parts_mut(signature, bytes);
        c_int::from(
            key.sign(borrow(message, message_length), signature)
                .is_some(),
        )
    }
}

/// OSSL_FUNC_signature_digest_verify.
unsafe extern "C" fn digest_verify(
    context: *mut Context,
    signature: *const u8,
    length: usize,
    message: *const u8,
    message_length: usize,
) -> c_int {
    // SAFETY: the context is ours, and signature and message have their lengths.
    unsafe {
        let Some(key) = &*context else { return 0 };
        let (message, signature) = (borrow(message, message_length), borrow(signature, length));
        c_int::from(key.verify(message, signature))
    }
}

/// Bytes of OpenSSL's, which may be none at no address.
unsafe fn borrow<'a>(bytes: *const u8, length: usize) -> &'a [u8] {
    if bytes.is_null() {
        &[]
    } else {
        // SAFETY: whoever calls promises so many bytes for as long as it uses them.
        unsafe { slice::from_raw_parts(bytes, length) }
    }
}

/// OSSL_FUNC_signature_get_ctx_params: how X.509 names the signature.
unsafe extern "C" fn get_context_params(context: *mut Context, params: *mut OSSL_PARAM) -> c_int {
    // SAFETY: the context is ours, and the list ends as lists of parameters do.
    unsafe {
        let Some(key) = &*context else { return 0 };
        let parameter = sys::OSSL_PARAM_locate(params, ALGORITHM_ID.as_ptr());
        if parameter.is_null() {
            return 1;
        }
        let identifier = key.degree().identifier();
        OSSL_PARAM_set_octet_string(parameter, identifier.as_ptr().cast(), identifier.len())
    }
}

unsafe extern "C" fn gettable_context_params(_: *mut c_void, _: *mut c_void) -> *const OSSL_PARAM {
    static PARAMS: Table<[OSSL_PARAM; 2]> = Table([described(ALGORITHM_ID, OCTET_STRING), END]);
    PARAMS.0.as_ptr()
}

/// OSSL_FUNC_encoder_newctx and OSSL_FUNC_decoder_newctx: anything but null.
unsafe extern "C" fn no_context(_: *mut c_void) -> *const Degree {
    const { &Degree::ALL[0] }
}

/// What of a key a structure holds.
trait Selected: Structure {
    const SELECTION: c_int;
}

impl Selected for SubjectPublicKeyInfo {
    const SELECTION: c_int = SELECT_PUBLIC_KEY;
}

impl Selected for PrivateKeyInfo {
    const SELECTION: c_int = SELECT_PRIVATE_KEY;
}

/// OSSL_FUNC_encoder_does_selection and OSSL_FUNC_decoder_does_selection. Whoever wants a private
/// key wants no less; nothing selected means that it is to be guessed.
unsafe extern "C" fn does_selection<S: Selected>(_: *mut c_void, selection: c_int) -> c_int {
    let most = match selection & SELECT_PRIVATE_KEY {
        0 => selection & SELECT_PUBLIC_KEY,
        private => private,
    };
    c_int::from(selection == 0 || most == S::SELECTION)
}

/// How a structure is written.
trait Form {
    fn write(label: &str, der: Vec<u8>) -> Vec<u8>;
}

struct Der;
struct Pem;

impl Form for Der {
    fn write(_: &str, der: Vec<u8>) -> Vec<u8> {
        der
    }
}

impl Form for Pem {
    /// RFC 7468, section 2: lines of 64 characters, which are 48 bytes.
    fn write(label: &str, der: Vec<u8>) -> Vec<u8> {
        let mut text = format!("-----BEGIN {label}-----\n");
        for line in der.chunks(48) {
            text.push_str(&base64::encode_block(line));
            text.push('\n');
        }
        text.push_str(&format!("-----END {label}-----\n"));
        text.into_bytes()
    }
}

/// OSSL_FUNC_encoder_encode.
unsafe extern "C" fn encode<S: Selected, F: Form>(
    _: *mut c_void,
    out: *mut c_void,
    key: *const Key,
    parts: *const OSSL_PARAM,
    _: c_int,
    _: *const c_void,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the key is null or ours and in use.
    let Some(key) = (unsafe { key.as_ref() }) else {
        return 0;
    };
    let Some(der) = S::to_der(key).filter(|_| parts.is_null()) else {
        return 0;
    };
    let bytes = F::write(S::LABEL, der);
    let function = WRITE.load(Ordering::Acquire);
    if function.is_null() {
        return 0;
    }
    let mut written = 0;
    // SAFETY: OpenSSL gave the function as one of this type, and the BIO to write to.
    unsafe {
        let write: Write = mem::transmute(function);
        write(out, bytes.as_ptr(), bytes.len(), &mut written)
    }
}

/// OSSL_FUNC_decoder_decode. What is no such key is left to other decoders, without an error.
unsafe extern "C" fn decode<S: Selected, const DEGREE: usize>(
    _: *mut c_void,
    input: *mut c_void,
    _: c_int,
    take: Take,
    argument: *mut c_void,
    _: *const c_void,
    _: *mut c_void,
) -> c_int {
    let degree = Degree::ALL[DEGREE];
    // SAFETY: OpenSSL gives a BIO to read from.
    let der = unsafe { read(input, S::MOST_BYTES) };
    let Some(key) = S::from_der(degree, &der) else {
        return 1;
    };
    let mut key = hand_out(key);
    let mut kind = OBJECT_PKEY;
    let params = [
        number(c"type", INTEGER, &mut kind),
        string(c"data-type", degree.algorithm().algorithm),
        number(c"reference", OCTET_STRING, &mut key),
        END,
    ];
    // SAFETY: the parameters end with one without a key, and `load` takes the key out of its
    // place or leaves it there.
    unsafe {
        let taken = take(params.as_ptr(), argument);
        free(ptr::read_volatile(&key));
        taken
    }
}

/// Reads all of a BIO, or nothing if that is more than `most` bytes.
unsafe fn read(input: *mut c_void, most: usize) -> Vec<u8> {
    let function = READ.load(Ordering::Acquire);
    if function.is_null() {
        return Vec::new();
    }
    let mut bytes = vec![0; most + 1];
    let mut length = 0;
    // SAFETY: OpenSSL gave the function as one of this type. It writes no more than there is room.
    unsafe {
        let read: Read = mem::transmute(function);
        while let Some(room) = bytes.get_mut(length..).filter(|room| !room.is_empty()) {
            let mut more = 0;
            if read(input, room.as_mut_ptr(), room.len(), &mut more) != 1 || more == 0 {
                bytes.truncate(length);
                return bytes;
            }
            length += more;
        }
    }
    Vec::new()
}
