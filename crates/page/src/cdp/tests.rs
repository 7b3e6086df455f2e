#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Browser, Cache, Codec, Failure, Frames, Load, MOST_MESSAGE, Tasks, TooLarge, Visit};

/// What a Chromium said on a visit, a message a line: eight resources of two origins over HTTP/2, from Node.js, with an ECDSA chain.
const RECORDED: &str = include_str!("recorded.jsonl");

/// All that is said happens at this time.
const NOW: Duration = Duration::from_secs(100);

fn visit() -> Visit {
    Visit {
        url: "https://o0.page.example:18443/".to_owned(),
        cache: Cache::Cold,
        frames: Frames::All,
        tasks: Tasks::Untraced,
        slowdown: 1,
        timeout: Duration::from_secs(30),
        quiet: Duration::from_millis(500),
        patience: Duration::from_secs(10),
    }
}

fn recorded() -> Vec<Value> {
    RECORDED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The end of each message.
fn framed(messages: &[Value]) -> Vec<u8> {
    messages
        .iter()
        .flat_map(|message| format!("{message}\0").into_bytes())
        .collect()
}

/// What a visit comes to if the browser says this, and nothing for a while when the page is done.
fn told(messages: &[Value]) -> (Browser, Result<Load, Failure>) {
    told_of(visit(), messages)
}

fn told_of(visited: Visit, messages: &[Value]) -> (Browser, Result<Load, Failure>) {
    let mut browser = Browser::new();
    browser.begin(visited, NOW);
    for message in messages {
        let is_end = message["method"] == "Tracing.dataCollected";
        if is_end {
            browser.tick(NOW + visit().quiet);
        }
        browser.receive(&framed(std::slice::from_ref(message)), NOW);
    }
    // Who waits long enough hears everything.
    while let Some(wake) = browser.wake() {
        browser.tick(wake);
    }
    let outcome = browser.outcome().unwrap();
    (browser, outcome)
}

#[test]
fn a_load_is_what_the_browser_said() {
    let (mut browser, load) = told(&recorded());
    insta::assert_json_snapshot!(load.unwrap());
    assert!(browser.is_ready() && browser.outcome().is_none());
    assert_eq!(browser.product(), Some("Chrome/156.0.8078.79"));
}

/// Tasks count by when they began, and only those of the thread that navigated.
#[test]
fn what_the_page_computes_is_the_sum_of_its_tasks() {
    let untraced = told(&recorded()).1.unwrap();
    assert_eq!(untraced.computing, None);
    let mut messages = recorded();
    let loader = messages
        .iter()
        .find_map(|one| one["result"]["loaderId"].as_str().map(str::to_owned))
        .unwrap();
    let data = (messages.iter_mut()).find(|one| one["method"] == "Tracing.dataCollected");
    let events = data.unwrap()["params"]["value"].as_array_mut().unwrap();
    let is_start = |event: &&Value| {
        event["name"] == "navigationStart" && event["args"]["data"]["navigationId"] == loader
    };
    let start = events.iter().rfind(is_start).unwrap().clone();
    let [began, pid, tid] = ["ts", "pid", "tid"].map(|name| start[name].as_i64().unwrap());
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap();
    let (fcp, load) = (micros(untraced.fcp), micros(untraced.load));
    let first = fcp.min(load);
    for (at, tid, took) in [
        (-1, tid, 1),
        (0, tid, 20),
        (first - 400, tid, 300),
        // It goes on behind the later event.
        (fcp.max(load) - 7, tid, 4000),
        (fcp.max(load), tid, 4000),
        (0, tid + 1, 50_000),
    ] {
        let ts = began + at;
        events.push(json!({ "name": "RunTask", "pid": pid, "tid": tid, "ts": ts, "dur": 7 * took, "tdur": took }));
    }
    // A clock that is not there, and one that goes back.
    events.push(json!({ "name": "RunTask", "pid": pid, "tid": tid, "ts": began, "dur": 5 }));
    events.push(json!({ "name": "RunTask", "pid": pid, "tid": tid, "ts": began, "tdur": -5 }));
    let visit = Visit {
        tasks: Tasks::Traced,
        ..visit()
    };
    let computing = told_of(visit, &messages).1.unwrap().computing.unwrap();
    assert!(fcp.abs_diff(load) > 7);
    assert_eq!(
        computing.fcp.min(computing.load),
        Duration::from_micros(320)
    );
    assert_eq!(
        computing.fcp.max(computing.load),
        Duration::from_micros(327)
    );
}

/// The browser has a time of nothing for it.
#[test]
fn over_http_3_nothing_connects_before_tls() {
    let over_tcp = told(&recorded()).1.unwrap();
    let messages: Vec<Value> = (recorded().iter())
        .map(|message| {
            let text = message.to_string();
            let text = text.replace(r#""protocol":"h2""#, r#""protocol":"h3""#);
            serde_json::from_str(&text).unwrap()
        })
        .collect();
    let over_quic = told(&messages).1.unwrap();
    assert!(over_tcp.connect.is_some());
    assert_eq!(over_quic.connect, None);
    assert_eq!(over_quic.handshake, over_tcp.handshake);
    for (quic, tcp) in over_quic.connections.iter().zip(&over_tcp.connections) {
        let (quic, tcp) = (quic.connecting.unwrap(), tcp.connecting.unwrap());
        assert_eq!((quic.tcp, quic.tls), (None, tcp.tls));
        assert_eq!(quic.whole(), tcp.tls);
        let (connected, _) = tcp.tcp.unwrap();
        assert_eq!(tcp.whole().unwrap(), (connected, tcp.tls.unwrap().1));
    }
}

#[test]
fn a_slow_machine_is_asked_of_the_browser() {
    let mut browser = Browser::new();
    let visit = Visit {
        slowdown: 4,
        ..visit()
    };
    browser.begin(visit, NOW);
    let mut asked = String::new();
    for message in recorded().iter().take(8) {
        asked += &String::from_utf8(browser.outgoing()).unwrap();
        browser.receive(&framed(std::slice::from_ref(message)), NOW);
    }
    asked += &String::from_utf8(browser.outgoing()).unwrap();
    assert!(
        asked.contains(r#""method":"Emulation.setCPUThrottlingRate","params":{"rate":4}"#),
        "{asked}"
    );
}

#[test]
fn what_is_asked_of_a_browser() {
    let mut browser = Browser::new();
    browser.begin(visit(), NOW);
    let mut asked = Vec::new();
    let mut ask = |browser: &mut Browser| {
        let out = browser.outgoing();
        asked.extend(
            String::from_utf8(out)
                .unwrap()
                .split_terminator('\0')
                .map(str::to_owned),
        );
    };
    for message in recorded() {
        ask(&mut browser);
        if message["method"] == "Tracing.dataCollected" {
            browser.tick(NOW + visit().quiet);
        }
        browser.receive(&framed(&[message]), NOW);
    }
    ask(&mut browser);
    insta::assert_snapshot!(asked.join("\n"));
}

proptest! {
    /// A pipe gives what it has, however much that is.
    #[test]
    fn messages_are_the_same_in_any_pieces(
        messages in prop::collection::vec("[^\0]{0,40}", 0..20),
        cuts in prop::collection::vec(1..30_usize, 1..40),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|text| format!("{text}\0").into_bytes()).collect();
        let mut codec = Codec::default();
        let mut read = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at(rest.len().min(*cut));
            rest = later;
            codec.push(now);
            while let Some(message) = codec.pop().unwrap() {
                read.push(String::from_utf8(message).unwrap());
            }
        }
        prop_assert_eq!(read, messages);
    }
}

proptest! {
    // Each is a whole visit.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is missing, said twice or said elsewhere: there is an outcome, and never a panic.
    #[test]
    fn a_visit_has_an_outcome(
        changes in prop::collection::vec((0..60_usize, 0..60_usize, 0..3_u8), 1..6),
    ) {
        let mut messages = recorded();
        for (from, to, what) in changes {
            let (from, to) = (from % messages.len(), to % messages.len());
            match what {
                0 => { messages.remove(from); }
                1 => { let message = messages[from].clone(); messages.insert(to, message); }
                _ => messages.swap(from, to),
            }
        }
        let (_, outcome) = told(&messages);
        if let Ok(load) = outcome {
            // One that is said twice is two.
            let asked = |message: &&Value| message["method"] == "Network.requestWillBeSent";
            prop_assert!(load.requests.len() <= messages.iter().filter(asked).count());
        }
    }
}

#[test]
fn a_message_that_never_ends_is_told() {
    let mut codec = Codec::default();
    codec.push(&vec![b' '; MOST_MESSAGE]);
    assert_eq!(codec.pop(), Ok(None));
    codec.push(b" ");
    assert_eq!(codec.pop(), Err(TooLarge));
    let mut browser = Browser::new();
    browser.begin(visit(), NOW);
    browser.receive(&vec![b' '; MOST_MESSAGE + 1], NOW);
    let failure = browser.outcome().unwrap().unwrap_err().to_string();
    assert_eq!(
        failure,
        "what the browser says can't be read: the browser sends a message of more than 64 MiB"
    );
}

#[test]
fn what_is_no_message_is_told() {
    for (said, told) in [
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("3", "a message is no object"),
        ("{}", "a message has neither id nor method"),
    ] {
        let mut browser = Browser::new();
        browser.begin(visit(), NOW);
        browser.receive(format!("{said}\0").as_bytes(), NOW);
        let problem = told.to_owned();
        assert_eq!(
            browser.outcome(),
            Some(Err(Failure::Unreadable { problem }))
        );
        assert!(!browser.is_ready());
    }
}

/// Wherever the pipe ends, and wherever the browser says nothing any more.
#[test]
fn a_browser_that_ends_or_hangs_is_told() {
    let messages = recorded();
    let done = |failure: &Failure| !matches!(failure, Failure::Ended | Failure::Hung { .. });
    let mut hung = Vec::new();
    for end in 0..messages.len() {
        let mut browser = Browser::new();
        browser.begin(visit(), NOW);
        for message in &messages[..end] {
            if message["method"] == "Tracing.dataCollected" {
                browser.tick(NOW + visit().quiet);
            }
            browser.receive(&framed(std::slice::from_ref(message)), NOW);
        }
        let mut other = Browser::new();
        std::mem::swap(&mut browser, &mut other);
        other.closed();
        // The page is there before its place is removed.
        let outcome = other.outcome().unwrap();
        assert!(
            outcome.is_ok() || outcome == Err(Failure::Ended),
            "{end}: {outcome:?}"
        );
        assert!(!other.is_ready());

        match told(&messages[..end]).1 {
            Err(Failure::Hung { command, .. }) => hung.push(command),
            Err(failure) => assert!(done(&failure), "{end}: {failure:?}"),
            Ok(_) => assert!(end > 60, "{end}"),
        }
    }
    hung.dedup();
    assert_eq!(
        hung,
        [
            "Browser.getVersion",
            "Target.createBrowserContext",
            "Target.createTarget",
            "Target.attachToTarget",
            "Inspector.enable",
            "Network.enable",
            "Page.enable",
            "Page.setLifecycleEventsEnabled",
            "Tracing.start",
            "Tracing.end",
        ]
    );
}

/// One message more, one less, or one that is another.
#[test]
fn what_can_go_wrong_is_told() {
    let find = |messages: &[Value], method: &str| {
        messages
            .iter()
            .position(|message| message["method"] == method)
            .unwrap()
    };
    let session = recorded()
        .iter()
        .find_map(|one| one["sessionId"].as_str().map(str::to_owned));
    let event = |method: &str, params: Value| json!({ "method": method, "params": params, "sessionId": session });
    let told = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut messages = recorded();
        change(&mut messages);
        told(&messages).1.unwrap_err().to_string()
    };
    let sent = |messages: &[Value]| find(messages, "Network.requestWillBeSent");

    assert_eq!(
        told(&|all| {
            let place = sent(all) + 1;
            all.insert(place, event("Inspector.targetCrashed", json!({})));
        }),
        "the page crashed in the browser"
    );
    assert_eq!(
        told(&|all| {
            let place = all.iter().position(|one| one["id"] == 6).unwrap();
            all[place] = json!({ "id": 6, "error": { "code": -32601, "message": "'Network.enable' wasn't found" } });
        }),
        "the browser refuses Network.enable: 'Network.enable' wasn't found"
    );
    assert_eq!(
        told(&|all| {
            let place = sent(all) + 1;
            let id = all[place - 1]["params"]["requestId"].clone();
            let failed = json!({ "requestId": id, "errorText": "net::ERR_CERT_AUTHORITY_INVALID" });
            all.insert(place, event("Network.loadingFailed", failed));
        }),
        "the page can't be had: net::ERR_CERT_AUTHORITY_INVALID"
    );
    assert_eq!(
        told(&|all| {
            let place = find(all, "Network.responseReceived");
            all[place]["params"]["response"]["status"] = 503.into();
        }),
        "the page's server answers with status 503"
    );
    assert_eq!(
        told(&|all| {
            all.retain(|one| one["params"]["name"] != "firstContentfulPaint");
        }),
        "the page was loaded and never painted"
    );
    assert_eq!(
        told(&|all| {
            let place = find(all, "Network.responseReceived");
            all[place]["params"]["response"]["timing"] = Value::Null;
        }),
        "the browser told no times of the page"
    );
    assert_eq!(
        told(&|all| {
            let place = sent(all);
            for number in 0..10_001 {
                let request = json!({ "requestId": format!("more {number}"), "request": { "url": "https://o0.page.example/more" }, "timestamp": 1 });
                all.insert(place + 1, event("Network.requestWillBeSent", request));
            }
        }),
        "the page makes more requests than are counted"
    );
    assert_eq!(
        told(&|all| {
            let end = find(all, "Tracing.dataCollected");
            all.truncate(end);
            let end = find(all, "Network.loadingFinished");
            all.remove(end);
        }),
        "the page is not done within 30s: 1 of its requests are open, the first is https://o0.page.example:18443/"
    );
    assert_eq!(
        told(&|all| {
            let start = sent(all);
            all.truncate(start);
        }),
        "the page's server does not answer within 30s"
    );
}

/// A response of an error's status and no body: the browser fails the load as well, and both may be read at once.
#[test]
fn a_status_is_told_however_the_messages_come() {
    let mut messages = recorded();
    let place = (messages.iter())
        .position(|message| message["method"] == "Network.responseReceived")
        .unwrap();
    messages[place]["params"]["response"]["status"] = 404.into();
    let failed = json!({
        "method": "Network.loadingFailed",
        "params": {
            "requestId": messages[place]["params"]["requestId"],
            "errorText": "net::ERR_HTTP_RESPONSE_CODE_FAILURE",
        },
        "sessionId": messages[place]["sessionId"],
    });
    messages.insert(place + 1, failed);
    for together in [1, 2] {
        let mut browser = Browser::new();
        browser.begin(visit(), NOW);
        for message in &messages[..place] {
            browser.receive(&framed(std::slice::from_ref(message)), NOW);
        }
        for some in messages[place..place + 2].chunks(together) {
            browser.receive(&framed(some), NOW);
        }
        while let Some(wake) = browser.wake() {
            browser.tick(wake);
        }
        let failure = browser.outcome().unwrap().unwrap_err();
        let told = "the page's server answers with status 404";
        assert_eq!(failure.to_string(), told, "{together} at once");
    }
}

/// The Speed Index of steps is what arithmetic says: each part of the screen, times how long it was not there.
#[test]
fn the_speed_index_is_the_area_above_the_progress() {
    let frame = |at, progress| super::Frame {
        at: Duration::from_millis(at),
        progress,
    };
    let index = |frames: &[super::Frame]| super::screen::speed_index(frames);
    assert_eq!(index(&[]), None);
    assert_eq!(index(&[frame(700, 1.0)]), Some(Duration::from_millis(700)));
    let steps = [
        frame(100, 0.0),
        frame(300, 0.5),
        frame(700, 0.75),
        frame(1_000, 1.0),
    ];
    // 300 + 400 × 0.5 + 300 × 0.25.
    assert_eq!(index(&steps), Some(Duration::from_millis(575)));
}
