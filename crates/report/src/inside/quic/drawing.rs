//! A connection over QUIC as a drawing: arrows between client and server, time going down, and below them what the server has
//! sent against what it may send, time going right.

use std::time::Duration;

use lastbyte_capture::Fate;
use lastbyte_link::Side;

use super::{Datagram, Datagrams, FACTOR, rows};
use crate::chart::wrapped;
use crate::inside::drawing::{LINE, WIDTH, file_of};
use crate::inside::side;
use crate::svg::{Form, Svg};
use crate::ticks;
use lastbyte_results::number::milliseconds;

const WIDE: Places = Places {
    client: 96.0,
    server: 420.0,
    width: 944.0,
    down: 460.0,
    ledger: [76.0, 924.0],
    high: 250.0,
};
/// The same for a phone.
const NARROW: Places = Places {
    client: 84.0,
    server: 186.0,
    width: 328.0,
    down: 520.0,
    ledger: [52.0, 316.0],
    high: 220.0,
};
const TOP: f64 = 34.0;
const DATA: &str = "line c0";
const NO_DATA: &str = "grid";
const SENT: &str = "line c0";
/// Dashed, as what is sent lies below it where it is spent.
const CREDIT: &str = "line c1 s2";
const WINDOW: &str = "line base s1";
const BLOCKED: &str = "band fill c1";

/// Where things are, from the left, and how high.
#[derive(Clone, Copy)]
struct Places {
    client: f64,
    server: f64,
    /// Where names end.
    width: f64,
    /// From the first arrow to the last.
    down: f64,
    /// Where the ledger begins and ends, and how high it is.
    ledger: [f64; 2],
    high: f64,
}

/// The drawing with the answer above it, as a file of its own.
#[must_use]
pub(in crate::inside) fn svg(inside: &Datagrams) -> String {
    file_of(&inside.name, &inside.story(), &body(inside, WIDE))
}

/// The drawing for pages, twice: for screens and for phones, each with its class.
pub(in crate::inside) fn for_page(inside: &Datagrams) -> [(&'static str, String); 2] {
    [("wide", WIDE, WIDTH), ("narrow", NARROW, NARROW.width)].map(|(class, places, width)| {
        let (body, height) = body(inside, places);
        let mut picture = Svg::new(width, height, &inside.name);
        picture.raw(&body);
        (class, picture.finish())
    })
}

fn body(inside: &Datagrams, places: Places) -> (String, f64) {
    let mut svg = Svg::fragment();
    let arrows = arrows(&mut svg, inside, places);
    let height = ledger(&mut svg, inside, places, arrows + 2.0 * LINE);
    (svg.body(), height)
}

/// Arrows, names and times. Gives where they end.
fn arrows(svg: &mut Svg, inside: &Datagrams, places: Places) -> f64 {
    // What leaves when all is over is nobody's time.
    let is_told = |sent: &&Datagram| inside.end.is_none_or(|end| sent.sent <= end);
    let told: Vec<&Datagram> = inside.datagrams.iter().filter(is_told).collect();
    let ends = told.iter().map(|sent| sent.arrived.unwrap_or(sent.sent));
    let last = ends.max().unwrap_or_default().max(Duration::from_micros(1));
    let scale = places.down / last.as_secs_f64();
    let y = |time: Duration| TOP + time.as_secs_f64() * scale;
    let Places { client, server, .. } = places;
    svg.text("mut middle", client, TOP - 12.0, "client");
    svg.text("mut middle", server, TOP - 12.0, "server");
    for x in [client, server] {
        svg.line("zero", [x, TOP], [x, TOP + places.down]);
    }
    for [begin, end] in &inside.ledger.blocked {
        let height = y(*end) - y(*begin);
        svg.rect(BLOCKED, [server - 4.0, y(*begin)], [8.0, height]);
    }
    for sent in &told {
        arrow(svg, sent, places, &y);
    }
    let names = names(svg, inside, places, &y);
    let height = names.max(times(svg, inside, places, &y));
    let end = height.max(TOP + places.down) + LINE * 1.5;
    let mut legend = Legend { x: 8.0, y: end };
    legend.line(svg, DATA, "to be acknowledged");
    legend.line(svg, NO_DATA, "else");
    legend.cross(svg, "lost");
    end
}

/// Samples with their words, from the left.
struct Legend {
    x: f64,
    y: f64,
}

impl Legend {
    const SAMPLE: f64 = 18.0;

    fn line(&mut self, svg: &mut Svg, class: &str, word: &str) {
        let middle = self.y - 4.0;
        svg.line(class, [self.x, middle], [self.x + Self::SAMPLE, middle]);
        self.word(svg, word);
    }

    fn cross(&mut self, svg: &mut Svg, word: &str) {
        let middle = [self.x + Self::SAMPLE / 2.0, self.y - 4.0];
        svg.form("cost", Form::Cross, middle, 5.0);
        self.word(svg, word);
    }

    fn ground(&mut self, svg: &mut Svg, class: &str, word: &str) {
        svg.rect(class, [self.x, self.y - 10.0], [Self::SAMPLE, 12.0]);
        self.word(svg, word);
    }

    fn word(&mut self, svg: &mut Svg, word: &str) {
        svg.text("mut", self.x + Self::SAMPLE + 5.0, self.y, word);
        self.x += Self::SAMPLE + 5.0 + 7.0 * word.len() as f64 + 14.0;
    }
}

fn arrow(svg: &mut Svg, sent: &Datagram, places: Places, y: &impl Fn(Duration) -> f64) {
    let (from, to) = match sent.sender {
        Side::Client => (places.client, places.server),
        Side::Server => (places.server, places.client),
    };
    let class = if sent.is_data { DATA } else { NO_DATA };
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

/// What each row of datagrams is that is to be acknowledged, and what was lost. Gives where the last one ends.
fn names(svg: &mut Svg, inside: &Datagrams, places: Places, y: &impl Fn(Duration) -> f64) -> f64 {
    /// Of a long transfer, as many have room.
    const MOST: usize = 30;
    let left = places.server + 12.0;
    let mut lowest = 0.0;
    let named = rows(inside).into_iter().filter_map(|row| {
        let first = *row.datagrams.first()?;
        let is_over = inside.end.is_some_and(|end| first.sent > end);
        (!is_over && (first.is_data || first.is_lost())).then_some((first, row.label()))
    });
    for (first, label) in named.take(MOST) {
        let name = format!("{}: {label}", side(first.sender));
        let place = f64::max(y(first.sent) + 4.0, lowest);
        let class = if first.is_lost() { "cost" } else { "ink" };
        for line in wrapped(&name, (places.width - left) * 1.15) {
            svg.text(class, left, f64::max(place, lowest), &line);
            lowest = f64::max(place, lowest) + LINE;
        }
    }
    lowest
}

/// Times beside the client. Gives where the last one ends.
fn times(
    svg: &mut Svg,
    inside: &Datagrams,
    Places { client, .. }: Places,
    y: &impl Fn(Duration) -> f64,
) -> f64 {
    let mut reached = vec![("first packet", Duration::ZERO)];
    reached.extend(inside.handshake.map(|time| ("handshake", time)));
    if let Some(end) = inside.end.filter(|end| inside.handshake != Some(*end)) {
        reached.push(("last byte", end));
    }
    let mut lowest = 0.0;
    for (name, time) in reached {
        let place = f64::max(y(time) + 4.0, lowest);
        svg.line("zero", [client - 5.0, y(time)], [client, y(time)]);
        svg.text("mut end", client - 9.0, place, name);
        svg.text("name end", client - 9.0, place + LINE, &milliseconds(time));
        lowest = place + 2.0 * LINE + 2.0;
    }
    lowest
}

/// What the server sends, against its credit and its window: until the handshake is over and the address known. Gives where it
/// ends.
fn ledger(svg: &mut Svg, inside: &Datagrams, places: Places, top: f64) -> f64 {
    let ledger = &inside.ledger;
    let all = inside.datagrams.iter().map(|one| one.sent);
    let last = all.max().unwrap_or_default();
    // What follows is the response's, and as long as that.
    let until = match (inside.handshake, ledger.validated) {
        (Some(handshake), Some(validated)) => handshake.max(validated).min(last),
        _ => last,
    };
    let until = until.mul_f64(1.04).max(Duration::from_micros(1));
    let sent = steps(inside.datagrams.iter().filter_map(|one| {
        (one.sender == Side::Server && one.sent <= until).then_some((one.sent, one.bytes as u64))
    }));
    let credit: Vec<(Duration, u64)> = (ledger.received.iter())
        .map(|(at, bytes)| (*at, FACTOR * bytes))
        .filter(|(at, _)| *at <= until)
        .collect();
    let window: Vec<(Duration, u64)> = (ledger.window.iter())
        .flat_map(|window| {
            let known = ledger.acknowledged.iter().filter(|(at, _)| *at <= until);
            let more = known.map(move |(at, bytes)| (*at, bytes + window));
            std::iter::once((Duration::ZERO, *window)).chain(more)
        })
        .collect();
    let most = [&sent, &credit, &window].into_iter().flatten();
    let most = most.map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1) as f64 * 1.05;

    let [left, right] = places.ledger;
    let (ceiling, floor) = (top + LINE, top + LINE + places.high);
    let x = |at: Duration| left + (right - left) * at.as_secs_f64() / until.as_secs_f64();
    let y = |bytes: u64| floor - (floor - ceiling) * bytes as f64 / most;
    svg.text(
        "title",
        8.0,
        top,
        "What the server has sent, and may send, in bytes",
    );
    for (bytes, label) in ticks::linear(0.0, most) {
        let at = y(bytes as u64);
        svg.line("grid", [left, at], [right, at]);
        svg.text("mut end", left - 6.0, at + 4.0, &label);
    }
    for [begin, end] in &ledger.blocked {
        if *begin <= until {
            let width = x((*end).min(until)) - x(*begin);
            svg.rect(BLOCKED, [x(*begin), ceiling], [width, floor - ceiling]);
        }
    }
    for (at, label) in ticks::linear(0.0, until.as_secs_f64() * 1e3) {
        let at = x(Duration::from_secs_f64(at / 1e3));
        svg.line("zero", [at, floor], [at, floor + 4.0]);
        svg.text("mut middle", at, floor + 18.0, &label);
    }
    svg.line("zero", [left, floor], [right, floor]);
    svg.text("mut end", right, floor + 18.0 + LINE, "ms");
    let validated = ledger.validated.filter(|at| *at <= until);
    let ends = [until, until, validated.unwrap_or(until)];
    let lines = [(WINDOW, &window), (SENT, &sent), (CREDIT, &credit)];
    for ((class, steps), end) in lines.into_iter().zip(ends) {
        svg.polyline(
            class,
            stairs(steps, end).map(|(at, bytes)| [x(at), y(bytes)]),
        );
    }
    if let Some(validated) = validated {
        svg.line("level", [x(validated), ceiling], [x(validated), floor]);
    }
    let mut words: Vec<(&str, &str)> = vec![(SENT, "sent")];
    if !credit.is_empty() {
        words.push((CREDIT, "credit: 3 × received"));
    }
    if ledger.window.is_some() {
        words.push((WINDOW, "acknowledged + initial window"));
    }
    let mut legend = Legend {
        x: 8.0,
        y: floor + 18.0 + 2.0 * LINE,
    };
    let place = |legend: &mut Legend, word: &str| {
        if legend.x > 8.0 && legend.x + 30.0 + 7.0 * word.chars().count() as f64 > places.width {
            (legend.x, legend.y) = (8.0, legend.y + LINE * 1.2);
        }
    };
    for (class, word) in words {
        place(&mut legend, word);
        legend.line(svg, class, word);
    }
    if !ledger.blocked.is_empty() {
        place(&mut legend, "no credit");
        legend.ground(svg, BLOCKED, "no credit");
    }
    if validated.is_some() {
        place(&mut legend, "address known");
        legend.line(svg, "level", "address known");
    }
    legend.y + 8.0
}

/// Sums of what is added.
fn steps(added: impl Iterator<Item = (Duration, u64)>) -> Vec<(Duration, u64)> {
    let mut sum = 0;
    added
        .map(|(at, bytes)| {
            sum += bytes;
            (at, sum)
        })
        .collect()
}

/// A line that goes up at each step, from nothing at the beginning.
fn stairs(steps: &[(Duration, u64)], end: Duration) -> impl Iterator<Item = (Duration, u64)> {
    let before = std::iter::once(0).chain(steps.iter().map(|(_, bytes)| *bytes));
    let up = steps.iter().zip(before);
    let up = up.flat_map(|((at, bytes), before)| [(*at, before), (*at, *bytes)]);
    let last = steps.last().map(|(_, bytes)| (end, *bytes));
    up.chain(last)
}
