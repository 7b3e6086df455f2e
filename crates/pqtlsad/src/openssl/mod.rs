//! Both sides on an unmodified OpenSSL, 3.2 or later, by the callbacks that it offers.

pub mod client;
pub mod server;
pub mod tickets;

use std::sync::OnceLock;

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{ExtensionContext, Ssl};

use crate::extension::ExtensionType;
use crate::ffi;

/// Both hellos; a HelloRetryRequest says nothing, and the second ClientHello repeats the first.
fn hellos() -> ExtensionContext {
    ExtensionContext::CLIENT_HELLO
        | ExtensionContext::TLS1_3_SERVER_HELLO
        | ExtensionContext::TLS1_3_ONLY
}

/// The certificate types that RFC 7250 numbers.
mod certificate_type {
    pub(super) const X509: u8 = 0;
    pub(super) const RAW_PUBLIC_KEY: u8 = 2;
}

/// Whether an extension can have this number: OpenSSL has many itself.
pub fn is_free(number: ExtensionType) -> bool {
    !ffi::is_built_in(number.0)
}

/// How the end-entity's key is proved when even the end-entity comes from DNS: TLS 1.3 forbids an empty
/// Certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EndEntity {
    /// As a raw public key (RFC 7250), the standard's way.
    #[default]
    RawPublicKey,
    /// An experiment: a certificate that carries nothing but the end-entity's SHA-256, where its key would
    /// be. It is smaller than a key of ML-DSA, and no TLS stack knows it.
    Carrier,
}

/// Where connections keep a `T`, one place per `cell`.
fn index<T>(cell: &OnceLock<Index<Ssl, T>>) -> Result<Index<Ssl, T>, ErrorStack>
where
    T: Send + Sync + 'static,
{
    match cell.get() {
        Some(index) => Ok(*index),
        None => {
            let index = Ssl::new_ex_index()?;
            Ok(*cell.get_or_init(|| index))
        }
    }
}

#[cfg(test)]
mod tests;
