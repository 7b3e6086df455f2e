#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

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
    for (text, mend) in [
        ("http://example.org", "begin it with https://"),
        ("https://", "name a host"),
        ("https://user@example.org/", "without a user"),
        ("https://example.org:x/", "a port up to 65535"),
        ("https://[::1", "close the bracket"),
        ("https://[::1]8443", "put a colon"),
        ("https://example.org/a b", "as %XX"),
        ("https://example.org/\r\nHost: x", "as %XX"),
    ] {
        let error = text.parse::<Url>().unwrap_err().to_string();
        assert!(error.contains(mend), "{error}");
    }
}

#[test]
fn a_request_names_its_host() {
    let url: Url = "https://[2001:db8::1]:8443/a?b".parse().unwrap();
    let request = String::from_utf8(url.request()).unwrap();
    assert!(
        request.starts_with("GET /a?b HTTP/1.1\r\nHost: [2001:db8::1]:8443\r\n"),
        "{request}"
    );
    assert!(request.ends_with("\r\n\r\n"), "{request}");
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
            let mut read = Response::default();
            let mut body = Vec::new();
            for bytes in response.as_bytes().chunks(piece) {
                read.push(bytes, &mut body).unwrap();
            }
            read.close().unwrap();
            assert!(read.is_done());
            assert_eq!(read.status(), Some(status));
            assert_eq!(String::from_utf8_lossy(&body), content);
        }
    }
}

#[test]
fn what_is_no_response_is_refused() {
    let read = |response: &str| {
        let mut read = Response::default();
        let pushed = read.push(response.as_bytes(), &mut Vec::new());
        pushed.and_then(|()| read.close()).unwrap_err().to_string()
    };
    for (response, reason) in [
        ("SSH-2.0-OpenSSH\r\n", "not HTTP/1.1"),
        ("HTTP/1.1 101 \r\n\r\n", "switches protocols"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            "before the response is complete",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            "Content-Length: -5",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "Content-Length: +5",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "5, 6",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "too large",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "gzip",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "has no size",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            "does not end",
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
    assert!(read(&endless).contains("exceeds"), "{}", read(&endless));
}
