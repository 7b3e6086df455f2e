//! A packed kernel of whatever bytes, compressed here where they are not yet: it is refused, or it is written and read as it
//! was. A digest beside it is one or none.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lastbyte::kernel::{Digest, Packed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(digest) = Digest::in_file(bytes) {
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }
    let mut compressed = GzEncoder::new(Vec::new(), Compression::none());
    compressed.write_all(bytes).unwrap();
    let compressed = compressed.finish().unwrap();
    for bytes in [bytes, &compressed] {
        match Packed::read(bytes) {
            Ok(packed) => assert_eq!(Packed::read(&packed.write().unwrap()), Ok(packed)),
            Err(problem) => assert!(!problem.chars().any(char::is_control), "{problem:?}"),
        }
    }
});
