//! Where a response begins in what a server sends.

use lastbyte_tls::observer::Observation;

/// What a connection speaks.
pub(super) enum Http {
    /// Responses and nothing else (RFC 9112).
    One,
    /// Frames (RFC 9113, 4.1).
    Two(Frames),
}

/// Frames that go on from record to record.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: Vec<u8>,
    /// How much of a frame's payload is to come.
    payload: usize,
}

impl Http {
    pub(super) fn of(observation: &Observation) -> Http {
        match observation.alpn.as_deref() {
            Some("h2") => Http::Two(Frames::default()),
            _ => Http::One,
        }
    }

    /// Whether what the server sent next has the first byte of a response.
    pub(super) fn responds(&mut self, content: &[u8]) -> bool {
        match self {
            Http::One => !content.is_empty(),
            Http::Two(frames) => frames.respond(content),
        }
    }
}

impl Frames {
    const HEADER: usize = 9;
    const HEADERS: u8 = 1;

    fn respond(&mut self, mut content: &[u8]) -> bool {
        loop {
            let (payload, rest) = content.split_at(self.payload.min(content.len()));
            self.payload -= payload.len();
            let missing = Self::HEADER - self.header.len();
            let (header, rest) = rest.split_at(missing.min(rest.len()));
            self.header.extend_from_slice(header);
            let [a, b, c, kind, ..] = self.header[..] else {
                return false;
            };
            if self.header.len() < Self::HEADER {
                return false;
            }
            if kind == Self::HEADERS {
                return true;
            }
            self.payload = u32::from_be_bytes([0, a, b, c]) as usize;
            self.header.clear();
            content = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frames, Http};

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let [_, a, b, c] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
        [&[a, b, c, kind, 0, 0, 0, 0, 1][..], payload].concat()
    }

    #[test]
    fn http_1_1_responds_with_its_first_byte() {
        assert!(!Http::One.responds(b""));
        assert!(Http::One.responds(b"H"));
    }

    proptest! {
        /// Settings with anything in them, an acknowledgement, and then headers; in records of any
        /// length.
        #[test]
        fn http_2_responds_with_its_first_frame_of_headers(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..5),
            cuts in prop::collection::vec(1_usize..30, 0..20),
        ) {
            let before: Vec<u8> = payloads.iter().flat_map(|payload| frame(4, payload)).collect();
            let all = [before.clone(), frame(1, b"status")].concat();
            let mut http = Http::Two(Frames::default());
            let mut rest = &all[..];
            let mut lengths = cuts.into_iter().chain(std::iter::repeat(all.len()));
            let mut read = 0;
            loop {
                let (record, behind) = rest.split_at(lengths.next().unwrap_or(1).min(rest.len()));
                read += record.len();
                rest = behind;
                let responds = http.responds(record);
                prop_assert_eq!(responds, read >= before.len() + 9);
                if responds {
                    break;
                }
            }
        }

        #[test]
        fn anything_is_read(records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..50)) {
            let mut http = Http::Two(Frames::default());
            for record in records {
                http.responds(&record);
            }
        }
    }
}
