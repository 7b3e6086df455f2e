//! What servers send as a response: whatever it is, and however it is cut.
#![no_main]

use lastbyte_fuzz::pieces;
use lastbyte_probe::{Body, Head, MOST_HEAD};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut head = Head::default();
    let mut all = Vec::new();
    let mut body: Option<Body> = None;
    for (tag, piece) in pieces(data) {
        // Interim responses come in numbers.
        let times = 1 + usize::from(tag & 0x3f);
        let piece = piece.repeat(times);
        if let Some(body) = &mut body {
            body.add(&piece);
            continue;
        }
        all.extend_from_slice(&piece);
        match head.add(&piece) {
            Ok(None) => assert!(all.len() <= MOST_HEAD),
            Ok(Some(response)) => {
                for text in [response.location, response.alt_svc].into_iter().flatten() {
                    assert!(!text.chars().any(char::is_control), "{text:?}");
                }
                body = Some(response.body);
            }
            Err(error) => {
                assert!(!error.to_string().contains('\n'));
                return;
            }
        }
    }
    if let Some(body) = body {
        assert!(!body.is_whole() || body.end().is_ok());
        if let Err(cut) = body.end() {
            assert!(!cut.to_string().contains(char::is_control), "{cut}");
        }
    }
});
