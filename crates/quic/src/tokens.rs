//! Tokens of NEW_TOKEN frames, by which a server knows a client's address (RFC 9000, 8.1.3).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use quinn_proto::{TokenLog, TokenReuseError, TokenStore};

/// A client's tokens, of one server: the one that it uses, and the last that it has got.
pub(crate) struct Store {
    own: Mutex<Option<Bytes>>,
    got: Mutex<Option<Bytes>>,
}

impl Store {
    pub(crate) fn of(token: Option<Bytes>) -> Store {
        Store {
            own: Mutex::new(token),
            got: Mutex::default(),
        }
    }

    pub(crate) fn latest(&self) -> Option<Bytes> {
        (self.got.lock().unwrap_or_else(PoisonError::into_inner)).clone()
    }
}

impl TokenStore for Store {
    fn insert(&self, _: &str, token: Bytes) {
        *self.got.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        (self.own.lock().unwrap_or_else(PoisonError::into_inner)).take()
    }
}

/// The tokens that came to a server: each is good for one connection. quinn's own log forgets, and may be wrong.
#[derive(Default)]
pub(crate) struct Used(Mutex<BTreeSet<u128>>);

impl TokenLog for Used {
    fn check_and_insert(
        &self,
        nonce: u128,
        _: SystemTime,
        _: Duration,
    ) -> Result<(), TokenReuseError> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(nonce).then_some(()).ok_or(TokenReuseError)
    }
}
