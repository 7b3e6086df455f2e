//! Whose client connects.

use lastbyte_link::named;

/// Whose client connects, over QUIC. Pages are loaded by a browser, whatever this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// Our own.
    #[default]
    Lastbyte,
    /// quic-go's, on Go's `crypto/tls`.
    QuicGo,
    /// curl's, on ngtcp2 and OpenSSL.
    Curl,
    /// Chromium, on BoringSSL.
    Chromium,
}

named!(Client, "client", {
    Lastbyte => "lastbyte",
    QuicGo => "quic-go",
    Curl => "curl",
    Chromium => "chromium",
});

impl Client {
    /// Whether it is a program that people run, which decides itself what it sends.
    pub fn is_foreign(self) -> bool {
        self != Client::Lastbyte
    }
}
