//! Writes what a study measures so that what is read of it is the same.

use std::fmt::Display;

use lastbyte_link::{Direction, Link, format_duration};

use crate::parameter::Value;
use crate::quoted::quoted;
use crate::{Arm, Cell, Connections, Experiment, Leads, Measure, Parameter, QuicIn, Study, Until};

impl Study {
    /// What the study measures as a text that [`Study::parse`] reads as the same, wherever it is put.
    /// Every cell stands on its own. Who measures needs nothing of figures and claims.
    pub fn to_toml(&self) -> String {
        let percentiles = self.percentiles.iter().map(|percentile| {
            let percentile = percentile.to_string();
            percentile.trim_start_matches('p').to_owned()
        });
        let mut text = Text::default();
        text.set("name", quoted(&self.name));
        for (key, told) in [("question", &self.question), ("note", &self.note)] {
            if let Some(told) = told {
                text.set(key, quoted(told));
            }
        }
        if self.leads != Leads::default() {
            text.set("leads", quoted(self.leads));
        }
        text.set("percentiles", list(percentiles));
        text.set("engine", quoted(self.engine));
        text.set("folder", quoted(self.folder.display()));
        let mut cells = self
            .measures
            .iter()
            .flat_map(|measure| &measure.experiment.cells);
        let drawn = cells.find_map(|cell| Some((cell, cell.population.as_ref()?)));
        if let Some((cell, population)) = drawn {
            // Cells have the rest by the name of their traffic.
            let own = population.own.as_ref().filter(|_| cell.traffic.is_some());
            if own.is_none_or(|own| !own.is_empty()) {
                text.0 += &format!("\n{}", own.unwrap_or(population).to_toml());
            }
        }
        for arm in self.arms() {
            text.header(&format!("[arm.{}]", key(&arm.name)));
            text.set("tls", quoted(&self.without_traffic(arm).label));
        }
        for Measure { id, experiment } in &self.measures {
            text.header("[[measure]]");
            text.set("id", quoted(id));
            text.experiment(experiment);
        }
        text.0
    }

    /// An arm without the client's chain that some measure's traffic has given it.
    fn without_traffic<'a>(&'a self, arm: &'a Arm) -> &'a Arm {
        let mut all = self.measures.iter().flat_map(|m| &m.experiment.arms);
        let is_silent = |other: &&Arm| other.name == arm.name && other.client_chain.is_none();
        all.find(is_silent).unwrap_or(arm)
    }

    /// Every arm once, in the order in which they first appear.
    pub fn arms(&self) -> Vec<&Arm> {
        let mut arms: Vec<&Arm> = Vec::new();
        for arm in self.measures.iter().flat_map(|m| &m.experiment.arms) {
            if !arms.iter().any(|other| other.name == arm.name) {
                arms.push(arm);
            }
        }
        arms
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn header(&mut self, header: &str) {
        self.0 += &format!("\n{header}\n");
    }

    fn set(&mut self, key: &str, value: impl Display) {
        self.0 += &format!("{key} = {value}\n");
    }

    fn experiment(&mut self, experiment: &Experiment) {
        let Experiment {
            arms,
            cells,
            connections,
            concurrency,
            timeout,
            seed,
            emulation,
            quic_in,
            cpu,
        } = experiment;
        self.set("arms", list(arms.iter().map(|arm| quoted(&arm.name))));
        self.set("connections", self::connections(connections));
        self.set("seed", seed.0);
        self.set("timeout", quoted(format_duration(*timeout)));
        if let Some(concurrency) = concurrency {
            self.set("concurrency", concurrency);
        }
        self.set("emulation", quoted(emulation));
        // Guests are told nothing that they were not always told: see `GuestJob`.
        if *quic_in != QuicIn::default() {
            self.set("quic_in", quoted(quic_in));
        }
        self.set("cpu", quoted(cpu));
        for cell in cells {
            self.header("[[measure.cell]]");
            self.cell(cell);
        }
    }

    fn cell(&mut self, cell: &Cell) {
        let Cell {
            link, link_name, ..
        } = cell;
        let name = link_name.as_ref().map(|name| ("name", quoted(name)));
        let is_drawn = |(key, _): &Entry| {
            let parameter = key.parse::<Parameter>();
            parameter.is_ok_and(|parameter| cell.draws(parameter))
        };
        let link = name.into_iter().chain(self::link(link));
        self.set("link", table(link.filter(|entry| !is_drawn(entry))));
        for parameter in Parameter::ALL {
            let is_other = match cell.page {
                Some(_) => parameter.is_of_transfers(),
                None => parameter.is_of_pages(),
            };
            let is_written = parameter.is_always_written() || !parameter.is_usual(cell);
            if parameter.of_cell().is_some() && is_written && !is_other && !cell.draws(parameter) {
                self.set(parameter.name(), value(parameter, cell));
            }
        }
    }
}

type Entry = (&'static str, String);

fn connections(connections: &Connections) -> String {
    match connections {
        Connections::Fixed(connections) => connections.to_string(),
        Connections::UpTo(_) => quoted(connections),
        Connections::Until(Until {
            precision,
            least,
            most,
        }) => table([
            ("until", quoted(precision)),
            ("least", least.to_string()),
            ("most", most.to_string()),
        ]),
    }
}

fn link(link: &Link) -> Vec<Entry> {
    let Link { forward, backward } = link;
    // Half of an odd number of nanoseconds is rounded, so only what is made of the RTT tells.
    if *link == Link::symmetric(link.rtt(), forward.clone()) {
        let rtt = ("rtt", quoted(format_duration(link.rtt())));
        return [rtt].into_iter().chain(direction(forward)).collect();
    }
    let whole = |direction: &Direction| {
        let delay = ("delay", quoted(format_duration(direction.delay)));
        table([delay].into_iter().chain(self::direction(direction)))
    };
    vec![("forward", whole(forward)), ("backward", whole(backward))]
}

/// A direction without its delay; what has no limit stands without it.
fn direction(direction: &Direction) -> impl Iterator<Item = Entry> {
    let cell = Cell {
        link: Link {
            forward: direction.clone(),
            backward: direction.clone(),
        },
        ..Cell::default()
    };
    let parameters = Parameter::ALL.into_iter();
    let parameters = parameters.filter(|parameter| parameter.is_of_direction());
    parameters.filter_map(move |parameter| match parameter.value(&cell) {
        Some(Value::Rate(None)) => None,
        _ if !parameter.is_always_written() && parameter.is_usual(&cell) => None,
        _ => Some((parameter.name(), value(parameter, &cell))),
    })
}

/// A number, or else a text in quotes.
fn value(parameter: Parameter, cell: &Cell) -> String {
    match parameter.value(cell) {
        Some(Value::Count(count)) => count.to_string(),
        _ => quoted(parameter.of(cell)),
    }
}

fn table(entries: impl IntoIterator<Item = Entry>) -> String {
    let entries = entries.into_iter();
    let entries: Vec<_> = entries
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", entries.join(", "))
}

fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<_> = values.into_iter().collect();
    format!("[{}]", values.join(", "))
}

/// A key as it is written in a header.
pub(super) fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}
