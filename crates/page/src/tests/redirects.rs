//! Where a recorded redirect leads: `redirectURL` is the field `Location` as it was sent.

use lastbyte_link::Bytes;
use serde_json::json;

use super::har;
use crate::Kind;
use crate::har::read;

/// Kinds of what is read of a document that a redirect from `from`, with this `Location`, leads to at `to`.
fn kinds(from: &str, location: &str, to: &str) -> Vec<Kind> {
    let entries = [
        json!({
            "/request/url": from,
            "/response/status": 302,
            "/response/redirectURL": location,
            "/response/content/mimeType": "text/html",
        }),
        json!({ "/request/url": to, "/response/content/mimeType": "text/html" }),
    ];
    let page = read(&har(&entries)).unwrap().page;
    page.resources().iter().map(|one| one.kind).collect()
}

#[test]
fn a_redirect_leads_where_browsers_follow_it() {
    for (from, location, to) in [
        (
            "https://a.example/x/y",
            "/login?next=https://b.example/z",
            "https://a.example/login?next=https://b.example/z",
        ),
        (
            "https://a.example/x/y?q",
            "?lang=en",
            "https://a.example/x/y?lang=en",
        ),
        ("https://a.example/x/y", "../home", "https://a.example/home"),
        (
            "https://a.example/x/y",
            "../../../home/./#top",
            "https://a.example/home/",
        ),
        (
            "http://a.example/",
            "//B.example:80/c",
            "http://b.example/c",
        ),
        (
            "http://a.example/",
            "HTTPS://a.example",
            "https://a.example/",
        ),
        ("https://a.example/x", " /a b\t", "https://a.example/a%20b"),
        (
            "https://a.example/x",
            "/caf\u{e9}",
            "https://a.example/caf%C3%A9",
        ),
        // As a proxy may have recorded it.
        ("https://a.example", "home", "https://A.example:443/home"),
    ] {
        assert_eq!(
            kinds(from, location, to),
            [Kind::Redirect, Kind::Document],
            "{from}, {location}"
        );
    }
}

#[test]
fn a_redirect_to_elsewhere_is_an_answer() {
    for location in ["https://", "mailto:a@a.example", "/elsewhere"] {
        let kinds = kinds("https://a.example/x", location, "https://a.example/home");
        assert_eq!(kinds, [Kind::Document, Kind::Document], "{location}");
    }
}

/// As browsers give up a page whose redirects lead back to where they have been.
#[test]
fn a_document_that_redirects_in_a_circle_never_comes() {
    let redirect = |from: &str, to: &str| {
        json!({
            "/request/url": from,
            "/response/status": 302,
            "/response/redirectURL": to,
            "/response/content/mimeType": "text/html",
        })
    };
    let (a, b) = (
        redirect("https://a.example/", "/b"),
        redirect("https://a.example/b", "/"),
    );
    for circle in [
        vec![a.clone(), b.clone()],
        vec![a.clone(), b.clone(), a.clone(), b],
        vec![redirect("https://a.example/", "#top")],
    ] {
        let said = read(&har(&circle)).unwrap_err().to_string();
        assert!(
            said.starts_with("the HAR's document never comes: "),
            "{said}"
        );
    }
    let page = json!({
        "/request/url": "https://a.example/",
        "/response/content/mimeType": "text/html",
    });
    // What is lost is one resource.
    let (image, other) = (
        redirect("https://a.example/i", "/j"),
        redirect("https://a.example/j", "/i"),
    );
    assert_eq!(
        read(&har(&[page.clone(), image, other])).unwrap().notes,
        ["taken as answers, as they lead back to where they have been: 1 redirect"]
    );
    // With a cookie, the same URL answers.
    let read = read(&har(&[redirect("https://a.example/", "/"), page])).unwrap();
    assert_eq!(read.page.resources().len(), 2);
}

#[test]
fn what_is_no_url_is_told_with_its_entry() {
    for (url, problem) in [
        ("https://", "empty host"),
        ("https://a.example:99999/", "invalid port number"),
        ("http://[::1/", "invalid IPv6 address"),
    ] {
        let entries = [
            json!({ "/request/url": "https://a.example/", "/response/content/mimeType": "text/html" }),
            json!({ "/request/url": url }),
        ];
        let said = read(&har(&entries)).unwrap_err().to_string();
        assert_eq!(
            said,
            format!(
                "entry 2 of the HAR asks for {url}, which is no URL ({problem}): write the one that was asked for, or leave \
                 the entry out"
            )
        );
    }
}

/// Each in the form that its browser exports, with made-up names and sizes.
#[test]
fn each_browser_s_redirects_are_followed() {
    let document = |har: &[u8]| {
        let page = read(har).unwrap().page;
        let found = page.resources().iter();
        let found: Vec<_> = found.map(|one| (one.kind, one.found_in)).collect();
        let document = page
            .resources()
            .iter()
            .find(|one| one.kind == Kind::Document);
        (found, document.unwrap().body)
    };
    let followed = vec![
        (Kind::Redirect, None),
        (Kind::Redirect, Some(0)),
        (Kind::Document, Some(1)),
        (Kind::Style, Some(2)),
    ];
    assert_eq!(
        document(include_bytes!("redirects/chrome.har")),
        (followed.clone(), Bytes(4_321))
    );
    assert_eq!(
        document(include_bytes!("redirects/firefox.har")),
        (followed, Bytes(4_321))
    );
    // Safari's archive has the last request alone.
    assert_eq!(
        document(include_bytes!("redirects/safari.har")),
        (
            vec![(Kind::Document, None), (Kind::Style, Some(0))],
            Bytes(4_321)
        )
    );
}
