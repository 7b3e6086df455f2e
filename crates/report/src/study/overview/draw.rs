//! The table of answers, as HTML.

use maud::{Markup, html};

use super::{Column, Cost, Increase, Overview, Perception, Row};
use crate::answer::Reason;
use crate::escape;
use crate::text;
pub(in super::super) use crate::text::{digits, grouped};
use crate::thresholds::{NOTHING_MS, WORTH_MS, WORTH_PART_OF_COST};
use lastbyte_results::{Contents, Metric, group_by};
use lastbyte_study::Leads;

/// A space at which no line ends.
const SPACE: char = '\u{a0}';
/// What the only network is called, if it has no name.
pub(in super::super) const ONE_NETWORK: &str = "The network";

/// Configurations that stand beside each other, at most.
const ACROSS: usize = 6;
/// Lines that are told at once, and how many of more.
const DOWN: usize = 40;
const SHOWN: usize = 12;

/// A configuration on a network.
#[derive(Clone)]
struct Line<'a> {
    row: &'a Row,
    arm: &'a str,
    /// What it is compared with.
    than: &'a str,
    /// Of each column.
    costs: Vec<Option<&'a Cost>>,
}

impl Line<'_> {
    /// The most that it costs, in milliseconds; of what gains, the least that it gains.
    fn most(&self) -> f64 {
        let costs = self.costs.iter().flatten();
        let known = costs.filter_map(|cost| match cost {
            Cost::Increase(known) => Some(known.most),
            Cost::Unknown(_) => None,
        });
        known.fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Overview {
    /// Networks down and configurations across; many configurations stand below each other.
    pub(in super::super) fn html(&self) -> Markup {
        if self.arms.len() > ACROSS {
            self.down()
        } else {
            self.across()
        }
    }

    /// The same as Markdown: a line for each configuration on each network.
    pub(in super::super) fn markdown(&self) -> String {
        let titles = ["Network".to_owned(), "Configuration".to_owned()];
        let titles = titles
            .into_iter()
            .chain(self.columns.iter().map(|column| column.title()));
        let titles: Vec<String> = titles.map(|title| escape::markdown(&title)).collect();
        let rule = "| --- ".repeat(2) + &"| ---: ".repeat(self.columns.len());
        let mut out = format!("| {} |\n{rule}|\n", titles.join(" | "));
        for line in self.lines() {
            let name = match &*line.row.name {
                "" => ONE_NETWORK,
                name => name,
            };
            let costs = line.costs.iter().map(|cost| match cost {
                Some(cost) => cost.class_and_text().1.replace(SPACE, " "),
                None => "–".to_owned(),
            });
            let words = [name.to_owned(), line.arm.to_owned()]
                .into_iter()
                .chain(costs);
            let words: Vec<String> = words.map(|word| escape::markdown(&word)).collect();
            out += &format!("| {} |\n", words.join(" | "));
        }
        format!("{out}\n{}\n", escape::markdown(&self.caption()))
    }

    fn down(&self) -> Markup {
        let lines = self.lines();
        if lines.len() <= DOWN {
            return self.list(&lines, &self.caption());
        }
        html! {
            (self.first(&lines))
            details {
                summary { "All " (lines.len()) }
                (self.list(&lines, ""))
            }
        }
    }

    /// Of more lines than people read, those that the study's own answer is about; without one, those that stand out.
    fn first(&self, lines: &[Line<'_>]) -> Markup {
        let which = match self.leads {
            Leads::Later => "cost most",
            Leads::Sooner => "gain most wherever they are, and in all that is measured of them",
        };
        let asked = self.asked.as_deref().map(|asked| (asked, asked.lines()));
        if let Some((asked, own)) = asked.filter(|(_, own)| own.len() <= DOWN) {
            let caption = format!("What the answer is about. {}", asked.caption());
            return asked.list(&self.sorted(&own), &caption);
        }
        let mut shown = self.sorted(lines);
        shown.truncate(SHOWN);
        let caption = format!("The {SHOWN} that {which}. {}", self.caption());
        self.list(&shown, &caption)
    }

    fn sorted<'a>(&self, lines: &[Line<'a>]) -> Vec<Line<'a>> {
        let mut sorted = lines.to_vec();
        sorted.sort_by(|one, other| match self.leads {
            Leads::Later => other.most().total_cmp(&one.most()),
            Leads::Sooner => one.most().total_cmp(&other.most()),
        });
        sorted
    }

    /// A line for each configuration on each network where it was measured.
    fn lines(&self) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        for row in &self.rows {
            for (index, arm) in self.arms.iter().enumerate() {
                let costs = row.costs.iter().map(|costs| costs.get(index)?.as_ref());
                let costs: Vec<Option<&Cost>> = costs.collect();
                if costs.iter().any(Option::is_some) {
                    let than = row.than.get(index).map_or("", String::as_str);
                    lines.push(Line {
                        row,
                        arm,
                        than,
                        costs,
                    });
                }
            }
        }
        lines
    }

    /// Those of a network that are compared with the same stand together, as the first of them.
    fn list(&self, lines: &[Line<'_>], caption: &str) -> Markup {
        let groups = group_by(lines, |line| (std::ptr::from_ref(line.row), line.than));
        html! {
            table.answers.list style="--arms:1" {
                caption { (caption) }
                thead {
                    tr {
                        th scope="col" { "Configuration" }
                        @for column in &self.columns { th scope="col" { (column.title()) } }
                    }
                }
                tbody {
                    @for (_, lines) in groups {
                        @if let Some(first) = lines.first() {
                            tr.network {
                                th scope="rowgroup" colspan=(1 + self.columns.len()) {
                                    (row_head(first.row))
                                    @if self.baselines.len() > 1 { small { "than " (first.than) } }
                                }
                            }
                        }
                        @for line in lines {
                            tr {
                                th scope="row" { (breakable(line.arm)) }
                                @for (column, cost) in self.columns.iter().zip(&line.costs) {
                                    (cell(column.short(), *cost))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn across(&self) -> Markup {
        html! {
            table.answers style=(format!("--arms:{}", self.arms.len())) {
                caption { (self.caption()) }
                thead {
                    tr {
                        td {}
                        @for column in &self.columns {
                            th.metric scope="colgroup" colspan=(self.arms.len()) { (column.title()) }
                        }
                    }
                    tr {
                        th scope="col" { "Network" }
                        @for _ in &self.columns {
                            @for arm in &self.arms { th scope="col" { (breakable(arm)) } }
                        }
                    }
                }
                tbody {
                    @for row in &self.rows {
                        tr {
                            th scope="row" { (row_head(row)) }
                            @for (column, costs) in self.columns.iter().zip(&row.costs) {
                                @for (arm, cost) in self.arms.iter().zip(costs) {
                                    (cell(&format!("{}: {arm}", column.short()), cost.as_ref()))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn caption(&self) -> String {
        /// More are not listed: each measure has its own.
        const MOST: usize = 3;
        let baselines = if self.baselines.len() > MOST {
            "what each is compared with".to_owned()
        } else {
            self.baselines.join(" or ")
        };
        let least = if self.rows.iter().any(|row| row.networks > 1) {
            " Where a row is several networks, the least and the most of them."
        } else {
            ""
        };
        let contents = match self.contents {
            Some(Contents::Network) => " The network alone: computing took no time.",
            Some(Contents::Profile) => {
                " With what browsers and servers compute, by a profile that is the same on every machine."
            }
            Some(Contents::Shares | Contents::Calibrated) => {
                " Computing on the machine that measured is part of every number."
            }
            Some(Contents::RealTime) => {
                " In real time, with all that the machine computed meanwhile."
            }
            None => "",
        };
        format!(
            "Added to {baselines}, at {}. Less than a fifth of a round trip is grey.{least}{contents}",
            match self.percentile {
                lastbyte_results::Percentile::MEDIAN => "the median".to_owned(),
                other => other.to_string(),
            }
        )
    }
}

impl Column {
    fn short(self) -> &'static str {
        match self.metric {
            Metric::Ttfb => "First byte",
            Metric::Ttlb => "Last byte",
            Metric::Load => "Load",
            _ => "Handshake",
        }
    }

    pub(in super::super) fn title(self) -> String {
        match (self.metric, self.data) {
            (Metric::Handshake, _) => "Handshake".to_owned(),
            (_, Some(size)) => format!("Last byte of {}", spaced(&size.to_string())),
            (metric, None) => {
                let name = text::metric(metric);
                name[..1].to_uppercase() + &name[1..]
            }
        }
    }
}

/// `50 KiB` for `50KiB`.
pub(super) fn spaced(size: &str) -> String {
    match size.find(|c: char| !c.is_ascii_digit() && c != '.') {
        Some(unit) if unit > 0 => format!("{}{SPACE}{}", &size[..unit], &size[unit..]),
        _ => size.to_owned(),
    }
}

fn row_head(row: &Row) -> Markup {
    html! {
        @if row.name.is_empty() { (ONE_NETWORK) } @else { (row.name) }
        @if !row.note.is_empty() { small { (row.note) } }
        @if row.networks > 1 { small { (row.networks) " networks" } }
    }
}

/// A label that may be broken where its parts end.
pub(in super::super) fn breakable(label: &str) -> Markup {
    let parts: Vec<&str> = label.split_inclusive(['/', '=', ',']).collect();
    html! {
        @for (index, part) in parts.iter().enumerate() {
            @if index > 0 { wbr; }
            (part)
        }
    }
}

/// `of` says what it is where there is no room for the table's head.
fn cell(of: &str, cost: Option<&Cost>) -> Markup {
    html! {
        @match cost {
            None => td.absent data-of=(of) { "–" },
            Some(Cost::Unknown(why)) => td.unknown data-of=(of) { (why) },
            Some(Cost::Increase(known)) => {
                td class=(known.perception().class()) data-of=(of) {
                    b { (known.time()) }
                    @if let Some(because) = known.because() { small { (because) } }
                }
            }
        }
    }
}

impl Cost {
    /// Its class, and what is told of it.
    pub(in super::super) fn class_and_text(&self) -> (&'static str, String) {
        match self {
            Cost::Unknown(why) => ("unknown", (*why).to_owned()),
            Cost::Increase(known) => (known.perception().class(), known.time()),
        }
    }
}

impl Perception {
    pub(super) fn class(self) -> &'static str {
        match self {
            Perception::Sooner => "sooner",
            Perception::Same => "same",
            Perception::Part => "part",
            Perception::Later => "later",
        }
    }
}

impl Increase {
    /// `+36 ms`, `+1.2 to +36 ms`, `no difference`.
    pub(super) fn time(&self) -> String {
        if !self.is_shown && self.least.abs().max(self.most.abs()) >= NOTHING_MS {
            return "no difference".to_owned();
        }
        match (signed(self.least), signed(self.most)) {
            (least, most) if least == most => format!("{most}{SPACE}ms"),
            (least, most) => format!("{least} to{SPACE}{most}{SPACE}ms"),
        }
    }

    /// What that comes of, where it is known.
    pub(super) fn because(&self) -> Option<String> {
        if !self.is_shown {
            let [low, high] = self.interval?;
            let width = Some(high.max(-low)).filter(|width| *width >= NOTHING_MS)?;
            return Some(format!("within {}{SPACE}ms", digits(width)));
        }
        let most = self.least.abs().max(self.most.abs());
        let told = |what: &str, [low, high]: [f64; 2]| {
            let is_worth = low.abs().max(high.abs()) >= (WORTH_PART_OF_COST * most).max(WORTH_MS);
            is_worth.then(|| match (signed(low), signed(high)) {
                (low, high) if low == high => format!("{high}{SPACE}ms {what}"),
                (low, high) => format!("{low} to{SPACE}{high}{SPACE}ms {what}"),
            })
        };
        let rest = self.rest.iter().filter_map(|(reason, times)| {
            let what = match reason {
                Reason::Bytes => "bytes",
                Reason::Waiting => "waiting",
                Reason::Unknown => "besides",
            };
            told(what, *times)
        });
        let computing = self.computing.and_then(|times| told("computing", times));
        let trips = match self.counted {
            Some(1) => Some(format!("+1{SPACE}round trip")),
            Some(-1) => Some(format!("\u{2212}1{SPACE}round trip")),
            Some(count @ 2..) => Some(format!("+{count}{SPACE}round trips")),
            Some(count @ ..=-2) => Some(format!("\u{2212}{}{SPACE}round trips", count.abs())),
            Some(0) | None => None,
        };
        let parts: Vec<String> = trips.into_iter().chain(rest).chain(computing).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// With its sign: `+36`, `+1.2`, `+0`, `−590`.
pub(super) fn signed(ms: f64) -> String {
    let digits = digits(ms.abs());
    let sign = if ms < 0.0 && digits != "0" {
        '\u{2212}'
    } else {
        '+'
    };
    format!("{sign}{digits}")
}
