//! What each configuration costs on each network: the answer of a page, as a table and as a sentence.

mod draw;
#[cfg(test)]
pub(super) mod tests;

pub(super) use draw::{ONE_NETWORK, breakable, grouped};

use lastbyte_link::Bytes;

use super::findings::Findings;
use crate::answer::{Reason, parts};
use crate::thresholds::{NOTHING_MS, NOTICED_TRIPS, SURE, USUAL_RATE, USUAL_RTT};
use lastbyte_results::{ArmSummary, CellSummary, Contents, Metric, Percentile, Validity};
use lastbyte_study::{Bearing, Cell, Leads, Parameter, Question, varying};

/// Rows that people read; more networks than these are put together.
const ROWS: usize = 12;

/// Costs of all compared arms over all networks.
pub(super) struct Overview {
    /// Of which percentile.
    pub(super) percentile: Percentile,
    /// What others are compared with, one for each baseline that there is.
    pub(super) baselines: Vec<String>,
    pub(super) arms: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// Each arm on each network apart, of each column, in the order of the networks: what sentences are made of.
    pub(super) cases: Vec<Vec<Case>>,
    /// What all times consist of, where they are alike.
    contents: Option<Contents>,
    /// What stands first where not all is shown.
    leads: Leads,
    /// The same of the networks that the study's own answer is about, where it has one.
    asked: Option<Box<Overview>>,
}

/// Which time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) metric: Metric,
    /// Of a response as large as that; absent for what needs none, and where connections draw it.
    pub(super) data: Option<Bytes>,
}

impl Column {
    /// Whether a cell has this time.
    fn is_of(self, cell: &Cell) -> bool {
        match (self.metric, self.data) {
            (Metric::Handshake, _) => true,
            (Metric::Load, _) => cell.page.is_some(),
            (_, Some(size)) => cell.data == size && cell.work().requests > 0,
            (_, None) => cell.work().requests > 0,
        }
    }
}

/// A network, or several that are told together.
pub(super) struct Row {
    /// What tells it from the others.
    pub(super) name: String,
    /// What else it is.
    pub(super) note: String,
    /// How many networks it is.
    pub(super) networks: usize,
    /// Of each column, of each arm.
    pub(super) costs: Vec<Vec<Option<Cost>>>,
    /// What each arm is compared with here.
    pub(super) than: Vec<String>,
}

/// What an arm costs more than its baseline.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cost {
    /// Times are known.
    Increase(Increase),
    /// Why they are not.
    Unknown(&'static str),
}

/// Times in milliseconds, later than the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Increase {
    pub(super) least: f64,
    pub(super) most: f64,
    /// The same in round trips.
    pub(super) trips: [f64; 2],
    /// Whole round trips, where they are counted and all networks have as many.
    pub(super) counted: Option<i64>,
    /// What else the network's part of it is for, where that is known.
    pub(super) rest: Vec<(Reason, [f64; 2])>,
    /// What of it is computing, where that is known.
    pub(super) computing: Option<[f64; 2]>,
    /// Whether it is a difference for all that is known.
    pub(super) is_shown: bool,
    /// Its interval.
    pub(super) interval: Option<[f64; 2]>,
}

/// What an arm costs more than its baseline on one network.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) arm: String,
    /// What tells the network from all others.
    pub(super) place: String,
    /// How far the network is from what most readers have.
    pub(super) unusual: f64,
    pub(super) known: Increase,
    /// The same at the other percentiles that are asked for.
    pub(super) others: Vec<(Percentile, Increase)>,
}

impl Case {
    /// How much later it may be, in milliseconds.
    pub(super) fn at_most(&self) -> f64 {
        let high = (self.known.interval).map_or(self.known.most, |[_, high]| high);
        if self.known.is_shown {
            high.max(self.known.most)
        } else {
            high
        }
    }
}

/// How a cost is felt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Perception {
    Sooner,
    Same,
    /// A part of a round trip, or one on some networks alone.
    Part,
    Later,
}

impl Increase {
    /// How large it is, in milliseconds, later or sooner.
    pub(super) fn size(&self) -> f64 {
        self.least.abs().max(self.most.abs())
    }

    pub(super) fn is_sooner(&self) -> bool {
        self.least < 0.0
    }

    /// How large it is at least, for all that is known: the end of its interval that is nearer to nothing.
    pub(super) fn at_least(&self) -> f64 {
        match self.interval {
            Some([_, high]) if self.is_sooner() => (0.0 - high).max(0.0),
            Some([low, _]) => low.max(0.0),
            None => self.size(),
        }
    }

    /// Whether its number is worth repeating.
    pub(super) fn is_sure(&self) -> bool {
        let off = self.interval.map_or(0.0, |[low, high]| (high - low) / 2.0);
        off <= (SURE * self.size()).max(NOTHING_MS)
    }

    /// What is told of it together with others: what is not shown to be anything is nothing there.
    fn range(&self) -> ([f64; 2], [f64; 2]) {
        if self.is_shown {
            ([self.least, self.most], self.trips)
        } else {
            ([0.0; 2], [0.0; 2])
        }
    }

    pub(super) fn perception(&self) -> Perception {
        let [low, high] = self.trips;
        match (low, high) {
            _ if !self.is_shown => Perception::Same,
            (_, high) if high <= -NOTICED_TRIPS => Perception::Sooner,
            (low, _) if low >= 1.0 - NOTICED_TRIPS => Perception::Later,
            (_, high) if high >= NOTICED_TRIPS => Perception::Part,
            (low, _) if low <= -NOTICED_TRIPS => Perception::Sooner,
            _ => Perception::Same,
        }
    }

    fn with(self, other: &Increase) -> Increase {
        let has_shown = self.is_shown || other.is_shown;
        let of = |known: &Increase| {
            if has_shown {
                known.range()
            } else {
                ([known.least, known.most], known.trips)
            }
        };
        let ((one, trips), (another, others)) = (of(&self), of(other));
        Increase {
            least: one[0].min(another[0]),
            most: one[1].max(another[1]),
            trips: [trips[0].min(others[0]), trips[1].max(others[1])],
            counted: self.counted.filter(|count| other.counted == Some(*count)),
            rest: if self.counted == other.counted {
                rests(&self.rest, &other.rest)
            } else {
                Vec::new()
            },
            computing: self
                .computing
                .zip(other.computing)
                .map(|(one, other)| [one[0].min(other[0]), one[1].max(other[1])]),
            is_shown: has_shown,
            interval: (self.interval.zip(other.interval))
                .map(|(one, other)| [one[0].min(other[0]), one[1].max(other[1])]),
        }
    }
}

/// Of two networks; what is not told of both is not told.
fn rests(one: &[(Reason, [f64; 2])], other: &[(Reason, [f64; 2])]) -> Vec<(Reason, [f64; 2])> {
    let reasons = |rest: &[(Reason, [f64; 2])]| -> Vec<Reason> {
        rest.iter().map(|(reason, _)| *reason).collect()
    };
    if reasons(one) != reasons(other) {
        return Vec::new();
    }
    let pairs = one.iter().zip(other);
    pairs
        .map(|((reason, [low, high]), (_, [least, most]))| {
            (*reason, [low.min(*least), high.max(*most)])
        })
        .collect()
}

impl Cost {
    fn with(self, other: Cost) -> Cost {
        match (self, other) {
            (Cost::Increase(one), Cost::Increase(other)) => Cost::Increase(one.with(&other)),
            (Cost::Unknown(why), _) | (_, Cost::Unknown(why)) => Cost::Unknown(why),
        }
    }
}

/// A cell of the study, with what was measured in it.
#[derive(Clone, Copy)]
struct Measured<'a> {
    measure: &'a str,
    cell: &'a Cell,
    summary: &'a CellSummary,
    percentiles: &'a [Percentile],
    critical: f64,
}

impl Overview {
    /// `None` of a study that compares nothing.
    pub(super) fn new(findings: &Findings) -> Option<Overview> {
        let percentile = findings
            .summaries
            .iter()
            .find_map(|one| one.representative())?;
        let measured: Vec<Measured<'_>> = (findings.summaries.iter())
            .zip(&findings.study.measures)
            .flat_map(|(summary, measure)| {
                summary.cells.iter().map(|cell| Measured {
                    measure: &measure.id,
                    cell: &cell.cell,
                    summary: cell,
                    percentiles: &summary.percentiles,
                    critical: summary.critical,
                })
            })
            .filter(|one| one.summary.arms.len() > 1)
            .collect();
        let overview = Overview::of(findings, measured.clone(), Metric::Handshake, percentile)?;
        let asked = findings.study.answer.as_ref().and_then(|answer| {
            // What a bound is of, is beside the point.
            let shown = answer
                .places()
                .filter(|place| place.bearing == Bearing::Shown);
            let questions: Vec<&Question> = shown.map(|place| &place.question).collect();
            let is_asked = |one: &Measured<'_>| {
                let mut questions = questions.iter();
                questions.any(|question| {
                    question.measures.iter().any(|id| id == one.measure)
                        && question.cells.has(one.cell)
                })
            };
            let mut measured = measured;
            measured.retain(is_asked);
            let asks_for_first_byte = |question: &&Question| question.metric == Metric::Ttfb;
            let first = if questions.iter().any(asks_for_first_byte) {
                Metric::Ttfb
            } else {
                Metric::Handshake
            };
            Overview::of(findings, measured, first, percentile).map(Box::new)
        });
        Some(Overview { asked, ..overview })
    }

    fn of(
        findings: &Findings,
        measured: Vec<Measured<'_>>,
        first: Metric,
        percentile: Percentile,
    ) -> Option<Overview> {
        let labels = |is_baseline: bool| {
            let mut labels: Vec<String> = Vec::new();
            for one in &measured {
                let baseline = one.summary.baseline().map(|arm| &arm.label);
                let arms = one.summary.arms.iter().map(|arm| &arm.label);
                for label in arms.filter(|label| (baseline == Some(*label)) == is_baseline) {
                    if !labels.contains(label) {
                        labels.push(label.clone());
                    }
                }
            }
            labels
        };
        let arms = labels(false);
        if arms.is_empty() {
            return None;
        }
        let mut contents = findings.summaries.iter().filter_map(|one| one.contents());
        let one = contents.next();
        let contents = one.filter(|one| contents.all(|other| other == *one));
        let columns = columns(&measured, first);
        let rows = (rows(&measured).into_iter())
            .map(|(name, note, members)| Row {
                networks: networks(members.iter().map(|one| one.cell)),
                costs: (columns.iter())
                    .map(|column| {
                        let of_arm = |arm: &String| cost_of(&members, *column, arm, percentile);
                        arms.iter().map(of_arm).collect()
                    })
                    .collect(),
                than: arms
                    .iter()
                    .map(|arm| compared_with(&members, arm))
                    .collect(),
                name,
                note,
            })
            .collect();
        Some(Overview {
            percentile,
            baselines: labels(true),
            rows,
            cases: cases(&measured, &columns, &arms, percentile),
            contents,
            leads: findings.study.leads,
            asked: None,
            arms,
            columns,
        })
    }

    /// What is known of a column, of each arm on each network.
    pub(super) fn cases_of(&self, column: usize) -> Vec<&Case> {
        self.cases.get(column).into_iter().flatten().collect()
    }

    /// What the page is about, where the study asks nothing itself.
    pub(super) fn question(&self) -> String {
        let baseline = self.baselines.join(" or ");
        match &*self.arms {
            [arm] => format!("What does {arm} cost, compared with {baseline}?"),
            arms => format!(
                "What do {} configurations cost, compared with {baseline}?",
                arms.len()
            ),
        }
    }
}

/// The handshake, or the first byte, the last byte of the response that most networks have, and the load of pages.
fn columns(measured: &[Measured<'_>], first: Metric) -> Vec<Column> {
    let mut columns = of_transfers(measured, first);
    if measured.iter().any(|one| one.cell.page.is_some()) {
        columns.push(Column {
            metric: Metric::Load,
            data: None,
        });
    }
    columns
}

fn of_transfers(measured: &[Measured<'_>], first: Metric) -> Vec<Column> {
    let mut columns = vec![Column {
        metric: first,
        data: None,
    }];
    let sizes = measured.iter().filter(|one| one.cell.work().requests > 0);
    let is_drawn = |one: &Measured<'_>| one.cell.draws(Parameter::DATA);
    if measured.iter().any(is_drawn) {
        columns.push(Column {
            metric: Metric::Ttlb,
            data: None,
        });
        return columns;
    }
    let mut counts: Vec<(Bytes, usize)> = Vec::new();
    for size in sizes.map(|one| one.cell.data) {
        match counts.iter_mut().find(|(known, _)| *known == size) {
            Some((_, count)) => *count += 1,
            None => counts.push((size, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max();
    counts.retain(|(_, count)| Some(*count) == most);
    counts.sort_by_key(|(size, _)| size.0);
    // Of several, a page as most are.
    let usual = counts
        .iter()
        .min_by_key(|(size, _)| size.0.abs_diff(50 << 10));
    columns.extend(usual.map(|(size, _)| Column {
        metric: Metric::Ttlb,
        data: Some(*size),
    }));
    columns
}

/// Each arm on each network apart, of each column.
fn cases(
    measured: &[Measured<'_>],
    columns: &[Column],
    arms: &[String],
    percentile: Percentile,
) -> Vec<Vec<Case>> {
    let Distinctions { distinctions, .. } = distinctions(measured);
    let case = |one: &Measured<'_>, column: &Column, arm: &String| {
        let known = |percentile| match cost(one, column.metric, arm, percentile) {
            Some(Cost::Increase(known)) => Some(known),
            Some(Cost::Unknown(_)) | None => None,
        };
        let others = (one.percentiles.iter()).filter(|other| **other != percentile);
        Some(Case {
            arm: arm.clone(),
            place: words(&distinctions, one.cell),
            unusual: unusual(one.cell),
            known: known(percentile)?,
            others: others
                .filter_map(|other| Some((*other, known(*other)?)))
                .collect(),
        })
    };
    let of_column = |column: &Column| {
        let measured = measured.iter().filter(|one| column.is_of(one.cell));
        let of_network = |one| arms.iter().filter_map(move |arm| case(one, column, arm));
        measured.flat_map(of_network).collect()
    };
    columns.iter().map(of_column).collect()
}

/// How far a network is from what most readers have: not at all, where it has that RTT and rate, loses and delays nothing
/// by chance, and leaves all else as it usually is.
fn unusual(cell: &Cell) -> f64 {
    /// Of what is by chance, and of each setting: more than any everyday RTT and rate.
    const LUCK: f64 = 10.0;
    const SETTING: f64 = 5.0;
    let usual = Cell {
        data: cell.data,
        upload: cell.upload,
        page: cell.page.clone(),
        population: cell.population.clone(),
        ..Cell::default()
    };
    let away = |of: f64, usual: f64| (of.max(1e-9) / usual).ln().abs();
    let rtt = away(cell.link.rtt().as_secs_f64(), USUAL_RTT.as_secs_f64());
    let rate = cell.link.backward.rate;
    let rate = rate.map_or(0.0, |rate| away(rate.bits_per_second() as f64, USUAL_RATE));
    let luck = [cell.has_loss(), cell.has_jitter()];
    let luck = luck.into_iter().filter(|has| *has).count();
    let is_otherwise = |parameter: &Parameter| {
        !parameter.is_of_link() && parameter.of(cell) != parameter.of(&usual)
    };
    let settings = Parameter::ALL.into_iter().filter(is_otherwise).count();
    rtt + rate + LUCK * luck as f64 + SETTING * settings as f64
}

/// What tells networks apart, and what is told besides of each.
struct Distinctions {
    distinctions: Vec<Parameter>,
    note: Vec<Parameter>,
}

fn distinctions(measured: &[Measured<'_>]) -> Distinctions {
    let cells: Vec<&Cell> = measured.iter().map(|one| one.cell).collect();
    let mut distinctions = varying(&cells);
    let is_load = |parameter: &Parameter| [Parameter::DATA, Parameter::UPLOAD].contains(parameter);
    distinctions.retain(|parameter| !is_load(parameter));
    let mut note = Vec::new();
    let mut noted = || {
        note = vec![Parameter::RTT, Parameter::RATE];
        if cells.iter().any(|cell| cell.has_loss()) {
            note.push(Parameter::LOSS);
        }
    };
    // Names tell networks, where all have one; what a name has several of is told besides.
    let names = Parameter::LINK.values(&cells).len();
    if cells.iter().all(|cell| cell.link_name.is_some()) && names > 1 {
        noted();
        let is_told_by_name = |parameter: Parameter| {
            let of = |cell: &&Cell| (Parameter::LINK.of(cell), parameter.of(cell));
            let mut pairs: Vec<(String, String)> = cells.iter().map(of).collect();
            pairs.sort_unstable();
            pairs.dedup();
            pairs.len() == names
        };
        distinctions.retain(|parameter| !parameter.is_of_link() || !is_told_by_name(*parameter));
        if !distinctions.contains(&Parameter::LINK) {
            distinctions.insert(0, Parameter::LINK);
        }
    }
    // The only one is told by what it is.
    if distinctions.is_empty() {
        noted();
        if cells.iter().all(|cell| cell.link_name.is_some()) {
            distinctions.push(Parameter::LINK);
        }
    }
    Distinctions { distinctions, note }
}

/// The cells of each row, with its name and what else it is.
fn rows<'m, 'a>(measured: &'m [Measured<'a>]) -> Vec<(String, String, Vec<&'m Measured<'a>>)> {
    let Distinctions {
        mut distinctions,
        note,
    } = distinctions(measured);
    // A row is all networks of a name.
    if distinctions.contains(&Parameter::LINK) {
        distinctions.retain(|parameter| !parameter.is_of_link() || *parameter == Parameter::LINK);
    }
    loop {
        let mut rows: Vec<(String, String, Vec<&Measured<'_>>)> = Vec::new();
        for one in measured {
            let name = words(&distinctions, one.cell);
            match rows.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, members)) => members.push(one),
                None => rows.push((name, String::new(), vec![one])),
            }
        }
        if rows.len() <= ROWS || distinctions.len() <= 1 {
            for (_, besides, members) in &mut rows {
                *besides = alike(&note, members);
            }
            return rows;
        }
        // What comes last among parameters is told together first; windows decide most.
        let decides = |parameter: &&Parameter| {
            [
                Parameter::LINK,
                Parameter::RTT,
                Parameter::RATE,
                Parameter::INITCWND,
            ]
            .contains(parameter)
        };
        let place = (distinctions
            .iter()
            .rposition(|parameter| !decides(&parameter)))
        .or_else(|| {
            distinctions
                .iter()
                .rposition(|parameter| *parameter != Parameter::INITCWND)
        })
        .unwrap_or_default();
        distinctions.remove(place);
    }
}

/// What an arm is compared with in these cells.
fn compared_with(members: &[&Measured<'_>], arm: &str) -> String {
    let measured = members.iter().filter(|one| {
        let mut arms = one.summary.arms.iter();
        arms.any(|sample| sample.label == arm)
    });
    let mut baselines: Vec<&str> = Vec::new();
    for baseline in measured.filter_map(|one| one.summary.baseline()) {
        if baseline.label != arm && !baselines.contains(&&*baseline.label) {
            baselines.push(&baseline.label);
        }
    }
    baselines.join(" or ")
}

/// What all of these have alike.
fn alike(parameters: &[Parameter], members: &[&Measured<'_>]) -> String {
    let cells: Vec<&Cell> = members.iter().map(|one| one.cell).collect();
    let mut parameters = parameters.to_vec();
    parameters.retain(|parameter| parameter.values(&cells).len() == 1);
    cells
        .first()
        .map_or_else(String::new, |cell| words(&parameters, cell))
}

fn words(parameters: &[Parameter], cell: &Cell) -> String {
    let words = parameters.iter().map(|parameter| parameter.describe(cell));
    let words = words.filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(", ")
}

/// How many of these are other networks than each other.
pub(super) fn networks<'c>(cells: impl Iterator<Item = &'c Cell>) -> usize {
    let mut names: Vec<String> = Vec::new();
    for cell in cells {
        let alone = Cell {
            data: Bytes(0),
            upload: Bytes(0),
            page: None,
            // What is drawn of traffic is no network's.
            population: (cell.population.clone()).filter(|_| cell.traffic.is_none()),
            traffic: None,
            ..cell.clone()
        };
        let parameters = Parameter::ALL.into_iter();
        let of_network = parameters.filter(|parameter| !parameter.is_of_pages());
        let captions = of_network.filter_map(|parameter| parameter.caption(&alone));
        let name = captions.collect::<Vec<_>>().join(", ");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.len()
}

/// Of all cells of a row that have the column's time.
fn cost_of(
    members: &[&Measured<'_>],
    column: Column,
    arm: &str,
    percentile: Percentile,
) -> Option<Cost> {
    let costs = (members.iter().filter(|one| column.is_of(one.cell)))
        .filter_map(|one| cost(one, column.metric, arm, percentile));
    costs.reduce(Cost::with)
}

fn cost(one: &Measured<'_>, metric: Metric, arm: &str, percentile: Percentile) -> Option<Cost> {
    let baseline = one.summary.baseline()?;
    let arm = one.summary.arms.iter().find(|sample| sample.label == arm)?;
    if std::ptr::eq(arm, baseline) {
        return None;
    }
    let is_valid = |sample: &ArmSummary| sample.validity == Validity::Valid;
    if !is_valid(arm) || !is_valid(baseline) {
        return Some(Cost::Unknown("disturbed"));
    }
    let time = |sample: &ArmSummary| {
        let time = sample.metric(metric).percentiles.get(&percentile)?.ok()?;
        Some(time.value.as_secs_f64() * 1e3)
    };
    let (then, now) = match (time(baseline), time(arm)) {
        (Some(then), Some(now)) => (then, now),
        (None, Some(_)) => return Some(Cost::Unknown("baseline failed")),
        (_, None) => return Some(Cost::Unknown("failed or timed out")),
    };
    let rtt = one.cell.link.rtt().as_secs_f64() * 1e3;
    let computing = |sample: &ArmSummary| {
        let shares = sample.metric(metric).shares(percentile)?;
        Some(shares.cpu.as_secs_f64() * 1e3)
    };
    let increase = arm.metric(metric).increases.get(&percentile);
    let interval = increase
        .and_then(|increase| increase.ok())
        .map(|increase| increase.interval);
    if interval.is_some_and(|interval| interval.low.is_none() || interval.high.is_none()) {
        return Some(Cost::Unknown("too few to tell"));
    }
    let interval = interval.and_then(|interval| Some([interval.low?.0, interval.high?.0]));
    let later = now - then;
    let trips = if one.cell.draws(Parameter::RTT) || rtt <= 0.0 {
        // There is no one RTT: a fifth of the time is felt as well.
        later / then.max(1e-9)
    } else {
        later / rtt
    };
    let shown = arm.metric(metric).difference(percentile, one.critical);
    let parts = parts(one.summary, arm, metric, percentile);
    Some(Cost::Increase(Increase {
        least: later,
        most: later,
        trips: [trips; 2],
        counted: parts.as_ref().map(|parts| parts.round_trips),
        rest: parts.map_or_else(Vec::new, |parts| {
            let rest = parts.rest.into_iter();
            rest.map(|(reason, ms)| (reason, [ms; 2])).collect()
        }),
        computing: computing(baseline)
            .zip(computing(arm))
            .map(|(then, now)| [now - then; 2]),
        is_shown: shown.is_some(),
        interval: interval.map(|ends| ends.map(|percent| percent / 100.0 * then)),
    }))
}
