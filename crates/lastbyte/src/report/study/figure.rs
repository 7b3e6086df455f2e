//! From what a study says of a figure to a chart.

use std::time::Duration;

use super::findings::Findings;
use crate::report::chart::{
    Bar, Bars, Cdf, Chart, Curve, Ink, KeyEntry, Line, Lines, Mark, Panel, Point, Stroke,
};
use crate::report::text;
use crate::results::{Estimate, Group, Metric, Percentile, gather, groups};
use lastbyte_sizes::Message;

use crate::study::{Beside, Cell, Figure, Filter, Parameter, Plot, Quantity, Question, varying};

/// A figure, drawn.
pub(super) struct Drawn<'a> {
    pub(super) figure: &'a Figure,
    pub(super) chart: Chart,
    /// What all that is drawn has in common.
    pub(super) common: String,
    /// Connections of each sample: the fewest and the most.
    pub(super) connections: Option<(usize, usize)>,
    /// Samples that are not there, in words.
    pub(super) holes: Vec<String>,
    /// The cells that are drawn.
    pub(super) cells: Vec<(usize, usize)>,
    /// The arms that are drawn, and what they are compared with.
    pub(super) arms: Vec<String>,
}

/// The panels of a figure, which share arms, percentiles and names of series.
struct Plan<'a> {
    findings: &'a Findings,
    figure: &'a Figure,
    groups: Vec<Group>,
    arms: Vec<String>,
    percentiles: &'a [Percentile],
    /// What tells panels apart.
    facets: Vec<Parameter>,
    /// What tells series apart besides arms and percentiles.
    others: Vec<Parameter>,
}

/// A series of a panel: an arm where the cells have some values of what is neither axis nor facet.
#[derive(Clone, PartialEq)]
struct Series {
    arm: String,
    others: String,
}

/// Bars that stand together, and their name.
type BarGroup = (String, Vec<Bar>);

/// Quantiles that a distribution function is drawn through.
const QUANTILES: usize = 200;

pub(super) fn draw<'a>(findings: &'a Findings, figure: &'a Figure) -> Drawn<'a> {
    let cells = findings.study.cells_named(&figure.measures, &figure.cells);
    let cells: Vec<_> = cells.map(|(cell, _)| cell).collect();
    let plan = Plan::new(findings, figure, &cells);
    let (panels, key) = match figure.plot {
        Plot::Table => (Vec::new(), Vec::new()),
        Plot::Cdf => plan.distributions(),
        Plot::Increase if figure.x.is_some() => plan.lines(),
        Plot::Increase | Plot::Percentiles => plan.bars(),
    };
    let (connections, holes) = plan.samples(&cells);
    Drawn {
        figure,
        chart: Chart {
            title: plan.title(),
            panels,
            key,
        },
        common: common(findings, &cells),
        connections,
        holes,
        arms: plan.all_arms(),
        cells,
    }
}

impl<'a> Plan<'a> {
    fn new(findings: &'a Findings, figure: &'a Figure, cells: &[(usize, usize)]) -> Plan<'a> {
        let groups = groups(&findings.study, cells.to_vec(), &figure.pool);
        let known: Vec<&Cell> = groups
            .iter()
            .filter_map(|group| findings.cell(*group.cells.first()?))
            .collect();
        let drawn = |parameter: &Parameter| {
            Some(*parameter) == figure.x
                || figure.facets.contains(parameter)
                || figure.pool.contains(parameter)
        };
        let mut others = varying(&known);
        others.retain(|parameter| !drawn(parameter));
        // What a panel's other values tell belongs to the panel: a link's rate, where its RTT says it.
        let mut facets = figure.facets.clone();
        let told: Vec<Parameter> = figure.x.into_iter().chain(facets.clone()).collect();
        others.retain(|parameter| {
            let by_facets = is_told(*parameter, &figure.facets, &known);
            if by_facets {
                facets.push(*parameter);
            }
            !by_facets && !is_told(*parameter, &told, &known)
        });
        let study = &findings.study;
        let mut arms: Vec<String> = Vec::new();
        for (_, measure) in study.measures_named(&figure.measures) {
            for arm in &measure.experiment.arms {
                let wanted = figure.arms.is_empty() || figure.arms.contains(&arm.name);
                if wanted && !arms.contains(&arm.name) {
                    arms.push(arm.name.clone());
                }
            }
        }
        let baseline = |name: &String| {
            study.measures_named(&figure.measures).all(|(_, measure)| {
                (measure.experiment.arms.first()).is_some_and(|first| first.name == *name)
            })
        };
        if figure.plot == Plot::Increase {
            arms.retain(|arm| !baseline(arm));
        }
        Plan {
            findings,
            figure,
            groups,
            arms,
            percentiles: findings.percentiles_of(figure),
            facets,
            others,
        }
    }

    fn title(&self) -> String {
        if let Some(title) = &self.figure.title {
            return title.clone();
        }
        let metric = text::metric(self.figure.metric);
        let time = match self.figure.metric {
            Metric::Connect | Metric::Handshake | Metric::TlsHandshake => {
                format!("Time of the {metric}")
            }
            Metric::Ttfb | Metric::Ttlb | Metric::DnsRecord => format!("Time to the {metric}"),
        };
        let what = match self.figure.plot {
            Plot::Increase => format!("Increase of the {metric}"),
            Plot::Percentiles | Plot::Table => time,
            Plot::Cdf => format!("Distribution of the {metric}"),
        };
        let by = |parameter: Parameter| {
            let title = parameter.title();
            title.split(',').next().unwrap_or(title).to_owned()
        };
        match self.figure.x {
            Some(x) => format!("{what} by {}", by(x)),
            None => what,
        }
    }

    fn first_cell(&self, group: &Group) -> Option<&'a Cell> {
        self.findings.cell(*group.cells.first()?)
    }

    /// `RTT 35ms, loss 1%`
    fn words(&self, group: &Group, parameters: &[Parameter]) -> String {
        let cell = self.first_cell(group);
        let words = cell.into_iter().flat_map(|cell| {
            let parameters = parameters.iter();
            parameters.map(|parameter| parameter.told(cell))
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The groups of each panel. Panels are in the order of the first facet's values, then the next one's.
    fn facets(&self) -> Vec<(String, Vec<&Group>)> {
        let places = |group: &Group| -> Vec<usize> {
            let cell = self.first_cell(group);
            let facets = self.facets.iter();
            facets
                .map(|facet| {
                    let value = cell.map(|cell| facet.of(cell));
                    let mut cells = self
                        .groups
                        .iter()
                        .filter_map(|group| self.first_cell(group));
                    cells
                        .position(|cell| Some(facet.of(cell)) == value)
                        .unwrap_or_default()
                })
                .collect()
        };
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by_key(|group| places(group));
        gather(groups, |group| self.words(group, &self.facets))
    }

    /// All series of the figure, so that they look the same in every panel.
    fn series(&self) -> Vec<Series> {
        let mut series = Vec::new();
        for (others, _) in gather(&self.groups, |group| self.words(group, &self.others)) {
            for arm in &self.arms {
                series.push(Series {
                    arm: arm.clone(),
                    others: others.clone(),
                });
            }
        }
        series
    }

    fn name(&self, series: &Series) -> String {
        match (&*series.others, self.arms.len()) {
            ("", _) => series.arm.clone(),
            (others, 1) => others.to_owned(),
            (others, _) => format!("{}, {others}", series.arm),
        }
    }

    /// Of the cells of a panel, those of a series at a place on the axis.
    fn at<'g>(&self, groups: &[&'g Group], series: &Series, x: &str) -> Option<&'g Group> {
        groups.iter().copied().find(|group| {
            let here = self.figure.x.zip(self.first_cell(group));
            let here = here.is_none_or(|(x_parameter, cell)| x_parameter.of(cell) == x);
            here && self.words(group, &self.others) == series.others
        })
    }

    /// What stands along the horizontal axis, over all panels.
    fn axis(&self) -> Vec<(String, Option<f64>)> {
        let Some(x) = self.figure.x else {
            return Vec::new();
        };
        let groups = self.groups.iter();
        let cells: Vec<&Cell> = groups.filter_map(|group| self.first_cell(group)).collect();
        let of = |text: String| {
            let cell = cells.iter().find(|cell| x.of(cell) == text);
            let number = cell.and_then(|cell| x.number(cell));
            (text, number)
        };
        let mut axis: Vec<_> = x.values(&cells).into_iter().map(of).collect();
        axis.sort_by(|(_, one), (_, other)| {
            let [one, other] = [one, other].map(|number| number.unwrap_or_default());
            one.total_cmp(&other)
        });
        axis
    }

    fn question(&self, arm: &str, quantity: Quantity) -> Question {
        Question {
            measures: self.figure.measures.clone(),
            cells: Filter::default(),
            arm: arm.to_owned(),
            metric: self.figure.metric,
            percentiles: self.percentiles.to_vec(),
            pool: self.figure.pool.clone(),
            quantity,
        }
    }

    fn quantity(&self) -> Quantity {
        match self.figure.plot {
            Plot::Increase => Quantity::Increase,
            Plot::Percentiles | Plot::Cdf | Plot::Table => Quantity::Time,
        }
    }

    /// One for each percentile; a hole where there is none.
    fn points(&self, group: Option<&Group>, arm: &str) -> Vec<Option<Point>> {
        let question = self.question(arm, self.quantity());
        let numbers = group.and_then(|group| self.findings.numbers(group, &question).ok());
        let numbers = numbers.unwrap_or_else(|| vec![None; self.percentiles.len()]);
        numbers
            .into_iter()
            .map(|number| number.map(point))
            .collect()
    }

    fn y_title(&self) -> &'static str {
        match self.quantity() {
            Quantity::Increase => "increase, %",
            _ => "ms",
        }
    }

    fn marks(&self) -> Vec<Mark> {
        let mark = |at, name: &str| Mark {
            at,
            name: name.to_owned(),
        };
        match (self.quantity(), self.figure.metric) {
            (Quantity::Increase, _) => vec![mark(2.0, "2 %")],
            (_, Metric::Ttfb) => vec![
                mark(800.0, "good TTFB: 800 ms"),
                mark(1800.0, "poor: 1.8 s"),
            ],
            _ => Vec::new(),
        }
    }

    /// What the largest panel reaches, for all panels, unless that would make others flat.
    fn reach(&self, panels: &[Vec<f64>]) -> Vec<f64> {
        const FLAT: f64 = 4.0;
        let most = |values: &Vec<f64>| values.iter().copied().map(f64::abs).fold(0.0, f64::max);
        let mosts: Vec<f64> = panels.iter().map(most).filter(|most| *most > 0.0).collect();
        let least = mosts.iter().copied().fold(f64::INFINITY, f64::min);
        let most = mosts.iter().copied().fold(0.0, f64::max);
        if mosts.is_empty() || most / least > FLAT {
            return Vec::new();
        }
        panels.iter().flatten().copied().collect()
    }

    fn lines(&self) -> (Vec<Panel>, Vec<KeyEntry>) {
        let axis = self.axis();
        let series = self.series();
        let many = self.percentiles.len();
        let ink = |index: usize, nth: usize| match (series.len(), many) {
            (1, _) => Ink::new(nth, Stroke::nth(nth)),
            _ => Ink::new(index, Stroke::nth(nth)),
        };
        let name = |one: &Series, percentile: &Percentile| match (series.len(), many) {
            (1, _) => percentile.to_string(),
            (_, 1) => self.name(one),
            _ => format!("{} {percentile}", self.name(one)),
        };
        let mut key = Vec::new();
        for (index, one) in series.iter().enumerate() {
            for (nth, percentile) in self.percentiles.iter().enumerate() {
                key.push(KeyEntry {
                    name: name(one, percentile),
                    ink: ink(index, nth),
                });
            }
        }
        let facets = self.facets();
        let drawn: Vec<_> = (facets.iter())
            .map(|(title, groups)| {
                let mut lines = Vec::new();
                for (index, one) in series.iter().enumerate() {
                    let at = |(x, _): &(String, _)| self.points(self.at(groups, one, x), &one.arm);
                    let points: Vec<_> = axis.iter().map(at).collect();
                    for (nth, percentile) in self.percentiles.iter().enumerate() {
                        let points = points
                            .iter()
                            .map(|points| points.get(nth).copied().flatten());
                        lines.push(Line {
                            ink: ink(index, nth),
                            label: match many {
                                1 => String::new(),
                                _ => percentile.to_string(),
                            },
                            points: points.collect(),
                        });
                    }
                    lines.extend(self.beside(groups, one, &axis));
                }
                lines.retain(|line| line.points.iter().any(Option::is_some));
                (title.clone(), lines)
            })
            .collect();
        for (nth, (beside, _)) in self.besides().iter().enumerate() {
            key.push(KeyEntry {
                name: (*beside).to_owned(),
                ink: beside_ink(nth),
            });
        }
        let values: Vec<_> = drawn.iter().map(|(_, lines)| values(lines)).collect();
        let reach = self.reach(&values);
        let shown: Vec<_> = (axis.iter())
            .map(|(text, number)| (number.map_or_else(|| text.clone(), short), *number))
            .collect();
        let panels = drawn.into_iter().map(|(title, lines)| {
            Lines {
                title,
                x_title: self.figure.x.map_or("", Parameter::title),
                y_title: self.y_title(),
                x: shown.clone(),
                lines,
                marks: self.marks(),
                reach: reach.clone(),
            }
            .panel()
        });
        (panels.collect(), key)
    }

    /// What is drawn beside the measurement: its name, and what it is.
    fn besides(&self) -> Vec<(&'static str, Model)> {
        let rule = match self.figure.metric {
            Metric::Handshake | Metric::TlsHandshake | Metric::DnsRecord => {
                ("H = x / 2 RTT", Model::Rule { share: 1.0 })
            }
            Metric::Ttfb => ("0.66 H", Model::Rule { share: 2.0 / 3.0 }),
            Metric::Connect | Metric::Ttlb => ("0.40 H", Model::Rule { share: 0.4 }),
        };
        let mut besides = Vec::new();
        for beside in &self.figure.beside {
            match beside {
                Beside::Arithmetic => besides.push(("flight arithmetic", Model::Arithmetic)),
                Beside::RulesOfThumb => {
                    besides.push(rule);
                    if self.figure.metric == Metric::Ttlb {
                        besides.push(("H less y/(y+2)", Model::LongerRule));
                    }
                }
            }
        }
        besides
    }

    fn beside(&self, groups: &[&Group], one: &Series, axis: &[(String, Option<f64>)]) -> Vec<Line> {
        let value = |x: &str, curve| {
            let group = self.at(groups, one, x)?;
            let [cell] = *group.cells else { return None };
            let value = self.besides_value(cell, &one.arm, curve)?;
            Some(Point {
                value,
                interval: None,
            })
        };
        let besides = self.besides();
        let line = |(nth, (_, curve)): (usize, &(_, Model))| Line {
            ink: beside_ink(nth),
            label: String::new(),
            points: axis.iter().map(|(x, _)| value(x, *curve)).collect(),
        };
        besides.iter().enumerate().map(line).collect()
    }

    /// An increase in percent that was not measured.
    fn besides_value(&self, place: (usize, usize), arm: &str, curve: Model) -> Option<f64> {
        let findings = self.findings;
        let cell = findings.cell(place)?;
        let experiment = &findings.study.measures.get(place.0)?.experiment;
        let arm = experiment.arms.iter().position(|known| known.name == arm)?;
        let metric = self.figure.metric;
        let round_trip = cell.link.rtt().as_secs_f64();
        let handshake = || {
            let summary = findings.cell_summary(place)?;
            let bytes = |arm: usize| {
                let wire = summary.arms.get(arm)?.wire?;
                Some(wire.bytes(Message::ClientHello).median + wire.server_wire_bytes.median)
            };
            let more = f64::from(bytes(arm)?) - f64::from(bytes(0)?);
            let rate = cell.link.backward.rate?.bits_per_second() as f64;
            Some(100.0 * more * 8.0 / rate / (2.0 * round_trip))
        };
        match curve {
            Model::Arithmetic => {
                let time = |arm| findings.computed(place, arm, metric);
                let [own, baseline] =
                    [time(arm)?, time(0)?].map(|time: Duration| time.as_secs_f64());
                Some(100.0 * (own - baseline) / baseline)
            }
            Model::Rule { share } => Some(handshake()? * share),
            Model::LongerRule => {
                let time = |metric| findings.computed(place, 0, metric);
                let data = time(Metric::Ttlb)?.checked_sub(time(Metric::Handshake)?)?;
                let y = data.as_secs_f64() / round_trip;
                Some(handshake()? * 2.0 / (y + 2.0))
            }
        }
    }

    /// Bars along the axis, each of all percentiles; without an axis, a group of bars for each percentile.
    fn bars(&self) -> (Vec<Panel>, Vec<KeyEntry>) {
        let series = self.series();
        let bar = |index: usize, parts| Bar {
            ink: Ink::new(index, Stroke::Solid),
            parts,
        };
        // Of each series.
        let points = |groups: &[&Group], x: &str| -> Vec<Vec<Option<Point>>> {
            let of = |one: &Series| self.points(self.at(groups, one, x), &one.arm);
            series.iter().map(of).collect()
        };
        let along = |groups: &[&Group]| -> Vec<BarGroup> {
            let axis = self.axis().into_iter().map(|(x, number)| {
                let points = points(groups, &x).into_iter().enumerate();
                let bars = points.map(|(index, parts)| bar(index, parts)).collect();
                (number.map_or(x, short), bars)
            });
            axis.collect()
        };
        let by_percentile = |groups: &[&Group]| -> Vec<BarGroup> {
            let points = points(groups, "");
            let percentiles = self
                .percentiles
                .iter()
                .enumerate()
                .map(|(nth, percentile)| {
                    let part = |points: &Vec<Option<Point>>| points.get(nth).copied().flatten();
                    let bars = points.iter().enumerate();
                    let bars = bars.map(|(index, points)| bar(index, vec![part(points)]));
                    (percentile.to_string(), bars.collect())
                });
            percentiles.collect()
        };
        let panels = (self.facets().into_iter())
            .map(|(title, groups)| match self.figure.x {
                Some(_) => (title, along(&groups)),
                None => (title, by_percentile(&groups)),
            })
            .collect();
        (self.bar_panels(panels), self.bar_key(&series))
    }

    fn bar_panels(&self, panels: Vec<(String, Vec<BarGroup>)>) -> Vec<Panel> {
        let values: Vec<Vec<f64>> = panels
            .iter()
            .map(|(_, groups)| {
                let bars = groups.iter().flat_map(|(_, bars)| bars);
                let parts = bars.flat_map(|bar| bar.parts.iter().flatten());
                parts.map(|part| part.value).collect()
            })
            .collect();
        let reach = self.reach(&values);
        let panel = |(title, groups)| {
            Bars {
                title,
                x_title: self.figure.x.map_or("", Parameter::title),
                y_title: self.y_title(),
                groups,
                marks: self.marks(),
                reach: reach.clone(),
            }
            .panel()
        };
        panels.into_iter().map(panel).collect()
    }

    fn bar_key(&self, series: &[Series]) -> Vec<KeyEntry> {
        let entry = |(index, one): (usize, &Series)| KeyEntry {
            name: self.name(one),
            ink: Ink::new(index, Stroke::Solid),
        };
        series.iter().enumerate().map(entry).collect()
    }

    fn distributions(&self) -> (Vec<Panel>, Vec<KeyEntry>) {
        let series = self.series();
        let ink = |index: usize| Ink::new(index, Stroke::nth(index / 3));
        let curves = |groups: &[&Group]| -> Vec<Curve> {
            let curves = series.iter().enumerate().filter_map(|(index, one)| {
                let group = self.at(groups, one, "")?;
                let times = &self.findings.times;
                let metric = self.figure.metric;
                let times = times.series(&self.findings.study, group, &one.arm, metric);
                let quantiles = times.ok()?.quantiles(QUANTILES);
                let milliseconds =
                    |(time, share): (Duration, f64)| (time.as_secs_f64() * 1e3, share);
                Some(Curve {
                    ink: ink(index),
                    quantiles: quantiles.into_iter().map(milliseconds).collect(),
                })
            });
            curves.collect()
        };
        let facets: Vec<_> = (self.facets().into_iter())
            .map(|(title, groups)| (title, curves(&groups)))
            .collect();
        let values: Vec<Vec<f64>> = (facets.iter())
            .map(|(_, curves)| {
                let quantiles = curves.iter().flat_map(|curve| &curve.quantiles);
                quantiles.map(|(time, _)| *time).collect()
            })
            .collect();
        let reach = self.reach(&values);
        let panels = facets.into_iter().map(|(title, curves)| {
            Cdf {
                title,
                x_title: "ms",
                curves,
                marks: match self.figure.metric {
                    Metric::Ttfb => self.marks(),
                    _ => Vec::new(),
                },
                reach: reach.clone(),
            }
            .panel()
        });
        let entry = |(index, one): (usize, &Series)| KeyEntry {
            name: self.name(one),
            ink: ink(index),
        };
        (
            panels.collect(),
            series.iter().enumerate().map(entry).collect(),
        )
    }

    fn all_arms(&self) -> Vec<String> {
        let measures = self.findings.study.measures_named(&self.figure.measures);
        let mut arms: Vec<String> = match self.figure.plot {
            Plot::Increase => measures
                .filter_map(|(_, measure)| Some(measure.experiment.arms.first()?.name.clone()))
                .collect(),
            Plot::Percentiles | Plot::Cdf | Plot::Table => Vec::new(),
        };
        arms.dedup();
        arms.extend(self.arms.iter().cloned());
        arms
    }

    /// The connections of the samples that are drawn, and which of them are not there.
    fn samples(&self, cells: &[(usize, usize)]) -> (Option<(usize, usize)>, Vec<String>) {
        let mut counts: Vec<usize> = Vec::new();
        let mut holes = Vec::new();
        for (measure, cell) in cells {
            let Some(known) = self.findings.study.measures.get(*measure) else {
                continue;
            };
            for (index, arm) in known.experiment.arms.iter().enumerate() {
                if !self.arms.contains(&arm.name) {
                    continue;
                }
                match self.findings.times.sample(*measure, *cell, index) {
                    Some(sample) => counts.push(sample.connections()),
                    None => {
                        let place = self.findings.cell((*measure, *cell));
                        let place = place.map(ToString::to_string).unwrap_or_default();
                        holes.push(format!("{} at {place}", arm.name));
                    }
                }
            }
        }
        let least = counts.iter().copied().min();
        (least.zip(counts.iter().copied().max()), holes)
    }
}

/// Whether cells that are alike in `by` are alike in a parameter. Nothing is told by nothing.
fn is_told(parameter: Parameter, by: &[Parameter], cells: &[&Cell]) -> bool {
    let values = |cell: &Cell| by.iter().map(|by| by.of(cell)).collect::<Vec<_>>();
    !by.is_empty()
        && cells.iter().all(|one| {
            let mut alike = cells.iter().filter(|other| values(other) == values(one));
            alike.all(|other| parameter.of(other) == parameter.of(one))
        })
}

/// A curve that was not measured.
#[derive(Clone, Copy)]
enum Model {
    Arithmetic,
    /// So much of H, the handshake's increase by the time of its additional bytes.
    Rule {
        share: f64,
    },
    /// H for a connection whose data takes y round trips.
    LongerRule,
}

fn beside_ink(nth: usize) -> Ink {
    Ink::new(nth + 3, Stroke::nth(nth + 1))
}

fn point(number: Estimate<f64>) -> Point {
    Point {
        value: number.value,
        interval: Some((number.interval.low, number.interval.high)),
    }
}

fn values(lines: &[Line]) -> Vec<f64> {
    let points = lines.iter().flat_map(|line| line.points.iter().flatten());
    points.map(|point| point.value).collect()
}

/// `50`, `8.75`
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What all cells have, in words.
fn common(findings: &Findings, cells: &[(usize, usize)]) -> String {
    let known: Vec<&Cell> = cells
        .iter()
        .filter_map(|place| findings.cell(*place))
        .collect();
    let Some(first) = known.first() else {
        return String::new();
    };
    let differ = varying(&known);
    let alike = Parameter::ALL
        .into_iter()
        .filter(|parameter| !differ.contains(parameter));
    let words: Vec<String> = alike
        .filter_map(|parameter| parameter.caption(first))
        .collect();
    words.join(", ")
}
