//! What the clients of PQTLS-AD read of others: DNS messages, HTTP responses, resolv.conf, key files
//! and URLs.
#![no_main]

use lastbyte_ad::dns::{Answer, Question, Rtype, message, resolv_conf, tsig};
use lastbyte_ad::http::{Response, Url};
use lastbyte_fuzz::pieces;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    match kind % 4 {
        0 => dns(data),
        1 => http(data),
        2 => files(&String::from_utf8_lossy(data)),
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

/// However it comes in pieces, it is the same response.
fn http(data: &[u8]) {
    let pieces: Vec<_> = pieces(data).map(|(_, piece)| piece).collect();
    let read = |pieces: &[&[u8]]| {
        let mut response = Response::default();
        let mut body = Vec::new();
        let pushed = pieces
            .iter()
            .try_for_each(|piece| response.push(piece, &mut body));
        let closed = pushed.and_then(|()| response.close());
        (closed.is_ok(), response.status(), body)
    };
    let whole = read(&[&pieces.concat()]);
    let cut = read(&pieces);
    if whole.0 {
        assert_eq!(whole, cut);
    }
}

fn files(text: &str) {
    assert!(!resolv_conf::servers(text).is_empty());
    if let Err(error) = tsig::key(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// What is read as a URL is written as one, and its request is one request.
fn url(text: &str) {
    if let Ok(url) = text.parse::<Url>() {
        let request = String::from_utf8(url.request()).unwrap();
        assert_eq!(request.matches("\r\n\r\n").count(), 1);
        assert_eq!(request.matches("\r\n").count(), 6);
        assert_eq!(url.to_string().parse(), Ok(url));
    }
}
