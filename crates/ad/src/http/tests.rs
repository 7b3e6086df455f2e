#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::task::{Context, Poll, ready};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::time::sleep;

use super::*;

const URL: &str = "https://example.org/";
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn urls_are_read() {
    for (text, host, port, path) in [
        ("https://Example.org", "example.org", 443, "/"),
        (
            "https://example.org:8443/a/b?c#d",
            "example.org",
            8443,
            "/a/b?c",
        ),
        ("HTTPS://example.org?q=1", "example.org", 443, "/?q=1"),
        ("https://[2001:db8::1]:8443/", "2001:db8::1", 8443, "/"),
        ("https://[2001:db8::1]", "2001:db8::1", 443, "/"),
    ] {
        let url: Url = text.parse().unwrap();
        assert_eq!(
            (url.host.as_str(), url.port, url.path.as_str()),
            (host, port, path)
        );
    }
    for (text, hint) in [
        ("http://example.org", "begin it with https://"),
        ("https://", "name a host"),
        ("https://user@example.org/", "without a user"),
        ("https://example.org:x/", "a port up to 65535"),
        ("https://[]#:2/a?b", "name a host"),
        ("https://[::1", "an IPv6 address in brackets"),
        ("https://[::1]8443", "put a colon"),
        ("https://example.org/a b", "as %XX"),
        ("https://example.org/\r\nHost: x", "as %XX"),
    ] {
        let error = text.parse::<Url>().unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn where_a_redirection_leads() {
    let url: Url = "https://example.org:8443/a/b".parse().unwrap();
    for (location, expected) in [
        (
            "https://other.example/c?d",
            Some("https://other.example/c?d"),
        ),
        ("/c", Some("https://example.org:8443/c")),
        ("http://example.org/c", None),
        ("//other.example/c", None),
        ("c", None),
        ("", None),
        ("/c d", None),
    ] {
        let redirected = url.redirected(location).ok().map(|url| url.to_string());
        assert_eq!(redirected.as_deref(), expected, "{location}");
    }
}

/// What `response` is read as, in pieces of up to so many bytes, and the request that it answers.
fn answer(url: &str, response: &str, piece: usize) -> (Result<Answer, HttpError>, String, String) {
    let url: Url = url.parse().unwrap();
    let (client, server) = tokio::io::duplex(piece);
    let serve = async {
        let (mut from, mut to) = tokio::io::split(server);
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(from.read_u8().await.unwrap());
        }
        // A client that has enough hangs up.
        let _ = to.write_all(response.as_bytes()).await;
        request
    };
    let mut body = Vec::new();
    let fetch = get(client, &url, Instant::now(), PATIENCE, &mut body);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let (answer, request) = runtime.block_on(async { tokio::join!(fetch, serve) });
    let [body, request] = [body, request].map(|text| String::from_utf8(text).unwrap());
    (answer, body, request)
}

#[test]
fn a_request_names_its_host() {
    let (_, _, request) = answer("https://[2001:db8::1]:8443/a?b", "", 1000);
    assert!(request.starts_with("GET /a?b HTTP/1.1\r\n"), "{request}");
    for field in ["host: [2001:db8::1]:8443", "connection: close"] {
        assert!(request.contains(&format!("\r\n{field}\r\n")), "{request}");
    }
}

#[test]
fn responses_are_read_however_they_come() {
    for (response, status, content) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more",
            200,
            "hello",
        ),
        ("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", 404, ""),
        ("HTTP/1.1 204 \r\n\r\n", 204, ""),
        (
            "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
            302,
            "",
        ),
        ("HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end"),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nA: b\r\n\r\nHTTP/1.1 200 \r\n\
             Transfer-Encoding: Chunked\r\nContent-Length: 1\r\n\r\n\
             5;a=b\r\nhello\r\n10\r\n, sixteen bytes.\r\n0\r\nTrailer: x\r\n\r\nmore",
            200,
            "hello, sixteen bytes.",
        ),
    ] {
        for piece in [1, 2, 3, 1000] {
            let (answer, body, _) = answer(URL, response, piece);
            let answer = answer.unwrap();
            assert_eq!(answer.status, status);
            assert_eq!(answer.location.as_deref(), (status == 302).then_some("/b"));
            assert_eq!(answer.body_bytes, content.len() as u64);
            assert!(answer.start <= answer.total);
            assert_eq!(body, content);
        }
    }
}

#[test]
fn what_is_no_response_is_refused() {
    let read = |response: &str| answer(URL, response, 1000).0.unwrap_err().to_string();
    let no_length = "invalid content-length";
    for (response, reason) in [
        (
            "SSH-2.0-OpenSSH\r\n",
            "no HTTP/1.1 that can be read: invalid HTTP version",
        ),
        ("HTTP/1.1 101 \r\n\r\n", "switches protocols"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            "before the response is complete",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", no_length),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", no_length),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            no_length,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            no_length,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "gzip",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "missing size digit",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            "Invalid chunk body",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
            "before the response",
        ),
        ("", "before the response is complete"),
    ] {
        let error = read(response);
        assert!(error.contains(reason), "{response:?}: {error}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(MAX_HEAD));
    assert!(
        read(&endless).contains("head is too large"),
        "{}",
        read(&endless)
    );
}

/// A connection that ends without TLS's goodbye, as OpenSSL tells it.
struct Cut(DuplexStream);

impl AsyncRead for Cut {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(context, buffer))?;
        Poll::Ready(if buffer.filled().len() == before {
            Err(io::Error::other("unexpected EOF"))
        } else {
            Ok(())
        })
    }
}

impl AsyncWrite for Cut {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[tokio::test]
async fn a_body_that_ends_with_a_cut_connection_may_be_cut_too() {
    let cut = "may be cut short";
    let incomplete = "before the response is complete";
    for (response, body, problem) in [
        ("HTTP/1.1 200 OK\r\n\r\nhello", "hello", Some(cut)),
        ("HTTP/1.0 200 OK\r\n\r\n", "", Some(cut)),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "hello",
            None,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "", None),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "hello",
            None,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
            "hello",
            Some(incomplete),
        ),
        ("HTTP/1.1 200 OK\r\n", "", Some(incomplete)),
    ] {
        let url: Url = URL.parse().unwrap();
        let (client, mut server) = tokio::io::duplex(1000);
        let serve = async {
            assert_eq!(server.read_u8().await.unwrap(), b'G');
            server.write_all(response.as_bytes()).await.unwrap();
            server.shutdown().await.unwrap();
        };
        let mut written = Vec::new();
        let fetch = get(Cut(client), &url, Instant::now(), PATIENCE, &mut written);
        let (fetched, ()) = tokio::join!(fetch, serve);
        assert_eq!(String::from_utf8(written).unwrap(), body);
        match (fetched, problem) {
            (Ok(_), None) => {}
            (Err(error), Some(problem)) => assert!(error.to_string().contains(problem), "{error}"),
            (fetched, _) => panic!("{response:?}: {fetched:?}"),
        }
    }
}

#[tokio::test]
async fn silence_ends_it() {
    let url: Url = URL.parse().unwrap();
    let (client, mut server) = tokio::io::duplex(1000);
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell";
    let serve = async {
        assert_eq!(server.read_u8().await.unwrap(), b'G');
        server.write_all(half.as_bytes()).await.unwrap();
    };
    let mut body = Vec::new();
    let fetch = get(client, &url, Instant::now(), SHORT, &mut body);
    let (fetched, ()) = tokio::join!(fetch, serve);
    assert_eq!(fetched.unwrap_err().to_string(), "timed out");
    assert_eq!(body, b"hell");
}

#[tokio::test]
async fn times_are_of_the_first_byte_and_the_last() {
    let url: Url = URL.parse().unwrap();
    let (client, mut server) = tokio::io::duplex(1000);
    let serve = async {
        for part in ["H", "TTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "o"] {
            sleep(SHORT).await;
            server.write_all(part.as_bytes()).await.unwrap();
        }
    };
    let mut body = Vec::new();
    let fetch = get(client, &url, Instant::now(), PATIENCE, &mut body);
    let (answer, ()) = tokio::join!(fetch, serve);
    let answer = answer.unwrap();
    assert!(answer.start >= SHORT, "{answer:?}");
    assert!(answer.total >= answer.start + 2 * SHORT, "{answer:?}");
}
