//! The heads of responses that other people's servers send (RFC 9112, 4).

use httparse::{EMPTY_HEADER, Response, Status};

use crate::lab::failure::Failure;

/// The most bytes of a head, and fields in it.
const MOST: usize = 16 << 10;
const FIELDS: usize = 64;

/// What has come of a head.
#[derive(Debug, Default)]
pub(super) struct Head(Vec<u8>);

impl Head {
    /// Takes what has come of a response that is to have `length` bytes of payload. Gives how many
    /// of these bytes are payload, once the head is whole.
    ///
    /// # Errors
    ///
    /// [`Failure::Response`] if it is no such response.
    pub(super) fn take(&mut self, bytes: &[u8], length: u64) -> Result<Option<usize>, Failure> {
        self.0.extend_from_slice(bytes);
        let mut fields = [EMPTY_HEADER; FIELDS];
        let mut response = Response::new(&mut fields);
        let parsed = response.parse(&self.0);
        match parsed.map_err(|error| Failure::Response(format!("is no HTTP/1.1: {error}")))? {
            Status::Complete(head) => {
                check(&response, length)?;
                Ok(Some(self.0.len() - head))
            }
            Status::Partial if self.0.len() > MOST => Err(Failure::Response(format!(
                "has a head of more than {MOST} bytes"
            ))),
            Status::Partial => Ok(None),
        }
    }
}

/// Whether a response has what was asked for, in so many bytes and nothing between them.
fn check(response: &Response<'_, '_>, length: u64) -> Result<(), Failure> {
    let code = response.code.unwrap_or_default();
    if code != 200 {
        return Err(Failure::Response(format!("has the status {code}, not 200")));
    }
    let mut fields = response.headers.iter();
    if let Some(coded) = fields.find(|field| is(field.name, "transfer-encoding")) {
        let coding = coded.value.escape_ascii();
        return Err(Failure::Response(format!("comes {coding}, not as it is")));
    }
    let fields = response.headers.iter();
    let lengths = fields.filter(|field| is(field.name, "content-length"));
    let lengths: Vec<String> = lengths
        .map(|field| field.value.escape_ascii().to_string())
        .collect();
    match lengths.as_slice() {
        [one] if *one == length.to_string() => Ok(()),
        [] => Err(Failure::Response("does not say its length".to_owned())),
        several => Err(Failure::Response(format!(
            "has a length of {}, not {length}",
            several.join(" and ")
        ))),
    }
}

fn is(name: &str, expected: &str) -> bool {
    name.eq_ignore_ascii_case(expected)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::Head;

    const USUAL: &str = "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 7\r\n\r\n";

    fn told(text: &str) -> String {
        let mut head = Head::default();
        head.take(text.as_bytes(), 7).unwrap_err().to_string()
    }

    #[test]
    fn other_responses_are_refused_with_the_reason() {
        let fields = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let refusals = [
            (
                USUAL.replace("200 OK", "404 Not Found"),
                "has the status 404",
            ),
            (USUAL.replace(": 7", ": 8"), "has a length of 8, not 7"),
            (
                fields("Content-Length: 7\r\nContent-Length: 9\r\n"),
                "7 and 9",
            ),
            (fields("Server: x\r\n"), "does not say its length"),
            (
                fields("Transfer-Encoding: chunked\r\nContent-Length: 7\r\n"),
                "comes chunked",
            ),
            ("SSH-2.0-OpenSSH\r\n".to_owned(), "is no HTTP/1.1"),
            (
                format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(20_000)),
                "a head of more than 16384 bytes",
            ),
        ];
        for (text, expected) in refusals {
            assert!(told(&text).contains(expected), "{text:?}: {}", told(&text));
        }
    }

    proptest! {
        /// However it is cut, what is behind the head is payload.
        #[test]
        fn a_head_ends_where_it_ends(cut in 0..USUAL.len(), behind in 0_usize..8) {
            let mut head = Head::default();
            let (first, rest) = USUAL.split_at(cut);
            prop_assert_eq!(head.take(first.as_bytes(), 7).unwrap(), None);
            let rest = [rest.as_bytes(), &vec![b'x'; behind]].concat();
            prop_assert_eq!(head.take(&rest, 7).unwrap(), Some(behind));
        }

        #[test]
        fn anything_is_taken_without_harm(pieces: Vec<Vec<u8>>) {
            let mut head = Head::default();
            for piece in pieces {
                if head.take(&piece, 7).is_err() {
                    break;
                }
            }
        }
    }
}
