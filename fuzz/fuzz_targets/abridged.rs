//! Pass 1 of abridged certificates as a peer sends it, and lists of trust anchors: what is read is written again as it
//! was.
#![no_main]

use std::sync::LazyLock;

use lastbyte_mtc::trust_anchors;
use lastbyte_tls::abridged::Listing;
use libfuzzer_sys::fuzz_target;
use openssl::x509::X509;

static LISTING: LazyLock<Listing> = LazyLock::new(|| {
    let certificate = include_bytes!("../seeds/certificate/ecdsa-p256.der");
    let certificate = X509::from_der(certificate).unwrap();
    Listing::new(&[certificate], &[]).unwrap()
});

fuzz_target!(|data: &[u8]| {
    const MOST: usize = 1 << 16;
    if let Some(restored) = LISTING.restore(data, MOST) {
        assert!(restored.len() <= MOST);
        let abridged = LISTING.abridge(&restored).unwrap();
        assert_eq!(LISTING.restore(&abridged, MOST), Some(restored));
    }
    if let Some(ids) = trust_anchors::parse_list(data) {
        assert_eq!(trust_anchors::list(&ids), data);
    }
});
