//! The providers, and the calls that the safe bindings lack.
//!
//! SLH-DSA is the default provider's: libssl takes a signature algorithm for TLS only from the provider that has its
//! keys. FN-DSA has a provider of its own, so that whoever does not ask for it does not read its keys either.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::{PKey, PKeyRef, Private};
use openssl_sys::{self as sys, OSSL_PARAM};

use crate::{FN_DSA, OFFERED, SLH_DSA, TlsSignature};

mod fn_dsa;

/// `core_dispatch.h`.
const PROVIDER_TEARDOWN: c_int = 1024;
const PROVIDER_QUERY_OPERATION: c_int = 1027;
const PROVIDER_GET_CAPABILITIES: c_int = 1030;
const CORE_BIO_READ: c_int = 42;
const CORE_BIO_WRITE: c_int = 43;
const OPERATION_KEYMGMT: c_int = 10;
const OPERATION_SIGNATURE: c_int = 12;
const OPERATION_ENCODER: c_int = 20;
const OPERATION_DECODER: c_int = 21;
/// `core.h`.
const INTEGER: c_uint = 1;
const UNSIGNED_INTEGER: c_uint = 2;
const UTF8_STRING: c_uint = 4;
const OCTET_STRING: c_uint = 5;
const UNMODIFIED: usize = usize::MAX;

const TLS_1_3: c_int = 0x0304;
const NEVER: c_int = -1;
const NO_LIMIT: c_int = 0;

/// OSSL_DISPATCH.
#[repr(C)]
struct Dispatch {
    id: c_int,
    function: *const c_void,
}

impl Dispatch {
    const END: Dispatch = Dispatch::new(0, ptr::null());

    const fn new(id: c_int, function: *const c_void) -> Dispatch {
        Dispatch { id, function }
    }
}

/// OSSL_ALGORITHM.
#[repr(C)]
#[derive(Clone, Copy)]
struct Algorithm {
    names: *const c_char,
    properties: *const c_char,
    functions: *const Dispatch,
    description: *const c_char,
}

impl Algorithm {
    const END: Algorithm = Algorithm::new(None, c"", &[]);

    const fn new(
        names: Option<&'static CStr>,
        properties: &'static CStr,
        functions: &'static [Dispatch],
    ) -> Algorithm {
        Algorithm {
            names: match names {
                Some(names) => names.as_ptr(),
                None => ptr::null(),
            },
            properties: properties.as_ptr(),
            functions: functions.as_ptr(),
            description: ptr::null(),
        }
    }
}

/// OSSL_CALLBACK.
type Take = unsafe extern "C" fn(*const OSSL_PARAM, *mut c_void) -> c_int;
type Initialize = unsafe extern "C" fn(
    *const c_void,
    *const Dispatch,
    *mut *const Dispatch,
    *mut *mut c_void,
) -> c_int;

unsafe extern "C" {
    fn OSSL_PROVIDER_add_builtin(
        context: *mut sys::OSSL_LIB_CTX,
        name: *const c_char,
        initialize: Initialize,
    ) -> c_int;
    fn OSSL_PROVIDER_query_operation(
        provider: *const sys::OSSL_PROVIDER,
        operation: c_int,
        no_cache: *mut c_int,
    ) -> *const Algorithm;
    fn OSSL_PROVIDER_get0_provider_ctx(provider: *const sys::OSSL_PROVIDER) -> *mut c_void;
    fn EVP_set_default_properties(
        context: *mut sys::OSSL_LIB_CTX,
        properties: *const c_char,
    ) -> c_int;
    fn OBJ_add_sigid(signature: c_int, digest: c_int, key: c_int) -> c_int;
}

/// A table that never changes and that OpenSSL only reads.
struct Table<T>(T);
// SAFETY: its pointers are to static data and to functions, and nobody writes through them.
unsafe impl<T> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Table<T> {}

const NAME: &CStr = c"lastbyte";
const NAME_OF_FN_DSA: &CStr = c"lastbyte-fn-dsa";
const OURS: &CStr = c"provider=lastbyte";
/// Ours where it has an algorithm, else any.
const PREFERENCE: &CStr = c"?provider=lastbyte";

/// The provider that SLH-DSA is of.
static DEFAULT: AtomicPtr<sys::OSSL_PROVIDER> = AtomicPtr::new(ptr::null_mut());

/// Has OpenSSL know SLH-DSA for TLS.
pub(crate) fn install_slh_dsa() -> Result<(), ErrorStack> {
    openssl::init();
    // SAFETY: the default library context is there since `init`, and the strings end with a zero.
    let is_ready = unsafe {
        let default = sys::OSSL_PROVIDER_load(ptr::null_mut(), c"default".as_ptr());
        DEFAULT.store(default, Ordering::Release);
        !default.is_null()
    };
    if !is_ready {
        return Err(ErrorStack::get());
    }
    load(NAME, initialize_slh_dsa)?;
    // SAFETY: as above.
    match unsafe { EVP_set_default_properties(ptr::null_mut(), PREFERENCE.as_ptr()) } {
        1 => Ok(()),
        _ => Err(ErrorStack::get()),
    }
}

/// Has OpenSSL know FN-DSA, which it does not by itself, once it knows SLH-DSA for TLS.
pub(crate) fn install_fn_dsa() -> Result<(), ErrorStack> {
    for fn_dsa in &FN_DSA {
        let (oid, name) = (text(fn_dsa.oid), text(fn_dsa.algorithm));
        let nid = Nid::create(oid, name, name)?.as_raw();
        // SAFETY: they are numbers. A signature with the key itself, of the message itself.
        if unsafe { OBJ_add_sigid(nid, Nid::UNDEF.as_raw(), nid) } != 1 {
            return Err(ErrorStack::get());
        }
    }
    load(NAME_OF_FN_DSA, initialize_fn_dsa)
}

fn load(name: &'static CStr, initialize: Initialize) -> Result<(), ErrorStack> {
    // SAFETY: the default library context is there, the name ends with a zero, and `initialize` has the type of
    // OSSL_provider_init_fn.
    let done = unsafe {
        OSSL_PROVIDER_add_builtin(ptr::null_mut(), name.as_ptr(), initialize) == 1
            && !sys::OSSL_PROVIDER_load(ptr::null_mut(), name.as_ptr()).is_null()
    };
    if done { Ok(()) } else { Err(ErrorStack::get()) }
}

fn text(ascii: &'static CStr) -> &'static str {
    ascii.to_str().unwrap_or_default()
}

pub(crate) fn generate(algorithm: &CStr) -> Result<PKey<Private>, ErrorStack> {
    // SAFETY: the name ends with a zero. Whoever makes an object here also frees it, but for the
    // key, which `PKey` takes over.
    unsafe {
        let context =
            sys::EVP_PKEY_CTX_new_from_name(ptr::null_mut(), algorithm.as_ptr(), ptr::null());
        if context.is_null() {
            return Err(ErrorStack::get());
        }
        let mut key = ptr::null_mut();
        let made =
            sys::EVP_PKEY_keygen_init(context) == 1 && sys::EVP_PKEY_keygen(context, &mut key) == 1;
        sys::EVP_PKEY_CTX_free(context);
        if made {
            Ok(PKey::from_ptr(key))
        } else {
            Err(ErrorStack::get())
        }
    }
}

pub(crate) fn is_a<T>(key: &PKeyRef<T>, algorithm: &CStr) -> bool {
    // SAFETY: the key is valid as long as it is borrowed, and the name ends with a zero.
    unsafe { sys::EVP_PKEY_is_a(key.as_ptr(), algorithm.as_ptr()) == 1 }
}

/// OSSL_provider_init_fn.
unsafe extern "C" fn initialize_slh_dsa(
    _: *const c_void,
    _: *const Dispatch,
    functions: *mut *const Dispatch,
    context: *mut *mut c_void,
) -> c_int {
    static FUNCTIONS: Table<[Dispatch; 4]> = Table([
        Dispatch::new(PROVIDER_TEARDOWN, teardown as *const c_void),
        Dispatch::new(PROVIDER_QUERY_OPERATION, query_slh_dsa as *const c_void),
        Dispatch::new(PROVIDER_GET_CAPABILITIES, offer_slh_dsa as *const c_void),
        Dispatch::END,
    ]);
    // SAFETY: OpenSSL gives two places to write to. The functions of the default provider expect its context, and that
    // provider is never unloaded.
    unsafe {
        *functions = FUNCTIONS.0.as_ptr();
        *context = OSSL_PROVIDER_get0_provider_ctx(DEFAULT.load(Ordering::Acquire));
    }
    1
}

/// OSSL_provider_init_fn.
unsafe extern "C" fn initialize_fn_dsa(
    _: *const c_void,
    offered: *const Dispatch,
    functions: *mut *const Dispatch,
    context: *mut *mut c_void,
) -> c_int {
    static FUNCTIONS: Table<[Dispatch; 4]> = Table([
        Dispatch::new(PROVIDER_TEARDOWN, teardown as *const c_void),
        Dispatch::new(PROVIDER_QUERY_OPERATION, query_fn_dsa as *const c_void),
        Dispatch::new(PROVIDER_GET_CAPABILITIES, offer_fn_dsa as *const c_void),
        Dispatch::END,
    ]);
    // SAFETY: OpenSSL offers functions in a table that ends with 0, and two places to write to. Our functions expect no
    // context.
    unsafe {
        let mut entry = offered;
        while (*entry).id != 0 {
            match (*entry).id {
                CORE_BIO_READ => {
                    fn_dsa::READ.store((*entry).function.cast_mut(), Ordering::Release)
                }
                CORE_BIO_WRITE => {
                    fn_dsa::WRITE.store((*entry).function.cast_mut(), Ordering::Release);
                }
                _ => {}
            }
            entry = entry.add(1);
        }
        *functions = FUNCTIONS.0.as_ptr();
        *context = OSSL_PROVIDER_get0_provider_ctx(DEFAULT.load(Ordering::Acquire));
    }
    1
}

unsafe extern "C" fn teardown(_: *mut c_void) {}

/// OSSL_FUNC_provider_query_operation.
unsafe extern "C" fn query_slh_dsa(
    _: *mut c_void,
    operation: c_int,
    no_cache: *mut c_int,
) -> *const Algorithm {
    static KEYMGMT: OnceLock<Table<Vec<Algorithm>>> = OnceLock::new();
    static SIGNATURE: OnceLock<Table<Vec<Algorithm>>> = OnceLock::new();
    // SAFETY: OpenSSL gives a place to write to.
    unsafe { *no_cache = 0 };
    let table = match operation {
        OPERATION_KEYMGMT => &KEYMGMT,
        OPERATION_SIGNATURE => &SIGNATURE,
        _ => return ptr::null(),
    };
    let table = table.get_or_init(|| ended(&borrowed(operation)));
    table.0.as_ptr()
}

/// OSSL_FUNC_provider_query_operation.
unsafe extern "C" fn query_fn_dsa(
    _: *mut c_void,
    operation: c_int,
    no_cache: *mut c_int,
) -> *const Algorithm {
    static KEYMGMT: OnceLock<Table<Vec<Algorithm>>> = OnceLock::new();
    static SIGNATURE: OnceLock<Table<Vec<Algorithm>>> = OnceLock::new();
    // SAFETY: OpenSSL gives a place to write to.
    unsafe { *no_cache = 0 };
    match operation {
        OPERATION_KEYMGMT => KEYMGMT.get_or_init(|| ended(&fn_dsa::KEYMGMT.0)).0.as_ptr(),
        OPERATION_SIGNATURE => SIGNATURE
            .get_or_init(|| ended(&fn_dsa::SIGNATURE.0))
            .0
            .as_ptr(),
        OPERATION_ENCODER => fn_dsa::ENCODERS.0.as_ptr(),
        OPERATION_DECODER => fn_dsa::DECODERS.0.as_ptr(),
        _ => ptr::null(),
    }
}

fn ended(algorithms: &[Algorithm]) -> Table<Vec<Algorithm>> {
    Table([algorithms, &[Algorithm::END]].concat())
}

/// Those of the default provider's algorithms that are ours too.
fn borrowed(operation: c_int) -> Vec<Algorithm> {
    let mut table = Vec::new();
    let mut no_cache = 0;
    // SAFETY: the default provider is loaded, and its table ends with an entry without names.
    unsafe {
        let default = DEFAULT.load(Ordering::Acquire);
        let mut entry = OSSL_PROVIDER_query_operation(default, operation, &mut no_cache);
        while !entry.is_null() && !(*entry).names.is_null() {
            if is_slh_dsa(CStr::from_ptr((*entry).names)) {
                table.push(Algorithm {
                    properties: OURS.as_ptr(),
                    ..*entry
                });
            }
            entry = entry.add(1);
        }
    }
    table
}

/// `names` are separated by colons.
fn is_slh_dsa(names: &CStr) -> bool {
    names
        .to_bytes()
        .split(|byte| *byte == b':')
        .any(|name| SLH_DSA.iter().any(|ours| ours.algorithm.to_bytes() == name))
}

/// OSSL_FUNC_provider_get_capabilities.
unsafe extern "C" fn offer_slh_dsa(
    _: *mut c_void,
    capability: *const c_char,
    take: Take,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: they are OpenSSL's.
    unsafe { offer_own(&SLH_DSA, capability, take, argument) }
}

/// OSSL_FUNC_provider_get_capabilities.
unsafe extern "C" fn offer_fn_dsa(
    _: *mut c_void,
    capability: *const c_char,
    take: Take,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: they are OpenSSL's.
    unsafe { offer_own(&FN_DSA, capability, take, argument) }
}

/// Those of `own` that are wanted.
unsafe fn offer_own(
    own: &[TlsSignature],
    capability: *const c_char,
    take: Take,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: OpenSSL gives a string.
    if unsafe { CStr::from_ptr(capability) } != c"TLS-SIGALG" {
        return 1;
    }
    let offered = OFFERED.with_borrow(Vec::clone);
    // SAFETY: `take` is OpenSSL's, and wants the argument that came with it.
    let mut taken = offered
        .iter()
        .filter(|signature| own.contains(signature))
        .map(|signature| unsafe { offer(signature, take, argument) });
    let taken = taken.all(|taken| taken == 1);
    c_int::from(taken)
}

unsafe fn offer(signature: &TlsSignature, take: Take, argument: *mut c_void) -> c_int {
    let mut code_point = c_uint::from(signature.code_point);
    let mut security_bits = c_uint::from(signature.security_bits);
    let (mut min_tls, mut max_tls) = (TLS_1_3, NO_LIMIT);
    let (mut min_dtls, mut max_dtls) = (NEVER, NEVER);
    let params = [
        string(c"tls-sigalg-iana-name", signature.scheme),
        string(c"tls-sigalg-name", signature.algorithm),
        string(c"tls-sigalg-oid", signature.oid),
        number(c"tls-sigalg-code-point", UNSIGNED_INTEGER, &mut code_point),
        number(c"tls-sigalg-sec-bits", UNSIGNED_INTEGER, &mut security_bits),
        number(c"tls-min-tls", INTEGER, &mut min_tls),
        number(c"tls-max-tls", INTEGER, &mut max_tls),
        number(c"tls-min-dtls", INTEGER, &mut min_dtls),
        number(c"tls-max-dtls", INTEGER, &mut max_dtls),
        END,
    ];
    // SAFETY: the parameters end with one without a key, and `take` only reads them.
    unsafe { take(params.as_ptr(), argument) }
}

/// What ends a list of parameters.
const END: OSSL_PARAM = parameter(None, 0, ptr::null_mut(), 0);

fn string(key: &'static CStr, value: &'static CStr) -> OSSL_PARAM {
    let data = value.as_ptr().cast_mut().cast();
    parameter(Some(key), UTF8_STRING, data, value.count_bytes())
}

fn number<T>(key: &'static CStr, kind: c_uint, number: &mut T) -> OSSL_PARAM {
    let data = ptr::from_mut(number).cast();
    parameter(Some(key), kind, data, size_of::<T>())
}

const fn parameter(
    key: Option<&'static CStr>,
    kind: c_uint,
    data: *mut c_void,
    size: usize,
) -> OSSL_PARAM {
    OSSL_PARAM {
        key: match key {
            Some(key) => key.as_ptr(),
            None => ptr::null(),
        },
        data_type: kind,
        data,
        data_size: size,
        return_size: UNMODIFIED,
    }
}
