use openssl::sha::sha256;

use crate::{certificate_message_bytes, test_chains};

#[test]
fn a_digest_is_over_all_that_is_sent() {
    let chain = test_chains::for_name("server.example").unwrap();
    let der = chain
        .certificates()
        .iter()
        .map(|certificate| certificate.to_der().unwrap());
    let hash = sha256(&der.collect::<Vec<_>>().concat());
    let hex: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(chain.digest(), hex.concat());
}

#[test]
fn a_message_is_counted_with_its_framing() {
    assert_eq!(certificate_message_bytes([]), 8);
    assert_eq!(certificate_message_bytes([1000, 500]), 8 + 1005 + 505);
}
