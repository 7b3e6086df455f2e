//! What QUIC makes of TLS's messages (RFC 9001), as quinn 0.11 has it at both ends. All in bytes.
//!
//! Hellos have no legacy session id, and ends agree on an application protocol and tell each other their transport
//! parameters in extensions. One parameter is reserved, and of a length by chance: what is counted here has it as long as it is
//! in the middle, and [`RESERVED`] says how much shorter and longer that makes a message.

use crate::framing::EXTENSION_HEADER;

/// The session id that hellos don't have over QUIC (RFC 9001, 8.4).
pub const SESSION_ID: usize = 32;

/// The application protocol: HTTP/3.
const PROTOCOL: &str = "h3";
/// The extension that agrees on it, with one name in its list (RFC 7301, section 3.1).
const ALPN: usize = EXTENSION_HEADER + 2 + 1 + PROTOCOL.len();

/// Connection IDs.
const CONNECTION_ID: usize = 8;
/// Bytes of the token of a stateless reset.
const RESET_TOKEN: usize = 16;

/// How much shorter and longer the reserved parameter may be: it has 0 to 15 bytes.
pub const RESERVED: (usize, usize) = (7, 8);

/// What quinn-proto 0.11.19 leaves out of what it counts as received, and so of a server's credit (RFC 9000, 8.1): the tag of the
/// first packet, which it counts once that is open (`Connection::handle_first_packet`).
pub const UNCREDITED: usize = 16;

/// A token of a NEW_TOKEN frame, which a client shows on a later connection (RFC 9000, 8.1.3).
pub const NEW_TOKEN: usize = 46;
/// A Retry packet's (RFC 9000, 8.1.2).
pub const RETRY_TOKEN: usize = 57;

/// A parameter whose id has one byte (RFC 9000, 18): id, length, value.
const fn parameter(value: usize) -> usize {
    1 + 1 + value
}

/// What both ends say: values are variable-length integers (RFC 9000, 16).
const OF_BOTH: usize = {
    let initial_source_connection_id = parameter(CONNECTION_ID);
    // 30 s in milliseconds.
    let max_idle_timeout = parameter(4);
    let max_udp_payload_size = parameter(2);
    // As much as there can be.
    let initial_max_data = parameter(8);
    let initial_max_stream_data = 3 * parameter(4);
    let initial_max_streams = 2 * parameter(2);
    let active_connection_id_limit = parameter(1);
    let max_datagram_frame_size = parameter(4);
    // Of a draft, whose id has eight bytes.
    let min_ack_delay = 8 + 1 + 2;
    // An id of eight bytes, too (RFC 9000, 18.1).
    let reserved = 8 + 1 + RESERVED.0;
    initial_source_connection_id
        + max_idle_timeout
        + max_udp_payload_size
        + initial_max_data
        + initial_max_stream_data
        + initial_max_streams
        + active_connection_id_limit
        + max_datagram_frame_size
        + min_ack_delay
        + reserved
};

/// What a ClientHello has besides what it has over TCP, but for [`SESSION_ID`].
pub const CLIENT_EXTENSIONS: usize = ALPN + EXTENSION_HEADER + OF_BOTH;

/// What EncryptedExtensions have besides what they have over TCP.
pub const SERVER_EXTENSIONS: usize = {
    let original_destination_connection_id = parameter(CONNECTION_ID);
    let stateless_reset_token = parameter(RESET_TOKEN);
    CLIENT_EXTENSIONS + original_destination_connection_id + stateless_reset_token
};

/// What EncryptedExtensions have more behind a Retry packet: the retry_source_connection_id (RFC 9000, 7.3).
pub const RETRY_PARAMETER: usize = parameter(CONNECTION_ID);
