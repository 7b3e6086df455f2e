//! A page from a HAR: sizes, kinds, origins and what finds what; nothing of its content.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use lastbyte_link::{Bytes, counted, visible};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;
use url::Url;

use self::observed::{Span, timed};
use crate::cdp::origin;
use crate::page::{Kind, Observed, Page, PageError, Resource};

mod observed;

/// The largest HAR that is read. With the content of its responses, one of a usual page has some
/// MB.
pub const MOST_BYTES: u64 = 64 << 20;

/// A page, and what of the file is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The page.
    pub page: Page,
    /// What was left out or taken for something else, each in a line: `left out: 2 websockets`.
    pub notes: Vec<String>,
}

/// Why a file is no HAR of a page.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HarError {
    /// Larger than [`MOST_BYTES`].
    #[error("the HAR has more than {} MiB: save it without content", MOST_BYTES >> 20)]
    TooLarge,
    /// It ends before it is complete.
    #[error("the HAR ends early, in line {line}: save it again")]
    CutOff {
        /// The line.
        line: usize,
    },
    /// It has another form.
    #[error("it is no HAR: {problem}")]
    Form {
        /// What is wrong, and where.
        problem: String,
    },
    /// Nothing of the page was asked for over the network.
    #[error(
        "the HAR has no requests of its page over the network{left_out}: load the page while it is recorded"
    )]
    Empty {
        /// What it has, ` (left out: 2 websockets)`.
        left_out: String,
    },
    /// A time that can't be.
    #[error("entry {entry} of the HAR, {url}, has {what} of {value}: a time is no less than 0")]
    Time {
        /// Which, from 1.
        entry: usize,
        /// What it asks for.
        url: String,
        /// Which time.
        what: &'static str,
        /// What is there.
        value: String,
    },
    /// What is asked for is no URL that a browser could ask for.
    #[error(
        "entry {entry} of the HAR asks for {url}, which is no URL ({problem}): write the one that was asked for, or leave the entry out"
    )]
    Url {
        /// Which, from 1.
        entry: usize,
        /// What it asks for.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The document redirects in a circle, and never comes.
    #[error(
        "the HAR's document never comes: {url} redirects to {target}, which redirects there: record a load that ends"
    )]
    Circle {
        /// The last redirect.
        url: String,
        /// Where it leads back to.
        target: String,
    },
    /// Nobody can load responses of which nothing is known.
    #[error(
        "the HAR has no sizes of its responses: record it with a browser's developer tools, or with the bodies of responses"
    )]
    NoSizes,
    /// What was loaded first is no page.
    #[error(
        "the HAR begins with {url}, which is no document: record it from the beginning of the load"
    )]
    NoDocument {
        /// What it is.
        url: String,
    },
    /// It can't be loaded.
    #[error("the page of the HAR: {0}")]
    Page(#[from] PageError),
}

#[derive(Deserialize)]
struct Har<'a> {
    #[serde(borrow)]
    log: Log<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    #[serde(default, deserialize_with = "or_default")]
    pages: Vec<Recording>,
    /// Each is read apart, so that an error names the one that has it.
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Recording {
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default, deserialize_with = "if_valid")]
    pageref: Option<String>,
    started_date_time: String,
    /// Not everybody writes it; -1 is HAR's word for what is not known.
    time: Option<f64>,
    request: SentRequest,
    response: Answered,
    /// With comments, as HAR allows anywhere.
    #[serde(default, deserialize_with = "or_default")]
    timings: HashMap<String, Extra<f64>>,
    #[serde(default, rename = "_initiator", deserialize_with = "if_valid")]
    initiator: Option<Initiator>,
    #[serde(default, rename = "_priority", deserialize_with = "if_valid")]
    priority: Option<String>,
    #[serde(default, rename = "_resourceType", deserialize_with = "if_valid")]
    resource_type: Option<String>,
    /// What [`of_page`](super::of_page) writes of what times and priorities have shown.
    #[serde(default, rename = "_loading", deserialize_with = "if_valid")]
    loading: Option<String>,
}

#[derive(Deserialize)]
struct SentRequest {
    method: String,
    url: String,
    #[serde(default, deserialize_with = "or_default")]
    headers: Vec<Header>,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    #[serde(default, deserialize_with = "or_default")]
    status: f64,
    #[serde(default, rename = "redirectURL", deserialize_with = "or_default")]
    redirect_url: String,
    #[serde(default, deserialize_with = "or_default")]
    content: Content,
    #[serde(default)]
    body_size: Size,
    #[serde(default)]
    headers_size: Size,
    #[serde(default, rename = "_transferSize")]
    transfer_size: Size,
    headers: Option<Vec<Header>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    size: Size,
    #[serde(default, deserialize_with = "or_default")]
    mime_type: String,
}

/// What HAR 1.2 leaves to whoever writes it: fields with `_` are nobody's standard, and readers are
/// to ignore what they don't know of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Extra<T> {
    Valid(T),
    Other(IgnoredAny),
}

impl<T> Extra<T> {
    fn valid(self) -> Option<T> {
        match self {
            Extra::Valid(valid) => Some(valid),
            Extra::Other(_) => None,
        }
    }
}

/// What has this form; none of another one.
fn if_valid<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<T>, D::Error> {
    Ok(Extra::deserialize(field)?.valid())
}

/// What is not known is `null` for some.
fn or_default<'de, T, D>(field: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(field)?.unwrap_or_default())
}

/// Bytes, where they are known: what is less than 0 is HAR's word for what is not, and so is
/// `null`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Option<f64>")]
struct Size(Option<u64>);

impl Size {
    /// Above 0.
    fn some(self) -> Option<u64> {
        self.0.filter(|bytes| *bytes > 0)
    }
}

/// A number is no size.
#[derive(Debug, Error)]
#[error("a size of {0} bytes: a size is a whole number, or -1 if it is unknown")]
struct NoSize(f64);

impl TryFrom<Option<f64>> for Size {
    type Error = NoSize;

    fn try_from(stated: Option<f64>) -> Result<Size, NoSize> {
        match stated {
            Some(bytes) if bytes.fract() != 0.0 => Err(NoSize(bytes)),
            Some(bytes) if bytes >= 0.0 => Ok(Size(Some(bytes as u64))),
            _ => Ok(Size(None)),
        }
    }
}

/// What Chromium says of what found a request; others, the URL of that alone.
#[derive(Deserialize)]
#[serde(from = "FoundBy")]
struct Initiator {
    by: Option<String>,
    url: Option<String>,
    line_number: Option<f64>,
    stack: Option<Stack>,
}

impl From<FoundBy> for Initiator {
    fn from(found: FoundBy) -> Initiator {
        match found {
            FoundBy::Url(url) => Initiator {
                by: None,
                url: Some(url),
                line_number: None,
                stack: None,
            },
            FoundBy::Call(call) => Initiator {
                by: call.by,
                url: call.url,
                line_number: call.line_number,
                stack: call.stack,
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FoundBy {
    Url(String),
    Call(ByCall),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ByCall {
    #[serde(rename = "type")]
    by: Option<String>,
    url: Option<String>,
    line_number: Option<f64>,
    stack: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stack {
    #[serde(default, deserialize_with = "or_default")]
    call_frames: Vec<Call>,
    parent: Option<Box<Stack>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    #[serde(default, deserialize_with = "or_default")]
    url: String,
    line_number: Option<f64>,
}

/// Why an entry is no resource of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    OtherPage,
    Inline,
    WebSocket,
    Preflight,
    Tunnel,
    Unanswered,
}

impl LeftOut {
    /// Each, what one such entry is, and more about it.
    const ALL: [(LeftOut, &'static str, &'static str); 6] = [
        (LeftOut::OtherPage, "request", " of other pages"),
        (
            LeftOut::Inline,
            "URL",
            " without need of a network (data:, blob: and their like)",
        ),
        (LeftOut::WebSocket, "websocket", ""),
        (
            LeftOut::Preflight,
            "CORS preflight",
            ", which a browser makes by itself",
        ),
        (LeftOut::Tunnel, "CONNECT", " to a proxy that recorded"),
        (LeftOut::Unanswered, "request", " that got no response"),
    ];
}

/// Reads the page that a HAR was recorded of: the first one, if there are several.
///
/// A response is as large as it was on the wire (`_transferSize`, else `bodySize` and
/// `headersSize`), or where that is unknown, its body is. What finds it is what Chromium says
/// (`_initiator`), else the `Referer`, else the document. How a document names it follows from its
/// priority (`_priority`), its line and its times. What may be kept of it is what its fields say.
/// All is asked for with `GET`.
///
/// # Errors
///
/// One line that says where it is no HAR, or no page.
pub fn read(har: &[u8]) -> Result<Recorded, HarError> {
    let log = decoded(har)?;
    let all = (log.entries.iter().enumerate()).map(|(place, text)| parsed(place, text));
    let all: Vec<Entry> = all.collect::<Result<_, _>>()?;
    let first = log.pages.first().and_then(|page| page.id.clone());
    let mut left_out = Vec::new();
    let mut entries = Vec::new();
    for (place, entry) in all.iter().enumerate() {
        match entry.left_out(first.as_deref()) {
            Some(reason) => left_out.push(reason),
            None => entries.push((checked(place, entry)?, entry)),
        }
    }
    // Files are in any order; the first request is the document's.
    entries.sort_by_key(|(began, _)| *began);
    let (spans, entries): (Vec<Span>, Vec<&Entry>) = (entries.into_iter())
        .map(|(began, entry)| (entry.span(began), entry))
        .unzip();
    let mut notes: Vec<String> = (LeftOut::ALL.iter())
        .filter_map(|(reason, what, which)| {
            let count = left_out.iter().filter(|one| *one == reason).count();
            (count > 0).then(|| format!("left out: {}{which}", counted(count, what)))
        })
        .collect();
    if entries.is_empty() {
        let left_out = if notes.is_empty() {
            String::new()
        } else {
            format!(" ({})", notes.join(", "))
        };
        return Err(HarError::Empty { left_out });
    }
    if entries.len() > Page::MOST_RESOURCES {
        // Before anything is looked for among them.
        return Err(HarError::Page(PageError::TooMany {
            count: entries.len(),
            most: Page::MOST_RESOURCES,
        }));
    }
    let leads = leads(&entries);
    let resources = resources(&entries, &spans, &leads)?;
    if entries.iter().all(|entry| entry.reported_body().is_none()) {
        return Err(HarError::NoSizes);
    }
    notes.extend(taken_otherwise(&entries, &leads));
    Ok(Recorded {
        page: Page::new(resources)?,
        notes,
    })
}

/// A HAR as JSON has it.
fn decoded(har: &[u8]) -> Result<Log<'_>, HarError> {
    if har.len() as u64 > MOST_BYTES {
        return Err(HarError::TooLarge);
    }
    // Some write a mark of the order of bytes first.
    let har = har.strip_prefix(b"\xef\xbb\xbf").unwrap_or(har);
    if har.starts_with(&[0xff, 0xfe]) || har.starts_with(&[0xfe, 0xff]) {
        let problem = "it is UTF-16: save it as UTF-8".to_owned();
        return Err(HarError::Form { problem });
    }
    let packed = [
        (&b"\x1f\x8b"[..], "gzip", "gunzip"),
        (b"PK\x03\x04", "ZIP", "unzip"),
    ];
    if let Some((_, form, program)) = packed.iter().find(|(begin, ..)| har.starts_with(begin)) {
        let problem = format!("it is compressed ({form}): unpack it with {program}");
        return Err(HarError::Form { problem });
    }
    let har: Har = serde_json::from_slice(har).map_err(|error| {
        if error.is_eof() {
            HarError::CutOff { line: error.line() }
        } else {
            HarError::Form {
                problem: error.to_string(),
            }
        }
    })?;
    Ok(har.log)
}

/// A note for each way in which entries are taken otherwise than they were recorded.
fn taken_otherwise(entries: &[&Entry], leads: &[Option<usize>]) -> impl Iterator<Item = String> {
    let of = |is: fn(&Entry) -> bool| entries.iter().filter(|entry| is(entry)).count();
    let circles = (1..entries.len())
        .filter(|place| !leads.contains(&Some(*place)) && circle(entries, leads, *place).is_some());
    let ways = [
        (
            "asked for with GET",
            of(|entry| entry.request.method != "GET"),
            "request",
            " of other methods",
        ),
        (
            "not compressed",
            of(Entry::is_from_cache),
            "resource",
            " from a cache when the HAR was recorded",
        ),
        (
            "taken as empty",
            of(|entry| entry.reported_body().is_none()),
            "response",
            " of unknown size",
        ),
        (
            "taken as answers, as they lead back to where they have been",
            circles.count(),
            "redirect",
            "",
        ),
        (
            "as urgent as their kind and place",
            of(Entry::has_strange_priority),
            "request",
            " whose _priority is no word of Chromium's",
        ),
    ];
    let taken = ways.into_iter().filter(|(_, count, ..)| *count > 0);
    taken.map(|(how, count, what, which)| format!("{how}: {}{which}", counted(count, what)))
}

/// What was expected in the words of JSON, not of Rust.
fn in_words(problem: &str) -> String {
    let Some((what, expected)) = problem.rsplit_once(", expected ") else {
        return problem.to_owned();
    };
    let expected = match expected {
        "f64" => "a number",
        "u64" | "i64" | "u32" | "i32" | "u16" | "usize" => "a whole number",
        "a sequence" => "an array",
        object if object.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{what}, expected {expected}")
}

fn parsed(place: usize, text: &RawValue) -> Result<Entry, HarError> {
    #[derive(Deserialize)]
    struct Named {
        request: Request,
    }
    #[derive(Deserialize)]
    struct Request {
        url: String,
    }
    serde_json::from_str(text.get()).map_err(|error| {
        let named = serde_json::from_str::<Named>(text.get()).ok();
        let url = named.map_or(String::new(), |named| {
            format!(", {}", shown(&named.request.url))
        });
        let (line, column) = (error.line(), error.column());
        let problem = error.to_string();
        // Counted from where the entry begins, which nobody sees.
        let problem = problem.strip_suffix(&format!(" at line {line} column {column}"));
        HarError::Form {
            problem: format!(
                "entry {}{url}: {}",
                place + 1,
                in_words(problem.unwrap_or("it can't be read"))
            ),
        }
    })
}

/// HAR's word for a time that is not known, or of what did not happen.
const UNKNOWN: f64 = -1.0;

/// When an entry began, if its URL and all of its times can be.
fn checked(place: usize, entry: &Entry) -> Result<Timestamp, HarError> {
    Url::parse(&entry.request.url).map_err(|problem| HarError::Url {
        entry: place + 1,
        url: shown(&entry.request.url),
        problem: problem.to_string(),
    })?;
    let wrong = |what, value: String| HarError::Time {
        entry: place + 1,
        url: shown(&entry.request.url),
        what,
        value,
    };
    if let Some(time) = entry.time.filter(|time| *time < 0.0 && *time != UNKNOWN) {
        return Err(wrong("a time", format!("{time} ms")));
    }
    let parts = [
        ("blocked", "blocked"),
        ("dns", "dns"),
        ("connect", "connect"),
        ("ssl", "ssl"),
        ("send", "send"),
        ("wait", "wait"),
        ("receive", "receive"),
    ];
    for (name, what) in parts {
        let time = entry.timing(name).unwrap_or(0.0);
        if time < 0.0 && time != UNKNOWN {
            return Err(wrong(what, format!("{time} ms")));
        }
    }
    let began: Result<Timestamp, _> = entry.started_date_time.parse();
    began.map_err(|_| HarError::Form {
        problem: format!(
            "entry {}, {}, has a startedDateTime that is no date with a time and a zone: {}",
            place + 1,
            shown(&entry.request.url),
            shown(&entry.started_date_time)
        ),
    })
}

/// The beginning of a text of somebody else.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    visible(&short)
}

impl Entry {
    fn span(&self, began: Timestamp) -> Span {
        let took = Duration::try_from_secs_f64(self.took() / 1e3).unwrap_or(Duration::MAX);
        Span {
            began,
            ended: began.checked_add(took).unwrap_or(Timestamp::MAX),
        }
    }

    /// Milliseconds: where nobody has written that, the sum of its parts, of which `ssl` is in
    /// `connect`.
    fn took(&self) -> f64 {
        const PARTS: [&str; 6] = ["blocked", "dns", "connect", "send", "wait", "receive"];
        let sum = || {
            let parts = PARTS.iter().filter_map(|name| self.timing(name));
            parts.filter(|time| *time > 0.0).sum()
        };
        let stated = self.time.filter(|time| *time != UNKNOWN);
        stated.unwrap_or_else(sum)
    }

    fn timing(&self, name: &str) -> Option<f64> {
        match self.timings.get(name)? {
            Extra::Valid(time) => Some(*time),
            Extra::Other(_) => None,
        }
    }

    /// Where it redirects to.
    fn target(&self) -> Option<Url> {
        let Answered {
            status,
            redirect_url,
            ..
        } = &self.response;
        if !(300.0..400.0).contains(status) || redirect_url.is_empty() {
            return None;
        }
        // Browsers write the field `Location` as it was sent: relative to where it is (RFC 9110,
        // section 10.2.2).
        let mut target = normalized(&self.request.url)?.join(redirect_url).ok()?;
        target.set_fragment(None);
        Some(target)
    }

    fn left_out(&self, page: Option<&str>) -> Option<LeftOut> {
        let url = &self.request.url;
        let kind = self.resource_type.as_deref();
        let is_http = ["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme));
        if self.pageref.is_some() && page.is_some() && self.pageref.as_deref() != page {
            Some(LeftOut::OtherPage)
        } else if ["ws://", "wss://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
            || kind == Some("websocket")
        {
            Some(LeftOut::WebSocket)
        } else if !is_http {
            Some(LeftOut::Inline)
        } else if self.request.method == "OPTIONS" || kind == Some("preflight") {
            Some(LeftOut::Preflight)
        } else if self.request.method == "CONNECT" {
            Some(LeftOut::Tunnel)
        } else if self.response.status < 100.0 {
            Some(LeftOut::Unanswered)
        } else {
            None
        }
    }

    fn is_from_cache(&self) -> bool {
        let Answered {
            status,
            body_size,
            transfer_size,
            content,
            ..
        } = &self.response;
        let is_from_cache = *transfer_size == Size(Some(0)) && body_size.some().is_none();
        *status == 304.0 || (is_from_cache && content.size.some().is_some())
    }

    /// The body's bytes on the wire: 0 where they are unknown.
    fn body(&self) -> Bytes {
        Bytes(self.reported_body().unwrap_or(0))
    }

    /// The same, where they are known.
    fn reported_body(&self) -> Option<u64> {
        let Answered {
            body_size,
            transfer_size,
            content,
            ..
        } = &self.response;
        if self.is_from_cache() {
            content.size.0
        } else {
            body_size.0.or(transfer_size.0).or(content.size.0)
        }
    }

    fn resource(&self, of: Surroundings<'_>) -> Resource {
        let Surroundings { kind, landing, .. } = of;
        let has_attribute = matches!(landing, Kind::Script | Kind::Style | Kind::Image);
        Resource {
            kind,
            body: match kind {
                Kind::Redirect => Bytes(0),
                _ => self.body(),
            },
            origin: of.origin,
            found_in: of.found_in,
            loading: match self.loading.as_deref() {
                Some(word) => word.parse().unwrap_or_default(),
                None => self.loading(landing, of.finder, of.is_same_origin),
            },
            observed: Some(Observed {
                line: of.line,
                priority: self.priority(),
                asked: self.urgency(),
                is_cors: self.is_cors() && has_attribute && !of.is_same_origin,
                response: match kind {
                    Kind::Redirect => None,
                    _ => self.whole_response(),
                },
                caching: of.span.and_then(|span| self.caching(span.began)),
            }),
        }
    }

    fn kind(&self) -> Kind {
        let kind = match self.resource_type.as_deref() {
            Some("document") => Some(Kind::Document),
            Some("stylesheet") => Some(Kind::Style),
            Some("script") => Some(Kind::Script),
            Some("image") => Some(Kind::Image),
            Some("font") => Some(Kind::Font),
            Some("fetch" | "xhr" | "media" | "manifest" | "ping" | "eventsource") => {
                Some(Kind::Fetch)
            }
            _ => None,
        };
        kind.unwrap_or_else(|| of_media_type(&self.response.content.mime_type))
    }

    /// The URL of what it was found in.
    fn found_in(&self) -> Option<&str> {
        let initiator = self.initiator.as_ref();
        let by_url = initiator.and_then(|initiator| initiator.url.as_deref());
        let mut stack = initiator.and_then(|initiator| initiator.stack.as_ref());
        let mut by_script = None;
        while let (Some(calls), None) = (stack, by_script) {
            let mut urls = calls.call_frames.iter().map(|call| call.url.as_str());
            by_script = urls.find(|url| !url.is_empty());
            stack = calls.parent.as_deref();
        }
        let mut headers = self.request.headers.iter();
        let referer = headers.find(|header| header.name.eq_ignore_ascii_case("referer"));
        let referer = referer.map(|header| header.value.as_str());
        by_url
            .filter(|url| !url.is_empty())
            .or(by_script)
            .or(referer)
    }
}

/// What a media type (RFC 6838) is for.
fn of_media_type(media_type: &str) -> Kind {
    let essence = media_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Document,
        "text/css" => Kind::Style,
        "text/javascript" | "application/javascript" | "application/x-javascript" => Kind::Script,
        _ if essence.starts_with("image/") => Kind::Image,
        _ if essence.contains("font") => Kind::Font,
        _ => Kind::Fetch,
    }
}

/// A URL without what stays in the browser.
fn bare(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

/// A URL as browsers write it, without what stays in the browser. None of a text that is no URL.
fn normalized(url: &str) -> Option<Url> {
    let mut url = Url::parse(url).ok()?;
    url.set_fragment(None);
    Some(url)
}

/// `leads` has where each request leads, as [`leads`] finds.
fn resources(
    entries: &[&Entry],
    spans: &[Span],
    leads: &[Option<usize>],
) -> Result<Vec<Resource>, HarError> {
    if let Some((last, target)) = circle(entries, leads, 0) {
        return Err(HarError::Circle {
            url: shown(&last.request.url),
            target: shown(target.as_str()),
        });
    }
    let redirects = Redirects::of(entries, leads);
    let landed = |place| redirects.landed(place);
    let document = landed(0);
    let mut resources: Vec<Resource> = Vec::new();
    // Of each document, where it was named last.
    let mut lines: HashMap<usize, u32> = HashMap::new();
    let home = entries
        .get(document)
        .map(|entry| origin(&entry.request.url));
    let mut origins: Vec<&str> = Vec::new();
    // Where each URL was last asked for.
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let url = bare(&entry.request.url);
        let own = origin(url);
        let listed = origins.iter().position(|listed| *listed == own);
        let number = listed.unwrap_or_else(|| {
            origins.push(own);
            origins.len() - 1
        });
        let landing = redirects.landing(place);
        let is_lost = place < document && landed(place) != document;
        if (place == 0 && landing != Kind::Document) || is_lost {
            return Err(HarError::NoDocument {
                url: shown(&entry.request.url),
            });
        }
        let found_in = match (place, redirects.sent_from(place)) {
            (0, _) => None,
            (_, Some(redirect)) => Some(redirect),
            _ => {
                let named = entry.found_in().map(bare).and_then(|url| places.get(url));
                let named = named.map_or(document, |place| landed(*place));
                let above = finder_above(&resources, named, landing, document);
                Some(if above < place { above } else { document })
            }
        };
        let finder = found_in.and_then(|above| resources.get(landed(above)));
        let finder = finder.map_or(Kind::Document, |finder| finder.kind);
        // What is named nowhere stands behind what was asked for before it.
        let line = match (found_in, finder) {
            (Some(above), Kind::Document) => {
                let last = lines.entry(above).or_default();
                *last = entry.line().unwrap_or(*last);
                *last
            }
            _ => 0,
        };
        resources.push(entry.resource(Surroundings {
            kind: redirects.kind(place),
            landing,
            finder,
            found_in,
            line,
            origin: u8::try_from(number).unwrap_or(u8::MAX),
            is_same_origin: Some(own) == home,
            span: spans.get(place),
        }));
        places.insert(url, place);
    }
    if entries.iter().all(|entry| entry.loading.is_none()) {
        let is_parsed = |place: usize| {
            let entry = entries.get(place);
            entry.is_some_and(|entry| entry.is_found_by("parser"))
        };
        timed(&mut resources, spans, document, &landed, &is_parsed);
    }
    match origins.len() {
        count if count > usize::from(Page::MOST_ORIGINS) => {
            Err(HarError::Page(PageError::TooManyOrigins {
                count,
                most: Page::MOST_ORIGINS,
            }))
        }
        _ => Ok(resources),
    }
}

/// What can't be found in the resource at `place` is found in the nearest one above where it can.
fn finder_above(resources: &[Resource], mut place: usize, landing: Kind, document: usize) -> usize {
    while let Some(finder) = resources.get(place) {
        if finder.kind != Kind::Redirect && finder.kind.finds(landing) {
            break;
        }
        place = finder.found_in.unwrap_or(document);
    }
    place
}

/// Where redirects lead, and what is there.
struct Redirects<'a> {
    leads: &'a [Option<usize>],
    /// The redirect that leads to each request.
    sent_from: Vec<Option<usize>>,
    kinds: Vec<Kind>,
    /// The kind of what each leads to in the end.
    landings: Vec<Kind>,
}

impl Redirects<'_> {
    fn of<'a>(entries: &[&Entry], leads: &'a [Option<usize>]) -> Redirects<'a> {
        let mut sent_from = vec![None; entries.len()];
        for (place, target) in leads.iter().enumerate() {
            if let Some(from) = target.and_then(|target| sent_from.get_mut(target)) {
                *from = Some(place);
            }
        }
        let kinds = entries.iter().zip(leads).map(|(entry, lead)| match lead {
            Some(_) => Kind::Redirect,
            None => entry.kind(),
        });
        let kinds: Vec<Kind> = kinds.collect();
        let mut landings = kinds.clone();
        for place in (0..entries.len()).rev() {
            let target = leads.get(place).copied().flatten();
            let end = target.and_then(|target| landings.get(target).copied());
            if let (Some(end), Some(landing)) = (end, landings.get_mut(place)) {
                *landing = end;
            }
        }
        Redirects {
            leads,
            sent_from,
            kinds,
            landings,
        }
    }

    /// Where a request leads in the end.
    fn landed(&self, mut place: usize) -> usize {
        while let Some(target) = self.leads.get(place).copied().flatten() {
            place = target;
        }
        place
    }

    fn sent_from(&self, place: usize) -> Option<usize> {
        self.sent_from.get(place).copied().flatten()
    }

    fn kind(&self, place: usize) -> Kind {
        self.kinds.get(place).copied().unwrap_or(Kind::Fetch)
    }

    fn landing(&self, place: usize) -> Kind {
        self.landings.get(place).copied().unwrap_or(Kind::Fetch)
    }
}

/// What follows for a resource from the other ones of its page.
struct Surroundings<'a> {
    kind: Kind,
    /// The kind of what it leads to in the end.
    landing: Kind,
    /// The kind of what it was found in.
    finder: Kind,
    found_in: Option<usize>,
    line: u32,
    origin: u8,
    is_same_origin: bool,
    span: Option<&'a Span>,
}

/// Where redirects that begin with the request at `place` lead back to where they have been: the
/// last of them, and what it leads to. Browsers give those up.
fn circle<'a>(
    entries: &[&'a Entry],
    leads: &[Option<usize>],
    place: usize,
) -> Option<(&'a Entry, Url)> {
    let lead = |place: &usize| leads.get(*place).copied().flatten();
    let places = std::iter::successors(Some(place), lead);
    let visited: Vec<&Entry> = places
        .filter_map(|place| entries.get(place).copied())
        .collect();
    let last = *visited.last()?;
    let target = last.target()?;
    let mut urls = visited
        .iter()
        .filter_map(|entry| normalized(&entry.request.url));
    urls.any(|url| url == target).then_some((last, target))
}

/// Which request each redirect leads to: the next one for its target that no other redirect leads
/// to. None of what is no redirect, or leads nowhere.
fn leads(entries: &[&Entry]) -> Vec<Option<usize>> {
    let mut leads = vec![None; entries.len()];
    let mut waiting: HashMap<Url, Vec<usize>> = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let Some(url) = normalized(&entry.request.url) else {
            continue;
        };
        // The first one that waits for it.
        let from = waiting.get_mut(&url).filter(|from| !from.is_empty());
        if let Some(from) = from.map(|from| from.remove(0))
            && let Some(lead) = leads.get_mut(from)
        {
            *lead = Some(place);
        }
        if let Some(target) = entry.target() {
            waiting.entry(target).or_default().push(place);
        }
    }
    leads
}
