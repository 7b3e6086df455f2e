//! What TLS 1.3 puts around what it carries (RFC 8446), and TCP around that. All in bytes.
//!
//! Sizes of handshake messages are with their header.

/// What a segment carries: a packet of 1500 bytes, which fills an Ethernet frame, less the headers of IPv4
/// and of TCP with timestamps.
pub const MSS: usize = 1500 - 20 - 32;

/// The header of a record (section 5.1).
pub const RECORD_HEADER: usize = 5;
/// What encryption adds to a record's content: its type and a tag (section 5.2). All cipher suites in use have
/// a tag of 16 bytes.
pub const PROTECTION: usize = 1 + 16;
/// What an encrypted record has besides its content.
pub const RECORD_OVERHEAD: usize = RECORD_HEADER + PROTECTION;
/// The most content that one record holds (section 5.1).
pub const MAX_PLAINTEXT: usize = 1 << 14;

/// The most plaintext that a server takes as early data, and its tickets say so (section 4.2.10): the default
/// of OpenSSL's `s_server`.
pub const MAX_EARLY_DATA: u32 = 1 << 14;

/// The header of a handshake message (section 4).
pub const MESSAGE_HEADER: usize = 4;
/// The largest handshake message that there is: its length has 24 bits (section 4).
pub const MAX_MESSAGE: usize = MESSAGE_HEADER + (1 << 24) - 1;
/// Type and length of an extension (section 4.2).
pub const EXTENSION_HEADER: usize = 2 + 2;
/// A record of change_cipher_spec, for middleboxes (section D.4).
pub const CHANGE_CIPHER_SPEC: usize = RECORD_HEADER + 1;

/// An EncryptedExtensions without extensions (section 4.3.1).
pub const ENCRYPTED_EXTENSIONS: usize = MESSAGE_HEADER + 2;
/// A server's Certificate message without certificates: header, an empty request context and the list's own
/// length (section 4.4.2).
pub const NO_CERTIFICATES: usize = MESSAGE_HEADER + 1 + 3;
/// What surrounds a certificate in a Certificate message: its length, and that of no extensions (section 4.4.2).
pub const CERTIFICATE_ENTRY: usize = 3 + 2;

/// A ServerHello whose key share has `share` bytes, with an echoed session id and without a pre-shared key
/// (section 4.1.3).
pub const fn server_hello(share: usize) -> usize {
    const RANDOM: usize = 32;
    const SESSION_ID: usize = 1 + 32;
    const SUPPORTED_VERSIONS: usize = EXTENSION_HEADER + 2;
    /// Group and length.
    const KEY_SHARE: usize = EXTENSION_HEADER + 2 + 2;
    let (version, cipher_suite, compression, extensions) = (2, 2, 1, 2);
    let fields = version + RANDOM + SESSION_ID + cipher_suite + compression + extensions;
    MESSAGE_HEADER + fields + SUPPORTED_VERSIONS + KEY_SHARE + share
}

/// A HelloRetryRequest that asks for another group: a ServerHello whose key share is that group alone (section
/// 4.1.4).
pub const fn hello_retry_request() -> usize {
    const LENGTH_OF_A_SHARE: usize = 2;
    server_hello(0) - LENGTH_OF_A_SHARE
}

/// A Certificate message of certificates, or of a raw public key, whose DER has these lengths (section 4.4.2).
/// The request context is empty, as a server's is, and no certificate has extensions.
pub fn certificate_message(der_lengths: impl IntoIterator<Item = usize>) -> usize {
    let entries = der_lengths.into_iter().map(|der| CERTIFICATE_ENTRY + der);
    NO_CERTIFICATES + entries.sum::<usize>()
}

/// A CertificateVerify: signature scheme, length, signature (section 4.4.3).
pub const fn certificate_verify(signature: usize) -> usize {
    MESSAGE_HEADER + 2 + 2 + signature
}

/// A Finished with a hash of so many bytes (section 4.4.4).
pub const fn finished(hash: usize) -> usize {
    MESSAGE_HEADER + hash
}

/// `content` on the wire, in as few encrypted records as hold it.
pub const fn encrypted(content: usize) -> usize {
    content + content.div_ceil(MAX_PLAINTEXT) * RECORD_OVERHEAD
}
