//! Where the TLS record ends that a socket is in the middle of.

/// Length of a record's header (RFC 8446, section 5.1).
const HEADER: usize = 5;

/// Follows the records in a stream of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordBoundary {
    header: [u8; HEADER],
    /// Bytes of the current record that were seen, its header included.
    seen: usize,
}

impl RecordBoundary {
    /// The stream goes on with `bytes`.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(self.missing().min(bytes.len()));
            for (to, from) in self.header.iter_mut().skip(self.seen).zip(part) {
                *to = *from;
            }
            self.seen += part.len();
            bytes = rest;
            if self.missing() == 0 {
                self.seen = 0;
            }
        }
    }

    /// Bytes of the current record that were seen.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// At least so many bytes must come before another record is complete: what the current
    /// record lacks, or what its header lacks.
    pub(super) fn missing(&self) -> usize {
        let whole = if self.seen < HEADER {
            HEADER
        } else {
            HEADER + usize::from(u16::from_be_bytes([self.header[3], self.header[4]]))
        };
        whole - self.seen
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(body: usize) -> Vec<u8> {
        let length = (body as u16).to_be_bytes();
        let mut record = vec![23, 3, 3, length[0], length[1]];
        record.resize(HEADER + body, 0xff);
        record
    }

    #[test]
    fn a_record_is_missed_first_by_its_header_then_by_its_body() {
        let mut boundary = RecordBoundary::default();
        assert_eq!((boundary.seen(), boundary.missing()), (0, 5));
        let record = record(1000);
        boundary.pass(&record[..3]);
        assert_eq!((boundary.seen(), boundary.missing()), (3, 2));
        boundary.pass(&record[3..5]);
        assert_eq!((boundary.seen(), boundary.missing()), (5, 1000));
        boundary.pass(&record[5..105]);
        assert_eq!((boundary.seen(), boundary.missing()), (105, 900));
        boundary.pass(&record[105..]);
        assert_eq!((boundary.seen(), boundary.missing()), (0, 5));
    }

    #[test]
    fn a_record_without_a_body_ends_with_its_header() {
        let mut boundary = RecordBoundary::default();
        boundary.pass(&[record(0), record(2)[..6].to_vec()].concat());
        assert_eq!((boundary.seen(), boundary.missing()), (6, 1));
    }

    proptest! {
        #[test]
        fn what_is_missing_completes_a_record_however_the_stream_is_cut(
            bodies in prop::collection::vec(0usize..40_000, 1..8),
            cuts in prop::collection::vec(1usize..5_000, 1..200),
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|body| record(*body)).collect();
            let mut ends = Vec::new();
            for body in &bodies {
                ends.push(ends.last().unwrap_or(&0) + HEADER + body);
            }
            let mut boundary = RecordBoundary::default();
            let mut at = 0;
            for cut in cuts {
                let next = (at + cut).min(stream.len());
                boundary.pass(&stream[at..next]);
                at = next;
                let start = *ends.iter().rev().find(|end| **end <= at).unwrap_or(&0);
                prop_assert_eq!(boundary.seen(), at - start);
                if let Some(end) = ends.iter().find(|end| **end > at) {
                    let header = start + HEADER;
                    let expected = if at < header { header } else { *end };
                    prop_assert_eq!(boundary.missing(), expected - at);
                }
            }
        }
    }
}
