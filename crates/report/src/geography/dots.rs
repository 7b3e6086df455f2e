//! The first byte by region as dots: a row for each region, a line in it for each arm.

use super::title;
use crate::chart::scale::Scale;
use crate::chart::{COLOURS, file_style};
use crate::svg::Svg;
use lastbyte_explain::geography::{Geography, OriginConnection, RegionTimes, Setting, Way};

const WIDTH: f64 = 760.0;
/// Where names of regions end.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 24.0;
/// A line of the key.
const KEY: f64 = 20.0;
/// A line of an arm.
const LINE: f64 = 12.0;
/// Between regions.
const GAP: f64 = 9.0;
/// A setting's title, and its axis.
const TOP: f64 = 26.0;
const BOTTOM: f64 = 42.0;
const DOT: f64 = 3.4;
/// Around a dot, where both are at one place.
const RING: f64 = 5.4;

const OWN: &str = "\
svg .open { stroke-width: 1.4 }
svg .tick { stroke-width: 2.4 }
";

/// A dot plot as a file of its own.
pub fn dots(geography: &Geography) -> String {
    let arms = geography.question.arms.len();
    let row = LINE * arms as f64 + GAP;
    let head = 34.0 + KEY * (arms + 1) as f64;
    let panel = |setting: &Setting| TOP + row * setting.regions.len() as f64 + BOTTOM;
    let height = head + geography.settings.iter().map(panel).sum::<f64>();
    let label = format!("First byte by region, origin {}", geography.question.origin);
    let mut svg = Svg::new(WIDTH, height, &label);
    svg.style(&format!("{}{OWN}", file_style()));
    svg.rect("ground", [0.0, 0.0], [WIDTH, height]);
    svg.text("title", 12.0, 20.0, &label);
    key(&mut svg, geography);
    let all = (geography.settings.iter())
        .flat_map(|setting| &setting.regions)
        .flat_map(|region| region.ttfb.iter().flatten());
    let milliseconds = all.map(|time| time.as_secs_f64() * 1e3);
    let x = Scale::from_zero(milliseconds, LEFT, WIDTH - RIGHT);
    let mut top = head;
    for setting in &geography.settings {
        draw(&mut svg, geography, setting, &x, top);
        top += panel(setting);
    }
    svg.finish()
}

fn key(svg: &mut Svg, geography: &Geography) {
    let mut y = 40.0;
    for (arm, named) in geography.question.arms.iter().enumerate() {
        point(svg, Way::Edge(OriginConnection::Cold), arm, [20.0, y]);
        svg.text("", 32.0, y + 4.0, &named.name);
        y += KEY;
    }
    let mut x = 20.0;
    for way in &geography.ways {
        let said = match way {
            Way::Direct => "without an edge",
            Way::Edge(OriginConnection::Cold) => "edge, cold connection to the origin",
            Way::Edge(OriginConnection::Warm) => "edge, warm connection",
            Way::Edge(OriginConnection::Cached) => "edge, cached",
        };
        point(svg, *way, 0, [x, y]);
        svg.text("", x + 12.0, y + 4.0, said);
        x += 44.0 + said.len() as f64 * 5.6;
    }
}

fn draw(svg: &mut Svg, geography: &Geography, setting: &Setting, x: &Scale, top: f64) {
    let arms = geography.question.arms.len();
    let row = LINE * arms as f64 + GAP;
    let first = top + TOP;
    let bottom = first + row * setting.regions.len() as f64;
    svg.text("title", 12.0, top + 15.0, &title(setting));
    for (place, text) in x.ticks() {
        svg.line("grid", [place, first], [place, bottom]);
        svg.text("middle", place, bottom + 15.0, &text);
    }
    svg.text(
        "mut middle",
        (LEFT + WIDTH - RIGHT) / 2.0,
        bottom + 31.0,
        "first byte, ms",
    );
    for (number, region) in setting.regions.iter().enumerate() {
        let y = first + row * number as f64;
        svg.line("grid", [LEFT, y], [WIDTH - RIGHT, y]);
        svg.text(
            "end",
            LEFT - 8.0,
            y + row / 2.0 + 4.0,
            &short(&region.region.name),
        );
        points(svg, geography, region, x, y + (GAP + LINE) / 2.0);
    }
    svg.line("grid", [LEFT, bottom], [WIDTH - RIGHT, bottom]);
}

fn points(svg: &mut Svg, geography: &Geography, region: &RegionTimes, x: &Scale, y: f64) {
    for (arm, times) in region.ttfb.iter().enumerate() {
        let y = y + LINE * arm as f64;
        for (way, time) in geography.ways.iter().zip(times) {
            point(svg, *way, arm, [x.place(time.as_secs_f64() * 1e3), y]);
        }
    }
}

/// What a way looks like, in the colour of an arm.
fn point(svg: &mut Svg, way: Way, arm: usize, [x, y]: [f64; 2]) {
    let colour = arm % COLOURS;
    match way {
        Way::Direct => svg.ring(&format!("line open c{colour}"), [x, y], RING),
        Way::Edge(OriginConnection::Cold) => svg.ring(&format!("fill c{colour}"), [x, y], DOT),
        Way::Edge(OriginConnection::Warm) => {
            let corner = [x - DOT + 0.5, y - DOT + 0.5];
            let side = 2.0 * DOT - 1.0;
            svg.rect(&format!("fill c{colour}"), corner, [side, side]);
        }
        Way::Edge(OriginConnection::Cached) => {
            let class = format!("line tick c{colour}");
            svg.line(&class, [x, y - DOT], [x, y + DOT]);
        }
    }
}

/// As much of a name as there is room for.
fn short(name: &str) -> String {
    const MOST: usize = 28;
    if name.chars().count() > MOST {
        name.chars().take(MOST - 1).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}
