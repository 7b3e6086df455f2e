//! Regions on a map, coloured by what another arm costs there; with one arm, by what an edge saves.

use std::time::Duration;

use super::title;
use crate::chart::file_style;
use crate::svg::Svg;
use crate::thresholds::NOTHING_MS;
use crate::ticks::round_step;
use lastbyte_explain::geography::{Geography, Place, Setting, Way};

/// Outlines, in tenths of degrees.
const LAND: &str = include_str!("../../data/land-110m.txt");

const WIDTH: f64 = 760.0;
/// What is shown of the earth, in degrees of latitude: where people live.
const NORTH: f64 = 78.0;
const SOUTH: f64 = -57.0;
const HEAD: f64 = 34.0;
/// A panel's title, and the key below it.
const TITLE: f64 = 22.0;
const KEY: f64 = 34.0;

/// From little to much, for those who see no colours by lightness: five blues, and one for less than nothing.
const STEPS: [&str; 5] = ["#c7dcef", "#86b9dc", "#4790c5", "#1a63a6", "#08306b"];
const LESS: &str = "#d55e00";

/// A map for each way and each arm but the baseline, as a file of its own; `None` if no region has a place.
pub fn map(geography: &Geography, setting: &Setting) -> Option<String> {
    let panels = panels(geography, setting);
    if panels.iter().all(|panel| panel.points.is_empty()) {
        return None;
    }
    let height = project(SOUTH, 0.0)[1] - project(NORTH, 0.0)[1];
    let total = HEAD + (TITLE + height + KEY) * panels.len() as f64;
    let what = match geography.question.arms.len() {
        1 => "What an edge saves of the first byte",
        _ => "How much later the first byte is",
    };
    let label = format!("{what}, origin {}", geography.question.origin);
    let mut svg = Svg::new(WIDTH, total, &label);
    svg.style(&format!("{}{}", file_style(), own_style()));
    svg.rect("ground", [0.0, 0.0], [WIDTH, total]);
    svg.text("title", 12.0, 20.0, &label);
    svg.text("mut end", WIDTH - 12.0, 20.0, "outline: Natural Earth");
    svg.raw(&format!(
        "<defs><g id=\"land\">\n{}</g></defs>\n",
        outline()
    ));
    for (number, panel) in panels.iter().enumerate() {
        panel.draw(
            &mut svg,
            HEAD + (TITLE + height + KEY) * number as f64,
            height,
        );
    }
    Some(svg.finish())
}

fn own_style() -> String {
    let mut style = ".land { fill: #e4e4e0; stroke: #ffffff; stroke-width: .5 }\n\
                     .sea { fill: #ffffff }\n\
                     svg .place { stroke: #ffffff; stroke-width: 1 }\n"
        .to_owned();
    for (step, colour) in STEPS.iter().enumerate() {
        style.push_str(&format!("svg .m{step} {{ fill: {colour} }}\n"));
    }
    style.push_str(&format!("svg .less {{ fill: {LESS} }}\n"));
    style
}

/// One map.
struct Panel {
    title: String,
    /// Each region that has a place: name, place, difference in milliseconds, radius.
    points: Vec<(String, Place, f64, f64)>,
}

fn panels(geography: &Geography, setting: &Setting) -> Vec<Panel> {
    let arms = &geography.question.arms;
    let ways = || geography.ways.iter().enumerate();
    let panel = |title: String, of: &dyn Fn(&[Vec<Duration>]) -> Option<f64>| Panel {
        title: [title, self::title(setting)]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
        points: points(setting, of),
    };
    if let [arm] = &arms[..] {
        let edges = ways().filter(|(_, way)| **way != Way::Direct);
        let edges = edges.map(|(place, way)| {
            panel(format!("{}, {way}", arm.name, way = way.name()), &|ttfb| {
                let times = ttfb.first()?;
                Some(milliseconds(*times.first()?) - milliseconds(*times.get(place)?))
            })
        });
        return edges.collect();
    }
    let others = arms.iter().enumerate().skip(1);
    let others = others.flat_map(|(arm, named)| {
        ways().map(move |(place, way)| {
            let title = format!("{}, {}", named.name, way.name());
            (arm, place, title)
        })
    });
    others
        .map(|(arm, place, title)| {
            panel(title, &|ttfb| {
                let time = |arm: usize| Some(milliseconds(*ttfb.get(arm)?.get(place)?));
                Some(time(arm)? - time(0)?)
            })
        })
        .collect()
}

fn points(
    setting: &Setting,
    of: &dyn Fn(&[Vec<Duration>]) -> Option<f64>,
) -> Vec<(String, Place, f64, f64)> {
    let users = setting.regions.iter().filter_map(|one| one.region.users);
    let most = users.fold(0.0, f64::max);
    let radius = |users: Option<f64>| match users {
        Some(users) if most > 0.0 => 3.0 + 7.0 * (users / most).sqrt(),
        _ => 5.0,
    };
    let points = setting.regions.iter().filter_map(|one| {
        let difference = of(&one.ttfb)?;
        let radius = radius(one.region.users);
        Some((
            one.region.name.clone(),
            one.region.place?,
            difference,
            radius,
        ))
    });
    let mut points: Vec<_> = points.collect();
    // Large ones lie below.
    points.sort_by(|one, other| other.3.total_cmp(&one.3));
    points
}

impl Panel {
    fn draw(&self, svg: &mut Svg, top: f64, height: f64) {
        svg.text("title", 12.0, top + 14.0, &self.title);
        let north = project(NORTH, 0.0)[1];
        let place = |latitude: f64, longitude: f64| {
            let [x, y] = project(within(latitude), longitude);
            [x, top + TITLE + y - north]
        };
        svg.raw(&format!(
            "<use href=\"#land\" transform=\"translate(0 {:.1})\"/>\n",
            top + TITLE - north
        ));
        let most = (self.points.iter()).fold(0.0, |most: f64, point| most.max(point.2));
        let step = step(most);
        for (name, at, difference, radius) in &self.points {
            let class = format!("place {}", class(*difference, step));
            let text = format!("{name}: {difference:+.1} ms");
            svg.named_ring(&class, place(at.latitude, at.longitude), *radius, &text);
        }
        self.key(svg, top + TITLE + height, step);
    }

    fn key(&self, svg: &mut Svg, top: f64, step: f64) {
        let y = top + 16.0;
        let mut x = 20.0;
        if self.points.iter().any(|point| is_less(point.2)) {
            svg.ring("place less", [x, y], 5.0);
            svg.text("", x + 10.0, y + 4.0, "less than none");
            x += 110.0;
        }
        for number in 0..STEPS.len() {
            let low = step * number as f64;
            let text = if number + 1 == STEPS.len() {
                format!("from {low} ms on")
            } else {
                format!("{low} to {} ms", low + step)
            };
            svg.ring(&format!("place m{number}"), [x, y], 5.0);
            svg.text("", x + 10.0, y + 4.0, &text);
            x += 120.0;
        }
    }
}

/// A round number of which five reach `most` or nearly so.
fn step(most: f64) -> f64 {
    if most > 0.0 {
        round_step(most / STEPS.len() as f64).max(0.1)
    } else {
        1.0
    }
}

/// Less than none; what rounds to none is none.
fn is_less(difference: f64) -> bool {
    difference < -NOTHING_MS
}

fn class(difference: f64, step: f64) -> String {
    if is_less(difference) {
        return "less".to_owned();
    }
    let number = (difference.max(0.0) / step) as usize;
    format!("m{}", number.min(STEPS.len() - 1))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// All land, which every panel shows.
fn outline() -> String {
    let mut svg = Svg::fragment();
    for (kind, ring) in rings() {
        let ring = ring.map(|[longitude, latitude]| project(within(latitude), longitude));
        svg.area(kind, ring);
    }
    svg.body()
}

/// The nearest latitude that is shown.
fn within(latitude: f64) -> f64 {
    latitude.clamp(SOUTH, NORTH)
}

/// The rings of the outline, as longitude and latitude: each is `land`, or a `sea` in what comes before.
pub(super) fn rings() -> impl Iterator<Item = (&'static str, impl Iterator<Item = [f64; 2]>)> {
    let rings = LAND.lines().filter_map(|line| line.split_once(' '));
    let rings = rings.filter(|(kind, _)| *kind != "#");
    rings.map(|(kind, points)| {
        let points = points.split(' ').filter_map(|point| {
            let (longitude, latitude) = point.split_once(',')?;
            let degrees = |tenths: &str| Some(tenths.parse::<f64>().ok()? / 10.0);
            Some([degrees(longitude)?, degrees(latitude)?])
        });
        (kind, points)
    })
}

/// Robinson's projection (1963): how long a parallel is and how far it lies from the equator, every five degrees.
const PARALLELS: [[f64; 2]; 19] = [
    [1.0, 0.0],
    [0.9986, 0.0620],
    [0.9954, 0.1240],
    [0.9900, 0.1860],
    [0.9822, 0.2480],
    [0.9730, 0.3100],
    [0.9600, 0.3720],
    [0.9427, 0.4340],
    [0.9216, 0.4958],
    [0.8962, 0.5571],
    [0.8679, 0.6176],
    [0.8350, 0.6769],
    [0.7986, 0.7346],
    [0.7597, 0.7903],
    [0.7186, 0.8435],
    [0.6732, 0.8936],
    [0.6213, 0.9394],
    [0.5722, 0.9761],
    [0.5322, 1.0],
];

/// The place in pixels of degrees north and east; the equator has the ordinate 0.
pub(super) fn project(latitude: f64, longitude: f64) -> [f64; 2] {
    let nth = latitude.abs().min(90.0) / 5.0;
    let before = (nth as usize).min(PARALLELS.len() - 2);
    let share = nth - before as f64;
    let [length, distance] = [0, 1].map(|part| {
        let [low, high] = [before, before + 1].map(|nth| PARALLELS[nth][part]);
        low + (high - low) * share
    });
    // The width is that of the equator, 2 * 0.8487 * pi of radius 1.
    let radius = WIDTH / (2.0 * 0.8487 * std::f64::consts::PI);
    [
        WIDTH / 2.0 + radius * 0.8487 * length * longitude.to_radians(),
        -radius * 1.3523 * distance * latitude.signum(),
    ]
}
