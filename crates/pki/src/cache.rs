//! Where a user's chains are kept.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// See [`Store::default_dir`](crate::Store::default_dir).
pub(crate) fn folder() -> Option<PathBuf> {
    default_dir(|name| env::var_os(name), env::home_dir())
}

pub(crate) fn default_dir(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Option<PathBuf> {
    let folder = |name| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    // The XDG Base Directory Specification says to ignore relative paths.
    let cache = folder("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    folder("LASTBYTE_CACHE").or_else(|| {
        let cache = cache.or_else(|| Some(home?.join(".cache")))?;
        Some(cache.join("lastbyte"))
    })
}
