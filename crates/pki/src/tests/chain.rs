use openssl::sha::sha256;

use crate::test_chains;

#[test]
fn a_digest_is_over_all_that_is_sent() {
    let chain = test_chains::for_name("server.example").unwrap();
    let der = chain
        .certificates()
        .iter()
        .map(|certificate| certificate.to_der().unwrap());
    let hash = sha256(&der.collect::<Vec<_>>().concat());
    assert_eq!(chain.digest(), hex::encode(hash));
}
