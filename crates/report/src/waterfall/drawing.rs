//! The drawing: time to the right, the same for all loads, and a line for each request.

use std::time::Duration;

use lastbyte_page::Kind;
use lastbyte_page::cdp::{Load, Request, Source};
use lastbyte_page::har::Titled;

use super::story;
use crate::chart::scale::Scale;
use crate::chart::{file_style, text_width, wrapped};
use crate::svg::Svg;
use lastbyte_results::number::milliseconds;

/// The widths of a page and of a phone.
const WIDE: f64 = 960.0;
const NARROW: f64 = 328.0;
/// Of a request, and of text.
const ROW: f64 = 7.0;
const LINE: f64 = 16.0;
/// How high the strip of the screen is.
const SCREEN: f64 = 26.0;

/// What a bar of a kind looks like, and the word for several of them.
const KINDS: [(Option<Kind>, &str, &str); 8] = [
    (Some(Kind::Document), "c3", "documents"),
    (Some(Kind::Style), "c2", "styles"),
    (Some(Kind::Script), "c5", "scripts"),
    (Some(Kind::Image), "c0", "images"),
    (Some(Kind::Font), "c4", "fonts"),
    (Some(Kind::Fetch), "base", "data"),
    (Some(Kind::Redirect), "c7", "redirects"),
    (None, "c7", "others"),
];

/// The same of what is done for a connection.
const TCP: &str = "fill c6";
const TLS: &str = "fill c1";

/// The drawing with what it tells above it, as a file of its own.
#[must_use]
pub fn svg(loads: &[Titled<'_>]) -> String {
    const EDGE: f64 = 16.0;
    let title = title(loads);
    let sentences = story(loads).join(" ");
    let sentences = wrapped(&sentences, (WIDE - 2.0 * EDGE) / 1.22);
    let head = EDGE + LINE * 1.25 * sentences.len() as f64 + 8.0;
    let (body, height) = body(loads, WIDE - 2.0 * EDGE);
    let size = [WIDE, head + height + EDGE];
    let mut picture = Svg::new(size[0], size[1], &title);
    picture.style(&file_style());
    picture.rect("ground", [0.0, 0.0], size);
    let mut y = EDGE + 4.0;
    for line in sentences {
        picture.text("title", EDGE, y, &line);
        y += LINE * 1.25;
    }
    picture.moved([EDGE, head], 1.0, &body);
    picture.finish()
}

/// The drawing for pages, twice: for screens and for phones, each with its class.
pub(crate) fn for_page(loads: &[Titled<'_>]) -> [(&'static str, String); 2] {
    [("wide", WIDE), ("narrow", NARROW)].map(|(class, width)| {
        let (body, height) = body(loads, width);
        let mut picture = Svg::new(width, height, &title(loads));
        picture.raw(&body);
        (class, picture.finish())
    })
}

fn title(loads: &[Titled<'_>]) -> String {
    let names: Vec<&str> = loads.iter().map(|load| load.title).collect();
    format!("Requests of a page against time: {}", names.join("; "))
}

/// Where things are, from the left.
struct Places {
    /// Where time begins.
    left: f64,
    scale: Scale,
}

impl Places {
    fn x(&self, time: Duration) -> f64 {
        self.scale.place(millis(time))
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn body(loads: &[Titled<'_>], width: f64) -> (String, f64) {
    let mut svg = Svg::fragment();
    let left = if width > 600.0 { 96.0 } else { 86.0 };
    let ends = loads.iter().map(|titled| millis(end(titled.load)));
    let places = Places {
        left,
        scale: Scale::from_zero(ends, left, width - 6.0),
    };
    let mut y = key(&mut svg, loads, width);
    for Titled { title, load } in loads {
        y = waterfall(&mut svg, title, load, &places, y) + LINE;
    }
    (svg.body(), y)
}

/// When all of it was over.
fn end(load: &Load) -> Duration {
    let ends = load.requests.iter().filter_map(|request| request.end);
    let frames = load.frames.iter().map(|frame| frame.at);
    let told = [load.load, load.fcp].into_iter().chain(load.lcp);
    ends.chain(frames).chain(told).max().unwrap_or_default()
}

/// What colours mean. Gives where it ends.
fn key(svg: &mut Svg, loads: &[Titled<'_>], width: f64) -> f64 {
    let all = || loads.iter().flat_map(|titled| &titled.load.requests);
    let of_kinds = (KINDS.iter())
        .filter(|(kind, ..)| all().any(|request| request.kind == *kind))
        .map(|(_, class, name)| (format!("fill {class}"), *name));
    let connects = all().any(|request| request.connecting.is_some());
    let shakes = all().any(|request| request.connecting.is_some_and(|one| one.tls.is_some()));
    let of_connections = [
        (connects, TCP, "TCP connects"),
        (shakes, TLS, "TLS handshake"),
    ];
    let of_connections = of_connections
        .into_iter()
        .filter(|(is_there, ..)| *is_there);
    let entries = of_kinds.chain(of_connections.map(|(_, class, name)| (class.to_owned(), name)));
    let (mut x, mut y) = (0.0, 0.0);
    for (class, name) in entries {
        let needed = 18.0 + text_width(name);
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + LINE + 4.0);
        }
        svg.rect(&class, [x, y + 2.0], [12.0, 10.0]);
        svg.text("", x + 18.0, y + 11.5, name);
        x += needed + 18.0;
    }
    y + LINE + 12.0
}

/// One load. Gives where it ends.
fn waterfall(svg: &mut Svg, title: &str, load: &Load, places: &Places, top: f64) -> f64 {
    let mut y = top;
    let right = places.x(Duration::MAX);
    for line in wrapped(title, right) {
        svg.text("title", 0.0, y + 11.0, &line);
        y += LINE;
    }
    let moments = moments(svg, load, places, y + 4.0);
    y = moments + 4.0;
    let plot = y;
    if !load.frames.is_empty() {
        screen(svg, load, places, y);
        y += SCREEN + 6.0;
    }
    let bottom = y + ROW * load.requests.len() as f64 + 2.0;
    for (x, text) in places.scale.ticks() {
        svg.line("grid", [x, plot], [x, bottom]);
        let class = if x + 20.0 > right {
            "mut end"
        } else {
            "mut middle"
        };
        svg.text(class, x, bottom + 13.0, &text);
    }
    svg.text("mut end", places.left - 10.0, bottom + 13.0, "ms");
    for (_, at) in marks(load) {
        svg.line("level", [places.x(at), moments], [places.x(at), bottom]);
    }
    names(svg, load, places, y);
    for (nth, request) in load.requests.iter().enumerate() {
        bar(svg, request, places, y + ROW * nth as f64);
    }
    bottom + LINE + 4.0
}

/// The times that are marked, in their order.
fn marks(load: &Load) -> Vec<(&'static str, Duration)> {
    let mut marks = vec![
        ("first byte", load.ttfb),
        ("first paint", load.fcp),
        ("load", load.load),
    ];
    marks.extend(
        load.lcp
            .filter(|lcp| *lcp != load.fcp)
            .map(|lcp| ("largest paint", lcp)),
    );
    marks.sort_by_key(|(_, at)| *at);
    marks
}

/// Names of what is marked, on as many lines as they need. Gives where those end.
fn moments(svg: &mut Svg, load: &Load, places: &Places, top: f64) -> f64 {
    let right = places.x(Duration::MAX);
    let mut ends: Vec<f64> = Vec::new();
    for (name, at) in marks(load) {
        let text = format!("{name} {}", milliseconds(at));
        let needed = text_width(&text);
        // To the right of its line, or where that ends, as far as there is room.
        let x = (places.x(at) + 3.0).min(right - needed).max(0.0);
        let line = ends
            .iter()
            .position(|end| *end + 8.0 <= x)
            .unwrap_or(ends.len());
        match ends.get_mut(line) {
            Some(end) => *end = x + needed,
            None => ends.push(x + needed),
        }
        svg.text("", x, top + LINE * line as f64 + 10.0, &text);
    }
    top + LINE * ends.len() as f64
}

/// How much of the screen looks as in the end, against time.
fn screen(svg: &mut Svg, load: &Load, places: &Places, top: f64) {
    let base = top + SCREEN;
    let height = |progress: f64| base - (SCREEN - 2.0) * progress.clamp(0.0, 1.0);
    let mut line = vec![[places.left, base]];
    let mut now = 0.0;
    for frame in &load.frames {
        line.push([places.x(frame.at), height(now)]);
        line.push([places.x(frame.at), height(frame.progress)]);
        now = frame.progress;
    }
    let last = places.x(Duration::MAX);
    line.push([last, height(now)]);
    line.push([last, base]);
    svg.area("fill band c0", line.iter().copied());
    line.pop();
    svg.polyline("line c0", line.into_iter());
    svg.text("mut end", places.left - 10.0, base - 6.0, "screen");
}

/// `8 styles`, beside the first of requests for the same that follow each other.
fn names(svg: &mut Svg, load: &Load, places: &Places, top: f64) {
    let mut lowest = f64::MIN;
    let mut place = 0;
    for alike in load.requests.chunk_by(|one, next| one.kind == next.kind) {
        let y = top + ROW * place as f64 + 6.5;
        place += alike.len();
        let Some(first) = alike.first() else { continue };
        // A line of text is higher than one of requests: what has no room has its colour.
        if y < lowest + LINE - 3.0 {
            continue;
        }
        lowest = y;
        let (.., name) = look(first.kind);
        let name = match alike.len() {
            1 => first.kind.map_or("other", Kind::name).to_owned(),
            count => format!("{count} {name}"),
        };
        svg.text("mut end", places.left - 10.0, y + 1.0, &name);
    }
}

fn look(kind: Option<Kind>) -> (Option<Kind>, &'static str, &'static str) {
    let known = KINDS.into_iter().find(|(known, ..)| *known == kind);
    known.unwrap_or((None, "c7", "others"))
}

/// What became of a request, from its beginning to its end.
fn bar(svg: &mut Svg, request: &Request, places: &Places, top: f64) {
    let (_, class, _) = look(request.kind);
    let end = request.end.unwrap_or(request.start);
    let mut part = |class: &str, (from, to): (Duration, Duration), [below, height]: [f64; 2]| {
        let (from, to) = (places.x(from), places.x(to));
        // What takes no time is still there.
        svg.rect(class, [from, top + below], [(to - from).max(0.6), height]);
    };
    let whole = [0.5, ROW - 1.5];
    if request.source == Source::Cache {
        return part(&format!("fill {class}"), (request.start, end), whole);
    }
    let sent = request.sent.unwrap_or(end);
    part(&format!("fill {class}"), (request.start, sent), [2.5, 1.5]);
    if let Some(connecting) = request.connecting {
        if let Some(tcp) = connecting.tcp {
            part(TCP, tcp, whole);
        }
        if let Some(tls) = connecting.tls {
            part(TLS, tls, whole);
        }
    }
    let first_byte = request.first_byte.unwrap_or(end);
    part(&format!("fill {class} p2"), (sent, first_byte), whole);
    part(&format!("fill {class}"), (first_byte, end), whole);
}
