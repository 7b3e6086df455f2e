//! The flights of arms, drawn: time goes down, client on the left, server on the right.

use lastbyte_flights::{Flight, Timeline};
use lastbyte_link::{Side, counted};

use crate::svg::Svg;
use lastbyte_explain::{Explanation, Step};
use lastbyte_results::number::milliseconds;
use lastbyte_study::Cell;

/// A ladder of one cell in the terminal, a line for each flight, a square for each segment.
pub(super) fn text(explained: &Explanation) -> String {
    const SQUARES: u32 = 32;
    let Some((cell, timeline)) = explained.times.get(explained.drawn()) else {
        return String::new();
    };
    let mut lines = vec![format!("  flights: {cell}")];
    let line = |time, arrow, words: &str| format!("  {time:>10}  {arrow}  {words}");
    if timeline.connect.is_some() {
        lines.push(line(
            milliseconds(std::time::Duration::ZERO),
            "client →  ",
            "SYN",
        ));
    }
    let unit = explained.arm.transport.packet();
    let marks = marks(timeline);
    let mut marks = marks.iter().peekable();
    for step in explained.steps(explained.drawn()) {
        while let Some((name, at)) = marks.next_if(|(_, at)| *at <= step.flight.start) {
            lines.push(line(milliseconds(*at), "client    ", &format!("* {name}")));
        }
        let arrow = match step.flight.sender {
            Side::Client => "client →  ",
            Side::Server => "  ← server",
        };
        let count = step.flight.segments;
        let squares = "■".repeat(count.min(SQUARES) as usize);
        let more = if count > SQUARES { "…" } else { "" };
        let time = milliseconds(step.flight.start);
        lines.push(line(
            time,
            arrow,
            &format!("{squares}{more} {}", size(&step, unit)),
        ));
        lines.push(format!("{:14}{}", "", step.what));
    }
    for (name, at) in marks {
        lines.push(line(milliseconds(*at), "client    ", &format!("* {name}")));
    }
    if let Some(reason) = timeline.beyond(timeline.ttlb) {
        lines.push(format!("{:14}no further by arithmetic: {reason}", ""));
    }
    lines.join("\n") + "\n"
}

fn size(step: &Step, unit: &str) -> String {
    let Flight {
        segments, bytes, ..
    } = step.flight;
    format!("{}, {bytes} B", counted(segments as usize, unit))
}

/// What the client reaches, in the order of time.
fn marks(timeline: &Timeline) -> Vec<(&'static str, std::time::Duration)> {
    let connected = timeline.connect.map(|time| ("connected", time));
    let mut marks: Vec<_> = connected.into_iter().collect();
    marks.push(("handshake", timeline.handshake));
    marks.extend(timeline.ttfb.map(|time| ("first byte", time)));
    marks.push(("last byte", timeline.ttlb));
    marks.retain(|(_, time)| timeline.beyond(*time).is_none());
    marks.sort_by_key(|(_, time)| *time);
    marks
}

const COLUMN: f64 = 760.0;
const TOP: f64 = 78.0;
const DOWN: f64 = 520.0;
const CLIENT: f64 = 110.0;
const SERVER: f64 = 250.0;
const STYLE: &str = "\
text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1f2328 }
.bold { font-weight: 600 } .dim { fill: #656d76 } .end { text-anchor: end } .middle { text-anchor: middle }
.ground { fill: #ffffff } .side { stroke: #656d76; stroke-width: 2 } .tcp { stroke: #656d76; stroke-width: 1.5 }
.handshake { stroke: #0072b2; stroke-width: 2 } .data { stroke: #d55e00; stroke-width: 2 }
.square { fill: #0072b2 } .dot { fill: #1f2328 }
";

/// The ladders of one cell of each arm beside each other, on one scale of time.
pub fn svg(explained: &[Explanation]) -> String {
    let drawn = explained
        .iter()
        .filter_map(|arm| Some((arm, arm.times.get(arm.drawn())?)));
    let drawn: Vec<_> = drawn.collect();
    let last = drawn.iter().map(|(_, (_, timeline))| timeline.ttlb).max();
    let scale = DOWN / last.map_or(1.0, |last| last.as_secs_f64()).max(1e-9);
    let width = COLUMN * drawn.len().max(1) as f64;
    let height = TOP + DOWN + 60.0;
    let mut svg = Svg::new(width, height, "Flights of each arm");
    svg.style(STYLE);
    svg.rect("ground", [0.0, 0.0], [width, height]);
    for (index, (arm, (cell, timeline))) in drawn.into_iter().enumerate() {
        svg.raw(&format!(
            "<g transform=\"translate({} 0)\">\n",
            COLUMN * index as f64
        ));
        ladder(&mut svg, arm, cell, timeline, scale);
        svg.raw("</g>\n");
    }
    svg.text(
        "dim",
        16.0,
        height - 14.0,
        "By arithmetic: no loss, no time of computing.",
    );
    svg.finish()
}

fn ladder(svg: &mut Svg, arm: &Explanation, cell: &Cell, timeline: &Timeline, scale: f64) {
    let y = |time: std::time::Duration| TOP + time.as_secs_f64() * scale;
    svg.text("bold", 16.0, 24.0, &arm.arm.name);
    svg.text("dim", 16.0, 42.0, &cell.to_string());
    svg.text("dim middle", CLIENT, TOP - 10.0, "client");
    svg.text("dim middle", SERVER, TOP - 10.0, "server");
    for side in [CLIENT, SERVER] {
        svg.line("side", [side, TOP], [side, y(timeline.ttlb)]);
    }
    if timeline.connect.is_some() {
        let (forward, backward) = (cell.link.forward.delay, cell.link.backward.delay);
        let zero = std::time::Duration::ZERO;
        svg.line("tcp", [CLIENT, y(zero)], [SERVER, y(forward)]);
        svg.line("tcp", [SERVER, y(forward)], [CLIENT, y(forward + backward)]);
    }
    let unit = arm.arm.transport.packet();
    let mut lowest = 0.0;
    for step in arm.steps(arm.drawn()) {
        let (from, to) = match step.flight.sender {
            Side::Client => (CLIENT, SERVER),
            Side::Server => (SERVER, CLIENT),
        };
        let class = if step.flight.start < timeline.handshake {
            "handshake"
        } else {
            "data"
        };
        svg.line(class, [from, y(step.flight.start)], [to, y(step.arrives)]);
        let text = f64::max(y(step.flight.start) + 4.0, lowest);
        let who = match step.flight.sender {
            Side::Client => "→",
            Side::Server => "←",
        };
        svg.text(
            "",
            SERVER + 14.0,
            text,
            &format!("{who} {}", size(&step, unit)),
        );
        svg.text("dim", SERVER + 14.0, text + 14.0, &step.what);
        lowest = text + 31.0;
    }
    if let Some(reason) = timeline.beyond(timeline.ttlb) {
        let text = format!("no further by arithmetic: {}", reason.name());
        svg.text("dim", SERVER + 14.0, y(timeline.ttlb) + 4.0, &text);
    }
    let mut lowest = 0.0;
    for (name, at) in marks(timeline) {
        svg.ring("dot", [CLIENT, y(at)], 3.5);
        let text = f64::max(y(at) + 4.0, lowest);
        svg.text("end", CLIENT - 10.0, text, name);
        svg.text("bold end", CLIENT - 10.0, text + 14.0, &milliseconds(at));
        lowest = text + 29.0;
    }
}
