//! The head of a server's response, as it comes: HTTP/1.1 (RFC 9112), with what stands before it.

use httparse::{EMPTY_HEADER, ParserConfig, Status};
use lastbyte_link::visible;
use thiserror::Error;

use crate::alt_svc::{AltSvcError, Alternative, alternatives};
use crate::body::Body;

/// A head, or all that comes before it together, has no more bytes.
pub const MOST_HEAD: usize = 64 << 10;
/// Nor a head more fields.
const MOST_FIELDS: usize = 100;
/// Interim responses (RFC 9110, section 15.2) that are read past: servers send one or two.
pub const MOST_INTERIM: usize = 32;
/// Characters of a field that are kept.
const MOST_VALUE: usize = 300;

/// What has come of a response until its head is whole.
#[derive(Debug, Default)]
pub struct Head {
    /// What no interim response has taken.
    bytes: Vec<u8>,
    interim: usize,
    /// Of all of them.
    interim_bytes: usize,
}

/// A whole head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its status code.
    pub status: u16,
    /// Where it sends to, as it can be shown.
    pub location: Option<String>,
    /// What else serves the origin (RFC 7838), as it can be shown.
    pub alt_svc: Option<String>,
    /// The same as it is read.
    pub alternatives: Result<Vec<Alternative>, AltSvcError>,
    /// Its body, with what of it came with the head.
    pub body: Body,
}

/// Why what came is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeadError {
    /// It is not HTTP/1.1.
    #[error("its response is none of HTTP/1.1")]
    NotHttp,
    /// It does not end.
    #[error("the head of its response is longer than {} KiB, which is the most that is read", MOST_HEAD >> 10)]
    TooLong,
    /// There are too many responses before it.
    #[error(
        "it sends more than {MOST_INTERIM} interim responses (1xx), which is the most that is read, and no response"
    )]
    TooManyInterim,
}

impl Head {
    /// Adds what has come. `None` until the head is whole; nothing is parsed before a line has
    /// ended.
    ///
    /// # Errors
    ///
    /// If it is no response.
    pub fn add(&mut self, new: &[u8]) -> Result<Option<Response>, HeadError> {
        self.bytes.extend_from_slice(new);
        if !begins_as_http(&self.bytes) {
            return Err(HeadError::NotHttp);
        }
        if !new.contains(&b'\n') {
            return self.within_bounds();
        }
        loop {
            let mut fields = [EMPTY_HEADER; MOST_FIELDS];
            let mut parsed = httparse::Response::new(&mut fields);
            let mut parser = ParserConfig::default();
            // What one field says wrong is no matter of the status.
            parser.ignore_invalid_headers_in_responses(true);
            let length = match parser.parse_response(&mut parsed, &self.bytes) {
                Ok(Status::Complete(length)) => length,
                Ok(Status::Partial) => return self.within_bounds(),
                Err(_) => return Err(HeadError::NotHttp),
            };
            let status = parsed.code.unwrap_or_default();
            if !matches!(status, 100 | 102..=199) {
                return Ok(Some(self.response(status, length)));
            }
            self.interim += 1;
            self.interim_bytes += length;
            if self.interim > MOST_INTERIM {
                return Err(HeadError::TooManyInterim);
            }
            self.bytes.drain(..length);
        }
    }

    fn within_bounds(&self) -> Result<Option<Response>, HeadError> {
        if self.bytes.len() + self.interim_bytes > MOST_HEAD {
            Err(HeadError::TooLong)
        } else {
            Ok(None)
        }
    }

    /// How many interim responses came.
    #[must_use]
    pub fn interim(&self) -> usize {
        self.interim
    }

    fn response(&self, status: u16, length: usize) -> Response {
        let (lines, here) = self.bytes.split_at_checked(length).unwrap_or_default();
        let coding = fields(lines, "transfer-encoding").last();
        let is_chunked = coding.is_some_and(|coding| {
            let last = coding.rsplit(',').next().unwrap_or_default();
            last.trim().eq_ignore_ascii_case("chunked")
        });
        let mut body = match status {
            204 | 304 => Body::of(0),
            _ if is_chunked => Body::chunked(),
            _ => Body::of_lengths(&fields(lines, "content-length").collect::<Vec<_>>()),
        };
        body.add(here);
        Response {
            status,
            location: field(lines, "location"),
            alt_svc: field(lines, "alt-svc"),
            // Several fields are one list (RFC 9110, section 5.3).
            alternatives: alternatives(&values(lines, "alt-svc").collect::<Vec<_>>().join(&b',')),
            body,
        }
    }
}

/// Whether it can be the begin of a response: a frame of HTTP/2 need never have a line that ends.
fn begins_as_http(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_start();
    b"HTTP/1."
        .iter()
        .zip(bytes)
        .all(|(expected, byte)| expected == byte)
}

/// What a field of a head says, as it can be shown: the first of this name.
fn field(head: &[u8], name: &str) -> Option<String> {
    fields(head, name).next()
}

/// The same of all fields of this name, whatever bytes they have.
fn fields(head: &[u8], name: &str) -> impl Iterator<Item = String> {
    values(head, name).map(|value| {
        let text: String = String::from_utf8_lossy(value)
            .chars()
            .take(MOST_VALUE)
            .collect();
        visible(&text)
    })
}

/// The same as they came.
fn values<'h>(head: &'h [u8], name: &str) -> impl Iterator<Item = &'h [u8]> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    lines.filter_map(move |line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (found, value) = line.split_at_checked(colon)?;
        let value = value.get(1..)?;
        found
            .eq_ignore_ascii_case(name.as_bytes())
            .then(|| value.trim_ascii())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> Response {
        Head::default().add(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_field_that_is_none_costs_no_other() {
        let response = whole(
            "HTTP/1.1 302 Found\r\nLocation: https://a.example/\u{1b}[31m\r\nContent-Length: 2\r\n\r\nab",
        );
        assert_eq!((response.status, response.body.is_whole()), (302, true));
        assert_eq!(response.location.unwrap(), "https://a.example/\\u{1b}[31m");
    }

    #[test]
    fn what_serves_an_origin_besides_may_stand_in_several_fields() {
        let response = whole(
            "HTTP/1.1 200 OK\r\nAlt-Svc: h2=\":1\"\r\nX: y\r\nalt-svc: h3=\":2\"; ma=3\r\n\r\n",
        );
        let ports: Vec<_> = (response.alternatives.unwrap().iter())
            .map(|alternative| alternative.port)
            .collect();
        assert_eq!(ports, [1, 2]);
        assert_eq!(response.alt_svc.unwrap(), "h2=\":1\"");
        // What is shown is cut, and what is read is not.
        let long = format!("{}h3=\":443\"", "h2=\"alt.example:1\", ".repeat(31));
        let response = whole(&format!("HTTP/1.1 200 OK\r\nAlt-Svc: {long}\r\n\r\n"));
        assert_eq!(response.alternatives.unwrap().len(), 32);
        assert_eq!(response.alt_svc.unwrap().len(), MOST_VALUE);
    }

    #[test]
    fn a_head_is_read_when_it_is_whole() {
        let mut head = Head::default();
        assert_eq!(head.add(b"HTTP/1.1 200 OK\r\nAlt-Svc: h3"), Ok(None));
        let response = head.add(b"=\":443\"\r\n\r\n").unwrap().unwrap();
        assert_eq!(
            (response.alt_svc.unwrap().as_str(), response.body),
            ("h3=\":443\"", Body::until_closed())
        );
        assert!(whole("HTTP/1.1 204 No Content\r\n\r\n").body.is_whole());
        // Chunks say where they end, whatever else does.
        let chunked = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ntransfer-encoding: gzip, Chunked\r\n\r\n2\r\nab\r\n0\r\n";
        assert!(!whole(chunked).body.is_whole());
        assert!(whole(&format!("{chunked}\r\n")).body.is_whole());
        for other in [
            &b"220 mail\r\n\r\n"[..],
            b"220",
            b"\0\0\x12\x04\0",
            b"HTTP/2",
        ] {
            assert_eq!(Head::default().add(other), Err(HeadError::NotHttp));
        }
        for begin in [&b"H"[..], b"\r\nHTTP", b"HTTP/1.1 2"] {
            assert_eq!(Head::default().add(begin), Ok(None));
        }
    }

    /// As many as are read past, one more, and what would once have called itself thousands of
    /// times.
    #[test]
    fn interim_responses_are_read_past_up_to_a_limit() {
        let interim = |count: usize| "HTTP/1.1 103 \r\n\r\n".repeat(count);
        let last = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
        assert_eq!(whole(&(interim(MOST_INTERIM) + last)).body, Body::of(7));
        for count in [MOST_INTERIM + 1, 3_000, 100_000] {
            let told = Head::default().add((interim(count) + last).as_bytes());
            assert_eq!(told, Err(HeadError::TooManyInterim));
        }
        // Their bytes count, too.
        let long = format!("HTTP/1.1 103 \r\nLink: {}\r\n\r\n", "a".repeat(8 << 10)).repeat(8);
        assert_eq!(
            Head::default().add((long + "HTTP/1.1 200").as_bytes()),
            Err(HeadError::TooLong)
        );
    }

    #[test]
    fn what_does_not_end_is_given_up() {
        let endless = format!("HTTP/1.1 200 {}", "a".repeat(MOST_HEAD));
        let told = Head::default().add(endless.as_bytes());
        assert_eq!(told, Err(HeadError::TooLong));
        let fields = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(MOST_HEAD / 6));
        assert!(Head::default().add(fields.as_bytes()).is_err());
    }

    proptest! {
        /// However it is cut, the same comes of it.
        #[test]
        fn cuts_change_nothing(interim in 0_usize..40, cuts in prop::collection::vec(1_usize..60, 0..40)) {
            let text = "HTTP/1.1 100 Continue\r\n\r\n".repeat(interim)
                + "HTTP/1.1 200 OK\r\nLocation: x\r\nContent-Length: 3\r\n\r\n";
            let at_once = Head::default().add(text.as_bytes());
            let (mut head, mut left, mut told) = (Head::default(), text.as_bytes(), Ok(None));
            let mut cuts = cuts.into_iter();
            while !left.is_empty() && matches!(told, Ok(None)) {
                let (now, then) = left.split_at(cuts.next().unwrap_or(left.len()).min(left.len()));
                told = head.add(now);
                left = then;
            }
            prop_assert_eq!(told, at_once);
        }
    }
}
