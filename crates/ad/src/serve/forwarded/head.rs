//! What of a request's head goes on to the backend, and what this server says in it.

use std::net::{IpAddr, Ipv6Addr};

use hyper::body::Body;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, RANGE, REFERER,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Method, Request, StatusCode, Uri, Version};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

const WEBSOCKET: &str = "websocket";

/// What says where a request comes from, where its answer is to go, or that it asks for something
/// else than it does, to frameworks and to what other proxies are believed by. `X-Forwarded` and
/// all that begins with it do so, too. The list is not whole: what an application believes is known
/// to its owner (`--drop-field`).
const CLAIMS: [&str; 14] = [
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "forwarded",
    // Scripts get it as the name of the proxy that they are to use.
    "proxy",
    "true-client-ip",
    "x-appengine-user-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];

/// What tells how a message is framed and whom it is for. Applications that take `_` or `.` for `-`
/// read twins of these, which nobody has looked at.
const FRAMING: [&str; 5] = [
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "upgrade",
];

/// What is for one connection alone, whether or not its Connection says so (RFC 9110, section 7.6.1). How a body
/// ends is written anew.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What is for whoever reads the message in the end: naming it in Connection takes nothing away.
const END_TO_END: [HeaderName; 12] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    HOST,
    ORIGIN,
    RANGE,
    REFERER,
    SET_COOKIE,
];

/// Says whose the request is, and leaves out whatever the client has sent about that.
///
/// # Errors
///
/// What the client is answered if its request can't go on.
pub(super) fn prepare(
    request: &mut Request<impl Body>,
    client: IpAddr,
    dropped: &[HeaderName],
) -> Result<(), StatusCode> {
    if request.method() == Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let upgrades = asks_for_websocket(request);
    one_host(request)?;
    one_coding(request.headers())?;
    let is_chunked = request.body().size_hint().exact().is_none();
    let headers = request.headers_mut();
    hop_by_hop(headers);
    let claims: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_claim(name) || is_twin(name) || is_dropped(name, dropped))
        .cloned()
        .collect();
    for name in claims {
        headers.remove(name);
    }
    // It was answered if it was asked.
    headers.remove(EXPECT);
    // No trailers go on.
    headers.remove(TRAILER);
    if upgrades {
        headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    if is_chunked {
        // Else those of GET would go on without their body.
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    let client = HeaderValue::from_str(&client.to_canonical().to_string());
    // Addresses are letters, digits, dots and colons.
    if let Ok(client) = client {
        headers.insert(FORWARDED_FOR, client);
    }
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
    Ok(())
}

/// Whether the other side speaks the protocol of WebSockets from now on (RFC 6455, section 4.1).
pub(super) fn is_websocket(headers: &HeaderMap) -> bool {
    let mut protocols = headers.get_all(UPGRADE).iter();
    let is = |protocol: &HeaderValue| {
        protocol
            .as_bytes()
            .eq_ignore_ascii_case(WEBSOCKET.as_bytes())
    };
    protocols.next().is_some_and(is) && protocols.next().is_none()
}

/// Leaves out what is for this connection alone.
pub(super) fn hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers)
        .filter_map(|token| token.parse().ok())
        .filter(|name| !END_TO_END.contains(name))
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Has the request ask for a path of the one host that it names (RFC 9112, section 3.2).
fn one_host(request: &mut Request<impl Body>) -> Result<(), StatusCode> {
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    match request.headers().get_all(HOST).iter().count() {
        0 if request.version() == Version::HTTP_10 => {}
        1 => {}
        _ => return Err(BAD),
    }
    if let Some(authority) = request.uri().authority() {
        // A name before it is for nobody (RFC 9110, section 4.2.4). Without a scheme it is
        // CONNECT's, and with another one it is of a resource that the backend knows nothing of.
        let is_http = (request.uri().scheme())
            .is_some_and(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
        if authority.as_str().contains('@') || !is_http {
            return Err(BAD);
        }
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| BAD)?;
        let path = request.uri().path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        request.headers_mut().insert(HOST, host);
    }
    let host = request.headers().get(HOST);
    if host.is_some_and(|host| !is_authority(host.as_bytes())) {
        return Err(BAD);
    }
    // One without a Host is of HTTP/1.0, and stays so.
    if request.headers().contains_key(HOST) {
        *request.version_mut() = Version::HTTP_11;
    }
    Ok(())
}

/// Whether this is a host with or without a port, as `Host` has it (RFC 9110, section 7.2). URLs of
/// HTTP have one (section 4.2.1).
fn is_authority(host: &[u8]) -> bool {
    let Ok(host) = str::from_utf8(host) else {
        return false;
    };
    // A name before it is for nobody.
    let parsed = host.parse::<Authority>();
    parsed.is_ok_and(|parsed| !host.contains('@') && is_host(parsed.host()) && has_port(&parsed))
}

/// Whether this is a name, or an address; in brackets, one of IPv6 (RFC 3986, section 3.2.2).
fn is_host(host: &str) -> bool {
    let in_brackets = host
        .strip_prefix('[')
        .map(|rest| rest.strip_suffix(']').unwrap_or_default());
    match in_brackets {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty(),
    }
}

/// Whether what follows the host is nothing, or a port.
fn has_port(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    match rest.map(|rest| rest.strip_prefix(':')) {
        Some(Some(port)) => port.is_empty() || authority.port_u16().is_some(),
        Some(None) => rest == Some(""),
        None => false,
    }
}

/// Refuses a body of which this server would not see what is in it (RFC 9112, section 6.1).
fn one_coding(headers: &HeaderMap) -> Result<(), StatusCode> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        Ok(())
    } else {
        Err(StatusCode::NOT_IMPLEMENTED)
    }
}

/// Any other protocol would carry requests that say what the client likes.
fn asks_for_websocket(request: &Request<impl Body>) -> bool {
    let mut tokens = tokens(request.headers());
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && tokens.any(|token| token.eq_ignore_ascii_case("upgrade"))
        && is_websocket(request.headers())
}

/// Whether it is a claim in whatever form applications may read it: many take `_` or `.` for `-`.
fn is_claim(name: &HeaderName) -> bool {
    let name = hyphenated(name);
    CLAIMS.contains(&name.as_str()) || name.starts_with("x-forwarded")
}

/// Whether it is a field of framing as only some applications read it.
fn is_twin(name: &HeaderName) -> bool {
    let plain = hyphenated(name);
    plain != name.as_str() && FRAMING.contains(&plain.as_str())
}

/// Whether it is one that was named, in whatever form.
fn is_dropped(name: &HeaderName, dropped: &[HeaderName]) -> bool {
    let name = hyphenated(name);
    dropped.iter().any(|dropped| hyphenated(dropped) == name)
}

fn hyphenated(name: &HeaderName) -> String {
    name.as_str().replace(['_', '.'], "-")
}

/// What the fields Connection name.
fn tokens(headers: &HeaderMap) -> impl Iterator<Item = String> + use<> {
    let values = headers.get_all(CONNECTION).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let tokens = values.flat_map(|value| value.split(','));
    let tokens: Vec<_> = tokens.map(|token| token.trim().to_owned()).collect();
    tokens.into_iter()
}
