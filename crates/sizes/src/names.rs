//! IANA's names for code points; of signatures that IANA has none for, those of [`signatures`].

use crate::{CertificateCompression, Group, signatures};

/// The name of a key-exchange group ("TLS Supported Groups").
pub fn group(code_point: u16) -> Option<&'static str> {
    Group::ALL
        .into_iter()
        .find(|group| group.code_point() == code_point)
        .map(Group::name)
        .or(match code_point {
            0x0019 => Some("secp521r1"),
            0x001E => Some("x448"),
            0x0100 => Some("ffdhe2048"),
            0x0101 => Some("ffdhe3072"),
            0x0200 => Some("MLKEM512"),
            _ => None,
        })
}

/// The name of a signature algorithm ("TLS SignatureScheme").
pub fn signature_scheme(code_point: u16) -> Option<&'static str> {
    Some(match code_point {
        0x0403 => "ecdsa_secp256r1_sha256",
        0x0503 => "ecdsa_secp384r1_sha384",
        0x0603 => "ecdsa_secp521r1_sha512",
        0x0804 => "rsa_pss_rsae_sha256",
        0x0805 => "rsa_pss_rsae_sha384",
        0x0806 => "rsa_pss_rsae_sha512",
        0x0807 => "ed25519",
        0x0808 => "ed448",
        0x0809 => "rsa_pss_pss_sha256",
        0x080A => "rsa_pss_pss_sha384",
        0x080B => "rsa_pss_pss_sha512",
        0x0904 => "mldsa44",
        0x0905 => "mldsa65",
        0x0906 => "mldsa87",
        _ => {
            let mut ours = signatures();
            let signature = ours.find(|signature| signature.code_point == code_point)?;
            return signature.scheme.to_str().ok();
        }
    })
}

/// The name of a cipher suite of TLS 1.3 ("TLS Cipher Suites").
pub fn cipher_suite(code_point: u16) -> Option<&'static str> {
    Some(match code_point {
        0x1301 => "TLS_AES_128_GCM_SHA256",
        0x1302 => "TLS_AES_256_GCM_SHA384",
        0x1303 => "TLS_CHACHA20_POLY1305_SHA256",
        0x1304 => "TLS_AES_128_CCM_SHA256",
        0x1305 => "TLS_AES_128_CCM_8_SHA256",
        _ => return None,
    })
}

/// The name of an algorithm of certificate compression ("TLS Certificate Compression Algorithm IDs").
pub fn certificate_compression(code_point: u16) -> Option<&'static str> {
    CertificateCompression::of_code_point(code_point).map(CertificateCompression::name)
}

/// The name of an alert ("TLS Alerts").
pub fn alert(description: u8) -> Option<&'static str> {
    Some(match description {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        117 => "general_error",
        120 => "no_application_protocol",
        _ => return None,
    })
}
