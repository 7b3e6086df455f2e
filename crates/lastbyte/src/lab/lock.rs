//! Locks of what threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whoever panicked with the lock has left nothing half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
