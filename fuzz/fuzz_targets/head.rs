//! What servers send as a response, whatever it is, and however it is cut; and what they say of where else they are.
#![no_main]

use lastbyte_fuzz::pieces;
use lastbyte_probe::{Body, Head, Http3, MOST_ALTERNATIVES, MOST_HEAD, alternatives, http3};
use libfuzzer_sys::fuzz_target;

/// What is read of an Alt-Svc is written as it is read, and read again as the same.
fn read_alternatives(field: &[u8]) {
    let Ok(all) = alternatives(field) else {
        return;
    };
    assert!(all.len() <= MOST_ALTERNATIVES);
    let written = all.iter().map(|one| {
        let host = one.host.as_deref().unwrap_or_default();
        format!("{}=\"{host}:{}\"", one.protocol, one.port)
    });
    let written = written.collect::<Vec<_>>().join(", ");
    assert!(!written.contains(char::is_control), "{written:?}");
    assert_eq!(alternatives(written.as_bytes()).as_ref(), Ok(&all));
    match http3(&all, "site.example") {
        Some(Http3::Here(port)) => assert!(port > 0),
        Some(Http3::Elsewhere(other)) => assert!(other.host.is_some()),
        None => {}
    }
}

fuzz_target!(|data: &[u8]| {
    read_alternatives(data);
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
                if let Err(error) = &response.alternatives {
                    assert!(!error.to_string().contains('\n'));
                }
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
