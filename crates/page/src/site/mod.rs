//! A page as files that servers serve.

mod folder;
mod font;
mod image;
mod text;

use std::path::Path;

use lastbyte_link::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::page::{Kind, Page};

/// What each origin of a page answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The origins' names, with a port where it is not the usual one: `o0.page.example`.
    pub origins: Vec<String>,
    /// One answer for each resource of the page, in its order: the document's comes first.
    pub answers: Vec<Answer>,
    /// Resources whose bodies are larger than the page says, as they have to name others: each with the bytes that it has.
    pub grown: Vec<(usize, Bytes)>,
}

/// What is answered to a `GET` of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The place of the resource in the page.
    pub resource: usize,
    /// The place of the origin in [`Site::origins`].
    pub origin: usize,
    /// The path: `/` or `/7.css`.
    pub path: String,
    /// Fields of the response: `content-type` first, in small letters.
    pub fields: Vec<(String, String)>,
    /// The body, or where the browser is sent on to.
    pub asked: Asked,
}

/// What is behind a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Status 200 and a body.
    Body(Vec<u8>),
    /// Status 302 and this in `location`.
    Elsewhere(String),
}

/// Why a folder holds no site, or took none.
#[derive(Debug, Error)]
pub enum SiteError {
    /// A file can't be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// `site.json` is none.
    #[error("{path} describes no site: {problem}")]
    Form {
        /// Which.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl Site {
    /// The name of a page's origin where nobody needs another: `o0.page.example`.
    #[must_use]
    pub fn usual_name(origin: u8) -> String {
        format!("o{origin}.page.example")
    }

    /// The files of a page, on origins of those names.
    #[must_use]
    pub fn new(page: &Page, name: impl Fn(u8) -> String) -> Site {
        let origins: Vec<String> = (0..page.origins()).map(name).collect();
        let mut grown = Vec::new();
        let mut answers = Vec::new();
        for (place, resource) in page.resources().iter().enumerate() {
            let written = text::Written {
                page,
                origins: &origins,
                place,
            };
            let body = match resource.kind {
                Kind::Document => Asked::Body(written.document()),
                Kind::Style => Asked::Body(written.style()),
                Kind::Script => Asked::Body(written.script()),
                Kind::Fetch => Asked::Body(written.data()),
                Kind::Image => Asked::Body(image::png(place, written.size())),
                Kind::Font => Asked::Body(font::truetype(written.size())),
                Kind::Redirect => Asked::Elsewhere(written.target()),
            };
            if let Asked::Body(body) = &body
                && body.len() > written.size()
            {
                grown.push((place, Bytes(body.len() as u64)));
            }
            answers.push(Answer {
                resource: place,
                origin: usize::from(resource.origin),
                path: text::path(page, place),
                fields: fields(resource.kind),
                asked: body,
            });
        }
        Site {
            origins,
            answers,
            grown,
        }
    }

    /// Where the page is, without its scheme: `//o0.page.example/`.
    #[must_use]
    pub fn document(&self) -> String {
        format!("//{}/", self.origins.first().map_or("", String::as_str))
    }

    /// Writes the site into a folder, which is made: `site.json`, and for each origin a folder such as `o0` with a file
    /// for each path. `index.html` is that of `/`; a path that sends on has none. What a folder of this name held is removed.
    ///
    /// # Errors
    ///
    /// If the disk does not take it.
    pub fn write(&self, folder: &Path) -> Result<(), SiteError> {
        folder::write(self, folder)
    }

    /// Reads what [`Site::write`] wrote. [`Site::grown`] is not told by it.
    ///
    /// # Errors
    ///
    /// If a file is missing, too large, or not what `site.json` says.
    pub fn read(folder: &Path) -> Result<Site, SiteError> {
        folder::read(folder)
    }
}

/// A field of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Field {
    name: String,
    value: String,
}

/// What a response says besides its body.
///
/// Everybody may read everything, so that fonts and data come from any origin (Fetch, 3.2), and what a page is made of may be kept for a year
/// without being asked again (RFC 9111 and RFC 8246). Documents are asked for anew each time, as is data.
fn fields(kind: Kind) -> Vec<(String, String)> {
    let of_kind = match kind {
        Kind::Document => Some("text/html; charset=utf-8"),
        Kind::Style => Some("text/css; charset=utf-8"),
        Kind::Script => Some("text/javascript; charset=utf-8"),
        Kind::Image => Some("image/png"),
        Kind::Font => Some("font/ttf"),
        Kind::Fetch => Some("application/json"),
        Kind::Redirect => None,
    };
    let kept = match kind {
        Kind::Document | Kind::Fetch | Kind::Redirect => "no-store",
        Kind::Style | Kind::Script | Kind::Image | Kind::Font => {
            "public, max-age=31536000, immutable"
        }
    };
    let of_kind = of_kind.map(|value| ("content-type", value));
    let for_all = [
        ("cache-control", kept),
        ("access-control-allow-origin", "*"),
        ("timing-allow-origin", "*"),
    ];
    (of_kind.into_iter().chain(for_all))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
