//! Signatures of TLS 1.3 that OpenSSL has none for.

use std::ffi::CStr;

/// A signature algorithm for TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsSignature {
    /// What OpenSSL calls its keys and its signatures.
    pub algorithm: &'static CStr,
    /// The name of its SignatureScheme.
    pub scheme: &'static CStr,
    /// Its code point.
    pub code_point: u16,
    /// The object identifier of its keys and signatures, in dots.
    pub oid: &'static CStr,
    /// Bits of classical security that its category stands for.
    pub security_bits: u16,
}

impl TlsSignature {
    /// The numbers of its object identifier.
    pub fn arcs(&self) -> Vec<u32> {
        let dotted = self.oid.to_str().unwrap_or_default();
        let arcs = dotted.split('.').map(str::parse);
        arcs.filter_map(Result::ok).collect()
    }
}

const fn slh_dsa(
    algorithm: &'static CStr,
    scheme: &'static CStr,
    code_point: u16,
    oid: &'static CStr,
    security_bits: u16,
) -> TlsSignature {
    TlsSignature {
        algorithm,
        scheme,
        code_point,
        oid,
        security_bits,
    }
}

/// SLH-DSA (FIPS 205), in the order of its code points. They are those of
/// draft-reddy-tls-slhdsa-02, "SLH-DSA SignatureSchemes Types"; the object identifiers are those of RFC 9909, section 3.
pub static SLH_DSA: [TlsSignature; 12] = [
    slh_dsa(
        c"SLH-DSA-SHA2-128s",
        c"slhdsa_sha2_128s",
        0x0911,
        c"2.16.840.1.101.3.4.3.20",
        128,
    ),
    slh_dsa(
        c"SLH-DSA-SHA2-128f",
        c"slhdsa_sha2_128f",
        0x0912,
        c"2.16.840.1.101.3.4.3.21",
        128,
    ),
    slh_dsa(
        c"SLH-DSA-SHA2-192s",
        c"slhdsa_sha2_192s",
        0x0913,
        c"2.16.840.1.101.3.4.3.22",
        192,
    ),
    slh_dsa(
        c"SLH-DSA-SHA2-192f",
        c"slhdsa_sha2_192f",
        0x0914,
        c"2.16.840.1.101.3.4.3.23",
        192,
    ),
    slh_dsa(
        c"SLH-DSA-SHA2-256s",
        c"slhdsa_sha2_256s",
        0x0915,
        c"2.16.840.1.101.3.4.3.24",
        256,
    ),
    slh_dsa(
        c"SLH-DSA-SHA2-256f",
        c"slhdsa_sha2_256f",
        0x0916,
        c"2.16.840.1.101.3.4.3.25",
        256,
    ),
    slh_dsa(
        c"SLH-DSA-SHAKE-128s",
        c"slhdsa_shake_128s",
        0x0917,
        c"2.16.840.1.101.3.4.3.26",
        128,
    ),
    slh_dsa(
        c"SLH-DSA-SHAKE-128f",
        c"slhdsa_shake_128f",
        0x0918,
        c"2.16.840.1.101.3.4.3.27",
        128,
    ),
    slh_dsa(
        c"SLH-DSA-SHAKE-192s",
        c"slhdsa_shake_192s",
        0x0919,
        c"2.16.840.1.101.3.4.3.28",
        192,
    ),
    slh_dsa(
        c"SLH-DSA-SHAKE-192f",
        c"slhdsa_shake_192f",
        0x091A,
        c"2.16.840.1.101.3.4.3.29",
        192,
    ),
    slh_dsa(
        c"SLH-DSA-SHAKE-256s",
        c"slhdsa_shake_256s",
        0x091B,
        c"2.16.840.1.101.3.4.3.30",
        256,
    ),
    slh_dsa(
        c"SLH-DSA-SHAKE-256f",
        c"slhdsa_shake_256f",
        0x091C,
        c"2.16.840.1.101.3.4.3.31",
        256,
    ),
];

/// FN-DSA-512 and FN-DSA-1024 as the crate `fn-dsa` has them: FIPS 206 is not published, and what
/// it will say may differ. Signatures have a fixed length, 666 and 1280 bytes.
///
/// No code point and no object identifier is assigned: draft-ietf-lamps-fn-dsa-certificates-00,
/// "Identifiers", leaves the latter open until NIST registers them. Falcon, for which the OQS
/// provider has some (0xfedc and 1.3.9999.3.16, 0xfedf and 1.3.9999.3.19 for signatures of these
/// lengths), is another algorithm. So the code points here are of those for private use (RFC 8446,
/// section 11), and the object identifiers are under the number that RFC 5612 sets aside for
/// examples; they are as long as NIST's, so that sizes will stay as they are.
pub static FN_DSA: [TlsSignature; 2] = [
    TlsSignature {
        algorithm: c"FN-DSA-512",
        scheme: c"fndsa512",
        code_point: 0xFFF0,
        oid: c"1.3.6.1.4.1.32473.2",
        security_bits: 128,
    },
    TlsSignature {
        algorithm: c"FN-DSA-1024",
        scheme: c"fndsa1024",
        code_point: 0xFFF1,
        oid: c"1.3.6.1.4.1.32473.3",
        security_bits: 256,
    },
];

/// All of [`SLH_DSA`] and [`FN_DSA`].
pub fn signatures() -> impl Iterator<Item = &'static TlsSignature> {
    static ALL: [&[TlsSignature]; 2] = [&SLH_DSA, &FN_DSA];
    ALL.into_iter().flatten()
}
