//! What happens on a page, gathered from events of the protocol.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lastbyte_link::Bytes;
use serde_json::Value;

use super::load::{Computing, Connecting, Connection, Load, Negotiated, Request, Source};
use super::screen::{self, Histogram};
use crate::page::Kind;

/// The most requests of a page that are kept, and the most frames.
const MOST: usize = 10_000;
/// The most tasks that are kept.
const MOST_TASKS: usize = 1_000_000;

/// A time of the browser's, in microseconds.
type Micros = i64;

/// What is known of a page so far.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The page's own frame, and the document that is being loaded into it.
    frame: String,
    loader: String,
    requests: Vec<SentRequest>,
    /// The places of those that are not done, by the browser's name for them.
    open: BTreeMap<String, usize>,
    /// More than [`MOST`] requests were made.
    pub(super) too_many: bool,
    /// What the life of the document has come to, by the protocol's names.
    life: BTreeMap<String, Micros>,
    /// The beginning of the navigation, as the trace has it.
    began: Option<Micros>,
    /// The largest text or picture so far, with the number of the candidate.
    largest: Option<(i64, Micros)>,
    screens: Vec<(Micros, Histogram)>,
    /// The page's main thread: its process and its number there, as the trace has them.
    thread: Option<(i64, i64)>,
    /// Of all threads of all pages.
    tasks: Vec<Task>,
}

/// A task of a thread.
#[derive(Debug)]
struct Task {
    thread: (i64, i64),
    began: Micros,
    /// Of a processor.
    took: Micros,
}

/// A request, with times of the browser's.
#[derive(Debug)]
struct SentRequest {
    id: String,
    url: String,
    kind: String,
    found_in: Option<String>,
    priority: String,
    start: Micros,
    wall: Micros,
    answer: Option<Answer>,
    end: Option<Micros>,
    wire: u64,
    body: u64,
    source: Source,
    failure: Option<String>,
}

/// The head of a response.
#[derive(Debug)]
struct Answer {
    status: Option<u16>,
    fields: Vec<(String, String)>,
    media_type: String,
    protocol: String,
    connection: Option<u64>,
    /// The times of connecting, sending and the first byte, if the request went out.
    timing: Option<Timing>,
    tls: Option<Negotiated>,
}

#[derive(Debug)]
struct Timing {
    connecting: Option<[Option<(Micros, Micros)>; 3]>,
    sent: Option<Micros>,
    first_byte: Option<Micros>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Seconds, as the protocol has times.
fn micros(value: &Value) -> Option<Micros> {
    let seconds = value.as_f64()?;
    let is_time = (0.0..1e12).contains(&seconds);
    is_time.then(|| (seconds * 1e6).round() as Micros)
}

/// A number that a trace has, such as its microseconds.
fn ticks(value: &Value) -> Option<i64> {
    value.as_i64().filter(|ticks| (0..1 << 60).contains(ticks))
}

/// Where in the trace's processes an event happened.
fn thread(event: &Value) -> Option<(i64, i64)> {
    Some((ticks(&event["pid"])?, ticks(&event["tid"])?))
}

/// Bytes, which the protocol has as any number.
fn count(value: &Value) -> u64 {
    value.as_f64().map_or(0, |number| number.max(0.0) as u64)
}

/// How the browser calls the load of a document whose response has an error's status and no body.
pub(super) const WRONG_STATUS: &str = "net::ERR_HTTP_RESPONSE_CODE_FAILURE";

impl Record {
    /// Of the document `loader` in the page's `frame`.
    pub(super) fn expect(&mut self, frame: String, loader: String) {
        self.frame = frame;
        self.loader = loader;
    }

    /// Takes an event of the page's session.
    pub(super) fn take(&mut self, method: &str, params: &Value) {
        match method {
            "Network.requestWillBeSent" => self.requested(params),
            "Network.responseReceived" => {
                if let Some(request) = self.open(params) {
                    request.kind = text(&params["type"]);
                    request.answer = Some(answer(&params["response"]));
                    let response = &params["response"];
                    if response["fromDiskCache"] == true || response["fromPrefetchCache"] == true {
                        request.source = Source::Cache;
                    }
                }
            }
            // A picture that turned out to be on the screen.
            "Network.resourceChangedPriority" => {
                if let Some(request) = self.open(params) {
                    request.priority = text(&params["newPriority"]);
                }
            }
            "Network.requestServedFromCache" => {
                if let Some(request) = self.open(params) {
                    request.source = Source::Cache;
                }
            }
            "Network.dataReceived" => {
                if let Some(request) = self.open(params) {
                    let body = request.body.saturating_add(count(&params["dataLength"]));
                    request.body = body;
                }
            }
            "Network.loadingFinished" => {
                if let Some(request) = self.open(params) {
                    request.wire = count(&params["encodedDataLength"]);
                }
                self.close(params);
            }
            "Network.loadingFailed" => {
                if let Some(request) = self.open(params) {
                    request.failure = Some(text(&params["errorText"]));
                }
                self.close(params);
            }
            "Page.lifecycleEvent" => {
                if params["loaderId"] == self.loader.as_str()
                    && let Some(at) = micros(&params["timestamp"])
                {
                    self.life.entry(text(&params["name"])).or_insert(at);
                }
            }
            "Tracing.dataCollected" => {
                for event in params["value"].as_array().into_iter().flatten() {
                    self.traced(event);
                }
            }
            _ => {}
        }
    }

    fn requested(&mut self, params: &Value) {
        let id = text(&params["requestId"]);
        let start = micros(&params["timestamp"]).unwrap_or(0);
        // The same request goes elsewhere.
        let response = &params["redirectResponse"];
        if let Some(request) = self.open(params)
            && response.is_object()
        {
            request.answer = Some(answer(response));
            request.wire = count(&response["encodedDataLength"]);
            request.end = Some(start);
        }
        self.open.remove(&id);
        let url = text(&params["request"]["url"]);
        let is_here = ["data:", "blob:", "about:"]
            .iter()
            .any(|scheme| url.starts_with(scheme));
        if is_here {
            return;
        }
        if self.requests.len() >= MOST {
            self.too_many = true;
            return;
        }
        self.open.insert(id.clone(), self.requests.len());
        self.requests.push(SentRequest {
            id,
            url,
            kind: text(&params["type"]),
            found_in: found_in(&params["initiator"]),
            priority: text(&params["request"]["initialPriority"]),
            start,
            wall: micros(&params["wallTime"]).unwrap_or(0),
            answer: None,
            end: None,
            wire: 0,
            body: 0,
            source: Source::Network,
            failure: None,
        });
    }

    fn open(&mut self, params: &Value) -> Option<&mut SentRequest> {
        let place = self.open.get(params["requestId"].as_str()?)?;
        self.requests.get_mut(*place)
    }

    fn close(&mut self, params: &Value) {
        let at = micros(&params["timestamp"]);
        if let Some(request) = self.open(params) {
            request.end = at;
        }
        if let Some(id) = params["requestId"].as_str() {
            self.open.remove(id);
        }
    }

    /// An event of the trace.
    fn traced(&mut self, event: &Value) {
        let Some(at) = ticks(&event["ts"]) else {
            return;
        };
        let args = &event["args"];
        let is_this = args["data"]["navigationId"] == self.loader.as_str();
        match event["name"].as_str() {
            Some("navigationStart") if is_this => {
                self.began = Some(at);
                self.thread = thread(event);
            }
            Some("RunTask") if self.tasks.len() < MOST_TASKS => {
                if let (Some(thread), Some(took)) = (thread(event), ticks(&event["tdur"])) {
                    let began = at;
                    self.tasks.push(Task {
                        thread,
                        began,
                        took,
                    });
                }
            }
            Some("largestContentfulPaint::Candidate") if is_this => {
                let number = args["data"]["candidateIndex"].as_i64().unwrap_or(0);
                if self.largest.is_none_or(|(before, _)| before <= number) {
                    self.largest = Some((number, at));
                }
            }
            Some("Screenshot") if self.screens.len() < MOST => {
                let picture = args["snapshot"].as_str().unwrap_or_default();
                let screen = STANDARD.decode(picture).ok();
                if let Some(screen) = screen.and_then(|picture| Histogram::of_jpeg(&picture)) {
                    self.screens.push((at, screen));
                }
            }
            _ => {}
        }
    }

    /// What the page's main thread had computed by a time of the browser's: of a task that goes on
    /// then, no more than it can have.
    fn computed(&self, began: Micros, by: Micros) -> Duration {
        let of_page = (self.tasks.iter())
            .filter(|task| Some(task.thread) == self.thread && (began..by).contains(&task.began));
        let sum: Micros = of_page.map(|task| task.took.min(by - task.began)).sum();
        Duration::from_micros(u64::try_from(sum).unwrap_or(0))
    }

    fn computing(&self, began: Micros) -> Option<Computing> {
        let by = |name: &str| Some(self.computed(began, *self.life.get(name)?));
        Some(Computing {
            fcp: by("firstContentfulPaint")?,
            lcp: self.largest.map(|(_, at)| self.computed(began, at)),
            load: by("load")?,
        })
    }

    /// Whether the document's life has come to this.
    pub(super) fn has(&self, life: &str) -> bool {
        self.life.contains_key(life)
    }

    /// The URLs of requests that are not done.
    pub(super) fn waiting(&self) -> Vec<String> {
        let open = self
            .open
            .values()
            .filter_map(|place| self.requests.get(*place));
        open.map(|request| request.url.clone()).collect()
    }

    /// What came of the document itself.
    pub(super) fn document(&self) -> Document {
        // A redirect's answer has the same name as the document that it leads to.
        let mut all = self.requests.iter().rev();
        let Some(document) = all.find(|request| request.id == self.loader) else {
            return Document::Nothing;
        };
        match (&document.failure, &document.answer) {
            // The response says which status it was.
            (Some(failure), Some(answer)) if failure == WRONG_STATUS => {
                Document::Answered(answer.status.unwrap_or(0))
            }
            (Some(failure), _) => Document::Failed(failure.clone()),
            (None, None) => Document::Nothing,
            (None, Some(answer)) => Document::Answered(answer.status.unwrap_or(0)),
        }
    }

    /// The load that it comes to, by a `browser`; none if the browser reported no time of it.
    pub(super) fn load(self, browser: String, frames: Frames, tasks: Tasks) -> Option<Load> {
        let first = self.requests.iter().find(|one| one.id == self.loader)?;
        let mut all = self.requests.iter().rev();
        let document = all.find(|request| request.id == self.loader)?;
        let began = self.began.unwrap_or(first.start);
        let since = |at: Micros| Duration::from_micros(u64::try_from(at - began).unwrap_or(0));
        let life = |name: &str| self.life.get(name).copied().map(since);
        let timing = document.answer.as_ref()?.timing.as_ref();
        let connecting = timing.and_then(|timing| timing.connecting(since));
        let screens: Vec<(Duration, Histogram)> = (self.screens.iter())
            .filter(|(at, _)| *at >= began)
            .map(|(at, screen)| (since(*at), screen.clone()))
            .collect();
        let frames = match frames {
            Frames::None => Vec::new(),
            Frames::All => screen::frames(&screens),
        };
        let wall = first.wall - (first.start - began);
        Some(Load {
            browser,
            url: document.url.clone(),
            began: Duration::from_micros(u64::try_from(wall).unwrap_or(0)),
            connect: connecting
                .and_then(|connecting| connecting.tcp)
                .map(|tcp| tcp.1),
            handshake: connecting
                .and_then(|connecting| connecting.tls)
                .map(|tls| tls.1),
            ttfb: since(timing.and_then(|timing| timing.first_byte)?),
            dom_content_loaded: life("DOMContentLoaded"),
            fcp: life("firstContentfulPaint")?,
            lcp: self.largest.map(|(_, at)| since(at)),
            load: life("load")?,
            speed_index: screen::speed_index(&frames),
            frames,
            computing: match tasks {
                Tasks::Traced => self.computing(began),
                Tasks::Untraced => None,
            },
            connections: self.connections(since),
            requests: (self.requests.iter())
                .map(|request| request.to_request(since))
                .collect(),
        })
    }

    fn connections(&self, since: impl Fn(Micros) -> Duration + Copy) -> Vec<Connection> {
        let mut found: Vec<Connection> = Vec::new();
        for request in &self.requests {
            let Some(answer) = &request.answer else {
                continue;
            };
            let Some(id) = answer
                .connection
                .filter(|_| request.source == Source::Network)
            else {
                continue;
            };
            let connecting = answer.timing.as_ref();
            let connecting = connecting.and_then(|timing| timing.connecting(since));
            match found.iter_mut().find(|connection| connection.id == id) {
                Some(connection) => {
                    connection.requests += 1;
                    connection.connecting = connection.connecting.or(connecting);
                }
                None => found.push(Connection {
                    id,
                    origin: origin(&request.url).to_owned(),
                    connecting,
                    requests: 1,
                    protocol: answer.protocol.clone(),
                    tls: answer.tls.clone(),
                }),
            }
        }
        found.sort_by_key(|connection| {
            let connecting = connection.connecting;
            let end = connecting.map(|connecting| connecting.whole().map(|(_, end)| end));
            (end, connection.id)
        });
        found
    }
}

/// What came of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Document {
    /// Nothing yet.
    Nothing,
    /// A response of this status.
    Answered(u16),
    /// None, and this is why.
    Failed(String),
}

/// Whether what was on the screen counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// The Speed Index is wanted, which needs each frame.
    All,
    /// It is not.
    None,
}

/// Whether the tasks of a page's main thread are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    /// Each, with the processor time that it took.
    Traced,
    /// None is.
    Untraced,
}

impl Timing {
    fn connecting(&self, since: impl Fn(Micros) -> Duration) -> Option<Connecting> {
        let span = |(start, end)| (since(start), since(end));
        let [dns, tcp, tls] = self.connecting?;
        Some(Connecting {
            dns: dns.map(span),
            tcp: tcp.map(span),
            tls: tls.map(span),
        })
    }
}

impl SentRequest {
    fn to_request(&self, since: impl Fn(Micros) -> Duration + Copy) -> Request {
        let answer = self.answer.as_ref();
        let timing = answer.and_then(|answer| answer.timing.as_ref());
        let timing = timing.filter(|_| self.source == Source::Network);
        Request {
            url: self.url.clone(),
            kind: kind(&self.kind, answer),
            found_in: self.found_in.clone(),
            start: since(self.start),
            connecting: timing.and_then(|timing| timing.connecting(since)),
            sent: timing.and_then(|timing| timing.sent).map(since),
            first_byte: timing.and_then(|timing| timing.first_byte).map(since),
            end: self.end.map(since),
            connection: (answer.and_then(|answer| answer.connection))
                .filter(|_| self.source == Source::Network),
            status: answer.and_then(|answer| answer.status),
            fields: answer
                .map(|answer| answer.fields.clone())
                .unwrap_or_default(),
            protocol: answer
                .map(|answer| answer.protocol.clone())
                .unwrap_or_default(),
            media_type: answer
                .map(|answer| answer.media_type.clone())
                .unwrap_or_default(),
            source: self.source,
            wire: Bytes(match self.source {
                Source::Network => self.wire,
                Source::Cache => 0,
            }),
            body: Bytes(self.body),
            priority: self.priority.clone(),
            failure: self.failure.clone(),
        }
    }
}

/// What a request is for, from the protocol's word (`ResourceType`).
fn kind(word: &str, answer: Option<&Answer>) -> Option<Kind> {
    let status = answer.and_then(|answer| answer.status);
    if matches!(status, Some(301 | 302 | 303 | 307 | 308)) {
        return Some(Kind::Redirect);
    }
    match word {
        "Document" => Some(Kind::Document),
        "Stylesheet" => Some(Kind::Style),
        "Script" => Some(Kind::Script),
        "Image" => Some(Kind::Image),
        "Font" => Some(Kind::Font),
        "Fetch" | "XHR" => Some(Kind::Fetch),
        _ => None,
    }
}

/// In what a request was found: what the parser read, or the script that ran last.
fn found_in(initiator: &Value) -> Option<String> {
    let stack = &initiator["stack"];
    let frames = stack["callFrames"]
        .as_array()
        .or_else(|| stack["parent"]["callFrames"].as_array());
    let script = frames
        .and_then(|frames| frames.first())
        .map(|frame| &frame["url"]);
    let url = initiator["url"]
        .as_str()
        .or(script.and_then(Value::as_str))?;
    (!url.is_empty()).then(|| url.to_owned())
}

fn answer(response: &Value) -> Answer {
    let security = &response["securityDetails"];
    let fields = response["headers"].as_object();
    let fields = fields.into_iter().flatten();
    Answer {
        status: (response["status"].as_u64()).and_then(|status| u16::try_from(status).ok()),
        fields: fields
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        media_type: text(&response["mimeType"]),
        protocol: text(&response["protocol"]),
        connection: response["connectionId"]
            .as_f64()
            .map(|id| id as u64)
            .filter(|id| *id > 0),
        timing: timing(&response["timing"], &response["protocol"]),
        tls: security.is_object().then(|| Negotiated {
            version: text(&security["protocol"]),
            group: text(&security["keyExchangeGroup"]),
            cipher: text(&security["cipher"]),
            signature: (security["serverSignatureAlgorithm"].as_u64())
                .and_then(|code| u16::try_from(code).ok()),
            subject: text(&security["subjectName"]),
            issuer: text(&security["issuer"]),
        }),
    }
}

/// Times in milliseconds since `requestTime`, and -1 for what did not happen.
fn timing(timing: &Value, protocol: &Value) -> Option<Timing> {
    let base = micros(&timing["requestTime"])?;
    let at = |name: &str| {
        let millis = timing[name].as_f64()?;
        let is_time = (0.0..1e9).contains(&millis);
        is_time.then(|| base + (millis * 1e3).round() as Micros)
    };
    let span = |start: &str, end: &str| at(start).zip(at(end));
    let connecting = span("connectStart", "connectEnd").map(|(start, end)| {
        let tls = span("sslStart", "sslEnd");
        // The browser counts TLS to the connection.
        let connected = tls.map_or(end, |(start, _)| start);
        // Over QUIC nothing connects before, and the browser has a time of nothing for it.
        let tcp = (protocol != "h3").then_some((start, connected));
        [span("dnsStart", "dnsEnd"), tcp, tls]
    });
    Some(Timing {
        connecting,
        sent: at("sendStart"),
        first_byte: at("receiveHeadersStart").or_else(|| at("receiveHeadersEnd")),
    })
}

/// Scheme, name and port of a URL.
pub(crate) fn origin(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url;
    };
    let name = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    url.get(..scheme.len() + 3 + name).unwrap_or(url)
}
