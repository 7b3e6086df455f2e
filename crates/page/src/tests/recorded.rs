//! The site of a HAR is the one that was recorded.

use serde_json::{Value, json};

use super::{body, har, text_of};
use crate::har::read;
use crate::{Framing, Loading, Page, Site};

/// Requests of a page, in milliseconds after its navigation; of the document, if nothing else is in it.
struct Recording(Vec<Value>);

impl Recording {
    fn new(document: u64) -> Recording {
        let document = json!({
            "/response/content/mimeType": "text/html",
            "/response/_transferSize": document,
            "/startedDateTime": "2026-11-25T01:00:00.000Z",
            "/time": 100,
            "/_priority": "VeryHigh",
        });
        Recording(vec![document])
    }

    /// Asks for something that the parser has found in a line, `from` and `to` these times.
    fn parsed(
        &mut self,
        kind: &str,
        priority: &str,
        line: u32,
        (from, to): (u64, u64),
    ) -> &mut Value {
        self.0.push(json!({
            "/startedDateTime": format!("2026-11-25T01:00:00.{from:03}Z"),
            "/time": to - from,
            "/_priority": priority,
            "/_resourceType": kind,
            "/_initiator": { "type": "parser", "url": "https://a.example/0", "lineNumber": line },
            "/response/_transferSize": 5_000,
        }));
        self.0.last_mut().unwrap()
    }

    fn page(&self) -> Page {
        read(&har(&self.0)).unwrap().page
    }
}

/// The document without its text and its beginning.
fn markup(site: &Site) -> String {
    let text = String::from_utf8(body(site, 0).to_vec()).unwrap();
    let (_, mut rest) = text.split_once("<link rel=icon href=data:,>").unwrap();
    let mut markup = String::new();
    while let Some((before, after)) = rest.split_once("the page has") {
        markup += before;
        rest = after.split_once("</p>").map_or("", |(_, rest)| rest);
        markup += "…</p>";
    }
    markup += rest.trim_end();
    markup.replace("…</p>", "")
}

fn header(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

#[test]
fn everything_stands_where_it_was_recorded() {
    let mut all = Recording::new(9_000);
    all.parsed("stylesheet", "VeryHigh", 3, (100, 200));
    all.parsed("script", "High", 5, (100, 210));
    // Async, as it has asked for something before the scripts were there that hold up the parser; and deferred.
    all.parsed("script", "Low", 6, (100, 150));
    all.parsed("script", "Low", 7, (100, 150));
    let module = all.parsed("script", "High", 8, (100, 220));
    module["/request/headers"] = json!([header("Sec-Fetch-Mode", "cors")]);
    // Asked for with priority; then one of the first five, one that is small, and one that was seen to be on the screen.
    let image = all.parsed("image", "High", 20, (101, 220));
    image["/request/headers"] = json!([header("priority", "u=1, i")]);
    for (priority, asked) in [("Medium", "u=2, i"), ("Low", "i"), ("High", "i")] {
        let image = all.parsed("image", priority, 21, (101, 230));
        image["/request/headers"] = json!([header("priority", asked)]);
    }
    // Behind pictures.
    all.parsed("script", "Medium", 30, (101, 400));
    // It is found late and stands before all of that.
    all.parsed("stylesheet", "VeryLow", 4, (102, 400));
    let data = all.parsed("fetch", "High", 0, (160, 200));
    data["/_initiator"]["url"] = "https://a.example/3".into();
    let tags = all.parsed("script", "Low", 0, (215, 300));
    tags["/_initiator"] = json!({
        "type": "script",
        "stack": { "callFrames": [{ "url": "https://a.example/0", "lineNumber": 10 }] },
    });
    all.parsed("image", "Low", 25, (230, 300));
    all.parsed("document", "VeryHigh", 26, (230, 300));
    let site = Site::new(&all.page(), Site::usual_name);
    assert!(site.grown.is_empty(), "{:?}", site.grown);
    let expected = [
        "<style>.v,.b,.l{position:absolute}.b{top:2000px}.l{top:1500px}p.v,p.b{width:160px}</style>",
        "<link rel=stylesheet href=/1.css>",
        "<link rel=stylesheet href=/11.css media=print onload=this.media='all'>",
        "<script src=/2.js></script>",
        "<script async src=/3.js></script>",
        "<script defer src=/4.js></script>",
        "<script type=module src=/5.js></script>",
        "<script>{let e=document.createElement(\"script\");e.src=\"/13.js\";document.head.append(e)}</script>",
        "<p>",
        "<img src=/6.png fetchpriority=high class=b width=160 height=120><p>",
        "<img src=/7.png class=b width=160 height=120><p>",
        "<img src=/8.png class=b width=100 height=100><p>",
        "<img src=/9.png class=v style=top:300px width=1000 height=400><p>",
        "<img src=/14.png loading=lazy class=l width=100 height=100><p>",
        "<iframe src=/15.html></iframe><p>",
        "<script src=/10.js></script><p>",
    ];
    assert_eq!(markup(&site), expected.concat());
    assert!(body(&site, 3).starts_with(b"fetch(\"/12.json\").then"));
    for (place, answer) in site.answers.iter().enumerate() {
        let whole = if place == 0 { 9_000 } else { 5_000 };
        assert_eq!(text_of(&site, place).len(), whole, "{}", answer.path);
    }
}

/// A picture that stands before what holds up the parser has been preloaded, or that were less urgent.
#[test]
fn what_the_head_asks_for_is_no_part_of_the_body() {
    let mut all = Recording::new(4_000);
    all.parsed("image", "High", 1, (100, 200));
    all.parsed("font", "High", 1, (100, 200));
    all.parsed("script", "High", 2, (100, 200));
    // As urgent as behind a picture.
    all.parsed("script", "Medium", 9, (100, 300));
    let site = Site::new(&all.page(), Site::usual_name);
    let markup = markup(&site);
    let order = [
        "<link rel=preload as=image href=/1.png>",
        "<link rel=preload as=font href=/2.ttf crossorigin><style>@font-face{",
        "<script src=/3.js>",
        "<p class=c2>text</p>",
        "<img src=/1.png class=v ",
        "<script src=/4.js>",
    ];
    let places = order.map(|part| {
        markup
            .find(part)
            .unwrap_or_else(|| panic!("{part} in {markup}"))
    });
    assert!(places.is_sorted(), "{markup}");
}

/// Each paragraph is in one of the fonts that styles ask for, and has nothing to show before that is there.
#[test]
fn text_is_in_the_fonts_that_were_recorded() {
    let mut all = Recording::new(6_000);
    all.parsed("stylesheet", "VeryHigh", 1, (100, 200));
    for _ in 0..2 {
        let font = all.parsed("font", "VeryHigh", 0, (200, 300));
        font["/_initiator"]["url"] = "https://a.example/1".into();
    }
    all.parsed("image", "Low", 2, (101, 200));
    let site = Site::new(&all.page(), Site::usual_name);
    let text = String::from_utf8(body(&site, 0).to_vec()).unwrap();
    let paragraphs: Vec<&str> = text.split("<p").skip(1).collect();
    let classes = paragraphs.iter().map(|one| one.split('>').next().unwrap());
    assert_eq!(
        classes.collect::<Vec<_>>(),
        [
            " class=c3",
            " class=c3",
            " class=c4",
            " class=c4",
            " class=c3",
            " class=c4"
        ]
    );
    let style = String::from_utf8(body(&site, 1).to_vec()).unwrap();
    assert!(style.contains(".c3{font-family:f3}") && style.contains(".c4{font-family:f4}"));
}

#[test]
fn a_response_is_kept_as_its_fields_say() {
    let kept = |status: u16, method: &str, fields: &[(&str, &str)]| {
        let fields: Vec<Value> = fields
            .iter()
            .map(|(name, value)| header(name, value))
            .collect();
        let mut all = Recording::new(1_000);
        let image = all.parsed("image", "Low", 1, (100, 200));
        image["/response/status"] = status.into();
        image["/request/method"] = method.into();
        image["/response/headers"] = fields.into();
        let page = all.page();
        let site = Site::new(&page, Site::usual_name);
        let fields = site.answers[1].fields.iter().skip(1);
        let fields = fields.map(|(name, value)| format!("{name}: {value}"));
        fields.collect::<Vec<_>>().join("; ")
    };
    let of = |fields: &[(&str, &str)]| kept(200, "GET", fields);
    let date = ("Date", "Wed, 25 Nov 2026 01:00:00 GMT");
    let tag = "; etag: \"1\"";
    assert_eq!(
        of(&[("Cache-Control", "public, MAX-AGE=3600")]),
        "cache-control: max-age=3600"
    );
    assert_eq!(
        of(&[
            ("cache-control", "max-age=31536000, immutable"),
            ("etag", "W/\"x\"")
        ]),
        format!("cache-control: max-age=31536000{tag}")
    );
    assert_eq!(
        of(&[("cache-control", "max-age=600"), ("age", "500")]),
        "cache-control: max-age=100"
    );
    assert_eq!(
        of(&[("cache-control", "max-age=600, stale-while-revalidate=60")]),
        "cache-control: max-age=600, stale-while-revalidate=60"
    );
    assert_eq!(
        of(&[("cache-control", "no-store, max-age=600")]),
        "cache-control: no-store"
    );
    assert_eq!(
        of(&[
            ("cache-control", "private"),
            ("cache-control", "no-cache"),
            ("etag", "1")
        ]),
        format!("cache-control: no-cache{tag}")
    );
    assert_eq!(
        of(&[date, ("expires", "Wed, 25 Nov 2026 02:00:00 GMT")]),
        "cache-control: max-age=3600"
    );
    assert_eq!(of(&[date, ("expires", "-1")]), "cache-control: no-cache");
    assert_eq!(
        of(&[
            ("pragma", "no-cache"),
            ("expires", "Wed, 25 Nov 2099 02:00:00 GMT")
        ]),
        "cache-control: no-cache"
    );
    // A tenth of its age, if nothing else is said.
    let modified = ("last-modified", "Wed, 25 Nov 2026 00:00:00 GMT");
    assert_eq!(
        of(&[date, modified]),
        format!("cache-control: max-age=360{tag}")
    );
    assert_eq!(of(&[date]), "cache-control: no-cache");
    assert_eq!(
        of(&[("vary", "*"), ("cache-control", "max-age=9")]),
        "cache-control: no-cache"
    );
    assert_eq!(
        kept(200, "POST", &[("cache-control", "max-age=9")]),
        "cache-control: no-store"
    );
    assert_eq!(kept(301, "GET", &[date]), "cache-control: max-age=31536000");
    // Nothing was recorded.
    assert_eq!(
        of(&[]),
        "cache-control: public, max-age=31536000, immutable"
    );
}

/// Browsers that say no priority leave that to Chromium: by kind and by place.
#[test]
fn without_priorities_all_stands_in_its_order() {
    let entry = |url: &str, media_type: &str, body: i64, head: i64| {
        json!({
            "/request/url": format!("https://a.example/{url}"),
            "/response/content/mimeType": media_type,
            "/response/bodySize": body,
            "/response/headersSize": head,
        })
    };
    let entries = [
        entry("", "text/html", 3_000, 400),
        entry("a.css", "text/css", 800, 300),
        entry("a.js", "text/javascript", 800, -1),
        entry("a.png", "image/png", 800, 300),
        entry("b.js", "text/javascript", 800, 300),
    ];
    let page = read(&har(&entries)).unwrap().page;
    let site = Site::new(&page, Site::usual_name);
    let expected = [
        "<link rel=stylesheet href=/1.css><script src=/2.js></script><p>",
        "<img src=/3.png class=v style=top:300px width=1000 height=400><p>",
        "<script src=/4.js></script><p>",
    ];
    assert!(
        markup(&site).ends_with(&expected.concat()),
        "{}",
        markup(&site)
    );
    assert_eq!(text_of(&site, 0).len(), 3_400);
    assert_eq!(text_of(&site, 1).len(), 1_100);
    // Of a body alone nothing is known of its fields.
    assert_eq!(body(&site, 2).len(), 800);
    let caching = page.resources()[2].observed.unwrap().caching;
    assert_eq!(caching, None);
    assert!(
        page.resources()
            .iter()
            .all(|one| one.loading == Loading::Usual)
    );
}

/// The transfer of a page of one request.
#[test]
fn a_page_of_one_request_is_one_response() {
    for bytes in [400, 836, 14_000, 18_091, 1_000_000] {
        let page = Recording::new(bytes).page();
        let site = Site::framed(&page, Framing::Http1, Site::usual_name);
        assert_eq!(text_of(&site, 0).len() as u64, bytes);
    }
}
