//! What `ad serve` reads of load balancers.
#![no_main]

use lastbyte_ad::serve::announced::{Announced, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(Announced::Client(client, server)) = parse(data) {
        assert_eq!(client.is_ipv4(), server.is_ipv4());
    }
});
