//! What a response takes on the wire besides its body.

/// How responses are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// As text (RFC 9112), without fields that the server adds, but `content-length`.
    Http1,
    /// In frames (RFC 9113).
    Http2(Frames),
}

/// How a server writes a response whose fields are all literals (RFC 7541, 6.2.2 and 6.2.3), as
/// those of recorded pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// The bytes of fields that it adds, besides `content-length`.
    pub added: u64,
    /// Whether it knows names that HPACK has numbers for; otherwise it writes them out, but for
    /// those of the content.
    pub has_numbers: bool,
    /// What the first response of a connection takes besides: the size of the table in which fields
    /// could be kept (RFC 7541, 6.3).
    pub first: u64,
    /// The most bytes of a body in one frame.
    pub most: u64,
    /// The largest body whose last frame says that it is the last: after a larger one comes an
    /// empty frame.
    pub whole: u64,
}

/// How long each character of ours is in HPACK's code (RFC 7541, appendix B), in bits.
const CODE: [(&str, usize); 8] = [
    ("012aceiost", 5),
    (" %-./3456789=A_bdfghlmnpru", 6),
    (":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz", 7),
    ("&*,;XZ", 8),
    ("!\"()?", 10),
    ("'+|", 11),
    ("#>", 12),
    // What is not here does not occur, and is as long as this at most.
    ("$@[]~", 13),
];
/// Fields that HPACK has a number for (RFC 7541, appendix A), of those that are sent here.
const NUMBERED: [&str; 6] = [
    "access-control-allow-origin",
    "cache-control",
    "content-length",
    "content-type",
    "etag",
    "location",
];
/// What every frame begins with (RFC 9113, 4.1).
const FRAME: u64 = 9;

impl Framing {
    /// The largest body with which a response of these fields takes no more bytes than `whole`, as
    /// browsers count them: all of its frames, or the whole text. None if even an empty one takes
    /// more.
    ///
    /// It takes exactly `whole` but where one byte more of body needs another frame, or another
    /// digit in `content-length`.
    pub(super) fn body(
        self,
        whole: u64,
        fields: &[(String, String)],
        is_first: bool,
    ) -> Option<u64> {
        let (mut least, mut most) = (0, whole);
        if self.response(0, fields, is_first) > whole {
            return None;
        }
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            if self.response(middle, fields, is_first) > whole {
                most = middle - 1;
            } else {
                least = middle;
            }
        }
        Some(least)
    }

    /// What a response takes with so large a body.
    pub(super) fn response(self, body: u64, fields: &[(String, String)], is_first: bool) -> u64 {
        let length = ("content-length".to_owned(), body.to_string());
        let fields = fields.iter().chain([&length]);
        match self {
            Framing::Http1 => {
                let fields = fields.map(|(name, value)| name.len() + value.len() + ": \r\n".len());
                let head = "HTTP/1.1 200 OK\r\n\r\n".len() + fields.sum::<usize>();
                head as u64 + body
            }
            Framing::Http2(frames) => {
                let fields = fields.map(|(name, value)| frames.field(name, value));
                // The status, 200, has a number itself.
                let head = FRAME + 1 + fields.sum::<u64>() + frames.added;
                let first = if is_first { frames.first } else { 0 };
                let end = u64::from(body > frames.whole);
                let count = body.div_ceil(frames.most.max(1)).max(1) + end;
                head + first + FRAME * count + body
            }
        }
    }
}

impl Frames {
    fn field(self, name: &str, value: &str) -> u64 {
        // Of the content's fields even who writes names out knows the numbers.
        let is_numbered =
            NUMBERED.contains(&name) && (self.has_numbers || name.starts_with("content-"));
        let name = match (is_numbered, self.has_numbers) {
            // In four bits there is no room for those numbers, in six there is.
            (true, true) => 2,
            (true, false) => 1,
            (false, _) => 1 + text(name),
        };
        name + text(value)
    }
}

/// A text (RFC 7541, 5.2) of less than 127 bytes, in the code or as it is, whichever is shorter.
fn text(text: &str) -> u64 {
    let bits = |letter: char| {
        let code = CODE.iter().find(|(letters, _)| letters.contains(letter));
        code.map_or(13, |(_, bits)| *bits)
    };
    let coded = text.chars().map(bits).sum::<usize>().div_ceil(8);
    1 + coded.min(text.len()) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frames, Framing};

    const NODE: Framing = Framing::Http2(Frames {
        added: 0,
        has_numbers: true,
        first: 3,
        most: 16_384,
        whole: u64::MAX,
    });
    /// Of the same fields.
    const GO: Framing = Framing::Http2(Frames {
        added: 0,
        has_numbers: true,
        first: 1,
        most: 16_384,
        whole: 4_096,
    });

    fn fields(content_type: &str) -> Vec<(String, String)> {
        let fields = [
            ("content-type", content_type),
            ("cache-control", "no-store"),
            ("access-control-allow-origin", "*"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        fields.to_vec()
    }

    /// What Chromium 156 reports of Node.js 24.
    #[test]
    fn responses_are_as_large_as_a_browser_has_counted() {
        let html = fields("text/html; charset=utf-8");
        assert_eq!(NODE.response(534, &html, true), 596);
        let script = fields("text/javascript; charset=utf-8");
        let counted = [
            (0, 61),
            (1, 62),
            (100, 162),
            (1000, 1063),
            (16_383, 16_447),
            (16_384, 16_448),
            (16_385, 16_458),
            (65_537, 65_637),
            (3_000_000, 3_001_712),
        ];
        for (body, whole) in counted {
            assert_eq!(NODE.response(body, &script, false), whole, "{body}");
        }
    }

    /// What it reports of Go 1.27.
    #[test]
    fn an_empty_frame_is_the_last() {
        let fields = [
            ("content-type", "image/png"),
            ("cache-control", "max-age=3600"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let empty = GO.response(4_097, &fields, false) - GO.response(4_096, &fields, false);
        assert_eq!(empty, 1 + 9);
        for (body, whole) in [(7_991, 8_047), (39_999, 40_074)] {
            assert_eq!(GO.response(body, &fields, false), whole, "{body}");
        }
    }

    proptest! {
        #[test]
        fn a_body_is_the_largest_that_fits(whole in 0_u64..3_000_000, is_first: bool, framing in 0..3_usize) {
            let framing = [Framing::Http1, NODE, GO].into_iter().nth(framing).unwrap_or(NODE);
            let fields = fields("image/png");
            let response = |body| framing.response(body, &fields, is_first);
            match framing.body(whole, &fields, is_first) {
                None => prop_assert!(response(0) > whole),
                Some(body) => {
                    prop_assert!(response(body) <= whole && response(body + 1) > whole);
                    prop_assert!(whole - response(body) < 11, "{} of {whole}", response(body));
                }
            }
        }
    }
}
