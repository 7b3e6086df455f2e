//! Which server is probed, and for what.

use std::path::PathBuf;
use std::str::FromStr;

use lastbyte_ad::http::Url;
use lastbyte_sizes::Host;

/// A server and a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    /// With the query.
    pub(super) path: String,
    /// Whom to trust; the machine's roots if absent.
    pub(super) ca: Option<PathBuf>,
}

impl FromStr for Target {
    type Err = String;

    /// `HOST`, `HOST:PORT` or `https://HOST[:PORT][/PATH]`.
    fn from_str(text: &str) -> Result<Target, String> {
        if text.starts_with("http://") {
            return Err(format!("{text:?} is without TLS: begin it with https://"));
        }
        let text = &in_letters_of_dns(text)?;
        let url = match text.contains("://") {
            true => text.to_owned(),
            // An address of IPv6 has colons of its own.
            false if text.matches(':').count() > 1 && !text.starts_with('[') => {
                format!("https://[{text}]/")
            }
            false => format!("https://{text}"),
        };
        let url: Url = url.parse().map_err(|error: lastbyte_ad::http::UrlError| {
            let error = error.to_string();
            match error.split_once(": ") {
                Some((_, hint)) => format!("{text:?} is no server: {hint}"),
                None => error,
            }
        })?;
        if url.port == 0 {
            return Err(format!("{text:?} is no server: use a port above 0"));
        }
        Ok(Target {
            host: Host {
                name: url.host,
                port: url.port,
            },
            path: if url.path.is_empty() {
                "/".to_owned()
            } else {
                url.path
            },
            ca: None,
        })
    }
}

/// The same with the host as DNS and server_name have it: in ASCII (IDNA), and without the dot that a whole name may end in
/// (RFC 6066, section 3).
fn in_letters_of_dns(text: &str) -> Result<String, String> {
    let begin = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(begin);
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains([',', ';']) {
        return Err(format!(
            "{text:?} is no server: names have no commas and no semicolons; write HOST:PORT, one a line"
        ));
    }
    if authority.starts_with('[') || authority.matches(':').count() > 1 {
        return Ok(text.to_owned());
    }
    let (name, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
    let ascii = if name.is_ascii() {
        name.to_owned()
    } else {
        idna::domain_to_ascii(name).map_err(|_| {
            format!("{text:?} is no server: its name has letters that no name in DNS has")
        })?
    };
    let name = ascii.strip_suffix('.').unwrap_or(&ascii);
    // RFC 1035, section 2.3.4.
    let is_label = |label: &str| (1..=63).contains(&label.len());
    if !name.is_empty() && (name.len() > 253 || !name.split('.').all(is_label)) {
        return Err(format!(
            "{text:?} is no server: between the dots of a name are 1 to 63 letters, and 253 in all"
        ));
    }
    Ok(format!("{scheme}{name}{port}{path}"))
}

impl Target {
    /// What is asked for.
    pub(super) fn request(&self) -> String {
        let name = if self.host.name.contains(':') {
            format!("[{}]", self.host.name)
        } else {
            self.host.name.clone()
        };
        let host = match self.host.port {
            443 => name,
            port => format!("{name}:{port}"),
        };
        format!(
            "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: lastbyte-probe/{}\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            self.path,
            env!("CARGO_PKG_VERSION")
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_as_people_write_them() {
        for (written, host, path) in [
            ("www.example.com", "www.example.com:443", "/"),
            ("www.example.com.", "www.example.com:443", "/"),
            ("WWW.Example.COM.:8443", "www.example.com:8443", "/"),
            (
                "https://www.example.com./a?b=c,d;e",
                "www.example.com:443",
                "/a?b=c,d;e",
            ),
            ("b\u{fc}cher.example", "xn--bcher-kva.example:443", "/"),
            ("B\u{dc}CHER.example.", "xn--bcher-kva.example:443", "/"),
            (
                "https://b\u{fc}cher.example:8443/x",
                "xn--bcher-kva.example:8443",
                "/x",
            ),
            (
                "\u{4f8b}\u{3048}\u{3002}example",
                "xn--r8jz45g.example:443",
                "/",
            ),
            (
                &format!("{}.example", "a".repeat(63)),
                &format!("{}.example:443", "a".repeat(63)),
                "/",
            ),
            ("[::1]:8443", "[::1]:8443", "/"),
            ("2001:db8::1", "[2001:db8::1]:443", "/"),
        ] {
            let target: Target = written.parse().unwrap();
            assert_eq!(
                (target.host.to_string().as_str(), target.path.as_str()),
                (host, path),
                "{written}"
            );
        }
        for (written, hint) in [
            ("www.example.com,443", "names have no commas"),
            ("www.example.com;443", "no semicolons"),
            ("a\u{2028}b.example", "letters that no name in DNS has"),
            ("www..example", "between the dots"),
            (".example", "between the dots"),
            (&format!("{}.example", "a".repeat(64)), "1 to 63 letters"),
            (&"a.".repeat(128), "253 in all"),
            (".", "is no server"),
            ("", "is no server"),
        ] {
            let refused = written.parse::<Target>().unwrap_err();
            assert!(refused.contains(hint), "{written}: {refused}");
        }
    }
}
