//! What the clients of PQTLS-AD read of others: DNS messages, resolv.conf, key files and URLs.
#![no_main]

use lastbyte_ad::dns::{Answer, Question, Rtype, message, resolv_conf, tsig};
use lastbyte_ad::http::Url;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    match kind % 3 {
        0 => dns(data),
        1 => files(&String::from_utf8_lossy(data)),
        _ => url(&String::from_utf8_lossy(data)),
    }
});

/// The header's id and QR bit and the question are made to fit, so that the answer is read.
fn dns(data: &[u8]) {
    let question = Question {
        name: "server.example".parse().unwrap(),
        rtype: Rtype::from_int(65_280),
    };
    let query = question.query(7).unwrap();
    // Header and question, without the OPT record of 11 bytes.
    let mut answer = query[..query.len() - 11].to_vec();
    if let Some((header, records)) = data.split_first_chunk::<8>() {
        answer[2] = 0x80 | header[0];
        answer[3] = header[1];
        answer[6..12].copy_from_slice(&header[2..]);
        answer.extend_from_slice(records);
    }
    if let Ok(message::Response::Answer(Answer::Records(records))) = question.response(7, &answer) {
        assert!(!records.data.is_empty());
        let bytes: usize = records.data.iter().map(Vec::len).sum();
        assert!(bytes <= answer.len());
    }
    // Whatever else it is, it is refused without a fuss.
    let _ = question.response(0, data);
}

fn files(text: &str) {
    assert!(!resolv_conf::servers(text).is_empty());
    if let Err(error) = tsig::key(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// What is read as a URL is written as one, and fits a line of a request.
fn url(text: &str) {
    if let Ok(url) = text.parse::<Url>() {
        let written = url.to_string();
        assert!(written.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(written.parse(), Ok(url));
    }
}
