//! What can change from cell to cell, and the cells that have it one way or another.
//!
//! A parameter is one [`Spec`] and one line of [`ALL`]. Studies and their grids, the command line, filters, pools,
//! captions, JSON, columns and the commands that a page tells go through it.

mod crowd;
mod hosts;
mod link;
mod load;
mod page;
mod quic;
pub(super) mod spec;
mod tcp;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use lastbyte_link::{Bytes, Direction, Link, UnknownName};

use self::spec::{Caption, Measures, Place, Scope, Set, Spec};
pub use self::spec::{Choice, Column, CommandLine, Lists, Reading, Value};
use super::value::ParameterError;
use super::{Cell, StudyFolder, TransportName};

/// All parameters: in this order they are set and reported, and in grids the last changes fastest.
const ALL: [Parameter; 40] = [
    Parameter::LINK,
    Parameter(&link::RTT),
    Parameter::RATE,
    Parameter::TRACE,
    Parameter::LOSS,
    Parameter::JITTER,
    Parameter(&link::JITTER_DISTRIBUTION),
    Parameter(&link::JITTER_ORDER),
    Parameter(&link::QUEUE),
    Parameter(&link::QDISC),
    Parameter(&crowd::CROSS_TRAFFIC),
    Parameter(&crowd::CROSS_LEAD),
    Parameter(&crowd::AT_ONCE),
    Parameter(&tcp::PRESET),
    Parameter(&tcp::GSO),
    Parameter::MTU,
    Parameter(&hosts::TIMESTAMPS),
    Parameter(&hosts::ECN),
    Parameter(&hosts::BUFFERS),
    Parameter(&hosts::RECEIVE_BUFFER),
    Parameter(&hosts::TSO),
    Parameter::WRITES,
    Parameter(&tcp::CONGESTION),
    Parameter(&tcp::CLIENT_INITCWND),
    Parameter(&tcp::INITCWND),
    Parameter::QUIC_DATAGRAM,
    Parameter(&quic::CLIENT_DATAGRAM),
    Parameter(&quic::INITIAL_RTT),
    Parameter(&quic::ACK_DELAY),
    Parameter(&quic::MTU_DISCOVERY),
    Parameter::PAGE,
    Parameter(&page::ORIGINS),
    Parameter(&page::CACHE),
    Parameter(&page::CPU_SLOWDOWN),
    Parameter(&load::CLIENT_CPU),
    Parameter::TRAFFIC,
    Parameter(&load::REQUESTS),
    Parameter(&load::THINK),
    Parameter::UPLOAD,
    Parameter::DATA,
];

/// What can change from cell to cell.
#[derive(Clone, Copy)]
pub struct Parameter(&'static Spec);

/// What a cell has of a parameter that its connections draw.
const DRAWN: &str = "drawn";

/// What other tools call parameters.
const CALLED_ELSEWHERE: [(&str, Parameter); 15] = [
    ("latency", Parameter(&link::RTT)),
    ("delay", Parameter(&link::RTT)),
    ("bandwidth", Parameter(&link::RATE)),
    ("bw", Parameter(&link::RATE)),
    ("limit", Parameter(&link::QUEUE)),
    ("aqm", Parameter(&link::QDISC)),
    ("uplink", Parameter(&link::TRACE)),
    ("downlink", Parameter(&link::TRACE)),
    ("distribution", Parameter(&link::JITTER_DISTRIBUTION)),
    ("cwnd", Parameter(&tcp::INITCWND)),
    ("server_initcwnd", Parameter(&tcp::INITCWND)),
    ("cc", Parameter(&tcp::CONGESTION)),
    ("rcvbuf", Parameter(&hosts::RECEIVE_BUFFER)),
    ("size", Parameter::DATA),
    ("download", Parameter::DATA),
];

impl Parameter {
    /// All that there are, in the order in which they are reported.
    pub const ALL: [Parameter; ALL.len()] = ALL;
    /// The name of the link.
    pub const LINK: Parameter = Parameter(&link::NAME);
    /// Both delays.
    pub const RTT: Parameter = Parameter(&link::RTT);
    /// Rate of each direction.
    pub const RATE: Parameter = Parameter(&link::RATE);
    /// Rate trace of each direction.
    pub const TRACE: Parameter = Parameter(&link::TRACE);
    /// Loss of each direction.
    pub const LOSS: Parameter = Parameter(&link::LOSS);
    /// Jitter of each direction.
    pub const JITTER: Parameter = Parameter(&link::JITTER);
    /// Body of each request.
    pub const UPLOAD: Parameter = Parameter(&load::UPLOAD);
    /// The server's initial window.
    pub const INITCWND: Parameter = Parameter(&tcp::INITCWND);
    /// The server's datagrams over QUIC.
    pub const QUIC_DATAGRAM: Parameter = Parameter(&quic::DATAGRAM);
    /// The largest packet.
    pub const MTU: Parameter = Parameter(&hosts::MTU);
    /// How a server writes a response.
    pub const WRITES: Parameter = Parameter(&hosts::WRITES);
    /// The page that is loaded.
    pub const PAGE: Parameter = Parameter(&page::PAGE);
    /// What connections carry, by its name.
    pub const TRAFFIC: Parameter = Parameter(&load::TRAFFIC);
    /// Payload of each response.
    pub const DATA: Parameter = Parameter(&load::DATA);

    /// The one that other tools call so.
    pub fn called_elsewhere(name: &str) -> Option<Parameter> {
        let mut all = CALLED_ELSEWHERE.into_iter();
        all.find_map(|(called, parameter)| (called == name).then_some(parameter))
    }

    /// All but the name of the link, which others tell.
    pub fn measured() -> impl Iterator<Item = Parameter> + Clone {
        let all = Parameter::ALL.into_iter();
        all.filter(|parameter| *parameter != Parameter::LINK)
    }

    /// Those that a population may draw.
    pub fn drawable() -> impl Iterator<Item = Parameter> + Clone {
        let all = Parameter::ALL.into_iter();
        all.filter(|parameter| parameter.can_be_drawn())
    }

    /// Those that are options.
    pub fn options() -> impl Iterator<Item = (Parameter, &'static CommandLine)> {
        let all = Parameter::ALL.into_iter();
        all.filter_map(|parameter| Some((parameter, parameter.0.command_line.as_ref()?)))
    }

    /// Those that are columns of rows.
    pub fn columns() -> impl Iterator<Item = (Parameter, &'static Column)> {
        let all = Parameter::ALL.into_iter();
        all.filter_map(|parameter| Some((parameter, parameter.0.column.as_ref()?)))
    }

    /// The name in studies, and, with hyphens, on the command line.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// What an axis of it is called, with its unit.
    pub fn title(self) -> &'static str {
        self.0.title
    }

    /// What its text must be.
    pub fn reading(self) -> &'static Reading {
        &self.0.reading
    }

    /// How it is an option, if it is one.
    pub fn command_line(self) -> Option<&'static CommandLine> {
        self.0.command_line.as_ref()
    }

    /// How it is set, if it is a parameter of links and not of a direction alone.
    pub(super) fn of_link(self) -> Option<Set<Link>> {
        match &self.0.place {
            Place::Link(access) => Some(access.set),
            _ => None,
        }
    }

    /// Whether each direction has it.
    pub(super) fn is_of_direction(self) -> bool {
        matches!(self.0.place, Place::Direction(_))
    }

    /// Has one direction, or both (forward, then backward), have it as a text says.
    pub(super) fn set_directions(
        self,
        directions: &mut [&mut Direction],
        text: &str,
        folder: &StudyFolder,
    ) -> Result<(), ParameterError> {
        let Place::Direction(access) = &self.0.place else {
            return Ok(());
        };
        let separator = self.0.reading.separator();
        let ways = separator.and_then(|separator| text.split_once(separator));
        match (directions, ways) {
            ([forward, backward], Some((down, up))) => {
                (access.set)(forward, up, folder)?;
                (access.set)(backward, down, folder)
            }
            (directions, _) => {
                let mut directions = directions.iter_mut();
                directions.try_for_each(|direction| (access.set)(direction, text, folder))
            }
        }
    }

    /// See [`Parameter::of_link`].
    pub(super) fn of_cell(self) -> Option<Set<Cell>> {
        match &self.0.place {
            Place::Cell(access) => Some(access.set),
            _ => None,
        }
    }

    /// Whether a guest's study has it although it is as usual. What came later is left out then, as what a guest draws
    /// depends on how long its study is (`GuestJob` of `lastbyte`).
    pub(super) fn is_always_written(self) -> bool {
        ![
            link::TRACE.name,
            link::JITTER_ORDER.name,
            link::QDISC.name,
            hosts::ECN.name,
            load::TRAFFIC.name,
        ]
        .contains(&self.name())
    }

    /// Whether a population may draw it.
    pub fn can_be_drawn(self) -> bool {
        self.0.scope == Scope::Connection
    }

    /// Whether it is a property of page loads alone.
    pub fn is_of_pages(self) -> bool {
        self.0.measures == Measures::Pages
    }

    /// Whether it is a property of transfers alone.
    pub fn is_of_transfers(self) -> bool {
        self.0.measures == Measures::Transfers
    }

    /// The only transport that has it, if the other has not.
    pub fn transport(self) -> Option<TransportName> {
        self.0.transport
    }

    /// Whether it is a property of the link.
    pub fn is_of_link(self) -> bool {
        !matches!(self.0.place, Place::Cell(_))
    }

    /// What a cell has; `None` if each connection draws it, its link has no name, or another thing in each
    /// direction.
    pub fn value(self, cell: &Cell) -> Option<Value> {
        if cell.draws(self) {
            return None;
        }
        match &self.0.place {
            Place::LinkName => cell.link_name.clone().map(Value::Text),
            Place::Link(access) => Some((access.get)(&cell.link)),
            Place::Direction(access) => {
                let forward = (access.get)(&cell.link.forward);
                ((access.get)(&cell.link.backward) == forward).then_some(forward)
            }
            Place::Cell(access) => Some((access.get)(cell)),
        }
    }

    /// How a cell has it, as a study would say it.
    pub fn of(self, cell: &Cell) -> String {
        match (self.value(cell), &self.0.place) {
            (Some(value), _) => value.to_string(),
            (None, _) if cell.draws(self) => DRAWN.to_owned(),
            (None, Place::Direction(access)) => {
                let [up, down] = [&cell.link.forward, &cell.link.backward].map(access.get);
                match self.0.reading.separator() {
                    Some(separator) => format!("{down}{separator}{up}"),
                    None => format!("{up} up, {down} down"),
                }
            }
            (None, _) => String::new(),
        }
    }

    /// Has a cell have it as a text says. Relative paths begin at `folder`.
    ///
    /// # Errors
    ///
    /// What the text can't be, with the hint.
    pub fn set(
        self,
        cell: &mut Cell,
        text: &str,
        folder: &StudyFolder,
    ) -> Result<(), ParameterError> {
        match &self.0.place {
            Place::LinkName => cell.link_name = Some(text.to_owned()),
            Place::Link(access) => (access.set)(&mut cell.link, text, folder)?,
            Place::Direction(_) => {
                let Link { forward, backward } = &mut cell.link;
                self.set_directions(&mut [forward, backward], text, folder)?;
            }
            Place::Cell(access) => (access.set)(cell, text, folder)?,
        }
        Ok(())
    }

    /// `text` as [`Parameter::of`] would write it.
    ///
    /// # Errors
    ///
    /// What the text can't be, with the hint.
    pub fn canonical(self, text: &str) -> Result<String, ParameterError> {
        if matches!(self.0.reading, Reading::Name | Reading::Files) {
            return Ok(text.to_owned());
        }
        if matches!(self.0.reading, Reading::Whole(_)) && text.parse::<u32>().is_err() {
            return Err(ParameterError::NotWhole(text.to_owned()));
        }
        let mut cell = Cell::default();
        self.set(&mut cell, text, &StudyFolder::HERE)?;
        Ok(self.of(&cell))
    }

    /// `text` as [`Parameter::of`] would write it, within what the parameter can be.
    ///
    /// # Errors
    ///
    /// What the text can't be, with the hint.
    pub fn checked(self, text: &str) -> Result<String, ParameterError> {
        let canonical = self.canonical(text)?;
        let (number, range, [least, most]) = match &self.0.reading {
            Reading::Whole(range) => (
                canonical.parse::<u64>().ok(),
                u64::from(*range.start())..=u64::from(*range.end()),
                [range.start(), range.end()].map(u32::to_string),
            ),
            Reading::Bytes(most) => {
                let bytes = canonical.parse::<Bytes>().ok();
                (
                    bytes.map(|bytes| bytes.0),
                    0..=most.0,
                    [Bytes(0), *most].map(|bytes| bytes.to_string()),
                )
            }
            Reading::Name | Reading::Text | Reading::Ways | Reading::Files => {
                return Ok(canonical);
            }
        };
        if number.is_some_and(|number| range.contains(&number)) {
            Ok(canonical)
        } else {
            Err(ParameterError::Range {
                parameter: self.name(),
                text: text.to_owned(),
                least,
                most,
            })
        }
    }

    /// Whether a cell has what goes without saying.
    pub fn is_usual(self, cell: &Cell) -> bool {
        let usual = if self.goes_with_preset() {
            Cell::of(cell.preset)
        } else {
            Cell::default()
        };
        self.value(cell) == self.value(&usual)
    }

    /// Whether its usual value depends on the preset.
    pub fn goes_with_preset(self) -> bool {
        let command_line = self.0.command_line.as_ref();
        command_line.is_some_and(|known| matches!(known.choice, Choice::Presets))
    }

    /// Where a cell stands on an axis: milliseconds, Mbit/s, percent, KiB, or a count. `None` for what
    /// is no number, or differs between the directions.
    pub fn number(self, cell: &Cell) -> Option<f64> {
        match self.value(cell)? {
            Value::Text(text) => text.parse().ok(),
            Value::Count(count) => Some(f64::from(count)),
            Value::Bytes(Bytes(bytes)) => Some(bytes as f64 / 1024.0),
            Value::Time(time) => Some(time.as_secs_f64() * 1e3),
            Value::Rate(rate) => Some(rate?.bits_per_second() as f64 / 1e6),
            Value::Loss(loss) => Some(loss.mean().fraction() * 100.0),
        }
    }

    /// What the name of a cell says of it, unless that goes without saying: `RTT 35ms`.
    pub fn caption(self, cell: &Cell) -> Option<String> {
        if cell.draws(self) {
            // Networks that are drawn whole have a name for all that they are, and so has traffic.
            let is_named = cell.link_name.is_some() && cell.draws(Parameter::RTT);
            let is_told = (is_named && self.is_of_link()) || cell.draws_of_traffic(self);
            return (!is_told).then(|| self.describe(cell));
        }
        if cell.page.is_some() && self.is_of_transfers() {
            return None;
        }
        match self.0.caption {
            Caption::Always(text) => Some(text(cell)),
            Caption::Unusual(text) if !self.is_usual(cell) => Some(text(cell)),
            Caption::Unusual(_) | Caption::Never => None,
        }
    }

    /// Whether who asks for a cell says it, although it may be usual.
    pub fn is_given(self, cell: &Cell) -> bool {
        if cell.page.is_some() && self.is_of_transfers() {
            return false;
        }
        matches!(self.0.caption, Caption::Always(_)) || !self.is_usual(cell)
    }

    /// How a cell has it, in a sentence.
    pub fn describe(self, cell: &Cell) -> String {
        if cell.draws(self) {
            return format!("{} {DRAWN}", self.name().replace('_', " "));
        }
        match self.0.caption {
            Caption::Always(text) | Caption::Unusual(text) => text(cell),
            Caption::Never => format!("{} {}", self.name().replace('_', " "), self.of(cell)),
        }
    }

    /// The values that cells have of it, each once, in their order.
    pub fn values(self, cells: &[&Cell]) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for cell in cells {
            let value = self.of(cell);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Parameter) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Parameter {}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Parameter {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Parameter, UnknownName> {
        let mut all = Parameter::ALL.into_iter();
        let names = Parameter::ALL.map(Parameter::name);
        all.find(|parameter| parameter.name() == text)
            .ok_or_else(|| UnknownName::new("parameter", text, names))
    }
}

/// Some cells: those that have what one of its alternatives asks for. Without alternatives, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub(super) Vec<Alternative>);

/// Parameters with the values that each may have, written as [`Parameter::of`] writes them.
pub(super) type Alternative = Vec<(Parameter, Vec<String>)>;

impl Filter {
    /// The cells that have all of these.
    pub fn of(values: Vec<(Parameter, Vec<String>)>) -> Filter {
        Filter(vec![values])
    }

    /// Whether a cell is one of them.
    pub fn has(&self, cell: &Cell) -> bool {
        let fits = |alternative: &Alternative| {
            let mut all = alternative.iter();
            all.all(|(parameter, values)| values.contains(&parameter.of(cell)))
        };
        self.0.is_empty() || self.0.iter().any(fits)
    }

    /// Whether it says anything of a parameter.
    pub fn names(&self, parameter: Parameter) -> bool {
        let mut named = self.0.iter().flatten().map(|(named, _)| *named);
        named.any(|named| named == parameter)
    }
}

/// The parameters that differ among cells, in the order in which they are reported. The name of a link counts only
/// where nothing else tells it, and what goes with a preset only where it is another thing than that has.
pub fn varying(cells: &[&Cell]) -> Vec<Parameter> {
    let differs = |parameter: &Parameter| parameter.values(cells).len() > 1;
    let is_usual = |parameter: &Parameter| cells.iter().all(|cell| parameter.is_usual(cell));
    let (links, others): (Vec<_>, Vec<_>) = (Parameter::ALL.into_iter())
        .filter(|parameter| !(parameter.goes_with_preset() && is_usual(parameter)))
        .filter(differs)
        .partition(|parameter| *parameter == Parameter::LINK);
    let is_of_link = |parameter: &Parameter| {
        let place = &parameter.0.place;
        let is_told = !matches!(parameter.0.caption, Caption::Never);
        is_told && matches!(place, Place::Link(_) | Place::Direction(_))
    };
    if others.iter().any(is_of_link) {
        others
    } else {
        links.into_iter().chain(others).collect()
    }
}
