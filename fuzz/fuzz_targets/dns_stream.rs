//! DNS over TCP: what comes of a stream in whatever pieces, with the numbers that were asked with where it is to be read.
#![no_main]

use std::sync::LazyLock;

use lastbyte_ad::dns::fuzzing::ask_over;
use lastbyte_ad::dns::{Question, Rtype};
use lastbyte_fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());
static QUESTIONS: LazyLock<[Question; 2]> = LazyLock::new(|| {
    [Rtype::A, Rtype::from_int(65_280)].map(|rtype| Question {
        name: "server.example".parse().unwrap(),
        rtype,
    })
});

fuzz_target!(|data: &[u8]| {
    RUNTIME.block_on(async {
        let (own, mut other) = duplex(1 << 16);
        let server = async {
            let mut query = [0; 512];
            let mut id = [0; 2];
            let mut question = Vec::new();
            for (tag, piece) in pieces(data) {
                if tag & 1 != 0 || question.is_empty() {
                    // The next question, if there is one: length, id and what follows the header.
                    if let Ok(length) = tokio::select! {
                        biased;
                        length = other.read(&mut query) => length,
                        () = tokio::task::yield_now() => Ok(0),
                    } && length > 14
                    {
                        id.copy_from_slice(&query[2..4]);
                        question = query[14..length.saturating_sub(11).max(14)].to_vec();
                    }
                }
                let message = match tag >> 1 & 3 {
                    0 => piece.to_vec(),
                    // In front of which stands its length.
                    1 => framed(piece),
                    // An answer to just that, with these counts and records.
                    2 => {
                        let (header, records) = piece.split_at(piece.len().min(8));
                        let mut message = id.to_vec();
                        message.extend([0x84, 0, 0, 1]);
                        message.extend(header.iter().skip(2).chain(&[0; 6]).take(6));
                        message.extend(&question);
                        message.extend(records);
                        framed(&message)
                    }
                    _ => framed(&[&id, piece].concat()),
                };
                if other.write_all(&message).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            drop(other);
        };
        let (answers, ()) = tokio::join!(ask_over(own, &*QUESTIONS), server);
        assert_eq!(answers.len(), QUESTIONS.len());
    });
});

fn framed(message: &[u8]) -> Vec<u8> {
    let message = &message[..message.len().min(usize::from(u16::MAX))];
    [&(message.len() as u16).to_be_bytes(), message].concat()
}
