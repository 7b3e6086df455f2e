use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{HeaderMap, HeaderValue, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpListener;

use super::super::backend::Backend;
use super::super::relay::{Carried, End};
use super::super::room::{Most, Place, Room};
use super::{Io, Moved, To, relay_http};

/// What the client of 192.0.2.7 got for this, and how its connection ended.
struct Got {
    answer: String,
    end: io::Result<End>,
    /// What was said of the backend.
    unanswered: Vec<String>,
}

impl Got {
    fn status(&self) -> &str {
        self.answer.get("HTTP/1.1 ".len()..).unwrap()[..3].as_ref()
    }

    /// The lines that the backend says it was sent.
    fn told(&self) -> Vec<&str> {
        assert_eq!(self.status(), "200", "{}", self.answer);
        let (_, body) = self.answer.split_once("\r\n\r\n").unwrap();
        body.lines().collect()
    }
}

/// Sends this to a backend that says what it was sent.
async fn ask(request: &str) -> Got {
    ask_of(StatusCode::OK, request).await
}

async fn ask_of(status: StatusCode, request: &str) -> Got {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = Backend::new(&listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        let service = service_fn(|request| async move {
            let mut response = Response::new(told(request).await);
            *response.status_mut() = status;
            if status == StatusCode::SWITCHING_PROTOCOLS {
                let headers = response.headers_mut();
                headers.insert(UPGRADE, HeaderValue::from_static("h2c"));
            }
            Ok::<_, Infallible>(response)
        });
        loop {
            let io = Io {
                stream: listener.accept().await.unwrap().0,
                moved: Moved::default().into(),
                pace: None,
            };
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http.serve_connection(io, service).await;
        }
    });
    ask_backend(&backend, request).await
}

/// Sends this to a backend that answers each head with that, and closes.
async fn ask_raw(answer: &'static str, request: &str) -> Got {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = Backend::new(&listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    ask_backend(&backend, request).await
}

/// The only one of a room.
fn place() -> Place {
    let room = Room::new(Most {
        connections: 1,
        of_one: 1,
        of_one_in_a_crowd: 1,
        handshakes: 1,
    });
    room.enter_for_others(std::net::IpAddr::from([192, 0, 2, 7]).into())
}

async fn ask_backend(backend: &Backend, request: &str) -> Got {
    let unanswered = Mutex::new(Vec::new());
    let place = place();
    let dropped = ["x-own".parse().unwrap()];
    let to = To {
        backend,
        client: "::ffff:192.0.2.7".parse().unwrap(),
        dropped: &dropped,
        connecting: Duration::from_secs(60),
        idle: Duration::from_secs(60),
        request: Duration::from_secs(60),
        spot: place.spot(),
        connected: &|_| {},
        unanswered: &|why| unanswered.lock().unwrap().push(why.to_owned()),
    };
    let (mut client, server) = duplex(1 << 16);
    let carried = Carried::default();
    let (end, answer) = tokio::join!(relay_http(server, to, pending(), &carried), async {
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    });
    Got {
        answer,
        end,
        unanswered: unanswered.into_inner().unwrap(),
    }
}

async fn told(request: Request<Incoming>) -> String {
    let (head, mut body) = request.into_parts();
    let mut told = format!("{} {}\n", head.method, head.uri);
    let fields = |told: &mut String, kind: &str, fields: &HeaderMap| {
        for (name, value) in fields {
            writeln!(told, "{kind}{name}: {}", value.to_str().unwrap()).unwrap();
        }
    };
    fields(&mut told, "", &head.headers);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame.map(|frame| frame.into_data()) {
            Ok(Ok(data)) => writeln!(told, "data {}", str::from_utf8(&data).unwrap()).unwrap(),
            Ok(Err(frame)) => fields(&mut told, "trailer ", &frame.into_trailers().unwrap()),
            Err(_) => told += "cut\n",
        }
    }
    told
}

fn sorted<T: Ord>(mut lines: Vec<T>) -> Vec<T> {
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn what_a_client_says_of_itself_is_left_out() {
    let got = ask(
        "GET /a?b HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7\r\n\
         X_Forwarded_For: 6.6.6.6\r\nX.Forwarded.For: 6.6.6.6\r\nX-Forwarded: 6.6.6.6\r\n\
         X-Forwarded-Host: evil.example\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\
         Client-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\nX-Client-IP: 6.6.6.6\r\n\
         X_Cluster_Client.IP: 6.6.6.6\r\nProxy: evil.example:1\r\nCookie: kept\r\n\r\n",
    )
    .await;
    assert_eq!(
        sorted(got.told()),
        [
            "GET /a?b",
            "cookie: kept",
            "host: a.example",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-proto: https",
        ]
    );
}

#[tokio::test]
async fn connection_names_no_field_that_is_for_the_backend() {
    let got = ask(
        "POST / HTTP/1.1\r\nHost: a.example\r\nConnection: close, Host, Content-Length, Cookie, authorization, \
         transfer-encoding, X-Forwarded-For, x-forwarded-proto, x-own\r\nAuthorization: kept\r\n\
         Content-Length: 2\r\nCookie: kept\r\nX-Own: 1\r\nKeep-Alive: 1\r\n\r\nab",
    )
    .await;
    assert_eq!(
        sorted(got.told()),
        [
            "POST /",
            "authorization: kept",
            "content-length: 2",
            "cookie: kept",
            "data ab",
            "host: a.example",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-proto: https",
        ]
    );
}

#[tokio::test]
async fn only_websockets_are_another_protocol() {
    let ask = async |fields: &str| {
        let fields = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let got = ask(&fields).await;
        let told = got.told().into_iter();
        let told = told.filter(|line| {
            let fields = ["connection", "upgrade", "http2-settings"];
            fields.iter().any(|name| line.starts_with(name))
        });
        let told: Vec<_> = told.map(str::to_owned).collect();
        told
    };
    let websocket = ["connection: upgrade", "upgrade: websocket"];
    let upgrade = "Connection: keep-alive, Upgrade\r\n";
    assert_eq!(
        sorted(ask(&format!("{upgrade}Upgrade: WebSocket\r\n")).await),
        websocket
    );
    for other in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: TLS/1.3\r\n",
        "Upgrade: websocket\r\n",
    ] {
        assert!(ask(other).await.is_empty(), "{other}");
    }
}

#[tokio::test]
async fn a_backend_changes_to_no_protocol_that_was_not_asked_for() {
    for fields in [
        "",
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let got = ask_of(StatusCode::SWITCHING_PROTOCOLS, &request).await;
        assert_eq!(got.status(), "502", "{fields}: {}", got.answer);
    }
}

#[tokio::test]
async fn trailers_say_nothing() {
    let got = ask(
        "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTrailer: X-Forwarded-For, Host, X-Own\r\n\
         Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\nHost: b\r\nX-Own: 1\r\n\r\n",
    )
    .await;
    assert_eq!(
        sorted(got.told()),
        [
            "POST /",
            "data ab",
            "host: a",
            "transfer-encoding: chunked",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-proto: https",
        ]
    );
}

#[tokio::test]
async fn any_request_has_the_body_that_it_came_with() {
    for method in ["GET", "DELETE", "POST"] {
        for framing in [
            "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            "Content-Length: 2\r\n\r\nab",
        ] {
            // The next one begins where this one ends.
            let request = format!(
                "{method} / HTTP/1.1\r\nHost: a\r\n{framing}GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
            );
            let got = ask(&request).await;
            assert!(got.told().contains(&"data ab"), "{method} {framing}");
            assert!(got.told().contains(&"GET /next"), "{method} {framing}");
        }
    }
}

#[tokio::test]
async fn a_malformed_body_is_its_clients_failure() {
    let post = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let got = ask(&format!("{post}2\r\nab\r\nno\r\n")).await;
    assert_eq!(got.status(), "400", "{}", got.answer);
    let failure = got.end.unwrap_err().to_string();
    assert!(failure.starts_with("no HTTP/1.1: "), "{failure}");
    // One that is cut is from somebody who went away.
    let got = ask(&format!("{post}2\r\nab\r\n")).await;
    assert!(got.end.is_ok(), "{:?}", got.end);
    for (coding, status) in [
        ("gzip, chunked", "501"),
        ("chunked, chunked", "501"),
        // Without chunks at the end, where the body ends can't be told (RFC 9112, section 6.3).
        ("gzip", "400"),
        ("identity", "400"),
        ("xchunked", "400"),
        ("chunked, gzip", "400"),
    ] {
        let got = ask(&post.replace("chunked", coding)).await;
        assert_eq!(got.status(), status, "{coding}: {}", got.answer);
    }
}

#[tokio::test]
async fn a_backend_that_does_not_answer_to_the_end_is_told_of() {
    for (answer, status, told) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
            Some("200"),
            None,
        ),
        ("", Some("502"), Some("closed before message completed")),
        ("hello\r\n\r\n", Some("502"), Some("invalid HTTP version")),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            None,
            Some("end of file"),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
            None,
            Some("error reading a body"),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n",
            None,
            Some("error reading a body"),
        ),
    ] {
        let got = ask_raw(answer, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        if let Some(status) = status {
            assert_eq!(got.status(), status, "{answer:?}: {}", got.answer);
        }
        assert_eq!(
            got.unanswered.len(),
            usize::from(told.is_some()),
            "{answer:?}"
        );
        for (said, told) in got.unanswered.iter().zip(told) {
            assert!(said.contains(told), "{answer:?}: {said}");
        }
    }
    // Whose own body is cut tells nothing of the backend.
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab";
    let got = ask_raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", post).await;
    assert!(got.unanswered.is_empty(), "{:?}", got.unanswered);
}

#[tokio::test]
async fn hosts_of_all_forms_go_on() {
    for host in [
        "a",
        "a:80",
        "a:",
        "xn--bcher-kva.example",
        "192.0.2.1",
        "[2001:db8::1]:443",
        "a_b",
    ] {
        let got = ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(got.status(), "200", "{host}: {}", got.answer);
    }
}

#[tokio::test]
async fn twins_of_framing_and_what_was_named_are_left_out() {
    let fields = [
        "Content_Length: 7",
        "Transfer.Encoding: chunked",
        "X-Own: 1",
        "X_Own: 1",
        "X-Original-URL: /admin",
        "X-Rewrite-URL: /admin",
        "CF-Connecting-IP: 1.1.1.1",
        "X-Original-Forwarded-For: 1.1.1.1",
        "X-Other: kept",
    ];
    let got = ask(&format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n",
        fields.join("\r\n")
    ))
    .await;
    let told = got.told().join("\n").to_lowercase();
    assert!(told.contains("x-other: kept"), "{told}");
    for left_out in [
        "content_length",
        "transfer.encoding",
        "own",
        "x-original",
        "x-rewrite",
        "cf-",
    ] {
        assert!(!told.contains(left_out), "{left_out}: {told}");
    }
}

#[tokio::test]
async fn a_request_is_for_one_host() {
    for bad in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n",
        "GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: user@a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: :80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: \r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [zzz]\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n",
        "GET ftp://a/p HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET ws://a/p HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let got = ask(bad).await;
        assert_eq!(got.status(), "400", "{bad}: {}", got.answer);
    }
    for (request, line, host) in [
        (
            "GET http://b:8080/c?d HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /c?d",
            Some("host: b:8080"),
        ),
        ("GET https://b HTTP/1.0\r\n\r\n", "GET /", Some("host: b")),
        (
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS *",
            Some("host: a"),
        ),
        ("GET / HTTP/1.0\r\n\r\n", "GET /", None),
    ] {
        let got = ask(request).await;
        assert_eq!(got.told().first(), Some(&line), "{request}");
        let told = got.told().into_iter();
        let hosts: Vec<_> = told.filter(|line| line.starts_with("host:")).collect();
        assert_eq!(hosts, Vec::from_iter(host), "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_ends_and_a_session_between_requests_makes_room() {
    let backend = Backend::new("127.0.0.1:9");
    let place = place();
    place.is_established();
    let dropped = [];
    let to = || To {
        backend: &backend,
        client: "192.0.2.7".parse().unwrap(),
        dropped: &dropped,
        connecting: Duration::from_secs(60),
        idle: Duration::from_secs(300),
        request: Duration::from_secs(30),
        spot: place.spot(),
        connected: &|_| {},
        unanswered: &|_| {},
    };
    let (mut client, server) = duplex(1 << 16);
    let dripping = tokio::spawn(async move {
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n")
            .await
            .unwrap();
        while client.write_all(b"X").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let carried = Carried::default();
    let end = relay_http(server, to(), pending(), &carried).await;
    let words = end.unwrap_err().to_string();
    assert_eq!(words, "the head of a request was not whole after 30s");
    dripping.await.unwrap();

    let (client, server) = duplex(1 << 16);
    let told = async {
        tokio::time::sleep(Duration::from_secs(200)).await;
        place.make_room();
    };
    let (end, ()) = tokio::join!(relay_http(server, to(), pending(), &carried), told);
    assert_eq!(
        end.unwrap_err().to_string(),
        "it had to make room for others"
    );
    drop(client);
}
