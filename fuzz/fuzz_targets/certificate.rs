//! The bytes of a certificate.
#![no_main]

use lastbyte_pki::{anatomy, explain, verify_scts};
use libfuzzer_sys::fuzz_target;
use openssl::x509::X509;

fuzz_target!(|der: &[u8]| {
    match anatomy(der) {
        Ok(anatomy) => assert_eq!(anatomy.bytes(), der.len()),
        Err(error) => assert!(error.offset <= der.len()),
    }
    // OpenSSL also takes what is not quite DER, so there may be no explanation.
    if let Ok(certificate) = X509::from_der(der) {
        let _ = explain(&certificate);
        let _ = verify_scts(&certificate, &certificate, &[]);
    }
});
