//! What all kinds of plots are made from, and what a kind of plot is.

use std::cell::RefCell;
use std::collections::BTreeMap;

use maud::Markup;

use super::findings::Findings;
use crate::chart::{
    Axes, COLOURS, Chart, Colour, Drawing, Ink, KeyEntry, Mark, Panel, Point, Stroke,
};
use lastbyte_results::{Estimate, Group, Metric, Percentile, Validity, group_by, groups};
use lastbyte_study::{Cell, Figure, Filter, Parameter, Published, Quantity, Question, varying};

/// A kind of plot, as its module tells it.
///
/// What it draws has the percentiles of [`Plan::percentiles`] (the figure's, else the study's), and the published numbers of
/// [`Plan::theirs`], which the key names where there are any.
pub(super) struct Kind {
    /// What its numbers are.
    pub(super) quantity: Quantity,
    pub(super) baseline: Baseline,
    /// What stands above it, where a study gives no title.
    pub(super) title: fn(Metric) -> String,
    /// What the caption says of it, in whole sentences.
    pub(super) note: fn(&Plan) -> String,
    pub(super) draw: fn(&Plan) -> Content,
    /// What it shows, in a sentence.
    pub(super) finding: fn(&Plan) -> Option<String>,
    /// What it draws, as numbers.
    pub(super) numbers: fn(&Plan) -> Vec<Number>,
}

/// A number of a figure.
pub(super) struct Number {
    pub(super) panel: String,
    /// The value on the horizontal axis.
    pub(super) x: String,
    pub(super) series: String,
    pub(super) percentile: String,
    /// Of what was not measured, there is none.
    pub(super) ours: Option<Point>,
    pub(super) theirs: Option<f64>,
}

/// What becomes of the first arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// It is drawn like the others.
    Drawn,
    /// The others are compared with it.
    Compared,
}

/// What stands in a figure.
pub(super) enum Content {
    Chart(Chart),
    Table(Markup),
}

/// What all kinds of plots are made from: panels, which share arms, percentiles and names of series.
pub(super) struct Plan<'a> {
    pub(super) findings: &'a Findings,
    pub(super) figure: &'a Figure,
    pub(super) percentiles: &'a [Percentile],
    /// The cells that are drawn.
    pub(super) cells: Vec<(usize, usize)>,
    pub(super) kind: &'static Kind,
    groups: Vec<Group>,
    arms: Vec<String>,
    /// What tells panels apart.
    facets: Vec<Parameter>,
    /// What tells series apart besides arms and percentiles.
    others: Vec<Parameter>,
    /// Points that are known, by the first cell of their group and by arm: a figure asks for them again for its heading
    /// and for its CSV, and intervals of several cells together take long.
    known: RefCell<BTreeMap<Place, Vec<Option<Point>>>>,
}

/// A group's first cell, and an arm.
type Place = ((usize, usize), String);

/// A series of a panel: an arm where the cells have some values of what is neither axis nor facet.
#[derive(Clone, PartialEq)]
pub(super) struct Series {
    pub(super) arm: String,
    others: String,
}

impl Series {
    /// What tells it from others besides its arm and percentile.
    pub(super) fn others(&self) -> &str {
        &self.others
    }
}

impl Kind {
    pub(super) fn title(&self, metric: Metric) -> String {
        (self.title)(metric)
    }

    pub(super) fn note(&self, plan: &Plan) -> String {
        (self.note)(plan)
    }

    pub(super) fn draw(&self, plan: &Plan) -> Content {
        (self.draw)(plan)
    }

    pub(super) fn finding(&self, plan: &Plan) -> Option<String> {
        (self.finding)(plan)
    }

    pub(super) fn numbers(&self, plan: &Plan) -> Vec<Number> {
        (self.numbers)(plan)
    }
}

impl<'a> Plan<'a> {
    pub(super) fn new(findings: &'a Findings, figure: &'a Figure, kind: &'static Kind) -> Plan<'a> {
        let study = &findings.study;
        let cells = study.cells_named(&figure.measures, &figure.cells);
        let cells: Vec<_> = cells.map(|(cell, _)| cell).collect();
        let mut plan = Plan {
            findings,
            figure,
            percentiles: findings.percentiles_of(figure),
            groups: groups(study, cells.clone(), &figure.pool),
            cells,
            kind,
            arms: Vec::new(),
            facets: Vec::new(),
            others: Vec::new(),
            known: RefCell::default(),
        };
        plan.arms = plan.drawn_arms();
        (plan.facets, plan.others) = plan.distinctions();
        plan
    }

    /// Those that are wanted, in the order in which measures have them.
    fn drawn_arms(&self) -> Vec<String> {
        let measures = self.findings.study.measures_named(&self.figure.measures);
        let mut arms: Vec<String> = Vec::new();
        for arm in measures.flat_map(|(_, measure)| &measure.experiment.arms) {
            let wanted = self.figure.arms.is_empty() || self.figure.arms.contains(&arm.name);
            if wanted && !arms.contains(&arm.name) {
                arms.push(arm.name.clone());
            }
        }
        if self.kind.baseline == Baseline::Compared {
            arms.retain(|arm| !self.baselines().all(|baseline| baseline == arm));
        }
        arms
    }

    /// What tells panels apart, and what tells series apart besides arms and percentiles.
    fn distinctions(&self) -> (Vec<Parameter>, Vec<Parameter>) {
        let figure = self.figure;
        let cells: Vec<&Cell> = self.first_cells().collect();
        let mut others = varying(&cells);
        others.retain(|parameter| {
            Some(*parameter) != figure.x
                && !figure.facets.contains(parameter)
                && !figure.pool.contains(parameter)
        });
        // What a panel's other values tell belongs to the panel: a link's rate, where its RTT says it.
        let (by_facets, mut others): (Vec<_>, Vec<_>) = (others.into_iter())
            .partition(|parameter| is_implied(*parameter, &figure.facets, &cells));
        let told: Vec<Parameter> = (figure.x.into_iter())
            .chain(figure.facets.iter().copied())
            .collect();
        others.retain(|parameter| !is_implied(*parameter, &told, &cells));
        ([figure.facets.clone(), by_facets].concat(), others)
    }

    /// The first arm of each measure.
    pub(super) fn baselines(&self) -> impl Iterator<Item = &'a str> {
        let measures = self.findings.study.measures_named(&self.figure.measures);
        measures.filter_map(|(_, measure)| Some(&*measure.experiment.arms.first()?.name))
    }

    pub(super) fn title(&self) -> String {
        if let Some(title) = &self.figure.title {
            return title.clone();
        }
        let what = self.kind.title(self.figure.metric);
        match self.figure.x.map(Parameter::title) {
            // Without its unit.
            Some(x) => format!("{what} by {}", x.split(',').next().unwrap_or(x)),
            None => what,
        }
    }

    /// What all cells have, in words.
    pub(super) fn common(&self) -> String {
        let places = self.cells.iter();
        let cells: Vec<&Cell> = places
            .filter_map(|place| self.findings.cell(*place))
            .collect();
        let Some(first) = cells.first() else {
            return String::new();
        };
        let words: Vec<String> = (Parameter::ALL.into_iter())
            .filter(|parameter| parameter.values(&cells).len() == 1)
            .filter_map(|parameter| parameter.caption(first))
            .collect();
        words.join(", ")
    }

    /// The fewest and the most connections of the samples that are there.
    pub(super) fn connections(&self) -> Option<(usize, usize)> {
        let times = &self.findings.times;
        let counts: Vec<usize> = (self.samples().into_iter())
            .filter_map(|(measure, cell, arm)| {
                Some(times.sample(measure, cell, arm)?.connections())
            })
            .collect();
        let least = counts.iter().copied().min();
        least.zip(counts.iter().copied().max())
    }

    /// The samples that are not drawn, with the reason.
    pub(super) fn holes(&self) -> Vec<String> {
        let times = &self.findings.times;
        let hole = |(measure, cell, arm)| match times.sample(measure, cell, arm) {
            None => Some(format!(
                "Not measured: {}",
                self.sample_name((measure, cell, arm))?
            )),
            Some(sample) if sample.validity != Validity::Valid => {
                let name = self.sample_name((measure, cell, arm))?;
                Some(format!("Disturbed, and so not drawn: {name}"))
            }
            Some(_) => None,
        };
        self.samples().into_iter().filter_map(hole).collect()
    }

    /// Measure, cell and arm of all that is drawn.
    fn samples(&self) -> Vec<(usize, usize, usize)> {
        let mut samples = Vec::new();
        for (measure, cell) in &self.cells {
            let drawn = self.findings.study.measures.get(*measure);
            let arms = drawn.into_iter().flat_map(|drawn| &drawn.experiment.arms);
            for (index, arm) in arms.enumerate() {
                if self.arms.contains(&arm.name) {
                    samples.push((*measure, *cell, index));
                }
            }
        }
        samples
    }

    fn sample_name(&self, (measure, cell, arm): (usize, usize, usize)) -> Option<String> {
        let arms = &self.findings.study.measures.get(measure)?.experiment.arms;
        let cell = self.findings.cell((measure, cell))?;
        Some(format!("{} at {cell}", arms.get(arm)?.name))
    }

    /// The arms that are drawn, and what they are compared with.
    pub(super) fn all_arms(&self) -> Vec<String> {
        let mut arms: Vec<String> = match self.kind.baseline {
            Baseline::Compared => self.baselines().map(str::to_owned).collect(),
            Baseline::Drawn => Vec::new(),
        };
        arms.dedup();
        arms.extend(self.arms.iter().cloned());
        arms
    }

    /// The groups of each panel. Panels are in the order of the first facet's values, then the next one's.
    pub(super) fn panels(&self) -> Vec<(String, Vec<&Group>)> {
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by_cached_key(|group| self.places_of_facets(group));
        group_by(groups, |group| self.words(group, &self.facets))
    }

    /// Where the value of each facet first stands among all groups.
    fn places_of_facets(&self, group: &Group) -> Vec<usize> {
        let place = |facet: &Parameter| {
            let value = facet.of(self.first_cell(group)?);
            self.first_cells().position(|cell| facet.of(cell) == value)
        };
        let facets = self.facets.iter();
        facets
            .map(|facet| place(facet).unwrap_or_default())
            .collect()
    }

    /// All series of the figure, so that they look the same in every panel.
    pub(super) fn series(&self) -> Vec<Series> {
        let mut series = Vec::new();
        for (others, _) in group_by(&self.groups, |group| self.words(group, &self.others)) {
            for arm in &self.arms {
                series.push(Series {
                    arm: arm.clone(),
                    others: others.clone(),
                });
            }
        }
        series
    }

    /// Those of all series that the study asks for in a panel, whatever came of it.
    pub(super) fn series_of<'s>(&self, series: &'s [Series], groups: &[&Group]) -> Vec<&'s Series> {
        let is_there = |one: &&Series| {
            groups.iter().any(|group| {
                self.words(group, &self.others) == one.others && self.is_measured(group, &one.arm)
            })
        };
        series.iter().filter(is_there).collect()
    }

    /// What stands along the horizontal axis, over all panels, with its number if it has one.
    pub(super) fn axis(&self) -> Vec<(String, Option<f64>)> {
        let Some(x) = self.figure.x else {
            return Vec::new();
        };
        let cells: Vec<&Cell> = self.first_cells().collect();
        let number = |text: &str| x.number(cells.iter().find(|cell| x.of(cell) == text)?);
        let mut axis: Vec<_> = (x.values(&cells).into_iter())
            .map(|text| (text.clone(), number(&text)))
            .collect();
        axis.sort_by(|(_, one), (_, other)| {
            let [one, other] = [one, other].map(|number| number.unwrap_or_default());
            one.total_cmp(&other)
        });
        axis
    }

    /// Of the cells of a panel, those of a series at a place on the axis.
    pub(super) fn at<'g>(
        &self,
        groups: &[&'g Group],
        series: &Series,
        x: &str,
    ) -> Option<&'g Group> {
        let is_at_x = |group| match self.figure.x.zip(self.first_cell(group)) {
            Some((parameter, cell)) => parameter.of(cell) == x,
            None => true,
        };
        let is_of_series = |group| self.words(group, &self.others) == series.others;
        let mut groups = groups.iter().copied();
        groups.find(|group| {
            is_at_x(group) && is_of_series(group) && self.is_measured(group, &series.arm)
        })
    }

    /// Whether the measure of a group has an arm.
    fn is_measured(&self, group: &Group, arm: &str) -> bool {
        let measures = &self.findings.study.measures;
        let measure = group
            .cells
            .first()
            .and_then(|(measure, _)| measures.get(*measure));
        let mut arms = measure
            .into_iter()
            .flat_map(|measure| &measure.experiment.arms);
        arms.any(|known| known.name == arm)
    }

    /// One for each percentile; a hole where there is none.
    pub(super) fn points(&self, group: Option<&Group>, arm: &str) -> Vec<Option<Point>> {
        let first = group.and_then(|group| group.cells.first());
        let Some((group, first)) = group.zip(first) else {
            return vec![None; self.percentiles.len()];
        };
        let place = (*first, arm.to_owned());
        if let Some(points) = self.known.borrow().get(&place) {
            return points.clone();
        }
        let numbers = self.findings.trusted_numbers(group, &self.question(arm));
        let numbers = numbers.unwrap_or_else(|_| vec![None; self.percentiles.len()]);
        let points: Vec<Option<Point>> = (numbers.into_iter())
            .map(|number| number.map(point))
            .collect();
        self.known.borrow_mut().insert(place, points.clone());
        points
    }

    /// Whether what was measured of one cell is a difference among all that are reported together; of several cells together, nobody
    /// has asked.
    pub(super) fn stands_out(&self, group: Option<&Group>, arm: &str, percentile: usize) -> bool {
        let alone = group.filter(|group| group.cells.len() == 1);
        let Some((group, percentile)) = alone.zip(self.percentiles.get(percentile)) else {
            return true;
        };
        let metric = self.figure.metric;
        (self.findings).stands_out(group, arm, metric, *percentile)
    }

    fn question(&self, arm: &str) -> Question {
        Question {
            measures: self.figure.measures.clone(),
            cells: Filter::default(),
            arm: arm.to_owned(),
            metric: self.figure.metric,
            percentiles: self.percentiles.to_vec(),
            pool: self.figure.pool.clone(),
            quantity: self.kind.quantity.clone(),
        }
    }

    pub(super) fn y_title(&self) -> &'static str {
        match self.kind.quantity {
            Quantity::Increase => "increase, %",
            _ => "ms",
        }
    }

    /// Levels that readers know.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let mark = |at, name: &str| Mark {
            at,
            name: name.to_owned(),
        };
        match (&self.kind.quantity, self.figure.metric) {
            (_, Metric::Ttfb) => vec![
                mark(800.0, "good TTFB: 800 ms"),
                mark(1800.0, "poor: 1.8 s"),
            ],
            _ => Vec::new(),
        }
    }

    /// What the axes of all panels reach, unless that would make some of them flat. Increases are compared by eye.
    pub(super) fn reach(&self, panels: Vec<Vec<f64>>) -> Option<Vec<f64>> {
        const FLAT: f64 = 4.0;
        let most = |values: &Vec<f64>| values.iter().copied().map(f64::abs).fold(0.0, f64::max);
        let mosts: Vec<f64> = panels.iter().map(most).filter(|most| *most > 0.0).collect();
        let least = mosts.iter().copied().fold(f64::INFINITY, f64::min);
        let most = mosts.iter().copied().fold(0.0, f64::max);
        let is_flat = !mosts.is_empty() && most / least > FLAT;
        (self.kind.quantity == Quantity::Increase || !is_flat).then(|| panels.concat())
    }

    /// An entry for each series.
    pub(super) fn key(&self, series: &[Series]) -> Vec<KeyEntry> {
        let entries = series.iter().map(|one| KeyEntry {
            name: self.name(one),
            ink: self.ink(series, one),
        });
        entries.collect()
    }

    /// How a series looks: an arm has its colour in every figure, and where there is but one, others tell series apart.
    pub(super) fn ink(&self, all: &[Series], one: &Series) -> Ink {
        let mut others: Vec<&str> = all.iter().map(|series| &*series.others).collect();
        others.dedup();
        let other = others.iter().position(|others| *others == one.others);
        let other = other.unwrap_or_default();
        match (self.arms.len(), others.len()) {
            (1, 2..) => Ink::nth(other),
            _ => self.ink_of_arm(&one.arm).of_several(other),
        }
    }

    /// The first arm of the study is what others are compared with. Where those are more than there are colours, each has
    /// the colour of its place in the figure.
    fn ink_of_arm(&self, arm: &str) -> Ink {
        let arms = self.findings.study.arms();
        if arms.len() > 1 && arms.first().is_some_and(|first| first.name == arm) {
            return Ink::new(Colour::Baseline, Stroke::Solid);
        }
        let compared: Vec<&str> = arms.iter().skip(1).map(|arm| &*arm.name).collect();
        let of_figure: Vec<&str> = compared
            .iter()
            .copied()
            .filter(|name| self.arms.iter().any(|arm| arm == name))
            .collect();
        let all = if compared.len() > COLOURS {
            of_figure
        } else {
            compared
        };
        Ink::nth(all.iter().position(|name| *name == arm).unwrap_or_default())
    }

    /// The series of an arm that are alike in all else.
    pub(super) fn of_arm(&self, arm: &str, like: &Series) -> Series {
        Series {
            arm: arm.to_owned(),
            others: like.others.clone(),
        }
    }

    /// A place on the axis in words: `RTT 20ms`.
    pub(super) fn place_on_axis(&self, x: &str) -> String {
        let parameter = self.figure.x;
        let cell = parameter.and_then(|parameter| {
            let mut cells = self.first_cells();
            cells.find(|cell| parameter.of(cell) == x)
        });
        let Some((parameter, cell)) = parameter.zip(cell) else {
            return x.to_owned();
        };
        if parameter == Parameter::DATA && x == "0B" {
            return "handshake alone".to_owned();
        }
        if [Parameter::DATA, Parameter::LINK].contains(&parameter) {
            x.to_owned()
        } else {
            parameter.describe(cell)
        }
    }

    pub(super) fn name(&self, series: &Series) -> String {
        match (&*series.others, self.arms.len()) {
            ("", _) => series.arm.clone(),
            (others, 1) => others.to_owned(),
            (others, _) => format!("{}, {others}", series.arm),
        }
    }

    /// Panels, each with its title, and their key. Axes that reach the same are shared.
    pub(super) fn chart<D: Drawing + 'static>(
        &self,
        panels: Vec<(String, D)>,
        key: Vec<KeyEntry>,
        reach: Option<&Vec<f64>>,
    ) -> Content {
        let panel = |(title, drawing)| Panel {
            title,
            drawing: Box::new(drawing),
        };
        Content::Chart(Chart {
            title: self.title(),
            panels: panels.into_iter().map(panel).collect(),
            key,
            axes: match reach {
                Some(_) => Axes::Shared,
                None => Axes::Own,
            },
            has_theirs: self.has_theirs(),
        })
    }

    /// What is published of an arm at a place, one for each percentile.
    pub(super) fn theirs(&self, group: Option<&Group>, arm: &str) -> Vec<Option<f64>> {
        let mut theirs = vec![None; self.percentiles.len()];
        let Some(group) = group else { return theirs };
        for published in self
            .published()
            .filter(|published| published.question.arm == arm)
        {
            let question = &published.question;
            let cells = self
                .findings
                .study
                .cells_named(&question.measures, &question.cells);
            let cells: Vec<_> = cells.map(|(place, _)| place).collect();
            if cells.len() != group.cells.len()
                || !cells.iter().all(|cell| group.cells.contains(cell))
            {
                continue;
            }
            for (percentile, value) in question.percentiles.iter().zip(&published.values) {
                let place = self.percentiles.iter().position(|one| one == percentile);
                if let Some(place) = place.and_then(|place| theirs.get_mut(place)) {
                    *place = Some(*value);
                }
            }
        }
        theirs
    }

    /// Published numbers of what the figure draws.
    fn published(&self) -> impl Iterator<Item = &'a Published> {
        let published = self.findings.study.published.iter();
        let (id, metric) = (&self.figure.id, self.figure.metric);
        published.filter(move |published| {
            published.figure.as_ref() == Some(id)
                && published.question.metric == metric
                && published.question.quantity == self.kind.quantity
        })
    }

    fn has_theirs(&self) -> bool {
        let groups = &self.groups;
        let of_arm = |arm: &String| {
            groups
                .iter()
                .any(|group| self.theirs(Some(group), arm).iter().any(Option::is_some))
        };
        self.arms.iter().any(of_arm)
    }

    /// All points that are drawn, with what is published of them.
    pub(super) fn numbers(&self) -> Vec<Number> {
        let series = self.series();
        let axis = match self.axis() {
            axis if axis.is_empty() => vec![(String::new(), None)],
            axis => axis,
        };
        let mut numbers = Vec::new();
        for (panel, groups) in self.panels() {
            for one in &series {
                for (x, _) in &axis {
                    let group = self.at(&groups, one, x);
                    let points = self.points(group, &one.arm).into_iter();
                    let theirs = self.theirs(group, &one.arm);
                    for ((ours, theirs), percentile) in points.zip(theirs).zip(self.percentiles) {
                        numbers.push(Number {
                            panel: panel.clone(),
                            x: x.clone(),
                            series: self.name(one),
                            percentile: percentile.to_string(),
                            ours,
                            theirs,
                        });
                    }
                }
            }
        }
        numbers
    }

    fn first_cells(&self) -> impl Iterator<Item = &'a Cell> {
        let groups = self.groups.iter();
        groups.filter_map(|group| self.first_cell(group))
    }

    fn first_cell(&self, group: &Group) -> Option<&'a Cell> {
        self.findings.cell(*group.cells.first()?)
    }

    /// `RTT 35ms, loss 1%`
    fn words(&self, group: &Group, parameters: &[Parameter]) -> String {
        let Some(cell) = self.first_cell(group) else {
            return String::new();
        };
        // A network's name says what it is.
        let is_named = cell.link_name.is_some() && parameters.contains(&Parameter::LINK);
        let told = parameters.iter();
        let told = told.filter(|one| !is_named || !one.is_of_link() || **one == Parameter::LINK);
        let words = told.map(|parameter| parameter.describe(cell));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Whether cells that are alike in `by` are alike in a parameter. Nothing is told by nothing.
fn is_implied(parameter: Parameter, by: &[Parameter], cells: &[&Cell]) -> bool {
    let values = |cell: &Cell| by.iter().map(|by| by.of(cell)).collect::<Vec<_>>();
    !by.is_empty()
        && cells.iter().all(|one| {
            let mut alike = cells.iter().filter(|other| values(other) == values(one));
            alike.all(|other| parameter.of(other) == parameter.of(one))
        })
}

fn point(number: Estimate<f64>) -> Point {
    Point {
        value: number.value,
        interval: Some((number.interval.low, number.interval.high)),
    }
}

/// `50`, `8.75`
pub(super) fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
