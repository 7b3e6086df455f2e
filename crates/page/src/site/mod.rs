//! A page as files that servers serve.

mod document;
mod folder;
mod font;
mod framing;
mod image;
mod text;

use std::path::Path;

use lastbyte_link::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::framing::{Frames, Framing};
use crate::page::{Caching, Keeping, Kind, Loading, Page, Resource};

/// What each origin of a page answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The origins' names, with a port where it is not the usual one: `o0.page.example`.
    pub origins: Vec<String>,
    /// One answer for each resource of the page, in its order: the document's comes first.
    pub answers: Vec<Answer>,
    /// Resources that are larger than the page says, as they have to name others or have fields:
    /// each with the bytes that its body has, or its response where that was recorded.
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
    pub content: Content,
    /// Whether the response was recorded. Then fields are all that is here, and each is a literal
    /// (RFC 7541, 6.2), as long whatever the connection had before; and with an `etag` among them,
    /// who asks whether that has changed gets the answer that it has not (304).
    pub is_recorded: bool,
}

/// What is behind a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
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

    /// The files of a page, on origins of those names, for a server that adds nothing to the text
    /// of a response.
    #[must_use]
    pub fn new(page: &Page, name: impl Fn(u8) -> String) -> Site {
        Site::framed(page, Framing::Http1, name)
    }

    /// The files of a page, on origins of those names, for a server that writes responses so. That
    /// of a recorded page is as large as it was, with fields and all.
    #[must_use]
    pub fn framed(page: &Page, framing: Framing, name: impl Fn(u8) -> String) -> Site {
        let origins: Vec<String> = (0..page.origins()).map(name).collect();
        let mut grown = Vec::new();
        let mut answers = Vec::new();
        let mut connections = Vec::new();
        for (place, resource) in page.resources().iter().enumerate() {
            let connection = connection(page, place);
            let is_first = !connections.contains(&connection);
            connections.push(connection);
            let fields = match &resource.observed {
                None => fields(resource.kind),
                Some(_) => recorded_fields(page, place),
            };
            let whole = resource.observed.and_then(|observed| observed.response);
            let body = whole.map_or(Some(resource.body.0), |whole| {
                framing.body(whole.0, &fields, is_first)
            });
            let written = text::Written {
                page,
                origins: &origins,
                place,
                body: body.unwrap_or(0),
            };
            let content = match resource.kind {
                Kind::Document => Content::Body(written.document()),
                Kind::Style => Content::Body(written.style()),
                Kind::Script => Content::Body(written.script()),
                Kind::Fetch => Content::Body(written.data()),
                Kind::Image => Content::Body(image::png(place, written.size())),
                Kind::Font => Content::Body(font::truetype(written.size())),
                Kind::Redirect => Content::Elsewhere(written.target()),
            };
            if let Content::Body(made) = &content
                && (body.is_none() || made.len() > written.size())
            {
                let bytes = match whole {
                    Some(_) => framing.response(made.len() as u64, &fields, is_first),
                    None => made.len() as u64,
                };
                grown.push((place, Bytes(bytes)));
            }
            answers.push(Answer {
                resource: place,
                origin: usize::from(resource.origin),
                path: text::path(page, place),
                fields,
                content,
                is_recorded: resource.observed.is_some(),
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

    /// Writes the site into a folder, which is made: `site.json`, and for each origin a folder such
    /// as `o0` with a file for each path. `index.html` is that of `/`; a path that sends on has
    /// none. What a folder of this name held is removed.
    ///
    /// # Errors
    ///
    /// If the disk does not take it.
    pub fn write(&self, folder: &Path) -> Result<(), SiteError> {
        folder::write(self, folder)
    }

    /// Reads what [`Site::write`] wrote. [`Site::grown`] is not in it.
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

fn media_type(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Document => Some("text/html; charset=utf-8"),
        Kind::Style => Some("text/css; charset=utf-8"),
        Kind::Script => Some("text/javascript; charset=utf-8"),
        Kind::Image => Some("image/png"),
        Kind::Font => Some("font/ttf"),
        Kind::Fetch => Some("application/json"),
        Kind::Redirect => None,
    }
}

/// Over which connection a browser asks for it: one for each origin, and another one where
/// credentials are not sent (Fetch, 2.6).
fn connection(page: &Page, place: usize) -> (u8, bool) {
    let resources = page.resources();
    let origin = |place: usize| resources.get(place).map_or(0, |resource| resource.origin);
    let document = resources.iter().find(|one| one.kind == Kind::Document);
    let home = document.map_or(0, |document| document.origin);
    let is_elsewhere = origin(place) != home;
    (origin(place), is_elsewhere && is_shared(page, place))
}

/// Whether only who may read it from its origin gets it: fonts, data, modules, and what was asked
/// for so.
fn is_shared(page: &Page, place: usize) -> bool {
    let resource = page.resources().get(place);
    let observed = resource.and_then(|resource| resource.observed);
    let is_module = resource.is_some_and(|resource| resource.loading == Loading::Module);
    match page.landing(place) {
        Kind::Font | Kind::Fetch => true,
        Kind::Script if is_module => true,
        _ => observed.is_some_and(|observed| observed.is_cors),
    }
}

/// What a recorded response says besides its body: what it needs, and what may be kept of it. Where
/// no fields were recorded, that is what a made-up page's are kept for.
fn recorded_fields(page: &Page, place: usize) -> Vec<(String, String)> {
    let Some(Resource { kind, observed, .. }) = page.resources().get(place) else {
        return Vec::new();
    };
    let mut all: Vec<(&str, String)> = Vec::new();
    all.extend(media_type(*kind).map(|value| ("content-type", value.to_owned())));
    match observed.and_then(|observed| observed.caching) {
        Some(caching) => all.extend(cache_fields(caching)),
        None => all.push(("cache-control", usual_caching(*kind).to_owned())),
    }
    if is_shared(page, place) {
        all.push(("access-control-allow-origin", "*".to_owned()));
    }
    (all.into_iter())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The fields that have a browser keep a response so.
pub(crate) fn cache_fields(caching: Caching) -> Vec<(&'static str, String)> {
    let control = match caching.keeping {
        Keeping::Never => "no-store".to_owned(),
        Keeping::For { fresh: 0, stale: 0 } => "no-cache".to_owned(),
        Keeping::For { fresh, stale: 0 } => format!("max-age={fresh}"),
        Keeping::For { fresh, stale } => {
            format!("max-age={fresh}, stale-while-revalidate={stale}")
        }
    };
    let tag = caching.has_validator.then(|| ("etag", "\"1\"".to_owned()));
    [("cache-control", control)]
        .into_iter()
        .chain(tag)
        .collect()
}

/// What a response says besides its body.
///
/// Everybody may read everything, so that fonts and data come from any origin (Fetch, 3.2), and
/// what a page is made of may be kept for a year without being asked again (RFC 9111 and RFC 8246).
/// Documents are asked for anew each time, as is data.
fn fields(kind: Kind) -> Vec<(String, String)> {
    let of_kind = media_type(kind).map(|value| ("content-type", value));
    let for_all = [
        ("cache-control", usual_caching(kind)),
        ("access-control-allow-origin", "*"),
        ("timing-allow-origin", "*"),
    ];
    (of_kind.into_iter().chain(for_all))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// For how long what a page is made of is kept, if nothing else is reported.
fn usual_caching(kind: Kind) -> &'static str {
    match kind {
        Kind::Document | Kind::Fetch | Kind::Redirect => "no-store",
        Kind::Style | Kind::Script | Kind::Image | Kind::Font => {
            "public, max-age=31536000, immutable"
        }
    }
}
