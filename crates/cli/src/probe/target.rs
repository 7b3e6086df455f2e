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
            path: match url.path.is_empty() {
                true => "/".to_owned(),
                false => url.path,
            },
            ca: None,
        })
    }
}

impl Target {
    /// What is asked for.
    pub(super) fn request(&self) -> String {
        let name = match self.host.name.contains(':') {
            true => format!("[{}]", self.host.name),
            false => self.host.name.clone(),
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
