//! What a page load has left besides its row.

use lastbyte_page::cdp::Load;
use serde::{Deserialize, Serialize};

/// What a navigation has left besides its row.
#[derive(Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Index of the navigation in its sample.
    pub index: u32,
    /// What the browser told, if the page was loaded.
    pub load: Option<Load>,
    /// Connections, in the order in which they began, as the observer saw them.
    pub connections: Vec<SeenConnection>,
}

/// A connection of a browser, as the observer saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenConnection {
    /// The origin's name.
    pub name: String,
    /// From the first SYN of the page to this one, in nanoseconds.
    pub began_ns: u64,
    /// Key-exchange group (IANA code point), when negotiated.
    pub group: Option<u16>,
    /// Signature scheme of the server's CertificateVerify (IANA code point), when seen.
    pub signature: Option<u16>,
    /// Cipher suite (IANA code point), when negotiated.
    pub cipher_suite: Option<u16>,
    /// Certificates in the server's Certificate message.
    pub certificates: u32,
    /// Bytes of that message, as it is uncompressed.
    pub certificate_bytes: u32,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The client's first flight, record framing included.
    pub client_hello_wire_bytes: u32,
    /// The server's messages, record framing included.
    pub server_flight_wire_bytes: u32,
}
