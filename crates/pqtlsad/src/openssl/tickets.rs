//! Keys of session tickets (RFC 5077, section 4), which a server changes while it runs.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::rand::rand_bytes;
use openssl::ssl::{SslContext, SslContextBuilder, SslRef};

use crate::ffi::{self, TicketKey};

/// The key that tickets are sealed with, and the one before, whose tickets are still good.
pub struct TicketKeys(RwLock<Keys>);

struct Keys {
    current: TicketKey,
    before: Option<TicketKey>,
}

static KEYS: OnceLock<Index<SslContext, Arc<TicketKeys>>> = OnceLock::new();

impl TicketKeys {
    /// A new key.
    ///
    /// # Errors
    /// OpenSSL's, if it has no randomness.
    pub fn new() -> Result<TicketKeys, ErrorStack> {
        Ok(TicketKeys(RwLock::new(Keys {
            current: random()?,
            before: None,
        })))
    }

    /// Seals tickets with a new key from now on. Those of the last one are good until the next change.
    ///
    /// # Errors
    /// OpenSSL's, if it has no randomness. The key stays then.
    pub fn change(&self) -> Result<(), ErrorStack> {
        let new = random()?;
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut keys.current, new);
        keys.before = Some(old);
        Ok(())
    }
}

impl std::fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketKeys").finish_non_exhaustive()
    }
}

/// Has a server's tickets sealed with `keys`.
///
/// # Errors
/// OpenSSL's, if it has no memory.
pub fn install(context: &mut SslContextBuilder, keys: Arc<TicketKeys>) -> Result<(), ErrorStack> {
    let index = match KEYS.get() {
        Some(index) => *index,
        None => {
            let index = SslContext::new_ex_index()?;
            *KEYS.get_or_init(|| index)
        }
    };
    context.set_ex_data(index, keys);
    ffi::set_ticket_callback(context, key);
    Ok(())
}

/// The key for a new ticket, or the one of a ticket that has this name of a key.
fn key(ssl: &SslRef, name: Option<&[u8]>) -> Option<TicketKey> {
    let keys = ssl.ssl_context().ex_data(*KEYS.get()?)?;
    let keys = keys.0.read().unwrap_or_else(PoisonError::into_inner);
    match name {
        None => Some(keys.current.clone()),
        Some(name) => {
            let mut own = [Some(&keys.current), keys.before.as_ref()]
                .into_iter()
                .flatten();
            own.find(|key| key.name == name).cloned()
        }
    }
}

fn random() -> Result<TicketKey, ErrorStack> {
    let mut key = TicketKey::default();
    rand_bytes(&mut key.name)?;
    rand_bytes(&mut key.cipher)?;
    rand_bytes(&mut key.mac)?;
    Ok(key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
