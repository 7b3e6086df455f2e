//! What else serves an origin, as it says itself: the field Alt-Svc (RFC 7838, section 3).

use thiserror::Error;

/// Alternatives that are kept: servers name one or two.
pub const MOST_ALTERNATIVES: usize = 32;
/// The protocol identifier of HTTP/3 (RFC 9114, section 3.1). Identifiers are compared as they are written, as each has one way to
/// be (RFC 7838, section 3); those of drafts, such as `h3-29`, are of other protocols.
const HTTP_3: &str = "h3";

/// Another place where an origin is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The protocol's identifier (ALPN), with what no token has percent-encoded.
    pub protocol: String,
    /// The host; none where that is the origin's.
    pub host: Option<String>,
    /// The port.
    pub port: u16,
}

/// Where an origin is served over HTTP/3, as its first alternative says that a probe can follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Http3 {
    /// At its own host.
    Here(u16),
    /// At other hosts alone, of which this is the first.
    Elsewhere(Alternative),
}

/// Why a field is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("its Alt-Svc has no {expected} at byte {at}")]
pub struct AltSvcError {
    expected: &'static str,
    at: usize,
}

/// Reads what the fields of a response say, in their order. None are left by `clear`, which has former ones forgotten.
///
/// # Errors
///
/// Where it is no Alt-Svc: then none of it counts.
pub fn alternatives(field: &[u8]) -> Result<Vec<Alternative>, AltSvcError> {
    if field.trim_ascii() == b"clear" {
        return Ok(Vec::new());
    }
    let mut reader = Reader { field, at: 0 };
    let mut alternatives = Vec::new();
    loop {
        // A list may have empty elements (RFC 9110, section 5.6.1.2).
        while reader.take_space() | reader.take(b',') {}
        if reader.is_at_end() {
            return Ok(alternatives);
        }
        let alternative = reader.alternative()?;
        if alternatives.len() < MOST_ALTERNATIVES {
            alternatives.push(alternative);
        }
        reader.take_space();
        if !reader.is_at_end() && !reader.take(b',') {
            return Err(reader.expected("comma"));
        }
    }
}

/// Where an origin with this host is served over HTTP/3, if it says so.
#[must_use]
pub fn http3(alternatives: &[Alternative], host: &str) -> Option<Http3> {
    let mut all = alternatives
        .iter()
        .filter(|alternative| alternative.protocol == HTTP_3);
    let is_here = |alternative: &&Alternative| match &alternative.host {
        None => true,
        Some(other) => other.trim_matches(['[', ']']).eq_ignore_ascii_case(host),
    };
    let here = all.clone().find(is_here);
    match here {
        Some(alternative) => Some(Http3::Here(alternative.port)),
        None => all.next().cloned().map(Http3::Elsewhere),
    }
}

struct Reader<'f> {
    field: &'f [u8],
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.field.get(self.at).copied()
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.field.len()
    }

    fn expected(&self, expected: &'static str) -> AltSvcError {
        AltSvcError {
            expected,
            at: self.at,
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.next() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn take_space(&mut self) -> bool {
        let before = self.at;
        while self.take(b' ') || self.take(b'\t') {}
        self.at > before
    }

    fn alternative(&mut self) -> Result<Alternative, AltSvcError> {
        let begin = self.at;
        let protocol = self.token("protocol")?;
        if !is_encoded_well(&protocol) {
            self.at = begin;
            return Err(self.expected("protocol"));
        }
        if !self.take(b'=') {
            return Err(self.expected("\"=\""));
        }
        let begin = self.at;
        let authority = self.quoted("\"[HOST]:PORT\" in quotation marks")?;
        let Some((host, port)) = authority_of(&authority) else {
            self.at = begin;
            return Err(self.expected("[HOST]:PORT with a port from 1 to 65535"));
        };
        loop {
            let before = self.at;
            self.take_space();
            if !self.take(b';') {
                self.at = before;
                break;
            }
            self.take_space();
            // Parameters that are not known are ignored (RFC 7838, section 3.1), as are those that are: how long it is fresh.
            self.token("parameter")?;
            if !self.take(b'=') {
                return Err(self.expected("\"=\""));
            }
            match self.next() {
                Some(b'"') => self.quoted("value")?,
                _ => self.token("value")?,
            };
        }
        Ok(Alternative {
            protocol,
            host,
            port,
        })
    }

    /// RFC 9110, section 5.6.2.
    fn token(&mut self, expected: &'static str) -> Result<String, AltSvcError> {
        let mut token = String::new();
        while let Some(byte) = self.next()
            && (byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        {
            token.push(byte.into());
            self.at += 1;
        }
        if token.is_empty() {
            return Err(self.expected(expected));
        }
        Ok(token)
    }

    /// What is in quotation marks (RFC 9110, section 5.6.4), in ASCII.
    fn quoted(&mut self, expected: &'static str) -> Result<String, AltSvcError> {
        let begin = self.at;
        let mut text = String::new();
        if !self.take(b'"') {
            return Err(self.expected(expected));
        }
        while !self.take(b'"') {
            // What is behind it is as it is.
            self.take(b'\\');
            match self.next() {
                Some(byte) if byte == b'\t' || (b' '..=b'~').contains(&byte) => {
                    text.push(byte.into());
                }
                _ => {
                    self.at = begin;
                    return Err(self.expected(expected));
                }
            }
            self.at += 1;
        }
        Ok(text)
    }
}

/// Whether each percent sign stands before two digits in hexadecimal.
fn is_encoded_well(token: &str) -> bool {
    let mut behind = token.split('%').skip(1);
    behind.all(|text| {
        let digits = text.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// `[HOST]:PORT`, the host as URIs have it (RFC 3986, section 3.2.2).
fn authority_of(authority: &str) -> Option<(Option<String>, u16)> {
    const LONGEST: usize = 255;
    let (host, port) = authority.rsplit_once(':')?;
    let is_digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| is_digits && *port > 0)?;
    if host.is_empty() {
        return Some((None, port));
    }
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
    let of_address = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
    let is_host = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => !address.is_empty() && address.bytes().all(of_address),
        None => host.bytes().all(of_name),
    };
    (is_host && host.len() <= LONGEST).then(|| (Some(host.to_owned()), port))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn alternative(protocol: &str, host: Option<&str>, port: u16) -> Alternative {
        Alternative {
            protocol: protocol.to_owned(),
            host: host.map(str::to_owned),
            port,
        }
    }

    fn read(field: &str) -> Result<Vec<Alternative>, String> {
        alternatives(field.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn alternatives_are_read_in_their_order() {
        let h3 = alternative("h3", None, 443);
        for field in [
            "h3=\":443\"",
            "h3=\":443\"; ma=86400",
            "  h3=\":443\";ma=86400 ;\tpersist=1 ",
            ", ,h3=\":443\"; x=\"a,b;c\\\"d\",",
            "h3=\":\\443\"",
        ] {
            assert_eq!(read(field), Ok(vec![h3.clone()]), "{field}");
        }
        assert_eq!(
            read("h2=\"alt.example:8000\", h3=\":443\"; ma=1,h3-29=\"[::1]:443\""),
            Ok(vec![
                alternative("h2", Some("alt.example"), 8000),
                h3,
                alternative("h3-29", Some("[::1]"), 443),
            ])
        );
        // As RFC 7838 has it, of the protocol "w=x:y#z".
        assert_eq!(
            read("w%3Dx%3Ay#z=\"x%41.example:1\""),
            Ok(vec![alternative("w%3Dx%3Ay#z", Some("x%41.example"), 1)])
        );
        for nothing in ["clear", " clear ", "", ","] {
            assert_eq!(read(nothing), Ok(Vec::new()), "{nothing}");
        }
    }

    #[test]
    fn what_is_no_alternative_costs_all_of_them() {
        for (field, at) in [
            ("CLEAR", 5),
            ("clear, h3=\":443\"", 5),
            ("h3", 2),
            ("h3=", 3),
            ("h3=:443", 3),
            ("h3=\":443", 3),
            ("h3=\":0\"", 3),
            ("h3=\":65536\"", 3),
            ("h3=\":+443\"", 3),
            ("h3=\":\"", 3),
            ("h3=\"\"", 3),
            ("h3=\"443\"", 3),
            ("h3=\"a b:443\"", 3),
            ("h3=\"[a:443\"", 3),
            ("h3=\"[]:443\"", 3),
            ("=\":443\"", 0),
            ("h%3=\":443\"", 0),
            ("h%zz=\":443\"", 0),
            ("h 3=\":443\"", 1),
            ("h3=\":443\"; ma", 13),
            ("h3=\":443\"; ma=", 14),
            ("h3=\":443\"; =1", 11),
            ("h3=\":443\";", 10),
            ("h3=\":443\" h2=\":443\"", 10),
            ("h3=\":443\", \u{e9}=\":1\"", 11),
            ("h3=\":443\u{e9}\"", 3),
        ] {
            let refused = read(field).unwrap_err();
            let place = format!(" at byte {at}");
            assert!(refused.ends_with(&place), "{field}: {refused}");
        }
    }

    #[test]
    fn http3_is_followed_at_its_own_host() {
        let host = "site.example";
        for (field, found) in [
            ("h3=\":443\"", Some(Http3::Here(443))),
            ("h3=\"SITE.example:8443\"", Some(Http3::Here(8443))),
            (
                "h3=\"alt.example:443\"",
                Some(Http3::Elsewhere(alternative(
                    "h3",
                    Some("alt.example"),
                    443,
                ))),
            ),
            // The first that can be followed.
            (
                "h3=\"alt.example:443\", h3=\":444\", h3=\":445\"",
                Some(Http3::Here(444)),
            ),
            // Others' protocols, drafts, and what is written in another way than the one that there is.
            ("h2=\":443\", hq=\":443\", quic=\":443\"", None),
            ("h3-29=\":443\"", None),
            ("%683=\":443\", H3=\":443\", h3%20=\":443\"", None),
            ("clear", None),
        ] {
            let read = read(field).unwrap();
            assert_eq!(http3(&read, host), found, "{field}");
        }
        let address = read("h3=\"[::1]:443\"").unwrap();
        assert_eq!(http3(&address, "::1"), Some(Http3::Here(443)));
    }

    #[test]
    fn of_a_huge_field_the_first_are_kept() {
        let field = "h3=\"alt.example:1\",".repeat(3_000) + "h3=\":443\"";
        let read = read(&field).unwrap();
        assert_eq!(read.len(), MOST_ALTERNATIVES);
        let endless = format!("h3=\"{}:443\"", "a".repeat(60_000));
        assert!(alternatives(endless.as_bytes()).is_err());
    }

    fn any_alternative() -> impl Strategy<Value = (Alternative, String)> {
        let host = prop::option::of("[a-z0-9-]{1,20}(\\.[a-z]{2,5})?|\\[[0-9a-f:]{1,20}\\]");
        let parameters = "(; ?[a-z]{1,5}=([0-9]{1,6}|\"[ -!#-\\[\\]-~]{0,9}\")){0,3}";
        ("[a-z0-9!.-]{1,9}", host, 1..=u16::MAX, parameters).prop_map(
            |(protocol, host, port, parameters)| {
                let shown = host.as_deref().unwrap_or_default();
                let written = format!("{protocol}=\"{shown}:{port}\"{parameters}");
                let alternative = Alternative {
                    protocol,
                    host,
                    port,
                };
                (alternative, written)
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(all in prop::collection::vec(any_alternative(), 1..8), gap in " ?, ?") {
            let (alternatives, written): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            prop_assert_eq!(read(&written.join(&gap)), Ok(alternatives));
        }

        /// Without harm, and within what there is.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(error) = alternatives(&bytes) {
                prop_assert!(error.at <= bytes.len());
            }
        }
    }
}
