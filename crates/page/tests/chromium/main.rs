//! Pages in the machine's Chromium, from servers of our own on the loopback interface.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod driver;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use lastbyte_link::Bytes;
use lastbyte_page::cdp::{Cache, Codec, Failure, Frames, Load, Source, Tasks, Visit};
use lastbyte_page::{Answer, Content, Kind, Loading, Named, Page, Resource, Site, har};

use driver::{Chromium, listen, names, serve};

fn visit(url: &str, cache: Cache) -> Visit {
    Visit {
        url: url.to_owned(),
        cache,
        frames: Frames::All,
        tasks: Tasks::Traced,
        slowdown: 1,
        timeout: Duration::from_secs(60),
        quiet: Duration::from_millis(500),
        patience: Duration::from_secs(60),
    }
}

/// Serves a page, on origins of those names, and says where.
fn served(page: &Page, name: impl Fn(u8) -> String) -> String {
    let listeners = listen(page.origins());
    let names = names(&listeners, name);
    let site = Site::new(page, |origin| names[usize::from(origin)].clone());
    assert!(site.grown.is_empty(), "{:?}", site.grown);
    let url = format!("http:{}", site.document());
    serve(listeners, site);
    url
}

/// The number of a resource, which is in its URL.
fn place(url: &str) -> usize {
    let path = url.rsplit('/').next().unwrap();
    let number = path.split('.').next().unwrap();
    match number {
        "" => 0,
        number => number.parse().unwrap(),
    }
}

/// In what a resource is named: a redirect's target where the redirect is.
fn finder(page: &Page, place: usize) -> Option<usize> {
    let above = page.resources()[place].found_in?;
    match page.resources()[above].kind {
        Kind::Redirect => finder(page, above),
        _ => Some(above),
    }
}

/// Every resource was asked for once, as what it is, and found where the page says.
fn is_as_the_page_says(load: &Load, page: &Page) {
    let failures: Vec<_> = load.failures().collect();
    assert!(failures.is_empty(), "{failures:?}");
    let mut found = BTreeMap::new();
    for request in &load.requests {
        assert!(
            found.insert(place(&request.url), request).is_none(),
            "{} twice",
            request.url
        );
    }
    assert_eq!(found.len(), page.resources().len(), "{:?}", found.keys());
    for (number, resource) in page.resources().iter().enumerate() {
        let request = found[&number];
        assert_eq!(request.kind, Some(resource.kind), "{}", request.url);
        let told = request.found_in.as_deref().map(place);
        // Of what a script asks for, the browser often names the document that it runs in: of
        // pictures, frames, what was sent on, and what scripts ask for that come from elsewhere
        // than the page says.
        let mut named = vec![finder(page, number)];
        while let Some(above) = *named.last().unwrap()
            && page.resources()[above].kind == Kind::Script
        {
            named.push(finder(page, above));
        }
        assert!(
            named.contains(&told),
            "{} {:?}",
            request.url,
            request.found_in
        );
        if request.source == Source::Network && resource.kind != Kind::Redirect {
            assert_eq!(request.body, resource.body, "{}", request.url);
            assert!(request.wire > request.body);
            let times = [
                Some(request.start),
                request.sent,
                request.first_byte,
                request.end,
            ];
            assert!(times.is_sorted() && times[1].is_some(), "{times:?}");
        }
    }
}

#[test]
fn the_median_page_is_loaded_cold_and_warm() {
    let mut model = Named::Median2024.model();
    model.origins = 3;
    let page = model.page().unwrap();
    let url = served(&page, Site::usual_name);
    let mut chromium = Chromium::start(&[]);

    let cold = chromium.visit(visit(&url, Cache::Cold)).unwrap();
    is_as_the_page_says(&cold, &page);
    assert!(
        cold.requests
            .iter()
            .all(|one| one.source == Source::Network)
    );
    let connect = cold.connect.unwrap();
    assert!(connect <= cold.ttfb && cold.ttfb < cold.fcp, "{cold:?}");
    assert!(cold.dom_content_loaded.unwrap() <= cold.load);
    assert!(cold.lcp.unwrap() >= cold.fcp);
    // The thread has to compute for what is seen, and can't compute for longer than there is time.
    let computing = cold.computing.unwrap();
    assert!(
        !computing.fcp.is_zero() && computing.fcp <= computing.load.max(computing.lcp.unwrap())
    );
    assert!(
        computing.load <= cold.load && computing.fcp <= cold.fcp,
        "{computing:?}"
    );
    // HTTP/1.1: up to six connections with each origin, and as many again for what is asked for
    // without cookies.
    let origins: Vec<&str> = cold
        .connections
        .iter()
        .map(|one| one.origin.as_str())
        .collect();
    assert!(origins.len() > 3 && origins.len() <= 36, "{origins:?}");
    assert!(cold.connections.iter().all(|one| one.tls.is_none()));
    // No times are told of a connection whose request another one took before it was there: whoever
    // takes it then found it idle. So the first of each origin has them, and more often than not
    // the others.
    let timed: Vec<&str> = (cold.connections.iter())
        .filter(|one| one.connecting.is_some())
        .map(|one| one.origin.as_str())
        .collect();
    assert!(origins.iter().all(|origin| timed.contains(origin)));
    assert!(2 * timed.len() > origins.len(), "{:?}", cold.connections);
    let on_connections: u32 = cold.connections.iter().map(|one| one.requests).sum();
    assert_eq!(on_connections, 71);
    assert_eq!(cold.frames.last().unwrap().progress, 1.0);
    let index = cold.speed_index.unwrap();
    assert!(cold.frames[0].at <= index && index <= cold.frames.last().unwrap().at);

    let pause = Duration::from_millis(100);
    let warm = chromium.visit(visit(&url, Cache::Warm { pause })).unwrap();
    is_as_the_page_says(&warm, &page);
    let kept = |kind| matches!(kind, Kind::Style | Kind::Script | Kind::Image | Kind::Font);
    for request in &warm.requests {
        let is_kept = request.source == Source::Cache;
        assert_eq!(is_kept, kept(request.kind.unwrap()), "{}", request.url);
        assert_eq!(request.wire == Bytes(0), is_kept, "{}", request.url);
    }

    others_agree(&chromium, &[&cold, &warm]);
    let read = har::read(har::write(&[titled(&cold)]).as_bytes()).unwrap();
    assert_eq!((read.notes.len(), read.page.origins()), (0, 3));
    let kinds = |page: &Page| {
        let mut kinds: Vec<_> = (page.resources().iter())
            .map(|one| {
                let finder = one.found_in.map(|place| page.resources()[place].kind);
                (one.kind, one.body, finder, one.loading == Loading::Deferred)
            })
            .collect();
        kinds.sort_by_key(|(kind, body, finder, _)| (*kind, *body, *finder));
        kinds
    };
    let (read, page) = (kinds(&read.page), kinds(&page));
    // Scripts that scripts ask for are of low priority, as the deferred ones are.
    assert_eq!(read, page);
}

fn titled(load: &Load) -> har::Titled<'_> {
    har::Titled { title: "one", load }
}

/// Others read our HAR, and find the Speed Index that we do in what the browser sent.
fn others_agree(chromium: &Chromium, loads: &[&Load]) {
    let modules = installed();
    let folder = tempfile::tempdir().unwrap();
    let (har, trace) = (
        folder.path().join("loads.har"),
        folder.path().join("trace.json"),
    );
    let all: Vec<har::Titled<'_>> = loads.iter().map(|load| titled(load)).collect();
    fs::write(&har, har::write(&all)).unwrap();
    let mut codec = Codec::default();
    codec.push(&chromium.said);
    let mut traces: Vec<Vec<serde_json::Value>> = vec![Vec::new()];
    while let Some(message) = codec.pop().unwrap() {
        let mut message: serde_json::Value = serde_json::from_slice(&message).unwrap();
        match message["method"].as_str() {
            Some("Tracing.dataCollected") => {
                let events = message["params"]["value"].as_array_mut().unwrap();
                traces.last_mut().unwrap().append(events);
            }
            Some("Tracing.tracingComplete") => traces.push(Vec::new()),
            _ => {}
        }
    }
    assert_eq!(traces.len(), loads.len() + 1);
    for (load, events) in loads.iter().zip(&traces) {
        fs::write(&trace, serde_json::to_vec(events).unwrap()).unwrap();
        let is_navigation = |event: &&serde_json::Value| {
            let data = &event["args"]["data"];
            event["name"] == "navigationStart" && data["documentLoaderURL"] == load.url.as_str()
        };
        let origin = events.iter().find(is_navigation).unwrap()["ts"].to_string();
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/chromium/others.cjs");
        let node = Command::new("node")
            .args([&script, &modules, &har, &trace])
            .arg(origin)
            .output()
            .unwrap();
        let problem = String::from_utf8_lossy(&node.stderr);
        assert!(node.status.success(), "{problem}");
        let told: serde_json::Value = serde_json::from_slice(&node.stdout).unwrap();
        let (theirs, ours) = (
            told["speedIndex"].as_f64().unwrap(),
            load.speed_index.unwrap(),
        );
        let ours = ours.as_secs_f64() * 1e3;
        // They count progress in whole percents, and read the pictures with another decoder.
        let apart = (theirs - ours).abs() / ours;
        println!("Speed Index: {ours:.3} and {theirs:.3} ms");
        assert!(apart < 0.02, "{ours} and {theirs}");
    }
}

/// What `scripts/interop` has installed of package.json.
fn installed() -> PathBuf {
    let folder = |variable| env::var_os(variable).filter(|value| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache
        .or_else(|| Some(env::home_dir()?.join(".cache")))
        .unwrap();
    let home = cache.join("lastbyte/tools/page");
    let there = fs::read_to_string(home.join("package.json")).unwrap_or_default();
    assert!(
        there == include_str!("package.json"),
        "this test needs the packages of package.json, in that version: run scripts/interop to install them"
    );
    home
}

/// Whatever finds whatever, with redirects between, on sites that have nothing to do with each
/// other.
#[test]
fn whatever_finds_something_finds_it_in_the_browser() {
    let finders = [Kind::Document, Kind::Style, Kind::Script];
    let mut all = Vec::new();
    let mut add = |kind, found_in| {
        let body = match kind {
            Kind::Document => 6_000,
            Kind::Redirect => 0,
            _ => 5_000,
        };
        all.push(Resource {
            kind,
            body: Bytes(body),
            origin: (all.len() % 3) as u8,
            found_in,
            loading: match all.len() % 2 {
                0 => Loading::Usual,
                _ => Loading::Deferred,
            },
            observed: None,
        });
        all.len() - 1
    };
    let start = add(Kind::Redirect, None);
    let document = add(Kind::Document, Some(start));
    for of_finder in finders {
        let finder = match of_finder {
            Kind::Document => document,
            _ => add(of_finder, Some(document)),
        };
        let kinds = [
            Kind::Document,
            Kind::Style,
            Kind::Script,
            Kind::Image,
            Kind::Font,
            Kind::Fetch,
        ];
        for kind in kinds.into_iter().filter(|kind| of_finder.finds(*kind)) {
            add(kind, Some(finder));
            // The same after two redirects; a frame, style or script of those finds something, too.
            let first = add(Kind::Redirect, Some(finder));
            let second = add(Kind::Redirect, Some(first));
            let target = add(kind, Some(second));
            if kind.finds(Kind::Image) {
                add(Kind::Image, Some(target));
                add(Kind::Font, Some(target));
            }
        }
    }
    let page = Page::new(all).unwrap();
    let url = served(&page, |origin| format!("site{origin}.example"));
    let mut chromium = Chromium::start(&[]);
    let load = chromium.visit(visit(&url, Cache::Cold)).unwrap();
    is_as_the_page_says(&load, &page);
}

/// A site of one document, and whatever else.
fn hand_made(document: &str, more: Vec<(&str, Content)>) -> Site {
    let document = format!("<!doctype html><link rel=icon href=data:,>{document}");
    let mut answers = vec![("/", Content::Body(document.into_bytes()))];
    answers.extend(more);
    let answers = answers
        .into_iter()
        .enumerate()
        .map(|(resource, (path, content))| Answer {
            resource,
            origin: 0,
            path: path.to_owned(),
            fields: vec![("content-type".to_owned(), "text/html".to_owned())],
            content,
            is_recorded: false,
        });
    Site {
        origins: vec!["o0.page.example".to_owned()],
        answers: answers.collect(),
        grown: Vec::new(),
    }
}

fn served_by_hand(site: Site) -> String {
    let listeners = listen(1);
    let name = names(&listeners, Site::usual_name).remove(0);
    serve(listeners, site);
    format!("http://{name}/")
}

/// Made-up pictures and fonts are some: the browser asks for what a script names once they are
/// decoded.
#[test]
fn made_up_pictures_and_fonts_are_pictures_and_fonts() {
    let resource = |kind, body| Resource {
        kind,
        body: Bytes(body),
        origin: 0,
        found_in: Some(0),
        loading: Loading::Usual,
        observed: None,
    };
    let mut page = vec![Resource {
        found_in: None,
        ..resource(Kind::Document, 90_000)
    }];
    let sizes = [200, 1_201, 4_002, 33_536, 65_600, 131_077, 500_003];
    for (kind, size) in sizes
        .map(|size| [(Kind::Image, size), (Kind::Font, size + 1_000)])
        .concat()
    {
        page.push(resource(kind, size));
    }
    let site = Site::new(&Page::new(page).unwrap(), Site::usual_name);
    let mut document = "<p>text<script>".to_owned();
    let mut more = Vec::new();
    for answer in &site.answers[1..] {
        let path = answer.path.as_str();
        let checked = if path.ends_with("png") {
            format!("e=new Image();e.src='{path}';e.decode()")
        } else {
            format!("e=new FontFace('f','url({path})');e.load()")
        };
        document += &format!("{checked}.then(()=>fetch('/good?{path}'),()=>fetch('/bad?{path}'));");
        more.push((path, answer.content.clone()));
    }
    document += "</script>";
    let url = served_by_hand(hand_made(&document, more.clone()));
    let load = Chromium::start(&[])
        .visit(Visit {
            frames: Frames::None,
            ..visit(&url, Cache::Cold)
        })
        .unwrap();
    assert!(load.speed_index.is_none() && load.frames.is_empty() && load.lcp.is_some());
    let asked: Vec<&str> = load.requests.iter().map(|one| one.url.as_str()).collect();
    for (path, _) in more {
        assert!(
            asked
                .iter()
                .any(|url| url.ends_with(&format!("/good?{path}"))),
            "{path}: {asked:?}"
        );
    }
}

#[test]
fn a_page_that_can_not_be_loaded_is_told_and_the_browser_goes_on() {
    let mut chromium = Chromium::start(&[]);
    let good = served_by_hand(hand_made("<p>text", Vec::new()));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = format!("http://o0.page.example:{}/", gone.port());
    // It listens and never answers.
    let silent = format!("http://o0.page.example:{port}/");
    let blank = served_by_hand(hand_made("<title>blank</title>", Vec::new()));
    let endless = served_by_hand(hand_made(
        "<p>text<img src=/endless>",
        vec![("/endless", Content::Elsewhere("nowhere".to_owned()))],
    ));
    let missing = format!("{good}missing");
    let timeout = Duration::from_secs(1);
    let cases = [
        (
            refused.as_str(),
            "the page can't be had: net::ERR_CONNECTION_REFUSED".to_owned(),
        ),
        (
            &silent,
            "the page's server does not answer within 1s".to_owned(),
        ),
        (
            &missing,
            "the page's server answers with status 404".to_owned(),
        ),
        (&blank, "the page was loaded and never painted".to_owned()),
        (
            &endless,
            format!(
                "the page is not done within 1s: 1 of its requests are open, the first is {endless}endless"
            ),
        ),
        (
            "no address",
            "the browser refuses Page.navigate: Cannot navigate to invalid URL".to_owned(),
        ),
    ];
    for (url, told) in cases {
        let failure = chromium
            .visit(Visit {
                timeout,
                ..visit(url, Cache::Cold)
            })
            .unwrap_err();
        assert_eq!(failure.to_string(), told, "{url}");
        let load = chromium.visit(visit(&good, Cache::Cold)).unwrap();
        assert_eq!(load.requests.len(), 1, "after {url}: {:?}", load.requests);
    }

    // A page that crashes while it is loaded.
    let killer = chromium.crasher();
    let crash = thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        killer()
    });
    let failure = chromium.visit(visit(&endless, Cache::Cold)).unwrap_err();
    assert_eq!(failure, Failure::Crashed);
    assert!(crash.join().unwrap() > 0);
    chromium.visit(visit(&good, Cache::Cold)).unwrap();

    // A browser that does nothing any more, and one that is gone.
    chromium.signal("STOP");
    let patience = Duration::from_secs(2);
    let failure = chromium
        .visit(Visit {
            patience,
            ..visit(&good, Cache::Cold)
        })
        .unwrap_err();
    let command = "Target.createBrowserContext".to_owned();
    assert_eq!(failure, Failure::Hung { command, patience });
    let mut chromium = Chromium::start(&[]);
    chromium.visit(visit(&good, Cache::Cold)).unwrap();
    chromium.signal("KILL");
    assert_eq!(
        chromium.visit(visit(&good, Cache::Cold)),
        Err(Failure::Ended)
    );
    assert_eq!(
        chromium.visit(visit(&good, Cache::Cold)),
        Err(Failure::Ended)
    );
}
