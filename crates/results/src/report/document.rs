//! What all pages have: the head of a document of HTML that needs nothing else.

use maud::{Markup, PreEscaped, html};

/// A page that asks no network for anything, in light and dark.
pub(super) fn document(title: &str, styles: &[&str], body: &Markup) -> String {
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { @for style in styles { (PreEscaped(style)) } }
            }
            body { (body) }
        }
    };
    page.into_string() + "\n"
}
