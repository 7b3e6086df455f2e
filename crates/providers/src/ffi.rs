//! The provider, and the calls that the safe bindings lack.
//!
//! It has no algorithm of its own: its keys and signatures are the default provider's. But libssl
//! takes a signature algorithm for TLS only from the provider that has its keys.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use foreign_types::ForeignTypeRef;
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, PKeyRef, Private};
use openssl_sys as sys;

use crate::{SLH_DSA, TlsSignature};

/// `core_dispatch.h`.
const PROVIDER_TEARDOWN: c_int = 1024;
const PROVIDER_QUERY_OPERATION: c_int = 1027;
const PROVIDER_GET_CAPABILITIES: c_int = 1030;
const OPERATION_KEYMGMT: c_int = 10;
const OPERATION_SIGNATURE: c_int = 12;
/// `core.h`.
const INTEGER: c_uint = 1;
const UNSIGNED_INTEGER: c_uint = 2;
const UTF8_STRING: c_uint = 4;
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

/// OSSL_ALGORITHM.
#[repr(C)]
#[derive(Clone, Copy)]
struct Algorithm {
    names: *const c_char,
    properties: *const c_char,
    functions: *const Dispatch,
    description: *const c_char,
}

/// OSSL_PARAM.
#[repr(C)]
struct Param {
    key: *const c_char,
    kind: c_uint,
    data: *mut c_void,
    size: usize,
    returned: usize,
}

type Handle = c_void;
type Take = unsafe extern "C" fn(*const Param, *mut c_void) -> c_int;
type Init = unsafe extern "C" fn(
    *const Handle,
    *const Dispatch,
    *mut *const Dispatch,
    *mut *mut c_void,
) -> c_int;

unsafe extern "C" {
    fn OSSL_PROVIDER_add_builtin(
        context: *mut sys::OSSL_LIB_CTX,
        name: *const c_char,
        init: Init,
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
}

/// A table that never changes and that OpenSSL only reads.
struct Table<T>(Box<[T]>);
// SAFETY: its pointers are to static data and to functions, and nobody writes through them.
unsafe impl<T> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Table<T> {}

const NAME: &CStr = c"lastbyte";
const OURS: &CStr = c"provider=lastbyte";
/// Ours where it has an algorithm, else any.
const PREFERENCE: &CStr = c"?provider=lastbyte";

/// The provider whose algorithms these are.
static DEFAULT: AtomicPtr<sys::OSSL_PROVIDER> = AtomicPtr::new(ptr::null_mut());

pub(crate) fn install() -> Result<(), ErrorStack> {
    openssl::init();
    // SAFETY: the default library context is there since `init`, all strings end with a zero, and
    // `initialize` has the type of OSSL_provider_init_fn.
    let done = unsafe {
        let default = sys::OSSL_PROVIDER_load(ptr::null_mut(), c"default".as_ptr());
        DEFAULT.store(default, Ordering::Release);
        !default.is_null()
            && OSSL_PROVIDER_add_builtin(ptr::null_mut(), NAME.as_ptr(), initialize) == 1
            && !sys::OSSL_PROVIDER_load(ptr::null_mut(), NAME.as_ptr()).is_null()
            && EVP_set_default_properties(ptr::null_mut(), PREFERENCE.as_ptr()) == 1
    };
    match done {
        true => Ok(()),
        false => Err(ErrorStack::get()),
    }
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
        match made {
            true => Ok(foreign_types::ForeignType::from_ptr(key)),
            false => Err(ErrorStack::get()),
        }
    }
}

pub(crate) fn is_a<T>(key: &PKeyRef<T>, algorithm: &CStr) -> bool {
    // SAFETY: the key is valid as long as it is borrowed, and the name ends with a zero.
    unsafe { sys::EVP_PKEY_is_a(key.as_ptr(), algorithm.as_ptr()) == 1 }
}

/// OSSL_provider_init_fn.
unsafe extern "C" fn initialize(
    _: *const Handle,
    _: *const Dispatch,
    functions: *mut *const Dispatch,
    context: *mut *mut c_void,
) -> c_int {
    static FUNCTIONS: OnceLock<Table<Dispatch>> = OnceLock::new();
    let table = FUNCTIONS.get_or_init(|| {
        let entry = |id, function| Dispatch { id, function };
        Table(Box::new([
            entry(PROVIDER_TEARDOWN, teardown as *const c_void),
            entry(PROVIDER_QUERY_OPERATION, query_operation as *const c_void),
            entry(PROVIDER_GET_CAPABILITIES, get_capabilities as *const c_void),
            entry(0, ptr::null()),
        ]))
    });
    // SAFETY: OpenSSL gives two places to write to. The functions of the default provider expect
    // its context, and that provider is never unloaded.
    unsafe {
        *functions = table.0.as_ptr();
        *context = OSSL_PROVIDER_get0_provider_ctx(DEFAULT.load(Ordering::Acquire));
    }
    1
}

unsafe extern "C" fn teardown(_: *mut c_void) {}

/// OSSL_FUNC_provider_query_operation.
unsafe extern "C" fn query_operation(
    _: *mut c_void,
    operation: c_int,
    no_cache: *mut c_int,
) -> *const Algorithm {
    static KEYMGMT: OnceLock<Table<Algorithm>> = OnceLock::new();
    static SIGNATURE: OnceLock<Table<Algorithm>> = OnceLock::new();
    // SAFETY: OpenSSL gives a place to write to.
    unsafe { *no_cache = 0 };
    let table = match operation {
        OPERATION_KEYMGMT => &KEYMGMT,
        OPERATION_SIGNATURE => &SIGNATURE,
        _ => return ptr::null(),
    };
    table.get_or_init(|| borrowed(operation)).0.as_ptr()
}

/// Those of the default provider's algorithms that are ours too, and the table's end.
fn borrowed(operation: c_int) -> Table<Algorithm> {
    let mut table = Vec::new();
    let mut no_cache = 0;
    // SAFETY: the default provider is loaded, and its table ends with an entry without names.
    unsafe {
        let default = DEFAULT.load(Ordering::Acquire);
        let mut entry = OSSL_PROVIDER_query_operation(default, operation, &mut no_cache);
        while !entry.is_null() && !(*entry).names.is_null() {
            if is_ours(CStr::from_ptr((*entry).names)) {
                table.push(Algorithm {
                    properties: OURS.as_ptr(),
                    ..*entry
                });
            }
            entry = entry.add(1);
        }
    }
    table.push(Algorithm {
        names: ptr::null(),
        properties: ptr::null(),
        functions: ptr::null(),
        description: ptr::null(),
    });
    Table(table.into_boxed_slice())
}

/// `names` are separated by colons.
fn is_ours(names: &CStr) -> bool {
    names
        .to_bytes()
        .split(|byte| *byte == b':')
        .any(|name| SLH_DSA.iter().any(|ours| ours.algorithm.to_bytes() == name))
}

/// OSSL_FUNC_provider_get_capabilities.
unsafe extern "C" fn get_capabilities(
    _: *mut c_void,
    capability: *const c_char,
    take: Take,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: OpenSSL gives a string.
    if unsafe { CStr::from_ptr(capability) } != c"TLS-SIGALG" {
        return 1;
    }
    let all = SLH_DSA.iter();
    // SAFETY: `take` is OpenSSL's, and wants the argument that came with it.
    let taken = all.map(|signature| unsafe { offer(signature, take, argument) });
    c_int::from(taken.into_iter().all(|taken| taken == 1))
}

unsafe fn offer(signature: &TlsSignature, take: Take, argument: *mut c_void) -> c_int {
    fn text(key: &'static CStr, text: &'static CStr) -> Param {
        Param {
            key: key.as_ptr(),
            kind: UTF8_STRING,
            data: text.as_ptr().cast_mut().cast(),
            size: text.count_bytes(),
            returned: UNMODIFIED,
        }
    }
    fn number<T>(key: &'static CStr, kind: c_uint, number: &mut T) -> Param {
        Param {
            key: key.as_ptr(),
            kind,
            data: ptr::from_mut(number).cast(),
            size: size_of::<T>(),
            returned: UNMODIFIED,
        }
    }
    let mut code_point = c_uint::from(signature.code_point);
    let mut security_bits = c_uint::from(signature.security_bits);
    let (mut min_tls, mut max_tls) = (TLS_1_3, NO_LIMIT);
    let (mut min_dtls, mut max_dtls) = (NEVER, NEVER);
    let params = [
        text(c"tls-sigalg-iana-name", signature.scheme),
        text(c"tls-sigalg-name", signature.algorithm),
        text(c"tls-sigalg-oid", signature.oid),
        number(c"tls-sigalg-code-point", UNSIGNED_INTEGER, &mut code_point),
        number(c"tls-sigalg-sec-bits", UNSIGNED_INTEGER, &mut security_bits),
        number(c"tls-min-tls", INTEGER, &mut min_tls),
        number(c"tls-max-tls", INTEGER, &mut max_tls),
        number(c"tls-min-dtls", INTEGER, &mut min_dtls),
        number(c"tls-max-dtls", INTEGER, &mut max_dtls),
        Param {
            key: ptr::null(),
            kind: 0,
            data: ptr::null_mut(),
            size: 0,
            returned: 0,
        },
    ];
    // SAFETY: the parameters end with one without a key, and `take` only reads them.
    unsafe { take(params.as_ptr(), argument) }
}
