//! Keeps the secrets of OpenSSL's connections, each with its own connection.

use std::sync::{Mutex, OnceLock, PoisonError};

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslContextBuilder, SslRef};

use crate::KeyLog;

/// Has all connections of a context keep their secrets that [`start`] was called for.
///
/// # Errors
/// OpenSSL's.
pub fn install(context: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    let index = index()?;
    context.set_keylog_callback(move |ssl, line| {
        if let Some(log) = ssl.ex_data(index) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push_line(line);
        }
    });
    Ok(())
}

/// Keeps the secrets of this connection from now on.
///
/// # Errors
/// OpenSSL's.
pub fn start(ssl: &mut SslRef) -> Result<(), ErrorStack> {
    ssl.set_ex_data(index()?, Mutex::default());
    Ok(())
}

/// The secrets so far; none of a connection that [`start`] was not called for.
pub fn of(ssl: &SslRef) -> KeyLog {
    index()
        .ok()
        .and_then(|index| ssl.ex_data(index))
        .map(|log| log.lock().unwrap_or_else(PoisonError::into_inner).clone())
        .unwrap_or_default()
}

/// Where a connection keeps them.
fn index() -> Result<Index<Ssl, Mutex<KeyLog>>, ErrorStack> {
    static INDEX: OnceLock<Index<Ssl, Mutex<KeyLog>>> = OnceLock::new();
    match INDEX.get() {
        Some(index) => Ok(*index),
        None => {
            let index = Ssl::new_ex_index()?;
            Ok(*INDEX.get_or_init(|| index))
        }
    }
}
