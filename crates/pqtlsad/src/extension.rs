//! The extension of both hellos: its data is a [`Digest`](crate::Digest) and nothing else.
//!
//! RFC 8446 has no such extension. A client offers it, so the server may answer it (4.2); that the
//! answer stands in the ServerHello and not in the EncryptedExtensions is the mechanism's own choice.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The extension's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExtensionType(pub u16);

impl ExtensionType {
    /// What the mechanism's authors took. IANA has not assigned it.
    pub const DEFAULT: ExtensionType = ExtensionType(64);
}

impl Default for ExtensionType {
    fn default() -> Self {
        ExtensionType::DEFAULT
    }
}

impl fmt::Display for ExtensionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ExtensionType {
    type Err = ExtensionError;

    fn from_str(text: &str) -> Result<ExtensionType, ExtensionError> {
        let number = text.parse().map_err(|_| ExtensionError(text.to_owned()))?;
        Ok(ExtensionType(number))
    }
}

/// The text is no extension's number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown extension {0:?}: use a number from 0 to 65535")]
pub struct ExtensionError(String);

/// The host name in the data of a ClientHello's server_name extension (RFC 6066, 3), in lower case.
/// None for what is not exactly one host name, of ASCII.
pub fn server_name(data: &[u8]) -> Option<String> {
    const HOST_NAME: u8 = 0;
    let (length, list) = data.split_first_chunk::<2>()?;
    let (kind, entry) = list.split_first()?;
    let (name_length, name) = entry.split_first_chunk::<2>()?;
    let is_whole = usize::from(u16::from_be_bytes(*length)) == list.len()
        && usize::from(u16::from_be_bytes(*name_length)) == name.len();
    if !is_whole || *kind != HOST_NAME || name.is_empty() || !name.is_ascii() {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    Some(name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
