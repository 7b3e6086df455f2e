//! What all pages have: the head of a document of HTML that needs nothing else.

use maud::{Markup, PreEscaped, html};

use super::chart::{self, palette};

/// What all pages look like.
const STYLE: &str = include_str!("page.css");

/// What stands where a page is shared.
pub(super) struct Head<'a> {
    pub(super) title: &'a str,
    /// Below the title.
    pub(super) about: Option<&'a str>,
    /// Where the page is, if it is to be shared with its picture, which is beside it.
    pub(super) url: Option<&'a str>,
}

/// A page that asks no network for anything, in light and dark. `own` is what it looks like besides what all do.
pub(super) fn document(head: &Head<'_>, own: &str, body: &Markup) -> String {
    let Head { title, about, url } = head;
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                meta property="og:type" content="article";
                meta property="og:title" content=(title);
                @if let Some(about) = about {
                    meta name="description" content=(about);
                    meta property="og:description" content=(about);
                }
                @if let Some(url) = url {
                    meta property="og:url" content=(url);
                    meta property="og:image" content=(picture_of(url));
                    meta property="og:image:width" content="1200";
                    meta property="og:image:height" content="630";
                    meta property="og:image:alt" content=(about.unwrap_or(title));
                    meta name="twitter:card" content="summary_large_image";
                }
                style {
                    (PreEscaped(palette::variables())) (PreEscaped(chart::STYLE)) (PreEscaped(STYLE)) (PreEscaped(own))
                }
            }
            body { main { (body) } }
        }
    };
    // What HTML can't hold at all, as texts of others may have it (its standard, 13.2.3.5), stands for itself no more.
    let is_foreign = |c: char| c.is_control() && c != '\n' && c != '\t';
    page.into_string().replace(is_foreign, "\u{fffd}") + "\n"
}

/// The picture beside a page: its name with another ending.
fn picture_of(url: &str) -> String {
    let (folder, name) = url.rsplit_once('/').unwrap_or(("", url));
    let stem = name.strip_suffix(".html").unwrap_or(name);
    format!("{folder}/{stem}.png")
}
