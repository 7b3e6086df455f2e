//! What of a handshake fits the server's first window, and when its flights leave: by arithmetic, for the cell in which
//! configurations differ most.

use std::cmp::Reverse;
use std::time::Duration;

use lastbyte_flights::Timeline;
use lastbyte_link::{Bytes, ETHERNET_HEADER, Side, counted};
use lastbyte_sizes::Message;
use maud::{Markup, PreEscaped, html};

use super::findings::Findings;
use super::overview::{breakable, grouped};
use crate::chart::text_width;
use crate::svg::Svg;
use crate::thresholds::DRAWN_RTT;
use lastbyte_explain::{Explanation, SERVER_MESSAGES, Step, check, explain, message_on_wire};
use lastbyte_results::number::milliseconds;
use lastbyte_results::{CellSummary, Summary};
use lastbyte_study::{Arm, ArmChain, Cell, TransportName};

/// Configurations that stand below each other, at most.
const ARMS: usize = 8;
/// Widths of drawings, in pixels: of a page and of a phone.
const WIDTHS: [(&str, f64); 2] = [("wide", 960.0), ("narrow", 328.0)];

/// How much wider bold text is.
const BOLD: f64 = 1.1;

/// Arms over one cell, explained; the first one is the baseline.
struct Explained {
    cell: Cell,
    arms: Vec<Explanation>,
    /// The one that differs most.
    worst: usize,
    /// How many bytes the handshakes have that do not fit the window beyond it, of all arms.
    beyond: Vec<usize>,
    /// How many arms there are, drawn or not.
    all: usize,
}

/// The section of the page; none where arithmetic knows nothing of what was measured.
pub(super) fn section(findings: &Findings) -> Option<Markup> {
    let explained = explained(findings)?;
    Some(html! {
        section.figure id="window" {
            h2 { (finding(&explained)) }
            p.lead {
                "A server may send " (counted(explained.cell.initcwnd as usize, "packet"))
                ", here " (grouped(window_bytes(&explained.cell))) " bytes, before it has to wait for the client."
            }
            @for (class, width) in WIDTHS {
                div class=(class) { (PreEscaped(budget(&explained, width))) }
            }
            p.caption {
                "The server's handshake with its records: ServerHello, certificates, signature, Finished. "
                "The line is the window; what is outlined beyond it leaves a round trip later. By arithmetic. "
                (explained.cell) "."
                @if explained.all > explained.arms.len() {
                    " Drawn are " (explained.arms.len()) " of " (explained.all) " configurations."
                }
            }
            div.ladders {
                @for (index, name) in [(0, "baseline"), (explained.worst, "compared")] {
                    @if let Some(arm) = explained.arms.get(index) {
                        div {
                            h3 class=(name) { (breakable(&arm.arm.name)) }
                            @for (class, width) in [("wide", 464.0), ("narrow", 328.0)] {
                                div class=(class) { (PreEscaped(ladder(&explained, arm, width))) }
                            }
                        }
                    }
                }
            }
            p.caption { "Packets by arithmetic: nothing is lost, and computing takes no time. Time goes down." }
        }
    })
}

/// Where a page looks closer at how connections go: the cell in which handshakes differ most, by places of measures and
/// cells; none where arithmetic knows nothing of what was measured.
pub fn closest(findings: &Findings) -> Option<(usize, usize)> {
    let explained = explained(findings)?;
    let measures = findings.summaries.iter().enumerate();
    measures
        .flat_map(|(measure, summary)| {
            let cells = summary.cells.iter().enumerate();
            cells.map(move |(cell, summary)| ((measure, cell), &summary.cell))
        })
        .find_map(|(place, cell)| (*cell == explained.cell).then_some(place))
}

/// The cell in which a handshake waits most often more than the baseline's, or less, of those that arithmetic knows. Of
/// several, one with a response, and nearest to what most users have.
fn explained(findings: &Findings) -> Option<Explained> {
    let mut best: Option<(Rank, Explained)> = None;
    for summary in &findings.summaries {
        for cell in candidates(summary) {
            let Some((flights, explained)) = explain_in(summary, cell) else {
                continue;
            };
            let rank = (flights, cell.work().requests > 0, Reverse(apart(cell)));
            if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                best = Some((rank, explained));
            }
        }
    }
    best.map(|(_, explained)| explained)
}

/// What makes one cell worth more than another: flights apart, whether there is a response, and how usual its round trip.
type Rank = (usize, bool, Reverse<Duration>);

/// How far a cell's round trip is from what most users have.
fn apart(cell: &Cell) -> Duration {
    cell.link.rtt().abs_diff(DRAWN_RTT)
}

/// One cell for each initial window: nothing else of a network decides how often a server waits.
fn candidates(summary: &Summary) -> Vec<&Cell> {
    let mut candidates: Vec<&Cell> = Vec::new();
    for CellSummary { cell, .. } in &summary.cells {
        // A browser's messages are no arithmetic.
        if check(cell).is_err() || cell.population.is_some() || cell.page.is_some() {
            continue;
        }
        let rank = |cell: &Cell| (cell.work().requests > 0, Reverse(apart(cell)));
        match candidates
            .iter_mut()
            .find(|known| known.initcwnd == cell.initcwnd)
        {
            Some(known) if rank(cell) > rank(known) => *known = cell,
            Some(_) => {}
            None => candidates.push(cell),
        }
    }
    candidates
}

/// How often the handshake that differs most waits more than the baseline's, or less, with all of them.
fn explain_in(summary: &Summary, cell: &Cell) -> Option<(usize, Explained)> {
    // What is drawn is a window of segments.
    let is_made =
        |arm: &&Arm| matches!(arm.chain, ArmChain::Made(_)) && arm.transport == TransportName::Tcp;
    let arms = summary.experiment.arms.iter().filter(is_made);
    let arms = arms.filter_map(|arm| explain(arm, std::slice::from_ref(cell)).ok());
    let mut arms: Vec<Explanation> = arms.collect();
    let mut times = arms.iter().flat_map(|arm| &arm.times);
    if times.any(|(_, times)| times.beyond(times.ttlb).is_some()) {
        return None;
    }
    let flights = |arm: &Explanation| arm.windows.first().map_or(0, |window| window.edges.flights);
    let (first, bytes) = (
        arms.first().map_or(0, flights),
        arms.first().map_or(0, server_bytes),
    );
    let apart = |arm: &Explanation| {
        (
            flights(arm).abs_diff(first),
            server_bytes(arm).abs_diff(bytes),
        )
    };
    let worst = (1..arms.len()).max_by_key(|index| arms.get(*index).map(apart))?;
    let (apart, _) = arms.get(worst).map(apart)?;
    // It is among those that there is room for.
    let worst = if worst < ARMS {
        worst
    } else {
        arms.swap(ARMS - 1, worst);
        ARMS - 1
    };
    let window = window_bytes(cell);
    let beyond = arms.iter().map(server_bytes);
    let beyond = beyond.filter_map(|bytes| bytes.checked_sub(window + 1));
    let beyond = beyond.map(|more| more + 1).collect();
    let all = arms.len();
    arms.truncate(ARMS);
    let cell = cell.clone();
    let explained = Explained {
        cell,
        arms,
        worst,
        beyond,
        all,
    };
    Some((apart, explained))
}

fn window_bytes(cell: &Cell) -> usize {
    cell.initcwnd as usize * cell.hosts.mss()
}

fn server_bytes(arm: &Explanation) -> usize {
    let messages = SERVER_MESSAGES.iter();
    messages
        .map(|message| message_on_wire(&arm.exchange, *message) as usize)
        .sum()
}

/// `ml-dsa-65 misses the window by 1,824 bytes`
fn finding(explained: &Explained) -> String {
    match &*explained.beyond {
        [] => "All handshakes fit the server's first window".to_owned(),
        [only] => {
            let window = window_bytes(&explained.cell);
            let mut arms = explained.arms.iter();
            let arm = arms.find(|arm| server_bytes(arm) > window);
            format!(
                "{} misses the window by {} bytes",
                arm.map_or("One", |arm| &arm.arm.name),
                grouped(*only)
            )
        }
        several if several.len() == explained.all => {
            "No handshake fits the server's first window".to_owned()
        }
        several => format!(
            "{} of {} miss the window, by {} bytes and more",
            several.len(),
            explained.all,
            grouped(several.iter().copied().min().unwrap_or_default())
        ),
    }
}

/// Pixels above bars, for the words of the window.
const BARS_TOP: f64 = 30.0;

/// A bar for each arm: its messages, against the window.
fn budget(explained: &Explained, width: f64) -> String {
    let is_wide = width > 500.0;
    // Where a name leaves no room beside it, what is left or too many stands below.
    let name = |arm: &Explanation| fitted(&arm.arm.name, width);
    let left = |arm: &Explanation| left(arm, window_bytes(&explained.cell));
    let collides = |arm: &Explanation| {
        let (words, _) = left(arm);
        !is_wide && text_width(&name(arm)) + text_width(&words) + 12.0 > width
    };
    let below = explained.arms.iter().any(collides);
    let row_height = if below { 62.0 } else { 44.0 };
    let window = window_bytes(&explained.cell);
    let most = explained
        .arms
        .iter()
        .map(server_bytes)
        .chain([window])
        .max();
    let right = if is_wide { 150.0 } else { 8.0 };
    let scale = (width - right) / most.unwrap_or(1).max(1) as f64;
    let height = BARS_TOP + row_height * explained.arms.len() as f64 + 6.0;
    let mut svg = Svg::new(width, height, &finding(explained));
    let edge = window as f64 * scale;
    svg.rect("inside", [0.0, BARS_TOP], [edge, height - BARS_TOP - 6.0]);
    for (index, arm) in explained.arms.iter().enumerate() {
        let top = BARS_TOP + row_height * index as f64;
        svg.text("name", 0.0, top + 13.0, &name(arm));
        let end = bar(&mut svg, arm, window, top + 18.0, scale);
        let (text, class) = left(arm);
        match is_wide {
            true => {
                let after = end + 8.0;
                // Not across the line of the window.
                let crosses = after < edge && after + text_width(&text) > edge - 4.0;
                let x = if crosses { edge + 8.0 } else { after };
                svg.text(class, x, top + 31.0, &text);
            }
            false if below => svg.text(class, 0.0, top + 51.0, &text),
            false => svg.text(&format!("{class} end"), width, top + 13.0, &text),
        }
    }
    if is_wide {
        svg.line("edge", [edge, BARS_TOP - 6.0], [edge, height - 6.0])
    } else {
        // What is too many or left stands there, too.
        for index in 0..explained.arms.len() {
            let top = BARS_TOP + row_height * index as f64;
            svg.line("edge", [edge, top + 16.0], [edge, top + 38.0]);
        }
    }
    label_window(&mut svg, &explained.cell, edge, width);
    svg.finish()
}

/// Draws the messages of an arm side by side, what is beyond the window outlined, and returns where
/// they end.
fn bar(svg: &mut Svg, arm: &Explanation, window: usize, top: f64, scale: f64) -> f64 {
    let (mut x, mut before) = (0.0, 0);
    for (nth, message) in SERVER_MESSAGES.iter().enumerate() {
        let bytes = message_on_wire(&arm.exchange, *message) as usize;
        let inside = window.saturating_sub(before).min(bytes) as f64 * scale;
        let whole = bytes as f64 * scale;
        if inside > 0.0 {
            svg.rect(
                &format!("message m{nth}"),
                [x, top],
                [(inside - 0.5).max(0.5), 18.0],
            );
        }
        if whole > inside {
            svg.rect("beyond", [x + inside, top], [whole - inside, 18.0]);
        }
        let label = format!(
            "{} {}",
            message.title(),
            grouped(arm.exchange.bytes(*message) as usize)
        );
        if *message == Message::Certificate
            && whole > 8.0 * label.len() as f64
            && inside > whole * 0.7
        {
            svg.text("on", x + 6.0, top + 13.0, &label);
        }
        x += whole;
        before += bytes;
    }
    x
}

/// Names the window on the side of its edge where there is room.
fn label_window(svg: &mut Svg, cell: &Cell, edge: f64, width: f64) {
    let label = format!(
        "{}: {} bytes",
        counted(cell.initcwnd as usize, "packet"),
        grouped(window_bytes(cell))
    );
    let needed = text_width(&label) * BOLD;
    let (class, x) = match (edge > width / 2.0, edge - 5.0 > needed) {
        (true, true) => ("name end", edge - 5.0),
        (true, false) => ("name", 0.0),
        (false, _) => ("name", (edge + 5.0).min((width - needed).max(0.0))),
    };
    svg.text(class, x, BARS_TOP - 12.0, &label);
}

/// What is left of the window behind a handshake, or does not fit it, and its class.
fn left(arm: &Explanation, window: usize) -> (String, &'static str) {
    let bytes = server_bytes(arm);
    match window.checked_sub(bytes) {
        Some(left) => (format!("{} bytes left", grouped(left)), "mut"),
        None => (
            format!("{} bytes too many", grouped(bytes - window)),
            "cost",
        ),
    }
}

/// A name, cut where it is wider than there is room.
fn fitted(name: &str, width: f64) -> String {
    if text_width(name) * BOLD <= width {
        return name.to_owned();
    }
    let mut kept = String::new();
    for char in name.chars() {
        if text_width(&format!("{kept}{char}…")) * BOLD > width {
            break;
        }
        kept.push(char);
    }
    kept + "…"
}

/// The flights of an arm, on the scale of all of them.
fn ladder(explained: &Explained, arm: &Explanation, width: f64) -> String {
    let Some((cell, timeline)) = arm.times.first() else {
        return String::new();
    };
    let drawn = [Some(0), Some(explained.worst)].into_iter().flatten();
    let last = drawn.filter_map(|index| Some(explained.arms.get(index)?.times.first()?.1.ttlb));
    let last = last.max().unwrap_or_default();
    let mut ladder = Ladder {
        svg: Svg::fragment(),
        cell,
        timeline,
        server: if width > 400.0 { 262.0 } else { 176.0 },
        scale: Ladder::DOWN / last.as_secs_f64().max(1e-9),
    };
    let steps = arm.steps(0);
    ladder.draw_sides();
    ladder.draw_connecting();
    let waits = ladder.draw_waiting(&steps);
    let labels = ladder.draw_flights(&steps);
    ladder.label_waits(&waits, &labels);
    let milestones = ladder.draw_milestones();
    let labels = labels.last().map_or(0.0, |last| last + Ladder::LABEL);
    let height = milestones
        .max(labels)
        .max(Ladder::TOP + Ladder::DOWN)
        .max(ladder.deepest(&steps) + 14.0)
        - 10.0;
    let mut picture = Svg::new(width, height, &format!("Flights of {}", arm.arm.name));
    picture.raw(&ladder.svg.body());
    picture.finish()
}

/// A drawing of flights: the client's side, the server's, and time going down.
struct Ladder<'a> {
    svg: Svg,
    cell: &'a Cell,
    timeline: &'a Timeline,
    /// The server's distance from the left, in pixels.
    server: f64,
    /// Pixels of a second.
    scale: f64,
}

/// The server's waiting for the client: where it begins and ends, and how long it takes, in words.
struct Wait {
    top: f64,
    bottom: f64,
    words: String,
}

impl Ladder<'_> {
    /// Pixels above the first packet.
    const TOP: f64 = 26.0;
    /// Pixels from the first packet to the last byte of the slower connection.
    const DOWN: f64 = 430.0;
    /// The client's distance from the left.
    const CLIENT: f64 = 92.0;
    /// The width of waiting, which is drawn beside the server.
    const STRIP: f64 = 8.0;
    /// The height of a flight's label, of two lines.
    const LABEL: f64 = 33.0;

    fn y(&self, time: Duration) -> f64 {
        Self::TOP + time.as_secs_f64() * self.scale
    }

    /// The left of words that stand beside the server.
    fn beside_server(&self) -> f64 {
        self.server + Self::STRIP + 8.0
    }

    fn is_handshake(&self, step: &Step) -> bool {
        step.flight.start < self.timeline.handshake
    }

    /// Where the last arrival is: what ends with its handshake has a last flight on its way.
    fn deepest(&self, steps: &[Step]) -> f64 {
        let arrivals = steps.iter();
        let arrivals = arrivals.map(|step| self.y(step.arrives + sending(self.cell, step)));
        arrivals.fold(0.0, f64::max)
    }

    fn draw_sides(&mut self) {
        let (top, bottom) = (Self::TOP, self.y(self.timeline.ttlb));
        let sides = [(Self::CLIENT, "client"), (self.server, "server")];
        for (side, name) in sides {
            self.svg.text("mut middle", side, top - 10.0, name);
        }
        for (side, _) in sides {
            self.svg
                .line("side", [side, top], [side, bottom.max(top + 1.0)]);
        }
    }

    /// Draws the SYN and the SYN-ACK.
    fn draw_connecting(&mut self) {
        let link = &self.cell.link;
        let (forward, backward) = (link.forward.delay, link.backward.delay);
        let [begins, there, back] =
            [Duration::ZERO, forward, forward + backward].map(|time| self.y(time));
        let (client, server) = (Self::CLIENT, self.server);
        self.svg
            .line("flight tcp", [client, begins], [server, there]);
        self.svg.line("flight tcp", [server, there], [client, back]);
    }

    /// Draws how the server waits between the flights of its handshake.
    fn draw_waiting(&mut self, steps: &[Step]) -> Vec<Wait> {
        let mut before: Option<Duration> = None;
        let mut waits = Vec::new();
        for step in steps {
            if step.flight.sender != Side::Server || !self.is_handshake(step) {
                continue;
            }
            if let Some(end) = before {
                let (top, bottom) = (self.y(end), self.y(step.flight.start));
                self.svg
                    .rect("waiting", [self.server, top], [Self::STRIP, bottom - top]);
                let time = milliseconds(step.flight.start.saturating_sub(end));
                waits.push(Wait {
                    top,
                    bottom,
                    words: format!("waits {time}"),
                });
            }
            before = Some(step.flight.start + sending(self.cell, step));
        }
        waits
    }

    /// Draws each flight with its label, and returns where labels stand.
    fn draw_flights(&mut self, steps: &[Step]) -> Vec<f64> {
        let mut labels: Vec<f64> = Vec::new();
        for (step, name) in steps.iter().zip(names(steps, self.timeline)) {
            self.draw_flight(step);
            let lowest = labels.last().map_or(0.0, |last| last + Self::LABEL);
            let text = f64::max(self.y(step.flight.start) + 4.0, lowest);
            let packets = counted(step.flight.segments as usize, "packet");
            let size = format!("{packets}, {} B", grouped(step.flight.bytes));
            let left = self.beside_server();
            self.svg.text("name", left, text, &name);
            self.svg.text("mut", left, text + 15.0, &size);
            labels.push(text);
        }
        labels
    }

    fn draw_flight(&mut self, step: &Step) {
        let class = if self.is_handshake(step) {
            "flight"
        } else {
            "flight response"
        };
        let (from, to) = match step.flight.sender {
            Side::Client => (Self::CLIENT, self.server),
            Side::Server => (self.server, Self::CLIENT),
        };
        let takes = sending(self.cell, step);
        let corners = [
            [from, self.y(step.flight.start)],
            [to, self.y(step.arrives)],
            [to, self.y(step.arrives + takes) + 1.5],
            [from, self.y(step.flight.start + takes) + 1.5],
        ];
        self.svg.area(class, corners.into_iter());
    }

    /// Labels waits where no label of a flight stands: those have two lines.
    fn label_waits(&mut self, waits: &[Wait], labels: &[f64]) {
        let is_free = |place: &f64| {
            labels
                .iter()
                .all(|text| *place < text - 14.0 || *place > text + 29.0)
        };
        for wait in waits {
            let places = (0..).map(|nth| wait.bottom - 6.0 - 4.0 * f64::from(nth));
            let place = places
                .take_while(|place| *place > wait.top + 10.0)
                .find(is_free);
            if let Some(place) = place {
                let left = self.beside_server();
                self.svg.text("cost", left, place, &wait.words);
            }
        }
    }

    /// Draws what the client reaches, and returns where the words of it end.
    fn draw_milestones(&mut self) -> f64 {
        let mut lowest = 0.0;
        for (name, at) in reached(self.cell, self.timeline) {
            let y = self.y(at);
            self.svg.ring("milestone", [Self::CLIENT, y], 3.5);
            let text = f64::max(y + 4.0, lowest);
            let right = Self::CLIENT - 9.0;
            self.svg.text("mut end", right, text, name);
            self.svg
                .text("name end", right, text + 15.0, &milliseconds(at));
            lowest = text + 31.0;
        }
        lowest
    }
}

/// How long a flight's packets take to leave.
fn sending(cell: &Cell, step: &Step) -> Duration {
    let rate = match step.flight.sender {
        Side::Client => cell.link.forward.rate,
        Side::Server => cell.link.backward.rate,
    };
    let headers = cell.hosts.headers() + ETHERNET_HEADER;
    let bytes = step.flight.bytes + headers * step.flight.segments as usize;
    rate.map_or(Duration::ZERO, |rate| rate.serialisation(bytes))
}

/// What each flight is, in a word or two. The server's handshake may be several of them.
fn names(steps: &[Step], timeline: &Timeline) -> Vec<String> {
    let is_servers =
        |step: &&Step| step.flight.sender == Side::Server && step.flight.start < timeline.handshake;
    let all = steps.iter().filter(is_servers).count();
    let mut nth = 0;
    let mut of_server = || {
        nth += 1;
        match nth {
            1 if all == 1 => "whole handshake",
            1 => "handshake begins",
            nth if nth == all => "handshake ends",
            _ => "more of it",
        }
    };
    let mut name = |step: &Step| match is_servers(&step) {
        true => of_server().to_owned(),
        false if step.what.starts_with("more of") => "more of it".to_owned(),
        false => step.what.clone(),
    };
    steps.iter().map(&mut name).collect()
}

fn reached(cell: &Cell, timeline: &Timeline) -> Vec<(&'static str, Duration)> {
    let connected = timeline.connect.map(|time| ("connected", time));
    let mut reached: Vec<_> = connected.into_iter().collect();
    reached.push(("handshake", timeline.handshake));
    if cell.data > Bytes(0) {
        reached.extend(timeline.ttfb.map(|time| ("first byte", time)));
        reached.push(("last byte", timeline.ttlb));
    }
    reached.sort_by_key(|(_, time)| *time);
    reached
}
