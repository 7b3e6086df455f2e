//! Signature algorithms that OpenSSL has no TLS for, added by providers inside the process.
//!
//! OpenSSL itself stays as it is: a provider is the way that it offers for this
//! (`provider(7)`, `provider-base(7)`: the capability TLS-SIGALG).

mod ffi;
mod fn_dsa;
mod keys;

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::OnceLock;

use openssl::error::ErrorStack;
use openssl::pkey::{PKey, PKeyRef, Private};

pub use keys::{private_key_pem, private_key_pkcs8};
pub use lastbyte_sizes::{FN_DSA, SLH_DSA, TlsSignature, signatures};

thread_local! {
    static OFFERED: RefCell<Vec<TlsSignature>> = const { RefCell::new(Vec::new()) };
}

/// Calls `make`: contexts for TLS that it makes know these signatures besides OpenSSL's own. Those
/// made without this know none: what a client offers costs bytes of its ClientHello. Unless FN-DSA is among them,
/// nothing reads its keys.
///
/// # Errors
///
/// When OpenSSL refuses a provider; then `make` is not called.
pub fn offering<T>(
    signatures: &[&TlsSignature],
    make: impl FnOnce() -> T,
) -> Result<T, ErrorStack> {
    if signatures
        .iter()
        .any(|signature| FN_DSA.contains(signature))
    {
        install()?
    } else {
        install_slh_dsa()?
    }
    // A context asks for them when it is made, on the same thread.
    let wanted = signatures.iter().map(|signature| **signature).collect();
    let before = OFFERED.replace(wanted);
    let made = make();
    OFFERED.replace(before);
    Ok(made)
}

/// Makes the algorithms known to OpenSSL's default library context: their keys, and certificates. It
/// happens once, whoever asks for it.
///
/// # Errors
///
/// When OpenSSL refuses.
pub fn install() -> Result<(), ErrorStack> {
    static INSTALLED: OnceLock<Result<(), ErrorStack>> = OnceLock::new();
    install_slh_dsa()?;
    INSTALLED.get_or_init(ffi::install_fn_dsa).clone()
}

fn install_slh_dsa() -> Result<(), ErrorStack> {
    static INSTALLED: OnceLock<Result<(), ErrorStack>> = OnceLock::new();
    INSTALLED.get_or_init(ffi::install_slh_dsa).clone()
}

/// Makes a new key of the algorithm of this name.
///
/// # Errors
///
/// When OpenSSL has no such algorithm.
pub fn generate(algorithm: &CStr) -> Result<PKey<Private>, ErrorStack> {
    install()?;
    ffi::generate(algorithm)
}

/// OpenSSL's reasons on one line, the outermost first, without its codes and the lines of its sources. Some of its
/// functions fail and give none: that is said, too.
pub fn reason(stack: &ErrorStack) -> String {
    let errors = stack.errors().iter().rev();
    let mut reasons: Vec<&str> = errors.filter_map(|error| error.reason()).collect();
    reasons.dedup();
    match reasons.as_slice() {
        [] => "OpenSSL gives no reason".to_owned(),
        reasons => reasons.join(": "),
    }
}

/// Whether a key is of the algorithm of this name.
pub fn is_a<T>(key: &PKeyRef<T>, algorithm: &CStr) -> bool {
    ffi::is_a(key, algorithm)
}

#[cfg(test)]
mod tests {
    use openssl::error::ErrorStack;
    use openssl::x509::X509;

    use super::reason;

    #[test]
    fn openssl_that_gives_no_reason_is_told_to_give_none() {
        let _ = ErrorStack::get();
        assert_eq!(reason(&ErrorStack::get()), "OpenSSL gives no reason");
        let wrong = X509::from_der(b"none").map_err(|error| reason(&error));
        let told = wrong.err().unwrap_or_default();
        assert!(!told.is_empty() && !told.contains(".c:"), "{told}");
    }
}
