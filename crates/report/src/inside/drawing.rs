//! A connection as a drawing: arrows between client and server, time going down, and beside them what is under way.

use std::time::Duration;

use lastbyte_capture::{Fate, Transmission};
use lastbyte_link::Side;

use super::text::{Row, again_word, begins, rows, sender};
use super::{Inside, story};
use crate::chart::{file_style, wrapped};
use crate::svg::{Form, Svg};
use lastbyte_results::number::milliseconds;

/// The width of a file, and where all is in it.
pub(super) const WIDTH: f64 = 960.0;
const WIDE: Places = Places {
    client: 96.0,
    server: 420.0,
    width: 704.0,
    panel: Some([724.0, 944.0]),
};
/// The same for a phone, where what is under way has no room.
const NARROW: Places = Places {
    client: 84.0,
    server: 186.0,
    width: 328.0,
    panel: None,
};
const TOP: f64 = 34.0;
const DOWN: f64 = 560.0;
pub(super) const LINE: f64 = 15.0;
/// What packets are drawn as.
const DATA: &str = "line c0";
const AGAIN: &str = "line c1";
const NO_DATA: &str = "grid";

/// Where things are, from the left.
#[derive(Clone, Copy)]
struct Places {
    client: f64,
    server: f64,
    /// Where names end.
    width: f64,
    panel: Option<[f64; 2]>,
}

/// The drawing with the answer above it, as a file of its own.
#[must_use]
pub fn svg(inside: &Inside) -> String {
    file_of(&inside.name, &story(inside), &body(inside, WIDE))
}

/// A file with these sentences above a drawing, of which its height is known.
pub(super) fn file_of(name: &str, story: &[String], (body, height): &(String, f64)) -> String {
    const EDGE: f64 = 16.0;
    let sentences = wrapped(&story.join(" "), (WIDTH - 2.0 * EDGE) / 1.22);
    let head = EDGE + LINE * 1.3 * (sentences.len() + 1) as f64 + 8.0;
    let mut picture = Svg::new(WIDTH, head + height + EDGE, name);
    picture.style(&file_style());
    picture.rect("ground", [0.0, 0.0], [WIDTH, head + height + EDGE]);
    let mut y = EDGE + LINE;
    for line in sentences {
        picture.text("title", EDGE, y, &line);
        y += LINE * 1.3;
    }
    picture.text("mut", EDGE, y, name);
    picture.moved([0.0, head], 1.0, body);
    picture.finish()
}

/// The drawing for pages, twice: for screens and for phones, each with its class.
pub(crate) fn for_page(inside: &Inside) -> [(&'static str, String); 2] {
    [("wide", WIDE, WIDTH), ("narrow", NARROW, NARROW.width)].map(|(class, places, width)| {
        let (body, height) = body(inside, places);
        let mut picture = Svg::new(width, height, &inside.name);
        picture.raw(&body);
        (class, picture.finish())
    })
}

fn body(inside: &Inside, places: Places) -> (String, f64) {
    let mut svg = Svg::fragment();
    // What leaves when all is over is nobody's time.
    let end = inside.end();
    let is_told = |sent: &&Transmission| end.is_none_or(|end| sent.sent <= end);
    let told: Vec<&Transmission> = (inside.connection.transmissions.iter())
        .filter(is_told)
        .collect();
    let ends = told.iter().map(|sent| sent.arrived.unwrap_or(sent.sent));
    let last = ends.max().unwrap_or_default().max(Duration::from_micros(1));
    let scale = DOWN / last.as_secs_f64();
    let y = |time: Duration| TOP + time.as_secs_f64() * scale;
    let Places { client, server, .. } = places;
    svg.text("mut middle", client, TOP - 12.0, "client");
    svg.text("mut middle", server, TOP - 12.0, "server");
    for x in [client, server] {
        svg.line("zero", [x, TOP], [x, TOP + DOWN]);
    }
    for sent in &told {
        arrow(&mut svg, sent, places, &y);
    }
    let names = names(&mut svg, inside, places, &y);
    let height = names.max(times(&mut svg, inside, places, &y));
    if let Some(panel) = places.panel {
        under_way(&mut svg, &told, panel, &y);
    }
    let end = legend(&mut svg, height.max(TOP + DOWN) + LINE * 1.5);
    (svg.body(), end + 8.0)
}

/// What arrows are. Gives where it ends.
fn legend(svg: &mut Svg, y: f64) -> f64 {
    /// The length of a sample, and how far it is from its word.
    const SAMPLE: f64 = 18.0;
    const GAP: f64 = 5.0;
    let middle = y - 4.0;
    let mut x = 8.0;
    for (kind, word) in [
        (Some(DATA), "data"),
        (Some(AGAIN), "sent again"),
        (Some(NO_DATA), "no data"),
        (None, "lost"),
    ] {
        match kind {
            Some(class) => svg.line(class, [x, middle], [x + SAMPLE, middle]),
            None => svg.form("cost", Form::Cross, [x + SAMPLE / 2.0, middle], 5.0),
        }
        svg.text("mut", x + SAMPLE + GAP, y, word);
        x += SAMPLE + GAP + 7.0 * word.len() as f64 + 14.0;
    }
    y
}

fn arrow(svg: &mut Svg, sent: &Transmission, places: Places, y: &impl Fn(Duration) -> f64) {
    let (from, to) = match sent.sender {
        Side::Client => (places.client, places.server),
        Side::Server => (places.server, places.client),
    };
    let class = match (sent.again, sent.payload.is_empty()) {
        (Some(_), _) => AGAIN,
        (None, false) => DATA,
        (None, true) => NO_DATA,
    };
    match (sent.arrived, sent.fate) {
        (Some(arrived), _) => svg.line(class, [from, y(sent.sent)], [to, y(arrived)]),
        (None, Fate::Carried | Fate::UnderWay) => {}
        (None, Fate::Lost | Fate::QueueFull) => {
            let middle = [(from + to) / 2.0, y(sent.sent) + 6.0];
            svg.line(class, [from, y(sent.sent)], middle);
            svg.form("cost", Form::Cross, middle, 5.0);
        }
    }
}

/// What each row of packets with data is, and what was lost. Gives where the last one ends.
fn names(svg: &mut Svg, inside: &Inside, places: Places, y: &impl Fn(Duration) -> f64) -> f64 {
    let left = places.server + 12.0;
    let mut lowest = 0.0;
    let end = inside.end();
    let rows = rows(inside).into_iter();
    for row in rows.filter(|row| end.is_none_or(|end| begins(row) <= end)) {
        let Some(name) = name(inside, &row) else {
            continue;
        };
        let place = f64::max(y(begins(&row)) + 4.0, lowest);
        let class = if is_trouble(&row) { "cost" } else { "ink" };
        for line in wrapped(&name, (places.width - left) * 1.15) {
            svg.text(class, left, f64::max(place, lowest), &line);
            lowest = f64::max(place, lowest) + LINE;
        }
    }
    lowest
}

fn is_trouble(row: &Row<'_>) -> bool {
    let mut packets = row.packets.iter();
    packets.any(|sent| sent.again.is_some() || matches!(sent.fate, Fate::Lost | Fate::QueueFull))
}

/// `server: Certificate, 10 packets`; none of what is not worth a name.
fn name(inside: &Inside, row: &Row<'_>) -> Option<String> {
    let (first, last) = (row.packets.first()?, row.packets.last()?);
    if !first.takes_place() && !is_trouble(row) {
        return None;
    }
    let what = if first.payload.is_empty() {
        inside.what(first)
    } else {
        inside.messages(first.sender, first.offset, last.end())
    };
    let mut name = format!("{}: {what}", sender(row));
    if row.packets.len() > 1 {
        name += &format!(", {} packets", row.packets.len());
    }
    if let Some(again) = first.again {
        name += &format!(", {}", again_word(again));
    }
    match first.fate {
        Fate::Lost => name += ", lost",
        Fate::QueueFull => name += ", queue full",
        Fate::Carried | Fate::UnderWay => {}
    }
    Some(name)
}

/// Times beside the client: its beginning, what matters, and its end. Gives where the last one ends.
fn times(
    svg: &mut Svg,
    inside: &Inside,
    Places { client, .. }: Places,
    y: &impl Fn(Duration) -> f64,
) -> f64 {
    let mut reached = vec![("connect()", Duration::ZERO)];
    reached.extend(inside.handshake().map(|time| ("handshake", time)));
    if let Some(end) = inside.end().filter(|end| inside.handshake() != Some(*end)) {
        reached.push(("last byte", end));
    }
    if let Some(Ok(arithmetic)) = inside.asked.map(|asked| asked.arithmetic) {
        reached.push(("without loss", arithmetic));
    }
    reached.sort_by_key(|(_, time)| *time);
    let mut lowest = 0.0;
    for (name, time) in reached {
        let place = f64::max(y(time) + 4.0, lowest);
        let class = match name {
            "without loss" => "mut end",
            _ => "name end",
        };
        svg.line("zero", [client - 5.0, y(time)], [client, y(time)]);
        svg.text("mut end", client - 9.0, place, name);
        svg.text(class, client - 9.0, place + LINE, &milliseconds(time));
        lowest = place + 2.0 * LINE + 2.0;
    }
    lowest
}

/// How much each side has under way, against time.
fn under_way(
    svg: &mut Svg,
    transmissions: &[&Transmission],
    [left, right]: [f64; 2],
    y: &impl Fn(Duration) -> f64,
) {
    let most = transmissions.iter().map(|sent| sent.in_flight).max();
    let most = most.unwrap_or(0).max(1);
    let x = |bytes: u64| left + (right - left) * bytes as f64 / most as f64;
    svg.text("mut", left, TOP - 12.0, "under way, bytes");
    svg.text("mut end", right, TOP - 12.0, &most.to_string());
    svg.line("zero", [left, TOP], [left, TOP + DOWN]);
    svg.line("grid", [right, TOP], [right, TOP + DOWN]);
    for (class, side) in [("line base", Side::Client), ("line c0", Side::Server)] {
        let mut line = vec![[left, TOP]];
        let mut now = 0;
        for (time, bytes) in changes(transmissions, side) {
            line.push([x(now), y(time)]);
            line.push([x(bytes), y(time)]);
            now = bytes;
        }
        line.push([x(now), TOP + DOWN]);
        svg.polyline(class, line.into_iter());
    }
}

/// When a side has more or less under way: what it sends, and what is acknowledged.
fn changes(transmissions: &[&Transmission], side: Side) -> Vec<(Duration, u64)> {
    let mut events: Vec<(Duration, bool, u64)> = Vec::new();
    for sent in transmissions {
        match (sent.sender == side, sent.arrived) {
            (true, _) if !sent.payload.is_empty() => {
                events.push((sent.sent, true, sent.end()));
            }
            (false, Some(arrived)) => events.push((arrived, false, sent.acknowledges)),
            _ => {}
        }
    }
    events.sort();
    let (mut highest, mut acknowledged) = (0_u64, 0_u64);
    let mut changes = Vec::new();
    for (time, is_sent, place) in events {
        if is_sent {
            highest = highest.max(place)
        } else {
            acknowledged = acknowledged.max(place)
        }
        changes.push((time, highest.saturating_sub(acknowledged)));
    }
    changes
}
