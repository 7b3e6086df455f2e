//! How connections end.

use std::io;

/// Whether a TLS connection has ended without a close_notify (RFC 8446, section 6.1), as many peers
/// have it. OpenSSL has words for it, and no kind of error.
pub(crate) fn is_end(error: &io::Error) -> bool {
    let says = || error.to_string().to_ascii_lowercase();
    error.kind() == io::ErrorKind::UnexpectedEof || says().contains("unexpected eof")
}
