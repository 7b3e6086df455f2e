//! What handshake messages say.

use lastbyte_mtc::trust_anchors;
use lastbyte_sizes::tls_flags;
use pqtlsad::Digest;

use super::cursor::Cursor;
use super::{CertificateType, EarlyData, MessageType, Observation, Side};

/// One whole handshake message (RFC 8446, 4).
pub(super) struct HandshakeMessage<'a> {
    pub(super) kind: MessageType,
    /// The four bytes of the header included.
    pub(super) bytes: usize,
    body: Cursor<'a>,
}

/// Takes a message off the front of `stream` once all of it is there.
pub(super) fn next_message<'a>(stream: &mut Cursor<'a>) -> Option<HandshakeMessage<'a>> {
    let mut rest = *stream;
    let code = rest.u8()?;
    let body = rest.vector(3)?;
    let bytes = stream.0.len() - rest.0.len();
    *stream = rest;
    Some(HandshakeMessage {
        kind: kind(code, body),
        bytes,
        body,
    })
}

fn kind(code: u8, mut body: Cursor<'_>) -> MessageType {
    match code {
        1 => MessageType::ClientHello,
        2 => {
            let _version = body.u16();
            match body.bytes(32) {
                Some(random) if random == HELLO_RETRY_REQUEST => MessageType::HelloRetryRequest,
                _ => MessageType::ServerHello,
            }
        }
        8 => MessageType::EncryptedExtensions,
        11 => MessageType::Certificate,
        13 => MessageType::CertificateRequest,
        15 => MessageType::CertificateVerify,
        20 => MessageType::Finished,
        25 => MessageType::CompressedCertificate,
        other => MessageType::Other(other),
    }
}

/// The random that makes a ServerHello a HelloRetryRequest (RFC 8446, 4.1.3).
const HELLO_RETRY_REQUEST: [u8; 32] = [
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
    0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
];

mod extension {
    use pqtlsad::extension::ExtensionType;

    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const STATUS_REQUEST: u16 = 5;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SERVER_CERTIFICATE_TYPE: u16 = 20;
    pub(super) const COMPRESS_CERTIFICATE: u16 = 27;
    pub(super) const PRE_SHARED_KEY: u16 = 41;
    pub(super) const EARLY_DATA: u16 = 42;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
    pub(super) const KEY_SHARE: u16 = 51;
    pub(super) const PQTLS_AD: u16 = ExtensionType::DEFAULT.0;
}

/// Notes what `message` says, as far as it can be read.
pub(super) fn note(observation: &mut Observation, sender: Side, message: &HandshakeMessage<'_>) {
    let body = message.body;
    // What can't be read leaves its fields empty, which is all there is to say.
    let _readable = match (sender, message.kind) {
        (Side::Client, MessageType::ClientHello) => note_client_hello(observation, body),
        (Side::Server, MessageType::ServerHello | MessageType::HelloRetryRequest) => {
            note_server_hello(observation, body)
        }
        (Side::Server, MessageType::EncryptedExtensions) => {
            note_encrypted_extensions(observation, body)
        }
        (Side::Server, MessageType::Certificate) => note_certificate(observation, body),
        (sender, MessageType::CompressedCertificate) => {
            note_compressed_certificate(observation, sender, body)
        }
        (sender, MessageType::CertificateVerify) => {
            note_certificate_verify(observation, sender, body)
        }
        _ => Some(()),
    };
}

fn note_client_hello(observation: &mut Observation, mut body: Cursor<'_>) -> Option<()> {
    let _legacy_version = body.u16()?;
    let _random = body.bytes(32)?;
    let _legacy_session_id = body.vector(1)?;
    let _cipher_suites = body.vector(2)?;
    let _legacy_compression_methods = body.vector(1)?;
    for (extension, mut data) in extensions(&mut body)? {
        match extension {
            extension::SERVER_NAME => {
                let mut names = data.vector(2)?;
                if names.u8()? == 0 {
                    observation.server_name = Some(text(names.vector(2)?));
                }
            }
            extension::COMPRESS_CERTIFICATE => {
                let mut algorithms = data.vector(1)?;
                observation.offered_compressions =
                    std::iter::from_fn(|| algorithms.u16()).collect();
            }
            extension::PQTLS_AD => {
                observation.offered_certificates = Digest::from_bytes(data.0);
            }
            tls_flags::EXTENSION => {
                observation.suppresses_cas = tls_flags::suppresses_cas(data.0) == Some(true);
            }
            trust_anchors::EXTENSION => {
                observation.named_anchors = trust_anchors::parse_list(data.0)
            }
            // The server's answer was read before.
            extension::EARLY_DATA if observation.early_data == EarlyData::NotOffered => {
                observation.early_data = EarlyData::Offered;
            }
            _ => {}
        }
    }
    Some(())
}

fn note_server_hello(observation: &mut Observation, mut body: Cursor<'_>) -> Option<()> {
    let legacy_version = body.u16()?;
    let _random = body.bytes(32)?;
    let _legacy_session_id = body.vector(1)?;
    observation.cipher_suite = Some(body.u16()?);
    let _legacy_compression_method = body.u8()?;
    observation.version = Some(legacy_version);
    observation.resumed = Some(false);
    for (extension, mut data) in extensions(&mut body)? {
        match extension {
            extension::SUPPORTED_VERSIONS => observation.version = Some(data.u16()?),
            extension::KEY_SHARE => observation.group = Some(data.u16()?),
            extension::PRE_SHARED_KEY => observation.resumed = Some(true),
            extension::PQTLS_AD => {
                observation.answered_certificates = Digest::from_bytes(data.0);
            }
            _ => {}
        }
    }
    Some(())
}

fn note_encrypted_extensions(observation: &mut Observation, mut body: Cursor<'_>) -> Option<()> {
    for (extension, mut data) in extensions(&mut body)? {
        match extension {
            extension::ALPN => observation.alpn = Some(text(data.vector(2)?.vector(1)?)),
            extension::EARLY_DATA => observation.early_data = EarlyData::Accepted,
            trust_anchors::EXTENSION => {
                observation.available_anchors =
                    trust_anchors::parse_list(data.0).unwrap_or_default();
            }
            extension::SERVER_CERTIFICATE_TYPE => {
                observation.certificate_type = match data.u8()? {
                    2 => CertificateType::RawPublicKey,
                    _ => CertificateType::X509,
                };
            }
            _ => {}
        }
    }
    Some(())
}

fn note_certificate(observation: &mut Observation, mut body: Cursor<'_>) -> Option<()> {
    let _request_context = body.vector(1)?;
    let mut entries = body.vector(3)?;
    while !entries.0.is_empty() {
        let is_first = observation.certificates.is_empty();
        observation.certificates.push(entries.vector(3)?.0.len());
        for (extension, data) in extensions(&mut entries)? {
            /// A type and a length.
            const HEADER: usize = 4;
            observation.is_anchored |= is_first && extension == trust_anchors::EXTENSION;
            if extension == extension::STATUS_REQUEST {
                observation.staple_bytes += HEADER + data.0.len();
            }
        }
    }
    Some(())
}

/// RFC 8879, section 4. Of two, the first counts.
fn note_compressed_certificate(
    observation: &mut Observation,
    sender: Side,
    mut body: Cursor<'_>,
) -> Option<()> {
    let (compression, uncompressed) = match sender {
        Side::Client => (
            &mut observation.client_certificate_compression,
            &mut observation.uncompressed_client_certificate,
        ),
        Side::Server => (
            &mut observation.certificate_compression,
            &mut observation.uncompressed_certificate,
        ),
    };
    if compression.is_some() {
        return None;
    }
    let algorithm = *compression.insert(body.u16()?);
    let declared = *uncompressed.insert(body.number(3)?);
    let compressed = body.vector(3)?;
    if sender == Side::Server {
        let certificate = decompress(algorithm, compressed, declared)?;
        note_certificate(observation, Cursor(&certificate))?;
    }
    Some(())
}

/// The Certificate message of a CompressedCertificate, without its header. What is `declared` in
/// three bytes is less than an observer stores.
#[cfg(feature = "rustls")]
fn decompress(algorithm: u16, compressed: Cursor<'_>, declared: usize) -> Option<Vec<u8>> {
    crate::rustls::decompress(algorithm, compressed.0, declared)
}

/// Nothing that decompresses is built in.
#[cfg(not(feature = "rustls"))]
fn decompress(_: u16, _: Cursor<'_>, _: usize) -> Option<Vec<u8>> {
    None
}

fn note_certificate_verify(
    observation: &mut Observation,
    sender: Side,
    mut body: Cursor<'_>,
) -> Option<()> {
    let signature = match sender {
        Side::Client => &mut observation.client_signature,
        Side::Server => &mut observation.signature,
    };
    *signature = Some(body.u16()?);
    Some(())
}

fn extensions<'a>(body: &mut Cursor<'a>) -> Option<impl Iterator<Item = (u16, Cursor<'a>)>> {
    let mut list = body.vector(2)?;
    Some(std::iter::from_fn(move || {
        Some((list.u16()?, list.vector(2)?))
    }))
}

fn text(bytes: Cursor<'_>) -> String {
    String::from_utf8_lossy(bytes.0).into_owned()
}
