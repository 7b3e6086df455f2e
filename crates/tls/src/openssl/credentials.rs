//! What a server proves itself with, where it chooses that for each connection.

use std::sync::OnceLock;

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{Ssl, SslRef};
use openssl::x509::X509;

use super::ffi;

/// Certificates, the end-entity's first, and its key.
pub(super) struct Credentials {
    pub(super) certificates: Vec<X509>,
    pub(super) key: PKey<Private>,
}

impl Credentials {
    /// Has this connection send these, in place of what it was to send before.
    pub(super) fn give(&self, ssl: &mut SslRef) -> Result<(), ErrorStack> {
        let Some((end_entity, issuers)) = self.certificates.split_first() else {
            return Ok(());
        };
        ssl.set_certificate(end_entity)?;
        ssl.set_private_key(&self.key)?;
        ffi::clear_chain(ssl)?;
        issuers
            .iter()
            .try_for_each(|issuer| ssl.add_chain_cert(issuer.clone()))
    }
}

/// Where connections keep a `T`, one place per `cell`.
pub(super) fn index<T>(cell: &OnceLock<Index<Ssl, T>>) -> Result<Index<Ssl, T>, ErrorStack>
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
