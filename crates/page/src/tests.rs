#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod recorded;
mod recorders;
mod redirects;

use std::collections::BTreeSet;

use lastbyte_link::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::har::{self, HarError, Recorded};
use crate::{
    Caching, Content, Keeping, Kind, Loading, Model, Named, Observed, Page, PageError, Part,
    Priority, Resource, Site,
};

/// Any page: each resource in any that finds it, redirects with their targets behind them. All of
/// it was recorded, or nothing.
pub(crate) fn pages() -> impl Strategy<Value = Page> {
    any::<bool>().prop_flat_map(pages_that_are)
}

fn priorities() -> impl Strategy<Value = Priority> {
    (0..Priority::ALL.len()).prop_map(|nth| Priority::ALL[nth])
}

fn cachings() -> impl Strategy<Value = Caching> {
    let keeping = (any::<bool>(), 0..5_u32, 0..5_u32).prop_map(|(is_kept, fresh, stale)| {
        if is_kept {
            Keeping::For {
                fresh: fresh * 60,
                stale: stale * 60,
            }
        } else {
            Keeping::Never
        }
    });
    (keeping, any::<bool>()).prop_map(|(keeping, has_validator)| Caching {
        keeping,
        has_validator,
    })
}

/// Redirects of which what was recorded is all in their fields.
fn observations() -> impl Strategy<Value = Observed> {
    (
        0..20_u32,
        prop::option::of(priorities()),
        prop::option::of(priorities()),
        prop::option::of(1..200_000_u64),
        prop::option::of(cachings()),
    )
        .prop_map(|(line, priority, asked, response, caching)| Observed {
            line,
            priority,
            asked: asked.filter(|_| priority.is_some()),
            is_cors: false,
            response: response.map(Bytes),
            caching,
        })
}

/// Any page that was recorded, or that was not.
pub(crate) fn pages_that_are(recorded: bool) -> impl Strategy<Value = Page> {
    let kind = (0..Kind::ALL.len()).prop_map(|nth| Kind::ALL[nth]);
    let loading = (0..Loading::ALL.len()).prop_map(|nth| Loading::ALL[nth]);
    let choice = (
        kind,
        0..200_000_u64,
        any::<u8>(),
        any::<Index>(),
        loading,
        observations(),
        any::<bool>(),
    );
    let choices = prop::collection::vec(choice, 0..40);
    (any::<bool>(), choices).prop_map(move |(is_sent_on, choices)| {
        let mut page: Vec<Resource> = Vec::new();
        let mut origins = 1;
        let observed = recorded.then(Observed::default);
        let document = |found_in| Resource {
            kind: Kind::Document,
            body: Bytes(3_000),
            origin: 0,
            found_in,
            loading: Loading::Usual,
            observed,
        };
        if is_sent_on {
            page.push(Resource {
                kind: Kind::Redirect,
                body: Bytes(0),
                ..document(None)
            });
            page.push(document(Some(0)));
        } else {
            page.push(document(None));
        }
        let home = page.len() - 1;
        for (kind, body, origin, place, loading, seen, is_cors) in choices {
            let origin = origin % (origins + 1).min(6);
            origins = origins.max(origin + 1);
            let target = match kind {
                Kind::Redirect => Kind::Image,
                kind => kind,
            };
            let finders: Vec<usize> = (0..page.len())
                .filter(|place| {
                    page[*place].kind != Kind::Redirect && page[*place].kind.finds(target)
                })
                .collect();
            let above = finders[place.index(finders.len())];
            let has_attribute = matches!(target, Kind::Script | Kind::Style | Kind::Image);
            let observed = recorded.then_some(Observed {
                // Lines are of documents.
                line: match page[above].kind {
                    Kind::Document => seen.line,
                    _ => 0,
                },
                is_cors: is_cors && has_attribute && origin != page[home].origin,
                ..seen
            });
            let loading = match (recorded, target, loading) {
                (true, ..) | (false, Kind::Script, Loading::Usual | Loading::Deferred) => loading,
                _ => Loading::Usual,
            };
            page.push(Resource {
                kind,
                body: Bytes(if kind == Kind::Redirect { 0 } else { body }),
                origin,
                found_in: Some(above),
                loading,
                observed: observed.map(|observed| match kind {
                    Kind::Redirect => Observed {
                        response: None,
                        ..observed
                    },
                    _ => observed,
                }),
            });
            if kind == Kind::Redirect {
                page.push(Resource {
                    kind: target,
                    body: Bytes(body),
                    origin: 0,
                    found_in: Some(page.len() - 1),
                    loading: Loading::Usual,
                    observed: observed.map(|_| Observed::default()),
                });
            }
        }
        Page::new(page).unwrap()
    })
}

#[test]
fn the_median_page_is_as_published() {
    let mut model = Named::Median2024.model();
    for origins in 1..=6 {
        model.origins = origins;
        let page = model.page().unwrap();
        let all = page.resources();
        assert_eq!((all.len(), page.bytes()), (71, Bytes(2_652 << 10)));
        assert_eq!(page.origins(), origins);
        let of = |kind| all.iter().filter(move |one| one.kind == kind);
        let told = |kind| {
            (
                of(kind).count(),
                of(kind).map(|one| one.body.0).sum::<u64>() >> 10,
            )
        };
        assert_eq!(told(Kind::Document), (2, 18));
        assert_eq!(told(Kind::Style), (8, 78));
        assert_eq!(told(Kind::Script), (24, 613));
        assert_eq!(told(Kind::Image), (18, 1_054));
        assert_eq!(told(Kind::Font), (4, 131));
        let sizes: BTreeSet<u64> = of(Kind::Image).map(|one| one.body.0).collect();
        assert!(sizes.last().unwrap() - sizes.first().unwrap() <= 1);
        let in_scripts = of(Kind::Script)
            .filter(|one| one.found_in != Some(0))
            .count();
        assert_eq!(in_scripts, 8);
        assert!(Site::new(&page, Site::usual_name).grown.is_empty());
    }
}

#[test]
fn a_model_that_is_no_page_is_told() {
    let part = |kind, count, bytes| Part {
        kind,
        count,
        bytes: Bytes(bytes),
    };
    let told = |origins, parts: &[Part]| {
        let model = Model {
            origins,
            parts: parts.to_vec(),
        };
        model.page().unwrap_err().to_string()
    };
    assert_eq!(
        told(1, &[]),
        "the page has no resource: it needs a document at least"
    );
    assert_eq!(
        told(1, &[part(Kind::Image, 1, 10)]),
        "the page begins with an image: it has to begin with its document"
    );
    let document = part(Kind::Document, 1, 1_000);
    assert_eq!(
        told(3, &[document, part(Kind::Image, 2, 10)]),
        "the page has 3 origins, but so few resources that they need 2"
    );
    assert_eq!(
        told(1, &[document, part(Kind::Image, u32::MAX, 10)]),
        "the page has 4294967296 resources: at most 2000 are loaded"
    );
    assert_eq!(
        told(1, &[document, part(Kind::Image, 1, u64::MAX)]),
        "the page has 18446744073709551615 bytes of bodies: at most 268435456 are loaded"
    );
}

#[test]
fn a_page_is_found_from_its_document() {
    let resource = |kind, origin, found_in| Resource {
        kind,
        body: Bytes(10),
        origin,
        found_in,
        loading: Loading::Usual,
        observed: None,
    };
    let document = resource(Kind::Document, 0, None);
    let told = |more: &[Resource]| {
        let all = [std::slice::from_ref(&document), more].concat();
        Page::new(all).unwrap_err().to_string()
    };
    assert_eq!(
        told(&[resource(Kind::Image, 0, None)]),
        "resource 1 is found in nothing: name one that stands before it"
    );
    assert_eq!(
        told(&[resource(Kind::Image, 0, Some(1))]),
        "resource 1 is found in resource 1: name one that stands before it"
    );
    let image = resource(Kind::Image, 0, Some(0));
    assert_eq!(
        told(&[image.clone(), resource(Kind::Script, 0, Some(1))]),
        "resource 2 is a script, found in an image: a browser finds none there"
    );
    let style = resource(Kind::Style, 0, Some(0));
    let redirect = resource(Kind::Redirect, 0, Some(1));
    assert_eq!(
        told(&[
            style.clone(),
            redirect.clone(),
            resource(Kind::Script, 0, Some(2))
        ]),
        "resource 2 is a script, found in a style: a browser finds none there"
    );
    assert_eq!(
        told(&[style, redirect]),
        "resource 2 is a redirect to 0 resources: it needs exactly 1"
    );
    assert_eq!(
        told(&[resource(Kind::Image, 2, Some(0))]),
        "resource 1 is of origin 2: a page has at most 64, from 0 and without gaps"
    );
    let nowhere = [
        resource(Kind::Redirect, 0, None),
        resource(Kind::Image, 0, Some(0)),
    ];
    assert_eq!(
        Page::new(nowhere.to_vec()),
        Err(PageError::NoDocument { kind: Kind::Image })
    );
}

#[test]
fn a_body_grows_where_it_must_name_more() {
    let small = |kind, found_in| Resource {
        kind,
        body: Bytes(5),
        origin: 0,
        found_in,
        loading: Loading::Usual,
        observed: None,
    };
    let page = [
        small(Kind::Document, None),
        small(Kind::Script, Some(0)),
        small(Kind::Fetch, Some(1)),
        small(Kind::Image, Some(0)),
    ];
    let site = Site::new(&Page::new(page.to_vec()).unwrap(), Site::usual_name);
    let grown: Vec<usize> = site.grown.iter().map(|(place, _)| *place).collect();
    assert_eq!(grown, [0, 1]);
    for (place, bytes) in &site.grown {
        assert_eq!(body(&site, *place).len() as u64, bytes.0);
    }
    assert_eq!(body(&site, 1), b"fetch(\"/2.json\").then(r=>r.text());");
    assert_eq!(
        (body(&site, 2), body(&site, 3)),
        (&b"0    "[..], &b"-----"[..])
    );
}

/// A response in HTTP/1.1.
fn text_of(site: &Site, place: usize) -> Vec<u8> {
    let body = body(site, place);
    let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
    for (name, value) in &site.answers[place].fields {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("content-length: {}\r\n\r\n", body.len());
    [text.as_bytes(), body].concat()
}

fn body(site: &Site, place: usize) -> &[u8] {
    match &site.answers[place].content {
        Content::Body(body) => body,
        Content::Elsewhere(location) => location.as_bytes(),
    }
}

#[test]
fn pictures_and_fonts_have_every_size() {
    let resource = |kind, body, found_in| Resource {
        kind,
        body: Bytes(body),
        origin: 0,
        found_in,
        loading: Loading::Usual,
        observed: None,
    };
    for start in [0, 100, 30_000, 65_500, 131_000] {
        let mut page = vec![resource(Kind::Document, 30_000, None)];
        for size in start..start + 150 {
            page.push(resource(Kind::Image, size, Some(0)));
            page.push(resource(Kind::Font, size, Some(0)));
        }
        let site = Site::new(&Page::new(page.clone()).unwrap(), Site::usual_name);
        for (place, resource) in page.iter().enumerate().skip(1) {
            let body = body(&site, place);
            assert_eq!(body.len() as u64, resource.body.0);
            let (least, mark) = match resource.kind {
                Kind::Image => (110, &b"\x89PNG"[..]),
                _ => (1_100, &[0, 1, 0, 0][..]),
            };
            assert!(body.len() < least || body.starts_with(mark), "{resource:?}");
        }
    }
}

proptest! {
    // The disk is waited for.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_site_is_the_same_in_a_folder(page in pages()) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("site");
        let site = Site { grown: Vec::new(), ..Site::new(&page, Site::usual_name) };
        site.write(&folder).unwrap();
        prop_assert_eq!(&Site::read(&folder).unwrap(), &site);
        // Another one takes its place.
        site.write(&folder).unwrap();
        prop_assert_eq!(Site::read(&folder).unwrap(), site);
    }
}

proptest! {
    #[test]
    fn a_site_is_as_large_as_its_page_and_names_all_of_it(page in pages()) {
        let site = Site::new(&page, Site::usual_name);
        let paths: BTreeSet<(usize, &str)> =
            site.answers.iter().map(|answer| (answer.origin, answer.path.as_str())).collect();
        prop_assert_eq!(paths.len(), page.resources().len());
        for (place, resource) in page.resources().iter().enumerate() {
            let grown = site.grown.iter().find(|(grown, _)| *grown == place);
            let whole = resource.observed.and_then(|observed| observed.response);
            let size = match whole {
                None => body(&site, place).len() as u64,
                Some(_) => text_of(&site, place).len() as u64,
            };
            let wanted = whole.unwrap_or(resource.body).0;
            match grown {
                _ if resource.kind == Kind::Redirect => {}
                Some((_, grown)) => prop_assert!(size == grown.0 && size > wanted),
                // A digit of `content-length` more takes a byte more of a response.
                None if whole.is_some() => prop_assert!(size <= wanted && wanted - size <= 1),
                None => prop_assert_eq!(size, wanted),
            }
            let Some(above) = resource.found_in else { continue };
            // A path, or a name before it; and nothing that only begins alike.
            let answer = &site.answers[place];
            let text = String::from_utf8_lossy(body(&site, above)).into_owned();
            let named = |end: &str| text.contains(&format!("{}{end}", answer.path));
            prop_assert!([" ", ">", "\"", ")"].iter().any(|end| named(end)) || text.ends_with(&answer.path));
            let name = format!("//{}{}", site.origins[answer.origin], answer.path);
            if page.resources()[above].kind != Kind::Script && answer.origin != site.answers[above].origin {
                prop_assert!(text.contains(&name), "{} has no {}", text, name);
            }
        }
    }

    #[test]
    fn a_page_is_the_same_from_a_har(page in pages_that_are(true)) {
        let read = har::read(har::of_page(&page).as_bytes()).unwrap();
        prop_assert_eq!(read, Recorded { page, notes: Vec::new() });
    }

    /// Never a panic, and one line for every problem.
    #[test]
    fn damaged_hars_are_told(page in pages(), at in any::<Index>(), by in any::<u8>()) {
        let mut har = har::of_page(&page).into_bytes();
        let at = at.index(har.len());
        har[at] = by;
        if let Err(error) = har::read(&har) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
        let cut = har::read(&har[..at]).unwrap_err();
        prop_assert_eq!(cut.to_string().lines().count(), 1);
    }
}

#[test]
fn a_folder_that_is_no_site_is_told() {
    let page = Named::Median2024.model().page().unwrap();
    let site = Site::new(&page, Site::usual_name);
    let told = |spoil: &dyn Fn(&std::path::Path)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site");
        site.write(&path).unwrap();
        spoil(&path);
        let error = Site::read(&path).unwrap_err().to_string();
        error.replace(&path.display().to_string(), "FOLDER")
    };
    let swap = |from: &'static str, to: &'static str| {
        move |folder: &std::path::Path| {
            let file = folder.join("site.json");
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(from));
            std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        }
    };
    assert_eq!(
        told(&|folder| std::fs::write(folder.join("o0/2.css"), "short").unwrap()),
        "FOLDER/site.json describes no site: \"2.css\" has 5 bytes, and should have 9984"
    );
    assert!(
        told(&|folder| std::fs::remove_file(folder.join("o0/2.css")).unwrap())
            .starts_with("FOLDER/o0/2.css: No such file")
    );
    assert!(
        told(&|folder| std::fs::remove_file(folder.join("site.json")).unwrap())
            .starts_with("FOLDER/site.json: No such file")
    );
    assert_eq!(
        told(&swap("\"version\": 1", "\"version\": 7")),
        "FOLDER/site.json describes no site: it is of version 7, and 1 is known"
    );
    assert_eq!(
        told(&swap("\"2.css\"", "\"../../etc/passwd\"")),
        "FOLDER/site.json describes no site: \"../../etc/passwd\" is outside the folder"
    );
    assert_eq!(
        told(&swap("\"resource\": 3,", "\"resource\": 4,")),
        "FOLDER/site.json describes no site: it has not one answer for each resource"
    );
    assert_eq!(
        told(&swap(
            "\"file\": \"2.css\"",
            "\"location\": \"/\", \"file\": \"2.css\""
        )),
        "FOLDER/site.json describes no site: \"/2.css\" needs either a file or a location"
    );
}

/// A HAR of entries that differ from a usual one.
fn har(entries: &[serde_json::Value]) -> Vec<u8> {
    let entries: Vec<serde_json::Value> = (entries.iter().enumerate())
        .map(|(place, changes)| {
            let mut entry = serde_json::json!({
                "startedDateTime": format!("2026-11-25T01:00:{place:02}.000+01:00"),
                "time": 10,
                "request": { "method": "GET", "url": format!("https://a.example/{place}") },
                "response": { "status": 200, "content": { "size": 700, "mimeType": "image/png" }, "bodySize": 500 },
            });
            for (pointer, value) in changes.as_object().unwrap() {
                let (folder, name) = pointer.rsplit_once('/').unwrap();
                entry.pointer_mut(folder).unwrap()[name] = value.clone();
            }
            entry
        })
        .collect();
    serde_json::json!({ "log": { "entries": entries } })
        .to_string()
        .into_bytes()
}

fn html() -> serde_json::Value {
    serde_json::json!({ "/response/content/mimeType": "text/html" })
}

/// What Chromium's newest writes of responses whose size it does not know, and what others do.
#[test]
fn what_is_unknown_of_a_har_is_not_taken_for_known() {
    let of = |size: serde_json::Value| {
        let sizes = serde_json::json!({
            "/response/content/mimeType": "text/html",
            "/response/content/size": 700,
            "/response/_transferSize": size,
            "/response/bodySize": size,
            "/response/headersSize": size,
        });
        har::read(&har(&[sizes])).unwrap()
    };
    let unknown = of((-1).into());
    assert_eq!(unknown.page.resources()[0].body, Bytes(700));
    for size in [serde_json::Value::Null, (-7).into()] {
        assert_eq!(of(size), unknown);
    }
    assert_eq!(of(serde_json::json!(900.0)), of(900.into()));
    let empty = serde_json::json!({
        "/response/content/mimeType": "text/html",
        "/response/content/size": null,
        "/response/bodySize": null,
    });
    assert_eq!(
        har::read(&har(&[html(), empty.clone()])).unwrap().notes,
        ["taken as empty: 1 response of unknown size"]
    );
    assert_eq!(
        har::read(&har(&[empty.clone(), empty])).unwrap_err(),
        HarError::NoSizes
    );
    let urgent = serde_json::json!({ "/_priority": "Urgent" });
    assert_eq!(
        har::read(&har(&[html(), urgent])).unwrap().notes,
        ["as urgent as their kind and place: 1 request whose _priority is no word of Chromium's"]
    );
}

#[test]
fn what_is_no_har_is_told() {
    let told = |har: &[u8]| har::read(har).unwrap_err().to_string();
    let usual = har(&[html()]);
    assert_eq!(told(b""), "the HAR ends early, in line 1: save it again");
    assert_eq!(
        told(&usual[..usual.len() - 5]),
        "the HAR ends early, in line 1: save it again"
    );
    assert_eq!(
        told(b"<html>"),
        "it is no HAR: expected value at line 1 column 1"
    );
    assert_eq!(
        told(b"{\"log\": {\"version\": \"1.2\"}}"),
        "it is no HAR: missing field `entries` at line 1 column 26"
    );
    assert_eq!(
        told(&har(&[])),
        "the HAR has no requests of its page over the network: load the page while it is recorded"
    );
    assert_eq!(
        told(&har(&[serde_json::json!({})])),
        "the HAR begins with https://a.example/0, which is no document: record it from the beginning of the load"
    );
    assert_eq!(
        told(&har(&[html(), serde_json::json!({ "/time": -3.5 })])),
        "entry 2 of the HAR, https://a.example/1, has a time of -3.5 ms: a time is no less than 0"
    );
    let wait = serde_json::json!({ "/timings": { "dns": -1, "wait": -7 } });
    assert_eq!(
        told(&har(&[html(), wait])),
        "entry 2 of the HAR, https://a.example/1, has wait of -7 ms: a time is no less than 0"
    );
    assert_eq!(
        told(&har(&[
            serde_json::json!({ "/startedDateTime": "to\u{1b}day" })
        ])),
        "it is no HAR: entry 1, https://a.example/0, has a startedDateTime that is no date with a time and a zone: to\\u{1b}day"
    );
    for (size, problem) in [
        (
            serde_json::json!("12"),
            "invalid type: string \"12\", expected a number",
        ),
        (
            serde_json::json!(12.5),
            "a size of 12.5 bytes: a size is a whole number, or -1 if it is unknown",
        ),
    ] {
        let sized = serde_json::json!({ "/response/_transferSize": size });
        assert_eq!(
            told(&har(&[html(), sized])),
            format!("it is no HAR: entry 2, https://a.example/1: {problem}")
        );
    }
    let deep = format!("{{\"log\":{{\"entries\":[{}", "[".repeat(200_000));
    assert_eq!(
        told(deep.as_bytes()),
        "the HAR ends early, in line 1: save it again"
    );
    let unanswered = serde_json::json!({ "/response/status": 0, "/startedDateTime": "" });
    let inline = serde_json::json!({ "/request/url": "data:,x" });
    assert_eq!(
        told(&har(&[unanswered.clone(), inline, unanswered.clone()])),
        "the HAR has no requests of its page over the network (left out: 1 URL without need of a network (data:, blob: and their \
         like), left out: 2 requests that got no response): load the page while it is recorded"
    );
    // What is left out may be as it likes.
    assert!(har::read(&har(&[html(), unanswered])).is_ok());
    let origins = |count: usize| -> Vec<_> {
        let others = (1..count).map(|one| {
            let url = format!("https://{one}.example/");
            serde_json::json!({
                "/request/url": url,
                "/response/content/mimeType": "image/png",
                "/startedDateTime": "2026-11-26T01:00:00Z",
            })
        });
        [html()].into_iter().chain(others).collect()
    };
    assert_eq!(
        har::read(&har(&origins(64))).unwrap().page.origins(),
        Page::MOST_ORIGINS
    );
    assert_eq!(
        told(&har(&origins(65))),
        "the page of the HAR: the page has 65 origins: at most 64 are loaded"
    );
    let many = vec![html(); Page::MOST_RESOURCES + 1];
    let many: Vec<serde_json::Value> = many
        .into_iter()
        .map(|mut one| {
            one["/startedDateTime"] = "2026-11-25T01:00:00Z".into();
            one
        })
        .collect();
    assert_eq!(
        told(&har(&many)),
        "the page of the HAR: the page has 2001 resources: at most 2000 are loaded"
    );
    let huge = vec![b' '; usize::try_from(har::MOST_BYTES).unwrap() + 1];
    assert_eq!(
        har::read(&huge),
        Err(HarError::TooLarge),
        "{}",
        HarError::TooLarge
    );
    let large = serde_json::json!({ "/response/bodySize": 1e300, "/response/content/mimeType": "text/html" });
    assert_eq!(
        told(&har(&[large])),
        "the page of the HAR: the page has 18446744073709551615 bytes of bodies: at most 268435456 are loaded"
    );
}

#[test]
fn what_is_left_out_of_a_har_is_told() {
    let url = |url: &str| serde_json::json!({ "/request/url": url });
    let entries = [
        html(),
        url("data:image/png;base64,AAAA"),
        url("blob:https://a.example/1"),
        url("wss://a.example/live"),
        serde_json::json!({ "/request/method": "OPTIONS" }),
        serde_json::json!({ "/response/status": 0 }),
        serde_json::json!({ "/request/method": "POST" }),
        serde_json::json!({ "/response/status": 304, "/response/bodySize": 0 }),
        serde_json::json!({}),
    ];
    let read = har::read(&har(&entries)).unwrap();
    assert_eq!(
        read.notes,
        [
            "left out: 2 URLs without need of a network (data:, blob: and their like)",
            "left out: 1 websocket",
            "left out: 1 CORS preflight, which a browser makes by itself",
            "left out: 1 request that got no response",
            "asked for with GET: 1 request of other methods",
            "not compressed: 1 resource from a cache when the HAR was recorded",
        ]
    );
    let bodies: Vec<u64> = read.page.resources().iter().map(|one| one.body.0).collect();
    assert_eq!(bodies, [500, 500, 700, 500]);
}

#[test]
fn a_har_of_several_pages_is_of_the_first() {
    let text = String::from_utf8(har(&[html(), serde_json::json!({}), html()])).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["log"]["pages"] = serde_json::json!([{ "id": "one" }, { "id": "two" }]);
    for (place, page) in ["one", "one", "two"].iter().enumerate() {
        value["log"]["entries"][place]["pageref"] = (*page).into();
    }
    let read = har::read(value.to_string().as_bytes()).unwrap();
    assert_eq!(read.notes, ["left out: 1 request of other pages"]);
    assert_eq!(read.page.resources().len(), 2);
}

/// What a browser says of where a request comes from is followed as far as that can be so.
#[test]
fn a_har_says_what_finds_what() {
    let script = "application/javascript";
    let entries = [
        serde_json::json!({
            "/request/url": "http://a.example/",
            "/response/status": 301,
            "/response/redirectURL": "https://a.example/home?x#top",
        }),
        serde_json::json!({ "/request/url": "https://a.example/home?x", "/response/content/mimeType": "text/html" }),
        serde_json::json!({ "/request/url": "https://b.example/s.js", "/response/content/mimeType": script, "/_priority": "Low" }),
        // By a script that was called by another one.
        serde_json::json!({
            "/_initiator": { "type": "script", "stack": {
                "callFrames": [], "parent": { "callFrames": [{ "url": "" }, { "url": "https://b.example/s.js#1" }] },
            } },
        }),
        // In a picture, which is found in the script.
        serde_json::json!({ "/_initiator": { "url": "https://a.example/3" }, "/response/content/mimeType": "font/woff2" }),
        // By what was never loaded.
        serde_json::json!({ "/_initiator": { "url": "https://c.example/" } }),
        serde_json::json!({ "/request/headers": [{ "name": "referer", "value": "https://b.example/s.js" }] }),
        // A redirect without anything behind it is just an answer.
        serde_json::json!({ "/response/status": 302, "/response/redirectURL": "/nowhere" }),
        // Relative to where it is.
        serde_json::json!({ "/request/url": "https://a.example/x/y?z", "/response/status": 302, "/response/redirectURL": "w" }),
        serde_json::json!({ "/request/url": "https://a.example/x/w" }),
        // What comes from the redirected script's first URL is of the script.
        serde_json::json!({ "/_initiator": { "url": "https://a.example/x/y?z" }, "/response/content/mimeType": "text/css" }),
    ];
    let read = har::read(&har(&entries)).unwrap();
    let told: Vec<(Kind, u8, Option<usize>)> = (read.page.resources().iter())
        .map(|one| (one.kind, one.origin, one.found_in))
        .collect();
    assert_eq!(
        told,
        [
            (Kind::Redirect, 0, None),
            (Kind::Document, 1, Some(0)),
            (Kind::Script, 2, Some(1)),
            (Kind::Image, 1, Some(2)),
            (Kind::Font, 1, Some(2)),
            (Kind::Image, 1, Some(1)),
            (Kind::Image, 1, Some(2)),
            (Kind::Image, 1, Some(1)),
            (Kind::Redirect, 1, Some(1)),
            (Kind::Image, 1, Some(8)),
            (Kind::Style, 1, Some(1)),
        ]
    );
    assert_eq!(read.page.resources()[2].loading, Loading::Deferred);
}
